//! Strings and names in buffers of the application's.

use std::ffi::CStr;
use std::ptr;

use libc::{c_char, size_t};

use crate::provider::abi;
use crate::provider::error::{Outcome, code, fail};

/// Write as much as there is room for, with a 0 behind it.
///
/// # Safety
/// Null, or so much room.
pub(super) unsafe fn write_text(text: &str, buffer: *mut c_char, room: usize) {
    if buffer.is_null() || room == 0 {
        return;
    }
    let length = text.len().min(room - 1);
    // SAFETY: the caller's, and the text is so long.
    unsafe { ptr::copy_nonoverlapping(text.as_ptr(), buffer.cast(), length) };
    // SAFETY: there is one byte more.
    let end = unsafe { buffer.add(length) };
    // SAFETY: as before.
    unsafe { end.write(0) };
}

/// # Safety
/// Null, or a string that ends with 0.
///
/// # Errors
/// `FI_EINVAL`: null, or no text.
pub(super) unsafe fn read_text(pointer: *const c_char) -> Outcome<String> {
    if pointer.is_null() {
        return fail(abi::FI_EINVAL);
    }
    // SAFETY: the caller's.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map(str::to_owned).map_err(|_| code(abi::FI_EINVAL))
}

/// Write a name as `fi_getname(3)` does: as much as there is room for, and how long it is.
///
/// # Safety
/// A length, and so much room (null with none).
///
/// # Errors
/// `FI_ETOOSMALL`: there was less room. `FI_EINVAL`: no length.
pub(super) unsafe fn write_name(name: &[u8], buffer: *mut u8, length: *mut size_t) -> Outcome<()> {
    if length.is_null() {
        return fail(abi::FI_EINVAL);
    }
    // SAFETY: the caller's.
    let room = unsafe { length.read() };
    // SAFETY: the caller's.
    unsafe { length.write(name.len()) };
    if !buffer.is_null() {
        // SAFETY: the caller's, and the name is at least as long as what is copied.
        unsafe { ptr::copy_nonoverlapping(name.as_ptr(), buffer, name.len().min(room)) };
    }
    if room < name.len() || buffer.is_null() { fail(abi::FI_ETOOSMALL) } else { Ok(()) }
}
