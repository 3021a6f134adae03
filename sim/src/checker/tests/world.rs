//! Small random runs of a world that matches correctly, and ways to spoil them.
//!
//! Not here: whether a spoilt one is still explained.

#![expect(clippy::cast_possible_truncation, reason = "small numbers of a small world")]
#![expect(clippy::wildcard_enum_match_arm, reason = "picks out a few observations")]

use std::collections::BTreeMap;

use tagmatch::ids::{Ignore, PeerId, Source, Tag};
use tagmatch::matching::{Envelope, Pattern, Stay};

use crate::checker::{MessageName, Observation, ReceiveName};

/// SplitMix64: short, and the same everywhere.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    pub(super) fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

/// How large a run is.
#[derive(Clone, Copy)]
pub(super) struct Size {
    pub(super) steps: usize,
    pub(super) peers: u32,
    pub(super) tags: u64,
    pub(super) pending_max: usize,
    pub(super) cancels: bool,
    /// Messages come in their senders' order, and on one path.
    pub(super) in_order: bool,
}

struct Arriving {
    name: MessageName,
    envelope: Envelope,
    sent: u32,
    outcome: Option<Option<ReceiveName>>,
}

/// The world: the naive matcher, and operations between their begin and end.
pub(super) struct World<'a> {
    random: &'a mut Random,
    size: Size,
    history: Vec<Observation>,
    posted: Vec<(ReceiveName, Pattern, Stay)>,
    unexpected: Vec<(MessageName, Envelope)>,
    arriving: Vec<Arriving>,
    cancels: BTreeMap<ReceiveName, Option<bool>>,
    /// Sent, but not accepted, by peer.
    sent: Vec<Vec<(u32, Envelope)>>,
    counts: Vec<u32>,
    receives: u32,
    messages: u32,
    /// Multi-receives that undecided messages were matched with.
    multi: Vec<ReceiveName>,
}

impl<'a> World<'a> {
    pub(super) fn run(random: &'a mut Random, size: Size) -> Vec<Observation> {
        let peers = size.peers as usize;
        let mut world = World {
            random,
            size,
            history: Vec::new(),
            posted: Vec::new(),
            unexpected: Vec::new(),
            arriving: Vec::new(),
            cancels: BTreeMap::new(),
            sent: vec![Vec::new(); peers],
            counts: vec![0; peers],
            receives: 0,
            messages: 0,
            multi: Vec::new(),
        };
        for _ in 0..size.steps {
            world.step();
        }
        world.drain();
        world.history
    }

    fn step(&mut self) {
        match self.random.below(if self.size.cancels { 13 } else { 10 }) {
            0..=2 => self.post(),
            3..=4 => self.accept(),
            5..=6 => self.place(),
            7..=8 => self.end(),
            9 => self.peek(),
            10 => self.call_cancel(),
            11 => self.place_cancel(),
            _ => self.answer_cancel(),
        }
    }

    fn pattern(&mut self) -> Pattern {
        let tag = Tag(self.random.next() % self.size.tags);
        let ignore = Ignore([0, 0, 1, 2, 3][self.random.below(5)]);
        let peer = PeerId(self.random.below(self.size.peers as usize) as u32);
        let source = if self.random.one_in(2) { Source::Any } else { Source::Peer(peer) };
        Pattern { tag, ignore, source }
    }

    fn first(&self, pattern: &Pattern) -> Option<usize> {
        self.unexpected.iter().position(|(_, envelope)| pattern.fits(envelope, None))
    }

    fn post(&mut self) {
        let receive = ReceiveName(self.receives);
        self.receives += 1;
        let pattern = self.pattern();
        let stay = if self.random.one_in(8) { Stay::Posted } else { Stay::Once };
        let took = self.first(&pattern).map(|at| self.unexpected.remove(at).0);
        if let Some(message) = took {
            self.decide(message);
        } else {
            self.posted.push((receive, pattern, stay));
        }
        self.history.push(Observation::Post { receive, pattern, stay, took });
    }

    fn peek(&mut self) {
        let pattern = self.pattern();
        let claim = self.random.one_in(2);
        let at = self.first(&pattern);
        let found = at.map(|at| self.unexpected[at].0);
        if let (Some(at), true) = (at, claim) {
            self.unexpected.remove(at);
        }
        if let Some(message) = found {
            self.decide(message);
        }
        self.history.push(Observation::Peek { pattern, found, claim });
    }

    /// A message that was found is not decided once more; half of them are decided before.
    fn decide(&mut self, message: MessageName) {
        if let Some(at) = self.arriving.iter().position(|arriving| arriving.name == message) {
            self.arriving.remove(at);
            if self.random.one_in(2) {
                self.history.push(Observation::Decided { message, receive: None });
            }
        }
    }

    fn accept(&mut self) {
        if self.arriving.len() >= self.size.pending_max {
            return;
        }
        let peer = self.random.below(self.size.peers as usize);
        let more = if self.size.in_order { 1 } else { 2 };
        while self.sent[peer].len() < more {
            let envelope =
                Envelope { tag: Tag(self.random.next() % self.size.tags), source: PeerId(peer as u32) };
            self.sent[peer].push((self.counts[peer], envelope));
            self.counts[peer] += 1;
        }
        let which = if more > 1 && self.random.one_in(4) { 1 } else { 0 };
        self.accept_sent(peer, which);
    }

    fn accept_sent(&mut self, peer: usize, which: usize) {
        let (sent, envelope) = self.sent[peer].remove(which);
        let name = MessageName(self.messages);
        self.messages += 1;
        let path = if self.size.in_order { 0 } else { self.random.below(2) as u8 };
        self.history.push(Observation::Accepted { message: name, envelope, sent, path });
        self.arriving.push(Arriving { name, envelope, sent, outcome: None });
        if self.random.one_in(4) && self.place_at(self.arriving.len() - 1) {
            let arriving = self.arriving.pop();
            if let Some((message, Some(Some(receive)))) = arriving.map(|it| (it.name, it.outcome)) {
                self.history.push(Observation::MatchedByDevice { message, receive });
                self.matched(receive);
            } else {
                self.history.push(Observation::Decided { message: name, receive: None });
            }
        }
    }

    fn place(&mut self) {
        if !self.arriving.is_empty() {
            let at = self.random.below(self.arriving.len());
            self.place_at(at);
        }
    }

    fn place_at(&mut self, at: usize) -> bool {
        let Arriving { name, envelope, sent, outcome } = self.arriving[at];
        if outcome.is_some() {
            return false;
        }
        let posted = self.posted.iter().position(|posted| posted.1.fits(&envelope, None));
        let pattern = posted.map(|at| self.posted[at].1);
        let overtakes = |earlier: &Envelope, its: u32| {
            earlier.source == envelope.source
                && its < sent
                && pattern.is_none_or(|pattern| pattern.fits(earlier, None))
        };
        let waiting = self.arriving.iter().filter(|other| other.outcome.is_none());
        if waiting.into_iter().any(|other| overtakes(&other.envelope, other.sent))
            || self.sent.iter().flatten().any(|(its, earlier)| overtakes(earlier, *its))
        {
            return false;
        }
        self.arriving[at].outcome = Some(match posted {
            Some(posted) => {
                let (receive, _, stay) = self.posted[posted];
                if stay == Stay::Once {
                    self.posted.remove(posted);
                } else {
                    self.multi.push(receive);
                }
                Some(receive)
            }
            None => {
                self.unexpected.push((name, envelope));
                None
            }
        });
        true
    }

    fn end(&mut self) {
        let placed: Vec<usize> =
            (0..self.arriving.len()).filter(|at| self.arriving[*at].outcome.is_some()).collect();
        if placed.is_empty() {
            return;
        }
        let arriving = self.arriving.remove(placed[self.random.below(placed.len())]);
        if let (message, Some(receive)) = (arriving.name, arriving.outcome) {
            self.history.push(Observation::Decided { message, receive });
            if let Some(receive) = receive {
                self.matched(receive);
            }
        }
    }

    /// A multi-receive may be released when all its matches are known.
    fn matched(&mut self, receive: ReceiveName) {
        if let Some(at) = self.multi.iter().position(|multi| *multi == receive) {
            self.multi.remove(at);
        }
        let at = self.posted.iter().position(|posted| posted.0 == receive);
        if let Some(at) = at
            && !self.multi.contains(&receive)
            && self.cancels.get(&receive).is_none_or(Option::is_none)
            && self.random.one_in(2)
        {
            self.posted.remove(at);
            self.history.push(Observation::Released { receive });
        }
    }

    fn call_cancel(&mut self) {
        if self.receives > 0 {
            let receive =
                ReceiveName(self.receives - 1 - self.random.below(self.receives.min(4) as usize) as u32);
            self.cancels.entry(receive).or_insert(None);
            self.history.push(Observation::CancelCalled { receive });
        }
    }

    fn place_cancel(&mut self) {
        let Some(receive) = self.a_cancel(None) else { return };
        let at = self.posted.iter().position(|posted| posted.0 == receive);
        if self.multi.contains(&receive) {
            return;
        }
        if let Some(at) = at {
            self.posted.remove(at);
        }
        self.cancels.insert(receive, Some(at.is_some()));
    }

    fn answer_cancel(&mut self) {
        let cancelled = self.random.one_in(2);
        if let Some(receive) = self.a_cancel(Some(cancelled)) {
            self.cancels.remove(&receive);
            self.history.push(Observation::CancelAnswered { receive, cancelled });
        }
    }

    fn a_cancel(&mut self, state: Option<bool>) -> Option<ReceiveName> {
        let such: Vec<ReceiveName> =
            self.cancels.iter().filter(|(_, at)| **at == state).map(|(name, _)| *name).collect();
        (!such.is_empty()).then(|| such[self.random.below(such.len())])
    }

    fn drain(&mut self) {
        for peer in 0..self.sent.len() {
            while self.size.in_order && !self.sent[peer].is_empty()
                || self.sent[peer].first().is_some_and(|first| first.0 + 1 < self.counts[peer])
            {
                self.accept_sent(peer, 0);
            }
        }
        // What was never accepted holds nobody up.
        self.sent.iter_mut().for_each(Vec::clear);
        while !self.arriving.is_empty() || !self.cancels.is_empty() {
            self.place();
            self.end();
            self.place_cancel();
            self.answer_cancel();
        }
    }
}

/// Changes something, so that it may not be explained any more.
pub(super) fn spoil(random: &mut Random, history: &mut [Observation]) {
    if history.len() < 2 {
        return;
    }
    match random.below(4) {
        0 => {
            let at = random.below(history.len() - 1);
            history.swap(at, at + 1);
        }
        1 => {
            swap_outcomes(random, history);
        }
        _ => {
            let receives = history.iter().filter(|it| matches!(it, Observation::Post { .. })).count() as u32;
            let messages =
                history.iter().filter(|it| matches!(it, Observation::Accepted { .. })).count() as u32;
            let receive = (!random.one_in(4)).then(|| ReceiveName(random.next() as u32 % receives.max(1)));
            let message = (!random.one_in(4)).then(|| MessageName(random.next() as u32 % messages.max(1)));
            for _ in 0..20 {
                let at = random.below(history.len());
                if change(&mut history[at], receive, message) {
                    return;
                }
            }
        }
    }
}

/// A peer is lost at some time, and what it had under way then is never decided. Whether there was any.
pub(super) fn lose_peer(random: &mut Random, history: &mut Vec<Observation>) -> bool {
    let at = random.below(history.len());
    let peer = PeerId(0);
    let its: Vec<MessageName> = history[..at]
        .iter()
        .filter_map(|it| match it {
            Observation::Accepted { message, envelope, .. } if envelope.source == peer => Some(*message),
            _ => None,
        })
        .collect();
    let rest = history.split_off(at);
    history.push(Observation::PeerLost { peer });
    let before = rest.len();
    history.extend(rest.into_iter().filter(|it| match it {
        Observation::Decided { message, .. } => !its.contains(message),
        _ => true,
    }));
    history.len() < at + 1 + before
}

fn change(observation: &mut Observation, other: Option<ReceiveName>, message: Option<MessageName>) -> bool {
    match observation {
        Observation::Decided { receive, .. } => *receive = other,
        Observation::MatchedByDevice { receive, .. } => match other {
            Some(other) => *receive = other,
            None => return false,
        },
        Observation::Post { took, .. } => *took = message,
        Observation::Peek { found, .. } => *found = message,
        Observation::CancelAnswered { cancelled, .. } => *cancelled = !*cancelled,
        Observation::Accepted { .. }
        | Observation::CancelCalled { .. }
        | Observation::Released { .. }
        | Observation::PeerLost { .. }
        | Observation::Vanished { .. }
        | Observation::GroupJoined { .. } => return false,
    }
    true
}

/// Two messages change places in their outcomes. Whether there were two.
pub(super) fn swap_outcomes(random: &mut Random, history: &mut [Observation]) -> bool {
    let names: Vec<MessageName> = history
        .iter()
        .filter_map(|it| match it {
            Observation::Accepted { message, .. } => Some(*message),
            _ => None,
        })
        .collect();
    if names.len() < 2 {
        return false;
    }
    let one = random.below(names.len());
    let two = (one + 1 + random.below(names.len() - 1)) % names.len();
    let (one, two) = (names[one], names[two]);
    let exchange = |name: &mut MessageName| {
        if *name == one {
            *name = two;
        } else if *name == two {
            *name = one;
        }
    };
    let outcome = |history: &[Observation], name| {
        history.iter().position(|it| {
            matches!(it, Observation::Decided { message, .. } | Observation::MatchedByDevice { message, .. }
                if *message == name)
        })
    };
    let (a, b) = (outcome(history, one), outcome(history, two));
    if let (Some(a), Some(b)) = (a, b) {
        let receive_of = |it: &Observation| match *it {
            Observation::Decided { receive, .. } => receive,
            Observation::MatchedByDevice { receive, .. } => Some(receive),
            _ => None,
        };
        let (to_a, to_b) = (receive_of(&history[b]), receive_of(&history[a]));
        history[a] = Observation::Decided { message: one, receive: to_a };
        history[b] = Observation::Decided { message: two, receive: to_b };
    }
    for observation in history.iter_mut() {
        match observation {
            Observation::Post { took: Some(message), .. }
            | Observation::Peek { found: Some(message), .. } => {
                exchange(message);
            }
            _ => {}
        }
    }
    true
}
