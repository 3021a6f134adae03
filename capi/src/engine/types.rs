//! What goes in and out of an engine, as plain data of C's.

use std::ffi::{c_int, c_void};

use tagmatch::engine::{Completion, End, Peeked, Received};
use tagmatch::ids::{GroupId, Ignore, PeerId, Source, Tag};
use tagmatch::matching::Pattern;
use tagmatch::seam::Capabilities;

use crate::error::{Error, Outcome, code_of_data};
use crate::memory::{pointer, tm_buffer};

/// Anybody's messages.
pub const TM_SOURCE_ANY: u32 = 0;
/// One peer's.
pub const TM_SOURCE_PEER: u32 = 1;
/// Those of every peer in a group at the time of matching.
pub const TM_SOURCE_GROUP: u32 = 2;

/// Which messages a receive takes: `(tag ^ message's tag) & ~ignore == 0`, and the source is right.
///
/// `tagmatch::matching::Pattern`; `fi_trecv(3)`
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct tm_pattern {
    /// The tag.
    pub tag: u64,
    /// Bits of the tag that do not count.
    pub ignore: u64,
    /// `TM_SOURCE_ANY`, `TM_SOURCE_PEER` or `TM_SOURCE_GROUP`.
    pub kind: u32,
    /// Which peer or group; of `TM_SOURCE_ANY` it says nothing.
    pub source: u32,
}

impl tm_pattern {
    pub(super) fn pattern(&self) -> Outcome<Pattern> {
        let source = match self.kind {
            TM_SOURCE_ANY => Source::Any,
            TM_SOURCE_PEER => Source::Peer(PeerId(self.source)),
            TM_SOURCE_GROUP => Source::Group(GroupId(self.source)),
            kind => {
                return Err(Error::argument(format!(
                    "pattern.kind is {kind}: it is one of TM_SOURCE_…, 0 to 2"
                )));
            }
        };
        Ok(Pattern { tag: Tag(self.tag), ignore: Ignore(self.ignore), source })
    }
}

/// A receive takes one message after the other, each behind the last, until less than `least` bytes are left.
pub const TM_RECEIVE_MULTI: u32 = 1;

/// A receive to be posted.
///
/// `tagmatch::engine::Receive`
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct tm_engine_receive {
    /// What it takes.
    pub pattern: tm_pattern,
    /// Where the payload goes. The engine follows no address: what stands here is for whoever places the data.
    pub buffer: tm_buffer,
    /// Comes back with its completions.
    pub context: u64,
    /// With `TM_RECEIVE_MULTI`: see there.
    pub least: u64,
    /// `TM_RECEIVE_MULTI`, or 0.
    pub flags: u32,
    /// 0
    pub reserved: u32,
}

/// `immediate` of a message says something.
pub const TM_MESSAGE_IMMEDIATE: u32 = 1;

/// A message in its receive.
///
/// `tagmatch::engine::Received`
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct tm_engine_message {
    /// The message's tag.
    pub tag: u64,
    /// Bytes that it had.
    pub length: u64,
    /// Bytes that were written; fewer than `length` means that it was cut.
    pub placed: u64,
    /// Where they were written: of a receive of several messages a piece of its buffer.
    pub address: *mut c_void,
    /// Who sent it.
    pub source: u32,
    /// The sender's word, as it arrived.
    pub app_ctx: u32,
    /// The sender's second word, as it arrived.
    pub immediate: u32,
    /// `TM_MESSAGE_IMMEDIATE`, or 0.
    pub flags: u32,
    /// The device that matched it; -1: the engine, in software.
    pub matched_by: i32,
    /// 0
    pub reserved: u32,
}

impl tm_engine_message {
    pub(super) const NONE: Self = Self {
        tag: 0,
        length: 0,
        placed: 0,
        address: std::ptr::null_mut(),
        source: 0,
        app_ctx: 0,
        immediate: 0,
        flags: 0,
        matched_by: -1,
        reserved: 0,
    };
}

impl From<&Received> for tm_engine_message {
    fn from(received: &Received) -> Self {
        let Received { source, tag, length, placed, address, app_ctx, immediate, matched_by } = *received;
        Self {
            tag: tag.0,
            length,
            placed,
            address: pointer(address),
            source: source.0,
            app_ctx,
            immediate: immediate.unwrap_or(0),
            flags: flag(immediate.is_some(), TM_MESSAGE_IMMEDIATE),
            matched_by: matched_by.map_or(-1, |device| i32::from(device.0)),
            reserved: 0,
        }
    }
}

/// The receive is posted; its completion follows.
pub const TM_POST_QUEUED: c_int = 0;
/// The receive took a message that waited; its completion follows when the data is there.
pub const TM_POST_MATCHED: c_int = 1;
/// The receive took a message that waited, and the payload is in its buffer: that was all, no completion follows. Only
/// where a device can place.
pub const TM_POST_PLACED: c_int = 2;

/// What became of a post.
///
/// `tagmatch::engine::Posting`
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct tm_posting {
    /// With `TM_POST_QUEUED`: the receive, to be cancelled by.
    pub receive: u64,
    /// Otherwise: the message.
    pub message: tm_engine_message,
}

/// The receive holds a message.
pub const TM_END_RECEIVED: u32 = 1;
/// The receive was cancelled, and holds nothing.
pub const TM_END_CANCELLED: u32 = 2;
/// The receive took a message whose data will not come. Of `message`, source, tag and word are right.
pub const TM_END_FAILED: u32 = 3;
/// A receive of several messages took its last, and nothing more is written there.
pub const TM_END_RELEASED: u32 = 4;

/// What the user is told. A receive gives exactly one final completion. When the memory may be given up is another
/// question where a device matches: when it has ended here and each entry made of it was released.
///
/// `tagmatch::engine::Completion`
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct tm_engine_completion {
    /// As given with the receive.
    pub context: u64,
    /// One of `TM_END_…`.
    pub end: u32,
    /// 0; or `-EMSGSIZE`: the message was cut; `-ECANCELED`; why data did not come: `-ECONNRESET`, `-EIO`,
    /// `-EREMOTEIO`.
    pub status: i32,
    /// The message.
    pub message: tm_engine_message,
}

impl From<&Completion> for tm_engine_completion {
    fn from(completion: &Completion) -> Self {
        let none = tm_engine_message::NONE;
        let (end, status, message) = match &completion.end {
            End::Received(received) => {
                let status = if received.is_truncated() { -libc::EMSGSIZE } else { 0 };
                (TM_END_RECEIVED, status, received.into())
            }
            End::Cancelled => (TM_END_CANCELLED, -libc::ECANCELED, none),
            End::Failed { source, tag, app_ctx, error } => {
                let message = tm_engine_message { tag: tag.0, source: source.0, app_ctx: *app_ctx, ..none };
                (TM_END_FAILED, -code_of_data(*error), message)
            }
            End::Released => (TM_END_RELEASED, 0, none),
        };
        Self { context: completion.context, end, status, message }
    }
}

/// A message that waits, looked at.
///
/// `tagmatch::engine::Peeked`
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct tm_peeked {
    /// Its tag.
    pub tag: u64,
    /// Bytes of payload.
    pub length: u64,
    /// What the device that holds it calls it.
    pub message: u64,
    /// Who sent it.
    pub source: u32,
    /// The sender's word.
    pub app_ctx: u32,
    /// The sender's second word.
    pub immediate: u32,
    /// `TM_MESSAGE_IMMEDIATE`, or 0.
    pub flags: u32,
    /// The device that holds it.
    pub device: u32,
    /// 0
    pub reserved: u32,
}

impl From<&Peeked> for tm_peeked {
    fn from(peeked: &Peeked) -> Self {
        let Peeked { source, tag, length, app_ctx, immediate, held: (device, message) } = *peeked;
        Self {
            tag: tag.0,
            length,
            message: message.0,
            source: source.0,
            app_ctx,
            immediate: immediate.unwrap_or(0),
            flags: flag(immediate.is_some(), TM_MESSAGE_IMMEDIATE),
            device: u32::from(device.0),
            reserved: 0,
        }
    }
}

/// A buffer must be registered (`key` other than 0) to be given to the device.
pub const TM_DEVICE_REGISTRATION: u32 = 1;
/// The device itself reads the data of a rendezvous that it matched.
pub const TM_DEVICE_RENDEZVOUS: u32 = 2;

/// What a device can do, and how it is called. A device that does not match has zeros everywhere but in `size`, and may
/// have `user`, `submit` and `place`.
///
/// `tagmatch::seam::Capabilities`; of devices that match, docs/tm-srq.md
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tm_device {
    /// `sizeof(tm_device)`
    pub size: usize,
    /// Entries of its matching list; 0: it does not match, and every message arrives unmatched.
    pub tags: u32,
    /// List operations that may be outstanding.
    pub command_slots: u32,
    /// Entries of its completion queue.
    pub completions: u32,
    /// Buffers for unexpected messages that it can hold; 0: it keeps them itself. A device that matches wants 33 at least.
    pub unexpected_buffers: u32,
    /// The longest payload, in bytes, that arrives eagerly. A shorter buffer is not given to a device that matches.
    pub eager_limit: u64,
    /// The longest buffer, in bytes, that is given to a device that matches.
    pub buffer_length_max: u64,
    /// `TM_DEVICE_REGISTRATION`, `TM_DEVICE_RENDEZVOUS`.
    pub flags: u32,
    /// 0
    pub reserved: u32,
    /// The first argument of what follows.
    pub user: *mut c_void,
    /// Take commands, in order, and return how many were taken; the others are offered again. Called by
    /// `tm_engine_progress`, and may not call this engine itself. Null: commands are asked for (`tm_engine_poll_commands`).
    pub submit: Option<
        unsafe extern "C" fn(
            user: *mut c_void,
            commands: *const super::commands::tm_command,
            count: usize,
        ) -> usize,
    >,
    /// Write the payload of a message that the device holds, and whose arrival said `TM_ARRIVAL_IN_HAND`, into the buffer:
    /// at most as many bytes as it has. Then forget the message, and return 1; no command follows. 0: it cannot be done now,
    /// nothing has changed, and a command will say what to do. Called by `tm_engine_post`, and may not call this engine
    /// itself. Null: always a command.
    pub place:
        Option<unsafe extern "C" fn(user: *mut c_void, message: u64, buffer: *const tm_buffer) -> c_int>,
}

impl tm_device {
    pub(super) const fn capabilities(&self) -> Capabilities {
        Capabilities {
            tags: self.tags,
            command_slots: self.command_slots,
            completions: self.completions,
            unexpected_buffers: self.unexpected_buffers,
            eager_limit: self.eager_limit,
            buffer_length_max: self.buffer_length_max,
            registration: self.flags & TM_DEVICE_REGISTRATION != 0,
            rendezvous: self.flags & TM_DEVICE_RENDEZVOUS != 0,
        }
    }
}

pub(crate) const fn flag(is_set: bool, flag: u32) -> u32 {
    if is_set { flag } else { 0 }
}

/// Flags that are not known.
pub(crate) fn check_flags(flags: u32, known: u32, name: &str) -> Outcome<()> {
    if flags & !known == 0 {
        return Ok(());
    }
    Err(Error::argument(format!("{name} is {flags:#x}: only the bits {known:#x} mean something")))
}
