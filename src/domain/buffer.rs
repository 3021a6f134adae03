//! Memory that devices write to: owned here from submission until every device has let go.
//!
//! A device follows an address, whatever becomes of the memory. So a receive takes its buffer *by value* and hands it
//! back with the completion; in between it lies in a [`BufferTable`] and cannot be freed, moved or looked at. (A
//! borrowed slice would not do: what borrows it can be leaked, and the borrow ends.) When a table is dropped while
//! devices may still write, their buffers are leaked.
//!
//! Not here: registration with a device, and raw pointers, whose owner must promise the same by `unsafe`.

use crate::ids::BufferId;

/// Memory whose address does not change while it is owned, however its owner is moved.
///
/// Sealed: that the memory stays is what everything rests on, so a type from outside cannot just claim it.
pub trait StableBuffer: sealed::Sealed {
    /// Where it is, the same at every call. The bytes may be written through this address by whoever is told it
    /// (its provenance is exposed).
    fn region(&mut self) -> Region;

    /// The bytes.
    fn bytes_mut(&mut self) -> &mut [u8];
}

/// A stretch of memory by its address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Region {
    /// First byte. Dangling, but never 0, of a buffer without bytes.
    pub address: u64,
    /// Bytes.
    pub length: u64,
}

/// Bytes on the heap: the buffer of a safe receive.
///
/// Kept as a vector that never grows, and not as a box: moving a box asserts that nobody else writes to its bytes,
/// which is not so while a device has the address.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct OwnedBuffer(Vec<u8>);

impl OwnedBuffer {
    /// A buffer of zeros.
    #[must_use]
    pub fn new(length: usize) -> Self {
        Self(vec![0; length])
    }

    /// What is in it.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes as a box. Does not copy, unless it was made from a vector with room to spare.
    #[must_use]
    pub fn into_boxed_slice(self) -> Box<[u8]> {
        self.0.into_boxed_slice()
    }

    /// The bytes as a vector; never copies.
    #[must_use]
    pub fn into_vec(self) -> Vec<u8> {
        self.0
    }
}

impl From<Box<[u8]>> for OwnedBuffer {
    fn from(bytes: Box<[u8]>) -> Self {
        Self(bytes.into_vec())
    }
}

impl From<Vec<u8>> for OwnedBuffer {
    /// Room behind the vector's length is not written to.
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl StableBuffer for OwnedBuffer {
    fn region(&mut self) -> Region {
        let address = self.0.as_mut_ptr().expose_provenance();
        Region { address: address as u64, length: self.0.len() as u64 }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

/// The buffers of one domain.
///
/// A buffer is *at home* when no device knows it; each [`Self::expose`] lends it once more and each
/// [`Self::release`] takes one loan back. Only what is at home can be looked at, taken or freed.
#[derive(Debug)]
pub struct BufferTable<B: StableBuffer = OwnedBuffer> {
    entries: Vec<Entry<B>>,
    /// Places without a buffer; the last one is used next.
    free: Vec<u32>,
}

#[derive(Debug)]
struct Entry<B> {
    buffer: Option<B>,
    generation: u32,
    loans: u32,
}

impl<B: StableBuffer> Default for BufferTable<B> {
    fn default() -> Self {
        Self::with_capacity(0)
    }
}

impl<B: StableBuffer> BufferTable<B> {
    /// Room for so many buffers before anything more is allocated.
    #[must_use]
    pub fn with_capacity(buffers: usize) -> Self {
        Self { entries: Vec::with_capacity(buffers), free: Vec::with_capacity(buffers) }
    }

    /// Take a buffer in.
    ///
    /// # Errors
    /// The buffer back, where there are 2^32 already.
    pub fn insert(&mut self, buffer: B) -> Result<BufferId, B> {
        if let Some(index) = self.free.pop()
            && let Some(entry) = self.entries.get_mut(index as usize)
        {
            entry.buffer = Some(buffer);
            return Ok(BufferId { index, generation: entry.generation });
        }
        let Ok(index) = u32::try_from(self.entries.len()) else { return Err(buffer) };
        self.entries.push(Entry { buffer: Some(buffer), generation: 0, loans: 0 });
        // Taking buffers out must not allocate.
        self.free.reserve(self.entries.len());
        Ok(BufferId { index, generation: 0 })
    }

    /// A device is about to learn the address, and may write until [`Self::release`].
    ///
    /// # Errors
    /// There is no such buffer, or it is lent 2^32 - 1 times.
    pub fn expose(&mut self, id: BufferId) -> Result<Region, BufferError> {
        let (buffer, loans) = self.find(id)?;
        *loans = loans.checked_add(1).ok_or(BufferError::Loans { id, loans: u32::MAX })?;
        Ok(buffer.region())
    }

    /// A device has let go (`Event::Released`, or it failed, or never got the address after all).
    ///
    /// # Errors
    /// There is no such buffer, or no device had it.
    pub fn release(&mut self, id: BufferId) -> Result<(), BufferError> {
        let (_, loans) = self.find(id)?;
        *loans = loans.checked_sub(1).ok_or(BufferError::Loans { id, loans: 0 })?;
        Ok(())
    }

    /// Hand the buffer back to its user. Its id names nothing afterwards.
    ///
    /// # Errors
    /// There is no such buffer, or it is not at home; then it stays.
    pub fn take(&mut self, id: BufferId) -> Result<B, BufferError> {
        self.at_home(id)?;
        let unknown = BufferError::Unknown { id };
        let entry = self.entries.get_mut(id.index as usize).ok_or(unknown)?;
        let buffer = entry.buffer.take().ok_or(unknown)?;
        entry.generation = entry.generation.wrapping_add(1);
        self.free.push(id.index);
        Ok(buffer)
    }

    /// The bytes, to copy a message into them.
    ///
    /// # Errors
    /// There is no such buffer, or it is not at home.
    pub fn bytes_mut(&mut self, id: BufferId) -> Result<&mut [u8], BufferError> {
        self.at_home(id).map(StableBuffer::bytes_mut)
    }

    /// Buffers in the table.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Buffers that devices may write to: so many are leaked if the table is dropped now. Walks the table.
    #[must_use]
    pub fn exposed(&self) -> usize {
        self.entries.iter().filter(|entry| entry.loans > 0).count()
    }

    fn at_home(&mut self, id: BufferId) -> Result<&mut B, BufferError> {
        match self.find(id)? {
            (buffer, 0) => Ok(buffer),
            (_, loans) => Err(BufferError::Exposed { id, loans: *loans }),
        }
    }

    fn find(&mut self, id: BufferId) -> Result<(&mut B, &mut u32), BufferError> {
        match self.entries.get_mut(id.index as usize) {
            Some(Entry { buffer: Some(buffer), generation, loans }) if *generation == id.generation => {
                Ok((buffer, loans))
            }
            _ => Err(BufferError::Unknown { id }),
        }
    }
}

impl<B: StableBuffer> Drop for BufferTable<B> {
    /// Leaks what a device may still write to: lost memory is better than memory that changes under its next owner.
    fn drop(&mut self) {
        for entry in &mut self.entries {
            if entry.loans > 0 {
                std::mem::forget(entry.buffer.take());
            }
        }
    }
}

/// A call on a buffer that makes no sense: the caller's fault. Nothing was done.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BufferError {
    /// The id names nothing: never given, or its buffer was taken.
    #[error("{id:?} names no buffer")]
    Unknown {
        /// The id.
        id: BufferId,
    },
    /// Devices have it.
    #[error("{id:?} may be written to by devices: {loans} of them have not let go")]
    Exposed {
        /// The id.
        id: BufferId,
        /// How often it is lent.
        loans: u32,
    },
    /// More taken back than lent, or lent too often.
    #[error("{id:?} is lent {loans} times")]
    Loans {
        /// The id.
        id: BufferId,
        /// How often it is lent.
        loans: u32,
    },
}

mod sealed {
    /// Not nameable outside.
    pub trait Sealed {}
    impl Sealed for super::OwnedBuffer {}
    #[cfg(test)]
    impl Sealed for crate::domain::tests::buffer::Counted {}
}
