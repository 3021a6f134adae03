//! What the operations of a matcher say, and what it counts.
//!
//! Not here: the operations.

use super::Envelope;
use crate::ids::{MessageId, ReceiveId};

/// Whether a receive leaves the list with its first match.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Stay {
    /// It does.
    Once,
    /// It stays at its place until it is taken: a multi-receive buffer.
    Posted,
}

/// What became of a receive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Posted<M> {
    /// It took the earliest-arrived unexpected message that fits, which has left the list.
    Matched {
        /// The message's name until now.
        message: MessageId,
        /// What it was matched by.
        envelope: Envelope,
        /// The caller's value.
        value: M,
    },
    /// No message fits: it is posted.
    Queued(ReceiveId),
}

/// What became of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrived<R> {
    /// The earliest-posted receive that fits took it.
    Matched {
        /// The receive. Unless it stays posted, its name until now.
        receive: ReceiveId,
        /// The caller's value.
        value: R,
    },
    /// No receive fits: it is on the unexpected list.
    Unexpected(MessageId),
}

/// A match that became possible because a source became known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resolved<R, M> {
    /// The receive. Unless it stays posted, its name until now.
    pub receive: ReceiveId,
    /// The caller's value of the receive.
    pub value: R,
    /// The message's name until now.
    pub message: MessageId,
    /// What it was matched by, its source as it is known now.
    pub envelope: Envelope,
    /// The caller's value of the message.
    pub message_value: M,
}

/// Bytes of matching state of the two lists: slots, links and tables, as allocated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryBytes {
    /// Of posted receives.
    pub posted: usize,
    /// Of unexpected messages.
    pub unexpected: usize,
}

/// Counters of a [`Matcher`](super::Matcher).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Statistics {
    /// Classes that hold posted receives: what an arrival looks into.
    pub posted_classes: usize,
    /// Classes of posted receives made so far.
    pub posted_class_builds: u64,
    /// Classes that hold the unexpected messages: what each message is put into.
    pub unexpected_classes: usize,
    /// Classes of unexpected messages built by a scan so far.
    pub unexpected_class_builds: u64,
    /// Unexpected messages looked at by those scans, and by searches for which no class was free.
    pub entries_scanned: u64,
}
