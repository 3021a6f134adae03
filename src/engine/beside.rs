//! What the engine knows of posted receives and of held messages, beside what the matcher does: by the place that the
//! entry has there. So nothing is moved between post and match, and the matcher moves nothing but ids.
//!
//! Rows come in chunks, so that growth never moves what is there. A row is good while its entry is on the list, and
//! until the next entry joins it.
//!
//! Not here: whether an id is stale; the matcher tells.

use crate::ids::{MessageId, ReceiveId};

/// One row for each place of a list.
#[derive(Clone, Debug)]
pub(super) struct Beside<T> {
    chunks: Vec<Box<[T; CHUNK]>>,
}

/// The id of an entry of a list.
pub(super) trait ListEntry: Copy {
    /// Its place there.
    fn place(self) -> usize;
}

impl ListEntry for ReceiveId {
    #[inline(always)]
    fn place(self) -> usize {
        low_half(self.to_bits())
    }
}

impl ListEntry for MessageId {
    #[inline(always)]
    fn place(self) -> usize {
        low_half(self.to_bits())
    }
}

impl<T: Copy> Beside<T> {
    pub(super) const fn new() -> Self {
        Self { chunks: Vec::new() }
    }

    /// The row of an entry that has just joined the list. It is made where it is to stay: one that was put together
    /// elsewhere from narrow pieces and moved in wide ones would be waited for.
    #[inline(always)]
    pub(super) fn set(&mut self, entry: impl ListEntry, row: impl Fn() -> T) {
        let place = entry.place();
        match self.chunks.get_mut(place / CHUNK) {
            Some(chunk) => chunk[place % CHUNK] = row(),
            None => self.grow_and_set(place, row()),
        }
    }

    /// The row of an entry that is on the list, or has just left it. None: there was never an entry in its place.
    #[inline(always)]
    pub(super) fn get(&self, entry: impl ListEntry) -> Option<&T> {
        let place = entry.place();
        self.chunks.get(place / CHUNK).map(|chunk| &chunk[place % CHUNK])
    }

    #[inline]
    pub(super) fn get_mut(&mut self, entry: impl ListEntry) -> Option<&mut T> {
        let place = entry.place();
        self.chunks.get_mut(place / CHUNK).map(|chunk| &mut chunk[place % CHUNK])
    }

    #[cold]
    #[inline(never)]
    fn grow_and_set(&mut self, place: usize, row: T) {
        while self.chunks.len() <= place / CHUNK {
            self.chunks.push(Box::new([row; CHUNK]));
        }
        if let Some(chunk) = self.chunks.get_mut(place / CHUNK) {
            chunk[place % CHUNK] = row;
        }
    }
}

/// The place is the lower half of an id.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the lower half is meant")]
const fn low_half(bits: u64) -> usize {
    bits as u32 as usize
}

/// Rows of a chunk.
const CHUNK: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_place_whatever_the_generation_and_stay_when_it_grows() {
        let mut beside = Beside::new();
        let id = |place: u64, generation: u64| ReceiveId::from_bits(generation << 32 | place);
        assert_eq!(beside.get(id(0, 0)), None);
        for place in [3, 900, 255, 256, 70_000] {
            beside.set(id(place, place), || place);
        }
        for place in [3, 900, 255, 256, 70_000] {
            assert_eq!(beside.get(id(place, 1)), Some(&place));
        }
        assert_eq!(beside.get(id(1 << 20, 0)), None);
        assert_eq!(MessageId::from_bits(7 << 32 | 9).place(), 9);
    }
}
