//! Which process this is, so that what belongs to one is not used by a child that was forked from it: a child has a copy of
//! everything but of what is shared with others.
//!
//! Asking costs no call of the operating system: a page holds a number, and the system wipes it in a child
//! (`MADV_WIPEONFORK`, madvise(2), Linux 4.14), which then takes another number.
#![allow(unsafe_code, reason = "calls of C functions, and a page of memory from one")]

use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// A process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::device) struct Process(u32);

impl Process {
    /// This one.
    #[inline]
    pub(in crate::device) fn current() -> Self {
        let Some(place) = *PLACE.get_or_init(wiped_in_children) else { return Self(std::process::id()) };
        match place.load(Ordering::Relaxed) {
            0 => Self(number(place)),
            number => Self(number),
        }
    }

    /// Whether it is this one.
    #[inline]
    pub(in crate::device) fn is_current(self) -> bool {
        self == Self::current()
    }
}

/// Take a number that none has had of those from which this process comes. Another thread may take one at the same time.
#[cold]
fn number(place: &AtomicU32) -> u32 {
    let new = TAKEN.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
    match place.compare_exchange(0, new, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => new,
        Err(taken) => taken,
    }
}

/// A page of zeros that is one in every child again; `None` where the system has no such thing.
#[cold]
fn wiped_in_children() -> Option<&'static AtomicU32> {
    let (access, how) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: nothing is mapped over; the place is the system's choice.
    let page = unsafe { libc::mmap(ptr::null_mut(), PAGE, access, how, -1, 0) };
    if page == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the page is this function's.
    if unsafe { libc::madvise(page, PAGE, libc::MADV_WIPEONFORK) } != 0 {
        // SAFETY: as above, and nobody has a reference to it.
        unsafe { libc::munmap(page, PAGE) };
        return None;
    }
    // SAFETY: the page is zeros and aligned, is never unmapped from here on, and is used by atomic accesses only.
    Some(unsafe { &*page.cast::<AtomicU32>() })
}

/// At least so long is a page.
const PAGE: usize = 4096;
static PLACE: OnceLock<Option<&'static AtomicU32>> = OnceLock::new();
/// Numbers taken by this process and those from which it was forked.
static TAKEN: AtomicU32 = AtomicU32::new(0);
