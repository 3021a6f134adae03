//! A soft device: a TM-SRQ under the driver's accounting, or a device without a list, as an engine sees it.
//!
//! ```text
//!  send ─▶ peers ─▶ accept ─┬─▶ list ──▶ entry's buffer ──┐
//!                           └─▶ receive queue ─▶ held ────┤
//!  submit ─▶ driver ─▶ command queue ─▶ list ─────────────┼─▶ completion queue ─▶ driver ─▶ events ─▶ poll
//!  Answer, Read, Copy ─▶ held, reads ─────────────────────┘
//! ```
//!
//! Everything between two arrows is a [`Step`](super::Step): by hand in step mode, by itself otherwise.
//! What a step does is in `steps`, what becomes of completions in `host`, failures in `failure`.

use std::collections::{HashMap, VecDeque};

use super::completion::Cqe;
use super::driver::Driver;
use super::held::HeldMessages;
use super::list::MatchingList;
use super::memory::{Memory, NoMemory};
use super::message::{Observation, SoftMessage};
use super::peers::Peers;
use super::request::{Attributes, Errno, Limits};
use super::switches::{OtherPort, RoCe, Switches};
use crate::device::Device;
use crate::ids::{DeviceId, MessageToken, PeerId, Tag, TagHandle, TransferId};
use crate::seam::{Add, Buffer, Capabilities, Command, DeviceError, Event, EventSink, Remote};

/// A device that is a model, in this process: a TM-SRQ under the driver's accounting, or a device without a list.
///
/// [`Self::send`] is what a sender does. An engine's owner uses it as any [`Device`]; a program of verbs calls
/// what is named after verbs. Everything between two of its parts is a [`Step`](super::Step), done by itself unless in
/// step mode ([`Self::steps`], [`Self::step`]).
#[derive(Clone, Debug)]
pub struct SoftDevice<M: Memory = NoMemory> {
    pub(crate) config: SoftConfig,
    pub(crate) matching: Option<TagMatching>,
    pub(crate) peers: Peers,
    pub(crate) reads: Vec<PendingRead>,
    /// Entries that wait for EXPECTED, in the order of their matches.
    pub(crate) expecting: VecDeque<u16>,
    /// Completions that wait for one before them.
    pub(crate) serial: VecDeque<Serial>,
    /// Written, not polled.
    pub(crate) outputs: VecDeque<Output>,
    pub(crate) completions_used: u32,
    /// Polled, not told.
    pub(crate) pending: VecDeque<Event>,
    pub(crate) held: HeldMessages,
    pub(crate) failure: Option<DeviceError>,
    pub(crate) failure_told: bool,
    pub(crate) observations: Option<Vec<Observation>>,
    /// What it writes to.
    pub memory: M,
}

impl<M: Memory> SoftDevice<M> {
    /// A device as the configuration says, in automatic mode or step mode.
    ///
    /// # Errors
    /// The driver refuses, as TM-CONTRACT 5 and A14, A15 say.
    pub fn new(config: SoftConfig, memory: M) -> Result<Self, DeviceError> {
        let matching = if config.tags == 0 {
            None
        } else {
            let refused =
                |errno: Errno| DeviceError::System { call: "ibv_create_srq_ex", errno: errno.number() };
            Some(TagMatching::create(&config).map_err(refused)?)
        };
        Ok(Self {
            config,
            matching,
            peers: Peers::default(),
            reads: Vec::new(),
            expecting: VecDeque::new(),
            serial: VecDeque::new(),
            outputs: VecDeque::new(),
            completions_used: 0,
            pending: VecDeque::new(),
            held: HeldMessages::default(),
            failure: None,
            failure_told: false,
            observations: None,
            memory,
        })
    }

    /// A sender sends. The message is accepted by a later step.
    ///
    /// # Errors
    /// The path to the sender is lost, or the device failed: the message comes back.
    pub fn send(&mut self, peer: PeerId, message: SoftMessage) -> Result<(), SoftMessage> {
        if self.failure.is_some() || self.peers.is_lost(peer) {
            return Err(message);
        }
        self.peers.push(peer, message);
        Ok(())
    }

    /// A lost path works again, as a new QP.
    pub fn restore_path(&mut self, peer: PeerId) {
        self.peers.entry(peer).lost = false;
    }

    /// Advance only by [`Self::step`], or by itself when polled.
    pub const fn set_step_mode(&mut self, step_mode: bool) {
        self.config.step_mode = step_mode;
    }

    /// Keep observations from now on; [`Self::take_observations`] must then be called now and then.
    pub fn observe(&mut self) {
        self.observations.get_or_insert_default();
    }

    /// What happened inside the device since the last call, if [`Self::observe`] was called before.
    pub fn take_observations(&mut self) -> Vec<Observation> {
        self.observations.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The driver, where there is one.
    #[must_use]
    pub fn driver(&self) -> Option<&Driver> {
        self.matching.as_ref().map(|matching| &matching.driver)
    }

    /// The matching list, where there is one.
    #[must_use]
    pub fn list(&self) -> Option<&MatchingList> {
        self.matching.as_ref().map(|matching| &matching.list)
    }

    /// Completions written and not polled.
    #[must_use]
    pub const fn completions_used(&self) -> u32 {
        self.completions_used
    }

    /// Messages that it keeps for the host.
    #[must_use]
    pub fn messages_held(&self) -> usize {
        self.held.len()
    }

    /// The configuration it was made with.
    #[must_use]
    pub const fn config(&self) -> &SoftConfig {
        &self.config
    }

    /// Whether nothing is left to be told (there may be steps left, in step mode).
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.pending.is_empty() && self.outputs.is_empty()
    }

    pub(crate) fn note(&mut self, observation: Observation) {
        if let Some(observations) = &mut self.observations {
            observations.push(observation);
        }
    }
}

impl<M: Memory> Device for SoftDevice<M> {
    fn capabilities(&self) -> Capabilities {
        let config = &self.config;
        Capabilities {
            tags: config.tags,
            command_slots: self.driver().map_or(0, Driver::slots),
            completions: config.completions,
            unexpected_buffers: if config.tags == 0 { 0 } else { config.unexpected_buffers },
            eager_limit: config.eager_limit,
            buffer_length_max: config.buffer_length_max,
            registration: false,
            rendezvous: config.rendezvous && config.tags > 0,
        }
    }

    fn submit(&mut self, commands: &[Command]) -> Result<usize, DeviceError> {
        for (taken, command) in commands.iter().enumerate() {
            if let Some(failure) = &self.failure {
                return Err(failure.clone());
            }
            match self.submit_one(command) {
                Ok(true) => {}
                Ok(false) => return Ok(taken),
                Err(violation) => {
                    let error = host_fault(&violation);
                    self.fail(error.clone());
                    return Err(error);
                }
            }
        }
        self.failure.as_ref().map_or(Ok(commands.len()), |failure| Err(failure.clone()))
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        self.failure.as_ref().map_or(Ok(()), |failure| Err(failure.clone()))
    }

    fn place_held(&mut self, message: MessageToken, buffer: &Buffer) -> bool {
        self.failure.is_none() && self.write_held(message, *buffer)
    }

    fn add(&mut self, add: &Add<'_>) -> bool {
        // What it cannot take its command will tell of.
        self.failure.is_none() && matches!(self.submit(&[add.command()]), Ok(1))
    }

    fn poll(&mut self, max: usize, sink: &mut dyn EventSink) -> Result<usize, DeviceError> {
        if let Some(failure) = self.failure.as_ref().filter(|_| self.failure_told) {
            return Err(failure.clone());
        }
        let mut told = 0;
        while told < max {
            if !self.config.step_mode {
                self.run();
            }
            let Some(event) = self.next_event() else { break };
            let answer = sink.handle_event(self.config.id, &event);
            told += 1;
            if let Event::Arrived(arrival) = &event
                && !self.answer(arrival.message, answer)
            {
                self.fail(host_fault(&format!("{answer:?} for {arrival:?}")));
            }
        }
        Ok(told)
    }
}

/// The contract was broken on this side of it.
pub(crate) fn host_fault(text: &str) -> DeviceError {
    DeviceError::Contract(format!("by the host: {text}"))
}

/// What a soft device is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SoftConfig {
    /// Its number with the engine, under which it tells its events: it must be what
    /// [`Engine::add_device`](crate::engine::Engine::add_device) returns for it, 0 for the first that joins, 1 for the
    /// next. Nothing checks that; with another's number, its events are taken for the other's.
    pub id: DeviceId,
    /// `max_num_tags`; 0: a device without a list.
    pub tags: u32,
    /// `max_ops`; the command slots are the next power of two.
    pub operations: u32,
    /// Entries of the completion queue. More at a time is fatal.
    pub completions: u32,
    /// Buffers for unexpected messages (`attr.max_wr`, before rounding).
    pub unexpected_buffers: u32,
    /// See [`Capabilities::eager_limit`]; also the payload that a buffer for unexpected messages holds.
    pub eager_limit: u64,
    /// See [`Capabilities::buffer_length_max`].
    pub buffer_length_max: u64,
    /// Whether the device reads the data of a matched rendezvous itself.
    pub rendezvous: bool,
    /// Whether the port is RoCE (A15).
    pub roce: bool,
    /// The port of the data QPs (A14); the command QP is on port 1.
    pub port: u8,
    /// What the counts of unexpected messages start from: 0 but in tests of the wrap.
    pub count: u16,
    /// Advance only by hand.
    pub step_mode: bool,
    /// The device's limits.
    pub limits: Limits,
    /// Readings.
    pub switches: Switches,
}

impl SoftConfig {
    /// A device with a list of so many tags, generously sized (TM-CONTRACT 12).
    #[must_use]
    pub fn matching(tags: u32) -> Self {
        // An ADD and a DEL for each tag, a SYNC and one more, as far as the command queue reaches.
        let operations = tags.saturating_mul(2).saturating_add(2).min(Limits::default().operations);
        let unexpected_buffers = 64;
        Self {
            tags,
            operations,
            completions: tags
                .saturating_mul(3)
                .saturating_add(operations.saturating_mul(2))
                .saturating_add(unexpected_buffers),
            unexpected_buffers,
            rendezvous: true,
            ..Self::generic()
        }
    }

    /// A device without a list.
    #[must_use]
    pub fn generic() -> Self {
        Self {
            id: DeviceId(0),
            tags: 0,
            operations: 0,
            completions: u32::MAX,
            unexpected_buffers: 0,
            eager_limit: 8192,
            buffer_length_max: 1 << 31,
            rendezvous: false,
            roce: false,
            port: 1,
            count: 0,
            step_mode: false,
            limits: Limits::default(),
            switches: Switches::default(),
        }
    }
}

/// What a device with a list has.
#[derive(Clone, Debug)]
pub(crate) struct TagMatching {
    pub(crate) driver: Driver,
    pub(crate) list: MatchingList,
    /// By the driver's handle.
    pub(crate) names: Vec<Option<Named>>,
    pub(crate) handles: HashMap<TagHandle, u16>,
    /// A3, not atomic: the count of the next command has been applied.
    pub(crate) count_applied: bool,
}

impl TagMatching {
    fn create(config: &SoftConfig) -> Result<Self, Errno> {
        let switches = config.switches;
        let refused = (config.roce && switches.roce == RoCe::Refused)
            || (config.port != 1 && switches.other_port == OtherPort::Refused);
        if refused {
            return Err(Errno::Invalid);
        }
        let attributes = Attributes {
            tags: config.tags,
            operations: config.operations,
            receives: config.unexpected_buffers,
            receive_segments: 1,
        };
        let driver = Driver::create(&attributes, &config.limits, config.count)?;
        // The kernel rounds up, to more than was asked for (TM-CONTRACT 5).
        let capacity = 1 << (config.tags.ilog2() + 1);
        Ok(Self {
            driver,
            list: MatchingList::new(capacity, config.count, switches),
            names: vec![None; config.tags as usize + 1],
            handles: HashMap::new(),
            count_applied: false,
        })
    }

    pub(crate) fn name(&self, index: u16) -> Option<Named> {
        self.names.get(usize::from(index)).copied().flatten()
    }

    pub(crate) fn set_stage(&mut self, index: u16, stage: Stage) {
        if let Some(Some(named)) = self.names.get_mut(usize::from(index)) {
            named.stage = stage;
        }
    }
}

/// The engine's name for a driver's handle.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Named {
    pub(crate) handle: TagHandle,
    pub(crate) stage: Stage,
}

/// What the engine has been told of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Stage {
    Posted,
    DataFollows,
    HandedBack,
}

/// A read under way.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct PendingRead {
    pub(crate) peer: PeerId,
    /// Shown by a verbs completion of a read that is lost; an engine is not told.
    pub(crate) tag: Tag,
    pub(crate) app_ctx: u32,
    pub(crate) remote: Remote,
    pub(crate) buffer: Buffer,
    pub(crate) immediate: Option<u32>,
    pub(crate) broken: bool,
    pub(crate) target: ReadTarget,
}

/// For whom.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum ReadTarget {
    /// The device itself.
    Entry(u16),
    /// The host side, for a message it holds.
    Message(MessageToken),
    /// The engine.
    Transfer(TransferId),
}

/// Something that will be told.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Output {
    /// An entry of the completion queue, and the message that it is about where the host needs that.
    Completion { cqe: Cqe, message: Option<SoftMessage>, broken: bool },
    /// A message reached a device without a list.
    Arrived(MessageToken),
    /// The data of a held message is complete or lost.
    Data(MessageToken),
    /// Anything else.
    Told(Event),
    /// The device failed.
    Failed,
}

/// A place in the order of completions.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Serial {
    Ready(Output),
    /// The message that is coming in from this sender.
    Waiting(PeerId),
}
