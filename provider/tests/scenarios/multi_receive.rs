//! Buffers for several messages: B20 (a buffer's end is told once, and always), B21 (what does not fit what is left).

use super::common::pair::{ANY, Pair, pattern};
use super::common::{Side, Wanted, minus};
use super::order::Random;
use tagmatch::provider::abi::{self, fi_cq_err_entry, fi_cq_tagged_entry};

const MULTI: u64 = abi::FI_MULTI_RECV;

fn set_least(side: &Side, least: usize) {
    // SAFETY: an open endpoint, and a size.
    let set = unsafe {
        let value = std::ptr::from_ref(&least).cast();
        ((*(*side.ep).ops).setopt)(side.ep.cast(), 0, 0, value, size_of::<usize>())
    };
    assert_eq!(set, 0);
}

/// The next entry as it is written: context, flags, length, and where the payload is.
fn next(pair: &Pair) -> (u64, u64, usize, u64) {
    for _ in 0..super::common::ROUNDS {
        // SAFETY: zeros are a valid entry.
        let mut entry: fi_cq_tagged_entry = unsafe { std::mem::zeroed() };
        // SAFETY: an open queue, and room for one entry.
        let read = unsafe { ((*(*pair.b.cq).ops).read)(pair.b.cq, (&raw mut entry).cast(), 1) };
        if read == 1 {
            return (entry.op_context.addr() as u64, entry.flags, entry.len, entry.buf.addr() as u64);
        }
        assert_eq!(read, minus(abi::FI_EAGAIN));
        pair.a.progress();
    }
    panic!("nothing came");
}

/// How a message ended.
#[derive(PartialEq, Eq, Debug)]
struct End {
    context: usize,
    length: usize,
    /// Bytes that did not fit.
    cut: Option<usize>,
    /// It ends its buffer.
    is_last: bool,
}

/// The next entry, whole or cut.
fn next_of_either(pair: &Pair) -> End {
    for _ in 0..super::common::ROUNDS {
        // SAFETY: zeros are a valid entry.
        let mut entry: fi_cq_tagged_entry = unsafe { std::mem::zeroed() };
        // SAFETY: an open queue, and room for one entry.
        let read = unsafe { ((*(*pair.b.cq).ops).read)(pair.b.cq, (&raw mut entry).cast(), 1) };
        if read == 1 {
            let (context, is_last) = (entry.op_context.addr(), entry.flags & MULTI != 0);
            return End { context, length: entry.len, cut: None, is_last };
        }
        if read == minus(abi::FI_EAVAIL) {
            let cut = next_error(pair);
            assert_eq!(u64::try_from(cut.err).unwrap(), abi::FI_ETRUNC);
            let (context, is_last) = (cut.op_context.addr(), cut.flags & MULTI != 0);
            return End { context, length: cut.len, cut: Some(cut.olen), is_last };
        }
        pair.a.progress();
    }
    panic!("nothing came");
}

/// The next entry, which is an error.
fn next_error(pair: &Pair) -> fi_cq_err_entry {
    for _ in 0..super::common::ROUNDS {
        // SAFETY: zeros are a valid entry.
        let mut entry: fi_cq_err_entry = unsafe { std::mem::zeroed() };
        // SAFETY: an open queue, and an entry.
        let read = unsafe { ((*(*pair.b.cq).ops).readerr)(pair.b.cq, &raw mut entry, 0) };
        if read == 1 {
            return entry;
        }
        pair.b.progress();
        pair.a.progress();
    }
    panic!("no error came");
}

#[test]
fn b20_each_buffer_is_filled_in_order_and_its_end_is_told_once_and_last() {
    // Entries that nobody asked for come for the ends of buffers alone.
    for selective in [false, true] {
        for seed in 0..6 {
            let pair = Pair::with(Wanted { selective, ..Wanted::default() });
            let mut random = Random(seed);
            // No message is longer than that, so that none is cut.
            let least = [300, 301, 700][random.below(3)];
            set_least(&pair.b, least);
            let mut buffers = vec![vec![0u8; 2000]; 40];
            let posted = &mut buffers.iter_mut().map(|buffer| buffer.as_mut_slice());
            let post = |context: u64, buffer: &mut [u8]| {
                let flags = MULTI | if selective { 0 } else { abi::FI_COMPLETION };
                assert_eq!(pair.b.receive_untagged(buffer, context, flags), 0);
            };
            let mut contexts = 1..;
            for _ in 0..2 {
                post(contexts.next().unwrap(), posted.next().unwrap());
            }
            let payloads: Vec<Vec<u8>> = (0..100).map(|number| pattern(random.below(300), number)).collect();
            for payload in &payloads {
                pair.a.send_surely(&[&pair.b], |a| {
                    let result = a.send_untagged(pair.to_b, payload, 900);
                    if result == minus(abi::FI_EAGAIN) { result } else { 0 }
                });
            }
            // What the buffers must hold: each message behind the last, until less than `least` is left.
            let (mut buffer, mut at, mut last) = (1u64, 0usize, 0);
            let mut starts = vec![0u64];
            for payload in &payloads {
                let is_last = 2000 - at - payload.len().min(2000 - at) < least;
                let placed = payload.len().min(2000 - at);
                at += placed;
                if !selective || is_last {
                    let (context, flags, length, from) = next(&pair);
                    if at == placed && !selective {
                        starts.push(from);
                    }
                    assert_eq!((context, flags & MULTI != 0), (buffer, is_last), "seed {seed}");
                    assert_eq!(length, placed, "seed {seed}");
                    if !selective {
                        let start = starts[usize::try_from(buffer).unwrap()];
                        assert_eq!(from, start + (at - placed) as u64, "seed {seed}");
                    }
                }
                if is_last {
                    (buffer, at, last) = (buffer + 1, 0, last + 1);
                    post(contexts.next().unwrap(), posted.next().unwrap());
                }
            }
            assert!(last > 4, "seed {seed}");
            assert_eq!(pair.b.poll(), None, "seed {seed}");
            // All bytes, one message behind the other, in the order of the buffers.
            let (mut buffer, mut at) = (0, 0);
            for payload in &payloads {
                let placed = payload.len().min(2000 - at);
                assert_eq!(buffers[buffer][at..at + placed], payload[..placed], "seed {seed}");
                at += placed;
                if 2000 - at < least {
                    (buffer, at) = (buffer + 1, 0);
                }
            }
        }
    }
}

#[test]
fn b20_a_cancelled_buffer_keeps_its_messages_and_ends_once_and_the_next_takes_what_follows() {
    let pair = Pair::new();
    set_least(&pair.b, 16);
    let (mut first, mut second) = ([0u8; 256], [0u8; 256]);
    assert_eq!(pair.b.receive_untagged(&mut first, 1, MULTI), 0);
    assert_eq!(pair.b.receive_untagged(&mut second, 2, MULTI), 0);
    let send = |payload: &[u8]| {
        pair.a.send_surely(&[&pair.b], |a| a.send_untagged(pair.to_b, payload, 900));
        assert_eq!(pair.a.next(&[&pair.b]).context(), 900);
    };
    send(b"one");
    assert_eq!((next(&pair).0, &first[..3]), (1, b"one".as_slice()));
    assert_eq!((pair.b.cancel(1), pair.b.cancel(1)), (0, 0));
    assert_eq!(pair.failed(), (1, abi::FI_ECANCELED));
    send(b"two");
    assert_eq!((next(&pair).0, &second[..3]), (2, b"two".as_slice()));
    assert_eq!(&first[..4], b"one\0", "nothing more was written to it");
    assert_eq!(pair.b.cancel(2), 0);
    assert_eq!(pair.failed(), (2, abi::FI_ECANCELED));
    assert_eq!(pair.b.poll(), None);
}

#[test]
fn b21_a_message_longer_than_what_is_left_is_cut_there_and_the_next_one_is_whole_elsewhere() {
    // Eager, and by rendezvous.
    for length in [100, super::LONG] {
        let pair = Pair::new();
        set_least(&pair.b, 8);
        let room = length + 40;
        let (mut first, mut second) = (vec![0xEEu8; room + 8], vec![0u8; room]);
        assert_eq!(pair.b.receive_untagged(&mut first[..room], 1, MULTI), 0);
        assert_eq!(pair.b.receive_untagged(&mut second, 2, MULTI), 0);
        let payloads = [pattern(length, 1), pattern(length, 2), pattern(length, 3)];
        for payload in &payloads {
            pair.a.send_surely(&[&pair.b], |a| a.send_untagged(pair.to_b, payload, 900));
        }
        let mut ends: Vec<End> = (0..3).map(|_| next_of_either(&pair)).collect();
        // The buffer's end is told with the last message of it that is there, and never with another's.
        let last = ends.iter().rposition(|end| end.context == 1).unwrap();
        for (place, end) in ends.iter_mut().enumerate() {
            assert_eq!(std::mem::take(&mut end.is_last), place == last, "{length} bytes");
        }
        if length > 100 {
            // Reads of payloads end as they like: of 40 bytes sooner than of many.
            ends.sort_by_key(|end| (end.context, end.cut));
        }
        let end = |context, length, cut| End { context, length, cut, is_last: false };
        let expected = [end(1, length, None), end(1, 40, Some(length - 40)), end(2, length, None)];
        assert_eq!(ends, expected);
        assert_eq!(first[..length], payloads[0]);
        assert_eq!(first[length..room], payloads[1][..40]);
        assert!(first[room..].iter().all(|byte| *byte == 0xEE), "written past the buffer");
        assert_eq!(second[..length], payloads[2]);
        (0..3).for_each(|_| assert_eq!(pair.a.next(&[&pair.b]).context(), 900));
    }
}

#[test]
fn b20_messages_that_were_there_before_the_buffer_fill_it_like_others() {
    let pair = Pair::new();
    set_least(&pair.b, 50);
    for _ in 0..5 {
        pair.a.send_surely(&[&pair.b], |a| {
            // SAFETY: an open endpoint, and bytes that are copied.
            unsafe { ((*(*a.ep).msg).inject)(a.ep, b"0123456789".as_ptr().cast(), 10, pair.to_b) }
        });
    }
    let mut last = [0; 4];
    assert_eq!(pair.b.receive(ANY, 1, 0, &mut last, 9), 0);
    pair.a.send_surely(&[&pair.b], |a| a.inject(pair.to_b, 1, b"last", None));
    assert_eq!(pair.received().0, 9);
    let (mut first, mut second) = ([0u8; 80], [0u8; 80]);
    assert_eq!(pair.b.receive_untagged(&mut first, 1, MULTI), 0);
    assert_eq!(pair.b.receive_untagged(&mut second, 2, MULTI), 0);
    let told: Vec<(u64, bool)> =
        (0..5).map(|_| next(&pair)).map(|(context, flags, ..)| (context, flags & MULTI != 0)).collect();
    assert_eq!(told, [(1, false), (1, false), (1, false), (1, true), (2, false)]);
}
