//! The structures of the kernel's verbs interface (`rdma/ib_user_verbs.h`), in the order of their commands.
//!
//! Requests are without their first eight bytes, the address of the response, where the command has a response:
//! [`super::frame`] takes that off. Numbers are in the byte order of the machine. Names are the header's.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A structure that the program writes.
macro_rules! request {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $kind:ty),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, FromBytes, Immutable, KnownLayout)]
        #[repr(C)]
        pub(crate) struct $name { $(pub(crate) $field: $kind),* }
    };
}

/// A structure that the program reads.
macro_rules! response {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $kind:ty),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, IntoBytes, Immutable)]
        #[repr(C)]
        pub(crate) struct $name { $(pub(crate) $field: $kind),* }
    };
}

pub(super) use {request, response};

request!(
    /// `ib_uverbs_cmd_hdr`
    Header { command: u32, in_words: u16, out_words: u16 }
);
request!(
    /// `ib_uverbs_ex_cmd_hdr`
    ExtendedHeader { response: u64, provider_in_words: u16, provider_out_words: u16, reserved: u32 }
);
response!(
    /// `ib_uverbs_async_event_desc`
    AsyncEvent { element: u64, event_type: u32, reserved: u32 }
);
response!(
    /// `ib_uverbs_comp_event_desc`
    CompletionEvent { cq_handle: u64 }
);
response!(
    /// `ib_uverbs_get_context_resp`
    GetContextResp { async_fd: u32, num_comp_vectors: u32 }
);
response!(
    /// `ib_uverbs_query_device_resp`
    QueryDeviceResp {
        fw_ver: u64,
        node_guid: [u8; 8],
        sys_image_guid: [u8; 8],
        max_mr_size: u64,
        page_size_cap: u64,
        vendor_id: u32,
        vendor_part_id: u32,
        hw_ver: u32,
        max_qp: u32,
        max_qp_wr: u32,
        device_cap_flags: u32,
        max_sge: u32,
        max_sge_rd: u32,
        max_cq: u32,
        max_cqe: u32,
        max_mr: u32,
        max_pd: u32,
        max_qp_rd_atom: u32,
        max_ee_rd_atom: u32,
        max_res_rd_atom: u32,
        max_qp_init_rd_atom: u32,
        max_ee_init_rd_atom: u32,
        atomic_cap: u32,
        max_ee: u32,
        max_rdd: u32,
        max_mw: u32,
        max_raw_ipv6_qp: u32,
        max_raw_ethy_qp: u32,
        max_mcast_grp: u32,
        max_mcast_qp_attach: u32,
        max_total_mcast_qp_attach: u32,
        max_ah: u32,
        max_fmr: u32,
        max_map_per_fmr: u32,
        max_srq: u32,
        max_srq_wr: u32,
        max_srq_sge: u32,
        max_pkeys: u16,
        local_ca_ack_delay: u8,
        phys_port_cnt: u8,
        reserved: [u8; 4],
    }
);
request!(
    /// `ib_uverbs_ex_query_device`
    ExQueryDevice { comp_mask: u32, reserved: u32 }
);
response!(
    /// `ib_uverbs_ex_query_device_resp`
    ExQueryDeviceResp {
        base: QueryDeviceResp,
        comp_mask: u32,
        response_length: u32,
        odp_general_caps: u64,
        odp_transport_caps: [u32; 4],
        timestamp_mask: u64,
        hca_core_clock: u64,
        device_cap_flags_ex: u64,
        rss_caps: [u32; 4],
        max_wq_type_rq: u32,
        raw_packet_caps: u32,
        tm_max_rndv_hdr_size: u32,
        tm_max_num_tags: u32,
        tm_flags: u32,
        tm_max_ops: u32,
        tm_max_sge: u32,
        tm_reserved: u32,
        cq_moderation_count: u16,
        cq_moderation_period: u16,
        cq_moderation_reserved: u32,
        max_dm_size: u64,
        xrc_odp_caps: u32,
        reserved: u32,
    }
);
request!(
    /// `ib_uverbs_query_port`
    QueryPort { port_num: u8, reserved: [u8; 7] }
);
response!(
    /// `ib_uverbs_query_port_resp`
    QueryPortResp {
        port_cap_flags: u32,
        max_msg_sz: u32,
        bad_pkey_cntr: u32,
        qkey_viol_cntr: u32,
        gid_tbl_len: u32,
        pkey_tbl_len: u16,
        lid: u16,
        sm_lid: u16,
        state: u8,
        max_mtu: u8,
        active_mtu: u8,
        lmc: u8,
        max_vl_num: u8,
        sm_sl: u8,
        subnet_timeout: u8,
        init_type_reply: u8,
        active_width: u8,
        active_speed: u8,
        phys_state: u8,
        link_layer: u8,
        flags: u8,
        reserved: u8,
    }
);
response!(
    /// `ib_uverbs_alloc_pd_resp`
    AllocPdResp { pd_handle: u32 }
);
request!(
    /// One handle: `ib_uverbs_dealloc_pd`, `ib_uverbs_dereg_mr`, `ib_uverbs_dealloc_mw`, `ib_uverbs_destroy_ah`
    Handle { handle: u32 }
);
request!(
    /// `ib_uverbs_create_ah`
    CreateAh { user_handle: u64, pd_handle: u32, reserved: u32, attr: AhAttr }
);
request!(
    /// `ib_uverbs_ah_attr` with its `ib_uverbs_global_route`
    AhAttr {
        dgid: [u8; 16],
        flow_label: u32,
        sgid_index: u8,
        hop_limit: u8,
        traffic_class: u8,
        grh_reserved: u8,
        dlid: u16,
        sl: u8,
        src_path_bits: u8,
        static_rate: u8,
        is_global: u8,
        port_num: u8,
        reserved: u8,
    }
);
response!(
    /// `ib_uverbs_create_ah_resp`
    CreateAhResp { ah_handle: u32 }
);
request!(
    /// `ib_uverbs_reg_mr`
    RegMr { start: u64, length: u64, hca_va: u64, pd_handle: u32, access_flags: u32 }
);
response!(
    /// `ib_uverbs_reg_mr_resp`
    RegMrResp { mr_handle: u32, lkey: u32, rkey: u32 }
);
response!(
    /// `ib_uverbs_create_comp_channel_resp`
    CreateCompChannelResp { fd: u32 }
);
request!(
    /// `ib_uverbs_create_cq`
    CreateCq { user_handle: u64, cqe: u32, comp_vector: u32, comp_channel: i32, reserved: u32 }
);
request!(
    /// `ib_uverbs_ex_create_cq`
    ExCreateCq {
        user_handle: u64,
        cqe: u32,
        comp_vector: u32,
        comp_channel: i32,
        comp_mask: u32,
        flags: u32,
        reserved: u32,
    }
);
response!(
    /// `ib_uverbs_create_cq_resp`
    CreateCqResp { cq_handle: u32, cqe: u32 }
);
response!(
    /// `ib_uverbs_ex_create_cq_resp`
    ExCreateCqResp { base: CreateCqResp, comp_mask: u32, response_length: u32 }
);
request!(
    /// `ib_uverbs_resize_cq`
    ResizeCq { cq_handle: u32, cqe: u32 }
);
request!(
    /// A handle to destroy: `ib_uverbs_destroy_cq`, `ib_uverbs_destroy_qp`, `ib_uverbs_destroy_srq`; also
    /// `ib_uverbs_query_srq`
    Destroy { handle: u32, reserved: u32 }
);
response!(
    /// `ib_uverbs_destroy_cq_resp`
    DestroyCqResp { comp_events_reported: u32, async_events_reported: u32 }
);
response!(
    /// `ib_uverbs_destroy_qp_resp`, `ib_uverbs_destroy_srq_resp`
    DestroyResp { events_reported: u32 }
);
request!(
    /// `ib_uverbs_create_qp`
    CreateQp {
        user_handle: u64,
        pd_handle: u32,
        send_cq_handle: u32,
        recv_cq_handle: u32,
        srq_handle: u32,
        max_send_wr: u32,
        max_recv_wr: u32,
        max_send_sge: u32,
        max_recv_sge: u32,
        max_inline_data: u32,
        sq_sig_all: u8,
        qp_type: u8,
        is_srq: u8,
        reserved: u8,
    }
);
request!(
    /// `ib_uverbs_ex_create_qp` behind what it has in common with [`CreateQp`]
    ExCreateQpTail { comp_mask: u32, create_flags: u32, rwq_ind_tbl_handle: u32, source_qpn: u32 }
);
response!(
    /// `ib_uverbs_create_qp_resp`
    CreateQpResp {
        qp_handle: u32,
        qpn: u32,
        max_send_wr: u32,
        max_recv_wr: u32,
        max_send_sge: u32,
        max_recv_sge: u32,
        max_inline_data: u32,
        reserved: u32,
    }
);
response!(
    /// `ib_uverbs_ex_create_qp_resp` behind [`CreateQpResp`]
    ExTailResp { comp_mask: u32, response_length: u32 }
);
request!(
    /// `ib_uverbs_query_qp`
    QueryQp { qp_handle: u32, attr_mask: u32 }
);
/// `ib_uverbs_qp_dest`
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct QpDest {
    pub(crate) dgid: [u8; 16],
    pub(crate) flow_label: u32,
    pub(crate) dlid: u16,
    pub(crate) reserved: u16,
    pub(crate) sgid_index: u8,
    pub(crate) hop_limit: u8,
    pub(crate) traffic_class: u8,
    pub(crate) sl: u8,
    pub(crate) src_path_bits: u8,
    pub(crate) static_rate: u8,
    pub(crate) is_global: u8,
    pub(crate) port_num: u8,
}
response!(
    /// `ib_uverbs_query_qp_resp`
    QueryQpResp {
        dest: QpDest,
        alt_dest: QpDest,
        max_send_wr: u32,
        max_recv_wr: u32,
        max_send_sge: u32,
        max_recv_sge: u32,
        max_inline_data: u32,
        qkey: u32,
        rq_psn: u32,
        sq_psn: u32,
        dest_qp_num: u32,
        qp_access_flags: u32,
        pkey_index: u16,
        alt_pkey_index: u16,
        qp_state: u8,
        cur_qp_state: u8,
        path_mtu: u8,
        path_mig_state: u8,
        sq_draining: u8,
        max_rd_atomic: u8,
        max_dest_rd_atomic: u8,
        min_rnr_timer: u8,
        port_num: u8,
        timeout: u8,
        retry_cnt: u8,
        rnr_retry: u8,
        alt_port_num: u8,
        alt_timeout: u8,
        sq_sig_all: u8,
        reserved: [u8; 5],
    }
);
request!(
    /// `ib_uverbs_modify_qp`
    ModifyQp {
        dest: QpDest,
        alt_dest: QpDest,
        qp_handle: u32,
        attr_mask: u32,
        qkey: u32,
        rq_psn: u32,
        sq_psn: u32,
        dest_qp_num: u32,
        qp_access_flags: u32,
        pkey_index: u16,
        alt_pkey_index: u16,
        qp_state: u8,
        cur_qp_state: u8,
        path_mtu: u8,
        path_mig_state: u8,
        en_sqd_async_notify: u8,
        max_rd_atomic: u8,
        max_dest_rd_atomic: u8,
        min_rnr_timer: u8,
        port_num: u8,
        timeout: u8,
        retry_cnt: u8,
        rnr_retry: u8,
        alt_port_num: u8,
        alt_timeout: u8,
        reserved: [u8; 2],
    }
);
request!(
    /// `ib_uverbs_ex_modify_qp` behind [`ModifyQp`]
    ExModifyQpTail { rate_limit: u32, reserved: u32 }
);
request!(
    /// `ib_uverbs_attach_mcast`, `ib_uverbs_detach_mcast`
    Multicast { gid: [u8; 16], qp_handle: u32, mlid: u16, reserved: u16 }
);
request!(
    /// `ib_uverbs_create_srq`
    CreateSrq { user_handle: u64, pd_handle: u32, max_wr: u32, max_sge: u32, srq_limit: u32 }
);
request!(
    /// `ib_uverbs_create_xsrq`
    CreateXsrq {
        user_handle: u64,
        srq_type: u32,
        pd_handle: u32,
        max_wr: u32,
        max_sge: u32,
        srq_limit: u32,
        max_num_tags: u32,
        xrcd_handle: u32,
        cq_handle: u32,
    }
);
response!(
    /// `ib_uverbs_create_srq_resp`
    CreateSrqResp { srq_handle: u32, max_wr: u32, max_sge: u32, srqn: u32 }
);
request!(
    /// `ib_uverbs_modify_srq`
    ModifySrq { srq_handle: u32, attr_mask: u32, max_wr: u32, srq_limit: u32 }
);
response!(
    /// `ib_uverbs_query_srq_resp`
    QuerySrqResp { max_wr: u32, max_sge: u32, srq_limit: u32, reserved: u32 }
);
