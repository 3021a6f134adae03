//! RNDV: a TMH, an RVH, and the true length behind them where 32 bits do not hold it.
//!
//! A NIC looks at TMH and RVH only; 32 bytes may follow (TM-CONTRACT 2), of which version 1 uses eight.

use super::cursor::{Reader, Writer};
use super::rvh::VA_OFFSET;
use super::{AppContext, Expected, Fin, Opcode, RemoteMemory, Rvh, Tmh, WireError};
use crate::ids::Tag;

/// A request to read the payload.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rendezvous {
    /// The sender's word; its operation id is how the sender finds the request when FIN comes.
    pub context: AppContext,
    /// The tag.
    pub tag: Tag,
    /// Where the payload waits.
    pub memory: RemoteMemory,
}

impl Rendezvous {
    /// Bytes of TMH and RVH.
    pub const HEADER_LENGTH: usize = Tmh::LENGTH + Rvh::LENGTH;
    /// Bytes of the longest request.
    pub const LENGTH_MAX: usize = Self::HEADER_LENGTH + 8;

    /// What tells the sender that its payload has been read: a copy of TMH and RVH.
    #[must_use]
    pub fn fin(&self) -> Fin {
        Fin { context: self.context, tag: self.tag, rvh: self.memory.rvh() }
    }

    /// Bytes of this request.
    #[must_use]
    pub const fn length(&self) -> usize {
        if self.memory.is_length_behind() { Self::LENGTH_MAX } else { Self::HEADER_LENGTH }
    }

    /// Writes the request, and says how long it is.
    ///
    /// # Errors
    /// No room, or the payload would end outside the address space.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, WireError> {
        self.memory.check(VA_OFFSET)?;
        let mut writer = Writer::new(out, self.length())?;
        writer.bytes(&Tmh { opcode: Opcode::Rendezvous, context: self.context, tag: self.tag }.to_bytes())?;
        writer.bytes(&self.memory.rvh().to_bytes())?;
        if self.memory.is_length_behind() {
            writer.bytes(&self.memory.length.to_be_bytes())?;
        }
        Ok(writer.finish())
    }

    pub(super) fn read(mut reader: Reader<'_>) -> Result<Self, WireError> {
        let Tmh { context, tag, .. } = Tmh::read(&mut reader)?;
        let Rvh { va, rkey, len } = Rvh::read(&mut reader)?;
        let mut length = u64::from(len);
        if len == Rvh::LENGTH_BEHIND {
            let offset = reader.offset();
            length = reader.u64("true length")?;
            let least = u64::from(Rvh::LENGTH_BEHIND);
            WireError::unless(length >= least, "true length", length, Expected::AtLeast(least), offset)?;
        }
        reader.finish("RNDV")?;
        let memory = RemoteMemory { address: va, key: rkey, length };
        memory.check(VA_OFFSET)?;
        Ok(Self { context, tag, memory })
    }
}
