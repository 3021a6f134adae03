//! Posted receives: one index per class, each receive in exactly one, and a message looks into each that holds any.
//!
//! Not here: messages.

use super::class::{CLASSES, Class, Groups, Key, SourceKind, Wanted, fragment};
use super::fifo::{Link, Links};
use super::hash::{Hasher, low};
use super::pattern::{Envelope, Pattern};
use super::store::{Dense, Entry, NO_SLOT, Store};
use super::table::Place;
use super::{Statistics, Stay};
use crate::ids::ReceiveId;

/// The list of posted receives.
#[derive(Clone)]
pub(super) struct PostedList<R> {
    pub(super) store: Store<Receive<R>>,
    hasher: Hasher,
    classes: Vec<Class>,
    /// Which classes hold any.
    occupied: u32,
    /// The class of the receive that was indexed last.
    recent: usize,
    /// The first of the receives that found no class free, in a ring of their own.
    unclassed: u32,
    uses: u64,
    builds: u64,
}

/// One posted receive.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub(super) struct Receive<R> {
    tag: u64,
    mask: u64,
    source_mask: u32,
    source: u32,
    sequence: u64,
    /// [`GROUP`], [`STAYS`], and from bit 8 on one more than its class, or [`DENSE`] or [`UNCLASSED`].
    state: u32,
    /// Of its key, if it is in a class.
    fragment: u32,
    link: Link,
    pub(super) value: R,
}

/// A receive that was found, and how to take it.
#[derive(Clone, Copy)]
struct Found {
    /// All ones if nothing was.
    sequence: u64,
    slot: u32,
    state: u32,
    /// [`CLASSES`] for one that is in none.
    class: usize,
    place: Place,
}

impl<R: Copy> PostedList<R> {
    pub(super) fn new(hasher: Hasher, dense_limit: u32) -> Self {
        Self {
            store: Store::new(dense_limit),
            hasher,
            classes: Vec::new(),
            occupied: 0,
            recent: 0,
            unclassed: NO_SLOT,
            uses: 0,
            builds: 0,
        }
    }

    /// Add a receive at the end of the list. Budget: 25 instructions dense, 100 indexed.
    #[inline(always)]
    pub(super) fn queue(&mut self, wanted: Wanted, stay: Stay, value: R) -> ReceiveId {
        match self.queue_dense(wanted, stay, value) {
            Some(id) => id,
            None => self.queue_slow(wanted, stay, value),
        }
    }

    #[inline(always)]
    pub(super) fn queue_dense(&mut self, wanted: Wanted, stay: Stay, value: R) -> Option<ReceiveId> {
        let (slot, sequence, receive) = self.store.next_dense()?;
        receive.write(wanted, stay, value, sequence);
        Some(ReceiveId { index: slot, generation: low(sequence) })
    }

    #[cold]
    #[inline(never)]
    fn queue_slow(&mut self, wanted: Wanted, stay: Stay, value: R) -> ReceiveId {
        if !self.store.is_indexed() {
            if self.store.make_room(|| Receive::new(wanted, stay, value))
                && let Some(id) = self.queue_dense(wanted, stay, value)
            {
                return id;
            }
            self.spill();
        }
        let class = self.class_for(wanted.mask, wanted.kind());
        let key = wanted.key();
        let fragment = fragment(self.hasher, key);
        let (slot, sequence, receive) = self.store.next_indexed(|| Receive::new(wanted, stay, value));
        receive.write(wanted, stay, value, sequence);
        receive.fragment = fragment;
        receive.set_home(class.map_or(UNCLASSED, |number| number + 1));
        receive.link = Link::alone(slot);
        self.index(slot, class, key, fragment);
        ReceiveId { index: slot, generation: low(sequence) }
    }

    #[cold]
    #[inline(never)]
    fn spill(&mut self) {
        for slot in self.store.spill() {
            let wanted = self.store.at(slot).wanted();
            let class = self.class_for(wanted.mask, wanted.kind());
            let key = wanted.key();
            let fragment = fragment(self.hasher, key);
            let receive = self.store.at_mut(slot);
            receive.fragment = fragment;
            receive.set_home(class.map_or(UNCLASSED, |number| number + 1));
            receive.link = Link::alone(slot);
            self.index(slot, class, key, fragment);
        }
    }

    /// Put a receive, alone as yet, among those of its key.
    #[inline(always)]
    fn index(&mut self, slot: u32, number: Option<usize>, key: Key, fragment: u32) {
        let Some(number) = number else { return self.append_unclassed(slot) };
        let class = &mut self.classes[number];
        self.occupied |= 1 << number;
        let (mask, store) = (class.mask, &self.store);
        let head = class.table.find_or_insert(fragment, slot, |other| store.at(other).has_key(mask, key));
        if let Some(head) = head {
            super::fifo::append(&mut self.store, head, slot);
        }
    }

    #[cold]
    fn append_unclassed(&mut self, slot: u32) {
        if self.unclassed == NO_SLOT {
            self.unclassed = slot;
        } else {
            super::fifo::append(&mut self.store, self.unclassed, slot);
        }
    }

    /// The class of a mask and kind of source, made if need be. None if every one is in use by others.
    #[inline]
    fn class_for(&mut self, mask: u64, kind: SourceKind) -> Option<usize> {
        if self.classes.get(self.recent).is_some_and(|class| class.is_for(mask, kind)) {
            return Some(self.recent);
        }
        self.class_for_slow(mask, kind)
    }

    #[inline(never)]
    fn class_for_slow(&mut self, mask: u64, kind: SourceKind) -> Option<usize> {
        self.uses += 1;
        let number = self.classes.iter().position(|class| class.is_for(mask, kind)).or_else(|| {
            self.builds += 1;
            if self.classes.len() < CLASSES {
                self.classes.push(Class::new(mask, kind));
                return Some(self.classes.len() - 1);
            }
            let idle = |number: &usize| {
                self.classes[*number].table.keys() == 0 && !self.classes[*number].is_declared
            };
            let oldest = (0..CLASSES).filter(idle).min_by_key(|number| self.classes[*number].used_at)?;
            self.classes[oldest].become_class(mask, kind);
            Some(oldest)
        })?;
        self.classes[number].used_at = self.uses;
        self.recent = number;
        Some(number)
    }

    /// Make the class beforehand and keep it: whether there was room.
    pub(super) fn declare(&mut self, mask: u64, kind: SourceKind) -> bool {
        let declared = self.classes.iter().filter(|class| class.is_declared).count();
        if declared >= DECLARED_MAX {
            return false;
        }
        self.class_for(mask, kind).map(|number| self.classes[number].is_declared = true).is_some()
    }

    /// The earliest receive that fits a message.
    #[inline]
    pub(super) fn first(&self, message: &Envelope, groups: &Groups) -> Option<ReceiveId> {
        if self.store.indexed() != 0
            && let Some(found) = self.find_indexed(message, groups)
        {
            return Some(ReceiveId { index: found.slot, generation: low(found.sequence) });
        }
        let slot = self.store.look_dense(|receive| receive.fits(message, groups))?;
        Some(self.store.at(slot).id(slot))
    }

    /// Whether [`Self::find_current`] is all there is to search.
    #[inline(always)]
    pub(super) const fn is_short(&self) -> bool {
        self.store.older == 0
    }

    /// The first receive of a short list that fits, the group it wants aside. Budget: 15 instructions for the first
    /// and 11 for each further one.
    #[inline(always)]
    pub(super) fn find_current(&mut self, message: &Envelope) -> Option<Dense<'_, Receive<R>>> {
        self.store.find_current(|receive| receive.wanted().fits(message.tag.0, message.source.0))
    }

    /// Take the earliest receive that fits a message, unless it stays. Budget: 70 instructions for an index of one
    /// class and 35 for each further one.
    #[inline]
    pub(super) fn take_first(&mut self, message: &Envelope, groups: &Groups) -> Option<(ReceiveId, R)> {
        if self.store.indexed() != 0
            && let Some(taken) = self.take_first_indexed(message, groups)
        {
            return Some(taken);
        }
        self.take_first_dense(message, groups)
    }

    /// The earliest of the dense receives. Budget: 20 instructions, and 13 for each that is looked at.
    #[inline(always)]
    pub(super) fn take_first_dense(&mut self, message: &Envelope, groups: &Groups) -> Option<(ReceiveId, R)> {
        let found = self.store.find_dense(|receive| receive.fits(message, groups))?;
        let taken = (found.entry.id(found.slot), found.entry.value);
        if found.entry.state & STAYS == 0 {
            found.remove();
        }
        Some(taken)
    }

    /// The most frequent case alone, for few instructions: one class holds all, and the receive is the only one of
    /// its key. None says nothing. Budget: 110 instructions.
    #[inline(always)]
    pub(super) fn take_first_of_class(
        &mut self,
        message: &Envelope,
        groups: &Groups,
    ) -> Option<(ReceiveId, R)> {
        if !self.occupied.is_power_of_two() || self.unclassed != NO_SLOT {
            return None;
        }
        let number = self.occupied.trailing_zeros() as usize;
        let class = self.classes.get_mut(number)?;
        let key = class.key_of(message.tag.0, message.source.0, groups);
        let fragment = fragment(self.hasher, key);
        let (mask, store) = (class.mask, &self.store);
        let cell = class.table.find_cell(fragment, |slot| {
            store.high(slot).is_some_and(|receive| {
                receive.has_key(mask, key) && receive.state & STAYS == 0 && receive.link.next() == slot
            })
        })?;
        let slot = cell.slot;
        let receive = self.store.remove_high(slot);
        cell.clear();
        if class.table.keys() == 0 {
            self.occupied = 0;
        }
        self.store.matched_indexed(receive.sequence);
        Some((receive.id(slot), receive.value))
    }

    #[inline(always)]
    fn take_first_indexed(&mut self, message: &Envelope, groups: &Groups) -> Option<(ReceiveId, R)> {
        let found = self.find_indexed(message, groups)?;
        let id = ReceiveId { index: found.slot, generation: low(found.sequence) };
        self.store.matched_indexed(found.sequence);
        if found.state & STAYS != 0 {
            return Some((id, self.store.at(found.slot).value));
        }
        if found.class == CLASSES {
            self.remove_unclassed(found.slot);
            return Some((id, self.store.remove_indexed(found.slot).value));
        }
        let receive = self.store.remove_indexed(found.slot);
        self.classes[found.class].remove_first(receive.fragment, found.place, receive.link, &mut self.store);
        self.leave_class(found.class);
        Some((id, receive.value))
    }

    /// Look into each class that holds receives; the smallest sequence number wins.
    #[inline(always)]
    fn find_indexed(&self, message: &Envelope, groups: &Groups) -> Option<Found> {
        let (tag, source) = (message.tag.0, message.source.0);
        let mut best = Found { sequence: u64::MAX, slot: 0, state: 0, class: CLASSES, place: Place::NONE };
        let mut occupied = self.occupied;
        while occupied != 0 {
            let number = occupied.trailing_zeros() as usize;
            occupied &= occupied - 1;
            let class = &self.classes[number];
            let key = class.key_of(tag, source, groups);
            let fragment = fragment(self.hasher, key);
            let found = class.table.find_map(fragment, |slot| {
                let receive = self.store.at(slot);
                receive.has_key(class.mask, key).then_some((receive.sequence, receive.state))
            });
            if let Some((place, (sequence, state))) = found
                && sequence < best.sequence
            {
                best = Found { sequence, slot: place.slot, state, class: number, place };
            }
        }
        if self.unclassed != NO_SLOT {
            best = self.find_unclassed(message, groups, best);
        }
        (best.sequence != u64::MAX).then_some(best)
    }

    #[cold]
    #[inline(never)]
    fn find_unclassed(&self, message: &Envelope, groups: &Groups, best: Found) -> Found {
        let mut slot = self.unclassed;
        loop {
            let receive = self.store.at(slot);
            let sequence = receive.sequence;
            if best.sequence < sequence {
                return best;
            }
            if receive.fits(message, groups) {
                return Found { sequence, slot, state: receive.state, class: CLASSES, place: Place::NONE };
            }
            slot = receive.link.next();
            if slot == self.unclassed {
                return best;
            }
        }
    }

    /// Take the receive that an id names, wherever it is.
    #[inline]
    pub(super) fn take(&mut self, id: ReceiveId) -> Option<(Pattern, R)> {
        let receive = *self.store.named(id.index, id.generation)?;
        match receive.home() {
            DENSE => self.store.remove_dense(id.index),
            UNCLASSED => {
                self.remove_unclassed(id.index);
                self.store.remove_indexed(id.index);
            }
            home => {
                self.store.remove_indexed(id.index);
                let class = home - 1;
                self.classes[class].remove(id.index, receive.link, &mut self.store, || receive.fragment);
                self.leave_class(class);
            }
        }
        Some((receive.pattern(), receive.value))
    }

    #[inline]
    fn leave_class(&mut self, class: usize) {
        if self.classes[class].table.keys() == 0 {
            self.occupied &= !(1 << class);
        }
    }

    fn remove_unclassed(&mut self, slot: u32) {
        let link = self.store.at(slot).link;
        let next = link.next();
        super::fifo::unlink(&mut self.store, slot, link);
        if next == slot {
            self.unclassed = NO_SLOT;
        } else if self.unclassed == slot {
            self.unclassed = next;
        }
    }

    pub(super) fn get(&self, id: ReceiveId) -> Option<(Pattern, &R)> {
        self.store.named(id.index, id.generation).map(|receive| (receive.pattern(), &receive.value))
    }

    pub(super) fn get_mut(&mut self, id: ReceiveId) -> Option<&mut R> {
        self.store.named_mut(id.index, id.generation).map(|receive| &mut receive.value)
    }

    pub(super) fn stays(&self, id: ReceiveId) -> Option<Stay> {
        let receive = self.store.named(id.index, id.generation)?;
        Some(if receive.state & STAYS == 0 { Stay::Once } else { Stay::Posted })
    }

    pub(super) fn ids(&self) -> Vec<ReceiveId> {
        let id = |(sequence, slot)| ReceiveId { index: slot, generation: low(sequence) };
        self.store.in_order(|_| true).into_iter().map(id).collect()
    }

    /// The receives of one peer become another's, at their places.
    pub(super) fn rename(&mut self, from: u32, to: u32) {
        let of_from = |receive: &Receive<R>| receive.source_mask != 0 && receive.source == from;
        let renamed = self.store.in_order(of_from);
        let mut stale = 0u32;
        for (_, slot) in renamed {
            let receive = self.store.at_mut(slot);
            receive.source = to;
            if receive.home() != DENSE && receive.home() != UNCLASSED {
                stale |= 1 << (receive.home() - 1);
            }
        }
        for number in (0..self.classes.len()).filter(|number| stale & (1 << number) != 0) {
            self.rebuild(number);
        }
    }

    /// Index the receives of a class again, in order.
    fn rebuild(&mut self, number: usize) {
        self.classes[number].table.clear();
        for (_, slot) in self.store.in_order(|receive| receive.home() == number + 1) {
            let key = self.store.at(slot).wanted().key();
            let fragment = fragment(self.hasher, key);
            let receive = self.store.at_mut(slot);
            (receive.fragment, receive.link) = (fragment, Link::alone(slot));
            self.index(slot, Some(number), key, fragment);
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.store.bytes()
            + self.classes.capacity() * size_of::<Class>()
            + self.classes.iter().map(|class| class.table.bytes()).sum::<usize>()
    }

    pub(super) fn statistics(&self, into: &mut Statistics) {
        into.posted_classes = self.occupied.count_ones() as usize;
        into.posted_class_builds = self.builds;
    }

    /// The invariants of this file, asserted.
    #[cfg(test)]
    pub(super) fn check(&self) {
        self.store.check(|receive| receive.home() == DENSE);
        let mut in_classes = 0;
        for (number, class) in self.classes.iter().enumerate() {
            let cells = class.table.check();
            let mut count = 0;
            for (fragment, head) in cells {
                let mut slot = head;
                let mut last = 0;
                assert!(self.store.at(head).link.is_head());
                loop {
                    let receive = self.store.at(slot);
                    assert_eq!(receive.home(), number + 1);
                    assert_eq!(receive.fragment | 1 << 31, fragment);
                    assert_eq!((receive.mask, receive.wanted().kind()), (class.mask, class.kind));
                    assert!(receive.sequence > last);
                    last = receive.sequence;
                    count += 1;
                    slot = receive.link.next();
                    if slot == head {
                        break;
                    }
                }
            }
            assert_eq!(count != 0, self.occupied & (1 << number) != 0);
            in_classes += count;
        }
        let unclassed = self.store.in_order(|receive| receive.home() == UNCLASSED);
        assert_eq!(unclassed.first().map_or(NO_SLOT, |(_, slot)| *slot), self.unclassed);
        assert_eq!(in_classes as usize + unclassed.len(), self.store.indexed() as usize);
    }
}

impl<R: Copy> Receive<R> {
    #[inline]
    pub(super) fn id(&self, slot: u32) -> ReceiveId {
        ReceiveId { index: slot, generation: low(self.sequence) }
    }

    /// The caller's value.
    #[inline(always)]
    pub(super) const fn value(&self) -> R {
        self.value
    }

    /// Whether it wants no group and leaves with its first match.
    #[inline(always)]
    pub(super) const fn is_plain(&self) -> bool {
        self.state & (GROUP | STAYS) == 0
    }

    fn new(wanted: Wanted, stay: Stay, value: R) -> Self {
        let link = Link::free(NO_SLOT);
        let (tag, mask, source, source_mask, state, fragment, sequence) = (0, 0, 0, 0, 0, 0, 0);
        let mut new = Self { tag, mask, source_mask, source, sequence, state, fragment, link, value };
        new.write(wanted, stay, value, sequence);
        new
    }

    /// Write all that a dense receive needs. Budget: 10 instructions.
    #[inline(always)]
    fn write(&mut self, wanted: Wanted, stay: Stay, value: R, sequence: u64) {
        let Wanted { tag, mask, source_mask, source, is_group } = wanted;
        (self.tag, self.mask, self.source_mask, self.source) = (tag, mask, source_mask, source);
        self.state = (u32::from(is_group) * GROUP) | if stay == Stay::Posted { STAYS } else { 0 };
        (self.sequence, self.value) = (sequence, value);
    }

    #[inline]
    const fn home(&self) -> usize {
        (self.state >> 8) as usize
    }

    #[inline]
    fn set_home(&mut self, home: usize) {
        self.state = (self.state & 0xff) | low(home as u64) << 8;
    }

    #[inline]
    const fn wanted(&self) -> Wanted {
        let Self { tag, mask, source_mask, source, .. } = *self;
        Wanted { tag, mask, source_mask, source, is_group: self.state & GROUP != 0 }
    }

    fn pattern(&self) -> Pattern {
        self.wanted().pattern()
    }

    #[inline(always)]
    fn fits(&self, message: &Envelope, groups: &Groups) -> bool {
        self.wanted().fits(message.tag.0, message.source.0)
            && (self.state & GROUP == 0 || groups.contains(self.source, message.source.0))
    }

    /// Whether it has that key, being in the class with this mask.
    #[inline]
    fn has_key(&self, mask: u64, key: Key) -> bool {
        let source = u64::from(self.source) + u64::from(self.state & GROUP);
        self.tag & mask == key.tag && source == key.source
    }
}

impl<R: Copy> Entry for Receive<R> {
    #[inline]
    fn sequence(&self) -> u64 {
        self.sequence
    }

    #[inline]
    fn retire(&mut self) {
        self.sequence = 0;
    }

    #[inline]
    fn release(&mut self, next: u32) {
        self.sequence = 0;
        self.link = Link::free(next);
    }

    #[inline]
    fn next_free(&self) -> u32 {
        self.link.next()
    }
}

impl<R: Copy> Links for Store<Receive<R>> {
    #[inline]
    fn link(&mut self, slot: u32) -> &mut Link {
        &mut self.at_mut(slot).link
    }
}

/// The source is a group. Is one, so that it turns a group's number into its key.
const GROUP: u32 = 1;
/// The receive stays posted when it is matched.
const STAYS: u32 = 2;
/// The home of a dense receive: zero once shifted.
const DENSE: usize = 0;
const UNCLASSED: usize = CLASSES + 1;
/// Classes that may be declared; the rest is for what programs ask without saying so.
pub(super) const DECLARED_MAX: usize = 12;
