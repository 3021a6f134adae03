//! What was wrong with a run.

use std::fmt;

use super::history::{MessageName, Observation, ReceiveName};

/// A run that no total order explains, or a record that makes no sense.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Place of the observation in the history, from 0; the monitor, which does not count, leaves it out.
    pub at: Option<usize>,
    /// The observation that cannot be explained; none at the end of the run.
    pub observation: Option<Observation>,
    /// The rule that it breaks.
    pub rule: Rule,
    /// The others involved: those that had to be chosen instead, or the operations which would have to be before
    /// each other in a circle.
    pub candidates: Vec<Name>,
}

impl std::error::Error for Violation {}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(at) = self.at {
            write!(f, "observation {at}, ")?;
        }
        match &self.observation {
            Some(observation) => write!(f, "`{observation}`: {}", self.rule)?,
            None => write!(f, "at the end: {}", self.rule)?,
        }
        for (index, candidate) in self.candidates.iter().enumerate() {
            write!(f, "{}{candidate}", if index == 0 { ": " } else { ", " })?;
        }
        Ok(())
    }
}

/// What one operation is called.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Name {
    /// The arrival of a message.
    Message(MessageName),
    /// The cancel of a receive.
    Cancel(ReceiveName),
    /// A receive.
    Receive(ReceiveName),
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(message) => message.fmt(f),
            Self::Cancel(receive) => write!(f, "cancel {receive}"),
            Self::Receive(receive) => receive.fmt(f),
        }
    }
}

/// What a run is held to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Rule {
    /// The record itself: the observation cannot stand here, whatever the matcher did.
    #[error("the record is wrong here")]
    Record,
    /// Matched with a receive that is not there: never posted, completed, cancelled or released before.
    #[error("the receive is not posted")]
    NotPosted,
    /// A message that is not there: never accepted, decided, taken or claimed before.
    #[error("the message is not there to be matched")]
    MessageGone,
    /// A match of two that do not fit.
    #[error("receive and message do not fit")]
    DoesNotFit,
    /// The match would have been made before the receive was posted.
    #[error("the message had to arrive before the receive was posted")]
    BeforePost,
    /// A message passed a receive that fits, was posted earlier and was still posted.
    #[error("a receive posted earlier fits and could not be gone")]
    EarlierReceive,
    /// A post or peek passed an unexpected message that fits and is ahead of the one it found.
    #[error("an unexpected message that fits was ahead")]
    EarlierMessage,
    /// A message overtook an earlier one of its sender which its receive fits, or was unexpected before it.
    #[error("a message of the same sender was overtaken")]
    Overtaken,
    /// A cancel succeeded for a receive that was matched, or failed for one that was not.
    #[error("the answer to the cancel is wrong")]
    CancelAnswer,
    /// Messages of one path were matched in another order than accepted.
    #[error("the acceptance order of a path was not kept")]
    AcceptanceOrder,
    /// Several rules together want operations before each other in a circle.
    #[error("these operations have no order")]
    Circle,
    /// A message was never decided, a cancel never answered, or a device's match never reported.
    #[error("the run is over, but never ended")]
    Unfinished,
}

/// A violation before it is known where it was seen.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) rule: Rule,
    pub(super) candidates: Vec<Name>,
}

impl Fault {
    pub(super) fn at(self, observation: Option<Observation>) -> Violation {
        Violation { at: None, observation, rule: self.rule, candidates: self.candidates }
    }
}

impl From<Rule> for Fault {
    fn from(rule: Rule) -> Self {
        Self { rule, candidates: Vec::new() }
    }
}
