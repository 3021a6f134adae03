//! A region of loom's: the words that a model uses are atomics, the bytes are cells in which two at once are found.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::sync::{AtomicU64, Life, Word};
use crate::device::host_memory::Stretch;
use crate::sync::Byte;

/// As many as in the library's.
pub(super) const WORDS: usize = 1024;
/// A life without an end.
pub(super) const LONG: usize = usize::MAX;
/// Words of rings that are used: of either ring, those before `Ended`, itself, and `Taken`.
const USED: [usize; 10] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 16];

/// One side's.
#[derive(Debug)]
pub(super) struct Region {
    words: BTreeMap<usize, AtomicU64>,
    areas: Rc<[Vec<Byte>; 2]>,
    life: Life,
}

impl Region {
    /// Both sides of one with areas of so many bytes, whose lives are so long. Each offers under key `place` only, if any.
    pub(super) fn pair(area: usize, lives: [usize; 2], place: Option<usize>) -> [Self; 2] {
        let of_rings = USED.iter().flat_map(|word| [*word, 32 + word]);
        let of_offers = place
            .into_iter()
            .flat_map(|place| [place, 128 + place])
            .flat_map(|place| 64 + 3 * place..67 + 3 * place);
        let words: Vec<_> = of_rings.chain(of_offers).map(|index| (index, Rc::new(Word::new(0)))).collect();
        let steps = Rc::new(Word::new(0));
        let bytes = || (0..area).map(|_| Byte::new()).collect();
        let areas = Rc::new([bytes(), bytes()]);
        lives.map(|writes| {
            let life = Life::of(writes);
            let way = |(index, word): &(usize, Rc<Word>)| {
                (*index, AtomicU64::new(word.clone(), steps.clone(), life.clone()))
            };
            Self { words: words.iter().map(way).collect(), areas: areas.clone(), life: life.clone() }
        })
    }

    pub(super) fn word(&self, index: usize) -> &AtomicU64 {
        &self.words[&index]
    }

    pub(super) fn area(&self) -> usize {
        self.areas[0].len()
    }

    pub(super) fn put(&self, area: Area, position: u64, bytes: &[u8]) {
        for (byte, place) in bytes.iter().zip(self.places(area, position, bytes.len())) {
            if self.life.writes() {
                place.set(*byte);
            }
        }
    }

    pub(super) fn take(&self, area: Area, position: u64, into: &mut [u8]) {
        let length = into.len();
        into.iter_mut()
            .zip(self.places(area, position, length))
            .for_each(|(byte, place)| *byte = place.get());
    }

    fn places(&self, area: Area, position: u64, length: usize) -> impl Iterator<Item = &Byte> {
        let bytes = &self.areas[area as usize];
        assert!(length <= bytes.len() && bytes.len().is_power_of_two());
        let first = usize::try_from(position).expect("few bytes");
        (first..first + length).map(|place| &bytes[place % bytes.len()])
    }

    pub(super) fn put_stretch(&self, _: Area, _: u64, stretch: Stretch, _: usize) {
        stretch.length();
    }

    pub(super) fn take_stretch(&self, _: Area, _: u64, stretch: Stretch, _: usize) {
        stretch.length();
    }

    pub(super) fn fill(stretch: Stretch, _: &[u8]) -> usize {
        stretch.length()
    }

    pub(super) fn drain(stretch: Stretch, _: &mut [u8]) -> usize {
        stretch.length()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Area {
    First = 0,
    Second = 1,
}
