//! `fi_tagged(3)`: every call but those for accelerators.

use libc::{c_void, iovec, size_t, ssize_t};

use super::transfers::{self, Described, Envelope};
use crate::provider::abi::{fi_msg_tagged, fi_ops_tagged, fid_ep};

unsafe extern "C" fn receive(
    ep: *mut fid_ep,
    buffer: *mut c_void,
    length: size_t,
    _: *mut c_void,
    source: u64,
    tag: u64,
    ignore: u64,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: the application's: an open endpoint, and memory that stays.
    unsafe { transfers::receive(ep, Envelope::tagged(source, tag, ignore), buffer, length, context) }
}

unsafe extern "C" fn receive_vector(
    ep: *mut fid_ep,
    vector: *const iovec,
    _: *mut *mut c_void,
    count: size_t,
    source: u64,
    tag: u64,
    ignore: u64,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: the application's: an open endpoint, and so many stretches that stay.
    unsafe { transfers::receive_vector(ep, Envelope::tagged(source, tag, ignore), vector, count, context) }
}

unsafe extern "C" fn receive_message(ep: *mut fid_ep, message: *const fi_msg_tagged, flags: u64) -> ssize_t {
    // SAFETY: the application's: null or a message.
    let message = unsafe { message.as_ref() }.map(described);
    // SAFETY: the application's: an open endpoint, and so many stretches that stay.
    unsafe { transfers::receive_message(ep, message, flags) }
}

unsafe extern "C" fn send(
    ep: *mut fid_ep,
    buffer: *const c_void,
    length: size_t,
    _: *mut c_void,
    to: u64,
    tag: u64,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: the application's: an open endpoint, and so many bytes that stay.
    unsafe { transfers::send(ep, Envelope::tagged(to, tag, 0), buffer, length, None, context) }
}

unsafe extern "C" fn send_vector(
    ep: *mut fid_ep,
    vector: *const iovec,
    _: *mut *mut c_void,
    count: size_t,
    to: u64,
    tag: u64,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: the application's: an open endpoint, and so many stretches that stay.
    unsafe { transfers::send_vector(ep, Envelope::tagged(to, tag, 0), vector, count, context) }
}

unsafe extern "C" fn send_message(ep: *mut fid_ep, message: *const fi_msg_tagged, flags: u64) -> ssize_t {
    // SAFETY: the application's: null or a message.
    let message = unsafe { message.as_ref() }.map(described);
    // SAFETY: the application's: an open endpoint, and so many stretches that stay.
    unsafe { transfers::send_message(ep, message, flags) }
}

unsafe extern "C" fn inject(
    ep: *mut fid_ep,
    buffer: *const c_void,
    length: size_t,
    to: u64,
    tag: u64,
) -> ssize_t {
    // SAFETY: the application's: an open endpoint, and so many bytes.
    unsafe { transfers::inject(ep, Envelope::tagged(to, tag, 0), buffer, length, None) }
}

unsafe extern "C" fn send_data(
    ep: *mut fid_ep,
    buffer: *const c_void,
    length: size_t,
    _: *mut c_void,
    data: u64,
    to: u64,
    tag: u64,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: the application's: an open endpoint, and so many bytes that stay.
    unsafe { transfers::send(ep, Envelope::tagged(to, tag, 0), buffer, length, Some(data), context) }
}

unsafe extern "C" fn inject_data(
    ep: *mut fid_ep,
    buffer: *const c_void,
    length: size_t,
    data: u64,
    to: u64,
    tag: u64,
) -> ssize_t {
    // SAFETY: the application's: an open endpoint, and so many bytes.
    unsafe { transfers::inject(ep, Envelope::tagged(to, tag, 0), buffer, length, Some(data)) }
}

fn described(message: &fi_msg_tagged) -> Described {
    Described {
        envelope: Envelope::tagged(message.addr, message.tag, message.ignore),
        vector: message.msg_iov,
        count: message.iov_count,
        context: message.context,
        data: message.data,
    }
}

pub(super) static OPS: fi_ops_tagged = fi_ops_tagged {
    size: size_of::<fi_ops_tagged>(),
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
