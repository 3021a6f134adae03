//! A transport from an endpoint to itself: a queue, and no IO.
//!
//! It has one address, its own name. A link to it has one end: what is sent on it arrives on it, in order, with the
//! next [`Transport::progress`]. A payload that is sent is copied; that of a rendezvous is copied once, from memory to
//! memory, when it is accepted.

use std::collections::{HashMap, VecDeque};

use slab::Slab;

use super::Device;
use super::host_memory::HostMemory;
use super::inbox::{Action, Done, Inbox, Incoming, Space, Taken, Teller, Violation, Wanted};
use super::transport::{
    CloseReason, Ear, Kept, LinkError, Notice, Outgoing, Payload, Reaction, SendError, Sending, Transport,
};
use crate::ids::{DeviceId, LinkId, MessageToken, PeerId};
use crate::seam::{Buffer, Capabilities, Command, DataError, DeviceError, EventSink, Remote};
use crate::wire::{self, Partial};

/// See the module.
#[derive(Debug)]
pub struct LoopbackTransport {
    id: DeviceId,
    name: Vec<u8>,
    memory: HostMemory,
    eager_limit: u64,
    inbox: Inbox,
    links: Slab<Link>,
    links_made: u32,
    peers: HashMap<PeerId, LinkId>,
    exposed: HashMap<u32, (LinkId, Buffer)>,
    keys_made: u32,
    queue: VecDeque<Queued>,
    queue_bytes: usize,
}

#[derive(Debug)]
struct Link {
    id: LinkId,
    peer: Option<PeerId>,
    /// It ends when all that was sent on it has arrived.
    is_closing: bool,
}

/// A message on its way.
#[derive(Debug)]
struct Queued {
    link: LinkId,
    bytes: Vec<u8>,
    immediate: Option<u32>,
}

impl LoopbackTransport {
    /// Under this name, of at most 64 bytes. `None`: the memory is not trusted, and every message is copied from and to
    /// buffers of the host's.
    #[must_use]
    pub fn new(id: DeviceId, name: &[u8], eager_limit: u64, memory: HostMemory) -> Option<Self> {
        memory.is_trusted().then(|| Self {
            id,
            name: name.to_vec(),
            memory,
            eager_limit,
            inbox: Inbox::new(memory, eager_limit),
            links: Slab::new(),
            links_made: 0,
            peers: HashMap::new(),
            exposed: HashMap::new(),
            keys_made: 0,
            queue: VecDeque::new(),
            queue_bytes: 0,
        })
    }

    fn find(&mut self, id: LinkId) -> Option<&mut Link> {
        self.links.get_mut(id.index as usize).filter(|link| link.id == id)
    }

    /// Put a message of the transport's own behind what waits.
    fn push(&mut self, link: LinkId, bytes: &[u8]) {
        self.queue_bytes += bytes.len();
        self.queue.push_back(Queued { link, bytes: bytes.to_vec(), immediate: None });
    }

    fn deliver(&mut self, queued: &Queued, teller: &mut Teller<'_>) {
        let link = queued.link;
        let Some(found) = self.find(link) else { return };
        let peer = found.peer;
        let (arrived, total) = (queued.bytes.as_slice(), queued.bytes.len() as u64);
        let incoming = Incoming { link, peer, arrived, total, immediate: queued.immediate };
        let taken = self.inbox.take(&incoming, teller);
        match taken {
            Ok(Taken::Whole | Taken::Reaction(Reaction::Continue | Reaction::Keep)) => {}
            Ok(Taken::Reaction(Reaction::Bind(peer))) => {
                if self.bind(link, peer).is_err() {
                    self.end(link, CloseReason::Here);
                }
            }
            Ok(Taken::Reaction(Reaction::Close)) => self.end(link, CloseReason::Here),
            // Messages are whole.
            Ok(Taken::Needed(_) | Taken::Body(_)) => self.end(link, broken("a message in part")),
            Err(Violation(what)) => self.end(link, broken(&what)),
        }
        self.act();
    }

    fn act(&mut self) {
        while let Some(action) = self.inbox.actions.pop_front() {
            match action {
                Action::Read(wanted) => self.read(&wanted),
                Action::Tell(link, done) => self.push(link, done.message().bytes()),
            }
        }
    }

    fn read(&mut self, wanted: &Wanted) {
        let Wanted { link, space, transfer, remote, buffer, done } = *wanted;
        if self.find(link).is_none() {
            return self.inbox.pending.lost(space, transfer, remote.length);
        }
        let exposed = self.exposed.get(&remote.key).filter(|(of, _)| *of == link);
        let is_inside = |(_, from): &&(LinkId, Buffer)| remote.address == 0 && remote.length <= from.length;
        match exposed.filter(is_inside) {
            Some((_, from)) => {
                // The buffer takes no more than the message has.
                let to = Buffer { length: buffer.length.min(remote.length), ..buffer };
                self.memory.copy(from, &to);
                self.inbox.pending.data(space, transfer, remote.length, None);
                self.push(link, done.message().bytes());
            }
            None => {
                // What is not exposed any more was taken back by who closes.
                let error = match exposed {
                    Some(_) => DataError::Completion { status: REMOTE_ACCESS_ERROR, vendor_error: 0 },
                    None => DataError::PathLost,
                };
                self.inbox.pending.data(space, transfer, remote.length, Some(error));
                self.push(link, done.refusal().bytes());
            }
        }
    }

    fn end(&mut self, id: LinkId, reason: CloseReason) {
        if self.find(id).is_none() {
            return;
        }
        let link = self.links.remove(id.index as usize);
        self.inbox.lose(id);
        self.exposed.retain(|_, (link, _)| *link != id);
        if let Some(peer) = link.peer {
            self.peers.remove(&peer);
            self.inbox.pending.path_lost(peer);
        }
        self.inbox.pending.notice(Notice::Closed { link: id, reason });
    }

    fn submit_one(&mut self, command: &Command) -> Result<(), DeviceError> {
        match command {
            Command::Answer { message, answer } => {
                self.inbox.answer(*message, answer);
                self.act();
            }
            Command::Read { transfer, peer, tag, app_ctx, remote, buffer } => {
                let done = Done::of_request(*app_ctx, *tag, remote)
                    .map_err(|violation| DeviceError::Contract(violation.0))?;
                let (space, remote, buffer) = (Space::Tagged, *remote, *buffer);
                match self.peers.get(peer) {
                    Some(&link) => {
                        self.read(&Wanted { link, space, transfer: *transfer, remote, buffer, done });
                    }
                    None => self.inbox.pending.lost(space, *transfer, remote.length),
                }
            }
            Command::Copy { transfer, from, to } => {
                self.memory.copy(from, to);
                self.inbox.pending.data(Space::Tagged, *transfer, from.length, None);
            }
            Command::Add { .. } | Command::Del { .. } | Command::Sync { .. } | Command::Receive { .. } => {
                return Err(DeviceError::Contract("a list operation for a device without a list".into()));
            }
        }
        Ok(())
    }
}

impl LoopbackTransport {
    /// Deliver what is queued.
    #[inline(never)]
    fn go_on(&mut self, max: usize, ear: &mut dyn Ear) -> usize {
        let mut teller = Teller::new(ear, self.id, max);
        loop {
            teller.tell(&mut self.inbox.pending);
            if teller.is_full() {
                break;
            }
            let Some(queued) = self.queue.pop_front() else { break };
            self.queue_bytes -= queued.bytes.len();
            self.deliver(&queued, &mut teller);
            let link = queued.link;
            let is_last = || !self.queue.iter().any(|queued| queued.link == link);
            if self.links.get(link.index as usize).is_some_and(|link| link.is_closing) && is_last() {
                self.end(link, CloseReason::Here);
            }
        }
        teller.told()
    }
}

impl Device for LoopbackTransport {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            eager_limit: self.eager_limit,
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
        Ok(())
    }

    fn place_held(&mut self, message: MessageToken, buffer: &Buffer) -> bool {
        self.inbox.place_held(message, buffer)
    }

    fn poll(&mut self, _max: usize, _sink: &mut dyn EventSink) -> Result<usize, DeviceError> {
        Ok(0)
    }
}

impl Transport for LoopbackTransport {
    fn name(&self) -> &[u8] {
        &self.name
    }

    fn open(&mut self, address: &[u8]) -> Result<LinkId, LinkError> {
        if address != self.name {
            return Err(LinkError::Address("not this endpoint's own name".into()));
        }
        let entry = self.links.vacant_entry();
        let index = u32::try_from(entry.key()).unwrap_or(u32::MAX);
        let id = LinkId { index, generation: self.links_made };
        self.links_made = self.links_made.wrapping_add(1);
        entry.insert(Link { id, peer: None, is_closing: false });
        self.inbox.pending.notice(Notice::Open { link: id });
        Ok(id)
    }

    fn bind(&mut self, link: LinkId, peer: PeerId) -> Result<(), LinkError> {
        let is_known = self.peers.contains_key(&peer);
        let found = self.find(link).ok_or(LinkError::Unknown(link))?;
        if is_known || found.peer.is_some() {
            return Err(LinkError::Bound { link, peer });
        }
        found.peer = Some(peer);
        self.peers.insert(peer, link);
        Ok(())
    }

    fn close(&mut self, link: LinkId, flush: bool) {
        let has_more = self.queue.iter().any(|queued| queued.link == link);
        match self.find(link) {
            Some(found) if flush && has_more => found.is_closing = true,
            _ => self.end(link, CloseReason::Here),
        }
    }

    fn send(&mut self, link: LinkId, message: &Outgoing<'_>) -> Result<Sending, SendError> {
        if self.find(link).is_none_or(|link| link.is_closing) {
            return Err(SendError::NoLink(link));
        }
        let length = match message.payload {
            Payload::Copied(bytes) => bytes.len() as u64,
            Payload::Memory(buffer) => buffer.length,
        };
        if length > self.eager_limit {
            return Err(SendError::TooLong { length, limit: self.eager_limit });
        }
        let total = length + message.header.len() as u64;
        let is_header = match wire::decode_partial(message.header, total) {
            Ok(Partial::Message(decoded)) => {
                decoded.payload_range().map_or(total, |range| range.start) == message.header.len() as u64
            }
            Ok(Partial::Needed(_)) | Err(_) => false,
        };
        if !is_header {
            return Err(SendError::Malformed);
        }
        if self.queue_bytes > QUEUE_BYTES_MAX || self.queue.len() > QUEUE_MAX {
            return Ok(Sending::Full);
        }
        let start = message.header.len();
        let mut bytes = Vec::with_capacity(start + usize::try_from(length).unwrap_or(0));
        bytes.extend_from_slice(message.header);
        match message.payload {
            Payload::Copied(payload) => bytes.extend_from_slice(payload),
            Payload::Memory(buffer) => {
                bytes.resize(start + usize::try_from(length).unwrap_or(0), 0);
                self.memory.read(&buffer, 0, bytes.get_mut(start..).unwrap_or_default());
            }
        }
        self.queue_bytes += bytes.len();
        self.queue.push_back(Queued { link, bytes, immediate: message.immediate });
        Ok(Sending::Done)
    }

    fn expose(&mut self, link: LinkId, memory: Buffer) -> Result<Remote, SendError> {
        self.find(link).ok_or(SendError::NoLink(link))?;
        let key = loop {
            self.keys_made = self.keys_made.wrapping_add(1);
            if self.keys_made != 0 && !self.exposed.contains_key(&self.keys_made) {
                break self.keys_made;
            }
        };
        self.exposed.insert(key, (link, memory));
        Ok(Remote { address: 0, key, length: memory.length })
    }

    fn withdraw(&mut self, remote: &Remote) {
        self.exposed.remove(&remote.key);
    }

    fn kept(&self, peer: PeerId) -> Kept {
        self.inbox.kept(peer)
    }

    #[inline]
    fn progress(&mut self, max: usize, ear: &mut dyn Ear) -> Result<usize, DeviceError> {
        if self.queue.is_empty() && self.inbox.pending.is_empty() {
            return Ok(0);
        }
        Ok(self.go_on(max, ear))
    }

    fn may_wait(&mut self) -> bool {
        self.queue.is_empty() && self.inbox.pending.is_empty()
    }
}

fn broken(what: &str) -> CloseReason {
    CloseReason::Protocol(what.into())
}

/// What a NIC says of a key that is not valid: `IBV_WC_REM_ACCESS_ERR`.
const REMOTE_ACCESS_ERROR: u32 = 10;
const QUEUE_BYTES_MAX: usize = 1 << 20;
const QUEUE_MAX: usize = 4096;
