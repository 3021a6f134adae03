//! Reliable connected queue pairs.

use std::ptr;
use std::rc::Rc;

use tagmatch::device::verbs::sys::types::{
    ibv_cq, ibv_qp, ibv_qp_attr, ibv_qp_cap, ibv_qp_init_attr, ibv_recv_wr, ibv_send_wr, ibv_send_wr_atomic,
    ibv_send_wr_rdma, ibv_send_wr_wr,
};
use tagmatch::device::verbs::sys::{
    self, IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_ATOMIC, IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_WRITE,
    IBV_QP_ACCESS_FLAGS, IBV_QP_AV, IBV_QP_DEST_QPN, IBV_QP_MAX_DEST_RD_ATOMIC, IBV_QP_MAX_QP_RD_ATOMIC,
    IBV_QP_MIN_RNR_TIMER, IBV_QP_PATH_MTU, IBV_QP_PKEY_INDEX, IBV_QP_PORT, IBV_QP_RETRY_CNT,
    IBV_QP_RNR_RETRY, IBV_QP_RQ_PSN, IBV_QP_SQ_PSN, IBV_QP_STATE, IBV_QP_TIMEOUT, IBV_QPS_ERR, IBV_QPS_INIT,
    IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPT_RC, IBV_SEND_FENCE, IBV_SEND_INLINE, IBV_SEND_SIGNALED,
    IBV_SEND_SOLICITED, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND,
    IBV_WR_SEND_WITH_IMM,
};

use super::cq::{Cq, CqEx, result};
use super::device::Pd;
use super::memory::Part;
use super::srq::Srq;

/// How a QP is made.
#[derive(Clone, Debug)]
pub struct QpForm {
    /// `send_cq`
    pub send_cq: Rc<Cq>,
    /// `recv_cq`
    pub recv_cq: Rc<Cq>,
    /// `srq`
    pub srq: Option<Rc<Srq>>,
    /// `max_send_wr`; 0: no send queue.
    pub sends: u32,
    /// `max_recv_wr`
    pub receives: u32,
    /// `max_send_sge` and `max_recv_sge`
    pub segments: u32,
    /// `max_inline_data`
    pub inline: u32,
}

/// How a connection behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Connection {
    /// The QP at the other end.
    pub to: u32,
    /// `ibv_mtu`
    pub mtu: u32,
    /// `retry_cnt`
    pub retries: u8,
    /// `rnr_retry`; 7: for ever.
    pub rnr_retries: u8,
    /// The GID of the port of that QP; `None`: the own one.
    pub gid: Option<[u8; 16]>,
}

impl Connection {
    /// To a QP, with 256 bytes a packet, retrying for ever while there is no receive.
    #[must_use]
    pub const fn to(qp_num: u32) -> Self {
        Self { to: qp_num, mtu: 1, retries: 7, rnr_retries: 7, gid: None }
    }

    /// To a QP of the port that has this GID.
    #[must_use]
    pub const fn over(qp_num: u32, gid: [u8; 16]) -> Self {
        Self { gid: Some(gid), ..Self::to(qp_num) }
    }
}

/// A QP.
#[derive(Debug)]
pub struct Qp {
    pd: Rc<Pd>,
    form: QpForm,
    raw: *mut ibv_qp,
    _extended: Option<Rc<CqEx>>,
}

/// A work request of a send queue.
#[derive(Clone, Debug)]
pub struct Wr {
    /// Comes back.
    pub wr_id: u64,
    /// What to do.
    pub request: Request,
    /// Local memory.
    pub parts: Vec<Part>,
    /// `IBV_SEND_SIGNALED`
    pub signalled: bool,
    /// `IBV_SEND_INLINE`
    pub inline: bool,
    /// `IBV_SEND_SOLICITED`
    pub solicited: bool,
    /// `IBV_SEND_FENCE`
    pub fence: bool,
}

impl Wr {
    /// A signalled one.
    #[must_use]
    pub const fn new(wr_id: u64, request: Request, parts: Vec<Part>) -> Self {
        Self { wr_id, request, parts, signalled: true, inline: false, solicited: false, fence: false }
    }
}

/// Its opcode. Addresses and keys are the other side's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request {
    /// `IBV_WR_SEND`, or with immediate data.
    Send(Option<u32>),
    /// `IBV_WR_RDMA_READ`
    Read(u64, u32),
    /// `IBV_WR_RDMA_WRITE`, or with immediate data.
    Write(u64, u32, Option<u32>),
    /// `IBV_WR_ATOMIC_FETCH_AND_ADD`
    FetchAndAdd(u64, u32, u64),
    /// `IBV_WR_ATOMIC_CMP_AND_SWP`: compare with, swap for.
    CompareAndSwap(u64, u32, u64, u64),
}

impl Qp {
    /// `ibv_create_qp` of type RC, moved to INIT.
    ///
    /// # Errors
    /// The call that failed, and errno.
    pub fn new(pd: &Rc<Pd>, form: QpForm) -> Result<Self, (&'static str, i32)> {
        let recv_cq = form.recv_cq.raw;
        Self::with(pd, form, recv_cq, None)
    }

    /// The same, but receives complete on an extended queue.
    ///
    /// # Errors
    /// The call that failed, and errno.
    pub fn on_extended(pd: &Rc<Pd>, form: QpForm, cq: &Rc<CqEx>) -> Result<Self, (&'static str, i32)> {
        Self::with(pd, form, cq.raw.cast(), Some(Rc::clone(cq)))
    }

    fn with(
        pd: &Rc<Pd>,
        form: QpForm,
        recv_cq: *mut ibv_cq,
        extended: Option<Rc<CqEx>>,
    ) -> Result<Self, (&'static str, i32)> {
        let mut attributes = ibv_qp_init_attr {
            qp_context: ptr::null_mut(),
            send_cq: form.send_cq.raw,
            recv_cq,
            srq: form.srq.as_ref().map_or(ptr::null_mut(), |srq| srq.raw),
            cap: ibv_qp_cap {
                max_send_wr: form.sends,
                max_recv_wr: form.receives,
                max_send_sge: form.segments,
                max_recv_sge: form.segments,
                max_inline_data: form.inline,
            },
            qp_type: IBV_QPT_RC,
            sq_sig_all: 0,
        };
        // SAFETY: domain and queues exist.
        let raw = unsafe { (pd.device.library.ibv_create_qp)(pd.raw, &raw mut attributes) };
        if raw.is_null() {
            return Err(("ibv_create_qp", super::errno()));
        }
        let qp = Self { pd: Rc::clone(pd), form, raw, _extended: extended };
        let access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
        let attributes = ibv_qp_attr {
            qp_state: IBV_QPS_INIT,
            qp_access_flags: access | IBV_ACCESS_REMOTE_ATOMIC,
            port_num: pd.device.port(),
            ..ibv_qp_attr::default()
        };
        let mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
        qp.modify(attributes, mask).map_err(|errno| ("ibv_modify_qp to INIT", errno))?;
        Ok(qp)
    }

    /// Its number.
    #[must_use]
    pub fn number(&self) -> u32 {
        // SAFETY: the QP exists.
        unsafe { (*self.raw).qp_num }
    }

    /// From INIT to RTS.
    ///
    /// # Errors
    /// The call that failed, and errno.
    pub fn connect(&self, connection: &Connection) -> Result<(), (&'static str, i32)> {
        let reads = self.pd.device.attributes().orig_attr.max_qp_rd_atom;
        let reads = u8::try_from(reads.clamp(1, 16)).unwrap_or(1);
        let attributes = ibv_qp_attr {
            qp_state: IBV_QPS_RTR,
            path_mtu: connection.mtu,
            dest_qp_num: connection.to,
            max_dest_rd_atomic: reads,
            min_rnr_timer: 1,
            ah_attr: self.pd.device.way(connection.gid),
            ..ibv_qp_attr::default()
        };
        let mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
        let mask = mask | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
        self.modify(attributes, mask).map_err(|errno| ("ibv_modify_qp to RTR", errno))?;
        let attributes = ibv_qp_attr {
            qp_state: IBV_QPS_RTS,
            timeout: 14,
            retry_cnt: connection.retries,
            rnr_retry: connection.rnr_retries,
            max_rd_atomic: reads,
            ..ibv_qp_attr::default()
        };
        let mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
        let mask = mask | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
        self.modify(attributes, mask).map_err(|errno| ("ibv_modify_qp to RTS", errno))
    }

    /// To ERR.
    ///
    /// # Errors
    /// errno
    pub fn fail(&self) -> Result<(), i32> {
        self.modify(ibv_qp_attr { qp_state: IBV_QPS_ERR, ..ibv_qp_attr::default() }, IBV_QP_STATE)
    }

    /// `ibv_query_qp` of its state.
    ///
    /// # Errors
    /// errno
    pub fn state(&self) -> Result<u32, i32> {
        let mut attributes = ibv_qp_attr::default();
        // SAFETY: zero is a value of every field.
        let mut created: ibv_qp_init_attr = unsafe { std::mem::zeroed() };
        let mask = IBV_QP_STATE.cast_signed();
        let call = self.pd.device.library.ibv_query_qp;
        // SAFETY: the QP exists, and there is room for both.
        result(unsafe { call(self.raw, &raw mut attributes, mask, &raw mut created) })
            .map(|()| attributes.qp_state)
    }

    fn modify(&self, mut attributes: ibv_qp_attr, mask: u32) -> Result<(), i32> {
        let call = self.pd.device.library.ibv_modify_qp;
        // SAFETY: the QP exists.
        result(unsafe { call(self.raw, &raw mut attributes, mask.cast_signed()) })
    }

    /// `ibv_post_recv`
    ///
    /// # Errors
    /// errno
    pub fn post_recv(&self, wr_id: u64, parts: &[Part]) -> Result<(), i32> {
        let mut segments: Vec<_> = parts.iter().map(|part| part.segment()).collect();
        let num_sge = i32::try_from(segments.len()).unwrap_or(i32::MAX);
        let mut request =
            ibv_recv_wr { wr_id, next: ptr::null_mut(), sg_list: segments.as_mut_ptr(), num_sge };
        let mut bad = ptr::null_mut();
        // SAFETY: the QP exists, the list is one request, and the memory stays: regions outlive queues.
        result(unsafe { sys::inline::post_recv(self.raw, &raw mut request, &mut bad) })
    }

    /// `ibv_post_send` of one request.
    ///
    /// # Errors
    /// errno
    pub fn post_send(&self, wr: &Wr) -> Result<(), i32> {
        let mut segments: Vec<_> = wr.parts.iter().map(|part| part.segment()).collect();
        let num_sge = i32::try_from(segments.len()).unwrap_or(i32::MAX);
        let flags = [
            (wr.signalled, IBV_SEND_SIGNALED),
            (wr.inline, IBV_SEND_INLINE),
            (wr.solicited, IBV_SEND_SOLICITED),
            (wr.fence, IBV_SEND_FENCE),
        ];
        let (opcode, immediate, body) = wr.request.fields();
        let mut request = ibv_send_wr {
            wr_id: wr.wr_id,
            next: ptr::null_mut(),
            sg_list: segments.as_mut_ptr(),
            num_sge,
            opcode,
            send_flags: flags.iter().map(|(is_set, flag)| if *is_set { *flag } else { 0 }).sum(),
            imm_data: immediate.to_be(),
            wr: body,
            qp_type: 0,
            _bind_mw_or_tso: [0; 6],
        };
        let mut bad = ptr::null_mut();
        // SAFETY: the QP exists, the list is one request, and the memory stays: regions outlive queues.
        result(unsafe { sys::inline::post_send(self.raw, &raw mut request, &mut bad) })
    }

    /// The queues it was made with.
    #[must_use]
    pub const fn form(&self) -> &QpForm {
        &self.form
    }
}

impl Drop for Qp {
    fn drop(&mut self) {
        debug_assert!(self.form.srq.as_ref().is_none_or(|srq| !srq.is_gone()), "a busy SRQ is not destroyed");
        // SAFETY: created here.
        unsafe { (self.pd.device.library.ibv_destroy_qp)(self.raw) };
    }
}

impl Request {
    fn fields(self) -> (u32, u32, ibv_send_wr_wr) {
        let rdma = |remote_addr, rkey| ibv_send_wr_wr { rdma: ibv_send_wr_rdma { remote_addr, rkey } };
        let atomic = |remote_addr, rkey, compare_add, swap| ibv_send_wr_wr {
            atomic: ibv_send_wr_atomic { remote_addr, compare_add, swap, rkey },
        };
        match self {
            Self::Send(None) => (IBV_WR_SEND, 0, rdma(0, 0)),
            Self::Send(Some(immediate)) => (IBV_WR_SEND_WITH_IMM, immediate, rdma(0, 0)),
            Self::Read(address, key) => (IBV_WR_RDMA_READ, 0, rdma(address, key)),
            Self::Write(address, key, None) => (IBV_WR_RDMA_WRITE, 0, rdma(address, key)),
            Self::Write(address, key, Some(immediate)) => {
                (IBV_WR_RDMA_WRITE_WITH_IMM, immediate, rdma(address, key))
            }
            Self::CompareAndSwap(address, key, compare, swap) => {
                (WR_COMPARE_AND_SWAP, 0, atomic(address, key, compare, swap))
            }
            Self::FetchAndAdd(address, key, add) => (WR_FETCH_AND_ADD, 0, atomic(address, key, add, 0)),
        }
    }
}

const WR_COMPARE_AND_SWAP: u32 = 5;
const WR_FETCH_AND_ADD: u32 = 6;
