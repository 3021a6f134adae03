//! From what an endpoint says to entries of queues and to counters.
//!
//! Reported are: every failure; successes that are to be reported; what a peek found; and the end of a multi-receive
//! buffer, also where successes are not reported (`fi_msg(3)`, `FI_MULTI_RECV`). Counted is everything.

use slab::Slab;

use super::counter::Counter;
use super::endpoint::EndpointState;
use super::marks::Marks;
use super::queue::{Entry, Queue};
use super::region::Regions;
use crate::endpoint::{Address, Completed, Completion, Message, Space};
use crate::provider::abi;
use crate::provider::error::{Code, code};
use crate::seam::Segment;

/// Where completions go.
pub(super) struct Places<'a> {
    pub(super) queues: &'a mut Slab<Queue>,
    pub(super) counters: &'a mut Slab<Counter>,
    pub(super) vectors: &'a mut Slab<(usize, Vec<Segment>)>,
    pub(super) regions: &'a Regions,
}

impl Places<'_> {
    /// Report and count one completion of an endpoint.
    #[inline]
    pub(super) fn handle(&mut self, state: &EndpointState, completion: &Completion) {
        let marks = Marks(completion.flags);
        if let Some(place) = marks.vector() {
            self.vectors.try_remove(place);
        }
        let side = if marks.is_receive() { &state.receive } else { &state.transmit };
        let (entry, is_reported) = entry(completion, marks);
        let counter = match (marks.is_read(), &completion.what) {
            (_, Completed::WrittenByPeer { key, length, cq_data, source }) => {
                return self.handle_peers(state, *key, true, written(*length, *cq_data, *source));
            }
            (_, Completed::OperatedByPeer { key, is_read, .. }) => {
                return self.handle_peers(state, *key, !is_read, None);
            }
            (_, Completed::ReadByPeer { key, .. }) => return self.handle_peers(state, *key, false, None),
            (Some(true), _) => state.remote.read,
            (Some(false), _) => state.remote.write,
            (None, _) => side.counter,
        };
        if let Some(counter) = counter.and_then(|index| self.counters.get_mut(index)) {
            match entry.error {
                _ if !counts(completion) => {}
                0 => counter.count(),
                _ => counter.add_error(1),
            }
        }
        if let Some(queue) = side.queue.and_then(|index| self.queues.get_mut(index))
            && is_reported
        {
            queue.push(entry);
        }
    }

    /// A peer has accessed memory of this side's: counted by the endpoint and by the region.
    fn handle_peers(&mut self, state: &EndpointState, key: u64, is_write: bool, entry: Option<Entry>) {
        let flag = if is_write { abi::FI_REMOTE_WRITE } else { abi::FI_REMOTE_READ };
        let bound = if is_write { state.remote.remote_write } else { state.remote.remote_read };
        for index in bound.into_iter().chain(self.regions.counters(key, flag)) {
            if let Some(counter) = self.counters.get_mut(index) {
                counter.count();
            }
        }
        if let Some(entry) = entry
            && let Some(queue) = state.receive.queue.and_then(|index| self.queues.get_mut(index))
        {
            queue.push(entry);
        }
    }
}

/// The entry of a write of a peer's: none without remote CQ data.
fn written(length: u64, cq_data: Option<u32>, source: Option<Address>) -> Option<Entry> {
    Some(Entry {
        flags: abi::FI_RMA | abi::FI_REMOTE_WRITE | abi::FI_REMOTE_CQ_DATA,
        length,
        data: cq_data?.into(),
        source: source.map_or(abi::FI_ADDR_NOTAVAIL, |source| source.0),
        ..Entry::default()
    })
}

/// The end of a multi-receive buffer is no message; that a peek found none is an answer to it, and no failure of an
/// operation.
fn counts(completion: &Completion) -> bool {
    !matches!(completion.what, Completed::Released | Completed::NoMessage)
}

fn entry(completion: &Completion, marks: Marks) -> (Entry, bool) {
    let space = match completion.space {
        Space::Tagged => abi::FI_TAGGED,
        Space::Untagged => abi::FI_MSG,
    };
    let direction = if marks.is_receive() { abi::FI_RECV } else { abi::FI_SEND };
    let flags = match marks.is_read() {
        Some(true) => marks.kind() | abi::FI_READ,
        Some(false) => marks.kind() | abi::FI_WRITE,
        None => space | direction,
    };
    let mut entry =
        Entry { context: completion.context, flags, source: abi::FI_ADDR_NOTAVAIL, ..Entry::default() };
    let mut is_reported = marks.is_reported();
    match &completion.what {
        Completed::Sent
        | Completed::Written
        | Completed::Read
        | Completed::WrittenByPeer { .. }
        | Completed::ReadByPeer { .. }
        | Completed::OperatedByPeer { .. } => {}
        Completed::Received { message, address, placed, released } => {
            show(&mut entry, message);
            entry.buffer = *address;
            if *released {
                entry.flags |= abi::FI_MULTI_RECV;
                is_reported = true;
            }
            if *placed < message.length {
                entry.length = *placed;
                entry.overflow = message.length - placed;
                entry.error = code(abi::FI_ETRUNC).0;
            }
        }
        Completed::Released => {
            entry.flags |= abi::FI_MULTI_RECV;
            is_reported = true;
        }
        Completed::Peeked(message) => {
            show(&mut entry, message);
            is_reported = true;
        }
        Completed::NoMessage => entry.error = code(abi::FI_ENOMSG).0,
        Completed::Cancelled => entry.error = code(abi::FI_ECANCELED).0,
        Completed::Failed(failure) => entry.error = Code::from(*failure).0,
    }
    (entry, is_reported || entry.error != 0)
}

fn show(entry: &mut Entry, message: &Message) {
    entry.length = message.length;
    entry.tag = message.tag.0;
    if let Some(data) = message.cq_data {
        entry.data = data.into();
        entry.flags |= abi::FI_REMOTE_CQ_DATA;
    }
    if let Some(source) = message.source {
        entry.source = source.0;
    }
}
