//! A replay through the engine with an offload device.
//!
//! The device is the soft TM-SRQ, a model in this process: results are exact, times are the model's and say nothing
//! about a card.

use crate::measure::{self, Counter};
use crate::replay::descriptions;
use serde::Serialize;
use tagmatch::offload::Reason;
use tagmatch::replay::{self, Fault, Offload, Schedule};
use tagmatch::traces::{Event, Outcome, Trace};

/// What to offload to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Entries of the device's matching list; 0: the engine's software fallback.
    pub(crate) tags: u32,
    /// Seed of hashing and of the schedule that delays things at random.
    pub(crate) seed: u64,
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Offloaded {
    /// What the device is.
    pub(crate) label: &'static str,
    /// Times are those of a model and not of a card.
    pub(crate) is_model: bool,
    /// Answers compared with the expected result.
    pub(crate) checked: u64,
    /// Answers that were not as expected, and breakdowns.
    pub(crate) disagreements: u64,
    /// The first of them, in words.
    pub(crate) first: Vec<String>,
    /// Median time per event, device included.
    pub(crate) ns_per_event: Option<f64>,
    /// Fewest instructions per event, device included, where they can be counted.
    pub(crate) instructions_per_event: Option<f64>,
    /// Matches.
    pub(crate) matches: u64,
    /// Of these, made by the device.
    pub(crate) matches_in_hardware: u64,
    /// Receives that the device did not match, by reason.
    pub(crate) reasons: Vec<Reasoned>,
}

/// Why receives were not matched by the device.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Reasoned {
    /// The reason.
    pub(crate) reason: &'static str,
    /// How many receives.
    pub(crate) receives: u64,
}

/// Replay a trace through the engine with the soft TM-SRQ, twice: with a device that is never late, and with one
/// whose commands, completions and data are delayed at random. Shares and times are those of the first.
pub(crate) fn replay(trace: &Trace, settings: Settings, counter: &mut Counter) -> Result<Offloaded, Fault> {
    let mut prompt = target(trace, settings, Schedule::Prompt)?;
    let report = replay::run(trace, &mut prompt);
    let mut offloaded = Offloaded {
        label: LABEL,
        is_model: true,
        checked: 0,
        disagreements: 0,
        first: Vec::new(),
        ns_per_event: None,
        instructions_per_event: None,
        matches: prompt.matches(),
        matches_in_hardware: prompt.statistics().matched_by_device,
        reasons: reasons(trace, &prompt),
    };
    offloaded.add("never late", &report);
    let mut late = target(trace, settings, Schedule::Random(settings.seed))?;
    let report = replay::run(trace, &mut late);
    offloaded.add(&format!("delayed by seed {}", settings.seed), &report);
    if offloaded.disagreements == 0 {
        let cost = measure::cost(trace, counter, &mut prompt)?;
        offloaded.ns_per_event = Some(cost.nanoseconds);
        offloaded.instructions_per_event = cost.instructions;
    }
    Ok(offloaded)
}

impl Offloaded {
    fn add(&mut self, schedule: &str, report: &replay::Report) {
        self.checked += report.checked;
        self.disagreements += report.disagreements + u64::from(report.fault.is_some());
        self.first.extend(descriptions(report).into_iter().map(|what| format!("{schedule}: {what}")));
        if let Some((line, fault)) = &report.fault {
            self.first.push(format!("{schedule}: line {line}: {fault}"));
        }
    }
}

fn target(trace: &Trace, settings: Settings, schedule: Schedule) -> Result<Offload, Fault> {
    let settings = replay::Settings {
        tags: settings.tags,
        devices: 1,
        second_path: false,
        schedule,
        seed: settings.seed,
    };
    Offload::new(settings, trace.counts())
}

/// Receives that took a message which was there before them, and what the engine says of those that were queued.
fn reasons(trace: &Trace, target: &Offload) -> Vec<Reasoned> {
    let is_late = |step: &&tagmatch::traces::Step| {
        matches!(step.event, Event::Post { .. } | Event::Claim { .. })
            && matches!(step.expected, Outcome::Matched(..))
    };
    let late = trace.steps.iter().filter(is_late).count() as u64;
    let statistics = target.statistics();
    std::iter::once(Reasoned { reason: "message_was_first", receives: late })
        .chain(
            Reason::ALL
                .iter()
                .map(|&reason| Reasoned { reason: reason.name(), receives: statistics.ended(reason) }),
        )
        .filter(|reasoned| reasoned.receives > 0)
        .collect()
}

/// What the device is called.
pub(crate) const LABEL: &str = "engine over the soft TM-SRQ (a model, not a card)";
