//! The words of a region. Each side has its own way to them, and what it writes no longer gets there when it has died.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::Ordering;

pub(super) use crate::sync::fence;
pub(super) use loom::sync::atomic::AtomicU64 as Word;

/// How many writes a process does before it dies.
#[derive(Clone, Debug)]
pub(super) struct Life(Rc<Cell<usize>>);

impl Life {
    pub(super) fn of(writes: usize) -> Self {
        Self(Rc::new(Cell::new(writes)))
    }

    /// It writes once more; false: it is dead.
    pub(super) fn writes(&self) -> bool {
        let left = self.0.get();
        self.0.set(left.saturating_sub(1));
        left > 0
    }
}

/// One side's way to a word.
#[derive(Debug)]
pub(super) struct AtomicU64 {
    word: Rc<Word>,
    steps: Rc<Word>,
    life: Life,
}

impl AtomicU64 {
    pub(super) fn new(word: Rc<Word>, steps: Rc<Word>, life: Life) -> Self {
        Self { word, steps, life }
    }

    /// Loom tries another order where it sees that it matters, and remembers of each atomic only who had it last: of two that
    /// load it, not the first. So there is a word that every step stores to. Nobody loads it, so that it orders nothing.
    fn step(&self) {
        self.steps.store(0, Ordering::Relaxed);
    }

    pub(super) fn load(&self, order: Ordering) -> u64 {
        self.step();
        self.word.load(order)
    }

    pub(super) fn store(&self, value: u64, order: Ordering) {
        self.step();
        if self.life.writes() {
            self.word.store(value, order);
        }
    }

    pub(super) fn swap(&self, value: u64, order: Ordering) -> u64 {
        self.step();
        if self.life.writes() { self.word.swap(value, order) } else { 0 }
    }

    pub(super) fn compare_exchange(
        &self,
        old: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        self.step();
        if self.life.writes() { self.word.compare_exchange(old, new, success, failure) } else { Err(0) }
    }
}
