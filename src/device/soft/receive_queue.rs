//! The receive queue of an SRQ: buffers for messages that no entry takes.
//!
//! Not here: memory. A receive is a name; the message it holds stays with the device's host side.

use std::collections::VecDeque;

/// Receives posted and under way.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ReceiveQueue {
    slots: u32,
    posted: VecDeque<u64>,
    /// Taken by the device, completion not polled.
    taken: u32,
    /// Whether the hardware's minimum was once reached.
    started: bool,
}

impl ReceiveQueue {
    /// TM-CONTRACT 5: a TM-SRQ does not operate before so many are posted.
    pub const MINIMUM: usize = 33;

    pub(crate) const fn new(slots: u32) -> Self {
        Self { slots, posted: VecDeque::new(), taken: 0, started: false }
    }

    /// `ibv_post_srq_recv`. False: ENOMEM.
    pub fn post(&mut self, wr_id: u64) -> bool {
        let room = self.posted.len() as u64 + u64::from(self.taken) < u64::from(self.slots);
        if room {
            self.posted.push_back(wr_id);
            self.started |= self.posted.len() >= Self::MINIMUM;
        }
        room
    }

    /// The device takes the oldest one.
    pub fn take(&mut self) -> Option<u64> {
        let wr_id = self.posted.pop_front()?;
        self.taken += 1;
        Some(wr_id)
    }

    /// What the device would take; of an error completion, the receive that it wrongly names.
    #[must_use]
    pub fn next(&self) -> Option<u64> {
        self.posted.front().copied()
    }

    /// Receives that the device can take.
    #[must_use]
    pub fn posted(&self) -> usize {
        self.posted.len()
    }

    /// The slot of a receive whose completion was polled is free.
    pub(crate) fn release(&mut self) {
        self.taken = self.taken.saturating_sub(1);
    }

    /// The device did not use what it had taken after all.
    pub(crate) fn give_back(&mut self, wr_id: u64) {
        self.release();
        self.posted.push_front(wr_id);
    }

    /// Slots: the `max_wr` that creation answered.
    #[must_use]
    pub const fn slots(&self) -> u32 {
        self.slots
    }

    /// Slots in use: posted, or taken and not polled.
    #[must_use]
    pub fn used(&self) -> usize {
        self.posted.len() + self.taken as usize
    }

    /// Whether [`Self::MINIMUM`] was once reached.
    #[must_use]
    pub const fn is_started(&self) -> bool {
        self.started
    }
}
