//! Messages in segments: put together, whatever the answer and whenever it comes.

use super::rig::{context, outgoing};
use super::{Memory, Policy, RECEIVED_FROM, Rig, over_every_transport, pattern};
use crate::device::transport::{CloseReason, Kept, Notice, Payload};
use crate::ids::Tag;
use crate::seam::Answer;
use crate::wire::{self, Segment, SegmentFirst};

over_every_transport!(
    segments_are_put_together_in_the_buffer,
    segments_are_kept_until_the_answer_comes_in_their_midst,
    messages_in_segments_may_come_side_by_side,
    segments_that_nobody_wants_are_dropped,
    segments_out_of_order_end_the_link,
);

/// A message in segments, to be sent one by one.
struct Pieces {
    payload: Vec<u8>,
    operation: u32,
    tag: Option<Tag>,
    at: usize,
}

impl Pieces {
    fn new(operation: u32, tag: Option<u64>, payload: Vec<u8>) -> Self {
        Self { payload, operation, tag: tag.map(Tag), at: 0 }
    }

    /// Send the next so many bytes.
    fn send(&mut self, rig: &mut Rig, bytes: usize) {
        let (at, end) = (self.at, (self.at + bytes).min(self.payload.len()));
        let piece = &self.payload[at..end];
        let payload = wire::Payload::new(piece);
        if at == 0 {
            let first = SegmentFirst {
                context: context(self.operation),
                tag: self.tag,
                total_length: self.payload.len() as u64,
                cq_data: None,
                payload,
            };
            let header = first.header().expect("it is good");
            rig.send(&outgoing(&header, Payload::Copied(piece)));
        } else {
            let operation = context(self.operation).operation;
            let segment = Segment { operation, offset: at as u64, payload };
            let header = segment.header(end == self.payload.len()).expect("it is good");
            rig.send(&outgoing(&header, Payload::Copied(piece)));
        }
        self.at = end;
    }

    fn send_all(&mut self, rig: &mut Rig, bytes: usize) {
        while self.at < self.payload.len() {
            self.send(rig, bytes);
        }
    }
}

fn segments_are_put_together_in_the_buffer(mut rig: Rig) {
    let sizes = [(2, 1), (100, 99), (1000, 300), (300_000, 65_536), (2_000_000, 50_000)];
    for (seed, (size, piece)) in sizes.into_iter().enumerate() {
        for (tag, room) in [(Some(4), size), (None, size), (Some(5), size / 2)] {
            let into = Memory::zeros(room);
            let before = rig.ear().data().len();
            rig.ear().policy = Policy::Accept([into.buffer()].into());
            Pieces::new(1, tag, pattern(seed, size)).send_all(&mut rig, piece);
            let data = rig.until_data(before + 1)[before];
            assert_eq!((data.length, data.error), (size as u64, None));
            assert_eq!(into.bytes(), pattern(seed, size)[..room]);
            let arrival = *rig.ear().arrivals().last().expect("it came");
            assert_eq!((arrival.in_hand, arrival.header.length), (false, size as u64));
        }
    }
}

fn segments_are_kept_until_the_answer_comes_in_their_midst(mut rig: Rig) {
    let mut pieces = Pieces::new(9, Some(1), pattern(1, 1000));
    pieces.send(&mut rig, 300);
    let message = rig.until_arrived(1)[0].message;
    pieces.send(&mut rig, 300);
    assert_eq!(rig.receiver().kept(RECEIVED_FROM), Kept { messages: 1, bytes: 1000, requests: 0 });
    let into = Memory::zeros(1000);
    assert!(!rig.receiver().place_held(message, &into.buffer()), "it is not whole");
    let transfer = rig.accept(message, &into);
    assert_eq!(rig.receiver().kept(RECEIVED_FROM), Kept::default());
    pieces.send_all(&mut rig, 300);
    assert_eq!(rig.until_transferred(transfer).length, 1000);
    assert_eq!(into.bytes(), pattern(1, 1000));
}

fn messages_in_segments_may_come_side_by_side(mut rig: Rig) {
    let mut all: Vec<Pieces> =
        (0..20).map(|of| Pieces::new(of, Some(of.into()), pattern(of as usize, 500))).collect();
    let into: Vec<Memory> = all.iter().map(|_| Memory::zeros(500)).collect();
    rig.ear().policy = Policy::Accept(into.iter().map(Memory::buffer).collect());
    for _ in 0..5 {
        for pieces in &mut all {
            pieces.send(&mut rig, 100);
        }
        rig.send_control(&wire::Control::Keepalive(wire::Keepalive { is_answer: true, sequence: 1 }));
    }
    rig.until_data(20);
    for (seed, into) in into.iter().enumerate() {
        assert_eq!(into.bytes(), pattern(seed, 500));
    }
}

fn segments_that_nobody_wants_are_dropped(mut rig: Rig) {
    rig.ear().policy = Policy::Discard;
    Pieces::new(1, Some(1), pattern(1, 1000)).send_all(&mut rig, 200);
    rig.until_arrived(1);
    rig.ear().policy = Policy::Hold;
    let mut second = Pieces::new(1, Some(2), pattern(1, 1000));
    second.send(&mut rig, 200);
    let message = rig.until_arrived(2)[1].message;
    rig.answer(message, Answer::Discard);
    second.send_all(&mut rig, 200);
    rig.send_eager(3, b"next");
    rig.until_arrived(3);
    assert_eq!(rig.receiver().kept(RECEIVED_FROM), Kept { messages: 1, bytes: 4, requests: 0 });
    assert_eq!(rig.ear().data(), []);
}

fn segments_out_of_order_end_the_link(mut rig: Rig) {
    let mut pieces = Pieces::new(9, Some(1), pattern(1, 1000));
    pieces.send(&mut rig, 300);
    pieces.at = 400;
    pieces.send(&mut rig, 100);
    rig.until(|rig| !rig.ear().notices().is_empty());
    // What is here of the message is lost, and said to be.
    let lost = rig.ear().data()[0];
    assert!(lost.error.is_some());
    let notices = rig.ear().notices();
    let [Notice::Closed { reason: CloseReason::Protocol(what), .. }] = notices.as_slice() else {
        panic!("{notices:?}")
    };
    assert_eq!(what, "a segment from 400 to 500, where 300 of 1000 are here");
    assert_eq!(rig.receiver().kept(RECEIVED_FROM), Kept::default());
}
