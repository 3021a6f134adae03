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
    /// Matches of young indexed entries since the last match of an old one.
    young_streak: u32,
    /// How many slots are free of those that cannot be dense and were used.
    free_len: u32,
    /// The first slot that was never used, or not since no entry was indexed.
    unused_slot: u32,
    /// Slots that there is memory for.
    slots: u32,
    /// The free slots, a stack. Apart from the entries, so that taking one does not wait for an entry's memory.
    free: Chunks<u32, FREE_SLOTS>,
    /// All regions; none in place of the one that lies apart, and of those of the first four that were not needed yet.
    regions: Vec<Option<Box<Region<T>>>>,
    /// A bit for each place of each region with an indexed entry. The last word is of no region, and means nothing.
    pinned: [u64; REGIONS as usize + 1],
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
            young_streak: 0,
            free_len: 0,
            unused_slot: LOW_SLOTS,
            slots: 0,
            free: Chunks::new(),
            regions: Vec::new(),
            pinned: [0; REGIONS as usize + 1],
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
        let regions = self.regions.iter().chain([&self.ring]).flatten().count();
        let table = self.regions.capacity() * size_of::<usize>();
        size_of::<Self>() + regions * size_of::<Region<T>>() + table + self.free.bytes()
    }

    /// The entry in a slot, whatever number that is. May be free.
    #[inline]
    pub(super) fn get(&self, slot: u32) -> Option<&T> {
        let region = match self.regions.get((slot / PLACES) as usize)? {
            Some(region) => region,
            None if slot / PLACES == self.base / PLACES => self.ring.as_ref()?,
            None => return None,
        };
        Some(&region.0[(slot % PLACES) as usize])
    }

    #[inline]
    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut T> {
        let region = match self.regions.get_mut((slot / PLACES) as usize)? {
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
        if self.ring.is_none() && self.regions.iter().all(Option::is_none) {
            self.regions.resize_with(REGIONS as usize, || None);
            self.regions[0] = Some(Region::filled(filler()));
            self.note_memory();
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
        self.pinned[(self.base / PLACES % REGIONS) as usize] |= places;
        self.indexed += places.count_ones();
        if all {
            (self.barred, self.young_streak) = (u64::MAX, 0);
            if let Some(ring) = self.ring.take() {
                self.regions[(self.base / PLACES) as usize] = Some(ring);
            }
        } else {
            self.barred |= places;
        }
        slots
    }

    /// Where the next entry goes outside the dense ones: its slot, its sequence number, and what to write. `filler`
    /// fills new memory.
    #[inline(always)]
    pub(super) fn next_indexed(&mut self, filler: impl FnOnce() -> T) -> (u32, u64, &mut T) {
        if self.free_len == 0 && self.unused_slot >= self.slots {
            self.grow(filler);
        }
        let slot = self.next_slot().unwrap_or_else(|| unreachable!("room was made"));
        let (sequence, entry) = self.enter_indexed(slot);
        (slot, sequence, entry)
    }

    /// Where the next entry goes, if new ones are indexed and there is memory. Budget: 14 instructions.
    #[inline(always)]
    pub(super) fn next_indexed_slot(&self) -> Option<u32> {
        if self.is_indexed() { self.next_slot() } else { None }
    }

    #[inline(always)]
    fn next_slot(&self) -> Option<u32> {
        match self.free_len.checked_sub(1) {
            Some(top) => Some(*self.free.at(top as usize)),
            None => (self.unused_slot < self.slots).then_some(self.unused_slot),
        }
    }

    /// An entry joins the indexed ones, in the slot that was named next: its sequence number, and what to write. Budget:
    /// 16 instructions.
    #[inline(always)]
    pub(super) fn enter_indexed(&mut self, slot: u32) -> (u64, &mut T) {
        if self.free_len == 0 {
            self.unused_slot += 1;
        } else {
            self.free_len -= 1;
        }
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.indexed += 1;
        (sequence, self.at_mut(slot))
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, filler: impl FnOnce() -> T) {
        if self.regions.is_empty() {
            self.regions.resize_with(REGIONS as usize, || None);
        }
        // Made here, so that only who comes here has room for it on the stack.
        self.regions.push(Some(Region::filled(filler())));
        self.note_memory();
    }

    fn note_memory(&mut self) {
        self.slots = low(self.regions.len() as u64) * PLACES;
    }

    /// Take out the indexed entry of a slot if it is what is sought, as one that was matched: its sequence number, and
    /// itself, which can be read until the next entry joins the list. None as well if there is no room to note that the
    /// slot is free. Makes no call. Budget: 35 instructions, and those of the look.
    #[inline(always)]
    pub(super) fn take_indexed(&mut self, slot: u32, sought: Option<T::Sought>) -> Option<(u64, &T)> {
        // As in `get_mut`, which would take hold of all.
        let region = match self.regions.get_mut((slot / PLACES) as usize)? {
            Some(region) => region,
            None => self.ring.as_mut()?,
        };
        let entry = &mut region.0[(slot % PLACES) as usize];
        let top = self.free.get_mut(self.free_len as usize)?;
        if let Some(sought) = sought
            && !entry.is_sought(slot, sought)
        {
            return None;
        }
        let sequence = entry.sequence();
        entry.release();
        // If only young ones are matched for a while, whatever else waits is a bystander, and new entries become dense
        // when the next one comes.
        let is_old = self.next_sequence - sequence > YOUNG;
        self.young_streak = if is_old { 0 } else { self.young_streak.wrapping_add(1) };
        self.indexed -= 1;
        // Without a branch, as where an entry lies is as good as random.
        self.pinned[(slot / PLACES).min(REGIONS) as usize] &= !(1 << (slot % PLACES));
        *top = slot;
        self.free_len += u32::from(slot >= LOW_SLOTS);
        Some((sequence, entry))
    }

    /// An indexed entry with this sequence number was matched: see [`Self::take_indexed`].
    #[inline]
    pub(super) const fn matched_indexed(&mut self, sequence: u64) {
        let is_old = self.next_sequence - sequence > YOUNG;
        self.young_streak = if is_old { 0 } else { self.young_streak.wrapping_add(1) };
    }

    /// Take out an indexed entry that was not matched, or whose match is noted apart. Budget: 25 instructions.
    #[inline(always)]
    pub(super) fn remove_indexed(&mut self, slot: u32) {
        self.free.reach(self.free_len as usize, 0);
        let streak = self.young_streak;
        self.take_indexed(slot, None);
        self.young_streak = streak;
    }

    /// Call with each occupied slot, dense or indexed, in slot order.
    #[inline(always)]
    pub(super) fn for_each(&self, mut each: impl FnMut(u32, &T)) {
        let mut each_occupied = |slot, entry: &T| {
            if entry.sequence() != 0 {
                each(slot, entry);
            }
        };
        for (number, region) in (0..).zip(&self.regions) {
            let first = number * PLACES;
            let ring = self.ring.as_ref().filter(|_| first == self.base);
            let Some(region) = region.as_ref().or(ring).filter(|_| first < self.unused_slot) else {
                continue;
            };
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
        self.unused_slot as usize
    }

    /// Call with each part of memory that may hold entries, in slot order: its first slot, and all of it.
    #[inline(always)]
    pub(super) fn for_each_part_mut(&mut self, mut each: impl FnMut(u32, &mut [T])) {
        let (base, unused) = (self.base, self.unused_slot);
        for (number, region) in (0..).zip(&mut self.regions) {
            let first = number * PLACES;
            let ring = self.ring.as_mut().filter(|_| first == base);
            if let Some(region) = region.as_mut().or(ring).filter(|_| first < unused) {
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
        let usable = |region: &u32| (self.allowed & !self.pinned[*region as usize]).count_ones();
        let Some(region) = (0..REGIONS).rev().max_by_key(usable) else { return false };
        if usable(&region) <= self.allowed.count_ones() / 2 {
            return false;
        }
        // What is copied may be indexed.
        let Some(filler) = self.regions.iter().flatten().next().map(|region| region.0[0]) else {
            return false;
        };
        let known = self.regions[region as usize].take();
        self.ring = Some(known.unwrap_or_else(|| Region::filled(filler)));
        self.base = region * PLACES;
        self.unbar();
        if self.indexed == 0 {
            // From the beginning again, in the order of memory.
            (self.free_len, self.unused_slot) = (0, LOW_SLOTS);
        }
        true
    }

    /// The ring leaves out what it must.
    const fn unbar(&mut self) {
        self.barred = self.pinned[(self.base / PLACES % REGIONS) as usize] | !self.allowed;
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
        let free = self.free_len as usize;
        for at in 0..free {
            assert_eq!(self.at(*self.free.at(at)).sequence(), 0);
        }
        let low_indexed = self
            .in_order(|entry| !is_dense_entry(entry))
            .iter()
            .filter(|(_, slot)| *slot < LOW_SLOTS)
            .count();
        assert_eq!((self.unused_slot - LOW_SLOTS) as usize, free + self.indexed() as usize - low_indexed);
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
/// Free slots of a chunk: 4 KiB.
const FREE_SLOTS: usize = 1024;
/// An entry is young while fewer than so many came after it.
const YOUNG: u64 = 32;
/// So many young matches in a row make a list dense again.
const STREAK: u32 = 32;
