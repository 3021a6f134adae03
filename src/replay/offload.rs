//! A replay target over the engine and soft devices: matching decisions stand in the trace's order, while commands,
//! completions and data are delayed at random.
//!
//! A message is accepted by its device at its place in the trace. If the device matches it, that is the decision,
//! however late its completions are polled. If not, the device is polled until the engine has decided.
//! The devices are models: no time measured here says anything about a card.

use super::ear::{Book, Ear, Hand};
use super::{Fault, Target};
use crate::device::Device as _;
use crate::device::soft::{Acceptance, NoMemory, Observation, SoftConfig, SoftDevice, SoftMessage, Step};
use crate::engine::{CancelOutcome, ClaimId, Config, End, Engine, Kind, Posting, Receive};
use crate::ids::{DeviceId, PeerId, ReceiveId};
use crate::matching::{Envelope, Pattern};
use crate::offload::Statistics;
use crate::seam::{Answer, Buffer, Command, Remote};
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
    engine: Engine,
    devices: Vec<SoftDevice<NoMemory>>,
    settings: Settings,
    random: u64,
    ids: Vec<Option<ReceiveId>>,
    claims: Vec<Option<(ClaimId, MessageNumber)>>,
    ended: Vec<Ended>,
    book: Book,
    matches: u64,
}

/// How far a receive is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Ended {
    #[default]
    Open,
    Received(u32),
    Cancelled,
}

impl Offload {
    /// With room for a trace of so many receives and peeks.
    ///
    /// # Errors
    /// The devices cannot be made, or the engine does not take them.
    pub fn new(settings: Settings, counts: Counts) -> Result<Self, Fault> {
        let mut config = Config::default();
        config.matching.hash_seed = settings.seed;
        let mut engine = Engine::new(config);
        let mut devices = Vec::new();
        for number in 0..settings.devices.max(1) + u8::from(settings.second_path) {
            let tags = if number < settings.devices.max(1) { settings.tags } else { 0 };
            let device = SoftDevice::new(device_config(DeviceId(number), tags, settings), NoMemory);
            let mut device = device.map_err(Fault::new)?;
            if settings.schedule != Schedule::Prompt {
                device.observe();
            }
            let id = engine.add_device(device.capabilities()).map_err(Fault::new)?;
            for bounce in 0..u64::from(tags) {
                engine.add_bounce_buffer(id, Buffer::new(BOUNCE + (bounce << 16), EAGER_LIMIT));
            }
            devices.push(device);
        }
        let random = match settings.schedule {
            Schedule::Prompt => 0,
            Schedule::Random(seed) => seed,
        };
        let mut target = Self {
            engine,
            devices,
            settings,
            random,
            ids: vec![None; counts.receives],
            claims: vec![None; counts.peeks],
            ended: vec![Ended::Open; counts.receives],
            book: Book::default(),
            matches: 0,
        };
        target.submit()?;
        Ok(target)
    }

    /// What offload has done.
    #[must_use]
    pub fn statistics(&self) -> &Statistics {
        self.engine.statistics()
    }

    /// Receives that took a message.
    #[must_use]
    pub const fn matches(&self) -> u64 {
        self.matches
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.random;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)) % bound.max(1)
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
        for at in 0..self.devices.len() {
            let id = device_id(at);
            let commands = self.engine.poll_commands(id);
            if commands.is_empty() {
                continue;
            }
            let commands = commands.to_vec();
            for command in &commands {
                self.note_command(id, command);
            }
            let taken = self.devices[at].submit(&commands).map_err(Fault::new)?;
            if taken != commands.len() {
                return Err(Fault::new(format!(
                    "device {at} took {taken} of {} commands: {:?}",
                    commands.len(),
                    commands.get(taken)
                )));
            }
            self.engine.handle_submitted(id, taken);
        }
        Ok(())
    }

    fn note_command(&mut self, id: DeviceId, command: &Command) {
        match *command {
            Command::Add { handle, .. } => {
                if let Some(context) = self.engine.context_of(id, handle) {
                    self.book.entries.insert((id, handle), number(context));
                }
            }
            Command::Answer { message, answer: Answer::Accept { buffer, .. } } => {
                if let Some(message) = self.book.tokens.remove(&(id, message)) {
                    self.book.decided.insert(message, receive_at(&buffer));
                }
            }
            Command::Answer { message, .. } => {
                self.book.tokens.remove(&(id, message));
            }
            Command::Del { .. }
            | Command::Sync { .. }
            | Command::Receive { .. }
            | Command::Read { .. }
            | Command::Copy { .. } => {}
        }
    }

    /// Let a device tell one event. Whether it had one.
    fn poll_one(&mut self, at: usize) -> Result<bool, Fault> {
        let mut ear = Ear { engine: &mut self.engine, book: &mut self.book };
        let told = self.devices[at].poll(1, &mut ear).map_err(Fault::new)?;
        self.after()?;
        Ok(told > 0)
    }

    /// Commands down, completions up.
    fn after(&mut self) -> Result<(), Fault> {
        self.submit()?;
        while let Some(completion) = self.engine.poll_completion() {
            let receive = number(completion.context);
            let end = match completion.end {
                End::Received(message) => Ended::Received(message.app_ctx),
                End::Cancelled => Ended::Cancelled,
                other @ (End::Failed { .. } | End::Released) => {
                    return Err(Fault::new(format!("receive {receive} ended with {other:?}")));
                }
            };
            self.end(receive, end)?;
            if let (Ended::Received(message), Some(&decided)) = (end, self.book.decided.get(&message_of(end)))
                && decided != receive
            {
                return Err(Fault::new(format!(
                    "message {message} was decided for receive {decided}, and came in receive {receive}"
                )));
            }
            if let End::Received(message) = completion.end {
                self.book.decided.entry(message.app_ctx).or_insert(receive);
            }
        }
        match self.engine.poll_fault() {
            Some(fault) => Err(Fault::new(fault)),
            None => Ok(()),
        }
    }

    /// A receive ends, once.
    fn end(&mut self, receive: u32, end: Ended) -> Result<(), Fault> {
        let Some(ended) = self.ended.get_mut(receive as usize) else {
            return Err(Fault::new(format!("receive {receive} was never posted")));
        };
        if *ended != Ended::Open {
            return Err(Fault::new(format!("receive {receive} ended twice: {ended:?}, then {end:?}")));
        }
        *ended = end;
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
        let context = u64::from(receive.0);
        let posted =
            Receive { pattern: *pattern, buffer: buffer_of(receive, length), context, kind: Kind::Once };
        // Both ways in which a held message comes into its receive, where chance decides anyway.
        let posting = if self.is_random() && self.below(2) == 0 {
            self.engine.post(&posted)
        } else {
            let mut hand = Hand { devices: &mut self.devices, book: &mut self.book };
            self.engine.post_placing(&posted, &mut hand)
        };
        let matched = match posting {
            Posting::Queued(id) => {
                set(&mut self.ids, receive.0, Some(id));
                None
            }
            Posting::Matched(message) => {
                self.matches += 1;
                Some(MessageNumber(message.app_ctx))
            }
            Posting::Placed(message) => {
                self.matches += 1;
                self.book.decided.insert(message.app_ctx, receive.0);
                self.end(receive.0, Ended::Received(message.app_ctx))?;
                Some(MessageNumber(message.app_ctx))
            }
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
            self.outcome(number)
        };
        self.matches += u64::from(matched.is_some());
        self.wander()?;
        Ok(matched.map(ReceiveNumber))
    }

    fn peek(
        &mut self,
        peek: PeekNumber,
        pattern: &Pattern,
        claim: bool,
    ) -> Result<Option<MessageNumber>, Fault> {
        let found = if claim {
            self.engine.claim(pattern).map(|(claim, peeked)| {
                let number = MessageNumber(peeked.app_ctx);
                set(&mut self.claims, peek.0, Some((claim, number)));
                number
            })
        } else {
            self.engine.peek(pattern).map(|peeked| MessageNumber(peeked.app_ctx))
        };
        self.wander()?;
        Ok(found)
    }

    fn claim(
        &mut self,
        receive: ReceiveNumber,
        peek: PeekNumber,
        length: u64,
    ) -> Result<Option<MessageNumber>, Fault> {
        let claimed = self.claims.get_mut(peek.0 as usize).and_then(Option::take);
        let Some((claim, number)) = claimed else { return Ok(None) };
        let buffer = buffer_of(receive, length);
        if !self.engine.receive_claimed(claim, buffer, u64::from(receive.0)) {
            return Err(Fault::new(format!("claim {} is not there", peek.0)));
        }
        self.matches += 1;
        self.wander()?;
        Ok(Some(number))
    }

    fn cancel(&mut self, receive: ReceiveNumber) -> Result<bool, Fault> {
        let id = self.ids.get(receive.0 as usize).copied().flatten();
        let outcome = id.map_or(CancelOutcome::TooLate, |id| self.engine.cancel(id));
        self.after()?;
        let at = receive.0 as usize;
        if outcome == CancelOutcome::Pending {
            self.drive("the answer to a cancel", |target| target.ended.get(at) != Some(&Ended::Open))?;
        }
        let cancelled = self.ended.get(at) == Some(&Ended::Cancelled);
        if cancelled == (outcome == CancelOutcome::TooLate) {
            return Err(Fault::new(format!("cancel of receive {}: {outcome:?}", receive.0)));
        }
        self.wander()?;
        Ok(cancelled)
    }

    fn reset(&mut self) -> Result<(), Fault> {
        let counts = Counts { receives: self.ids.len(), messages: 0, peeks: self.claims.len() };
        *self = Self::new(self.settings, counts)?;
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Fault> {
        self.run_all()?;
        let received = self.ended.iter().filter(|ended| matches!(ended, Ended::Received(_))).count();
        if received as u64 != self.matches {
            return Err(Fault::new(format!("{} matches, {received} receives completed", self.matches)));
        }
        if self.engine.waiting() > 0 || self.engine.transfers() > 0 {
            return Err(Fault::new("messages wait or transfers are under way though nothing can happen"));
        }
        for (at, device) in self.devices.iter().enumerate() {
            let listed = self.engine.listed(device_id(at)).len();
            let in_list = device.list().map_or(0, |list| list.entries().len());
            let held = self.engine.entries(device_id(at)).0 as usize;
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
                let receive = self.book.entries.get(&(device_id(at), handle)).copied();
                if let Some(receive) = receive {
                    self.book.decided.insert(number.0, receive);
                }
                receive
                    .map(Some)
                    .ok_or_else(|| Fault::new(format!("device {at} matched the unknown {handle:?}")))
            }
            Some(Acceptance::Unexpected | Acceptance::Host) => {
                let is_decided = |target: &Self| {
                    target.book.decided.contains_key(&number.0)
                        || target.book.tokens.values().any(|&message| message == number.0)
                            && target.engine.waiting() == 0
                };
                let mut tries = 0;
                while !is_decided(self) {
                    self.devices[at].step(Step::Packet(peer));
                    self.poll_one(at)?;
                    tries += 1;
                    if tries > 64 {
                        self.drive("the decision of a message", is_decided)?;
                    }
                }
                Ok(self.outcome(number))
            }
            Some(Acceptance::Untagged) | None => {
                Err(Fault::new(format!("device {at} does not say what became of message {}", number.0)))
            }
        }
    }

    /// The receive that was decided, by the host or by a device.
    fn outcome(&self, number: MessageNumber) -> Option<u32> {
        self.book.decided.get(&number.0).copied()
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

fn message_of(end: Ended) -> u32 {
    match end {
        Ended::Received(message) => message,
        Ended::Open | Ended::Cancelled => u32::MAX,
    }
}

fn device_id(at: usize) -> DeviceId {
    DeviceId(u8::try_from(at).unwrap_or(u8::MAX))
}

/// Each receive has a stretch of addresses of its own, so that an address tells the receive.
fn buffer_of(receive: ReceiveNumber, length: u64) -> Buffer {
    Buffer::new(u64::from(receive.0) << STRETCH, length)
}

pub(super) fn receive_at(buffer: &Buffer) -> u32 {
    number(buffer.address >> STRETCH)
}

fn number(context: u64) -> u32 {
    u32::try_from(context).unwrap_or(u32::MAX)
}

fn set<T>(table: &mut Vec<Option<T>>, at: u32, value: Option<T>) {
    let at = at as usize;
    if table.len() <= at {
        table.resize_with(at + 1, || None);
    }
    table[at] = value;
}

const EAGER_LIMIT: u64 = 8192;
const STRETCH: u32 = 32;
const BOUNCE: u64 = 1 << 63;
const DRIVE_MAX: usize = 1_000_000;
