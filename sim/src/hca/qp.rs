//! Queue pairs: what they are, creation, query and destruction. Their states are in [`super::qp_state`].

use std::collections::VecDeque;

use super::device::Hca;
use super::errno::Errno;
use super::memory::HostMemory;
use super::packet::{Extension, Operation, Response};
use super::regions::Piece;
use super::requests::{
    AsyncEvent, ContextId, CreateQp, Element, Handle, QpAttributes, QpCaps, QpCreated, QpQueried,
};
use super::srq::{Taken, UIDX_MAX};
use super::tm::{Fin, Rendezvous, TagReceiving};
use super::verbs::{qp_type, state};

#[derive(Clone, Debug)]
pub(crate) struct Qp {
    pub context: ContextId,
    user_handle: u64,
    pub pd: u32,
    pub send_cq: u32,
    pub receive_cq: u32,
    pub srq: Option<u32>,
    pub kind: Kind,
    caps: QpCaps,
    sq_sig_all: bool,
    buffer: u64,
    doorbell: u64,
    /// 64-byte blocks of the send queue: a power of two, or 0.
    pub sq_count: u32,
    rq_count: u32,
    rq_shift: u32,
    pub uidx: u32,
    pub attributes: QpAttributes,
    pub requester: Requester,
    pub responder: Responder,
    /// Receives taken from its own queue.
    pub rq_consumed: u16,
    pub last_wqe_told: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Reliable,
    Datagram,
}

/// The sending half.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requester {
    /// The next block of the send queue.
    pub head: u16,
    /// Fetched and not complete, in order.
    pub works: VecDeque<Work>,
    /// What the device itself wants to send: reads and FINs of rendezvous (TM-CONTRACT 4).
    pub own: VecDeque<Origin>,
    pub next_psn: u32,
    pub attempt: u8,
    /// It waits.
    pub timer: Option<Timer>,
    pub not_ready_left: u8,
    pub retries_left: u8,
    /// A3 not atomic: the count of the list operation at the head has been applied.
    pub count_applied: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Timer {
    /// Nanoseconds of the device's clock; the largest: never.
    pub due: u64,
    /// An answer will not come; otherwise the receiver was not ready.
    pub lost: bool,
}

/// A work request under way.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    pub origin: Origin,
    pub operation: Option<Operation>,
    pub extension: Extension,
    pub pieces: Vec<Piece>,
    pub length: u32,
    pub solicited: bool,
    pub fence: bool,
    pub first_psn: u32,
    /// PSNs that it takes: of a read, as many as packets of data come.
    pub psns: u32,
    /// Packets to send.
    pub packets: u32,
    pub sent: u32,
    /// Packets of read data, or atomic results, that have come.
    pub received: u32,
    pub acknowledged: bool,
    /// It has failed, and completes so in its turn.
    pub error: Option<super::layout::Syndrome>,
}

/// Who wanted it.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// A work request of the send queue.
    Queue {
        index: u16,
        opcode: u8,
        signalled: bool,
    },
    Rendezvous(Rendezvous),
    Fin(Fin),
}

impl Work {
    pub(crate) const fn is_answered(&self) -> bool {
        matches!(
            self.operation,
            Some(Operation::Read(_) | Operation::CompareSwap { .. } | Operation::FetchAdd { .. })
        )
    }

    pub(crate) const fn is_sent(&self) -> bool {
        self.sent >= self.packets
    }

    /// A read or an atomic whose answer is not complete.
    pub(crate) const fn is_outstanding(&self) -> bool {
        self.is_answered() && self.sent > 0 && !self.acknowledged
    }
}

/// The receiving half.
#[derive(Clone, Debug, Default)]
pub(crate) struct Responder {
    pub expected_psn: u32,
    pub receiving: Option<Receiving>,
    pub answers: VecDeque<Answer>,
    /// The attempt of which a packet out of sequence was answered: only one of each is.
    pub gap_answered: Option<u8>,
    /// Results of the last atomics, by PSN.
    pub replay: VecDeque<(u32, u64)>,
    pub established_told: bool,
    /// Of the last request.
    pub attempt: u8,
}

/// A message of several packets that has begun.
#[derive(Clone, Debug)]
pub(crate) enum Receiving {
    Receive { taken: Taken, offset: u64 },
    Write { remote: super::packet::Remote, offset: u32 },
    Tag(TagReceiving),
}

/// What the responder will send.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Packet(Response),
    Read { psn: u32, remote: super::packet::Remote, offset: u32 },
}

impl<M: HostMemory> Hca<M> {
    /// CREATE_QP: RC and UD.
    ///
    /// # Errors
    /// EPERM: a raw packet QP. EOPNOTSUPP: another type. EINVAL: sizes, CQs, SRQ. EFAULT: not memory. ENOMEM: too
    /// many.
    pub fn create_qp(&mut self, context: ContextId, request: &CreateQp) -> Result<QpCreated, Errno> {
        self.find_pd(context, request.pd)?;
        let kind = match request.qp_type {
            qp_type::RC => Kind::Reliable,
            qp_type::UD => Kind::Datagram,
            RAW_PACKET => return Err(Errno::NOT_PERMITTED),
            _ => return Err(Errno::NOT_SUPPORTED),
        };
        self.find_cq(context, request.send_cq)?;
        self.find_cq(context, request.recv_cq)?;
        if let Some(srq) = request.srq {
            let srq = self.find_srq(context, srq)?;
            if srq.tm.is_some() && kind == Kind::Datagram {
                return Err(Errno::INVALID);
            }
        }
        self.check_sizes(request)?;
        if self.qps.len() >= self.config.limits.qps as usize {
            return Err(Errno::NO_MEMORY);
        }
        let has_rq = request.srq.is_none() && request.rq_wqe_count > 0;
        let receive_length = if has_rq { u64::from(request.rq_wqe_count) << request.rq_wqe_shift } else { 0 };
        let length = receive_length + u64::from(request.sq_wqe_count) * BLOCK;
        let mapped = length == 0 || self.memory.is_mapped(request.buffer, length);
        if !mapped || !self.memory.is_mapped(request.doorbell, 8) {
            return Err(Errno::FAULT);
        }
        let mut caps = request.caps;
        if request.srq.is_some() {
            (caps.max_recv_wr, caps.max_recv_sge) = (0, 0);
        }
        let qpn = self.numbers.qp(&self.qps, self.config.process).ok_or(Errno::NO_MEMORY)?;
        let qp = Qp {
            context,
            user_handle: request.user_handle,
            pd: request.pd.0,
            send_cq: request.send_cq.0,
            receive_cq: request.recv_cq.0,
            srq: request.srq.map(|srq| srq.0),
            kind,
            caps,
            sq_sig_all: request.sq_sig_all,
            buffer: request.buffer,
            doorbell: request.doorbell,
            sq_count: request.sq_wqe_count,
            rq_count: if has_rq { request.rq_wqe_count } else { 0 },
            rq_shift: if has_rq { request.rq_wqe_shift } else { 0 },
            uidx: request.uidx,
            attributes: QpAttributes::default(),
            requester: Requester::default(),
            responder: Responder::default(),
            rq_consumed: 0,
            last_wqe_told: false,
        };
        self.qps.insert(qpn, qp);
        Ok(QpCreated { handle: Handle(qpn), qpn, caps })
    }

    fn check_sizes(&self, request: &CreateQp) -> Result<(), Errno> {
        let limits = self.config.limits;
        let caps = request.caps;
        let is_power = |count: u32| count == 0 || count.is_power_of_two();
        let fits = caps.max_send_wr <= limits.qp_work_requests
            && caps.max_recv_wr <= limits.qp_work_requests
            && caps.max_send_sge <= limits.segments
            && caps.max_recv_sge <= limits.segments
            && is_power(request.sq_wqe_count)
            && request.sq_wqe_count <= limits.send_blocks
            && request.doorbell.is_multiple_of(8)
            && request.uidx <= UIDX_MAX;
        let receives = request.srq.is_some()
            || is_power(request.rq_wqe_count)
                && request.rq_wqe_count <= limits.qp_work_requests
                && (request.rq_wqe_count == 0 || (4..=RECEIVE_SHIFT_MAX).contains(&request.rq_wqe_shift));
        if fits && receives { Ok(()) } else { Err(Errno::INVALID) }
    }

    /// QUERY_QP.
    ///
    /// # Errors
    /// EINVAL: no such QP.
    pub fn query_qp(&self, context: ContextId, qp: Handle) -> Result<QpQueried, Errno> {
        let found = self.find_qp(context, qp)?;
        let current_state = found.attributes.state;
        let sq_draining = current_state == state::SQD && !found.requester.works.is_empty();
        let attributes = QpAttributes { current_state, sq_draining, ..found.attributes };
        Ok(QpQueried { attributes, caps: found.caps, sq_sig_all: found.sq_sig_all })
    }

    /// DESTROY_QP.
    ///
    /// # Errors
    /// EINVAL: no such QP.
    pub fn destroy_qp(&mut self, context: ContextId, qp: Handle) -> Result<(), Errno> {
        self.find_qp(context, qp)?;
        self.reset_qp(qp.0);
        self.qps.remove(&qp.0);
        self.drop_async_events(Element::Qp(qp));
        Ok(())
    }

    /// ATTACH_MCAST and DETACH_MCAST are not offered.
    ///
    /// # Errors
    /// EINVAL: no such QP, or not a UD QP. EOPNOTSUPP otherwise.
    pub fn attach_multicast(&mut self, context: ContextId, qp: Handle) -> Result<(), Errno> {
        match self.find_qp(context, qp)?.kind {
            Kind::Reliable => Err(Errno::INVALID),
            Kind::Datagram => Err(Errno::NOT_SUPPORTED),
        }
    }

    pub(crate) fn find_qp(&self, context: ContextId, qp: Handle) -> Result<&Qp, Errno> {
        self.qps.get(&qp.0).filter(|found| found.context == context).ok_or(Errno::INVALID)
    }

    pub(crate) fn tell_qp(&mut self, qpn: u32, event_type: u32) {
        let Some(qp) = self.qps.get(&qpn) else { return };
        let element = Element::Qp(Handle(qpn));
        let event = AsyncEvent { context: qp.context, event_type, element, user_handle: qp.user_handle };
        self.async_events.push_back(event);
    }

    /// Blocks of the send queue that were posted and not fetched.
    pub(crate) fn sends_posted(&self, qp: &Qp) -> u16 {
        if qp.sq_count == 0 {
            return 0;
        }
        let counter = self.memory.load_acquire(qp.doorbell.wrapping_add(4)).unwrap_or_default();
        let posted = u16::try_from(counter & 0xffff).unwrap_or_default().wrapping_sub(qp.requester.head);
        u16::try_from(u32::from(posted).min(qp.sq_count)).unwrap_or(posted)
    }

    /// The next bytes of the send queue, around its end.
    pub(crate) fn read_send_queue(&self, qp: &Qp, block: u16, length: usize) -> Option<Vec<u8>> {
        let base = qp.buffer.wrapping_add(u64::from(qp.rq_count) << qp.rq_shift);
        let mut bytes = vec![0; length];
        let mut at = u32::from(block);
        for part in bytes.chunks_mut(64) {
            let offset = u64::from(at & qp.sq_count.wrapping_sub(1)) * BLOCK;
            self.memory.read(base.wrapping_add(offset), part).ok()?;
            at = at.wrapping_add(1);
        }
        Some(bytes)
    }

    pub(crate) fn receives_posted(&self, qp: &Qp) -> u16 {
        if qp.rq_count == 0 {
            return 0;
        }
        let counter = self.memory.load_acquire(qp.doorbell).unwrap_or_default();
        let posted = u16::try_from(counter & 0xffff).unwrap_or_default().wrapping_sub(qp.rq_consumed);
        u16::try_from(u32::from(posted).min(qp.rq_count)).unwrap_or(posted)
    }

    /// The next receive, of its own queue or its SRQ.
    pub(crate) fn take_receive(&mut self, qpn: u32) -> Option<Taken> {
        let qp = self.qps.get(&qpn)?;
        if let Some(srqn) = qp.srq {
            return self.take_srq_receive(srqn);
        }
        if self.receives_posted(qp) == 0 {
            return None;
        }
        // The whole counter is in the completion; drivers mask it, and some check that it goes up by one.
        let counter = qp.rq_consumed;
        let index = u32::from(counter) & qp.rq_count.wrapping_sub(1);
        let address = qp.buffer.wrapping_add(u64::from(index) << qp.rq_shift);
        let mut wqe = vec![0; 1 << qp.rq_shift];
        let is_read = self.memory.read(address, &mut wqe).is_ok();
        let qp = self.qps.get_mut(&qpn)?;
        qp.rq_consumed = qp.rq_consumed.wrapping_add(1);
        let segments = if is_read { super::wqe::receive_segments(&wqe) } else { Vec::new() };
        Some(Taken { counter, segments })
    }
}

/// `IBV_QPT_RAW_PACKET`
const RAW_PACKET: u8 = 8;
const BLOCK: u64 = 64;
/// A receive of 512 bytes (`max_rq_desc`).
const RECEIVE_SHIFT_MAX: u32 = 9;
