//! Everything without a tag to match: NO_TAG, and our own header behind the first byte.
//!
//! A NIC looks at the first byte of such a message only, so it may be shorter than a TMH (TM-CONTRACT 3).
//! Byte 1 says version (upper three bits) and kind (lower five); byte 2 is a code of the kind's own, byte 3 another,
//! both 0 where the kind has none.

use super::cursor::{Reader, Writer};
use super::{
    Challenge, Connect, Credits, Expected, Goodbye, Hello, HelloRefused, Keepalive, Opcode, OperationId,
    Payload, Proof, RefusedRendezvous, Reject, RemoteAtomic, RemoteData, RemoteRead, RemoteStatus,
    RemoteWrite, Segment, SegmentFirst, Untagged, UntaggedRendezvous, WireError, within,
};

/// The version of the protocol that this is.
pub const VERSION: u8 = 1;

/// A message without a TMH.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Control<'a> {
    /// Data that matches by its sender alone (`fi_msg(3)`).
    Untagged(Untagged<'a>),
    /// The same, where the payload waits to be read.
    UntaggedRendezvous(UntaggedRendezvous),
    /// The first segment of a longer message: it is matched by this.
    SegmentFirst(SegmentFirst<'a>),
    /// A further segment, not the last.
    SegmentMiddle(Segment<'a>),
    /// The last segment.
    SegmentLast(Segment<'a>),
    /// The receiver of this may send so much more.
    Credit(Credits),
    /// The message of this operation has been matched.
    MatchAcknowledged(OperationId),
    /// The payload of this operation is in the receiver's buffer.
    Delivered(OperationId),
    /// The payload of this operation has been read; for a request without a tag, of which no FIN can be made.
    RendezvousDone(OperationId),
    /// The payload of this operation could not be read.
    RendezvousRefused {
        /// The request's.
        operation: OperationId,
        /// Why.
        reason: RefusedRendezvous,
    },
    /// The message of this operation was consumed without a receive (`FI_DISCARD`): there is nothing to wait for.
    Discarded(OperationId),
    /// Who is there.
    Hello(Hello<'a>),
    /// No connection comes of the hello.
    HelloRefused(HelloRefused),
    /// Nothing more follows.
    Goodbye(Goodbye),
    /// Are you there, or: I am.
    Keepalive(Keepalive),
    /// Prove that you hold the key.
    Challenge(Challenge),
    /// It is held.
    Proof(Proof),
    /// A piece of what an operation writes to the receiver's memory.
    RemoteWrite(RemoteWrite<'a>),
    /// Bytes of the receiver's memory are asked for.
    RemoteRead(RemoteRead),
    /// A piece of what was asked for.
    RemoteData(RemoteData<'a>),
    /// An operation on values of the receiver's memory.
    RemoteAtomic(RemoteAtomic<'a>),
    /// A stretch of this operation is written, or could not be accessed.
    RemoteDone {
        /// The operation.
        operation: OperationId,
        /// What became of the stretch.
        status: RemoteStatus,
    },
    /// A connected endpoint asks for its connection, or accepts one.
    Connect(Connect<'a>),
    /// A connection that was asked for is not wanted.
    Reject(Reject<'a>),
}

/// What a message without a TMH is: the lower five bits of its second byte.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Kind {
    /// [`Control::Untagged`]
    Untagged = 1,
    /// [`Control::UntaggedRendezvous`]
    UntaggedRendezvous = 2,
    /// [`Control::SegmentFirst`]
    SegmentFirst = 3,
    /// [`Control::SegmentMiddle`]
    SegmentMiddle = 4,
    /// [`Control::SegmentLast`]
    SegmentLast = 5,
    /// [`Control::Credit`]
    Credit = 6,
    /// [`Control::MatchAcknowledged`]
    MatchAcknowledged = 7,
    /// [`Control::Delivered`]
    Delivered = 8,
    /// [`Control::RendezvousDone`]
    RendezvousDone = 9,
    /// [`Control::RendezvousRefused`]
    RendezvousRefused = 10,
    /// [`Control::Discarded`]
    Discarded = 11,
    /// [`Control::Hello`]
    Hello = 12,
    /// [`Control::HelloRefused`]
    HelloRefused = 13,
    /// [`Control::Goodbye`]
    Goodbye = 14,
    /// [`Control::Keepalive`]
    Keepalive = 15,
    /// [`Control::Challenge`]
    Challenge = 16,
    /// [`Control::Proof`]
    Proof = 17,
    /// [`Control::RemoteWrite`]
    RemoteWrite = 18,
    /// [`Control::RemoteRead`]
    RemoteRead = 19,
    /// [`Control::RemoteData`]
    RemoteData = 20,
    /// [`Control::RemoteDone`]
    RemoteDone = 21,
    /// [`Control::RemoteAtomic`]
    RemoteAtomic = 22,
    /// [`Control::Connect`]
    Connect = 23,
    /// [`Control::Reject`]
    Reject = 24,
}

impl Kind {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 24] = [
        Self::Untagged,
        Self::UntaggedRendezvous,
        Self::SegmentFirst,
        Self::SegmentMiddle,
        Self::SegmentLast,
        Self::Credit,
        Self::MatchAcknowledged,
        Self::Delivered,
        Self::RendezvousDone,
        Self::RendezvousRefused,
        Self::Discarded,
        Self::Hello,
        Self::HelloRefused,
        Self::Goodbye,
        Self::Keepalive,
        Self::Challenge,
        Self::Proof,
        Self::RemoteWrite,
        Self::RemoteRead,
        Self::RemoteData,
        Self::RemoteDone,
        Self::RemoteAtomic,
        Self::Connect,
        Self::Reject,
    ];

    /// The second byte of the message: version and kind.
    #[must_use]
    pub const fn to_byte(self) -> u8 {
        (VERSION << KIND_BITS) | self as u8
    }

    /// The inverse.
    ///
    /// # Errors
    /// Another version, or no such kind.
    pub fn from_byte(byte: u8) -> Result<Self, WireError> {
        let version = byte >> KIND_BITS;
        WireError::unless(
            version == VERSION,
            "version",
            version.into(),
            Expected::OneOf("1, the only version"),
            KIND_OFFSET,
        )?;
        let number = byte & ((1 << KIND_BITS) - 1);
        let kind = Self::ALL.get(usize::from(number).wrapping_sub(1)).copied();
        kind.ok_or(WireError::Value {
            field: "kind",
            value: number.into(),
            expected: Expected::OneOf("1 to 24"),
            offset: KIND_OFFSET,
        })
    }
}

/// [`super::needed`] of a message that begins with NO_TAG.
pub(super) fn needed(arrived: &[u8], total: u64) -> Result<usize, WireError> {
    let Some(kind) = arrived.get(1) else {
        return within("kind", 2..=u64::MAX, 2, total);
    };
    match Kind::from_byte(*kind)? {
        Kind::Untagged => within("untagged data", 16..=u64::MAX, Untagged::HEADER_LENGTH, total),
        Kind::UntaggedRendezvous => within("untagged rendezvous", 40..=40, UntaggedRendezvous::LENGTH, total),
        // Of no bytes a segment is never made, so that each brings a message on.
        Kind::SegmentFirst => within("first segment", 33..=u64::MAX, SegmentFirst::HEADER_LENGTH, total),
        Kind::SegmentMiddle | Kind::SegmentLast => {
            within("further segment", 17..=u64::MAX, Segment::HEADER_LENGTH, total)
        }
        Kind::Credit => within("credit", 24..=24, Credits::LENGTH, total),
        Kind::MatchAcknowledged | Kind::Delivered | Kind::RendezvousDone | Kind::Discarded => {
            within("notice of an operation", 8..=8, NOTICE_LENGTH, total)
        }
        Kind::RendezvousRefused => within("refused rendezvous", 8..=8, NOTICE_LENGTH, total),
        Kind::Hello => within("hello", 56..=120, Hello::LENGTH_MAX, total),
        Kind::HelloRefused => within("refused hello", 8..=8, HelloRefused::LENGTH, total),
        Kind::Goodbye => within("goodbye", 4..=4, Goodbye::LENGTH, total),
        Kind::Keepalive => within("keepalive", 8..=8, Keepalive::LENGTH, total),
        Kind::Challenge => within("challenge", 36..=36, Challenge::LENGTH, total),
        Kind::Proof => within("proof", 68..=68, Proof::LENGTH, total),
        Kind::RemoteWrite => within("remote write", 48..=u64::MAX, RemoteWrite::HEADER_LENGTH, total),
        Kind::RemoteRead => within("remote read", 40..=40, RemoteRead::LENGTH, total),
        Kind::RemoteData => within("remote data", 17..=u64::MAX, RemoteData::HEADER_LENGTH, total),
        Kind::RemoteAtomic => within("remote atomic", 48..=u64::MAX, RemoteAtomic::HEADER_LENGTH, total),
        Kind::RemoteDone => within("end of a remote access", 8..=8, NOTICE_LENGTH, total),
        Kind::Connect => within("request for a connection", 56..=120, Connect::LENGTH_MAX, total),
        Kind::Reject => within("rejection", 4..=68, Reject::LENGTH_MAX, total),
    }
}

impl<'a> Control<'a> {
    /// What it is.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Untagged(_) => Kind::Untagged,
            Self::UntaggedRendezvous(_) => Kind::UntaggedRendezvous,
            Self::SegmentFirst(_) => Kind::SegmentFirst,
            Self::SegmentMiddle(_) => Kind::SegmentMiddle,
            Self::SegmentLast(_) => Kind::SegmentLast,
            Self::Credit(_) => Kind::Credit,
            Self::MatchAcknowledged(_) => Kind::MatchAcknowledged,
            Self::Delivered(_) => Kind::Delivered,
            Self::RendezvousDone(_) => Kind::RendezvousDone,
            Self::RendezvousRefused { .. } => Kind::RendezvousRefused,
            Self::Discarded(_) => Kind::Discarded,
            Self::Hello(_) => Kind::Hello,
            Self::HelloRefused(_) => Kind::HelloRefused,
            Self::Goodbye(_) => Kind::Goodbye,
            Self::Keepalive(_) => Kind::Keepalive,
            Self::Challenge(_) => Kind::Challenge,
            Self::Proof(_) => Kind::Proof,
            Self::RemoteWrite(_) => Kind::RemoteWrite,
            Self::RemoteRead(_) => Kind::RemoteRead,
            Self::RemoteData(_) => Kind::RemoteData,
            Self::RemoteAtomic(_) => Kind::RemoteAtomic,
            Self::RemoteDone { .. } => Kind::RemoteDone,
            Self::Connect(_) => Kind::Connect,
            Self::Reject(_) => Kind::Reject,
        }
    }

    /// Writes the whole message, and says how long it is.
    ///
    /// # Errors
    /// No room, a payload that is not whole, or a value that the protocol does not allow.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, WireError> {
        match self {
            Self::Untagged(message) => message.encode(out),
            Self::UntaggedRendezvous(message) => message.encode(out),
            Self::SegmentFirst(message) => message.encode(out),
            Self::SegmentMiddle(message) => message.encode(Kind::SegmentMiddle, out),
            Self::SegmentLast(message) => message.encode(Kind::SegmentLast, out),
            Self::Credit(message) => message.encode(out),
            Self::MatchAcknowledged(operation)
            | Self::Delivered(operation)
            | Self::RendezvousDone(operation)
            | Self::Discarded(operation) => notice(self.kind(), 0, *operation, out),
            Self::RendezvousRefused { operation, reason } => {
                notice(Kind::RendezvousRefused, *reason as u8, *operation, out)
            }
            Self::Hello(message) => message.encode(out),
            Self::HelloRefused(message) => message.encode(out),
            Self::Goodbye(message) => message.encode(out),
            Self::Keepalive(message) => message.encode(out),
            Self::Challenge(message) => message.encode(out),
            Self::Proof(message) => message.encode(out),
            Self::RemoteWrite(message) => message.encode(out),
            Self::RemoteRead(message) => message.encode(out),
            Self::RemoteData(message) => message.encode(out),
            Self::RemoteAtomic(message) => message.encode(out),
            Self::RemoteDone { operation, status } => {
                notice(Kind::RemoteDone, *status as u8, *operation, out)
            }
            Self::Connect(message) => message.encode(out),
            Self::Reject(message) => message.encode(out),
        }
    }

    pub(super) fn read(mut reader: Reader<'a>) -> Result<Self, WireError> {
        let head = Head::read(&mut reader)?;
        Ok(match head.kind {
            Kind::Untagged => Self::Untagged(Untagged::read(head, reader)?),
            Kind::UntaggedRendezvous => Self::UntaggedRendezvous(UntaggedRendezvous::read(head, reader)?),
            Kind::SegmentFirst => Self::SegmentFirst(SegmentFirst::read(head, reader)?),
            Kind::SegmentMiddle => Self::SegmentMiddle(Segment::read(head, reader)?),
            Kind::SegmentLast => Self::SegmentLast(Segment::read(head, reader)?),
            Kind::Credit => Self::Credit(Credits::read(head, reader)?),
            Kind::MatchAcknowledged => Self::MatchAcknowledged(head.without_codes(reader)?),
            Kind::Delivered => Self::Delivered(head.without_codes(reader)?),
            Kind::RendezvousDone => Self::RendezvousDone(head.without_codes(reader)?),
            Kind::Discarded => Self::Discarded(head.without_codes(reader)?),
            Kind::RendezvousRefused => {
                head.no_second_code()?;
                let reason = RefusedRendezvous::from_byte(head.code)?;
                Self::RendezvousRefused { operation: head.operation(reader)?, reason }
            }
            Kind::Hello => Self::Hello(Hello::read(head, reader)?),
            Kind::HelloRefused => Self::HelloRefused(HelloRefused::read(head, reader)?),
            Kind::Goodbye => Self::Goodbye(Goodbye::read(head, &reader)?),
            Kind::Keepalive => Self::Keepalive(Keepalive::read(head, reader)?),
            Kind::Challenge => Self::Challenge(Challenge::read(head, reader)?),
            Kind::Proof => Self::Proof(Proof::read(head, reader)?),
            Kind::RemoteWrite => Self::RemoteWrite(RemoteWrite::read(head, reader)?),
            Kind::RemoteRead => Self::RemoteRead(RemoteRead::read(head, reader)?),
            Kind::RemoteData => Self::RemoteData(RemoteData::read(head, reader)?),
            Kind::RemoteAtomic => Self::RemoteAtomic(RemoteAtomic::read(head, reader)?),
            Kind::RemoteDone => {
                head.no_second_code()?;
                let status = RemoteStatus::from_byte(head.code)?;
                Self::RemoteDone { operation: head.operation(reader)?, status }
            }
            Kind::Connect => Self::Connect(Connect::read(head, reader)?),
            Kind::Reject => Self::Reject(Reject::read(head, &reader)?),
        })
    }

    /// Length of the header and what is behind it, for the kinds that have a payload.
    pub(super) const fn payload(&self) -> Option<(usize, Payload<'a>)> {
        match self {
            Self::Untagged(message) => Some((Untagged::HEADER_LENGTH, message.payload)),
            Self::SegmentFirst(message) => Some((SegmentFirst::HEADER_LENGTH, message.payload)),
            Self::SegmentMiddle(message) | Self::SegmentLast(message) => {
                Some((Segment::HEADER_LENGTH, message.payload))
            }
            Self::RemoteWrite(message) => Some((RemoteWrite::HEADER_LENGTH, message.payload)),
            Self::RemoteData(message) => Some((RemoteData::HEADER_LENGTH, message.payload)),
            Self::RemoteAtomic(message) => Some((RemoteAtomic::HEADER_LENGTH, message.payload)),
            Self::UntaggedRendezvous(_)
            | Self::Credit(_)
            | Self::MatchAcknowledged(_)
            | Self::Delivered(_)
            | Self::RendezvousDone(_)
            | Self::RendezvousRefused { .. }
            | Self::Discarded(_)
            | Self::Hello(_)
            | Self::HelloRefused(_)
            | Self::Goodbye(_)
            | Self::Keepalive(_)
            | Self::Challenge(_)
            | Self::Proof(_)
            | Self::RemoteRead(_)
            | Self::RemoteDone { .. }
            | Self::Connect(_)
            | Self::Reject(_) => None,
        }
    }
}

/// The first four bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) kind: Kind,
    pub(super) code: u8,
    pub(super) second: u8,
}

impl Head {
    pub(super) const LENGTH: usize = 4;

    fn read(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let [_no_tag, kind, code, second] = reader.array("header of a NO_TAG message")?;
        Ok(Self { kind: Kind::from_byte(kind)?, code, second })
    }

    pub(super) const fn bytes(kind: Kind, code: u8, second: u8) -> [u8; Self::LENGTH] {
        [Opcode::NoTag as u8, kind.to_byte(), code, second]
    }

    pub(super) fn no_codes(self) -> Result<(), WireError> {
        self.no_first_code()?;
        self.no_second_code()
    }

    pub(super) fn no_first_code(self) -> Result<(), WireError> {
        WireError::unless(self.code == 0, "first code", self.code.into(), Expected::Zero, CODE_OFFSET)
    }

    pub(super) fn no_second_code(self) -> Result<(), WireError> {
        WireError::unless(self.second == 0, "second code", self.second.into(), Expected::Zero, SECOND_OFFSET)
    }

    fn without_codes(self, reader: Reader<'_>) -> Result<OperationId, WireError> {
        self.no_codes()?;
        self.operation(reader)
    }

    fn operation(self, mut reader: Reader<'_>) -> Result<OperationId, WireError> {
        let offset = reader.offset();
        let operation = OperationId::decode(reader.u32("operation id")?, offset)?;
        reader.finish("notice of an operation")?;
        Ok(operation)
    }
}

fn notice(kind: Kind, code: u8, operation: OperationId, out: &mut [u8]) -> Result<usize, WireError> {
    let mut writer = Writer::new(out, NOTICE_LENGTH)?;
    writer.bytes(&Head::bytes(kind, code, 0))?;
    writer.bytes(&operation.value().to_be_bytes())?;
    Ok(writer.finish())
}

const KIND_BITS: u32 = 5;
const KIND_OFFSET: u16 = 1;
/// Where the first code stands.
pub(super) const CODE_OFFSET: u16 = 2;
/// Where the second code stands.
pub(super) const SECOND_OFFSET: u16 = 3;
const NOTICE_LENGTH: usize = 8;
