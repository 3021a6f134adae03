//! A global allocator that counts, for tests that say that nothing is allocated, or that no more than so much is.
#![allow(dead_code, reason = "not every test uses everything")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts what each thread allocates.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

fn count(allocations: u64, more: usize, less: usize) {
    // A thread that is being torn down counts no more.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + allocations));
    let live = LIVE.try_with(|live| {
        live.set(live.get() + more.cast_signed() - less.cast_signed());
        live.get()
    });
    if let Ok(live) = live {
        let _ = MOST.try_with(|most| most.set(most.get().max(live)));
    }
}

// SAFETY: every call is passed on unchanged to the system's allocator; counting touches no memory of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, layout.size(), 0);
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(0, 0, layout.size());
        // SAFETY: the caller's promise, passed on.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(1, size, layout.size());
        // SAFETY: the caller's promise, passed on.
        unsafe { System.realloc(memory, layout, size) }
    }
}

/// How often this thread allocates meanwhile.
pub(crate) fn allocations_of(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

/// Bytes that this thread allocated and did not free. (Less than none: it freed what others had allocated.)
pub(crate) fn live_bytes() -> isize {
    LIVE.get()
}

/// Bytes that this thread had in use at once meanwhile, at most, beside those it had before.
pub(crate) fn most_bytes_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = LIVE.get();
    MOST.set(before);
    let result = work();
    (result, usize::try_from(MOST.get() - before).unwrap_or(0))
}
