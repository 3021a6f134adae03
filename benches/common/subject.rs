//! Whoever matches messages to receives, as the benches see it.
//!
//! Implementations: two plain vectors ([`Vectors`]) and, in `peer_ucx`, UCX. An engine joins by implementing
//! [`Subject`] and by one line in each bench's list.

use std::fmt::Debug;
use tagmatch::matching::{Envelope, Pattern};

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
    /// Bytes of matching state, if the subject knows.
    fn memory_bytes(&self) -> Option<usize> {
        None
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

    fn memory_bytes(&self) -> Option<usize> {
        Some(
            self.posted.capacity() * size_of::<(Pattern, u32)>()
                + self.unexpected.capacity() * size_of::<(Envelope, u32)>(),
        )
    }
}

pub(crate) use Vectors as MatcherSubject;
