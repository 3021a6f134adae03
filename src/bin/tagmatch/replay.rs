//! `tagmatch replay`: traces over everything that matches, every expected result checked.

use crate::build::{BUILD, Build};
use crate::device::Device;
use crate::input::{Input, inputs};
use crate::measure::{self, Counter};
use crate::offload::{self, Offloaded};
use crate::output::{complain, progress, write, write_json};
use crate::reasons::{self, tallied};
use crate::table::{Table, nanoseconds, or_dash};

use crate::{End, ReplayArguments, TAGS};
use serde::Serialize;
use tagmatch::matching::{Config, Matcher, Naive};
use tagmatch::replay::{self, Report, Software, Target};
use tagmatch::traces::Trace;
use tagmatch::traces::layout::Layout;

/// All that came of it, as it goes out as JSON.
#[derive(Debug, Serialize)]
struct Replayed {
    build: Build,
    device: String,
    /// Entries of the device's list that were asked for.
    tags_asked: Option<u32>,
    /// Entries of the list that the device was opened with; 0: it does not match. Absent if it was never opened.
    tags: Option<u32>,
    seed: u64,
    layout: &'static str,
    traces: Vec<Row>,
    events: u64,
    checked: u64,
    disagreements: u64,
    unusable: Vec<String>,
}

/// One trace.
#[derive(Debug, Serialize)]
struct Row {
    trace: String,
    events: u64,
    /// Expected results checked, over all that the trace was replayed over.
    checked: u64,
    disagreements: u64,
    posted_max: usize,
    unexpected_max: usize,
    software: Vec<Matched>,
    offload: Option<Offloaded>,
    /// Why the offload could not be tried at all.
    fault: Option<String>,
}

/// One trace over one software matcher.
#[derive(Debug, Serialize)]
struct Matched {
    matcher: &'static str,
    disagreements: u64,
    first: Vec<String>,
    fault: Option<String>,
    ns_per_event: Option<f64>,
}

/// Replay, and print what came of it.
pub(crate) fn run(arguments: &ReplayArguments) -> End {
    if let Some(what) = out_of_place(arguments) {
        complain(what);
        return End::Unusable;
    }
    if let Some(end) = arguments.device.prepare(arguments.tags()) {
        return end;
    }
    let inputs = match inputs(&arguments.paths) {
        Ok(inputs) => inputs,
        Err(what) => {
            complain(what);
            return End::Unusable;
        }
    };
    let replayed = replay_all(arguments, &inputs);
    let end = if !replayed.unusable.is_empty() {
        End::Unusable
    } else if replayed.disagreements > 0 {
        End::Disagreement
    } else {
        End::AsExpected
    };
    if arguments.json {
        write_json(&replayed, end)
    } else {
        write(&text(&replayed, arguments.device.label()), end)
    }
}

impl ReplayArguments {
    fn tags(&self) -> u32 {
        self.tags.unwrap_or(TAGS)
    }
}

/// An option that says something of a device which is not there.
fn out_of_place(arguments: &ReplayArguments) -> Option<String> {
    let ReplayArguments { device, tags, senders, sender_process, .. } = arguments;
    let has_senders = matches!(device, Device::Hca | Device::Verbs(_));
    let option = if tags.is_some() && *device == Device::None {
        "--tags is of a device's list"
    } else if senders.is_some() && !has_senders {
        "--senders is of verbs devices (hca, verbs, a name)"
    } else if *sender_process && !has_senders {
        "--sender-process is of verbs devices (hca, verbs, a name)"
    } else {
        return None;
    };
    Some(format!("{option}; --device is {}", device.name()))
}

fn replay_all(arguments: &ReplayArguments, inputs: &[Input]) -> Replayed {
    let layout = Layout::from(arguments.layout);
    let is_offloading = arguments.device != Device::None;
    let mut replayed = Replayed {
        build: BUILD,
        device: arguments.device.name().to_owned(),
        tags_asked: is_offloading.then_some(arguments.tags()),
        tags: None,
        seed: arguments.seed,
        layout: if layout == Layout::Recorded { RECORDED } else { "source-in-tag" },
        traces: Vec::new(),
        events: 0,
        checked: 0,
        disagreements: 0,
        unusable: Vec::new(),
    };
    let mut counter = Counter::new();
    let bar = progress(inputs.len());
    for input in inputs {
        bar.set_message(input.name());
        match input.read(layout) {
            Ok(trace) => {
                let row = replay_one(arguments, &trace, &mut counter);
                replayed.events += row.events;
                replayed.checked += row.checked;
                replayed.disagreements += row.disagreements;
                replayed.traces.push(row);
            }
            Err(what) => {
                bar.suspend(|| complain(&what));
                replayed.unusable.push(what);
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    replayed.tags = replayed.traces.iter().find_map(|row| Some(row.offload.as_ref()?.tags));
    replayed
}

fn replay_one(arguments: &ReplayArguments, trace: &Trace, counter: &mut Counter) -> Row {
    let depths = trace.depths();
    let events = trace.steps.len() as u64;
    let mut row = Row {
        trace: trace.short_name().to_owned(),
        events,
        checked: 0,
        disagreements: 0,
        posted_max: depths.posted_max,
        unexpected_max: depths.unexpected_max,
        software: Vec::new(),
        offload: None,
        fault: None,
    };
    let config = Config { hash_seed: arguments.seed, ..Config::default() };
    row.over("naive", trace, counter, Software::new(Naive::new(), trace.counts()));
    row.over("matcher", trace, counter, Software::new(Matcher::new(config), trace.counts()));
    if arguments.device != Device::None {
        let ReplayArguments { device, seed, senders, sender_process, .. } = arguments;
        let settings = offload::Settings {
            device,
            tags: arguments.tags(),
            seed: *seed,
            contexts: senders.unwrap_or(CONTEXTS),
            sender_process: *sender_process,
        };
        match offload::replay(trace, settings, counter) {
            Ok(offloaded) => {
                row.checked += offloaded.checked;
                row.disagreements += offloaded.disagreements;
                row.offload = Some(offloaded);
            }
            Err(fault) => {
                row.disagreements += 1;
                row.fault = Some(fault.to_string());
            }
        }
    }
    row
}

impl Row {
    /// Replay over one software matcher: checked, then measured.
    fn over(&mut self, matcher: &'static str, trace: &Trace, counter: &mut Counter, mut target: impl Target) {
        let report = replay::run(trace, &mut target);
        let cost = measure::cost(trace, counter, &mut target).ok();
        self.checked += report.checked;
        self.disagreements += report.disagreements + u64::from(report.fault.is_some());
        self.software.push(Matched {
            matcher,
            disagreements: report.disagreements,
            first: descriptions(&report),
            fault: report.fault.map(|(line, fault)| format!("line {line}: {fault}")),
            ns_per_event: cost.map(|cost| cost.nanoseconds),
        });
    }

    fn nanoseconds(&self, matcher: &str) -> Option<f64> {
        self.software.iter().find(|matched| matched.matcher == matcher)?.ns_per_event
    }
}

/// The first disagreements in words.
pub(crate) fn descriptions(report: &Report) -> Vec<String> {
    report.first.iter().map(ToString::to_string).collect()
}

fn text(replayed: &Replayed, label: &str) -> String {
    let mut table = Table::new([
        "trace",
        "events",
        "checked",
        "wrong",
        "naive\nns",
        "matcher\nns",
        "offload\nns",
        "in\nhardware",
        "of\nposted",
        "posted\nmax",
        "unexpected\nmax",
    ]);
    for row in &replayed.traces {
        let offload = row.offload.as_ref();
        table.row(vec![
            row.trace.clone(),
            row.events.to_string(),
            row.checked.to_string(),
            row.disagreements.to_string(),
            or_dash(row.nanoseconds("naive"), nanoseconds),
            or_dash(row.nanoseconds("matcher"), nanoseconds),
            or_dash(offload.and_then(|offload| offload.ns_per_event), nanoseconds),
            or_dash(offload, |offload| percent(offload.matches_in_hardware, offload.matches)),
            or_dash(offload, |offload| percent(offload.matches_in_hardware, offload.matches_of_posted)),
            row.posted_max.to_string(),
            row.unexpected_max.to_string(),
        ]);
    }
    let unusable = tallied(replayed.unusable.len(), "input") + " unusable";
    if replayed.traces.is_empty() {
        return format!("nothing was replayed: {unusable}\n");
    }
    let mut text = table.text();
    text.push('\n');
    let offloads = replayed.traces.iter().filter_map(|row| Some((row.trace.as_str(), row.offload.as_ref()?)));
    text += &reasons::text(offloads, replayed.layout == RECORDED);
    let refusal = replayed.traces.iter().find_map(|row| row.offload.as_ref()?.refusal.as_deref());
    if let Some(refusal) = refusal {
        text += &format!("the device matched nothing: {refusal}\n\n");
    }
    text += &complaints(replayed);
    text += &format!(
        "{}, {}, {} checked, {}",
        tallied(replayed.traces.len(), "trace"),
        tallied(replayed.events, "event"),
        tallied(replayed.checked, "expected result"),
        tallied(replayed.disagreements, "disagreement"),
    );
    if !replayed.unusable.is_empty() {
        text += &format!(", {unusable}");
    }
    text + &legend(replayed, label)
}

/// What the columns mean, and what was replayed over.
fn legend(replayed: &Replayed, label: &str) -> String {
    let debug = if replayed.build.debug { " (not optimised: they mean little)" } else { "" };
    let mut text =
        format!("\nns: median nanoseconds per event in this run{debug}; layout {}\n", replayed.layout);
    let Some(asked) = replayed.tags_asked else { return text + "offload: none\n" };
    text += &format!("offload: {label}, ");
    text += &match replayed.tags {
        Some(tags) if tags == asked => format!("{}\n", tallied(tags, "tag")),
        Some(tags) => format!("{} ({asked} asked for)\n", tallied(tags, "tag")),
        None => "not opened\n".into(),
    };
    text + "in hardware: matches made by the device, of all; of posted: of those whose receive was posted before its \
            message\n"
}

/// The first disagreements of each trace.
fn complaints(replayed: &Replayed) -> String {
    let mut text = String::new();
    for row in &replayed.traces {
        for matched in &row.software {
            for what in matched.first.iter().chain(&matched.fault) {
                text += &format!("{}, {}: {what}\n", row.trace, matched.matcher);
            }
        }
        for what in row.offload.iter().flat_map(|offload| &offload.first).chain(&row.fault) {
            text += &format!("{}, offload: {what}\n", row.trace);
        }
    }
    text
}

/// A share in percent, rounded down to a tenth, so that 100 % means all.
fn percent(part: u64, whole: u64) -> String {
    let tenths = part.saturating_mul(1000) / whole.max(1);
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// What JSON calls the layout as recorded.
const RECORDED: &str = "recorded";
/// Contexts that send, with a verbs device.
const CONTEXTS: u32 = 3;
