//! Completions: as the device writes them ([`Cqe`]) and as verbs shows them ([`Completion`]), TM-CONTRACT 9.
//!
//! Not here: how one becomes the other; that is the driver's.

use crate::ids::PeerId;

/// A completion queue entry, decoded: what the device says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Cqe {
    /// `app_op`, or an error.
    pub operation: CqeOperation,
    /// `app_info`: the entry of a match completion.
    pub entry: u16,
    /// Bytes: of a match the payload's, of an unexpected message the whole message's.
    pub byte_count: u64,
    /// The local QP, by the peer at its other end.
    pub source: PeerId,
    /// Immediate data.
    pub immediate: Option<u32>,
    /// The receive that an unexpected message, or one without a tag, used up. On an error: one that did *not* fail.
    pub receive: u64,
}

impl Cqe {
    pub(crate) const EMPTY: Self = Self {
        operation: CqeOperation::Expected,
        entry: 0,
        byte_count: 0,
        source: PeerId(0),
        immediate: None,
        receive: 0,
    };
}

/// `app_op`, with what belongs to it alone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CqeOperation {
    /// 0x5 APPEND
    Append {
        /// The count of unexpected messages when it ran.
        phase: u16,
    },
    /// 0x6 REMOVE
    Remove {
        /// The count of unexpected messages when it ran.
        phase: u16,
        /// Whether the entry was still in the list.
        success: bool,
    },
    /// 0x7 NOOP
    Noop {
        /// The count of unexpected messages when it ran.
        phase: u16,
    },
    /// 0xA CONSUMED_MSG
    ConsumedMessage(TmInfo),
    /// 0x1 CONSUMED
    Consumed(TmInfo),
    /// 0x2 EXPECTED
    Expected,
    /// 0x3 UNEXPECTED
    Unexpected,
    /// 0x4 NO_TAG
    NoTag,
    /// 0x9 CONSUMED_SW_RNDV
    ConsumedSoftwareRendezvous(TmInfo),
    /// 0xB CONSUMED_MSG_SW_RNDV
    ConsumedMessageSoftwareRendezvous(TmInfo),
    /// 0xC MSG_COMPLETION_CANCELED
    Canceled(TmInfo),
    /// RESP_ERR
    Error {
        /// `ibv_wc_status`.
        status: u32,
        /// `vendor_err`.
        vendor_error: u32,
    },
}

impl CqeOperation {
    /// Whether another completion of the same entry follows.
    pub(crate) const fn is_consumed(&self) -> bool {
        matches!(self, Self::Consumed(_) | Self::ConsumedSoftwareRendezvous(_))
    }
}

/// `ibv_wc_tm_info`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct TmInfo {
    /// The message's tag.
    pub tag: u64,
    /// `priv`: the message's `app_ctx`.
    pub app_ctx: u32,
}

/// A work completion as `ibv_cq_ex` shows it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Completion {
    /// `ibv_wc_status`.
    pub status: u32,
    /// Of the operation, the receive put into the list, or the unexpected buffer.
    pub wr_id: u64,
    /// What it is. Not to be relied on where `status` is not success.
    pub opcode: Opcode,
    /// What is valid.
    pub flags: Flags,
    /// Bytes; meaningless without [`Flags::data_valid`] on a match.
    pub byte_len: u64,
    /// What `read_tm_info` reads: of a message only with [`Flags::matched`]; on list operations the device's
    /// count, shifted (`priv` = phase << 16).
    pub tm_info: TmInfo,
    /// Immediate data.
    pub immediate: Option<u32>,
    /// The local QP, by the peer at its other end.
    pub source: PeerId,
    /// `vendor_err`.
    pub vendor_error: u32,
}

/// `ibv_wc_opcode`, as far as a TM-SRQ uses it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Opcode {
    /// 128 RECV
    Receive,
    /// 130 TM_ADD
    Add,
    /// 131 TM_DEL
    Del,
    /// 132 TM_SYNC
    Sync,
    /// 133 TM_RECV
    TagReceive,
    /// 134 TM_NO_TAG
    NoTag,
}

/// `ibv_wc_flags`, as far as a TM-SRQ uses them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Flags {
    /// `IBV_WC_TM_MATCH`
    pub matched: bool,
    /// `IBV_WC_TM_DATA_VALID`
    pub data_valid: bool,
    /// `IBV_WC_TM_SYNC_REQ`
    pub sync_requested: bool,
}

/// `ibv_wc_status`: the values that come here.
pub mod status {
    /// `IBV_WC_SUCCESS`
    pub const SUCCESS: u32 = 0;
    /// `IBV_WC_LOC_LEN_ERR`
    pub const LOCAL_LENGTH_ERROR: u32 = 1;
    /// `IBV_WC_REM_ACCESS_ERR`
    pub const REMOTE_ACCESS_ERROR: u32 = 10;
    /// `IBV_WC_GENERAL_ERR`
    pub const GENERAL_ERROR: u32 = 21;
    /// `IBV_WC_TM_ERR`
    pub const TM_ERROR: u32 = 22;
    /// `IBV_WC_TM_RNDV_INCOMPLETE`
    pub const TM_RENDEZVOUS_INCOMPLETE: u32 = 23;
}
