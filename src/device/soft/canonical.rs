//! The state of a soft device by what it can still do, for counting explored states.
//!
//! Left out, since no client may act on it: SYNC_REQ's counts, the order in which driver handles are reused,
//! the order of senders in automatic mode, work-request ids but for the entries' names. The engine's names of entries
//! and transfers go in as [`Names`] says.

use std::hash::{Hash, Hasher};

use super::completion::CqeOperation;
use super::device::{Output, PendingRead, ReadTarget, Serial, SoftDevice, TagMatching};
use super::held::Fate;
use super::memory::Memory;
use super::peers::{Into, Peer};
use super::request::ListOperation;
use crate::ids::{TagHandle, TransferId};
use crate::seam::{Data, DataTarget, Event, Operation};

/// What stands for the engine's names in a canonical state.
#[derive(Clone, Copy)]
pub struct Names<'a> {
    /// Of an entry: the number of its receive, if the caller has one.
    pub entry: &'a dyn Fn(TagHandle) -> u64,
    /// Of a transfer: likewise.
    pub transfer: &'a dyn Fn(TransferId) -> u64,
}

impl std::fmt::Debug for Names<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Names")
    }
}

impl Names<'_> {
    /// Their places in the engine's tables, without generation: at most one of a place is alive.
    pub const PLACES: Self =
        Self { entry: &|handle| handle.index as u64, transfer: &|transfer| transfer.index as u64 };
}

impl<M: Memory> SoftDevice<M> {
    /// Two devices of one configuration that hash the same behave the same from here on. Memory is not looked at.
    pub fn canonical(&self, hasher: &mut impl Hasher) {
        self.canonical_named(&Names::PLACES, hasher);
    }

    /// The same with the engine's names replaced.
    pub fn canonical_named(&self, names: &Names<'_>, hasher: &mut impl Hasher) {
        if let Some(matching) = &self.matching {
            matching.canonical(names, hasher);
        }
        for peer in self.peers.iter() {
            canonical_peer(peer, self.matching.as_ref(), names, hasher);
        }
        hasher.write_usize(self.reads.len());
        for read in &self.reads {
            self.canonical_read(read, names, hasher);
        }
        hasher.write_usize(self.expecting.len());
        for index in &self.expecting {
            (names.entry)(self.handle_of(*index)).hash(hasher);
        }
        hasher.write_usize(self.serial.len());
        for serial in &self.serial {
            match serial {
                Serial::Ready(output) => self.canonical_output(output, names, hasher),
                Serial::Waiting(peer) => (u8::MAX, peer).hash(hasher),
            }
        }
        hasher.write_usize(self.outputs.len());
        for output in &self.outputs {
            self.canonical_output(output, names, hasher);
        }
        hasher.write_usize(self.pending.len());
        for event in &self.pending {
            canonical_event(event, names, hasher);
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

    /// Without the tag, of which only a verbs program hears.
    fn canonical_read(&self, read: &PendingRead, names: &Names<'_>, hasher: &mut impl Hasher) {
        (read.peer, read.app_ctx, read.remote, read.buffer, read.immediate, read.broken).hash(hasher);
        match read.target {
            ReadTarget::Entry(index) => (0, (names.entry)(self.handle_of(index))).hash(hasher),
            ReadTarget::Message(token) => (1, token).hash(hasher),
            ReadTarget::Transfer(id) => (2, (names.transfer)(id)).hash(hasher),
        }
    }

    fn canonical_output(&self, output: &Output, names: &Names<'_>, hasher: &mut impl Hasher) {
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
                    (names.entry)(self.handle_of(cqe.entry)).hash(hasher);
                }
            }
            Output::Arrived(token) | Output::Data(token) => token.hash(hasher),
            Output::Told(event) => canonical_event(event, names, hasher),
            Output::Failed => {}
        }
    }
}

impl TagMatching {
    fn canonical(&self, names: &Names<'_>, hasher: &mut impl Hasher) {
        let name = |index: u16| self.name(index).map_or(u64::MAX, |named| (names.entry)(named.handle));
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
                (owed > 0).then_some(((names.entry)(named.handle), named.stage as u8, owed))
            })
            .collect();
        owed.sort_unstable();
        owed.hash(hasher);
        for (frees, handle) in driver.slots_pending_named() {
            (frees, handle.map(names.entry)).hash(hasher);
        }
        let receives = &driver.receives;
        (receives.posted(), receives.used(), receives.is_started()).hash(hasher);
    }
}

fn canonical_peer(peer: &Peer, matching: Option<&TagMatching>, names: &Names<'_>, hasher: &mut impl Hasher) {
    (peer.id, peer.lost).hash(hasher);
    hasher.write_usize(peer.queue.len());
    for queued in &peer.queue {
        queued.message.hash(hasher);
    }
    let Some(receiving) = &peer.receiving else { return hasher.write_u8(0) };
    (receiving.remaining, &receiving.message).hash(hasher);
    match receiving.into {
        Into::Entry { index, buffer } => {
            let name =
                matching.and_then(|matching| matching.name(index)).map(|named| (names.entry)(named.handle));
            (1_u8, name, buffer).hash(hasher);
        }
        Into::Unexpected { counted, .. } => (2_u8, counted).hash(hasher),
        Into::NoTag { .. } => 3_u8.hash(hasher),
        Into::Held(token) => (4_u8, token).hash(hasher),
    }
}

fn canonical_event(event: &Event, names: &Names<'_>, hasher: &mut impl Hasher) {
    std::mem::discriminant(event).hash(hasher);
    match event {
        Event::Matched(it) => {
            let rest = (it.source, it.tag, it.app_ctx, it.length, it.immediate, it.stage);
            ((names.entry)(it.handle), rest).hash(hasher);
        }
        Event::Data(Data { target, length, immediate, error }) => {
            match target {
                DataTarget::Message(token) => (0, token.0).hash(hasher),
                DataTarget::Entry(handle) => (1, (names.entry)(*handle)).hash(hasher),
                DataTarget::Transfer(id) => (2, (names.transfer)(*id)).hash(hasher),
            }
            (length, immediate, error).hash(hasher);
        }
        Event::Operation(done) => {
            match done.operation {
                Operation::Add(handle) => (0, (names.entry)(handle)).hash(hasher),
                Operation::Del(handle) => (1, (names.entry)(handle)).hash(hasher),
                Operation::Sync => 2.hash(hasher),
            }
            (done.success, done.phase).hash(hasher);
        }
        Event::Released(handle) | Event::SetAside { handle, .. } => (names.entry)(*handle).hash(hasher),
        Event::Arrived(_) | Event::Untagged { .. } | Event::PathLost { .. } | Event::DeviceFailed(_) => {
            event.hash(hasher);
        }
    }
}
