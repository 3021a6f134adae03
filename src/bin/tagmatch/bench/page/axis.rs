//! An axis that is marked where it is told to be, in even or in logarithmic steps.

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use std::ops::Range;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    range: Range<f64>,
    marks: Vec<f64>,
    is_logarithmic: bool,
}

impl Axis {
    /// In even steps.
    pub(super) fn even(range: Range<f64>, marks: impl IntoIterator<Item = f64>) -> Self {
        Self { range, marks: marks.into_iter().collect(), is_logarithmic: false }
    }

    /// From zero to a little above this, with a few round marks.
    pub(super) fn to(most: f64) -> Self {
        let rough = most / 5.0;
        let decade = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|part| part * decade).find(|step| *step >= rough);
        let step = step.unwrap_or(rough);
        Self::even(
            0.0..most * 1.15,
            (0..8).map(|number| f64::from(number) * step).filter(|mark| *mark <= most * 1.15),
        )
    }

    /// Over whole powers of ten from the least to the most, both above zero.
    pub(super) fn logarithmic(least: f64, most: f64) -> Self {
        let range = 10f64.powf((least * 0.999).log10().floor())..10f64.powf((most * 1.001).log10().ceil());
        let decades = (range.end / range.start).log10();
        let between: &[f64] = match decades {
            ..1.5 => &[1.0, 2.0, 5.0],
            1.5..2.5 => &[1.0, 3.0],
            _ => &[1.0],
        };
        let mut marks = Vec::new();
        let mut decade = range.start;
        while decade <= range.end * 1.001 && marks.len() < MARKS_MAX {
            marks.extend(between.iter().map(|part| part * decade).filter(|mark| *mark <= range.end * 1.001));
            decade *= 10.0;
        }
        Self { range, marks, is_logarithmic: true }
    }

    /// How many marks there are.
    pub(super) const fn marks(&self) -> usize {
        self.marks.len()
    }
}

impl Ranged for Axis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (start, end): (i32, i32)) -> i32 {
        let scale = |value: f64| if self.is_logarithmic { value.max(f64::MIN_POSITIVE).ln() } else { value };
        let (least, most) = (scale(self.range.start), scale(self.range.end));
        let part = (scale(*value) - least) / (most - least).max(f64::MIN_POSITIVE);
        #[expect(clippy::cast_possible_truncation, reason = "a place in a plot is a small number")]
        let away = (part.clamp(-1.0, 2.0) * f64::from(end - start)).round() as i32;
        start + away
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.marks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

const MARKS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lie_between_the_ends_in_even_or_logarithmic_steps() {
        let even = Axis::even(0.0..4.0, [1.0]);
        assert_eq!([0.0, 1.0, 4.0].map(|value| even.map(&value, (100, 0))), [100, 75, 0]);
        let axis = Axis::logarithmic(20.0, 5000.0);
        assert_eq!(axis.range(), 10.0..10_000.0);
        assert_eq!([10.0, 100.0, 10_000.0].map(|value| axis.map(&value, (0, 300))), [0, 100, 300]);
        assert_eq!(axis.marks, [10.0, 100.0, 1000.0, 10_000.0]);
    }

    #[test]
    fn marks_from_zero_are_round_and_few() {
        assert_eq!(Axis::to(100.0).marks, [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(Axis::to(730.0).marks, [0.0, 200.0, 400.0, 600.0, 800.0]);
    }
}
