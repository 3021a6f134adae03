//! What goes out: the owner's messages, reads of rendezvous and their FINs, probes.
//!
//! Every request is signalled. The owner's are refused when there is no room ([`Sending::Full`]); the device's own
//! never fail for that, but wait.

use super::super::completion::{Completion, PollError};
use super::super::error::Errno;
use super::super::queue_pair::{SendKind, SendPayload, SendRequest};
use super::super::sys::types::ibv_sge;
use super::VerbsDevice;
use super::peers::State;
use crate::ids::{PeerId, Tag};
use crate::seam::{Buffer, DeviceError, Remote};
use crate::wire::{self, AppContext, Rendezvous, Rvh};

/// Something to send to a peer. Where a device matches at the other end, it matches the first two kinds.
#[derive(Clone, Copy, Debug)]
pub enum Message<'a> {
    /// A tag and a payload, which is copied.
    Eager {
        /// The sender's word.
        context: AppContext,
        /// The tag.
        tag: Tag,
        /// Bytes; at most what the peer takes eagerly.
        payload: &'a [u8],
    },
    /// A tag and a payload in memory that is registered with this device, which stays as it is until the send is done.
    EagerRegistered {
        /// The sender's word.
        context: AppContext,
        /// The tag.
        tag: Tag,
        /// The payload.
        payload: Buffer,
    },
    /// A request to read the payload. A FIN answers it, as a message without a tag.
    Rendezvous(Rendezvous),
    /// A message without a tag (`wire::Control`, encoded).
    Control(&'a [u8]),
}

/// What became of a message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Sending {
    /// It is on its way; [`VerbsDevice::poll_sent`] will tell its end.
    Posted,
    /// There is no room for it now: poll, and try again.
    Full,
}

/// A message that cannot be sent. Nothing was done.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The peer is not connected (any more).
    #[error("{peer:?} is not connected")]
    NoPath {
        /// The peer.
        peer: PeerId,
    },
    /// It is longer than the peer takes at once.
    #[error("{length} bytes are more than the {limit} that can be sent at once: send a rendezvous request")]
    TooLong {
        /// Bytes of the payload.
        length: u64,
        /// What is allowed.
        limit: u64,
    },
    /// A message without a tag must begin with NO_TAG (0), and others are encoded here.
    #[error("no message of the protocol")]
    Malformed,
    /// The device refused.
    #[error("ibv_post_send: {0}")]
    Refused(Errno),
}

/// The end of a send.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SendDone {
    /// To whom.
    pub peer: PeerId,
    /// As given with the message.
    pub context: u64,
    /// Whether the peer's device has it. (That the peer's program has it, only the peer can say.)
    pub result: Result<(), SendFailure>,
}

/// Why a send failed. The path to the peer is lost with it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[error("work-completion status {status}, vendor error {vendor_error:#x}")]
pub struct SendFailure {
    /// `enum ibv_wc_status`; 5 (flushed) says that another one before it failed.
    pub status: u32,
    /// The vendor's error.
    pub vendor_error: u32,
}

impl SendFailure {
    pub(super) const fn of(completion: &Completion) -> Self {
        Self { status: completion.status, vendor_error: completion.vendor_error }
    }
}

/// A request that was posted.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) peer: usize,
    pub(super) buffer: Option<u32>,
    pub(super) kind: OutgoingKind,
    /// Bytes that it carries, either way.
    pub(super) length: u64,
    /// Of the owner's memory that is sent from there; 0: none.
    pub(super) key: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum OutgoingKind {
    User(u64),
    /// Nobody asks what becomes of it.
    Copied,
    Read(usize),
    Own,
    Probe,
}

/// Something of the device's own that waits for room in a send queue.
#[derive(Debug)]
pub(super) enum Deferred {
    Read(usize),
    Own(Own),
}

impl VerbsDevice {
    /// Send a message, with an immediate or without. `context` comes back with its end.
    ///
    /// # Errors
    /// It cannot be sent at all.
    pub fn send(
        &mut self,
        peer: PeerId,
        message: &Message<'_>,
        immediate: Option<u32>,
        context: u64,
    ) -> Result<Sending, SendError> {
        let no_path = SendError::NoPath { peer };
        let (index, found) = self.peers.find(peer).ok_or(no_path)?;
        if found.state != State::Connected {
            return Err(no_path);
        }
        let (used, limit, inline) = (found.used, u64::from(found.eager_limit), found.send.inline());
        let room = self.config.sends_per_peer.saturating_sub(RESERVED);
        if used >= room || !found.deferred.is_empty() || !self.has_completion_room(RESERVED as usize) {
            return Ok(Sending::Full);
        }
        let mut header = [0; Rendezvous::LENGTH_MAX];
        let (header, payload, registered): (&[u8], &[u8], _) = match message {
            Message::Eager { context, tag, payload } => {
                (encode_eager(&mut header, *context, *tag), payload, None)
            }
            Message::EagerRegistered { context, tag, payload } => {
                (encode_eager(&mut header, *context, *tag), &[], Some(*payload))
            }
            Message::Rendezvous(request) => {
                let length = request.encode(&mut header).map_err(|_| SendError::Malformed)?;
                (header.get(..length).unwrap_or_default(), &[], None)
            }
            Message::Control(bytes) => {
                if bytes.first() != Some(&0) {
                    return Err(SendError::Malformed);
                }
                (&[], bytes, None)
            }
        };
        let length = registered.map_or(payload.len() as u64, |payload| payload.length);
        let limit = if header.is_empty() { u64::from(self.send_slab.length()) } else { limit };
        if length > limit.min(u64::from(self.send_slab.length()) - header.len() as u64) {
            return Err(SendError::TooLong { length, limit });
        }
        let kind = OutgoingKind::User(context);
        self.post_message(index, kind, (header, payload), registered, immediate, inline)
    }

    /// Ask a peer's device for an acknowledgement, which its program does not notice: a peer that is gone is found out
    /// after the time that queue pairs try. Also done by itself, if the configuration says so.
    ///
    /// # Errors
    /// The peer is not connected.
    pub fn probe(&mut self, peer: PeerId) -> Result<Sending, SendError> {
        let no_path = SendError::NoPath { peer };
        let (index, found) = self.peers.find(peer).ok_or(no_path)?;
        if found.state != State::Connected {
            return Err(no_path);
        }
        if !self.has_room(index, 1) {
            return Ok(Sending::Full);
        }
        self.post(index, OutgoingKind::Probe, SendKind::Probe, SendPayload::Empty, None)
            .map_err(SendError::Refused)?;
        if let Some(peer) = self.peers.at(index) {
            peer.probes += 1;
        }
        Ok(Sending::Posted)
    }

    /// Tell the sender of a rendezvous that its payload is no longer needed.
    pub(super) fn send_fin(&mut self, peer: PeerId, tag: Tag, app_ctx: u32, remote: &Remote) {
        if let Some((index, found)) = self.peers.find(peer)
            && found.state == State::Connected
        {
            self.post_own(index, Own::fin(tag, app_ctx, remote));
        }
    }

    /// Say something short to a peer; it waits where there is no room.
    pub(in crate::device::verbs) fn tell_peer(&mut self, peer: PeerId, own: Own) {
        if let Some((index, found)) = self.peers.find(peer)
            && found.state == State::Connected
        {
            self.post_own(index, own);
        }
    }

    pub(super) fn post_own(&mut self, index: usize, own: Own) {
        let inline = self.peers.at(index).map_or(0, |peer| peer.send.inline());
        let has_buffer = inline as usize >= own.bytes().len() || !self.send_free.is_empty();
        if !self.has_room(index, 1) || !has_buffer {
            if let Some(peer) = self.peers.at(index) {
                peer.deferred.push_back(Deferred::Own(own));
            }
            return;
        }
        let posted = self.post_message(index, OutgoingKind::Own, (own.bytes(), &[]), None, None, inline);
        if let Err(SendError::Refused(errno)) = posted {
            self.post_failed(index, errno);
        }
    }

    pub(super) fn post_message(
        &mut self,
        index: usize,
        kind: OutgoingKind,
        (header, payload): (&[u8], &[u8]),
        registered: Option<Buffer>,
        immediate: Option<u32>,
        inline: u32,
    ) -> Result<Sending, SendError> {
        let length = header.len() + payload.len();
        let send = SendKind::Send(immediate);
        let mut small = [0; INLINE_MAX];
        if registered.is_none() && length <= INLINE_MAX.min(inline as usize) {
            let bytes = header.iter().chain(payload);
            small.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
            let bytes = small.get(..length).unwrap_or_default();
            let posted = self.post(index, kind, send, SendPayload::Inline(bytes), None);
            return posted.map(|()| Sending::Posted).map_err(SendError::Refused);
        }
        let Some(buffer) = self.send_free.pop() else { return Ok(Sending::Full) };
        let (region, offset) = (self.send_slab.region(), self.send_slab.offset(buffer));
        region.write(offset, header);
        region.write(offset + header.len() as u64, payload);
        let staged = region.buffer(offset, length as u64);
        let segments = [segment(&staged), registered.as_ref().map(segment).unwrap_or_default()];
        let count = if registered.is_some_and(|payload| payload.length > 0) { 2 } else { 1 };
        let payload = SendPayload::Registered(segments.get(..count).unwrap_or_default());
        let posted = self.post(index, kind, send, payload, Some(buffer));
        posted.map(|()| Sending::Posted).map_err(SendError::Refused)
    }

    /// Post one request. A buffer that it could not use is free again.
    pub(super) fn post(
        &mut self,
        index: usize,
        kind: OutgoingKind,
        send: SendKind,
        payload: SendPayload<'_>,
        buffer: Option<u32>,
    ) -> Result<(), Errno> {
        let key = if let SendPayload::Registered([_, payload]) = payload { payload.lkey } else { 0 };
        let length = payload.length();
        let id = self.outgoing.insert(Outgoing { peer: index, buffer, kind, length, key });
        let request = SendRequest { wr_id: id as u64, kind: send, payload };
        let posted = match self.peers.at(index) {
            Some(peer) => peer.send.post(&[request]).map_err(|(errno, _)| errno),
            None => Err(Errno(libc::ENOTCONN)),
        };
        if let Err(errno) = posted {
            self.outgoing.remove(id);
            self.send_free.extend(buffer);
            return Err(errno);
        }
        if let Some(peer) = self.peers.at(index) {
            peer.used += 1;
            peer.copied += u64::from(matches!(kind, OutgoingKind::Copied));
        }
        Ok(())
    }

    /// The driver refused what was counted: the queue pair is of no use.
    pub(super) fn post_failed(&mut self, index: usize, errno: Errno) {
        let failure = SendFailure {
            status: super::super::sys::IBV_WC_LOC_QP_OP_ERR,
            vendor_error: errno.0.unsigned_abs(),
        };
        self.fail_path(index, Some(failure));
    }

    pub(super) fn has_room(&mut self, index: usize, requests: u32) -> bool {
        let limit = self.config.sends_per_peer;
        let has_completions = self.has_completion_room(0);
        has_completions && self.peers.at(index).is_some_and(|peer| peer.used + requests <= limit)
    }

    pub(super) fn has_completion_room(&self, reserved: usize) -> bool {
        // Two for the queue pairs of each peer that fail.
        let errors = 2 * self.peers.len();
        self.outgoing.len() + reserved + errors + 2 <= self.send_queue.entries() as usize
    }

    /// Take completions of sends, and say how many.
    #[inline(always)]
    pub(super) fn poll_sends(&mut self) -> usize {
        match self.send_queue.fetch() {
            Ok(0) => 0,
            fetched => self.handle_fetched(fetched),
        }
    }

    #[inline(never)]
    fn handle_fetched(&mut self, fetched: Result<usize, PollError>) -> usize {
        let count = fetched.unwrap_or_else(|error| {
            self.fail(DeviceError::Contract(error.to_string()));
            0
        });
        let mut completions = std::mem::take(&mut self.scratch.completions);
        completions.clear();
        completions.extend(self.send_queue.fetched(count));
        for completion in &completions {
            self.handle_sent(completion);
        }
        self.scratch.completions = completions;
        count
    }

    fn handle_sent(&mut self, completion: &Completion) {
        let failure = SendFailure::of(completion);
        let Some((index, peer)) = self.peers.by_number(completion.qp_num) else { return };
        if peer.receive.number() == completion.qp_num {
            // Of a READ that the device did by itself; its id names nothing.
            return self.fail_path(index, Some(failure));
        }
        let id = usize::try_from(completion.wr_id).unwrap_or(usize::MAX);
        let known = self.outgoing.get(id).is_some_and(|outgoing| outgoing.peer == index);
        if !known {
            let text = format!("a completion names request {id:#x}, which does not exist");
            return self.fail(DeviceError::Contract(text));
        }
        let outgoing = self.outgoing.remove(id);
        self.send_free.extend(outgoing.buffer);
        let result = if completion.is_success() { Ok(()) } else { Err(failure) };
        let Some(peer) = self.peers.at(index) else { return };
        peer.used = peer.used.saturating_sub(1);
        peer.heard |= result.is_ok();
        let id = peer.id;
        match outgoing.kind {
            OutgoingKind::User(context) => self.sent.push_back(SendDone { peer: id, context, result }),
            OutgoingKind::Read(job) if result.is_ok() => self.part_done(index, job),
            OutgoingKind::Probe => peer.probes = peer.probes.saturating_sub(1),
            OutgoingKind::Copied if result.is_ok() => peer.taken += 1,
            OutgoingKind::Read(_) | OutgoingKind::Own | OutgoingKind::Copied => {}
        }
        if result.is_err() {
            return self.fail_path(index, Some(failure));
        }
        self.run_deferred(index);
    }

    fn run_deferred(&mut self, index: usize) {
        let count = self.peers.at(index).map_or(0, |peer| peer.deferred.len());
        for _ in 0..count {
            if !self.has_room(index, 2) {
                return;
            }
            let deferred = self.peers.at(index).and_then(|peer| peer.deferred.pop_front());
            match deferred {
                Some(Deferred::Read(id)) => self.ask(index, id),
                Some(Deferred::Own(own)) => self.post_own(index, own),
                None => return,
            }
        }
    }
}

/// A short message of the device's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::device::verbs) struct Own {
    bytes: [u8; wire::Fin::LENGTH],
    length: usize,
}

impl Own {
    /// These bytes; what is too long is cut.
    pub(in crate::device::verbs) fn new(from: &[u8]) -> Self {
        let mut bytes = [0; wire::Fin::LENGTH];
        bytes.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
        Self { bytes, length: from.len().min(wire::Fin::LENGTH) }
    }

    /// What ends the rendezvous of a message with a tag.
    pub(super) fn fin(tag: Tag, app_ctx: u32, remote: &Remote) -> Self {
        Self { bytes: fin_bytes(tag, app_ctx, remote), length: wire::Fin::LENGTH }
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

fn encode_eager(header: &mut [u8], context: AppContext, tag: Tag) -> &[u8] {
    let bytes = wire::Eager { context, tag, payload: wire::Payload::new(&[]) }.header();
    header.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
    header.get(..bytes.len()).unwrap_or_default()
}

/// A FIN repeats TMH and RVH of its request. Its word may be one that no version of the protocol knows: a device that
/// matched it did not look.
fn fin_bytes(tag: Tag, app_ctx: u32, remote: &Remote) -> [u8; wire::Fin::LENGTH] {
    let len = u32::try_from(remote.length).unwrap_or(Rvh::LENGTH_BEHIND);
    let rvh = Rvh { va: remote.address, rkey: remote.key, len }.to_bytes();
    let mut bytes = [0; wire::Fin::LENGTH];
    let fields = [wire::Opcode::Fin as u8, 0, 0, 0]
        .into_iter()
        .chain(app_ctx.to_be_bytes())
        .chain(tag.0.to_be_bytes())
        .chain(rvh);
    bytes.iter_mut().zip(fields).for_each(|(to, from)| *to = from);
    bytes
}

pub(super) fn segment(buffer: &Buffer) -> ibv_sge {
    let length = u32::try_from(buffer.length).unwrap_or(u32::MAX);
    ibv_sge { addr: buffer.address, length, lkey: buffer.key }
}

/// Requests of a send queue that are kept for the device's own.
pub(super) const RESERVED: u32 = 4;
/// Bytes that are put together to go with a request itself.
pub(super) const INLINE_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fin_is_what_the_protocol_says_of_its_request() {
        for length in [0, 77, u64::from(u32::MAX) + 5] {
            let memory = wire::RemoteMemory { address: 0x1234, key: 9, length };
            let context =
                AppContext { operation: wire::OperationId::new(7).unwrap(), ..AppContext::default() };
            let request = Rendezvous { context, tag: Tag(0xABCD), memory };
            let remote = Remote { address: 0x1234, key: 9, length };
            assert_eq!(fin_bytes(Tag(0xABCD), context.to_bits(), &remote), request.fin().to_bytes());
        }
    }

    #[test]
    fn an_eager_header_is_a_tmh() {
        let mut room = [0xFF; 40];
        let header = encode_eager(&mut room, AppContext::default(), Tag(0x0102));
        assert_eq!(header, b"\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x02");
    }
}
