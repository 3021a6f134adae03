//! Sends in progress: those whose memory is still in use, or whose peer has still to answer.
//!
//! Not here: how they go out.

use slab::Slab;

use crate::device::transport::{CloseReason, Payload};
use crate::ids::{DeviceId, LinkId, PeerId, Tag};
use crate::seam::{self, Buffer};
use crate::wire::{OperationId, SendFlags};

use super::interface::{Failure, Space};
use super::remote::{Asked, Served};

/// All of them. A number is a place here: 24 bits on the wire, with a generation where a transport brings it back.
///
/// Those of one peer are a chain, so that its end costs what it has in progress, whatever others have.
#[derive(Default)]
pub(super) struct Operations {
    all: Slab<Entry>,
    generation: u32,
    /// By peer: where its chain begins.
    first: Vec<Option<u32>>,
}

/// An operation in the chain of its peer.
struct Entry {
    operation: Operation,
    before: Option<u32>,
    behind: Option<u32>,
}

/// A send in progress.
pub(super) struct Operation {
    pub(super) generation: u32,
    pub(super) peer: PeerId,
    pub(super) space: Space,
    pub(super) context: u64,
    pub(super) flags: u32,
    /// A completion is to come.
    pub(super) is_told: bool,
    /// Parts that are on their way, and whose memory is in use; and one if the peer's host is to have them.
    pub(super) posted: u32,
    /// It ends when the peer's host has all of it.
    pub(super) is_taken: bool,
    /// What the peer has still to say.
    pub(super) awaits: Awaits,
    /// It failed, and ends as soon as its memory is no longer in use.
    pub(super) failure: Option<Failure>,
    /// Segments that are still to be sent.
    pub(super) rest: Option<Rest>,
    /// The payload, where it was copied.
    pub(super) copy: Option<Box<[u8]>>,
    /// Bytes for which it took eager credit, to be given back if the transport leaves it out.
    pub(super) credit: Option<u64>,
    /// Of remote memory access: what it is about.
    pub(super) remote: Option<Remote>,
}

/// An access to memory of the peer's, or of this side's.
pub(super) enum Remote {
    /// Which this side asked for.
    Asked(Box<Asked>),
    /// Which the peer asked for.
    Served(Box<Served>),
}

/// What the peer has still to say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Awaits {
    /// Nothing.
    Nothing,
    /// That it has been matched, or that it is there.
    Acknowledgement(SendFlags),
    /// That it has been read.
    Read {
        /// Where it may be read.
        device: DeviceId,
        /// By what.
        remote: seam::Remote,
        /// The request's tag.
        tag: Tag,
        /// The request's flags.
        flags: SendFlags,
    },
    /// It has said so; the memory is still to be withdrawn.
    Withdrawal {
        /// Where it may be read.
        device: DeviceId,
        /// By what.
        remote: seam::Remote,
    },
    /// What is to be said of a remote memory access, or is still to go.
    Remote,
}

/// Segments that are still to be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest {
    pub(super) path: (DeviceId, LinkId),
    pub(super) buffer: Buffer,
    /// Where the next one begins.
    pub(super) next: u64,
    /// Bytes of each.
    pub(super) piece: u64,
}

impl Operation {
    /// One with this peer of which nothing is under way.
    pub(super) const fn new(peer: PeerId) -> Self {
        Self {
            generation: 0,
            peer,
            space: Space::Untagged,
            context: 0,
            flags: 0,
            is_told: true,
            posted: 0,
            is_taken: false,
            awaits: Awaits::Nothing,
            failure: None,
            rest: None,
            copy: None,
            credit: None,
            remote: None,
        }
    }

    /// Whether something of it is still to go out, or to be read out of a copy of this side's: an endpoint that is being
    /// closed waits for that.
    pub(super) const fn is_going_out(&self) -> bool {
        let is_access = match &self.remote {
            Some(Remote::Asked(asked)) => asked.is_going_out(),
            Some(Remote::Served(_)) => true,
            None => false,
        };
        self.posted > 0 || self.rest.is_some() || self.copy.is_some() || is_access
    }

    /// Whether nothing more is to be waited for.
    pub(super) const fn is_over(&self) -> bool {
        let is_failed = self.failure.is_some();
        let awaits = match self.awaits {
            Awaits::Nothing => false,
            Awaits::Acknowledgement(_) | Awaits::Read { .. } => !is_failed,
            Awaits::Withdrawal { .. } | Awaits::Remote => true,
        };
        self.posted == 0 && !awaits && (self.rest.is_none() || is_failed)
    }
}

impl Operations {
    /// The number of a new one. `None`: there are as many as there are numbers.
    pub(super) fn insert(&mut self, mut operation: Operation) -> Option<OperationId> {
        let id = OperationId::new(u32::try_from(self.all.vacant_key()).ok()?)?;
        self.generation = self.generation.wrapping_add(1);
        operation.generation = self.generation;
        let peer = operation.peer.0 as usize;
        if peer >= self.first.len() {
            self.first.resize(peer + 1, None);
        }
        let behind = self.first[peer].replace(id.value());
        self.all.insert(Entry { operation, before: None, behind });
        if let Some(entry) = behind.and_then(|behind| self.all.get_mut(behind as usize)) {
            entry.before = Some(id.value());
        }
        Some(id)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: OperationId) -> Option<&mut Operation> {
        self.all.get_mut(id.value() as usize).map(|entry| &mut entry.operation)
    }

    pub(super) fn remove(&mut self, id: OperationId) -> Option<Operation> {
        let Entry { operation, before, behind } = self.all.try_remove(id.value() as usize)?;
        if let Some(entry) = behind.and_then(|behind| self.all.get_mut(behind as usize)) {
            entry.before = before;
        }
        match before.and_then(|before| self.all.get_mut(before as usize)) {
            Some(entry) => entry.behind = behind,
            None => self.first[operation.peer.0 as usize] = behind,
        }
        Some(operation)
    }

    /// Those of a peer, the newest first.
    pub(super) fn of(&self, peer: PeerId) -> impl Iterator<Item = (OperationId, &Operation)> + '_ {
        let mut next = self.first.get(peer.0 as usize).copied().flatten();
        std::iter::from_fn(move || {
            let id = next?;
            let entry = self.all.get(id as usize)?;
            next = entry.behind;
            Some((OperationId::new(id)?, &entry.operation))
        })
    }

    /// What a transport brings back for one: place and generation.
    pub(super) fn token(&self, id: OperationId) -> u64 {
        let generation = self.all.get(id.value() as usize).map_or(0, |entry| entry.operation.generation);
        u64::from(generation) << 32 | u64::from(id.value())
    }

    /// The one that a transport means, if it is still there.
    #[expect(clippy::cast_possible_truncation, reason = "the two halves of the word are meant")]
    pub(super) fn of_token(&self, token: u64) -> Option<OperationId> {
        let operation = &self.all.get(token as u32 as usize)?.operation;
        (operation.generation == (token >> 32) as u32).then_some(OperationId::new(token as u32)).flatten()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (OperationId, &Operation)> + '_ {
        self.all.iter().filter_map(|(index, entry)| {
            Some((OperationId::new(u32::try_from(index).ok()?)?, &entry.operation))
        })
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }
}

/// Memory that stays, and the copy if there had to be one.
pub(super) fn memory_of(payload: &Payload<'_>) -> (Buffer, Option<Box<[u8]>>) {
    match *payload {
        Payload::Memory(buffer) => (buffer, None),
        Payload::Copied(bytes) => {
            let copy: Box<[u8]> = bytes.into();
            (Buffer::new(copy.as_ptr().expose_provenance() as u64, copy.len() as u64), Some(copy))
        }
    }
}

/// Why a send failed whose link ended so.
pub(super) fn failure_of(reason: &CloseReason) -> Failure {
    match reason {
        CloseReason::Refused => Failure::Refused,
        CloseReason::Protocol(_) => Failure::Protocol,
        CloseReason::Memory => Failure::Memory,
        CloseReason::Here | CloseReason::Peer | CloseReason::System { .. } | CloseReason::Device { .. } => {
            Failure::Lost
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(peer: PeerId) -> Operation {
        Operation { space: Space::Tagged, ..Operation::new(peer) }
    }

    #[test]
    fn those_of_a_peer_are_found_in_their_order_whichever_went() {
        let mut operations = Operations::default();
        let mut expected: Vec<Vec<OperationId>> = vec![Vec::new(); 5];
        let mut random = 1_u64;
        for round in 0..5000_u32 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let peer = PeerId(round % 5);
            let of_peer = &mut expected[peer.0 as usize];
            if random >> 62 == 0 || of_peer.len() > 20 {
                let at = usize::try_from(random >> 33).unwrap() % of_peer.len().max(1);
                if at < of_peer.len() {
                    let id = of_peer.remove(at);
                    assert_eq!(operations.remove(id).map(|operation| operation.peer), Some(peer));
                    assert!(operations.remove(id).is_none());
                }
            } else {
                of_peer.push(operations.insert(operation(peer)).unwrap());
            }
            for (peer, ids) in (0..).map(PeerId).zip(&expected) {
                let found: Vec<OperationId> = operations.of(peer).map(|(id, _)| id).collect();
                assert!(found.iter().rev().eq(ids.iter()), "{peer:?}: {found:?} {ids:?}");
            }
        }
        assert_eq!(operations.of(PeerId(77)).count(), 0);
        assert_eq!(operations.len(), expected.iter().map(Vec::len).sum::<usize>());
    }
}
