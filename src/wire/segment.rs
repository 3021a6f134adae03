//! Segments: a message longer than the eager limit, in pieces. Never with a tag on a connection to a TM-SRQ,
//! which could not match them: there such a message goes by rendezvous.
//!
//! The first segment is matched; the others name its operation. Not here: whether they come in order and fit.

use super::control::{CODE_OFFSET, Head, Kind};
use super::cursor::{Reader, join};
use super::untagged::{check_cq_data, read_cq_data};
use super::{AppContext, Expected, OperationId, Payload, WireError};
use crate::ids::Tag;

/// The first segment: what the message is matched by, and the first bytes of its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentFirst<'a> {
    /// The sender's word; the operation id is what the other segments name.
    pub context: AppContext,
    /// The tag, if the message has one.
    pub tag: Option<Tag>,
    /// Bytes of payload in the whole message: more than in this segment.
    pub total_length: u64,
    /// Remote CQ data: with [`super::SendFlags::CQ_DATA`], and only then.
    pub cq_data: Option<u32>,
    /// The first bytes of the payload; at least one.
    pub payload: Payload<'a>,
}

impl SegmentFirst<'_> {
    /// Bytes before the payload.
    pub const HEADER_LENGTH: usize = FIRST_HEADER_LENGTH;

    /// What goes before the payload, for those who send from two places.
    ///
    /// # Errors
    /// CQ data and flag do not agree, the segment is empty, or it is the whole message.
    pub fn header(&self) -> Result<[u8; FIRST_HEADER_LENGTH], WireError> {
        self.check()?;
        check_cq_data(self.context, self.cq_data, CQ_DATA_OFFSET)?;
        let mut bytes = [0; FIRST_HEADER_LENGTH];
        bytes[..4].copy_from_slice(&Head::bytes(Kind::SegmentFirst, u8::from(self.tag.is_some()), 0));
        bytes[4..8].copy_from_slice(&self.context.to_bits().to_be_bytes());
        bytes[8..16].copy_from_slice(&self.tag.unwrap_or_default().0.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.total_length.to_be_bytes());
        bytes[24..28].copy_from_slice(&self.cq_data.unwrap_or(0).to_be_bytes());
        Ok(bytes)
    }

    /// Writes the whole segment, and says how long it is.
    ///
    /// # Errors
    /// No room, or as [`Self::header`], or the payload is not whole.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let payload = self.payload.whole()?;
        let header = self.header()?;
        join(out, &header, payload)
    }

    fn check(&self) -> Result<(), WireError> {
        check_not_empty(self.payload, Self::HEADER_LENGTH)?;
        let least = self.payload.length.saturating_add(1);
        let value = self.total_length;
        WireError::unless(value >= least, "total length", value, Expected::AtLeast(least), TOTAL_OFFSET)
    }
}

impl<'a> SegmentFirst<'a> {
    pub(super) fn read(head: Head, mut reader: Reader<'a>) -> Result<Self, WireError> {
        head.no_second_code()?;
        let context = AppContext::from_bits(reader.u32("app_ctx")?)?;
        let offset = reader.offset();
        let tag = reader.u64("tag")?;
        let tag = match head.code {
            0 => {
                WireError::unless(tag == 0, "tag of an untagged segment", tag, Expected::Zero, offset)?;
                None
            }
            1 => Some(Tag(tag)),
            code => {
                return Err(WireError::Value {
                    field: "form of a first segment",
                    value: code.into(),
                    expected: Expected::OneOf("0 (no tag) or 1 (tag)"),
                    offset: CODE_OFFSET,
                });
            }
        };
        let total_length = reader.u64("total length")?;
        let cq_data = read_cq_data(context, &mut reader)?;
        reader.zero::<4>("reserved bytes behind the CQ data")?;
        let segment = Self { context, tag, total_length, cq_data, payload: reader.payload() };
        segment.check()?;
        Ok(segment)
    }
}

/// A further segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment<'a> {
    /// The operation of the first segment.
    pub operation: OperationId,
    /// Where in the message's payload this segment's begins; never 0.
    pub offset: u64,
    /// At least one byte.
    pub payload: Payload<'a>,
}

impl Segment<'_> {
    /// Bytes before the payload.
    pub const HEADER_LENGTH: usize = HEADER_LENGTH;

    /// What goes before the payload, for those who send from two places; `last` ends the message.
    ///
    /// # Errors
    /// The segment is empty, begins the message, or ends beyond 2^64.
    pub fn header(&self, last: bool) -> Result<[u8; HEADER_LENGTH], WireError> {
        self.header_of(if last { Kind::SegmentLast } else { Kind::SegmentMiddle })
    }

    fn header_of(&self, kind: Kind) -> Result<[u8; HEADER_LENGTH], WireError> {
        self.check()?;
        let mut bytes = [0; HEADER_LENGTH];
        bytes[..4].copy_from_slice(&Head::bytes(kind, 0, 0));
        bytes[4..8].copy_from_slice(&self.operation.value().to_be_bytes());
        bytes[8..16].copy_from_slice(&self.offset.to_be_bytes());
        Ok(bytes)
    }

    pub(super) fn encode(&self, kind: Kind, out: &mut [u8]) -> Result<usize, WireError> {
        let payload = self.payload.whole()?;
        let header = self.header_of(kind)?;
        join(out, &header, payload)
    }

    fn check(&self) -> Result<(), WireError> {
        check_not_empty(self.payload, Self::HEADER_LENGTH)?;
        WireError::unless(self.offset > 0, "segment offset", self.offset, Expected::NotZero, OFFSET_OFFSET)?;
        let last = u64::MAX - self.payload.length;
        WireError::unless(
            self.offset <= last,
            "segment offset",
            self.offset,
            Expected::AtMost(last),
            OFFSET_OFFSET,
        )
    }
}

impl<'a> Segment<'a> {
    pub(super) fn read(head: Head, mut reader: Reader<'a>) -> Result<Self, WireError> {
        head.no_codes()?;
        let at = reader.offset();
        let operation = OperationId::decode(reader.u32("operation id")?, at)?;
        let offset = reader.u64("segment offset")?;
        let segment = Self { operation, offset, payload: reader.payload() };
        segment.check()?;
        Ok(segment)
    }
}

fn check_not_empty(payload: Payload<'_>, header: usize) -> Result<(), WireError> {
    let length = header as u64;
    if payload.length > 0 {
        Ok(())
    } else {
        Err(WireError::Short { field: "payload of a segment", needed: length + 1, length })
    }
}

const FIRST_HEADER_LENGTH: usize = 32;
const HEADER_LENGTH: usize = 16;
const OFFSET_OFFSET: u16 = 8;
const TOTAL_OFFSET: u16 = 16;
const CQ_DATA_OFFSET: u16 = 24;
