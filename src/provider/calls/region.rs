//! `struct fid_mr`: `fi_mr(3)`. Memory that peers may access by its key. Memory of this side's needs no registration: the
//! descriptor is null.

use std::sync::Arc;
use std::time::{Duration, Instant};

use libc::{c_int, c_void, iovec, size_t};

use super::domain::{self, Core};
use super::memory::address;
use super::object::{self, head, operations};
use super::{counter, endpoint};
use crate::endpoint::Access;
use crate::provider::abi::{self, fi_mr_attr, fi_ops, fi_ops_mr, fid, fid_mr};
use crate::provider::error::{Outcome, fail, integer};
use crate::provider::state::region::Bound;
use crate::seam::Buffer;

type Object = object::Object<fid_mr, ()>;

/// For what memory may be registered.
const ACCESS: u64 = abi::FI_SEND
    | abi::FI_RECV
    | abi::FI_READ
    | abi::FI_WRITE
    | abi::FI_REMOTE_READ
    | abi::FI_REMOTE_WRITE
    | abi::FI_COLLECTIVE;
/// So long what is under way may take to end when a region is closed.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is registered, and for what.
struct Wanted {
    buffer: Buffer,
    access: u64,
    offset: u64,
    key: u64,
    flags: u64,
    context: *mut c_void,
}

/// # Safety
/// An open domain, and a place for the region.
unsafe fn open(domain: *mut fid, wanted: &Wanted, region: *mut *mut fid_mr) -> Outcome<c_int> {
    let &Wanted { buffer, access, offset, key, flags, context } = wanted;
    if flags & !abi::FI_RMA_EVENT != 0 {
        return fail(abi::FI_EBADFLAGS);
    }
    let is_memory = buffer.address.checked_add(buffer.length).is_some();
    if access & !ACCESS != 0 || offset != 0 || !is_memory {
        return fail(abi::FI_EINVAL);
    }
    // SAFETY: the caller's.
    let core: &Arc<Core> = unsafe { domain::core(domain.cast()) };
    let key = (!core.deals_keys).then_some(key);
    let address = if core.has_virtual_addresses { buffer.address } else { 0 };
    let has = |flag: u64| access & flag != 0;
    let access = Access { reads: has(abi::FI_REMOTE_READ), writes: has(abi::FI_REMOTE_WRITE) };
    let (index, key) = core.with(|state| state.register(key, address, buffer, access))?;
    let head =
        fid_mr { fid: head(abi::FI_CLASS_MR, context, &REGION_OPS), mem_desc: std::ptr::null_mut(), key };
    // SAFETY: the caller's.
    unsafe { region.write(object::open(head, Arc::clone(core), index, ())) };
    Ok(0)
}

/// Any range of addresses may be registered, also from 0 on (`fi_mr(3)`), but none beyond the last: what of it is memory when
/// peers access it is the application's to know.
unsafe extern "C" fn register(
    domain: *mut fid,
    memory: *const c_void,
    length: size_t,
    access: u64,
    offset: u64,
    key: u64,
    flags: u64,
    region: *mut *mut fid_mr,
    context: *mut c_void,
) -> c_int {
    let buffer = Buffer::new(address(memory), length as u64);
    let wanted = Wanted { buffer, access, offset, key, flags, context };
    // SAFETY: the application's: an open domain, and a place for the region.
    integer(|| unsafe { open(domain, &wanted, region) })
}

/// The memory of an io vector of one stretch, or of none.
///
/// # Safety
/// So many, or null.
///
/// # Errors
/// `FI_EINVAL`: there are more.
unsafe fn memory_of(vector: *const iovec, count: usize) -> Outcome<Buffer> {
    if count > 1 || (count > 0 && vector.is_null()) {
        return fail(abi::FI_EINVAL);
    }
    if count == 0 {
        return Ok(Buffer::new(0, 0));
    }
    // SAFETY: the caller's.
    let iovec { iov_base, iov_len } = unsafe { vector.read() };
    Ok(Buffer::new(address(iov_base), iov_len as u64))
}

unsafe extern "C" fn register_vector(
    domain: *mut fid,
    vector: *const iovec,
    count: size_t,
    access: u64,
    offset: u64,
    key: u64,
    flags: u64,
    region: *mut *mut fid_mr,
    context: *mut c_void,
) -> c_int {
    integer(|| {
        // SAFETY: the application's: so many stretches.
        let buffer = unsafe { memory_of(vector, count) }?;
        let wanted = Wanted { buffer, access, offset, key, flags, context };
        // SAFETY: the application's: an open domain, and a place for the region.
        unsafe { open(domain, &wanted, region) }
    })
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
        let vector = unsafe { (*attr).mr_iov };
        // SAFETY: as above.
        let access = unsafe { (*attr).access };
        // SAFETY: as above.
        let offset = unsafe { (*attr).offset };
        // SAFETY: as above.
        let interface = unsafe { (*attr).iface };
        // SAFETY: as above.
        let context = unsafe { (*attr).context };
        // SAFETY: as above.
        let key = unsafe { (*attr).requested_key };
        // SAFETY: the application's: so many stretches.
        let buffer = unsafe { memory_of(vector, count) }?;
        // Memory of accelerators is not offered.
        if u64::from(interface) != abi::FI_HMEM_SYSTEM {
            return fail(abi::FI_ENOSYS);
        }
        let wanted = Wanted { buffer, access, offset, key, flags, context };
        // SAFETY: the application's: an open domain, and a place for the region.
        unsafe { open(domain, &wanted, region) }
    })
}

/// When it returns nobody writes or reads the memory for a peer: what was under way has ended, or, where it does not come to
/// an end, its connection.
unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    integer(|| {
        // SAFETY: the application's: an open region.
        let region: &Object = unsafe { object::of(fid.cast::<fid_mr>()) };
        let withdrawn = region.domain.with(|state| Ok(state.withdraw(region.index)))?;
        let end = Instant::now() + PATIENCE;
        while !withdrawn.is_empty() {
            let is_patient = Instant::now() < end;
            if !region.domain.with(|state| Ok(state.is_in_use(&withdrawn, is_patient)))? {
                break;
            }
            std::thread::yield_now();
        }
        // SAFETY: it is closed once.
        unsafe { object::close::<fid_mr, ()>(fid.cast()) };
        Ok(0)
    })
}

/// To counters of peers' accesses (`FI_REMOTE_READ`, `FI_REMOTE_WRITE`), and to endpoints, which are not closed before the
/// region.
unsafe extern "C" fn bind(fid: *mut fid, other: *mut fid, flags: u64) -> c_int {
    integer(|| {
        // SAFETY: the application's: an open region.
        let region: &Object = unsafe { object::of(fid.cast::<fid_mr>()) };
        // SAFETY: the application's: null or an open object.
        let class = unsafe { other.as_ref() }.map(|other| other.fclass as u64);
        let (domain, to) = match class {
            Some(abi::FI_CLASS_CNTR) => {
                // SAFETY: an object of the class that it says.
                let counter = unsafe { counter::of(other.cast()) };
                (&counter.domain, Bound::Counter(counter.index, flags))
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
                Bound::Counter(index, _) => drop(state.counter(index)?),
                Bound::Endpoint(index) => drop(state.endpoint(index)?),
            }
            state.bind_region(region.index, to)?;
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
