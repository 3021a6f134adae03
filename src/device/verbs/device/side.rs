//! What receives: a TM-SRQ or a plain shared queue, the buffers behind it, and what the engine knows of entries.
//!
//! Not here: what completions mean.

use super::super::completion::CompletionQueue;
use super::super::receives::{self, SharedReceives};
use super::super::tag_matching::TagMatchingSrq;
use crate::ids::{MessageToken, PeerId, Tag, TagHandle};

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

/// A TM-SRQ and what the engine was told of its entries.
#[derive(Debug)]
pub(super) struct Matching {
    /// Its ledger says which entries there are.
    pub(super) srq: TagMatchingSrq,
    /// By the engine's index, of entries of whose match something was told: the ledger says of which.
    told: Vec<Told>,
}

/// A shared receive queue without a list.
#[derive(Debug)]
pub(super) struct Plain {
    pub(super) srq: SharedReceives,
    pub(super) queue: CompletionQueue,
}

/// What the engine was told of an entry of the list, and was not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Told {
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
    pub(super) fn new(srq: TagMatchingSrq) -> Self {
        Self { srq, told: Vec::new() }
    }

    /// What was told of the entry that has or had this index last.
    pub(super) fn told(&self, index: u32) -> Told {
        let told = self.told.get(index as usize).filter(|_| self.srq.ledger().is_begun(index));
        told.copied().unwrap_or(Told::NOTHING)
    }

    /// Something of its match was told.
    pub(super) fn set_stage(&mut self, index: u32, stage: Stage) {
        let told = Told { stage, ..self.told(index) };
        self.srq.ledger_mut().begun(index);
        self.set_told(index, told);
    }

    /// The driver is done with an entry of whose match something was told; its name is kept.
    pub(super) fn set_released(&mut self, index: u32) {
        self.set_told(index, Told { is_released: true, ..self.told(index) });
        self.srq.ledger_mut().keep(index);
    }

    fn set_told(&mut self, index: u32, told: Told) {
        let at = index as usize;
        if self.told.len() <= at {
            self.told.resize(at + 1, Told::NOTHING);
        }
        self.told[at] = told;
    }

    /// The stages of the entries of which something was told that are in use, or whose name is kept.
    pub(super) fn stages(&self) -> impl Iterator<Item = (TagHandle, Stage)> + '_ {
        let ledger = self.srq.ledger();
        (0_u32..).zip(&self.told).filter_map(|(index, told)| {
            let handle = ledger.name(index).filter(|_| ledger.is_begun(index))?;
            Some((handle, told.stage))
        })
    }
}

impl Told {
    const NOTHING: Self = Self { stage: Stage::Posted, is_released: false };
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
            Self::Matching(matching) => matching.srq.ledger().uses_key(key),
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
