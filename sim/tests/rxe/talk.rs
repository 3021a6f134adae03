//! Two endpoints, of which one talks to the other all the while: numbered messages of every protocol, some before their
//! receives and some behind them, each taken once, by the receive whose turn it is, and whole.

use super::super::{Memory, pattern};
use super::{message, post};
use tagmatch::endpoint::{Address, Completed, Completion, Endpoint, Level, Send, SendRefused};

/// What is said one way.
pub(super) struct Talk {
    payloads: Vec<Memory>,
    /// One for each that may be on its way.
    places: Vec<Memory>,
    posted: u64,
    sent: u64,
    /// All before this one were taken, and of those from it on these, by their places.
    taken: u64,
    ahead: [bool; AHEAD],
}

impl Talk {
    pub(super) fn new() -> Self {
        let payload = |(content, length): (usize, &usize)| Memory::new(pattern(content, *length));
        Self {
            payloads: LENGTHS.iter().enumerate().map(payload).collect(),
            places: (0..AHEAD).map(|_| Memory::zeros(LONGEST)).collect(),
            posted: 0,
            sent: 0,
            taken: 0,
            ahead: [false; AHEAD],
        }
    }

    /// How many were taken.
    pub(super) const fn taken(&self) -> u64 {
        self.taken
    }

    /// Whether all that was said was taken.
    pub(super) const fn is_over(&self) -> bool {
        self.taken == self.sent
    }

    /// As many as may be on their way are said, and received.
    pub(super) fn go_on(&mut self, from: &mut Endpoint, to: Address, there: &mut Endpoint) {
        let most = self.taken + AHEAD as u64;
        let is_posted_first = (self.taken / TURN).is_multiple_of(2);
        if is_posted_first {
            self.post(there, most);
        }
        while self.sent < most {
            let payload = &self.payloads[index(self.sent, LENGTHS.len())];
            let said = message(to, TALK, payload.buffer(), Level::Transmit, TALK);
            match from.send(&Send { cq_data: Some(u32::try_from(self.sent).unwrap()), ..said }) {
                Ok(()) => self.sent += 1,
                Err(SendRefused::Again) => break,
                Err(refused) => panic!("{} is refused: {refused}", self.sent),
            }
        }
        self.post(there, self.sent);
    }

    /// All before this one.
    fn post(&mut self, there: &mut Endpoint, end: u64) {
        while self.posted < end {
            let place = self.places[index(self.posted, AHEAD)].buffer();
            there.post(&post(None, TALK, place, HEARD + self.posted)).unwrap();
            self.posted += 1;
        }
    }

    /// What the receiver, or the sender, is told of it. Whether it is of this at all.
    pub(super) fn handle(&mut self, done: &Completion) -> bool {
        if done.context == TALK {
            assert_eq!(done.what, Completed::Sent, "what two say to each other goes");
            return true;
        }
        let Some(number) = done.context.checked_sub(HEARD) else { return false };
        let Completed::Received { message, placed, .. } = done.what else {
            panic!("of {number} is told {:?}", done.what);
        };
        let payload = self.payloads[index(number, LENGTHS.len())].bytes();
        assert_eq!(
            (message.cq_data.map(u64::from), placed),
            (Some(number), payload.len() as u64),
            "{done:?}"
        );
        let place = index(number, AHEAD);
        assert!(self.places[place].bytes()[..payload.len()] == payload, "{number} is not whole");
        assert!(number >= self.taken && !self.ahead[place], "{number} comes twice");
        self.ahead[place] = true;
        while std::mem::take(&mut self.ahead[index(self.taken, AHEAD)]) {
            self.taken += 1;
        }
        true
    }
}

fn index(number: u64, of: usize) -> usize {
    usize::try_from(number).unwrap() % of
}

const TALK: u64 = 2;
/// Contexts of receives begin here.
const HEARD: u64 = 1 << 32;
/// Messages on their way.
const AHEAD: usize = 8;
/// Messages until receives come before their messages, or behind them.
const TURN: u64 = 50;
/// Eager, in segments or by RDMA READ, by RDMA READ.
const LENGTHS: [usize; 7] = [8, 1000, 0, 7000, 64, LONGEST, 4096];
const LONGEST: usize = 20_000;
