//! A small message layer on the engine: two ranks of one process, whose transport is a vector of messages.

use std::collections::HashMap;
use std::mem::take;

use tagmatch::engine::{Completion, Config, End, Engine, Kind, Posting, Receive};
use tagmatch::ids::{DeviceId, Ignore, MessageToken, PeerId, Source, Tag};
use tagmatch::matching::Pattern;
use tagmatch::seam::{Answer, Arrival, Buffer, Capabilities, Event, EventSink, Header, Placer};

/// A message: its sender, its tag, its payload.
type Message = (PeerId, Tag, Vec<u8>);

struct Rank {
    engine: Engine,
    device: DeviceId,
    arriving: Vec<Message>,
    arrived: u64,
    memory: Memory,
}

/// Payloads that wait, and buffers of receives. The engine follows no address, so that of a buffer is its number here.
#[derive(Default)]
struct Memory {
    held: HashMap<MessageToken, Vec<u8>>,
    buffers: HashMap<u64, Vec<u8>>,
}

impl Placer for Memory {
    fn place(&mut self, _: DeviceId, message: MessageToken, to: &Buffer) -> bool {
        let mut payload = self.held.remove(&message).expect("a message is held until it is placed");
        payload.truncate(usize::try_from(to.length).unwrap_or(usize::MAX));
        self.buffers.insert(to.address, payload);
        true
    }
}

impl Rank {
    fn new() -> Self {
        let mut engine = Engine::new(Config::default());
        let device = engine.add_device(Capabilities::default()).expect("it is the first");
        Self { engine, device, arriving: Vec::new(), arrived: 0, memory: Memory::default() }
    }

    /// Post a receive from anybody; its number. A completion of it will come, unless it took a message that waited.
    fn receive(&mut self, tag: Tag, ignore: Ignore, length: u64) -> (u64, Posting) {
        let context = self.memory.buffers.len() as u64;
        self.memory.buffers.insert(context, Vec::new());
        let pattern = Pattern { tag, ignore, source: Source::Any };
        let receive = Receive { pattern, buffer: Buffer::new(context, length), context, kind: Kind::Once };
        (context, self.engine.post_placing(&receive, &mut self.memory))
    }

    /// Hand over what has arrived, and take one completion.
    fn progress(&mut self) -> Option<Completion> {
        for (source, tag, payload) in take(&mut self.arriving) {
            let message = MessageToken(self.arrived);
            self.arrived += 1;
            let length = payload.len() as u64;
            let header = Header { tag, length, app_ctx: 0, immediate: None, remote: None };
            let arrival = Arrival { message, source, header, in_hand: true, counted: false };
            self.memory.held.insert(message, payload);
            let answer = self.engine.handle_event(self.device, &Event::Arrived(arrival));
            if let Answer::Accept { buffer, .. } = answer {
                self.memory.place(self.device, message, &buffer);
            }
        }
        self.engine.poll_completion()
    }
}

pub(crate) fn main() {
    let (me, mut there) = (PeerId(0), Rank::new());
    let (number, posting) = there.receive(Tag(7), Ignore::NONE, 64); // posted before its message comes
    assert!(matches!(posting, Posting::Queued(_)));
    there.arriving.push((me, Tag(8), b"unexpected".to_vec()));
    there.arriving.push((me, Tag(7), b"expected".to_vec()));
    let completion = there.progress().expect("the message came");
    assert!(matches!(completion.end, End::Received(message) if message.source == me));
    assert_eq!((completion.context, there.memory.buffers[&number].as_slice()), (number, &b"expected"[..]));
    let (number, posting) = there.receive(Tag(0), Ignore::ALL, 64); // any tag
    assert!(matches!(posting, Posting::Placed(message) if message.tag == Tag(8)));
    assert_eq!(there.memory.buffers[&number], b"unexpected");
    assert_eq!(there.progress(), None);
}
