//! What offload keeps for one device: its resources, counted; its phase; the commands that wait to be submitted.
//!
//! Resources are never found out by an error: an ADD is queued only when a tag is free (an entry counts until the
//! device released it), when the command queue has room for it *and* for the DEL that may follow, and, always, for
//! one SYNC (TM-CONTRACT 6.1, 8.1, 12). Most ADDs ask for no completion: the next that does frees their slots as well
//! (`phase`).
//!
//! Not here: which receive goes down.

use crate::ids::{DeviceId, PeerId, Source, Tag, TagHandle};
use crate::matching::Pattern;
use crate::seam::{Add, Buffer, Capabilities, Command, Operation, Placer};

use super::buffers::Bounces;
use super::clause::{Clause, Rules};
use super::entry::Step;
use super::layout::{Origin, Peers};
use super::mirror::Record;
use super::outbox::Outbox;
use super::overlap::Overlaps;
use super::phase::Phase;
use super::queue::Queue;
use super::reason::Reason;
use super::served::Served;

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
    /// Those not submitted yet.
    commands: Outbox<Command>,
    pub(crate) overlaps: Overlaps,
    pub(crate) queue: Queue,
    pub(crate) bounces: Bounces,
    pub(crate) served: Served,
    /// Why the first candidate does not go down.
    pub(crate) held_up_by: Reason,
    /// Entries that the device knows of.
    entries: u32,
    entries_max: u32,
    /// Command slots kept for the DELs of those entries.
    kept: u32,
    /// So many receives can go down now with an ADD that asks for no completion, as far as the resources of this device
    /// and its phase go, and nobody waits or stands in the way. Whatever takes of those otherwise, or may come to stand in
    /// the way, makes it 0; [`Self::grant`] finds out anew.
    granted: u32,
    /// What that was when the counts here and of the phase were right last: each that has gone down since counts
    /// ([`Self::settle`]).
    granted_before: u32,
    /// Buffers with so many bytes more than the eager limit at most are taken.
    direct_span: u64,
    /// There are such, and none of them is empty.
    is_direct: bool,
    /// DELs that take their place late (a dropped clause).
    pub(crate) late_dels: Vec<TagHandle>,
}

impl Nic {
    /// `phase`: where counters start, and how many ADDs in a row may ask for no completion.
    pub(crate) fn new(
        id: DeviceId,
        capabilities: Capabilities,
        seed: u64,
        phase: (u16, u32),
        kept_from: u8,
    ) -> Self {
        let matching = capabilities.is_matching();
        let buffers = if matching { capabilities.unexpected_buffers } else { 0 };
        // Completions that one entry may have outstanding: ADD, match, data, DEL; one SYNC beside. Or, where that
        // allows more, as TM-CONTRACT 12 counts: ADD, match and data, and one for each command slot.
        let room = capabilities.completions.saturating_sub(buffers);
        let beside_slots = room.saturating_sub(capabilities.command_slots) / 3;
        let queue_room = (room.saturating_sub(1) / 4).max(beside_slots);
        Self {
            id,
            capabilities,
            switch: Switch::On,
            phase: Phase::new(phase.0, buffers, phase.1),
            commands: Outbox::new(),
            overlaps: Overlaps::new(seed),
            queue: Queue::default(),
            bounces: Bounces::default(),
            served: Served::new(kept_from),
            held_up_by: Reason::DeviceFull,
            entries: 0,
            entries_max: capabilities.tags.min(queue_room),
            kept: 0,
            granted: 0,
            granted_before: 0,
            direct_span: capabilities.buffer_length_max.saturating_sub(capabilities.eager_limit),
            is_direct: (1..=capabilities.buffer_length_max).contains(&capabilities.eager_limit),
            late_dels: Vec::new(),
        }
    }

    /// Why nothing more can go down now; `None`: one more can.
    #[inline(always)]
    pub(crate) fn is_held_up(&self) -> Option<Reason> {
        match self.switch {
            Switch::On => {}
            Switch::Off => return Some(Reason::Disabled),
            Switch::Faulty | Switch::Failed => return Some(Reason::DeviceFault),
        }
        if self.entries >= self.entries_max {
            return Some(Reason::DeviceFull);
        }
        let used = self.phase.slots_used() + u64::from(self.kept);
        (used + SLOTS_OF_AN_ENTRY + SLOTS_FOR_SYNC > u64::from(self.capabilities.command_slots))
            .then_some(Reason::NoCommandSlot)
    }

    /// Whether nothing waits to be looked at or to be queued.
    #[inline(always)]
    pub(crate) fn is_quiet(&self) -> bool {
        self.queue.is_empty() && self.late_dels.is_empty() && self.phase.is_quiet()
    }

    /// Nobody is a candidate and nothing is stored that could be in the way.
    #[inline(always)]
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.overlaps.is_empty()
    }

    /// Find out how many receives from anybody can go down without a look at anything of this device. In a device whose
    /// list is short for its slots there are two slots for each.
    #[inline(never)]
    pub(crate) fn grant(&mut self, rules: Rules) {
        self.revoke();
        let may = self.is_idle() && self.is_direct && rules.hold(Clause::CountDecided);
        if self.is_held_up().is_some() || !may {
            return;
        }
        let used = self.phase.slots_used() + u64::from(self.kept) + SLOTS_FOR_SYNC;
        let slots = u64::from(self.capabilities.command_slots).saturating_sub(used) / SLOTS_OF_AN_ENTRY;
        let room = self.phase.silent_left().min(slots).min(self.commands.room() as u64);
        self.granted = u32::try_from(room).unwrap_or(u32::MAX).min(self.entries_max - self.entries);
        self.granted_before = self.granted;
    }

    /// So many went down since the counts were right.
    #[inline(always)]
    pub(crate) const fn taken(&self) -> u32 {
        self.granted_before - self.granted
    }

    /// The counts become right.
    #[inline(always)]
    pub(crate) fn settle(&mut self) {
        let taken = self.taken();
        if taken == 0 {
            return;
        }
        self.granted_before = self.granted;
        self.entries = self.entries.wrapping_add(taken);
        self.kept = self.kept.wrapping_add(taken);
        self.phase.count_silent_adds(taken);
    }

    /// Whether [`Self::list_granted`] may be called for a buffer, which then is not empty.
    #[inline(always)]
    pub(crate) fn is_granted(&self, buffer: &Buffer) -> bool {
        let beyond = buffer.length.wrapping_sub(self.capabilities.eager_limit);
        self.granted > 0
            && buffer.segments == 1
            && beyond <= self.direct_span
            && (!self.capabilities.registration || buffer.key != 0)
    }

    /// What was granted is so no longer.
    #[inline(always)]
    pub(crate) fn revoke(&mut self) {
        debug_assert_eq!(self.taken(), 0, "the short ways end before");
        (self.granted, self.granted_before) = (0, 0);
    }

    /// The ADD of a receive that was granted goes down by this hand, or else is queued; whether it went. It is not
    /// counted before [`Self::settle`].
    #[inline(always)]
    pub(crate) fn list_granted(
        &mut self,
        handle: TagHandle,
        pattern: &Pattern,
        buffer: &Buffer,
        hand: &mut impl Placer,
    ) -> bool {
        debug_assert!(self.is_idle() && self.takes(buffer), "{self:?}");
        self.granted -= 1;
        let is_sent =
            self.commands.is_empty() && hand.add(self.id, &self.silent_add(handle, pattern, buffer));
        if !is_sent {
            self.queue_granted(handle, pattern, buffer);
        }
        is_sent
    }

    #[inline(always)]
    fn silent_add<'a>(&self, handle: TagHandle, pattern: &Pattern, buffer: &'a Buffer) -> Add<'a> {
        let Pattern { tag, ignore, .. } = *pattern;
        let (tag, unexpected_count) = (Tag(tag.0 & ignore.mask()), self.phase.reported());
        Add { handle, tag, ignore, buffer, unexpected_count, signalled: false }
    }

    /// Makes the ADD again, so that only who comes here has it in memory.
    #[cold]
    #[inline(never)]
    fn queue_granted(&mut self, handle: TagHandle, pattern: &Pattern, buffer: &Buffer) {
        let add = self.silent_add(handle, pattern, buffer);
        self.commands.put(add.command());
    }

    /// Queue a command that is not a list operation.
    #[inline]
    pub(crate) fn push(&mut self, command: Command) {
        self.revoke();
        if self.switch != Switch::Failed {
            self.commands.push(command);
        }
    }

    /// Whether [`Self::commands`] is empty.
    #[inline(always)]
    pub(crate) fn has_no_commands(&self) -> bool {
        self.commands.is_empty()
    }

    /// Commands not submitted yet, oldest first.
    #[inline]
    pub(crate) fn commands(&self) -> &[Command] {
        self.commands.items()
    }

    /// So many were submitted.
    #[inline]
    pub(crate) fn handle_submitted(&mut self, taken: usize) {
        self.commands.skip(taken);
    }

    /// Whether the device can write into a buffer directly.
    #[inline(always)]
    pub(crate) fn takes(&self, buffer: &Buffer) -> bool {
        let Capabilities { eager_limit, buffer_length_max, registration, .. } = self.capabilities;
        buffer.segments == 1
            && buffer.length >= eager_limit
            && buffer.length <= buffer_length_max
            && (!registration || buffer.key != 0)
    }

    /// What keeps a receive out of this NIC whatever other receives do.
    pub(crate) fn never(&self, peers: &Peers, record: &Record) -> Option<Reason> {
        let capabilities = &self.capabilities;
        let elsewhere = |peer: PeerId| peers.path(peer).is_some_and(|path| path != self.id);
        match peers.origin(&record.pattern) {
            Origin::Anybody if self.served.keeps(record.pattern.ignore) => {
                return Some(Reason::ServedByAnotherPath);
            }
            Origin::Anybody => {}
            Origin::InTag(peer) if elsewhere(peer) => return Some(Reason::ServedByAnotherPath),
            Origin::InTag(_) => {}
            Origin::NotInTag => {
                let Source::Peer(peer) = record.pattern.source else { return Some(Reason::Directed) };
                return Some(if elsewhere(peer) { Reason::ServedByAnotherPath } else { Reason::Directed });
            }
        }
        if record.multi_receive {
            Some(Reason::MultiReceive)
        } else if record.buffer.segments != 1 {
            Some(Reason::SeveralSegments)
        } else if record.buffer.length > capabilities.buffer_length_max {
            Some(Reason::OverDeviceLength)
        } else if capabilities.registration
            && record.buffer.key == 0
            && record.buffer.length >= capabilities.eager_limit
        {
            Some(Reason::NotRegistered)
        } else {
            None
        }
    }

    /// Whether [`Self::list`] may be called.
    #[inline(always)]
    pub(crate) fn has_room(&self) -> bool {
        self.commands.has_room() && self.phase.has_room()
    }

    /// So that it may.
    pub(crate) fn reserve(&mut self) {
        self.commands.reserve(Command::Receive { buffers: 0 });
        self.phase.reserve();
    }

    /// Queue the ADD of a receive, for which there is room; its count is fixed here. `false`: it is not in software.
    #[inline(always)]
    pub(crate) fn list(
        &mut self,
        record: &mut Record,
        index: usize,
        bounce: Option<Buffer>,
        rules: Rules,
        hand: &mut impl Placer,
    ) -> bool {
        let id = self.id;
        if !record.step(Step::Add) {
            return false;
        }
        (record.pinned, record.slot_kept, record.bounce) = (Some(id), true, bounce);
        self.revoke();
        if bounce.is_none() && record.is_usual() {
            record.set_undisturbed(id);
        }
        let handle = record.handle(index);
        let decided = rules.hold(Clause::CountDecided);
        let signalled = !decided || self.phase.is_add_asked();
        let unexpected_count = if decided { self.phase.report() } else { self.phase.report_seen() };
        self.entries += 1;
        self.kept += 1;
        let Pattern { tag, ignore, .. } = record.pattern;
        let (tag, buffer) = (Tag(tag.0 & ignore.mask()), bounce.as_ref().unwrap_or(&record.buffer));
        self.phase.put_add(handle, signalled);
        let add = Add { handle, tag, ignore, buffer, unexpected_count, signalled };
        if !(self.commands.is_empty() && hand.add(id, &add)) {
            self.commands.put(add.command());
        }
        true
    }

    /// Queue a DEL, in the slot kept for it.
    pub(crate) fn push_del(&mut self, handle: TagHandle, signalled: bool) {
        self.revoke();
        self.kept = self.kept.saturating_sub(1);
        self.commands.push(Command::Del { handle, signalled });
        self.phase.handle_queued(Operation::Del(handle), signalled);
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
        self.commands.remove(place)
    }

    /// Queue a SYNC if one is due. Says whether.
    pub(crate) fn push_sync_if_due(&mut self, decided: bool) -> bool {
        if self.switch == Switch::Failed || !(self.phase.is_sync_due(self.entries) || self.wants_slots()) {
            return false;
        }
        self.revoke();
        let unexpected_count = if decided { self.phase.report() } else { self.phase.report_seen() };
        self.commands.push(Command::Sync { unexpected_count, signalled: true });
        self.phase.handle_queued(Operation::Sync, true);
        true
    }

    /// Receives wait for command slots, and nothing that is under way will free any.
    fn wants_slots(&self) -> bool {
        self.phase.is_nothing_asked()
            && !self.queue.is_empty()
            && self.is_held_up() == Some(Reason::NoCommandSlot)
    }

    /// Queue a posting of unexpected buffers if one is due.
    pub(crate) fn push_buffers_if_due(&mut self, budget: bool) {
        if self.switch == Switch::Failed {
            return;
        }
        let buffers = self.phase.poll_buffers(budget);
        if buffers > 0 {
            self.revoke();
            self.commands.push(Command::Receive { buffers });
        }
    }

    /// An entry ended without a DEL, whose slot is free again.
    #[inline(always)]
    pub(crate) fn give_back_slot(&mut self) {
        self.kept = self.kept.saturating_sub(1);
    }

    /// The device let go of an entry.
    #[inline(always)]
    pub(crate) fn handle_released(&mut self) {
        self.entries = self.entries.saturating_sub(1);
    }

    /// The device matched so many entries and let go of them, each of which had a slot kept for its DEL. They may not be
    /// counted yet.
    #[inline(always)]
    pub(crate) fn handle_matched_and_released(&mut self, count: u32) {
        self.kept = self.kept.wrapping_sub(count);
        self.entries = self.entries.wrapping_sub(count);
    }

    /// The device failed: it holds nothing any more. Handles whose DELs were outstanding.
    pub(crate) fn fail(&mut self) -> Vec<TagHandle> {
        self.switch = Switch::Failed;
        self.revoke();
        self.entries = 0;
        self.kept = 0;
        self.commands.clear();
        self.late_dels.clear();
        self.phase.fail()
    }

    /// Entries that the device knows of, and how many it may.
    pub(crate) fn entries(&self) -> (u32, u32) {
        (self.entries.wrapping_add(self.taken()), self.entries_max)
    }

    /// Command slots that are used.
    pub(crate) fn slots_used(&self) -> u64 {
        self.phase.slots_used() + u64::from(self.taken())
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
        self.served.canonical(out);
    }
}

fn canonical_command(command: &Command, out: &mut Vec<u64>, name: &dyn Fn(TagHandle) -> u64) {
    match *command {
        Command::Add { handle, unexpected_count, signalled, .. } => {
            out.extend([1 | u64::from(signalled) << 8, name(handle), u64::from(unexpected_count)]);
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
/// Never more than one SYNC is outstanding.
const SLOTS_FOR_SYNC: u64 = 1;
