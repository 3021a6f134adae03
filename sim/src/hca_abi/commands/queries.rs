//! GET_CONTEXT and what a program asks of the device and its port.

use super::super::{mlx5, uverbs as abi};
use super::{Call, refused};
use crate::hca::LinkLayer;
use core::ffi::c_int;

impl Call<'_> {
    /// GET_CONTEXT: once for each descriptor.
    pub(super) fn get_context(&mut self) -> Result<(), c_int> {
        let request: mlx5::AllocContext = self.request.driver(REQUEST_MIN)?;
        // Direct commands to the firmware are not modelled; a driver that asks for them asks again without.
        let is_fine = request.flags & mlx5::ALLOC_CONTEXT_DEVX == 0
            && request.comp_mask == 0
            && request.total_num_bfregs > 0
            && request.num_low_latency_bfregs < request.total_num_bfregs;
        let has_context = self.state.contexts.get(&self.fd).is_none_or(|context| context.id.is_some());
        if !is_fine || has_context {
            return Err(libc::EINVAL);
        }
        let id = self.state.hca.open_context();
        let async_fd = match self.state.make_async(self.device, id) {
            Ok(fd) => fd,
            Err(errno) => {
                self.state.hca.close_context(id);
                return Err(errno);
            }
        };
        if let Some(context) = self.state.contexts.get_mut(&self.fd) {
            context.id = Some(id);
        }
        let core =
            abi::GetContextResp { async_fd: async_fd.cast_unsigned(), num_comp_vectors: COMPLETION_VECTORS };
        self.request.answer_both(&core, &self.context_answer(request.max_cqe_version))
    }

    fn context_answer(&self, cqe_version_max: u8) -> mlx5::AllocContextResp {
        let config = self.state.hca.config();
        let limits = &config.limits;
        let address_handles = if config.link_layer == LinkLayer::Ethernet { SUPPORTS_CREATE_AH } else { 0 };
        mlx5::AllocContextResp {
            qp_tab_size: 1 << 18,
            bf_reg_size: 512,
            tot_bfregs: 16,
            cache_line_size: 64,
            max_sq_desc_sz: 1024,
            max_rq_desc_sz: 512,
            max_send_wqebb: limits.send_blocks,
            max_recv_wr: limits.qp_work_requests,
            max_srq_recv_wr: limits.srq_work_requests,
            num_ports: u16::from(config.ports),
            response_length: u32::try_from(self.request.driver_room().min(CONTEXT_ANSWER)).unwrap_or(0),
            cqe_version: cqe_version_max.min(1),
            cmds_supp_uhw: SUPPORTS_QUERY_DEVICE | address_handles,
            log_uar_size: 12,
            num_uars_per_page: 1,
            ..mlx5::AllocContextResp::default()
        }
    }

    /// QUERY_DEVICE
    pub(super) fn query_device(&self) -> Result<(), c_int> {
        self.request.answer(&self.device_answer())
    }

    /// QUERY_DEVICE with tag matching.
    pub(super) fn query_device_ex(&self) -> Result<(), c_int> {
        let request: abi::ExQueryDevice = self.request.core()?;
        if request.comp_mask != 0 || request.reserved != 0 {
            return Err(libc::EINVAL);
        }
        let base = self.device_answer();
        let tags = self.state.hca.query_device().tm;
        let core = abi::ExQueryDeviceResp {
            base,
            response_length: u32::try_from(self.request.core_room().min(DEVICE_ANSWER)).unwrap_or(0),
            device_cap_flags_ex: u64::from(base.device_cap_flags),
            tm_max_rndv_hdr_size: tags.max_rndv_hdr_size,
            tm_max_num_tags: tags.max_num_tags,
            tm_flags: tags.flags,
            tm_max_ops: tags.max_ops,
            tm_max_sge: tags.max_sge,
            ..abi::ExQueryDeviceResp::default()
        };
        let mut driver = [0u8; DRIVER_ANSWER];
        let length = u32::try_from(self.request.driver_room().min(DRIVER_ANSWER)).unwrap_or(0);
        driver[4..8].copy_from_slice(&length.to_ne_bytes());
        self.request.answer_both(&core, &driver)
    }

    fn device_answer(&self) -> abi::QueryDeviceResp {
        let device = self.state.hca.query_device();
        abi::QueryDeviceResp {
            fw_ver: device.fw_ver,
            node_guid: device.node_guid.to_be_bytes(),
            sys_image_guid: device.sys_image_guid.to_be_bytes(),
            max_mr_size: device.max_mr_size,
            page_size_cap: device.page_size_cap,
            vendor_id: device.vendor_id,
            vendor_part_id: device.vendor_part_id,
            hw_ver: device.hw_ver,
            max_qp: device.max_qp,
            max_qp_wr: device.max_qp_wr,
            device_cap_flags: device.device_cap_flags,
            max_sge: device.max_sge,
            max_sge_rd: device.max_sge_rd,
            max_cq: device.max_cq,
            max_cqe: device.max_cqe,
            max_mr: device.max_mr,
            max_pd: device.max_pd,
            max_qp_rd_atom: device.max_qp_rd_atom,
            max_res_rd_atom: device.max_res_rd_atom,
            max_qp_init_rd_atom: device.max_qp_init_rd_atom,
            atomic_cap: device.atomic_cap,
            max_ah: device.max_ah,
            max_srq: device.max_srq,
            max_srq_wr: device.max_srq_wr,
            max_srq_sge: device.max_srq_sge,
            max_pkeys: device.max_pkeys,
            local_ca_ack_delay: device.local_ca_ack_delay,
            phys_port_cnt: device.phys_port_cnt,
            ..abi::QueryDeviceResp::default()
        }
    }

    /// QUERY_PORT
    pub(super) fn query_port(&self) -> Result<(), c_int> {
        let request: abi::QueryPort = self.request.core()?;
        if request.reserved.iter().any(|byte| *byte != 0) {
            return Err(libc::EINVAL);
        }
        let port = self.state.hca.query_port(request.port_num).map_err(refused)?;
        self.request.answer(&abi::QueryPortResp {
            port_cap_flags: port.port_cap_flags,
            max_msg_sz: port.max_msg_sz,
            bad_pkey_cntr: port.bad_pkey_cntr,
            qkey_viol_cntr: port.qkey_viol_cntr,
            gid_tbl_len: port.gid_tbl_len,
            pkey_tbl_len: port.pkey_tbl_len,
            lid: port.lid,
            sm_lid: port.sm_lid,
            state: port.state,
            max_mtu: port.max_mtu,
            active_mtu: port.active_mtu,
            lmc: port.lmc,
            max_vl_num: port.max_vl_num,
            sm_sl: port.sm_sl,
            subnet_timeout: port.subnet_timeout,
            init_type_reply: port.init_type_reply,
            active_width: port.active_width,
            active_speed: port.active_speed,
            phys_state: port.phys_state,
            link_layer: port.link_layer,
            flags: 0,
            reserved: 0,
        })
    }
}

/// Completion vectors; which one a CQ uses makes no difference.
pub(super) const COMPLETION_VECTORS: u32 = 4;
/// The first version of the driver's request is what it must have.
const REQUEST_MIN: usize = 8;
const CONTEXT_ANSWER: usize = size_of::<mlx5::AllocContextResp>();
const DEVICE_ANSWER: usize = size_of::<abi::ExQueryDeviceResp>();
/// `mlx5_ib_query_device_resp`: nothing of it is offered.
const DRIVER_ANSWER: usize = 104;
/// `MLX5_USER_CMDS_SUPP_UHW_QUERY_DEVICE`
const SUPPORTS_QUERY_DEVICE: u8 = 1;
/// `MLX5_USER_CMDS_SUPP_UHW_CREATE_AH`
const SUPPORTS_CREATE_AH: u8 = 2;
