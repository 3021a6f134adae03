//! `struct fid_mr`: `fi_mr(3)`. Nothing here needs a registration, and nobody reaches memory by a key; applications
//! that register all the same get an object, a key, and a null descriptor.

use std::sync::Arc;

use libc::{c_int, c_void, iovec, size_t};

use super::domain::{self, Core};
use super::object::{self, head, operations};
use super::{counter, endpoint};
use crate::provider::abi::{self, fi_mr_attr, fi_ops, fi_ops_mr, fid, fid_mr};
use crate::provider::error::{Outcome, fail, integer};
use crate::provider::state::region::Bound;

type Object = object::Object<fid_mr, ()>;

/// # Safety
/// An open domain, and a place for the region.
unsafe fn open(
    domain: *mut fid,
    wanted: u64,
    flags: u64,
    region: *mut *mut fid_mr,
    context: *mut c_void,
) -> Outcome<c_int> {
    if flags != 0 {
        return fail(abi::FI_EBADFLAGS);
    }
    // SAFETY: the caller's.
    let core: &Arc<Core> = unsafe { domain::core(domain.cast()) };
    let wanted = (!core.deals_keys).then_some(wanted);
    let (index, key) = core.with(|state| state.regions.insert(wanted))?;
    let head =
        fid_mr { fid: head(abi::FI_CLASS_MR, context, &REGION_OPS), mem_desc: std::ptr::null_mut(), key };
    // SAFETY: the caller's.
    unsafe { region.write(object::open(head, Arc::clone(core), index, ())) };
    Ok(0)
}

/// The memory is not looked at: any range of addresses may be registered, also from 0 on (`fi_mr(3)`).
unsafe extern "C" fn register(
    domain: *mut fid,
    _: *const c_void,
    _: size_t,
    _: u64,
    _: u64,
    key: u64,
    flags: u64,
    region: *mut *mut fid_mr,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the application's: an open domain, and a place for the region.
    integer(|| unsafe { open(domain, key, flags, region, context) })
}

unsafe extern "C" fn register_vector(
    domain: *mut fid,
    vector: *const iovec,
    count: size_t,
    _: u64,
    _: u64,
    key: u64,
    flags: u64,
    region: *mut *mut fid_mr,
    context: *mut c_void,
) -> c_int {
    if count > 1 || (count > 0 && vector.is_null()) {
        return integer(|| fail(abi::FI_EINVAL));
    }
    // SAFETY: the application's: an open domain, and a place for the region.
    integer(|| unsafe { open(domain, key, flags, region, context) })
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
        // SAFETY: as above.
        let key = unsafe { (*attr).requested_key };
        // SAFETY: as above.
        let is_missing = unsafe { (*attr).mr_iov }.is_null() && count > 0;
        if count > 1 || is_missing {
            return fail(abi::FI_EINVAL);
        }
        // Memory of accelerators is not offered.
        if u64::from(interface) != abi::FI_HMEM_SYSTEM {
            return fail(abi::FI_ENOSYS);
        }
        // SAFETY: the application's: an open domain, and a place for the region.
        unsafe { open(domain, key, flags, region, context) }
    })
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    integer(|| {
        // SAFETY: the application's: an open region.
        let region: &Object = unsafe { object::of(fid.cast::<fid_mr>()) };
        region.domain.with(|state| {
            state.regions.remove(region.index);
            Ok(())
        })?;
        // SAFETY: it is closed once.
        unsafe { object::close::<fid_mr, ()>(fid.cast()) };
        Ok(0)
    })
}

/// To endpoints and counters: nothing follows from it, but that they are not closed before the region.
unsafe extern "C" fn bind(fid: *mut fid, other: *mut fid, _: u64) -> c_int {
    integer(|| {
        // SAFETY: the application's: an open region.
        let region: &Object = unsafe { object::of(fid.cast::<fid_mr>()) };
        // SAFETY: the application's: null or an open object.
        let class = unsafe { other.as_ref() }.map(|other| other.fclass as u64);
        let (domain, to) = match class {
            Some(abi::FI_CLASS_CNTR) => {
                // SAFETY: an object of the class that it says.
                let counter = unsafe { counter::of(other.cast()) };
                (&counter.domain, Bound::Counter(counter.index))
            }
            Some(abi::FI_CLASS_EP) => {
                // SAFETY: an object of the class that it says.
                let endpoint = unsafe { endpoint::of(other.cast()) };
                (&endpoint.domain, Bound::Endpoint(endpoint.index))
            }
            _ => return fail(abi::FI_EINVAL),
        };
        region.same_domain(domain)?;
        region.domain.with(|state| {
            match to {
                Bound::Counter(index) => drop(state.counter(index)?),
                Bound::Endpoint(index) => drop(state.endpoint(index)?),
            }
            state.regions.bind(region.index, to)?;
            Ok(0)
        })
    })
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
