//! Calls of the system that need unsafe code: processors, variables of this process, and its end.
#![allow(unsafe_code, reason = "calls of the system")]

use std::ffi::OsStr;
use std::mem::size_of;

/// The processors that this process may use, in order.
pub(super) fn allowed() -> Vec<usize> {
    // SAFETY: a set of bits, for which zeros are valid.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the place is ours and as large as is said.
    let result = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) };
    if result != 0 {
        return Vec::new();
    }
    // SAFETY: numbers below the size of the set.
    (0..SET).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).collect()
}

/// Stay on this processor from now on, as all threads that begin later do.
pub(super) fn bind(cpu: usize) -> Result<(), String> {
    if cpu >= SET {
        return Err(format!("there is no processor {cpu}"));
    }
    // SAFETY: a set of bits, for which zeros are valid.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: a number below the size of the set.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: the set is ours and as large as is said.
    let result = unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) };
    if result == 0 {
        return Ok(());
    }
    let allowed: Vec<String> = allowed().iter().map(ToString::to_string).collect();
    Err(format!("processor {cpu} cannot be used; allowed are {}", allowed.join(", ")))
}

/// Set a variable of this process, for libraries that look there.
///
/// # Safety
/// There is one thread.
pub(super) unsafe fn set(name: &str, value: impl AsRef<OsStr>) {
    // SAFETY: the caller's.
    unsafe { std::env::set_var(name, value) };
}

/// End this process at once: another thread may be within a library.
pub(super) fn exit(code: i32) -> ! {
    // SAFETY: it takes a number, and does not return.
    unsafe { libc::_exit(code) }
}

/// Processors that a set can name.
const SET: usize = libc::CPU_SETSIZE as usize;
