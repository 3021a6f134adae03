//! `struct fid_av`: `fi_av(3)`. Insertion is at once; there is nothing to wait for.

use std::ffi::CStr;
use std::ptr;
use std::sync::Arc;

use libc::{c_char, c_int, c_void, size_t};

use super::domain;
use super::memory::{given, many};
use super::object::{self, head, no_bind, no_control, operations, write_at};
use super::text::write_text;
use super::unsupported::NONE;
use crate::provider::abi::{self, fi_av_attr, fi_ops, fi_ops_av, fid, fid_av, fid_domain};
use crate::provider::address::{Name, length_of_family, resolve};
use crate::provider::error::{Code, Outcome, code, fail, integer, value};
use crate::provider::state::vector::Vector;

type Object = object::Object<fid_av, ()>;

/// `fi_av_open(3)`.
pub(super) unsafe extern "C" fn open(
    domain: *mut fid_domain,
    attr: *mut fi_av_attr,
    av: *mut *mut fid_av,
    context: *mut c_void,
) -> c_int {
    integer(|| {
        // SAFETY: the application's: null or attributes.
        if let Some(attr) = unsafe { attr.as_ref() } {
            if u64::from(attr.r#type) > abi::FI_AV_TABLE || attr.rx_ctx_bits != 0 {
                return fail(abi::FI_EINVAL);
            }
            // Shared vectors, and insertion that is told of later.
            if !attr.name.is_null() || attr.flags & abi::FI_EVENT != 0 {
                return fail(abi::FI_ENOSYS);
            }
            if attr.flags != 0 {
                return fail(abi::FI_EBADFLAGS);
            }
        }
        // SAFETY: the application's: an open domain.
        let core = unsafe { domain::core(domain) };
        let index = core.with(|state| Ok(state.vectors.insert(Vector::default())))?;
        let head = fid_av { fid: head(abi::FI_CLASS_AV, context, &OPS), ops: &raw const AV_OPS };
        // SAFETY: the application's: a place for the vector.
        unsafe { av.write(object::open(head, Arc::clone(core), index, ())) };
        Ok(0)
    })
}

/// # Safety
/// A vector of [`open`] that is not closed while the result is used.
pub(super) unsafe fn of<'a>(av: *mut fid_av) -> &'a Object {
    // SAFETY: the caller's.
    unsafe { object::of(av) }
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    integer(|| {
        // SAFETY: the application's: an open vector.
        let object = unsafe { of(fid.cast()) };
        object.domain.with(|state| {
            if !state.vector(object.index)?.endpoints.is_empty() {
                return fail(abi::FI_EBUSY);
            }
            state.vectors.try_remove(object.index);
            Ok(())
        })?;
        // SAFETY: it is closed once.
        unsafe { object::close::<fid_av, ()>(fid.cast()) };
        Ok(0)
    })
}

/// Where an insertion writes what became of each address.
struct Results {
    numbers: *mut u64,
    errors: *mut c_int,
    place: usize,
    inserted: c_int,
}

impl Results {
    /// # Safety
    /// As `fi_av_insert(3)`: null or places for as many numbers as addresses; with `FI_SYNC_ERR` as many errors.
    unsafe fn new(numbers: *mut u64, flags: u64, context: *mut c_void) -> Outcome<Self> {
        if flags & !(abi::FI_MORE | abi::FI_SYNC_ERR) != 0 {
            return fail(abi::FI_EBADFLAGS);
        }
        let errors: *mut c_int = if flags & abi::FI_SYNC_ERR != 0 { context.cast() } else { ptr::null_mut() };
        if flags & abi::FI_SYNC_ERR != 0 && errors.is_null() {
            return fail(abi::FI_EINVAL);
        }
        Ok(Self { numbers, errors, place: 0, inserted: 0 })
    }

    fn push(&mut self, outcome: Outcome<u64>) {
        let number = outcome.unwrap_or(abi::FI_ADDR_NOTAVAIL);
        if !self.numbers.is_null() {
            // SAFETY: the caller's of `new`: there is a place for each address.
            unsafe { write_at(self.numbers, self.place, number) };
        }
        if !self.errors.is_null() {
            let error = outcome.err().map_or(0, |Code(code)| code);
            // SAFETY: as before.
            unsafe { write_at(self.errors, self.place, error) };
        }
        self.place += 1;
        self.inserted += c_int::from(outcome.is_ok());
    }
}

impl Object {
    fn insert(&self, name: Outcome<Name>) -> Outcome<u64> {
        let name = name?;
        self.domain.with(|state| {
            let number = state.vector(self.index)?.insert(name);
            if let Err(error) = state.enter(self.index, number) {
                state.leave(self.index, number)?;
                return Err(error);
            }
            Ok(number)
        })
    }
}

unsafe extern "C" fn insert(
    av: *mut fid_av,
    addresses: *const c_void,
    count: size_t,
    numbers: *mut u64,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    integer(|| {
        // SAFETY: the application's: an open vector.
        let object = unsafe { of(av) };
        // SAFETY: the application's: places for results.
        let mut results = unsafe { Results::new(numbers, flags, context) }?;
        given(addresses, count)?;
        let mut next = addresses.cast::<u8>();
        let mut is_known = true;
        for _ in 0..count {
            // After an address of an unknown family nobody knows where the next one begins.
            let name = if is_known {
                // SAFETY: the application's: so many addresses, of which this is the next.
                let (name, length) = unsafe { name_at(next) };
                is_known = length > 0;
                // SAFETY: the addresses are one behind the other.
                next = unsafe { next.add(length) };
                name
            } else {
                fail(abi::FI_EINVAL)
            };
            results.push(object.insert(name));
        }
        Ok(results.inserted)
    })
}

/// The address at a pointer and how long it is; 0 of an unknown family.
///
/// # Safety
/// A `sockaddr` with all that its family has.
unsafe fn name_at(pointer: *const u8) -> (Outcome<Name>, usize) {
    // SAFETY: the caller's; a family is at the beginning of each.
    let family = unsafe { pointer.cast::<u16>().read_unaligned() };
    let Some(length) = length_of_family(family) else { return (fail(abi::FI_EINVAL), 0) };
    // SAFETY: an address of this family is so long.
    let bytes = unsafe { std::slice::from_raw_parts(pointer, length) };
    (Name::decode(bytes).ok_or(code(abi::FI_EINVAL)), length)
}

unsafe extern "C" fn insert_service(
    av: *mut fid_av,
    node: *const c_char,
    service: *const c_char,
    number: *mut u64,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    integer(|| {
        if node.is_null() || service.is_null() {
            return fail(abi::FI_EINVAL);
        }
        // SAFETY: the application's: a string.
        let node = unsafe { CStr::from_ptr(node) };
        // SAFETY: the application's: a string.
        let service = unsafe { CStr::from_ptr(service) };
        // SAFETY: the application's: an open vector.
        let object = unsafe { of(av) };
        // SAFETY: the application's: a place for the result.
        let mut results = unsafe { Results::new(number, flags, context) }?;
        results.push(object.insert(first_name(node, service)));
        Ok(results.inserted)
    })
}

fn first_name(node: &CStr, service: &CStr) -> Outcome<Name> {
    let found = resolve(Some(node), Some(service), false)?;
    found.first().map(|address| Name::new(*address)).ok_or(code(abi::FI_ENODATA))
}

unsafe extern "C" fn insert_symmetric(
    av: *mut fid_av,
    node: *const c_char,
    nodes: size_t,
    service: *const c_char,
    services: size_t,
    numbers: *mut u64,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    integer(|| {
        if nodes == 0 || services == 0 {
            return Ok(0);
        }
        // SAFETY: the application's: null or a string.
        let node = unsafe { super::text::read_text(node) }?;
        // SAFETY: the application's: null or a string.
        let service = unsafe { super::text::read_text(service) }?;
        // SAFETY: the application's: an open vector.
        let object = unsafe { of(av) };
        // SAFETY: the application's: places for results.
        let mut results = unsafe { Results::new(numbers, flags, context) }?;
        for n in 0..nodes {
            for s in 0..services {
                let name = counted(&node, n).and_then(|node| Ok((node, counted(&service, s)?)));
                results.push(object.insert(name.and_then(|(node, service)| first_name(&node, &service))));
            }
        }
        Ok(results.inserted)
    })
}

/// `node7` and 2 make `node9`: the number at the end counts on (`fi_av_insertsym(3)`). Of a numeric address it is the
/// last part.
fn counted(text: &str, step: usize) -> Outcome<std::ffi::CString> {
    let digits = text.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (stem, number) = text.split_at(text.len() - digits);
    let counted = if step == 0 {
        text.to_owned()
    } else {
        let value = number.parse::<u64>().map_err(|_| code(abi::FI_EINVAL))?;
        format!("{stem}{:0digits$}", value.saturating_add(step as u64))
    };
    std::ffi::CString::new(counted).map_err(|_| code(abi::FI_EINVAL))
}

unsafe extern "C" fn remove(av: *mut fid_av, numbers: *mut u64, count: size_t, flags: u64) -> c_int {
    integer(|| {
        if flags != 0 {
            return fail(abi::FI_EBADFLAGS);
        }
        // SAFETY: the application's: an open vector.
        let object = unsafe { of(av) };
        // SAFETY: the application's: so many numbers, or null.
        let numbers = unsafe { many(numbers, count) }?;
        object.domain.with(|state| {
            // As many as can be, and the first error.
            let mut outcome = Ok(());
            for number in numbers {
                outcome = outcome.and(state.leave(object.index, *number));
            }
            outcome
        })?;
        Ok(0)
    })
}

unsafe extern "C" fn lookup(
    av: *mut fid_av,
    number: u64,
    address: *mut c_void,
    length: *mut size_t,
) -> c_int {
    integer(|| {
        // SAFETY: the application's: an open vector.
        let object = unsafe { of(av) };
        let name = object.domain.with(|state| state.vector(object.index)?.lookup(number))?;
        // SAFETY: the application's: room of the length that it says.
        unsafe { super::text::write_name(name.bytes(), address.cast(), length) }?;
        Ok(0)
    })
}

unsafe extern "C" fn address_text(
    _: *mut fid_av,
    address: *const c_void,
    buffer: *mut c_char,
    length: *mut size_t,
) -> *const c_char {
    value(ptr::null(), || {
        if address.is_null() || length.is_null() {
            return Ok(ptr::null());
        }
        // SAFETY: the application's: one address.
        let (name, _) = unsafe { name_at(address.cast()) };
        let text = name.map_or_else(|_| "(no address of IP)".to_owned(), |name| name.text());
        // SAFETY: the application's: the length of the buffer.
        let room = unsafe { length.read() };
        // SAFETY: the application's: so much room.
        unsafe { write_text(&text, buffer, room) };
        // SAFETY: the application's: a place for the length.
        unsafe { length.write(text.len() + 1) };
        Ok(buffer.cast_const())
    })
}

static OPS: fi_ops = operations(close, no_bind, no_control);

static AV_OPS: fi_ops_av = fi_ops_av {
    size: size_of::<fi_ops_av>(),
    insert,
    insertsvc: insert_service,
    insertsym: insert_symmetric,
    remove,
    lookup,
    straddr: address_text,
    av_set: NONE,
    insert_auth_key: NONE,
    lookup_auth_key: NONE,
    set_user_id: NONE,
    lookup2: NONE,
};
