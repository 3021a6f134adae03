//! Small messages without a payload: credits, refusals, goodbye, keepalive.

use super::control::{CODE_OFFSET, Head, Kind};
use super::cursor::{Reader, Writer};
use super::{Expected, WireError};

/// What the receiver of this may send in addition, over one connection. Increments, not totals: the transports
/// neither lose nor repeat. A peer that overdraws, or whose grants overflow, breaks the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Credits {
    /// Messages that come by header only: rendezvous.
    pub headers: u32,
    /// Messages with a payload: eager, untagged, segments.
    pub eager_messages: u32,
    /// Bytes of payload in those.
    pub eager_bytes: u64,
}

impl Credits {
    /// Bytes of the message.
    pub const LENGTH: usize = 24;

    pub(super) fn encode(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let mut writer = Writer::new(out, Self::LENGTH)?;
        writer.bytes(&Head::bytes(Kind::Credit, 0, 0))?;
        writer.bytes(&self.headers.to_be_bytes())?;
        writer.bytes(&self.eager_messages.to_be_bytes())?;
        writer.bytes(&[0; 4])?;
        writer.bytes(&self.eager_bytes.to_be_bytes())?;
        Ok(writer.finish())
    }

    pub(super) fn read(head: Head, mut reader: Reader<'_>) -> Result<Self, WireError> {
        head.no_codes()?;
        let headers = reader.u32("header credits")?;
        let eager_messages = reader.u32("eager message credits")?;
        reader.zero::<4>("reserved bytes of a credit")?;
        let eager_bytes = reader.u64("eager byte credits")?;
        reader.finish("credit")?;
        Ok(Self { headers, eager_messages, eager_bytes })
    }
}

/// Why the payload of a rendezvous was not read. The operation has failed. (Who cannot read at all says so in its hello:
/// decision 0022.)
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum RefusedRendezvous {
    /// The read failed: a key that is not valid, or memory that is gone.
    ReadFailed = 2,
    /// The receive went away while the read was under way.
    Cancelled = 3,
}

impl RefusedRendezvous {
    pub(super) const fn from_byte(byte: u8) -> Result<Self, WireError> {
        match byte {
            2 => Ok(Self::ReadFailed),
            3 => Ok(Self::Cancelled),
            _ => Err(WireError::Value {
                field: "reason of a refused rendezvous",
                value: byte as u64,
                expected: Expected::OneOf("2 (read failed) or 3 (cancelled)"),
                offset: CODE_OFFSET,
            }),
        }
    }
}

/// The last message on a connection, and why.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Goodbye {
    /// The endpoint is being closed; all that it sent before stands.
    Closing = 1,
    /// The endpoint or its device failed.
    Failed = 2,
    /// The other side broke the protocol.
    ProtocolError = 3,
    /// The connection is idle and its resources are wanted; the endpoint lives on.
    Idle = 4,
}

impl Goodbye {
    /// Bytes of the message.
    pub const LENGTH: usize = Head::LENGTH;

    pub(super) fn encode(self, out: &mut [u8]) -> Result<usize, WireError> {
        let mut writer = Writer::new(out, Self::LENGTH)?;
        writer.bytes(&Head::bytes(Kind::Goodbye, self as u8, 0))?;
        Ok(writer.finish())
    }

    pub(super) fn read(head: Head, reader: &Reader<'_>) -> Result<Self, WireError> {
        head.no_second_code()?;
        reader.finish("goodbye")?;
        match head.code {
            1 => Ok(Self::Closing),
            2 => Ok(Self::Failed),
            3 => Ok(Self::ProtocolError),
            4 => Ok(Self::Idle),
            code => Err(WireError::Value {
                field: "reason of a goodbye",
                value: code.into(),
                expected: Expected::OneOf("1 (closing), 2 (failed), 3 (protocol error) or 4 (idle)"),
                offset: CODE_OFFSET,
            }),
        }
    }
}

/// A question whether the peer lives, or the answer to one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Keepalive {
    /// It is the answer.
    pub is_answer: bool,
    /// The asker's number; the answer repeats it.
    pub sequence: u32,
}

impl Keepalive {
    /// Bytes of the message.
    pub const LENGTH: usize = 8;

    pub(super) fn encode(self, out: &mut [u8]) -> Result<usize, WireError> {
        let mut writer = Writer::new(out, Self::LENGTH)?;
        writer.bytes(&Head::bytes(Kind::Keepalive, u8::from(self.is_answer), 0))?;
        writer.bytes(&self.sequence.to_be_bytes())?;
        Ok(writer.finish())
    }

    pub(super) fn read(head: Head, mut reader: Reader<'_>) -> Result<Self, WireError> {
        head.no_second_code()?;
        let expected = Expected::OneOf("0 (question) or 1 (answer)");
        WireError::unless(head.code <= 1, "form of a keepalive", head.code.into(), expected, CODE_OFFSET)?;
        let sequence = reader.u32("keepalive sequence")?;
        reader.finish("keepalive")?;
        Ok(Self { is_answer: head.code == 1, sequence })
    }
}
