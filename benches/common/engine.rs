//! The whole engine as a subject, with as little of a device as there can be: from post or arrival to the
//! completion read.
//!
//! [`EngineSubject`]: a device without matching, whose payload of 8 bytes is in hand when a message arrives,
//! as UCX's is. [`OffloadedSubject`]: a device that matches, in so far as it answers in the order of posting
//! what was put into its list; it shows what offload costs the host and says nothing of any card.
//!
//! Not here: devices that can be wrong or late (`tagmatch::device::soft`).

use std::collections::VecDeque;
use std::hint::black_box;

use tagmatch::engine::{CancelOutcome, Config, Engine, Kind, Posting, Receive};
use tagmatch::ids::{DeviceId, MessageToken, PeerId, ReceiveId, Tag, TagHandle};
use tagmatch::matching::{Envelope, Pattern};
use tagmatch::seam::{
    Answer, Arrival, Buffer, Capabilities, Command, Data, DataTarget, Event, EventSink, Header, Match,
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
    #[inline]
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

    #[inline]
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

/// The engine over a device that matches in the order of posting. Good for points in forward order only.
#[derive(Debug)]
pub(crate) struct OffloadedSubject {
    engine: Engine,
    device: DeviceId,
    listed: VecDeque<(TagHandle, Tag)>,
    events: VecDeque<Event>,
}

impl Default for OffloadedSubject {
    fn default() -> Self {
        let mut engine = Engine::new(config());
        let capabilities = Capabilities {
            tags: 1024,
            command_slots: 256,
            completions: 4096,
            unexpected_buffers: 64,
            eager_limit: MESSAGE_BYTES as u64,
            buffer_length_max: 1 << 30,
            registration: false,
            rendezvous: true,
        };
        let device = engine.add_device(capabilities).expect("a device that makes sense may join");
        Self { engine, device, listed: VecDeque::with_capacity(1024), events: VecDeque::with_capacity(1024) }
    }
}

impl OffloadedSubject {
    /// The device takes its commands; completions of list operations come at once.
    #[inline]
    fn submit(&mut self) {
        let commands = self.engine.poll_commands(self.device);
        let taken = commands.len();
        for command in commands {
            let (operation, signalled) = match *command {
                Command::Add { handle, tag, signalled, .. } => {
                    self.listed.push_back((handle, tag));
                    (Operation::Add(handle), signalled)
                }
                Command::Sync { signalled, .. } => (Operation::Sync, signalled),
                Command::Del { .. } | Command::Receive { .. } => continue,
                Command::Answer { .. } | Command::Read { .. } | Command::Copy { .. } => {
                    unreachable!("every message is matched by the device, into the user's buffer")
                }
            };
            if signalled {
                let done = OperationDone { operation, success: true, phase: 0, sync_requested: false };
                self.events.push_back(Event::Operation(done));
            }
        }
        self.engine.handle_submitted(self.device, taken);
        while let Some(event) = self.events.pop_front() {
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

    fn post(&mut self, receive: &Receive) -> Option<ReceiveId> {
        let posting = self.engine.post(receive);
        self.submit();
        let Posting::Queued(receive) = posting else { return None };
        Some(receive)
    }

    fn arrive(&mut self, envelope: &Envelope) -> bool {
        let (handle, tag) = self.listed.pop_front().expect("the receive went down");
        assert_eq!(tag, envelope.tag, "in the order of posting");
        let matched = Match {
            handle,
            source: envelope.source,
            tag,
            app_ctx: 0,
            length: MESSAGE_BYTES as u64,
            immediate: None,
            stage: MatchStage::Complete,
            released: true,
        };
        self.engine.handle_event(self.device, &Event::Matched(matched));
        let read = self.engine.poll_completion().is_some();
        self.submit();
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

/// As in the measurements that the budgets come from.
const MESSAGE_BYTES: usize = 8;
