//! Threads that post and poll, and buffers that devices hold.

pub(in crate::domain) mod buffer;
mod owner;
mod threads;

use super::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Notes what it is given.
#[derive(Debug, Default)]
struct Log {
    works: Vec<u32>,
    /// How many, to be seen without a call.
    count: Arc<AtomicU64>,
}

/// Work that makes the log panic.
const POISON: u32 = u32::MAX;

impl Handle<u32> for Log {
    /// How many had been noted before.
    type Done = usize;

    fn handle_now(&mut self, work: u32) -> usize {
        assert_ne!(work, POISON, "a work that panics");
        self.works.push(work);
        self.count.fetch_add(1, Ordering::Relaxed);
        self.works.len() - 1
    }

    fn handle_queued(&mut self, work: u32) {
        self.handle_now(work);
    }
}

/// Runs a call that must panic on a thread of its own.
fn panics(call: impl FnOnce() + Send) {
    std::thread::scope(|scope| assert!(scope.spawn(call).join().is_err(), "it should have panicked"));
}
