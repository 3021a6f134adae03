//! What receives: a TM-SRQ or a plain shared queue, the buffers behind it, and what the engine knows of entries.
//!
//! Not here: what completions mean.

use super::super::completion::CompletionQueue;
use super::super::receives::{self, SharedReceives};
use super::super::tag_matching::TagMatchingSrq;
use crate::ids::{MessageToken, PeerId, Tag};
use crate::seam::Buffer;

/// What receives.
#[derive(Debug)]
pub(super) enum ReceiveSide {
    /// With a matching list.
    Matching(Box<Matching>),
    /// Without.
    Plain(Plain),
    /// Nothing any more.
    Gone,
}

/// A TM-SRQ and what the engine knows of its entries.
#[derive(Debug)]
pub(super) struct Matching {
    /// Its ledger says which entries there are.
    pub(super) srq: TagMatchingSrq,
    /// By the engine's index; what is not in the ledger is old.
    pub(super) entries: Vec<Entry>,
}

/// A shared receive queue without a list.
#[derive(Debug)]
pub(super) struct Plain {
    pub(super) srq: SharedReceives,
    pub(super) queue: CompletionQueue,
}

/// What is known of an entry of the list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub(super) buffer: Buffer,
    pub(super) stage: Stage,
    /// The driver is done with it, and the engine was not told: its buffer is still in use.
    pub(super) is_released: bool,
}

/// What the engine was told of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// In the list, or about to be.
    Posted,
    /// It is matched, and its data is under way from this peer.
    DataFollows(PeerId),
    /// A rendezvous that the device hands back in two steps: it was told as data that follows, and is read here.
    HandedBack(PeerId, u32, Tag),
    /// The rest was cancelled, or makes no sense: to be told when the peer's queue pairs are gone.
    Broken(PeerId),
    /// Everything but its release was told.
    Done,
}

impl Matching {
    pub(super) fn new(srq: TagMatchingSrq, tags: u32) -> Self {
        Self { srq, entries: vec![Entry::EMPTY; tags as usize] }
    }

    /// The ADD of an entry was put: what is known of it.
    #[inline(always)]
    pub(super) fn name(&mut self, index: u32, buffer: Buffer) {
        let entry = Entry { buffer, stage: Stage::Posted, is_released: false };
        match self.entries.get_mut(index as usize) {
            Some(place) => *place = entry,
            None => self.grow_and_name(index, entry),
        }
    }

    #[cold]
    #[inline(never)]
    fn grow_and_name(&mut self, index: u32, entry: Entry) {
        self.entries.resize(index as usize, Entry::EMPTY);
        self.entries.push(entry);
    }

    /// Something of its match was told.
    pub(super) fn set_stage(&mut self, index: u32, stage: Stage) {
        self.srq.ledger_mut().begun(index);
        if let Some(entry) = self.entries.get_mut(index as usize) {
            entry.stage = stage;
        }
    }

    fn uses_key(&self, key: u32) -> bool {
        let is_there = |index| self.srq.ledger().name(index).is_some();
        (0..).zip(&self.entries).any(|(index, entry)| entry.buffer.key == key && is_there(index))
    }
}

impl Entry {
    const EMPTY: Self = Self {
        buffer: Buffer { address: 0, length: 0, key: 0, segments: 0 },
        stage: Stage::Posted,
        is_released: false,
    };
}

impl ReceiveSide {
    pub(super) fn slab_count(&self) -> u32 {
        self.slab().map_or(0, receives::Slab::count)
    }

    /// The first bytes of a buffer of the slab.
    ///
    /// # Safety
    /// The buffer is not posted.
    pub(super) unsafe fn bytes(&self, buffer: u32, length: u32) -> &[u8] {
        // SAFETY: the caller's promise.
        self.slab().map_or(&[], |slab| unsafe { slab.bytes(buffer, length) })
    }

    pub(super) fn uses_key(&self, key: u32) -> bool {
        match self {
            Self::Matching(matching) => matching.uses_key(key),
            Self::Plain(_) | Self::Gone => false,
        }
    }

    fn slab(&self) -> Option<&receives::Slab> {
        match self {
            Self::Matching(matching) => Some(matching.srq.slab()),
            Self::Plain(plain) => Some(plain.srq.slab()),
            Self::Gone => None,
        }
    }
}

/// The buffers of the slab: posted, free, or kept with a message in them.
#[derive(Debug)]
pub(super) struct Buffers {
    free: Vec<u32>,
    /// By buffer: whether it is with the device.
    is_posted: Vec<bool>,
    pub(super) posted: u32,
    kept: u32,
    kept_max: u32,
}

impl Buffers {
    pub(super) fn new(count: u32, kept_max: u32) -> Self {
        let free = (0..count).rev().collect();
        let kept_max = kept_max.min(count.saturating_sub(1));
        Self { free, is_posted: vec![false; count as usize], posted: 0, kept: 0, kept_max }
    }

    /// Take buffers that are posted now; as many as there are free, up to `wanted`.
    pub(super) fn take(&mut self, wanted: usize, into: &mut Vec<u32>) {
        into.clear();
        while into.len() < wanted
            && let Some(buffer) = self.free.pop()
        {
            if let Some(is_posted) = self.is_posted.get_mut(buffer as usize) {
                *is_posted = true;
            }
            into.push(buffer);
        }
    }

    pub(super) fn free(&self) -> usize {
        self.free.len()
    }

    /// Whether it is with the device.
    pub(super) fn is_posted(&self, buffer: u32) -> bool {
        self.is_posted.get(buffer as usize).is_some_and(|is_posted| *is_posted)
    }

    /// A buffer came back from the queue with a message in it. False: there is no such buffer in the queue.
    pub(super) fn completed(&mut self, buffer: u32) -> bool {
        let is_posted = self.is_posted.get_mut(buffer as usize).is_some_and(std::mem::take);
        if is_posted {
            self.posted = self.posted.saturating_sub(1);
            self.kept += 1;
        }
        is_posted
    }

    /// Buffers with a message in them.
    pub(super) const fn kept(&self) -> u32 {
        self.kept
    }

    /// Whether a message may stay in its buffer.
    pub(super) const fn may_keep(&self) -> bool {
        self.kept <= self.kept_max
    }

    /// The message in it is no longer needed.
    pub(super) fn give_back(&mut self, buffer: u32) {
        self.kept = self.kept.saturating_sub(1);
        self.free.push(buffer);
    }
}

/// A message without a tag that waits for the owner.
#[derive(Debug)]
pub(super) struct Untagged {
    pub(super) source: PeerId,
    pub(super) token: MessageToken,
    pub(super) buffer: u32,
    pub(super) length: u32,
    /// Its bytes, where its buffer was needed.
    pub(super) copied: Option<Box<[u8]>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_posted_kept_and_free_and_never_two_of_it() {
        let mut buffers = Buffers::new(4, 1);
        let mut taken = Vec::new();
        buffers.take(3, &mut taken);
        buffers.posted += 3;
        assert_eq!((taken.len(), buffers.free()), (3, 1));
        assert!(buffers.completed(taken[0]));
        assert!(buffers.may_keep());
        assert!(buffers.completed(taken[1]));
        assert!(!buffers.may_keep());
        buffers.give_back(taken[0]);
        assert!(buffers.may_keep());
        assert_eq!((buffers.posted, buffers.free()), (1, 2));
        buffers.take(9, &mut taken);
        assert_eq!(taken.len(), 2);
    }

    #[test]
    fn a_buffer_that_is_not_with_the_device_does_not_come_back_from_it() {
        let mut buffers = Buffers::new(2, 1);
        let mut taken = Vec::new();
        assert!(!buffers.completed(0) && !buffers.completed(2));
        buffers.take(1, &mut taken);
        buffers.posted += 1;
        assert!(buffers.completed(taken[0]) && !buffers.completed(taken[0]));
        assert_eq!((buffers.posted, buffers.kept()), (0, 1));
    }
}
