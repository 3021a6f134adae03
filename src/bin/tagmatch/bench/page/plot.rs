//! Plots as SVG, to stand in a page.
//!
//! Not here: which plots there are, and their titles and legends, which are the page's (`page`).

use super::axis::Axis;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Lines over values that are named, at equal distances.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    /// What the values are.
    pub(super) x_title: String,
    pub(super) x: Vec<String>,
    pub(super) unit: Unit,
    pub(super) lines: Vec<Line>,
}

/// One of them.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) colour: Colour,
    /// At each value of x, if it was measured.
    pub(super) y: Vec<Option<f64>>,
}

/// Bars that stand side by side in groups.
#[derive(Clone, Debug)]
pub(super) struct Bars {
    pub(super) unit: Unit,
    /// What each group is called, and its bars.
    pub(super) groups: Vec<(String, Pieces)>,
}

/// Bars that lie one above the other, each in pieces that make a hundred percent.
#[derive(Clone, Debug)]
pub(super) struct Stacks {
    /// What each bar is called, its pieces as shares of 1, and what stands in it.
    pub(super) bars: Vec<(String, Pieces, String)>,
}

/// What is plotted, and how it is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unit {
    /// Nanoseconds, over many sizes.
    Time,
    /// In a second, over many sizes.
    Rate,
    /// Shares of 1, all of which are shown.
    Share,
}

/// Colours, and how much of each.
pub(super) type Pieces = Vec<(Colour, f64)>;

/// Red, green, blue.
pub(super) type Colour = (u8, u8, u8);

impl Lines {
    /// `None`: there is nothing to show.
    fn axis(&self) -> Option<Axis> {
        let all = || self.lines.iter().flat_map(|line| line.y.iter().copied().flatten());
        let values = || all().filter(|value| value.is_finite() && *value > 0.0);
        let (least, most) = (values().fold(f64::MAX, f64::min), values().fold(0.0, f64::max));
        if self.unit == Unit::Share {
            all().next().map(|_| Axis::even(0.0..1.04, SHARES))
        } else {
            (most > 0.0).then(|| Axis::logarithmic(least, most))
        }
    }

    /// The plot. `None`: there is nothing to show.
    pub(super) fn svg(&self) -> Option<String> {
        let y = self.axis()?;
        let mut svg = String::new();
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let last = places(self.x.len()).last().unwrap_or(0.0);
        let x = Axis::even(-0.4..last + 0.4, places(self.x.len()));
        let marks = y.marks();
        let mut chart = ChartBuilder::on(&area)
            .margin(6)
            .margin_right(12)
            .x_label_area_size(40)
            .y_label_area_size(62)
            .build_cartesian_2d(x, y)
            .ok()?;
        let name = |place: &f64| key_point(*place, &self.x).cloned().unwrap_or_default();
        let value = |value: &f64| self.unit.text(*value);
        chart
            .configure_mesh()
            .disable_x_mesh()
            .bold_line_style(rgb(GRID))
            .light_line_style(TRANSPARENT)
            .axis_style(rgb(AXIS))
            .x_labels(self.x.len())
            .y_labels(marks)
            .x_label_formatter(&name)
            .y_label_formatter(&value)
            .x_desc(self.x_title.clone())
            .label_style(text(12))
            .axis_desc_style(text(12))
            .draw()
            .ok()?;
        for line in &self.lines {
            let points: Vec<(f64, f64)> = places(self.x.len())
                .zip(&line.y)
                .filter_map(|(x, y)| y.filter(|y| y.is_finite()).map(|y| (x, y)))
                .filter(|(_, y)| self.unit == Unit::Share || *y > 0.0)
                .collect();
            let colour = rgb(line.colour);
            chart.draw_series(LineSeries::new(points.clone(), colour.stroke_width(2))).ok()?;
            chart.draw_series(points.into_iter().map(|point| Circle::new(point, 4, colour.filled()))).ok()?;
        }
        area.present().ok()?;
        drop(chart);
        drop(area);
        Some(svg)
    }
}

impl Bars {
    /// The plot. `None`: there is nothing to show.
    pub(super) fn svg(&self) -> Option<String> {
        let most = self.groups.iter().flat_map(|(_, bars)| bars).map(|(_, value)| *value);
        let most = most.filter(|value| value.is_finite()).fold(0.0, f64::max);
        if most <= 0.0 {
            return None;
        }
        let mut svg = String::new();
        let width = u32::try_from(self.groups.len()).unwrap_or(1).clamp(2, 8) * 150 + 80;
        let area = SVGBackend::with_string(&mut svg, (width, 280)).into_drawing_area();
        let last = places(self.groups.len()).last().unwrap_or(0.0);
        let x = Axis::even(-0.5..last + 0.5, places(self.groups.len()));
        let mut chart = ChartBuilder::on(&area)
            .margin(6)
            .x_label_area_size(26)
            .y_label_area_size(62)
            .build_cartesian_2d(x, Axis::to(most))
            .ok()?;
        let name =
            |place: &f64| key_point(*place, &self.groups).map(|(name, _)| name.clone()).unwrap_or_default();
        chart
            .configure_mesh()
            .disable_x_mesh()
            .bold_line_style(rgb(GRID))
            .light_line_style(TRANSPARENT)
            .axis_style(rgb(AXIS))
            .x_labels(self.groups.len())
            .y_labels(6)
            .x_label_formatter(&name)
            .y_label_formatter(&|value| self.unit.text(*value))
            .label_style(text(13))
            .draw()
            .ok()?;
        for (place, (_, bars)) in places(self.groups.len()).zip(&self.groups) {
            let starts = places(bars.len()).map(|number| place - BAR * half(bars.len()) + BAR * number);
            for (start, (colour, value)) in starts.zip(bars) {
                let bar = Rectangle::new(
                    [(start + 0.01, 0.0), (start + BAR - 0.01, *value)],
                    rgb(*colour).filled(),
                );
                chart.draw_series([bar]).ok()?;
                let above = Pos::new(HPos::Center, VPos::Bottom);
                let label = Text::new(
                    self.unit.exact(*value),
                    (start + BAR / 2.0, most * 0.015 + *value),
                    text(13).pos(above),
                );
                chart.draw_series([label]).ok()?;
            }
        }
        area.present().ok()?;
        drop(chart);
        drop(area);
        Some(svg)
    }
}

impl Stacks {
    /// The plot. `None`: there is nothing to show.
    pub(super) fn svg(&self) -> Option<String> {
        if self.bars.is_empty() {
            return None;
        }
        let mut svg = String::new();
        let height = u32::try_from(self.bars.len()).unwrap_or(1).min(400) * 22 + 44;
        let area = SVGBackend::with_string(&mut svg, (760, height)).into_drawing_area();
        let count = places(self.bars.len() + 1).last().unwrap_or(1.0);
        let mut chart = ChartBuilder::on(&area)
            .margin(6)
            .margin_right(16)
            .x_label_area_size(26)
            .y_label_area_size(180)
            .build_cartesian_2d(Axis::even(0.0..1.0, SHARES), Axis::even(-count..0.0, []))
            .ok()?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .bold_line_style(rgb(GRID))
            .light_line_style(TRANSPARENT)
            .axis_style(rgb(AXIS))
            .x_labels(6)
            .x_label_formatter(&|share| Unit::Share.text(*share))
            .label_style(text(12))
            .draw()
            .ok()?;
        for (place, (name, pieces, inside)) in places(self.bars.len()).zip(&self.bars) {
            let (top, bottom, middle) = (-place - 0.1, -place - 0.9, -place - 0.5);
            let mut from = 0.0;
            for (colour, share) in pieces {
                let to = from + share;
                chart
                    .draw_series([Rectangle::new([(from, top), (to, bottom)], rgb(*colour).filled())])
                    .ok()?;
                from = to;
            }
            let is_wide = pieces.first().is_some_and(|(_, share)| *share > 0.1);
            let ink = if is_wide { WHITE } else { rgb(INK) };
            let within = text(11).color(&ink).pos(Pos::new(HPos::Left, VPos::Center));
            let inside = EmptyElement::at((0.0, middle)) + Text::new(inside.clone(), (6, 0), within);
            chart.draw_series([inside]).ok()?;
            // Names stand beside the axis, where the chart itself draws nothing.
            let (x, y) = chart.backend_coord(&(0.0, middle));
            let before = text(12).pos(Pos::new(HPos::Right, VPos::Center));
            area.draw(&Text::new(name.clone(), (x - 8, y), before)).ok()?;
        }
        area.present().ok()?;
        drop(chart);
        drop(area);
        Some(svg)
    }
}

impl Unit {
    /// As it stands at an axis.
    fn text(self, value: f64) -> String {
        match self {
            Self::Time => scaled(value, &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")]),
            Self::Rate => scaled(value, &[(1e9, "G/s"), (1e6, "M/s"), (1e3, "k/s"), (1.0, "/s")]),
            Self::Share => format!("{:.0} %", value * 100.0),
        }
    }

    /// The same with three figures.
    pub(super) fn exact(self, value: f64) -> String {
        match self {
            Self::Time | Self::Rate => self.text(value),
            Self::Share => format!("{:.1} %", (value * 1000.0).floor() / 10.0),
        }
    }
}

/// In the largest unit of which there is one, with three figures at most.
fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    let smallest = units.last().copied().unwrap_or((1.0, ""));
    let (size, name) = units.iter().copied().find(|(size, _)| value >= *size).unwrap_or(smallest);
    let number = value / size;
    let digits = if number >= 99.95 { 0 } else { usize::from(number >= 9.995) ^ 1 };
    let digits = if digits == 1 { 2 } else { usize::from(number < 99.95) };
    let number = format!("{number:.digits$}");
    let number =
        if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { &number };
    format!("{number} {name}")
}

/// 0, 1, 2, …
fn places(count: usize) -> impl Iterator<Item = f64> {
    (0..u32::try_from(count).unwrap_or(u32::MAX)).map(f64::from)
}

/// Which of these is at this place of an axis: key points alone are named.
fn key_point<T>(place: f64, all: &[T]) -> Option<&T> {
    places(all.len()).zip(all).find(|(known, _)| (known - place).abs() < 0.01).map(|(_, one)| one)
}

fn half(count: usize) -> f64 {
    places(count + 1).last().unwrap_or(0.0) / 2.0
}

const fn rgb((red, green, blue): Colour) -> RGBColor {
    RGBColor(red, green, blue)
}

fn text(size: u32) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&rgb(INK))
}

const SIZE: (u32, u32) = (390, 260);
const SHARES: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];
/// Of a group, which is 1.
const BAR: f64 = 0.3;
const INK: Colour = (0x22, 0x2B, 0x36);
const AXIS: Colour = (0x8A, 0x94, 0xA0);
const GRID: Colour = (0xE3, 0xE7, 0xEB);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_unit_in_which_they_are_short() {
        let time = |value| Unit::Time.text(value);
        assert_eq!(
            [time(0.5), time(999.0), time(1000.0), time(12_340.0)],
            ["0.5 ns", "999 ns", "1 µs", "12.3 µs"]
        );
        assert_eq!([time(2.5e6), time(3e10)], ["2.5 ms", "30 s"]);
        assert_eq!([Unit::Rate.text(1_200_000.0), Unit::Share.text(0.25)], ["1.2 M/s", "25 %"]);
        assert_eq!(Unit::Share.exact(0.9999), "99.9 %", "not all");
    }

    #[test]
    fn a_plot_of_nothing_is_none() {
        let line = Line { colour: INK, y: vec![None, Some(f64::NAN), Some(0.0)] };
        let lines =
            |unit, line| Lines { x_title: "x".into(), x: vec!["a".into(); 3], unit, lines: vec![line] };
        assert_eq!(lines(Unit::Time, line).svg(), None);
        let zero = Line { colour: INK, y: vec![Some(0.0)] };
        assert!(
            lines(Unit::Share, zero).svg().is_some_and(|svg| svg.contains("100 %")),
            "nothing in hardware is a result"
        );
        assert_eq!(Bars { unit: Unit::Time, groups: Vec::new() }.svg(), None);
        assert_eq!(Stacks { bars: Vec::new() }.svg(), None);
    }

    #[test]
    fn every_value_of_x_is_named_and_names_do_no_harm() {
        let x: Vec<String> = ["8 B", "<script>", "1 MiB"].map(String::from).to_vec();
        let line = Line { colour: INK, y: vec![Some(100.0), None, Some(5e6)] };
        let plot = Lines { x_title: "size".into(), x, unit: Unit::Time, lines: vec![line] };
        let svg = plot.svg().unwrap();
        assert!(svg.contains("8 B") && svg.contains("1 MiB") && svg.contains("10 µs"), "{svg}");
        assert!(!svg.contains("<script>"), "{svg}");
    }
}
