//! Where the entries of one list live, and the order of the few newest.
//!
//! The newest entries are *dense*: they lie in a ring of 64 places, in the order in which they came, with holes where
//! some have left, and are searched by looking at each. The rest is *indexed*. When an old dense entry stands in the
//! way of the ring's next place, it becomes indexed; when the ring is more than half full then, all do, and so does
//! what follows, until the list is empty or only young entries are matched. So **every dense entry is newer than
//! every indexed one**. What becomes indexed keeps its place, which the ring leaves out: slots, hence ids, never
//! change. Slots from 512 on come in chunks, for indexed entries.
//!
//! Not here: indexes, and what an entry looks like.

use super::chunks::Chunks;
use super::hash::low;

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
    /// The ring's region, none before the first entry.
    current: Option<Box<Region<T>>>,
    /// A bit for each place with a dense entry: bit 0 for the place of the next entry, bit 1 for the one after it in the
    /// ring, and so on. So from bit 0 on they are in order of age, and the newest place is bit 63.
    held: u64,
    /// A bit for each place that the ring leaves out: all while the list is not dense.
    barred: u64,
    /// The first slot of the ring's region.
    base: u32,
    /// How many entries are indexed.
    indexed: u32,
    /// The next entry's sequence number, from 1. Modulo 64 it is the next entry's place in the ring. Numbers may be left
    /// out.
    next_sequence: u64,
    /// Matches of young indexed entries since the last match of an old one.
    young_streak: u32,
    /// The places that may be used.
    allowed: u64,
    /// The other regions, made when they are needed; none in place of the current one.
    regions: [Option<Box<Region<T>>>; REGIONS as usize],
    /// A bit for each place of each region with an indexed entry.
    pinned: [u64; REGIONS as usize],
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
            held: 0,
            barred: u64::MAX,
            base: 0,
            indexed: 0,
            next_sequence: 1,
            young_streak: 0,
            allowed: if dense_limit >= PLACES { u64::MAX } else { (1 << dense_limit) - 1 },
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
        self.indexed
    }

    /// Whether every entry is dense.
    #[inline(always)]
    pub(super) const fn is_short(&self) -> bool {
        self.indexed == 0
    }

    /// Whether new entries are dense.
    #[inline(always)]
    pub(super) const fn is_dense(&self) -> bool {
        self.barred != u64::MAX
    }

    /// Whether new entries are indexed, and some are.
    #[inline(always)]
    pub(super) const fn is_indexed(&self) -> bool {
        !self.is_dense() && self.indexed != 0
    }

    #[inline(always)]
    pub(super) const fn is_empty(&self) -> bool {
        self.held | self.indexed as u64 == 0
    }

    /// How many entries there are.
    #[inline]
    pub(super) const fn len(&self) -> usize {
        self.held.count_ones() as usize + self.indexed as usize
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

    /// As [`Self::named`], but only for an entry in the ring's region.
    #[inline(always)]
    pub(super) fn named_current(&self, slot: u32, generation: u32) -> Option<&T> {
        let entry = &self.current.as_ref()?.0[(slot % PLACES) as usize];
        let is_it = slot & !(PLACES - 1) == self.base && low(entry.sequence()) == generation;
        (is_it && entry.sequence() != 0).then_some(entry)
    }

    /// Take out a dense entry. Budget: 10 instructions.
    #[inline(always)]
    pub(super) fn remove_dense(&mut self, slot: u32) {
        self.held &= !(1 << (slot.wrapping_sub(low(self.next_sequence)) % PLACES));
        if let Some(region) = &mut self.current {
            region.0[(slot % PLACES) as usize].retire();
        }
    }

    /// An entry in a slot that an index or the ring names.
    #[inline(always)]
    pub(super) fn at(&self, slot: u32) -> &T {
        if slot < LOW_SLOTS {
            self.low(slot).unwrap_or_else(|| unreachable!("the region of an entry is there"))
        } else {
            self.chunks.at((slot as usize).wrapping_sub(CHUNK))
        }
    }

    #[inline(always)]
    pub(super) fn at_mut(&mut self, slot: u32) -> &mut T {
        if slot < LOW_SLOTS {
            self.low_mut(slot).unwrap_or_else(|| unreachable!("the region of an entry is there"))
        } else {
            self.chunks.at_mut((slot as usize).wrapping_sub(CHUNK))
        }
    }

    #[inline(always)]
    fn low(&self, slot: u32) -> Option<&T> {
        let other = &self.regions[(slot / PLACES % REGIONS) as usize];
        let region = if slot / PLACES == self.base / PLACES { &self.current } else { other };
        Some(&region.as_ref()?.0[(slot % PLACES) as usize])
    }

    #[inline(always)]
    fn low_mut(&mut self, slot: u32) -> Option<&mut T> {
        let other = &mut self.regions[(slot / PLACES % REGIONS) as usize];
        let region = if slot / PLACES == self.base / PLACES { &mut self.current } else { other };
        Some(&mut region.as_mut()?.0[(slot % PLACES) as usize])
    }

    /// The first dense entry that `fits`. Budget: 8 instructions, and 7 an entry beside `fits`.
    #[inline(always)]
    pub(super) fn find_dense(&mut self, fits: impl Fn(&T) -> bool) -> Option<Dense<'_, T>> {
        let mut left = self.held;
        if left == 0 {
            return None;
        }
        let region = &mut self.current.as_mut()?.0;
        let next = low(self.next_sequence);
        loop {
            let age = left.trailing_zeros();
            let place = age.wrapping_add(next) % PLACES;
            if fits(&region[place as usize]) {
                let entry = &mut region[place as usize];
                return Some(Dense { entry, slot: self.base | place, age, held: &mut self.held });
            }
            left &= left - 1;
            if left == 0 {
                return None;
            }
        }
    }

    /// The first dense entry that `fits`, to look at: its slot.
    #[inline]
    pub(super) fn look_dense(&self, fits: impl Fn(&T) -> bool) -> Option<u32> {
        self.dense_slots(self.held).find(|slot| fits(self.at(*slot)))
    }

    /// The slots of places in order of age.
    fn dense_slots(&self, mut left: u64) -> impl Iterator<Item = u32> + use<T> {
        let (next, base) = (low(self.next_sequence), self.base);
        std::iter::from_fn(move || {
            let place = left.trailing_zeros().wrapping_add(next) % PLACES;
            let some = left != 0;
            left &= left.wrapping_sub(1);
            some.then_some(base | place)
        })
    }

    /// Where the next entry goes if the ring has room: its slot, its sequence number, and what to write. Budget: 14
    /// instructions.
    #[inline(always)]
    pub(super) fn next_dense(&mut self) -> Option<(u32, u64, &mut T)> {
        let sequence = self.next_sequence;
        let place = low(sequence) % PLACES;
        if self.held & 1 != 0 || self.barred & (1 << place) != 0 {
            return None;
        }
        let region = self.current.as_mut()?;
        self.held = (self.held | 1).rotate_right(1);
        self.next_sequence = sequence + 1;
        Some((self.base | place, sequence, &mut region.0[place as usize]))
    }

    /// [`Self::next_dense`] found no room: whether there is some now. If not, the caller must move what
    /// [`Self::spill`] yields to its indexes, and ask again before it indexes the entry.
    pub(super) fn make_room(&mut self, filler: impl FnOnce() -> T) -> bool {
        if self.allowed == 0 || self.is_indexed() {
            return false;
        }
        if self.current.is_none() {
            let mut filler = filler();
            filler.retire();
            self.current = Some(Region::filled(filler));
        }
        if !self.is_dense() && !self.enter_dense() {
            return false;
        }
        let skipped = self.free().trailing_zeros();
        if skipped >= self.held.trailing_zeros() {
            return false;
        }
        self.next_sequence += u64::from(skipped);
        self.held = self.held.rotate_right(skipped);
        true
    }

    /// The places that are free, ordered as those that are held.
    const fn free(&self) -> u64 {
        !(self.held | self.barred.rotate_right(low(self.next_sequence)))
    }

    /// The slots of dense entries that count as indexed from now on, oldest first: those that stand in the way of the
    /// next place, or all, and the list is not dense any more, if they are many.
    pub(super) fn spill(&mut self) -> impl Iterator<Item = u32> + use<T> {
        let (held, free) = (self.held, self.free());
        let all = free == 0 || 2 * held.count_ones() > self.allowed.count_ones();
        let spilled = if all { held } else { held & ((1 << free.trailing_zeros()) - 1) };
        let places = spilled.rotate_left(low(self.next_sequence));
        let slots = self.dense_slots(spilled);
        self.held &= !spilled;
        self.pinned[(self.base / PLACES % REGIONS) as usize] |= places;
        self.indexed += places.count_ones();
        if all {
            (self.barred, self.young_streak) = (u64::MAX, 0);
        } else {
            self.barred |= places;
        }
        slots
    }

    /// Where the next entry goes outside the dense ones: its slot, its sequence number, and what to write. `filler`
    /// fills new memory. Budget: 20 instructions.
    #[inline(always)]
    pub(super) fn next_indexed(&mut self, filler: impl FnOnce() -> T) -> (u32, u64, &mut T) {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.indexed += 1;
        let slot = if self.free_len == 0 {
            self.add_slot(filler)
        } else {
            self.free_len -= 1;
            *self.free.at(self.free_len as usize)
        };
        (slot, sequence, self.chunks.at_mut((slot as usize).wrapping_sub(CHUNK)))
    }

    #[cold]
    #[inline(never)]
    fn add_slot(&mut self, filler: impl FnOnce() -> T) -> u32 {
        let slot = self.unused_slot;
        self.unused_slot += 1;
        // Made here, so that only who comes here has room for it on the stack.
        let mut filler = filler();
        filler.retire();
        self.chunks.reach(slot as usize - CHUNK, filler);
        slot
    }

    /// An indexed entry was taken out.
    #[inline(always)]
    fn settle(&mut self) {
        self.indexed -= 1;
        if self.indexed == 0 {
            self.begin_again();
        }
    }

    #[cold]
    #[inline(never)]
    fn begin_again(&mut self) {
        if !self.is_dense() {
            self.enter_dense();
        }
    }

    /// An indexed entry with this sequence number was matched, and the caller has released it. Budget: 22 instructions.
    #[inline(always)]
    pub(super) fn note_taken(&mut self, slot: u32, sequence: u64) {
        if slot < LOW_SLOTS {
            self.unpin(slot);
        } else {
            self.free.put(self.free_len as usize, slot);
            self.free_len += 1;
        }
        self.settle();
        self.matched_indexed(sequence);
    }

    /// Take out an indexed entry. But for its sequence number it can still be read. Budget: 18 instructions.
    #[inline(always)]
    pub(super) fn remove_indexed(&mut self, slot: u32) {
        let Some(entry) = self.chunks.get_mut((slot as usize).wrapping_sub(CHUNK)) else {
            return self.remove_indexed_low(slot);
        };
        entry.retire();
        self.free.put(self.free_len as usize, slot);
        self.free_len += 1;
        self.settle();
    }

    #[inline(never)]
    fn remove_indexed_low(&mut self, slot: u32) {
        self.at_mut(slot).release();
        self.unpin(slot);
        self.settle();
    }

    /// The indexed entry of a slot that can be dense has left.
    #[inline(never)]
    fn unpin(&mut self, slot: u32) {
        let place = 1 << (slot % PLACES);
        self.pinned[(slot / PLACES % REGIONS) as usize] &= !place;
        if self.is_dense() && slot / PLACES == self.base / PLACES {
            self.barred &= !(place & self.allowed);
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
            if self.young_streak > STREAK && !self.is_dense() {
                self.young_streak = 0;
                self.enter_dense();
            }
        }
    }

    /// Call with each occupied slot, dense or indexed, in slot order.
    #[inline(always)]
    pub(super) fn for_each(&self, mut each: impl FnMut(u32, &T)) {
        let mut each_occupied = |slot, entry: &T| {
            if entry.sequence() != 0 {
                each(slot, entry);
            }
        };
        for slot in 0..LOW_SLOTS {
            if let Some(entry) = self.low(slot) {
                each_occupied(slot, entry);
            }
        }
        let mut first = CHUNK_SLOTS;
        while first < self.unused_slot {
            let used = (self.unused_slot - first).min(CHUNK_SLOTS) as usize;
            let chunk = self.chunks.chunk(first as usize / CHUNK - 1);
            for (slot, entry) in (first..).zip(chunk).take(used) {
                each_occupied(slot, entry);
            }
            first += CHUNK_SLOTS;
        }
    }

    /// The same in any order, and none is looked at where there is none: how many slots were.
    pub(super) fn for_each_of_any(&self, mut each: impl FnMut(&T)) -> usize {
        if self.is_empty() {
            return 0;
        }
        self.for_each(|_, entry| each(entry));
        self.unused_slot as usize
    }

    /// Call with each part of memory that may hold entries, in slot order: its first slot, and all of it.
    #[inline(always)]
    pub(super) fn for_each_part_mut(&mut self, mut each: impl FnMut(u32, &mut [T])) {
        for number in 0..REGIONS {
            let is_current = number == self.base / PLACES;
            let region = if is_current { &mut self.current } else { &mut self.regions[number as usize] };
            if let Some(region) = region {
                each(number * PLACES, &mut region.0);
            }
        }
        let mut first = CHUNK_SLOTS;
        while first < self.unused_slot {
            let used = (self.unused_slot - first).min(CHUNK_SLOTS) as usize;
            each(first, &mut self.chunks.chunk_mut(first as usize / CHUNK - 1)[..used]);
            first += CHUNK_SLOTS;
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

    /// Make the region with the fewest indexed entries the ring's: whether it has room.
    #[cold]
    #[inline(never)]
    fn enter_dense(&mut self) -> bool {
        let usable = |region: &u32| (self.allowed & !self.pinned[*region as usize]).count_ones();
        // The first of those, so that no more regions are made than are needed.
        let Some(region) = (0..REGIONS).rev().max_by_key(usable) else { return false };
        if usable(&region) <= self.allowed.count_ones() / 2 {
            return false;
        }
        let Some(current) = self.current.take() else { return false };
        // What is copied may be indexed.
        let mut filler = current.0[0];
        filler.release();
        self.regions[(self.base / PLACES % REGIONS) as usize] = Some(current);
        let taken = self.regions[region as usize].take();
        self.current = Some(taken.unwrap_or_else(|| Region::filled(filler)));
        self.base = region * PLACES;
        self.barred = self.pinned[region as usize] | !self.allowed;
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
        assert_eq!(self.held & self.barred.rotate_right(low(self.next_sequence)), 0);
        assert!(self.is_dense() || self.held == 0);
        for slot in self.dense_slots(self.held) {
            let entry = self.at(slot);
            assert!(is_dense_entry(entry) && entry.sequence() > last);
            last = entry.sequence();
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
    /// Its bit.
    age: u32,
    held: &'a mut u64,
}

impl<T: Entry> Dense<'_, T> {
    /// Budget: 5 instructions.
    #[inline(always)]
    pub(super) fn remove(self) {
        *self.held &= !(1 << self.age);
        self.entry.retire();
    }
}

impl<'a, T: Entry> Dense<'a, T> {
    /// The same, and what it says, which is good until the next entry joins the list.
    #[inline(always)]
    pub(super) fn remove_and_read<O>(self, read: impl FnOnce(&'a T) -> O) -> O {
        *self.held &= !(1 << self.age);
        self.entry.retire();
        read(self.entry)
    }
}

/// Slots that can be dense.
#[derive(Clone)]
#[repr(align(64))]
struct Region<T>([T; PLACES as usize]);

impl<T: Copy> Region<T> {
    #[cold]
    #[inline(never)]
    fn filled(filler: T) -> Box<Self> {
        Box::new(Self([filler; PLACES as usize]))
    }
}

/// No slot at all.
pub(super) const NO_SLOT: u32 = u32::MAX;
/// Places of a region.
pub(super) const PLACES: u32 = 64;
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
