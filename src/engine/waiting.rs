//! Messages that are not decided yet: their first fit is in a NIC that did not report them, or an earlier message
//! of their sender waits (rule 5).
//!
//! Not here: deciding them.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, DefaultHasher};

use crate::ids::{DeviceId, MessageToken, PeerId};
use crate::matching::Envelope;
use crate::offload::{Bug, is_planted};
use crate::seam::DataError;

use super::transfer::Held;

/// A message, from its arrival until it is decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Message {
    pub(super) envelope: Envelope,
    pub(super) held: Held,
    /// Its device counts it as unexpected.
    pub(super) counted: bool,
}

/// One that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Waiter {
    pub(super) ticket: u64,
    pub(super) message: Message,
    /// The mirror record of its first fit; `None`: it waits behind another of its sender.
    pub(super) record: Option<usize>,
    /// Its data will not come.
    pub(super) dead: Option<DataError>,
}

/// Those that wait, in order of arrival.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    list: VecDeque<Waiter>,
    /// By sender, who may have any number that a device says: no table reaches that far.
    per_peer: HashMap<PeerId, u32, BuildHasherDefault<DefaultHasher>>,
    next_ticket: u64,
}

impl Waiting {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether a message of this sender waits.
    #[inline]
    pub(super) fn holds_back(&self, source: PeerId) -> bool {
        !self.list.is_empty() && self.per_peer.contains_key(&source) && !is_planted(Bug::OrderAcrossPaths)
    }

    /// Whether a message that came through this device waits.
    pub(super) fn is_any_from(&self, device: DeviceId) -> bool {
        self.list.iter().any(|waiter| waiter.message.held.device == device)
    }

    /// Their senders.
    pub(super) fn sources(&self) -> impl Iterator<Item = PeerId> + '_ {
        self.per_peer.keys().copied()
    }

    /// Their senders' words, in order.
    pub(super) fn app_ctxs(&self) -> impl Iterator<Item = u32> + '_ {
        self.list.iter().map(|waiter| waiter.message.held.app_ctx)
    }

    /// A number that no message had before: whoever is named by one that waits no more means nobody, never another.
    pub(super) fn ticket(&mut self) -> u64 {
        self.next_ticket += 1;
        self.next_ticket - 1
    }

    pub(super) fn push(&mut self, waiter: Waiter) {
        *self.per_peer.entry(waiter.message.envelope.source).or_default() += 1;
        self.list.push_back(waiter);
    }

    pub(super) fn take(&mut self, ticket: u64) -> Option<Waiter> {
        let at = self.list.iter().position(|waiter| waiter.ticket == ticket)?;
        let waiter = self.list.remove(at)?;
        self.count_down(&waiter);
        Some(waiter)
    }

    /// All of them, in order: whoever still waits is pushed again.
    pub(super) fn take_all(&mut self) -> VecDeque<Waiter> {
        for waiter in std::mem::take(&mut self.list) {
            self.count_down(&waiter);
            self.list.push_back(waiter);
        }
        std::mem::take(&mut self.list)
    }

    /// The data of this message will not come. Whether it waits here.
    pub(super) fn mark_dead(&mut self, device: DeviceId, token: MessageToken, error: DataError) -> bool {
        let is_it = |waiter: &&mut Waiter| {
            waiter.message.held.device == device
                && waiter.message.held.token == token
                && waiter.dead.is_none()
        };
        let found = self.list.iter_mut().find(is_it);
        if let Some(waiter) = found {
            waiter.dead = Some(error);
            return true;
        }
        false
    }

    /// No message that came through this device has its data any more.
    pub(super) fn mark_device_dead(&mut self, device: DeviceId) {
        for waiter in self.list.iter_mut().filter(|waiter| waiter.message.held.device == device) {
            waiter.dead = Some(DataError::DeviceFailed);
        }
    }

    /// Messages of `from` are `to`'s.
    pub(super) fn rename(&mut self, from: PeerId, to: PeerId) {
        for mut waiter in self.take_all() {
            let source = &mut waiter.message.envelope.source;
            *source = if *source == from { to } else { *source };
            self.push(waiter);
        }
    }

    fn count_down(&mut self, waiter: &Waiter) {
        let source = waiter.message.envelope.source;
        if let Some(waiting) = self.per_peer.get_mut(&source) {
            *waiting -= 1;
            if *waiting == 0 {
                self.per_peer.remove(&source);
            }
        }
    }

    /// Its place among those that wait, counted from 1; 0: it does not wait, and what it has asked for is nobody's.
    pub(super) fn place(&self, ticket: u64) -> u64 {
        let at = self.list.iter().position(|waiter| waiter.ticket == ticket);
        at.map_or(0, |at| at as u64 + 1)
    }

    /// Tickets go by place ([`Waiting::place`]), so that two states that behave alike look alike.
    pub(super) fn canonical(&self, out: &mut Vec<u64>, name: &dyn Fn(usize) -> u64) {
        out.push(self.list.len() as u64);
        for waiter in &self.list {
            out.extend([
                waiter.message.held.token.0,
                u64::from(waiter.message.held.app_ctx),
                waiter.record.map_or(0, |record| name(record).saturating_add(1)),
                u64::from(waiter.dead.is_some()),
            ]);
        }
    }
}
