//! A receive that is shorter than its message: B22.

use tagmatch::device::soft::{SoftConfig, Step, Switches, switches::HandBack};
use tagmatch::ids::PeerId;

use crate::world::{NIC, PLAIN, Shape, World, count_up, exact, nic, plain};

const PEER: u32 = 1;
const LENGTH: u64 = 100;

/// When the receive is posted.
#[derive(Clone, Copy, Debug)]
enum When {
    Before,
    /// The header is accepted, and not yet told or not yet whole.
    During,
    After,
}

struct Case {
    nic: SoftConfig,
    device: usize,
    shape: Shape,
    when: When,
    length: u64,
}

/// 100 bytes into a receive of `length` bytes, and a message behind it.
fn check(case: &Case) -> World {
    let &Case { nic, device, shape, when, length } = case;
    let mut world = World::stepped(&[nic, plain()]);
    let post = |world: &mut World| _ = world.post("c1", exact(5), length);
    if matches!(when, When::Before) {
        post(&mut world);
    }
    world.run();
    let number = world.send_as(shape, device, PEER, 5, &count_up(LENGTH));
    world.send(device, PEER, 5, b"next");
    world.step(device, Step::Accept(PeerId(PEER)));
    match when {
        When::Before => {}
        When::During => {
            if shape != Shape::Eager {
                world.poll(device);
            }
            post(&mut world);
        }
        When::After => {
            world.run();
            post(&mut world);
        }
    }
    world.run();
    world.post("c2", exact(5), 8);
    world.finish();
    let what = format!("{shape:?} through {device}, {when:?}, {length} bytes");
    let message = world.message("c1");
    assert_eq!((message.tag.0, message.length), (5, LENGTH), "{what}");
    assert_eq!(message.is_truncated(), length < LENGTH, "{what}");
    assert_eq!(world.received("c1"), count_up(length.min(LENGTH)), "{what}");
    assert_eq!(world.text("c2"), "next", "{what}");
    assert_eq!(world.finished(number), usize::from(shape == Shape::Rendezvous), "the sender ends normally");
    world
}

fn each_time_and_length(nic: SoftConfig, device: usize, shape: Shape) {
    for when in [When::Before, When::During, When::After] {
        for length in [64, 0, 1, 99, 100, 101, 300] {
            check(&Case { nic, device, shape, when, length });
        }
    }
}

#[test]
fn b22_without_a_nic_a_long_message_is_cut_and_the_next_one_is_whole() {
    for shape in Shape::ALL {
        each_time_and_length(plain(), PLAIN, shape);
    }
}

#[test]
fn b22_beside_a_nic_a_long_message_is_cut_and_the_next_one_is_whole() {
    for shape in Shape::ALL {
        each_time_and_length(nic(4), PLAIN, shape);
    }
}

#[test]
fn b22_through_a_nic_a_long_message_is_cut_and_the_next_one_is_whole() {
    for shape in Shape::ALL {
        each_time_and_length(nic(4), NIC, shape);
    }
}

#[test]
fn b22_an_eager_message_is_matched_by_the_nic_in_a_bounce_buffer_and_cut_on_its_way_up() {
    for shape in [Shape::Eager, Shape::Packets(3)] {
        let case = Case { nic: nic(4), device: NIC, shape, when: When::Before, length: 64 };
        let world = check(&case);
        let statistics = world.engine.statistics();
        assert_eq!((statistics.matched_by_device, statistics.bounced), (1, 1));
    }
}

#[test]
fn b22_a_rendezvous_handed_back_by_the_nic_is_cut_and_leaves_none_of_its_headers() {
    // The eager limit decides where the headers land: in the user's buffer or in a bounce buffer.
    for eager_limit in [32, 64, 80] {
        for hand_back in [HandBack::One, HandBack::ThenExpected, HandBack::ThenCanceled] {
            for rendezvous in [true, false] {
                let switches = Switches { hand_back, ..Switches::default() };
                let nic = SoftConfig { eager_limit, rendezvous, switches, ..nic(4) };
                for length in [64, 0, 40, 99, 100, 300] {
                    let when = When::Before;
                    let world = check(&Case { nic, device: NIC, shape: Shape::Rendezvous, when, length });
                    assert_eq!(world.message("c1").matched_by.map(|device| device.0), Some(0));
                }
                each_time_and_length(nic, NIC, Shape::Rendezvous);
            }
        }
    }
}
