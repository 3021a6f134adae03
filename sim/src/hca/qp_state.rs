//! The states of a QP: which transitions there are, what they need, what they do.
//!
//! ```text
//!  RESET ──▶ INIT ──▶ RTR ──▶ RTS ◀──▶ SQD      every state ──▶ RESET, ERR
//!             ◀┘               ◀┘ ◀── SQE (UD, after an error)
//! ```
//!
//! `ib_modify_qp_is_ok` of the kernel's ib_core holds the table; ranges are checked by ib_uverbs and mlx5_ib.

use super::config::LinkLayer;
use super::device::Hca;
use super::errno::Errno;
use super::memory::HostMemory;
use super::packet::MASK_24;
use super::qp::{Kind, Requester, Responder};
use super::requests::{ContextId, Handle, QpAttributes};
use super::verbs::attribute as mask_of;
use super::verbs::{access, event, state};
use tagmatch::device::soft::switches::{OtherPort, RoCe};

/// Attributes that a transition needs, and those that it takes as well.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Transition {
    required: u32,
    optional: u32,
}

fn transition(kind: Kind, from: u8, to: u8) -> Option<Transition> {
    let reliable = kind == Kind::Reliable;
    let pick = |rc: u32, ud: u32| if reliable { rc } else { ud };
    let address = mask_of::PKEY_INDEX | mask_of::PORT | pick(mask_of::ACCESS_FLAGS, mask_of::QKEY);
    let rc_live =
        mask_of::ACCESS_FLAGS | mask_of::ALT_PATH | mask_of::PATH_MIG_STATE | mask_of::MIN_RNR_TIMER;
    let live = mask_of::CUR_STATE | pick(rc_live, mask_of::QKEY);
    let (required, optional) = match (from, to) {
        (_, state::RESET | state::ERR) => (0, 0),
        (state::RESET, state::INIT) => (address, 0),
        (state::INIT, state::INIT) => (0, address),
        (state::INIT, state::RTR) => (
            pick(
                mask_of::AV
                    | mask_of::PATH_MTU
                    | mask_of::DEST_QPN
                    | mask_of::RQ_PSN
                    | mask_of::MAX_DEST_RD_ATOMIC
                    | mask_of::MIN_RNR_TIMER,
                0,
            ),
            mask_of::PKEY_INDEX | pick(mask_of::ALT_PATH | mask_of::ACCESS_FLAGS, mask_of::QKEY),
        ),
        (state::RTR, state::RTS) => (
            mask_of::SQ_PSN
                | pick(
                    mask_of::TIMEOUT | mask_of::RETRY_CNT | mask_of::RNR_RETRY | mask_of::MAX_QP_RD_ATOMIC,
                    0,
                ),
            live,
        ),
        (state::RTS, state::RTS) | (state::SQD, state::RTS) => (0, live),
        (state::SQE, state::RTS) if !reliable => (0, mask_of::CUR_STATE | mask_of::QKEY),
        (state::RTS, state::SQD) => (0, mask_of::EN_SQD_ASYNC_NOTIFY),
        (state::SQD, state::SQD) => (
            0,
            mask_of::PKEY_INDEX
                | pick(
                    mask_of::PORT
                        | mask_of::AV
                        | mask_of::TIMEOUT
                        | mask_of::RETRY_CNT
                        | mask_of::RNR_RETRY
                        | mask_of::MAX_QP_RD_ATOMIC
                        | mask_of::MAX_DEST_RD_ATOMIC
                        | mask_of::CUR_STATE
                        | rc_live,
                    mask_of::QKEY,
                ),
        ),
        _ => return None,
    };
    Some(Transition { required, optional })
}

impl<M: HostMemory> Hca<M> {
    /// MODIFY_QP: `mask` of [`super::verbs::attribute`] says which attributes count.
    ///
    /// # Errors
    /// EINVAL: no such QP; an attribute that is missing, not allowed or out of range in this transition.
    pub fn modify_qp(
        &mut self,
        context: ContextId,
        qp: Handle,
        mask: u32,
        attributes: &QpAttributes,
    ) -> Result<(), Errno> {
        let found = self.find_qp(context, qp)?;
        let is_set = |bit: u32| mask & bit != 0;
        let from = if is_set(mask_of::CUR_STATE) { attributes.current_state } else { found.attributes.state };
        if is_set(mask_of::CUR_STATE) && (from != found.attributes.state || from == state::INIT) {
            return Err(Errno::INVALID);
        }
        let to = if is_set(mask_of::STATE) { attributes.state } else { from };
        let Transition { required, optional } = transition(found.kind, from, to).ok_or(Errno::INVALID)?;
        if mask & required != required || mask & !(required | optional | mask_of::STATE) != 0 {
            return Err(Errno::INVALID);
        }
        self.check_ranges(qp.0, mask, attributes)?;
        let Some(found) = self.qps.get_mut(&qp.0) else { return Err(Errno::INVALID) };
        assign(&mut found.attributes, mask, attributes);
        self.enter_state(qp.0, from, to);
        Ok(())
    }

    fn check_ranges(&self, qpn: u32, mask: u32, attributes: &QpAttributes) -> Result<(), Errno> {
        let config = &self.config;
        let is_set = |bit: u32| mask & bit != 0;
        let port_exists = |port: u8| (1..=config.ports).contains(&port);
        let srq = self.qps.get(&qpn).and_then(|qp| qp.srq).and_then(|srqn| self.srqs.get(&srqn));
        let tag_matching = srq.is_some_and(|srq| srq.tm.is_some());
        let refused_port =
            tag_matching && attributes.port != 1 && config.switches.other_port == OtherPort::Refused;
        let wrong = is_set(mask_of::PORT) && (!port_exists(attributes.port) || refused_port)
            || is_set(mask_of::PKEY_INDEX) && attributes.pkey_index != 0
            || is_set(mask_of::PATH_MTU) && !(1..=config.mtu).contains(&attributes.path_mtu)
            || is_set(mask_of::DEST_QPN) && attributes.dest_qpn > MASK_24
            || is_set(mask_of::MAX_QP_RD_ATOMIC) && attributes.max_rd_atomic > config.limits.reads
            || is_set(mask_of::MAX_DEST_RD_ATOMIC) && attributes.max_dest_rd_atomic > config.limits.reads
            || is_set(mask_of::MIN_RNR_TIMER) && attributes.min_rnr_timer > 31
            || is_set(mask_of::TIMEOUT) && attributes.timeout > 31
            || is_set(mask_of::RETRY_CNT) && attributes.retry_count > 7
            || is_set(mask_of::RNR_RETRY) && attributes.rnr_retry > 7
            || is_set(mask_of::ACCESS_FLAGS) && attributes.access & !QP_ACCESS != 0
            || is_set(mask_of::AV) && !self.is_path(qpn, attributes, tag_matching);
        if wrong { Err(Errno::INVALID) } else { Ok(()) }
    }

    /// ib_core wants a GRH on RoCE. libmlx5's command QP has none (TM-CONTRACT 5), which A15 may forgive. The port is
    /// that of the transition to INIT (ib_uverbs).
    fn is_path(&self, qpn: u32, attributes: &QpAttributes, tag_matching: bool) -> bool {
        let path = &attributes.path;
        let is_command = tag_matching && attributes.dest_qpn == qpn;
        let forgiven = is_command && self.config.switches.roce == RoCe::Works;
        let global = self.config.link_layer == LinkLayer::InfiniBand || path.is_global || forgiven;
        let port = self.qps.get(&qpn).map_or(0, |qp| qp.attributes.port);
        path.port == port && global && (!path.is_global || path.sgid_index == 0)
    }

    /// The only place where a QP's state changes.
    pub(crate) fn enter_state(&mut self, qpn: u32, from: u8, to: u8) {
        if to == state::RESET {
            return self.reset_qp(qpn);
        }
        if to == state::ERR {
            return self.fail_qp(qpn);
        }
        let Some(qp) = self.qps.get_mut(&qpn) else { return };
        qp.attributes.state = to;
        let attributes = qp.attributes;
        match (from, to) {
            (state::INIT, state::RTR) => {
                qp.responder.expected_psn = attributes.rq_psn & MASK_24;
            }
            (state::RTR, state::RTS) => {
                qp.requester.next_psn = attributes.sq_psn & MASK_24;
                qp.requester.not_ready_left = attributes.rnr_retry;
                qp.requester.retries_left = attributes.retry_count;
            }
            _ => {}
        }
        if to == state::SQD {
            self.check_drained(qpn);
        }
    }

    /// Tells once that the send queue stands still, where that was asked for.
    pub(crate) fn check_drained(&mut self, qpn: u32) {
        let Some(qp) = self.qps.get_mut(&qpn) else { return };
        let drained = qp.attributes.state == state::SQD && qp.requester.works.is_empty();
        if drained && std::mem::take(&mut qp.attributes.sqd_notify) {
            self.tell_qp(qpn, event::SQ_DRAINED);
        }
    }

    /// Everything that it held is forgotten, without completions.
    pub(crate) fn reset_qp(&mut self, qpn: u32) {
        self.drop_under_way(qpn, true);
        let Some(qp) = self.qps.get_mut(&qpn) else { return };
        qp.requester = Requester::default();
        qp.responder = Responder::default();
        qp.rq_consumed = 0;
        qp.last_wqe_told = false;
        qp.attributes = QpAttributes::default();
    }
}

fn assign(to: &mut QpAttributes, mask: u32, from: &QpAttributes) {
    let mut set = |bit: u32, change: &mut dyn FnMut(&mut QpAttributes)| {
        if mask & bit != 0 {
            change(to);
        }
    };
    set(mask_of::ACCESS_FLAGS, &mut |to| to.access = from.access);
    set(mask_of::PKEY_INDEX, &mut |to| to.pkey_index = from.pkey_index);
    set(mask_of::PORT, &mut |to| to.port = from.port);
    set(mask_of::QKEY, &mut |to| to.qkey = from.qkey);
    set(mask_of::AV, &mut |to| to.path = from.path);
    set(mask_of::PATH_MTU, &mut |to| to.path_mtu = from.path_mtu);
    set(mask_of::TIMEOUT, &mut |to| to.timeout = from.timeout);
    set(mask_of::RETRY_CNT, &mut |to| to.retry_count = from.retry_count);
    set(mask_of::RNR_RETRY, &mut |to| to.rnr_retry = from.rnr_retry);
    set(mask_of::RQ_PSN, &mut |to| to.rq_psn = from.rq_psn);
    set(mask_of::SQ_PSN, &mut |to| to.sq_psn = from.sq_psn);
    set(mask_of::MAX_QP_RD_ATOMIC, &mut |to| to.max_rd_atomic = from.max_rd_atomic);
    set(mask_of::MAX_DEST_RD_ATOMIC, &mut |to| to.max_dest_rd_atomic = from.max_dest_rd_atomic);
    set(mask_of::MIN_RNR_TIMER, &mut |to| to.min_rnr_timer = from.min_rnr_timer);
    set(mask_of::DEST_QPN, &mut |to| to.dest_qpn = from.dest_qpn);
    set(mask_of::PATH_MIG_STATE, &mut |to| to.path_mig_state = from.path_mig_state);
    set(mask_of::EN_SQD_ASYNC_NOTIFY, &mut |to| to.sqd_notify = from.sqd_notify);
    set(mask_of::ALT_PATH, &mut |to| {
        to.alt_path = from.alt_path;
        to.alt_port = from.alt_port;
        to.alt_pkey_index = from.alt_pkey_index;
        to.alt_timeout = from.alt_timeout;
    });
}

/// `qp_access_flags` that mean something.
const QP_ACCESS: u32 = access::LOCAL_WRITE
    | access::REMOTE_WRITE
    | access::REMOTE_READ
    | access::REMOTE_ATOMIC
    | access::MW_BIND
    | access::OPTIONAL;
