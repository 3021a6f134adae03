//! The driver's part behind the kernel's structures (`rdma/mlx5-abi.h`). Names are the header's.
//!
//! A program may write less than a request has, or more if the rest is zero, and may read less than a response has.

use super::uverbs::{request, response};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

request!(
    /// `mlx5_ib_alloc_ucontext_req_v2`
    AllocContext {
        total_num_bfregs: u32,
        num_low_latency_bfregs: u32,
        flags: u32,
        comp_mask: u32,
        max_cqe_version: u8,
        reserved0: u8,
        reserved1: u16,
        reserved2: u32,
        lib_caps: u64,
    }
);
response!(
    /// `mlx5_ib_alloc_ucontext_resp`
    AllocContextResp {
        qp_tab_size: u32,
        bf_reg_size: u32,
        tot_bfregs: u32,
        cache_line_size: u32,
        max_sq_desc_sz: u16,
        max_rq_desc_sz: u16,
        max_send_wqebb: u32,
        max_recv_wr: u32,
        max_srq_recv_wr: u32,
        num_ports: u16,
        flow_action_flags: u16,
        comp_mask: u32,
        response_length: u32,
        cqe_version: u8,
        cmds_supp_uhw: u8,
        eth_min_inline: u8,
        clock_info_versions: u8,
        hca_core_clock_offset: u64,
        log_uar_size: u32,
        num_uars_per_page: u32,
        num_dyn_bfregs: u32,
        dump_fill_mkey: u32,
    }
);
response!(
    /// `mlx5_ib_alloc_pd_resp`
    AllocPdResp { pdn: u32 }
);
request!(
    /// `mlx5_ib_create_cq`
    CreateCq {
        buf_addr: u64,
        db_addr: u64,
        cqe_size: u32,
        cqe_comp_en: u8,
        cqe_comp_res_format: u8,
        flags: u16,
        uar_page_index: u16,
        reserved0: u16,
        reserved1: u32,
    }
);
response!(
    /// `mlx5_ib_create_cq_resp`
    CreateCqResp { cqn: u32, reserved: u32 }
);
request!(
    /// `mlx5_ib_create_srq`
    CreateSrq { buf_addr: u64, db_addr: u64, flags: u32, reserved0: u32, uidx: u32, reserved1: u32 }
);
response!(
    /// `mlx5_ib_create_srq_resp`
    CreateSrqResp { srqn: u32, reserved: u32 }
);
request!(
    /// `mlx5_ib_create_qp`
    CreateQp {
        buf_addr: u64,
        db_addr: u64,
        sq_wqe_count: u32,
        rq_wqe_count: u32,
        rq_wqe_shift: u32,
        flags: u32,
        uidx: u32,
        bfreg_index: u32,
        sq_buf_addr: u64,
        ece_options: u32,
        dci_streams: u16,
        reserved: u16,
    }
);
response!(
    /// `mlx5_ib_create_qp_resp`
    CreateQpResp {
        bfreg_index: u32,
        ece_options: u32,
        comp_mask: u32,
        tirn: u32,
        tisn: u32,
        rqn: u32,
        sqn: u32,
        reserved1: u32,
        tir_icm_addr: u64,
    }
);
response!(
    /// `mlx5_ib_modify_qp_resp`
    ModifyQpResp { response_length: u32, dctn: u32, ece_options: u32, reserved: u32 }
);

/// Flags of [`CreateQp`] that a program may set. Others: signatures, DC, a page of registers of its own.
pub(crate) mod qp_flags {
    /// Receive data may be put into completions.
    pub(crate) const SCATTER_CQE: u32 = 1 << 1;
    /// The doorbell register is named by the program.
    pub(crate) const BFREG_INDEX: u32 = 1 << 3;
    /// Data of requests may be put into completions too.
    pub(crate) const ALLOW_SCATTER_CQE: u32 = 1 << 8;
}

/// Flag of [`AllocContext`]: the context wants direct commands to the firmware.
pub(crate) const ALLOC_CONTEXT_DEVX: u32 = 1 << 0;
