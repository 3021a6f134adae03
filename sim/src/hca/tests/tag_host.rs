//! A TM-SRQ as libmlx5 sets it up, and the messages that come to it.

use super::host::{Cq, Host, Qp, QpOptions, Srq, Wqe, attributes};
use crate::hca::layout::{Cqe, wqe_opcode};
use crate::hca::tm::app_op;
use crate::hca::{HcaConfig, QpAttributes, SrqKind, Step};
use tagmatch::device::soft::Switches;

/// A TM-SRQ with its command QP, and one sender connected to one receive QP.
#[derive(Debug)]
pub(super) struct Tags {
    pub(super) host: Host,
    pub(super) cq: Cq,
    pub(super) srq: Srq,
    command: Qp,
    /// Without a send queue, at the TM-SRQ.
    pub(super) receiver: Qp,
    pub(super) sender: Qp,
    pub(super) sender_cq: Cq,
    free: std::collections::VecDeque<u16>,
}

/// What an `ibv_post_srq_ops` asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Count(pub(super) Option<u16>);

pub(super) const NO_COUNT: Count = Count(None);
pub(super) const UNEXPECTED_LENGTH: u32 = 1024;

impl Tags {
    pub(super) fn new() -> Self {
        Self::with(HcaConfig::default())
    }

    pub(super) fn switched(switches: Switches) -> Self {
        Self::with(HcaConfig { switches, ..HcaConfig::default() })
    }

    pub(super) fn with(config: HcaConfig) -> Self {
        let mut tags = Self::without_buffers(config);
        tags.fill_buffers(40);
        tags
    }

    pub(super) fn without_buffers(config: HcaConfig) -> Self {
        let mut host = Host::with(config);
        let (cq, sender_cq) = (host.cq(256), host.cq(256));
        let srq = host.srq_of(63, SrqKind::TagMatching { tags: TAGS, cq: cq.handle }).unwrap();
        let at_srq = QpOptions { srq: Some(srq.handle), receive: 0, ..QpOptions::default() };
        let command = host.qp(&cq, at_srq);
        let command_attributes =
            QpAttributes { max_rd_atomic: 0, max_dest_rd_atomic: 0, access: 0, ..attributes() };
        host.to_rts(&command, command.qpn, command_attributes);
        let receiver = host.qp(&cq, QpOptions { send: 0, ..at_srq });
        let sender = host.qp(&sender_cq, QpOptions { send: 256, ..QpOptions::default() });
        host.connect(&receiver, &sender, attributes());
        let free = (0..=u16::try_from(TAGS).unwrap()).collect();
        Self { host, cq, srq, command, receiver, sender, sender_cq, free }
    }

    pub(super) fn fill_buffers(&mut self, count: usize) {
        for _ in 0..count {
            let address = self.host.alloc(u64::from(UNEXPECTED_LENGTH));
            self.host.srq_receive(&mut self.srq, (self.host.key, address, UNEXPECTED_LENGTH));
        }
    }

    /// Another sender with a receive QP that has, or has not, a send queue of its own.
    pub(super) fn another(&mut self, send: u32) -> (Qp, Qp) {
        let options = QpOptions { srq: Some(self.srq.handle), receive: 0, send, ..QpOptions::default() };
        let receiver = self.host.qp(&self.cq, options);
        let sender = self.host.qp(&self.sender_cq, QpOptions::default());
        self.host.connect(&receiver, &sender, attributes());
        (receiver, sender)
    }

    fn command(&mut self, opcode: u8, index: u16, count: Count, rest: &[u8]) {
        let flags = 0x80 | if count.0.is_some() { 0x40 } else { 0 };
        let [i0, i1] = index.to_be_bytes();
        let [c0, c1] = count.0.unwrap_or(0x5555).to_be_bytes();
        let mut body = vec![opcode << 4, flags, i0, i1, 0, 0, c0, c1];
        body.extend_from_slice(&[0; 8]);
        body.extend_from_slice(rest);
        body.resize(body.len().max(32), 0);
        let wqe = Wqe::new(wqe_opcode::TAG_MATCHING).unsignalled().raw(&body);
        self.host.post(&mut self.command, &wqe);
    }

    /// APPEND of an exact tag; the entry.
    pub(super) fn add(&mut self, tag: u64, buffer: (u64, u32), count: Count) -> u16 {
        self.add_masked(tag, u64::MAX, buffer, count)
    }

    pub(super) fn add_masked(
        &mut self,
        tag: u64,
        mask: u64,
        (address, length): (u64, u32),
        count: Count,
    ) -> u16 {
        let index = self.free.pop_front().unwrap();
        let next = *self.free.front().unwrap();
        let mut rest = [tag.to_be_bytes(), mask.to_be_bytes()].concat();
        let key = if length == 0 { 0x100 } else { self.host.key };
        rest.extend_from_slice(&[length.to_be_bytes(), key.to_be_bytes()].concat());
        rest.extend_from_slice(&address.to_be_bytes());
        self.command(1, next, count, &rest);
        index
    }

    /// A tagged buffer, added; entry and address.
    pub(super) fn add_new(&mut self, tag: u64, length: u32) -> (u16, u64) {
        let address = self.host.alloc(u64::from(length.max(1)));
        (self.add(tag, (address, length), NO_COUNT), address)
    }

    pub(super) fn remove(&mut self, index: u16, count: Count) {
        self.command(2, index, count, &[]);
    }

    pub(super) fn sync(&mut self, count: u16) {
        self.command(0, 0, Count(Some(count)), &[]);
    }

    /// The entry is free again.
    pub(super) fn give_back(&mut self, index: u16) {
        self.free.push_back(index);
    }

    pub(super) fn send(&mut self, bytes: &[u8]) {
        let wqe = Wqe::new(wqe_opcode::SEND);
        self.send_as(wqe, bytes);
    }

    pub(super) fn send_as(&mut self, wqe: Wqe, bytes: &[u8]) {
        let address = self.host.data(bytes);
        // As libmlx5: no segment for nothing.
        let wqe = match u32::try_from(bytes.len()).unwrap() {
            0 => wqe,
            length => wqe.data(self.host.key, address, length),
        };
        self.host.post(&mut self.sender, &wqe.unsignalled());
    }

    pub(super) fn run(&mut self) {
        self.host.run();
    }

    pub(super) fn poll(&mut self) -> Vec<Cqe> {
        self.host.poll_all(&mut self.cq)
    }

    /// Everything done and polled: (app_op, entry, byte count).
    pub(super) fn outcome(&mut self) -> Vec<(u8, u16, u32)> {
        self.run();
        summary(&self.poll())
    }

    pub(super) fn send_step(&mut self) -> bool {
        self.host.hca.step(Step::Send(self.sender.qpn))
    }

    pub(super) fn deliver(&mut self) -> bool {
        self.host.hca.step(Step::Deliver { from: self.sender.qpn, to: self.receiver.qpn })
    }

    pub(super) fn command_step(&mut self) -> bool {
        self.host.hca.step(Step::Send(self.command.qpn))
    }

    pub(super) fn command_qp(&self) -> &Qp {
        &self.command
    }
}

pub(super) fn summary(cqes: &[Cqe]) -> Vec<(u8, u16, u32)> {
    cqes.iter().map(|cqe| (cqe.app_op, cqe.app_info.get(), cqe.byte_count.get())).collect()
}

/// (success, hw_phase_cnt) of list operations.
pub(super) fn operations(cqes: &[Cqe]) -> Vec<(u8, bool, u16)> {
    let is_operation = |cqe: &&Cqe| matches!(cqe.app_op, app_op::APPEND | app_op::REMOVE | app_op::NOOP);
    let phase = |cqe: &Cqe| u16::from_be_bytes([cqe.head[4], cqe.head[5]]);
    cqes.iter().filter(is_operation).map(|cqe| (cqe.app_op, cqe.head[0] & 0x80 != 0, phase(cqe))).collect()
}

pub(super) fn tmh(opcode: u8, tag: u64) -> Vec<u8> {
    let mut bytes = vec![opcode, 0, 0, 0];
    bytes.extend_from_slice(&APP_CTX);
    bytes.extend_from_slice(&tag.to_be_bytes());
    bytes
}

pub(super) fn eager(tag: u64, payload: &[u8]) -> Vec<u8> {
    [&tmh(3, tag), payload].concat()
}

pub(super) fn rendezvous(tag: u64, (address, key, length): (u64, u32, u32)) -> Vec<u8> {
    let mut bytes = tmh(1, tag);
    bytes.extend_from_slice(&address.to_be_bytes());
    bytes.extend_from_slice(&key.to_be_bytes());
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes
}

pub(super) const APP_CTX: [u8; 4] = [0xa0, 0xa1, 0xa2, 0xa3];
pub(super) const TAGS: u32 = 15;
