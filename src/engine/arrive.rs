//! Messages that no device matched: decided at once where that is allowed, else made to wait (rules 4 and 5).

use crate::ids::{DeviceId, ReceiveId};
use crate::matching::{Arrived, Elsewhere, Envelope};
use crate::offload::{Clause, Place, Reason};
use crate::seam::{Answer, Arrival, Buffer, DataError};

use super::completion::{Completion, End};
use super::transfer::{Held, Transfer};
use super::waiting::{Message, Waiter};
use super::{Engine, NONE, Slot};

/// Where a message goes.
enum Search {
    /// This receive takes it; it has left the posted list, unless it stays there.
    Takes(Slot),
    /// No posted receive fits.
    None,
    /// Its first fit is in a NIC that did not report it.
    Waits(usize),
}

impl Engine {
    #[inline(always)]
    pub(super) fn handle_arrived(&mut self, device: DeviceId, arrival: &Arrival) -> Answer {
        if device.0 as usize >= self.offload.plain_count() {
            return self.handle_arrived_among_nics(device, arrival);
        }
        let is_short = self.matcher.is_posted_short();
        let accepted = if is_short { self.try_accept(arrival) } else { self.try_accept_indexed(arrival) };
        match accepted {
            Ok(Some(buffer)) => Answer::Accept { buffer: *buffer, transfer: None },
            Ok(None) if is_short => {
                self.hold(device, arrival);
                Answer::Hold
            }
            Ok(None) => self.handle_arrived_past_index(device, arrival, true),
            Err(_) => self.handle_arrived_in_software(device, arrival),
        }
    }

    /// Where a message in hand goes whose receive is among the few newest, and its completion is queued; or that no
    /// receive fits. An error, and nothing has changed, if there is more to it. Makes no call, and is drawn
    /// into the owner's loop, which saves registers once for all. Budget: 60 instructions.
    #[inline(always)]
    fn try_accept(&mut self, arrival: &Arrival) -> Result<Option<&Buffer>, Elsewhere> {
        if !arrival.in_hand || !self.completions.has_room() {
            return Err(Elsewhere);
        }
        let envelope = Envelope { tag: arrival.header.tag, source: arrival.source };
        let Some(slot) = self.matcher.try_take_posted_for(&envelope)? else { return Ok(None) };
        self.completions.put_received(slot.context, |received| received.write_arrival(arrival, &slot.buffer));
        Ok(Some(&slot.buffer))
    }

    /// The same where many receives are posted, all of one class. Budget: 130 instructions.
    #[inline(never)]
    fn try_accept_indexed(&mut self, arrival: &Arrival) -> Result<Option<&Buffer>, Elsewhere> {
        if !arrival.in_hand || !self.completions.has_room() {
            return Err(Elsewhere);
        }
        let envelope = Envelope { tag: arrival.header.tag, source: arrival.source };
        let Some((_, slot)) = self.matcher.take_posted_for(&envelope)? else { return Ok(None) };
        self.completions.put_received(slot.context, |received| received.write_arrival(arrival, &slot.buffer));
        Ok(Some(&slot.buffer))
    }

    /// No posted receive fits. Budget: 50 instructions while few messages wait, 130 while many do and one class is live.
    #[inline(never)]
    fn hold(&mut self, device: DeviceId, arrival: &Arrival) {
        let envelope = Envelope { tag: arrival.header.tag, source: arrival.source };
        if self.matcher.try_hold(&envelope, || Held::new(device, arrival)).is_none() {
            self.hold_indexed(device, arrival);
        }
    }

    #[inline(never)]
    fn hold_indexed(&mut self, device: DeviceId, arrival: &Arrival) {
        let envelope = Envelope { tag: arrival.header.tag, source: arrival.source };
        if self.matcher.try_index_unexpected(&envelope, || Held::new(device, arrival)).is_none() {
            self.hold_anywhere(device, arrival);
        }
    }

    #[cold]
    #[inline(never)]
    fn hold_anywhere(&mut self, device: DeviceId, arrival: &Arrival) {
        let envelope = Envelope { tag: arrival.header.tag, source: arrival.source };
        self.matcher.queue_unexpected_with(&envelope, || Held::new(device, arrival));
    }

    /// Budget: 220 instructions where the only class has a receive that takes a message in hand.
    #[inline(never)]
    fn handle_arrived_in_software(&mut self, device: DeviceId, arrival: &Arrival) -> Answer {
        let envelope = Envelope { tag: arrival.header.tag, source: arrival.source };
        if self.matcher.is_posted_short() {
            return match self.matcher.arrive_with(envelope, || Held::new(device, arrival)) {
                Arrived::Unexpected(_) => Answer::Hold,
                Arrived::Matched { value: slot, .. } => self.accept_arrival(device, arrival, slot),
            };
        }
        match self.matcher.take_posted_for(&envelope) {
            Ok(Some((_, &slot))) => self.answer_matched(device, arrival, slot),
            Ok(None) => self.handle_arrived_past_index(device, arrival, true),
            Err(_) => self.handle_arrived_past_index(device, arrival, false),
        }
    }

    #[inline(never)]
    fn handle_arrived_past_index(
        &mut self,
        device: DeviceId,
        arrival: &Arrival,
        none_indexed: bool,
    ) -> Answer {
        let envelope = Envelope { tag: arrival.header.tag, source: arrival.source };
        let held = || Held::new(device, arrival);
        match self.matcher.arrive_past_index(&envelope, held, none_indexed) {
            Arrived::Unexpected(_) => Answer::Hold,
            Arrived::Matched { value: slot, .. } => self.answer_matched(device, arrival, slot),
        }
    }

    #[inline(always)]
    fn answer_matched(&mut self, device: DeviceId, arrival: &Arrival, slot: Slot) -> Answer {
        if arrival.in_hand && slot.multi == NONE && self.completions.has_room() {
            self.completions
                .put_received(slot.context, |received| received.write_arrival(arrival, &slot.buffer));
            return Answer::Accept { buffer: slot.buffer, transfer: None };
        }
        self.accept_arrival(device, arrival, slot)
    }

    /// By value: the row is put together again only here.
    #[cold]
    #[inline(never)]
    fn accept_arrival(&mut self, device: DeviceId, arrival: &Arrival, slot: Slot) -> Answer {
        let envelope = Envelope { tag: arrival.header.tag, source: arrival.source };
        self.accept_now(envelope, &Held::new(device, arrival), arrival.in_hand, &slot)
    }

    /// The same with a device about that matches, or with senders that are known by another number since.
    #[inline(never)]
    fn handle_arrived_among_nics(&mut self, device: DeviceId, arrival: &Arrival) -> Answer {
        let envelope = Envelope { tag: arrival.header.tag, source: self.renamed.now(arrival.source) };
        let held = Held::new(device, arrival);
        if let Err(fault) = self.offload.handle_arrived(device, arrival.counted) {
            // The message itself is no worse for it, unless there is no such device (any more).
            self.fault(device, *fault);
            if !self.offload.is_there(device) {
                return Answer::Discard;
            }
        }
        let message = Message { envelope, held, counted: arrival.counted };
        if self.waiting.holds_back(envelope.source) && self.offload.rules().hold(Clause::LaterOfSourceWait) {
            let ticket = self.waiting.ticket();
            self.wait(Waiter { ticket, message, record: None, dead: None });
            return Answer::Hold;
        }
        match self.search(&message) {
            Search::Takes(slot) => {
                let answer = self.accept_now(envelope, &held, arrival.in_hand, &slot);
                self.decided(&message);
                // Messages of other paths may have waited for it (rule 4).
                if self.offload.record(slot.record as usize).is_some_and(|record| record.wanted) {
                    self.reconsider();
                }
                answer
            }
            Search::None => {
                self.queue_unexpected(envelope, held);
                self.decided(&message);
                Answer::Hold
            }
            Search::Waits(record) => {
                let ticket = self.waiting.ticket();
                self.ask_back(record, ticket);
                self.wait(Waiter { ticket, message, record: Some(record), dead: None });
                if !self.offload.rules().hold(Clause::SignalledDel) {
                    self.taken_back(record);
                }
                Answer::Hold
            }
        }
    }

    fn wait(&mut self, waiter: Waiter) {
        if !self.offload.rules().hold(Clause::WaitingNotCounted) {
            self.decided(&waiter.message);
        }
        self.waiting.push(waiter);
    }

    /// A message is decided: only now may it be counted.
    fn decided(&mut self, message: &Message) {
        if message.counted {
            self.offload.handle_decided(message.held.device);
        }
    }

    fn decided_after_waiting(&mut self, message: &Message) {
        if self.offload.rules().hold(Clause::WaitingNotCounted) {
            self.decided(message);
        }
    }

    /// The message goes into the receive at once.
    #[inline(never)]
    fn accept_now(&mut self, envelope: Envelope, held: &Held, in_hand: bool, slot: &Slot) -> Answer {
        let buffer = self.piece(slot, held.length);
        let message = held.received(envelope.tag, envelope.source, &buffer);
        let context = slot.context;
        let transfer = if in_hand {
            self.completions.push(Completion { context, end: End::Received(message) });
            None
        } else {
            let multi = (slot.multi != NONE).then_some(slot.multi);
            let device = held.device;
            Some(self.transfers.insert(Transfer { context, message, buffer, device, multi, by_entry: false }))
        };
        if slot.multi != NONE {
            self.after_piece(slot, in_hand);
        }
        Answer::Accept { buffer, transfer }
    }

    /// A message that the host holds goes into a receive, or into a piece of a multi-receive buffer.
    fn accept_late(&mut self, message: &Message, slot: &Slot) {
        self.accept_held(message.envelope, &message.held, slot);
        if slot.multi != NONE {
            self.after_piece(slot, false);
        }
    }

    /// A multi-receive buffer gave a piece: it may have given its last.
    fn after_piece(&mut self, slot: &Slot, placed: bool) {
        let Some(multi) = self.multis.get_mut(slot.multi as usize) else { return };
        if placed {
            multi.under_way -= 1;
        }
        let (closed, receive) = (multi.closed, multi.receive);
        if closed {
            if let Some(receive) = receive
                && let Some((_, slot)) = self.take_posted(receive)
                && slot.record != NONE
            {
                self.offload.leave(slot.record as usize);
            }
            self.settle_multi(slot.multi);
        }
    }

    /// Find the earliest-posted receive that fits, and take it if software may.
    fn search(&mut self, message: &Message) -> Search {
        let Some(id) = self.matcher.first_posted(&message.envelope) else { return Search::None };
        match self.claimable(id, message) {
            Ok(slot) => Search::Takes(slot),
            Err(record) if self.offload.rules().hold(Clause::NeverPassesOver) => Search::Waits(record),
            Err(_) => self.pass_over(message),
        }
    }

    /// Take a receive for a message, unless it is in a NIC that did not report the message: then that record.
    fn claimable(&mut self, id: ReceiveId, message: &Message) -> Result<Slot, usize> {
        let Some((_, &slot)) = self.posted(id) else { return Err(usize::MAX) };
        if slot.multi != NONE {
            // It stays posted until it is used up, and is never in a NIC.
            if slot.record != NONE {
                self.offload.statistics.first_in_software[Reason::MultiReceive as usize] += 1;
            }
            return Ok(slot);
        }
        let index = slot.record as usize;
        match self.offload.record(index).map(|record| (record.place(), record.pinned, record.del_outstanding))
        {
            Some((Place::Listed | Place::Recalling, pinned, outstanding)) => {
                let own = pinned == Some(message.held.device) && message.counted;
                let may = !outstanding || self.offload.rules().hold(Clause::TakesDespiteDel);
                if !(own && may && self.offload.use_entry(index)) {
                    return Err(index);
                }
            }
            Some((Place::Software, ..)) => self.offload.leave_first(index, message.held.device),
            Some((Place::Used | Place::Matched | Place::Gone, ..)) | None => {}
        }
        let _taken = self.take_posted(id);
        Ok(slot)
    }

    /// A dropped clause: look for a later receive instead of waiting.
    fn pass_over(&mut self, message: &Message) -> Search {
        for id in self.matcher.posted_ids() {
            let fits =
                self.matcher.posted(id).is_some_and(|(pattern, _)| pattern.fits(&message.envelope, None));
            if fits && let Ok(slot) = self.claimable(id, message) {
                return Search::Takes(slot);
            }
        }
        Search::None
    }

    /// A message wants a receive back from its NIC: queue the DEL, or join the one outstanding.
    fn ask_back(&mut self, record: usize, ticket: u64) {
        if let Some(record) = self.offload.record_mut(record) {
            record.wanted = true;
            if record.place() == Place::Listed {
                record.claimant = Some(ticket);
            }
        }
        self.offload.recall(record, Clause::RecalledBlocks);
    }

    /// The DEL of a posted receive succeeded: the message that queued it gets it, else the cancel, else it stays
    /// posted in software.
    pub(super) fn taken_back(&mut self, index: usize) {
        let Some(record) = self.offload.record(index) else { return };
        let (id, claimant, cancel) = (record.receive, record.claimant, record.cancel);
        let cancel_first = cancel && !self.offload.rules().hold(Clause::ClaimantBeforeCancel);
        let waiter = claimant.filter(|_| !cancel_first).and_then(|ticket| self.waiting.take(ticket));
        if waiter.is_none() && !cancel {
            self.offload.give_back(index);
            self.reconsider();
            return;
        }
        let Some((_, slot)) = self.take_posted(id) else { return };
        match waiter {
            None => self.complete_cancelled(&slot),
            Some(Waiter { message, dead: None, .. }) => {
                self.offload.count_taken_back(index, message.held.device);
                self.accept_held(message.envelope, &message.held, &slot);
                self.decided_after_waiting(&message);
            }
            Some(Waiter { message, dead: Some(error), .. }) => {
                self.fail(&message, &slot, error);
                self.decided_after_waiting(&message);
            }
        }
        self.offload.take_back(index);
        self.reconsider();
    }

    fn fail(&mut self, message: &Message, slot: &Slot, error: DataError) {
        let received = message.held.received(message.envelope.tag, message.envelope.source, &slot.buffer);
        let end = End::failed(&received, error);
        self.completions.push(Completion { context: slot.context, end });
    }

    /// Something changed that messages may have waited for: those whose turn it is search again, in their order.
    #[inline]
    pub(super) fn reconsider(&mut self) {
        // One that is decided may take a receive that another, looked at before, waits for.
        while !self.waiting.is_empty() && self.reconsider_once() {}
    }

    /// Whether a message was decided.
    #[inline(never)]
    fn reconsider_once(&mut self) -> bool {
        let mut any = false;
        for waiter in self.waiting.take_all() {
            if self.waiting.holds_back(waiter.message.envelope.source)
                && self.offload.rules().hold(Clause::LaterOfSourceWait)
            {
                // One that was of another sender until that was learned may have asked for a receive, which still is its.
                let record = waiter.record.filter(|&index| {
                    self.offload.record(index).is_some_and(|record| record.claimant == Some(waiter.ticket))
                });
                self.waiting.push(Waiter { record, ..waiter });
                continue;
            }
            let still = waiter.record.filter(|&index| {
                self.offload.record(index).is_some_and(|record| self.waits_on(record, &waiter))
            });
            if still.is_some() {
                self.waiting.push(waiter);
            } else {
                any |= self.decide_waiter(waiter);
            }
        }
        any
    }

    /// Whether a message still waits for the entry that it waited for.
    fn waits_on(&self, record: &crate::offload::Record, waiter: &Waiter) -> bool {
        let is_claimant = record.claimant == Some(waiter.ticket);
        record.place().is_in_nic() && record.del_outstanding && (waiter.dead.is_none() || is_claimant)
            || record.place() == Place::Recalling && waiter.dead.is_none()
    }

    /// Search for a message that waited. Whether it is decided.
    fn decide_waiter(&mut self, waiter: Waiter) -> bool {
        let message = waiter.message;
        if waiter.dead.is_some() {
            // What it has asked for is nobody's now: its ticket is dealt to no other.
            self.decided_after_waiting(&message);
            return true;
        }
        match self.search(&message) {
            Search::Takes(slot) => {
                self.accept_late(&message, &slot);
                self.decided_after_waiting(&message);
                true
            }
            Search::None => {
                self.queue_unexpected(message.envelope, message.held);
                self.decided_after_waiting(&message);
                true
            }
            Search::Waits(record) => {
                self.ask_back(record, waiter.ticket);
                self.waiting.push(Waiter { record: Some(record), ..waiter });
                false
            }
        }
    }

    /// Messages on the unexpected list may fit a posted receive now, since their source was learned: they are
    /// matched as if they arrived, in their order, but lose no place if nothing fits. Once one of them waits for a NIC
    /// the later ones of its sender wait behind it (rule 5): nothing may take them meanwhile.
    pub(super) fn match_again(&mut self, messages: Vec<crate::ids::MessageId>) {
        for id in messages {
            let Some((envelope, &held)) = self.unexpected_message(id) else { continue };
            // They were counted when they were decided the first time.
            let message = Message { envelope, held, counted: false };
            if self.waiting.holds_back(envelope.source)
                && self.offload.rules().hold(Clause::LaterOfSourceWait)
            {
                let _taken = self.take_unexpected(id);
                let ticket = self.waiting.ticket();
                self.waiting.push(Waiter { ticket, message, record: None, dead: None });
                continue;
            }
            match self.search(&message) {
                Search::None => {}
                Search::Takes(slot) => {
                    let _taken = self.take_unexpected(id);
                    self.accept_late(&message, &slot);
                }
                Search::Waits(record) => {
                    let _taken = self.take_unexpected(id);
                    let ticket = self.waiting.ticket();
                    self.ask_back(record, ticket);
                    self.waiting.push(Waiter { ticket, message, record: Some(record), dead: None });
                }
            }
        }
    }
}
