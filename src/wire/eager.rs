//! EAGER: a TMH and the payload behind it.

use super::cursor::{Reader, join};
use super::{AppContext, Opcode, Payload, Tmh, WireError};
use crate::ids::Tag;

/// A message with its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Eager<'a> {
    /// The sender's word. With [`super::SendFlags::CQ_DATA`] the immediate carries the data.
    pub context: AppContext,
    /// The tag.
    pub tag: Tag,
    /// The rest of the message; may be empty.
    pub payload: Payload<'a>,
}

impl Eager<'_> {
    /// Bytes before the payload.
    pub const HEADER_LENGTH: usize = Tmh::LENGTH;

    /// What goes before the payload, for those who send from two places.
    #[must_use]
    pub fn header(&self) -> [u8; Tmh::LENGTH] {
        Tmh { opcode: Opcode::Eager, context: self.context, tag: self.tag }.to_bytes()
    }

    /// Whether these bytes, and no more, are what goes before the payload.
    #[inline]
    #[must_use]
    pub fn is_header(bytes: &[u8]) -> bool {
        bytes.len() == Self::HEADER_LENGTH
            && bytes.first_chunk().is_some_and(|first| Self::peek(first).is_some())
    }

    /// Context and tag of a message that begins so. `None`: it is of another kind, or none at all, as
    /// [`super::decode_partial`] says. The same as that, at less than a tenth of the instructions.
    #[inline]
    #[must_use]
    pub fn peek(first: &[u8; Tmh::LENGTH]) -> Option<(AppContext, Tag)> {
        let [opcode, zeros @ .., c0, c1, c2, c3, t0, t1, t2, t3, t4, t5, t6, t7] = *first;
        if opcode != Opcode::Eager as u8 || zeros != [0; 3] {
            return None;
        }
        let context = AppContext::from_bits(u32::from_be_bytes([c0, c1, c2, c3])).ok()?;
        Some((context, Tag(u64::from_be_bytes([t0, t1, t2, t3, t4, t5, t6, t7]))))
    }

    /// Writes the whole message, and says how long it is.
    ///
    /// # Errors
    /// No room, or the payload is not whole.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let payload = self.payload.whole()?;
        join(out, &self.header(), payload)
    }
}

impl<'a> Eager<'a> {
    pub(super) fn read(mut reader: Reader<'a>) -> Result<Self, WireError> {
        let Tmh { context, tag, .. } = Tmh::read(&mut reader)?;
        Ok(Self { context, tag, payload: reader.payload() })
    }
}
