//! What comes over streams of bytes, however it is cut: random messages of every kind, answered at once, later or not at
//! all, and compared byte for byte. One seed is one script; each transport over streams gives its own line to a peer that
//! is the test.

mod judge;
mod script;

use std::collections::VecDeque;

use crate::device::stream::frame::{Head, Kind, ReadRequest};
use crate::device::transport::{CloseReason, Kept, Transport};
use crate::ids::MessageToken;
use crate::seam::{Answer, Command};

use super::{RECEIVED_FROM, Random};
use judge::{Judge, State};
use script::{Course, Cuts, Form, Message};

pub(in crate::device) use script::EAGER_LIMIT;

/// A transport with one link, bound to [`RECEIVED_FROM`], and its other end in the test's hands.
pub(in crate::device) trait Line {
    fn transport(&mut self) -> &mut dyn Transport;

    /// Give some of these bytes to the stream, and say how many.
    fn give(&mut self, bytes: &[u8]) -> usize;

    /// Nothing more is given.
    fn end(&mut self);

    /// What the transport wrote since it was asked last.
    fn written(&mut self) -> Vec<u8>;
}

/// Every message of a script arrives once and in order, and ends as its course says, with the right bytes. Where the script
/// is cut off, what is under way ends once each, and what was here whole stays.
pub(in crate::device) fn run(line: &mut impl Line, seed: u64, is_cut: bool) {
    let mut run = Run::new(line, seed);
    run.play(is_cut);
    run.settle(is_cut);
    run.judge.check(is_cut);
    assert_eq!(run.line.transport().kept(RECEIVED_FROM), Kept::default());
}

struct Run<'a, L> {
    line: &'a mut L,
    random: Random,
    judge: Judge,
    cuts: Cuts,
    /// Frames to come of messages that have begun, and of answers to reads.
    active: Vec<VecDeque<Vec<u8>>>,
    /// Bytes on their way, and where in them frames end.
    out: VecDeque<u8>,
    borders: VecDeque<usize>,
    /// What was given ends where a frame does.
    is_border: bool,
    /// Of what the transport wrote, what is not a whole frame yet.
    written: Vec<u8>,
    /// Messages that the transport sent: each says that the payload of a rendezvous is done with.
    told: usize,
}

impl<'a, L: Line> Run<'a, L> {
    fn new(line: &'a mut L, seed: u64) -> Self {
        let mut random = Random(seed);
        let count = 10 + random.below(20);
        let mut judge = Judge::default();
        judge.messages.extend((0..count).map(|_| Message::random(&mut random)));
        let cuts = Cuts::ALL[random.below(Cuts::ALL.len())];
        let (active, out, borders) = (Vec::new(), VecDeque::new(), VecDeque::new());
        Self {
            line,
            random,
            judge,
            cuts,
            active,
            out,
            borders,
            is_border: true,
            written: Vec::new(),
            told: 0,
        }
    }

    /// Give everything, or up to a random place.
    fn play(&mut self, is_cut: bool) {
        let mut left = if is_cut { 1 + self.random.below(60) } else { usize::MAX };
        let mut still = 0;
        while left > 0 {
            if self.out.is_empty() && !self.queue() {
                if is_cut || self.judge.is_done(&self.active) {
                    break;
                }
                still += 1;
                assert!(still < TURNS_MAX, "answers never come: {:?}", self.judge);
            }
            for _ in 0..=self.random.below(3) {
                left = left.saturating_sub(usize::from(self.give()));
            }
            for _ in 0..self.random.below(3) {
                self.turn(3);
            }
        }
    }

    /// Put a few frames on their way; false if there are none now.
    fn queue(&mut self) -> bool {
        for _ in 0..=self.random.below(6) {
            let (begun, all) = (self.judge.begun.len(), self.judge.messages.len());
            let begins = begun < all && self.active.len() < 5;
            if begins && (self.active.is_empty() || self.random.below(2) == 0) {
                self.judge.begun.push(begun);
                let mut frames = self.judge.messages[begun].frames(begun);
                let first = frames.pop_front().expect("every message has a frame");
                self.push(&first);
                self.active.push(frames);
            } else if !self.active.is_empty() {
                let place = self.random.below(self.active.len());
                if let Some(frame) = self.active[place].pop_front() {
                    self.push(&frame);
                }
            }
            self.active.retain(|frames| !frames.is_empty());
        }
        !self.out.is_empty()
    }

    fn push(&mut self, frame: &[u8]) {
        self.out.extend(frame);
        self.borders.push_back(self.out.len());
    }

    /// Give some bytes, and say whether any were taken.
    fn give(&mut self) -> bool {
        let to_border = self.borders.front().copied().unwrap_or(0);
        let wanted = self.cuts.next(to_border, &mut self.random).min(self.out.len());
        let given = self.line.give(&self.out.make_contiguous()[..wanted]);
        self.out.drain(..given);
        self.is_border = self.is_border && given == 0 || self.borders.contains(&given);
        self.borders.iter_mut().for_each(|border| *border = border.saturating_sub(given));
        self.borders.retain(|border| *border > 0);
        given > 0
    }

    /// The transport goes on, some of what is held is answered (one in `seldom`), and reads are.
    fn turn(&mut self, seldom: usize) {
        let max = 1 + self.random.below(50);
        self.line.transport().flush().expect("it works");
        self.line.transport().progress(max, &mut self.judge).expect("it works");
        for (number, token, in_hand) in self.judge.held() {
            if self.random.below(seldom) == 0 {
                self.answer(number, token, in_hand);
            }
        }
        self.serve();
    }

    fn answer(&mut self, number: usize, message: MessageToken, in_hand: bool) {
        let course = self.judge.messages[number].course;
        let accept = self.judge.accept(number);
        let (answer, state) = match (course, accept) {
            (Course::PlaceLater, Answer::Accept { buffer, .. }) if in_hand => {
                assert!(self.line.transport().place_held(message, &buffer), "message {number} is here whole");
                self.judge.states.insert(number, State::Placed);
                return;
            }
            (Course::DiscardLater, _) => (Answer::Discard, State::Dropped),
            _ => (accept, State::UnderWay),
        };
        self.judge.states.insert(number, state);
        let taken = self.line.transport().submit(&[Command::Answer { message, answer }]);
        assert_eq!(taken, Ok(1));
    }

    /// Answer what the transport asks for.
    fn serve(&mut self) {
        self.written.extend(self.line.written());
        while let Ok(Some(head)) = Head::decode(&self.written) {
            let end = Head::LENGTH + head.length as usize;
            if self.written.len() < end {
                return;
            }
            let frame: Vec<u8> = self.written.drain(..end).collect();
            if head.kind != Kind::Read {
                assert_eq!(head.kind, Kind::Message);
                self.told += 1;
                continue;
            }
            let request = frame[Head::LENGTH..].first_chunk().expect("it is whole");
            let request = ReadRequest::decode(request).expect("it is good");
            let message = &self.judge.messages[request.key as usize - 1];
            let Form::ToBeRead { is_refused } = message.form else { panic!("{request:?}") };
            let length = usize::try_from(request.length).expect("it is short");
            assert_eq!((request.address, length), (0, message.room.min(message.payload.len())));
            let payload = message.payload[..length].to_vec();
            self.active.push(script::read_answer(request.number, &payload, is_refused, &mut self.random));
        }
    }

    /// Until everything has come to its end.
    fn settle(&mut self, is_cut: bool) {
        if is_cut {
            self.line.end();
        }
        for _ in 0..TURNS_MAX {
            self.turn(1);
            if self.judge.is_settled() && self.judge.closed.is_some() == is_cut {
                break;
            }
            std::thread::yield_now();
        }
        assert!(self.judge.is_settled(), "it never ends: {:?}", self.judge);
        if !is_cut {
            assert_eq!(self.judge.closed, None);
            assert_eq!(self.judge.arrived, self.judge.messages.len());
            let reads =
                self.judge.messages.iter().filter(|message| matches!(message.form, Form::ToBeRead { .. }));
            assert_eq!(self.told, reads.count(), "each sender is told once");
            return;
        }
        // Of a message all of whose bytes were given nothing is missing; at a border the peer has just left.
        let reason =
            if self.is_border { CloseReason::Peer } else { CloseReason::System { errno: libc::ECONNRESET } };
        assert_eq!((self.judge.closed.as_ref(), self.judge.path_lost), (Some(&reason), 2));
    }
}

const TURNS_MAX: usize = 200_000;
