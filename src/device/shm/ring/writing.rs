//! Writing to a ring, or on its slip.

use std::io;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use super::super::region::Region;
use super::super::slip::{Beside, SLIP_BYTES};
use super::super::sync::fence;
use super::{Rings, WORDS_A_RING, Word, broken};
use crate::device::sockets::sys::Part;

impl Rings {
    /// Bytes that there is room for, at least `wanted` if there is.
    #[inline]
    fn room(&mut self, wanted: usize) -> io::Result<usize> {
        let area = self.region.area();
        let room = |rings: &Self| {
            let outstanding = rings.written.wrapping_sub(rings.taken_there);
            usize::try_from(outstanding).ok().and_then(|outstanding| area.checked_sub(outstanding))
        };
        match room(self) {
            Some(room) if room >= wanted => Ok(room),
            _ => {
                self.taken_there = self.word(self.out, Word::Taken).load(Acquire);
                room(self).ok_or_else(broken)
            }
        }
    }

    /// Write bytes, as many as there is room for, and say how many.
    #[inline]
    pub(in crate::device::shm) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.room(bytes.len())?.min(bytes.len());
        self.region.put(self.out, self.written, bytes.get(..count).unwrap_or_default());
        self.publish(count);
        Ok(count)
    }

    /// Write parts of so many bytes in all, if there is room for all of them and they are so long.
    #[inline]
    pub(in crate::device::shm) fn write_whole<'a>(
        &mut self,
        total: usize,
        parts: impl Iterator<Item = Part<'a>>,
    ) -> bool {
        if total <= SLIP_BYTES {
            self.heed_beside();
            if self.taken_there == self.written {
                return self.write_slip(total, parts);
            }
        }
        if !self.room(total).is_ok_and(|room| room >= total) {
            return false;
        }
        let mut left = total;
        for part in parts {
            let at = self.written.wrapping_add((total - left) as u64);
            let length = match part {
                Part::Bytes(bytes) => bytes.len(),
                Part::Memory(stretch) => stretch.length(),
            };
            if length > left {
                return false;
            }
            match part {
                Part::Bytes(bytes) => self.region.put(self.out, at, bytes),
                Part::Memory(stretch) => self.region.put_stretch(self.out, at, stretch, length),
            }
            left -= length;
        }
        if left == 0 {
            self.publish(total);
        }
        left == 0
    }

    /// Write parts, as many of the first as there is room for, and say how many bytes that is.
    pub(in crate::device::shm) fn write_parts<'a>(
        &mut self,
        parts: impl Iterator<Item = Part<'a>>,
    ) -> io::Result<usize> {
        let room = self.room(self.region.area())?;
        let mut count = 0;
        for part in parts {
            let (at, left) = (self.written.wrapping_add(count as u64), room - count);
            let (length, whole) = match part {
                Part::Bytes(bytes) => {
                    let length = bytes.len().min(left);
                    self.region.put(self.out, at, bytes.get(..length).unwrap_or_default());
                    (length, bytes.len())
                }
                Part::Memory(stretch) => {
                    let length = stretch.length().min(left);
                    self.region.put_stretch(self.out, at, stretch, length);
                    (length, stretch.length())
                }
            };
            count += length;
            if length < whole {
                break;
            }
        }
        self.publish(count);
        Ok(count)
    }

    #[inline]
    fn publish(&mut self, count: usize) {
        self.written = self.written.wrapping_add(count as u64);
        let (at, length) = self.slip;
        // What was taken counts no more: its place comes again.
        if length > 0 && self.written.wrapping_sub(at) > self.written.wrapping_sub(self.taken_there) {
            self.slip = (0, 0);
        }
        let beside = Beside::new(self.taken, self.slip.0, self.slip.1);
        self.word(self.out, Word::Beside).store(beside.to_bits(), Release);
        self.word(self.out, Word::Written).store(self.written, Release);
    }

    /// The other side says beside its own count what it has taken: as far as that can be, it has.
    #[inline]
    fn heed_beside(&mut self) {
        let beside = Beside::from_bits(self.word(self.input, Word::Beside).load(Acquire));
        #[expect(clippy::cast_possible_truncation, reason = "the lower half is meant")]
        let more = u64::from(beside.taken.wrapping_sub(self.taken_there as u32));
        if more <= self.written.wrapping_sub(self.taken_there) {
            self.taken_there = self.taken_there.wrapping_add(more);
        }
    }

    /// Write parts on the slip, if the other side has taken everything. They have room there.
    #[inline]
    fn write_slip<'a>(&mut self, total: usize, parts: impl Iterator<Item = Part<'a>>) -> bool {
        let mut bytes = [0; SLIP_BYTES];
        let mut count = 0;
        for part in parts {
            let Some(into) = bytes.get_mut(count..total) else { return false };
            count += match part {
                Part::Bytes(part) => {
                    let Some(into) = into.get_mut(..part.len()) else { return false };
                    into.copy_from_slice(part);
                    part.len()
                }
                Part::Memory(stretch) => Region::drain(stretch, into),
            };
        }
        if count != total {
            return false;
        }
        let first = self.out as usize * WORDS_A_RING + Word::Slip as usize;
        for (place, bytes) in bytes.as_chunks::<8>().0.iter().enumerate() {
            self.region.word(first + place).store(u64::from_ne_bytes(*bytes), Relaxed);
        }
        self.slip = (self.written, total);
        #[cfg(test)]
        {
            self.slips += 1;
        }
        self.publish(total);
        true
    }

    /// Whether the other side waits and is to be woken: asked after writing, and says so once.
    #[inline]
    pub(in crate::device::shm) fn is_to_wake(&self) -> bool {
        fence(SeqCst);
        let waits = self.word(self.out, Word::ReaderWaits);
        waits.load(Relaxed) != 0 && waits.swap(0, SeqCst) != 0
    }
}
