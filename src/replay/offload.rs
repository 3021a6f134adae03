//! A replay target over the engine and soft devices: matching decisions stand in the trace's order, while commands,
//! completions and data are delayed at random.
//!
//! A message is accepted by its device at its place in the trace. If the device matches it, that is the decision,
//! however late its completions are polled. If not, the device is polled until the engine has decided.
//! The devices are models: no time measured here says anything about a card.

use super::host::{Ended, Host};
use super::random::Random;
use super::{Fault, Target};
use crate::device::Device as _;
use crate::device::soft::{Acceptance, NoMemory, Observation, SoftConfig, SoftDevice, SoftMessage, Step};
use crate::engine::{CancelOutcome, Config};
use crate::ids::{DeviceId, PeerId};
use crate::matching::{Envelope, Pattern};
use crate::offload::Statistics;
use crate::seam::{Buffer, Remote};
use crate::traces::{Counts, MessageNumber, PeekNumber, ReceiveNumber};

/// When devices do what they can.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Schedule {
    /// At once.
    Prompt,
    /// At random, by this seed; data in several packets, completions late.
    Random(u64),
}

/// What to replay over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Entries of each device's list; 0: devices that do not match.
    pub tags: u32,
    /// Devices that match, at least 1. Senders are dealt to them in turn.
    pub devices: u8,
    /// One more way that does not match, for every third sender.
    pub second_path: bool,
    /// See [`Schedule`].
    pub schedule: Schedule,
    /// Seed of hashing.
    pub seed: u64,
}

/// The engine over soft devices, as a [`Target`].
#[derive(Clone, Debug)]
pub struct Offload {
    host: Host,
    devices: Vec<SoftDevice<NoMemory>>,
    settings: Settings,
    random: Random,
}

impl Offload {
    /// With room for a trace of so many receives and peeks.
    ///
    /// # Errors
    /// The devices cannot be made, or the engine does not take them.
    pub fn new(settings: Settings, counts: Counts) -> Result<Self, Fault> {
        let mut config = Config::default();
        config.matching.hash_seed = settings.seed;
        let mut host = Host::new(config, counts, |word| word);
        let mut devices = Vec::new();
        for number in 0..settings.devices.max(1) + u8::from(settings.second_path) {
            let tags = if number < settings.devices.max(1) { settings.tags } else { 0 };
            let device = SoftDevice::new(device_config(DeviceId(number), tags, settings), NoMemory);
            let mut device = device.map_err(Fault::new)?;
            if settings.schedule != Schedule::Prompt {
                device.observe();
            }
            let id = host.engine.add_device(device.capabilities()).map_err(Fault::new)?;
            for bounce in 0..u64::from(tags) {
                host.engine.add_bounce_buffer(id, Buffer::new(BOUNCE + (bounce << 16), EAGER_LIMIT));
            }
            devices.push(device);
        }
        let random = Random::of(settings.schedule);
        let mut target = Self { host, devices, settings, random };
        target.submit()?;
        Ok(target)
    }

    /// What offload has done.
    #[must_use]
    pub fn statistics(&self) -> &Statistics {
        self.host.statistics()
    }

    /// Receives that were in a device when they were cancelled, and took no message.
    #[must_use]
    pub const fn cancelled_in_device(&self) -> u64 {
        self.host.cancelled_in_device
    }

    /// Receives that took a message.
    #[must_use]
    pub const fn matches(&self) -> u64 {
        self.host.matches
    }

    /// Entries of each list.
    #[must_use]
    pub fn tags(&self) -> u32 {
        self.devices.first().map_or(0, |device| device.capabilities().tags)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    fn is_random(&self) -> bool {
        self.settings.schedule != Schedule::Prompt
    }

    /// Which way a sender's messages come.
    fn way(&self, peer: PeerId) -> usize {
        let matching = usize::from(self.settings.devices.max(1));
        if self.settings.second_path && peer.0 % 3 == 2 { matching } else { peer.0 as usize % matching }
    }

    /// Hand every command to its device.
    fn submit(&mut self) -> Result<(), Fault> {
        for (at, device) in self.devices.iter_mut().enumerate() {
            if !self.host.submit(device_id(at), device)? {
                return Err(Fault::new(format!("device {at} did not take every command")));
            }
        }
        Ok(())
    }

    /// Let a device tell one event. Whether it had one.
    fn poll_one(&mut self, at: usize) -> Result<bool, Fault> {
        let told = self.host.poll(&mut self.devices[at], 1)?;
        self.after()?;
        Ok(told > 0)
    }

    /// Commands down, completions up.
    fn after(&mut self) -> Result<(), Fault> {
        self.submit()?;
        while self.host.poll_completion()?.is_some() {}
        Ok(())
    }

    /// One thing at random: a device's step, or a poll.
    fn step_at_random(&mut self) -> Result<bool, Fault> {
        let count = self.devices.len() as u64;
        let at = usize::try_from(self.below(count)).unwrap_or(0);
        if self.below(2) == 0 {
            return self.poll_one(at);
        }
        let steps = self.devices[at].steps();
        let choice = usize::try_from(self.below(steps.len() as u64)).unwrap_or(0);
        Ok(steps.get(choice).is_some_and(|&step| self.devices[at].step(step)))
    }

    /// Some things at random, between two events of the trace.
    fn wander(&mut self) -> Result<(), Fault> {
        self.after()?;
        if self.is_random() {
            for _ in 0..self.below(6) {
                self.step_at_random()?;
            }
        } else {
            self.run_all()?;
        }
        Ok(())
    }

    /// Everything that can happen, until nothing can.
    fn run_all(&mut self) -> Result<(), Fault> {
        loop {
            let mut any = false;
            for at in 0..self.devices.len() {
                self.devices[at].run();
                while self.poll_one(at)? {
                    any = true;
                }
            }
            if !any {
                return Ok(());
            }
        }
    }

    /// Let things happen until `done`.
    fn drive(&mut self, what: &str, mut done: impl FnMut(&Self) -> bool) -> Result<(), Fault> {
        for _ in 0..DRIVE_MAX {
            if done(self) {
                return Ok(());
            }
            if self.is_random() {
                self.step_at_random()?;
            } else {
                self.run_all()?;
            }
        }
        Err(Fault::new(format!("{what} did not come about within {DRIVE_MAX} steps")))
    }

    /// The message's first packet reaches its device.
    fn accept(&mut self, at: usize, peer: PeerId) -> Result<(), Fault> {
        for _ in 0..DRIVE_MAX {
            if self.devices[at].step(Step::Accept(peer)) {
                return Ok(());
            }
            // An earlier message of the sender is still coming in, or no buffer is posted.
            if !self.devices[at].step(Step::Packet(peer)) && !self.poll_one(at)? {
                self.devices[at].step(Step::Command);
            }
        }
        Err(Fault::new(format!("peer {} cannot reach device {at}", peer.0)))
    }

    fn message(&mut self, number: MessageNumber, envelope: &Envelope, length: u64) -> SoftMessage {
        let mut message = if length > EAGER_LIMIT {
            let remote = Remote { address: 0, key: 0, length };
            SoftMessage::rendezvous(envelope.tag, remote)
        } else {
            SoftMessage::eager(envelope.tag, length)
        };
        message.app_ctx = number.0;
        if self.is_random() && length <= EAGER_LIMIT {
            message.packets = 1 + u32::try_from(self.below(3)).unwrap_or(0);
        }
        message
    }
}

impl Target for Offload {
    fn post(
        &mut self,
        receive: ReceiveNumber,
        pattern: &Pattern,
        length: u64,
    ) -> Result<Option<MessageNumber>, Fault> {
        let buffer = buffer_of(receive, length);
        // Both ways in which a held message comes into its receive, where chance decides anyway.
        let matched = if self.is_random() && self.below(2) == 0 {
            self.host.post(receive, pattern, buffer)?
        } else {
            let taken = self.host.post_placing(receive, pattern, buffer, &mut self.devices)?;
            taken.map(|taken| taken.message)
        };
        self.wander()?;
        Ok(matched)
    }

    fn arrive(
        &mut self,
        number: MessageNumber,
        envelope: &Envelope,
        length: u64,
    ) -> Result<Option<ReceiveNumber>, Fault> {
        let peer = envelope.source;
        let at = self.way(peer);
        let message = self.message(number, envelope, length);
        let sent = self.devices[at].send(peer, message);
        sent.map_err(|message| Fault::new(format!("device {at} refused message {}", message.app_ctx)))?;
        let matched = if self.is_random() {
            self.accept(at, peer)?;
            self.follow(at, peer, number)?
        } else {
            self.run_all()?;
            self.host.outcome(number)
        };
        self.host.matches += u64::from(matched.is_some());
        self.wander()?;
        Ok(matched.map(ReceiveNumber))
    }

    fn peek(
        &mut self,
        peek: PeekNumber,
        pattern: &Pattern,
        claim: bool,
    ) -> Result<Option<MessageNumber>, Fault> {
        let found = self.host.peek(peek, pattern, claim);
        self.wander()?;
        Ok(found)
    }

    fn claim(
        &mut self,
        receive: ReceiveNumber,
        peek: PeekNumber,
        length: u64,
    ) -> Result<Option<MessageNumber>, Fault> {
        let claimed = self.host.claim(receive, peek, buffer_of(receive, length))?;
        self.wander()?;
        Ok(claimed)
    }

    fn cancel(&mut self, receive: ReceiveNumber) -> Result<bool, Fault> {
        let outcome = self.host.cancel(receive);
        self.after()?;
        if outcome == CancelOutcome::Pending {
            self.drive("the answer to a cancel", |target| target.host.ended(receive) != Ended::Open)?;
        }
        let cancelled = self.host.cancelled(receive, outcome)?;
        self.wander()?;
        Ok(cancelled)
    }

    fn reset(&mut self) -> Result<(), Fault> {
        *self = Self::new(self.settings, self.host.counts())?;
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Fault> {
        self.run_all()?;
        self.host.check_finished()?;
        for (at, device) in self.devices.iter().enumerate() {
            let listed = self.host.engine.listed(device_id(at)).len();
            let in_list = device.list().map_or(0, |list| list.entries().len());
            let held = self.host.engine.entries(device_id(at)).0 as usize;
            if listed != in_list || listed != held {
                return Err(Fault::new(format!(
                    "device {at}: the mirror has {listed} entries, the device {in_list}, counted {held}"
                )));
            }
        }
        Ok(())
    }
}

impl Offload {
    /// What became of a message that its device has just accepted.
    fn follow(&mut self, at: usize, peer: PeerId, number: MessageNumber) -> Result<Option<u32>, Fault> {
        let accepted = self.devices[at].take_observations().into_iter().find_map(|seen| match seen {
            Observation::Accepted { app_ctx, by, .. } if app_ctx == number.0 => Some(by),
            Observation::Accepted { .. } | Observation::Fin { .. } | Observation::Expected { .. } => None,
        });
        match accepted {
            Some(Acceptance::Entry(handle)) => {
                let receive = self.host.note_match(device_id(at), handle, number.0);
                receive
                    .map(Some)
                    .ok_or_else(|| Fault::new(format!("device {at} matched the unknown {handle:?}")))
            }
            Some(Acceptance::Unexpected | Acceptance::Host) => {
                let is_decided = |target: &Self| target.host.is_decided(number);
                let mut tries = 0;
                while !is_decided(self) {
                    self.devices[at].step(Step::Packet(peer));
                    self.poll_one(at)?;
                    tries += 1;
                    if tries > 64 {
                        self.drive("the decision of a message", is_decided)?;
                    }
                }
                Ok(self.host.outcome(number))
            }
            Some(Acceptance::Untagged) | None => {
                Err(Fault::new(format!("device {at} does not say what became of message {}", number.0)))
            }
        }
    }
}

fn device_config(id: DeviceId, tags: u32, settings: Settings) -> SoftConfig {
    let config = if tags == 0 { SoftConfig::generic() } else { SoftConfig::matching(tags) };
    SoftConfig {
        id,
        eager_limit: EAGER_LIMIT,
        buffer_length_max: u64::from(u32::MAX),
        step_mode: settings.schedule != Schedule::Prompt,
        ..config
    }
}

fn device_id(at: usize) -> DeviceId {
    DeviceId(u8::try_from(at).unwrap_or(u8::MAX))
}

/// Each receive has a stretch of addresses of its own, so that an address tells the receive.
fn buffer_of(receive: ReceiveNumber, length: u64) -> Buffer {
    Buffer::new(u64::from(receive.0) << STRETCH, length)
}

const EAGER_LIMIT: u64 = 8192;
const STRETCH: u32 = 32;
const BOUNCE: u64 = 1 << 63;
const DRIVE_MAX: usize = 1_000_000;
