//! The memory of the process that the device lives in: addresses are pointers.
//!
//! A card reaches memory that was pinned when it was registered; this reaches whatever is mapped. What was unmapped
//! while registered, or while a queue lies in it, is a fault of the program, and ends it, where a card would write to
//! pages that nobody sees any more.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use super::memory::{HostMemory, NoMemory, aligned};

/// Addresses of this process.
#[derive(Clone, Copy, Debug)]
pub struct RawMemory {
    probe: fn(u64, u64) -> bool,
}

impl RawMemory {
    /// `probe` says whether all of a stretch (address, length) is mapped. It is asked when memory is registered and
    /// when queues are created, not later.
    ///
    /// # Safety
    /// As long as the device exists, the program must keep mapped and writable what it has registered, and the queues
    /// and doorbell records that it has named, until it deregisters and destroys them; and it must not rely on what a
    /// device may write there. Every program that uses RDMA has to.
    #[must_use]
    pub const unsafe fn new(probe: fn(u64, u64) -> bool) -> Self {
        Self { probe }
    }
}

fn pointer<T>(address: u64, length: u64) -> Result<*mut T, NoMemory> {
    let missing = NoMemory { address, length };
    address.checked_add(length).ok_or(missing)?;
    let address = usize::try_from(address).ok().filter(|address| *address != 0).ok_or(missing)?;
    Ok(std::ptr::with_exposed_provenance_mut(address))
}

impl HostMemory for RawMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), NoMemory> {
        let from: *mut u8 = pointer(address, into.len() as u64)?;
        // SAFETY: mapped by the promise of `new`, and `into` is not the program's memory. The program may write at the
        // same time, as it may while a card reads: then the bytes are any.
        unsafe { std::ptr::copy(from, into.as_mut_ptr(), into.len()) };
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), NoMemory> {
        let to: *mut u8 = pointer(address, bytes.len() as u64)?;
        // SAFETY: mapped and writable by the promise of `new`; the device may write there, so that the program holds no
        // reference which excludes it.
        unsafe { std::ptr::copy(bytes.as_ptr(), to, bytes.len()) };
        Ok(())
    }

    fn load_acquire(&self, address: u64) -> Result<u32, NoMemory> {
        aligned(address, 4)?;
        let word: *mut u32 = pointer(address, 4)?;
        // SAFETY: aligned, and mapped by the promise of `new`.
        let word = unsafe { AtomicU32::from_ptr(word) };
        Ok(u32::from_be(word.load(Ordering::Acquire)))
    }

    fn store_release(&mut self, address: u64, value: u32) -> Result<(), NoMemory> {
        aligned(address, 4)?;
        let word: *mut u32 = pointer(address, 4)?;
        // SAFETY: aligned, and mapped and writable by the promise of `new`.
        let word = unsafe { AtomicU32::from_ptr(word) };
        word.store(value.to_be(), Ordering::Release);
        Ok(())
    }

    fn store_byte_release(&mut self, address: u64, value: u8) -> Result<(), NoMemory> {
        let byte: *mut u8 = pointer(address, 1)?;
        // SAFETY: mapped and writable by the promise of `new`.
        let byte = unsafe { AtomicU8::from_ptr(byte) };
        byte.store(value, Ordering::Release);
        Ok(())
    }

    fn atomic_update(
        &mut self,
        address: u64,
        change: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> Result<u64, NoMemory> {
        aligned(address, 8)?;
        let word: *mut u64 = pointer(address, 8)?;
        // SAFETY: aligned, and mapped and writable by the promise of `new`.
        let word = unsafe { AtomicU64::from_ptr(word) };
        let updated = word.fetch_update(Ordering::AcqRel, Ordering::Acquire, change);
        Ok(updated.unwrap_or_else(|old| old))
    }

    fn is_mapped(&self, address: u64, length: u64) -> bool {
        (self.probe)(address, length)
    }
}
