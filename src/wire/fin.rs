//! FIN: the payload of a rendezvous has been read. A NIC makes it from the request's own headers, software just
//! the same, so that the sender need not know who matched.

use super::cursor::{Reader, Writer};
use super::{AppContext, Opcode, Rvh, Tmh, WireError};
use crate::ids::Tag;

/// The end of a rendezvous, for its sender. All fields are copies of the request's; the receiver of a FIN believes
/// the operation id only where it has such a request under way.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fin {
    /// The request's word.
    pub context: AppContext,
    /// The request's tag.
    pub tag: Tag,
    /// The request's RVH; of a long payload without its true length.
    pub rvh: Rvh,
}

impl Fin {
    /// Bytes on the wire.
    pub const LENGTH: usize = Tmh::LENGTH + Rvh::LENGTH;

    /// The message as bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        bytes[..16]
            .copy_from_slice(&Tmh { opcode: Opcode::Fin, context: self.context, tag: self.tag }.to_bytes());
        bytes[16..].copy_from_slice(&self.rvh.to_bytes());
        bytes
    }

    /// Writes the message, and says how long it is.
    ///
    /// # Errors
    /// No room, or the RVH is one that no request can have.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, WireError> {
        self.rvh.check()?;
        let mut writer = Writer::new(out, Self::LENGTH)?;
        writer.bytes(&self.to_bytes())?;
        Ok(writer.finish())
    }

    pub(super) fn read(mut reader: Reader<'_>) -> Result<Self, WireError> {
        let Tmh { context, tag, .. } = Tmh::read(&mut reader)?;
        let rvh = Rvh::read(&mut reader)?;
        reader.finish("FIN")?;
        Ok(Self { context, tag, rvh })
    }
}
