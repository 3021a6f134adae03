//! Every message, byte by byte, as docs/wire.md says it.

use super::*;
use crate::atomics::{AtomicOp, AtomicType};

/// Name, bytes, and the message they stand for.
pub(super) const GOLDEN: [(&str, &str, Message<'static>); 39] = [
    (
        "eager",
        "03 000000  00001200  0123456789abcdef  68656c6c6f",
        Message::Eager(Eager { context: context(0x12, 0), tag: TAG, payload: Payload::new(b"hello") }),
    ),
    (
        "eager without payload, all flags",
        "03 000000  ffffff07  ffffffffffffffff",
        Message::Eager(Eager {
            context: context(0xFF_FFFF, 7),
            tag: Tag(u64::MAX),
            payload: Payload::new(b""),
        }),
    ),
    (
        "rendezvous",
        "01 000000  00ab0d01  0123456789abcdef  00007f0012345000 deadbeef 00100000",
        Message::Rendezvous(Rendezvous { context: context(0xAB0D, 1), tag: TAG, memory: memory(0x10_0000) }),
    ),
    (
        "rendezvous of the greatest length that the RVH holds",
        "01 000000  00000100  0123456789abcdef  00007f0012345000 deadbeef fffffffe",
        Message::Rendezvous(Rendezvous { context: context(1, 0), tag: TAG, memory: memory(0xFFFF_FFFE) }),
    ),
    (
        "rendezvous of the least length that stands behind the RVH",
        "01 000000  00000100  0123456789abcdef  00007f0012345000 deadbeef ffffffff  00000000ffffffff",
        Message::Rendezvous(Rendezvous { context: context(1, 0), tag: TAG, memory: memory(0xFFFF_FFFF) }),
    ),
    (
        "rendezvous of 64-bit length",
        "01 000000  00000100  0123456789abcdef  00007f0012345000 deadbeef ffffffff  0000010000000001",
        Message::Rendezvous(Rendezvous { context: context(1, 0), tag: TAG, memory: memory(0x100_0000_0001) }),
    ),
    (
        "fin",
        "02 000000  00ab0d01  0123456789abcdef  00007f0012345000 deadbeef 00100000",
        Message::Fin(Fin { context: context(0xAB0D, 1), tag: TAG, rvh: rvh(0x10_0000) }),
    ),
    (
        "fin of a long rendezvous",
        "02 000000  00000100  0123456789abcdef  00007f0012345000 deadbeef ffffffff",
        Message::Fin(Fin { context: context(1, 0), tag: TAG, rvh: rvh(u32::MAX) }),
    ),
    (
        "untagged",
        "00 21 00 00  00001202  00000000 00000000  6869",
        Message::Control(Control::Untagged(Untagged {
            context: context(0x12, 2),
            cq_data: None,
            payload: Payload::new(b"hi"),
        })),
    ),
    (
        "untagged with CQ data",
        "00 21 00 00  00001204  cafe0001 00000000",
        Message::Control(Control::Untagged(Untagged {
            context: context(0x12, 4),
            cq_data: Some(0xCAFE_0001),
            payload: Payload::new(b""),
        })),
    ),
    (
        "untagged rendezvous",
        "00 22 00 00  00001204  cafe0001 00000000  00007f0012345000 0000010000000000 deadbeef 00000000",
        Message::Control(Control::UntaggedRendezvous(UntaggedRendezvous {
            context: context(0x12, 4),
            cq_data: Some(0xCAFE_0001),
            memory: memory(0x100_0000_0000),
        })),
    ),
    (
        "first segment with tag",
        "00 23 01 00  00001204  0123456789abcdef  0000010000000000  cafe0001 00000000  616263",
        Message::Control(Control::SegmentFirst(SegmentFirst {
            context: context(0x12, 4),
            tag: Some(TAG),
            total_length: 0x100_0000_0000,
            cq_data: Some(0xCAFE_0001),
            payload: Payload::new(b"abc"),
        })),
    ),
    (
        "first segment without tag",
        "00 23 00 00  00001200  0000000000000000  0000000000000004  00000000 00000000  616263",
        Message::Control(Control::SegmentFirst(SegmentFirst {
            context: context(0x12, 0),
            tag: None,
            total_length: 4,
            cq_data: None,
            payload: Payload::new(b"abc"),
        })),
    ),
    (
        "middle segment",
        "00 24 00 00  00000012  0000000100000003  646566",
        Message::Control(Control::SegmentMiddle(Segment {
            operation: operation(0x12),
            offset: 0x1_0000_0003,
            payload: Payload::new(b"def"),
        })),
    ),
    (
        "last segment",
        "00 25 00 00  00000012  0000000000000006  67",
        Message::Control(Control::SegmentLast(Segment {
            operation: operation(0x12),
            offset: 6,
            payload: Payload::new(b"g"),
        })),
    ),
    (
        "credit",
        "00 26 00 00  00000040 00000020 00000000 0000000000100000",
        Message::Control(Control::Credit(CREDITS)),
    ),
    (
        "match acknowledgement",
        "00 27 00 00  00abcdef",
        Message::Control(Control::MatchAcknowledged(operation(0xAB_CDEF))),
    ),
    (
        "delivery acknowledgement",
        "00 28 00 00  00abcdef",
        Message::Control(Control::Delivered(operation(0xAB_CDEF))),
    ),
    (
        "rendezvous done",
        "00 29 00 00  00abcdef",
        Message::Control(Control::RendezvousDone(operation(0xAB_CDEF))),
    ),
    (
        "rendezvous refused",
        "00 2a 02 00  00abcdef",
        Message::Control(Control::RendezvousRefused {
            operation: operation(0xAB_CDEF),
            reason: RefusedRendezvous::ReadFailed,
        }),
    ),
    ("discarded", "00 2b 00 00  00abcdef", Message::Control(Control::Discarded(operation(0xAB_CDEF)))),
    (
        "hello",
        "00 2c 01 06  01 03 0000  0000000b  00000040  00112233445566778899aabbccddeeff  0000000000004000 \
         0000000000100000 00000020 00000000  0200 1f90 7f01",
        Message::Control(Control::Hello(Hello {
            role: HelloRole::Answer,
            version_min: 1,
            version_max: 3,
            capabilities: PeerCapabilities::MATCHING
                .with(PeerCapabilities::READS)
                .with(PeerCapabilities::SEGMENTS),
            instance: InstanceId::new(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff).unwrap(),
            eager_limit: 0x4000,
            credits: CREDITS,
            name: EndpointName::new(&[2, 0, 0x1F, 0x90, 0x7F, 1]).unwrap(),
        })),
    ),
    (
        "hello without name",
        "00 2c 00 00  01 01 0000  00000000  00000000  00000000000000000000000000000001  0000000000000000 \
         0000000000000000 00000000 00000000",
        Message::Control(Control::Hello(Hello {
            role: HelloRole::Request,
            version_min: 1,
            version_max: 1,
            capabilities: PeerCapabilities::NONE,
            instance: InstanceId::new(1).unwrap(),
            eager_limit: 0,
            credits: Credits { headers: 0, eager_messages: 0, eager_bytes: 0 },
            name: EndpointName::new(&[]).unwrap(),
        })),
    ),
    (
        "hello refused",
        "00 2d 01 00  02 05 0000",
        Message::Control(Control::HelloRefused(HelloRefused {
            reason: RefusedHello::Version,
            version_min: 2,
            version_max: 5,
        })),
    ),
    ("goodbye", "00 2e 03 00", Message::Control(Control::Goodbye(Goodbye::ProtocolError))),
    (
        "keepalive",
        "00 2f 01 00  00000007",
        Message::Control(Control::Keepalive(Keepalive { is_answer: true, sequence: 7 })),
    ),
    (
        "challenge",
        "00 30 00 00  a1a1a1a1a1a1a1a1 a1a1a1a1a1a1a1a1 a1a1a1a1a1a1a1a1 a1a1a1a1a1a1a1a1",
        Message::Control(Control::Challenge(Challenge { number: [0xA1; 32] })),
    ),
    (
        "proof",
        "00 31 01 00  a2a2a2a2a2a2a2a2 a2a2a2a2a2a2a2a2 a2a2a2a2a2a2a2a2 a2a2a2a2a2a2a2a2
                      a3a3a3a3a3a3a3a3 a3a3a3a3a3a3a3a3 a3a3a3a3a3a3a3a3 a3a3a3a3a3a3a3a3",
        Message::Control(Control::Proof(Proof {
            role: HelloRole::Answer,
            number: [0xA2; 32],
            code: [0xA3; 32],
        })),
    ),
    (
        "first piece of a remote write",
        "00 32 00 00  00000012  0123456789abcdef 0000000000001000 0000000000000008  0000000000000000
                      00000000 00000000  68656c6c6f",
        Message::Control(Control::RemoteWrite(RemoteWrite {
            operation: operation(0x12),
            is_last: false,
            stretch: stretch(8),
            offset: 0,
            cq_data: None,
            payload: Payload::new(b"hello"),
        })),
    ),
    (
        "last piece of a remote write with CQ data",
        "00 32 03 00  00000012  0123456789abcdef 0000000000001000 0000000000000008  0000000000000005
                      01020304 00000000  616263",
        Message::Control(Control::RemoteWrite(RemoteWrite {
            operation: operation(0x12),
            is_last: true,
            stretch: stretch(8),
            offset: 5,
            cq_data: Some(0x0102_0304),
            payload: Payload::new(b"abc"),
        })),
    ),
    (
        "remote write of nothing",
        "00 32 02 00  00ffffff  0123456789abcdef 0000000000001000 0000000000000000  0000000000000000
                      00000000 00000000",
        Message::Control(Control::RemoteWrite(RemoteWrite {
            operation: OperationId::MAX,
            is_last: true,
            stretch: stretch(0),
            offset: 0,
            cq_data: None,
            payload: Payload::new(b""),
        })),
    ),
    (
        "remote read",
        "00 33 02 00  00000012  0123456789abcdef 0000000000001000 0000000000000008  0000000000000003",
        Message::Control(Control::RemoteRead(RemoteRead {
            operation: operation(0x12),
            is_last: true,
            stretch: stretch(8),
            place: 3,
        })),
    ),
    (
        "remote data",
        "00 34 00 00  00000012  0000000000000003  6869",
        Message::Control(Control::RemoteData(RemoteData {
            operation: operation(0x12),
            place: 3,
            payload: Payload::new(b"hi"),
        })),
    ),
    (
        "remote atomic, compare and swap of two values",
        "00 36 0e 00  00000012  0123456789abcdef 0000000000001000 0000000000000004  0000000000000003
                      0c 03 000000000000  01000200 0300ff00",
        Message::Control(Control::RemoteAtomic(RemoteAtomic {
            operation: operation(0x12),
            is_last: true,
            fetches: true,
            is_little: true,
            stretch: stretch(4),
            place: 3,
            op: AtomicOp::SwapIfEqual,
            of: AtomicType::U16,
            payload: Payload::new(&[1, 0, 2, 0, 3, 0, 0xff, 0]),
        })),
    ),
    (
        "remote atomic, a sum from a big-endian host",
        "00 36 00 00  00000012  0123456789abcdef 0000000000001000 0000000000000008  0000000000000000
                      02 07 000000000000  0000000000000005",
        Message::Control(Control::RemoteAtomic(RemoteAtomic {
            operation: operation(0x12),
            is_last: false,
            fetches: false,
            is_little: false,
            stretch: stretch(8),
            place: 0,
            op: AtomicOp::Sum,
            of: AtomicType::U64,
            payload: Payload::new(&[0, 0, 0, 0, 0, 0, 0, 5]),
        })),
    ),
    (
        "end of a remote access",
        "00 35 02 00  00000012",
        Message::Control(Control::RemoteDone {
            operation: operation(0x12),
            status: RemoteStatus::OutOfBounds,
        }),
    ),
    (
        "request for a connection",
        "00 37 00 03  01 01 0000  0000000b  00000040  00112233445566778899aabbccddeeff  0000000000004000 \
         0000000000100000 00000020 00000000  637231",
        Message::Control(Control::Connect(Connect {
            hello: Hello { role: HelloRole::Request, ..OF_A_CONNECTION },
            data: ConnectData::cut(b"cr1"),
        })),
    ),
    (
        "connection accepted, without data",
        "00 37 01 00  01 01 0000  0000000b  00000040  00112233445566778899aabbccddeeff  0000000000004000 \
         0000000000100000 00000020 00000000",
        Message::Control(Control::Connect(Connect { hello: OF_A_CONNECTION, data: ConnectData::cut(b"") })),
    ),
    (
        "rejection",
        "00 38 00 02  6e6f",
        Message::Control(Control::Reject(Reject { data: ConnectData::cut(b"no") })),
    ),
];

const OF_A_CONNECTION: Hello<'static> = Hello {
    role: HelloRole::Answer,
    version_min: 1,
    version_max: 1,
    capabilities: PeerCapabilities::MATCHING.with(PeerCapabilities::READS).with(PeerCapabilities::SEGMENTS),
    instance: InstanceId::new(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff).unwrap(),
    eager_limit: 0x4000,
    credits: CREDITS,
    name: EndpointName::new(&[]).unwrap(),
};

#[test]
fn every_golden_message_encodes_to_its_bytes_and_back() {
    for (name, hex, message) in &GOLDEN {
        let golden = bytes(hex);
        let mut out = [0xEE; 200];
        let length = message.encode(&mut out).unwrap();
        assert_eq!(&out[..length], &golden, "{name}");
        assert!(out[length..].iter().all(|byte| *byte == 0xEE), "{name}: wrote behind the end");
        assert_eq!(decode(&golden), Ok(*message), "{name}");
    }
}

#[test]
fn every_kind_and_opcode_has_a_golden_message() {
    let messages = GOLDEN.map(|(_, _, message)| message);
    for kind in Kind::ALL {
        assert!(messages.iter().any(|m| matches!(m, Message::Control(c) if c.kind() == kind)), "{kind:?}");
        assert_eq!(Kind::from_byte(kind.to_byte()), Ok(kind));
    }
    assert!(messages.iter().any(|m| matches!(m, Message::Eager(_))));
    assert!(messages.iter().any(|m| matches!(m, Message::Rendezvous(_))));
    assert!(messages.iter().any(|m| matches!(m, Message::Fin(_))));
}

#[test]
fn a_message_that_does_not_fit_is_not_written() {
    for (name, hex, message) in &GOLDEN {
        let length = bytes(hex).len();
        for room in 0..length {
            let mut out = [0xEE; 200];
            let error = message.encode(&mut out[..room]).unwrap_err();
            assert_eq!(error, WireError::NoRoom { needed: length as u64, available: room as u64 }, "{name}");
            assert!(out.iter().all(|byte| *byte == 0xEE), "{name}: written in part");
        }
    }
}

#[test]
fn a_tmh_decodes_by_itself_in_front_of_anything() {
    let eager = bytes(GOLDEN[0].1);
    let tmh = Tmh::decode(&eager).unwrap();
    assert_eq!(tmh, Tmh { opcode: Opcode::Eager, context: context(0x12, 0), tag: TAG });
    assert_eq!(tmh.to_bytes()[..], eager[..16]);
    assert!(matches!(
        Tmh::decode(&eager[..15]),
        Err(WireError::Short { field: "tag", needed: 16, length: 15 })
    ));
}

#[test]
fn software_makes_the_fin_that_a_nic_would_copy() {
    for (name, hex, message) in &GOLDEN {
        let Message::Rendezvous(request) = message else { continue };
        let mut copy = bytes(hex)[..32].to_vec();
        copy[0] = 2;
        assert_eq!(request.fin().to_bytes()[..], copy[..], "{name}");
    }
}

#[test]
fn a_payload_range_names_the_payload() {
    let range = |index: usize| GOLDEN[index].2.payload_range();
    assert_eq!(range(0), Some(16..21));
    assert_eq!(range(2), None);
    assert_eq!(range(8), Some(16..18));
    assert_eq!(range(11), Some(32..35));
    assert_eq!(range(13), Some(16..19));
}

const TAG: Tag = Tag(0x0123_4567_89AB_CDEF);
const CREDITS: Credits = Credits { headers: 64, eager_messages: 32, eager_bytes: 0x10_0000 };

const fn operation(id: u32) -> OperationId {
    OperationId::new(id).unwrap()
}

const fn context(id: u32, flags: u8) -> AppContext {
    match AppContext::from_bits(id << 8 | flags as u32) {
        Ok(context) => context,
        Err(_) => panic!("no such flags"),
    }
}

const fn memory(length: u64) -> RemoteMemory {
    RemoteMemory { address: 0x7F00_1234_5000, key: 0xDEAD_BEEF, length }
}

const fn stretch(length: u64) -> RemoteStretch {
    RemoteStretch { key: TAG.0, address: 0x1000, length }
}

const fn rvh(len: u32) -> Rvh {
    Rvh { va: 0x7F00_1234_5000, rkey: 0xDEAD_BEEF, len }
}
