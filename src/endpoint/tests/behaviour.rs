//! What an endpoint does beside the scenarios: levels of completion, truncation, multi-receive buffers, the key of a job,
//! keepalive, closing; and much of everything.

use std::time::Duration;

use super::super::{Completed, Config, Endpoint, Failure, Level, PeekAction, Send, SendRefused, Space};
use super::scenarios::{LENGTHS, pair_with_segments};
use super::sim::{Receive, Sim, bytes, message, receive};
use super::world::Weather;
use crate::device::transport::Payload;
use crate::engine::Kind;
use crate::seam::Buffer;

#[test]
fn every_level_is_reached_when_it_should_be() {
    for (seed, length) in LENGTHS.into_iter().enumerate() {
        for level in [Level::Inject, Level::Transmit, Level::Delivery, Level::Match] {
            let mut sim = pair_with_segments(seed as u64);
            let buffer = sim.world.allocate(&bytes(1, length));
            sim.send(1, &Send { level, ..message(0, 1, buffer, 100) });
            sim.steps(100);
            let is_eager = length <= 16 << 10;
            let early = match level {
                Level::Inject | Level::Transmit => length <= 40_000,
                // Whether the whole of it was there when it came is chance here.
                Level::Delivery => sim.of(1, 100).len() == 1 && is_eager,
                Level::Match => false,
            };
            assert_eq!(sim.of(1, 100).len(), usize::from(early), "{level:?} {length}");
            sim.post(0, &receive(1, length, 1));
            assert_eq!(sim.received(0, 1).0, bytes(1, length));
            assert_eq!(sim.ended(1, 100), Completed::Sent);
            sim.steps(10);
            assert_eq!(sim.at(1).sends_in_progress(), 0);
        }
    }
}

#[test]
fn a_discarded_message_releases_a_sender_that_waits_for_the_match() {
    let mut sim = Sim::pair();
    let buffer = sim.world.allocate(b"sync");
    sim.send(1, &Send { level: Level::Match, ..message(0, 1, buffer, 100) });
    sim.steps(20);
    assert_eq!(sim.of(1, 100), []);
    sim.peek(0, 1, PeekAction::Discard, 1);
    assert_eq!(sim.ended(1, 100), Completed::Sent);
}

#[test]
fn what_is_copied_may_change_at_once() {
    let mut sim = Sim::pair();
    sim.send_bytes(1, 0, 9, b"", 1);
    let send = |bytes: &'static [u8]| Send {
        payload: Payload::Copied(bytes),
        ..message(0, 1, Buffer::default(), 100)
    };
    sim.send(1, &send(b"before"));
    assert_eq!(sim.of(1, 100), [Completed::Sent]);
    sim.post(0, &receive(1, 8, 1));
    assert_eq!(sim.received(0, 1).0, b"before");
    static LONG: [u8; (16 << 10) + 1] = [0; (16 << 10) + 1];
    let refused = sim.at(1).send(&send(&LONG));
    assert_eq!(refused, Err(SendRefused::TooLong { length: (16 << 10) + 1, limit: 16 << 10 }));
}

#[test]
fn a_message_that_is_too_long_for_its_receive_is_cut_and_nothing_is_written_behind() {
    for (seed, length) in LENGTHS.into_iter().enumerate().skip(1) {
        let mut sim = pair_with_segments(seed as u64);
        let buffer = sim.post(0, &receive(1, length / 2, 1));
        sim.world.allocate(&[0xAA; 16]);
        sim.send_bytes(1, 0, 1, &bytes(1, length), 100);
        let (got, what) = sim.received(0, 1);
        assert_eq!((got, what.length), (bytes(1, length)[..length / 2].to_vec(), length as u64));
        assert_eq!(sim.world.read(buffer.address + buffer.length, 16), [0xAA; 16]);
        assert_eq!(sim.ended(1, 100), Completed::Sent);
    }
}

#[test]
fn a_multi_receive_buffer_takes_messages_until_too_little_is_left_and_says_so_once() {
    let mut sim = Sim::pair();
    let kind = Kind::Multi { least: 50 };
    sim.post(0, &Receive { space: Space::Untagged, kind, ..receive(0, 100, 1) });
    let buffers = [sim.world.allocate(&bytes(1, 30)), sim.world.allocate(&bytes(2, 30))];
    for (context, buffer) in buffers.into_iter().enumerate() {
        sim.send(1, &Send { space: Space::Untagged, ..message(0, 0, buffer, 100 + context as u64) });
    }
    sim.until("both are there", |sim| sim.of(0, 1).len() == 2);
    let released: Vec<bool> = sim
        .of(0, 1)
        .iter()
        .map(|end| match end {
            Completed::Received { released, address, .. } => {
                let seed = if *released { 2 } else { 1 };
                assert_eq!(sim.world.read(*address, 30), bytes(seed, 30));
                *released
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(released, [false, true]);
    sim.steps(5);
    assert_eq!(sim.of(0, 1).len(), 2);
}

/// Which buffer is over says the last completion of its own, also where others have the same context.
#[test]
fn multi_receive_buffers_of_one_context_are_each_released_by_their_own_last_message() {
    for seed in 0..60 {
        let mut sim = Sim::new(
            2,
            seed,
            Weather { delay: 3, split: 60, full: 5, posted: 50, holds: false },
            Config::default(),
        );
        let kind = Kind::Multi { least: 50 };
        let buffers: Vec<Buffer> = (0..4)
            .map(|_| sim.post(0, &Receive { space: Space::Untagged, kind, ..receive(0, 40_000, 1) }))
            .collect();
        for context in 0..40_u64 {
            let length =
                usize::try_from([20, 900, 5000, 17_000][usize::try_from((seed + context) % 4).unwrap()]);
            let buffer = sim.world.allocate(&bytes(context, length.unwrap()));
            sim.send(1, &Send { space: Space::Untagged, ..message(0, 0, buffer, 100 + context) });
        }
        if seed % 3 == 0 {
            sim.world.lock().cut(0);
        }
        sim.steps(300);
        let ends = sim.of(0, 1);
        let of = |address: u64| {
            let is_in = |buffer: &Buffer| (buffer.address..buffer.address + buffer.length).contains(&address);
            buffers.iter().position(is_in).unwrap()
        };
        let mut over = [false; 4];
        let mut alone = 0;
        for end in &ends {
            match end {
                Completed::Received { address, released, .. } => {
                    assert!(!over[of(*address)], "seed {seed}: {ends:?}");
                    over[of(*address)] = *released;
                }
                Completed::Released => alone += 1,
                Completed::Failed(Failure::Lost) => assert_eq!(seed % 3, 0),
                other => panic!("{other:?}"),
            }
        }
        if seed % 3 != 0 {
            assert_eq!((alone, over), (0, [true; 4]), "seed {seed}: {ends:?}");
        }
    }
}

#[test]
fn of_many_receives_of_one_context_the_oldest_is_cancelled_first() {
    let mut sim = Sim::pair();
    for order in 0..50_000 {
        sim.post(0, &receive(order, 0, 5));
        sim.post(0, &receive(order, 0, 1_000_000 + order));
    }
    // Those in the middle are gone before.
    sim.send_bytes(1, 0, 0, b"", 1);
    sim.send_bytes(1, 0, 3, b"", 1);
    sim.until("both are taken", |sim| sim.of(0, 5).len() == 2);
    for order in (0..50_000).rev() {
        assert!(sim.at(0).cancel(5) || order < 2, "{order}");
        assert!(sim.at(0).cancel(1_000_000 + order));
        assert!(!sim.at(0).cancel(1_000_000 + order));
        // Newer ones come, and are found too.
        if order % 10_000 == 0 {
            sim.post(0, &receive(1 << 40, 0, 6));
            assert!(sim.at(0).cancel(6));
            assert!(!sim.at(0).cancel(6));
        }
    }
    assert!(!sim.at(0).cancel(5));
    sim.collect(0);
    let cancelled = |context| sim.of(0, context).iter().filter(|end| **end == Completed::Cancelled).count();
    assert_eq!((cancelled(5), cancelled(6)), (49_998, 5));
    assert_eq!(sim.at(0).depths(Space::Tagged), (0, 0));
}

#[test]
fn only_those_who_hold_the_key_are_connected() {
    let with = |key: Option<&[u8]>| Config { job_key: key.map(<[u8]>::to_vec), ..Config::default() };
    let (key, other): (&[u8], &[u8]) = (&[1; 32], &[2; 32]);
    for (here, there, good) in [
        (Some(key), Some(key), true),
        (Some(key), Some(other), false),
        (Some(key), None, false),
        (None, Some(key), false),
    ] {
        let mut sim = Sim::pair();
        for (at, key) in [(0, here), (1, there)] {
            sim.kill(at, true);
            sim.start_with(at, with(key));
        }
        sim.introduce(0, 0);
        sim.introduce(0, 1);
        sim.introduce(1, 0);
        let buffer = sim.world.allocate(b"m");
        if good {
            sim.post(1, &receive(1, 8, 1));
            sim.send(0, &message(1, 1, buffer, 100));
            assert_eq!(sim.received(1, 1).0, b"m");
            sim.send_bytes(0, 0, 1, b"to oneself", 101);
        } else {
            let refusal = sim.refusal(0, &message(1, 1, buffer, 100));
            assert_eq!(refusal, SendRefused::Unreachable(Failure::NotAccepted));
            assert_eq!(sim.at(0).statistics().connected, 0);
            // Whoever has no key takes anybody, and is left by those who do.
            assert_eq!(sim.at(1).statistics().connected, u64::from(there.is_none()));
        }
    }
}

#[test]
fn a_key_that_is_too_short_is_refused() {
    for length in [0, 1, 15] {
        let config = Config { job_key: Some(vec![7; length]), ..Config::default() };
        let refused = Endpoint::new(config, Vec::new()).err().map(|error| error.to_string());
        let text = format!("job_key of {length} bytes is refused: it takes 16 bytes at least");
        assert_eq!(refused, Some(text));
    }
}

#[test]
fn connections_cross_and_peers_restart_with_a_key_too() {
    for seed in 0..100 {
        let config = Config { job_key: Some(vec![3; 20]), ..Config::default() };
        let weather = Weather { delay: seed % 5, full: (seed % 3) * 20, ..Weather::default() };
        let mut sim = Sim::new(2, seed, weather, config);
        let buffer = sim.world.allocate(b"m");
        let _ = sim.at(1).send(&message(0, 1, buffer, 100));
        sim.send(0, &message(1, 1, buffer, 100));
        sim.send(1, &message(0, 1, buffer, 100));
        sim.kill(0, seed % 2 == 0);
        sim.start(0);
        sim.introduce(0, 1);
        sim.send(0, &message(1, 1, buffer, 101));
        sim.post(1, &receive(1, 8, 1));
        sim.post(1, &receive(1, 8, 2));
        assert_eq!((sim.received(1, 1).0, sim.received(1, 2).0), (b"m".to_vec(), b"m".to_vec()));
    }
}

#[test]
fn a_silent_peer_is_asked_and_lost_where_that_is_wanted() {
    let config = Config { keepalive: Some(Duration::from_millis(100)), ..Config::default() };
    let mut sim = Sim::new(2, 1, Weather::default(), config);
    sim.send_bytes(0, 1, 1, &bytes(1, 100_000), 100);
    sim.steps(1000);
    assert_eq!(sim.of(0, 100), []);
    assert_eq!(sim.at(0).statistics().lost, 0);
    // It no longer moves on: nobody answers.
    for _ in 0..1000 {
        sim.world.lock().now += 1;
        sim.progress(0);
    }
    assert_eq!(sim.of(0, 100), [Completed::Failed(Failure::Lost)]);
}

#[test]
fn a_closed_endpoint_has_sent_what_it_took_and_tells_its_peers() {
    let mut sim = Sim::new(2, 4, Weather { delay: 5, full: 30, ..Weather::default() }, Config::default());
    sim.send_bytes(1, 0, 9, b"", 0);
    for context in 0..100 {
        let send = Send { payload: Payload::Copied(b"last"), ..message(0, 1, Buffer::default(), context) };
        sim.send(1, &send);
    }
    let now = sim.now();
    sim.at(1).close(now);
    let buffer = sim.world.allocate(b"m");
    assert!(matches!(sim.at(1).send(&message(0, 1, buffer, 1)), Err(SendRefused::Unreachable(_))));
    sim.until("it is closed", |sim| sim.at(1).is_closed());
    for context in 0..100 {
        sim.post(0, &receive(1, 8, context));
        assert_eq!(sim.received(0, context).0, b"last");
    }
}

#[test]
fn an_endpoint_whose_peer_does_not_listen_is_closed_in_bounded_time() {
    let mut sim = Sim::pair();
    sim.send_bytes(1, 0, 9, b"", 0);
    sim.world.lock().weather.full = 100;
    let now = sim.now();
    sim.at(1).close(now);
    for _ in 0..6000 {
        sim.world.lock().now += 1;
        sim.progress(1);
    }
    assert!(sim.at(1).is_closed());
}

#[test]
fn ten_thousand_peers_of_whom_most_are_silent_harm_nobody() {
    let mut sim = Sim::pair();
    let buffer = sim.world.allocate(b"m");
    for peer in 2..10_000 {
        sim.world.lock().silent.insert(super::sim::name(peer));
        sim.introduce(0, peer);
        assert_eq!(sim.at(0).send(&message(peer, 1, buffer, 0)), Err(SendRefused::Again));
    }
    sim.post(1, &receive(1, 8, 1));
    sim.send(0, &message(1, 1, buffer, 100));
    assert_eq!(sim.received(1, 1).0, b"m");
}

#[test]
fn a_million_posted_receives_and_a_hundred_thousand_unexpected_messages_are_no_limit() {
    let mut sim = Sim::pair();
    let buffer = sim.world.allocate(&[5; 8]);
    let post = |tag: u64, context: u64| super::super::Post {
        space: Space::Tagged,
        source: None,
        tag: crate::ids::Tag(tag),
        ignore: crate::ids::Ignore::NONE,
        buffer,
        kind: Kind::Once,
        context,
        flags: 0,
    };
    for context in 0..1_000_000 {
        sim.at(0).post(&post(1 << 40 | context, context)).unwrap();
    }
    for context in 0..100_000 {
        sim.send(1, &message(0, context, buffer, context));
    }
    sim.steps(500);
    assert_eq!(sim.at(0).depths(Space::Tagged), (1_000_000, 100_000));
    for context in (0..100_000).rev() {
        sim.at(0).post(&post(context, 2_000_000 + context)).unwrap();
    }
    sim.collect(0);
    sim.steps(500);
    assert_eq!(sim.said[0].len(), 100_000);
    assert_eq!(sim.at(0).depths(Space::Tagged), (1_000_000, 0));
}

/// An endpoint may go to another thread.
const _: () = {
    const fn goes<T: std::marker::Send>() {}
    goes::<Endpoint>();
};
