//! SCENARIOS B23, and the race of TM-CONTRACT 11.4.

use super::support::*;
use crate::device::Device;
use crate::device::soft::{SoftConfig, SoftMessage, Step};
use crate::ids::Tag;
use crate::seam::{Command, DeviceError, Event, MatchStage, Operation};

#[test]
fn b23_1_after_an_exact_report_a_new_tag_matches_without_a_sync_request() {
    let mut device = automatic(4);
    for tag in 1..=3 {
        send(&mut device, ALICE, eager(tag));
    }
    let events = poll(&mut device);
    assert_eq!(unexpected(&events), [1, 2, 3]);
    assert!(arrivals(&events).iter().all(|arrival| arrival.counted && arrival.in_hand));
    submit(&mut device, add(0, 7, 3));
    assert_eq!(poll(&mut device), [Event::Operation(done(Operation::Add(handle(0)), true, 3))]);
    send(&mut device, ALICE, eager(7));
    let events = poll(&mut device);
    assert!(matches!(events[0], Event::Matched(it) if it.stage == MatchStage::Complete && it.tag == Tag(7)));
    assert_eq!((released(&events), events.len()), (vec![0], 1));
}

#[test]
fn b23_2_a_message_of_three_packets_counts_once() {
    let mut device = automatic(4);
    send(&mut device, ALICE, SoftMessage { packets: 3, ..eager(8) });
    assert_eq!(unexpected(&poll(&mut device)), [8]);
    submit(&mut device, add(0, 7, 1));
    assert_eq!(operations(&poll(&mut device)), [done(Operation::Add(handle(0)), true, 1)]);
    send(&mut device, ALICE, eager(7));
    assert_eq!(matched(&poll(&mut device)), [0]);
}

#[test]
fn b23_3_with_a_count_too_low_a_new_tag_does_not_match() {
    let mut device = automatic(4);
    for tag in 1..=3 {
        send(&mut device, ALICE, eager(tag));
    }
    poll(&mut device);
    submit(&mut device, add(0, 7, 2));
    let sync_requested = operations(&poll(&mut device))[0].sync_requested;
    assert!(sync_requested);
    send(&mut device, ALICE, eager(7));
    let events = poll(&mut device);
    assert_eq!((unexpected(&events), matched(&events)), (vec![7], vec![]));
    submit(&mut device, sync(4));
    send(&mut device, ALICE, eager(7));
    assert_eq!(matched(&poll(&mut device)), [0]);
}

#[test]
fn b23_4_counts_stay_exact_beyond_65536_unexpected_messages() {
    let mut device = automatic(4);
    let mut handled = 0_u16;
    for _ in 0..656 {
        for _ in 0..100 {
            send(&mut device, ALICE, eager(1));
            submit(&mut device, Command::Receive { buffers: 1 });
            let events = poll(&mut device);
            let [Event::Arrived(arrival)] = events[..] else { panic!("{events:?}") };
            let (message, answer) = (arrival.message, crate::seam::Answer::Discard);
            submit(&mut device, Command::Answer { message, answer });
            handled = handled.wrapping_add(1);
        }
        submit(&mut device, sync(handled));
        assert_eq!(operations(&poll(&mut device)), [done(Operation::Sync, true, handled)]);
    }
    assert_eq!(handled, 64, "65,600 messages");
    submit(&mut device, add(0, 7, handled));
    send(&mut device, ALICE, eager(7));
    assert_eq!(matched(&poll(&mut device)), [0]);
    assert_eq!(device.messages_held(), 0);
}

#[test]
fn the_race_of_11_4_leaves_the_entry_inactive_and_its_unsignalled_del_safe() {
    let mut device = stepped(4);
    send(&mut device, ALICE, eager(9));
    assert!(device.step(Step::Accept(ALICE)));
    submit(&mut device, add(0, 9, 0));
    assert!(device.step(Step::Command));
    let events = poll(&mut device);
    assert_eq!(unexpected(&events), [9]);
    assert_eq!(operations(&events)[0].phase, 1);
    // The message took the receive in software: take it back, then raise the count.
    submit(&mut device, del(0, false));
    submit(&mut device, add(1, 9, 1));
    send(&mut device, ALICE, eager(9));
    device.run();
    let events = poll(&mut device);
    assert_eq!(matched(&events), [1]);
    assert_eq!(released(&events), [0, 1]);
}

#[test]
fn the_race_of_11_4_with_the_count_raised_too_early_is_a_general_error() {
    let mut device = stepped(4);
    send(&mut device, ALICE, eager(9));
    device.run();
    submit(&mut device, add(0, 9, 0));
    device.run();
    assert_eq!(unexpected(&poll(&mut device)), [9]);
    submit(&mut device, sync(1));
    submit(&mut device, del(0, false));
    device.step(Step::Command);
    send(&mut device, ALICE, eager(9));
    device.step(Step::Accept(ALICE));
    device.run();
    let events = poll(&mut device);
    let Some(Event::DeviceFailed(DeviceError::Completion { status: 21, .. })) = events.last() else {
        panic!("{events:?}")
    };
    assert!(device.submit(&[]).is_err());
}

#[test]
fn counters_can_start_below_the_wrap() {
    let count = u16::MAX;
    let mut device = ready(SoftConfig { count, ..SoftConfig::matching(4) });
    submit(&mut device, add(0, 1, count));
    assert_eq!(operations(&poll(&mut device)), [done(Operation::Add(handle(0)), true, count)]);
    send(&mut device, ALICE, eager(2));
    assert_eq!(unexpected(&poll(&mut device)), [2]);
    submit(&mut device, add(1, 2, 0));
    assert_eq!(operations(&poll(&mut device)), [done(Operation::Add(handle(1)), true, 0)]);
    send(&mut device, ALICE, eager(2));
    assert_eq!(matched(&poll(&mut device)), [1]);
}
