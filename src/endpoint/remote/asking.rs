//! The side that asks: pieces and requests on their way out, and what comes back of them.
//!
//! Not here: the side whose memory it is (`serving`).

use crate::device::transport::{Outgoing, Payload, SendError, Sending};
use crate::ids::{PeerId, TransferId};
use crate::seam::{Answer, Segment};
use crate::wire::{self, Control, Message, OperationId, RemoteData, RemoteRead, RemoteStatus, RemoteStretch};

use super::cutting::{Cursor, Piece};
use super::operating::Operands;
use super::serving::Placing;
use super::{Local, RemoteAccess, UNANSWERED_MAX};
use crate::endpoint::core::Core;
use crate::endpoint::interface::{Completed, Failure, SendRefused, Space};
use crate::endpoint::operations::{Awaits, Operation, Remote, memory_of};
use crate::endpoint::peers::Path;
use crate::endpoint::{Endpoint, MESSAGE_MAX};

/// An access that this side asked for, until it is over.
pub(in crate::endpoint) struct Asked {
    pub(in crate::endpoint) is_read: bool,
    path: Path,
    segments: Vec<Segment>,
    stretches: Vec<RemoteStretch>,
    cq_data: Option<u32>,
    /// Of an operation on values.
    operands: Option<Operands>,
    /// What has gone out. `None`: nothing more is to.
    sent: Option<Cursor>,
    /// Of a read: what has come, up to a run; and how much of that run.
    heard: Cursor,
    of_run: u64,
    /// Stretches, of a read runs, that went out whole and are not answered.
    unanswered: u32,
    /// Pieces on their way into memory.
    placing: u32,
}

/// How far an access got.
enum Reached {
    /// All is out.
    End,
    /// There is no room for more now.
    Full,
    /// Nothing more can go.
    Error(SendError),
}

impl Endpoint {
    /// Write to a peer's memory. A completion comes when all of it is there: [`Completed::Written`].
    ///
    /// Writes of one peer's memory take effect in the order of the calls, and before messages that are sent later; reads
    /// that are asked for later see them.
    ///
    /// # Errors
    /// It was not taken; nothing was done, and no completion comes.
    pub fn write(&mut self, access: &RemoteAccess<'_>) -> Result<(), SendRefused> {
        self.ask(access, false, None)
    }

    /// Read a peer's memory, into memory that stays until the completion: [`Completed::Read`].
    ///
    /// # Errors
    /// As of [`Self::write`].
    pub fn read(&mut self, access: &RemoteAccess<'_>) -> Result<(), SendRefused> {
        self.ask(access, true, None)
    }

    pub(super) fn ask(
        &mut self,
        access: &RemoteAccess<'_>,
        is_read: bool,
        operands: Option<Operands>,
    ) -> Result<(), SendRefused> {
        let core = &mut self.core;
        if let Some(error) = &core.failed {
            return Err(SendRefused::Endpoint(error.clone()));
        }
        let Some(peer) = core.peers.at(access.to) else { return Err(core.nobody(access.to)) };
        check(access, is_read, core.config.inject_size)?;
        if core.closing.is_some() {
            return Err(SendRefused::Unreachable(Failure::Lost));
        }
        if access.remote.iter().any(|stretch| stretch.check().is_err()) {
            // No region has what lies behind the last address.
            let what = Completed::Failed(Failure::OutOfBounds);
            core.complete(access.context, access.flags, Space::Untagged, what);
            return Ok(());
        }
        let Some(path) = core.peers[peer].connected() else { return Err(self.connect_first(peer)) };
        if let Some(operands) = &operands
            && operands.length() > core.peers[peer].eager_limit
        {
            let limit = core.peers[peer].eager_limit;
            return Err(SendRefused::TooLong { length: operands.length(), limit });
        }
        if core.has_backlog(peer) {
            self.clear_backlog(peer)?;
        }
        let runs = u32::try_from(access.remote.len() + segments_of(&access.local)).unwrap_or(u32::MAX);
        let core = &mut self.core;
        if core.peers[peer].remote.asked.saturating_add(runs) > UNANSWERED_MAX {
            return self.again();
        }
        let id = core.begin_access(peer, path, access, is_read, operands)?;
        let bytes = if let Local::Copied(bytes) = access.local { Some(bytes) } else { None };
        match self.send_pieces(id, bytes, access.more) {
            Reached::End => {}
            Reached::Full if self.core.has_begun(id) => {
                self.core.keep_rest(id, bytes);
            }
            Reached::Full => {
                self.core.operations.remove(id);
                return self.again();
            }
            Reached::Error(error) if self.core.has_begun(id) => self.core.stop_access(id, &error),
            Reached::Error(error) => {
                self.core.operations.remove(id);
                return match error {
                    SendError::NoLink(_) => self.again(),
                    SendError::TooLong { .. } | SendError::Malformed | SendError::Memory(_) => {
                        let what = Completed::Failed(failure_of(&error));
                        self.core.complete(access.context, access.flags, Space::Untagged, what);
                        Ok(())
                    }
                };
            }
        }
        let statistics = &mut self.core.statistics;
        *if is_read { &mut statistics.remote_reads } else { &mut statistics.remote_writes } += 1;
        Ok(())
    }

    /// What had no room before. Whether none is left.
    pub(in crate::endpoint) fn send_rest_of_access(&mut self, id: OperationId) -> bool {
        match self.send_pieces(id, None, false) {
            Reached::Full => return false,
            Reached::End => {}
            Reached::Error(error) => self.core.stop_access(id, &error),
        }
        if let Some(operation) = self.core.operations.get_mut(id) {
            let traffic = &mut self.core.peers[operation.peer].remote;
            traffic.unsent = traffic.unsent.saturating_sub(1);
        }
        self.core.end_access_if_over(id);
        true
    }

    /// Send what is next of an access until there is no room; from these bytes, if they are not its memory.
    fn send_pieces(&mut self, id: OperationId, bytes: Option<&[u8]>, more: bool) -> Reached {
        loop {
            let (core, transports) = (&mut self.core, &mut self.transports);
            let token = core.operations.token(id);
            let Some(operation) = core.operations.get_mut(id) else { return Reached::End };
            let Some(Remote::Asked(asked)) = &mut operation.remote else { return Reached::End };
            let row = &mut core.peers[operation.peer];
            // Of an operation on values no message is long.
            let limit = if asked.is_read || asked.operands.is_some() { u64::MAX } else { row.piece_length() };
            let next = asked.sent.and_then(|sent| sent.next(&asked.segments, &asked.stretches, limit));
            let Some((piece, behind)) = next else {
                asked.sent = None;
                return Reached::End;
            };
            let Some(transport) = transports.get_mut(usize::from(asked.path.0.0)) else {
                return Reached::Error(SendError::NoLink(asked.path.1));
            };
            let mut header = [0; Message::HEADER_LENGTH_MAX];
            let values;
            let (length, (payload, is_memory)) = if let Some(operands) = &asked.operands {
                let length;
                (length, values) = operands.message(id, &piece, asked.is_read, &mut header);
                (length, (Payload::Copied(&values), false))
            } else {
                (asked.header(id, &piece, &mut header), asked.payload(&piece, bytes))
            };
            let message = Outgoing {
                header: header.get(..length).unwrap_or_default(),
                payload,
                immediate: None,
                more: more && piece.is_last,
                context: is_memory.then_some(token),
            };
            match transport.send(asked.path.1, &message) {
                Ok(Sending::Full) => return Reached::Full,
                Ok(sending) => {
                    asked.sent = Some(behind);
                    operation.posted += u32::from(sending == Sending::Posted && is_memory);
                    if asked.is_read || piece.ends_stretch {
                        asked.unanswered += 1;
                        row.remote.asked += 1;
                    }
                    core.statistics.bytes_sent += if asked.is_read { 0 } else { piece.length };
                }
                Err(error) => return Reached::Error(error),
            }
        }
    }
}

impl Asked {
    /// What goes before the payload of a piece, or asks for a run.
    fn header(&self, operation: OperationId, piece: &Piece, out: &mut [u8]) -> usize {
        let Piece { is_last, stretch, offset, place, .. } = *piece;
        if self.is_read {
            let read = RemoteRead { operation, is_last, stretch: piece.run(), place };
            return Control::RemoteRead(read).encode(out).unwrap_or(0);
        }
        let cq_data = self.cq_data.filter(|_| is_last);
        let payload = wire::Payload::new(&[]);
        let write = wire::RemoteWrite { operation, is_last, stretch, offset, cq_data, payload };
        let Ok(header) = write.header(piece.length) else { return 0 };
        out.get_mut(..header.len()).map_or(0, |place| {
            place.copy_from_slice(&header);
            header.len()
        })
    }

    /// The payload of a piece, and whether that is memory.
    fn payload<'a>(&self, piece: &Piece, bytes: Option<&'a [u8]>) -> (Payload<'a>, bool) {
        if self.is_read || piece.length == 0 {
            return (Payload::Copied(&[]), false);
        }
        match bytes {
            Some(bytes) => {
                let from = usize::try_from(piece.place).unwrap_or(usize::MAX);
                let length = usize::try_from(piece.length).unwrap_or(0);
                (
                    Payload::Copied(
                        bytes.get(from..).and_then(|rest| rest.get(..length)).unwrap_or_default(),
                    ),
                    false,
                )
            }
            None => (Payload::Memory(piece.buffer(&self.segments, 0, piece.length)), true),
        }
    }

    /// The run of a read of which something is to come next, and what is behind it.
    fn awaited(&self) -> Option<(Piece, Cursor)> {
        let is_asked = self.unanswered > 0;
        is_asked.then(|| self.heard.next(&self.segments, &self.stretches, u64::MAX)).flatten()
    }

    /// Whether something of it is still to go out.
    pub(in crate::endpoint) const fn is_going_out(&self) -> bool {
        self.sent.is_some()
    }

    /// Whether nothing more is to go or to come.
    const fn is_over(&self) -> bool {
        self.sent.is_none() && self.unanswered == 0 && self.placing == 0
    }
}

impl Core {
    /// A number for an access.
    fn begin_access(
        &mut self,
        peer: PeerId,
        path: Path,
        access: &RemoteAccess<'_>,
        is_read: bool,
        operands: Option<Operands>,
    ) -> Result<OperationId, SendRefused> {
        let segments = match access.local {
            Local::Memory(segments) => segments.to_vec(),
            // Until it is copied only its length is of use.
            Local::Copied(bytes) => vec![Segment { address: 0, length: bytes.len() as u64, key: 0 }],
        };
        let asked = Asked {
            is_read,
            path,
            segments,
            stretches: access.remote.to_vec(),
            cq_data: access.cq_data,
            operands,
            sent: Some(Cursor::default()),
            heard: Cursor::default(),
            of_run: 0,
            unanswered: 0,
            placing: 0,
        };
        let operation = Operation {
            context: access.context,
            flags: access.flags,
            awaits: Awaits::Remote,
            remote: Some(Remote::Asked(Box::new(asked))),
            ..Operation::new(peer)
        };
        self.operations.insert(operation).ok_or(SendRefused::Again)
    }

    /// Whether something of it is out.
    fn has_begun(&mut self, id: OperationId) -> bool {
        let remote = self.operations.get_mut(id).and_then(|operation| operation.remote.as_ref());
        matches!(remote, Some(Remote::Asked(asked)) if asked.sent != Some(Cursor::default()))
    }

    /// The rest goes later; a copy of it where these bytes are not to stay.
    fn keep_rest(&mut self, id: OperationId, bytes: Option<&[u8]>) {
        let Some(operation) = self.operations.get_mut(id) else { return };
        if let (Some(bytes), Some(Remote::Asked(asked))) = (bytes, &mut operation.remote) {
            let (buffer, copy) = memory_of(&Payload::Copied(bytes));
            asked.segments = vec![Segment { address: buffer.address, length: buffer.length, key: 0 }];
            operation.copy = copy;
        }
        self.peers[operation.peer].remote.unsent += 1;
        self.segmented.push_back(id);
    }

    /// Nothing more of it can go: it ends when what went is answered, or with its link.
    fn stop_access(&mut self, id: OperationId, error: &SendError) {
        let Some(operation) = self.operations.get_mut(id) else { return };
        operation.failure.get_or_insert(failure_of(error));
        let is_lost = matches!(error, SendError::NoLink(_));
        if let Some(Remote::Asked(asked)) = &mut operation.remote
            && !is_lost
        {
            asked.sent = None;
        }
        self.end_access_if_over(id);
    }

    /// A stretch in one piece was left out by the transport: no answer comes to it.
    pub(in crate::endpoint) fn leave_stretch_out(&mut self, id: OperationId) {
        let Some(operation) = self.operations.get_mut(id) else { return };
        if let Some(Remote::Asked(asked)) = &mut operation.remote {
            asked.unanswered = asked.unanswered.saturating_sub(1);
            let traffic = &mut self.peers[operation.peer].remote;
            traffic.asked = traffic.asked.saturating_sub(1);
        }
        self.end_access_if_over(id);
    }

    fn end_access_if_over(&mut self, id: OperationId) {
        let Some(operation) = self.operations.get_mut(id) else { return };
        if let Some(Remote::Asked(asked)) = &operation.remote
            && asked.is_over()
        {
            operation.awaits = Awaits::Nothing;
            self.end_if_over(id);
        }
    }

    /// A piece of what this side reads. What no peer says ends the link.
    pub(in crate::endpoint) fn handle_remote_piece(
        &mut self,
        peer: PeerId,
        data: &RemoteData<'_>,
        in_hand: bool,
    ) -> Answer {
        let id = data.operation;
        let operation = self.operations.get_mut(id).filter(|operation| operation.peer == peer);
        let remote = operation.and_then(|operation| operation.remote.as_mut());
        let Some(Remote::Asked(asked)) = remote else { return self.refuse_piece(peer) };
        let Some((run, behind)) = asked.awaited().filter(|_| asked.is_read) else {
            return self.refuse_piece(peer);
        };
        let (length, from) = (data.payload.length(), asked.of_run);
        if data.place != run.place + from || length > run.length - from {
            return self.refuse_piece(peer);
        }
        let buffer = run.buffer(&asked.segments, from, length);
        asked.of_run += length;
        if asked.of_run == run.length {
            (asked.heard, asked.of_run) = (behind, 0);
            asked.unanswered -= 1;
            let traffic = &mut self.peers[peer].remote;
            traffic.asked = traffic.asked.saturating_sub(1);
        }
        self.statistics.bytes_received += length;
        if in_hand {
            // It is placed before anybody can ask for the completion.
            self.end_access_if_over(id);
            return Answer::Accept { buffer, transfer: None };
        }
        asked.placing += 1;
        let transfer = self.place(Placing::Read { operation: id });
        Answer::Accept { buffer, transfer: Some(transfer) }
    }

    /// Such a piece is in place, or will never be: its link is gone.
    pub(super) fn handle_piece_placed(&mut self, id: OperationId, is_lost: bool) {
        let Some(operation) = self.operations.get_mut(id) else { return };
        if let Some(Remote::Asked(asked)) = &mut operation.remote {
            asked.placing = asked.placing.saturating_sub(1);
        }
        if is_lost {
            operation.failure.get_or_insert(Failure::Lost);
        }
        self.end_access_if_over(id);
    }

    /// What became of a stretch, or of a run. False: no peer says so.
    pub(in crate::endpoint) fn handle_remote_done(
        &mut self,
        peer: PeerId,
        id: OperationId,
        status: RemoteStatus,
    ) -> bool {
        let Some(operation) = self.operations.get_mut(id).filter(|operation| operation.peer == peer) else {
            return false;
        };
        let Some(Remote::Asked(asked)) = &mut operation.remote else { return false };
        if asked.unanswered == 0 {
            return false;
        }
        if asked.is_read {
            let Some((run, behind)) = asked.awaited() else { return false };
            if status == RemoteStatus::Done && run.length > 0 {
                return false;
            }
            (asked.heard, asked.of_run) = (behind, 0);
        }
        asked.unanswered -= 1;
        let failure = match status {
            RemoteStatus::Done => None,
            RemoteStatus::NoRegion => Some(Failure::NoRegion),
            RemoteStatus::OutOfBounds => Some(Failure::OutOfBounds),
            RemoteStatus::NotAllowed => Some(Failure::NotAllowed),
            RemoteStatus::Failed => Some(Failure::ReadFailed),
        };
        operation.failure = operation.failure.or(failure);
        let traffic = &mut self.peers[peer].remote;
        traffic.asked = traffic.asked.saturating_sub(1);
        self.end_access_if_over(id);
        true
    }

    /// The peer sends what nobody asked for.
    #[cold]
    fn refuse_piece(&mut self, peer: PeerId) -> Answer {
        self.break_off(peer);
        Answer::Discard
    }

    /// A name for a piece on its way into memory.
    pub(super) fn place(&mut self, placing: Placing) -> TransferId {
        let index = self.placings.insert(placing);
        TransferId { index: u32::try_from(index).unwrap_or(u32::MAX), generation: 0 }
    }
}

/// Whether it is one that can be asked for at all.
fn check(access: &RemoteAccess<'_>, is_read: bool, inject_size: u64) -> Result<(), SendRefused> {
    let sum = |lengths: &mut dyn Iterator<Item = u64>| lengths.fold(0_u64, u64::saturating_add);
    let there = sum(&mut access.remote.iter().map(|stretch| stretch.length));
    let here = match access.local {
        Local::Copied(bytes) => bytes.len() as u64,
        Local::Memory(segments) => sum(&mut segments.iter().map(|segment| segment.length)),
    };
    let is_copied = matches!(access.local, Local::Copied(_));
    if is_copied && here > inject_size {
        return Err(SendRefused::TooLong { length: here, limit: inject_size });
    }
    if here > MESSAGE_MAX {
        return Err(SendRefused::TooLong { length: here, limit: MESSAGE_MAX });
    }
    if here != there || access.remote.is_empty() || (is_read && (is_copied || access.cq_data.is_some())) {
        return Err(SendRefused::Uneven { here, there });
    }
    Ok(())
}

const fn segments_of(local: &Local<'_>) -> usize {
    match local {
        Local::Copied(_) => 1,
        Local::Memory(segments) => segments.len(),
    }
}

const fn failure_of(error: &SendError) -> Failure {
    match error {
        SendError::NoLink(_) => Failure::Lost,
        SendError::Memory(_) => Failure::Memory,
        SendError::TooLong { .. } | SendError::Malformed => Failure::ReadFailed,
    }
}
