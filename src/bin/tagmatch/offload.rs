//! A replay through the engine with an offload device.
//!
//! Over a model (the soft TM-SRQ, the simulated HCA) results are exact, and times are the model's and say nothing about
//! a card.

use crate::device::Device;
use crate::measure::{self, Counter};
use crate::reasons::{CANCELLED_IN_DEVICE, DOES_NOT_MATCH, MESSAGE_WAS_FIRST, TAKEN_BY_SOFTWARE};
use crate::replay::descriptions;
use serde::Serialize;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
use tagmatch::device::Device as _;
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
pub(crate) trait Over: Target {
    fn statistics(&self) -> &Statistics;
    fn matches(&self) -> u64;
    /// Receives that were in the device when they were cancelled.
    fn cancelled_in_device(&self) -> u64;
    /// Entries of its list.
    fn tags(&self) -> u32;
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

    fn cancelled_in_device(&self) -> u64 {
        self.cancelled_in_device()
    }

    fn tags(&self) -> u32 {
        self.tags()
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

    fn cancelled_in_device(&self) -> u64 {
        self.cancelled_in_device()
    }

    fn tags(&self) -> u32 {
        self.device().capabilities().tags
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
    /// Entries of the list that the device was opened with; 0: it does not match.
    pub(crate) tags: u32,
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
    /// Receives that were cancelled before a message took them.
    pub(crate) cancelled: u64,
    /// Receives that the device did not match, by reason. With `matches_in_hardware` they are all that ended: `matches`
    /// and `cancelled`.
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
    let (label, is_model) = (settings.device.label(), settings.device.is_model());
    let mut prompt = target(trace, settings, Schedule::Prompt)?;
    let mut offloaded = Offloaded::of(trace, &mut *prompt, (label, is_model), settings.tags);
    if settings.device.is_driven() {
        let mut late = target(trace, settings, Schedule::Random(settings.seed))?;
        let report = replay::run(trace, &mut *late);
        offloaded.add(&format!("delayed by seed {}", settings.seed), &report);
    }
    offloaded.measure(trace, &mut *prompt, counter)?;
    Ok(offloaded)
}

/// Replay a trace over a target that does things in its own time, of which this is said: what it is, and whether it is a
/// model.
pub(crate) fn replay_over(
    trace: &Trace,
    target: &mut dyn Over,
    what: (&'static str, bool),
    counter: &mut Counter,
) -> Result<Offloaded, Fault> {
    let mut offloaded = Offloaded::of(trace, target, what, 0);
    offloaded.measure(trace, target, counter)?;
    Ok(offloaded)
}

impl Offloaded {
    /// A replay with every answer checked, by a device that is never late.
    fn of(
        trace: &Trace,
        target: &mut dyn Over,
        (label, is_model): (&'static str, bool),
        tags_asked: u32,
    ) -> Self {
        let report = replay::run(trace, target);
        let ended = Ended::of(trace);
        let mut offloaded = Self {
            label,
            is_model,
            tags: target.tags(),
            refusal: target.refusal().filter(|_| tags_asked > 0),
            checked: 0,
            disagreements: 0,
            first: Vec::new(),
            ns_per_event: None,
            instructions_per_event: None,
            matches: target.matches(),
            matches_in_hardware: target.statistics().matched_by_device,
            matches_of_posted: ended.matched_posted,
            cancelled: ended.cancelled,
            reasons: ended.reasons(target.statistics(), target.tags(), target.cancelled_in_device()),
        };
        offloaded.add("never late", &report);
        offloaded
    }

    /// What it costs, if it was right.
    fn measure(&mut self, trace: &Trace, target: &mut dyn Over, counter: &mut Counter) -> Result<(), Fault> {
        if self.disagreements == 0 {
            target.begin_measuring();
            let cost = measure::cost(trace, counter, target)?;
            self.ns_per_event = Some(cost.nanoseconds);
            self.instructions_per_event = cost.instructions;
        }
        Ok(())
    }

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

/// How a trace's receives end.
#[derive(Clone, Copy, Default)]
struct Ended {
    /// They took a message that was there before them.
    late: u64,
    /// They were posted when their message arrived.
    matched_posted: u64,
    /// They took none.
    cancelled: u64,
}

impl Ended {
    fn of(trace: &Trace) -> Self {
        let mut ended = Self::default();
        for step in &trace.steps {
            match (step.event, step.expected) {
                (Event::Post { .. } | Event::Claim { .. }, Outcome::Matched(..)) => ended.late += 1,
                (Event::Arrive { .. }, Outcome::Matched(..)) => ended.matched_posted += 1,
                (Event::Cancel { .. }, Outcome::Cancelled) => ended.cancelled += 1,
                _ => {}
            }
        }
        ended
    }

    /// Receives that took a message which was there before them, and what the engine says of those that were queued. It
    /// follows those only while there is a device that matches.
    fn reasons(self, statistics: &Statistics, tags: u32, cancelled_in_device: u64) -> Vec<Reasoned> {
        let unmatched = if tags == 0 { self.matched_posted + self.cancelled } else { 0 };
        let queued = Reason::ALL.iter().map(|&reason| (reason.name(), statistics.ended(reason)));
        let from_the_device = [
            (TAKEN_BY_SOFTWARE, statistics.used_by_own_device + statistics.taken_back),
            (CANCELLED_IN_DEVICE, cancelled_in_device),
        ];
        [(MESSAGE_WAS_FIRST, self.late), (DOES_NOT_MATCH, unmatched)]
            .into_iter()
            .chain(queued)
            .chain(from_the_device)
            .filter(|(_, receives)| *receives > 0)
            .map(|(reason, receives)| Reasoned { reason, receives })
            .collect()
    }
}
