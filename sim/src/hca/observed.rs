//! What happens to messages inside the device, at the moment it happens, for checkers that hold it against what the
//! host makes of it; and what its lists hold.
//!
//! Not here: anything that changes what the device does.

use std::collections::BTreeMap;

use tagmatch::device::soft::list::MatchingList;

use super::device::Hca;
use super::drive::Step;
use super::memory::HostMemory;
use super::packet::{Body, Operation, Packet, Request};
use super::requests::{AsyncEvent, Element};

/// A message to a shared receive queue was accepted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Acceptance {
    /// The QP that it came to.
    pub qpn: u32,
    /// Its first bytes, as many as there are: the TMH, if it has a tag.
    pub header: [u8; 16],
    /// What became of it.
    pub by: AcceptedBy,
}

/// See [`Acceptance::by`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AcceptedBy {
    /// An entry of the matching list, with its first packet.
    Entry {
        /// Its number.
        index: u16,
        /// Where its buffer begins.
        address: u64,
    },
    /// It was counted as unexpected, or will be (A19); with its first packet.
    Unexpected,
    /// A TM-SRQ found no tag in it; with its first packet.
    Untagged,
    /// The queue does not match: the host has it with its last packet.
    Receive,
}

/// What a step is to matching.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// It executes a list operation.
    ListOperation,
    /// It delivers the first packet of a message.
    Message,
    /// Everything else.
    Other,
}

/// What is kept for observers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Observed {
    accepted: Option<Vec<Acceptance>>,
    /// First bytes of messages under way, by QP.
    begun: BTreeMap<u32, [u8; 16]>,
}

impl<M: HostMemory> Hca<M> {
    /// Keep acceptances from now on; [`Self::take_accepted`] must then be called now and then.
    pub fn observe(&mut self) {
        self.observed = Observed { accepted: Some(Vec::new()), ..Observed::default() };
    }

    /// The messages accepted since the last call, if [`Self::observe`] was called before.
    pub fn take_accepted(&mut self) -> Vec<Acceptance> {
        self.observed.accepted.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The matching list of a TM-SRQ, by the number that `ibv_get_srq_num` tells.
    #[must_use]
    pub fn matching_list(&self, srqn: u32) -> Option<&MatchingList> {
        Some(&self.srqs.get(&srqn)?.tm.as_ref()?.list)
    }

    /// Receives that a shared receive queue can take messages into.
    #[must_use]
    pub fn shared_receives(&self, srqn: u32) -> u32 {
        self.srq_posted(srqn)
    }

    /// Every shared receive queue breaks, as by an error of the firmware.
    pub fn break_receive_queues(&mut self) {
        let numbers: Vec<u32> = self.srqs.keys().copied().collect();
        for srqn in numbers {
            self.fail_srq(srqn);
        }
    }

    /// Every context is told of something that happened to the device or its port; nothing else changes.
    pub fn tell_all(&mut self, event_type: u32) {
        for context in self.contexts.iter().copied() {
            // Which port.
            let event = AsyncEvent { context, event_type, element: Element::Device, user_handle: 1 };
            self.async_events.push_back(event);
        }
    }

    /// What a possible step is to matching.
    #[must_use]
    pub fn role(&self, step: Step) -> Role {
        match step {
            // A command queue is connected to itself (TM-CONTRACT 5).
            Step::Send(qpn) if self.qps.get(&qpn).is_some_and(|qp| qp.attributes.dest_qpn == qpn) => {
                Role::ListOperation
            }
            Step::Deliver { from, to } => {
                let front = self.flows.get(&(from, to)).and_then(|flow| flow.front());
                let first =
                    |packet: &Packet| matches!(&packet.body, Body::Request(request) if is_first(request));
                if front.is_some_and(first) { Role::Message } else { Role::Other }
            }
            Step::Send(_) | Step::Respond(_) | Step::Timer(_) | Step::Flush(_) => Role::Other,
        }
    }

    pub(crate) fn note_accepted(&mut self, qpn: u32, request: &Request, by: AcceptedBy) {
        if let Some(accepted) = &mut self.observed.accepted {
            accepted.push(Acceptance { qpn, header: header_of(request), by });
        }
    }

    /// A packet of a message to a queue that does not match was placed.
    pub(crate) fn note_received(&mut self, qpn: u32, request: &Request) {
        let Some(accepted) = &mut self.observed.accepted else { return };
        if request.first {
            self.observed.begun.insert(qpn, header_of(request));
        }
        if request.last
            && let Some(header) = self.observed.begun.remove(&qpn)
        {
            accepted.push(Acceptance { qpn, header, by: AcceptedBy::Receive });
        }
    }
}

fn is_first(request: &Request) -> bool {
    request.first && request.operation == Operation::Send
}

fn header_of(request: &Request) -> [u8; 16] {
    let mut header = [0; 16];
    for (to, from) in header.iter_mut().zip(&request.payload) {
        *to = *from;
    }
    header
}
