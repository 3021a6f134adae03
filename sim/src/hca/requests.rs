//! What the control path is asked for, and what it answers: the fields of the commands of the write ABI
//! (`rdma/ib_user_verbs.h`, `rdma/mlx5-abi.h`), decoded. Plain data.

/// An open context: one `open` of the device node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ContextId(pub u32);

/// A completion channel, named by whoever keeps its file descriptor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ChannelId(pub u32);

/// Names an object within the device: `pd_handle` and the like.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Handle(pub u32);

/// ALLOC_PD
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PdCreated {
    /// `pd_handle`
    pub handle: Handle,
    /// mlx5: `pdn`
    pub pdn: u32,
}

/// REG_MR
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegisterMemory {
    /// `pd_handle`
    pub pd: Handle,
    /// First byte.
    pub start: u64,
    /// Bytes.
    pub length: u64,
    /// The address by which keys reach the first byte.
    pub hca_va: u64,
    /// `ibv_access_flags`
    pub access: u32,
}

/// REG_MR
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryRegistered {
    /// `mr_handle`
    pub handle: Handle,
    /// `lkey`
    pub lkey: u32,
    /// `rkey`, the same number on mlx5.
    pub rkey: u32,
}

/// CREATE_CQ
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CreateCq {
    /// `user_handle`: comes back with events.
    pub user_handle: u64,
    /// `cqe`: the largest index wanted, one less than a power of two on mlx5.
    pub entries: u32,
    /// `comp_vector`
    pub vector: u32,
    /// `comp_channel`, if not -1.
    pub channel: Option<ChannelId>,
    /// mlx5: `buf_addr`
    pub buffer: u64,
    /// mlx5: `db_addr`
    pub doorbell: u64,
    /// mlx5: `cqe_size`, 64 or 128.
    pub cqe_size: u32,
}

/// CREATE_CQ
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CqCreated {
    /// `cq_handle`
    pub handle: Handle,
    /// `cqe`: entries less 1.
    pub entries: u32,
    /// mlx5: `cqn`
    pub cqn: u32,
}

/// What a shared receive queue does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SrqKind {
    /// `IBV_SRQT_BASIC`
    Basic,
    /// `IBV_SRQT_TM`
    TagMatching {
        /// `max_num_tags`
        tags: u32,
        /// `cq_handle`
        cq: Handle,
    },
}

/// CREATE_SRQ, CREATE_XSRQ
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CreateSrq {
    /// `user_handle`
    pub user_handle: u64,
    /// `pd_handle`
    pub pd: Handle,
    /// `srq_type` with what belongs to it.
    pub kind: SrqKind,
    /// `max_wr`
    pub max_wr: u32,
    /// `max_sge`
    pub max_sge: u32,
    /// `srq_limit`
    pub limit: u32,
    /// mlx5: `buf_addr`
    pub buffer: u64,
    /// mlx5: `db_addr`
    pub doorbell: u64,
    /// mlx5: `uidx`
    pub uidx: u32,
}

/// CREATE_SRQ, CREATE_XSRQ
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SrqCreated {
    /// `srq_handle`
    pub handle: Handle,
    /// mlx5: `srqn`
    pub srqn: u32,
    /// `max_wr`
    pub max_wr: u32,
    /// `max_sge`
    pub max_sge: u32,
}

/// QUERY_SRQ
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SrqAttributes {
    /// `max_wr`
    pub max_wr: u32,
    /// `max_sge`
    pub max_sge: u32,
    /// `srq_limit`: 0 once it was reached.
    pub limit: u32,
}

/// `ibv_qp_cap`
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QpCaps {
    /// `max_send_wr`
    pub max_send_wr: u32,
    /// `max_recv_wr`
    pub max_recv_wr: u32,
    /// `max_send_sge`
    pub max_send_sge: u32,
    /// `max_recv_sge`
    pub max_recv_sge: u32,
    /// `max_inline_data`
    pub max_inline_data: u32,
}

/// CREATE_QP
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CreateQp {
    /// `user_handle`
    pub user_handle: u64,
    /// `pd_handle`
    pub pd: Handle,
    /// `send_cq_handle`
    pub send_cq: Handle,
    /// `recv_cq_handle`
    pub recv_cq: Handle,
    /// `srq_handle`, where `is_srq` is set.
    pub srq: Option<Handle>,
    /// `qp_type`: `ibv_qp_type`.
    pub qp_type: u8,
    /// `sq_sig_all`: for queries; the driver sets the bit in each WQE.
    pub sq_sig_all: bool,
    /// What was asked for.
    pub caps: QpCaps,
    /// mlx5: `buf_addr`
    pub buffer: u64,
    /// mlx5: `db_addr`
    pub doorbell: u64,
    /// mlx5: `sq_wqe_count`, 64-byte blocks; 0: no send queue.
    pub sq_wqe_count: u32,
    /// mlx5: `rq_wqe_count`
    pub rq_wqe_count: u32,
    /// mlx5: `rq_wqe_shift`
    pub rq_wqe_shift: u32,
    /// mlx5: `flags`
    pub flags: u32,
    /// mlx5: `uidx`
    pub uidx: u32,
}

/// CREATE_QP
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QpCreated {
    /// `qp_handle`
    pub handle: Handle,
    /// `qpn`
    pub qpn: u32,
    /// What was granted.
    pub caps: QpCaps,
}

/// An address vector: `ib_uverbs_qp_dest`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AddressVector {
    /// `dlid`
    pub dlid: u16,
    /// `sl`
    pub sl: u8,
    /// `src_path_bits`
    pub src_path_bits: u8,
    /// `static_rate`
    pub static_rate: u8,
    /// `is_global`: the GRH fields count.
    pub is_global: bool,
    /// `port_num`
    pub port: u8,
    /// `dgid`
    pub dgid: [u8; 16],
    /// `flow_label`
    pub flow_label: u32,
    /// `sgid_index`
    pub sgid_index: u8,
    /// `hop_limit`
    pub hop_limit: u8,
    /// `traffic_class`
    pub traffic_class: u8,
}

/// The attributes of a QP: MODIFY_QP (those that its mask names), QUERY_QP (all).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QpAttributes {
    /// `qp_state`
    pub state: u8,
    /// `cur_qp_state`
    pub current_state: u8,
    /// `path_mtu`: `ibv_mtu`
    pub path_mtu: u8,
    /// `path_mig_state`
    pub path_mig_state: u8,
    /// `qkey`
    pub qkey: u32,
    /// `rq_psn`
    pub rq_psn: u32,
    /// `sq_psn`
    pub sq_psn: u32,
    /// `dest_qp_num`
    pub dest_qpn: u32,
    /// `qp_access_flags`
    pub access: u32,
    /// `pkey_index`
    pub pkey_index: u16,
    /// `alt_pkey_index`
    pub alt_pkey_index: u16,
    /// `en_sqd_async_notify`
    pub sqd_notify: bool,
    /// `sq_draining`; queries alone.
    pub sq_draining: bool,
    /// `max_rd_atomic`
    pub max_rd_atomic: u8,
    /// `max_dest_rd_atomic`
    pub max_dest_rd_atomic: u8,
    /// `min_rnr_timer`
    pub min_rnr_timer: u8,
    /// `port_num`
    pub port: u8,
    /// `timeout`
    pub timeout: u8,
    /// `retry_cnt`
    pub retry_count: u8,
    /// `rnr_retry`
    pub rnr_retry: u8,
    /// `alt_port_num`
    pub alt_port: u8,
    /// `alt_timeout`
    pub alt_timeout: u8,
    /// `dest`
    pub path: AddressVector,
    /// `alt_dest`
    pub alt_path: AddressVector,
}

/// QUERY_QP
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QpQueried {
    /// As they stand.
    pub attributes: QpAttributes,
    /// As granted.
    pub caps: QpCaps,
    /// As created.
    pub sq_sig_all: bool,
}

/// An entry in a completion channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CompletionEvent {
    /// Whose.
    pub context: ContextId,
    /// Where it goes.
    pub channel: ChannelId,
    /// The CQ: its unread events are dropped when it is destroyed.
    pub cq: Handle,
    /// `cq_handle` of `ib_uverbs_comp_event_desc`.
    pub user_handle: u64,
}

/// What an asynchronous event is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Element {
    /// A CQ.
    Cq(Handle),
    /// A QP.
    Qp(Handle),
    /// An SRQ.
    Srq(Handle),
    /// A port, or the device itself.
    Device,
}

/// An asynchronous event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AsyncEvent {
    /// Whose.
    pub context: ContextId,
    /// `ibv_event_type`: [`super::verbs::event`].
    pub event_type: u32,
    /// About what: its unread events are dropped when it is destroyed.
    pub element: Element,
    /// `element` of `ib_uverbs_async_event_desc`.
    pub user_handle: u64,
}

/// QUERY_DEVICE and EX QUERY_DEVICE: what is not zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the fields of ib_uverbs_query_device_resp by their own names")]
pub struct DeviceAttributes {
    pub fw_ver: u64,
    pub node_guid: u64,
    pub sys_image_guid: u64,
    pub max_mr_size: u64,
    pub page_size_cap: u64,
    pub vendor_id: u32,
    pub vendor_part_id: u32,
    pub hw_ver: u32,
    pub max_qp: u32,
    pub max_qp_wr: u32,
    pub device_cap_flags: u32,
    pub max_sge: u32,
    pub max_sge_rd: u32,
    pub max_cq: u32,
    pub max_cqe: u32,
    pub max_mr: u32,
    pub max_pd: u32,
    pub max_qp_rd_atom: u32,
    pub max_res_rd_atom: u32,
    pub max_qp_init_rd_atom: u32,
    pub atomic_cap: u32,
    pub max_ah: u32,
    pub max_srq: u32,
    pub max_srq_wr: u32,
    pub max_srq_sge: u32,
    pub max_pkeys: u16,
    pub local_ca_ack_delay: u8,
    pub phys_port_cnt: u8,
    pub tm: TagMatchingCaps,
}

/// `tm_caps`
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs, reason = "the fields of ib_uverbs_tm_caps by their own names")]
pub struct TagMatchingCaps {
    pub max_rndv_hdr_size: u32,
    pub max_num_tags: u32,
    pub flags: u32,
    pub max_ops: u32,
    pub max_sge: u32,
}

/// QUERY_PORT
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the fields of ib_uverbs_query_port_resp by their own names")]
pub struct PortAttributes {
    pub port_cap_flags: u32,
    pub max_msg_sz: u32,
    pub bad_pkey_cntr: u32,
    pub qkey_viol_cntr: u32,
    pub gid_tbl_len: u32,
    pub pkey_tbl_len: u16,
    pub lid: u16,
    pub sm_lid: u16,
    pub state: u8,
    pub max_mtu: u8,
    pub active_mtu: u8,
    pub lmc: u8,
    pub max_vl_num: u8,
    pub sm_sl: u8,
    pub subnet_timeout: u8,
    pub init_type_reply: u8,
    pub active_width: u8,
    pub active_speed: u8,
    pub phys_state: u8,
    pub link_layer: u8,
}
