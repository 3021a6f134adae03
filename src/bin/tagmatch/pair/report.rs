//! What was measured: as JSON, whose names docs/pair.md explains, and as a table.

use super::plan::{Ahead, Contender};
use crate::bench::Machine;
use crate::build::Build;
use crate::figures::Spread;
use crate::table::Table;
use serde::Serialize;

/// A run.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) format: &'static str,
    pub(super) build: Build,
    pub(super) machine: Machine,
    /// The processors of the two processes; none: they were not bound.
    pub(super) cpus: Option<[usize; 2]>,
    pub(super) rounds: u32,
    /// Messages before an answer, of `msgrate`.
    pub(super) window: Option<usize>,
    pub(super) contenders: Vec<Who>,
    pub(super) points: Vec<Point>,
    pub(super) notes: Vec<String>,
}

/// Who was measured.
#[derive(Debug, Serialize)]
pub(super) struct Who {
    pub(super) name: String,
    /// By which way, over what, of which version: words.
    pub(super) what: String,
}

impl From<(Contender, String)> for Who {
    fn from((contender, what): (Contender, String)) -> Self {
        Self { name: contender.name().to_owned(), what }
    }
}

/// Messages of one length beside one kind of list.
#[derive(Debug, Serialize)]
pub(super) struct Point {
    pub(super) bytes: usize,
    /// What waits in the lists; none: nothing does.
    pub(super) ahead: Option<Ahead>,
    /// In the order of the contenders.
    pub(super) results: Vec<Result>,
    /// Of this project to each of the others.
    pub(super) ratios: Vec<Ratio>,
}

/// Of one contender.
#[derive(Debug, Serialize)]
pub(super) struct Result {
    pub(super) name: String,
    /// Half a round trip, or the time of a message in a stream: over the rounds.
    pub(super) ns: Spread,
    /// By the median.
    pub(super) messages_per_second: f64,
    /// By the median, of payload: 10^6 bytes.
    pub(super) megabytes_per_second: f64,
    /// Round trips, or windows, of each round.
    pub(super) iterations: usize,
    /// Of each round.
    pub(super) rounds_ns: Vec<f64>,
}

/// Our time over that of another.
#[derive(Debug, Serialize)]
pub(super) struct Ratio {
    pub(super) against: String,
    #[serde(flatten)]
    pub(super) ratio: Spread,
}

impl Result {
    pub(super) fn new(
        name: String,
        bytes: usize,
        iterations: usize,
        ns: Spread,
        rounds_ns: Vec<f64>,
    ) -> Self {
        let messages_per_second = 1e9 / ns.median.max(f64::MIN_POSITIVE);
        #[expect(clippy::cast_precision_loss, reason = "messages are short")]
        let megabytes_per_second = messages_per_second * bytes as f64 / 1e6;
        Self { name, ns, messages_per_second, megabytes_per_second, iterations, rounds_ns }
    }
}

impl Report {
    /// As a person reads it.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for Who { name, what } in &self.contenders {
            text += &format!("{name}: {what}\n");
        }
        text += &format!("{}\n", self.machine.words());
        for note in &self.notes {
            text += &format!("{note}\n");
        }
        text.push('\n');
        text += &self.table().text();
        text
    }

    fn table(&self) -> Table {
        let is_rate = self.window.is_some();
        let mut headings = vec!["ahead in the lists".to_owned(), "bytes".to_owned()];
        for Who { name, .. } in &self.contenders {
            if is_rate {
                headings.extend([format!("{name}\nMmsg/s"), "\nMB/s".to_owned()]);
            } else {
                headings.push(format!("{name}\nµs"));
            }
        }
        for Who { name, .. } in self.contenders.iter().skip(1) {
            headings.extend([format!("time to that of {name}\nmedian"), "\nrounds".to_owned()]);
        }
        let mut table = Table::new(headings);
        for point in &self.points {
            table.row(self.row(point, is_rate));
        }
        table
    }

    fn row(&self, point: &Point, is_rate: bool) -> Vec<String> {
        let ahead = point.ahead.map_or_else(
            || "nothing".to_owned(),
            |Ahead { list, depth }| format!("{depth} {}", list.words()),
        );
        let mut row = vec![ahead, point.bytes.to_string()];
        for result in &point.results {
            if is_rate {
                row.push(figures(result.messages_per_second / 1e6));
                row.push(figures(result.megabytes_per_second));
            } else {
                row.push(figures(result.ns.median / 1e3));
            }
        }
        for Ratio { ratio, .. } in &point.ratios {
            row.push(format!("{:.2}", ratio.median));
            row.push(format!("{:.2}–{:.2}", ratio.least, ratio.most));
        }
        row
    }
}

/// Three figures that count.
fn figures(value: f64) -> String {
    match value {
        _ if value < 1.0 => format!("{value:.3}"),
        _ if value < 10.0 => format!("{value:.2}"),
        _ if value < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}
