//! Building a class's index of the messages that wait already: at the first search with a new mask, and again when the
//! keys of many change at once.
//!
//! A long list is read once, in the order in which it lies in memory, and its class is filled by partitions that fit
//! into a cache (table/filling.rs). That order is mostly that of age; where slots were used again it is not, and
//! messages of one key that came out of order are put in order at the end.
//!
//! Not here: which classes there are.

use super::chunks::Chunks;
use super::class::{Groups, Key, fragment};
use super::fifo::{self, Link, Links};
use super::message::{ClassLinks, LINKS, Message, link_of};
use super::table::{Filling, Note};
use super::unexpected::UnexpectedList;

impl<M: Copy> UnexpectedList<M> {
    /// Index every indexed message in a class anew, in order.
    pub(super) fn refill(&mut self, number: usize, groups: &Groups) {
        let messages = self.store.indexed();
        self.scanned += u64::from(messages);
        if messages >= LONG {
            return self.refill_long(number, groups);
        }
        self.classes[number].table.clear_for(messages);
        for (_, slot) in self.store.in_order(Message::is_indexed) {
            let message = self.store.at_mut(slot);
            message.state &= !(1 << number);
            let envelope = message.envelope();
            self.index_in(number, slot, &envelope, groups);
        }
    }

    #[cold]
    #[inline(never)]
    fn refill_long(&mut self, number: usize, groups: &Groups) {
        let mut filling = self.note_runs(number, groups);
        let mut disordered = Vec::new();
        for partition in 0..filling.partitions() {
            self.classes[number].table.settle(&mut filling, partition);
            for note in filling.left.drain(..) {
                self.index_run(number, note, groups, &mut disordered);
            }
        }
        for note in filling.beyond.drain(..) {
            self.index_run(number, note, groups, &mut disordered);
        }
        disordered.sort_unstable();
        disordered.dedup();
        for head in disordered {
            self.put_in_order(number, head, groups);
        }
    }

    /// Link each run of messages with equal keys, and note its first. Few instructions, so that the processor has many
    /// messages on their way from memory at once.
    fn note_runs(&mut self, number: usize, groups: &Groups) -> Filling {
        let (class, hasher) = (&mut self.classes[number], self.hasher);
        let mut filling = class.table.begin_filling(self.store.indexed());
        let links = &mut self.links[number];
        self.store.for_each_part_mut(|first, messages| {
            let mut run = Run { key: Key { tag: 0, source: 0 }, head: 0, sequence: u64::MAX };
            for (slot, at) in (first..).zip(0..messages.len()) {
                let Some(message) = messages.get_mut(at) else { break };
                if message.sequence == 0 || !message.is_indexed() {
                    continue;
                }
                // Written only if need be: nearly all are alone, and stay as they are.
                if !message.is_alone(1 << number) {
                    message.state &= !(1 << number);
                }
                let (key, sequence) = (class.key_of(message.tag, message.source, groups), message.sequence);
                if key == run.key && sequence > run.sequence {
                    fifo::append(
                        &mut PartLinks { class: number, first, messages, links: &mut *links },
                        run.head,
                        slot,
                    );
                    run.sequence = sequence;
                    continue;
                }
                class.table.note(&mut filling, Note { fragment: fragment(hasher, key), slot });
                run = Run { key, head: slot, sequence };
            }
        });
        filling
    }

    /// Put a run into a class as the last of its key, whatever its age. The first of a key in which that was wrong is
    /// named.
    fn index_run(&mut self, number: usize, note: Note, groups: &Groups, disordered: &mut Vec<u32>) {
        let (class, store) = (&mut self.classes[number], &self.store);
        let (mask, kind) = (class.mask, class.kind);
        // Seldom asked: both messages are far away.
        let head = class.table.find_or_insert(note.fragment, note.slot, |other| {
            let (own, other) = (store.at(note.slot), store.at(other));
            (own.tag ^ other.tag) & mask == 0 && kind.are_same(own.source, other.source, groups)
        });
        let Some(head) = head else { return };
        let mut links = ClassLinks { store: &mut self.store, links: &mut self.links, class: number };
        let last = links.link(head).prev();
        let is_older = links.store.at(last).sequence > links.store.at(note.slot).sequence;
        if is_older && disordered.last() != Some(&head) {
            disordered.push(head);
        }
        fifo::join(&mut links, head, note.slot);
    }

    /// Put the messages of one key in order of age.
    fn put_in_order(&mut self, number: usize, head: u32, groups: &Groups) {
        let class = &mut self.classes[number];
        let message = self.store.at(head);
        let fragment = fragment(self.hasher, class.key_of(message.tag, message.source, groups));
        let mut links = ClassLinks { store: &mut self.store, links: &mut self.links, class: number };
        let mut messages = Vec::new();
        let mut slot = head;
        loop {
            messages.push((links.store.at(slot).sequence, slot));
            slot = links.link(slot).next();
            if slot == head {
                break;
            }
        }
        messages.sort_unstable();
        let Some((&(_, first), later)) = messages.split_first() else { return };
        *links.link(first) = Link::alone(first);
        for (_, slot) in later {
            fifo::append(&mut links, first, *slot);
        }
        if let Some(place) = class.table.place_of(fragment, head) {
            class.table.replace(place, first);
        }
    }
}

/// A run of messages with equal keys, in order.
struct Run {
    key: Key,
    head: u32,
    /// Of its last.
    sequence: u64,
}

/// The links of one class of a part of the list.
struct PartLinks<'a, M> {
    class: usize,
    first: u32,
    messages: &'a mut [Message<M>],
    links: &'a mut Chunks<Link, LINKS>,
}

impl<M: Copy> Links for PartLinks<'_, M> {
    #[inline]
    fn link(&mut self, slot: u32) -> &mut Link {
        link_of(&mut self.messages[(slot - self.first) as usize], slot, self.class, self.links)
    }
}

/// A list of so many indexed messages is read in the order of memory. In the tests of this crate few, so that random
/// operations come there.
const LONG: u32 = if cfg!(test) { 96 } else { 4096 };
