//! `struct fid_eq`: `fi_eq(3)`. What becomes of connections comes there, and what the application writes.
//!
//! Not here: what waits to be read, and from where more comes (`state::events`).

use std::sync::Arc;

use libc::{c_char, c_int, c_void, size_t, ssize_t};

use super::fabric;
use super::memory::{given, many};
use super::object::{Children, Hold, head, no_bind, operations};
use super::waiting::{self, WaitObject};
use crate::provider::abi::{
    self, fi_eq_attr, fi_eq_cm_entry, fi_eq_err_entry, fi_ops, fi_ops_eq, fid, fid_eq, version,
};
use crate::provider::error::{Outcome, code, fail, integer, size};
use crate::provider::info::OfRequest;
use crate::provider::state::events::{Event, Events, There};

#[repr(C)]
struct Object {
    head: fid_eq,
    fabric: Arc<fabric::Core>,
    /// What is bound to it.
    users: Arc<Children>,
    wait: WaitObject,
    is_writable: bool,
    events: Arc<Events>,
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
        is_writable: flags & abi::FI_WRITE != 0,
        events: Arc::new(Events::new(wait.set().cloned())),
        wait,
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
pub(super) unsafe fn hold(eq: *mut fid_eq, fabric: &Arc<fabric::Core>) -> Outcome<(Hold, Arc<Events>)> {
    // SAFETY: the caller's.
    let object = unsafe { of(eq) };
    if !Arc::ptr_eq(&object.fabric, fabric) {
        return fail(abi::FI_EINVAL);
    }
    Ok((Hold::new(&object.users), Arc::clone(&object.events)))
}

impl Object {
    /// Read what is there, else what progress brings.
    ///
    /// # Safety
    /// A place for the event, and so much room, which may be null.
    unsafe fn read(&self, event: *mut u32, to: *mut c_void, room: usize, flags: u64) -> Outcome<usize> {
        given(to, room)?;
        if self.events.there() == There::Nothing {
            self.events.progress();
        }
        if self.events.there() == There::Failed {
            return fail(abi::FI_EAVAIL);
        }
        let is_taken = flags & abi::FI_PEEK == 0;
        let read = self.events.read(|there| {
            // SAFETY: the caller's.
            let read = unsafe { write_event(there, to.cast(), room, is_taken) };
            let is_taken = is_taken && read.is_ok();
            (read, is_taken)
        });
        let (kind, length) = read.unwrap_or(fail(abi::FI_EAGAIN))?;
        if !event.is_null() {
            // SAFETY: the caller's.
            unsafe { event.write(kind) };
        }
        Ok(length)
    }
}

/// Write an event to where there is room: its kind and its length. Data of a connection is cut where the room ends
/// (`fi_eq(3)`). The info of a request is handed over when it is taken; who only looks sees none.
///
/// # Safety
/// So much room, or null with none.
///
/// # Errors
/// `FI_ETOOSMALL`: there is none for the rest.
unsafe fn write_event(event: &mut Event, to: *mut u8, room: usize, is_taken: bool) -> Outcome<(u32, usize)> {
    let is_written = matches!(event, Event::Written(..));
    let (kind, bytes) = match event {
        Event::Written(kind, bytes) => (*kind, bytes.as_slice()),
        Event::Connection { kind, data, .. } => (*kind, data.as_slice()),
    };
    let front = if is_written { 0 } else { size_of::<fi_eq_cm_entry>() };
    if room < front || is_written && room < bytes.len() {
        return fail(abi::FI_ETOOSMALL);
    }
    let length = bytes.len().min(room - front);
    if length > 0 {
        // SAFETY: the caller's: there is more room than that.
        let behind = unsafe { to.add(front) };
        // SAFETY: the caller's, and so many bytes are there.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), behind, length) };
    }
    if let Event::Connection { of, info, .. } = event {
        let info = info.take_if(|_| is_taken).map_or(std::ptr::null_mut(), OfRequest::into_raw);
        let entry = fi_eq_cm_entry { fid: of.0, info };
        // SAFETY: the caller's: there is room for it, which need not be aligned.
        unsafe { to.cast::<fi_eq_cm_entry>().write_unaligned(entry) };
    }
    Ok((kind, front + length))
}

/// `fi_trywait(3)`.
///
/// # Safety
/// An open queue.
pub(super) unsafe fn may_wait(eq: *mut fid_eq) -> bool {
    // SAFETY: the caller's.
    unsafe { of(eq) }.events.may_wait()
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

/// `fi_eq_readerr`. Data goes to where the application says that it has room, else it is shown where it is.
unsafe extern "C" fn read_error(eq: *mut fid_eq, entry: *mut fi_eq_err_entry, flags: u64) -> ssize_t {
    size(|| {
        // SAFETY: the application's: an open queue.
        let object = unsafe { of(eq) };
        // SAFETY: the application's: null or a place for the entry.
        let Some(entry) = (unsafe { entry.as_mut() }) else { return fail(abi::FI_EINVAL) };
        if object.events.there() == There::Nothing {
            object.events.progress();
        }
        let read = object.events.read_error(flags & abi::FI_PEEK == 0);
        let Some((failed, shown)) = read else { return fail(abi::FI_EAGAIN) };
        // Before API 1.5 nobody says how much room there is.
        let room = if object.fabric.api < version(1, 5) { 0 } else { entry.err_data_size };
        let (to, length) = if room == 0 || entry.err_data.is_null() {
            (shown.cast_mut().cast(), failed.data.len())
        } else {
            let length = failed.data.len().min(room);
            // SAFETY: the application's: so much room, and so many bytes are there.
            unsafe { std::ptr::copy_nonoverlapping(failed.data.as_ptr(), entry.err_data.cast(), length) };
            (entry.err_data, length)
        };
        *entry = fi_eq_err_entry {
            fid: failed.of.0,
            context: std::ptr::with_exposed_provenance_mut(failed.context),
            data: 0,
            err: failed.error,
            prov_errno: failed.error,
            err_data: if failed.data.is_empty() && room == 0 { std::ptr::null_mut() } else { to },
            err_data_size: length,
        };
        Ok(size_of::<fi_eq_err_entry>())
    })
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
        object.events.push(Event::Written(event, bytes.to_vec()));
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
            let is_idle = object.events.may_wait();
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
