//! Messages of an endpoint: send, receive, peek, claim, discard, cancel.

use std::ffi::c_int;

use tagmatch::device::transport::Payload;
use tagmatch::endpoint::{Address, Peek, PeekAction, Post, Send};
use tagmatch::engine::Kind;
use tagmatch::ids::{Ignore, Tag};
use tagmatch::seam::{Buffer, Segment};

use super::types::{
    TM_CQ_DATA, TM_PEEK_CLAIM, TM_PEEK_DISCARD, TM_PEEK_LOOK, TM_RECEIVE_SEVERAL, TM_SEND_INJECT,
    TM_SEND_MORE, TM_UNTAGGED, level, source, space, tm_peek, tm_receive, tm_send,
};
use super::{State, tm_endpoint, with};
use crate::clock::now;
use crate::engine::types::check_flags;
use crate::error::{Error, Outcome};
use crate::ffi;
use crate::memory::tm_buffer;

/// Send a message. A completion comes, with `TM_SEND_INJECT` too. The first to a peer begins a connection, and is `-EAGAIN`
/// until that is there. Messages to one peer arrive in the order in which they were sent.
///
/// `tagmatch::endpoint::Endpoint::send`
///
/// # Errors
/// It was not taken: nothing was done, and no completion comes. `-EAGAIN`: not now; go on with progress and try again.
/// `-EADDRNOTAVAIL`: the number stands for no peer. `-EMSGSIZE`: it is too long. `-ECONNREFUSED`, `-ETIMEDOUT`, `-EACCES`,
/// `-ECONNRESET` and others: the peer cannot be reached; the next send tries anew.
///
/// # Safety
/// As for every call: see the head of this page. The payload stays as it is until the completion, or until the call returns
/// with `TM_SEND_INJECT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_endpoint_send(endpoint: *mut tm_endpoint, send: *const tm_send) -> c_int {
    let body = |state: &mut State| {
        // SAFETY: the caller's promise.
        let send = unsafe { ffi::shared(send, "send") }?;
        check_flags(send.flags, TM_UNTAGGED | TM_CQ_DATA | TM_SEND_INJECT | TM_SEND_MORE, "send.flags")?;
        let has = |flag| send.flags & flag != 0;
        // SAFETY: the caller's promise.
        let buffer = unsafe { buffer(&send.payload, "send.payload") }?;
        let payload = if has(TM_SEND_INJECT) {
            if buffer.segments > 1 {
                return Err(Error::argument(
                    "send.payload has several segments: with TM_SEND_INJECT it is one".into(),
                ));
            }
            let length = usize::try_from(buffer.length).unwrap_or(usize::MAX);
            let address = send.payload.address.cast_const().cast::<u8>();
            // SAFETY: the caller's promise.
            Payload::Copied(unsafe { ffi::several(address, length, "send.payload") }?)
        } else {
            Payload::Memory(buffer)
        };
        let message = Send {
            space: space(send.flags),
            to: Address(send.to),
            tag: Tag(send.tag),
            payload,
            cq_data: has(TM_CQ_DATA).then_some(send.cq_data),
            level: level(send.level)?,
            more: has(TM_SEND_MORE),
            context: send.context,
            flags: 0,
        };
        state.endpoint.tell_time(now());
        state.endpoint.send(&message)?;
        Ok(0)
    };
    // SAFETY: the caller's promise.
    unsafe { with(endpoint, body) }
}

/// Start whatever was sent with `TM_SEND_MORE`.
///
/// `tagmatch::endpoint::Endpoint::flush`
///
/// # Safety
/// As for every call: see the head of this page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_endpoint_flush(endpoint: *mut tm_endpoint) -> c_int {
    let body = |state: &mut State| {
        state.endpoint.flush();
        Ok(0)
    };
    // SAFETY: the caller's promise.
    unsafe { with(endpoint, body) }
}

/// Post a receive. A completion comes.
///
/// `tagmatch::endpoint::Endpoint::post`
///
/// # Errors
/// `-EADDRNOTAVAIL`: the source stands for no peer. `-EINVAL`: of `receive`. `-EIO`: a transport failed. Nothing was done.
///
/// # Safety
/// As for every call: see the head of this page. The memory is the library's until the completion.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_endpoint_receive(
    endpoint: *mut tm_endpoint,
    receive: *const tm_receive,
) -> c_int {
    let body = |state: &mut State| {
        // SAFETY: the caller's promise.
        let receive = unsafe { ffi::shared(receive, "receive") }?;
        check_flags(receive.flags, TM_UNTAGGED | TM_RECEIVE_SEVERAL, "receive.flags")?;
        let is_several = receive.flags & TM_RECEIVE_SEVERAL != 0;
        // SAFETY: the caller's promise.
        let buffer = unsafe { buffer(&receive.buffer, "receive.buffer") }?;
        if is_several && buffer.segments > 1 {
            return Err(Error::argument(
                "receive.buffer has several segments: with TM_RECEIVE_SEVERAL it is one".into(),
            ));
        }
        state.endpoint.post(&Post {
            space: space(receive.flags),
            source: source(receive.source),
            tag: Tag(receive.tag),
            ignore: Ignore(receive.ignore),
            buffer,
            kind: if is_several { Kind::Multi { least: receive.least } } else { Kind::Once },
            context: receive.context,
            flags: 0,
        })?;
        Ok(0)
    };
    // SAFETY: the caller's promise.
    unsafe { with(endpoint, body) }
}

/// Look for a message that waits. It makes progress once, and the answer is a completion: `TM_COMPLETED_PEEKED`.
///
/// `tagmatch::endpoint::Endpoint::peek`
///
/// # Errors
/// `-EINVAL`: of `peek`. No completion comes.
///
/// # Safety
/// As for every call: see the head of this page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_endpoint_peek(endpoint: *mut tm_endpoint, peek: *const tm_peek) -> c_int {
    let body = |state: &mut State| {
        // SAFETY: the caller's promise.
        let peek = unsafe { ffi::shared(peek, "peek") }?;
        check_flags(peek.flags, TM_UNTAGGED, "peek.flags")?;
        let action = match peek.action {
            TM_PEEK_LOOK => PeekAction::Look,
            TM_PEEK_CLAIM => PeekAction::Claim,
            TM_PEEK_DISCARD => PeekAction::Discard,
            action => {
                return Err(Error::argument(format!(
                    "peek.action is {action}: it is one of TM_PEEK_…, 0 to 2"
                )));
            }
        };
        state.endpoint.peek(&Peek {
            space: space(peek.flags),
            source: source(peek.source),
            tag: Tag(peek.tag),
            ignore: Ignore(peek.ignore),
            action,
            context: peek.context,
            flags: 0,
        });
        Ok(0)
    };
    // SAFETY: the caller's promise.
    unsafe { with(endpoint, body) }
}

/// Receive the message that a peek of this context claimed. A completion comes, under the same context.
///
/// `tagmatch::endpoint::Endpoint::receive_claimed`
///
/// # Errors
/// `-ENOENT`: there is no such claim (any more).
///
/// # Safety
/// As for every call: see the head of this page. The memory is the library's until the completion.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_endpoint_receive_claimed(
    endpoint: *mut tm_endpoint,
    context: u64,
    into: *const tm_buffer,
) -> c_int {
    let body = |state: &mut State| {
        // SAFETY: the caller's promise.
        let into = unsafe { ffi::shared(into, "into") }?;
        // SAFETY: the caller's promise.
        let buffer = unsafe { buffer(into, "into") }?;
        state.endpoint.receive_claimed(context, buffer, 0)?;
        Ok(0)
    };
    // SAFETY: the caller's promise.
    unsafe { with(endpoint, body) }
}

/// Drop the message that a peek of this context claimed. `TM_COMPLETED_PEEKED` comes, under the same context.
///
/// `tagmatch::endpoint::Endpoint::discard_claimed`
///
/// # Errors
/// `-ENOENT`: there is no such claim (any more).
///
/// # Safety
/// As for every call: see the head of this page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_endpoint_discard_claimed(endpoint: *mut tm_endpoint, context: u64) -> c_int {
    let body = |state: &mut State| {
        state.endpoint.discard_claimed(context, 0)?;
        Ok(0)
    };
    // SAFETY: the caller's promise.
    unsafe { with(endpoint, body) }
}

/// Cancel one receive of this context, the oldest, with a tag or without. Its completion says whether it was cancelled or a
/// message came first.
///
/// `tagmatch::endpoint::Endpoint::cancel`
///
/// # Errors
/// `-ENOENT`: none is pending.
///
/// # Safety
/// As for every call: see the head of this page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_endpoint_cancel(endpoint: *mut tm_endpoint, context: u64) -> c_int {
    let body = |state: &mut State| {
        if state.endpoint.cancel(context) {
            return Ok(0);
        }
        Err(Error::said(libc::ENOENT, format!("no receive of the context {context:#x} is pending")))
    };
    // SAFETY: the caller's promise.
    unsafe { with(endpoint, body) }
}

/// Memory that messages are copied from and to.
///
/// # Safety
/// An array of segments, if there are several, as long as the memory.
unsafe fn buffer(given: &tm_buffer, name: &str) -> Outcome<Buffer> {
    let buffer = Buffer::from(*given);
    if buffer.segments > 1 {
        let count = usize::try_from(buffer.segments).unwrap_or(usize::MAX);
        // SAFETY: the caller's promise.
        let segments = unsafe { ffi::several(given.address.cast_const().cast::<Segment>(), count, name) }?;
        let sum = segments.iter().try_fold(0u64, |sum, segment| sum.checked_add(segment.length));
        if sum != Some(buffer.length) {
            let length = buffer.length;
            return Err(Error::argument(format!(
                "{name}.length is {length}: it is the sum of its {count} segments"
            )));
        }
        if segments.iter().any(|segment| segment.address == 0 && segment.length > 0) {
            return Err(Error::said(libc::EFAULT, format!("{name} has a segment at null")));
        }
    } else if given.address.is_null() && buffer.length > 0 {
        return Err(Error::said(
            libc::EFAULT,
            format!("{name}.address is null, and its length {}", buffer.length),
        ));
    }
    if buffer.length > i64::MAX.cast_unsigned() {
        return Err(Error::argument(format!("{name}.length is {}: no memory is so long", buffer.length)));
    }
    Ok(buffer)
}
