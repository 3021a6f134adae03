//! A shared receive queue with a matching list: TM-SRQ, with its completion queue and its accounts.
//!
//! This is where the rules of the driver are kept that it does not check itself (TM-CONTRACT 6, 8.2, 15): a DEL goes
//! out only for an entry in use, and nothing is posted while the queue is polled. What operations mean is the device's
//! business.

use std::ptr;

use super::completion::{Completion, PollError, QueueHandle, TagMatchingQueue};
use super::error::{Errno, VerbsError};
use super::ledger::{Kind, Ledger, LedgerError};
use super::memory::ProtectionDomain;
use super::receives::{ReceiveHandle, Shared, SharedReceives, Slab};
use super::sys::{self, types};
use crate::ids::{Ignore, Tag};
use crate::seam::Buffer;

/// A TM-SRQ.
#[derive(Debug)]
pub struct TagMatchingSrq {
    // In this order they go: the SRQ before its completion queue.
    receives: SharedReceives,
    queue: TagMatchingQueue,
    ledger: Ledger,
    wrs: Vec<types::ibv_ops_wr>,
    segments: Vec<[types::ibv_sge; SEGMENTS]>,
    reserved: Vec<Option<u32>>,
}

// SAFETY: the pointers in the prepared requests lead into the vectors beside them, and are set anew at each call.
unsafe impl Send for TagMatchingSrq {}

/// What to do with the list.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ListRequest {
    /// The operation.
    pub operation: ListOperation,
    /// Unexpected messages handled, to go with it (`IBV_OPS_TM_SYNC`).
    pub unexpected_count: Option<u32>,
    /// Whether a completion is wanted (`IBV_OPS_SIGNALED`).
    pub signalled: bool,
}

/// `ibv_ops_wr.opcode`, and what belongs to it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ListOperation {
    /// `IBV_WR_TAG_ADD`
    Add {
        /// Tag, with the ignored bits cleared.
        tag: Tag,
        /// What to ignore.
        ignore: Ignore,
        /// Where the payload goes; 0 segments, or 0 bytes: nowhere. Of more than one the driver takes the first.
        buffer: Buffer,
    },
    /// `IBV_WR_TAG_DEL`
    Del {
        /// The entry that [`TagMatchingSrq::post`] gave.
        entry: u32,
    },
    /// `IBV_WR_TAG_SYNC`
    Sync,
}

/// A list of operations was not posted to its end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[error("operation {posted} of the list was refused: {cause}; those before it are posted and will complete")]
pub struct PostError {
    /// How many were posted.
    pub posted: usize,
    /// Why not the next.
    pub cause: PostRefusal,
}

/// Why an operation was refused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PostRefusal {
    /// By the driver: ENOMEM where there is no slot or no tag.
    #[error("ibv_post_srq_ops: {0}")]
    Driver(Errno),
    /// Here: all tags are in use.
    #[error("all tags are in use")]
    NoTag,
    /// Here, since the driver would corrupt itself: the entry is not in use, or has too many DELs under way.
    #[error("DEL of entry {entry}, which is not in use or has too many DELs under way")]
    NotInUse {
        /// The entry.
        entry: u32,
    },
}

/// A completion, and what it did to the accounts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TagCompletion {
    /// As polled. Of a match, `wr_id` is the entry.
    pub completion: Completion,
    /// What it is.
    pub kind: TagCompletionKind,
    /// The entry is free again.
    pub released: bool,
}

/// What a completion of a TM-SRQ is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TagCompletionKind {
    /// A list operation on that entry.
    Operation(Kind, u32),
    /// A match with that entry, or the rest of one; flags and status say how far it has got.
    Match(u32),
    /// A message in a buffer of the slab that the device counted as unexpected.
    Unexpected,
    /// A message in a buffer of the slab that has no tag.
    NoTag,
    /// An error. It names no entry that could be relied on.
    Failed,
}

impl TagMatchingSrq {
    /// A TM-SRQ for so many tags and operations, with the slab's buffers for unexpected messages.
    ///
    /// # Errors
    /// The provider has no such call (EOPNOTSUPP), or refuses (EINVAL): TM-CONTRACT 5.
    pub fn new(
        domain: &ProtectionDomain,
        queue: TagMatchingQueue,
        slab: Slab,
        tags: u32,
        operations: u32,
    ) -> Result<Self, VerbsError> {
        let handle = queue.handle();
        let mut attr = types::ibv_srq_init_attr_ex {
            srq_context: ptr::null_mut(),
            attr: types::ibv_srq_attr { max_wr: slab.count(), max_sge: 1, srq_limit: 0 },
            comp_mask: sys::IBV_SRQ_INIT_ATTR_TYPE
                | sys::IBV_SRQ_INIT_ATTR_PD
                | sys::IBV_SRQ_INIT_ATTR_CQ
                | sys::IBV_SRQ_INIT_ATTR_TM,
            srq_type: sys::IBV_SRQT_TM,
            pd: domain.raw(),
            xrcd: ptr::null_mut(),
            cq: handle.raw(),
            tm_cap: types::ibv_tm_cap { max_num_tags: tags, max_ops: operations },
        };
        let context = domain.context();
        // SAFETY: the context is open, domain and queue exist.
        let created = unsafe { sys::inline::create_srq_ex(context.raw(), &mut attr) };
        let raw = created.map_err(|errno| context.returned("ibv_create_srq_ex", errno))?;
        if raw.is_null() {
            return Err(context.failed("ibv_create_srq_ex"));
        }
        let shared = Shared { raw, slab, _completions: Some(handle), domain: domain.clone() };
        Ok(Self {
            receives: SharedReceives::of(shared),
            queue,
            ledger: Ledger::new(tags, command_slots(operations)),
            wrs: Vec::new(),
            segments: Vec::new(),
            reserved: Vec::new(),
        })
    }

    /// Post operations as one list. `entries` receives the entry of each: of an ADD a new one, of a DEL its own, of a
    /// SYNC 0.
    ///
    /// # Errors
    /// One was refused; those before it are posted.
    pub fn post(&mut self, requests: &[ListRequest], entries: &mut Vec<u32>) -> Result<(), PostError> {
        entries.clear();
        let (prepared, refusal) = self.prepare(requests);
        let (posted, errno) = if prepared == 0 { (0, None) } else { self.post_prepared(prepared) };
        self.enter(requests, posted, prepared, entries);
        match (errno, refusal) {
            (None, None) => Ok(()),
            (Some(errno), _) => Err(PostError { posted, cause: PostRefusal::Driver(errno) }),
            (None, Some(cause)) => Err(PostError { posted, cause }),
        }
    }

    /// Take completions, `max` at most, and say how many. An outer error: the queue is broken. The inner one: a
    /// completion that does not fit the accounts.
    ///
    /// # Errors
    /// The queue is broken; what was taken before stands.
    pub fn poll(
        &mut self,
        max: usize,
        mut take: impl FnMut(Result<TagCompletion, LedgerError>),
    ) -> Result<usize, PollError> {
        let ledger = &mut self.ledger;
        self.queue.poll(max, |completion| take(account(ledger, completion)))
    }

    /// Post these buffers of the slab for unexpected messages.
    ///
    /// # Errors
    /// The queue is full, or there is no such buffer.
    pub fn post_receives(&mut self, buffers: &[u32]) -> Result<(), Errno> {
        self.receives.post(buffers)
    }

    /// The device's number for it (`ibv_get_srq_num`).
    ///
    /// # Errors
    /// The provider has no such call.
    pub fn number(&self) -> Result<u32, Errno> {
        let mut number = 0;
        // SAFETY: the SRQ exists.
        let errno = unsafe { sys::inline::get_srq_num(self.receives.raw(), &mut number) };
        if errno == 0 { Ok(number) } else { Err(Errno::returned(errno)) }
    }

    /// A free entry whose number still names something: it is not used again until it is given back.
    pub(super) fn keep(&mut self, entry: u32) {
        self.ledger.keep(entry);
    }

    /// An entry that was kept may be used again.
    pub(super) fn give_back(&mut self, entry: u32) {
        self.ledger.give_back(entry);
    }

    /// The accounts.
    #[must_use]
    pub const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The buffers for unexpected messages.
    #[must_use]
    pub fn slab(&self) -> &Slab {
        self.receives.slab()
    }

    /// For queue pairs that receive here.
    #[must_use]
    pub fn handle(&self) -> ReceiveHandle {
        self.receives.handle()
    }

    /// Its completion queue, for queue pairs.
    #[must_use]
    pub fn completions(&self) -> QueueHandle {
        self.queue.handle()
    }

    /// Entries of its completion queue.
    #[must_use]
    pub fn completion_entries(&self) -> u32 {
        self.queue.entries()
    }

    /// Make the requests ready, up to the first that must not go out.
    fn prepare(&mut self, requests: &[ListRequest]) -> (usize, Option<PostRefusal>) {
        self.wrs.clear();
        self.segments.clear();
        self.segments.resize(requests.len(), [types::ibv_sge::default(); SEGMENTS]);
        self.reserved.clear();
        for (place, request) in requests.iter().enumerate() {
            let mut wr = empty(request);
            let mut reserved = None;
            match request.operation {
                ListOperation::Add { tag, ignore, buffer } => {
                    let Some(entry) = self.ledger.reserve() else {
                        return (place, Some(PostRefusal::NoTag));
                    };
                    reserved = Some(entry);
                    // A segment of 0 bytes would be one of 2^31 to the device.
                    let segments = if buffer.length == 0 { 0 } else { buffer.segments };
                    wr.opcode = sys::IBV_WR_TAG_ADD;
                    wr.wr_id = entry.into();
                    wr.tm.add = types::ibv_ops_wr_add {
                        recv_wr_id: entry.into(),
                        sg_list: ptr::null_mut(),
                        num_sge: if segments > 1 { 2 } else { segments.cast_signed() },
                        tag: tag.0,
                        mask: ignore.mask(),
                    };
                    if let Some(segments) = self.segments.get_mut(place) {
                        *segments = [segment(&buffer); SEGMENTS];
                        wr.tm.add.sg_list = segments.as_mut_ptr();
                    }
                }
                ListOperation::Del { entry } => {
                    let handle = self.ledger.handle(entry).filter(|_| self.ledger.may_delete(entry));
                    let Some(handle) = handle else {
                        return (place, Some(PostRefusal::NotInUse { entry }));
                    };
                    wr.opcode = sys::IBV_WR_TAG_DEL;
                    wr.wr_id = entry.into();
                    wr.tm.handle = handle;
                }
                ListOperation::Sync => wr.opcode = sys::IBV_WR_TAG_SYNC,
            }
            self.wrs.push(wr);
            self.reserved.push(reserved);
        }
        (requests.len(), None)
    }

    fn post_prepared(&mut self, prepared: usize) -> (usize, Option<Errno>) {
        let start = self.wrs.as_mut_ptr();
        for (place, wr) in self.wrs.iter_mut().enumerate().take(prepared.saturating_sub(1)) {
            wr.next = start.wrapping_add(place + 1);
        }
        let mut bad = ptr::null_mut();
        // SAFETY: a linked list of requests with segments of this object's; DELs name entries in use; and nobody
        // polls, since that needs this object too.
        let errno = unsafe { sys::inline::post_srq_ops(self.receives.raw(), start, &mut bad) };
        if errno == 0 {
            return (prepared, None);
        }
        let posted = bad.addr().saturating_sub(start.addr()) / size_of::<types::ibv_ops_wr>();
        (posted.min(prepared), Some(Errno::returned(errno)))
    }

    /// Enter what was posted, and give back what was not.
    fn enter(&mut self, requests: &[ListRequest], posted: usize, prepared: usize, entries: &mut Vec<u32>) {
        for (place, request) in requests.iter().enumerate().take(posted) {
            let handle = self.wrs.get(place).map_or(0, |wr| wr.tm.handle);
            entries.push(match request.operation {
                ListOperation::Add { .. } => {
                    let entry = self.reserved.get(place).copied().flatten().unwrap_or(0);
                    self.ledger.added(entry, handle, request.signalled);
                    entry
                }
                ListOperation::Del { entry } => {
                    self.ledger.deleted(entry, request.signalled);
                    entry
                }
                ListOperation::Sync => {
                    self.ledger.synced(request.signalled);
                    0
                }
            });
        }
        for entry in self.reserved.drain(..).take(prepared).skip(posted).flatten() {
            self.ledger.give_back(entry);
        }
    }
}

/// What a completion is, by its flags where it has some (TM-CONTRACT 9), and what it does to the accounts.
fn account(ledger: &mut Ledger, completion: Completion) -> Result<TagCompletion, LedgerError> {
    let done = |kind, released| Ok(TagCompletion { completion, kind, released });
    let flags = completion.flags;
    let success = match completion.status {
        sys::IBV_WC_SUCCESS | sys::IBV_WC_TM_RNDV_INCOMPLETE => true,
        sys::IBV_WC_TM_ERR => false,
        _ => return done(TagCompletionKind::Failed, false),
    };
    let operation = match completion.opcode {
        sys::IBV_WC_TM_ADD => Some(Kind::Add),
        sys::IBV_WC_TM_DEL => Some(Kind::Del),
        sys::IBV_WC_TM_SYNC => Some(Kind::Sync),
        _ => None,
    };
    if let Some(kind) = operation {
        let (entry, released) = ledger.operation_done(kind, success)?;
        return done(TagCompletionKind::Operation(kind, entry), released);
    }
    if flags.matched || flags.data_valid || completion.status == sys::IBV_WC_TM_RNDV_INCOMPLETE {
        let entry = u32::try_from(completion.wr_id).unwrap_or(u32::MAX);
        if !ledger.is_in_use(entry) {
            return Err(LedgerError::NothingOwed { index: entry });
        }
        let released = if flags.data_valid { ledger.matched(entry)? } else { false };
        return done(TagCompletionKind::Match(entry), released);
    }
    match completion.opcode {
        sys::IBV_WC_TM_NO_TAG => done(TagCompletionKind::NoTag, false),
        _ => done(TagCompletionKind::Unexpected, false),
    }
}

fn empty(request: &ListRequest) -> types::ibv_ops_wr {
    let signalled = if request.signalled { sys::IBV_OPS_SIGNALED } else { 0 };
    let sync = if request.unexpected_count.is_some() { sys::IBV_OPS_TM_SYNC } else { 0 };
    types::ibv_ops_wr {
        wr_id: 0,
        next: ptr::null_mut(),
        opcode: sys::IBV_WR_TAG_SYNC,
        flags: signalled | sync,
        tm: types::ibv_ops_wr_tm {
            unexpected_cnt: request.unexpected_count.unwrap_or(0),
            handle: 0,
            add: types::ibv_ops_wr_add {
                recv_wr_id: 0,
                sg_list: ptr::null_mut(),
                num_sge: 0,
                tag: 0,
                mask: 0,
            },
        },
    }
}

fn segment(buffer: &Buffer) -> types::ibv_sge {
    let length = u32::try_from(buffer.length).unwrap_or(u32::MAX);
    types::ibv_sge { addr: buffer.address, length, lkey: buffer.key }
}

/// Operations that can be outstanding where so many were asked for (TM-CONTRACT 6.1): a power of two.
#[must_use]
pub fn command_slots(operations: u32) -> u32 {
    if operations == 0 { 0 } else { operations.checked_next_power_of_two().unwrap_or(u32::MAX) }
}

/// More than one is for tests of the driver alone.
const SEGMENTS: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::verbs::completion::Flags;

    fn completion(opcode: u32, flags: Flags) -> Completion {
        Completion { opcode, flags, ..Completion::default() }
    }

    const MATCHED: Flags = Flags { matched: true, data_valid: false, sync_requested: false };
    const WHOLE: Flags = Flags { matched: true, data_valid: true, sync_requested: false };
    const DATA: Flags = Flags { matched: false, data_valid: true, sync_requested: false };
    const NONE: Flags = Flags { matched: false, data_valid: false, sync_requested: false };

    fn one_entry() -> Ledger {
        let mut ledger = Ledger::new(1, 4);
        let entry = ledger.reserve().unwrap();
        ledger.added(entry, 0, false);
        ledger
    }

    #[test]
    fn flags_decide_what_a_completion_is_and_not_its_opcode() {
        for opcode in [sys::IBV_WC_TM_RECV, sys::IBV_WC_RECV, sys::IBV_WC_SEND] {
            let told = account(&mut one_entry(), completion(opcode, WHOLE)).unwrap();
            assert_eq!((told.kind, told.released), (TagCompletionKind::Match(0), true), "{opcode}");
        }
        for opcode in [sys::IBV_WC_TM_RECV, sys::IBV_WC_RECV] {
            let told = account(&mut one_entry(), completion(opcode, NONE)).unwrap();
            assert_eq!((told.kind, told.released), (TagCompletionKind::Unexpected, false), "{opcode}");
        }
        let told = account(&mut one_entry(), completion(sys::IBV_WC_TM_NO_TAG, NONE)).unwrap();
        assert_eq!(told.kind, TagCompletionKind::NoTag);
    }

    #[test]
    fn an_entry_is_released_by_the_completion_with_its_data() {
        let mut ledger = one_entry();
        let told = account(&mut ledger, completion(sys::IBV_WC_TM_RECV, MATCHED)).unwrap();
        assert!(!told.released);
        let told = account(&mut ledger, completion(sys::IBV_WC_TM_RECV, DATA)).unwrap();
        assert!(told.released);
    }

    #[test]
    fn a_match_of_an_entry_not_in_use_is_an_error_and_one_with_an_error_names_none() {
        let mut ledger = Ledger::new(1, 4);
        let error = account(&mut ledger, completion(sys::IBV_WC_TM_RECV, WHOLE)).unwrap_err();
        assert_eq!(error, LedgerError::NothingOwed { index: 0 });
        let failed = Completion { status: sys::IBV_WC_GENERAL_ERR, ..completion(sys::IBV_WC_TM_RECV, NONE) };
        assert_eq!(account(&mut ledger, failed).unwrap().kind, TagCompletionKind::Failed);
    }

    #[test]
    fn a_rendezvous_that_is_handed_back_is_a_match_whatever_its_flags() {
        let incomplete =
            Completion { status: sys::IBV_WC_TM_RNDV_INCOMPLETE, ..completion(sys::IBV_WC_TM_RECV, MATCHED) };
        let told = account(&mut one_entry(), incomplete).unwrap();
        assert_eq!((told.kind, told.released), (TagCompletionKind::Match(0), false));
    }

    #[test]
    fn slots_are_the_next_power_of_two() {
        let slots = [0, 1, 2, 4, 8, 10, 16, 17, 100, 256].map(command_slots);
        assert_eq!(slots, [0, 1, 2, 4, 8, 16, 16, 32, 128, 256]);
    }
}
