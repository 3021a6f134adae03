//! A transport over TCP.
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

mod address;
mod config;
mod ending;
mod frame;
mod input;
mod link;
mod out;
mod parts;
mod progress;
mod reads;
mod sending;
mod sys;

#[cfg(test)]
mod tests;

pub use config::{OpenError, TcpConfig};

use std::collections::{HashMap, VecDeque};
use std::net::{TcpListener, TcpStream};

use super::Device;
use super::host_memory::HostMemory;
use super::inbox::{Done, Inbox, Space, Wanted};
use super::transport::{CloseReason, Ear, Kept, LinkError, Outgoing, SendError, Sending, Transport};
use crate::ids::{LinkId, MessageToken, PeerId};
use crate::seam::{Buffer, Capabilities, Command, DeviceError, EventSink, Remote};

use link::{Link, Links, State};
use parts::Parts;
use reads::{Exposures, Reads};
use sys::Epoll;

/// See the module.
#[derive(Debug)]
pub struct TcpTransport {
    config: TcpConfig,
    name: Vec<u8>,
    listener: TcpListener,
    /// No connection is accepted until one ends: the process has no more descriptors.
    is_listener_paused: bool,
    epoll: Epoll,
    links: Links,
    parts: Parts,
    /// Accepted and not bound, oldest first; those that were bound or ended since are still named.
    unbound: VecDeque<LinkId>,
    /// Links with more to take of what was read.
    kept_back: VecDeque<LinkId>,
    /// Closed, but the other side may not have all yet.
    lingering: VecDeque<TcpStream>,
    scratch: Box<[u8]>,
    ids: Vec<LinkId>,
    turn: usize,
    /// Something was sent, and nothing has come since.
    is_answer_due: bool,
    /// The frame that began last on the link that was read last is long.
    is_long: bool,
}

impl TcpTransport {
    /// Listen.
    ///
    /// # Errors
    /// The memory is not trusted, or the operating system refuses.
    pub fn open(config: TcpConfig, memory: HostMemory) -> Result<Self, OpenError> {
        if !memory.is_trusted() {
            return Err(OpenError::Memory);
        }
        let listener = TcpListener::bind(config.listen).map_err(OpenError::of("bind"))?;
        sys::set_backlog(&listener, config.backlog).map_err(OpenError::of("listen"))?;
        listener.set_nonblocking(true).map_err(OpenError::of("fcntl"))?;
        let name = listener.local_addr().map_err(OpenError::of("getsockname"))?;
        let epoll = Epoll::new().map_err(OpenError::of("epoll_create1"))?;
        epoll.add(&listener, LISTENER, false).map_err(OpenError::of("epoll_ctl"))?;
        Ok(Self {
            config,
            name: address::to_bytes(&name),
            listener,
            is_listener_paused: false,
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
            lingering: VecDeque::new(),
            scratch: vec![0; SCRATCH].into_boxed_slice(),
            ids: Vec::new(),
            turn: 0,
            is_answer_due: false,
            is_long: false,
        })
    }

    /// Links that are there or being made.
    #[must_use]
    pub fn link_count(&self) -> usize {
        self.links.len()
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

impl Device for TcpTransport {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            eager_limit: self.config.eager_limit,
            buffer_length_max: u64::MAX,
            completions: u32::MAX,
            ..Capabilities::default()
        }
    }

    fn submit(&mut self, commands: &[Command]) -> Result<usize, DeviceError> {
        for command in commands {
            self.submit_one(command)?;
        }
        Ok(commands.len())
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
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

impl Transport for TcpTransport {
    fn name(&self) -> &[u8] {
        &self.name
    }

    fn open(&mut self, address: &[u8]) -> Result<LinkId, LinkError> {
        let Some(to) = address::from_bytes(address) else {
            return Err(LinkError::Address(format!("{} bytes that are no sockaddr", address.len())));
        };
        let (stream, failure) = sys::connect(&to).map_err(|error| system("socket", &error))?;
        let link = self.links.insert(stream, State::Connecting);
        let id = link.id;
        if let Some(error) = failure {
            self.end(id, progress::refusal(&error));
            return Ok(id);
        }
        link.waits_to_write = true;
        if let Err(error) = self.epoll.add(&link.stream, id.to_bits(), true) {
            self.links.remove(id);
            return Err(system("epoll_ctl", &error));
        }
        Ok(id)
    }

    fn bind(&mut self, link: LinkId, peer: PeerId) -> Result<(), LinkError> {
        let found = self.links.find_mut(link).filter(|link| link.state != State::Closing);
        self.parts.bind(found.ok_or(LinkError::Unknown(link))?, peer)
    }

    fn close(&mut self, link: LinkId, flush: bool) {
        let Some(found) = self.links.find_mut(link) else { return };
        let may_flush = flush && found.state == State::Open && found.write_failure.is_none();
        if !may_flush {
            return self.end(link, CloseReason::Here);
        }
        found.state = State::Closing;
        self.parts.unsent(found);
        self.write(link);
    }

    fn send(&mut self, link: LinkId, message: &Outgoing<'_>) -> Result<Sending, SendError> {
        let sending = self.send_one(link, message);
        self.is_answer_due = true;
        self.end_ending();
        sending
    }

    fn expose(&mut self, link: LinkId, memory: Buffer) -> Result<Remote, SendError> {
        self.links.find(link).ok_or(SendError::NoLink(link))?;
        Ok(self.parts.exposed.insert(link, memory))
    }

    fn withdraw(&mut self, remote: &Remote) {
        let Some(link) = self.parts.exposed.remove(remote.key) else { return };
        let Some(link) = self.links.find_mut(link) else { return };
        link.out.withdraw(remote.key, self.parts.memory);
        self.parts.unsent(link);
    }

    fn kept(&self, peer: PeerId) -> Kept {
        self.parts.inbox.kept(peer)
    }

    fn progress(&mut self, max: usize, ear: &mut dyn Ear) -> Result<usize, DeviceError> {
        self.go_on(max, ear)
    }

    fn wait_descriptor(&self) -> Option<i32> {
        Some(self.epoll.descriptor())
    }

    fn may_wait(&mut self) -> bool {
        self.parts.inbox.pending.is_empty() && self.kept_back.is_empty() && self.parts.unsent.is_empty()
    }
}

impl Parts {
    fn bind(&mut self, link: &mut Link, peer: PeerId) -> Result<(), LinkError> {
        if link.peer.is_some() || self.peers.contains_key(&peer) {
            return Err(LinkError::Bound { link: link.id, peer });
        }
        link.peer = Some(peer);
        self.peers.insert(peer, link.id);
        Ok(())
    }
}

fn system(call: &'static str, error: &std::io::Error) -> LinkError {
    LinkError::System { call, errno: error.raw_os_error().unwrap_or(libc::EIO) }
}

/// One read takes so much beside what goes into a buffer.
const SCRATCH: usize = 64 * 1024;
/// What the listener is called.
const LISTENER: u64 = u64::MAX;
