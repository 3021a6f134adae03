//! What a receive looks for, and what a message shows.

use crate::ids::{GroupId, Ignore, PeerId, Source, Tag};

/// What a receive looks for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Pattern {
    /// The tag; bits under `ignore` do not count.
    pub tag: Tag,
    /// Bits not looked at.
    pub ignore: Ignore,
    /// Whose messages.
    pub source: Source,
}

impl Pattern {
    /// Exactly this tag, from anybody.
    #[must_use]
    pub const fn exact(tag: Tag) -> Self {
        Self { tag, ignore: Ignore::NONE, source: Source::Any }
    }

    /// Whether a receive with this pattern takes that message. `group` is the group that the sender is in.
    ///
    /// `fi_tagged(3)`: `send_tag & ~ignore == recv_tag & ~ignore`, and the source is unspecified or equal.
    #[must_use]
    #[inline]
    pub fn fits(&self, message: &Envelope, group: Option<GroupId>) -> bool {
        (self.tag.0 ^ message.tag.0) & !self.ignore.0 == 0
            && match self.source {
                Source::Any => true,
                Source::Peer(peer) => peer == message.source,
                Source::Group(of) => group == Some(of),
            }
    }

    /// Whether some tag fits both.
    #[must_use]
    #[inline]
    pub const fn overlaps_tag(&self, other: &Self) -> bool {
        (self.tag.0 ^ other.tag.0) & !(self.ignore.0 | other.ignore.0) == 0
    }
}

/// What a message shows: all that it can be matched by.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Envelope {
    /// Its tag.
    pub tag: Tag,
    /// Its sender.
    pub source: PeerId,
}
