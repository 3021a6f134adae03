//! Which way a message goes to peers of other abilities, what is refused for good, and which of several links stays.

use std::time::Duration;

use super::super::links::Phase;
use super::super::peers::State;
use super::super::{
    Address, Completed, Config, Endpoint, Failure, MESSAGE_MAX, Post, Send, SendRefused, Space,
};
use super::sim::{Sim, bytes, message, name, receive};
use super::transport::SimTransport;
use super::world::{Shared, Weather};
use crate::device::transport::{CloseReason, Ear, Notice, Reaction, Transport};
use crate::engine::Kind;
use crate::ids::{DeviceId, Ignore, LinkId, PeerId, Tag};
use crate::seam::Buffer;
use crate::wire::{Control, Credits, EndpointName, Hello, HelloRole, InstanceId, PeerCapabilities, VERSION};

const DEVICE: DeviceId = DeviceId(0);

/// The first of two cannot read.
fn pair_without_reads(tags: u32, segments: bool) -> Sim {
    let credits = Credits { headers: 100, eager_messages: 4, eager_bytes: 50_000 };
    let config = Config { eager_limit: 1000, credits, ..Config::default() };
    let mut sim = Sim::listed(2, 1, Weather { delay: 2, full: 10, ..Weather::default() }, config, tags);
    let said = &mut sim.at(0).core.capabilities[0];
    *said = PeerCapabilities::IMMEDIATE;
    if segments {
        *said = said.with(PeerCapabilities::SEGMENTS);
    }
    if tags > 0 {
        *said = said.with(PeerCapabilities::MATCHING);
    }
    sim
}

#[test]
fn what_a_peer_cannot_read_goes_in_segments() {
    for (tags, space) in [(0, Space::Tagged), (0, Space::Untagged), (8, Space::Untagged)] {
        let mut sim = pair_without_reads(tags, true);
        for context in 1..=10 {
            let buffer = sim.world.allocate(&bytes(context, 20_000));
            sim.post(0, &super::sim::Receive { space, ..receive(1, 20_000, context) });
            sim.send(1, &Send { space, ..message(0, 1, buffer, context) });
        }
        for context in 1..=10 {
            assert_eq!(sim.received(0, context).0, bytes(context, 20_000));
            assert_eq!(sim.ended(1, context), Completed::Sent);
        }
        assert_eq!(sim.at(1).statistics().sent_segmented, 10);
        // What is more than it ever has room for, and what cannot be cut.
        let buffer = sim.world.allocate(&[0; 50_001]);
        let refused = sim.refusal(1, &Send { space, ..message(0, 1, buffer, 20) });
        assert_eq!(refused, SendRefused::TooLong { length: 50_001, limit: 50_000 });
        let stretches = Buffer { length: 1001, segments: 2, ..buffer };
        let refused = sim.refusal(1, &Send { space, ..message(0, 1, stretches, 20) });
        assert_eq!(refused, SendRefused::TooLong { length: 1001, limit: 1000 });
    }
}

#[test]
fn what_a_peer_takes_in_no_way_is_refused_for_good() {
    for (tags, segments) in [(0, false), (8, true), (8, false)] {
        let mut sim = pair_without_reads(tags, segments);
        let buffer = sim.world.allocate(&[0; 1001]);
        let refused = sim.refusal(1, &message(0, 1, buffer, 20));
        assert_eq!(refused, SendRefused::TooLong { length: 1001, limit: 1000 });
        sim.send(1, &message(0, 1, Buffer { length: 1000, ..buffer }, 21));
    }
}

#[test]
fn a_message_that_is_longer_than_any_is_refused() {
    let mut sim = Sim::pair();
    let length = MESSAGE_MAX + 1;
    for space in [Space::Tagged, Space::Untagged] {
        let send = Send { space, ..message(1, 1, Buffer::new(0, length), 1) };
        assert_eq!(sim.at(0).send(&send), Err(SendRefused::TooLong { length, limit: MESSAGE_MAX }));
    }
}

#[test]
fn who_is_reached_under_a_name_not_its_own_is_refused_at_once_also_oneself() {
    for (other, job_key) in [(0, None), (1, None), (0, Some(vec![7; 16])), (1, Some(vec![7; 16]))] {
        let config = Config { job_key, ..Config::default() };
        let mut sim = Sim::new(2, 1, Weather::default(), config);
        let node = sim.nodes[other];
        sim.world.lock().listening.insert(b"alias".to_vec(), node);
        sim.at(0).set_address(Address(9), b"alias").expect("the number is free");
        let (buffer, before) = (sim.world.allocate(b"hello"), sim.now());
        let refused = sim.refusal(0, &message(9, 1, buffer, 1));
        assert_eq!(refused, SendRefused::Unreachable(Failure::NotAccepted));
        assert!(sim.now() - before < Duration::from_secs(1));
        // Nothing was lost by that, and under its own name it is reached.
        assert_eq!(sim.at(0).statistics().lost, 0);
        sim.post(other, &receive(1, 8, 1));
        sim.send_bytes(0, other, 1, b"hello", 2);
        assert_eq!(sim.received(other, 1).0, b"hello");
        // It is forgotten like any other.
        sim.at(0).remove_address(Address(9));
        sim.steps(5);
        assert_eq!(sim.at(0).core.peers.find(b"alias"), None);
    }
}

#[test]
fn ones_own_alias_is_refused_at_once_also_when_one_is_connected_to_oneself_or_connecting() {
    for (is_connected, job_key) in
        [(true, None), (false, None), (true, Some(vec![7; 16])), (false, Some(vec![7; 16]))]
    {
        let mut sim = Sim::new(2, 1, Weather::default(), Config { job_key, ..Config::default() });
        let node = sim.nodes[0];
        sim.world.lock().listening.insert(b"alias".to_vec(), node);
        sim.at(0).set_address(Address(9), b"alias").expect("the number is free");
        let buffer = sim.world.allocate(b"hello");
        if is_connected {
            sim.send(0, &message(0, 1, buffer, 2));
        } else {
            assert_eq!(sim.at(0).send(&message(0, 1, buffer, 2)), Err(SendRefused::Again));
        }
        let before = sim.now();
        let refused = sim.refusal(0, &message(9, 1, buffer, 1));
        assert_eq!(refused, SendRefused::Unreachable(Failure::NotAccepted), "{is_connected}");
        assert!(sim.now() - before < Duration::from_secs(1), "{is_connected}");
        assert_eq!(sim.at(0).statistics().lost, 0, "{is_connected}");
        sim.post(0, &receive(1, 8, 1));
        if !is_connected {
            sim.send(0, &message(0, 1, buffer, 3));
        }
        assert_eq!(sim.received(0, 1).0, b"hello");
    }
}

#[test]
fn ones_own_alias_that_is_refused_costs_no_call_to_others() {
    for job_key in [None, Some(vec![7; 16])] {
        let mut sim = Sim::new(3, 1, Weather::default(), Config { job_key, ..Config::default() });
        let node = sim.nodes[0];
        sim.world.lock().listening.insert(b"alias".to_vec(), node);
        sim.at(0).set_address(Address(9), b"alias").expect("the number is free");
        let buffer = sim.world.allocate(b"hello");
        // All begin at once, and say the same.
        for to in [1, 9, 2] {
            assert_eq!(sim.at(0).send(&message(to, 1, buffer, 1)), Err(SendRefused::Again));
        }
        // What it says to itself comes before anybody else has answered.
        for _ in 0..5 {
            sim.world.lock().now += 1;
            sim.progress(0);
        }
        let refused = sim.refusal(0, &message(9, 1, buffer, 1));
        assert_eq!(refused, SendRefused::Unreachable(Failure::NotAccepted));
        for to in [1, 2] {
            sim.post(to, &receive(1, 8, 1));
            sim.send_bytes(0, to, 1, b"hello", 2);
            assert_eq!(sim.received(to, 1).0, b"hello");
        }
        let it = sim.at(0).statistics();
        assert_eq!((it.turned_away, it.connect_failed, it.lost), (1, 1, 0));
    }
}

/// Somebody's first word on a link; each life says another.
fn hello(endpoint: &mut Endpoint, (device, index): (DeviceId, u32), life: u128) -> Reaction {
    let name = name(1);
    let hello = Hello {
        role: HelloRole::Request,
        version_min: VERSION,
        version_max: VERSION,
        capabilities: PeerCapabilities::READS,
        instance: InstanceId::new(life).unwrap(),
        eager_limit: 1000,
        credits: Credits { headers: 1, eager_messages: 1, eager_bytes: 1 },
        name: EndpointName::new(&name).unwrap(),
    };
    let mut bytes = [0; Hello::LENGTH_MAX];
    let length = Control::Hello(hello).encode(&mut bytes).unwrap();
    let core = &mut endpoint.core;
    core.handle_notice(device, Notice::Incoming { link: link(index) });
    core.handle_control(device, link(index), &bytes[..length])
}

const fn link(index: u32) -> LinkId {
    LinkId { index, generation: 77 }
}

#[test]
fn a_link_that_waited_for_the_end_of_another_does_not_outlive_a_newer_one() {
    let mut sim = Sim::new(2, 1, Weather::default(), Config::default());
    let peer: PeerId = sim.at(0).core.peers.find(&name(1)).unwrap();
    assert_eq!(hello(sim.at(0), (DEVICE, 1), 1), Reaction::Bind(peer));
    assert_eq!(hello(sim.at(0), (DEVICE, 2), 2), Reaction::Continue);
    assert_eq!(sim.at(0).core.peers[peer].next, Some((DEVICE, link(2))));
    // All in one turn of the transport: the old one ends, and a third life comes.
    let closed = Notice::Closed { link: link(1), reason: CloseReason::Here };
    sim.at(0).core.handle_notice(DEVICE, closed);
    assert_eq!(hello(sim.at(0), (DEVICE, 3), 3), Reaction::Bind(peer));
    let core = &mut sim.at(0);
    core.settle().unwrap();
    let core = &mut sim.at(0).core;
    assert_eq!(core.peers[peer].state, State::Connected((DEVICE, link(3))));
    assert_eq!(core.peers[peer].next, None);
    assert!(core.links.find((DEVICE, link(2))).is_none_or(|link| link.phase == Phase::Closing));
}

#[test]
fn a_peer_comes_back_by_another_transport_while_receives_name_it() {
    let world = Shared::new(1, Weather::default());
    let transports: Vec<_> = [b"x", b"y"].map(|name| SimTransport::new(&world, name, 1000)).into();
    let boxed = |transport: SimTransport| -> Box<dyn Transport + std::marker::Send> { Box::new(transport) };
    let transports = transports.into_iter().map(boxed).collect();
    let mut endpoint = Endpoint::new(Config::default(), transports).unwrap();
    endpoint.set_address(Address(1), &name(1)).unwrap();
    let peer = endpoint.core.peers.find(&name(1)).unwrap();
    assert_eq!(hello(&mut endpoint, (DEVICE, 1), 1), Reaction::Bind(peer));
    let post = Post {
        space: Space::Tagged,
        source: Some(Address(1)),
        tag: Tag(1),
        ignore: Ignore::NONE,
        buffer: Buffer::default(),
        kind: Kind::Once,
        context: 5,
        flags: 0,
    };
    endpoint.post(&post).unwrap();
    let closed = Notice::Closed { link: link(1), reason: CloseReason::Peer };
    endpoint.core.handle_notice(DEVICE, closed);
    assert_eq!(hello(&mut endpoint, (DeviceId(1), 1), 2), Reaction::Bind(peer));
    assert!(endpoint.cancel(5));
}
