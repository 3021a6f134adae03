//! What the engine may say to a soft device: answers, copies, more than there is room for, and nonsense.

use super::support::*;
use crate::device::Device;
use crate::device::soft::{
    Arena, NoMemory, Observation, SoftConfig, SoftDevice, SoftMessage, Step, Switches,
};
use crate::ids::{MessageToken, Tag};
use crate::seam::{Answer, Buffer, Command, Data, DataError, DataTarget, DeviceError, Event};

fn generic() -> SoftDevice<Arena> {
    ready(SoftConfig { step_mode: true, ..SoftConfig::generic() })
}

fn accept(place: u32, name: u32) -> Answer {
    Answer::Accept { buffer: buffer(place), transfer: Some(transfer(name)) }
}

fn transfer_data(name: u32, length: u64, error: Option<DataError>) -> Event {
    Event::Data(Data { target: DataTarget::Transfer(transfer(name)), length, immediate: None, error })
}

fn lost(message: MessageToken, length: u64) -> Event {
    let (target, error) = (DataTarget::Message(message), Some(DataError::PathLost));
    Event::Data(Data { target, length, immediate: None, error })
}

fn bytes(device: &SoftDevice<Arena>, buffer: Buffer) -> &[u8] {
    device.memory.bytes(buffer).expect("is in the arena")
}

#[test]
fn a_message_in_hand_accepted_on_the_spot_is_placed_at_once_and_no_data_follows() {
    for mut device in [stepped(4), generic()] {
        send(&mut device, ALICE, SoftMessage::with_payload(Tag(1), &[7; 20]));
        device.run();
        let place = Buffer { length: 10, ..buffer(1) };
        let events = poll_answering(&mut device, &[Answer::Accept { buffer: place, transfer: None }]);
        assert!(arrivals(&events)[0].in_hand);
        assert_eq!(events.len(), 1);
        assert_eq!(bytes(&device, buffer(1))[..11], [7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 0], "no byte too many");
        device.run();
        assert_eq!(poll(&mut device), []);
        assert_eq!(device.messages_held(), 0);
    }
}

#[test]
fn a_held_message_is_placed_when_asked_outside_of_commands_and_nothing_follows() {
    for mut device in [stepped(4), generic()] {
        send(&mut device, ALICE, SoftMessage::with_payload(Tag(1), &[7; 20]));
        device.run();
        let message = arrivals(&poll(&mut device))[0].message;
        assert!(device.place_held(message, &Buffer { length: 10, ..buffer(1) }));
        assert_eq!(bytes(&device, buffer(1))[..11], [7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 0], "no byte too many");
        assert!(!device.place_held(message, &buffer(1)), "it is forgotten");
        device.run();
        assert_eq!(poll(&mut device), []);
        assert_eq!(device.messages_held(), 0);
    }
}

#[test]
fn what_is_not_held_in_full_is_not_placed_outside_of_commands() {
    let mut device = generic();
    send(&mut device, ALICE, SoftMessage::rendezvous(Tag(1), remote(40)));
    device.run();
    let message = arrivals(&poll(&mut device))[0].message;
    assert!(!device.place_held(message, &buffer(1)));
    assert!(!device.place_held(MessageToken(77), &buffer(1)));
    assert_eq!(device.messages_held(), 1);
    device.fail(DeviceError::Removed);
    assert!(!device.place_held(message, &buffer(1)));
}

#[test]
fn a_held_message_is_placed_by_a_later_answer_and_its_data_told() {
    for mut device in [stepped(4), generic()] {
        send(&mut device, ALICE, SoftMessage::with_payload(Tag(1), &[7; 20]));
        send(&mut device, ALICE, SoftMessage::with_payload(Tag(2), &[8; 20]));
        device.run();
        let held = arrivals(&poll(&mut device));
        submit(&mut device, Command::Answer { message: held[1].message, answer: accept(0, 5) });
        assert_eq!(bytes(&device, buffer(0))[0], 8);
        submit(&mut device, Command::Answer { message: held[0].message, answer: Answer::Discard });
        assert_eq!(poll(&mut device), [transfer_data(5, 20, None)]);
        assert_eq!(device.messages_held(), 0);
    }
}

#[test]
fn an_accepted_rendezvous_is_read_and_a_discarded_one_finished() {
    for mut device in [stepped(4), generic()] {
        for tag in 1..=3 {
            send(&mut device, ALICE, SoftMessage { app_ctx: 10 + tag, ..rendezvous(u64::from(tag), 40) });
        }
        device.run();
        let answers = [accept(0, 5), Answer::Discard, Answer::Hold];
        let arrived = arrivals(&poll_answering(&mut device, &answers));
        assert!(arrived.iter().all(|it| !it.in_hand && it.header.remote == Some(remote(40))));
        assert_eq!(poll(&mut device), []);
        assert_eq!(device.steps(), [Step::Read(0)]);
        device.run();
        assert_eq!(poll(&mut device), [transfer_data(5, 40, None)]);
        let fins: Vec<_> = device
            .take_observations()
            .into_iter()
            .filter(|observation| matches!(observation, Observation::Fin { .. }))
            .collect();
        assert_eq!(fins, [12, 11].map(|app_ctx| Observation::Fin { peer: ALICE, app_ctx }));
        // The third is held, and will not be had.
        device.fail_path(ALICE);
        assert_eq!(poll(&mut device), [lost(arrived[2].message, 40), Event::PathLost { peer: ALICE }]);
        assert_eq!(device.messages_held(), 0);
    }
}

#[test]
fn a_rendezvous_accepted_while_its_loss_is_still_to_be_told_answers_with_an_error() {
    for mut device in [stepped(4), generic()] {
        send(&mut device, ALICE, rendezvous(1, 40));
        device.run();
        let message = arrivals(&poll(&mut device))[0].message;
        device.fail_path(ALICE);
        submit(&mut device, Command::Answer { message, answer: accept(0, 5) });
        let error = Some(DataError::PathLost);
        assert_eq!(poll(&mut device), [transfer_data(5, 40, error), Event::PathLost { peer: ALICE }]);
        assert_eq!(device.messages_held(), 0);
    }
}

#[test]
fn a_rendezvous_told_after_its_path_was_lost_is_lost_at_once() {
    for mut device in [stepped(4), generic()] {
        send(&mut device, ALICE, rendezvous(1, 40));
        device.run();
        device.fail_path(ALICE);
        let events = poll(&mut device);
        let [Event::Arrived(arrival), told, Event::PathLost { peer: ALICE }] = &events[..] else {
            panic!("{events:?}")
        };
        assert!(!arrival.in_hand);
        assert_eq!(*told, lost(arrival.message, 40));
        assert_eq!(device.messages_held(), 0);
    }
}

#[test]
fn a_device_without_a_list_tells_the_header_first_and_the_data_later() {
    let coming = |answers: &[Answer]| {
        let mut device = generic();
        send(&mut device, ALICE, SoftMessage { packets: 2, ..SoftMessage::with_payload(Tag(1), &[7; 20]) });
        device.step(Step::Accept(ALICE));
        let arrival = arrivals(&poll_answering(&mut device, answers))[0];
        assert!(!arrival.in_hand && !arrival.counted);
        (device, arrival.message)
    };
    // Accepted before the data.
    let (mut device, _) = coming(&[accept(0, 5)]);
    assert_eq!(bytes(&device, buffer(0))[0], 0);
    device.step(Step::Packet(ALICE));
    assert_eq!(bytes(&device, buffer(0))[0], 7);
    assert_eq!(poll(&mut device), [transfer_data(5, 20, None)]);
    assert_eq!(device.messages_held(), 0);
    // Accepted after the data.
    let (mut device, message) = coming(&[]);
    device.step(Step::Packet(ALICE));
    assert_eq!(poll(&mut device), []);
    submit(&mut device, Command::Answer { message, answer: accept(0, 5) });
    assert_eq!(bytes(&device, buffer(0))[0], 7);
    assert_eq!(poll(&mut device), [transfer_data(5, 20, None)]);
    assert_eq!(device.messages_held(), 0);
    // Discarded before and after the data.
    for data_first in [false, true] {
        let (mut device, message) = coming(&[]);
        if data_first {
            device.step(Step::Packet(ALICE));
        }
        submit(&mut device, Command::Answer { message, answer: Answer::Discard });
        device.run();
        assert_eq!(poll(&mut device), []);
        assert_eq!(device.messages_held(), 0);
    }
    // Cut off.
    for accepted in [false, true] {
        let answer = if accepted { accept(0, 5) } else { Answer::Hold };
        let (mut device, message) = coming(&[answer]);
        device.fail_path(ALICE);
        let told = if accepted { transfer_data(5, 20, Some(DataError::PathLost)) } else { lost(message, 20) };
        assert_eq!(poll(&mut device), [told, Event::PathLost { peer: ALICE }]);
        assert_eq!(device.messages_held(), 0);
    }
}

#[test]
fn an_accept_without_a_name_is_only_for_what_is_in_hand_and_on_the_spot() {
    let nameless = Answer::Accept { buffer: buffer(0), transfer: None };
    let mut device = stepped(4);
    send(&mut device, ALICE, eager(1));
    device.run();
    let message = arrivals(&poll(&mut device))[0].message;
    assert!(device.submit(&[Command::Answer { message, answer: nameless }]).is_err());

    let mut device = stepped(4);
    send(&mut device, ALICE, rendezvous(1, 40));
    device.run();
    let events = poll_answering(&mut device, &[nameless]);
    assert!(matches!(events[..], [Event::Arrived(_), Event::DeviceFailed(DeviceError::Contract(_))]));
}

#[test]
fn a_device_without_a_list_has_no_list_operations_and_needs_no_receives() {
    assert_eq!(generic().capabilities().tags, 0);
    for command in [add(0, 1, 0), del(0, true), sync(0), Command::Receive { buffers: 1 }] {
        let mut device = generic();
        assert!(matches!(device.submit(&[command]), Err(DeviceError::Contract(_))), "{command:?}");
    }
}

#[test]
fn a_copy_moves_bytes_and_is_answered() {
    let mut device = stepped(4);
    let (from, to) = (buffer(0), Buffer { length: 3, ..buffer(1) });
    assert!(crate::device::soft::Memory::write(&mut device.memory, from, 0, &[1, 2, 3, 4]));
    let transfer = transfer(5);
    submit(&mut device, Command::Copy { transfer, from: Buffer { length: 4, ..from }, to });
    assert_eq!(bytes(&device, buffer(1))[..4], [1, 2, 3, 0]);
    let target = DataTarget::Transfer(transfer);
    assert_eq!(poll(&mut device), [Event::Data(Data { target, length: 4, immediate: None, error: None })]);
}

#[test]
fn commands_beyond_the_room_are_not_taken() {
    let mut device = ready(SoftConfig { operations: 4, step_mode: true, ..SoftConfig::matching(8) });
    let commands: Vec<_> = (0..6).map(|index| add(index, u64::from(index), 0)).collect();
    assert_eq!(device.submit(&commands), Ok(4), "command slots");
    device.run();
    assert_eq!(device.submit(&commands[4..]), Ok(0), "executed is not polled");
    poll(&mut device);
    assert_eq!(device.submit(&commands[4..]), Ok(2));

    let mut device = ready(SoftConfig::matching(2));
    assert_eq!(device.submit(&commands[..3]), Ok(2), "tags");
    poll(&mut device);
    assert_eq!(device.submit(&commands[2..3]), Ok(0));
    submit(&mut device, del(0, true));
    assert_eq!(device.submit(&commands[2..3]), Ok(0), "only polling frees a tag");
    poll(&mut device);
    assert_eq!(device.submit(&commands[2..3]), Ok(1));
}

#[test]
fn nonsense_from_the_host_is_an_error_that_names_it() {
    let long = Buffer::new(0, u64::MAX);
    let segments = Buffer { segments: 2, ..buffer(0) };
    let with = |buffer| match add(1, 1, 0) {
        Command::Add { handle, tag, ignore, unexpected_count, signalled, .. } => {
            Command::Add { handle, tag, ignore, buffer, unexpected_count, signalled }
        }
        other => other,
    };
    let nonsense = [
        (add(0, 1, 0), "not released"),
        (del(1, true), "not in use"),
        (del(u32::MAX, false), "not in use"),
        (with(long), "bytes"),
        (with(segments), "segments"),
        (Command::Receive { buffers: 1000 }, "receives"),
        (Command::Answer { message: MessageToken(0), answer: Answer::Discard }, "does not wait"),
        (Command::Answer { message: MessageToken(u64::MAX), answer: Answer::Hold }, "does not wait"),
        (Command::Copy { transfer: transfer(0), from: long, to: buffer(0) }, "no memory"),
    ];
    for (command, text) in nonsense {
        let mut device = stepped(4);
        submit(&mut device, add(0, 1, 0));
        let Err(DeviceError::Contract(error)) = device.submit(&[command]) else { panic!("{command:?}") };
        assert!(error.contains(text), "{error}");
    }
}

#[test]
fn a_released_handle_can_be_added_again() {
    let mut device = automatic(1);
    for _ in 0..10 {
        submit(&mut device, add(0, 1, 0));
        poll(&mut device);
        submit(&mut device, del(0, true));
        assert_eq!(released(&poll(&mut device)), [0]);
    }
}

#[test]
fn capabilities_are_those_asked_for() {
    let config = SoftConfig { operations: 10, ..SoftConfig::matching(5) };
    let capabilities = ready(config).capabilities();
    assert!(capabilities.is_matching() && capabilities.rendezvous);
    assert_eq!((capabilities.tags, capabilities.command_slots), (5, 16));
    assert_eq!(capabilities.completions, config.completions);
}

#[test]
fn devices_that_behave_alike_look_alike() {
    // By different ways to the same state: handles and ids differ, what can happen does not.
    let mut one = stepped(4);
    submit(&mut one, add(0, 1, 0));
    one.run();
    poll(&mut one);
    let mut other = stepped(4);
    for _ in 0..3 {
        submit(&mut other, add(0, 9, 0));
        submit(&mut other, del(0, true));
        other.run();
        poll(&mut other);
    }
    submit(&mut other, add(0, 1, 0));
    assert_ne!(canonical(&one), canonical(&other), "not executed");
    other.run();
    assert_ne!(canonical(&one), canonical(&other), "not polled");
    poll(&mut other);
    assert_eq!(canonical(&one), canonical(&other));
    send(&mut other, ALICE, eager(1));
    assert_ne!(canonical(&one), canonical(&other));
    send(&mut one, ALICE, eager(1));
    assert_eq!(canonical(&one), canonical(&other));
    let copy = one.clone();
    one.step(Step::Accept(ALICE));
    assert_ne!(canonical(&one), canonical(&copy));
    assert_eq!(copy.config().switches, Switches::default());
}

#[test]
fn a_device_of_more_tags_than_there_can_be_is_refused() {
    for tags in [32_768, 1 << 30, u32::MAX] {
        assert!(SoftDevice::new(SoftConfig::matching(tags), NoMemory).is_err(), "{tags}");
    }
}

#[test]
fn a_device_of_any_number_of_tags_that_there_can_be_opens_with_the_slots_that_there_can_be() {
    for (tags, slots) in [(1, 4), (16_383, 32_768), (16_384, 32_768), (32_767, 32_768)] {
        let device = SoftDevice::new(SoftConfig::matching(tags), NoMemory).unwrap();
        let capabilities = device.capabilities();
        assert_eq!((capabilities.tags, capabilities.command_slots), (tags, slots));
    }
}
