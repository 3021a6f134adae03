//! `struct fid_fabric`: domains, event queues, and whether one may wait.

use std::sync::Arc;

use libc::{c_int, c_void};

use super::memory::many;
use super::object::{Children, head, no_bind, no_control, operations};
use super::passive::{self, Requests};
use super::unsupported::NONE;
use super::{counter, domain, event_queue, queue};
use crate::provider::abi::{
    self, fi_eq_attr, fi_fabric_attr, fi_info, fi_ops, fi_ops_fabric, fid, fid_domain, fid_eq, fid_fabric,
};
use crate::provider::error::{Outcome, fail, integer};

/// What a fabric's objects share.
pub(super) struct Core {
    /// The API of the application.
    pub(super) api: u32,
    pub(super) children: Children,
    /// Requests for connections that nobody has answered.
    pub(super) requests: Requests,
}

#[repr(C)]
struct Object {
    head: fid_fabric,
    core: Arc<Core>,
}

/// `fi_fabric(3)`. Every name is as good: names tell domains apart before they are opened.
pub(in crate::provider) unsafe extern "C" fn open(
    attr: *mut fi_fabric_attr,
    fabric: *mut *mut fid_fabric,
    context: *mut c_void,
) -> c_int {
    integer(|| {
        // SAFETY: libfabric's: attributes.
        let Some(attr) = (unsafe { attr.as_ref() }) else { return fail(abi::FI_EINVAL) };
        let api = attr.api_version;
        let head = fid_fabric {
            fid: head(abi::FI_CLASS_FABRIC, context, &OPS),
            ops: &raw const FABRIC_OPS,
            api_version: api,
        };
        let object = Box::new(Object {
            head,
            core: Arc::new(Core { api, children: Children::default(), requests: Requests::default() }),
        });
        // SAFETY: libfabric's: a place for the fabric.
        unsafe { fabric.write(Box::into_raw(object).cast()) };
        Ok(0)
    })
}

/// # Safety
/// A fabric of [`open`] that is not closed while the result is used.
pub(super) unsafe fn core<'a>(fabric: *mut fid_fabric) -> &'a Arc<Core> {
    // SAFETY: the caller's.
    unsafe { &(*fabric.cast::<Object>()).core }
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    integer(|| {
        // SAFETY: the application's: an open fabric.
        unsafe { core(fid.cast()) }.children.none()?;
        // SAFETY: it is closed once, and has no children.
        drop(unsafe { Box::from_raw(fid.cast::<Object>()) });
        Ok(0)
    })
}

unsafe extern "C" fn open_domain(
    fabric: *mut fid_fabric,
    info: *mut fi_info,
    domain: *mut *mut fid_domain,
    context: *mut c_void,
) -> c_int {
    integer(|| {
        // SAFETY: the application's: an open fabric.
        let core = unsafe { core(fabric) };
        // SAFETY: the application's: an info of `fi_getinfo`.
        let opened = unsafe { domain::open(core, info, context) }?;
        // SAFETY: the application's: a place for the domain.
        unsafe { domain.write(opened) };
        Ok(0)
    })
}

unsafe extern "C" fn open_domain2(
    fabric: *mut fid_fabric,
    info: *mut fi_info,
    domain: *mut *mut fid_domain,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    if flags != 0 {
        return integer(|| fail(abi::FI_ENOSYS));
    }
    // SAFETY: the caller's, and the same.
    unsafe { open_domain(fabric, info, domain, context) }
}

unsafe extern "C" fn open_event_queue(
    fabric: *mut fid_fabric,
    attr: *mut fi_eq_attr,
    eq: *mut *mut fid_eq,
    context: *mut c_void,
) -> c_int {
    integer(|| {
        // SAFETY: the application's: an open fabric.
        let core = unsafe { core(fabric) };
        // SAFETY: the application's: null or attributes.
        let attr = unsafe { attr.as_ref() };
        let opened = event_queue::open(core, attr, context)?;
        // SAFETY: the application's: a place for the queue.
        unsafe { eq.write(opened) };
        Ok(0)
    })
}

unsafe extern "C" fn may_wait(_: *mut fid_fabric, fids: *mut *mut fid, count: c_int) -> c_int {
    integer(|| {
        let Ok(count) = usize::try_from(count) else { return fail(abi::FI_EINVAL) };
        // SAFETY: the application's: so many objects, or null.
        let fids = unsafe { many(fids, count) }?;
        for fid in fids {
            // SAFETY: the application's: an open object.
            let class = unsafe { fid.as_ref() }.map_or(0, |fid| fid.fclass as u64);
            // SAFETY: an object of the class that it says.
            let outcome: Outcome<bool> = match class {
                // SAFETY: as above.
                abi::FI_CLASS_CQ => unsafe { queue::may_wait(fid.cast()) },
                // SAFETY: as above.
                abi::FI_CLASS_CNTR => unsafe { counter::may_wait(fid.cast()) },
                // SAFETY: as above.
                abi::FI_CLASS_EQ => Ok(unsafe { event_queue::may_wait(fid.cast()) }),
                _ => fail(abi::FI_ENOSYS),
            };
            if !outcome? {
                return fail(abi::FI_EAGAIN);
            }
        }
        Ok(0)
    })
}

static OPS: fi_ops = operations(close, no_bind, no_control);

static FABRIC_OPS: fi_ops_fabric = fi_ops_fabric {
    size: size_of::<fi_ops_fabric>(),
    domain: open_domain,
    passive_ep: passive::open,
    eq_open: open_event_queue,
    wait_open: NONE,
    trywait: may_wait,
    domain2: open_domain2,
};
