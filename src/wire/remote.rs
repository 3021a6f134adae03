//! Remote memory access (`fi_rma(3)`): what is written to a peer's memory, what is asked of it, and what comes back.
//!
//! Memory is named by a key and an address, both as the application knows them; the endpoint's table of regions says
//! whether there is such memory. Not here: that table, and order.

use super::control::{CODE_OFFSET, Head, Kind};
use super::cursor::{Reader, Writer, join};
use super::{Expected, OperationId, Payload, WireError};

/// A stretch of a peer's memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct RemoteStretch {
    /// The key of the region.
    pub key: u64,
    /// Where it begins, by the addresses of the region.
    pub address: u64,
    /// Bytes. The last address plus 1 is at most 2^64 - 1.
    pub length: u64,
}

/// A piece of what an operation writes, with its payload. The pieces of a stretch come in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RemoteWrite<'a> {
    /// The operation, which the answer names.
    pub operation: OperationId,
    /// With this piece the operation is at its end.
    pub is_last: bool,
    /// The whole stretch that is written.
    pub stretch: RemoteStretch,
    /// Where in it this piece begins.
    pub offset: u64,
    /// Remote CQ data: only with the last piece.
    pub cq_data: Option<u32>,
    /// What is written; empty only where the stretch is.
    pub payload: Payload<'a>,
}

impl RemoteWrite<'_> {
    /// Bytes before the payload.
    pub const HEADER_LENGTH: usize = WRITE_LENGTH;

    /// Whether the stretch ends with this piece: then it is answered.
    #[must_use]
    pub const fn ends_stretch(&self) -> bool {
        self.offset.saturating_add(self.payload.length) == self.stretch.length
    }

    /// What goes before a payload of so many bytes, for those who send from two places.
    ///
    /// # Errors
    /// The stretch ends outside the address space or the piece outside the stretch, it is empty where the stretch is
    /// not, or it is said to be the last and is not.
    pub fn header(&self, payload: u64) -> Result<[u8; WRITE_LENGTH], WireError> {
        self.check(payload)?;
        let flags = (u8::from(self.cq_data.is_some()) * CQ_DATA) | (u8::from(self.is_last) * LAST);
        let mut bytes = [0; WRITE_LENGTH];
        bytes[..4].copy_from_slice(&Head::bytes(Kind::RemoteWrite, flags, 0));
        bytes[4..8].copy_from_slice(&self.operation.value().to_be_bytes());
        bytes[8..32].copy_from_slice(&self.stretch.to_bytes());
        bytes[32..40].copy_from_slice(&self.offset.to_be_bytes());
        bytes[40..44].copy_from_slice(&self.cq_data.unwrap_or(0).to_be_bytes());
        Ok(bytes)
    }

    pub(super) fn encode(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let payload = self.payload.whole()?;
        let header = self.header(self.payload.length)?;
        join(out, &header, payload)
    }

    fn check(&self, payload: u64) -> Result<(), WireError> {
        self.stretch.check()?;
        let left = self.stretch.length.checked_sub(payload);
        let last = left.ok_or(WireError::Long {
            field: "the rest of the stretch",
            expected: (WRITE_LENGTH as u64).saturating_add(self.stretch.length),
            length: (WRITE_LENGTH as u64).saturating_add(payload),
        })?;
        let (offset, expected) = (self.offset, Expected::AtMost(last));
        WireError::unless(offset <= last, "offset in the stretch", offset, expected, OFFSET_OFFSET)?;
        if payload == 0 && self.stretch.length > 0 {
            let length = WRITE_LENGTH as u64;
            return Err(WireError::Short { field: "payload of a remote write", needed: length + 1, length });
        }
        let is_end = offset == last;
        let expected = Expected::OneOf("the last piece only where the stretch ends");
        WireError::unless(is_end || !self.is_last, "flags", LAST.into(), expected, CODE_OFFSET)?;
        let is_good = self.is_last || self.cq_data.is_none();
        let expected = Expected::OneOf("CQ data only in the last piece");
        WireError::unless(is_good, "flags", CQ_DATA.into(), expected, CODE_OFFSET)
    }
}

impl<'a> RemoteWrite<'a> {
    pub(super) fn read(head: Head, mut reader: Reader<'a>) -> Result<Self, WireError> {
        head.no_second_code()?;
        let (is_last, has_data) = flags(head.code, CQ_DATA | LAST)?;
        let operation = operation(&mut reader)?;
        let stretch = RemoteStretch::read(&mut reader)?;
        let offset = reader.u64("offset in the stretch")?;
        let at = reader.offset();
        let data = reader.u32("CQ data")?;
        WireError::unless(has_data || data == 0, "CQ data", data.into(), Expected::Zero, at)?;
        reader.zero::<4>("reserved bytes behind the CQ data")?;
        let cq_data = has_data.then_some(data);
        let write = Self { operation, is_last, stretch, offset, cq_data, payload: reader.payload() };
        write.check(write.payload.length)?;
        Ok(write)
    }
}

/// The bytes of a stretch are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RemoteRead {
    /// The operation, which the answer names.
    pub operation: OperationId,
    /// It is the last stretch of the operation.
    pub is_last: bool,
    /// What is read.
    pub stretch: RemoteStretch,
    /// Where in all that the operation reads these bytes begin; plus their number at most 2^64 - 1.
    pub place: u64,
}

impl RemoteRead {
    /// Bytes of the message.
    pub const LENGTH: usize = 40;

    pub(super) fn encode(&self, out: &mut [u8]) -> Result<usize, WireError> {
        self.check()?;
        let mut writer = Writer::new(out, Self::LENGTH)?;
        writer.bytes(&Head::bytes(Kind::RemoteRead, u8::from(self.is_last) * LAST, 0))?;
        writer.bytes(&self.operation.value().to_be_bytes())?;
        writer.bytes(&self.stretch.to_bytes())?;
        writer.bytes(&self.place.to_be_bytes())?;
        Ok(writer.finish())
    }

    pub(super) fn read(head: Head, mut reader: Reader<'_>) -> Result<Self, WireError> {
        head.no_second_code()?;
        let (is_last, _) = flags(head.code, LAST)?;
        let operation = operation(&mut reader)?;
        let stretch = RemoteStretch::read(&mut reader)?;
        let place = reader.u64("place of the bytes")?;
        reader.finish("remote read")?;
        let read = Self { operation, is_last, stretch, place };
        read.check()?;
        Ok(read)
    }

    fn check(&self) -> Result<(), WireError> {
        self.stretch.check()?;
        check_end(self.place, self.stretch.length, "place of the bytes", OFFSET_OFFSET)
    }
}

/// A piece of what was asked for. The pieces of an operation come in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RemoteData<'a> {
    /// The asker's operation.
    pub operation: OperationId,
    /// Where in all that the operation reads this piece begins; plus its length at most 2^64 - 1.
    pub place: u64,
    /// At least one byte.
    pub payload: Payload<'a>,
}

impl RemoteData<'_> {
    /// Bytes before the payload.
    pub const HEADER_LENGTH: usize = DATA_LENGTH;

    /// What goes before a payload of so many bytes, for those who send from two places.
    ///
    /// # Errors
    /// The piece is empty, or ends beyond 2^64 - 1.
    pub fn header(&self, payload: u64) -> Result<[u8; DATA_LENGTH], WireError> {
        self.check(payload)?;
        let mut bytes = [0; DATA_LENGTH];
        bytes[..4].copy_from_slice(&Head::bytes(Kind::RemoteData, 0, 0));
        bytes[4..8].copy_from_slice(&self.operation.value().to_be_bytes());
        bytes[8..16].copy_from_slice(&self.place.to_be_bytes());
        Ok(bytes)
    }

    pub(super) fn encode(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let payload = self.payload.whole()?;
        let header = self.header(self.payload.length)?;
        join(out, &header, payload)
    }

    fn check(&self, payload: u64) -> Result<(), WireError> {
        if payload == 0 {
            let length = DATA_LENGTH as u64;
            return Err(WireError::Short { field: "payload of remote data", needed: length + 1, length });
        }
        check_end(self.place, payload, "place of the bytes", DATA_PLACE_OFFSET)
    }
}

impl<'a> RemoteData<'a> {
    pub(super) fn read(head: Head, mut reader: Reader<'a>) -> Result<Self, WireError> {
        head.no_codes()?;
        let operation = operation(&mut reader)?;
        let place = reader.u64("place of the bytes")?;
        let data = Self { operation, place, payload: reader.payload() };
        data.check(data.payload.length)?;
        Ok(data)
    }
}

/// What became of a stretch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum RemoteStatus {
    /// All of it is written; of a read, there was nothing to read.
    Done = 0,
    /// There is no region of this key.
    NoRegion = 1,
    /// The region does not have all of it.
    OutOfBounds = 2,
    /// The region is not for this.
    NotAllowed = 3,
    /// Its memory could not be read.
    Failed = 4,
}

impl RemoteStatus {
    pub(super) const fn from_byte(byte: u8) -> Result<Self, WireError> {
        match byte {
            0 => Ok(Self::Done),
            1 => Ok(Self::NoRegion),
            2 => Ok(Self::OutOfBounds),
            3 => Ok(Self::NotAllowed),
            4 => Ok(Self::Failed),
            _ => Err(WireError::Value {
                field: "status of a remote access",
                value: byte as u64,
                expected: Expected::OneOf("0 (done), 1 (no region), 2 (bounds), 3 (not allowed), 4 (failed)"),
                offset: CODE_OFFSET,
            }),
        }
    }
}

impl RemoteStretch {
    /// Whether it lies in the address space.
    ///
    /// # Errors
    /// It does not.
    pub fn check(&self) -> Result<(), WireError> {
        check_end(self.address, self.length, "address", ADDRESS_OFFSET)
    }

    pub(super) fn to_bytes(self) -> [u8; 24] {
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&self.key.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.address.to_be_bytes());
        bytes[16..].copy_from_slice(&self.length.to_be_bytes());
        bytes
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let key = reader.u64("key")?;
        let address = reader.u64("address")?;
        let length = reader.u64("length")?;
        Ok(Self { key, address, length })
    }
}

/// A first byte behind the last is at most 2^64 - 1.
pub(super) fn check_end(from: u64, length: u64, field: &'static str, offset: u16) -> Result<(), WireError> {
    let last = u64::MAX - length;
    WireError::unless(from <= last, field, from, Expected::AtMost(last), offset)
}

/// Whether [`LAST`] and [`CQ_DATA`] are set, and none but these.
fn flags(code: u8, known: u8) -> Result<(bool, bool), WireError> {
    WireError::unless(code & !known == 0, "flags", code.into(), Expected::Bits(known.into()), CODE_OFFSET)?;
    Ok((code & LAST != 0, code & CQ_DATA != 0))
}

pub(super) fn operation(reader: &mut Reader<'_>) -> Result<OperationId, WireError> {
    let offset = reader.offset();
    OperationId::decode(reader.u32("operation id")?, offset)
}

/// CQ data comes with the message.
const CQ_DATA: u8 = 0x01;
/// The operation ends with it.
pub(super) const LAST: u8 = 0x02;
const WRITE_LENGTH: usize = 48;
const DATA_LENGTH: usize = 16;
const ADDRESS_OFFSET: u16 = 16;
const OFFSET_OFFSET: u16 = 32;
const DATA_PLACE_OFFSET: u16 = 8;
