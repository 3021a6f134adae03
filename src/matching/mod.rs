//! The software matcher: posted receives, unexpected messages, and the one order between them.
//!
//! Not here: what a receive or a message *is*. Both carry a plain value of the caller's.

pub mod naive;
mod pattern;

pub use pattern::{Envelope, Pattern};

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
