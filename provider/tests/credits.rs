//! Few credits and many messages (B35): 16 eager messages and 64 KiB of them, by the parameters of this program
//! (`common`).

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "a call of C through a table of an object is to read the table and to call"
)]

mod common;

use common::pair::{ANY, Pair, pattern};
use common::{ROUNDS, Received, Side, minus};
use tagmatch::provider::abi;

#[test]
fn b35_1_both_sides_send_at_once_and_all_arrives_in_order() {
    let pair = Pair::new();
    let sides = [(&pair.a, pair.to_b), (&pair.b, pair.to_a)];
    let mut sent = [0u64; 2];
    let mut got = [0u64; 2];
    let mut again = 0;
    let mut buffers = [[0u8; 64]; 2];
    for (which, (side, _)) in sides.iter().enumerate() {
        assert_eq!(side.receive(ANY, 1, 0, &mut buffers[which], 0), 0);
    }
    for _ in 0..ROUNDS {
        for (which, (side, to)) in sides.iter().enumerate() {
            while sent[which] < 1000 {
                let mut message = [0; 64];
                message[..8].copy_from_slice(&sent[which].to_be_bytes());
                match side.inject(*to, 1, &message, None) {
                    0 => sent[which] += 1,
                    code => {
                        assert_eq!(code, minus(abi::FI_EAGAIN));
                        again += 1;
                        break;
                    }
                }
            }
            if let Some(end) = side.poll() {
                assert!(matches!(end, Received::Ok { length: 64, .. }), "{end:?}");
                assert_eq!(buffers[which][..8], got[which].to_be_bytes());
                got[which] += 1;
                if got[which] < 1000 {
                    assert_eq!(side.receive(ANY, 1, 0, &mut buffers[which], got[which]), 0);
                }
            }
        }
        if got == [1000; 2] {
            break;
        }
    }
    assert_eq!((sent, got), ([1000; 2], [1000; 2]));
    assert!(again > 0);
}

#[test]
fn b35_2_what_a_receive_waits_for_is_not_stuck_behind_what_nobody_wants_yet() {
    let pair = Pair::new();
    let (first, other) = (pattern(100 << 10, 1), pattern(40_000, 2));
    pair.a.send_surely(&[&pair.b], |a| a.send(pair.to_b, 0, &first, 0));
    for number in 1..200 {
        pair.a.send_surely(&[&pair.b], |a| a.send(pair.to_b, number, &other, number));
    }
    // The last of all is what is waited for, with 199 before it of which nobody has taken one.
    for tag in [199, 0, 100] {
        let mut buffer = vec![0; first.len()];
        assert_eq!(pair.b.receive(ANY, tag, 0, &mut buffer, 1000), 0);
        let expected = if tag == 0 { &first } else { &other };
        assert_eq!(pair.received(), (1000, tag, expected.len()));
        assert_eq!(buffer[..expected.len()], expected[..]);
    }
    for tag in (1..199).filter(|tag| *tag != 100) {
        let mut buffer = vec![0; other.len()];
        assert_eq!(pair.b.receive(ANY, tag, 0, &mut buffer, 1000), 0);
        assert_eq!(pair.received(), (1000, tag, other.len()));
        assert_eq!(buffer, other);
    }
    let mut ends: Vec<u64> = (0..200).map(|_| pair.a.next(&[&pair.b]).context()).collect();
    ends.sort_unstable();
    assert_eq!(ends, (0..200).collect::<Vec<_>>());
}

#[test]
fn b35_3_a_receiver_that_does_nothing_holds_its_sender_back_and_loses_nothing() {
    let pair = Pair::new();
    pair.unexpected(&[]);
    let mut sent = 0u64;
    // The receiver makes no progress: in the end the sender is told to try again, whatever it does.
    let mut refused = 0;
    while refused < 1000 {
        match pair.a.inject(pair.to_b, 1, &sent.to_be_bytes(), None) {
            0 => (sent, refused) = (sent + 1, 0),
            code => {
                assert_eq!(code, minus(abi::FI_EAGAIN));
                pair.a.progress();
                refused += 1;
            }
        }
        assert!(sent < 1_000_000, "nothing holds it back");
    }
    for number in 0..sent {
        let mut buffer = [0; 8];
        assert_eq!(pair.b.receive(ANY, 1, 0, &mut buffer, 1), 0);
        assert_eq!(pair.received(), (1, 1, 8));
        assert_eq!(buffer, number.to_be_bytes());
    }
    println!("{sent} messages until the sender was held back");
    // And it goes on.
    let mut buffer = [0; 8];
    assert_eq!(pair.b.receive(ANY, 2, 0, &mut buffer, 2), 0);
    pair.a.send_surely(&[&pair.b], |a| a.inject(pair.to_b, 2, b"on", None));
    assert_eq!(pair.received(), (2, 2, 2));
}

#[test]
fn b35_4_eight_senders_share_a_queue_of_completions() {
    let receiver = Side::new();
    let senders: Vec<Side> = (0..8).map(|_| Side::new()).collect();
    let to: Vec<u64> = senders.iter().map(|sender| sender.insert(&receiver.name())).collect();
    let mut next = [0u64; 8];
    let mut got = [0u64; 8];
    let mut buffers = [[0u8; 1000]; 8];
    for (tag, buffer) in (0..).zip(&mut buffers) {
        assert_eq!(receiver.receive(ANY, tag, 0, buffer, tag), 0);
    }
    for _ in 0..ROUNDS {
        for (which, sender) in senders.iter().enumerate() {
            let mut message = [0; 1000];
            message[..8].copy_from_slice(&next[which].to_be_bytes());
            while next[which] < 500 && sender.inject(to[which], which as u64, &message, None) == 0 {
                next[which] += 1;
                message[..8].copy_from_slice(&next[which].to_be_bytes());
            }
            sender.progress();
        }
        // More come than are read: nothing is lost for want of room in the queue.
        if let Some(end) = receiver.poll() {
            let Received::Ok { context, length: 1000, .. } = end else { panic!("{end:?}") };
            let which = usize::try_from(context).unwrap();
            assert_eq!(buffers[which][..8], got[which].to_be_bytes());
            got[which] += 1;
            if got[which] < 500 {
                assert_eq!(receiver.receive(ANY, context, 0, &mut buffers[which], context), 0);
            }
        }
        if got == [500; 8] {
            return;
        }
    }
    panic!("{got:?}");
}
