//! `struct fid_cq`: `fi_cq(3)`.
//!
//! Every format is the beginning of the one with a tag, so that an entry is copied up to the format's size.

use std::sync::Arc;

use libc::{c_char, c_int, c_void, size_t, ssize_t};

use super::domain;
use super::memory::given;
use super::object::{self, head, no_bind, operations, write_at};
use super::unsupported::NONE;
use super::waiting::{self, WaitObject};
use crate::provider::abi::{
    self, fi_cq_attr, fi_cq_err_entry, fi_cq_tagged_entry, fi_ops, fi_ops_cq, fid, fid_cq, fid_domain,
    version,
};
use crate::provider::error::{Outcome, fail, integer, signed, size, sized};
use crate::provider::state::queue::{Entry, Queue};
use crate::provider::state::{State, Target};

/// What a queue knows without its domain's state.
pub(super) struct Format {
    /// Bytes of an entry.
    size: usize,
    wait: WaitObject,
}

type Object = object::Object<fid_cq, Format>;

/// `fi_cq_open(3)`.
pub(super) unsafe extern "C" fn open(
    domain: *mut fid_domain,
    attr: *mut fi_cq_attr,
    cq: *mut *mut fid_cq,
    context: *mut c_void,
) -> c_int {
    integer(|| {
        // SAFETY: the application's: null or attributes, of which only those of API 1.17 are looked at.
        let attr = unsafe { attributes(attr) };
        let size = match u64::from(attr.format) {
            abi::FI_CQ_FORMAT_UNSPEC | abi::FI_CQ_FORMAT_TAGGED => size_of::<fi_cq_tagged_entry>(),
            abi::FI_CQ_FORMAT_CONTEXT => 8,
            abi::FI_CQ_FORMAT_MSG => 24,
            abi::FI_CQ_FORMAT_DATA => 40,
            _ => return fail(abi::FI_ENOSYS),
        };
        if attr.flags & !abi::FI_AFFINITY != 0 {
            return fail(abi::FI_EBADFLAGS);
        }
        let wait = WaitObject::new(attr.wait_object)?;
        // SAFETY: the application's: an open domain.
        let core = unsafe { domain::core(domain) };
        let capacity = attr.size.clamp(256, CAPACITY_MAX);
        let queue = Queue::new(capacity, wait.set().cloned());
        let index = core.with(|state| Ok(state.queues.insert(queue)))?;
        let head = fid_cq { fid: head(abi::FI_CLASS_CQ, context, &OPS), ops: &raw const CQ_OPS };
        // SAFETY: the application's: a place for the queue.
        unsafe { cq.write(object::open(head, Arc::clone(core), index, Format { size, wait })) };
        Ok(0)
    })
}

/// Room that is made at once; a queue grows.
const CAPACITY_MAX: usize = 1 << 14;

/// What of `struct fi_cq_attr` means something here.
#[derive(Default)]
struct Attributes {
    size: usize,
    flags: u64,
    format: u32,
    wait_object: u32,
}

/// # Safety
/// Null, or attributes of API 1.17 at least.
unsafe fn attributes(attr: *const fi_cq_attr) -> Attributes {
    if attr.is_null() {
        return Attributes::default();
    }
    Attributes {
        // SAFETY: the caller's.
        size: unsafe { (*attr).size },
        // SAFETY: the caller's.
        flags: unsafe { (*attr).flags },
        // SAFETY: the caller's.
        format: unsafe { (*attr).format },
        // SAFETY: the caller's.
        wait_object: unsafe { (*attr).wait_obj },
    }
}

/// # Safety
/// A queue of [`open`] that is not closed while the result is used.
pub(super) unsafe fn of<'a>(cq: *mut fid_cq) -> &'a Object {
    // SAFETY: the caller's.
    unsafe { object::of(cq) }
}

impl Object {
    /// What waits for it.
    pub(super) fn wait(&self) -> &WaitObject {
        &self.extra.wait
    }

    /// Read into memory of the application's. What the call returns.
    ///
    /// # Safety
    /// Room for so many entries, and for so many sources or null.
    #[inline]
    unsafe fn read(&self, buffer: *mut c_void, count: usize, sources: *mut u64) -> ssize_t {
        let size = self.extra.size;
        if let Err(code) = given(buffer, count) {
            return signed(Err(code));
        }
        self.domain.size(|state| {
            state.read(self.index, count, |place, entry| {
                let shown = shown(entry);
                // SAFETY: the caller's: there is room behind what was read before.
                let to = unsafe { buffer.cast::<u8>().add(place * size) };
                // SAFETY: as before, and an entry with a tag has at least as many bytes.
                unsafe { std::ptr::copy_nonoverlapping((&raw const shown).cast::<u8>(), to, size) };
                if !sources.is_null() {
                    // SAFETY: the caller's.
                    unsafe { write_at(sources, place, entry.source) };
                }
            })
        })
    }
}

#[expect(clippy::cast_possible_truncation, reason = "usize has 64 bits here")]
fn shown(entry: &Entry) -> fi_cq_tagged_entry {
    fi_cq_tagged_entry {
        op_context: entry.context as *mut c_void,
        flags: entry.flags,
        len: entry.length as usize,
        buf: entry.buffer as *mut c_void,
        data: entry.data,
        tag: entry.tag,
    }
}

/// `fi_trywait(3)`. Who waits by descriptor takes a signal by being told not to.
///
/// # Safety
/// An open queue.
pub(super) unsafe fn may_wait(cq: *mut fid_cq) -> Outcome<bool> {
    // SAFETY: the caller's.
    let object = unsafe { of(cq) };
    object.domain.with(|state| {
        let is_signalled = state.queue(object.index)?.waiting.take_signal();
        Ok(!is_signalled && has_nothing(state, object.index))
    })
}

/// Whether one may wait for a queue.
fn has_nothing(state: &mut State, index: usize) -> bool {
    state
        .may_wait(Target::Queue(index), |state| state.queues.get(index).is_none_or(|queue| !queue.is_empty()))
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    integer(|| {
        // SAFETY: the application's: an open queue.
        let object = unsafe { of(fid.cast()) };
        object.domain.with(|state| state.remove_target(Target::Queue(object.index)))?;
        // SAFETY: it is closed once.
        unsafe { object::close::<fid_cq, Format>(fid.cast()) };
        Ok(0)
    })
}

unsafe extern "C" fn control(fid: *mut fid, command: c_int, argument: *mut c_void) -> c_int {
    // SAFETY: the application's: an open queue.
    let object = unsafe { of(fid.cast()) };
    // SAFETY: the application's: the argument of the command.
    integer(|| unsafe { object.wait().control(command, argument) })
}

unsafe extern "C" fn read(cq: *mut fid_cq, buffer: *mut c_void, count: size_t) -> ssize_t {
    // SAFETY: the application's: an open queue.
    let object = unsafe { of(cq) };
    // SAFETY: the application's: room for so many entries.
    sized(|| unsafe { object.read(buffer, count, std::ptr::null_mut()) })
}

unsafe extern "C" fn read_from(
    cq: *mut fid_cq,
    buffer: *mut c_void,
    count: size_t,
    sources: *mut u64,
) -> ssize_t {
    // SAFETY: the application's: an open queue.
    let object = unsafe { of(cq) };
    // SAFETY: the application's: room for so many entries and sources.
    sized(|| unsafe { object.read(buffer, count, sources) })
}

unsafe extern "C" fn wait_and_read(
    cq: *mut fid_cq,
    buffer: *mut c_void,
    count: size_t,
    condition: *const c_void,
    timeout: c_int,
) -> ssize_t {
    // SAFETY: the caller's, without sources.
    unsafe { wait_and_read_from(cq, buffer, count, std::ptr::null_mut(), condition, timeout) }
}

/// The condition is a hint (`FI_CQ_COND_THRESHOLD`): whatever is there is handed out.
unsafe extern "C" fn wait_and_read_from(
    cq: *mut fid_cq,
    buffer: *mut c_void,
    count: size_t,
    sources: *mut u64,
    _: *const c_void,
    timeout: c_int,
) -> ssize_t {
    sized(|| {
        // SAFETY: the application's: an open queue.
        let object = unsafe { of(cq) };
        let Some(set) = object.wait().set() else { return signed(fail(abi::FI_ENOSYS)) };
        let deadline = waiting::deadline(timeout);
        loop {
            // SAFETY: the application's: room for so many entries and sources.
            let outcome = unsafe { object.read(buffer, count, sources) };
            if outcome != signed(fail(abi::FI_EAGAIN)) {
                return outcome;
            }
            let is_idle = object.domain.with(|state| {
                if state.queue(object.index)?.waiting.take_signal() {
                    return fail(abi::FI_EAGAIN);
                }
                // A signal that comes from here on wakes, and is taken in the next round.
                Ok(has_nothing(state, object.index))
            });
            let is_over = is_idle.map(|is_idle| !waiting::wait(Some(set), deadline, is_idle));
            match is_over {
                Ok(false) => {}
                Ok(true) => return signed(fail(abi::FI_EAGAIN)),
                Err(code) => return signed(Err(code)),
            }
        }
    })
}

unsafe extern "C" fn read_error(cq: *mut fid_cq, buffer: *mut fi_cq_err_entry, _: u64) -> ssize_t {
    size(|| {
        // SAFETY: the application's: an open queue.
        let object = unsafe { of(cq) };
        if buffer.is_null() {
            return fail(abi::FI_EINVAL);
        }
        let entry = object.domain.with(|state| state.read_error(object.index))?;
        // SAFETY: the application's: an entry of its API.
        unsafe { write_error(&entry, buffer, object.domain.api) };
        Ok(1)
    })
}

/// Write an error as far as an entry of this API goes.
///
/// # Safety
/// An entry of this API.
unsafe fn write_error(entry: &Entry, to: *mut fi_cq_err_entry, api: u32) {
    let begin = shown(entry);
    // SAFETY: the caller's; every API has these, and an error entry begins like one with a tag.
    unsafe { to.cast::<fi_cq_tagged_entry>().write(begin) };
    // SAFETY: a field that every API has.
    unsafe { (*to).olen = usize::try_from(entry.overflow).unwrap_or(usize::MAX) };
    // SAFETY: a field that every API has.
    unsafe { (*to).err = entry.error };
    // SAFETY: a field that every API has.
    unsafe { (*to).prov_errno = entry.error };
    if api < version(1, 5) {
        // SAFETY: a field that every API has; later it is the application's buffer, which stays as it is.
        unsafe { (*to).err_data = std::ptr::null_mut() };
    } else {
        // SAFETY: entries of API 1.5 and later have it.
        unsafe { (*to).err_data_size = 0 };
    }
    if api >= version(1, 20) {
        // SAFETY: entries of API 1.20 and later have it.
        unsafe { (*to).src_addr = entry.source };
    }
}

unsafe extern "C" fn signal(cq: *mut fid_cq) -> c_int {
    integer(|| {
        // SAFETY: the application's: an open queue.
        let object = unsafe { of(cq) };
        if object.wait().set().is_none() {
            return fail(abi::FI_ENOSYS);
        }
        object.domain.with(|state| {
            state.queue(object.index)?.waiting.signal();
            Ok(0)
        })
    })
}

unsafe extern "C" fn error_text(
    _: *mut fid_cq,
    error: c_int,
    _: *const c_void,
    buffer: *mut c_char,
    length: size_t,
) -> *const c_char {
    // SAFETY: the application's: null or so much room.
    unsafe { waiting::error_text(error, buffer, length) }
}

static OPS: fi_ops = operations(close, no_bind, control);

static CQ_OPS: fi_ops_cq = fi_ops_cq {
    size: size_of::<fi_ops_cq>(),
    read,
    readfrom: read_from,
    readerr: read_error,
    sread: wait_and_read,
    sreadfrom: wait_and_read_from,
    signal,
    strerror: error_text,
    export_xpu: NONE,
};
