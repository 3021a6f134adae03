//! Reading and writing big-endian fields one behind the other, with every bound checked.
//!
//! Not here: what the fields mean.

use super::{Expected, Payload, WireError};

/// Reads the header of a message of which at least the header is here.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    total: u64,
}

impl<'a> Reader<'a> {
    /// `bytes` are the first of `total`.
    pub(super) const fn new(bytes: &'a [u8], total: u64) -> Self {
        Self { bytes, at: 0, total }
    }

    /// Bytes in the whole message.
    pub(super) const fn total(&self) -> u64 {
        self.total
    }

    #[inline]
    pub(super) fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], WireError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let Some(chunk) = rest.first_chunk::<N>() else {
            return Err(WireError::Short { field, needed: (self.at + N) as u64, length: self.total });
        };
        self.at += N;
        Ok(*chunk)
    }

    #[inline]
    pub(super) fn u8(&mut self, field: &'static str) -> Result<u8, WireError> {
        self.array::<1>(field).map(|[byte]| byte)
    }

    #[inline]
    pub(super) fn u32(&mut self, field: &'static str) -> Result<u32, WireError> {
        self.array(field).map(u32::from_be_bytes)
    }

    #[inline]
    pub(super) fn u64(&mut self, field: &'static str) -> Result<u64, WireError> {
        self.array(field).map(u64::from_be_bytes)
    }

    /// Reserved bytes.
    #[inline]
    pub(super) fn zero<const N: usize>(&mut self, field: &'static str) -> Result<(), WireError> {
        let offset = self.offset();
        let bytes: [u8; N] = self.array(field)?;
        let value = bytes.iter().fold(0_u64, |value, byte| (value << 8) | u64::from(*byte));
        WireError::unless(value == 0, field, value, Expected::Zero, offset)
    }

    /// Where the next field begins. Headers are far shorter than 2^16.
    #[inline]
    pub(super) fn offset(&self) -> u16 {
        u16::try_from(self.at).unwrap_or(u16::MAX)
    }

    /// What of the message is here and has not been read.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Everything behind the header is payload.
    pub(super) fn payload(&self) -> Payload<'a> {
        Payload { arrived: self.rest(), length: self.total.saturating_sub(self.at as u64) }
    }

    /// Nothing may follow.
    pub(super) fn finish(&self, field: &'static str) -> Result<(), WireError> {
        let expected = self.at as u64;
        if self.total == expected {
            Ok(())
        } else {
            Err(WireError::Long { field, expected, length: self.total })
        }
    }
}

/// Writes a message into the caller's memory.
#[derive(Debug)]
pub(super) struct Writer<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    /// Fails at once where `needed` bytes do not fit, so that nothing is written in part.
    pub(super) fn new(out: &'a mut [u8], needed: usize) -> Result<Self, WireError> {
        if out.len() < needed {
            return Err(WireError::NoRoom { needed: needed as u64, available: out.len() as u64 });
        }
        Ok(Self { out, at: 0 })
    }

    #[inline]
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        let end = self.at + bytes.len();
        let available = self.out.len() as u64;
        let Some(place) = self.out.get_mut(self.at..end) else {
            return Err(WireError::NoRoom { needed: end as u64, available });
        };
        place.copy_from_slice(bytes);
        self.at = end;
        Ok(())
    }

    /// The message is finished: how many bytes it has.
    pub(super) const fn finish(self) -> usize {
        self.at
    }
}

/// Write a header and the payload behind it, and say how long both are.
pub(super) fn join(out: &mut [u8], header: &[u8], payload: &[u8]) -> Result<usize, WireError> {
    let mut writer = Writer::new(out, header.len() + payload.len())?;
    writer.bytes(header)?;
    writer.bytes(payload)?;
    Ok(writer.finish())
}
