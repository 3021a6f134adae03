//! The side whose memory it is: what comes is placed, what is asked for goes out, and each stretch is answered once.
//!
//! Not here: the side that asks (`asking`), and which memory there is (`regions`).

use std::collections::VecDeque;

use crate::device::transport::{Outgoing, Payload, SendError, Sending};
use crate::ids::{DeviceId, PeerId};
use crate::seam::{Answer, Buffer, Data, DataTarget};
use crate::wire::{
    self, Control, OperationId, RemoteData, RemoteRead, RemoteStatus, RemoteStretch, RemoteWrite,
};

use super::UNANSWERED_MAX;
use super::regions::{Region, RegionTaken, Regions, Wish, Withdrawn};
use crate::endpoint::Endpoint;
use crate::endpoint::core::Core;
use crate::endpoint::interface::{Completed, Space};
use crate::endpoint::operations::{Awaits, Operation, Remote};
use crate::endpoint::peers::State;

/// A piece on its way into memory.
#[derive(Clone, Copy, Debug)]
pub(in crate::endpoint) enum Placing {
    /// Of a read of this side's.
    Read { operation: OperationId },
    /// Of a peer's write.
    Write { peer: PeerId, region: usize, end: Option<End> },
}

/// A stretch that is written when a piece is in place.
#[derive(Clone, Copy, Debug)]
pub(in crate::endpoint) struct End {
    operation: OperationId,
    is_last: bool,
    key: u64,
    length: u64,
    cq_data: Option<u32>,
}

/// A read of a peer's that is being answered.
#[derive(Clone, Copy, Debug)]
pub(in crate::endpoint) struct Served {
    pub(in crate::endpoint) region: usize,
    /// The peer's name for it.
    operation: OperationId,
    is_last: bool,
    /// What is still to go, and where in what the peer reads that begins.
    left: Buffer,
    place: u64,
    /// The stretch.
    stretch: RemoteStretch,
}

/// The answer to a read, in its turn.
#[derive(Clone, Debug)]
pub(in crate::endpoint) enum Due {
    /// Its bytes: the operation here.
    Bytes(OperationId),
    /// What was there before an operation: that of the peer's.
    Value { operation: OperationId, place: u64, bytes: Box<[u8]> },
    /// There are none, and why: the operation of the peer's.
    Nothing(OperationId, RemoteStatus),
}

impl Endpoint {
    /// Let peers access memory. It stays until the region was withdrawn.
    ///
    /// # Errors
    /// Another region has this key.
    pub fn register(&mut self, region: &Region) -> Result<(), RegionTaken> {
        self.core.regions.insert(*region)
    }

    /// No peer may begin to access the region of this key. `None`: nothing is at its memory any more. Else progress, and
    /// ask [`Self::is_in_use`], or [`Self::break_off_users`].
    pub fn withdraw_region(&mut self, key: u64) -> Option<Withdrawn> {
        self.core.regions.withdraw(key)
    }

    /// Whether transports are still at the memory of a region that was withdrawn.
    #[must_use]
    pub fn is_in_use(&self, withdrawn: Withdrawn) -> bool {
        self.core.regions.is_in_use(withdrawn)
    }

    /// End the connections of peers that are still at a region which was withdrawn: its memory is free after the next
    /// progress.
    pub fn break_off_users(&mut self, withdrawn: Withdrawn) {
        if !self.core.regions.is_in_use(withdrawn) {
            return;
        }
        let core = &self.core;
        let writing = core.placings.iter().filter_map(|(_, placing)| match placing {
            Placing::Write { peer, region, .. } if Regions::is(withdrawn, *region) => Some(*peer),
            Placing::Write { .. } | Placing::Read { .. } => None,
        });
        let reading = core.operations.iter().filter_map(|(_, operation)| match &operation.remote {
            Some(Remote::Served(served)) if Regions::is(withdrawn, served.region) => Some(operation.peer),
            Some(Remote::Served(_) | Remote::Asked(_)) | None => None,
        });
        let mut peers: Vec<PeerId> = writing.chain(reading).collect();
        peers.sort_unstable();
        peers.dedup();
        for peer in peers {
            if let State::Connected(path) = self.core.peers[peer].state {
                self.core.close_link(path, false);
                self.core.peers[peer].state = State::Leaving(path);
            }
        }
        self.act();
    }

    /// Answers to peers' reads, as many as there is room for.
    pub(in crate::endpoint) fn serve(&mut self) {
        let mut left: VecDeque<PeerId> = VecDeque::new();
        while let Some(peer) = self.core.serving.pop_front() {
            if self.serve_peer(peer) {
                self.core.peers[peer].remote.is_listed = false;
            } else {
                left.push_back(peer);
            }
        }
        self.core.serving = left;
    }

    /// Whether nothing is left for this peer.
    fn serve_peer(&mut self, peer: PeerId) -> bool {
        loop {
            let row = &mut self.core.peers[peer];
            if row.connected().is_none() {
                return true;
            }
            let Some(due) = row.remote.due.pop_front() else { return true };
            let is_done = match &due {
                Due::Bytes(id) => self.serve_bytes(peer, *id),
                Due::Value { operation, place, bytes } => self.serve_value(peer, *operation, *place, bytes),
                Due::Nothing(operation, status) => self.say_done(peer, *operation, *status),
            };
            if !is_done {
                self.core.peers[peer].remote.due.push_front(due);
                return false;
            }
        }
    }

    /// The bytes of a read. Whether they are out.
    fn serve_bytes(&mut self, peer: PeerId, id: OperationId) -> bool {
        loop {
            let (core, transports) = (&mut self.core, &mut self.transports);
            let token = core.operations.token(id);
            let row = &mut core.peers[peer];
            let (Some((device, link)), limit) = (row.connected(), row.piece_length()) else {
                return true;
            };
            let Some(operation) = core.operations.get_mut(id) else { return true };
            let Some(Remote::Served(served)) = &mut operation.remote else { return true };
            if core.regions.is_withdrawn(served.region) {
                return self.serve_no_more(peer, id, RemoteStatus::NoRegion);
            }
            let length = served.left.length.min(limit);
            let data = RemoteData {
                operation: served.operation,
                place: served.place,
                payload: wire::Payload::new(&[]),
            };
            let message = Outgoing {
                header: &data.header(length).unwrap_or_default(),
                payload: Payload::Memory(Buffer { length, ..served.left }),
                immediate: None,
                more: false,
                context: Some(token),
            };
            let Some(transport) = transports.get_mut(usize::from(device.0)) else { return true };
            match transport.send(link, &message) {
                Ok(Sending::Full) => return false,
                Ok(sending) => {
                    operation.posted += u32::from(sending == Sending::Posted);
                    (served.left, served.place) = (served.left.behind(length), served.place + length);
                    core.statistics.bytes_sent += length;
                    if served.left.length > 0 {
                        continue;
                    }
                    let served = **served;
                    operation.awaits = Awaits::Nothing;
                    core.answered(peer);
                    core.tell_read(peer, served.is_last, &served.stretch);
                    core.end_if_over(id);
                    return true;
                }
                // Its end will be told, and ends what is under way.
                Err(SendError::NoLink(_)) => return true,
                Err(SendError::Memory(_) | SendError::TooLong { .. } | SendError::Malformed) => {
                    return self.serve_no_more(peer, id, RemoteStatus::Failed);
                }
            }
        }
    }

    /// What is left of a read will not go. Whether that was said.
    fn serve_no_more(&mut self, peer: PeerId, id: OperationId, status: RemoteStatus) -> bool {
        let Some(operation) = self.core.operations.get_mut(id) else { return true };
        let Some(Remote::Served(served)) = &operation.remote else { return true };
        let theirs = served.operation;
        if !self.say_done(peer, theirs, status) {
            return false;
        }
        if let Some(operation) = self.core.operations.get_mut(id) {
            operation.awaits = Awaits::Nothing;
        }
        self.core.end_if_over(id);
        true
    }

    /// Answer a read without bytes. Whether there was room for it.
    fn say_done(&mut self, peer: PeerId, operation: OperationId, status: RemoteStatus) -> bool {
        let Some(path) = self.core.peers[peer].connected() else { return true };
        if !self.say(path, &Control::RemoteDone { operation, status }) {
            return false;
        }
        self.core.answered(peer);
        true
    }
}

impl Core {
    /// Something of a peer's has come. False: it was broken off, and nothing of it is heard.
    pub(super) fn hears(&mut self, peer: PeerId) -> bool {
        let now = self.now;
        let row = &mut self.peers[peer];
        (row.heard, row.asked) = (now, None);
        row.connected().is_some()
    }

    /// A piece with its payload: where it goes.
    pub(in crate::endpoint) fn handle_piece(
        &mut self,
        source: PeerId,
        message: &Control<'_>,
        in_hand: bool,
    ) -> Answer {
        if !self.hears(source) {
            return Answer::Discard;
        }
        if let Control::RemoteWrite(write) = message {
            return self.handle_write(source, write, in_hand);
        }
        if let Control::RemoteData(data) = message {
            return self.handle_remote_piece(source, data, in_hand);
        }
        self.break_off(source);
        Answer::Discard
    }

    fn handle_write(&mut self, peer: PeerId, write: &RemoteWrite<'_>, in_hand: bool) -> Answer {
        let RemoteWrite { operation, is_last, stretch, offset, cq_data, payload } = *write;
        let end = write.ends_stretch().then_some(End {
            operation,
            is_last,
            key: stretch.key,
            length: stretch.length,
            cq_data,
        });
        if end.is_some() && !self.count_unanswered(peer) {
            self.break_off(peer);
            return Answer::Discard;
        }
        let (region, buffer) = match self.regions.find(&stretch, Wish::Write) {
            Ok(found) => found,
            Err(status) => {
                if let Some(End { operation, .. }) = end {
                    self.note(peer, Control::RemoteDone { operation, status });
                }
                return Answer::Discard;
            }
        };
        self.statistics.bytes_received += payload.length();
        let buffer = Buffer { length: payload.length(), ..buffer.behind(offset) };
        if in_hand {
            // It is placed before the answer can go out, and before anybody can ask for a completion.
            if let Some(end) = end {
                self.end_stretch(peer, &end);
            }
            return Answer::Accept { buffer, transfer: None };
        }
        self.regions.hold(region);
        let transfer = self.place(Placing::Write { peer, region, end });
        Answer::Accept { buffer, transfer: Some(transfer) }
    }

    /// A piece is in place, or will never be.
    pub(in crate::endpoint) fn handle_placed(&mut self, _device: DeviceId, data: &Data) {
        let DataTarget::Transfer(transfer) = data.target else { return };
        let Some(placing) = self.placings.try_remove(transfer.index as usize) else { return };
        let is_lost = data.error.is_some();
        match placing {
            Placing::Read { operation } => self.handle_piece_placed(operation, is_lost),
            Placing::Write { peer, region, end } => {
                self.regions.release(region);
                if let Some(end) = end.filter(|_| !is_lost) {
                    self.end_stretch(peer, &end);
                }
            }
        }
    }

    /// All of a stretch is written.
    fn end_stretch(&mut self, peer: PeerId, end: &End) {
        let &End { operation, is_last, key, length, cq_data } = end;
        self.note(peer, Control::RemoteDone { operation, status: RemoteStatus::Done });
        if !is_last {
            return;
        }
        self.statistics.written_by_peers += 1;
        if cq_data.is_some() || self.config.remote_events {
            let source = self.peers[peer].address;
            self.complete(0, 0, Space::Untagged, Completed::WrittenByPeer { key, length, cq_data, source });
        }
    }

    fn tell_read(&mut self, peer: PeerId, is_last: bool, stretch: &RemoteStretch) {
        let &RemoteStretch { key, length, .. } = stretch;
        if !is_last {
            return;
        }
        self.statistics.read_by_peers += 1;
        if self.config.remote_events {
            let source = self.peers[peer].address;
            self.complete(0, 0, Space::Untagged, Completed::ReadByPeer { key, length, source });
        }
    }

    /// A peer asks for bytes. False: it asks for more at a time than it may.
    pub(in crate::endpoint) fn handle_remote_read(&mut self, peer: PeerId, read: &RemoteRead) -> bool {
        if !self.count_unanswered(peer) {
            return false;
        }
        let RemoteRead { operation, is_last, stretch, place } = *read;
        let due = match self.regions.find(&stretch, Wish::Read) {
            // Else a peer that asks and asks would keep it open.
            Ok(_) if self.closing.is_some() => Due::Nothing(operation, RemoteStatus::NoRegion),
            Ok(_) if stretch.length == 0 => {
                self.tell_read(peer, is_last, &stretch);
                Due::Nothing(operation, RemoteStatus::Done)
            }
            Ok((region, left)) => {
                let served = Served { region, operation, is_last, left, place, stretch };
                let answer = Operation {
                    is_told: false,
                    awaits: Awaits::Remote,
                    remote: Some(Remote::Served(Box::new(served))),
                    ..Operation::new(peer)
                };
                // There are more numbers than all peers may ask for.
                let Some(id) = self.operations.insert(answer) else { return false };
                self.regions.hold(region);
                Due::Bytes(id)
            }
            Err(status) => Due::Nothing(operation, status),
        };
        self.make_due(peer, due);
        true
    }

    /// An answer goes behind those that are due.
    pub(super) fn make_due(&mut self, peer: PeerId, due: Due) {
        let traffic = &mut self.peers[peer].remote;
        traffic.due.push_back(due);
        if !traffic.is_listed {
            traffic.is_listed = true;
            self.serving.push_back(peer);
        }
    }

    /// One more to answer. False: the peer waits for as many as it may have.
    pub(super) fn count_unanswered(&mut self, peer: PeerId) -> bool {
        let traffic = &mut self.peers[peer].remote;
        traffic.unanswered += 1;
        traffic.unanswered <= UNANSWERED_MAX
    }

    /// One was answered.
    pub(in crate::endpoint) fn answered(&mut self, peer: PeerId) {
        let traffic = &mut self.peers[peer].remote;
        traffic.unanswered = traffic.unanswered.saturating_sub(1);
    }
}
