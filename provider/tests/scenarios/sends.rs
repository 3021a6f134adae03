//! `FI_MORE`: what was delayed goes out with the next call that does not say so, also where that one is refused.

use super::common::pair::{ANY, Pair};
use super::common::{ROUNDS, minus};
use tagmatch::provider::abi;

/// A call that is refused.
type Refused = fn(&Pair) -> isize;

#[test]
fn what_was_delayed_with_more_goes_out_when_a_later_call_is_refused() {
    let refused: [(&str, Refused, u64); 8] = [
        (
            "an inject that is too long",
            |pair| pair.a.inject(pair.to_b, 9, &[0; 16_385], None),
            abi::FI_EMSGSIZE,
        ),
        (
            "a message to be copied that is too long",
            |pair| pair.a.send_message(pair.to_b, 9, &[&[0; 16_385]], 0, 1, abi::FI_INJECT),
            abi::FI_EMSGSIZE,
        ),
        (
            "too many stretches",
            |pair| pair.a.send_message(pair.to_b, 9, &[b"x".as_slice(); 9], 0, 1, 0),
            abi::FI_EINVAL,
        ),
        (
            "too many stretches with more",
            |pair| pair.a.send_message(pair.to_b, 9, &[b"x".as_slice(); 9], 0, 1, abi::FI_MORE),
            abi::FI_EINVAL,
        ),
        ("nobody's address", |pair| pair.a.send(77, 9, b"x", 1), abi::FI_EADDRNOTAVAIL),
        ("data too wide", |pair| pair.a.send_data(pair.to_b, 9, b"x", 1 << 32, 1), abi::FI_EINVAL),
        (
            "a flag that no send has",
            |pair| pair.a.send_message(pair.to_b, 9, &[b"x"], 0, 1, abi::FI_PEEK),
            abi::FI_EBADFLAGS,
        ),
        (
            "a receive of nobody's claim",
            |pair| pair.a.receive_message(9, 0, None, 1, abi::FI_CLAIM),
            abi::FI_EINVAL,
        ),
    ];
    for (what, call, code) in refused {
        let pair = Pair::new();
        pair.unexpected(&[]);
        let mut buffers = [[0u8; 4]; 3];
        for (context, buffer) in (0..).zip(&mut buffers) {
            assert_eq!(pair.b.receive(ANY, context, 0, buffer, context), 0);
        }
        for tag in 0..3 {
            assert_eq!(pair.a.send_message(pair.to_b, tag, &[b"more"], 0, 10 + tag, abi::FI_MORE), 0);
        }
        assert_eq!(call(&pair), minus(code), "{what}");
        // A does nothing more: what arrives now went out with that call.
        let arrived: Vec<u64> =
            (0..ROUNDS / 20).filter_map(|_| pair.b.poll()).map(|end| end.context()).take(3).collect();
        assert_eq!(arrived, [0, 1, 2], "{what}");
        (0..3).for_each(|tag| pair.sent(10 + tag));
    }
}
