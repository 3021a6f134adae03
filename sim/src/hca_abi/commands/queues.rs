//! Queue pairs and shared receive queues.

use super::super::events::EventKind;
use super::super::{mlx5, uverbs as abi};
use super::{Call, refused};
use crate::hca::{
    AddressVector, ContextId, CreateQp, CreateSrq, Handle, QpAttributes, QpCaps, QpCreated, SrqKind,
};
use core::ffi::c_int;

impl Call<'_> {
    /// CREATE_QP
    pub(super) fn create_qp(&mut self, context: ContextId) -> Result<(), c_int> {
        let request: abi::CreateQp = self.request.core()?;
        let created = self.make_qp(context, &request)?;
        self.request.answer_both(&qp_answer(&created), &mlx5::CreateQpResp::default())
    }

    /// CREATE_QP, extended.
    pub(super) fn create_qp_ex(&mut self, context: ContextId) -> Result<(), c_int> {
        let (request, tail) = self.request.core_and_tail::<abi::CreateQp, abi::ExCreateQpTail>()?;
        if tail.comp_mask != 0 || tail.create_flags != 0 || tail.source_qpn != 0 {
            return Err(libc::EINVAL);
        }
        let created = self.make_qp(context, &request)?;
        let response_length = size_of::<abi::CreateQpResp>() + size_of::<abi::ExTailResp>();
        let response_length = u32::try_from(response_length).unwrap_or(0);
        let tail = abi::ExTailResp { comp_mask: 0, response_length };
        let mut core = Vec::from(zerocopy::IntoBytes::as_bytes(&qp_answer(&created)));
        core.extend_from_slice(zerocopy::IntoBytes::as_bytes(&tail));
        self.request.answer_both(core.as_slice(), &mlx5::CreateQpResp::default())
    }

    fn make_qp(&mut self, context: ContextId, request: &abi::CreateQp) -> Result<QpCreated, c_int> {
        let driver: mlx5::CreateQp = self.request.driver(CREATE_QP_MIN)?;
        let unknown = driver.flags & !QP_FLAGS_KNOWN != 0;
        if unknown || driver.sq_buf_addr != 0 || driver.ece_options != 0 {
            return Err(libc::EOPNOTSUPP);
        }
        let request = CreateQp {
            user_handle: request.user_handle,
            pd: Handle(request.pd_handle),
            send_cq: Handle(request.send_cq_handle),
            recv_cq: Handle(request.recv_cq_handle),
            srq: (request.is_srq != 0).then_some(Handle(request.srq_handle)),
            qp_type: request.qp_type,
            sq_sig_all: request.sq_sig_all != 0,
            caps: QpCaps {
                max_send_wr: request.max_send_wr,
                max_recv_wr: request.max_recv_wr,
                max_send_sge: request.max_send_sge,
                max_recv_sge: request.max_recv_sge,
                max_inline_data: request.max_inline_data,
            },
            buffer: driver.buf_addr,
            doorbell: driver.db_addr,
            sq_wqe_count: driver.sq_wqe_count,
            rq_wqe_count: driver.rq_wqe_count,
            rq_wqe_shift: driver.rq_wqe_shift,
            flags: driver.flags,
            uidx: driver.uidx,
        };
        self.state.hca.create_qp(context, &request).map_err(refused)
    }

    /// QUERY_QP
    pub(super) fn query_qp(&self, context: ContextId) -> Result<(), c_int> {
        let request: abi::QueryQp = self.request.core()?;
        let qp = self.state.hca.query_qp(context, Handle(request.qp_handle)).map_err(refused)?;
        let (attributes, caps) = (qp.attributes, qp.caps);
        self.request.answer(&abi::QueryQpResp {
            dest: dest(&attributes.path),
            alt_dest: dest(&attributes.alt_path),
            max_send_wr: caps.max_send_wr,
            max_recv_wr: caps.max_recv_wr,
            max_send_sge: caps.max_send_sge,
            max_recv_sge: caps.max_recv_sge,
            max_inline_data: caps.max_inline_data,
            qkey: attributes.qkey,
            rq_psn: attributes.rq_psn,
            sq_psn: attributes.sq_psn,
            dest_qp_num: attributes.dest_qpn,
            qp_access_flags: attributes.access,
            pkey_index: attributes.pkey_index,
            alt_pkey_index: attributes.alt_pkey_index,
            qp_state: attributes.state,
            cur_qp_state: attributes.current_state,
            path_mtu: attributes.path_mtu,
            path_mig_state: attributes.path_mig_state,
            sq_draining: attributes.sq_draining.into(),
            max_rd_atomic: attributes.max_rd_atomic,
            max_dest_rd_atomic: attributes.max_dest_rd_atomic,
            min_rnr_timer: attributes.min_rnr_timer,
            port_num: attributes.port,
            timeout: attributes.timeout,
            retry_cnt: attributes.retry_count,
            rnr_retry: attributes.rnr_retry,
            alt_port_num: attributes.alt_port,
            alt_timeout: attributes.alt_timeout,
            sq_sig_all: qp.sq_sig_all.into(),
            reserved: [0; 5],
        })
    }

    /// MODIFY_QP
    pub(super) fn modify_qp(&mut self, context: ContextId) -> Result<(), c_int> {
        let request: abi::ModifyQp = self.request.core()?;
        if request.attr_mask & !QP_MASK_PLAIN != 0 {
            return Err(libc::EOPNOTSUPP);
        }
        self.change_qp(context, &request)
    }

    /// MODIFY_QP, extended: what it adds, a rate limit, is not offered.
    pub(super) fn modify_qp_ex(&mut self, context: ContextId) -> Result<(), c_int> {
        // A program may leave the end away.
        let request: abi::ModifyQp = self.request.core()?;
        if let Ok((_, tail)) = self.request.core_and_tail::<abi::ModifyQp, abi::ExModifyQpTail>()
            && (tail.rate_limit != 0 || tail.reserved != 0)
        {
            return Err(libc::EINVAL);
        }
        if request.attr_mask & !QP_MASK_PLAIN != 0 {
            return Err(libc::EOPNOTSUPP);
        }
        self.change_qp(context, &request)?;
        let core = abi::ExTailResp { comp_mask: 0, response_length: 8 };
        let driver = mlx5::ModifyQpResp { response_length: 16, ..mlx5::ModifyQpResp::default() };
        self.request.answer_both(&core, &driver)
    }

    fn change_qp(&mut self, context: ContextId, request: &abi::ModifyQp) -> Result<(), c_int> {
        let attributes = QpAttributes {
            state: request.qp_state,
            current_state: request.cur_qp_state,
            path_mtu: request.path_mtu,
            path_mig_state: request.path_mig_state,
            qkey: request.qkey,
            rq_psn: request.rq_psn,
            sq_psn: request.sq_psn,
            dest_qpn: request.dest_qp_num,
            access: request.qp_access_flags,
            pkey_index: request.pkey_index,
            alt_pkey_index: request.alt_pkey_index,
            sqd_notify: request.en_sqd_async_notify != 0,
            sq_draining: false,
            max_rd_atomic: request.max_rd_atomic,
            max_dest_rd_atomic: request.max_dest_rd_atomic,
            min_rnr_timer: request.min_rnr_timer,
            port: request.port_num,
            timeout: request.timeout,
            retry_count: request.retry_cnt,
            rnr_retry: request.rnr_retry,
            alt_port: request.alt_port_num,
            alt_timeout: request.alt_timeout,
            path: vector(&request.dest),
            alt_path: vector(&request.alt_dest),
        };
        let (qp, mask) = (Handle(request.qp_handle), request.attr_mask);
        self.state.hca.modify_qp(context, qp, mask, &attributes).map_err(refused)
    }

    /// DESTROY_QP
    pub(super) fn destroy_qp(&mut self, context: ContextId) -> Result<(), c_int> {
        let request: abi::Destroy = self.request.core()?;
        let qp = Handle(request.handle);
        self.state.pump();
        self.state.hca.destroy_qp(context, qp).map_err(refused)?;
        let events_reported = self.state.forget_asyncs(context, (EventKind::Qp, qp.0));
        self.request.answer(&abi::DestroyResp { events_reported })
    }

    /// ATTACH_MCAST, DETACH_MCAST
    pub(super) fn multicast(&mut self, context: ContextId) -> Result<(), c_int> {
        let request: abi::Multicast = self.request.core()?;
        self.state.hca.attach_multicast(context, Handle(request.qp_handle)).map_err(refused)
    }

    /// CREATE_SRQ
    pub(super) fn create_srq(&mut self, context: ContextId) -> Result<(), c_int> {
        let request: abi::CreateSrq = self.request.core()?;
        self.make_srq(context, |driver| CreateSrq {
            user_handle: request.user_handle,
            pd: Handle(request.pd_handle),
            kind: SrqKind::Basic,
            max_wr: request.max_wr,
            max_sge: request.max_sge,
            limit: request.srq_limit,
            buffer: driver.buf_addr,
            doorbell: driver.db_addr,
            uidx: driver.uidx,
        })
    }

    /// CREATE_XSRQ: basic and with tag matching; XRC is not offered.
    pub(super) fn create_xsrq(&mut self, context: ContextId) -> Result<(), c_int> {
        let request: abi::CreateXsrq = self.request.core()?;
        let kind = match request.srq_type {
            SRQ_BASIC => SrqKind::Basic,
            SRQ_TAG_MATCHING => {
                SrqKind::TagMatching { tags: request.max_num_tags, cq: Handle(request.cq_handle) }
            }
            SRQ_XRC => return Err(libc::EOPNOTSUPP),
            _ => return Err(libc::EINVAL),
        };
        self.make_srq(context, |driver| CreateSrq {
            user_handle: request.user_handle,
            pd: Handle(request.pd_handle),
            kind,
            max_wr: request.max_wr,
            max_sge: request.max_sge,
            limit: request.srq_limit,
            buffer: driver.buf_addr,
            doorbell: driver.db_addr,
            uidx: driver.uidx,
        })
    }

    fn make_srq(
        &mut self,
        context: ContextId,
        request: impl FnOnce(&mlx5::CreateSrq) -> CreateSrq,
    ) -> Result<(), c_int> {
        let driver: mlx5::CreateSrq = self.request.driver(CREATE_SRQ_MIN)?;
        if driver.flags != 0 || driver.reserved0 != 0 || driver.reserved1 != 0 {
            return Err(libc::EINVAL);
        }
        let created = self.state.hca.create_srq(context, &request(&driver)).map_err(refused)?;
        let core = abi::CreateSrqResp {
            srq_handle: created.handle.0,
            max_wr: created.max_wr,
            max_sge: created.max_sge,
            // This one counts for XRC alone; the number is in the driver's part.
            srqn: 0,
        };
        self.request.answer_both(&core, &mlx5::CreateSrqResp { srqn: created.srqn, reserved: 0 })
    }

    /// MODIFY_SRQ
    pub(super) fn modify_srq(&mut self, context: ContextId) -> Result<(), c_int> {
        let request: abi::ModifySrq = self.request.core()?;
        let (srq, mask) = (Handle(request.srq_handle), request.attr_mask);
        self.state.hca.modify_srq(context, srq, mask, request.srq_limit).map_err(refused)
    }

    /// QUERY_SRQ
    pub(super) fn query_srq(&self, context: ContextId) -> Result<(), c_int> {
        let request: abi::Destroy = self.request.core()?;
        let srq = self.state.hca.query_srq(context, Handle(request.handle)).map_err(refused)?;
        let (max_wr, max_sge, srq_limit) = (srq.max_wr, srq.max_sge, srq.limit);
        self.request.answer(&abi::QuerySrqResp { max_wr, max_sge, srq_limit, reserved: 0 })
    }

    /// DESTROY_SRQ
    pub(super) fn destroy_srq(&mut self, context: ContextId) -> Result<(), c_int> {
        let request: abi::Destroy = self.request.core()?;
        let srq = Handle(request.handle);
        self.state.pump();
        self.state.hca.destroy_srq(context, srq).map_err(refused)?;
        let events_reported = self.state.forget_asyncs(context, (EventKind::Srq, srq.0));
        self.request.answer(&abi::DestroyResp { events_reported })
    }
}

fn qp_answer(created: &QpCreated) -> abi::CreateQpResp {
    let caps = created.caps;
    abi::CreateQpResp {
        qp_handle: created.handle.0,
        qpn: created.qpn,
        max_send_wr: caps.max_send_wr,
        max_recv_wr: caps.max_recv_wr,
        max_send_sge: caps.max_send_sge,
        max_recv_sge: caps.max_recv_sge,
        max_inline_data: caps.max_inline_data,
        reserved: 0,
    }
}

fn dest(vector: &AddressVector) -> abi::QpDest {
    abi::QpDest {
        dgid: vector.dgid,
        flow_label: vector.flow_label,
        dlid: vector.dlid,
        reserved: 0,
        sgid_index: vector.sgid_index,
        hop_limit: vector.hop_limit,
        traffic_class: vector.traffic_class,
        sl: vector.sl,
        src_path_bits: vector.src_path_bits,
        static_rate: vector.static_rate,
        is_global: vector.is_global.into(),
        port_num: vector.port,
    }
}

fn vector(dest: &abi::QpDest) -> AddressVector {
    AddressVector {
        dlid: dest.dlid,
        sl: dest.sl,
        src_path_bits: dest.src_path_bits,
        static_rate: dest.static_rate,
        is_global: dest.is_global != 0,
        port: dest.port_num,
        dgid: dest.dgid,
        flow_label: dest.flow_label,
        sgid_index: dest.sgid_index,
        hop_limit: dest.hop_limit,
        traffic_class: dest.traffic_class,
    }
}

/// The two addresses, and what is in the queues.
const CREATE_QP_MIN: usize = 32;
/// The two addresses.
const CREATE_SRQ_MIN: usize = 16;
/// What changes nothing for the model. A target or an initiator of DC, and a page of registers of the program's own,
/// are not offered.
const QP_FLAGS_KNOWN: u32 =
    mlx5::qp_flags::SCATTER_CQE | mlx5::qp_flags::ALLOW_SCATTER_CQE | mlx5::qp_flags::BFREG_INDEX;
/// `IB_USER_LAST_QP_ATTR_MASK` less what only the extended command knows: everything up to `IB_QP_DEST_QPN`.
const QP_MASK_PLAIN: u32 = (1 << 21) - 1;
/// `ib_srq_type`
const SRQ_BASIC: u32 = 0;
const SRQ_XRC: u32 = 1;
const SRQ_TAG_MATCHING: u32 = 2;
