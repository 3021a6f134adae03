//! Which older receive stands in the way: the receives that are *not* in a device's list, indexed so that the
//! newest older one overlapping a candidate is found without walking any list. The newest, since the candidate then
//! waits for one that few others wait for, and mostly for the last one to go: of many receives that wait behind many,
//! each is looked at again once or twice, and not whenever one of them goes.
//!
//! Two patterns overlap iff some tag and source fit both: `(a.tag ^ b.tag) & !(a.ignore | b.ignore) == 0`, and the
//! sources are compatible. So for every pair of classes (of the one that is stored, of the one that asks) there is
//! a table keyed by the tag under both masks and by what both say about the source; each key holds its receives in
//! post order. Cost: one table per live class, for a question as for storing; a class seen for the first time is
//! entered once for everything stored. At most [`CLASSES_MAX`] classes are followed; beyond that the answer is
//! "in the way" (exactness is lost, never order).
//!
//! Not here: what a receive that is in the way waits for.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};

use crate::ids::{GroupId, Ignore, PeerId, Source};
use crate::matching::Pattern;

/// Classes followed at a time. A class is a (mask, kind of source); programs have 1 to 6.
pub const CLASSES_MAX: usize = 16;

/// What stands in the way of a candidate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum InTheWay {
    /// This one: the newest of those that are older.
    Newest(usize),
    /// Something may, but the index cannot say what.
    Unknown,
}

/// The index of one device.
#[derive(Clone, Debug)]
pub(crate) struct Overlaps {
    classes: Vec<Class>,
    tables: Vec<Vec<Table>>,
    links: Vec<Vec<Link>>,
    stored: Vec<Stored>,
    members: usize,
    unfollowed: usize,
    groups: Vec<Option<GroupId>>,
    seed: Seed,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Class {
    ignore: Ignore,
    kind: Kind,
    members: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Any,
    Peer,
    Group,
}

#[derive(Clone, Copy, Debug)]
struct Stored {
    class: Option<u32>,
    pattern: Pattern,
    sequence: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Link {
    older: Option<u32>,
    newer: Option<u32>,
}

type Key = (u64, u64);
type Table = HashMap<Key, Ends, Seed>;

#[derive(Clone, Copy, Debug)]
struct Ends {
    oldest: u32,
    newest: u32,
}

impl Overlaps {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            classes: Vec::new(),
            tables: Vec::new(),
            links: Vec::new(),
            stored: Vec::new(),
            members: 0,
            unfollowed: 0,
            groups: Vec::new(),
            seed: Seed(seed),
        }
    }

    /// Nothing is stored: nothing can be in the way.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.members == 0
    }

    /// Whether a receive is stored.
    #[inline]
    pub(crate) fn contains(&self, record: usize) -> bool {
        self.stored.get(record).is_some_and(|stored| stored.class.is_some())
    }

    /// Store a receive that is not in the device's list. Storing it twice changes nothing.
    pub(crate) fn insert(&mut self, record: usize, sequence: u64, pattern: Pattern) {
        if self.contains(record) {
            return;
        }
        if self.stored.len() <= record {
            self.stored.resize(record + 1, Stored { class: None, pattern, sequence });
        }
        self.members += 1;
        let Some(class) = self.class_of(&pattern) else {
            self.unfollowed += 1;
            self.stored[record] = Stored { class: Some(UNFOLLOWED), pattern, sequence };
            return;
        };
        self.stored[record] = Stored { class: Some(index32(class)), pattern, sequence };
        self.classes[class].members += 1;
        for asking in 0..self.classes.len() {
            self.link(record, class, asking);
        }
    }

    /// Forget a receive. Forgetting one that is not stored changes nothing.
    pub(crate) fn remove(&mut self, record: usize) {
        if self.members == 0 {
            return;
        }
        let Some(class) = self.stored.get_mut(record).and_then(|stored| stored.class.take()) else { return };
        self.members -= 1;
        if class == UNFOLLOWED {
            self.unfollowed -= 1;
            return;
        }
        let class = class as usize;
        self.classes[class].members -= 1;
        for asking in 0..self.classes.len() {
            self.unlink(record, class, asking);
        }
    }

    /// The newest stored receive that is older than `sequence` and overlaps `pattern`.
    pub(crate) fn newest_before(&mut self, sequence: u64, pattern: &Pattern) -> Option<InTheWay> {
        if self.members == 0 {
            return None;
        }
        if self.unfollowed > 0 {
            return Some(InTheWay::Unknown);
        }
        let Some(asking) = self.class_of(pattern) else { return Some(InTheWay::Unknown) };
        let mut found: Option<(u64, usize)> = None;
        for stored in 0..self.classes.len() {
            if self.classes[stored].members == 0 {
                continue;
            }
            let Some(key) = self.key(stored, asking, pattern) else { continue };
            let Some(ends) = self.tables[stored][asking].get(&key) else { continue };
            let Some(candidate) = self.last_before(asking, *ends, sequence) else { continue };
            let age = self.stored[candidate as usize].sequence;
            if found.is_none_or(|(newest, _)| age > newest) {
                found = Some((age, candidate as usize));
            }
        }
        found.map(|(_, record)| InTheWay::Newest(record))
    }

    /// The newest of a chain that is older than `sequence`, sought from both ends.
    fn last_before(&self, asking: usize, ends: Ends, sequence: u64) -> Option<u32> {
        let links = &self.links[asking];
        let age = |record: u32| self.stored[record as usize].sequence;
        let (mut low, mut high) = (ends.oldest, ends.newest);
        if age(low) >= sequence {
            return None;
        }
        loop {
            if age(high) < sequence {
                return Some(high);
            }
            let Some(next) = links[low as usize].newer.filter(|&next| age(next) < sequence) else {
                return Some(low);
            };
            low = next;
            high = links[high as usize].older?;
        }
    }

    /// A peer joined a group, or left the one it was in. Stored receives are entered anew.
    pub(crate) fn handle_group(&mut self, peer: PeerId, group: Option<GroupId>) {
        let members: Vec<_> = (0..self.stored.len()).filter(|&record| self.contains(record)).collect();
        let again: Vec<_> = members.iter().map(|&record| (record, self.stored[record])).collect();
        for &record in &members {
            self.remove(record);
        }
        let at = peer.0 as usize;
        if self.groups.len() <= at {
            self.groups.resize(at + 1, None);
        }
        self.groups[at] = group;
        for (record, stored) in again {
            self.insert(record, stored.sequence, stored.pattern);
        }
    }

    /// The stored receives, for tests and for moving them.
    pub(crate) fn members(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.stored.len()).filter(|&record| self.contains(record))
    }

    fn class_of(&mut self, pattern: &Pattern) -> Option<usize> {
        let kind = Kind::of(pattern.source);
        let same = |class: &Class| class.ignore == pattern.ignore && class.kind == kind;
        if let Some(found) = self.classes.iter().position(same) {
            return Some(found);
        }
        let fresh = Class { ignore: pattern.ignore, kind, members: 0 };
        let place = if self.classes.len() < CLASSES_MAX {
            self.classes.push(fresh);
            self.links.push(Vec::new());
            for row in &mut self.tables {
                row.push(Table::with_hasher(self.seed));
            }
            self.tables.push((0..self.classes.len()).map(|_| Table::with_hasher(self.seed)).collect());
            self.classes.len() - 1
        } else {
            let unused = self.classes.iter().position(|class| class.members == 0)?;
            self.classes[unused] = fresh;
            for row in &mut self.tables {
                row[unused].clear();
            }
            unused
        };
        self.enter_all(place);
        Some(place)
    }

    /// A class is new: enter everything stored for its questions, oldest first.
    fn enter_all(&mut self, asking: usize) {
        let mut order: Vec<usize> =
            self.members().filter(|&record| self.stored[record].class != Some(UNFOLLOWED)).collect();
        order.sort_unstable_by_key(|&record| self.stored[record].sequence);
        for record in order {
            if let Some(class) = self.stored[record].class {
                self.link(record, class as usize, asking);
            }
        }
    }

    fn link(&mut self, record: usize, class: usize, asking: usize) {
        let Stored { pattern, sequence, .. } = self.stored[record];
        let Some(key) = self.key(class, asking, &pattern) else { return };
        if self.links[asking].len() <= record {
            self.links[asking].resize(record + 1, Link::default());
        }
        let me = index32(record);
        let Some(&ends) = self.tables[class][asking].get(&key) else {
            self.links[asking][record] = Link::default();
            self.tables[class][asking].insert(key, Ends { oldest: me, newest: me });
            return;
        };
        let older = self.last_before(asking, ends, sequence);
        let links = &mut self.links[asking];
        let Some(ends) = self.tables[class][asking].get_mut(&key) else { return };
        let Some(older) = older else {
            links[record] = Link { older: None, newer: Some(ends.oldest) };
            links[ends.oldest as usize].older = Some(me);
            ends.oldest = me;
            return;
        };
        let newer = links[older as usize].newer;
        links[record] = Link { older: Some(older), newer };
        links[older as usize].newer = Some(me);
        match newer {
            Some(newer) => links[newer as usize].older = Some(me),
            None => ends.newest = me,
        }
    }

    fn unlink(&mut self, record: usize, class: usize, asking: usize) {
        let pattern = self.stored[record].pattern;
        let Some(key) = self.key(class, asking, &pattern) else { return };
        let links = &mut self.links[asking];
        let Link { older, newer } = std::mem::take(&mut links[record]);
        if let Some(older) = older {
            links[older as usize].newer = newer;
        }
        if let Some(newer) = newer {
            links[newer as usize].older = older;
        }
        match (older, newer) {
            (None, None) => {
                self.tables[class][asking].remove(&key);
            }
            (None, Some(newer)) => {
                if let Some(ends) = self.tables[class][asking].get_mut(&key) {
                    ends.oldest = newer;
                }
            }
            (Some(older), None) => {
                if let Some(ends) = self.tables[class][asking].get_mut(&key) {
                    ends.newest = older;
                }
            }
            (Some(_), Some(_)) => {}
        }
    }

    /// What a pattern looks like in the table of a pair of classes; `None`: it overlaps nothing there.
    fn key(&self, stored: usize, asking: usize, pattern: &Pattern) -> Option<Key> {
        let (of_stored, of_asking) = (self.classes[stored], self.classes[asking]);
        let tag = pattern.tag.0 & !(of_stored.ignore.0 | of_asking.ignore.0);
        let source = match (of_stored.kind, of_asking.kind) {
            (Kind::Any, _) | (_, Kind::Any) => 0,
            (Kind::Peer, Kind::Peer) | (Kind::Group, Kind::Group) => match pattern.source {
                Source::Peer(peer) => u64::from(peer.0) + 1,
                Source::Group(group) => u64::from(group.0) + 1,
                Source::Any => 0,
            },
            (Kind::Peer, Kind::Group) | (Kind::Group, Kind::Peer) => match pattern.source {
                Source::Group(group) => u64::from(group.0) + 1,
                Source::Peer(peer) => match self.groups.get(peer.0 as usize).copied().flatten() {
                    Some(group) => u64::from(group.0) + 1,
                    // In no group: it is stored nowhere and finds nothing.
                    None => return None,
                },
                Source::Any => 0,
            },
        };
        Some((tag, source))
    }
}

impl Kind {
    const fn of(source: Source) -> Self {
        match source {
            Source::Any => Self::Any,
            Source::Peer(_) => Self::Peer,
            Source::Group(_) => Self::Group,
        }
    }
}

/// A seeded hash, so that nobody can choose tags that collide.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seed(u64);

impl BuildHasher for Seed {
    type Hasher = Folded;
    fn build_hasher(&self) -> Folded {
        Folded(self.0)
    }
}

/// Folded multiplication of what is written, a word at a time.
#[derive(Debug)]
pub(crate) struct Folded(u64);

impl Hasher for Folded {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "both halves of the product are folded together")]
    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * u128::from(MULTIPLIER);
        self.0 = (product as u64) ^ ((product >> 64) as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

fn index32(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

const UNFOLLOWED: u32 = u32::MAX;
/// An odd constant without structure (the fractional part of the golden ratio).
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
