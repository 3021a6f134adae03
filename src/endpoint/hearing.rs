//! What transports tell: messages go to the engines, and what sending needs to know comes out of the rest.
//!
//! Nothing is done with a transport from within: what is to be done is queued. Not here: what is said before a
//! connection is one (`greetings`).

use crate::device::transport::{CloseReason, Ear, Notice, Reaction};
use crate::ids::{DeviceId, LinkId, PeerId};
use crate::seam::{Answer, Arrival, Buffer, Data, DataTarget, Event, EventSink, Match, MatchStage};
use crate::wire::{
    self, AppContext, Control, Fin, Goodbye, Keepalive, Message, OperationId, RefusedRendezvous,
    RemoteAtomic, SendFlags,
};

use super::awaited::Wait;
use super::core::{Action, Core};
use super::credits::Allowance;
use super::interface::{Completed, Failure, Space};
use super::links::Phase;
use super::operations::{Awaits, Remote};
use super::peers::{Path, State};
use super::receiving::ACKNOWLEDGE;

impl EventSink for Core {
    #[inline]
    fn handle_event(&mut self, device: DeviceId, event: &Event) -> Answer {
        self.handle_message_event(Space::Tagged, device, event)
    }
}

impl Ear for Core {
    #[inline]
    fn handle_untagged_event(&mut self, device: DeviceId, event: &Event) -> Answer {
        self.handle_message_event(Space::Untagged, device, event)
    }

    fn handle_remote(
        &mut self,
        _device: DeviceId,
        source: PeerId,
        message: &Control<'_>,
        in_hand: bool,
    ) -> Answer {
        self.handle_piece(source, message, in_hand)
    }

    fn handle_remote_data(&mut self, device: DeviceId, data: &Data) {
        self.handle_placed(device, data);
    }

    fn handle_remote_atomic(
        &mut self,
        _device: DeviceId,
        source: PeerId,
        atomic: &RemoteAtomic<'_>,
    ) -> Option<Buffer> {
        self.handle_atomic(source, atomic)
    }

    fn handle_remote_atomic_done(
        &mut self,
        _device: DeviceId,
        source: PeerId,
        atomic: &RemoteAtomic<'_>,
        before: &[u8],
    ) {
        self.handle_atomic_done(source, atomic, before);
    }

    fn handle_control(&mut self, device: DeviceId, link: LinkId, message: &[u8]) -> Reaction {
        let path = (device, link);
        let Some(row) = self.links.find(path) else { return Reaction::Close };
        let (phase, peer) = (row.phase, row.peer);
        let Ok(decoded) = wire::decode(message) else { return self.protocol_error(path) };
        match (phase, peer) {
            (Phase::Closing, _) => Reaction::Continue,
            (Phase::Up, Some(peer)) => self.handle_peer_control(path, peer, &decoded),
            _ => match decoded {
                Message::Control(control) => self.handle_greeting(path, &control, message),
                Message::Eager(_) | Message::Rendezvous(_) | Message::Fin(_) => self.protocol_error(path),
            },
        }
    }

    fn handle_notice(&mut self, device: DeviceId, notice: Notice) {
        match notice {
            Notice::Incoming { link } => self.handle_incoming((device, link)),
            Notice::Open { link } => self.handle_open((device, link)),
            Notice::Closed { link, reason } => self.handle_closed((device, link), &reason),
            Notice::Sent { context, result } => self.handle_sent(context, result),
        }
    }
}

impl Core {
    #[inline]
    fn handle_message_event(&mut self, space: Space, device: DeviceId, event: &Event) -> Answer {
        let Event::Arrived(arrival) = event else {
            self.handle_rest(space, device, event);
            return Answer::Hold;
        };
        if !self.count_arrival(arrival.source, arrival.header.length, arrival.header.remote.is_some()) {
            return self.drop_arrival(space, device, arrival);
        }
        let answer = if arrival.header.app_ctx & ACKNOWLEDGE != 0 && arrival.header.remote.is_none() {
            self.handle_awaited(space, device, arrival)
        } else {
            self.engines[space as usize].handle_event(device, event)
        };
        match answer {
            Answer::Accept { .. } => self.statistics.matched_posted += 1,
            Answer::Hold => self.statistics.unexpected += 1,
            Answer::Discard => {}
        }
        answer
    }

    /// A message uses up credit. False: there was none, and the connection ends.
    #[inline]
    fn count_arrival(&mut self, source: PeerId, length: u64, is_header: bool) -> bool {
        let row = &mut self.peers[source];
        (row.heard, row.asked) = (self.now, None);
        if !row.allowance.take(length, is_header) {
            self.overdrawn(source);
            return false;
        }
        self.touch(source);
        true
    }

    /// A message that its sender may not send: nobody matches it. It has used up a buffer of a device that counts.
    #[cold]
    fn drop_arrival(&mut self, space: Space, device: DeviceId, arrival: &Arrival) -> Answer {
        let Arrival { message, source, header, counted, .. } = *arrival;
        if counted {
            let event = Event::Untagged { source, message, length: header.length, counted };
            let _hold = self.engines[space as usize].handle_event(device, &event);
        }
        Answer::Discard
    }

    /// A peer has sent more than it may. What it had been granted is void: nothing more of it is heard.
    #[cold]
    fn overdrawn(&mut self, peer: PeerId) {
        self.peers[peer].allowance = Allowance::default();
        self.break_off(peer);
    }

    /// A peer does what no peer does.
    #[cold]
    pub(super) fn break_off(&mut self, peer: PeerId) {
        if let State::Connected(path) = self.peers[peer].state {
            self.statistics.protocol_errors += 1;
            self.actions.push_back(Action::Say(path, Control::Goodbye(Goodbye::ProtocolError)));
            self.close_link(path, true);
            self.peers[peer].state = State::Leaving(path);
        }
    }

    /// A message of which its sender wants to hear: at once what is so already, the rest when it is so.
    #[inline(never)]
    fn handle_awaited(&mut self, space: Space, device: DeviceId, arrival: &Arrival) -> Answer {
        let AppContext { operation, flags } =
            AppContext::from_bits(arrival.header.app_ctx).unwrap_or_default();
        // What is in hand is placed, or kept until it is; of that nothing is told later.
        let (now, later) = match arrival.in_hand {
            true => (SendFlags::ACKNOWLEDGE_DELIVERY, SendFlags::ACKNOWLEDGE_MATCH),
            false => (SendFlags::NONE, SendFlags::ACKNOWLEDGE_MATCH.with(SendFlags::ACKNOWLEDGE_DELIVERY)),
        };
        let later = later.bits() & flags.bits();
        let mut named = *arrival;
        named.header.app_ctx = if later == 0 { 0 } else { self.awaited.word() };
        let answer = self.engines[space as usize].handle_event(device, &Event::Arrived(named));
        let now = match answer {
            Answer::Accept { .. } => now.with(SendFlags::ACKNOWLEDGE_MATCH),
            Answer::Hold => now,
            Answer::Discard => return answer,
        };
        self.tell_acknowledged(arrival.source, operation, flags.bits() & now.bits());
        let wants = later & !now.bits();
        if wants != 0 {
            let Arrival { source: peer, message: token, .. } = *arrival;
            self.awaited.insert(named.header.app_ctx, Wait { peer, operation, wants, device, token });
        }
        answer
    }

    /// Everything but arrivals.
    fn handle_rest(&mut self, space: Space, device: DeviceId, event: &Event) {
        match event {
            Event::Matched(matched) => self.count_match(matched),
            Event::Data(data) => self.count_data(device, data),
            // What it means is done when the transport's turn is over: it may be writing still.
            Event::DeviceFailed(error) => {
                self.device_failure.get_or_insert_with(|| error.clone());
                return;
            }
            Event::PathLost { .. }
            | Event::Operation(_)
            | Event::Released(_)
            | Event::SetAside { .. }
            | Event::Untagged { .. }
            | Event::Arrived(_) => {}
        }
        self.engines[space as usize].handle_event(device, event);
    }

    /// A device matched a message, which uses up credit like any other.
    fn count_match(&mut self, matched: &Match) {
        self.statistics.matched_by_device += 1;
        self.touch(matched.source);
        let is_read = matched.app_ctx & u32::from(SendFlags::TO_BE_READ.bits()) != 0;
        match matched.stage {
            MatchStage::Complete => {
                self.count_arrival(matched.source, matched.length, is_read);
            }
            MatchStage::SoftwareRendezvous(_) => {
                self.count_arrival(matched.source, matched.length, true);
            }
            // Of data that comes by itself the length is not known yet.
            MatchStage::DataFollows if is_read => {
                self.count_arrival(matched.source, 0, true);
            }
            MatchStage::DataFollows => {
                self.entries.insert(matched.handle, matched.source);
            }
        }
    }

    /// The data of a match is there, and with it its length.
    fn count_data(&mut self, device: DeviceId, data: &Data) {
        if let (DataTarget::Message(token), Some(_)) = (data.target, data.error) {
            self.awaited.forget(device, token);
        }
        let DataTarget::Entry(handle) = data.target else { return };
        let Some(source) = self.entries.remove(&handle) else { return };
        self.count_arrival(source, data.length, false);
        self.touch(source);
    }

    /// A message of the peer's on its connection.
    fn handle_peer_control(&mut self, path: Path, peer: PeerId, message: &Message<'_>) -> Reaction {
        let now = self.now;
        let row = &mut self.peers[peer];
        (row.heard, row.asked) = (now, None);
        let is_good = match message {
            Message::Fin(fin) => self.handle_fin(peer, fin),
            Message::Control(control) => match control {
                Control::RendezvousDone(id) => self.handle_read(peer, *id, None),
                Control::RendezvousRefused { operation, reason } => {
                    self.handle_read(peer, *operation, Some(*reason))
                }
                Control::MatchAcknowledged(id) => {
                    self.handle_acknowledged(peer, *id, SendFlags::ACKNOWLEDGE_MATCH)
                }
                Control::Delivered(id) => {
                    self.handle_acknowledged(peer, *id, SendFlags::ACKNOWLEDGE_DELIVERY)
                }
                Control::Discarded(id) => self.handle_acknowledged(peer, *id, SendFlags::ALL),
                Control::Credit(more) => self.peers[peer].balance.add(more),
                Control::Goodbye(_) => true,
                Control::RemoteRead(read) => self.handle_remote_read(peer, read),
                Control::RemoteDone { operation, status } => {
                    self.handle_remote_done(peer, *operation, *status)
                }
                Control::Keepalive(keepalive) => {
                    if keepalive.is_answer {
                        self.turn_away_next(peer);
                    } else if !row.is_answering {
                        // One answer is as good as many, for who asks and does not listen.
                        row.is_answering = true;
                        let sequence = keepalive.sequence;
                        self.note(peer, Control::Keepalive(Keepalive { is_answer: true, sequence }));
                    }
                    true
                }
                // Late words of the greeting: an answer that crossed.
                Control::HelloRefused(_) => true,
                Control::Untagged(_)
                | Control::UntaggedRendezvous(_)
                | Control::SegmentFirst(_)
                | Control::SegmentMiddle(_)
                | Control::SegmentLast(_)
                | Control::Hello(_)
                | Control::Challenge(_)
                | Control::Proof(_)
                | Control::RemoteWrite(_)
                | Control::RemoteData(_)
                | Control::RemoteAtomic(_)
                | Control::Connect(_)
                | Control::Reject(_) => false,
            },
            Message::Eager(_) | Message::Rendezvous(_) => false,
        };
        // While the endpoint is being closed answers come to requests that were withdrawn.
        if is_good || self.closing.is_some() { Reaction::Continue } else { self.protocol_error(path) }
    }

    /// The payload of a request with a tag has been read. Every field must be the request's.
    fn handle_fin(&mut self, peer: PeerId, fin: &Fin) -> bool {
        let id = fin.context.operation;
        let Some(operation) = self.operations.get_mut(id).filter(|operation| operation.peer == peer) else {
            return false;
        };
        let Awaits::Read { remote, tag, flags, .. } = operation.awaits else { return false };
        let memory = wire::RemoteMemory { address: remote.address, key: remote.key, length: remote.length };
        let is_it = operation.space == Space::Tagged
            && (fin.tag, fin.rvh, fin.context.flags) == (tag, memory.rvh(), flags);
        is_it && self.handle_read(peer, id, None)
    }

    /// The payload of a request has been read, or could not be.
    fn handle_read(&mut self, peer: PeerId, id: OperationId, refused: Option<RefusedRendezvous>) -> bool {
        let Some(operation) = self.operations.get_mut(id).filter(|operation| operation.peer == peer) else {
            return false;
        };
        let Awaits::Read { device, remote, .. } = operation.awaits else { return false };
        operation.awaits = Awaits::Withdrawal { device, remote };
        if refused.is_some() {
            operation.failure = Some(Failure::ReadFailed);
        }
        self.withdrawals.push(id);
        true
    }

    fn handle_acknowledged(&mut self, peer: PeerId, id: OperationId, what: SendFlags) -> bool {
        let Some(operation) = self.operations.get_mut(id).filter(|operation| operation.peer == peer) else {
            return false;
        };
        let Awaits::Acknowledgement(awaited) = operation.awaits else { return false };
        if !what.contains(awaited) {
            return false;
        }
        operation.awaits = Awaits::Nothing;
        self.end_if_over(id);
        true
    }

    fn handle_sent(&mut self, token: u64, result: Result<(), CloseReason>) {
        let Some(id) = self.operations.of_token(token) else { return };
        let Some(operation) = self.operations.get_mut(id) else { return };
        operation.posted = operation.posted.saturating_sub(1);
        if let Err(reason) = result {
            // Nothing of it went out, and the link goes on.
            if reason == CloseReason::Memory
                && let Some(length) = operation.credit.take()
            {
                self.peers[operation.peer].balance.give_back(length);
            }
            operation.failure.get_or_insert(super::operations::failure_of(&reason));
            if reason == CloseReason::Memory && operation.remote.is_some() {
                return self.leave_stretch_out(id);
            }
            if let Awaits::Read { device, remote, .. } = operation.awaits {
                operation.awaits = Awaits::Withdrawal { device, remote };
                self.withdrawals.push(id);
                return;
            }
        }
        self.end_if_over(id);
    }

    /// Forget a send for which nothing more is to be waited, and tell its end.
    pub(super) fn end_if_over(&mut self, id: OperationId) {
        if !self.operations.get_mut(id).is_some_and(|operation| operation.is_over()) {
            return;
        }
        let Some(operation) = self.operations.remove(id) else { return };
        let done = match &operation.remote {
            None => Completed::Sent,
            Some(Remote::Asked(asked)) => {
                if asked.is_read {
                    Completed::Read
                } else {
                    Completed::Written
                }
            }
            Some(Remote::Served(served)) => {
                self.regions.release(served.region);
                return;
            }
        };
        if operation.is_told {
            let what = operation.failure.map_or(done, Completed::Failed);
            self.complete(operation.context, operation.flags, operation.space, what);
        }
    }

    /// The connection to a peer has ended: what it has not answered fails. Memory that may be read is withdrawn first.
    pub(super) fn fail_operations(&mut self, peer: PeerId, failure: Failure) {
        let lost: Vec<OperationId> = self.operations.of(peer).map(|(id, _)| id).collect();
        // From the oldest on.
        for id in lost.into_iter().rev() {
            let Some(operation) = self.operations.get_mut(id) else { continue };
            match operation.awaits {
                Awaits::Read { device, remote, .. } => {
                    operation.failure = Some(failure);
                    operation.awaits = Awaits::Withdrawal { device, remote };
                    self.withdrawals.push(id);
                }
                // It was answered before the end came.
                Awaits::Withdrawal { .. } => {}
                Awaits::Acknowledgement(_) | Awaits::Nothing | Awaits::Remote => {
                    if operation.awaits == Awaits::Remote {
                        operation.awaits = Awaits::Nothing;
                    }
                    operation.failure = Some(operation.failure.unwrap_or(failure));
                }
            }
            // The link is gone, and with it all that was given to it.
            if let Some(operation) = self.operations.get_mut(id) {
                operation.posted = 0;
            }
            self.end_if_over(id);
        }
    }

    /// The other side broke the protocol.
    pub(super) fn protocol_error(&mut self, path: Path) -> Reaction {
        self.statistics.protocol_errors += 1;
        if let Some(link) = self.links.find_mut(path)
            && link.phase != Phase::Up
        {
            let peer = link.peer;
            link.phase = Phase::Closing;
            if let Some(peer) = peer {
                self.handle_attempt_failed(peer, path, Failure::Protocol);
            }
        }
        Reaction::Close
    }
}
