//! Two plain vectors scanned in order: what an MPI library without an index does.
//!
//! The yardstick for speed on shallow lists. Entries are kept dense; removal closes the gap. Sources are compared
//! without groups, since a trace has none.

use super::Lists;
use crate::ids::{MessageId, ReceiveId};
use crate::matching::{Arrived, Envelope, Pattern, Posted};
use crate::traces::{MessageNumber, ReceiveNumber};

/// Two plain vectors scanned in order.
#[derive(Clone, Debug, Default)]
pub struct Vectors {
    posted: Vec<(Pattern, ReceiveNumber)>,
    unexpected: Vec<(Envelope, MessageNumber)>,
}

/// Numbers of a trace are unique, so that they serve as names.
const fn receive_id(receive: ReceiveNumber) -> ReceiveId {
    ReceiveId { index: receive.0, generation: 0 }
}

const fn message_id(message: MessageNumber) -> MessageId {
    MessageId { index: message.0, generation: 0 }
}

impl Lists for Vectors {
    fn post(&mut self, pattern: &Pattern, receive: ReceiveNumber) -> Posted<MessageNumber> {
        match self.unexpected.iter().position(|(envelope, _)| pattern.fits(envelope, None)) {
            Some(place) => {
                let (envelope, value) = self.unexpected.remove(place);
                Posted::Matched { message: message_id(value), envelope, value }
            }
            None => {
                self.posted.push((*pattern, receive));
                Posted::Queued(receive_id(receive))
            }
        }
    }

    fn arrive(&mut self, envelope: &Envelope, message: MessageNumber) -> Arrived<ReceiveNumber> {
        match self.posted.iter().position(|(pattern, _)| pattern.fits(envelope, None)) {
            Some(place) => {
                let (_, value) = self.posted.remove(place);
                Arrived::Matched { receive: receive_id(value), value }
            }
            None => {
                self.unexpected.push((*envelope, message));
                Arrived::Unexpected(message_id(message))
            }
        }
    }

    fn peek(&mut self, pattern: &Pattern) -> Option<(MessageId, MessageNumber)> {
        let (_, value) = self.unexpected.iter().find(|(envelope, _)| pattern.fits(envelope, None))?;
        Some((message_id(*value), *value))
    }

    fn remove_message(&mut self, message: MessageId) -> bool {
        let place = self.unexpected.iter().position(|(_, value)| message_id(*value) == message);
        place.map(|place| self.unexpected.remove(place)).is_some()
    }

    fn remove_receive(&mut self, receive: ReceiveId) -> bool {
        let place = self.posted.iter().position(|(_, value)| receive_id(*value) == receive);
        place.map(|place| self.posted.remove(place)).is_some()
    }
}
