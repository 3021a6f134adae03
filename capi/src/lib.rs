//! The C library: `tagmatch.h`, `libtagmatch.so.0` and `libtagmatch.a`. docs/embed.md says how to use it.
//!
//! ```text
//!  C ── tm_engine_…   ── engine   ┐
//!    ── tm_endpoint_… ── endpoint ┴─► ffi: pointers, panics ─► domain: one call at a time ─► the crate `tagmatch`
//! ```
//!
//! What is here translates: plain data of C to that of the crate and back, and errors to negative codes of `errno(3)`.
//! What things mean is the crate's, and each call says which of its items it stands for. The header is generated from these
//! sources by cbindgen and committed; the Makefile makes the shared library with versioned symbols out of the archive.

#![allow(non_camel_case_types, reason = "these are the names that C knows")]
#![allow(unsafe_code, reason = "calls from C: pointers that nobody but the caller can vouch for")]

mod clock;
pub mod endpoint;
pub mod engine;
mod error;
mod ffi;
pub mod memory;

use std::ffi::{c_char, c_int};

pub use error::{tm_last_error, tm_strerror};

/// Of this header. The first number changes when programs have to be compiled anew.
pub const TM_VERSION_MAJOR: u32 = 0;
/// Of this header. The second number changes when something was added; while the first is 0, also when programs have to
/// be compiled anew.
pub const TM_VERSION_MINOR: u32 = 1;
/// Of this header.
pub const TM_VERSION_PATCH: u32 = 0;

/// The version of the library that is loaded: major << 16 | minor << 8 | patch. Any thread may call it at any time.
#[unsafe(no_mangle)]
pub extern "C" fn tm_version() -> u32 {
    TM_VERSION_MAJOR << 16 | TM_VERSION_MINOR << 8 | TM_VERSION_PATCH
}

/// The same as text, "0.1.0". Any thread may call it at any time.
#[unsafe(no_mangle)]
pub extern "C" fn tm_version_string() -> *const c_char {
    const TEXT: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    TEXT.as_ptr().cast()
}

/// A counter, as `tm_engine_statistics` and `tm_endpoint_statistics` give them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tm_counter {
    /// What is counted; ends with a zero byte.
    pub name: [c_char; TM_COUNTER_NAME_MAX],
    /// How often, or how much, since the object was opened; of depths: how many there are now.
    pub value: u64,
}

/// Bytes of the name of a counter, with the zero byte at its end.
pub const TM_COUNTER_NAME_MAX: usize = 56;

impl tm_counter {
    fn new(name: &str, value: u64) -> Self {
        let mut text: [c_char; TM_COUNTER_NAME_MAX] = [0; TM_COUNTER_NAME_MAX];
        for (to, from) in text.iter_mut().take(TM_COUNTER_NAME_MAX - 1).zip(name.bytes()) {
            *to = from.cast_signed();
        }
        Self { name: text, value }
    }
}

/// Give out as many counters as there is room for, and say how many there are.
///
/// # Safety
/// `into` is null, or has room for `room` counters.
unsafe fn give(
    rows: impl Iterator<Item = (String, u64)>,
    into: *mut tm_counter,
    room: usize,
) -> error::Outcome<c_int> {
    // SAFETY: the caller's promise.
    let into = unsafe { ffi::slots(into, room, "counters") }?;
    let mut count = 0;
    for (name, value) in rows {
        if let Some(slot) = into.get_mut(count) {
            slot.write(tm_counter::new(&name, value));
        }
        count += 1;
    }
    Ok(ffi::count(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_the_version_are_the_package_s() {
        let numbers = [TM_VERSION_MAJOR, TM_VERSION_MINOR, TM_VERSION_PATCH].map(|number| number.to_string());
        assert_eq!(numbers.join("."), env!("CARGO_PKG_VERSION"));
        assert_eq!(tm_version(), 0x000100);
    }

    #[test]
    fn a_name_that_is_too_long_is_cut_and_ends_with_a_zero() {
        let counter = tm_counter::new(&"n".repeat(100), 7);
        assert_eq!(counter.name.iter().position(|&byte| byte == 0), Some(TM_COUNTER_NAME_MAX - 1));
    }
}
