//! A world of soft devices: what the exhaustive model and the seeded schedules use.

use std::sync::Arc;

use tagmatch::device::soft::switches::Activation;
use tagmatch::device::soft::{Acceptance, NoMemory, Observation, SoftConfig, SoftDevice, SoftMessage, Step};
use tagmatch::ids::{PeerId, TagHandle};
use tagmatch::seam::{DeviceError, Remote};

use super::machine::{Accepted, Acceptor, Machine, Places, StepKind};
use super::scope::{EAGER_LIMIT, Message, Scope};
use super::{Watch, World, Wrong, device_id};

impl World<SoftDevice<NoMemory>> {
    /// At its beginning: nothing is posted, everything is sent.
    ///
    /// # Errors
    /// The program makes no sense.
    pub fn new(scope: &Arc<Scope>, watch: Watch) -> Result<Self, Wrong> {
        let mut devices = Vec::new();
        for (at, path) in scope.paths.iter().enumerate() {
            let config = if path.tags == 0 { SoftConfig::generic() } else { SoftConfig::matching(path.tags) };
            let config = SoftConfig {
                id: device_id(at),
                operations: path.operations,
                eager_limit: EAGER_LIMIT,
                rendezvous: path.rendezvous && path.tags > 0,
                count: scope.counters_start,
                step_mode: true,
                switches: path.switches,
                ..config
            };
            let device = SoftDevice::new(config, NoMemory);
            let mut device = device.map_err(|error| Wrong::Refused(error.to_string()))?;
            device.observe();
            devices.push(device);
        }
        Self::over(scope, devices, PLACES, watch)
    }
}

impl Machine for SoftDevice<NoMemory> {
    type Step = Step;

    fn steps(&self) -> Vec<Step> {
        self.steps()
    }

    fn step(&mut self, step: Step) {
        self.step(step);
    }

    fn kind(&self, step: Step) -> StepKind {
        match step {
            Step::Command => StepKind::Command,
            Step::Accept(_) => StepKind::Accept,
            Step::Packet(_) | Step::Read(_) => StepKind::Data,
        }
    }

    fn words(&self, step: Step) -> String {
        match step {
            Step::Command => "executes a command".to_owned(),
            Step::Accept(peer) => format!("accepts a message of peer {}", peer.0),
            Step::Packet(peer) => format!("gets a packet of peer {}", peer.0),
            Step::Read(_) => "finishes a read".to_owned(),
        }
    }

    fn is_quiet(&self) -> bool {
        self.is_quiet()
    }

    fn take_accepted(&mut self) -> Vec<Accepted> {
        let seen = self.take_observations().into_iter();
        let accepted = seen.filter_map(|seen| {
            let Observation::Accepted { app_ctx, by, .. } = seen else { return None };
            let by = match by {
                Acceptance::Entry(handle) => Acceptor::Entry(handle),
                Acceptance::Unexpected | Acceptance::Host => Acceptor::Host,
                Acceptance::Untagged => return None,
            };
            Some(Accepted { message: app_ctx, by })
        });
        accepted.collect()
    }

    fn send(&mut self, number: u32, message: &Message) -> Result<(), String> {
        let mut sent = if message.rendezvous {
            let remote = Remote { address: u64::from(number), key: 0, length: message.length };
            SoftMessage::rendezvous(message.tag, remote)
        } else {
            SoftMessage::eager(message.tag, message.length)
        };
        sent.app_ctx = number;
        sent.packets = message.packets;
        self.send(message.source, sent).map_err(|message| format!("{message:?} cannot be sent"))
    }

    fn fail_path(&mut self, peer: PeerId) {
        self.fail_path(peer);
    }

    fn fail(&mut self) {
        self.fail(DeviceError::Removed);
    }

    fn listed(&self) -> Option<Vec<Option<TagHandle>>> {
        let (list, driver) = (self.list()?, self.driver()?);
        let entries = list.entries().iter();
        let handles =
            entries.map(|entry| driver.receive_wr_id(u32::from(entry.index)).map(TagHandle::from_bits));
        Some(handles.collect())
    }

    fn slots_used(&self) -> Option<u64> {
        self.driver().map(|driver| driver.slots_used().into())
    }

    fn check_quiet(&self) -> Result<(), String> {
        let (Some(list), Some(driver)) = (self.list(), self.driver()) else { return Ok(()) };
        if driver.slots_pending().count() > 1 {
            return Err("completions of signalled operations were not polled".to_owned());
        }
        let may_wake = self.config().switches.activation == Activation::default();
        if may_wake && let Some(entry) = list.entries().iter().find(|entry| !entry.active) {
            return Err(format!("entry {} is not active", entry.index));
        }
        Ok(())
    }

    /// There is no memory behind it.
    fn check_data(&self, _number: u32, _sent: u64, _address: u64, _length: u64) -> Result<(), String> {
        Ok(())
    }
}

/// No address means anything.
const PLACES: Places = Places { base: 0, shift: 32, key: 0, bounces: 1 << 63, bounces_of_device: 1 << 16 };
