//! Where the entries of one list live, and the order of the few newest.
//!
//! The newest entries are *dense*: at most sixteen in the current block, and before them what is left of the block
//! that was current before; each block is a region of sixteen slots and an [`Order`], and is searched by looking at
//! each entry. When both are in use and the current one is full, all become *indexed*, and so does what follows,
//! until the list is empty or only young entries are matched. So **every dense entry is newer than every indexed
//! one**, and slots, hence ids, never change. Slots from 512 on come in chunks, for indexed entries.
//!
//! Not here: indexes, and what an entry looks like.

use super::chunks::Chunks;
use super::hash::low;
use super::order::Order;

/// What a store must know of an entry.
pub(super) trait Entry: Copy {
    /// Its place in the one order of its list; zero in a free slot.
    fn sequence(&self) -> u64;
    /// Zero the sequence number.
    fn retire(&mut self);
    /// The same, when it was indexed but its slot can be dense next.
    fn release(&mut self);
}

/// See the head of this file.
#[derive(Clone)]
pub(super) struct Store<T> {
    /// The current block's region, none before the first entry.
    current: Option<Box<Region<T>>>,
    /// The current block.
    order: Order,
    /// Four times what the current block can hold: zero while the list is not dense.
    limit: u32,
    /// The first slot of the current block's region.
    base: u32,
    /// Entries that are not in the current block. While it is zero nothing else need be searched.
    pub(super) older: u32,
    /// The next entry's sequence number, from 1.
    next_sequence: u64,
    /// The block before.
    old_order: Order,
    old_base: u32,
    /// Matches of young indexed entries since the last match of an old one.
    young_streak: u32,
    dense_limit: u32,
    /// The other regions, made when they are needed; none in place of the current one.
    regions: [Option<Box<Region<T>>>; REGIONS as usize],
    /// Indexed entries in each region.
    pinned: [u32; REGIONS as usize],
    /// Free slots of chunks, a stack. Apart from the entries, so that taking
    /// one does not wait for an entry's memory.
    free: Chunks<u32, FREE_SLOTS>,
    free_len: u32,
    /// The first slot that was never used.
    unused_slot: u32,
    chunks: Chunks<T, CHUNK>,
}

impl<T: Entry> Store<T> {
    pub(super) const fn new(dense_limit: u32) -> Self {
        Self {
            current: None,
            order: Order::EMPTY,
            limit: 0,
            base: 0,
            older: 0,
            next_sequence: 1,
            old_order: Order::EMPTY,
            old_base: 0,
            young_streak: 0,
            dense_limit: if dense_limit > PLACES { PLACES } else { dense_limit },
            regions: [const { None }; REGIONS as usize],
            pinned: [0; REGIONS as usize],
            free: Chunks::new(),
            free_len: 0,
            unused_slot: CHUNK_SLOTS,
            chunks: Chunks::new(),
        }
    }

    /// How many entries are indexed.
    #[inline(always)]
    pub(super) const fn indexed(&self) -> u32 {
        self.older - self.old_order.len()
    }

    /// How many entries there are.
    #[inline]
    pub(super) const fn len(&self) -> usize {
        self.order.len() as usize + self.older as usize
    }

    pub(super) fn bytes(&self) -> usize {
        let regions = self.regions.iter().chain([&self.current]).flatten().count();
        size_of::<Self>() + regions * size_of::<Region<T>>() + self.chunks.bytes() + self.free.bytes()
    }

    /// The entry in a slot, whatever number that is. May be free.
    #[inline]
    pub(super) fn get(&self, slot: u32) -> Option<&T> {
        if slot < LOW_SLOTS { self.low(slot) } else { self.chunks.get((slot as usize).wrapping_sub(CHUNK)) }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut T> {
        if slot < LOW_SLOTS {
            self.low_mut(slot)
        } else {
            self.chunks.get_mut((slot as usize).wrapping_sub(CHUNK))
        }
    }

    /// The entry that an id names, unless it is stale.
    #[inline]
    pub(super) fn named(&self, slot: u32, generation: u32) -> Option<&T> {
        self.get(slot).filter(|entry| entry.sequence() != 0 && low(entry.sequence()) == generation)
    }

    #[inline]
    pub(super) fn named_mut(&mut self, slot: u32, generation: u32) -> Option<&mut T> {
        self.get_mut(slot).filter(|entry| entry.sequence() != 0 && low(entry.sequence()) == generation)
    }

    /// As [`Self::named`], but only for an entry in the current block's region.
    #[inline(always)]
    pub(super) fn named_current(&self, slot: u32, generation: u32) -> Option<&T> {
        let entry = &self.current.as_ref()?.0[(slot % PLACES) as usize];
        let is_it = slot & !(PLACES - 1) == self.base && low(entry.sequence()) == generation;
        (is_it && entry.sequence() != 0).then_some(entry)
    }

    /// Take out a dense entry of the current block. Budget: 18 instructions.
    #[inline(always)]
    pub(super) fn remove_current(&mut self, slot: u32) {
        let places = self.order.places();
        // The oldest leaves first, mostly.
        if places & 15 == u64::from(slot % PLACES) {
            self.order.remove(0, places);
        } else {
            self.order.remove_place(slot % PLACES);
        }
        if let Some(region) = &mut self.current {
            region.0[(slot % PLACES) as usize].retire();
        }
    }

    /// An entry in a slot that an index or a block names.
    #[inline]
    pub(super) fn at(&self, slot: u32) -> &T {
        if slot < LOW_SLOTS {
            self.low(slot).unwrap_or_else(|| unreachable!("the region of an entry is there"))
        } else {
            self.chunks.at((slot as usize).wrapping_sub(CHUNK))
        }
    }

    #[inline]
    pub(super) fn at_mut(&mut self, slot: u32) -> &mut T {
        if slot < LOW_SLOTS {
            self.low_mut(slot).unwrap_or_else(|| unreachable!("the region of an entry is there"))
        } else {
            self.chunks.at_mut((slot as usize).wrapping_sub(CHUNK))
        }
    }

    #[inline]
    fn low(&self, slot: u32) -> Option<&T> {
        let other = &self.regions[(slot / PLACES % REGIONS) as usize];
        let region = if slot / PLACES == self.base / PLACES { &self.current } else { other };
        Some(&region.as_ref()?.0[(slot % PLACES) as usize])
    }

    #[inline]
    fn low_mut(&mut self, slot: u32) -> Option<&mut T> {
        let other = &mut self.regions[(slot / PLACES % REGIONS) as usize];
        let region = if slot / PLACES == self.base / PLACES { &mut self.current } else { other };
        Some(&mut region.as_mut()?.0[(slot % PLACES) as usize])
    }

    /// The first entry of the current block that `fits`. Budget: 6 instructions, and 7 an entry beside `fits`.
    #[inline(always)]
    pub(super) fn find_current(&mut self, fits: impl Fn(&T) -> bool) -> Option<Dense<'_, T>> {
        if self.order.end() == 0 {
            return None;
        }
        find(&mut self.current.as_mut()?.0, &mut self.order, self.base, fits)
    }

    /// The first dense entry that `fits`, of the block before or the current one.
    #[inline]
    pub(super) fn find_dense(&mut self, fits: impl Fn(&T) -> bool) -> Option<Dense<'_, T>> {
        let Self { current, order, base, regions, old_order, old_base, older, .. } = self;
        if old_order.end() != 0 {
            let region = regions[(*old_base / PLACES % REGIONS) as usize].as_mut()?;
            if let Some(mut old) = find(&mut region.0, old_order, *old_base, &fits) {
                old.older = Some(older);
                return Some(old);
            }
        }
        find(&mut current.as_mut()?.0, order, *base, fits)
    }

    /// The first dense entry that `fits`, to look at: its slot.
    #[inline]
    pub(super) fn look_dense(&self, fits: impl Fn(&T) -> bool) -> Option<u32> {
        for (order, base) in [(self.old_order, self.old_base), (self.order, self.base)] {
            for position in (0..order.end()).step_by(4) {
                let slot = base | order.place(position);
                if fits(self.at(slot)) {
                    return Some(slot);
                }
            }
        }
        None
    }

    /// Take out a dense entry.
    #[inline]
    pub(super) fn remove_dense(&mut self, slot: u32) {
        if slot / PLACES == self.base / PLACES {
            self.order.remove_place(slot % PLACES);
        } else {
            self.old_order.remove_place(slot % PLACES);
            self.older -= 1;
        }
        self.at_mut(slot).retire();
    }

    /// Where the next entry goes if the current block has room: its slot, its sequence number, and what to write.
    /// Budget: 15 instructions.
    #[inline(always)]
    pub(super) fn next_dense(&mut self) -> Option<(u32, u64, &mut T)> {
        if self.order.end() >= self.limit {
            return None;
        }
        let region = self.current.as_mut()?;
        let place = self.order.append();
        let sequence = self.next_sequence;
        self.next_sequence = sequence + 1;
        Some((self.base | place, sequence, &mut region.0[(place % PLACES) as usize]))
    }

    /// [`Self::next_dense`] found no room: whether there is some now, in the next block. If not, the caller must
    /// move what [`Self::spill`] yields to its indexes and [`Self::next_indexed`] the entry.
    pub(super) fn make_room(&mut self, filler: impl FnOnce() -> T) -> bool {
        if self.dense_limit == 0 || (self.limit == 0 && self.older != 0) {
            return false;
        }
        if self.current.is_none() {
            let mut filler = filler();
            filler.retire();
            self.current = Some(Box::new(Region([filler; PLACES as usize])));
        }
        if self.limit != 0 {
            if self.old_order.len() != 0 {
                return false;
            }
            self.older += self.order.len();
            (self.old_order, self.old_base) = (self.order, self.base);
            self.order = Order::EMPTY;
        }
        self.enter_dense()
    }

    /// The list stops being dense: its dense entries' slots, oldest first. They count as indexed from now on.
    pub(super) fn spill(&mut self) -> impl Iterator<Item = u32> + use<T> {
        let blocks = [(self.old_order, self.old_base), (self.order, self.base)];
        for (order, base) in blocks {
            self.pinned[(base / PLACES % REGIONS) as usize] += order.len();
        }
        self.older += self.order.len();
        (self.old_order, self.order) = (Order::EMPTY, Order::EMPTY);
        (self.limit, self.young_streak) = (0, 0);
        blocks.into_iter().flat_map(|(order, base)| {
            (0..order.end()).step_by(4).map(move |position| base | order.place(position))
        })
    }

    /// Whether new entries are indexed, and some are.
    #[inline(always)]
    pub(super) const fn is_indexed(&self) -> bool {
        self.limit == 0 && self.older != 0
    }

    /// Where the next entry goes outside the dense ones: its slot, its sequence number, and what to write. `filler`
    /// fills new memory. Budget: 20 instructions.
    #[inline(always)]
    pub(super) fn next_indexed(&mut self, filler: impl FnOnce() -> T) -> (u32, u64, &mut T) {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.older += 1;
        let slot = if self.free_len == 0 {
            self.add_slot(filler())
        } else {
            self.free_len -= 1;
            *self.free.at(self.free_len as usize)
        };
        (slot, sequence, self.chunks.at_mut((slot as usize).wrapping_sub(CHUNK)))
    }

    #[cold]
    #[inline(never)]
    fn add_slot(&mut self, mut filler: T) -> u32 {
        let slot = self.unused_slot;
        self.unused_slot += 1;
        filler.retire();
        self.chunks.reach(slot as usize - CHUNK, filler);
        slot
    }

    /// An indexed entry, if its slot is in a chunk. When it was taken out, [`Self::settle`] must follow.
    #[inline(always)]
    pub(super) fn high(&mut self, slot: u32) -> Option<High<'_, T>> {
        let entry = self.chunks.get_mut((slot as usize).wrapping_sub(CHUNK))?;
        Some(High { entry, slot, free: &mut self.free, free_len: &mut self.free_len, older: &mut self.older })
    }

    /// An indexed entry was taken out.
    #[inline(always)]
    pub(super) fn settle(&mut self) {
        if self.older == 0 && self.limit == 0 {
            self.enter_dense();
        }
    }

    /// Take out an indexed entry. Budget: 18 instructions.
    #[inline(always)]
    pub(super) fn remove_indexed(&mut self, slot: u32) -> T {
        let Some(found) = self.high(slot) else { return self.remove_indexed_low(slot) };
        let taken = *found.entry;
        found.remove();
        self.settle();
        taken
    }

    #[cold]
    #[inline(never)]
    fn remove_indexed_low(&mut self, slot: u32) -> T {
        let taken = *self.at(slot);
        self.at_mut(slot).release();
        self.pinned[(slot / PLACES % REGIONS) as usize] -= 1;
        self.older -= 1;
        self.settle();
        taken
    }

    /// An indexed entry was matched: if only young ones were for a while, whatever else waits is a bystander, and
    /// new entries become dense. Budget: 4 instructions.
    #[inline]
    pub(super) fn matched_indexed(&mut self, sequence: u64) {
        if self.next_sequence - sequence > YOUNG {
            self.young_streak = 0;
        } else {
            self.young_streak += 1;
            if self.young_streak > STREAK && self.limit == 0 {
                self.young_streak = 0;
                self.enter_dense();
            }
        }
    }

    /// Call with each occupied slot, dense or indexed, in slot order.
    pub(super) fn for_each(&self, mut each: impl FnMut(u32, &T)) {
        let low = (0..LOW_SLOTS).filter_map(|slot| Some((self.low(slot)?, slot)));
        let used = self.unused_slot - CHUNK_SLOTS;
        let high = (0..self.chunks.len() / CHUNK).flat_map(|number| self.chunks.chunk(number));
        for (entry, slot) in low.chain(high.zip(CHUNK_SLOTS..).take(used as usize)) {
            if entry.sequence() != 0 {
                each(slot, entry);
            }
        }
    }

    /// Every occupied slot of which `wanted` is true, in list order.
    pub(super) fn in_order(&self, wanted: impl Fn(&T) -> bool) -> Vec<(u64, u32)> {
        let mut all = Vec::new();
        self.for_each(|slot, entry| {
            if wanted(entry) {
                all.push((entry.sequence(), slot));
            }
        });
        all.sort_unstable();
        all
    }

    /// Make a region without entries the current block: whether there was one.
    #[cold]
    #[inline(never)]
    fn enter_dense(&mut self) -> bool {
        let is_free = |region: &u32| {
            self.pinned[*region as usize] == 0
                && (self.old_order.len() == 0 || *region != self.old_base / PLACES)
        };
        let Some(region) = (0..REGIONS).find(is_free) else { return false };
        let (1.., Some(current)) = (self.dense_limit, self.current.take()) else { return false };
        // What is copied may be indexed.
        let mut filler = current.0[0];
        filler.release();
        self.regions[(self.base / PLACES % REGIONS) as usize] = Some(current);
        let taken = self.regions[region as usize].take();
        self.current = Some(taken.unwrap_or_else(|| Box::new(Region([filler; PLACES as usize]))));
        (self.base, self.limit) = (region * PLACES, 4 * self.dense_limit);
        true
    }

    /// The invariants of this file, asserted.
    #[cfg(test)]
    pub(super) fn check(&self, is_dense_entry: impl Fn(&T) -> bool) {
        let mut indexed = 0;
        let mut newest_indexed = 0;
        let mut oldest_dense = u64::MAX;
        self.for_each(|_, entry| {
            assert!(entry.sequence() < self.next_sequence);
            if is_dense_entry(entry) {
                oldest_dense = oldest_dense.min(entry.sequence());
            } else {
                indexed += 1;
                newest_indexed = newest_indexed.max(entry.sequence());
            }
        });
        assert_eq!(indexed, self.indexed());
        assert!(newest_indexed < oldest_dense);
        let mut last = 0;
        for (order, base) in [(self.old_order, self.old_base), (self.order, self.base)] {
            for position in (0..order.end()).step_by(4) {
                let entry = self.at(base | order.place(position));
                assert!(is_dense_entry(entry) && entry.sequence() > last);
                last = entry.sequence();
            }
        }
        let free = self.free_len as usize;
        for at in 0..free {
            assert_eq!(self.at(*self.free.at(at)).sequence(), 0);
        }
        let low_indexed = self
            .in_order(|entry| !is_dense_entry(entry))
            .iter()
            .filter(|(_, slot)| *slot < LOW_SLOTS)
            .count();
        assert_eq!(self.unused_slot as usize - CHUNK, free + self.indexed() as usize - low_indexed);
    }
}

/// A dense entry that was found, and how to take it out.
pub(super) struct Dense<'a, T> {
    pub(super) entry: &'a mut T,
    pub(super) slot: u32,
    order: &'a mut Order,
    position: u32,
    /// The order word from that position on.
    places: u64,
    older: Option<&'a mut u32>,
}

impl<T: Entry> Dense<'_, T> {
    /// Budget: 11 instructions.
    #[inline(always)]
    pub(super) fn remove(self) {
        self.order.remove(self.position, self.places);
        self.entry.retire();
        if let Some(older) = self.older {
            *older -= 1;
        }
    }
}

/// An indexed entry that was found, and how to take it out.
pub(super) struct High<'a, T> {
    pub(super) entry: &'a mut T,
    slot: u32,
    free: &'a mut Chunks<u32, FREE_SLOTS>,
    free_len: &'a mut u32,
    older: &'a mut u32,
}

impl<T: Entry> High<'_, T> {
    /// Budget: 12 instructions.
    #[inline(always)]
    pub(super) fn remove(self) {
        self.entry.retire();
        self.free.put(*self.free_len as usize, self.slot);
        *self.free_len += 1;
        *self.older -= 1;
    }
}

#[inline(always)]
fn find<'a, T>(
    region: &'a mut [T; PLACES as usize],
    order: &'a mut Order,
    base: u32,
    fits: impl Fn(&T) -> bool,
) -> Option<Dense<'a, T>> {
    let end = order.end();
    let mut places = order.places();
    let mut left = end;
    while left != 0 {
        let place = low(places & 15);
        if fits(&region[place as usize]) {
            let entry = &mut region[place as usize];
            let position = end - left;
            return Some(Dense { entry, slot: base | place, order, position, places, older: None });
        }
        places >>= 4;
        left -= 4;
    }
    None
}

/// Sixteen slots that can be dense.
#[derive(Clone)]
#[repr(align(64))]
struct Region<T>([T; PLACES as usize]);

/// No slot at all.
pub(super) const NO_SLOT: u32 = u32::MAX;
/// Places of a region.
pub(super) const PLACES: u32 = 16;
const REGIONS: u32 = 4;
const LOW_SLOTS: u32 = PLACES * REGIONS;
/// Slots of a chunk, and the first slot that is in one.
const CHUNK_SLOTS: u32 = 512;
const CHUNK: usize = CHUNK_SLOTS as usize;
/// Free slots of a chunk: 4 KiB.
const FREE_SLOTS: usize = 1024;
/// An entry is young while fewer than so many came after it.
const YOUNG: u64 = 32;
/// So many young matches in a row make a list dense again.
const STREAK: u32 = 32;
