//! One unexpected message, and where its links are kept.
//!
//! Not here: the list.

use super::chunks::Chunks;
use super::class::{CLASSES, Groups, Key, SourceKind, Wanted};
use super::fifo::{Link, Links};
use super::hash::low;
use super::pattern::Envelope;
use super::store::{Entry, Store};
use crate::ids::{MessageId, PeerId, Tag};

/// One message, on a cache line of its own, with a value of at most 40 bytes.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Message<M> {
    pub(super) tag: u64,
    pub(super) source: u32,
    /// [`INDEXED`] and a bit for each class in which others have its key, or have had: its links there are in the list's
    /// [`links`](super::unexpected::UnexpectedList::links). Or else [`DENSE`], also while a slot that can be dense is free.
    pub(super) state: u32,
    pub(super) sequence: u64,
    pub(super) value: M,
}

impl<M: Copy> Message<M> {
    #[inline]
    pub(super) fn id(&self, slot: u32) -> MessageId {
        MessageId::new(slot, low(self.sequence))
    }

    pub(super) fn new(message: &Envelope, value: M) -> Self {
        Self { tag: message.tag.0, source: message.source.0, state: DENSE, sequence: 0, value }
    }

    /// Write an indexed message where it lies, alone of its key in each class. Budget: 5 instructions, and the value's.
    #[inline(always)]
    pub(super) fn write_indexed(&mut self, message: &Envelope, sequence: u64, value: impl Fn() -> M) {
        (self.tag, self.source, self.state) = (message.tag.0, message.source.0, INDEXED);
        self.sequence = sequence;
        self.value = value();
    }

    #[inline(always)]
    pub(super) const fn is_indexed(&self) -> bool {
        self.state & INDEXED != 0
    }

    /// Whether it is alone of its key in all of these classes, a bit each.
    #[inline(always)]
    pub(super) const fn is_alone(&self, classes: u32) -> bool {
        self.state & classes == 0
    }

    /// Whether it is what is wanted, if that is not a group's.
    #[inline(always)]
    pub(super) const fn fits(&self, wanted: &Wanted) -> bool {
        wanted.fits(self.tag, self.source)
    }

    #[inline]
    pub(super) fn fits_group(&self, wanted: &Wanted, groups: &Groups) -> bool {
        self.fits(wanted) && (!wanted.is_group || groups.contains(wanted.source, self.source))
    }

    #[inline]
    pub(crate) fn envelope(&self) -> Envelope {
        Envelope { tag: Tag(self.tag), source: PeerId(self.source) }
    }

    /// The caller's value.
    #[inline(always)]
    pub(crate) const fn value(&self) -> &M {
        &self.value
    }

    #[inline]
    pub(super) fn taken(&self, slot: u32) -> (MessageId, Envelope, M) {
        (self.id(slot), self.envelope(), self.value)
    }

    /// Whether it has that key in the class of this mask and kind of source.
    #[inline]
    pub(super) fn has_key(&self, mask: u64, kind: SourceKind, key: Key, groups: &Groups) -> bool {
        self.tag & mask == key.tag
            && match kind {
                SourceKind::Any => true,
                SourceKind::Peer => u64::from(self.source) == key.source,
                SourceKind::Group => groups.key(self.source) == key.source,
            }
    }
}

impl<M: Copy> Entry for Message<M> {
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
        (self.sequence, self.state) = (0, DENSE);
    }

    /// What is wanted, of no group, and in which classes it is to be alone.
    type Sought = (Wanted, u32);

    #[inline(always)]
    fn is_sought(&self, _: u32, (wanted, classes): (Wanted, u32)) -> bool {
        self.fits(&wanted) && self.is_alone(classes)
    }
}

/// The links of one class of messages.
pub(super) struct ClassLinks<'a, M> {
    pub(super) store: &'a mut Store<Message<M>>,
    pub(super) links: &'a mut [Chunks<Link, LINKS>],
    pub(super) class: usize,
}

impl<M: Copy> Links for ClassLinks<'_, M> {
    #[inline]
    fn link(&mut self, slot: u32) -> &mut Link {
        link_of(self.store.at_mut(slot), slot, self.class, &mut self.links[self.class])
    }
}

/// The link of a message in a class. Who has no links there yet is alone.
#[inline]
pub(super) fn link_of<'a, M: Copy>(
    message: &mut Message<M>,
    slot: u32,
    class: usize,
    links: &'a mut Chunks<Link, LINKS>,
) -> &'a mut Link {
    if message.is_alone(1 << class) {
        message.state |= 1 << class;
        links.reach(slot as usize, Link::default());
        *links.at_mut(slot as usize) = Link::alone(slot);
    }
    links.at_mut(slot as usize)
}

/// Links of a chunk: 4 KiB.
pub(super) const LINKS: usize = 512;
pub(super) const DENSE: u32 = 0;
/// Above the bits of classes.
pub(super) const INDEXED: u32 = 1 << CLASSES;
/// The bits of all classes.
pub(super) const ANY_CLASS: u32 = INDEXED - 1;
