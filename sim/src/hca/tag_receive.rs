//! Messages to a TM-SRQ: what they are, what matches them, where they go (TM-CONTRACT 3, 10, 11.2).

use tagmatch::device::soft::list::Entry;
use tagmatch::device::soft::switches::{
    CompletionOrder, ConsumedLength, CountAt, EmptyRendezvous, FewBuffers, HandBack, ImmediateOn, Malformed,
    NoOffload, TooLong,
};
use tagmatch::seam::{Buffer, Capabilities};

use super::device::Hca;
use super::layout::{Cqe, Syndrome, cqe_opcode};
use super::memory::HostMemory;
use super::observed::AcceptedBy;
use super::packet::{Refusal, Remote, Request};
use super::qp::{Origin, Receiving};
use super::regions::{Need, ScatterFault, Segment};
use super::responder::Problem;
use super::srq::Taken;
use super::tm::{Expected, Rendezvous, TagReceiving, app_op, received_opcode};
use super::verbs::{access, event};

/// What a message is by its first packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Eager { header: [u8; 16], tag: u64 },
    Rendezvous { headers: [u8; 32], tag: u64, remote: Remote },
    NoTag,
    Malformed,
}

impl Kind {
    /// The reserved bytes of the TMH are not looked at, as on the device (TM-CONTRACT 3).
    pub(crate) fn of(payload: &[u8], is_whole: bool) -> Self {
        let opcode = payload.first().copied();
        if matches!(opcode, None | Some(NO_TAG | FIN)) {
            return Self::NoTag;
        }
        let Some(header) = payload.first_chunk::<16>() else { return Self::Malformed };
        let [.., t0, t1, t2, t3, t4, t5, t6, t7] = *header;
        let tag = u64::from_be_bytes([t0, t1, t2, t3, t4, t5, t6, t7]);
        match (opcode, payload.first_chunk::<32>()) {
            (Some(EAGER), _) => Self::Eager { header: *header, tag },
            // A request is one packet: it is at most 64 bytes, and no MTU is smaller.
            (Some(RENDEZVOUS), Some(headers)) if is_whole => {
                let remote = remote(headers);
                Self::Rendezvous { headers: *headers, tag, remote }
            }
            _ => Self::Malformed,
        }
    }

    const fn tag(&self) -> Option<u64> {
        match self {
            Self::Eager { tag, .. } | Self::Rendezvous { tag, .. } => Some(*tag),
            Self::NoTag | Self::Malformed => None,
        }
    }
}

fn remote(headers: &[u8; 32]) -> Remote {
    let word = |at: usize| {
        let bytes = headers.get(at..).and_then(|rest| rest.first_chunk::<4>());
        u32::from_be_bytes(bytes.copied().unwrap_or_default())
    };
    let address = u64::from(word(16)) << 32 | u64::from(word(20));
    Remote { address, key: word(24), length: word(28) }
}

impl<M: HostMemory> Hca<M> {
    pub(crate) fn receive_tagged(&mut self, qpn: u32, request: &Request) -> Result<(), Problem> {
        let Some(qp) = self.qps.get_mut(&qpn) else { return Ok(()) };
        let Some(srqn) = qp.srq else { return Ok(()) };
        match qp.responder.receiving.take() {
            None => self.accept_tagged(qpn, srqn, request),
            Some(Receiving::Tag(TagReceiving::Entry { index, buffer, received, header })) => {
                self.continue_entry(qpn, srqn, request, (index, buffer, received, header))
            }
            Some(Receiving::Tag(TagReceiving::Unexpected { taken, offset, counted })) => {
                self.continue_buffer(qpn, srqn, request, taken, offset, Some(counted))
            }
            Some(Receiving::Tag(TagReceiving::NoTag { taken, offset })) => {
                self.continue_buffer(qpn, srqn, request, taken, offset, None)
            }
            Some(Receiving::Receive { .. } | Receiving::Write { .. }) => Err(Problem::INVALID),
        }
    }

    fn accept_tagged(&mut self, qpn: u32, srqn: u32, request: &Request) -> Result<(), Problem> {
        if !self.is_operating(srqn) {
            return Err(Problem::NotReady);
        }
        let switches = self.config.switches;
        let kind = Kind::of(&request.payload, request.last);
        let offloads = self.offloads_rendezvous(qpn);
        let is_rendezvous = matches!(kind, Kind::Rendezvous { .. });
        let may_match = !is_rendezvous || offloads || switches.no_offload == NoOffload::SoftwareRendezvous;
        if let Some(tag) = kind.tag().filter(|_| may_match) {
            let entry = self.tag_matching_mut(srqn).and_then(|tm| tm.list.take_match(tag));
            if let Some(entry) = entry {
                let (index, address) = (entry.index, entry.buffer.address);
                self.note_accepted(qpn, request, AcceptedBy::Entry { index, address });
                return match kind {
                    Kind::Rendezvous { headers, remote, .. } => {
                        self.match_rendezvous(qpn, srqn, request, &entry, headers, remote);
                        Ok(())
                    }
                    Kind::Eager { header, .. } => self.match_eager(qpn, srqn, request, &entry, header),
                    Kind::NoTag | Kind::Malformed => Ok(()),
                };
            }
        }
        let counts =
            kind.tag().is_some() || kind == Kind::Malformed && switches.malformed == Malformed::Unexpected;
        let taken = self.take_srq_receive(srqn).ok_or(Problem::NotReady)?;
        let by = if counts { AcceptedBy::Unexpected } else { AcceptedBy::Untagged };
        self.note_accepted(qpn, request, by);
        let at_once = request.last || switches.count_at == CountAt::FirstPacket;
        if counts && at_once {
            self.count_unexpected(srqn);
        }
        let in_order = !request.last && switches.completion_order == CompletionOrder::Arrival;
        if let Some(tm) = self.tag_matching_mut(srqn).filter(|_| in_order) {
            tm.wait_for(qpn);
        }
        self.continue_buffer(qpn, srqn, request, taken, 0, counts.then_some(at_once))
    }

    /// A6
    fn is_operating(&mut self, srqn: u32) -> bool {
        let posted = self.srq_posted(srqn);
        let few_buffers = self.config.switches.few_buffers;
        let Some(tm) = self.tag_matching_mut(srqn) else { return false };
        let enough = posted >= Capabilities::UNEXPECTED_BUFFERS_MIN;
        tm.started |= enough;
        match few_buffers {
            FewBuffers::WaitAtStart => tm.started,
            FewBuffers::WaitAlways => enough,
            FewBuffers::Work => true,
        }
    }

    /// Only a QP whose send queue is the device's does (TM-CONTRACT 4).
    fn offloads_rendezvous(&self, qpn: u32) -> bool {
        self.config.rendezvous && self.qps.get(&qpn).is_some_and(|qp| qp.sq_count == 0)
    }

    fn count_unexpected(&mut self, srqn: u32) {
        if let Some(tm) = self.tag_matching_mut(srqn) {
            tm.list.count_unexpected();
        }
    }

    fn match_eager(
        &mut self,
        qpn: u32,
        srqn: u32,
        request: &Request,
        entry: &Entry,
        header: [u8; 16],
    ) -> Result<(), Problem> {
        let buffer = segment(entry.buffer);
        let payload = request.payload.get(header.len()..).unwrap_or_default();
        let length = payload.len() as u64;
        if request.last {
            self.place_tagged(qpn, srqn, buffer, 0, payload)?;
            let immediate = request.extension.immediate();
            let cqe = Cqe {
                head: header,
                app_info: entry.index.into(),
                byte_count: u32::try_from(length).unwrap_or(u32::MAX).into(),
                immediate: immediate.unwrap_or_default(),
                ..self.tag_cqe(srqn, qpn, received_opcode(immediate), app_op::CONSUMED_MSG)
            };
            self.complete_tag(srqn, cqe, request.solicited);
            return Ok(());
        }
        self.complete_consumed(qpn, srqn, request, entry.index, header);
        let begun = TagReceiving::Entry { index: entry.index, buffer, received: length, header };
        if let Some(qp) = self.qps.get_mut(&qpn) {
            qp.responder.receiving = Some(Receiving::Tag(begun));
        }
        self.place_tagged(qpn, srqn, buffer, 0, payload)
    }

    fn complete_consumed(&mut self, qpn: u32, srqn: u32, request: &Request, index: u16, header: [u8; 16]) {
        let switches = self.config.switches;
        let byte_count = match switches.consumed_length {
            ConsumedLength::Zero => 0,
            ConsumedLength::Arbitrary => {
                u32::try_from(request.payload.len()).unwrap_or(u32::MAX).wrapping_add(1)
            }
        };
        let here = switches.immediate_on == ImmediateOn::Consumed;
        let immediate = request.extension.immediate().filter(|_| here);
        if let Some(tm) = self.tag_matching_mut(srqn) {
            tm.expect(index);
        }
        let cqe = Cqe {
            head: header,
            app_info: index.into(),
            byte_count: byte_count.into(),
            immediate: immediate.unwrap_or_default(),
            ..self.tag_cqe(srqn, qpn, cqe_opcode::NO_PACKET, app_op::CONSUMED)
        };
        self.complete_tag(srqn, cqe, false);
    }

    fn continue_entry(
        &mut self,
        qpn: u32,
        srqn: u32,
        request: &Request,
        (index, buffer, received, header): (u16, Segment, u64, [u8; 16]),
    ) -> Result<(), Problem> {
        let total = received + request.payload.len() as u64;
        let going_on = TagReceiving::Entry { index, buffer, received: total, header };
        if let Some(qp) = self.qps.get_mut(&qpn) {
            qp.responder.receiving = Some(Receiving::Tag(going_on));
        }
        self.place_tagged(qpn, srqn, buffer, received, &request.payload)?;
        if !request.last {
            return Ok(());
        }
        if let Some(qp) = self.qps.get_mut(&qpn) {
            qp.responder.receiving = None;
        }
        let here = self.config.switches.immediate_on == ImmediateOn::Expected;
        let immediate = request.extension.immediate().filter(|_| here);
        let cqe = Cqe {
            app_info: index.into(),
            byte_count: u32::try_from(total).unwrap_or(u32::MAX).into(),
            immediate: immediate.unwrap_or_default(),
            ..self.tag_cqe(srqn, qpn, received_opcode(immediate), app_op::EXPECTED)
        };
        self.complete_expected(Expected { srqn, cqe, solicited: request.solicited });
        Ok(())
    }

    /// Payload into a tagged buffer. One that is too long: A5.
    fn place_tagged(
        &mut self,
        qpn: u32,
        srqn: u32,
        buffer: Segment,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), Problem> {
        let room = buffer.length.saturating_sub(offset);
        let mut bytes = bytes;
        if bytes.len() as u64 > room {
            if self.config.switches.too_long == TooLong::Error {
                return Err(self.fail_match(qpn, srqn, Syndrome::LocalLength));
            }
            bytes = bytes.get(..usize::try_from(room).unwrap_or(usize::MAX)).unwrap_or_default();
        }
        let Some(pd) = self.srqs.get(&srqn).map(|srq| srq.pd) else { return Ok(()) };
        let place = Segment { address: buffer.address.wrapping_add(offset), ..buffer };
        let need = Need { pd, access: access::LOCAL_WRITE };
        let placed = self.regions.write(&mut self.memory, place, need, bytes);
        placed.map_err(|_| self.fail_match(qpn, srqn, Syndrome::LocalProtection))
    }

    /// An error completion that names no entry. The driver takes its receive for used up, so that one is.
    fn fail_match(&mut self, qpn: u32, srqn: u32, syndrome: Syndrome) -> Problem {
        let reason =
            if syndrome == Syndrome::LocalLength { Refusal::InvalidRequest } else { Refusal::Operation };
        let Some(taken) = self.take_srq_receive(srqn) else {
            return Problem::Refused { reason, event: Some(event::QP_FATAL) };
        };
        let cqe = self.tag_error(srqn, qpn, taken.counter, syndrome);
        self.complete_tag(srqn, cqe, false);
        Problem::Refused { reason, event: None }
    }

    fn match_rendezvous(
        &mut self,
        qpn: u32,
        srqn: u32,
        request: &Request,
        entry: &Entry,
        headers: [u8; 32],
        remote: Remote,
    ) {
        let switches = self.config.switches;
        let header = *headers.first_chunk().unwrap_or(&[0; 16]);
        let buffer = segment(entry.buffer);
        let index = entry.index;
        let length = u64::from(remote.length);
        let handed_back = length == 0 && switches.empty_rendezvous == EmptyRendezvous::HandedBack;
        if self.offloads_rendezvous(qpn) && length <= buffer.length && !handed_back {
            self.complete_consumed(qpn, srqn, request, index, header);
            let here = switches.immediate_on == ImmediateOn::Expected;
            let rendezvous = Rendezvous {
                srqn,
                index,
                headers,
                remote,
                buffer: Segment { length, ..buffer },
                immediate: request.extension.immediate().filter(|_| here),
                solicited: request.solicited,
            };
            if length == 0 {
                return self.finish_rendezvous(qpn, rendezvous);
            }
            if let Some(qp) = self.qps.get_mut(&qpn) {
                qp.requester.own.push_back(Origin::Rendezvous(rendezvous));
            }
            return;
        }
        self.hand_back(qpn, srqn, request, index, buffer, header);
    }

    /// Headers into the tagged buffer, as far as they fit; the host must read (TM-CONTRACT 9, 0xB).
    fn hand_back(
        &mut self,
        qpn: u32,
        srqn: u32,
        request: &Request,
        index: u16,
        buffer: Segment,
        header: [u8; 16],
    ) {
        let fitting = usize::try_from(buffer.length).unwrap_or(usize::MAX).min(request.payload.len());
        let bytes = request.payload.get(..fitting).unwrap_or_default();
        let pd = self.srqs.get(&srqn).map_or(0, |srq| srq.pd);
        let need = Need { pd, access: access::LOCAL_WRITE };
        if self.regions.write(&mut self.memory, buffer, need, bytes).is_err() {
            // As with any other entry whose key does not reach: the QP fails.
            let problem = self.fail_match(qpn, srqn, Syndrome::LocalProtection);
            self.fail_qp(qpn);
            if let Problem::Refused { event: Some(event), .. } = problem {
                self.tell_qp(qpn, event);
            }
            return;
        }
        let (first, second) = match self.config.switches.hand_back {
            HandBack::One => (app_op::CONSUMED_MSG_SW_RNDV, None),
            HandBack::ThenExpected => (app_op::CONSUMED_SW_RNDV, Some(app_op::EXPECTED)),
            HandBack::ThenCanceled => (app_op::CONSUMED_SW_RNDV, Some(app_op::MSG_COMPLETION_CANCELED)),
        };
        let immediate = request.extension.immediate();
        let cqe = Cqe {
            head: header,
            app_info: index.into(),
            byte_count: u32::try_from(request.payload.len()).unwrap_or(u32::MAX).into(),
            immediate: immediate.unwrap_or_default(),
            ..self.tag_cqe(srqn, qpn, received_opcode(immediate), first)
        };
        self.complete_tag(srqn, cqe, request.solicited);
        if let Some(second) = second {
            let head = if second == app_op::EXPECTED { [0; 16] } else { header };
            let cqe = self.tag_cqe(srqn, qpn, cqe_opcode::RECEIVED_SEND, second);
            self.complete_tag(srqn, Cqe { head, app_info: index.into(), ..cqe }, false);
        }
    }

    /// One more packet into a buffer of the SRQ. `counted`: whether an unexpected message has been counted; `None`:
    /// it is none.
    fn continue_buffer(
        &mut self,
        qpn: u32,
        srqn: u32,
        request: &Request,
        taken: Taken,
        offset: u64,
        counted: Option<bool>,
    ) -> Result<(), Problem> {
        let pd = self.srqs.get(&srqn).map_or(0, |srq| srq.pd);
        let segments = taken.segments.iter().copied();
        if let Err(fault) = self.regions.scatter(&mut self.memory, pd, segments, offset, &request.payload) {
            let (syndrome, problem) = match fault {
                ScatterFault::TooLong => (Syndrome::LocalLength, Problem::TOO_LONG),
                ScatterFault::Key(_) => (Syndrome::LocalProtection, Problem::OWN),
            };
            let cqe = self.tag_error(srqn, qpn, taken.counter, syndrome);
            self.resolve_tag(srqn, qpn, Some((cqe, false)));
            return Err(problem);
        }
        let offset = offset + request.payload.len() as u64;
        if !request.last {
            let begun = match counted {
                Some(counted) => TagReceiving::Unexpected { taken, offset, counted },
                None => TagReceiving::NoTag { taken, offset },
            };
            if let Some(qp) = self.qps.get_mut(&qpn) {
                qp.responder.receiving = Some(Receiving::Tag(begun));
            }
            return Ok(());
        }
        if counted == Some(false) {
            self.count_unexpected(srqn);
        }
        let immediate = request.extension.immediate();
        let app_op = if counted.is_some() { app_op::UNEXPECTED } else { app_op::NO_TAG };
        let cqe = Cqe {
            byte_count: u32::try_from(offset).unwrap_or(u32::MAX).into(),
            immediate: immediate.unwrap_or_default(),
            wqe_counter: taken.counter.into(),
            ..self.tag_cqe(srqn, qpn, received_opcode(immediate), app_op)
        };
        self.resolve_tag(srqn, qpn, Some((cqe, request.solicited)));
        Ok(())
    }
}

const fn segment(buffer: Buffer) -> Segment {
    Segment { key: buffer.key, address: buffer.address, length: buffer.length }
}

/// The first byte of a TMH (`infiniband/tm_types.h`).
const NO_TAG: u8 = 0;
const RENDEZVOUS: u8 = 1;
const FIN: u8 = 2;
const EAGER: u8 = 3;
