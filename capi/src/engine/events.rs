//! What the caller's devices tell an engine.

use std::ffi::{c_char, c_int};

use tagmatch::ids::{MessageToken, PeerId, Tag, TagHandle, TransferId};
use tagmatch::seam::{
    Arrival, Data, DataError, DataTarget, DeviceError, Event, EventSink as _, Header, Match, MatchStage,
    Operation, OperationDone,
};

use super::commands::{TM_COMMAND_ADD, TM_COMMAND_DEL, TM_COMMAND_SYNC, tm_answer};
use super::types::{TM_MESSAGE_IMMEDIATE, check_flags};
use super::{State, tm_engine, with};
use crate::error::{Error, Outcome};
use crate::ffi;
use crate::memory::tm_remote;

/// The whole payload is here: an answer `TM_ANSWER_ACCEPT` without a transfer is to be done before anything else is told.
pub const TM_ARRIVAL_IN_HAND: u32 = 2;
/// The device counted the message as unexpected: every one with a tag on a device that matches, and none on others.
pub const TM_ARRIVAL_COUNTED: u32 = 4;
/// The payload waits with the sender, at `remote`.
pub const TM_ARRIVAL_RENDEZVOUS: u32 = 8;

/// A message that no device matched: its header is known, and the engine says where it goes.
///
/// `tagmatch::seam::Arrival`
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct tm_arrival {
    /// What the device calls it, until it is accepted or discarded.
    pub message: u64,
    /// The tag to match by.
    pub tag: u64,
    /// Bytes of payload in the whole message.
    pub length: u64,
    /// Who sent it.
    pub source: u32,
    /// The sender's word for the receiver: the caller's, comes back with the completion. (Of devices that match the wire
    /// format has these 32 bits.)
    pub app_ctx: u32,
    /// A second word, if `flags` says so.
    pub immediate: u32,
    /// `TM_MESSAGE_IMMEDIATE`, `TM_ARRIVAL_…`.
    pub flags: u32,
    /// With `TM_ARRIVAL_RENDEZVOUS`.
    pub remote: tm_remote,
}

impl tm_arrival {
    fn arrival(&self) -> Outcome<Arrival> {
        let known = TM_MESSAGE_IMMEDIATE | TM_ARRIVAL_IN_HAND | TM_ARRIVAL_COUNTED | TM_ARRIVAL_RENDEZVOUS;
        check_flags(self.flags, known, "arrival.flags")?;
        let has = |flag| self.flags & flag != 0;
        let header = Header {
            tag: Tag(self.tag),
            length: self.length,
            app_ctx: self.app_ctx,
            immediate: has(TM_MESSAGE_IMMEDIATE).then_some(self.immediate),
            remote: has(TM_ARRIVAL_RENDEZVOUS).then(|| self.remote.into()),
        };
        Ok(Arrival {
            message: MessageToken(self.message),
            source: PeerId(self.source),
            header,
            in_hand: has(TM_ARRIVAL_IN_HAND),
            counted: has(TM_ARRIVAL_COUNTED),
        })
    }
}

/// A message arrived. The answer says at once what becomes of it.
///
/// `tagmatch::seam::Event::Arrived`
///
/// # Errors
/// `-ENODEV`: there is no such device. `-EFAULT`: `answer` is null. `-EINVAL`: of `arrival`. Nothing was done.
///
/// # Safety
/// As for every call: see the head of this page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_engine_handle_arrival(
    engine: *mut tm_engine,
    device: u32,
    arrival: *const tm_arrival,
    answer: *mut tm_answer,
) -> c_int {
    let body = |state: &mut State| {
        let device = state.device(device)?;
        let place = ffi::place(answer, "answer")?;
        // SAFETY: the caller's promise.
        let arrival = unsafe { ffi::shared(arrival, "arrival") }?.arrival()?;
        let answer = state.engine.handle_event(device, &Event::Arrived(arrival));
        // SAFETY: the caller's promise.
        unsafe { ffi::write(place, tm_answer::from(&answer)) };
        Ok(0)
    };
    // SAFETY: the caller's promise.
    unsafe { with(engine, body) }
}

/// `id` is a message that the host holds and will not get whole: only with an error.
pub const TM_DATA_MESSAGE: u32 = 0;
/// `id` is an entry that a device matched.
pub const TM_DATA_ENTRY: u32 = 1;
/// `id` is what an answer, a read or a copy named.
pub const TM_DATA_TRANSFER: u32 = 2;

/// The data of a message is complete, or will never be. Either way the device is done with its buffer.
///
/// `tagmatch::seam::Data`
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct tm_data {
    /// Whose data: see `target`.
    pub id: u64,
    /// Bytes that the message had; of these at most the buffer's length were written.
    pub length: u64,
    /// One of `TM_DATA_…`.
    pub target: u32,
    /// 0: it is there. Why not, if not: `-ECONNRESET`: the sender or the path to it is gone; `-EIO`: the device failed;
    /// any other negative code: the device's own.
    pub status: i32,
    /// A second word of the sender's, if `flags` says so.
    pub immediate: u32,
    /// `TM_MESSAGE_IMMEDIATE`, or 0.
    pub flags: u32,
}

impl tm_data {
    fn data(&self) -> Outcome<Data> {
        check_flags(self.flags, TM_MESSAGE_IMMEDIATE, "data.flags")?;
        let target = match self.target {
            TM_DATA_MESSAGE => DataTarget::Message(MessageToken(self.id)),
            TM_DATA_ENTRY => DataTarget::Entry(TagHandle::from_bits(self.id)),
            TM_DATA_TRANSFER => DataTarget::Transfer(TransferId::from_bits(self.id)),
            target => {
                return Err(Error::argument(format!(
                    "data.target is {target}: it is one of TM_DATA_…, 0 to 2"
                )));
            }
        };
        let error = match self.status {
            0 => None,
            status if status == -libc::ECONNRESET => Some(DataError::PathLost),
            status if status == -libc::EIO => Some(DataError::DeviceFailed),
            status if status < 0 => {
                Some(DataError::Completion { status: status.unsigned_abs(), vendor_error: 0 })
            }
            status => {
                return Err(Error::argument(format!("data.status is {status}: it is 0 or a negative code")));
            }
        };
        let immediate = (self.flags != 0).then_some(self.immediate);
        Ok(Data { target, length: self.length, immediate, error })
    }
}

/// Data is complete, or will never be.
///
/// `tagmatch::seam::Event::Data`
///
/// # Errors
/// `-ENODEV`: there is no such device. `-EINVAL`: of `data`. Nothing was done. An `id` that names nothing is a fault of the
/// device's (`tm_engine_poll_fault`).
///
/// # Safety
/// As for every call: see the head of this page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_engine_handle_data(
    engine: *mut tm_engine,
    device: u32,
    data: *const tm_data,
) -> c_int {
    let event = || {
        // SAFETY: the caller's promise.
        unsafe { ffi::shared(data, "data") }?.data().map(Event::Data)
    };
    // SAFETY: the caller's promise.
    unsafe { handle(engine, device, event) }
}

/// The payload is in its place, and the entry finished.
pub const TM_MATCH_COMPLETE: u32 = 0;
/// The entry is used, and the payload is to come: `tm_engine_handle_data` follows.
pub const TM_MATCH_DATA_FOLLOWS: u32 = 1;
/// The entry is used, and the host must fetch the payload from `remote`.
pub const TM_MATCH_SOFTWARE_RENDEZVOUS: u32 = 2;
/// The device is done with the entry and its buffer; only with `TM_MATCH_COMPLETE`.
pub const TM_MATCH_RELEASED: u32 = 2;

/// A device matched a message with an entry of its list.
///
/// `tagmatch::seam::Match`
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct tm_match {
    /// The entry.
    pub entry: u64,
    /// The message's tag.
    pub tag: u64,
    /// Bytes of payload; with `TM_MATCH_DATA_FOLLOWS` it says nothing.
    pub length: u64,
    /// Who sent it.
    pub source: u32,
    /// The sender's word.
    pub app_ctx: u32,
    /// A second word, if `flags` says so.
    pub immediate: u32,
    /// `TM_MESSAGE_IMMEDIATE`, `TM_MATCH_RELEASED`.
    pub flags: u32,
    /// `TM_MATCH_COMPLETE`, `TM_MATCH_DATA_FOLLOWS` or `TM_MATCH_SOFTWARE_RENDEZVOUS`.
    pub stage: u32,
    /// 0
    pub reserved: u32,
    /// With `TM_MATCH_SOFTWARE_RENDEZVOUS`.
    pub remote: tm_remote,
}

impl tm_match {
    fn matched(&self) -> Outcome<Match> {
        check_flags(self.flags, TM_MESSAGE_IMMEDIATE | TM_MATCH_RELEASED, "match.flags")?;
        let stage = match self.stage {
            TM_MATCH_COMPLETE => MatchStage::Complete,
            TM_MATCH_DATA_FOLLOWS => MatchStage::DataFollows,
            TM_MATCH_SOFTWARE_RENDEZVOUS => MatchStage::SoftwareRendezvous(self.remote.into()),
            stage => {
                return Err(Error::argument(format!(
                    "match.stage is {stage}: it is one of TM_MATCH_…, 0 to 2"
                )));
            }
        };
        Ok(Match {
            handle: TagHandle::from_bits(self.entry),
            source: PeerId(self.source),
            tag: Tag(self.tag),
            app_ctx: self.app_ctx,
            length: self.length,
            immediate: (self.flags & TM_MESSAGE_IMMEDIATE != 0).then_some(self.immediate),
            stage,
            released: self.flags & TM_MATCH_RELEASED != 0,
        })
    }
}

/// A device matched a message.
///
/// `tagmatch::seam::Event::Matched`
///
/// # Errors
/// As `tm_engine_handle_data`.
///
/// # Safety
/// As for every call: see the head of this page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_engine_handle_match(
    engine: *mut tm_engine,
    device: u32,
    matched: *const tm_match,
) -> c_int {
    let event = || {
        // SAFETY: the caller's promise.
        unsafe { ffi::shared(matched, "matched") }?.matched().map(Event::Matched)
    };
    // SAFETY: the caller's promise.
    unsafe { handle(engine, device, event) }
}

/// It was done: not set of a DEL alone, whose entry had been matched before.
pub const TM_OPERATION_SUCCESS: u32 = 1;
/// The device asks for a count; for statistics alone.
pub const TM_OPERATION_SYNC_REQUESTED: u32 = 2;

/// A list operation whose command was signalled is complete.
///
/// `tagmatch::seam::OperationDone`
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct tm_operation {
    /// Of `TM_COMMAND_ADD` and `TM_COMMAND_DEL`: the entry.
    pub entry: u64,
    /// `TM_COMMAND_ADD`, `TM_COMMAND_DEL` or `TM_COMMAND_SYNC`.
    pub operation: u32,
    /// `TM_OPERATION_…`
    pub flags: u32,
    /// The device's own count of unexpected messages when it ran the operation, modulo 65536.
    pub phase: u32,
    /// 0
    pub reserved: u32,
}

impl tm_operation {
    fn done(&self) -> Outcome<OperationDone> {
        check_flags(self.flags, TM_OPERATION_SUCCESS | TM_OPERATION_SYNC_REQUESTED, "operation.flags")?;
        let entry = TagHandle::from_bits(self.entry);
        let operation = match self.operation {
            TM_COMMAND_ADD => Operation::Add(entry),
            TM_COMMAND_DEL => Operation::Del(entry),
            TM_COMMAND_SYNC => Operation::Sync,
            other => {
                return Err(Error::argument(format!(
                    "operation.operation is {other}: it is TM_COMMAND_ADD, TM_COMMAND_DEL or TM_COMMAND_SYNC, 1 to 3"
                )));
            }
        };
        let phase = u16::try_from(self.phase).map_err(|_| {
            Error::argument(format!("operation.phase is {}: it is a count modulo 65536", self.phase))
        })?;
        Ok(OperationDone {
            operation,
            success: self.flags & TM_OPERATION_SUCCESS != 0,
            phase,
            sync_requested: self.flags & TM_OPERATION_SYNC_REQUESTED != 0,
        })
    }
}

/// A list operation is complete.
///
/// `tagmatch::seam::Event::Operation`
///
/// # Errors
/// As `tm_engine_handle_data`.
///
/// # Safety
/// As for every call: see the head of this page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_engine_handle_operation(
    engine: *mut tm_engine,
    device: u32,
    operation: *const tm_operation,
) -> c_int {
    let event = || {
        // SAFETY: the caller's promise.
        unsafe { ffi::shared(operation, "operation") }?.done().map(Event::Operation)
    };
    // SAFETY: the caller's promise.
    unsafe { handle(engine, device, event) }
}

/// A device that matches no longer touches the buffer of this entry. Comes for every entry, unless `TM_MATCH_RELEASED`
/// has said so; only now may the memory be given up.
///
/// `tagmatch::seam::Event::Released`
///
/// # Errors
/// As `tm_engine_handle_data`.
///
/// # Safety
/// As for every call: see the head of this page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_engine_handle_released(engine: *mut tm_engine, device: u32, entry: u64) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { handle(engine, device, || Ok(Event::Released(TagHandle::from_bits(entry)))) }
}

/// A message without a tag used up a buffer for unexpected messages of a device that matches; `counted`: the device counted
/// it as unexpected. The message is the caller's own business.
///
/// `tagmatch::seam::Event::Untagged`
///
/// # Errors
/// As `tm_engine_handle_data`.
///
/// # Safety
/// As for every call: see the head of this page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_engine_handle_untagged(
    engine: *mut tm_engine,
    device: u32,
    source: u32,
    counted: c_int,
) -> c_int {
    let (source, message, counted) = (PeerId(source), MessageToken(0), counted != 0);
    let event = Event::Untagged { source, message, length: 0, counted };
    // SAFETY: the caller's promise.
    unsafe { handle(engine, device, || Ok(event)) }
}

/// A device took the ADD of this entry and does without it: what fits it comes unexpected. `overlaps`: since it overlaps an
/// older one that it does without; else its memory cannot be registered.
///
/// `tagmatch::seam::Event::SetAside`
///
/// # Errors
/// As `tm_engine_handle_data`.
///
/// # Safety
/// As for every call: see the head of this page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_engine_handle_set_aside(
    engine: *mut tm_engine,
    device: u32,
    entry: u64,
    overlaps: c_int,
) -> c_int {
    let event = Event::SetAside { handle: TagHandle::from_bits(entry), overlaps: overlaps != 0 };
    // SAFETY: the caller's promise.
    unsafe { handle(engine, device, || Ok(event)) }
}

/// Nothing more will come from this peer through this device, and all that had come was told. Data that was under way has
/// been told of with an error.
///
/// `tagmatch::seam::Event::PathLost`
///
/// # Errors
/// As `tm_engine_handle_data`.
///
/// # Safety
/// As for every call: see the head of this page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_engine_handle_path_lost(engine: *mut tm_engine, device: u32, peer: u32) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { handle(engine, device, || Ok(Event::PathLost { peer: PeerId(peer) })) }
}

/// A device is of no more use and touches no memory any more. `reason`, which may be null, comes back with the fault.
///
/// `tagmatch::seam::Event::DeviceFailed`
///
/// # Errors
/// As `tm_engine_handle_data`.
///
/// # Safety
/// As for every call: see the head of this page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_engine_handle_device_failed(
    engine: *mut tm_engine,
    device: u32,
    reason: *const c_char,
) -> c_int {
    let event = || {
        // SAFETY: the caller's promise.
        let reason = unsafe { ffi::text(reason, "reason") }?;
        let error = reason.map_or(DeviceError::Removed, |reason| DeviceError::Contract(reason.to_owned()));
        Ok(Event::DeviceFailed(error))
    };
    // SAFETY: the caller's promise.
    unsafe { handle(engine, device, event) }
}

/// # Safety
/// As of the calls.
unsafe fn handle(engine: *mut tm_engine, device: u32, event: impl FnOnce() -> Outcome<Event>) -> c_int {
    let body = |state: &mut State| {
        let device = state.device(device)?;
        let _hold = state.engine.handle_event(device, &event()?);
        Ok(0)
    };
    // SAFETY: the caller's promise.
    unsafe { with(engine, body) }
}
