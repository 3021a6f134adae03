//! Peers that come and go, and what is left of them: whose rows, receives and messages are whose.

use super::super::core::Core;
use super::super::{Address, Completed, Config, Endpoint, Peek, PeekAction, Post, Space};
use super::sim::{Receive, Sim, message, name, receive};
use super::transport::SimTransport;
use super::world::Weather;
use crate::device::transport::Transport as _;
use crate::engine::Kind;
use crate::ids::{Ignore, PeerId, Tag};
use crate::seam::Buffer;

fn core(sim: &mut Sim, at: usize) -> &mut Core {
    &mut sim.at(at).core
}

fn peer(sim: &mut Sim, other: usize) -> PeerId {
    core(sim, 0).peers.find(&name(other)).expect("it is known")
}

/// How many peers there are, and rows.
fn rows(sim: &mut Sim) -> (usize, usize) {
    (core(sim, 0).peers.count(), core(sim, 0).peers.ids().count())
}

/// Endpoint 0 knows 1, is known to all, and has heard of 1.
fn met(count: usize) -> Sim {
    let mut sim = Sim::strangers(count, 1, Weather::default(), Config::default());
    sim.introduce(0, 1);
    (1..count).for_each(|other| sim.introduce(other, 0));
    sim.send_bytes(1, 0, 1, b"here", 1);
    sim.post(0, &receive(1, 8, 1));
    assert_eq!(sim.received(0, 1).1.source, Some(Address(1)));
    sim
}

/// It dies, and endpoint 0 has heard of that.
fn lose(sim: &mut Sim, other: usize) {
    let lost = sim.at(0).statistics().lost;
    sim.kill(other, true);
    sim.until("it is lost", |sim| sim.at(0).statistics().lost > lost);
}

fn remove(sim: &mut Sim, other: usize) {
    sim.at(0).remove_address(Address(other as u64));
}

/// So many receives come and go: as much as it takes to be looked for.
fn pass(sim: &mut Sim, count: u64) {
    for context in 1_000_000..1_000_000 + count {
        sim.post(0, &receive(1 << 40, 8, context));
        assert!(sim.at(0).cancel(context));
    }
    sim.collect(0);
}

fn from(other: usize, tag: u64, context: u64) -> Receive {
    Receive { source: Some(other), ..receive(tag, 8, context) }
}

#[test]
fn the_row_of_a_peer_that_was_removed_and_died_is_the_next_ones_in_whichever_order() {
    for removed_first in [false, true] {
        let mut sim = met(3);
        let first = peer(&mut sim, 1);
        if removed_first {
            remove(&mut sim, 1);
            sim.steps(5);
            assert_eq!(rows(&mut sim), (1, 1), "its connection is there");
        }
        lose(&mut sim, 1);
        if !removed_first {
            assert_eq!(rows(&mut sim), (1, 1), "it has an address");
            remove(&mut sim, 1);
        }
        sim.steps(5);
        assert_eq!(rows(&mut sim), (0, 1));
        sim.introduce(0, 2);
        assert_eq!((peer(&mut sim, 2), rows(&mut sim)), (first, (1, 1)));
        // And it is as good as a new one.
        sim.post(0, &from(2, 5, 50));
        sim.send_bytes(2, 0, 5, b"next", 1);
        assert_eq!(sim.received(0, 50).0, b"next");
    }
}

#[test]
fn a_receive_that_names_the_dead_takes_nothing_of_the_next_peer() {
    for space in [Space::Tagged, Space::Untagged] {
        let mut sim = met(3);
        sim.post(0, &Receive { space, ..from(1, 7, 70) });
        let dead = peer(&mut sim, 1);
        lose(&mut sim, 1);
        remove(&mut sim, 1);
        pass(&mut sim, 1000);
        sim.introduce(0, 2);
        assert_ne!(peer(&mut sim, 2), dead);
        let buffer = sim.world.allocate(b"mine");
        sim.send(2, &super::super::Send { space, ..message(0, 7, buffer, 1) });
        sim.until("it is there", |sim| sim.at(0).depths(space) == (1, 1));
        sim.post(0, &Receive { space, ..receive(7, 8, 71) });
        assert_eq!(sim.received(0, 71).0, b"mine");
        assert_eq!(sim.of(0, 70), []);
        // Until it is cancelled and others have come and gone.
        assert!(sim.at(0).cancel(70));
        sim.collect(0);
        assert_eq!(sim.of(0, 70), [Completed::Cancelled]);
        pass(&mut sim, 1000);
        sim.introduce(0, 2);
        assert_eq!(rows(&mut sim), (1, 2));
    }
}

#[test]
fn a_peer_that_is_inserted_again_meanwhile_has_its_receives_still() {
    let mut sim = met(2);
    sim.post(0, &from(1, 7, 70));
    let before = peer(&mut sim, 1);
    lose(&mut sim, 1);
    remove(&mut sim, 1);
    pass(&mut sim, 1000);
    sim.introduce(0, 1);
    assert_eq!(peer(&mut sim, 1), before);
    sim.start(1);
    sim.introduce(1, 0);
    sim.send_bytes(1, 0, 7, b"again", 1);
    let (got, what) = sim.received(0, 70);
    assert_eq!((got, what.source), (b"again".to_vec(), Some(Address(1))));
    // It is removed again, and nothing names it any more.
    lose(&mut sim, 1);
    remove(&mut sim, 1);
    sim.steps(5);
    assert_eq!(rows(&mut sim), (0, 1));
}

#[test]
fn what_a_removed_peer_left_behind_is_shown_as_nobodys_and_never_as_the_next_ones() {
    let mut sim = met(3);
    for tag in [20, 21, 22] {
        sim.send_bytes(1, 0, tag, b"left", tag);
    }
    sim.until("they are there", |sim| sim.at(0).depths(Space::Tagged) == (0, 3));
    let claim = |sim: &mut Sim, tag, context| sim.peek(0, tag, PeekAction::Claim, context);
    assert!(matches!(claim(&mut sim, 21, 210), Completed::Peeked(_)));
    let dead = peer(&mut sim, 1);
    lose(&mut sim, 1);
    remove(&mut sim, 1);
    sim.at(0).set_address(Address(1), &name(2)).expect("the number is free");
    pass(&mut sim, 100);
    assert_ne!(peer(&mut sim, 2), dead);
    sim.post(0, &receive(20, 8, 200));
    assert_eq!(sim.received(0, 200).1.source, None);
    let buffer = sim.world.allocate(&[0; 8]);
    sim.at(0).receive_claimed(210, buffer, 0).expect("it was claimed");
    sim.until("it is received", |sim| sim.of(0, 210).len() == 2);
    assert!(matches!(sim.of(0, 210)[1], Completed::Received { message, .. } if message.source.is_none()));
    assert_eq!(rows(&mut sim), (2, 2), "one message is left");
    let discard = Peek {
        space: Space::Tagged,
        source: None,
        tag: Tag(22),
        ignore: Ignore::NONE,
        action: PeekAction::Discard,
        context: 220,
        flags: 0,
    };
    sim.at(0).peek(&discard);
    sim.steps(5);
    // It is looked for in each turn no longer, but after some.
    (0..100).for_each(|_| sim.introduce(0, 2));
    assert_eq!(rows(&mut sim), (1, 2));
}

#[test]
fn ten_thousand_that_are_inserted_and_removed_take_no_more_rows_than_one() {
    let mut sim = Sim::strangers(2, 1, Weather::default(), Config::default());
    let buffer = sim.world.allocate(&[0; 8]);
    // Somebody has posted much that names nobody, or one who lives.
    sim.introduce(0, 1);
    let post = |source, tag, context| Post {
        space: Space::Tagged,
        source,
        tag: Tag(tag),
        ignore: Ignore::NONE,
        buffer: Buffer::default(),
        kind: Kind::Once,
        context,
        flags: 0,
    };
    for context in 0..20_000 {
        let source = (context % 2 == 0).then_some(Address(1));
        sim.at(0).post(&post(source, 1 << 40, context)).expect("there is room");
    }
    for other in 2..10_002 {
        // Under a number of its own each, or all under one.
        let number = Address(if other % 2 == 0 { other as u64 } else { 0 });
        sim.at(0).set_address(number, &name(other)).expect("it is free");
        sim.at(0).post(&post(Some(number), 1, 100_000)).expect("there is room");
        let _ = sim.at(0).send(&super::super::Send { to: number, ..message(0, 1, buffer, 0) });
        assert!(sim.at(0).cancel(100_000));
        sim.at(0).remove_address(number);
        sim.steps(3);
        sim.collect(0);
        assert!(rows(&mut sim).1 < 100, "{:?} at {other}", rows(&mut sim));
    }
}

#[test]
fn a_thousand_that_connect_talk_and_die_take_no_more_rows_than_a_few() {
    let mut sim = met(2);
    for other in 2..1002 {
        lose(&mut sim, 1);
        remove(&mut sim, 1);
        let transport = SimTransport::new(&sim.world, &name(other), 1 << 16);
        sim.nodes[1] = transport.node();
        assert_eq!(transport.name(), name(other));
        let endpoint = Endpoint::new(Config::default(), vec![Box::new(transport)]);
        sim.endpoints[1] = Some(endpoint.expect("it can be"));
        sim.introduce(1, 0);
        sim.at(0).set_address(Address(1), &name(other)).expect("it is free");
        sim.post(0, &from(1, 3, other as u64));
        sim.send_bytes(1, 0, 3, b"hello", 1);
        assert_eq!(sim.received(0, other as u64).1.source, Some(Address(1)));
    }
    assert!(rows(&mut sim).1 < 4, "{:?}", rows(&mut sim));
}
