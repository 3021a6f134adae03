//! Inputs out of seeds: each is one of them, or of those that were kept, with a few changes. The same in every run.
//!
//! Not here: what is right about an input.

/// Numbers by seed (SplitMix64).
#[derive(Clone, Debug)]
pub struct Numbers(u64);

impl Numbers {
    /// Those of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// One below a bound that is not 0.
    #[expect(clippy::cast_possible_truncation, reason = "it is below a usize")]
    pub const fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// Inputs without end.
#[derive(Debug)]
pub struct Inputs {
    numbers: Numbers,
    /// In groups, each of which is drawn from as often as any other.
    groups: Vec<Vec<Vec<u8>>>,
    /// Bytes of the longest.
    length_max: usize,
    current: Vec<u8>,
}

impl Inputs {
    /// Inputs out of these, no longer than so many bytes. Each group is drawn from as often as any other, however many are
    /// in it.
    #[must_use]
    pub fn new(seed: u64, mut groups: Vec<Vec<Vec<u8>>>, length_max: usize) -> Self {
        groups.retain(|group| !group.is_empty());
        if groups.is_empty() {
            groups.push(vec![Vec::new()]);
        }
        Self { numbers: Numbers::new(seed), groups, length_max, current: Vec::new() }
    }

    /// Which group, and which of it.
    fn one(&mut self) -> (usize, usize) {
        let group = self.numbers.below(self.groups.len());
        (group, self.numbers.below(self.groups[group].len()))
    }

    /// The next.
    pub fn draw(&mut self) -> &[u8] {
        let (group, seed) = self.one();
        self.current.clone_from(&self.groups[group][seed]);
        // One in sixteen is drawn from nothing.
        if self.numbers.below(16) == 0 {
            self.draw_anew();
        }
        for _ in 0..self.numbers.below(4) + 1 {
            self.change();
        }
        self.current.truncate(self.length_max);
        &self.current
    }

    fn draw_anew(&mut self) {
        let length = self.numbers.below(self.length_max.min(512) + 1);
        self.current.clear();
        for _ in 0..length {
            // Many zeros, or whatever must be 0 would stop everything.
            let byte = if self.numbers.below(3) == 0 { 0 } else { self.byte() };
            self.current.push(byte);
        }
    }

    fn byte(&mut self) -> u8 {
        self.numbers.next().to_le_bytes()[0]
    }

    /// One change of any kind.
    fn change(&mut self) {
        let length = self.current.len();
        let at = self.numbers.below(length + 1);
        match self.numbers.below(9) {
            0 if at < length => self.current[at] ^= 1 << self.numbers.below(8),
            1 if at < length => self.current[at] = self.byte(),
            2 if at < length => self.current[at] = if self.numbers.below(2) == 0 { 0xFF } else { 0 },
            3 => self.current.truncate(at),
            4 => self.write_word(at),
            5 => self.splice(at),
            6 => {
                let byte = self.byte();
                self.current.insert(at, byte);
            }
            7 => self.repeat(at),
            _ if at < length => {
                self.current.remove(at);
            }
            _ => {}
        }
    }

    /// A number of 2, 4 or 8 bytes at an edge.
    fn write_word(&mut self, at: usize) {
        const EDGES: [u64; 10] =
            [0, 1, 7, 0x7F, 0x8000, 0xFFFF, 0x7FFF_FFFF, 0xFFFF_FFFF, u64::MAX >> 1, u64::MAX];
        let edge =
            EDGES[self.numbers.below(EDGES.len())].wrapping_add(self.numbers.next() % 3).wrapping_sub(1);
        let bytes = if self.numbers.below(2) == 0 { edge.to_be_bytes() } else { edge.to_le_bytes() };
        let width = 2 << self.numbers.below(3);
        let end = self.current.len().min(at + width);
        self.current[at..end].copy_from_slice(&bytes[..end - at]);
    }

    /// The rest of another.
    fn splice(&mut self, at: usize) {
        let (group, other) = self.one();
        let from = self.numbers.below(self.groups[group][other].len() + 1);
        self.current.truncate(at);
        self.current.extend_from_slice(&self.groups[group][other][from..]);
    }

    /// A stretch once more.
    fn repeat(&mut self, at: usize) {
        let end = at + self.numbers.below(self.current.len() - at + 1);
        let stretch = self.current[at..end].to_vec();
        self.current.splice(at..at, stretch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_the_same_in_every_run_and_no_longer_than_allowed() {
        let seeds = vec![b"tag 5 ignore 0".to_vec(), vec![0, 1, 2, 3]];
        let mut inputs = [(); 2].map(|()| Inputs::new(7, vec![seeds.clone(), vec![vec![9; 300]]], 100));
        let mut different = std::collections::HashSet::new();
        for _ in 0..5000 {
            let input = inputs[0].draw().to_vec();
            assert_eq!(inputs[1].draw(), input);
            assert!(input.len() <= 100);
            different.insert(input);
        }
        assert!(different.len() > 2000, "{} different", different.len());
    }
}
