//! The host's memory as the device reaches it.
//!
//! The model follows addresses only through this trait: payload after a check against a memory region, queues and
//! doorbell records at the addresses that were passed at creation. Not here: the memory of a real process
//! ([`super::raw_memory`]).

/// An address that nothing is behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no memory at {address:#x}, {length} bytes")]
pub struct NoMemory {
    /// First byte.
    pub address: u64,
    /// Bytes.
    pub length: u64,
}

/// Memory of the process that owns the device's context.
///
/// Ordering: [`Self::load_acquire`] of a doorbell record comes before the reading of what it publishes, and
/// [`Self::store_byte_release`] of a completion's owner byte after the writing of the rest.
pub trait HostMemory {
    /// Copy bytes from the host.
    ///
    /// # Errors
    /// Not (wholly) memory.
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), NoMemory>;

    /// Copy bytes to the host.
    ///
    /// # Errors
    /// Not (wholly) memory; nothing was written.
    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), NoMemory>;

    /// A doorbell record: an aligned big-endian word, read with acquire order.
    ///
    /// # Errors
    /// Not memory, or not aligned to 4.
    fn load_acquire(&self, address: u64) -> Result<u32, NoMemory>;

    /// An aligned big-endian word, written with release order.
    ///
    /// # Errors
    /// Not memory, or not aligned to 4.
    fn store_release(&mut self, address: u64, value: u32) -> Result<(), NoMemory>;

    /// One byte, written with release order.
    ///
    /// # Errors
    /// Not memory.
    fn store_byte_release(&mut self, address: u64, value: u8) -> Result<(), NoMemory>;

    /// Change an aligned word of 64 bits in the host's byte order in one piece, and give back what was there.
    /// `change` may be called several times.
    ///
    /// # Errors
    /// Not memory, or not aligned to 8.
    fn atomic_update(
        &mut self,
        address: u64,
        change: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> Result<u64, NoMemory>;

    /// Whether a memory region can be registered there: `ibv_reg_mr` of anything else is EFAULT.
    fn is_mapped(&self, address: u64, length: u64) -> bool;
}

/// Memory for tests: one stretch of bytes at an address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arena {
    base: u64,
    bytes: Vec<u8>,
}

impl Arena {
    /// `length` bytes of zero at `base`.
    #[must_use]
    pub fn new(base: u64, length: usize) -> Self {
        Self { base, bytes: vec![0; length] }
    }

    /// First address.
    #[must_use]
    pub const fn base(&self) -> u64 {
        self.base
    }

    fn range(&self, address: u64, length: usize) -> Result<std::ops::Range<usize>, NoMemory> {
        let missing = NoMemory { address, length: length as u64 };
        let start = address.checked_sub(self.base).ok_or(missing)?;
        let start = usize::try_from(start).map_err(|_| missing)?;
        let end = start.checked_add(length).filter(|end| *end <= self.bytes.len()).ok_or(missing)?;
        Ok(start..end)
    }

    fn part(&self, address: u64, length: usize) -> Result<&[u8], NoMemory> {
        let missing = NoMemory { address, length: length as u64 };
        self.bytes.get(self.range(address, length)?).ok_or(missing)
    }

    fn part_mut(&mut self, address: u64, length: usize) -> Result<&mut [u8], NoMemory> {
        let missing = NoMemory { address, length: length as u64 };
        let range = self.range(address, length)?;
        self.bytes.get_mut(range).ok_or(missing)
    }
}

impl HostMemory for Arena {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), NoMemory> {
        into.copy_from_slice(self.part(address, into.len())?);
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), NoMemory> {
        self.part_mut(address, bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    fn load_acquire(&self, address: u64) -> Result<u32, NoMemory> {
        aligned(address, 4)?;
        let mut word = [0; 4];
        self.read(address, &mut word)?;
        Ok(u32::from_be_bytes(word))
    }

    fn store_release(&mut self, address: u64, value: u32) -> Result<(), NoMemory> {
        aligned(address, 4)?;
        self.write(address, &value.to_be_bytes())
    }

    fn store_byte_release(&mut self, address: u64, value: u8) -> Result<(), NoMemory> {
        self.write(address, &[value])
    }

    fn atomic_update(
        &mut self,
        address: u64,
        change: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> Result<u64, NoMemory> {
        aligned(address, 8)?;
        let mut word = [0; 8];
        self.read(address, &mut word)?;
        let old = u64::from_ne_bytes(word);
        if let Some(new) = change(old) {
            self.write(address, &new.to_ne_bytes())?;
        }
        Ok(old)
    }

    fn is_mapped(&self, address: u64, length: u64) -> bool {
        usize::try_from(length).is_ok_and(|length| self.range(address, length).is_ok())
    }
}

/// Words are changed in one piece only where they are aligned.
pub(crate) const fn aligned(address: u64, to: u64) -> Result<(), NoMemory> {
    if address.is_multiple_of(to) { Ok(()) } else { Err(NoMemory { address, length: to }) }
}
