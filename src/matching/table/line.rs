//! One line of a table.
//!
//! Not here: which line a key belongs in.

/// Seven cells and a link to overflow lines, on one cache line.
///
/// A fragment is 24 bits that say which line it belongs in, below 8 bits of which 7 are its cell's byte of the
/// control word: zero if the cell is free, else with the top bit set. So one subtraction finds the cells to look at.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Line {
    /// One byte a cell; the eighth stays zero.
    pub(super) control: u64,
    /// One slot a cell; the eighth is the first overflow line plus one.
    slots: [u32; 8],
    /// The line bits of each cell's fragment, for splits only.
    homes: [[u8; 3]; 8],
}

impl Line {
    pub(super) const EMPTY: Self = Self { control: 0, slots: [0; 8], homes: [[0; 3]; 8] };

    /// The top bit of each occupied cell's byte.
    #[inline]
    pub(super) const fn occupied(&self) -> u64 {
        self.control & TOPS
    }

    #[inline]
    pub(super) const fn link(&self) -> u32 {
        self.slots[CELLS]
    }

    #[inline]
    pub(super) const fn set_link(&mut self, link: u32) {
        self.slots[CELLS] = link;
    }

    /// The fragment, but for the bit that marks its cell as occupied, which is set.
    #[inline]
    pub(super) const fn fragment(&self, cell: u32) -> u32 {
        let [a, b, c] = self.homes[(cell & 7) as usize];
        u32::from_le_bytes([a, b, c, self.control.to_le_bytes()[(cell & 7) as usize]])
    }

    #[inline]
    pub(super) const fn slot(&self, cell: u32) -> u32 {
        self.slots[(cell & 7) as usize]
    }

    #[inline]
    pub(super) const fn set_slot(&mut self, cell: u32, slot: u32) {
        self.slots[(cell & 7) as usize] = slot;
    }

    #[inline]
    pub(super) const fn clear_cell(&mut self, cell: u32) {
        self.control &= !(0xff << (8 * (cell & 7)));
    }

    /// Whether there was a free cell.
    #[inline]
    pub(super) const fn push(&mut self, fragment: u32, slot: u32) -> bool {
        let free = !self.control & (TOPS >> 8);
        if free == 0 {
            return false;
        }
        let top = free.trailing_zeros();
        let cell = (top / 8) as usize;
        let [a, b, c, tag] = (fragment | OCCUPIED).to_le_bytes();
        self.homes[cell] = [a, b, c];
        self.slots[cell] = slot;
        self.control |= (tag as u64) << (top & !7);
        true
    }

    /// The top bits of cells with that fragment's byte, and rarely of one above such a cell without it. Never of
    /// a free cell. Budget: 8 instructions.
    #[inline]
    pub(super) const fn cells_with_fragment(&self, fragment: u32) -> u64 {
        let differs = self.control ^ (((fragment | OCCUPIED) >> 24) as u64 * ONES);
        differs.wrapping_sub(ONES) & !differs & TOPS
    }
}

/// The cell of the lowest top bit in a word of them.
#[inline]
pub(super) const fn cell_of(tops: u64) -> u32 {
    tops.trailing_zeros() / 8
}

/// Cells of a line.
const CELLS: usize = 7;
const ONES: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = ONES << 7;
pub(super) const OCCUPIED: u32 = 1 << 31;
