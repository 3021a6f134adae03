//! The endpoint under attack, what its own user does with it, and an honest peer of it.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tagmatch::device::host_memory::HostMemory;
use tagmatch::device::loopback::LoopbackTransport;
use tagmatch::device::soft::SoftConfig;
use tagmatch::device::soft::over::OverTransport;
use tagmatch::device::tcp::{TcpConfig, TcpTransport};
use tagmatch::device::transport::{Payload, Transport};
use tagmatch::endpoint::{
    Access, Address, Completed, Config, Endpoint, Level, Local, Peek, PeekAction, Post, Region, RemoteAccess,
    Send, SendRefused, Space,
};
use tagmatch::engine::Kind;
use tagmatch::ids::{DeviceId, Ignore, Tag};
use tagmatch::seam::{Buffer, Segment};
use tagmatch::wire::{Credits, RemoteStretch};

use super::counting::live_bytes;
use super::frames::{EAGER_LIMIT, REGION, Random};
use super::peer::Seen;

/// What the endpoint is made with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum With {
    Software,
    Device,
    Key,
}

/// Memory with bytes behind it that nobody may touch.
#[derive(Clone, Copy, Debug)]
struct Place {
    buffer: Buffer,
}

const ROOM: usize = 24_000;
const _: () = assert!(ROOM as u64 == REGION.length, "the region is all of a place");
const GUARD: usize = 64;

impl Place {
    /// Of memory that stays.
    fn new() -> Self {
        let leaked: &'static mut [u8] = vec![0xEE; ROOM + GUARD].leak();
        Self { buffer: Buffer::new(leaked.as_mut_ptr().expose_provenance() as u64, ROOM as u64) }
    }

    fn bytes(&self, from: usize, length: usize) -> Vec<u8> {
        let start = usize::try_from(self.buffer.address).unwrap();
        let from = std::ptr::with_exposed_provenance::<u8>(start + from);
        // SAFETY: it lies in the memory of `new`, and the transports are done with it.
        unsafe { std::slice::from_raw_parts(from, length) }.to_vec()
    }

    fn check(&self) {
        assert!(self.bytes(ROOM, GUARD).iter().all(|byte| *byte == 0xEE), "written past a buffer");
    }
}

/// An operation of the user's that has not ended.
#[derive(Clone, Copy, Debug)]
enum Pending {
    Receive(Place),
    /// Of the honest peer's message with this number.
    Honest(Place, u64),
    Peek(PeekAction),
    Send,
    /// A read of a peer's memory into a place, or a write out of none.
    Access(Option<Place>),
}

/// See the file.
pub(crate) struct Target {
    pub(crate) with: With,
    endpoint: Endpoint,
    honest: Endpoint,
    free: Vec<Place>,
    pending: HashMap<u64, Pending>,
    next: u64,
    now: u64,
    payload: Place,
    /// Where peers may write and read.
    region: Place,
    /// Where reads of their memory go.
    reads: Vec<Place>,
    claimed: Vec<u64>,
    /// Messages that the honest peer has sent, and that were checked.
    sent: u64,
    checked: u64,
    honest_payloads: Vec<Place>,
    base: isize,
    seen: Seen,
}

const HONEST: Address = Address(1000);
const HONEST_TAG: u64 = 0x77;
const CREDITS: Credits = Credits { headers: 200, eager_messages: 60, eager_bytes: 1 << 20 };
/// What a peer that reads nothing may leave waiting for it: answers to its reads, and messages.
const BYTES_MAX: isize = 3 * (66 << 20);
/// What may be left when no hostile peer is connected: what three of them had sent and nobody has taken, and tables that
/// have grown.
const BYTES_MAX_AT_REST: isize = 3 * (1 << 20) + (1 << 20);

fn open(with: With, is_target: bool) -> Endpoint {
    // SAFETY: every buffer here is one of `Place`, which stays, or is copied.
    let host = unsafe { HostMemory::trusted() };
    let listen = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
    let config = TcpConfig { id: DeviceId(1), eager_limit: EAGER_LIMIT as u64, ..TcpConfig::new(listen) };
    let tcp = TcpTransport::open(config, host).unwrap();
    let own = LoopbackTransport::new(DeviceId(0), tcp.name(), EAGER_LIMIT as u64, host).unwrap();
    let other: Box<dyn Transport + std::marker::Send> = if is_target && with == With::Device {
        let config = SoftConfig { id: DeviceId(1), ..SoftConfig::matching(64) };
        Box::new(OverTransport::new(tcp, config).unwrap())
    } else {
        Box::new(tcp)
    };
    let config = Config {
        eager_limit: EAGER_LIMIT as u64,
        segmented_limit: 16_000,
        credits: CREDITS,
        // Nobody waits in these tests: what does not come about at once never does.
        connect_timeout: Duration::from_millis(20),
        back_off: Duration::from_millis(1),
        job_key: (with == With::Key).then(|| vec![3; 32]),
        seed: Some([u8::from(is_target); 32]),
        ..Config::default()
    };
    Endpoint::new(config, vec![Box::new(own), other]).unwrap()
}

fn pattern(number: u64, length: usize) -> Vec<u8> {
    (0..length as u64).map(|at| u8::try_from((number * 37 + at * 11) % 253).unwrap()).collect()
}

/// By every protocol.
fn honest_length(number: u64) -> usize {
    [8, 1000, 0, EAGER_LIMIT, 12_000, 20_000][usize::try_from(number % 6).unwrap()]
}

impl Target {
    pub(crate) fn new(with: With) -> Self {
        let (mut endpoint, mut honest) = (open(with, true), open(with, false));
        endpoint.set_address(HONEST, honest.name()).unwrap();
        honest.set_address(Address(0), endpoint.name()).unwrap();
        let mut target = Self {
            with,
            endpoint,
            honest,
            free: (0..80).map(|_| Place::new()).collect(),
            pending: HashMap::new(),
            next: 1,
            now: 0,
            payload: Place::new(),
            region: Place::new(),
            reads: (0..16).map(|_| Place::new()).collect(),
            claimed: Vec::new(),
            sent: 0,
            checked: 0,
            honest_payloads: (0..12).map(|_| Place::new()).collect(),
            base: 0,
            seen: Seen::default(),
        };
        let RemoteStretch { key, address, .. } = REGION;
        let access = Access { reads: true, writes: true };
        let region = Region { key, address, buffer: target.region.buffer, access };
        target.endpoint.register(&region).unwrap();
        target.check_honest(&mut Random::new(0), 0);
        target.base = live_bytes();
        target
    }

    pub(crate) fn name(&self) -> &[u8] {
        self.endpoint.name()
    }

    pub(crate) fn port(&self) -> u16 {
        u16::from_be_bytes([self.name()[2], self.name()[3]])
    }

    pub(crate) fn know(&mut self, number: u64, name: &[u8]) {
        self.endpoint.set_address(Address(number), name).unwrap();
    }

    fn context(&mut self, pending: Pending) -> u64 {
        self.next += 1;
        self.pending.insert(self.next, pending);
        self.next
    }

    /// Both endpoints move on until nothing happens.
    pub(crate) fn settle(&mut self) {
        for _ in 0..40 {
            self.now += 1;
            let now = Duration::from_millis(self.now / 16);
            let told = self.endpoint.progress(now).unwrap();
            self.honest.progress(now).unwrap();
            self.hear();
            if told == 0 {
                break;
            }
        }
        let live = live_bytes() - self.base;
        self.seen.bytes_max = self.seen.bytes_max.max(live);
        assert!(live < BYTES_MAX, "{live} bytes are in use");
    }

    /// What the endpoint says: every operation ends once.
    fn hear(&mut self) {
        while let Some(said) = self.endpoint.poll_completion() {
            if matches!(said.what, Completed::WrittenByPeer { .. }) {
                self.seen.written += 1;
                continue;
            }
            let pending = self.pending.remove(&said.context);
            match pending.unwrap_or_else(|| panic!("a second end: {said:?}")) {
                Pending::Receive(place) => {
                    place.check();
                    if let Completed::Received { placed, .. } = said.what {
                        assert!(placed <= ROOM as u64);
                    }
                    self.free.push(place);
                }
                Pending::Honest(place, number) => {
                    place.check();
                    let Completed::Received { message, placed, .. } = said.what else {
                        panic!("message {number} of the honest peer: {said:?}");
                    };
                    let length = honest_length(number);
                    assert_eq!((message.length, placed), (length as u64, length as u64), "{said:?}");
                    assert_eq!(message.source, Some(HONEST));
                    assert_eq!(place.bytes(0, length), pattern(number, length), "message {number}");
                    self.checked += 1;
                    self.free.push(place);
                }
                Pending::Peek(action) => {
                    if action == PeekAction::Claim && matches!(said.what, Completed::Peeked(_)) {
                        self.claimed.push(said.context);
                    }
                }
                Pending::Send => {
                    self.seen.ended_sends += 1;
                    self.seen.failed_sends += u64::from(said.what != Completed::Sent);
                }
                Pending::Access(place) => {
                    let is_done = matches!(said.what, Completed::Written | Completed::Read);
                    self.seen.accessed += u64::from(is_done);
                    assert!(is_done || matches!(said.what, Completed::Failed(_)), "{said:?}");
                    place.iter().for_each(Place::check);
                    self.reads.extend(place);
                }
            }
        }
        while let Some(said) = self.honest.poll_completion() {
            assert_eq!(said.what, Completed::Sent, "a send of the honest peer");
        }
    }

    /// A message to one of the hostile peers; if there is no connection, one is made.
    pub(crate) fn send_to(&mut self, number: usize, random: &mut Random) {
        let length = [0, 8, 100, 3000, 10_000, 20_000][random.below(6)];
        let buffer = Buffer { length, ..self.payload.buffer };
        let context = self.context(Pending::Send);
        let send = Send {
            space: if random.chance(700) { Space::Tagged } else { Space::Untagged },
            to: Address(number as u64),
            tag: Tag(1),
            payload: Payload::Memory(buffer),
            cq_data: random.chance(300).then_some(7),
            level: [Level::Inject, Level::Transmit, Level::Delivery, Level::Match][random.below(4)],
            more: random.chance(100),
            context,
            flags: 0,
        };
        match self.endpoint.send(&send) {
            Ok(()) => {}
            // A peer that says it cannot read takes no long messages.
            Err(SendRefused::Again | SendRefused::Unreachable(_) | SendRefused::TooLong { .. }) => {
                self.pending.remove(&context);
            }
            Err(other) => panic!("{other}"),
        }
    }

    /// An access to memory of one of the hostile peers.
    fn access(&mut self, number: usize, random: &mut Random) {
        let place = if random.chance(500) { self.reads.pop() } else { None };
        let length = [0, 8, 3000, EAGER_LIMIT as u64, ROOM as u64][random.below(5)];
        let buffer = place.unwrap_or(self.payload).buffer;
        let segments = [Segment { address: buffer.address, length, key: 0 }];
        let remote = [RemoteStretch { key: 1, address: 7, length }];
        let context = self.context(Pending::Access(place));
        let access = RemoteAccess {
            to: Address(number as u64),
            local: Local::Memory(&segments),
            remote: &remote,
            cq_data: (place.is_none() && random.chance(300)).then_some(3),
            more: false,
            context,
            flags: 0,
        };
        let endpoint = &mut self.endpoint;
        match if place.is_some() { endpoint.read(&access) } else { endpoint.write(&access) } {
            Ok(()) => {}
            Err(SendRefused::Again | SendRefused::Unreachable(_)) => {
                self.pending.remove(&context);
                self.reads.extend(place);
            }
            Err(other) => panic!("{other}"),
        }
    }

    /// Something that a user does.
    pub(crate) fn act(&mut self, random: &mut Random, peers: usize) {
        let space = if random.chance(700) { Space::Tagged } else { Space::Untagged };
        let tag = Tag(random.below(4) as u64);
        let ignore = if random.chance(200) { Ignore(3) } else { Ignore::NONE };
        let source = random.chance(300).then(|| Address(random.below(peers) as u64));
        match random.below(12) {
            0..3 => {
                // Some stay for the honest peer.
                if self.free.len() > 20
                    && let Some(place) = self.free.pop()
                {
                    let length = [0, 10, EAGER_LIMIT as u64, ROOM as u64][random.below(4)];
                    let buffer = Buffer { length, ..place.buffer };
                    let context = self.context(Pending::Receive(place));
                    let kind = Kind::Once;
                    let post = Post { space, source, tag, ignore, buffer, kind, context, flags: 0 };
                    self.endpoint.post(&post).unwrap();
                } else {
                    self.cancel_one(random);
                }
            }
            3..6 => {
                let action = [PeekAction::Look, PeekAction::Claim, PeekAction::Discard][random.below(3)];
                let context = self.context(Pending::Peek(action));
                self.endpoint.peek(&Peek { space, source, tag, ignore, action, context, flags: 0 });
            }
            6 => self.send_to(random.below(peers), random),
            7 => self.cancel_one(random),
            9..11 => self.access(random.below(peers), random),
            8 => {
                if let Some(context) = self.claimed.pop() {
                    self.take_claimed(context, random.chance(500));
                }
            }
            _ => {}
        }
        self.hear();
    }

    fn take_claimed(&mut self, context: u64, is_received: bool) {
        let place = if is_received { self.free.pop() } else { None };
        if let Some(place) = place {
            self.pending.insert(context, Pending::Receive(place));
            // The message may be lost with its connection.
            if self.endpoint.receive_claimed(context, place.buffer, 0).is_err() {
                self.pending.remove(&context);
                self.free.push(place);
            }
        } else {
            self.pending.insert(context, Pending::Peek(PeekAction::Discard));
            if self.endpoint.discard_claimed(context, 0).is_err() {
                self.pending.remove(&context);
            }
        }
    }

    fn cancel_one(&mut self, random: &mut Random) {
        let is_receive =
            |(context, pending): (&u64, &Pending)| matches!(pending, Pending::Receive(_)).then_some(*context);
        let mut contexts: Vec<u64> = self.pending.iter().filter_map(is_receive).collect();
        contexts.sort_unstable();
        if !contexts.is_empty() {
            self.endpoint.cancel(contexts[random.below(contexts.len())]);
        }
    }

    /// No hostile peer is connected: what they have left behind is little.
    pub(crate) fn check_rest(&mut self, seed: u64, seen: &Seen) {
        let live = live_bytes() - self.base;
        self.seen.bytes_at_rest = self.seen.bytes_at_rest.max(live);
        assert!(live < BYTES_MAX_AT_REST, "seed {seed}: {live} bytes are kept for nobody; {seen:?}");
    }

    /// Messages of an honest peer arrive, whole and in order, and nothing of the others is in them. Whatever nobody wants
    /// is dropped, so that the others go on.
    pub(crate) fn check_honest(&mut self, random: &mut Random, seed: u64) {
        for space in [Space::Tagged, Space::Untagged] {
            for _ in 0..self.endpoint.depths(space).1 {
                let context = self.context(Pending::Peek(PeekAction::Discard));
                let (source, tag, ignore) = (None, Tag(0), Ignore(!0));
                let action = PeekAction::Discard;
                self.endpoint.peek(&Peek { space, source, tag, ignore, action, context, flags: 0 });
            }
        }
        while let Some(context) = self.claimed.pop() {
            self.take_claimed(context, false);
        }
        while self.free.len() < 20 {
            let before = self.free.len();
            self.cancel_one(random);
            self.settle();
            assert!(self.free.len() > before || !self.pending.is_empty(), "buffers are gone");
        }
        self.region.check();
        let until = self.sent + 10;
        let mut posted = self.sent;
        for round in 0..200_000 {
            // Some receives before their message, some behind it.
            if posted < until && (posted <= self.sent || random.chance(300)) {
                let place = self.free.pop().unwrap();
                let context = self.context(Pending::Honest(place, posted));
                let (source, tag, ignore) = (Some(HONEST), Tag(HONEST_TAG), Ignore::NONE);
                let (space, buffer, kind) = (Space::Tagged, place.buffer, Kind::Once);
                self.endpoint
                    .post(&Post { space, source, tag, ignore, buffer, kind, context, flags: 0 })
                    .unwrap();
                posted += 1;
            }
            if self.sent < until {
                self.send_honest();
            }
            self.settle();
            if self.checked == until {
                self.seen.honest += 10;
                self.seen.looks += 1;
                return;
            }
            assert!(round < 199_999, "seed {seed}: {} of {until} honest messages arrived", self.checked);
        }
    }

    fn send_honest(&mut self) {
        let number = self.sent;
        // Of as many messages as these not all are under way.
        let place = self.honest_payloads[usize::try_from(number % 12).unwrap()];
        let length = honest_length(number);
        let text = pattern(number, length);
        let into =
            std::ptr::with_exposed_provenance_mut::<u8>(usize::try_from(place.buffer.address).unwrap());
        // SAFETY: it is memory of `Place::new` that no transport uses: twelve messages ago it was sent.
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), into, length) };
        let send = Send {
            space: Space::Tagged,
            to: Address(0),
            tag: Tag(HONEST_TAG),
            payload: Payload::Memory(Buffer { length: length as u64, ..place.buffer }),
            cq_data: None,
            level: Level::Match,
            more: false,
            context: number,
            flags: 0,
        };
        match self.honest.send(&send) {
            Ok(()) => self.sent += 1,
            Err(SendRefused::Again) => {}
            Err(other) => panic!("the honest peer cannot send: {other}"),
        }
    }

    /// Close everything: whatever was begun ends, once.
    pub(crate) fn end(mut self, seed: u64, seen: &mut Seen) {
        for _ in 0..300 {
            self.now += 160;
            self.settle();
        }
        assert_eq!(self.honest.statistics().lost, 0, "seed {seed}: the honest peer's connection stood");
        let receives: Vec<u64> = self.pending.keys().copied().collect();
        for context in receives {
            self.endpoint.cancel(context);
        }
        self.endpoint.close(Duration::from_millis(self.now / 16));
        for _ in 0..100_000 {
            if self.endpoint.is_closed() && self.pending.is_empty() {
                break;
            }
            self.now += 16;
            self.settle();
        }
        assert!(self.pending.is_empty(), "seed {seed}: never ended: {:?}", self.pending);
        assert_eq!(self.endpoint.sends_in_progress(), 0, "seed {seed}");
        self.free.iter().for_each(Place::check);
        self.payload.check();
        self.region.check();
        assert_eq!(self.endpoint.withdraw_region(REGION.key), None, "seed {seed}: somebody is at it");
        let counted = *self.endpoint.statistics();
        seen.protocol_errors += counted.protocol_errors + counted.turned_away;
        seen.received += counted.received;
        seen.accessed += self.seen.accessed;
        seen.written += self.seen.written;
        seen.read_by_peers += counted.read_by_peers;
        seen.unexpected += counted.unexpected;
        seen.matched_by_device += counted.matched_by_device;
        seen.ended_sends += self.seen.ended_sends;
        seen.failed_sends += self.seen.failed_sends;
        seen.honest += self.seen.honest;
        seen.looks += self.seen.looks;
        seen.bytes_at_rest = seen.bytes_at_rest.max(self.seen.bytes_at_rest);
        seen.bytes_max = seen.bytes_max.max(self.seen.bytes_max);
    }
}
