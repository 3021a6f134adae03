//! What the user is told.

use crate::ids::{DeviceId, PeerId, Tag};
use crate::seam::{Arrival, Buffer, DataError, Match};

/// One thing that the user is told. A receive gives exactly one final completion.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Completion {
    /// As given with the receive.
    pub context: u64,
    /// How it ended.
    pub end: End,
}

/// How a receive ended, or one match of a multi-receive buffer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum End {
    /// It holds a message.
    Received(Received),
    /// It was cancelled, and holds nothing.
    Cancelled,
    /// It took a message whose data will not come.
    Failed {
        /// Who sent it.
        source: PeerId,
        /// Its tag.
        tag: Tag,
        /// The sender's word.
        app_ctx: u32,
        /// Why.
        error: DataError,
    },
    /// A multi-receive buffer is the user's again: nothing more is written there (`FI_MULTI_RECV`).
    Released,
}

/// A message in its receive.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Received {
    /// Who sent it.
    pub source: PeerId,
    /// Its tag.
    pub tag: Tag,
    /// Bytes that it had.
    pub length: u64,
    /// Bytes that were written; fewer than `length` means that it was cut (`FI_ETRUNC`, `MPI_ERR_TRUNCATE`).
    pub placed: u64,
    /// Where they were written.
    pub address: u64,
    /// The sender's word.
    pub app_ctx: u32,
    /// Remote completion-queue data.
    pub immediate: Option<u32>,
    /// The device that matched it; `None`: software.
    pub matched_by: Option<DeviceId>,
}

impl Received {
    /// Whether the message was longer than what was left of the buffer.
    #[must_use]
    pub const fn is_truncated(&self) -> bool {
        self.placed < self.length
    }

    /// A message that a device matched with a receive of this buffer.
    #[inline(always)]
    pub(super) fn of_match(device: DeviceId, matched: &Match, buffer: &Buffer) -> Self {
        Self {
            source: matched.source,
            tag: matched.tag,
            length: matched.length,
            placed: matched.length.min(buffer.length),
            address: buffer.address,
            app_ctx: matched.app_ctx,
            immediate: matched.immediate,
            matched_by: Some(device),
        }
    }
}

impl Completion {
    /// A message in hand, matched in software.
    #[inline]
    pub(super) fn of_arrival(arrival: &Arrival, context: u64, buffer: &Buffer) -> Self {
        let header = &arrival.header;
        Self {
            context,
            end: End::Received(Received {
                source: arrival.source,
                tag: header.tag,
                length: header.length,
                placed: header.length.min(buffer.length),
                address: buffer.address,
                app_ctx: header.app_ctx,
                immediate: header.immediate,
                matched_by: None,
            }),
        }
    }
}

impl End {
    /// A message whose data will not come.
    pub(super) const fn failed(message: &Received, error: DataError) -> Self {
        Self::Failed { source: message.source, tag: message.tag, app_ctx: message.app_ctx, error }
    }
}

/// One cache line: a completion is moved twice for each message.
const _: () = assert!(size_of::<Completion>() <= 64);
