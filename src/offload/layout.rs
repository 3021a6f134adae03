//! Which peer a tag names, where the user's tag layout says so; and which device a peer's messages come through.
//!
//! A directed receive may go to a NIC only where the source can be read from the tag (rule 1): the NIC looks at
//! nothing else. The layout is the user's promise; a match that breaks it is reported.

use std::collections::HashMap;

use crate::ids::{DeviceId, PeerId, Source};
use crate::matching::Pattern;

/// Which bits of a tag name its sender.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TagLayout {
    /// Bits that hold the sender's name. The same value there means the same sender, for every peer that was named.
    pub source_bits: u64,
}

/// A peer cannot be named so.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// The name has bits where the layout has none for names.
    #[error("{peer:?} cannot be named {bits:#x}: names have the bits {source_bits:#x} of a tag")]
    OutsideLayout {
        /// The peer.
        peer: PeerId,
        /// Its name.
        bits: u64,
        /// See [`TagLayout::source_bits`].
        source_bits: u64,
    },
    /// The name is another's.
    #[error("{peer:?} cannot be named {bits:#x}: that is {by:?}")]
    Taken {
        /// The peer.
        peer: PeerId,
        /// Its name.
        bits: u64,
        /// Whose name it is.
        by: PeerId,
    },
}

/// What is known of the peers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Peers {
    layout: Option<TagLayout>,
    paths: Vec<Option<DeviceId>>,
    /// Of those whose path was cleared, which it was.
    before: HashMap<PeerId, DeviceId>,
    names: HashMap<u64, PeerId>,
    named: Vec<Option<u64>>,
}

/// What the tag and source of a receive say about where its messages come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// Anybody.
    Anybody,
    /// One peer, and the tag says so as well.
    InTag(PeerId),
    /// Peers that the tag does not tell apart from others.
    NotInTag,
}

impl Peers {
    pub(crate) fn new(layout: Option<TagLayout>) -> Self {
        Self { layout, ..Self::default() }
    }

    /// The bits of a tag that name this peer.
    pub(crate) fn name(&mut self, peer: PeerId, bits: u64) -> Result<(), NameError> {
        let Some(TagLayout { source_bits }) = self.layout else { return Ok(()) };
        if bits & !source_bits != 0 {
            return Err(NameError::OutsideLayout { peer, bits, source_bits });
        }
        if let Some(&by) = self.names.get(&bits).filter(|&&by| by != peer) {
            return Err(NameError::Taken { peer, bits, by });
        }
        let at = peer.0 as usize;
        if self.named.len() <= at {
            self.named.resize(at + 1, None);
        }
        if let Some(before) = self.named[at].replace(bits) {
            self.names.remove(&before);
        }
        self.names.insert(bits, peer);
        Ok(())
    }

    pub(crate) fn path(&self, peer: PeerId) -> Option<DeviceId> {
        self.paths.get(peer.0 as usize).copied().flatten()
    }

    pub(crate) fn set_path(&mut self, peer: PeerId, device: Option<DeviceId>) {
        let at = peer.0 as usize;
        if self.paths.len() <= at {
            self.paths.resize(at + 1, None);
        }
        self.paths[at] = device;
        self.before.remove(&peer);
    }

    /// It has none for now. Whether it had one.
    pub(crate) fn clear_path(&mut self, peer: PeerId) -> bool {
        let path = self.paths.get_mut(peer.0 as usize).and_then(Option::take);
        if let Some(path) = path {
            self.before.insert(peer, path);
        }
        path.is_some()
    }

    /// The path that was cleared.
    pub(crate) fn path_before(&self, peer: PeerId) -> Option<DeviceId> {
        self.before.get(&peer).copied()
    }

    /// Its number will be dealt again: nothing is known of the next.
    pub(crate) fn forget(&mut self, peer: PeerId) {
        let at = peer.0 as usize;
        if let Some(path) = self.paths.get_mut(at) {
            *path = None;
        }
        self.before.remove(&peer);
        if let Some(name) = self.named.get_mut(at).and_then(Option::take) {
            self.names.remove(&name);
        }
    }

    /// Whether a message that fits may come through the device.
    pub(crate) fn may_come_through(&self, pattern: &Pattern, device: DeviceId) -> bool {
        match pattern.source {
            Source::Peer(peer) => self.path(peer).is_none_or(|path| path == device),
            Source::Any | Source::Group(_) => true,
        }
    }

    /// Whether [`Self::origin`] is anybody, which needs no layout to be known.
    #[inline(always)]
    pub(crate) fn is_anybody(&self, pattern: &Pattern) -> bool {
        pattern.source == Source::Any && self.has_no_layout()
    }

    /// Whether no tag names a sender.
    #[inline(always)]
    pub(crate) fn has_no_layout(&self) -> bool {
        self.layout.is_none()
    }

    /// Where the messages of a receive come from.
    pub(crate) fn origin(&self, pattern: &Pattern) -> Origin {
        let in_tag = self.layout.filter(|layout| pattern.ignore.0 & layout.source_bits == 0);
        match (pattern.source, in_tag) {
            (Source::Any, None) => Origin::Anybody,
            (Source::Any, Some(layout)) => self
                .names
                .get(&(pattern.tag.0 & layout.source_bits))
                .map_or(Origin::Anybody, |&peer| Origin::InTag(peer)),
            (Source::Peer(peer), Some(layout)) => {
                let name = self.named.get(peer.0 as usize).copied().flatten();
                let is_it = name == Some(pattern.tag.0 & layout.source_bits)
                    && self.names.get(&(pattern.tag.0 & layout.source_bits)) == Some(&peer);
                if is_it { Origin::InTag(peer) } else { Origin::NotInTag }
            }
            (Source::Peer(_), None) | (Source::Group(_), _) => Origin::NotInTag,
        }
    }
}
