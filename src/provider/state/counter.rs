//! A counter of completions, and of those that failed (`fi_cntr(3)`).

use std::sync::Arc;

use super::queue::Waiting;
use crate::provider::wait::WaitSet;

/// See the file.
#[derive(Debug)]
pub(in crate::provider) struct Counter {
    pub(in crate::provider) value: u64,
    pub(in crate::provider) errors: u64,
    /// Endpoints that are counted here: reading moves them on.
    pub(in crate::provider) endpoints: Vec<usize>,
    pub(in crate::provider) waiting: Waiting,
}

impl Counter {
    pub(in crate::provider) fn new(set: Option<Arc<WaitSet>>) -> Self {
        Self { value: 0, errors: 0, endpoints: Vec::new(), waiting: Waiting::new(set) }
    }

    #[inline]
    pub(in crate::provider) fn add(&mut self, value: u64) {
        self.value = self.value.wrapping_add(value);
        self.waiting.wake();
    }

    pub(in crate::provider) fn add_error(&mut self, value: u64) {
        self.errors = self.errors.wrapping_add(value);
        self.waiting.wake();
    }
}
