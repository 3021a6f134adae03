//! Telling an ear, one thing after the other, and what waits to be told.

use std::collections::VecDeque;

use crate::device::transport::{Ear, Notice, Reaction};
use crate::ids::{DeviceId, LinkId, MessageToken, PeerId, TransferId};
use crate::seam::{Answer, Arrival, Buffer, Data, DataError, DataTarget, Event};
use crate::wire::{Control, RemoteAtomic};

/// Which kind of messages: of two each has its engine, and those of remote memory access match nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(in crate::device) enum Space {
    Tagged,
    Untagged,
    Remote,
}

/// An ear, and how much it was told.
pub(in crate::device) struct Teller<'a> {
    ear: &'a mut dyn Ear,
    device: DeviceId,
    told: usize,
    max: usize,
}

impl<'a> Teller<'a> {
    pub(in crate::device) fn new(ear: &'a mut dyn Ear, device: DeviceId, max: usize) -> Self {
        Self { ear, device, told: 0, max }
    }

    pub(in crate::device) const fn told(&self) -> usize {
        self.told
    }

    /// Whether it was told as much as it wanted.
    pub(in crate::device) const fn is_full(&self) -> bool {
        self.told >= self.max
    }

    /// Whether messages of this kind may come in segments.
    pub(in crate::device) fn takes_segments(&self, space: Space) -> bool {
        space == Space::Untagged || self.ear.takes_segments_with_a_tag()
    }

    /// The ear itself, for whoever counts what is told.
    pub(in crate::device) fn ear(&mut self) -> &mut dyn Ear {
        self.ear
    }

    /// So much was told by others.
    pub(in crate::device) const fn count(&mut self, told: usize) {
        self.told += told;
    }

    pub(in crate::device) fn event(&mut self, space: Space, event: &Event) -> Answer {
        self.told += 1;
        match space {
            Space::Tagged => self.ear.handle_event(self.device, event),
            Space::Untagged => self.ear.handle_untagged_event(self.device, event),
            Space::Remote => {
                if let Event::Data(data) = event {
                    self.ear.handle_remote_data(self.device, data);
                }
                Answer::Hold
            }
        }
    }

    pub(in crate::device) fn arrived(&mut self, space: Space, arrival: &Arrival) -> Answer {
        self.event(space, &Event::Arrived(*arrival))
    }

    pub(in crate::device) fn remote(
        &mut self,
        source: PeerId,
        message: &Control<'_>,
        in_hand: bool,
    ) -> Answer {
        self.told += 1;
        self.ear.handle_remote(self.device, source, message, in_hand)
    }

    pub(in crate::device) fn atomic(&mut self, source: PeerId, atomic: &RemoteAtomic<'_>) -> Option<Buffer> {
        self.told += 1;
        self.ear.handle_remote_atomic(self.device, source, atomic)
    }

    pub(in crate::device) fn atomic_done(
        &mut self,
        source: PeerId,
        atomic: &RemoteAtomic<'_>,
        before: &[u8],
    ) {
        self.ear.handle_remote_atomic_done(self.device, source, atomic, before);
    }

    pub(in crate::device) fn control(&mut self, link: LinkId, message: &[u8]) -> Reaction {
        self.told += 1;
        self.ear.handle_control(self.device, link, message)
    }

    pub(in crate::device) fn notice(&mut self, notice: Notice) {
        self.told += 1;
        self.ear.handle_notice(self.device, notice);
    }

    /// All that waits to be told, since something behind it is told next.
    pub(in crate::device) fn tell_all(&mut self, pending: &mut Pending) {
        let max = std::mem::replace(&mut self.max, usize::MAX);
        self.tell(pending);
        self.max = max;
    }

    /// What waits to be told, as much of it as is wanted.
    #[inline]
    pub(in crate::device) fn tell(&mut self, pending: &mut Pending) {
        if !pending.is_empty() {
            self.tell_pending(pending);
        }
    }

    fn tell_pending(&mut self, pending: &mut Pending) {
        while !self.is_full() {
            match pending.queue.pop_front() {
                Some(Told::Event(space, event)) => {
                    self.event(space, &event);
                }
                Some(Told::PathLost(peer)) => {
                    let event = Event::PathLost { peer };
                    self.event(Space::Tagged, &event);
                    self.event(Space::Untagged, &event);
                }
                Some(Told::Notice(notice)) => self.notice(notice),
                None => return,
            }
        }
    }
}

/// What waits to be told, in order.
#[derive(Debug, Default)]
pub(in crate::device) struct Pending {
    queue: VecDeque<Told>,
}

/// One thing to tell.
#[derive(Debug)]
pub(in crate::device) enum Told {
    Event(Space, Event),
    PathLost(PeerId),
    Notice(Notice),
}

impl Pending {
    #[inline]
    pub(in crate::device) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(in crate::device) fn notice(&mut self, notice: Notice) {
        self.queue.push_back(Told::Notice(notice));
    }

    pub(in crate::device) fn path_lost(&mut self, peer: PeerId) {
        self.queue.push_back(Told::PathLost(peer));
    }

    /// The data of a transfer is there, or will never be.
    pub(in crate::device) fn data(
        &mut self,
        space: Space,
        transfer: TransferId,
        length: u64,
        error: Option<DataError>,
    ) {
        self.queue.push_back(Told::Event(space, data(transfer, length, error)));
    }

    /// The data of a transfer will never be there: its path is lost.
    pub(in crate::device) fn lost(&mut self, space: Space, transfer: TransferId, length: u64) {
        self.data(space, transfer, length, Some(DataError::PathLost));
    }

    /// A message that is held is lost.
    pub(in crate::device) fn message_lost(&mut self, space: Space, message: MessageToken, length: u64) {
        let (target, error) = (DataTarget::Message(message), Some(DataError::PathLost));
        let data = Data { target, length, immediate: None, error };
        self.queue.push_back(Told::Event(space, Event::Data(data)));
    }

    /// A message was answered whose loss has not been told yet: then it is told of the transfer, if there is one.
    pub(in crate::device) fn answered(&mut self, message: MessageToken, transfer: Option<TransferId>) {
        let is_it = |told: &Told| matches!(told, Told::Event(_, Event::Data(data)) if data.target == DataTarget::Message(message));
        let Some(place) = self.queue.iter().position(is_it) else { return };
        match (transfer, self.queue.get_mut(place)) {
            (Some(transfer), Some(Told::Event(_, Event::Data(data)))) => {
                data.target = DataTarget::Transfer(transfer);
            }
            _ => drop(self.queue.remove(place)),
        }
    }
}

/// The data of a transfer.
pub(in crate::device) fn data(transfer: TransferId, length: u64, error: Option<DataError>) -> Event {
    Event::Data(Data { target: DataTarget::Transfer(transfer), length, immediate: None, error })
}
