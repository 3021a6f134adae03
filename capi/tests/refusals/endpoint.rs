//! An endpoint is given what cannot be.

use std::ffi::{CStr, c_void};
use std::ptr;

use tagmatch_c::endpoint::messages::{
    tm_endpoint_cancel, tm_endpoint_discard_claimed, tm_endpoint_peek, tm_endpoint_receive,
    tm_endpoint_receive_claimed, tm_endpoint_send,
};
use tagmatch_c::endpoint::types::{
    TM_ANY_SOURCE, TM_COMPLETED_CANCELLED, TM_MATCHING_DEVICE, TM_RECEIVE_SEVERAL, TM_SEND_INJECT,
    tm_completion, tm_endpoint_config, tm_peek, tm_receive, tm_send,
};
use tagmatch_c::endpoint::{
    tm_endpoint, tm_endpoint_close, tm_endpoint_name, tm_endpoint_open, tm_endpoint_poll,
    tm_endpoint_progress, tm_endpoint_set_peer, tm_endpoint_shutdown,
};
use tagmatch_c::memory::{tm_buffer, tm_segment};

use crate::common::{refused, zeroed};

/// For this host alone.
fn open() -> *mut tm_endpoint {
    let mut endpoint = ptr::null_mut();
    // SAFETY: arguments as the header asks for.
    assert_eq!(unsafe { tm_endpoint_open(ptr::null(), &raw mut endpoint) }, 0);
    endpoint
}

fn close(endpoint: *mut tm_endpoint) {
    // SAFETY: it is not used again.
    assert_eq!(unsafe { tm_endpoint_close(endpoint) }, 0);
}

/// What is said of a configuration that differs from all zeros by this.
fn asked(change: impl FnOnce(&mut tm_endpoint_config)) -> i32 {
    let mut config = tm_endpoint_config { size: size_of::<tm_endpoint_config>(), ..zeroed() };
    change(&mut config);
    let mut endpoint = ptr::null_mut();
    // SAFETY: arguments as the header asks for, but for what is refused.
    let result = unsafe { tm_endpoint_open(&raw const config, &raw mut endpoint) };
    assert!(endpoint.is_null(), "it was opened");
    result
}

#[test]
fn a_configuration_that_cannot_be_is_refused_with_the_field_and_its_value() {
    let text = |text: &'static CStr| text.as_ptr();
    refused(asked(|config| config.listen = text(c"here")), libc::EINVAL, "config.listen is \"here\"");
    refused(asked(|config| config.listen = text(c"\xff")), libc::EINVAL, "not UTF-8");
    refused(asked(|config| config.listen = text(c"192.0.2.1:0")), libc::EADDRNOTAVAIL, "bind");
    refused(asked(|config| config.network = 2), libc::EINVAL, "config.network is 2");
    refused(asked(|config| config.matching = 3), libc::EINVAL, "config.matching is 3");
    refused(asked(|config| config.matching = TM_MATCHING_DEVICE), libc::EINVAL, "over TCP");
    refused(asked(|config| config.flags = 2), libc::EINVAL, "config.flags is 0x2");
    refused(asked(|config| config.size = 0), libc::EINVAL, "config.size is 0");
    let key = [0u8; 8];
    refused(asked(|config| config.job_key = key.as_ptr().cast()), libc::EINVAL, "job_key_length is 0");
    refused(asked(|config| config.job_key_length = 8), libc::EFAULT, "config.job_key is null");
    let short = asked(|config| {
        (config.job_key, config.job_key_length) = (key.as_ptr().cast(), 8);
    });
    refused(short, libc::EINVAL, "16 bytes at least");
    // SAFETY: null is refused.
    refused(unsafe { tm_endpoint_open(ptr::null(), ptr::null_mut()) }, libc::EFAULT, "endpoint is null");
}

#[test]
fn a_message_that_cannot_be_is_refused_and_no_completion_comes() {
    let endpoint = open();
    let mut name = [0u8; 64];
    let mut length = 4;
    // SAFETY: arguments as the header asks for, but for what is refused; so below.
    let named = unsafe { tm_endpoint_name(endpoint, name.as_mut_ptr().cast(), &raw mut length) };
    refused(named, libc::EMSGSIZE, "does not go into 4");
    // SAFETY: as above.
    assert_eq!(unsafe { tm_endpoint_name(endpoint, name.as_mut_ptr().cast(), &raw mut length) }, 0);
    let peer = |number, length| {
        // SAFETY: as above.
        unsafe { tm_endpoint_set_peer(endpoint, number, name.as_ptr().cast(), length) }
    };
    refused(peer(u64::MAX, length), libc::ENOSPC, "beyond");
    refused(peer(0, 0), libc::EINVAL, "1 to 64");
    assert_eq!(peer(0, length), 0);
    // SAFETY: as above.
    let send = |send: &tm_send| unsafe { tm_endpoint_send(endpoint, send) };
    refused(send(&tm_send { to: 5, ..zeroed() }), libc::EADDRNOTAVAIL, "Address(5)");
    refused(send(&tm_send { level: 4, ..zeroed() }), libc::EINVAL, "level is 4");
    refused(send(&tm_send { flags: 16, ..zeroed() }), libc::EINVAL, "flags is 0x10");
    let nowhere = tm_buffer { length: 7, ..zeroed() };
    refused(send(&tm_send { payload: nowhere, ..zeroed() }), libc::EFAULT, "address is null");
    let mut bytes = [0u8; 8];
    let address = bytes.as_mut_ptr().cast::<c_void>();
    let endless = tm_buffer { address, length: u64::MAX, ..zeroed() };
    refused(send(&tm_send { payload: endless, ..zeroed() }), libc::EINVAL, "no memory is so long");
    let mut pieces = [tm_segment { address, length: 8, key: 0 }; 2];
    let several = tm_buffer { address: pieces.as_mut_ptr().cast(), length: 16, key: 0, segments: 2 };
    let wrong = tm_buffer { length: 15, ..several };
    refused(send(&tm_send { payload: wrong, ..zeroed() }), libc::EINVAL, "the sum of its 2 segments");
    let injected = tm_send { payload: several, flags: TM_SEND_INJECT, ..zeroed() };
    refused(send(&injected), libc::EINVAL, "it is one");
    // SAFETY: as above.
    let receive = |receive: &tm_receive| unsafe { tm_endpoint_receive(endpoint, receive) };
    refused(receive(&tm_receive { source: 9, ..zeroed() }), libc::EADDRNOTAVAIL, "Address(9)");
    refused(receive(&tm_receive { flags: 8, ..zeroed() }), libc::EINVAL, "flags is 0x8");
    let repeated = tm_receive { buffer: several, flags: TM_RECEIVE_SEVERAL, ..zeroed() };
    refused(receive(&repeated), libc::EINVAL, "it is one");
    let peek = tm_peek { action: 3, ..zeroed() };
    // SAFETY: as above.
    refused(unsafe { tm_endpoint_peek(endpoint, &raw const peek) }, libc::EINVAL, "action is 3");
    // SAFETY: as above.
    refused(unsafe { tm_endpoint_cancel(endpoint, 1) }, libc::ENOENT, "0x1");
    // SAFETY: as above.
    refused(unsafe { tm_endpoint_discard_claimed(endpoint, 1) }, libc::ENOENT, "0x1");
    // SAFETY: as above.
    let claimed = unsafe { tm_endpoint_receive_claimed(endpoint, 1, ptr::null()) };
    refused(claimed, libc::EFAULT, "into is null");
    // SAFETY: as above.
    assert_eq!(unsafe { tm_endpoint_progress(endpoint) }, 0);
    let mut completion: tm_completion = zeroed();
    // SAFETY: as above.
    assert_eq!(unsafe { tm_endpoint_poll(endpoint, &raw mut completion, 1) }, 0);
    close(endpoint);
}

#[test]
fn receives_of_an_endpoint_that_is_shut_down_can_be_cancelled_and_nothing_is_sent() {
    let endpoint = open();
    let receive = tm_receive { source: TM_ANY_SOURCE, context: 7, ..zeroed() };
    // SAFETY: arguments as the header asks for; so below.
    assert_eq!(unsafe { tm_endpoint_receive(endpoint, &raw const receive) }, 0);
    // SAFETY: as above.
    assert_eq!(unsafe { tm_endpoint_shutdown(endpoint) }, 1, "it has no connections");
    // SAFETY: as above.
    assert_eq!(unsafe { tm_endpoint_cancel(endpoint, 7) }, 0);
    let mut completion: tm_completion = zeroed();
    // SAFETY: as above.
    assert_eq!(unsafe { tm_endpoint_poll(endpoint, &raw mut completion, 1) }, 1);
    assert_eq!((completion.context, completion.what), (7, TM_COMPLETED_CANCELLED));
    close(endpoint);
    // SAFETY: null is refused.
    refused(unsafe { tm_endpoint_close(ptr::null_mut()) }, libc::EFAULT, "endpoint is null");
}
