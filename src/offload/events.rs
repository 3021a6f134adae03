//! What devices say about entries, and what follows for the mirror.
//!
//! Each `handle_*` checks that the event is expected, moves the record on, and says what the engine has to do.

use crate::ids::{DeviceId, TagHandle, TransferId};
use crate::seam::{Match, MatchStage, Operation, OperationDone};

use super::Offload;
use super::clause::Clause;
use super::entry::{Place, Step};
use super::fault::{Checked, Fault};
use super::mirror::Record;
use super::nic::Switch;
use super::phase::Stood;
use super::reason::Reason;

/// What a list operation's completion means to the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// Nothing to do.
    Nothing,
    /// The DEL of a posted receive succeeded: a waiting message, a cancel, or nobody takes it.
    TakenBack(usize),
    /// The NIC had matched the receive: messages that wait for it search again.
    TooLate,
}

/// What a failed device held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Held {
    pub(crate) record: usize,
    pub(crate) place: Place,
    /// Data that was to come.
    pub(crate) transfer: Option<TransferId>,
}

impl Offload {
    /// A message arrived unmatched.
    ///
    /// # Errors
    /// The device cannot have counted it, or had no buffer for it.
    #[inline]
    pub(crate) fn handle_arrived(&mut self, device: DeviceId, counted: bool) -> Checked<()> {
        self.stir();
        let Some(nic) = self.nics.get_mut(device.0 as usize) else {
            return Err(Box::new(Fault::UnknownDevice { device }));
        };
        if nic.switch == Switch::Failed {
            return Err(Box::new(Fault::AfterFailure { device }));
        }
        match (nic.capabilities.is_matching(), counted) {
            (false, false) => Ok(()),
            (false, true) => Err(Box::new(Fault::CountWithoutTags { device })),
            (true, true) => nic.phase.handle_seen(device),
            (true, false) => nic.phase.handle_buffer_used(device),
        }
    }

    /// A message without a tag used a buffer. If the device counted it, it is decided as well: it takes no receive.
    ///
    /// # Errors
    /// No buffer was posted, or the device cannot have counted it.
    pub(crate) fn handle_untagged(&mut self, device: DeviceId, counted: bool) -> Checked<()> {
        self.handle_arrived(device, counted)?;
        if counted {
            self.handle_decided(device);
        }
        Ok(())
    }

    /// A counted message was decided.
    #[inline]
    pub(crate) fn handle_decided(&mut self, device: DeviceId) {
        self.stir();
        if let Some(nic) = self.nics.get_mut(device.0 as usize) {
            nic.revoke();
            nic.phase.handle_decided();
        }
    }

    /// A device matched an entry. The record, whose receive is to be completed, and its place in the mirror.
    ///
    /// # Errors
    /// The entry is not there, or software had used it.
    #[inline]
    pub(crate) fn handle_matched(&mut self, device: DeviceId, matched: &Match) -> Checked<(usize, &Record)> {
        self.stir();
        let handle = matched.handle;
        let Some(record) = self.mirror.find_mut(device, handle) else {
            return unknown_handle(device, handle, "a match");
        };
        let step = if matched.stage == MatchStage::DataFollows { Step::MatchBegun } else { Step::MatchWhole };
        if !record.step(step) {
            return unexpected_match(device, handle, record.place());
        }
        let index = handle.index as usize;
        self.statistics.matched_by_device += 1;
        // It stays pinned, so that there is nothing to settle for most.
        if record.del_outstanding || record.inactive.is_some() || record.entangled {
            self.withdraw_del(index, device, handle);
            self.left_list(index);
            if self.is_learning {
                self.learn(index, device);
            }
            self.settle(index);
        }
        match self.mirror.record(index) {
            Some(record) => Ok((index, record)),
            None => unknown_handle(device, handle, "a match"),
        }
    }

    /// A DEL that was queued, not submitted, would come to a device that may have let go of the entry by then, or
    /// given it to another receive (TM-CONTRACT 8.1).
    fn withdraw_del(&mut self, index: usize, device: DeviceId, handle: TagHandle) {
        let Some(record) = self.mirror.record_mut(index).filter(|record| record.del_outstanding) else {
            return;
        };
        let Some(nic) = self.nics.get_mut(device.0 as usize) else { return };
        if nic.withdraw_del(handle) {
            record.del_outstanding = false;
            self.statistics.dels -= 1;
        }
    }

    /// The data of a matched entry is complete. The transfer that it belongs to.
    ///
    /// # Errors
    /// The entry is not there, or has no data to come.
    pub(crate) fn handle_data(&mut self, device: DeviceId, handle: TagHandle) -> Checked<TransferId> {
        self.stir();
        let event = "the end of its data";
        let Some(record) = self.mirror.find_mut(device, handle) else {
            return unknown_handle(device, handle, event);
        };
        let place = record.place();
        match record.transfer.take() {
            Some(transfer) if record.step(Step::Data) => {
                self.settle(handle.index as usize);
                Ok(transfer)
            }
            _ => unexpected(device, handle, event, place),
        }
    }

    /// A list operation is complete.
    ///
    /// # Errors
    /// It was not due, or says what cannot be.
    #[inline]
    pub(crate) fn handle_operation(&mut self, device: DeviceId, done: &OperationDone) -> Checked<Outcome> {
        self.stir();
        let Some(nic) = self.nics.get_mut(device.0 as usize) else {
            return Err(Box::new(Fault::UnknownDevice { device }));
        };
        self.statistics.sync_requests += u64::from(done.sync_requested);
        let stood = nic.phase.handle_done(device, done.operation, done.phase)?;
        match done.operation {
            Operation::Sync => Ok(Outcome::Nothing),
            Operation::Add(handle) => {
                if stood == Stood::Behind
                    && let Some(record) = self.mirror.find_mut(device, handle)
                    && record.place().is_in_nic()
                {
                    record.inactive = Some(nic.phase.mark_inactive());
                }
                Ok(Outcome::Nothing)
            }
            Operation::Del(handle) => self.handle_del(device, handle, done.success),
        }
    }

    fn handle_del(&mut self, device: DeviceId, handle: TagHandle, success: bool) -> Checked<Outcome> {
        let Some(record) = self.mirror.find_mut(device, handle) else {
            return unknown_handle(device, handle, "the completion of a DEL");
        };
        let index = handle.index as usize;
        record.del_outstanding = false;
        let place = record.place();
        match (place, success) {
            (Place::Used, true) => {
                let _used = self.mirror.step(index, Step::DelDone);
                self.settle(index);
                Ok(Outcome::Nothing)
            }
            (Place::Used, false) => {
                let _used = self.mirror.step(index, Step::DelDone);
                self.settle(index);
                Err(Box::new(Fault::ConsumedTwice { device, handle }))
            }
            (Place::Recalling, true) => {
                self.left_list(index);
                Ok(Outcome::TakenBack(index))
            }
            // Its match will be polled: TM_ERR says so (TM-CONTRACT 8.2). Until then it is as good as in the NIC.
            (Place::Recalling, false) if self.rules.hold(Clause::FailedDelMeansMatched) => {
                Ok(Outcome::Nothing)
            }
            (Place::Recalling, false) => Ok(Outcome::TakenBack(index)),
            (Place::Matched | Place::Gone, false) => {
                self.statistics.dels_too_late += 1;
                self.settle(index);
                Ok(Outcome::TooLate)
            }
            (Place::Matched | Place::Gone | Place::Listed | Place::Software, _) => {
                let event = if success { "a DEL that succeeded" } else { "a DEL that failed" };
                unexpected(device, handle, event, place)
            }
        }
    }

    /// The device let go of an entry.
    ///
    /// # Errors
    /// It does not have it, or something about it is still to come.
    #[inline]
    pub(crate) fn handle_released(&mut self, device: DeviceId, handle: TagHandle) -> Checked<()> {
        self.stir();
        let event = "its release";
        let Some(record) = self.mirror.find_mut(device, handle) else {
            return unknown_handle(device, handle, event);
        };
        let place = record.place();
        if record.del_outstanding || !matches!(place, Place::Gone | Place::Software) {
            return unexpected(device, handle, event, place);
        }
        let index = handle.index as usize;
        self.unpin(index);
        if let Some(nic) = self.nics.get_mut(device.0 as usize) {
            nic.handle_released();
        }
        if place == Place::Software {
            self.look_again(index);
        }
        self.settle(index);
        Ok(())
    }

    /// The memory of an entry is nobody's but the user's again.
    #[inline]
    fn unpin(&mut self, index: usize) {
        let Some(record) = self.mirror.record_mut(index) else { return };
        let (device, bounce) = (record.pinned.take(), record.bounce.take());
        let kept = std::mem::take(&mut record.slot_kept);
        let Some(nic) = device.and_then(|device| self.nics.get_mut(device.0 as usize)) else { return };
        if kept {
            nic.give_back_slot();
        }
        match bounce {
            Some(bounce) => nic.bounces.give_back(bounce),
            None => self.stretches.remove(&record.buffer),
        }
        if record.entangled {
            self.wake_everywhere(index);
        }
    }

    /// Those whose buffers overlap waited for this.
    #[inline(never)]
    fn wake_everywhere(&mut self, index: usize) {
        for at in 0..self.nics.len() {
            self.wake(at, index);
        }
    }

    /// A receive that was given back is a candidate for every device again.
    #[inline(never)]
    fn look_again(&mut self, index: usize) {
        let Some(record) = self.mirror.record(index) else { return };
        for nic in &mut self.nics {
            if nic.overlaps.contains(index) {
                nic.revoke();
                nic.queue.ask_again(index, record.sequence);
            }
        }
    }

    /// An unexpected message takes a receive that is in the list of the NIC which reported it (rule 4): the DEL
    /// first, if none is outstanding; then the receive; the caller raises the count last.
    pub(crate) fn use_entry(&mut self, index: usize) -> bool {
        self.stir();
        let outstanding = self.mirror.record(index).is_some_and(|record| record.del_outstanding);
        if !self.mirror.step(index, Step::Use) {
            return false;
        }
        if !outstanding {
            self.push_del(index);
        }
        if !self.counts_as_in_software(index) {
            self.statistics.used_by_own_device += 1;
        }
        let device = self.mirror.record(index).and_then(|record| record.pinned);
        if let Some(device) = device.filter(|_| self.is_learning) {
            self.learn(index, device);
        }
        self.left_list(index);
        true
    }

    /// The DEL of a receive succeeded, and a message or a cancel takes it.
    pub(crate) fn take_back(&mut self, index: usize) {
        self.stir();
        let _taken = self.mirror.step(index, Step::TakenBack);
        self.settle(index);
    }

    /// The DEL of a receive succeeded, and nobody takes it.
    pub(crate) fn give_back(&mut self, index: usize) {
        self.stir();
        let _given = self.mirror.step(index, Step::GivenBack);
        let Some(record) = self.mirror.record_mut(index) else { return };
        (record.claimant, record.cancel, record.set_aside) = (None, false, false);
        match record.pinned {
            Some(device) => {
                let nic = &self.nics[device.0 as usize];
                record.reason = nic.is_held_up().unwrap_or(super::Reason::Disabled);
            }
            None => self.look_again(index),
        }
    }

    /// A message that came through this device takes a receive that is in software.
    #[inline]
    pub(crate) fn leave_first(&mut self, index: usize, device: DeviceId) {
        self.learn(index, device);
        if let Some(record) = self.mirror.record(index) {
            self.statistics.first_in_software[record.reason as usize] += 1;
        }
        self.leave(index);
    }

    /// A message that came through this device takes a receive of which another has taken the DEL.
    pub(crate) fn count_taken_back(&mut self, index: usize, device: DeviceId) {
        self.stir();
        self.learn(index, device);
        if !self.counts_as_in_software(index) {
            self.statistics.taken_back += 1;
        }
    }

    /// Whether the device does without the entry that a message takes; then it is counted here.
    fn counts_as_in_software(&mut self, index: usize) -> bool {
        let Some(Record { set_aside: true, reason, .. }) = self.mirror.record(index) else { return false };
        self.statistics.in_software[*reason as usize] += 1;
        self.statistics.first_in_software[*reason as usize] += 1;
        true
    }

    /// The device does without an entry whose ADD it took: it is a receive in software, as far as is counted.
    #[cold]
    pub(crate) fn handle_set_aside(
        &mut self,
        device: DeviceId,
        handle: TagHandle,
        overlaps: bool,
    ) -> Checked<()> {
        self.stir();
        let Some(record) = self.mirror.find_mut(device, handle) else {
            return unknown_handle(device, handle, "its being set aside");
        };
        if !std::mem::replace(&mut record.set_aside, true) {
            record.reason = if overlaps { Reason::OlderOverlap } else { Reason::NotRegistered };
            self.statistics.adds = self.statistics.adds.saturating_sub(1);
            self.statistics.set_aside += 1;
        }
        Ok(())
    }

    /// A receive ended in software.
    #[inline]
    pub(crate) fn leave(&mut self, index: usize) {
        self.stir();
        if let Some(record) = self.mirror.record(index) {
            self.statistics.in_software[record.reason as usize] += 1;
        }
        let _left = self.mirror.step(index, Step::Leave);
        self.settle(index);
    }

    fn left_list(&mut self, index: usize) {
        let Some(record) = self.mirror.record_mut(index) else { return };
        let (mark, device) = (record.inactive.take(), record.pinned);
        if let (Some(mark), Some(device)) = (mark, device) {
            self.nics[device.0 as usize].phase.handle_left(mark);
        }
    }

    /// If a receive is no longer posted and no DEL of it is outstanding, it stands in nobody's way any more; if no
    /// device can name it either, it is forgotten.
    #[inline]
    pub(super) fn settle(&mut self, index: usize) {
        let Some(record) = self.mirror.record(index) else { return };
        if record.place().is_posted() || record.del_outstanding {
            return;
        }
        let spent = record.is_spent();
        if record.entangled {
            self.disentangle(index);
        }
        if spent {
            self.mirror.forget(index);
        }
    }

    #[inline(never)]
    fn disentangle(&mut self, index: usize) {
        for at in 0..self.nics.len() {
            self.nics[at].queue.take_out(index);
            self.nics[at].overlaps.remove(index);
            self.wake(at, index);
        }
        // While it is pinned another may come to wait for its buffer; that marks it again.
        if let Some(record) = self.mirror.record_mut(index) {
            record.entangled = false;
        }
    }

    /// A device failed. Everything it held, oldest first, with what that was: the engine ends each one.
    pub(crate) fn fail_device(&mut self, device: DeviceId) -> Vec<Held> {
        self.stir();
        self.end_plain();
        let Some(nic) = self.nics.get_mut(device.0 as usize) else { return Vec::new() };
        nic.fail();
        let held: Vec<_> = self
            .mirror
            .in_order()
            .into_iter()
            .filter_map(|index| {
                let record = self.mirror.record(index)?;
                (record.pinned == Some(device)).then(|| Held {
                    record: index,
                    place: record.place(),
                    transfer: record.transfer,
                })
            })
            .collect();
        for &Held { record: index, place, .. } in &held {
            if let Some(record) = self.mirror.record_mut(index) {
                record.del_outstanding = false;
                record.reason = super::Reason::DeviceFault;
            }
            self.left_list(index);
            self.unpin(index);
            if place != Place::Recalling {
                let _failed = self.mirror.step(index, Step::Fail);
                self.look_again(index);
                self.settle(index);
            }
        }
        held
    }

    /// Queue what is due for every device: SYNCs and unexpected buffers.
    pub(super) fn poll_due(&mut self) {
        let decided = self.rules.hold(Clause::CountDecided);
        let budget = self.rules.hold(Clause::BufferBudget);
        for nic in &mut self.nics {
            if nic.capabilities.is_matching() {
                self.statistics.syncs += u64::from(nic.push_sync_if_due(decided));
                nic.push_buffers_if_due(budget);
            }
        }
    }
}

#[cold]
fn unknown_handle<T>(device: DeviceId, handle: TagHandle, event: &'static str) -> Checked<T> {
    Err(Box::new(Fault::UnknownHandle { device, handle, event }))
}

#[cold]
fn unexpected<T>(device: DeviceId, handle: TagHandle, event: &'static str, place: Place) -> Checked<T> {
    Err(Box::new(Fault::Unexpected { device, handle, event, place }))
}

#[cold]
fn unexpected_match<T>(device: DeviceId, handle: TagHandle, place: Place) -> Checked<T> {
    match place {
        Place::Used => Err(Box::new(Fault::ConsumedTwice { device, handle })),
        Place::Software | Place::Listed | Place::Recalling | Place::Matched | Place::Gone => {
            unexpected(device, handle, "a match", place)
        }
    }
}
