//! The order of at most sixteen places, in one word: a list of nibbles, the oldest lowest.
//!
//! Not here: what is at a place.

/// A list of distinct places 0..16 in the order they were appended.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Order {
    nibbles: u64,
    /// Four times the length: where the next nibble goes.
    shift: u32,
}

impl Order {
    /// No places.
    pub(super) const EMPTY: Self = Self { nibbles: 0, shift: 0 };

    /// How many places are in the list.
    #[inline]
    pub(super) const fn len(self) -> u32 {
        self.shift / 4
    }

    /// Four times the length: positions are 0, 4, 8, … below it.
    #[inline]
    pub(super) const fn end(self) -> u32 {
        self.shift
    }

    /// The place at a position, which is four times its rank.
    #[inline]
    pub(super) const fn place(self, position: u32) -> u32 {
        (self.nibbles.wrapping_shr(position) & 15) as u32
    }

    /// Append a place. The list must not be full. Budget: 4 instructions.
    #[inline]
    pub(super) const fn append(&mut self, place: u32) {
        self.nibbles |= (place as u64).wrapping_shl(self.shift);
        self.shift += 4;
    }

    /// Take out what is at a position. Budget: 7 instructions.
    #[inline]
    pub(super) const fn remove(&mut self, position: u32) {
        let below = self.nibbles & (1u64.wrapping_shl(position)).wrapping_sub(1);
        let above = (self.nibbles.wrapping_shr(position) >> 4).wrapping_shl(position);
        self.nibbles = below | above;
        self.shift -= 4;
    }

    /// The position of a place that is in the list: the lowest nibble equal to it, found without a loop.
    #[inline]
    pub(super) const fn position(self, place: u32) -> u32 {
        let differs = self.nibbles ^ (ONES * place as u64);
        let zero = differs.wrapping_sub(ONES) & !differs & (ONES << 3);
        zero.trailing_zeros() & !3
    }
}

/// A one in each nibble.
const ONES: u64 = 0x1111_1111_1111_1111;
