//! An engine over soft devices that share one memory. Receives and messages carry real bytes; each buffer has
//! guard bytes around it, and what a message does not fill must stay as it was.
//!
//! Not here: scenarios.

use std::cell::RefCell;
use std::rc::Rc;

use tagmatch::device::Device;
use tagmatch::device::soft::{Arena, Memory, Observation, SoftConfig, SoftDevice, SoftMessage, Step};
use tagmatch::engine::{CancelOutcome, ClaimId, Config, End, Engine, Kind, Posting, Receive, Received};
use tagmatch::ids::{DeviceId, Ignore, MessageToken, PeerId, ReceiveId, Source, Tag};
use tagmatch::matching::Pattern;
use tagmatch::seam::{Buffer, DeviceError, Placer, Remote};

use crate::orders::Orders;

/// The device that matches, by convention the first one.
pub(crate) const NIC: usize = 0;
/// The device of 0 tags, by convention the second one.
pub(crate) const PLAIN: usize = 1;
/// Payloads up to here go eagerly, and shorter receives go to a NIC through a bounce buffer.
pub(crate) const EAGER_LIMIT: u64 = 128;

pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) devices: Vec<SoftDevice<Shared>>,
    memory: Shared,
    used: u64,
    stretches: Vec<Buffer>,
    receives: Vec<Posted>,
    messages: Vec<Sent>,
    claimed: usize,
}

struct Posted {
    name: &'static str,
    buffer: Buffer,
    /// Nobody else writes there.
    alone: bool,
    id: Option<ReceiveId>,
    ends: Vec<End>,
}

struct Sent {
    payload: Vec<u8>,
    shape: Shape,
    finished: usize,
}

/// Writes at once what a device holds in full.
struct Hand<'a>(&'a mut [SoftDevice<Shared>]);

impl Placer for Hand<'_> {
    fn place(&mut self, device: DeviceId, message: MessageToken, buffer: &Buffer) -> bool {
        self.0[usize::from(device.0)].place_held(message, buffer)
    }
}

/// How a message travels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    /// In one packet.
    Eager,
    /// In several.
    Packets(u32),
    /// The header alone; the payload waits in the sender's memory.
    Rendezvous,
}

impl Shape {
    pub(crate) const ALL: [Self; 3] = [Self::Eager, Self::Packets(3), Self::Rendezvous];
}

/// A NIC with a list of so many tags.
pub(crate) fn nic(tags: u32) -> SoftConfig {
    SoftConfig { eager_limit: EAGER_LIMIT, ..SoftConfig::matching(tags) }
}

/// A device without a list.
pub(crate) fn plain() -> SoftConfig {
    SoftConfig { eager_limit: EAGER_LIMIT, ..SoftConfig::generic() }
}

/// Fresh worlds without a NIC and with one, each with the device that messages shall come through.
pub(crate) fn each_way() -> Vec<(World, usize)> {
    let without = || World::new(&[plain(), plain()]);
    let with = || World::new(&[nic(4), plain()]);
    vec![(without(), PLAIN), (with(), NIC), (with(), PLAIN)]
}

/// The same with devices that go step by step.
pub(crate) fn each_way_stepped() -> Vec<(World, usize)> {
    let mut ways = each_way();
    for (world, _) in &mut ways {
        for device in &mut world.devices {
            device.set_step_mode(true);
        }
    }
    ways
}

impl World {
    /// Devices that run by themselves.
    pub(crate) fn new(devices: &[SoftConfig]) -> Self {
        Self::with(Config::default(), devices)
    }

    /// Devices that go step by step, for [`Self::explore`].
    pub(crate) fn stepped(devices: &[SoftConfig]) -> Self {
        let devices: Vec<_> =
            devices.iter().map(|config| SoftConfig { step_mode: true, ..*config }).collect();
        Self::new(&devices)
    }

    pub(crate) fn with(config: Config, devices: &[SoftConfig]) -> Self {
        let mut world = Self {
            engine: Engine::new(config),
            devices: Vec::new(),
            memory: Shared(Rc::new(RefCell::new(Arena::new(ARENA)))),
            used: 0,
            stretches: Vec::new(),
            receives: Vec::new(),
            messages: Vec::new(),
            claimed: 0,
        };
        for &config in devices {
            world.join(config).unwrap();
        }
        world.settle();
        world
    }

    /// One more device.
    pub(crate) fn join(&mut self, config: SoftConfig) -> Result<(), DeviceError> {
        let id = DeviceId(u8::try_from(self.devices.len()).unwrap());
        let mut device = SoftDevice::new(SoftConfig { id, ..config }, self.memory.clone())?;
        device.observe();
        assert_eq!(self.engine.add_device(device.capabilities()), Ok(id));
        for _ in 0..config.tags {
            let bounce = self.allocate(config.eager_limit);
            assert!(self.engine.add_bounce_buffer(id, bounce));
        }
        self.devices.push(device);
        Ok(())
    }

    /// A stretch of fresh memory between guard bytes.
    pub(crate) fn allocate(&mut self, length: u64) -> Buffer {
        let start = self.used + GUARD;
        self.used = start + length;
        let buffer = self.memory.0.borrow().buffer(start, length);
        self.write(buffer, FILL);
        self.write(Buffer::new(buffer.address - GUARD, GUARD), CANARY);
        self.write(Buffer::new(buffer.address + length, GUARD), CANARY);
        self.stretches.push(buffer);
        buffer
    }

    fn write(&mut self, to: Buffer, byte: u8) {
        let bytes = vec![byte; usize::try_from(to.length).unwrap()];
        assert!(self.memory.write(to, 0, &bytes), "the arena is too small");
    }

    /// What stands in memory.
    pub(crate) fn bytes(&self, buffer: Buffer) -> Vec<u8> {
        self.memory.0.borrow().bytes(buffer).unwrap().to_vec()
    }

    /// Post a receive into a fresh buffer of so many bytes. Whether it took an unexpected message at once.
    pub(crate) fn post(&mut self, name: &'static str, pattern: Pattern, length: u64) -> bool {
        let buffer = self.allocate(length);
        let matched = self.post_into(name, pattern, buffer);
        self.receives.last_mut().unwrap().alone = true;
        matched
    }

    /// Post a receive into this buffer.
    pub(crate) fn post_into(&mut self, name: &'static str, pattern: Pattern, buffer: Buffer) -> bool {
        let context = self.receives.len() as u64;
        let receive = Receive { pattern, buffer, context, kind: Kind::Once };
        let (id, ends) = match self.engine.post_placing(&receive, &mut Hand(&mut self.devices)) {
            Posting::Queued(id) => (Some(id), Vec::new()),
            Posting::Matched(_) => (None, Vec::new()),
            Posting::Placed(message) => (None, vec![End::Received(message)]),
        };
        self.receives.push(Posted { name, buffer, alone: false, id, ends });
        self.settle();
        id.is_none()
    }

    pub(crate) fn cancel(&mut self, name: &'static str) -> CancelOutcome {
        let id = self.posted(name).id;
        let outcome = id.map_or(CancelOutcome::TooLate, |id| self.engine.cancel(id));
        self.settle();
        outcome
    }

    /// Claim an unexpected message.
    pub(crate) fn claim(&mut self, pattern: Pattern) -> Option<ClaimId> {
        let claim = self.engine.claim(&pattern).map(|(claim, _)| claim);
        self.claimed += usize::from(claim.is_some());
        claim
    }

    /// Receive a claimed message into a fresh buffer. Whether the claim stood.
    pub(crate) fn receive_claimed(&mut self, name: &'static str, claim: ClaimId, length: u64) -> bool {
        let buffer = self.allocate(length);
        let context = self.receives.len() as u64;
        let stood = self.engine.receive_claimed(claim, buffer, context);
        if stood {
            self.receives.push(Posted { name, buffer, alone: true, id: None, ends: Vec::new() });
            self.claimed -= 1;
        }
        self.settle();
        stood
    }

    /// Drop a claimed message. Whether the claim stood.
    pub(crate) fn discard_claimed(&mut self, claim: ClaimId) -> bool {
        let stood = self.engine.discard_claimed(claim);
        self.claimed -= usize::from(stood);
        self.settle();
        stood
    }

    /// Drop an unexpected message. Whether there was one.
    pub(crate) fn discard(&mut self, pattern: Pattern) -> bool {
        let found = self.engine.discard(&pattern).is_some();
        self.settle();
        found
    }

    /// Whether an unexpected message fits.
    pub(crate) fn peek(&mut self, pattern: Pattern) -> bool {
        self.engine.peek(&pattern).is_some()
    }

    /// Send an eager message of one packet.
    pub(crate) fn send(&mut self, device: usize, peer: u32, tag: u64, payload: &[u8]) {
        self.send_as(Shape::Eager, device, peer, tag, payload);
    }

    /// Send a message, and say its number.
    pub(crate) fn send_as(
        &mut self,
        shape: Shape,
        device: usize,
        peer: u32,
        tag: u64,
        payload: &[u8],
    ) -> usize {
        let message = self.prepare(shape, tag, payload);
        self.send_prepared(device, peer, message)
    }

    /// Send a message as it is, and say its number.
    pub(crate) fn send_prepared(&mut self, device: usize, peer: u32, message: SoftMessage) -> usize {
        let number = message.app_ctx as usize;
        self.devices[device].send(PeerId(peer), message).unwrap();
        number
    }

    /// A message that is yet to be sent.
    pub(crate) fn prepare(&mut self, shape: Shape, tag: u64, payload: &[u8]) -> SoftMessage {
        let number = self.messages.len();
        let mut message = match shape {
            Shape::Eager => SoftMessage::with_payload(Tag(tag), payload),
            Shape::Packets(packets) => {
                SoftMessage { packets, ..SoftMessage::with_payload(Tag(tag), payload) }
            }
            Shape::Rendezvous => {
                let source = self.allocate(payload.len() as u64);
                assert!(payload.is_empty() || self.memory.write(source, 0, payload));
                let (address, length) = (source.address, source.length);
                SoftMessage::rendezvous(Tag(tag), Remote { address, key: 7, length })
            }
        };
        message.app_ctx = u32::try_from(number).unwrap();
        self.messages.push(Sent { payload: payload.to_vec(), shape, finished: 0 });
        message
    }

    /// Take this step of a device; it must be possible.
    pub(crate) fn step(&mut self, device: usize, step: Step) {
        assert!(self.devices[device].step(step), "{step:?}: {:?}", self.devices[device].steps());
    }

    /// Let a device tell all that it has to tell.
    pub(crate) fn poll(&mut self, device: usize) {
        while self.devices[device].poll(1, &mut self.engine).unwrap() > 0 {
            self.settle();
        }
    }

    /// Commands down, completions up; nothing that a device did may be a fault.
    pub(crate) fn settle(&mut self) {
        for (at, device) in self.devices.iter_mut().enumerate() {
            let id = DeviceId(u8::try_from(at).unwrap());
            let commands = self.engine.poll_commands(id);
            if commands.is_empty() {
                continue;
            }
            let count = commands.len();
            assert_eq!(device.submit(commands), Ok(count), "resources are counted, not found out");
            self.engine.handle_submitted(id, count);
        }
        while let Some(completion) = self.engine.poll_completion() {
            self.receives[usize::try_from(completion.context).unwrap()].ends.push(completion.end);
        }
        for device in &mut self.devices {
            for observation in device.take_observations() {
                if let Observation::Fin { app_ctx, .. } = observation {
                    self.messages[app_ctx as usize].finished += 1;
                }
            }
        }
        assert_eq!(self.engine.poll_fault(), None);
    }

    /// Until nothing more can happen.
    pub(crate) fn run(&mut self) {
        loop {
            let mut any = false;
            for at in 0..self.devices.len() {
                self.devices[at].run();
                while self.devices[at].poll(1, &mut self.engine).unwrap() > 0 {
                    any = true;
                    self.settle();
                }
            }
            self.settle();
            if !any {
                return;
            }
        }
    }

    /// The user's calls, in their order, among everything that devices can do, in the order that is chosen; until
    /// nothing more can happen.
    pub(crate) fn explore(&mut self, orders: &mut Orders, calls: &[fn(&mut Self)]) {
        enum Action {
            Call,
            Step(usize, Step),
            Poll(usize),
        }
        let mut calls = calls.iter();
        loop {
            let mut actions = Vec::new();
            if calls.len() > 0 {
                actions.push(Action::Call);
            }
            for (at, device) in self.devices.iter().enumerate() {
                if !device.is_quiet() {
                    actions.push(Action::Poll(at));
                }
                actions.extend(device.steps().into_iter().map(|step| Action::Step(at, step)));
            }
            if actions.is_empty() {
                return;
            }
            let chosen = if actions.len() == 1 { 0 } else { orders.choose(actions.len()) };
            match actions[chosen] {
                Action::Call => calls.next().unwrap()(self),
                Action::Step(at, step) => assert!(self.devices[at].step(step)),
                Action::Poll(at) => {
                    assert_eq!(self.devices[at].poll(1, &mut self.engine), Ok(1));
                }
            }
            self.settle();
        }
    }

    fn posted(&self, name: &'static str) -> &Posted {
        self.receives.iter().rev().find(|posted| posted.name == name).expect("it was posted")
    }

    pub(crate) fn buffer(&self, name: &'static str) -> Buffer {
        self.posted(name).buffer
    }

    /// Whether a receive has not ended.
    pub(crate) fn is_open(&self, name: &'static str) -> bool {
        self.posted(name).ends.is_empty()
    }

    /// How a receive ended; exactly once.
    pub(crate) fn end(&self, name: &'static str) -> End {
        let ends = &self.posted(name).ends;
        assert_eq!(ends.len(), 1, "{name}: {ends:?}");
        ends[0]
    }

    pub(crate) fn is_cancelled(&self, name: &'static str) -> bool {
        self.end(name) == End::Cancelled
    }

    /// The message that a receive got. What is in its buffer is the message, what is behind it untouched.
    pub(crate) fn message(&self, name: &'static str) -> Received {
        let End::Received(message) = self.end(name) else { panic!("{name}: {:?}", self.end(name)) };
        let posted = self.posted(name);
        let sent = &self.messages[message.app_ctx as usize];
        let placed = usize::try_from(message.placed).unwrap();
        assert_eq!(message.length, sent.payload.len() as u64, "{name}");
        assert_eq!(message.placed, message.length.min(posted.buffer.length), "{name}");
        assert_eq!(message.address, posted.buffer.address, "{name}");
        if posted.alone {
            let bytes = self.bytes(posted.buffer);
            assert_eq!(bytes[..placed], sent.payload[..placed], "{name}");
            assert!(
                bytes[placed..].iter().all(|&byte| byte == FILL),
                "{name}: written behind its message: {:x?}",
                &bytes[placed..]
            );
        }
        message
    }

    /// The bytes that a receive got.
    pub(crate) fn received(&self, name: &'static str) -> Vec<u8> {
        let message = self.message(name);
        self.bytes(Buffer::new(message.address, message.placed))
    }

    /// The same as text.
    pub(crate) fn text(&self, name: &'static str) -> String {
        String::from_utf8(self.received(name)).unwrap()
    }

    /// How often the sender of this message was told that it may forget the payload.
    pub(crate) fn finished(&self, number: usize) -> usize {
        self.messages[number].finished
    }

    /// Run until nothing more can happen, and check that all ended well: each receive at most once, those that did
    /// not are posted still, devices hold nothing but what is posted or unexpected, no guard byte was touched, and
    /// each sender of a payload that was received was told once.
    pub(crate) fn finish(&mut self) {
        self.run();
        let open = self.receives.iter().filter(|posted| posted.ends.is_empty()).count();
        let (posted, unexpected) = self.engine.depths();
        assert_eq!((self.engine.waiting(), self.engine.transfers()), (0, 0), "something waits for nothing");
        assert_eq!(open, posted, "a receive ended without a word, or is posted though it ended");
        let held: usize = self.devices.iter().map(SoftDevice::messages_held).sum();
        assert_eq!(held, unexpected + self.claimed, "a device keeps a message for nobody");
        for at in 0..self.devices.len() {
            self.check_device(at);
        }
        for posted in &self.receives {
            assert!(posted.ends.len() <= 1, "{}: {:?}", posted.name, posted.ends);
            let Some(End::Received(message)) = posted.ends.first() else { continue };
            let sent = &self.messages[message.app_ctx as usize];
            let due = usize::from(sent.shape == Shape::Rendezvous);
            assert_eq!(sent.finished, due, "what the sender of {}'s message was told", posted.name);
        }
        for stretch in &self.stretches {
            for guard in [stretch.address - GUARD, stretch.address + stretch.length] {
                let bytes = self.bytes(Buffer::new(guard, GUARD));
                assert!(bytes.iter().all(|&byte| byte == CANARY), "{stretch:?}: {bytes:x?}");
            }
        }
    }

    fn check_device(&self, at: usize) {
        let (id, device) = (DeviceId(u8::try_from(at).unwrap()), &self.devices[at]);
        let listed = self.engine.listed(id).len();
        assert_eq!(self.engine.entries(id).0 as usize, listed, "entries that are in no list");
        assert_eq!(device.completions_used(), 0);
        let (Some(driver), Some(list)) = (device.driver(), device.list()) else { return };
        assert_eq!(list.entries().len(), listed, "mirror and list differ");
        assert_eq!(driver.tags_used(), listed, "tags that are not given back");
        let used = u64::from(driver.slots_used());
        assert_eq!(used, self.engine.command_slots_used(id), "command slots that are not counted");
        assert_eq!(driver.slots_pending().count(), 1, "command slots that are not given back");
    }
}

/// One memory under all devices.
#[derive(Clone)]
pub(crate) struct Shared(Rc<RefCell<Arena>>);

impl Memory for Shared {
    fn write(&mut self, to: Buffer, offset: u64, bytes: &[u8]) -> bool {
        self.0.borrow_mut().write(to, offset, bytes)
    }

    fn copy(&mut self, from: Buffer, to: Buffer, length: u64) -> bool {
        self.0.borrow_mut().copy(from, to, length)
    }
}

/// From anybody, exactly this tag.
pub(crate) fn exact(tag: u64) -> Pattern {
    Pattern::exact(Tag(tag))
}

/// From anybody, some bits ignored.
pub(crate) fn masked(tag: u64, ignore: u64) -> Pattern {
    Pattern { tag: Tag(tag), ignore: Ignore(ignore), source: Source::Any }
}

/// The same, from this peer.
pub(crate) fn from(peer: u32, pattern: Pattern) -> Pattern {
    Pattern { source: Source::Peer(PeerId(peer)), ..pattern }
}

/// Bytes 0, 1, 2 and so on.
pub(crate) fn count_up(length: u64) -> Vec<u8> {
    (0..length).map(|at| u8::try_from(at % 251).unwrap()).collect()
}

const GUARD: u64 = 8;
const CANARY: u8 = 0xc5;
const FILL: u8 = 0xee;
const ARENA: usize = 1 << 14;
