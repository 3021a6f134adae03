//! Memory to be sent that is none (`EFAULT`): the send fails, and nothing else suffers.

use super::super::{Completed, Config, Failure};
use super::sim::{Sim, bytes, message, receive};
use super::world::Weather;
use crate::seam::Buffer;
use crate::wire::Credits;

const CREDITS: Credits = Credits { headers: 8, eager_messages: 4, eager_bytes: 4000 };

/// Two that are connected, with little credit, whose transports send later what lies in memory; or at once.
fn connected(posted: u64, config: Config) -> Sim {
    let mut sim = Sim::new(2, 1, Weather { posted, ..Weather::default() }, config);
    sim.post(1, &receive(9, 1, 1));
    sim.send_bytes(0, 1, 9, b"", 1);
    sim.received(1, 1);
    sim
}

/// Memory of this length that cannot be read from this place on.
fn unreadable(sim: &Sim, length: usize, from: u64) -> Buffer {
    let buffer = sim.world.allocate(&vec![1; length]);
    sim.world.lock().unreadable.insert(buffer.address + from);
    buffer
}

#[test]
fn messages_that_are_left_out_use_up_no_credit_of_either_kind() {
    for (posted, length) in [(100, 900), (100, 40), (0, 900), (0, 40)] {
        let mut sim = connected(posted, Config { credits: CREDITS, ..Config::default() });
        for context in 10..40 {
            let buffer = unreadable(&sim, length, 0);
            sim.send(0, &message(1, 3, buffer, context));
            assert_eq!(sim.ended(0, context), Completed::Failed(Failure::Memory));
        }
        assert_eq!(sim.at(0).statistics().without_credit, 0, "{length} bytes");
        assert_eq!(sim.at(0).sends_in_progress(), 0);
        // All that was granted is there yet, and no more than that.
        for context in 50..55 {
            sim.send_bytes(0, 1, 3, &bytes(context, 900), context);
        }
        assert_eq!(sim.at(0).statistics().without_credit, 1, "four go eagerly");
        for context in 60..65 {
            sim.post(1, &receive(3, 900, context));
            assert_eq!(sim.received(1, context).0, bytes(context - 10, 900));
        }
        assert_eq!(sim.at(1).statistics().protocol_errors, 0, "nobody has sent more than it may");
    }
}

#[test]
fn a_message_whose_later_segment_cannot_be_read_fails_for_that_and_its_peer_does_not_wait_for_it() {
    let config = Config { eager_limit: 1000, segmented_limit: 100_000, ..Config::default() };
    let mut sim = connected(0, config);
    sim.post(1, &receive(3, 5000, 20));
    let buffer = unreadable(&sim, 5000, 2000);
    sim.send(0, &message(1, 3, buffer, 10));
    assert_eq!(sim.ended(0, 10), Completed::Failed(Failure::Memory));
    assert_eq!(sim.ended(1, 20), Completed::Failed(Failure::Lost));
    // The next goes over a connection of its own.
    sim.post(1, &receive(3, 5000, 21));
    sim.send_bytes(0, 1, 3, &bytes(7, 5000), 11);
    assert_eq!(sim.received(1, 21).0, bytes(7, 5000));
    assert_eq!((sim.at(0).statistics().lost, sim.at(1).statistics().lost), (1, 1));
}
