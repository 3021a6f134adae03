//! `struct fid_cntr`: `fi_cntr(3)`. Completions are counted, whether they are reported or not.

use std::sync::Arc;

use libc::{c_int, c_void};

use super::domain;
use super::object::{self, head, no_bind, operations};
use super::unsupported::NONE;
use super::waiting::{self, WaitObject};
use crate::provider::abi::{self, fi_cntr_attr, fi_ops, fi_ops_cntr, fid, fid_cntr, fid_domain};
use crate::provider::error::{Outcome, fail, integer, value};
use crate::provider::state::Target;
use crate::provider::state::counter::Counter;

type Object = object::Object<fid_cntr, WaitObject>;

/// `fi_cntr_open(3)`.
pub(super) unsafe extern "C" fn open(
    domain: *mut fid_domain,
    attr: *mut fi_cntr_attr,
    cntr: *mut *mut fid_cntr,
    context: *mut c_void,
) -> c_int {
    integer(|| {
        let (mut events, mut kind, mut flags) = (0, 0, 0);
        if !attr.is_null() {
            // SAFETY: the application's: attributes of API 1.17 at least.
            events = unsafe { (*attr).events };
            // SAFETY: as above.
            kind = unsafe { (*attr).wait_obj };
            // SAFETY: as above.
            flags = unsafe { (*attr).flags };
        }
        if u64::from(events) != abi::FI_CNTR_EVENTS_COMP {
            return fail(abi::FI_ENOSYS);
        }
        if flags != 0 {
            return fail(abi::FI_EBADFLAGS);
        }
        let wait = WaitObject::new(kind)?;
        // SAFETY: the application's: an open domain.
        let core = unsafe { domain::core(domain) };
        let counter = Counter::new(wait.set().cloned());
        let index = core.with(|state| Ok(state.counters.insert(counter)))?;
        let head = fid_cntr { fid: head(abi::FI_CLASS_CNTR, context, &OPS), ops: &raw const CNTR_OPS };
        // SAFETY: the application's: a place for the counter.
        unsafe { cntr.write(object::open(head, Arc::clone(core), index, wait)) };
        Ok(0)
    })
}

/// # Safety
/// A counter of [`open`] that is not closed while the result is used.
pub(super) unsafe fn of<'a>(cntr: *mut fid_cntr) -> &'a Object {
    // SAFETY: the caller's.
    unsafe { object::of(cntr) }
}

impl Object {
    fn values(&self) -> Outcome<(u64, u64)> {
        self.domain.with(|state| {
            state.progress_target(Target::Counter(self.index));
            Ok(state.counter(self.index)?.tell())
        })
    }

    fn change(&self, change: impl FnOnce(&mut Counter)) -> c_int {
        integer(|| {
            self.domain.with(|state| {
                change(state.counter(self.index)?);
                Ok(0)
            })
        })
    }

    /// Wait until the value is there, or an error was counted.
    fn wait_for(&self, threshold: u64, timeout: c_int) -> Outcome<c_int> {
        let deadline = waiting::deadline(timeout);
        // Before any progress, which may be what finds an error.
        let errors = self.domain.with(|state| Ok(state.counter(self.index)?.errors))?;
        // A counter without a wait object may be waited for too (`fi_cntr(3)` leaves it open): by looking often.
        let set = self.extra.set().map(Arc::as_ref);
        loop {
            let (value, errors_now) = self.values()?;
            if value >= threshold {
                return Ok(0);
            }
            if errors_now != errors {
                return fail(abi::FI_EAVAIL);
            }
            let index = self.index;
            self.domain.with(|state| state.check_alive(Target::Counter(index)))?;
            let is_idle = set.is_some()
                && self.domain.with(|state| {
                    Ok(state.may_wait(Target::Counter(index), |state| {
                        state.counters.get(index).is_none_or(|c| c.value >= threshold || c.errors != errors)
                    }))
                })?;
            if !waiting::wait(set, deadline, is_idle) {
                return fail(abi::FI_ETIMEDOUT);
            }
        }
    }
}

/// `fi_trywait(3)`. A counter has a value at any time: one may wait for it to change, unless it has since it was told, by
/// progress that somebody else has made.
///
/// # Safety
/// An open counter.
pub(super) unsafe fn may_wait(cntr: *mut fid_cntr) -> Outcome<bool> {
    // SAFETY: the caller's.
    let object = unsafe { of(cntr) };
    let index = object.index;
    object.domain.with(|state| {
        let counter = state.counter(index)?;
        let (told, before) = (counter.told(), counter.tell());
        Ok(told == before
            && state.may_wait(Target::Counter(index), |state| {
                state.counters.get(index).is_none_or(|counter| (counter.value, counter.errors) != before)
            }))
    })
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    integer(|| {
        // SAFETY: the application's: an open counter.
        let object = unsafe { of(fid.cast()) };
        object.domain.with(|state| state.remove_target(Target::Counter(object.index)))?;
        // SAFETY: it is closed once.
        unsafe { object::close::<fid_cntr, WaitObject>(fid.cast()) };
        Ok(0)
    })
}

unsafe extern "C" fn control(fid: *mut fid, command: c_int, argument: *mut c_void) -> c_int {
    // SAFETY: the application's: an open counter.
    let object = unsafe { of(fid.cast()) };
    // SAFETY: the application's: the argument of the command.
    integer(|| unsafe { object.extra.control(command, argument) })
}

unsafe extern "C" fn read(cntr: *mut fid_cntr) -> u64 {
    // SAFETY: the application's: an open counter.
    let object = unsafe { of(cntr) };
    value(0, || Ok(object.values()?.0))
}

unsafe extern "C" fn read_errors(cntr: *mut fid_cntr) -> u64 {
    // SAFETY: the application's: an open counter.
    let object = unsafe { of(cntr) };
    value(0, || Ok(object.values()?.1))
}

unsafe extern "C" fn add(cntr: *mut fid_cntr, value: u64) -> c_int {
    // SAFETY: the application's: an open counter.
    let object = unsafe { of(cntr) };
    object.change(|counter| counter.add(value))
}

unsafe extern "C" fn set(cntr: *mut fid_cntr, value: u64) -> c_int {
    // SAFETY: the application's: an open counter.
    let object = unsafe { of(cntr) };
    object.change(|counter| counter.set(value))
}

unsafe extern "C" fn add_error(cntr: *mut fid_cntr, value: u64) -> c_int {
    // SAFETY: the application's: an open counter.
    let object = unsafe { of(cntr) };
    object.change(|counter| counter.add_error(value))
}

unsafe extern "C" fn set_error(cntr: *mut fid_cntr, value: u64) -> c_int {
    // SAFETY: the application's: an open counter.
    let object = unsafe { of(cntr) };
    object.change(|counter| counter.set_error(value))
}

unsafe extern "C" fn wait(cntr: *mut fid_cntr, threshold: u64, timeout: c_int) -> c_int {
    // SAFETY: the application's: an open counter.
    let object = unsafe { of(cntr) };
    integer(|| object.wait_for(threshold, timeout))
}

static OPS: fi_ops = operations(close, no_bind, control);

static CNTR_OPS: fi_ops_cntr = fi_ops_cntr {
    size: size_of::<fi_ops_cntr>(),
    read,
    readerr: read_errors,
    add,
    set,
    wait,
    adderr: add_error,
    seterr: set_error,
    export_xpu: NONE,
};
