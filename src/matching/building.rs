//! A class of messages that is built little by little, after the first search with a new mask on a long list.
//!
//! That first search looks at each message once, finds its answer, and leaves a *mark* for each: 15 bits of the hash of
//! its key in the new class. Every later operation puts the next few of the marked messages into the class's table, and
//! a search in that class looks into the table and through the marks that are left. Each message is in just one of the
//! two. Messages that arrive meanwhile go into the table.
//!
//! Not here: which classes there are.

use super::class::{Groups, Wanted, fragment};
use super::fifo::{self, Link, Links};
use super::message::{ClassLinks, INDEXED};
use super::unexpected::UnexpectedList;

/// See the head of this file.
#[derive(Clone)]
pub(super) struct Building {
    pub(super) class: usize,
    /// By slot; zero where nothing is left to do.
    marks: Vec<u16>,
    /// No slot below is marked.
    cursor: usize,
}

impl Building {
    /// Take a message's mark away: whether it had one, and so is not in the table.
    pub(super) fn unmark(&mut self, slot: u32) -> bool {
        self.marks.get_mut(slot as usize).is_some_and(|mark| std::mem::take(mark) != 0)
    }

    /// Call with each slot of that mark.
    fn for_each_with(&self, mark: u16, mut each: impl FnMut(u32)) {
        let left = self.marks.get(self.cursor..).unwrap_or_default();
        let mut slot = super::hash::low(self.cursor as u64);
        for group in left.chunks(GROUP) {
            // Without a branch for each, so that it is done many at a time.
            if group.iter().fold(0, |any, other| any | u16::from(*other == mark)) != 0 {
                (slot..).zip(group).filter(|(_, other)| **other == mark).for_each(|(slot, _)| each(slot));
            }
            slot += super::hash::low(group.len() as u64);
        }
    }

    /// How many are marked.
    #[cfg(test)]
    pub(super) fn marked(&self) -> u32 {
        (0u32..).zip(&self.marks).filter(|(_, mark)| **mark != 0).map(|_| 1).sum()
    }

    pub(super) const fn bytes(&self) -> usize {
        self.marks.capacity() * size_of::<u16>()
    }
}

impl<M: Copy> UnexpectedList<M> {
    /// Whether a new class is not built at once.
    pub(super) const fn is_long(&self) -> bool {
        self.store.indexed() > AT_ONCE
    }

    /// Begin to build an empty class, and answer the search that asked for it: the slot of the first message that fits.
    #[cold]
    #[inline(never)]
    pub(super) fn begin_building(&mut self, number: usize, wanted: &Wanted, groups: &Groups) -> Option<u32> {
        let (class, hasher, key) = (&self.classes[number], self.hasher, wanted.key());
        let mut marks = vec![0; self.store.slots()];
        let mut first = (u64::MAX, None);
        self.store.for_each(|slot, message| {
            if message.home == INDEXED
                && let Some(mark) = marks.get_mut(slot as usize)
            {
                let own = class.key_of(message.tag, message.source, groups);
                *mark = mark_of(fragment(hasher, own));
                if own == key && message.sequence < first.0 {
                    first = (message.sequence, Some(slot));
                }
            }
        });
        self.scanned += u64::from(self.store.indexed());
        self.buildings.push(Building { class: number, marks, cursor: 0 });
        first.1
    }

    /// The slot of the first indexed message that fits, in a class that is being built.
    #[inline(never)]
    pub(super) fn find_building(&self, at: usize, wanted: &Wanted, groups: &Groups) -> Option<u32> {
        let building = self.buildings.get(at)?;
        let (class, store, key) = (&self.classes[building.class], &self.store, wanted.key());
        let (mask, kind, fragment) = (class.mask, class.kind, fragment(self.hasher, key));
        let place = class.table.find(fragment, |slot| store.at(slot).has_key(mask, kind, key, groups));
        let mut first = place.map(|place| (store.at(place.slot).sequence, place.slot));
        building.for_each_with(mark_of(fragment), |slot| {
            let message = store.at(slot);
            let is_earlier = first.is_none_or(|(sequence, _)| message.sequence < sequence);
            if is_earlier && message.has_key(mask, kind, key, groups) {
                first = Some((message.sequence, slot));
            }
        });
        first.map(|(_, slot)| slot)
    }

    /// Put the next few of the marked messages into the table of their class, the newest of those being built.
    #[cold]
    #[inline(never)]
    pub(super) fn build_on(&mut self, groups: &Groups) {
        let Some(mut building) = self.buildings.pop() else { return };
        let end = (building.cursor + STEP).min(building.marks.len());
        while building.cursor < end {
            let slot = super::hash::low(building.cursor as u64);
            if building.unmark(slot) && !self.insert_in_order(building.class, slot, groups) {
                return self.refill(building.class, groups);
            }
            building.cursor += 1;
        }
        if end < building.marks.len() {
            self.buildings.push(building);
        }
    }

    /// Put a message among those of its key, by age: whether its place was not far from the first or the last.
    fn insert_in_order(&mut self, number: usize, slot: u32, groups: &Groups) -> bool {
        let class = &mut self.classes[number];
        let message = *self.store.at(slot);
        let key = class.key_of(message.tag, message.source, groups);
        let fragment = fragment(self.hasher, key);
        let (mask, kind, store) = (class.mask, class.kind, &self.store);
        let is_key = |other| store.at(other).has_key(mask, kind, key, groups);
        let head = class.table.find_or_insert(fragment, slot, is_key);
        let mut links = ClassLinks { store: &mut self.store, links: &mut self.links, class: number };
        let Some(head) = head else {
            *links.link(slot) = Link::alone(slot);
            return true;
        };
        if message.sequence < links.store.at(head).sequence {
            fifo::prepend(&mut links, head, slot);
            if let Some(place) = class.table.place_of(fragment, head) {
                class.table.replace(place, slot);
            }
            return true;
        }
        let mut before = links.link(head).prev();
        for _ in 0..WALK {
            if links.store.at(before).sequence < message.sequence {
                fifo::insert_after(&mut links, before, slot);
                return true;
            }
            before = links.link(before).prev();
        }
        false
    }
}

/// Never zero.
const fn mark_of(fragment: u32) -> u16 {
    let [_, _, low, high] = fragment.to_le_bytes();
    u16::from_le_bytes([low, high]) | 1
}

// In the tests of this crate all three are small, so that random operations fall among the steps of a build.

/// A class of at most so many messages is built at once: 20 microseconds.
const AT_ONCE: u32 = if cfg!(test) { 32 } else { 512 };
/// So many slots are looked at in one operation.
const STEP: usize = if cfg!(test) { 20 } else { 512 };
/// Marks that are compared at once.
const GROUP: usize = 128;
/// So far from the last of its key a message may belong. Where it is further, slots were used in another order than that
/// of age and many messages are of one key: the class is built anew, in order.
const WALK: usize = if cfg!(test) { 4 } else { 64 };
