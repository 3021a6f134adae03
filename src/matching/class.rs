//! A class: all patterns with the same mask and the same kind of source, which one index serves.
//!
//! Not here: what a class holds. Posted receives are in exactly one class, messages in every live one.

use super::fifo::{Link, Links, Unlinked, unlink};
use super::hash::Hasher;
use super::pattern::Pattern;
use super::table::{Place, Table};
use crate::ids::{GroupId, Ignore, PeerId, Source, Tag};

/// What kind of source a receive names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SourceKind {
    /// Anybody.
    Any,
    /// One peer.
    Peer,
    /// A group of peers.
    Group,
}

impl SourceKind {
    /// Whether two sources are the same to a receive of this kind.
    #[inline]
    pub(super) fn are_same(self, one: u32, other: u32, groups: &Groups) -> bool {
        match self {
            Self::Any => true,
            Self::Peer => one == other,
            Self::Group => groups.key(one) == groups.key(other),
        }
    }
}

impl From<Source> for SourceKind {
    #[inline]
    fn from(source: Source) -> Self {
        match source {
            Source::Any => Self::Any,
            Source::Peer(_) => Self::Peer,
            Source::Group(_) => Self::Group,
        }
    }
}

/// What a receive looks for, as lists keep it.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub(super) tag: u64,
    pub(super) mask: u64,
    /// All ones if the source is a peer, else zero.
    pub(super) source_mask: u32,
    /// Peer or group, or zero.
    pub(super) source: u32,
    pub(super) is_group: bool,
}

impl Wanted {
    /// Budget: 8 instructions.
    #[inline(always)]
    pub(super) fn new(pattern: &Pattern) -> Self {
        let (source_mask, source, is_group) = match pattern.source {
            Source::Any => (0, 0, false),
            Source::Peer(PeerId(peer)) => (u32::MAX, peer, false),
            Source::Group(GroupId(group)) => (0, group, true),
        };
        Self { tag: pattern.tag.0, mask: pattern.ignore.mask(), source_mask, source, is_group }
    }

    /// The same, but none if the source is a group.
    #[inline(always)]
    pub(super) fn without_group(pattern: &Pattern) -> Option<Self> {
        let (source_mask, source) = match pattern.source {
            Source::Any => (0, 0),
            Source::Peer(PeerId(peer)) => (u32::MAX, peer),
            Source::Group(_) => return None,
        };
        Some(Self { tag: pattern.tag.0, mask: pattern.ignore.mask(), source_mask, source, is_group: false })
    }

    /// Whether a message fits, its group aside. Budget: 8 instructions, 4 if the tag differs.
    #[inline(always)]
    pub(super) const fn fits(&self, tag: u64, source: u32) -> bool {
        (self.tag ^ tag) & self.mask == 0 && (self.source ^ source) & self.source_mask == 0
    }

    #[inline]
    pub(super) const fn kind(&self) -> SourceKind {
        if self.source_mask != 0 {
            SourceKind::Peer
        } else if self.is_group {
            SourceKind::Group
        } else {
            SourceKind::Any
        }
    }

    #[inline]
    pub(super) const fn key(&self) -> Key {
        Key { tag: self.tag & self.mask, source: self.source as u64 + self.is_group as u64 }
    }

    pub(super) const fn pattern(&self) -> Pattern {
        let source = match self.kind() {
            SourceKind::Peer => Source::Peer(PeerId(self.source)),
            SourceKind::Group => Source::Group(GroupId(self.source)),
            SourceKind::Any => Source::Any,
        };
        Pattern { tag: Tag(self.tag), ignore: Ignore(!self.mask), source }
    }
}

/// What tells the keys of one class apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Key {
    /// The tag under the class's mask.
    pub(super) tag: u64,
    /// The peer, one more than the group (0: in none), or 0.
    pub(super) source: u64,
}

/// One class and its index.
#[derive(Clone)]
pub(super) struct Class {
    pub(super) mask: u64,
    pub(super) kind: SourceKind,
    /// All ones if the source is a peer, else zero.
    source_mask: u32,
    /// The same, but [`NOBODY`] if the source is a group or the class is dead.
    same: u32,
    /// Built before its first use: kept for good.
    pub(super) is_declared: bool,
    /// Whether the other fields mean anything; a dead class keeps its memory for the next.
    pub(super) is_live: bool,
    /// When it was last used, by the list's own count.
    pub(super) used_at: u64,
    pub(super) table: Table,
}

impl Class {
    pub(super) const fn new(mask: u64, kind: SourceKind) -> Self {
        Self {
            mask,
            kind,
            source_mask: source_mask(kind),
            same: same(kind),
            is_declared: false,
            is_live: true,
            used_at: 0,
            table: Table::new(),
        }
    }

    /// Give this class's memory to another.
    pub(super) fn become_class(&mut self, mask: u64, kind: SourceKind) {
        self.table.clear();
        (self.mask, self.kind, self.source_mask) = (mask, kind, source_mask(kind));
        (self.same, self.is_declared, self.is_live, self.used_at) = (same(kind), false, true, 0);
    }

    /// Give its keys up, and keep its memory.
    pub(super) fn die(&mut self) {
        self.table.clear();
        (self.same, self.is_live) = (NOBODY, false);
    }

    /// As [`Self::is_for`], but never if a group is wanted. Budget: 4 instructions.
    #[inline(always)]
    pub(super) const fn is_for_same(&self, wanted: &Wanted) -> bool {
        self.mask == wanted.mask && self.same == wanted.source_mask && !wanted.is_group
    }

    #[inline]
    pub(super) fn is_for(&self, mask: u64, kind: SourceKind) -> bool {
        self.mask == mask && self.kind == kind && self.is_live
    }

    /// The key that a message has in this class.
    #[inline]
    pub(super) fn key_of(&self, tag: u64, source: u32, groups: &Groups) -> Key {
        let source = if self.kind == SourceKind::Group {
            groups.key(source)
        } else {
            u64::from(source & self.source_mask)
        };
        Key { tag: tag & self.mask, source }
    }

    /// The same, if the source is no group.
    #[inline(always)]
    pub(super) const fn key_without_group(&self, tag: u64, source: u32) -> Key {
        Key { tag: tag & self.mask, source: (source & self.source_mask) as u64 }
    }

    /// Take the first entry of a key out, known to be at `place`.
    #[inline(always)]
    pub(super) fn remove_first(&mut self, fragment: u32, place: Place, link: Link, links: &mut impl Links) {
        match unlink(links, place.slot, link) {
            Unlinked::Last => self.table.remove(fragment, place),
            Unlinked::Head(next) => self.table.replace(place, next),
            Unlinked::Inner => debug_assert!(false, "the table names a first entry"),
        }
    }

    /// Take an entry out, wherever in its key it is. `fragment` is asked for only if the table must hear of it.
    #[inline]
    pub(super) fn remove(
        &mut self,
        slot: u32,
        link: Link,
        links: &mut impl Links,
        fragment: impl FnOnce() -> u32,
    ) {
        let unlinked = unlink(links, slot, link);
        if unlinked == Unlinked::Inner {
            return;
        }
        let fragment = fragment();
        // Nearly always it is the only entry of its key, and in the key's own line.
        if unlinked == Unlinked::Last
            && let Ok(Some(cell)) = self.table.cell(fragment)
            && cell.slot == slot
        {
            return cell.clear();
        }
        let Some(place) = self.table.place_of(fragment, slot) else {
            debug_assert!(false, "a first entry is in the table");
            return;
        };
        match unlinked {
            Unlinked::Head(next) => self.table.replace(place, next),
            Unlinked::Last | Unlinked::Inner => self.table.remove(fragment, place),
        }
    }
}

const fn source_mask(kind: SourceKind) -> u32 {
    if matches!(kind, SourceKind::Peer) { u32::MAX } else { 0 }
}

const fn same(kind: SourceKind) -> u32 {
    if matches!(kind, SourceKind::Group) { NOBODY } else { source_mask(kind) }
}

/// Is no mask of a source.
const NOBODY: u32 = 1;

/// The hashed key.
#[inline]
pub(super) fn fragment(hasher: Hasher, key: Key) -> u32 {
    hasher.fragment(key.tag, key.source)
}

/// Which peer is in which group.
#[derive(Clone, Default, Debug)]
pub(super) struct Groups {
    of: Vec<Option<GroupId>>,
}

impl Groups {
    #[inline]
    pub(super) fn of(&self, peer: u32) -> Option<GroupId> {
        self.of.get(peer as usize).copied().flatten()
    }

    /// Whether a peer is in a group. Out of the way of searches without groups.
    #[cold]
    #[inline(never)]
    pub(super) fn contains(&self, group: u32, peer: u32) -> bool {
        self.of(peer) == Some(GroupId(group))
    }

    /// One more than the peer's group, or 0.
    #[cold]
    #[inline(never)]
    pub(super) fn key(&self, peer: u32) -> u64 {
        self.of(peer).map_or(0, |group| u64::from(group.0) + 1)
    }

    pub(super) fn set(&mut self, peer: u32, group: Option<GroupId>) {
        let peer = peer as usize;
        if peer >= self.of.len() {
            if group.is_none() {
                return;
            }
            self.of.resize(peer + 1, None);
        }
        self.of[peer] = group;
    }
}

/// Live classes of a list for which the cost is promised. What is beyond them is found by scanning.
pub(super) const CLASSES: usize = 16;
