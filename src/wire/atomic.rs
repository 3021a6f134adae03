//! Operations on single values of a peer's memory (`fi_atomic(3)`). What was there comes back as remote data, else the
//! operation is answered like a write.
//!
//! Operands, and what comes back, are in the byte order of whoever asks, and the message says which that is. Not here: what
//! operations do (`atomics`).

use super::control::{CODE_OFFSET, Head, Kind};
use super::cursor::{Reader, join};
use super::remote::{LAST, check_end, operation};
use super::{Expected, OperationId, Payload, RemoteStretch, WireError};
use crate::atomics::{AtomicOp, AtomicType};

/// One operation on each value of a stretch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RemoteAtomic<'a> {
    /// The operation, which the answer names.
    pub operation: OperationId,
    /// It is the last stretch of the operation.
    pub is_last: bool,
    /// What was there is wanted.
    pub fetches: bool,
    /// Values are little-endian.
    pub is_little: bool,
    /// Which values: a whole number of them, at most [`Self::STRETCH_MAX`] bytes, and one at least.
    pub stretch: RemoteStretch,
    /// Where in all that comes back these begin; 0 where nothing does.
    pub place: u64,
    /// What is done.
    pub op: AtomicOp,
    /// What the values are.
    pub of: AtomicType,
    /// Operands, one for each value, and behind them values to compare with, as many as the operation has.
    pub payload: Payload<'a>,
}

impl RemoteAtomic<'_> {
    /// Bytes before the payload.
    pub const HEADER_LENGTH: usize = LENGTH;
    /// Bytes of values in one message at most.
    pub const STRETCH_MAX: u64 = 1024;

    /// What goes before a payload, for those who send from two places. Its length follows from the operation.
    ///
    /// # Errors
    /// There is no such operation for the type, or it is no whole number of values, too many or none.
    pub fn header(&self) -> Result<[u8; LENGTH], WireError> {
        self.check(self.stretch.length.saturating_mul(self.op.operands()))?;
        let flags = (u8::from(self.is_last) * LAST)
            | (u8::from(self.fetches) * FETCHES)
            | (u8::from(self.is_little) * LITTLE);
        let mut bytes = [0; LENGTH];
        bytes[..4].copy_from_slice(&Head::bytes(Kind::RemoteAtomic, flags, 0));
        bytes[4..8].copy_from_slice(&self.operation.value().to_be_bytes());
        bytes[8..32].copy_from_slice(&self.stretch.to_bytes());
        bytes[32..40].copy_from_slice(&self.place.to_be_bytes());
        (bytes[40], bytes[41]) = (self.op as u8, self.of as u8);
        Ok(bytes)
    }

    pub(super) fn encode(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let payload = self.payload.whole()?;
        self.check(self.payload.length())?;
        join(out, &self.header()?, payload)
    }

    fn check(&self, payload: u64) -> Result<(), WireError> {
        self.stretch.check()?;
        let RemoteStretch { length, .. } = self.stretch;
        let expected = Expected::OneOf("whole values, at most 1024 bytes");
        let is_good =
            length > 0 && length <= Self::STRETCH_MAX && length.is_multiple_of(self.of.size() as u64);
        WireError::unless(is_good, "length of an atomic access", length, expected, LENGTH_OFFSET)?;
        let expected = Expected::OneOf("operations that the type has, and those that fetch only so");
        let is_valid = self.op.can_be_asked(self.of, self.fetches);
        WireError::unless(is_valid, "atomic operation", u64::from(self.op as u8), expected, OP_OFFSET)?;
        if self.fetches {
            check_end(self.place, length, "place of the bytes", PLACE_OFFSET)?;
        } else {
            WireError::unless(
                self.place == 0,
                "place of the bytes",
                self.place,
                Expected::Zero,
                PLACE_OFFSET,
            )?;
        }
        let (needed, length) = (length * self.op.operands(), payload);
        let header = Self::HEADER_LENGTH as u64;
        match length.cmp(&needed) {
            std::cmp::Ordering::Less => {
                Err(WireError::Short { field: "operands", needed: header + needed, length: header + length })
            }
            std::cmp::Ordering::Greater => Err(WireError::Long {
                field: "operands",
                expected: header + needed,
                length: header.saturating_add(length),
            }),
            std::cmp::Ordering::Equal => Ok(()),
        }
    }
}

impl<'a> RemoteAtomic<'a> {
    pub(super) fn read(head: Head, mut reader: Reader<'a>) -> Result<Self, WireError> {
        head.no_second_code()?;
        let known = LAST | FETCHES | LITTLE;
        let expected = Expected::Bits(known.into());
        WireError::unless(head.code & !known == 0, "flags", head.code.into(), expected, CODE_OFFSET)?;
        let [is_last, fetches, is_little] = [LAST, FETCHES, LITTLE].map(|flag| head.code & flag != 0);
        let operation = operation(&mut reader)?;
        let stretch = RemoteStretch::read(&mut reader)?;
        let place = reader.u64("place of the bytes")?;
        let op = reader.u8("atomic operation")?.into();
        let expected = Expected::OneOf("0 to 19");
        let op = AtomicOp::of(op).ok_or(WireError::Value {
            field: "atomic operation",
            value: op,
            expected,
            offset: OP_OFFSET,
        })?;
        let of = reader.u8("type of values")?.into();
        let expected = Expected::OneOf("0 to 11, 14 and 15");
        let of = AtomicType::of(of).ok_or(WireError::Value {
            field: "type of values",
            value: of,
            expected,
            offset: OP_OFFSET + 1,
        })?;
        reader.zero::<6>("reserved bytes behind the type")?;
        let payload = reader.payload();
        let atomic = Self { operation, is_last, fetches, is_little, stretch, place, op, of, payload };
        atomic.check(payload.length())?;
        Ok(atomic)
    }
}

/// What was there comes back.
const FETCHES: u8 = 0x04;
/// Values are little-endian.
const LITTLE: u8 = 0x08;
const LENGTH: usize = 48;
const LENGTH_OFFSET: u16 = 24;
const PLACE_OFFSET: u16 = 32;
const OP_OFFSET: u16 = 40;
