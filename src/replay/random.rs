//! Numbers that look random: the same on every machine.

use super::Schedule;

/// Drawn one after the other from a seed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Random(u64);

impl Random {
    /// Of a schedule's seed; a prompt one draws nothing by it.
    pub(super) const fn of(schedule: Schedule) -> Self {
        match schedule {
            Schedule::Prompt => Self(0),
            Schedule::Random(seed) => Self(seed),
        }
    }

    /// One below `bound`, or 0.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)) % bound.max(1)
    }
}
