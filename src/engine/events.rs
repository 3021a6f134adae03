//! What devices say: each event is checked, moves things on, and may end receives.

use crate::ids::{DeviceId, MessageToken, PeerId, Source, TransferId};
use crate::matching::{Envelope, Pattern};
use crate::offload::{Fault, Held as HeldEntry, Outcome, Place};
use crate::seam::{
    Answer, Buffer, Command, Data, DataError, DataTarget, DeviceError, Event, EventSink, Match, MatchStage,
    OperationDone,
};

use super::completion::{Completion, End, Received};
use super::transfer::{Held, Transfer};
use super::{Engine, Slot};

impl EventSink for Engine {
    #[inline]
    fn handle_event(&mut self, device: DeviceId, event: &Event) -> Answer {
        if let Event::Arrived(arrival) = event {
            return self.handle_arrived(device, arrival);
        }
        self.handle_rest(device, event);
        Answer::Hold
    }
}

impl Engine {
    #[inline(never)]
    fn handle_rest(&mut self, device: DeviceId, event: &Event) {
        if let Err(fault) = self.handle_other(device, event) {
            self.fault(device, fault);
        }
    }

    #[inline]
    fn handle_other(&mut self, device: DeviceId, event: &Event) -> Result<(), Fault> {
        if device.0 as usize >= self.offload.device_count() {
            return Err(Fault::UnknownDevice { device });
        }
        match event {
            Event::Arrived(_) => Ok(()),
            Event::Matched(matched) => self.handle_matched(device, matched),
            Event::Data(data) => self.handle_data(device, data),
            Event::Operation(done) => self.handle_operation(device, done),
            Event::Untagged { counted, .. } => self.offload.handle_untagged(device, *counted),
            Event::Released(handle) => self.offload.handle_released(device, *handle),
            Event::PathLost { peer } => {
                self.handle_path_lost(*peer);
                Ok(())
            }
            Event::DeviceFailed(error) => {
                self.handle_device_failed(device, error);
                Ok(())
            }
        }
    }

    fn handle_matched(&mut self, device: DeviceId, matched: &Match) -> Result<(), Fault> {
        let index = self.offload.handle_matched(device, matched)?;
        let Some(record) = self.offload.record(index) else { return Ok(()) };
        let (id, bounce, wanted) = (record.receive, record.bounce, record.wanted);
        let Some((pattern, slot)) = self.matcher.take_posted(id) else { return Ok(()) };
        let source = self.renamed.now(matched.source);
        let message = Received {
            source,
            tag: matched.tag,
            length: matched.length,
            placed: matched.length.min(slot.buffer.length),
            address: slot.buffer.address,
            app_ctx: matched.app_ctx,
            immediate: matched.immediate,
            matched_by: Some(device),
        };
        if matched.stage == MatchStage::Complete && bounce.is_none() {
            self.completions.push(Completion { context: slot.context, end: End::Received(message) });
        } else {
            self.match_in_steps(device, matched, index, &slot, message, bounce);
        }
        if wanted {
            self.reconsider();
        }
        self.check_fit(device, matched, source, &pattern)
    }

    /// A match whose payload is not in the user's buffer yet.
    fn match_in_steps(
        &mut self,
        device: DeviceId,
        matched: &Match,
        index: usize,
        slot: &Slot,
        message: Received,
        bounce: Option<Buffer>,
    ) {
        let (context, buffer) = (slot.context, slot.buffer);
        let mut transfer = Transfer { context, message, buffer, device, multi: None, by_entry: false };
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

    /// A device that matches what does not fit broke its contract; or the user's tag layout did not hold.
    #[inline]
    fn check_fit(
        &self,
        device: DeviceId,
        matched: &Match,
        source: PeerId,
        pattern: &Pattern,
    ) -> Result<(), Fault> {
        let envelope = Envelope { tag: matched.tag, source };
        let group = match pattern.source {
            Source::Group(_) => self.matcher.group_of(source),
            Source::Any | Source::Peer(_) => None,
        };
        if pattern.fits(&envelope, group) {
            return Ok(());
        }
        let (handle, tag, source_peer) = (matched.handle, matched.tag.0, matched.source.0);
        Err(Fault::WrongMatch { device, handle, tag, source_peer })
    }

    /// The payload lies in a bounce buffer: it comes up by a copy.
    fn copy(&mut self, transfer: Transfer, bounce: Buffer) {
        let device = transfer.device;
        let (length, to) = (transfer.message.length.min(bounce.length), transfer.buffer);
        let transfer = self.transfers.insert(Transfer { by_entry: false, ..transfer });
        let from = Buffer { length, ..bounce };
        self.offload.push(device, Command::Copy { transfer, from, to });
    }

    fn handle_data(&mut self, device: DeviceId, data: &Data) -> Result<(), Fault> {
        match data.target {
            DataTarget::Entry(handle) => {
                let bounce = self.offload.record(handle.index as usize).and_then(|record| record.bounce);
                let id = self.offload.handle_data(device, handle)?;
                let Some(mut transfer) = self.transfers.take(id) else {
                    return Err(Fault::UnknownTransfer { device, transfer: id });
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
            DataTarget::Transfer(id) => {
                let is_here = |transfer: &&Transfer| transfer.device == device && !transfer.by_entry;
                if self.transfers.find(id).filter(is_here).is_none() {
                    return Err(Fault::UnknownTransfer { device, transfer: id });
                }
                self.end_transfer(id, data.error);
                Ok(())
            }
            DataTarget::Message(token) => match data.error {
                Some(error) => self.handle_message_lost(device, token, error),
                // The device has the rest of a message that the host has not accepted yet. Nobody waits for it.
                None => Ok(()),
            },
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

    fn handle_operation(&mut self, device: DeviceId, done: &OperationDone) -> Result<(), Fault> {
        match self.offload.handle_operation(device, done)? {
            Outcome::Nothing => {}
            Outcome::TakenBack(index) => self.taken_back(index),
            Outcome::TooLate => self.reconsider(),
        }
        Ok(())
    }

    /// The data of a message that the host holds will not come: it is dropped, and whoever would have received it
    /// stays posted; unless it has asked a receive back from a NIC, which then fails (rule 9).
    fn handle_message_lost(
        &mut self,
        device: DeviceId,
        token: MessageToken,
        error: DataError,
    ) -> Result<(), Fault> {
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
        if let Some(&id) = self.matcher.unexpected_where(is_it).first() {
            let _dropped = self.matcher.take_unexpected(id);
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
            None => Err(Fault::UnknownMessage { device, message: token }),
        }
    }

    /// The path stays on record: nothing else says through which device the peer comes when it is back.
    fn handle_path_lost(&mut self, _peer: PeerId) {
        self.reconsider();
    }

    /// Everything that the device held ends: entries come back to software, data under way fails, messages that it
    /// held are gone. Its failure answers every outstanding DEL.
    fn handle_device_failed(&mut self, device: DeviceId, error: &DeviceError) {
        self.faults.push_back(Fault::Failed { device, error: error.clone() });
        self.waiting.mark_device_dead(device);
        for id in self.matcher.unexpected_where(|held| held.device == device) {
            let _dropped = self.matcher.take_unexpected(id);
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
