//! `fi_msg(3)`: messages without a tag. They never match those with one.

use libc::{c_void, iovec, size_t, ssize_t};

use super::endpoint::of;
use super::memory::{Stretches, address, copied, one, payload};
use crate::endpoint::Space;
use crate::provider::abi::{self, fi_msg, fi_ops_msg, fid_ep};
use crate::provider::error::{fail, size};
use crate::provider::state::transfer::{Flags, Incoming, Outgoing};

unsafe extern "C" fn receive(
    ep: *mut fid_ep,
    buffer: *mut c_void,
    length: size_t,
    _: *mut c_void,
    source: u64,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: the application's: an open endpoint.
    let object = unsafe { of(ep) };
    let incoming = Incoming {
        space: Space::Untagged,
        source,
        tag: 0,
        ignore: 0,
        memory: one(buffer, length),
        context: address(context),
        flags: Flags::OfEndpoint,
    };
    size(|| object.domain.with(|state| state.receive(object.index, &incoming)))
}

unsafe extern "C" fn receive_vector(
    ep: *mut fid_ep,
    vector: *const iovec,
    _: *mut *mut c_void,
    count: size_t,
    source: u64,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: the application's: an open endpoint.
    let object = unsafe { of(ep) };
    size(|| {
        // SAFETY: the application's: so many stretches.
        let stretches = unsafe { Stretches::read(vector, count) }?;
        let incoming = Incoming {
            space: Space::Untagged,
            source,
            tag: 0,
            ignore: 0,
            memory: stretches.memory(),
            context: address(context),
            flags: Flags::OfEndpoint,
        };
        object.domain.with(|state| state.receive(object.index, &incoming))
    })
}

unsafe extern "C" fn receive_message(ep: *mut fid_ep, message: *const fi_msg, flags: u64) -> ssize_t {
    // SAFETY: the application's: an open endpoint.
    let object = unsafe { of(ep) };
    size(|| {
        // SAFETY: the application's: a message.
        let Some(message) = (unsafe { message.as_ref() }) else { return fail(abi::FI_EINVAL) };
        // A peek, and a discard, have no buffer: whatever stands there is not looked at.
        let count = if flags & (abi::FI_PEEK | abi::FI_DISCARD) == 0 { message.iov_count } else { 0 };
        // SAFETY: the application's: so many stretches.
        let stretches = unsafe { Stretches::read(message.msg_iov, count) }?;
        let incoming = Incoming {
            space: Space::Untagged,
            source: message.addr,
            tag: 0,
            ignore: 0,
            memory: stretches.memory(),
            context: address(message.context),
            flags: Flags::Given(flags),
        };
        object.domain.with(|state| state.receive(object.index, &incoming))
    })
}

unsafe extern "C" fn send(
    ep: *mut fid_ep,
    buffer: *const c_void,
    length: size_t,
    _: *mut c_void,
    to: u64,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: the application's: an open endpoint.
    let object = unsafe { of(ep) };
    let outgoing = Outgoing {
        space: Space::Untagged,
        to,
        tag: 0,
        // SAFETY: the application's: so many bytes.
        payload: unsafe { payload(object, buffer, length) },
        data: None,
        context: address(context),
        flags: Flags::OfEndpoint,
    };
    size(|| object.domain.with(|state| state.send(object.index, &outgoing)))
}

unsafe extern "C" fn send_vector(
    ep: *mut fid_ep,
    vector: *const iovec,
    _: *mut *mut c_void,
    count: size_t,
    to: u64,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: the application's: an open endpoint.
    let object = unsafe { of(ep) };
    size(|| {
        // SAFETY: the application's: so many stretches.
        let stretches = unsafe { Stretches::read(vector, count) }?;
        let outgoing = Outgoing {
            space: Space::Untagged,
            to,
            tag: 0,
            payload: stretches.memory(),
            data: None,
            context: address(context),
            flags: Flags::OfEndpoint,
        };
        // SAFETY: the application's: they can be read.
        unsafe { stretches.send(object, outgoing, object.is_injecting()) }
    })
}

unsafe extern "C" fn send_message(ep: *mut fid_ep, message: *const fi_msg, flags: u64) -> ssize_t {
    // SAFETY: the application's: an open endpoint.
    let object = unsafe { of(ep) };
    size(|| {
        // SAFETY: the application's: a message.
        let Some(message) = (unsafe { message.as_ref() }) else { return fail(abi::FI_EINVAL) };
        // SAFETY: the application's: so many stretches.
        let stretches = unsafe { Stretches::read(message.msg_iov, message.iov_count) }?;
        let outgoing = Outgoing {
            space: Space::Untagged,
            to: message.addr,
            tag: 0,
            payload: stretches.memory(),
            data: (flags & abi::FI_REMOTE_CQ_DATA != 0).then_some(message.data),
            context: address(message.context),
            flags: Flags::Given(flags),
        };
        // SAFETY: the application's: they can be read.
        unsafe { stretches.send(object, outgoing, flags & abi::FI_INJECT != 0) }
    })
}

/// # Safety
/// As `fi_injectdata(3)`.
#[inline]
unsafe fn inject_any(
    ep: *mut fid_ep,
    buffer: *const c_void,
    length: size_t,
    data: Option<u64>,
    to: u64,
) -> ssize_t {
    // SAFETY: the application's: an open endpoint.
    let object = unsafe { of(ep) };
    size(|| {
        // SAFETY: the application's: so many bytes.
        let payload = unsafe { copied(buffer, length) };
        let outgoing =
            Outgoing { space: Space::Untagged, to, tag: 0, payload, data, context: 0, flags: Flags::Silent };
        object.domain.with(|state| state.send(object.index, &outgoing))
    })
}

unsafe extern "C" fn inject(ep: *mut fid_ep, buffer: *const c_void, length: size_t, to: u64) -> ssize_t {
    // SAFETY: the caller's.
    unsafe { inject_any(ep, buffer, length, None, to) }
}

unsafe extern "C" fn send_data(
    ep: *mut fid_ep,
    buffer: *const c_void,
    length: size_t,
    _: *mut c_void,
    data: u64,
    to: u64,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: the application's: an open endpoint.
    let object = unsafe { of(ep) };
    let outgoing = Outgoing {
        space: Space::Untagged,
        to,
        tag: 0,
        // SAFETY: the application's: so many bytes.
        payload: unsafe { payload(object, buffer, length) },
        data: Some(data),
        context: address(context),
        flags: Flags::OfEndpoint,
    };
    size(|| object.domain.with(|state| state.send(object.index, &outgoing)))
}

unsafe extern "C" fn inject_data(
    ep: *mut fid_ep,
    buffer: *const c_void,
    length: size_t,
    data: u64,
    to: u64,
) -> ssize_t {
    // SAFETY: the caller's.
    unsafe { inject_any(ep, buffer, length, Some(data), to) }
}

pub(super) static OPS: fi_ops_msg = fi_ops_msg {
    size: size_of::<fi_ops_msg>(),
    recv: receive,
    recvv: receive_vector,
    recvmsg: receive_message,
    send,
    sendv: send_vector,
    sendmsg: send_message,
    inject,
    senddata: send_data,
    injectdata: inject_data,
};
