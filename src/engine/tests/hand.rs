//! An engine whose devices are played by the test: it reads commands and tells events.

use crate::engine::{CancelOutcome, Completion, Config, End, Engine, Kind, Posting, Receive};
use crate::ids::{DeviceId, Ignore, MessageToken, PeerId, ReceiveId, Source, Tag, TagHandle, TransferId};
use crate::matching::Pattern;
use crate::seam::{
    Answer, Arrival, Buffer, Capabilities, Command, Data, DataTarget, Event, EventSink, Header, Match,
    MatchStage, Operation, OperationDone,
};

pub(super) const NIC: DeviceId = DeviceId(0);
pub(super) const OTHER: DeviceId = DeviceId(1);

pub(super) fn nic() -> Capabilities {
    Capabilities {
        tags: 4,
        command_slots: 32,
        completions: 256,
        unexpected_buffers: 33,
        eager_limit: 64,
        buffer_length_max: 1 << 20,
        ..Capabilities::default()
    }
}

pub(super) struct Hand {
    pub(super) engine: Engine,
    tokens: u64,
}

impl Hand {
    /// A NIC, and a device that does not match.
    pub(super) fn new() -> Self {
        Self::with(Config::default(), &[nic(), Capabilities::default()])
    }

    pub(super) fn with(config: Config, devices: &[Capabilities]) -> Self {
        // Every ADD is told to be done.
        let mut engine = Engine::new(Config { silent_adds_max: 0, ..config });
        for capabilities in devices {
            engine.add_device(*capabilities).unwrap();
        }
        let mut hand = Self { engine, tokens: 0 };
        for device in 0..devices.len() {
            hand.commands(DeviceId(u8::try_from(device).unwrap()));
        }
        hand
    }

    pub(super) fn post(&mut self, pattern: Pattern, context: u64) -> Posting {
        let buffer = Buffer::new(context * 1000, 100);
        self.engine.post(&Receive { pattern, buffer, context, kind: Kind::Once })
    }

    pub(super) fn queued(&mut self, pattern: Pattern, context: u64) -> ReceiveId {
        match self.post(pattern, context) {
            Posting::Queued(id) => id,
            Posting::Matched(_) | Posting::Placed(_) => {
                panic!("receive {context} took an unexpected message")
            }
        }
    }

    /// All commands for a device, taken. Postings of buffers are left out.
    pub(super) fn commands(&mut self, device: DeviceId) -> Vec<Command> {
        let commands = self.engine.poll_commands(device).to_vec();
        self.engine.handle_submitted(device, commands.len());
        commands.into_iter().filter(|command| !matches!(command, Command::Receive { .. })).collect()
    }

    /// The ADDs among the commands of the NIC, as (context by buffer address, handle, count).
    pub(super) fn adds(&mut self) -> Vec<(u64, TagHandle, u16)> {
        let of = |command: Command| match command {
            Command::Add { handle, buffer, unexpected_count, .. } => {
                Some((buffer.address / 1000, handle, unexpected_count))
            }
            _ => None,
        };
        self.commands(NIC).into_iter().filter_map(of).collect()
    }

    pub(super) fn arrival(&mut self, tag: u64, source: u32, counted: bool) -> Arrival {
        self.tokens += 1;
        Arrival {
            message: MessageToken(self.tokens),
            source: PeerId(source),
            header: Header {
                tag: Tag(tag),
                length: 10,
                app_ctx: u32::try_from(self.tokens).unwrap(),
                immediate: None,
                remote: None,
            },
            in_hand: true,
            counted,
        }
    }

    /// A message that the NIC calls unexpected.
    pub(super) fn unexpected(&mut self, tag: u64, source: u32) -> Answer {
        let arrival = self.arrival(tag, source, true);
        self.engine.handle_event(NIC, &Event::Arrived(arrival))
    }

    /// A message through the device that does not match.
    pub(super) fn other(&mut self, tag: u64, source: u32) -> Answer {
        let arrival = self.arrival(tag, source, false);
        self.engine.handle_event(OTHER, &Event::Arrived(arrival))
    }

    pub(super) fn tell(&mut self, event: &Event) {
        self.engine.handle_event(NIC, event);
    }

    pub(super) fn matched(&mut self, handle: TagHandle, tag: u64, source: u32, stage: MatchStage) {
        self.tell(&Event::Matched(Match {
            handle,
            source: PeerId(source),
            tag: Tag(tag),
            app_ctx: 99,
            length: 10,
            immediate: None,
            stage,
            released: false,
        }));
    }

    pub(super) fn done(&mut self, operation: Operation, success: bool, phase: u16) {
        self.tell(&Event::Operation(OperationDone { operation, success, phase, sync_requested: false }));
    }

    pub(super) fn data(&mut self, device: DeviceId, target: DataTarget) {
        let data = Data { target, length: 10, immediate: None, error: None };
        self.engine.handle_event(device, &Event::Data(data));
    }

    /// Play all accepts of held messages: their data is there.
    pub(super) fn place(&mut self, device: DeviceId) -> Vec<TransferId> {
        let of = |command: Command| match command {
            Command::Answer { answer: Answer::Accept { transfer, .. }, .. } => transfer,
            Command::Copy { transfer, .. } | Command::Read { transfer, .. } => Some(transfer),
            _ => None,
        };
        let transfers: Vec<_> = self.commands(device).into_iter().filter_map(of).collect();
        for &transfer in &transfers {
            self.data(device, DataTarget::Transfer(transfer));
        }
        transfers
    }

    pub(super) fn completions(&mut self) -> Vec<Completion> {
        std::iter::from_fn(|| self.engine.poll_completion()).collect()
    }

    /// Contexts of the receives that got a message, in order, with the message's number (`app_ctx`).
    pub(super) fn received(&mut self) -> Vec<(u64, u32)> {
        let of = |completion: Completion| match completion.end {
            End::Received(message) => (completion.context, message.app_ctx),
            other => panic!("receive {} ended with {other:?}", completion.context),
        };
        self.completions().into_iter().map(of).collect()
    }

    pub(super) fn cancelled(&mut self) -> Vec<u64> {
        let completions = self.completions();
        completions
            .into_iter()
            .map(|completion| {
                assert_eq!(completion.end, End::Cancelled);
                completion.context
            })
            .collect()
    }

    pub(super) fn cancel(&mut self, id: ReceiveId) -> CancelOutcome {
        self.engine.cancel(id)
    }

    pub(super) fn no_fault(&mut self) {
        assert_eq!(self.engine.poll_fault(), None);
    }
}

pub(super) fn any(tag: u64) -> Pattern {
    Pattern::exact(Tag(tag))
}

pub(super) fn masked(tag: u64, ignore: u64) -> Pattern {
    Pattern { tag: Tag(tag), ignore: Ignore(ignore), source: Source::Any }
}

pub(super) fn from(tag: u64, source: u32) -> Pattern {
    Pattern { tag: Tag(tag), ignore: Ignore::NONE, source: Source::Peer(PeerId(source)) }
}
