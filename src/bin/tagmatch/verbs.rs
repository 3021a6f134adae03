//! Replays over verbs devices: the simulated card's process, targets, and what they are called.

use crate::device::Device;
use crate::output::complain;
use crate::sender::Process;
use crate::{End, hca};
use tagmatch::device::verbs::{self, SimulatedHca};
use tagmatch::replay::verbs::{ByItself, Drive, Outline, Verbs, VerbsSettings};
use tagmatch::replay::{Fault, Schedule};
use tagmatch::traces::Trace;

/// How a replay over verbs is set up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Entries of the list; 0: no tag matching.
    pub(crate) tags: u32,
    /// Seed of hashing.
    pub(crate) seed: u64,
    /// Contexts that send.
    pub(crate) contexts: u32,
    /// Whether they are in a process of their own.
    pub(crate) sender_process: bool,
    /// Of a device that is driven.
    pub(crate) schedule: Schedule,
}

/// Whether the device can be used at all. `Some`: the command has ended, since it was run again on a simulated card,
/// or cannot be run.
pub(crate) fn prepare(device: &Device, tags: u32) -> Option<End> {
    let what = match device {
        Device::None | Device::Soft => return None,
        Device::Hca if SimulatedHca::find().is_none() => return Some(hca::run_again(tags)),
        // The simulated card is seen through libibverbs as well.
        Device::Hca => match missing(None) {
            None => return None,
            Some(what) => format!("--device hca: {what}"),
        },
        Device::Verbs(name) => match missing(name.as_deref()) {
            None => return None,
            Some(what) => format!(
                "--device {}: {what}\nWithout a card try --device hca, which is a simulated one, or --device soft.",
                name.as_deref().map_or("verbs".into(), |name| format!("{name:?}"))
            ),
        },
    };
    complain(what);
    Some(End::Unusable)
}

/// Why there is no verbs device of this name, or none at all.
fn missing(name: Option<&str>) -> Option<String> {
    let devices = match (verbs::devices(), name) {
        (Ok(devices), _) => devices,
        (Err(error), None) => return Some(error.to_string()),
        (Err(error), Some(_)) => return Some(format!("{NAMES}; {error}")),
    };
    let is_it = |device: &verbs::DeviceEntry| name.is_none_or(|name| device.name == name);
    if devices.iter().any(is_it) {
        return None;
    }
    let Some(_) = name else { return Some(verbs::VerbsError::NoDevice.to_string()) };
    let names: Vec<&str> = devices.iter().map(|device| device.name.as_str()).collect();
    let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    Some(format!("{NAMES}, and there is no verbs device of this name (there are: {there})"))
}

/// A target over it.
pub(crate) fn target(device: &Device, trace: &Trace, settings: Settings) -> Result<Verbs, Fault> {
    let Settings { tags, seed, contexts, sender_process, schedule } = settings;
    let name = if let Device::Verbs(name) = device { name.clone() } else { None };
    let drive: Box<dyn Drive> = match SimulatedHca::find() {
        Some(simulated) if is_driven() => Box::new(simulated),
        _ => Box::new(ByItself),
    };
    let settings = VerbsSettings { device: name, tags, contexts, schedule, seed };
    let outline = Outline::of(trace);
    if !sender_process {
        return Verbs::new(settings, outline, drive);
    }
    let senders = Process::start(&settings.senders(&outline), &[(hca::OPTIONS, by_thread())])?;
    Verbs::with_senders(settings, outline, Box::new(senders), drive)
}

/// The options of a simulated card that moves by itself.
fn by_thread() -> String {
    let options = std::env::var(hca::OPTIONS).unwrap_or_default();
    let others = options.split(',').filter(|option| option.trim() != hca::DRIVEN);
    others.collect::<Vec<_>>().join(",")
}

/// Whether the simulated card, if there is one, waits to be moved on.
pub(crate) fn is_driven() -> bool {
    let options = std::env::var(hca::OPTIONS).unwrap_or_default();
    options.split(',').any(|option| option.trim() == hca::DRIVEN)
}

/// What `--device` takes beside the name of a verbs device.
const NAMES: &str = "it takes none, soft, hca, verbs, or a device's name";
