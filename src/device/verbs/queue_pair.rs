//! Queue pairs of the reliable connected kind.
//!
//! With tag matching a pair of peers has two at each side (TM-CONTRACT 4): one to receive, whose send queue belongs to
//! the device (it is created without one), and one to send.

use std::fmt;
use std::ptr;

use super::completion::QueueHandle;
use super::error::{Errno, VerbsError};
use super::memory::ProtectionDomain;
use super::receives::ReceiveHandle;
use super::sys::{self, types};

/// A queue pair.
pub struct QueuePair {
    raw: *mut types::ibv_qp,
    number: u32,
    inline: u32,
    domain: ProtectionDomain,
    _completions: [QueueHandle; 2],
    _receives: ReceiveHandle,
}

// SAFETY: libibverbs locks what threads share.
unsafe impl Send for QueuePair {}
// SAFETY: as above; what changes it takes `&mut self`.
unsafe impl Sync for QueuePair {}

/// How large a send queue is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SendQueue {
    /// Requests; 0: none, and the device may use it for rendezvous.
    pub requests: u32,
    /// Bytes that can go with a request itself.
    pub inline: u32,
}

/// The way to a peer's queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Route {
    /// The own port.
    pub port: u8,
    /// The peer's LID.
    pub lid: u16,
    /// The peer's GID and the index of the own one, where addresses need them.
    pub gid: Option<([u8; 16], u8)>,
    /// The peer's QP.
    pub number: u32,
    /// Where its packet numbers start.
    pub sequence: u32,
    /// `enum ibv_mtu`
    pub mtu: u8,
    /// READs under way that the peer issues, at most.
    pub reads_in: u8,
    /// READs under way that this side issues, at most.
    pub reads_out: u8,
}

/// How long a queue pair tries (`ibv_modify_qp(3)`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Patience {
    /// An acknowledgement is waited for 4.096 µs · 2^this.
    pub timeout: u8,
    /// So often is a request tried again without one; at most 6, since 7 is taken for "for ever" by some.
    pub retries: u8,
    /// So often is it tried again where the peer has no receive; 7 is for ever.
    pub rnr_retries: u8,
    /// Code of the time that a sender waits before it tries again where this side has no receive; 12 is 640 µs.
    pub rnr_timer: u8,
}

impl Default for Patience {
    /// 67 ms, six times; for ever where there is no receive.
    fn default() -> Self {
        Self { timeout: 14, retries: 6, rnr_retries: 7, rnr_timer: 12 }
    }
}

impl Patience {
    /// What of it no queue pair takes, or lets what a peer that is gone owes never end; `None`: nothing.
    pub(super) fn fault(&self) -> Option<String> {
        let Self { timeout, retries, rnr_retries, rnr_timer } = *self;
        if retries > RETRIES_MAX {
            Some(format!(
                "{retries} retries: at most {RETRIES_MAX}, since 7 is for ever on some devices and requests to a peer that \
                 is gone would never end"
            ))
        } else if !(1..=TIMEOUT_MAX).contains(&timeout) {
            Some(format!("a timeout of {timeout}: from 1 to {TIMEOUT_MAX}, since 0 is for ever"))
        } else if rnr_retries > RNR_RETRIES_MAX {
            Some(format!("{rnr_retries} retries where there is no receive: at most {RNR_RETRIES_MAX}"))
        } else if rnr_timer > TIMEOUT_MAX {
            Some(format!("a timer of {rnr_timer} where there is no receive: at most {TIMEOUT_MAX}"))
        } else {
            None
        }
    }
}

/// What is not taken for "for ever" anywhere.
const RETRIES_MAX: u8 = 6;
/// Of three bits.
const RNR_RETRIES_MAX: u8 = 7;
/// Of five bits.
const TIMEOUT_MAX: u8 = 31;

/// Something to send.
#[derive(Clone, Copy, Debug)]
pub struct SendRequest<'a> {
    /// Comes back with the completion.
    pub wr_id: u64,
    /// What to do.
    pub kind: SendKind,
    /// What is sent, or where what is read goes.
    pub payload: SendPayload<'a>,
}

/// The opcode of a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SendKind {
    /// SEND, with an immediate or without.
    Send(Option<u32>),
    /// RDMA READ from there.
    Read {
        /// Address at the peer.
        address: u64,
        /// The peer's key.
        key: u32,
    },
    /// RDMA WRITE of no bytes: asks the peer's device for an acknowledgement, and the peer for nothing.
    Probe,
}

/// The bytes of a request.
#[derive(Clone, Copy, Debug)]
pub enum SendPayload<'a> {
    /// None.
    Empty,
    /// With the request itself; they are free again when the call returns.
    Inline(&'a [u8]),
    /// In registered memory, until the completion.
    Registered(&'a [types::ibv_sge]),
}

impl SendPayload<'_> {
    /// Bytes.
    pub(super) fn length(&self) -> u64 {
        match self {
            Self::Empty => 0,
            Self::Inline(bytes) => bytes.len() as u64,
            Self::Registered(segments) => segments.iter().map(|segment| u64::from(segment.length)).sum(),
        }
    }
}

impl QueuePair {
    /// One that receives from this shared queue.
    ///
    /// # Errors
    /// The device has none left, or less than is asked for.
    pub fn new(
        domain: &ProtectionDomain,
        send: SendQueue,
        send_completions: &QueueHandle,
        receive_completions: &QueueHandle,
        receives: &ReceiveHandle,
    ) -> Result<Self, VerbsError> {
        let has_sends = send.requests > 0;
        let mut attr = types::ibv_qp_init_attr {
            qp_context: ptr::null_mut(),
            send_cq: send_completions.raw(),
            recv_cq: receive_completions.raw(),
            srq: receives.raw(),
            cap: types::ibv_qp_cap {
                max_send_wr: send.requests,
                max_recv_wr: 0,
                max_send_sge: if has_sends { SEGMENTS_MAX } else { 0 },
                max_recv_sge: 0,
                max_inline_data: send.inline,
            },
            qp_type: sys::IBV_QPT_RC,
            sq_sig_all: 0,
        };
        let context = domain.context();
        // SAFETY: the objects in the attributes exist.
        let raw = unsafe { (context.library().ibv_create_qp)(domain.raw(), &raw mut attr) };
        if raw.is_null() {
            return Err(context.failed("ibv_create_qp"));
        }
        // SAFETY: it was just made.
        let number = unsafe { (*raw).qp_num };
        Ok(Self {
            raw,
            number,
            inline: if has_sends { attr.cap.max_inline_data } else { 0 },
            domain: domain.clone(),
            _completions: [send_completions.clone(), receive_completions.clone()],
            _receives: receives.clone(),
        })
    }

    /// Its number, 24 bits.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Bytes that can go with a request itself.
    #[must_use]
    pub const fn inline(&self) -> u32 {
        self.inline
    }

    /// Its address, by which asynchronous events name it.
    #[must_use]
    pub fn object(&self) -> usize {
        self.raw.addr()
    }

    /// From RESET to INIT: bound to a port. Peers may read and write what is registered for that.
    ///
    /// # Errors
    /// The call failed.
    pub fn bind(&mut self, port: u8) -> Result<(), VerbsError> {
        let access = sys::IBV_ACCESS_REMOTE_READ | sys::IBV_ACCESS_REMOTE_WRITE;
        let attr = types::ibv_qp_attr {
            qp_state: sys::IBV_QPS_INIT,
            qp_access_flags: access,
            port_num: port,
            ..types::ibv_qp_attr::default()
        };
        let mask = sys::IBV_QP_STATE | sys::IBV_QP_PKEY_INDEX | sys::IBV_QP_PORT | sys::IBV_QP_ACCESS_FLAGS;
        self.modify(attr, mask, "ibv_modify_qp(INIT)")
    }

    /// From INIT to RTS: connected to a peer's. `sequence`: where the own packet numbers start.
    ///
    /// # Errors
    /// A call failed: EINVAL where the route makes no sense to the device.
    pub fn connect(&mut self, route: &Route, sequence: u32, patience: &Patience) -> Result<(), VerbsError> {
        let grh = route.gid.map(|(gid, index)| types::ibv_global_route {
            dgid: types::ibv_gid { raw: gid },
            flow_label: 0,
            sgid_index: index,
            hop_limit: HOPS,
            traffic_class: 0,
        });
        let attr = types::ibv_qp_attr {
            qp_state: sys::IBV_QPS_RTR,
            path_mtu: route.mtu.into(),
            rq_psn: route.sequence,
            dest_qp_num: route.number,
            ah_attr: types::ibv_ah_attr {
                grh: grh.unwrap_or_default(),
                dlid: route.lid,
                is_global: u8::from(grh.is_some()),
                port_num: route.port,
                ..types::ibv_ah_attr::default()
            },
            max_dest_rd_atomic: route.reads_in,
            min_rnr_timer: patience.rnr_timer,
            ..types::ibv_qp_attr::default()
        };
        let mask = sys::IBV_QP_STATE
            | sys::IBV_QP_AV
            | sys::IBV_QP_PATH_MTU
            | sys::IBV_QP_DEST_QPN
            | sys::IBV_QP_RQ_PSN
            | sys::IBV_QP_MAX_DEST_RD_ATOMIC
            | sys::IBV_QP_MIN_RNR_TIMER;
        self.modify(attr, mask, "ibv_modify_qp(RTR)")?;
        let attr = types::ibv_qp_attr {
            qp_state: sys::IBV_QPS_RTS,
            sq_psn: sequence,
            max_rd_atomic: route.reads_out,
            timeout: patience.timeout,
            retry_cnt: patience.retries,
            rnr_retry: patience.rnr_retries,
            ..types::ibv_qp_attr::default()
        };
        let mask = sys::IBV_QP_STATE
            | sys::IBV_QP_TIMEOUT
            | sys::IBV_QP_RETRY_CNT
            | sys::IBV_QP_RNR_RETRY
            | sys::IBV_QP_SQ_PSN
            | sys::IBV_QP_MAX_QP_RD_ATOMIC;
        self.modify(attr, mask, "ibv_modify_qp(RTS)")
    }

    /// To ERR: takes part in nothing more, and its requests are flushed. What it had written stays in the queues.
    ///
    /// # Errors
    /// The call failed.
    pub fn fail(&mut self) -> Result<(), VerbsError> {
        let attr = types::ibv_qp_attr { qp_state: sys::IBV_QPS_ERR, ..types::ibv_qp_attr::default() };
        self.modify(attr, sys::IBV_QP_STATE, "ibv_modify_qp(ERR)")
    }

    /// Its state (`enum ibv_qp_state`).
    ///
    /// # Errors
    /// The query failed.
    pub fn state(&self) -> Result<u32, VerbsError> {
        let mut attr = types::ibv_qp_attr::default();
        // SAFETY: all fields are numbers or pointers, for which zero is a value.
        let mut init: types::ibv_qp_init_attr = unsafe { std::mem::zeroed() };
        let (query, context) = (self.domain.context().library().ibv_query_qp, self.domain.context());
        // SAFETY: the queue pair exists.
        let errno = unsafe { query(self.raw, &raw mut attr, sys::IBV_QP_STATE.cast_signed(), &raw mut init) };
        if errno == 0 { Ok(attr.qp_state) } else { Err(context.returned("ibv_query_qp", errno)) }
    }

    /// Post requests, at most [`POST_MAX`], all signalled. `Err` with how many were posted.
    ///
    /// # Errors
    /// The send queue is full (the caller counts), or a request makes no sense.
    pub fn post(&mut self, requests: &[SendRequest<'_>]) -> Result<(), (Errno, usize)> {
        let mut segments = [types::ibv_sge::default(); POST_MAX];
        let mut wrs = [EMPTY; POST_MAX];
        let count = requests.len();
        if count == 0 || count > POST_MAX {
            return Err((Errno(libc::EINVAL), 0));
        }
        let start = wrs.as_mut_ptr();
        for (place, (request, (wr, segment))) in
            requests.iter().zip(wrs.iter_mut().zip(segments.iter_mut())).enumerate()
        {
            fill(wr, segment, request).map_err(|errno| (errno, 0))?;
            wr.next = if place + 1 < count { start.wrapping_add(place + 1) } else { ptr::null_mut() };
        }
        let mut bad = ptr::null_mut();
        // SAFETY: a linked list of requests; their segments are here or the caller's, and what they name is
        // registered, which the device checks by their keys.
        let errno = unsafe { sys::inline::post_send(self.raw, start, &mut bad) };
        if errno == 0 {
            return Ok(());
        }
        let posted = bad.addr().saturating_sub(start.addr()) / size_of::<types::ibv_send_wr>();
        Err((Errno::returned(errno), posted.min(count)))
    }

    fn modify(
        &mut self,
        mut attr: types::ibv_qp_attr,
        mask: u32,
        call: &'static str,
    ) -> Result<(), VerbsError> {
        let context = self.domain.context();
        // SAFETY: the queue pair exists.
        let errno = unsafe { (context.library().ibv_modify_qp)(self.raw, &raw mut attr, mask.cast_signed()) };
        if errno == 0 { Ok(()) } else { Err(context.returned(call, errno)) }
    }
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        // SAFETY: the queue pair exists. Its completions vanish with it; the device touches nothing of it any more.
        let _errno = unsafe { (self.domain.context().library().ibv_destroy_qp)(self.raw) };
    }
}

impl fmt::Debug for QueuePair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueuePair").field("number", &self.number).finish_non_exhaustive()
    }
}

fn fill(
    wr: &mut types::ibv_send_wr,
    segment: &mut types::ibv_sge,
    request: &SendRequest<'_>,
) -> Result<(), Errno> {
    wr.wr_id = request.wr_id;
    wr.send_flags = sys::IBV_SEND_SIGNALED;
    match request.kind {
        SendKind::Send(None) => wr.opcode = sys::IBV_WR_SEND,
        SendKind::Send(Some(immediate)) => {
            wr.opcode = sys::IBV_WR_SEND_WITH_IMM;
            wr.imm_data = immediate.to_be();
        }
        SendKind::Read { address, key } => {
            wr.opcode = sys::IBV_WR_RDMA_READ;
            wr.wr.rdma = types::ibv_send_wr_rdma { remote_addr: address, rkey: key };
        }
        SendKind::Probe => wr.opcode = sys::IBV_WR_RDMA_WRITE,
    }
    match request.payload {
        SendPayload::Empty => {}
        SendPayload::Inline(bytes) => {
            let length = u32::try_from(bytes.len()).map_err(|_| Errno(libc::EINVAL))?;
            *segment = types::ibv_sge { addr: bytes.as_ptr().expose_provenance() as u64, length, lkey: 0 };
            wr.send_flags |= sys::IBV_SEND_INLINE;
            (wr.sg_list, wr.num_sge) = (segment, 1);
        }
        SendPayload::Registered(list) => {
            if list.len() > SEGMENTS_MAX as usize {
                return Err(Errno(libc::EINVAL));
            }
            // The library only reads the list.
            wr.sg_list = list.as_ptr().cast_mut();
            wr.num_sge = i32::try_from(list.len()).map_err(|_| Errno(libc::EINVAL))?;
        }
    }
    Ok(())
}

/// Requests of one post.
pub const POST_MAX: usize = 2;
/// Segments of a request: a header and a payload.
pub const SEGMENTS_MAX: u32 = 2;
const HOPS: u8 = 64;
const EMPTY: types::ibv_send_wr = types::ibv_send_wr {
    wr_id: 0,
    next: ptr::null_mut(),
    sg_list: ptr::null_mut(),
    num_sge: 0,
    opcode: sys::IBV_WR_SEND,
    send_flags: 0,
    imm_data: 0,
    wr: types::ibv_send_wr_wr {
        atomic: types::ibv_send_wr_atomic { remote_addr: 0, compare_add: 0, swap: 0, rkey: 0 },
    },
    qp_type: 0,
    _bind_mw_or_tso: [0; 6],
};
