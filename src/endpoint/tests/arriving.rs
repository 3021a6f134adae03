//! What a message that arrives is, for the simulated transport.

use crate::ids::Tag;
use crate::seam::{Header, Remote};
use crate::wire::{self, Control, Message, OperationId};

/// A request to read, as it came.
#[derive(Clone, Copy, Debug)]
pub(super) enum Request {
    Tagged(wire::Rendezvous),
    Untagged(wire::UntaggedRendezvous),
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
