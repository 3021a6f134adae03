//! The mirror: every posted receive that offload knows of, and every entry that a device still knows of.
//!
//! A record lives from post until its receive has ended *and* no device can name it any more. Its place in the
//! slab is the index of its handle; the generation moves on with each ADD, so that a completion for an earlier
//! life names nothing.
//!
//! Not here: when what changes.

use slab::Slab;

use crate::ids::{DeviceId, ReceiveId, TagHandle, TransferId};
use crate::matching::Pattern;
use crate::seam::Buffer;

use super::entry::{Place, Step};
use super::reason::Reason;

/// A tracked receive.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) receive: ReceiveId,
    /// Post order.
    pub(crate) sequence: u64,
    pub(crate) pattern: Pattern,
    pub(crate) buffer: Buffer,
    pub(crate) multi_receive: bool,
    place: Place,
    /// The device that has or had the entry, from ADD until Released.
    pub(crate) pinned: Option<DeviceId>,
    /// Its DEL is queued or under way.
    pub(crate) del_outstanding: bool,
    /// A command slot is kept for its DEL.
    pub(crate) slot_kept: bool,
    /// The user wants it cancelled.
    pub(crate) cancel: bool,
    /// The waiting message that queued the DEL.
    pub(crate) claimant: Option<u64>,
    /// Some message waits for it, or has.
    pub(crate) wanted: bool,
    pub(crate) bounce: Option<Buffer>,
    /// Added out of phase, and not known to be active since ([`super::phase::Phase::mark_inactive`]).
    pub(crate) inactive: Option<u64>,
    /// Matched by the device, data to come.
    pub(crate) transfer: Option<TransferId>,
    pub(crate) reason: Reason,
    /// It is, or was, in some device's queue or overlap index, or another waits for it: to be taken out there.
    pub(crate) entangled: bool,
}

impl Record {
    /// Where it is.
    #[inline]
    pub(crate) fn place(&self) -> Place {
        self.place
    }

    /// Nothing is left to wait for.
    pub(crate) fn is_spent(&self) -> bool {
        self.place == Place::Gone && self.pinned.is_none()
    }
}

/// The slab of records, with the generations that its places have reached.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mirror {
    records: Slab<Record>,
    generations: Vec<u32>,
    next_sequence: u64,
}

impl Mirror {
    /// Track a receive that was just posted.
    pub(crate) fn track(
        &mut self,
        receive: ReceiveId,
        pattern: Pattern,
        buffer: Buffer,
        multi_receive: bool,
        reason: Reason,
    ) -> usize {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let index = self.records.insert(Record {
            receive,
            sequence,
            pattern,
            buffer,
            multi_receive,
            place: Place::Software,
            pinned: None,
            del_outstanding: false,
            slot_kept: false,
            cancel: false,
            claimant: None,
            wanted: false,
            bounce: None,
            inactive: None,
            transfer: None,
            reason,
            entangled: false,
        });
        if self.generations.len() <= index {
            self.generations.resize(index + 1, 0);
        }
        index
    }

    /// Move a record on. The only place where its state is assigned; `false`: the step is not expected there, and
    /// nothing changed.
    #[inline]
    #[must_use]
    pub(crate) fn step(&mut self, index: usize, step: Step) -> bool {
        let Some(record) = self.records.get_mut(index) else { return false };
        let Some(after) = record.place.after(step) else { return false };
        record.place = after;
        if step == Step::Add {
            self.generations[index] = self.generations[index].wrapping_add(1);
        }
        true
    }

    /// The handle that the device knows the record by.
    #[inline]
    pub(crate) fn handle(&self, index: usize) -> TagHandle {
        let generation = self.generations.get(index).copied().unwrap_or(0);
        TagHandle { index: u32::try_from(index).unwrap_or(u32::MAX), generation }
    }

    /// The record that a device's handle names, if that device still has it.
    #[inline]
    pub(crate) fn find(&self, device: DeviceId, handle: TagHandle) -> Option<usize> {
        let index = handle.index as usize;
        let record = self.records.get(index)?;
        (record.pinned == Some(device) && self.generations.get(index) == Some(&handle.generation))
            .then_some(index)
    }

    #[inline]
    pub(crate) fn record(&self, index: usize) -> Option<&Record> {
        self.records.get(index)
    }

    #[inline]
    pub(crate) fn record_mut(&mut self, index: usize) -> Option<&mut Record> {
        self.records.get_mut(index)
    }

    pub(crate) fn forget(&mut self, index: usize) {
        if self.records.contains(index) {
            self.records.remove(index);
        }
    }

    /// All records, oldest first. Not for the hot path.
    pub(crate) fn in_order(&self) -> Vec<usize> {
        let mut order: Vec<_> = self.records.iter().map(|(index, record)| (record.sequence, index)).collect();
        order.sort_unstable();
        order.into_iter().map(|(_, index)| index).collect()
    }
}
