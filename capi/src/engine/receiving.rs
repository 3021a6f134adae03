//! Receives of an engine: post, cancel, peek, claim, discard.

use std::ffi::c_int;

use tagmatch::engine::{CancelOutcome, ClaimId, Kind, Peeked, Posting, Receive};
use tagmatch::ids::{DeviceId, MessageToken, ReceiveId};
use tagmatch::matching::Pattern;
use tagmatch::seam::{Buffer, Placer};

use super::types::{
    TM_POST_MATCHED, TM_POST_PLACED, TM_POST_QUEUED, TM_RECEIVE_MULTI, check_flags, tm_device,
    tm_engine_message, tm_engine_receive, tm_pattern, tm_peeked, tm_posting,
};
use super::{State, tm_engine, with};
use crate::error::{Error, NO_MESSAGE, Outcome};
use crate::ffi;
use crate::memory::tm_buffer;

/// What devices can do at once.
struct Hand<'a>(&'a [tm_device]);

impl Placer for Hand<'_> {
    fn place(&mut self, device: DeviceId, message: MessageToken, buffer: &Buffer) -> bool {
        let Some(device) = self.0.get(usize::from(device.0)) else { return false };
        let Some(place) = device.place else { return false };
        let buffer = tm_buffer::from(*buffer);
        // SAFETY: the function that was given with the device, and what it was to be called with.
        unsafe { place(device.user, message.0, &raw const buffer) != 0 }
    }
}

/// Post a receive: it takes the earliest message that waits and fits, or is posted. Returns `TM_POST_QUEUED`,
/// `TM_POST_MATCHED` or `TM_POST_PLACED`; `posting`, which may be null, has more.
///
/// `tagmatch::engine::Engine::post_placing`
///
/// # Errors
/// `-EINVAL`: of `receive`. Nothing was done.
///
/// # Safety
/// As for every call: see the head of this page. The memory stays until the receive has ended (`tm_engine_completion`).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_engine_post(
    engine: *mut tm_engine,
    receive: *const tm_engine_receive,
    posting: *mut tm_posting,
) -> c_int {
    let body = |state: &mut State| {
        // SAFETY: the caller's promise.
        let receive = unsafe { ffi::shared(receive, "receive") }?;
        check_flags(receive.flags, TM_RECEIVE_MULTI, "receive.flags")?;
        let is_multi = receive.flags & TM_RECEIVE_MULTI != 0;
        if is_multi && receive.buffer.segments > 1 {
            return Err(Error::argument(
                "receive.buffer has several segments: with TM_RECEIVE_MULTI it is one".into(),
            ));
        }
        let receive = Receive {
            pattern: receive.pattern.pattern()?,
            buffer: receive.buffer.into(),
            context: receive.context,
            kind: if is_multi { Kind::Multi { least: receive.least } } else { Kind::Once },
        };
        let none = tm_engine_message::NONE;
        let (outcome, said) = match state.engine.post_placing(&receive, &mut Hand(&state.devices)) {
            Posting::Queued(id) => (TM_POST_QUEUED, tm_posting { receive: id.to_bits(), message: none }),
            Posting::Matched(message) => {
                (TM_POST_MATCHED, tm_posting { receive: NO_RECEIVE, message: (&message).into() })
            }
            Posting::Placed(message) => {
                (TM_POST_PLACED, tm_posting { receive: NO_RECEIVE, message: (&message).into() })
            }
        };
        // SAFETY: the caller's promise.
        unsafe { ffi::write(posting, said) };
        Ok(outcome)
    };
    // SAFETY: the caller's promise.
    unsafe { with(engine, body) }
}

/// Cancel a receive by what `tm_posting` called it. 0: its completion says cancelled. 1: a device has it, and its completion
/// will say whether it was cancelled or a message came first. Cancelling again changes nothing.
///
/// `tagmatch::engine::Engine::cancel`
///
/// # Errors
/// `-ENOENT`: it was matched before, or there is no such receive.
///
/// # Safety
/// As for every call: see the head of this page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_engine_cancel(engine: *mut tm_engine, receive: u64) -> c_int {
    let body = |state: &mut State| match state.engine.cancel(ReceiveId::from_bits(receive)) {
        CancelOutcome::Cancelled => Ok(0),
        CancelOutcome::Pending => Ok(1),
        CancelOutcome::TooLate => Err(Error::new(libc::ENOENT, "the receive was matched before, or is none")),
    };
    // SAFETY: the caller's promise.
    unsafe { with(engine, body) }
}

/// The earliest message that waits and fits. Nothing changes. `peeked` may be null.
///
/// `tagmatch::engine::Engine::peek`
///
/// # Errors
/// `-ENOMSG`: none does.
///
/// # Safety
/// As for every call: see the head of this page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_engine_peek(
    engine: *mut tm_engine,
    pattern: *const tm_pattern,
    peeked: *mut tm_peeked,
) -> c_int {
    let body = |state: &mut State, pattern: &Pattern| state.engine.peek(pattern);
    // SAFETY: the caller's promise.
    unsafe { look(engine, pattern, peeked, body) }
}

/// The same, and the message is taken out of everyone else's sight: `claim` is what it is received or discarded by, once.
///
/// `tagmatch::engine::Engine::claim`
///
/// # Errors
/// `-ENOMSG`: none does. `-EFAULT`: `claim` is null.
///
/// # Safety
/// As for every call: see the head of this page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_engine_claim(
    engine: *mut tm_engine,
    pattern: *const tm_pattern,
    peeked: *mut tm_peeked,
    claim: *mut u64,
) -> c_int {
    if claim.is_null() {
        return ffi::call(|| ffi::place(claim, "claim").map(|_| 0));
    }
    let body = |state: &mut State, pattern: &Pattern| {
        let (id, found) = state.engine.claim(pattern)?;
        // SAFETY: the caller's promise.
        unsafe { ffi::write(claim, id.to_bits()) };
        Some(found)
    };
    // SAFETY: the caller's promise.
    unsafe { look(engine, pattern, peeked, body) }
}

/// The same, and the message is dropped: its device is told so.
///
/// `tagmatch::engine::Engine::discard`
///
/// # Errors
/// `-ENOMSG`: none does.
///
/// # Safety
/// As for every call: see the head of this page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_engine_discard(
    engine: *mut tm_engine,
    pattern: *const tm_pattern,
    peeked: *mut tm_peeked,
) -> c_int {
    let body = |state: &mut State, pattern: &Pattern| state.engine.discard(pattern);
    // SAFETY: the caller's promise.
    unsafe { look(engine, pattern, peeked, body) }
}

/// # Safety
/// As of the calls.
unsafe fn look(
    engine: *mut tm_engine,
    pattern: *const tm_pattern,
    peeked: *mut tm_peeked,
    find: impl FnOnce(&mut State, &Pattern) -> Option<Peeked>,
) -> c_int {
    let body = |state: &mut State| {
        // SAFETY: the caller's promise.
        let pattern = unsafe { ffi::shared(pattern, "pattern") }?.pattern()?;
        let found = find(state, &pattern).ok_or(NO_MESSAGE)?;
        // SAFETY: the caller's promise.
        unsafe { ffi::write(peeked, tm_peeked::from(&found)) };
        Ok(0)
    };
    // SAFETY: the caller's promise.
    unsafe { with(engine, body) }
}

/// Receive a message that was claimed. A completion comes.
///
/// `tagmatch::engine::Engine::receive_claimed`
///
/// # Errors
/// `-ENOENT`: there is no such claim (any more).
///
/// # Safety
/// As for every call: see the head of this page. The memory stays until the completion.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_engine_receive_claimed(
    engine: *mut tm_engine,
    claim: u64,
    buffer: *const tm_buffer,
    context: u64,
) -> c_int {
    let body = |state: &mut State| {
        // SAFETY: the caller's promise.
        let buffer = unsafe { ffi::read(buffer, "buffer") }?.into();
        claimed(state.engine.receive_claimed(ClaimId::from_bits(claim), buffer, context))
    };
    // SAFETY: the caller's promise.
    unsafe { with(engine, body) }
}

/// Drop a message that was claimed: its device is told so.
///
/// `tagmatch::engine::Engine::discard_claimed`
///
/// # Errors
/// `-ENOENT`: there is no such claim (any more).
///
/// # Safety
/// As for every call: see the head of this page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_engine_discard_claimed(engine: *mut tm_engine, claim: u64) -> c_int {
    let body = |state: &mut State| claimed(state.engine.discard_claimed(ClaimId::from_bits(claim)));
    // SAFETY: the caller's promise.
    unsafe { with(engine, body) }
}

fn claimed(is_there: bool) -> Outcome<c_int> {
    if is_there { Ok(0) } else { Err(Error::new(libc::ENOENT, "there is no such claim (any more)")) }
}

/// Names no receive.
const NO_RECEIVE: u64 = u64::MAX;
