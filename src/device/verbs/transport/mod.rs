//! A transport over verbs: reliable connected queue pairs on one shared receive queue, for any RDMA NIC, and for soft
//! RoCE. Where the device matches tags (TM-SRQ), it does.
//!
//! ```text
//!  open accept ─▶ exchange, greeting (a socket for each link) ─▶ queue pairs
//!  send ─▶ send buffers ─▶ SEND ═════▶ receive buffers ─┬─ with a tag ─▶ device ─▶ ear
//!  expose ─▶ registered memory ◀═ READ ═ accepted       └─ all others ─▶ inbox ─▶ ear
//! ```
//!
//! The device ([`VerbsDevice`]) sends, receives, reads, matches or not, and says what was lost; what makes a transport of
//! it is here: links, messages without a tag, segments, memory that is registered as it is needed. Bytes of messages are
//! those of every transport (`wire`), one message a SEND.
//!
//! Not here: who may connect and what a hello says (the endpoint).

mod config;
mod exchange;
mod greeting;
mod hearing;
mod held;
mod link;
mod memory;
mod submitting;
mod unlisted;

pub use config::{OpenError, VerbsTransportConfig};

use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsRawFd, RawFd};

use slab::Slab;

use super::{HostMemory, VerbsConfig, VerbsDevice};
use crate::device::Device;
use crate::device::inbox::{Inbox, Space};
use crate::device::sockets::listener::Listener;
use crate::device::sockets::sys::{self, Epoll};
use crate::device::sockets::{OpenError as ExchangeError, address, status};
use crate::device::transport::{
    CloseReason, Ear, Kept, LinkError, Outgoing, Payload, SendError, Sending, Transport,
};
use crate::device::verbs::device as below;
use crate::ids::{LinkId, MessageToken, PeerId, TransferId};
use crate::seam::{Add, Buffer, Capabilities, Command, DeviceError, EventSink, Remote};
use crate::wire::{self, Partial};

use held::Held;
use link::{Links, State};
use memory::Registrations;
use unlisted::Unlisted;

/// See the module.
#[derive(Debug)]
pub struct VerbsTransport {
    // First, since nothing may be in use by queue pairs that is given up.
    device: VerbsDevice,
    registrations: Registrations,
    unlisted: Unlisted,
    capabilities: Capabilities,
    name: Vec<u8>,
    listener: Listener,
    epoll: Epoll,
    links: Links,
    /// By which link each peer comes.
    peers: HashMap<PeerId, LinkId>,
    inbox: Inbox,
    held: Held,
    /// Reads of the inbox's, which the device knows by other names.
    reads: Slab<(Space, TransferId)>,
    /// Accepted and not bound, oldest first; those that were bound or ended since are still named.
    unbound: VecDeque<LinkId>,
    unbound_max: usize,
    /// Links of which somebody wants to know what the other side's card has.
    watched: Vec<LinkId>,
    turn: usize,
    scratch: Vec<Command>,
}

impl VerbsTransport {
    /// Open the device, and listen.
    ///
    /// # Errors
    /// The memory is not trusted, there is no such device, or the operating system refuses.
    pub fn open(config: VerbsTransportConfig, memory: HostMemory) -> Result<Self, OpenError> {
        if !memory.is_trusted() {
            return Err(ExchangeError::Memory.into());
        }
        let (listener, epoll, name) = Listener::open(config.listen, config.backlog, LISTENER)?;
        // Messages without a tag are links' own.
        let asked = VerbsConfig { keep_untagged: true, ..config.device.clone() };
        let device = VerbsDevice::open(asked, memory)?;
        if let Some(channel) = device.wait_descriptor() {
            epoll.add(&Raw(channel), CHANNEL, false).map_err(ExchangeError::of("epoll_ctl"))?;
        }
        let events = Raw(device.event_descriptor());
        epoll.add(&events, EVENTS, false).map_err(ExchangeError::of("epoll_ctl"))?;
        // What is not registered is registered here.
        let capabilities = Capabilities { registration: false, ..device.capabilities() };
        let linger = config.linger_on(device.limits());
        let mut registrations = Registrations::new(memory, device.domain(), linger);
        registrations.make_bounces(&capabilities)?;
        Ok(Self {
            inbox: Inbox::new(memory, capabilities.eager_limit),
            device,
            registrations,
            unlisted: Unlisted::default(),
            capabilities,
            name,
            listener,
            epoll,
            links: Links::default(),
            peers: HashMap::new(),
            held: Held::default(),
            reads: Slab::new(),
            unbound: VecDeque::new(),
            unbound_max: config.unbound_max,
            watched: Vec::new(),
            turn: 0,
            scratch: Vec::new(),
        })
    }

    /// The device behind it.
    #[must_use]
    pub const fn device(&self) -> &VerbsDevice {
        &self.device
    }

    /// Links that are there, being made or being ended.
    #[must_use]
    pub fn link_count(&self) -> usize {
        self.links.len()
    }

    /// Receives that were to go into the device's list, and are not there: their memory cannot be registered, or they
    /// overlap such a one. Software matches them.
    #[must_use]
    pub fn receives_not_listed(&self) -> usize {
        self.unlisted.len()
    }

    /// A child of the process that opened it may not use it.
    #[inline]
    fn must_be_own(&self) -> Result<(), DeviceError> {
        if self.listener.is_own() { Ok(()) } else { Err(DeviceError::Forked) }
    }

    fn bind_link(&mut self, id: LinkId, peer: PeerId) -> Result<(), LinkError> {
        let is_known = self.peers.contains_key(&peer);
        let found = self.links.find_mut(id).filter(|link| link.hears());
        let link = found.ok_or(LinkError::Unknown(id))?;
        if is_known || link.peer.is_some() {
            return Err(LinkError::Bound { link: id, peer });
        }
        link.peer = Some(peer);
        self.peers.insert(peer, id);
        // Where that fails, its end will be told.
        if self.join(id) {
            self.greet(id);
        }
        Ok(())
    }
}

impl Device for VerbsTransport {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn submit(&mut self, commands: &[Command]) -> Result<usize, DeviceError> {
        self.must_be_own()?;
        self.submit_all(commands)
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        self.must_be_own()?;
        self.device.flush()
    }

    fn place_held(&mut self, message: MessageToken, buffer: &Buffer) -> bool {
        let Some(of_device) = of_device(message) else { return self.inbox.place_held(message, buffer) };
        let is_placed = self.device.place_held(of_device, buffer);
        if is_placed {
            self.held.forget(message);
        }
        is_placed
    }

    fn add(&mut self, add: &Add<'_>) -> bool {
        self.add_now(add)
    }

    fn poll(&mut self, _max: usize, _sink: &mut dyn EventSink) -> Result<usize, DeviceError> {
        Ok(0)
    }
}

impl Transport for VerbsTransport {
    fn name(&self) -> &[u8] {
        &self.name
    }

    fn open(&mut self, address: &[u8]) -> Result<LinkId, LinkError> {
        if !self.listener.is_own() {
            return Err(LinkError::System { call: "fork", errno: libc::EPERM });
        }
        let Some(to) = address::from_bytes(address) else {
            return Err(LinkError::Address(format!("{} bytes that are no sockaddr", address.len())));
        };
        let system = |call, error: &std::io::Error| LinkError::System {
            call,
            errno: error.raw_os_error().unwrap_or(libc::EIO),
        };
        let (socket, failure) = sys::connect(&to, None).map_err(|error| system("socket", &error))?;
        let link = self.links.insert(socket, State::Connecting);
        let id = link.id;
        let added = self.epoll.add(&link.socket, id.to_bits(), true);
        if let Some(error) = failure {
            self.end(id, status::refusal(&error));
        } else if let Err(error) = added {
            self.links.remove(id);
            return Err(system("epoll_ctl", &error));
        }
        Ok(id)
    }

    fn bind(&mut self, link: LinkId, peer: PeerId) -> Result<(), LinkError> {
        self.bind_link(link, peer)
    }

    fn close(&mut self, link: LinkId, flush: bool) {
        if !self.listener.is_own() {
            return;
        }
        if let Some(found) = self.links.find_mut(link) {
            found.is_deaf = true;
        }
        let Some(found) = self.links.find(link) else { return };
        if flush && found.is_open() && !self.is_out(found) {
            self.links.set_state(link, State::Closing);
        } else if !(flush && found.state == State::Closing) {
            self.end(link, CloseReason::Here);
        }
    }

    fn untaken(&self, link: LinkId) -> u64 {
        let Some(found) = self.links.find(link) else { return 0 };
        self.device.under_way(found.path()) + sys::unacknowledged(&found.socket)
    }

    fn tell_taken(&mut self, link: LinkId, context: u64) -> bool {
        let Some(found) = self.links.find_mut(link) else { return false };
        let (sent, taken) = self.device.acknowledged(found.path());
        if sent == taken {
            return false;
        }
        found.takers.push_back((sent, context));
        if found.takers.len() == 1 {
            self.watched.push(link);
        }
        true
    }

    fn is_unseen(&self) -> bool {
        self.listener.is_paused()
    }

    fn send(&mut self, link: LinkId, message: &Outgoing<'_>) -> Result<Sending, SendError> {
        if !self.listener.is_own() {
            return Err(SendError::NoLink(link));
        }
        let found = self.links.find(link).filter(|link| link.is_open()).ok_or(SendError::NoLink(link))?;
        let (path, is_ready) = (found.path(), found.is_ready);
        check(message)?;
        if !is_ready {
            return self.send_early(link, message);
        }
        let sent = self.device.send_encoded(path, message.header, message.payload, message.immediate);
        match sent {
            Ok(below::Sending::Posted) => Ok(Sending::Done),
            Ok(below::Sending::Full) => Ok(Sending::Full),
            Err(below::SendError::TooLong { length, limit }) => Err(SendError::TooLong { length, limit }),
            Err(below::SendError::Malformed) => Err(SendError::Malformed),
            // It is ending, as will be told.
            Err(below::SendError::NoPath { .. } | below::SendError::Refused(_)) => {
                Err(SendError::NoLink(link))
            }
        }
    }

    fn expose(&mut self, link: LinkId, memory: Buffer) -> Result<Remote, SendError> {
        let found = self.links.find(link).filter(|link| link.is_open() && self.listener.is_own());
        found.ok_or(SendError::NoLink(link))?;
        self.registrations.expose(link, &memory).map_err(|error| SendError::Memory(error.to_string()))
    }

    fn withdraw(&mut self, remote: &Remote) {
        if self.listener.is_own() {
            self.registrations.withdraw(remote.key);
        }
    }

    fn kept(&self, peer: PeerId) -> Kept {
        let (inbox, held) = (self.inbox.kept(peer), self.held.of(peer));
        Kept {
            messages: inbox.messages + held.messages,
            bytes: inbox.bytes.saturating_add(held.bytes),
            requests: inbox.requests + held.requests,
        }
    }

    fn progress(&mut self, max: usize, ear: &mut dyn Ear) -> Result<usize, DeviceError> {
        self.must_be_own()?;
        self.go_on(max, ear)
    }

    fn bounces(&self) -> Vec<Buffer> {
        self.registrations.bounces(self.capabilities.eager_limit)
    }

    fn wait_descriptor(&self) -> Option<i32> {
        Some(self.epoll.descriptor())
    }

    fn may_wait(&mut self) -> bool {
        // What is not settled goes on by being looked at.
        self.listener.is_own()
            && self.inbox.pending.is_empty()
            && !self.links.is_unseen()
            && self.device.may_wait()
    }
}

/// Whether it is a message of the protocol with the header that it needs.
fn check(message: &Outgoing<'_>) -> Result<(), SendError> {
    let length = match message.payload {
        Payload::Copied(bytes) => bytes.len() as u64,
        Payload::Memory(buffer) => buffer.length,
    };
    let total = message.header.len() as u64 + length;
    let Ok(Partial::Message(decoded)) = wire::decode_partial(message.header, total) else {
        return Err(SendError::Malformed);
    };
    let header = decoded.payload_range().map_or(total, |range| range.start);
    if header == message.header.len() as u64 { Ok(()) } else { Err(SendError::Malformed) }
}

/// What the device calls a message that is its own.
fn of_device(message: MessageToken) -> Option<MessageToken> {
    (message.0 & OF_DEVICE != 0).then_some(MessageToken(message.0 & !OF_DEVICE))
}

/// In the name of a message: the device keeps it. No table has so many places that this bit says anything else.
const OF_DEVICE: u64 = 1 << 31;
/// A descriptor of another's.
struct Raw(i32);

impl AsRawFd for Raw {
    fn as_raw_fd(&self) -> RawFd {
        self.0
    }
}

/// What the device's asynchronous events are called.
const EVENTS: u64 = u64::MAX - 2;
/// What the completion channel is called.
const CHANNEL: u64 = u64::MAX - 1;
/// What the listener is called.
const LISTENER: u64 = u64::MAX;
