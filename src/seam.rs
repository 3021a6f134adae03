//! What passes between the engine and its devices: plain data, below both.
//!
//! The engine answers an [`Event`] with an [`Answer`] on the spot where it can, and with a
//! [`Command`] later where it cannot. Devices never see receives; the engine never sees memory:
//! a [`Buffer`] is an address that only devices follow.
//!
//! Not here: who may say what when (that is `offload` and `engine`), and how a device does it.

#![forbid(unsafe_code)]

use crate::ids::{DeviceId, Ignore, MessageToken, PeerId, Tag, TagHandle, TransferId};

/// What a device can do. Read once, when it joins an engine; it does not change afterwards.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Capabilities {
    /// Entries of the matching list; 0: the device does not match, and every message arrives unmatched.
    pub tags: u32,
    /// List operations (ADD, DEL, SYNC) that may be outstanding: TM-CONTRACT 6.1. A slot is free again only
    /// when the completion of a *signalled* operation at or behind it has been polled.
    pub command_slots: u32,
    /// Entries of the completion queue. Never overrun, since the engine counts.
    pub completions: u32,
    /// Buffers for unexpected messages that the device can hold. 0: the device keeps them itself, without
    /// [`Command::Receive`]. A device with tags wants at least [`Self::UNEXPECTED_BUFFERS_MIN`].
    pub unexpected_buffers: u32,
    /// The longest payload, in bytes, that arrives eagerly. A tagged buffer shorter than this must not be
    /// given to a device with tags (TM-CONTRACT 10).
    pub eager_limit: u64,
    /// The longest tagged buffer, in bytes, that the device takes.
    pub buffer_length_max: u64,
    /// Whether a tagged buffer must be registered (`Buffer::key` other than 0) to be given to the device.
    pub registration: bool,
    /// Whether the device itself reads the data of a matched rendezvous (`IBV_TM_CAP_RC`).
    pub rendezvous: bool,
}

impl Capabilities {
    /// A TM-SRQ does not operate with fewer posted buffers (TM-CONTRACT 5).
    pub const UNEXPECTED_BUFFERS_MIN: u32 = 33;

    /// Whether the device matches.
    #[must_use]
    pub const fn is_matching(&self) -> bool {
        self.tags > 0
    }
}

/// A stretch of memory of the user's. Only a device follows the address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Buffer {
    /// First byte.
    pub address: u64,
    /// Bytes.
    pub length: u64,
    /// How the device that will write there knows this memory (verbs: the lkey); 0 where none is needed.
    pub key: u32,
    /// 1: the stretch itself. More: `address` is that of an array of as many [`Segment`]s, which stays as long as the
    /// memory itself, and `length` is their sum.
    pub segments: u32,
}

/// One stretch of a [`Buffer`] in several.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(C)]
pub struct Segment {
    /// First byte.
    pub address: u64,
    /// Bytes.
    pub length: u64,
    /// How the device that will write there knows this memory; 0 where none is needed.
    pub key: u64,
}

impl Buffer {
    /// One stretch of memory without a key.
    #[must_use]
    pub const fn new(address: u64, length: u64) -> Self {
        Self { address, length, key: 0, segments: 1 }
    }

    /// What is left behind the first `taken` bytes.
    #[must_use]
    pub const fn behind(self, taken: u64) -> Self {
        let taken = if taken < self.length { taken } else { self.length };
        Self { address: self.address.wrapping_add(taken), length: self.length - taken, ..self }
    }

    /// Whether the two share a byte.
    #[must_use]
    pub const fn overlaps(&self, other: &Self) -> bool {
        self.length > 0
            && other.length > 0
            && self.address < other.address.saturating_add(other.length)
            && other.address < self.address.saturating_add(self.length)
    }
}

/// Where the data of a rendezvous lies: the RVH (TM-CONTRACT 3), decoded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Remote {
    /// Address in the sender's memory.
    pub address: u64,
    /// The sender's key for it.
    pub key: u32,
    /// Bytes.
    pub length: u64,
}

/// What is known of a message when it is matched.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Header {
    /// The tag to match by.
    pub tag: Tag,
    /// Bytes of payload in the whole message.
    pub length: u64,
    /// The sender's word for the receiver (TMH `app_ctx`): operation id and flags.
    pub app_ctx: u32,
    /// Remote completion-queue data.
    pub immediate: Option<u32>,
    /// For a rendezvous: where the payload waits. `None`: the payload comes by itself.
    pub remote: Option<Remote>,
}

/// A message that no device matched: its header is known, and the host must say where it goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Arrival {
    /// The device's name for it, until it is accepted or discarded.
    pub message: MessageToken,
    /// Who sent it.
    pub source: PeerId,
    /// What it says.
    pub header: Header,
    /// The whole payload is here: an [`Answer::Accept`] on the spot places it before the device does anything
    /// else, and no [`Event::Data`] follows. Every other accept is answered by [`Event::Data`].
    pub in_hand: bool,
    /// The device counted this message as unexpected (every tagged one on a TM-SRQ; never on a device of 0 tags).
    pub counted: bool,
}

/// How far a match made by a device has got.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MatchStage {
    /// Payload placed, entry finished: CONSUMED_MSG.
    Complete,
    /// Entry consumed, payload to come: CONSUMED. [`Event::Data`] follows.
    DataFollows,
    /// `IBV_WC_TM_RNDV_INCOMPLETE`: the entry is consumed and the host must fetch the payload (TM-CONTRACT 9,
    /// 0xB). The headers lie in the tagged buffer; the device has decoded them.
    SoftwareRendezvous(Remote),
}

/// A device matched a message with an entry of its list.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Match {
    /// The entry.
    pub handle: TagHandle,
    /// Who sent the message (from the local QP).
    pub source: PeerId,
    /// The message's tag.
    pub tag: Tag,
    /// The sender's word (`ibv_wc_tm_info.priv`).
    pub app_ctx: u32,
    /// Bytes of payload. Meaningless in [`MatchStage::DataFollows`].
    pub length: u64,
    /// Remote completion-queue data, where this completion carries it.
    pub immediate: Option<u32>,
    /// What has happened.
    pub stage: MatchStage,
    /// The device is done with the entry and its buffer: as if [`Event::Released`] followed, which then does not. Only
    /// with [`MatchStage::Complete`].
    pub released: bool,
}

/// What data belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DataTarget {
    /// A message that the host holds and will not get whole: told only with an error, when its path is lost.
    Message(MessageToken),
    /// An entry that a device matched.
    Entry(TagHandle),
    /// What an [`Answer::Accept`], a read or a copy named.
    Transfer(TransferId),
}

/// Why data did not arrive.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// The sender or the path to it is gone.
    #[error("the path to the sender was lost while its data was under way")]
    PathLost,
    /// The device failed.
    #[error("the device failed while data was under way")]
    DeviceFailed,
    /// The device reported an error of its own.
    #[error("the device reported work-completion status {status}, vendor error {vendor_error:#x}")]
    Completion {
        /// `ibv_wc_status`.
        status: u32,
        /// `vendor_err`.
        vendor_error: u32,
    },
}

/// The data of a message is complete, or will never be. Either way the device is done with its buffer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Data {
    /// Whose data.
    pub target: DataTarget,
    /// Bytes that the message had; of these at most the buffer's length were written.
    pub length: u64,
    /// Remote completion-queue data, where this completion carries it.
    pub immediate: Option<u32>,
    /// Why not, if not.
    pub error: Option<DataError>,
}

/// A list operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    /// `IBV_WR_TAG_ADD`
    Add(TagHandle),
    /// `IBV_WR_TAG_DEL`
    Del(TagHandle),
    /// `IBV_WR_TAG_SYNC`
    Sync,
}

/// A signalled list operation is complete.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct OperationDone {
    /// Which.
    pub operation: Operation,
    /// False only for a DEL whose entry had been matched before (`IBV_WC_TM_ERR`).
    pub success: bool,
    /// The device's own count of unexpected messages, mod 2^16, when it ran the operation.
    pub phase: u16,
    /// `IBV_WC_TM_SYNC_REQ`: a hint with false positives (TM-CONTRACT 11.5); statistics only.
    pub sync_requested: bool,
}

/// Why a device is of no more use.
#[derive(Clone, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The contract between host and device was broken (docs/tm-srq.md): by the host where the text says so, else by
    /// the device.
    #[error("the contract between host and device was broken: {0}")]
    Contract(String),
    /// The operating system or the driver refused.
    #[error("{call} failed with errno {errno}")]
    System {
        /// What was called.
        call: &'static str,
        /// `errno`, positive.
        errno: i32,
    },
    /// A work completion says that the whole device is broken (TM-CONTRACT 15.7).
    #[error("fatal work completion: status {status}, vendor error {vendor_error:#x}, wr_id {wr_id:#x}")]
    Completion {
        /// `ibv_wc_status`.
        status: u32,
        /// `vendor_err`.
        vendor_error: u32,
        /// As the completion said; it may name nothing.
        wr_id: u64,
    },
    /// The device is gone.
    #[error("the device was removed")]
    Removed,
    /// It is used in a child that was forked from the process that opened it.
    #[error("the device belongs to the process that opened it, and this is another that was forked from it")]
    Forked,
}

/// What a device tells the engine.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// A message that no device matched.
    Arrived(Arrival),
    /// A message that this device matched.
    Matched(Match),
    /// Data is complete.
    Data(Data),
    /// A signalled list operation is complete.
    Operation(OperationDone),
    /// A message without a tag used up an unexpected buffer (NO_TAG, FIN, or one that is malformed). It is the
    /// endpoint's business; the engine only counts.
    Untagged {
        /// Who sent it.
        source: PeerId,
        /// The device's name for it.
        message: MessageToken,
        /// Bytes.
        length: u64,
        /// The device counted it as unexpected: never a NO_TAG or a FIN, perhaps a malformed one (TM-CONTRACT A8).
        counted: bool,
    },
    /// The device no longer touches the buffer of this entry. Comes for every entry, with or behind its last
    /// completion; only now may the memory be given up ([`Completion`](crate::engine::Completion) has how to follow it).
    /// Where the match is the last, [`Match::released`] may say it.
    Released(TagHandle),
    /// The device took the ADD of this entry and does without it: what fits it comes unexpected. For statistics alone;
    /// everything else goes on as of an entry that the device has not made active yet.
    SetAside {
        /// Which.
        handle: TagHandle,
        /// It overlaps an older one that the device does without; else its memory cannot be registered.
        overlaps: bool,
    },
    /// Nothing more will come from this peer through this device; whatever had come before has been said. Data
    /// that was under way has been answered by [`Event::Data`] with an error.
    PathLost {
        /// Which peer.
        peer: PeerId,
    },
    /// The device is of no more use and touches no memory any more. Nothing follows.
    DeviceFailed(DeviceError),
}

/// What becomes of a message that arrived unmatched.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Answer {
    /// Write the payload there: at most `buffer.length` bytes, the rest is drained. A rendezvous is read, and
    /// the sender told.
    Accept {
        /// Where to.
        buffer: Buffer,
        /// What [`Event::Data`] shall call it. `None` only where the arrival said `in_hand` and is answered on the
        /// spot: then the payload is placed before anything else happens, and nothing more is said.
        transfer: Option<TransferId>,
    },
    /// Keep it; a command will say more.
    Hold,
    /// Drop the payload; the sender of a rendezvous is told that it is done.
    Discard,
}

/// What the engine tells a device. Commands to one device are executed in order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Command {
    /// Put a receive into the matching list.
    Add {
        /// The engine's name for the entry.
        handle: TagHandle,
        /// Tag, with the ignored bits cleared (TM-CONTRACT A7).
        tag: Tag,
        /// What to ignore; verbs wants its complement.
        ignore: Ignore,
        /// Where the payload goes.
        buffer: Buffer,
        /// Unexpected messages decided, mod 2^16, to go with it (`IBV_OPS_TM_SYNC`).
        unexpected_count: u16,
        /// Ask for a completion.
        signalled: bool,
    },
    /// Take a receive out of the matching list.
    Del {
        /// Which.
        handle: TagHandle,
        /// Ask for a completion; without one, success is assumed.
        signalled: bool,
    },
    /// Report a count.
    Sync {
        /// Unexpected messages decided, mod 2^16.
        unexpected_count: u16,
        /// Ask for a completion.
        signalled: bool,
    },
    /// Give the device so many more buffers for unexpected messages.
    Receive {
        /// How many.
        buffers: u32,
    },
    /// What becomes of a message that was held.
    Answer {
        /// Which.
        message: MessageToken,
        /// Its answer; never [`Answer::Hold`].
        answer: Answer,
    },
    /// Fetch the payload of a rendezvous that the device handed back, and tell the sender: its FIN repeats tag,
    /// word and RVH of the request (TM-CONTRACT 3).
    Read {
        /// The engine's name for it.
        transfer: TransferId,
        /// Who holds the data.
        peer: PeerId,
        /// The request's tag.
        tag: Tag,
        /// The request's word, by which the sender knows it.
        app_ctx: u32,
        /// Where it lies there.
        remote: Remote,
        /// Where it goes here; at most `buffer.length` bytes.
        buffer: Buffer,
    },
    /// Copy within the host's memory: from a bounce buffer to the user's. [`Event::Data`] answers.
    Copy {
        /// The engine's name for it.
        transfer: TransferId,
        /// From where, and how many bytes the message has.
        from: Buffer,
        /// To where; at most `to.length` bytes.
        to: Buffer,
    },
}

/// The engine's hand: what it wants written at once, without a command and without an [`Event::Data`].
///
/// The owner gives it to [`crate::engine::Engine::post_placing`], and passes on what is asked of it to
/// [`crate::device::Device::place_held`].
pub trait Placer {
    /// Write the payload of a message that the device holds, and whose arrival said [`Arrival::in_hand`], as an
    /// [`Answer::Accept`] on the spot would have. When this says true the payload is in its place, and the device has
    /// forgotten the message. False: it cannot be done here and now, and nothing has changed; a command will do it.
    fn place(&mut self, device: DeviceId, message: MessageToken, buffer: &Buffer) -> bool;

    /// Put a receive into a device's list at once: what [`Command::Add`] would say. Asked only while no command waits in
    /// the engine, so that the order stays; an owner who has taken commands that the device has not says no. When this says
    /// true the device has taken it, as if it had been submitted, and what goes wrong from then on it tells by events.
    /// False: it cannot be done here and now, and nothing has changed; a command will do it. Whoever notes which entry has
    /// whose buffer ([`Completion`](crate::engine::Completion)) notes it here as when a command is submitted.
    #[inline(always)]
    fn add(&mut self, device: DeviceId, add: &Add<'_>) -> bool {
        let _ = (device, add);
        false
    }
}

/// [`Command::Add`] while it is not a command yet.
#[derive(Clone, Copy, Debug)]
pub struct Add<'a> {
    /// The engine's name for the entry.
    pub handle: TagHandle,
    /// Tag, with the ignored bits cleared (TM-CONTRACT A7).
    pub tag: Tag,
    /// What to ignore; verbs wants its complement.
    pub ignore: Ignore,
    /// Where the payload goes.
    pub buffer: &'a Buffer,
    /// Unexpected messages decided, mod 2^16, to go with it (`IBV_OPS_TM_SYNC`).
    pub unexpected_count: u16,
    /// Ask for a completion.
    pub signalled: bool,
}

impl Add<'_> {
    /// As a command.
    #[inline(always)]
    #[must_use]
    pub const fn command(&self) -> Command {
        let Self { handle, tag, ignore, buffer, unexpected_count, signalled } = *self;
        Command::Add { handle, tag, ignore, buffer: *buffer, unexpected_count, signalled }
    }
}

/// Nobody who could do anything at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoPlacer;

impl Placer for NoPlacer {
    #[inline(always)]
    fn place(&mut self, _: DeviceId, _: MessageToken, _: &Buffer) -> bool {
        false
    }
}

/// The engine's ear: a device tells its events one by one, and places data by the answers.
pub trait EventSink {
    /// Take one event. The answer counts only for [`Event::Arrived`]; for others it is [`Answer::Hold`].
    fn handle_event(&mut self, device: DeviceId, event: &Event) -> Answer;

    /// Take events [`Event::Matched`] one after the other: what a device that matches tells most, and never alone.
    fn handle_matches(&mut self, device: DeviceId, matches: &[Match]) {
        for matched in matches {
            let _hold = self.handle_event(device, &Event::Matched(*matched));
        }
    }
}
