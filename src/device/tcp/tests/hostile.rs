//! A peer that says what it should not: at worst its link ends.

use proptest::prelude::*;

use super::raw::{Raw, eager};
use crate::device::tests::{Memory, Policy, RECEIVED_FROM, Random, Recorder, framed, pattern};
use crate::device::transport::{CloseReason, Transport};
use crate::ids::Tag;
use crate::seam::Answer;
use crate::wire::{
    AppContext, Control, Keepalive, OperationId, Payload, RemoteMemory, Rendezvous, Segment, SegmentFirst,
    Untagged, UntaggedRendezvous,
};

/// What a peer may not say, and a word of what is said of it.
fn breaches() -> Vec<(Vec<u8>, &'static str)> {
    let head = |length: u32, kind: u8| {
        let mut bytes = length.to_be_bytes().to_vec();
        bytes.extend([kind, 0, 0, 0]);
        bytes
    };
    let numbered = |length: u32, kind: u8| [head(length, kind), vec![9; 8]].concat();
    let read = |length: u64| {
        let mut bytes = head(32, 3);
        bytes.extend([0; 16]);
        bytes.extend(length.to_be_bytes());
        bytes.extend([0; 8]);
        bytes
    };
    vec![
        (head(16, 0), "kind 0"),
        (head(16, 7), "kind 7"),
        (vec![0, 0, 0, 16, 1, 0, 1, 0], "reserved"),
        (framed(&[]), "opcode"),
        (framed(&[4]), "opcode"),
        (framed(&[3; 15]), "EAGER"),
        (framed(&[3; 16]), "reserved"),
        (framed(&[0, 0x3F, 0, 0]), "kind"),
        (framed(&[0, 0x4F, 0, 0]), "version"),
        ([head(200_000, 1), eager(1, b"")].concat(), "eager limit"),
        ([head(u32::MAX, 1), eager(1, b"")].concat(), "eager limit"),
        ([head(16, 2), vec![0; 4], eager(1, b"")].concat(), "immediate"),
        ([head(8, 2), vec![0; 4], vec![0, 0x2F, 0, 0, 0, 0, 0, 1]].concat(), "immediate"),
        (head(31, 3), "31 bytes"),
        (read(0), "a read of 0 bytes"),
        (numbered(8, 4), "8 bytes"),
        (numbered(9, 4), "nobody asked"),
        (numbered(8, 5), "nobody asked"),
        (head(9, 5), "9 bytes"),
        (read(1).repeat(300), ""),
        (framed(&[0, 0x24, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 9]), "has begun no message"),
    ]
}

#[test]
fn every_breach_ends_the_link_and_is_named() {
    for (bytes, word) in breaches().into_iter().filter(|(_, word)| !word.is_empty()) {
        let mut raw = Raw::bound();
        raw.write(&bytes);
        let reason = raw.until_closed();
        let CloseReason::Protocol(what) = &reason else { panic!("{word}: {reason:?}") };
        assert!(what.contains(word), "{word}: {what}");
        raw.until_end_of_stream();
        assert_eq!(raw.transport.link_count(), 0);
    }
}

#[test]
fn asking_for_keys_that_are_none_is_refused_and_no_breach() {
    let mut raw = Raw::bound();
    let mut read = vec![0, 0, 0, 32, 3, 0, 0, 0];
    read.extend([1; 8]);
    read.extend([0; 8]);
    read.extend([0, 0, 0, 0, 0, 0, 0, 1]);
    read.extend([0; 8]);
    raw.write(&read.repeat(1000));
    raw.write(&framed(&eager(1, b"")));
    raw.until(|raw| raw.ear.arrivals().len() == 1);
    raw.step();
    let mut answers = vec![0; 16_000];
    std::io::Read::read_exact(&mut raw.stream, &mut answers).expect("it answers");
    let refused = [0, 0, 0, 8, 6, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];
    assert!(answers.chunks(16).all(|answer| answer == refused));
}

#[test]
fn messages_in_segments_that_never_end_are_limited() {
    let mut raw = Raw::bound();
    for operation in 0..300 {
        let context =
            AppContext { operation: OperationId::new(operation).expect("24 bits"), ..AppContext::default() };
        let payload = Payload::new(b"x");
        let first = SegmentFirst { context, tag: Some(Tag(1)), total_length: 2, cq_data: None, payload };
        let mut bytes = [0; 33];
        first.encode(&mut bytes).expect("it is good");
        raw.write(&framed(&bytes));
    }
    let CloseReason::Protocol(what) = raw.until_closed() else { panic!("{:?}", raw.closed()) };
    assert!(what.contains("segments at a time"), "{what}");
    assert_eq!(raw.ear.data().len(), 256, "what was held of them is lost");
    assert_eq!(raw.transport.kept(RECEIVED_FROM).bytes, 0);
}

/// A stream of everything that a good peer says.
fn good_stream() -> Vec<Vec<u8>> {
    let mut out = vec![0; 1000];
    let mut frames = Vec::new();
    let mut push = |encode: &dyn Fn(&mut [u8]) -> Result<usize, crate::wire::WireError>| {
        let length = encode(&mut out).expect("it is good");
        frames.push(framed(&out[..length]));
    };
    let context = AppContext { operation: OperationId::new(3).expect("24 bits"), ..AppContext::default() };
    let memory = RemoteMemory { address: 0, key: 5, length: 100 };
    let bytes = pattern(1, 200);
    push(&|out| Control::Keepalive(Keepalive { is_answer: false, sequence: 1 }).encode(out));
    push(&|out| Rendezvous { context, tag: Tag(1), memory }.encode(out));
    push(&|out| UntaggedRendezvous { context, cq_data: None, memory }.encode(out));
    push(&|out| Untagged { context, cq_data: None, payload: Payload::new(&bytes) }.encode(out));
    let (first, rest) = bytes.split_at(50);
    let payload = Payload::new(first);
    push(&|out| SegmentFirst { context, tag: None, total_length: 200, cq_data: None, payload }.encode(out));
    let segment = Segment { operation: context.operation, offset: 50, payload: Payload::new(rest) };
    push(&|out| Control::SegmentLast(segment).encode(out));
    frames.push(framed(&eager(7, &bytes)));
    frames.push([vec![0, 0, 0, 9, 4, 0, 0, 0], vec![0; 9]].concat());
    frames.push([vec![0, 0, 0, 32, 3, 0, 0, 0], vec![0; 15], vec![1; 9], vec![0; 8]].concat());
    frames
}

/// Frames in a random order, some doubled, some with wrong bytes, written in random pieces.
fn attack(
    transport: crate::device::tcp::TcpTransport,
    random: &mut Random,
) -> crate::device::tcp::TcpTransport {
    let frames = good_stream();
    let mut raw = Raw::connect(transport, Recorder::default());
    raw.transport.bind(raw.link, RECEIVED_FROM).expect("the one before has ended");
    let into = Memory::zeros(100);
    raw.ear.policy = match random.below(3) {
        0 => Policy::Hold,
        1 => Policy::Discard,
        _ => Policy::Accept((0..20).map(|_| into.buffer()).collect()),
    };
    let mut stream = Vec::new();
    for _ in 0..random.below(30) {
        let mut frame = frames[random.below(frames.len())].clone();
        if random.below(4) == 0 {
            for _ in 0..=random.below(3) {
                let place = random.below(frame.len());
                frame[place] = u8::try_from(random.below(256)).expect("a byte");
            }
        }
        if random.below(20) == 0 {
            frame.truncate(random.below(frame.len()));
        }
        stream.extend(frame);
    }
    let mut at = 0;
    while at < stream.len() {
        let end = (at + 1 + random.below(400)).min(stream.len());
        raw.write(&stream[at..end]);
        raw.step();
        at = end;
        if random.below(5) == 0
            && let Some(arrival) = raw.ear.arrivals().last()
        {
            let answer = match random.below(2) {
                0 => Answer::Discard,
                _ => Answer::Accept { buffer: into.buffer(), transfer: Some(raw.ear.transfer()) },
            };
            let command = crate::seam::Command::Answer { message: arrival.message, answer };
            crate::device::Device::submit(&mut raw.transport, &[command]).expect("it works");
        }
    }
    let _over = raw.stream.shutdown(std::net::Shutdown::Both);
    raw.until_closed();
    assert_eq!(raw.transport.link_count(), 0);
    for arrival in raw.ear.arrivals() {
        let command = crate::seam::Command::Answer { message: arrival.message, answer: Answer::Discard };
        crate::device::Device::submit(&mut raw.transport, &[command]).expect("it works");
    }
    assert_eq!(raw.transport.kept(RECEIVED_FROM), Default::default(), "all was answered, nothing is kept");
    raw.transport
}

#[test]
fn a_stream_with_wrong_bytes_does_no_harm() {
    let mut transport = Raw::open(crate::device::tcp::TcpConfig::loopback());
    let mut random = Random(2026);
    for _ in 0..2000 {
        transport = attack(transport, &mut random);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..3000)) {
        let mut raw = Raw::bound();
        raw.write(&bytes);
        let _over = raw.stream.shutdown(std::net::Shutdown::Both);
        raw.until_closed();
        prop_assert_eq!(raw.transport.link_count(), 0);
    }
}
