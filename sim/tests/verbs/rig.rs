//! Verbs devices over the real libibverbs and libmlx5 on a simulated HCA, moved on step by step.

#![allow(dead_code, reason = "not every test binary uses all of it")]

use tagmatch::device::Device;
use tagmatch::device::verbs::device::{Message, Registered, Sending};
use tagmatch::device::verbs::memory::RemoteAccess;
use tagmatch::device::verbs::{HostMemory, VerbsConfig, VerbsDevice};
use tagmatch::ids::{DeviceId, Ignore, PeerId, Tag, TagHandle};
use tagmatch::seam::{Answer, Buffer, Command, Data, DeviceError, Event, EventSink};
use tagmatch::wire::{AppContext, OperationId, RemoteMemory, Rendezvous};
use tagmatch_sim::hca::HcaConfig;
use tagmatch_sim::hca_abi::{Drive, HcaControl};

/// The simulated device, and two verbs devices on it that know each other.
pub(crate) struct Pair {
    // First, so that the devices go before the HCA.
    pub(crate) left: Side,
    pub(crate) right: Side,
    pub(crate) hca: HcaControl,
}

/// One device and what it told.
pub(crate) struct Side {
    pub(crate) device: VerbsDevice,
    pub(crate) log: Log,
    pub(crate) memory: Registered,
    next: u32,
}

/// What was told, and how arrivals are answered.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) events: Vec<Event>,
    pub(crate) answer: Answer,
}

impl EventSink for Log {
    fn handle_event(&mut self, _device: DeviceId, event: &Event) -> Answer {
        self.events.push(event.clone());
        if matches!(event, Event::Arrived(_)) { self.answer } else { Answer::Hold }
    }
}

/// The peer of either side, by the number that it has there.
pub(crate) const PEER: PeerId = PeerId(7);

pub(crate) fn config() -> VerbsConfig {
    VerbsConfig {
        tags: 31,
        unexpected_buffers: 40,
        spare_buffers: 4,
        eager_limit: 8192,
        peers: 4,
        sends_per_peer: 16,
        send_buffers: 16,
        events_every: 1,
        drain_time: std::time::Duration::ZERO,
        ..VerbsConfig::default()
    }
}

pub(crate) fn hca(config: HcaConfig) -> HcaControl {
    HcaControl::new(config, Drive::Steps).unwrap()
}

impl Pair {
    pub(crate) fn new() -> Self {
        Self::with(HcaConfig::default(), config(), config())
    }

    pub(crate) fn with(hca_config: HcaConfig, left: VerbsConfig, right: VerbsConfig) -> Self {
        let hca = hca(hca_config);
        let mut pair = Self { left: Side::new(&hca, left), right: Side::new(&hca, right), hca };
        pair.connect();
        pair
    }

    pub(crate) fn connect(&mut self) {
        let (left, right) =
            (self.left.device.prepare(PEER).unwrap(), self.right.device.prepare(PEER).unwrap());
        self.left.device.connect(PEER, &right).unwrap();
        self.right.device.connect(PEER, &left).unwrap();
    }

    /// Everything happens: the HCA does all but timers, the devices tell all.
    pub(crate) fn settle(&mut self) {
        for _ in 0..40 {
            self.hca.run(100_000);
            self.left.poll();
            self.right.poll();
        }
    }
}

impl Side {
    pub(crate) fn new(hca: &HcaControl, config: VerbsConfig) -> Self {
        let mut side = Self::new_without_receives(hca, config);
        let buffers = side.device.capabilities().unexpected_buffers;
        if buffers > 0 {
            assert_eq!(side.device.submit(&[Command::Receive { buffers }]), Ok(1));
        }
        side
    }

    /// An engine will say when receives are posted.
    pub(crate) fn new_without_receives(hca: &HcaControl, config: VerbsConfig) -> Self {
        let config = VerbsConfig { device: Some(hca.name().to_owned()), ..config };
        let mut device = VerbsDevice::open(config, HostMemory::registered()).unwrap();
        let memory = device.allocate(1 << 20, RemoteAccess::READ).unwrap();
        let log = Log { events: Vec::new(), answer: Answer::Hold };
        Self { device, log, memory, next: 0 }
    }

    pub(crate) fn poll(&mut self) {
        // After a failure there is nothing to say.
        let _told: Result<usize, DeviceError> = self.device.poll(1000, &mut self.log);
    }

    /// A stretch of the registered memory.
    pub(crate) fn buffer(&self, offset: u64, length: u64) -> Buffer {
        Buffer { address: self.memory.buffer.address + offset, length, ..self.memory.buffer }
    }

    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) {
        assert!(self.device.region(self.memory.id).unwrap().write(offset, bytes));
    }

    pub(crate) fn read(&self, offset: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        assert!(self.device.region(self.memory.id).unwrap().read(offset, &mut bytes));
        bytes
    }

    pub(crate) fn add(&mut self, tag: u64, buffer: Buffer, unexpected_count: u16) -> TagHandle {
        self.next += 1;
        let handle = TagHandle { index: self.next, generation: 1 };
        let (tag, ignore) = (Tag(tag), Ignore::NONE);
        let add = Command::Add { handle, tag, ignore, buffer, unexpected_count, signalled: true };
        assert_eq!(self.device.submit(&[add]), Ok(1));
        handle
    }

    pub(crate) fn send(&mut self, message: &Message<'_>, immediate: Option<u32>) {
        assert_eq!(self.device.send(PEER, message, immediate, 99), Ok(Sending::Posted));
    }

    pub(crate) fn eager(&mut self, tag: u64, payload: &[u8]) {
        self.send(&Message::Eager { context: word(5), tag: Tag(tag), payload }, None);
    }

    /// A rendezvous request for a stretch of the registered memory.
    pub(crate) fn request(&self, tag: u64, offset: u64, length: u64) -> Rendezvous {
        let address = self.memory.buffer.address + offset;
        let memory = RemoteMemory { address, key: self.memory.remote_key, length };
        Rendezvous { context: word(6), tag: Tag(tag), memory }
    }

    pub(crate) fn rendezvous(&mut self, tag: u64, offset: u64, length: u64) {
        let request = self.request(tag, offset, length);
        self.send(&Message::Rendezvous(request), None);
    }

    /// What was told since the last call, without list operations.
    pub(crate) fn told(&mut self) -> Vec<Event> {
        let events = std::mem::take(&mut self.log.events);
        events.into_iter().filter(|event| !matches!(event, Event::Operation(_))).collect()
    }

    /// The bytes of messages without a tag that have come.
    pub(crate) fn untagged(&mut self) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        self.device.take_untagged(|_, _, bytes| all.push(bytes.to_vec()));
        all
    }
}

/// A sender's word.
pub(crate) fn word(operation: u32) -> AppContext {
    AppContext { operation: OperationId::new(operation).unwrap(), ..AppContext::default() }
}

/// The end of data, as far as tests look at it.
pub(crate) fn data(event: &Event) -> Data {
    let Event::Data(data) = event else { panic!("{event:?} is not the end of data") };
    *data
}
