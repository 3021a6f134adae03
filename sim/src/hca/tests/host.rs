//! The host's side: memory handed out, queues written and read as libmlx5 would.

use zerocopy::{FromBytes, IntoBytes};

use crate::hca::layout::{
    AtomicSegment, ControlSegment, Cqe, DataSegment, NextSegment, RemoteSegment, control, cqe_opcode,
    wqe_opcode,
};
use crate::hca::verbs::{access, attribute, qp_type, state};
use crate::hca::{
    AddressVector, Arena, ChannelId, ContextId, CreateCq, CreateQp, CreateSrq, Errno, Handle, Hca, HcaConfig,
    HostMemory, QpAttributes, QpCaps, RegisterMemory, SrqKind,
};

pub(super) const BASE: u64 = 0x10_0000;
const LENGTH: usize = 4 << 20;
pub(super) const CHANNEL: ChannelId = ChannelId(7);

#[derive(Debug)]
pub(super) struct Host {
    pub(super) hca: Hca<Arena>,
    pub(super) context: ContextId,
    pub(super) pd: Handle,
    /// Reaches everything, with all rights.
    pub(super) key: u32,
    next: u64,
}

#[derive(Debug)]
pub(super) struct Cq {
    pub(super) handle: Handle,
    buffer: u64,
    doorbell: u64,
    size: u32,
    cqe_size: u32,
    consumed: u32,
}

#[derive(Debug)]
pub(super) struct Qp {
    pub(super) handle: Handle,
    pub(super) qpn: u32,
    pub(super) uidx: u32,
    rq_base: u64,
    rq_count: u32,
    sq_base: u64,
    pub(super) sq_count: u32,
    pub(super) doorbell: u64,
    pub(super) posted: u16,
    received: u16,
}

#[derive(Debug)]
pub(super) struct Srq {
    pub(super) handle: Handle,
    pub(super) uidx: u32,
    buffer: u64,
    doorbell: u64,
    count: u16,
    /// The next WQE to fill.
    head: u16,
    /// The last of the free list.
    tail: u16,
    counter: u16,
}

impl Qp {
    pub(super) const fn sq_address(&self) -> u64 {
        self.sq_base
    }

    /// As the driver does with a QP that is RESET.
    pub(super) const fn reset(&mut self) {
        (self.posted, self.received) = (0, 0);
    }
}

/// What a QP is made with.
#[derive(Clone, Copy, Debug)]
pub(super) struct QpOptions {
    pub(super) qp_type: u8,
    pub(super) srq: Option<Handle>,
    pub(super) send: u32,
    pub(super) receive: u32,
}

impl Default for QpOptions {
    fn default() -> Self {
        Self { qp_type: qp_type::RC, srq: None, send: 64, receive: 64 }
    }
}

impl Host {
    pub(super) fn new() -> Self {
        Self::with(HcaConfig::default())
    }

    pub(super) fn with(config: HcaConfig) -> Self {
        let mut hca = Hca::new(config, Arena::new(BASE, LENGTH));
        let context = hca.open_context();
        let pd = hca.alloc_pd(context).unwrap().handle;
        let access = access::LOCAL_WRITE | access::REMOTE_WRITE | access::REMOTE_READ | access::REMOTE_ATOMIC;
        let whole = RegisterMemory { pd, start: BASE, length: LENGTH as u64, hca_va: BASE, access };
        let key = hca.register_memory(context, &whole).unwrap().lkey;
        Self { hca, context, pd, key, next: BASE + 4096 }
    }

    pub(super) fn alloc(&mut self, length: u64) -> u64 {
        let address = self.next.next_multiple_of(64);
        self.next = address + length;
        assert!(self.next <= BASE + LENGTH as u64, "the test's memory is used up");
        address
    }

    /// Registers one stretch on its own.
    pub(super) fn register(&mut self, start: u64, length: u64, access: u32) -> Result<u32, Errno> {
        let request = RegisterMemory { pd: self.pd, start, length, hca_va: start, access };
        self.hca.register_memory(self.context, &request).map(|registered| registered.lkey)
    }

    pub(super) fn fill(&mut self, address: u64, bytes: &[u8]) {
        self.hca.memory_mut().write(address, bytes).unwrap();
    }

    pub(super) fn bytes(&self, address: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.hca.memory().read(address, &mut bytes).unwrap();
        bytes
    }

    /// Memory with these bytes.
    pub(super) fn data(&mut self, bytes: &[u8]) -> u64 {
        let address = self.alloc(bytes.len().max(1) as u64);
        self.fill(address, bytes);
        address
    }

    pub(super) fn store(&mut self, address: u64, value: u32) {
        self.hca.memory_mut().store_release(address, value).unwrap();
    }

    pub(super) fn cq(&mut self, entries: u32) -> Cq {
        self.cq_of(entries, 64)
    }

    pub(super) fn cq_of(&mut self, entries: u32, cqe_size: u32) -> Cq {
        let size = entries.next_power_of_two();
        let buffer = self.alloc(u64::from(size * cqe_size));
        for entry in 0..size {
            let last = buffer + u64::from((entry + 1) * cqe_size) - 1;
            self.fill(last, &[0xf0]);
        }
        let doorbell = self.alloc(8);
        let request = CreateCq {
            user_handle: doorbell,
            entries: size - 1,
            vector: 0,
            channel: Some(CHANNEL),
            buffer,
            doorbell,
            cqe_size,
        };
        let handle = self.hca.create_cq(self.context, &request).unwrap().handle;
        Cq { handle, buffer, doorbell, size, cqe_size, consumed: 0 }
    }

    pub(super) fn poll(&mut self, cq: &mut Cq) -> Option<Cqe> {
        let slot = u64::from(cq.consumed & (cq.size - 1));
        let place = cq.buffer + slot * u64::from(cq.cqe_size) + u64::from(cq.cqe_size - 64);
        let cqe = Cqe::read_from_bytes(&self.bytes(place, 64)).unwrap();
        let owner = u8::from(cq.consumed & cq.size != 0);
        if cqe.opcode() == 15 || cqe.op_own & 1 != owner {
            return None;
        }
        cq.consumed += 1;
        self.store(cq.doorbell, cq.consumed & 0x00ff_ffff);
        Some(cqe)
    }

    pub(super) fn poll_all(&mut self, cq: &mut Cq) -> Vec<Cqe> {
        std::iter::from_fn(|| self.poll(cq)).collect()
    }

    pub(super) fn arm(&mut self, cq: &Cq, sequence: u32, solicited_only: bool) {
        let word = sequence << 28 | u32::from(solicited_only) << 24 | cq.consumed & 0x00ff_ffff;
        self.store(cq.doorbell + 4, word);
        let _ = self.hca.steps();
    }

    pub(super) fn qp(&mut self, cq: &Cq, options: QpOptions) -> Qp {
        self.try_qp(cq, options).unwrap()
    }

    pub(super) fn try_qp(&mut self, cq: &Cq, options: QpOptions) -> Result<Qp, Errno> {
        let rq_length = u64::from(options.receive) * 64;
        let buffer = self.alloc(rq_length + u64::from(options.send) * 64);
        let doorbell = self.alloc(8);
        let uidx = u32::try_from(buffer & 0x00ff_ffff).unwrap();
        let request = CreateQp {
            user_handle: buffer,
            pd: self.pd,
            send_cq: cq.handle,
            recv_cq: cq.handle,
            srq: options.srq,
            qp_type: options.qp_type,
            sq_sig_all: false,
            caps: QpCaps {
                max_send_wr: options.send,
                max_recv_wr: options.receive,
                max_send_sge: 1,
                max_recv_sge: 4,
                max_inline_data: 0,
            },
            buffer,
            doorbell,
            sq_wqe_count: options.send,
            rq_wqe_count: options.receive,
            rq_wqe_shift: if options.receive > 0 { 6 } else { 0 },
            flags: 0,
            uidx,
        };
        let created = self.hca.create_qp(self.context, &request)?;
        let sq_base = if options.srq.is_some() { buffer } else { buffer + rq_length };
        Ok(Qp {
            handle: created.handle,
            qpn: created.qpn,
            uidx,
            rq_base: buffer,
            rq_count: options.receive,
            sq_base,
            sq_count: options.send,
            doorbell,
            posted: 0,
            received: 0,
        })
    }

    /// Two RC QPs, connected, both completing on this CQ.
    pub(super) fn pair(&mut self, cq: &Cq) -> (Qp, Qp) {
        let (a, b) = (self.qp(cq, QpOptions::default()), self.qp(cq, QpOptions::default()));
        self.connect(&a, &b, attributes());
        (a, b)
    }

    pub(super) fn connect(&mut self, a: &Qp, b: &Qp, attributes: QpAttributes) {
        self.to_rts(a, b.qpn, attributes);
        self.to_rts(b, a.qpn, attributes);
    }

    pub(super) fn to_rts(&mut self, qp: &Qp, dest_qpn: u32, attributes: QpAttributes) {
        self.to_rtr(qp, dest_qpn, attributes);
        self.modify(qp, attribute::STATE | RTS, QpAttributes { state: state::RTS, ..attributes }).unwrap();
    }

    pub(super) fn to_rtr(&mut self, qp: &Qp, dest_qpn: u32, attributes: QpAttributes) {
        let attributes = QpAttributes { dest_qpn, ..attributes };
        self.modify(qp, attribute::STATE | INIT, QpAttributes { state: state::INIT, ..attributes }).unwrap();
        self.modify(qp, attribute::STATE | RTR, QpAttributes { state: state::RTR, ..attributes }).unwrap();
    }

    /// A UD QP that can send and receive.
    pub(super) fn datagram_qp(&mut self, cq: &Cq) -> Qp {
        let qp = self.qp(cq, QpOptions { qp_type: qp_type::UD, ..QpOptions::default() });
        let to = |state| QpAttributes { state, qkey: QKEY, port: 1, ..QpAttributes::default() };
        let init = attribute::STATE | attribute::PKEY_INDEX | attribute::PORT | attribute::QKEY;
        self.modify(&qp, init, to(state::INIT)).unwrap();
        self.modify(&qp, attribute::STATE, to(state::RTR)).unwrap();
        self.modify(&qp, attribute::STATE | attribute::SQ_PSN, to(state::RTS)).unwrap();
        qp
    }

    pub(super) fn modify(&mut self, qp: &Qp, mask: u32, attributes: QpAttributes) -> Result<(), Errno> {
        self.hca.modify_qp(self.context, qp.handle, mask, &attributes)
    }

    pub(super) fn state(&self, qp: &Qp) -> u8 {
        self.hca.query_qp(self.context, qp.handle).unwrap().attributes.state
    }

    /// Writes a WQE into the ring and rings the bell.
    pub(super) fn post(&mut self, qp: &mut Qp, wqe: &Wqe) {
        let bytes = wqe.bytes(qp.posted, qp.qpn);
        for (block, part) in bytes.chunks(64).enumerate() {
            let at = (u32::from(qp.posted) + u32::try_from(block).unwrap()) & (qp.sq_count - 1);
            self.fill(qp.sq_base + u64::from(at) * 64, part);
        }
        qp.posted = qp.posted.wrapping_add(u16::try_from(bytes.len().div_ceil(64)).unwrap());
        self.store(qp.doorbell + 4, u32::from(qp.posted));
    }

    pub(super) fn receive(&mut self, qp: &mut Qp, segments: &[(u32, u64, u32)]) {
        let at = u64::from(u32::from(qp.received) & (qp.rq_count - 1)) * 64;
        self.fill(qp.rq_base + at, &segment_list(segments, 4));
        qp.received = qp.received.wrapping_add(1);
        self.store(qp.doorbell, u32::from(qp.received));
    }

    /// Posts a receive of so many bytes and says where.
    pub(super) fn receive_into(&mut self, qp: &mut Qp, length: u32) -> u64 {
        let address = self.alloc(u64::from(length.max(1)));
        self.receive(qp, &[(self.key, address, length)]);
        address
    }

    pub(super) fn srq(&mut self, max_wr: u32) -> Srq {
        self.srq_of(max_wr, SrqKind::Basic).unwrap()
    }

    pub(super) fn srq_of(&mut self, max_wr: u32, kind: SrqKind) -> Result<Srq, Errno> {
        let count = u16::try_from((max_wr + 1).next_power_of_two()).unwrap();
        let buffer = self.alloc(u64::from(count) * 32);
        let doorbell = self.alloc(8);
        for index in 0..count {
            let next = NextSegment {
                reserved0: [0; 2],
                next_wqe_index: ((index + 1) % count).into(),
                signature: 0,
                reserved1: [0; 11],
            };
            self.fill(buffer + u64::from(index) * 32, next.as_bytes());
        }
        let uidx = u32::try_from(buffer & 0x00ff_ffff).unwrap();
        let request = CreateSrq {
            user_handle: buffer,
            pd: self.pd,
            kind,
            max_wr,
            max_sge: 1,
            limit: 0,
            buffer,
            doorbell,
            uidx,
        };
        let handle = self.hca.create_srq(self.context, &request)?.handle;
        Ok(Srq { handle, uidx, buffer, doorbell, count, head: 0, tail: count - 1, counter: 0 })
    }

    /// Posts a receive to the SRQ; which WQE it took.
    pub(super) fn srq_receive(&mut self, srq: &mut Srq, segment: (u32, u64, u32)) -> u16 {
        let index = srq.head;
        assert_ne!(index, srq.tail, "the SRQ is full");
        let place = srq.buffer + u64::from(index) * 32;
        self.fill(place + 16, &segment_list(&[segment], 1));
        srq.head = u16::from_be_bytes(*self.bytes(place + 2, 2).first_chunk().unwrap());
        srq.counter = srq.counter.wrapping_add(1);
        self.store(srq.doorbell, u32::from(srq.counter));
        index
    }

    /// As `mlx5_free_srq_wqe`: behind the tail of the free list.
    pub(super) fn srq_free(&mut self, srq: &mut Srq, index: u16) {
        assert!(index < srq.count);
        self.fill(srq.buffer + u64::from(srq.tail) * 32 + 2, &index.to_be_bytes());
        srq.tail = index;
    }

    /// Makes the first WQE of the list name this one as the next.
    pub(super) fn break_srq(&mut self, srq: &Srq, next: u16) {
        self.fill(srq.buffer + 2, &next.to_be_bytes());
    }

    pub(super) fn run(&mut self) {
        self.hca.run_until_idle();
    }
}

pub(super) const QKEY: u32 = 0x1111_1111;

const INIT: u32 = attribute::PKEY_INDEX | attribute::PORT | attribute::ACCESS_FLAGS;
const RTR: u32 = attribute::AV
    | attribute::PATH_MTU
    | attribute::DEST_QPN
    | attribute::RQ_PSN
    | attribute::MAX_DEST_RD_ATOMIC
    | attribute::MIN_RNR_TIMER;
const RTS: u32 = attribute::TIMEOUT
    | attribute::RETRY_CNT
    | attribute::RNR_RETRY
    | attribute::SQ_PSN
    | attribute::MAX_QP_RD_ATOMIC;

/// Everything allowed, small packets.
pub(super) fn attributes() -> QpAttributes {
    QpAttributes {
        path_mtu: 1,
        access: access::REMOTE_WRITE | access::REMOTE_READ | access::REMOTE_ATOMIC,
        max_rd_atomic: 4,
        max_dest_rd_atomic: 4,
        min_rnr_timer: 12,
        port: 1,
        timeout: 14,
        retry_count: 7,
        rnr_retry: 7,
        path: AddressVector { dlid: 1, port: 1, ..AddressVector::default() },
        ..QpAttributes::default()
    }
}

pub(super) fn segment_list(segments: &[(u32, u64, u32)], room: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for &(key, address, length) in segments {
        bytes.extend_from_slice(data_segment(key, address, length).as_bytes());
    }
    if segments.len() < room {
        bytes.extend_from_slice(data_segment(0x100, 0, 0).as_bytes());
    }
    bytes
}

fn data_segment(key: u32, address: u64, length: u32) -> DataSegment {
    DataSegment { byte_count: length.into(), lkey: key.into(), address: address.into() }
}

/// A work request in the making.
#[derive(Clone, Debug)]
pub(super) struct Wqe {
    opcode: u8,
    flags: u8,
    immediate: [u8; 4],
    body: Vec<u8>,
}

impl Wqe {
    pub(super) fn new(opcode: u8) -> Self {
        Self { opcode, flags: control::CQ_UPDATE, immediate: [0; 4], body: Vec::new() }
    }

    pub(super) fn send(key: u32, address: u64, length: u32) -> Self {
        Self::new(wqe_opcode::SEND).data(key, address, length)
    }

    pub(super) fn unsignalled(mut self) -> Self {
        self.flags &= !control::CQ_UPDATE;
        self
    }

    pub(super) fn solicited(mut self) -> Self {
        self.flags |= control::SOLICITED;
        self
    }

    pub(super) fn fence(mut self) -> Self {
        self.flags |= 4 << 5;
        self
    }

    pub(super) fn immediate(mut self, immediate: [u8; 4]) -> Self {
        self.immediate = immediate;
        self
    }

    pub(super) fn raw(mut self, bytes: &[u8]) -> Self {
        self.body.extend_from_slice(bytes);
        self
    }

    pub(super) fn remote(self, key: u32, address: u64) -> Self {
        let segment = RemoteSegment { address: address.into(), rkey: key.into(), reserved: 0.into() };
        self.raw(segment.as_bytes())
    }

    pub(super) fn atomic(self, swap_add: u64, compare: u64) -> Self {
        let segment = AtomicSegment { swap_add: swap_add.into(), compare: compare.into() };
        self.raw(segment.as_bytes())
    }

    pub(super) fn data(self, key: u32, address: u64, length: u32) -> Self {
        self.raw(data_segment(key, address, length).as_bytes())
    }

    pub(super) fn inline(mut self, bytes: &[u8]) -> Self {
        let length = u32::try_from(bytes.len()).unwrap() | 0x8000_0000;
        self.body.extend_from_slice(&length.to_be_bytes());
        self.body.extend_from_slice(bytes);
        self.body.resize(self.body.len().next_multiple_of(16), 0);
        self
    }

    fn bytes(&self, index: u16, qpn: u32) -> Vec<u8> {
        let units = u32::try_from(1 + self.body.len().div_ceil(16)).unwrap();
        let control = ControlSegment {
            opmod_index_opcode: (u32::from(index) << 8 | u32::from(self.opcode)).into(),
            qpn_ds: (qpn << 8 | units).into(),
            signature: 0,
            stream: 0.into(),
            flags: self.flags,
            immediate: self.immediate,
        };
        [control.as_bytes(), &self.body].concat()
    }
}

/// Of an error completion: opcode, and what the driver makes `ibv_wc_status` of.
pub(super) fn syndrome(cqe: &Cqe) -> u8 {
    assert!(matches!(cqe.opcode(), cqe_opcode::REQUESTER_ERROR | cqe_opcode::RESPONDER_ERROR), "{cqe:?}");
    cqe.timestamp[7]
}

pub(super) fn opcodes(cqes: &[Cqe]) -> Vec<u8> {
    cqes.iter().map(Cqe::opcode).collect()
}

/// Bytes that differ from each other.
pub(super) fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| u8::try_from((at * 7 + at / 251) % 256).unwrap()).collect()
}
