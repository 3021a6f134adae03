//! The host side of a soft device: commands from the engine to driver and device, completions to events.
//!
//! This is what a verbs device does with the real driver. Not here: what the device does by itself.

use super::completion::{Completion, Cqe, Opcode, status};
use super::device::{Named, Output, PendingRead, ReadTarget, SoftDevice, Stage};
use super::held::{Fate, Held, Payload, Telling};
use super::memory::Memory;
use super::message::{Observation, SoftMessage};
use super::request::{AddRequest, Errno, Refusal, Request, RequestOperation};
use super::steps::no_memory;
use crate::ids::{MessageToken, PeerId, TagHandle};
use crate::seam::{
    Answer, Arrival, Buffer, Command, Data, DataError, DataTarget, DeviceError, Event, Match, MatchStage,
    Operation, OperationDone,
};

/// The name of messages that the device does not keep: those without a tag.
pub(crate) const UNTAGGED: MessageToken = MessageToken(u64::MAX);

impl<M: Memory> SoftDevice<M> {
    /// Take one command. False: there is no room for it now.
    ///
    /// # Errors
    /// The host broke the contract: how.
    pub(crate) fn submit_one(&mut self, command: &Command) -> Result<bool, String> {
        match *command {
            Command::Add { handle, tag, ignore, buffer, unexpected_count, signalled } => {
                let add = AddRequest {
                    receive_wr_id: handle.to_bits(),
                    buffer,
                    segments: buffer.segments,
                    tag: tag.0,
                    mask: ignore.mask(),
                };
                self.submit_add(handle, add, unexpected_count, signalled)
            }
            Command::Del { handle, signalled } => self.submit_del(handle, signalled),
            Command::Sync { unexpected_count, signalled } => {
                let count = Some(u32::from(unexpected_count));
                let operation = RequestOperation::Sync;
                let request = Request { wr_id: 0, operation, signalled, unexpected_count: count, handle: 0 };
                Ok(self.post(request)?.is_some())
            }
            Command::Receive { buffers } => self.submit_receives(buffers),
            Command::Answer { message, answer } => {
                let says_when = !matches!(answer, Answer::Hold | Answer::Accept { transfer: None, .. });
                if !says_when || !self.answer(message, answer) {
                    return Err(format!("{answer:?} for {message:?}, which does not wait for it"));
                }
                Ok(true)
            }
            Command::Read { transfer, peer, tag, app_ctx, remote, buffer } => {
                if self.peers.is_lost(peer) {
                    self.write(super::failure::lost(DataTarget::Transfer(transfer), remote.length));
                } else {
                    let target = ReadTarget::Transfer(transfer);
                    self.reads.push(PendingRead {
                        peer,
                        tag,
                        app_ctx,
                        remote,
                        buffer,
                        immediate: None,
                        broken: false,
                        target,
                    });
                }
                Ok(true)
            }
            Command::Copy { transfer, from, to } => {
                if !self.memory.copy(from, to, from.length.min(to.length)) {
                    return Err(no_memory(to).to_string());
                }
                let target = DataTarget::Transfer(transfer);
                let data = Data { target, length: from.length, immediate: None, error: None };
                self.write(Output::Told(Event::Data(data)));
                Ok(true)
            }
        }
    }

    fn submit_add(
        &mut self,
        handle: TagHandle,
        add: AddRequest,
        count: u16,
        signalled: bool,
    ) -> Result<bool, String> {
        let Some(matching) = &self.matching else { return Err("ADD to a device without a list".to_owned()) };
        let Buffer { length, segments, .. } = add.buffer;
        if matching.handles.contains_key(&handle) {
            return Err(format!("ADD of {handle:?}, which was not released"));
        }
        if length > self.config.buffer_length_max || segments > 1 {
            return Err(format!("ADD of {length} bytes in {segments} segments"));
        }
        let operation = RequestOperation::Add(add);
        let wr_id = handle.to_bits();
        let count = Some(u32::from(count));
        let request = Request { wr_id, operation, signalled, unexpected_count: count, handle: 0 };
        let Some(posted) = self.post(request)? else { return Ok(false) };
        if let (Some(matching), Ok(index)) = (&mut self.matching, u16::try_from(posted.handle)) {
            matching.handles.insert(handle, index);
            if let Some(name) = matching.names.get_mut(usize::from(index)) {
                *name = Some(Named { handle, stage: Stage::Posted });
            }
        }
        Ok(true)
    }

    fn submit_del(&mut self, handle: TagHandle, signalled: bool) -> Result<bool, String> {
        let index = self.matching.as_ref().and_then(|matching| matching.handles.get(&handle));
        let Some(&index) = index else { return Err(format!("DEL of {handle:?}, which is not in use")) };
        let request = Request {
            wr_id: handle.to_bits(),
            operation: RequestOperation::Del,
            signalled,
            unexpected_count: None,
            handle: u32::from(index),
        };
        let posted = self.post(request)?.is_some();
        // An unsignalled DEL can free the entry at once; the engine hears of it behind what was completed before.
        while let Some(released) = self.take_released() {
            self.complete(Output::Told(released));
        }
        Ok(posted)
    }

    fn submit_receives(&mut self, buffers: u32) -> Result<bool, String> {
        let Some(matching) = &mut self.matching else {
            return Err("receives for a device that keeps messages itself".to_owned());
        };
        let receives = &mut matching.driver.receives;
        for _ in 0..buffers {
            if !receives.post(0) {
                return Err(format!("more receives than the {} slots", receives.slots()));
            }
        }
        Ok(true)
    }

    /// `None`: no slot or no tag.
    fn post(&mut self, request: Request) -> Result<Option<Request>, String> {
        let Some(matching) = &mut self.matching else {
            return Err("a list operation on a device without a list".to_owned());
        };
        let mut requests = [request];
        match matching.driver.post_srq_ops(&mut requests) {
            Ok(()) => Ok(requests.first().copied()),
            Err(error) if error.refusal == Refusal::Errno(Errno::NoMemory) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    /// What becomes of a message. False: nobody waits for that answer.
    pub(crate) fn answer(&mut self, token: MessageToken, answer: Answer) -> bool {
        let Some(held) = self.held.find(token).filter(|held| held.fate == Fate::Undecided) else {
            return false;
        };
        let source = held.source;
        match answer {
            Answer::Hold => return true,
            Answer::Accept { transfer: None, .. } if held.payload != Payload::Here => return false,
            Answer::Accept { buffer, transfer } => {
                held.fate = Fate::Accepted { buffer, transfer };
                match held.payload {
                    Payload::Here => {
                        held.payload = Payload::Gone;
                        let message = held.message.clone();
                        if transfer.is_some() {
                            held.telling = Telling::Queued;
                        }
                        self.place(buffer, &message);
                        if transfer.is_some() {
                            self.write(Output::Data(token));
                        }
                    }
                    Payload::Remote if self.peers.is_lost(source) => self.lose_held(token),
                    Payload::Remote => self.begin_read(token, buffer),
                    Payload::Coming | Payload::Reading | Payload::Gone | Payload::Lost(_) => {}
                }
            }
            Answer::Discard => {
                held.fate = Fate::Discarded;
                let app_ctx = held.message.app_ctx;
                if held.payload == Payload::Remote && !self.peers.is_lost(source) {
                    self.note(Observation::Fin { peer: source, app_ctx });
                }
            }
        }
        self.held.forget_if_done(token);
        true
    }

    /// Write what is held in full, at once. False: it is not.
    pub(crate) fn write_held(&mut self, token: MessageToken, buffer: Buffer) -> bool {
        let is_here = |held: &&mut Held| held.payload == Payload::Here && held.telling == Telling::Nothing;
        self.held.find(token).filter(is_here).is_some()
            && self.answer(token, Answer::Accept { buffer, transfer: None })
    }

    fn begin_read(&mut self, token: MessageToken, buffer: Buffer) {
        let Some(held) = self.held.find(token) else { return };
        let super::message::Kind::Rendezvous { remote, broken } = held.message.kind else { return };
        held.payload = Payload::Reading;
        held.telling = Telling::Data;
        let (peer, tag) = (held.source, held.message.tag);
        let (app_ctx, immediate) = (held.message.app_ctx, held.message.immediate);
        let target = ReadTarget::Message(token);
        self.reads.push(PendingRead { peer, tag, app_ctx, remote, buffer, immediate, broken, target });
    }

    /// All packets of a held message have come, or its read is done.
    pub(crate) fn host_data_arrived(&mut self, token: MessageToken) {
        let Some(held) = self.held.find(token) else { return };
        let was_coming = held.payload == Payload::Coming;
        let message = held.message.clone();
        match held.fate {
            Fate::Undecided => (held.payload, held.telling) = (Payload::Here, Telling::Nothing),
            Fate::Discarded => {
                (held.payload, held.telling) = (Payload::Gone, Telling::Nothing);
                self.held.forget_if_done(token);
            }
            Fate::Accepted { buffer, .. } => {
                (held.payload, held.telling) = (Payload::Gone, Telling::Queued);
                if was_coming {
                    self.place(buffer, &message);
                }
                self.write(Output::Data(token));
            }
        }
    }

    pub(crate) fn next_event(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some(event);
            }
            match self.outputs.pop_front()? {
                Output::Completion { cqe, message, broken } => self.poll_completion(&cqe, message, broken),
                Output::Arrived(token) => self.tell_arrival(token),
                Output::Data(token) => self.tell_data(token),
                Output::Told(event) => self.pending.push_back(event),
                Output::Failed => {
                    self.failure_told = true;
                    self.pending.extend(self.failure.clone().map(Event::DeviceFailed));
                }
            }
        }
    }

    fn poll_completion(&mut self, cqe: &Cqe, message: Option<SoftMessage>, broken: bool) {
        self.completions_used = self.completions_used.saturating_sub(1);
        let Some(matching) = &mut self.matching else { return };
        let completion = match matching.driver.poll(cqe) {
            Ok(completion) => completion,
            Err(error) => return self.fail_at_once(DeviceError::Contract(error.to_string())),
        };
        self.tell_completion(cqe.entry, &completion, message, broken);
        while let Some(released) = self.take_released() {
            self.tell_release(released);
        }
    }

    /// With the match, if that is complete and was told just now.
    fn tell_release(&mut self, released: Event) {
        match (self.pending.back_mut(), &released) {
            (Some(Event::Matched(matched)), Event::Released(handle))
                if matched.handle == *handle && matched.stage == MatchStage::Complete =>
            {
                matched.released = true;
            }
            _ => self.pending.push_back(released),
        }
    }

    fn tell_completion(
        &mut self,
        entry: u16,
        completion: &Completion,
        message: Option<SoftMessage>,
        broken: bool,
    ) {
        let handle = TagHandle::from_bits(completion.wr_id);
        match completion.opcode {
            Opcode::Add => self.tell_operation(Operation::Add(handle), completion),
            Opcode::Del => self.tell_operation(Operation::Del(handle), completion),
            Opcode::Sync => self.tell_operation(Operation::Sync, completion),
            Opcode::NoTag => self.tell_untagged(completion),
            Opcode::Receive | Opcode::TagReceive => match completion.status {
                status::SUCCESS | status::TM_RENDEZVOUS_INCOMPLETE => {
                    let flags = completion.flags;
                    if flags.matched || flags.data_valid {
                        self.tell_match(entry, handle, completion, message.as_ref());
                    } else if let Some(message) = message.filter(SoftMessage::is_tagged) {
                        self.keep_unexpected(completion.source, message, broken);
                    } else {
                        // A8, counted: it has no header that could be told.
                        self.tell_untagged(completion);
                    }
                }
                status => self.fail_at_once(DeviceError::Completion {
                    status,
                    vendor_error: completion.vendor_error,
                    wr_id: completion.wr_id,
                }),
            },
        }
    }

    fn tell_operation(&mut self, operation: Operation, completion: &Completion) {
        self.pending.push_back(Event::Operation(OperationDone {
            operation,
            success: completion.status == status::SUCCESS,
            phase: u16::try_from(completion.tm_info.app_ctx >> 16).unwrap_or_default(),
            sync_requested: completion.flags.sync_requested,
        }));
    }

    fn tell_untagged(&mut self, completion: &Completion) {
        let (source, length) = (completion.source, completion.byte_len);
        let counted = completion.opcode != Opcode::NoTag;
        self.pending.push_back(Event::Untagged { source, message: UNTAGGED, length, counted });
    }

    /// Flags decide, not the opcode (TM-CONTRACT 15.6).
    fn tell_match(
        &mut self,
        entry: u16,
        handle: TagHandle,
        completion: &Completion,
        message: Option<&SoftMessage>,
    ) {
        let told = self.matching.as_ref().and_then(|matching| matching.name(entry));
        let told = told.map_or(Stage::Posted, |named| named.stage);
        let incomplete = completion.status == status::TM_RENDEZVOUS_INCOMPLETE;
        let flags = completion.flags;
        let stage = match told {
            // The rest of a rendezvous that was handed back: only the release is news.
            Stage::HandedBack => return,
            Stage::DataFollows => {
                let error = incomplete.then_some(DataError::PathLost);
                return self.pending.push_back(Event::Data(Data {
                    target: DataTarget::Entry(handle),
                    length: completion.byte_len,
                    immediate: completion.immediate,
                    error,
                }));
            }
            Stage::Posted if incomplete => match message.and_then(SoftMessage::remote) {
                Some(remote) => MatchStage::SoftwareRendezvous(remote),
                None => {
                    let text = "a rendezvous was handed back without its header".to_owned();
                    return self.fail_at_once(DeviceError::Contract(text));
                }
            },
            Stage::Posted if flags.data_valid => MatchStage::Complete,
            Stage::Posted => MatchStage::DataFollows,
        };
        let (length, next) = match stage {
            MatchStage::SoftwareRendezvous(remote) => (remote.length, Stage::HandedBack),
            MatchStage::DataFollows => (completion.byte_len, Stage::DataFollows),
            MatchStage::Complete => (completion.byte_len, Stage::Posted),
        };
        if let Some(matching) = &mut self.matching {
            matching.set_stage(entry, next);
        }
        self.pending.push_back(Event::Matched(Match {
            handle,
            source: completion.source,
            tag: crate::ids::Tag(completion.tm_info.tag),
            app_ctx: completion.tm_info.app_ctx,
            length,
            immediate: completion.immediate,
            stage,
            released: false,
        }));
    }

    fn keep_unexpected(&mut self, source: PeerId, message: SoftMessage, broken: bool) {
        // Accepted before its path was lost, and told after.
        let broken = broken || (message.remote().is_some() && self.peers.is_lost(source));
        let (payload, telling) = match message.remote() {
            _ if broken => (Payload::Lost(DataError::PathLost), Telling::Queued),
            Some(_) => (Payload::Remote, Telling::Nothing),
            None => (Payload::Here, Telling::Nothing),
        };
        let fate = Fate::Undecided;
        let token = self.held.insert(Held { source, message, counted: true, payload, fate, telling });
        self.tell_arrival(token);
        if broken {
            self.outputs.push_front(Output::Data(token));
        }
    }

    fn tell_arrival(&mut self, message: MessageToken) {
        let Some(held) = self.held.find(message) else { return };
        let in_hand = held.payload == Payload::Here && held.telling == Telling::Nothing;
        self.pending.push_back(Event::Arrived(Arrival {
            message,
            source: held.source,
            header: held.message.header(),
            in_hand,
            counted: held.counted,
        }));
    }

    fn tell_data(&mut self, token: MessageToken) {
        let Some(held) = self.held.find(token) else { return };
        held.telling = Telling::Nothing;
        let error = match held.payload {
            Payload::Lost(error) => Some(error),
            Payload::Here | Payload::Coming | Payload::Remote | Payload::Reading | Payload::Gone => None,
        };
        let target = match held.fate {
            Fate::Accepted { transfer, .. } => transfer.map(DataTarget::Transfer),
            // The host is told only of what it will not get, and forgets it.
            Fate::Undecided => error.map(|_| DataTarget::Message(token)),
            Fate::Discarded => None,
        };
        if held.fate == Fate::Undecided && error.is_some() {
            held.fate = Fate::Discarded;
        }
        let (length, immediate) = (held.message.payload_length(), held.message.immediate);
        self.pending.extend(target.map(|target| Event::Data(Data { target, length, immediate, error })));
        self.held.forget_if_done(token);
    }

    fn take_released(&mut self) -> Option<Event> {
        let matching = self.matching.as_mut()?;
        let released = matching.driver.take_released()?;
        let handle = TagHandle::from_bits(released.receive_wr_id);
        matching.handles.remove(&handle);
        Some(Event::Released(handle))
    }
}
