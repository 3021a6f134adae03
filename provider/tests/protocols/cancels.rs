//! Cancelling a receive at every stage of its message, by every protocol (B17, B18): it is cancelled or completed, once,
//! and a message whose receive is cancelled is there for the next.

use super::common::Received;
use super::common::pair::ANY;
use super::course::{Course, Way, ways};
use tagmatch::provider::abi;

/// How far the message is when its receive is cancelled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// It has not been sent.
    Unsent,
    /// It was sent while the receive was posted, so many rounds ago.
    Sent(usize),
    /// It was there before the receive, so many rounds ago.
    Waited(usize),
    /// The receive is for a message that was claimed.
    Claimed(usize),
    /// Its end is told, and not read.
    Told,
    /// Its end was read.
    Read,
}

fn stages() -> Vec<Stage> {
    let mut stages = vec![Stage::Unsent, Stage::Told, Stage::Read];
    stages.extend((0..12).flat_map(|rounds| [Stage::Sent(rounds), Stage::Waited(rounds)]));
    stages.extend((0..4).map(Stage::Claimed));
    stages
}

#[test]
fn b17_b18_a_cancel_at_every_stage_of_every_protocol_ends_the_receive_once_and_loses_no_message() {
    let mut ends = [0; 2];
    for way in ways() {
        let course = Course::new(way);
        let mut cancelled = 0;
        for source in [ANY, course.from] {
            for stage in stages() {
                let is_cancelled = cancel_at(&course, stage, source);
                ends[usize::from(is_cancelled)] += 1;
                cancelled += u64::from(is_cancelled);
            }
        }
        let counters = course.over();
        assert_eq!(counters.count("cancelled"), cancelled, "{way:?}");
        assert_eq!(counters.count("failed"), 0, "{way:?}");
    }
    assert!(ends[0] > 100 && ends[1] > 10, "{ends:?}");
    println!("{} receives were completed although they were cancelled, {} were cancelled", ends[0], ends[1]);
}

/// Whether the receive was cancelled.
fn cancel_at(course: &Course, stage: Stage, source: u64) -> bool {
    let (tag, context) = (5, 10);
    let Way { length, .. } = course.way;
    let payload = course.payload(9);
    let side = course.receiver();
    let rounds = |count: usize| (0..count).for_each(|_| course.round());
    let mut buffer = vec![0xEE; length + 16];
    let mut post = || assert_eq!(side.receive(source, tag, 0, &mut buffer[..length], context), 0);
    let mut sent = None;
    match stage {
        Stage::Unsent => post(),
        Stage::Sent(count) => {
            post();
            sent = Some(course.send(tag, &payload));
            rounds(count);
        }
        Stage::Waited(count) => {
            sent = Some(course.send(tag, &payload));
            course.find(tag, 11, 0);
            post();
            rounds(count);
        }
        Stage::Claimed(count) => {
            sent = Some(course.send(tag, &payload));
            course.find(tag, context, abi::FI_CLAIM);
            let into = Some(&mut buffer[..length]);
            assert_eq!(side.receive_message(tag, 0, into, context, abi::FI_CLAIM), 0);
            rounds(count);
        }
        Stage::Told => {
            post();
            sent = Some(course.send(tag, &payload));
            for _ in 0..40 {
                side.progress();
                course.sender.progress();
            }
        }
        Stage::Read => {
            post();
            sent = Some(course.send(tag, &payload));
            course.received(context, tag);
        }
    }
    assert_eq!((side.cancel(context), side.cancel(context)), (0, 0));
    if stage == Stage::Read {
        rounds(20);
        assert_eq!(course.of(context), [], "{:?}: cancelled after its end", course.way);
        course.sent(sent.unwrap());
        return false;
    }
    let end = course.ended(context);
    rounds(20);
    assert_eq!(course.of(context), [], "{:?} {stage:?}: two ends", course.way);
    let is_cancelled = match end {
        Received::Ok { length: l, tag: t, .. } => {
            assert_eq!((l, t), (length, tag), "{:?} {stage:?}", course.way);
            assert_eq!(buffer[..length], payload, "{:?} {stage:?}", course.way);
            false
        }
        Received::Error { error, .. } => {
            assert_eq!(error, abi::FI_ECANCELED, "{:?} {stage:?}", course.way);
            assert!(buffer.iter().all(|byte| *byte == 0xEE), "{:?} {stage:?}: written to", course.way);
            true
        }
    };
    assert!(buffer[length..].iter().all(|byte| *byte == 0xEE), "{:?} {stage:?}", course.way);
    let must_be = match stage {
        Stage::Unsent => Some(true),
        Stage::Waited(_) | Stage::Claimed(_) | Stage::Told | Stage::Read => Some(false),
        Stage::Sent(_) => None,
    };
    assert!(must_be.is_none_or(|must| must == is_cancelled), "{:?} {stage:?}: {end:?}", course.way);
    if is_cancelled {
        // The message is the next one's, whether it is here already or comes.
        let sent = sent.unwrap_or_else(|| course.send(tag, &payload));
        let mut next = vec![0; length];
        assert_eq!(side.receive(source, tag, 0, &mut next, 12), 0);
        course.received(12, tag);
        assert_eq!(next, payload);
        course.sent(sent);
    } else {
        course.sent(sent.unwrap());
    }
    is_cancelled
}
