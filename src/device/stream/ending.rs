//! The end of links: what was under way on them is told, in order.

use super::StreamTransport;
use super::link::State;
use super::medium::{Medium, Stream as _};
use super::out::Of;
use crate::device::transport::{CloseReason, Notice};
use crate::ids::LinkId;

/// What was forked keeps descriptors open: connections end by more than closing them. In a child itself they are the
/// parent's, and nothing is done to them.
impl<M: Medium> Drop for StreamTransport<M> {
    fn drop(&mut self) {
        if self.is_own() {
            self.links.iter_mut().for_each(|link| link.stream.end());
        }
    }
}

impl<M: Medium> StreamTransport<M> {
    /// A link ends here and now. What had come of it was taken.
    pub(super) fn end(&mut self, id: LinkId, reason: CloseReason) {
        let Some(mut link) = self.links.remove(id) else { return };
        let parts = &mut self.parts;
        parts.inbox.lose(id);
        parts.lose_reads(id);
        let pending = &mut parts.inbox.pending;
        for of in link.out.give_up() {
            if let Of::Message(Some(context)) = of {
                pending.notice(Notice::Sent { context, result: Err(reason.clone()) });
            }
        }
        for (_, context) in link.takers {
            pending.notice(Notice::Sent { context, result: Err(reason.clone()) });
        }
        if let Some(peer) = link.peer {
            parts.peers.remove(&peer);
            pending.path_lost(peer);
        }
        pending.notice(Notice::Closed { link: id, reason });
        // A child of this process may have the descriptor too.
        if self.is_own() {
            link.stream.end();
        }
        drop(link.stream);
        self.medium.listener_mut().resume(&self.epoll);
    }

    /// All is out that was to go out before the end. The other side's host has to take it: were the connection closed with
    /// bytes unread, or did more come for it, what is still on its way would be dropped.
    pub(super) fn shut(&mut self, id: LinkId) {
        let Some(link) = self.links.find_mut(id) else { return };
        if link.write_failure.is_some() || link.stream.end_writing().is_err() {
            return self.end(id, CloseReason::Here);
        }
        link.state = State::Shut;
        self.watch(id);
    }

    /// Look from now on how much of this link the other side's host has.
    pub(super) fn watch(&mut self, id: LinkId) {
        if let Some(link) = self.links.find_mut(id)
            && !link.is_watched
        {
            link.is_watched = true;
            self.watched.push(id);
        }
    }

    /// What the other side's host has of links that are watched.
    pub(super) fn look_at_watched(&mut self) {
        let mut watched = std::mem::take(&mut self.watched);
        watched.retain(|&id| {
            let Some(link) = self.links.find_mut(id) else { return false };
            let untaken = link.out.waiting() + link.stream.unacknowledged();
            let taken = link.out.given().saturating_sub(untaken);
            while let Some(&(position, context)) = link.takers.front()
                && position <= taken
            {
                link.takers.pop_front();
                self.parts.inbox.pending.notice(Notice::Sent { context, result: Ok(()) });
            }
            if link.state == State::Shut && untaken == 0 {
                self.end(id, CloseReason::Here);
                return false;
            }
            link.is_watched = link.is_closing() || !link.takers.is_empty();
            link.is_watched
        });
        self.watched = watched;
    }

    /// Links that were to end while somebody was at work on them.
    pub(super) fn end_ending(&mut self) {
        while let Some((id, reason)) = self.parts.ending.pop() {
            self.end(id, reason);
        }
    }
}
