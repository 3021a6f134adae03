//! A replay through the engine with an offload device.
//!
//! Over a model (the soft TM-SRQ, the simulated HCA) results are exact, and times are the model's and say nothing about
//! a card.

use crate::device::Device;
use crate::measure::{self, Counter};
use crate::replay::descriptions;
use serde::Serialize;
use tagmatch::offload::{Reason, Statistics};
use tagmatch::replay::{self, Fault, Offload, Schedule, Target};
use tagmatch::traces::{Event, Outcome, Trace};

/// What to offload to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings<'a> {
    /// The device.
    pub(crate) device: &'a Device,
    /// Entries of the device's matching list; 0: the engine's software fallback.
    pub(crate) tags: u32,
    /// Seed of hashing and of the schedule that delays things at random.
    pub(crate) seed: u64,
    /// Contexts that send, with a verbs device.
    pub(crate) contexts: u32,
    /// Whether they are in a process of their own.
    pub(crate) sender_process: bool,
}

/// A target that can say what was offloaded.
trait Over: Target {
    fn statistics(&self) -> &Statistics;
    fn matches(&self) -> u64;
    /// Why it does not match, although it should.
    fn refusal(&self) -> Option<String>;
    /// From now on only time counts.
    fn begin_measuring(&mut self);
}

impl Over for Offload {
    fn statistics(&self) -> &Statistics {
        self.statistics()
    }

    fn matches(&self) -> u64 {
        self.matches()
    }

    fn refusal(&self) -> Option<String> {
        None
    }

    fn begin_measuring(&mut self) {}
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
impl Over for replay::verbs::Verbs {
    fn statistics(&self) -> &Statistics {
        self.statistics()
    }

    fn matches(&self) -> u64 {
        self.matches()
    }

    fn refusal(&self) -> Option<String> {
        self.device().refusal().map(ToString::to_string)
    }

    fn begin_measuring(&mut self) {
        self.set_checking(false);
    }
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Offloaded {
    /// What the device is.
    pub(crate) label: &'static str,
    /// Times are those of a model and not of a card.
    pub(crate) is_model: bool,
    /// Why the device does not match.
    pub(crate) refusal: Option<String>,
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
    /// Of all matches, those whose receive was posted when the message arrived: what a device can match at most.
    pub(crate) matches_of_posted: u64,
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

/// Replay a trace through the engine with the device, twice where the device can be told when to do what: once with one
/// that is never late, and once with one whose commands, completions and data are delayed at random. Shares and times
/// are those of the first.
pub(crate) fn replay(trace: &Trace, settings: Settings, counter: &mut Counter) -> Result<Offloaded, Fault> {
    let mut prompt = target(trace, settings, Schedule::Prompt)?;
    let report = replay::run(trace, &mut *prompt);
    let mut offloaded = Offloaded {
        label: settings.device.label(),
        is_model: settings.device.is_model(),
        refusal: prompt.refusal().filter(|_| settings.tags > 0),
        checked: 0,
        disagreements: 0,
        first: Vec::new(),
        ns_per_event: None,
        instructions_per_event: None,
        matches: prompt.matches(),
        matches_in_hardware: prompt.statistics().matched_by_device,
        matches_of_posted: matches_of_posted(trace),
        reasons: reasons(trace, prompt.statistics()),
    };
    offloaded.add("never late", &report);
    if settings.device.is_model() {
        let mut late = target(trace, settings, Schedule::Random(settings.seed))?;
        let report = replay::run(trace, &mut *late);
        offloaded.add(&format!("delayed by seed {}", settings.seed), &report);
    }
    if offloaded.disagreements == 0 {
        prompt.begin_measuring();
        let cost = measure::cost(trace, counter, &mut *prompt)?;
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

fn target(trace: &Trace, settings: Settings, schedule: Schedule) -> Result<Box<dyn Over>, Fault> {
    match settings.device {
        Device::None | Device::Soft => {
            let Settings { tags, seed, .. } = settings;
            let settings = replay::Settings { tags, devices: 1, second_path: false, schedule, seed };
            Ok(Box::new(Offload::new(settings, trace.counts())?))
        }
        #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
        device @ (Device::Hca | Device::Verbs(_)) => {
            let Settings { tags, seed, contexts, sender_process, .. } = settings;
            let settings = crate::verbs::Settings { tags, seed, contexts, sender_process, schedule };
            Ok(Box::new(crate::verbs::target(device, trace, settings)?))
        }
        #[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
        Device::Hca | Device::Verbs(_) => Err(Fault::new("verbs devices need Linux on 64 bits")),
    }
}

/// Receives that were posted when their message arrived.
fn matches_of_posted(trace: &Trace) -> u64 {
    let is_it = |step: &&tagmatch::traces::Step| {
        matches!((step.event, step.expected), (Event::Arrive { .. }, Outcome::Matched(..)))
    };
    trace.steps.iter().filter(is_it).count() as u64
}

/// Receives that took a message which was there before them, and what the engine says of those that were queued.
fn reasons(trace: &Trace, statistics: &Statistics) -> Vec<Reasoned> {
    let is_late = |step: &&tagmatch::traces::Step| {
        matches!(step.event, Event::Post { .. } | Event::Claim { .. })
            && matches!(step.expected, Outcome::Matched(..))
    };
    let late = trace.steps.iter().filter(is_late).count() as u64;
    std::iter::once(Reasoned { reason: "message_was_first", receives: late })
        .chain(
            Reason::ALL
                .iter()
                .map(|&reason| Reasoned { reason: reason.name(), receives: statistics.ended(reason) }),
        )
        .filter(|reasoned| reasoned.receives > 0)
        .collect()
}
