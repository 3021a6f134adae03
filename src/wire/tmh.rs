//! TMH, the tag-matching header: the first 16 bytes of every message that has a tag (TM-CONTRACT 3).
//!
//! Not here: what stands behind it.

use super::cursor::Reader;
use super::{AppContext, Expected, WireError};
use crate::ids::Tag;

/// The first byte of every message (`enum ibv_tmh_op`, `infiniband/tm_types.h`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Opcode {
    /// Not to be matched. The rest of the message is ours: [`super::Control`].
    NoTag = 0,
    /// A request to read the payload: TMH and RVH.
    Rendezvous = 1,
    /// The payload of a request has been read.
    Fin = 2,
    /// The payload follows.
    Eager = 3,
}

impl Opcode {
    /// # Errors
    /// There is no such opcode.
    pub const fn from_byte(byte: u8) -> Result<Self, WireError> {
        match byte {
            0 => Ok(Self::NoTag),
            1 => Ok(Self::Rendezvous),
            2 => Ok(Self::Fin),
            3 => Ok(Self::Eager),
            _ => Err(WireError::Value {
                field: "opcode",
                value: byte as u64,
                expected: Expected::OneOf("0 (NO_TAG), 1 (RNDV), 2 (FIN) or 3 (EAGER)"),
                offset: 0,
            }),
        }
    }
}

/// The tag-matching header, `struct ibv_tmh`. Its three reserved bytes are 0 and are not kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tmh {
    /// What the message is. NO_TAG never has a whole TMH.
    pub opcode: Opcode,
    /// The sender's word.
    pub context: AppContext,
    /// The tag.
    pub tag: Tag,
}

impl Tmh {
    /// Bytes on the wire.
    pub const LENGTH: usize = 16;

    /// The header as bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        bytes[0] = self.opcode as u8;
        bytes[4..8].copy_from_slice(&self.context.to_bits().to_be_bytes());
        bytes[8..16].copy_from_slice(&self.tag.0.to_be_bytes());
        bytes
    }

    /// The header at the start of a message.
    ///
    /// # Errors
    /// Fewer than 16 bytes, an unknown opcode, reserved bytes or flags that are not 0.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        Self::read(&mut Reader::new(bytes, bytes.len() as u64))
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let opcode = Opcode::from_byte(reader.u8("opcode")?)?;
        reader.zero::<3>("reserved bytes of the TMH")?;
        let context = AppContext::from_bits(reader.u32("app_ctx")?)?;
        let tag = Tag(reader.u64("tag")?);
        Ok(Self { opcode, context, tag })
    }
}
