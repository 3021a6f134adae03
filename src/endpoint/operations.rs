//! Sends in progress: those whose memory is still in use, or whose peer has still to answer.
//!
//! Not here: how they go out.

use slab::Slab;

use crate::device::transport::CloseReason;
use crate::ids::{DeviceId, LinkId, PeerId, Tag};
use crate::seam::{Buffer, Remote};
use crate::wire::{OperationId, SendFlags};

use super::interface::{Failure, Space};

/// All of them. A number is a place here: 24 bits on the wire, with a generation where a transport brings it back.
#[derive(Default)]
pub(super) struct Operations {
    all: Slab<Operation>,
    generation: u32,
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
    /// Parts that are on their way, and whose memory is in use.
    pub(super) posted: u32,
    /// What the peer has still to say.
    pub(super) awaits: Awaits,
    /// It failed, and ends as soon as its memory is no longer in use.
    pub(super) failure: Option<Failure>,
    /// Segments that are still to be sent.
    pub(super) rest: Option<Rest>,
    /// The payload, where it was copied.
    pub(super) copy: Option<Box<[u8]>>,
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
        remote: Remote,
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
        remote: Remote,
    },
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
    /// Whether nothing more is to be waited for.
    pub(super) const fn is_over(&self) -> bool {
        let is_failed = self.failure.is_some();
        let awaits = match self.awaits {
            Awaits::Nothing => false,
            Awaits::Acknowledgement(_) | Awaits::Read { .. } => !is_failed,
            Awaits::Withdrawal { .. } => true,
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
        self.all.insert(operation);
        Some(id)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: OperationId) -> Option<&mut Operation> {
        self.all.get_mut(id.value() as usize)
    }

    pub(super) fn remove(&mut self, id: OperationId) -> Option<Operation> {
        self.all.try_remove(id.value() as usize)
    }

    /// What a transport brings back for one: place and generation.
    pub(super) fn token(&self, id: OperationId) -> u64 {
        let generation = self.all.get(id.value() as usize).map_or(0, |operation| operation.generation);
        u64::from(generation) << 32 | u64::from(id.value())
    }

    /// The one that a transport means, if it is still there.
    #[expect(clippy::cast_possible_truncation, reason = "the two halves of the word are meant")]
    pub(super) fn of_token(&self, token: u64) -> Option<OperationId> {
        let operation = self.all.get(token as u32 as usize)?;
        (operation.generation == (token >> 32) as u32).then_some(OperationId::new(token as u32)).flatten()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (OperationId, &Operation)> + '_ {
        self.all
            .iter()
            .filter_map(|(index, operation)| Some((OperationId::new(u32::try_from(index).ok()?)?, operation)))
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }
}

/// Why a send failed whose link ended so.
pub(super) fn failure_of(reason: &CloseReason) -> Failure {
    match reason {
        CloseReason::Refused => Failure::Refused,
        CloseReason::Protocol(_) => Failure::Protocol,
        CloseReason::Here | CloseReason::Peer | CloseReason::System { .. } => Failure::Lost,
    }
}
