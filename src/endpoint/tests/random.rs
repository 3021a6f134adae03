//! Random runs by seed: whatever the network does, every operation ends exactly once, what is received is what was sent,
//! messages of one sender do not overtake, and nothing is left.

use std::collections::{HashMap, HashSet};

use super::super::{Completed, Config, Level, PeekAction, Send, Space};
use super::sim::{Receive, Sim, bytes, message, name, receive};
use super::world::{Random, Weather};
use crate::wire::Credits;

/// A message that was taken.
#[derive(Clone, Copy, Debug)]
struct Sent {
    from: usize,
    space: Space,
    tag: u64,
    length: usize,
    order: u64,
}

/// A run.
struct Run {
    sim: Sim,
    random: Random,
    count: usize,
    sent: HashMap<u64, Sent>,
    /// By endpoint: context, and what was posted.
    posted: Vec<Vec<(u64, Receive)>>,
    next: u64,
    /// Restarts and cuts so far: where there are some, messages may be lost.
    faults: usize,
    lives: Vec<u64>,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x5EED);
        let weather = Weather {
            delay: random.below(6),
            split: random.below(100),
            full: random.below(40),
            posted: random.below(100),
            holds: false,
        };
        let credits = Credits {
            headers: 20 + u32::try_from(random.below(50)).unwrap(),
            eager_messages: 1 + u32::try_from(random.below(8)).unwrap(),
            eager_bytes: 2000 + random.below(8000),
        };
        let config = Config {
            eager_limit: 200 + random.below(1800),
            segmented_limit: random.below(2) * 5000,
            credits,
            job_key: random.chance(30).then(|| vec![9; 16]),
            ..Config::default()
        };
        let count = 2 + usize::try_from(random.below(3)).unwrap();
        let tags = [0, 6][usize::try_from(seed % 2).unwrap()];
        let sim = Sim::listed(count, seed, weather, config, tags);
        Self {
            sim,
            random,
            count,
            sent: HashMap::new(),
            posted: vec![Vec::new(); count],
            next: 1,
            faults: 0,
            lives: vec![0; count],
        }
    }

    fn any(&mut self) -> usize {
        usize::try_from(self.random.below(self.count as u64)).unwrap()
    }

    fn space(&mut self) -> Space {
        if self.random.chance(70) { Space::Tagged } else { Space::Untagged }
    }

    fn send(&mut self) {
        let (from, to, space) = (self.any(), self.any(), self.space());
        let length = match self.random.below(4) {
            0 => self.random.below(65),
            1 => self.random.below(1000),
            2 => self.random.below(3000),
            _ => self.random.below(20_000),
        };
        let length = usize::try_from(length).unwrap();
        let tag = self.random.below(3);
        let level = [Level::Inject, Level::Transmit, Level::Delivery, Level::Match]
            [usize::try_from(self.random.below(4)).unwrap()];
        let context = self.next;
        self.next += 1;
        // What it is known by is in front, if there is room.
        let mut text = bytes(context, length);
        for (at, byte) in context.to_be_bytes().into_iter().enumerate().take(length) {
            text[at] = byte;
        }
        let buffer = self.sim.world.allocate(&text);
        let cq_data = self.random.chance(50).then_some(u32::try_from(context).unwrap());
        let send = Send { space, level, cq_data, ..message(to, tag, buffer, context) };
        if self.sim.at(from).send(&send).is_ok() {
            self.sent.insert(context, Sent { from, space, tag, length, order: context });
        }
        self.sim.collect(from);
    }

    fn post(&mut self, at: usize, space: Space, any: bool) {
        let context = self.next;
        self.next += 1;
        let source = (!any && self.random.chance(40)).then(|| self.any());
        let ignore = if any || self.random.chance(30) { u64::MAX } else { 0 };
        let wanted =
            Receive { space, source, ignore, length: 20_000, ..receive(self.random.below(3), 0, context) };
        self.posted[at].push((context, wanted));
        self.sim.post(at, &wanted);
    }

    fn step(&mut self, faults: bool) {
        match self.random.below(100) {
            0..40 => self.send(),
            40..70 => {
                let (at, space) = (self.any(), self.space());
                self.post(at, space, false);
            }
            70..75 => {
                let at = self.any();
                let context = self.next;
                self.next += 1;
                let action = [PeekAction::Look, PeekAction::Claim][usize::from(self.random.chance(50))];
                let tag = self.random.below(3);
                let found = self.sim.peek(at, tag, action, context);
                if action == PeekAction::Claim && matches!(found, Completed::Peeked(_)) {
                    let wanted = Receive { length: 20_000, ..receive(tag, 0, context) };
                    let buffer = self.sim.world.allocate(&[0; 20_000]);
                    self.posted[at].push((context, wanted));
                    self.sim.at(at).receive_claimed(context, buffer, 7).unwrap();
                    self.sim.collect(at);
                }
            }
            75..78 => {
                let at = self.any();
                if let Some(&(context, _)) = self.posted[at].last() {
                    self.sim.at(at).cancel(context);
                    self.sim.collect(at);
                }
            }
            78 if faults => {
                let connections = self.sim.world.lock().connections.len() as u64;
                if connections > 0 {
                    let connection = usize::try_from(self.random.below(connections)).unwrap();
                    self.sim.world.lock().cut(connection);
                    self.faults += 1;
                }
            }
            79 if faults => {
                let (at, told) = (self.any(), self.random.chance(50));
                self.restart(at, told);
            }
            _ => self.sim.step(),
        }
    }

    fn restart(&mut self, at: usize, told: bool) {
        self.faults += 1;
        self.lives[at] += 1;
        self.sim.kill(at, told);
        self.sim.start(at);
        for other in 0..self.count {
            self.sim.introduce(at, other);
        }
        // What it was asked and had said is gone with it.
        self.sent.retain(|_, sent| sent.from != at);
        self.posted[at].clear();
        self.sim.said[at].clear();
    }

    /// Everything that is on its way arrives, and everything that is left is received or cancelled.
    fn finish(&mut self) {
        for _ in 0..40 {
            self.sim.steps(60);
            for at in 0..self.count {
                for space in [Space::Tagged, Space::Untagged] {
                    for _ in 0..self.sim.at(at).depths(space).1 {
                        self.post(at, space, true);
                    }
                }
            }
        }
        for at in 0..self.count {
            for (context, _) in self.posted[at].clone() {
                self.sim.at(at).cancel(context);
            }
            self.sim.collect(at);
        }
        self.sim.steps(200);
        if self.faults > 0 {
            // Whoever waits on a connection that is dead without a word hears of it when it is written to.
            for from in 0..self.count {
                for to in 0..self.count {
                    let buffer = self.sim.world.allocate(b"");
                    let _ = self.sim.at(from).send(&message(to, 999, buffer, u64::MAX));
                }
            }
            self.sim.steps(2000);
        }
    }

    fn check(&mut self, seed: u64) {
        for (context, sent) in &self.sent {
            let ends = self.sim.of(sent.from, *context);
            assert_eq!(ends.len(), 1, "seed {seed}: {context} {sent:?} {ends:?}");
            if self.faults == 0 {
                assert_eq!(ends, [Completed::Sent], "seed {seed}");
            }
        }
        for at in 0..self.count {
            assert_eq!(self.sim.at(at).sends_in_progress(), 0, "seed {seed}");
            let posted = self.sim.at(at).depths(Space::Tagged).0 + self.sim.at(at).depths(Space::Untagged).0;
            assert_eq!(posted, 0, "seed {seed}");
            self.check_received(seed, at);
        }
        if self.faults == 0 {
            let received: u64 = (0..self.count).map(|at| self.sim.at(at).statistics().received).sum();
            assert_eq!(received, self.sent.len() as u64, "seed {seed}");
            for from in 0..self.count {
                (0..self.count).for_each(|to| self.check_credit(seed, from, to));
            }
        }
    }

    /// What one may send is what the other takes.
    fn check_credit(&mut self, seed: u64, from: usize, to: usize) {
        let there = self.sim.at(from).core.peers.find(&name(to)).unwrap();
        let here = self.sim.at(to).core.peers.find(&name(from)).unwrap();
        let balance = self.sim.at(from).core.peers[there].balance.left();
        let allowance = self.sim.at(to).core.peers[here].allowance.left();
        assert_eq!(balance, allowance, "seed {seed}: from {from} to {to}");
    }

    fn check_received(&mut self, seed: u64, at: usize) {
        let mut got: Vec<(u64, Receive, Sent)> = Vec::new();
        let mut seen = HashSet::new();
        for (order, (context, wanted)) in self.posted[at].clone().into_iter().enumerate() {
            let ends: Vec<Completed> = self.sim.said[at]
                .iter()
                .filter(|said| said.context == context && said.flags == 7)
                .map(|said| said.what)
                .collect();
            assert_eq!(ends.len(), 1, "seed {seed}: {context} {wanted:?} {ends:?}");
            let Completed::Received { message, address, placed, .. } = ends[0] else {
                assert!(ends[0] == Completed::Cancelled || self.faults > 0, "seed {seed}: {ends:?}");
                continue;
            };
            let text = self.sim.world.read(address, placed);
            let id = message
                .cq_data
                .map(u64::from)
                .or_else(|| text.first_chunk::<8>().map(|id| u64::from_be_bytes(*id)));
            let Some(id) = id else { continue };
            assert!(seen.insert(id), "seed {seed}: {id} came twice");
            let mut expected = bytes(id, text.len());
            for (place, byte) in id.to_be_bytes().into_iter().enumerate().take(text.len()) {
                expected[place] = byte;
            }
            assert_eq!(text, expected, "seed {seed}");
            let Some(&sent) = self.sent.get(&id) else {
                assert!(self.faults > 0, "seed {seed}: {id} was not sent");
                continue;
            };
            assert_eq!((sent.length as u64, sent.space), (message.length, wanted.space), "seed {seed}");
            if sent.space == Space::Tagged {
                assert_eq!(sent.tag, message.tag.0, "seed {seed}");
                assert!(wanted.ignore != 0 || wanted.tag == sent.tag, "seed {seed}");
            }
            assert_eq!(message.source.map(|address| address.0), Some(sent.from as u64), "seed {seed}");
            assert!(wanted.source.is_none_or(|source| source == sent.from), "seed {seed}");
            got.push((order as u64, wanted, sent));
        }
        let fits = |wanted: &Receive, sent: &Sent| {
            let tag = sent.space == Space::Untagged || wanted.ignore != 0 || wanted.tag == sent.tag;
            tag && wanted.source.is_none_or(|source| source == sent.from)
        };
        for (first, wanted, sent) in &got {
            for (second, other, later) in &got {
                let same = sent.from == later.from && sent.space == later.space && sent.order < later.order;
                if same && fits(wanted, later) && fits(other, sent) {
                    assert!(first < second, "seed {seed}: {later:?} overtook {sent:?}");
                }
            }
        }
    }
}

/// Adds what happened to the counts.
fn run(seed: u64, faults: bool, happened: &mut [u64; 11]) {
    let mut run = Run::new(seed);
    for _ in 0..600 {
        run.step(faults);
    }
    run.finish();
    run.check(seed);
    for at in 0..run.count {
        let s = *run.sim.at(at).statistics();
        let counts = [
            s.sent_eager,
            s.sent_segmented,
            s.sent_rendezvous,
            s.without_credit,
            s.again_full,
            s.unexpected,
            s.crossed,
            s.cancelled,
            s.matched_by_device,
            s.lost,
            s.restarted,
        ];
        for (sum, count) in happened.iter_mut().zip(counts) {
            *sum += count;
        }
    }
}

#[test]
fn nothing_is_lost_doubled_or_overtaken_where_connections_hold() {
    let mut happened = [0; 11];
    for seed in 0..seeds() {
        run(seed, false, &mut happened);
    }
    assert!(happened[..9].iter().all(|count| *count > 0), "{happened:?}");
    assert_eq!(happened[9..], [0, 0]);
}

#[test]
fn every_operation_ends_once_where_connections_are_cut_and_peers_restart() {
    let mut happened = [0; 11];
    for seed in 0..seeds() {
        run(seed, true, &mut happened);
    }
    assert!(happened.iter().all(|count| *count > 0), "{happened:?}");
}

/// More of them for a long run.
fn seeds() -> u64 {
    std::env::var("TAGMATCH_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(150)
}
