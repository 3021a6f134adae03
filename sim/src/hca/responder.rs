//! The receiving half of an RC QP: requests in the order of their PSNs, and what they are answered.
//!
//! Not here: a TM-SRQ behind it ([`super::tag_receive`]), UD ([`super::datagrams`]).

use super::device::Hca;
use super::layout::{Cqe, Syndrome, cqe_opcode};
use super::memory::HostMemory;
use super::packet::{
    Body, Extension, Operation, Packet, Refusal, Remote, Request, Response, psn_after, psn_distance,
};
use super::qp::{Answer, Kind, Qp, Receiving};
use super::regions::{KeyFault, Need, ScatterFault, Segment};
use super::requester::mtu_bytes;
use super::srq::Taken;
use super::verbs::{access, event, state};

/// Why a request was not done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Problem {
    /// No receive: the requester shall try again.
    NotReady,
    /// It broke a rule; the QP fails, and this event says so.
    Refused { reason: Refusal, event: Option<u32> },
}

impl Problem {
    pub(crate) const INVALID: Self =
        Self::Refused { reason: Refusal::InvalidRequest, event: Some(event::QP_REQUEST_ERROR) };
    const ACCESS: Self = Self::Refused { reason: Refusal::Access, event: Some(event::QP_ACCESS_ERROR) };
    /// A fault of the responder's own, told by a completion.
    pub(crate) const OWN: Self = Self::Refused { reason: Refusal::Operation, event: None };
    /// A message that does not fit, told by a completion.
    pub(crate) const TOO_LONG: Self = Self::Refused { reason: Refusal::InvalidRequest, event: None };
}

impl From<KeyFault> for Problem {
    fn from(_: KeyFault) -> Self {
        Self::ACCESS
    }
}

impl<M: HostMemory> Hca<M> {
    pub(crate) fn handle_request(&mut self, qpn: u32, source: u32, request: Request) {
        let alive = self.qps.get(&qpn).filter(|qp| {
            let live = matches!(qp.attributes.state, state::RTR | state::RTS | state::SQD);
            live && qp.kind == Kind::Reliable && qp.attributes.dest_qpn == source
        });
        let Some(qp) = alive else {
            let Request { psn, attempt, .. } = request;
            return self.drop_notice(qpn, source, psn, attempt);
        };
        if qp.attributes.state == state::RTR && !qp.responder.established_told {
            self.tell_qp(qpn, event::COMMUNICATION_ESTABLISHED);
        }
        let Some(qp) = self.qps.get_mut(&qpn) else { return };
        qp.responder.established_told = true;
        qp.responder.attempt = request.attempt;
        let expected = qp.responder.expected_psn;
        let distance = psn_distance(request.psn, expected);
        if distance > 0 {
            // Answered once; the rest of what was sent too early is dropped.
            if qp.responder.gap_answered.replace(request.attempt) != Some(request.attempt) {
                self.answer(qpn, Response::OutOfSequence { psn: expected });
            }
            return;
        }
        if distance < 0 {
            return self.repeat(qpn, &request);
        }
        qp.responder.gap_answered = None;
        let Request { psn, attempt, .. } = request;
        let problem = self.execute_request(qpn, request).err();
        match problem {
            None => self.handle_done(qpn, psn),
            Some(Problem::NotReady) => {
                let Some(qp) = self.qps.get_mut(&qpn) else { return };
                qp.responder.gap_answered = Some(attempt);
                let timer = qp.attributes.min_rnr_timer;
                self.answer(qpn, Response::NotReady { psn, timer });
            }
            Some(Problem::Refused { reason, event }) => {
                self.fail_answering(qpn);
                if let Some(event) = event {
                    self.tell_qp(qpn, event);
                }
                self.answer(qpn, Response::Refused { psn, reason });
            }
        }
    }

    /// Reads and atomics have answered already. Acknowledgements that wait become one.
    fn handle_done(&mut self, qpn: u32, psn: u32) {
        let Some(qp) = self.qps.get_mut(&qpn) else { return };
        if qp.responder.expected_psn == psn {
            qp.responder.expected_psn = psn_after(psn, 1);
            self.answer(qpn, Response::Acknowledge { psn });
        }
    }

    /// The QP fails, but what it had answered before is still sent.
    fn fail_answering(&mut self, qpn: u32) {
        let answers = self.qps.get_mut(&qpn).map(|qp| std::mem::take(&mut qp.responder.answers));
        self.fail_qp(qpn);
        if let (Some(qp), Some(answers)) = (self.qps.get_mut(&qpn), answers) {
            qp.responder.answers = answers;
        }
    }

    /// Nobody takes this packet.
    pub(crate) fn drop_notice(&mut self, qpn: u32, source: u32, psn: u32, attempt: u8) {
        let body = Body::Response(Response::Dropped { psn, attempt });
        self.dispatch(Packet { source: qpn, destination: source, body });
    }

    fn answer(&mut self, qpn: u32, response: Response) {
        let Some(qp) = self.qps.get_mut(&qpn) else { return };
        let answers = &mut qp.responder.answers;
        if let (Response::Acknowledge { psn }, Some(Answer::Packet(Response::Acknowledge { psn: before }))) =
            (&response, answers.back_mut())
        {
            *before = *psn;
            return;
        }
        answers.push_back(Answer::Packet(response));
    }

    /// A request that was executed before: its answer got lost, or was not waited for.
    fn repeat(&mut self, qpn: u32, request: &Request) {
        let Some(qp) = self.qps.get_mut(&qpn) else { return };
        let responder = &mut qp.responder;
        let psn = request.psn;
        match request.operation {
            Operation::Read(remote) => responder.answers.push_back(Answer::Read { psn, remote, offset: 0 }),
            Operation::CompareSwap { .. } | Operation::FetchAdd { .. } => {
                if let Some(&(psn, value)) = responder.replay.iter().find(|(replayed, _)| *replayed == psn) {
                    self.answer(qpn, Response::AtomicResult { psn, value });
                }
            }
            Operation::Send | Operation::Write(_) => {
                let psn = psn_after(responder.expected_psn, u32::MAX);
                self.answer(qpn, Response::Acknowledge { psn });
            }
        }
    }

    fn execute_request(&mut self, qpn: u32, request: Request) -> Result<(), Problem> {
        let Some(qp) = self.qps.get_mut(&qpn) else { return Ok(()) };
        let mtu = mtu_bytes(qp) as usize;
        let cut_right = request.payload.len() <= mtu && (request.last || request.payload.len() == mtu);
        if !cut_right || request.first == qp.responder.receiving.is_some() {
            return Err(Problem::INVALID);
        }
        match request.operation {
            Operation::Send => self.receive_send(qpn, &request),
            Operation::Write(remote) => self.receive_write(qpn, &request, remote),
            Operation::Read(remote) => self.receive_read(qpn, &request, remote),
            Operation::CompareSwap { address, key, compare, swap } => {
                self.receive_atomic(qpn, &request, address, key, &mut |old| (old == compare).then_some(swap))
            }
            Operation::FetchAdd { address, key, add } => {
                self.receive_atomic(qpn, &request, address, key, &mut |old| Some(old.wrapping_add(add)))
            }
        }
    }

    fn receive_send(&mut self, qpn: u32, request: &Request) -> Result<(), Problem> {
        let Some(qp) = self.qps.get_mut(&qpn) else { return Ok(()) };
        if let Some(srq) = qp.srq.and_then(|srqn| self.srqs.get(&srqn)) {
            if srq.failed {
                return Err(Problem::OWN);
            }
            if srq.tm.is_some() {
                return self.receive_tagged(qpn, request);
            }
        }
        let (taken, offset) = match qp.responder.receiving.take() {
            None => (self.take_receive(qpn).ok_or(Problem::NotReady)?, 0),
            Some(Receiving::Receive { taken, offset }) => (taken, offset),
            Some(Receiving::Write { .. } | Receiving::Tag(_)) => return Err(Problem::INVALID),
        };
        self.place_received(qpn, &taken, offset, &request.payload)?;
        self.note_received(qpn, request);
        let offset = offset + request.payload.len() as u64;
        if !request.last {
            self.set_receiving(qpn, Receiving::Receive { taken, offset });
            return Ok(());
        }
        let opcode = match request.extension {
            Extension::None => cqe_opcode::RECEIVED_SEND,
            Extension::Immediate(_) => cqe_opcode::RECEIVED_SEND_IMMEDIATE,
            Extension::Invalidate(_) => cqe_opcode::RECEIVED_SEND_INVALIDATE,
        };
        if let Extension::Invalidate(key) = request.extension {
            self.invalidate(qpn, key, &taken)?;
        }
        self.complete_receive(qpn, Cqe::new(opcode), &taken, offset, request);
        Ok(())
    }

    /// No memory windows are offered, and the keys of ordinary regions cannot be invalidated from afar.
    fn invalidate(&mut self, qpn: u32, key: u32, taken: &Taken) -> Result<(), Problem> {
        if self.regions.find(key).is_none() {
            return Ok(());
        }
        self.complete_receive_error(qpn, taken, Syndrome::LocalQpOperation);
        Err(Problem::Refused { reason: Refusal::Access, event: None })
    }

    /// Into the segments of a receive; on a fault the receive completes with it.
    pub(crate) fn place_received(
        &mut self,
        qpn: u32,
        taken: &Taken,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), Problem> {
        let Some(pd) = self.qps.get(&qpn).map(|qp| self.receive_domain(qp)) else { return Ok(()) };
        let segments = taken.segments.iter().copied();
        let (syndrome, problem) = match self.regions.scatter(&mut self.memory, pd, segments, offset, bytes) {
            Ok(()) => return Ok(()),
            Err(ScatterFault::TooLong) => (Syndrome::LocalLength, Problem::TOO_LONG),
            Err(ScatterFault::Key(_)) => (Syndrome::LocalProtection, Problem::OWN),
        };
        self.complete_receive_error(qpn, taken, syndrome);
        Err(problem)
    }

    /// Receives of an SRQ are checked against the SRQ's protection domain.
    pub(crate) fn receive_domain(&self, qp: &Qp) -> u32 {
        qp.srq.and_then(|srqn| self.srqs.get(&srqn)).map_or(qp.pd, |srq| srq.pd)
    }

    fn set_receiving(&mut self, qpn: u32, receiving: Receiving) {
        if let Some(qp) = self.qps.get_mut(&qpn) {
            qp.responder.receiving = Some(receiving);
        }
    }

    fn receive_write(&mut self, qpn: u32, request: &Request, remote: Remote) -> Result<(), Problem> {
        let Some(qp) = self.qps.get_mut(&qpn) else { return Ok(()) };
        let (remote, offset) = match &qp.responder.receiving {
            None => (remote, 0),
            Some(Receiving::Write { remote, offset }) => (*remote, *offset),
            Some(Receiving::Receive { .. } | Receiving::Tag(_)) => return Err(Problem::INVALID),
        };
        let need = self.check_remote(qpn, remote, access::REMOTE_WRITE)?;
        let length = u32::try_from(request.payload.len()).unwrap_or(u32::MAX);
        let end = offset.checked_add(length).filter(|end| *end <= remote.length).ok_or(Problem::INVALID)?;
        if request.last && end != remote.length {
            return Err(Problem::INVALID);
        }
        let mut taken = None;
        if request.last && request.extension.immediate().is_some() {
            taken = Some(self.take_receive(qpn).ok_or(Problem::NotReady)?);
        }
        let address = remote.address.wrapping_add(u64::from(offset));
        let segment = Segment { key: remote.key, address, length: u64::from(length) };
        self.regions.write(&mut self.memory, segment, need, &request.payload)?;
        if !request.last {
            self.set_receiving(qpn, Receiving::Write { remote, offset: end });
            return Ok(());
        }
        if let Some(qp) = self.qps.get_mut(&qpn) {
            qp.responder.receiving = None;
        }
        if let Some(taken) = taken {
            let cqe = Cqe::new(cqe_opcode::RECEIVED_WRITE_IMMEDIATE);
            self.complete_receive(qpn, cqe, &taken, u64::from(end), request);
        }
        Ok(())
    }

    /// What the QP allows (else the request is invalid), then what the key does.
    fn check_remote(&self, qpn: u32, remote: Remote, access: u32) -> Result<Need, Problem> {
        let qp =
            self.qps.get(&qpn).filter(|qp| qp.attributes.access & access != 0).ok_or(Problem::INVALID)?;
        if remote.length > self.config.limits.message_length {
            return Err(Problem::INVALID);
        }
        let need = Need { pd: qp.pd, access };
        let Remote { address, key, length } = remote;
        self.regions.translate(Segment { key, address, length: u64::from(length) }, need)?;
        Ok(need)
    }

    fn receive_read(&mut self, qpn: u32, request: &Request, remote: Remote) -> Result<(), Problem> {
        self.check_remote(qpn, remote, access::REMOTE_READ)?;
        let Some(qp) = self.qps.get_mut(&qpn) else { return Ok(()) };
        check_depth(qp)?;
        let packets = remote.length.div_ceil(mtu_bytes(qp)).max(1);
        let psn = request.psn;
        qp.responder.answers.push_back(Answer::Read { psn, remote, offset: 0 });
        qp.responder.expected_psn = psn_after(psn, packets);
        Ok(())
    }

    fn receive_atomic(
        &mut self,
        qpn: u32,
        request: &Request,
        address: u64,
        key: u32,
        change: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> Result<(), Problem> {
        let need = self.check_remote(qpn, Remote { address, key, length: 8 }, access::REMOTE_ATOMIC)?;
        if !address.is_multiple_of(8) {
            return Err(Problem::INVALID);
        }
        let Some(qp) = self.qps.get_mut(&qpn) else { return Ok(()) };
        check_depth(qp)?;
        let host = self.regions.translate(Segment { key, address, length: 8 }, need)?;
        let value = self.memory.atomic_update(host, change).map_err(|_| Problem::ACCESS)?;
        let psn = request.psn;
        let responder = &mut qp.responder;
        responder.replay.push_back((psn, value));
        if responder.replay.len() > usize::from(self.config.limits.reads) {
            responder.replay.pop_front();
        }
        responder.answers.push_back(Answer::Packet(Response::AtomicResult { psn, value }));
        responder.expected_psn = psn_after(psn, 1);
        Ok(())
    }

    /// A completion of a receive of this QP. Its bytes and keys have been dealt with.
    pub(crate) fn complete_receive(
        &mut self,
        qpn: u32,
        cqe: Cqe,
        taken: &Taken,
        length: u64,
        request: &Request,
    ) {
        let immediate = match request.extension {
            Extension::None => [0; 4],
            Extension::Immediate(immediate) => immediate,
            Extension::Invalidate(key) => key.to_be_bytes(),
        };
        let Some(qp) = self.qps.get(&qpn) else { return };
        let cqe = Cqe {
            flags_rqpn: qp.attributes.dest_qpn.into(),
            slid: self.config.lid.into(),
            immediate,
            byte_count: u32::try_from(length).unwrap_or(u32::MAX).into(),
            ..cqe
        };
        self.write_receive(qpn, cqe, taken, request.solicited);
    }

    pub(crate) fn complete_receive_error(&mut self, qpn: u32, taken: &Taken, syndrome: Syndrome) {
        let cqe = Cqe::error(cqe_opcode::RESPONDER_ERROR, syndrome);
        self.write_receive(qpn, cqe, taken, false);
    }

    pub(crate) fn write_receive(&mut self, qpn: u32, cqe: Cqe, taken: &Taken, solicited: bool) {
        let Some(qp) = self.qps.get(&qpn) else { return };
        let cqe = Cqe {
            srqn_uidx: qp.uidx.into(),
            sop_drop_qpn: qpn.into(),
            wqe_counter: taken.counter.into(),
            ..cqe
        };
        let cqn = qp.receive_cq;
        if !self.complete(cqn, cqe, solicited) {
            self.fail_without_cq(qpn);
        }
    }

    pub(crate) fn can_respond(&self, qpn: u32) -> bool {
        self.qps
            .get(&qpn)
            .is_some_and(|qp| !qp.responder.answers.is_empty() && self.has_room(qpn, qp.attributes.dest_qpn))
    }

    /// One packet of what is to be answered.
    pub(crate) fn step_respond(&mut self, qpn: u32) -> bool {
        if !self.can_respond(qpn) {
            return false;
        }
        let Some(qp) = self.qps.get_mut(&qpn) else { return false };
        let mtu = mtu_bytes(qp);
        let pd = qp.pd;
        let (psn, remote, offset) = match qp.responder.answers.pop_front() {
            None => return false,
            Some(Answer::Packet(response)) => {
                self.send(qpn, Body::Response(response));
                return true;
            }
            Some(Answer::Read { psn, remote, offset }) => (psn, remote, offset),
        };
        let part = remote.length.saturating_sub(offset).min(mtu);
        let address = remote.address.wrapping_add(u64::from(offset));
        let segment = Segment { key: remote.key, address, length: u64::from(part) };
        let mut payload = Vec::new();
        let need = Need { pd, access: access::REMOTE_READ };
        if self.regions.read(&self.memory, segment, need, &mut payload).is_err() {
            // Deregistered meanwhile.
            self.fail_qp(qpn);
            self.tell_qp(qpn, event::QP_ACCESS_ERROR);
            self.answer(qpn, Response::Refused { psn, reason: Refusal::Access });
            return true;
        }
        let end = offset.saturating_add(part);
        if end < remote.length {
            let rest = Answer::Read { psn: psn_after(psn, 1), remote, offset: end };
            qp.responder.answers.push_front(rest);
        }
        self.send(qpn, Body::Response(Response::ReadData { psn, payload }));
        true
    }
}

/// Reads and atomics that were not answered yet are limited in number.
fn check_depth(qp: &Qp) -> Result<(), Problem> {
    let waiting = qp.responder.answers.iter().filter(|answer| {
        matches!(answer, Answer::Read { .. } | Answer::Packet(Response::AtomicResult { .. }))
    });
    if waiting.count() < usize::from(qp.attributes.max_dest_rd_atomic) {
        Ok(())
    } else {
        Err(Problem::INVALID)
    }
}
