//! What a simulated HCA is: limits, addresses, the readings of the doubtful points.

use tagmatch::device::soft::Switches;

/// How a port carries packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LinkLayer {
    /// LIDs; a GRH where asked for.
    #[default]
    InfiniBand,
    /// RoCE: every address vector needs a GRH.
    Ethernet,
}

/// Everything that can be chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HcaConfig {
    /// Names this process on the fabric: the high 8 bits of its QP numbers. Processes share one card, so one LID
    /// and one GID.
    pub process: u8,
    /// See [`LinkLayer`].
    pub link_layer: LinkLayer,
    /// Of port 1.
    pub lid: u16,
    /// GID 0 of port 1: subnet prefix and port GUID.
    pub gid: [u8; 16],
    /// Node GUID, big-endian as a number.
    pub node_guid: u64,
    /// `ibv_mtu` (1 = 256 bytes … 5 = 4096).
    pub mtu: u8,
    /// Physical ports. Both lead to the same place.
    pub ports: u8,
    /// `log_tag_matching_list_sz`: `max_num_tags` is `(1 << this) - 1`; 0: no tag matching.
    pub log_tag_list: u8,
    /// Whether rendezvous is offloaded (`IBV_TM_CAP_RC`).
    pub rendezvous: bool,
    /// A1–A19.
    pub switches: Switches,
    /// Where the phase counters of a new TM-SRQ start: 0 on a real device.
    pub initial_phase: u16,
    /// Request packets a QP may have under way before it waits for an acknowledgement.
    pub window: u32,
    /// See [`Limits`].
    pub limits: Limits,
}

impl Default for HcaConfig {
    fn default() -> Self {
        let gid = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0xff, 0xfe, 0, 0, 0x01];
        Self {
            process: 0,
            link_layer: LinkLayer::InfiniBand,
            lid: 1,
            gid,
            node_guid: 0x0200_00ff_fe00_0001,
            mtu: 5,
            ports: 1,
            log_tag_list: 11,
            rendezvous: true,
            switches: Switches::default(),
            initial_phase: 0,
            window: 64,
            limits: Limits::default(),
        }
    }
}

impl HcaConfig {
    /// The same on Ethernet, with an address that every machine has.
    #[must_use]
    pub fn on_ethernet(self) -> Self {
        let gid = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1];
        Self { link_layer: LinkLayer::Ethernet, gid, ..self }
    }

    /// `tm_caps.max_num_tags`
    #[must_use]
    pub const fn tags_max(&self) -> u32 {
        let log = if self.log_tag_list > 15 { 15 } else { self.log_tag_list };
        (1_u32 << log) - 1
    }
}

/// What creation is checked against. The defaults are those of a ConnectX-5 where known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// QPs in all.
    pub qps: u32,
    /// `max_qp_wr`
    pub qp_work_requests: u32,
    /// 64-byte blocks in a send queue.
    pub send_blocks: u32,
    /// `max_sge`
    pub segments: u32,
    /// `num_comp_vectors`
    pub completion_vectors: u32,
    /// `max_cq`
    pub cqs: u32,
    /// `max_cqe`
    pub cq_entries: u32,
    /// `max_mr`
    pub memory_regions: u32,
    /// Bytes that one registration may lock, of which the device says nothing (`RLIMIT_MEMLOCK`).
    pub locked: u64,
    /// `max_mr_size`
    pub memory_region_length: u64,
    /// `max_pd`
    pub protection_domains: u32,
    /// `max_srq`
    pub srqs: u32,
    /// `max_srq_wr`
    pub srq_work_requests: u32,
    /// `max_srq_sge`
    pub srq_segments: u32,
    /// `max_qp_rd_atom` and `max_qp_init_rd_atom`
    pub reads: u8,
    /// `max_msg_sz`
    pub message_length: u32,
    /// `tm_caps.max_ops`
    pub tag_operations: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            qps: 32_768,
            qp_work_requests: 32_768,
            send_blocks: 32_768,
            segments: 30,
            completion_vectors: 8,
            cqs: 32_768,
            cq_entries: (1 << 22) - 1,
            memory_regions: 1 << 20,
            locked: u64::MAX,
            memory_region_length: u64::MAX,
            protection_domains: 32_768,
            srqs: 32_768,
            srq_work_requests: 32_767,
            srq_segments: 31,
            reads: 16,
            message_length: 1 << 30,
            tag_operations: 32_768,
        }
    }
}
