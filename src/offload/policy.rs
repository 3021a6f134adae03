//! Who goes down: eligibility (rules 1, 2, 8), refill in post order, giving up (rule 9).
//!
//! Cost of looking at a candidate: nothing stands in the way and nothing is stored: O(1). Otherwise one table
//! look-up per live class ([`super::overlap`]). The length of the posted list does not enter.

use crate::ids::{DeviceId, PeerId, Source, TagHandle};
use crate::seam::{Buffer, NoPlacer};

use super::clause::Clause;
use super::entry::{Place, Step};
use super::nic::Switch;
use super::overlap::InTheWay;
use super::queue::Candidate;
use super::reason::Reason;
use super::{Offload, Record};

/// What was found of a candidate.
enum Verdict {
    /// It goes down, through a bounce buffer or not.
    Down(Option<Buffer>),
    /// It stays in software.
    Stays(Reason),
    /// It waits for another to be out of the way.
    Waits(Reason, usize),
    /// It, and with it everything newer, waits for a resource.
    HeldUp(Reason),
    /// It is in another device's list, or no longer posted.
    Elsewhere,
}

impl Offload {
    /// Send down what may go down, and queue what is due.
    #[inline(never)]
    pub(crate) fn poll(&mut self) {
        self.refill();
        self.poll_due();
    }

    fn refill(&mut self) {
        for at in 0..self.nics.len() {
            if self.nics[at].capabilities.is_matching() {
                self.refill_device(at);
            }
        }
    }

    fn refill_device(&mut self, at: usize) {
        while let Some(candidate) = self.nics[at].queue.first() {
            if let Some(reason) = self.nics[at].is_held_up() {
                self.nics[at].held_up_by = reason;
                break;
            }
            if !self.look_at(at, candidate) {
                break;
            }
        }
        self.flush_late_dels(at);
    }

    /// The only device that matches is idle: send a receive that was just posted down at once, if it may go.
    pub(super) fn go_straight_down(&mut self, at: usize, index: usize) -> bool {
        if self.nics[at].is_held_up().is_some() {
            return false;
        }
        match self.judge(at, index) {
            Verdict::Down(bounce) => {
                self.send_down(at, index, bounce);
                true
            }
            Verdict::Stays(_) | Verdict::Waits(..) | Verdict::HeldUp(_) | Verdict::Elsewhere => false,
        }
    }

    /// Why a receive that no device has looked at is in software: a message may take it before one does. What can be
    /// said without looking at others.
    pub(super) fn reason_at_first(&self, index: usize) -> Reason {
        let Some(at) = self.nics.iter().position(|nic| nic.capabilities.is_matching()) else {
            return Reason::Disabled;
        };
        let never = || self.mirror.record(index).and_then(|record| self.nics[at].never(&self.peers, record));
        self.nics[at].is_held_up().or_else(never).unwrap_or(self.nics[at].held_up_by)
    }

    /// Look at one candidate; `false`: go no further now.
    fn look_at(&mut self, at: usize, candidate: Candidate) -> bool {
        let index = candidate.record;
        let verdict = self.judge(at, index);
        let Some(record) = self.mirror.record_mut(index) else {
            self.nics[at].queue.take_out(index);
            return true;
        };
        let nic = &mut self.nics[at];
        match verdict {
            Verdict::Down(bounce) => {
                nic.queue.take_out(index);
                self.send_down(at, index, bounce);
            }
            Verdict::HeldUp(reason) => {
                nic.held_up_by = reason;
                return false;
            }
            Verdict::Elsewhere => {
                nic.queue.take_out(index);
                // With its entry in another NIC it stands in the way here until that one has let it go.
                if (record.place().is_posted() || record.del_outstanding)
                    && self.peers.may_come_through(&record.pattern, nic.id)
                {
                    nic.revoke();
                    nic.overlaps.insert(index, record.sequence, record.pattern);
                }
            }
            Verdict::Stays(reason) => {
                record.reason = reason;
                nic.queue.take_out(index);
                self.store(at, index);
            }
            Verdict::Waits(reason, other) => {
                record.reason = reason;
                nic.queue.wait_for(index, other);
                if let Some(other) = self.mirror.record_mut(other) {
                    other.entangled = true;
                }
                self.store(at, index);
            }
        }
        true
    }

    /// It is not in this device's list and may be in the way of newer ones.
    fn store(&mut self, at: usize, index: usize) {
        let Some(record) = self.mirror.record_mut(index) else { return };
        record.entangled = true;
        let nic = &mut self.nics[at];
        nic.revoke();
        if self.peers.may_come_through(&record.pattern, nic.id) {
            nic.overlaps.insert(index, record.sequence, record.pattern);
        }
    }

    fn judge(&mut self, at: usize, index: usize) -> Verdict {
        let Some(record) = self.mirror.record(index) else { return Verdict::Elsewhere };
        if record.place() != Place::Software || record.pinned.is_some() {
            return Verdict::Elsewhere;
        }
        if let Some(reason) = self.nics[at].never(&self.peers, record) {
            return Verdict::Stays(reason);
        }
        let nic = &mut self.nics[at];
        match nic.overlaps.newest_before(record.sequence, &record.pattern) {
            None => {}
            Some(InTheWay::Newest(other)) => return Verdict::Waits(Reason::OlderOverlap, other),
            Some(InTheWay::Unknown) => return Verdict::Stays(Reason::TooManyClasses),
        }
        if record.buffer.length < nic.capabilities.eager_limit {
            return match nic.bounces.take() {
                Some(bounce) => Verdict::Down(Some(bounce)),
                None if nic.bounces.is_provided() => Verdict::HeldUp(Reason::NoBounceBuffer),
                None => Verdict::Stays(Reason::NoBounceBuffer),
            };
        }
        match self.stretches.overlapping(&record.buffer) {
            Some(holder) => Verdict::Waits(Reason::BufferOverlap, holder),
            None => Verdict::Down(None),
        }
    }

    fn send_down(&mut self, at: usize, index: usize, bounce: Option<Buffer>) {
        let nic = &mut self.nics[at];
        let Some(record) = self.mirror.record_mut(index) else { return };
        nic.reserve();
        if !nic.list(record, index, bounce, self.rules, &mut NoPlacer) {
            return;
        }
        self.statistics.adds += 1;
        match bounce {
            Some(_) => self.statistics.bounced += 1,
            None => {
                let entered = self.stretches.try_insert(&record.buffer, index);
                debug_assert!(entered, "the verdict said that nothing overlaps");
            }
        }
        if record.entangled {
            nic.overlaps.remove(index);
            self.wake(at, index);
        }
    }

    /// Those that waited for this one are looked at again.
    pub(super) fn wake(&mut self, at: usize, index: usize) {
        let mirror = &self.mirror;
        self.nics[at].revoke();
        self.nics[at].queue.wake(index, |waiter| mirror.record(waiter).map_or(0, |record| record.sequence));
    }

    /// Switch offload to a device on or off. Off brings its receives back, newest first (rule 9).
    pub(crate) fn set_switch(&mut self, device: DeviceId, on: bool) {
        self.stir();
        let at = device.0 as usize;
        let Some(nic) = self.nics.get_mut(at).filter(|nic| !matches!(nic.switch, Switch::Failed)) else {
            return;
        };
        nic.revoke();
        if on {
            nic.switch = Switch::On;
            self.reconsider_all(at);
        } else {
            nic.switch = Switch::Off;
            self.give_up(at);
        }
    }

    /// No more receives go down to a device that broke its contract.
    pub(crate) fn distrust(&mut self, device: DeviceId) {
        self.stir();
        if let Some(nic) = self.nics.get_mut(device.0 as usize).filter(|nic| nic.switch == Switch::On) {
            nic.switch = Switch::Faulty;
            nic.revoke();
        }
    }

    fn give_up(&mut self, at: usize) {
        let device = self.nics[at].id;
        let mut order = self.mirror.in_order();
        if self.rules.hold(Clause::RecallNewestFirst) {
            order.reverse();
        }
        for index in order {
            let listed = |record: &Record| record.pinned == Some(device) && record.place() == Place::Listed;
            if self.mirror.record(index).is_some_and(listed) {
                self.recall(index, Clause::NoAddWhileRecalling);
            }
        }
    }

    /// What is known of `from` is `to`'s. An older receive of `from` may stand in the way of one of `to` now, so those
    /// come back first; they go down again when they may.
    pub(crate) fn rename_peer(&mut self, from: PeerId, to: PeerId) {
        self.stir();
        for index in self.mirror.in_order() {
            let Some(record) = self.mirror.record_mut(index) else { continue };
            if record.pattern.source != Source::Peer(from) {
                continue;
            }
            record.pattern.source = Source::Peer(to);
            let (sequence, in_software) = (record.sequence, record.place() == Place::Software);
            for at in 0..self.nics.len() {
                if self.nics[at].overlaps.contains(index) {
                    self.nics[at].overlaps.remove(index);
                    self.store(at, index);
                    if in_software {
                        // The tag may name its source now.
                        self.nics[at].revoke();
                        self.nics[at].queue.ask_again(index, sequence);
                    }
                }
            }
        }
        self.recall_naming(to);
    }

    /// A peer's messages come through no device for now, and may come through any next: receives that name it stand in the way
    /// everywhere, and what they overlap comes back.
    pub(crate) fn clear_path(&mut self, peer: PeerId) {
        self.stir();
        if !self.peers.clear_path(peer) || !self.active {
            return;
        }
        for index in self.mirror.in_order() {
            let Some(record) = self.mirror.record(index) else { continue };
            if record.pattern.source != Source::Peer(peer) || !record.place().is_posted() {
                continue;
            }
            let list = record.pinned.filter(|_| record.place() == Place::Listed);
            for at in 0..self.nics.len() {
                if self.nics[at].capabilities.is_matching() && Some(self.nics[at].id) != list {
                    self.store(at, index);
                }
            }
        }
        (0..self.nics.len()).for_each(|at| self.recall_overlapped(at));
    }

    /// Bring back what an older receive that is not in this device's list overlaps, newest first (rule 9).
    fn recall_overlapped(&mut self, at: usize) {
        let mut overlapped = Vec::new();
        for index in self.mirror.in_order() {
            let Some(record) = self.mirror.record(index) else { continue };
            if record.pinned != Some(self.nics[at].id) || record.place() != Place::Listed {
                continue;
            }
            let (sequence, pattern) = (record.sequence, record.pattern);
            if self.nics[at].overlaps.newest_before(sequence, &pattern).is_some() {
                // It stands in the way of newer ones in its turn.
                self.store(at, index);
                overlapped.push(index);
            }
        }
        for index in overlapped.into_iter().rev() {
            self.recall(index, Clause::NoAddWhileRecalling);
        }
    }

    /// Whether nothing is on its way back from a device.
    pub(crate) fn is_clear(&self, device: DeviceId) -> bool {
        !self
            .mirror
            .in_use()
            .any(|record| record.pinned == Some(device) && record.place() == Place::Recalling)
    }

    /// What a peer's messages may fit has changed: receives in NICs that name it come back, newest first.
    pub(super) fn recall_naming(&mut self, peer: PeerId) {
        for index in self.mirror.in_order().into_iter().rev() {
            let names_it = |record: &Record| {
                record.pattern.source == Source::Peer(peer) && record.place() == Place::Listed
            };
            if self.mirror.record(index).is_some_and(names_it) {
                self.recall(index, Clause::NoAddWhileRecalling);
            }
        }
    }

    /// Look again at everything that this device does not have.
    fn reconsider_all(&mut self, at: usize) {
        for index in self.mirror.in_order() {
            let Some(record) = self.mirror.record(index) else { continue };
            if record.place() == Place::Software && self.nics[at].overlaps.contains(index) {
                let sequence = record.sequence;
                self.nics[at].revoke();
                self.nics[at].queue.ask_again(index, sequence);
            }
        }
    }

    /// Queue the DEL of an entry, unless there was one. `clause`: the one by which the receive now stands in
    /// the way of newer ones.
    pub(crate) fn recall(&mut self, index: usize, clause: Clause) {
        self.stir();
        // One whose DEL failed is recalled already: its match will be told, and a second DEL would name an entry that
        // the device may have given to another receive by then.
        let asks = self.mirror.record(index).is_some_and(|record| record.place() == Place::Listed);
        if !self.mirror.step(index, Step::Recall) {
            return;
        }
        if asks {
            self.push_del(index);
        }
        let Some(record) = self.mirror.record(index) else { return };
        let Some(device) = record.pinned else { return };
        if self.rules.hold(clause) {
            self.store(device.0 as usize, index);
        }
        if !self.rules.hold(Clause::BlocksUntilDelPolled) {
            for at in (0..self.nics.len()).filter(|&at| at != device.0 as usize) {
                self.nics[at].overlaps.remove(index);
                self.wake(at, index);
            }
        }
    }

    pub(super) fn push_del(&mut self, index: usize) {
        let handle = self.mirror.handle(index);
        let Some(record) = self.mirror.record_mut(index) else { return };
        let Some(device) = record.pinned else { return };
        record.del_outstanding = true;
        record.slot_kept = false;
        self.statistics.dels += 1;
        let at = device.0 as usize;
        let by_own = record.place() == Place::Used;
        if by_own && !self.rules.hold(Clause::CountBehindDels) {
            self.nics[at].late_dels.push(handle);
            return;
        }
        let signalled = by_own || record.cancel || self.rules.hold(Clause::SignalledDel);
        self.nics[at].push_del(handle, signalled);
    }

    fn flush_late_dels(&mut self, at: usize) {
        for handle in std::mem::take::<Vec<TagHandle>>(&mut self.nics[at].late_dels) {
            self.nics[at].push_del(handle, true);
        }
    }
}
