//! One posted receive.
//!
//! Not here: the list.

use super::Stay;
use super::class::{CLASSES, Groups, Key, Wanted};
use super::fifo::{Link, Links};
use super::hash::low;
use super::pattern::{Envelope, Pattern};
use super::store::{Entry, Store};
use crate::ids::ReceiveId;

/// One posted receive, on a cache line of its own.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Receive<R> {
    pub(super) tag: u64,
    pub(super) mask: u64,
    pub(super) source_mask: u32,
    pub(super) source: u32,
    pub(super) sequence: u64,
    /// [`GROUP`], [`STAYS`], and from bit 8 on one more than its class, or [`DENSE`] or [`UNCLASSED`].
    pub(super) state: u32,
    /// Of its key, if it is in a class.
    pub(super) fragment: u32,
    pub(super) link: Link,
    pub(super) value: R,
}

impl<R: Copy> Receive<R> {
    #[inline]
    pub(super) fn id(&self, slot: u32) -> ReceiveId {
        ReceiveId::new(slot, low(self.sequence))
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

    pub(super) fn new(wanted: Wanted, stay: Stay, value: R) -> Self {
        let link = Link::default();
        let (tag, mask, source, source_mask, state, fragment, sequence) = (0, 0, 0, 0, 0, 0, 0);
        let mut new = Self { tag, mask, source_mask, source, sequence, state, fragment, link, value };
        new.write(wanted, stay, sequence, || value);
        new
    }

    /// Write all that a dense receive needs, its value where it lies. Budget: 10 instructions, and the value's.
    #[inline(always)]
    pub(super) fn write(&mut self, wanted: Wanted, stay: Stay, sequence: u64, value: impl Fn() -> R) {
        self.write_key(wanted, stay, sequence);
        self.value = value();
    }

    /// The same without its value.
    #[inline(always)]
    pub(super) fn write_key(&mut self, wanted: Wanted, stay: Stay, sequence: u64) {
        let Wanted { tag, mask, source_mask, source, is_group } = wanted;
        (self.tag, self.mask, self.source_mask, self.source) = (tag, mask, source_mask, source);
        let stays = if stay == Stay::Posted { STAYS } else { 0 };
        self.state = (u32::from(is_group) * GROUP) | stays;
        self.sequence = sequence;
    }

    #[inline]
    pub(super) const fn home(&self) -> usize {
        (self.state >> 8) as usize
    }

    /// What [`Self::write`] leaves out: what an indexed receive needs, alone of its key.
    #[inline(always)]
    pub(super) fn write_indexed(&mut self, slot: u32, home: usize, fragment: u32) {
        self.set_home(home);
        (self.fragment, self.link) = (fragment, Link::alone(slot));
    }

    #[inline]
    pub(super) fn set_home(&mut self, home: usize) {
        self.state = (self.state & 0xff) | (low(home as u64) << 8);
    }

    #[inline]
    pub(super) const fn wanted(&self) -> Wanted {
        let Self { tag, mask, source_mask, source, .. } = *self;
        Wanted { tag, mask, source_mask, source, is_group: self.state & GROUP != 0 }
    }

    pub(super) fn pattern(&self) -> Pattern {
        self.wanted().pattern()
    }

    #[inline(always)]
    pub(super) fn fits(&self, message: &Envelope, groups: &Groups) -> bool {
        self.wanted().fits(message.tag.0, message.source.0)
            && (self.state & GROUP == 0 || groups.contains(self.source, message.source.0))
    }

    /// Whether it has that key, being in the class with this mask.
    #[inline]
    pub(super) fn has_key(&self, mask: u64, key: Key) -> bool {
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
    fn release(&mut self) {
        self.retire();
    }

    /// The mask of a class, and a key in it.
    type Sought = (u64, Key);

    #[inline(always)]
    fn is_sought(&self, slot: u32, (mask, key): (u64, Key)) -> bool {
        self.has_key(mask, key) && self.state & STAYS == 0 && self.link.next() == slot
    }
}

impl<R: Copy> Links for Store<Receive<R>> {
    #[inline]
    fn link(&mut self, slot: u32) -> &mut Link {
        &mut self.at_mut(slot).link
    }
}

/// The source is a group. Is one, so that it turns a group's number into its key.
pub(super) const GROUP: u32 = 1;
/// The receive stays posted when it is matched.
pub(super) const STAYS: u32 = 2;
/// The home of a dense receive: zero once shifted.
pub(super) const DENSE: usize = 0;
pub(super) const UNCLASSED: usize = CLASSES + 1;
