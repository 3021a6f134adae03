//! The rings of the library over words and bytes of loom's, and what goes through them.

mod dying;
mod offering;
mod passing;
mod region;
#[allow(dead_code, unreachable_pub, reason = "it is the library's")]
#[path = "../../../../../src/device/shm/ring/mod.rs"]
mod ring;
#[allow(dead_code, unreachable_pub, reason = "it is the library's")]
#[path = "../../../../../src/device/shm/slip.rs"]
mod slip;
mod sync;
mod waiting;

/// What a slip sees beside it.
mod stream {
    pub(super) const RING_BYTES: std::ops::RangeInclusive<usize> = 1..=(64 << 20);
}

use std::collections::BTreeSet;
use std::iter;
use std::sync::{Arc, Mutex};

use crate::device::sockets::sys::Part;
use crate::explore;
use ring::Rings;

/// Write a message, if it has room.
fn write(rings: &mut Rings, message: &[u8]) -> bool {
    rings.write_whole(message.len(), iter::once(Part::Bytes(message)))
}

/// How a message is read.
#[derive(Clone, Copy, Debug)]
enum Reading {
    /// What is there is looked at, and taken.
    Peeking,
    /// What is there is looked at, and the first byte of it taken, as of a header.
    Heads,
    /// A byte at a time.
    Bytes,
}

/// Read what is seen to be there: whether there was something.
fn read(rings: &mut Rings, how: Reading, into: &mut Vec<u8>) -> bool {
    let mut bytes = [0; 64];
    let count = match how {
        Reading::Peeking | Reading::Heads => {
            let (count, [first]) = rings.peek::<1>().expect("the numbers can be");
            let count = if matches!(how, Reading::Heads) { count.min(1) } else { count };
            if count > 0 {
                rings.take_bytes(0, &mut bytes[..count]);
                assert_eq!(bytes[0], first, "what is looked at is what is taken");
            }
            count
        }
        Reading::Bytes => rings.read(&mut bytes[..1]).expect("the numbers can be"),
    };
    into.extend_from_slice(&bytes[..count]);
    count > 0
}

/// What a model comes to, in whatever order its steps go.
fn outcomes<T: Ord + Send + 'static>(
    preemptions: usize,
    model: impl Fn() -> T + Sync + Send + 'static,
) -> BTreeSet<T> {
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let seeing = seen.clone();
    explore(Some(preemptions), move || {
        let outcome = model();
        seeing.lock().expect("no panic").insert(outcome);
    });
    Mutex::into_inner(Arc::into_inner(seen).expect("all has ended")).expect("no panic")
}
