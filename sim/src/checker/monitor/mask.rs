//! A set of slots. No allocation as long as all slots are below 64.
//!
//! Not here: what a slot holds.

/// The set. Two equal sets have equal representations.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub(super) struct Mask {
    low: u64,
    /// Slots from 64 on; the last word is not 0.
    high: Vec<u64>,
}

impl Mask {
    pub(super) fn insert(&mut self, slot: usize) {
        *self.word_mut(slot / 64) |= 1 << (slot % 64);
    }

    pub(super) fn clear(&mut self) {
        self.low = 0;
        self.high.clear();
    }

    pub(super) fn union(&mut self, other: &Self) {
        self.low |= other.low;
        if self.high.len() < other.high.len() {
            self.high.resize(other.high.len(), 0);
        }
        for (word, more) in self.high.iter_mut().zip(&other.high) {
            *word |= more;
        }
    }

    pub(super) fn subtract(&mut self, other: &Self) {
        self.low &= !other.low;
        for (word, less) in self.high.iter_mut().zip(&other.high) {
            *word &= !less;
        }
        self.trim();
    }

    /// Makes room for a new slot: those from `slot` on are now one higher.
    pub(super) fn open(&mut self, slot: usize) {
        if self.is_empty() {
            return;
        }
        if self.high.is_empty() && self.low >> 63 == 0 && slot < 64 {
            let below = (1 << slot) - 1;
            self.low = (self.low & below) | ((self.low & !below) << 1);
            return;
        }
        let top = self.high.last().map_or(self.low, |word| *word) >> 63 == 1;
        if top {
            self.high.push(0);
        }
        let first = slot / 64;
        for index in (first..=self.high.len()).rev() {
            let carry = if index > first { self.word(index - 1) >> 63 } else { 0 };
            let keep = if index == first { (1 << (slot % 64)) - 1 } else { 0 };
            let word = self.word(index);
            *self.word_mut(index) = (word & keep) | ((word & !keep) << 1) | carry;
        }
        self.trim();
    }

    /// Takes a slot away: those above it are now one lower.
    pub(super) fn close(&mut self, slot: usize) {
        if self.high.is_empty() {
            if slot < 64 {
                let below = (1 << slot) - 1;
                self.low = (self.low & below) | ((self.low >> 1) & !below);
            }
            return;
        }
        let first = slot / 64;
        for index in first..=self.high.len() {
            let keep = if index == first { (1 << (slot % 64)) - 1 } else { 0 };
            let carry = self.word(index + 1) << 63;
            let word = self.word(index);
            *self.word_mut(index) = (word & keep) | ((word >> 1) & !keep) | carry;
        }
        self.trim();
    }

    pub(super) fn contains(&self, slot: usize) -> bool {
        self.word(slot / 64) >> (slot % 64) & 1 == 1
    }

    pub(super) fn is_empty(&self) -> bool {
        self.low == 0 && self.high.is_empty()
    }

    pub(super) fn is_subset(&self, other: &Self) -> bool {
        self.low & !other.low == 0
            && (1..=self.high.len()).all(|index| self.word(index) & !other.word(index) == 0)
    }

    pub(super) fn intersects(&self, other: &Self) -> bool {
        self.low & other.low != 0 || self.high.iter().zip(&other.high).any(|(a, b)| a & b != 0)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..=self.high.len()).flat_map(|index| {
            let mut rest = self.word(index);
            std::iter::from_fn(move || {
                (rest != 0).then(|| {
                    let bit = rest.trailing_zeros() as usize;
                    rest &= rest - 1;
                    index * 64 + bit
                })
            })
        })
    }

    fn word(&self, index: usize) -> u64 {
        if index == 0 { self.low } else { self.high.get(index - 1).copied().unwrap_or(0) }
    }

    fn word_mut(&mut self, index: usize) -> &mut u64 {
        if index == 0 {
            return &mut self.low;
        }
        if self.high.len() < index {
            self.high.resize(index, 0);
        }
        &mut self.high[index - 1]
    }

    fn trim(&mut self) {
        while self.high.last() == Some(&0) {
            self.high.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Mask;

    #[test]
    fn slots_move_with_what_they_hold_across_word_borders() {
        for slot in [0, 1, 62, 63, 64, 65, 127, 128, 200] {
            let members = [0, 5, 62, 63, 64, 100, 126, 127, 128, 190];
            let mut mask = Mask::default();
            members.iter().for_each(|member| mask.insert(*member));
            let before = mask.clone();
            mask.open(slot);
            let moved: Vec<usize> = members.iter().map(|m| if *m >= slot { m + 1 } else { *m }).collect();
            assert_eq!(mask.iter().collect::<Vec<_>>(), moved);
            mask.insert(slot);
            mask.close(slot);
            assert_eq!(mask, before);
        }
    }

    #[test]
    fn equal_sets_have_one_representation() {
        let mut mask = Mask::default();
        mask.insert(3);
        let small = mask.clone();
        let mut large = Mask::default();
        large.insert(300);
        mask.union(&large);
        assert!(small.is_subset(&mask) && !mask.is_subset(&small) && mask.intersects(&large));
        mask.subtract(&large);
        assert_eq!(mask, small);
    }
}
