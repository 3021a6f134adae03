//! Messages between two endpoints of one process, through libfabric: what arrives, and what completions say.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "a call of C through a table of an object is to read the table and to call"
)]

mod common;

use common::pair::{ANY, Pair, pattern};
use common::{Received, TAGGED_RECEIVE, Wanted, minus};
use tagmatch::provider::abi;

#[test]
fn sizes_from_none_to_several_mebibytes_arrive_posted_before_and_after() {
    let pair = Pair::new();
    for length in [0, 1, 63, 64, 65, 4096, 16_384, 16_385, 65_536, 131_073, 3 << 20] {
        let payload = pattern(length, 7);
        for is_posted_first in [true, false] {
            let mut buffer = vec![0; length];
            if is_posted_first {
                assert_eq!(pair.b.receive(ANY, 5, 0, &mut buffer, 1), 0);
            }
            pair.a.send_surely(&[&pair.b], |a| a.send(pair.to_b, 5, &payload, 2));
            if !is_posted_first {
                assert_eq!(pair.b.receive(ANY, 5, 0, &mut buffer, 1), 0);
            }
            assert_eq!(pair.received(), (1, 5, length));
            pair.sent(2);
            assert_eq!(buffer, payload, "{length} bytes");
        }
    }
}

#[test]
fn completions_carry_tag_data_source_and_flags() {
    let pair = Pair::new();
    let mut buffer = [0; 8];
    assert_eq!(pair.b.receive(pair.to_a, 0x1f, 0xff, &mut buffer, 3), 0);
    pair.a.send_surely(&[&pair.b], |a| a.send_data(pair.to_b, 0x42, b"xy", 0xdead_beef, 4));
    let flags = TAGGED_RECEIVE | abi::FI_REMOTE_CQ_DATA;
    let source = pair.to_a;
    let expected = Received::Ok { context: 3, flags, length: 2, data: 0xdead_beef, tag: 0x42, source };
    assert_eq!(pair.b.next(&[&pair.a]), expected);
    pair.sent(4);
    assert_eq!(&buffer[..2], b"xy");
}

#[test]
fn data_wider_than_offered_is_refused() {
    let pair = Pair::new();
    assert_eq!(pair.a.send_data(pair.to_b, 1, b"", 1 << 32, 1), minus(abi::FI_EINVAL));
}

#[test]
fn stretches_are_gathered_and_more_than_offered_refused() {
    let pair = Pair::new();
    let (first, second) = (pattern(40_000, 1), pattern(3, 9));
    let parts: [&[u8]; 4] = [&first, b"", &second, b"end"];
    let whole = parts.concat();
    for flags in [0, abi::FI_INJECT] {
        let parts: &[&[u8]] = if flags == 0 { &parts } else { &parts[1..] };
        let whole = if flags == 0 { whole.clone() } else { parts.concat() };
        let mut buffer = vec![0; whole.len()];
        assert_eq!(pair.b.receive(ANY, 1, 0, &mut buffer, 1), 0);
        pair.a.send_surely(&[&pair.b], |a| a.send_message(pair.to_b, 1, parts, 0, 2, flags));
        assert_eq!(pair.received(), (1, 1, whole.len()));
        pair.sent(2);
        assert_eq!(buffer, whole);
    }
    let many = [b"x".as_slice(); 9];
    assert_eq!(pair.a.send_message(pair.to_b, 1, &many, 0, 2, 0), minus(abi::FI_EINVAL));
}

#[test]
fn messages_with_a_tag_and_without_never_match() {
    let pair = Pair::new();
    let (mut tagged, mut untagged) = ([0; 4], [0; 4]);
    assert_eq!(pair.b.receive(ANY, 0, !0, &mut tagged, 1), 0);
    assert_eq!(pair.b.receive_untagged(&mut untagged, 2, 0), 0);
    pair.a.send_surely(&[&pair.b], |a| a.send_untagged(pair.to_b, b"none", 3));
    match pair.b.next(&[&pair.a]) {
        Received::Ok { context, flags, .. } => {
            assert_eq!((context, flags), (2, abi::FI_MSG | abi::FI_RECV));
        }
        other @ Received::Error { .. } => panic!("{other:?}"),
    }
    assert_eq!(&untagged, b"none");
    assert!(matches!(pair.a.next(&[&pair.b]), Received::Ok { context: 3, .. }));
    pair.send(4, b"some");
    assert_eq!(pair.received().0, 1);
}

#[test]
fn receives_for_anybody_and_for_one_match_in_the_order_in_which_they_were_posted() {
    let pair = Pair::new();
    let (mut first, mut second) = ([0; 4], [0; 4]);
    for sources in [[ANY, pair.to_a], [pair.to_a, ANY]] {
        assert_eq!(pair.b.receive(sources[0], 6, 0, &mut first, 1), 0);
        assert_eq!(pair.b.receive(sources[1], 6, 0, &mut second, 2), 0);
        pair.send(6, b"1");
        pair.send(6, b"2");
        assert_eq!((pair.received().0, pair.received().0), (1, 2));
        assert_eq!((first[0], second[0]), (b'1', b'2'));
    }
}

#[test]
fn a_synchronous_send_completes_when_it_is_matched_or_discarded_and_not_before() {
    let pair = Pair::new();
    for flags in [abi::FI_MATCH_COMPLETE, abi::FI_MATCH_COMPLETE | abi::FI_INJECT] {
        let mut buffer = [0; 8];
        pair.a.send_surely(&[&pair.b], |a| a.send_message(pair.to_b, 1, &[b"sync"], 0, 1, flags));
        pair.unexpected(&[]);
        pair.a.progress();
        assert_eq!(pair.a.poll(), None, "nobody has taken it");
        assert_eq!(pair.b.receive(ANY, 1, 0, &mut buffer, 2), 0);
        assert_eq!(pair.received(), (2, 1, 4));
        pair.sent(1);
        pair.a.send_surely(&[&pair.b], |a| a.send_message(pair.to_b, 1, &[b"sync"], 0, 3, flags));
        pair.unexpected(&[]);
        pair.peek(1, 4, abi::FI_DISCARD);
        assert_eq!(pair.received(), (4, 1, 4));
        pair.sent(3);
    }
}

#[test]
fn a_delivered_send_completes_although_nobody_takes_it() {
    let pair = Pair::new();
    let flags = abi::FI_DELIVERY_COMPLETE;
    pair.a.send_surely(&[&pair.b], |a| a.send_message(pair.to_b, 1, &[b"kept"], 0, 1, flags));
    pair.sent(1);
}

#[test]
fn selective_completion_reports_what_asks_for_it_every_failure_and_every_peek() {
    let pair = Pair::with(Wanted { selective: true, counters: true, ..Wanted::default() });
    let mut buffer = [0; 8];
    assert_eq!(pair.b.receive(ANY, 1, 0, &mut buffer, 1), 0);
    pair.a.send_surely(&[&pair.b], |a| a.send(pair.to_b, 1, b"silent", 2));
    let mut loud = [0; 8];
    assert_eq!(pair.b.receive_message(2, 0, Some(&mut loud), 3, abi::FI_COMPLETION), 0);
    pair.a.send_surely(&[&pair.b], |a| a.send_message(pair.to_b, 2, &[b"loud"], 0, 4, abi::FI_COMPLETION));
    assert_eq!(pair.received(), (3, 2, 4), "the one before it was not reported");
    assert_eq!(&buffer[..6], b"silent");
    pair.sent(4);
    assert_eq!(pair.b.receive(ANY, 3, 0, &mut buffer[..1], 5), 0);
    pair.a.send_surely(&[&pair.b], |a| a.send(pair.to_b, 3, b"long", 6));
    assert_eq!(pair.failed(), (5, abi::FI_ETRUNC));
    pair.peek(4, 7, 0);
    assert_eq!(pair.failed(), (7, abi::FI_ENOMSG));
    let read = |counter: *mut abi::fid_cntr| {
        // SAFETY: an open counter.
        unsafe { (((*(*counter).ops).read)(counter), ((*(*counter).ops).readerr)(counter)) }
    };
    assert_eq!(read(pair.a.sent), (3, 0));
    assert_eq!(
        read(pair.b.received),
        (2, 1),
        "two that fit, one that did not; that there was none to peek at is no failure"
    );
}

#[test]
fn a_multi_receive_buffer_takes_one_message_after_another_and_tells_when_it_is_used_up() {
    let pair = Pair::with(Wanted { selective: true, ..Wanted::default() });
    let least: usize = 64;
    // SAFETY: an open endpoint, and a size.
    let set = unsafe {
        ((*(*pair.b.ep).ops).setopt)(
            pair.b.ep.cast(),
            0,
            0,
            std::ptr::from_ref(&least).cast(),
            size_of::<usize>(),
        )
    };
    assert_eq!(set, 0);
    let mut buffer = vec![0; 256];
    assert_eq!(pair.b.receive_untagged(&mut buffer, 1, abi::FI_MULTI_RECV | abi::FI_COMPLETION), 0);
    let payload = pattern(100, 8);
    for _ in 0..2 {
        pair.a.send_surely(&[&pair.b], |a| a.send_untagged(pair.to_b, &payload, 2));
    }
    let mut messages = 0;
    loop {
        let Received::Ok { context, flags, length, .. } = pair.b.next(&[&pair.a]) else { panic!("an error") };
        assert_eq!(context, 1);
        messages += usize::from(length == 100);
        if flags & abi::FI_MULTI_RECV != 0 {
            break;
        }
    }
    assert_eq!(messages, 2, "256 bytes hold two of 100, and what is left is less than 64");
    assert_eq!(buffer[..100], payload);
    assert_eq!(buffer[100..200], payload);
}

#[test]
fn sends_with_more_go_out_with_the_next_one_without() {
    let pair = Pair::new();
    let mut buffers = [[0u8; 4]; 3];
    for (context, buffer) in buffers.iter_mut().enumerate() {
        assert_eq!(pair.b.receive(ANY, context as u64, 0, buffer, context as u64), 0);
    }
    for tag in 0..3u64 {
        let flags = if tag < 2 { abi::FI_MORE } else { 0 };
        pair.a.send_surely(&[&pair.b], |a| a.send_message(pair.to_b, tag, &[b"more"], 0, 10 + tag, flags));
    }
    for tag in 0..3 {
        assert_eq!(pair.received(), (tag, tag, 4));
    }
    for tag in 0..3 {
        pair.sent(10 + tag);
    }
}

#[test]
fn a_removed_address_can_be_inserted_again() {
    let pair = Pair::new();
    pair.send(1, b"before");
    assert_eq!(pair.a.remove(pair.to_b), 0);
    assert_eq!(pair.a.remove(pair.to_b), -22);
    let again = pair.a.insert(&pair.b.name());
    pair.a.send_surely(&[&pair.b], |a| a.send(again, 2, b"after", 3));
    pair.sent(3);
    let mut buffer = [0; 8];
    assert_eq!(pair.b.receive(ANY, 2, 0, &mut buffer, 4), 0);
    assert_eq!(pair.received(), (4, 2, 5));
}

#[test]
fn an_endpoint_whose_flags_inject_copies_what_it_sends() {
    let pair = Pair::new();
    let mut flags = abi::FI_SEND | abi::FI_INJECT;
    // SAFETY: an open endpoint, and flags.
    let set = unsafe { common::side::control(pair.a.ep, abi::FI_SETOPSFLAG, (&raw mut flags).cast()) };
    assert_eq!(set, 0);
    let mut payload = *b"first";
    let mut buffer = [0u8; 5];
    assert_eq!(pair.b.receive(ANY, 1, 0, &mut buffer, 1), 0);
    pair.a.send_surely(&[&pair.b], |a| a.send(pair.to_b, 1, &payload, 2));
    payload.fill(0);
    assert_eq!(pair.received(), (1, 1, 5));
    assert_eq!(&buffer, b"first");
    pair.sent(2);
    assert_eq!(pair.a.send(pair.to_b, 1, &[0; 20_000], 3), minus(abi::FI_EMSGSIZE));
}
