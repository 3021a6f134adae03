//! Which device a peer's messages come through, and when that may change.
//!
//! Not here: what receives in lists have to do with it (`offload`).

use super::Engine;
use crate::ids::{DeviceId, PeerId, ReceiveId, Source};

/// A peer cannot change its device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{peer:?} comes through {path:?}, and receives that name it are posted or messages of it wait: those first"
)]
pub struct PathInUse {
    /// The peer.
    pub peer: PeerId,
    /// Its path.
    pub path: DeviceId,
}

impl Engine {
    /// A peer's messages come through this device. Until it is said, they may come through any.
    ///
    /// Before a peer changes its device, the owner polls the old one until all that the peer sent there was told:
    /// the engine orders what it hears of.
    ///
    /// # Errors
    /// They come through another, and receives that name the peer are posted, or messages of it are undecided: the
    /// new device could match a later one first. After [`Self::clear_path`] only while [`Self::may_take_path`] says no.
    pub fn set_path(&mut self, peer: PeerId, device: DeviceId) -> Result<(), PathInUse> {
        if let Some(path) = self.offload.path_before(peer).filter(|_| !self.may_take_path(peer, device)) {
            return Err(PathInUse { peer, path });
        }
        if let Some(path) = self.offload.path(peer).filter(|&path| path != device) {
            let names_it = |id: &ReceiveId| {
                self.matcher.posted(*id).is_some_and(|(pattern, _)| pattern.source == Source::Peer(peer))
            };
            if self.waiting.holds_back(peer) || self.matcher.posted_ids().iter().any(names_it) {
                return Err(PathInUse { peer, path });
            }
        }
        self.offload.set_path(peer, Some(device));
        Ok(())
    }

    /// A peer's messages come through no device for now: its connection has ended, and all that came by it was told. They
    /// may come through any device next, so that receives in lists come back which an older one that names the peer
    /// overlaps; until those are back [`Self::set_path`] takes the device before alone.
    pub fn clear_path(&mut self, peer: PeerId) {
        self.offload.clear_path(peer);
    }

    /// Whether [`Self::set_path`] would let the messages of a peer, whose path was cleared or that never had one, come
    /// through this device.
    #[must_use]
    pub fn may_take_path(&self, peer: PeerId, device: DeviceId) -> bool {
        self.offload.path_before(peer).is_none_or(|before| {
            before == device || !self.waiting.holds_back(peer) && self.offload.is_clear(device)
        })
    }
}
