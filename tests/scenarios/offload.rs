//! Receives that cannot go down, lists that are full, devices that cannot be had: B25 to B27.

use tagmatch::device::soft::{SoftConfig, Switches, switches};
use tagmatch::engine::Config;
use tagmatch::ids::DeviceId;
use tagmatch::seam::{Buffer, DeviceError};

use crate::world::{EAGER_LIMIT, NIC, PLAIN, Shape, World, count_up, exact, from, masked, nic, plain};

const PEER: u32 = 1;
const ALL: u64 = u64::MAX;

fn listed(world: &World) -> usize {
    world.engine.listed(DeviceId(0)).len()
}

/// `w` takes anything of one peer, so that no NIC can have it; `s` is behind it.
fn wildcard_before_exact() -> World {
    let mut world = World::new(&[nic(4), plain()]);
    world.post("w", from(PEER, masked(0, ALL)), 8);
    world.post("s", exact(5), 8);
    world.run();
    assert_eq!(listed(&world), 0, "an older receive that overlaps is in software");
    world
}

#[test]
fn b25_1_and_2_a_receive_in_software_holds_back_what_it_overlaps_and_no_longer_than_that() {
    let mut world = wildcard_before_exact();
    world.send(NIC, PEER, 5, b"a");
    world.send(NIC, PEER, 5, b"b");
    world.run();
    assert_eq!((world.text("w"), world.text("s")), ("a".into(), "b".into()));
    let adds = world.engine.statistics().adds;
    world.post("t", exact(6), 8);
    world.run();
    assert_eq!((listed(&world), world.engine.statistics().adds), (1, adds + 1), "offload has resumed");
    world.send(NIC, PEER, 6, b"c");
    world.finish();
    assert_eq!(world.text("t"), "c");
    assert!(world.message("t").matched_by.is_some());
}

#[test]
fn b25_3_cancelling_the_receive_in_software_lets_the_others_go_down() {
    let mut world = wildcard_before_exact();
    world.cancel("w");
    world.run();
    assert_eq!(listed(&world), 1);
    world.send(NIC, PEER, 5, b"a");
    world.finish();
    assert!(world.is_cancelled("w"));
    assert_eq!(world.text("s"), "a");
    assert!(world.message("s").matched_by.is_some());
}

#[test]
fn b25_4_receives_that_no_message_fits_both_do_not_hold_back_each_other() {
    let mut world = World::new(&[nic(4), plain()]);
    world.post("w", from(PEER, exact(4)), 8);
    world.post("s", exact(5), 8);
    world.run();
    assert_eq!(listed(&world), 1);
    world.send(NIC, PEER, 5, b"five");
    world.send(NIC, PEER, 4, b"four");
    world.finish();
    assert_eq!((world.text("w"), world.text("s")), ("four".into(), "five".into()));
    assert!(world.message("s").matched_by.is_some());
}

#[test]
fn b25_a_message_of_another_path_takes_its_receive_back_and_offload_goes_on() {
    // Every time, where nothing is learned of who served the last ones.
    let mut world = World::with(Config { kept_from: 0, ..Config::default() }, &[nic(4), plain()]);
    for _ in 0..100 {
        world.post("r", exact(5), 8);
        world.run();
        world.send(PLAIN, PEER, 5, b"other");
        world.run();
        assert_eq!(world.text("r"), "other");
        world.post("r", exact(5), 8);
        world.run();
        world.send(NIC, PEER, 5, b"nic");
        world.run();
        assert!(world.message("r").matched_by.is_some());
    }
    world.finish();
    assert_eq!(world.engine.statistics().taken_back, 100);
}

#[test]
fn b25_offload_goes_on_when_other_paths_served_receives_for_a_while_and_then_no_more() {
    let mut world = World::new(&[nic(4), plain()]);
    for round in 0..3 {
        for path in [PLAIN, NIC] {
            for _ in 0..20 {
                world.post("r", exact(5), 8);
                world.run();
                world.send(path, PEER, 5, b"text");
                world.run();
            }
            assert_eq!(world.message("r").matched_by.is_some(), path == NIC, "{round}");
        }
    }
    world.finish();
    // The first few of each time, until it is known that they are for others.
    assert!(world.engine.statistics().taken_back <= 3 * 4);
}

const NAMES: [&str; 6] = ["1", "2", "3", "4", "5", "6"];

fn small_nic() -> World {
    World::new(&[SoftConfig { operations: 8, ..nic(4) }, plain()])
}

#[test]
fn b26_cancels_give_back_everything_ten_thousand_times() {
    let mut world = small_nic();
    let buffers: Vec<Buffer> = (0..4).map(|_| world.allocate(EAGER_LIMIT)).collect();
    for _ in 0..10_000 {
        for (at, &buffer) in buffers.iter().enumerate() {
            world.post_into(NAMES[at], exact(at as u64), buffer);
        }
        for name in &NAMES[..4] {
            world.cancel(name);
        }
        world.run();
        assert!(NAMES[..4].iter().all(|name| world.is_cancelled(name)));
    }
    let statistics = world.engine.statistics();
    assert!(statistics.adds >= 10_000 && statistics.adds == statistics.dels, "{statistics:?}");
    world.finish();
    assert_eq!(world.engine.entries(DeviceId(0)), (0, 4));
    six_receives_in_a_list_of_four(&mut world);
}

fn six_receives_in_a_list_of_four(world: &mut World) {
    for (at, name) in NAMES.iter().enumerate() {
        world.post(name, exact(at as u64 + 1), EAGER_LIMIT);
        world.run();
    }
    assert!(listed(world) <= 4);
    for tag in (1..=6_u8).rev() {
        world.send(NIC, PEER, u64::from(tag), &[tag]);
    }
    world.finish();
    for (name, tag) in NAMES.iter().zip(1..) {
        assert_eq!(world.received(name), [tag]);
    }
    assert_eq!(listed(world), 0);
}

#[test]
fn b26_more_receives_than_the_list_holds_wait_their_turn_in_software() {
    let mut world = World::new(&[nic(4)]);
    for (at, name) in NAMES.iter().enumerate() {
        world.post(name, exact(at as u64 + 1), EAGER_LIMIT);
    }
    world.run();
    assert_eq!(listed(&world), 4);
    world.send(NIC, PEER, 1, b"1");
    world.run();
    assert_eq!(listed(&world), 4, "the fifth has followed");
    for name in NAMES {
        world.cancel(name);
    }
    world.finish();
    six_receives_in_a_list_of_four(&mut small_nic());
}

#[test]
fn b26_one_buffer_in_five_receives_is_in_the_nic_once_at_a_time() {
    let mut world = small_nic();
    let buffer = world.allocate(EAGER_LIMIT);
    world.post_into("again", exact(1), buffer);
    world.run();
    world.cancel("again");
    world.post_into("again", exact(1), buffer);
    world.run();
    world.cancel("again");
    world.run();
    assert!(world.is_cancelled("again"));

    for name in &NAMES[..5] {
        world.post_into(name, exact(1), buffer);
    }
    for (number, name) in NAMES[..5].iter().enumerate() {
        world.run();
        assert_eq!(listed(&world), 1, "before message {number}");
        let payload = count_up(number as u64 + 1);
        world.send(NIC, PEER, 1, &payload);
        world.run();
        assert_eq!(world.received(name), payload);
        assert!(NAMES[number + 1..5].iter().all(|later| world.is_open(later)), "in order");
    }
    world.finish();
    // All at once: the same pairs.
    for name in &NAMES[..5] {
        world.post_into(name, exact(1), buffer);
    }
    for length in 1..=5 {
        world.send(NIC, PEER, 1, &count_up(length));
    }
    world.finish();
    for (name, length) in NAMES.iter().zip(1..=5) {
        assert_eq!(world.message(name).length, length);
    }
}

/// One script, and what each receive got.
fn script(mut world: World) -> Vec<(String, bool)> {
    world.post("1", exact(1), 256);
    world.post("2", masked(0, ALL), 64);
    world.post("3", from(PEER, exact(3)), 64);
    world.run();
    world.send_as(Shape::Rendezvous, NIC, PEER, 3, &[b'r'; 200]);
    world.send(NIC, PEER, 9, b"unexpected");
    world.send_as(Shape::Packets(2), NIC, PEER, 1, &[b'p'; 100]);
    world.send(NIC, PEER, 3, b"directed");
    world.post("4", exact(9), 64);
    world.post("5", exact(9), 64);
    world.run();
    world.cancel("5");
    world.finish();
    assert!(world.is_cancelled("5"));
    NAMES[..4].iter().map(|name| (world.text(name), world.message(name).is_truncated())).collect()
}

#[test]
fn b27_a_list_that_cannot_be_had_is_an_error_that_names_call_and_errno_and_the_fallback_works() {
    let refused = Switches { other_port: switches::OtherPort::Refused, ..Switches::default() };
    let mut limits = SoftConfig::matching(4).limits;
    limits.tags = 0;
    for config in [
        SoftConfig { roce: true, ..nic(4) },
        SoftConfig { port: 2, switches: refused, ..nic(4) },
        SoftConfig { limits, ..nic(4) },
    ] {
        let mut world = World::new(&[]);
        let error = world.join(config).unwrap_err();
        assert_eq!(error, DeviceError::System { call: "ibv_create_srq_ex", errno: 22 });
        assert!(error.to_string().contains("ibv_create_srq_ex") && error.to_string().contains("22"));
        // Whoever does without: the same device with a list of 0 tags.
        world.join(plain()).unwrap();
        world.settle();
        let got = script(world);
        assert_eq!(got, script(World::new(&[nic(4)])), "the same with and without offload");
        assert_eq!(got, script(World::new(&[nic(1)])));
    }
}
