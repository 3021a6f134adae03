//! An engine is given what cannot be.

use std::ffi::c_void;
use std::ptr;

use tagmatch_c::engine::commands::{
    TM_ANSWER_HOLD, tm_answer, tm_command, tm_engine_handle_submitted, tm_engine_poll_commands,
};
use tagmatch_c::engine::events::{
    tm_arrival, tm_data, tm_engine_handle_arrival, tm_engine_handle_data, tm_engine_handle_match,
    tm_engine_handle_operation, tm_match, tm_operation,
};
use tagmatch_c::engine::receiving::{
    tm_engine_cancel, tm_engine_claim, tm_engine_discard_claimed, tm_engine_peek, tm_engine_post,
};
use tagmatch_c::engine::types::{
    TM_SOURCE_PEER, tm_device, tm_engine_completion, tm_engine_receive, tm_pattern,
};
use tagmatch_c::engine::{
    tm_engine, tm_engine_add_device, tm_engine_close, tm_engine_config, tm_engine_depths,
    tm_engine_name_peer, tm_engine_open, tm_engine_poll, tm_engine_poll_fault, tm_engine_progress,
    tm_engine_set_path,
};

use crate::common::{refused, zeroed};

/// With one device that does not match.
fn open() -> *mut tm_engine {
    let mut engine = ptr::null_mut();
    // SAFETY: arguments as the header asks for.
    assert_eq!(unsafe { tm_engine_open(ptr::null(), &raw mut engine) }, 0);
    let device = tm_device { size: size_of::<tm_device>(), ..zeroed() };
    // SAFETY: as above.
    assert_eq!(unsafe { tm_engine_add_device(engine, &raw const device) }, 0);
    engine
}

#[test]
fn null_is_refused_wherever_something_is_needed() {
    let engine = open();
    // SAFETY: null is refused.
    refused(unsafe { tm_engine_open(ptr::null(), ptr::null_mut()) }, libc::EFAULT, "engine is null");
    // SAFETY: as above.
    refused(unsafe { tm_engine_close(ptr::null_mut()) }, libc::EFAULT, "engine is null");
    // SAFETY: as above.
    refused(unsafe { tm_engine_cancel(ptr::null_mut(), 0) }, libc::EFAULT, "engine is null");
    // SAFETY: as above.
    refused(unsafe { tm_engine_progress(ptr::null_mut()) }, libc::EFAULT, "engine is null");
    // SAFETY: as above.
    refused(unsafe { tm_engine_post(engine, ptr::null(), ptr::null_mut()) }, libc::EFAULT, "receive is null");
    // SAFETY: as above.
    refused(unsafe { tm_engine_peek(engine, ptr::null(), ptr::null_mut()) }, libc::EFAULT, "pattern is null");
    let pattern: tm_pattern = zeroed();
    let claimed =
        // SAFETY: as above.
        unsafe { tm_engine_claim(engine, &raw const pattern, ptr::null_mut(), ptr::null_mut()) };
    refused(claimed, libc::EFAULT, "claim is null");
    // SAFETY: as above.
    refused(unsafe { tm_engine_poll(engine, ptr::null_mut(), 1) }, libc::EFAULT, "completions is null");
    // SAFETY: there is room for none.
    assert_eq!(unsafe { tm_engine_poll(engine, ptr::null_mut(), 0) }, 0);
    let arrival: tm_arrival = zeroed();
    let arrived =
        // SAFETY: null is refused.
        unsafe { tm_engine_handle_arrival(engine, 0, &raw const arrival, ptr::null_mut()) };
    refused(arrived, libc::EFAULT, "answer is null");
    let (mut posted, mut unexpected) = (7, 7);
    // SAFETY: arguments as the header asks for.
    assert_eq!(unsafe { tm_engine_depths(engine, &raw mut posted, &raw mut unexpected) }, 0);
    assert_eq!((posted, unexpected), (0, 0), "nothing has happened");
    // SAFETY: it is not used again.
    assert_eq!(unsafe { tm_engine_close(engine) }, 0);
}

#[test]
fn numbers_that_mean_nothing_are_refused() {
    let engine = open();
    let receive = tm_engine_receive { pattern: tm_pattern { kind: 3, ..zeroed() }, ..zeroed() };
    // SAFETY: arguments as the header asks for, but for what is refused; so below.
    let posted = unsafe { tm_engine_post(engine, &raw const receive, ptr::null_mut()) };
    refused(posted, libc::EINVAL, "kind is 3");
    let receive = tm_engine_receive { flags: 2, ..zeroed() };
    // SAFETY: as above.
    refused(unsafe { tm_engine_post(engine, &raw const receive, ptr::null_mut()) }, libc::EINVAL, "0x2");
    // SAFETY: as above.
    refused(unsafe { tm_engine_cancel(engine, u64::MAX) }, libc::ENOENT, "matched before");
    // SAFETY: as above.
    refused(unsafe { tm_engine_discard_claimed(engine, 5) }, libc::ENOENT, "no such claim");
    // SAFETY: as above.
    refused(unsafe { tm_engine_set_path(engine, 1, 9) }, libc::ENODEV, "device 9");
    // SAFETY: as above.
    refused(unsafe { tm_engine_name_peer(engine, u32::MAX, 0) }, libc::EINVAL, "4294967295");
    // SAFETY: as above.
    refused(unsafe { tm_engine_handle_submitted(engine, 0, 1) }, libc::EINVAL, "0 wait");
    let mut command: tm_command = zeroed();
    // SAFETY: as above.
    refused(unsafe { tm_engine_poll_commands(engine, 256, &raw mut command, 1) }, libc::ENODEV, "256");
    let data = tm_data { status: 7, ..zeroed() };
    // SAFETY: as above.
    refused(unsafe { tm_engine_handle_data(engine, 0, &raw const data) }, libc::EINVAL, "status is 7");
    let matched = tm_match { stage: 9, ..zeroed() };
    // SAFETY: as above.
    refused(unsafe { tm_engine_handle_match(engine, 0, &raw const matched) }, libc::EINVAL, "stage is 9");
    let operation = tm_operation { operation: 3, phase: 65_536, ..zeroed() };
    // SAFETY: as above.
    let done = unsafe { tm_engine_handle_operation(engine, 0, &raw const operation) };
    refused(done, libc::EINVAL, "65536");
    let device = tm_device { size: 4, ..zeroed() };
    // SAFETY: as above.
    refused(unsafe { tm_engine_add_device(engine, &raw const device) }, libc::EINVAL, "size is 4");
    let device = tm_device { size: size_of::<tm_device>(), tags: 16, ..zeroed() };
    // SAFETY: as above.
    refused(unsafe { tm_engine_add_device(engine, &raw const device) }, libc::EINVAL, "33");
    // SAFETY: it is not used again.
    assert_eq!(unsafe { tm_engine_close(engine) }, 0);
}

#[test]
fn what_a_device_makes_up_is_a_fault_that_is_told_in_as_many_bytes_as_there_are() {
    let engine = open();
    let data = tm_data { id: 99, target: 2, ..zeroed() };
    for _ in 0..2 {
        // SAFETY: arguments as the header asks for.
        assert_eq!(unsafe { tm_engine_handle_data(engine, 0, &raw const data) }, 0);
    }
    let mut text = [b'x'; 200];
    // SAFETY: as above.
    assert_eq!(unsafe { tm_engine_poll_fault(engine, text.as_mut_ptr().cast(), 200) }, 1);
    let end = text.iter().position(|&byte| byte == 0).unwrap();
    assert!(String::from_utf8_lossy(&text[..end]).contains("no such transfer"), "{text:?}");
    text = [b'x'; 200];
    // SAFETY: as above.
    assert_eq!(unsafe { tm_engine_poll_fault(engine, text.as_mut_ptr().cast(), 4) }, 1);
    assert_eq!((text[3], text[4]), (0, b'x'));
    // SAFETY: as above.
    assert_eq!(unsafe { tm_engine_poll_fault(engine, text.as_mut_ptr().cast(), 4) }, 0);
    // SAFETY: it is not used again.
    assert_eq!(unsafe { tm_engine_close(engine) }, 0);
}

/// What callbacks of the engine found.
struct Found {
    engine: *mut tm_engine,
    completions: Vec<u64>,
    results: Vec<i32>,
}

unsafe extern "C" fn complete(user: *mut c_void, completion: *const tm_engine_completion) {
    // SAFETY: what was given with the engine, which nobody else uses meanwhile.
    let found = unsafe { &mut *user.cast::<Found>() };
    // SAFETY: a completion, as long as this call.
    let completion = unsafe { *completion };
    found.completions.push(completion.context);
    let engine = found.engine;
    let again = tm_engine_receive { context: completion.context + 1, ..zeroed() };
    if completion.context < 3 {
        // SAFETY: arguments as the header asks for.
        found.results.push(unsafe { tm_engine_post(engine, &raw const again, ptr::null_mut()) });
    }
    // SAFETY: both are refused.
    found.results.push(unsafe { tm_engine_progress(engine) });
    // SAFETY: as above.
    found.results.push(unsafe { tm_engine_close(engine) });
}

unsafe extern "C" fn submit(user: *mut c_void, _: *const tm_command, count: usize) -> usize {
    // SAFETY: what was given with the device, which nobody else uses meanwhile.
    let found = unsafe { &mut *user.cast::<Found>() };
    // SAFETY: refused.
    found.results.push(unsafe { tm_engine_progress(found.engine) });
    // SAFETY: refused.
    found.results.push(unsafe { tm_engine_close(found.engine) });
    count
}

#[test]
fn a_callback_may_post_but_not_close_the_engine_or_make_progress() {
    let mut found = Found { engine: ptr::null_mut(), completions: Vec::new(), results: Vec::new() };
    let user = (&raw mut found).cast::<c_void>();
    let size = size_of::<tm_engine_config>();
    let config = tm_engine_config { size, user, complete: Some(complete), ..zeroed() };
    let mut engine = ptr::null_mut();
    // SAFETY: arguments as the header asks for; so below.
    assert_eq!(unsafe { tm_engine_open(&raw const config, &raw mut engine) }, 0);
    // SAFETY: nobody else uses it now.
    unsafe { (*user.cast::<Found>()).engine = engine };
    let device = tm_device { size: size_of::<tm_device>(), user, submit: Some(submit), ..zeroed() };
    // SAFETY: as above.
    assert_eq!(unsafe { tm_engine_add_device(engine, &raw const device) }, 0);
    let receive = tm_engine_receive { context: 1, ..zeroed() };
    // SAFETY: as above.
    assert_eq!(unsafe { tm_engine_post(engine, &raw const receive, ptr::null_mut()) }, 0);
    for message in 0..4 {
        let arrival = tm_arrival { message, flags: 2, ..zeroed() };
        let mut answer: tm_answer = zeroed();
        // SAFETY: as above.
        let told = unsafe { tm_engine_handle_arrival(engine, 0, &raw const arrival, &raw mut answer) };
        assert_eq!(told, 0);
        assert_eq!(answer.kind == TM_ANSWER_HOLD, message >= 3, "three receives are posted, one by one");
        // SAFETY: as above.
        assert_eq!(unsafe { tm_engine_progress(engine) }, i32::from(message < 3));
    }
    // The fourth message is dropped, which its device is told by a command.
    let pattern = tm_pattern { kind: TM_SOURCE_PEER, ..zeroed() };
    // SAFETY: as above.
    let dropped = unsafe {
        tagmatch_c::engine::receiving::tm_engine_discard(engine, &raw const pattern, ptr::null_mut())
    };
    assert_eq!(dropped, 0);
    // SAFETY: as above.
    assert_eq!(unsafe { tm_engine_progress(engine) }, 0);
    // SAFETY: nobody else uses it now.
    let found = unsafe { &*user.cast::<Found>() };
    assert_eq!(found.completions, [1, 2, 3]);
    let busy = -libc::EBUSY;
    assert_eq!(found.results, [0, busy, busy, 0, busy, busy, busy, busy, busy, busy]);
    // SAFETY: it is not used again.
    assert_eq!(unsafe { tm_engine_close(engine) }, 0);
}
