//! A shared receive queue with a matching list: TM-SRQ, with its completion queue and its accounts.
//!
//! This is where the rules of the driver are kept that it does not check itself (TM-CONTRACT 6, 8.2, 15): a DEL goes
//! out only for an entry in use, and nothing is posted while the queue is polled. What operations mean is the device's
//! business.

use std::ptr;

use super::completion::{Completion, Flags, PollError, QueueHandle, Section, TagMatchingQueue};
use super::error::{Errno, VerbsError};
use super::ledger::{Entry, Kind, Ledger, LedgerError};
use super::memory::ProtectionDomain;
use super::receives::{ReceiveHandle, Shared, SharedReceives, Slab};
use super::sys::{self, types};
use crate::ids::{Ignore, Tag, TagHandle};
use crate::seam::{Add, Buffer};

/// A TM-SRQ.
#[derive(Debug)]
pub struct TagMatchingSrq {
    // In this order they go: the SRQ before its completion queue.
    receives: SharedReceives,
    queue: TagMatchingQueue,
    ledger: Ledger,
    prepared: Prepared,
}

// SAFETY: the pointers in the prepared requests lead into the boxes beside them, which stay.
unsafe impl Send for TagMatchingSrq {}

/// An operation without its entry: what they have in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Terms {
    /// Unexpected messages handled, to go with it (`IBV_OPS_TM_SYNC`).
    pub unexpected_count: Option<u16>,
    /// Whether a completion is wanted (`IBV_OPS_SIGNALED`).
    pub signalled: bool,
}

/// What goes into the list.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tagged {
    /// Tag, with the ignored bits cleared.
    pub tag: Tag,
    /// What to ignore.
    pub ignore: Ignore,
    /// Where the payload goes, in one segment of 2^31 bytes at most; 0 bytes: nowhere.
    pub buffer: Buffer,
}

/// A list of operations was not posted to its end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[error("operation {posted} of the list was refused: ibv_post_srq_ops: {cause}")]
pub struct PostError {
    /// How many were posted.
    pub posted: usize,
    /// Why: ENOMEM where there is no slot or no tag.
    pub cause: Errno,
}

/// What a completion of a TM-SRQ is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TagCompletionKind {
    /// A list operation on that entry.
    Operation(Kind, TagHandle),
    /// A match with that entry, or the rest of one; flags and status say how far it has got.
    Match(TagHandle),
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
        let receives = SharedReceives::of(shared);
        // SAFETY: the SRQ was just made.
        let call = unsafe { sys::inline::find_post_srq_ops(raw) };
        let call = call.ok_or_else(|| context.returned("ibv_post_srq_ops", libc::EOPNOTSUPP))?;
        let ledger = Ledger::new(tags, command_slots(operations));
        Ok(Self { receives, queue, ledger, prepared: Prepared::new(call, raw) })
    }

    /// Put an ADD behind what is posted next. False: there is no slot or no tag for it. Operations are counted from here
    /// on.
    ///
    /// # Errors
    /// There is an entry with this index.
    #[inline(always)]
    pub fn put_add(&mut self, handle: TagHandle, tagged: &Tagged, terms: Terms) -> Result<bool, LedgerError> {
        let is_room = self.ledger.add(handle, segment_of(&tagged.buffer), terms.signalled)?.is_some();
        if is_room {
            self.prepared.put_add(handle, tagged, terms);
        }
        Ok(is_room)
    }

    /// Post an ADD of a buffer that is not empty at once. False: there is no slot or no tag for it, there is an entry with
    /// this index, or something was put and not posted; nothing has changed then. Budget: 60 instructions.
    ///
    /// # Errors
    /// It was refused. It is counted as posted: the list is of no more use.
    #[inline(always)]
    pub fn add_now(&mut self, add: &Add<'_>) -> Result<bool, PostError> {
        if !self.prepared.is_empty() {
            return Ok(false);
        }
        match self.ledger.add(add.handle, segment_of(add.buffer), add.signalled) {
            Ok(Some(entry)) => self.prepared.post_add(entry, add).map(|()| true),
            Ok(None) | Err(_) => Ok(false),
        }
    }

    /// Put a DEL behind what is posted next. False: there is no slot for it. Only for an entry that may be deleted
    /// ([`Ledger::may_delete`]), and whose ADD was posted ([`Self::is_put`]).
    pub fn put_del(&mut self, handle: TagHandle, terms: Terms) -> bool {
        if self.ledger.slots_free() == 0 {
            return false;
        }
        let Some(number) = self.ledger.number(handle) else { return false };
        self.ledger.deleted(handle, terms.signalled);
        self.prepared.put(sys::IBV_WR_TAG_DEL, handle.to_bits(), number, terms);
        true
    }

    /// Put a SYNC behind what is posted next. False: there is no slot for it.
    pub fn put_sync(&mut self, terms: Terms) -> bool {
        if self.ledger.slots_free() == 0 {
            return false;
        }
        self.ledger.synced(terms.signalled);
        self.prepared.put(sys::IBV_WR_TAG_SYNC, 0, 0, terms);
        true
    }

    /// Whether something of this entry was put and not posted.
    #[must_use]
    pub fn is_put(&self, handle: TagHandle) -> bool {
        self.prepared.names(handle)
    }

    /// Whether what was put must be posted before more is.
    #[must_use]
    #[inline]
    pub fn is_full(&self) -> bool {
        self.prepared.is_full()
    }

    /// Post what was put, as one list.
    ///
    /// # Errors
    /// One was refused. What was put behind it is counted as posted: the list is of no more use.
    #[inline]
    pub fn post(&mut self) -> Result<(), PostError> {
        if self.prepared.is_empty() { Ok(()) } else { self.prepared.post(&mut self.ledger) }
    }

    /// The first of the completions that are there, and the accounts. What a completion means is asked of
    /// [`Self::account`], for each in turn; of a whole match that is the last of its entry, of the ledger at once
    /// ([`Ledger::last_matched`]). None: none is there.
    ///
    /// # Errors
    /// The queue is broken.
    #[inline(always)]
    pub fn open(&mut self) -> Result<Option<(Section<'_>, &mut Ledger)>, PollError> {
        Ok(self.queue.open()?.map(|section| (section, &mut self.ledger)))
    }

    /// What a completion is, and whether it frees its entry.
    ///
    /// # Errors
    /// It does not fit the accounts.
    pub fn account(&mut self, completion: &Completion) -> Result<(TagCompletionKind, bool), LedgerError> {
        account(&mut self.ledger, completion)
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

    /// The accounts.
    #[must_use]
    pub const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    pub(super) const fn ledger_mut(&mut self) -> &mut Ledger {
        &mut self.ledger
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
}

/// Operations that go down together, as the driver wants them, and beside them an ADD that goes alone. What does not
/// change is set once.
#[derive(Debug)]
struct Prepared {
    /// An ADD that reports a count, is linked to nothing and asks for no completion.
    alone: types::ibv_ops_wr,
    count: usize,
    call: PostSrqOps,
    /// Of the receives beside this, which are there as long.
    srq: *mut types::ibv_srq,
    /// Where the driver says which request it refused.
    bad: *mut types::ibv_ops_wr,
    wrs: Box<[types::ibv_ops_wr; BATCH]>,
    segments: Box<[types::ibv_sge; BATCH]>,
}

impl Prepared {
    fn new(call: PostSrqOps, srq: *mut types::ibv_srq) -> Self {
        let mut segments = Box::new([types::ibv_sge::default(); BATCH]);
        let mut wrs = Box::new([EMPTY; BATCH]);
        let (start, lists) = (wrs.as_mut_ptr(), segments.as_mut_ptr());
        for (place, wr) in wrs.iter_mut().enumerate() {
            wr.next = start.wrapping_add(place + 1);
            wr.tm.add.sg_list = lists.wrapping_add(place);
        }
        let mut alone = EMPTY;
        (alone.opcode, alone.flags, alone.tm.add.num_sge) = (sys::IBV_WR_TAG_ADD, sys::IBV_OPS_TM_SYNC, 1);
        Self { alone, count: 0, call, srq, bad: ptr::null_mut(), wrs, segments }
    }

    fn put_add(&mut self, handle: TagHandle, tagged: &Tagged, terms: Terms) {
        if let (Some(wr), Some(segment)) = (self.wrs.get_mut(self.count), self.segments.get_mut(self.count)) {
            let Tagged { tag, ignore, ref buffer } = *tagged;
            *segment = segment_of(buffer);
            terms.put(wr, sys::IBV_WR_TAG_ADD, handle.to_bits());
            // A segment of 0 bytes would be one of 2^31 to the device.
            wr.tm.add.num_sge = i32::from(buffer.length > 0);
            write_add(wr, handle, tag, ignore);
            self.count += 1;
        }
    }

    /// Post an ADD alone, whose request names the segment of its entry. Its completion is known by its turn.
    #[inline(always)]
    fn post_add(&mut self, entry: &mut Entry, add: &Add<'_>) -> Result<(), PostError> {
        let wr = &mut self.alone;
        wr.tm.unexpected_cnt = add.unexpected_count.into();
        wr.tm.add.sg_list = &raw mut entry.segment;
        write_add(wr, add.handle, add.tag, add.ignore);
        if add.signalled {
            wr.flags = sys::IBV_OPS_TM_SYNC | sys::IBV_OPS_SIGNALED;
        }
        // SAFETY: one request that is linked to no other, with a segment that stays where it is meanwhile; and nobody
        // polls, since that needs the queue's owner too.
        let errno = unsafe { (self.call)(self.srq, &raw mut self.alone, &raw mut self.bad) };
        if add.signalled {
            self.alone.flags = sys::IBV_OPS_TM_SYNC;
        }
        if errno != 0 {
            return Err(refused(0, errno));
        }
        entry.number = self.alone.tm.handle;
        Ok(())
    }

    fn put(&mut self, opcode: u32, wr_id: u64, number: u32, terms: Terms) {
        if let Some(wr) = self.wrs.get_mut(self.count) {
            terms.put(wr, opcode, wr_id);
            wr.tm.handle = number;
            self.count += 1;
        }
    }

    fn names(&self, handle: TagHandle) -> bool {
        self.wrs
            .iter()
            .take(self.count)
            .any(|wr| wr.opcode == sys::IBV_WR_TAG_ADD && wr.wr_id == handle.to_bits())
    }

    const fn is_empty(&self) -> bool {
        self.count == 0
    }

    const fn is_full(&self) -> bool {
        self.count == BATCH
    }

    #[inline]
    fn post(&mut self, ledger: &mut Ledger) -> Result<(), PostError> {
        let count = std::mem::take(&mut self.count);
        let start = self.wrs.as_mut_ptr();
        let Some(put) = self.wrs.get_mut(..count) else { return Ok(()) };
        let Some(last) = put.last_mut() else { return Ok(()) };
        last.next = ptr::null_mut();
        // SAFETY: a linked list of requests with segments of this object's; DELs name entries in use; and nobody
        // polls, since that needs the queue's owner too.
        let errno = unsafe { (self.call)(self.srq, start, &raw mut self.bad) };
        // What the driver wrote, it wrote by its own pointer.
        let put = self.wrs.get_mut(..count).unwrap_or_default();
        if let Some(last) = put.last_mut() {
            last.next = start.wrapping_add(count);
        }
        if errno != 0 {
            let posted = self.bad.addr().saturating_sub(start.addr()) / size_of::<types::ibv_ops_wr>();
            return Err(refused(posted, errno));
        }
        for wr in put {
            if wr.opcode == sys::IBV_WR_TAG_ADD {
                ledger.numbered(TagHandle::from_bits(wr.wr_id), wr.tm.handle);
            }
        }
        Ok(())
    }
}

/// What is written of an ADD beside its terms and its segment.
#[inline(always)]
fn write_add(wr: &mut types::ibv_ops_wr, handle: TagHandle, tag: Tag, ignore: Ignore) {
    wr.tm.add.recv_wr_id = handle.to_bits();
    wr.tm.add.tag = tag.0;
    wr.tm.add.mask = ignore.mask();
}

/// A buffer, as far as the driver wants to know it: one of 2^31 bytes at most.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "no buffer is longer, which is looked at before")]
fn segment_of(buffer: &Buffer) -> types::ibv_sge {
    let Buffer { address, length, key, .. } = *buffer;
    debug_assert!(length <= 1 << 31, "{length}");
    types::ibv_sge { addr: address, length: length as u32, lkey: key }
}

#[cold]
#[inline(never)]
fn refused(posted: usize, errno: libc::c_int) -> PostError {
    PostError { posted, cause: Errno::returned(errno) }
}

impl Terms {
    fn put(self, wr: &mut types::ibv_ops_wr, opcode: u32, wr_id: u64) {
        let signalled = if self.signalled { sys::IBV_OPS_SIGNALED } else { 0 };
        let sync = if self.unexpected_count.is_some() { sys::IBV_OPS_TM_SYNC } else { 0 };
        wr.wr_id = wr_id;
        wr.opcode = opcode;
        wr.flags = signalled | sync;
        wr.tm.unexpected_cnt = self.unexpected_count.unwrap_or(0).into();
    }
}

/// What a completion is, by its flags where it has some (TM-CONTRACT 9), and what it does to the accounts.
fn account(ledger: &mut Ledger, completion: &Completion) -> Result<(TagCompletionKind, bool), LedgerError> {
    let flags = completion.flags;
    let success = match completion.status {
        sys::IBV_WC_SUCCESS | sys::IBV_WC_TM_RNDV_INCOMPLETE => true,
        sys::IBV_WC_TM_ERR => false,
        _ => return Ok((TagCompletionKind::Failed, false)),
    };
    let operation = match completion.opcode {
        sys::IBV_WC_TM_ADD => Some(Kind::Add),
        sys::IBV_WC_TM_DEL => Some(Kind::Del),
        sys::IBV_WC_TM_SYNC => Some(Kind::Sync),
        _ => None,
    };
    if let Some(kind) = operation {
        let (entry, released) = ledger.operation_done(kind, success)?;
        return Ok((TagCompletionKind::Operation(kind, entry), released));
    }
    let is_data = flags.has(Flags::DATA_VALID);
    if flags.has(Flags::MATCHED) || is_data || completion.status == sys::IBV_WC_TM_RNDV_INCOMPLETE {
        let entry = TagHandle::from_bits(completion.wr_id);
        if !ledger.is_in_use(entry) {
            return Err(LedgerError::NothingOwed { index: entry.index });
        }
        let released = if is_data { ledger.matched(entry)? } else { false };
        return Ok((TagCompletionKind::Match(entry), released));
    }
    match completion.opcode {
        sys::IBV_WC_TM_NO_TAG => Ok((TagCompletionKind::NoTag, false)),
        _ => Ok((TagCompletionKind::Unexpected, false)),
    }
}

/// Operations that can be outstanding where so many were asked for (TM-CONTRACT 6.1): a power of two.
#[must_use]
pub fn command_slots(operations: u32) -> u32 {
    if operations == 0 { 0 } else { operations.checked_next_power_of_two().unwrap_or(u32::MAX) }
}

type PostSrqOps = unsafe extern "C" fn(
    *mut types::ibv_srq,
    *mut types::ibv_ops_wr,
    *mut *mut types::ibv_ops_wr,
) -> libc::c_int;

/// Operations that go down in one list at most.
const BATCH: usize = 64;
const EMPTY: types::ibv_ops_wr = types::ibv_ops_wr {
    wr_id: 0,
    next: ptr::null_mut(),
    opcode: sys::IBV_WR_TAG_SYNC,
    flags: 0,
    tm: types::ibv_ops_wr_tm {
        unexpected_cnt: 0,
        handle: 0,
        add: types::ibv_ops_wr_add { recv_wr_id: 0, sg_list: ptr::null_mut(), num_sge: 0, tag: 0, mask: 0 },
    },
};

#[cfg(test)]
mod tests {
    use super::*;

    fn completion(opcode: u32, flags: Flags) -> Completion {
        Completion { opcode, flags, ..Completion::default() }
    }

    fn one_entry() -> Ledger {
        let mut ledger = Ledger::new(1, 4);
        assert!(ledger.add(TagHandle::from_bits(0), types::ibv_sge::default(), false).unwrap().is_some());
        ledger
    }

    const FIRST: TagCompletionKind = TagCompletionKind::Match(TagHandle { index: 0, generation: 0 });

    #[test]
    fn flags_decide_what_a_completion_is_and_not_its_opcode() {
        for opcode in [sys::IBV_WC_TM_RECV, sys::IBV_WC_RECV, sys::IBV_WC_SEND] {
            let told = account(&mut one_entry(), &completion(opcode, Flags::WHOLE)).unwrap();
            assert_eq!(told, (FIRST, true), "{opcode}");
        }
        for opcode in [sys::IBV_WC_TM_RECV, sys::IBV_WC_RECV] {
            let told = account(&mut one_entry(), &completion(opcode, Flags::NONE)).unwrap();
            assert_eq!(told, (TagCompletionKind::Unexpected, false), "{opcode}");
        }
        let told = account(&mut one_entry(), &completion(sys::IBV_WC_TM_NO_TAG, Flags::NONE)).unwrap();
        assert_eq!(told.0, TagCompletionKind::NoTag);
    }

    #[test]
    fn an_entry_is_released_by_the_completion_with_its_data() {
        let mut ledger = one_entry();
        let told = account(&mut ledger, &completion(sys::IBV_WC_TM_RECV, Flags::MATCHED)).unwrap();
        assert!(!told.1);
        let told = account(&mut ledger, &completion(sys::IBV_WC_TM_RECV, Flags::DATA_VALID)).unwrap();
        assert!(told.1);
    }

    #[test]
    fn a_match_of_an_entry_not_in_use_is_an_error_and_one_with_an_error_names_none() {
        let mut ledger = Ledger::new(1, 4);
        let error = account(&mut ledger, &completion(sys::IBV_WC_TM_RECV, Flags::WHOLE)).unwrap_err();
        assert_eq!(error, LedgerError::NothingOwed { index: 0 });
        let failed =
            Completion { status: sys::IBV_WC_GENERAL_ERR, ..completion(sys::IBV_WC_TM_RECV, Flags::NONE) };
        assert_eq!(account(&mut ledger, &failed).unwrap().0, TagCompletionKind::Failed);
    }

    #[test]
    fn a_rendezvous_that_is_handed_back_is_a_match_whatever_its_flags() {
        let incomplete = Completion {
            status: sys::IBV_WC_TM_RNDV_INCOMPLETE,
            ..completion(sys::IBV_WC_TM_RECV, Flags::MATCHED)
        };
        let told = account(&mut one_entry(), &incomplete).unwrap();
        assert_eq!(told, (FIRST, false));
    }

    #[test]
    fn slots_are_the_next_power_of_two() {
        let slots = [0, 1, 2, 4, 8, 10, 16, 17, 100, 256].map(command_slots);
        assert_eq!(slots, [0, 1, 2, 4, 8, 16, 16, 32, 128, 256]);
    }
}
