//! What comes in over a transport: messages of both spaces, put together from segments, held until they are answered,
//! written to where the answer says; and what of a peer's is kept.
//!
//! ```text
//!  header ─▶ take ─┬─▶ control, to the endpoint
//!                  └─▶ arrival, to an engine ─┬─ accepted ─▶ placing ──▶ Data
//!                                             ├─ held ─▶ held ─ answer ┘
//!                                             └─ discarded ─▶ dropped
//! ```
//!
//! Used by transports that move bytes themselves; what they must do beside that is in [`Inbox::actions`]. Not here:
//! framing, connections, and how the payload of a rendezvous is read.

mod answers;
mod message;
mod telling;

use std::collections::{HashMap, VecDeque};

use slab::Slab;

use super::host_memory::HostMemory;
use super::transport::{Kept, Reaction};
use crate::ids::{LinkId, MessageToken, PeerId, Tag, TransferId};
use crate::seam::{Answer, Arrival, Buffer, Header, Remote};
use crate::wire::{self, AppContext, Control, OperationId, Partial, Payload, RemoteAtomic, SendFlags};

pub(super) use message::Done;
use message::{Message, Place};
pub(super) use telling::{Pending, Space, Teller, data};

/// See the module.
#[derive(Debug)]
pub(super) struct Inbox {
    memory: HostMemory,
    eager_limit: u64,
    messages: Slab<Message>,
    made: u32,
    kept: HashMap<PeerId, Kept>,
    /// Messages of which more segments follow, by the operation that these name.
    assembling: HashMap<LinkId, Vec<(OperationId, usize)>>,
    /// What the transport is to do.
    pub(super) actions: VecDeque<Action>,
    /// What is to be told.
    pub(super) pending: Pending,
}

/// What a transport is to do.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    /// Read the payload of a rendezvous.
    Read(Wanted),
    /// Tell the sender of a rendezvous that it is done.
    Tell(LinkId, Done),
}

/// The payload of a rendezvous that was accepted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) link: LinkId,
    pub(super) space: Space,
    pub(super) transfer: TransferId,
    pub(super) remote: Remote,
    pub(super) buffer: Buffer,
    pub(super) done: Done,
}

/// A message as it comes in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Incoming<'a> {
    pub(super) link: LinkId,
    /// Who is at the other end, if the link is bound.
    pub(super) peer: Option<PeerId>,
    /// Header and payload, as far as they are here.
    pub(super) arrived: &'a [u8],
    /// Bytes that the message has.
    pub(super) total: u64,
    pub(super) immediate: Option<u32>,
}

/// What became of the bytes of a message that were here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Taken {
    /// Its header is not here yet: ask again when so many bytes are.
    Needed(usize),
    /// All of them were taken.
    Whole,
    /// All of them were taken, and more are to come.
    Body(Body),
    /// It was a control message.
    Reaction(Reaction),
}

/// Where the payload of a message goes, all of which is here.
#[derive(Clone, Copy, Debug)]
pub(super) enum WholePlace {
    /// There, as much of it as fits.
    Buffer(Buffer),
    /// It is dropped.
    Nowhere,
    /// It is kept.
    Held,
}

/// What is to come of a payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Body {
    pub(super) target: Target,
    pub(super) remaining: u64,
}

/// Where it goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Target {
    /// To a message of the inbox.
    Message(usize),
    /// To a read of the transport's own.
    Read(usize),
    /// Nowhere.
    Skip,
}

/// The peer broke the protocol: how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Violation(pub(super) String);

impl Inbox {
    pub(super) fn new(memory: HostMemory, eager_limit: u64) -> Self {
        Self {
            memory,
            eager_limit,
            messages: Slab::new(),
            made: 0,
            kept: HashMap::new(),
            assembling: HashMap::new(),
            actions: VecDeque::new(),
            pending: Pending::default(),
        }
    }

    /// Take a message, as much of it as is here, and tell what it is.
    pub(super) fn take(
        &mut self,
        incoming: &Incoming<'_>,
        teller: &mut Teller<'_>,
    ) -> Result<Taken, Violation> {
        let message = match wire::decode_partial(incoming.arrived, incoming.total)? {
            Partial::Needed(needed) => return Ok(Taken::Needed(needed)),
            Partial::Message(message) => message,
        };
        match message {
            wire::Message::Eager(eager) => {
                incoming.check_immediate(eager.context)?;
                let header = header(eager.context, eager.tag, eager.payload.length(), incoming.immediate);
                self.arrive(incoming, Space::Tagged, header, eager.payload, teller)
            }
            wire::Message::Rendezvous(request) => {
                incoming.check_immediate(request.context)?;
                let memory = request.memory;
                let remote = Remote { address: memory.address, key: memory.key, length: memory.length };
                let header = Header {
                    remote: Some(remote),
                    ..header(request.context, request.tag, memory.length, incoming.immediate)
                };
                self.request(incoming, Space::Tagged, header, remote, Done::Fin(request.fin()), teller)
            }
            wire::Message::Fin(_) => incoming.control(teller),
            wire::Message::Control(control) => self.take_tagless(incoming, &control, teller),
        }
    }

    fn take_tagless(
        &mut self,
        incoming: &Incoming<'_>,
        control: &Control<'_>,
        teller: &mut Teller<'_>,
    ) -> Result<Taken, Violation> {
        match control {
            Control::Untagged(data) => {
                incoming.check_no_immediate()?;
                let header = header(data.context, Tag(0), data.payload.length(), data.cq_data);
                self.arrive(incoming, Space::Untagged, header, data.payload, teller)
            }
            Control::UntaggedRendezvous(request) => {
                incoming.check_no_immediate()?;
                let memory = request.memory;
                let remote = Remote { address: memory.address, key: memory.key, length: memory.length };
                let header = Header {
                    remote: Some(remote),
                    ..header(request.context, Tag(0), memory.length, request.cq_data)
                };
                let done = Done::Untagged(request.context.operation);
                self.request(incoming, Space::Untagged, header, remote, done, teller)
            }
            Control::SegmentFirst(first) => {
                incoming.check_no_immediate()?;
                let space = if first.tag.is_some() { Space::Tagged } else { Space::Untagged };
                let tag = first.tag.unwrap_or_default();
                let header = header(first.context, tag, first.total_length, first.cq_data);
                self.begin(incoming, space, header, first.context.operation, first.payload, teller)
            }
            Control::SegmentMiddle(segment) => self.go_on(incoming, segment, false, teller),
            Control::SegmentLast(segment) => self.go_on(incoming, segment, true, teller),
            Control::Credit(_)
            | Control::MatchAcknowledged(_)
            | Control::Delivered(_)
            | Control::RendezvousDone(_)
            | Control::RendezvousRefused { .. }
            | Control::Discarded(_)
            | Control::Hello(_)
            | Control::Challenge(_)
            | Control::Proof(_)
            | Control::HelloRefused(_)
            | Control::Goodbye(_)
            | Control::Keepalive(_)
            | Control::RemoteRead(_)
            | Control::RemoteDone { .. }
            | Control::Connect(_)
            | Control::Reject(_) => incoming.control(teller),
            Control::RemoteWrite(write) => self.place(incoming, control, write.payload, teller),
            Control::RemoteData(data) => self.place(incoming, control, data.payload, teller),
            Control::RemoteAtomic(atomic) => self.operate(incoming, atomic, teller),
        }
    }

    /// A payload that goes to where its message says.
    fn place(
        &mut self,
        incoming: &Incoming<'_>,
        control: &Control<'_>,
        payload: Payload<'_>,
        teller: &mut Teller<'_>,
    ) -> Result<Taken, Violation> {
        let source = incoming.bound()?;
        incoming.check_no_immediate()?;
        self.check_length(payload)?;
        let (arrived, in_hand) = (payload.arrived(), payload.is_whole());
        match teller.remote(source, control, in_hand) {
            Answer::Accept { buffer, .. } if in_hand => {
                self.memory.write(&buffer, 0, arrived);
                Ok(Taken::Whole)
            }
            Answer::Accept { buffer, transfer: Some(transfer) } => {
                let header = header(AppContext::default(), Tag(0), payload.length(), None);
                let place = Place::Placing { buffer, transfer };
                let index = self.insert(incoming.link, source, Space::Remote, &header, place);
                Ok(self.feed_first(index, payload))
            }
            Answer::Accept { transfer: None, .. } | Answer::Discard | Answer::Hold if in_hand => {
                Ok(Taken::Whole)
            }
            Answer::Accept { transfer: None, .. } | Answer::Discard | Answer::Hold => {
                let remaining = payload.length() - arrived.len() as u64;
                Ok(Taken::Body(Body { target: Target::Skip, remaining }))
            }
        }
    }

    /// An operation on values in memory: all of it must be here.
    fn operate(
        &mut self,
        incoming: &Incoming<'_>,
        atomic: &RemoteAtomic<'_>,
        teller: &mut Teller<'_>,
    ) -> Result<Taken, Violation> {
        let source = incoming.bound()?;
        incoming.check_no_immediate()?;
        self.check_length(atomic.payload)?;
        if !atomic.payload.is_whole() {
            return Ok(Taken::Needed(usize::try_from(incoming.total).unwrap_or(usize::MAX)));
        }
        if let Some(buffer) = teller.atomic(source, atomic) {
            let before = self.memory.operate(&buffer, atomic);
            teller.atomic_done(source, atomic, &before);
        }
        Ok(Taken::Whole)
    }

    /// A message with its payload.
    fn arrive(
        &mut self,
        incoming: &Incoming<'_>,
        space: Space,
        header: Header,
        payload: Payload<'_>,
        teller: &mut Teller<'_>,
    ) -> Result<Taken, Violation> {
        let source = incoming.bound()?;
        self.check_length(payload)?;
        let (arrived, in_hand) = (payload.arrived(), payload.is_whole());
        let message = self.next_token();
        let arrival = Arrival { message, source, header, in_hand, counted: false };
        let place = match teller.arrived(space, &arrival) {
            Answer::Accept { buffer, .. } if in_hand => {
                self.memory.write(&buffer, 0, arrived);
                return Ok(Taken::Whole);
            }
            Answer::Accept { buffer, transfer: Some(transfer) } => Place::Placing { buffer, transfer },
            Answer::Accept { transfer: None, .. } | Answer::Discard if in_hand => return Ok(Taken::Whole),
            Answer::Accept { transfer: None, .. } | Answer::Discard => {
                let remaining = payload.length() - arrived.len() as u64;
                return Ok(Taken::Body(Body { target: Target::Skip, remaining }));
            }
            Answer::Hold => Place::Held(Vec::with_capacity(usize::try_from(payload.length()).unwrap_or(0))),
        };
        let index = self.insert(incoming.link, source, space, &header, place);
        Ok(self.feed_first(index, payload))
    }

    /// Whether a payload may be so long.
    #[inline]
    pub(super) const fn takes(&self, payload: u64) -> bool {
        payload <= self.eager_limit
    }

    /// A message with a tag, all of which is here; [`Self::hold`] follows where it is to be held.
    #[inline]
    pub(super) fn arrive_whole(
        &mut self,
        source: PeerId,
        header: &Header,
        teller: &mut Teller<'_>,
    ) -> WholePlace {
        let message = self.next_token();
        let arrival = Arrival { message, source, header: *header, in_hand: true, counted: false };
        match teller.arrived(Space::Tagged, &arrival) {
            Answer::Accept { buffer, .. } => WholePlace::Buffer(buffer),
            Answer::Discard => WholePlace::Nowhere,
            Answer::Hold => WholePlace::Held,
        }
    }

    /// The payload of the message that has just arrived.
    pub(super) fn hold(&mut self, link: LinkId, source: PeerId, header: &Header, payload: Vec<u8>) {
        let arrived = payload.len() as u64;
        let index = self.insert(link, source, Space::Tagged, header, Place::Held(payload));
        if let Some(message) = self.messages.get_mut(index) {
            message.arrived = arrived;
        }
    }

    /// The first segment of a message.
    fn begin(
        &mut self,
        incoming: &Incoming<'_>,
        space: Space,
        header: Header,
        operation: OperationId,
        payload: Payload<'_>,
        teller: &mut Teller<'_>,
    ) -> Result<Taken, Violation> {
        let source = incoming.bound()?;
        self.check_length(payload)?;
        if !teller.takes_segments(space) {
            return Err(Violation("a message with a tag in segments, where a device matches".into()));
        }
        let of_link = self.assembling.entry(incoming.link).or_default();
        if of_link.iter().any(|(under_way, _)| *under_way == operation) {
            return Err(Violation(format!("{operation:?} begins a message twice")));
        }
        if of_link.len() >= ASSEMBLING_MAX {
            return Err(Violation(format!("more than {ASSEMBLING_MAX} messages in segments at a time")));
        }
        let message = self.next_token();
        let arrival = Arrival { message, source, header, in_hand: false, counted: false };
        let place = match teller.arrived(space, &arrival) {
            Answer::Accept { buffer, transfer: Some(transfer) } => Place::Placing { buffer, transfer },
            Answer::Accept { transfer: None, .. } | Answer::Discard => Place::Dropping,
            Answer::Hold => Place::Held(Vec::new()),
        };
        let index = self.insert(incoming.link, source, space, &header, place);
        self.assembling.entry(incoming.link).or_default().push((operation, index));
        Ok(self.feed_first(index, payload))
    }

    /// A further segment.
    fn go_on(
        &mut self,
        incoming: &Incoming<'_>,
        segment: &wire::Segment<'_>,
        is_last: bool,
        teller: &mut Teller<'_>,
    ) -> Result<Taken, Violation> {
        incoming.bound()?;
        incoming.check_no_immediate()?;
        self.check_length(segment.payload)?;
        let operation = segment.operation;
        let of_link = self.assembling.entry(incoming.link).or_default();
        let Some(place) = of_link.iter().position(|(under_way, _)| *under_way == operation) else {
            return Err(Violation(format!("a segment of {operation:?}, which has begun no message")));
        };
        let (_, index) = of_link[place];
        let Some(message) = self.messages.get(index) else {
            return Err(Violation(format!("a segment of {operation:?}, which is gone")));
        };
        let end = segment.offset.saturating_add(segment.payload.length());
        if segment.offset != message.arrived || end > message.total || is_last != (end == message.total) {
            let (arrived, total) = (message.arrived, message.total);
            let what =
                format!("a segment from {} to {end}, where {arrived} of {total} are here", segment.offset);
            return Err(Violation(what));
        }
        if is_last {
            of_link.swap_remove(place);
        }
        match self.feed_first(index, segment.payload) {
            Taken::Whole => {
                self.end_body(index, teller);
                Ok(Taken::Whole)
            }
            taken @ (Taken::Body(_) | Taken::Needed(_) | Taken::Reaction(_)) => Ok(taken),
        }
    }

    /// A request to read a payload.
    fn request(
        &mut self,
        incoming: &Incoming<'_>,
        space: Space,
        header: Header,
        remote: Remote,
        done: Done,
        teller: &mut Teller<'_>,
    ) -> Result<Taken, Violation> {
        let source = incoming.bound()?;
        let message = self.next_token();
        let arrival = Arrival { message, source, header, in_hand: false, counted: false };
        let link = incoming.link;
        match teller.arrived(space, &arrival) {
            Answer::Accept { buffer, transfer: Some(transfer) } => {
                self.actions.push_back(Action::Read(Wanted { link, space, transfer, remote, buffer, done }));
            }
            Answer::Accept { transfer: None, .. } | Answer::Discard => {
                self.actions.push_back(Action::Tell(link, done));
            }
            Answer::Hold => {
                self.insert(link, source, space, &header, Place::Request { remote, done });
            }
        }
        Ok(Taken::Whole)
    }

    fn insert(&mut self, link: LinkId, source: PeerId, space: Space, header: &Header, place: Place) -> usize {
        let serial = self.made;
        self.made = self.made.wrapping_add(1);
        let (total, kept) = (header.length, place.kept(header.length));
        if kept != Kept::default() {
            let sum = self.kept.entry(source).or_default();
            sum.messages += kept.messages;
            sum.bytes = sum.bytes.saturating_add(kept.bytes);
            sum.requests += kept.requests;
        }
        let message = Message { serial, space, source, link: Some(link), total, arrived: 0, kept, place };
        self.messages.insert(message)
    }

    /// What the message that is inserted next will be called.
    fn next_token(&self) -> MessageToken {
        Message::token(self.messages.vacant_key(), self.made)
    }

    /// The beginning of a payload, or of a segment's.
    fn feed_first(&mut self, index: usize, payload: Payload<'_>) -> Taken {
        self.feed(index, payload.arrived());
        let remaining = payload.length() - payload.arrived().len() as u64;
        if remaining == 0 {
            Taken::Whole
        } else {
            Taken::Body(Body { target: Target::Message(index), remaining })
        }
    }

    /// More of a payload.
    pub(super) fn feed(&mut self, index: usize, bytes: &[u8]) {
        let Some(message) = self.messages.get_mut(index) else { return };
        match &mut message.place {
            Place::Held(held) => held.extend_from_slice(bytes),
            Place::Placing { buffer, .. } => {
                self.memory.write(buffer, message.arrived, bytes);
            }
            Place::Dropping | Place::Request { .. } => {}
        }
        message.arrived += bytes.len() as u64;
    }

    /// Where the next bytes of a payload go, if that is a buffer of the host's: it and the place in it.
    pub(super) fn placing(&self, index: usize) -> Option<(Buffer, u64)> {
        let message = self.messages.get(index)?;
        match message.place {
            Place::Placing { buffer, .. } => Some((buffer, message.arrived)),
            Place::Held(_) | Place::Dropping | Place::Request { .. } => None,
        }
    }

    /// So many bytes of a payload were written there.
    pub(super) fn placed(&mut self, index: usize, bytes: u64) {
        if let Some(message) = self.messages.get_mut(index) {
            message.arrived += bytes;
        }
    }

    /// All that a frame had of a message is here.
    pub(super) fn end_body(&mut self, index: usize, teller: &mut Teller<'_>) {
        let Some(message) = self.messages.get(index).filter(|message| message.is_whole()) else { return };
        match message.place {
            Place::Placing { transfer, .. } => {
                let (space, length) = (message.space, message.total);
                self.messages.remove(index);
                teller.event(space, &data(transfer, length, None));
            }
            Place::Dropping => {
                self.messages.remove(index);
            }
            Place::Held(_) | Place::Request { .. } => {}
        }
    }

    pub(super) fn kept(&self, peer: PeerId) -> Kept {
        self.kept.get(&peer).copied().unwrap_or_default()
    }

    fn check_length(&self, payload: Payload<'_>) -> Result<(), Violation> {
        let (length, limit) = (payload.length(), self.eager_limit);
        if self.takes(length) {
            Ok(())
        } else {
            Err(Violation(format!("a payload of {length} bytes, above the eager limit of {limit}")))
        }
    }
}

impl Action {
    /// Whose link it concerns.
    pub(super) const fn link(&self) -> LinkId {
        match self {
            Self::Read(wanted) => wanted.link,
            Self::Tell(link, _) => *link,
        }
    }
}

impl Incoming<'_> {
    fn bound(&self) -> Result<PeerId, Violation> {
        self.peer.ok_or_else(|| Violation("a message to match before the link was bound".into()))
    }

    /// CQ data of a message with a tag comes as its immediate, and nothing else does.
    fn check_immediate(&self, context: AppContext) -> Result<(), Violation> {
        if context.flags.contains(SendFlags::CQ_DATA) == self.immediate.is_some() {
            Ok(())
        } else {
            Err(Violation("immediate and flag of the CQ data do not agree".into()))
        }
    }

    fn check_no_immediate(&self) -> Result<(), Violation> {
        if self.immediate.is_none() {
            Ok(())
        } else {
            Err(Violation("an immediate with a message that has none".into()))
        }
    }

    fn control(&self, teller: &mut Teller<'_>) -> Result<Taken, Violation> {
        self.check_no_immediate()?;
        Ok(Taken::Reaction(teller.control(self.link, self.arrived)))
    }
}

impl From<wire::WireError> for Violation {
    fn from(error: wire::WireError) -> Self {
        Self(error.to_string())
    }
}

#[inline]
pub(super) fn header(context: AppContext, tag: Tag, length: u64, immediate: Option<u32>) -> Header {
    Header { tag, length, app_ctx: context.to_bits(), immediate, remote: None }
}

/// Messages in segments that one link may have under way.
const ASSEMBLING_MAX: usize = 256;
