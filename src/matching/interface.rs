//! What every matcher does, so that the same scripts run over each.
//!
//! Not here: how.

use super::{Arrived, Envelope, Matcher, Naive, Pattern, Posted, Resolved, Stay};
use crate::ids::{GroupId, MessageId, PeerId, ReceiveId};

/// The operations of a matcher. See [`Matcher`] for what the operations mean.
pub trait Matching<R: Copy, M: Copy> {
    /// [`Matcher::post`].
    fn post(&mut self, pattern: Pattern, stay: Stay, value: R) -> Posted<M>;
    /// [`Matcher::arrive`].
    fn arrive(&mut self, envelope: Envelope, value: M) -> Arrived<R>;
    /// [`Matcher::first_posted`].
    fn first_posted(&self, envelope: &Envelope) -> Option<ReceiveId>;
    /// [`Matcher::first_unexpected`].
    fn first_unexpected(&mut self, pattern: &Pattern) -> Option<MessageId>;
    /// [`Matcher::queue_posted`].
    fn queue_posted(&mut self, pattern: Pattern, stay: Stay, value: R) -> ReceiveId;
    /// [`Matcher::queue_unexpected`].
    fn queue_unexpected(&mut self, envelope: Envelope, value: M) -> MessageId;
    /// [`Matcher::take_posted`].
    fn take_posted(&mut self, id: ReceiveId) -> Option<(Pattern, R)>;
    /// [`Matcher::take_unexpected`].
    fn take_unexpected(&mut self, id: MessageId) -> Option<(Envelope, M)>;
    /// [`Matcher::posted_len`].
    fn posted_len(&self) -> usize;
    /// [`Matcher::unexpected_len`].
    fn unexpected_len(&self) -> usize;
    /// [`Matcher::posted_ids`].
    fn posted_ids(&self) -> Vec<ReceiveId>;
    /// [`Matcher::unexpected_ids`].
    fn unexpected_ids(&self) -> Vec<MessageId>;
    /// [`Matcher::join_group`].
    fn join_group(&mut self, peer: PeerId, group: GroupId, matched: &mut dyn FnMut(Resolved<R, M>));
    /// [`Matcher::leave_group`].
    fn leave_group(&mut self, peer: PeerId);
    /// [`Matcher::resolve`].
    fn resolve(&mut self, from: PeerId, to: PeerId, matched: &mut dyn FnMut(Resolved<R, M>));
}

/// Writes the trait out for a type that has all operations as its own.
macro_rules! matching {
    ($matcher:ident) => {
        impl<R: Copy, M: Copy> Matching<R, M> for $matcher<R, M> {
            #[inline(always)]
            fn post(&mut self, pattern: Pattern, stay: Stay, value: R) -> Posted<M> {
                $matcher::post(self, pattern, stay, value)
            }
            #[inline(always)]
            fn arrive(&mut self, envelope: Envelope, value: M) -> Arrived<R> {
                $matcher::arrive(self, envelope, value)
            }
            #[inline]
            fn first_posted(&self, envelope: &Envelope) -> Option<ReceiveId> {
                $matcher::first_posted(self, envelope)
            }
            #[inline(always)]
            fn first_unexpected(&mut self, pattern: &Pattern) -> Option<MessageId> {
                $matcher::first_unexpected(self, pattern)
            }
            #[inline]
            fn queue_posted(&mut self, pattern: Pattern, stay: Stay, value: R) -> ReceiveId {
                $matcher::queue_posted(self, pattern, stay, value)
            }
            #[inline]
            fn queue_unexpected(&mut self, envelope: Envelope, value: M) -> MessageId {
                $matcher::queue_unexpected(self, envelope, value)
            }
            #[inline(always)]
            fn take_posted(&mut self, id: ReceiveId) -> Option<(Pattern, R)> {
                $matcher::take_posted(self, id)
            }
            #[inline(always)]
            fn take_unexpected(&mut self, id: MessageId) -> Option<(Envelope, M)> {
                $matcher::take_unexpected(self, id)
            }
            #[inline]
            fn posted_len(&self) -> usize {
                $matcher::posted_len(self)
            }
            #[inline]
            fn unexpected_len(&self) -> usize {
                $matcher::unexpected_len(self)
            }
            fn posted_ids(&self) -> Vec<ReceiveId> {
                $matcher::posted_ids(self)
            }
            fn unexpected_ids(&self) -> Vec<MessageId> {
                $matcher::unexpected_ids(self)
            }
            fn join_group(&mut self, peer: PeerId, group: GroupId, matched: &mut dyn FnMut(Resolved<R, M>)) {
                $matcher::join_group(self, peer, group, matched);
            }
            fn leave_group(&mut self, peer: PeerId) {
                $matcher::leave_group(self, peer);
            }
            fn resolve(&mut self, from: PeerId, to: PeerId, matched: &mut dyn FnMut(Resolved<R, M>)) {
                $matcher::resolve(self, from, to, matched);
            }
        }
    };
}

matching!(Matcher);
matching!(Naive);
