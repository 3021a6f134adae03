//! From the times of rounds to figures: medians, and ratios within rounds.

use serde::Serialize;

/// What several rounds gave.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Spread {
    /// Of some values; none: there are none.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (least, most) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        };
        Some(Self { median, least, most })
    }

    /// Of the ratios of each round: the machine was the same within one, and may have been another in the next.
    pub(crate) fn of_ratios(ours: &[f64], theirs: &[f64]) -> Option<Self> {
        let pairs = ours.iter().zip(theirs).filter(|(_, theirs)| **theirs > 0.0);
        Self::of(&pairs.map(|(ours, theirs)| ours / theirs).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_between_two() {
        assert_eq!(Spread::of(&[]), None);
        assert_eq!(Spread::of(&[3.0, 1.0, 2.0]), Some(Spread { median: 2.0, least: 1.0, most: 3.0 }));
        assert_eq!(Spread::of(&[4.0, 1.0]), Some(Spread { median: 2.5, least: 1.0, most: 4.0 }));
    }

    #[test]
    fn ratios_are_of_each_round_and_not_of_the_medians() {
        // In the second round the machine was four times as slow for both.
        let ratio = Spread::of_ratios(&[10.0, 40.0, 12.0], &[20.0, 80.0, 10.0]);
        assert_eq!(ratio, Some(Spread { median: 0.5, least: 0.5, most: 1.2 }));
        assert_eq!(Spread::of_ratios(&[1.0], &[0.0]), None);
        assert_eq!(Spread::of_ratios(&[], &[]), None);
    }
}
