//! What queues and counters have in common: what one waits for them with, and the words for errors.

use std::ffi::CStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use libc::{c_char, c_int, c_void, size_t};

use crate::provider::abi::{self, fi_wait_pollfd};
use crate::provider::error::{Outcome, code, fail};
use crate::provider::wait::WaitSet;

/// The wait object of a queue or a counter.
pub(super) struct WaitObject {
    /// As asked for.
    kind: u32,
    set: Option<Arc<WaitSet>>,
}

impl WaitObject {
    /// # Errors
    /// `FI_ENOSYS`: one that is not offered. `FI_ENOMEM`: no descriptors are left.
    pub(super) fn new(kind: u32) -> Outcome<Self> {
        let set = match u64::from(kind) {
            abi::FI_WAIT_NONE => None,
            abi::FI_WAIT_UNSPEC | abi::FI_WAIT_FD | abi::FI_WAIT_POLLFD | abi::FI_WAIT_YIELD => {
                Some(Arc::new(WaitSet::new().map_err(|_| code(abi::FI_ENOMEM))?))
            }
            _ => return fail(abi::FI_ENOSYS),
        };
        Ok(Self { kind, set })
    }

    pub(super) fn set(&self) -> Option<&Arc<WaitSet>> {
        self.set.as_ref()
    }

    /// `fi_control(3)` with `FI_GETWAIT` or `FI_GETWAITOBJ`.
    ///
    /// # Safety
    /// The argument is that of the command.
    pub(super) unsafe fn control(&self, command: c_int, argument: *mut c_void) -> Outcome<c_int> {
        if argument.is_null() {
            return fail(abi::FI_EINVAL);
        }
        match u64::try_from(command).unwrap_or(u64::MAX) {
            abi::FI_GETWAITOBJ => {
                // SAFETY: the caller's: a place for the kind.
                unsafe { argument.cast::<u32>().write(self.kind) };
                Ok(0)
            }
            abi::FI_GETWAIT => {
                let Some(set) = &self.set else { return fail(abi::FI_ENODATA) };
                match u64::from(self.kind) {
                    abi::FI_WAIT_POLLFD => {
                        // SAFETY: the caller's: a `struct fi_wait_pollfd`.
                        unsafe { write_pollfd(set.descriptor(), argument.cast()) }
                    }
                    abi::FI_WAIT_FD | abi::FI_WAIT_UNSPEC => {
                        // SAFETY: the caller's: a place for a descriptor.
                        unsafe { argument.cast::<c_int>().write(set.descriptor()) };
                        Ok(0)
                    }
                    _ => fail(abi::FI_ENOSYS),
                }
            }
            _ => fail(abi::FI_ENOSYS),
        }
    }
}

/// # Safety
/// A structure with room for the number of descriptors that it says.
unsafe fn write_pollfd(descriptor: c_int, to: *mut fi_wait_pollfd) -> Outcome<c_int> {
    // SAFETY: the caller's.
    let wanted = unsafe { &mut *to };
    let room = std::mem::replace(&mut wanted.nfds, 1);
    wanted.change_index = 1;
    if room < 1 {
        return fail(abi::FI_ETOOSMALL);
    }
    if wanted.fd.is_null() {
        return fail(abi::FI_EINVAL);
    }
    let entry = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
    // SAFETY: the caller's: room for one.
    unsafe { wanted.fd.write(entry) };
    Ok(0)
}

/// When a wait of so many milliseconds is over; never of a negative number.
pub(super) fn deadline(timeout: c_int) -> Option<Instant> {
    let milliseconds = u64::try_from(timeout).ok()?;
    Some(Instant::now() + Duration::from_millis(milliseconds))
}

/// Wait, if there is something to wait with and nothing to do; false if the time is over.
pub(super) fn wait(set: Option<&WaitSet>, deadline: Option<Instant>, is_idle: bool) -> bool {
    let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    if left.is_some_and(|left| left.is_zero()) {
        return false;
    }
    match set {
        Some(set) if is_idle => set.wait(left),
        Some(_) | None => {}
    }
    true
}

/// Words for an error code.
///
/// # Safety
/// Null, or so much room.
pub(super) unsafe fn error_text(error: c_int, buffer: *mut c_char, length: size_t) -> *const c_char {
    let text = words(error.abs());
    if !buffer.is_null() && length > 0 {
        // SAFETY: the caller's.
        unsafe { super::text::write_text(&text.to_string_lossy(), buffer, length) };
        return buffer;
    }
    text.as_ptr()
}

/// Those that operations end with here.
fn words(error: c_int) -> &'static CStr {
    match u64::try_from(error).unwrap_or(u64::MAX) {
        0 => c"success",
        abi::FI_EAGAIN => c"nothing yet",
        abi::FI_ENOMSG => c"no such message",
        abi::FI_ECANCELED => c"the receive was cancelled",
        abi::FI_ETRUNC => c"the message is longer than the buffer",
        abi::FI_ECONNREFUSED => c"nobody listens there",
        abi::FI_ECONNRESET => c"the connection was lost",
        abi::FI_EHOSTUNREACH => c"no connection came about in time",
        abi::FI_EACCES => c"the peer was turned away, or turned this one away",
        abi::FI_ECONNABORTED => c"the peer broke the protocol",
        abi::FI_EIO => c"the payload could not be moved",
        abi::FI_EINVAL => c"what was given makes no sense",
        abi::FI_ENOSYS => c"not offered",
        _ => c"unspecified error",
    }
}
