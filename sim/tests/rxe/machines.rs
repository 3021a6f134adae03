//! Endpoints on two machines, each in a process of its own: the same traffic in rounds, of which a machine knows by itself
//! what the other sends.
//!
//! A round is so many messages from each endpoint to each other one; what they are follows from their names. Nobody
//! begins a round before all messages of the last one have come. So the others are at most one round ahead, and what
//! they may have sent is put into the history before it can have come.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::*;
use crate::inside::{Machine, on_machines};

#[test]
fn endpoints_of_two_machines_match_what_comes_also_where_packets_are_lost_doubled_and_overtake_each_other() {
    let name = concat!(
        module_path!(),
        "::endpoints_of_two_machines_match_what_comes_also_where_packets_are_lost_doubled_and_overtake_each_other"
    );
    on_machines(name, |machine| {
        Half::run(machine, "good", None);
        let words = "root netem limit 10000 delay 2ms loss 1% duplicate 1% reorder 5%";
        let lossy = Command::new("tc")
            .args(["qdisc", "add", "dev", &machine.interface])
            .args(words.split(' '))
            .status();
        assert!(lossy.unwrap().success());
        Half::run(machine, "lossy", None);
        Half::run(machine, "lossy and listed", Some(TAGS));
    });
}

/// The endpoints of this machine.
struct Half<'a> {
    machine: &'a Machine,
    nodes: Vec<Node>,
    /// By node: receives of anything.
    wildcards: Vec<HashSet<u64>>,
    /// By node: messages received, by sender.
    received: Vec<[u32; ENDPOINTS]>,
    payloads: Vec<[Memory; CONTENTS]>,
    random: Random,
    began: Instant,
    sends: u64,
    ended_sends: u64,
}

/// What a message is, by its sender, its receiver and its number between them.
struct Sent {
    tag: Tag,
    length: usize,
    content: usize,
    level: Level,
}

impl Sent {
    fn new(from: usize, to: usize, number: u32) -> Self {
        let mut random = Random(1 + u64::from(number) * 64 + (from * ENDPOINTS + to) as u64);
        let levels = [Level::Inject, Level::Transmit, Level::Delivery, Level::Match];
        Self {
            tag: Tag(random.below(TAG_VALUES) as u64),
            length: random.below(LENGTHS.len()),
            content: random.below(CONTENTS),
            level: levels[random.below(levels.len())],
        }
    }
}

impl<'a> Half<'a> {
    fn run(machine: &'a Machine, phase: &str, tags: Option<u32>) {
        let nodes = (0..HERE).map(|_| Node::new(endpoint(&machine.device, tags, &|config| config))).collect();
        let payloads = LENGTHS
            .iter()
            .map(|length| std::array::from_fn(|content| Memory::new(pattern(content, *length))));
        let mut half = Self {
            machine,
            nodes,
            wildcards: vec![HashSet::new(); HERE],
            received: vec![[0; ENDPOINTS]; HERE],
            payloads: payloads.collect(),
            random: Random(11 + machine.host as u64),
            began: Instant::now(),
            sends: 0,
            ended_sends: 0,
        };
        half.introduce(phase);
        let pairs = ENDPOINTS * (ENDPOINTS - 1);
        let rounds = u32::try_from(messages() / pairs).unwrap() / ROUND + 1;
        half.expect(0);
        for round in 0..rounds {
            if round + 1 < rounds {
                half.expect(round + 1);
            }
            half.send_all(round);
            half.receive_all(round);
        }
        half.finish(phase);
        half.check(tags);
    }

    /// The number of a node of this machine among all.
    fn number(&self, node: usize) -> usize {
        self.machine.host * HERE + node
    }

    fn file(&self, phase: &str, what: &str, number: usize) -> PathBuf {
        self.machine.share.join(format!("{phase}-{what}-{number}"))
    }

    fn write(&self, phase: &str, what: &str, number: usize, bytes: &[u8]) {
        let new = self.file(phase, "new", number);
        fs::write(&new, bytes).unwrap();
        fs::rename(new, self.file(phase, what, number)).unwrap();
    }

    /// All learn where all are.
    fn introduce(&mut self, phase: &str) {
        for node in 0..HERE {
            self.write(phase, "name", self.number(node), self.nodes[node].endpoint.name());
        }
        for number in 0..ENDPOINTS {
            let file = self.file(phase, "name", number);
            let name = loop {
                match fs::read(&file) {
                    Ok(name) => break name,
                    Err(_) => self.step(),
                }
            };
            for node in &mut self.nodes {
                node.endpoint.set_address(Address(number as u64), &name).unwrap();
            }
        }
    }

    /// Messages of a round may come from now on.
    fn expect(&mut self, round: u32) {
        for at in 0..HERE {
            let to = self.number(at);
            for from in (0..ENDPOINTS).filter(|from| *from != to) {
                for number in round * ROUND..(round + 1) * ROUND {
                    let Sent { tag, .. } = Sent::new(from, to, number);
                    let envelope = Envelope { tag, source: PeerId(u32::try_from(from).unwrap()) };
                    let message = MessageName(name(from, number));
                    self.nodes[at].history.push(Observation::Accepted {
                        message,
                        envelope,
                        sent: number,
                        path: 0,
                    });
                }
            }
        }
    }

    fn send_all(&mut self, round: u32) {
        for number in round * ROUND..(round + 1) * ROUND {
            for (at, to) in (0..HERE).flat_map(|at| (0..ENDPOINTS).map(move |to| (at, to))) {
                if self.number(at) != to {
                    self.send(at, to, number);
                    self.post(at);
                    self.step();
                }
            }
        }
    }

    fn send(&mut self, at: usize, to: usize, number: u32) {
        let from = self.number(at);
        let Sent { tag, length, content, level } = Sent::new(from, to, number);
        let send = Send {
            space: Space::Tagged,
            to: Address(to as u64),
            tag,
            payload: Payload::Memory(self.payloads[length][content].buffer()),
            cq_data: Some(name(from, number)),
            level,
            more: false,
            context: SENDS,
            flags: 0,
        };
        loop {
            match self.nodes[at].endpoint.send(&send) {
                Ok(()) => break,
                Err(SendRefused::Again) => self.step(),
                Err(refused) => panic!("from {from} to {to}: {refused}"),
            }
        }
        self.sends += 1;
    }

    /// A receive, or the end of one.
    fn post(&mut self, at: usize) {
        let own = self.number(at);
        let node = &mut self.nodes[at];
        if self.random.below(20) == 0 {
            let posted = node.posted.keys().copied().min();
            return posted.into_iter().for_each(|context| node.cancel(context));
        }
        if node.posted.len() >= POSTED_MAX {
            return;
        }
        let source = (own + 1 + self.random.below(ENDPOINTS - 1)) % ENDPOINTS;
        let source = if self.random.below(3) == 0 { peer(source) } else { Source::Any };
        let ignore = if self.random.below(4) == 0 { Ignore(u64::MAX) } else { Ignore::NONE };
        node.post(Pattern { tag: Tag(self.random.below(TAG_VALUES) as u64), ignore, source });
    }

    /// All messages of the rounds up to this one.
    fn receive_all(&mut self, round: u32) {
        let wanted = (round + 1) * ROUND;
        loop {
            let mut is_waiting = false;
            for at in 0..HERE {
                let own = self.number(at);
                let mut others = (0..ENDPOINTS).filter(|from| *from != own);
                if others.all(|from| self.received[at][from] >= wanted) {
                    continue;
                }
                is_waiting = true;
                if self.wildcards[at].is_empty() {
                    self.wildcards[at].insert(u64::from(self.nodes[at].posts));
                    self.nodes[at].post(Pattern {
                        tag: Tag(0),
                        ignore: Ignore(u64::MAX),
                        source: Source::Any,
                    });
                }
            }
            if !is_waiting {
                return;
            }
            self.step();
        }
    }

    fn step(&mut self) {
        let now = self.began.elapsed();
        for at in 0..HERE {
            let to = self.number(at);
            self.nodes[at].endpoint.progress(now).unwrap();
            while let Some(completion) = self.nodes[at].endpoint.poll_completion() {
                let context = completion.context;
                self.wildcards[at].remove(&context);
                let memory = match completion.what {
                    Completed::Sent => {
                        self.ended_sends += 1;
                        continue;
                    }
                    Completed::Cancelled => self.nodes[at].ended(context, None),
                    Completed::Received { message, placed, .. } => {
                        let name = message.cq_data.unwrap();
                        let (from, number) = ((name >> NUMBER_BITS) as usize, name & NUMBER_MASK);
                        let sent = Sent::new(from, to, number);
                        assert_eq!((message.length, placed), (LENGTHS[sent.length] as u64, message.length));
                        let memory = self.nodes[at].ended(context, Some(name));
                        let bytes = self.payloads[sent.length][sent.content].bytes();
                        assert!(memory.bytes()[..bytes.len()] == bytes, "{number} of {from} is not whole");
                        self.received[at][from] += 1;
                        memory
                    }
                    other => panic!("{context}: {other:?}"),
                };
                self.nodes[at].free.push(memory);
            }
        }
        std::thread::yield_now();
    }

    /// Every operation ends, here and there.
    fn finish(&mut self, phase: &str) {
        for node in &mut self.nodes {
            let posted: Vec<u64> = node.posted.keys().copied().collect();
            posted.into_iter().for_each(|context| node.cancel(context));
        }
        while self.ended_sends < self.sends || self.nodes.iter().any(|node| !node.posted.is_empty()) {
            self.step();
        }
        self.write(phase, "done", self.machine.host, b"");
        let other = self.file(phase, "done", 1 - self.machine.host);
        while !other.exists() {
            self.step();
        }
    }

    fn check(&self, tags: Option<u32>) {
        for node in &self.nodes {
            let checked = checker::check(&node.history, checker::Options::default());
            assert!(checked.is_ok(), "{checked:?}");
            let own = node.endpoint.statistics();
            assert_eq!((own.lost, own.connect_failed, own.protocol_errors), (0, 0, 0));
            assert!(own.sent_eager > 0 && own.sent_rendezvous > 0 && own.unexpected > 0, "{own:?}");
            assert_eq!(own.matched_by_device > 0, tags.is_some(), "{own:?}");
        }
    }
}

/// What a message is called where it comes, and its remote data.
fn name(from: usize, number: u32) -> u32 {
    u32::try_from(from).unwrap() << NUMBER_BITS | number
}

const NUMBER_BITS: u32 = 24;
const NUMBER_MASK: u32 = (1 << NUMBER_BITS) - 1;
/// Endpoints of a machine.
const HERE: usize = ENDPOINTS / 2;
/// Messages of a round between two endpoints.
const ROUND: u32 = 20;
