//! The phase: how software tells a NIC which unexpected messages it has decided (TM-CONTRACT 11).
//!
//! ```text
//!   reported <= confirmed?           all counts are cumulative, wide here, 16 bits on the device
//!   confirmed <= reported <= handled <= seen
//!      │            │           │         └ UNEXPECTED completions polled
//!      │            │           └ messages decided
//!      │            └ count of the last command queued
//!      └ count of the last command whose completion was polled
//! ```
//!
//! Not here: the commands themselves, and which entry is where.

use crate::ids::{DeviceId, TagHandle};
use crate::seam::{Capabilities, Operation};

use super::fault::{Checked, Fault};
use super::outbox::Outbox;
use super::planted::{Bug, is_planted};

/// The counters of one device.
#[derive(Clone, Debug)]
pub(crate) struct Phase {
    seen: u64,
    handled: u64,
    reported: u64,
    confirmed: u64,
    buffers: u32,
    buffers_max: u32,
    /// With so many posted none is due.
    buffers_enough: u32,
    inactive: u32,
    turn: u64,
    sync_outstanding: bool,
    outstanding: Outbox<Outstanding>,
    /// Operations are numbered from 1 in command order: the last one queued.
    queued: u64,
    /// The last one that asked for a completion.
    asked: u64,
    /// The last one whose slot is free again, with those of all before it.
    freed: u64,
    /// The last ADD without a completion.
    silent: u64,
    /// The last one that was told to have found every entry before it active, or to have made it so.
    in_phase: u64,
    /// So many ADDs in a row may ask for no completion.
    silent_max: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Outstanding {
    operation: Operation,
    count: u64,
    /// Its number.
    number: u64,
}

/// What the completion of a list operation says about the phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stood {
    /// The count was the device's own: every entry in the list is active.
    InPhase,
    /// It was not.
    Behind,
}

impl Phase {
    /// Counters of a device that starts at `start` (0 on a card; models start just below the wrap).
    #[must_use]
    pub(crate) fn new(start: u16, buffers_max: u32, silent_max: u32) -> Self {
        let start = u64::from(start);
        Self {
            seen: start,
            handled: start,
            reported: start,
            confirmed: start,
            buffers: 0,
            buffers_max,
            buffers_enough: (buffers_max - buffers_max / 4)
                .max(low(buffers_max))
                .saturating_add(1)
                .min(buffers_max),
            inactive: 0,
            turn: 0,
            sync_outstanding: false,
            outstanding: Outbox::new(),
            queued: 0,
            asked: 0,
            freed: 0,
            silent: 0,
            in_phase: 0,
            silent_max,
        }
    }

    /// An UNEXPECTED completion was polled.
    ///
    /// # Errors
    /// The device reported more messages than it has buffers.
    pub(crate) fn handle_seen(&mut self, device: DeviceId) -> Checked<()> {
        self.seen += 1;
        self.handle_buffer_used(device)
    }

    /// A completion that used a buffer was polled.
    ///
    /// # Errors
    /// No buffer was posted.
    pub(crate) fn handle_buffer_used(&mut self, device: DeviceId) -> Checked<()> {
        if self.buffers_max == 0 {
            return Ok(());
        }
        match self.buffers.checked_sub(1) {
            Some(left) => {
                self.buffers = left;
                Ok(())
            }
            None => Err(Box::new(Fault::NoBufferPosted { device })),
        }
    }

    /// A message was decided: matched, or queued behind every posted receive.
    #[inline]
    pub(crate) fn handle_decided(&mut self) {
        self.handled += 1;
    }

    /// The count for a command that takes its place now.
    #[inline(always)]
    pub(crate) fn report(&mut self) -> u16 {
        self.reported = self.handled;
        Self::wire(self.reported)
    }

    /// The count that would stand if messages were counted when polled (a dropped clause).
    pub(crate) fn report_seen(&mut self) -> u16 {
        self.reported = self.seen;
        Self::wire(self.reported)
    }

    /// Whether nothing can be due: no count to report, no buffers to post.
    #[inline(always)]
    pub(crate) fn is_quiet(&self) -> bool {
        self.handled == self.reported && self.buffers >= self.buffers_enough
    }

    /// Whether [`Self::put_add`] may be called.
    #[inline(always)]
    pub(crate) fn has_room(&self) -> bool {
        self.outstanding.has_room()
    }

    /// So that it may.
    #[inline]
    pub(crate) fn reserve(&mut self) {
        self.outstanding.reserve(Outstanding { operation: Operation::Sync, count: 0, number: 0 });
    }

    /// Whether the ADD that is queued next has to ask for a completion: its count is another than that of the command
    /// before it, or it is its turn. So every count that was reported was asked for, and no slots but those of a short
    /// run of ADDs wait for a completion that nobody asked for.
    #[inline(always)]
    pub(crate) fn is_add_asked(&self) -> bool {
        self.handled != self.reported || self.queued - self.asked >= u64::from(self.silent_max)
    }

    /// An ADD was queued, and there was room.
    #[inline(always)]
    pub(crate) fn put_add(&mut self, handle: TagHandle, is_asked: bool) {
        self.queued += 1;
        let number = self.queued;
        if is_asked {
            self.asked = number;
            let operation = Operation::Add(handle);
            self.outstanding.put(Outstanding { operation, count: self.reported, number });
        } else {
            self.silent = number;
        }
    }

    /// So many ADDs can be queued now that ask for no completion, one after the other.
    pub(crate) fn silent_left(&self) -> u64 {
        if self.handled == self.reported {
            u64::from(self.silent_max).saturating_sub(self.queued - self.asked)
        } else {
            0
        }
    }

    /// The count that goes with each of those, until another command goes.
    #[inline(always)]
    pub(crate) fn reported(&self) -> u16 {
        Self::wire(self.reported)
    }

    /// So many of those, one at least, were queued since the last command that was counted.
    #[inline(always)]
    pub(crate) fn count_silent_adds(&mut self, count: u32) {
        debug_assert!(u64::from(count) <= self.silent_left());
        self.queued += u64::from(count);
        self.silent = self.queued;
    }

    /// An operation was queued that is no ADD.
    pub(crate) fn handle_queued(&mut self, operation: Operation, is_asked: bool) {
        self.queued += 1;
        if is_asked {
            self.asked = self.queued;
            self.sync_outstanding |= operation == Operation::Sync;
            self.outstanding.push(Outstanding { operation, count: self.reported, number: self.queued });
        }
    }

    /// The usual completion alone: the ADD that was due, in phase. `false`: it is another, and nothing changed.
    #[inline(always)]
    pub(crate) fn try_add_done(&mut self, handle: TagHandle, phase: u16) -> bool {
        let Some(&Outstanding { operation: Operation::Add(due), count, number }) = self.outstanding.first()
        else {
            return false;
        };
        if due != handle || Self::wire(count) != phase {
            return false;
        }
        self.outstanding.skip(1);
        (self.confirmed, self.freed) = (count, number);
        self.handle_in_phase(number);
        true
    }

    /// The command of this number found all entries before it active, or made them so; an ADD its own as well.
    #[inline(always)]
    fn handle_in_phase(&mut self, number: u64) {
        (self.in_phase, self.inactive) = (number, 0);
        self.turn += 1;
    }

    /// A signalled operation was taken back before it was submitted: those behind it move up.
    pub(crate) fn handle_withdrawn(&mut self, operation: Operation) {
        let Some(place) = self.outstanding.items().iter().rposition(|other| other.operation == operation)
        else {
            return;
        };
        let Some(Outstanding { number, .. }) = self.outstanding.remove(place) else { return };
        for behind in self.outstanding.items_mut().iter_mut().skip(place) {
            behind.number -= 1;
        }
        self.queued -= 1;
        self.silent -= u64::from(self.silent > number);
        self.asked = self.outstanding.items().last().map_or(self.freed, |last| last.number);
    }

    /// The completion of a signalled operation was polled. They come in command order.
    ///
    /// # Errors
    /// Another operation was due, or none.
    pub(crate) fn handle_done(
        &mut self,
        device: DeviceId,
        operation: Operation,
        phase: u16,
    ) -> Checked<Stood> {
        let due = self.outstanding.first().copied();
        let Some(due) = due.filter(|due| due.operation == operation) else {
            let due = due.map(|due| due.operation);
            return Err(Box::new(Fault::UnknownCompletion { device, operation, due }));
        };
        self.outstanding.skip(1);
        (self.confirmed, self.freed) = (due.count, due.number);
        if operation == Operation::Sync {
            self.sync_outstanding = false;
        }
        let stood = if Self::wire(due.count) == phase { Stood::InPhase } else { Stood::Behind };
        if stood == Stood::InPhase && !matches!(operation, Operation::Del(_)) {
            self.handle_in_phase(due.number);
        }
        Ok(stood)
    }

    /// An entry was found to have been added out of phase: what to remember for [`Self::handle_left`].
    pub(crate) fn mark_inactive(&mut self) -> u64 {
        self.inactive += 1;
        self.turn + 1
    }

    /// An entry marked so left the list.
    pub(crate) fn handle_left(&mut self, mark: u64) {
        if mark == self.turn + 1 {
            self.inactive = self.inactive.saturating_sub(1);
        }
    }

    /// The device is gone: nothing is outstanding any more. The operations that were, in order.
    pub(crate) fn fail(&mut self) -> Vec<TagHandle> {
        self.inactive = 0;
        (self.asked, self.freed, self.silent) = (self.queued, self.queued, 0);
        let dels = self.outstanding.items().iter().filter_map(|outstanding| match outstanding.operation {
            Operation::Del(handle) => Some(handle),
            Operation::Add(_) | Operation::Sync => None,
        });
        let dels = dels.collect();
        self.outstanding.clear();
        dels
    }

    /// Whether a SYNC is due: entries wait inactive for a count not yet reported, or may do so, or the wrap comes near.
    /// `entries`: those that the device knows of.
    #[must_use]
    #[inline]
    pub(crate) fn is_sync_due(&self, entries: u32) -> bool {
        let may_wait = self.inactive > 0 || (self.silent > self.in_phase && entries > 0);
        self.handled != self.reported
            && !self.sync_outstanding
            && (may_wait || self.handled.saturating_sub(self.reported) >= SYNC_EVERY)
    }

    /// Whether slots are used, and no completion that would free them was asked for.
    #[must_use]
    pub(crate) fn is_nothing_asked(&self) -> bool {
        self.outstanding.is_empty() && self.queued != self.freed
    }

    /// How many buffers to post now; in batches, unless the device is about to run dry.
    ///
    /// With clause `BufferBudget`, `posted + (seen - confirmed)` stays below 2^16: else the device's count could
    /// come round to the one last reported, and look equal to it.
    #[inline]
    pub(crate) fn poll_buffers(&mut self, budget: bool) -> u32 {
        if self.buffers >= self.buffers_enough {
            return 0;
        }
        let wanted = self.buffers_max - self.buffers;
        let lag = u32::try_from(self.seen.saturating_sub(self.confirmed)).unwrap_or(u32::MAX);
        let room = if budget {
            TURN.saturating_sub(1).saturating_sub(lag).saturating_sub(self.buffers)
        } else {
            wanted
        };
        let batch = wanted.min(room);
        let worth_it = batch >= self.buffers_max / 4 || self.buffers <= low(self.buffers_max);
        if batch == 0 || !worth_it {
            return 0;
        }
        self.buffers += batch;
        batch
    }

    /// Command slots that are used: of operations at or before which no completion has been polled.
    #[must_use]
    #[inline(always)]
    pub(crate) fn slots_used(&self) -> u64 {
        self.queued - self.freed
    }

    /// The count that a device sees: mod 2^16.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the field is 16 bits wide and wraps (TM-CONTRACT 11.6)"
    )]
    fn wire(count: u64) -> u16 {
        if is_planted(Bug::WrapOffByOne) { (count % 0xFFFF) as u16 } else { count as u16 }
    }

    /// Everything that decides about the future, relative: for counting states.
    pub(crate) fn canonical(&self, out: &mut Vec<u64>, name: &dyn Fn(TagHandle) -> u64) {
        out.extend([
            u64::from(Self::wire(self.confirmed)),
            self.seen.wrapping_sub(self.confirmed),
            self.handled.wrapping_sub(self.confirmed),
            self.reported.wrapping_sub(self.confirmed),
            u64::from(self.buffers),
            u64::from(self.inactive),
            u64::from(self.sync_outstanding),
            self.outstanding.len() as u64,
            self.queued - self.asked,
            self.queued - self.freed,
            self.silent.saturating_sub(self.freed) + u64::from(self.silent > self.in_phase),
        ]);
        for outstanding in self.outstanding.items() {
            out.push(outstanding.number - self.freed);
            out.push(outstanding.count.wrapping_sub(self.confirmed));
            out.push(match outstanding.operation {
                Operation::Add(handle) => name(handle) << 2,
                Operation::Del(handle) => name(handle) << 2 | 1,
                Operation::Sync => 2,
            });
        }
    }

    /// Whether a mark given by [`Self::mark_inactive`] still counts.
    pub(crate) fn is_marked(&self, mark: u64) -> bool {
        mark == self.turn + 1
    }
}

/// With so few buffers posted the device is about to run dry: each is reposted at once.
const fn low(buffers_max: u32) -> u32 {
    let half = buffers_max / 2;
    if half > Capabilities::UNEXPECTED_BUFFERS_MIN { half } else { Capabilities::UNEXPECTED_BUFFERS_MIN }
}

/// A SYNC goes out at the latest after so many unexpected messages (libmlx5 warns above 0x3fff).
const SYNC_EVERY: u64 = 1 << 14;
/// The device's counters have 16 bits.
const TURN: u32 = 1 << 16;
