//! The objects that applications hold: a `struct fid_…` at the beginning, and behind it what is ours.
//!
//! An application gets a pointer and gives it back with every call, until it closes the object.

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use libc::{c_int, c_void};

use super::domain::Core;
use super::unsupported::NONE;
use crate::provider::abi::{self, fi_ops, fid};
use crate::provider::error::{Outcome, fail};

/// An object of a domain.
#[repr(C)]
pub(super) struct Object<F, X> {
    /// What applications see.
    head: F,
    pub(super) domain: Arc<Core>,
    /// Its place in the domain's state.
    pub(super) index: usize,
    pub(super) extra: X,
}

impl<F, X> Object<F, X> {
    /// # Errors
    /// `FI_EDOMAIN`: it is another's.
    pub(super) fn same_domain(&self, domain: &Arc<Core>) -> Outcome<()> {
        if Arc::ptr_eq(&self.domain, domain) { Ok(()) } else { fail(abi::FI_EDOMAIN) }
    }
}

/// An object is what applications see of it.
pub(super) fn open<F, X>(head: F, domain: Arc<Core>, index: usize, extra: X) -> *mut F {
    domain.children.add();
    Box::into_raw(Box::new(Object { head, domain, index, extra })).cast()
}

/// The object behind a pointer.
///
/// # Safety
/// The pointer is of [`open`] with the same types, and the object is not closed while the result is used.
pub(super) unsafe fn of<'a, F, X>(pointer: *mut F) -> &'a Object<F, X> {
    // SAFETY: the caller's.
    unsafe { &*pointer.cast::<Object<F, X>>() }
}

/// Free the object behind a pointer.
///
/// # Safety
/// As [`of`]; nobody uses it any more.
pub(super) unsafe fn close<F, X>(pointer: *mut F) {
    // SAFETY: the caller's.
    let object = unsafe { Box::from_raw(pointer.cast::<Object<F, X>>()) };
    object.domain.children.remove();
}

/// Objects that live below another or are bound to it, which is not closed before them.
#[derive(Debug, Default)]
pub(super) struct Children(AtomicUsize);

impl Children {
    pub(super) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn remove(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    /// # Errors
    /// `FI_EBUSY`: there are some.
    pub(super) fn none(&self) -> Outcome<()> {
        if self.0.load(Ordering::Relaxed) == 0 { Ok(()) } else { fail(abi::FI_EBUSY) }
    }
}

/// What is bound to an object, for as long as it lives: that object is not closed meanwhile.
#[derive(Debug)]
pub(super) struct Hold(Arc<Children>);

impl Hold {
    pub(super) fn new(of: &Arc<Children>) -> Self {
        of.add();
        Self(Arc::clone(of))
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.remove();
    }
}

/// The `struct fid` of an object.
#[expect(clippy::cast_possible_truncation, reason = "classes are small")]
pub(super) const fn head(class: u64, context: *mut c_void, ops: &'static fi_ops) -> fid {
    fid { fclass: class as usize, context, ops: ptr::from_ref(ops) }
}

/// Operations of an object that can do these.
pub(super) const fn operations(
    close: unsafe extern "C" fn(*mut fid) -> c_int,
    bind: unsafe extern "C" fn(*mut fid, *mut fid, u64) -> c_int,
    control: unsafe extern "C" fn(*mut fid, c_int, *mut c_void) -> c_int,
) -> fi_ops {
    fi_ops { size: size_of::<fi_ops>(), close, bind, control, ops_open: NONE, tostr: NONE, ops_set: NONE }
}

/// Write to a place of an array.
///
/// # Safety
/// The array has that place.
#[inline]
pub(super) unsafe fn write_at<T>(array: *mut T, place: usize, value: T) {
    // SAFETY: the caller's.
    let to = unsafe { array.add(place) };
    // SAFETY: the caller's.
    unsafe { to.write(value) };
}

/// Nothing can be bound to it.
pub(super) unsafe extern "C" fn no_bind(_: *mut fid, _: *mut fid, _: u64) -> c_int {
    -crate::provider::error::code(abi::FI_ENOSYS).0
}

/// It takes no commands.
pub(super) unsafe extern "C" fn no_control(_: *mut fid, _: c_int, _: *mut c_void) -> c_int {
    -crate::provider::error::code(abi::FI_ENOSYS).0
}
