//! One message of the inbox, and what ends a rendezvous.

use super::{Space, Violation};
use crate::device::transport::Kept;
use crate::ids::{LinkId, MessageToken, PeerId, Tag, TransferId};
use crate::seam::{Buffer, Remote};
use crate::wire::{AppContext, Control, Fin, OperationId, RefusedRendezvous, RemoteMemory};

/// A message whose payload is not all here, or whose answer is not.
#[derive(Debug)]
pub(super) struct Message {
    /// Tells the uses of its place apart.
    pub(super) serial: u32,
    pub(super) space: Space,
    pub(super) source: PeerId,
    /// Where it comes from, as long as that is there.
    pub(super) link: Option<LinkId>,
    pub(super) total: u64,
    pub(super) arrived: u64,
    /// What of it counts as kept: all of it from its first byte on.
    pub(super) kept: Kept,
    pub(super) place: Place,
}

/// Where the payload of a message is.
#[derive(Debug)]
pub(super) enum Place {
    /// Here, as far as it has arrived, until the answer comes.
    Held(Vec<u8>),
    /// On the way into a buffer.
    Placing { buffer: Buffer, transfer: TransferId },
    /// Nobody wants it.
    Dropping,
    /// With the sender, until the answer comes.
    Request { remote: Remote, done: Done },
}

impl Place {
    /// What counts as kept of a message of so many bytes that is here.
    pub(super) const fn kept(&self, bytes: u64) -> Kept {
        match self {
            Self::Held(_) => Kept { messages: 1, bytes, requests: 0 },
            Self::Request { .. } => Kept { messages: 0, bytes: 0, requests: 1 },
            Self::Placing { .. } | Self::Dropping => Kept { messages: 0, bytes: 0, requests: 0 },
        }
    }
}

impl Message {
    pub(super) fn is_whole(&self) -> bool {
        self.arrived == self.total
    }

    #[expect(clippy::cast_possible_truncation, reason = "no slab has so many places")]
    pub(super) const fn token(index: usize, serial: u32) -> MessageToken {
        MessageToken(((serial as u64) << 32) | index as u32 as u64)
    }

    /// Place and serial number.
    #[expect(clippy::cast_possible_truncation, reason = "the two halves are meant")]
    pub(super) const fn parts(token: MessageToken) -> (usize, u32) {
        (token.0 as u32 as usize, (token.0 >> 32) as u32)
    }
}

/// What tells the sender of a rendezvous that it is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::device) enum Done {
    /// With a tag: a copy of its headers.
    Fin(Fin),
    /// Without: its name.
    Untagged(OperationId),
}

impl Done {
    /// Of a request that the host has kept by itself.
    pub(in crate::device) fn of_request(app_ctx: u32, tag: Tag, remote: &Remote) -> Result<Self, Violation> {
        let context = AppContext::from_bits(app_ctx)?;
        let memory = RemoteMemory { address: remote.address, key: remote.key, length: remote.length };
        Ok(Self::Fin(Fin { context, tag, rvh: memory.rvh() }))
    }

    /// The message.
    pub(in crate::device) fn message(&self) -> Encoded {
        let mut bytes = [0; Fin::LENGTH];
        let length = match self {
            Self::Fin(fin) => fin.encode(&mut bytes),
            Self::Untagged(operation) => Control::RendezvousDone(*operation).encode(&mut bytes),
        };
        Encoded { bytes, length: length.unwrap_or(0) }
    }

    /// The message that says instead that the payload could not be read.
    pub(in crate::device) fn refusal(&self) -> Encoded {
        let operation = match self {
            Self::Fin(fin) => fin.context.operation,
            Self::Untagged(operation) => *operation,
        };
        let refused = Control::RendezvousRefused { operation, reason: RefusedRendezvous::ReadFailed };
        let mut bytes = [0; Fin::LENGTH];
        let length = refused.encode(&mut bytes);
        Encoded { bytes, length: length.unwrap_or(0) }
    }
}

/// A short message.
#[derive(Clone, Copy, Debug)]
pub(in crate::device) struct Encoded {
    bytes: [u8; Fin::LENGTH],
    length: usize,
}

impl Encoded {
    pub(in crate::device) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}
