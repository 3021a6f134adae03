//! Bad events: each becomes an error value that names it; nothing is lost, nothing panics.

use super::hand::{Hand, NIC, any, nic};
use crate::engine::{Config, Engine, JoinError};
use crate::ids::{DeviceId, MessageToken, TagHandle, TransferId};
use crate::offload::Fault;
use crate::seam::{
    Answer, Capabilities, Data, DataTarget, DeviceError, Event, EventSink, MatchStage, Operation,
    OperationDone,
};

const NOBODY: TagHandle = TagHandle { index: 12_345, generation: 9 };

#[test]
fn device_counts_that_make_no_sense_are_refused() {
    let mut engine = Engine::new(Config::default());
    let few = Capabilities { unexpected_buffers: 32, ..nic() };
    assert_eq!(engine.add_device(few), Err(JoinError::TooFewBuffers { tags: 4, offered: 32, needed: 33 }));
    let many = Capabilities { tags: u32::MAX, ..nic() };
    assert_eq!(engine.add_device(many), Err(JoinError::TooManyTags { tags: u32::MAX }));
    for (slots, offered) in [(0, 256), (32, 33)] {
        let short = Capabilities { completions: offered, command_slots: slots, ..nic() };
        let refused = JoinError::QueuesTooShort { tags: 4, slots, offered, needed: 34 };
        assert_eq!(engine.add_device(short), Err(refused));
    }
    let small = Capabilities { completions: 34, command_slots: 1, ..nic() };
    assert!(engine.add_device(small).is_ok(), "too small to hold anything: everything stays in software");
    for _ in 0..255 {
        engine.add_device(Capabilities::default()).unwrap();
    }
    assert_eq!(engine.add_device(Capabilities::default()), Err(JoinError::TooMany));
}

#[test]
fn handles_that_name_nothing_are_named() {
    let mut hand = Hand::new();
    hand.queued(any(1), 1);
    let (_, handle, _) = hand.adds()[0];
    let stale = TagHandle { generation: handle.generation.wrapping_sub(1), ..handle };
    for wrong in [NOBODY, stale] {
        hand.matched(wrong, 1, 0, MatchStage::Complete);
        assert!(
            matches!(hand.engine.poll_fault(), Some(Fault::UnknownHandle { handle, .. }) if handle == wrong)
        );
        hand.data(NIC, DataTarget::Entry(wrong));
        assert!(
            matches!(hand.engine.poll_fault(), Some(Fault::UnknownHandle { handle, .. }) if handle == wrong)
        );
        hand.tell(&Event::Released(wrong));
        assert!(
            matches!(hand.engine.poll_fault(), Some(Fault::UnknownHandle { handle, .. }) if handle == wrong)
        );
        hand.done(Operation::Del(wrong), true, 0);
        assert!(matches!(hand.engine.poll_fault(), Some(Fault::UnknownCompletion { .. })));
    }
    assert_eq!(hand.engine.depths().0, 1, "the receive is untouched");
}

#[test]
fn completions_that_are_not_due_are_named() {
    let mut hand = Hand::new();
    hand.done(Operation::Sync, true, 0);
    assert!(matches!(hand.engine.poll_fault(), Some(Fault::UnknownCompletion { due: None, .. })));
    hand.queued(any(1), 1);
    assert!(hand.adds().is_empty(), "a device that broke its contract gets no more receives");
}

#[test]
fn transfers_and_messages_that_are_not_there_are_named() {
    let mut hand = Hand::new();
    hand.data(NIC, DataTarget::Transfer(TransferId { index: 7, generation: 0 }));
    assert!(matches!(hand.engine.poll_fault(), Some(Fault::UnknownTransfer { .. })));
    let data = Data {
        target: DataTarget::Message(MessageToken(77)),
        length: 0,
        immediate: None,
        error: Some(crate::seam::DataError::PathLost),
    };
    hand.tell(&Event::Data(data));
    let fault = hand.engine.poll_fault().unwrap();
    assert!(fault.to_string().contains("0x4d"), "{fault}");
}

#[test]
fn a_device_that_is_not_there_is_named_and_its_message_not_kept() {
    let mut hand = Hand::new();
    let arrival = hand.arrival(1, 0, false);
    let ghost = DeviceId(9);
    assert_eq!(hand.engine.handle_event(ghost, &Event::Arrived(arrival)), Answer::Discard);
    assert_eq!(hand.engine.poll_fault(), Some(Fault::UnknownDevice { device: ghost }));
    let done = OperationDone { operation: Operation::Sync, success: true, phase: 0, sync_requested: false };
    hand.engine.handle_event(ghost, &Event::Operation(done));
    assert_eq!(hand.engine.poll_fault(), Some(Fault::UnknownDevice { device: ghost }));
}

#[test]
fn a_used_entry_that_the_nic_consumed_all_the_same_is_reported() {
    let mut hand = Hand::new();
    hand.queued(any(7), 1);
    let (_, handle, _) = hand.adds()[0];
    hand.unexpected(7, 0);
    hand.commands(NIC);
    hand.done(Operation::Add(handle), true, 1);
    hand.matched(handle, 7, 0, MatchStage::Complete);
    assert_eq!(hand.engine.poll_fault(), Some(Fault::ConsumedTwice { device: NIC, handle }));
    hand.done(Operation::Del(handle), false, 1);
    assert_eq!(hand.engine.poll_fault(), Some(Fault::ConsumedTwice { device: NIC, handle }));
    assert_eq!(hand.received(), [(1, 1)], "completed once");
}

#[test]
fn a_match_that_does_not_fit_is_reported() {
    let mut hand = Hand::new();
    hand.queued(any(7), 1);
    let (_, handle, _) = hand.adds()[0];
    hand.matched(handle, 8, 0, MatchStage::Complete);
    assert!(matches!(hand.engine.poll_fault(), Some(Fault::WrongMatch { tag: 8, .. })));
    assert_eq!(hand.received().len(), 1, "the buffer was written: the user is told");
}

#[test]
fn more_messages_than_buffers_and_counts_without_tags_are_reported() {
    let mut hand = Hand::new();
    for _ in 0..33 {
        hand.unexpected(1, 0);
    }
    hand.no_fault();
    hand.unexpected(1, 0);
    assert_eq!(hand.engine.poll_fault(), Some(Fault::NoBufferPosted { device: NIC }));
    assert_eq!(hand.engine.depths().1, 34, "the message is kept");
    let arrival = hand.arrival(1, 0, true);
    hand.engine.handle_event(super::hand::OTHER, &Event::Arrived(arrival));
    assert!(matches!(hand.engine.poll_fault(), Some(Fault::CountWithoutTags { .. })));
}

#[test]
fn events_that_an_entry_does_not_expect_name_its_place() {
    let mut hand = Hand::new();
    hand.queued(any(7), 1);
    let (_, handle, _) = hand.adds()[0];
    for event in [
        Event::Released(handle),
        Event::Data(Data { target: DataTarget::Entry(handle), length: 1, immediate: None, error: None }),
    ] {
        hand.tell(&event);
        let fault = hand.engine.poll_fault().unwrap();
        assert!(fault.to_string().contains("Listed"), "{fault}");
    }
    assert_eq!(hand.engine.depths().0, 1);
}

#[test]
fn a_device_that_goes_on_breaking_its_contract_fills_no_memory_and_its_failure_is_still_told() {
    let mut hand = Hand::new();
    for generation in 0..5000 {
        hand.engine.handle_event(NIC, &Event::Released(TagHandle { index: 3, generation }));
    }
    for _ in 0..3 {
        hand.engine.handle_event(NIC, &Event::DeviceFailed(DeviceError::Removed));
    }
    assert_eq!(hand.engine.faults_dropped(), 5000 - 1024 + 2);
    let mut kept = Vec::new();
    while let Some(fault) = hand.engine.poll_fault() {
        kept.push(fault);
    }
    assert_eq!(kept.len(), 1025);
    assert!(matches!(kept.last(), Some(Fault::Failed { device: NIC, .. })));
}
