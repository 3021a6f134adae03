//! Where the entries of one list live, and the order of the few newest.
//!
//! The newest entries are *dense*: they lie in a ring of 64 places, in the order in which they came, with holes where
//! some have left, and are searched by looking at each. The rest is *indexed*. When an old dense entry stands in the
//! way of the ring's next place, it becomes indexed; when the ring is more than half full then, all do, and so does
//! what follows, until the list is empty or only young entries are matched. So **every dense entry is newer than
//! every indexed one**. What becomes indexed keeps its place, which the ring leaves out: slots, hence ids, never
//! change. The first 256 slots are those that can be dense, the rest is for indexed entries; all come by regions of 64, so
//! that an index need not ask which it has found. While the list is dense the ring's region lies apart, for it is nearer
//! that way.
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
    /// What [`Store::take_indexed`] seeks.
    type Sought: Copy;
    /// Whether it is that, and alone of its key. A method, since a closure would be called.
    fn is_sought(&self, slot: u32, sought: Self::Sought) -> bool;
}

/// See the head of this file.
#[derive(Clone)]
pub(super) struct Store<T> {
    /// The ring's region while the list is dense.
    ring: Option<Box<Region<T>>>,
    /// A bit for each place with a dense entry: bit 0 for the place of the next entry, bit 1 for the one after it in the
    /// ring, and so on. So from bit 0 on they are in order of age, and the newest place is bit 63.
    held: u64,
    /// A bit for each place that the ring leaves out: all while the list is not dense. May be more than it must, until
    /// room is made.
    barred: u64,
    /// The first slot of the ring's region.
    base: u32,
    /// How many entries are indexed.
    indexed: u32,
    /// The next entry's sequence number, from 1. Modulo 64 it is the next entry's place in the ring. Numbers may be left
    /// out.
    next_sequence: u64,
    /// The sequence number of the indexed entry that was matched last.
    last_taken: u64,
    /// Entries that became indexed, one after the other, when that one was young.
    young_streak: u32,
    /// The region that indexed entries join, from the fifth on.
    filling: u32,
    /// How many others are open: have free places, and have been full.
    open_len: u32,
    /// The first region that has not been filled, or not since no entry was indexed.
    unused: u32,
    /// The open regions, a stack with room for all.
    open: Chunks<u32, OPEN_REGIONS>,
    regions: Vec<Slots<T>>,
    /// The places that may be used.
    allowed: u64,
}

impl<T: Entry> Store<T> {
    pub(super) const fn new(dense_limit: u32) -> Self {
        Self {
            ring: None,
            held: 0,
            barred: u64::MAX,
            base: 0,
            indexed: 0,
            next_sequence: 1,
            last_taken: 0,
            young_streak: 0,
            filling: REGIONS,
            open_len: 0,
            unused: REGIONS + 1,
            open: Chunks::new(),
            regions: Vec::new(),
            allowed: if dense_limit >= PLACES { u64::MAX } else { (1 << dense_limit) - 1 },
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

    /// Whether new entries are indexed: some are, and no row of young ones has been matched.
    #[inline(always)]
    pub(super) const fn is_indexed(&self) -> bool {
        !self.is_dense() && self.indexed != 0 && self.young_streak <= STREAK
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
        let regions = self.regions.iter().map(|slots| &slots.memory).chain([&self.ring]).flatten().count();
        let table = self.regions.capacity() * size_of::<Slots<T>>();
        size_of::<Self>() + regions * size_of::<Region<T>>() + table + self.open.bytes()
    }

    /// The entry in a slot, whatever number that is. May be free.
    #[inline]
    pub(super) fn get(&self, slot: u32) -> Option<&T> {
        let region = match &self.regions.get((slot / PLACES) as usize)?.memory {
            Some(region) => region,
            None if slot / PLACES == self.base / PLACES => self.ring.as_ref()?,
            None => return None,
        };
        Some(&region.0[(slot % PLACES) as usize])
    }

    #[inline]
    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut T> {
        let region = match &mut self.regions.get_mut((slot / PLACES) as usize)?.memory {
            Some(region) => region,
            None if slot / PLACES == self.base / PLACES => self.ring.as_mut()?,
            None => return None,
        };
        Some(&mut region.0[(slot % PLACES) as usize])
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
        let entry = &self.ring.as_ref()?.0[(slot % PLACES) as usize];
        let is_it = slot & !(PLACES - 1) == self.base && low(entry.sequence()) == generation;
        (is_it && entry.sequence() != 0).then_some(entry)
    }

    /// Take out a dense entry. Budget: 10 instructions.
    #[inline(always)]
    pub(super) fn remove_dense(&mut self, slot: u32) {
        self.held &= !(1 << (slot.wrapping_sub(low(self.next_sequence)) % PLACES));
        if let Some(region) = &mut self.ring {
            region.0[(slot % PLACES) as usize].retire();
        }
    }

    /// An entry in a slot that an index or the ring names.
    #[inline(always)]
    pub(super) fn at(&self, slot: u32) -> &T {
        self.get(slot).unwrap_or_else(|| unreachable!("the region of an entry is there"))
    }

    #[inline(always)]
    pub(super) fn at_mut(&mut self, slot: u32) -> &mut T {
        self.get_mut(slot).unwrap_or_else(|| unreachable!("the region of an entry is there"))
    }

    /// The first dense entry that `fits`. Budget: 8 instructions, and 7 an entry beside `fits`.
    #[inline(always)]
    pub(super) fn find_dense(&mut self, fits: impl Fn(&T) -> bool) -> Option<Dense<'_, T>> {
        let mut left = self.held;
        if left == 0 {
            return None;
        }
        let region = &mut self.ring.as_mut()?.0;
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
        let region = &mut self.ring.as_mut()?.0;
        self.held = (self.held | 1).rotate_right(1);
        self.next_sequence = sequence + 1;
        Some((self.base | place, sequence, &mut region[place as usize]))
    }

    /// [`Self::next_dense`] found no room: whether there is some now. If not, the caller must move what
    /// [`Self::spill`] yields to its indexes, and ask again before it indexes the entry.
    pub(super) fn make_room(&mut self, filler: impl FnOnce() -> T) -> bool {
        if self.allowed == 0 || self.is_indexed() {
            return false;
        }
        self.young_streak = 0;
        if self.regions.is_empty() {
            self.regions.resize_with(REGIONS as usize, Slots::none);
            self.regions[0].memory = Some(Region::filled(filler()));
        }
        if self.is_dense() {
            self.unbar();
        } else if !self.enter_dense() {
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
        let Some(region) = self.regions.get_mut((self.base / PLACES) as usize) else { return slots };
        region.taken |= places;
        self.indexed += places.count_ones();
        if all {
            (self.barred, self.young_streak) = (u64::MAX, 0);
            region.memory = self.ring.take().or(region.memory.take());
        } else {
            self.barred |= places;
        }
        slots
    }

    /// Where the next entry goes outside the dense ones: its slot, its sequence number, and what to write. `filler`
    /// fills new memory.
    #[inline(always)]
    pub(super) fn next_indexed(&mut self, filler: impl FnOnce() -> T) -> (u32, u64, &mut T) {
        let slot = match self.next_slot() {
            Some(slot) => slot,
            None => self.grow(filler),
        };
        let (sequence, entry) = self.enter_indexed(slot);
        (slot, sequence, entry)
    }

    /// Where the next entry goes, if new ones are indexed and there is memory. Budget: 16 instructions.
    #[inline(always)]
    pub(super) fn next_indexed_slot(&mut self) -> Option<u32> {
        if self.is_indexed() { self.next_slot() } else { None }
    }

    #[inline(always)]
    fn next_slot(&mut self) -> Option<u32> {
        let mut taken = self.regions.get(self.filling as usize)?.taken;
        if taken == u64::MAX {
            self.filling = if let Some(top) = self.open_len.checked_sub(1) {
                self.open_len = top;
                *self.open.at(top as usize)
            } else {
                self.unused += 1;
                self.unused - 1
            };
            taken = self.regions.get(self.filling as usize)?.taken;
        }
        Some(self.filling * PLACES + taken.trailing_ones())
    }

    /// An entry joins the indexed ones, in the slot that was named next: its sequence number, and what to write. Budget:
    /// 20 instructions.
    #[inline(always)]
    pub(super) fn enter_indexed(&mut self, slot: u32) -> (u64, &mut T) {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.indexed += 1;
        // If only young ones are matched for a while, whatever else waits is a bystander, and new entries become dense.
        let is_old = sequence - self.last_taken > YOUNG;
        self.young_streak = if is_old { 0 } else { self.young_streak + 1 };
        if let Some(slots) = self.regions.get_mut((slot / PLACES) as usize) {
            slots.taken |= 1 << (slot % PLACES);
        }
        (sequence, self.at_mut(slot))
    }

    /// One more region, which is the one that is filled now: its first slot.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, filler: impl FnOnce() -> T) -> u32 {
        if self.regions.is_empty() {
            self.regions.resize_with(REGIONS as usize, Slots::none);
        }
        self.filling = low(self.regions.len() as u64);
        self.unused = self.filling + 1;
        // Made here, so that only who comes here has room for it on the stack.
        self.regions.push(Slots { taken: 0, memory: Some(Region::filled(filler())) });
        self.open.reach(self.regions.len(), 0);
        self.filling * PLACES
    }

    /// Take out the indexed entry of a slot if it is what is sought, as one that was matched, or whatever it is if nothing
    /// is: its sequence number, and
    /// itself, which can be read until the next entry joins the list. Makes no call. Budget: 35 instructions, and those of
    /// the look.
    #[inline(always)]
    pub(super) fn take_indexed(&mut self, slot: u32, sought: Option<T::Sought>) -> Option<(u64, &T)> {
        // As in `get_mut`, which would take hold of all.
        let slots = self.regions.get_mut((slot / PLACES) as usize)?;
        let region = match &mut slots.memory {
            Some(region) => region,
            None => self.ring.as_mut()?,
        };
        let entry = &mut region.0[(slot % PLACES) as usize];
        if let Some(sought) = sought
            && !entry.is_sought(slot, sought)
        {
            return None;
        }
        let sequence = entry.sequence();
        entry.release();
        if sought.is_some() {
            self.last_taken = sequence;
        }
        self.indexed -= 1;
        let was_full = slots.taken == u64::MAX;
        slots.taken &= !(1 << (slot % PLACES));
        if was_full && slot >= LOW_SLOTS && slot / PLACES != self.filling {
            *self.open.at_mut(self.open_len as usize) = slot / PLACES;
            self.open_len += 1;
        }
        Some((sequence, entry))
    }

    /// An indexed entry with this sequence number was matched, and has left by [`Self::remove_indexed`] or stays.
    #[inline]
    pub(super) const fn matched_indexed(&mut self, sequence: u64) {
        self.last_taken = sequence;
    }

    /// Take out an indexed entry that was not matched, or whose match is noted apart. Budget: 25 instructions.
    #[inline(always)]
    pub(super) fn remove_indexed(&mut self, slot: u32) {
        self.take_indexed(slot, None);
    }

    /// Call with each occupied slot, dense or indexed, in slot order.
    #[inline(always)]
    pub(super) fn for_each(&self, mut each: impl FnMut(u32, &T)) {
        let mut each_occupied = |slot, entry: &T| {
            if entry.sequence() != 0 {
                each(slot, entry);
            }
        };
        for (number, slots) in (0..).zip(&self.regions).take(self.unused as usize) {
            let first = number * PLACES;
            let ring = self.ring.as_ref().filter(|_| first == self.base);
            let Some(region) = slots.memory.as_ref().or(ring) else { continue };
            for (slot, entry) in (first..).zip(&region.0) {
                each_occupied(slot, entry);
            }
        }
    }

    /// The same in any order, and none is looked at where there is none: how many slots were.
    pub(super) fn for_each_of_any(&self, mut each: impl FnMut(&T)) -> usize {
        if self.is_empty() {
            return 0;
        }
        self.for_each(|_, entry| each(entry));
        (self.unused * PLACES) as usize
    }

    /// Call with each part of memory that may hold entries, in slot order: its first slot, and all of it.
    #[inline(always)]
    pub(super) fn for_each_part_mut(&mut self, mut each: impl FnMut(u32, &mut [T])) {
        let base = self.base;
        for (number, slots) in (0..).zip(&mut self.regions).take(self.unused as usize) {
            let first = number * PLACES;
            let ring = self.ring.as_mut().filter(|_| first == base);
            if let Some(region) = slots.memory.as_mut().or(ring) {
                each(first, &mut region.0);
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

    /// Make the region with the fewest indexed entries the ring's: whether it has room.
    #[cold]
    #[inline(never)]
    fn enter_dense(&mut self) -> bool {
        let usable = |region: &u32| (self.allowed & !self.taken(*region)).count_ones();
        let Some(region) = (0..REGIONS).rev().max_by_key(usable) else { return false };
        if usable(&region) <= self.allowed.count_ones() / 2 {
            return false;
        }
        // What is copied may be indexed.
        let Some(filler) = self.regions.iter().find_map(|slots| slots.memory.as_ref()) else { return false };
        let filler = filler.0[0];
        let known = self.regions[region as usize].memory.take();
        self.ring = Some(known.unwrap_or_else(|| Region::filled(filler)));
        self.base = region * PLACES;
        self.unbar();
        if self.indexed == 0 {
            // From the beginning again, in the order of memory.
            (self.filling, self.open_len, self.unused) = (REGIONS, 0, REGIONS + 1);
        }
        true
    }

    /// The ring leaves out what it must.
    fn unbar(&mut self) {
        self.barred = self.taken(self.base / PLACES) | !self.allowed;
    }

    fn taken(&self, region: u32) -> u64 {
        self.regions.get(region as usize).map_or(0, |slots| slots.taken)
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
        assert_eq!(self.is_dense(), self.ring.is_some());
        let mut taken = vec![0; self.regions.len()];
        self.for_each(|slot, entry| {
            taken[(slot / PLACES) as usize] |= u64::from(!is_dense_entry(entry)) << (slot % PLACES);
        });
        let open: Vec<u32> = (0..self.open_len).map(|at| *self.open.at(at as usize)).collect();
        for (number, (slots, taken)) in (0..).zip(self.regions.iter().zip(taken)) {
            assert_eq!(slots.taken, taken);
            let is_open =
                number >= REGIONS && number < self.unused && number != self.filling && taken != u64::MAX;
            assert_eq!(open.iter().filter(|open| **open == number).count(), usize::from(is_open));
        }
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

/// A region's slots.
#[derive(Clone)]
struct Slots<T> {
    /// A bit for each place with an indexed entry.
    taken: u64,
    /// None while it is the ring's, and if it was not needed yet.
    memory: Option<Box<Region<T>>>,
}

impl<T> Slots<T> {
    const fn none() -> Self {
        Self { taken: 0, memory: None }
    }
}

/// Slots next to each other.
#[derive(Clone)]
#[repr(align(64))]
struct Region<T>([T; PLACES as usize]);

impl<T: Entry> Region<T> {
    #[cold]
    #[inline(never)]
    fn filled(mut filler: T) -> Box<Self> {
        filler.release();
        Box::new(Self([filler; PLACES as usize]))
    }
}

/// No slot at all.
pub(super) const NO_SLOT: u32 = u32::MAX;
/// Places of a region.
pub(super) const PLACES: u32 = 64;
/// Regions that can be the ring's.
const REGIONS: u32 = 4;
const LOW_SLOTS: u32 = PLACES * REGIONS;
/// Open regions of a chunk: 4 KiB.
const OPEN_REGIONS: usize = 1024;
/// An entry is young while fewer than so many came after it.
const YOUNG: u64 = 32;
/// So many in a row make a list dense again.
const STREAK: u32 = 32;
