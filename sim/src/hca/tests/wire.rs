//! Packets as bytes: there and back, and bytes from strangers.

use crate::hca::Packet;
use crate::hca::packet::{Body, Datagram, Extension, Operation, Refusal, Remote, Request, Response};

fn samples() -> Vec<Packet> {
    let remote = Remote { address: 0x1122_3344_5566_7788, key: 9, length: 77 };
    let atomic = (0x8000_0000_0000_0010, 3);
    let operations = [
        Operation::Send,
        Operation::Write(remote),
        Operation::Read(remote),
        Operation::CompareSwap { address: atomic.0, key: atomic.1, compare: 5, swap: u64::MAX },
        Operation::FetchAdd { address: atomic.0, key: atomic.1, add: 6 },
    ];
    let extensions = [Extension::None, Extension::Immediate([1, 2, 3, 4]), Extension::Invalidate(8)];
    let mut bodies = Vec::new();
    for (number, operation) in operations.into_iter().enumerate() {
        bodies.push(Body::Request(Request {
            psn: 0x00ff_ffff,
            attempt: 200,
            operation,
            first: number % 2 == 0,
            last: number % 3 == 0,
            solicited: number == 4,
            extension: extensions[number % 3],
            payload: vec![7; number * 100],
        }));
    }
    let psn = 12;
    let responses = [
        Response::Acknowledge { psn },
        Response::NotReady { psn, timer: 31 },
        Response::OutOfSequence { psn },
        Response::Refused { psn, reason: Refusal::InvalidRequest },
        Response::Refused { psn, reason: Refusal::Access },
        Response::Refused { psn, reason: Refusal::Operation },
        Response::ReadData { psn, payload: vec![1; 4096] },
        Response::AtomicResult { psn, value: 99 },
        Response::Dropped { psn, attempt: 3 },
    ];
    bodies.extend(responses.into_iter().map(Body::Response));
    for (immediate, grh) in [(None, None), (Some([5; 4]), Some([6; 40]))] {
        let solicited = immediate.is_some();
        let payload = vec![3; 30];
        bodies.push(Body::Datagram(Datagram {
            qkey: 1,
            slid: 2,
            sl: 15,
            solicited,
            immediate,
            grh,
            payload,
        }));
    }
    bodies.into_iter().map(|body| Packet { source: 0x40, destination: 0x05_0041, body }).collect()
}

fn encoded(packet: &Packet) -> Vec<u8> {
    let mut bytes = Vec::new();
    packet.encode(&mut bytes);
    bytes
}

#[test]
fn packets_come_back_as_they_went() {
    for packet in samples() {
        assert_eq!(Packet::decode(&encoded(&packet)), Ok(packet));
    }
}

#[test]
fn packets_cut_short_are_errors_or_shorter_payloads_and_never_panic() {
    for packet in samples() {
        let bytes = encoded(&packet);
        for length in 0..bytes.len() {
            if let Ok(shorter) = Packet::decode(&bytes[..length]) {
                assert_eq!(encoded(&shorter), bytes[..length]);
            }
        }
        assert!(Packet::decode(&bytes[..8]).is_err());
    }
}

#[test]
fn changed_bytes_are_errors_or_other_packets_and_never_panic() {
    for packet in samples() {
        let bytes = encoded(&packet);
        for place in 0..bytes.len().min(64) {
            for change in [1, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[place] ^= change;
                if let Ok(other) = Packet::decode(&changed) {
                    assert_ne!(other, packet);
                }
            }
        }
    }
}

#[test]
fn numbers_of_more_than_24_bits_long_payloads_and_bytes_behind_are_refused() {
    let acknowledge = &samples()[5];
    let mut bytes = encoded(acknowledge);
    bytes.push(0);
    assert!(Packet::decode(&bytes).is_err());
    let mut bytes = encoded(acknowledge);
    bytes[0] = 1;
    assert!(Packet::decode(&bytes).is_err());
    let body = Body::Response(Response::ReadData { psn: 0, payload: vec![0; 4097] });
    let long = Packet { source: 1, destination: 2, body };
    assert!(Packet::decode(&encoded(&long)).is_err());
}
