//! How long a run may take.

use std::time::{Duration, Instant};

/// A moment after which nothing more is begun, if there is one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit(Option<Instant>);

impl Limit {
    /// So many seconds from now.
    pub(super) fn new(seconds: Option<u64>) -> Self {
        Self(seconds.and_then(|seconds| Instant::now().checked_add(Duration::from_secs(seconds))))
    }

    pub(super) fn is_over(self) -> bool {
        self.0.is_some_and(|end| Instant::now() >= end)
    }

    /// Whole seconds that are left, at most `most` where there is a limit; without one, none.
    pub(super) fn left(self, most: u64) -> Option<u64> {
        self.0.map(|end| end.saturating_duration_since(Instant::now()).as_secs().min(most))
    }

    /// The same, or so many seconds from now, whichever is earlier. Without a limit there is still none.
    pub(super) fn at_most(self, seconds: u64) -> Self {
        self.left(seconds).map_or(self, |seconds| Self::new(Some(seconds)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_limit_nothing_is_over_and_a_part_has_none_either() {
        let none = Limit::new(None);
        assert!(!none.is_over() && !none.at_most(0).is_over());
        assert_eq!(none.left(5), None);
    }

    #[test]
    fn a_part_has_no_more_time_than_the_whole() {
        let over = Limit::new(Some(0));
        assert!(over.is_over() && over.at_most(100).is_over());
        let long = Limit::new(Some(1000));
        assert!(!long.is_over() && long.at_most(0).is_over());
        assert_eq!(long.left(7), Some(7));
    }
}
