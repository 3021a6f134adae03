//! What a device that matches does under a provider (B03, B07, B23, B25, B26), seen by its results and by the counters.
//! Without one the results are the same. Receives that are too short for what may come eagerly are given to a device as well,
//! with a buffer of its own.

use super::common::counted::{Counters, EAGER_MAX};
use super::common::pair::{ANY, Pair};
use super::common::{Received, Side, is_offloaded};
use tagmatch::provider::abi;

fn counters(pair: Pair) -> Counters {
    let Pair { a, b, .. } = pair;
    Counters::of(vec![a, b])
}

#[test]
fn b03_stray_bits_in_the_ignored_part_of_a_tag_hinder_no_device() {
    let pair = Pair::new();
    let mut buffer = [0; EAGER_MAX];
    let (mut count, mut short) = (0, [0; 16]);
    for room in [&mut buffer[..], &mut short] {
        for (tag, ignore, sent) in [(0x1ff, 0xff, 0x123), (0x1ff, 0xff, 0x17a), (0xdead, !0, 0)] {
            // More often than anything else here could be matched.
            for _ in 0..10 {
                assert_eq!(pair.b.receive(ANY, tag, ignore, room, 1), 0);
                pair.send(sent, b"q");
                assert_eq!(pair.received(), (1, sent, 1));
                count += 1;
            }
        }
        // Beside it in the list, one that fits none of them.
        assert_eq!(pair.b.receive(ANY, 0x2ff, 0xff, room, 2), 0);
        pair.unexpected(&[(0x123, b"r")]);
        assert_eq!(pair.b.poll(), None);
        assert_eq!(pair.b.cancel(2), 0);
        assert_eq!(pair.failed(), (2, abi::FI_ECANCELED));
        assert_eq!(pair.b.receive(ANY, 0x1ff, 0xff, room, 3), 0);
        assert_eq!(pair.received(), (3, 0x123, 1));
    }
    let counters = counters(pair);
    let matched = counters.count("matched_by_device");
    assert!(
        if is_offloaded() { matched >= count } else { matched == 0 },
        "{matched} of {count}: {counters:?}"
    );
}

#[test]
fn b23_a_device_matches_after_more_unexpected_messages_than_its_counter_holds() {
    let pair = Pair::new();
    let mut buffer = [0; EAGER_MAX];
    for round in 0..700 {
        for number in 0..100u64 {
            pair.a.send_surely(&[&pair.b], |a| a.inject(pair.to_b, number, b"early", None));
        }
        for number in 0..100u64 {
            assert_eq!(pair.b.receive(ANY, number, 0, &mut buffer, 1), 0);
            assert_eq!(pair.received(), (1, number, 5), "round {round}");
        }
    }
    for _ in 0..10 {
        assert_eq!(pair.b.receive(ANY, 1000, 0, &mut buffer, 2), 0);
        pair.send(1000, b"late");
        assert_eq!(pair.received(), (2, 1000, 4));
    }
    let counters = counters(pair);
    let matched = counters.count("matched_by_device");
    assert!(counters.count("unexpected") > 65_541, "{counters:?}");
    assert_eq!(matched >= 9, is_offloaded(), "{matched} of 10 by the device");
}

#[test]
fn b25_a_receive_that_no_device_takes_holds_back_what_it_overlaps_and_no_longer_than_that() {
    let pair = Pair::new();
    let mut buffers = [[0u8; EAGER_MAX]; 6];
    let [w, s, t, u, v, x] = &mut buffers;
    // Directed: not for a device. The second fits as well, and is younger.
    assert_eq!(pair.b.receive(pair.to_a, 0, !0, w, 1), 0);
    assert_eq!(pair.b.receive(ANY, 5, 0, s, 2), 0);
    pair.send(5, b"a");
    pair.send(5, b"b");
    assert_eq!((pair.received(), pair.received()), ((1, 5, 1), (2, 5, 1)));
    // Both are gone: the device matches.
    assert_eq!(pair.b.receive(ANY, 6, 0, t, 3), 0);
    pair.send(6, b"c");
    assert_eq!(pair.received(), (3, 6, 1));
    // The older one is cancelled before anything comes.
    assert_eq!(pair.b.receive(pair.to_a, 0, !0, u, 4), 0);
    assert_eq!(pair.b.receive(ANY, 5, 0, v, 5), 0);
    assert_eq!(pair.b.cancel(4), 0);
    assert_eq!(pair.failed(), (4, abi::FI_ECANCELED));
    pair.send(5, b"d");
    assert_eq!(pair.received(), (5, 5, 1));
    // No message fits both.
    assert_eq!(pair.b.receive(pair.to_a, 4, 0, u, 6), 0);
    assert_eq!(pair.b.receive(ANY, 5, 0, x, 7), 0);
    pair.send(5, b"e");
    pair.send(4, b"f");
    assert_eq!((pair.received(), pair.received()), ((7, 5, 1), (6, 4, 1)));
    assert_eq!(buffers.map(|buffer| buffer[0]), *b"abcfde");
    let counters = counters(pair);
    assert_eq!(counters.count("matched_by_device"), if is_offloaded() { 3 } else { 0 }, "{counters:?}");
}

#[test]
fn b26_ten_thousand_posts_and_cancels_and_one_buffer_in_many_receives_give_everything_back() {
    let pair = Pair::new();
    let mut buffers = vec![[0u8; EAGER_MAX]; 1500];
    for _ in 0..2500 {
        for (context, buffer) in (1..=4).zip(&mut buffers) {
            assert_eq!(pair.b.receive(ANY, context, 0, buffer, context), 0);
        }
        for context in 1..=4 {
            assert_eq!(pair.b.cancel(context), 0);
        }
        let mut failed = [(); 4].map(|()| pair.failed());
        failed.sort_unstable();
        assert_eq!(failed, [1, 2, 3, 4].map(|context| (context, abi::FI_ECANCELED)));
    }
    // More than the list of the device holds, taken from the last to the first.
    for (context, buffer) in (1..=1500).zip(&mut buffers) {
        assert_eq!(pair.b.receive(ANY, context, 0, buffer, context), 0);
    }
    for tag in (1..=1500).rev() {
        pair.a.send_surely(&[&pair.b], |a| a.inject(pair.to_b, tag, b"m", None));
        assert_eq!(pair.received(), (tag, tag, 1));
    }
    // One buffer again and again, as programs that measure bandwidth have it.
    for context in 1..=5 {
        assert_eq!(pair.b.receive(ANY, 9, 0, &mut buffers[0], context), 0);
    }
    for context in 1..=5 {
        pair.send(9, b"same");
        assert_eq!(pair.received(), (context, 9, 4));
    }
    let counters = counters(pair);
    assert_eq!(counters.count("cancelled"), 10_000);
    assert_eq!(counters.count("matched_by_device") > 1000, is_offloaded(), "{counters:?}");
}

#[test]
fn b07_a_receive_that_a_device_and_the_host_may_match_takes_one_message_in_every_order() {
    let (a, b) = (Side::new(), Side::new());
    let (to_b, own) = (a.insert(&b.name()), b.insert(&b.name()));
    let mut seen = [0; 2];
    // What one sends to oneself passes no device.
    let sends = |which: usize| match which {
        0 => a.send_surely(&[], |a| a.inject(to_b, 5, b"A", None)),
        _ => b.send_surely(&[&a], |b| b.inject(own, 5, b"B", None)),
    };
    a.send_surely(&[&b], |a| a.inject(to_b, 9, b"", None));
    b.send_surely(&[&a], |b| b.inject(own, 9, b"", None));
    let mut none = [0; 0];
    for context in [8, 9] {
        assert_eq!(b.receive(ANY, 9, 0, &mut none, context), 0);
        assert_eq!(b.next(&[&a]).context(), context);
    }
    for first in [0, 1] {
        for rounds in 0..6 {
            for later in [false, true] {
                let (mut c1, mut c2) = ([0; EAGER_MAX], [0; EAGER_MAX]);
                assert_eq!(b.receive(ANY, 5, 0, &mut c1, 1), 0);
                sends(first);
                for _ in 0..rounds {
                    a.progress();
                    if later {
                        b.progress();
                    }
                }
                sends(1 - first);
                assert_eq!(b.receive(ANY, 5, 0, &mut c2, 2), 0);
                // Which of them is told first is not said.
                let mut told = [(); 2].map(|()| b.next(&[&a]));
                told.sort_unstable_by_key(Received::context);
                for (context, told) in (1..).zip(told) {
                    assert!(
                        matches!(told, Received::Ok { context: c, length: 1, .. } if c == context),
                        "{told:?}"
                    );
                }
                assert_eq!(b.poll(), None);
                let mut both = [c1[0], c2[0]];
                seen[usize::from(both[0] == b'B')] += 1;
                both.sort_unstable();
                assert_eq!(both, *b"AB");
            }
        }
    }
    assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
    let counters = Counters::of(vec![a, b]);
    assert_eq!(counters.count("matched_by_device") > 0, is_offloaded(), "{counters:?}");
}
