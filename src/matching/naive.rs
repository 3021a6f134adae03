//! The oracle: two vectors, scanned in order. What every other matcher must agree with.
//!
//! Not here: speed. It is written to be read, and yet is what a plain vector scan costs.

use super::{Arrived, Envelope, Pattern, Posted, Resolved, Stay};
use crate::ids::{GroupId, MessageId, PeerId, ReceiveId, Source};

/// Two vectors. Operations mean what they mean for [`Matcher`](super::Matcher).
#[derive(Clone, Debug)]
pub struct Naive<R, M> {
    posted: Vec<Receive<R>>,
    unexpected: Vec<Message<M>>,
    groups: Vec<Option<GroupId>>,
    next_receive: u64,
    next_message: u64,
}

#[derive(Clone, Copy, Debug)]
struct Receive<R> {
    id: ReceiveId,
    pattern: Pattern,
    stay: Stay,
    value: R,
}

#[derive(Clone, Copy, Debug)]
struct Message<M> {
    id: MessageId,
    envelope: Envelope,
    value: M,
}

impl<R, M> Default for Naive<R, M> {
    fn default() -> Self {
        Self {
            posted: Vec::new(),
            unexpected: Vec::new(),
            groups: Vec::new(),
            next_receive: 0,
            next_message: 0,
        }
    }
}

impl<R: Copy, M: Copy> Naive<R, M> {
    /// Both lists empty.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// See [`Matcher::post`](super::Matcher::post).
    #[inline]
    pub fn post(&mut self, pattern: Pattern, stay: Stay, value: R) -> Posted<M> {
        match self.position_unexpected(&pattern) {
            Some(at) => {
                let message = self.unexpected.remove(at);
                Posted::Matched { message: message.id, envelope: message.envelope, value: message.value }
            }
            None => Posted::Queued(self.queue_posted(pattern, stay, value)),
        }
    }

    /// See [`Matcher::arrive`](super::Matcher::arrive).
    #[inline]
    pub fn arrive(&mut self, envelope: Envelope, value: M) -> Arrived<R> {
        match self.position_posted(&envelope) {
            Some(at) => {
                let receive = self.posted[at];
                if receive.stay == Stay::Once {
                    self.posted.remove(at);
                }
                Arrived::Matched { receive: receive.id, value: receive.value }
            }
            None => Arrived::Unexpected(self.queue_unexpected(envelope, value)),
        }
    }

    /// See [`Matcher::first_posted`](super::Matcher::first_posted).
    #[inline]
    #[must_use]
    pub fn first_posted(&self, envelope: &Envelope) -> Option<ReceiveId> {
        self.position_posted(envelope).map(|at| self.posted[at].id)
    }

    /// See [`Matcher::first_unexpected`](super::Matcher::first_unexpected).
    #[inline]
    #[must_use]
    pub fn first_unexpected(&self, pattern: &Pattern) -> Option<MessageId> {
        self.position_unexpected(pattern).map(|at| self.unexpected[at].id)
    }

    /// See [`Matcher::queue_posted`](super::Matcher::queue_posted).
    #[inline]
    pub fn queue_posted(&mut self, pattern: Pattern, stay: Stay, value: R) -> ReceiveId {
        let id = ReceiveId::from_bits(self.next_receive);
        self.next_receive += 1;
        self.posted.push(Receive { id, pattern, stay, value });
        id
    }

    /// See [`Matcher::queue_unexpected`](super::Matcher::queue_unexpected).
    #[inline]
    pub fn queue_unexpected(&mut self, envelope: Envelope, value: M) -> MessageId {
        let id = MessageId::from_bits(self.next_message);
        self.next_message += 1;
        self.unexpected.push(Message { id, envelope, value });
        id
    }

    /// See [`Matcher::take_posted`](super::Matcher::take_posted).
    #[inline]
    pub fn take_posted(&mut self, id: ReceiveId) -> Option<(Pattern, R)> {
        let at = self.posted.iter().position(|receive| receive.id == id)?;
        let receive = self.posted.remove(at);
        Some((receive.pattern, receive.value))
    }

    /// See [`Matcher::take_unexpected`](super::Matcher::take_unexpected).
    #[inline]
    pub fn take_unexpected(&mut self, id: MessageId) -> Option<(Envelope, M)> {
        let at = self.unexpected.iter().position(|message| message.id == id)?;
        let message = self.unexpected.remove(at);
        Some((message.envelope, message.value))
    }

    /// See [`Matcher::posted`](super::Matcher::posted).
    #[must_use]
    pub fn posted(&self, id: ReceiveId) -> Option<(Pattern, &R)> {
        self.posted.iter().find(|receive| receive.id == id).map(|receive| (receive.pattern, &receive.value))
    }

    /// See [`Matcher::posted_mut`](super::Matcher::posted_mut).
    pub fn posted_mut(&mut self, id: ReceiveId) -> Option<&mut R> {
        self.posted.iter_mut().find(|receive| receive.id == id).map(|receive| &mut receive.value)
    }

    /// See [`Matcher::stays`](super::Matcher::stays).
    #[must_use]
    pub fn stays(&self, id: ReceiveId) -> Option<Stay> {
        self.posted.iter().find(|receive| receive.id == id).map(|receive| receive.stay)
    }

    /// See [`Matcher::unexpected`](super::Matcher::unexpected).
    #[must_use]
    pub fn unexpected(&self, id: MessageId) -> Option<(Envelope, &M)> {
        self.unexpected
            .iter()
            .find(|message| message.id == id)
            .map(|message| (message.envelope, &message.value))
    }

    /// See [`Matcher::unexpected_mut`](super::Matcher::unexpected_mut).
    pub fn unexpected_mut(&mut self, id: MessageId) -> Option<&mut M> {
        self.unexpected.iter_mut().find(|message| message.id == id).map(|message| &mut message.value)
    }

    /// See [`Matcher::posted_len`](super::Matcher::posted_len).
    #[inline]
    #[must_use]
    pub const fn posted_len(&self) -> usize {
        self.posted.len()
    }

    /// See [`Matcher::unexpected_len`](super::Matcher::unexpected_len).
    #[inline]
    #[must_use]
    pub const fn unexpected_len(&self) -> usize {
        self.unexpected.len()
    }

    /// See [`Matcher::posted_ids`](super::Matcher::posted_ids).
    #[must_use]
    pub fn posted_ids(&self) -> Vec<ReceiveId> {
        self.posted.iter().map(|receive| receive.id).collect()
    }

    /// See [`Matcher::unexpected_ids`](super::Matcher::unexpected_ids).
    #[must_use]
    pub fn unexpected_ids(&self) -> Vec<MessageId> {
        self.unexpected.iter().map(|message| message.id).collect()
    }

    /// See [`Matcher::group_of`](super::Matcher::group_of).
    #[inline]
    #[must_use]
    pub fn group_of(&self, peer: PeerId) -> Option<GroupId> {
        self.groups.get(peer.0 as usize).copied().flatten()
    }

    /// See [`Matcher::join_group`](super::Matcher::join_group).
    pub fn join_group(&mut self, peer: PeerId, group: GroupId, matched: &mut dyn FnMut(Resolved<R, M>)) {
        let peers = self.groups.len().max(peer.0 as usize + 1);
        self.groups.resize(peers, None);
        self.groups[peer.0 as usize] = Some(group);
        self.match_waiting(matched);
    }

    /// See [`Matcher::leave_group`](super::Matcher::leave_group).
    pub fn leave_group(&mut self, peer: PeerId) {
        if let Some(group) = self.groups.get_mut(peer.0 as usize) {
            *group = None;
        }
    }

    /// See [`Matcher::resolve`](super::Matcher::resolve).
    pub fn resolve(&mut self, from: PeerId, to: PeerId, matched: &mut dyn FnMut(Resolved<R, M>)) {
        if from == to {
            return;
        }
        for receive in &mut self.posted {
            if receive.pattern.source == Source::Peer(from) {
                receive.pattern.source = Source::Peer(to);
            }
        }
        for message in &mut self.unexpected {
            if message.envelope.source == from {
                message.envelope.source = to;
            }
        }
        self.leave_group(from);
        self.match_waiting(matched);
    }

    /// Every message that fits a receive now, in order of arrival.
    fn match_waiting(&mut self, matched: &mut dyn FnMut(Resolved<R, M>)) {
        let mut at = 0;
        while at < self.unexpected.len() {
            let Message { id: message, envelope, value: message_value } = self.unexpected[at];
            let Some(found) = self.position_posted(&envelope) else {
                at += 1;
                continue;
            };
            self.unexpected.remove(at);
            let Receive { id: receive, stay, value, .. } = self.posted[found];
            if stay == Stay::Once {
                self.posted.remove(found);
            }
            matched(Resolved { receive, value, message, envelope, message_value });
        }
    }

    #[inline]
    fn position_posted(&self, envelope: &Envelope) -> Option<usize> {
        let group = self.group_of(envelope.source);
        self.posted.iter().position(|receive| receive.pattern.fits(envelope, group))
    }

    #[inline]
    fn position_unexpected(&self, pattern: &Pattern) -> Option<usize> {
        self.unexpected
            .iter()
            .position(|message| pattern.fits(&message.envelope, self.group_of(message.envelope.source)))
    }
}
