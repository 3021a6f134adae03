//! libmlx5's side of a TM-SRQ: what `ibv_post_srq_ops` accepts and what polling a completion does
//! (TM-CONTRACT 5, 6, 8, 9 and 11.5).
//!
//! The driver keeps a table of tags with the completions each still waits for, a ring of signalled
//! operations, and the counts behind SYNC_REQ. Nothing in it is freed by the device: only polling frees.
//! Where the real one is undefined (DEL of a handle that is not in use), this one says so.
//!
//! Not here: the list itself, and what a seam handle is.

use std::collections::VecDeque;

use super::completion::{Completion, Cqe, CqeOperation, Flags, Opcode, TmInfo, status};
use super::list::Append;
use super::receive_queue::ReceiveQueue;
use super::request::{
    AddRequest, Attributes, DriverError, Errno, Limits, ListCommand, ListOperation, PostError, Refusal,
    Released, Request, RequestOperation, Violation,
};
use crate::ids::TagHandle;
use crate::seam::Buffer;

/// The driver's state of one TM-SRQ.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Driver {
    tags: Vec<TagEntry>,
    /// Free entries in their order of reuse; the last one is never used (TM-CONTRACT 8).
    free: VecDeque<u16>,
    /// Signalled operations whose completion was not polled.
    operations: VecDeque<SignalledOperation>,
    /// Operations posted since the last signalled one.
    unsignalled: u32,
    slots: u32,
    slots_used: u32,
    /// The command queue: what the device has not executed.
    commands: VecDeque<ListCommand>,
    /// Receives for unexpected messages.
    pub receives: ReceiveQueue,
    /// `unexp_in` and `unexp_out`: C's `int`, as in libmlx5.
    unexpected_in: i32,
    unexpected_out: i32,
    /// `ibv_cq_ex.wr_id`: keeps its value where a completion has none.
    wr_id: u64,
    released: VecDeque<Released>,
    /// Destroying the SRQ has destroyed the command queue, even where it was refused (TM-CONTRACT 13).
    command_queue_gone: bool,
}

impl Driver {
    /// `ibv_create_srq_ex`. `count`: where the counts of unexpected messages start (a real driver's: 0).
    ///
    /// # Errors
    /// EINVAL, as TM-CONTRACT 5 lists it.
    pub fn create(attributes: &Attributes, limits: &Limits, count: u16) -> Result<Self, Errno> {
        let tags = attributes.tags;
        let valid = (1..=limits.tags.min(Limits::TAGS_MAX)).contains(&tags)
            && attributes.receives <= limits.receives
            && attributes.receive_segments <= limits.receive_segments
            && attributes.operations <= limits.operations;
        let Ok(last) = u16::try_from(tags) else { return Err(Errno::Invalid) };
        if !valid {
            return Err(Errno::Invalid);
        }
        Ok(Self {
            tags: vec![TagEntry::default(); usize::from(last) + 1],
            free: (0..=last).collect(),
            operations: VecDeque::new(),
            unsignalled: 0,
            slots: command_slots(attributes.operations),
            slots_used: 0,
            commands: VecDeque::new(),
            receives: ReceiveQueue::new(receive_slots(attributes.receives)),
            unexpected_in: i32::from(count),
            unexpected_out: i32::from(count),
            wr_id: 0,
            released: VecDeque::new(),
            command_queue_gone: false,
        })
    }

    /// `ibv_post_srq_ops` of a list. The handle of an ADD is written into its request.
    ///
    /// # Errors
    /// Names the request that failed; those before it are posted and will complete.
    pub fn post_srq_ops(&mut self, requests: &mut [Request]) -> Result<(), PostError> {
        for (bad, request) in requests.iter_mut().enumerate() {
            self.post(request).map_err(|refusal| PostError { refusal, bad })?;
        }
        Ok(())
    }

    /// The command that the device executes next.
    #[must_use]
    pub fn next_command(&self) -> Option<&ListCommand> {
        self.commands.front()
    }

    /// Everything the device has not executed, oldest first.
    pub fn commands(&self) -> impl Iterator<Item = &ListCommand> {
        self.commands.iter()
    }

    /// The device takes the command off its queue.
    pub fn take_command(&mut self) -> Option<ListCommand> {
        self.commands.pop_front()
    }

    /// `ibv_next_poll`: what the application sees of one completion.
    ///
    /// # Errors
    /// The device wrote something that cannot be, or a client broke the contract before.
    pub fn poll(&mut self, cqe: &Cqe) -> Result<Completion, DriverError> {
        use status::{SUCCESS, TM_ERROR, TM_RENDEZVOUS_INCOMPLETE};
        let (matched, data_valid) = (true, true);
        match cqe.operation {
            CqeOperation::Append { phase } => {
                self.poll_operation(cqe, Opcode::Add, SUCCESS, Some((phase, 1)))
            }
            CqeOperation::Remove { phase, success: true } => {
                self.poll_operation(cqe, Opcode::Del, SUCCESS, Some((phase, 2)))
            }
            CqeOperation::Remove { phase, success: false } => {
                self.poll_operation(cqe, Opcode::Del, TM_ERROR, Some((phase, 1)))
            }
            CqeOperation::Noop { .. } => self.poll_operation(cqe, Opcode::Sync, SUCCESS, None),
            CqeOperation::Unexpected | CqeOperation::NoTag => Ok(self.poll_receive(cqe)),
            CqeOperation::ConsumedMessage(_) => self.poll_match(cqe, matched, data_valid, SUCCESS),
            CqeOperation::Consumed(_) => self.poll_match(cqe, matched, false, SUCCESS),
            CqeOperation::Expected => self.poll_match(cqe, false, data_valid, SUCCESS),
            CqeOperation::ConsumedSoftwareRendezvous(_) => {
                self.poll_match(cqe, matched, false, TM_RENDEZVOUS_INCOMPLETE)
            }
            CqeOperation::ConsumedMessageSoftwareRendezvous(_) | CqeOperation::Canceled(_) => {
                self.poll_match(cqe, matched, data_valid, TM_RENDEZVOUS_INCOMPLETE)
            }
            CqeOperation::Error { status, .. } => {
                // Whatever receive the completion names is taken for the one that failed.
                self.receives.release();
                self.wr_id = cqe.receive;
                Ok(self.completion(cqe, Opcode::TagReceive, status, Flags::default()))
            }
        }
    }

    /// `ibv_destroy_srq` begins with this; from here on every operation is refused.
    pub const fn destroy_command_queue(&mut self) {
        self.command_queue_gone = true;
    }

    /// An entry that has become free since the last call.
    pub fn take_released(&mut self) -> Option<Released> {
        self.released.pop_front()
    }

    /// Command-queue slots: as many operations may wait for the polling of a signalled one.
    #[must_use]
    pub const fn slots(&self) -> u32 {
        self.slots
    }

    /// Slots in use.
    #[must_use]
    pub const fn slots_used(&self) -> u32 {
        self.slots_used
    }

    /// Tags that an ADD could use now.
    #[must_use]
    pub fn tags_free(&self) -> usize {
        self.free.len().saturating_sub(1)
    }

    /// Tags in use.
    #[must_use]
    pub fn tags_used(&self) -> usize {
        self.tags.len() - self.free.len()
    }

    /// Completions that the entry still waits for; 0 where it is free or does not exist.
    #[must_use]
    pub fn completions_owed(&self, handle: u32) -> u8 {
        self.entry(handle).map_or(0, |entry| entry.owed)
    }

    /// The receive that was put into the entry.
    #[must_use]
    pub fn receive_wr_id(&self, handle: u32) -> Option<u64> {
        self.entry(handle).map(|entry| entry.receive_wr_id)
    }

    /// For each signalled operation under way, the operations that its polling frees; then those behind it
    /// that nothing frees yet.
    pub fn slots_pending(&self) -> impl Iterator<Item = u32> {
        self.operations.iter().map(|operation| operation.frees).chain(std::iter::once(self.unsignalled))
    }

    /// The same, each with the low half of its work-request id (an engine's index), for canonical states.
    pub(crate) fn slots_pending_named(&self) -> impl Iterator<Item = (u32, Option<TagHandle>)> {
        let named =
            |operation: &SignalledOperation| (operation.frees, Some(TagHandle::from_bits(operation.wr_id)));
        self.operations.iter().map(named).chain(std::iter::once((self.unsignalled, None)))
    }

    fn entry(&self, handle: u32) -> Option<&TagEntry> {
        self.tags.get(usize::try_from(handle).ok()?)
    }

    fn post(&mut self, request: &mut Request) -> Result<(), Refusal> {
        if self.command_queue_gone {
            return Err(Refusal::Errno(Errno::Invalid));
        }
        if self.slots_used >= self.slots {
            return Err(Refusal::Errno(Errno::NoMemory));
        }
        let signalled = request.signalled;
        let (operation, entry) = match request.operation {
            RequestOperation::Add(add) => {
                let (append, entry) = self.post_add(&add, signalled, request.unexpected_count)?;
                request.handle = u32::from(entry);
                (ListOperation::Append(append), entry)
            }
            RequestOperation::Del => {
                let index = self.post_del(request.handle, signalled)?;
                (ListOperation::Remove { index }, index)
            }
            RequestOperation::Sync => (ListOperation::Noop, 0),
            RequestOperation::Unknown(_) => return Err(Refusal::Errno(Errno::Invalid)),
        };
        // The WQE has 16 bits for the count (TM-CONTRACT 7).
        let count = request.unexpected_count.map(low_half);
        self.commands.push_back(ListCommand { operation, count, signalled });
        self.slots_used += 1;
        self.unsignalled += 1;
        if signalled {
            let frees = std::mem::take(&mut self.unsignalled);
            self.operations.push_back(SignalledOperation { wr_id: request.wr_id, entry, frees });
        }
        Ok(())
    }

    fn post_add(
        &mut self,
        add: &AddRequest,
        signalled: bool,
        count: Option<u32>,
    ) -> Result<(Append, u16), Refusal> {
        let (Some(&index), Some(&next_index)) = (self.free.front(), self.free.get(1)) else {
            return Err(Refusal::Errno(Errno::NoMemory));
        };
        let Some(entry) = self.tags.get_mut(usize::from(index)) else {
            return Err(Refusal::Errno(Errno::NoMemory));
        };
        self.free.pop_front();
        if let Some(count) = count {
            self.unexpected_out = count.cast_signed();
        }
        *entry = TagEntry {
            receive_wr_id: add.receive_wr_id,
            phase: self.unexpected_out,
            owed: if signalled { 2 } else { 1 },
        };
        // Further segments are dropped without a word (TM-CONTRACT 6).
        let buffer = if add.segments == 0 { Buffer::default() } else { add.buffer };
        Ok((Append { next_index, tag: add.tag, mask: add.mask, buffer }, index))
    }

    fn post_del(&mut self, handle: u32, signalled: bool) -> Result<u16, Refusal> {
        let violation = Refusal::Violation(Violation::HandleNotInUse { handle });
        let Ok(index) = u16::try_from(handle) else { return Err(violation) };
        let Some(entry) = self.tags.get_mut(usize::from(index)).filter(|entry| entry.owed > 0) else {
            return Err(violation);
        };
        if signalled {
            if entry.owed >= TagEntry::OWED_MAX {
                return Err(Refusal::Violation(Violation::TooManyDeletes { handle }));
            }
            entry.owed += 1;
        } else {
            entry.owed -= 1;
            self.release_if_done(index);
        }
        Ok(index)
    }

    /// `settles`: the device's count, and the completions that the entry waits for no longer.
    fn poll_operation(
        &mut self,
        cqe: &Cqe,
        opcode: Opcode,
        status: u32,
        settles: Option<(u16, u8)>,
    ) -> Result<Completion, DriverError> {
        let Some(operation) = self.operations.pop_front() else { return Err(DriverError::NoOperation) };
        self.slots_used = self.slots_used.saturating_sub(operation.frees);
        self.wr_id = operation.wr_id;
        let mut flags = Flags::default();
        if let Some((phase, count)) = settles {
            // SYNC_REQ compares 16 bits of the device's with an int of the driver's (TM-CONTRACT 11.5).
            let expected = self.entry(u32::from(operation.entry)).map_or(0, |entry| entry.phase);
            flags.sync_requested = i32::from(phase) != expected;
            self.settle(operation.entry, count)?;
        }
        Ok(self.completion(cqe, opcode, status, flags))
    }

    fn poll_match(
        &mut self,
        cqe: &Cqe,
        matched: bool,
        data_valid: bool,
        status: u32,
    ) -> Result<Completion, DriverError> {
        let Some(&entry) = self.tags.get(usize::from(cqe.entry)) else {
            return Err(DriverError::NoEntry { index: cqe.entry });
        };
        if entry.owed == 0 {
            // An unsignalled DEL that did not succeed: the wr_id is that of the completion before. The flags are
            // read off the CQE, whatever the status (libmlx5 on the simulated HCA).
            let flags = Flags { matched, data_valid, ..Flags::default() };
            return Ok(self.completion(cqe, Opcode::TagReceive, status::GENERAL_ERROR, flags));
        }
        self.wr_id = entry.receive_wr_id;
        if data_valid {
            self.settle(cqe.entry, 1)?;
        }
        let flags = Flags { matched, data_valid, ..Flags::default() };
        // libmlx5 has no word of its own for 0xC.
        let is_canceled = matches!(cqe.operation, CqeOperation::Canceled(_));
        let opcode = if is_canceled { Opcode::Receive } else { Opcode::TagReceive };
        Ok(self.completion(cqe, opcode, status, flags))
    }

    fn poll_receive(&mut self, cqe: &Cqe) -> Completion {
        self.receives.release();
        self.wr_id = cqe.receive;
        if cqe.operation == CqeOperation::NoTag {
            return self.completion(cqe, Opcode::NoTag, status::SUCCESS, Flags::default());
        }
        self.unexpected_in = self.unexpected_in.wrapping_add(1);
        let lag = self.unexpected_in.wrapping_sub(self.unexpected_out);
        let flags = Flags { sync_requested: lag > SYNC_LAG_MAX, ..Flags::default() };
        self.completion(cqe, Opcode::TagReceive, status::SUCCESS, flags)
    }

    fn completion(&self, cqe: &Cqe, opcode: Opcode, status: u32, flags: Flags) -> Completion {
        let (tm_info, vendor_error) = match cqe.operation {
            CqeOperation::ConsumedMessage(info)
            | CqeOperation::Consumed(info)
            | CqeOperation::ConsumedSoftwareRendezvous(info)
            | CqeOperation::ConsumedMessageSoftwareRendezvous(info)
            | CqeOperation::Canceled(info) => (info, 0),
            CqeOperation::Append { phase }
            | CqeOperation::Remove { phase, .. }
            | CqeOperation::Noop { phase } => (TmInfo { tag: 0, app_ctx: u32::from(phase) << 16 }, 0),
            CqeOperation::Error { vendor_error, .. } => (TmInfo::default(), vendor_error),
            CqeOperation::Expected | CqeOperation::Unexpected | CqeOperation::NoTag => (TmInfo::default(), 0),
        };
        Completion {
            status,
            wr_id: self.wr_id,
            opcode,
            flags,
            byte_len: cqe.byte_count,
            tm_info,
            immediate: cqe.immediate,
            source: cqe.source,
            vendor_error,
        }
    }

    /// `count` completions fewer to wait for.
    fn settle(&mut self, index: u16, count: u8) -> Result<(), DriverError> {
        let Some(entry) = self.tags.get_mut(usize::from(index)) else {
            return Err(DriverError::NoEntry { index });
        };
        let Some(owed) = entry.owed.checked_sub(count) else {
            return Err(DriverError::CountBelowZero { index });
        };
        entry.owed = owed;
        self.release_if_done(index);
        Ok(())
    }

    fn release_if_done(&mut self, index: u16) {
        if let Some(entry) = self.tags.get(usize::from(index)).filter(|entry| entry.owed == 0) {
            self.released.push_back(Released { handle: index, receive_wr_id: entry.receive_wr_id });
            self.free.push_back(index);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct TagEntry {
    receive_wr_id: u64,
    /// `phase_cnt`
    phase: i32,
    /// `expect_cqe`
    owed: u8,
}

impl TagEntry {
    /// Signed 8 bits in libmlx5 (TM-CONTRACT 8.2).
    const OWED_MAX: u8 = 127;
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct SignalledOperation {
    wr_id: u64,
    entry: u16,
    /// Itself and the unsignalled ones before it.
    frees: u32,
}

/// From how far behind UNEXPECTED completions ask for a report (`MLX5_TM_MAX_SYNC_DIFF`).
const SYNC_LAG_MAX: i32 = 0x3fff;

/// TM-CONTRACT 6.1: the send queue is a power of two of bytes, and the driver reserves 256 a request.
#[must_use]
pub fn command_slots(operations: u32) -> u32 {
    if operations == 0 { 0 } else { operations.checked_next_power_of_two().unwrap_or(u32::MAX) }
}

/// TM-CONTRACT 5: the `max_wr` that comes back.
#[must_use]
pub fn receive_slots(receives: u32) -> u32 {
    receives.saturating_add(1).checked_next_power_of_two().map_or(u32::MAX, |slots| slots - 1)
}

#[expect(clippy::cast_possible_truncation, reason = "the field has 16 bits")]
const fn low_half(count: u32) -> u16 {
    count as u16
}
