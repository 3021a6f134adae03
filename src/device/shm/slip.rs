//! What stands beside the count of bytes in its cache line: how much this side has taken of the other ring, and a message
//! so short that it has room there. Where two processes answer each other with such messages, one line goes from one to the
//! other for each of them, and no other.
//!
//! Not here: when a slip may be written (`ring`).

/// What one word says: see the module.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Beside {
    /// The lower half of how many bytes this side has taken of the other ring.
    pub(super) taken: u32,
    /// Bytes of the message on the slip; 0: there is none.
    pub(super) length: usize,
    /// Where in the ring it would begin: as many bits as tell places apart while it counts.
    at: u64,
}

impl Beside {
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the lower half is meant")]
    pub(super) const fn new(taken: u64, at: u64, length: usize) -> Self {
        Self { taken: taken as u32, length, at: at & AT_MASK }
    }

    /// Whether the message on the slip is the one that begins there.
    #[inline]
    pub(super) const fn is_at(&self, position: u64) -> bool {
        self.length > 0 && self.at == position & AT_MASK
    }

    #[inline]
    pub(super) const fn to_bits(self) -> u64 {
        (self.length as u64) << LENGTH_SHIFT | self.at << AT_SHIFT | self.taken as u64
    }

    /// The other side may have written anything: a message is never longer than a slip.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "parts of a word are meant")]
    pub(super) const fn from_bits(bits: u64) -> Self {
        let length = (bits >> LENGTH_SHIFT) as usize;
        let length = if length > SLIP_BYTES { 0 } else { length };
        Self { taken: bits as u32, length, at: bits >> AT_SHIFT & AT_MASK }
    }
}

/// The words of a slip.
pub(super) const SLIP_WORDS: usize = 5;
/// Bytes of a message that has room there.
pub(super) const SLIP_BYTES: usize = 8 * SLIP_WORDS;
/// Bits of a place: rings are at most so long that a slip is known to be taken before its place comes again.
const AT_BITS: u32 = 26;
const AT_MASK: u64 = (1 << AT_BITS) - 1;
const AT_SHIFT: u32 = 32;
const LENGTH_SHIFT: u32 = AT_SHIFT + AT_BITS;
const _: () = assert!(SLIP_BYTES < 1 << (u64::BITS - LENGTH_SHIFT));
const _: () = assert!(*super::stream::RING_BYTES.end() <= 1 << AT_BITS);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_says_what_was_put_into_it_and_no_length_that_cannot_be() {
        for (taken, at, length) in
            [(0, 0, 0), (5, 7, 1), (u64::MAX, u64::MAX, SLIP_BYTES), (1 << 32, 1 << 26, 36)]
        {
            let beside = Beside::new(taken, at, length);
            assert_eq!(Beside::from_bits(beside.to_bits()), beside);
            assert_eq!((beside.is_at(at), beside.is_at(at.wrapping_add(1))), (length > 0, false));
        }
        assert_eq!(Beside::from_bits(u64::MAX).length, 0);
        assert_eq!(Beside::from_bits((SLIP_BYTES as u64 + 1) << LENGTH_SHIFT).length, 0);
    }
}
