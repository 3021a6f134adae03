//! Two rings of bytes in a region, one to write to and one to read from.
//!
//! A ring has one writer and one reader. The writer says how many bytes it ever wrote, the reader how many it ever took;
//! each believes of the other's number what can be, and takes anything else for the end of the connection.
//!
//! A short message for a reader that has taken everything stands on a slip (`slip`) beside the count, instead of in the ring,
//! whose bytes are left out: its reader finds all of it in the one cache line that it looks at anyway. What the reader has
//! taken the writer learns from the line that it reads itself, as a rule.
//!
//! Whoever is about to wait says so and looks once more; whoever writes looks after writing, and wakes the other side. The
//! order of these two stores before these two loads is what matters, so that both are sequentially consistent.
//!
//! Not here: how somebody is woken.

use std::io;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU64, fence};

use super::region::{Area, Region, WORDS};
use super::slip::{Beside, SLIP_BYTES, SLIP_WORDS};
use crate::device::host_memory::Stretch;
use crate::device::sockets::sys::Part;

/// See the module.
#[derive(Debug)]
pub(super) struct Rings {
    region: Region,
    /// The one that this side writes to.
    out: Area,
    written: u64,
    /// What the other side had taken when that was looked at last.
    taken_there: u64,
    /// Where the message on the slip began, and its bytes: 0 if it was taken.
    slip: (u64, usize),
    /// How many there were.
    #[cfg(test)]
    slips: u64,
    /// The one that it reads from.
    input: Area,
    taken: u64,
    /// What the other side had written when that was looked at last. Looking costs a cache line's way where it writes all
    /// the time, so that all that was there is taken first.
    seen: u64,
    /// Bytes of the message that comes next, if it stands on the slip; else 0.
    on_slip: usize,
}

impl Rings {
    /// Of the side that made the region, or of the other.
    pub(super) const fn new(region: Region, is_maker: bool) -> Self {
        let (out, input) = if is_maker { (Area::First, Area::Second) } else { (Area::Second, Area::First) };
        Self {
            region,
            out,
            written: 0,
            taken_there: 0,
            slip: (0, 0),
            #[cfg(test)]
            slips: 0,
            input,
            taken: 0,
            seen: 0,
            on_slip: 0,
        }
    }

    fn word(&self, area: Area, word: Word) -> &AtomicU64 {
        self.region.word(area as usize * WORDS_A_RING + word as usize)
    }

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

    /// Whether there is something to read, or nothing more can be.
    #[inline]
    pub(super) fn has_news(&self) -> bool {
        self.has_bytes() || self.is_ended()
    }

    /// Whether there is something to read.
    #[inline]
    pub(super) fn has_bytes(&self) -> bool {
        self.seen != self.taken || self.word(self.input, Word::Written).load(Relaxed) != self.taken
    }

    /// Whether the other side has ended: what it wrote before is there, and it reads nothing more.
    #[inline]
    pub(super) fn is_ended(&self) -> bool {
        self.word(self.input, Word::Ended).load(Acquire) != 0
    }

    /// This side has ended.
    pub(super) fn end(&self) {
        self.word(self.out, Word::Ended).store(1, Release);
    }

    /// Read, and say how many bytes; 0: there are none.
    #[inline]
    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
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
    pub(super) fn peek<const N: usize>(&mut self) -> io::Result<(usize, [u8; N])> {
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
    pub(super) fn take(&mut self, skipped: usize, length: usize, into: impl Iterator<Item = Stretch>) {
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
    pub(super) fn take_bytes(&mut self, skipped: usize, into: &mut [u8]) {
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
    pub(super) fn receive(
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
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.room(bytes.len())?.min(bytes.len());
        self.region.put(self.out, self.written, bytes.get(..count).unwrap_or_default());
        self.publish(count);
        Ok(count)
    }

    /// Write parts of so many bytes in all, if there is room for all of them and they are so long.
    #[inline]
    pub(super) fn write_whole<'a>(&mut self, total: usize, parts: impl Iterator<Item = Part<'a>>) -> bool {
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
    pub(super) fn write_parts<'a>(&mut self, parts: impl Iterator<Item = Part<'a>>) -> io::Result<usize> {
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
        self.word(self.out, Word::Beside).store(beside.to_bits(), Relaxed);
        self.word(self.out, Word::Written).store(self.written, Release);
    }

    /// The other side says beside its own count what it has taken: as far as that can be, it has.
    #[inline]
    fn heed_beside(&mut self) {
        let beside = Beside::from_bits(self.word(self.input, Word::Beside).load(Relaxed));
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
        self.written = self.written.wrapping_add(total as u64);
        let beside = Beside::new(self.taken, self.slip.0, total);
        self.word(self.out, Word::Beside).store(beside.to_bits(), Relaxed);
        self.word(self.out, Word::Written).store(self.written, Release);
        true
    }

    /// Whether the other side waits and is to be woken: asked after writing, and says so once.
    #[inline]
    pub(super) fn is_to_wake(&self) -> bool {
        fence(SeqCst);
        let waits = self.word(self.out, Word::ReaderWaits);
        waits.load(Relaxed) != 0 && waits.swap(0, SeqCst) != 0
    }

    /// The other side may read this memory of this one's by this key, unless another key has its place.
    pub(super) fn offer(&self, key: u32, address: u64, length: u64) {
        let place = self.offered(self.out, key);
        if key == 0 || self.region.word(place).load(Relaxed) != 0 {
            return;
        }
        self.region.word(place + 1).store(address, Relaxed);
        self.region.word(place + 2).store(length, Relaxed);
        self.region.word(place).store(key.into(), Release);
    }

    /// It may no more.
    pub(super) fn retract(&self, key: u32) {
        // Of a key that has no place, another's place stays as it is.
        let place = self.region.word(self.offered(self.out, key));
        let _ = place.compare_exchange(key.into(), 0, SeqCst, Relaxed);
    }

    /// Which memory of the other side's this one may read by this key: its address, and its bytes. What was read is good
    /// if it may still, after.
    pub(super) fn offer_of(&self, key: u32) -> Option<(u64, u64)> {
        fence(SeqCst);
        let place = self.offered(self.input, key);
        let is_offered = self.region.word(place).load(Acquire) == u64::from(key);
        let word = |at| self.region.word(place + at).load(Relaxed);
        is_offered.then(|| (word(1), word(2)))
    }

    /// Where the words of a key begin.
    fn offered(&self, by: Area, key: u32) -> usize {
        2 * WORDS_A_RING + WORDS_AN_OFFER * (by as usize * OFFERS + key as usize % OFFERS)
    }

    /// Bytes that are there to be read.
    #[cfg(test)]
    pub(super) fn available(&self) -> io::Result<usize> {
        let there = self.word(self.input, Word::Written).load(Acquire).wrapping_sub(self.taken);
        usize::try_from(there).map_err(io::Error::other)
    }

    /// How many messages stood on slips.
    #[cfg(test)]
    pub(super) fn slips(&self) -> u64 {
        self.slips
    }

    /// The other side has taken all that was written.
    #[cfg(test)]
    pub(super) fn is_all_taken(&self) -> bool {
        self.word(self.out, Word::Taken).load(Acquire) == self.written
    }

    /// This side is about to wait; false if there is something to read.
    pub(super) fn may_wait(&self) -> bool {
        self.word(self.input, Word::ReaderWaits).store(1, SeqCst);
        fence(SeqCst);
        let may_wait = !self.has_news();
        if !may_wait {
            self.word(self.input, Word::ReaderWaits).store(0, Relaxed);
        }
        may_wait
    }
}

/// The words of a ring. Those of the writer and of the reader lie in different pairs of cache lines.
#[derive(Clone, Copy, Debug)]
enum Word {
    /// Bytes that were ever written.
    Written = 0,
    /// The reader waits. Stands beside what the writer writes.
    ReaderWaits = 1,
    /// [`Beside`].
    Beside = 2,
    /// The first of those of the slip, which fill the line.
    Slip = 3,
    /// The writer has ended. Its socket says so as well, but nobody looks there all the time.
    Ended = 8,
    /// Bytes that were ever taken.
    Taken = 16,
}

/// Words of one ring.
const WORDS_A_RING: usize = 32;
const _: () = assert!(Word::Slip as usize + SLIP_WORDS == Word::Ended as usize, "a line of 64 bytes");
/// Keys that each side may offer at a time, each in its place.
const OFFERS: usize = 128;
/// The key, the address, the bytes.
const WORDS_AN_OFFER: usize = 3;
const _: () = assert!(2 * (WORDS_A_RING + WORDS_AN_OFFER * OFFERS) <= WORDS);

/// The other side does not keep to what a ring is.
#[cold]
pub(super) fn broken() -> io::Error {
    io::Error::from_raw_os_error(libc::EPROTO)
}
