//! Contexts, protection domains, memory regions, and what the device says of itself.

use super::config::LinkLayer;
use super::device::Hca;
use super::errno::Errno;
use super::memory::HostMemory;
use super::requests::{
    ContextId, DeviceAttributes, Element, Handle, MemoryRegistered, PdCreated, PortAttributes,
    RegisterMemory, TagMatchingCaps,
};
use super::verbs::access;

impl<M: HostMemory> Hca<M> {
    /// Another `active_mtu` of the port (`ibv_mtu`), as after a change of the network's: what is connected stays as it is.
    pub fn set_mtu(&mut self, mtu: u8) {
        self.config.mtu = mtu;
    }

    /// `open` of the device node.
    pub fn open_context(&mut self) -> ContextId {
        loop {
            self.numbers.context = self.numbers.context.wrapping_add(1);
            let context = ContextId(self.numbers.context);
            if self.contexts.insert(context) {
                return context;
            }
        }
    }

    /// Its last `close`: destroys all objects of the context, in the right order, and drops its events.
    pub fn close_context(&mut self, context: ContextId) {
        let of = |owner: ContextId| owner == context;
        let qps: Vec<u32> = self.qps.iter().filter(|(_, qp)| of(qp.context)).map(|(&qpn, _)| qpn).collect();
        for qpn in qps {
            self.reset_qp(qpn);
            self.qps.remove(&qpn);
        }
        self.srqs.retain(|_, srq| !of(srq.context));
        self.cqs.retain(|_, cq| !of(cq.context));
        self.regions.remove_context(context);
        self.pds.retain(|_, owner| !of(*owner));
        self.completion_events.retain(|event| !of(event.context));
        self.async_events.retain(|event| !of(event.context));
        self.contexts.remove(&context);
    }

    /// ALLOC_PD.
    ///
    /// # Errors
    /// ENOMEM: too many.
    pub fn alloc_pd(&mut self, context: ContextId) -> Result<PdCreated, Errno> {
        self.check_context(context)?;
        if self.pds.len() >= self.config.limits.protection_domains as usize {
            return Err(Errno::NO_MEMORY);
        }
        let pdn = self.numbers.pd(&self.pds);
        self.pds.insert(pdn, context);
        Ok(PdCreated { handle: Handle(pdn), pdn })
    }

    /// DEALLOC_PD.
    ///
    /// # Errors
    /// EINVAL: no such PD. EBUSY: in use.
    pub fn dealloc_pd(&mut self, context: ContextId, pd: Handle) -> Result<(), Errno> {
        self.find_pd(context, pd)?;
        let used = self.regions.is_domain_used(pd.0)
            || self.qps.values().any(|qp| qp.pd == pd.0)
            || self.srqs.values().any(|srq| srq.pd == pd.0);
        if used {
            return Err(Errno::BUSY);
        }
        self.pds.remove(&pd.0);
        Ok(())
    }

    /// REG_MR.
    ///
    /// # Errors
    /// EINVAL: flags, a length of 0, an end beyond the address space, an `hca_va` of another page offset. EFAULT:
    /// not memory. ENOMEM: too many, or more than may be locked.
    pub fn register_memory(
        &mut self,
        context: ContextId,
        request: &RegisterMemory,
    ) -> Result<MemoryRegistered, Errno> {
        self.find_pd(context, request.pd)?;
        let RegisterMemory { start, length, hca_va, access, .. } = *request;
        // ib_check_mr_access and ib_umem_get.
        let needs_local_write = access & (access::REMOTE_ATOMIC | access::REMOTE_WRITE) != 0;
        let end = start.checked_add(length).and_then(|end| end.checked_add(PAGE - 1));
        if access & !(MEMORY_ACCESS | access::OPTIONAL) != 0
            || needs_local_write && access & access::LOCAL_WRITE == 0
            || start % PAGE != hca_va % PAGE
            || length == 0
            || length > self.config.limits.memory_region_length
            || end.is_none()
            || hca_va.checked_add(length).is_none()
        {
            return Err(Errno::INVALID);
        }
        if !self.memory.is_mapped(start, length) {
            return Err(Errno::FAULT);
        }
        if length > self.config.limits.locked
            || self.regions.len() >= self.config.limits.memory_regions as usize
        {
            return Err(Errno::NO_MEMORY);
        }
        let key = self.regions.insert(context, request.pd.0, request);
        Ok(MemoryRegistered { handle: Handle(key), lkey: key, rkey: key })
    }

    /// DEREG_MR.
    ///
    /// # Errors
    /// EINVAL: no such MR.
    pub fn deregister_memory(&mut self, context: ContextId, mr: Handle) -> Result<(), Errno> {
        let found = self.regions.find(mr.0).filter(|region| region.context == context);
        found.ok_or(Errno::INVALID)?;
        self.regions.remove(mr.0);
        Ok(())
    }

    pub(crate) fn check_context(&self, context: ContextId) -> Result<(), Errno> {
        if self.contexts.contains(&context) { Ok(()) } else { Err(Errno::INVALID) }
    }

    pub(crate) fn find_pd(&self, context: ContextId, pd: Handle) -> Result<(), Errno> {
        self.pds.get(&pd.0).filter(|owner| **owner == context).map(|_| ()).ok_or(Errno::INVALID)
    }

    pub(crate) fn drop_async_events(&mut self, element: Element) {
        self.async_events.retain(|event| event.element != element);
    }

    /// QUERY_DEVICE.
    #[must_use]
    pub fn query_device(&self) -> DeviceAttributes {
        let limits = self.config.limits;
        DeviceAttributes {
            fw_ver: FIRMWARE,
            node_guid: self.config.node_guid,
            sys_image_guid: self.config.node_guid,
            max_mr_size: limits.memory_region_length,
            page_size_cap: 0xffff_f000,
            vendor_id: 0x02c9,
            vendor_part_id: 0x1017,
            hw_ver: 0,
            max_qp: limits.qps,
            max_qp_wr: limits.qp_work_requests,
            device_cap_flags: DEVICE_CAPS,
            max_sge: limits.segments,
            max_sge_rd: limits.segments,
            max_cq: limits.cqs,
            max_cqe: limits.cq_entries,
            max_mr: limits.memory_regions,
            max_pd: limits.protection_domains,
            max_qp_rd_atom: u32::from(limits.reads),
            max_res_rd_atom: u32::from(limits.reads).saturating_mul(limits.qps),
            max_qp_init_rd_atom: u32::from(limits.reads),
            atomic_cap: 1,
            max_ah: i32::MAX.cast_unsigned(),
            max_srq: limits.srqs,
            max_srq_wr: limits.srq_work_requests,
            max_srq_sge: limits.srq_segments,
            max_pkeys: 1,
            local_ca_ack_delay: 16,
            phys_port_cnt: self.config.ports,
            tm: self.tag_matching_caps(),
        }
    }

    /// TM-CONTRACT 2, as newer kernels say it.
    fn tag_matching_caps(&self) -> TagMatchingCaps {
        let max_num_tags = self.config.tags_max();
        if max_num_tags == 0 {
            return TagMatchingCaps::default();
        }
        let rendezvous = self.config.rendezvous;
        TagMatchingCaps {
            max_rndv_hdr_size: if rendezvous { 64 } else { 0 },
            max_num_tags,
            flags: u32::from(rendezvous),
            max_ops: self.config.limits.tag_operations,
            max_sge: 1,
        }
    }

    /// QUERY_PORT.
    ///
    /// # Errors
    /// EINVAL: no such port.
    pub fn query_port(&self, port: u8) -> Result<PortAttributes, Errno> {
        if !(1..=self.config.ports).contains(&port) {
            return Err(Errno::INVALID);
        }
        let infiniband = self.config.link_layer == LinkLayer::InfiniBand;
        let lid = if infiniband { self.config.lid } else { 0 };
        Ok(PortAttributes {
            port_cap_flags: PORT_CAPS,
            max_msg_sz: self.config.limits.message_length,
            bad_pkey_cntr: 0,
            qkey_viol_cntr: 0,
            gid_tbl_len: 1,
            pkey_tbl_len: 1,
            lid,
            sm_lid: lid,
            state: PORT_ACTIVE,
            max_mtu: 5,
            active_mtu: self.config.mtu,
            lmc: 0,
            max_vl_num: 4,
            sm_sl: 0,
            subnet_timeout: 18,
            init_type_reply: 0,
            active_width: WIDTH_4X,
            active_speed: SPEED_EDR,
            phys_state: LINK_UP,
            link_layer: if infiniband { 1 } else { 2 },
        })
    }

    /// An entry of the GID table.
    ///
    /// # Errors
    /// EINVAL: no such port or entry.
    pub fn gid(&self, port: u8, index: u32) -> Result<[u8; 16], Errno> {
        if (1..=self.config.ports).contains(&port) && index == 0 {
            Ok(self.config.gid)
        } else {
            Err(Errno::INVALID)
        }
    }

    /// An entry of the P_Key table.
    ///
    /// # Errors
    /// EINVAL: no such port or entry.
    pub fn pkey(&self, port: u8, index: u32) -> Result<u16, Errno> {
        if (1..=self.config.ports).contains(&port) && index == 0 {
            Ok(DEFAULT_PKEY)
        } else {
            Err(Errno::INVALID)
        }
    }
}

/// What the hardware would have to translate; larger ones are not offered.
const PAGE: u64 = 4096;
const MEMORY_ACCESS: u32 = access::LOCAL_WRITE
    | access::REMOTE_WRITE
    | access::REMOTE_READ
    | access::REMOTE_ATOMIC
    | access::MW_BIND
    | access::ZERO_BASED
    | access::HUGETLB;
/// 16.35.1012: a version that knows tag matching.
const FIRMWARE: u64 = 16 << 32 | 35 << 16 | 1012;
/// Bad-P_Key counter, Q_Key violation counter, port active event, system image GUID, RC RNR NAK, SRQ resize not.
const DEVICE_CAPS: u32 = 1 << 1 | 1 << 2 | 1 << 10 | 1 << 11 | 1 << 12;
/// Is a subnet manager's client; P_Key switch; extended speeds.
const PORT_CAPS: u32 = 1 << 14 | 1 << 22;
const PORT_ACTIVE: u8 = 4;
const WIDTH_4X: u8 = 2;
const SPEED_EDR: u8 = 32;
const LINK_UP: u8 = 5;
const DEFAULT_PKEY: u16 = 0xffff;
