//! `struct fid_poll`: `fi_poll(3)`, queues and counters to look at together.

use std::sync::{Arc, Mutex, PoisonError};

use libc::{c_int, c_void};

use super::object::{self, head, no_bind, no_control, operations, write_at};
use super::{counter, domain, queue};
use crate::provider::abi::{self, fi_ops, fi_ops_poll, fi_poll_attr, fid, fid_domain, fid_poll};
use crate::provider::error::{Outcome, fail, integer};
use crate::provider::state::Target;

/// What is looked at.
struct Members(Mutex<Vec<Member>>);

struct Member {
    object: *mut fid,
    target: Target,
    /// The value of a counter when it was reported last.
    seen: (u64, u64),
}

type Object = object::Object<fid_poll, Members>;

/// `fi_poll_open(3)`.
pub(super) unsafe extern "C" fn open(
    domain: *mut fid_domain,
    attr: *mut fi_poll_attr,
    poll: *mut *mut fid_poll,
) -> c_int {
    integer(|| {
        // SAFETY: the application's: null or attributes.
        if unsafe { attr.as_ref() }.is_some_and(|attr| attr.flags != 0) {
            return fail(abi::FI_EBADFLAGS);
        }
        // SAFETY: the application's: an open domain.
        let core = unsafe { domain::core(domain) };
        let context = std::ptr::null_mut();
        let head = fid_poll { fid: head(abi::FI_CLASS_POLL, context, &OPS), ops: &raw const POLL_OPS };
        let members = Members(Mutex::default());
        // SAFETY: the application's: a place for the set.
        unsafe { poll.write(object::open(head, Arc::clone(core), 0, members)) };
        Ok(0)
    })
}

/// # Safety
/// A set of [`open`] that is not closed while the result is used.
unsafe fn of<'a>(poll: *mut fid_poll) -> &'a Object {
    // SAFETY: the caller's.
    unsafe { object::of(poll) }
}

impl Object {
    fn members<R>(&self, call: impl FnOnce(&mut Vec<Member>) -> R) -> R {
        // No call leaves the members half changed.
        call(&mut self.extra.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether a member has something.
    fn has_something(&self, member: &mut Member) -> Outcome<bool> {
        self.domain.with(|state| {
            state.progress_target(member.target);
            match member.target {
                Target::Queue(index) => Ok(!state.queue(index)?.is_empty()),
                Target::Counter(index) => {
                    let counter = state.counter(index)?;
                    let now = (counter.value, counter.errors);
                    Ok(std::mem::replace(&mut member.seen, now) != now)
                }
            }
        })
    }
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    integer(|| {
        // SAFETY: the application's: an open set, closed once.
        unsafe { object::close::<fid_poll, Members>(fid.cast()) };
        Ok(0)
    })
}

unsafe extern "C" fn poll(poll: *mut fid_poll, contexts: *mut *mut c_void, count: c_int) -> c_int {
    integer(|| {
        // SAFETY: the application's: an open set.
        let object = unsafe { of(poll) };
        let room = usize::try_from(count).unwrap_or_default();
        object.members(|members| {
            let mut found = 0;
            for member in members.iter_mut() {
                if found < room && object.has_something(member)? {
                    // SAFETY: the application's: members are open.
                    let context = unsafe { (*member.object).context };
                    // SAFETY: the application's: so much room.
                    unsafe { write_at(contexts, found, context) };
                    found += 1;
                }
            }
            Ok(c_int::try_from(found).unwrap_or(c_int::MAX))
        })
    })
}

unsafe extern "C" fn add(poll: *mut fid_poll, other: *mut fid, _: u64) -> c_int {
    integer(|| {
        // SAFETY: the application's: an open set.
        let object = unsafe { of(poll) };
        // SAFETY: the application's: an open object.
        let class = unsafe { other.as_ref() }.map_or(0, |other| other.fclass as u64);
        let target = match class {
            // SAFETY: an object of the class that it says.
            abi::FI_CLASS_CQ => Target::Queue(unsafe { queue::of(other.cast()) }.index),
            // SAFETY: an object of the class that it says.
            abi::FI_CLASS_CNTR => Target::Counter(unsafe { counter::of(other.cast()) }.index),
            _ => return fail(abi::FI_EINVAL),
        };
        object.members(|members| {
            if members.iter().all(|member| member.object != other) {
                members.push(Member { object: other, target, seen: (0, 0) });
            }
        });
        Ok(0)
    })
}

unsafe extern "C" fn remove(poll: *mut fid_poll, other: *mut fid, _: u64) -> c_int {
    integer(|| {
        // SAFETY: the application's: an open set.
        let object = unsafe { of(poll) };
        object.members(|members| members.retain(|member| member.object != other));
        Ok(0)
    })
}

static OPS: fi_ops = operations(close, no_bind, no_control);

static POLL_OPS: fi_ops_poll =
    fi_ops_poll { size: size_of::<fi_ops_poll>(), poll, poll_add: add, poll_del: remove };
