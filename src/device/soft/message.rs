//! What senders send to a soft device, and what an observer may learn of it.

use std::sync::Arc;

use crate::ids::{PeerId, Tag, TagHandle};
use crate::seam::{Header, Remote};

/// A message on its way.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SoftMessage {
    /// The tag; without meaning on untagged kinds.
    pub tag: Tag,
    /// Bytes of payload. A rendezvous has as many as its remote says; [`SoftMessage::payload_length`] knows.
    pub length: u64,
    /// Packets it comes in; 0 counts as 1, and only eager messages and untagged ones have more.
    pub packets: u32,
    /// The sender's word.
    pub app_ctx: u32,
    /// Immediate data.
    pub immediate: Option<u32>,
    /// What it is.
    pub kind: Kind,
    /// The payload, where bytes matter. Cut to `length`. Of a rendezvous: what stands behind its headers.
    pub payload: Option<Arc<[u8]>>,
}

/// What a message is, by its TMH (TM-CONTRACT 3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// TMH and payload.
    Eager,
    /// TMH and RVH: the payload waits at the sender.
    Rendezvous {
        /// Where.
        remote: Remote,
        /// The sender's key is wrong: reading fails (A13).
        broken: bool,
    },
    /// No tag.
    NoTag,
    /// The answer to a rendezvous that this side sent.
    Fin,
    /// Too short for its opcode, or of an unknown one (A8).
    Malformed,
}

impl SoftMessage {
    /// An eager message of one packet, without bytes.
    #[must_use]
    pub const fn eager(tag: Tag, length: u64) -> Self {
        Self { tag, length, packets: 1, app_ctx: 0, immediate: None, kind: Kind::Eager, payload: None }
    }

    /// An eager message of one packet, with bytes.
    #[must_use]
    pub fn with_payload(tag: Tag, payload: &[u8]) -> Self {
        Self { payload: Some(payload.into()), ..Self::eager(tag, payload.len() as u64) }
    }

    /// A rendezvous request.
    #[must_use]
    pub fn rendezvous(tag: Tag, remote: Remote) -> Self {
        Self { kind: Kind::Rendezvous { remote, broken: false }, ..Self::eager(tag, remote.length) }
    }

    /// A message without a tag, of so many bytes in all.
    #[must_use]
    pub fn no_tag(length: u64) -> Self {
        Self { kind: Kind::NoTag, ..Self::eager(Tag(0), length) }
    }

    /// Bytes that reach the receiver's buffer.
    #[must_use]
    pub const fn payload_length(&self) -> u64 {
        match self.kind {
            Kind::Rendezvous { remote, .. } => remote.length,
            Kind::Eager | Kind::NoTag | Kind::Fin | Kind::Malformed => self.length,
        }
    }

    /// Bytes of the message as sent: `byte_len` of one that no entry takes.
    #[must_use]
    pub fn wire_length(&self) -> u64 {
        match self.kind {
            Kind::Eager => self.length.saturating_add(TMH_LENGTH),
            Kind::Rendezvous { .. } => TMH_LENGTH + RVH_LENGTH + self.metadata().len() as u64,
            Kind::Fin => TMH_LENGTH + RVH_LENGTH,
            Kind::NoTag | Kind::Malformed => self.length,
        }
    }

    /// Where the payload waits.
    #[must_use]
    pub const fn remote(&self) -> Option<Remote> {
        match self.kind {
            Kind::Rendezvous { remote, .. } => Some(remote),
            Kind::Eager | Kind::NoTag | Kind::Fin | Kind::Malformed => None,
        }
    }

    /// Whether it can be matched.
    #[must_use]
    pub const fn is_tagged(&self) -> bool {
        matches!(self.kind, Kind::Eager | Kind::Rendezvous { .. })
    }

    /// What the host is told.
    #[must_use]
    pub const fn header(&self) -> Header {
        Header {
            tag: self.tag,
            length: self.payload_length(),
            app_ctx: self.app_ctx,
            immediate: self.immediate,
            remote: self.remote(),
        }
    }

    pub(crate) fn bytes(&self, limit: u64) -> &[u8] {
        let bytes = self.payload.as_deref().unwrap_or_default();
        let limit = usize::try_from(limit.min(self.length)).unwrap_or(usize::MAX);
        bytes.get(..limit).unwrap_or(bytes)
    }

    fn metadata(&self) -> &[u8] {
        self.payload.as_deref().unwrap_or_default()
    }

    /// A rendezvous request as sent: what lies in the tagged buffer when it is handed back.
    pub(crate) fn rendezvous_request(&self, remote: Remote) -> Vec<u8> {
        let mut bytes = self.rendezvous_headers(remote).to_vec();
        bytes.extend_from_slice(self.metadata());
        bytes
    }

    fn rendezvous_headers(&self, remote: Remote) -> [u8; 32] {
        let mut bytes = [0; 32];
        let (tmh, rvh) = bytes.split_at_mut(16);
        if let [opcode, _, _, _, app_ctx @ ..] = tmh {
            *opcode = OPCODE_RENDEZVOUS;
            let (app_ctx, tag) = app_ctx.split_at_mut(4);
            app_ctx.copy_from_slice(&self.app_ctx.to_be_bytes());
            tag.copy_from_slice(&self.tag.0.to_be_bytes());
        }
        let (address, rest) = rvh.split_at_mut(8);
        address.copy_from_slice(&remote.address.to_be_bytes());
        let (key, length) = rest.split_at_mut(4);
        key.copy_from_slice(&remote.key.to_be_bytes());
        // 32 bits on the wire: longer messages say all ones.
        length.copy_from_slice(&u32::try_from(remote.length).unwrap_or(u32::MAX).to_be_bytes());
        bytes
    }
}

/// What happens inside a device, at the moment it happens.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Observation {
    /// The header of a message was accepted.
    Accepted {
        /// Its sender.
        peer: PeerId,
        /// Its tag.
        tag: Tag,
        /// Its sender's word.
        app_ctx: u32,
        /// What became of it.
        by: Acceptance,
    },
    /// The sender of a rendezvous was told that its data is no longer needed.
    Fin {
        /// The sender.
        peer: PeerId,
        /// Its word.
        app_ctx: u32,
    },
    /// An EXPECTED completion was written.
    Expected {
        /// The entry.
        handle: TagHandle,
    },
}

/// What became of a message when it was accepted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Acceptance {
    /// An entry took it.
    Entry(TagHandle),
    /// It was counted as unexpected.
    Unexpected,
    /// It has no tag.
    Untagged,
    /// The device has no list: the host matches it.
    Host,
}

const TMH_LENGTH: u64 = 16;
const RVH_LENGTH: u64 = 16;
const OPCODE_RENDEZVOUS: u8 = 1;
