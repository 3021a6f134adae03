//! A device whose owner is a transport: it hears everything one by one, with the bytes of messages without a tag, and
//! sends messages that are encoded already.
//!
//! Not here: links and what they carry besides.

use super::super::channel::Channel;
use super::super::queue_pair::{SendKind, SendPayload};
use super::peers::State;
use super::sending::{INLINE_MAX, OutgoingKind, RESERVED, SendError, SendFailure, Sending, segment};
use super::side::ReceiveSide;
use super::{VerbsDevice, host_fault};
use crate::device::transport::Payload;
use crate::ids::{DeviceId, MessageToken, PeerId};
use crate::seam::{Answer, Buffer, Event, EventSink};

impl VerbsDevice {
    /// The oldest event that waits to be told. An arrival is to be answered ([`Self::answered`]) before the next call.
    pub(in crate::device::verbs) fn next_event(&mut self) -> Option<Event> {
        let event = self.pending.pop_front();
        self.failure_told |= matches!(event, Some(Event::DeviceFailed(_)));
        event
    }

    /// Whether events wait to be told.
    pub(in crate::device::verbs) fn has_event(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The answer to an arrival that was just told.
    pub(in crate::device::verbs) fn answered(&mut self, message: MessageToken, answer: Answer) {
        if let Err(text) = self.answer(message, answer, true) {
            self.fail(host_fault(&text));
        }
    }

    /// Take from the queues. Only matches and the ends of list operations are told to the sink, and only when nothing waits
    /// to be told, as nothing may when this is called: how many were; and whether there may be more.
    pub(in crate::device::verbs) fn advance(
        &mut self,
        room: usize,
        sink: &mut dyn EventSink,
    ) -> (usize, bool) {
        if self.failure.is_some() {
            return (0, false);
        }
        let advanced = self.progress(room, sink);
        self.sent.clear();
        advanced
    }

    /// A descriptor that is readable when something has come since [`Self::may_wait`].
    pub(in crate::device::verbs) fn wait_descriptor(&self) -> Option<i32> {
        self.channel.as_ref().map(Channel::descriptor)
    }

    /// A descriptor that is readable when something happened to the device; [`Self::poll_events`] looks.
    pub(in crate::device::verbs) fn event_descriptor(&self) -> i32 {
        self.context.event_descriptor()
    }

    /// The descriptor was readable, and is to be so no more.
    pub(in crate::device::verbs) fn drain_channel(&self) {
        if let Some(channel) = &self.channel {
            channel.drain();
        }
    }

    /// Whether the owner may wait for the descriptor; false if there is something to tell, or to look after.
    pub(in crate::device::verbs) fn may_wait(&mut self) -> bool {
        if self.channel.is_none() || self.failure.is_some() || self.has_event() {
            return false;
        }
        let receives = match &self.side {
            ReceiveSide::Matching(matching) => matching.srq.completions(),
            ReceiveSide::Plain(plain) => plain.queue.handle(),
            ReceiveSide::Gone => return false,
        };
        self.drain_channel();
        receives.arm();
        self.send_queue.handle().arm();
        // What came before that says nothing.
        let mut matches = Collected(Vec::new());
        let (_, is_more) = self.advance(usize::MAX, &mut matches);
        self.pending.extend(matches.0);
        let is_calm = self.peers.iter_mut().all(|(_, peer)| !matches!(peer.state, State::Failing { .. }));
        is_calm && !is_more && !self.has_event()
    }

    /// Look at the bytes of the message without a tag that [`Event::Untagged`] just named, and forget it.
    pub(in crate::device::verbs) fn take_first_untagged<R>(
        &mut self,
        message: MessageToken,
        take: impl FnOnce(&[u8]) -> R,
    ) -> Option<R> {
        if self.untagged.front().is_none_or(|first| first.token != message) {
            return None;
        }
        let first = self.untagged.pop_front()?;
        match &first.copied {
            Some(bytes) => Some(take(bytes)),
            None => {
                // SAFETY: the buffer is not posted.
                let bytes = unsafe { self.side.bytes(first.buffer, first.length) };
                let taken = take(bytes);
                self.buffers.give_back(first.buffer);
                Some(taken)
            }
        }
    }

    /// Send a message whose header is encoded; the payload is copied.
    ///
    /// # Errors
    /// It cannot be sent at all.
    pub(in crate::device::verbs) fn send_encoded(
        &mut self,
        peer: PeerId,
        header: &[u8],
        payload: Payload<'_>,
        immediate: Option<u32>,
    ) -> Result<Sending, SendError> {
        let no_path = SendError::NoPath { peer };
        let (index, found) = self.peers.find(peer).ok_or(no_path)?;
        if found.state != State::Connected {
            return Err(no_path);
        }
        let (used, limit, inline) = (found.used, u64::from(found.eager_limit), found.send.inline());
        let is_behind = !found.deferred.is_empty();
        let length = match payload {
            Payload::Copied(bytes) => bytes.len() as u64,
            Payload::Memory(buffer) => buffer.length,
        };
        let room = u64::from(self.send_slab.length()).saturating_sub(header.len() as u64);
        if length > limit.min(room) {
            return Err(SendError::TooLong { length, limit: limit.min(room) });
        }
        let requests = self.config.sends_per_peer.saturating_sub(RESERVED);
        if used >= requests || is_behind || !self.has_completion_room(RESERVED as usize) {
            return Ok(Sending::Full);
        }
        let bytes = match payload {
            Payload::Copied(bytes) => bytes,
            Payload::Memory(buffer) => {
                let mut small = [0; INLINE_MAX];
                let count = usize::try_from(length).unwrap_or(usize::MAX);
                let Some(small) = small.get_mut(..count) else {
                    return self.send_memory(index, header, &buffer, immediate);
                };
                self.regions.host().read(&buffer, 0, small);
                return self.post_message(
                    index,
                    OutgoingKind::Copied,
                    (header, small),
                    None,
                    immediate,
                    inline,
                );
            }
        };
        self.post_message(index, OutgoingKind::Copied, (header, bytes), None, immediate, inline)
    }

    /// A payload in memory that is too long to go with the request.
    fn send_memory(
        &mut self,
        index: usize,
        header: &[u8],
        payload: &Buffer,
        immediate: Option<u32>,
    ) -> Result<Sending, SendError> {
        let Some(slot) = self.send_free.pop() else { return Ok(Sending::Full) };
        let (region, offset, start) =
            (self.send_slab.region(), self.send_slab.offset(slot), header.len() as u64);
        region.write(offset, header);
        self.regions.host().copy(payload, &region.buffer(offset + start, payload.length));
        let staged = [segment(&region.buffer(offset, start + payload.length))];
        let (send, staged) = (SendKind::Send(immediate), SendPayload::Registered(&staged));
        let posted = self.post(index, OutgoingKind::Copied, send, staged, Some(slot));
        posted.map(|()| Sending::Posted).map_err(SendError::Refused)
    }

    /// Why a path was lost, as was just told, where it is known.
    pub(in crate::device::verbs) fn take_cause(&mut self, peer: PeerId) -> Option<SendFailure> {
        let place = self.causes.iter().position(|(of, _)| *of == peer)?;
        self.causes.remove(place).map(|(_, failure)| failure)
    }

    /// Whether nothing that was given to send to a peer is under way any more, nor anything that is read from it.
    pub(in crate::device::verbs) fn is_quiet(&self, peer: PeerId) -> bool {
        self.peers.find(peer).is_none_or(|(_, peer)| peer.used == 0 && peer.deferred.is_empty())
    }

    /// Bytes that are under way to a peer or from it; what has none counts as one.
    pub(in crate::device::verbs) fn under_way(&self, peer: PeerId) -> u64 {
        let Some((index, found)) = self.peers.find(peer) else { return 0 };
        let posted = self.outgoing.iter().filter(|(_, outgoing)| outgoing.peer == index);
        let posted: u64 = posted.map(|(_, outgoing)| outgoing.length.max(1)).sum();
        let wanted = self.jobs.iter().filter(|(_, job)| job.peer == peer);
        let wanted: u64 = wanted.map(|(_, job)| job.left()).sum();
        posted.saturating_add(wanted).saturating_add(found.deferred.len() as u64)
    }

    /// Messages that were sent to a peer by [`Self::send_encoded`], and how many of them its device has acknowledged, in
    /// their order.
    pub(in crate::device::verbs) fn acknowledged(&self, peer: PeerId) -> (u64, u64) {
        self.peers.find(peer).map_or((0, 0), |(_, peer)| (peer.copied, peer.taken))
    }
}

/// Events that are told later.
struct Collected(Vec<Event>);

impl EventSink for Collected {
    fn handle_event(&mut self, _device: DeviceId, event: &Event) -> Answer {
        self.0.push(event.clone());
        Answer::Hold
    }
}
