//! Memory to be sent that is none: what was to be sent from there fails, and the link goes on where the stream can.

use std::io::Read as _;

use super::raw::{Raw, eager};
use crate::device::stream::frame::{self, Kind, ReadRequest};
use crate::device::tests::{framed, pattern, untagged};
use crate::device::transport::{CloseReason, Notice, Outgoing, Payload, SendError, Sending, Transport};
use crate::seam::Buffer;
use crate::wire::{OperationId, Segment};

/// The page after the first, which no process has.
const NOWHERE: Buffer = Buffer { length: 100_000, ..Buffer::new(4096, 0) };

fn outgoing<'a>(header: &'a [u8], payload: Payload<'a>, context: u64) -> Outgoing<'a> {
    Outgoing { header, payload, immediate: None, more: false, context: Some(context) }
}

/// Give as much as finds room, and say what goes out for it.
fn fill(raw: &mut Raw) -> Vec<u8> {
    let (header, payload) = (untagged(1), pattern(1, 50_000));
    let mut given = Vec::new();
    loop {
        let message = outgoing(&header, Payload::Copied(&payload), 0);
        if raw.transport.send(raw.link, &message).expect("there is a link") == Sending::Full {
            return given;
        }
        given.extend(framed(&[&header[..], &payload].concat()));
    }
}

/// All that comes out until it is so much.
fn read(raw: &mut Raw, length: usize) -> Vec<u8> {
    let (mut all, mut bytes) = (Vec::new(), vec![0; 1 << 20]);
    raw.stream.set_nonblocking(true).expect("it is a stream");
    while all.len() < length {
        if let Ok(count) = raw.stream.read(&mut bytes) {
            all.extend_from_slice(&bytes[..count]);
        }
        raw.step();
    }
    all
}

fn told(raw: &Raw, context: u64) -> Option<Result<(), CloseReason>> {
    raw.ear.notices().into_iter().find_map(|notice| match notice {
        Notice::Sent { context: of, result } if of == context => Some(result),
        _ => None,
    })
}

#[test]
fn a_message_whose_memory_is_none_is_refused_and_the_next_goes() {
    let mut raw = Raw::bound();
    let header = eager(1, b"");
    let sent = raw.transport.send(raw.link, &outgoing(&header, Payload::Memory(NOWHERE), 1));
    assert!(matches!(sent, Err(SendError::Memory(_))), "{sent:?}");
    let sent = raw.transport.send(raw.link, &outgoing(&header, Payload::Copied(b"good"), 2));
    assert_eq!(sent, Ok(Sending::Done));
    assert_eq!(read(&mut raw, 28), framed(&eager(1, b"good")));
}

#[test]
fn a_message_that_waits_is_left_out_and_what_is_before_and_behind_goes() {
    let mut raw = Raw::bound();
    let header = untagged(1);
    let mut given = fill(&mut raw);
    for (context, payload) in [(1, NOWHERE), (2, NOWHERE)] {
        let sent = raw.transport.send(raw.link, &outgoing(&header, Payload::Memory(payload), context));
        assert_eq!(sent, Ok(Sending::Posted));
    }
    let good = crate::device::tests::Memory::new(pattern(3, 10_000));
    let sent = raw.transport.send(raw.link, &outgoing(&header, Payload::Memory(good.buffer()), 3));
    assert_eq!(sent, Ok(Sending::Posted));
    given.extend(framed(&[&header[..], &good.bytes()].concat()));
    assert!(read(&mut raw, given.len()) == given, "the others go as they are");
    raw.until(|raw| told(raw, 3).is_some());
    assert_eq!(told(&raw, 1), Some(Err(CloseReason::Memory)));
    assert_eq!((told(&raw, 2), told(&raw, 3)), (told(&raw, 1), Some(Ok(()))));
    assert_eq!(raw.closed(), None);
    assert!(!raw.transport.tell_taken(raw.link, 4), "what was left out is not waited for");
}

#[test]
fn a_segment_that_cannot_be_read_ends_the_link() {
    let mut raw = Raw::bound();
    fill(&mut raw);
    let operation = OperationId::new(5).expect("it is small");
    let segment = Segment { operation, offset: 10, payload: crate::wire::Payload::new(&[0]) };
    let header = segment.header(true).expect("it is good");
    let sent = raw.transport.send(raw.link, &outgoing(&header, Payload::Memory(NOWHERE), 1));
    assert_eq!(sent, Ok(Sending::Posted));
    let mut bytes = vec![0; 1 << 20];
    raw.stream.set_nonblocking(true).expect("it is a stream");
    while told(&raw, 1).is_none() {
        let _ = raw.stream.read(&mut bytes);
        raw.step();
    }
    assert_eq!(told(&raw, 1), Some(Err(CloseReason::Memory)));
    while raw.stream.read(&mut bytes).is_ok_and(|count| count > 0) {}
    drop(std::mem::replace(&mut raw.stream, Raw::bound().stream));
    raw.until_closed();
}

#[test]
fn a_read_of_memory_that_is_none_is_refused_and_the_link_goes_on() {
    let mut raw = Raw::bound();
    let remote = raw.transport.expose(raw.link, NOWHERE).expect("it is tried later");
    let request = ReadRequest { number: 77, address: 0, length: NOWHERE.length, key: remote.key };
    raw.write(&request.to_bytes());
    assert_eq!(read(&mut raw, 16), frame::numbered(Kind::ReadRefused, 77, 0));
    let header = eager(1, b"");
    let sent = raw.transport.send(raw.link, &outgoing(&header, Payload::Copied(b"good"), 2));
    assert_eq!(sent, Ok(Sending::Done));
    assert_eq!(read(&mut raw, 28), framed(&eager(1, b"good")));
}
