//! What offload keeps for one device: its resources, counted; its phase; the commands that wait to be submitted.
//!
//! Resources are never found out by an error: an ADD is queued only when a tag is free (an entry counts until the
//! device released it), when the command queue has room for it *and* for the DEL that may follow, and, always, for
//! one SYNC (TM-CONTRACT 6.1, 8.1, 12). All list operations are signalled, so every completion frees its own slot.
//!
//! Not here: which receive goes down.

use crate::ids::{DeviceId, TagHandle};
use crate::seam::{Capabilities, Command, Operation};

use super::buffers::Bounces;
use super::overlap::Overlaps;
use super::phase::Phase;
use super::queue::Queue;
use super::reason::Reason;

/// Whether receives may go down.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Switch {
    On,
    Off,
    Faulty,
    Failed,
}

#[derive(Clone, Debug)]
pub(crate) struct Nic {
    pub(crate) id: DeviceId,
    pub(crate) capabilities: Capabilities,
    pub(crate) switch: Switch,
    pub(crate) phase: Phase,
    commands: Vec<Command>,
    /// How many of them were submitted.
    submitted: usize,
    pub(crate) overlaps: Overlaps,
    pub(crate) queue: Queue,
    pub(crate) bounces: Bounces,
    /// Why the first candidate does not go down.
    pub(crate) held_up_by: Reason,
    /// Entries that the device knows of.
    entries: u32,
    entries_max: u32,
    /// Command slots kept for the DELs of those entries.
    kept: u32,
    /// DELs that take their place late (a dropped clause).
    pub(crate) late_dels: Vec<TagHandle>,
}

impl Nic {
    pub(crate) fn new(id: DeviceId, capabilities: Capabilities, seed: u64, counters_start: u16) -> Self {
        let matching = capabilities.is_matching();
        let buffers = if matching { capabilities.unexpected_buffers } else { 0 };
        // Completions that one entry may have outstanding: ADD, match, data, DEL; one SYNC beside.
        let queue_room = capabilities.completions.saturating_sub(buffers).saturating_sub(1) / 4;
        Self {
            id,
            capabilities,
            switch: Switch::On,
            phase: Phase::new(counters_start, buffers),
            commands: Vec::new(),
            submitted: 0,
            overlaps: Overlaps::new(seed),
            queue: Queue::default(),
            bounces: Bounces::default(),
            held_up_by: Reason::DeviceFull,
            entries: 0,
            entries_max: capabilities.tags.min(queue_room),
            kept: 0,
            late_dels: Vec::new(),
        }
    }

    /// Why nothing more can go down now; `None`: one more can.
    #[inline]
    pub(crate) fn is_held_up(&self) -> Option<Reason> {
        match self.switch {
            Switch::On => {}
            Switch::Off => return Some(Reason::Disabled),
            Switch::Faulty | Switch::Failed => return Some(Reason::DeviceFault),
        }
        if self.entries >= self.entries_max {
            return Some(Reason::DeviceFull);
        }
        let used = self.phase.in_flight() as u64 + u64::from(self.kept);
        (used + SLOTS_OF_AN_ENTRY + SLOTS_FOR_SYNC > u64::from(self.capabilities.command_slots))
            .then_some(Reason::NoCommandSlot)
    }

    /// Nobody is a candidate and nothing is stored that could be in the way.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.overlaps.is_empty()
    }

    /// Queue a command that is not a list operation.
    #[inline]
    pub(crate) fn push(&mut self, command: Command) {
        if self.switch != Switch::Failed {
            self.commands.push(command);
        }
    }

    /// Commands not submitted yet, oldest first.
    #[inline]
    pub(crate) fn commands(&self) -> &[Command] {
        self.commands.get(self.submitted..).unwrap_or_default()
    }

    /// So many were submitted.
    #[inline]
    pub(crate) fn handle_submitted(&mut self, taken: usize) {
        self.submitted = self.commands.len().min(self.submitted.saturating_add(taken));
        if self.submitted == self.commands.len() {
            self.commands.clear();
            self.submitted = 0;
        } else if self.submitted >= COMPACT_AT {
            self.commands.drain(..self.submitted);
            self.submitted = 0;
        }
    }

    /// Queue an ADD; its count is fixed here.
    #[inline]
    pub(crate) fn push_add(&mut self, command: Command, handle: TagHandle) {
        self.entries += 1;
        self.kept += 1;
        self.commands.push(command);
        self.phase.handle_queued(Operation::Add(handle));
    }

    /// Queue a DEL, in the slot kept for it.
    pub(crate) fn push_del(&mut self, handle: TagHandle, signalled: bool) {
        self.kept = self.kept.saturating_sub(1);
        self.commands.push(Command::Del { handle, signalled });
        if signalled {
            self.phase.handle_queued(Operation::Del(handle));
        }
    }

    /// Take back a DEL that was not submitted. Says whether there was one.
    pub(crate) fn withdraw_del(&mut self, handle: TagHandle) -> bool {
        let is_it = |command: &Command| matches!(*command, Command::Del { handle: of, .. } if of == handle);
        let taken = self.withdraw(is_it);
        if let Some(Command::Del { signalled: true, .. }) = taken {
            self.phase.handle_withdrawn(Operation::Del(handle));
        }
        taken.is_some()
    }

    /// Take back the latest command of a kind that was not submitted.
    pub(crate) fn withdraw(&mut self, is_it: impl Fn(&Command) -> bool) -> Option<Command> {
        let place = self.commands().iter().rposition(is_it)?;
        Some(self.commands.remove(self.submitted + place))
    }

    /// Queue a SYNC if one is due. Says whether.
    pub(crate) fn push_sync_if_due(&mut self, decided: bool) -> bool {
        if self.switch == Switch::Failed || !self.phase.is_sync_due() {
            return false;
        }
        let unexpected_count = if decided { self.phase.report() } else { self.phase.report_seen() };
        self.commands.push(Command::Sync { unexpected_count, signalled: true });
        self.phase.handle_queued(Operation::Sync);
        true
    }

    /// Queue a posting of unexpected buffers if one is due.
    pub(crate) fn push_buffers_if_due(&mut self, budget: bool) {
        if self.switch == Switch::Failed {
            return;
        }
        let buffers = self.phase.poll_buffers(budget);
        if buffers > 0 {
            self.commands.push(Command::Receive { buffers });
        }
    }

    /// An entry ended without a DEL, whose slot is free again.
    pub(crate) fn give_back_slot(&mut self) {
        self.kept = self.kept.saturating_sub(1);
    }

    /// The device let go of an entry.
    pub(crate) fn handle_released(&mut self) {
        self.entries = self.entries.saturating_sub(1);
    }

    /// The device failed: it holds nothing any more. Handles whose DELs were outstanding.
    pub(crate) fn fail(&mut self) -> Vec<TagHandle> {
        self.switch = Switch::Failed;
        self.entries = 0;
        self.kept = 0;
        self.commands.clear();
        self.submitted = 0;
        self.late_dels.clear();
        self.phase.fail()
    }

    /// Entries that the device knows of, and how many it may.
    pub(crate) fn entries(&self) -> (u32, u32) {
        (self.entries, self.entries_max)
    }

    pub(crate) fn canonical(&self, out: &mut Vec<u64>, name: &dyn Fn(TagHandle) -> u64) {
        out.extend([
            self.switch as u64,
            u64::from(self.entries),
            u64::from(self.kept),
            self.commands.len() as u64,
        ]);
        out.push(self.bounces.free() as u64);
        for command in self.commands() {
            canonical_command(command, out, name);
        }
        self.phase.canonical(out, name);
    }
}

fn canonical_command(command: &Command, out: &mut Vec<u64>, name: &dyn Fn(TagHandle) -> u64) {
    match *command {
        Command::Add { handle, unexpected_count, .. } => {
            out.extend([1, name(handle), u64::from(unexpected_count)]);
        }
        Command::Del { handle, signalled } => out.extend([2, name(handle), u64::from(signalled)]),
        Command::Sync { unexpected_count, .. } => out.extend([3, u64::from(unexpected_count)]),
        Command::Receive { buffers } => out.extend([4, u64::from(buffers)]),
        Command::Answer { message, .. } => out.extend([5, message.0]),
        Command::Read { buffer, .. } => out.extend([6, buffer.address]),
        Command::Copy { to, .. } => out.extend([7, to.address]),
    }
}

/// The ADD itself, and the DEL that may follow.
const SLOTS_OF_AN_ENTRY: u64 = 2;
/// A device that takes commands a few at a time leaves so many submitted ones in front at the most.
const COMPACT_AT: usize = 1024;
/// Never more than one SYNC is outstanding.
const SLOTS_FOR_SYNC: u64 = 1;
