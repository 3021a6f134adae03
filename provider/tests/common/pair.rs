//! Two sides in one process that know each other.

use super::{Received, Side, Wanted};
use tagmatch::provider::abi;

pub(crate) const ANY: u64 = abi::FI_ADDR_UNSPEC;

/// Two sides that know each other, and what each calls the other.
pub(crate) struct Pair {
    pub(crate) a: Side,
    pub(crate) b: Side,
    /// What A calls B.
    pub(crate) to_b: u64,
    /// What B calls A.
    pub(crate) to_a: u64,
}

impl Pair {
    pub(crate) fn new() -> Self {
        Self::with(Wanted::default())
    }

    pub(crate) fn with(wanted: Wanted) -> Self {
        let (a, b) = (Side::with(wanted), Side::with(wanted));
        let (to_b, to_a) = (a.insert(&b.name()), b.insert(&a.name()));
        Self { a, b, to_b, to_a }
    }

    /// Send from A, and see it complete.
    pub(crate) fn send(&self, tag: u64, payload: &[u8]) {
        self.a.send_surely(&[&self.b], |a| a.send(self.to_b, tag, payload, 900));
        self.sent(900);
    }

    /// A's next completion is this send.
    pub(crate) fn sent(&self, context: u64) {
        match self.a.next(&[&self.b]) {
            Received::Ok { context: c, flags, .. } => {
                assert_eq!((c, flags), (context, abi::FI_TAGGED | abi::FI_SEND));
            }
            other @ Received::Error { .. } => panic!("{other:?}"),
        }
    }

    /// What A sends, in order; all of it has arrived at B, and nothing has taken it.
    pub(crate) fn unexpected(&self, messages: &[(u64, &[u8])]) {
        for (tag, payload) in messages {
            self.a.send_surely(&[&self.b], |a| a.inject(self.to_b, *tag, payload, None));
        }
        // A last message that is received shows that those before it are there.
        let mut last = [0; 4];
        assert_eq!(self.b.receive(ANY, LAST, 0, &mut last, 901), 0);
        self.a.send_surely(&[&self.b], |a| a.inject(self.to_b, LAST, b"last", None));
        assert_eq!(self.received().0, 901);
    }

    /// B's next completion: context, tag and length of a message.
    pub(crate) fn received(&self) -> (u64, u64, usize) {
        match self.b.next(&[&self.a]) {
            Received::Ok { context, tag, length, .. } => (context, tag, length),
            other @ Received::Error { .. } => panic!("{other:?}"),
        }
    }

    /// B's next completion: context and code of an error.
    pub(crate) fn failed(&self) -> (u64, u64) {
        match self.b.next(&[&self.a]) {
            Received::Error { context, error, .. } => (context, error),
            other @ Received::Ok { .. } => panic!("{other:?}"),
        }
    }

    pub(crate) fn peek(&self, tag: u64, context: u64, flags: u64) {
        assert_eq!(self.b.receive_message(tag, 0, None, context, abi::FI_PEEK | flags), 0);
    }
}

/// The tag of a message that follows all others.
pub(crate) const LAST: u64 = 0xffff_0000_ffff_0000;

pub(crate) fn pattern(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|i| seed.wrapping_add(u8::try_from(i % 251).unwrap())).collect()
}
