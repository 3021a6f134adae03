//! Traces: what one rank of an MPI run asked of the tagged interface, and what came of it.
//!
//! The format is described in `traces/README.md`: text, one item a line, headers first, then events, each with the
//! result that is expected of it. Bytes go in, typed [`Step`]s come out:
//!
//! * [`Parser`] – one line at a time; no memory beyond the line at hand
//! * [`Steps`] – the same over a reader, plain or compressed, as an iterator
//! * [`Trace`] – a whole trace in memory, its steps checked against each other
//! * [`bundled`] – the recorded traces that come with this crate
//! * [`layout`] – the same trace with another layout of the tag
//!
//! Not here: whether the expected results are right. That is for `replay` to find out.

#![forbid(unsafe_code)]

mod bundle;
mod fields;
mod header;
pub mod layout;
mod ledger;
mod parser;
mod problem;
mod read;
mod trace;
mod zstd;

#[cfg(test)]
mod tests;

pub use bundle::{Bundled, bundled};
pub use header::{Header, Order};
pub use parser::Parser;
pub use problem::{Malformed, Problem};
pub use read::{Encoding, ReadError, Steps, TEXT_BYTES_MAX};
pub use trace::{Counts, Depths, Trace};

use crate::matching::{Envelope, Pattern};
use std::fmt;

/// A receive of a trace (`post` and `claim` share the count): its place in order of appearance.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ReceiveNumber(pub u32);

/// A message of a trace: its place in order of appearance.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MessageNumber(pub u32);

/// A peek of a trace: its place in order of appearance.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PeekNumber(pub u32);

/// What the receiver did, or what reached it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// A receive is posted.
    Post {
        /// Its number.
        receive: ReceiveNumber,
        /// What it looks for.
        pattern: Pattern,
        /// Bytes of its buffer.
        length: u64,
    },
    /// A message arrives.
    Arrive {
        /// Its number.
        message: MessageNumber,
        /// What it shows; the source is the sender's world rank.
        envelope: Envelope,
        /// Bytes of payload.
        length: u64,
    },
    /// The receiver asks for an unexpected message (`FI_PEEK`).
    Peek {
        /// Its number.
        peek: PeekNumber,
        /// What it looks for.
        pattern: Pattern,
        /// Whether a message that is found is bound to this peek (`FI_CLAIM`).
        claim: bool,
    },
    /// The message that a peek bound is received (`FI_CLAIM`).
    Claim {
        /// The receive's number.
        receive: ReceiveNumber,
        /// The peek that bound the message.
        peek: PeekNumber,
        /// Bytes of the receive's buffer.
        length: u64,
    },
    /// A receive is cancelled.
    Cancel {
        /// Which.
        receive: ReceiveNumber,
    },
}

/// What comes of an event.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// After post and arrive: no match; the receive is posted, the message unexpected. No line in a trace.
    Queued,
    /// After post, arrive and claim: the receive takes the message.
    Matched(ReceiveNumber, MessageNumber),
    /// After peek: this message is the earliest that fits.
    Found(MessageNumber),
    /// After peek: no message fits.
    Missed,
    /// After cancel: the receive was still posted, and is gone.
    Cancelled,
    /// After cancel: the receive had been matched before.
    Late,
}

/// An event with what is expected of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Step {
    /// The line of the event, from 1.
    pub line: u64,
    /// What happens.
    pub event: Event,
    /// What must come of it.
    pub expected: Outcome,
}

impl Event {
    /// The word that begins its line.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Post { .. } => "post",
            Self::Arrive { .. } => "arrive",
            Self::Peek { .. } => "peek",
            Self::Claim { .. } => "claim",
            Self::Cancel { .. } => "cancel",
        }
    }

    /// The results that may follow it, in words.
    pub(crate) const fn results(&self) -> &'static str {
        match self {
            Self::Post { .. } | Self::Arrive { .. } => "match or no result line",
            Self::Peek { .. } => "found or none",
            Self::Claim { .. } => "match",
            Self::Cancel { .. } => "cancelled or late",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Queued => write!(f, "no match"),
            Self::Matched(receive, message) => write!(f, "receive {} takes message {}", receive.0, message.0),
            Self::Found(message) => write!(f, "message {} found", message.0),
            Self::Missed => write!(f, "nothing found"),
            Self::Cancelled => write!(f, "cancelled"),
            Self::Late => write!(f, "too late to cancel"),
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Post { receive, .. } => write!(f, "post {}", receive.0),
            Self::Arrive { message, .. } => write!(f, "arrive {}", message.0),
            Self::Peek { peek, .. } => write!(f, "peek {}", peek.0),
            Self::Claim { receive, peek, .. } => write!(f, "claim {} {}", receive.0, peek.0),
            Self::Cancel { receive } => write!(f, "cancel {}", receive.0),
        }
    }
}
