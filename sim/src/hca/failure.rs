//! What happens to a QP that fails: what was under way, and the flush.

use zerocopy::FromBytes;

use super::device::Hca;
use super::layout::{ControlSegment, Cqe, Syndrome, cqe_opcode};
use super::memory::HostMemory;
use super::qp::{Origin, Qp, Receiving};
use super::verbs::{event, state};

impl<M: HostMemory> Hca<M> {
    /// To ERR: what was under way is over, the rest is flushed step by step.
    pub(crate) fn fail_qp(&mut self, qpn: u32) {
        let Some(qp) = self.qps.get_mut(&qpn) else { return };
        qp.attributes.state = state::ERR;
        qp.requester.timer = None;
        self.drop_under_way(qpn, false);
        self.tell_last_wqe(qpn);
    }

    /// A QP in ERR takes no more receives, and all its completions are in the queue: then its host is told, once (IBTA
    /// 11.6.3.1, Last WQE Reached). Completions of a TM-SRQ may be held back for their order.
    pub(crate) fn tell_last_wqe(&mut self, qpn: u32) {
        let Some(qp) = self.qps.get(&qpn) else { return };
        let Some(srqn) = qp.srq.filter(|_| !qp.last_wqe_told) else { return };
        let is_held = self.tag_matching_mut(srqn).is_some_and(|tm| tm.holds_back(qpn));
        if is_held {
            return;
        }
        if let Some(qp) = self.qps.get_mut(&qpn) {
            qp.last_wqe_told = true;
        }
        self.tell_qp(qpn, event::LAST_WQE_REACHED);
    }

    /// Ends what was under way in both halves; work requests of the send queue stay, to be flushed. With `silent`
    /// a receive that had begun gets no completion (RESET).
    pub(crate) fn drop_under_way(&mut self, qpn: u32, silent: bool) {
        let Some(qp) = self.qps.get_mut(&qpn) else { return };
        let receiving = qp.responder.receiving.take();
        let own = std::mem::take(&mut qp.requester.own);
        let (queue, device): (Vec<_>, Vec<_>) = std::mem::take(&mut qp.requester.works)
            .into_iter()
            .partition(|work| matches!(work.origin, Origin::Queue { .. }));
        qp.requester.works = queue.into();
        let unanswered = !std::mem::take(&mut qp.responder.answers).is_empty();
        let (peer, attempt) = (qp.attributes.dest_qpn, qp.responder.attempt);
        let psn = super::packet::psn_after(qp.responder.expected_psn, u32::MAX);
        if unanswered {
            self.drop_notice(qpn, peer, psn, attempt);
        }
        match receiving {
            Some(Receiving::Receive { taken, .. }) if !silent => {
                self.complete_receive_error(qpn, &taken, Syndrome::Flushed);
            }
            Some(Receiving::Tag(receiving)) => self.lose_tagged(qpn, receiving),
            Some(Receiving::Receive { .. } | Receiving::Write { .. }) | None => {}
        }
        for origin in device.into_iter().map(|work| work.origin).chain(own) {
            match origin {
                Origin::Queue { .. } => {}
                Origin::Rendezvous(rendezvous) => self.lose_rendezvous(qpn, &rendezvous),
                Origin::Fin(fin) => {
                    if let Some(expected) = fin.expected {
                        self.complete_expected(expected);
                    }
                }
            }
        }
    }

    pub(crate) fn can_flush(&self, qpn: u32) -> bool {
        self.qps.get(&qpn).is_some_and(|qp| {
            let sends = !qp.requester.works.is_empty() || self.sends_posted(qp) > 0;
            match qp.attributes.state {
                state::ERR => sends || self.receives_posted(qp) > 0,
                state::SQE => sends,
                _ => false,
            }
        })
    }

    /// One work request, the oldest; sends first.
    pub(crate) fn step_flush(&mut self, qpn: u32) -> bool {
        if !self.can_flush(qpn) {
            return false;
        }
        let Some(qp) = self.qps.get_mut(&qpn) else { return false };
        let cqe = Cqe::error(cqe_opcode::REQUESTER_ERROR, Syndrome::Flushed);
        if let Some(work) = qp.requester.works.pop_front() {
            if let Origin::Queue { index, opcode, .. } = work.origin {
                self.complete_send(qpn, cqe, index, opcode);
            }
            return true;
        }
        let Some(qp) = self.qps.get(&qpn) else { return false };
        let posted = self.sends_posted(qp);
        if posted > 0 {
            let (index, opcode, blocks) = self.next_flushed(qp, posted);
            if let Some(qp) = self.qps.get_mut(&qpn) {
                qp.requester.head = qp.requester.head.wrapping_add(blocks);
            }
            self.complete_send(qpn, cqe, index, opcode);
            return true;
        }
        let Some(taken) = self.take_receive(qpn) else { return false };
        self.complete_receive_error(qpn, &taken, Syndrome::Flushed);
        true
    }

    /// Index, opcode and blocks of the work request at the head of the send queue.
    fn next_flushed(&self, qp: &Qp, posted: u16) -> (u16, u8, u16) {
        let head = qp.requester.head;
        let bytes = self.read_send_queue(qp, head, 16);
        let control = bytes.and_then(|bytes| ControlSegment::read_from_bytes(&bytes).ok());
        control.map_or((head, 0, 1), |control| {
            let blocks = u16::from(control.units().div_ceil(4)).clamp(1, posted);
            (control.index(), control.opcode(), blocks)
        })
    }
}
