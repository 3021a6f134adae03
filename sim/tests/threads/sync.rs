//! The primitives under the owner lock and the rings, of loom.
//!
//! The mutex is as `std`'s over a futex: one exchange to lock, whose failure is a relaxed look and may be at what was before; one
//! store to unlock. The queue promises less than crossbeam's: how long it is may be read late, unless something else stands
//! between. So whatever holds with these does with those.

use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;

use loom::cell::{MutPtr, UnsafeCell};
use loom::sync::atomic::AtomicUsize;

pub(super) use loom::sync::atomic::{AtomicBool, Ordering};
pub(super) use std::sync::TryLockError;

thread_local! {
    /// All threads of a model are run by one.
    static WITHOUT: Cell<Option<Ordering>> = const { Cell::new(None) };
}

/// Run without fences of this order.
pub(super) fn without_fences(order: Ordering, model: &impl Fn()) {
    struct Restore;
    impl Drop for Restore {
        fn drop(&mut self) {
            WITHOUT.set(None);
        }
    }
    let _restore = Restore;
    WITHOUT.set(Some(order));
    model();
}

pub(super) fn fence(order: Ordering) {
    if WITHOUT.get() != Some(order) {
        loom::sync::atomic::fence(order);
    }
}

/// Steps that tests of the library itself hook into.
#[derive(Clone, Copy, Debug)]
pub(super) enum Moment {
    Queueing,
    Unlocking,
    Looking,
}

/// Loom stops everywhere by itself.
pub(super) fn pause(_: Moment) {}

pub(super) struct Mutex<T> {
    is_locked: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: whoever has the lock has the value alone.
unsafe impl<T: Send> Sync for Mutex<T> {}

impl<T> Mutex<T> {
    pub(super) fn new(value: T) -> Self {
        Self { is_locked: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    pub(super) fn try_lock(&self) -> Result<MutexGuard<'_, T>, TryLockError<MutexGuard<'_, T>>> {
        let is_free = !self.is_locked.load(Ordering::Relaxed);
        let exchanged = is_free
            && self.is_locked.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if exchanged { Ok(self.guard()) } else { Err(TryLockError::WouldBlock) }
    }

    pub(super) fn lock(&self) -> Result<MutexGuard<'_, T>, PoisonError<MutexGuard<'_, T>>> {
        while self.is_locked.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
            loom::thread::yield_now();
        }
        Ok(self.guard())
    }

    fn guard(&self) -> MutexGuard<'_, T> {
        MutexGuard { mutex: self, value: Some(self.value.get_mut()) }
    }

    pub(super) fn into_inner(self) -> Result<T, PoisonError<T>> {
        Ok(self.value.into_inner())
    }
}

impl<T> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mutex")
    }
}

/// A panic ends a model.
pub(super) fn clear_poison<T>(_: &Mutex<T>) {}

pub(super) struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    value: Option<MutPtr<T>>,
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        let value = self.value.as_ref().expect("until it is dropped");
        // SAFETY: whoever has the lock has the value alone, and loom looks whether that is so.
        unsafe { MutPtr::deref(value) }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        let value = self.value.as_ref().expect("until it is dropped");
        // SAFETY: as above.
        unsafe { MutPtr::deref(value) }
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        self.value = None;
        self.mutex.is_locked.store(false, Ordering::Release);
    }
}

/// A bounded queue. What is in it is ordered; how long it is may be read late.
#[derive(Debug)]
pub(super) struct Queue<W> {
    works: loom::sync::Mutex<VecDeque<W>>,
    len: AtomicUsize,
    capacity: usize,
}

impl<W> Queue<W> {
    pub(super) fn new(capacity: usize) -> Self {
        Self { works: loom::sync::Mutex::new(VecDeque::new()), len: AtomicUsize::new(0), capacity }
    }

    pub(super) const fn capacity(&self) -> usize {
        self.capacity
    }

    pub(super) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn push(&self, work: W) -> Result<(), W> {
        let mut works = self.works.lock().expect("no panic");
        if works.len() == self.capacity {
            return Err(work);
        }
        works.push_back(work);
        self.len.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn pop(&self) -> Option<W> {
        let mut works = self.works.lock().expect("no panic");
        let work = works.pop_front()?;
        self.len.fetch_sub(1, Ordering::Relaxed);
        Some(work)
    }
}

/// A byte that is no atomic: that two threads have it at once is found.
#[derive(Debug)]
pub(super) struct Byte(UnsafeCell<u8>);

impl Byte {
    pub(super) fn new() -> Self {
        Self(UnsafeCell::new(0))
    }

    pub(super) fn get(&self) -> u8 {
        // SAFETY: loom looks whether nobody writes it meanwhile.
        self.0.with(|byte| unsafe { *byte })
    }

    pub(super) fn set(&self, value: u8) {
        // SAFETY: loom looks whether nobody else has it.
        self.0.with_mut(|byte| unsafe { *byte = value });
    }
}
