//! Shared receive queues: basic, and with tag matching.

use std::cell::Cell;
use std::ptr;
use std::rc::Rc;

use tagmatch::device::verbs::sys::types::{
    ibv_cq, ibv_ops_wr, ibv_ops_wr_add, ibv_ops_wr_tm, ibv_recv_wr, ibv_sge, ibv_srq, ibv_srq_attr,
    ibv_srq_init_attr, ibv_srq_init_attr_ex, ibv_tm_cap,
};
use tagmatch::device::verbs::sys::{
    self, IBV_OPS_SIGNALED, IBV_OPS_TM_SYNC, IBV_SRQ_INIT_ATTR_CQ, IBV_SRQ_INIT_ATTR_PD,
    IBV_SRQ_INIT_ATTR_TM, IBV_SRQ_INIT_ATTR_TYPE, IBV_SRQT_TM, IBV_WR_TAG_ADD, IBV_WR_TAG_DEL,
    IBV_WR_TAG_SYNC,
};

use super::cq::{Cq, CqEx, result};
use super::device::Pd;
use super::memory::Part;

/// What an SRQ is asked for.
#[derive(Debug)]
pub struct SrqRequest<'a> {
    /// `attr.max_wr`
    pub receives: u32,
    /// `attr.max_sge`
    pub segments: u32,
    /// Which kind.
    pub form: SrqForm<'a>,
}

/// Kinds of SRQs.
#[derive(Debug)]
pub enum SrqForm<'a> {
    /// `ibv_create_srq`
    Basic,
    /// `IBV_SRQT_TM`
    Tm {
        /// `tm_cap.max_num_tags`
        tags: u32,
        /// `tm_cap.max_ops`
        operations: u32,
        /// The CQ, as it should be.
        cq: &'a Rc<CqEx>,
        /// Bits of `comp_mask` that are left out.
        without: u32,
        /// A CQ of `ibv_create_cq`, given instead.
        plain: Option<&'a Rc<Cq>>,
    },
}

/// An SRQ.
#[derive(Debug)]
pub struct Srq {
    pd: Rc<Pd>,
    _cq: Option<Rc<CqEx>>,
    pub(super) raw: *mut ibv_srq,
    receives: u32,
    is_gone: Cell<bool>,
}

impl Srq {
    /// `ibv_create_srq` or `ibv_create_srq_ex`.
    ///
    /// # Errors
    /// errno
    pub fn new(pd: &Rc<Pd>, request: &SrqRequest<'_>) -> Result<Rc<Self>, i32> {
        let attr = ibv_srq_attr { max_wr: request.receives, max_sge: request.segments, srq_limit: 0 };
        let (raw, receives, cq) = match &request.form {
            SrqForm::Basic => {
                let mut attributes = ibv_srq_init_attr { srq_context: ptr::null_mut(), attr };
                // SAFETY: the domain exists.
                let raw = unsafe { (pd.device.library.ibv_create_srq)(pd.raw, &raw mut attributes) };
                (raw, attributes.attr.max_wr, None)
            }
            SrqForm::Tm { tags, operations, cq, without, plain } => {
                let all = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ;
                let mut attributes = ibv_srq_init_attr_ex {
                    srq_context: ptr::null_mut(),
                    attr,
                    comp_mask: (all | IBV_SRQ_INIT_ATTR_TM) & !without,
                    srq_type: IBV_SRQT_TM,
                    pd: pd.raw,
                    xrcd: ptr::null_mut(),
                    cq: plain.map_or(cq.raw.cast::<ibv_cq>(), |plain| plain.raw),
                    tm_cap: ibv_tm_cap { max_num_tags: *tags, max_ops: *operations },
                };
                let context = pd.device.context;
                // SAFETY: the context is open; domain and queue exist.
                let raw = unsafe { sys::inline::create_srq_ex(context, &mut attributes) }?;
                (raw, attributes.attr.max_wr, Some(Rc::clone(cq)))
            }
        };
        if raw.is_null() {
            return Err(super::errno());
        }
        Ok(Rc::new(Self { pd: Rc::clone(pd), _cq: cq, raw, receives, is_gone: Cell::new(false) }))
    }

    /// The `attr.max_wr` that creation answered.
    #[must_use]
    pub const fn receives(&self) -> u32 {
        self.receives
    }

    /// `ibv_get_srq_num`
    ///
    /// # Errors
    /// errno
    pub fn number(&self) -> Result<u32, i32> {
        let mut number = 0;
        // SAFETY: the SRQ exists.
        result(unsafe { sys::inline::get_srq_num(self.raw, &mut number) }).map(|()| number)
    }

    /// `ibv_post_srq_recv`
    ///
    /// # Errors
    /// errno
    pub fn post_recv(&self, wr_id: u64, part: Part) -> Result<(), i32> {
        let mut segment = part.segment();
        let mut request = ibv_recv_wr { wr_id, next: ptr::null_mut(), sg_list: &raw mut segment, num_sge: 1 };
        let mut bad = ptr::null_mut();
        // SAFETY: the SRQ exists, the list is one request, and the memory stays: regions outlive queues.
        result(unsafe { sys::inline::post_srq_recv(self.raw, &raw mut request, &mut bad) })
    }

    /// `ibv_post_srq_ops` of a list: the handles of the ADDs that were taken; errno and place of the one that failed.
    #[must_use]
    pub fn post_ops(&self, list: &[Operation]) -> (Vec<u32>, Option<(i32, usize)>) {
        let mut segments: Vec<Vec<ibv_sge>> = list.iter().map(Operation::segments).collect();
        let lists = segments.iter_mut();
        let mut requests: Vec<_> =
            list.iter().zip(lists).map(|(operation, segments)| operation.request(segments)).collect();
        let first = requests.as_mut_ptr();
        for number in 1..requests.len() {
            // SAFETY: within the list.
            let next = unsafe { first.add(number) };
            // SAFETY: within the list.
            let this = unsafe { first.add(number - 1) };
            // SAFETY: within the list.
            unsafe { (*this).next = next };
        }
        let mut bad = ptr::null_mut();
        // SAFETY: the SRQ exists; the list is linked to its end; one thread; handles come from this SRQ.
        let errno = unsafe { sys::inline::post_srq_ops(self.raw, first, &mut bad) };
        let place = bad.addr().wrapping_sub(first.addr()) / size_of::<ibv_ops_wr>();
        let taken = if errno == 0 { requests.len() } else { place.min(requests.len()) };
        let added = requests.iter().take(taken).filter(|request| request.opcode == IBV_WR_TAG_ADD);
        (added.map(|request| request.tm.handle).collect(), (errno != 0).then_some((errno, place)))
    }

    /// `ibv_destroy_srq`: 0 or errno. Where it is refused, it can be tried again.
    pub fn destroy(&self) -> i32 {
        if self.is_gone.get() {
            return 0;
        }
        // SAFETY: created here, not destroyed.
        let errno = unsafe { (self.pd.device.library.ibv_destroy_srq)(self.raw) };
        self.is_gone.set(errno == 0);
        errno
    }

    pub(super) fn is_gone(&self) -> bool {
        self.is_gone.get()
    }
}

impl Drop for Srq {
    fn drop(&mut self) {
        self.destroy();
    }
}

/// One `ibv_ops_wr`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Operation {
    /// Comes back.
    pub wr_id: u64,
    /// What to do.
    pub kind: OperationKind,
    /// `IBV_OPS_SIGNALED`
    pub signalled: bool,
    /// `tm.unexpected_cnt`
    pub count: u32,
    /// `IBV_OPS_TM_SYNC`
    pub count_valid: bool,
}

/// Its opcode.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OperationKind {
    /// `IBV_WR_TAG_ADD`
    Add {
        /// `recv_wr_id`
        receive: u64,
        /// `sg_list`
        segments: Vec<Part>,
        /// What to compare with.
        tag: u64,
        /// Which bits.
        mask: u64,
    },
    /// `IBV_WR_TAG_DEL`
    Del(u32),
    /// `IBV_WR_TAG_SYNC`
    Sync,
    /// Any other.
    Unknown(u32),
}

impl Operation {
    fn segments(&self) -> Vec<ibv_sge> {
        match &self.kind {
            OperationKind::Add { segments, .. } => segments.iter().map(|part| part.segment()).collect(),
            OperationKind::Del(_) | OperationKind::Sync | OperationKind::Unknown(_) => Vec::new(),
        }
    }

    fn request(&self, segments: &mut [ibv_sge]) -> ibv_ops_wr {
        let (opcode, handle, receive, tag, mask) = match self.kind {
            OperationKind::Add { receive, tag, mask, .. } => (IBV_WR_TAG_ADD, 0, receive, tag, mask),
            OperationKind::Del(handle) => (IBV_WR_TAG_DEL, handle, 0, 0, 0),
            OperationKind::Sync => (IBV_WR_TAG_SYNC, 0, 0, 0, 0),
            OperationKind::Unknown(opcode) => (opcode, 0, 0, 0, 0),
        };
        let signalled = if self.signalled { IBV_OPS_SIGNALED } else { 0 };
        let counting = if self.count_valid { IBV_OPS_TM_SYNC } else { 0 };
        let num_sge = i32::try_from(segments.len()).unwrap_or(i32::MAX);
        let add = ibv_ops_wr_add { recv_wr_id: receive, sg_list: segments.as_mut_ptr(), num_sge, tag, mask };
        ibv_ops_wr {
            wr_id: self.wr_id,
            next: ptr::null_mut(),
            opcode,
            flags: signalled | counting,
            tm: ibv_ops_wr_tm { unexpected_cnt: self.count, handle, add },
        }
    }
}
