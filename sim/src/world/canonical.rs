//! The state of a world by what can still happen, in 128 bits: for counting explored states.
//!
//! Everything goes by the numbers of receives and messages: the engine's and the device's own names, which depend on
//! the past, are replaced.

use std::hash::{Hash, Hasher};

use tagmatch::device::soft::{Names, NoMemory, SoftDevice};
use tagmatch::ids::ReceiveId;

use super::book::Decision;
use super::{World, device_id};

/// A state's number. Equal states have equal ones; unequal states have, but for one chance in 2^64 or so among a
/// thousand million, unequal ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Fingerprint(pub u128);

impl World<SoftDevice<NoMemory>> {
    /// See [`Fingerprint`]. `words` is scratch space.
    pub fn fingerprint(&self, words: &mut Vec<u64>) -> Fingerprint {
        let mut hasher = Wide::default();
        words.clear();
        let number = |id: ReceiveId| {
            let at = self.book.progress.iter().position(|progress| progress.id == Some(id));
            at.map_or(u64::MAX, |at| at as u64)
        };
        self.engine.canonical(words, &number);
        for &word in words.iter() {
            hasher.write_u64(word);
        }
        for (at, device) in self.devices.iter().enumerate() {
            let entry = |handle| self.book.receive_of(at, handle).map_or(u64::MAX, u64::from);
            let transfer = |id| self.engine.context_of_transfer(id).unwrap_or(u64::MAX);
            device.canonical_named(&Names { entry: &entry, transfer: &transfer }, &mut hasher);
            (self.book.is_failed(at), self.book.is_over(at), self.book.is_due(at)).hash(&mut hasher);
            // Entry numbers do not matter, but the list names entries that the engine has let go of.
            hasher.write_u64(self.engine.entries(device_id(at)).0.into());
        }
        self.points.hash(&mut hasher);
        self.intervals.hash(&mut hasher);
        self.book_of(&mut hasher);
        Fingerprint((u128::from(hasher.high) << 64) | u128::from(hasher.low))
    }

    fn book_of(&self, hasher: &mut Wide) {
        let book = &self.book;
        for progress in &book.progress {
            let flags =
                [progress.posted, progress.id.is_some(), progress.cancelling, progress.ended, progress.full];
            let bits = flags.iter().fold(0, |bits, flag| bits << 1 | u64::from(*flag));
            hasher.write_u64(progress.room << 8 | bits);
        }
        for (decision, delivered) in book.decisions.iter().zip(&book.delivered) {
            if let Decision::Receive(receive) = *decision
                && (book.progress[receive as usize].ended || *delivered)
            {
                // What became of it does not matter any more.
                hasher.write_u32(u32::MAX);
            } else {
                decision.hash(hasher);
            }
        }
        book.undecided.hash(hasher);
        let mut by_device = book.by_device.clone();
        by_device.sort_unstable();
        by_device.hash(hasher);
        book.done.hash(hasher);
        for claim in &book.claims {
            claim.map(|(_, message)| message).hash(hasher);
        }
        book.lost.hash(hasher);
        if self.scope.is_moving() {
            (&book.told_lost, &book.moved, &book.accepted).hash(hasher);
        }
    }
}

/// Two words that are mixed apart from each other.
struct Wide {
    low: u64,
    high: u64,
}

impl Default for Wide {
    fn default() -> Self {
        Self { low: 0x243f_6a88_85a3_08d3, high: 0x1319_8a2e_0370_7344 }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "half of the word is meant")]
fn mix(state: u64, word: u64, odd: u64) -> u64 {
    let product = u128::from(state ^ word) * u128::from(odd);
    let (low, high) = (product as u64, (product >> 64) as u64);
    low ^ high.rotate_left(23) ^ state.rotate_left(17)
}

impl Hasher for Wide {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word) ^ ((chunk.len() as u64) << 56));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.low = mix(self.low, word, 0x9e37_79b9_7f4a_7c15);
        self.high = mix(self.high, word.rotate_left(32), 0xd6e8_feb8_6659_fd93);
    }

    fn write_u8(&mut self, word: u8) {
        self.write_u64(word.into());
    }

    fn write_u16(&mut self, word: u16) {
        self.write_u64(word.into());
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn finish(&self) -> u64 {
        self.low
    }
}
