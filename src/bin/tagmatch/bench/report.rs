//! All that was measured, as it goes out as JSON and comes back for a comparison.
//!
//! Names here are names in the JSON, which docs/bench.md explains. Not here: measuring, and showing.

use crate::build::BUILD;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Report {
    /// [`FORMAT`].
    pub(super) format: String,
    /// Seconds since 1970.
    pub(super) measured_at: u64,
    pub(super) build: Build,
    pub(super) machine: Machine,
    pub(super) settings: Settings,
    /// Whether host instructions could be counted.
    pub(super) instructions_counted: bool,
    /// Why not.
    pub(super) instructions_refused: Option<String>,
    pub(super) devices: Vec<Measured>,
    /// What could not be measured, and what is missing for it.
    pub(super) absent: Vec<Absent>,
    /// What to know of the run, in sentences.
    pub(super) notes: Vec<String>,
    /// Of traces and mixes.
    pub(super) rows: Vec<Row>,
}

/// What the program was built from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Build {
    pub(super) version: String,
    pub(super) commit: String,
    pub(super) compiler: String,
    /// Not optimised: times mean little.
    pub(super) debug: bool,
}

/// Where it ran.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(super) system: String,
    pub(super) kernel: String,
    pub(super) processor: String,
    /// How many this process may use.
    pub(super) processors: usize,
    pub(super) memory_mib: u64,
    /// The processor says that it is emulated.
    pub(super) is_virtual: bool,
    /// Processes that wanted to run, on average over a minute, before anything was measured.
    pub(super) load_before: Option<f64>,
    /// The same afterwards.
    pub(super) load_after: Option<f64>,
}

/// What was asked for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Settings {
    pub(super) seed: u64,
    /// Entries of devices' lists that were asked for.
    pub(super) tags: u32,
    pub(super) only: Option<String>,
    /// How long it might take.
    pub(super) seconds: Option<u64>,
    /// Of the tags that devices see; software matchers see them as recorded.
    pub(super) layout: String,
}

/// A device that was measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Measured {
    /// As it is asked for.
    pub(super) device: String,
    /// What carries its messages.
    pub(super) carries: String,
    pub(super) software: Side,
    pub(super) offload: Option<Side>,
    /// Where it ran, if that is another machine than the rest.
    pub(super) machine: Option<Machine>,
    /// Libraries, drivers, firmware.
    pub(super) versions: BTreeMap<String, String>,
    pub(super) points: Vec<Point>,
    /// Of traces and mixes; joined with the others' before they go out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) rows: Vec<Row>,
    /// What to know of it, in sentences.
    pub(super) notes: Vec<String>,
    /// How long it took.
    pub(super) seconds: f64,
}

/// One of the two ways to match with a device.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Side {
    /// What it is.
    pub(super) label: String,
    /// Its times are in part a model's, and not a card's.
    pub(super) is_model: bool,
    /// Entries of the list that it was opened with.
    pub(super) tags: u32,
}

/// Bursts of one kind.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Point {
    /// What is varied.
    pub(super) curve: Curve,
    /// Its value.
    pub(super) at: u64,
    /// Whether a list was there to match.
    pub(super) is_offload: bool,
    /// Messages that were measured.
    pub(super) messages: u64,
    /// From the call that sends to the completed receive, one message at a time: median.
    pub(super) latency_ns: Option<f64>,
    /// Messages in a second, both sides on one processor.
    pub(super) per_second: f64,
    /// Processor time of the receiver's calls, per message: median.
    pub(super) receiver_ns: f64,
    /// The same of the sender's, with the model of a card if there is one.
    pub(super) sender_ns: f64,
    /// Instructions of the receiver's calls outside the kernel, per message, where they can be counted.
    pub(super) instructions: Option<f64>,
    /// Receives that the device's list matched, of all: 0 to 1.
    pub(super) share_in_hardware: f64,
    /// Receives that it did not, by reason.
    pub(super) reasons: BTreeMap<String, u64>,
}

/// What is varied.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Curve {
    /// Bytes of a message.
    Size,
    /// Older receives in the list.
    Depth,
    /// Entries of the device's list. Of software: 0.
    List,
    /// Receives of a hundred that take any tag.
    Wildcards,
    /// Messages of a hundred that come before their receive.
    Unexpected,
}

/// One trace or mix.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) name: String,
    /// `recorded`, `made up`.
    pub(super) kind: String,
    pub(super) events: usize,
    pub(super) results: Vec<Replayed>,
}

/// One matcher over it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Replayed {
    pub(super) matcher: String,
    /// Below it.
    pub(super) device: Option<String>,
    /// Whether the device below is a model, so that its part of the time says nothing about a card.
    pub(super) is_model: bool,
    pub(super) ns_per_event: f64,
    pub(super) instructions_per_event: Option<f64>,
    /// Entries of the list that the device was opened with.
    pub(super) tags: Option<u32>,
    /// Matches made by the device.
    pub(super) matches_in_hardware: u64,
    /// Matches of receives that were posted before their message: what a device can match at most.
    pub(super) matches_of_posted: u64,
    /// Matches made by the device, of all: 0 to 1.
    pub(super) share_in_hardware: Option<f64>,
    /// The same, of those whose receive was posted before its message.
    pub(super) share_of_posted: Option<f64>,
    /// Receives that ended otherwise, by reason.
    pub(super) reasons: BTreeMap<String, u64>,
}

/// What could not be measured.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Absent {
    pub(super) device: String,
    pub(super) why: String,
}

impl Build {
    /// This program's.
    pub(super) fn here() -> Self {
        Self {
            version: BUILD.version.into(),
            commit: BUILD.commit.into(),
            compiler: BUILD.compiler.into(),
            debug: BUILD.debug,
        }
    }
}

impl Curve {
    pub(super) const ALL: [Self; 5] =
        [Self::Size, Self::Depth, Self::List, Self::Wildcards, Self::Unexpected];

    /// Its name in JSON and for `--only`.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Size => "size",
            Self::Depth => "depth",
            Self::List => "list",
            Self::Wildcards => "wildcards",
            Self::Unexpected => "unexpected messages",
        }
    }

    /// What is varied, in words.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Size => "message size",
            Self::Depth => "older receives in the list",
            Self::List => "entries of the device's list",
            Self::Wildcards => "receives with a wildcard",
            Self::Unexpected => "messages before their receive",
        }
    }

    /// A value of it.
    pub(super) fn value(self, at: u64) -> String {
        match self {
            Self::Size => bytes(at),
            Self::Depth | Self::List => at.to_string(),
            Self::Wildcards | Self::Unexpected => format!("{at} %"),
        }
    }
}

impl Measured {
    /// One point.
    pub(super) fn point(&self, curve: Curve, at: u64, is_offload: bool) -> Option<&Point> {
        self.points.iter().find(|point| (point.curve, point.at, point.is_offload) == (curve, at, is_offload))
    }
}

/// Bytes, as people say it.
pub(super) fn bytes(count: u64) -> String {
    match count {
        0..1024 => format!("{count} B"),
        1024..0x10_0000 => format!("{} KiB", count >> 10),
        _ => format!("{} MiB", count >> 20),
    }
}

/// What a file must say that it is. Another number: names or meanings have changed.
pub(super) const FORMAT: &str = "tagmatch bench 2";
