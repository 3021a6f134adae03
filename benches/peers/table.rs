//! What the comparison prints and writes.

use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;

use crate::common::{record, runner::Nanoseconds};
use crate::options::Options;

/// One peer at one point.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) point: String,
    pub(crate) peer: &'static str,
    /// Messages of a round.
    pub(crate) sample: usize,
    pub(crate) nanoseconds: Nanoseconds,
    /// Ours by theirs.
    pub(crate) search_ratio: f64,
    pub(crate) pair_ratio: f64,
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Table {
    ucx: Option<String>,
    points: Vec<Vec<Line>>,
}

impl Table {
    pub(crate) const fn new(ucx: Option<String>) -> Self {
        Self { ucx, points: Vec::new() }
    }

    /// Adds one point and shows it at once, as the whole takes minutes.
    pub(crate) fn push(&mut self, lines: Vec<Line>) {
        if self.points.is_empty() {
            eprintln!("{:<44} {HEADER}", "ns per message: search / pair; ours by theirs");
        }
        eprintln!("{}", row(&lines));
        self.points.push(lines);
    }

    /// Prints JSON, writes the record, as asked.
    pub(crate) fn finish(&self, options: &Options) {
        let value = self.to_json(options);
        if options.json {
            println!("{value:#}");
        }
        if options.record {
            let stem = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/record").join(record::file_stem());
            record::write_or_exit(&stem.with_extension("json"), &format!("{value:#}\n"));
            record::write_or_exit(&stem.with_extension("md"), &self.to_markdown(options));
        }
    }

    fn to_json(&self, options: &Options) -> Value {
        let line = |line: &Line| {
            json!({
                "peer": line.peer,
                "messages_per_round": line.sample,
                "fill_ns": rounded(line.nanoseconds.fill),
                "search_ns": rounded(line.nanoseconds.search),
                "pair_ns": rounded(line.nanoseconds.pair),
                "ours_by_this_search": rounded(line.search_ratio),
                "ours_by_this_pair": rounded(line.pair_ratio),
            })
        };
        let points: Vec<Value> = self
            .points
            .iter()
            .filter_map(|lines| {
                let peers: Vec<Value> = lines.iter().map(line).collect();
                Some(json!({ "point": lines.first()?.point, "peers": peers }))
            })
            .collect();
        json!({
            "bench": "peers",
            "circumstances": record::circumstances(),
            "ucx": self.ucx,
            "rounds": options.rounds,
            "batch_ms": u64::try_from(options.batch.as_millis()).unwrap_or(u64::MAX),
            "points": points,
        })
    }

    fn to_markdown(&self, options: &Options) -> String {
        let mut text = format!(
            "# Matching beside UCX and a vector scan\n\n{}; UCX {}, `TLS=self`.\n\
             Medians of {} alternating rounds, ns per message. What is measured: benches/README.md.\n\n",
            record::headline(),
            self.ucx.as_deref().unwrap_or("absent"),
            options.rounds,
        );
        text.push_str("| point | peer | fill | search | pair | ours / this, search | ours / this, pair |\n");
        text.push_str("|---|---|--:|--:|--:|--:|--:|\n");
        for line in self.points.iter().flatten() {
            let ns = line.nanoseconds;
            let shown = |value: f64| {
                if value > 0.0 && value.is_finite() { significant(value) } else { String::new() }
            };
            let sampled =
                if line.point.ends_with(&format!("/{}", line.sample)) || line.point.starts_with("script") {
                    ""
                } else {
                    " †"
                };
            let _ = writeln!(
                text,
                "| {}{sampled} | {} | {} | {} | {} | {} | {} |",
                line.point,
                line.peer,
                shown(ns.fill),
                shown(ns.search),
                shown(ns.pair),
                shown(line.search_ratio),
                shown(line.pair_ratio),
            );
        }
        text.push_str(
            "\n† a sample of the list in each round, which stays at its full depth (or 1,024 probes).\n",
        );
        text
    }
}

/// One point in one line.
fn row(lines: &[Line]) -> String {
    let mut text = format!("{:<44}", lines.first().map_or("", |line| &line.point));
    for line in lines {
        let ns = line.nanoseconds;
        if ns.search > 0.0 {
            let _ = write!(text, " | {} {} / {}", line.peer, significant(ns.search), significant(ns.pair));
        } else {
            let _ = write!(text, " | {} {}", line.peer, significant(ns.pair));
        }
        if line.peer != lines[0].peer {
            if ns.search > 0.0 {
                let _ = write!(text, " (x{}", significant(line.search_ratio));
                let _ = write!(text, " / x{})", significant(line.pair_ratio));
            } else {
                let _ = write!(text, " (x{})", significant(line.pair_ratio));
            }
        }
    }
    text
}

/// Three digits that count.
fn significant(value: f64) -> String {
    let magnitude = value.abs();
    let digits = [100.0, 10.0, 1.0, 0.1, 0.01].iter().take_while(|&&limit| magnitude < limit).count();
    format!("{value:.digits$}")
}

fn rounded(value: f64) -> Value {
    if value.is_finite() { json!((value * 1e5).round() / 1e5) } else { Value::Null }
}

const HEADER: &str = "| peer search / pair (ours by theirs)";
