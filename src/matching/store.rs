//! Where the entries of one list live, and the order of the few newest.
//!
//! Slots 0..128 are eight regions of sixteen; slots from 512 on come in chunks. A list is *dense* while its newest
//! entries (at most sixteen) are in the current region, in the order of [`Order`], and are searched by looking at
//! each. When the region is full they become *indexed*, and so does what follows, until the list is empty or only
//! young entries are matched. So **every dense entry is newer than every indexed one**, and slots, hence ids,
//! never change.
//!
//! Not here: indexes, and what an entry looks like.

use super::chunks::Chunks;
use super::hash::low;
use super::order::Order;

/// What a store must know of an entry.
pub(super) trait Entry: Copy {
    /// Its place in the one order of its list; zero in a free slot.
    fn sequence(&self) -> u64;
    /// Zero the sequence number; `next` is the next free slot.
    fn release(&mut self, next: u32);
    /// What [`Self::release`] was given.
    fn next_free(&self) -> u32;
}

/// See the head of this file.
#[derive(Clone)]
pub(super) struct Store<T> {
    /// The dense entries: places in the current region.
    pub(super) order: Order,
    /// Free places of the current region while the list is dense, else none.
    free: u32,
    /// The first slot of the current region.
    base: u32,
    /// The next entry's sequence number, from 1.
    next_sequence: u64,
    /// How many entries are indexed.
    pub(super) indexed: u32,
    /// Matches of young indexed entries since the last match of an old one.
    young_streak: u32,
    is_dense: bool,
    dense_limit: u32,
    regions: Vec<Box<Region<T>>>,
    /// Free places of each region but the current one of a dense list.
    regions_free: [u32; REGIONS as usize],
    chunks: Chunks<T, CHUNK>,
    /// The last freed slot, linked to the one freed before it.
    free_slot: u32,
    /// The first slot that was never used.
    unused_slot: u32,
}

impl<T: Entry> Store<T> {
    pub(super) const fn new(dense_limit: u32) -> Self {
        Self {
            order: Order::EMPTY,
            free: 0,
            base: 0,
            next_sequence: 1,
            indexed: 0,
            young_streak: 0,
            is_dense: false,
            dense_limit: if dense_limit > PLACES { PLACES } else { dense_limit },
            regions: Vec::new(),
            regions_free: [(1 << PLACES) - 1; REGIONS as usize],
            chunks: Chunks::new(),
            free_slot: NO_SLOT,
            unused_slot: CHUNK_SLOTS,
        }
    }

    /// How many entries there are.
    #[inline]
    pub(super) const fn len(&self) -> usize {
        self.order.len() as usize + self.indexed as usize
    }

    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.regions.len() * size_of::<Region<T>>() + self.chunks.bytes()
    }

    /// The entry in a slot, whatever number that is. May be free.
    #[inline]
    pub(super) fn get(&self, slot: u32) -> Option<&T> {
        if slot < REGION_SLOTS {
            Some(&self.regions.get((slot / PLACES) as usize)?.0[(slot % PLACES) as usize])
        } else {
            self.chunks.get((slot as usize).wrapping_sub(CHUNK))
        }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut T> {
        if slot < REGION_SLOTS {
            Some(&mut self.regions.get_mut((slot / PLACES) as usize)?.0[(slot % PLACES) as usize])
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

    /// An entry in a slot that an index names.
    #[inline]
    pub(super) fn at(&self, slot: u32) -> &T {
        if slot < REGION_SLOTS {
            &self.regions[(slot / PLACES) as usize].0[(slot % PLACES) as usize]
        } else {
            self.chunks.at((slot as usize).wrapping_sub(CHUNK))
        }
    }

    #[inline]
    pub(super) fn at_mut(&mut self, slot: u32) -> &mut T {
        if slot < REGION_SLOTS {
            &mut self.regions[(slot / PLACES) as usize].0[(slot % PLACES) as usize]
        } else {
            self.chunks.at_mut((slot as usize).wrapping_sub(CHUNK))
        }
    }

    /// The first dense entry that `fits`, as its position and slot. Budget: 5 instructions an entry beside `fits`.
    #[inline]
    pub(super) fn find_dense(&self, mut fits: impl FnMut(&T) -> bool) -> Option<(u32, u32)> {
        let end = self.order.end();
        if end == 0 {
            return None;
        }
        let region = &self.regions.get((self.base / PLACES) as usize)?.0;
        let mut position = 0;
        while position < end {
            let place = self.order.place(position);
            if fits(&region[place as usize]) {
                return Some((position, self.base + place));
            }
            position += 4;
        }
        None
    }

    /// Add an entry at the end of the dense ones, if the list is dense and has room: its slot and sequence number.
    /// Budget: 15 instructions beside storing the entry.
    #[inline]
    pub(super) fn push_dense(&mut self, entry: impl FnOnce(u64) -> T) -> Option<(u32, u64)> {
        if self.free == 0 {
            return None;
        }
        let place = self.free.trailing_zeros();
        let region = self.regions.get_mut((self.base / PLACES) as usize)?;
        let sequence = self.next_sequence;
        region.0[(place % PLACES) as usize] = entry(sequence);
        self.next_sequence = sequence + 1;
        self.free &= self.free - 1;
        self.order.append(place);
        Some((self.base + place, sequence))
    }

    /// Take out the dense entry at a position. Budget: 12 instructions.
    #[inline]
    pub(super) fn remove_dense(&mut self, position: u32, slot: u32) {
        self.order.remove(position);
        self.free |= 1 << (slot % PLACES);
        self.at_mut(slot).release(NO_SLOT);
    }

    /// Take out a dense entry.
    #[inline]
    pub(super) fn remove_dense_slot(&mut self, slot: u32) {
        let position = self.order.position(slot % PLACES);
        self.remove_dense(position, slot);
    }

    /// [`Self::push_dense`] found no room: whether the list is dense now and has some. If not, the caller must move
    /// what [`Self::spill`] yields to its indexes and [`Self::push_indexed`] the entry.
    pub(super) fn make_room(&mut self, first: impl FnOnce() -> T) -> bool {
        if self.is_dense || self.indexed != 0 {
            return false;
        }
        if self.regions.is_empty() && self.dense_limit != 0 {
            self.regions.push(Box::new(Region([first(); PLACES as usize])));
            self.regions[0].0.iter_mut().for_each(|entry| entry.release(NO_SLOT));
        }
        self.enter_dense(0)
    }

    /// The list stops being dense: its dense entries' slots, oldest first. They count as indexed from now on.
    pub(super) fn spill(&mut self) -> Spilled {
        let spilled = Spilled { order: self.order, position: 0, base: self.base };
        self.indexed += self.order.len();
        self.order = Order::EMPTY;
        if self.is_dense {
            let mut free = self.free;
            // Places kept back by a dense limit are free as well.
            free |= self.region_of(self.base).map_or(0, |region| {
                region.0.iter().zip(0..).fold(0, |bits, (e, i)| bits | (u32::from(e.sequence() == 0) << i))
            });
            self.regions_free[(self.base / PLACES) as usize] = free;
        }
        (self.free, self.is_dense, self.young_streak) = (0, false, 0);
        spilled
    }

    /// Add an entry outside the dense ones: its slot and sequence number. Budget: 20 instructions.
    #[inline]
    pub(super) fn push_indexed(&mut self, entry: impl FnOnce(u32, u64) -> T) -> (u32, u64) {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.indexed += 1;
        let slot = self.free_slot;
        if slot == NO_SLOT {
            let slot = self.unused_slot;
            self.unused_slot += 1;
            let entry = entry(slot, sequence);
            self.chunks.reach(slot as usize - CHUNK, entry);
            *self.at_mut(slot) = entry;
            return (slot, sequence);
        }
        let place = self.at_mut(slot);
        let next = place.next_free();
        *place = entry(slot, sequence);
        self.free_slot = next;
        (slot, sequence)
    }

    /// Take out an indexed entry. Budget: 12 instructions.
    #[inline]
    pub(super) fn remove_indexed(&mut self, slot: u32) {
        self.indexed -= 1;
        if slot < REGION_SLOTS {
            self.at_mut(slot).release(NO_SLOT);
            self.free_place(slot);
        } else {
            let next = self.free_slot;
            self.at_mut(slot).release(next);
            self.free_slot = slot;
        }
        if self.indexed == 0 && !self.is_dense {
            self.enter_dense(0);
        }
    }

    /// An indexed entry was matched: if only young ones were for a while, whatever else waits is a bystander, and
    /// new entries become dense. Budget: 4 instructions.
    #[inline]
    pub(super) fn matched_indexed(&mut self, sequence: u64) {
        if self.next_sequence - sequence > YOUNG {
            self.young_streak = 0;
        } else {
            self.young_streak += 1;
            if self.young_streak > STREAK && !self.is_dense {
                self.young_streak = 0;
                self.enter_dense(PLACES_MIN);
            }
        }
    }

    /// Call with each occupied slot, dense or indexed, in slot order.
    pub(super) fn for_each(&self, mut each: impl FnMut(u32, &T)) {
        for (region, base) in self.regions.iter().zip((0..).step_by(PLACES as usize)) {
            for (entry, place) in region.0.iter().zip(0..) {
                if entry.sequence() != 0 {
                    each(base + place, entry);
                }
            }
        }
        let mut slot = CHUNK_SLOTS;
        for number in 0..self.chunks.len() / CHUNK {
            for entry in self.chunks.chunk(number) {
                if slot >= self.unused_slot {
                    return;
                }
                if entry.sequence() != 0 {
                    each(slot, entry);
                }
                slot += 1;
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

    fn region_of(&self, slot: u32) -> Option<&Region<T>> {
        self.regions.get((slot / PLACES) as usize).map(|region| &**region)
    }

    fn free_place(&mut self, slot: u32) {
        let bit = 1 << (slot % PLACES);
        if self.is_dense && slot / PLACES == self.base / PLACES {
            self.free |= bit;
        } else {
            self.regions_free[(slot / PLACES) as usize] |= bit;
        }
    }

    /// Become dense if some region has room for so many: whether it did.
    #[cold]
    #[inline(never)]
    fn enter_dense(&mut self, places_min: u32) -> bool {
        if self.dense_limit == 0 {
            return false;
        }
        let mut region = 0;
        while region < REGIONS && self.regions_free[region as usize].count_ones() <= places_min {
            region += 1;
        }
        let Some(filler) = self.regions.first().map(|region| region.0[0]) else { return false };
        if region == REGIONS || region as usize > self.regions.len() {
            return false;
        }
        if region as usize == self.regions.len() {
            let mut fresh = Region([filler; PLACES as usize]);
            fresh.0.iter_mut().for_each(|entry| entry.release(NO_SLOT));
            self.regions.push(Box::new(fresh));
        }
        let mut free = self.regions_free[region as usize];
        while free.count_ones() > self.dense_limit {
            free &= free - 1;
        }
        self.base = region * PLACES;
        (self.free, self.is_dense) = (free, true);
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
        assert_eq!(indexed, self.indexed);
        assert!(newest_indexed < oldest_dense);
        let mut last = 0;
        for position in (0..self.order.end()).step_by(4) {
            let entry = self.at(self.base + self.order.place(position));
            assert!(is_dense_entry(entry) && entry.sequence() > last);
            last = entry.sequence();
        }
        let mut slot = self.free_slot;
        let mut free = 0;
        while slot != NO_SLOT {
            assert_eq!(self.at(slot).sequence(), 0);
            slot = self.at(slot).next_free();
            free += 1;
        }
        let low_indexed = self
            .in_order(|entry| !is_dense_entry(entry))
            .iter()
            .filter(|(_, slot)| *slot < REGION_SLOTS)
            .count();
        assert_eq!(self.unused_slot as usize - CHUNK, free + self.indexed as usize - low_indexed);
    }
}

/// The slots that were dense until now.
pub(super) struct Spilled {
    order: Order,
    position: u32,
    base: u32,
}

impl Iterator for Spilled {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        if self.position >= self.order.end() {
            return None;
        }
        let place = self.order.place(self.position);
        self.position += 4;
        Some(self.base + place)
    }
}

#[derive(Clone)]
#[repr(align(64))]
struct Region<T>([T; PLACES as usize]);

/// No slot at all.
pub(super) const NO_SLOT: u32 = u32::MAX;
/// Places of a region.
pub(super) const PLACES: u32 = 16;
const REGIONS: u32 = 8;
const REGION_SLOTS: u32 = PLACES * REGIONS;
/// Slots of a chunk, and the first slot that is in one.
const CHUNK_SLOTS: u32 = 512;
const CHUNK: usize = CHUNK_SLOTS as usize;
/// An entry is young while fewer than so many came after it.
const YOUNG: u64 = 12;
/// So many young matches in a row make a list dense again.
const STREAK: u32 = 32;
/// With entries indexed, a region must have more free places than this to be worth it.
const PLACES_MIN: u32 = 11;
