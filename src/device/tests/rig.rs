//! Two ends of a connection over any transport, and ears that write down what they hear.

use std::any::Any;
use std::collections::VecDeque;

use crate::device::loopback::LoopbackTransport;
#[cfg(target_os = "linux")]
use crate::device::shm::{ShmConfig, ShmTransport};
use crate::device::soft::SoftConfig;
use crate::device::soft::over::OverTransport;
#[cfg(target_os = "linux")]
use crate::device::tcp::{TcpConfig, TcpTransport};
use crate::device::transport::{Ear, Notice, Outgoing, Payload, Reaction, Sending, Transport};
use crate::engine::{End, Engine};
use crate::ids::{DeviceId, LinkId, MessageToken, PeerId, Tag, TransferId};
use crate::seam::{Answer, Arrival, Buffer, Command, Data, DataTarget, Event, EventSink};
use crate::wire::{AppContext, Control, Eager, OperationId, Rendezvous, SendFlags, Untagged};

use super::memory::{Memory, trusted};

/// Listening under a name that nobody else has.
#[cfg(target_os = "linux")]
pub(in crate::device) fn shared_memory() -> ShmTransport {
    shared_memory_with(ShmConfig { eager_limit: EAGER_LIMIT, ..ShmConfig::default() })
}

/// The same.
#[cfg(target_os = "linux")]
pub(in crate::device) fn shared_memory_with(config: ShmConfig) -> ShmTransport {
    static NAMES: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NAMES.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let name = format!("test {} {number}", std::process::id());
    ShmTransport::open(name.as_bytes(), config, trusted()).expect("it can listen")
}

/// One end of a connection, or both of one to itself.
pub(in crate::device) struct Rig {
    ends: Vec<Side>,
    /// What they stand on; last, so that it goes last.
    _ground: Box<dyn Any>,
}

struct Side {
    transport: Box<dyn Transport>,
    ear: Recorder,
    link: LinkId,
}

/// What was heard, in order.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::device) enum Heard {
    Event(bool, Event),
    Control(LinkId, Vec<u8>),
    Notice(Notice),
}

/// How arrivals are answered.
#[derive(Debug, Default)]
pub(in crate::device) enum Policy {
    #[default]
    Hold,
    Discard,
    /// The first with this buffer, and so on; then they are held.
    Accept(VecDeque<Buffer>),
}

/// An ear that writes down what it hears.
#[derive(Debug, Default)]
pub(in crate::device) struct Recorder {
    pub(in crate::device) heard: Vec<Heard>,
    pub(in crate::device) policy: Policy,
    /// A link is bound to this peer when the first control message comes.
    pub(in crate::device) binds: Option<PeerId>,
    transfers: u32,
    /// Takes what is said of messages with a tag, if it is there.
    pub(in crate::device) engine: Option<Engine>,
    /// What it completed.
    pub(in crate::device) ended: Vec<(u64, End)>,
}

impl Recorder {
    fn answer(&mut self, event: &Event) -> Answer {
        let Event::Arrived(arrival) = event else { return Answer::Hold };
        match &mut self.policy {
            Policy::Hold => Answer::Hold,
            Policy::Discard => Answer::Discard,
            Policy::Accept(buffers) => match buffers.pop_front() {
                Some(buffer) if arrival.in_hand => Answer::Accept { buffer, transfer: None },
                Some(buffer) => Answer::Accept { buffer, transfer: Some(self.transfer()) },
                None => Answer::Hold,
            },
        }
    }

    pub(in crate::device) fn transfer(&mut self) -> TransferId {
        self.transfers += 1;
        TransferId { index: self.transfers, generation: 7 }
    }

    pub(in crate::device) fn arrivals(&self) -> Vec<Arrival> {
        let of = |heard: &Heard| match heard {
            Heard::Event(_, Event::Arrived(arrival)) => Some(*arrival),
            _ => None,
        };
        self.heard.iter().filter_map(of).collect()
    }

    pub(in crate::device) fn data(&self) -> Vec<Data> {
        let of = |heard: &Heard| match heard {
            Heard::Event(_, Event::Data(data)) => Some(*data),
            _ => None,
        };
        self.heard.iter().filter_map(of).collect()
    }

    pub(in crate::device) fn controls(&self) -> Vec<Vec<u8>> {
        let of = |heard: &Heard| match heard {
            Heard::Control(_, bytes) => Some(bytes.clone()),
            _ => None,
        };
        self.heard.iter().filter_map(of).collect()
    }

    pub(in crate::device) fn notices(&self) -> Vec<Notice> {
        let of = |heard: &Heard| match heard {
            Heard::Notice(notice) => Some(notice.clone()),
            _ => None,
        };
        self.heard.iter().filter_map(of).collect()
    }
}

impl EventSink for Recorder {
    fn handle_event(&mut self, _device: DeviceId, event: &Event) -> Answer {
        if let Some(engine) = &mut self.engine {
            return engine.handle_event(DeviceId(0), event);
        }
        self.heard.push(Heard::Event(true, event.clone()));
        self.answer(event)
    }
}

impl Ear for Recorder {
    fn handle_untagged_event(&mut self, _device: DeviceId, event: &Event) -> Answer {
        self.heard.push(Heard::Event(false, event.clone()));
        self.answer(event)
    }

    fn handle_control(&mut self, _device: DeviceId, link: LinkId, message: &[u8]) -> Reaction {
        self.heard.push(Heard::Control(link, message.to_vec()));
        self.binds.take().map_or(Reaction::Continue, Reaction::Bind)
    }

    fn handle_notice(&mut self, _device: DeviceId, notice: Notice) {
        self.heard.push(Heard::Notice(notice));
    }
}

impl Rig {
    pub(in crate::device) fn loopback() -> Self {
        let transport = LoopbackTransport::new(DeviceId(0), b"me", EAGER_LIMIT, trusted());
        Self::over(vec![Box::new(transport.expect("the memory is trusted"))], Box::new(()))
    }

    #[cfg(target_os = "linux")]
    pub(in crate::device) fn tcp() -> Self {
        Self::tcp_with(TcpConfig { eager_limit: EAGER_LIMIT, ..TcpConfig::loopback() })
    }

    #[cfg(target_os = "linux")]
    pub(in crate::device) fn shm() -> Self {
        Self::over(vec![Box::new(shared_memory()), Box::new(shared_memory())], Box::new(()))
    }

    /// The receiver has a list of so many tags.
    #[cfg(target_os = "linux")]
    pub(in crate::device) fn listed_shm(tags: u32) -> Self {
        let over = OverTransport::new(shared_memory(), SoftConfig::matching(tags));
        let over = over.expect("a good configuration");
        Self::over(vec![Box::new(shared_memory()), Box::new(over)], Box::new(()))
    }

    #[cfg(target_os = "linux")]
    pub(in crate::device) fn tcp_with(config: TcpConfig) -> Self {
        let end = || -> Box<dyn Transport> {
            Box::new(TcpTransport::open(config, trusted()).expect("a port is free"))
        };
        Self::over(vec![end(), end()], Box::new(()))
    }

    /// The receiver has a list of so many tags.
    pub(in crate::device) fn listed_loopback(tags: u32) -> Self {
        let transport = LoopbackTransport::new(DeviceId(0), b"me", EAGER_LIMIT, trusted());
        let over = OverTransport::new(transport.expect("it is trusted"), SoftConfig::matching(tags));
        Self::over(vec![Box::new(over.expect("a good configuration"))], Box::new(()))
    }

    /// The receiver has a list of so many tags.
    #[cfg(target_os = "linux")]
    pub(in crate::device) fn listed_tcp(tags: u32) -> Self {
        let open = || TcpTransport::open(TcpConfig::loopback(), trusted()).expect("a port is free");
        let over = OverTransport::new(open(), SoftConfig::matching(tags)).expect("a good configuration");
        Self::over(vec![Box::new(open()), Box::new(over)], Box::new(()))
    }

    /// Over these, the sender's and the receiver's, and what they stand on.
    pub(in crate::device) fn over(transports: Vec<Box<dyn Transport>>, ground: Box<dyn Any>) -> Self {
        let link = LinkId { index: u32::MAX, generation: 0 };
        let end = |transport| Side { transport, ear: Recorder::default(), link };
        let mut rig = Self { ends: transports.into_iter().map(end).collect(), _ground: ground };
        rig.connect();
        rig
    }

    fn connect(&mut self) {
        let name = self.receiver().name().to_vec();
        let opened = self.sender().open(&name).expect("the name is an address");
        self.ends[0].link = opened;
        self.until(|rig| rig.sender_ear().notices().contains(&Notice::Open { link: opened }));
        if self.ends.len() > 1 {
            let incoming = |notice: &Notice| match notice {
                Notice::Incoming { link } => Some(*link),
                _ => None,
            };
            self.until(|rig| rig.ear().notices().iter().any(|notice| incoming(notice).is_some()));
            let link = self.ear().notices().iter().find_map(incoming).expect("it was heard");
            self.ends[1].link = link;
            self.receiver().bind(link, RECEIVED_FROM).expect("it is not bound");
            self.sender().bind(opened, PeerId(9)).expect("it is not bound");
        } else {
            self.sender().bind(opened, RECEIVED_FROM).expect("it is not bound");
        }
        for end in &mut self.ends {
            end.ear.heard.clear();
        }
    }

    pub(in crate::device) fn sender(&mut self) -> &mut dyn Transport {
        self.ends[0].transport.as_mut()
    }

    pub(in crate::device) fn receiver(&mut self) -> &mut dyn Transport {
        self.last().transport.as_mut()
    }

    pub(in crate::device) fn sender_ear(&mut self) -> &mut Recorder {
        &mut self.ends[0].ear
    }

    /// The receiver's.
    pub(in crate::device) fn ear(&mut self) -> &mut Recorder {
        &mut self.last().ear
    }

    pub(in crate::device) fn sender_link(&self) -> LinkId {
        self.ends[0].link
    }

    pub(in crate::device) fn receiver_link(&mut self) -> LinkId {
        self.last().link
    }

    fn last(&mut self) -> &mut Side {
        self.ends.last_mut().expect("there is one at least")
    }

    /// One turn of each end.
    pub(in crate::device) fn step(&mut self) {
        for end in &mut self.ends {
            if let Some(engine) = &mut end.ear.engine {
                let commands = engine.poll_commands(DeviceId(0));
                let taken = end.transport.submit(commands).expect("it works");
                engine.handle_submitted(DeviceId(0), taken);
            }
            end.transport.flush().expect("it works");
            end.transport.progress(TOLD_MAX, &mut end.ear).expect("it works");
        }
    }

    /// A turn of the sender alone.
    #[allow(dead_code, reason = "the tests of transports over tcp need none")]
    pub(in crate::device) fn step_sender(&mut self) {
        let end = &mut self.ends[0];
        end.transport.progress(TOLD_MAX, &mut end.ear).expect("it works");
    }

    /// A turn of the receiver alone.
    pub(in crate::device) fn step_receiver(&mut self) {
        let end = self.last();
        end.transport.progress(TOLD_MAX, &mut end.ear).expect("it works");
    }

    /// So many turns as bring something about, within reason.
    pub(in crate::device) fn until(&mut self, is_so: impl Fn(&mut Self) -> bool) {
        for _ in 0..TURNS_MAX {
            if is_so(self) {
                return;
            }
            self.step();
            std::thread::yield_now();
        }
        let heard: Vec<&[Heard]> = self.ends.iter().map(|end| end.ear.heard.as_slice()).collect();
        panic!("it never comes about; heard was {heard:?}");
    }

    /// Send until there is room for it.
    pub(in crate::device) fn send(&mut self, message: &Outgoing<'_>) -> Sending {
        let link = self.sender_link();
        for _ in 0..TURNS_MAX {
            match self.sender().send(link, message).expect("it can be sent") {
                Sending::Full => self.step(),
                sending => return sending,
            }
        }
        panic!("there is never room");
    }

    pub(in crate::device) fn send_eager(&mut self, tag: u64, payload: &[u8]) -> Sending {
        let header = eager(tag);
        self.send(&outgoing(&header, Payload::Copied(payload)))
    }

    pub(in crate::device) fn send_untagged(&mut self, operation: u32, payload: &[u8]) -> Sending {
        let header = untagged(operation);
        self.send(&outgoing(&header, Payload::Copied(payload)))
    }

    /// Send a request to read this, and give it.
    pub(in crate::device) fn send_rendezvous(&mut self, tag: u64, memory: Buffer) -> Rendezvous {
        let link = self.sender_link();
        let remote = self.sender().expose(link, memory).expect("there is a link");
        let memory =
            crate::wire::RemoteMemory { address: remote.address, key: remote.key, length: remote.length };
        let request = Rendezvous { context: context(5), tag: Tag(tag), memory };
        let mut bytes = [0; Rendezvous::LENGTH_MAX];
        let length = request.encode(&mut bytes).expect("it is good");
        self.send(&outgoing(&bytes[..length], Payload::Copied(&[])));
        request
    }

    pub(in crate::device) fn send_control(&mut self, control: &Control<'_>) {
        let mut bytes = [0; 256];
        let length = control.encode(&mut bytes).expect("it is good");
        self.send(&outgoing(&bytes[..length], Payload::Copied(&[])));
    }

    /// Answer a message that is held.
    pub(in crate::device) fn answer(&mut self, message: MessageToken, answer: Answer) {
        let command = Command::Answer { message, answer };
        assert_eq!(self.receiver().submit(&[command]), Ok(1));
    }

    /// Accept a message that is held, and say what the transfer is called.
    pub(in crate::device) fn accept(&mut self, message: MessageToken, memory: &Memory) -> TransferId {
        let transfer = self.ear().transfer();
        let answer = Answer::Accept { buffer: memory.buffer(), transfer: Some(transfer) };
        self.answer(message, answer);
        transfer
    }

    pub(in crate::device) fn until_arrived(&mut self, count: usize) -> Vec<Arrival> {
        self.until(|rig| rig.ear().arrivals().len() >= count);
        self.ear().arrivals()
    }

    pub(in crate::device) fn until_data(&mut self, count: usize) -> Vec<Data> {
        self.until(|rig| rig.ear().data().len() >= count);
        self.ear().data()
    }

    /// Until a transfer is over.
    pub(in crate::device) fn until_transferred(&mut self, transfer: TransferId) -> Data {
        let target = DataTarget::Transfer(transfer);
        let find = |rig: &mut Self| rig.ear().data().into_iter().find(|data| data.target == target);
        self.until(|rig| find(rig).is_some());
        find(self).expect("it was heard")
    }
}

/// A message without anything special.
pub(in crate::device) fn outgoing<'a>(header: &'a [u8], payload: Payload<'a>) -> Outgoing<'a> {
    Outgoing { header, payload, immediate: None, more: false, context: None }
}

pub(in crate::device) fn context(operation: u32) -> AppContext {
    AppContext { operation: OperationId::new(operation).expect("24 bits"), flags: SendFlags::NONE }
}

/// A frame around a message on a stream, byte for byte.
#[cfg(target_os = "linux")]
pub(in crate::device) fn framed(message: &[u8]) -> Vec<u8> {
    framed_with(None, message)
}

/// The same, with the immediate that it has.
#[cfg(target_os = "linux")]
pub(in crate::device) fn framed_with(immediate: Option<u32>, message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).expect("it is short").to_be_bytes();
    let kind = if immediate.is_some() { 2 } else { 1 };
    let immediate = immediate.map(u32::to_be_bytes);
    let immediate = immediate.as_ref().map_or(&[][..], |bytes| bytes);
    [&length, &[kind, 0, 0, 0], immediate, message].concat()
}

pub(in crate::device) fn eager(tag: u64) -> [u8; 16] {
    Eager { context: context(1), tag: Tag(tag), payload: crate::wire::Payload::new(&[]) }.header()
}

pub(in crate::device) fn untagged(operation: u32) -> [u8; 16] {
    let payload = crate::wire::Payload::new(&[]);
    Untagged { context: context(operation), cq_data: None, payload }.header().expect("it is good")
}

/// SplitMix64.
pub(in crate::device) struct Random(pub(in crate::device) u64);

impl Random {
    pub(in crate::device) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % limit as u64).expect("below the limit")
    }
}

/// Bytes that show where they belong.
pub(in crate::device) fn pattern(seed: usize, length: usize) -> Vec<u8> {
    (0..length).map(|at| u8::try_from((at / 251 + at * 7 + seed * 13) % 256).expect("below 256")).collect()
}

/// As whom the receiver knows the sender.
pub(in crate::device) const RECEIVED_FROM: PeerId = PeerId(3);
/// Of the transports of these tests.
pub(in crate::device) const EAGER_LIMIT: u64 = 64 * 1024;
const TOLD_MAX: usize = 50;
const TURNS_MAX: usize = 2_000_000;
