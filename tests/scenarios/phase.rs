//! The count of unexpected messages that engine and device must agree on: B23, and A8 of the contract.

use tagmatch::device::soft::{Kind, SoftConfig, SoftMessage, Step, Switches, switches::Malformed};
use tagmatch::engine::Config;
use tagmatch::ids::PeerId;

use crate::world::{NIC, Shape, World, exact, nic};

const PEER: u32 = 1;

fn hardware_phase(world: &World) -> u16 {
    world.devices[NIC].list().unwrap().hardware_phase()
}

/// The NIC matches the next message.
fn expect_match(world: &mut World, name: &'static str) {
    world.post(name, exact(7), 8);
    world.run();
    world.send(NIC, PEER, 7, b"seven");
    world.finish();
    assert_eq!(world.text(name), "seven");
    assert!(world.message(name).matched_by.is_some(), "{name} was not matched by the NIC");
}

#[test]
fn b23_1_after_three_unexpected_messages_the_next_receive_is_matched_by_the_nic() {
    let mut world = World::new(&[nic(4)]);
    for tag in 1..=3 {
        world.send(NIC, PEER, tag, b"early");
    }
    world.run();
    assert_eq!((world.engine.depths(), hardware_phase(&world)), ((0, 3), 3));
    expect_match(&mut world, "c");
    assert_eq!(world.engine.statistics().sync_requests, 0, "the count went with the ADD");
}

#[test]
fn b23_2_a_message_of_several_packets_counts_once() {
    let mut world = World::stepped(&[nic(4)]);
    world.run();
    world.send_as(Shape::Packets(3), NIC, PEER, 8, b"three packets");
    world.step(NIC, Step::Accept(PeerId(PEER)));
    assert_eq!(hardware_phase(&world), 1, "at its first packet");
    world.run();
    assert_eq!(hardware_phase(&world), 1);
    expect_match(&mut world, "c");
}

#[test]
fn b23_3_a_receive_added_with_a_count_that_is_behind_is_not_matched_by_the_nic() {
    let mut world = World::stepped(&[nic(4)]);
    world.run();
    for tag in 1..=3 {
        world.send(NIC, PEER, tag, b"early");
        world.step(NIC, Step::Accept(PeerId(PEER)));
    }
    for _ in 0..2 {
        assert_eq!(tagmatch::device::Device::poll(&mut world.devices[NIC], 1, &mut world.engine), Ok(1));
    }
    world.settle();
    world.post("c", exact(7), 8);
    world.step(NIC, Step::Command);
    world.send(NIC, PEER, 7, b"seven");
    world.step(NIC, Step::Accept(PeerId(PEER)));
    assert_eq!(hardware_phase(&world), 4, "it was unexpected");
    world.finish();
    assert_eq!((world.text("c"), world.message("c").matched_by), ("seven".into(), None));
    assert_eq!(world.engine.statistics().used_by_own_device, 1);
}

#[test]
fn b23_4_65541_unexpected_messages_leave_the_nic_matching() {
    let mut world = World::new(&[nic(4)]);
    let message = world.prepare(Shape::Eager, 3, b"unwanted");
    for number in 0..65_541 {
        world.send_prepared(NIC, PEER, message.clone());
        if number % 20 == 0 || number == 65_540 {
            world.run();
            while world.discard(exact(3)) {}
        }
    }
    assert_eq!((world.engine.depths(), hardware_phase(&world)), ((0, 0), 5));
    expect_match(&mut world, "first");
    expect_match(&mut world, "second");
    let syncs = world.engine.statistics().syncs;
    assert!((4..=8).contains(&syncs), "{syncs} SYNCs: one in 16,384 messages, and no loop after the wrap");
}

#[test]
fn b23_4_receives_are_matched_by_the_nic_right_across_the_wrap_of_the_counters() {
    let start = u16::MAX - 2;
    let config = Config { counters_start: start, ..Config::default() };
    let mut world = World::with(config, &[SoftConfig { count: start, ..nic(4) }]);
    for name in ["a", "b", "c", "d", "e", "f"] {
        world.send(NIC, PEER, 3, b"unwanted");
        world.run();
        expect_match(&mut world, name);
    }
    assert_eq!(hardware_phase(&world), 3);
}

#[test]
fn b23_5_a_sync_makes_receives_active_that_were_added_behind_the_count() {
    let mut world = World::stepped(&[nic(4)]);
    world.run();
    world.send(NIC, PEER, 1, b"early");
    world.step(NIC, Step::Accept(PeerId(PEER)));
    world.post("c", exact(7), 8);
    world.run();
    assert_eq!(world.engine.statistics().syncs, 1, "its entry waited for the count, and no ADD was coming");
    assert!(world.devices[NIC].list().unwrap().entries()[0].active);
    world.send(NIC, PEER, 7, b"seven");
    world.finish();
    assert!(world.message("c").matched_by.is_some());
    expect_match(&mut world, "next");
    assert_eq!(world.engine.statistics().syncs, 1, "and it is not repeated");
}

#[test]
fn a8_a_malformed_message_leaves_the_nic_matching_whether_it_counts_or_not() {
    for (malformed, phase) in [(Malformed::NoTag, 0), (Malformed::Unexpected, 3)] {
        let switches = Switches { malformed, ..Switches::default() };
        let mut world = World::new(&[SoftConfig { switches, ..nic(4) }]);
        let broken = SoftMessage { kind: Kind::Malformed, ..SoftMessage::no_tag(9) };
        let untagged = SoftMessage { kind: Kind::NoTag, ..SoftMessage::no_tag(9) };
        for message in [&broken, &untagged, &broken, &broken] {
            world.devices[NIC].send(PeerId(PEER), message.clone()).unwrap();
        }
        world.run();
        assert_eq!((hardware_phase(&world), world.engine.depths()), (phase, (0, 0)));
        expect_match(&mut world, "c");
    }
}

#[test]
fn a8_a_counted_malformed_message_between_others_keeps_engine_and_nic_in_step() {
    let switches = Switches { malformed: Malformed::Unexpected, ..Switches::default() };
    let mut world = World::stepped(&[SoftConfig { switches, ..nic(4) }]);
    world.run();
    let broken = SoftMessage { kind: Kind::Malformed, ..SoftMessage::no_tag(9) };
    world.send(NIC, PEER, 1, b"early");
    world.devices[NIC].send(PeerId(PEER), broken).unwrap();
    world.step(NIC, Step::Accept(PeerId(PEER)));
    world.step(NIC, Step::Accept(PeerId(PEER)));
    world.post("c", exact(7), 8);
    world.run();
    assert!(world.devices[NIC].list().unwrap().entries()[0].active, "the SYNC counted both");
    world.send(NIC, PEER, 7, b"seven");
    world.finish();
    assert!(world.message("c").matched_by.is_some());
}
