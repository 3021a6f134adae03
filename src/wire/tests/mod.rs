//! What all tests of the wire formats share: one golden message of every kind, and messages out of numbers.
#![expect(clippy::cast_possible_truncation, reason = "numbers are made small on purpose")]

mod golden;
mod hostile;
mod properties;

use super::*;
use crate::atomics::{AtomicCall, AtomicOp, AtomicType};
use crate::ids::Tag;
use golden::GOLDEN;

/// Numbers that a message of any kind is made from.
#[derive(Clone, Debug, Default)]
struct Shape {
    variant: u8,
    words: [u64; 4],
    flags: u8,
    small: u8,
    payload: Vec<u8>,
    name: Vec<u8>,
}

impl Shape {
    const VARIANTS: u8 = 26;

    /// A message that the protocol allows. Every message can be made so.
    fn message(&self) -> Message<'_> {
        let [a, b, c, d] = self.words;
        let (low, lower) = ((a & 0xFFFF_FFFF) as u32, (b & 0xFFFF_FFFF) as u32);
        let operation = OperationId::new(low >> 8).unwrap();
        let context =
            AppContext::from_bits((low & !0xFF) | u32::from(self.flags & SendFlags::ALL.bits())).unwrap();
        let payload = Payload::new(&self.payload);
        let cq_data = context.flags.contains(SendFlags::CQ_DATA).then_some(lower);
        // An address that leaves room for the length.
        let memory = |length: u64| RemoteMemory { address: c.min(u64::MAX - length), key: lower, length };
        let segment = Segment {
            operation,
            offset: (b % (u64::MAX - payload.length())).max(1),
            payload: Payload::new(&self.payload),
        };
        let control = match self.variant % Self::VARIANTS {
            0 => return Message::Eager(Eager { context, tag: Tag(b), payload }),
            1 => {
                return Message::Rendezvous(Rendezvous {
                    context,
                    tag: Tag(b),
                    memory: memory(d & 0xFFFF_FFFE),
                });
            }
            2 => {
                let memory = memory(d.max(u32::MAX.into()));
                return Message::Rendezvous(Rendezvous { context, tag: Tag(b), memory });
            }
            3 => {
                let request = Rendezvous { context, tag: Tag(b), memory: memory(d) };
                return Message::Fin(request.fin());
            }
            4 => Control::Untagged(Untagged { context, cq_data, payload }),
            5 => Control::UntaggedRendezvous(UntaggedRendezvous { context, cq_data, memory: memory(d) }),
            6 => Control::SegmentFirst(SegmentFirst {
                context,
                tag: (self.small % 2 == 1).then_some(Tag(c)),
                total_length: d.max(payload.length() + 1),
                cq_data,
                payload,
            }),
            7 => Control::SegmentMiddle(segment),
            8 => Control::SegmentLast(segment),
            9 => Control::Credit(Credits { headers: low, eager_messages: lower, eager_bytes: d }),
            10 => Control::MatchAcknowledged(operation),
            11 => Control::Delivered(operation),
            12 => Control::RendezvousDone(operation),
            13 => {
                let reason = RefusedRendezvous::from_byte(self.small % 2 + 2).unwrap();
                Control::RendezvousRefused { operation, reason }
            }
            14 => Control::Discarded(operation),
            15 => Control::Hello(Hello { name: EndpointName::new(&self.name).unwrap(), ..self.hello() }),
            23 => Control::Connect(Connect { hello: self.hello(), data: ConnectData::cut(&self.name) }),
            24 => Control::Reject(Reject { data: ConnectData::cut(&self.name) }),
            16 => Control::HelloRefused(HelloRefused {
                reason: [
                    RefusedHello::Version,
                    RefusedHello::Crossed,
                    RefusedHello::Connected,
                    RefusedHello::Busy,
                    RefusedHello::Closing,
                    RefusedHello::NoKey,
                    RefusedHello::Oneself,
                ][usize::from(self.small % 7)],
                version_min: self.flags.max(1),
                version_max: self.flags.max(1).max(self.small),
            }),
            17 if self.small < 100 => {
                let role = if self.small.is_multiple_of(2) { HelloRole::Request } else { HelloRole::Answer };
                Control::Proof(Proof { role, number: [self.flags; 32], code: [self.small; 32] })
            }
            17 => Control::Challenge(Challenge { number: [self.flags; 32] }),
            18 => {
                let length = payload.length();
                let stretch = RemoteStretch { key: a, address: c.min(u64::MAX - length), length };
                let cq_data = (self.small % 4 == 3).then_some(lower);
                let is_last = self.small % 2 == 1;
                Control::RemoteWrite(RemoteWrite { operation, is_last, stretch, offset: 0, cq_data, payload })
            }
            19 => {
                let stretch = RemoteStretch { key: a, address: c.min(u64::MAX - d), length: d };
                let (is_last, place) = (self.small % 2 == 1, b.min(u64::MAX - d));
                Control::RemoteRead(RemoteRead { operation, is_last, stretch, place })
            }
            20 => {
                let place = b.min(u64::MAX - payload.length());
                Control::RemoteData(RemoteData { operation, place, payload })
            }
            22 => {
                let length = payload.length();
                if length == 0 || length > RemoteAtomic::STRETCH_MAX {
                    return Message::Control(Control::Delivered(operation));
                }
                let is_whole = |of: &AtomicType| length.is_multiple_of(of.size() as u64);
                let types: Vec<AtomicType> = AtomicType::ALL.into_iter().filter(is_whole).collect();
                let of = types[usize::from(self.flags) % types.len()];
                let fetching = AtomicOp::ALL.into_iter().filter(|op| op.is_valid(of, AtomicCall::Fetch));
                let ops: Vec<AtomicOp> = fetching.filter(|op| op.operands() == 1).collect();
                let op = ops[usize::from(self.small) % ops.len()];
                let fetches = self.small.is_multiple_of(2);
                Control::RemoteAtomic(RemoteAtomic {
                    operation,
                    is_last: self.small.is_multiple_of(3),
                    fetches,
                    is_little: self.small.is_multiple_of(5),
                    stretch: RemoteStretch { key: a, address: c.min(u64::MAX - length), length },
                    place: if fetches { b.min(u64::MAX - length) } else { 0 },
                    op,
                    of,
                    payload,
                })
            }
            21 => {
                let status = RemoteStatus::from_byte(self.small % 5).unwrap();
                Control::RemoteDone { operation, status }
            }
            _ if self.small < 100 => {
                Control::Keepalive(Keepalive { is_answer: self.small % 2 == 1, sequence: low })
            }
            _ => Control::Goodbye(
                [Goodbye::Closing, Goodbye::Failed, Goodbye::ProtocolError, Goodbye::Idle]
                    [usize::from(self.small % 4)],
            ),
        };
        Message::Control(control)
    }

    fn hello(&self) -> Hello<'static> {
        let [a, b, c, d] = self.words;
        let (low, lower) = ((a & 0xFFFF_FFFF) as u32, (b & 0xFFFF_FFFF) as u32);
        Hello {
            role: if self.small.is_multiple_of(2) { HelloRole::Request } else { HelloRole::Answer },
            version_min: self.flags.max(1),
            version_max: self.flags.max(1).max(self.small),
            capabilities: if self.small & 2 == 0 { PeerCapabilities::ALL } else { PeerCapabilities::READS },
            instance: InstanceId::new((u128::from(a) << 64 | u128::from(c)).max(1)).unwrap(),
            eager_limit: b,
            credits: Credits { headers: low, eager_messages: lower, eager_bytes: d },
            name: EndpointName::default(),
        }
    }

    /// Whether the payload, if the kind has one, must have a byte.
    fn is_segment(&self) -> bool {
        matches!(self.variant % Self::VARIANTS, 6..=8 | 20)
    }
}

/// Bytes of a message in hexadecimal with blanks.
fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}
