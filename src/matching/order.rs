//! The order of at most sixteen places, in one word: a permutation of nibbles, the oldest lowest, the free ones
//! last.
//!
//! Not here: what is at a place.

/// A list of distinct places 0..16 in the order they were appended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Order {
    /// All sixteen places; the list is the lower part.
    nibbles: u64,
    /// Four times the length.
    end: u32,
}

impl Order {
    /// No places.
    pub(super) const EMPTY: Self = Self { nibbles: 0xfedc_ba98_7654_3210, end: 0 };

    /// How many places are in the list.
    #[inline]
    pub(super) const fn len(self) -> u32 {
        self.end / 4
    }

    /// Four times the length: positions are 0, 4, 8, … below it.
    #[inline]
    pub(super) const fn end(self) -> u32 {
        self.end
    }

    /// The places as nibbles, the oldest lowest.
    #[inline]
    pub(super) const fn places(self) -> u64 {
        self.nibbles
    }

    /// The place at a position, which is four times its rank.
    #[inline]
    pub(super) const fn place(self, position: u32) -> u32 {
        (self.nibbles.wrapping_shr(position) & 15) as u32
    }

    /// Append a free place, and say which. The list must not be full. Budget: 5 instructions.
    #[inline]
    pub(super) const fn append(&mut self) -> u32 {
        let place = self.place(self.end);
        self.end += 4;
        place
    }

    /// Take out what is at a position: it goes to the top, and what is above moves down; the last just stays where
    /// it is. `from` is the word of [`Self::places`] shifted down by that position. Budget: 11 instructions, 4 for
    /// the last.
    #[inline(always)]
    pub(super) const fn remove(&mut self, position: u32, from: u64) {
        let moved = (from ^ (from >> 4)).wrapping_shl(position);
        self.nibbles = (self.nibbles ^ moved) | (from << 60);
        self.end -= 4;
    }

    /// Take out a place that is in the list.
    #[inline]
    pub(super) const fn remove_place(&mut self, place: u32) {
        let position = self.position(place);
        self.remove(position, self.nibbles.wrapping_shr(position));
    }

    /// The position of a place: the nibble equal to it, found without a loop.
    #[inline]
    const fn position(self, place: u32) -> u32 {
        let differs = self.nibbles ^ (ONES * place as u64);
        let zero = differs.wrapping_sub(ONES) & !differs & (ONES << 3);
        zero.trailing_zeros() & !3
    }
}

/// A one in each nibble.
const ONES: u64 = 0x1111_1111_1111_1111;
