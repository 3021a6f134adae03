//! What a message that arrives is, for the simulated transport.

use super::placing::Of;
use super::transport::SimTransport;
use crate::device::transport::Transport as _;
use crate::ids::{LinkId, PeerId, Tag, TransferId};
use crate::seam::{Buffer, Header, Remote};
use crate::wire::{self, Control, Message, OperationId};

/// A request to read, as it came.
#[derive(Clone, Copy, Debug)]
pub(super) enum Request {
    Tagged(wire::Rendezvous),
    Untagged(wire::UntaggedRendezvous),
}

/// A message from its arrival until its data is in place.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) link: u32,
    pub(super) peer: PeerId,
    pub(super) of: Of,
    pub(super) length: u64,
    pub(super) bytes: Option<Vec<u8>>,
    pub(super) so_far: Vec<u8>,
    pub(super) request: Option<Request>,
    pub(super) answer: Option<(Buffer, Option<TransferId>)>,
    pub(super) discarded: bool,
}

/// What arrives, as far as its header says.
pub(super) struct Arriving {
    pub(super) tagged: bool,
    pub(super) header: Header,
    pub(super) length: Option<u64>,
    pub(super) request: Option<Request>,
    pub(super) segment: Option<OperationId>,
}

pub(super) fn arriving(message: &Message<'_>, immediate: Option<u32>) -> Option<Arriving> {
    let of = |tag: Option<Tag>, context: wire::AppContext, cq_data: Option<u32>| Arriving {
        tagged: tag.is_some(),
        header: Header {
            tag: tag.unwrap_or_default(),
            length: 0,
            app_ctx: context.to_bits(),
            immediate: cq_data,
            remote: None,
        },
        length: None,
        request: None,
        segment: None,
    };
    let reads = |arriving: Arriving, memory: wire::RemoteMemory, request: Request| {
        let remote = Remote { address: memory.address, key: memory.key, length: memory.length };
        let header = Header { remote: Some(remote), ..arriving.header };
        Arriving { header, length: Some(memory.length), request: Some(request), ..arriving }
    };
    match message {
        Message::Eager(eager) => Some(of(Some(eager.tag), eager.context, immediate)),
        Message::Rendezvous(request) => Some(reads(
            of(Some(request.tag), request.context, immediate),
            request.memory,
            Request::Tagged(*request),
        )),
        Message::Control(Control::Untagged(message)) => Some(of(None, message.context, message.cq_data)),
        Message::Control(Control::UntaggedRendezvous(request)) => Some(reads(
            of(None, request.context, request.cq_data),
            request.memory,
            Request::Untagged(*request),
        )),
        Message::Control(Control::SegmentFirst(first)) => {
            let arriving = of(first.tag, first.context, first.cq_data);
            Some(Arriving {
                length: Some(first.total_length),
                segment: Some(first.context.operation),
                ..arriving
            })
        }
        Message::Fin(_) | Message::Control(_) => None,
    }
}

impl SimTransport {
    pub(super) fn handle_segment(
        &mut self,
        link: LinkId,
        segment: &wire::Segment<'_>,
        bytes: &[u8],
        is_last: bool,
    ) {
        let Some(&token) = self.assembling.get(&(link.index, segment.operation)) else {
            return self.close(link, false);
        };
        if let Some(held) = self.messages.get_mut(&token) {
            assert_eq!(held.so_far.len() as u64, segment.offset);
            held.so_far.extend_from_slice(bytes);
            if is_last {
                assert_eq!(held.so_far.len() as u64, held.length);
                let whole = std::mem::take(&mut held.so_far);
                self.assembling.remove(&(link.index, segment.operation));
                self.handle_whole(token, whole);
            }
        }
    }

    pub(super) fn handle_whole(&mut self, token: u64, bytes: Vec<u8>) {
        if let Some(held) = self.messages.get_mut(&token) {
            held.bytes = Some(bytes);
            if held.discarded {
                self.messages.remove(&token);
            } else {
                self.place(token);
            }
        }
    }
}
