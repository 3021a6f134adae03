//! The layouts that host and device share: segments of work requests, and completions (`infiniband/mlx5dv.h`,
//! TM-CONTRACT 7 and 9). Bytes only; what they mean is elsewhere.

use zerocopy::big_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// `mlx5_wqe_ctrl_seg`
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct ControlSegment {
    /// `opmod << 24 | index << 8 | opcode`
    pub opmod_index_opcode: U32,
    /// `qpn << 8 | ds`
    pub qpn_ds: U32,
    pub signature: u8,
    pub stream: U16,
    /// [`control`]
    pub flags: u8,
    /// Immediate data or the key to invalidate, as the peer shall see it.
    pub immediate: [u8; 4],
}

impl ControlSegment {
    pub(crate) const fn opcode(&self) -> u8 {
        self.opmod_index_opcode.get().to_be_bytes()[3]
    }

    pub(crate) const fn index(&self) -> u16 {
        let bytes = self.opmod_index_opcode.get().to_be_bytes();
        u16::from_be_bytes([bytes[1], bytes[2]])
    }

    /// 16-byte units of the whole work request: six bits.
    pub(crate) const fn units(&self) -> u8 {
        self.qpn_ds.get().to_be_bytes()[3] & 0x3f
    }

    pub(crate) const fn qpn(&self) -> u32 {
        self.qpn_ds.get() >> 8
    }
}

/// Flags of [`ControlSegment`] (`fm_ce_se`).
pub(crate) mod control {
    pub(crate) const SOLICITED: u8 = 1 << 1;
    pub(crate) const CQ_UPDATE: u8 = 2 << 2;
    /// Strong or small fence.
    pub(crate) const FENCE: u8 = 7 << 5;
}

/// `mlx5_wqe_data_seg`
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct DataSegment {
    pub byte_count: U32,
    pub lkey: U32,
    pub address: U64,
}

/// `MLX5_INVALID_LKEY`: ends a list of data segments.
pub(crate) const INVALID_LKEY: u32 = 0x100;

/// `MLX5_INLINE_SEG`: in a byte count.
pub(crate) const INLINE: u32 = 0x8000_0000;

/// `mlx5_wqe_raddr_seg`
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct RemoteSegment {
    pub address: U64,
    pub rkey: U32,
    pub reserved: U32,
}

/// `mlx5_wqe_atomic_seg`
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct AtomicSegment {
    pub swap_add: U64,
    pub compare: U64,
}

/// The first 16 bytes of `mlx5_wqe_av`.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct AddressSegment {
    pub qkey: U32,
    pub reserved: U32,
    /// The QP number; bit 31 ([`EXTENDED_ADDRESS`]): [`GlobalAddressSegment`] follows.
    pub dqp: U32,
    pub stat_rate_sl: u8,
    pub fl_mlid: u8,
    pub rlid: U16,
}

/// `MLX5_EXTENDED_UD_AV`
pub(crate) const EXTENDED_ADDRESS: u32 = 0x8000_0000;

/// The other 32 bytes of `mlx5_wqe_av`.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct GlobalAddressSegment {
    pub reserved: [u8; 4],
    pub rmac: [u8; 6],
    pub tclass: u8,
    pub hop_limit: u8,
    /// Bit 30: a GRH is sent; then 8 bits of GID index and 20 of flow label.
    pub grh_gid_fl: U32,
    pub rgid: [u8; 16],
}

/// `mlx5_wqe_tm_seg`
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct TagSegment {
    /// In the high four bits.
    pub opcode: u8,
    pub flags: u8,
    pub index: U16,
    pub reserved0: [u8; 2],
    pub sw_cnt: U16,
    pub reserved1: [u8; 8],
    pub tag: U64,
    pub mask: U64,
}

/// `mlx5_wqe_srq_next_seg`
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct NextSegment {
    pub reserved0: [u8; 2],
    pub next_wqe_index: U16,
    pub signature: u8,
    pub reserved1: [u8; 11],
}

/// Opcodes of work requests.
pub(crate) mod wqe_opcode {
    pub(crate) const NOP: u8 = 0x00;
    pub(crate) const SEND_INVALIDATE: u8 = 0x01;
    pub(crate) const RDMA_WRITE: u8 = 0x08;
    pub(crate) const RDMA_WRITE_IMMEDIATE: u8 = 0x09;
    pub(crate) const SEND: u8 = 0x0a;
    pub(crate) const SEND_IMMEDIATE: u8 = 0x0b;
    pub(crate) const RDMA_READ: u8 = 0x10;
    pub(crate) const COMPARE_SWAP: u8 = 0x11;
    pub(crate) const FETCH_ADD: u8 = 0x12;
    pub(crate) const TAG_MATCHING: u8 = 0x28;
}

/// `mlx5_cqe64`; the first 16 bytes are those of `mlx5_tm_cqe` or a TMH where a TM-SRQ completes.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Cqe {
    pub head: [u8; 16],
    pub reserved16: u8,
    pub ml_path: u8,
    pub reserved18: [u8; 4],
    pub slid: U16,
    /// Remote QP number; SL at bit 24; bits 28-29: GRH.
    pub flags_rqpn: U32,
    pub reserved28: [u8; 4],
    pub srqn_uidx: U32,
    pub immediate: [u8; 4],
    pub app: u8,
    pub app_op: u8,
    pub app_info: U16,
    pub byte_count: U32,
    /// In an error completion the last two bytes are vendor error and syndrome.
    pub timestamp: [u8; 8],
    /// WQE opcode in the high byte, QP number below.
    pub sop_drop_qpn: U32,
    pub wqe_counter: U16,
    pub signature: u8,
    /// `opcode << 4 | solicited << 1 | owner`
    pub op_own: u8,
}

const _: () = assert!(size_of::<Cqe>() == 64);
const _: () = assert!(size_of::<TagSegment>() == 32);
const _: () = assert!(size_of::<AddressSegment>() + size_of::<GlobalAddressSegment>() == 48);

impl Cqe {
    pub(crate) const LENGTH: usize = 64;

    pub(crate) const fn opcode(&self) -> u8 {
        self.op_own >> 4
    }

    pub(crate) fn new(opcode: u8) -> Self {
        Self { op_own: opcode << 4, ..Self::read_from_bytes(&[0; Self::LENGTH]).unwrap_or(Self::ZERO) }
    }

    const ZERO: Self = Self {
        head: [0; 16],
        reserved16: 0,
        ml_path: 0,
        reserved18: [0; 4],
        slid: U16::ZERO,
        flags_rqpn: U32::ZERO,
        reserved28: [0; 4],
        srqn_uidx: U32::ZERO,
        immediate: [0; 4],
        app: 0,
        app_op: 0,
        app_info: U16::ZERO,
        byte_count: U32::ZERO,
        timestamp: [0; 8],
        sop_drop_qpn: U32::ZERO,
        wqe_counter: U16::ZERO,
        signature: 0,
        op_own: 0,
    };

    /// An error completion.
    pub(crate) fn error(opcode: u8, syndrome: Syndrome) -> Self {
        let timestamp = [0, 0, 0, 0, 0, 0, syndrome.vendor_error(), syndrome as u8];
        Self { timestamp, ..Self::new(opcode) }
    }
}

/// Opcodes of completions.
pub(crate) mod cqe_opcode {
    pub(crate) const REQUESTER: u8 = 0;
    pub(crate) const RECEIVED_WRITE_IMMEDIATE: u8 = 1;
    pub(crate) const RECEIVED_SEND: u8 = 2;
    pub(crate) const RECEIVED_SEND_IMMEDIATE: u8 = 3;
    pub(crate) const RECEIVED_SEND_INVALIDATE: u8 = 4;
    pub(crate) const NO_PACKET: u8 = 6;
    pub(crate) const REQUESTER_ERROR: u8 = 13;
    pub(crate) const RESPONDER_ERROR: u8 = 14;
}

/// `MLX5_CQE_SYNDROME_*`: what the driver turns into `ibv_wc_status`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub(crate) enum Syndrome {
    LocalLength = 0x01,
    LocalQpOperation = 0x02,
    LocalProtection = 0x04,
    Flushed = 0x05,
    RemoteInvalidRequest = 0x12,
    RemoteAccess = 0x13,
    RemoteOperation = 0x14,
    TransportRetry = 0x15,
    ReceiverNotReady = 0x16,
}

impl Syndrome {
    /// `vendor_err` that a ConnectX is known to give beside it, from public reports of such errors.
    pub(crate) const fn vendor_error(self) -> u8 {
        match self {
            Self::LocalLength => 0x69,
            Self::LocalQpOperation => 0x68,
            Self::LocalProtection => 0x51,
            Self::Flushed => 0xf9,
            Self::RemoteInvalidRequest => 0x8a,
            Self::RemoteAccess => 0x88,
            Self::RemoteOperation => 0x89,
            Self::TransportRetry => 0x81,
            Self::ReceiverNotReady => 0x87,
        }
    }
}
