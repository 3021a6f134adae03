//! Memory of the host's that devices copy by themselves: who may follow an address, and the copying.
//!
//! Not here: memory that a NIC reads and writes; the NIC checks its keys itself. Nor when a device may touch a buffer:
//! that is each device's to keep.
#![allow(unsafe_code, reason = "this is where addresses of the host's are followed")]

mod atomics;

use std::ptr;

use crate::seam::{Buffer, Segment};

/// What a device may do with the addresses of buffers when it copies by itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct HostMemory {
    is_trusted: bool,
}

/// A stretch of memory that may be followed: part of a buffer that the host gave to a device and has not got back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stretch {
    address: usize,
    length: usize,
}

/// The stretches of a part of a buffer, in order.
#[derive(Clone, Debug)]
pub(crate) struct Stretches {
    buffer: Buffer,
    segment: u32,
    skip: u64,
    left: u64,
}

impl HostMemory {
    /// Only regions that are registered with the device. A buffer elsewhere is a fault of the host's.
    #[must_use]
    pub const fn registered() -> Self {
        Self { is_trusted: false }
    }

    /// Any buffer that a command, an answer or a message to send names.
    ///
    /// # Safety
    /// Every buffer that is given to the device, with the table of its segments if it has one, is memory which stays,
    /// and which nothing else relies on, from the moment it is given until the event that says that the device is done
    /// with it (`seam`, `device::transport`). What is only read may be read by others meanwhile.
    #[must_use]
    pub const unsafe fn trusted() -> Self {
        Self { is_trusted: true }
    }

    pub(in crate::device) const fn is_trusted(self) -> bool {
        self.is_trusted
    }

    /// The stretches of at most `length` bytes of a buffer from `offset` on. None where addresses may not be followed.
    pub(in crate::device) fn stretches(self, buffer: &Buffer, offset: u64, length: u64) -> Stretches {
        let left = if self.is_trusted { buffer.length.saturating_sub(offset).min(length) } else { 0 };
        Stretches { buffer: *buffer, segment: 0, skip: offset, left }
    }

    /// Copy bytes into a buffer from `offset` on, as many as it takes, and say how many.
    pub(in crate::device) fn write(self, to: &Buffer, offset: u64, bytes: &[u8]) -> usize {
        let mut written = 0;
        for stretch in self.stretches(to, offset, bytes.len() as u64) {
            let Some(part) = bytes.get(written..written + stretch.length) else { break };
            // SAFETY: the stretch is the host's promise; it may be the memory that the bytes come from.
            unsafe { ptr::copy(part.as_ptr(), stretch.pointer(), stretch.length) };
            written += stretch.length;
        }
        written
    }

    /// Copy bytes out of a buffer from `offset` on, as many as there are, and say how many.
    pub(in crate::device) fn read(self, from: &Buffer, offset: u64, into: &mut [u8]) -> usize {
        let mut taken = 0;
        for stretch in self.stretches(from, offset, into.len() as u64) {
            let Some(part) = into.get_mut(taken..taken + stretch.length) else { break };
            // SAFETY: the stretch is the host's promise, and the slice is none of the host's buffers.
            unsafe { ptr::copy_nonoverlapping(stretch.pointer(), part.as_mut_ptr(), stretch.length) };
            taken += stretch.length;
        }
        taken
    }

    /// Copy from the beginning of one buffer to that of another as much as both hold, and say how much.
    pub(in crate::device) fn copy(self, from: &Buffer, to: &Buffer) -> u64 {
        let length = from.length.min(to.length);
        let mut targets = self.stretches(to, 0, length);
        let mut target = Stretch { address: 0, length: 0 };
        let mut copied = 0;
        for mut source in self.stretches(from, 0, length) {
            while source.length > 0 {
                if target.length == 0 {
                    let Some(next) = targets.next() else { return copied };
                    target = next;
                }
                let bytes = source.length.min(target.length);
                // SAFETY: both stretches are the host's promise; they may overlap.
                unsafe { ptr::copy(source.pointer(), target.pointer(), bytes) };
                (source, target) = (source.behind(bytes), target.behind(bytes));
                copied += bytes as u64;
            }
        }
        copied
    }
}

impl Stretch {
    /// The first byte.
    pub(in crate::device) fn pointer(self) -> *mut u8 {
        ptr::with_exposed_provenance_mut(self.address)
    }

    /// Bytes.
    pub(in crate::device) const fn length(self) -> usize {
        self.length
    }

    const fn behind(self, bytes: usize) -> Self {
        Self { address: self.address.wrapping_add(bytes), length: self.length - bytes }
    }
}

impl Stretches {
    fn segment(&self) -> Option<Segment> {
        let Buffer { address, length, segments, .. } = self.buffer;
        if self.segment >= segments {
            return None;
        }
        if segments == 1 {
            return Some(Segment { address, length, key: 0 });
        }
        let table: *const Segment = ptr::with_exposed_provenance(usize::try_from(address).ok()?);
        let place = table.wrapping_add(self.segment as usize);
        // SAFETY: the table has so many segments, and stays as long as the memory: the host's promise. Stretches of
        // memory that is not trusted never get here.
        Some(unsafe { place.read_unaligned() })
    }
}

impl Iterator for Stretches {
    type Item = Stretch;

    fn next(&mut self) -> Option<Stretch> {
        while self.left > 0 {
            let segment = self.segment()?;
            self.segment += 1;
            if self.skip >= segment.length {
                self.skip -= segment.length;
                continue;
            }
            let length = (segment.length - self.skip).min(self.left);
            let address = usize::try_from(segment.address.wrapping_add(self.skip)).ok()?;
            (self.skip, self.left) = (0, self.left - length);
            return Some(Stretch { address, length: usize::try_from(length).ok()? });
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> HostMemory {
        // SAFETY: the buffers below are vectors that stay.
        unsafe { HostMemory::trusted() }
    }

    fn buffer_of(bytes: &mut [u8]) -> Buffer {
        Buffer::new(bytes.as_mut_ptr().expose_provenance() as u64, bytes.len() as u64)
    }

    fn segments_of(parts: &mut [Vec<u8>]) -> Vec<Segment> {
        let buffers = parts.iter_mut().map(|part| buffer_of(part));
        buffers.map(|Buffer { address, length, .. }| Segment { address, length, key: 0 }).collect()
    }

    fn buffer_over(table: &[Segment]) -> Buffer {
        Buffer {
            address: table.as_ptr().expose_provenance() as u64,
            length: table.iter().map(|segment| segment.length).sum(),
            key: 0,
            segments: u32::try_from(table.len()).expect("a short table"),
        }
    }

    #[test]
    fn bytes_go_over_segments_and_never_past_the_end() {
        let mut parts = [vec![0; 3], vec![], vec![0; 1], vec![0; 4]];
        let table = segments_of(&mut parts);
        let buffer = buffer_over(&table);
        assert_eq!(memory().write(&buffer, 2, b"abcdefghij"), 6);
        assert_eq!(parts, [vec![0, 0, b'a'], vec![], vec![b'b'], b"cdef".to_vec()]);
        let mut back = [0; 4];
        assert_eq!(memory().read(&buffer, 3, &mut back), 4);
        assert_eq!(&back, b"bcde");
        assert_eq!(memory().read(&buffer, 7, &mut back), 1);
        assert_eq!(memory().write(&buffer, 8, b"x") + memory().write(&buffer, u64::MAX, b"x"), 0);
    }

    #[test]
    fn copies_go_between_buffers_cut_differently() {
        let mut from = [b"ab".to_vec(), b"cdefg".to_vec()];
        let mut to = [vec![0; 4], vec![0; 1], vec![0; 9]];
        let (source, target) = (segments_of(&mut from), segments_of(&mut to));
        assert_eq!(memory().copy(&buffer_over(&source), &buffer_over(&target)), 7);
        assert_eq!(to.concat(), b"abcdefg\0\0\0\0\0\0\0");
    }

    #[test]
    fn no_address_is_followed_where_none_is_trusted() {
        let mut bytes = vec![0; 4];
        let buffer = buffer_of(&mut bytes);
        assert_eq!(HostMemory::registered().write(&buffer, 0, b"abcd"), 0);
        let wild = Buffer { address: 8, segments: 3, length: 100, key: 0 };
        assert_eq!(HostMemory::registered().copy(&wild, &wild), 0);
        assert_eq!(bytes, [0; 4]);
    }
}
