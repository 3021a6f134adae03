//! A transport over the simulated network.

use std::collections::{HashMap, VecDeque};

use super::arriving::{Held, Request, arriving};
use super::placing::{Of, tell};
use super::world::{Shared, Wire};
use crate::device::Device;
use crate::device::transport::{
    CloseReason, Ear, Kept, LinkError, Notice, Outgoing, Payload, Reaction, SendError, Sending, Transport,
};
use crate::ids::{DeviceId, LinkId, MessageToken, PeerId};
use crate::seam::{
    Answer, Arrival, Buffer, Capabilities, Command, Data, DataError, DataTarget, DeviceError, Event,
    EventSink, Header, Remote,
};
use crate::wire::{self, Control, Message, OperationId, RefusedRendezvous};

/// See the module.
#[derive(Debug)]
pub(super) struct SimTransport {
    pub(super) world: Shared,
    pub(super) device: DeviceId,
    node: usize,
    name: Vec<u8>,
    /// What stands before each name where it listens: those of one path do not hear of those of another.
    path: &'static [u8],
    pub(super) links: Vec<Link>,
    pub(super) messages: HashMap<u64, Held>,
    pub(super) made: u64,
    pub(super) assembling: HashMap<(u32, OperationId), u64>,
    exposed: Vec<Remote>,
    told: VecDeque<(Of, Event)>,
    sent: VecDeque<(u64, u32)>,
    /// Sends whose memory is none.
    left_out: VecDeque<u64>,
    eager_limit: u64,
}

#[derive(Debug)]
pub(super) struct Link {
    generation: u32,
    connection: Option<(usize, usize)>,
    peer: Option<PeerId>,
    /// It was closed here; with `true`, after what is on its way.
    closed: bool,
    /// The message whose payload is still to come, alone on the wire behind its header.
    pub(super) partial: Option<(u64, Vec<u8>)>,
}

impl SimTransport {
    pub(super) fn new(world: &Shared, name: &[u8], eager_limit: u64) -> Self {
        Self::on_path(world, name, eager_limit, DeviceId(0), b"")
    }

    /// The transport of one of several paths. One whose path has a name is as shared memory: whoever does not listen there is
    /// reached by another.
    pub(super) fn on_path(
        world: &Shared,
        name: &[u8],
        eager_limit: u64,
        device: DeviceId,
        path: &'static [u8],
    ) -> Self {
        let mut inside = world.lock();
        let node = inside.nodes;
        inside.nodes += 1;
        inside.listening.insert([path, name].concat(), node);
        drop(inside);
        Self {
            world: world.clone(),
            device,
            node,
            name: name.to_vec(),
            path,
            links: Vec::new(),
            messages: HashMap::new(),
            made: 0,
            assembling: HashMap::new(),
            exposed: Vec::new(),
            told: VecDeque::new(),
            sent: VecDeque::new(),
            left_out: VecDeque::new(),
            eager_limit,
        }
    }

    pub(super) const fn node(&self) -> usize {
        self.node
    }

    fn link(&self, link: LinkId) -> Option<&Link> {
        let row = self.links.get(link.index as usize)?;
        (row.generation == link.generation && row.connection.is_some()).then_some(row)
    }

    fn new_link(&mut self, connection: usize, end: usize) -> LinkId {
        let free = self.links.iter().position(|link| link.connection.is_none());
        let index = free.unwrap_or(self.links.len());
        let generation = self.links.get(index).map_or(1, |link| link.generation + 1);
        let link = Link {
            generation,
            connection: Some((connection, end)),
            peer: None,
            closed: false,
            partial: None,
        };
        if index == self.links.len() {
            self.links.push(link);
        } else {
            self.links[index] = link;
        }
        LinkId { index: u32::try_from(index).unwrap(), generation }
    }

    fn say(&self, index: u32, wire: Wire) {
        if let Some((connection, end)) = self.links[index as usize].connection {
            self.world.lock().push(connection, 1 - end, wire);
        }
    }

    fn control(&self, index: u32, control: &Control<'_>) {
        let mut bytes = [0; 200];
        let length = control.encode(&mut bytes).unwrap();
        let header = bytes[..length].to_vec();
        self.say(index, Wire::Message { header, payload: Vec::new(), immediate: None });
    }

    fn done(&self, index: u32, request: &Request, refused: Option<RefusedRendezvous>) {
        match (request, refused) {
            (Request::Tagged(request), None) => {
                let header = request.fin().to_bytes().to_vec();
                self.say(index, Wire::Message { header, payload: Vec::new(), immediate: None });
            }
            (Request::Untagged(request), None) => {
                self.control(index, &Control::RendezvousDone(request.context.operation));
            }
            (Request::Tagged(wire::Rendezvous { context, .. }), Some(reason))
            | (Request::Untagged(wire::UntaggedRendezvous { context, .. }), Some(reason)) => {
                self.control(index, &Control::RendezvousRefused { operation: context.operation, reason });
            }
        }
    }

    /// The payload of an accepted message goes to its place.
    pub(super) fn place(&mut self, token: u64) {
        let Some(held) = self.messages.get(&token) else { return };
        let (Some((buffer, transfer)), Some(bytes)) = (held.answer, held.bytes.as_ref()) else { return };
        let cut = bytes.len().min(usize::try_from(buffer.length).unwrap());
        self.world.lock().write(buffer.address, &bytes[..cut]);
        if let Some(transfer) = transfer {
            let target = DataTarget::Transfer(transfer);
            let data = Data { target, length: held.length, immediate: None, error: None };
            self.told.push_back((held.of, Event::Data(data)));
        }
        self.messages.remove(&token);
    }

    fn answer(&mut self, token: u64, answer: Answer) {
        let Some(held) = self.messages.get_mut(&token) else { return };
        match answer {
            Answer::Hold => {}
            Answer::Accept { buffer, transfer } => {
                held.answer = Some((buffer, transfer));
                if let Some(request) = held.request {
                    let memory = match request {
                        Request::Tagged(request) => request.memory,
                        Request::Untagged(request) => request.memory,
                    };
                    let remote = Remote { address: memory.address, key: memory.key, length: memory.length };
                    let link = held.link;
                    self.say(link, Wire::Read { token, remote });
                } else {
                    self.place(token);
                }
            }
            Answer::Discard => {
                if let Some(request) = held.request {
                    let link = held.link;
                    self.messages.remove(&token);
                    self.done(link, &request, None);
                } else if held.bytes.is_some() {
                    self.messages.remove(&token);
                } else {
                    held.discarded = true;
                }
            }
        }
    }

    fn handle_wire(&mut self, link: LinkId, wire: Wire, ear: &mut dyn Ear) {
        match wire {
            Wire::Opened => ear.handle_notice(self.device, Notice::Open { link }),
            Wire::Incoming => ear.handle_notice(self.device, Notice::Incoming { link }),
            Wire::Message { header, payload, immediate } => {
                self.handle_message(link, &header, payload, immediate, ear);
            }
            Wire::Read { token, remote } => {
                let is_exposed = self.exposed.contains(&remote);
                let bytes = is_exposed.then(|| self.world.read(remote.address, remote.length));
                self.say(link.index, Wire::Answer { token, bytes });
            }
            Wire::Answer { token, bytes } => self.handle_answer(token, bytes),
            Wire::Closed(reason) => self.handle_closed(link, reason, ear),
        }
    }

    fn handle_answer(&mut self, token: u64, bytes: Option<Vec<u8>>) {
        let Some(held) = self.messages.get_mut(&token) else { return };
        let (link, request) = (held.link, held.request);
        let failed = bytes.is_none();
        if let Some(bytes) = bytes {
            held.bytes = Some(bytes);
            self.place(token);
        } else if let Some(Held { answer: Some((_, Some(transfer))), of, length, .. }) =
            self.messages.remove(&token)
        {
            let error = Some(DataError::Completion { status: 10, vendor_error: 0 });
            let data = Data { target: DataTarget::Transfer(transfer), length, immediate: None, error };
            self.told.push_back((of, Event::Data(data)));
        }
        if let Some(request) = request {
            self.done(link, &request, failed.then_some(RefusedRendezvous::ReadFailed));
        }
    }

    fn handle_closed(&mut self, link: LinkId, reason: CloseReason, ear: &mut dyn Ear) {
        while let Some((context, index)) = self.sent.pop_front() {
            let result = if index == link.index { Err(reason.clone()) } else { Ok(()) };
            ear.handle_notice(self.device, Notice::Sent { context, result });
        }
        while let Some((of, event)) = self.told.pop_front() {
            tell(ear, self.device, of, &event);
        }
        let mut lost: Vec<u64> = self
            .messages
            .iter()
            .filter(|(_, held)| held.link == link.index && (held.bytes.is_none() || held.request.is_some()))
            .map(|(token, _)| *token)
            .collect();
        lost.sort_unstable();
        for token in lost {
            let Some(held) = self.messages.remove(&token) else { continue };
            let target = match held.answer {
                Some((_, Some(transfer))) => DataTarget::Transfer(transfer),
                Some((_, None)) => continue,
                None if held.discarded => continue,
                None => DataTarget::Message(MessageToken(token)),
            };
            let error = Some(DataError::PathLost);
            let data = Data { target, length: held.length, immediate: None, error };
            tell(ear, self.device, held.of, &Event::Data(data));
        }
        self.assembling.retain(|(index, _), _| *index != link.index);
        let peer = self.links[link.index as usize].peer;
        self.links[link.index as usize].connection = None;
        if let Some(peer) = peer {
            for tagged in [true, false] {
                tell(ear, self.device, tagged, &Event::PathLost { peer });
            }
        }
        ear.handle_notice(self.device, Notice::Closed { link, reason });
    }

    fn handle_message(
        &mut self,
        link: LinkId,
        header: &[u8],
        payload: Vec<u8>,
        immediate: Option<u32>,
        ear: &mut dyn Ear,
    ) {
        let row = &self.links[link.index as usize];
        let total = header.len() as u64 + payload.len() as u64;
        let Ok(wire::Partial::Message(message)) = wire::decode_partial(header, total) else {
            return self.close(link, false);
        };
        if let (Message::Control(control), Some(peer)) = (&message, row.peer)
            && matches!(control, Control::RemoteWrite(_) | Control::RemoteData(_))
        {
            return self.handle_piece(link, peer, control, payload, ear);
        }
        if let (Message::Control(Control::RemoteAtomic(_)), Some(peer)) = (&message, row.peer) {
            return self.handle_atomic(peer, &[header, &payload].concat(), ear);
        }
        let Some(arriving) = arriving(&message, immediate) else {
            if let Message::Control(Control::SegmentMiddle(segment) | Control::SegmentLast(segment)) = message
            {
                let is_last = matches!(message, Message::Control(Control::SegmentLast(_)));
                return self.handle_segment(link, &segment, &payload, is_last);
            }
            match ear.handle_control(self.device, link, header) {
                Reaction::Continue | Reaction::Keep => {}
                Reaction::Bind(peer) => self.bind(link, peer).unwrap(),
                Reaction::Close => self.close(link, false),
            }
            return;
        };
        let Some(peer) = row.peer else { return self.close(link, false) };
        let split = self.is_split();
        self.made += 1;
        let token = self.made;
        let is_first = arriving.segment.is_some();
        let in_hand = arriving.request.is_none() && !is_first && (!split || payload.is_empty());
        let header = Header { length: arriving.length.unwrap_or(payload.len() as u64), ..arriving.header };
        let held = Held {
            link: link.index,
            peer,
            of: arriving.tagged.into(),
            length: header.length,
            bytes: in_hand.then(|| payload.clone()),
            so_far: if is_first { payload.clone() } else { Vec::new() },
            request: arriving.request,
            answer: None,
            discarded: false,
        };
        self.messages.insert(token, held);
        if let Some(operation) = arriving.segment {
            self.assembling.insert((link.index, operation), token);
        } else if !in_hand && arriving.request.is_none() {
            self.links[link.index as usize].partial = Some((token, payload));
        }
        let message = MessageToken(token);
        let arrival = Arrival { message, source: peer, header, in_hand, counted: false };
        let answer = tell(ear, self.device, arriving.tagged, &Event::Arrived(arrival));
        self.answer(token, answer);
    }
}

impl Device for SimTransport {
    fn capabilities(&self) -> Capabilities {
        Capabilities { eager_limit: self.eager_limit, buffer_length_max: u64::MAX, ..Capabilities::default() }
    }

    fn submit(&mut self, commands: &[Command]) -> Result<usize, DeviceError> {
        for command in commands {
            if let Command::Answer { message, answer } = command {
                self.answer(message.0, *answer);
            }
        }
        Ok(commands.len())
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn place_held(&mut self, message: MessageToken, buffer: &Buffer) -> bool {
        let Some(held) = self.messages.get_mut(&message.0) else { return false };
        if held.bytes.is_none() {
            return false;
        }
        held.answer = Some((*buffer, None));
        self.place(message.0);
        true
    }

    fn poll(&mut self, _: usize, _: &mut dyn EventSink) -> Result<usize, DeviceError> {
        Ok(0)
    }
}

impl Transport for SimTransport {
    fn name(&self) -> &[u8] {
        &self.name
    }

    fn is_shared_memory(&self) -> bool {
        !self.path.is_empty()
    }

    fn open(&mut self, address: &[u8]) -> Result<LinkId, LinkError> {
        if address.is_empty() || address[0] == b'!' {
            return Err(LinkError::Address("no such network".into()));
        }
        let mut world = self.world.lock();
        let connection = world.connections.len();
        let listener = world.listening.get(&[self.path, address].concat()).copied();
        if listener.is_none() && self.is_shared_memory() {
            return Err(LinkError::Address("nobody near".into()));
        }
        world.connections.push(super::world::Connection::default());
        let silent = world.silent.contains(address);
        drop(world);
        let link = self.new_link(connection, 0);
        let mut world = self.world.lock();
        world.connections[connection].ends[0] = Some((self.node, link));
        match listener {
            _ if silent => {}
            None => world.push(connection, 0, Wire::Closed(CloseReason::Refused)),
            Some(node) => {
                world.opened += 1;
                // The other transport deals its own number when it hears of it.
                world.connections[connection].ends[1] = Some((node, UNDEALT));
                world.push(connection, 1, Wire::Incoming);
                world.push(connection, 0, Wire::Opened);
            }
        }
        Ok(link)
    }

    fn bind(&mut self, link: LinkId, peer: PeerId) -> Result<(), LinkError> {
        if self.link(link).is_none() {
            return Err(LinkError::Unknown(link));
        }
        let bound = |link: &Link| link.connection.is_some() && link.peer == Some(peer);
        if self.links.iter().any(bound) || self.links[link.index as usize].peer.is_some() {
            return Err(LinkError::Bound { link, peer });
        }
        self.links[link.index as usize].peer = Some(peer);
        Ok(())
    }

    fn close(&mut self, link: LinkId, flush: bool) {
        if self.link(link).is_none() || self.links[link.index as usize].closed {
            return;
        }
        if flush && self.world.lock().weather.holds {
            return;
        }
        self.links[link.index as usize].closed = true;
        let Some((connection, end)) = self.links[link.index as usize].connection else { return };
        let mut world = self.world.lock();
        if !flush {
            // What the other side has not heard yet it may never hear.
            let length = world.connections[connection].queues[1 - end].len() as u64;
            let kept = world.random.below(length + 1);
            world.connections[connection].queues[1 - end].truncate(usize::try_from(kept).unwrap());
        }
        world.push(connection, 1 - end, Wire::Closed(CloseReason::Peer));
        world.connections[connection].queues[end].clear();
        let now = world.now;
        world.connections[connection].queues[end].push_back((now, Wire::Closed(CloseReason::Here)));
    }

    fn send(&mut self, link: LinkId, message: &Outgoing<'_>) -> Result<Sending, SendError> {
        if self.link(link).is_none_or(|link| link.closed) {
            return Err(SendError::NoLink(link));
        }
        let mut world = self.world.lock();
        let (full, posted) = (world.weather.full, world.weather.posted);
        if world.random.chance(full) {
            return Ok(Sending::Full);
        }
        let later = world.random.chance(posted);
        if let Payload::Memory(buffer) = message.payload
            && world.unreadable.contains(&buffer.address)
        {
            if !later {
                return Err(SendError::Memory("there is none".into()));
            }
            self.left_out.extend(message.context);
            return Ok(Sending::Posted);
        }
        let (payload, is_memory) = match message.payload {
            Payload::Copied(bytes) => (bytes.to_vec(), false),
            Payload::Memory(buffer) => (world.read(buffer.address, buffer.length), true),
        };
        if let Some((connection, end)) = self.links[link.index as usize].connection
            && world.connections[connection].ends[1 - end].is_none()
        {
            // Nobody is there any more: whoever writes hears of it.
            world.push(connection, end, Wire::Closed(CloseReason::System { errno: 104 }));
        }
        drop(world);
        let header = message.header.to_vec();
        self.say(link.index, Wire::Message { header, payload, immediate: message.immediate });
        if is_memory && later {
            self.sent.extend(message.context.map(|context| (context, link.index)));
            return Ok(Sending::Posted);
        }
        Ok(Sending::Done)
    }

    fn expose(&mut self, link: LinkId, memory: Buffer) -> Result<Remote, SendError> {
        if self.link(link).is_none() {
            return Err(SendError::NoLink(link));
        }
        let mut world = self.world.lock();
        let unexposed = world.unexposed;
        if world.random.chance(unexposed) {
            return Err(SendError::Memory("it cannot be registered".into()));
        }
        drop(world);
        let key = u32::try_from(self.exposed.len() % 1000).unwrap();
        let remote = Remote { address: memory.address, key, length: memory.length };
        self.exposed.push(remote);
        Ok(remote)
    }

    fn withdraw(&mut self, remote: &Remote) {
        let at = self.exposed.iter().position(|exposed| exposed == remote);
        self.exposed.swap_remove(at.expect("what is withdrawn was exposed"));
    }

    fn kept(&self, peer: PeerId) -> Kept {
        let mut kept = Kept::default();
        for held in self.messages.values().filter(|held| held.peer == peer && held.answer.is_none()) {
            if held.request.is_some() {
                kept.requests += 1;
            } else {
                kept.messages += 1;
                kept.bytes += held.length;
            }
        }
        kept
    }

    fn progress(&mut self, max: usize, ear: &mut dyn Ear) -> Result<usize, DeviceError> {
        let fault = self.world.lock().faults.remove(&self.node);
        if let Some(fault) = fault {
            return fault.strike(ear, self.device);
        }
        let mut count = 0;
        while let Some((of, event)) = self.told.pop_front() {
            tell(ear, self.device, of, &event);
            count += 1;
        }
        while let Some((context, _)) = self.sent.pop_front() {
            ear.handle_notice(self.device, Notice::Sent { context, result: Ok(()) });
            count += 1;
        }
        while let Some(context) = self.left_out.pop_front() {
            ear.handle_notice(self.device, Notice::Sent { context, result: Err(CloseReason::Memory) });
            count += 1;
        }
        self.accept();
        let mut index = 0;
        while index < self.links.len() && count < max {
            let row = &mut self.links[index];
            let link = LinkId { index: u32::try_from(index).unwrap(), generation: row.generation };
            if let Some((token, bytes)) = row.partial.take() {
                if row.connection.is_some() {
                    self.handle_whole(token, bytes);
                    count += 1;
                }
                continue;
            }
            let Some((connection, end)) = row.connection else {
                index += 1;
                continue;
            };
            let mut world = self.world.lock();
            let now = world.now;
            let queue = &mut world.connections[connection].queues[end];
            let is_due = queue.front().is_some_and(|(due, _)| *due <= now);
            let wire = if is_due { queue.pop_front() } else { None };
            drop(world);
            let Some((_, wire)) = wire else {
                index += 1;
                continue;
            };
            let is_closed = self.links[index].closed && !matches!(wire, Wire::Closed(_));
            if !is_closed {
                self.handle_wire(link, wire, ear);
                count += 1;
            }
            // The rest of it comes another time.
            index += usize::from(self.links[index].partial.is_some());
        }
        Ok(count)
    }
}

impl SimTransport {
    /// Connections that others made to here.
    fn accept(&mut self) {
        let world = self.world.lock();
        let new: Vec<usize> = (0..world.connections.len())
            .filter(|&connection| world.connections[connection].ends[1] == Some((self.node, UNDEALT)))
            .collect();
        drop(world);
        for connection in new {
            let link = self.new_link(connection, 1);
            self.world.lock().connections[connection].ends[1] = Some((self.node, link));
        }
    }
}

/// What it was connected to hears of it, as from an operating system.
impl Drop for SimTransport {
    fn drop(&mut self) {
        self.world.lock().kill(self.node, true);
    }
}

const UNDEALT: LinkId = LinkId { index: u32::MAX, generation: 0 };
