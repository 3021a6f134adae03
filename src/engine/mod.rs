//! The engine: matching and offload joined over any number of devices. Sans-IO: events in (`handle_*`), commands
//! and completions out (`poll_*`), nothing else.
//!
//! ```text
//!  post cancel peek claim ──► receive.rs ──► matching (posted, unexpected)
//!  EventSink ──► events.rs ──► arrive.rs ──┘   │
//!                    │             └ waiting.rs (not decided yet)
//!                    └► offload (mirror, phase, policy) ──► commands
//!                                completions ◄── transfer.rs (data under way)
//! ```
//!
//! The owner's loop, for each device:
//!
//! 1. [`Engine::poll_commands`]; submit them ([`Device::submit`](crate::device::Device::submit)), say how many were
//!    taken ([`Engine::handle_submitted`]), and flush ([`Device::flush`](crate::device::Device::flush)). What is not
//!    said to be taken is offered again, and a device that is given it twice fails.
//! 2. Let the device tell its events to the engine ([`crate::seam::EventSink`]).
//! 3. [`Engine::poll_completions`], and now and then [`Engine::poll_fault`].
//!
//! A device of 0 tags is the software fallback, through the same code.
//!
//! ```
//! use tagmatch::device::Device;
//! use tagmatch::device::soft::{NoMemory, SoftConfig, SoftDevice, SoftMessage};
//! use tagmatch::engine::{Config, End, Engine, Kind, Posting, Receive};
//! use tagmatch::ids::{Ignore, PeerId, Source, Tag};
//! use tagmatch::matching::Pattern;
//! use tagmatch::seam::Buffer;
//!
//! let mut engine = Engine::new(Config::default());
//! let mut device = SoftDevice::new(SoftConfig::matching(16), NoMemory)?;
//! let id = engine.add_device(device.capabilities())?;
//! assert_eq!(id, device.config().id, "its events would be taken for another's");
//!
//! // Any source: what this device matches by is the tag. At least as long as the longest eager message.
//! let pattern = Pattern { tag: Tag(7), ignore: Ignore(0), source: Source::Any };
//! let receive = Receive { pattern, buffer: Buffer::new(0x1000, 8192), context: 42, kind: Kind::Once };
//! assert!(matches!(engine.post(&receive), Posting::Queued(_)));
//!
//! let mut completions = Vec::new();
//! for turn in 0..3 {
//!     let taken = device.submit(engine.poll_commands(id))?;
//!     engine.handle_submitted(id, taken);
//!     device.flush()?;
//!     if turn == 1 {
//!         device.send(PeerId(0), SoftMessage::eager(Tag(7), 100)).map_err(|_| "the path is lost")?;
//!     }
//!     device.poll(64, &mut engine)?;
//!     completions.extend(std::iter::from_fn(|| engine.poll_completion()));
//!     assert_eq!(engine.poll_fault(), None);
//! }
//! let End::Received(message) = completions[0].end else { panic!("{completions:?}") };
//! assert_eq!((completions[0].context, message.length), (42, 100));
//! assert_eq!(message.matched_by, Some(id), "by the device, not in software");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! When the memory of a receive may be freed: see [`Completion`].
//!
//! Goals in host instructions from post to completion read, the device excluded: 150 in software, 300 offloaded.
//! docs/performance.md ("Budgets") says where both stand. The budgets beside functions are of those alone.
//!
//! Not here: sending, connections, memory. The engine follows no address.

#![forbid(unsafe_code)]

mod arrive;
mod canonical;
mod completion;
mod events;
mod named;
mod path;
mod receive;
mod renamed;
mod transfer;
mod unread;
mod waiting;

#[cfg(test)]
mod tests;

pub use crate::offload::NameError;
pub use completion::{Completion, End, Received};
pub use path::PathInUse;
pub use receive::{CancelOutcome, ClaimId, Kind, Peeked, Posting, Receive};

use std::collections::VecDeque;

use slab::Slab;

use crate::ids::{DeviceId, GroupId, Ignore, MessageId, PeerId, ReceiveId, TransferId};
use crate::matching::{Config as MatchingConfig, Envelope, Matcher, Pattern};
use crate::offload::{Fault, Offload, Rules, Statistics, TagLayout};
use crate::seam::{Buffer, Capabilities, Command, DeviceError};

use renamed::Renamed;
use transfer::{Claimed, Held, Multi, Transfers};
use unread::Unread;
use waiting::Waiting;

/// How to set up an engine.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// The software matcher.
    pub matching: MatchingConfig,
    /// Which bits of a tag name the sender, if the user promises that some do.
    pub layout: Option<TagLayout>,
    /// The offload rules in force: all of them, but in the model.
    pub rules: Rules,
    /// Where the counters of unexpected messages start; the devices' must start there too. 0 but in models.
    pub counters_start: u16,
    /// So many ADDs in a row may ask for no completion: fewer where a device has few command slots, and none while the
    /// count that goes with them changes. With 0 every list operation is signalled. Default: 63.
    pub silent_adds_max: u8,
    /// Where a device matches and messages come by other paths as well: of the last 16 receives from anybody with one
    /// mask, so many that other paths served keep further ones in software, since each would be taken back from the device;
    /// with a quarter of them those go down again. 0: all go down. Default: 4.
    pub kept_from: u8,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            matching: MatchingConfig::default(),
            layout: None,
            rules: Rules::default(),
            counters_start: 0,
            silent_adds_max: 63,
            kept_from: 4,
        }
    }
}

/// Exact MPI matching over any number of devices.
#[derive(Clone, Debug)]
pub struct Engine {
    matcher: Matcher<Slot, Held>,
    offload: Offload,
    waiting: Waiting,
    renamed: Renamed,
    transfers: Transfers,
    multis: Slab<Multi>,
    claims: Slab<Claimed>,
    claims_made: u32,
    completions: Unread,
    faults: VecDeque<Fault>,
    faults_dropped: u64,
    counters_start: u16,
    silent_adds_max: u8,
}

/// What is known of a posted receive, beside its pattern.
#[derive(Clone, Copy, Debug)]
struct Slot {
    context: u64,
    buffer: Buffer,
    /// Its record in the offload mirror, or [`NONE`].
    record: u32,
    /// Its multi-receive buffer, or [`NONE`].
    multi: u32,
}

impl Slot {
    #[inline]
    const fn new(receive: &Receive) -> Self {
        Self { context: receive.context, buffer: receive.buffer, record: NONE, multi: NONE }
    }

    /// [`Self::new`], where it lies: put together first, it would be written twice. Budget: 8 instructions.
    #[inline(always)]
    fn write(&mut self, receive: &Receive, record: u32) {
        self.context = receive.context;
        self.buffer = receive.buffer;
        self.record = record;
        self.multi = NONE;
    }
}

/// A device cannot join.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// There are as many as an engine takes.
    #[error("an engine takes 256 devices; this would be one more")]
    TooMany,
    /// It matches, but cannot be operated.
    #[error("a device with {tags} tags needs {needed} unexpected buffers at least and offers {offered}")]
    TooFewBuffers {
        /// Entries of its list.
        tags: u32,
        /// What it offers.
        offered: u32,
        /// What a TM-SRQ needs ([`Capabilities::UNEXPECTED_BUFFERS_MIN`]).
        needed: u32,
    },
    /// It matches, but its queues are too short for what every device that matches must be told and must tell.
    #[error(
        "a device with {tags} tags needs a command slot and {needed} completions at least and offers {slots} and {offered}"
    )]
    QueuesTooShort {
        /// Entries of its list.
        tags: u32,
        /// Its command slots.
        slots: u32,
        /// Its completions.
        offered: u32,
        /// One for each unexpected buffer, and one for the report of a count.
        needed: u32,
    },
    /// Its list is longer than entry numbers reach.
    #[error("a matching list has at most 32,767 entries; the device says {tags}")]
    TooManyTags {
        /// Entries of its list.
        tags: u32,
    },
}

impl Engine {
    /// An engine without devices.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            matcher: Matcher::new(config.matching),
            offload: Offload::new(config.layout, config.rules, config.matching.hash_seed, config.kept_from),
            waiting: Waiting::default(),
            renamed: Renamed::default(),
            transfers: Transfers::default(),
            multis: Slab::new(),
            claims: Slab::new(),
            claims_made: 0,
            completions: Unread::new(),
            faults: VecDeque::new(),
            faults_dropped: 0,
            counters_start: config.counters_start,
            silent_adds_max: config.silent_adds_max,
        }
    }

    /// A device joins. Receives that are posted already may go down as well, if it matches.
    ///
    /// Devices are numbered as they join, from 0. What is returned must be what the device calls itself in its events:
    /// the `id` of its configuration, which is 0 unless set
    /// ([`SoftConfig::id`](crate::device::soft::SoftConfig::id), and the same of a verbs device). An engine cannot
    /// tell: events under another's number are taken for that device's. So compare the two, as the example of this
    /// module does.
    ///
    /// # Errors
    /// What it says about itself makes no sense, or there are too many devices.
    pub fn add_device(&mut self, capabilities: Capabilities) -> Result<DeviceId, JoinError> {
        if capabilities.is_matching() {
            let (tags, offered) = (capabilities.tags, capabilities.unexpected_buffers);
            if tags > TAGS_MAX {
                return Err(JoinError::TooManyTags { tags });
            }
            if offered < Capabilities::UNEXPECTED_BUFFERS_MIN {
                let needed = Capabilities::UNEXPECTED_BUFFERS_MIN;
                return Err(JoinError::TooFewBuffers { tags, offered, needed });
            }
            let (slots, needed) = (capabilities.command_slots, offered.saturating_add(1));
            let offered = capabilities.completions;
            if slots == 0 || offered < needed {
                return Err(JoinError::QueuesTooShort { tags, slots, offered, needed });
            }
            self.track_all();
        }
        let (start, silent) = (self.counters_start, self.silent_adds_max);
        self.offload.add_device(capabilities, start, silent).ok_or(JoinError::TooMany)
    }

    /// Receives posted before any device matched are tracked from now on, oldest first.
    fn track_all(&mut self) {
        if self.offload.is_active() {
            return;
        }
        let posted: Vec<ReceiveId> = self.matcher.posted_ids();
        for id in posted {
            let Some((pattern, &slot)) = self.posted(id) else { continue };
            let record = self.offload.track(id, &pattern, &slot.buffer, slot.multi != NONE);
            if let Some(slot) = self.posted_mut(id) {
                slot.record = index32(record);
            }
        }
    }

    /// Commands for a device, oldest first. The owner submits them, and then says how many were taken
    /// ([`Self::handle_submitted`]); those come no more.
    ///
    /// No event may be handled in between: it might withdraw one of them.
    ///
    /// This is also where receives are sent down and counts reported, so call it after posting and after polling.
    #[inline]
    pub fn poll_commands(&mut self, device: DeviceId) -> &[Command] {
        if self.offload.is_settled() {
            return &[];
        }
        if self.offload.is_active() { self.turn(device) } else { self.offload.poll_plain(device) }
    }

    #[inline(never)]
    fn turn(&mut self, device: DeviceId) -> &[Command] {
        self.offload.turn();
        self.offload.commands(device)
    }

    /// Whether [`Self::poll_commands`] would find nothing for any device.
    #[inline]
    #[must_use]
    pub fn has_no_commands(&self) -> bool {
        self.offload.is_settled() || self.offload.is_without_work()
    }

    /// What waits for a device already, without sending anything more down.
    pub fn commands(&mut self, device: DeviceId) -> &[Command] {
        self.offload.commands(device)
    }

    /// The device took so many of its commands.
    #[inline]
    pub fn handle_submitted(&mut self, device: DeviceId, taken: usize) {
        self.offload.handle_submitted(device, taken);
    }

    /// Move completions to the caller, oldest first, and say how many.
    pub fn poll_completions(&mut self, into: &mut [Completion]) -> usize {
        self.completions.pop_into(into)
    }

    /// The oldest completion.
    #[inline]
    pub fn poll_completion(&mut self) -> Option<Completion> {
        self.next_completion().copied()
    }

    /// The oldest completion, to be read where it lies: it comes no more. Budget: 12 instructions.
    #[inline]
    pub fn next_completion(&mut self) -> Option<&Completion> {
        self.completions.pop()
    }

    /// Faults that nobody had polled in time: more than 1,024 are not kept, and the newest of a kind says no more than
    /// the first.
    #[must_use]
    pub const fn faults_dropped(&self) -> u64 {
        self.faults_dropped
    }

    /// What a device did that it may not do, oldest first.
    pub fn poll_fault(&mut self) -> Option<Fault> {
        self.faults.pop_front()
    }

    /// Which bits of a tag name this peer, if a [`TagLayout`] was given. A peer has one name: a new one replaces it.
    ///
    /// # Errors
    /// The name does not fit where the layout has names, or is another peer's: two peers would look like one to a
    /// NIC. Nothing has changed.
    ///
    /// Whose word a name is: a receive from this peer may then be matched by a device by these bits alone, so whoever
    /// calls must know that every tag of the peer's carries them, and no other peer's does. The endpoint does not call
    /// it, since what stands in a tag is the user's, and a peer may write there what it likes: its directed receives
    /// stay in software. Those may who make the tags on both sides: a runtime on the engine itself, and replays of
    /// recorded runs.
    pub fn name_peer(&mut self, peer: PeerId, bits: u64) -> Result<(), NameError> {
        self.offload.name_peer(peer, bits)
    }

    /// Let receives go down to a device, or bring them back and keep them in software.
    pub fn set_offload(&mut self, device: DeviceId, on: bool) {
        self.offload.set_switch(device, on);
    }

    /// Give a device a buffer for receives shorter than its eager limit. `false`: it is shorter itself, or the
    /// device is not there.
    pub fn add_bounce_buffer(&mut self, device: DeviceId, buffer: Buffer) -> bool {
        self.offload.add_bounce(device, buffer)
    }

    /// Build the index of a class (mask, kind of source) beforehand.
    pub fn declare(&mut self, ignore: Ignore, kind: crate::matching::SourceKind) {
        self.matcher.declare(ignore, kind);
    }

    /// What offload has done.
    #[must_use]
    pub fn statistics(&self) -> &Statistics {
        &self.offload.statistics
    }

    /// Receives posted, and messages unexpected.
    #[must_use]
    pub fn depths(&self) -> (usize, usize) {
        (self.matcher.posted_len(), self.matcher.unexpected_len())
    }

    /// Messages that wait for a device to give a receive back.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The senders' words (`app_ctx`) of the messages that wait, oldest first.
    pub fn undecided(&self) -> impl Iterator<Item = u32> + '_ {
        self.waiting.app_ctxs()
    }

    /// The senders' words (`app_ctx`) of the messages on the unexpected list, oldest first. Not for the hot path.
    pub fn unexpected(&self) -> impl Iterator<Item = u32> + '_ {
        let held = |id| self.unexpected_message(id).map(|(_, held)| held.app_ctx);
        self.matcher.unexpected_ids().into_iter().filter_map(held)
    }

    /// The context of the receive that a transfer under way belongs to.
    #[must_use]
    pub fn context_of_transfer(&self, transfer: TransferId) -> Option<u64> {
        self.transfers.find(transfer).map(|transfer| transfer.context)
    }

    /// Transfers under way.
    #[must_use]
    pub fn transfers(&self) -> usize {
        self.transfers.len()
    }

    /// Entries that a device knows of, and how many it may.
    #[must_use]
    pub fn entries(&self, device: DeviceId) -> (u32, u32) {
        self.offload.entries(device)
    }

    /// Command slots of a device that are used: of the list operations at or before which no completion has come. Most
    /// ADDs ask for none, so some are used also when nothing is under way.
    #[must_use]
    pub fn command_slots_used(&self, device: DeviceId) -> u64 {
        self.offload.slots_used(device)
    }

    /// The entries of a device's list, oldest first: what the mirror says of it.
    #[must_use]
    pub fn listed(&self, device: DeviceId) -> Vec<crate::ids::TagHandle> {
        self.offload.listed(device)
    }

    /// The context of the posted receive that a device's entry stands for.
    #[must_use]
    pub fn context_of(&self, device: DeviceId, handle: crate::ids::TagHandle) -> Option<u64> {
        let id = self.offload.receive_of(device, handle)?;
        self.posted(id).map(|(_, slot)| slot.context)
    }

    /// Whether commands or completions wait for the owner.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.completions.len() > 0
            || (0..self.offload.device_count()).any(|device| {
                u8::try_from(device).is_ok_and(|device| self.offload.has_commands(DeviceId(device)))
            })
    }

    /// Whether the rules let the owner poll this device now: always (rule 5), but in the model that drops it.
    #[must_use]
    pub fn is_poll_allowed(&self, device: DeviceId) -> bool {
        self.offload.rules().hold(crate::offload::Clause::PollOn) || !self.waiting.is_any_from(device)
    }

    /// A peer joins a group, or (`None`) leaves the one it is in.
    pub fn set_group(&mut self, peer: PeerId, group: Option<GroupId>) {
        self.offload.handle_group(peer, group);
        let waiting = match group {
            Some(group) => self.matcher.rekey_group(peer, group),
            None => {
                self.matcher.leave_group(peer);
                Vec::new()
            }
        };
        self.match_again(waiting);
    }

    /// A source is learned late: what is known of `from` is `to`'s, and what devices say of `from` from now on as
    /// well, until its number is dealt again (`resolve(from, from)`). Messages and receives keep their places;
    /// messages that a posted receive now takes are matched, in their order of arrival.
    ///
    /// Receives in NICs that name `to` come back meanwhile, since an older one of `from` may now go before them; what
    /// a NIC matches until then counts as matched before.
    pub fn resolve(&mut self, from: PeerId, to: PeerId) {
        self.renamed.set(from, to);
        self.offload.end_plain();
        if from == to {
            return;
        }
        self.offload.rename_peer(from, to);
        self.waiting.rename(from, to);
        self.transfers.rename(from, to);
        for (_, claimed) in &mut self.claims {
            let source = &mut claimed.message.envelope.source;
            *source = if *source == from { to } else { *source };
        }
        let renamed = self.matcher.rekey(from, to);
        self.match_again(renamed);
    }

    /// A posted receive.
    #[inline]
    fn posted(&self, id: ReceiveId) -> Option<(Pattern, &Slot)> {
        self.matcher.posted(id)
    }

    fn posted_mut(&mut self, id: ReceiveId) -> Option<&mut Slot> {
        self.matcher.posted_mut(id)
    }

    /// Take a receive off the posted list.
    fn take_posted(&mut self, id: ReceiveId) -> Option<(Pattern, Slot)> {
        self.matcher.take_posted(id)
    }

    /// A message on the unexpected list.
    fn unexpected_message(&self, id: MessageId) -> Option<(Envelope, &Held)> {
        self.matcher.unexpected(id)
    }

    /// The messages on the unexpected list that are so, oldest first. Not for the hot path.
    fn unexpected_where(&self, is_so: impl Fn(&Held) -> bool) -> Vec<MessageId> {
        self.matcher.unexpected_where(is_so)
    }

    /// Take a message off the unexpected list.
    fn take_unexpected(&mut self, id: MessageId) -> Option<(Envelope, Held)> {
        self.matcher.take_unexpected(id)
    }

    /// A message that no posted receive fits joins the unexpected list.
    #[inline]
    fn queue_unexpected(&mut self, envelope: Envelope, held: Held) {
        self.matcher.queue_unexpected(envelope, held);
    }

    fn fault(&mut self, device: DeviceId, fault: Fault) {
        self.offload.distrust(device);
        self.keep_fault(fault);
    }

    /// A device fails once; if it says so again that is worth no more than other faults.
    fn keep_failure(&mut self, device: DeviceId, error: &DeviceError) {
        let fault = Fault::Failed { device, error: error.clone() };
        if self.offload.is_there(device) {
            self.faults.push_back(fault);
        } else {
            self.keep_fault(fault);
        }
    }

    /// A device that goes on breaking its contract must not fill the memory of an owner who does not ask.
    fn keep_fault(&mut self, fault: Fault) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push_back(fault);
        } else {
            self.faults_dropped += 1;
        }
    }
}

fn index32(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(NONE)
}

/// Faults kept for the owner. Each device adds at most one more, its failure.
const FAULTS_MAX: usize = 1024;
/// No record, no multi-receive buffer.
const NONE: u32 = u32::MAX;
/// Entry numbers have 15 bits (TM-CONTRACT 1).
const TAGS_MAX: u32 = (1 << 15) - 1;
