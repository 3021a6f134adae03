//! A transport over streams of bytes: connections of sockets, or rings in memory that two processes share.
//!
//! ```text
//!  send ───▶ out ───▶ sendmsg ═══▶  frames  ═══▶ recv ───▶ input ─▶ inbox ─▶ ear
//!  expose ─▶ reads ◀── Read frames ◀════════════ reads ◀── actions ◀┘
//! ```
//!
//! A message that finds room goes out from where it lies, in one call; what does not is queued, a payload in memory by
//! reference. One read takes as many messages as there are, and the payload of a matched one goes into its buffer.
//! Reads (of a rendezvous) are frames that ask and frames that answer, in pieces, so that messages get through between.
//!
//! Not here: who may connect and what a hello says (the endpoint); matching.

mod config;
mod ending;
pub(in crate::device) mod frame;
mod handing;
mod input;
mod link;
mod medium;
mod out;
mod parts;
mod progress;
mod reads;
mod sending;

#[cfg(test)]
mod tests;

pub(in crate::device) use config::StreamConfig;
pub(in crate::device) use medium::{Direct, Medium, PEEKED, Stream};

use std::collections::{HashMap, VecDeque};

use super::Device;
use super::host_memory::HostMemory;
use super::inbox::{Done, Inbox, Space, Wanted};
use super::sockets::sys::Epoll;
use super::transport::{CloseReason, Ear, Kept, LinkError, Outgoing, SendError, Sending, Transport};
use crate::ids::{LinkId, MessageToken, PeerId};
use crate::seam::{Buffer, Capabilities, Command, DeviceError, EventSink, Remote};

use link::{Link, Links, State};
use parts::Parts;
use progress::Turn;
use reads::{Exposures, Reads};

/// See the module.
#[derive(Debug)]
pub struct StreamTransport<M: Medium> {
    config: StreamConfig,
    name: Vec<u8>,
    medium: M,
    epoll: Epoll,
    links: Links<M::Stream>,
    parts: Parts,
    /// Accepted and not bound, oldest first; those that were bound or ended since are still named.
    unbound: VecDeque<LinkId>,
    /// Links with more to take of what was read.
    kept_back: VecDeque<LinkId>,
    /// Links of whose bytes the other side's host is to have some, for who wants to know and for those that close.
    watched: Vec<LinkId>,
    scratch: Box<[u8]>,
    ids: Vec<LinkId>,
    turn: usize,
    /// The owner has waited, perhaps, and the descriptor has something to show.
    has_waited: bool,
    /// Something was sent, and nothing has come since.
    is_answer_due: bool,
    /// The frame that began last on the link that was read last is long.
    is_long: bool,
}

impl<M: Medium> StreamTransport<M> {
    /// Over this medium, whose listener is watched under [`LISTENER`].
    pub(in crate::device) fn over(
        medium: M,
        epoll: Epoll,
        name: Vec<u8>,
        config: StreamConfig,
        memory: HostMemory,
    ) -> Self {
        Self {
            config,
            name,
            medium,
            epoll,
            links: Links::default(),
            parts: Parts {
                memory,
                inbox: Inbox::new(memory, config.eager_limit),
                reads: Reads::default(),
                exposed: Exposures::new(),
                peers: HashMap::new(),
                unsent: Vec::new(),
                ending: Vec::new(),
            },
            unbound: VecDeque::new(),
            kept_back: VecDeque::new(),
            watched: Vec::new(),
            scratch: vec![0; SCRATCH].into_boxed_slice(),
            ids: Vec::new(),
            turn: 0,
            has_waited: false,
            is_answer_due: false,
            is_long: false,
        }
    }

    /// Links that are there or being made.
    #[must_use]
    pub fn link_count(&self) -> usize {
        self.links.len()
    }

    pub(in crate::device) const fn medium(&self) -> &M {
        &self.medium
    }

    /// How it was set up, for another that is to be so.
    pub(in crate::device) const fn set_up_as(&self) -> (StreamConfig, HostMemory) {
        (self.config, self.parts.memory)
    }

    /// A child of the process that opened it shares its sockets, has nothing of its memory, and may use neither.
    #[inline]
    fn is_own(&self) -> bool {
        self.medium.listener().is_own()
    }

    #[inline]
    fn must_be_own(&self) -> Result<(), DeviceError> {
        if self.is_own() { Ok(()) } else { Err(DeviceError::Forked) }
    }

    fn submit_one(&mut self, command: &Command) -> Result<(), DeviceError> {
        match command {
            Command::Answer { message, answer } => {
                self.parts.inbox.answer(*message, answer);
                self.act();
            }
            Command::Read { transfer, peer, tag, app_ctx, remote, buffer } => {
                let done = Done::of_request(*app_ctx, *tag, remote)
                    .map_err(|violation| DeviceError::Contract(violation.0))?;
                let (space, remote, buffer) = (Space::Tagged, *remote, *buffer);
                let link = self.parts.peers.get(peer).copied();
                match link.and_then(|link| self.links.find_mut(link)) {
                    Some(link) => {
                        let wanted =
                            Wanted { link: link.id, space, transfer: *transfer, remote, buffer, done };
                        self.parts.start_read(link, wanted);
                    }
                    None => self.parts.inbox.pending.lost(space, *transfer, remote.length),
                }
            }
            Command::Copy { transfer, from, to } => {
                self.parts.memory.copy(from, to);
                self.parts.inbox.pending.data(Space::Tagged, *transfer, from.length, None);
            }
            Command::Add { .. } | Command::Del { .. } | Command::Sync { .. } | Command::Receive { .. } => {
                return Err(DeviceError::Contract("a list operation for a device without a list".into()));
            }
        }
        Ok(())
    }

    /// What an answer wants done. Its links are there, or were when it was given.
    fn act(&mut self) {
        while let Some(action) = self.parts.inbox.actions.front() {
            let link = action.link();
            match self.links.find_mut(link) {
                Some(link) => self.parts.act_once(link),
                None => self.parts.inbox.give_up_action(),
            }
        }
    }
}

impl<M: Medium> Device for StreamTransport<M> {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            eager_limit: self.config.eager_limit,
            buffer_length_max: u64::MAX,
            completions: u32::MAX,
            ..Capabilities::default()
        }
    }

    fn submit(&mut self, commands: &[Command]) -> Result<usize, DeviceError> {
        self.must_be_own()?;
        for command in commands {
            self.submit_one(command)?;
        }
        Ok(commands.len())
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        self.must_be_own()?;
        self.write_unsent();
        Ok(())
    }

    fn place_held(&mut self, message: MessageToken, buffer: &Buffer) -> bool {
        self.parts.inbox.place_held(message, buffer)
    }

    fn poll(&mut self, _max: usize, _sink: &mut dyn EventSink) -> Result<usize, DeviceError> {
        Ok(0)
    }
}

impl<M: Medium> Transport for StreamTransport<M> {
    fn name(&self) -> &[u8] {
        &self.name
    }

    fn is_shared_memory(&self) -> bool {
        M::IS_MEMORY
    }

    fn open(&mut self, address: &[u8]) -> Result<LinkId, LinkError> {
        if !self.is_own() {
            return Err(LinkError::System { call: "fork", errno: libc::EPERM });
        }
        let (stream, failure) = self.medium.connect(address)?;
        let link = self.links.insert(stream, State::Connecting);
        let id = link.id;
        if let Some(reason) = failure {
            self.end(id, reason);
            return Ok(id);
        }
        link.waits_to_write = true;
        if let Err(error) = self.epoll.add(&link.stream, id.to_bits(), true) {
            self.links.remove(id);
            return Err(LinkError::of("epoll_ctl", &error));
        }
        Ok(id)
    }

    fn set_source(&mut self, name: &[u8]) -> Result<(), LinkError> {
        self.name = self.medium.set_source(name)?;
        Ok(())
    }

    fn addresses(&self, link: LinkId) -> Option<(Vec<u8>, Vec<u8>)> {
        self.links.find(link)?.stream.addresses()
    }

    fn bind(&mut self, link: LinkId, peer: PeerId) -> Result<(), LinkError> {
        let found = self.links.find_mut(link).filter(|link| !link.is_closing());
        self.parts.bind(found.ok_or(LinkError::Unknown(link))?, peer)
    }

    fn close(&mut self, link: LinkId, flush: bool) {
        let is_own = self.is_own();
        let Some(found) = self.links.find_mut(link).filter(|_| is_own) else { return };
        if flush && found.is_closing() {
            return;
        }
        let may_flush = flush && found.state == State::Open && found.write_failure.is_none();
        if !may_flush {
            return self.end(link, CloseReason::Here);
        }
        found.state = State::Closing;
        self.parts.unsent(found);
        self.write(link);
    }

    fn untaken(&self, link: LinkId) -> u64 {
        let Some(link) = self.links.find(link) else { return 0 };
        link.out.waiting() + link.stream.unacknowledged()
    }

    fn tell_taken(&mut self, link: LinkId, context: u64) -> bool {
        let Some(link) = self.links.find_mut(link) else { return false };
        if link.takers.is_empty() && link.out.waiting() + link.stream.unacknowledged() == 0 {
            return false;
        }
        let id = link.id;
        link.takers.push_back((link.out.given(), context));
        self.watch(id);
        true
    }

    fn is_unseen(&self) -> bool {
        self.medium.listener().is_paused()
            || !self.watched.is_empty()
            || M::IS_MEMORY && self.links.iter().any(|link| link.waits_to_write)
    }

    fn send(&mut self, link: LinkId, message: &Outgoing<'_>) -> Result<Sending, SendError> {
        if self.send_at_once(link, message) {
            return Ok(Sending::Done);
        }
        if !self.is_own() {
            return Err(SendError::NoLink(link));
        }
        self.is_answer_due = true;
        let sending = self.send_one(link, message);
        self.end_ending();
        sending
    }

    #[inline]
    fn send_at_once(&mut self, link: LinkId, message: &Outgoing<'_>) -> bool {
        let is_sent = !M::Stream::GATHERS && self.is_own() && self.send_whole(link, message);
        self.is_answer_due |= is_sent;
        is_sent
    }

    fn expose(&mut self, link: LinkId, memory: Buffer) -> Result<Remote, SendError> {
        let is_own = self.is_own();
        let found = self.links.find_mut(link).filter(|_| is_own).ok_or(SendError::NoLink(link))?;
        let remote = self.parts.exposed.insert(link, memory);
        found.stream.offer(remote.key, &memory);
        Ok(remote)
    }

    fn withdraw(&mut self, remote: &Remote) {
        let Some(link) = self.parts.exposed.remove(remote.key) else { return };
        let is_own = self.is_own();
        let Some(link) = self.links.find_mut(link).filter(|_| is_own) else { return };
        link.stream.retract(remote.key);
        link.out.withdraw(remote.key, self.parts.memory);
        self.parts.unsent(link);
    }

    fn kept(&self, peer: PeerId) -> Kept {
        self.parts.inbox.kept(peer)
    }

    #[inline]
    fn progress(&mut self, max: usize, ear: &mut dyn Ear) -> Result<usize, DeviceError> {
        self.must_be_own()?;
        // Most looks find nothing, and should cost no more than that.
        match self.turn() {
            Turn::Still => Ok(0),
            Turn::Reads => self.go_on(false, max, ear),
            Turn::Looks => self.go_on(true, max, ear),
        }
    }

    fn wait_descriptor(&self) -> Option<i32> {
        Some(self.epoll.descriptor())
    }

    fn look_around(&mut self) {
        self.has_waited = true;
    }

    fn may_wait(&mut self) -> bool {
        let is_idle =
            self.parts.inbox.pending.is_empty() && self.kept_back.is_empty() && self.parts.unsent.is_empty();
        self.has_waited = true;
        is_idle
            && self.is_own()
            && (!M::IS_MEMORY || self.links.iter_mut().all(|link| link.stream.may_wait()))
    }
}

impl Parts {
    fn bind<S>(&mut self, link: &mut Link<S>, peer: PeerId) -> Result<(), LinkError> {
        if link.peer.is_some() || self.peers.contains_key(&peer) {
            return Err(LinkError::Bound { link: link.id, peer });
        }
        link.peer = Some(peer);
        self.peers.insert(peer, link.id);
        Ok(())
    }
}

/// One read takes so much beside what goes into a buffer.
const SCRATCH: usize = 64 * 1024;
/// What the listener is called.
pub(in crate::device) const LISTENER: u64 = u64::MAX;
