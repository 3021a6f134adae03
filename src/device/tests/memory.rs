//! Memory of tests: buffers that stay until the test ends.
#![allow(unsafe_code, reason = "a test says whose memory its buffers are")]

use crate::device::host_memory::HostMemory;
use crate::seam::{Buffer, Segment};

/// Every transport of these tests is given buffers of [`Memory`] alone, which outlives it.
pub(in crate::device) fn trusted() -> HostMemory {
    // SAFETY: see above.
    unsafe { HostMemory::trusted() }
}

/// Bytes behind one buffer, in one segment or several. What was given to a transport is leaked, so that nothing that is
/// wrong in one writes to memory of others.
#[derive(Debug)]
pub(in crate::device) struct Memory {
    parts: Vec<&'static mut [u8]>,
    table: &'static [Segment],
}

impl Memory {
    pub(in crate::device) fn new(bytes: Vec<u8>) -> Self {
        let length = bytes.len();
        Self::cut(bytes, &[length])
    }

    pub(in crate::device) fn zeros(length: usize) -> Self {
        Self::new(vec![0; length])
    }

    /// The same in segments of these lengths, and one of what is left.
    pub(in crate::device) fn cut(mut bytes: Vec<u8>, lengths: &[usize]) -> Self {
        let mut parts: Vec<&'static mut [u8]> = Vec::new();
        for length in lengths {
            let rest = bytes.split_off((*length).min(bytes.len()));
            parts.push(std::mem::replace(&mut bytes, rest).leak());
        }
        if !bytes.is_empty() {
            parts.push(bytes.leak());
        }
        let segment = |part: &mut &'static mut [u8]| Segment {
            address: part.as_mut_ptr().expose_provenance() as u64,
            length: part.len() as u64,
            key: 0,
        };
        let table: Vec<Segment> = parts.iter_mut().map(segment).collect();
        Self { parts, table: table.leak() }
    }

    pub(in crate::device) fn buffer(&self) -> Buffer {
        match self.table {
            [only] => Buffer::new(only.address, only.length),
            table => Buffer {
                address: table.as_ptr().expose_provenance() as u64,
                length: table.iter().map(|segment| segment.length).sum(),
                key: 0,
                segments: u32::try_from(table.len()).expect("a short table"),
            },
        }
    }

    /// The same memory again and again.
    pub(in crate::device) fn repeated(&self, times: usize) -> Buffer {
        let table: &'static [Segment] = vec![self.table[0]; times].leak();
        Buffer {
            address: table.as_ptr().expose_provenance() as u64,
            length: table.iter().map(|segment| segment.length).sum(),
            key: 0,
            segments: u32::try_from(times).expect("a short table"),
        }
    }

    pub(in crate::device) fn bytes(&self) -> Vec<u8> {
        let volatile = |byte: &u8| {
            // SAFETY: the byte is part of a slice that lives. What the kernel wrote is read anew.
            unsafe { std::ptr::read_volatile(byte) }
        };
        self.parts.iter().flat_map(|part| part.iter().map(volatile)).collect()
    }
}
