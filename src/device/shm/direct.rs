//! Reading another process's memory in one copy (`process_vm_readv(2)`), where the system lets this one.
//!
//! It lets processes of one user, unless a security module or a container forbids that; then the bytes come through the
//! ring. Nobody is asked for what is read, so that the owner's word that it may be (`Table`) is looked for before and after.
//!
//! Not here: what is read, and why.

use std::io;

use crate::device::host_memory::Stretch;

/// Copy from a process's memory into stretches, which are at most `length` bytes.
///
/// # Errors
/// The process is gone (`ESRCH`), is not to be read (`EPERM`, `ENOSYS`), or has no such memory (`EFAULT`).
pub(super) fn read(
    process: libc::pid_t,
    address: u64,
    stretches: impl Iterator<Item = Stretch>,
) -> io::Result<()> {
    let mut from = address;
    for stretch in stretches {
        let mut done = 0;
        while done < stretch.length() {
            let left = stretch.length() - done;
            let pointer = stretch.pointer().wrapping_add(done);
            let local = libc::iovec { iov_base: pointer.cast(), iov_len: left };
            let base = usize::try_from(from).map_err(|_| io::Error::from_raw_os_error(libc::EFAULT))?;
            let remote = libc::iovec { iov_base: std::ptr::without_provenance_mut(base), iov_len: left };
            // SAFETY: the stretch is the host's promise; the other address is none of this process's, and is not followed
            // here.
            let count =
                unsafe { libc::process_vm_readv(process, &raw const local, 1, &raw const remote, 1, 0) };
            let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
            if count == 0 {
                return Err(io::Error::from_raw_os_error(libc::EFAULT));
            }
            done += count;
            from = from.saturating_add(count as u64);
        }
    }
    Ok(())
}
