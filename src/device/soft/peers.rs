//! The senders of a soft device: what each has sent that was not accepted, and what is coming in.
//!
//! A sender's messages come in the order it sent them, one at a time (a QP). Between senders there is no order.

use std::collections::VecDeque;

use super::message::SoftMessage;
use crate::ids::{MessageToken, PeerId};
use crate::seam::Buffer;

/// All senders, ordered by their number.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Peers {
    peers: Vec<Peer>,
    sent: u64,
}

impl Peers {
    pub(crate) fn find(&self, id: PeerId) -> Option<&Peer> {
        self.peers.get(self.place(id).ok()?)
    }

    pub(crate) fn find_mut(&mut self, id: PeerId) -> Option<&mut Peer> {
        let place = self.place(id).ok()?;
        self.peers.get_mut(place)
    }

    /// The sender, which is new if it was not known.
    pub(crate) fn entry(&mut self, id: PeerId) -> &mut Peer {
        let place = self.place(id).unwrap_or_else(|place| {
            self.peers.insert(place, Peer::new(id));
            place
        });
        &mut self.peers[place]
    }

    pub(crate) fn push(&mut self, id: PeerId, message: SoftMessage) {
        let sequence = self.sent;
        self.sent += 1;
        self.entry(id).queue.push_back(Queued { sequence, message });
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Peer> {
        self.peers.iter()
    }

    pub(crate) fn is_lost(&self, id: PeerId) -> bool {
        self.find(id).is_some_and(|peer| peer.lost)
    }

    fn place(&self, id: PeerId) -> Result<usize, usize> {
        self.peers.binary_search_by_key(&id, |peer| peer.id)
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Peer {
    pub(crate) id: PeerId,
    pub(crate) queue: VecDeque<Queued>,
    pub(crate) receiving: Option<Receiving>,
    pub(crate) lost: bool,
}

impl Peer {
    const fn new(id: PeerId) -> Self {
        Self { id, queue: VecDeque::new(), receiving: None, lost: false }
    }
}

/// A message that was not accepted.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Queued {
    /// Its place among all messages sent to the device: only the automatic mode looks at it.
    pub(crate) sequence: u64,
    pub(crate) message: SoftMessage,
}

/// A message whose first packet was accepted.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Receiving {
    pub(crate) message: SoftMessage,
    /// Packets to come; at least one.
    pub(crate) remaining: u32,
    pub(crate) into: Into,
}

/// Where a message goes that is coming in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Into {
    /// A tagged buffer.
    Entry { index: u16, buffer: Buffer },
    /// A buffer for unexpected messages.
    Unexpected { receive: u64, counted: bool },
    /// A buffer for unexpected messages, without a tag.
    NoTag { receive: u64 },
    /// The host side.
    Held(MessageToken),
}
