//! The whole engine as a subject, with as little of a device as there can be: from post or arrival to the
//! completion read.
//!
//! [`EngineSubject`]: a device without matching, whose payload of 8 bytes is in hand when a message arrives,
//! as UCX's is. [`OffloadedSubject`]: a device that matches, in so far as it answers in the order of posting
//! what was put into its list; it shows what offload costs the host and says nothing of any card.
//!
//! [`EngineLoop`] and [`OffloadedLoop`]: the same loops over the same devices, and nobody who matches. What they and the
//! others differ by is the engine's, also what the compiler has drawn into the loop of it.
//!
//! Not here: devices that can be wrong or late (`tagmatch::device::soft`).

use std::collections::VecDeque;
use std::hint::black_box;

use tagmatch::engine::{CancelOutcome, Completion, Config, End, Engine, Kind, Posting, Receive};
use tagmatch::ids::{DeviceId, MessageToken, PeerId, ReceiveId, Tag, TagHandle};
use tagmatch::matching::{Envelope, Pattern};
use tagmatch::seam::{
    Add, Answer, Arrival, Buffer, Capabilities, Command, Data, DataTarget, Event, EventSink, Header, Match,
    MatchStage, Operation, OperationDone, Placer,
};

use super::subject::Subject;

/// The engine over a device that does not match.
#[derive(Debug)]
pub(crate) struct EngineSubject {
    engine: Engine,
    device: DeviceId,
    memory: Memory,
}

/// A message's payload where it came, and the receive's buffer.
#[derive(Debug)]
struct Memory {
    payload: [u8; MESSAGE_BYTES],
    buffer: [u8; MESSAGE_BYTES],
}

impl Memory {
    /// The device's part: the payload goes where it shall.
    #[inline]
    fn place(&mut self) {
        self.buffer = *black_box::<&[u8; MESSAGE_BYTES]>(&self.payload);
        black_box(&mut self.buffer);
    }
}

impl Placer for Memory {
    #[inline]
    fn place(&mut self, _: DeviceId, _: MessageToken, _: &Buffer) -> bool {
        Self::place(self);
        true
    }
}

impl Default for EngineSubject {
    fn default() -> Self {
        let mut engine = Engine::new(config());
        let device = engine.add_device(Capabilities::default()).expect("a device without tags may join");
        let memory = Memory { payload: [0x5a; MESSAGE_BYTES], buffer: [0; MESSAGE_BYTES] };
        Self { engine, device, memory }
    }
}

impl EngineSubject {
    /// Does what the engine asks for held messages, tells it, and reads the completions.
    #[cold]
    #[inline(never)]
    fn serve(&mut self) -> usize {
        let mut completions = 0;
        while let Some(&command) = self.engine.poll_commands(self.device).first() {
            self.engine.handle_submitted(self.device, 1);
            if let Command::Answer { answer: Answer::Accept { transfer: Some(transfer), .. }, .. } = command {
                self.memory.place();
                let target = DataTarget::Transfer(transfer);
                let data = Data { target, length: MESSAGE_BYTES as u64, immediate: None, error: None };
                self.engine.handle_event(self.device, &Event::Data(data));
            }
            completions += usize::from(self.engine.poll_completion().is_some());
        }
        completions
    }
}

impl Subject for EngineSubject {
    type Pattern = Receive;
    type Envelope = Event;
    type Receive = ReceiveId;

    fn name(&self) -> &'static str {
        "engine"
    }

    fn prepare_pattern(pattern: &Pattern) -> Receive {
        receive(pattern)
    }

    fn prepare_envelope(envelope: &Envelope) -> Event {
        Event::Arrived(arrival(envelope))
    }

    #[inline(always)]
    fn post(&mut self, receive: &Receive) -> Option<ReceiveId> {
        match self.engine.post_placing(receive, &mut self.memory) {
            Posting::Queued(receive) => Some(receive),
            Posting::Placed(ref message) => {
                // The completion, read where it lies.
                assert_eq!(black_box(message).length, MESSAGE_BYTES as u64);
                None
            }
            Posting::Matched(_) => {
                assert_eq!(self.serve(), 1, "one completion");
                None
            }
        }
    }

    #[inline]
    fn arrive(&mut self, event: &Event) -> bool {
        match self.engine.handle_event(self.device, event) {
            Answer::Accept { .. } => {
                self.memory.place();
                black_box(self.engine.next_completion()).is_some()
            }
            Answer::Hold | Answer::Discard => false,
        }
    }

    fn probe(&mut self, receive: &Receive) -> bool {
        self.engine.peek(&receive.pattern).is_some()
    }

    fn claim(&mut self, receive: &Receive) -> bool {
        let Some((claim, _)) = self.engine.claim(&receive.pattern) else { return false };
        self.engine.receive_claimed(claim, receive.buffer, receive.context) && self.serve() == 1
    }

    fn cancel(&mut self, receive: ReceiveId) -> bool {
        self.engine.cancel(receive) == CancelOutcome::Cancelled && self.engine.poll_completion().is_some()
    }
}

/// [`EngineSubject`] without the engine.
#[derive(Debug)]
pub(crate) struct EngineLoop {
    memory: Memory,
    completion: Completion,
}

impl Default for EngineLoop {
    fn default() -> Self {
        let memory = Memory { payload: [0x5a; MESSAGE_BYTES], buffer: [0; MESSAGE_BYTES] };
        Self { memory, completion: Completion { context: 0, end: End::Cancelled } }
    }
}

impl Subject for EngineLoop {
    type Pattern = Receive;
    type Envelope = Event;
    type Receive = ReceiveId;

    fn name(&self) -> &'static str {
        "loop/engine"
    }

    fn prepare_pattern(pattern: &Pattern) -> Receive {
        receive(pattern)
    }

    fn prepare_envelope(envelope: &Envelope) -> Event {
        Event::Arrived(arrival(envelope))
    }

    #[inline]
    fn post(&mut self, receive: &Receive) -> Option<ReceiveId> {
        black_box(receive);
        Some(ReceiveId::from_bits(0))
    }

    #[inline]
    fn arrive(&mut self, event: &Event) -> bool {
        black_box(event);
        self.memory.place();
        black_box(Some(&self.completion)).is_some()
    }

    fn probe(&mut self, _: &Receive) -> bool {
        false
    }

    fn claim(&mut self, _: &Receive) -> bool {
        false
    }

    fn cancel(&mut self, _: ReceiveId) -> bool {
        false
    }
}

/// A device that matches in the order of posting. Its list is a ring: the engine knows how much may be in it.
#[derive(Debug)]
struct Card {
    listed: Box<[(TagHandle, Tag); LISTED_MAX]>,
    first: usize,
    next: usize,
    events: VecDeque<Event>,
}

impl Default for Card {
    fn default() -> Self {
        let none = (TagHandle { index: 0, generation: 0 }, Tag(0));
        Self { listed: Box::new([none; LISTED_MAX]), first: 0, next: 0, events: VecDeque::with_capacity(64) }
    }
}

impl Card {
    /// Completions of list operations come at once.
    #[inline(never)]
    fn done(&mut self, operation: Operation) {
        let done = OperationDone { operation, success: true, phase: 0, sync_requested: false };
        self.events.push_back(Event::Operation(done));
    }

    #[inline(never)]
    fn take(&mut self, command: &Command) {
        match *command {
            Command::Add { handle, tag, ignore, ref buffer, unexpected_count, signalled } => {
                let add = Add { handle, tag, ignore, buffer, unexpected_count, signalled };
                self.add(DeviceId(0), &add);
            }
            Command::Sync { signalled: true, .. } => self.done(Operation::Sync),
            Command::Sync { .. } | Command::Del { .. } | Command::Receive { .. } => {}
            Command::Answer { .. } | Command::Read { .. } | Command::Copy { .. } => {
                unreachable!("every message is matched by the device, into the user's buffer")
            }
        }
    }

    /// A message comes: what is told of it.
    #[inline]
    fn matched(&mut self, envelope: &Envelope) -> Match {
        assert!(self.first < self.next, "the receive went down");
        let (handle, tag) = self.listed[self.first % LISTED_MAX];
        self.first += 1;
        assert_eq!(tag, envelope.tag, "in the order of posting");
        Match {
            handle,
            source: envelope.source,
            tag,
            app_ctx: 0,
            length: MESSAGE_BYTES as u64,
            immediate: None,
            stage: MatchStage::Complete,
            released: true,
        }
    }
}

impl Placer for Card {
    #[inline]
    fn place(&mut self, _: DeviceId, _: MessageToken, _: &Buffer) -> bool {
        false
    }

    #[inline(always)]
    fn add(&mut self, _: DeviceId, add: &Add<'_>) -> bool {
        self.listed[self.next % LISTED_MAX] = (add.handle, add.tag);
        self.next += 1;
        if add.signalled {
            self.done(Operation::Add(add.handle));
        }
        true
    }
}

/// The engine over a device that matches in the order of posting. Good for points in forward order only.
#[derive(Debug)]
pub(crate) struct OffloadedSubject {
    engine: Engine,
    device: DeviceId,
    card: Card,
}

impl Default for OffloadedSubject {
    fn default() -> Self {
        let mut engine = Engine::new(config());
        let capabilities = Capabilities {
            tags: u32::try_from(LISTED_MAX).unwrap_or(u32::MAX),
            command_slots: 256,
            completions: 4096,
            unexpected_buffers: 64,
            eager_limit: MESSAGE_BYTES as u64,
            buffer_length_max: 1 << 30,
            registration: false,
            rendezvous: true,
        };
        let device = engine.add_device(capabilities).expect("a device that makes sense may join");
        let mut subject = Self { engine, device, card: Card::default() };
        subject.turn();
        subject
    }
}

impl OffloadedSubject {
    /// The owner's turn: the device takes its commands, and the engine what became of those.
    #[inline(always)]
    fn turn(&mut self) {
        if !self.engine.poll_commands(self.device).is_empty() || !self.card.events.is_empty() {
            self.serve();
        }
    }

    #[cold]
    #[inline(never)]
    fn serve(&mut self) {
        let commands = self.engine.commands(self.device);
        let taken = commands.len();
        commands.iter().for_each(|command| self.card.take(command));
        self.engine.handle_submitted(self.device, taken);
        while let Some(event) = self.card.events.pop_front() {
            self.engine.handle_event(self.device, &event);
        }
    }
}

impl Subject for OffloadedSubject {
    type Pattern = Receive;
    type Envelope = Envelope;
    type Receive = ReceiveId;

    fn name(&self) -> &'static str {
        "offloaded"
    }

    fn prepare_pattern(pattern: &Pattern) -> Receive {
        receive(pattern)
    }

    fn prepare_envelope(envelope: &Envelope) -> Envelope {
        *envelope
    }

    #[inline(always)]
    fn post(&mut self, receive: &Receive) -> Option<ReceiveId> {
        let before = self.card.next;
        let Posting::Queued(receive) = self.engine.post_placing(receive, &mut self.card) else { return None };
        // What is not handed down is a command, and what is signalled has been done.
        if self.card.next == before || !self.card.events.is_empty() {
            self.turn();
        }
        Some(receive)
    }

    #[inline]
    fn arrive(&mut self, envelope: &Envelope) -> bool {
        let matched = self.card.matched(envelope);
        self.engine.handle_matches(self.device, std::slice::from_ref(black_box(&matched)));
        let read = black_box(self.engine.next_completion()).is_some();
        self.turn();
        read
    }

    fn probe(&mut self, receive: &Receive) -> bool {
        self.engine.peek(&receive.pattern).is_some()
    }

    fn claim(&mut self, _: &Receive) -> bool {
        false
    }

    fn cancel(&mut self, _: ReceiveId) -> bool {
        false
    }
}

/// [`OffloadedSubject`] without the engine.
#[derive(Debug)]
pub(crate) struct OffloadedLoop {
    card: Card,
    completion: Completion,
}

impl Default for OffloadedLoop {
    fn default() -> Self {
        Self { card: Card::default(), completion: Completion { context: 0, end: End::Cancelled } }
    }
}

impl Subject for OffloadedLoop {
    type Pattern = Receive;
    type Envelope = Envelope;
    type Receive = ReceiveId;

    fn name(&self) -> &'static str {
        "loop/offloaded"
    }

    fn prepare_pattern(pattern: &Pattern) -> Receive {
        receive(pattern)
    }

    fn prepare_envelope(envelope: &Envelope) -> Envelope {
        *envelope
    }

    #[inline(always)]
    fn post(&mut self, receive: &Receive) -> Option<ReceiveId> {
        let before = self.card.next;
        let Receive { pattern, buffer, .. } = black_box(receive);
        let handle = TagHandle { index: 0, generation: 0 };
        let (tag, ignore, unexpected_count, signalled) = (pattern.tag, pattern.ignore, 0, false);
        self.card.add(DeviceId(0), &Add { handle, tag, ignore, buffer, unexpected_count, signalled });
        if black_box(self.card.next) == before || !self.card.events.is_empty() {
            self.card.events.clear();
        }
        Some(ReceiveId::from_bits(0))
    }

    #[inline]
    fn arrive(&mut self, envelope: &Envelope) -> bool {
        let matched = self.card.matched(envelope);
        black_box(&matched);
        let read = black_box(Some(&self.completion)).is_some();
        while let Some(event) = self.card.events.pop_front() {
            black_box(&event);
        }
        read
    }

    fn probe(&mut self, _: &Receive) -> bool {
        false
    }

    fn claim(&mut self, _: &Receive) -> bool {
        false
    }

    fn cancel(&mut self, _: ReceiveId) -> bool {
        false
    }
}

fn config() -> Config {
    let mut config = Config::default();
    config.matching.hash_seed = 0x5eed;
    config
}

/// Every receive has its own buffer as far as the engine can see: a NIC must not hold one twice.
fn receive(pattern: &Pattern) -> Receive {
    let address = (pattern.tag.0 & 0xffff_ffff) * MESSAGE_BYTES as u64;
    Receive {
        pattern: *pattern,
        buffer: Buffer::new(address, MESSAGE_BYTES as u64),
        context: address,
        kind: Kind::Once,
    }
}

fn arrival(envelope: &Envelope) -> Arrival {
    Arrival {
        message: MessageToken(0),
        source: PeerId(envelope.source.0),
        header: Header {
            tag: envelope.tag,
            length: MESSAGE_BYTES as u64,
            app_ctx: 0,
            immediate: None,
            remote: None,
        },
        in_hand: true,
        counted: false,
    }
}

/// Entries of the device's list.
const LISTED_MAX: usize = 1024;
/// As in the measurements that the budgets come from.
const MESSAGE_BYTES: usize = 8;
