//! What an engine tells the caller's devices.

use std::ffi::c_int;

use tagmatch::seam::{Answer, Command};

use super::types::flag;
use super::{State, tm_engine, with};
use crate::error::Error;
use crate::ffi::{self, count};
use crate::memory::{tm_buffer, tm_remote};

/// Keep the message; a command will say more.
pub const TM_ANSWER_HOLD: u32 = 0;
/// Write the payload into `buffer`: at most as many bytes as it has, the rest is drained. A rendezvous is read, and its sender
/// told.
pub const TM_ANSWER_ACCEPT: u32 = 1;
/// Drop the payload; the sender of a rendezvous is told that it is done.
pub const TM_ANSWER_DISCARD: u32 = 2;
/// The end is to be told by `tm_engine_handle_data`, with `transfer`. Not set: the payload is in hand, and is in its place
/// before anything else is told.
pub const TM_ANSWER_TRANSFER: u32 = 1;

/// What becomes of a message that arrived unmatched.
///
/// `tagmatch::seam::Answer`
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct tm_answer {
    /// One of `TM_ANSWER_HOLD`, `TM_ANSWER_ACCEPT` and `TM_ANSWER_DISCARD`.
    pub kind: u32,
    /// `TM_ANSWER_TRANSFER`, or 0.
    pub flags: u32,
    /// What `tm_engine_handle_data` shall call it.
    pub transfer: u64,
    /// Of `TM_ANSWER_ACCEPT`: where to.
    pub buffer: tm_buffer,
}

impl From<&Answer> for tm_answer {
    fn from(answer: &Answer) -> Self {
        let nothing = Self { kind: TM_ANSWER_HOLD, flags: 0, transfer: 0, buffer: tm_buffer::NONE };
        match answer {
            Answer::Hold => nothing,
            Answer::Discard => Self { kind: TM_ANSWER_DISCARD, ..nothing },
            Answer::Accept { buffer, transfer } => Self {
                kind: TM_ANSWER_ACCEPT,
                flags: flag(transfer.is_some(), TM_ANSWER_TRANSFER),
                transfer: transfer.map_or(0, |transfer| transfer.to_bits()),
                buffer: (*buffer).into(),
            },
        }
    }
}

/// Put a receive into the matching list: `id` is the entry; `tag`, `ignore`, `buffer`, `unexpected_count`.
pub const TM_COMMAND_ADD: u32 = 1;
/// Take the receive `id` out of the matching list.
pub const TM_COMMAND_DEL: u32 = 2;
/// Report a count: `unexpected_count`.
pub const TM_COMMAND_SYNC: u32 = 3;
/// Give the device `buffers` more buffers for unexpected messages.
pub const TM_COMMAND_RECEIVE: u32 = 4;
/// What becomes of the message `id`, which was held: `answer`.
pub const TM_COMMAND_ANSWER: u32 = 5;
/// Fetch the payload of a rendezvous that the device handed back, and tell its sender: `id` is the transfer; `peer`, `tag`,
/// `app_ctx`, `remote`, `buffer`.
pub const TM_COMMAND_READ: u32 = 6;
/// Copy within the host's memory: `id` is the transfer; from `from` to `buffer`.
pub const TM_COMMAND_COPY: u32 = 7;
/// The device is asked for a completion (`tm_engine_handle_operation`).
pub const TM_COMMAND_SIGNALLED: u32 = 1;

/// What an engine tells a device. Commands to one device are executed in order. What a command does not name is 0. Devices
/// that do not match get `TM_COMMAND_ANSWER` alone.
///
/// `tagmatch::seam::Command`
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct tm_command {
    /// One of `TM_COMMAND_ADD` to `TM_COMMAND_COPY`.
    pub kind: u32,
    /// `TM_COMMAND_SIGNALLED`, or 0.
    pub flags: u32,
    /// See the kinds.
    pub id: u64,
    /// The tag, with the ignored bits cleared.
    pub tag: u64,
    /// Bits of the tag that do not count: verbs' mask is their complement.
    pub ignore: u64,
    /// Where the payload goes.
    pub buffer: tm_buffer,
    /// Where it comes from.
    pub from: tm_buffer,
    /// Where it waits.
    pub remote: tm_remote,
    /// See `TM_COMMAND_ANSWER`.
    pub answer: tm_answer,
    /// Who holds the data.
    pub peer: u32,
    /// The request's word, by which the sender knows it.
    pub app_ctx: u32,
    /// Unexpected messages decided, modulo 65536, to go with it.
    pub unexpected_count: u32,
    /// Of `TM_COMMAND_RECEIVE`.
    pub buffers: u32,
}

impl tm_command {
    const NONE: Self = Self {
        kind: 0,
        flags: 0,
        id: 0,
        tag: 0,
        ignore: 0,
        buffer: tm_buffer::NONE,
        from: tm_buffer::NONE,
        remote: tm_remote { address: 0, length: 0, key: 0, reserved: 0 },
        answer: tm_answer { kind: TM_ANSWER_HOLD, flags: 0, transfer: 0, buffer: tm_buffer::NONE },
        peer: 0,
        app_ctx: 0,
        unexpected_count: 0,
        buffers: 0,
    };
}

impl From<&Command> for tm_command {
    fn from(command: &Command) -> Self {
        let of = |kind| Self { kind, ..Self::NONE };
        let signal = |is_signalled| flag(is_signalled, TM_COMMAND_SIGNALLED);
        match *command {
            Command::Add { handle, tag, ignore, buffer, unexpected_count, signalled } => Self {
                flags: signal(signalled),
                id: handle.to_bits(),
                tag: tag.0,
                ignore: ignore.0,
                buffer: buffer.into(),
                unexpected_count: u32::from(unexpected_count),
                ..of(TM_COMMAND_ADD)
            },
            Command::Del { handle, signalled } => {
                Self { flags: signal(signalled), id: handle.to_bits(), ..of(TM_COMMAND_DEL) }
            }
            Command::Sync { unexpected_count, signalled } => Self {
                flags: signal(signalled),
                unexpected_count: u32::from(unexpected_count),
                ..of(TM_COMMAND_SYNC)
            },
            Command::Receive { buffers } => Self { buffers, ..of(TM_COMMAND_RECEIVE) },
            Command::Answer { message, ref answer } => {
                Self { id: message.0, answer: answer.into(), ..of(TM_COMMAND_ANSWER) }
            }
            Command::Read { transfer, peer, tag, app_ctx, remote, buffer } => Self {
                id: transfer.to_bits(),
                tag: tag.0,
                buffer: buffer.into(),
                remote: Some(remote).into(),
                peer: peer.0,
                app_ctx,
                ..of(TM_COMMAND_READ)
            },
            Command::Copy { transfer, from, to } => {
                Self { id: transfer.to_bits(), buffer: to.into(), from: from.into(), ..of(TM_COMMAND_COPY) }
            }
        }
    }
}

/// Commands for a device that has no `submit`, oldest first: as many as there is room for; returns how many. They are offered
/// again until `tm_engine_handle_submitted`, before which the engine may be told nothing: an event might withdraw one of
/// them.
///
/// `tagmatch::engine::Engine::poll_commands`
///
/// # Errors
/// `-ENODEV`: there is no such device.
///
/// # Safety
/// As for every call: see the head of this page. There is room for `room` commands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_engine_poll_commands(
    engine: *mut tm_engine,
    device: u32,
    commands: *mut tm_command,
    room: usize,
) -> c_int {
    let body = |state: &mut State| {
        let device = state.device(device)?;
        // SAFETY: the caller's promise.
        let into = unsafe { ffi::slots(commands, room, "commands") }?;
        let mut given = 0;
        for (slot, command) in into.iter_mut().zip(state.engine.poll_commands(device)) {
            slot.write(command.into());
            given += 1;
        }
        Ok(count(given))
    };
    // SAFETY: the caller's promise.
    unsafe { with(engine, body) }
}

/// The device took so many of its commands; those come no more.
///
/// `tagmatch::engine::Engine::handle_submitted`
///
/// # Errors
/// `-ENODEV`: there is no such device. `-EINVAL`: so many do not wait. Nothing was done.
///
/// # Safety
/// As for every call: see the head of this page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_engine_handle_submitted(
    engine: *mut tm_engine,
    device: u32,
    taken: usize,
) -> c_int {
    let body = |state: &mut State| {
        let device = state.device(device)?;
        let waiting = state.engine.commands(device).len();
        if taken > waiting {
            return Err(Error::argument(format!("{taken} commands cannot have been taken: {waiting} wait")));
        }
        state.engine.handle_submitted(device, taken);
        Ok(0)
    };
    // SAFETY: the caller's promise.
    unsafe { with(engine, body) }
}
