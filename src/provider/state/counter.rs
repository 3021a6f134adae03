//! A counter of completions, and of those that failed (`fi_cntr(3)`).

use std::sync::Arc;

use super::queue::Waiting;
use crate::provider::wait::WaitSet;

/// See the file.
#[derive(Debug)]
pub(in crate::provider) struct Counter {
    pub(in crate::provider) value: u64,
    pub(in crate::provider) errors: u64,
    /// How often a poll set would have said that it changed, and how often it had when the application itself last gave
    /// it a value, which is no news (`fi_poll(3)`).
    changes: u64,
    known: u64,
    /// What it was, of both, when somebody was last told.
    told: (u64, u64),
    /// Endpoints that are counted here: reading moves them on.
    pub(in crate::provider) endpoints: Vec<usize>,
    /// Poll sets that it is in.
    pub(in crate::provider) sets: usize,
    pub(in crate::provider) waiting: Waiting,
}

impl Counter {
    pub(in crate::provider) fn new(set: Option<Arc<WaitSet>>) -> Self {
        Self {
            value: 0,
            errors: 0,
            changes: 0,
            known: 0,
            told: (0, 0),
            endpoints: Vec::new(),
            sets: 0,
            waiting: Waiting::new(set),
        }
    }

    /// Its value and its errors, which somebody is told.
    pub(in crate::provider) fn tell(&mut self) -> (u64, u64) {
        self.told = (self.value, self.errors);
        self.told
    }

    /// The same as they were when somebody was last told.
    pub(in crate::provider) fn told(&self) -> (u64, u64) {
        self.told
    }

    /// A completion.
    #[inline]
    pub(in crate::provider) fn count(&mut self) {
        self.value = self.value.wrapping_add(1);
        self.changed();
    }

    /// One that failed, or several of which the application says so.
    pub(in crate::provider) fn add_error(&mut self, value: u64) {
        self.set_error(self.errors.wrapping_add(value));
    }

    pub(in crate::provider) fn set_error(&mut self, errors: u64) {
        self.errors = errors;
        self.changed();
    }

    /// The application adds to it.
    pub(in crate::provider) fn add(&mut self, value: u64) {
        self.set(self.value.wrapping_add(value));
    }

    /// The application gives it a value.
    pub(in crate::provider) fn set(&mut self, value: u64) {
        self.value = value;
        self.known = self.changes;
        self.waiting.wake();
    }

    #[inline]
    fn changed(&mut self) {
        self.changes = self.changes.wrapping_add(1);
        self.waiting.wake();
    }

    /// Whether it changed since `seen`, which is what it was at the last such question.
    pub(in crate::provider) fn has_changed(&self, seen: &mut u64) -> bool {
        let before = std::mem::replace(seen, self.changes).max(self.known);
        self.changes > before
    }
}
