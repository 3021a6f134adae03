//! What a message costs on long lists by what it costs on a short one, where only the memory hierarchy may show: the
//! engine and the matcher by themselves at depths 16, 65,536 and 1,048,576, in alternating batches of one run.
//!
//! Nobody else runs in between: a peer that scans long lists for seconds leaves caches that know nothing of ours, and
//! what is seen then is its doing (`peers` shows both). Whole lists are drained and filled, so a round touches all.
//!
//! `cargo bench --bench growth -- [--rounds N] [--json] [--record]`. Goals are shown, none is asserted: time is noisy.
#![deny(unsafe_code)]

mod common;

use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use common::arguments::Arguments;
use common::cycle::Cycle;
use common::engine::EngineSubject;
use common::runner::Runner;
use common::subject::MatcherSubject;
use common::workload::{self, Masks, ORDERS, Point, SCENARIOS};
use common::{median, record};

fn main() {
    let arguments = Arguments::of_process(&["--json", "--record"], &["--rounds"]);
    let bench = arguments.has("--bench");
    let rounds = arguments.number("--rounds").unwrap_or(if bench { 5 } else { 1 }).max(1);
    let depths: &[usize] = if bench { &DEPTHS } else { &[4, 16] };
    let mut lines = Vec::new();
    for masks in MASKS {
        for point in workload::points(&SCENARIOS, &[masks], &ORDERS, &depths[..1]) {
            for (subject, make) in SUBJECTS {
                let line = measure(subject, make, point, depths, rounds);
                eprintln!("{}", line.text());
                lines.push(line);
            }
        }
    }
    let value = to_json(&lines, rounds);
    if arguments.has("--json") {
        println!("{value:#}");
    }
    if arguments.has("--record") {
        let stem = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("benches/record")
            .join(format!("growth-{}", record::file_stem()));
        record::write_or_exit(&stem.with_extension("md"), &to_markdown(&lines, rounds));
    }
}

/// Makes what is measured at one depth.
type Make = fn(Point) -> Box<dyn Runner>;

/// One subject at one point, by depth.
#[derive(Debug)]
struct Line {
    name: String,
    subject: &'static str,
    goal: f64,
    /// Depth, nanoseconds per message, times the first depth.
    seen: Vec<(usize, f64, f64)>,
}

fn measure(subject: &'static str, make: Make, point: Point, depths: &[usize], rounds: usize) -> Line {
    let mut runners: Vec<_> = depths.iter().map(|&depth| make(Point { depth, ..point })).collect();
    let mut seen = vec![Vec::new(); depths.len()];
    for round in 0..=rounds {
        for (runner, seen) in runners.iter_mut().zip(&mut seen) {
            let nanoseconds = runner.batch(BATCH).pair;
            // The first round is the warming up.
            if round > 0 {
                seen.push(nanoseconds);
            }
        }
    }
    let ratios: Vec<f64> = seen
        .iter()
        .map(|times| {
            median(&mut times.iter().zip(&seen[0]).map(|(long, short)| long / short).collect::<Vec<_>>())
        })
        .collect();
    Line {
        name: format!("{}/{}/{}", point.scenario, point.masks, point.order),
        subject,
        goal: if point.masks == Masks::FourClasses { 6.0 } else { 3.5 },
        seen: depths
            .iter()
            .zip(&mut seen)
            .zip(ratios)
            .map(|((&depth, times), ratio)| (depth, median(times), ratio))
            .collect(),
    }
}

impl Line {
    fn text(&self) -> String {
        let mut text = format!("{:<34} {:<8}", self.name, self.subject);
        for (depth, nanoseconds, ratio) in &self.seen {
            let _ = write!(text, " | {depth}: {nanoseconds:.1} ns x{ratio:.2}");
        }
        text
    }
}

fn to_json(lines: &[Line], rounds: usize) -> Value {
    let line = |line: &Line| {
        let by_depth: Vec<Value> = line
            .seen
            .iter()
            .map(|(depth, nanoseconds, ratio)| json!({ "depth": depth, "pair_ns": nanoseconds, "times_first": ratio }))
            .collect();
        json!({ "point": line.name, "subject": line.subject, "goal_at_65536": line.goal, "by_depth": by_depth })
    };
    json!({
        "bench": "growth",
        "circumstances": record::circumstances(),
        "rounds": rounds,
        "points": lines.iter().map(line).collect::<Vec<_>>(),
    })
}

fn to_markdown(lines: &[Line], rounds: usize) -> String {
    let mut text = format!(
        "# Long lists by short ones\n\n{}\nMedians of {rounds} alternating rounds, ns per message, post and match together. \
         What is measured: benches/README.md.\n\n\
         | point | subject | 16 | 65,536 | times | goal | 1,048,576 | times |\n|---|---|--:|--:|--:|--:|--:|--:|\n",
        record::headline()
    );
    for line in lines {
        let [short, long, longest] = line.seen[..] else { continue };
        let _ = writeln!(
            text,
            "| {} | {} | {:.1} | {:.1} | {:.2} | {} | {:.1} | {:.2} |",
            line.name, line.subject, short.1, long.1, long.2, line.goal, longest.1, longest.2
        );
    }
    text
}

const SUBJECTS: [(&str, Make); 2] = [
    ("engine", |point| Box::new(Cycle::new(EngineSubject::default(), point, point.depth))),
    ("matcher", |point| Box::new(Cycle::new(MatcherSubject::default(), point, point.depth))),
];
/// The first is what the others are compared with.
const DEPTHS: [usize; 3] = [16, 65_536, 1 << 20];
const MASKS: [Masks; 3] = [Masks::Full, Masks::Partial, Masks::FourClasses];
/// Of one depth in one round; a whole drain of the longest list takes longer.
const BATCH: Duration = Duration::from_millis(20);
