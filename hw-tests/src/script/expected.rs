//! Work completions: as polled, and as a script expects them (TM-CONTRACT 9 and 10).

use std::fmt;

use super::message::Message;

/// One completion of the TM CQ, with every accessor read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// `ibv_wc_status`
    pub status: u32,
    /// `wr_id`
    pub wr_id: u64,
    /// `ibv_wc_read_opcode`
    pub opcode: u32,
    /// `ibv_wc_read_wc_flags`
    pub flags: u32,
    /// `ibv_wc_read_byte_len`
    pub byte_len: u32,
    /// `ibv_wc_read_tm_info`: tag
    pub tag: u64,
    /// `ibv_wc_read_tm_info`: priv
    pub word: u32,
    /// `ibv_wc_read_imm_data`, in host order, where the flag is set.
    pub immediate: Option<u32>,
    /// The sender whose receive QP `ibv_wc_read_qp_num` names, if it is one.
    pub sender: Option<u8>,
    /// `ibv_wc_read_vendor_err`
    pub vendor_error: u32,
}

/// A completion as it must be. What is `None` is not looked at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expected {
    /// `ibv_wc_status`
    pub status: u32,
    /// Of a list operation its own, of a match its receive's.
    pub wr_id: Option<u64>,
    /// `None` where it is not to be relied on.
    pub opcode: Option<u32>,
    /// MATCH, DATA_VALID, SYNC_REQ and IMM.
    pub flags: u32,
    /// `None` where it means nothing.
    pub byte_len: Option<u32>,
    /// Tag and priv.
    pub tm_info: Option<(u64, u32)>,
    /// Immediate data; `None`: there is none.
    pub immediate: Option<u32>,
    /// The sender of a message.
    pub sender: Option<u8>,
    /// What the buffer then holds.
    pub bytes: Bytes,
    /// Whether an unexpected buffer was used up, which `wr_id` names.
    pub uses_receive: bool,
}

/// What a buffer holds after a completion.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Bytes {
    /// Not looked at.
    Any,
    /// The payload of the message in the tagged buffer, nothing behind it.
    Payload(Message),
    /// The message as it was sent.
    Whole(Message),
}

impl Expected {
    /// A signalled ADD of a receive is done.
    #[must_use]
    pub fn added(receive: u32) -> Self {
        Self { wr_id: Some(100 + u64::from(receive)), opcode: Some(opcode::ADD), ..Self::EMPTY }
    }

    /// A signalled DEL has taken a receive back.
    #[must_use]
    pub fn deleted(receive: u32) -> Self {
        Self { wr_id: Some(200 + u64::from(receive)), opcode: Some(opcode::DEL), ..Self::EMPTY }
    }

    /// A signalled DEL came too late.
    #[must_use]
    pub fn not_deleted(receive: u32) -> Self {
        Self { status: status::TM_ERROR, ..Self::deleted(receive) }
    }

    /// A signalled SYNC is done.
    #[must_use]
    pub const fn synced() -> Self {
        Self { wr_id: Some(300), opcode: Some(opcode::SYNC), ..Self::EMPTY }
    }

    /// CONSUMED_MSG: matched, and all of it is here.
    #[must_use]
    pub fn matched(receive: u32, message: &Message) -> Self {
        let flags = flags::MATCH | flags::DATA_VALID;
        Self { flags, ..Self::consumed(receive, message) }.with_data(message)
    }

    /// CONSUMED: matched, and the data is to come.
    #[must_use]
    pub fn consumed(receive: u32, message: &Message) -> Self {
        Self {
            wr_id: Some(u64::from(receive)),
            opcode: Some(opcode::TM_RECV),
            flags: flags::MATCH,
            byte_len: None,
            tm_info: Some((message.tag, message.app_ctx)),
            sender: Some(message.sender),
            ..Self::EMPTY
        }
    }

    /// EXPECTED: the data of a message matched before is here.
    #[must_use]
    pub fn data(receive: u32, message: &Message) -> Self {
        let (flags, tm_info) = (flags::DATA_VALID, Some((0, 0)));
        Self { flags, tm_info, ..Self::consumed(receive, message) }.with_data(message)
    }

    /// CONSUMED_MSG_SW_RNDV: matched, and software must fetch the data. The request lies in the tagged buffer.
    #[must_use]
    pub fn handed_back(receive: u32, message: &Message) -> Self {
        Self {
            status: status::TM_RENDEZVOUS_INCOMPLETE,
            flags: flags::MATCH | flags::DATA_VALID,
            bytes: Bytes::Whole(message.clone()),
            ..Self::consumed(receive, message)
        }
        .with_immediate(message.immediate)
    }

    /// UNEXPECTED: the whole message lies in an unexpected buffer.
    #[must_use]
    pub fn unexpected(message: &Message) -> Self {
        let length = u32::try_from(message.encode(0, 0).len()).unwrap_or(u32::MAX);
        Self {
            opcode: Some(opcode::TM_RECV),
            byte_len: Some(length),
            tm_info: Some((0, 0)),
            sender: Some(message.sender),
            bytes: Bytes::Whole(message.clone()),
            uses_receive: true,
            ..Self::EMPTY
        }
        .with_immediate(message.immediate)
    }

    /// NO_TAG: likewise, and nothing was counted.
    #[must_use]
    pub fn untagged(message: &Message) -> Self {
        Self { opcode: Some(opcode::NO_TAG), ..Self::unexpected(message) }
    }

    /// A match, all of it here, of an entry that an unsignalled DEL had given up: the wr_id is left over.
    #[must_use]
    pub fn lost_match(stale_wr_id: u64, message: &Message) -> Self {
        Self {
            status: status::GENERAL_ERROR,
            wr_id: Some(stale_wr_id),
            opcode: None,
            flags: flags::MATCH | flags::DATA_VALID,
            sender: Some(message.sender),
            byte_len: None,
            ..Self::EMPTY
        }
    }

    /// RESP_ERR: names nothing usable.
    #[must_use]
    pub const fn error(status: u32) -> Self {
        Self { status, byte_len: None, opcode: None, ..Self::EMPTY }
    }

    /// With SYNC_REQ.
    #[must_use]
    pub const fn asking(mut self) -> Self {
        self.flags |= flags::SYNC_REQUESTED;
        self
    }

    /// A list operation that ran when the device had counted so many unexpected messages.
    #[must_use]
    pub fn at_phase(self, phase: u16) -> Self {
        Self { tm_info: Some((0, u32::from(phase) << 16)), ..self }
    }

    /// With this wr_id.
    #[must_use]
    pub const fn named(mut self, wr_id: u64) -> Self {
        self.wr_id = Some(wr_id);
        self
    }

    fn with_data(self, message: &Message) -> Self {
        let length = match message.kind {
            super::MessageKind::Eager(length) | super::MessageKind::Rendezvous { length, .. } => length,
            super::MessageKind::Fin | super::MessageKind::Raw(_) => 0,
        };
        Self { byte_len: Some(length), bytes: Bytes::Payload(message.clone()), ..self }
            .with_immediate(message.immediate)
    }

    fn with_immediate(mut self, immediate: Option<u32>) -> Self {
        if immediate.is_some() {
            self.flags |= flags::IMMEDIATE;
        }
        self.immediate = immediate;
        self
    }

    const EMPTY: Self = Self {
        status: status::SUCCESS,
        wr_id: None,
        opcode: None,
        flags: 0,
        byte_len: Some(0),
        tm_info: None,
        immediate: None,
        sender: None,
        bytes: Bytes::Any,
        uses_receive: false,
    };

    /// Where a completion is not as it must be; bytes are not looked at here.
    #[must_use]
    pub fn difference(&self, seen: &Completion) -> Option<String> {
        let mut wrong = Vec::new();
        let mut compare = |what: &str, expected: Option<u64>, seen: u64| {
            if let Some(expected) = expected.filter(|expected| *expected != seen) {
                wrong.push(format!("{what}: expected {expected:#x}, saw {seen:#x}"));
            }
        };
        compare("status", Some(self.status.into()), seen.status.into());
        compare("wr_id", self.wr_id, seen.wr_id);
        compare("opcode", self.opcode.map(u64::from), seen.opcode.into());
        compare("flags", Some(self.flags.into()), (seen.flags & flags::LOOKED_AT).into());
        compare("byte_len", self.byte_len.map(u64::from), seen.byte_len.into());
        compare("tag", self.tm_info.map(|info| info.0), seen.tag);
        compare("priv", self.tm_info.map(|info| info.1.into()), seen.word.into());
        if self.immediate != seen.immediate {
            wrong.push(format!("immediate: expected {:x?}, saw {:x?}", self.immediate, seen.immediate));
        }
        if self.sender.is_some() && self.sender != seen.sender {
            wrong.push(format!("sender: expected {:?}, saw {:?}", self.sender, seen.sender));
        }
        (!wrong.is_empty()).then(|| wrong.join("; "))
    }
}

impl fmt::Display for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { status, wr_id, opcode, flags, byte_len, tag, word, .. } = self;
        write!(f, "status {status} opcode {opcode} wr_id {wr_id:#x} flags {flags:#x} byte_len {byte_len}")?;
        write!(f, " tag {tag:#x} priv {word:#x}")?;
        if let Some(immediate) = self.immediate {
            write!(f, " imm {immediate:#x}")?;
        }
        if let Some(sender) = self.sender {
            write!(f, " sender {sender}")?;
        }
        if self.vendor_error != 0 {
            write!(f, " vendor_err {:#x}", self.vendor_error)?;
        }
        Ok(())
    }
}

/// `ibv_wc_status`
pub mod status {
    /// `IBV_WC_SUCCESS`
    pub const SUCCESS: u32 = 0;
    /// `IBV_WC_LOC_LEN_ERR`
    pub const LOCAL_LENGTH_ERROR: u32 = 1;
    /// `IBV_WC_WR_FLUSH_ERR`
    pub const FLUSHED: u32 = 5;
    /// `IBV_WC_REM_INV_REQ_ERR`
    pub const REMOTE_INVALID_REQUEST: u32 = 9;
    /// `IBV_WC_REM_ACCESS_ERR`
    pub const REMOTE_ACCESS_ERROR: u32 = 10;
    /// `IBV_WC_RETRY_EXC_ERR`
    pub const RETRIES_EXCEEDED: u32 = 12;
    /// `IBV_WC_RNR_RETRY_EXC_ERR`
    pub const RNR_RETRIES_EXCEEDED: u32 = 13;
    /// `IBV_WC_GENERAL_ERR`
    pub const GENERAL_ERROR: u32 = 21;
    /// `IBV_WC_TM_ERR`
    pub const TM_ERROR: u32 = 22;
    /// `IBV_WC_TM_RNDV_INCOMPLETE`
    pub const TM_RENDEZVOUS_INCOMPLETE: u32 = 23;
}

/// `ibv_wc_opcode`
pub mod opcode {
    /// `IBV_WC_RECV`
    pub const RECV: u32 = 128;
    /// `IBV_WC_TM_ADD`
    pub const ADD: u32 = 130;
    /// `IBV_WC_TM_DEL`
    pub const DEL: u32 = 131;
    /// `IBV_WC_TM_SYNC`
    pub const SYNC: u32 = 132;
    /// `IBV_WC_TM_RECV`
    pub const TM_RECV: u32 = 133;
    /// `IBV_WC_TM_NO_TAG`
    pub const NO_TAG: u32 = 134;
}

/// `ibv_wc_flags`
pub mod flags {
    /// `IBV_WC_WITH_IMM`
    pub const IMMEDIATE: u32 = 2;
    /// `IBV_WC_TM_SYNC_REQ`
    pub const SYNC_REQUESTED: u32 = 0x10;
    /// `IBV_WC_TM_MATCH`
    pub const MATCH: u32 = 0x20;
    /// `IBV_WC_TM_DATA_VALID`
    pub const DATA_VALID: u32 = 0x40;
    /// Those that scripts speak of.
    pub const LOOKED_AT: u32 = IMMEDIATE | SYNC_REQUESTED | MATCH | DATA_VALID;
}
