//! Protection domains, address handles, memory regions, completion channels and completion queues.

use super::super::events::EventKind;
use super::super::{mlx5, uverbs as abi};
use super::queries::COMPLETION_VECTORS;
use super::{Call, refused};
use crate::hca::{ChannelId, ContextId, CqCreated, CreateCq, Handle, LinkLayer, RegisterMemory};
use core::ffi::c_int;

impl Call<'_> {
    /// ALLOC_PD
    pub(super) fn alloc_pd(&mut self, context: ContextId) -> Result<(), c_int> {
        let created = self.state.hca.alloc_pd(context).map_err(refused)?;
        let core = abi::AllocPdResp { pd_handle: created.handle.0 };
        self.request.answer_both(&core, &mlx5::AllocPdResp { pdn: created.pdn })
    }

    /// DEALLOC_PD
    pub(super) fn dealloc_pd(&mut self, context: ContextId) -> Result<(), c_int> {
        let handle = self.handle()?;
        self.state.hca.dealloc_pd(context, handle).map_err(refused)
    }

    /// CREATE_AH: the driver asks on Ethernet alone, for the address of the other side.
    pub(super) fn create_ah(&mut self) -> Result<(), c_int> {
        let request: abi::CreateAh = self.request.core()?;
        let config = *self.state.hca.config();
        let is_ethernet = config.link_layer == LinkLayer::Ethernet;
        let attr = request.attr;
        let is_port = (1..=config.ports).contains(&attr.port_num);
        if request.reserved != 0 || !is_port || (is_ethernet && attr.is_global == 0) {
            return Err(libc::EINVAL);
        }
        let context = self.state.contexts.get_mut(&self.fd).ok_or(libc::EINVAL)?;
        context.address_handles = context.address_handles.checked_add(1).ok_or(libc::ENOMEM)?;
        let core = abi::CreateAhResp { ah_handle: context.address_handles };
        // mlx5_ib_create_ah_resp: response_length, dmac, reserved.
        let mut driver = [0u8; 16];
        driver[..4].copy_from_slice(&10u32.to_ne_bytes());
        driver[4..10].copy_from_slice(&MAC);
        self.request.answer_both(&core, &driver)
    }

    /// DESTROY_AH
    pub(super) fn destroy_ah(&self) -> Result<(), c_int> {
        let handle = self.handle()?;
        let context = self.state.contexts.get(&self.fd).ok_or(libc::EINVAL)?;
        if (1..=context.address_handles).contains(&handle.0) { Ok(()) } else { Err(libc::EINVAL) }
    }

    /// REG_MR
    pub(super) fn register_memory(&mut self, context: ContextId) -> Result<(), c_int> {
        let request: abi::RegMr = self.request.core()?;
        let request = RegisterMemory {
            pd: Handle(request.pd_handle),
            start: request.start,
            length: request.length,
            hca_va: request.hca_va,
            access: request.access_flags,
        };
        let created = self.state.hca.register_memory(context, &request).map_err(refused)?;
        let (handle, lkey, rkey) = (created.handle, created.lkey, created.rkey);
        self.request.answer(&abi::RegMrResp { mr_handle: handle.0, lkey, rkey })
    }

    /// DEREG_MR
    pub(super) fn deregister_memory(&mut self, context: ContextId) -> Result<(), c_int> {
        let handle = self.handle()?;
        self.state.hca.deregister_memory(context, handle).map_err(refused)
    }

    /// CREATE_COMP_CHANNEL
    pub(super) fn create_channel(&mut self, context: ContextId) -> Result<(), c_int> {
        let fd = self.state.make_channel(self.device, context)?;
        self.request.answer(&abi::CreateCompChannelResp { fd: fd.cast_unsigned() })
    }

    /// CREATE_CQ
    pub(super) fn create_cq(&mut self, context: ContextId) -> Result<(), c_int> {
        let request: abi::CreateCq = self.request.core()?;
        let (user_handle, cqe) = (request.user_handle, request.cqe);
        let created = self.make_cq(context, user_handle, cqe, request.comp_vector, request.comp_channel)?;
        let core = abi::CreateCqResp { cq_handle: created.handle.0, cqe: created.entries };
        self.request.answer_both(&core, &mlx5::CreateCqResp { cqn: created.cqn, reserved: 0 })
    }

    /// CREATE_CQ, extended.
    pub(super) fn create_cq_ex(&mut self, context: ContextId) -> Result<(), c_int> {
        let (request, ()) = self.request.core_and_tail::<abi::ExCreateCq, ()>()?;
        let known = CQ_FLAG_TIMESTAMP | CQ_FLAG_IGNORE_OVERRUN;
        if request.comp_mask != 0 || request.reserved != 0 {
            return Err(libc::EINVAL);
        }
        if request.flags & !known != 0 {
            return Err(libc::EOPNOTSUPP);
        }
        let (user_handle, cqe) = (request.user_handle, request.cqe);
        let created = self.make_cq(context, user_handle, cqe, request.comp_vector, request.comp_channel)?;
        let base = abi::CreateCqResp { cq_handle: created.handle.0, cqe: created.entries };
        let response_length = u32::try_from(size_of::<abi::ExCreateCqResp>()).unwrap_or(0);
        let core = abi::ExCreateCqResp { base, comp_mask: 0, response_length };
        self.request.answer_both(&core, &mlx5::CreateCqResp { cqn: created.cqn, reserved: 0 })
    }

    fn make_cq(
        &mut self,
        context: ContextId,
        user_handle: u64,
        entries: u32,
        vector: u32,
        channel: i32,
    ) -> Result<CqCreated, c_int> {
        let driver: mlx5::CreateCq = self.request.driver(CREATE_CQ_MIN)?;
        let is_size = driver.cqe_size == 64 || driver.cqe_size == 128;
        // Compressed completions are not offered, neither is a page of registers of the program's choice.
        let is_offered = driver.cqe_comp_en == 0 && driver.flags & !CQ_FLAG_PADDED == 0;
        if vector >= COMPLETION_VECTORS || !is_size || !is_offered {
            return Err(libc::EINVAL);
        }
        let channel = self.channel(context, channel)?;
        let request = CreateCq {
            user_handle,
            entries,
            vector,
            channel,
            buffer: driver.buf_addr,
            doorbell: driver.db_addr,
            cqe_size: driver.cqe_size,
        };
        self.state.hca.create_cq(context, &request).map_err(refused)
    }

    fn channel(&self, context: ContextId, fd: i32) -> Result<Option<ChannelId>, c_int> {
        // The kernel takes any negative number for none.
        if fd < 0 { Ok(None) } else { self.state.channel(context, fd).map(Some) }
    }

    /// RESIZE_CQ
    pub(super) fn resize_cq(&mut self, context: ContextId) -> Result<(), c_int> {
        let request: abi::ResizeCq = self.request.core()?;
        self.state.hca.resize_cq(context, Handle(request.cq_handle)).map_err(refused)
    }

    /// DESTROY_CQ
    pub(super) fn destroy_cq(&mut self, context: ContextId) -> Result<(), c_int> {
        let request: abi::Destroy = self.request.core()?;
        let cq = Handle(request.handle);
        // What the model has brought forth so far may be read; later than this nothing comes.
        self.state.pump();
        self.state.hca.destroy_cq(context, cq).map_err(refused)?;
        self.request.answer(&abi::DestroyCqResp {
            comp_events_reported: self.state.forget_completions(cq.0),
            async_events_reported: self.state.forget_asyncs(context, (EventKind::Cq, cq.0)),
        })
    }
}

/// The other side's address on Ethernet: all are this card.
const MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x01];
/// Up to the size of a completion.
const CREATE_CQ_MIN: usize = 20;
/// `MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD`
const CQ_FLAG_PADDED: u16 = 1;
/// `IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION`
const CQ_FLAG_TIMESTAMP: u32 = 1;
/// `IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN`
const CQ_FLAG_IGNORE_OVERRUN: u32 = 2;
