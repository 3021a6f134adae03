//! Pieces of remote memory access in the simulated transport, and to whom what is told.

use super::arriving::Held;
use super::transport::SimTransport;
use crate::device::transport::Ear;
use crate::ids::{DeviceId, LinkId, PeerId};
use crate::seam::{Answer, Event};
use crate::wire::{self, Control, Message};

/// Of what something is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Of {
    Tagged,
    Untagged,
    Remote,
}

impl From<bool> for Of {
    fn from(tagged: bool) -> Self {
        if tagged { Self::Tagged } else { Self::Untagged }
    }
}

pub(super) fn tell(ear: &mut dyn Ear, device: DeviceId, of: impl Into<Of>, event: &Event) -> Answer {
    match (of.into(), event) {
        (Of::Tagged, _) => ear.handle_event(device, event),
        (Of::Untagged, _) => ear.handle_untagged_event(device, event),
        (Of::Remote, Event::Data(data)) => {
            ear.handle_remote_data(device, data);
            Answer::Hold
        }
        (Of::Remote, other) => panic!("{other:?} of remote memory access"),
    }
}

impl SimTransport {
    /// Whether the payload comes later this time.
    pub(super) fn is_split(&self) -> bool {
        let mut world = self.world.lock();
        let percent = world.weather.split;
        world.random.chance(percent)
    }

    /// A message whose payload comes alone, behind its header.
    fn hold_partial(&mut self, link: LinkId, held: Held, payload: Vec<u8>) {
        self.made += 1;
        self.messages.insert(self.made, held);
        self.links[link.index as usize].partial = Some((self.made, payload));
    }

    /// An operation on values, all of it.
    pub(super) fn handle_atomic(&mut self, peer: PeerId, message: &[u8], ear: &mut dyn Ear) {
        let Ok(Message::Control(Control::RemoteAtomic(atomic))) = wire::decode(message) else {
            panic!("an operation that is none: {message:?}");
        };
        let Some(buffer) = ear.handle_remote_atomic(self.device, peer, &atomic) else { return };
        assert_eq!(
            (buffer.length, atomic.is_little),
            (atomic.stretch.length, cfg!(target_endian = "little"))
        );
        let before = self.world.lock().read(buffer.address, buffer.length);
        let (operands, compares) =
            atomic.payload.arrived().split_at(before.len().min(atomic.payload.arrived().len()));
        let size = atomic.of.size();
        let value =
            |values: &[u8], at: usize| values.get(at..at + size).map_or(vec![0; size], <[u8]>::to_vec);
        let mut after = before.clone();
        for (index, there) in after.chunks_exact_mut(size).enumerate() {
            let at = index * size;
            atomic.op.apply(atomic.of, there, &value(operands, at), &value(compares, at));
        }
        self.world.lock().write(buffer.address, &after);
        ear.handle_remote_atomic_done(self.device, peer, &atomic, &before);
    }

    /// A piece with its payload, which may come later.
    pub(super) fn handle_piece(
        &mut self,
        link: LinkId,
        peer: PeerId,
        control: &Control<'_>,
        payload: Vec<u8>,
        ear: &mut dyn Ear,
    ) {
        let in_hand = payload.is_empty() || !self.is_split();
        match ear.handle_remote(self.device, peer, control, in_hand) {
            Answer::Accept { buffer, .. } if in_hand => {
                assert_eq!(buffer.length, payload.len() as u64);
                self.world.lock().write(buffer.address, &payload);
            }
            Answer::Accept { buffer, transfer: Some(transfer) } => {
                let held = Held {
                    link: link.index,
                    peer,
                    of: Of::Remote,
                    length: payload.len() as u64,
                    bytes: None,
                    so_far: Vec::new(),
                    request: None,
                    answer: Some((buffer, Some(transfer))),
                    discarded: false,
                };
                self.hold_partial(link, held, payload);
            }
            Answer::Accept { transfer: None, .. } | Answer::Discard => {}
            Answer::Hold => panic!("a piece is never held"),
        }
    }
}
