//! Shared memory in a child that was forked, and in one that may have no files.

use std::ptr;

use super::raw::RING;
use crate::device::shm::region::Region;

/// Whether this is so in a child that is forked for it. It does nothing that takes a lock, memory of the heap for one: threads
/// that hold it have no part in the child.
fn is_so_in_a_child(question: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child calls what is allowed there.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "no process can be had");
    if child == 0 {
        let status = if question() { 0 } else { 1 };
        // SAFETY: the process ends.
        unsafe { libc::_exit(status) };
    }
    let mut status = 0;
    // SAFETY: it is our child, and the place is ours.
    while unsafe { libc::waitpid(child, &raw mut status, 0) } != child {}
    status == 0
}

#[test]
fn what_a_child_has_mapped_in_the_place_of_shared_memory_stays_its_own() {
    let (region, _file) = Region::create(RING).expect("there is memory");
    let place: *mut libc::c_void = ptr::from_ref(region.word(0)).cast_mut().cast();
    assert!(is_so_in_a_child(move || {
        let (access, how) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: nothing of the child is there, or the call fails.
        let mapped = unsafe { libc::mmap(place, 4096, access, how | libc::MAP_FIXED_NOREPLACE, -1, 0) };
        drop(region);
        // SAFETY: an address and a length; what is not mapped is an error.
        mapped == place && unsafe { libc::msync(place, 4096, libc::MS_ASYNC) } == 0
    }));
}

#[test]
fn a_process_that_may_have_no_such_file_is_told_so_and_goes_on() {
    assert!(is_so_in_a_child(|| {
        let limit = libc::rlimit { rlim_cur: 2 * RING as u64, rlim_max: 2 * RING as u64 };
        // SAFETY: the limit is ours, and is copied.
        let is_set = unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) } == 0;
        let errno = Region::create(RING).err().and_then(|error| error.raw_os_error());
        is_set && errno == Some(libc::EFBIG)
    }));
}
