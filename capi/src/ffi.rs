//! The edge: pointers of C's become references here, and panics become codes.
//!
//! Not here: what a call does.

use std::ffi::{CStr, c_char, c_int};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use crate::error::{self, Error, Outcome, PANICKED};

/// No work is left for others: every call has an answer to give.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NoWork {}

/// The body of a call.
#[inline]
pub(crate) fn call(body: impl FnOnce() -> Outcome<c_int>) -> c_int {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => value,
        Ok(Err(error)) => error::note(error),
        Err(_) => error::note(PANICKED),
    }
}

/// A number of things as a call returns it.
pub(crate) fn count(count: usize) -> c_int {
    c_int::try_from(count).unwrap_or(c_int::MAX)
}

/// What stands there.
///
/// # Safety
/// Null, or one that may be read as long as `'a`.
pub(crate) unsafe fn shared<'a, T>(pointer: *const T, name: &str) -> Outcome<&'a T> {
    is_aligned(pointer, name)?;
    // SAFETY: the caller's promise; it is not null.
    unsafe { pointer.as_ref() }.ok_or_else(|| null(name))
}

/// A copy of what stands there.
///
/// # Safety
/// Null, or one that may be read.
pub(crate) unsafe fn read<T: Copy>(pointer: *const T, name: &str) -> Outcome<T> {
    // SAFETY: the caller's promise.
    unsafe { shared(pointer, name) }.copied()
}

/// Write there, unless it is null.
///
/// # Safety
/// Null, or a place for one.
pub(crate) unsafe fn write<T>(pointer: *mut T, value: T) {
    if !pointer.is_null() {
        // SAFETY: the caller's promise. C may give a place that is not aligned.
        unsafe { pointer.write_unaligned(value) };
    }
}

/// A place that must be there.
pub(crate) fn place<T>(pointer: *mut T, name: &str) -> Outcome<*mut T> {
    if pointer.is_null() { Err(null(name)) } else { Ok(pointer) }
}

/// So many of them.
///
/// # Safety
/// Null, or so many that may be read as long as `'a`.
pub(crate) unsafe fn several<'a, T>(pointer: *const T, count: usize, name: &str) -> Outcome<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    check_many(pointer, count, name)?;
    // SAFETY: the caller's promise; it is not null, aligned, and not longer than memory can be.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// Places for so many of them, none of which need be there when there is room for none.
///
/// # Safety
/// Null, or a place for so many as long as `'a`.
pub(crate) unsafe fn slots<'a, T>(
    pointer: *mut T,
    count: usize,
    name: &str,
) -> Outcome<&'a mut [MaybeUninit<T>]> {
    if count == 0 {
        return Ok(&mut []);
    }
    check_many(pointer, count, name)?;
    // SAFETY: the caller's promise; it is not null, aligned, and not longer than memory can be.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer.cast(), count) })
}

/// A string.
///
/// # Safety
/// Null, or a string that ends, as long as `'a`.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, name: &str) -> Outcome<Option<&'a str>> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map(Some).map_err(|_| Error::argument(format!("{name} is not UTF-8: {text:?}")))
}

/// A structure that begins with its size: one of an older version is filled up with zeros, and one of a newer may have
/// nothing set that is not known here.
///
/// # Safety
/// Null, or one of the size that it says. `T` may be all zeros.
pub(crate) unsafe fn read_sized<T: Copy>(pointer: *const T, name: &str) -> Outcome<T> {
    is_aligned(pointer, name)?;
    let pointer = place(pointer.cast_mut(), name)?.cast_const();
    // SAFETY: it begins with its size.
    let size = unsafe { pointer.cast::<usize>().read() };
    if size < size_of::<usize>() || size > SIZE_MAX {
        let known = size_of::<T>();
        return Err(Error::argument(format!(
            "{name}.size is {size}: it is to be what sizeof says of the structure, here {known}"
        )));
    }
    let mut value = MaybeUninit::<T>::zeroed();
    // SAFETY: as many bytes as both have.
    unsafe {
        ptr::copy_nonoverlapping(
            pointer.cast::<u8>(),
            value.as_mut_ptr().cast::<u8>(),
            size.min(size_of::<T>()),
        )
    };
    for at in size_of::<T>()..size {
        // SAFETY: it has so many bytes.
        if unsafe { pointer.cast::<u8>().wrapping_add(at).read() } != 0 {
            return Err(Error::said(
                libc::E2BIG,
                format!("{name} has {size} bytes, and byte {at} is set, which this library does not know"),
            ));
        }
    }
    // SAFETY: plain data of C's, for which all zeros are a value, and which the caller has filled.
    Ok(unsafe { value.assume_init() })
}

/// The same, where null stands for all zeros: everything as it usually is.
///
/// # Safety
/// As [`read_sized`].
pub(crate) unsafe fn read_config<T: Copy>(pointer: *const T, name: &str) -> Outcome<T> {
    if pointer.is_null() {
        // SAFETY: the caller's promise: all zeros are a value.
        return Ok(unsafe { MaybeUninit::<T>::zeroed().assume_init() });
    }
    // SAFETY: the caller's promise.
    unsafe { read_sized(pointer, name) }
}

fn check_many<T>(pointer: *const T, count: usize, name: &str) -> Outcome<()> {
    if pointer.is_null() {
        return Err(null(name));
    }
    is_aligned(pointer, name)?;
    if count > isize::MAX.cast_unsigned() / size_of::<T>().max(1) {
        return Err(Error::argument(format!("{count} {name} are more than memory can hold")));
    }
    Ok(())
}

fn is_aligned<T>(pointer: *const T, name: &str) -> Outcome<()> {
    if pointer.is_aligned() {
        return Ok(());
    }
    Err(Error::argument(format!("{name} is at {pointer:p}, where none can be: it is not aligned")))
}

fn null(name: &str) -> Error {
    Error::said(libc::EFAULT, format!("{name} is null"))
}

/// No structure is that long: what is taken for a size is none.
const SIZE_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, PartialEq, Debug)]
    #[repr(C)]
    struct Sized {
        size: usize,
        first: u64,
        second: u64,
    }

    fn taken(words: &[usize]) -> Outcome<Sized> {
        // SAFETY: as long as it says, or of a size that is refused.
        unsafe { read_sized(words.as_ptr().cast(), "config") }
    }

    #[test]
    fn structures_of_older_and_newer_versions_are_taken_if_nothing_unknown_is_set() {
        let of = |size, first, second| Ok(Sized { size, first, second });
        assert_eq!(taken(&[24, 1, 2]), of(24, 1, 2));
        assert_eq!(taken(&[16, 1, 2]), of(16, 1, 0));
        assert_eq!(taken(&[8, 1, 2]), of(8, 0, 0));
        assert_eq!(taken(&[32, 1, 2, 0]), of(32, 1, 2));
        assert_eq!(taken(&[32, 1, 2, 1]).map_err(|error| error.code), Err(libc::E2BIG));
        for size in [0, 7, 4097, usize::MAX] {
            assert_eq!(taken(&[size, 1, 2]).map_err(|error| error.code), Err(libc::EINVAL), "{size}");
        }
    }

    #[test]
    fn null_and_what_is_not_aligned_are_refused() {
        // SAFETY: null is refused.
        let none = unsafe { read::<u64>(ptr::null(), "number") };
        assert_eq!(none, Err(Error::said(libc::EFAULT, "number is null".into())));
        let words = [0u64; 2];
        let odd = words.as_ptr().cast::<u8>().wrapping_add(1).cast::<u64>();
        // SAFETY: what is not aligned is refused.
        assert_eq!(unsafe { read(odd, "number") }.map_err(|error| error.code), Err(libc::EINVAL));
        // SAFETY: there is room for none.
        assert!(unsafe { slots::<u64>(ptr::null_mut(), 0, "numbers") }.is_ok_and(|slots| slots.is_empty()));
        // SAFETY: null is refused.
        assert!(unsafe { slots::<u64>(ptr::null_mut(), 1, "numbers") }.is_err());
        // SAFETY: no memory is so long.
        assert!(unsafe { several(words.as_ptr(), usize::MAX / 8, "numbers") }.is_err());
    }

    #[test]
    fn a_panic_becomes_a_code() {
        assert_eq!(call(|| panic!("a call that panics")), -libc::ENOTRECOVERABLE);
        assert_eq!(call(|| Ok(7)), 7);
    }
}
