//! One path: a verbs device that receives, a second one on the same HCA that holds all its senders, and the HCA.
//!
//! What a world says in its own terms is put into the driver's here: buffers get the key by which this device knows
//! the memory, messages' numbers become operation ids, and an entry of the HCA's list is found again by the address
//! of its buffer, which no other entry has.
//!
//! Not here: when anything happens.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tagmatch::device::Device;
use tagmatch::device::soft::Switches;
use tagmatch::device::verbs::device::{Message as Sent, Sending};
use tagmatch::device::verbs::memory::RemoteAccess;
use tagmatch::device::verbs::queue_pair::Patience;
use tagmatch::device::verbs::{HostMemory, TagMatching, VerbsConfig, VerbsDevice};
use tagmatch::ids::{DeviceId, MessageToken, PeerId, TagHandle};
use tagmatch::seam::{Add, Answer, Buffer, Capabilities, Command, DeviceError, Event, EventSink};
use tagmatch::wire::{self, AppContext, OperationId, RemoteMemory, Rendezvous};

use super::memory::{UserMemory, byte_of};
use super::{EAGER_LIMIT, Turned};
use crate::hca::{AcceptedBy, LinkLayer, Role, Step};
use crate::hca_abi::HcaControl;
use crate::world::scope::{Message, Scope};
use crate::world::{Accepted, Acceptor, Machine, StepKind};

/// See the module.
#[derive(Debug)]
pub struct Card {
    // The devices go before the HCA.
    receiver: VerbsDevice,
    senders: VerbsDevice,
    hca: Arc<HcaControl>,
    memory: Arc<UserMemory>,
    /// How the receiver knows the memory.
    key: u32,
    /// Payloads of rendezvous, and how much is taken of it.
    source: tagmatch::device::verbs::device::Registered,
    source_taken: u64,
    peers: Vec<PeerId>,
    /// QPs of the receiver.
    receiving: BTreeMap<u32, PeerId>,
    /// Which entry has the buffer that begins there.
    entries: BTreeMap<u64, TagHandle>,
    /// Waiting for room in the sender's queue.
    backlog: VecDeque<(u32, Message)>,
    /// FINs that came, by the number of the message.
    fins: BTreeMap<u32, u32>,
    /// Rendezvous that are complete at the receiver, with their senders.
    finished: std::cell::RefCell<Vec<(u32, PeerId)>>,
    rendezvous: BTreeMap<u32, PeerId>,
    /// Something may be there to be polled.
    dirty: bool,
    /// To be done when the first message is sent.
    pub(super) turned: Turned,
}

impl Card {
    /// # Errors
    /// The verbs devices cannot be opened.
    pub(super) fn new(
        scope: &Scope,
        at: usize,
        link: LinkLayer,
        hca: Arc<HcaControl>,
        memory: Arc<UserMemory>,
    ) -> Result<Self, String> {
        hca.with(crate::hca::Hca::observe);
        let mine = scope.messages.iter().filter(|message| usize::from(message.path) == at);
        let (mut peers, mut bytes) = (BTreeSet::new(), 0);
        for message in mine {
            peers.insert(message.source);
            bytes += if message.rendezvous { message.length.next_multiple_of(64) } else { 0 };
        }
        let peers = u32::try_from(peers.len()).unwrap_or(u32::MAX).max(1);
        let tags = scope.paths.get(at).map_or(0, |path| path.tags);
        let common = VerbsConfig {
            // On Ethernet each card has an address of its own, which is none of this machine's.
            gid_index: (link == LinkLayer::Ethernet).then_some(0),
            device: Some(hca.name().to_owned()),
            eager_limit: u32::try_from(EAGER_LIMIT).unwrap_or(u32::MAX),
            peers,
            sends_per_peer: SENDS,
            send_buffers: SENDS,
            patience: Patience { retries: 1, ..Patience::default() },
            events_every: 1,
            // The HCA tells when a queue pair is drained, and no time passes.
            drain_polls: u32::MAX,
            drain_time: Duration::MAX,
            ..VerbsConfig::default()
        };
        let messages = u32::try_from(scope.messages.len()).unwrap_or(u32::MAX);
        let receiver = VerbsConfig {
            id: DeviceId(u8::try_from(at).unwrap_or(u8::MAX)),
            tag_matching: if tags == 0 { TagMatching::Off } else { TagMatching::Required },
            tags,
            unexpected_buffers: Capabilities::UNEXPECTED_BUFFERS_MIN + messages % 8,
            spare_buffers: 2 + messages % 3,
            send_buffers: 8,
            ..common.clone()
        };
        let senders = VerbsConfig {
            tag_matching: TagMatching::Off,
            unexpected_buffers: 32,
            spare_buffers: 32,
            ..common
        };
        let open =
            |config| VerbsDevice::open(config, HostMemory::registered()).map_err(|error| error.to_string());
        let (mut receiver, mut senders) = (open(receiver)?, open(senders)?);
        // SAFETY: the memory stays for ever, and is looked at as atomic bytes only.
        let registered = unsafe { receiver.register(memory.address(), memory.length(), RemoteAccess::NONE) };
        let key = registered.map_err(|error| error.to_string())?.buffer.key;
        let length = usize::try_from(bytes).unwrap_or(usize::MAX).max(64);
        let source = senders.allocate(length, RemoteAccess::READ).map_err(|error| error.to_string())?;
        Ok(Self {
            receiver,
            senders,
            hca,
            memory,
            key,
            source,
            source_taken: 0,
            peers: Vec::new(),
            receiving: BTreeMap::new(),
            entries: BTreeMap::new(),
            backlog: VecDeque::new(),
            fins: BTreeMap::new(),
            finished: std::cell::RefCell::default(),
            rendezvous: BTreeMap::new(),
            dirty: true,
            turned: Turned::default(),
        })
    }

    /// The verbs device that receives.
    #[must_use]
    pub const fn receiver(&self) -> &VerbsDevice {
        &self.receiver
    }

    /// The HCA does everything but timers, and so do the senders; how many steps that were.
    pub fn run(&mut self) -> usize {
        self.dirty = true;
        let steps = self.hca.run(usize::MAX);
        self.run_senders();
        steps
    }

    /// The sender whose message a step would have accepted.
    #[must_use]
    pub fn sender_of(&self, step: Step) -> Option<PeerId> {
        let Step::Deliver { to, .. } = step else { return None };
        let is_message = self.hca.with(|hca| hca.role(step)) == Role::Message;
        self.receiving.get(&to).copied().filter(|_| is_message)
    }

    /// Let the driver's 16-bit counters turn before anything happens: so many list operations are posted, and so many
    /// messages without a tag received. To be asked when the receives of the engine are posted.
    ///
    /// # Errors
    /// The devices do not do it.
    pub fn turn(&mut self, peer: PeerId, operations: u32, messages: u32) -> Result<(), String> {
        let failed = |error: DeviceError| error.to_string();
        let unexpected_count = self.hca.with(|hca| hca.config().initial_phase);
        let at_once = self.receiver.capabilities().command_slots.clamp(1, 16);
        let mut left = if self.receiver.capabilities().is_matching() { operations } else { 0 };
        while left > 0 {
            let now = left.min(at_once);
            let syncs = vec![Command::Sync { unexpected_count, signalled: true }; now as usize];
            let taken = self.receiver.submit(&syncs).map_err(failed)?;
            self.hca.run(usize::MAX);
            self.receiver.poll(64, &mut Deaf).map_err(failed)?;
            left -= u32::try_from(taken).unwrap_or(left);
        }
        if messages > 0 && !self.peers.contains(&peer) {
            self.connect(peer).map_err(|error| error.to_string())?;
        }
        let mut left = messages;
        while left > 0 {
            let now = left.min(16);
            for _ in 0..now {
                let sent = self.senders.send(peer, &Sent::Control(&[0; 8]), None, 0);
                if !matches!(sent, Ok(Sending::Posted)) {
                    return Err(format!("a message without a tag: {sent:?}"));
                }
            }
            self.hca.run(usize::MAX);
            self.receiver.poll(64, &mut Deaf).map_err(failed)?;
            let taken = self.receiver.take_untagged(|_, _, _| {});
            let buffers = u32::try_from(taken).unwrap_or(0);
            if self.receiver.capabilities().is_matching() {
                self.receiver.submit(&[Command::Receive { buffers }]).map_err(failed)?;
            }
            self.run_senders();
            left = left.saturating_sub(buffers.max(1));
        }
        Ok(())
    }

    fn connect(&mut self, peer: PeerId) -> Result<(), tagmatch::device::verbs::VerbsError> {
        let (here, there) = (self.receiver.prepare(peer)?, self.senders.prepare(peer)?);
        self.receiver.connect(peer, &there)?;
        self.senders.connect(peer, &here)?;
        self.receiving.insert(here.receive.number, peer);
        self.peers.push(peer);
        Ok(())
    }

    /// False: there is no room now.
    fn try_send(&mut self, number: u32, message: &Message) -> Result<bool, String> {
        let operation = OperationId::new(number).ok_or("a number of more than 24 bits")?;
        let context = AppContext { operation, ..AppContext::default() };
        let (peer, tag) = (message.source, message.tag);
        let bytes: Vec<u8> = (0..message.length).map(|place| byte_of(number, place)).collect();
        let sending = if message.rendezvous {
            let region = self.senders.region(self.source.id).ok_or("no memory to send from")?;
            if !region.write(self.source_taken, &bytes) {
                return Err("the memory to send from is too small".to_owned());
            }
            let address = self.source.buffer.address + self.source_taken;
            let memory = RemoteMemory { address, key: self.source.remote_key, length: message.length };
            self.senders.send(peer, &Sent::Rendezvous(Rendezvous { context, tag, memory }), None, 0)
        } else {
            self.senders.send(peer, &Sent::Eager { context, tag, payload: &bytes }, None, 0)
        };
        match sending {
            Ok(Sending::Posted) => {}
            Ok(Sending::Full) => return Ok(false),
            Err(error) => return Err(error.to_string()),
        }
        if message.rendezvous {
            self.source_taken += message.length.next_multiple_of(64);
            self.rendezvous.insert(number, peer);
        }
        Ok(true)
    }

    /// The senders' host: takes what has come, and sends what waits.
    fn run_senders(&mut self) {
        // Its paths may be lost; then nothing comes any more.
        let _told = self.senders.poll(16, &mut Deaf);
        while self.senders.poll_sent().is_some() {}
        let fins = &mut self.fins;
        self.senders.take_untagged(|_, _, bytes| {
            if let Ok(wire::Message::Fin(fin)) = wire::decode(bytes) {
                *fins.entry(fin.context.operation.value()).or_default() += 1;
            }
        });
        while let Some((number, message)) = self.backlog.pop_front() {
            match self.try_send(number, &message) {
                Ok(true) => {}
                Ok(false) => {
                    self.backlog.push_front((number, message));
                    return;
                }
                // The path is lost: it vanishes with its sender.
                Err(_) => {}
            }
        }
    }

    fn keyed(&self, buffer: Buffer) -> Buffer {
        Buffer { key: self.key, ..buffer }
    }

    fn answer(&self, answer: Answer) -> Answer {
        match answer {
            Answer::Accept { buffer, transfer } => Answer::Accept { buffer: self.keyed(buffer), transfer },
            Answer::Hold | Answer::Discard => answer,
        }
    }

    fn command(&self, command: Command) -> Command {
        match command {
            Command::Add { handle, tag, ignore, buffer, unexpected_count, signalled } => {
                Command::Add { handle, tag, ignore, buffer: self.keyed(buffer), unexpected_count, signalled }
            }
            Command::Answer { message, answer } => Command::Answer { message, answer: self.answer(answer) },
            Command::Read { transfer, peer, tag, app_ctx, remote, buffer } => {
                let (app_ctx, buffer) = (word(app_ctx), self.keyed(buffer));
                Command::Read { transfer, peer, tag, app_ctx, remote, buffer }
            }
            Command::Copy { transfer, from, to } => {
                Command::Copy { transfer, from: self.keyed(from), to: self.keyed(to) }
            }
            Command::Del { .. } | Command::Sync { .. } | Command::Receive { .. } => command,
        }
    }

    fn is_path_failing(&self) -> bool {
        let connected = self.peers.iter().filter(|peer| self.receiver.is_connected(**peer)).count();
        self.receiver.peers() > connected
    }

    fn check_accounts(&self) -> Result<(), String> {
        let capabilities = self.receiver.capabilities();
        let Some(srq) = self.receiver.tag_matching() else { return Ok(()) };
        let number = srq.number().map_err(|error| error.to_string())?;
        let (listed, sleeping) = self.hca.with(|hca| {
            let entries = hca.matching_list(number).map_or(&[][..], |list| list.entries());
            (entries.len(), entries.iter().find(|entry| !entry.active).map(|entry| entry.index))
        });
        let (tags, slots) = self.receiver.free();
        if tags + listed != capabilities.tags as usize {
            return Err(format!("{tags} tags are free and {listed} listed, of {}", capabilities.tags));
        }
        // Those of the last ADDs that asked for no completion wait for the next one that does.
        if slots <= capabilities.command_slots / 4 * 3 {
            return Err(format!("{slots} command slots are free, of {}", capabilities.command_slots));
        }
        if let Some(entry) = sleeping.filter(|_| !self.keeps_entries_inactive()) {
            return Err(format!("entry {entry} is not active"));
        }
        let posted = self.receiver.buffers_posted();
        if posted < Capabilities::UNEXPECTED_BUFFERS_MIN {
            return Err(format!("{posted} buffers for unexpected messages are posted"));
        }
        let seen = self.hca.with(|hca| hca.shared_receives(number));
        if posted != seen {
            return Err(format!("{posted} buffers are posted, and the device sees {seen}"));
        }
        let (kept, held) = (self.receiver.buffers_kept() as usize, self.receiver.messages_held());
        let (free, all) = (self.receiver.buffers_free(), srq.slab().count() as usize);
        if posted as usize + kept + free != all {
            return Err(format!(
                "{posted} buffers are posted, {kept} kept, {free} free, and there are {all}"
            ));
        }
        if kept > held {
            return Err(format!("{kept} buffers are kept for {held} messages"));
        }
        Ok(())
    }

    /// A1 and A4.
    fn keeps_entries_inactive(&self) -> bool {
        let usual = Switches::default();
        let Switches { activation, append_activates, .. } = self.hca.with(|hca| hca.config().switches);
        activation != usual.activation || append_activates != usual.append_activates
    }
}

impl Device for Card {
    fn capabilities(&self) -> Capabilities {
        self.receiver.capabilities()
    }

    fn submit(&mut self, commands: &[Command]) -> Result<usize, DeviceError> {
        self.dirty = true;
        let commands: Vec<Command> = commands.iter().map(|command| self.command(*command)).collect();
        let taken = self.receiver.submit(&commands)?;
        for command in commands.iter().take(taken) {
            if let Command::Add { handle, buffer, .. } = command {
                self.entries.insert(buffer.address, *handle);
            }
        }
        Ok(taken)
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        self.receiver.flush()
    }

    fn place_held(&mut self, message: MessageToken, buffer: &Buffer) -> bool {
        let buffer = self.keyed(*buffer);
        self.receiver.place_held(message, &buffer)
    }

    fn add(&mut self, add: &Add<'_>) -> bool {
        self.dirty = true;
        let buffer = self.keyed(*add.buffer);
        let is_added = self.receiver.add(&Add { buffer: &buffer, ..*add });
        if is_added {
            self.entries.insert(buffer.address, add.handle);
        }
        is_added
    }

    fn poll(&mut self, max: usize, sink: &mut dyn EventSink) -> Result<usize, DeviceError> {
        let mut ear = Ear { sink, key: self.key };
        let told = self.receiver.poll(max, &mut ear)?;
        self.dirty = told > 0;
        Ok(told)
    }
}

impl Machine for Card {
    type Step = Step;

    fn steps(&self) -> Vec<Step> {
        self.hca.steps()
    }

    fn step(&mut self, step: Step) {
        self.dirty = true;
        self.hca.step(step);
        self.run_senders();
    }

    fn kind(&self, step: Step) -> StepKind {
        match (self.hca.with(|hca| hca.role(step)), step) {
            (Role::ListOperation, _) => StepKind::Command,
            (Role::Message, Step::Deliver { to, .. }) if self.receiving.contains_key(&to) => StepKind::Accept,
            (Role::Message | Role::Other, _) => StepKind::Data,
        }
    }

    fn words(&self, step: Step) -> String {
        let kind = self.kind(step);
        format!("steps: {step:?} ({kind:?})")
    }

    fn is_quiet(&self) -> bool {
        !self.dirty && !self.is_path_failing()
    }

    fn take_accepted(&mut self) -> Vec<Accepted> {
        let seen = self.hca.with(crate::hca::Hca::take_accepted).into_iter();
        let accepted = seen.filter_map(|seen| {
            let [opcode, _, _, _, c0, c1, c2, c3, ..] = seen.header;
            let has_tag = matches!(opcode, RENDEZVOUS | EAGER);
            if !has_tag || !self.receiving.contains_key(&seen.qpn) {
                return None;
            }
            let message = number(u32::from_be_bytes([c0, c1, c2, c3]));
            let by = match seen.by {
                AcceptedBy::Entry { address, .. } => {
                    let unknown = TagHandle { index: u32::MAX, generation: u32::MAX };
                    Acceptor::Entry(self.entries.get(&address).copied().unwrap_or(unknown))
                }
                AcceptedBy::Unexpected | AcceptedBy::Receive => Acceptor::Host,
                AcceptedBy::Untagged => return None,
            };
            Some(Accepted { message, by })
        });
        accepted.collect()
    }

    fn send(&mut self, number: u32, message: &Message) -> Result<(), String> {
        let Turned { operations, messages } = std::mem::take(&mut self.turned);
        self.turn(message.source, operations, messages)?;
        if !self.peers.contains(&message.source) {
            self.connect(message.source).map_err(|error| error.to_string())?;
        }
        if !self.backlog.is_empty() || !self.try_send(number, message)? {
            self.backlog.push_back((number, *message));
        }
        Ok(())
    }

    fn fail_path(&mut self, peer: PeerId) {
        self.dirty = true;
        // There may be none: the device failed, or nothing was to come from there.
        let _is_there = self.receiver.disconnect(peer);
    }

    fn fail(&mut self) {
        self.dirty = true;
        self.hca.with(crate::hca::Hca::break_receive_queues);
    }

    fn listed(&self) -> Option<Vec<Option<TagHandle>>> {
        let number = self.receiver.tag_matching()?.number().ok()?;
        self.hca.with(|hca| {
            let entries = hca.matching_list(number)?.entries().iter();
            Some(entries.map(|entry| self.entries.get(&entry.buffer.address).copied()).collect())
        })
    }

    fn slots_used(&self) -> Option<u64> {
        self.receiver.tag_matching()?;
        let (_, free) = self.receiver.free();
        Some(u64::from(self.receiver.capabilities().command_slots - free))
    }

    fn check_quiet(&self) -> Result<(), String> {
        self.check_accounts()?;
        let sent = self.backlog.len();
        if sent > 0 {
            return Err(format!("{sent} messages are not sent"));
        }
        for (number, peer) in self.finished.borrow().iter() {
            let fins = self.fins.get(number).copied().unwrap_or(0);
            let is_lost = !self.receiver.is_connected(*peer);
            if fins > 1 || fins == 0 && !is_lost {
                return Err(format!("the sender of m{number} got {fins} FINs"));
            }
        }
        Ok(())
    }

    fn check_data(&self, number: u32, sent: u64, address: u64, length: u64) -> Result<(), String> {
        if let Some(peer) = self.rendezvous.get(&number) {
            self.finished.borrow_mut().push((number, *peer));
        }
        self.memory.check(number, sent, address, length)
    }
}

/// Hears for a world: numbers for words, keys for buffers.
struct Ear<'a> {
    sink: &'a mut dyn EventSink,
    key: u32,
}

impl EventSink for Ear<'_> {
    fn handle_event(&mut self, device: DeviceId, event: &Event) -> Answer {
        let event = match event {
            Event::Arrived(arrival) => {
                let mut arrival = *arrival;
                arrival.header.app_ctx = number(arrival.header.app_ctx);
                Event::Arrived(arrival)
            }
            Event::Matched(matched) => {
                let mut matched = *matched;
                matched.app_ctx = number(matched.app_ctx);
                Event::Matched(matched)
            }
            Event::Data(_)
            | Event::Operation(_)
            | Event::Untagged { .. }
            | Event::Released(_)
            | Event::SetAside { .. }
            | Event::PathLost { .. }
            | Event::DeviceFailed(_) => event.clone(),
        };
        match self.sink.handle_event(device, &event) {
            Answer::Accept { buffer, transfer } => {
                Answer::Accept { buffer: Buffer { key: self.key, ..buffer }, transfer }
            }
            answer @ (Answer::Hold | Answer::Discard) => answer,
        }
    }
}

/// The senders match nothing.
struct Deaf;

impl EventSink for Deaf {
    fn handle_event(&mut self, _device: DeviceId, _event: &Event) -> Answer {
        Answer::Discard
    }
}

/// The message that a sender's word names.
const fn number(app_ctx: u32) -> u32 {
    app_ctx >> 8
}

/// The sender's word of a message.
const fn word(number: u32) -> u32 {
    number << 8
}

/// Opcodes of messages with a tag (`infiniband/tm_types.h`).
const RENDEZVOUS: u8 = 1;
const EAGER: u8 = 3;
/// Messages under way from a sender.
const SENDS: u32 = 64;
