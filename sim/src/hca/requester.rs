//! The sending half of a QP: fetching work requests, cutting them into packets, completing them in order.
//!
//! Not here: what comes back ([`super::answers`]), list operations ([`super::tag_commands`]).

use super::device::Hca;
use super::layout::{ControlSegment, Cqe, Syndrome, cqe_opcode};
use super::memory::HostMemory;
use super::packet::{Body, Datagram, Extension, Operation, Request, psn_after};
use super::qp::{Kind, Origin, Qp, Work};
use super::regions::Piece;
use super::verbs::{event, state};
use super::wqe::{Action, Address, Wqe, parse};
use zerocopy::FromBytes;

/// What the requester would do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Plan {
    /// The next packet of the work at this place.
    Continue(usize),
    /// Take up what the device itself wants to send.
    Own,
    /// Fetch from the send queue.
    Fetch,
}

impl<M: HostMemory> Hca<M> {
    pub(crate) fn send_plan(&self, qpn: u32) -> Option<Plan> {
        let qp = self.qps.get(&qpn)?;
        let requester = &qp.requester;
        let live = matches!(qp.attributes.state, state::RTS | state::SQD);
        if !live
            || requester.timer.is_some()
            || requester.works.iter().any(|work| work.error.is_some())
            || !self.has_room(qpn, qp.attributes.dest_qpn)
        {
            return None;
        }
        let under_way: u32 = requester
            .works
            .iter()
            .filter(|work| !work.is_answered())
            .map(|work| work.sent.saturating_sub(work.received))
            .sum();
        if under_way >= self.config.window {
            return None;
        }
        if let Some(place) = requester.works.iter().position(|work| !work.is_sent()) {
            return may_go_on(qp, place).then_some(Plan::Continue(place));
        }
        if qp.attributes.state == state::SQD {
            return None;
        }
        if !requester.own.is_empty() {
            return Some(Plan::Own);
        }
        (self.sends_posted(qp) > 0).then_some(Plan::Fetch)
    }

    /// One packet, or one list operation.
    pub(crate) fn step_send(&mut self, qpn: u32) -> bool {
        match self.send_plan(qpn) {
            None => return false,
            Some(Plan::Continue(place)) => self.send_packet(qpn, place),
            Some(Plan::Own) => self.take_up_own(qpn),
            Some(Plan::Fetch) => self.fetch(qpn),
        }
        true
    }

    fn fetch(&mut self, qpn: u32) {
        let Some((wqe, blocks)) = self.read_wqe(qpn) else { return };
        let Wqe { index, opcode, signalled, solicited, fence, action } = wqe;
        let mut error = None;
        if let Action::Tag(command) = &action {
            match self.execute_tag_command(qpn, command) {
                Ok(false) => return,
                Ok(true) => return self.advance_head(qpn, blocks),
                Err(syndrome) => error = Some(syndrome),
            }
        }
        self.advance_head(qpn, blocks);
        let mut work = Work {
            origin: Origin::Queue { index, opcode, signalled },
            operation: None,
            extension: Extension::None,
            pieces: Vec::new(),
            length: 0,
            solicited,
            fence,
            first_psn: 0,
            psns: 0,
            packets: 0,
            sent: 0,
            received: 0,
            acknowledged: true,
            error,
        };
        match action {
            Action::Nothing | Action::Tag(_) => {}
            Action::Malformed => work.error = Some(Syndrome::LocalQpOperation),
            Action::Datagram { address, immediate, pieces } => {
                work.error = self.datagram(qpn, &address, immediate, solicited, &pieces).err();
            }
            Action::Request { operation, extension, pieces } => {
                work = Work { operation: Some(operation), extension, pieces, acknowledged: false, ..work };
            }
        }
        self.begin_work(qpn, work);
    }

    /// The work request at the head, with the blocks it takes. One that cannot be read takes one block.
    fn read_wqe(&self, qpn: u32) -> Option<(Wqe, u16)> {
        let qp = self.qps.get(&qpn)?;
        let head = qp.requester.head;
        let malformed = |index, opcode| {
            let action = Action::Malformed;
            Wqe { index, opcode, signalled: true, solicited: false, fence: false, action }
        };
        let Some(bytes) = self.read_send_queue(qp, head, 16) else { return Some((malformed(head, 0), 1)) };
        let control = ControlSegment::read_from_bytes(&bytes).ok()?;
        let blocks = u16::from(control.units().div_ceil(4));
        if blocks == 0 || blocks > self.sends_posted(qp) {
            return Some((malformed(control.index(), control.opcode()), 1));
        }
        let bytes = self.read_send_queue(qp, head, usize::from(control.units()) * 16)?;
        Some((parse(&bytes, qp.kind == Kind::Datagram, qpn)?, blocks))
    }

    fn advance_head(&mut self, qpn: u32, blocks: u16) {
        if let Some(qp) = self.qps.get_mut(&qpn) {
            qp.requester.head = qp.requester.head.wrapping_add(blocks);
        }
    }

    /// Gives a work its PSNs and its place, and sends its first packet if it may go.
    pub(crate) fn begin_work(&mut self, qpn: u32, mut work: Work) {
        let limits = self.config.limits;
        let Some(qp) = self.qps.get_mut(&qpn) else { return };
        let length: u64 = work.pieces.iter().map(Piece::length).sum();
        work.length = u32::try_from(length).unwrap_or(u32::MAX);
        if work.error.is_none()
            && let Some(operation) = work.operation
        {
            work.error = refuse(qp, operation, work.length, limits.message_length);
            let packets = work.length.div_ceil(mtu_bytes(qp)).max(1);
            let is_read = matches!(operation, Operation::Read(_));
            work.psns = if work.is_answered() && !is_read { 1 } else { packets };
            work.packets = if work.is_answered() { 1 } else { packets };
            work.first_psn = qp.requester.next_psn;
            if work.error.is_none() {
                qp.requester.next_psn = psn_after(work.first_psn, work.psns);
            }
        }
        qp.requester.works.push_back(work);
        if let Some(Plan::Continue(place)) = self.send_plan(qpn) {
            self.send_packet(qpn, place);
        } else {
            self.retire(qpn);
        }
    }

    fn send_packet(&mut self, qpn: u32, place: usize) {
        let Some(qp) = self.qps.get_mut(&qpn) else { return };
        let (pd, mtu, attempt) = (qp.pd, mtu_bytes(qp), qp.requester.attempt);
        let Some(work) = qp.requester.works.get_mut(place) else { return };
        let Some(operation) = work.operation else { return };
        let offset = u64::from(work.sent) * u64::from(mtu);
        let mut payload = Vec::new();
        if !work.is_answered() {
            let part = u64::from(work.length).saturating_sub(offset).min(u64::from(mtu));
            match self.regions.gather(&self.memory, pd, &work.pieces, offset, part) {
                Ok(bytes) => payload = bytes,
                Err(_) => {
                    work.error = Some(Syndrome::LocalProtection);
                    return self.retire(qpn);
                }
            }
        }
        let (first, last) = (work.sent == 0, work.sent + 1 >= work.packets);
        let request = Request {
            psn: psn_after(work.first_psn, work.sent),
            attempt,
            operation,
            first,
            last,
            solicited: work.solicited && last,
            extension: work.extension,
            payload,
        };
        work.sent += 1;
        let fin = if let Origin::Fin(fin) = &mut work.origin { fin.expected.take() } else { None };
        self.send(qpn, Body::Request(request));
        if let Some(expected) = fin {
            self.complete_expected(expected);
        }
    }

    fn datagram(
        &mut self,
        qpn: u32,
        address: &Address,
        immediate: Option<[u8; 4]>,
        solicited: bool,
        pieces: &[Piece],
    ) -> Result<(), Syndrome> {
        let Some(qp) = self.qps.get(&qpn) else { return Ok(()) };
        let length: u64 = pieces.iter().map(Piece::length).sum();
        if length > u64::from(128_u32 << self.config.mtu) {
            return Err(Syndrome::LocalLength);
        }
        let gathered = self.regions.gather(&self.memory, qp.pd, pieces, 0, length);
        let payload = gathered.map_err(|_| Syndrome::LocalProtection)?;
        // The high bit says: use the QP's own (IBTA 10.2.5).
        let qkey = if address.qkey & 1 << 31 != 0 { qp.attributes.qkey } else { address.qkey };
        let grh = address.grh(self.config.link_layer).map(|grh| {
            let length = u16::try_from(payload.len()).unwrap_or(u16::MAX);
            grh_bytes(&grh, length, &self.config.gid)
        });
        let (slid, sl) = (self.config.lid, address.sl);
        let datagram = Datagram { qkey, slid, sl, solicited, immediate, grh, payload };
        self.send_datagram(qpn, address, datagram);
        Ok(())
    }

    /// Complete what is complete, in order.
    pub(crate) fn retire(&mut self, qpn: u32) {
        loop {
            let Some(qp) = self.qps.get_mut(&qpn) else { return };
            let Some(front) = qp.requester.works.front() else { break };
            let error = front.error;
            if error.is_none() && !front.acknowledged {
                break;
            }
            let Some(work) = qp.requester.works.pop_front() else { break };
            if let Some(syndrome) = error {
                return self.fail_work(qpn, work, syndrome);
            }
            self.complete_work(qpn, work);
        }
        self.check_drained(qpn);
    }

    fn complete_work(&mut self, qpn: u32, work: Work) {
        let byte_count = if work.is_answered() { work.length } else { 0 };
        match work.origin {
            Origin::Queue { index, opcode, signalled } => {
                if signalled {
                    let cqe = Cqe { byte_count: byte_count.into(), ..Cqe::new(cqe_opcode::REQUESTER) };
                    self.complete_send(qpn, cqe, index, opcode);
                }
            }
            Origin::Rendezvous(rendezvous) => self.finish_rendezvous(qpn, rendezvous),
            Origin::Fin(_) => {}
        }
    }

    fn fail_work(&mut self, qpn: u32, work: Work, syndrome: Syndrome) {
        let Some(kind) = self.qps.get(&qpn).map(|qp| qp.kind) else { return };
        match work.origin {
            Origin::Queue { index, opcode, .. } => {
                let cqe = Cqe::error(cqe_opcode::REQUESTER_ERROR, syndrome);
                self.complete_send(qpn, cqe, index, opcode);
                if kind == Kind::Datagram {
                    if let Some(qp) = self.qps.get_mut(&qpn).filter(|qp| qp.attributes.state != state::ERR) {
                        qp.attributes.state = state::SQE;
                    }
                } else {
                    self.fail_qp(qpn);
                }
            }
            Origin::Rendezvous(rendezvous) => self.fail_rendezvous(qpn, &rendezvous),
            // The FIN did not get through: the receive is complete, the connection is not usable.
            Origin::Fin(_) => {
                self.fail_qp(qpn);
                self.tell_qp(qpn, event::QP_FATAL);
            }
        }
    }

    /// A completion on the send CQ.
    pub(crate) fn complete_send(&mut self, qpn: u32, cqe: Cqe, index: u16, opcode: u8) {
        let Some(qp) = self.qps.get(&qpn) else { return };
        let cqe = Cqe {
            srqn_uidx: qp.uidx.into(),
            sop_drop_qpn: (u32::from(opcode) << 24 | qpn).into(),
            wqe_counter: index.into(),
            ..cqe
        };
        let cqn = qp.send_cq;
        if !self.complete(cqn, cqe, false) {
            self.fail_without_cq(qpn);
        }
    }

    /// Its CQ took no completion.
    pub(crate) fn fail_without_cq(&mut self, qpn: u32) {
        if self.qps.get(&qpn).is_some_and(|qp| qp.attributes.state != state::ERR) {
            self.fail_qp(qpn);
            self.tell_qp(qpn, event::QP_FATAL);
        }
    }
}

/// Reads and atomics are limited in number, and a fence waits for them.
fn may_go_on(qp: &Qp, place: usize) -> bool {
    let works = &qp.requester.works;
    let Some(work) = works.get(place) else { return false };
    if work.sent > 0 {
        return true;
    }
    let outstanding = works.iter().take(place).filter(|before| before.is_outstanding()).count();
    let limited = work.is_answered() && outstanding >= usize::from(qp.attributes.max_rd_atomic);
    !limited && (!work.fence || outstanding == 0)
}

/// What no responder needs to see.
fn refuse(qp: &Qp, operation: Operation, length: u32, length_max: u32) -> Option<Syndrome> {
    let answered = !matches!(operation, Operation::Send | Operation::Write(_));
    if answered && qp.attributes.max_rd_atomic == 0 {
        return Some(Syndrome::LocalQpOperation);
    }
    let is_atomic = matches!(operation, Operation::CompareSwap { .. } | Operation::FetchAdd { .. });
    (length > length_max || is_atomic && length != 8).then_some(Syndrome::LocalLength)
}

/// `path_mtu` in bytes.
pub(crate) const fn mtu_bytes(qp: &Qp) -> u32 {
    let mtu = qp.attributes.path_mtu;
    if mtu >= 1 && mtu <= 5 { 128 << mtu } else { 256 }
}

/// IBTA 8.3: a header like that of IPv6.
fn grh_bytes(grh: &super::wqe::GlobalAddress, length: u16, source: &[u8; 16]) -> [u8; 40] {
    let word = 6 << 28 | u32::from(grh.traffic_class) << 20 | grh.flow_label;
    // The payload with transport headers (BTH 12, DETH 8) and the invariant CRC (4).
    let length = length.saturating_add(24);
    let mut bytes = [0; 40];
    let fields: [&[u8]; 6] =
        [&word.to_be_bytes(), &length.to_be_bytes(), &[NEXT_HEADER_IBA], &[grh.hop_limit], source, &grh.gid];
    for (to, from) in bytes.iter_mut().zip(fields.into_iter().flatten()) {
        *to = *from;
    }
    bytes
}

const NEXT_HEADER_IBA: u8 = 0x1b;
