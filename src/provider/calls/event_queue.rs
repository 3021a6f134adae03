//! `struct fid_eq`: `fi_eq(3)`. Nothing comes there but what the application writes: an endpoint without connections
//! has no events.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use libc::{c_char, c_int, c_void, size_t, ssize_t};

use super::fabric;
use super::memory::{given, many};
use super::object::{Children, Hold, head, no_bind, operations};
use super::waiting::{self, WaitObject};
use crate::provider::abi::{self, fi_eq_attr, fi_eq_err_entry, fi_ops, fi_ops_eq, fid, fid_eq};
use crate::provider::error::{Outcome, code, fail, integer, size};

#[repr(C)]
struct Object {
    head: fid_eq,
    fabric: Arc<fabric::Core>,
    /// What is bound to it.
    users: Arc<Children>,
    wait: WaitObject,
    is_writable: bool,
    events: Mutex<VecDeque<(u32, Vec<u8>)>>,
}

/// `fi_eq_open(3)`.
pub(super) fn open(
    fabric: &Arc<fabric::Core>,
    attr: Option<&fi_eq_attr>,
    context: *mut c_void,
) -> Outcome<*mut fid_eq> {
    let flags = attr.map_or(0, |attr| attr.flags);
    if flags & !(abi::FI_WRITE | abi::FI_AFFINITY) != 0 {
        return fail(abi::FI_EBADFLAGS);
    }
    let wait = WaitObject::new(attr.map_or(0, |attr| attr.wait_obj))?;
    fabric.children.add();
    let object = Object {
        head: fid_eq { fid: head(abi::FI_CLASS_EQ, context, &OPS), ops: &raw const EQ_OPS },
        fabric: Arc::clone(fabric),
        users: Arc::default(),
        wait,
        is_writable: flags & abi::FI_WRITE != 0,
        events: Mutex::default(),
    };
    Ok(Box::into_raw(Box::new(object)).cast())
}

/// # Safety
/// A queue of [`open`] that is not closed while the result is used.
unsafe fn of<'a>(eq: *mut fid_eq) -> &'a Object {
    // SAFETY: the caller's.
    unsafe { &*eq.cast::<Object>() }
}

/// Bind something of this fabric: the queue is not closed before what is returned is dropped (`fi_eq(3)`).
///
/// # Safety
/// An open queue.
///
/// # Errors
/// `FI_EINVAL`: it is another fabric's.
pub(super) unsafe fn hold(eq: *mut fid_eq, fabric: &Arc<fabric::Core>) -> Outcome<Hold> {
    // SAFETY: the caller's.
    let object = unsafe { of(eq) };
    if Arc::ptr_eq(&object.fabric, fabric) { Ok(Hold::new(&object.users)) } else { fail(abi::FI_EINVAL) }
}

impl Object {
    fn with<R>(&self, call: impl FnOnce(&mut VecDeque<(u32, Vec<u8>)>) -> R) -> R {
        // No call leaves the events half changed.
        call(&mut self.events.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// # Safety
    /// A place for the event, and so much room, which may be null.
    unsafe fn read(&self, event: *mut u32, to: *mut c_void, room: usize, flags: u64) -> Outcome<usize> {
        given(to, room)?;
        self.with(|events| {
            let Some((kind, bytes)) = events.front() else { return fail(abi::FI_EAGAIN) };
            if bytes.len() > room {
                return fail(abi::FI_ETOOSMALL);
            }
            if !event.is_null() {
                // SAFETY: the caller's.
                unsafe { event.write(*kind) };
            }
            let length = bytes.len();
            if length > 0 {
                // SAFETY: the caller's, and there is room.
                unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast(), length) };
            }
            if flags & abi::FI_PEEK == 0 {
                events.pop_front();
            }
            Ok(length)
        })
    }
}

/// `fi_trywait(3)`.
///
/// # Safety
/// An open queue.
pub(super) unsafe fn may_wait(eq: *mut fid_eq) -> bool {
    // SAFETY: the caller's.
    let object = unsafe { of(eq) };
    object.with(|events| {
        if events.is_empty()
            && let Some(set) = object.wait.set()
        {
            set.prepare(None);
        }
        events.is_empty()
    })
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    integer(|| {
        // SAFETY: the application's: an open queue.
        unsafe { of(fid.cast()) }.users.none()?;
        // SAFETY: it is closed once, and nothing is bound to it.
        let object = unsafe { Box::from_raw(fid.cast::<Object>()) };
        object.fabric.children.remove();
        Ok(0)
    })
}

unsafe extern "C" fn control(fid: *mut fid, command: c_int, argument: *mut c_void) -> c_int {
    // SAFETY: the application's: an open queue.
    let object = unsafe { of(fid.cast()) };
    // SAFETY: the application's: the argument of the command.
    integer(|| unsafe { object.wait.control(command, argument) })
}

unsafe extern "C" fn read(
    eq: *mut fid_eq,
    event: *mut u32,
    to: *mut c_void,
    room: size_t,
    flags: u64,
) -> ssize_t {
    // SAFETY: the application's: an open queue.
    let object = unsafe { of(eq) };
    // SAFETY: the application's: a place for the event, and so much room.
    size(|| unsafe { object.read(event, to, room, flags) })
}

unsafe extern "C" fn read_error(_: *mut fid_eq, _: *mut fi_eq_err_entry, _: u64) -> ssize_t {
    size(|| fail(abi::FI_EAGAIN))
}

unsafe extern "C" fn write(
    eq: *mut fid_eq,
    event: u32,
    from: *const c_void,
    length: size_t,
    _: u64,
) -> ssize_t {
    size(|| {
        // SAFETY: the application's: an open queue.
        let object = unsafe { of(eq) };
        if !object.is_writable {
            return fail(abi::FI_EINVAL);
        }
        // SAFETY: the application's: so many bytes, or null.
        let bytes = unsafe { many(from.cast::<u8>(), length) }?;
        object.with(|events| events.push_back((event, bytes.to_vec())));
        if let Some(set) = object.wait.set() {
            set.signal();
        }
        Ok(length)
    })
}

unsafe extern "C" fn wait_and_read(
    eq: *mut fid_eq,
    event: *mut u32,
    to: *mut c_void,
    room: size_t,
    timeout: c_int,
    flags: u64,
) -> ssize_t {
    size(|| {
        // SAFETY: the application's: an open queue.
        let object = unsafe { of(eq) };
        let Some(set) = object.wait.set() else { return fail(abi::FI_ENOSYS) };
        let deadline = waiting::deadline(timeout);
        loop {
            // SAFETY: the application's: a place for the event, and so much room.
            let outcome = unsafe { object.read(event, to, room, flags) };
            if outcome != Err(code(abi::FI_EAGAIN)) {
                return outcome;
            }
            // SAFETY: the application's: an open queue.
            let is_idle = unsafe { may_wait(eq) };
            if !waiting::wait(Some(set), deadline, is_idle) {
                return fail(abi::FI_EAGAIN);
            }
        }
    })
}

unsafe extern "C" fn error_text(
    _: *mut fid_eq,
    error: c_int,
    _: *const c_void,
    buffer: *mut c_char,
    length: size_t,
) -> *const c_char {
    // SAFETY: the application's: null or so much room.
    unsafe { waiting::error_text(error, buffer, length) }
}

static OPS: fi_ops = operations(close, no_bind, control);

static EQ_OPS: fi_ops_eq = fi_ops_eq {
    size: size_of::<fi_ops_eq>(),
    read,
    readerr: read_error,
    write,
    sread: wait_and_read,
    strerror: error_text,
};
