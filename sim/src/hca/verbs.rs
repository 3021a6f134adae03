//! Numbers of the verbs interface (`infiniband/verbs.h`, `rdma/ib_user_verbs.h`).

/// `ibv_access_flags`
pub mod access {
    /// `IBV_ACCESS_LOCAL_WRITE`
    pub const LOCAL_WRITE: u32 = 1;
    /// `IBV_ACCESS_REMOTE_WRITE`
    pub const REMOTE_WRITE: u32 = 1 << 1;
    /// `IBV_ACCESS_REMOTE_READ`
    pub const REMOTE_READ: u32 = 1 << 2;
    /// `IBV_ACCESS_REMOTE_ATOMIC`
    pub const REMOTE_ATOMIC: u32 = 1 << 3;
    /// `IBV_ACCESS_MW_BIND`
    pub const MW_BIND: u32 = 1 << 4;
    /// `IBV_ACCESS_ZERO_BASED`
    pub const ZERO_BASED: u32 = 1 << 5;
    /// `IBV_ACCESS_ON_DEMAND`
    pub const ON_DEMAND: u32 = 1 << 6;
    /// `IBV_ACCESS_HUGETLB`
    pub const HUGETLB: u32 = 1 << 7;
    /// Flags that a device may ignore (`IBV_ACCESS_OPTIONAL_RANGE`).
    pub const OPTIONAL: u32 = 0x3ff0_0000;
}

/// `ibv_qp_type`
pub mod qp_type {
    /// `IBV_QPT_RC`
    pub const RC: u8 = 2;
    /// `IBV_QPT_UC`
    pub const UC: u8 = 3;
    /// `IBV_QPT_UD`
    pub const UD: u8 = 4;
}

/// `ibv_qp_state`
pub mod state {
    /// `IBV_QPS_RESET`
    pub const RESET: u8 = 0;
    /// `IBV_QPS_INIT`
    pub const INIT: u8 = 1;
    /// `IBV_QPS_RTR`
    pub const RTR: u8 = 2;
    /// `IBV_QPS_RTS`
    pub const RTS: u8 = 3;
    /// `IBV_QPS_SQD`
    pub const SQD: u8 = 4;
    /// `IBV_QPS_SQE`
    pub const SQE: u8 = 5;
    /// `IBV_QPS_ERR`
    pub const ERR: u8 = 6;
}

/// `ibv_qp_attr_mask`
#[allow(missing_docs, reason = "the names of verbs.h without their prefix")]
pub mod attribute {
    pub const STATE: u32 = 1;
    pub const CUR_STATE: u32 = 1 << 1;
    pub const EN_SQD_ASYNC_NOTIFY: u32 = 1 << 2;
    pub const ACCESS_FLAGS: u32 = 1 << 3;
    pub const PKEY_INDEX: u32 = 1 << 4;
    pub const PORT: u32 = 1 << 5;
    pub const QKEY: u32 = 1 << 6;
    pub const AV: u32 = 1 << 7;
    pub const PATH_MTU: u32 = 1 << 8;
    pub const TIMEOUT: u32 = 1 << 9;
    pub const RETRY_CNT: u32 = 1 << 10;
    pub const RNR_RETRY: u32 = 1 << 11;
    pub const RQ_PSN: u32 = 1 << 12;
    pub const MAX_QP_RD_ATOMIC: u32 = 1 << 13;
    pub const ALT_PATH: u32 = 1 << 14;
    pub const MIN_RNR_TIMER: u32 = 1 << 15;
    pub const SQ_PSN: u32 = 1 << 16;
    pub const MAX_DEST_RD_ATOMIC: u32 = 1 << 17;
    pub const PATH_MIG_STATE: u32 = 1 << 18;
    pub const CAP: u32 = 1 << 19;
    pub const DEST_QPN: u32 = 1 << 20;
    pub const RATE_LIMIT: u32 = 1 << 25;
}

/// `ibv_srq_attr_mask`
pub mod srq_attribute {
    /// `IBV_SRQ_MAX_WR`
    pub const MAX_WR: u32 = 1;
    /// `IBV_SRQ_LIMIT`
    pub const LIMIT: u32 = 2;
}

/// `ibv_event_type`
pub mod event {
    /// `IBV_EVENT_CQ_ERR`
    pub const CQ_ERROR: u32 = 0;
    /// `IBV_EVENT_QP_FATAL`
    pub const QP_FATAL: u32 = 1;
    /// `IBV_EVENT_QP_REQ_ERR`
    pub const QP_REQUEST_ERROR: u32 = 2;
    /// `IBV_EVENT_QP_ACCESS_ERR`
    pub const QP_ACCESS_ERROR: u32 = 3;
    /// `IBV_EVENT_COMM_EST`
    pub const COMMUNICATION_ESTABLISHED: u32 = 4;
    /// `IBV_EVENT_SQ_DRAINED`
    pub const SQ_DRAINED: u32 = 5;
    /// `IBV_EVENT_DEVICE_FATAL`
    pub const DEVICE_FATAL: u32 = 8;
    /// `IBV_EVENT_PORT_ACTIVE`
    pub const PORT_ACTIVE: u32 = 9;
    /// `IBV_EVENT_PORT_ERR`
    pub const PORT_ERROR: u32 = 10;
    /// `IBV_EVENT_SRQ_ERR`
    pub const SRQ_ERROR: u32 = 14;
    /// `IBV_EVENT_SRQ_LIMIT_REACHED`
    pub const SRQ_LIMIT_REACHED: u32 = 15;
    /// `IBV_EVENT_QP_LAST_WQE_REACHED`
    pub const LAST_WQE_REACHED: u32 = 16;
}
