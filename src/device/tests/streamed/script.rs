//! What a peer says on a stream: messages of every kind and of lengths about every threshold, as frames, cut anywhere.

use std::collections::VecDeque;

use crate::device::stream::frame::{Head, Kind};
use crate::device::tests::{Memory, Random, framed_with, pattern};
use crate::ids::Tag;
use crate::seam::Buffer;
use crate::wire::{
    AppContext, Control, Eager, Keepalive, OperationId, Payload, RemoteMemory, RemoteStretch, RemoteWrite,
    Rendezvous, Segment, SegmentFirst, SendFlags, Untagged,
};

/// One message, and what the receiver does with it.
pub(super) struct Message {
    pub(super) form: Form,
    pub(super) payload: Vec<u8>,
    pub(super) cq_data: Option<u32>,
    pub(super) course: Course,
    /// Bytes of the receive that takes it, and of the stretches of its memory.
    pub(super) room: usize,
    stretches: Vec<usize>,
    /// Where it was accepted to.
    memory: Option<Memory>,
}

/// How a message comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    Tagged,
    Untagged,
    Segments {
        is_tagged: bool,
        piece: usize,
    },
    /// Its payload is asked for, and refused or not.
    ToBeRead {
        is_refused: bool,
    },
    RemoteWrite,
    Keepalive,
}

/// What the receiver does with a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Course {
    /// A receive is posted.
    Accept,
    /// It is refused.
    Discard,
    /// It is unexpected, and a receive comes later.
    AcceptLater,
    /// The same by the short way, if that can be.
    PlaceLater,
    /// It is unexpected, and dropped later: its receive was cancelled, say.
    DiscardLater,
}

impl Message {
    pub(super) fn random(random: &mut Random) -> Self {
        let form = match random.below(12) {
            0..5 => Form::Tagged,
            5 | 6 => Form::Untagged,
            7 | 8 => Form::Segments {
                is_tagged: random.below(2) == 0,
                piece: [1, 700, 16_384, 50_000, 70_000][random.below(5)],
            },
            9 => Form::ToBeRead { is_refused: random.below(4) == 0 },
            10 => Form::RemoteWrite,
            _ => Form::Keepalive,
        };
        let length = match form {
            Form::Keepalive => 0,
            // A first segment is less than the whole; of single bytes there are few.
            Form::Segments { piece: 1, .. } => 2 + random.below(200),
            Form::Segments { piece, .. } => piece + 1 + length(random),
            Form::RemoteWrite | Form::ToBeRead { .. } => 1 + length(random),
            Form::Tagged | Form::Untagged => length(random),
        };
        let course = match random.below(9) {
            0..4 => Course::Accept,
            4 => Course::Discard,
            5 | 6 => Course::AcceptLater,
            7 => Course::PlaceLater,
            _ => Course::DiscardLater,
        };
        let is_held = matches!(course, Course::AcceptLater | Course::PlaceLater | Course::DiscardLater);
        let course = if form == Form::RemoteWrite && is_held { Course::Discard } else { course };
        let cq_data = (!matches!(form, Form::RemoteWrite | Form::Keepalive) && random.below(4) == 0)
            .then_some(0xC0_0000 + u32::try_from(length % 1000).expect("it is short"));
        let room = match random.below(8) {
            0 => random.below(length + 1),
            1 => length.min(100),
            2 => length + 1 + random.below(1000),
            _ => length,
        };
        let payload = pattern(random.below(1000), length);
        Self { form, payload, cq_data, course, room, stretches: stretches(random, room), memory: None }
    }

    /// Its frames, of which others may be between.
    pub(super) fn frames(&self, number: usize) -> VecDeque<Vec<u8>> {
        let operation = operation(number);
        let flags = if self.cq_data.is_some() { SendFlags::CQ_DATA } else { SendFlags::NONE };
        let context = AppContext { operation, flags };
        let payload = Payload::new(&self.payload);
        match self.form {
            Form::Tagged => {
                let header = Eager { context, tag: Tag(number as u64), payload }.header();
                [self.framed(&header, &self.payload)].into()
            }
            Form::Untagged => {
                let header = Untagged { context, cq_data: self.cq_data, payload }.header();
                [framed(None, &header.expect("it is good"), &self.payload)].into()
            }
            Form::Segments { is_tagged, piece } => self.segments(number, context, is_tagged, piece),
            Form::ToBeRead { .. } => {
                let length = self.payload.len() as u64;
                let memory = RemoteMemory { address: 0, key: key(number), length };
                let request = Rendezvous { context, tag: Tag(number as u64), memory };
                let mut bytes = [0; Rendezvous::LENGTH_MAX];
                let length = request.encode(&mut bytes).expect("it is good");
                [self.framed(&bytes[..length], &[])].into()
            }
            Form::RemoteWrite => {
                let length = self.payload.len() as u64;
                let stretch = RemoteStretch { key: 1, address: 0, length };
                let write =
                    RemoteWrite { operation, is_last: true, stretch, offset: 0, cq_data: None, payload };
                let header = write.header(length).expect("it is good");
                [framed(None, &header, &self.payload)].into()
            }
            Form::Keepalive => {
                let message = Control::Keepalive(Keepalive { is_answer: true, sequence: operation.value() });
                let mut bytes = [0; 64];
                let length = message.encode(&mut bytes).expect("it is good");
                [framed(None, &bytes[..length], &[])].into()
            }
        }
    }

    /// A frame with the immediate that a message with a tag has.
    fn framed(&self, header: &[u8], payload: &[u8]) -> Vec<u8> {
        framed(self.cq_data, header, payload)
    }

    fn segments(
        &self,
        number: usize,
        context: AppContext,
        is_tagged: bool,
        piece: usize,
    ) -> VecDeque<Vec<u8>> {
        let pieces = self.payload.chunks(piece).enumerate();
        let frame = |(place, piece_bytes): (usize, &[u8])| {
            let payload = Payload::new(piece_bytes);
            if place == 0 {
                let tag = is_tagged.then_some(Tag(number as u64));
                let total_length = self.payload.len() as u64;
                let first =
                    SegmentFirst { context, tag, total_length, cq_data: self.cq_data, payload }.header();
                return framed(None, &first.expect("it is good"), piece_bytes);
            }
            let offset = place * piece;
            let segment = Segment { operation: context.operation, offset: offset as u64, payload };
            let header = segment.header(offset + piece_bytes.len() == self.payload.len());
            framed(None, &header.expect("it is good"), piece_bytes)
        };
        pieces.map(frame).collect()
    }

    /// The memory that it is accepted to.
    pub(super) fn buffer(&mut self) -> Buffer {
        let new = || Memory::cut(vec![FILL; self.room], &self.stretches);
        self.memory.get_or_insert_with(new).buffer()
    }

    /// The memory that it was accepted to holds what it should.
    pub(super) fn check_placed(&self, of: &str) {
        let placed = self.room.min(self.payload.len());
        let expected = self.payload[..placed].iter().chain(std::iter::repeat_n(&FILL, self.room - placed));
        let bytes = self.memory.as_ref().expect("it was accepted").bytes();
        let differs = expected.zip(&bytes).position(|(expected, byte)| expected != byte);
        assert_eq!((differs, bytes.len()), (None, self.room), "{of}");
    }
}

/// The frames that answer a request to read: the data in pieces, or a refusal.
pub(super) fn read_answer(
    number: u64,
    payload: &[u8],
    is_refused: bool,
    random: &mut Random,
) -> VecDeque<Vec<u8>> {
    let frame = |kind, bytes: &[u8]| {
        let length = u32::try_from(bytes.len() + 8).expect("it is short");
        [Head { kind, length }.to_bytes().as_slice(), &number.to_be_bytes(), bytes].concat()
    };
    if is_refused {
        // Some of it may have been read before.
        let before = random.below(payload.len());
        let mut frames: VecDeque<_> = [frame(Kind::ReadRefused, &[])].into();
        if before > 0 {
            frames.push_front(frame(Kind::ReadData, &payload[..before]));
        }
        return frames;
    }
    let piece = 1 + length(random);
    payload.chunks(piece).map(|piece| frame(Kind::ReadData, piece)).collect()
}

/// How bytes are cut on their way.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cuts {
    /// A few bytes at a time, or one, about the borders of frames.
    Bytes,
    Short,
    Any,
    /// As much as there is room for.
    Whole,
}

impl Cuts {
    pub(super) const ALL: [Self; 4] = [Self::Bytes, Self::Short, Self::Any, Self::Whole];

    /// Bytes that come together, `from_border` of the next frame.
    pub(super) fn next(self, to_border: usize, random: &mut Random) -> usize {
        match self {
            Self::Bytes if to_border <= 70 && random.below(4) == 0 => 1 + random.below(30),
            Self::Bytes if to_border <= 70 => 1,
            Self::Bytes => to_border - 70,
            Self::Short if random.below(3) > 0 => 1 + random.below(100),
            Self::Short => 1 + random.below(20_000),
            Self::Any => 1 + length(random),
            Self::Whole => usize::MAX,
        }
    }
}

/// By which key the memory of a message is read.
fn key(number: usize) -> u32 {
    u32::try_from(number).expect("there are not so many") + 1
}

pub(super) fn operation(number: usize) -> OperationId {
    OperationId::new(u32::try_from(number).expect("there are not so many")).expect("24 bits")
}

fn framed(immediate: Option<u32>, header: &[u8], payload: &[u8]) -> Vec<u8> {
    framed_with(immediate, &[header, payload].concat())
}

/// About the borders of what is read at once, of what is long, of what is eager where, and of a ring.
fn length(random: &mut Random) -> usize {
    let about = |border: usize, random: &mut Random| (border + random.below(66)).saturating_sub(33);
    match random.below(24) {
        0 | 1 => 0,
        2 => 1 + random.below(2),
        3..8 => random.below(300),
        8 | 9 => about(1024, random),
        10 | 11 => about(16 << 10, random),
        12..16 => about(40 << 10, random),
        16..19 => about(64 << 10, random),
        19..21 => random.below(100_000),
        21 | 22 => about(128 << 10, random),
        _ => [(1 << 20) - 1, 1 << 20, (3 << 20) + 1][random.below(3)],
    }
}

/// Memory in one stretch or several, more of them than one call takes sometimes; the last has what is left.
fn stretches(random: &mut Random, room: usize) -> Vec<usize> {
    match [0, 0, 0, 1, 3, 40][random.below(6)] {
        0 => vec![room],
        parts => (0..parts).map(|_| random.below(1 + 2 * room / (parts + 1))).collect(),
    }
}

/// What memory holds before anything comes.
const FILL: u8 = 0xEE;
/// The longest payload, and a segment's.
pub(in crate::device) const EAGER_LIMIT: u64 = 4 << 20;
