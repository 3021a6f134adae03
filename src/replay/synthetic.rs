//! Traces made up: lists of a given depth, receives and messages in a given order, masks of a given kind.
//!
//! They have the form of recorded traces, so that everything that replays those replays these. The expected results
//! are to be recorded over an oracle ([`super::record`]). The same seed gives the same trace.

use crate::ids::{Ignore, PeerId, Source, Tag};
use crate::matching::{Envelope, Pattern};
use crate::traces::{Event, Header, MessageNumber, Outcome, ReceiveNumber, Step, Trace};

/// What a made-up trace looks like.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Mix {
    /// Which list is long.
    pub list: List,
    /// How long it is before each search, in entries.
    pub depth: u32,
    /// Where in it the searches hit.
    pub order: Order,
    /// What the receives look at.
    pub masks: Masks,
}

/// Which of the two lists is long.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum List {
    /// Receives are posted first; then the messages arrive.
    Posted,
    /// Messages arrive first; then the receives are posted.
    Unexpected,
}

/// In which order the list is emptied.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Order {
    /// Oldest first.
    Forward,
    /// Newest first.
    Reverse,
    /// Any, by the seed.
    Random,
}

/// What the receives look at.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Masks {
    /// Every bit of the tag, one source.
    Full,
    /// All but one bit, one source: Open MPI's ordinary receive.
    Partial,
    /// The four kinds of Open MPI, in turn: one tag or any tag, one source or any source.
    Four,
}

impl Mix {
    /// Its name: list, depth, order and masks.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{:?} {} {:?} {:?}", self.list, self.depth, self.order, self.masks).to_lowercase()
    }

    /// The trace: as many rounds as give at least `events_min` events, each filling and emptying the list. Its
    /// expected results are all [`Outcome::Queued`] until they are recorded.
    #[must_use]
    pub fn trace(&self, events_min: u32, seed: u64) -> Trace {
        let mut made = Made { mix: *self, steps: Vec::new(), receives: 0, messages: 0, random: Random(seed) };
        let rounds = events_min.div_ceil(self.depth.max(1).saturating_mul(2)).max(1);
        for round in 0..rounds {
            made.round(round);
        }
        let header = Header::made_up(&[("app", "made up"), ("mpi", "none, tags as in ofi_tag_full")]);
        Trace { name: self.name(), header, steps: made.steps }
    }
}

/// A trace in the making.
struct Made {
    mix: Mix,
    steps: Vec<Step>,
    receives: u32,
    messages: u32,
    random: Random,
}

impl Made {
    fn round(&mut self, round: u32) {
        let mut order: Vec<u32> = (0..self.mix.depth).collect();
        match self.mix.order {
            Order::Forward => {}
            Order::Reverse => order.reverse(),
            Order::Random => self.random.shuffle(&mut order),
        }
        for number in 0..self.mix.depth {
            match self.mix.list {
                List::Posted => self.post(round, number),
                List::Unexpected => self.arrive(round, number),
            }
        }
        for number in order {
            match self.mix.list {
                List::Posted => self.arrive(round, number),
                List::Unexpected => self.post(round, number),
            }
        }
    }

    fn post(&mut self, round: u32, number: u32) {
        let Envelope { tag, source } = self.envelope(round, number);
        let source = Source::Peer(source);
        let (ignore, source) = match (self.mix.masks, number % 4) {
            (Masks::Full, _) => (0, source),
            (Masks::Partial, _) | (Masks::Four, 0) => (SYNCHRONOUS, source),
            (Masks::Four, 1) => (SYNCHRONOUS, Source::Any),
            (Masks::Four, 2) => (ANY_TAG, source),
            (Masks::Four, _) => (ANY_TAG, Source::Any),
        };
        let receive = ReceiveNumber(self.receives);
        self.receives += 1;
        self.push(Event::Post {
            receive,
            pattern: Pattern { tag, ignore: Ignore(ignore), source },
            length: 8,
        });
    }

    fn arrive(&mut self, round: u32, number: u32) {
        let message = MessageNumber(self.messages);
        self.messages += 1;
        self.push(Event::Arrive { message, envelope: self.envelope(round, number), length: 8 });
    }

    /// The message that a number stands for: senders in turn, a communicator in the high bits. Each of the four
    /// kinds has its own communicator, so that as many messages as receives fit and the lists are empty between rounds.
    fn envelope(&self, round: u32, number: u32) -> Envelope {
        let kind = if self.mix.masks == Masks::Four { number % 4 } else { 0 };
        let communicator = u64::from(round % 4 * 4 + kind) << 34;
        Envelope { tag: Tag(communicator | u64::from(number / SENDERS)), source: PeerId(number % SENDERS) }
    }

    fn push(&mut self, event: Event) {
        let line = self.steps.len() as u64 + 1;
        self.steps.push(Step { line, event, expected: Outcome::Queued });
    }
}

/// A small generator (splitmix64): the same seed gives the same numbers on every machine.
#[derive(Clone, Debug)]
struct Random(u64);

impl Random {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    fn shuffle(&mut self, items: &mut [u32]) {
        for end in (1..items.len()).rev() {
            // The product of a 32-bit number and a length is below 2^64 for lists that fit in memory.
            let place = ((self.word() >> 32) * (end as u64 + 1)) >> 32;
            items.swap(end, usize::try_from(place).unwrap_or(end));
        }
    }
}

const SENDERS: u32 = 8;
/// Open MPI ignores the bit that marks a synchronous send.
const SYNCHRONOUS: u64 = 1 << 32;
/// Open MPI's any tag: all bits of the tag but the one that marks collectives.
const ANY_TAG: u64 = SYNCHRONOUS | 0x7fff_ffff;
