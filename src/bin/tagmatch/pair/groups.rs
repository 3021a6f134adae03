//! The time of a loop by short groups of its turns: where another program had a processor for a while, few of them are long,
//! and their median is what the loop takes.

use std::time::{Duration, Instant};

/// See the module.
#[derive(Debug)]
pub(super) struct Groups {
    count: usize,
    /// Turns of a group.
    size: usize,
    /// Turns of the one that is going on.
    turns: usize,
    begin: Instant,
    times: Vec<Duration>,
}

impl Groups {
    /// Of a loop of so many turns, one at least.
    pub(super) fn new(count: usize) -> Self {
        let times = Vec::with_capacity(GROUPS_MAX + 1);
        Self { count, size: count.div_ceil(GROUPS_MAX).max(1), turns: 0, begin: Instant::now(), times }
    }

    /// The first turn that counts begins.
    pub(super) fn start(&mut self) {
        self.begin = Instant::now();
    }

    /// A turn has ended.
    #[inline]
    pub(super) fn turn(&mut self) {
        self.turns += 1;
        if self.turns == self.size {
            let now = Instant::now();
            self.add(now - self.begin);
            self.begin = now;
        }
    }

    fn add(&mut self, time: Duration) {
        self.times.push(time);
        self.turns = 0;
    }

    /// Of all turns, if each took what those of the median group took.
    pub(super) fn time(mut self) -> Duration {
        self.times.sort_unstable();
        let median = self.times.get(self.times.len() / 2).copied().unwrap_or_default();
        let all = median.as_nanos() * self.count as u128 / self.size as u128;
        Duration::from_nanos(u64::try_from(all).unwrap_or(u64::MAX))
    }
}

/// Groups of a loop at most.
const GROUPS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_group_does_not_count() {
        let mut groups = Groups::new(640);
        assert_eq!(groups.size, 10);
        for time in [10, 12, 4000, 11, 9] {
            groups.add(Duration::from_micros(time));
        }
        assert_eq!(groups.time(), Duration::from_micros(11 * 64));
    }

    #[test]
    fn every_loop_has_a_group() {
        for count in [1, 2, 63, 64, 65, 1000] {
            let mut groups = Groups::new(count);
            (0..count).for_each(|_| groups.turn());
            assert!(!groups.times.is_empty() && groups.times.len() <= GROUPS_MAX, "{count}");
        }
    }
}
