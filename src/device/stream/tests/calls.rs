//! How many calls a long message takes whose bytes are all there, by what becomes of it.

use super::scripted::Scene;
use crate::device::tests::streamed::Line as _;
use crate::device::tests::{Memory, Policy, Recorder, framed, pattern};

/// Calls that read an eager message of so many bytes, and one more behind it.
fn reads(length: usize, policy: Policy) -> usize {
    let mut scene = Scene::<false>::new();
    let mut ear = Recorder::default();
    ear.policy = policy;
    let frame = |payload: &[u8]| {
        let header = [3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        framed(&[&header, payload].concat())
    };
    scene.give(&[frame(&pattern(1, length)), frame(b"last")].concat());
    for _ in 0..length {
        scene.transport().progress(10, &mut ear).expect("it works");
        if ear.arrivals().len() == 2 {
            return scene.bytes().reads;
        }
    }
    panic!("of two messages came {:?}", ear.arrivals());
}

#[test]
fn a_long_message_takes_a_call_for_each_64_kib_whatever_becomes_of_it() {
    let length = 2 << 20;
    let into = |room: usize| Policy::Accept([Memory::zeros(room).buffer()].into());
    let many = Memory::cut(vec![0; length], &[length / 100; 100]);
    for (what, policy) in [
        ("held", Policy::Hold),
        ("refused", Policy::Discard),
        ("accepted", into(length)),
        ("accepted by a receive of no bytes", into(0)),
        ("accepted by a receive of 100 bytes", into(100)),
        ("accepted by a receive of 64 KiB", into(1 << 16)),
        ("accepted by a receive of all but 1 byte", into(length - 1)),
        ("accepted by a receive of 100 parts", Policy::Accept([many.buffer()].into())),
    ] {
        let reads = reads(length, policy);
        assert!(reads <= length / (64 << 10) + 12, "{reads} calls, {what}");
    }
}
