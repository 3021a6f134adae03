//! Messages from one side to another, or to itself, by one protocol: what they are, and what was said of them.

use std::cell::{Cell, RefCell};

use super::common::counted::{Counters, EAGER_MAX, SEGMENTED_MAX};
use super::common::pair::{ANY, pattern};
use super::common::{ROUNDS, Received, Side, is_offloaded};
use tagmatch::provider::abi;

/// A way for messages: a protocol, and to whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Way {
    /// Its length says the protocol.
    pub(crate) length: usize,
    pub(crate) to_itself: bool,
}

/// Lengths on both sides of every threshold, each with both destinations.
pub(crate) fn ways() -> Vec<Way> {
    let lengths = [0, 1, EAGER_MAX, EAGER_MAX + 1, SEGMENTED_MAX, SEGMENTED_MAX + 1, 300_000];
    lengths.into_iter().flat_map(|length| [false, true].map(|to_itself| Way { length, to_itself })).collect()
}

impl Way {
    /// Eager, segmented, rendezvous: which of them messages with a tag go by.
    pub(crate) fn protocol(&self) -> usize {
        match self.length {
            0..=EAGER_MAX => 0,
            // A device that matches puts no segments together.
            ..=SEGMENTED_MAX if self.to_itself || !is_offloaded() => 1,
            _ => 2,
        }
    }
}

/// Two sides, or one, and what they said.
pub(crate) struct Course {
    pub(crate) sender: Side,
    receiver: Option<Side>,
    pub(crate) to: u64,
    /// What the receiver calls the sender.
    pub(crate) from: u64,
    pub(crate) way: Way,
    said: RefCell<Vec<Received>>,
    sends: Cell<u64>,
}

/// Contexts of sends begin here; below are those of receives.
const SENDS: u64 = 1 << 20;

impl Course {
    pub(crate) fn new(way: Way) -> Self {
        let sender = Side::new();
        let receiver = (!way.to_itself).then(Side::new);
        let other = receiver.as_ref().unwrap_or(&sender);
        let (to, from) = (sender.insert(&other.name()), other.insert(&sender.name()));
        let course =
            Self { sender, receiver, to, from, way, said: RefCell::default(), sends: Cell::default() };
        // The connection is there, so that what follows depends on rounds alone.
        let mut none = [0; 0];
        assert_eq!(course.receiver().receive(ANY, FIRST, 0, &mut none, 1), 0);
        course.take(|| course.sender.inject(course.to, FIRST, b"", None));
        assert!(matches!(course.ended(1), Received::Ok { .. }));
        course
    }

    pub(crate) fn receiver(&self) -> &Side {
        self.receiver.as_ref().unwrap_or(&self.sender)
    }

    /// Both sides move on once, and are heard.
    pub(crate) fn round(&self) {
        let mut said = self.said.borrow_mut();
        said.extend(self.sender.poll());
        said.extend(self.receiver.as_ref().and_then(Side::poll));
    }

    /// Try until it is taken.
    pub(crate) fn take(&self, call: impl Fn() -> isize) {
        for _ in 0..ROUNDS {
            match call() {
                0 => return,
                again if again == super::common::minus(abi::FI_EAGAIN) => self.round(),
                other => panic!("{:?}: a send returned {other}", self.way),
            }
        }
        panic!("{:?}: a send was never taken", self.way);
    }

    /// A send of this way's length. Its context.
    pub(crate) fn send(&self, tag: u64, payload: &[u8]) -> u64 {
        self.send_with(tag, payload, abi::FI_COMPLETION)
    }

    pub(crate) fn send_with(&self, tag: u64, payload: &[u8], flags: u64) -> u64 {
        let context = SENDS + self.sends.replace(self.sends.get() + 1);
        self.take(|| self.sender.send_message(self.to, tag, &[payload], 0, context, flags));
        context
    }

    pub(crate) fn payload(&self, seed: u8) -> Vec<u8> {
        pattern(self.way.length, seed)
    }

    /// What was said of an operation so far.
    pub(crate) fn of(&self, context: u64) -> Vec<Received> {
        self.said.borrow().iter().filter(|said| said.context() == context).copied().collect()
    }

    /// The one end of an operation.
    pub(crate) fn ended(&self, context: u64) -> Received {
        for _ in 0..ROUNDS {
            if let [end] = self.of(context)[..] {
                self.said.borrow_mut().retain(|said| said.context() != context);
                return end;
            }
            self.round();
        }
        panic!("{:?}: {:?}", self.way, self.of(context));
    }

    /// A receive took a whole message.
    pub(crate) fn received(&self, context: u64, tag: u64) {
        match self.ended(context) {
            Received::Ok { context: _, length, tag: t, .. } => {
                assert_eq!((length, t), (self.way.length, tag), "{:?}", self.way);
            }
            other @ Received::Error { .. } => panic!("{:?}: {other:?}", self.way),
        }
    }

    /// A send succeeded.
    pub(crate) fn sent(&self, context: u64) {
        let end = self.ended(context);
        assert!(matches!(end, Received::Ok { .. }), "{:?}: {end:?}", self.way);
    }

    /// An operation failed with this code.
    pub(crate) fn failed(&self, context: u64, code: u64) {
        let end = self.ended(context);
        assert!(matches!(end, Received::Error { error, .. } if error == code), "{:?}: {end:?}", self.way);
    }

    /// One peek, and whether it found a message of this way's length.
    pub(crate) fn look(&self, tag: u64, context: u64, flags: u64) -> bool {
        assert_eq!(self.receiver().receive_message(tag, 0, None, context, abi::FI_PEEK | flags), 0);
        match self.ended(context) {
            Received::Ok { length, tag: t, .. } => {
                assert_eq!((length, t), (self.way.length, tag), "{:?}", self.way);
                true
            }
            Received::Error { error, .. } => {
                assert_eq!(error, abi::FI_ENOMSG, "{:?}", self.way);
                false
            }
        }
    }

    /// Peek until the message is there.
    pub(crate) fn find(&self, tag: u64, context: u64, flags: u64) {
        let found = (0..ROUNDS).any(|_| self.look(tag, context, flags));
        assert!(found, "{:?}", self.way);
    }

    /// Nothing more is said, and all messages went by the protocol of their length.
    pub(crate) fn over(self) -> Counters {
        (0..50).for_each(|_| self.round());
        assert_eq!(self.said.borrow()[..], [], "{:?}", self.way);
        let mut expected = [0; 3];
        expected[self.way.protocol()] = self.sends.get();
        // The first of all.
        expected[0] += 1;
        let counters = Counters::of([Some(self.sender), self.receiver].into_iter().flatten().collect());
        assert_eq!(counters.sent(), expected, "{:?}", self.way);
        counters
    }
}

const FIRST: u64 = 0xffff_0000_0000_ffff;
