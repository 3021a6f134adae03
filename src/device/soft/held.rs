//! Messages that the host side of a soft device keeps: told to the engine, not yet out of the device's hands.
//!
//! Tokens are the smallest free numbers, so that equal states of a model have equal names.

use super::message::SoftMessage;
use crate::ids::{MessageToken, PeerId, TransferId};
use crate::seam::{Buffer, DataError};

/// The table of kept messages.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct HeldMessages {
    places: Vec<Option<Held>>,
    /// No place before this one is free.
    full_before: usize,
}

impl HeldMessages {
    pub(crate) fn insert(&mut self, held: Held) -> MessageToken {
        let place = self.places.iter().skip(self.full_before).position(Option::is_none);
        let place = place.map_or(self.places.len(), |free| self.full_before + free);
        if place == self.places.len() {
            self.places.push(None);
        }
        self.full_before = place + 1;
        if let Some(slot) = self.places.get_mut(place) {
            *slot = Some(held);
        }
        MessageToken(place as u64)
    }

    pub(crate) fn find(&mut self, token: MessageToken) -> Option<&mut Held> {
        self.places.get_mut(usize::try_from(token.0).ok()?)?.as_mut()
    }

    /// Forget it once the host has answered and nothing more will be told of it.
    pub(crate) fn forget_if_done(&mut self, token: MessageToken) {
        let Some(place) = usize::try_from(token.0).ok().and_then(|place| self.places.get_mut(place)) else {
            return;
        };
        if place.as_ref().is_some_and(|held| held.fate != Fate::Undecided && held.telling == Telling::Nothing)
        {
            *place = None;
            self.full_before = self.full_before.min(usize::try_from(token.0).unwrap_or(usize::MAX));
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.places.iter().flatten().count()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &Held)> {
        self.places.iter().enumerate().filter_map(|(place, held)| Some((place, held.as_ref()?)))
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Held {
    pub(crate) source: PeerId,
    pub(crate) message: SoftMessage,
    pub(crate) counted: bool,
    pub(crate) payload: Payload,
    pub(crate) fate: Fate,
    pub(crate) telling: Telling,
}

/// Where the payload is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Payload {
    /// With the device.
    Here,
    /// On its way, by itself.
    Coming,
    /// At the sender.
    Remote,
    /// On its way, since the device reads it.
    Reading,
    /// In the user's buffer, or dropped.
    Gone,
    /// Nowhere.
    Lost(DataError),
}

/// What the host said.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Fate {
    Undecided,
    Accepted { buffer: Buffer, transfer: Option<TransferId> },
    Discarded,
}

/// Whether the engine is still to be told that the data is complete.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Telling {
    /// It is not.
    Nothing,
    /// When the data has come.
    Data,
    /// It has come, and the telling waits in the queue.
    Queued,
}
