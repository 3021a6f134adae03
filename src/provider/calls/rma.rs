//! `fi_rma(3)`: every call.

use libc::{c_void, iovec, size_t, ssize_t};

use super::endpoint::{Object, of};
use super::memory::{Stretches, address, many, one, payload};
use crate::provider::abi::{self, fi_msg_rma, fi_ops_rma, fi_rma_iov, fid_ep};
use crate::provider::error::{Outcome, fail};
use crate::provider::state::remote::RemoteCall;
use crate::provider::state::transfer::{Flags, Memory};
use crate::wire::RemoteStretch;

/// Whose memory, and which: of calls that name one stretch, from where on.
#[derive(Clone, Copy)]
struct There {
    peer: u64,
    address: u64,
    key: u64,
}

/// What a call says beside memory.
#[derive(Clone, Copy)]
struct Kind {
    is_read: bool,
    data: Option<u64>,
    flags: Flags,
}

const READ: Kind = Kind { is_read: true, data: None, flags: Flags::OfEndpoint };
const WRITE: Kind = Kind { is_read: false, ..READ };

fn ask(
    object: &Object,
    kind: Kind,
    to: u64,
    memory: Memory<'_>,
    stretches: &[RemoteStretch],
    context: *mut c_void,
) -> Outcome<usize> {
    let Kind { is_read, data, flags } = kind;
    let call = RemoteCall { is_read, to, memory, stretches, data, context: address(context), flags };
    object.domain.with(|state| state.access(object.index, &call))
}

/// Memory of one stretch here and there.
///
/// # Safety
/// An open endpoint; so many bytes, which stay until the completion, or null.
unsafe fn simple(
    ep: *mut fid_ep,
    kind: Kind,
    (buffer, length): (*const c_void, usize),
    there: There,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: the caller's.
    let object = unsafe { of(ep) };
    object.transfer(|| {
        object.has_remote_access()?;
        let is_copied = matches!(kind.flags, Flags::Silent) || !kind.is_read && object.is_injecting();
        // SAFETY: the caller's.
        let memory = if is_copied { unsafe { payload(buffer, length, true) } } else { one(buffer, length) }?;
        let There { peer, address, key } = there;
        ask(object, kind, peer, memory, &[RemoteStretch { key, address, length: length as u64 }], context)
    })
}

/// Memory of several stretches here.
///
/// # Safety
/// As of [`simple`], of so many stretches or null.
unsafe fn vector(
    ep: *mut fid_ep,
    kind: Kind,
    (vector, count): (*const iovec, usize),
    there: There,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: the caller's.
    let object = unsafe { of(ep) };
    object.transfer(|| {
        object.has_remote_access()?;
        // SAFETY: the caller's.
        let stretches = unsafe { Stretches::read(vector, count) }?;
        let There { peer, address, key } = there;
        let there = [RemoteStretch { key, address, length: stretches.length() }];
        let is_copied = !kind.is_read && object.is_injecting();
        // SAFETY: the caller's.
        unsafe { gathered(object, kind, peer, &stretches, &there, (context, is_copied)) }
    })
}

/// # Safety
/// As of [`vector`].
unsafe fn message(ep: *mut fid_ep, is_read: bool, message: *const fi_msg_rma, flags: u64) -> ssize_t {
    // SAFETY: the caller's.
    let object = unsafe { of(ep) };
    object.transfer(|| {
        object.has_remote_access()?;
        // SAFETY: the application's: null or a message.
        let Some(message) = (unsafe { message.as_ref() }) else { return fail(abi::FI_EINVAL) };
        // SAFETY: the caller's.
        let stretches = unsafe { Stretches::read(message.msg_iov, message.iov_count) }?;
        if message.rma_iov_count > STRETCHES_MAX {
            return fail(abi::FI_EINVAL);
        }
        // SAFETY: the application's: so many stretches, or null.
        let there = unsafe { many(message.rma_iov, message.rma_iov_count) }?;
        let mut all = [RemoteStretch::default(); STRETCHES_MAX];
        for (to, from) in all.iter_mut().zip(there) {
            let fi_rma_iov { addr: address, len, key } = *from;
            *to = RemoteStretch { key, address, length: len as u64 };
        }
        let has_data = flags & abi::FI_REMOTE_CQ_DATA != 0 && !is_read;
        let kind = Kind { is_read, data: has_data.then_some(message.data), flags: Flags::Given(flags) };
        let is_copied = flags & abi::FI_INJECT != 0 && !is_read;
        let there = &all[..there.len()];
        // SAFETY: the caller's.
        unsafe { gathered(object, kind, message.addr, &stretches, there, (message.context, is_copied)) }
    })
}

/// Ask with the stretches as they are, or with a copy.
///
/// # Safety
/// The stretches can be read.
unsafe fn gathered(
    object: &Object,
    kind: Kind,
    to: u64,
    stretches: &Stretches,
    there: &[RemoteStretch],
    (context, is_copied): (*mut c_void, bool),
) -> Outcome<usize> {
    if !is_copied {
        return ask(object, kind, to, stretches.memory(), there, context);
    }
    // SAFETY: the caller's.
    let bytes = unsafe { stretches.gather(object.inject_size()?) }?;
    ask(object, kind, to, Memory::Bytes(&bytes), there, context)
}

unsafe extern "C" fn read(
    ep: *mut fid_ep,
    buffer: *mut c_void,
    length: size_t,
    _: *mut c_void,
    peer: u64,
    address: u64,
    key: u64,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: the application's: an open endpoint, and memory that stays.
    unsafe { simple(ep, READ, (buffer, length), There { peer, address, key }, context) }
}

unsafe extern "C" fn read_vector(
    ep: *mut fid_ep,
    stretches: *const iovec,
    _: *mut *mut c_void,
    count: size_t,
    peer: u64,
    address: u64,
    key: u64,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: the application's: an open endpoint, and so many stretches that stay.
    unsafe { vector(ep, READ, (stretches, count), There { peer, address, key }, context) }
}

unsafe extern "C" fn read_message(ep: *mut fid_ep, what: *const fi_msg_rma, flags: u64) -> ssize_t {
    // SAFETY: the application's: an open endpoint, and so many stretches that stay.
    unsafe { message(ep, true, what, flags) }
}

unsafe extern "C" fn write(
    ep: *mut fid_ep,
    buffer: *const c_void,
    length: size_t,
    _: *mut c_void,
    peer: u64,
    address: u64,
    key: u64,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: the application's: an open endpoint, and so many bytes that stay.
    unsafe { simple(ep, WRITE, (buffer, length), There { peer, address, key }, context) }
}

unsafe extern "C" fn write_vector(
    ep: *mut fid_ep,
    stretches: *const iovec,
    _: *mut *mut c_void,
    count: size_t,
    peer: u64,
    address: u64,
    key: u64,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: the application's: an open endpoint, and so many stretches that stay.
    unsafe { vector(ep, WRITE, (stretches, count), There { peer, address, key }, context) }
}

unsafe extern "C" fn write_message(ep: *mut fid_ep, what: *const fi_msg_rma, flags: u64) -> ssize_t {
    // SAFETY: the application's: an open endpoint, and so many stretches that stay.
    unsafe { message(ep, false, what, flags) }
}

unsafe extern "C" fn inject(
    ep: *mut fid_ep,
    buffer: *const c_void,
    length: size_t,
    peer: u64,
    address: u64,
    key: u64,
) -> ssize_t {
    let kind = Kind { flags: Flags::Silent, ..WRITE };
    // SAFETY: the application's: an open endpoint, and so many bytes.
    unsafe { simple(ep, kind, (buffer, length), There { peer, address, key }, std::ptr::null_mut()) }
}

unsafe extern "C" fn write_data(
    ep: *mut fid_ep,
    buffer: *const c_void,
    length: size_t,
    _: *mut c_void,
    data: u64,
    peer: u64,
    address: u64,
    key: u64,
    context: *mut c_void,
) -> ssize_t {
    let kind = Kind { data: Some(data), ..WRITE };
    // SAFETY: the application's: an open endpoint, and so many bytes that stay.
    unsafe { simple(ep, kind, (buffer, length), There { peer, address, key }, context) }
}

unsafe extern "C" fn inject_data(
    ep: *mut fid_ep,
    buffer: *const c_void,
    length: size_t,
    data: u64,
    peer: u64,
    address: u64,
    key: u64,
) -> ssize_t {
    let kind = Kind { data: Some(data), flags: Flags::Silent, ..WRITE };
    // SAFETY: the application's: an open endpoint, and so many bytes.
    unsafe { simple(ep, kind, (buffer, length), There { peer, address, key }, std::ptr::null_mut()) }
}

pub(super) static OPS: fi_ops_rma = fi_ops_rma {
    size: size_of::<fi_ops_rma>(),
    read,
    readv: read_vector,
    readmsg: read_message,
    write,
    writev: write_vector,
    writemsg: write_message,
    inject,
    writedata: write_data,
    injectdata: inject_data,
};

/// Stretches there that a call may name (`rma_iov_limit`).
const STRETCHES_MAX: usize = crate::provider::info::RMA_IOV_LIMIT;
