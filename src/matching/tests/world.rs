//! A matcher and the oracle side by side, given the same operations and compared after each.

use super::{Arrived, Config, Envelope, Matcher, Pattern, Posted, Resolved, Stay};
use crate::ids::{GroupId, MessageId, PeerId, ReceiveId};
use crate::matching::Naive;

/// SplitMix64.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }

    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// Values are numbers dealt in order, so that they name a receive or message to both sides.
pub(super) struct World {
    pub(super) matcher: Matcher<u64, u64>,
    naive: Naive<u64, u64>,
    next_value: u64,
    /// Live and some stale: value, id here, id there.
    pub(super) receives: Vec<(u64, ReceiveId, ReceiveId)>,
    pub(super) messages: Vec<(u64, MessageId, MessageId)>,
    pub(super) operations: u64,
}

impl World {
    pub(super) fn new(config: Config) -> Self {
        Self {
            matcher: Matcher::new(config),
            naive: Naive::new(),
            next_value: 0,
            receives: Vec::new(),
            messages: Vec::new(),
            operations: 0,
        }
    }

    fn value(&mut self) -> u64 {
        self.operations += 1;
        self.next_value += 1;
        self.next_value
    }

    pub(super) fn post(&mut self, pattern: Pattern, stay: Stay) {
        let value = self.value();
        match (self.matcher.post(pattern, stay, value), self.naive.post(pattern, stay, value)) {
            (
                Posted::Matched { value: here, envelope, message },
                Posted::Matched { value: there, envelope: e, .. },
            ) => {
                assert_eq!((here, envelope), (there, e));
                assert!(self.matcher.unexpected(message).is_none(), "a matched message is gone");
            }
            (Posted::Queued(here), Posted::Queued(there)) => {
                assert_eq!(self.matcher.posted(here), Some((pattern, &value)));
                assert_eq!(self.matcher.stays(here), Some(stay));
                self.receives.push((value, here, there));
            }
            (here, there) => panic!("{pattern:?}: {here:?} but {there:?}"),
        }
    }

    pub(super) fn arrive(&mut self, envelope: Envelope) {
        let value = self.value();
        match (self.matcher.arrive(envelope, value), self.naive.arrive(envelope, value)) {
            (Arrived::Matched { value: here, receive }, Arrived::Matched { value: there, receive: r }) => {
                assert_eq!(here, there);
                assert_eq!(self.matcher.posted(receive).is_some(), self.naive.posted(r).is_some());
            }
            (Arrived::Unexpected(here), Arrived::Unexpected(there)) => {
                assert_eq!(self.matcher.unexpected(here), Some((envelope, &value)));
                self.messages.push((value, here, there));
            }
            (here, there) => panic!("{envelope:?}: {here:?} but {there:?}"),
        }
    }

    /// Peek, and perhaps claim what was found.
    pub(super) fn peek(&mut self, pattern: &Pattern, claim: bool) {
        self.operations += 1;
        let here = self.matcher.first_unexpected(pattern);
        let there = self.naive.first_unexpected(pattern);
        let name = |id| self.matcher.unexpected(id).map(|(e, v)| (e, *v));
        assert_eq!(here.and_then(name), there.and_then(|id| self.naive.unexpected(id)).map(|(e, v)| (e, *v)));
        if claim && let (Some(here), Some(there)) = (here, there) {
            assert_eq!(self.matcher.take_unexpected(here), self.naive.take_unexpected(there));
            assert_eq!(self.matcher.take_unexpected(here), None);
        }
    }

    /// What an arrival would find; changes nothing.
    pub(super) fn look(&mut self, envelope: &Envelope) {
        self.operations += 1;
        let here = self.matcher.first_posted(envelope).and_then(|id| self.matcher.posted(id));
        let there = self.naive.first_posted(envelope).and_then(|id| self.naive.posted(id));
        assert_eq!(here, there);
    }

    pub(super) fn cancel(&mut self, at: usize) {
        self.operations += 1;
        let (_, here, there) = self.receives.swap_remove(at);
        assert_eq!(self.matcher.take_posted(here), self.naive.take_posted(there));
        assert_eq!(self.matcher.take_posted(here), None);
    }

    pub(super) fn discard(&mut self, at: usize) {
        self.operations += 1;
        let (_, here, there) = self.messages.swap_remove(at);
        assert_eq!(self.matcher.take_unexpected(here), self.naive.take_unexpected(there));
        assert_eq!(self.matcher.take_unexpected(here), None);
    }

    pub(super) fn resolve(&mut self, from: PeerId, to: PeerId) {
        self.operations += 1;
        let (mut here, mut there) = (Vec::new(), Vec::new());
        self.matcher.resolve(from, to, &mut |m| here.push(values(&m)));
        self.naive.resolve(from, to, &mut |m| there.push(values(&m)));
        assert_eq!(here, there);
    }

    pub(super) fn join(&mut self, peer: PeerId, group: GroupId) {
        self.operations += 1;
        let (mut here, mut there) = (Vec::new(), Vec::new());
        self.matcher.join_group(peer, group, &mut |m| here.push(values(&m)));
        self.naive.join_group(peer, group, &mut |m| there.push(values(&m)));
        assert_eq!(here, there);
        assert_eq!(self.matcher.group_of(peer), Some(group));
    }

    pub(super) fn leave(&mut self, peer: PeerId) {
        self.operations += 1;
        self.matcher.leave_group(peer);
        self.naive.leave_group(peer);
    }

    /// Forget names of what has left; compare the lists whole.
    pub(super) fn compare(&mut self) {
        self.matcher.check();
        assert_eq!(self.matcher.posted_len(), self.naive.posted_len());
        assert_eq!(self.matcher.unexpected_len(), self.naive.unexpected_len());
        let matcher = &self.matcher;
        let posted = |id| matcher.posted(id).map(|(pattern, value)| (pattern, *value));
        let here: Vec<_> = matcher.posted_ids().into_iter().filter_map(posted).collect();
        let posted = |id| self.naive.posted(id).map(|(pattern, value)| (pattern, *value));
        // The oracle's own look-up is a scan: only short lists are compared by value.
        if here.len() < 200 {
            let there: Vec<_> = self.naive.posted_ids().into_iter().filter_map(posted).collect();
            assert_eq!(here, there);
        }
        self.receives.retain(|(value, here, _)| matcher.posted(*here).is_some_and(|(_, v)| v == value));
        self.messages.retain(|(value, here, _)| matcher.unexpected(*here).is_some_and(|(_, v)| v == value));
        assert_eq!(self.receives.len(), matcher.posted_len());
        assert_eq!(self.messages.len(), matcher.unexpected_len());
    }
}

fn values(matched: &Resolved<u64, u64>) -> (u64, u64, Envelope) {
    (matched.value, matched.message_value, matched.envelope)
}
