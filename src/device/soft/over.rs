//! A soft TM-SRQ over any transport: what matches is the list of this process, what moves bytes the transport.
//!
//! ```text
//!  Add Del Sync ─▶ SoftDevice (list, counts, completions; no bytes) ─▶ Matched Arrived Operation Released ─▶ ear
//!                        ▲ header                │ entry's buffer
//!                        │                       ▼
//!  transport below ─▶ arrival ◀─ Accept, or Hold ┘      everything else passes through
//! ```
//!
//! A message that an entry takes is accepted below into the entry's buffer at once, so that its payload goes where it
//! would have gone by a NIC. One that no entry takes uses up a receive, is counted, and told; it stays with the
//! transport below until it is answered. What is told comes in order: nothing passes what the list has to say.
//! Messages have the transport's names, above too: answers do not say of which kind their message is, and those
//! without a tag are none of the list's.
//!
//! Not here: how the list works ([`super::list`]), sending, connections. A message waits while no receive is posted
//! for it; those that still wait when their sender's path is lost are dropped.

use std::collections::{HashMap, VecDeque};

use super::device::{SoftConfig, SoftDevice};
use super::memory::NoMemory;
use super::message::{Kind, SoftMessage};
use super::steps::Step;
use crate::device::Device;
use crate::device::transport::{
    Ear, Kept, LinkError, Notice, Outgoing, Reaction, SendError, Sending, Transport,
};
use crate::ids::{DeviceId, LinkId, MessageToken, PeerId, TagHandle, TransferId};
use crate::seam::{
    Add, Answer, Arrival, Buffer, Capabilities, Command, Data, DataError, DataTarget, DeviceError, Event,
    EventSink, Remote,
};
use crate::wire::{Control, RemoteAtomic};

/// See the module.
#[derive(Debug)]
pub struct OverTransport<T: Transport> {
    below: T,
    desk: Desk,
    /// Memory for receives that are shorter than the eager limit.
    bounces: Vec<u8>,
}

/// All but the transport below.
#[derive(Debug)]
struct Desk {
    soft: SoftDevice<NoMemory>,
    /// Payloads on the way into entries.
    placing: HashMap<TransferId, Placing>,
    placings_made: u32,
    /// Messages for which there is no receive, or behind such.
    waiting: VecDeque<Arrival>,
    books: Books,
}

/// What must be known when the list's events are told.
#[derive(Debug, Default)]
struct Books {
    /// Counted, and not told.
    accepted: VecDeque<Arrival>,
    /// Messages that are held: the list's name of each.
    held: HashMap<MessageToken, MessageToken>,
    /// Requests that the list handed back: they are read by a command.
    handed_back: Vec<Arrival>,
    /// For the transport below.
    commands: Vec<Command>,
    /// Events that the list knows nothing of.
    late: VecDeque<Event>,
    /// The message that the transport is telling of, and its answer when there is one.
    current: Option<MessageToken>,
    answer: Option<Answer>,
    told: usize,
}

#[derive(Clone, Copy, Debug)]
struct Placing {
    handle: TagHandle,
    peer: PeerId,
    is_read: bool,
}

impl<T: Transport> OverTransport<T> {
    /// Put a list over a transport. The configuration says how long it is; bytes are the transport's matter.
    ///
    /// # Errors
    /// The configuration is one of no TM-SRQ.
    pub fn new(below: T, config: SoftConfig) -> Result<Self, DeviceError> {
        let eager_limit = below.capabilities().eager_limit;
        let config = SoftConfig { eager_limit, step_mode: true, ..config };
        let soft = SoftDevice::new(config, NoMemory)?;
        let bounces = eager_limit.saturating_mul(soft.capabilities().tags.into());
        let bounces = vec![0; usize::try_from(bounces).unwrap_or(0)];
        let desk = Desk {
            soft,
            placing: HashMap::new(),
            placings_made: 0,
            waiting: VecDeque::new(),
            books: Books::default(),
        };
        Ok(Self { below, desk, bounces })
    }

    /// The transport below.
    pub const fn below(&self) -> &T {
        &self.below
    }

    fn submit_one(&mut self, command: &Command) -> Result<bool, DeviceError> {
        match command {
            Command::Add { .. } | Command::Del { .. } | Command::Sync { .. } | Command::Receive { .. } => {
                let taken = self.desk.soft.submit(&[*command])?;
                self.desk.run_commands();
                return Ok(taken == 1);
            }
            Command::Answer { message, .. } => {
                self.desk.books.forget_held(*message, &mut self.desk.soft);
                self.desk.books.commands.push(*command);
            }
            Command::Read { transfer, peer, app_ctx, remote, buffer, .. } => {
                match self.desk.books.take_handed_back(*peer, *app_ctx, remote) {
                    Some(message) => {
                        let answer = Answer::Accept { buffer: *buffer, transfer: Some(*transfer) };
                        self.desk.books.commands.push(Command::Answer { message, answer });
                    }
                    None => self.desk.books.late.push_back(lost(*transfer, remote.length)),
                }
            }
            Command::Copy { .. } => self.desk.books.commands.push(*command),
        }
        Ok(true)
    }

    /// Tell the transport below what has been decided.
    fn pass_on(&mut self) -> Result<(), DeviceError> {
        let mut commands = std::mem::take(&mut self.desk.books.commands);
        let taken = self.below.submit(&commands)?;
        commands.drain(..taken);
        self.desk.books.commands = commands;
        Ok(())
    }
}

impl<T: Transport> Device for OverTransport<T> {
    fn capabilities(&self) -> Capabilities {
        self.desk.soft.capabilities()
    }

    fn submit(&mut self, commands: &[Command]) -> Result<usize, DeviceError> {
        let mut taken = 0;
        for command in commands {
            if !self.submit_one(command)? {
                break;
            }
            taken += 1;
        }
        self.desk.admit_waiting();
        self.pass_on()?;
        Ok(taken)
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        self.pass_on()?;
        self.below.flush()
    }

    fn place_held(&mut self, message: MessageToken, buffer: &Buffer) -> bool {
        let is_placed = self.below.place_held(message, buffer);
        if is_placed {
            self.desk.books.forget_held(message, &mut self.desk.soft);
        }
        is_placed
    }

    /// What comes of it for the transport below goes down with what follows.
    fn add(&mut self, add: &Add<'_>) -> bool {
        let is_added = self.desk.soft.add(add);
        if is_added {
            self.desk.run_commands();
            self.desk.admit_waiting();
        }
        is_added
    }

    fn poll(&mut self, _max: usize, _sink: &mut dyn EventSink) -> Result<usize, DeviceError> {
        Ok(0)
    }
}

impl<T: Transport> Transport for OverTransport<T> {
    fn name(&self) -> &[u8] {
        self.below.name()
    }

    fn is_shared_memory(&self) -> bool {
        self.below.is_shared_memory()
    }

    fn open(&mut self, address: &[u8]) -> Result<LinkId, LinkError> {
        self.below.open(address)
    }

    fn bind(&mut self, link: LinkId, peer: PeerId) -> Result<(), LinkError> {
        self.below.bind(link, peer)
    }

    fn close(&mut self, link: LinkId, flush: bool) {
        self.below.close(link, flush);
    }

    fn untaken(&self, link: LinkId) -> u64 {
        self.below.untaken(link)
    }

    fn tell_taken(&mut self, link: LinkId, context: u64) -> bool {
        self.below.tell_taken(link, context)
    }

    fn is_unseen(&self) -> bool {
        self.below.is_unseen()
    }

    fn send(&mut self, link: LinkId, message: &Outgoing<'_>) -> Result<Sending, SendError> {
        self.below.send(link, message)
    }

    fn expose(&mut self, link: LinkId, memory: Buffer) -> Result<Remote, SendError> {
        self.below.expose(link, memory)
    }

    fn withdraw(&mut self, remote: &Remote) {
        self.below.withdraw(remote);
    }

    fn kept(&self, peer: PeerId) -> Kept {
        self.below.kept(peer)
    }

    fn progress(&mut self, max: usize, ear: &mut dyn Ear) -> Result<usize, DeviceError> {
        self.desk.books.told = 0;
        let desk = &mut self.desk;
        desk.tell(ear)?;
        let told = self.below.progress(max, &mut Between { desk, ear });
        self.desk.tell(ear)?;
        self.pass_on()?;
        told.map(|told| told.max(self.desk.books.told))
    }

    fn bounces(&self) -> Vec<Buffer> {
        let eager_limit = self.desk.soft.capabilities().eager_limit;
        let start = self.bounces.as_ptr().expose_provenance() as u64;
        let count = (self.bounces.len() as u64).checked_div(eager_limit).unwrap_or(0);
        (0..count).map(|place| Buffer::new(start + place * eager_limit, eager_limit)).collect()
    }

    fn wait_descriptor(&self) -> Option<i32> {
        self.below.wait_descriptor()
    }

    fn look_around(&mut self) {
        self.below.look_around();
    }

    fn may_wait(&mut self) -> bool {
        let books = &self.desk.books;
        let is_quiet = books.commands.is_empty() && books.late.is_empty() && self.desk.soft.is_quiet();
        is_quiet && self.below.may_wait()
    }
}

impl Desk {
    /// The list does at once what it is told.
    fn run_commands(&mut self) {
        while self.soft.step(Step::Command) {}
    }

    /// Tell everything that the list has to say.
    fn tell(&mut self, ear: &mut dyn Ear) -> Result<(), DeviceError> {
        if self.soft.is_quiet() && self.books.late.is_empty() {
            return self.soft.flush();
        }
        let device = self.soft.config().id;
        let mut mouth = Mouth { books: &mut self.books, ear };
        self.soft.poll(usize::MAX, &mut mouth)?;
        while let Some(event) = mouth.books.late.pop_front() {
            mouth.books.told += 1;
            let _hold = mouth.ear.handle_event(device, &event);
        }
        Ok(())
    }

    /// A message came, and all that had come before was told: its answer.
    fn arrived(&mut self, arrival: &Arrival, ear: &mut dyn Ear) -> Answer {
        self.admit_waiting();
        let admitted = if self.waiting.is_empty() { self.admit(arrival) } else { None };
        let Some(answer) = admitted else {
            // When its turn comes, no answer can be given on the spot.
            self.waiting.push_back(Arrival { in_hand: false, ..*arrival });
            return Answer::Hold;
        };
        if self.books.accepted.back().is_none_or(|accepted| accepted.message != arrival.message) {
            return answer;
        }
        self.books.current = Some(arrival.message);
        // A list that fails here says so again when the turn ends.
        let _failed = self.tell(ear);
        self.books.current = None;
        self.books.answer.take().unwrap_or(answer)
    }

    /// Messages that have waited, as far as there are receives for them now.
    fn admit_waiting(&mut self) {
        while let Some(arrival) = self.waiting.front().copied() {
            let Some(answer) = self.admit(&arrival) else { return };
            self.waiting.pop_front();
            if answer != Answer::Hold {
                self.books.commands.push(Command::Answer { message: arrival.message, answer });
            }
        }
    }

    /// Let the list take a message, or count it. `None`: it must wait.
    fn admit(&mut self, arrival: &Arrival) -> Option<Answer> {
        let Arrival { source, header, in_hand, .. } = arrival;
        let entry = self.soft.list()?.find_match(header.tag.0).copied();
        let kind = header.remote.map_or(Kind::Eager, |remote| Kind::Rendezvous { remote, broken: false });
        let follows = entry.is_some() && !in_hand && header.remote.is_none();
        let message = SoftMessage {
            packets: if follows { 2 } else { 1 },
            app_ctx: header.app_ctx,
            immediate: header.immediate,
            kind,
            ..SoftMessage::eager(header.tag, header.length)
        };
        if !self.soft.would_accept(*source, &message) {
            return None;
        }
        self.soft.send(*source, message).ok()?;
        self.soft.step(Step::Accept(*source));
        let Some(entry) = entry else {
            self.books.accepted.push_back(*arrival);
            return Some(Answer::Hold);
        };
        let (handle, buffer) = (self.soft.handle_of(entry.index), entry.buffer);
        let is_read = header.remote.is_some();
        if is_read && self.soft.read_place(handle).is_none() {
            self.books.handed_back.push(*arrival);
            return Some(Answer::Hold);
        }
        if *in_hand {
            return Some(Answer::Accept { buffer, transfer: None });
        }
        let transfer = TransferId { index: OWN_TRANSFERS, generation: self.placings_made };
        self.placings_made = self.placings_made.wrapping_add(1);
        self.placing.insert(transfer, Placing { handle, peer: *source, is_read });
        Some(Answer::Accept { buffer, transfer: Some(transfer) })
    }

    /// A payload came into the buffer of an entry, or never will.
    fn placed(&mut self, placing: Placing, error: Option<DataError>) {
        let Placing { handle, peer, is_read } = placing;
        match (is_read, error) {
            (true, None) => {
                if let Some(place) = self.soft.read_place(handle) {
                    self.soft.step(Step::Read(place));
                }
            }
            (true, Some(_)) => self.soft.fail_read(handle),
            (false, None) => {
                self.soft.step(Step::Packet(peer));
            }
            // The path is lost, as will be told; then the list says so of the entry.
            (false, Some(_)) => {}
        }
    }

    /// A message that the transport held is lost.
    fn message_lost(&mut self, message: MessageToken, data: &Data) {
        self.books.handed_back.retain(|arrival| arrival.message != message);
        self.waiting.retain(|arrival| arrival.message != message);
        if self.books.forget_held(message, &mut self.soft) {
            self.books.late.push_back(Event::Data(*data));
        }
        // It was answered, and the transport had not heard of that.
        let is_it =
            |command: &Command| matches!(command, Command::Answer { message: of, .. } if *of == message);
        let Some(place) = self.books.commands.iter().position(is_it) else { return };
        if let Command::Answer { answer: Answer::Accept { transfer: Some(transfer), .. }, .. } =
            self.books.commands.remove(place)
        {
            match self.placing.remove(&transfer) {
                Some(placing) => self.placed(placing, data.error),
                None => self.books.late.push_back(lost(transfer, data.length)),
            }
        }
    }

    fn path_lost(&mut self, peer: PeerId) {
        let commands = &mut self.books.commands;
        self.waiting.retain(|arrival| {
            if arrival.source == peer {
                let answer = Answer::Discard;
                commands.push(Command::Answer { message: arrival.message, answer });
            }
            arrival.source != peer
        });
        self.soft.fail_path(peer);
        // The peer may come back by another link.
        self.soft.restore_path(peer);
    }
}

impl Books {
    /// A message was answered or lost: the list forgets it. False: the list has none of this name.
    fn forget_held(&mut self, message: MessageToken, soft: &mut SoftDevice<NoMemory>) -> bool {
        let listed = self.held.remove(&message);
        listed.is_some_and(|listed| soft.answer(listed, Answer::Discard))
    }

    fn take_handed_back(&mut self, peer: PeerId, app_ctx: u32, remote: &Remote) -> Option<MessageToken> {
        let is_it = |arrival: &Arrival| {
            let header = &arrival.header;
            (arrival.source, header.app_ctx, header.remote) == (peer, app_ctx, Some(*remote))
        };
        let place = self.handed_back.iter().position(is_it)?;
        Some(self.handed_back.remove(place).message)
    }
}

/// Hears the transport, and tells the ear.
struct Between<'a> {
    desk: &'a mut Desk,
    ear: &'a mut dyn Ear,
}

impl Between<'_> {
    /// First of all the list, which has things to say of what came before. If it fails it says so again when the turn
    /// ends.
    fn tell_before(&mut self) {
        let _failed = self.desk.tell(self.ear);
    }
}

impl EventSink for Between<'_> {
    fn handle_event(&mut self, device: DeviceId, event: &Event) -> Answer {
        self.tell_before();
        match event {
            Event::Arrived(arrival) => return self.desk.arrived(arrival, self.ear),
            Event::Data(data) => match data.target {
                DataTarget::Transfer(transfer) => match self.desk.placing.remove(&transfer) {
                    Some(placing) => self.desk.placed(placing, data.error),
                    None => return self.ear.handle_event(device, event),
                },
                DataTarget::Message(message) => self.desk.message_lost(message, data),
                DataTarget::Entry(_) => {}
            },
            Event::PathLost { peer } => self.desk.path_lost(*peer),
            Event::Matched(_)
            | Event::Operation(_)
            | Event::Untagged { .. }
            | Event::Released(_)
            | Event::SetAside { .. }
            | Event::DeviceFailed(_) => return self.ear.handle_event(device, event),
        }
        self.tell_before();
        self.desk.admit_waiting();
        Answer::Hold
    }
}

impl Ear for Between<'_> {
    fn takes_segments_with_a_tag(&self) -> bool {
        false
    }

    fn handle_untagged_event(&mut self, device: DeviceId, event: &Event) -> Answer {
        self.tell_before();
        self.ear.handle_untagged_event(device, event)
    }

    fn handle_remote(
        &mut self,
        device: DeviceId,
        source: PeerId,
        message: &Control<'_>,
        in_hand: bool,
    ) -> Answer {
        self.tell_before();
        self.ear.handle_remote(device, source, message, in_hand)
    }

    fn handle_remote_data(&mut self, device: DeviceId, data: &Data) {
        self.tell_before();
        self.ear.handle_remote_data(device, data);
    }

    fn handle_remote_atomic(
        &mut self,
        device: DeviceId,
        source: PeerId,
        atomic: &RemoteAtomic<'_>,
    ) -> Option<Buffer> {
        self.tell_before();
        self.ear.handle_remote_atomic(device, source, atomic)
    }

    fn handle_remote_atomic_done(
        &mut self,
        device: DeviceId,
        source: PeerId,
        atomic: &RemoteAtomic<'_>,
        before: &[u8],
    ) {
        self.ear.handle_remote_atomic_done(device, source, atomic, before);
    }

    fn handle_control(&mut self, device: DeviceId, link: LinkId, message: &[u8]) -> Reaction {
        self.tell_before();
        self.ear.handle_control(device, link, message)
    }

    fn handle_notice(&mut self, device: DeviceId, notice: Notice) {
        self.tell_before();
        self.ear.handle_notice(device, notice);
    }
}

/// Tells the ear what the list says.
struct Mouth<'a> {
    books: &'a mut Books,
    ear: &'a mut dyn Ear,
}

impl EventSink for Mouth<'_> {
    fn handle_event(&mut self, device: DeviceId, event: &Event) -> Answer {
        self.books.told += 1;
        let Event::Arrived(told) = event else { return self.ear.handle_event(device, event) };
        let Some(arrival) = self.books.accepted.pop_front() else { return Answer::Discard };
        let listed = told.message;
        let told = Arrival { message: arrival.message, in_hand: arrival.in_hand, ..*told };
        match self.ear.handle_event(device, &Event::Arrived(told)) {
            Answer::Hold => {
                self.books.held.insert(arrival.message, listed);
                return Answer::Hold;
            }
            answer @ (Answer::Accept { .. } | Answer::Discard)
                if self.books.current == Some(arrival.message) =>
            {
                self.books.answer = Some(answer);
            }
            answer @ (Answer::Accept { .. } | Answer::Discard) => {
                let message = arrival.message;
                self.books.commands.push(Command::Answer { message, answer });
            }
        }
        // The list has no part in what follows.
        Answer::Discard
    }
}

fn lost(transfer: TransferId, length: u64) -> Event {
    let (target, error) = (DataTarget::Transfer(transfer), Some(DataError::PathLost));
    Event::Data(Data { target, length, immediate: None, error })
}

/// No transfer of an engine's has such an index.
const OWN_TRANSFERS: u32 = u32::MAX;
