//! What a TM-SRQ has besides its receives: matching list, order of completions, rendezvous.
//!
//! The list with its counters is that of [`tagmatch::device::soft::list`], and so are the switches; what happens with
//! them is as in [`tagmatch::device::soft`], where messages are whole. Here they come in packets, and completions are
//! bytes. Not here: list operations ([`super::tag_commands`]), messages ([`super::tag_receive`]).

use std::collections::VecDeque;

use tagmatch::device::soft::list::MatchingList;
use tagmatch::device::soft::switches::{ExpectedOrder, FinOrder, HalfReceived, ReadFailure};

use super::device::Hca;
use super::layout::{Cqe, Syndrome, cqe_opcode};
use super::memory::HostMemory;
use super::packet::{Extension, MASK_24, Operation, Remote};
use super::qp::{Origin, Work};
use super::regions::{Piece, Segment};
use super::srq::Taken;
use super::verbs::{event, state};

#[derive(Clone, Debug)]
pub(crate) struct TagMatching {
    pub list: MatchingList,
    pub cq: u32,
    /// A6: enough receives have been there at once.
    pub started: bool,
    /// Entries that were consumed and whose last completion has not come, as matched.
    expecting: VecDeque<u16>,
    /// A12: complete, but not in its turn.
    finished: Vec<Expected>,
    /// TM-CONTRACT 10: completions behind an unexpected message that is not complete.
    serial: VecDeque<Serial>,
}

#[derive(Clone, Debug)]
enum Serial {
    Ready {
        cqe: Cqe,
        solicited: bool,
    },
    /// The message that comes in by this QP.
    Waiting(u32),
}

/// The last completion of an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    pub srqn: u32,
    pub cqe: Cqe,
    pub solicited: bool,
}

/// A matched rendezvous: the device reads the payload and tells the sender.
#[derive(Clone, Debug)]
pub(crate) struct Rendezvous {
    pub srqn: u32,
    pub index: u16,
    /// TMH and RVH as they came.
    pub headers: [u8; 32],
    pub remote: Remote,
    /// As long as the payload.
    pub buffer: Segment,
    pub immediate: Option<[u8; 4]>,
    pub solicited: bool,
}

/// The message to the sender of a rendezvous.
#[derive(Clone, Debug)]
pub(crate) struct Fin {
    pub message: [u8; 32],
    /// Written when the FIN has been sent (A12).
    pub expected: Option<Expected>,
}

/// A tagged message of several packets that has begun.
#[derive(Clone, Debug)]
pub(crate) enum TagReceiving {
    /// Matched; `received` bytes of payload have come.
    Entry {
        index: u16,
        buffer: Segment,
        received: u64,
        header: [u8; 16],
    },
    /// `offset` bytes have come, TMH included.
    Unexpected {
        taken: Taken,
        offset: u64,
        counted: bool,
    },
    NoTag {
        taken: Taken,
        offset: u64,
    },
}

/// `app_op` (TM-CONTRACT 9)
pub(crate) mod app_op {
    pub(crate) const CONSUMED: u8 = 0x1;
    pub(crate) const EXPECTED: u8 = 0x2;
    pub(crate) const UNEXPECTED: u8 = 0x3;
    pub(crate) const NO_TAG: u8 = 0x4;
    pub(crate) const APPEND: u8 = 0x5;
    pub(crate) const REMOVE: u8 = 0x6;
    pub(crate) const NOOP: u8 = 0x7;
    pub(crate) const CONSUMED_SW_RNDV: u8 = 0x9;
    pub(crate) const CONSUMED_MSG: u8 = 0xa;
    pub(crate) const CONSUMED_MSG_SW_RNDV: u8 = 0xb;
    pub(crate) const MSG_COMPLETION_CANCELED: u8 = 0xc;
}

impl TagMatching {
    pub(crate) const fn new(list: MatchingList, cq: u32) -> Self {
        Self {
            list,
            cq,
            started: false,
            expecting: VecDeque::new(),
            finished: Vec::new(),
            serial: VecDeque::new(),
        }
    }

    /// Behind it, completions wait for the message of this QP.
    pub(crate) fn wait_for(&mut self, qpn: u32) {
        self.serial.push_back(Serial::Waiting(qpn));
    }

    /// Another completion of this entry will follow.
    pub(crate) fn expect(&mut self, index: u16) {
        self.expecting.push_back(index);
    }

    fn forget(&mut self, index: u16) {
        if let Some(place) = self.expecting.iter().position(|expected| *expected == index) {
            self.expecting.remove(place);
        }
    }

    /// Whether completions of this QP are to come.
    pub(crate) fn holds_back(&self, qpn: u32) -> bool {
        self.serial.iter().any(|serial| match serial {
            Serial::Ready { cqe, .. } => cqe.sop_drop_qpn.get() & MASK_24 == qpn,
            Serial::Waiting(waiting) => *waiting == qpn,
        })
    }

    fn is_match_waiting(&self, index: u16) -> bool {
        self.serial.iter().any(|serial| match serial {
            Serial::Ready { cqe, .. } => {
                matches!(cqe.app_op, app_op::CONSUMED | app_op::CONSUMED_SW_RNDV)
                    && cqe.app_info.get() == index
            }
            Serial::Waiting(_) => false,
        })
    }

    /// Those of the completions held back for order whose turn it is.
    fn take_finished(&mut self) -> Option<Expected> {
        let front = *self.expecting.front()?;
        let place = self.finished.iter().position(|done| done.cqe.app_info.get() == front)?;
        Some(self.finished.remove(place))
    }
}

impl<M: HostMemory> Hca<M> {
    pub(crate) fn tag_matching_mut(&mut self, srqn: u32) -> Option<&mut TagMatching> {
        self.srqs.get_mut(&srqn)?.tm.as_mut()
    }

    /// What all completions of a TM-SRQ have in common.
    pub(crate) fn tag_cqe(&self, srqn: u32, qpn: u32, opcode: u8, app_op: u8) -> Cqe {
        let remote = self.qps.get(&qpn).map_or(0, |qp| qp.attributes.dest_qpn);
        let uidx = self.srqs.get(&srqn).map_or(0, |srq| srq.uidx);
        Cqe {
            app: APP_TAG_MATCHING,
            app_op,
            flags_rqpn: remote.into(),
            slid: self.config.lid.into(),
            srqn_uidx: uidx.into(),
            sop_drop_qpn: qpn.into(),
            ..Cqe::new(opcode)
        }
    }

    /// In its turn (TM-CONTRACT 10).
    pub(crate) fn complete_tag(&mut self, srqn: u32, cqe: Cqe, solicited: bool) {
        let Some(tm) = self.tag_matching_mut(srqn) else { return };
        if tm.serial.is_empty() {
            self.write_tag(srqn, cqe, solicited);
        } else {
            tm.serial.push_back(Serial::Ready { cqe, solicited });
        }
    }

    fn write_tag(&mut self, srqn: u32, cqe: Cqe, solicited: bool) {
        let Some(srq) = self.srqs.get(&srqn).filter(|srq| !srq.failed) else { return };
        let Some(cqn) = srq.tm.as_ref().map(|tm| tm.cq) else { return };
        if !self.complete(cqn, cqe, solicited) {
            self.fail_srq(srqn);
        }
    }

    /// The message coming in by that QP is complete, or gone without a completion.
    pub(crate) fn resolve_tag(&mut self, srqn: u32, qpn: u32, output: Option<(Cqe, bool)>) {
        let Some(tm) = self.tag_matching_mut(srqn) else { return };
        let is_it = |serial: &Serial| matches!(serial, Serial::Waiting(waiting) if *waiting == qpn);
        let place = tm.serial.iter().position(is_it);
        match (place, output) {
            (Some(place), Some((cqe, solicited))) => {
                if let Some(serial) = tm.serial.get_mut(place) {
                    *serial = Serial::Ready { cqe, solicited };
                }
            }
            (Some(place), None) => drop(tm.serial.remove(place)),
            (None, Some((cqe, solicited))) => return self.complete_tag(srqn, cqe, solicited),
            (None, None) => {}
        }
        while let Some(tm) = self.tag_matching_mut(srqn) {
            match tm.serial.pop_front() {
                Some(Serial::Ready { cqe, solicited }) => self.write_tag(srqn, cqe, solicited),
                Some(waiting @ Serial::Waiting(_)) => {
                    tm.serial.push_front(waiting);
                    break;
                }
                None => break,
            }
        }
        let failed = |qp: &super::qp::Qp| qp.srq == Some(srqn) && qp.attributes.state == state::ERR;
        let failed: Vec<u32> = self.qps.iter().filter(|(_, qp)| failed(qp)).map(|(&qpn, _)| qpn).collect();
        for qpn in failed {
            self.tell_last_wqe(qpn);
        }
    }

    /// The last completion of an entry overtakes others, but not its own match; A12 may put it behind those of
    /// entries that were matched before.
    pub(crate) fn complete_expected(&mut self, expected: Expected) {
        let as_matched = self.config.switches.expected_order == ExpectedOrder::AsMatched;
        let srqn = expected.srqn;
        let Some(tm) = self.tag_matching_mut(srqn) else { return };
        let index = expected.cqe.app_info.get();
        if as_matched && tm.expecting.front() != Some(&index) {
            tm.finished.push(expected);
            return;
        }
        let mut next = Some(expected);
        while let Some(Expected { cqe, solicited, .. }) = next {
            let Some(tm) = self.tag_matching_mut(srqn) else { return };
            tm.forget(cqe.app_info.get());
            if tm.is_match_waiting(cqe.app_info.get()) {
                tm.serial.push_back(Serial::Ready { cqe, solicited });
            } else {
                self.write_tag(srqn, cqe, solicited);
            }
            next = self.tag_matching_mut(srqn).and_then(TagMatching::take_finished);
        }
    }

    /// The QP failed in the middle of a message (TM-CONTRACT 13).
    pub(crate) fn lose_tagged(&mut self, qpn: u32, receiving: TagReceiving) {
        let Some(srqn) = self.qps.get(&qpn).and_then(|qp| qp.srq) else { return };
        let silent = self.config.switches.half_received == HalfReceived::Silent;
        match receiving {
            TagReceiving::Entry { index, header, .. } => self.lose_entry(srqn, qpn, index, header),
            TagReceiving::Unexpected { counted: true, .. } if silent => self.resolve_tag(srqn, qpn, None),
            TagReceiving::Unexpected { taken, counted: true, .. } => {
                let cqe = self.tag_error(srqn, qpn, taken.counter, Syndrome::Flushed);
                self.resolve_tag(srqn, qpn, Some((cqe, false)));
            }
            TagReceiving::Unexpected { taken, counted: false, .. } | TagReceiving::NoTag { taken, .. } => {
                self.return_srq_receive(srqn, taken.counter);
                self.resolve_tag(srqn, qpn, None);
            }
        }
    }

    pub(crate) fn tag_error(&self, srqn: u32, qpn: u32, counter: u16, syndrome: Syndrome) -> Cqe {
        let uidx = self.srqs.get(&srqn).map_or(0, |srq| srq.uidx);
        Cqe {
            srqn_uidx: uidx.into(),
            sop_drop_qpn: qpn.into(),
            wqe_counter: counter.into(),
            ..Cqe::error(cqe_opcode::RESPONDER_ERROR, syndrome)
        }
    }

    pub(crate) fn lose_rendezvous(&mut self, qpn: u32, rendezvous: &Rendezvous) {
        let header = *rendezvous.headers.first_chunk().unwrap_or(&[0; 16]);
        self.lose_entry(rendezvous.srqn, qpn, rendezvous.index, header);
    }

    fn lose_entry(&mut self, srqn: u32, qpn: u32, index: u16, header: [u8; 16]) {
        if self.config.switches.half_received == HalfReceived::Canceled {
            let opcode = cqe_opcode::RECEIVED_SEND;
            let cqe = self.tag_cqe(srqn, qpn, opcode, app_op::MSG_COMPLETION_CANCELED);
            let cqe = Cqe { head: header, app_info: index.into(), ..cqe };
            // Not held back by order: what it would wait for may never come.
            if let Some(tm) = self.tag_matching_mut(srqn) {
                tm.forget(index);
                if tm.is_match_waiting(index) {
                    tm.serial.push_back(Serial::Ready { cqe, solicited: false });
                } else {
                    self.write_tag(srqn, cqe, false);
                }
            }
        } else if let Some(tm) = self.tag_matching_mut(srqn) {
            tm.forget(index);
        }
        if let Some(next) = self.tag_matching_mut(srqn).and_then(TagMatching::take_finished) {
            self.complete_expected(next);
        }
    }

    /// The device begins its own read or FIN.
    pub(crate) fn take_up_own(&mut self, qpn: u32) {
        let Some(origin) = self.qps.get_mut(&qpn).and_then(|qp| qp.requester.own.pop_front()) else { return };
        let (operation, piece) = match &origin {
            Origin::Queue { .. } => return,
            Origin::Rendezvous(rendezvous) => {
                (Operation::Read(rendezvous.remote), Piece::Memory(rendezvous.buffer))
            }
            Origin::Fin(fin) => (Operation::Send, Piece::Inline(fin.message.to_vec())),
        };
        let work = Work {
            origin,
            operation: Some(operation),
            extension: Extension::None,
            pieces: vec![piece],
            length: 0,
            solicited: false,
            fence: false,
            first_psn: 0,
            psns: 0,
            packets: 0,
            sent: 0,
            received: 0,
            acknowledged: false,
            error: None,
        };
        self.begin_work(qpn, work);
    }

    /// The payload is here.
    pub(crate) fn finish_rendezvous(&mut self, qpn: u32, rendezvous: Rendezvous) {
        let Rendezvous { srqn, index, headers, remote, immediate, solicited, .. } = rendezvous;
        let opcode = received_opcode(immediate);
        let cqe = Cqe {
            app_info: index.into(),
            byte_count: remote.length.into(),
            immediate: immediate.unwrap_or_default(),
            ..self.tag_cqe(srqn, qpn, opcode, app_op::EXPECTED)
        };
        let expected = Expected { srqn, cqe, solicited };
        let mut message = headers;
        if let Some(opcode) = message.first_mut() {
            *opcode = FIN;
        }
        let mut fin = Fin { message, expected: Some(expected) };
        if self.config.switches.fin_order == FinOrder::AfterExpected {
            fin.expected = None;
            self.complete_expected(expected);
        }
        if let Some(qp) = self.qps.get_mut(&qpn) {
            qp.requester.own.push_back(Origin::Fin(fin));
        }
    }

    /// A13: the read was refused.
    pub(crate) fn fail_rendezvous(&mut self, qpn: u32, rendezvous: &Rendezvous) {
        self.lose_rendezvous(qpn, rendezvous);
        self.fail_qp(qpn);
        self.tell_qp(qpn, event::QP_FATAL);
        if self.config.switches.read_failure == ReadFailure::DeviceError {
            self.fail_srq(rendezvous.srqn);
        }
    }
}

pub(crate) const fn received_opcode(immediate: Option<[u8; 4]>) -> u8 {
    match immediate {
        Some(_) => cqe_opcode::RECEIVED_SEND_IMMEDIATE,
        None => cqe_opcode::RECEIVED_SEND,
    }
}

/// `MLX5_CQE_APP_TAG_MATCHING`
const APP_TAG_MATCHING: u8 = 1;
/// The TMH opcode of a FIN.
const FIN: u8 = 2;
