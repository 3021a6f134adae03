//! Faults that users of other providers met, as scenarios between two endpoints of one process: the right outcome of each.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "a call of C through a table of an object is to read the table and to call"
)]

mod common;

use common::pair::{ANY, Pair, pattern};
use common::{Received, Side, TAGGED_RECEIVE, Wanted, minus};
use tagmatch::provider::abi;

#[path = "scenarios/coming.rs"]
mod coming;
#[path = "scenarios/ends.rs"]
mod ends;
#[path = "scenarios/huge.rs"]
mod huge;
#[path = "scenarios/limits.rs"]
mod limits;
#[path = "scenarios/multi_receive.rs"]
mod multi_receive;
#[path = "scenarios/order.rs"]
mod order;
#[path = "scenarios/paths.rs"]
mod paths;
#[path = "scenarios/peers.rs"]
mod peers;
#[path = "scenarios/sends.rs"]
mod sends;
#[path = "scenarios/threads.rs"]
mod threads;

/// Longer than what goes eagerly: by rendezvous.
const LONG: usize = (2 << 20) + 5;

#[test]
fn a5_inject_takes_its_size_and_not_one_byte_more_and_the_buffer_is_free_at_once() {
    let pair = Pair::new();
    let mut payload = pattern(16_384, 3);
    let sent = payload.clone();
    let mut buffer = vec![0; payload.len()];
    assert_eq!(pair.b.receive(ANY, 9, 0, &mut buffer, 1), 0);
    pair.a.send_surely(&[&pair.b], |a| a.inject(pair.to_b, 9, &payload, None));
    payload.fill(0);
    assert_eq!(pair.received(), (1, 9, sent.len()));
    assert_eq!(buffer, sent);
    payload.push(0);
    assert_eq!(pair.a.inject(pair.to_b, 9, &payload, None), minus(abi::FI_EMSGSIZE));
    assert_eq!(pair.a.poll(), None, "an inject reports no success");
}

#[test]
fn b01_an_unexpected_message_of_a_peer_that_is_not_yet_in_the_vector() {
    let (p1, p2, r) = (Side::new(), Side::new(), Side::new());
    let from_p2 = r.insert(&p2.name());
    let (p1_to_r, p2_to_r) = (p1.insert(&r.name()), p2.insert(&r.name()));
    p1.send_surely(&[&r], |p| p.inject(p1_to_r, 7, b"A", None));
    // A second message, for anybody, shows that the first is there; its source is not known.
    let (mut any, mut c0, mut c1) = ([0; 64], [0; 64], [0; 64]);
    assert_eq!(r.receive(ANY, 8, 0, &mut any, 9), 0);
    p1.send_surely(&[&r], |p| p.inject(p1_to_r, 8, b"?", None));
    let Received::Ok { source, .. } = r.next(&[&p1]) else { panic!("an error") };
    assert_eq!(source, abi::FI_ADDR_NOTAVAIL);
    assert_eq!(r.receive(from_p2, 7, 0, &mut c0, 100), 0);
    assert_eq!(r.poll(), None, "a directed receive took another peer's message");
    let from_p1 = r.insert(&p1.name());
    assert_eq!(r.receive(from_p1, 7, 0, &mut c1, 101), 0);
    let Received::Ok { context, source, .. } = r.next(&[&p1]) else { panic!("an error") };
    assert_eq!((context, source, c1[0]), (101, from_p1, b'A'));
    p2.send_surely(&[&r], |p| p.inject(p2_to_r, 7, b"B", None));
    let Received::Ok { context, source, .. } = r.next(&[&p2]) else { panic!("an error") };
    assert_eq!((context, source, c0[0]), (100, from_p2, b'B'));
}

#[test]
fn b02_all_64_bits_of_the_tag_are_the_applications() {
    let pair = Pair::new();
    for bit in [63, 62, 61, 60, 32, 31] {
        let high = 1u64 << bit | 1;
        let mut buffer = [0; 8];
        assert_eq!(pair.b.receive(ANY, high, 0, &mut buffer, 1), 0);
        pair.send(high, b"x");
        assert_eq!(pair.received(), (1, high, 1));
        pair.unexpected(&[(high, b"y")]);
        pair.peek(1, 2, abi::FI_CLAIM);
        assert_eq!(pair.failed(), (2, abi::FI_ENOMSG));
        pair.unexpected(&[(1, b"z")]);
        pair.peek(1, 3, abi::FI_CLAIM);
        assert_eq!(pair.received(), (3, 1, 1));
        assert_eq!(pair.b.receive(ANY, high, 0, &mut buffer, 4), 0);
        assert_eq!(pair.received(), (4, high, 1));
        assert_eq!(buffer[0], b'y');
        assert_eq!(pair.b.receive_message(1, 0, Some(&mut buffer), 3, abi::FI_CLAIM), 0);
        assert_eq!(pair.received(), (3, 1, 1));
        assert_eq!(buffer[0], b'z');
    }
}

#[test]
fn b03_stray_bits_in_the_ignored_part_do_not_hinder_a_match() {
    let pair = Pair::new();
    let mut buffer = [0; 16];
    for (tag, ignore, sent) in [(0x1ff, 0xff, 0x123), (0x1ff, 0xff, 0x17a), (0xdead, !0, 0)] {
        assert_eq!(pair.b.receive(ANY, tag, ignore, &mut buffer, 1), 0);
        pair.send(sent, b"q");
        assert_eq!(pair.received(), (1, sent, 1));
    }
    assert_eq!(pair.b.receive(ANY, 0x2ff, 0xff, &mut buffer, 2), 0);
    pair.unexpected(&[(0x123, b"r")]);
    assert_eq!(pair.b.cancel(2), 0);
    assert_eq!(pair.failed(), (2, abi::FI_ECANCELED));
}

#[test]
fn b08_no_message_is_an_entry_and_one_of_two_readers_gets_it() {
    let pair = Pair::new();
    pair.peek(9, 77, 0);
    let results = std::thread::scope(|scope| {
        let read = || {
            scope.spawn(|| {
                // SAFETY: an open queue, and room for one entry.
                let read = unsafe {
                    let mut entry: abi::fi_cq_tagged_entry = std::mem::zeroed();
                    ((*(*pair.b.cq).ops).read)(pair.b.cq, (&raw mut entry).cast(), 1)
                };
                // Whoever comes second may find the entry taken already.
                assert!(read == minus(abi::FI_EAVAIL) || read == minus(abi::FI_EAGAIN), "{read}");
                pair.b.poll_error()
            })
        };
        let (one, other) = (read(), read());
        [one.join().unwrap(), other.join().unwrap()]
    });
    let told: Vec<_> = results.iter().flatten().collect();
    assert!(
        matches!(
            told[..],
            [Received::Error { context: 77, error: abi::FI_ENOMSG, length: 0, overflow: 0, .. }]
        ),
        "{results:?}"
    );
    assert_eq!(pair.b.poll(), None);
    pair.unexpected(&[(9, b"later")]);
}

#[test]
fn b09_a_loop_of_peeks_makes_progress() {
    let pair = Pair::new();
    // The connection is there, so that the message is on its way when the send returns.
    pair.unexpected(&[]);
    let own = pair.b.insert(&pair.b.name());
    pair.a.send_surely(&[], |a| a.inject(pair.to_b, 3, b"m", None));
    pair.b.send_surely(&[], |b| b.inject(own, 4, b"self", None));
    for (tag, length) in [(3, 1), (4, 4)] {
        let found = (0..10).any(|_| {
            pair.peek(tag, 5, 0);
            loop {
                match pair.b.poll() {
                    Some(Received::Ok { context: 5, length: l, .. }) => break l == length,
                    Some(Received::Error { context: 5, error: abi::FI_ENOMSG, .. }) => break false,
                    Some(other) => panic!("{other:?}"),
                    None => {}
                }
            }
        });
        assert!(found, "tag {tag}");
    }
}

#[test]
fn b10_peek_claim_and_receive_show_tag_data_and_flags() {
    let pair = Pair::new();
    pair.a.send_surely(&[&pair.b], |a| a.inject(pair.to_b, 4, b"", Some(0x1122_3344)));
    pair.unexpected(&[(5, b"plain")]);
    let entry = |context| Received::Ok {
        context,
        flags: TAGGED_RECEIVE | abi::FI_REMOTE_CQ_DATA,
        length: 0,
        data: 0x1122_3344,
        tag: 4,
        source: pair.to_a,
    };
    pair.peek(4, 1, 0);
    assert_eq!(pair.b.next(&[]), entry(1));
    pair.peek(4, 2, abi::FI_CLAIM);
    assert_eq!(pair.b.next(&[]), entry(2));
    assert_eq!(pair.b.receive_message(4, 0, None, 2, abi::FI_CLAIM), 0);
    assert_eq!(pair.b.next(&[]), entry(2));
    pair.peek(5, 3, 0);
    let Received::Ok { flags, length, .. } = pair.b.next(&[]) else { panic!("an error") };
    assert_eq!((flags, length), (TAGGED_RECEIVE, 5));
}

#[test]
fn b13_what_is_claimed_or_discarded_matches_nothing_else() {
    for length in [1, 16_384, 200_000, LONG] {
        let pair = Pair::new();
        let payload = |seed| pattern(length, seed);
        let (one, two, three, four, five) = (payload(1), payload(2), payload(3), payload(4), payload(5));
        let (mut b, mut r1, mut r2) = (vec![0; length], vec![0; length], vec![0; length]);
        let send = |bytes: &[u8], context| {
            pair.a.send_surely(&[&pair.b], |a| a.send(pair.to_b, 7, bytes, context));
        };
        // Until it is there.
        let find = |context, flags| loop {
            pair.peek(7, context, flags);
            match pair.b.next(&[&pair.a]) {
                Received::Ok { context: c, length: l, .. } => break assert_eq!((c, l), (context, length)),
                Received::Error { error, .. } => assert_eq!(error, abi::FI_ENOMSG),
            }
        };
        send(&one, 11);
        find(1, abi::FI_CLAIM);
        pair.peek(7, 2, 0);
        assert_eq!(pair.failed(), (2, abi::FI_ENOMSG));
        assert_eq!(pair.b.receive(ANY, 7, 0, &mut r1, 3), 0);
        assert_eq!(pair.b.receive_message(7, 0, Some(&mut b), 1, abi::FI_CLAIM), 0);
        assert_eq!(pair.received(), (1, 7, length));
        assert_eq!(b, one);
        pair.sent(11);
        send(&two, 12);
        assert_eq!(pair.received(), (3, 7, length));
        assert_eq!(r1, two);
        pair.sent(12);
        send(&three, 13);
        find(4, abi::FI_CLAIM);
        assert_eq!(pair.b.receive_message(7, 0, None, 4, abi::FI_CLAIM | abi::FI_DISCARD), 0);
        assert_eq!(pair.received().0, 4);
        pair.sent(13);
        pair.peek(7, 5, 0);
        assert_eq!(pair.failed(), (5, abi::FI_ENOMSG));
        send(&four, 14);
        find(6, abi::FI_DISCARD);
        pair.sent(14);
        pair.peek(7, 7, 0);
        assert_eq!(pair.failed(), (7, abi::FI_ENOMSG));
        send(&five, 15);
        assert_eq!(pair.b.receive(ANY, 7, 0, &mut r2, 8), 0);
        assert_eq!(pair.received(), (8, 7, length));
        assert_eq!(r2, five);
        pair.sent(15);
    }
}

#[test]
fn b15_messages_of_no_bytes_are_peeked_claimed_discarded_and_received() {
    let pair = Pair::new();
    pair.unexpected(&[(2, b"".as_slice()); 4]);
    pair.peek(2, 1, 0);
    assert_eq!(pair.received(), (1, 2, 0));
    pair.peek(2, 2, abi::FI_CLAIM);
    assert_eq!(pair.received(), (2, 2, 0));
    assert_eq!(pair.b.receive_message(2, 0, None, 2, abi::FI_CLAIM), 0);
    assert_eq!(pair.received(), (2, 2, 0));
    pair.peek(2, 3, abi::FI_DISCARD);
    assert_eq!(pair.received(), (3, 2, 0));
    pair.peek(2, 4, abi::FI_CLAIM);
    assert_eq!(pair.received(), (4, 2, 0));
    assert_eq!(pair.b.receive_message(2, 0, None, 4, abi::FI_CLAIM | abi::FI_DISCARD), 0);
    assert_eq!(pair.received(), (4, 2, 0));
    assert_eq!(pair.b.receive(ANY, 2, 0, &mut [], 5), 0);
    assert_eq!(pair.received(), (5, 2, 0));
}

#[test]
fn b16_a_claim_needs_a_context_and_one_that_claimed_nothing_claims_nothing() {
    let pair = Pair::new();
    pair.unexpected(&[(1, b"m")]);
    let peek = abi::FI_PEEK | abi::FI_CLAIM;
    assert_eq!(pair.b.receive_message(1, 0, None, 0, peek), minus(abi::FI_EINVAL));
    let mut buffer = [0; 4];
    assert_eq!(pair.b.receive_message(1, 0, Some(&mut buffer), 5, abi::FI_CLAIM), minus(abi::FI_EINVAL));
    // A context of four words with guards around it, as applications have them.
    let context = Box::new([0x5a5a_u64; 6]);
    let address = std::ptr::from_ref(&context[1]).addr() as u64;
    pair.peek(1, address, abi::FI_CLAIM);
    assert_eq!(pair.received(), (address, 1, 1));
    assert_eq!(pair.b.receive_message(1, 0, Some(&mut buffer), address, abi::FI_CLAIM), 0);
    assert_eq!(pair.received(), (address, 1, 1));
    let again = pair.b.receive_message(1, 0, Some(&mut buffer), address, abi::FI_CLAIM);
    assert_eq!(again, minus(abi::FI_EINVAL));
    assert_eq!((context[0], context[5]), (0x5a5a, 0x5a5a));
}

#[test]
fn b17_a_receive_that_has_its_message_is_not_cancelled() {
    let pair = Pair::new();
    let payload = pattern(LONG, 5);
    let mut buffer = vec![0; payload.len()];
    assert_eq!(pair.b.receive(ANY, 5, 0, &mut buffer, 1), 0);
    pair.a.send_surely(&[&pair.b], |a| a.send(pair.to_b, 5, &payload, 2));
    // Whatever has come of it by now, one entry tells the end.
    assert_eq!((pair.b.cancel(1), pair.b.cancel(1)), (0, 0));
    match pair.b.next(&[&pair.a]) {
        Received::Ok { context, length, .. } => {
            assert_eq!((context, length), (1, payload.len()));
            assert_eq!(buffer, payload);
        }
        Received::Error { context, error, .. } => {
            assert_eq!((context, error), (1, abi::FI_ECANCELED));
            assert!(buffer.iter().all(|byte| *byte == 0), "a cancelled receive was written to");
            // The message is still there for another.
            assert_eq!(pair.b.receive(ANY, 5, 0, &mut buffer, 3), 0);
            assert_eq!(pair.received(), (3, 5, payload.len()));
        }
    }
    pair.sent(2);
    assert_eq!(pair.b.poll(), None);
}

#[test]
fn b19_one_cancel_ends_one_of_two_receives_with_one_context() {
    let pair = Pair::new();
    let (mut tagged, mut untagged) = ([0; 8], [0; 8]);
    assert_eq!(pair.b.receive_untagged(&mut untagged, 6, 0), 0);
    assert_eq!(pair.b.receive(ANY, 1, 0, &mut tagged, 6), 0);
    for _ in 0..2 {
        assert_eq!(pair.b.cancel(6), 0);
        assert_eq!(pair.failed(), (6, abi::FI_ECANCELED));
        assert_eq!(pair.b.poll(), None);
    }
    assert_eq!(pair.b.cancel(6), 0, "of none: nothing happens");
    assert_eq!(pair.b.poll(), None);
}

#[test]
fn b19_of_two_receives_with_one_context_the_one_that_is_not_cancelled_receives() {
    let pair = Pair::new();
    let (mut tagged, mut untagged) = ([0; 8], [0; 8]);
    assert_eq!(pair.b.receive_untagged(&mut untagged, 6, 0), 0);
    assert_eq!(pair.b.receive(ANY, 1, 0, &mut tagged, 6), 0);
    assert_eq!(pair.b.cancel(6), 0);
    assert_eq!(pair.failed(), (6, abi::FI_ECANCELED));
    // One for each: that for the cancelled one waits.
    pair.a.send_surely(&[&pair.b], |a| a.send_untagged(pair.to_b, b"without", 7));
    assert!(matches!(pair.a.next(&[&pair.b]), Received::Ok { context: 7, .. }));
    pair.send(1, b"with a t");
    let Received::Ok { context, flags, length, .. } = pair.b.next(&[&pair.a]) else { panic!("an error") };
    let (is_tagged, expected) = (flags & abi::FI_TAGGED != 0, [&b"without"[..], b"with a t"]);
    assert_eq!((context, length), (6, expected[usize::from(is_tagged)].len()));
    let (taken, other) = if is_tagged { (&tagged, &untagged) } else { (&untagged, &tagged) };
    assert_eq!(taken[..length], *expected[usize::from(is_tagged)]);
    assert_eq!(*other, [0; 8], "the cancelled one was written to");
    assert_eq!(pair.b.cancel(6), 0, "of none: nothing happens");
    (0..20).for_each(|_| assert_eq!(pair.b.poll(), None));
}

#[test]
fn b22_a_message_longer_than_its_buffer_is_cut_and_the_next_is_whole() {
    let pair = Pair::new();
    for length in [100, 16_000, 300_000, LONG] {
        for is_posted_first in [true, false] {
            let payload = pattern(length, 0);
            let mut buffer = [0xee; 80];
            if is_posted_first {
                assert_eq!(pair.b.receive(ANY, 5, 0, &mut buffer[..64], 1), 0);
            }
            pair.a.send_surely(&[&pair.b], |a| a.send(pair.to_b, 5, &payload, 2));
            if !is_posted_first {
                assert_eq!(pair.b.receive(ANY, 5, 0, &mut buffer[..64], 1), 0);
            }
            let (error, overflow) = (abi::FI_ETRUNC, length - 64);
            let expected = Received::Error { context: 1, error, length: 64, overflow, tag: 5 };
            assert_eq!(pair.b.next(&[&pair.a]), expected);
            pair.sent(2);
            assert_eq!(buffer[..64], payload[..64]);
            assert!(buffer[64..].iter().all(|byte| *byte == 0xee), "written past the buffer");
            let mut next = [0; 8];
            assert_eq!(pair.b.receive(ANY, 5, 0, &mut next, 3), 0);
            pair.send(5, b"next");
            assert_eq!(pair.received(), (3, 5, 4));
            assert_eq!(&next[..4], b"next");
        }
    }
}

#[test]
fn b30_messages_to_oneself_arrive_in_both_orders_and_at_all_sizes() {
    let side = Side::new();
    let own = side.insert(&side.name());
    for length in [1, 100_000, LONG] {
        let payload = pattern(length, 4);
        for is_posted_first in [true, false] {
            let mut buffer = vec![0; length];
            if is_posted_first {
                assert_eq!(side.receive(own, 2, 0, &mut buffer, 1), 0);
            }
            side.send_surely(&[], |s| s.send(own, 2, &payload, 2));
            if !is_posted_first {
                assert_eq!(side.receive(own, 2, 0, &mut buffer, 1), 0);
            }
            let mut contexts: Vec<_> = (0..2)
                .map(|_| match side.next(&[]) {
                    Received::Ok { context, .. } => context,
                    other @ Received::Error { .. } => panic!("{other:?}"),
                })
                .collect();
            contexts.sort_unstable();
            assert_eq!(contexts, [1, 2]);
            assert_eq!(buffer, payload);
        }
    }
}

#[test]
fn b28_two_sides_that_send_first_at_once_need_one_connection_and_see_no_error() {
    for _ in 0..50 {
        let pair = Pair::new();
        let mut buffers = [[0u8; 2]; 2];
        let [for_a, for_b] = &mut buffers;
        assert_eq!(pair.a.receive(ANY, 1, 0, for_a, 1), 0);
        assert_eq!(pair.b.receive(ANY, 1, 0, for_b, 1), 0);
        let (mut a_sent, mut b_sent) = (false, false);
        for _ in 0..common::ROUNDS {
            for (side, to, sent) in [(&pair.a, pair.to_b, &mut a_sent), (&pair.b, pair.to_a, &mut b_sent)] {
                if !*sent {
                    let result = side.send(to, 1, b"hi", 2);
                    assert!(result == 0 || result == minus(abi::FI_EAGAIN), "{result}");
                    *sent = result == 0;
                }
            }
            if a_sent && b_sent {
                break;
            }
        }
        for (side, other) in [(&pair.a, &pair.b), (&pair.b, &pair.a)] {
            let mut contexts = [0, 0].map(|_| match side.next(&[other]) {
                Received::Ok { context, .. } => context,
                other @ Received::Error { .. } => panic!("{other:?}"),
            });
            contexts.sort_unstable();
            assert_eq!(contexts, [1, 2]);
        }
        assert_eq!(buffers, [*b"hi"; 2]);
    }
}

#[test]
fn b29_a_peer_that_is_not_there_is_told_and_is_reached_when_it_is() {
    let (a, b) = (Side::new(), Side::new());
    let gone = Side::lasting();
    let name = gone.name();
    let port = u16::from_be_bytes([name[2], name[3]]);
    let (to_b, to_gone) = (a.insert(&b.name()), a.insert(&name));
    drop(gone);
    let mut codes = Vec::new();
    for _ in 0..common::ROUNDS {
        let result = a.send(to_gone, 1, b"lost", 1);
        if result != minus(abi::FI_EAGAIN) {
            codes.push(result);
            break;
        }
        a.progress();
    }
    assert_eq!(codes, [minus(abi::FI_ECONNREFUSED)]);
    // Others are unharmed, and it can come back under its name.
    let mut buffer = [0; 8];
    assert_eq!(b.receive(ANY, 2, 0, &mut buffer, 2), 0);
    a.send_surely(&[&b], |a| a.inject(to_b, 2, b"there", None));
    assert!(matches!(b.next(&[&a]), Received::Ok { context: 2, length: 5, .. }));
    let back = Side::with(Wanted { port, ..Wanted::default() });
    assert_eq!(back.name(), name);
    assert_eq!(back.receive(ANY, 3, 0, &mut buffer, 3), 0);
    let mut is_sent = false;
    for _ in 0..common::ROUNDS {
        let result = a.inject(to_gone, 3, b"back", None);
        is_sent = result == 0;
        if is_sent {
            break;
        }
        assert!([abi::FI_EAGAIN, abi::FI_ECONNREFUSED].map(minus).contains(&result), "{result}");
        a.progress();
        back.progress();
    }
    assert!(is_sent);
    assert!(matches!(back.next(&[&a]), Received::Ok { context: 3, length: 4, .. }));
}

#[test]
fn b32_a_peer_that_closes_ends_what_it_had_begun_once_and_harms_nobody() {
    let pair = Pair::new();
    let other = Side::new();
    let from_a = pattern(LONG, 1);
    let to_b = other.insert(&pair.b.name());
    // Longer than what goes eagerly: A's request waits, unexpected; then A closes, and the message is nobody's any
    // more.
    pair.a.send_surely(&[&pair.b], |a| a.send(pair.to_b, 5, &from_a, 1));
    pair.unexpected(&[]);
    let Pair { a, b, to_b: _, to_a: _ } = pair;
    std::thread::scope(|scope| {
        let closing = scope.spawn(|| drop(a));
        while !closing.is_finished() {
            b.progress();
        }
    });
    let mut buffer = vec![0; LONG];
    assert_eq!(b.receive(ANY, 5, 0, &mut buffer, 2), 0);
    other.send_surely(&[&b], |o| o.inject(to_b, 5, b"ok", None));
    // Either the dead message was dropped, or its receive tells of the loss; the next message is whole.
    match b.next(&[&other]) {
        Received::Ok { context, length, .. } => assert_eq!((context, length), (2, 2)),
        Received::Error { context, .. } => {
            assert_eq!(context, 2);
            assert_eq!(b.receive(ANY, 5, 0, &mut buffer, 3), 0);
            assert!(matches!(b.next(&[&other]), Received::Ok { context: 3, length: 2, .. }));
        }
    }
    assert_eq!(&buffer[..2], b"ok");
}
