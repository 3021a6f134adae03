//! Receives that have been matched and whose data is under way; multi-receive buffers in use; messages claimed.
//!
//! Small tables with generational ids, so that whatever a device names is checked.

use slab::Slab;

use crate::ids::{DeviceId, PeerId, ReceiveId, Tag, TransferId};
use crate::seam::{Arrival, Buffer};

use super::completion::Received;

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

/// Transfers under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Transfers {
    slab: Slab<Transfer>,
    generations: Vec<u32>,
}

impl Transfers {
    pub(super) fn insert(&mut self, transfer: Transfer) -> TransferId {
        let index = self.slab.insert(transfer);
        if self.generations.len() <= index {
            self.generations.resize(index + 1, 0);
        }
        TransferId { index: u32::try_from(index).unwrap_or(u32::MAX), generation: self.generations[index] }
    }

    pub(super) fn find(&self, id: TransferId) -> Option<&Transfer> {
        let transfer = self.slab.get(id.index as usize)?;
        (self.generations.get(id.index as usize) == Some(&id.generation)).then_some(transfer)
    }

    pub(super) fn take(&mut self, id: TransferId) -> Option<Transfer> {
        self.find(id)?;
        let generation = &mut self.generations[id.index as usize];
        *generation = generation.wrapping_add(1);
        Some(self.slab.remove(id.index as usize))
    }

    /// Those under way through a device, whose end it will name by themselves. Not for the hot path.
    pub(super) fn through(&self, device: DeviceId) -> Vec<TransferId> {
        self.slab
            .iter()
            .filter(|(_, transfer)| transfer.device == device && !transfer.by_entry)
            .map(|(index, _)| TransferId {
                index: u32::try_from(index).unwrap_or(u32::MAX),
                generation: self.generations[index],
            })
            .collect()
    }

    pub(super) fn len(&self) -> usize {
        self.slab.len()
    }

    pub(super) fn canonical(&self, out: &mut Vec<u64>) {
        let mut all: Vec<_> =
            self.slab.iter().map(|(_, t)| (t.context, t.message.app_ctx, t.device.0, t.by_entry)).collect();
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
            device,
        }
    }

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
