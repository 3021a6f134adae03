//! The mirror: every posted receive that offload knows of, and every entry that a device still knows of.
//!
//! A record lives from post until its receive has ended *and* no device can name it any more. Its place in the
//! table is the index of its handle; the generation moves on with each ADD, so that a completion for an earlier
//! life names nothing. It stays in the place when the record is forgotten, and a new record is written over the old
//! one where it lies: neither is moved.
//!
//! Not here: when what changes.

use crate::ids::{DeviceId, ReceiveId, TagHandle, TransferId};
use crate::matching::Pattern;
use crate::seam::Buffer;

use super::entry::{Place, Step};
use super::reason::Reason;

/// A tracked receive.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Record {
    pub(crate) receive: ReceiveId,
    /// Of its handle.
    generation: u32,
    /// The device in whose list it is, if nothing has happened to it since its ADD: then a whole match needs to look at
    /// nothing else. Whoever might change anything else ends it ([`Mirror::record_mut`]).
    undisturbed: u32,
    /// Its place holds it; else the place is free. Here begin four bytes that change together most often.
    in_use: bool,
    place: Place,
    /// A command slot is kept for its DEL.
    pub(crate) slot_kept: bool,
    /// The device that has or had the entry, from ADD until Released.
    pub(crate) pinned: Option<DeviceId>,
    /// The next free place, while this one is.
    next_free: u32,
    /// Post order.
    pub(crate) sequence: u64,
    pub(crate) pattern: Pattern,
    pub(crate) buffer: Buffer,
    pub(crate) multi_receive: bool,
    /// Its DEL is queued or under way.
    pub(crate) del_outstanding: bool,
    /// The device has said that it does without it.
    pub(crate) set_aside: bool,
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
    #[inline]
    pub(crate) fn is_spent(&self) -> bool {
        self.place == Place::Gone && self.pinned.is_none()
    }

    /// The handle that the device knows it by.
    #[inline]
    pub(crate) fn handle(&self, index: usize) -> TagHandle {
        TagHandle { index: index32(index), generation: self.generation }
    }

    /// Whether a device's handle names it. A free place is nobody's.
    #[inline(always)]
    fn is_named(&self, device: DeviceId, handle: TagHandle) -> bool {
        self.pinned == Some(device) && self.generation == handle.generation
    }

    /// Nothing is to it any more: as every record begins, so that a place is clean when it is free.
    fn clear(&mut self) {
        (self.multi_receive, self.wanted, self.set_aside) = (false, false, false);
        (self.del_outstanding, self.slot_kept, self.cancel, self.entangled) = (false, false, false, false);
        (self.pinned, self.claimant, self.bounce) = (None, None, None);
        (self.inactive, self.transfer) = (None, None);
        self.undisturbed = NOBODY;
    }

    fn is_clear(&self) -> bool {
        let flags = [self.multi_receive, self.wanted, self.del_outstanding, self.slot_kept, self.set_aside];
        !(flags.contains(&true) || self.cancel || self.entangled)
            && (self.pinned, self.claimant, self.bounce) == (None, None, None)
            && (self.inactive, self.transfer) == (None, None)
    }

    /// Its ADD is queued, and nothing else has happened to it.
    #[inline(always)]
    pub(crate) fn set_undisturbed(&mut self, device: DeviceId) {
        debug_assert!(self.is_usual() && self.slot_kept && self.place == Place::Listed, "{self:?}");
        debug_assert_eq!(self.pinned, Some(device));
        self.undisturbed = u32::from(device.0);
    }

    /// Whether a device's handle names it, and it is there undisturbed.
    #[inline(always)]
    fn is_undisturbed(&self, device: DeviceId, handle: TagHandle) -> bool {
        self.undisturbed == u32::from(device.0) && self.generation == handle.generation
    }

    /// An undisturbed one was matched, its data is placed, and the device has let go of it: its place, this one, is free
    /// from now on.
    #[inline(always)]
    pub(crate) fn end_and_free_undisturbed(&mut self, index: u32, free: &mut u32) {
        debug_assert_eq!(self.place.after(Step::MatchWhole), Some(Place::Gone));
        self.undisturbed = NOBODY;
        (self.in_use, self.place, self.slot_kept, self.pinned) = (false, Place::Gone, false, None);
        debug_assert!(self.is_clear(), "{self:?}");
        self.next_free = *free;
        *free = index;
    }

    /// Its place, this one, is free from now on. It is clear.
    #[inline(always)]
    pub(crate) fn free(&mut self, index: u32, free: &mut u32) {
        debug_assert!(self.is_clear() && self.undisturbed == NOBODY, "{self:?}");
        self.in_use = false;
        self.next_free = *free;
        *free = index;
    }

    /// Whether nothing has happened to it but what happens to most: no cancel, no DEL, no message or receive waits for it, no
    /// bounce buffer, and the device was in phase when it took it.
    #[inline(always)]
    pub(crate) fn is_usual(&self) -> bool {
        !(self.del_outstanding | self.entangled | self.wanted | self.cancel | self.set_aside)
            && self.bounce.is_none()
            && self.inactive.is_none()
    }

    /// Move it on. Once it has started, the only place where its state is assigned; `false`: the step is not expected
    /// there, and nothing changed.
    #[inline(always)]
    #[must_use]
    pub(crate) fn step(&mut self, step: Step) -> bool {
        let Some(after) = self.place.after(step) else { return false };
        self.place = after;
        if step == Step::Add {
            self.generation = self.generation.wrapping_add(1);
        }
        true
    }
}

/// The table of records.
#[derive(Clone, Debug)]
pub(crate) struct Mirror {
    records: Vec<Record>,
    /// The place that was forgotten last, linked to the one before it.
    free: u32,
    next_sequence: u64,
}

impl Default for Mirror {
    fn default() -> Self {
        Self { records: Vec::new(), free: NO_PLACE, next_sequence: 0 }
    }
}

impl Mirror {
    /// The place of the record that is tracked next, if it was used before.
    #[inline(always)]
    pub(crate) fn free_place(&self) -> Option<u32> {
        (self.free != NO_PLACE).then_some(self.free)
    }

    /// The place of the record that is tracked next.
    #[inline]
    pub(crate) fn next_index(&self) -> usize {
        self.free_place().map_or(self.records.len(), |index| index as usize)
    }

    /// Track a receive that was just posted, at [`Self::next_index`].
    pub(crate) fn track(
        &mut self,
        receive: ReceiveId,
        pattern: &Pattern,
        buffer: &Buffer,
        multi_receive: bool,
        reason: Reason,
    ) -> usize {
        let index = self.next_index();
        if index == self.records.len() {
            self.add_place(receive, pattern, buffer);
        }
        if let Some(record) = self.track_at(index32(index), receive, pattern, buffer, reason) {
            record.multi_receive = multi_receive;
        }
        index
    }

    /// As [`Self::track`], at a place known to be free, for a receive like most. Budget: 20 instructions.
    #[inline(always)]
    pub(crate) fn track_at(
        &mut self,
        index: u32,
        receive: ReceiveId,
        pattern: &Pattern,
        buffer: &Buffer,
        reason: Reason,
    ) -> Option<&mut Record> {
        debug_assert_eq!(self.free, index);
        self.free_record().map(|place| place.track(receive, pattern, buffer, reason).1)
    }

    /// The place of the record that is tracked next, if it was used before.
    #[inline(always)]
    pub(crate) fn free_record(&mut self) -> Option<FreeRecord<'_>> {
        // Where none is free this names none.
        let index = self.free;
        let record = self.records.get_mut(index as usize)?;
        Some(FreeRecord { index, record, free: &mut self.free, next_sequence: &mut self.next_sequence })
    }

    #[cold]
    fn add_place(&mut self, receive: ReceiveId, pattern: &Pattern, buffer: &Buffer) {
        self.free = index32(self.records.len());
        self.records.push(Record {
            receive,
            generation: 0,
            undisturbed: NOBODY,
            in_use: false,
            next_free: NO_PLACE,
            sequence: 0,
            pattern: *pattern,
            buffer: *buffer,
            multi_receive: false,
            place: Place::Software,
            pinned: None,
            del_outstanding: false,
            slot_kept: false,
            set_aside: false,
            cancel: false,
            claimant: None,
            wanted: false,
            bounce: None,
            inactive: None,
            transfer: None,
            reason: Reason::DeviceFull,
            entangled: false,
        });
    }

    /// The place of the record that a device's handle names, if that device still has it.
    #[inline]
    pub(crate) fn find(&self, device: DeviceId, handle: TagHandle) -> Option<usize> {
        self.find_record(device, handle).map(|_| handle.index as usize)
    }

    #[inline(always)]
    pub(crate) fn find_record(&self, device: DeviceId, handle: TagHandle) -> Option<&Record> {
        self.records.get(handle.index as usize).filter(|record| record.is_named(device, handle))
    }

    #[inline(always)]
    pub(crate) fn find_mut(&mut self, device: DeviceId, handle: TagHandle) -> Option<&mut Record> {
        let record = self.records.get_mut(handle.index as usize)?;
        if !record.is_named(device, handle) {
            return None;
        }
        record.undisturbed = NOBODY;
        Some(record)
    }

    /// One that is undisturbed, with what [`Record::free`] wants.
    #[inline(always)]
    pub(crate) fn find_undisturbed(
        &mut self,
        device: DeviceId,
        handle: TagHandle,
    ) -> Option<(&mut Record, &mut u32)> {
        let record = self.records.get_mut(handle.index as usize)?;
        record.is_undisturbed(device, handle).then_some((record, &mut self.free))
    }

    #[inline]
    pub(crate) fn record(&self, index: usize) -> Option<&Record> {
        self.records.get(index).filter(|record| record.in_use)
    }

    /// To be changed: it is undisturbed no longer.
    #[inline]
    pub(crate) fn record_mut(&mut self, index: usize) -> Option<&mut Record> {
        let record = self.records.get_mut(index).filter(|record| record.in_use)?;
        record.undisturbed = NOBODY;
        Some(record)
    }

    /// The handle that the record in a place has or had last.
    pub(crate) fn handle(&self, index: usize) -> TagHandle {
        let generation = self.records.get(index).map_or(0, |record| record.generation);
        TagHandle { index: index32(index), generation }
    }

    /// As [`Record::step`].
    #[inline]
    #[must_use]
    pub(crate) fn step(&mut self, index: usize, step: Step) -> bool {
        self.record_mut(index).is_some_and(|record| record.step(step))
    }

    #[inline]
    pub(crate) fn forget(&mut self, index: usize) {
        if let Some(record) = self.records.get_mut(index).filter(|record| record.in_use) {
            record.clear();
            self.forget_clear(index32(index));
        }
    }

    /// As [`Self::forget`], of a record that is in use and clear.
    #[inline(always)]
    pub(crate) fn forget_clear(&mut self, index: u32) {
        if let Some(record) = self.records.get_mut(index as usize) {
            record.free(index, &mut self.free);
        }
    }

    /// Every record, in no order.
    pub(crate) fn in_use(&self) -> impl Iterator<Item = &Record> {
        self.records.iter().filter(|record| record.in_use)
    }

    /// All records, oldest first. Not for the hot path.
    pub(crate) fn in_order(&self) -> Vec<usize> {
        let in_use = self.records.iter().enumerate().filter(|(_, record)| record.in_use);
        let mut order: Vec<_> = in_use.map(|(index, record)| (record.sequence, index)).collect();
        order.sort_unstable();
        order.into_iter().map(|(_, index)| index).collect()
    }
}

/// A place for a record that is tracked.
#[derive(Debug)]
pub(crate) struct FreeRecord<'a> {
    pub(crate) index: u32,
    record: &'a mut Record,
    free: &'a mut u32,
    next_sequence: &'a mut u64,
}

impl<'a> FreeRecord<'a> {
    /// A receive was posted, one like most: its record.
    #[inline(always)]
    pub(crate) fn track(
        self,
        receive: ReceiveId,
        pattern: &Pattern,
        buffer: &Buffer,
        reason: Reason,
    ) -> (u32, &'a mut Record) {
        let Self { index, record, free, next_sequence } = self;
        debug_assert!(record.is_clear(), "{record:?}");
        *free = record.next_free;
        (record.receive, record.sequence) = (receive, *next_sequence);
        (record.pattern, record.buffer) = (*pattern, *buffer);
        (record.place, record.in_use, record.reason) = (Place::Software, true, reason);
        *next_sequence += 1;
        (index, record)
    }

    /// The same, and its ADD is queued at this device: its record, undisturbed.
    #[inline(always)]
    pub(crate) fn track_listed(
        self,
        receive: ReceiveId,
        pattern: &Pattern,
        buffer: &Buffer,
        device: DeviceId,
    ) -> TagHandle {
        let Self { index, record, free, next_sequence } = self;
        debug_assert!(record.is_clear(), "{record:?}");
        debug_assert_eq!(Place::Software.after(Step::Add), Some(Place::Listed));
        *free = record.next_free;
        (record.receive, record.sequence) = (receive, *next_sequence);
        (record.pattern, record.buffer) = (*pattern, *buffer);
        (record.in_use, record.place, record.slot_kept, record.pinned) =
            (true, Place::Listed, true, Some(device));
        record.generation = record.generation.wrapping_add(1);
        *next_sequence += 1;
        record.set_undisturbed(device);
        TagHandle { index, generation: record.generation }
    }
}

fn index32(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

const NO_PLACE: u32 = u32::MAX;
/// No device.
const NOBODY: u32 = u32::MAX;
