//! Without a NIC: the fallback through the same code.

use super::hand::{Hand, any, from, masked};
use crate::engine::{CancelOutcome, Config, End, Kind, Posting, Receive};
use crate::ids::{DeviceId, PeerId};
use crate::seam::{Answer, Buffer, Capabilities, Command, DataError, DataTarget, Event, EventSink};

const DEVICE: DeviceId = DeviceId(0);

fn software() -> Hand {
    Hand::with(Config::default(), &[Capabilities::default()])
}

impl Hand {
    fn message(&mut self, tag: u64, source: u32) -> Answer {
        let arrival = self.arrival(tag, source, false);
        self.engine.handle_event(DEVICE, &Event::Arrived(arrival))
    }
}

#[test]
fn a_posted_receive_takes_a_message_in_hand_at_once() {
    let mut hand = software();
    hand.queued(any(7), 1);
    let answer = hand.message(7, 0);
    assert_eq!(answer, Answer::Accept { buffer: Buffer::new(1000, 100), transfer: None });
    assert_eq!(hand.received(), [(1, 1)]);
    assert_eq!(hand.engine.depths(), (0, 0));
}

#[test]
fn an_unexpected_message_is_held_until_a_receive_takes_it() {
    let mut hand = software();
    assert_eq!(hand.message(7, 0), Answer::Hold);
    assert!(matches!(hand.post(any(7), 1), Posting::Matched(message) if message.app_ctx == 1));
    assert_eq!(hand.received(), [], "its data is not placed yet");
    hand.place(DEVICE);
    assert_eq!(hand.received(), [(1, 1)]);
    assert_eq!(hand.engine.transfers(), 0);
}

#[test]
fn a_short_buffer_cuts_the_message_and_takes_the_match() {
    let mut hand = software();
    let receive = Receive { pattern: any(1), buffer: Buffer::new(64, 4), context: 9, kind: Kind::Once };
    hand.engine.post(&receive);
    hand.message(1, 0);
    let completion = hand.completions()[0];
    let End::Received(message) = completion.end else { panic!("{completion:?}") };
    assert!(message.is_truncated());
    assert_eq!((message.length, message.placed), (10, 4));
}

#[test]
fn a_multi_receive_buffer_stays_at_its_place_until_used_up() {
    let mut hand = software();
    hand.message(5, 0);
    let multi = Receive {
        pattern: masked(0, 0xff),
        buffer: Buffer::new(0, 35),
        context: 1,
        kind: Kind::Multi { least: 6 },
    };
    let posting = hand.engine.post(&multi);
    hand.queued(any(5), 2);
    assert!(matches!(posting, Posting::Queued(_)), "it took the waiting message and stays");
    for piece in 1..3 {
        let Answer::Accept { buffer, .. } = hand.message(5, 0) else { panic!("held") };
        assert_eq!((buffer.address, buffer.length), (10 * piece, 35 - 10 * piece));
    }
    let Answer::Accept { buffer, .. } = hand.message(5, 0) else { panic!("held") };
    assert_eq!(buffer.address, 2000, "5 bytes are left, fewer than 6: the next receive is asked");
    let ends: Vec<_> =
        hand.completions().iter().map(|c| (c.context, matches!(c.end, End::Released))).collect();
    assert_eq!(ends, [(1, false), (1, false), (2, false)], "released only when all its data is there");
    hand.place(DEVICE);
    let ends: Vec<_> =
        hand.completions().iter().map(|c| (c.context, matches!(c.end, End::Released))).collect();
    assert_eq!(ends, [(1, false), (1, true)]);
}

#[test]
fn a_cancelled_multi_receive_ends_behind_its_data() {
    let mut hand = software();
    hand.message(5, 0);
    let multi =
        Receive { pattern: any(5), buffer: Buffer::new(0, 1000), context: 1, kind: Kind::Multi { least: 1 } };
    let Posting::Queued(id) = hand.engine.post(&multi) else { panic!("used up") };
    assert_eq!(hand.cancel(id), CancelOutcome::Cancelled);
    assert_eq!(hand.completions().len(), 0);
    hand.place(DEVICE);
    let ends: Vec<_> = hand.completions().into_iter().map(|c| c.end).collect();
    assert!(matches!(ends[..], [End::Received(_), End::Cancelled]), "{ends:?}");
    assert_eq!(hand.cancel(id), CancelOutcome::TooLate);
}

#[test]
fn claims_hide_a_message_and_end_once() {
    let mut hand = software();
    hand.message(7, 0);
    let (claim, peeked) = hand.engine.claim(&any(7)).unwrap();
    assert_eq!((peeked.tag.0, peeked.length), (7, 10));
    assert_eq!(hand.engine.peek(&any(7)), None);
    hand.queued(any(7), 1);
    assert!(hand.engine.receive_claimed(claim, Buffer::new(0, 10), 2));
    assert!(!hand.engine.receive_claimed(claim, Buffer::new(0, 10), 3), "good for one use");
    assert!(!hand.engine.discard_claimed(claim));
    hand.place(DEVICE);
    assert_eq!(hand.received(), [(2, 1)]);
    hand.message(7, 0);
    assert_eq!(hand.received(), [(1, 2)]);
}

#[test]
fn a_discarded_message_is_answered_so() {
    let mut hand = software();
    hand.message(7, 0);
    hand.message(8, 0);
    assert!(hand.engine.discard(&any(7)).is_some());
    assert!(hand.engine.discard(&any(7)).is_none());
    let (claim, _) = hand.engine.claim(&any(8)).unwrap();
    assert!(hand.engine.discard_claimed(claim));
    let discards = hand.commands(DEVICE);
    assert!(
        matches!(
            discards[..],
            [
                Command::Answer { answer: Answer::Discard, .. },
                Command::Answer { answer: Answer::Discard, .. }
            ]
        ),
        "{discards:?}"
    );
}

#[test]
fn a_source_learned_later_finds_the_message_that_came_earlier() {
    let mut hand = software();
    hand.queued(from(7, 1), 1);
    hand.message(7, 9);
    hand.message(7, 9);
    hand.queued(from(7, 1), 2);
    hand.engine.resolve(PeerId(9), PeerId(1));
    hand.place(DEVICE);
    assert_eq!(hand.received(), [(1, 1), (2, 2)]);
}

#[test]
fn a_lost_partial_message_is_dropped_and_the_receive_stays_posted() {
    let mut hand = software();
    let arrival = hand.arrival(7, 0, false);
    hand.engine.handle_event(DEVICE, &Event::Arrived(arrival));
    let data = crate::seam::Data {
        target: DataTarget::Message(arrival.message),
        length: 0,
        immediate: None,
        error: Some(DataError::PathLost),
    };
    hand.engine.handle_event(DEVICE, &Event::Data(data));
    hand.no_fault();
    hand.queued(any(7), 1);
}
