//! System calls made directly: what the hooks pass through to, and what reads and writes the program's memory safely.
//!
//! The hooks stand where libc's functions would: they cannot call those (they would call themselves), and must not
//! allocate or lock. A raw system call does neither, and sets `errno` as libc's function does.

use core::ffi::{c_char, c_int, c_long, c_ulong, c_void};

/// `errno` of this thread.
pub(crate) fn errno() -> c_int {
    // SAFETY: the address of this thread's errno is valid as long as the thread is.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: as above, and nobody else writes it.
    unsafe { *place }
}

/// Set `errno` of this thread, and give the `-1` that goes with it.
pub(crate) fn fail(errno: c_int) -> c_int {
    // SAFETY: the address of this thread's errno is valid as long as the thread is.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: as above, and nobody else writes it.
    unsafe { *place = errno };
    -1
}

/// What a system call that answers an `int` answered.
fn int(answer: c_long) -> c_int {
    c_int::try_from(answer).unwrap_or(-1)
}

/// `open(2)`.
///
/// # Safety
/// `path` as `open(2)` wants it: the kernel checks it.
pub(crate) unsafe fn open(path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int {
    // SAFETY: the kernel checks every argument.
    int(unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path, flags, mode) })
}

/// `stat(2)`.
///
/// # Safety
/// `path` and `stat` as `stat(2)` wants them: the kernel checks them.
pub(crate) unsafe fn stat(path: *const c_char, stat: *mut libc::stat) -> c_int {
    // SAFETY: the kernel checks every argument, and its structure is libc's on 64-bit targets.
    int(unsafe { libc::syscall(libc::SYS_newfstatat, libc::AT_FDCWD, path, stat, 0) })
}

/// The number of the device that a descriptor is open on.
pub(crate) fn device_number(fd: c_int) -> Option<(u32, u32)> {
    let mut stat = core::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: room for the kernel's structure, which is libc's on 64-bit targets.
    let answer = unsafe { libc::syscall(libc::SYS_fstat, fd, stat.as_mut_ptr()) };
    if answer != 0 {
        return None;
    }
    // SAFETY: filled.
    let stat = unsafe { stat.assume_init() };
    (stat.st_mode & libc::S_IFMT == libc::S_IFCHR)
        .then(|| (libc::major(stat.st_rdev), libc::minor(stat.st_rdev)))
}

/// `access(2)`.
///
/// # Safety
/// `path` as `access(2)` wants it: the kernel checks it.
pub(crate) unsafe fn access(path: *const c_char, mode: c_int) -> c_int {
    // SAFETY: the kernel checks every argument.
    int(unsafe { libc::syscall(libc::SYS_faccessat, libc::AT_FDCWD, path, mode) })
}

/// `close(2)`.
pub(crate) fn close(fd: c_int) -> c_int {
    // SAFETY: closing a descriptor touches no memory; whose it is, is the caller's affair as with libc's function.
    int(unsafe { libc::syscall(libc::SYS_close, fd) })
}

/// `write(2)`.
///
/// # Safety
/// `bytes` and `count` as `write(2)` wants them: the kernel checks them.
pub(crate) unsafe fn write(fd: c_int, bytes: *const c_void, count: usize) -> isize {
    // SAFETY: the kernel checks every argument.
    let answer = unsafe { libc::syscall(libc::SYS_write, fd, bytes, count) };
    isize::try_from(answer).unwrap_or(-1)
}

/// `ioctl(2)`.
///
/// # Safety
/// What `ioctl(2)` wants of this request on this descriptor.
pub(crate) unsafe fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    // SAFETY: passed on as the caller gave it.
    int(unsafe { libc::syscall(libc::SYS_ioctl, fd, request, argument) })
}

/// `socket(2)`.
pub(crate) fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    // SAFETY: three numbers; no memory is touched.
    int(unsafe { libc::syscall(libc::SYS_socket, domain, kind, protocol) })
}

/// This process, asked anew: a cached number would be the parent's after a fork.
pub(crate) fn process() -> c_int {
    // SAFETY: touches no memory.
    int(unsafe { libc::syscall(libc::SYS_getpid) })
}

/// Copy from an address that the program named in a command, as the kernel's copy from user space: an address that is
/// not mapped is `EFAULT`, and not the end of the process.
pub(crate) fn copy_from_program(address: u64, bytes: &mut [u8]) -> Result<(), c_int> {
    move_bytes(libc::SYS_process_vm_readv, address, bytes.as_mut_ptr().cast(), bytes.len())
}

/// Copy to an address that the program named in a command; see [`copy_from_program`].
pub(crate) fn copy_to_program(address: u64, bytes: &[u8]) -> Result<(), c_int> {
    move_bytes(libc::SYS_process_vm_writev, address, bytes.as_ptr().cast_mut().cast(), bytes.len())
}

fn move_bytes(call: c_long, address: u64, bytes: *mut c_void, length: usize) -> Result<(), c_int> {
    if length == 0 {
        return Ok(());
    }
    let Ok(address) = usize::try_from(address) else {
        return Err(libc::EFAULT);
    };
    let own = libc::iovec { iov_base: bytes, iov_len: length };
    let theirs = libc::iovec { iov_base: core::ptr::without_provenance_mut(address), iov_len: length };
    // Of the width of a register: the last one is on the stack, where a shorter one leaves the rest to chance.
    let (one, flags): (c_ulong, c_ulong) = (1, 0);
    // SAFETY: `own` is memory of ours of that length; the kernel checks the other address and touches nothing else.
    let moved = unsafe { libc::syscall(call, process(), &raw const own, one, &raw const theirs, one, flags) };
    if usize::try_from(moved).is_ok_and(|moved| moved == length) { Ok(()) } else { Err(libc::EFAULT) }
}
