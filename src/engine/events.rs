//! What devices say: each event is checked, moves things on, and may end receives.

use crate::ids::{DeviceId, MessageToken, PeerId, Source, TagHandle, TransferId};
use crate::matching::{Envelope, Pattern};
use crate::offload::{Checked, Fault, Held as HeldEntry, Outcome, Place};
use crate::seam::{
    Answer, Buffer, Command, Data, DataError, DataTarget, DeviceError, Event, EventSink, Match, MatchStage,
    OperationDone,
};

use super::Engine;
use super::completion::{Completion, End, Received};
use super::transfer::{Held, Transfer};

impl EventSink for Engine {
    #[inline(always)]
    fn handle_event(&mut self, device: DeviceId, event: &Event) -> Answer {
        if let Event::Arrived(arrival) = event {
            return self.handle_arrived(device, arrival);
        }
        self.handle_rest(device, event);
        Answer::Hold
    }

    #[inline(always)]
    fn handle_matches(&mut self, device: DeviceId, matches: &[Match]) {
        if let [matched] = matches {
            return self.handle_one_match(device, matched);
        }
        let mut left = self.take_usual(device, matches);
        while let Some((matched, behind)) = left.split_first() {
            self.handle_matched_in_full(device, matched);
            left = self.take_usual(device, behind);
        }
    }
}

impl Engine {
    /// Everything but arrivals: those are answered, and most of all that there is without a device that matches.
    #[inline(never)]
    fn handle_rest(&mut self, device: DeviceId, event: &Event) {
        match event {
            Event::Matched(matched) => self.handle_matched(device, matched),
            Event::Data(data) => self.handle_data(device, data),
            Event::Operation(done) => self.handle_operation(device, done),
            Event::Released(handle) => self.handle_released(device, *handle),
            Event::Arrived(_)
            | Event::Untagged { .. }
            | Event::SetAside { .. }
            | Event::PathLost { .. }
            | Event::DeviceFailed(_) => self.handle_rare(device, event),
        }
    }

    #[inline(never)]
    fn handle_rare(&mut self, device: DeviceId, event: &Event) {
        if device.0 as usize >= self.offload.device_count() {
            return self.fault(device, Fault::UnknownDevice { device });
        }
        match event {
            Event::Untagged { counted, .. } => {
                let checked = self.offload.handle_untagged(device, *counted);
                self.note(device, checked);
            }
            Event::SetAside { handle, overlaps } => {
                let checked = self.offload.handle_set_aside(device, *handle, *overlaps);
                self.note(device, checked);
            }
            Event::PathLost { peer } => self.handle_path_lost(*peer),
            Event::DeviceFailed(error) => self.handle_device_failed(device, error),
            Event::Arrived(_)
            | Event::Matched(_)
            | Event::Data(_)
            | Event::Operation(_)
            | Event::Released(_) => {}
        }
    }

    /// Keep the fault for the user, if there is one. What a device says that is not there names nothing either.
    #[inline]
    fn note(&mut self, device: DeviceId, checked: Checked<()>) {
        if let Err(fault) = checked {
            self.note_fault(device, fault);
        }
    }

    #[cold]
    #[inline(never)]
    #[expect(clippy::boxed_local, reason = "it comes in the box in which it was found")]
    fn note_fault(&mut self, device: DeviceId, fault: Box<Fault>) {
        let is_here = (device.0 as usize) < self.offload.device_count();
        self.fault(device, if is_here { *fault } else { Fault::UnknownDevice { device } });
    }

    #[inline(never)]
    fn handle_matched(&mut self, device: DeviceId, matched: &Match) {
        self.handle_one_match(device, matched);
    }

    #[inline(always)]
    fn handle_one_match(&mut self, device: DeviceId, matched: &Match) {
        let may = self.renamed.is_empty() && self.completions.has_room();
        if !may || !self.try_match(device, matched, true) {
            self.handle_matched_in_full(device, matched);
        }
    }

    /// Matches as long as they are usual, one after the other: those that are left. What can be asked or counted once is,
    /// so nothing else may come between two of them.
    #[inline(never)]
    fn take_usual<'m>(&mut self, device: DeviceId, matches: &'m [Match]) -> &'m [Match] {
        let room = if self.renamed.is_empty() { self.completions.room() } else { 0 };
        let (now, later) = matches.split_at(matches.len().min(room));
        let mut left = now.iter();
        while let Some(matched) = left.next() {
            if !self.try_match(device, matched, false) {
                let taken = now.len() - left.len() - 1;
                self.offload.count_usual(device, taken);
                return matches.get(taken..).unwrap_or_default();
            }
        }
        self.offload.count_usual(device, now.len());
        later
    }

    /// The usual match alone: it is complete, the device has let go of the entry as well, and it is of a receive among the
    /// newest. No source has another number than it came by, and there is room for a completion. Budget: 100
    /// instructions.
    #[inline(always)]
    fn try_match(&mut self, device: DeviceId, matched: &Match, is_counted: bool) -> bool {
        let Some(usual) = self.offload.usual_match(device, matched) else { return false };
        let receive = usual.receive();
        let envelope = Envelope { tag: matched.tag, source: matched.source };
        let Some(context) = self.matcher.try_take_posted_by(receive, &envelope, |slot| slot.context) else {
            return false;
        };
        let buffer = usual.buffer();
        self.completions.put_received(context, |received| received.write_match(device, matched, buffer));
        usual.finish(matched.handle.index, is_counted);
        true
    }

    #[inline(never)]
    fn handle_matched_in_full(&mut self, device: DeviceId, matched: &Match) {
        let checked = self.take_match(device, matched);
        self.note(device, checked);
        if matched.released {
            self.handle_released_in_full(device, matched.handle);
        }
    }

    fn take_match(&mut self, device: DeviceId, matched: &Match) -> Checked<()> {
        let (index, record) = self.offload.handle_matched(device, matched)?;
        let (receive, bounce, wanted) = (record.receive, record.bounce, record.wanted);
        let Some((pattern, slot)) = self.take_posted(receive) else { return Ok(()) };
        let source = self.renamed.now(matched.source);
        let message = Received { source, ..Received::of_match(device, matched, &slot.buffer) };
        let (context, buffer) = (slot.context, slot.buffer);
        if matched.stage == MatchStage::Complete && bounce.is_none() {
            self.completions.push(Completion { context, end: End::Received(message) });
        } else {
            let transfer = Transfer { context, message, buffer, device, multi: None, by_entry: false };
            self.match_in_steps(matched, index, transfer, bounce);
        }
        if wanted {
            self.reconsider();
        }
        self.check_fit(device, matched, source, &pattern)
    }

    /// A device that matches what does not fit broke its contract; or the user's tag layout did not hold.
    fn check_fit(&self, device: DeviceId, matched: &Match, source: PeerId, pattern: &Pattern) -> Checked<()> {
        let envelope = Envelope { tag: matched.tag, source };
        let group = match pattern.source {
            Source::Group(_) => self.matcher.group_of(source),
            Source::Any | Source::Peer(_) => None,
        };
        if pattern.fits(&envelope, group) {
            return Ok(());
        }
        let (handle, tag, source_peer) = (matched.handle, matched.tag.0, matched.source.0);
        Err(Box::new(Fault::WrongMatch { device, handle, tag, source_peer }))
    }

    /// A match whose payload is not in the user's buffer yet.
    #[inline(never)]
    fn match_in_steps(
        &mut self,
        matched: &Match,
        index: usize,
        mut transfer: Transfer,
        bounce: Option<Buffer>,
    ) {
        let (device, buffer) = (transfer.device, transfer.buffer);
        match (matched.stage, bounce) {
            (MatchStage::Complete, None) => self.complete(&transfer, None),
            (MatchStage::Complete, Some(bounce)) => self.copy(transfer, bounce),
            (MatchStage::DataFollows, _) => {
                transfer.by_entry = true;
                let transfer = self.transfers.insert(transfer);
                self.offload.set_transfer(index, transfer);
            }
            (MatchStage::SoftwareRendezvous(remote), _) => {
                transfer.message.length = remote.length;
                transfer.message.placed = remote.length.min(buffer.length);
                let transfer = self.transfers.insert(transfer);
                // To the device its peer goes by the number that it knows.
                let Match { source: peer, tag, app_ctx, .. } = *matched;
                self.offload.push(device, Command::Read { transfer, peer, tag, app_ctx, remote, buffer });
            }
        }
    }

    /// The payload lies in a bounce buffer: it comes up by a copy.
    fn copy(&mut self, transfer: Transfer, bounce: Buffer) {
        let device = transfer.device;
        let (length, to) = (transfer.message.length.min(bounce.length), transfer.buffer);
        let transfer = self.transfers.insert(Transfer { by_entry: false, ..transfer });
        let from = Buffer { length, ..bounce };
        self.offload.push(device, Command::Copy { transfer, from, to });
    }

    /// Budget: 50 instructions for a message that was held and had no error.
    #[inline(never)]
    fn handle_data(&mut self, device: DeviceId, data: &Data) {
        if let DataTarget::Transfer(id) = data.target
            && data.error.is_none()
            && self.completions.has_room()
            && let Some(transfer) = self.transfers.find(id)
            && transfer.is_whole()
            && transfer.device == device
        {
            let (context, end) = (transfer.context, End::Received(transfer.message));
            self.completions.put(Completion { context, end });
            self.transfers.forget(id);
            return;
        }
        self.handle_data_in_full(device, data);
    }

    #[inline(never)]
    fn handle_data_in_full(&mut self, device: DeviceId, data: &Data) {
        let checked = match data.target {
            DataTarget::Transfer(id) => self.handle_transfer_data(device, id, data.error),
            DataTarget::Entry(handle) => self.handle_entry_data(device, handle, data),
            DataTarget::Message(token) => self.handle_message_data(device, token, data.error),
        };
        self.note(device, checked);
    }

    fn handle_transfer_data(
        &mut self,
        device: DeviceId,
        id: TransferId,
        error: Option<DataError>,
    ) -> Checked<()> {
        let is_here = |transfer: &&Transfer| transfer.device == device && !transfer.by_entry;
        if self.transfers.find(id).filter(is_here).is_none() {
            return Err(Box::new(Fault::UnknownTransfer { device, transfer: id }));
        }
        self.end_transfer(id, error);
        Ok(())
    }

    #[inline(never)]
    fn handle_entry_data(&mut self, device: DeviceId, handle: TagHandle, data: &Data) -> Checked<()> {
        let bounce = self.offload.record(handle.index as usize).and_then(|record| record.bounce);
        let id = self.offload.handle_data(device, handle)?;
        let Some(mut transfer) = self.transfers.take(id) else {
            return Err(Box::new(Fault::UnknownTransfer { device, transfer: id }));
        };
        transfer.message.length = data.length;
        transfer.message.placed = data.length.min(transfer.buffer.length);
        transfer.message.immediate = transfer.message.immediate.or(data.immediate);
        match (bounce, data.error) {
            (Some(bounce), None) => self.copy(transfer, bounce),
            (_, error) => self.complete(&transfer, error),
        }
        Ok(())
    }

    #[inline(never)]
    fn handle_message_data(
        &mut self,
        device: DeviceId,
        token: MessageToken,
        error: Option<DataError>,
    ) -> Checked<()> {
        match error {
            Some(error) => self.handle_message_lost(device, token, error),
            None if device.0 as usize >= self.offload.device_count() => {
                Err(Box::new(Fault::UnknownDevice { device }))
            }
            // The device has the rest of a message that the host has not accepted yet. Nobody waits for it.
            None => Ok(()),
        }
    }

    fn end_transfer(&mut self, id: TransferId, error: Option<DataError>) {
        if let Some(transfer) = self.transfers.take(id) {
            self.complete(&transfer, error);
        }
    }

    /// A receive ends, or a piece of a multi-receive buffer.
    fn complete(&mut self, transfer: &Transfer, error: Option<DataError>) {
        let end = match error {
            None => End::Received(transfer.message),
            Some(error) => End::failed(&transfer.message, error),
        };
        self.completions.push(Completion { context: transfer.context, end });
        if let Some(index) = transfer.multi {
            if let Some(multi) = self.multis.get_mut(index as usize) {
                multi.under_way = multi.under_way.saturating_sub(1);
            }
            self.settle_multi(index);
        }
    }

    /// Budget: 40 instructions for an ADD.
    #[inline(never)]
    fn handle_operation(&mut self, device: DeviceId, done: &OperationDone) {
        if !self.offload.try_add_done(device, done) {
            self.handle_operation_in_full(device, done);
        }
    }

    #[inline(never)]
    fn handle_operation_in_full(&mut self, device: DeviceId, done: &OperationDone) {
        match self.offload.handle_operation(device, done) {
            Ok(Outcome::Nothing) => {}
            Ok(Outcome::TakenBack(index)) => self.taken_back(index),
            Ok(Outcome::TooLate) => self.reconsider(),
            Err(fault) => self.note_fault(device, fault),
        }
    }

    /// Budget: 65 instructions for one that the device had matched, whose buffer lies behind all others.
    #[inline(never)]
    fn handle_released(&mut self, device: DeviceId, handle: TagHandle) {
        if !self.offload.try_release(device, handle) {
            self.handle_released_in_full(device, handle);
        }
    }

    #[inline(never)]
    fn handle_released_in_full(&mut self, device: DeviceId, handle: TagHandle) {
        let checked = self.offload.handle_released(device, handle);
        self.note(device, checked);
    }

    /// The data of a message that the host holds will not come: it is dropped, and whoever would have received it
    /// stays posted; unless it has asked a receive back from a NIC, which then fails (rule 9).
    fn handle_message_lost(
        &mut self,
        device: DeviceId,
        token: MessageToken,
        error: DataError,
    ) -> Checked<()> {
        if self.waiting.mark_dead(device, token, error) {
            self.reconsider();
            return Ok(());
        }
        if let Some(answer) = self.offload.withdraw_answer(device, token) {
            if let Answer::Accept { transfer: Some(transfer), .. } = answer {
                self.end_transfer(transfer, Some(error));
            }
            return Ok(());
        }
        let is_it = |held: &Held| held.device == device && held.token == token;
        if let Some(&id) = self.unexpected_where(is_it).first() {
            let _dropped = self.take_unexpected(id);
            return Ok(());
        }
        let claimed = self
            .claims
            .iter()
            .find(|(_, claimed)| (claimed.message.held.device, claimed.message.held.token) == (device, token))
            .map(|(index, _)| index);
        match claimed {
            Some(claim) => {
                self.claims.remove(claim);
                Ok(())
            }
            None => Err(Box::new(Fault::UnknownMessage { device, message: token })),
        }
    }

    /// The path stays on record: nothing else says through which device the peer comes when it is back.
    fn handle_path_lost(&mut self, _peer: PeerId) {
        self.reconsider();
    }

    /// Everything that the device held ends: entries come back to software, data under way fails, messages that it
    /// held are gone. Its failure answers every outstanding DEL.
    fn handle_device_failed(&mut self, device: DeviceId, error: &DeviceError) {
        self.keep_failure(device, error);
        self.waiting.mark_device_dead(device);
        for id in self.unexpected_where(|held| held.device == device) {
            let _dropped = self.take_unexpected(id);
        }
        self.claims.retain(|_, claimed| claimed.message.held.device != device);
        for id in self.transfers.through(device) {
            self.end_transfer(id, Some(DataError::DeviceFailed));
        }
        for HeldEntry { record, place, transfer } in self.offload.fail_device(device) {
            match (place, transfer) {
                (Place::Recalling, _) => self.taken_back(record),
                (_, Some(transfer)) => self.end_transfer(transfer, Some(DataError::DeviceFailed)),
                (_, None) => {}
            }
        }
        self.reconsider();
    }
}
