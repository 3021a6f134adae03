//! Whether the steps of a trace can belong to one run: no message is received twice, no receive used after its end,
//! no message longer than its receive.
//!
//! Not here: whether a match is the *right* one; that is decided by replaying.

use super::problem::Problem;
use super::{Event, MessageNumber, Outcome, PeekNumber, ReceiveNumber, Step};

/// Keeps account of receives, messages and peeks.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    receives: Vec<(ReceiveState, u64)>,
    messages: Vec<(MessageState, u64)>,
    bound: Vec<Option<MessageNumber>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReceiveState {
    Posted,
    Matched,
    Cancelled,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum MessageState {
    Unexpected,
    Bound,
    Taken,
}

impl Ledger {
    /// Take the next step.
    pub(super) fn handle_step(&mut self, step: &Step) -> Result<(), Problem> {
        match (step.event, step.expected) {
            (Event::Post { length, .. }, Outcome::Matched(receive, message)) => {
                self.receives.push((ReceiveState::Posted, length));
                self.require_unexpected(message)?;
                self.take(receive, message)
            }
            (Event::Post { length, .. }, _) => {
                self.receives.push((ReceiveState::Posted, length));
                Ok(())
            }
            (Event::Arrive { length, .. }, Outcome::Matched(receive, message)) => {
                self.messages.push((MessageState::Unexpected, length));
                self.require_receive(receive, ReceiveState::Posted, "is still posted")?;
                self.take(receive, message)
            }
            (Event::Arrive { length, .. }, _) => {
                self.messages.push((MessageState::Unexpected, length));
                Ok(())
            }
            (Event::Peek { claim, .. }, outcome) => self.peek(claim, outcome),
            (Event::Claim { peek, length, .. }, Outcome::Matched(receive, message)) => {
                self.receives.push((ReceiveState::Posted, length));
                self.claim(peek, message)?;
                self.take(receive, message)
            }
            (Event::Cancel { receive }, Outcome::Cancelled) => {
                self.require_receive(receive, ReceiveState::Posted, "is still posted")?;
                self.set_receive(receive, ReceiveState::Cancelled);
                Ok(())
            }
            (Event::Cancel { receive }, Outcome::Late) => {
                self.require_receive(receive, ReceiveState::Matched, "was matched")
            }
            // The parser lets no other result through.
            (Event::Claim { .. } | Event::Cancel { .. }, _) => Ok(()),
        }
    }

    fn peek(&mut self, claim: bool, outcome: Outcome) -> Result<(), Problem> {
        let Outcome::Found(message) = outcome else {
            self.bound.push(None);
            return Ok(());
        };
        self.require_unexpected(message)?;
        self.bound.push(claim.then_some(message));
        if claim {
            self.set_message(message, MessageState::Bound);
        }
        Ok(())
    }

    fn claim(&mut self, peek: PeekNumber, message: MessageNumber) -> Result<(), Problem> {
        let slot = self.bound.get_mut(peek.0 as usize);
        let Some(bound) = slot.and_then(Option::take) else {
            return Err(Problem::ClaimUnbound { peek: peek.0 });
        };
        if bound != message {
            return Err(Problem::ClaimOther { peek: peek.0, expected: bound.0, found: message.0 });
        }
        Ok(())
    }

    /// The receive takes the message; both have been found fit for it.
    fn take(&mut self, receive: ReceiveNumber, message: MessageNumber) -> Result<(), Problem> {
        let receive_length = self.receives.get(receive.0 as usize).map_or(0, |entry| entry.1);
        let length = self.messages.get(message.0 as usize).map_or(0, |entry| entry.1);
        if length > receive_length {
            return Err(Problem::Truncation {
                receive: receive.0,
                receive_length,
                message: message.0,
                length,
            });
        }
        self.set_receive(receive, ReceiveState::Matched);
        self.set_message(message, MessageState::Taken);
        Ok(())
    }

    fn require_unexpected(&self, message: MessageNumber) -> Result<(), Problem> {
        let state = match self.messages.get(message.0 as usize).map(|entry| entry.0) {
            None | Some(MessageState::Unexpected) => return Ok(()),
            Some(MessageState::Bound) => "a peek with \"claim\" had bound before",
            Some(MessageState::Taken) => "had been received before",
        };
        Err(Problem::MessageGone { message: message.0, state })
    }

    fn require_receive(
        &self,
        receive: ReceiveNumber,
        wanted: ReceiveState,
        expected: &'static str,
    ) -> Result<(), Problem> {
        let state = match self.receives.get(receive.0 as usize).map(|entry| entry.0) {
            Some(state) if state == wanted => return Ok(()),
            None | Some(ReceiveState::Posted) => "is still posted",
            Some(ReceiveState::Matched) => "had been matched before",
            Some(ReceiveState::Cancelled) => "had been cancelled before",
        };
        Err(Problem::ReceiveState { receive: receive.0, expected, state })
    }

    fn set_receive(&mut self, receive: ReceiveNumber, state: ReceiveState) {
        if let Some(entry) = self.receives.get_mut(receive.0 as usize) {
            entry.0 = state;
        }
    }

    fn set_message(&mut self, message: MessageNumber, state: MessageState) {
        if let Some(entry) = self.messages.get_mut(message.0 as usize) {
            entry.0 = state;
        }
    }
}
