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
    /// Which object it is; it is not looked into.
    object: *mut fid,
    /// Of the object when it was added.
    context: *mut c_void,
    target: Target,
    /// What a counter's changes were when they were reported last.
    seen: u64,
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

    /// A member is one no more: it may be closed.
    fn leave(&self, target: Target) -> Outcome<()> {
        self.domain.with(|state| {
            *state.sets(target)? -= 1;
            Ok(())
        })
    }

    /// Whether a member has something.
    fn has_something(&self, member: &mut Member) -> Outcome<bool> {
        self.domain.with(|state| match member.target {
            Target::Queue(index) => Ok(!state.queue(index)?.is_empty()),
            Target::Counter(index) => Ok(state.counter(index)?.has_changed(&mut member.seen)),
        })
    }
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    integer(|| {
        // SAFETY: the application's: an open set.
        let object = unsafe { of(fid.cast()) };
        // `fi_poll(3)`: what is in it is taken out first.
        object.members(|members| if members.is_empty() { Ok(()) } else { fail(abi::FI_EBUSY) })?;
        // SAFETY: it is closed once.
        unsafe { object::close::<fid_poll, Members>(fid.cast()) };
        Ok(0)
    })
}

unsafe extern "C" fn poll(poll: *mut fid_poll, contexts: *mut *mut c_void, count: c_int) -> c_int {
    integer(|| {
        // SAFETY: the application's: an open set.
        let object = unsafe { of(poll) };
        let Ok(room) = usize::try_from(count) else { return fail(abi::FI_EINVAL) };
        if room > 0 && contexts.is_null() {
            return fail(abi::FI_EINVAL);
        }
        object.members(|members| {
            let mut found = 0;
            for member in members.iter_mut() {
                object.domain.with(|state| Ok(state.progress_target(member.target)))?;
                if found < room && object.has_something(member)? {
                    // SAFETY: the application's: so much room.
                    unsafe { write_at(contexts, found, member.context) };
                    found += 1;
                }
            }
            Ok(c_int::try_from(found).unwrap_or(c_int::MAX))
        })
    })
}

/// What may be in a set: the target that an object of this domain is, and its context.
///
/// # Safety
/// Null, or an open object.
unsafe fn target(object: &Object, other: *mut fid) -> Outcome<(Target, *mut c_void)> {
    // SAFETY: the caller's.
    let Some(head) = (unsafe { other.as_ref() }) else { return fail(abi::FI_EINVAL) };
    let (target, domain) = match head.fclass as u64 {
        abi::FI_CLASS_CQ => {
            // SAFETY: an object of the class that it says.
            let queue = unsafe { queue::of(other.cast()) };
            (Target::Queue(queue.index), &queue.domain)
        }
        abi::FI_CLASS_CNTR => {
            // SAFETY: an object of the class that it says.
            let counter = unsafe { counter::of(other.cast()) };
            (Target::Counter(counter.index), &counter.domain)
        }
        _ => return fail(abi::FI_EINVAL),
    };
    object.same_domain(domain)?;
    Ok((target, head.context))
}

/// What is there already stays as it is.
unsafe extern "C" fn add(poll: *mut fid_poll, other: *mut fid, flags: u64) -> c_int {
    integer(|| {
        // SAFETY: the application's: an open set.
        let object = unsafe { of(poll) };
        if flags != 0 {
            return fail(abi::FI_EBADFLAGS);
        }
        // SAFETY: the application's: an open object.
        let (target, context) = unsafe { target(object, other) }?;
        object.members(|members| {
            if members.iter().any(|member| member.object == other) {
                return Ok(0);
            }
            object.domain.with(|state| {
                *state.sets(target)? += 1;
                Ok(())
            })?;
            members.push(Member { object: other, context, target, seen: 0 });
            Ok(0)
        })
    })
}

unsafe extern "C" fn remove(poll: *mut fid_poll, other: *mut fid, flags: u64) -> c_int {
    integer(|| {
        // SAFETY: the application's: an open set.
        let object = unsafe { of(poll) };
        if flags != 0 {
            return fail(abi::FI_EBADFLAGS);
        }
        object.members(|members| {
            let Some(place) = members.iter().position(|member| member.object == other) else {
                return fail(abi::FI_EINVAL);
            };
            object.leave(members.remove(place).target)?;
            Ok(0)
        })
    })
}

static OPS: fi_ops = operations(close, no_bind, no_control);

static POLL_OPS: fi_ops_poll =
    fi_ops_poll { size: size_of::<fi_ops_poll>(), poll, poll_add: add, poll_del: remove };
