//! What an endpoint is asked and what it says, as plain data.

use crate::device::transport::Payload;
use crate::engine::Kind;
use crate::ids::{Ignore, Tag};
use crate::seam::Buffer;

/// The two kinds of messages, which never match each other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Space {
    /// With a tag: `fi_tagged(3)`.
    Tagged,
    /// Without: `fi_msg(3)`. Tag and ignore of a receive say nothing.
    Untagged,
}

/// An address by its place in the address vector: `fi_addr_t` of `FI_AV_TABLE`, and as good as any for `FI_AV_MAP`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Address(pub u64);

/// A receive to post.
#[derive(Clone, Copy, Debug)]
pub struct Post {
    /// Of which messages.
    pub space: Space,
    /// Whose; `None`: anybody's (`FI_ADDR_UNSPEC`).
    pub source: Option<Address>,
    /// Which.
    pub tag: Tag,
    /// Bits of the tag that do not count.
    pub ignore: Ignore,
    /// Where the payload goes.
    pub buffer: Buffer,
    /// For one message, or for several (`FI_MULTI_RECV`).
    pub kind: Kind,
    /// Comes back with the completions.
    pub context: u64,
    /// Comes back with the completions, and says nothing here.
    pub flags: u32,
}

/// A message to send.
#[derive(Clone, Copy, Debug)]
pub struct Send<'a> {
    /// Of which kind.
    pub space: Space,
    /// To whom.
    pub to: Address,
    /// The tag; of messages without one it says nothing.
    pub tag: Tag,
    /// The payload. [`Payload::Copied`] is free when the call returns (`fi_inject(3)`), and is at most
    /// the endpoint's inject size; [`Payload::Memory`] stays until the completion.
    pub payload: Payload<'a>,
    /// Remote CQ data.
    pub cq_data: Option<u32>,
    /// When the send is complete.
    pub level: Level,
    /// More will follow at once (`FI_MORE`).
    pub more: bool,
    /// Comes back with the completion.
    pub context: u64,
    /// Comes back with the completion, and says nothing here.
    pub flags: u32,
}

/// When a send is complete (`fi_cq(3)`, completion semantics).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Level {
    /// Its memory is the sender's again: `FI_INJECT_COMPLETE`.
    #[default]
    Inject,
    /// The peer's host has it, and it no longer depends on this process: `FI_TRANSMIT_COMPLETE`.
    Transmit,
    /// Its payload is in the receiver's buffer, or in one that the receiving endpoint keeps for it:
    /// `FI_DELIVERY_COMPLETE`.
    Delivery,
    /// A receive has taken it, or it was discarded: `FI_MATCH_COMPLETE`.
    Match,
}

/// A send that was not taken. Nothing was done.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendRefused {
    /// Not now: go on with progress and try again (`FI_EAGAIN`). A connection is being made, or room or credit is
    /// wanted.
    #[error("not now: progress, and try again")]
    Again,
    /// It stands for nobody.
    #[error("{0:?} is in no address vector")]
    Address(Address),
    /// Nobody could be reached there; the next send tries anew (`FI_EHOSTUNREACH`, `FI_ECONNREFUSED`).
    #[error("the peer cannot be reached: {0}")]
    Unreachable(Failure),
    /// It is too long: to be copied, for any message, or for a peer that can neither read it nor take it in segments
    /// (`FI_EMSGSIZE`).
    #[error("{length} bytes are more than the {limit} that can be sent so")]
    TooLong {
        /// Bytes of the payload.
        length: u64,
        /// What is allowed.
        limit: u64,
    },
    /// A remote memory access has not as many bytes here as there, names no memory there, or is a read with what only
    /// writes have (`FI_EINVAL`).
    #[error("a remote access of {here} bytes here and {there} there")]
    Uneven {
        /// Bytes here.
        here: u64,
        /// Bytes there.
        there: u64,
    },
    /// There is no such operation on values of that type, or not by this call (`FI_EOPNOTSUPP`).
    #[error("there is no such operation on values of that type")]
    NoOperation,
    /// The endpoint is of no more use.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
}

/// A message as a completion shows it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Message {
    /// The sender's tag.
    pub tag: Tag,
    /// Bytes that the message had.
    pub length: u64,
    /// Remote CQ data.
    pub cq_data: Option<u32>,
    /// The sender, if it is in the address vector.
    pub source: Option<Address>,
}

/// Something is over.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Completion {
    /// As given with the operation.
    pub context: u64,
    /// As given with the operation.
    pub flags: u32,
    /// Of which kind of messages it was; of remote memory access it says nothing.
    pub space: Space,
    /// What.
    pub what: Completed,
}

/// What is over.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Completed {
    /// A send.
    Sent,
    /// A receive. More than `placed` bytes did not fit if the message is longer (`FI_ETRUNC`).
    Received {
        /// The message.
        message: Message,
        /// Where the payload begins: of a multi-receive buffer a piece of it.
        address: u64,
        /// Bytes of payload that were written.
        placed: u64,
        /// Of a multi-receive buffer, and it takes no more with this (`FI_MULTI_RECV`).
        released: bool,
    },
    /// A multi-receive buffer takes no more, apart from any message.
    Released,
    /// A peek found a message, and claimed or discarded it if it was to.
    Peeked(Message),
    /// A peek found nothing (`FI_ENOMSG`).
    NoMessage,
    /// A receive was cancelled (`FI_ECANCELED`).
    Cancelled,
    /// A write of a peer's memory: all of it is there.
    Written,
    /// A read of a peer's memory: all of it is here.
    Read,
    /// A peer has written memory of this side's: with remote CQ data, or any where that is asked for
    /// ([`super::Config::remote_events`]). Context and flags are 0.
    WrittenByPeer {
        /// The key of the region.
        key: u64,
        /// Bytes of the last stretch.
        length: u64,
        /// Remote CQ data.
        cq_data: Option<u32>,
        /// Who, if it is in the address vector.
        source: Option<Address>,
    },
    /// A peer has read memory of this side's: where that is asked for. Context and flags are 0.
    ReadByPeer {
        /// The key of the region.
        key: u64,
        /// Bytes of the last stretch.
        length: u64,
        /// Who, if it is in the address vector.
        source: Option<Address>,
    },
    /// A peer has done an operation on values of memory of this side's: where that is asked for. Context and flags are 0.
    OperatedByPeer {
        /// The key of the region.
        key: u64,
        /// Bytes of the last stretch.
        length: u64,
        /// It only read them.
        is_read: bool,
        /// Who, if it is in the address vector.
        source: Option<Address>,
    },
    /// The operation failed.
    Failed(Failure),
}

/// Why an operation failed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// Nobody listens there.
    #[error("connection refused")]
    Refused,
    /// Whoever was called does not want the connection (`FI_ECONNREFUSED`): of connected endpoints.
    #[error("the connection was rejected")]
    Rejected,
    /// A connected endpoint has no connection, or none any more (`FI_ENOTCONN`).
    #[error("the endpoint is not connected")]
    NotConnected,
    /// The connection was lost while the operation was under way.
    #[error("the connection was lost")]
    Lost,
    /// No connection came about in the time that is allowed.
    #[error("no connection came about in time")]
    TimedOut,
    /// The peer speaks no version that this one does, does not hold the job's key, or goes by another name than that under
    /// which it was called; so does this endpoint itself.
    #[error("the peer was turned away, or turned this one away")]
    NotAccepted,
    /// The peer broke the protocol.
    #[error("the peer broke the protocol")]
    Protocol,
    /// The peer could not read the payload, or this side could not.
    #[error("the payload could not be read")]
    ReadFailed,
    /// The payload's memory is no memory of this process (`EFAULT`). Nothing of it was sent.
    #[error("the memory of the payload cannot be read")]
    Memory,
    /// The peer has no memory region of this key (`FI_EACCES`). Nothing of that stretch was accessed.
    #[error("the peer has no memory region of this key")]
    NoRegion,
    /// The peer's region does not have all of a stretch (`FI_EINVAL`). Nothing of that stretch was accessed.
    #[error("the peer's memory region does not have all of it")]
    OutOfBounds,
    /// The peer's region is not for this (`FI_EACCES`). Nothing of that stretch was accessed.
    #[error("the peer's memory region is not for this")]
    NotAllowed,
    /// The operating system has none of what is needed for a connection: descriptors, for one.
    #[error("no connection can be made here: errno {errno}")]
    System {
        /// `errno`, positive.
        errno: i32,
    },
    /// The transport failed.
    #[error("the device failed")]
    Device,
}

/// The endpoint is of no more use.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// A transport failed.
    #[error("a transport failed: {0}")]
    Device(#[from] crate::seam::DeviceError),
    /// A transport cannot join.
    #[error(transparent)]
    Join(#[from] crate::engine::JoinError),
    /// The job's key is too short to keep anybody out.
    #[error("job_key of {length} bytes is refused: it takes {least} bytes at least")]
    JobKey {
        /// Bytes that it has.
        length: usize,
        /// Bytes that it must have.
        least: usize,
    },
}

/// What became of the connection of a connected endpoint (`fi_cm(3)`), each at most once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConnectionEvent {
    /// It stands: messages pass (`FI_CONNECTED`).
    Connected {
        /// What the other side said as it accepted; of who was called nothing: that was with the request.
        data: Vec<u8>,
    },
    /// It does not come about.
    Refused {
        /// Why.
        failure: Failure,
        /// What the other side said as it rejected it.
        data: Vec<u8>,
    },
    /// It has ended (`FI_SHUTDOWN`): the other side has ended it or is gone, and all that came before was told; or it was shut
    /// down here, and is no more.
    Shutdown,
}

/// Nothing was done for a connection.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// It is not the time for this in the endpoint's life, or it is no connected endpoint (`FI_EINVAL`, `FI_EISCONN`,
    /// `FI_ENOTCONN`).
    #[error("the connection is not where this could be done")]
    NotNow,
    /// The caller is gone (`FI_ECONNABORTED`).
    #[error("the caller is gone")]
    Gone,
    /// The address is none.
    #[error("no address: {0}")]
    Address(String),
    /// The operating system refused.
    #[error("the operating system refuses: errno {errno}")]
    System {
        /// `errno`, positive.
        errno: i32,
    },
    /// The endpoint is of no more use.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
}

/// An unexpected message to look for (`FI_PEEK`).
#[derive(Clone, Copy, Debug)]
pub struct Peek {
    /// Of which messages.
    pub space: Space,
    /// Whose; `None`: anybody's. An address that stands for nobody finds nothing.
    pub source: Option<Address>,
    /// Which.
    pub tag: Tag,
    /// Bits of the tag that do not count.
    pub ignore: Ignore,
    /// What becomes of it.
    pub action: PeekAction,
    /// Comes back with the completion; a claim is found by it.
    pub context: u64,
    /// Comes back with the completion, and says nothing here.
    pub flags: u32,
}

/// What becomes of a message that a peek finds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PeekAction {
    /// Nothing.
    Look,
    /// It is kept for [`super::Endpoint::receive_claimed`] and [`super::Endpoint::discard_claimed`] (`FI_CLAIM`).
    Claim,
    /// It is dropped (`FI_DISCARD`).
    Discard,
}

/// A receive that was not posted. Nothing was done.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PostError {
    /// It stands for nobody.
    #[error("{0:?} is in no address vector")]
    Address(Address),
    /// The endpoint is of no more use.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
}

/// An address cannot be entered.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The name is empty or longer than 64 bytes.
    #[error("a name has 1 to 64 bytes, not {0}")]
    Length(usize),
    /// The number stands for another name already.
    #[error("{0:?} stands for another name already")]
    Taken(Address),
    /// The number is too large: numbers are dealt from small ones on.
    #[error("{0:?} is beyond what an address vector holds")]
    TooLarge(Address),
}

/// No message is claimed under this context (any more).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no message is claimed under the context {context:#x}")]
pub struct NoClaim {
    /// As given.
    pub context: u64,
}
