//! Reading from a ring: what is there is looked at when all that was seen is taken.

use std::io;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::super::region::Region;
use super::super::slip::{Beside, SLIP_BYTES};
use super::{Rings, WORDS_A_RING, Word, broken};
use crate::device::host_memory::Stretch;

impl Rings {
    /// Look what there is to read: so many bytes.
    #[inline]
    fn look(&mut self) -> io::Result<usize> {
        let written = self.word(self.input, Word::Written).load(Acquire);
        let there = usize::try_from(written.wrapping_sub(self.taken)).ok();
        let there = there.filter(|&there| there <= self.region.area()).ok_or_else(broken)?;
        // The writer has used the slip if everything had been taken.
        if self.seen == self.taken && there > 0 {
            let beside = Beside::from_bits(self.word(self.input, Word::Beside).load(Relaxed));
            let is_next = beside.is_at(self.taken) && beside.length <= there;
            self.on_slip = if is_next { beside.length } else { 0 };
        }
        self.seen = written;
        Ok(there)
    }

    /// The same for those who read just bytes.
    #[inline]
    fn look_for_bytes(&mut self) -> io::Result<usize> {
        let there = self.look()?;
        if self.on_slip > 0 {
            self.put_slip();
            self.on_slip = 0;
        }
        Ok(there)
    }

    /// What stands on the slip goes to where it would stand in the ring.
    #[cold]
    fn put_slip(&self) {
        self.region.put(self.input, self.taken, self.slip().get(..self.on_slip).unwrap_or_default());
    }

    /// Read, and say how many bytes; 0: there are none.
    #[inline]
    pub(in crate::device::shm) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.look_for_bytes()?.min(into.len());
        if let Some(into) = into.get_mut(..count) {
            self.region.take(self.input, self.taken, into);
        }
        self.release(count);
        Ok(count)
    }

    /// How many bytes are there, and the first of them, which stay; 0 where there are fewer. Of what stands on a slip no more
    /// is there than that.
    #[inline]
    pub(in crate::device::shm) fn peek<const N: usize>(&mut self) -> io::Result<(usize, [u8; N])> {
        const { assert!(N <= SLIP_BYTES, "a slip has no such beginning") };
        let mut bytes = [0; N];
        let available = if self.seen == self.taken { self.look()? } else { self.unread() };
        if self.on_slip > 0 {
            bytes.copy_from_slice(self.slip().first_chunk::<N>().unwrap_or(&[0; N]));
            return Ok((self.on_slip, bytes));
        }
        if available >= N {
            self.region.take(self.input, self.taken, &mut bytes);
        } else if let Some(bytes) = bytes.get_mut(..available) {
            self.region.take(self.input, self.taken, bytes);
        }
        Ok((available, bytes))
    }

    /// Of what was seen, what was not taken: no more than a ring has.
    #[inline]
    fn unread(&self) -> usize {
        usize::try_from(self.seen.wrapping_sub(self.taken)).unwrap_or(0)
    }

    #[inline]
    fn slip(&self) -> [u8; SLIP_BYTES] {
        let mut bytes = [0; SLIP_BYTES];
        let first = self.input as usize * WORDS_A_RING + Word::Slip as usize;
        for (place, bytes) in bytes.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            *bytes = self.region.word(first + place).load(Relaxed).to_ne_bytes();
        }
        bytes
    }

    /// Take `skipped + length` bytes, which are there: `length` of them into stretches, as many as these hold.
    #[inline]
    pub(in crate::device::shm) fn take(
        &mut self,
        skipped: usize,
        length: usize,
        into: impl Iterator<Item = Stretch>,
    ) {
        let mut count = 0;
        if self.on_slip > 0 {
            let slip = self.slip();
            for stretch in into {
                let rest = slip.get(skipped + count..skipped + length).unwrap_or_default();
                count += Region::fill(stretch, rest);
            }
            return self.release(skipped + length);
        }
        for stretch in into {
            let part = stretch.length().min(length - count);
            self.region.take_stretch(
                self.input,
                self.taken.wrapping_add((skipped + count) as u64),
                stretch,
                part,
            );
            count += part;
        }
        self.release(skipped + length);
    }

    /// The same into bytes.
    #[inline]
    pub(in crate::device::shm) fn take_bytes(&mut self, skipped: usize, into: &mut [u8]) {
        if self.on_slip > 0 {
            let slip = self.slip();
            let on_slip = slip.get(skipped..self.on_slip).unwrap_or_default();
            into.iter_mut().zip(on_slip).for_each(|(into, byte)| *into = *byte);
        } else {
            self.region.take(self.input, self.taken.wrapping_add(skipped as u64), into);
        }
        self.release(skipped + into.len());
    }

    /// Read into stretches, and what is behind them into `rest`.
    pub(in crate::device::shm) fn receive(
        &mut self,
        stretches: impl Iterator<Item = Stretch>,
        rest: &mut [u8],
    ) -> io::Result<usize> {
        let available = self.look_for_bytes()?;
        let mut count = 0;
        for stretch in stretches {
            let length = stretch.length().min(available - count);
            self.region.take_stretch(self.input, self.taken + count as u64, stretch, length);
            count += length;
            if length < stretch.length() {
                self.release(count);
                return Ok(count);
            }
        }
        let length = rest.len().min(available - count);
        if let Some(rest) = rest.get_mut(..length) {
            self.region.take(self.input, self.taken + count as u64, rest);
        }
        self.release(count + length);
        Ok(count + length)
    }

    /// So many bytes were read.
    #[inline]
    fn release(&mut self, count: usize) {
        if self.on_slip > count {
            self.put_slip();
        }
        self.on_slip = 0;
        self.taken = self.taken.wrapping_add(count as u64);
        self.word(self.input, Word::Taken).store(self.taken, Release);
    }
}
