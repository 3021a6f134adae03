//! What the engine wants: its commands, and its answers to arrivals.
//!
//! List operations go down as one list as far as nothing else comes between them. They are only ever posted while
//! nobody polls, and only when a slot and a tag are known to be free (TM-CONTRACT 6.2, 15).

use super::super::error::Errno;
use super::super::tag_matching::{ListOperation, ListRequest};
use super::held::{Body, Held};
use super::sending::{ReadFor, ReadJob};
use super::side::ReceiveSide;
use super::{VerbsDevice, host_fault};
use crate::ids::{MessageToken, TagHandle};
use crate::seam::{Answer, Buffer, Command, Data, DataTarget, DeviceError, Event};

impl VerbsDevice {
    /// Take commands in order, and say how many. What goes wrong is the device's failure.
    pub(super) fn submit_all(&mut self, commands: &[Command]) -> usize {
        for (taken, command) in commands.iter().enumerate() {
            let is_list = matches!(command, Command::Add { .. } | Command::Del { .. } | Command::Sync { .. });
            let done = if is_list {
                self.put_together(command)
            } else {
                self.post_together().and_then(|()| self.execute(command)).map(|()| true)
            };
            match done {
                Ok(true) => {}
                Ok(false) => {
                    self.post_or_fail();
                    return taken;
                }
                Err(error) => {
                    self.scratch.requests.clear();
                    self.fail(error);
                    return taken;
                }
            }
        }
        self.post_or_fail();
        commands.len()
    }

    fn post_or_fail(&mut self) {
        if let Err(error) = self.post_together() {
            self.fail(error);
        }
    }

    /// Put a list operation behind those that go down together. False: there is no room for it now.
    fn put_together(&mut self, command: &Command) -> Result<bool, DeviceError> {
        let (operation, count, signalled, name) = match *command {
            Command::Add { handle, tag, ignore, buffer, unexpected_count, signalled } => {
                self.check_add(handle, &buffer)?;
                let operation = ListOperation::Add { tag, ignore, buffer };
                (operation, Some(unexpected_count), signalled, Some(handle))
            }
            Command::Del { handle, signalled } => {
                if self.scratch.names.contains(&Some(handle)) {
                    // Its ADD goes down first.
                    self.post_together()?;
                }
                let entry = self.matching().and_then(|matching| matching.entry_of(handle));
                let in_use = |entry: &u32| {
                    let matching = self.tag_matching();
                    matching.is_some_and(|srq| srq.ledger().may_delete(*entry))
                };
                let Some(entry) = entry.filter(in_use) else {
                    return Err(host_fault(&format!("DEL of {handle:?}, which is not in use")));
                };
                (ListOperation::Del { entry }, None, signalled, None)
            }
            Command::Sync { unexpected_count, signalled } => {
                (ListOperation::Sync, Some(unexpected_count), signalled, None)
            }
            Command::Receive { .. }
            | Command::Answer { .. }
            | Command::Read { .. }
            | Command::Copy { .. } => {
                return Ok(false);
            }
        };
        let (adds, waiting) = (self.scratch.names.iter().flatten().count(), self.scratch.requests.len());
        let Some(matching) = self.matching() else {
            return Err(host_fault("a list operation on a device without a list"));
        };
        let ledger = matching.srq.ledger();
        let no_slot = ledger.slots_free() as usize <= waiting;
        let no_tag = name.is_some() && ledger.tags_free() <= adds;
        if no_slot || no_tag {
            return Ok(false);
        }
        let unexpected_count = count.map(u32::from);
        self.scratch.requests.push(ListRequest { operation, unexpected_count, signalled });
        self.scratch.names.push(name);
        Ok(true)
    }

    fn check_add(&self, handle: TagHandle, buffer: &Buffer) -> Result<(), DeviceError> {
        let ReceiveSide::Matching(matching) = &self.side else {
            return Err(host_fault("ADD to a device without a list"));
        };
        let place = matching.handles.get(handle.index as usize).copied().flatten();
        if place.is_some() || self.scratch.names.contains(&Some(handle)) {
            return Err(host_fault(&format!("ADD of {handle:?}, whose place was not released")));
        }
        let Buffer { length, segments, key, .. } = *buffer;
        if length > self.capabilities.buffer_length_max || segments != 1 || (key == 0 && length > 0) {
            let text = format!("ADD of {length} bytes in {segments} segments with key {key:#x}");
            return Err(host_fault(&text));
        }
        Ok(())
    }

    /// Post what was put together.
    fn post_together(&mut self) -> Result<(), DeviceError> {
        if self.scratch.requests.is_empty() {
            return Ok(());
        }
        let requests = std::mem::take(&mut self.scratch.requests);
        let names = std::mem::take(&mut self.scratch.names);
        let mut entries = std::mem::take(&mut self.scratch.entries);
        let posted = match self.matching() {
            Some(matching) => matching.srq.post(&requests, &mut entries),
            None => Ok(()),
        };
        for ((request, name), entry) in requests.iter().zip(&names).zip(&entries) {
            match (request.operation, name) {
                (ListOperation::Add { buffer, .. }, Some(handle)) => {
                    if let Some(matching) = self.matching() {
                        matching.name(*handle, *entry, buffer);
                    }
                }
                // An unsignalled DEL is taken for a success at once.
                (ListOperation::Del { .. }, _) if !request.signalled && self.is_free(*entry) => {
                    self.released(*entry);
                }
                _ => {}
            }
        }
        (self.scratch.requests, self.scratch.names, self.scratch.entries) = (requests, names, entries);
        self.scratch.requests.clear();
        self.scratch.names.clear();
        posted.map_err(|error| DeviceError::Contract(format!("the driver, which was counted: {error}")))
    }

    fn is_free(&self, entry: u32) -> bool {
        self.tag_matching().is_some_and(|srq| !srq.ledger().is_in_use(entry))
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

/// Bytes before an eager payload.
const TMH: u32 = 16;
