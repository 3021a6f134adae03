//! Messages that the device keeps for its host: arrived, told, and not yet accepted or discarded.
//!
//! Not here: whose buffers they lie in.

use crate::ids::{MessageToken, PeerId};
use crate::seam::{Header, Remote};

/// The kept messages. A token that was used up names nothing.
#[derive(Debug, Default)]
pub(super) struct HeldMessages {
    places: Vec<Place>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Place {
    generation: u32,
    held: Option<Held>,
}

/// A kept message.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) source: PeerId,
    pub(super) header: Header,
    pub(super) body: Body,
}

/// Where its payload is.
#[derive(Debug)]
pub(super) enum Body {
    /// In a buffer of the slab, behind a TMH.
    Slab(u32),
    /// Copied away.
    Copied(Box<[u8]>),
    /// At the sender.
    Remote(Remote),
}

impl HeldMessages {
    pub(super) fn insert(&mut self, held: Held) -> MessageToken {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place { generation: 0, held: None });
            u32::try_from(self.places.len() - 1).unwrap_or(u32::MAX)
        });
        let Some(place) = self.places.get_mut(index as usize) else { return MessageToken(u64::MAX) };
        place.held = Some(held);
        token(index, place.generation)
    }

    pub(super) fn find(&mut self, token: MessageToken) -> Option<&mut Held> {
        let (index, generation) = parts(token);
        let place = self.places.get_mut(index as usize)?;
        if place.generation == generation { place.held.as_mut() } else { None }
    }

    pub(super) fn take(&mut self, token: MessageToken) -> Option<Held> {
        self.find(token)?;
        let (index, _) = parts(token);
        let place = self.places.get_mut(index as usize)?;
        place.generation = place.generation.wrapping_add(1) & GENERATIONS;
        self.free.push(index);
        place.held.take()
    }

    /// Those whose payload is still at this peer.
    pub(super) fn remote_of(&self, peer: PeerId) -> Vec<MessageToken> {
        let held = self.places.iter().enumerate().filter_map(|(index, place)| {
            let held = place.held.as_ref()?;
            let is_it = held.source == peer && matches!(held.body, Body::Remote(_));
            is_it.then(|| token(u32::try_from(index).unwrap_or(u32::MAX), place.generation))
        });
        held.collect()
    }

    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

/// A token's highest bit is never set: it tells messages without a tag (`receive`).
const GENERATIONS: u32 = u32::MAX >> 1;

const fn token(index: u32, generation: u32) -> MessageToken {
    MessageToken(((generation as u64) << 32) | index as u64)
}

#[expect(clippy::cast_possible_truncation, reason = "the two halves of the token are meant")]
const fn parts(token: MessageToken) -> (u32, u32) {
    (token.0 as u32, (token.0 >> 32) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Tag;

    fn held(peer: u32, body: Body) -> Held {
        let header = Header { tag: Tag(1), length: 0, app_ctx: 0, immediate: None, remote: None };
        Held { source: PeerId(peer), header, body }
    }

    #[test]
    fn a_token_names_its_message_until_it_is_taken_and_nothing_after() {
        let mut messages = HeldMessages::default();
        let first = messages.insert(held(1, Body::Slab(0)));
        assert!(messages.find(first).is_some() && messages.take(first).is_some());
        let second = messages.insert(held(1, Body::Slab(0)));
        assert_ne!(first, second);
        assert!(messages.take(first).is_none() && messages.find(second).is_some());
        assert_eq!(messages.len(), 1);
    }

    #[test]
    fn tokens_leave_the_highest_bit_to_messages_without_a_tag_however_often_a_place_is_used() {
        let mut messages = HeldMessages::default();
        messages.places.push(Place { generation: GENERATIONS, held: None });
        messages.free.push(0);
        let last = messages.insert(held(1, Body::Slab(0)));
        assert_eq!(last.0 >> 63, 0);
        assert!(messages.take(last).is_some());
        let next = messages.insert(held(1, Body::Slab(0)));
        assert_eq!((next.0 >> 63, messages.find(last).is_some()), (0, false));
    }

    #[test]
    fn only_what_lies_at_a_peer_is_lost_with_it() {
        let mut messages = HeldMessages::default();
        let remote = Body::Remote(Remote { address: 1, key: 2, length: 3 });
        messages.insert(held(1, Body::Slab(0)));
        let lost = messages.insert(held(1, remote));
        assert_eq!(messages.remote_of(PeerId(1)), [lost]);
        assert_eq!(messages.remote_of(PeerId(2)), []);
    }
}
