//! Reading work requests: from the bytes of a ring to what is to be done.

use zerocopy::{FromBytes, Immutable, KnownLayout};

use super::config::LinkLayer;
use super::layout::{
    AddressSegment, AtomicSegment, ControlSegment, DataSegment, EXTENDED_ADDRESS, GlobalAddressSegment,
    INLINE, INVALID_LKEY, RemoteSegment, TagSegment, control, wqe_opcode,
};
use super::packet::{Extension, MASK_24, Operation, Remote};
use super::regions::{Piece, Segment};

/// A work request that was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Wqe {
    pub index: u16,
    pub opcode: u8,
    pub signalled: bool,
    pub solicited: bool,
    pub fence: bool,
    pub action: Action,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    Nothing,
    /// RC; of a read or an atomic the pieces are where the answer goes.
    Request {
        operation: Operation,
        extension: Extension,
        pieces: Vec<Piece>,
    },
    Datagram {
        address: Address,
        immediate: Option<[u8; 4]>,
        pieces: Vec<Piece>,
    },
    Tag(TagCommand),
    /// A work request that no driver writes, or one that is not offered here.
    Malformed,
}

/// A UD address vector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Address {
    pub qpn: u32,
    pub qkey: u32,
    pub lid: u16,
    pub sl: u8,
    grh: Option<GlobalAddress>,
}

impl Address {
    /// What goes into a GRH. On Ethernet there always is one, and the bit that asks for it is reserved.
    pub(crate) fn grh(&self, link_layer: LinkLayer) -> Option<GlobalAddress> {
        self.grh.filter(|grh| grh.is_asked_for || link_layer == LinkLayer::Ethernet)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GlobalAddress {
    pub gid: [u8; 16],
    pub gid_index: u8,
    pub flow_label: u32,
    pub traffic_class: u8,
    pub hop_limit: u8,
    is_asked_for: bool,
}

/// TM-CONTRACT 7
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TagCommand {
    pub operation: TagOperation,
    pub signalled: bool,
    pub count: Option<u16>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TagOperation {
    Noop,
    Append { next_index: u16, tag: u64, mask: u64, buffer: Segment },
    Remove { index: u16 },
}

/// Reads one work request of `ControlSegment::units` units, in one piece.
pub(crate) fn parse(bytes: &[u8], is_datagram: bool, qpn: u32) -> Option<Wqe> {
    let mut bytes = bytes;
    let head: ControlSegment = take(&mut bytes)?;
    let action = if head.qpn() == qpn { action(&head, bytes, is_datagram) } else { None };
    Some(Wqe {
        index: head.index(),
        opcode: head.opcode(),
        signalled: head.flags & control::CQ_UPDATE != 0,
        solicited: head.flags & control::SOLICITED != 0,
        fence: head.flags & control::FENCE != 0,
        action: action.unwrap_or(Action::Malformed),
    })
}

fn action(head: &ControlSegment, mut bytes: &[u8], is_datagram: bool) -> Option<Action> {
    let opcode = head.opcode();
    let extension = match opcode {
        wqe_opcode::SEND_IMMEDIATE | wqe_opcode::RDMA_WRITE_IMMEDIATE => Extension::Immediate(head.immediate),
        wqe_opcode::SEND_INVALIDATE => Extension::Invalidate(u32::from_be_bytes(head.immediate)),
        _ => Extension::None,
    };
    if opcode == wqe_opcode::NOP {
        return Some(Action::Nothing);
    }
    if is_datagram {
        if !matches!(opcode, wqe_opcode::SEND | wqe_opcode::SEND_IMMEDIATE) {
            return None;
        }
        let address = take_address(&mut bytes)?;
        return Some(Action::Datagram { address, immediate: extension.immediate(), pieces: pieces(bytes)? });
    }
    let operation = match opcode {
        wqe_opcode::SEND | wqe_opcode::SEND_IMMEDIATE | wqe_opcode::SEND_INVALIDATE => Operation::Send,
        wqe_opcode::RDMA_WRITE | wqe_opcode::RDMA_WRITE_IMMEDIATE => {
            Operation::Write(take_remote(&mut bytes)?)
        }
        wqe_opcode::RDMA_READ => Operation::Read(take_remote(&mut bytes)?),
        wqe_opcode::COMPARE_SWAP => {
            let Remote { address, key, .. } = take_remote(&mut bytes)?;
            let atomic: AtomicSegment = take(&mut bytes)?;
            let (compare, swap) = (atomic.compare.get(), atomic.swap_add.get());
            Operation::CompareSwap { address, key, compare, swap }
        }
        wqe_opcode::FETCH_ADD => {
            let Remote { address, key, .. } = take_remote(&mut bytes)?;
            let atomic: AtomicSegment = take(&mut bytes)?;
            Operation::FetchAdd { address, key, add: atomic.swap_add.get() }
        }
        wqe_opcode::TAG_MATCHING => return tag_command(bytes).map(Action::Tag),
        _ => return None,
    };
    let pieces = pieces(bytes)?;
    let takes_answer = !matches!(operation, Operation::Send | Operation::Write(_));
    let is_inline = pieces.iter().any(|piece| matches!(piece, Piece::Inline(_)));
    let length: u64 = pieces.iter().map(Piece::length).sum();
    let length = u32::try_from(length).ok()?;
    let operation = match operation {
        Operation::Write(remote) => Operation::Write(Remote { length, ..remote }),
        Operation::Read(remote) => Operation::Read(Remote { length, ..remote }),
        Operation::Send | Operation::CompareSwap { .. } | Operation::FetchAdd { .. } => operation,
    };
    if takes_answer && is_inline {
        return None;
    }
    Some(Action::Request { operation, extension, pieces })
}

fn tag_command(mut bytes: &[u8]) -> Option<TagCommand> {
    let segment: TagSegment = take(&mut bytes)?;
    let operation = match segment.opcode >> 4 {
        0 => TagOperation::Noop,
        1 => {
            let data: DataSegment = take(&mut bytes)?;
            let key = data.lkey.get();
            // An empty buffer has the invalid key (TM-CONTRACT 7).
            let length = if key == INVALID_LKEY { 0 } else { byte_count(&data) };
            let buffer = Segment { key, address: data.address.get(), length };
            let (tag, mask) = (segment.tag.get(), segment.mask.get());
            TagOperation::Append { next_index: segment.index.get(), tag, mask, buffer }
        }
        2 => TagOperation::Remove { index: segment.index.get() },
        _ => return None,
    };
    let signalled = segment.flags & TAG_COMPLETION != 0;
    let count = Some(segment.sw_cnt.get()).filter(|_| segment.flags & TAG_COUNT_VALID != 0);
    Some(TagCommand { operation, signalled, count })
}

fn take_remote(bytes: &mut &[u8]) -> Option<Remote> {
    let segment: RemoteSegment = take(bytes)?;
    Some(Remote { address: segment.address.get(), key: segment.rkey.get(), length: 0 })
}

fn take_address(bytes: &mut &[u8]) -> Option<Address> {
    let segment: AddressSegment = take(bytes)?;
    let mut grh = None;
    if segment.dqp.get() & EXTENDED_ADDRESS != 0 {
        let global: GlobalAddressSegment = take(bytes)?;
        let word = global.grh_gid_fl.get();
        grh = Some(GlobalAddress {
            gid: global.rgid,
            gid_index: (word >> 20).to_be_bytes()[3],
            flow_label: word & 0x000f_ffff,
            traffic_class: global.tclass,
            hop_limit: global.hop_limit,
            is_asked_for: word & GRH_PRESENT != 0,
        });
    }
    let lid = segment.rlid.get();
    let sl = segment.stat_rate_sl & 15;
    Some(Address { qpn: segment.dqp.get() & MASK_24, qkey: segment.qkey.get(), lid, sl, grh })
}

/// Data and inline segments to the end. An inline segment is padded to whole units.
fn pieces(mut bytes: &[u8]) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    while bytes.len() >= 16 {
        let word = u32::from_be_bytes(*bytes.first_chunk()?);
        if word & INLINE == 0 {
            let data: DataSegment = take(&mut bytes)?;
            let (key, address) = (data.lkey.get(), data.address.get());
            pieces.push(Piece::Memory(Segment { key, address, length: byte_count(&data) }));
            continue;
        }
        let length = usize::try_from(word & !INLINE).ok()?;
        pieces.push(Piece::Inline(bytes.get(4..length.checked_add(4)?)?.to_vec()));
        bytes = bytes.get((length + 4).next_multiple_of(16)..).unwrap_or_default();
    }
    Some(pieces)
}

/// The segments of a receive, up to the invalid key.
pub(crate) fn receive_segments(mut bytes: &[u8]) -> Vec<Segment> {
    let mut segments = Vec::new();
    while let Some(data) = take::<DataSegment>(&mut bytes) {
        if data.lkey.get() == INVALID_LKEY {
            break;
        }
        let (key, address) = (data.lkey.get(), data.address.get());
        segments.push(Segment { key, address, length: byte_count(&data) });
    }
    segments
}

/// A byte count of 0 stands for 2^31.
fn byte_count(data: &DataSegment) -> u64 {
    match data.byte_count.get() & !INLINE {
        0 => 1 << 31,
        count => u64::from(count),
    }
}

fn take<T: FromBytes + KnownLayout + Immutable>(bytes: &mut &[u8]) -> Option<T> {
    let (value, rest) = T::read_from_prefix(bytes).ok()?;
    *bytes = rest;
    Some(value)
}

const GRH_PRESENT: u32 = 1 << 30;
const TAG_COMPLETION: u8 = 1 << 7;
const TAG_COUNT_VALID: u8 = 1 << 6;
