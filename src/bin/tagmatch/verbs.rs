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
    match device {
        Device::None | Device::Soft => None,
        Device::Hca if SimulatedHca::find().is_some() => None,
        Device::Hca => Some(hca::run_again(tags)),
        Device::Verbs(name) => {
            let what = match (verbs::devices(), name) {
                (Err(error), _) => error.to_string(),
                (Ok(devices), None) if !devices.is_empty() => return None,
                (Ok(devices), Some(name)) if devices.iter().any(|device| device.name == *name) => {
                    return None;
                }
                (Ok(devices), Some(name)) => {
                    let names: Vec<&str> = devices.iter().map(|device| device.name.as_str()).collect();
                    let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                    format!("--device {name}: there is no verbs device of this name (there are: {there})")
                }
                (Ok(_), None) => verbs::VerbsError::NoDevice.to_string(),
            };
            complain(format_args!(
                "{what}; without a card try --device hca, which is a simulated one, or --device soft"
            ));
            Some(End::Unusable)
        }
    }
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
fn is_driven() -> bool {
    let options = std::env::var(hca::OPTIONS).unwrap_or_default();
    options.split(',').any(|option| option.trim() == hca::DRIVEN)
}
