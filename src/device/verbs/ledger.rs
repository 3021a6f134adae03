//! The accounts of a matching list as its driver keeps them: entries in use, and command slots (TM-CONTRACT 6.1, 8.1).
//!
//! Pure bookkeeping. The driver checks neither (a DEL of an entry that is not in use corrupts it, a full queue and a
//! full list give one and the same error), so whoever posts asks here first.
//!
//! Not here: what a completion means to an engine.

use std::collections::VecDeque;

/// The accounts of one list.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Ledger {
    entries: Vec<Entry>,
    /// Entries that nothing is owed to.
    free: Vec<u32>,
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
            free: (0..tags).rev().collect(),
            pending: VecDeque::with_capacity(slots as usize),
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
    pub fn tags_free(&self) -> usize {
        self.free.len()
    }

    /// Whether the entry is in use: a completion of it is still to come.
    #[must_use]
    pub fn is_in_use(&self, entry: u32) -> bool {
        self.find(entry).is_some_and(|entry| entry.owed > 0)
    }

    /// Completions that the entry still waits for.
    #[must_use]
    pub fn owed(&self, entry: u32) -> u8 {
        self.find(entry).map_or(0, |entry| entry.owed)
    }

    /// The driver's number of the entry.
    #[must_use]
    pub fn handle(&self, entry: u32) -> Option<u32> {
        self.find(entry).filter(|entry| entry.owed > 0).map(|entry| entry.handle)
    }

    /// Take an entry for an ADD that is about to be posted. `None`: all tags are in use.
    #[must_use]
    pub fn reserve(&mut self) -> Option<u32> {
        self.free.pop()
    }

    /// The ADD was not posted, or the entry is kept no longer.
    pub fn give_back(&mut self, entry: u32) {
        self.free.push(entry);
    }

    /// A free entry is not to be used again yet: its number still names something. Until [`Self::give_back`].
    pub fn keep(&mut self, entry: u32) {
        if let Some(place) = self.free.iter().rposition(|free| *free == entry) {
            self.free.swap_remove(place);
        }
    }

    /// An ADD of a reserved entry takes its place among the operations.
    pub fn added(&mut self, entry: u32, signalled: bool) {
        if let Some(entry) = self.entries.get_mut(entry as usize) {
            entry.owed = if signalled { 2 } else { 1 };
        }
        self.operation_posted(Kind::Add, entry, signalled);
    }

    /// The ADD was posted, and the driver gave the entry this number.
    pub fn named(&mut self, entry: u32, handle: u32) {
        if let Some(entry) = self.entries.get_mut(entry as usize) {
            entry.handle = handle;
        }
    }

    /// Whether a DEL may be posted: the entry is in use, and its 8-bit count has room.
    #[must_use]
    pub fn may_delete(&self, entry: u32) -> bool {
        self.find(entry).is_some_and(|entry| (1..OWED_MAX).contains(&entry.owed))
    }

    /// A DEL was posted. True: the entry is free again, since an unsignalled one is taken for a success at once.
    pub fn deleted(&mut self, entry: u32, signalled: bool) -> bool {
        self.operation_posted(Kind::Del, entry, signalled);
        if signalled {
            if let Some(entry) = self.entries.get_mut(entry as usize) {
                entry.owed = entry.owed.saturating_add(1);
            }
            return false;
        }
        self.settle(entry, 1).unwrap_or(false)
    }

    /// A SYNC was posted.
    pub fn synced(&mut self, signalled: bool) {
        self.operation_posted(Kind::Sync, 0, signalled);
    }

    /// The completion of the oldest signalled operation was polled: of which entry it was, and whether that entry is
    /// free again.
    ///
    /// # Errors
    /// None is under way, or one of another kind.
    pub fn operation_done(&mut self, kind: Kind, success: bool) -> Result<(u32, bool), LedgerError> {
        let pending = self.pending.pop_front().ok_or(LedgerError::NoOperation { kind })?;
        if pending.kind != kind {
            return Err(LedgerError::OtherOperation { kind, expected: pending.kind });
        }
        self.slots_used = self.slots_used.saturating_sub(pending.frees);
        let count = match kind {
            Kind::Add => 1,
            Kind::Del if success => 2,
            Kind::Del => 1,
            Kind::Sync => return Ok((0, false)),
        };
        Ok((pending.entry, self.settle(pending.entry, count)?))
    }

    /// The ordinary case of [`Self::operation_done`]: the oldest signalled operation is an ADD, and its entry is not
    /// free after it. `None`: it is not that, and nothing has changed.
    #[inline(always)]
    pub fn add_done(&mut self) -> Option<u32> {
        let &Pending { kind: Kind::Add, entry: index, frees } = self.pending.front()? else { return None };
        let entry = self.entries.get_mut(index as usize)?;
        if entry.owed < 2 {
            return None;
        }
        entry.owed -= 1;
        self.pending.pop_front();
        self.slots_used = self.slots_used.saturating_sub(frees);
        Some(index)
    }

    /// The ordinary case of [`Self::matched`]: the entry waits for this completion alone, and is free after it.
    /// False: it is not that, and nothing has changed.
    #[inline(always)]
    pub fn last_matched(&mut self, index: u32) -> bool {
        match self.entries.get_mut(index as usize) {
            Some(entry) if entry.owed == 1 => entry.owed = 0,
            Some(_) | None => return false,
        }
        self.free.push(index);
        true
    }

    /// The last completion of a match was polled: whether the entry is free again.
    ///
    /// # Errors
    /// The entry waits for nothing.
    pub fn matched(&mut self, entry: u32) -> Result<bool, LedgerError> {
        self.settle(entry, 1)
    }

    fn operation_posted(&mut self, kind: Kind, entry: u32, signalled: bool) {
        self.slots_used += 1;
        self.unsignalled += 1;
        if signalled {
            let frees = std::mem::take(&mut self.unsignalled);
            self.pending.push_back(Pending { kind, entry, frees });
        }
    }

    /// So many completions fewer to wait for.
    fn settle(&mut self, index: u32, count: u8) -> Result<bool, LedgerError> {
        let entry = self.entries.get_mut(index as usize).ok_or(LedgerError::NoEntry { index })?;
        entry.owed = entry.owed.checked_sub(count).ok_or(LedgerError::NothingOwed { index })?;
        let is_free = entry.owed == 0;
        if is_free {
            self.free.push(index);
        }
        Ok(is_free)
    }

    fn find(&self, entry: u32) -> Option<&Entry> {
        self.entries.get(entry as usize)
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
    /// The entry is free.
    #[error("a completion of entry {index}, which waits for none")]
    NothingOwed {
        /// Its number.
        index: u32,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Entry {
    handle: u32,
    /// `expect_cqe`
    owed: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Pending {
    kind: Kind,
    entry: u32,
    /// Slots that its polling frees: its own, and those of unsignalled operations before it.
    frees: u32,
}

/// Signed 8 bits in libmlx5 (TM-CONTRACT 8.2).
const OWED_MAX: u8 = 127;

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger() -> Ledger {
        Ledger::new(2, 4)
    }

    fn add(ledger: &mut Ledger, handle: u32, signalled: bool) -> u32 {
        let entry = ledger.reserve().unwrap();
        ledger.added(entry, signalled);
        ledger.named(entry, handle);
        entry
    }

    #[test]
    fn an_entry_is_free_when_add_and_match_were_polled_in_either_order() {
        let mut ledger = ledger();
        let entry = add(&mut ledger, 7, true);
        assert_eq!(ledger.handle(entry), Some(7));
        assert_eq!(ledger.operation_done(Kind::Add, true), Ok((entry, false)));
        assert_eq!(ledger.matched(entry), Ok(true));
        let entry = add(&mut ledger, 8, true);
        assert_eq!(ledger.matched(entry), Ok(false));
        assert_eq!(ledger.operation_done(Kind::Add, true), Ok((entry, true)));
        assert_eq!((ledger.tags_free(), ledger.slots_free()), (2, 4));
    }

    #[test]
    fn the_short_ways_do_the_ordinary_case_and_change_nothing_in_others() {
        let mut ledger = ledger();
        assert_eq!(ledger.add_done(), None);
        let entry = add(&mut ledger, 7, true);
        assert!(!ledger.last_matched(entry), "its ADD was not polled");
        assert_eq!((ledger.add_done(), ledger.slots_free()), (Some(entry), 4));
        assert!(ledger.last_matched(entry) && !ledger.last_matched(entry) && !ledger.last_matched(9));
        assert_eq!(ledger.tags_free(), 2);
        let entry = add(&mut ledger, 7, true);
        assert_eq!(ledger.matched(entry), Ok(false));
        assert_eq!(ledger.add_done(), None, "it frees its entry");
        assert_eq!(ledger.operation_done(Kind::Add, true), Ok((entry, true)));
        ledger.synced(true);
        assert_eq!(ledger.add_done(), None, "a SYNC is the oldest");
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
        assert_eq!(ledger.operation_done(Kind::Sync, true), Ok((0, false)));
        assert_eq!(ledger.slots_free(), 3);
    }

    #[test]
    fn completions_that_do_not_fit_are_errors() {
        let mut ledger = ledger();
        assert_eq!(ledger.operation_done(Kind::Add, true), Err(LedgerError::NoOperation { kind: Kind::Add }));
        assert_eq!(ledger.matched(0), Err(LedgerError::NothingOwed { index: 0 }));
        assert_eq!(ledger.matched(9), Err(LedgerError::NoEntry { index: 9 }));
        ledger.synced(true);
        let expected = LedgerError::OtherOperation { kind: Kind::Del, expected: Kind::Sync };
        assert_eq!(ledger.operation_done(Kind::Del, true), Err(expected));
    }

    #[test]
    fn all_tags_in_use_and_an_add_that_was_not_posted() {
        let mut ledger = ledger();
        let (first, second) = (ledger.reserve().unwrap(), ledger.reserve().unwrap());
        assert_ne!(first, second);
        assert_eq!(ledger.reserve(), None);
        ledger.give_back(second);
        assert_eq!(ledger.reserve(), Some(second));
    }

    #[test]
    fn an_entry_that_is_kept_is_not_used_again_until_it_is_given_back() {
        let mut ledger = ledger();
        let entry = add(&mut ledger, 7, false);
        assert_eq!(ledger.matched(entry), Ok(true));
        ledger.keep(entry);
        let other = ledger.reserve().unwrap();
        assert_ne!(other, entry);
        assert_eq!(ledger.reserve(), None);
        ledger.give_back(entry);
        assert_eq!(ledger.reserve(), Some(entry));
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
