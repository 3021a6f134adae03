//! Several ways into one engine: B06 and B07.

use tagmatch::device::soft::Step;
use tagmatch::engine::PathInUse;
use tagmatch::ids::{DeviceId, PeerId};

use crate::orders::every_order;
use crate::world::{NIC, PLAIN, Shape, World, exact, from, nic, plain};

const A: u32 = 1;
const B: u32 = 2;

#[test]
fn b06_two_messages_of_one_sender_do_not_overtake_in_any_order_of_events() {
    for device in [NIC, PLAIN] {
        let count = every_order(|orders| {
            let mut world = World::stepped(&[nic(2), plain()]);
            world.run();
            world.send(device, A, 0, b"1");
            world.send(device, A, 0, b"2");
            let first = |world: &mut World| _ = world.post("c1", exact(0), 4);
            let second = |world: &mut World| _ = world.post("c2", exact(0), 4);
            world.explore(orders, &[first, second]);
            world.finish();
            assert_eq!((world.text("c1"), world.text("c2")), ("1".into(), "2".into()));
        });
        assert!(count > 1000, "{count}");
    }
}

/// The first message is expected, the second is not; the first takes longer to come.
fn not_overtaken(shape: Shape) {
    for device in [NIC, PLAIN] {
        let count = every_order(|orders| {
            let mut world = World::stepped(&[nic(2), plain()]);
            world.post("c1", exact(0), 4);
            world.run();
            world.send_as(shape, device, A, 0, b"1");
            world.send(device, A, 0, b"2");
            let second = |world: &mut World| _ = world.post("c2", exact(0), 4);
            world.explore(orders, &[second]);
            world.finish();
            assert_eq!((world.text("c1"), world.text("c2")), ("1".into(), "2".into()));
        });
        assert!(count > 100, "{count}");
    }
}

#[test]
fn b06_a_message_of_two_packets_is_not_overtaken_by_the_one_behind_it() {
    not_overtaken(Shape::Packets(2));
}

#[test]
fn b06_a_rendezvous_is_not_overtaken_by_the_eager_message_behind_it() {
    not_overtaken(Shape::Rendezvous);
}

#[test]
fn b06_the_path_of_a_peer_stays_while_a_receive_names_it() {
    let mut world = World::new(&[nic(4), plain()]);
    let (peer, path, other) = (PeerId(A), DeviceId(1), DeviceId(0));
    world.engine.set_path(peer, path).unwrap();
    world.post("c1", from(A, exact(0)), 4);
    assert_eq!(world.engine.set_path(peer, other), Err(PathInUse { peer, path }));
    assert_eq!(world.engine.set_path(peer, path), Ok(()), "nothing changes");
    world.send(PLAIN, A, 0, b"1");
    world.run();
    world.engine.set_path(peer, other).unwrap();
    world.post("c2", from(A, exact(0)), 4);
    world.send(NIC, A, 0, b"2");
    world.finish();
    assert_eq!((world.text("c1"), world.text("c2")), ("1".into(), "2".into()));
}

#[test]
fn b06_the_path_of_a_peer_stays_while_a_message_of_it_waits() {
    let mut world = World::stepped(&[nic(4), plain()]);
    let (peer, path, other) = (PeerId(A), DeviceId(1), DeviceId(0));
    world.engine.set_path(peer, path).unwrap();
    world.post("c1", exact(0), 4);
    world.post("c2", exact(0), 4);
    world.run();
    world.send(PLAIN, A, 0, b"1");
    world.step(PLAIN, Step::Accept(peer));
    world.poll(PLAIN);
    assert_eq!(
        world.engine.waiting(),
        1,
        "its first fit is in the NIC, which could match the next one with it"
    );
    assert_eq!(world.engine.set_path(peer, other), Err(PathInUse { peer, path }));
    world.run();
    world.engine.set_path(peer, other).unwrap();
    world.send(NIC, A, 0, b"2");
    world.finish();
    assert_eq!((world.text("c1"), world.text("c2")), ("1".into(), "2".into()));
}

#[test]
fn b07_one_receive_in_nic_and_software_is_matched_once_in_every_order() {
    let count = every_order(|orders| {
        let mut world = World::stepped(&[nic(2), plain()]);
        world.run();
        world.send(NIC, A, 5, b"A");
        world.send(PLAIN, B, 5, b"B");
        let first = |world: &mut World| _ = world.post("c1", exact(5), 8);
        let second = |world: &mut World| _ = world.post("c2", exact(5), 8);
        world.explore(orders, &[first, second]);
        world.finish();
        let mut got = [world.text("c1"), world.text("c2")];
        got.sort();
        assert_eq!(got, ["A", "B"]);
        assert_eq!(world.engine.depths(), (0, 0));
    });
    assert!(count > 1000, "{count}");
}

#[test]
fn b07_the_same_with_a_cancel_of_the_receive() {
    let count = every_order(|orders| {
        let mut world = World::stepped(&[nic(2), plain()]);
        world.post("c1", exact(5), 8);
        world.run();
        world.send(NIC, A, 5, b"A");
        world.send(PLAIN, B, 5, b"B");
        let cancel = |world: &mut World| _ = world.cancel("c1");
        let second = |world: &mut World| _ = world.post("c2", exact(5), 8);
        world.explore(orders, &[cancel, second]);
        world.finish();
        assert!(!world.is_open("c2"));
        let left = world.engine.depths();
        if world.is_cancelled("c1") {
            assert_eq!(left, (0, 1), "the other message is there");
        } else {
            assert_eq!(left, (0, 0));
            assert_ne!(world.text("c1"), world.text("c2"));
        }
    });
    assert!(count > 500, "{count}");
}

#[test]
fn b07_a_match_written_and_not_polled_puts_the_other_message_back_in_its_old_place() {
    let mut world = World::stepped(&[nic(2), plain()]);
    world.post("c1", exact(5), 8);
    world.run();
    world.send(NIC, A, 5, b"A");
    world.step(NIC, Step::Accept(PeerId(A)));
    assert_eq!(world.devices[NIC].completions_used(), 1, "the match is in the completion queue");
    for (peer, payload) in [(B, b"B"), (3, b"C")] {
        world.send(PLAIN, peer, 5, payload);
        world.step(PLAIN, Step::Accept(PeerId(peer)));
    }
    world.poll(PLAIN);
    assert_eq!((world.engine.waiting(), world.engine.depths()), (2, (1, 0)));
    world.run();
    assert_eq!((world.engine.waiting(), world.engine.depths()), (0, (0, 2)));
    world.post("c2", exact(5), 8);
    world.post("c3", exact(5), 8);
    world.finish();
    assert_eq!(["c1", "c2", "c3"].map(|name| world.text(name)), ["A", "B", "C"]);
    assert_eq!(world.engine.statistics().dels_too_late, 1);
}
