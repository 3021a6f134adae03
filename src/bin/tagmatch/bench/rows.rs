//! What matching costs over the recorded traces and over made-up mixes, an event at a time.
//!
//! Not here: curves over depth with confidence (the criterion benches), and instruction counts under valgrind.

use super::ends::{Matcher as By, Wire};
use super::limit::Limit;
use super::over::Endpoints;
use super::report::{Replayed, Row};
use crate::device::Device;
use crate::measure::{self, Counter};
use crate::offload::{self, Offloaded};
use std::collections::BTreeMap;
use tagmatch::matching::{Config, Matcher, Naive};
use tagmatch::replay::synthetic::{List, Masks, Mix, Order};
use tagmatch::replay::{self, Fault, Software, Target};
use tagmatch::traces::layout::{self, Layout};
use tagmatch::traces::{Bundled, Trace, bundled};

/// What is replayed.
#[derive(Clone, Debug)]
pub(super) enum Subject {
    Recorded(Bundled),
    MadeUp(Mix),
}

/// What matches.
#[derive(Clone, Copy, Debug)]
pub(super) enum Over<'a> {
    /// The software matchers alone.
    Software,
    /// The engine over a device: without its list, and with it if it is to have one.
    Device {
        /// As it is asked for.
        name: &'a str,
        device: &'a Device,
        tags: u32,
        is_offloading: bool,
    },
    /// Endpoints that match in software, and by the soft TM-SRQ.
    Endpoints {
        /// As it is asked for.
        name: &'a str,
        wire: &'a Wire,
        tags: u32,
    },
}

impl Subject {
    /// All whose name contains this.
    pub(super) fn all(only: &str) -> Vec<Self> {
        let recorded = bundled().iter().copied().map(Self::Recorded);
        let made_up = mixes().into_iter().map(Self::MadeUp);
        recorded.chain(made_up).filter(|subject| subject.name().contains(only)).collect()
    }

    pub(super) const fn is_recorded(&self) -> bool {
        matches!(self, Self::Recorded(_))
    }

    pub(super) fn name(&self) -> String {
        match self {
            Self::Recorded(bundled) => bundled.name.trim_end_matches(".zst").to_owned(),
            Self::MadeUp(mix) => mix.name(),
        }
    }

    fn trace(&self, seed: u64) -> Result<Trace, String> {
        match self {
            Self::Recorded(bundled) => bundled.read().map_err(|error| error.to_string()),
            Self::MadeUp(mix) => {
                let mut trace = mix.trace(EVENTS_MIN, seed);
                let mut oracle = Software::new(Naive::new(), trace.counts());
                replay::record(&mut trace, &mut oracle).map_err(|fault| fault.to_string())?;
                Ok(trace)
            }
        }
    }

    fn measure(&self, over: Over<'_>, seed: u64, counter: &mut Counter) -> Result<Row, String> {
        let trace = self.trace(seed)?;
        let kind = if self.is_recorded() { "recorded" } else { "made up" };
        let events = trace.steps.len();
        let mut row = Row { name: self.name(), kind: kind.into(), events, results: Vec::new() };
        let by_tag = |trace| layout::apply(Layout::SourceInTag, trace).map_err(|error| error.to_string());
        match over {
            Over::Software => {
                let config = Config { hash_seed: seed, ..Config::default() };
                row.over("naive", &trace, counter, Software::new(Naive::new(), trace.counts()))?;
                row.over("matcher", &trace, counter, Software::new(Matcher::new(config), trace.counts()))?;
            }
            Over::Device { name, device, tags, is_offloading } => {
                let (trace, contexts) = (by_tag(trace)?, CONTEXTS);
                let settings = offload::Settings { device, tags, seed, contexts, sender_process: false };
                let software = offload::Settings { tags: 0, ..settings };
                row.add(SOFTWARE, name, offload::replay(&trace, software, counter))?;
                if is_offloading {
                    row.add(OFFLOAD, name, offload::replay(&trace, settings, counter))?;
                }
            }
            Over::Endpoints { name, wire, tags } => {
                let trace = by_tag(trace)?;
                for (who, matcher) in [(SOFTWARE, By::Software), (OFFLOAD, By::Soft(tags))] {
                    let is_model = matcher != By::Software;
                    let offloaded = Endpoints::new(wire, matcher, &trace).and_then(|mut endpoints| {
                        offload::replay_over(&trace, &mut endpoints, ("endpoints", is_model), counter)
                    });
                    row.add(who, name, offloaded)?;
                }
            }
        }
        Ok(row)
    }
}

/// Measure as many as there is time for; how many were left out. `step` is told before each.
pub(super) fn measure(
    subjects: &[Subject],
    over: Over<'_>,
    seed: u64,
    limit: Limit,
    counter: &mut Counter,
    rows: &mut Vec<Row>,
    mut step: impl FnMut(&str),
) -> Result<usize, String> {
    let mut left_out = 0;
    for subject in subjects {
        let name = subject.name();
        step(&name);
        if limit.is_over() {
            left_out += 1;
            continue;
        }
        let row = subject.measure(over, seed, counter).map_err(|what| format!("{name}: {what}"))?;
        join(rows, row);
    }
    Ok(left_out)
}

/// Add a row's results to the row of the same name.
pub(super) fn join(rows: &mut Vec<Row>, row: Row) {
    match rows.iter_mut().find(|there| there.name == row.name) {
        Some(there) => there.results.extend(row.results),
        None => rows.push(row),
    }
}

impl Row {
    /// Measure one matcher, once its results are found right.
    fn over(
        &mut self,
        matcher: &str,
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
        self.results.push(Replayed {
            matcher: matcher.into(),
            device: None,
            is_model: false,
            ns_per_event: cost.nanoseconds,
            instructions_per_event: cost.instructions,
            tags: None,
            matches_in_hardware: 0,
            matches_of_posted: 0,
            share_in_hardware: None,
            share_of_posted: None,
            reasons: BTreeMap::new(),
        });
        Ok(())
    }

    /// What was measured over a device, with the source in the tag, so that directed receives can go down.
    fn add(&mut self, matcher: &str, name: &str, offloaded: Result<Offloaded, Fault>) -> Result<(), String> {
        let offloaded = offloaded.map_err(|fault| format!("{matcher}: {fault}"))?;
        if let Some(refusal) = offloaded.refusal {
            return Err(format!("{matcher}: the device matches nothing: {refusal}"));
        }
        let (Some(nanoseconds), None) = (offloaded.ns_per_event, offloaded.first.first()) else {
            let first = offloaded.first.first().map_or("nothing measured", String::as_str);
            return Err(format!("{matcher}: {first}; nothing is measured that is not right"));
        };
        let reasons = offloaded.reasons.iter().map(|reason| (reason.reason.to_owned(), reason.receives));
        self.results.push(Replayed {
            matcher: matcher.into(),
            device: Some(name.into()),
            is_model: offloaded.is_model,
            ns_per_event: nanoseconds,
            instructions_per_event: offloaded.instructions_per_event,
            tags: Some(offloaded.tags),
            matches_in_hardware: offloaded.matches_in_hardware,
            matches_of_posted: offloaded.matches_of_posted,
            share_in_hardware: Some(super::share(offloaded.matches_in_hardware, offloaded.matches)),
            share_of_posted: Some(super::share(offloaded.matches_in_hardware, offloaded.matches_of_posted)),
            reasons: reasons.collect(),
        });
        Ok(())
    }
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

/// The engine over a device of which no list is used.
pub(super) const SOFTWARE: &str = "engine, no tags";
/// The engine over a device with its list.
pub(super) const OFFLOAD: &str = "offload";
/// Contexts that send, with a verbs device.
const CONTEXTS: u32 = 3;
/// Events of a made-up trace, at least.
const EVENTS_MIN: u32 = 16_384;
