//! What the interposed functions do: one glance at a path or a descriptor, then either the simulated device or the
//! system call that libc's function would have made.
//!
//! The hooks also take std's own calls, those of every other library, and those made between `fork` and `exec`. On
//! the way to the system call they therefore neither allocate nor lock nor panic. [`hca_hooks!`](crate::hca_hooks)
//! defines the symbols in the binary that wants them.

use super::registry;
use super::{lazy, raw};
use core::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use core::sync::atomic::{AtomicU8, Ordering};

/// `open` and `open64`.
///
/// # Safety
/// As `open(2)`. `mode` is read only where the flags ask for one: that it is an ordinary argument here and a
/// variable one there makes no difference in the calling conventions of Linux.
pub unsafe fn open(path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int {
    // SAFETY: the caller's promise.
    if let Some(index) = unsafe { uverbs(path) }
        && lazy::is_simulated(index)
    {
        return open_device(index, flags);
    }
    // SAFETY: the caller's promise.
    unsafe { raw::open(path, flags, mode) }
}

/// A descriptor of `/dev/zero`, which can be mapped as the device's pages can, and a context behind it.
fn open_device(index: u32, flags: c_int) -> c_int {
    let keep = flags & (libc::O_ACCMODE | libc::O_CLOEXEC);
    // SAFETY: a path that ends with a zero.
    let fd = unsafe { raw::open(STAND_IN.as_ptr(), keep, 0) };
    if fd < 0 {
        return fd;
    }
    match registry::open(index, fd) {
        Ok(()) if mark(fd, DEVICE) => fd,
        Ok(()) => {
            registry::close(fd);
            raw::close(fd);
            raw::fail(libc::EMFILE)
        }
        Err(errno) => {
            raw::close(fd);
            raw::fail(errno)
        }
    }
}

/// `stat` and `stat64`.
///
/// # Safety
/// As `stat(2)`.
pub unsafe fn stat(path: *const c_char, stat: *mut libc::stat) -> c_int {
    // SAFETY: the caller's promise.
    let is_simulated = unsafe { uverbs(path) }.is_some_and(lazy::is_simulated);
    let path = if is_simulated { STAND_IN.as_ptr() } else { path };
    // SAFETY: the caller's promise.
    unsafe { raw::stat(path, stat) }
}

/// `access`.
///
/// # Safety
/// As `access(2)`.
pub unsafe fn access(path: *const c_char, mode: c_int) -> c_int {
    // SAFETY: the caller's promise.
    let is_simulated = unsafe { uverbs(path) }.is_some_and(lazy::is_simulated);
    let path = if is_simulated { STAND_IN.as_ptr() } else { path };
    // SAFETY: the caller's promise.
    unsafe { raw::access(path, mode) }
}

/// `close`.
pub fn close(fd: c_int) -> c_int {
    match take_mark(fd) {
        DEVICE => registry::close(fd),
        EVENTS => registry::close_events(fd),
        _ => {}
    }
    raw::close(fd)
}

/// `write`: on a device's descriptor a command.
///
/// # Safety
/// As `write(2)`.
pub unsafe fn write(fd: c_int, bytes: *const c_void, count: usize) -> isize {
    if is_device(fd) {
        return match registry::command(fd, bytes.addr(), count) {
            Ok(()) => isize::try_from(count).unwrap_or(-1),
            Err(errno) => isize::try_from(raw::fail(errno)).unwrap_or(-1),
        };
    }
    // SAFETY: the caller's promise.
    unsafe { raw::write(fd, bytes, count) }
}

/// `ioctl`: a device knows none, which sends libibverbs to the older interface of written commands.
///
/// # Safety
/// As `ioctl(2)`.
pub unsafe fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    if is_device(fd) {
        return raw::fail(libc::ENOTTY);
    }
    // SAFETY: the caller's promise.
    unsafe { raw::ioctl(fd, request, argument) }
}

/// `socket`: the kernel's own list of RDMA devices is out of reach, so that libibverbs reads the tree.
pub fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    if domain == libc::AF_NETLINK && protocol == NETLINK_RDMA && lazy::is_any_simulated() {
        return raw::fail(libc::EPROTONOSUPPORT);
    }
    raw::socket(domain, kind, protocol)
}

/// The number in `/dev/infiniband/uverbs<number>`.
///
/// # Safety
/// A string that ends with a zero, or null.
unsafe fn uverbs(path: *const c_char) -> Option<u32> {
    if path.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    let path = unsafe { CStr::from_ptr(path) };
    let digits = path.to_bytes().strip_prefix(b"/dev/infiniband/uverbs")?;
    if digits.is_empty() || digits.len() > 3 {
        return None;
    }
    digits
        .iter()
        .try_fold(0u32, |number, digit| digit.is_ascii_digit().then(|| number * 10 + u32::from(digit - b'0')))
}

/// Whether a descriptor is a device's. One may have been closed past us (`close_range`, `dup2`) and its number given to
/// something else.
fn is_device(fd: c_int) -> bool {
    if mark_of(fd) != DEVICE {
        return false;
    }
    let is_still = raw::device_number(fd) == Some(STAND_IN_NUMBER);
    if !is_still && take_mark(fd) == DEVICE {
        registry::close(fd);
    }
    is_still
}

/// Remember that a descriptor is ours. Says whether there is room to.
pub(crate) fn mark(fd: c_int, kind: u8) -> bool {
    let place = place(fd);
    if let Some(place) = place {
        place.store(kind, Ordering::Release);
    }
    place.is_some()
}

fn mark_of(fd: c_int) -> u8 {
    place(fd).map_or(NONE, |place| place.load(Ordering::Acquire))
}

fn take_mark(fd: c_int) -> u8 {
    // Most descriptors are nobody's: no write to a shared line for those.
    if mark_of(fd) == NONE {
        return NONE;
    }
    place(fd).map_or(NONE, |place| place.swap(NONE, Ordering::AcqRel))
}

fn place(fd: c_int) -> Option<&'static AtomicU8> {
    usize::try_from(fd).ok().and_then(|fd| MARKS.get(fd))
}

/// Whose a descriptor is, by its number.
static MARKS: [AtomicU8; 1 << 16] = [const { AtomicU8::new(NONE) }; 1 << 16];
const NONE: u8 = 0;
/// A device's.
const DEVICE: u8 = 1;
/// A completion channel's or that of asynchronous events.
pub(crate) const EVENTS: u8 = 2;

/// What stands for the device's node.
const STAND_IN: &CStr = c"/dev/zero";
/// Its number, major and minor.
const STAND_IN_NUMBER: (u32, u32) = (1, 5);
/// Protocol of `rdma(8)`: linux/netlink.h.
const NETLINK_RDMA: c_int = 20;

/// Define the interposed symbols in this binary: `open`, `open64`, `stat`, `stat64`, `access`, `close`, `write`,
/// `ioctl`, `socket`.
///
/// To be written once, at the top of a test binary or a library that is preloaded. All else passes through to the
/// kernel.
#[macro_export]
macro_rules! hca_hooks {
    () => {
        #[allow(missing_docs, unreachable_pub, clippy::missing_safety_doc)]
        mod hca_hook_symbols {
            use $crate::hca_abi::hooks;
            use $crate::hca_abi::hooks::abi::{c_char, c_int, c_ulong, c_void, mode_t, stat as Stat};

            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
                // SAFETY: the caller's promise.
                unsafe { hooks::open(path, flags, mode) }
            }
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
                // SAFETY: the caller's promise.
                unsafe { hooks::open(path, flags, mode) }
            }
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn stat(path: *const c_char, to: *mut Stat) -> c_int {
                // SAFETY: the caller's promise.
                unsafe { hooks::stat(path, to) }
            }
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn stat64(path: *const c_char, to: *mut Stat) -> c_int {
                // SAFETY: the caller's promise.
                unsafe { hooks::stat(path, to) }
            }
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn access(path: *const c_char, mode: c_int) -> c_int {
                // SAFETY: the caller's promise.
                unsafe { hooks::access(path, mode) }
            }
            #[unsafe(no_mangle)]
            pub extern "C" fn close(fd: c_int) -> c_int {
                hooks::close(fd)
            }
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn write(fd: c_int, bytes: *const c_void, count: usize) -> isize {
                // SAFETY: the caller's promise.
                unsafe { hooks::write(fd, bytes, count) }
            }
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
                // SAFETY: the caller's promise.
                unsafe { hooks::ioctl(fd, request, argument) }
            }
            #[unsafe(no_mangle)]
            pub extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
                hooks::socket(domain, kind, protocol)
            }
        }
    };
}

/// The C types that the macro names.
#[doc(hidden)]
pub mod abi {
    pub use core::ffi::{c_char, c_int, c_ulong, c_void};
    pub use libc::{mode_t, stat};
}
