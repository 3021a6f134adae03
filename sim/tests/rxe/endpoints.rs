//! Endpoints on two devices in random traffic, eager, in segments and by RDMA READ: every message comes once and whole,
//! into a receive that explains it (the checker), and every operation ends. Also where packets are lost, doubled, and
//! overtake each other, and between two machines.

#[path = "lossy.rs"]
mod lossy;
#[path = "machines.rs"]
mod machines;

use std::collections::HashMap;
use std::time::Instant;

use tagmatch::endpoint::{
    Address, Completed, Config, Endpoint, Level, Post, Send, SendRefused, Space, Statistics,
};
use tagmatch_sim::checker::{self, MessageName, Observation, ReceiveName};

use super::{Change, Memory, Random, RoceDevice, inside, open_changed, pattern, trusted};
use crate::device::loopback::LoopbackTransport;
use crate::device::soft::SoftConfig;
use crate::device::soft::over::OverTransport;
use crate::device::transport::{Payload, Transport};
use crate::engine::Kind;
use crate::ids::{DeviceId, Ignore, PeerId, Source, Tag};
use crate::matching::{Envelope, Pattern, Stay};

#[test]
fn endpoints_match_in_software_what_comes_over_soft_roce() {
    inside(concat!(module_path!(), "::endpoints_match_in_software_what_comes_over_soft_roce"), |devices| {
        let happened = Traffic::run(devices, None);
        assert!(happened.sent_segmented > 0, "{happened:?}");
        assert_eq!(happened.matched_by_device, 0);
    });
}

#[test]
fn endpoints_match_by_the_soft_list_what_comes_over_soft_roce() {
    inside(
        concat!(module_path!(), "::endpoints_match_by_the_soft_list_what_comes_over_soft_roce"),
        |devices| {
            let happened = Traffic::run(devices, Some(TAGS));
            assert!(happened.matched_by_device > 100, "{happened:?}");
        },
    );
}

/// A run: endpoints by their numbers, which are also their addresses.
pub(super) struct Traffic {
    nodes: Vec<Node>,
    random: Random,
    began: Instant,
    /// By number: how much of which bytes it has.
    sent: Vec<(usize, usize)>,
    /// Payloads by length and contents.
    payloads: Vec<[Memory; CONTENTS]>,
    ended_sends: usize,
}

struct Node {
    endpoint: Endpoint,
    /// Of messages that come here.
    history: Vec<Observation>,
    posted: HashMap<u64, Posted>,
    posts: u32,
    /// By sender.
    sent: [u32; ENDPOINTS],
    received: u32,
    free: Vec<Memory>,
}

struct Posted {
    memory: Memory,
    /// Where its post stands in the history, if it took a message that is not known yet.
    took_at: Option<usize>,
    is_cancelled: bool,
}

/// An endpoint on this device, in software or with a list of so many tags.
pub(super) fn endpoint(device: &RoceDevice, tags: Option<u32>, change: Change<'_>) -> Endpoint {
    let below = open_changed(device, DeviceId(1), EAGER_LIMIT, change);
    let others: Box<dyn Transport + std::marker::Send> = match tags {
        None => Box::new(below),
        Some(tags) => {
            let config = SoftConfig { id: DeviceId(1), ..SoftConfig::matching(tags) };
            Box::new(OverTransport::new(below, config).unwrap())
        }
    };
    let own = LoopbackTransport::new(DeviceId(0), others.name(), EAGER_LIMIT, trusted()).unwrap();
    let config = Config { eager_limit: EAGER_LIMIT, segmented_limit: SEGMENTED_LIMIT, ..Config::default() };
    Endpoint::new(config, vec![Box::new(own), others]).unwrap()
}

impl Node {
    fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            history: Vec::new(),
            posted: HashMap::new(),
            posts: 0,
            sent: [0; ENDPOINTS],
            received: 0,
            free: Vec::new(),
        }
    }

    fn post(&mut self, pattern: Pattern) {
        let context = u64::from(self.posts);
        let receive = ReceiveName(self.posts);
        self.posts += 1;
        let memory = self.free.pop().unwrap_or_else(|| Memory::zeros(LENGTHS[LENGTHS.len() - 1]));
        let source = match pattern.source {
            Source::Peer(peer) => Some(Address(u64::from(peer.0))),
            _ => None,
        };
        let post = Post {
            space: Space::Tagged,
            source,
            tag: pattern.tag,
            ignore: pattern.ignore,
            buffer: memory.buffer(),
            kind: Kind::Once,
            context,
            flags: 0,
        };
        let before = self.endpoint.depths(Space::Tagged).1;
        self.endpoint.post(&post).unwrap();
        let took = self.endpoint.depths(Space::Tagged).1 < before;
        let took_at = took.then_some(self.history.len());
        self.history.push(Observation::Post { receive, pattern, stay: Stay::Once, took: None });
        self.posted.insert(context, Posted { memory, took_at, is_cancelled: false });
    }

    fn cancel(&mut self, context: u64) {
        let Some(posted) = self.posted.get_mut(&context).filter(|posted| !posted.is_cancelled) else {
            return;
        };
        if posted.took_at.is_none() {
            posted.is_cancelled = true;
            let receive = ReceiveName(u32::try_from(context).unwrap());
            self.history.push(Observation::CancelCalled { receive });
            self.endpoint.cancel(context);
        }
    }

    /// A receive has ended: with this message, or without.
    fn ended(&mut self, context: u64, message: Option<u32>) -> Memory {
        let Posted { memory, took_at, is_cancelled } = self.posted.remove(&context).unwrap();
        let receive = ReceiveName(u32::try_from(context).unwrap());
        let name = message.map(MessageName);
        match (name, took_at) {
            (Some(_), Some(place)) => {
                let Observation::Post { took, .. } = &mut self.history[place] else { panic!("no post") };
                *took = name;
            }
            (Some(message), None) => {
                self.history.push(Observation::Decided { message, receive: Some(receive) });
            }
            (None, took) => assert_eq!(took, None, "it took a message and was cancelled"),
        }
        if is_cancelled {
            self.history.push(Observation::CancelAnswered { receive, cancelled: message.is_none() });
        }
        memory
    }

    fn outstanding(&self) -> usize {
        (self.sent.iter().sum::<u32>() - self.received) as usize
    }
}

impl Traffic {
    /// So many messages, all of them received in the end.
    pub(super) fn run(devices: &[RoceDevice], tags: Option<u32>) -> Statistics {
        Self::run_changed(devices, tags, &|config| config)
    }

    /// With devices that are changed so.
    pub(super) fn run_changed(devices: &[RoceDevice], tags: Option<u32>, change: Change<'_>) -> Statistics {
        let last = devices.len() - 1;
        let nodes = (0..NODES).map(|number| Node::new(endpoint(&devices[number % 2 * last], tags, change)));
        let nodes = nodes.collect();
        let payloads = LENGTHS
            .iter()
            .map(|length| std::array::from_fn(|content| Memory::new(pattern(content, *length))));
        let mut traffic = Self {
            nodes,
            random: Random(7),
            began: Instant::now(),
            sent: Vec::new(),
            payloads: payloads.collect(),
            ended_sends: 0,
        };
        traffic.introduce();
        while traffic.sent.len() < messages() {
            traffic.act();
            traffic.step();
        }
        traffic.finish();
        traffic.check()
    }

    fn introduce(&mut self) {
        let names: Vec<Vec<u8>> = self.nodes.iter().map(|node| node.endpoint.name().to_vec()).collect();
        for node in &mut self.nodes {
            for (number, name) in (0..).zip(&names) {
                node.endpoint.set_address(Address(number), name).unwrap();
            }
        }
    }

    fn act(&mut self) {
        let at = self.random.below(NODES);
        match self.random.below(20) {
            0..10 => self.send(at),
            10..19 if self.nodes[at].posted.len() < POSTED_MAX => {
                let tag = Tag(self.random.below(TAG_VALUES) as u64);
                let source = (at + 1 + self.random.below(NODES - 1)) % NODES;
                let source = if self.random.below(3) == 0 { peer(source) } else { Source::Any };
                let ignore = if self.random.below(4) == 0 { Ignore(u64::MAX) } else { Ignore::NONE };
                self.nodes[at].post(Pattern { tag, ignore, source });
            }
            19 => {
                let posted = self.nodes[at].posted.keys().copied().min();
                posted.into_iter().for_each(|context| self.nodes[at].cancel(context));
            }
            _ => {}
        }
    }

    fn send(&mut self, from: usize) {
        let to = (from + 1 + self.random.below(NODES - 1)) % NODES;
        if self.nodes[to].outstanding() > OUTSTANDING_MAX {
            return;
        }
        let (length, content) = (self.random.below(LENGTHS.len()), self.random.below(CONTENTS));
        let tag = Tag(self.random.below(TAG_VALUES) as u64);
        let number = u32::try_from(self.sent.len()).unwrap();
        let send = Send {
            space: Space::Tagged,
            to: Address(to as u64),
            tag,
            payload: Payload::Memory(self.payloads[length][content].buffer()),
            cq_data: Some(number),
            level: [Level::Inject, Level::Transmit, Level::Delivery, Level::Match][self.random.below(4)],
            more: false,
            context: SENDS + u64::from(number),
            flags: 0,
        };
        match self.nodes[from].endpoint.send(&send) {
            Ok(()) => {}
            Err(SendRefused::Again) => return,
            Err(refused) => panic!("from {from} to {to}: {refused}"),
        }
        self.sent.push((length, content));
        let there = &mut self.nodes[to];
        let envelope = Envelope { tag, source: PeerId(u32::try_from(from).unwrap()) };
        let (message, sent) = (MessageName(number), there.sent[from]);
        there.history.push(Observation::Accepted { message, envelope, sent, path: 0 });
        there.sent[from] += 1;
    }

    fn step(&mut self) {
        let now = self.began.elapsed();
        for at in 0..NODES {
            self.nodes[at].endpoint.progress(now).unwrap();
            while let Some(completion) = self.nodes[at].endpoint.poll_completion() {
                let context = completion.context;
                match completion.what {
                    Completed::Sent => self.ended_sends += 1,
                    Completed::Cancelled => {
                        let memory = self.nodes[at].ended(context, None);
                        self.nodes[at].free.push(memory);
                    }
                    Completed::Received { message, placed, .. } => {
                        let number = message.cq_data.unwrap();
                        let (length, content) = self.sent[number as usize];
                        assert_eq!((message.length, placed), (LENGTHS[length] as u64, message.length));
                        let memory = self.nodes[at].ended(context, Some(number));
                        let sent = self.payloads[length][content].bytes();
                        assert!(memory.bytes()[..sent.len()] == sent, "message {number} is not whole");
                        self.nodes[at].received += 1;
                        self.nodes[at].free.push(memory);
                    }
                    other => panic!("{context}: {other:?}"),
                }
            }
        }
    }

    fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        for _ in 0..TURNS_MAX {
            if is_so(self) {
                return;
            }
            self.step();
            std::thread::yield_now();
        }
        let left: Vec<_> = self.nodes.iter().map(|node| (node.outstanding(), node.posted.len())).collect();
        panic!("never so: {what}; messages and receives that are left: {left:?}");
    }

    /// Everything that waits is cancelled, and everything that was sent is received.
    fn finish(&mut self) {
        for node in &mut self.nodes {
            let mut posted: Vec<u64> = node.posted.keys().copied().collect();
            posted.sort_unstable();
            posted.into_iter().for_each(|context| node.cancel(context));
        }
        self.until("receives end", |all| all.nodes.iter().all(|node| node.posted.is_empty()));
        for node in &mut self.nodes {
            for _ in 0..node.outstanding() {
                node.post(Pattern { tag: Tag(0), ignore: Ignore(u64::MAX), source: Source::Any });
            }
        }
        self.until("all is received", |all| all.nodes.iter().all(|node| node.posted.is_empty()));
        self.until("sends end", |all| all.ended_sends == all.sent.len());
    }

    /// What happened, in all.
    fn check(&self) -> Statistics {
        let mut all = Statistics::default();
        for node in &self.nodes {
            let checked = checker::check(&node.history, checker::Options::default());
            assert!(checked.is_ok(), "{checked:?}\n{}", checker::print(&node.history));
            let own = node.endpoint.statistics();
            all.sent_eager += own.sent_eager;
            all.sent_segmented += own.sent_segmented;
            all.sent_rendezvous += own.sent_rendezvous;
            all.unexpected += own.unexpected;
            all.cancelled += own.cancelled;
            all.matched_by_device += own.matched_by_device;
            assert_eq!((own.lost, own.connect_failed, own.protocol_errors), (0, 0, 0));
            assert_eq!((node.outstanding(), node.endpoint.sends_in_progress()), (0, 0));
        }
        let each = [all.sent_eager, all.sent_rendezvous, all.unexpected, all.cancelled];
        assert!(each.iter().all(|count| *count > 0), "{all:?}");
        all
    }
}

fn peer(number: usize) -> Source {
    Source::Peer(PeerId(u32::try_from(number).unwrap()))
}

/// Messages of a run.
fn messages() -> usize {
    let is_nightly = std::env::var_os("TAGMATCH_NIGHTLY").is_some();
    let given = std::env::var("TAGMATCH_MESSAGES").map(|count| count.parse().unwrap());
    given.unwrap_or(if is_nightly { 100_000 } else { 10_000 })
}

const NODES: usize = 3;
/// Of the machines together, where there are two.
const ENDPOINTS: usize = 4;
/// Entries of a list.
const TAGS: u32 = 32;
const TAG_VALUES: usize = 4;
const EAGER_LIMIT: u64 = 4096;
const SEGMENTED_LIMIT: u64 = 8000;
/// Of payloads, in bytes: eager, in segments or by RDMA READ, by RDMA READ.
const LENGTHS: [usize; 7] = [0, 1, 64, 1000, 4096, 7000, 12_000];
const CONTENTS: usize = 8;
const POSTED_MAX: usize = 60;
const OUTSTANDING_MAX: usize = 60;
/// Contexts of sends begin here.
const SENDS: u64 = 1 << 32;
const TURNS_MAX: u64 = 20_000_000;
