//! Posted receives: one index per class, each receive in exactly one, and a message looks into each that holds any.
//!
//! Not here: messages.

#[cfg(test)]
mod invariants;

use super::class::{CLASSES, Class, Groups, SourceKind, Wanted, fragment};
use super::hash::{Hasher, low};
use super::pattern::{Envelope, Pattern};
use super::receive::{DENSE, Receive, STAYS, UNCLASSED};
use super::store::{Dense, NO_SLOT, Store};
use super::table::{Elsewhere, Place};
use super::{Statistics, Stay};
use crate::ids::{PeerId, ReceiveId};

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
    pub(super) fn queue(&mut self, pattern: &Pattern, stay: Stay, value: impl Fn() -> R) -> ReceiveId {
        match self.queue_dense(Wanted::new(pattern), stay, &value) {
            Some(id) => id,
            None => self.queue_indexed(pattern, stay, value),
        }
    }

    /// [`Self::queue_dense`] found no room.
    #[inline(never)]
    pub(super) fn queue_indexed(
        &mut self,
        pattern: &Pattern,
        stay: Stay,
        value: impl Fn() -> R,
    ) -> ReceiveId {
        match self.try_queue_indexed(&Wanted::new(pattern), stay, &value) {
            Some(id) => id,
            None => self.queue_slow(pattern, stay, value),
        }
    }

    #[inline(always)]
    pub(super) fn queue_dense(
        &mut self,
        wanted: Wanted,
        stay: Stay,
        value: impl Fn() -> R,
    ) -> Option<ReceiveId> {
        let (slot, sequence, receive) = self.store.next_dense()?;
        receive.write(wanted, stay, sequence, value);
        Some(ReceiveId::new(slot, low(sequence)))
    }

    /// The same, whose value is the caller's to write: what is there is old.
    #[inline(always)]
    pub(super) fn place_dense(&mut self, wanted: Wanted, stay: Stay) -> Option<(ReceiveId, &mut R)> {
        let (slot, sequence, receive) = self.store.next_dense()?;
        receive.write_key(wanted, stay, sequence);
        Some((ReceiveId::new(slot, low(sequence)), &mut receive.value))
    }

    /// The quick half of [`Self::queue_slow`]: its class was the last one's as well, and no receive of the same key is
    /// posted. None, and nothing has changed, if that takes more. Makes no call. Budget: 95 instructions.
    #[inline(always)]
    pub(super) fn try_queue_indexed(
        &mut self,
        wanted: &Wanted,
        stay: Stay,
        value: impl Fn() -> R,
    ) -> Option<ReceiveId> {
        let number = self.recent;
        let class = self.classes.get_mut(number).filter(|class| class.is_for_same(wanted))?;
        let slot = self.store.next_indexed_slot()?;
        let fragment = fragment(self.hasher, wanted.key());
        if !class.table.try_insert(fragment, slot) {
            return None;
        }
        self.occupied |= 1 << number;
        let (sequence, receive) = self.store.enter_indexed(slot);
        receive.write(*wanted, stay, sequence, value);
        receive.write_indexed(slot, number + 1, fragment);
        Some(ReceiveId::new(slot, low(sequence)))
    }

    /// [`Self::try_queue_indexed`] cannot. What is wanted is read again from the pattern, so that only who comes here
    /// has it in memory.
    #[cold]
    #[inline(never)]
    pub(super) fn queue_slow(&mut self, pattern: &Pattern, stay: Stay, value: impl Fn() -> R) -> ReceiveId {
        let wanted = Wanted::new(pattern);
        if !self.store.is_indexed()
            && let Some(id) = self.make_room(wanted, stay, &value)
        {
            return id;
        }
        let mut number = self.recent;
        if !self.classes.get(number).is_some_and(|class| class.is_for(wanted.mask, wanted.kind())) {
            number = self.class_for_slow(wanted.mask, wanted.kind()).unwrap_or(CLASSES);
        }
        let Some(class) = self.classes.get_mut(number) else {
            return self.queue_unclassed(wanted, stay, value);
        };
        let fragment = fragment(self.hasher, wanted.key());
        let (slot, sequence, receive) = self.store.next_indexed(|| Receive::new(wanted, stay, value()));
        receive.write(wanted, stay, sequence, value);
        receive.write_indexed(slot, number + 1, fragment);
        if class.table.insert_quick(fragment, slot) {
            self.occupied |= 1 << number;
        } else {
            self.index_slow(slot);
        }
        ReceiveId::new(slot, low(sequence))
    }

    /// Add a receive as a dense one after all if there is room, or is once some others have become indexed.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, wanted: Wanted, stay: Stay, value: &impl Fn() -> R) -> Option<ReceiveId> {
        if !self.store.make_room(|| Receive::new(wanted, stay, value())) {
            self.spill();
            self.store.make_room(|| Receive::new(wanted, stay, value()));
        }
        self.queue_dense(wanted, stay, value)
    }

    #[cold]
    #[inline(never)]
    fn queue_unclassed(&mut self, wanted: Wanted, stay: Stay, value: impl Fn() -> R) -> ReceiveId {
        let (slot, sequence, receive) = self.store.next_indexed(|| Receive::new(wanted, stay, value()));
        receive.write(wanted, stay, sequence, value);
        self.index(slot, None);
        ReceiveId::new(slot, low(sequence))
    }

    #[cold]
    #[inline(never)]
    fn spill(&mut self) {
        for slot in self.store.spill() {
            let wanted = self.store.at(slot).wanted();
            let class = self.class_for(wanted.mask, wanted.kind());
            self.index(slot, class);
        }
    }

    /// Index a receive that is written but for what its class needs.
    #[inline(always)]
    fn index(&mut self, slot: u32, number: Option<usize>) {
        let receive = self.store.at_mut(slot);
        let Some(number) = number else {
            receive.write_indexed(slot, UNCLASSED, 0);
            return self.append_unclassed(slot);
        };
        let fragment = fragment(self.hasher, receive.wanted().key());
        receive.write_indexed(slot, number + 1, fragment);
        if self.classes[number].table.insert_quick(fragment, slot) {
            self.occupied |= 1 << number;
        } else {
            self.index_slow(slot);
        }
    }

    /// Put a receive, alone as yet, among those of its key.
    #[inline(never)]
    fn index_slow(&mut self, slot: u32) {
        let receive = self.store.at(slot);
        let (number, fragment, key) = (receive.home() - 1, receive.fragment, receive.wanted().key());
        self.occupied |= 1 << number;
        let class = &mut self.classes[number];
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
            return Some(ReceiveId::new(found.slot, low(found.sequence)));
        }
        let slot = self.store.look_dense(|receive| receive.fits(message, groups))?;
        Some(self.store.at(slot).id(slot))
    }

    /// The first receive of a short list that fits, the group it wants aside. Budget: 15 instructions for the first
    /// and 11 for each further one.
    #[inline(always)]
    pub(super) fn find_current(&mut self, message: &Envelope) -> Option<Dense<'_, Receive<R>>> {
        self.store.find_dense(|receive| receive.wanted().fits(message.tag.0, message.source.0))
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

    /// Whether [`Self::take_first_of_classes`] is of use.
    #[inline(always)]
    pub(super) const fn has_classes(&self) -> bool {
        self.unclassed == NO_SLOT && self.occupied & self.occupied.wrapping_sub(1) != 0
    }

    /// A frequent case alone, for few instructions: every candidate is in its key's own line, and the winner is alone
    /// of its key and does not stay. An error says nothing. Budget: 70 instructions and 50 a class.
    #[inline(always)]
    pub(super) fn take_first_of_classes(
        &mut self,
        message: &Envelope,
        groups: &Groups,
    ) -> Result<Option<(ReceiveId, R)>, Elsewhere> {
        let (tag, source) = (message.tag.0, message.source.0);
        let (mut first, mut first_class, mut first_place) = (u64::MAX, 0, Place::NONE);
        let mut occupied = self.occupied;
        while occupied != 0 {
            let number = occupied.trailing_zeros() as usize;
            occupied &= occupied - 1;
            let Some(class) = self.classes.get(number) else { break };
            let key = class.key_of(tag, source, groups);
            let Some(place) = class.table.look(fragment(self.hasher, key))? else { continue };
            let receive = self.store.at(place.slot);
            let is_alone = receive.state & STAYS == 0 && receive.link.next() == place.slot;
            if !is_alone || !receive.has_key(class.mask, key) {
                return Err(Elsewhere);
            }
            if receive.sequence < first {
                (first, first_class, first_place) = (receive.sequence, number, place);
            }
        }
        if first == u64::MAX {
            return Ok(None);
        }
        let slot = first_place.slot;
        let class = &mut self.classes[first_class];
        self.store.matched_indexed(first);
        let Some((sequence, receive)) = self.store.take_indexed(slot, None) else { return Err(Elsewhere) };
        class.table.remove_looked(first_place);
        if class.table.keys() == 0 {
            self.occupied &= !(1 << first_class);
        }
        Ok(Some((ReceiveId::new(slot, low(sequence)), receive.value)))
    }

    /// The same for one class, which is the most frequent case, for fewer instructions: 100. The receive can be read where
    /// it lies until the next one is posted. Makes no call.
    #[inline(always)]
    pub(super) fn take_first_quick(
        &mut self,
        message: &Envelope,
    ) -> Result<Option<(ReceiveId, &R)>, Elsewhere> {
        if self.unclassed != NO_SLOT || self.occupied & self.occupied.wrapping_sub(1) != 0 {
            return Err(Elsewhere);
        }
        let number = self.occupied.trailing_zeros() as usize;
        let Some(class) = self.classes.get_mut(number) else { return Ok(None) };
        if class.kind == SourceKind::Group {
            return Err(Elsewhere);
        }
        let key = class.key_without_group(message.tag.0, message.source.0);
        let mask = class.mask;
        let Some(candidates) = class.table.candidates(fragment(self.hasher, key)) else { return Ok(None) };
        let Some(slot) = candidates.slot() else { return candidates.end() };
        // The first of them nearly always; a loop would have more words to keep than there are registers.
        let sought = Some((mask, key));
        let Some((sequence, receive)) = self.store.take_indexed(slot, sought) else { return Err(Elsewhere) };
        candidates.clear();
        if class.table.keys() == 0 {
            self.occupied = 0;
        }
        Ok(Some((ReceiveId::new(slot, low(sequence)), &receive.value)))
    }

    #[inline(always)]
    fn take_first_indexed(&mut self, message: &Envelope, groups: &Groups) -> Option<(ReceiveId, R)> {
        let found = self.find_indexed(message, groups)?;
        let id = ReceiveId::new(found.slot, low(found.sequence));
        self.store.matched_indexed(found.sequence);
        if found.state & STAYS != 0 {
            return Some((id, self.store.at(found.slot).value));
        }
        if found.class == CLASSES {
            self.remove_unclassed(found.slot);
            let value = self.store.at(found.slot).value;
            self.store.remove_indexed(found.slot);
            return Some((id, value));
        }
        let receive = *self.store.at(found.slot);
        self.store.remove_indexed(found.slot);
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
        if let Some(receive) = self.store.named_current(id.index(), id.generation())
            && receive.home() == DENSE
        {
            let taken = (receive.pattern(), receive.value);
            self.store.remove_dense(id.index());
            return Some(taken);
        }
        self.take_anywhere(id)
    }

    #[inline]
    fn take_anywhere(&mut self, id: ReceiveId) -> Option<(Pattern, R)> {
        let receive = self.store.named(id.index(), id.generation())?;
        let (home, link, fragment) = (receive.home(), receive.link, receive.fragment);
        let taken = (receive.pattern(), receive.value);
        match home {
            DENSE => self.store.remove_dense(id.index()),
            UNCLASSED => {
                self.remove_unclassed(id.index());
                self.store.remove_indexed(id.index());
            }
            home => {
                self.store.remove_indexed(id.index());
                let class = home - 1;
                self.classes[class].remove(id.index(), link, &mut self.store, || fragment);
                self.leave_class(class);
            }
        }
        Some(taken)
    }

    /// As [`Self::take`], of a dense receive in the ring's region that fits the message, wants no group and does not stay.
    /// Budget: 35 instructions.
    #[inline(always)]
    pub(super) fn take_current<O>(
        &mut self,
        id: ReceiveId,
        message: &Envelope,
        read: impl FnOnce(&R) -> O,
    ) -> Option<O> {
        let receive = self.store.named_current(id.index(), id.generation())?;
        let is_usual = receive.home() == DENSE && receive.is_plain();
        if !is_usual || !receive.wanted().fits(message.tag.0, message.source.0) {
            return None;
        }
        let taken = read(&receive.value);
        self.store.remove_dense(id.index());
        Some(taken)
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
        self.store.named(id.index(), id.generation()).map(|receive| (receive.pattern(), &receive.value))
    }

    pub(super) fn get_mut(&mut self, id: ReceiveId) -> Option<&mut R> {
        self.store.named_mut(id.index(), id.generation()).map(|receive| &mut receive.value)
    }

    pub(super) fn stays(&self, id: ReceiveId) -> Option<Stay> {
        let receive = self.store.named(id.index(), id.generation())?;
        Some(if receive.state & STAYS == 0 { Stay::Once } else { Stay::Posted })
    }

    pub(super) fn ids(&self) -> Vec<ReceiveId> {
        let id = |(sequence, slot)| ReceiveId::new(slot, low(sequence));
        self.store.in_order(|_| true).into_iter().map(id).collect()
    }

    /// Call with each peer that a receive names, and say how many slots were looked at.
    pub(super) fn for_each_peer(&self, each: &mut dyn FnMut(PeerId)) -> usize {
        self.store.for_each_of_any(|receive| {
            if receive.source_mask != 0 {
                each(PeerId(receive.source));
            }
        })
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
            self.index(slot, Some(number));
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
}

/// Classes that may be declared; the rest is for what programs ask without saying so.
pub(super) const DECLARED_MAX: usize = 12;
