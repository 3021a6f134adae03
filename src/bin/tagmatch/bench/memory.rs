//! Memory of messages that is measured with, and the clock of this thread's processor time: all that needs unsafe code.
//!
//! The memory is never freed, so that nothing that a device does late can be wrong.
#![allow(unsafe_code, reason = "memory that transports read and write, and a clock of the system")]

use std::time::Duration;
use tagmatch::device::host_memory::HostMemory;
use tagmatch::seam::Buffer;

/// Memory for the buffers of receives and of messages, dealt out from the beginning.
#[derive(Debug)]
pub(crate) struct Pool {
    start: u64,
    length: u64,
    used: u64,
}

impl Pool {
    /// Of so many bytes, all zero.
    pub(crate) fn new(length: usize) -> Self {
        let bytes: &'static mut [u8] = vec![0; length].leak();
        Self { start: bytes.as_mut_ptr().expose_provenance() as u64, length: bytes.len() as u64, used: 0 }
    }

    /// All of it is free again.
    pub(crate) const fn clear(&mut self) {
        self.used = 0;
    }

    /// A buffer of its own, on a cache line of its own.
    pub(crate) fn take(&mut self, length: u64) -> Result<Buffer, String> {
        let room = length.max(1).next_multiple_of(LINE);
        if room > self.length - self.used {
            return Err(format!("{length} bytes more than the {} of the pool are wanted", self.length));
        }
        let buffer = Buffer::new(self.start + self.used, length);
        self.used += room;
        Ok(buffer)
    }

    /// Fill one of its buffers. Nothing may be under way with it.
    pub(crate) fn fill(&self, buffer: &Buffer, byte: u8) {
        if let Some((at, length)) = self.place(buffer) {
            let first = std::ptr::with_exposed_provenance_mut::<u8>(at);
            // SAFETY: the stretch is in memory that was leaked for this pool, and no reference to it is left.
            unsafe { std::ptr::write_bytes(first, byte, length) };
        }
    }

    /// Whether the first and the last byte of a buffer are these. Nothing may be under way with it.
    pub(crate) fn holds(&self, buffer: &Buffer, byte: u8) -> bool {
        let Some((at, length)) = self.place(buffer) else { return false };
        [at, at + length.saturating_sub(1)].into_iter().filter(|_| length > 0).all(|at| {
            let place = std::ptr::with_exposed_provenance::<u8>(at);
            // SAFETY: as above. A device may have written it, so it is read as it is now.
            unsafe { place.read_volatile() == byte }
        })
    }

    /// Address and length, if it is in the pool.
    fn place(&self, buffer: &Buffer) -> Option<(usize, usize)> {
        let end = buffer.address.checked_add(buffer.length)?;
        let is_within = buffer.address >= self.start && end <= self.start + self.length;
        let place = (usize::try_from(buffer.address).ok()?, usize::try_from(buffer.length).ok()?);
        is_within.then_some(place)
    }
}

/// Transports may follow the addresses of buffers.
pub(crate) const fn trusted() -> HostMemory {
    // SAFETY: every buffer that is measured with is in a pool, whose memory stays to the end of the process, and which
    // nobody looks at but through pointers.
    unsafe { HostMemory::trusted() }
}

/// Processor time of this thread so far, in the kernel and outside.
pub(super) fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the place is ours. It cannot fail: Linux has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

/// A cache line.
const LINE: u64 = 64;
