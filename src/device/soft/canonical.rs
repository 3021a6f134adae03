//! The state of a soft device by what it can still do, for counting explored states.
//!
//! Left out, since no client may act on it: SYNC_REQ's counts, the order in which driver handles are reused,
//! the order of senders in automatic mode, work-request ids but for the entries' names. Engine handles go in
//! without their generation: at most one of an index is alive.

use std::hash::{Hash, Hasher};

use super::completion::CqeOperation;
use super::device::{Output, PendingRead, ReadTarget, Serial, SoftDevice, TagMatching};
use super::held::Fate;
use super::memory::Memory;
use super::peers::{Into, Peer};
use super::request::ListOperation;
use crate::seam::{Data, DataTarget, Event, Operation};

impl<M: Memory> SoftDevice<M> {
    /// Two devices of one configuration that hash the same behave the same from here on. Memory is not looked at.
    pub fn canonical(&self, hasher: &mut impl Hasher) {
        if let Some(matching) = &self.matching {
            matching.canonical(hasher);
        }
        for peer in self.peers.iter() {
            canonical_peer(peer, self.matching.as_ref(), hasher);
        }
        hasher.write_usize(self.reads.len());
        for read in &self.reads {
            self.canonical_read(read, hasher);
        }
        hasher.write_usize(self.expecting.len());
        for index in &self.expecting {
            self.handle_of(*index).index.hash(hasher);
        }
        hasher.write_usize(self.serial.len());
        for serial in &self.serial {
            match serial {
                Serial::Ready(output) => self.canonical_output(output, hasher),
                Serial::Waiting(peer) => (u8::MAX, peer).hash(hasher),
            }
        }
        hasher.write_usize(self.outputs.len());
        for output in &self.outputs {
            self.canonical_output(output, hasher);
        }
        hasher.write_usize(self.pending.len());
        for event in &self.pending {
            canonical_event(event, hasher);
        }
        for (place, held) in self.held.iter() {
            (place, held.source, held.counted, held.payload, held.telling, &held.message).hash(hasher);
            match held.fate {
                Fate::Undecided => 0_u8.hash(hasher),
                Fate::Accepted { buffer, transfer } => {
                    (1_u8, buffer, transfer.map(|id| id.index)).hash(hasher)
                }
                Fate::Discarded => 2_u8.hash(hasher),
            }
        }
        (self.failure.is_some(), self.failure_told).hash(hasher);
    }

    fn canonical_read(&self, read: &PendingRead, hasher: &mut impl Hasher) {
        (read.peer, read.app_ctx, read.remote, read.buffer, read.immediate, read.broken).hash(hasher);
        match read.target {
            ReadTarget::Entry(index) => (0, self.handle_of(index).index).hash(hasher),
            ReadTarget::Message(token) => (1, token).hash(hasher),
            ReadTarget::Transfer(id) => (2, id.index).hash(hasher),
        }
    }

    fn canonical_output(&self, output: &Output, hasher: &mut impl Hasher) {
        std::mem::discriminant(output).hash(hasher);
        match output {
            Output::Completion { cqe, message, broken } => {
                if matches!(
                    cqe.operation,
                    CqeOperation::Append { .. } | CqeOperation::Remove { .. } | CqeOperation::Noop { .. }
                ) {
                    cqe.operation.hash(hasher);
                } else {
                    (cqe.operation, cqe.byte_count, cqe.source, cqe.immediate, message, broken).hash(hasher);
                    self.handle_of(cqe.entry).index.hash(hasher);
                }
            }
            Output::Arrived(token) | Output::Data(token) => token.hash(hasher),
            Output::Told(event) => canonical_event(event, hasher),
            Output::Failed => {}
        }
    }
}

impl TagMatching {
    fn canonical(&self, hasher: &mut impl Hasher) {
        let name = |index: u16| self.name(index).map_or(u32::MAX, |named| named.handle.index);
        let list = &self.list;
        (list.hardware_phase(), list.software_phase(), self.count_applied).hash(hasher);
        hasher.write_usize(list.entries().len());
        for entry in list.entries() {
            (name(entry.index), entry.tag, entry.mask, entry.buffer, entry.active).hash(hasher);
        }
        let driver = &self.driver;
        hasher.write_usize(driver.commands().count());
        for command in driver.commands() {
            (command.count, command.signalled).hash(hasher);
            match command.operation {
                ListOperation::Append(append) => (0, append.tag, append.mask, append.buffer).hash(hasher),
                ListOperation::Remove { index } => (1, name(index)).hash(hasher),
                ListOperation::Noop => 2.hash(hasher),
            }
        }
        // What an entry still waits for, by the engine's order of names.
        let mut owed: Vec<_> = (0_u16..)
            .zip(&self.names)
            .filter_map(|(index, named)| {
                let named = (*named)?;
                let owed = driver.completions_owed(u32::from(index));
                (owed > 0).then_some((named.handle.index, named.stage as u8, owed))
            })
            .collect();
        owed.sort_unstable();
        owed.hash(hasher);
        for (frees, name) in driver.slots_pending_named() {
            (frees, name).hash(hasher);
        }
        let receives = &driver.receives;
        (receives.posted(), receives.used(), receives.is_started()).hash(hasher);
    }
}

fn canonical_peer(peer: &Peer, matching: Option<&TagMatching>, hasher: &mut impl Hasher) {
    (peer.id, peer.lost).hash(hasher);
    hasher.write_usize(peer.queue.len());
    for queued in &peer.queue {
        queued.message.hash(hasher);
    }
    let Some(receiving) = &peer.receiving else { return hasher.write_u8(0) };
    (receiving.remaining, &receiving.message).hash(hasher);
    match receiving.into {
        Into::Entry { index, buffer } => {
            let name = matching.and_then(|matching| matching.name(index)).map(|named| named.handle.index);
            (1_u8, name, buffer).hash(hasher);
        }
        Into::Unexpected { counted, .. } => (2_u8, counted).hash(hasher),
        Into::NoTag { .. } => 3_u8.hash(hasher),
        Into::Held(token) => (4_u8, token).hash(hasher),
    }
}

fn canonical_event(event: &Event, hasher: &mut impl Hasher) {
    std::mem::discriminant(event).hash(hasher);
    match event {
        Event::Matched(it) => {
            let rest = (it.source, it.tag, it.app_ctx, it.length, it.immediate, it.stage);
            (it.handle.index, rest).hash(hasher);
        }
        Event::Data(Data { target, length, immediate, error }) => {
            match target {
                DataTarget::Message(token) => (0, token.0).hash(hasher),
                DataTarget::Entry(handle) => (1, handle.index).hash(hasher),
                DataTarget::Transfer(id) => (2, id.index).hash(hasher),
            }
            (length, immediate, error).hash(hasher);
        }
        Event::Operation(done) => {
            match done.operation {
                Operation::Add(handle) => (0, handle.index).hash(hasher),
                Operation::Del(handle) => (1, handle.index).hash(hasher),
                Operation::Sync => 2.hash(hasher),
            }
            (done.success, done.phase).hash(hasher);
        }
        Event::Released(handle) => handle.index.hash(hasher),
        Event::Arrived(_) | Event::Untagged { .. } | Event::PathLost { .. } | Event::DeviceFailed(_) => {
            event.hash(hasher);
        }
    }
}
