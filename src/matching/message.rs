//! One unexpected message, and where its links are kept.
//!
//! Not here: the list.

use super::chunks::Chunks;
use super::class::{Groups, Key, SourceKind, Wanted};
use super::fifo::{Link, Links};
use super::hash::low;
use super::pattern::Envelope;
use super::store::{Entry, Store};
use crate::ids::{MessageId, PeerId, Tag};

/// One message, on a cache line of its own.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Message<M> {
    pub(super) tag: u64,
    pub(super) source: u32,
    /// [`INDEXED`], or else [`DENSE`], also while a slot that can be dense is free.
    pub(super) home: u32,
    pub(super) sequence: u64,
    pub(super) links: [Link; LINKS_WITHIN],
    pub(super) value: M,
}

impl<M: Copy> Message<M> {
    #[inline]
    pub(super) fn id(&self, slot: u32) -> MessageId {
        MessageId::new(slot, low(self.sequence))
    }

    pub(super) fn new(message: &Envelope, value: M) -> Self {
        let links = [Link::default(); LINKS_WITHIN];
        Self { tag: message.tag.0, source: message.source.0, home: DENSE, sequence: 0, links, value }
    }

    /// Write an indexed message where it lies, alone of its key in each class. Budget: 15 instructions, and the value's.
    #[inline(always)]
    pub(super) fn write_indexed(
        &mut self,
        message: &Envelope,
        slot: u32,
        sequence: u64,
        value: impl Fn() -> M,
    ) {
        (self.tag, self.source, self.home) = (message.tag.0, message.source.0, INDEXED);
        (self.sequence, self.links) = (sequence, [Link::alone(slot); LINKS_WITHIN]);
        self.value = value();
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
        (self.sequence, self.home) = (0, DENSE);
    }

    /// What is wanted, of no group, and the number of its class.
    type Sought = (Wanted, usize);

    #[inline(always)]
    fn is_sought(&self, slot: u32, (wanted, class): (Wanted, usize)) -> bool {
        self.fits(&wanted) && self.links.get(class).is_some_and(|link| link.next() == slot)
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
        if self.class < LINKS_WITHIN {
            &mut self.store.at_mut(slot).links[self.class]
        } else {
            let links = &mut self.links[self.class - LINKS_WITHIN];
            links.reach(slot as usize, Link::default());
            links.at_mut(slot as usize)
        }
    }
}

/// Classes whose links are in the message: with an 8-byte value a message fills one cache line.
pub(super) const LINKS_WITHIN: usize = 4;
/// Links of a chunk: 4 KiB.
pub(super) const LINKS: usize = 512;
pub(super) const DENSE: u32 = 0;
pub(super) const INDEXED: u32 = 1;
