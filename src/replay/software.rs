//! A replay target over a pair of lists in software.

use super::{Fault, Target};
use crate::ids::{MessageId, ReceiveId};
use crate::matching::{Arrived, Envelope, Matcher, Naive, Pattern, Posted, Stay};
use crate::traces::{Counts, MessageNumber, PeekNumber, ReceiveNumber};

/// The posted and the unexpected list: what a software matcher does, with the trace's numbers as values.
pub trait Lists {
    /// Post a receive that leaves with its first match.
    fn post(&mut self, pattern: &Pattern, receive: ReceiveNumber) -> Posted<MessageNumber>;
    /// Take a message in.
    fn arrive(&mut self, envelope: &Envelope, message: MessageNumber) -> Arrived<ReceiveNumber>;
    /// The earliest unexpected message that fits.
    fn peek(&mut self, pattern: &Pattern) -> Option<(MessageId, MessageNumber)>;
    /// Take a message off the unexpected list. False: it is not there.
    fn remove_message(&mut self, message: MessageId) -> bool;
    /// Take a receive off the posted list. False: it is not there.
    fn remove_receive(&mut self, receive: ReceiveId) -> bool;
    /// Take everything off both lists.
    fn clear(&mut self);
}

macro_rules! lists {
    ($($lists:ident),*) => {
        $(impl Lists for $lists<ReceiveNumber, MessageNumber> {
            #[inline]
            fn post(&mut self, pattern: &Pattern, receive: ReceiveNumber) -> Posted<MessageNumber> {
                self.post(*pattern, Stay::Once, receive)
            }

            #[inline]
            fn arrive(&mut self, envelope: &Envelope, message: MessageNumber) -> Arrived<ReceiveNumber> {
                self.arrive(*envelope, message)
            }

            #[inline]
            fn peek(&mut self, pattern: &Pattern) -> Option<(MessageId, MessageNumber)> {
                let id = self.first_unexpected(pattern)?;
                self.unexpected(id).map(|(_, message)| (id, *message))
            }

            fn remove_message(&mut self, message: MessageId) -> bool {
                self.take_unexpected(message).is_some()
            }

            fn remove_receive(&mut self, receive: ReceiveId) -> bool {
                self.take_posted(receive).is_some()
            }

            fn clear(&mut self) {
                for receive in self.posted_ids() {
                    self.take_posted(receive);
                }
                for message in self.unexpected_ids() {
                    self.take_unexpected(message);
                }
            }
        })*
    };
}

lists!(Naive, Matcher);

/// A [`Target`] over lists in software. It adds what the lists do not keep: the names of posted receives and the
/// messages that peeks bound.
#[derive(Clone, Debug)]
pub struct Software<L> {
    lists: L,
    receives: Vec<Option<ReceiveId>>,
    bound: Vec<Option<MessageNumber>>,
}

impl<L: Lists> Software<L> {
    /// With room for a trace of so many receives and peeks: within it, nothing is allocated during the replay.
    pub fn new(lists: L, counts: Counts) -> Self {
        Self { lists, receives: vec![None; counts.receives], bound: vec![None; counts.peeks] }
    }

    /// The lists.
    pub const fn lists(&self) -> &L {
        &self.lists
    }

    fn set_receive(&mut self, receive: ReceiveNumber, id: Option<ReceiveId>) {
        set(&mut self.receives, receive.0 as usize, id);
    }
}

impl<L: Lists> Target for Software<L> {
    fn post(
        &mut self,
        receive: ReceiveNumber,
        pattern: &Pattern,
        _length: u64,
    ) -> Result<Option<MessageNumber>, Fault> {
        match self.lists.post(pattern, receive) {
            Posted::Matched { value, .. } => Ok(Some(value)),
            Posted::Queued(id) => {
                self.set_receive(receive, Some(id));
                Ok(None)
            }
        }
    }

    fn arrive(
        &mut self,
        message: MessageNumber,
        envelope: &Envelope,
        _length: u64,
    ) -> Result<Option<ReceiveNumber>, Fault> {
        match self.lists.arrive(envelope, message) {
            Arrived::Matched { value, .. } => Ok(Some(value)),
            Arrived::Unexpected(_) => Ok(None),
        }
    }

    fn peek(
        &mut self,
        peek: PeekNumber,
        pattern: &Pattern,
        claim: bool,
    ) -> Result<Option<MessageNumber>, Fault> {
        let Some((id, message)) = self.lists.peek(pattern) else {
            return Ok(None);
        };
        if claim {
            if !self.lists.remove_message(id) {
                return Err(Fault::new(format_args!("{id:?} was found by a peek but cannot be removed")));
            }
            set(&mut self.bound, peek.0 as usize, Some(message));
        }
        Ok(Some(message))
    }

    fn claim(
        &mut self,
        _receive: ReceiveNumber,
        peek: PeekNumber,
        _length: u64,
    ) -> Result<Option<MessageNumber>, Fault> {
        Ok(self.bound.get_mut(peek.0 as usize).and_then(Option::take))
    }

    /// Stale names name nothing, so that a receive that was matched since is simply not there.
    fn cancel(&mut self, receive: ReceiveNumber) -> Result<bool, Fault> {
        let id = self.receives.get_mut(receive.0 as usize).and_then(Option::take);
        Ok(id.is_some_and(|id| self.lists.remove_receive(id)))
    }

    fn reset(&mut self) -> Result<(), Fault> {
        self.lists.clear();
        self.receives.fill(None);
        self.bound.fill(None);
        Ok(())
    }
}

/// Put a value at its place; places beyond the announced counts are made.
fn set<T: Clone>(places: &mut Vec<Option<T>>, place: usize, value: Option<T>) {
    if place >= places.len() {
        places.resize(place + 1, None);
    }
    if let Some(slot) = places.get_mut(place) {
        *slot = value;
    }
}
