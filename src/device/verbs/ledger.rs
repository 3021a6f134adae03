//! The accounts of a matching list as its driver keeps them: entries in use, and command slots (TM-CONTRACT 6.1, 8.1).
//!
//! Pure bookkeeping. The driver checks neither (a DEL of an entry that is not in use corrupts it, a full queue and a
//! full list give one and the same error), so whoever posts asks here first.
//!
//! An entry has its segment with it, as the driver wants it: the request of its ADD points there, so that a buffer is
//! written once, and is known as long as the entry is.
//!
//! Not here: what a completion means to an engine.

use std::collections::VecDeque;

use super::sys::types::ibv_sge;
use crate::ids::TagHandle;
use crate::seam::Buffer;

/// The accounts of one list. Entries go by the names that the caller gives them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Ledger {
    /// By index.
    entries: Vec<Entry>,
    /// ADDs that were posted, modulo 2^32 as all numbers here.
    added: u32,
    /// So many ADDs may be posted before [`Self::find_room`] is asked for more.
    room_end: u32,
    /// After so many ADDs there is no tag for another.
    tags_end: u32,
    pending: VecDeque<Pending>,
    /// Operations of other kinds that were posted.
    others: u32,
    /// Operations are numbered as they are posted: the number of the first one for which there is no slot.
    slots_end: u32,
    slots: u32,
}

impl Ledger {
    /// A list of so many tags under so many command slots.
    #[must_use]
    pub fn new(tags: u32, slots: u32) -> Self {
        Self {
            entries: vec![Entry::default(); tags as usize],
            added: 0,
            room_end: 0,
            tags_end: tags,
            pending: VecDeque::new(),
            others: 0,
            slots_end: slots,
            slots,
        }
    }

    /// Operations that can be posted now.
    #[must_use]
    pub const fn slots_free(&self) -> u32 {
        self.slots_end.wrapping_sub(self.next())
    }

    /// Tags that can be added now.
    #[must_use]
    pub const fn tags_free(&self) -> u32 {
        self.tags_end.wrapping_sub(self.added)
    }

    /// The number of the next operation.
    const fn next(&self) -> u32 {
        self.added.wrapping_add(self.others)
    }

    /// How many ADDs may be posted one after the other, without another look: whether that is any.
    #[cold]
    #[inline(never)]
    fn find_room(&mut self) -> bool {
        let room = self.tags_free().min(self.slots_free());
        self.room_end = self.added.wrapping_add(room);
        room > 0
    }

    /// Whether the entry is in use: a completion of it is still to come.
    #[must_use]
    pub fn is_in_use(&self, handle: TagHandle) -> bool {
        self.owed(handle) > 0
    }

    /// The entry with this index that is in use, or whose name is kept.
    #[must_use]
    pub fn name(&self, index: u32) -> Option<TagHandle> {
        let entry = self.entries.get(index as usize).filter(|entry| entry.is_named())?;
        Some(TagHandle { index, generation: entry.generation })
    }

    /// Completions that the entry still waits for.
    #[must_use]
    pub fn owed(&self, handle: TagHandle) -> u8 {
        self.find(handle).map_or(0, Entry::owed)
    }

    /// The driver's number of the entry.
    #[must_use]
    pub fn number(&self, handle: TagHandle) -> Option<u32> {
        self.find(handle).filter(|entry| entry.owed() > 0).map(|entry| entry.number)
    }

    /// An ADD takes its place among the operations: its entry, whose segment is this, and whose number is to be written
    /// once the driver has given one. None: there is no slot or no tag for it. Budget: 25 instructions.
    ///
    /// # Errors
    /// There is an entry with this index.
    #[inline(always)]
    pub(super) fn add(
        &mut self,
        handle: TagHandle,
        segment: ibv_sge,
        signalled: bool,
    ) -> Result<Option<&mut Entry>, LedgerError> {
        let TagHandle { index, generation } = handle;
        if self.added == self.room_end && !self.find_room() {
            return Ok(None);
        }
        if index as usize >= self.entries.len() {
            self.grow(index);
        }
        let Some(entry) = self.entries.get_mut(index as usize) else { return Ok(None) };
        if entry.is_named() {
            return Err(LedgerError::InUse { index });
        }
        (entry.segment, entry.generation, entry.state) = (segment, generation, 1 + u32::from(signalled));
        self.added = self.added.wrapping_add(1);
        if signalled {
            note_signalled(&mut self.pending, Kind::Add, handle, self.added.wrapping_add(self.others));
        }
        Ok(Some(entry))
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, index: u32) {
        self.entries.resize(index as usize + 1, Entry::default());
    }

    /// The ADD was posted, and the driver gave the entry this number.
    pub fn numbered(&mut self, handle: TagHandle, number: u32) {
        if let Some(entry) = self.entries.get_mut(handle.index as usize) {
            entry.number = number;
        }
    }

    /// Something was told of its match already: it is not for [`Self::last_matched`].
    pub fn begun(&mut self, index: u32) {
        if let Some(entry) = self.entries.get_mut(index as usize) {
            entry.state |= BEGUN;
        }
    }

    /// Whether [`Self::begun`] was said of the entry that has or had this index last.
    #[must_use]
    pub fn is_begun(&self, index: u32) -> bool {
        self.entries.get(index as usize).is_some_and(|entry| entry.state & BEGUN != 0)
    }

    /// Where the payload of the entry goes that has or had this index last.
    #[must_use]
    pub fn buffer(&self, index: u32) -> Buffer {
        let segment = self.entries.get(index as usize).map_or(NO_SEGMENT, |entry| entry.segment);
        Buffer { address: segment.addr, length: segment.length.into(), key: segment.lkey, segments: 1 }
    }

    /// Whether the segment of an entry that is in use, or whose name is kept, has this key.
    #[must_use]
    pub fn uses_key(&self, key: u32) -> bool {
        self.entries.iter().any(|entry| entry.segment.lkey == key && entry.is_named())
    }

    /// The driver is done with an entry, but its name still means something. Until [`Self::give_back`].
    pub fn keep(&mut self, index: u32) {
        if let Some(entry) = self.entries.get_mut(index as usize) {
            entry.state |= KEPT;
        }
    }

    /// The name is kept no longer.
    pub fn give_back(&mut self, index: u32) {
        if let Some(entry) = self.entries.get_mut(index as usize) {
            entry.state &= !KEPT;
        }
    }

    /// Whether a DEL may be posted: the entry is in use, and its 8-bit count has room.
    #[must_use]
    pub fn may_delete(&self, handle: TagHandle) -> bool {
        self.find(handle).is_some_and(|entry| (1..OWED_MAX).contains(&entry.owed()))
    }

    /// A DEL was posted. True: the entry is free again, since an unsignalled one is taken for a success at once.
    pub fn deleted(&mut self, handle: TagHandle, signalled: bool) -> bool {
        self.operation_posted(Kind::Del, handle, signalled);
        if signalled {
            if let Some(entry) = self.find_mut(handle) {
                entry.set_owed(entry.owed().saturating_add(1));
            }
            return false;
        }
        self.settle(handle, 1).unwrap_or(false)
    }

    /// A SYNC was posted.
    pub fn synced(&mut self, signalled: bool) {
        self.operation_posted(Kind::Sync, NO_ENTRY, signalled);
    }

    /// The completion of the oldest signalled operation was polled: of which entry it was, and whether that entry is
    /// free again.
    ///
    /// # Errors
    /// None is under way, or one of another kind.
    pub fn operation_done(&mut self, kind: Kind, success: bool) -> Result<(TagHandle, bool), LedgerError> {
        let pending = self.pending.pop_front().ok_or(LedgerError::NoOperation { kind })?;
        if pending.kind != kind {
            return Err(LedgerError::OtherOperation { kind, expected: pending.kind });
        }
        self.slots_end = pending.next.wrapping_add(self.slots);
        let count = match kind {
            Kind::Add => 1,
            Kind::Del if success => 2,
            Kind::Del => 1,
            Kind::Sync => return Ok((pending.handle, false)),
        };
        Ok((pending.handle, self.settle(pending.handle, count)?))
    }

    /// The ordinary case of [`Self::matched`]: the entry waits for this completion alone, nothing was told of its match
    /// before, and it is free after it. Its tag is counted by [`Self::tags_back`]. False: it is not that, and nothing has
    /// changed.
    #[inline(always)]
    pub fn last_matched(&mut self, handle: TagHandle) -> bool {
        let Some(entry) = self.entries.get_mut(handle.index as usize) else { return false };
        if entry.generation != handle.generation || entry.state != 1 {
            return false;
        }
        entry.state = 0;
        true
    }

    /// [`Self::last_matched`] was true so often since this was called last.
    #[inline(always)]
    pub fn tags_back(&mut self, count: u32) {
        self.tags_end = self.tags_end.wrapping_add(count);
    }

    /// The last completion of a match was polled: whether the entry is free again.
    ///
    /// # Errors
    /// The entry waits for nothing.
    pub fn matched(&mut self, handle: TagHandle) -> Result<bool, LedgerError> {
        self.settle(handle, 1)
    }

    fn operation_posted(&mut self, kind: Kind, handle: TagHandle, signalled: bool) {
        self.others = self.others.wrapping_add(1);
        // It took a slot.
        self.find_room();
        if signalled {
            let next = self.next();
            note_signalled(&mut self.pending, kind, handle, next);
        }
    }

    /// So many completions fewer to wait for.
    fn settle(&mut self, handle: TagHandle, count: u8) -> Result<bool, LedgerError> {
        let index = handle.index;
        if index as usize >= self.entries.len() {
            return Err(LedgerError::NoEntry { index });
        }
        let entry = self.find_mut(handle).ok_or(LedgerError::NothingOwed { index })?;
        let owed = entry.owed().checked_sub(count).ok_or(LedgerError::NothingOwed { index })?;
        entry.set_owed(owed);
        let is_free = owed == 0;
        self.tags_end = self.tags_end.wrapping_add(is_free.into());
        Ok(is_free)
    }

    fn find(&self, handle: TagHandle) -> Option<&Entry> {
        self.entries.get(handle.index as usize).filter(|entry| entry.generation == handle.generation)
    }

    fn find_mut(&mut self, handle: TagHandle) -> Option<&mut Entry> {
        self.entries.get_mut(handle.index as usize).filter(|entry| entry.generation == handle.generation)
    }
}

/// The kind of a list operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// `IBV_WR_TAG_ADD`
    Add,
    /// `IBV_WR_TAG_DEL`
    Del,
    /// `IBV_WR_TAG_SYNC`
    Sync,
}

/// A completion that does not fit the accounts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// Nobody waits for it.
    #[error("a completion of {kind:?}, and no signalled operation is under way")]
    NoOperation {
        /// What completed.
        kind: Kind,
    },
    /// Operations complete in the order in which they were posted.
    #[error("a completion of {kind:?}, and the oldest operation under way is {expected:?}")]
    OtherOperation {
        /// What completed.
        kind: Kind,
        /// What should have.
        expected: Kind,
    },
    /// No such entry.
    #[error("a completion of entry {index}, which does not exist")]
    NoEntry {
        /// Its number.
        index: u32,
    },
    /// An ADD under a name that is in use.
    #[error("ADD of entry {index}, whose place was not released")]
    InUse {
        /// Its number.
        index: u32,
    },
    /// The entry is free.
    #[error("a completion of entry {index}, which waits for none")]
    NothingOwed {
        /// Its number.
        index: u32,
    },
}

/// An entry: what it is for the driver, and how far it has got.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Entry {
    pub(super) segment: ibv_sge,
    generation: u32,
    /// The driver's.
    pub(super) number: u32,
    /// `expect_cqe`, and from bit 8 on [`KEPT`] and [`BEGUN`]: 1 is what most entries are until their match.
    state: u32,
}

impl Entry {
    #[inline(always)]
    const fn is_named(&self) -> bool {
        self.state & (OWED | KEPT) != 0
    }

    const fn owed(&self) -> u8 {
        self.state.to_le_bytes()[0]
    }

    fn set_owed(&mut self, owed: u8) {
        self.state = (self.state & !OWED) | u32::from(owed);
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Pending {
    kind: Kind,
    handle: TagHandle,
    /// The number of the operation behind it: its polling frees the slots of all before that.
    next: u32,
}

/// A signalled operation was posted.
#[inline(never)]
fn note_signalled(pending: &mut VecDeque<Pending>, kind: Kind, handle: TagHandle, next: u32) {
    pending.push_back(Pending { kind, handle, next });
}

/// What a SYNC is of.
const NO_ENTRY: TagHandle = TagHandle { index: u32::MAX, generation: u32::MAX };
/// Signed 8 bits in libmlx5 (TM-CONTRACT 8.2).
const OWED_MAX: u8 = 127;
/// Completions that an entry waits for.
const OWED: u32 = 0xff;
/// The name of an entry is kept.
const KEPT: u32 = 0x100;
/// Something was told of its match.
const BEGUN: u32 = 0x200;
const NO_SEGMENT: ibv_sge = ibv_sge { addr: 0, length: 0, lkey: 0 };

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger() -> Ledger {
        Ledger::new(2, 4)
    }

    fn handle(index: u32) -> TagHandle {
        TagHandle { index, generation: 5 }
    }

    fn add(ledger: &mut Ledger, index: u32, signalled: bool) -> TagHandle {
        assert_eq!(try_add(ledger, handle(index), signalled), Ok(true));
        ledger.numbered(handle(index), index + 100);
        handle(index)
    }

    fn try_add(ledger: &mut Ledger, handle: TagHandle, signalled: bool) -> Result<bool, LedgerError> {
        let segment = ibv_sge { addr: 0x1000, length: handle.generation, lkey: handle.index };
        ledger.add(handle, segment, signalled).map(|entry| entry.is_some())
    }

    #[test]
    fn an_entry_is_free_when_add_and_match_were_polled_in_either_order() {
        let mut ledger = ledger();
        let entry = add(&mut ledger, 7, true);
        assert_eq!(ledger.number(entry), Some(107));
        assert_eq!(ledger.operation_done(Kind::Add, true), Ok((entry, false)));
        assert_eq!(ledger.matched(entry), Ok(true));
        let entry = add(&mut ledger, 8, true);
        assert_eq!(ledger.matched(entry), Ok(false));
        assert_eq!(ledger.operation_done(Kind::Add, true), Ok((entry, true)));
        assert_eq!((ledger.tags_free(), ledger.slots_free()), (2, 4));
    }

    #[test]
    fn the_short_way_does_the_ordinary_match_and_changes_nothing_in_others() {
        let mut ledger = ledger();
        let entry = add(&mut ledger, 7, true);
        assert!(!ledger.last_matched(entry), "its ADD was not polled");
        assert_eq!(ledger.operation_done(Kind::Add, true), Ok((entry, false)));
        assert!(!ledger.last_matched(TagHandle { generation: 4, ..entry }), "a name of before");
        assert!(ledger.last_matched(entry) && !ledger.last_matched(entry) && !ledger.last_matched(handle(9)));
        ledger.tags_back(1);
        assert_eq!(ledger.tags_free(), 2);
        let entry = add(&mut ledger, 7, false);
        ledger.begun(entry.index);
        assert!(!ledger.last_matched(entry), "its match was told");
        assert_eq!(ledger.matched(entry), Ok(true));
        assert_eq!(ledger.matched(entry), Err(LedgerError::NothingOwed { index: 7 }));
    }

    #[test]
    fn a_delete_that_fails_leaves_the_entry_to_its_match() {
        let mut ledger = ledger();
        let entry = add(&mut ledger, 0, true);
        assert_eq!(ledger.operation_done(Kind::Add, true), Ok((entry, false)));
        assert!(!ledger.deleted(entry, true));
        assert_eq!(ledger.operation_done(Kind::Del, false), Ok((entry, false)));
        assert_eq!(ledger.matched(entry), Ok(true));
        assert!(!ledger.is_in_use(entry));
    }

    #[test]
    fn a_delete_that_succeeds_frees_the_entry_and_an_unsignalled_one_at_once() {
        let mut ledger = ledger();
        let entry = add(&mut ledger, 0, true);
        assert_eq!(ledger.operation_done(Kind::Add, true), Ok((entry, false)));
        ledger.deleted(entry, true);
        assert_eq!(ledger.operation_done(Kind::Del, true), Ok((entry, true)));
        let entry = add(&mut ledger, 0, false);
        assert!(ledger.deleted(entry, false));
        assert!(!ledger.may_delete(entry));
    }

    #[test]
    fn slots_of_unsignalled_operations_come_back_with_the_next_signalled_one_only() {
        let mut ledger = ledger();
        ledger.synced(false);
        ledger.synced(false);
        assert_eq!(ledger.slots_free(), 2);
        ledger.synced(true);
        ledger.synced(false);
        assert_eq!(ledger.slots_free(), 0);
        assert_eq!(ledger.operation_done(Kind::Sync, true), Ok((NO_ENTRY, false)));
        assert_eq!(ledger.slots_free(), 3);
    }

    #[test]
    fn completions_that_do_not_fit_are_errors() {
        let mut ledger = ledger();
        assert_eq!(ledger.operation_done(Kind::Add, true), Err(LedgerError::NoOperation { kind: Kind::Add }));
        assert_eq!(ledger.matched(handle(0)), Err(LedgerError::NothingOwed { index: 0 }));
        assert_eq!(ledger.matched(handle(9)), Err(LedgerError::NoEntry { index: 9 }));
        let entry = add(&mut ledger, 1, false);
        let before = TagHandle { generation: 4, ..entry };
        assert_eq!(ledger.matched(before), Err(LedgerError::NothingOwed { index: 1 }), "a name of before");
        ledger.synced(true);
        let expected = LedgerError::OtherOperation { kind: Kind::Del, expected: Kind::Sync };
        assert_eq!(ledger.operation_done(Kind::Del, true), Err(expected));
    }

    #[test]
    fn there_is_no_room_with_all_tags_or_all_slots_in_use_and_a_name_is_used_once() {
        let mut ledger = ledger();
        add(&mut ledger, 0, false);
        let again = try_add(&mut ledger, TagHandle { index: 0, generation: 6 }, false);
        assert_eq!(again, Err(LedgerError::InUse { index: 0 }));
        add(&mut ledger, 1, false);
        assert_eq!(try_add(&mut ledger, handle(2), false), Ok(false));
        assert!(ledger.last_matched(handle(0)) && ledger.last_matched(handle(1)));
        ledger.tags_back(2);
        add(&mut ledger, 1000, false);
        ledger.synced(false);
        assert_eq!((ledger.tags_free(), ledger.slots_free()), (1, 0));
        assert_eq!(try_add(&mut ledger, handle(2), false), Ok(false));
    }

    #[test]
    fn the_name_of_an_entry_that_is_kept_is_not_used_again_until_it_is_given_back() {
        let mut ledger = ledger();
        let entry = add(&mut ledger, 7, false);
        assert_eq!(ledger.matched(entry), Ok(true));
        assert_eq!(ledger.name(7), None);
        ledger.keep(7);
        assert_eq!((ledger.name(7), ledger.tags_free()), (Some(entry), 2));
        assert!(try_add(&mut ledger, TagHandle { generation: 6, ..entry }, false).is_err());
        ledger.give_back(7);
        assert_eq!(try_add(&mut ledger, TagHandle { generation: 6, ..entry }, false), Ok(true));
    }

    #[test]
    fn deletes_stop_before_the_driver_s_count_overflows() {
        let mut ledger = Ledger::new(1, 1000);
        let entry = add(&mut ledger, 0, true);
        let mut deletes = 0;
        while ledger.may_delete(entry) {
            ledger.deleted(entry, true);
            deletes += 1;
        }
        assert_eq!(deletes, 125);
    }

    #[test]
    fn the_segment_of_an_entry_is_known_until_its_name_is_used_again() {
        let mut ledger = ledger();
        let entry = add(&mut ledger, 7, false);
        let buffer = Buffer { address: 0x1000, length: 5, key: 7, segments: 1 };
        assert_eq!((ledger.buffer(7), ledger.uses_key(7), ledger.uses_key(0)), (buffer, true, false));
        assert_eq!(ledger.matched(entry), Ok(true));
        assert_eq!((ledger.buffer(7), ledger.uses_key(7)), (buffer, false));
        ledger.keep(7);
        assert!(ledger.uses_key(7) && !ledger.uses_key(8));
        assert_eq!(ledger.buffer(8), Buffer { segments: 1, ..Buffer::default() });
    }

    #[test]
    fn slots_come_back_also_when_the_numbers_of_operations_wrap() {
        let mut ledger = ledger();
        (ledger.others, ledger.slots_end) = (u32::MAX - 1, 2);
        for _ in 0..8 {
            ledger.synced(false);
            ledger.synced(true);
            assert_eq!(ledger.slots_free(), 2);
            ledger.synced(false);
            assert_eq!(ledger.operation_done(Kind::Sync, true), Ok((NO_ENTRY, false)));
            assert_eq!(ledger.slots_free(), 3);
            ledger.synced(true);
            assert_eq!(ledger.operation_done(Kind::Sync, true), Ok((NO_ENTRY, false)));
            assert_eq!(ledger.slots_free(), 4);
        }
    }

    #[test]
    fn room_for_adds_is_what_tags_and_slots_leave_also_when_their_numbers_wrap() {
        let mut ledger = ledger();
        (ledger.added, ledger.room_end, ledger.tags_end, ledger.slots_end) = (u32::MAX, u32::MAX, 1, 3);
        for _ in 0..8 {
            let entries = [3, 4].map(|index| add(&mut ledger, index, false));
            assert_eq!(try_add(&mut ledger, handle(5), false), Ok(false), "no tag");
            assert_eq!(entries.map(|entry| ledger.matched(entry)), [Ok(true); 2]);
            ledger.synced(true);
            let entry = add(&mut ledger, 5, false);
            assert_eq!(try_add(&mut ledger, handle(6), false), Ok(false), "no slot");
            assert_eq!(ledger.operation_done(Kind::Sync, true), Ok((NO_ENTRY, false)));
            assert!(ledger.last_matched(entry));
            ledger.tags_back(1);
            let entry = add(&mut ledger, 6, true);
            assert_eq!(ledger.operation_done(Kind::Add, true), Ok((entry, false)));
            assert_eq!(ledger.matched(entry), Ok(true));
            assert_eq!((ledger.tags_free(), ledger.slots_free()), (2, 4));
        }
    }

    #[test]
    fn begun_is_said_of_one_life_of_an_entry() {
        let mut ledger = ledger();
        let entry = add(&mut ledger, 7, false);
        assert!(!ledger.is_begun(7));
        ledger.begun(7);
        assert_eq!(ledger.matched(entry), Ok(true));
        assert!(ledger.is_begun(7));
        add(&mut ledger, 7, false);
        assert!(!ledger.is_begun(7) && !ledger.is_begun(8));
    }
}
