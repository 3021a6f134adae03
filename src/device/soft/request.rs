//! What is said to the driver and by it: requests, the commands they become, creation, errors.
//!
//! Plain data; what the driver does with it is in [`driver`](super::driver).

use super::list::Append;
use crate::seam::Buffer;

/// `ibv_ops_wr`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Request {
    /// Comes back with the completion.
    pub wr_id: u64,
    /// What to do.
    pub operation: RequestOperation,
    /// `IBV_OPS_SIGNALED`
    pub signalled: bool,
    /// `tm.unexpected_cnt`, where `IBV_OPS_TM_SYNC` is set.
    pub unexpected_count: Option<u32>,
    /// `tm.handle`: in for DEL, out for ADD.
    pub handle: u32,
}

/// `ibv_ops_wr.opcode`, and what belongs to it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RequestOperation {
    /// `IBV_WR_TAG_ADD`
    Add(AddRequest),
    /// `IBV_WR_TAG_DEL`
    Del,
    /// `IBV_WR_TAG_SYNC`
    Sync,
    /// Any other.
    Unknown(u32),
}

/// `ibv_ops_wr.tm.add`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AddRequest {
    /// Comes back with the match.
    pub receive_wr_id: u64,
    /// `sg_list[0]`
    pub buffer: Buffer,
    /// `num_sge`. 0: an empty buffer; more than 1: the rest is dropped.
    pub segments: u32,
    /// See [`Append::tag`].
    pub tag: u64,
    /// See [`Append::mask`].
    pub mask: u64,
}

/// One operation as the device gets it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ListCommand {
    /// What to do.
    pub operation: ListOperation,
    /// `sw_cnt`, where valid.
    pub count: Option<u16>,
    /// Whether a completion is wanted.
    pub signalled: bool,
}

/// The opcode of a command.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ListOperation {
    /// APPEND
    Append(Append),
    /// REMOVE
    Remove {
        /// The entry.
        index: u16,
    },
    /// NOOP
    Noop,
}

/// An entry that waits for nothing any more: the driver will use it again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Released {
    /// The entry.
    pub handle: u16,
    /// The receive that was put into it.
    pub receive_wr_id: u64,
}

/// What `ibv_create_srq_ex` is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Attributes {
    /// `tm_cap.max_num_tags`
    pub tags: u32,
    /// `tm_cap.max_ops`
    pub operations: u32,
    /// `attr.max_wr`
    pub receives: u32,
    /// `attr.max_sge`
    pub receive_segments: u32,
}

/// What the device allows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Limits {
    /// `tm_caps.max_num_tags`
    pub tags: u32,
    /// Largest `max_ops`.
    pub operations: u32,
    /// Largest `max_wr`.
    pub receives: u32,
    /// Largest `max_sge`.
    pub receive_segments: u32,
}

impl Limits {
    /// The list size is four bits of a logarithm, and one entry is never used (TM-CONTRACT 1 and 2).
    pub const TAGS_MAX: u32 = (1 << 15) - 1;
}

impl Default for Limits {
    fn default() -> Self {
        Self { tags: Self::TAGS_MAX, operations: 32_768, receives: 32_767, receive_segments: 31 }
    }
}

/// What a call returns: of `errno`, the values that come here.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum Errno {
    /// ENOMEM
    #[error("ENOMEM")]
    NoMemory,
    /// EBUSY
    #[error("EBUSY")]
    Busy,
    /// EINVAL
    #[error("EINVAL")]
    Invalid,
}

impl Errno {
    /// Its number on Linux.
    #[must_use]
    pub const fn number(self) -> i32 {
        match self {
            Self::NoMemory => 12,
            Self::Busy => 16,
            Self::Invalid => 22,
        }
    }
}

/// `ibv_post_srq_ops` failed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[error("request {bad} was refused: {refusal}")]
pub struct PostError {
    /// Why.
    pub refusal: Refusal,
    /// Which request of the list.
    pub bad: usize,
}

/// Why a request was not posted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum Refusal {
    /// The driver says no.
    #[error(transparent)]
    Errno(#[from] Errno),
    /// The real driver would not notice, and corrupt itself.
    #[error(transparent)]
    Violation(#[from] Violation),
}

/// What a client must never do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// DEL of a handle that is free or out of range.
    #[error("DEL of handle {handle}, which is not in use")]
    HandleNotInUse {
        /// The handle.
        handle: u32,
    },
    /// More DELs of one handle under way than its 8-bit count can hold.
    #[error("too many DELs of handle {handle} under way")]
    TooManyDeletes {
        /// The handle.
        handle: u32,
    },
}

/// A completion that the driver can make nothing of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriverError {
    /// A list operation completes that nobody waits for.
    #[error("a list operation completed, but none is under way")]
    NoOperation,
    /// An entry that does not exist.
    #[error("a completion names entry {index}, which does not exist")]
    NoEntry {
        /// Its number.
        index: u16,
    },
    /// More completions than the entry waits for: a signalled and an unsignalled DEL of one handle.
    #[error("entry {index} got more completions than it waits for")]
    CountBelowZero {
        /// Its number.
        index: u16,
    },
}
