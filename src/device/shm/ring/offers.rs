//! Memory that each side lets the other read by itself: a table of keys, addresses and lengths beside the rings.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use super::super::region::Area;
use super::super::sync::fence;
use super::{OFFERS, Rings, WORDS_A_RING, WORDS_AN_OFFER};

impl Rings {
    /// The other side may read this memory of this one's by this key, unless another key has its place.
    pub(in crate::device::shm) fn offer(&self, key: u32, address: u64, length: u64) {
        let place = self.offered(self.out, key);
        if key == 0 || self.region.word(place).load(Relaxed) != 0 {
            return;
        }
        self.region.word(place + 1).store(address, Relaxed);
        self.region.word(place + 2).store(length, Relaxed);
        self.region.word(place).store(key.into(), Release);
    }

    /// It may no more.
    pub(in crate::device::shm) fn retract(&self, key: u32) {
        // Of a key that has no place, another's place stays as it is.
        let place = self.region.word(self.offered(self.out, key));
        let _ = place.compare_exchange(key.into(), 0, SeqCst, Relaxed);
        // Whoever sees anything that is written from now on, be it in that memory or the words of another key in this place,
        // sees too that this one was taken back: `offer_of` has the fence that goes with this one.
        fence(Release);
    }

    /// Which memory of the other side's this one may read by this key: its address, and its bytes. What was read is good
    /// if it may still, after.
    pub(in crate::device::shm) fn offer_of(&self, key: u32) -> Option<(u64, u64)> {
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
}
