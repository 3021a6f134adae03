//! What is counted of receives that were posted before their messages came, and of those that a device does without.

use super::hand::{Hand, NIC, any, from};
use crate::engine::CancelOutcome;
use crate::ids::TagHandle;
use crate::offload::Reason;
use crate::seam::{Answer, Event, MatchStage, Operation};

#[test]
fn of_receives_that_were_posted_first_it_is_counted_what_became_of_each() {
    let mut hand = Hand::new();
    // While the list has room: behind a full one nobody asks whether they could be in it.
    hand.queued(from(9, 3), 9);
    let cancelled = hand.queued(from(10, 3), 10);
    for context in 1..=6 {
        hand.queued(any(context), context);
    }
    let adds = hand.adds();
    hand.done(Operation::Add(adds[0].1), true, 0);
    hand.matched(adds[0].1, 1, 0, MatchStage::Complete);
    // On its way into the list; in software, since the list is full; in software, since it names a source.
    assert!(matches!(hand.unexpected(2, 0), Answer::Accept { .. }));
    assert!(matches!(hand.unexpected(6, 0), Answer::Accept { .. }));
    assert!(matches!(hand.unexpected(9, 3), Answer::Accept { .. }));
    // These are not: the message was first, or none came.
    assert!(matches!(hand.unexpected(77, 0), Answer::Hold));
    let _took = hand.post(any(77), 77);
    assert_eq!(hand.cancel(cancelled), CancelOutcome::Cancelled);
    let counted = *hand.engine.statistics();
    assert_eq!((counted.matched_by_device, counted.used_by_own_device, counted.taken_back), (1, 1, 0));
    assert_eq!(counted.first_ended(Reason::DeviceFull), 1);
    assert_eq!((counted.first_ended(Reason::Directed), counted.ended(Reason::Directed)), (1, 2));
    assert_eq!(counted.posted_first(), 4);
}

#[test]
fn receives_that_a_device_does_without_count_as_in_software_for_their_reasons() {
    let mut hand = Hand::new();
    for (tag, context) in [(7, 1), (7, 2), (8, 3)] {
        hand.queued(any(tag), context);
    }
    let handles: Vec<TagHandle> = hand.adds().iter().map(|(_, handle, _)| *handle).collect();
    for (place, overlaps) in [(0, false), (1, true), (0, false)] {
        hand.tell(&Event::SetAside { handle: handles[place], overlaps });
    }
    for handle in &handles {
        hand.done(Operation::Add(*handle), true, 0);
    }
    for (count, handle) in (1..).zip(&handles[..2]) {
        assert!(matches!(hand.unexpected(7, 0), Answer::Accept { .. }));
        let _del = hand.commands(NIC);
        hand.done(Operation::Del(*handle), true, count);
        hand.tell(&Event::Released(*handle));
    }
    hand.no_fault();
    let counted = *hand.engine.statistics();
    assert_eq!((counted.set_aside, counted.adds, counted.used_by_own_device), (2, 1, 0));
    assert_eq!((counted.ended(Reason::NotRegistered), counted.ended(Reason::OlderOverlap)), (1, 1));
    assert_eq!(counted.posted_first(), 2);
    // One that is not there.
    hand.tell(&Event::SetAside { handle: handles[0], overlaps: false });
    assert!(hand.engine.poll_fault().is_some());
}
