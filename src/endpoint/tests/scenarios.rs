//! What has gone wrong in endpoints of this kind before, each by its name in the list of scenarios.

use std::time::Duration;

use super::super::{
    Address, Completed, Config, Failure, Level, NoClaim, PeekAction, Send, SendRefused, Space,
};
use super::sim::{Receive, Sim, bytes, message, receive};
use super::world::Weather;
use crate::seam::Buffer;
use crate::wire::Credits;

#[test]
fn b01_a_message_from_a_stranger_reaches_a_receive_that_names_it_later() {
    let mut sim = Sim::strangers(3, 1, Weather::default(), Config::default());
    sim.introduce(0, 2);
    sim.introduce(1, 0);
    sim.introduce(2, 0);
    sim.send_bytes(1, 0, 7, b"A", 100);
    sim.steps(20);
    sim.post(0, &Receive { source: Some(2), ..receive(7, 64, 1) });
    sim.steps(5);
    assert_eq!(sim.of(0, 1), []);
    sim.introduce(0, 1);
    sim.post(0, &Receive { source: Some(1), ..receive(7, 64, 2) });
    let (got, what) = sim.received(0, 2);
    assert_eq!((got.as_slice(), what.source), (&b"A"[..], Some(Address(1))));
    sim.send_bytes(2, 0, 7, b"B", 101);
    let (got, what) = sim.received(0, 1);
    assert_eq!((got.as_slice(), what.source), (&b"B"[..], Some(Address(2))));
}

#[test]
fn b01_an_open_receive_takes_a_strangers_message_and_shows_no_source() {
    let mut sim = Sim::strangers(2, 1, Weather::default(), Config::default());
    sim.introduce(1, 0);
    sim.post(0, &receive(7, 64, 1));
    sim.send_bytes(1, 0, 7, b"A", 100);
    let (got, what) = sim.received(0, 1);
    assert_eq!((got.as_slice(), what.source), (&b"A"[..], None));
}

#[test]
fn b02_every_bit_of_the_tag_is_the_users() {
    for bit in [63, 62, 61, 60, 32, 31] {
        let high = 1 << bit | 1;
        let mut sim = Sim::pair();
        sim.post(0, &receive(high, 8, 1));
        sim.send_bytes(1, 0, high, b"x", 100);
        assert_eq!(sim.received(0, 1).1.tag.0, high);
        sim.send_bytes(1, 0, high, b"y", 101);
        sim.steps(10);
        assert_eq!(sim.peek(0, 1, PeekAction::Claim, 2), Completed::NoMessage);
        sim.send_bytes(1, 0, 1, b"z", 102);
        sim.steps(10);
        assert!(matches!(sim.peek(0, 1, PeekAction::Claim, 3), Completed::Peeked(_)));
        sim.post(0, &receive(high, 8, 4));
        assert_eq!(sim.received(0, 4).0, b"y");
    }
}

#[test]
fn b08_a_peek_that_finds_nothing_leaves_nothing_behind() {
    let mut sim = Sim::pair();
    assert_eq!(sim.peek(0, 9, PeekAction::Look, 5), Completed::NoMessage);
    sim.send_bytes(1, 0, 9, b"later", 100);
    sim.steps(10);
    assert_eq!(sim.at(0).depths(Space::Tagged), (0, 1));
}

#[test]
fn b09_a_loop_of_peeks_alone_makes_progress() {
    let mut sim = Sim::pair();
    let buffer = sim.world.allocate(b"m");
    for _ in 0..50 {
        let now = sim.now();
        let _ = sim.at(1).progress(now);
        if sim.at(1).send(&message(0, 3, buffer, 100)).is_ok() {
            break;
        }
        sim.peek(0, 3, PeekAction::Look, 1);
    }
    let now = sim.now();
    sim.at(1).progress(now).unwrap();
    let found = (0..10).any(|round| sim.peek(0, 3, PeekAction::Look, 10 + round) != Completed::NoMessage);
    assert!(found);
}

#[test]
fn b09_a_peek_finds_what_one_sent_to_oneself() {
    let mut sim = Sim::pair();
    let buffer = sim.world.allocate(b"m");
    let mut taken = false;
    for round in 0..20 {
        taken = taken || sim.at(0).send(&message(0, 3, buffer, 100)).is_ok();
        if sim.peek(0, 3, PeekAction::Look, 200 + round) != Completed::NoMessage {
            return;
        }
    }
    panic!("not found");
}

#[test]
fn b10_a_peek_shows_remote_cq_data_and_only_where_there_is_some() {
    let mut sim = Sim::pair();
    let empty = sim.world.allocate(b"");
    sim.send(1, &Send { cq_data: Some(0x1122_3344), ..message(0, 4, empty, 100) });
    sim.send(1, &message(0, 5, empty, 101));
    sim.steps(10);
    for (context, action) in [(1, PeekAction::Look), (2, PeekAction::Claim)] {
        let Completed::Peeked(found) = sim.peek(0, 4, action, context) else { panic!("not found") };
        assert_eq!((found.cq_data, found.length, found.tag.0), (Some(0x1122_3344), 0, 4));
    }
    sim.at(0).receive_claimed(2, Buffer::default(), 7).unwrap();
    sim.steps(2);
    let ends = sim.of(0, 2);
    let Some(Completed::Received { message: got, .. }) = ends.last() else { panic!("{ends:?}") };
    assert_eq!((got.cq_data, got.length), (Some(0x1122_3344), 0));
    let Completed::Peeked(plain) = sim.peek(0, 5, PeekAction::Look, 3) else { panic!("not found") };
    assert_eq!(plain.cq_data, None);
}

/// One byte, a header's worth, eager, the eager limit, segmented, rendezvous.
pub(super) const LENGTHS: [usize; 6] = [1, 64, 5000, 16 << 10, 40_000, 300_000];

fn with_segments() -> Config {
    Config { segmented_limit: 100_000, ..Config::default() }
}

pub(super) fn pair_with_segments(seed: u64) -> Sim {
    Sim::new(2, seed, Weather { delay: 3, split: 50, full: 10, posted: 50, holds: false }, with_segments())
}

#[test]
fn b13_a_claimed_or_discarded_message_is_nobody_elses() {
    for (seed, length) in LENGTHS.into_iter().enumerate() {
        let mut sim = pair_with_segments(seed as u64);
        let text = |what: u64| bytes(what, length);
        sim.send_bytes(1, 0, 7, &text(1), 101);
        sim.until("it is there", |sim| sim.at(0).depths(Space::Tagged).1 == 1);
        assert!(matches!(sim.peek(0, 7, PeekAction::Claim, 1), Completed::Peeked(_)));
        assert_eq!(sim.peek(0, 7, PeekAction::Look, 2), Completed::NoMessage);
        sim.post(0, &receive(7, length, 3));
        let buffer = sim.world.allocate(&vec![0; length]);
        sim.at(0).receive_claimed(1, buffer, 7).unwrap();
        sim.until("the claim is received", |sim| sim.of(0, 1).len() == 2);
        assert_eq!(sim.world.read(buffer.address, buffer.length), text(1));
        assert_eq!(sim.of(0, 3), []);
        sim.send_bytes(1, 0, 7, &text(2), 102);
        assert_eq!(sim.received(0, 3).0, text(2));

        sim.send_bytes(1, 0, 7, &text(3), 103);
        sim.until("it is there", |sim| sim.at(0).depths(Space::Tagged).1 == 1);
        assert!(matches!(sim.peek(0, 7, PeekAction::Claim, 4), Completed::Peeked(_)));
        sim.at(0).discard_claimed(4, 9).unwrap();
        sim.collect(0);
        assert_eq!(sim.of(0, 4).len(), 2);
        assert_eq!(sim.peek(0, 7, PeekAction::Look, 5), Completed::NoMessage);

        sim.send_bytes(1, 0, 7, &text(4), 104);
        sim.until("it is there", |sim| sim.at(0).depths(Space::Tagged).1 == 1);
        assert!(matches!(sim.peek(0, 7, PeekAction::Discard, 6), Completed::Peeked(_)));
        assert_eq!(sim.peek(0, 7, PeekAction::Look, 8), Completed::NoMessage);
        sim.send_bytes(1, 0, 7, &text(5), 105);
        sim.post(0, &receive(7, length, 9));
        assert_eq!(sim.received(0, 9).0, text(5));
        for context in 101..=105 {
            assert_eq!(sim.ended(1, context), Completed::Sent);
        }
        assert_eq!((sim.at(0).depths(Space::Tagged), sim.at(1).sends_in_progress()), ((0, 0), 0));
    }
}

#[test]
fn b14_a_discard_releases_the_sender_of_a_rendezvous() {
    for claim in [false, true] {
        let mut sim = Sim::pair();
        sim.send_bytes(1, 0, 8, &bytes(1, 1 << 20), 100);
        sim.steps(10);
        assert_eq!(sim.of(1, 100), []);
        if claim {
            sim.peek(0, 8, PeekAction::Claim, 1);
            sim.at(0).discard_claimed(1, 0).unwrap();
        } else {
            sim.peek(0, 8, PeekAction::Discard, 1);
        }
        assert_eq!(sim.ended(1, 100), Completed::Sent);
    }
}

#[test]
fn b14_a_close_releases_the_sender_of_a_rendezvous() {
    let mut sim = Sim::pair();
    sim.send_bytes(1, 0, 8, &bytes(1, 1 << 20), 100);
    sim.steps(10);
    let now = sim.now();
    sim.at(0).close(now);
    sim.until("it is closed", |sim| sim.at(0).is_closed());
    assert_eq!(sim.ended(1, 100), Completed::Failed(Failure::Lost));
}

#[test]
fn b15_messages_of_no_bytes_are_messages_in_every_way_there_is_to_take_them() {
    let mut sim = Sim::pair();
    let empty = sim.world.allocate(b"");
    for context in 100..105 {
        sim.send(1, &message(0, 2, empty, context));
    }
    sim.steps(10);
    let found = |what: Completed| matches!(what, Completed::Peeked(message) if message.length == 0);
    assert!(found(sim.peek(0, 2, PeekAction::Look, 1)));
    assert!(found(sim.peek(0, 2, PeekAction::Claim, 2)));
    sim.at(0).receive_claimed(2, Buffer::default(), 0).unwrap();
    assert!(found(sim.peek(0, 2, PeekAction::Discard, 3)));
    assert!(found(sim.peek(0, 2, PeekAction::Claim, 4)));
    sim.at(0).discard_claimed(4, 0).unwrap();
    sim.post(0, &receive(2, 0, 5));
    assert_eq!(sim.received(0, 5).1.length, 0);
    sim.steps(5);
    assert_eq!(sim.of(0, 2).len(), 2);
    assert_eq!(sim.at(0).depths(Space::Tagged), (0, 1));
}

#[test]
fn b16_a_context_that_claimed_nothing_or_has_been_used_names_no_message() {
    let mut sim = Sim::pair();
    sim.send_bytes(1, 0, 2, b"other", 100);
    sim.steps(10);
    assert_eq!(sim.at(0).receive_claimed(5, Buffer::default(), 0), Err(NoClaim { context: 5 }));
    sim.peek(0, 2, PeekAction::Claim, 6);
    let buffer = sim.world.allocate(&[0; 8]);
    assert_eq!(sim.at(0).receive_claimed(6, buffer, 0), Ok(()));
    assert_eq!(sim.at(0).receive_claimed(6, buffer, 0), Err(NoClaim { context: 6 }));
    assert_eq!(sim.at(0).discard_claimed(6, 0), Err(NoClaim { context: 6 }));
}

#[test]
fn b17_a_receive_that_is_matched_is_not_cancelled() {
    for length in [40_000, 1 << 20] {
        for steps in 0..12 {
            let weather = Weather { delay: 2, split: 100, ..Weather::default() };
            let mut sim = Sim::new(2, steps, weather, with_segments());
            sim.send_bytes(1, 0, 1, b"", 99);
            sim.post(0, &receive(5, length, 1));
            sim.send_bytes(1, 0, 5, &bytes(1, length), 100);
            sim.steps(usize::try_from(steps).unwrap());
            let cancelled = sim.at(0).cancel(1);
            assert!(!sim.at(0).cancel(1));
            sim.collect(0);
            match sim.ended(0, 1) {
                Completed::Cancelled => assert!(cancelled),
                Completed::Received { address, placed, .. } => {
                    assert!(!cancelled);
                    assert_eq!(sim.world.read(address, placed), bytes(1, length));
                }
                other => panic!("{other:?}"),
            }
            sim.steps(50);
            assert_eq!(sim.of(0, 1).len(), 1);
        }
    }
}

#[test]
fn b18_a_cancelled_receive_takes_nothing_and_the_message_goes_to_the_next() {
    let mut sim = Sim::pair();
    let first = sim.post(0, &receive(1, 8, 1));
    sim.post(0, &receive(1, 8, 2));
    assert!(sim.at(0).cancel(1));
    sim.send_bytes(1, 0, 1, b"m", 100);
    assert_eq!(sim.ended(0, 1), Completed::Cancelled);
    assert_eq!(sim.received(0, 2).0, b"m");
    assert_eq!(sim.world.read(first.address, 8), [0xEE; 8]);
}

#[test]
fn b19_a_cancel_takes_one_receive_of_its_context_and_of_either_space() {
    let mut sim = Sim::pair();
    sim.post(0, &Receive { space: Space::Untagged, ..receive(0, 8, 26) });
    sim.post(0, &receive(1, 8, 26));
    assert!(sim.at(0).cancel(26));
    sim.collect(0);
    assert_eq!(sim.of(0, 26), [Completed::Cancelled]);
    assert_eq!(sim.said[0][0].space, Space::Untagged);
    sim.send_bytes(1, 0, 1, b"m", 100);
    sim.until("the survivor receives", |sim| sim.of(0, 26).len() == 2);
    assert!(!sim.at(0).cancel(26));
}

/// All orders in which two first messages may cross.
#[test]
fn b28_of_two_connections_that_cross_one_survives_and_both_messages_arrive() {
    for seed in 0..200 {
        let weather = Weather { delay: seed % 7, full: (seed % 3) * 20, ..Weather::default() };
        let mut sim = Sim::new(2, seed, weather, Config::default());
        let buffers = [sim.world.allocate(b"hi 0"), sim.world.allocate(b"hi 1")];
        let mut taken = [false; 2];
        for at in 0..2 {
            sim.post(at, &receive(1, 8, 1));
        }
        for _ in 0..1000 {
            for at in 0..2 {
                if !taken[at] {
                    match sim.at(at).send(&message(1 - at, 1, buffers[at], 100)) {
                        Ok(()) => taken[at] = true,
                        Err(SendRefused::Again) => {}
                        Err(other) => panic!("seed {seed}: {other}"),
                    }
                }
            }
            sim.step();
        }
        assert_eq!(sim.received(0, 1).0, b"hi 1", "seed {seed}");
        assert_eq!(sim.received(1, 1).0, b"hi 0", "seed {seed}");
        for at in 0..2 {
            assert_eq!(sim.at(at).statistics().connected, 1, "seed {seed}");
            assert_eq!(sim.at(at).statistics().connect_failed, 0, "seed {seed}");
            assert_eq!(sim.at(at).statistics().lost, 0, "seed {seed}");
        }
    }
}

#[test]
fn b28_a_restarted_peer_replaces_the_connection_that_is_dead() {
    for told in [false, true] {
        let mut sim = Sim::pair();
        sim.post(0, &receive(1, 8, 1));
        sim.send_bytes(1, 0, 1, b"old", 100);
        assert_eq!(sim.received(0, 1).0, b"old");
        sim.kill(1, told);
        sim.start(1);
        sim.introduce(1, 0);
        sim.post(0, &receive(1, 8, 2));
        sim.send_bytes(1, 0, 1, b"new", 101);
        assert_eq!(sim.received(0, 2).0, b"new");
        sim.post(1, &receive(1, 8, 3));
        sim.send_bytes(0, 1, 1, b"re", 102);
        assert_eq!(sim.received(1, 3).0, b"re");
    }
}

#[test]
fn b28_operations_of_a_restarted_peer_fail_once() {
    let mut sim = Sim::pair();
    sim.send_bytes(0, 1, 1, &bytes(1, 1 << 20), 100);
    sim.post(0, &receive(2, 8, 1));
    sim.steps(10);
    sim.kill(1, false);
    sim.start(1);
    sim.introduce(1, 0);
    sim.send_bytes(1, 0, 2, b"new", 101);
    assert_eq!(sim.received(0, 1).0, b"new");
    assert_eq!(sim.ended(0, 100), Completed::Failed(Failure::Lost));
    assert_eq!(sim.at(0).statistics().restarted, 1);
}

#[test]
fn b29_a_peer_that_is_not_there_yet_is_reached_when_it_is() {
    let mut sim = Sim::pair();
    sim.kill(1, true);
    let buffer = sim.world.allocate(b"m");
    let refusal = sim.refusal(0, &message(1, 1, buffer, 100));
    assert_eq!(refusal, SendRefused::Unreachable(Failure::Refused));
    assert!(matches!(sim.at(0).send(&message(1, 1, buffer, 100)), Err(SendRefused::Again)));
    sim.start(1);
    sim.post(1, &receive(1, 8, 1));
    sim.until("it is reached", |sim| sim.at(0).send(&message(1, 1, buffer, 100)).is_ok());
    assert_eq!(sim.received(1, 1).0, b"m");
    // It goes, and comes again; and its address is taken out and put in again.
    sim.kill(1, true);
    sim.steps(10);
    sim.start(1);
    sim.post(1, &receive(1, 8, 2));
    sim.send(0, &message(1, 1, buffer, 101));
    assert_eq!(sim.received(1, 2).0, b"m");
    sim.at(0).remove_address(Address(1));
    assert_eq!(sim.at(0).send(&message(1, 1, buffer, 102)), Err(SendRefused::Address(Address(1))));
    sim.introduce(0, 1);
    sim.post(1, &receive(1, 8, 3));
    sim.send(0, &message(1, 1, buffer, 103));
    assert_eq!(sim.received(1, 3).0, b"m");
}

#[test]
fn b29_a_peer_that_never_answers_is_told_in_time_and_harms_nobody() {
    let mut sim = Sim::new(3, 1, Weather::default(), Config::default());
    sim.kill(2, true);
    sim.world.lock().silent.insert(super::sim::name(2));
    let buffer = sim.world.allocate(b"m");
    sim.post(1, &receive(1, 8, 1));
    assert_eq!(sim.at(0).send(&message(2, 1, buffer, 100)), Err(SendRefused::Again));
    sim.send(0, &message(1, 1, buffer, 101));
    assert_eq!(sim.received(1, 1).0, b"m");
    let refusal = sim.refusal(0, &message(2, 1, buffer, 100));
    assert_eq!(refusal, SendRefused::Unreachable(Failure::TimedOut));
    assert!(sim.now() <= Config::default().connect_timeout + Duration::from_secs(1));
    assert_eq!(sim.of(0, 100), []);
}

#[test]
fn b30_a_message_to_oneself_arrives_whichever_comes_first() {
    for length in LENGTHS {
        let mut sim = pair_with_segments(3);
        sim.send_bytes(0, 0, 2, &bytes(1, length), 100);
        sim.post(0, &Receive { source: Some(0), ..receive(2, length, 1) });
        let (got, what) = sim.received(0, 1);
        assert_eq!((got, what.source), (bytes(1, length), Some(Address(0))));
        sim.post(0, &Receive { source: Some(0), ..receive(2, length, 2) });
        sim.send_bytes(0, 0, 2, &bytes(2, length), 101);
        assert_eq!(sim.received(0, 2).0, bytes(2, length));
        assert_eq!(sim.ended(0, 100), Completed::Sent);
        assert_eq!(sim.ended(0, 101), Completed::Sent);
        assert_eq!(sim.at(0).statistics().connected, 1);
    }
}

#[test]
fn b32_a_peer_that_dies_in_a_message_ends_its_receive_once_and_no_other() {
    // In seven segments, of which most have to wait for room; and by rendezvous.
    for length in [100_000, 300_000] {
        let mut lost = 0;
        for steps in 0..20 {
            let weather = Weather { delay: 2, split: 100, full: 60, ..Weather::default() };
            let mut sim = Sim::new(3, steps, weather, with_segments());
            sim.send_bytes(1, 0, 1, b"", 99);
            sim.post(0, &receive(5, length, 1));
            sim.send_bytes(1, 0, 5, &bytes(1, length), 100);
            sim.steps(usize::try_from(steps).unwrap());
            sim.kill(1, true);
            sim.steps(50);
            let ends = sim.of(0, 1);
            match ends.as_slice() {
                // It died before the header came: the receive is pending, and takes the next message.
                [] => {}
                [Completed::Failed(Failure::Lost) | Completed::Received { .. }] => {
                    lost += usize::from(ends == [Completed::Failed(Failure::Lost)]);
                    sim.post(0, &receive(5, 8, 1));
                }
                other => panic!("{other:?}"),
            }
            sim.send_bytes(2, 0, 5, b"ok", 101);
            sim.until("the other's comes", |sim| sim.of(0, 1).len() == ends.len() + 1);
        }
        assert!(lost > 1, "{length} bytes: it died in the middle {lost} times");
    }
}

#[test]
fn b32_a_message_of_which_the_end_never_comes_is_dropped_before_anybody_receives_it() {
    let mut sim = Sim::new(3, 5, Weather::default(), Config::default());
    sim.send_bytes(1, 0, 5, &bytes(1, 300_000), 100);
    sim.steps(20);
    assert_eq!(sim.at(0).depths(Space::Tagged), (0, 1));
    sim.kill(1, true);
    sim.steps(20);
    sim.post(0, &receive(5, 8, 1));
    sim.steps(5);
    assert_eq!(sim.of(0, 1), []);
    sim.send_bytes(2, 0, 5, b"ok", 101);
    assert_eq!(sim.received(0, 1).0, b"ok");
}

#[test]
fn b32_a_delivered_message_outlives_its_sender() {
    let mut sim = Sim::pair();
    let buffer = sim.world.allocate(b"bye");
    sim.send(1, &Send { level: Level::Delivery, ..message(0, 5, buffer, 100) });
    assert_eq!(sim.ended(1, 100), Completed::Sent);
    let now = sim.now();
    sim.at(1).close(now);
    sim.until("it is closed", |sim| sim.at(1).is_closed());
    sim.kill(1, true);
    sim.steps(1000);
    sim.post(0, &receive(5, 8, 1));
    assert_eq!(sim.received(0, 1).0, b"bye");
}

fn few_credits() -> Config {
    let credits = Credits { headers: 400, eager_messages: 4, eager_bytes: 8 << 10 };
    Config { credits, eager_limit: 4 << 10, ..Config::default() }
}

#[test]
fn b35_both_sides_send_at_once_with_few_credits() {
    let mut sim =
        Sim::new(2, 9, Weather { delay: 2, split: 30, full: 20, posted: 30, holds: false }, few_credits());
    let buffers: Vec<Buffer> = (0..1000).map(|at| sim.world.allocate(&bytes(at, 65))).collect();
    let mut sent = [0_usize; 2];
    for round in 0..100_000 {
        for at in 0..2 {
            if sent[at] < 1000
                && sim.at(at).send(&message(1 - at, 1, buffers[sent[at]], 10_000 + sent[at] as u64)).is_ok()
            {
                sent[at] += 1;
            }
            if round < 1000 {
                sim.post(at, &receive(1, 65, round));
            }
        }
        sim.step();
        if sent == [1000; 2] && (0..2).all(|at| sim.said[at].len() == 2000) {
            break;
        }
    }
    for at in 0..2 {
        for context in 0..1000 {
            assert_eq!(sim.received(at, context).0, bytes(context, 65));
        }
    }
}

#[test]
fn b35_what_a_receive_waits_for_is_not_stuck_behind_what_nobody_wants() {
    let mut sim = Sim::new(2, 9, Weather { delay: 1, split: 30, ..Weather::default() }, few_credits());
    for context in 0..199 {
        sim.send_bytes(1, 0, 77, &bytes(context, 3000), 1000 + context);
        let kept = sim.at(0).depths(Space::Tagged).1;
        assert!(kept <= 400, "{kept}");
    }
    sim.send_bytes(1, 0, 5, &bytes(5, 100_000), 2000);
    sim.post(0, &receive(5, 100_000, 1));
    assert_eq!(sim.received(0, 1).0, bytes(5, 100_000));
    let statistics = *sim.at(1).statistics();
    assert!(statistics.without_credit > 190, "{statistics:?}");
    for context in 0..199 {
        sim.post(0, &receive(77, 3000, 3000 + context));
        assert_eq!(sim.received(0, 3000 + context).0, bytes(context, 3000));
        assert_eq!(sim.ended(1, 1000 + context), Completed::Sent);
    }
}

#[test]
fn b35_a_receiver_that_sleeps_holds_the_sender_back_and_loses_nothing() {
    let mut sim = Sim::new(2, 9, Weather::default(), few_credits());
    sim.send_bytes(1, 0, 9, b"", 0);
    let buffer = sim.world.allocate(&[7; 100]);
    let mut sent = 0;
    for round in 0..2000 {
        sim.world.lock().now += 1;
        sim.progress(1);
        while sent < 1000 && sim.at(1).send(&message(0, 1, buffer, sent)).is_ok() {
            sent += 1;
        }
        assert!(sent <= 404, "round {round}");
    }
    for context in 0..1000 {
        sim.post(0, &receive(1, 100, context));
        if sent < 1000 && sim.at(1).send(&message(0, 1, buffer, sent)).is_ok() {
            sent += 1;
        }
        sim.step();
    }
    while sent < 1000 {
        sim.send(1, &message(0, 1, buffer, sent));
        sent += 1;
    }
    for context in 0..1000 {
        assert_eq!(sim.received(0, context).1.length, 100);
    }
}
