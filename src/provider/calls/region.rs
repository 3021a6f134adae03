//! `struct fid_mr`: `fi_mr(3)`. Nothing here needs a registration, and nobody reaches memory by a key; applications
//! that register all the same get an object, a key, and a null descriptor.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use libc::{c_int, c_void, iovec, size_t};

use super::domain::{self, Core};
use super::object::{self, head, operations};
use crate::provider::abi::{self, fi_mr_attr, fi_ops, fi_ops_mr, fid, fid_mr};
use crate::provider::error::{Outcome, fail, integer};

/// # Safety
/// An open domain, and a place for the region.
unsafe fn open(
    domain: *mut fid,
    flags: u64,
    region: *mut *mut fid_mr,
    context: *mut c_void,
) -> Outcome<c_int> {
    if flags != 0 {
        return fail(abi::FI_EBADFLAGS);
    }
    // SAFETY: the caller's.
    let core: &Arc<Core> = unsafe { domain::core(domain.cast()) };
    let key = core.keys.fetch_add(1, Ordering::Relaxed);
    let head =
        fid_mr { fid: head(abi::FI_CLASS_MR, context, &REGION_OPS), mem_desc: std::ptr::null_mut(), key };
    // SAFETY: the caller's.
    unsafe { region.write(object::open(head, Arc::clone(core), 0, ())) };
    Ok(0)
}

unsafe extern "C" fn register(
    domain: *mut fid,
    _: *const c_void,
    _: size_t,
    _: u64,
    _: u64,
    _: u64,
    flags: u64,
    region: *mut *mut fid_mr,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the application's: an open domain, and a place for the region.
    integer(|| unsafe { open(domain, flags, region, context) })
}

unsafe extern "C" fn register_vector(
    domain: *mut fid,
    _: *const iovec,
    count: size_t,
    _: u64,
    _: u64,
    _: u64,
    flags: u64,
    region: *mut *mut fid_mr,
    context: *mut c_void,
) -> c_int {
    if count > 1 {
        return integer(|| fail(abi::FI_EINVAL));
    }
    // SAFETY: the application's: an open domain, and a place for the region.
    integer(|| unsafe { open(domain, flags, region, context) })
}

unsafe extern "C" fn register_attributes(
    domain: *mut fid,
    attr: *const fi_mr_attr,
    flags: u64,
    region: *mut *mut fid_mr,
) -> c_int {
    integer(|| {
        if attr.is_null() {
            return fail(abi::FI_EINVAL);
        }
        // SAFETY: the application's: attributes of API 1.17 at least.
        let count = unsafe { (*attr).iov_count };
        // SAFETY: as above.
        let interface = unsafe { (*attr).iface };
        // SAFETY: as above.
        let context = unsafe { (*attr).context };
        if count > 1 {
            return fail(abi::FI_EINVAL);
        }
        // Memory of accelerators is not offered.
        if u64::from(interface) != abi::FI_HMEM_SYSTEM {
            return fail(abi::FI_ENOSYS);
        }
        // SAFETY: the application's: an open domain, and a place for the region.
        unsafe { open(domain, flags, region, context) }
    })
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    integer(|| {
        // SAFETY: the application's: an open region, closed once.
        unsafe { object::close::<fid_mr, ()>(fid.cast()) };
        Ok(0)
    })
}

/// To endpoints and counters: nothing follows from it.
unsafe extern "C" fn bind(_: *mut fid, _: *mut fid, _: u64) -> c_int {
    0
}

unsafe extern "C" fn control(_: *mut fid, command: c_int, _: *mut c_void) -> c_int {
    let is_enable = u64::try_from(command) == Ok(abi::FI_ENABLE);
    integer(|| if is_enable { Ok(0) } else { fail(abi::FI_ENOSYS) })
}

static REGION_OPS: fi_ops = operations(close, bind, control);

pub(super) static OPS: fi_ops_mr = fi_ops_mr {
    size: size_of::<fi_ops_mr>(),
    reg: register,
    regv: register_vector,
    regattr: register_attributes,
};
