//! Receives that have been matched and whose data is under way; multi-receive buffers in use; messages claimed.
//!
//! Small tables with generational ids, so that whatever a device names is checked.

use crate::ids::{DeviceId, PeerId, ReceiveId, Tag, TransferId};
use crate::seam::{Arrival, Buffer};

use super::completion::Received;
use super::{NONE, index32};

/// A matched receive whose data is under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    pub(super) context: u64,
    pub(super) message: Received,
    /// Where the payload ends up.
    pub(super) buffer: Buffer,
    /// The device that will tell its end.
    pub(super) device: DeviceId,
    /// The buffer of which this is a piece.
    pub(super) multi: Option<u32>,
    /// The payload comes into the tagged buffer of an entry; the device names the entry.
    pub(super) by_entry: bool,
}

impl Transfer {
    /// Whether it is a whole receive, of which the device will name the transfer.
    #[inline(always)]
    pub(super) const fn is_whole(&self) -> bool {
        self.multi.is_none() && !self.by_entry
    }
}

/// Transfers under way. A place keeps its generation when it is free, and a new transfer is written over the old one
/// where it lies: neither is moved.
#[derive(Clone, Debug)]
pub(super) struct Transfers {
    places: Vec<Place>,
    /// The place that was freed last, linked to the one before it.
    free: u32,
    len: usize,
}

#[derive(Clone, Debug)]
struct Place {
    transfer: Transfer,
    generation: u32,
    next_free: u32,
    in_use: bool,
}

impl Default for Transfers {
    fn default() -> Self {
        Self { places: Vec::new(), free: NONE, len: 0 }
    }
}

impl Transfers {
    /// Enter one, if there is room: its name, and where it lies.
    #[inline(always)]
    pub(super) fn put(&mut self, transfer: Transfer) -> Option<(TransferId, &Transfer)> {
        let index = self.free;
        let place = self.places.get_mut(index as usize)?;
        place.transfer = transfer;
        place.in_use = true;
        self.free = place.next_free;
        self.len += 1;
        Some((TransferId { index, generation: place.generation }, &place.transfer))
    }

    pub(super) fn insert(&mut self, transfer: Transfer) -> TransferId {
        if let Some((id, _)) = self.put(transfer) {
            return id;
        }
        let id = TransferId { index: index32(self.places.len()), generation: 0 };
        self.places.push(Place { transfer, generation: 0, next_free: NONE, in_use: true });
        self.len += 1;
        id
    }

    #[inline(always)]
    pub(super) fn find(&self, id: TransferId) -> Option<&Transfer> {
        let place = self.places.get(id.index as usize)?;
        (place.in_use && place.generation == id.generation).then_some(&place.transfer)
    }

    /// Forget one that was found.
    #[inline(always)]
    pub(super) fn forget(&mut self, id: TransferId) {
        if let Some(place) = self.places.get_mut(id.index as usize) {
            place.generation = place.generation.wrapping_add(1);
            (place.in_use, place.next_free) = (false, self.free);
            self.free = id.index;
            self.len -= 1;
        }
    }

    pub(super) fn take(&mut self, id: TransferId) -> Option<Transfer> {
        let transfer = *self.find(id)?;
        self.forget(id);
        Some(transfer)
    }

    fn iter(&self) -> impl Iterator<Item = (TransferId, &Transfer)> + '_ {
        let in_use = self.places.iter().enumerate().filter(|(_, place)| place.in_use);
        in_use.map(|(index, place)| {
            (TransferId { index: index32(index), generation: place.generation }, &place.transfer)
        })
    }

    /// Those under way through a device, whose end it will name by themselves. Not for the hot path.
    pub(super) fn through(&self, device: DeviceId) -> Vec<TransferId> {
        self.iter()
            .filter(|(_, transfer)| transfer.device == device && !transfer.by_entry)
            .map(|(id, _)| id)
            .collect()
    }

    /// Whose messages they are.
    pub(super) fn sources(&self) -> impl Iterator<Item = PeerId> + '_ {
        self.iter().map(|(_, transfer)| transfer.message.source)
    }

    /// What devices have matched of this peer's has no word any more.
    pub(super) fn forget_words(&mut self, peer: PeerId) {
        for Place { transfer: Transfer { message, .. }, .. } in &mut self.places {
            if message.source == peer && message.matched_by.is_some() {
                message.app_ctx = 0;
            }
        }
    }

    /// Messages of `from` are `to`'s.
    pub(super) fn rename(&mut self, from: PeerId, to: PeerId) {
        for place in &mut self.places {
            let source = &mut place.transfer.message.source;
            *source = if *source == from { to } else { *source };
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn canonical(&self, out: &mut Vec<u64>) {
        let mut all: Vec<_> =
            self.iter().map(|(_, t)| (t.context, t.message.app_ctx, t.device.0, t.by_entry)).collect();
        all.sort_unstable();
        out.push(all.len() as u64);
        for (context, app_ctx, device, by_entry) in all {
            out.extend([context, u64::from(app_ctx), u64::from(device) << 1 | u64::from(by_entry)]);
        }
    }
}

/// A claimed message, and which claim of all it was: a stale one names nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claimed {
    pub(super) serial: u32,
    pub(super) message: super::waiting::Message,
}

/// A multi-receive buffer: it stays posted at its place until less than `least` is left of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Multi {
    pub(super) context: u64,
    pub(super) receive: Option<ReceiveId>,
    /// What is left.
    pub(super) rest: Buffer,
    pub(super) least: u64,
    /// Pieces whose data is under way.
    pub(super) under_way: u32,
    /// It takes no more.
    pub(super) closed: bool,
    pub(super) cancelled: bool,
}

/// What is known of a message that waits for its receive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Held {
    pub(super) token: crate::ids::MessageToken,
    pub(super) length: u64,
    pub(super) app_ctx: u32,
    pub(super) immediate: u32,
    pub(super) has_immediate: bool,
    /// All of it has been there since it arrived ([`Arrival::in_hand`]).
    pub(super) in_hand: bool,
    pub(super) device: DeviceId,
}

impl Held {
    pub(super) fn new(device: DeviceId, arrival: &Arrival) -> Self {
        let header = &arrival.header;
        Self {
            token: arrival.message,
            length: header.length,
            app_ctx: header.app_ctx,
            immediate: header.immediate.unwrap_or(0),
            has_immediate: header.immediate.is_some(),
            in_hand: arrival.in_hand,
            device,
        }
    }

    #[inline]
    pub(super) fn received(&self, tag: Tag, source: PeerId, buffer: &Buffer) -> Received {
        Received {
            source,
            tag,
            length: self.length,
            placed: self.length.min(buffer.length),
            address: buffer.address,
            app_ctx: self.app_ctx,
            immediate: self.has_immediate.then_some(self.immediate),
            matched_by: None,
        }
    }
}
