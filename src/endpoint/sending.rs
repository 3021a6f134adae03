//! Users' messages on their way out: eagerly, in segments, or by rendezvous.
//!
//! | payload | protocol | uses |
//! |---|---|---|
//! | at most 64 bytes | eager | a header |
//! | up to the peer's eager limit | eager | eager credit |
//! | up to the configured limit, to peers that want it | segmented | eager credit |
//! | longer, or without eager credit | rendezvous | a header |
//! | longer, to peers that cannot read | segmented | eager credit |
//!
//! All go over one link in the order in which they were sent, and are matched by what goes first of each, so that the
//! order of a peer's messages does not depend on the protocol. Without a header credit the user tries again.
//!
//! Not here: what comes back (`hearing`).

use crate::device::transport::{Outgoing, Payload, SendError, Sending};
use crate::ids::PeerId;
use crate::seam::{Buffer, Remote};
use crate::wire::{
    self, AppContext, Control, Eager, Message, OperationId, PeerCapabilities, RemoteMemory, Rendezvous,
    Segment, SegmentFirst, SendFlags, Untagged, UntaggedRendezvous,
};

use super::core::Core;
use super::credits::SMALL;
use super::interface::{Completed, Failure, Level, Send, SendRefused, Space};
use super::operations::{Awaits, Operation, Rest, memory_of};
use super::peers::{Path, Peer};
use super::{Endpoint, MESSAGE_MAX};

/// How a message goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Protocol {
    Eager,
    Segmented,
    Rendezvous,
    /// Not now.
    Wait,
    /// Not ever: so many bytes are the most.
    Never(u64),
}

impl Endpoint {
    /// Send a message. A completion comes, with [`Payload::Copied`] too.
    ///
    /// # Errors
    /// It was not taken; nothing was done, and no completion comes.
    #[inline]
    pub fn send(&mut self, send: &Send<'_>) -> Result<(), SendRefused> {
        let core = &mut self.core;
        if let Some(error) = &core.failed {
            return Err(SendRefused::Endpoint(error.clone()));
        }
        let Some(peer) = core.peers.at(send.to) else { return Err(core.nobody(send.to)) };
        let length = length_of(&send.payload);
        if matches!(send.payload, Payload::Copied(_)) && length > core.config.inject_size {
            return Err(SendRefused::TooLong { length, limit: core.config.inject_size });
        }
        if length > MESSAGE_MAX {
            return Err(SendRefused::TooLong { length, limit: MESSAGE_MAX });
        }
        if core.closing.is_some() {
            return Err(SendRefused::Unreachable(Failure::Lost));
        }
        let Some(path) = core.peers[peer].connected() else { return Err(self.connect_first(peer)) };
        if core.has_backlog(peer) {
            self.clear_backlog(peer)?;
        }
        let core = &mut self.core;
        let protocol = core.peers[peer].protocol(send, length, core.config.segmented_limit);
        match protocol {
            Protocol::Eager => self.send_eager(path, peer, send, length),
            Protocol::Segmented => self.send_segmented(path, peer, send, length),
            Protocol::Rendezvous => self.send_rendezvous(path, peer, send, length),
            Protocol::Wait => self.again(),
            Protocol::Never(limit) => Err(SendRefused::TooLong { length, limit }),
        }
    }

    #[cold]
    pub(super) fn again(&mut self) -> Result<(), SendRefused> {
        self.core.statistics.again_full += 1;
        Err(SendRefused::Again)
    }

    /// What must go first does, or the message waits.
    #[cold]
    pub(super) fn clear_backlog(&mut self, peer: PeerId) -> Result<(), SendRefused> {
        self.act();
        if self.core.peers[peer].connected().is_none() || !self.send_notes_of(peer) {
            return self.again();
        }
        if self.core.peers[peer].remote.unsent > 0 {
            self.send_segments();
            if self.core.peers[peer].remote.unsent > 0 {
                return self.again();
            }
        }
        let path = self.core.peers[peer].connected();
        if self.core.actions.iter().any(|action| action.path().is_some() && action.path() == path) {
            return self.again();
        }
        Ok(())
    }

    #[inline]
    fn send_eager(
        &mut self,
        path: Path,
        peer: PeerId,
        send: &Send<'_>,
        length: u64,
    ) -> Result<(), SendRefused> {
        let (core, transports) = (&mut self.core, &mut self.transports);
        let Some(transport) = transports.get_mut(usize::from(path.0.0)) else {
            return Err(SendRefused::Again);
        };
        let wanted = acknowledgement(send.level);
        let is_memory = length > 0 && matches!(send.payload, Payload::Memory(_));
        let is_taken = send.level == Level::Transmit;
        // What is copied, or out at once, and of which nobody is told needs no number.
        if is_memory && !is_taken && wanted == SendFlags::NONE && send.space == Space::Tagged {
            let context = context_of(None, wanted, send.cq_data);
            let header = Eager { context, tag: send.tag, payload: wire::Payload::new(&[]) }.header();
            let (payload, immediate, more) = (send.payload, send.cq_data, send.more);
            let message = Outgoing { header: &header, payload, immediate, more, context: None };
            if transport.send_at_once(path.1, &message) {
                core.sent_eagerly(peer, length);
                core.complete(send.context, send.flags, send.space, Completed::Sent);
                return Ok(());
            }
        }
        let id = if is_memory || is_taken || wanted != SendFlags::NONE {
            let awaits =
                if wanted == SendFlags::NONE { Awaits::Nothing } else { Awaits::Acknowledgement(wanted) };
            Some(core.begin(peer, send, awaits)?)
        } else {
            None
        };
        let context = context_of(id, wanted, send.cq_data);
        let header = match send.space {
            Space::Tagged => Eager { context, tag: send.tag, payload: wire::Payload::new(&[]) }.header(),
            Space::Untagged => {
                let message = Untagged { context, cq_data: send.cq_data, payload: wire::Payload::new(&[]) };
                message.header().unwrap_or_default()
            }
        };
        let message = Outgoing {
            header: &header,
            payload: send.payload,
            immediate: if send.space == Space::Tagged { send.cq_data } else { None },
            more: send.more,
            context: id.filter(|_| is_memory).map(|id| core.operations.token(id)),
        };
        let sending = transport.send(path.1, &message);
        match sending {
            Ok(Sending::Done | Sending::Posted) => {
                core.sent_eagerly(peer, length);
                let mut posted = u32::from(sending == Ok(Sending::Posted) && is_memory);
                if let Some(id) = id.filter(|_| is_taken) {
                    posted += u32::from(transport.tell_taken(path.1, core.operations.token(id)));
                }
                match id {
                    None => core.complete(send.context, send.flags, send.space, Completed::Sent),
                    Some(id) if posted > 0 => core.set_posted(id, posted, length),
                    Some(id) => core.end_if_over(id),
                }
                Ok(())
            }
            Ok(Sending::Full) => {
                core.forget(id);
                self.again()
            }
            Err(SendError::TooLong { .. }) if length > SMALL => {
                core.forget(id);
                self.send_rendezvous(path, peer, send, length)
            }
            Err(error) => {
                core.forget(id);
                self.refuse_or_fail(send, &error)
            }
        }
    }

    fn send_rendezvous(
        &mut self,
        path: Path,
        peer: PeerId,
        send: &Send<'_>,
        length: u64,
    ) -> Result<(), SendRefused> {
        if !self.core.peers[peer].balance.has_header() {
            return self.again();
        }
        let (core, transports) = (&mut self.core, &mut self.transports);
        let Some(transport) = transports.get_mut(usize::from(path.0.0)) else {
            return Err(SendRefused::Again);
        };
        let (buffer, copy) = memory_of(&send.payload);
        let remote = match transport.expose(path.1, buffer) {
            Ok(remote) => remote,
            Err(error) => return self.refuse_or_fail(send, &error),
        };
        let what = if send.space == Space::Tagged { SendFlags::TO_BE_READ } else { SendFlags::NONE };
        let context = context_of(None, what, send.cq_data);
        let awaits = Awaits::Read { device: path.0, remote, tag: send.tag, flags: context.flags };
        let Ok(id) = core.begin(peer, send, awaits) else {
            transport.withdraw(&remote);
            return self.again();
        };
        let context = AppContext { operation: id, ..context };
        let is_copy = copy.is_some();
        if let Some(operation) = core.operations.get_mut(id) {
            operation.copy = copy;
            // The user has its memory back already.
            operation.is_told = !(is_copy && send.level <= Level::Inject);
        }
        let mut header = [0; Message::HEADER_LENGTH_MAX];
        let length_of_header = encode_request(send, context, &remote, &mut header);
        let message = Outgoing {
            header: header.get(..length_of_header).unwrap_or_default(),
            payload: Payload::Copied(&[]),
            immediate: if send.space == Space::Tagged { send.cq_data } else { None },
            more: send.more,
            context: None,
        };
        match transport.send(path.1, &message) {
            Ok(Sending::Done | Sending::Posted) => {
                let row = &mut core.peers[peer];
                row.balance.take_header();
                core.statistics.without_credit += u64::from(length <= row.eager_limit);
                core.statistics.sent_rendezvous += 1;
                core.statistics.bytes_sent += length;
                if is_copy && send.level <= Level::Inject {
                    core.complete(send.context, send.flags, send.space, Completed::Sent);
                }
                Ok(())
            }
            Ok(Sending::Full) => {
                transport.withdraw(&remote);
                core.forget(Some(id));
                self.again()
            }
            Err(error) => {
                transport.withdraw(&remote);
                core.forget(Some(id));
                self.refuse_or_fail(send, &error)
            }
        }
    }

    fn send_segmented(
        &mut self,
        path: Path,
        peer: PeerId,
        send: &Send<'_>,
        length: u64,
    ) -> Result<(), SendRefused> {
        let (core, transports) = (&mut self.core, &mut self.transports);
        let Some(transport) = transports.get_mut(usize::from(path.0.0)) else {
            return Err(SendRefused::Again);
        };
        let wanted = acknowledgement(send.level);
        let awaits =
            if wanted == SendFlags::NONE { Awaits::Nothing } else { Awaits::Acknowledgement(wanted) };
        let id = core.begin(peer, send, awaits)?;
        let (buffer, copy) = memory_of(&send.payload);
        let piece = core.peers[peer].piece_length();
        let first = SegmentFirst {
            context: context_of(Some(id), wanted, send.cq_data),
            tag: (send.space == Space::Tagged).then_some(send.tag),
            total_length: length,
            cq_data: send.cq_data,
            // How long it is says the frame; the header needs to know that it is not empty.
            payload: wire::Payload::new(&[0]),
        };
        let message = Outgoing {
            header: &first.header().unwrap_or_default(),
            payload: Payload::Memory(Buffer { length: piece, ..buffer }),
            immediate: None,
            more: false,
            context: Some(core.operations.token(id)),
        };
        let sending = transport.send(path.1, &message);
        match sending {
            Ok(Sending::Done | Sending::Posted) => {
                core.peers[peer].balance.take_eager(length);
                core.statistics.sent_segmented += 1;
                core.statistics.bytes_sent += length;
                if let Some(operation) = core.operations.get_mut(id) {
                    operation.copy = copy;
                    operation.rest = Some(Rest { path, buffer, next: piece, piece });
                    operation.posted = u32::from(sending == Ok(Sending::Posted));
                }
                if !self.send_segments_of(id) {
                    self.core.segmented.push_back(id);
                }
                Ok(())
            }
            Ok(Sending::Full) => {
                core.forget(Some(id));
                self.again()
            }
            Err(SendError::TooLong { .. }) => {
                core.forget(Some(id));
                self.send_rendezvous(path, peer, send, length)
            }
            Err(error) => {
                core.forget(Some(id));
                self.refuse_or_fail(send, &error)
            }
        }
    }

    /// Segments that had no room before.
    pub(super) fn send_segments(&mut self) {
        for _ in 0..self.core.segmented.len() {
            let Some(id) = self.core.segmented.pop_front() else { return };
            if !self.send_segments_of(id) {
                self.core.segmented.push_back(id);
            }
        }
    }

    /// Whether none is left.
    fn send_segments_of(&mut self, id: OperationId) -> bool {
        if self.core.operations.get_mut(id).is_some_and(|operation| operation.remote.is_some()) {
            return self.send_rest_of_access(id);
        }
        loop {
            let (core, transports) = (&mut self.core, &mut self.transports);
            let token = core.operations.token(id);
            let Some(operation) = core.operations.get_mut(id) else { return true };
            let Some(rest) = operation.rest.filter(|_| operation.failure.is_none()) else { return true };
            let left = rest.buffer.behind(rest.next);
            let is_last = left.length <= rest.piece;
            let segment = Segment { operation: id, offset: rest.next, payload: wire::Payload::new(&[0]) };
            let message = Outgoing {
                header: &segment.header(is_last).unwrap_or_default(),
                payload: Payload::Memory(Buffer { length: left.length.min(rest.piece), ..left }),
                immediate: None,
                more: false,
                context: Some(token),
            };
            let transport = transports.get_mut(usize::from(rest.path.0.0));
            let sending = transport.map(|transport| transport.send(rest.path.1, &message));
            match sending {
                Some(Ok(Sending::Full)) => return false,
                Some(Ok(sending)) => {
                    operation.posted += u32::from(sending == Sending::Posted);
                    let next = rest.next.saturating_add(rest.piece);
                    operation.rest = (!is_last).then_some(Rest { next, ..rest });
                    if is_last && operation.is_taken {
                        let transport = transports.get_mut(usize::from(rest.path.0.0));
                        let is_told = transport.is_some_and(|to| to.tell_taken(rest.path.1, token));
                        operation.posted += u32::from(is_told);
                    }
                    if is_last {
                        core.end_if_over(id);
                        return true;
                    }
                }
                // The link is gone, and its end will be told.
                Some(Err(SendError::NoLink(_))) | None => {
                    operation.failure = Some(Failure::Lost);
                    core.end_if_over(id);
                    return true;
                }
                Some(Err(error)) => {
                    let is_memory = matches!(error, SendError::Memory(_));
                    operation.failure = Some(if is_memory { Failure::Memory } else { Failure::ReadFailed });
                    let peer = operation.peer;
                    core.end_unfinished(rest.path, peer);
                    core.end_if_over(id);
                    return true;
                }
            }
        }
    }

    /// A message that a transport does not take: where its link has just gone, the user tries again.
    fn refuse_or_fail(&mut self, send: &Send<'_>, error: &SendError) -> Result<(), SendRefused> {
        match error {
            SendError::NoLink(_) => self.again(),
            SendError::Memory(_) => self.refuse(send, Failure::Memory),
            SendError::TooLong { .. } | SendError::Malformed => self.refuse(send, Failure::ReadFailed),
        }
    }
}

impl Endpoint {
    /// A message that cannot be sent at all ends so.
    fn refuse(&mut self, send: &Send<'_>, failure: Failure) -> Result<(), SendRefused> {
        self.core.complete(send.context, send.flags, send.space, Completed::Failed(failure));
        Ok(())
    }
}

impl Core {
    /// A number for a send.
    #[inline]
    fn begin(&mut self, peer: PeerId, send: &Send<'_>, awaits: Awaits) -> Result<OperationId, SendRefused> {
        let operation = Operation {
            space: send.space,
            context: send.context,
            flags: send.flags,
            is_taken: send.level == Level::Transmit,
            awaits,
            ..Operation::new(peer)
        };
        self.operations.insert(operation).ok_or(SendRefused::Again)
    }

    /// A message with its payload is out, or on its way.
    #[inline]
    fn sent_eagerly(&mut self, peer: PeerId, length: u64) {
        self.peers[peer].balance.take_eager(length);
        self.statistics.sent_eager += 1;
        self.statistics.bytes_sent += length;
    }

    /// It was not sent.
    fn forget(&mut self, id: Option<OperationId>) {
        if let Some(id) = id {
            self.operations.remove(id);
        }
    }

    /// It is on its way, with so many bytes of payload.
    #[inline]
    fn set_posted(&mut self, id: OperationId, posted: u32, length: u64) {
        if let Some(operation) = self.operations.get_mut(id) {
            operation.posted = posted;
            operation.credit = Some(length);
        }
    }
}

impl Peer {
    /// How a message goes to this peer now.
    #[inline]
    fn protocol(&self, send: &Send<'_>, length: u64, segmented_limit: u64) -> Protocol {
        let is_eager = length <= self.eager_limit || length <= SMALL;
        if is_eager {
            if self.balance.has_eager(length) {
                return Protocol::Eager;
            }
        } else if length <= segmented_limit && self.takes_segments(send) && self.balance.has_eager(length) {
            return Protocol::Segmented;
        }
        if !self.capabilities.contains(PeerCapabilities::READS) {
            self.protocol_without_reads(send, length, is_eager)
        } else if length > SMALL && self.balance.has_header() {
            Protocol::Rendezvous
        } else {
            Protocol::Wait
        }
    }

    /// How a message goes to a peer that cannot read, if not eagerly now: in segments, however long it is, where that is
    /// possible at all.
    #[cold]
    fn protocol_without_reads(&self, send: &Send<'_>, length: u64, is_eager: bool) -> Protocol {
        if is_eager {
            Protocol::Wait
        } else if !self.takes_segments(send) {
            Protocol::Never(self.eager_limit.max(SMALL))
        } else if length > self.balance.bytes_most() {
            Protocol::Never(self.balance.bytes_most())
        } else if self.balance.has_eager(length) {
            Protocol::Segmented
        } else {
            Protocol::Wait
        }
    }

    fn takes_segments(&self, send: &Send<'_>) -> bool {
        let is_one = match send.payload {
            Payload::Copied(_) => true,
            Payload::Memory(buffer) => buffer.segments == 1,
        };
        let may = send.space == Space::Untagged || !self.capabilities.contains(PeerCapabilities::MATCHING);
        is_one && may && self.capabilities.contains(PeerCapabilities::SEGMENTS)
    }
}

/// What the peer is asked to say.
#[inline]
const fn acknowledgement(level: Level) -> SendFlags {
    match level {
        Level::Inject | Level::Transmit => SendFlags::NONE,
        Level::Delivery => SendFlags::ACKNOWLEDGE_DELIVERY,
        Level::Match => SendFlags::ACKNOWLEDGE_MATCH,
    }
}

#[inline]
fn context_of(id: Option<OperationId>, wanted: SendFlags, cq_data: Option<u32>) -> AppContext {
    let flags = if cq_data.is_some() { wanted.with(SendFlags::CQ_DATA) } else { wanted };
    AppContext { operation: id.unwrap_or_default(), flags }
}

#[inline]
const fn length_of(payload: &Payload<'_>) -> u64 {
    match payload {
        Payload::Copied(bytes) => bytes.len() as u64,
        Payload::Memory(buffer) => buffer.length,
    }
}

/// A request to read, as bytes. 0: it cannot be said.
fn encode_request(send: &Send<'_>, context: AppContext, remote: &Remote, out: &mut [u8]) -> usize {
    let memory = RemoteMemory { address: remote.address, key: remote.key, length: remote.length };
    let encoded = match send.space {
        Space::Tagged => Rendezvous { context, tag: send.tag, memory }.encode(out),
        Space::Untagged => {
            let request = UntaggedRendezvous { context, cq_data: send.cq_data, memory };
            Control::UntaggedRendezvous(request).encode(out)
        }
    };
    encoded.unwrap_or(0)
}
