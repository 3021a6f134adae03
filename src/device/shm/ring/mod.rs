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

mod offers;
mod reading;
mod writing;

use std::io;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use super::region::{Area, Region, WORDS};
use super::slip::SLIP_WORDS;
use super::sync::{AtomicU64, fence};

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
