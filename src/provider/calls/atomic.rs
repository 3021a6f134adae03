//! `fi_atomic(3)`: every call.

use std::ptr::null;

use libc::{c_int, c_void, size_t, ssize_t};

use super::endpoint::{Object, of};
use super::memory::{address, given, many};
use crate::atomics::{AtomicCall, AtomicOp, AtomicType};
use crate::endpoint::Endpoint;
use crate::provider::abi::{
    self, fi_atomic_attr, fi_ioc, fi_msg_atomic, fi_ops_atomic, fi_rma_ioc, fid_domain, fid_ep,
};
use crate::provider::error::{Outcome, code, fail, integer};
use crate::provider::info::{IOV_LIMIT, RMA_IOV_LIMIT};
use crate::provider::state::remote::AtomicRequest;
use crate::provider::state::transfer::Flags;
use crate::seam::Segment;
use crate::wire::RemoteStretch;

/// What a call says beside memory.
#[derive(Clone, Copy)]
struct Asked {
    call: AtomicCall,
    datatype: c_int,
    op: c_int,
    peer: u64,
    flags: Flags,
    context: *mut c_void,
}

/// Values here: what goes with the operation, what it compares with, where what was there goes.
#[derive(Clone, Copy)]
struct Here<'a> {
    operands: &'a [fi_ioc],
    compares: &'a [fi_ioc],
    results: &'a [fi_ioc],
}

/// The operation and the type of a call, if there are such.
fn named(call: AtomicCall, datatype: c_int, op: c_int) -> Outcome<(AtomicOp, AtomicType)> {
    let number = |number: c_int| u64::try_from(number).unwrap_or(u64::MAX);
    match (AtomicOp::of(number(op)), AtomicType::of(number(datatype))) {
        (Some(op), Some(of)) if op.is_valid(of, call) => Ok((op, of)),
        _ => fail(abi::FI_EOPNOTSUPP),
    }
}

/// Ask for an operation.
///
/// # Safety
/// An open endpoint; values that can be read, and results that stay until the completion.
unsafe fn ask(object: &Object, asked: Asked, here: Here<'_>, there: &[fi_rma_ioc]) -> Outcome<usize> {
    object.has_atomics()?;
    let Asked { call, datatype, op, peer, flags, context } = asked;
    let (op, of) = named(call, datatype, op)?;
    if there.len() > RMA_IOV_LIMIT {
        return fail(abi::FI_EINVAL);
    }
    let mut remote = [RemoteStretch::default(); RMA_IOV_LIMIT];
    for (to, from) in remote.iter_mut().zip(there) {
        let length = (from.count as u64).saturating_mul(of.size() as u64);
        *to = RemoteStretch { key: from.key, address: from.addr, length };
    }
    let of_op = |values, wanted: bool| if wanted { values } else { &[][..] };
    // SAFETY: the caller's.
    let operands = unsafe { gather(of_op(here.operands, op.operands() > 0), of) }?;
    // SAFETY: the caller's.
    let compares = unsafe { gather(of_op(here.compares, op.compares()), of) }?;
    let mut fetched = Vec::new();
    for one in here.results {
        given(one.addr, one.count)?;
        let length = (one.count as u64).saturating_mul(of.size() as u64);
        fetched.push(Segment { address: address(one.addr), length, key: 0 });
    }
    let request = AtomicRequest {
        op,
        of,
        to: peer,
        operands: &operands,
        compares: &compares,
        fetched: (call != AtomicCall::Base).then_some(&fetched[..]),
        remote: remote.get(..there.len()).unwrap_or_default(),
        context: address(context),
        flags,
    };
    object.domain.with(|state| state.operate(object.index, &request))
}

/// A copy of values.
///
/// # Safety
/// So many values each, or null.
unsafe fn gather(vector: &[fi_ioc], of: AtomicType) -> Outcome<Vec<u8>> {
    let mut bytes = Vec::new();
    for one in vector {
        let length = one.count.saturating_mul(of.size());
        if length.saturating_add(bytes.len()) as u64 > Endpoint::ATOMIC_MAX {
            return fail(abi::FI_EMSGSIZE);
        }
        // SAFETY: the caller's.
        bytes.extend_from_slice(unsafe { many(one.addr.cast::<u8>().cast_const(), length) }?);
    }
    Ok(bytes)
}

/// # Safety
/// So many, or null.
unsafe fn vector<'a>(vector: *const fi_ioc, count: usize) -> Outcome<&'a [fi_ioc]> {
    if count > IOV_LIMIT {
        return fail(abi::FI_EINVAL);
    }
    // SAFETY: the caller's.
    unsafe { many(vector, count) }
}

/// One stretch there, of as many values as one of these has that is not empty.
fn one_there(here: Here<'_>, addr: u64, key: u64) -> [fi_rma_ioc; 1] {
    let longest = if here.results.is_empty() { here.operands } else { here.results };
    [fi_rma_ioc { addr, count: longest.iter().fold(0, |sum: usize, one| sum.saturating_add(one.count)), key }]
}

/// # Safety
/// As of [`ask`].
unsafe fn simple(
    ep: *mut fid_ep,
    asked: Asked,
    count: usize,
    [operand, compare, result]: [*const c_void; 3],
    (addr, key): (u64, u64),
) -> ssize_t {
    // SAFETY: the caller's.
    let object = unsafe { of(ep) };
    object.transfer(|| {
        let values = |pointer: *const c_void| [fi_ioc { addr: pointer.cast_mut(), count }];
        let (operands, compares, results) = (values(operand), values(compare), values(result));
        let results = if asked.call == AtomicCall::Base { &[][..] } else { &results };
        let here = Here { operands: &operands, compares: &compares, results };
        // SAFETY: the caller's.
        unsafe { ask(object, asked, here, &one_there(here, addr, key)) }
    })
}

/// # Safety
/// As of [`ask`], of so many values each or null.
unsafe fn vectors(
    ep: *mut fid_ep,
    asked: Asked,
    [operands, compares, results]: [(*const fi_ioc, usize); 3],
    (addr, key): (u64, u64),
) -> ssize_t {
    // SAFETY: the caller's.
    let object = unsafe { of(ep) };
    object.transfer(|| {
        // SAFETY: the caller's.
        let operands = unsafe { vector(operands.0, operands.1) }?;
        // SAFETY: the caller's.
        let compares = unsafe { vector(compares.0, compares.1) }?;
        // SAFETY: the caller's.
        let results = unsafe { vector(results.0, results.1) }?;
        let here = Here { operands, compares, results };
        // SAFETY: the caller's.
        unsafe { ask(object, asked, here, &one_there(here, addr, key)) }
    })
}

/// # Safety
/// As of [`vectors`], and a message or null.
unsafe fn message(
    ep: *mut fid_ep,
    call: AtomicCall,
    message: *const fi_msg_atomic,
    [compares, results]: [(*const fi_ioc, usize); 2],
    flags: u64,
) -> ssize_t {
    // SAFETY: the caller's.
    let object = unsafe { of(ep) };
    object.transfer(|| {
        // SAFETY: the caller's.
        let Some(message) = (unsafe { message.as_ref() }) else { return fail(abi::FI_EINVAL) };
        // SAFETY: the caller's.
        let operands = unsafe { vector(message.msg_iov, message.iov_count) }?;
        // SAFETY: the caller's.
        let compares = unsafe { vector(compares.0, compares.1) }?;
        // SAFETY: the caller's.
        let results = unsafe { vector(results.0, results.1) }?;
        // SAFETY: the application's: so many stretches, or null.
        let there = unsafe { many(message.rma_iov, message.rma_iov_count) }?;
        let fi_msg_atomic { datatype, op, addr: peer, context, .. } = *message;
        let asked = Asked { call, datatype, op, peer, flags: Flags::Given(flags), context };
        // SAFETY: the caller's.
        unsafe { ask(object, asked, Here { operands, compares, results }, there) }
    })
}

unsafe extern "C" fn write(
    ep: *mut fid_ep,
    buffer: *const c_void,
    count: size_t,
    _: *mut c_void,
    peer: u64,
    addr: u64,
    key: u64,
    datatype: c_int,
    op: c_int,
    context: *mut c_void,
) -> ssize_t {
    let asked = Asked { call: AtomicCall::Base, datatype, op, peer, flags: Flags::OfEndpoint, context };
    // SAFETY: the application's: an open endpoint, and so many values.
    unsafe { simple(ep, asked, count, [buffer, null(), null()], (addr, key)) }
}

unsafe extern "C" fn write_vector(
    ep: *mut fid_ep,
    operands: *const fi_ioc,
    _: *mut *mut c_void,
    count: size_t,
    peer: u64,
    addr: u64,
    key: u64,
    datatype: c_int,
    op: c_int,
    context: *mut c_void,
) -> ssize_t {
    let asked = Asked { call: AtomicCall::Base, datatype, op, peer, flags: Flags::OfEndpoint, context };
    // SAFETY: the application's: an open endpoint, and so many vectors of values.
    unsafe { vectors(ep, asked, [(operands, count), (null(), 0), (null(), 0)], (addr, key)) }
}

unsafe extern "C" fn write_message(ep: *mut fid_ep, what: *const fi_msg_atomic, flags: u64) -> ssize_t {
    // SAFETY: the application's: an open endpoint, and a message.
    unsafe { message(ep, AtomicCall::Base, what, [(null(), 0), (null(), 0)], flags) }
}

unsafe extern "C" fn inject(
    ep: *mut fid_ep,
    buffer: *const c_void,
    count: size_t,
    peer: u64,
    addr: u64,
    key: u64,
    datatype: c_int,
    op: c_int,
) -> ssize_t {
    let context = std::ptr::null_mut();
    let asked = Asked { call: AtomicCall::Base, datatype, op, peer, flags: Flags::Silent, context };
    // SAFETY: the application's: an open endpoint, and so many values.
    unsafe { simple(ep, asked, count, [buffer, null(), null()], (addr, key)) }
}

unsafe extern "C" fn fetch(
    ep: *mut fid_ep,
    buffer: *const c_void,
    count: size_t,
    _: *mut c_void,
    result: *mut c_void,
    _: *mut c_void,
    peer: u64,
    addr: u64,
    key: u64,
    datatype: c_int,
    op: c_int,
    context: *mut c_void,
) -> ssize_t {
    let asked = Asked { call: AtomicCall::Fetch, datatype, op, peer, flags: Flags::OfEndpoint, context };
    // SAFETY: the application's: an open endpoint, so many values, and room for as many that stays.
    unsafe { simple(ep, asked, count, [buffer, null(), result], (addr, key)) }
}

unsafe extern "C" fn fetch_vector(
    ep: *mut fid_ep,
    operands: *const fi_ioc,
    _: *mut *mut c_void,
    count: size_t,
    results: *mut fi_ioc,
    _: *mut *mut c_void,
    result_count: size_t,
    peer: u64,
    addr: u64,
    key: u64,
    datatype: c_int,
    op: c_int,
    context: *mut c_void,
) -> ssize_t {
    let asked = Asked { call: AtomicCall::Fetch, datatype, op, peer, flags: Flags::OfEndpoint, context };
    // SAFETY: the application's: an open endpoint, and so many vectors, of which the results stay.
    unsafe { vectors(ep, asked, [(operands, count), (null(), 0), (results, result_count)], (addr, key)) }
}

unsafe extern "C" fn fetch_message(
    ep: *mut fid_ep,
    what: *const fi_msg_atomic,
    results: *mut fi_ioc,
    _: *mut *mut c_void,
    result_count: size_t,
    flags: u64,
) -> ssize_t {
    // SAFETY: the application's: an open endpoint, a message, and so many results, which stay.
    unsafe { message(ep, AtomicCall::Fetch, what, [(null(), 0), (results, result_count)], flags) }
}

unsafe extern "C" fn compare(
    ep: *mut fid_ep,
    buffer: *const c_void,
    count: size_t,
    _: *mut c_void,
    compare: *const c_void,
    _: *mut c_void,
    result: *mut c_void,
    _: *mut c_void,
    peer: u64,
    addr: u64,
    key: u64,
    datatype: c_int,
    op: c_int,
    context: *mut c_void,
) -> ssize_t {
    let asked = Asked { call: AtomicCall::Compare, datatype, op, peer, flags: Flags::OfEndpoint, context };
    // SAFETY: the application's: an open endpoint, so many values twice, and room for as many that stays.
    unsafe { simple(ep, asked, count, [buffer, compare, result], (addr, key)) }
}

unsafe extern "C" fn compare_vector(
    ep: *mut fid_ep,
    operands: *const fi_ioc,
    _: *mut *mut c_void,
    count: size_t,
    compares: *const fi_ioc,
    _: *mut *mut c_void,
    compare_count: size_t,
    results: *mut fi_ioc,
    _: *mut *mut c_void,
    result_count: size_t,
    peer: u64,
    addr: u64,
    key: u64,
    datatype: c_int,
    op: c_int,
    context: *mut c_void,
) -> ssize_t {
    let asked = Asked { call: AtomicCall::Compare, datatype, op, peer, flags: Flags::OfEndpoint, context };
    let here = [(operands, count), (compares, compare_count), (results.cast_const(), result_count)];
    // SAFETY: the application's: an open endpoint, and so many vectors, of which the results stay.
    unsafe { vectors(ep, asked, here, (addr, key)) }
}

unsafe extern "C" fn compare_message(
    ep: *mut fid_ep,
    what: *const fi_msg_atomic,
    compares: *const fi_ioc,
    _: *mut *mut c_void,
    compare_count: size_t,
    results: *mut fi_ioc,
    _: *mut *mut c_void,
    result_count: size_t,
    flags: u64,
) -> ssize_t {
    let here = [(compares, compare_count), (results.cast_const(), result_count)];
    // SAFETY: the application's: an open endpoint, a message, and so many vectors, of which the results stay.
    unsafe { message(ep, AtomicCall::Compare, what, here, flags) }
}

/// How many values of a type one call takes.
fn most(call: AtomicCall, datatype: c_int, op: c_int, buffer_size: u64) -> Outcome<(usize, usize)> {
    let (_, of) = named(call, datatype, op)?;
    // Operands and values to compare with go together, in one message.
    let bytes = Endpoint::ATOMIC_MAX.min(buffer_size / 2);
    match usize::try_from(bytes).unwrap_or(0) / of.size() {
        0 => fail(abi::FI_EOPNOTSUPP),
        count => Ok((count, of.size())),
    }
}

/// # Safety
/// An open endpoint, and a place or null.
unsafe fn valid(ep: *mut fid_ep, call: AtomicCall, datatype: c_int, op: c_int, count: *mut size_t) -> c_int {
    // SAFETY: the caller's.
    let object = unsafe { of(ep) };
    integer(|| {
        object.has_atomics().map_err(|_| code(abi::FI_EOPNOTSUPP))?;
        let (most, _) = most(call, datatype, op, object.domain.parameters.buffer_size)?;
        // SAFETY: the caller's.
        if let Some(place) = unsafe { count.as_mut() } {
            *place = most;
        }
        Ok(0)
    })
}

unsafe extern "C" fn write_valid(ep: *mut fid_ep, datatype: c_int, op: c_int, count: *mut size_t) -> c_int {
    // SAFETY: the application's: an open endpoint, and a place.
    unsafe { valid(ep, AtomicCall::Base, datatype, op, count) }
}

unsafe extern "C" fn fetch_valid(ep: *mut fid_ep, datatype: c_int, op: c_int, count: *mut size_t) -> c_int {
    // SAFETY: as above.
    unsafe { valid(ep, AtomicCall::Fetch, datatype, op, count) }
}

unsafe extern "C" fn compare_valid(ep: *mut fid_ep, datatype: c_int, op: c_int, count: *mut size_t) -> c_int {
    // SAFETY: as above.
    unsafe { valid(ep, AtomicCall::Compare, datatype, op, count) }
}

/// `fi_query_atomic`.
pub(super) unsafe extern "C" fn query(
    domain: *mut fid_domain,
    datatype: c_int,
    op: c_int,
    attributes: *mut fi_atomic_attr,
    flags: u64,
) -> c_int {
    integer(|| {
        let call = match flags {
            0 => AtomicCall::Base,
            abi::FI_FETCH_ATOMIC => AtomicCall::Fetch,
            abi::FI_COMPARE_ATOMIC => AtomicCall::Compare,
            _ => return fail(abi::FI_EBADFLAGS),
        };
        // SAFETY: the application's: an open domain.
        let buffer_size = unsafe { super::domain::parameters(domain) }.buffer_size;
        let (count, size) = most(call, datatype, op, buffer_size)?;
        // SAFETY: the application's: a place, or null.
        let Some(place) = (unsafe { attributes.as_mut() }) else { return fail(abi::FI_EINVAL) };
        *place = fi_atomic_attr { count, size };
        Ok(0)
    })
}

pub(super) static OPS: fi_ops_atomic = fi_ops_atomic {
    size: size_of::<fi_ops_atomic>(),
    write,
    writev: write_vector,
    writemsg: write_message,
    inject,
    readwrite: fetch,
    readwritev: fetch_vector,
    readwritemsg: fetch_message,
    compwrite: compare,
    compwritev: compare_vector,
    compwritemsg: compare_message,
    writevalid: write_valid,
    readwritevalid: fetch_valid,
    compwritevalid: compare_valid,
};
