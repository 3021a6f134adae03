//! The accounts of a matching list as its driver keeps them: entries in use, and command slots (TM-CONTRACT 6.1, 8.1).
//!
//! Pure bookkeeping. The driver checks neither (a DEL of an entry that is not in use corrupts it, a full queue and a
//! full list give one and the same error), so whoever posts asks here first.
//!
//! Not here: what a completion means to an engine.

use std::collections::VecDeque;

use crate::ids::TagHandle;

/// The accounts of one list. Entries go by the names that the caller gives them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Ledger {
    /// By index.
    entries: Vec<Entry>,
    tags: u32,
    tags_used: u32,
    pending: VecDeque<Pending>,
    /// Slots of unsignalled operations that no signalled one follows yet.
    unsignalled: u32,
    slots: u32,
    slots_used: u32,
}

impl Ledger {
    /// A list of so many tags under so many command slots.
    #[must_use]
    pub fn new(tags: u32, slots: u32) -> Self {
        Self {
            entries: vec![Entry::default(); tags as usize],
            tags,
            tags_used: 0,
            pending: VecDeque::new(),
            unsignalled: 0,
            slots,
            slots_used: 0,
        }
    }

    /// Operations that can be posted now.
    #[must_use]
    pub const fn slots_free(&self) -> u32 {
        self.slots - self.slots_used
    }

    /// Tags that can be added now.
    #[must_use]
    pub const fn tags_free(&self) -> u32 {
        self.tags - self.tags_used
    }

    /// Whether the entry is in use: a completion of it is still to come.
    #[must_use]
    pub fn is_in_use(&self, handle: TagHandle) -> bool {
        self.find(handle).is_some_and(|entry| entry.owed > 0)
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
        self.find(handle).map_or(0, |entry| entry.owed)
    }

    /// The driver's number of the entry.
    #[must_use]
    pub fn number(&self, handle: TagHandle) -> Option<u32> {
        self.find(handle).filter(|entry| entry.owed > 0).map(|entry| entry.number)
    }

    /// An ADD takes its place among the operations. False: there is no slot or no tag for it.
    ///
    /// # Errors
    /// There is an entry with this index.
    #[inline(always)]
    pub fn add(&mut self, handle: TagHandle, signalled: bool) -> Result<bool, LedgerError> {
        let TagHandle { index, generation } = handle;
        if self.slots_used >= self.slots || self.tags_used >= self.tags {
            return Ok(false);
        }
        let place = match self.entries.get_mut(index as usize) {
            Some(place) => place,
            None => self.grow(index),
        };
        if place.is_named() {
            return Err(LedgerError::InUse { index });
        }
        let owed = 1 + u8::from(signalled);
        *place = Entry { generation, number: 0, owed, is_kept: false, is_begun: false };
        self.tags_used += 1;
        self.operation_posted(Kind::Add, handle, signalled);
        Ok(true)
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, index: u32) -> &mut Entry {
        self.entries.resize(index as usize + 1, Entry::default());
        &mut self.entries[index as usize]
    }

    /// The ADD was posted, and the driver gave the entry this number.
    #[inline(always)]
    pub fn numbered(&mut self, handle: TagHandle, number: u32) {
        if let Some(entry) = self.entries.get_mut(handle.index as usize) {
            entry.number = number;
        }
    }

    /// Something was told of its match already: it is not for [`Self::last_matched`].
    pub fn begun(&mut self, index: u32) {
        if let Some(entry) = self.entries.get_mut(index as usize) {
            entry.is_begun = true;
        }
    }

    /// The driver is done with an entry, but its name still means something. Until [`Self::give_back`].
    pub fn keep(&mut self, index: u32) {
        if let Some(entry) = self.entries.get_mut(index as usize) {
            entry.is_kept = true;
        }
    }

    /// The name is kept no longer.
    pub fn give_back(&mut self, index: u32) {
        if let Some(entry) = self.entries.get_mut(index as usize) {
            entry.is_kept = false;
        }
    }

    /// Whether a DEL may be posted: the entry is in use, and its 8-bit count has room.
    #[must_use]
    pub fn may_delete(&self, handle: TagHandle) -> bool {
        self.find(handle).is_some_and(|entry| (1..OWED_MAX).contains(&entry.owed))
    }

    /// A DEL was posted. True: the entry is free again, since an unsignalled one is taken for a success at once.
    pub fn deleted(&mut self, handle: TagHandle, signalled: bool) -> bool {
        self.operation_posted(Kind::Del, handle, signalled);
        if signalled {
            if let Some(entry) = self.find_mut(handle) {
                entry.owed = entry.owed.saturating_add(1);
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
        self.slots_used = self.slots_used.saturating_sub(pending.frees);
        let count = match kind {
            Kind::Add => 1,
            Kind::Del if success => 2,
            Kind::Del => 1,
            Kind::Sync => return Ok((pending.handle, false)),
        };
        Ok((pending.handle, self.settle(pending.handle, count)?))
    }

    /// The ordinary case of [`Self::matched`]: the entry waits for this completion alone, nothing was told of its match
    /// before, and it is free after it. False: it is not that, and nothing has changed.
    #[inline(always)]
    pub fn last_matched(&mut self, handle: TagHandle) -> bool {
        let Some(entry) = self.entries.get_mut(handle.index as usize) else { return false };
        if entry.generation != handle.generation || entry.owed != 1 || entry.is_begun {
            return false;
        }
        entry.owed = 0;
        self.tags_used -= 1;
        true
    }

    /// The last completion of a match was polled: whether the entry is free again.
    ///
    /// # Errors
    /// The entry waits for nothing.
    pub fn matched(&mut self, handle: TagHandle) -> Result<bool, LedgerError> {
        self.settle(handle, 1)
    }

    #[inline(always)]
    fn operation_posted(&mut self, kind: Kind, handle: TagHandle, signalled: bool) {
        self.slots_used += 1;
        self.unsignalled += 1;
        if signalled {
            self.signalled_posted(kind, handle);
        }
    }

    #[inline(never)]
    fn signalled_posted(&mut self, kind: Kind, handle: TagHandle) {
        let frees = std::mem::take(&mut self.unsignalled);
        self.pending.push_back(Pending { kind, handle, frees });
    }

    /// So many completions fewer to wait for.
    fn settle(&mut self, handle: TagHandle, count: u8) -> Result<bool, LedgerError> {
        let index = handle.index;
        if index as usize >= self.entries.len() {
            return Err(LedgerError::NoEntry { index });
        }
        let entry = self.find_mut(handle).ok_or(LedgerError::NothingOwed { index })?;
        entry.owed = entry.owed.checked_sub(count).ok_or(LedgerError::NothingOwed { index })?;
        let is_free = entry.owed == 0;
        self.tags_used -= u32::from(is_free);
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

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Entry {
    generation: u32,
    /// The driver's.
    number: u32,
    /// `expect_cqe`
    owed: u8,
    is_kept: bool,
    is_begun: bool,
}

impl Entry {
    #[inline(always)]
    const fn is_named(&self) -> bool {
        self.owed > 0 || self.is_kept
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Pending {
    kind: Kind,
    handle: TagHandle,
    /// Slots that its polling frees: its own, and those of unsignalled operations before it.
    frees: u32,
}

/// What a SYNC is of.
const NO_ENTRY: TagHandle = TagHandle { index: u32::MAX, generation: u32::MAX };
/// Signed 8 bits in libmlx5 (TM-CONTRACT 8.2).
const OWED_MAX: u8 = 127;

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
        assert_eq!(ledger.add(handle(index), signalled), Ok(true));
        ledger.numbered(handle(index), index + 100);
        handle(index)
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
        assert_eq!(
            ledger.add(TagHandle { index: 0, generation: 6 }, false),
            Err(LedgerError::InUse { index: 0 })
        );
        add(&mut ledger, 1, false);
        assert_eq!(ledger.add(handle(2), false), Ok(false));
        assert!(ledger.last_matched(handle(0)) && ledger.last_matched(handle(1)));
        add(&mut ledger, 1000, false);
        ledger.synced(false);
        assert_eq!((ledger.tags_free(), ledger.slots_free()), (1, 0));
        assert_eq!(ledger.add(handle(2), false), Ok(false));
    }

    #[test]
    fn the_name_of_an_entry_that_is_kept_is_not_used_again_until_it_is_given_back() {
        let mut ledger = ledger();
        let entry = add(&mut ledger, 7, false);
        assert_eq!(ledger.matched(entry), Ok(true));
        assert_eq!(ledger.name(7), None);
        ledger.keep(7);
        assert_eq!((ledger.name(7), ledger.tags_free()), (Some(entry), 2));
        assert!(ledger.add(TagHandle { generation: 6, ..entry }, false).is_err());
        ledger.give_back(7);
        assert_eq!(ledger.add(TagHandle { generation: 6, ..entry }, false), Ok(true));
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
}
