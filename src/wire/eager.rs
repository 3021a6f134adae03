//! EAGER: a TMH and the payload behind it.

use super::cursor::{Reader, Writer};
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

    /// Writes the whole message, and says how long it is.
    ///
    /// # Errors
    /// No room, or the payload is not whole.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let payload = self.payload.whole()?;
        let mut writer = Writer::new(out, Self::HEADER_LENGTH + payload.len())?;
        writer.bytes(&self.header())?;
        writer.bytes(payload)?;
        Ok(writer.finish())
    }
}

impl<'a> Eager<'a> {
    pub(super) fn read(mut reader: Reader<'a>) -> Result<Self, WireError> {
        let Tmh { context, tag, .. } = Tmh::read(&mut reader)?;
        Ok(Self { context, tag, payload: reader.payload() })
    }
}
