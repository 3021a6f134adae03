//! What the engine wants: its commands, and its answers to arrivals.
//!
//! List operations go down as one list as far as nothing else comes between them. They are only ever posted while
//! nobody polls, and only when a slot and a tag are known to be free (TM-CONTRACT 6.2, 15).

use super::super::error::Errno;
use super::super::ledger::LedgerError;
use super::super::tag_matching::{PostError, Tagged, Terms};
use super::held::{Body, Held};
use super::reads::{ReadFor, ReadJob};
use super::side::ReceiveSide;
use super::{VerbsDevice, host_fault};
use crate::ids::{MessageToken, TagHandle};
use crate::seam::{Add, Answer, Buffer, Command, Data, DataTarget, DeviceError, Event};

impl VerbsDevice {
    /// Take commands in order, and say how many. What goes wrong is the device's failure.
    pub(super) fn submit_all(&mut self, commands: &[Command]) -> usize {
        for (taken, command) in commands.iter().enumerate() {
            let done = match command {
                Command::Add { handle, tag, ignore, buffer, unexpected_count, signalled } => {
                    let terms = Terms { unexpected_count: Some(*unexpected_count), signalled: *signalled };
                    let tagged = Tagged { tag: *tag, ignore: *ignore, buffer: *buffer };
                    self.put_add(*handle, &tagged, terms)
                }
                Command::Del { handle, signalled } => {
                    self.put_del(*handle, Terms { unexpected_count: None, signalled: *signalled })
                }
                Command::Sync { unexpected_count, signalled } => {
                    self.put_sync(Terms { unexpected_count: Some(*unexpected_count), signalled: *signalled })
                }
                Command::Receive { .. }
                | Command::Answer { .. }
                | Command::Read { .. }
                | Command::Copy { .. } => {
                    self.post_together().and_then(|()| self.execute(command)).map(|()| true)
                }
            };
            match done {
                Ok(true) => {}
                Ok(false) => {
                    self.post_or_fail();
                    return taken;
                }
                Err(error) => {
                    self.fail(error);
                    return taken;
                }
            }
        }
        self.post_or_fail();
        commands.len()
    }

    #[inline(always)]
    fn post_or_fail(&mut self) {
        if let Err(error) = self.post_together() {
            self.fail(error);
        }
    }

    /// Put an ADD behind what goes down together. False: there is no room for it now.
    #[inline(always)]
    fn put_add(&mut self, handle: TagHandle, tagged: &Tagged, terms: Terms) -> Result<bool, DeviceError> {
        let ReceiveSide::Matching(matching) = &mut self.side else {
            return Err(host_fault("ADD to a device without a list"));
        };
        let Buffer { length, segments, key, .. } = tagged.buffer;
        if length > self.capabilities.buffer_length_max || segments != 1 || (key == 0 && length > 0) {
            return Err(bad_buffer(tagged.buffer));
        }
        if matching.srq.is_full() {
            matching.srq.post().map_err(counted)?;
        }
        matching.srq.put_add(handle, tagged, terms).map_err(not_released)
    }

    /// Post an ADD by itself. False: it cannot be posted, or has no bytes; its command will say why, or post it.
    #[inline(always)]
    pub(super) fn add_now(&mut self, add: &Add<'_>) -> bool {
        let ReceiveSide::Matching(matching) = &mut self.side else { return false };
        let Buffer { length, segments, key, .. } = *add.buffer;
        // One less than 0 is more than any.
        if length.wrapping_sub(1) >= self.capabilities.buffer_length_max || segments != 1 || key == 0 {
            return false;
        }
        match matching.srq.add_now(add) {
            Ok(is_posted) => is_posted,
            Err(error) => self.add_refused(error),
        }
    }

    /// It was counted as posted.
    #[cold]
    #[inline(never)]
    fn add_refused(&mut self, error: PostError) -> bool {
        self.fail(counted(error));
        true
    }

    fn put_del(&mut self, handle: TagHandle, terms: Terms) -> Result<bool, DeviceError> {
        let ReceiveSide::Matching(matching) = &mut self.side else {
            return Err(host_fault("a list operation on a device without a list"));
        };
        if !matching.srq.ledger().may_delete(handle) {
            return Err(host_fault(&format!("DEL of {handle:?}, which is not in use")));
        }
        // Only the driver numbers an entry, so its ADD goes down first.
        if matching.srq.is_full() || matching.srq.is_put(handle) {
            matching.srq.post().map_err(counted)?;
        }
        if !matching.srq.put_del(handle, terms) {
            return Ok(false);
        }
        // An unsignalled DEL is taken for a success at once.
        if !terms.signalled && !matching.srq.ledger().is_in_use(handle) {
            self.released(handle);
        }
        Ok(true)
    }

    fn put_sync(&mut self, terms: Terms) -> Result<bool, DeviceError> {
        let ReceiveSide::Matching(matching) = &mut self.side else {
            return Err(host_fault("a list operation on a device without a list"));
        };
        if matching.srq.is_full() {
            matching.srq.post().map_err(counted)?;
        }
        Ok(matching.srq.put_sync(terms))
    }

    /// Post what was put together.
    #[inline(always)]
    fn post_together(&mut self) -> Result<(), DeviceError> {
        match &mut self.side {
            ReceiveSide::Matching(matching) => matching.srq.post().map_err(counted),
            ReceiveSide::Plain(_) | ReceiveSide::Gone => Ok(()),
        }
    }

    fn execute(&mut self, command: &Command) -> Result<(), DeviceError> {
        match *command {
            Command::Receive { buffers } => self.post_receives(buffers),
            Command::Answer { message, answer } => {
                if matches!(answer, Answer::Hold) {
                    return Err(host_fault(&format!("{answer:?} for {message:?} as a command")));
                }
                self.answer(message, answer, false).map_err(|text| host_fault(&text))
            }
            Command::Read { transfer, peer, tag, app_ctx, remote, buffer } => {
                let target = ReadFor::Transfer(transfer);
                self.start_read(ReadJob::new(target, peer, (tag, app_ctx), remote, buffer));
                Ok(())
            }
            Command::Copy { transfer, from, to } => {
                self.regions.copy(&from, &to).map_err(|text| host_fault(&text))?;
                let target = DataTarget::Transfer(transfer);
                let data = Data { target, length: from.length, immediate: None, error: None };
                self.pending.push_back(Event::Data(data));
                Ok(())
            }
            Command::Add { .. } | Command::Del { .. } | Command::Sync { .. } => Ok(()),
        }
    }

    fn post_receives(&mut self, buffers: u32) -> Result<(), DeviceError> {
        let limit = self.capabilities.unexpected_buffers;
        if self.buffers.posted.saturating_add(buffers) > limit {
            let posted = self.buffers.posted;
            let text = format!("{buffers} receives beside the {posted} posted: {limit} may be");
            return Err(host_fault(&text));
        }
        self.buffers.take(buffers as usize, &mut self.scratch.indexes);
        let taken = u32::try_from(self.scratch.indexes.len()).unwrap_or(u32::MAX);
        let ReceiveSide::Matching(matching) = &mut self.side else {
            return Err(host_fault("receives for a device that keeps messages itself"));
        };
        let failed = |Errno(errno)| DeviceError::System { call: "ibv_post_srq_recv", errno };
        matching.srq.post_receives(&self.scratch.indexes).map_err(failed)?;
        self.buffers.posted += taken;
        // Kept messages leave as many free as may be posted, so this cannot be.
        if taken < buffers { Err(host_fault("more receives than there are buffers")) } else { Ok(()) }
    }

    /// What becomes of a message. `is_now`: the answer to its arrival, on the spot.
    pub(super) fn answer(&mut self, token: MessageToken, answer: Answer, is_now: bool) -> Result<(), String> {
        let unknown = || format!("{answer:?} for {token:?}, which does not wait for it");
        if self.held.find(token).is_none() && self.answer_lost(token, answer) {
            return Ok(());
        }
        match answer {
            Answer::Hold => {
                self.keep(token);
                Ok(())
            }
            Answer::Accept { buffer, transfer } => {
                let held = self.held.find(token).ok_or_else(unknown)?;
                let in_hand = !matches!(held.body, Body::Remote(_));
                if transfer.is_none() && !(in_hand && is_now) {
                    return Err(unknown());
                }
                let held = self.held.take(token).ok_or_else(unknown)?;
                self.accept(held, buffer, transfer)
            }
            Answer::Discard => {
                let Held { source, header, body } = self.held.take(token).ok_or_else(unknown)?;
                match body {
                    Body::Slab(index) => self.buffers.give_back(index),
                    Body::Copied(_) => {}
                    Body::Remote(remote) => self.send_fin(source, header.tag, header.app_ctx, &remote),
                }
                Ok(())
            }
        }
    }

    /// Place a held message whose payload is here, and forget it. False: it is not, or the buffer is not memory that
    /// may be written; then nothing has changed.
    pub(super) fn place_if_here(&mut self, token: MessageToken, buffer: Buffer) -> bool {
        let is_here = self.held.find(token).is_some_and(|held| !matches!(held.body, Body::Remote(_)));
        if !is_here || !self.regions.may_place(&buffer) {
            return false;
        }
        let Some(held) = self.held.take(token) else { return false };
        self.accept(held, buffer, None).is_ok()
    }

    /// The message's path was lost, and that is not told yet: then its answer is told of, if that wants to be.
    fn answer_lost(&mut self, token: MessageToken, answer: Answer) -> bool {
        let lost = DataTarget::Message(token);
        let is_it = |event: &Event| matches!(event, Event::Data(data) if data.target == lost);
        let Some(place) = self.pending.iter().position(is_it) else { return false };
        match (answer, self.pending.get_mut(place)) {
            (Answer::Accept { transfer: Some(transfer), .. }, Some(Event::Data(data))) => {
                data.target = DataTarget::Transfer(transfer);
            }
            (Answer::Hold, _) => {}
            (Answer::Accept { .. } | Answer::Discard, _) => drop(self.pending.remove(place)),
        }
        true
    }

    fn accept(
        &mut self,
        held: Held,
        buffer: Buffer,
        transfer: Option<crate::ids::TransferId>,
    ) -> Result<(), String> {
        let Held { source, header, body } = held;
        match body {
            Body::Slab(index) => {
                let length = u32::try_from(header.length).unwrap_or(u32::MAX);
                // SAFETY: the buffer is not posted.
                let bytes = unsafe { self.side.bytes(index, length.saturating_add(TMH)) };
                let placed = self.regions.place(&buffer, bytes.get(TMH as usize..).unwrap_or_default());
                self.buffers.give_back(index);
                placed?;
            }
            Body::Copied(bytes) => self.regions.place(&buffer, &bytes)?,
            Body::Remote(remote) => {
                let Some(transfer) = transfer else { return Ok(()) };
                let mut job = ReadJob::new(
                    ReadFor::Transfer(transfer),
                    source,
                    (header.tag, header.app_ctx),
                    remote,
                    buffer,
                );
                job.immediate = header.immediate;
                self.start_read(job);
                return Ok(());
            }
        }
        if let Some(transfer) = transfer {
            let (target, immediate) = (DataTarget::Transfer(transfer), header.immediate);
            let data = Data { target, length: header.length, immediate, error: None };
            self.pending.push_back(Event::Data(data));
        }
        Ok(())
    }

    /// A message stays. Its buffer is needed sooner or later, so beyond some it is copied.
    fn keep(&mut self, token: MessageToken) {
        if self.buffers.may_keep() {
            return;
        }
        let Some(held) = self.held.find(token) else { return };
        let Body::Slab(index) = held.body else { return };
        let length = u32::try_from(held.header.length).unwrap_or(u32::MAX).saturating_add(TMH);
        // SAFETY: the buffer is not posted.
        let bytes = unsafe { self.side.bytes(index, length) };
        held.body = Body::Copied(bytes.get(TMH as usize..).unwrap_or_default().into());
        self.buffers.give_back(index);
    }
}

/// Slots and tags were counted, so that the driver has nothing to refuse.
#[cold]
fn counted(error: PostError) -> DeviceError {
    DeviceError::Contract(format!("the driver, which was counted: {error}"))
}

#[cold]
fn not_released(error: LedgerError) -> DeviceError {
    host_fault(&error.to_string())
}

#[cold]
fn bad_buffer(buffer: Buffer) -> DeviceError {
    let Buffer { length, segments, key, .. } = buffer;
    host_fault(&format!("ADD of {length} bytes in {segments} segments with key {key:#x}"))
}

/// Bytes before an eager payload.
const TMH: u32 = 16;
