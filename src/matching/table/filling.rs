//! Filling an empty table with many entries in time that the size of caches does not enter.
//!
//! Entries come in any order of their hashes, so that each would wait for a line of its own from memory. Here each is
//! first noted in the *partition* that its line is in, a run of lines that fits into a cache; the note takes up one of
//! the cells of that very run, wherever one is free, so that no other memory is needed. Then partition after partition
//! is copied out and its entries go to their own lines.
//!
//! Not here: entries of equal keys, which are the caller's: see [`Table::settle`].

use super::{
    FEW_LINES, KEYS_PER_LINE, KEYS_PER_LINE_OF_FEW, LINES_MAX, LINES_MIN, Line, OCCUPIED, Table, cell_of,
    keys_max,
};

/// See the head of this file.
pub(in crate::matching) struct Filling {
    /// Lines of a partition as a power of two.
    shift: u32,
    /// By partition: the line that the next note goes into.
    ends: Vec<u32>,
    /// One partition's notes, copied out.
    notes: Vec<Note>,
    /// Notes of a partition that settled, in the order in which they came, of which [`Table::settle`] left the rest to the
    /// caller.
    pub(in crate::matching) left: Vec<Note>,
    /// Notes for which their partition had no cell, which are the caller's too, after all others.
    pub(in crate::matching) beyond: Vec<Note>,
}

/// An entry on its way to its line.
#[derive(Clone, Copy)]
pub(in crate::matching) struct Note {
    pub(in crate::matching) fragment: u32,
    pub(in crate::matching) slot: u32,
}

impl Filling {
    pub(in crate::matching) const fn partitions(&self) -> usize {
        self.ends.len()
    }
}

impl Table {
    /// Forget every key, and be large enough for so many at once, so that filling splits nothing.
    pub(in crate::matching) fn clear_for(&mut self, keys: u32) {
        let lines = self.size_for(keys);
        for number in 0..lines as usize {
            *self.lines.at_mut(number) = Line::EMPTY;
        }
    }

    /// The same, but lines still hold whatever they did.
    fn size_for(&mut self, keys: u32) -> u32 {
        self.clear();
        let per_line = if keys > keys_max(FEW_LINES) { KEYS_PER_LINE } else { KEYS_PER_LINE_OF_FEW };
        let lines = keys.div_ceil(per_line).max(1).next_power_of_two().clamp(LINES_MIN, LINES_MAX);
        self.lines.reach(lines as usize - 1, Line::EMPTY);
        (self.used, self.half, self.limit) = (lines, lines, keys_max(lines));
        self.wide = 2 * lines - 1;
        lines
    }

    /// Begin to fill the table with at most so many entries, and forget what it held. It is of no use before each
    /// partition has settled and what is left to the caller has been inserted.
    pub(in crate::matching) fn begin_filling(&mut self, entries: u32) -> Filling {
        let lines = self.size_for(entries);
        let shift = PARTITION.max(lines.ilog2().saturating_sub(PARTITIONS_MAX));
        let ends: Vec<u32> = (0..(lines >> shift).max(1)).map(|partition| partition << shift).collect();
        for first in &ends {
            *self.lines.at_mut(*first as usize) = Line::EMPTY;
        }
        Filling { shift, ends, notes: Vec::new(), left: Vec::new(), beyond: Vec::new() }
    }

    /// Note an entry, in order of age if they have equal keys. Budget: 30 instructions.
    #[inline(always)]
    pub(in crate::matching) fn note(&mut self, filling: &mut Filling, note: Note) {
        let partition = (note.fragment & (self.half - 1)) >> filling.shift;
        let Some(end) = filling.ends.get_mut(partition as usize) else { return };
        if !self.lines.at_mut(*end as usize).push(note.fragment, note.slot) {
            self.note_in_next_line(filling, partition, note);
        }
    }

    #[inline(never)]
    fn note_in_next_line(&mut self, filling: &mut Filling, partition: u32, note: Note) {
        let end = &mut filling.ends[partition as usize];
        if *end + 1 == ((partition + 1) << filling.shift).min(self.half) {
            filling.beyond.push(note);
            return;
        }
        *end += 1;
        let line = self.lines.at_mut(*end as usize);
        *line = Line::EMPTY;
        line.push(note.fragment, note.slot);
    }

    /// Move a partition's notes to their own lines. Left are those that may have the key of another and those that are
    /// beyond a full line: [`Table::find_or_insert`] is for them.
    pub(in crate::matching) fn settle(&mut self, filling: &mut Filling, partition: usize) {
        let Filling { notes, left, .. } = filling;
        let first = partition << filling.shift;
        let after = (first + (1 << filling.shift)).min(self.half as usize);
        notes.clear();
        for number in first..=filling.ends[partition] as usize {
            let line = self.lines.at(number);
            let mut cells = line.occupied();
            while cells != 0 {
                let cell = cell_of(cells);
                cells &= cells - 1;
                notes.push(Note { fragment: line.fragment(cell), slot: line.slot(cell) });
            }
        }
        for number in first..after {
            *self.lines.at_mut(number) = Line::EMPTY;
        }
        let mask = self.half - 1;
        for note in notes.iter() {
            let line = self.lines.at_mut((note.fragment & mask) as usize);
            if line.has_fragment(note.fragment) || !line.push(note.fragment, note.slot) {
                left.push(*note);
            } else {
                self.keys += 1;
            }
        }
    }
}

impl Line {
    /// Whether a cell has just that fragment, and not only its byte.
    #[inline]
    const fn has_fragment(&self, fragment: u32) -> bool {
        let mut cells = self.cells_with_fragment(fragment);
        while cells != 0 {
            if self.fragment(cell_of(cells)) == fragment | OCCUPIED {
                return true;
            }
            cells &= cells - 1;
        }
        false
    }
}

/// Lines of a partition as a power of two: 256 KiB. In the tests of this crate small, so that there are several.
const PARTITION: u32 = if cfg!(test) { 4 } else { 12 };
/// The most partitions as a power of two; beyond that they are larger. Each has a line in the first cache.
const PARTITIONS_MAX: u32 = 8;
