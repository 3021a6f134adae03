//! Arrays and addresses of applications: a pointer, and how much is said to be there.

use super::abi;
use super::error::{Outcome, fail};

/// A pointer and a length of an application's: null has none.
///
/// # Errors
/// `FI_EINVAL`: null is said to be so long.
#[inline]
pub(in crate::provider) fn given<T>(pointer: *const T, length: usize) -> Outcome<()> {
    if pointer.is_null() && length > 0 { fail(abi::FI_EINVAL) } else { Ok(()) }
}

/// An array of an application's.
///
/// # Safety
/// So many, which stay for as long as the result is used, or null.
///
/// # Errors
/// As [`given`]; `FI_EINVAL`: there is no memory that is so long.
#[inline]
pub(in crate::provider) unsafe fn many<'a, T>(pointer: *const T, length: usize) -> Outcome<&'a [T]> {
    given(pointer, length)?;
    if length == 0 {
        return Ok(&[]);
    }
    if length > isize::MAX.unsigned_abs() / size_of::<T>().max(1) {
        return fail(abi::FI_EINVAL);
    }
    // SAFETY: the caller's, it is not null, and no longer than a slice may be.
    Ok(unsafe { std::slice::from_raw_parts(pointer, length) })
}
