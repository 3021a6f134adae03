//! Whatever can be said survives the wire; whatever cannot is refused before it is written.

use super::*;
use crate::atomics::{AtomicOp, AtomicType};
use proptest::prelude::*;

fn shapes() -> impl Strategy<Value = Shape> {
    // Words at the edges as often as anywhere.
    let word = || {
        prop_oneof![
            any::<u64>(),
            any::<u32>().prop_map(u64::from),
            (0_u64..4).prop_map(|x| x.wrapping_sub(2)),
            (0_u64..4).prop_map(|x| 0xFFFF_FFFE + x),
        ]
    };
    let words = [word().boxed(), word().boxed(), word().boxed(), word().boxed()];
    let payload = prop::collection::vec(any::<u8>(), 0..200);
    let name = prop::collection::vec(any::<u8>(), 0..=64);
    (0..Shape::VARIANTS, words, any::<u8>(), any::<u8>(), payload, name).prop_map(
        |(variant, words, flags, small, payload, name)| {
            let mut shape = Shape { variant, words, flags, small, payload, name };
            if shape.is_segment() && shape.payload.is_empty() {
                shape.payload.push(7);
            }
            shape
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn every_message_decodes_to_itself(shape in shapes()) {
        let message = shape.message();
        let mut out = [0; 400];
        let length = message.encode(&mut out).unwrap();
        prop_assert_eq!(decode(&out[..length]), Ok(message));
        if let Some(range) = message.payload_range() {
            prop_assert_eq!(&out[range.start as usize..range.end as usize], &shape.payload[..]);
            prop_assert_eq!(range.end, length as u64);
        }
    }

    #[test]
    fn a_look_at_a_header_says_what_reading_says(shape in shapes(), place in 0_usize..16, byte in 0_u8..=255, changes: bool) {
        let message = shape.message();
        let mut out = [0; 400];
        let length = message.encode(&mut out).unwrap();
        if changes {
            out[place] = byte;
        }
        let read = match decode_partial(&out[..length], length as u64) {
            Ok(Partial::Message(Message::Eager(eager))) => Some((eager.context, eager.tag)),
            Ok(_) | Err(_) => None,
        };
        // What is too short for one is none, whatever it begins with.
        let looked = Eager::peek(out.first_chunk().unwrap()).filter(|_| length >= Eager::HEADER_LENGTH);
        prop_assert_eq!(looked, read);
        prop_assert_eq!(Eager::is_header(&out[..length.min(16)]), read.is_some());
    }

    #[test]
    fn a_message_that_arrives_in_pieces_is_known_with_its_header(shape in shapes(), cut in 0_usize..400) {
        let message = shape.message();
        let mut out = [0; 400];
        let length = message.encode(&mut out).unwrap();
        let cut = cut.min(length);
        match decode_partial(&out[..cut], length as u64).unwrap() {
            Partial::Needed(needed) => prop_assert!(cut < needed && needed <= length, "{} {} {}", cut, needed, length),
            Partial::Message(early) => {
                let range = message.payload_range();
                prop_assert_eq!(early.payload_range(), range.clone());
                // A header says the same whether or not the payload is there.
                let start = range.map_or(length, |range| range.start as usize);
                prop_assert!(cut >= start);
                let whole_again = early.encode(&mut [0; 400]);
                prop_assert_eq!(whole_again.is_ok(), cut == length, "{:?}", whole_again);
            }
        }
    }
}

#[test]
fn a_stream_that_reads_what_is_needed_comes_to_the_header_and_no_further() {
    for (name, hex, message) in &GOLDEN {
        let golden = bytes(hex);
        let (mut have, mut reads) = (0, 0);
        let known = loop {
            match decode_partial(&golden[..have], golden.len() as u64).unwrap() {
                Partial::Message(known) => break known,
                Partial::Needed(needed) => {
                    assert!(needed > have, "{name}");
                    have = needed;
                    reads += 1;
                }
            }
        };
        assert!(reads <= 3, "{name} took {reads} reads");
        let header = message.payload_range().map_or(golden.len(), |range| range.start as usize);
        assert_eq!(have, header, "{name}");
        assert_eq!(known.payload_range(), message.payload_range(), "{name}");
    }
}

#[test]
fn a_header_of_a_message_longer_than_memory_is_understood() {
    let eager = bytes(GOLDEN[0].1);
    let Partial::Message(message) = decode_partial(&eager[..16], u64::MAX).unwrap() else {
        panic!("16 bytes are a TMH");
    };
    assert_eq!(message.payload_range(), Some(16..u64::MAX));
    let error = message.encode(&mut [0; 400]).unwrap_err();
    assert_eq!(error, WireError::Incomplete { arrived: 0, length: u64::MAX - 16 });
}

#[test]
fn what_cannot_be_said_is_refused_before_it_is_written() {
    let context = AppContext::default();
    let memory = RemoteMemory { address: 2, key: 0, length: u64::MAX - 1 };
    let (empty, one) = (Payload::new(b""), Payload::new(b"x"));
    let flagged = AppContext::from_bits(SendFlags::CQ_DATA.bits().into()).unwrap();
    let first = SegmentFirst { context, tag: None, total_length: 2, cq_data: None, payload: one };
    let segment = Segment { operation: OperationId::MAX, offset: 1, payload: one };
    let (stretch, far) = (
        RemoteStretch { key: 0, address: 0, length: 2 },
        RemoteStretch { key: 0, address: u64::MAX, length: 1 },
    );
    let operation = OperationId::MAX;
    let write = RemoteWrite { operation, is_last: false, stretch, offset: 0, cq_data: None, payload: one };
    let atomic = RemoteAtomic {
        operation,
        is_last: false,
        fetches: false,
        is_little: true,
        stretch,
        place: 0,
        op: AtomicOp::Sum,
        of: AtomicType::U8,
        payload: one,
    };
    let hello = Hello {
        role: HelloRole::Request,
        version_min: 1,
        version_max: 1,
        capabilities: PeerCapabilities::NONE,
        instance: InstanceId::new(1).unwrap(),
        eager_limit: 0,
        credits: Credits::default(),
        name: EndpointName::default(),
    };
    let refused = HelloRefused { reason: RefusedHello::Busy, version_min: 0, version_max: 1 };
    let control = [
        Control::Untagged(Untagged { context, cq_data: Some(0), payload: one }),
        Control::Untagged(Untagged { context: flagged, cq_data: None, payload: one }),
        Control::UntaggedRendezvous(UntaggedRendezvous { context, cq_data: None, memory }),
        Control::SegmentFirst(SegmentFirst { total_length: 1, ..first }),
        Control::SegmentFirst(SegmentFirst { payload: empty, ..first }),
        Control::SegmentMiddle(Segment { offset: 0, ..segment }),
        Control::SegmentLast(Segment { offset: u64::MAX, ..segment }),
        Control::SegmentLast(Segment { payload: empty, ..segment }),
        Control::RemoteWrite(RemoteWrite { offset: 2, ..write }),
        Control::RemoteWrite(RemoteWrite { cq_data: Some(0), ..write }),
        Control::RemoteWrite(RemoteWrite { is_last: true, ..write }),
        Control::RemoteWrite(RemoteWrite { payload: empty, ..write }),
        Control::RemoteWrite(RemoteWrite { payload: Payload::new(b"xyz"), ..write }),
        Control::RemoteRead(RemoteRead {
            operation: OperationId::MAX,
            is_last: false,
            stretch: far,
            place: 0,
        }),
        Control::RemoteData(RemoteData { operation: OperationId::MAX, place: u64::MAX, payload: one }),
        Control::RemoteData(RemoteData { operation: OperationId::MAX, place: 0, payload: empty }),
        Control::RemoteAtomic(RemoteAtomic { place: 1, ..atomic }),
        Control::RemoteAtomic(RemoteAtomic { of: AtomicType::U16, ..atomic }),
        Control::RemoteAtomic(RemoteAtomic { payload: empty, ..atomic }),
        Control::RemoteAtomic(RemoteAtomic { op: AtomicOp::Read, payload: empty, ..atomic }),
        Control::RemoteAtomic(RemoteAtomic { op: AtomicOp::SwapIfEqual, ..atomic }),
        Control::RemoteAtomic(RemoteAtomic { op: AtomicOp::Read, fetches: true, ..atomic }),
        Control::RemoteAtomic(RemoteAtomic {
            stretch: RemoteStretch { length: 0, ..atomic.stretch },
            payload: empty,
            ..atomic
        }),
        Control::RemoteAtomic(RemoteAtomic {
            stretch: RemoteStretch { length: 1025, ..atomic.stretch },
            ..atomic
        }),
        Control::Connect(Connect {
            hello: Hello { name: EndpointName::new(b"x").unwrap(), ..hello },
            data: ConnectData::cut(b""),
        }),
        Control::Connect(Connect { hello: Hello { version_min: 2, ..hello }, data: ConnectData::cut(b"") }),
        Control::HelloRefused(refused),
        Control::HelloRefused(HelloRefused { version_min: 2, ..refused }),
    ];
    let tagged = [
        Message::Rendezvous(Rendezvous { context, tag: Tag(0), memory }),
        Message::Fin(Fin { context, tag: Tag(0), rvh: Rvh { va: u64::MAX, rkey: 0, len: 1 } }),
    ];
    for message in control.map(Message::Control).into_iter().chain(tagged) {
        let mut out = [0xEE; 100];
        assert!(message.encode(&mut out).is_err(), "{message:?}");
        assert!(out.iter().all(|byte| *byte == 0xEE), "{message:?}");
    }
    assert_eq!(OperationId::new(1 << 24), None);
    assert_eq!(InstanceId::new(0), None);
    assert_eq!(EndpointName::new(&[0; 65]), None);
    assert_eq!(ConnectData::cut(&[1; 65]).bytes(), [1; 64], "what is too much is left out");
}
