//! What passes between QPs: plain data, and its bytes between processes ([`super::codec`]).

use super::codec;

/// A packet. Only devices look inside.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// QP number it comes from.
    pub source: u32,
    /// QP number it goes to.
    pub destination: u32,
    pub(crate) body: Body,
}

impl Packet {
    /// The process that it goes to ([`super::HcaConfig::process`]).
    #[must_use]
    pub const fn process(&self) -> u8 {
        process_of(self.destination)
    }

    /// As bytes, behind what is in `into` already; without a length in front.
    pub fn encode(&self, into: &mut Vec<u8>) {
        codec::encode(self, into);
    }

    /// From the bytes of one packet.
    ///
    /// # Errors
    /// The bytes are not a packet.
    pub fn decode(bytes: &[u8]) -> Result<Self, PacketError> {
        codec::decode(bytes)
    }
}

/// Bytes that are no packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a packet: {0}")]
pub struct PacketError(pub(crate) &'static str);

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Body {
    Request(Request),
    Response(Response),
    Datagram(Datagram),
}

/// RC, from requester to responder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Request {
    pub psn: u32,
    /// Counts retransmissions, so that an answer to an earlier one is known.
    pub attempt: u8,
    pub operation: Operation,
    pub first: bool,
    pub last: bool,
    pub solicited: bool,
    pub extension: Extension,
    pub payload: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operation {
    Send,
    /// The whole stretch, in each packet.
    Write(Remote),
    Read(Remote),
    CompareSwap {
        address: u64,
        key: u32,
        compare: u64,
        swap: u64,
    },
    FetchAdd {
        address: u64,
        key: u32,
        add: u64,
    },
}

/// Memory of the responder's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Remote {
    pub address: u64,
    pub key: u32,
    pub length: u32,
}

/// What a message carries beside its payload. In every packet of it, though on a real wire only in the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Extension {
    None,
    Immediate([u8; 4]),
    Invalidate(u32),
}

impl Extension {
    pub(crate) const fn immediate(self) -> Option<[u8; 4]> {
        match self {
            Self::Immediate(immediate) => Some(immediate),
            Self::None | Self::Invalidate(_) => None,
        }
    }
}

/// RC, from responder to requester.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Response {
    /// All requests up to this one are done.
    Acknowledge {
        psn: u32,
    },
    /// RNR NAK, with the encoded time to wait.
    NotReady {
        psn: u32,
        timer: u8,
    },
    /// PSN sequence error: this one is expected.
    OutOfSequence {
        psn: u32,
    },
    /// The other NAKs.
    Refused {
        psn: u32,
        reason: Refusal,
    },
    ReadData {
        psn: u32,
        payload: Vec<u8>,
    },
    AtomicResult {
        psn: u32,
        value: u64,
    },
    /// Not on a real wire: nobody took the packet, so that nothing will answer and the timer will run out.
    Dropped {
        psn: u32,
        attempt: u8,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    InvalidRequest,
    Access,
    Operation,
}

/// UD.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Datagram {
    pub qkey: u32,
    pub slid: u16,
    pub sl: u8,
    pub solicited: bool,
    pub immediate: Option<[u8; 4]>,
    /// The 40 bytes of a GRH.
    pub grh: Option<[u8; 40]>,
    pub payload: Vec<u8>,
}

pub(crate) const fn process_of(qpn: u32) -> u8 {
    qpn.to_be_bytes()[1]
}

/// PSNs and QP numbers have 24 bits.
pub(crate) const MASK_24: u32 = 0x00ff_ffff;

pub(crate) const fn psn_after(psn: u32, count: u32) -> u32 {
    psn.wrapping_add(count) & MASK_24
}

/// How far `psn` is beyond `base`: negative for the older half of the circle.
pub(crate) const fn psn_distance(psn: u32, base: u32) -> i32 {
    // Shifted up, so that the sign bit of 24 becomes the sign bit of 32.
    (psn.wrapping_sub(base) << 8).cast_signed() >> 8
}

/// The longest payload of a packet: the largest MTU.
pub(crate) const PAYLOAD_MAX: usize = 4096;
