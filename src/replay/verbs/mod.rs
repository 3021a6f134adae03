//! A replay target over the engine and a verbs device: matching decisions stand in the trace's order, while the
//! messages are real ones, through libibverbs and the vendor's driver.
//!
//! * [`Verbs`] – the [`Target`]: the receiver
//! * [`Senders`] – who sends: contexts of this process ([`Contexts`]), or whoever implements it
//! * [`Drive`] – what moves a simulated device on; a card moves [`ByItself`]
//!
//! An event of the trace is followed by the next when what became of it is known. Every payload is real memory, and
//! what a receive holds is compared with what was sent. What is matched by the device says nothing about a card if the
//! device is a model.

mod drive;
mod memory;
mod senders;

pub use drive::{ByItself, Drive};
pub use memory::{Payload, real_length};
pub use senders::{Contexts, SenderSettings, Senders};

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::host::{Ended, Host};
use super::random::Random;
use super::{Fault, Schedule, Target};
use crate::device::Device as _;
use crate::device::verbs::VerbsDevice;
use crate::device::verbs::device::{HostMemory, TagMatching, VerbsConfig};
use crate::device::verbs::memory::RemoteAccess;
use crate::engine::{CancelOutcome, Config, End};
use crate::ids::{DeviceId, PeerId};
use crate::matching::{Envelope, Pattern};
use crate::offload::Statistics;
use crate::seam::Capabilities;
use crate::traces::{Counts, Event, MessageNumber, PeekNumber, ReceiveNumber, Trace};
use memory::Places;

/// What to replay over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerbsSettings {
    /// The device, by its name as `ibv_devices` shows it; `None`: the first.
    pub device: Option<String>,
    /// Entries of the device's list, cut to what it has; 0: without tag matching.
    pub tags: u32,
    /// Contexts that send.
    pub contexts: u32,
    /// When a device that is driven does what it can. One that is not does it when it does.
    pub schedule: Schedule,
    /// Seed of hashing.
    pub seed: u64,
}

/// What a replay needs to know of its trace beforehand.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outline {
    counts: Counts,
    senders: Vec<PeerId>,
    length_max: u64,
}

/// The engine over a verbs device, as a [`Target`].
#[derive(Debug)]
pub struct Verbs {
    host: Host,
    receiver: Receiver,
    senders: Box<dyn Senders>,
    drive: Box<dyn Drive>,
    settings: VerbsSettings,
    outline: Outline,
    random: Random,
    /// Messages by rendezvous that no receive has taken: their senders hear nothing.
    untaken: HashSet<MessageNumber>,
}

/// The receiver's device and its memory.
#[derive(Debug)]
struct Receiver {
    device: VerbsDevice,
    places: Places,
    payload: Payload,
    is_checking: bool,
}

impl Outline {
    /// Of a trace.
    #[must_use]
    pub fn of(trace: &Trace) -> Self {
        let mut senders = Vec::new();
        let mut length_max = 0;
        for step in &trace.steps {
            match step.event {
                Event::Arrive { envelope, length, .. } => {
                    senders.push(envelope.source);
                    length_max = length_max.max(length);
                }
                Event::Post { .. } | Event::Peek { .. } | Event::Claim { .. } | Event::Cancel { .. } => {}
            }
        }
        senders.sort_unstable();
        senders.dedup();
        Self { counts: trace.counts(), senders, length_max }
    }
}

impl VerbsSettings {
    /// How the senders of such a replay are set up.
    #[must_use]
    pub fn senders(&self, outline: &Outline) -> SenderSettings {
        SenderSettings {
            device: self.device.clone(),
            contexts: self.contexts,
            senders: u32::try_from(outline.senders.len()).unwrap_or(u32::MAX),
            eager_limit: EAGER_LIMIT,
            length_max: outline.length_max,
        }
    }
}

impl Verbs {
    /// Senders in contexts of this process.
    ///
    /// # Errors
    /// There is no such device, it has too little of something, or the engine does not take it.
    pub fn new(settings: VerbsSettings, outline: Outline, drive: Box<dyn Drive>) -> Result<Self, Fault> {
        let senders = Contexts::open(settings.senders(&outline))?;
        Self::with_senders(settings, outline, Box::new(senders), drive)
    }

    /// Any senders.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_senders(
        settings: VerbsSettings,
        outline: Outline,
        senders: Box<dyn Senders>,
        drive: Box<dyn Drive>,
    ) -> Result<Self, Fault> {
        let (host, receiver) = open(&settings, &outline)?;
        let random = Random::of(settings.schedule);
        let untaken = HashSet::new();
        let mut target = Self { host, receiver, senders, drive, settings, outline, random, untaken };
        target.connect()?;
        Ok(target)
    }

    /// Compare payloads, or do not, for measuring. At first they are compared.
    pub fn set_checking(&mut self, is_checking: bool) {
        self.receiver.is_checking = is_checking;
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

    /// The receiver's device: its name and limits, and why it does not match, if it does not.
    #[must_use]
    pub const fn device(&self) -> &VerbsDevice {
        &self.receiver.device
    }

    fn connect(&mut self) -> Result<(), Fault> {
        // A TM-SRQ wants its buffers first.
        self.after()?;
        for &sender in &self.outline.senders {
            let receivers = self.receiver.device.prepare(sender).map_err(Fault::new)?;
            let senders = self.senders.prepare(sender)?;
            self.receiver.device.connect(sender, &senders).map_err(Fault::new)?;
            self.senders.connect(sender, &receivers)?;
        }
        self.settle()
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    fn is_random(&self) -> bool {
        self.settings.schedule != Schedule::Prompt
    }

    /// Commands down, completions up.
    fn after(&mut self) -> Result<(), Fault> {
        // What there is no room for is offered again.
        let _all = self.host.submit(RECEIVER, &mut self.receiver.device)?;
        while let Some(completion) = self.host.poll_completion()? {
            let receive = u32::try_from(completion.context).unwrap_or(u32::MAX);
            if let End::Received(message) = completion.end {
                self.receiver.check(receive, number_of(message.app_ctx), message.length)?;
            }
            self.receiver.places.give_back(receive);
        }
        match self.receiver.device.poll_sent() {
            Some(sent) => Err(Fault::new(format!("the receiver sent something: {sent:?}"))),
            None => Ok(()),
        }
    }

    /// Let the receiver's device tell some events. Whether it had any.
    fn poll_some(&mut self, max: usize) -> Result<bool, Fault> {
        let told = self.host.poll(&mut self.receiver.device, max)?;
        self.after()?;
        Ok(told > 0)
    }

    /// One thing at random: of the device's, of the receiver's, of the senders'.
    fn step_at_random(&mut self) -> Result<bool, Fault> {
        match self.below(4) {
            0 => self.poll_some(1),
            1 if self.below(2) == 0 => self.senders.progress(),
            _ => {
                let choice = self.below(1 << 32);
                Ok(self.drive.step(choice))
            }
        }
    }

    /// Everything that can happen now. Whether there was anything.
    fn progress(&mut self) -> Result<bool, Fault> {
        let mut any = self.drive.run();
        while self.poll_some(EVENTS)? {
            any = true;
        }
        Ok(self.senders.progress()? || any)
    }

    /// Between two events of the trace: let happen what can, or some of it at random. A device that moves by itself is
    /// waited for until it has done what the engine asked of it.
    fn settle(&mut self) -> Result<(), Fault> {
        self.after()?;
        if self.is_random() {
            for _ in 0..self.below(6) {
                self.step_at_random()?;
            }
        } else if self.drive.is_driving() {
            while self.progress()? {}
        } else {
            self.wait("the list operations", |target| target.list_is_idle())?;
        }
        Ok(())
    }

    /// A receive has taken this message.
    fn note_taken(&mut self, message: Option<MessageNumber>) {
        if let Some(message) = message {
            self.untaken.remove(&message);
        }
    }

    fn list_is_idle(&self) -> bool {
        self.receiver.device.free().1 == self.receiver.device.capabilities().command_slots
    }

    /// Of the engine's account.
    fn entries_in_use(&self) -> usize {
        self.host.engine.entries(RECEIVER).0 as usize
    }

    /// Let things happen until `done`.
    fn wait(&mut self, what: &str, done: impl Fn(&Self) -> bool) -> Result<(), Fault> {
        let mut idle_since = None;
        while !done(self) {
            let any = if self.is_random() && self.drive.is_driving() {
                self.step_at_random()?
            } else {
                // Timers alone may be left.
                self.progress()? || self.drive.step(0)
            };
            if any {
                idle_since = None;
                continue;
            }
            let since = *idle_since.get_or_insert_with(Instant::now);
            if since.elapsed() > PATIENCE {
                return Err(Fault::new(format!("{what} did not come about: nothing happens any more")));
            }
            // Whoever has the next move may want this processor.
            std::thread::yield_now();
        }
        Ok(())
    }

    fn wait_for_all(&mut self) -> Result<(), Fault> {
        self.wait("the end of all that is under way", |target| {
            target.host.received() == target.host.matches
                && target.host.engine.waiting() == 0
                && target.host.engine.transfers() == 0
                && target.list_is_idle()
                && target.entries_in_use() == target.host.engine.listed(RECEIVER).len()
        })?;
        let begin = Instant::now();
        while self.senders.outstanding()? > self.untaken.len() as u64 {
            if self.progress()? || self.drive.step(0) {
                continue;
            }
            std::thread::yield_now();
            if begin.elapsed() > PATIENCE {
                return Err(Fault::new("a sender waits for a FIN that does not come"));
            }
        }
        Ok(())
    }
}

/// An engine with a device, which are not connected yet.
fn open(settings: &VerbsSettings, outline: &Outline) -> Result<(Host, Receiver), Fault> {
    // A message is sent when the ADDs before it are known to be done, so each is asked for.
    let mut config = Config { silent_adds_max: 0, ..Config::default() };
    config.matching.hash_seed = settings.seed;
    let mut host = Host::new(config, outline.counts, number_of);
    let device = VerbsConfig {
        id: RECEIVER,
        device: settings.device.clone(),
        tag_matching: if settings.tags == 0 { TagMatching::Off } else { TagMatching::Wanted },
        tags: settings.tags,
        eager_limit: EAGER_LIMIT,
        peers: u32::try_from(outline.senders.len()).unwrap_or(u32::MAX).max(1),
        ..VerbsConfig::default()
    };
    let mut device = VerbsDevice::open(device, HostMemory::registered()).map_err(Fault::new)?;
    let room = device.config().peers as usize;
    if room < outline.senders.len() {
        let senders = outline.senders.len();
        return Err(Fault::new(format!(
            "the trace has {senders} senders, each with a connection of its own, and {} has queue pairs for {room}",
            device.name()
        )));
    }
    let capabilities = device.capabilities();
    host.engine.add_device(capabilities).map_err(Fault::new)?;
    give_bounce_buffers(&mut host, &mut device, &capabilities)?;
    let payload = Payload::new(outline.length_max);
    let receiver = Receiver { device, places: Places::default(), payload, is_checking: true };
    Ok((host, receiver))
}

/// As many as there are tags: a short receive then need never stay in software.
fn give_bounce_buffers(
    host: &mut Host,
    device: &mut VerbsDevice,
    capabilities: &Capabilities,
) -> Result<(), Fault> {
    let (count, length) = (u64::from(capabilities.tags), capabilities.eager_limit);
    if count == 0 {
        return Ok(());
    }
    let bytes = usize::try_from(count * length).unwrap_or(usize::MAX);
    let all = device.allocate(bytes, RemoteAccess::NONE).map_err(Fault::new)?.buffer;
    for number in 0..count {
        let address = all.address + number * length;
        host.engine.add_bounce_buffer(RECEIVER, crate::seam::Buffer { address, length, ..all });
    }
    Ok(())
}

impl Receiver {
    /// A message came in its receive.
    fn check(&mut self, receive: u32, message: u32, length: u64) -> Result<(), Fault> {
        let Self { device, places, payload, is_checking } = self;
        if *is_checking && !places.holds(device, receive, payload, message, length) {
            return Err(Fault::new(format!(
                "receive {receive} does not hold the {length} bytes of message {message}"
            )));
        }
        Ok(())
    }
}

impl Target for Verbs {
    fn post(
        &mut self,
        receive: ReceiveNumber,
        pattern: &Pattern,
        length: u64,
    ) -> Result<Option<MessageNumber>, Fault> {
        let buffer = self.receiver.places.take(&mut self.receiver.device, receive.0, length)?;
        let devices = std::slice::from_mut(&mut self.receiver.device);
        let taken = self.host.post_placing(receive, pattern, buffer, devices)?;
        if let Some(taken) = taken.filter(|taken| taken.is_placed) {
            self.receiver.check(receive.0, taken.message.0, taken.length)?;
            self.receiver.places.give_back(receive.0);
        }
        let taken = taken.map(|taken| taken.message);
        self.note_taken(taken);
        self.settle()?;
        Ok(taken)
    }

    fn arrive(
        &mut self,
        message: MessageNumber,
        envelope: &Envelope,
        length: u64,
    ) -> Result<Option<ReceiveNumber>, Fault> {
        let begin = Instant::now();
        while !self.senders.send(envelope.source, message, envelope.tag, length)? {
            let any = self.progress()?;
            if !any && !self.drive.step(0) && begin.elapsed() > PATIENCE {
                return Err(Fault::new(format!("message {} cannot be sent: no room", message.0)));
            }
        }
        self.wait("the decision of a message", |target| target.host.is_decided(message))?;
        let matched = self.host.outcome(message);
        self.host.matches += u64::from(matched.is_some());
        if matched.is_none() && real_length(length) > u64::from(EAGER_LIMIT) {
            self.untaken.insert(message);
        }
        self.settle()?;
        Ok(matched.map(ReceiveNumber))
    }

    fn peek(
        &mut self,
        peek: PeekNumber,
        pattern: &Pattern,
        claim: bool,
    ) -> Result<Option<MessageNumber>, Fault> {
        let found = self.host.peek(peek, pattern, claim);
        self.settle()?;
        Ok(found)
    }

    fn claim(
        &mut self,
        receive: ReceiveNumber,
        peek: PeekNumber,
        length: u64,
    ) -> Result<Option<MessageNumber>, Fault> {
        let buffer = self.receiver.places.take(&mut self.receiver.device, receive.0, length)?;
        let claimed = self.host.claim(receive, peek, buffer)?;
        if claimed.is_none() {
            self.receiver.places.give_back(receive.0);
        }
        self.note_taken(claimed);
        self.settle()?;
        Ok(claimed)
    }

    fn cancel(&mut self, receive: ReceiveNumber) -> Result<bool, Fault> {
        let outcome = self.host.cancel(receive);
        self.after()?;
        if outcome == CancelOutcome::Pending {
            self.wait("the answer to a cancel", |target| target.host.ended(receive) != Ended::Open)?;
        }
        let cancelled = self.host.cancelled(receive, outcome)?;
        self.settle()?;
        Ok(cancelled)
    }

    fn reset(&mut self) -> Result<(), Fault> {
        let is_checking = self.receiver.is_checking;
        (self.host, self.receiver) = open(&self.settings, &self.outline)?;
        self.receiver.is_checking = is_checking;
        self.untaken.clear();
        self.senders.reset()?;
        self.connect()
    }

    fn finish(&mut self) -> Result<(), Fault> {
        self.wait_for_all()?;
        self.host.check_finished()?;
        let listed = self.host.engine.listed(RECEIVER).len();
        let (free, all) = (self.receiver.device.free().0, self.receiver.device.capabilities().tags as usize);
        if free + listed != all {
            return Err(Fault::new(format!(
                "the mirror has {listed} entries, and the driver has {free} free of {all}"
            )));
        }
        Ok(())
    }
}

/// The message's number in the trace is its operation id.
const fn number_of(word: u32) -> u32 {
    word >> 8
}

const RECEIVER: DeviceId = DeviceId(0);
/// As the soft replay has it.
const EAGER_LIMIT: u32 = 8192;
/// Events polled at a time.
const EVENTS: usize = 64;
/// How long nothing may happen while something is waited for.
const PATIENCE: Duration = Duration::from_secs(20);
