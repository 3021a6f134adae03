//! `tagmatch bench`: what matching costs, over the recorded traces and over made-up mixes.
//!
//! Ratios of one run are what counts. Not here: curves over depth with confidence (the criterion benches), and
//! instruction counts under valgrind.

use crate::build::{BUILD, Build};
use crate::device::Device;
use crate::measure::{self, Counter};
use crate::offload;
use crate::output::{complain, progress, write, write_json};
use crate::table::{Table, nanoseconds, or_dash};
use crate::{BenchArguments, End};
use serde::Serialize;
use tagmatch::matching::{Config, Matcher, Naive};
use tagmatch::replay::synthetic::{List, Masks, Mix, Order};
use tagmatch::replay::{self, Software, Target};
use tagmatch::traces::layout::{self, Layout};
use tagmatch::traces::{Bundled, Trace, bundled};

/// All that was measured, as it goes out as JSON.
#[derive(Debug, Serialize)]
struct Bench {
    build: Build,
    seed: u64,
    /// Whether host instructions could be counted.
    instructions_counted: bool,
    /// As it was said.
    device: String,
    /// Entries of the device's list that were asked for.
    tags_asked: u32,
    /// Entries of the list that the device was opened with.
    tags: Option<u32>,
    /// Of the tags that "engine" and "offload" see; the others see them as recorded.
    layout: &'static str,
    /// What "engine" and "offload" are.
    label: &'static str,
    rows: Vec<Row>,
}

/// One trace or mix.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    kind: &'static str,
    events: usize,
    results: Vec<Measured>,
}

/// One matcher over it.
#[derive(Debug, Serialize)]
struct Measured {
    matcher: &'static str,
    /// Whether the device below is a model, so that its part of the time says nothing about a card.
    is_model: bool,
    ns_per_event: f64,
    instructions_per_event: Option<f64>,
    /// Entries of the list that the device was opened with.
    tags: Option<u32>,
    /// Matches made by the device, of all matches: 0 to 1.
    share_in_hardware: Option<f64>,
}

/// What is measured.
enum Subject {
    Recorded(Bundled),
    MadeUp(Mix),
}

/// Measure, and print.
pub(crate) fn run(arguments: &BenchArguments) -> End {
    if arguments.device == Device::None {
        complain("bench --device none: there is nothing to compare software with; see `tagmatch replay`");
        return End::Unusable;
    }
    if let Some(end) = arguments.device.prepare(arguments.tags) {
        return end;
    }
    let only = arguments.only.as_deref().unwrap_or_default();
    let mut subjects: Vec<Subject> = bundled().iter().copied().map(Subject::Recorded).collect();
    subjects.extend(mixes().into_iter().map(Subject::MadeUp));
    subjects.retain(|subject| subject.name().contains(only));
    if subjects.is_empty() {
        complain(format_args!(
            "--only {only}: no trace and no mix has this in its name; see `tagmatch bench`"
        ));
        return End::Unusable;
    }
    let mut counter = Counter::new();
    let mut bench = Bench {
        build: BUILD,
        seed: arguments.seed,
        instructions_counted: counter.is_counting(),
        device: arguments.device.name().to_owned(),
        tags_asked: arguments.tags,
        tags: None,
        layout: "source-in-tag",
        label: arguments.device.label(),
        rows: Vec::new(),
    };
    let bar = progress(subjects.len());
    for subject in &subjects {
        bar.set_message(subject.name());
        match subject.measure(arguments, &mut counter) {
            Ok(row) => bench.rows.push(row),
            Err(what) => {
                bar.finish_and_clear();
                complain(format_args!("{}: {what}", subject.name()));
                return End::Disagreement;
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    bench.tags = bench.rows.iter().flat_map(|row| &row.results).filter_map(|result| result.tags).max();
    if arguments.json {
        write_json(&bench, End::AsExpected)
    } else {
        write(&text(&bench, arguments.device.is_model()), End::AsExpected)
    }
}

impl Subject {
    fn name(&self) -> String {
        match self {
            Self::Recorded(bundled) => bundled.name.trim_end_matches(".zst").to_owned(),
            Self::MadeUp(mix) => mix.name(),
        }
    }

    fn measure(&self, arguments: &BenchArguments, counter: &mut Counter) -> Result<Row, String> {
        let BenchArguments { device, tags, seed, .. } = arguments;
        let (tags, seed) = (*tags, *seed);
        let (trace, kind) = match self {
            Self::Recorded(bundled) => (bundled.read().map_err(|error| error.to_string())?, "recorded"),
            Self::MadeUp(mix) => {
                let mut trace = mix.trace(EVENTS_MIN, seed);
                let mut oracle = Software::new(Naive::new(), trace.counts());
                replay::record(&mut trace, &mut oracle).map_err(|fault| fault.to_string())?;
                (trace, "made up")
            }
        };
        let mut row = Row { name: self.name(), kind, events: trace.steps.len(), results: Vec::new() };
        let config = Config { hash_seed: seed, ..Config::default() };
        row.over("naive", &trace, counter, Software::new(Naive::new(), trace.counts()))?;
        row.over("matcher", &trace, counter, Software::new(Matcher::new(config), trace.counts()))?;
        let by_tag = layout::apply(Layout::SourceInTag, trace).map_err(|error| error.to_string())?;
        let settings = offload::Settings { device, tags, seed, contexts: CONTEXTS, sender_process: false };
        row.offloaded("engine, no tags", &by_tag, offload::Settings { tags: 0, ..settings }, counter)?;
        row.offloaded("offload", &by_tag, settings, counter)?;
        Ok(row)
    }
}

impl Row {
    /// Measure one matcher, once its results are found right.
    fn over(
        &mut self,
        matcher: &'static str,
        trace: &Trace,
        counter: &mut Counter,
        mut target: impl Target,
    ) -> Result<(), String> {
        let report = replay::run(trace, &mut target);
        if let Some(first) = report.first.first() {
            return Err(format!("{matcher}: {first}; nothing is measured that is not right"));
        }
        let cost =
            measure::cost(trace, counter, &mut target).map_err(|fault| format!("{matcher}: {fault}"))?;
        self.results.push(Measured {
            matcher,
            is_model: false,
            ns_per_event: cost.nanoseconds,
            instructions_per_event: cost.instructions,
            tags: None,
            share_in_hardware: None,
        });
        Ok(())
    }

    /// Measure the engine over the soft TM-SRQ, with the source in the tag, so that directed receives can go down.
    fn offloaded(
        &mut self,
        matcher: &'static str,
        trace: &Trace,
        settings: offload::Settings,
        counter: &mut Counter,
    ) -> Result<(), String> {
        let offloaded =
            offload::replay(trace, settings, counter).map_err(|fault| format!("{matcher}: {fault}"))?;
        if let Some(refusal) = offloaded.refusal {
            return Err(format!("{matcher}: the device matches nothing: {refusal}"));
        }
        let (Some(nanoseconds), None) = (offloaded.ns_per_event, offloaded.first.first()) else {
            let first = offloaded.first.first().map_or("nothing measured", String::as_str);
            return Err(format!("{matcher}: {first}; nothing is measured that is not right"));
        };
        self.results.push(Measured {
            matcher,
            is_model: offloaded.is_model,
            ns_per_event: nanoseconds,
            instructions_per_event: offloaded.instructions_per_event,
            tags: Some(offloaded.tags),
            share_in_hardware: Some(share(offloaded.matches_in_hardware, offloaded.matches)),
        });
        Ok(())
    }
}

/// 0 to 1.
#[expect(clippy::cast_precision_loss, reason = "counts of one replay are far below 2^53")]
fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// The made-up mixes: both lists, shallow to deep, every order, every kind of mask.
fn mixes() -> Vec<Mix> {
    let mut all = Vec::new();
    for list in [List::Posted, List::Unexpected] {
        for masks in [Masks::Full, Masks::Partial, Masks::Four] {
            for order in [Order::Forward, Order::Random, Order::Reverse] {
                for depth in [1, 16, 128, 1024, 8192] {
                    all.push(Mix { list, depth, order, masks });
                }
            }
        }
    }
    all
}

fn text(bench: &Bench, is_model: bool) -> String {
    let mut matchers: Vec<&str> = Vec::new();
    for measured in bench.rows.iter().flat_map(|row| &row.results) {
        if !matchers.contains(&measured.matcher) {
            matchers.push(measured.matcher);
        }
    }
    let mut headings = vec!["name".to_owned(), "events".to_owned()];
    for matcher in &matchers {
        headings.push(format!("{matcher}\nns"));
        if bench.instructions_counted {
            headings.push(format!("{matcher}\ninstructions"));
        }
    }
    headings.push("in\nhardware".to_owned());
    let mut table = Table::new(headings);
    for row in &bench.rows {
        let mut cells = vec![row.name.clone(), row.events.to_string()];
        for matcher in &matchers {
            let measured = row.results.iter().find(|measured| measured.matcher == *matcher);
            cells.push(or_dash(measured.map(|measured| measured.ns_per_event), nanoseconds));
            if bench.instructions_counted {
                cells.push(or_dash(
                    measured.and_then(|measured| measured.instructions_per_event),
                    nanoseconds,
                ));
            }
        }
        let share = row.results.iter().rev().find_map(|measured| measured.share_in_hardware);
        cells.push(or_dash(share, |share| format!("{:.1} %", share * 100.0)));
        table.row(cells);
    }
    let mut text = table.text();
    text += "\nPer event, medians of this run: compare columns, not runs. ";
    text += &if is_model {
        format!(
            "No card was measured: \"engine\" and \"offload\" are the {},\nwith the source in the tag; what the model \
             does is in their time, and a card would do it beside the host.\n",
            bench.label
        )
    } else {
        format!(
            "\"engine\" and \"offload\" are the {} ({}), with the source in the tag:\nmessages go one at a time, so their \
             time is mostly the wire's, and only their difference is the offload's.\n",
            bench.label, bench.device
        )
    };
    if !bench.instructions_counted {
        text += "Instructions: this machine lets no process count them (perf_event_open refused).\n";
    }
    if bench.build.debug {
        text += "Not optimised: times mean little. Use `cargo run --release -- bench`.\n";
    }
    text
}

/// Contexts that send, with a verbs device.
const CONTEXTS: u32 = 3;
/// Events of a made-up trace, at least.
const EVENTS_MIN: u32 = 16_384;
