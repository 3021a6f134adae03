//! Long lists, and memory that is none.

use super::LONG;
use super::common::pair::{ANY, LAST, Pair};
use super::common::{Received, Side, is_offloaded, is_shared, minus};
use tagmatch::provider::abi;

/// Receives that wait, and messages that nobody has asked for.
const POSTED: u64 = 1_000_000;
const UNEXPECTED: u64 = 100_000;
/// Of their receives.
const OTHERS: u64 = 1 << 40;

/// What a sender's completions were, each of which comes once.
struct Sent(Vec<bool>);

impl Sent {
    fn hear(&mut self, side: &Side) {
        while let Some(end) = side.poll() {
            let Received::Ok { context, .. } = end else { panic!("{end:?}") };
            let place = &mut self.0[usize::try_from(context).unwrap()];
            assert!(!std::mem::replace(place, true), "{context} ended twice");
        }
    }
}

#[test]
fn a_million_receives_and_a_hundred_thousand_messages_of_one_peer_wait_and_all_are_matched() {
    let pair = Pair::new();
    let (mut common, mut last) = ([0; 8], [0; 8]);
    for number in 0..POSTED {
        assert_eq!(pair.b.receive(ANY, OTHERS | number, 0, &mut common, number), 0, "receive {number}");
    }
    let numbers: Vec<[u8; 8]> = (0..UNEXPECTED).map(u64::to_le_bytes).collect();
    let mut sent = Sent(vec![false; numbers.len()]);
    for (number, payload) in (0..).zip(&numbers) {
        while pair.a.send(pair.to_b, number, payload, number) == minus(abi::FI_EAGAIN) {
            sent.hear(&pair.a);
            pair.b.progress();
        }
    }
    // What a receive waits for is not stuck behind what nobody wants.
    assert_eq!(pair.b.receive(ANY, LAST, 0, &mut last, LAST), 0);
    pair.a.send_surely(&[&pair.b], |a| a.inject(pair.to_b, LAST, b"last", None));
    let end = loop {
        sent.hear(&pair.a);
        if let Some(end) = pair.b.poll() {
            break end;
        }
    };
    assert!(matches!(end, Received::Ok { context: LAST, length: 4, .. }), "{end:?}");
    for number in (0..UNEXPECTED).rev() {
        let mut buffer = [0; 8];
        assert_eq!(pair.b.receive(ANY, number, 0, &mut buffer, POSTED + number), 0);
        let end = loop {
            if let Some(end) = pair.b.poll() {
                break end;
            }
            sent.hear(&pair.a);
        };
        let Received::Ok { context, tag, length: 8, .. } = end else { panic!("{end:?}") };
        assert_eq!((context, tag, u64::from_le_bytes(buffer)), (POSTED + number, number, number));
    }
    while sent.0.contains(&false) {
        pair.b.progress();
        sent.hear(&pair.a);
    }
    // Those that were posted first are all there yet.
    for number in [POSTED - 1, 0, POSTED / 2] {
        pair.a.send_surely(&[&pair.b], |a| a.inject(pair.to_b, OTHERS | number, b"m", None));
        assert_eq!(pair.received(), (number, OTHERS | number, 1));
    }
}

/// Memory that is mapped and cannot be read.
fn unreadable(length: usize) -> &'static [u8] {
    // SAFETY: a new mapping, in nobody's place.
    let place = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    assert_ne!(place, libc::MAP_FAILED);
    // SAFETY: it is mapped to the end of the process, and nobody reads it but the kernel, which can say no.
    unsafe { std::slice::from_raw_parts(place.cast(), length) }
}

#[test]
fn a_send_from_memory_that_is_none_ends_once_with_bad_address_and_what_follows_arrives() {
    let pair = Pair::new();
    let mut buffer = vec![0xEE; 1 << 20];
    pair.unexpected(&[]);
    // Under a list what is longer goes by rendezvous. Into shared memory this process copies by itself, as it does for an
    // inject: its own memory must be memory.
    let eager = match (is_shared(), is_offloaded()) {
        (true, _) => 0,
        (false, true) => 2,
        (false, false) => 4,
    };
    for length in [4096, 16_384, 60_000, 1 << 20].into_iter().take(eager) {
        assert_eq!(pair.b.receive(ANY, 1, 0, &mut buffer, 1), 0);
        let result = pair.a.send(pair.to_b, 1, unreadable(length), 7);
        assert_eq!(result, 0, "{length} bytes");
        let end = pair.a.next(&[&pair.b]);
        assert!(
            matches!(end, Received::Error { context: 7, error: abi::FI_EFAULT, .. }),
            "{length}: {end:?}"
        );
        pair.send(1, b"next");
        assert_eq!(pair.received(), (1, 1, 4), "after {length} bytes");
        assert_eq!(buffer[..5], *b"next\xEE");
        buffer.fill(0xEE);
        assert_eq!(pair.a.poll(), None);
    }
    // By rendezvous the receive was matched before anything was read: both end.
    let mut buffer = vec![0xEE; LONG];
    assert_eq!(pair.b.receive(ANY, 1, 0, &mut buffer, 1), 0);
    pair.a.send_surely(&[&pair.b], |a| a.send(pair.to_b, 1, unreadable(LONG), 7));
    if is_offloaded() {
        // What a list has matched ends with the link, as on a card whose READ fails.
        assert_eq!(pair.failed(), (1, abi::FI_ECONNRESET));
        let end = pair.a.next(&[&pair.b]);
        assert!(matches!(end, Received::Error { context: 7, .. }), "{end:?}");
        return;
    }
    assert_eq!(pair.failed(), (1, abi::FI_EIO));
    let end = pair.a.next(&[&pair.b]);
    assert!(matches!(end, Received::Error { context: 7, error: abi::FI_EIO, .. }), "{end:?}");
    assert!(buffer.iter().all(|byte| *byte == 0xEE));
    assert_eq!(pair.b.receive(ANY, 1, 0, &mut buffer, 1), 0);
    pair.send(1, b"next");
    assert_eq!(pair.received(), (1, 1, 4));
}
