//! Payloads of rendezvous that software fetches: READs, and what is said and told when they are done.
//!
//! Not here: READs that a device makes by itself.

use super::super::error::VerbsError;
use super::super::memory::MemoryRegion;
use super::super::queue_pair::{SendKind, SendPayload};
use super::super::sys::types::ibv_sge;
use super::VerbsDevice;
use super::peers::State;
use super::sending::{Deferred, OutgoingKind, Own};
use super::side::Stage;
use crate::ids::{PeerId, Tag, TransferId};
use crate::seam::{Buffer, Data, DataError, DataTarget, Event, Remote};

/// The payload of a rendezvous that software fetches.
#[derive(Debug)]
pub(super) struct ReadJob {
    pub(super) target: ReadFor,
    pub(super) peer: PeerId,
    /// What tells the sender that it is done.
    done: Own,
    pub(super) remote: Remote,
    buffer: Buffer,
    pub(super) immediate: Option<u32>,
    /// Where it goes, as far as it is wanted; those that were filled are gone.
    stretches: Vec<Stretch>,
    /// Bytes that will be read, and of these those that were asked for.
    length: u64,
    asked: u64,
    /// Registrations for this read alone.
    regions: Vec<MemoryRegion>,
}

/// A stretch of the buffer that is still to be filled.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    address: u64,
    length: u64,
    key: u32,
}

/// Who waits for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ReadFor {
    Transfer(TransferId),
    /// An entry of the list, whose rendezvous was handed back in two steps.
    Entry(u32),
}

impl ReadJob {
    pub(super) fn new(
        target: ReadFor,
        peer: PeerId,
        (tag, app_ctx): (Tag, u32),
        remote: Remote,
        buffer: Buffer,
    ) -> Self {
        Self::with_end(target, peer, Own::fin(tag, app_ctx, &remote), remote, buffer)
    }

    /// The sender is told by this message.
    fn with_end(target: ReadFor, peer: PeerId, done: Own, remote: Remote, buffer: Buffer) -> Self {
        let length = remote.length.min(buffer.length);
        let (stretches, regions) = (Vec::new(), Vec::new());
        Self { target, peer, done, remote, buffer, immediate: None, stretches, length, asked: 0, regions }
    }

    /// Bytes that were not asked for yet.
    pub(super) const fn left(&self) -> u64 {
        self.length - self.asked
    }

    /// Whether it writes into the region with this key.
    pub(super) fn uses_key(&self, key: u32) -> bool {
        self.stretches.iter().any(|stretch| stretch.key == key)
    }
}

impl VerbsDevice {
    /// Fetch a payload for the owner: it hears of it as of any transfer. The sender is told by this message.
    pub(in crate::device::verbs) fn read_for(
        &mut self,
        transfer: TransferId,
        peer: PeerId,
        done: Own,
        remote: Remote,
        buffer: Buffer,
    ) {
        self.start_read(ReadJob::with_end(ReadFor::Transfer(transfer), peer, done, remote, buffer));
    }

    /// Fetch a payload.
    pub(super) fn start_read(&mut self, mut job: ReadJob) {
        let Some((index, peer)) = self.peers.find(job.peer) else {
            return self.read_lost(&job, DataError::PathLost);
        };
        let is_connected = peer.state == State::Connected;
        if is_connected
            && job.length > 0
            && let Err(error) = self.register_for(&mut job)
        {
            if let VerbsError::Caller(text) = error {
                return self.fail(super::host_fault(&text));
            }
            let vendor_error =
                if let VerbsError::Call { cause, .. } = error { cause.0.unsigned_abs() } else { 0 };
            let status = super::super::sys::IBV_WC_LOC_PROT_ERR;
            // The sender need not wait for what will not be read.
            self.tell_peer(job.peer, job.done);
            return self.read_lost(&job, DataError::Completion { status, vendor_error });
        }
        if is_connected && job.length == 0 {
            self.tell_peer(job.peer, job.done);
            return self.tell_read(&job, None);
        }
        // Of a peer that is failing it is told as lost when its queue pairs are gone.
        let id = self.jobs.insert(job);
        if is_connected {
            self.ask(index, id);
        }
    }

    /// Keys for all of the buffer that is wanted.
    fn register_for(&self, job: &mut ReadJob) -> Result<(), VerbsError> {
        let Buffer { address, segments, .. } = job.buffer;
        let known = if job.buffer.key != 0 { Some(job.buffer.key) } else { self.regions.key_of(&job.buffer) };
        if let Some(key) = known.filter(|_| segments == 1) {
            job.stretches.push(Stretch { address, length: job.length, key });
            return Ok(());
        }
        for (address, length) in self.regions.stretches(&job.buffer, job.length)? {
            let region = self.regions.register_once(&self.domain, address, length)?;
            job.stretches.push(Stretch { address, length, key: region.local_key() });
            job.regions.push(region);
        }
        // From the last to the first, since they are taken from the end.
        job.stretches.reverse();
        Ok(())
    }

    /// Post the next part of a read, or let it wait.
    pub(super) fn ask(&mut self, index: usize, id: usize) {
        let has_room = self.has_room(index, 1);
        let Some(job) = self.jobs.get_mut(id) else { return };
        if !has_room {
            if let Some(peer) = self.peers.at(index) {
                peer.deferred.push_back(Deferred::Read(id));
            }
            return;
        }
        let Some(stretch) = job.stretches.last_mut() else { return };
        let part = stretch.length.min(u64::from(self.port.message).clamp(1, PART_MAX));
        let length = u32::try_from(part).unwrap_or(u32::MAX);
        let segment = [ibv_sge { addr: stretch.address, length, lkey: stretch.key }];
        (stretch.address, stretch.length) = (stretch.address.wrapping_add(part), stretch.length - part);
        if stretch.length == 0 {
            job.stretches.pop();
        }
        let (address, key) = (job.remote.address.wrapping_add(job.asked), job.remote.key);
        job.asked += part;
        let kind = SendKind::Read { address, key };
        let payload = SendPayload::Registered(&segment);
        let posted = self.post(index, OutgoingKind::Read(id), kind, payload, None);
        if let Err(errno) = posted {
            self.post_failed(index, errno);
        }
    }

    /// The sender is told when the last part is here, and not by a request behind the READ that waits for it
    /// (`IBV_SEND_FENCE`): rxe of Linux 6.1 comes to a halt, without an error, where it has to repeat such a request and
    /// a later READ is under way.
    pub(super) fn part_done(&mut self, index: usize, id: usize) {
        let Some(job) = self.jobs.get(id) else { return };
        if job.asked < job.length {
            return self.ask(index, id);
        }
        let job = self.jobs.remove(id);
        self.tell_peer(job.peer, job.done);
        self.tell_read(&job, None);
    }

    pub(super) fn read_lost(&mut self, job: &ReadJob, error: DataError) {
        self.tell_read(job, Some(error));
    }

    fn tell_read(&mut self, job: &ReadJob, error: Option<DataError>) {
        let target = match job.target {
            ReadFor::Transfer(transfer) => DataTarget::Transfer(transfer),
            ReadFor::Entry(index) => {
                let handle = self.matching().and_then(|matching| matching.srq.ledger().name(index));
                let Some(handle) = handle else { return };
                DataTarget::Entry(handle)
            }
        };
        let (length, immediate) = (job.remote.length, job.immediate);
        self.pending.push_back(Event::Data(Data { target, length, immediate, error }));
        if let ReadFor::Entry(index) = job.target {
            self.entry_done(index);
        }
    }

    /// Everything but its release was told of an entry, and that too if the driver is done with it.
    pub(super) fn entry_done(&mut self, index: u32) {
        self.set_stage(index, Stage::Done);
        let Some(matching) = self.matching() else { return };
        let is_released = matching.told(index).is_released;
        if is_released && let Some(handle) = matching.srq.ledger().name(index) {
            matching.srq.ledger_mut().give_back(index);
            self.released(handle);
        }
    }
}

/// Bytes of one READ: what every device takes.
const PART_MAX: u64 = 1 << 30;
