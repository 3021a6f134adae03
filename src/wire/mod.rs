//! Bytes and values: what the messages of the protocol look like. No state; docs/wire.md is the specification.
//!
//! [`decode`] reads a whole message, [`decode_partial`] one whose end has not arrived yet: a message is matched
//! when its header is known, its payload may follow. The peer is hostile: every length, opcode, kind, flag and
//! reserved byte is checked, and whatever is decoded encodes to the same bytes again. What only state can tell
//! (an operation id that names nothing, a key, an offset out of order, credits overdrawn) is the endpoint's to check.
//!
//! Not here: framing. A device knows how long a message is, who sent it, and its immediate.

#![forbid(unsafe_code)]

mod app_ctx;
mod atomic;
mod connect;
mod control;
mod cursor;
mod eager;
mod error;
mod fin;
mod hello;
mod notice;
mod proof;
mod remote;
mod rendezvous;
mod rvh;
mod segment;
mod tmh;
mod untagged;

#[cfg(test)]
mod tests;

pub use app_ctx::{AppContext, OperationId, SendFlags};
pub use atomic::RemoteAtomic;
pub use connect::{Connect, ConnectData, Reject};
pub use control::{Control, Kind, VERSION};
pub use eager::Eager;
pub use error::{Expected, WireError};
pub use fin::Fin;
pub use hello::{EndpointName, Hello, HelloRefused, HelloRole, InstanceId, PeerCapabilities, RefusedHello};
pub use notice::{Credits, Goodbye, Keepalive, RefusedRendezvous};
pub use proof::{Challenge, Proof};
pub use remote::{RemoteData, RemoteRead, RemoteStatus, RemoteStretch, RemoteWrite};
pub use rendezvous::Rendezvous;
pub use rvh::{RemoteMemory, Rvh};
pub use segment::{Segment, SegmentFirst};
pub use tmh::{Opcode, Tmh};
pub use untagged::{Untagged, UntaggedRendezvous};

use cursor::Reader;
use std::ops::Range;

/// A message. Borrows its payload, and a name, from the bytes it was read from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message<'a> {
    /// Tag and payload.
    Eager(Eager<'a>),
    /// Tag, and where the payload waits.
    Rendezvous(Rendezvous),
    /// The payload of a rendezvous has been read.
    Fin(Fin),
    /// Everything without a TMH.
    Control(Control<'a>),
}

/// How much of a message is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Partial<'a> {
    /// Its header is not here yet: ask again when at least so many bytes, from its start, have arrived. Never more
    /// than the message has, and always more than have arrived.
    Needed(usize),
    /// Its header is here. Its payload may be here in part.
    Message(Message<'a>),
}

/// The payload of a message, as far as it has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Payload<'a> {
    arrived: &'a [u8],
    length: u64,
}

/// Reads a whole message.
///
/// # Errors
/// The message does not follow the protocol.
pub fn decode(message: &[u8]) -> Result<Message<'_>, WireError> {
    let total = message.len() as u64;
    match decode_partial(message, total)? {
        Partial::Message(message) => Ok(message),
        // Cannot be: never more bytes are needed than the message has.
        Partial::Needed(needed) => {
            Err(WireError::Short { field: "message", needed: needed as u64, length: total })
        }
    }
}

/// Reads a message of `total` bytes of which the first have arrived.
///
/// # Errors
/// The message does not follow the protocol, whatever is still to come; or more has arrived than there is.
pub fn decode_partial(arrived: &[u8], total: u64) -> Result<Partial<'_>, WireError> {
    let needed = needed(arrived, total)?;
    if arrived.len() < needed {
        return Ok(Partial::Needed(needed));
    }
    let reader = Reader::new(arrived, total);
    let opcode = Opcode::from_byte(Reader::new(arrived, total).u8("opcode")?)?;
    Ok(Partial::Message(match opcode {
        Opcode::Eager => Message::Eager(Eager::read(reader)?),
        Opcode::Rendezvous => Message::Rendezvous(Rendezvous::read(reader)?),
        Opcode::Fin => Message::Fin(Fin::read(reader)?),
        Opcode::NoTag => Message::Control(Control::read(reader)?),
    }))
}

/// How many bytes, from the start of a message of `total` bytes, must have arrived before anything (more) can be
/// said about it. A stream reads so many, and asks again; it is done when it has them already.
///
/// # Errors
/// No message that begins so, or is so long, follows the protocol; or more has arrived than there is.
pub fn needed(arrived: &[u8], total: u64) -> Result<usize, WireError> {
    if arrived.len() as u64 > total {
        return Err(WireError::Long {
            field: "bytes at hand",
            expected: total,
            length: arrived.len() as u64,
        });
    }
    let Some(first) = arrived.first() else {
        return within("opcode", 1..=u64::MAX, 1, total);
    };
    match Opcode::from_byte(*first)? {
        Opcode::Eager => within("EAGER", 16..=u64::MAX, Eager::HEADER_LENGTH, total),
        Opcode::Fin => within("FIN", 32..=32, Fin::LENGTH, total),
        // How long a request is says its own RVH; until then, all of what is at most 40 bytes.
        Opcode::Rendezvous => within("RNDV", 32..=40, Rendezvous::LENGTH_MAX, total),
        Opcode::NoTag => control::needed(arrived, total),
    }
}

/// `header`, or all of the message, where its length is one that it may have.
fn within(
    field: &'static str,
    lengths: std::ops::RangeInclusive<u64>,
    header: usize,
    total: u64,
) -> Result<usize, WireError> {
    if total < *lengths.start() {
        Err(WireError::Short { field, needed: *lengths.start(), length: total })
    } else if total > *lengths.end() {
        Err(WireError::Long { field, expected: *lengths.end(), length: total })
    } else {
        Ok(usize::try_from(total).map_or(header, |total| header.min(total)))
    }
}

impl Message<'_> {
    /// Bytes of the longest header: that of a hello with the longest name, or of as much data.
    pub const HEADER_LENGTH_MAX: usize = Hello::LENGTH_MAX;

    /// Writes the whole message, and says how long it is. Nothing is written that [`decode`] would refuse.
    ///
    /// # Errors
    /// No room, a payload that is not whole, or a value that the protocol does not allow.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, WireError> {
        match self {
            Self::Eager(message) => message.encode(out),
            Self::Rendezvous(message) => message.encode(out),
            Self::Fin(message) => message.encode(out),
            Self::Control(message) => message.encode(out),
        }
    }

    /// Where in the message its payload lies, if it is of a kind that has one.
    #[must_use]
    pub fn payload_range(&self) -> Option<Range<u64>> {
        let (header, payload) = match self {
            Self::Eager(message) => (Eager::HEADER_LENGTH, message.payload),
            Self::Control(control) => control.payload()?,
            Self::Rendezvous(_) | Self::Fin(_) => return None,
        };
        let start = header as u64;
        Some(start..start.saturating_add(payload.length))
    }
}

impl<'a> Payload<'a> {
    /// One that is all here.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { arrived: bytes, length: bytes.len() as u64 }
    }

    /// The bytes that have arrived: the first ones.
    #[must_use]
    pub const fn arrived(&self) -> &'a [u8] {
        self.arrived
    }

    /// Bytes there will be.
    #[must_use]
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// Whether all have arrived.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.arrived.len() as u64 == self.length
    }

    fn whole(&self) -> Result<&'a [u8], WireError> {
        if self.is_whole() {
            Ok(self.arrived)
        } else {
            Err(WireError::Incomplete { arrived: self.arrived.len() as u64, length: self.length })
        }
    }
}
