//! Peek, claim and discard of messages by every protocol (B10, B13 to B16), and messages that are cut (B22).

use super::common::pair::ANY;
use super::common::{Received, minus};
use super::course::{Course, ways};
use tagmatch::provider::abi;

/// What is done with a message that waits.
const ALL: [What; 5] = [What::Look, What::Claim, What::ClaimAndDiscard, What::Discard, What::ClaimIntoLess];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum What {
    Look,
    Claim,
    ClaimAndDiscard,
    Discard,
    ClaimIntoLess,
}

#[test]
fn b13_b14_peek_claim_and_discard_of_every_protocol_tell_both_sides_once_and_leave_nothing() {
    for way in ways() {
        let course = Course::new(way);
        for (number, what) in (1..).zip(ALL) {
            // One that is done when it was taken, and one when it is out.
            for flags in [abi::FI_COMPLETION, abi::FI_COMPLETION | abi::FI_MATCH_COMPLETE] {
                do_with_one(&course, number, what, flags);
            }
        }
        let counters = course.over();
        assert_eq!(counters.count("truncated") > 0, way.length > 0, "{way:?}");
    }
}

fn do_with_one(course: &Course, number: u8, what: What, flags: u64) {
    let tag = 7;
    let payload = course.payload(number);
    let sent = course.send_with(tag, &payload, flags);
    course.find(tag, 2, 0);
    let waits = course.way.protocol() == 2 || flags & abi::FI_MATCH_COMPLETE != 0;
    if waits {
        (0..20).for_each(|_| course.round());
        assert_eq!(course.of(sent), [], "{:?}: nobody has taken it", course.way);
    }
    let (mut whole, mut less) = (vec![0xEE; payload.len()], vec![0xEE; payload.len() / 2 + 16]);
    let half = payload.len() / 2;
    let side = course.receiver();
    match what {
        // It is still there for a receive.
        What::Look => {
            assert_eq!(side.receive(ANY, tag, 0, &mut whole, 3), 0);
            course.received(3, tag);
            assert_eq!(whole, payload);
        }
        What::Claim | What::ClaimAndDiscard | What::ClaimIntoLess => {
            course.find(tag, 4, abi::FI_CLAIM);
            assert!(!course.look(tag, 5, 0), "{:?}: it is claimed", course.way);
            // A receive that fits does not get it.
            let mut other = vec![0; payload.len()];
            assert_eq!(side.receive(ANY, tag, 0, &mut other, 6), 0);
            (0..3).for_each(|_| course.round());
            assert_eq!(course.of(6), []);
            assert_eq!(side.cancel(6), 0);
            course.failed(6, abi::FI_ECANCELED);
            match what {
                What::Claim => {
                    assert_eq!(side.receive_message(tag, 0, Some(&mut whole), 4, abi::FI_CLAIM), 0);
                    course.received(4, tag);
                    assert_eq!(whole, payload);
                }
                What::ClaimIntoLess => {
                    let into = &mut less[..half];
                    assert_eq!(side.receive_message(tag, 0, Some(into), 4, abi::FI_CLAIM), 0);
                    match course.ended(4) {
                        Received::Ok { length, .. } => assert_eq!((length, payload.len()), (0, 0)),
                        Received::Error { error, length, overflow, tag: t, .. } => {
                            assert_eq!((error, t), (abi::FI_ETRUNC, tag));
                            assert_eq!((length, overflow), (half, payload.len() - half));
                        }
                    }
                    assert_eq!(less[..half], payload[..half]);
                    assert!(less[half..].iter().all(|byte| *byte == 0xEE), "written past the buffer");
                }
                What::Look | What::Discard | What::ClaimAndDiscard => {
                    let flags = abi::FI_CLAIM | abi::FI_DISCARD;
                    assert_eq!(side.receive_message(tag, 0, None, 4, flags), 0);
                    assert!(matches!(course.ended(4), Received::Ok { .. }));
                }
            }
            let again = side.receive_message(tag, 0, Some(&mut other), 4, abi::FI_CLAIM);
            assert_eq!(again, minus(abi::FI_EINVAL), "it was claimed once");
        }
        What::Discard => course.find(tag, 8, abi::FI_DISCARD),
    }
    course.sent(sent);
    assert!(!course.look(tag, 9, 0), "{:?}", course.way);
}

#[test]
fn b22_messages_of_every_protocol_are_cut_at_the_end_of_a_short_buffer_posted_before_after_or_meanwhile() {
    for way in ways() {
        let course = Course::new(way);
        let mut cut = 0;
        for room in [0, way.length / 2, way.length.saturating_sub(1), way.length, way.length + 1] {
            // Posted before it is sent, at once after that, or so many rounds later.
            for when in [None, Some(0), Some(1), Some(2), Some(3), Some(20)] {
                let payload = course.payload(3);
                let mut buffer = vec![0xEE; room + 16];
                let post = |buffer: &mut [u8]| {
                    assert_eq!(course.receiver().receive(ANY, 5, 0, &mut buffer[..room], 1), 0);
                };
                if when.is_none() {
                    post(&mut buffer);
                }
                let sent = course.send(5, &payload);
                if let Some(rounds) = when {
                    (0..rounds).for_each(|_| course.round());
                    post(&mut buffer);
                }
                let placed = room.min(way.length);
                match course.ended(1) {
                    Received::Ok { length, .. } => assert_eq!((length, placed), (way.length, way.length)),
                    Received::Error { error, length, overflow, tag, .. } => {
                        cut += 1;
                        assert_eq!(tag, 5, "{way:?}");
                        assert_eq!((error, length, overflow), (abi::FI_ETRUNC, placed, way.length - placed));
                        assert!(overflow > 0, "{way:?}");
                    }
                }
                assert_eq!(buffer[..placed], payload[..placed], "{way:?} {room} {when:?}");
                assert!(buffer[placed..].iter().all(|byte| *byte == 0xEE), "{way:?}: past the buffer");
                course.sent(sent);
            }
        }
        assert_eq!(course.over().count("truncated"), cut, "{way:?}");
        assert_eq!(cut > 0, way.length > 0);
    }
}
