//! Two rings of bytes in a region, one to write to and one to read from.
//!
//! A ring has one writer and one reader. The writer says how many bytes it ever wrote, the reader how many it ever took;
//! each believes of the other's number what can be, and takes anything else for the end of the connection.
//!
//! Whoever is about to wait says so and looks once more; whoever writes looks after writing, and wakes the other side. The
//! order of these two stores before these two loads is what matters, so that both are sequentially consistent.
//!
//! Not here: how somebody is woken.

use std::io;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU64, fence};

use super::region::{Area, Region, WORDS};
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
    /// The one that it reads from.
    input: Area,
    taken: u64,
}

impl Rings {
    /// Of the side that made the region, or of the other.
    pub(super) const fn new(region: Region, is_maker: bool) -> Self {
        let (out, input) = if is_maker { (Area::First, Area::Second) } else { (Area::Second, Area::First) };
        Self { region, out, written: 0, taken_there: 0, input, taken: 0 }
    }

    fn word(&self, area: Area, word: Word) -> &AtomicU64 {
        self.region.word(area as usize * WORDS_A_RING + word as usize)
    }

    /// Bytes to read.
    #[inline]
    pub(super) fn available(&self) -> io::Result<usize> {
        let there = self.word(self.input, Word::Written).load(Acquire).wrapping_sub(self.taken);
        usize::try_from(there).ok().filter(|&there| there <= self.region.area()).ok_or_else(broken)
    }

    /// Whether there is something to read, or nothing more can be.
    #[inline]
    pub(super) fn has_news(&self) -> bool {
        self.has_bytes() || self.is_ended()
    }

    /// Whether there is something to read.
    #[inline]
    pub(super) fn has_bytes(&self) -> bool {
        self.word(self.input, Word::Written).load(Relaxed) != self.taken
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
        let count = self.available()?.min(into.len());
        if let Some(into) = into.get_mut(..count) {
            self.region.take(self.input, self.taken, into);
        }
        self.release(count);
        Ok(count)
    }

    /// Read into stretches, and what is behind them into `rest`.
    pub(super) fn receive(
        &mut self,
        stretches: impl Iterator<Item = Stretch>,
        rest: &mut [u8],
    ) -> io::Result<usize> {
        let available = self.available()?;
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
        self.word(self.out, Word::Written).store(self.written, Release);
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
    /// The writer has ended. Its socket says so as well, but nobody looks there all the time.
    Ended = 2,
    /// Bytes that were ever taken.
    Taken = 16,
}

/// Words of one ring.
const WORDS_A_RING: usize = 32;
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
