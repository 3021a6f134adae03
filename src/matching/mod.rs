//! The software matcher: posted receives, unexpected messages, and the one order between them.
//!
//! A message goes to the earliest-posted receive that fits; a receive takes the earliest-arrived message that fits.
//! Each list is numbered by one sequence, and searched in two ways. The few newest entries of a short list are
//! looked at one by one. The rest is in indexes: a *class* is all patterns of one mask and one kind of source, and
//! has a hash table from key (masked tag, source) to a FIFO. A receive is in the index of its class, and a message
//! looks into each class that holds any; a message is in the index of every class that receives have searched, and
//! a receive looks into its own. So a search costs O(live classes), whatever the depth, and anything can be
//! removed in constant time per class.
//!
//! Up to sixteen classes a list are live at once. Beyond that everything stays exact, but what has no class is
//! found by scanning. The first search with a new mask on a long unexpected list builds its class by one scan.
//!
//! Not here: what a receive or a message *is*. Both carry a plain value of the caller's.

#![forbid(unsafe_code)]

mod building;
mod chunks;
mod class;
mod fifo;
mod hash;
mod interface;
mod message;
pub mod naive;
mod outcome;
mod pattern;
mod posted;
mod receive;
mod store;
mod table;
#[cfg(test)]
mod tests;
mod unexpected;

use std::fmt;

pub use class::SourceKind;
pub use interface::Matching;
pub use naive::Naive;
pub use outcome::{Arrived, MemoryBytes, Posted, Resolved, Statistics, Stay};
pub use pattern::{Envelope, Pattern};

use crate::ids::{GroupId, Ignore, MessageId, PeerId, ReceiveId};
use class::{Groups, Wanted};
use hash::Hasher;
pub(crate) use message::Message as Unexpected;
use posted::PostedList;
pub(crate) use table::Elsewhere;
use unexpected::UnexpectedList;

/// How a [`Matcher`] is set up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Seeds the hash, so that nobody can choose tags that collide. Results never depend on it.
    pub hash_seed: u64,
    /// So many entries of a short list are searched one by one before indexes are used: 0 to 64.
    pub dense_limit: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { hash_seed: 0, dense_limit: store::PLACES }
    }
}

/// The software matcher. `R` is what the caller keeps with a receive, `M` with a message.
///
/// Ids are generational: a stale one names nothing, for 2^32 further entries of its list.
#[derive(Clone)]
pub struct Matcher<R, M> {
    posted: PostedList<R>,
    unexpected: UnexpectedList<M>,
    groups: Groups,
}

impl<R: Copy, M: Copy> Matcher<R, M> {
    /// Both lists empty. Allocates nothing.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let hasher = Hasher::new(config.hash_seed);
        Self {
            posted: PostedList::new(hasher, config.dense_limit),
            unexpected: UnexpectedList::new(hasher, config.dense_limit),
            groups: Groups::default(),
        }
    }

    /// A receive takes the earliest message that fits and leaves at once, or else is posted.
    ///
    /// A receive that stays ([`Stay::Posted`]) is posted only once no waiting message fits: after
    /// [`Posted::Matched`] the caller posts it again if there is room left in it.
    #[inline(always)]
    pub fn post(&mut self, pattern: Pattern, stay: Stay, value: R) -> Posted<M> {
        self.post_where_it_lies(&pattern, stay, move || value)
    }

    /// [`Self::post`], for a caller who has the pattern in memory anyway. The value is made where it is to lie.
    #[inline(always)]
    pub(crate) fn post_where_it_lies(
        &mut self,
        pattern: &Pattern,
        stay: Stay,
        value: impl Fn() -> R,
    ) -> Posted<M> {
        if self.unexpected.store.is_short()
            && let Some(wanted) = Wanted::without_group(pattern)
        {
            if let Some(found) = self.unexpected.find_current(&wanted) {
                let (message, envelope, value) = found.entry.taken(found.slot);
                found.remove();
                return Posted::Matched { message, envelope, value };
            }
            return match self.posted.queue_dense(wanted, stay, &value) {
                Some(receive) => Posted::Queued(receive),
                None => Posted::Queued(self.posted.queue_indexed(pattern, stay, value)),
            };
        }
        // Taken apart, so that a caller's inlined code keeps the usual results in registers.
        match self.post_any(pattern, stay, value) {
            Posted::Matched { message, envelope, value } => Posted::Matched { message, envelope, value },
            Posted::Queued(receive) => Posted::Queued(receive),
        }
    }

    #[cold]
    #[inline(never)]
    fn post_any(&mut self, pattern: &Pattern, stay: Stay, value: impl Fn() -> R) -> Posted<M> {
        match self.take_unexpected_for(pattern) {
            Ok(Some((message, taken))) => {
                Posted::Matched { message, envelope: taken.envelope(), value: *taken.value() }
            }
            Ok(None) => self.post_past_index(pattern, stay, value, true),
            Err(_) => self.post_past_index(pattern, stay, value, false),
        }
    }

    /// The most frequent part of [`Self::post`] where [`Self::is_unexpected_short`] is false, for callers whose own work
    /// is as short: take the earliest indexed message that fits. If there is none, or that cannot be told (an error),
    /// [`Self::post_past_index`] goes on from here.
    #[inline(always)]
    pub(crate) fn take_unexpected_for(
        &mut self,
        pattern: &Pattern,
    ) -> Result<Option<(MessageId, &Unexpected<M>)>, Elsewhere> {
        let Some(wanted) = Wanted::without_group(pattern) else { return Err(Elsewhere) };
        self.unexpected.take_first_quick(&wanted)
    }

    /// [`Self::post`] once [`Self::take_unexpected_for`] has looked, and whether no indexed message fits.
    #[inline(always)]
    pub(crate) fn post_past_index(
        &mut self,
        pattern: &Pattern,
        stay: Stay,
        value: impl Fn() -> R,
        none_indexed: bool,
    ) -> Posted<M> {
        let wanted = Wanted::new(pattern);
        let taken = if none_indexed {
            self.unexpected.take_first_dense(&wanted, &self.groups)
        } else {
            self.take_unexpected_anywhere(pattern)
        };
        match taken {
            Some((message, envelope, value)) => Posted::Matched { message, envelope, value },
            None => Posted::Queued(self.posted.queue(pattern, stay, value)),
        }
    }

    #[inline(never)]
    fn take_unexpected_anywhere(&mut self, pattern: &Pattern) -> Option<(MessageId, Envelope, M)> {
        let wanted = Wanted::new(pattern);
        if self.unexpected.has_several()
            && !self.unexpected.store.is_short()
            && let Ok(taken) = self.unexpected.take_first_of_several(&wanted, &self.groups)
        {
            let taken = taken.map(|(id, message)| (id, message.envelope(), *message.value()));
            return taken.or_else(|| self.unexpected.take_first_dense(&wanted, &self.groups));
        }
        self.take_unexpected_slow(&wanted)
    }

    #[inline(never)]
    fn take_unexpected_slow(&mut self, wanted: &Wanted) -> Option<(MessageId, Envelope, M)> {
        self.unexpected.take_first(wanted, &self.groups)
    }

    /// A message goes to the earliest receive that fits, or else joins the unexpected ones.
    #[inline(always)]
    pub fn arrive(&mut self, envelope: Envelope, value: M) -> Arrived<R> {
        self.arrive_with(envelope, move || value)
    }

    /// [`Self::arrive`], with a value that is made where it is to lie.
    #[inline(always)]
    pub(crate) fn arrive_with(&mut self, envelope: Envelope, value: impl Fn() -> M) -> Arrived<R> {
        if self.posted.store.is_short() {
            let Some(found) = self.posted.find_current(&envelope) else {
                return Arrived::Unexpected(self.unexpected.queue(&envelope, value, &self.groups));
            };
            if found.entry.is_plain() {
                let (receive, value) = (found.entry.id(found.slot), found.entry.value());
                found.remove();
                return Arrived::Matched { receive, value };
            }
        }
        // Taken apart, so that a caller's inlined code keeps the usual results in registers.
        match self.arrive_any(envelope, value) {
            Arrived::Matched { receive, value } => Arrived::Matched { receive, value },
            Arrived::Unexpected(message) => Arrived::Unexpected(message),
        }
    }

    /// The other half of [`Self::try_queue_posted`].
    #[inline(always)]
    pub(crate) fn queue_posted_slow(&mut self, pattern: &Pattern, value: impl Fn() -> R) -> ReceiveId {
        self.posted.queue_slow(pattern, Stay::Once, value)
    }

    /// The same where that takes a place in an index.
    #[inline(always)]
    pub(crate) fn try_index_posted(&mut self, pattern: &Pattern, value: impl Fn() -> R) -> Option<ReceiveId> {
        self.posted.try_queue_indexed(&Wanted::without_group(pattern)?, Stay::Once, value)
    }

    /// The quick half of [`Self::queue_unexpected`]: `None`, and nothing has changed, if that takes more than a place among
    /// the newest. Makes no call.
    #[inline(always)]
    pub(crate) fn try_hold(&mut self, envelope: &Envelope, value: impl Fn() -> M) -> Option<MessageId> {
        self.unexpected.queue_dense(envelope, value)
    }

    /// The quick half of [`Self::queue_unexpected`] where that takes a place in an index: `None`, and nothing has changed,
    /// if it takes more. Makes no call.
    #[inline(always)]
    pub(crate) fn try_index_unexpected(
        &mut self,
        envelope: &Envelope,
        value: impl Fn() -> M,
    ) -> Option<MessageId> {
        self.unexpected.try_queue_indexed(envelope, value)
    }

    /// The quick half of [`Self::post`] where no message waits, of a receive that leaves with its first match: its id, and
    /// its value, which is an old one and the caller's to write. `None`, and nothing has changed, if that takes more than
    /// a place among the newest. Makes no call.
    #[inline(always)]
    pub(crate) fn try_queue_posted(&mut self, pattern: &Pattern) -> Option<(ReceiveId, &mut R)> {
        self.posted.place_dense(Wanted::without_group(pattern)?, Stay::Once)
    }

    /// The quick half of [`Self::arrive`]: the value of the earliest receive that fits, which has left the list, or
    /// that there is none. An error, and nothing has changed, if that cannot be told without a call.
    #[inline(always)]
    pub(crate) fn try_take_posted_for(&mut self, envelope: &Envelope) -> Result<Option<&R>, Elsewhere> {
        if !self.posted.store.is_short() {
            return Err(Elsewhere);
        }
        match self.posted.find_current(envelope) {
            Some(found) if found.entry.is_plain() => Ok(Some(found.remove_and_read(|entry| &entry.value))),
            Some(_) => Err(Elsewhere),
            None => Ok(None),
        }
    }

    /// The quick half of [`Self::post`] where messages wait: the earliest that fits, which has left the list, or that
    /// there is none. An error, and nothing has changed, if that cannot be told without a call.
    #[inline(always)]
    pub(crate) fn try_take_unexpected_for(
        &mut self,
        pattern: &Pattern,
    ) -> Result<Option<&Unexpected<M>>, Elsewhere> {
        if !self.unexpected.store.is_short() {
            return Err(Elsewhere);
        }
        let Some(wanted) = Wanted::without_group(pattern) else { return Err(Elsewhere) };
        let found = self.unexpected.find_current(&wanted);
        Ok(found.map(|found| found.remove_and_read(|entry| entry)))
    }

    #[cold]
    #[inline(never)]
    fn arrive_any(&mut self, envelope: Envelope, value: impl Fn() -> M) -> Arrived<R> {
        match self.take_posted_for(&envelope) {
            Ok(Some((receive, &value))) => Arrived::Matched { receive, value },
            Ok(None) => self.arrive_past_index(&envelope, value, true),
            Err(_) => self.arrive_past_index(&envelope, value, false),
        }
    }

    /// The most frequent part of [`Self::arrive`] where [`Self::is_posted_short`] is false, for callers whose own work
    /// is as short: take the earliest indexed receive that fits. If there is none, or that cannot be told (an error),
    /// [`Self::arrive_past_index`] goes on from here.
    #[inline(always)]
    pub(crate) fn take_posted_for(
        &mut self,
        envelope: &Envelope,
    ) -> Result<Option<(ReceiveId, &R)>, Elsewhere> {
        self.posted.take_first_quick(envelope)
    }

    /// [`Self::arrive`] once [`Self::take_posted_for`] has looked, and whether no indexed receive fits.
    #[inline(always)]
    pub(crate) fn arrive_past_index(
        &mut self,
        envelope: &Envelope,
        value: impl Fn() -> M,
        none_indexed: bool,
    ) -> Arrived<R> {
        let taken = if none_indexed {
            self.posted.take_first_dense(envelope, &self.groups)
        } else {
            self.take_posted_anywhere(envelope)
        };
        match taken {
            Some((receive, value)) => Arrived::Matched { receive, value },
            None => Arrived::Unexpected(self.unexpected.queue(envelope, value, &self.groups)),
        }
    }

    #[inline(never)]
    fn take_posted_anywhere(&mut self, envelope: &Envelope) -> Option<(ReceiveId, R)> {
        if self.posted.has_classes()
            && let Ok(taken) = self.posted.take_first_of_classes(envelope, &self.groups)
        {
            return taken.or_else(|| self.posted.take_first_dense(envelope, &self.groups));
        }
        self.take_posted_slow(envelope)
    }

    #[inline(never)]
    fn take_posted_slow(&mut self, envelope: &Envelope) -> Option<(ReceiveId, R)> {
        self.posted.take_first(envelope, &self.groups)
    }

    /// The earliest posted receive that fits a message. Changes nothing.
    #[inline]
    #[must_use]
    pub fn first_posted(&self, envelope: &Envelope) -> Option<ReceiveId> {
        self.posted.first(envelope, &self.groups)
    }

    /// The earliest unexpected message that fits a pattern: a peek. Takes nothing, but may build the pattern's
    /// class.
    #[inline(always)]
    pub fn first_unexpected(&mut self, pattern: &Pattern) -> Option<MessageId> {
        self.unexpected.first(&Wanted::new(pattern), &self.groups)
    }

    /// Post a receive that no waiting message fits: [`Self::first_unexpected`] said so, or the caller took it.
    #[inline(always)]
    pub fn queue_posted(&mut self, pattern: Pattern, stay: Stay, value: R) -> ReceiveId {
        self.posted.queue(&pattern, stay, move || value)
    }

    /// [`Self::queue_posted`], with a value that is made where it is to lie.
    #[inline(always)]
    pub(crate) fn queue_posted_with(
        &mut self,
        pattern: &Pattern,
        stay: Stay,
        value: impl Fn() -> R,
    ) -> ReceiveId {
        self.posted.queue(pattern, stay, value)
    }

    /// Add a message that no posted receive fits: [`Self::first_posted`] said so.
    #[inline(always)]
    pub fn queue_unexpected(&mut self, envelope: Envelope, value: M) -> MessageId {
        self.unexpected.queue(&envelope, move || value, &self.groups)
    }

    /// [`Self::queue_unexpected`], with a value that is made where it is to lie.
    #[inline(always)]
    pub(crate) fn queue_unexpected_with(&mut self, envelope: &Envelope, value: impl Fn() -> M) -> MessageId {
        self.unexpected.queue(envelope, value, &self.groups)
    }

    /// Take a receive off the list, whether it stays or not: it matched or was cancelled. None if the id is stale.
    #[inline(always)]
    pub fn take_posted(&mut self, id: ReceiveId) -> Option<(Pattern, R)> {
        self.posted.take(id)
    }

    /// The quick half of [`Self::take_posted`] for a receive that a message took which the caller knows of, for
    /// callers whose own work is as short: what `read` makes of the caller's value. None, and nothing has changed, if
    /// the message does not fit or the receive is not among the newest of a short list.
    #[inline(always)]
    pub fn try_take_posted_by<O>(
        &mut self,
        id: ReceiveId,
        envelope: &Envelope,
        read: impl FnOnce(&R) -> O,
    ) -> Option<O> {
        self.posted.take_current(id, envelope, read)
    }

    /// Take a message off the list: it matched, was claimed or is discarded. None if the id is stale.
    #[inline(always)]
    pub fn take_unexpected(&mut self, id: MessageId) -> Option<(Envelope, M)> {
        self.unexpected.take(id, &self.groups)
    }

    /// A posted receive. None if the id is stale.
    #[inline]
    #[must_use]
    pub fn posted(&self, id: ReceiveId) -> Option<(Pattern, &R)> {
        self.posted.get(id)
    }

    /// The caller's value of a posted receive. None if the id is stale.
    #[inline]
    pub fn posted_mut(&mut self, id: ReceiveId) -> Option<&mut R> {
        self.posted.get_mut(id)
    }

    /// Whether a posted receive stays when it is matched. None if the id is stale.
    #[inline]
    #[must_use]
    pub fn stays(&self, id: ReceiveId) -> Option<Stay> {
        self.posted.stays(id)
    }

    /// An unexpected message. None if the id is stale.
    #[inline]
    #[must_use]
    pub fn unexpected(&self, id: MessageId) -> Option<(Envelope, &M)> {
        self.unexpected.get(id)
    }

    /// The caller's value of an unexpected message. None if the id is stale.
    #[inline]
    pub fn unexpected_mut(&mut self, id: MessageId) -> Option<&mut M> {
        self.unexpected.get_mut(id)
    }

    /// How many receives are posted.
    #[inline]
    #[must_use]
    pub const fn posted_len(&self) -> usize {
        self.posted.store.len()
    }

    /// Whether no posted receive is in an index.
    #[inline(always)]
    #[must_use]
    pub const fn is_posted_short(&self) -> bool {
        self.posted.store.is_short()
    }

    /// Whether no unexpected message is in an index.
    #[inline(always)]
    #[must_use]
    pub const fn is_unexpected_short(&self) -> bool {
        self.unexpected.store.is_short()
    }

    /// Whether any message is unexpected: quicker than asking how many.
    #[inline(always)]
    #[must_use]
    pub const fn has_unexpected(&self) -> bool {
        !self.unexpected.store.is_empty()
    }

    /// How many messages are unexpected.
    #[inline]
    #[must_use]
    pub const fn unexpected_len(&self) -> usize {
        self.unexpected.store.len()
    }

    /// Every posted receive, in the order of posting. Looks at every slot ever used, and sorts.
    #[must_use]
    pub fn posted_ids(&self) -> Vec<ReceiveId> {
        self.posted.ids()
    }

    /// Every unexpected message, in the order of arrival. Looks at every slot ever used, and sorts.
    #[must_use]
    pub fn unexpected_ids(&self) -> Vec<MessageId> {
        self.unexpected.ids()
    }

    /// The unexpected messages whose value is wanted, in the order of arrival. Looks at every slot ever used.
    pub fn unexpected_where(&self, wanted: impl Fn(&M) -> bool) -> Vec<MessageId> {
        self.unexpected.ids_by_value(wanted)
    }

    /// Call with the peer of each posted receive that names one and with the sender of each unexpected message, and say
    /// how many slots were looked at: of a list that is not empty, every slot ever used.
    pub fn for_each_peer(&self, each: &mut dyn FnMut(PeerId)) -> usize {
        self.posted.for_each_peer(each) + self.unexpected.for_each_peer(each)
    }

    /// The group that a peer is in.
    #[must_use]
    pub fn group_of(&self, peer: PeerId) -> Option<GroupId> {
        self.groups.of(peer.0)
    }

    /// A peer joins a group, and leaves the one it was in. Its waiting messages may now fit posted receives: such
    /// matches are made in order of arrival, and reported. Looks at every slot ever used.
    pub fn join_group(&mut self, peer: PeerId, group: GroupId, matched: &mut dyn FnMut(Resolved<R, M>)) {
        self.set_group(peer, Some(group));
        self.match_waiting(peer, matched);
    }

    /// A peer leaves its group, if it is in one. Its waiting messages stay.
    pub fn leave_group(&mut self, peer: PeerId) {
        self.set_group(peer, None);
    }

    /// `from` turned out to be `to`, a source learned late: its messages and receives become `to`'s and keep their
    /// places; `from` leaves its group, `to` stays in its own. Messages that now fit posted receives are matched in
    /// order of arrival, each to the earliest that fits, and reported. Looks at every slot ever used.
    pub fn resolve(&mut self, from: PeerId, to: PeerId, matched: &mut dyn FnMut(Resolved<R, M>)) {
        if from == to {
            return;
        }
        self.posted.rename(from.0, to.0);
        self.unexpected.rename(from.0, to.0, &self.groups);
        self.groups.set(from.0, None);
        self.match_waiting(to, matched);
    }

    /// As [`Self::resolve`], but without matching: the messages of `to` now, in order of arrival, some of which may
    /// have come to fit posted receives. For a caller that must look before it takes.
    pub fn rekey(&mut self, from: PeerId, to: PeerId) -> Vec<MessageId> {
        if from != to {
            self.posted.rename(from.0, to.0);
            self.unexpected.rename(from.0, to.0, &self.groups);
            self.groups.set(from.0, None);
        }
        self.unexpected.ids_of(to.0)
    }

    /// As [`Self::join_group`], but without matching: the messages of `peer`, in order of arrival.
    pub fn rekey_group(&mut self, peer: PeerId, group: GroupId) -> Vec<MessageId> {
        self.set_group(peer, Some(group));
        self.unexpected.ids_of(peer.0)
    }

    /// Build the class of a mask and a kind of source beforehand, on both lists, and keep it. Whether both lists
    /// had room for it: of the sixteen classes of a list twelve can be declared.
    pub fn declare(&mut self, ignore: Ignore, kind: SourceKind) -> bool {
        let posted = self.posted.declare(ignore.mask(), kind);
        self.unexpected.declare(ignore.mask(), kind, &self.groups) && posted
    }

    /// Bytes of matching state, values included.
    #[must_use]
    pub fn memory_bytes(&self) -> MemoryBytes {
        MemoryBytes { posted: self.posted.bytes(), unexpected: self.unexpected.bytes() }
    }

    /// Counters, for people and tests.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let mut statistics = Statistics::default();
        self.posted.statistics(&mut statistics);
        self.unexpected.statistics(&mut statistics);
        statistics
    }

    fn set_group(&mut self, peer: PeerId, group: Option<GroupId>) {
        if self.groups.of(peer.0) != group {
            self.groups.set(peer.0, group);
            self.unexpected.regroup(peer.0, &self.groups);
        }
    }

    /// Match what waits of one peer. No other message can have come to fit.
    fn match_waiting(&mut self, peer: PeerId, matched: &mut dyn FnMut(Resolved<R, M>)) {
        for message in self.unexpected.ids_of(peer.0) {
            let Some((envelope, &message_value)) = self.unexpected.get(message) else { continue };
            let Some((receive, value)) = self.posted.take_first(&envelope, &self.groups) else { continue };
            self.unexpected.take(message, &self.groups);
            matched(Resolved { receive, value, message, envelope, message_value });
        }
    }

    /// The invariants of both lists, asserted.
    #[cfg(test)]
    pub(crate) fn check(&mut self) {
        self.posted.check();
        self.unexpected.check(&self.groups);
    }
}

impl<R: Copy, M: Copy> fmt::Debug for Matcher<R, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Matcher")
            .field("posted", &self.posted_len())
            .field("unexpected", &self.unexpected_len())
            .field("statistics", &self.statistics())
            .finish_non_exhaustive()
    }
}
