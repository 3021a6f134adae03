//! What these tests share.

use std::ffi::{CStr, c_int};
use std::mem::MaybeUninit;

/// The code of a call that failed, and what it says.
#[track_caller]
pub(crate) fn refused(result: c_int, code: c_int, word: &str) {
    assert_eq!(result, -code, "{}", said());
    assert!(said().contains(word), "{:?} has no {word:?}", said());
}

/// What the last call that failed says.
pub(crate) fn said() -> String {
    // SAFETY: a string that ends, until the next call.
    unsafe { CStr::from_ptr(tagmatch_c::tm_last_error()) }.to_str().unwrap().to_owned()
}

/// A structure of C's, all zeros.
pub(crate) fn zeroed<T: Copy>() -> T {
    // SAFETY: plain data of C's, for which all zeros are a value.
    unsafe { MaybeUninit::zeroed().assume_init() }
}
