//! A verbs device as an engine sees it: with tag matching (TM-SRQ), or without it where there is none.
//!
//! ```text
//!  submit ─▶ commands ─┬─▶ TM-SRQ (ADD DEL SYNC) ──▶ completion queue ─▶ receive ──┐
//!                      └─▶ sending (READ, FIN) ─▶ QPs ─▶ completion queue ─▶ ──────┼─▶ events ─▶ poll
//!  send ─────────────────────▶ sending ─────────────────────────────────────▶ poll_sent
//!                                                     failure (paths, device) ─────┘
//! ```
//!
//! What the soft device does in one process, this does over libibverbs, and it tells its engine the same:
//! TM-CONTRACT 15 lists the rules. Differences that an owner sees: peers are connected ([`VerbsDevice::prepare`],
//! [`VerbsDevice::connect`]), memory is registered ([`VerbsDevice::register`]), and messages without a tag are there
//! to be taken ([`VerbsDevice::take_untagged`]).
//!
//! Not here: sending by credits, and who the peers are; that is the endpoint's.

mod commands;
mod config;
mod failure;
mod gid;
mod held;
mod open;
mod peers;
mod reads;
mod receive;
mod regions;
mod relayed;
mod sending;
mod side;

use std::collections::VecDeque;
use std::time::Instant;

use slab::Slab as Table;

use super::channel::Channel;
use super::completion::{Completion, CompletionQueue};
use super::context::{Context, Limits, Port};
use super::error::{TagMatchingRefusal, VerbsError};
use super::memory::{MemoryRegion, ProtectionDomain, RemoteAccess};
use super::receives::Slab;
use super::tag_matching::TagMatchingSrq;
use crate::device::Device;
use crate::ids::{MessageToken, PeerId};
use crate::seam::{Add, Buffer, Capabilities, Command, DeviceError, Event, EventSink, Match};

pub use config::{TagMatching, VerbsConfig};
pub use regions::{HostMemory, RegionId, Registered};
pub(in crate::device::verbs) use sending::Own;
pub use sending::{Message, SendDone, SendError, SendFailure, Sending};

use held::HeldMessages;
use peers::Peers;
use reads::ReadJob;
use receive::{BATCH, LAST_MATCH, Received};
use regions::Regions;
use sending::Outgoing;
use side::{Buffers, Matching, ReceiveSide, Untagged};

/// A device behind libibverbs, open: an engine's owner uses it as any [`Device`], connects peers with
/// [`Self::prepare`] and [`Self::connect`], and sends with [`Self::send`].
#[derive(Debug)]
pub struct VerbsDevice {
    // Dropped in this order (TM-CONTRACT 13): queue pairs, receive queue with its completion queue, the other
    // completion queue, memory.
    peers: Peers,
    side: ReceiveSide,
    send_queue: CompletionQueue,
    jobs: Table<ReadJob>,
    outgoing: Table<Outgoing>,
    send_slab: Slab,
    send_free: Vec<u32>,
    regions: Regions,
    domain: ProtectionDomain,
    channel: Option<Channel>,
    context: Context,
    limits: Limits,
    port: Port,
    /// The own GID and its index, where addresses have one.
    gid: Option<([u8; 16], u8)>,
    config: VerbsConfig,
    capabilities: Capabilities,
    refusal: Option<TagMatchingRefusal>,
    buffers: Buffers,
    held: HeldMessages,
    untagged: VecDeque<Untagged>,
    /// Why paths were lost that are told as lost, where an owner asks.
    causes: VecDeque<(PeerId, SendFailure)>,
    untagged_count: u64,
    /// Polled, not told.
    pending: VecDeque<Event>,
    sent: VecDeque<SendDone>,
    failure: Option<DeviceError>,
    failure_told: bool,
    polls: u32,
    /// Polls until asynchronous events are looked for.
    events_in: u32,
    /// Some peer may be failing.
    may_be_failing: bool,
    checked: Instant,
    scratch: Scratch,
}

/// Room that is used again and again.
#[derive(Debug)]
struct Scratch {
    completions: Vec<Completion>,
    /// A place for each completion that was just taken: a whole match, the last of its entry, is there. So is what is old.
    matches: Box<[Match; BATCH]>,
    /// Each with its place.
    others: Vec<(usize, Completion)>,
    indexes: Vec<u32>,
}

impl Default for Scratch {
    fn default() -> Self {
        let matches = Box::new([LAST_MATCH; BATCH]);
        Self { completions: Vec::new(), matches, others: Vec::new(), indexes: Vec::new() }
    }
}

impl VerbsDevice {
    /// Why it does not match, in one line, where it does not.
    #[must_use]
    pub fn refusal(&self) -> Option<&TagMatchingRefusal> {
        self.refusal.as_ref()
    }

    /// The device's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.context.name()
    }

    /// The port in use.
    #[must_use]
    pub const fn port(&self) -> &Port {
        &self.port
    }

    /// What the device can do at most.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// How it was set up.
    #[must_use]
    pub const fn config(&self) -> &VerbsConfig {
        &self.config
    }

    /// Register memory of the caller's, so that tagged buffers may be in it, and peers may read it.
    ///
    /// # Errors
    /// The device refuses.
    ///
    /// # Safety
    /// As [`MemoryRegion::register`]; until [`Self::deregister`] or the end of the device.
    pub unsafe fn register(
        &mut self,
        address: u64,
        length: u64,
        access: RemoteAccess,
    ) -> Result<Registered, VerbsError> {
        // SAFETY: the caller's promise.
        let region = unsafe { MemoryRegion::register(&self.domain, address, length, access) }?;
        Ok(self.regions.insert(region))
    }

    /// New memory, registered: freed when it is deregistered.
    ///
    /// # Errors
    /// No memory, or the device refuses.
    pub fn allocate(&mut self, length: usize, access: RemoteAccess) -> Result<Registered, VerbsError> {
        let region = MemoryRegion::allocate(&self.domain, length, access)?;
        Ok(self.regions.insert(region))
    }

    /// A registered region, to read and write its bytes.
    #[must_use]
    pub fn region(&self, id: RegionId) -> Option<&MemoryRegion> {
        self.regions.find(id)
    }

    /// End a registration.
    ///
    /// # Errors
    /// The caller's fault: there is no such region, or the device holds a buffer in it, reads into it or sends from it
    /// (what peers read of a rendezvous, only their FINs tell). Or the device refuses: [`MemoryRegion::deregister`].
    pub fn deregister(&mut self, id: RegionId) -> Result<(), VerbsError> {
        let Some(region) = self.regions.find(id) else {
            return Err(VerbsError::Caller("there is no such region: it was deregistered before".into()));
        };
        let key = region.local_key();
        let is_read = self.jobs.iter().any(|(_, job)| job.uses_key(key));
        let is_sent = self.outgoing.iter().any(|(_, outgoing)| outgoing.key == key);
        if self.side.uses_key(key) || is_read || is_sent {
            return Err(VerbsError::Caller(
                "the region is in use: a tagged buffer in it was not released, or data is read into it or sent from it"
                    .into(),
            ));
        }
        self.regions.remove(id).map_or(Ok(()), MemoryRegion::deregister)
    }

    /// Let the owner see the messages without a tag that have come, oldest first, and forget them: their sender, the
    /// name that [`Event::Untagged`] gave, and their bytes.
    pub fn take_untagged(&mut self, mut take: impl FnMut(crate::ids::PeerId, MessageToken, &[u8])) -> usize {
        let count = self.untagged.len();
        while let Some(message) = self.untagged.pop_front() {
            match &message.copied {
                Some(bytes) => take(message.source, message.token, bytes),
                None => {
                    // SAFETY: the buffer is not posted.
                    let bytes = unsafe { self.side.bytes(message.buffer, message.length) };
                    take(message.source, message.token, bytes);
                    self.buffers.give_back(message.buffer);
                }
            }
        }
        count
    }

    /// The oldest send that is done.
    pub fn poll_sent(&mut self) -> Option<SendDone> {
        self.sent.pop_front()
    }

    /// Messages that it keeps for the host.
    #[must_use]
    pub fn messages_held(&self) -> usize {
        self.held.len()
    }

    /// Tags and command slots that could be used now; without a list none.
    #[must_use]
    pub fn free(&self) -> (usize, u32) {
        match &self.side {
            ReceiveSide::Matching(matching) => {
                let ledger = matching.srq.ledger();
                (ledger.tags_free() as usize, ledger.slots_free())
            }
            ReceiveSide::Plain(_) | ReceiveSide::Gone => (0, 0),
        }
    }

    /// Buffers for unexpected messages that are posted.
    #[must_use]
    pub const fn buffers_posted(&self) -> u32 {
        self.buffers.posted
    }

    /// Buffers for unexpected messages in which messages are kept, for the host or for the owner.
    #[must_use]
    pub const fn buffers_kept(&self) -> u32 {
        self.buffers.kept()
    }

    /// Buffers for unexpected messages that are neither posted nor kept.
    #[must_use]
    pub fn buffers_free(&self) -> usize {
        self.buffers.free()
    }

    /// The TM-SRQ, where there is one.
    #[must_use]
    pub fn tag_matching(&self) -> Option<&TagMatchingSrq> {
        match &self.side {
            ReceiveSide::Matching(matching) => Some(&matching.srq),
            ReceiveSide::Plain(_) | ReceiveSide::Gone => None,
        }
    }

    /// Tell what waits, so many events at most: how many were.
    #[inline(never)]
    fn tell_pending(&mut self, max: usize, sink: &mut dyn EventSink) -> usize {
        let mut told = 0;
        while told < max
            && let Some(event) = self.pending.pop_front()
        {
            let answer = sink.handle_event(self.config.id, &event);
            told += 1;
            match &event {
                Event::Arrived(arrival) => {
                    if let Err(text) = self.answer(arrival.message, answer, true) {
                        self.fail(host_fault(&text));
                    }
                }
                Event::DeviceFailed(_) => self.failure_told = true,
                Event::Matched(_)
                | Event::Data(_)
                | Event::Operation(_)
                | Event::Untagged { .. }
                | Event::Released(_)
                | Event::SetAside { .. }
                | Event::PathLost { .. } => {}
            }
        }
        told
    }

    /// Tell what waits, and take from the queues what may be there, until that is all or so many were told: how many were.
    #[inline(never)]
    fn poll_on(&mut self, max: usize, mut told: usize, sink: &mut dyn EventSink) -> usize {
        loop {
            if !self.pending.is_empty() {
                told += self.tell_pending(max - told, sink);
            }
            let mut is_over = told >= max || self.failure.is_some();
            if !is_over {
                let (more, was_there) = self.progress(max - told, sink);
                told += more;
                is_over = !was_there;
            }
            if is_over && (told >= max || self.pending.is_empty()) {
                return told;
            }
        }
    }

    /// Take from the queues; `room` events may be told: how many were, and whether there may be more.
    #[inline(always)]
    fn progress(&mut self, room: usize, sink: &mut dyn EventSink) -> (usize, bool) {
        self.polls = self.polls.wrapping_add(1);
        let Received { taken, told, is_all } = self.poll_receives(room, sink);
        // Without sends under way there are none but errors of queue pairs: those can wait until nothing is received.
        let looks = taken == 0 || !self.outgoing.is_empty() || self.polls.is_multiple_of(SENDS_EVERY);
        let sent = if looks { self.poll_sends() } else { 0 };
        self.events_in = self.events_in.wrapping_sub(1);
        if self.events_in == 0 {
            self.look_for_events();
        }
        if taken + sent == 0 && self.is_watching() {
            self.idle();
        }
        (told, !is_all || sent > 0 || !self.pending.is_empty())
    }

    /// What memory is registered in.
    pub(super) const fn domain(&self) -> &ProtectionDomain {
        &self.domain
    }

    fn matching(&mut self) -> Option<&mut Matching> {
        match &mut self.side {
            ReceiveSide::Matching(matching) => Some(matching),
            ReceiveSide::Plain(_) | ReceiveSide::Gone => None,
        }
    }
}

impl Device for VerbsDevice {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn submit(&mut self, commands: &[Command]) -> Result<usize, DeviceError> {
        if commands.is_empty() {
            return self.flush().map(|()| 0);
        }
        let taken = if self.failure.is_none() { self.submit_all(commands) } else { 0 };
        if self.failure.is_some() {
            self.flush()?;
        }
        Ok(taken)
    }

    #[inline(never)]
    fn flush(&mut self) -> Result<(), DeviceError> {
        self.failure.as_ref().map_or(Ok(()), |failure| Err(failure.clone()))
    }

    fn place_held(&mut self, message: MessageToken, buffer: &Buffer) -> bool {
        self.failure.is_none() && self.place_if_here(message, *buffer)
    }

    /// Drawn into whoever has the device at hand: then what is added is in registers, and never put together.
    #[inline(always)]
    fn add(&mut self, add: &Add<'_>) -> bool {
        // A device that failed has no list.
        self.add_now(add)
    }

    fn poll(&mut self, max: usize, sink: &mut dyn EventSink) -> Result<usize, DeviceError> {
        if let Some(failure) = self.failure.as_ref().filter(|_| self.failure_told) {
            return Err(failure.clone());
        }
        if max == 0 || self.failure.is_some() || !self.pending.is_empty() {
            return Ok(self.poll_on(max, 0, sink));
        }
        let (told, is_more) = self.progress(max, sink);
        Ok(if is_more { self.poll_on(max, told, sink) } else { told })
    }
}

/// The queue of sends is looked at in one poll of so many, also while all of them find messages.
const SENDS_EVERY: u32 = 16;

/// The contract was broken on this side of it.
fn host_fault(text: &str) -> DeviceError {
    DeviceError::Contract(format!("by the host: {text}"))
}
