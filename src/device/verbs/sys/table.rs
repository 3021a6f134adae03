//! Every layout and constant of libibverbs that is mirrored here, once.
//!
//! The crate makes compile-time assertions about its own structures of it, `build.rs` a C program that compares it
//! with the installed headers. Each includes this file and brings its own `layouts!` and `constants!`.
//!
//! Values: `infiniband/verbs.h` of rdma-core 44, LP64. These structures are frozen ABI: they grow at their ends (the
//! verbs context at its beginning), and whoever reads a grown part asks for its size first. `super::MUTEX` is the
//! size of `pthread_mutex_t`, which is the one thing here that differs between machines.

layouts! {
    union ibv_gid: 16 => { raw: 0 }
    struct ibv_gid_entry: 32 => { gid: 0, gid_index: 16, port_num: 20, gid_type: 24, ndev_ifindex: 28 }
    struct ibv_device: 664 => { node_type: 16, transport_type: 20, name: 24, dev_name: 88, dev_path: 152, ibdev_path: 408 }
    struct ibv_device_attr: 232 => {
        fw_ver: 0, node_guid: 64, sys_image_guid: 72, max_mr_size: 80, page_size_cap: 88, vendor_id: 96,
        vendor_part_id: 100, hw_ver: 104, max_qp: 108, max_qp_wr: 112, device_cap_flags: 116, max_sge: 120,
        max_sge_rd: 124, max_cq: 128, max_cqe: 132, max_mr: 136, max_pd: 140, max_qp_rd_atom: 144,
        max_res_rd_atom: 152, max_qp_init_rd_atom: 156, atomic_cap: 164, max_srq: 212, max_srq_wr: 216,
        max_srq_sge: 220, max_pkeys: 224, local_ca_ack_delay: 226, phys_port_cnt: 227,
    }
    struct ibv_tm_caps: 20 => { max_rndv_hdr_size: 0, max_num_tags: 4, flags: 8, max_ops: 12, max_sge: 16 }
    struct ibv_device_attr_ex: 400 => { orig_attr: 0, comp_mask: 232, tm_caps: 348 }
    struct ibv_port_attr: 52 => {
        state: 0, max_mtu: 4, active_mtu: 8, gid_tbl_len: 12, port_cap_flags: 16, max_msg_sz: 20, bad_pkey_cntr: 24,
        qkey_viol_cntr: 28, pkey_tbl_len: 32, lid: 34, sm_lid: 36, lmc: 38, max_vl_num: 39, sm_sl: 40,
        subnet_timeout: 41, init_type_reply: 42, active_width: 43, active_speed: 44, phys_state: 45, link_layer: 46,
        flags: 47, port_cap_flags2: 48,
    }
    struct ibv_context_ops: 256 => {
        poll_cq: 88, req_notify_cq: 96, post_srq_recv: 160, post_send: 200, post_recv: 208,
    }
    struct ibv_context: 288 + super::MUTEX => {
        device: 0, ops: 8, cmd_fd: 264, async_fd: 268, num_comp_vectors: 272, mutex: 280,
        abi_compat: 280 + super::MUTEX,
    }
    struct verbs_context: 608 + super::MUTEX => {
        query_port: 0, post_srq_ops: 144, create_cq_ex: 200, r#priv: 208, query_device_ex: 216, create_qp_ex: 264,
        get_srq_num: 272, create_srq_ex: 280, sz: 312, context: 320,
    }
    struct ibv_pd: 16 => { context: 0, handle: 8 }
    struct ibv_mr: 48 => { context: 0, pd: 8, addr: 16, length: 24, handle: 32, lkey: 36, rkey: 40 }
    struct ibv_sge: 16 => { addr: 0, length: 8, lkey: 12 }
    struct ibv_comp_channel: 16 => { context: 0, fd: 8, refcnt: 12 }
    struct ibv_cq: 88 + super::MUTEX => { context: 0, channel: 8, cq_context: 16, handle: 24, cqe: 28 }
    struct ibv_wc: 48 => {
        wr_id: 0, status: 8, opcode: 12, vendor_err: 16, byte_len: 20, imm_data: 24, qp_num: 28, src_qp: 32,
        wc_flags: 36, pkey_index: 40, slid: 42, sl: 44, dlid_path_bits: 45,
    }
    struct ibv_wc_tm_info: 16 => { tag: 0, r#priv: 8 }
    struct ibv_cq_init_attr_ex: 56 => {
        cqe: 0, cq_context: 8, channel: 16, comp_vector: 24, wc_flags: 32, comp_mask: 40, flags: 44, parent_domain: 48,
    }
    struct ibv_cq_ex: 248 + super::MUTEX => {
        context: 0, channel: 8, cq_context: 16, handle: 24, cqe: 28, comp_mask: 88 + super::MUTEX,
        status: 92 + super::MUTEX, wr_id: 96 + super::MUTEX, start_poll: 104 + super::MUTEX,
        next_poll: 112 + super::MUTEX, end_poll: 120 + super::MUTEX, read_opcode: 128 + super::MUTEX,
        read_vendor_err: 136 + super::MUTEX, read_byte_len: 144 + super::MUTEX, read_imm_data: 152 + super::MUTEX,
        read_qp_num: 160 + super::MUTEX, read_src_qp: 168 + super::MUTEX, read_wc_flags: 176 + super::MUTEX,
        read_tm_info: 232 + super::MUTEX,
    }
    struct ibv_srq: 88 + super::MUTEX => { context: 0, srq_context: 8, pd: 16, handle: 24 }
    struct ibv_srq_attr: 12 => { max_wr: 0, max_sge: 4, srq_limit: 8 }
    struct ibv_srq_init_attr: 24 => { srq_context: 0, attr: 8 }
    struct ibv_tm_cap: 8 => { max_num_tags: 0, max_ops: 4 }
    struct ibv_srq_init_attr_ex: 64 => {
        srq_context: 0, attr: 8, comp_mask: 20, srq_type: 24, pd: 32, xrcd: 40, cq: 48, tm_cap: 56,
    }
    struct ibv_recv_wr: 32 => { wr_id: 0, next: 8, sg_list: 16, num_sge: 24 }
    struct ibv_ops_wr: 72 => {
        wr_id: 0, next: 8, opcode: 16, flags: 20, tm.unexpected_cnt: 24, tm.handle: 28, tm.add.recv_wr_id: 32,
        tm.add.sg_list: 40, tm.add.num_sge: 48, tm.add.tag: 56, tm.add.mask: 64,
    }
    struct ibv_qp: 120 + super::MUTEX => {
        context: 0, qp_context: 8, pd: 16, send_cq: 24, recv_cq: 32, srq: 40, handle: 48, qp_num: 52, state: 56,
        qp_type: 60,
    }
    struct ibv_qp_cap: 20 => {
        max_send_wr: 0, max_recv_wr: 4, max_send_sge: 8, max_recv_sge: 12, max_inline_data: 16,
    }
    struct ibv_qp_init_attr: 64 => {
        qp_context: 0, send_cq: 8, recv_cq: 16, srq: 24, cap: 32, qp_type: 52, sq_sig_all: 56,
    }
    struct ibv_global_route: 24 => { dgid: 0, flow_label: 16, sgid_index: 20, hop_limit: 21, traffic_class: 22 }
    struct ibv_ah_attr: 32 => {
        grh: 0, dlid: 24, sl: 26, src_path_bits: 27, static_rate: 28, is_global: 29, port_num: 30,
    }
    struct ibv_qp_attr: 144 => {
        qp_state: 0, cur_qp_state: 4, path_mtu: 8, path_mig_state: 12, qkey: 16, rq_psn: 20, sq_psn: 24,
        dest_qp_num: 28, qp_access_flags: 32, cap: 36, ah_attr: 56, alt_ah_attr: 88, pkey_index: 120,
        alt_pkey_index: 122, en_sqd_async_notify: 124, sq_draining: 125, max_rd_atomic: 126, max_dest_rd_atomic: 127,
        min_rnr_timer: 128, port_num: 129, timeout: 130, retry_cnt: 131, rnr_retry: 132, alt_port_num: 133,
        alt_timeout: 134, rate_limit: 136,
    }
    struct ibv_send_wr: 128 => {
        wr_id: 0, next: 8, sg_list: 16, num_sge: 24, opcode: 28, send_flags: 32, imm_data: 36, wr.rdma.remote_addr: 40,
        wr.rdma.rkey: 48, wr.atomic.compare_add: 48, wr.atomic.swap: 56, wr.atomic.rkey: 64, qp_type: 72,
    }
    struct ibv_async_event: 16 => { element: 0, event_type: 8 }
}

constants! {
    // enum ibv_node_type
    IBV_NODE_CA = 1; IBV_NODE_RNIC = 4;
    // link layers, port states and flags
    IBV_LINK_LAYER_UNSPECIFIED = 0; IBV_LINK_LAYER_INFINIBAND = 1; IBV_LINK_LAYER_ETHERNET = 2;
    IBV_PORT_DOWN = 1; IBV_PORT_INIT = 2; IBV_PORT_ARMED = 3; IBV_PORT_ACTIVE = 4;
    IBV_QPF_GRH_REQUIRED = 1;
    // enum ibv_gid_type
    IBV_GID_TYPE_IB = 0; IBV_GID_TYPE_ROCE_V1 = 1; IBV_GID_TYPE_ROCE_V2 = 2;
    // enum ibv_mtu
    IBV_MTU_256 = 1; IBV_MTU_4096 = 5;
    // enum ibv_access_flags
    IBV_ACCESS_LOCAL_WRITE = 1; IBV_ACCESS_REMOTE_WRITE = 2; IBV_ACCESS_REMOTE_READ = 4;
    IBV_ACCESS_REMOTE_ATOMIC = 8;
    // enum ibv_tm_cap_flags
    IBV_TM_CAP_RC = 1;
    // enum ibv_srq_type, enum ibv_srq_init_attr_mask
    IBV_SRQT_BASIC = 0; IBV_SRQT_TM = 2;
    IBV_SRQ_INIT_ATTR_TYPE = 1; IBV_SRQ_INIT_ATTR_PD = 2; IBV_SRQ_INIT_ATTR_XRCD = 4; IBV_SRQ_INIT_ATTR_CQ = 8;
    IBV_SRQ_INIT_ATTR_TM = 16;
    // enum ibv_create_cq_wc_flags
    IBV_WC_EX_WITH_BYTE_LEN = 1; IBV_WC_EX_WITH_IMM = 2; IBV_WC_EX_WITH_QP_NUM = 4; IBV_WC_EX_WITH_SRC_QP = 8;
    IBV_WC_EX_WITH_TM_INFO = 1024;
    // enum ibv_qp_type, enum ibv_qp_state
    IBV_QPT_RC = 2;
    IBV_QPS_RESET = 0; IBV_QPS_INIT = 1; IBV_QPS_RTR = 2; IBV_QPS_RTS = 3; IBV_QPS_SQD = 4; IBV_QPS_SQE = 5;
    IBV_QPS_ERR = 6;
    // enum ibv_qp_attr_mask
    IBV_QP_STATE = 1; IBV_QP_ACCESS_FLAGS = 8; IBV_QP_PKEY_INDEX = 16; IBV_QP_PORT = 32; IBV_QP_AV = 128;
    IBV_QP_PATH_MTU = 256; IBV_QP_TIMEOUT = 512; IBV_QP_RETRY_CNT = 1024; IBV_QP_RNR_RETRY = 2048;
    IBV_QP_RQ_PSN = 4096; IBV_QP_MAX_QP_RD_ATOMIC = 8192; IBV_QP_MIN_RNR_TIMER = 32768; IBV_QP_SQ_PSN = 65536;
    IBV_QP_MAX_DEST_RD_ATOMIC = 131072; IBV_QP_CAP = 524288; IBV_QP_DEST_QPN = 1048576;
    // enum ibv_wr_opcode, enum ibv_send_flags
    IBV_WR_RDMA_WRITE = 0; IBV_WR_RDMA_WRITE_WITH_IMM = 1; IBV_WR_SEND = 2; IBV_WR_SEND_WITH_IMM = 3;
    IBV_WR_RDMA_READ = 4;
    IBV_SEND_FENCE = 1; IBV_SEND_SIGNALED = 2; IBV_SEND_SOLICITED = 4; IBV_SEND_INLINE = 8;
    // enum ibv_ops_wr_opcode, enum ibv_ops_flags
    IBV_WR_TAG_ADD = 0; IBV_WR_TAG_DEL = 1; IBV_WR_TAG_SYNC = 2;
    IBV_OPS_SIGNALED = 1; IBV_OPS_TM_SYNC = 2;
    // enum ibv_wc_status
    IBV_WC_SUCCESS = 0; IBV_WC_LOC_LEN_ERR = 1; IBV_WC_LOC_QP_OP_ERR = 2; IBV_WC_LOC_PROT_ERR = 4;
    IBV_WC_WR_FLUSH_ERR = 5; IBV_WC_BAD_RESP_ERR = 7; IBV_WC_LOC_ACCESS_ERR = 8; IBV_WC_REM_INV_REQ_ERR = 9;
    IBV_WC_REM_ACCESS_ERR = 10; IBV_WC_REM_OP_ERR = 11; IBV_WC_RETRY_EXC_ERR = 12; IBV_WC_RNR_RETRY_EXC_ERR = 13;
    IBV_WC_FATAL_ERR = 19; IBV_WC_GENERAL_ERR = 21; IBV_WC_TM_ERR = 22; IBV_WC_TM_RNDV_INCOMPLETE = 23;
    // enum ibv_wc_opcode
    IBV_WC_SEND = 0; IBV_WC_RDMA_WRITE = 1; IBV_WC_RDMA_READ = 2; IBV_WC_RECV = 128; IBV_WC_RECV_RDMA_WITH_IMM = 129;
    IBV_WC_TM_ADD = 130; IBV_WC_TM_DEL = 131; IBV_WC_TM_SYNC = 132; IBV_WC_TM_RECV = 133; IBV_WC_TM_NO_TAG = 134;
    // enum ibv_wc_flags
    IBV_WC_GRH = 1; IBV_WC_WITH_IMM = 2; IBV_WC_WITH_INV = 8; IBV_WC_TM_SYNC_REQ = 16; IBV_WC_TM_MATCH = 32;
    IBV_WC_TM_DATA_VALID = 64;
    // enum ibv_event_type
    IBV_EVENT_CQ_ERR = 0; IBV_EVENT_QP_FATAL = 1; IBV_EVENT_QP_REQ_ERR = 2; IBV_EVENT_QP_ACCESS_ERR = 3;
    IBV_EVENT_COMM_EST = 4; IBV_EVENT_SQ_DRAINED = 5; IBV_EVENT_PATH_MIG = 6; IBV_EVENT_PATH_MIG_ERR = 7;
    IBV_EVENT_DEVICE_FATAL = 8; IBV_EVENT_PORT_ACTIVE = 9; IBV_EVENT_PORT_ERR = 10; IBV_EVENT_SRQ_ERR = 14;
    IBV_EVENT_SRQ_LIMIT_REACHED = 15; IBV_EVENT_QP_LAST_WQE_REACHED = 16; IBV_EVENT_WQ_FATAL = 19;
}
