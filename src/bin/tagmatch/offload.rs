//! A replay through the engine with an offload device.
//!
//! The engine is not joined to the command line yet: [`replay`] says so, and the tables show a dash.

use crate::measure::Counter;
use serde::Serialize;
use tagmatch::traces::Trace;

/// What to offload to.
#[derive(Clone, Copy, Debug)]
#[expect(dead_code, reason = "read once the engine is joined")]
pub(crate) struct Settings {
    /// Entries of the device's matching list.
    pub(crate) tags: u32,
    /// Seed of hashing and of the device's schedule.
    pub(crate) seed: u64,
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Offloaded {
    /// What the device is: a model's times say nothing about a card.
    pub(crate) label: &'static str,
    /// Answers that were not as expected.
    pub(crate) disagreements: u64,
    /// The first of them, in words.
    pub(crate) first: Vec<String>,
    /// Median time per event, device included.
    pub(crate) ns_per_event: Option<f64>,
    /// Matches.
    pub(crate) matches: u64,
    /// Of these, made by the device.
    pub(crate) matches_in_hardware: u64,
    /// Receives that were not given to the device, by reason.
    pub(crate) reasons: Vec<Reason>,
}

/// Why receives were not given to the device.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Reason {
    /// The reason.
    pub(crate) reason: String,
    /// How many receives.
    pub(crate) receives: u64,
}

/// Replay a trace through the engine with the soft TM-SRQ. `None`: this build cannot.
pub(crate) const fn replay(_trace: &Trace, _settings: Settings, _counter: &mut Counter) -> Option<Offloaded> {
    None
}

/// Whether this build can offload.
pub(crate) const fn is_available() -> bool {
    false
}
