//! What a soft device writes to, when it writes at all.
//!
//! Not here: real memory. Following an address of the user's needs unsafe code and belongs to devices that have it.

use crate::seam::Buffer;

/// Memory behind [`Buffer`]s. The device has cut every length to the buffer's before it calls.
pub trait Memory: Clone {
    /// Write `bytes` into the buffer, `offset` bytes from its start. False: there is no such memory.
    fn write(&mut self, to: Buffer, offset: u64, bytes: &[u8]) -> bool;

    /// Copy the first `length` bytes of one buffer into another. False: there is no such memory.
    fn copy(&mut self, from: Buffer, to: Buffer, length: u64) -> bool;
}

/// Memory that is not there: for models that look at matching alone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct NoMemory;

impl Memory for NoMemory {
    fn write(&mut self, _to: Buffer, _offset: u64, _bytes: &[u8]) -> bool {
        true
    }

    fn copy(&mut self, _from: Buffer, _to: Buffer, _length: u64) -> bool {
        true
    }
}

/// One stretch of bytes whose addresses start at [`Arena::BASE`]; it has no segment tables.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Arena {
    bytes: Vec<u8>,
}

impl Arena {
    /// The address of the first byte: not 0, so that a forgotten address shows.
    pub const BASE: u64 = 0x1_0000;

    /// So many zero bytes.
    #[must_use]
    pub fn new(length: usize) -> Self {
        Self { bytes: vec![0; length] }
    }

    /// A buffer in it, `offset` bytes from its start.
    #[must_use]
    pub const fn buffer(&self, offset: u64, length: u64) -> Buffer {
        Buffer::new(Self::BASE.wrapping_add(offset), length)
    }

    /// What the buffer holds; `None` where it leaves the arena.
    #[must_use]
    pub fn bytes(&self, buffer: Buffer) -> Option<&[u8]> {
        self.bytes.get(Self::range(buffer, 0, buffer.length)?)
    }

    fn range(buffer: Buffer, offset: u64, length: u64) -> Option<std::ops::Range<usize>> {
        let start = buffer.address.checked_sub(Self::BASE)?.checked_add(offset)?;
        let start = usize::try_from(start).ok()?;
        let end = start.checked_add(usize::try_from(length).ok()?)?;
        (buffer.segments == 1 && offset.checked_add(length)? <= buffer.length).then_some(start..end)
    }
}

impl Memory for Arena {
    fn write(&mut self, to: Buffer, offset: u64, bytes: &[u8]) -> bool {
        let target = Self::range(to, offset, bytes.len() as u64).and_then(|range| self.bytes.get_mut(range));
        target.is_some_and(|target| {
            target.copy_from_slice(bytes);
            true
        })
    }

    fn copy(&mut self, from: Buffer, to: Buffer, length: u64) -> bool {
        let (Some(source), Some(target)) = (Self::range(from, 0, length), Self::range(to, 0, length)) else {
            return false;
        };
        if source.end > self.bytes.len() || target.end > self.bytes.len() {
            return false;
        }
        self.bytes.copy_within(source, target.start);
        true
    }
}
