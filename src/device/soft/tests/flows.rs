//! The message flows of TM-CONTRACT 10, and what goes wrong in them (13).

use super::support::*;
use crate::device::Device;
use crate::device::soft::{Acceptance, Arena, Kind, Observation, SoftConfig, SoftMessage, Step};
use crate::ids::{Ignore, Tag};
use crate::seam::{Command, Data, DataError, DataTarget, DeviceError, Event, Match, MatchStage, Operation};

fn added(tags: &[u64]) -> crate::device::soft::SoftDevice<Arena> {
    let mut device = stepped(4);
    for (index, tag) in (0..).zip(tags) {
        submit(&mut device, add(index, *tag, 0));
    }
    device.run();
    poll(&mut device);
    device
}

fn the_match(tag: u64, stage: MatchStage, length: u64) -> Event {
    Event::Matched(match_of(tag, stage, length))
}

/// It is the last of its entry.
fn the_match_and_release(tag: u64, length: u64) -> Event {
    Event::Matched(Match { released: true, ..match_of(tag, MatchStage::Complete, length) })
}

const fn match_of(tag: u64, stage: MatchStage, length: u64) -> Match {
    let (source, app_ctx, immediate) = (ALICE, 0, None);
    let released = false;
    Match { handle: handle(0), source, tag: Tag(tag), app_ctx, length, immediate, stage, released }
}

const fn entry_data(length: u64, error: Option<DataError>) -> Event {
    Event::Data(Data { target: DataTarget::Entry(handle(0)), length, immediate: None, error })
}

#[test]
fn eager_of_one_packet_is_matched_and_placed_in_one_step() {
    let mut device = added(&[7]);
    send(&mut device, ALICE, SoftMessage::with_payload(Tag(7), b"payload"));
    assert_eq!(device.steps(), [Step::Accept(ALICE)]);
    assert!(device.step(Step::Accept(ALICE)));
    assert_eq!(poll(&mut device), [the_match_and_release(7, 7)]);
    assert_eq!(device.memory.bytes(buffer(0)).expect("is there")[..8], *b"payload\0");
}

#[test]
fn eager_of_several_packets_is_consumed_first_and_complete_later() {
    let mut device = added(&[7]);
    send(&mut device, ALICE, SoftMessage { packets: 3, ..SoftMessage::with_payload(Tag(7), &[9; 90]) });
    device.step(Step::Accept(ALICE));
    assert_eq!(poll(&mut device), [the_match(7, MatchStage::DataFollows, 0)]);
    assert!(device.step(Step::Packet(ALICE)));
    assert_eq!(poll(&mut device), []);
    assert_eq!(device.memory.bytes(buffer(0)).expect("is there")[0], 0);
    assert!(device.step(Step::Packet(ALICE)));
    assert_eq!(poll(&mut device), [entry_data(90, None), Event::Released(handle(0))]);
    assert_eq!(device.memory.bytes(buffer(0)).expect("is there")[..91], [&[9; 90][..], &[0]].concat());
    assert!(!device.step(Step::Packet(ALICE)));
}

#[test]
fn a_sender_keeps_its_order_and_others_pass() {
    let mut device = added(&[7, 7]);
    send(&mut device, ALICE, SoftMessage { packets: 2, app_ctx: 1, ..eager(7) });
    send(&mut device, ALICE, SoftMessage { app_ctx: 2, ..eager(7) });
    send(&mut device, BOB, SoftMessage { app_ctx: 3, ..eager(7) });
    assert_eq!(device.steps(), [Step::Accept(ALICE), Step::Accept(BOB)]);
    device.step(Step::Accept(ALICE));
    assert_eq!(device.steps(), [Step::Packet(ALICE), Step::Accept(BOB)]);
    assert!(!device.step(Step::Accept(ALICE)));
    device.step(Step::Accept(BOB));
    device.run();
    assert_eq!(unexpected(&poll(&mut device)), [7], "two entries for three messages");
    let accepted = device.take_observations();
    let by: Vec<_> = accepted
        .iter()
        .filter_map(|it| match it {
            Observation::Accepted { app_ctx, by, .. } => Some((*app_ctx, *by)),
            Observation::Fin { .. } | Observation::Expected { .. } => None,
        })
        .collect();
    let entry = |index| Acceptance::Entry(handle(index));
    assert_eq!(by, [(1, entry(0)), (3, entry(1)), (2, Acceptance::Unexpected)]);
    assert_eq!(device.take_observations(), []);
}

#[test]
fn a_rendezvous_that_fits_is_read_by_the_device_and_the_sender_told() {
    let mut device = added(&[7]);
    let source = device.memory.buffer(2048, 100);
    assert!(crate::device::soft::Memory::write(&mut device.memory, source, 0, &[5; 100]));
    send(&mut device, ALICE, rendezvous(7, 100));
    device.step(Step::Accept(ALICE));
    assert_eq!(poll(&mut device), [the_match(7, MatchStage::DataFollows, 0)]);
    assert_eq!(device.steps(), [Step::Read(0)]);
    device.take_observations();
    device.step(Step::Read(0));
    assert_eq!(poll(&mut device), [entry_data(100, None), Event::Released(handle(0))]);
    assert_eq!(
        device.take_observations(),
        [Observation::Fin { peer: ALICE, app_ctx: 0 }, Observation::Expected { handle: handle(0) },]
    );
    assert_eq!(device.memory.bytes(buffer(0)).expect("is there")[..101], [&[5; 100][..], &[0]].concat());
}

#[test]
fn a_rendezvous_longer_than_the_buffer_is_handed_back_with_its_headers_in_the_buffer() {
    let mut device = added(&[7]);
    send(&mut device, ALICE, rendezvous(7, 300));
    device.run();
    let stage = MatchStage::SoftwareRendezvous(remote(300));
    assert_eq!(poll(&mut device), [the_match(7, stage, 300), Event::Released(handle(0))]);
    let headers = device.memory.bytes(buffer(0)).expect("is there");
    assert_eq!(headers[..16], [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]);
    assert_eq!(headers[16..32], [0, 0, 0, 0, 0, 1, 8, 0, 0, 0, 0, 7, 0, 0, 1, 44]);
    // The host finishes it.
    let (transfer, peer, tag, app_ctx) = (transfer(3), ALICE, Tag(7), 44);
    let read = Command::Read { transfer, peer, tag, app_ctx, remote: remote(300), buffer: buffer(0) };
    submit(&mut device, read);
    assert_eq!(poll(&mut device), []);
    device.take_observations();
    device.run();
    let target = DataTarget::Transfer(transfer);
    assert_eq!(poll(&mut device), [Event::Data(Data { target, length: 300, immediate: None, error: None })]);
    assert_eq!(device.take_observations(), [Observation::Fin { peer: ALICE, app_ctx: 44 }]);
}

#[test]
fn unmatched_messages_are_counted_and_untagged_ones_are_not() {
    let mut device = automatic(4);
    send(&mut device, ALICE, SoftMessage::no_tag(3));
    send(&mut device, ALICE, SoftMessage { kind: Kind::Fin, ..SoftMessage::no_tag(32) });
    send(&mut device, ALICE, SoftMessage { packets: 2, ..SoftMessage::no_tag(5000) });
    let events = poll(&mut device);
    let lengths: Vec<_> = events
        .iter()
        .map(|event| match event {
            Event::Untagged { source: ALICE, length, .. } => *length,
            _ => panic!("{event:?}"),
        })
        .collect();
    assert_eq!(lengths, [3, 32, 5000]);
    send(&mut device, ALICE, eager(1));
    send(&mut device, ALICE, rendezvous(2, 9));
    let arrivals = arrivals(&poll(&mut device));
    assert!(arrivals.iter().all(|it| it.counted));
    assert_eq!([arrivals[0].in_hand, arrivals[1].in_hand], [true, false]);
    submit(&mut device, sync(2));
    assert_eq!(operations(&poll(&mut device)), [done(Operation::Sync, true, 2)]);
}

#[test]
fn without_a_buffer_an_unmatched_message_waits_at_its_sender() {
    let mut device = automatic(4);
    for tag in 0..34 {
        send(&mut device, ALICE, eager(tag));
    }
    assert_eq!(poll(&mut device).len(), 33);
    assert_eq!(device.steps(), []);
    send(&mut device, BOB, eager(99));
    submit(&mut device, sync(33));
    submit(&mut device, add(0, 99, 33));
    assert_eq!(matched(&poll(&mut device)), [0], "a matched message needs no buffer");
    submit(&mut device, Command::Receive { buffers: 1 });
    assert_eq!(unexpected(&poll(&mut device)), [33]);
}

#[test]
fn fewer_than_33_buffers_at_the_start_and_no_message_is_accepted() {
    let mut device = crate::device::soft::SoftDevice::new(SoftConfig::matching(4), Arena::new(4096))
        .expect("the configuration is good");
    submit(&mut device, Command::Receive { buffers: 32 });
    submit(&mut device, add(0, 1, 0));
    send(&mut device, ALICE, eager(1));
    assert_eq!(poll(&mut device).len(), 1, "only the ADD");
    submit(&mut device, Command::Receive { buffers: 1 });
    assert_eq!(matched(&poll(&mut device)), [0]);
}

#[test]
fn immediate_data_comes_with_the_completion_that_has_the_data() {
    let mut device = added(&[1, 2, 3]);
    let immediate = Some(42);
    send(&mut device, ALICE, SoftMessage { immediate, ..eager(1) });
    send(&mut device, ALICE, SoftMessage { immediate, packets: 2, ..eager(2) });
    send(&mut device, ALICE, SoftMessage { immediate, ..rendezvous(3, 64) });
    send(&mut device, ALICE, SoftMessage { immediate, ..eager(4) });
    device.run();
    let carried: Vec<_> = poll(&mut device)
        .iter()
        .filter_map(|event| match event {
            Event::Matched(it) => Some((it.tag.0, it.immediate)),
            Event::Data(it) => Some((0, it.immediate)),
            Event::Arrived(it) => Some((it.header.tag.0, it.header.immediate)),
            _ => None,
        })
        .collect();
    // (Reads and packets go before new messages.)
    assert_eq!(carried, [(1, Some(42)), (2, None), (0, Some(42)), (3, None), (0, Some(42)), (4, Some(42))]);
}

#[test]
fn completions_of_arrivals_keep_their_order_while_an_unexpected_message_is_coming_in() {
    let mut device = added(&[7]);
    send(&mut device, BOB, SoftMessage { packets: 2, ..eager(1) });
    device.step(Step::Accept(BOB));
    send(&mut device, ALICE, SoftMessage { packets: 2, ..eager(7) });
    device.step(Step::Accept(ALICE));
    device.step(Step::Packet(ALICE));
    submit(&mut device, del(0, true));
    device.step(Step::Command);
    assert_eq!(poll(&mut device), []);
    device.step(Step::Packet(BOB));
    let events = poll(&mut device);
    assert_eq!(unexpected(&events[..1]), [1]);
    assert_eq!(events[1], the_match(7, MatchStage::DataFollows, 0));
    assert_eq!(
        operations(&events),
        [done(Operation::Del(handle(0)), false, 1)].map(|mut it| {
            it.sync_requested = true;
            it
        })
    );
    assert!(events.contains(&entry_data(8, None)));
    assert_eq!(events.last(), Some(&Event::Released(handle(0))));
}

#[test]
fn a_del_too_late_fails_behind_the_match() {
    let mut device = added(&[7]);
    send(&mut device, ALICE, eager(7));
    device.step(Step::Accept(ALICE));
    submit(&mut device, del(0, true));
    device.run();
    assert_eq!(
        poll(&mut device),
        [
            the_match(7, MatchStage::Complete, 8),
            Event::Operation(done(Operation::Del(handle(0)), false, 0)),
            Event::Released(handle(0)),
        ]
    );
}

#[test]
fn an_overrun_completion_queue_is_fatal() {
    let mut device = ready(SoftConfig { completions: 2, ..SoftConfig::matching(4) });
    for count in 0..3 {
        submit(&mut device, sync(count));
    }
    let events = poll(&mut device);
    assert_eq!(operations(&events).len(), 2);
    let Some(Event::DeviceFailed(DeviceError::Contract(text))) = events.last() else { panic!("{events:?}") };
    assert!(text.contains("overrun"), "{text}");
}

#[test]
fn an_eager_message_longer_than_its_buffer_kills_the_device() {
    let mut device = added(&[7]);
    send(&mut device, ALICE, SoftMessage::with_payload(Tag(7), &[1; 257]));
    device.run();
    let events = poll(&mut device);
    assert!(matches!(events[..], [Event::DeviceFailed(DeviceError::Completion { status: 1, .. })]));
    assert!(device.memory.bytes(device.memory.buffer(0, 512)).expect("is there").iter().all(|it| *it == 0));
    assert!(device.send(ALICE, eager(1)).is_err());
}

#[test]
fn a_lost_path_keeps_tags_and_answers_what_was_under_way() {
    let mut device = added(&[7, 8, 9]);
    send(&mut device, ALICE, SoftMessage { packets: 2, ..eager(7) });
    send(&mut device, ALICE, eager(8));
    device.step(Step::Accept(ALICE));
    device.fail_path(ALICE);
    assert_eq!(device.steps(), []);
    let events = poll(&mut device);
    assert_eq!(
        events,
        [
            the_match(7, MatchStage::DataFollows, 0),
            entry_data(8, Some(DataError::PathLost)),
            Event::Released(handle(0)),
            Event::PathLost { peer: ALICE },
        ]
    );
    assert!(device.send(ALICE, eager(8)).is_err());
    send(&mut device, BOB, eager(8));
    device.run();
    assert_eq!(matched(&poll(&mut device)), [1]);
    device.restore_path(ALICE);
    send(&mut device, ALICE, eager(9));
    device.run();
    assert_eq!(matched(&poll(&mut device)), [2]);
}

#[test]
fn a_lost_path_ends_the_reads_of_that_peer_alone() {
    let mut device = added(&[7, 7]);
    send(&mut device, ALICE, rendezvous(7, 10));
    send(&mut device, BOB, rendezvous(7, 10));
    device.step(Step::Accept(ALICE));
    device.step(Step::Accept(BOB));
    let read = |index, peer| Command::Read {
        transfer: transfer(index),
        peer,
        tag: Tag(7),
        app_ctx: 0,
        remote: remote(10),
        buffer: buffer(3),
    };
    submit(&mut device, read(1, ALICE));
    device.fail_path(ALICE);
    submit(&mut device, read(2, ALICE));
    device.run();
    let errors: Vec<_> = poll(&mut device)
        .iter()
        .filter_map(|event| match event {
            Event::Data(data) => Some((data.target, data.error)),
            _ => None,
        })
        .collect();
    let lost = Some(DataError::PathLost);
    assert_eq!(
        errors,
        [
            (DataTarget::Entry(handle(0)), lost),
            (DataTarget::Transfer(transfer(1)), lost),
            (DataTarget::Transfer(transfer(2)), lost),
            (DataTarget::Entry(handle(1)), None),
        ]
    );
}

#[test]
fn a_counted_message_cut_off_by_a_lost_path_is_still_delivered_without_its_data() {
    let mut device = added(&[7]);
    send(&mut device, ALICE, SoftMessage { packets: 2, ..eager(1) });
    device.step(Step::Accept(ALICE));
    device.fail_path(ALICE);
    let events = poll(&mut device);
    let [Event::Arrived(arrival), Event::Data(data), Event::PathLost { peer: ALICE }] = events[..] else {
        panic!("{events:?}")
    };
    assert!(arrival.counted && !arrival.in_hand);
    assert_eq!((data.target, data.error), (DataTarget::Message(arrival.message), Some(DataError::PathLost)));
    submit(&mut device, sync(1));
    submit(&mut device, add(1, 1, 1));
    send(&mut device, BOB, eager(1));
    device.run();
    assert_eq!(matched(&poll(&mut device)), [1], "the counts agree again");
}

#[test]
fn a_failed_device_tells_what_was_complete_then_nothing() {
    let mut device = added(&[7]);
    send(&mut device, ALICE, eager(7));
    device.step(Step::Accept(ALICE));
    send(&mut device, ALICE, eager(1));
    device.fail(DeviceError::Removed);
    assert_eq!(device.steps(), []);
    assert_eq!(device.submit(&[sync(0)]), Err(DeviceError::Removed));
    assert_eq!(device.flush(), Err(DeviceError::Removed));
    let events = poll(&mut device);
    assert_eq!(events.last(), Some(&Event::DeviceFailed(DeviceError::Removed)));
    assert_eq!(matched(&events), [0]);
    assert_eq!(device.poll(9, &mut Recorder::default()), Err(DeviceError::Removed));
}

#[test]
fn a_mask_is_the_complement_of_ignore() {
    let mut device = automatic(4);
    submit(
        &mut device,
        Command::Add {
            handle: handle(0),
            tag: Tag(0x100),
            ignore: Ignore(0xff),
            buffer: buffer(0),
            unexpected_count: 0,
            signalled: false,
        },
    );
    send(&mut device, ALICE, eager(0x1ab));
    assert_eq!(matched(&poll(&mut device)), [0]);
}
