//! Whoever matches messages to receives, as the benches see it.
//!
//! Implementations: two plain vectors ([`Vectors`]), this crate's matchers ([`MatcherSubject`], [`NaiveSubject`]),
//! in `engine` the whole engine, in `peer_ucx` UCX.

use std::fmt::Debug;
use std::hint::black_box;
use tagmatch::ids::ReceiveId;
use tagmatch::matching::{Arrived, Config, Envelope, Matcher, Naive, Pattern, Posted, Stay};

/// Posts, arrivals and what goes with them. Calls are made in the order of the workload; whatever the
/// subject's own form of a pattern or an envelope is, it is made beforehand by the two `prepare_*`.
pub(crate) trait Subject {
    /// What a receive looks for, in the subject's own form.
    type Pattern: Debug;
    /// What a message shows, in the subject's own form.
    type Envelope: Debug;
    /// Names a posted receive.
    type Receive: Copy + Debug;

    fn name(&self) -> &'static str;
    fn prepare_pattern(pattern: &Pattern) -> Self::Pattern;
    fn prepare_envelope(envelope: &Envelope) -> Self::Envelope;

    /// Posts a receive: its name, or none if it took an unexpected message.
    fn post(&mut self, pattern: &Self::Pattern) -> Option<Self::Receive>;
    /// Lets a message arrive: whether a receive took it and its completion has been read.
    fn arrive(&mut self, envelope: &Self::Envelope) -> bool;
    /// Whether an unexpected message fits. Changes nothing.
    fn probe(&mut self, pattern: &Self::Pattern) -> bool;
    /// Takes the first unexpected message that fits: whether there was one.
    fn claim(&mut self, pattern: &Self::Pattern) -> bool;
    /// Cancels a receive that is still posted: whether it was.
    fn cancel(&mut self, receive: Self::Receive) -> bool;
    /// Gives back what is kept after a completion (requests of UCX). Part of a pair, not of a search.
    fn settle(&mut self) {}
}

/// Does nothing, and says what the posted loop wants to hear: what the loop itself costs.
#[derive(Debug, Default)]
pub(crate) struct Nothing;

impl Subject for Nothing {
    type Pattern = Pattern;
    type Envelope = Envelope;
    type Receive = u32;

    fn name(&self) -> &'static str {
        "loop"
    }

    fn prepare_pattern(pattern: &Pattern) -> Pattern {
        *pattern
    }

    fn prepare_envelope(envelope: &Envelope) -> Envelope {
        *envelope
    }

    fn post(&mut self, pattern: &Pattern) -> Option<u32> {
        black_box(pattern);
        Some(0)
    }

    fn arrive(&mut self, envelope: &Envelope) -> bool {
        black_box(envelope);
        true
    }

    fn probe(&mut self, _: &Pattern) -> bool {
        false
    }

    fn claim(&mut self, _: &Pattern) -> bool {
        false
    }

    fn cancel(&mut self, _: u32) -> bool {
        true
    }
}

/// The baseline: two vectors, scanned from the front, entries removed in place. As lean as a list can be
/// that keeps a name and a value for each entry.
#[derive(Debug, Default)]
pub(crate) struct Vectors {
    posted: Vec<(Pattern, u32)>,
    unexpected: Vec<(Envelope, u32)>,
    next: u32,
}

impl Subject for Vectors {
    type Pattern = Pattern;
    type Envelope = Envelope;
    type Receive = u32;

    fn name(&self) -> &'static str {
        "vectors"
    }

    fn prepare_pattern(pattern: &Pattern) -> Pattern {
        *pattern
    }

    fn prepare_envelope(envelope: &Envelope) -> Envelope {
        *envelope
    }

    fn post(&mut self, pattern: &Pattern) -> Option<u32> {
        if let Some(place) = self.unexpected.iter().position(|(message, _)| pattern.fits(message, None)) {
            self.unexpected.remove(place);
            return None;
        }
        self.next = self.next.wrapping_add(1);
        self.posted.push((*pattern, self.next));
        Some(self.next)
    }

    fn arrive(&mut self, envelope: &Envelope) -> bool {
        if let Some(place) = self.posted.iter().position(|(receive, _)| receive.fits(envelope, None)) {
            self.posted.remove(place);
            return true;
        }
        self.next = self.next.wrapping_add(1);
        self.unexpected.push((*envelope, self.next));
        false
    }

    fn probe(&mut self, pattern: &Pattern) -> bool {
        self.unexpected.iter().any(|(message, _)| pattern.fits(message, None))
    }

    fn claim(&mut self, pattern: &Pattern) -> bool {
        let place = self.unexpected.iter().position(|(message, _)| pattern.fits(message, None));
        place.map(|place| self.unexpected.remove(place)).is_some()
    }

    fn cancel(&mut self, receive: u32) -> bool {
        let place = self.posted.iter().position(|(_, name)| *name == receive);
        place.map(|place| self.posted.remove(place)).is_some()
    }
}

/// The indexed matcher by itself.
#[derive(Debug)]
pub(crate) struct MatcherSubject(Matcher<u64, u64>);

/// The oracle: two vectors that keep ids.
#[derive(Debug, Default)]
pub(crate) struct NaiveSubject(Naive<u64, u64>);

impl Default for MatcherSubject {
    fn default() -> Self {
        // Another seed than the trivial one: the hash is not to be flattered by small tags.
        Self(Matcher::new(Config { hash_seed: 0x5eed, ..Config::default() }))
    }
}

impl MatcherSubject {
    /// Bytes of matching state.
    pub(crate) fn memory_bytes(&self) -> usize {
        let bytes = self.0.memory_bytes();
        bytes.posted + bytes.unexpected
    }
}

macro_rules! matching_subject {
    ($subject:ident, $name:literal) => {
        impl Subject for $subject {
            type Pattern = Pattern;
            type Envelope = Envelope;
            type Receive = ReceiveId;

            fn name(&self) -> &'static str {
                $name
            }

            fn prepare_pattern(pattern: &Pattern) -> Pattern {
                *pattern
            }

            fn prepare_envelope(envelope: &Envelope) -> Envelope {
                *envelope
            }

            #[inline]
            fn post(&mut self, pattern: &Pattern) -> Option<ReceiveId> {
                match self.0.post(*pattern, Stay::Once, 0) {
                    Posted::Queued(receive) => Some(receive),
                    Posted::Matched { .. } => None,
                }
            }

            #[inline]
            fn arrive(&mut self, envelope: &Envelope) -> bool {
                matches!(self.0.arrive(*envelope, 0), Arrived::Matched { .. })
            }

            #[inline]
            fn probe(&mut self, pattern: &Pattern) -> bool {
                self.0.first_unexpected(pattern).is_some()
            }

            #[inline]
            fn claim(&mut self, pattern: &Pattern) -> bool {
                let found = self.0.first_unexpected(pattern);
                found.is_some_and(|message| self.0.take_unexpected(message).is_some())
            }

            #[inline]
            fn cancel(&mut self, receive: ReceiveId) -> bool {
                self.0.take_posted(receive).is_some()
            }
        }
    };
}

matching_subject!(MatcherSubject, "matcher");
matching_subject!(NaiveSubject, "naive");
