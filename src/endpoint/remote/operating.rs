//! Operations on values of a peer's memory (`fi_atomic(3)`), on both sides.
//!
//! One goes out like a write, or like a read where it fetches, with all its operands in each message. The transport does it
//! where it hears of it, in the order in which accesses were asked for, and what was there is kept until it has gone out.

use crate::atomics::{AtomicOp, AtomicType};
use crate::device::transport::{Outgoing, Payload, Sending};
use crate::ids::PeerId;
use crate::seam::{Buffer, Segment};
use crate::wire::{
    self, Control, Message, OperationId, RemoteAtomic, RemoteData, RemoteStatus, RemoteStretch,
};

use super::cutting::Piece;
use super::regions::Wish;
use super::serving::Due;
use super::{Local, RemoteAccess};
use crate::endpoint::Endpoint;
use crate::endpoint::core::Core;
use crate::endpoint::interface::{Address, Completed, SendRefused, Space};

/// An operation on values of a peer's memory.
#[derive(Clone, Copy, Debug)]
pub struct AtomicAccess<'a> {
    /// Whose memory.
    pub to: Address,
    /// What is done.
    pub op: AtomicOp,
    /// What the values are.
    pub of: AtomicType,
    /// Operands, one behind the other: free when the call returns. Empty for [`AtomicOp::Read`].
    pub operands: &'a [u8],
    /// Values to compare with, as many, where the operation compares; else empty.
    pub compares: &'a [u8],
    /// Where what was there goes: memory that stays until the completion, whole values in each segment. `None`: it is not
    /// wanted.
    pub fetched: Option<&'a [Segment]>,
    /// Which values: one stretch at least, whole values in each, [`Endpoint::ATOMIC_MAX`] bytes in all at most.
    pub remote: &'a [RemoteStretch],
    /// More will follow at once (`FI_MORE`).
    pub more: bool,
    /// Comes back with the completion.
    pub context: u64,
    /// Comes back with the completion, and says nothing here.
    pub flags: u32,
}

/// What of an operation goes with each message.
pub(super) struct Operands {
    op: AtomicOp,
    of: AtomicType,
    operands: Vec<u8>,
    compares: Vec<u8>,
}

impl Endpoint {
    /// Bytes of values in one operation at most.
    pub const ATOMIC_MAX: u64 = RemoteAtomic::STRETCH_MAX;

    /// Do an operation on each value of a peer's memory. A completion comes when it is done: [`Completed::Written`], or
    /// [`Completed::Read`] where what was there is fetched.
    ///
    /// Each is whole before another of this process's begins, and takes effect in the order of calls, beside writes.
    ///
    /// # Errors
    /// It was not taken; nothing was done, and no completion comes.
    pub fn operate(&mut self, access: &AtomicAccess<'_>) -> Result<(), SendRefused> {
        let length = check(access)?;
        let virtual_segment = [Segment { address: 0, length, key: 0 }];
        let AtomicAccess { to, op, of, operands, compares, fetched, remote, more, context, flags } = *access;
        let local = Local::Memory(fetched.unwrap_or(&virtual_segment));
        let request = RemoteAccess { to, local, remote, cq_data: None, more, context, flags };
        let operands = Operands { op, of, operands: operands.to_vec(), compares: compares.to_vec() };
        self.ask(&request, fetched.is_some(), Some(operands))
    }

    /// What was there goes back to who asked. Whether it is out.
    pub(super) fn serve_value(
        &mut self,
        peer: PeerId,
        operation: OperationId,
        place: u64,
        bytes: &[u8],
    ) -> bool {
        let Some((device, link)) = self.core.peers[peer].connected() else { return true };
        let data = RemoteData { operation, place, payload: wire::Payload::new(&[]) };
        let Ok(header) = data.header(bytes.len() as u64) else { return true };
        let payload = Payload::Copied(bytes);
        let message = Outgoing { header: &header, payload, immediate: None, more: false, context: None };
        let Some(transport) = self.transports.get_mut(usize::from(device.0)) else { return true };
        if matches!(transport.send(link, &message), Ok(Sending::Full)) {
            return false;
        }
        self.core.statistics.bytes_sent += bytes.len() as u64;
        self.core.answered(peer);
        true
    }
}

impl Operands {
    /// Bytes that go with it.
    pub(super) const fn length(&self) -> u64 {
        (self.operands.len() + self.compares.len()) as u64
    }

    /// The message of a run: what goes before its operands, and those.
    pub(super) fn message(
        &self,
        operation: OperationId,
        piece: &Piece,
        fetches: bool,
        out: &mut [u8],
    ) -> (usize, Vec<u8>) {
        let (from, length) = (usize::try_from(piece.place), usize::try_from(piece.length));
        let range = from.unwrap_or(0)..from.unwrap_or(0).saturating_add(length.unwrap_or(0));
        let operands = self.operands.get(range.clone()).unwrap_or_default();
        let compares = self.compares.get(range).unwrap_or_default();
        let atomic = RemoteAtomic {
            operation,
            is_last: piece.is_last,
            fetches,
            is_little: cfg!(target_endian = "little"),
            stretch: piece.run(),
            place: if fetches { piece.place } else { 0 },
            op: self.op,
            of: self.of,
            payload: wire::Payload::new(&[]),
        };
        let header = atomic.header().unwrap_or([0; RemoteAtomic::HEADER_LENGTH]);
        let length = out.get_mut(..header.len()).map_or(0, |place| {
            place.copy_from_slice(&header);
            header.len()
        });
        (length, [operands, compares].concat())
    }
}

impl Core {
    /// A peer wants an operation done: where, if it is to be.
    pub(in crate::endpoint) fn handle_atomic(
        &mut self,
        peer: PeerId,
        atomic: &RemoteAtomic<'_>,
    ) -> Option<Buffer> {
        if !self.hears(peer) {
            return None;
        }
        if !self.count_unanswered(peer) {
            self.break_off(peer);
            return None;
        }
        let found = wishes(atomic).iter().try_fold(None, |_, wish| {
            self.regions.find(&atomic.stretch, *wish).map(|(_, buffer)| Some(buffer))
        });
        match found {
            // Else a peer that asks and asks would keep it open.
            Ok(_) if self.closing.is_some() => self.answer_atomic(peer, atomic, RemoteStatus::NoRegion),
            Ok(buffer) => return buffer,
            Err(status) => self.answer_atomic(peer, atomic, status),
        }
        None
    }

    /// It is done.
    pub(in crate::endpoint) fn handle_atomic_done(
        &mut self,
        peer: PeerId,
        atomic: &RemoteAtomic<'_>,
        before: &[u8],
    ) {
        let RemoteAtomic { operation, place, stretch: RemoteStretch { key, length, .. }, .. } = *atomic;
        self.statistics.bytes_received += atomic.payload.length();
        if before.len() as u64 != length {
            // The memory cannot be followed by this transport.
            return self.answer_atomic(peer, atomic, RemoteStatus::Failed);
        }
        if atomic.fetches {
            self.make_due(peer, Due::Value { operation, place, bytes: before.into() });
        } else {
            self.answer_atomic(peer, atomic, RemoteStatus::Done);
        }
        if !atomic.is_last {
            return;
        }
        let is_read = atomic.op == AtomicOp::Read;
        let statistics = &mut self.statistics;
        *if is_read { &mut statistics.read_by_peers } else { &mut statistics.written_by_peers } += 1;
        if self.config.remote_events {
            let source = self.peers[peer].address;
            self.complete(0, 0, Space::Untagged, Completed::OperatedByPeer { key, length, is_read, source });
        }
    }

    /// Nothing comes back but a word: behind what is due before it where something would.
    fn answer_atomic(&mut self, peer: PeerId, atomic: &RemoteAtomic<'_>, status: RemoteStatus) {
        let operation = atomic.operation;
        if atomic.fetches {
            self.make_due(peer, Due::Nothing(operation, status));
        } else {
            self.note(peer, Control::RemoteDone { operation, status });
        }
    }
}

/// What a region must allow.
const fn wishes(atomic: &RemoteAtomic<'_>) -> &'static [Wish] {
    match (atomic.op, atomic.fetches) {
        (AtomicOp::Read, _) => &[Wish::Read],
        (_, true) => &[Wish::Read, Wish::Write],
        (_, false) => &[Wish::Write],
    }
}

/// Whether it can be asked for at all: how many bytes of values it is.
fn check(access: &AtomicAccess<'_>) -> Result<u64, SendRefused> {
    let AtomicAccess { op, of, operands, compares, fetched, remote, .. } = *access;
    let size = of.size() as u64;
    if !op.can_be_asked(of, fetched.is_some()) {
        return Err(SendRefused::NoOperation);
    }
    let mut lengths = remote.iter().map(|stretch| stretch.length);
    let there = remote.iter().fold(0_u64, |sum, stretch| sum.saturating_add(stretch.length));
    if there > Endpoint::ATOMIC_MAX {
        return Err(SendRefused::TooLong { length: there, limit: Endpoint::ATOMIC_MAX });
    }
    let is_whole = |length: u64| length > 0 && length.is_multiple_of(size);
    let given = if op.operands() == 0 { 0 } else { there };
    let compared = if op.compares() { there } else { 0 };
    let to = fetched
        .map_or(there, |segments| segments.iter().fold(0_u64, |sum, it| sum.saturating_add(it.length)));
    let is_even = !remote.is_empty()
        && lengths.all(is_whole)
        && fetched.is_none_or(|segments| segments.iter().all(|segment| is_whole(segment.length)))
        && (operands.len() as u64, compares.len() as u64, to) == (given, compared, there);
    if is_even { Ok(there) } else { Err(SendRefused::Uneven { here: operands.len() as u64, there }) }
}

const _: () =
    assert!(RemoteAtomic::HEADER_LENGTH <= Message::HEADER_LENGTH_MAX, "it has room where headers are made");
