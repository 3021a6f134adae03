//! A hash table from key to the first entry of that key, which grows one line at a time.
//!
//! Linear hashing over lines of seven cells, one cache line each: a cell is a fragment of the hash and a slot,
//! so that a search that finds nothing seldom touches an entry, and a split needs no entry at all. Lines
//! that are full go on in overflow lines. A sweep that doubles the table splits one line per new key; it starts
//! at three or four keys a line and so ends before five.
//!
//! Not here: keys. The caller compares them; entries of equal keys form a FIFO of which only the first is here.

mod filling;
mod line;

pub(super) use self::filling::{Filling, Note};
use self::line::{Line, OCCUPIED, cell_of};

use super::chunks::Chunks;

/// See the head of this file.
#[derive(Clone)]
pub(super) struct Table {
    lines: Chunks<Line, LINES>,
    /// Lines in use, `half <= used < 2 * half`.
    used: u32,
    /// The power of two by which lines are addressed that the sweep has not reached.
    half: u32,
    /// What lines it has reached are addressed by: `2 * half - 1`.
    wide: u32,
    keys: u32,
    /// A new key beyond this many splits a line. Zero during a sweep.
    limit: u32,
    overflow: Chunks<Line, OVERFLOW_LINES>,
    overflow_used: u32,
    /// First free overflow line plus one, linked by [`Line::link`].
    overflow_free: u32,
}

/// Where a key was found: the line (overflow lines from [`OVERFLOW`] on), its cell, and the slot in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    line: u32,
    cell: u32,
    pub(super) slot: u32,
}

/// A key may be in an overflow line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Elsewhere;

/// An occupied cell of a key's own line.
pub(super) struct Cell<'a> {
    line: &'a mut Line,
    /// The top bit of its byte of the control word.
    top: u64,
    keys: &'a mut u32,
    pub(super) slot: u32,
}

/// The cells of a key's own line that may be the key's, of which the first is looked at.
pub(super) struct Candidates<'a> {
    line: &'a mut Line,
    /// The top bits of their bytes of the control word.
    tops: u64,
    keys: &'a mut u32,
}

impl Candidates<'_> {
    /// The slot in the first of them. None: none is left.
    #[inline(always)]
    pub(super) fn slot(&self) -> Option<u32> {
        (self.tops != 0).then(|| self.line.slot(cell_of(self.tops)))
    }

    /// There is none: an error if the key may be in an overflow line.
    #[inline(always)]
    pub(super) fn end<T>(&self) -> Result<Option<T>, Elsewhere> {
        if self.line.link() == 0 { Ok(None) } else { Err(Elsewhere) }
    }

    /// The first of them is the key's, which has no entries left. Budget: 8 instructions.
    #[inline(always)]
    pub(super) fn clear(self) {
        self.line.control &= (!0xff_u64).rotate_left(self.tops.trailing_zeros() & !7);
        *self.keys -= 1;
    }
}

impl Cell<'_> {
    /// The key has no entries left. Budget: 6 instructions.
    #[inline(always)]
    pub(super) fn clear(self) {
        self.line.control &= (!0xff_u64).rotate_left(self.top.trailing_zeros() & !7);
        *self.keys -= 1;
    }
}

impl Place {
    /// Nowhere.
    pub(super) const NONE: Self = Self { line: 0, cell: 0, slot: 0 };
}

impl Table {
    /// An empty table. Allocates nothing before the first key.
    pub(super) const fn new() -> Self {
        Self {
            lines: Chunks::new(),
            used: LINES_MIN,
            half: LINES_MIN,
            wide: 2 * LINES_MIN - 1,
            keys: 0,
            limit: keys_max(LINES_MIN),
            overflow: Chunks::new(),
            overflow_used: 0,
            overflow_free: 0,
        }
    }

    /// How many keys are in it.
    #[inline(always)]
    pub(super) const fn keys(&self) -> u32 {
        self.keys
    }

    /// Forget every key, keep the memory. Constant time: lines beyond the first few are cleared when a sweep
    /// reaches them again.
    pub(super) fn clear(&mut self) {
        if let Some(lines) = self.lines.first_chunk_mut() {
            lines[..LINES_MIN as usize].fill(Line::EMPTY);
        }
        (self.used, self.half, self.keys, self.limit) = (LINES_MIN, LINES_MIN, 0, keys_max(LINES_MIN));
        self.wide = 2 * LINES_MIN - 1;
        (self.overflow_used, self.overflow_free) = (0, 0);
    }

    pub(super) const fn bytes(&self) -> usize {
        self.lines.bytes() + self.overflow.bytes()
    }

    /// The key's place. `is_key` compares the key of an entry. Budget: 30 instructions and one cache line, plus
    /// `is_key`.
    #[inline(always)]
    pub(super) fn find(&self, fragment: u32, mut is_key: impl FnMut(u32) -> bool) -> Option<Place> {
        self.find_map(fragment, |slot| is_key(slot).then_some(())).map(|(place, ())| place)
    }

    /// The same, with what `key` made of the entry.
    #[inline(always)]
    pub(super) fn find_map<K>(
        &self,
        fragment: u32,
        mut key: impl FnMut(u32) -> Option<K>,
    ) -> Option<(Place, K)> {
        let number = self.line_of(fragment);
        let line = self.lines.get(number as usize)?;
        let mut cells = line.cells_with_fragment(fragment);
        while cells != 0 {
            let cell = cell_of(cells);
            let slot = line.slot(cell);
            if let Some(key) = key(slot) {
                return Some((Place { line: number, cell, slot }, key));
            }
            cells &= cells - 1;
        }
        if line.link() == 0 { None } else { self.find_overflow(line.link(), fragment, key) }
    }

    /// The place of [`Self::cell`].
    #[inline(always)]
    pub(super) fn look(&self, fragment: u32) -> Result<Option<Place>, Elsewhere> {
        let number = self.line_of(fragment);
        let Some(line) = self.lines.get(number as usize) else { return Ok(None) };
        let cells = line.cells_with_fragment(fragment);
        if cells == 0 {
            return if line.link() == 0 { Ok(None) } else { Err(Elsewhere) };
        }
        if cells & (cells - 1) != 0 {
            return Err(Elsewhere);
        }
        let cell = cell_of(cells);
        Ok(Some(Place { line: number, cell, slot: line.slot(cell) }))
    }

    /// Take out a key whose place [`Self::look`] found. Budget: 10 instructions.
    #[inline(always)]
    pub(super) fn remove_looked(&mut self, place: Place) {
        self.lines.at_mut(place.line as usize).clear_cell(place.cell);
        self.keys -= 1;
    }

    /// The only cell of a key's own line that may be the key's, if any; an error if several may, or other lines must be
    /// looked into. A cell that is not the key's says nothing of those. Budget: 25 instructions and one cache line.
    #[inline(always)]
    pub(super) fn cell(&mut self, fragment: u32) -> Result<Option<Cell<'_>>, Elsewhere> {
        let number = self.line_of(fragment);
        let Some(line) = self.lines.get_mut(number as usize) else { return Ok(None) };
        let cells = line.cells_with_fragment(fragment);
        if cells == 0 {
            return if line.link() == 0 { Ok(None) } else { Err(Elsewhere) };
        }
        if cells & (cells - 1) != 0 {
            return Err(Elsewhere);
        }
        let slot = line.slot(cell_of(cells));
        Ok(Some(Cell { line, top: cells, keys: &mut self.keys, slot }))
    }

    /// The cells of a key's own line that may be the key's. None: the table has nothing. Budget: 25 instructions and one
    /// cache line.
    #[inline(always)]
    pub(super) fn candidates(&mut self, fragment: u32) -> Option<Candidates<'_>> {
        let number = self.line_of(fragment);
        let line = self.lines.get_mut(number as usize)?;
        let tops = line.cells_with_fragment(fragment);
        Some(Candidates { line, tops, keys: &mut self.keys })
    }

    /// Add a key if no cell of its own line can be the same key's, one is free, and no line is to be split: whether it was
    /// so. Makes no call. Budget: 40 instructions and one cache line.
    #[inline(always)]
    pub(super) fn try_insert(&mut self, fragment: u32, slot: u32) -> bool {
        let number = self.line_of(fragment);
        let Some(line) = self.lines.get_mut(number as usize) else { return false };
        let is_full = line.link() != 0 || self.keys >= self.limit;
        if is_full || line.cells_with_fragment(fragment) != 0 || !line.push(fragment, slot) {
            return false;
        }
        self.keys += 1;
        true
    }

    /// The same, and one split while a sweep goes on.
    #[inline(always)]
    pub(super) fn insert_quick(&mut self, fragment: u32, slot: u32) -> bool {
        let number = self.line_of(fragment);
        let Some(line) = self.lines.get_mut(number as usize) else { return false };
        if line.cells_with_fragment(fragment) != 0 || line.link() != 0 || !line.push(fragment, slot) {
            return false;
        }
        self.keys += 1;
        if self.keys > self.limit {
            self.split();
        }
        true
    }

    /// The first entry of the key, or else `slot` is that now. Budget: 40 instructions and one cache line, plus
    /// `is_key`; and one split while a sweep goes on.
    #[inline]
    pub(super) fn find_or_insert(
        &mut self,
        fragment: u32,
        slot: u32,
        mut is_key: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        let number = self.line_of(fragment);
        let Some(line) = self.lines.get_mut(number as usize) else {
            self.insert(fragment, slot);
            return None;
        };
        let mut cells = line.cells_with_fragment(fragment);
        while cells != 0 {
            let other = line.slot(cell_of(cells));
            if is_key(other) {
                return Some(other);
            }
            cells &= cells - 1;
        }
        if line.link() != 0 || !line.push(fragment, slot) {
            return self.find_or_insert_overflow(fragment, slot, is_key);
        }
        self.keys += 1;
        if self.keys > self.limit {
            self.split();
        }
        None
    }

    #[cold]
    #[inline(never)]
    fn find_or_insert_overflow(
        &mut self,
        fragment: u32,
        slot: u32,
        mut is_key: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        let link = self.lines.at(self.line_of(fragment) as usize).link();
        let found = self.find_overflow(link, fragment, |other| is_key(other).then_some(()));
        if found.is_none() {
            self.insert(fragment, slot);
        }
        found.map(|(place, ())| place.slot)
    }

    #[cold]
    #[inline(never)]
    fn find_overflow<K>(
        &self,
        mut link: u32,
        fragment: u32,
        mut key: impl FnMut(u32) -> Option<K>,
    ) -> Option<(Place, K)> {
        while link != 0 {
            let line = self.overflow.at(link as usize - 1);
            let mut cells = line.cells_with_fragment(fragment);
            while cells != 0 {
                let cell = cell_of(cells);
                let slot = line.slot(cell);
                if let Some(key) = key(slot) {
                    return Some((Place { line: OVERFLOW | (link - 1), cell, slot }, key));
                }
                cells &= cells - 1;
            }
            link = line.link();
        }
        None
    }

    /// The place of an entry that is in the table.
    #[inline]
    pub(super) fn place_of(&self, fragment: u32, slot: u32) -> Option<Place> {
        self.find(fragment, |other| other == slot)
    }

    /// Add a key that is not in the table.
    pub(super) fn insert(&mut self, fragment: u32, slot: u32) {
        let number = self.line_of(fragment) as usize;
        if number >= self.lines.len() {
            self.lines.reach(number, Line::EMPTY);
        }
        let line = self.lines.at_mut(number);
        if !line.push(fragment, slot) {
            self.push_overflow(number, fragment, slot);
        }
        self.keys += 1;
        if self.keys > self.limit {
            self.split();
        }
    }

    /// Another entry is now the first of the key.
    #[inline]
    pub(super) fn replace(&mut self, place: Place, slot: u32) {
        self.line_mut(place).set_slot(place.cell, slot);
    }

    /// The key has no entries left. Budget: 10 instructions.
    #[inline]
    pub(super) fn remove(&mut self, fragment: u32, place: Place) {
        let line = self.line_mut(place);
        line.clear_cell(place.cell);
        let emptied = line.occupied() == 0;
        self.keys -= 1;
        if place.line & OVERFLOW != 0 && emptied {
            self.drop_overflow(fragment, place.line & !OVERFLOW);
        }
    }

    /// Budget: 5 instructions.
    #[inline]
    const fn line_of(&self, fragment: u32) -> u32 {
        let wide = fragment & self.wide;
        if wide < self.used { wide } else { wide & (self.wide >> 1) }
    }

    #[inline]
    fn line_mut(&mut self, place: Place) -> &mut Line {
        if place.line & OVERFLOW == 0 {
            self.lines.at_mut(place.line as usize)
        } else {
            self.overflow.at_mut((place.line & !OVERFLOW) as usize)
        }
    }

    /// One step of the sweep: the first line not yet split shares its keys with a new one.
    #[cold]
    #[inline(never)]
    fn split(&mut self) {
        if self.used >= LINES_MAX {
            self.limit = u32::MAX;
            return;
        }
        let (from, to, bit) = (self.used - self.half, self.used, self.half);
        self.lines.reach(to as usize, Line::EMPTY);
        *self.lines.at_mut(to as usize) = Line::EMPTY;
        let mut line = std::mem::replace(self.lines.at_mut(from as usize), Line::EMPTY);
        loop {
            let mut cells = line.occupied();
            while cells != 0 {
                let cell = cell_of(cells);
                cells &= cells - 1;
                let (fragment, slot) = (line.fragment(cell), line.slot(cell));
                let number = if fragment & bit == 0 { from } else { to } as usize;
                if !self.lines.at_mut(number).push(fragment, slot) {
                    self.push_overflow(number, fragment, slot);
                }
            }
            if line.link() == 0 {
                break;
            }
            let number = line.link() - 1;
            line = *self.overflow.at(number as usize);
            self.free_overflow(number);
        }
        self.used += 1;
        if self.used == 2 * self.half {
            self.half = self.used;
            self.wide = 2 * self.half - 1;
            self.limit = keys_max(self.used);
        } else {
            self.limit = 0;
        }
    }

    #[cold]
    #[inline(never)]
    fn push_overflow(&mut self, number: usize, fragment: u32, slot: u32) {
        let first = self.lines.at(number).link();
        let mut link = first;
        while link != 0 {
            let line = self.overflow.at_mut(link as usize - 1);
            if line.push(fragment, slot) {
                return;
            }
            link = line.link();
        }
        let fresh = if self.overflow_free == 0 {
            self.overflow.reach(self.overflow_used as usize, Line::EMPTY);
            self.overflow_used += 1;
            self.overflow_used
        } else {
            let free = self.overflow_free;
            self.overflow_free = self.overflow.at(free as usize - 1).link();
            free
        };
        let line = self.overflow.at_mut(fresh as usize - 1);
        *line = Line::EMPTY;
        line.push(fragment, slot);
        line.set_link(first);
        self.lines.at_mut(number).set_link(fresh);
    }

    fn free_overflow(&mut self, number: u32) {
        let free = self.overflow_free;
        self.overflow.at_mut(number as usize).set_link(free);
        self.overflow_free = number + 1;
    }

    /// Unlink an overflow line that became empty.
    #[cold]
    #[inline(never)]
    fn drop_overflow(&mut self, fragment: u32, number: u32) {
        let after = self.overflow.at(number as usize).link();
        let home = self.line_of(fragment) as usize;
        let mut link = self.lines.at(home).link();
        if link == number + 1 {
            self.lines.at_mut(home).set_link(after);
        } else {
            while link != 0 {
                let line = self.overflow.at_mut(link as usize - 1);
                link = line.link();
                if link == number + 1 {
                    line.set_link(after);
                    break;
                }
            }
        }
        self.free_overflow(number);
    }

    /// Every cell as (fragment, slot), with the invariants asserted: each in the line it belongs to.
    #[cfg(test)]
    pub(super) fn check(&self) -> Vec<(u32, u32)> {
        let mut all = Vec::new();
        let present = (self.used as usize).min(self.lines.len());
        for number in 0..present {
            let mut line = self.lines.at(number);
            loop {
                for cell in 0..7u32 {
                    if line.occupied() & (0x80 << (8 * cell)) != 0 {
                        assert_eq!(self.line_of(line.fragment(cell)) as usize, number);
                        all.push((line.fragment(cell), line.slot(cell)));
                    }
                }
                if line.link() == 0 {
                    break;
                }
                line = self.overflow.at(line.link() as usize - 1);
                assert_ne!(line.occupied(), 0, "an empty overflow line is kept");
            }
        }
        assert_eq!(all.len(), self.keys as usize);
        all
    }

    #[cfg(test)]
    pub(super) const fn lines_used(&self) -> u32 {
        self.used
    }
}

/// Lines of a chunk: 32 KiB.
const LINES: usize = 512;
const OVERFLOW_LINES: usize = 32;
/// Lines of an empty table: 4 KiB, enough for 256 keys.
const LINES_MIN: u32 = 64;
/// Beyond this many lines the table no longer grows, and lines only grow longer.
const LINES_MAX: u32 = 1 << 24;
/// A sweep starts at so many keys a line: fewer while all lines fit into a near cache anyhow, so that few go on in
/// others.
const KEYS_PER_LINE: u32 = 4;
const KEYS_PER_LINE_OF_FEW: u32 = 3;
/// So many lines are few.
const FEW_LINES: u32 = 2048;

/// How many keys so many lines have before a sweep starts.
const fn keys_max(lines: u32) -> u32 {
    lines.saturating_mul(if lines <= FEW_LINES { KEYS_PER_LINE_OF_FEW } else { KEYS_PER_LINE })
}
/// Marks the number of an overflow line in a [`Place`].
const OVERFLOW: u32 = 1 << 31;
