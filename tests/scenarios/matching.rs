//! Which receive takes which message: B01 to B04.

use tagmatch::device::soft::Step;
use tagmatch::engine::{Config, Engine, NameError};
use tagmatch::ids::{DeviceId, PeerId};
use tagmatch::offload::TagLayout;

use crate::orders::every_order;
use crate::world::{NIC, PLAIN, World, each_way, each_way_stepped, exact, from, masked, nic, plain};

/// The number of a peer whose address is not known yet.
const UNKNOWN: u32 = 9;

fn learn(world: &mut World) {
    world.engine.resolve(PeerId(UNKNOWN), PeerId(1));
    world.settle();
}

#[test]
fn b01_a_message_of_an_unknown_peer_waits_for_a_receive_from_that_peer() {
    for (mut world, device) in each_way() {
        world.send(device, UNKNOWN, 7, b"A");
        world.run();
        world.post("c0", from(2, exact(7)), 64);
        world.run();
        assert!(world.is_open("c0"), "it names another peer");
        learn(&mut world);
        world.post("c1", from(1, exact(7)), 64);
        world.send(device, 2, 7, b"B");
        world.finish();
        assert_eq!((world.text("c1"), world.message("c1").source), ("A".into(), PeerId(1)));
        assert_eq!((world.text("c0"), world.message("c0").source), ("B".into(), PeerId(2)));
    }
}

#[test]
fn b01_a_receive_from_anybody_takes_a_message_of_an_unknown_peer_at_once() {
    for (mut world, device) in each_way() {
        world.post("any", exact(7), 64);
        world.send(device, UNKNOWN, 7, b"A");
        world.finish();
        assert_eq!((world.text("any"), world.message("any").source), ("A".into(), PeerId(UNKNOWN)));
    }
}

#[test]
fn b01_a_message_told_after_its_sender_was_learned_is_that_senders() {
    for (mut world, device) in each_way_stepped() {
        world.run();
        world.send(device, UNKNOWN, 7, b"A");
        world.step(device, Step::Accept(PeerId(UNKNOWN)));
        learn(&mut world);
        world.post("c1", from(1, exact(7)), 64);
        world.finish();
        assert_eq!((world.text("c1"), world.message("c1").source), ("A".into(), PeerId(1)));
    }
}

#[test]
fn b01_a_message_that_waits_for_a_nic_is_its_senders_when_that_one_is_learned() {
    let mut world = World::stepped(&[nic(4), plain()]);
    world.post("any", exact(7), 64);
    world.run();
    world.send(NIC, 3, 7, b"N");
    world.step(NIC, Step::Accept(PeerId(3)));
    world.send(PLAIN, UNKNOWN, 7, b"A");
    world.step(PLAIN, Step::Accept(PeerId(UNKNOWN)));
    world.poll(PLAIN);
    assert_eq!(world.engine.waiting(), 1, "its first fit is in the NIC");
    learn(&mut world);
    world.post("c1", from(1, exact(7)), 64);
    world.finish();
    assert_eq!((world.text("any"), world.text("c1")), ("N".into(), "A".into()));
    assert_eq!(world.message("c1").source, PeerId(1));
}

#[test]
fn b01_whenever_the_sender_is_learned_its_two_messages_keep_their_order() {
    for device in [NIC, PLAIN] {
        let count = every_order(|orders| {
            let mut world = World::stepped(&[nic(4), plain()]);
            world.run();
            world.send(device, UNKNOWN, 7, b"1");
            world.send(device, UNKNOWN, 7, b"2");
            let first = |world: &mut World| _ = world.post("c1", from(1, exact(7)), 8);
            let second = |world: &mut World| _ = world.post("c2", from(1, exact(7)), 8);
            world.explore(orders, &[first, learn, second]);
            world.finish();
            assert_eq!((world.text("c1"), world.text("c2")), ("1".into(), "2".into()));
        });
        assert!(count > 20, "{count}");
    }
}

#[test]
fn b02_every_bit_of_the_tag_is_the_users() {
    for bit in [63, 62, 61, 60, 32, 31] {
        let high = 1 << bit | 1;
        for (mut world, device) in each_way() {
            world.post("c1", exact(high), 8);
            world.send(device, 1, high, b"x");
            world.run();
            assert_eq!((world.text("c1"), world.message("c1").tag.0), ("x".into(), high));

            world.send(device, 1, high, b"y");
            world.run();
            assert!(world.claim(exact(1)).is_none(), "bit {bit} counts");

            world.send(device, 1, 1, b"z");
            world.run();
            let claim = world.claim(exact(1)).unwrap();
            world.post("c2", exact(high), 8);
            assert!(world.receive_claimed("k", claim, 8));
            world.finish();
            assert_eq!((world.text("k"), world.text("c2")), ("z".into(), "y".into()));
        }
    }
}

#[test]
fn b03_ignored_bits_of_a_receives_tag_do_not_matter_in_a_nic_nor_in_software() {
    for (mut world, device) in each_way() {
        world.post("c1", masked(0x1ff, 0x0ff), 16);
        world.run();
        if let Some(list) = world.devices[NIC].list() {
            let entry = list.entries()[0];
            assert_eq!((entry.tag, entry.mask), (0x100, 0xffff_ffff_ffff_ff00));
        }
        world.send(device, 1, 0x123, b"q");
        world.run();
        world.engine.set_offload(DeviceId(0), false);
        world.post("c2", masked(0x1ff, 0x0ff), 16);
        world.send(device, 1, 0x17a, b"r");
        world.run();
        world.engine.set_offload(DeviceId(0), true);
        world.post("all", masked(0xdead, u64::MAX), 16);
        world.send(device, 1, 0, b"s");
        world.run();
        world.post("other", masked(0x2ff, 0x0ff), 16);
        world.send(device, 1, 0x123, b"t");
        world.finish();
        let got = ["c1", "c2", "all"].map(|name| world.text(name));
        assert_eq!(got, ["q", "r", "s"]);
        assert!(world.is_open("other"));
        assert!(world.peek(exact(0x123)));
    }
}

/// Protocol, source, context, user's tag: lowest bit and width of each.
const FIELDS: [(u32, u32); 4] = [(60, 4), (40, 20), (24, 16), (0, 24)];

#[test]
fn b04_messages_that_differ_in_one_bit_of_any_field_are_told_apart() {
    for (lowest, width) in FIELDS {
        for bit in [lowest, lowest + width - 1] {
            for base in [0, 0x5555_5555_5555_5555, u64::MAX] {
                for (mut world, device) in each_way() {
                    let second = base ^ 1 << bit;
                    world.post("exact", exact(second), 8);
                    let elsewhere = if bit < 24 { 0x0fff_ff00_0000_0000 } else { 0xff_ffff };
                    world.post("masked", masked(second, elsewhere), 8);
                    world.send(device, 1, base, b"one");
                    world.send(device, 1, second, b"two");
                    world.send(device, 1, second, b"three");
                    world.finish();
                    assert_eq!((world.text("exact"), world.text("masked")), ("two".into(), "three".into()));
                    assert!(world.peek(exact(base)));
                }
            }
        }
    }
}

fn named_in_tags() -> Config {
    Config { layout: Some(TagLayout { source_bits: 0xff00 }), ..Config::default() }
}

#[test]
fn b04_a_peer_whose_number_does_not_fit_its_field_is_refused_not_aliased() {
    let mut world = World::with(named_in_tags(), &[nic(4), plain()]);
    assert_eq!(world.engine.name_peer(PeerId(0), 0), Ok(()));
    let bits = 256 << 8;
    let refused = NameError::OutsideLayout { peer: PeerId(256), bits, source_bits: 0xff00 };
    assert_eq!(world.engine.name_peer(PeerId(256), bits), Err(refused));
    world.post("of 256", from(256, exact(5)), 8);
    world.post("of 0", from(0, exact(5)), 8);
    world.run();
    world.send(NIC, 0, 5, b"zero");
    world.send(NIC, 256, 5, b"256");
    world.finish();
    assert_eq!((world.text("of 0"), world.text("of 256")), ("zero".into(), "256".into()));
}

#[test]
fn b04_two_peers_cannot_have_one_name() {
    let mut engine = Engine::new(named_in_tags());
    assert_eq!(engine.name_peer(PeerId(1), 0x100), Ok(()));
    assert_eq!(engine.name_peer(PeerId(1), 0x100), Ok(()), "it is its own");
    let taken = NameError::Taken { peer: PeerId(2), bits: 0x100, by: PeerId(1) };
    assert_eq!(engine.name_peer(PeerId(2), 0x100), Err(taken));
    assert_eq!(engine.name_peer(PeerId(1), 0x300), Ok(()), "it is named anew");
    assert_eq!(engine.name_peer(PeerId(2), 0x100), Ok(()), "the name is free");
}
