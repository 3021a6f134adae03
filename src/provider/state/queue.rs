//! A completion queue: entries in the order in which they came, errors among them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::provider::abi;
use crate::provider::error::{Code, Outcome, code};
use crate::provider::wait::WaitSet;

/// What an entry of any format says, with what an error adds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::provider) struct Entry {
    pub(in crate::provider) context: u64,
    pub(in crate::provider) flags: u64,
    pub(in crate::provider) length: u64,
    pub(in crate::provider) buffer: u64,
    pub(in crate::provider) data: u64,
    pub(in crate::provider) tag: u64,
    /// `fi_addr_t` of the sender.
    pub(in crate::provider) source: u64,
    /// Of an error; else 0.
    pub(in crate::provider) error: i32,
    /// Bytes that did not fit.
    pub(in crate::provider) overflow: u64,
}

/// Who waits for a queue or a counter, and with what.
#[derive(Debug, Default)]
pub(in crate::provider) struct Waiting {
    /// None of `FI_WAIT_NONE`.
    pub(in crate::provider) set: Option<Arc<WaitSet>>,
    /// Somebody may be waiting, until then at the latest, and must be told of what comes.
    armed_until: Option<Duration>,
    /// `fi_cq_signal(3)` was called, and nobody has been told yet.
    is_signalled: bool,
}

impl Waiting {
    pub(in crate::provider) fn new(set: Option<Arc<WaitSet>>) -> Self {
        Self { set, ..Self::default() }
    }

    /// There is something for whoever waits.
    #[inline]
    pub(in crate::provider) fn wake(&mut self) {
        if self.armed_until.take().is_some()
            && let Some(set) = &self.set
        {
            set.signal();
        }
    }

    /// Somebody will wait, until then at the latest.
    pub(in crate::provider) fn arm(&mut self, deadline: Option<Duration>) {
        if let Some(set) = &self.set {
            set.prepare(deadline);
        }
        self.armed_until = Some(deadline.unwrap_or(Duration::MAX));
    }

    #[inline]
    pub(in crate::provider) fn is_armed(&self) -> bool {
        self.armed_until.is_some()
    }

    /// There is something to do now, or at this time: whoever would wait for longer must look again.
    pub(in crate::provider) fn wake_by(&mut self, deadline: Duration) {
        if self.armed_until.is_some_and(|until| deadline < until) {
            self.wake();
        }
    }

    pub(in crate::provider) fn signal(&mut self) {
        self.is_signalled = true;
        if let Some(set) = &self.set {
            set.signal();
        }
    }

    /// Somebody who would wait was told to go back.
    pub(in crate::provider) fn is_signalled(&self) -> bool {
        self.is_signalled
    }

    /// The same, and it is told now.
    pub(in crate::provider) fn take_signal(&mut self) -> bool {
        std::mem::take(&mut self.is_signalled)
    }
}

/// See the file.
#[derive(Debug)]
pub(in crate::provider) struct Queue {
    entries: VecDeque<Entry>,
    /// Endpoints whose completions come here: reading moves them on.
    pub(in crate::provider) endpoints: Vec<usize>,
    /// Poll sets that it is in.
    pub(in crate::provider) sets: usize,
    pub(in crate::provider) waiting: Waiting,
}

impl Queue {
    pub(in crate::provider) fn new(capacity: usize, set: Option<Arc<WaitSet>>) -> Self {
        Self {
            entries: VecDeque::with_capacity(capacity),
            endpoints: Vec::new(),
            sets: 0,
            waiting: Waiting::new(set),
        }
    }

    #[inline]
    pub(in crate::provider) fn push(&mut self, entry: Entry) {
        self.entries.push_back(entry);
        self.waiting.wake();
    }

    #[inline]
    pub(in crate::provider) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Hand successful entries to `take` from the oldest on, at most so many, and say how many.
    ///
    /// # Errors
    /// `FI_EAGAIN`: there is none. `FI_EAVAIL`: an error is first.
    #[inline]
    pub(in crate::provider) fn read(
        &mut self,
        count: usize,
        mut take: impl FnMut(usize, &Entry),
    ) -> Outcome<usize> {
        if self.entries.is_empty() {
            return Err(AGAIN);
        }
        let mut taken = 0;
        while taken < count {
            match self.entries.front() {
                Some(entry) if entry.error == 0 => take(taken, entry),
                Some(_) if taken == 0 => return Err(code(abi::FI_EAVAIL)),
                Some(_) | None => break,
            }
            self.entries.pop_front();
            taken += 1;
        }
        Ok(taken)
    }

    /// The error that is first.
    ///
    /// # Errors
    /// `FI_EAGAIN`: none is.
    pub(in crate::provider) fn read_error(&mut self) -> Outcome<Entry> {
        match self.entries.front() {
            Some(entry) if entry.error != 0 => self.entries.pop_front().ok_or(AGAIN),
            Some(_) | None => Err(AGAIN),
        }
    }
}

const AGAIN: Code = code(abi::FI_EAGAIN);
