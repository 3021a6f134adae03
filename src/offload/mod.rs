//! Posted receives in NICs: which go down, what comes back, and what may be believed.
//!
//! The software list holds every posted receive in order; NICs hold some of them. This module knows which, and
//! keeps the rules of docs/ordering.md, so that MPI's order holds whatever the devices, the wire and the user do
//! meanwhile. In the order in which a receive meets them:
//!
//! * [`Reason`] – why a receive is not in a NIC
//! * `queue`, `overlap`, `layout`, `buffers`, `served` – who may go down (rules 1, 2, 8)
//! * `nic` – resources, counted (rule 7)
//! * `phase` – counts and SYNC (rule 3)
//! * `mirror`, `entry` – where each receive is (rules 4 to 6)
//!
//! Not here: matching, and messages that wait ([`crate::engine`]).

#![forbid(unsafe_code)]

mod buffers;
mod clause;
mod entry;
mod events;
mod fault;
mod layout;
mod mirror;
mod nic;
mod outbox;
mod overlap;
mod phase;
mod planted;
mod policy;
mod queue;
mod quick;
mod reason;
mod served;
mod stretches;
#[cfg(test)]
mod tests;

pub use clause::{Clause, Rules};
pub use entry::{Place, Step};
pub use fault::Fault;
pub use layout::{NameError, TagLayout};
pub use overlap::CLASSES_MAX;
pub use planted::Bug;
#[cfg(feature = "ablation")]
pub use planted::plant;
pub use reason::{Reason, Statistics};

pub(crate) use events::{Held, Outcome};
pub(crate) use fault::Checked;
pub(crate) use mirror::Record;
pub(crate) use planted::is_planted;

use crate::ids::{DeviceId, GroupId, MessageToken, PeerId, ReceiveId, TransferId};
use crate::matching::Pattern;
use crate::seam::{Answer, Buffer, Capabilities, Command};

use layout::{Origin, Peers};
use mirror::Mirror;
use nic::Nic;
use stretches::Stretches;

/// Offload over all devices of one engine.
#[derive(Clone, Debug)]
pub(crate) struct Offload {
    nics: Vec<Nic>,
    mirror: Mirror,
    stretches: Stretches,
    peers: Peers,
    rules: Rules,
    seed: u64,
    /// Some device matches: receives are tracked.
    active: bool,
    /// The only device that matches, for which receives may go straight down; [`NO_DEVICE`] if there is none or more
    /// than one.
    sole: usize,
    /// The same, also while receives are looked at one by one since other paths serve some of them.
    only: usize,
    /// Of receives from anybody in a row that other paths served, those from which on more stay in software.
    kept_from: u8,
    /// Other paths served some of the last receives from anybody.
    is_learning: bool,
    /// [`Self::plain_count`].
    plain: usize,
    plain_ended: bool,
    /// [`Self::is_settled`].
    settled: bool,
    pub(crate) statistics: Statistics,
}

impl Offload {
    pub(crate) fn new(layout: Option<TagLayout>, rules: Rules, seed: u64, kept_from: u8) -> Self {
        Self {
            nics: Vec::new(),
            mirror: Mirror::default(),
            stretches: Stretches::default(),
            peers: Peers::new(layout),
            rules,
            seed,
            active: false,
            sole: NO_DEVICE,
            only: NO_DEVICE,
            kept_from,
            is_learning: false,
            plain: 0,
            plain_ended: false,
            settled: false,
            statistics: Statistics::default(),
        }
    }

    /// A device joins. Receives that are posted already stay in software; newer ones may go down.
    pub(crate) fn add_device(
        &mut self,
        capabilities: Capabilities,
        counters_start: u16,
        silent_adds_max: u8,
    ) -> Option<DeviceId> {
        self.stir();
        let id = DeviceId(u8::try_from(self.nics.len()).ok()?);
        let silent = u32::from(silent_adds_max).min((capabilities.command_slots / 4).saturating_sub(1));
        let mut nic = Nic::new(id, capabilities, self.seed, (counters_start, silent), self.kept_from);
        if capabilities.is_matching() {
            nic.reserve();
            for index in self.mirror.in_order() {
                nic.queue.push(index);
                if let Some(record) = self.mirror.record_mut(index) {
                    record.entangled = true;
                }
            }
        }
        nic.push_buffers_if_due(true);
        self.nics.push(nic);
        if capabilities.is_matching() {
            self.only = if self.active { NO_DEVICE } else { id.0 as usize };
            self.active = true;
            self.see_who_serves();
            self.end_plain();
        }
        if !self.plain_ended {
            self.plain = self.nics.len();
        }
        Some(id)
    }

    /// Whether receives are tracked at all: the one question that the path without a NIC asks.
    #[inline]
    pub(crate) fn is_active(&self) -> bool {
        self.active
    }

    /// The short ways (`quick`) end here: whatever is done next may give a device something to do, and finds every count
    /// as it is. Each function that is not one of those ways and changes anything begins with this.
    #[inline(always)]
    pub(crate) fn stir(&mut self) {
        self.settled = false;
        if let Some(nic) = self.nics.get_mut(self.only) {
            nic.settle();
        }
    }

    /// No device has anything to do, and none has commands waiting: known without a look, for as long as nothing but the
    /// short ways was gone.
    #[inline(always)]
    pub(crate) fn is_settled(&self) -> bool {
        debug_assert!(!self.settled || self.is_without_work(), "{self:?}");
        self.settled
    }

    /// Send down what may go down, queue what is due, and find out whether there is anything left.
    #[inline(never)]
    pub(crate) fn turn(&mut self) {
        if self.active && !self.is_quiet() {
            self.stir();
            self.poll();
            self.settled = self.is_without_work();
        } else {
            self.settled = self.has_no_commands();
        }
    }

    /// The commands of a device where none matches: then those are all that there can be.
    #[inline]
    pub(crate) fn poll_plain(&mut self, device: DeviceId) -> &[Command] {
        if !self.has_commands(device) {
            self.settled = (device.0 == 0 && self.nics.len() == 1) || self.has_no_commands();
        }
        self.commands(device)
    }

    /// Whether [`Self::turn`] would find nothing, without changing anything.
    pub(crate) fn is_without_work(&self) -> bool {
        (!self.active || self.is_quiet()) && self.has_no_commands()
    }

    /// Whether [`Self::poll`] would find nothing to do.
    fn is_quiet(&self) -> bool {
        // One that does not match has nothing to do.
        match self.nics.get(self.sole) {
            Some(nic) => nic.is_quiet(),
            None => self.nics.iter().all(Nic::is_quiet),
        }
    }

    #[inline]
    pub(crate) fn rules(&self) -> Rules {
        self.rules
    }

    pub(crate) fn device_count(&self) -> usize {
        self.nics.len()
    }

    /// How many devices there are, while none of them matches, none has failed and every source has the number by which
    /// it came; else 0. What a device within says of messages needs no further look.
    #[inline(always)]
    pub(crate) fn plain_count(&self) -> usize {
        self.plain
    }

    /// [`Self::plain_count`] is 0 from now on.
    pub(crate) fn end_plain(&mut self) {
        (self.plain, self.plain_ended) = (0, true);
    }

    /// Whether there is such a device and it has not failed.
    pub(crate) fn is_there(&self, device: DeviceId) -> bool {
        self.nics.get(device.0 as usize).is_some_and(|nic| nic.switch != nic::Switch::Failed)
    }

    #[inline]
    pub(crate) fn record(&self, index: usize) -> Option<&Record> {
        self.mirror.record(index)
    }

    #[inline]
    pub(crate) fn record_mut(&mut self, index: usize) -> Option<&mut Record> {
        self.mirror.record_mut(index)
    }

    /// A receive was queued as posted. If one device matches, and is idle, it goes straight down when nothing speaks
    /// against it, and none of the queues hears of it.
    pub(crate) fn track(
        &mut self,
        receive: ReceiveId,
        pattern: &Pattern,
        buffer: &Buffer,
        multi: bool,
    ) -> usize {
        self.stir();
        self.statistics.tracked += 1;
        if self.is_learning {
            self.nics.iter_mut().for_each(|nic| nic.served.age());
            self.see_who_serves();
        }
        let index = self.mirror.track(receive, pattern, buffer, multi, Reason::Disabled);
        let is_idle = self.nics.get(self.sole).is_some_and(Nic::is_idle);
        if is_idle && self.go_straight_down(self.sole, index) {
            return index;
        }
        let reason = self.reason_at_first(index);
        if let Some(record) = self.mirror.record_mut(index) {
            (record.entangled, record.reason) = (true, reason);
        }
        for nic in &mut self.nics {
            if nic.capabilities.is_matching() {
                nic.revoke();
                nic.queue.push(index);
            }
        }
        index
    }

    /// A message that came through this device takes a receive. From whom receives from anybody have their messages is
    /// learned from that (`served`).
    pub(crate) fn learn(&mut self, index: usize, device: DeviceId) {
        self.stir();
        let Some(record) = self.mirror.record(index) else { return };
        if self.peers.origin(&record.pattern) != Origin::Anybody {
            return;
        }
        for nic in self.nics.iter_mut().filter(|nic| nic.capabilities.is_matching()) {
            nic.served.note(record.pattern.ignore, nic.id != device);
        }
        self.see_who_serves();
    }

    /// While other paths serve some, receives go down by the way where each is looked at.
    fn see_who_serves(&mut self) {
        self.is_learning = self.nics.iter().any(|nic| !nic.served.is_empty());
        self.sole = if self.is_learning { NO_DEVICE } else { self.only };
    }

    /// Put a command that is not a list operation into a device's queue.
    #[inline]
    pub(crate) fn push(&mut self, device: DeviceId, command: Command) {
        self.stir();
        if let Some(nic) = self.nics.get_mut(device.0 as usize) {
            nic.push(command);
        }
    }

    /// Take back the answer for a message that was not submitted: the device has forgotten the message.
    pub(crate) fn withdraw_answer(&mut self, device: DeviceId, message: MessageToken) -> Option<Answer> {
        self.stir();
        let nic = self.nics.get_mut(device.0 as usize)?;
        let is_it =
            |command: &Command| matches!(*command, Command::Answer { message: of, .. } if of == message);
        let Some(Command::Answer { answer, .. }) = nic.withdraw(is_it) else { return None };
        Some(answer)
    }

    /// Commands that wait for a device, oldest first; the owner submits them and says how many were taken.
    #[inline]
    pub(crate) fn commands(&self, device: DeviceId) -> &[Command] {
        self.nics.get(device.0 as usize).map_or(&[], Nic::commands)
    }

    /// So many were taken.
    #[inline]
    pub(crate) fn handle_submitted(&mut self, device: DeviceId, taken: usize) {
        if let Some(nic) = self.nics.get_mut(device.0 as usize) {
            nic.handle_submitted(taken);
        }
    }

    /// Whether no device has commands waiting.
    #[inline]
    pub(crate) fn has_no_commands(&self) -> bool {
        self.nics.iter().all(Nic::has_no_commands)
    }

    /// Whether a device has commands waiting.
    #[inline]
    pub(crate) fn has_commands(&self, device: DeviceId) -> bool {
        self.nics.get(device.0 as usize).is_some_and(|nic| !nic.commands().is_empty())
    }

    /// Give a device a bounce buffer, for receives shorter than its eager limit.
    pub(crate) fn add_bounce(&mut self, device: DeviceId, buffer: Buffer) -> bool {
        self.stir();
        let Some(nic) = self.nics.get_mut(device.0 as usize) else { return false };
        let fits = buffer.length >= nic.capabilities.eager_limit && buffer.segments == 1;
        if fits {
            nic.bounces.add(buffer);
        }
        fits
    }

    /// Which bits of a tag name a peer.
    pub(crate) fn name_peer(&mut self, peer: PeerId, bits: u64) -> Result<(), NameError> {
        self.stir();
        self.peers.name(peer, bits)
    }

    pub(crate) fn path(&self, peer: PeerId) -> Option<DeviceId> {
        self.peers.path(peer)
    }

    /// A peer's messages come through this device from now on. The caller has made sure that they came through no
    /// other before, or that no receive names the peer.
    pub(crate) fn set_path(&mut self, peer: PeerId, device: Option<DeviceId>) {
        self.stir();
        self.peers.set_path(peer, device);
        let peers = &self.peers;
        for nic in &mut self.nics {
            let gone: Vec<_> = nic
                .overlaps
                .members()
                .filter(|&index| {
                    self.mirror
                        .record(index)
                        .is_some_and(|record| !peers.may_come_through(&record.pattern, nic.id))
                })
                .collect();
            nic.revoke();
            for index in gone {
                nic.overlaps.remove(index);
                nic.queue
                    .wake(index, |waiter| self.mirror.record(waiter).map_or(0, |record| record.sequence));
            }
        }
    }

    /// The path of a peer that was cleared.
    pub(crate) fn path_before(&self, peer: PeerId) -> Option<DeviceId> {
        self.peers.path_before(peer)
    }

    /// A peer that nothing names: its number will be dealt again.
    pub(crate) fn forget_peer(&mut self, peer: PeerId) {
        self.stir();
        self.peers.forget(peer);
    }

    /// What the receives take that are tracked, of which some may have ended.
    pub(crate) fn patterns(&self) -> impl Iterator<Item = &Pattern> {
        self.mirror.in_use().map(|record| &record.pattern)
    }

    /// A peer joined a group, or left the one it was in.
    pub(crate) fn handle_group(&mut self, peer: PeerId, group: Option<GroupId>) {
        self.stir();
        for nic in &mut self.nics {
            nic.overlaps.handle_group(peer, group);
        }
        self.recall_naming(peer);
    }

    /// The transfer that a matched entry's data belongs to.
    pub(crate) fn set_transfer(&mut self, index: usize, transfer: TransferId) {
        if let Some(record) = self.mirror.record_mut(index) {
            record.transfer = Some(transfer);
        }
    }

    /// Entries that a device knows of, and how many it may.
    pub(crate) fn entries(&self, device: DeviceId) -> (u32, u32) {
        self.nics.get(device.0 as usize).map_or((0, 0), Nic::entries)
    }

    /// Command slots of a device that are used.
    pub(crate) fn slots_used(&self, device: DeviceId) -> u64 {
        self.nics.get(device.0 as usize).map_or(0, Nic::slots_used)
    }

    /// The receive that an entry stands for.
    pub(crate) fn receive_of(&self, device: DeviceId, handle: crate::ids::TagHandle) -> Option<ReceiveId> {
        let index = self.mirror.find(device, handle)?;
        self.mirror.record(index).map(|record| record.receive)
    }

    /// Receives in a device's list, oldest first: what the mirror says.
    pub(crate) fn listed(&self, device: DeviceId) -> Vec<crate::ids::TagHandle> {
        let is_there = |&index: &usize| {
            self.mirror
                .record(index)
                .is_some_and(|record| record.pinned == Some(device) && record.place().is_in_nic())
        };
        self.mirror.in_order().into_iter().filter(is_there).map(|index| self.mirror.handle(index)).collect()
    }

    /// Everything that decides about the future, for counting states. `name` gives a receive its number, `place` a
    /// message that has asked for one its place among those that wait (0: it waits no more).
    pub(crate) fn canonical(
        &self,
        out: &mut Vec<u64>,
        name: &dyn Fn(ReceiveId) -> u64,
        place: &dyn Fn(u64) -> u64,
    ) {
        if self.nics.get(self.only).is_some_and(|nic| nic.taken() > 0) {
            let mut stirred = self.clone();
            stirred.stir();
            return stirred.canonical(out, name, place);
        }
        let order = self.mirror.in_order();
        let of = |index: usize| self.mirror.record(index).map_or(u64::MAX, |record| name(record.receive));
        for &index in &order {
            let Some(record) = self.mirror.record(index) else { continue };
            out.extend([
                name(record.receive),
                record.place() as u64,
                record.pinned.map_or(0, |device| u64::from(device.0) + 1),
                u64::from(record.del_outstanding)
                    | u64::from(record.cancel) << 1
                    | u64::from(record.slot_kept) << 2,
                record.claimant.map_or(0, place),
                u64::from(record.bounce.is_some()),
            ]);
            for nic in &self.nics {
                let (stage, waits_for) = nic.queue.standing(index);
                let inactive = record.inactive.is_some_and(|mark| nic.phase.is_marked(mark));
                out.push(stage | u64::from(nic.overlaps.contains(index)) << 8 | u64::from(inactive) << 9);
                out.push(waits_for.map_or(0, |other| of(other) + 1));
            }
        }
        for nic in &self.nics {
            nic.canonical(out, &|handle| {
                if self.mirror.handle(handle.index as usize) == handle {
                    of(handle.index as usize)
                } else {
                    u64::MAX
                }
            });
        }
    }
}

const NO_DEVICE: usize = usize::MAX;
