//! The memory of this process, as the device reaches it.
//!
//! Payload, queues and records are copied and loaded where they lie, without a reference to them: the program may
//! change them at any time, as with a real device. What the device wants to reach has been checked to be mapped when
//! it was registered or created; a program that unmaps it afterwards ends as it would with memory that is not its own.

use super::raw;
use crate::hca::{HostMemory, NoMemory};
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// See the module.
#[derive(Clone, Copy, Default, Debug)]
pub struct ProcessMemory;

impl HostMemory for ProcessMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), NoMemory> {
        if into.is_empty() {
            return Ok(());
        }
        let from: *const u8 = pointer(address, into.len())?;
        // SAFETY: registered by the program for the device, which is us; `into` is ours, so that they do not overlap.
        unsafe { core::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) };
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), NoMemory> {
        if bytes.is_empty() {
            return Ok(());
        }
        let to: *mut u8 = pointer(address, bytes.len())?.cast_mut();
        // SAFETY: as above, and registered for writing, or a queue.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Ok(())
    }

    fn load_acquire(&self, address: u64) -> Result<u32, NoMemory> {
        let word = aligned::<u32>(address)?;
        // SAFETY: aligned, mapped, and used for nothing but whole words by device and driver.
        let word = unsafe { AtomicU32::from_ptr(word) };
        Ok(u32::from_be(word.load(Ordering::Acquire)))
    }

    fn store_release(&mut self, address: u64, value: u32) -> Result<(), NoMemory> {
        let word = aligned::<u32>(address)?;
        // SAFETY: as above.
        let word = unsafe { AtomicU32::from_ptr(word) };
        word.store(value.to_be(), Ordering::Release);
        Ok(())
    }

    fn store_byte_release(&mut self, address: u64, value: u8) -> Result<(), NoMemory> {
        let byte = aligned::<u8>(address)?;
        // SAFETY: as above, a byte.
        let byte = unsafe { AtomicU8::from_ptr(byte) };
        byte.store(value, Ordering::Release);
        Ok(())
    }

    fn atomic_update(
        &mut self,
        address: u64,
        change: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> Result<u64, NoMemory> {
        let word = aligned::<u64>(address)?;
        // SAFETY: aligned and registered for atomic access.
        let word = unsafe { AtomicU64::from_ptr(word) };
        let update = word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, change);
        Ok(update.unwrap_or_else(|unchanged| unchanged))
    }

    /// One byte of each page is read, in the way that answers EFAULT instead of ending the process.
    fn is_mapped(&self, address: u64, length: u64) -> bool {
        let Some(end) = address.checked_add(length) else {
            return false;
        };
        let mut byte = [0];
        let mut next = address;
        while next < end {
            if raw::copy_from_program(next, &mut byte).is_err() {
                return false;
            }
            let Some(page) = (next & !(PAGE - 1)).checked_add(PAGE) else {
                return true;
            };
            next = page;
        }
        true
    }
}

fn pointer(address: u64, length: usize) -> Result<*const u8, NoMemory> {
    let missing = NoMemory { address, length: length as u64 };
    let start = usize::try_from(address).map_err(|_| missing)?;
    if start == 0 || start.checked_add(length).is_none() {
        return Err(missing);
    }
    Ok(core::ptr::with_exposed_provenance(start))
}

fn aligned<T>(address: u64) -> Result<*mut T, NoMemory> {
    let pointer: *mut T = pointer(address, size_of::<T>())?.cast_mut().cast();
    if pointer.is_aligned() { Ok(pointer) } else { Err(NoMemory { address, length: size_of::<T>() as u64 }) }
}

const PAGE: u64 = 4096;
