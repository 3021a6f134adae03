//! Endpoints in random traffic, eager, in segments and by rendezvous, to one another and to themselves: every message comes
//! once and whole, into a receive that explains it (the checker), and every operation ends.
//!
//! Not here: over what.

use std::collections::HashMap;
use std::time::Instant;

use tagmatch::endpoint::{
    Address, Completed, Config, Endpoint, Level, Post, Send, SendRefused, Space, Statistics,
};
use tagmatch_sim::checker::{self, MessageName, Observation, ReceiveName};

use super::{Memory, Random, pattern};
use crate::device::transport::Payload;
use crate::engine::Kind;
use crate::ids::{Ignore, PeerId, Source, Tag};
use crate::matching::{Envelope, Pattern, Stay};

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

pub(super) struct Node {
    pub(super) endpoint: Endpoint,
    /// Of messages that come here.
    pub(super) history: Vec<Observation>,
    pub(super) posted: HashMap<u64, Posted>,
    pub(super) posts: u32,
    /// By sender.
    pub(super) sent: [u32; ENDPOINTS],
    pub(super) received: u32,
    pub(super) free: Vec<Memory>,
}

pub(super) struct Posted {
    pub(super) memory: Memory,
    /// Where its post stands in the history, if it took a message that is not known yet.
    pub(super) took_at: Option<usize>,
    pub(super) is_cancelled: bool,
}

impl Node {
    pub(super) fn new(endpoint: Endpoint) -> Self {
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

    pub(super) fn post(&mut self, pattern: Pattern) {
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

    pub(super) fn cancel(&mut self, context: u64) {
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
    pub(super) fn ended(&mut self, context: u64, message: Option<u32>) -> Memory {
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

    pub(super) fn outstanding(&self) -> usize {
        (self.sent.iter().sum::<u32>() - self.received) as usize
    }
}

impl Traffic {
    /// So many messages, all of them received in the end: what happened at all of them together.
    pub(super) fn run(endpoints: [Endpoint; NODES]) -> Statistics {
        let nodes = endpoints.into_iter().map(Node::new).collect();
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
        // By turns there are more receives than messages, and more messages than receives.
        let sends = if (self.sent.len() / TURN).is_multiple_of(2) { 5 } else { 13 };
        match self.random.below(20) {
            draw if draw < sends => self.send(at),
            0..19 if self.nodes[at].posted.len() < POSTED_MAX => {
                let tag = Tag(self.random.below(TAG_VALUES) as u64);
                let source = self.random.below(NODES);
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
        let to = self.random.below(NODES);
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
            all.connected += own.connected;
            all.connected_shm += own.connected_shm;
            assert_eq!((own.lost, own.connect_failed, own.protocol_errors), (0, 0, 0));
            assert_eq!((node.outstanding(), node.endpoint.sends_in_progress()), (0, 0));
        }
        let each = [all.sent_eager, all.sent_rendezvous, all.unexpected, all.cancelled];
        assert!(each.iter().all(|count| *count > 0), "{all:?}");
        all
    }
}

pub(super) fn peer(number: usize) -> Source {
    Source::Peer(PeerId(u32::try_from(number).unwrap()))
}

/// How endpoints of such traffic are set up, over transports with this eager limit.
pub(super) fn config() -> Config {
    Config { eager_limit: EAGER_LIMIT, segmented_limit: SEGMENTED_LIMIT, ..Config::default() }
}

/// Messages of a run.
pub(super) fn messages() -> usize {
    let is_nightly = std::env::var_os("TAGMATCH_NIGHTLY").is_some();
    let given = std::env::var("TAGMATCH_MESSAGES").map(|count| count.parse().unwrap());
    given.unwrap_or(if is_nightly { 100_000 } else { 10_000 })
}

pub(super) const NODES: usize = 3;
/// Of the machines together, where there are two.
pub(super) const ENDPOINTS: usize = 4;
/// Entries of a list.
pub(super) const TAGS: u32 = 32;
pub(super) const TAG_VALUES: usize = 4;
pub(super) const EAGER_LIMIT: u64 = 4096;
pub(super) const SEGMENTED_LIMIT: u64 = 8000;
/// Of payloads, in bytes: eager, in segments or by RDMA READ, by RDMA READ.
pub(super) const LENGTHS: [usize; 7] = [0, 1, 64, 1000, 4096, 7000, 12_000];
pub(super) const CONTENTS: usize = 8;
/// Messages until it is the turn of the others.
const TURN: usize = 1000;
pub(super) const POSTED_MAX: usize = 60;
pub(super) const OUTSTANDING_MAX: usize = 60;
/// Contexts of sends begin here.
pub(super) const SENDS: u64 = 1 << 32;
pub(super) const TURNS_MAX: u64 = 20_000_000;
