//! Sends and receives: from what a call says to what the endpoint is asked.

use super::State;
use super::endpoint::Side;
use super::marks::Marks;
use crate::device::transport::Payload;
use crate::endpoint::{Address, Level, Peek, PeekAction, Post, Send, SendRefused, Space};
use crate::engine::Kind;
use crate::ids::{Ignore, Tag};
use crate::provider::abi;
use crate::provider::clock::now;
use crate::provider::error::{Code, Outcome, code, fail};
use crate::seam::{Buffer, Segment};

/// A message to send, as a call says it.
#[derive(Clone, Copy)]
pub(in crate::provider) struct Outgoing<'a> {
    pub(in crate::provider) space: Space,
    pub(in crate::provider) to: u64,
    pub(in crate::provider) tag: u64,
    pub(in crate::provider) payload: Memory<'a>,
    /// Remote CQ data.
    pub(in crate::provider) data: Option<u64>,
    pub(in crate::provider) context: u64,
    pub(in crate::provider) flags: Flags,
}

/// The flags of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::provider) enum Flags {
    /// The call takes none: those of the endpoint.
    OfEndpoint,
    /// The call says which.
    Given(u64),
    /// An inject call: nothing is reported but failure.
    Silent,
}

impl Flags {
    /// The flags, and whether success is reported.
    #[inline]
    pub(super) const fn resolve(self, side: &Side) -> (u64, bool) {
        match self {
            Self::OfEndpoint => (side.op_flags, side.reports(side.op_flags)),
            Self::Given(flags) => (flags, side.reports(flags)),
            Self::Silent => (0, false),
        }
    }
}

/// Memory of the application.
#[derive(Clone, Copy)]
pub(in crate::provider) enum Memory<'a> {
    /// To be copied before the call returns.
    Bytes(&'a [u8]),
    /// One stretch.
    One(Buffer),
    /// An io vector; none, or more than one stretch.
    Many(&'a [Segment]),
}

impl Memory<'_> {
    fn length(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::One(buffer) => buffer.length,
            Self::Many(segments) => segments.iter().fold(0, |sum, part| sum.saturating_add(part.length)),
        }
    }
}

/// A receive, a peek or what becomes of a claim, as a call says it.
#[derive(Clone, Copy)]
pub(in crate::provider) struct Incoming<'a> {
    pub(in crate::provider) space: Space,
    pub(in crate::provider) source: u64,
    pub(in crate::provider) tag: u64,
    pub(in crate::provider) ignore: u64,
    pub(in crate::provider) memory: Memory<'a>,
    pub(in crate::provider) context: u64,
    pub(in crate::provider) flags: Flags,
}

impl State {
    /// Send. What was sent with `FI_MORE` before goes out if this is refused.
    #[inline]
    pub(in crate::provider) fn send(&mut self, index: usize, outgoing: &Outgoing<'_>) -> Outcome<usize> {
        let sent = self.try_send(index, outgoing);
        if sent.is_err() {
            self.flush(index);
        }
        self.tell_waiting(index);
        sent.map(|()| 0)
    }

    /// What was sent with `FI_MORE` goes out: a call was refused, and the next may never come.
    #[cold]
    pub(in crate::provider) fn flush(&mut self, index: usize) {
        if let Ok(state) = self.endpoint(index)
            && let Ok(endpoint) = state.enabled()
        {
            endpoint.flush();
        }
    }

    #[inline]
    fn try_send(&mut self, index: usize, outgoing: &Outgoing<'_>) -> Outcome<()> {
        let state = self.endpoint(index)?;
        state.transmit.open()?;
        let (flags, is_reported) = outgoing.flags.resolve(&state.transmit);
        if flags & !SEND_FLAGS != 0 {
            return fail(abi::FI_EBADFLAGS);
        }
        let is_copied = matches!(outgoing.payload, Memory::Bytes(_));
        if is_copied && outgoing.payload.length() > state.inject_size as u64 {
            return fail(abi::FI_EMSGSIZE);
        }
        // What is wider than the completion data that is offered would not arrive as it is.
        let cq_data = match outgoing.data {
            Some(_) if !state.has_cq_data => return Err(INVALID),
            Some(data) => Some(u32::try_from(data).map_err(|_| INVALID)?),
            None => None,
        };
        let to = state.peer(outgoing.to);
        let marks = Marks::new(false, is_reported);
        let (buffer, marks) = self.buffer(index, &outgoing.payload, marks)?;
        let payload = match outgoing.payload {
            Memory::Bytes(bytes) => Payload::Copied(bytes),
            Memory::One(_) | Memory::Many(_) => Payload::Memory(buffer),
        };
        let send = Send {
            space: outgoing.space,
            to,
            tag: Tag(outgoing.tag),
            payload,
            cq_data,
            level: level(flags),
            more: flags & abi::FI_MORE != 0,
            context: outgoing.context,
            flags: marks.0,
        };
        let endpoint = self.endpoint(index)?.enabled()?;
        endpoint.tell_time(now());
        let sent = match endpoint.send(&send) {
            // The way forward may be here already.
            Err(SendRefused::Again) => {
                self.progress(index, now());
                self.endpoint(index)?.enabled()?.send(&send)
            }
            sent => sent,
        };
        if sent.is_err() {
            self.forget(marks);
        }
        Ok(sent?)
    }

    /// Post a receive, or peek, or receive or discard what was claimed. What was sent with `FI_MORE` before goes out if
    /// this is refused.
    #[inline]
    pub(in crate::provider) fn receive(&mut self, index: usize, incoming: &Incoming<'_>) -> Outcome<usize> {
        let received = self.try_receive(index, incoming);
        if received.is_err() {
            self.flush(index);
        }
        self.tell_waiting(index);
        received.map(|()| 0)
    }

    #[inline]
    fn try_receive(&mut self, index: usize, incoming: &Incoming<'_>) -> Outcome<()> {
        let state = self.endpoint(index)?;
        state.receive.open()?;
        let (flags, is_reported) = incoming.flags.resolve(&state.receive);
        let marks = Marks::new(true, is_reported);
        let is_directed = state.is_directed[usize::from(incoming.space == Space::Untagged)];
        let source =
            (is_directed && incoming.source != abi::FI_ADDR_UNSPEC).then_some(Address(incoming.source));
        if flags & (abi::FI_PEEK | abi::FI_CLAIM | abi::FI_DISCARD) != 0 {
            return self.look(index, incoming, source, (flags, marks));
        }
        if flags & !RECEIVE_FLAGS != 0 {
            return fail(abi::FI_EBADFLAGS);
        }
        let kind = if flags & abi::FI_MULTI_RECV == 0 {
            Kind::Once
        } else if matches!(incoming.memory, Memory::One(_)) {
            Kind::Multi { least: state.multi_receive_least }
        } else {
            return fail(abi::FI_EINVAL);
        };
        let (buffer, marks) = self.buffer(index, &incoming.memory, marks)?;
        let post = Post {
            space: incoming.space,
            source,
            tag: Tag(incoming.tag),
            ignore: Ignore(incoming.ignore),
            buffer,
            kind,
            context: incoming.context,
            flags: marks.0,
        };
        let posted = self.endpoint(index)?.enabled()?.post(&post);
        if posted.is_err() {
            self.forget(marks);
        }
        Ok(posted?)
    }

    /// `FI_PEEK`, `FI_CLAIM`, `FI_DISCARD` (`fi_tagged(3)`).
    fn look(
        &mut self,
        index: usize,
        incoming: &Incoming<'_>,
        source: Option<Address>,
        (flags, marks): (u64, Marks),
    ) -> Outcome<()> {
        let has = |flag: u64| flags & flag != 0;
        let (is_claim, is_discard) = (has(abi::FI_CLAIM), has(abi::FI_DISCARD));
        let context = incoming.context;
        if flags & !LOOK_FLAGS != 0 {
            return fail(abi::FI_EBADFLAGS);
        }
        if is_claim && context == 0 {
            return fail(abi::FI_EINVAL);
        }
        let state = self.endpoint(index)?;
        if has(abi::FI_PEEK) {
            let action = match (is_claim, is_discard) {
                (false, false) => PeekAction::Look,
                (true, false) => PeekAction::Claim,
                (false, true) => PeekAction::Discard,
                (true, true) => return fail(abi::FI_EINVAL),
            };
            state.enabled()?.peek(&Peek {
                space: incoming.space,
                source,
                tag: Tag(incoming.tag),
                ignore: Ignore(incoming.ignore),
                action,
                context,
                flags: marks.0,
            });
            return Ok(());
        }
        if !is_claim {
            return fail(abi::FI_EINVAL);
        }
        if is_discard {
            return Ok(state.enabled()?.discard_claimed(context, marks.0)?);
        }
        let (buffer, marks) = self.buffer(index, &incoming.memory, marks)?;
        let received = self.endpoint(index)?.enabled()?.receive_claimed(context, buffer, marks.0);
        if received.is_err() {
            self.forget(marks);
        }
        Ok(received?)
    }

    /// The memory as transports know it. An io vector is kept until the operation is over.
    #[inline]
    fn buffer(&mut self, index: usize, memory: &Memory<'_>, marks: Marks) -> Outcome<(Buffer, Marks)> {
        match memory {
            Memory::Bytes(_) => Ok((Buffer::default(), marks)),
            Memory::One(buffer) => Ok((*buffer, marks)),
            Memory::Many([]) => Ok((Buffer::new(0, 0), marks)),
            Memory::Many(segments) => {
                if self.segments.len() >= Marks::VECTORS_MAX {
                    return fail(abi::FI_EAGAIN);
                }
                let length = memory.length();
                let mut kept = segments.to_vec();
                let address = kept.as_mut_ptr().expose_provenance() as u64;
                let place = self.segments.insert((index, kept));
                let count = u32::try_from(segments.len()).map_err(|_| INVALID)?;
                Ok((Buffer { address, length, key: 0, segments: count }, marks.with_vector(place)))
            }
        }
    }

    /// The operation did not begin.
    fn forget(&mut self, marks: Marks) {
        if let Some(place) = marks.vector() {
            self.segments.try_remove(place);
        }
    }
}

/// When a send with these flags is complete.
const fn level(flags: u64) -> Level {
    if flags & abi::FI_MATCH_COMPLETE != 0 {
        Level::Match
    } else if flags & abi::FI_DELIVERY_COMPLETE != 0 {
        Level::Delivery
    } else if flags & abi::FI_TRANSMIT_COMPLETE != 0 {
        Level::Transmit
    } else {
        Level::Inject
    }
}

const INVALID: Code = code(abi::FI_EINVAL);
pub(super) const SEND_FLAGS: u64 = abi::FI_REMOTE_CQ_DATA
    | abi::FI_COMPLETION
    | abi::FI_MORE
    | abi::FI_INJECT
    | abi::FI_INJECT_COMPLETE
    | abi::FI_TRANSMIT_COMPLETE
    | abi::FI_DELIVERY_COMPLETE
    | abi::FI_MATCH_COMPLETE;
const RECEIVE_FLAGS: u64 = abi::FI_COMPLETION | abi::FI_MORE | abi::FI_MULTI_RECV;
const LOOK_FLAGS: u64 = abi::FI_PEEK | abi::FI_CLAIM | abi::FI_DISCARD | abi::FI_COMPLETION | abi::FI_MORE;
