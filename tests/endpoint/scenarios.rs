//! The scenarios that `endpoint` runs over a simulated network, over real transports.

#[path = "../../src/device/tests/ports.rs"]
mod ports;
#[path = "remote.rs"]
mod remote;

use std::time::Instant;

use super::over::open;
use tagmatch::device::transport::Payload;
use tagmatch::endpoint::{
    Address, Completed, Completion, Config, Endpoint, Failure, Level, Peek, PeekAction, Post, Send,
    SendRefused, Space,
};
use tagmatch::engine::Kind;
use tagmatch::ids::{Ignore, Tag};
use tagmatch::seam::Buffer;
use tagmatch::wire::Credits;

/// Memory that stays: whatever a transport does with it, it is nobody else's.
pub(crate) fn memory(bytes: &[u8]) -> Buffer {
    let leaked: &'static mut [u8] = bytes.to_vec().leak();
    Buffer::new(leaked.as_mut_ptr().expose_provenance() as u64, leaked.len() as u64)
}

pub(crate) fn read(address: u64, length: u64) -> Vec<u8> {
    let from = std::ptr::with_exposed_provenance::<u8>(usize::try_from(address).unwrap());
    // SAFETY: it lies in a buffer of `memory`, and the transport is done with it.
    unsafe { std::slice::from_raw_parts(from, usize::try_from(length).unwrap()) }.to_vec()
}

pub(crate) fn bytes(seed: u64, length: usize) -> Vec<u8> {
    (0..length as u64).map(|at| u8::try_from((seed * 31 + at * 7) % 251).unwrap()).collect()
}

fn port(name: &[u8]) -> u16 {
    u16::from_be_bytes([name[2], name[3]])
}

/// Endpoints that know each other.
pub(crate) struct Net {
    endpoints: Vec<Option<Endpoint>>,
    names: Vec<Vec<u8>>,
    pub(crate) said: Vec<Vec<Completion>>,
    config: Config,
    began: Instant,
}

impl Net {
    pub(crate) fn new(count: usize, config: Config) -> Self {
        Self::at_ports(count, config, || 0)
    }

    /// Some of them will come back under their names.
    fn lasting(count: usize, config: Config) -> Self {
        Self::at_ports(count, config, ports::lasting_port)
    }

    fn at_ports(count: usize, config: Config, port: impl Fn() -> u16) -> Self {
        let endpoints: Vec<_> = (0..count).map(|_| Some(open(config.clone(), port()))).collect();
        let names = endpoints.iter().flatten().map(|endpoint| endpoint.name().to_vec()).collect();
        let said = vec![Vec::new(); count];
        let mut net = Self { endpoints, names, said, config, began: Instant::now() };
        (0..count).for_each(|at| net.introduce(at));
        net
    }

    fn introduce(&mut self, at: usize) {
        let names = self.names.clone();
        for (other, name) in names.iter().enumerate() {
            self.at(at).set_address(Address(other as u64), name).unwrap();
        }
    }

    pub(crate) fn at(&mut self, at: usize) -> &mut Endpoint {
        self.endpoints[at].as_mut().unwrap()
    }

    fn restart(&mut self, at: usize) {
        self.endpoints[at] = None;
        self.endpoints[at] = Some(open(self.config.clone(), port(&self.names[at])));
        self.introduce(at);
    }

    fn step(&mut self) {
        let now = self.began.elapsed();
        for (endpoint, said) in self.endpoints.iter_mut().zip(&mut self.said) {
            let Some(endpoint) = endpoint else { continue };
            endpoint.progress(now).unwrap();
            said.extend(std::iter::from_fn(|| endpoint.poll_completion()));
        }
    }

    pub(crate) fn until(&mut self, what: &str, mut is_so: impl FnMut(&mut Self) -> bool) {
        for _ in 0..5_000_000 {
            if is_so(self) {
                return;
            }
            self.step();
            std::thread::yield_now();
        }
        panic!("never so: {what}");
    }

    pub(crate) fn send(&mut self, from: usize, send: &Send<'_>) {
        self.until("it is taken", |net| match net.at(from).send(send) {
            Ok(()) => true,
            Err(SendRefused::Again) => false,
            Err(other) => panic!("{other}"),
        });
    }

    pub(crate) fn post(
        &mut self,
        at: usize,
        space: Space,
        source: Option<usize>,
        tag: u64,
        length: usize,
        context: u64,
    ) {
        let post = Post {
            space,
            source: source.map(|source| Address(source as u64)),
            tag: Tag(tag),
            ignore: Ignore::NONE,
            buffer: memory(&vec![0xEE; length]),
            kind: Kind::Once,
            context,
            flags: 0,
        };
        self.at(at).post(&post).unwrap();
    }

    fn of(&self, at: usize, context: u64) -> Vec<Completed> {
        self.said[at].iter().filter(|said| said.context == context).map(|said| said.what).collect()
    }

    pub(crate) fn ended(&mut self, at: usize, context: u64) -> Completed {
        self.until("an operation ends", |net| !net.of(at, context).is_empty());
        let ends = self.of(at, context);
        assert_eq!(ends.len(), 1, "{ends:?}");
        ends[0]
    }

    fn received(&mut self, at: usize, context: u64) -> (Vec<u8>, Option<Address>) {
        let ended = self.ended(at, context);
        let Completed::Received { message, address, placed, .. } = ended else { panic!("{ended:?}") };
        (read(address, placed), message.source)
    }
}

pub(crate) const fn message(to: usize, tag: u64, buffer: Buffer, context: u64) -> Send<'static> {
    Send {
        space: Space::Tagged,
        to: Address(to as u64),
        tag: Tag(tag),
        payload: Payload::Memory(buffer),
        cq_data: None,
        level: Level::Inject,
        more: false,
        context,
        flags: 0,
    }
}

const LENGTHS: [usize; 10] = [0, 1, 64, 65, 1000, 16 << 10, (16 << 10) + 1, 40_000, 300_000, 3 << 20];

#[test]
fn messages_of_all_lengths_arrive_in_both_spaces_posted_or_not_at_others_and_at_oneself() {
    for segmented_limit in [0, 100_000] {
        let mut net = Net::new(2, Config { segmented_limit, ..Config::default() });
        let mut context = 1;
        for space in [Space::Tagged, Space::Untagged] {
            for (length, to) in LENGTHS.into_iter().flat_map(|length| [(length, 1), (length, 0)]) {
                for posted_first in [true, false] {
                    let (ours, theirs) = (context, context + 1);
                    context += 2;
                    let buffer = memory(&bytes(ours, length));
                    let level = [Level::Transmit, Level::Match][usize::from(posted_first)];
                    let cq_data = Some(u32::try_from(ours).unwrap());
                    let send = Send { space, level, cq_data, ..message(to, 5, buffer, ours) };
                    if posted_first {
                        net.post(to, space, Some(0), 5, length, theirs);
                    }
                    net.send(0, &send);
                    if !posted_first {
                        net.until("it is there", |net| net.at(to).depths(space).1 == 1);
                        net.post(to, space, Some(0), 5, length, theirs);
                    }
                    let what = net.ended(to, theirs);
                    let Completed::Received { message, .. } = what else { panic!("{what:?}") };
                    assert_eq!(message.cq_data, cq_data);
                    assert_eq!(net.received(to, theirs), (bytes(ours, length), Some(Address(0))));
                    assert_eq!(net.ended(0, ours), Completed::Sent);
                }
            }
        }
        assert_eq!((net.at(0).sends_in_progress(), net.at(0).statistics().connected), (0, 2));
        assert_eq!(net.at(0).statistics().sent_segmented > 0, segmented_limit > 0);
    }
}

#[test]
fn b28_crossing_connections_leave_one_and_lose_nothing() {
    for _ in 0..30 {
        let mut net = Net::new(3, Config::default());
        let pairs: Vec<(usize, usize)> = (0..3)
            .flat_map(|from| (0..3).map(move |to| (from, to)))
            .filter(|(from, to)| from != to)
            .collect();
        let buffer = memory(b"hi");
        let mut left = pairs.clone();
        net.until("all are taken", |net| {
            left.retain(|&(from, to)| net.at(from).send(&message(to, from as u64, buffer, 9)).is_err());
            left.is_empty()
        });
        for &(from, to) in &pairs {
            net.post(to, Space::Tagged, None, from as u64, 8, 100 + from as u64);
            assert_eq!(net.received(to, 100 + from as u64), (b"hi".to_vec(), Some(Address(from as u64))));
        }
        for at in 0..3 {
            let statistics = *net.at(at).statistics();
            assert_eq!((statistics.connected, statistics.lost, statistics.connect_failed), (2, 0, 0));
        }
    }
}

#[test]
fn b13_b14_claims_and_discards_of_all_lengths() {
    let mut net = Net::new(2, Config::default());
    for (length, context) in LENGTHS.into_iter().zip(1..) {
        let buffer = memory(&bytes(1, length));
        for (number, action) in [(0, PeekAction::Claim), (1, PeekAction::Claim), (2, PeekAction::Discard)] {
            net.send(1, &message(0, 7, buffer, 1000 * context + number));
            net.until("it is there", |net| net.at(0).depths(Space::Tagged).1 == 1);
            let (space, ignore) = (Space::Tagged, Ignore::NONE);
            let peek =
                Peek { space, source: Some(Address(1)), tag: Tag(7), ignore, action, context: 50, flags: 0 };
            net.at(0).peek(&peek);
            let found = net.ended(0, 50);
            assert!(matches!(found, Completed::Peeked(message) if message.length == length as u64));
            net.said[0].clear();
            match number {
                0 => {
                    net.at(0).receive_claimed(50, memory(&vec![0; length]), 0).unwrap();
                    assert_eq!(net.received(0, 50).0, bytes(1, length));
                }
                1 => net.at(0).discard_claimed(50, 0).unwrap(),
                _ => {}
            }
            net.step();
            net.said[0].clear();
            assert_eq!(net.ended(1, 1000 * context + number), Completed::Sent);
            assert_eq!(net.at(0).depths(Space::Tagged), (0, 0));
        }
    }
}

#[test]
fn a_receive_whose_sender_closes_while_its_payload_is_read_ends_as_lost_and_not_as_unreadable() {
    const LENGTH: usize = 8 << 20;
    let mut lost = 0;
    for steps in 0..12 {
        let mut net = Net::new(2, Config::default());
        net.post(0, Space::Tagged, Some(1), 1, LENGTH, 1);
        net.send(1, &message(0, 1, memory(&bytes(1, LENGTH)), 2));
        (0..steps).for_each(|_| net.step());
        let now = net.began.elapsed();
        net.at(1).close(now);
        let ended = net.ended(0, 1);
        if let Completed::Failed(failure) = ended {
            assert_eq!(failure, Failure::Lost, "after {steps} steps");
            lost += 1;
        } else {
            let Completed::Received { address, placed, .. } = ended else { panic!("{ended:?}") };
            assert_eq!(read(address, placed), bytes(1, LENGTH), "after {steps} steps");
        }
        net.until("the endpoint is closed", |net| net.at(1).is_closed());
    }
    assert!(lost > 0, "at once nothing has been read");
}

#[test]
fn b28_b29_b32_a_peer_dies_in_the_middle_and_comes_back() {
    let mut net = Net::lasting(3, Config::default());
    for round in 0..10 {
        let contexts = 1000 * (round + 1);
        // A rendezvous that nobody takes, and one that is being read.
        net.send(0, &message(1, 1, memory(&bytes(1, 1 << 20)), contexts));
        net.post(0, Space::Tagged, Some(1), 2, 8 << 20, contexts + 1);
        net.send(1, &message(0, 2, memory(&bytes(2, 8 << 20)), contexts));
        for _ in 0..round {
            net.step();
        }
        net.restart(1);
        assert_eq!(net.ended(0, contexts), Completed::Failed(Failure::Lost));
        let other = net.of(0, contexts + 1);
        assert!(other.is_empty() || matches!(other[0], Completed::Failed(_) | Completed::Received { .. }));
        if other.is_empty() {
            assert!(net.at(0).cancel(contexts + 1) || !net.of(0, contexts + 1).is_empty());
        }
        net.send(0, &message(1, 3, memory(b"re"), contexts + 2));
        net.post(1, Space::Tagged, Some(0), 3, 8, contexts + 3);
        assert_eq!(net.received(1, contexts + 3).0, b"re");
        net.send(1, &message(0, 4, memory(b"new"), contexts + 4));
        net.post(0, Space::Tagged, Some(1), 4, 8, contexts + 5);
        assert_eq!(net.received(0, contexts + 5).0, b"new");
        net.send(2, &message(0, 5, memory(b"ok"), contexts + 6));
        net.post(0, Space::Tagged, Some(2), 5, 8, contexts + 7);
        assert_eq!(net.received(0, contexts + 7).0, b"ok");
    }
}

#[test]
fn b29_a_peer_that_is_not_there_is_refused_once_and_reached_when_it_is() {
    let mut net = Net::lasting(2, Config::default());
    net.endpoints[1] = None;
    let send = message(1, 1, memory(b"m"), 1);
    net.until("it is refused", |net| {
        net.at(0).send(&send) == Err(SendRefused::Unreachable(Failure::Refused))
    });
    assert_eq!(net.at(0).send(&send), Err(SendRefused::Again));
    net.endpoints[1] = Some(open(net.config.clone(), port(&net.names[1])));
    net.introduce(1);
    net.until("it is reached", |net| net.at(0).send(&send).is_ok());
    net.post(1, Space::Tagged, Some(0), 1, 8, 2);
    assert_eq!(net.received(1, 2).0, b"m");
}

#[test]
fn b35_many_to_one_with_few_credits_keeps_order_and_copies_what_was_injected() {
    let credits = Credits { headers: 1000, eager_messages: 4, eager_bytes: 8 << 10 };
    let mut net = Net::new(5, Config { credits, job_key: Some(vec![1; 32]), ..Config::default() });
    // All of it unexpected: most goes by rendezvous, out of copies where it was injected.
    for number in 0..200 {
        for from in 1..5 {
            let length = [10, 900, 5000][number % 3];
            let text = bytes((from * 1000 + number) as u64, length);
            let injected = Send { payload: Payload::Copied(&text), ..message(0, 1, Buffer::default(), 1) };
            if number % 2 == 0 {
                net.send(from, &injected);
            } else {
                net.send(from, &message(0, 1, memory(&text), 1));
            }
        }
    }
    for from in 1..5 {
        for number in 0..200_usize {
            let context = (from * 1000 + number) as u64;
            net.post(0, Space::Tagged, Some(from), 1, 5000, context);
            assert_eq!(net.received(0, context).0, bytes(context, [10, 900, 5000][number % 3]));
        }
    }
    net.until("all are told", |net| (1..5).all(|from| net.of(from, 1).len() == 200));
    assert!((1..5).all(|from| net.at(from).statistics().without_credit > 50));
    assert!((1..5).all(|from| net.at(from).sends_in_progress() == 0));
}

#[test]
fn what_was_injected_arrives_though_its_sender_is_closed() {
    let mut net = Net::new(2, Config::default());
    for number in 0..1000 {
        let text = bytes(number, 3000);
        net.send(1, &Send { payload: Payload::Copied(&text), ..message(0, 1, Buffer::default(), 1) });
    }
    let now = net.began.elapsed();
    net.at(1).close(now);
    net.until("it is closed", |net| net.at(1).is_closed());
    net.endpoints[1] = None;
    for number in 0..1000 {
        net.post(0, Space::Tagged, None, 1, 3000, number);
        assert_eq!(net.received(0, number).0, bytes(number, 3000));
    }
}
