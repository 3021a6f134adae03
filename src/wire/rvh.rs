//! RVH, the rendezvous header: where the sender's payload waits to be read (TM-CONTRACT 3), and the true length
//! that stands behind it where 32 bits do not hold it.

use super::cursor::Reader;
use super::{Expected, WireError};

/// `struct ibv_rvh`, as it is on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rvh {
    /// Address of the payload in the sender's memory.
    pub va: u64,
    /// The sender's key for it.
    pub rkey: u32,
    /// Bytes of payload, or [`Self::LENGTH_BEHIND`].
    pub len: u32,
}

impl Rvh {
    /// Bytes on the wire.
    pub const LENGTH: usize = 16;

    /// The `len` that says: the true length stands behind the header. No NIC's buffer is that long, so that a NIC
    /// hands the request back (`IBV_WC_TM_RNDV_INCOMPLETE`) instead of reading too little.
    pub const LENGTH_BEHIND: u32 = u32::MAX;

    /// The header as bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        bytes[0..8].copy_from_slice(&self.va.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.rkey.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.len.to_be_bytes());
        bytes
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let rvh = Self { va: reader.u64("va")?, rkey: reader.u32("rkey")?, len: reader.u32("len")? };
        rvh.check()?;
        Ok(rvh)
    }

    /// The payload ends inside the address space.
    pub(super) fn check(&self) -> Result<(), WireError> {
        check_end(self.va, u64::from(self.len), VA_OFFSET)
    }
}

/// Memory of the sender's that holds a payload.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RemoteMemory {
    /// Address of the first byte, as the sender's device knows it.
    pub address: u64,
    /// The sender's key for it.
    pub key: u32,
    /// Bytes.
    pub length: u64,
}

impl RemoteMemory {
    /// Whether the true length stands behind the RVH: from 0xFFFF_FFFF bytes on.
    #[must_use]
    pub const fn is_length_behind(&self) -> bool {
        self.length >= Rvh::LENGTH_BEHIND as u64
    }

    /// The header that names this memory.
    #[must_use]
    pub fn rvh(&self) -> Rvh {
        let len = u32::try_from(self.length).unwrap_or(Rvh::LENGTH_BEHIND);
        Rvh { va: self.address, rkey: self.key, len }
    }

    /// The payload ends inside the address space; `offset` is where its address stands in the message.
    pub(super) fn check(&self, offset: u16) -> Result<(), WireError> {
        check_end(self.address, self.length, offset)
    }
}

fn check_end(va: u64, length: u64, offset: u16) -> Result<(), WireError> {
    let last = u64::MAX - length;
    WireError::unless(va <= last, "va", va, Expected::AtMost(last), offset)
}

/// In RNDV and FIN the RVH follows the TMH.
pub(super) const VA_OFFSET: u16 = 16;
