//! Many endpoints that all connect at once, some of which close in the midst; and addresses that are inserted and removed
//! at random while messages come and go: B28, B29.

use std::collections::{HashMap, HashSet};

use super::common::pair::{ANY, pattern};
use super::common::{ROUNDS, Received, Side, minus};
use super::order::Random;
use super::peers::{at, close, port};
use tagmatch::provider::abi;

/// One of many: in each round it sends one message to each, itself too, and hears one of each.
struct Member {
    side: Side,
    /// Its numbers of all.
    numbers: Vec<u64>,
    /// To whom it has still to send.
    left: Vec<usize>,
    buffers: Vec<[u8; 8]>,
    heard: HashSet<usize>,
}

/// All of them, and who closes in this round.
struct Crowd {
    members: Vec<Member>,
    names: Vec<Vec<u8>>,
    random: Random,
    round: u64,
    gone: Option<usize>,
}

const MEMBERS: usize = 32;

impl Member {
    fn new(side: Side, names: &[Vec<u8>]) -> Self {
        let numbers = names.iter().map(|name| side.insert(name)).collect();
        Self { side, numbers, left: vec![], buffers: vec![], heard: HashSet::new() }
    }

    /// A receive for each: half of them name who it is, and stand before those for anybody.
    fn post(&mut self, round: u64) {
        self.buffers = vec![[0; 8]; MEMBERS];
        let all = self.buffers.iter_mut().enumerate();
        let (named, any): (Vec<_>, Vec<_>) = all.partition(|(from, _)| from % 2 == 0);
        for (from, buffer) in named.into_iter().chain(any) {
            let source = if from % 2 == 0 { self.numbers[from] } else { ANY };
            assert_eq!(self.side.receive(source, round, 0, buffer, from as u64), 0);
        }
    }

    /// Send to the next, and hear what there is.
    fn turn(&mut self, own: usize, round: u64, gone: Option<usize>) {
        if let Some(&other) = self.left.last() {
            match self.side.inject(self.numbers[other], round, &(own as u64).to_ne_bytes(), None) {
                0 => drop(self.left.pop()),
                again if again == minus(abi::FI_EAGAIN) => self.left.rotate_right(1),
                error => {
                    assert_eq!(Some(other), gone, "{own} to {other}: {error}");
                    self.left.pop();
                }
            }
        }
        while let Some(end) = self.side.poll() {
            let Received::Ok { context, length: 8, tag, source, .. } = end else { panic!("{own}: {end:?}") };
            assert_eq!(tag, round, "{own}");
            let bytes = self.buffers[usize::try_from(context).unwrap()];
            let from = usize::try_from(u64::from_ne_bytes(bytes)).unwrap();
            assert_eq!(source, self.numbers[from], "{own} from {from}");
            assert!(self.heard.insert(from), "{own} heard {from} twice");
        }
    }

    /// Nothing stays of a round.
    fn clear(&mut self, round: u64) {
        for context in 0..MEMBERS as u64 {
            assert_eq!(self.side.cancel(context), 0);
        }
        while let Some(end) = self.side.poll() {
            assert!(matches!(end, Received::Error { error: abi::FI_ECANCELED, .. }), "{end:?}");
        }
        let flags = abi::FI_PEEK | abi::FI_DISCARD;
        while {
            assert_eq!(self.side.receive_message(round, 0, None, 99, flags), 0);
            matches!(self.side.next(&[]), Received::Ok { .. })
        } {}
    }
}

impl Crowd {
    fn new() -> Self {
        let sides: Vec<Side> = (0..MEMBERS).map(|_| Side::lasting()).collect();
        let names: Vec<Vec<u8>> = sides.iter().map(Side::name).collect();
        let members = sides.into_iter().map(|side| Member::new(side, &names)).collect();
        Self { members, names, random: Random(3), round: 0, gone: None }
    }

    fn begin(&mut self) {
        (self.round, self.gone) = (self.round + 1, None);
        for member in &mut self.members {
            member.left = (0..MEMBERS).collect();
            for _ in 0..MEMBERS {
                member.left.swap(self.random.below(MEMBERS), self.random.below(MEMBERS));
            }
            member.heard.clear();
            member.post(self.round);
        }
    }

    /// It closes while others call it, and comes back under its name, with another life.
    fn restart(&mut self, victim: usize) {
        let dead = self.members.remove(victim);
        let others: Vec<&Side> = self.members.iter().map(|member| &member.side).collect();
        close(dead.side, &others);
        self.members.insert(victim, Member::new(at(port(&self.names[victim])), &self.names));
        self.gone = Some(victim);
    }

    fn turn(&mut self) {
        for (own, member) in self.members.iter_mut().enumerate() {
            if self.gone == Some(own) {
                // It takes part in the next round.
                assert_eq!(member.side.poll(), None);
            } else {
                member.turn(own, self.round, self.gone);
            }
        }
    }

    /// Who has still to send to whom, and to hear of whom.
    fn missing(&self) -> Vec<(usize, Vec<usize>, Vec<usize>)> {
        let of = |own: usize| {
            let Member { left, heard, .. } = &self.members[own];
            (own, left.clone(), (0..MEMBERS).filter(|from| !heard.contains(from)).collect::<Vec<_>>())
        };
        (0..MEMBERS).map(of).filter(|(_, left, heard)| !left.is_empty() || !heard.is_empty()).collect()
    }

    /// Whether all have sent to all, and heard all but who is gone.
    fn is_over(&self) -> bool {
        let stays = |own: &usize| Some(*own) != self.gone;
        (0..MEMBERS).filter(stays).all(|own| {
            let Member { left, heard, .. } = &self.members[own];
            left.is_empty() && (0..MEMBERS).filter(stays).all(|from| heard.contains(&from))
        })
    }
}

#[test]
fn b28_many_that_connect_to_each_other_at_once_are_all_heard_once_also_while_some_close_and_come_back() {
    let mut crowd = Crowd::new();
    for round in 0..6 {
        crowd.begin();
        // At first all connect; later one is gone in each round, sooner or later.
        if round > 0 {
            (0..crowd.random.below(60)).for_each(|_| crowd.turn());
            let victim = crowd.random.below(MEMBERS);
            crowd.restart(victim);
        }
        for turn in 0.. {
            assert!(turn < ROUNDS, "round {round} is never over: {:?}", crowd.missing());
            crowd.turn();
            if crowd.is_over() {
                break;
            }
        }
        let (round, gone) = (crowd.round, crowd.gone);
        let stays = |(own, _): &(usize, &mut Member)| Some(*own) != gone;
        crowd.members.iter_mut().enumerate().filter(stays).for_each(|(_, member)| member.clear(round));
    }
}

/// Lengths of what is sent: eager, not in one read, and by rendezvous.
const LENGTHS: [usize; 6] = [16, 16, 900, 16_384, 70_000, 1 << 20 | 9];
const TAGS: usize = 3;
const OTHERS: usize = 6;
/// To the others.
const BACK: u64 = 1000;

/// One of those that send.
struct Other {
    side: Option<Side>,
    name: Vec<u8>,
    to: u64,
    /// Its number at the one in the middle.
    number: Option<u64>,
    /// What it has sent in this life and was not told of.
    pending: HashSet<u64>,
    /// How many in all its lives.
    sent: u64,
    buffer: Vec<u8>,
}

/// One in the middle whose addresses change, and others that send to it.
struct Churn {
    hub: Side,
    others: Vec<Other>,
    random: Random,
    /// Who may be received by a receive, and what is left to use.
    posted: HashMap<u64, (Option<usize>, u64)>,
    buffers: Vec<Vec<u8>>,
    free: Vec<usize>,
    next: u64,
    /// The newest that was received, by sender and tag.
    newest: HashMap<(usize, u64), u64>,
    received: HashSet<u64>,
    /// What the one in the middle has sent and was not told of.
    back: HashSet<u64>,
}

/// A message's number: who sent it, and which of its it was.
fn message(from: usize, number: u64) -> u64 {
    (from as u64) << 32 | number
}

impl Churn {
    fn new(seed: u64) -> Self {
        let hub = Side::new();
        let name = hub.name();
        let others = (0..OTHERS).map(|_| {
            let side = Side::lasting();
            let (to, name) = (side.insert(&name), side.name());
            let mut buffer = vec![0; 16];
            assert_eq!(side.receive(ANY, BACK, 0, &mut buffer, BACK), 0);
            Other { side: Some(side), name, to, number: None, pending: HashSet::new(), sent: 0, buffer }
        });
        Self {
            others: others.collect(),
            hub,
            random: Random(seed),
            posted: HashMap::new(),
            buffers: vec![vec![0; LENGTHS[5]]; 24],
            free: (0..24).collect(),
            next: 1,
            newest: HashMap::new(),
            received: HashSet::new(),
            back: HashSet::new(),
        }
    }

    fn next(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Everything that the one in the middle has to say.
    fn hear(&mut self) {
        while let Some(end) = self.hub.poll() {
            let context = end.context();
            if self.back.remove(&context) {
                continue;
            }
            let (of, tag) = self.posted.remove(&context).unwrap_or_else(|| panic!("{end:?} twice"));
            let place = usize::try_from(context & 0xff).unwrap();
            self.free.push(place);
            let Received::Ok { length, tag: got, source, .. } = end else {
                let Received::Error { error, .. } = end else { unreachable!() };
                let may_be = [abi::FI_ECANCELED, abi::FI_ECONNRESET];
                assert!(may_be.contains(&error), "{end:?}");
                continue;
            };
            let text = &self.buffers[place][..length];
            let id = u64::from_ne_bytes(text[..8].try_into().unwrap());
            let from = usize::try_from(id >> 32).unwrap();
            assert_eq!(got, tag);
            assert_eq!(u64::from_ne_bytes(text[8..16].try_into().unwrap()), tag);
            assert!(text[16..] == pattern(length - 16, u8::try_from(id & 0x7f).unwrap())[..], "{end:?}");
            assert!(of.is_none_or(|of| of == from), "a receive for {of:?} took what {from} sent");
            assert_eq!(source, self.others[from].number.unwrap_or(abi::FI_ADDR_NOTAVAIL), "of {from}");
            assert!(self.received.insert(id), "{from} {id:x} came twice");
            // Longer ones are read where a list matches, and end when they are here, in any order.
            if length < LENGTHS[4] {
                let newest = self.newest.insert((from, tag), id).unwrap_or(0);
                assert!(newest < id, "{from}: {newest:x} before {id:x}");
            }
        }
    }

    fn hear_others(&mut self) {
        for (from, other) in self.others.iter_mut().enumerate() {
            let Some(side) = &other.side else { continue };
            while let Some(end) = side.poll() {
                if end.context() == BACK {
                    assert!(matches!(end, Received::Ok { .. }), "{end:?}");
                    assert_eq!(side.receive(ANY, BACK, 0, &mut other.buffer, BACK), 0);
                    continue;
                }
                assert!(matches!(end, Received::Ok { .. }), "{from}: {end:?}");
                assert!(other.pending.remove(&end.context()), "{from}: {end:?}");
            }
        }
    }

    fn send(&mut self, from: usize) {
        let (tag, length) = (self.random.below(TAGS) as u64, LENGTHS[self.random.below(LENGTHS.len())]);
        let flags = [0, abi::FI_DELIVERY_COMPLETE, abi::FI_MATCH_COMPLETE][self.random.below(3)];
        let other = &mut self.others[from];
        let Some(side) = &other.side else { return };
        if other.pending.len() > 20 {
            return;
        }
        let id = message(from, other.sent + 1);
        let mut text = id.to_ne_bytes().to_vec();
        text.extend(tag.to_ne_bytes());
        text.extend(pattern(length - 16, u8::try_from(id & 0x7f).unwrap()));
        let text: &'static [u8] = text.leak();
        match side.send_message(other.to, tag, &[text], 0, id, flags | abi::FI_COMPLETION) {
            0 => {
                other.sent += 1;
                other.pending.insert(id);
            }
            again => assert_eq!(again, minus(abi::FI_EAGAIN)),
        }
    }

    fn post(&mut self) {
        if self.free.is_empty() {
            return self.cancel();
        }
        let named: Vec<usize> = (0..OTHERS).filter(|from| self.others[*from].number.is_some()).collect();
        let is_named = !named.is_empty() && self.random.below(2) == 0;
        let of = is_named.then(|| named[self.random.below(named.len())]);
        let (tag, context) = (self.random.below(TAGS) as u64, self.context());
        self.receive(of, tag, context);
    }

    /// A name for a receive, and with it a buffer.
    fn context(&mut self) -> u64 {
        let place = self.free.pop().unwrap();
        self.next() << 8 | place as u64
    }

    fn receive(&mut self, of: Option<usize>, tag: u64, context: u64) {
        let source = of.map_or(ANY, |of| self.others[of].number.unwrap());
        self.posted.insert(context, (of, tag));
        let buffer = &mut self.buffers[usize::try_from(context & 0xff).unwrap()];
        assert_eq!(self.hub.receive(source, tag, 0, buffer, context), 0);
    }

    fn cancel(&mut self) {
        let mut all: Vec<u64> = self.posted.keys().copied().collect();
        all.sort_unstable();
        if !all.is_empty() {
            let context = all[self.random.below(all.len())];
            assert_eq!(self.hub.cancel(context), 0);
        }
    }

    fn insert_or_remove(&mut self, of: usize) {
        self.hear();
        let other = &mut self.others[of];
        other.number = match other.number {
            Some(number) => {
                assert_eq!(self.hub.remove(number), 0);
                None
            }
            None => Some(self.hub.insert(&other.name)),
        };
    }

    fn send_back(&mut self, to: usize) {
        let Some(number) = self.others[to].number else { return };
        let flags = [abi::FI_DELIVERY_COMPLETE, abi::FI_MATCH_COMPLETE][self.random.below(2)];
        let context = self.next() << 8 | 0xff;
        let result = self.hub.send_message(number, BACK, &[b"back"], 0, context, flags | abi::FI_COMPLETION);
        if result == 0 {
            self.back.insert(context);
        } else {
            assert!(
                [abi::FI_EAGAIN, abi::FI_ECONNRESET, abi::FI_ECONNREFUSED].map(minus).contains(&result),
                "{result}"
            );
        }
    }

    /// It closes, or comes back under its name.
    fn stop_or_start(&mut self, of: usize) {
        self.hear();
        self.hear_others();
        if let Some(side) = self.others[of].side.take() {
            let mut all: Vec<&Side> = self.others.iter().filter_map(|other| other.side.as_ref()).collect();
            all.push(&self.hub);
            close(side, &all);
            self.others[of].pending.clear();
            self.hear();
            return;
        }
        let side = at(port(&self.others[of].name));
        let other = &mut self.others[of];
        assert_eq!(side.name(), other.name);
        other.to = side.insert(&self.hub.name());
        assert_eq!(side.receive(ANY, BACK, 0, &mut other.buffer, BACK), 0);
        other.side = Some(side);
    }

    fn turn(&mut self) {
        let other = self.random.below(OTHERS);
        match self.random.below(100) {
            0..35 => self.send(other),
            35..65 => self.post(),
            65..70 => self.cancel(),
            70..80 => self.insert_or_remove(other),
            80..90 => self.send_back(other),
            90 => self.stop_or_start(other),
            _ => {}
        }
        self.hear();
        self.hear_others();
    }

    /// All go on until something is so.
    fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        for _ in 0..ROUNDS {
            self.hear();
            self.hear_others();
            if is_so(self) {
                return;
            }
        }
        let pending: Vec<_> = self.others.iter().map(|other| &other.pending).collect();
        panic!("never so: {what}; {pending:?}, {:?}, {:?}", self.posted, self.back);
    }

    /// Everything that is there is received, and everybody is told of everything.
    fn end(mut self) {
        let mut tags = (0..TAGS as u64).cycle();
        for tag in tags.by_ref() {
            // A receive that finds nothing gives its buffer back.
            while self.free.is_empty() {
                self.cancel();
                self.hear();
            }
            let context = self.context();
            self.receive(None, tag, context);
            self.hear();
            self.hear_others();
            if self.others.iter().all(|other| other.pending.is_empty()) {
                break;
            }
            assert!(self.next < ROUNDS as u64, "somebody is not told of what was sent");
        }
        while !self.posted.is_empty() {
            self.cancel();
            self.hear();
        }
        for from in 0..OTHERS {
            if let Some(side) = self.others[from].side.take() {
                close(side, &[&self.hub]);
            }
        }
        self.until("sends to all that are gone have ended", |churn| churn.back.is_empty());
    }
}

#[test]
fn b28_addresses_that_come_and_go_change_no_message_and_no_receive() {
    for seed in 1..4 {
        let mut churn = Churn::new(seed);
        (0..3000).for_each(|_| churn.turn());
        assert!(churn.received.len() > 300, "{}", churn.received.len());
        churn.end();
    }
}

#[test]
fn a_receive_that_named_a_number_is_for_who_had_it_though_another_gets_the_number() {
    let (hub, first, second) = (Side::new(), Side::new(), Side::new());
    let [first_to, second_to] = [&first, &second].map(|side| side.insert(&hub.name()));
    let number = hub.insert(&first.name());
    let (mut named, mut any) = ([0; 8], [0; 8]);
    assert_eq!(hub.receive(number, 7, 0, &mut named, 1), 0);
    assert_eq!(hub.remove(number), 0);
    assert_eq!(hub.insert(&second.name()), number);
    second.send_surely(&[&hub], |second| second.inject(second_to, 7, b"second", None));
    assert_eq!(hub.receive(number, 7, 0, &mut any, 2), 0);
    let end = hub.next(&[&second]);
    assert!(matches!(end, Received::Ok { context: 2, length: 6, source, .. } if source == number), "{end:?}");
    let again = hub.insert(&first.name());
    first.send_surely(&[&hub], |first| first.inject(first_to, 7, b"first", None));
    let end = hub.next(&[&first]);
    assert!(matches!(end, Received::Ok { context: 1, length: 5, source, .. } if source == again), "{end:?}");
}
