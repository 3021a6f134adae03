//! Challenge and proof: that both sides of a connection hold the key of the job. Not here: what the proof is made of.

use super::control::{CODE_OFFSET, Head, Kind};
use super::cursor::{Reader, Writer};
use super::{Expected, HelloRole, WireError};

/// The side that was called asks for a proof before it answers a hello.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Challenge {
    /// Its number, never used before.
    pub number: [u8; 32],
}

impl Challenge {
    /// Bytes of the message.
    pub const LENGTH: usize = Head::LENGTH + 32;

    pub(super) fn encode(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let mut writer = Writer::new(out, Self::LENGTH)?;
        writer.bytes(&Head::bytes(Kind::Challenge, 0, 0))?;
        writer.bytes(&self.number)?;
        Ok(writer.finish())
    }

    pub(super) fn read(head: Head, mut reader: Reader<'_>) -> Result<Self, WireError> {
        head.no_codes()?;
        let number = reader.array("number of a challenge")?;
        reader.finish("challenge")?;
        Ok(Self { number })
    }
}

/// One side shows that it holds the key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Proof {
    /// Which side: the one that called, or the one that was called.
    pub role: HelloRole,
    /// The speaker's own number.
    pub number: [u8; 32],
    /// HMAC-SHA256, as docs/wire.md has it.
    pub code: [u8; 32],
}

impl Proof {
    /// Bytes of the message.
    pub const LENGTH: usize = Head::LENGTH + 64;

    pub(super) fn encode(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let mut writer = Writer::new(out, Self::LENGTH)?;
        writer.bytes(&Head::bytes(Kind::Proof, self.role as u8, 0))?;
        writer.bytes(&self.number)?;
        writer.bytes(&self.code)?;
        Ok(writer.finish())
    }

    pub(super) fn read(head: Head, mut reader: Reader<'_>) -> Result<Self, WireError> {
        head.no_second_code()?;
        let expected = Expected::OneOf("0 (request) or 1 (answer)");
        WireError::unless(head.code <= 1, "role of a proof", head.code.into(), expected, CODE_OFFSET)?;
        let role = if head.code == 0 { HelloRole::Request } else { HelloRole::Answer };
        let number = reader.array("number of a proof")?;
        let code = reader.array("code of a proof")?;
        reader.finish("proof")?;
        Ok(Self { role, number, code })
    }
}
