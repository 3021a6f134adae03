//! What goes in and out of an endpoint, as plain data of C's.

use std::ffi::{c_char, c_void};

use tagmatch::endpoint::{Address, Completed, Completion, Level, Message, Space};

use crate::engine::types::flag;
use crate::error::{Error, Outcome, code_of};
use crate::memory::{pointer, tm_buffer};

/// Messages to other hosts go over TCP.
pub const TM_NETWORK_TCP: u32 = 0;
/// They go over a verbs device.
pub const TM_NETWORK_VERBS: u32 = 1;
/// Software matches.
pub const TM_MATCHING_SOFTWARE: u32 = 0;
/// The verbs device matches what it can, and software the rest.
pub const TM_MATCHING_DEVICE: u32 = 1;
/// A model of such a device matches what it could, in software: for tests without hardware.
pub const TM_MATCHING_MODEL: u32 = 2;
/// Peers on this host and of this user are talked to through shared memory; both sides must ask for it.
pub const TM_ENDPOINT_SHM: u32 = 1;

/// How an endpoint is set up. All zeros but `size` will do: an endpoint over TCP for this host alone.
///
/// `tagmatch::endpoint::Config`, which has the defaults
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tm_endpoint_config {
    /// `sizeof(tm_endpoint_config)`
    pub size: usize,
    /// The address to listen at, with a port, `192.0.2.1:7000` or `[2001:db8::1]:0`; port 0 takes a free one. Peers reach it
    /// there, so it is one of this host's, of the network that all share. Null: `127.0.0.1:0`, for this host alone.
    pub listen: *const c_char,
    /// `TM_NETWORK_TCP` or `TM_NETWORK_VERBS`: the same for all who talk to each other.
    pub network: u32,
    /// `TM_MATCHING_SOFTWARE`, `TM_MATCHING_DEVICE` (with `TM_NETWORK_VERBS`) or `TM_MATCHING_MODEL`.
    pub matching: u32,
    /// With `TM_NETWORK_VERBS`: the device, as `ibv_devices` shows it. Null: the first.
    pub verbs_device: *const c_char,
    /// `TM_ENDPOINT_SHM`, or 0.
    pub flags: u32,
    /// Peers that are known at most. 0: the default.
    pub peers_max: u32,
    /// The longest payload, in bytes, that is sent eagerly and taken so. 0: the default.
    pub eager_limit: u64,
    /// The longest payload, in bytes, that can be sent with `TM_SEND_INJECT`. 0: the default.
    pub inject_size: u64,
    /// What one peer may have kept unexpected here: bytes of payload. 0: the default.
    pub credit_bytes: u64,
    /// The same: messages with a payload. 0: the default.
    pub credit_messages: u32,
    /// The same: messages in all. 0: the default.
    pub credit_headers: u32,
    /// How long a connection may take to come about before sends to that peer are told, in milliseconds. 0: the default.
    pub connect_timeout_ms: u32,
    /// A peer from which nothing came for so long is asked whether it is there, in milliseconds, and lost if it says nothing
    /// for as long again. 0: never.
    pub keepalive_ms: u32,
    /// How long a peer may take nothing of what was sent before closing goes on without it, in milliseconds. 0: the default.
    pub close_timeout_ms: u32,
    /// Bytes of `job_key`.
    pub job_key_length: u32,
    /// Connections come about only between endpoints that hold the same key, of 16 bytes at least. It is copied. Null: none.
    pub job_key: *const c_void,
    /// Bits of a tag that name its sender, for devices that match; 0: none.
    pub source_bits: u64,
}

/// Any peer; and a sender that has no number here.
pub const TM_ANY_SOURCE: u64 = 0xffff_ffff_ffff_ffff;

/// The message has no tag, and matches receives without one alone.
pub const TM_UNTAGGED: u32 = 1;
/// `cq_data` says something.
pub const TM_CQ_DATA: u32 = 2;
/// The payload is copied before the call returns; at most `inject_size` bytes, in one segment.
pub const TM_SEND_INJECT: u32 = 4;
/// More will follow at once: this may wait for it, or for `tm_endpoint_flush`.
pub const TM_SEND_MORE: u32 = 8;

/// The send is complete when its memory is the sender's again.
pub const TM_LEVEL_INJECT: u32 = 0;
/// When the peer's host has it, and it no longer depends on this process.
pub const TM_LEVEL_TRANSMIT: u32 = 1;
/// When its payload is in the receiver's buffer, or in one that the receiving endpoint keeps for it.
pub const TM_LEVEL_DELIVERY: u32 = 2;
/// When a receive has taken it, or it was discarded: a synchronous send.
pub const TM_LEVEL_MATCH: u32 = 3;

/// A message to send.
///
/// `tagmatch::endpoint::Send`; `fi_tagged(3)`, `fi_msg(3)`; of levels, `fi_cq(3)`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tm_send {
    /// To whom: a number of `tm_endpoint_set_peer`.
    pub to: u64,
    /// The tag; with `TM_UNTAGGED` it says nothing.
    pub tag: u64,
    /// The payload, which stays as it is until the completion, or until the call returns with `TM_SEND_INJECT`. It is only
    /// read.
    pub payload: tm_buffer,
    /// Comes back with the completion.
    pub context: u64,
    /// A word for the receiver's completion, with `TM_CQ_DATA`.
    pub cq_data: u32,
    /// When the send is complete: one of `TM_LEVEL_…`.
    pub level: u32,
    /// `TM_UNTAGGED`, `TM_CQ_DATA`, `TM_SEND_…`.
    pub flags: u32,
    /// 0
    pub reserved: u32,
}

/// A receive takes one message after the other, each behind the last, until less than `least` bytes are left.
pub const TM_RECEIVE_SEVERAL: u32 = 4;

/// A receive to be posted.
///
/// `tagmatch::endpoint::Post`; `fi_tagged(3)`, `fi_msg(3)`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tm_receive {
    /// Whose messages: a number of `tm_endpoint_set_peer`, or `TM_ANY_SOURCE`.
    pub source: u64,
    /// Which; with `TM_UNTAGGED` it says nothing.
    pub tag: u64,
    /// Bits of the tag that do not count.
    pub ignore: u64,
    /// Where the payload goes. It is the library's until the completion.
    pub buffer: tm_buffer,
    /// Comes back with the completions, and is what it is cancelled by.
    pub context: u64,
    /// With `TM_RECEIVE_SEVERAL`: see there.
    pub least: u64,
    /// `TM_UNTAGGED`, `TM_RECEIVE_SEVERAL`.
    pub flags: u32,
    /// 0
    pub reserved: u32,
}

/// The message stays.
pub const TM_PEEK_LOOK: u32 = 0;
/// It is kept for `tm_endpoint_receive_claimed` and `tm_endpoint_discard_claimed`.
pub const TM_PEEK_CLAIM: u32 = 1;
/// It is dropped.
pub const TM_PEEK_DISCARD: u32 = 2;

/// An unexpected message to look for.
///
/// `tagmatch::endpoint::Peek`; `FI_PEEK` of `fi_tagged(3)`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tm_peek {
    /// As of `tm_receive`.
    pub source: u64,
    /// As of `tm_receive`.
    pub tag: u64,
    /// As of `tm_receive`.
    pub ignore: u64,
    /// Comes back with the completion; a claim is found by it.
    pub context: u64,
    /// What becomes of the message: one of `TM_PEEK_…`.
    pub action: u32,
    /// `TM_UNTAGGED`, or 0.
    pub flags: u32,
}

/// A send.
pub const TM_COMPLETED_SENT: u32 = 1;
/// A receive, or one message of a receive of several.
pub const TM_COMPLETED_RECEIVED: u32 = 2;
/// A receive of several takes no more, apart from any message.
pub const TM_COMPLETED_RELEASED: u32 = 3;
/// A peek: `status` is 0, or `-ENOMSG`; or a message that was claimed was discarded.
pub const TM_COMPLETED_PEEKED: u32 = 4;
/// A receive was cancelled: `status` is `-ECANCELED`.
pub const TM_COMPLETED_CANCELLED: u32 = 5;
/// The operation failed: `status` says why.
pub const TM_COMPLETED_FAILED: u32 = 6;
/// A receive of several takes no more with this message.
pub const TM_RELEASED: u32 = 4;

/// Something is over.
///
/// `tagmatch::endpoint::Completion`
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct tm_completion {
    /// As given with the operation.
    pub context: u64,
    /// What: one of `TM_COMPLETED_…`.
    pub what: u32,
    /// 0; or `-EMSGSIZE`: the message was longer than the receive, and cut; or why the operation failed.
    pub status: i32,
    /// The message's tag.
    pub tag: u64,
    /// Bytes that the message had.
    pub length: u64,
    /// Bytes of payload that were written.
    pub placed: u64,
    /// Where the payload begins: of a receive of several a piece of its buffer.
    pub address: *mut c_void,
    /// The sender, if it has a number here, else `TM_ANY_SOURCE`.
    pub source: u64,
    /// With `TM_CQ_DATA`.
    pub cq_data: u32,
    /// `TM_UNTAGGED`, `TM_CQ_DATA`, `TM_RELEASED`.
    pub flags: u32,
}

impl From<&Completion> for tm_completion {
    fn from(completion: &Completion) -> Self {
        let nothing = Self {
            context: completion.context,
            what: 0,
            status: 0,
            tag: 0,
            length: 0,
            placed: 0,
            address: std::ptr::null_mut(),
            source: TM_ANY_SOURCE,
            cq_data: 0,
            flags: flag(completion.space == Space::Untagged, TM_UNTAGGED),
        };
        let of = |message: &Message| Self {
            tag: message.tag.0,
            length: message.length,
            source: message.source.map_or(TM_ANY_SOURCE, |Address(number)| number),
            cq_data: message.cq_data.unwrap_or(0),
            flags: nothing.flags | flag(message.cq_data.is_some(), TM_CQ_DATA),
            ..nothing
        };
        match &completion.what {
            // Nobody asks for remote memory access here, and no memory is there for peers.
            Completed::Sent
            | Completed::Written
            | Completed::Read
            | Completed::WrittenByPeer { .. }
            | Completed::ReadByPeer { .. }
            | Completed::OperatedByPeer { .. } => Self { what: TM_COMPLETED_SENT, ..nothing },
            Completed::Received { message, address, placed, released } => {
                let of = of(message);
                Self {
                    what: TM_COMPLETED_RECEIVED,
                    status: if *placed < message.length { -libc::EMSGSIZE } else { 0 },
                    placed: *placed,
                    address: pointer(*address),
                    flags: of.flags | flag(*released, TM_RELEASED),
                    ..of
                }
            }
            Completed::Released => Self { what: TM_COMPLETED_RELEASED, ..nothing },
            Completed::Peeked(message) => Self { what: TM_COMPLETED_PEEKED, ..of(message) },
            Completed::NoMessage => Self { what: TM_COMPLETED_PEEKED, status: -libc::ENOMSG, ..nothing },
            Completed::Cancelled => {
                Self { what: TM_COMPLETED_CANCELLED, status: -libc::ECANCELED, ..nothing }
            }
            Completed::Failed(failure) => {
                Self { what: TM_COMPLETED_FAILED, status: -code_of(*failure), ..nothing }
            }
        }
    }
}

/// Which kind of messages.
pub(super) const fn space(flags: u32) -> Space {
    if flags & TM_UNTAGGED != 0 { Space::Untagged } else { Space::Tagged }
}

/// Whose messages.
pub(super) fn source(source: u64) -> Option<Address> {
    (source != TM_ANY_SOURCE).then_some(Address(source))
}

pub(super) fn level(level: u32) -> Outcome<Level> {
    Ok(match level {
        TM_LEVEL_INJECT => Level::Inject,
        TM_LEVEL_TRANSMIT => Level::Transmit,
        TM_LEVEL_DELIVERY => Level::Delivery,
        TM_LEVEL_MATCH => Level::Match,
        level => {
            return Err(Error::argument(format!("send.level is {level}: it is one of TM_LEVEL_…, 0 to 3")));
        }
    })
}
