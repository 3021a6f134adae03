//! Unexpected messages: one index per class of receive that searched for them, each message in every one, and a
//! receive looks only into its own.
//!
//! Not here: posted receives.

#[cfg(test)]
mod invariants;

use super::Statistics;
use super::chunks::Chunks;
use super::class::{CLASSES, Class, Groups, SourceKind, Wanted, fragment};
use super::fifo::Link;
use super::hash::{Hasher, low};
use super::message::{ANY_CLASS, ClassLinks, DENSE, INDEXED, LINKS, Message};
use super::pattern::Envelope;
use super::posted::DECLARED_MAX;
use super::store::{Dense, Store};
use super::table::Elsewhere;
use crate::ids::{MessageId, PeerId};

/// The list of unexpected messages.
#[derive(Clone)]
pub(super) struct UnexpectedList<M> {
    pub(super) store: Store<Message<M>>,
    pub(super) hasher: Hasher,
    pub(super) classes: Vec<Class>,
    /// Which classes are live: hold every indexed message.
    live: u32,
    /// The class that was searched last.
    recent: usize,
    /// The same if no other is live and short ways are for it, else no number of a class.
    only: usize,
    /// By class, and by slot: the links of messages that are not alone of their key.
    pub(super) links: Vec<Chunks<Link, LINKS>>,
    /// Searches of indexed messages.
    searches: u64,
    builds: u64,
    pub(super) scanned: u64,
}

impl<M: Copy> UnexpectedList<M> {
    pub(super) fn new(hasher: Hasher, dense_limit: u32) -> Self {
        Self {
            store: Store::new(dense_limit),
            hasher,
            classes: Vec::new(),
            live: 0,
            recent: 0,
            only: usize::MAX,
            links: Vec::new(),
            searches: 0,
            builds: 0,
            scanned: 0,
        }
    }

    /// Add a message at the end of the list. Budget: 25 instructions dense, 60 and 60 a live class indexed.
    #[inline(always)]
    pub(super) fn queue(&mut self, message: &Envelope, value: impl Fn() -> M, groups: &Groups) -> MessageId {
        match self.queue_dense(message, &value) {
            Some(id) => id,
            None => self.queue_indexed(message, value, groups),
        }
    }

    /// [`Self::queue_dense`] found no room.
    #[inline(never)]
    fn queue_indexed(&mut self, message: &Envelope, value: impl Fn() -> M, groups: &Groups) -> MessageId {
        match self.try_queue_indexed(message, &value) {
            Some(id) => id,
            None => self.queue_slow(*message, value, groups),
        }
    }

    #[inline(always)]
    pub(super) fn queue_dense(&mut self, envelope: &Envelope, value: impl Fn() -> M) -> Option<MessageId> {
        let (slot, sequence, message) = self.store.next_dense()?;
        debug_assert!(message.state == DENSE);
        (message.tag, message.source) = (envelope.tag.0, envelope.source.0);
        message.sequence = sequence;
        message.value = value();
        Some(MessageId::new(slot, low(sequence)))
    }

    /// The quick half of [`Self::queue_slow`]: the only live class takes it, and no message of the same key waits. None,
    /// and nothing has changed, if that takes more. Makes no call. Budget: 95 instructions.
    #[inline(always)]
    pub(super) fn try_queue_indexed(
        &mut self,
        envelope: &Envelope,
        value: impl Fn() -> M,
    ) -> Option<MessageId> {
        let class = self.classes.get_mut(self.only)?;
        let slot = self.store.next_indexed_slot()?;
        let fragment = fragment(self.hasher, class.key_without_group(envelope.tag.0, envelope.source.0));
        if !class.table.try_insert(fragment, slot) {
            return None;
        }
        let (sequence, message) = self.store.enter_indexed(slot);
        message.write_indexed(envelope, sequence, value);
        Some(MessageId::new(slot, low(sequence)))
    }

    #[cold]
    #[inline(never)]
    pub(super) fn queue_slow(
        &mut self,
        envelope: Envelope,
        value: impl Fn() -> M,
        groups: &Groups,
    ) -> MessageId {
        if !self.store.is_indexed()
            && let Some(id) = self.make_room(&envelope, &value, groups)
        {
            return id;
        }
        let (slot, sequence, message) = self.store.next_indexed(|| Message::new(&envelope, value()));
        message.write_indexed(&envelope, sequence, value);
        let mut live = self.live;
        let mut slow = 0;
        while live != 0 {
            let number = live.trailing_zeros() as usize;
            live &= live - 1;
            let Some(class) = self.classes.get_mut(number) else { break };
            let key = class.key_of(envelope.tag.0, envelope.source.0, groups);
            if !class.table.insert_quick(fragment(self.hasher, key), slot) {
                slow |= 1 << number;
            }
        }
        if slow != 0 {
            self.index(slot, slow, groups);
        }
        MessageId::new(slot, low(sequence))
    }

    /// Add a message as a dense one after all if there is room, or is once some others have become indexed.
    #[cold]
    #[inline(never)]
    fn make_room(
        &mut self,
        envelope: &Envelope,
        value: &impl Fn() -> M,
        groups: &Groups,
    ) -> Option<MessageId> {
        if !self.store.make_room(|| Message::new(envelope, value())) {
            self.spill(groups);
            self.store.make_room(|| Message::new(envelope, value()));
        }
        self.queue_dense(envelope, value)
    }

    #[cold]
    #[inline(never)]
    fn spill(&mut self, groups: &Groups) {
        for slot in self.store.spill() {
            let message = self.store.at_mut(slot);
            message.state = INDEXED;
            let envelope = message.envelope();
            let is_in = self.classes.get_mut(self.only).is_some_and(|class| {
                let key = class.key_without_group(envelope.tag.0, envelope.source.0);
                class.table.try_insert(fragment(self.hasher, key), slot)
            });
            if !is_in {
                self.index(slot, self.live, groups);
            }
        }
    }

    /// Put a message into each of these classes.
    #[inline(never)]
    fn index(&mut self, slot: u32, mut classes: u32, groups: &Groups) {
        let message = self.store.at(slot).envelope();
        while classes != 0 {
            let number = classes.trailing_zeros() as usize;
            classes &= classes - 1;
            self.index_in(number, slot, &message, groups);
        }
    }

    #[inline]
    pub(super) fn index_in(&mut self, number: usize, slot: u32, message: &Envelope, groups: &Groups) {
        let class = &mut self.classes[number];
        let key = class.key_of(message.tag.0, message.source.0, groups);
        let fragment = fragment(self.hasher, key);
        let (mask, kind, store) = (class.mask, class.kind, &self.store);
        let is_key = |other| store.at(other).has_key(mask, kind, key, groups);
        let head = class.table.find_or_insert(fragment, slot, is_key);
        if let Some(head) = head {
            let mut links = ClassLinks { store: &mut self.store, links: &mut self.links, class: number };
            super::fifo::append(&mut links, head, slot);
        }
    }

    /// Take an indexed message out of every live class.
    #[inline]
    fn unindex(&mut self, slot: u32, groups: &Groups) -> Message<M> {
        let message = *self.store.at(slot);
        self.store.remove_indexed(slot);
        self.unindex_from(slot, self.live, &message, groups);
        message
    }

    /// Take a message, which has left its slot, out of these classes. Budget: 60 instructions each.
    #[inline(never)]
    fn unindex_from(&mut self, slot: u32, mut classes: u32, message: &Message<M>, groups: &Groups) {
        while classes != 0 {
            let number = classes.trailing_zeros() as usize;
            classes &= classes - 1;
            let Some(class) = self.classes.get_mut(number) else { break };
            let fragment = fragment(self.hasher, class.key_of(message.tag, message.source, groups));
            // Nearly always it is the only entry of its key, and in the key's own line.
            if message.is_alone(1 << number)
                && let Ok(Some(cell)) = class.table.cell(fragment)
                && cell.slot == slot
            {
                cell.clear();
            } else {
                self.unindex_slow(number, fragment, slot, message);
            }
        }
    }

    #[inline(never)]
    fn unindex_slow(&mut self, number: usize, fragment: u32, slot: u32, message: &Message<M>) {
        let class = &mut self.classes[number];
        let is_alone = message.is_alone(1 << number);
        let link = if is_alone { Link::alone(slot) } else { *self.links[number].at(slot as usize) };
        let mut links = ClassLinks { store: &mut self.store, links: &mut self.links, class: number };
        class.remove(slot, link, &mut links, || fragment);
    }

    /// The earliest message that fits. Builds the class of what is wanted if many wait and there is none.
    #[inline(always)]
    pub(super) fn first(&mut self, wanted: &Wanted, groups: &Groups) -> Option<MessageId> {
        if self.store.is_short() && !wanted.is_group {
            let found = self.store.find_dense(|message| message.fits(wanted))?;
            return Some(found.entry.id(found.slot));
        }
        self.first_any(wanted, groups)
    }

    #[inline(never)]
    fn first_any(&mut self, wanted: &Wanted, groups: &Groups) -> Option<MessageId> {
        if self.store.indexed() != 0
            && let Some(slot) = self.find_indexed(wanted, groups)
        {
            return Some(self.store.at(slot).id(slot));
        }
        let found = self.store.find_dense(|message| message.fits_group(wanted, groups))?;
        Some(found.entry.id(found.slot))
    }

    /// The first message of a short list that fits, if no group is wanted. Budget: 15 instructions for the first
    /// and 11 for each further one.
    #[inline(always)]
    pub(super) fn find_current(&mut self, wanted: &Wanted) -> Option<Dense<'_, Message<M>>> {
        let Wanted { tag, mask, source_mask, source, .. } = *wanted;
        // Two loops, so that each has few words to keep.
        if source_mask == 0 {
            return self.store.find_dense(|message| (message.tag ^ tag) & mask == 0);
        }
        self.store.find_dense(|message| (message.tag ^ tag) & mask == 0 && message.source == source)
    }

    /// Take the earliest message that fits. Budget: indexed 70 instructions, and 35 for each further live class.
    #[inline]
    pub(super) fn take_first(
        &mut self,
        wanted: &Wanted,
        groups: &Groups,
    ) -> Option<(MessageId, Envelope, M)> {
        if self.store.indexed() != 0
            && let Some(taken) = self.take_first_indexed(wanted, groups)
        {
            return Some(taken);
        }
        self.take_first_dense(wanted, groups)
    }

    /// The earliest of the dense messages. Budget: 20 instructions, and 13 for each that is looked at.
    #[inline(always)]
    pub(super) fn take_first_dense(
        &mut self,
        wanted: &Wanted,
        groups: &Groups,
    ) -> Option<(MessageId, Envelope, M)> {
        let found = self.store.find_dense(|message| message.fits_group(wanted, groups))?;
        let taken = found.entry.taken(found.slot);
        found.remove();
        Some(taken)
    }

    /// The most frequent case alone, for few instructions: only one class is live, it is for what is wanted, and what it
    /// has is alone in the key's own line. An error says nothing. No group is wanted. The message can be read where it
    /// lies until the next one joins the list. Makes no call. Budget: 100 instructions.
    #[inline(always)]
    pub(super) fn take_first_quick(
        &mut self,
        wanted: &Wanted,
    ) -> Result<Option<(MessageId, &Message<M>)>, Elsewhere> {
        let number = self.only;
        let Some(class) = self.classes.get_mut(number) else { return Err(Elsewhere) };
        if !class.is_for_same(wanted) {
            return Err(Elsewhere);
        }
        let fragment = fragment(self.hasher, wanted.key());
        let Some(candidates) = class.table.candidates(fragment) else { return Ok(None) };
        let Some(slot) = candidates.slot() else { return candidates.end() };
        // The first of them nearly always; a loop would have more words to keep than there are registers. Most often of
        // all, no other message has the key.
        let sought = Some((*wanted, ANY_CLASS));
        let Some((sequence, message)) = self.store.take_indexed(slot, sought) else { return Err(Elsewhere) };
        candidates.clear();
        Ok(Some((MessageId::new(slot, low(sequence)), message)))
    }

    /// Whether [`Self::take_first_of_several`] is of use.
    #[inline(always)]
    pub(super) const fn has_several(&self) -> bool {
        self.live & self.live.wrapping_sub(1) != 0
    }

    /// The same where several classes are live. Budget: 100 instructions, and 60 for each class.
    #[inline(always)]
    pub(super) fn take_first_of_several(
        &mut self,
        wanted: &Wanted,
        groups: &Groups,
    ) -> Result<Option<(MessageId, &Message<M>)>, Elsewhere> {
        let searches = self.searches + 1;
        if !self.classes.get(self.recent).is_some_and(|class| class.is_for_same(wanted)) {
            self.change_recent(wanted);
        }
        let number = self.recent;
        let Some(class) = self.classes.get_mut(number) else { return Err(Elsewhere) };
        if !class.is_for_same(wanted) || searches.is_multiple_of(SWEEP) {
            return Err(Elsewhere);
        }
        self.searches = searches;
        class.used_at = searches;
        let fragment = fragment(self.hasher, wanted.key());
        let Some(candidates) = class.table.candidates(fragment) else { return Ok(None) };
        let Some(slot) = candidates.slot() else { return candidates.end() };
        let sought = Some((*wanted, 1 << number));
        let message = *self.store.at(slot);
        let Some((sequence, _)) = self.store.take_indexed(slot, sought) else { return Err(Elsewhere) };
        candidates.clear();
        self.unindex_from(slot, self.live & !(1 << number), &message, groups);
        Ok(Some((MessageId::new(slot, low(sequence)), self.store.at(slot))))
    }

    /// Make the class of what is wanted, if there is one, the recent one.
    #[inline(never)]
    fn change_recent(&mut self, wanted: &Wanted) {
        if let Some(number) = self.classes.iter().position(|class| class.is_for_same(wanted)) {
            self.set_recent(number);
        }
    }

    /// The class that was searched last; to be called as well whenever another is live or none.
    fn set_recent(&mut self, number: usize) {
        self.recent = number;
        let is_quick = self.classes.get(number).is_some_and(|class| class.kind != SourceKind::Group);
        let is_only = is_quick && self.live == 1 << number;
        self.only = if is_only { number } else { usize::MAX };
    }

    #[inline(always)]
    fn take_first_indexed(&mut self, wanted: &Wanted, groups: &Groups) -> Option<(MessageId, Envelope, M)> {
        let slot = self.find_indexed(wanted, groups)?;
        let message = self.unindex(slot, groups);
        self.store.matched_indexed(message.sequence);
        Some(message.taken(slot))
    }

    /// The slot of the first indexed message that fits.
    #[inline(always)]
    fn find_indexed(&mut self, wanted: &Wanted, groups: &Groups) -> Option<u32> {
        let (mask, kind) = (wanted.mask, wanted.kind());
        let number = if self.classes.get(self.recent).is_some_and(|class| class.is_for(mask, kind)) {
            self.recent
        } else {
            match self.classes.iter().position(|class| class.is_for(mask, kind)) {
                Some(number) => number,
                None => match self.build(mask, kind, groups) {
                    Some(number) => number,
                    None => return self.scan(wanted, groups),
                },
            }
        };
        if self.recent != number {
            self.set_recent(number);
        }
        self.searches += 1;
        if self.searches.is_multiple_of(SWEEP) {
            self.drop_unused();
        }
        let class = &mut self.classes[number];
        class.used_at = self.searches;
        let key = wanted.key();
        let fragment = fragment(self.hasher, key);
        let (class, store) = (&self.classes[number], &self.store);
        let place = class.table.find(fragment, |slot| store.at(slot).has_key(mask, kind, key, groups))?;
        Some(place.slot)
    }

    /// Build a class by one scan of the list. None if every one is in use by others.
    #[inline(never)]
    fn build(&mut self, mask: u64, kind: SourceKind, groups: &Groups) -> Option<usize> {
        let dead = (0..self.classes.len()).find(|number| !self.classes[*number].is_live);
        let number = if let Some(number) = dead {
            self.classes[number].become_class(mask, kind);
            number
        } else if self.classes.len() < CLASSES {
            self.classes.push(Class::new(mask, kind));
            self.classes.len() - 1
        } else {
            let kept = |class: &Class| class.is_declared || class.used_at + BUSY > self.searches;
            let idle = (0..CLASSES).filter(|number| !kept(&self.classes[*number]));
            let oldest = idle.min_by_key(|number| self.classes[*number].used_at)?;
            self.classes[oldest].become_class(mask, kind);
            oldest
        };
        self.classes[number].used_at = self.searches;
        self.live |= 1 << number;
        self.builds += 1;
        self.links.resize_with(self.classes.len(), Chunks::new);
        self.refill(number, groups);
        self.set_recent(number);
        Some(number)
    }

    /// The earliest indexed message that fits, by looking at each: for patterns beyond the sixteen classes.
    #[cold]
    fn scan(&mut self, wanted: &Wanted, groups: &Groups) -> Option<u32> {
        self.searches += 1;
        self.scanned += u64::from(self.store.indexed());
        let mut first: Option<(u64, u32)> = None;
        self.store.for_each(|slot, message| {
            if message.is_indexed()
                && first.is_none_or(|(sequence, _)| message.sequence < sequence)
                && message.fits_group(wanted, groups)
            {
                first = Some((message.sequence, slot));
            }
        });
        first.map(|(_, slot)| slot)
    }

    /// Drop classes that no receive searched for long, since every message pays for each. Constant time a class.
    #[cold]
    fn drop_unused(&mut self) {
        for number in 0..self.classes.len() {
            let class = &mut self.classes[number];
            if class.is_live && !class.is_declared && class.used_at + UNUSED < self.searches {
                class.die();
                self.live &= !(1 << number);
            }
        }
        self.set_recent(self.recent);
    }

    /// Make the class beforehand and keep it: whether there was room.
    pub(super) fn declare(&mut self, mask: u64, kind: SourceKind, groups: &Groups) -> bool {
        let declared = self.classes.iter().filter(|class| class.is_declared).count();
        if declared >= DECLARED_MAX {
            return false;
        }
        let known = self.classes.iter().position(|class| class.is_for(mask, kind));
        let number = known.or_else(|| self.build(mask, kind, groups));
        number.map(|number| self.classes[number].is_declared = true).is_some()
    }

    /// Take the message that an id names, wherever it is.
    #[inline]
    pub(super) fn take(&mut self, id: MessageId, groups: &Groups) -> Option<(Envelope, M)> {
        let message = self.store.named(id.index(), id.generation())?;
        if message.is_indexed() {
            return Some(self.take_indexed(id.index(), groups));
        }
        let taken = (message.envelope(), message.value);
        self.store.remove_dense(id.index());
        Some(taken)
    }

    #[inline(never)]
    fn take_indexed(&mut self, slot: u32, groups: &Groups) -> (Envelope, M) {
        let message = self.unindex(slot, groups);
        (message.envelope(), message.value)
    }

    pub(super) fn get(&self, id: MessageId) -> Option<(Envelope, &M)> {
        self.store.named(id.index(), id.generation()).map(|message| (message.envelope(), &message.value))
    }

    pub(super) fn get_mut(&mut self, id: MessageId) -> Option<&mut M> {
        self.store.named_mut(id.index(), id.generation()).map(|message| &mut message.value)
    }

    pub(super) fn ids(&self) -> Vec<MessageId> {
        self.ids_where(|_| true)
    }

    /// The messages of one peer, in order of arrival.
    pub(super) fn ids_of(&self, peer: u32) -> Vec<MessageId> {
        self.ids_where(|message| message.source == peer)
    }

    /// The messages whose value is wanted, in order of arrival.
    pub(super) fn ids_by_value(&self, wanted: impl Fn(&M) -> bool) -> Vec<MessageId> {
        self.ids_where(|message| wanted(&message.value))
    }

    /// Call with each message's sender, and say how many slots were looked at.
    pub(super) fn for_each_peer(&self, each: &mut dyn FnMut(PeerId)) -> usize {
        self.store.for_each_of_any(|message| each(PeerId(message.source)))
    }

    fn ids_where(&self, wanted: impl Fn(&Message<M>) -> bool) -> Vec<MessageId> {
        let id = |(sequence, slot)| MessageId::new(slot, low(sequence));
        self.store.in_order(wanted).into_iter().map(id).collect()
    }

    /// The messages of one peer become another's, at their places.
    pub(super) fn rename(&mut self, from: u32, to: u32, groups: &Groups) {
        let mut stale = false;
        for (_, slot) in self.store.in_order(|message| message.source == from) {
            let message = self.store.at_mut(slot);
            message.source = to;
            stale |= message.is_indexed();
        }
        if stale {
            self.rebuild(groups, |kind| kind != SourceKind::Any);
        }
    }

    /// A peer's group changed.
    pub(super) fn regroup(&mut self, peer: u32, groups: &Groups) {
        let mut stale = false;
        self.store.for_each(|_, message| stale |= message.source == peer && message.is_indexed());
        if stale {
            self.rebuild(groups, |kind| kind == SourceKind::Group);
        }
    }

    fn rebuild(&mut self, groups: &Groups, is_stale: impl Fn(SourceKind) -> bool) {
        for number in 0..self.classes.len() {
            if self.classes[number].is_live && is_stale(self.classes[number].kind) {
                self.refill(number, groups);
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.store.bytes()
            + self.classes.capacity() * size_of::<Class>()
            + self.classes.iter().map(|class| class.table.bytes()).sum::<usize>()
            + self.links.iter().map(Chunks::bytes).sum::<usize>()
    }

    pub(super) fn statistics(&self, into: &mut Statistics) {
        into.unexpected_classes = self.live.count_ones() as usize;
        into.unexpected_class_builds = self.builds;
        into.entries_scanned = self.scanned;
    }
}

/// Between two looks for unused classes, in searches.
const SWEEP: u64 = 256;
/// A class that so many searches did not use is dropped.
const UNUSED: u64 = 4096;
/// A class used in the last so many searches is not given up for another.
const BUSY: u64 = 64;
