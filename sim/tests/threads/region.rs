//! Memory that two sides share, of loom: words, and bytes of which loom says when two touch one at a time. A side may die:
//! from then on nothing that it stores is there.

use std::cell::Cell;
use std::fmt;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::Ordering;

use super::super::host_memory::Stretch;

loom::thread_local! {
    /// Stores that this thread has left before it dies.
    static LEFT: Cell<usize> = Cell::new(usize::MAX);
    /// Whether one was left out.
    static IS_DEAD: Cell<bool> = Cell::new(false);
}

/// Whether this thread would have died by now: what it saw since is nothing.
pub(crate) fn has_died() -> bool {
    IS_DEAD.with(Cell::get)
}

/// This thread dies after so many stores more.
pub(crate) fn die_after(stores: usize) {
    LEFT.with(|left| left.set(stores));
}

/// Whether a store of this thread's still happens.
fn is_alive() -> bool {
    LEFT.with(|left| {
        let count = left.get();
        left.set(count.saturating_sub(1));
        if count == 0 {
            IS_DEAD.with(|is_dead| is_dead.set(true));
        }
        count > 0
    })
}

#[derive(Debug)]
pub(crate) struct AtomicU64(loom::sync::atomic::AtomicU64);

impl AtomicU64 {
    pub(crate) fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }

    pub(crate) fn store(&self, value: u64, order: Ordering) {
        if is_alive() {
            self.0.store(value, order);
        }
    }

    pub(crate) fn swap(&self, value: u64, order: Ordering) -> u64 {
        if is_alive() { self.0.swap(value, order) } else { self.0.load(Ordering::Relaxed) }
    }

    pub(crate) fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        if is_alive() { self.0.compare_exchange(current, new, success, failure) } else { Err(current) }
    }
}

/// One side's view of the memory.
#[derive(Clone)]
pub(crate) struct Region(Arc<Shared>);

struct Shared {
    /// Those that are used.
    words: Vec<Option<AtomicU64>>,
    areas: [Vec<UnsafeCell<u8>>; 2],
}

// SAFETY: loom finds two threads that touch one byte at a time, and ends the model.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Region {
    /// Areas of so many bytes each, with the words of both rings and those of offers with the key 1 and others of its place.
    pub(crate) fn new(area: usize) -> Self {
        let is_used = |index: usize| matches!(index, 0..=8 | 16 | 32..=40 | 48 | 67..=69);
        let word = |index| is_used(index).then(|| AtomicU64(loom::sync::atomic::AtomicU64::new(0)));
        let bytes = || (0..area).map(|_| UnsafeCell::new(0)).collect();
        Self(Arc::new(Shared { words: (0..WORDS).map(word).collect(), areas: [bytes(), bytes()] }))
    }

    pub(super) fn word(&self, index: usize) -> &AtomicU64 {
        self.0.words[index].as_ref().expect("a word that is used")
    }

    pub(super) fn area(&self) -> usize {
        self.0.areas[0].len()
    }

    fn byte(&self, area: Area, position: u64) -> &UnsafeCell<u8> {
        let bytes = &self.0.areas[area as usize];
        &bytes[usize::try_from(position).expect("it is small") % bytes.len()]
    }

    pub(super) fn put(&self, area: Area, position: u64, bytes: &[u8]) {
        for (byte, at) in bytes.iter().zip(position..) {
            if is_alive() {
                // SAFETY: loom looks whether this thread has it alone.
                self.byte(area, at).with_mut(|place| unsafe { *place = *byte });
            }
        }
    }

    pub(super) fn take(&self, area: Area, position: u64, into: &mut [u8]) {
        for (byte, at) in into.iter_mut().zip(position..) {
            // SAFETY: loom looks whether nobody writes.
            *byte = self.byte(area, at).with(|place| unsafe { *place });
        }
    }

    pub(super) fn put_stretch(&self, _: Area, _: u64, stretch: Stretch, _: usize) {
        match stretch {}
    }

    pub(super) fn take_stretch(&self, _: Area, _: u64, stretch: Stretch, _: usize) {
        match stretch {}
    }

    pub(super) fn fill(stretch: Stretch, _: &[u8]) -> usize {
        match stretch {}
    }

    pub(super) fn drain(stretch: Stretch, _: &mut [u8]) -> usize {
        match stretch {}
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Region")
    }
}

/// Which area.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Area {
    First = 0,
    Second = 1,
}

pub(super) const WORDS: usize = 1024;
