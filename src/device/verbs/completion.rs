//! Completion queues, and what they hold.
//!
//! The kind with tag-matching information (`ibv_create_cq_ex`) is polled by batches: a poll section of the library is
//! never left open, so that nothing can be posted in one (TM-CONTRACT 6.2). The plain kind (`ibv_create_cq`) is for
//! sends, and for receives without tag matching. What is decoded here is decoded by flags (TM-CONTRACT 15.6).

use std::fmt;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Arc;

use super::channel::Channel;
use super::context::Context;
use super::error::VerbsError;
use super::sys::{self, Library, types};

/// A work completion, decoded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Completion {
    /// `enum ibv_wc_status`; 0 is success.
    pub status: u32,
    /// The id of the request or receive. It may name nothing where `status` is not success.
    pub wr_id: u64,
    /// `enum ibv_wc_opcode`. Not to be relied on where `status` is not success.
    pub opcode: u32,
    /// The vendor's error.
    pub vendor_error: u32,
    /// Bytes.
    pub byte_len: u32,
    /// Immediate data.
    pub immediate: Option<u32>,
    /// The local QP.
    pub qp_num: u32,
    /// What is valid, and what has happened.
    pub flags: Flags,
    /// Of a message: its tag, with [`Flags::MATCHED`] only.
    pub tag: u64,
    /// Of a message: its sender's word, with [`Flags::MATCHED`] only. Of a list operation: the device's count, in the
    /// upper half.
    pub app_ctx: u32,
}

/// An open poll section, which is at a completion: that is read piece by piece as it is wanted, so that what most
/// completions are is read to where it is to lie.
///
/// The section ends with this, also when whoever takes the completions panics, since the library holds a lock in it.
#[derive(Debug)]
pub struct Section<'a> {
    queue: *mut types::ibv_cq_ex,
    read: &'a Accessors,
}

impl Section<'_> {
    /// Go on to the next completion. False: there is none, and the section is at none; it is of no more use.
    ///
    /// # Errors
    /// The queue is broken, and the section is of no more use. What was taken before stands.
    #[inline(always)]
    pub(super) fn advance(&mut self) -> Result<bool, PollError> {
        // SAFETY: a section is open.
        let result = unsafe { (self.read.next_poll)(self.queue) };
        match result {
            0 => Ok(true),
            libc::ENOENT => Ok(false),
            result => Err(PollError { result }),
        }
    }

    /// Whether it is a match with all of its data and no immediate. Flags decide (TM-CONTRACT 15.6): this needs no opcode.
    #[inline(always)]
    #[must_use]
    pub fn is_whole(&self) -> bool {
        // SAFETY: the queue exists.
        if unsafe { (*self.queue).status } != sys::IBV_WC_SUCCESS {
            return false;
        }
        // SAFETY: a section is open at a completion, as long as this is there.
        let flags = unsafe { (self.read.flags)(self.queue) };
        flags & (Flags::WHOLE.0 | sys::IBV_WC_WITH_IMM) == Flags::WHOLE.0
    }

    /// The id of the receive.
    #[inline(always)]
    #[must_use]
    pub fn wr_id(&self) -> u64 {
        // SAFETY: the queue exists.
        unsafe { (*self.queue).wr_id }
    }

    /// The local QP, of a message.
    #[inline(always)]
    #[must_use]
    pub fn qp_num(&self) -> u32 {
        // SAFETY: a section is open at a completion, as long as this is there.
        unsafe { (self.read.qp_num)(self.queue) }
    }

    /// Bytes, of a message.
    #[inline(always)]
    #[must_use]
    pub fn byte_len(&self) -> u32 {
        // SAFETY: a section is open at a completion, as long as this is there.
        unsafe { (self.read.byte_len)(self.queue) }
    }

    /// Its tag and its sender's word, of a match.
    #[inline(always)]
    #[must_use]
    pub fn tag_and_app_ctx(&self) -> (u64, u32) {
        let mut info = MaybeUninit::<types::ibv_wc_tm_info>::uninit();
        // SAFETY: a section is open at a completion, as long as this is there, and the call writes all of the place.
        unsafe { (self.read.tm_info)(self.queue, info.as_mut_ptr()) };
        // SAFETY: it was written.
        let types::ibv_wc_tm_info { tag, r#priv: app_ctx } = unsafe { info.assume_init() };
        (tag, app_ctx)
    }

    /// All of it.
    #[inline(always)]
    #[must_use]
    pub fn completion(&self) -> Completion {
        // SAFETY: a section is open at a completion, as long as this is there.
        unsafe { self.read.completion(self.queue) }
    }
}

/// `ibv_wc_flags`, as far as tag matching uses them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Flags(u32);

impl Flags {
    /// None of them.
    pub const NONE: Self = Self(0);
    /// `IBV_WC_TM_MATCH`
    pub const MATCHED: Self = Self(sys::IBV_WC_TM_MATCH);
    /// `IBV_WC_TM_DATA_VALID`
    pub const DATA_VALID: Self = Self(sys::IBV_WC_TM_DATA_VALID);
    /// Both: a match with all of its data.
    pub const WHOLE: Self = Self(sys::IBV_WC_TM_MATCH | sys::IBV_WC_TM_DATA_VALID);
    /// `IBV_WC_TM_SYNC_REQ`
    pub const SYNC_REQUESTED: Self = Self(sys::IBV_WC_TM_SYNC_REQ);

    const fn new(flags: u32) -> Self {
        Self(flags & (Self::WHOLE.0 | Self::SYNC_REQUESTED.0))
    }

    /// Whether all of these are set.
    #[must_use]
    pub const fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }
}

impl Completion {
    fn plain(wc: &types::ibv_wc) -> Self {
        let with_immediate = wc.wc_flags & sys::IBV_WC_WITH_IMM != 0;
        Self {
            status: wc.status,
            wr_id: wc.wr_id,
            opcode: wc.opcode,
            vendor_error: wc.vendor_err,
            byte_len: wc.byte_len,
            immediate: with_immediate.then(|| u32::from_be(wc.imm_data)),
            qp_num: wc.qp_num,
            flags: Flags::default(),
            tag: 0,
            app_ctx: 0,
        }
    }

    /// Whether it succeeded.
    #[must_use]
    pub const fn is_success(&self) -> bool {
        self.status == sys::IBV_WC_SUCCESS
    }

    /// A list operation.
    #[must_use]
    pub const fn is_operation(&self) -> bool {
        matches!(self.opcode, sys::IBV_WC_TM_ADD | sys::IBV_WC_TM_DEL | sys::IBV_WC_TM_SYNC)
    }

    /// A message in a receive, matched or not.
    #[must_use]
    pub const fn is_receive(&self) -> bool {
        matches!(self.opcode, sys::IBV_WC_RECV | sys::IBV_WC_TM_RECV | sys::IBV_WC_TM_NO_TAG)
    }
}

/// A completion queue that could not be read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[error(
    "polling the completion queue failed with {result}: it was overrun, or the device wrote what cannot be"
)]
pub struct PollError {
    /// What the call returned.
    pub result: i32,
}

/// A completion queue of the plain kind. The only way to poll it is through this; queue pairs hold it as well.
#[derive(Debug)]
pub struct CompletionQueue {
    inner: Arc<Queue>,
    batch: Vec<types::ibv_wc>,
}

impl CompletionQueue {
    /// At least so many entries.
    ///
    /// # Errors
    /// More than the device has.
    pub fn new(context: &Context, entries: u32) -> Result<Self, VerbsError> {
        Self::with_channel(context, entries, None)
    }

    /// The same, which says on a channel that something has come.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_channel(
        context: &Context,
        entries: u32,
        channel: Option<&Channel>,
    ) -> Result<Self, VerbsError> {
        let count = i32::try_from(entries).unwrap_or(i32::MAX);
        let on = channel.map_or(ptr::null_mut(), Channel::raw);
        let create = context.library().ibv_create_cq;
        // SAFETY: the context is open, and the channel lives as long as the queue.
        let raw = unsafe { create(context.raw(), count, ptr::null_mut(), on, 0) };
        if raw.is_null() {
            return Err(context.failed("ibv_create_cq"));
        }
        let inner = Arc::new(Queue { raw, context: context.clone(), _channel: channel.cloned() });
        Ok(Self { inner, batch: vec![types::ibv_wc::default(); BATCH] })
    }

    /// Take what is there, a batch at most, and say how many.
    ///
    /// # Errors
    /// The queue is broken.
    pub fn poll(&mut self, take: impl FnMut(Completion)) -> Result<usize, PollError> {
        let count = self.fetch()?;
        self.fetched(count).for_each(take);
        Ok(count)
    }

    /// Take what is there, a batch at most, for [`Self::fetched`] to tell, and say how many.
    ///
    /// # Errors
    /// The queue is broken.
    #[inline(always)]
    pub(super) fn fetch(&mut self) -> Result<usize, PollError> {
        // SAFETY: the queue exists.
        let result = unsafe { sys::inline::poll_cq(self.inner.raw, &mut self.batch) };
        usize::try_from(result).map_err(|_| PollError { result })
    }

    /// So many that were fetched last.
    pub(super) fn fetched(&self, count: usize) -> impl Iterator<Item = Completion> + '_ {
        self.batch.iter().take(count).map(Completion::plain)
    }

    /// For objects that complete here.
    #[must_use]
    pub fn handle(&self) -> QueueHandle {
        QueueHandle(Arc::clone(&self.inner))
    }

    /// Entries.
    #[must_use]
    pub fn entries(&self) -> u32 {
        self.inner.entries()
    }
}

/// A completion queue of the extended kind, with tag-matching information.
#[derive(Debug)]
pub struct TagMatchingQueue {
    inner: Arc<Queue>,
    read: Accessors,
}

impl TagMatchingQueue {
    /// At least so many entries.
    ///
    /// # Errors
    /// `EOPNOTSUPP` where the provider knows no extended queues or no tag matching; or more entries than it has.
    pub fn new(context: &Context, entries: u32) -> Result<Self, VerbsError> {
        Self::with_channel(context, entries, None)
    }

    /// The same, which says on a channel that something has come.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_channel(
        context: &Context,
        entries: u32,
        channel: Option<&Channel>,
    ) -> Result<Self, VerbsError> {
        let mut attr = types::ibv_cq_init_attr_ex {
            cqe: entries,
            cq_context: ptr::null_mut(),
            channel: channel.map_or(ptr::null_mut(), Channel::raw),
            comp_vector: 0,
            wc_flags: u64::from(WANTED),
            comp_mask: 0,
            flags: 0,
            parent_domain: ptr::null_mut(),
        };
        // SAFETY: the context is open, and the channel lives as long as the queue; no parent domain.
        let created = unsafe { sys::inline::create_cq_ex(context.raw(), &mut attr) };
        let raw = created.map_err(|errno| context.returned("ibv_create_cq_ex", errno))?;
        if raw.is_null() {
            return Err(context.failed("ibv_create_cq_ex"));
        }
        let inner = Arc::new(Queue { raw: raw.cast(), context: context.clone(), _channel: channel.cloned() });
        // SAFETY: the queue was just made.
        let read = unsafe { Accessors::of(raw) };
        let read = read.ok_or_else(|| context.returned("ibv_create_cq_ex(TM_INFO)", libc::EOPNOTSUPP))?;
        Ok(Self { inner, read })
    }

    /// Open a section of the library at the first completion. None: there is none, and no section is open.
    ///
    /// # Errors
    /// The queue is broken, and no section is open.
    #[inline(always)]
    pub fn open(&mut self) -> Result<Option<Section<'_>>, PollError> {
        let (queue, read) = (self.raw(), &self.read);
        // `struct ibv_poll_cq_attr`, of which no field is in use.
        let mut none = 0;
        // SAFETY: the queue exists, and no section is open: that would hold this.
        let result = unsafe { (read.start_poll)(queue, &raw mut none) };
        match result {
            0 => Ok(Some(Section { queue, read })),
            libc::ENOENT => Ok(None),
            result => Err(PollError { result }),
        }
    }

    /// For objects that complete here.
    #[must_use]
    pub fn handle(&self) -> QueueHandle {
        QueueHandle(Arc::clone(&self.inner))
    }

    fn raw(&self) -> *mut types::ibv_cq_ex {
        self.inner.raw.cast()
    }
}

/// A completion queue, for those who do not poll it.
#[derive(Clone, Debug)]
pub struct QueueHandle(Arc<Queue>);

impl QueueHandle {
    pub(super) fn raw(&self) -> *mut types::ibv_cq {
        self.0.raw
    }

    /// Say on the channel when the next completion comes. What has come before says nothing: look again behind this.
    pub fn arm(&self) {
        // SAFETY: the queue exists. What cannot be armed says nothing.
        let _errno = unsafe { sys::inline::req_notify_cq(self.0.raw, false) };
    }
}

struct Queue {
    raw: *mut types::ibv_cq,
    context: Context,
    /// Outlives the queue.
    _channel: Option<Channel>,
}

// SAFETY: libibverbs locks what threads share.
unsafe impl Send for Queue {}
// SAFETY: as above.
unsafe impl Sync for Queue {}

impl Queue {
    fn entries(&self) -> u32 {
        // SAFETY: the queue exists.
        let entries = unsafe { (*self.raw).cqe };
        u32::try_from(entries).unwrap_or(0)
    }

    fn library(&self) -> &'static Library {
        self.context.library()
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: everything that completes here holds it and is gone.
        let _errno = unsafe { (self.library().ibv_destroy_cq)(self.raw) };
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CompletionQueue").field(&self.context.name()).finish()
    }
}

/// The functions of an extended queue, which has a slot for each; those not asked for are empty.
#[derive(Clone, Copy, Debug)]
struct Accessors {
    start_poll: unsafe extern "C" fn(*mut types::ibv_cq_ex, *mut u32) -> libc::c_int,
    next_poll: unsafe extern "C" fn(*mut types::ibv_cq_ex) -> libc::c_int,
    end_poll: unsafe extern "C" fn(*mut types::ibv_cq_ex),
    opcode: Read,
    vendor_error: Read,
    byte_len: Read,
    immediate: Read,
    qp_num: Read,
    flags: Read,
    tm_info: unsafe extern "C" fn(*mut types::ibv_cq_ex, *mut types::ibv_wc_tm_info),
}

type Read = unsafe extern "C" fn(*mut types::ibv_cq_ex) -> u32;

impl Drop for Section<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: a section of this queue is open, also behind its last completion.
        unsafe { (self.read.end_poll)(self.queue) };
    }
}

impl Accessors {
    /// # Safety
    /// The queue exists.
    unsafe fn of(queue: *mut types::ibv_cq_ex) -> Option<Self> {
        // SAFETY: the queue exists, and nobody else uses it yet.
        let queue = unsafe { &*queue };
        Some(Self {
            start_poll: queue.start_poll?,
            next_poll: queue.next_poll?,
            end_poll: queue.end_poll?,
            opcode: queue.read_opcode?,
            vendor_error: queue.read_vendor_err?,
            byte_len: queue.read_byte_len?,
            immediate: queue.read_imm_data?,
            qp_num: queue.read_qp_num?,
            flags: queue.read_wc_flags?,
            tm_info: queue.read_tm_info?,
        })
    }

    /// Reads what this kind of completion has, and nothing else.
    ///
    /// # Safety
    /// A section is open, and is at a completion.
    #[inline(never)]
    unsafe fn completion(&self, queue: *mut types::ibv_cq_ex) -> Completion {
        // SAFETY: the queue exists.
        let status = unsafe { (*queue).status };
        // SAFETY: the queue exists.
        let wr_id = unsafe { (*queue).wr_id };
        let mut completion = Completion { status, wr_id, ..Completion::default() };
        let is_told =
            matches!(status, sys::IBV_WC_SUCCESS | sys::IBV_WC_TM_ERR | sys::IBV_WC_TM_RNDV_INCOMPLETE);
        if !is_told {
            // SAFETY: a section is open at a completion.
            completion.qp_num = unsafe { (self.qp_num)(queue) };
            // SAFETY: as above.
            completion.vendor_error = unsafe { (self.vendor_error)(queue) };
            return completion;
        }
        // SAFETY: as above.
        completion.opcode = unsafe { (self.opcode)(queue) };
        // SAFETY: as above.
        let flags = unsafe { (self.flags)(queue) };
        completion.flags = Flags::new(flags);
        let is_operation = completion.is_operation();
        if !is_operation {
            // SAFETY: as above.
            completion.qp_num = unsafe { (self.qp_num)(queue) };
            // SAFETY: as above.
            completion.byte_len = unsafe { (self.byte_len)(queue) };
            if flags & sys::IBV_WC_WITH_IMM != 0 {
                // SAFETY: as above, and the completion has an immediate.
                completion.immediate = Some(u32::from_be(unsafe { (self.immediate)(queue) }));
            }
        }
        if is_operation || completion.flags.has(Flags::MATCHED) {
            let mut info = types::ibv_wc_tm_info::default();
            // SAFETY: as above.
            unsafe { (self.tm_info)(queue, &raw mut info) };
            (completion.tag, completion.app_ctx) = (info.tag, info.r#priv);
        }
        completion
    }
}

const BATCH: usize = 32;
const WANTED: u32 = sys::IBV_WC_EX_WITH_BYTE_LEN
    | sys::IBV_WC_EX_WITH_IMM
    | sys::IBV_WC_EX_WITH_QP_NUM
    | sys::IBV_WC_EX_WITH_SRC_QP
    | sys::IBV_WC_EX_WITH_TM_INFO;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_tag_matching_are_told_apart() {
        let all = sys::IBV_WC_TM_MATCH | sys::IBV_WC_TM_DATA_VALID | sys::IBV_WC_TM_SYNC_REQ;
        let flags = Flags::new(all);
        assert!(flags.has(Flags::WHOLE) && flags.has(Flags::SYNC_REQUESTED));
        assert_eq!(Flags::new(sys::IBV_WC_TM_MATCH), Flags::MATCHED);
        assert!(!Flags::MATCHED.has(Flags::WHOLE) && Flags::WHOLE.has(Flags::DATA_VALID));
        assert_eq!(Flags::new(sys::IBV_WC_WITH_IMM | sys::IBV_WC_GRH), Flags::default());
    }

    #[test]
    fn the_immediate_of_a_plain_completion_is_in_network_order_and_counts_with_its_flag_only() {
        let wc = types::ibv_wc { imm_data: 0x0102_0304_u32.to_be(), ..types::ibv_wc::default() };
        assert_eq!(Completion::plain(&wc).immediate, None);
        let wc = types::ibv_wc { wc_flags: sys::IBV_WC_WITH_IMM, ..wc };
        assert_eq!(Completion::plain(&wc).immediate, Some(0x0102_0304));
    }
}
