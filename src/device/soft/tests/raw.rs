//! A soft device as a verbs program sees it.

use super::support::{ALICE, BOB, eager};
use crate::device::soft::completion::{Opcode, status};
use crate::device::soft::request::{AddRequest, Errno, PostError, Refusal, Request, RequestOperation};
use crate::device::soft::{Arena, Kind, RawError, SoftConfig, SoftDevice, SoftMessage};
use crate::ids::Tag;
use crate::seam::{Buffer, DeviceError, Remote};

fn device() -> SoftDevice<Arena> {
    let config = SoftConfig { step_mode: true, ..SoftConfig::matching(4) };
    let mut device = SoftDevice::new(config, Arena::new(4096)).expect("the configuration is good");
    for wr_id in 0..33 {
        device.post_srq_recv(wr_id).expect("there is room");
    }
    device
}

fn add(tag: u64) -> Request {
    let buffer = Buffer::new(Arena::BASE, 64);
    let add = AddRequest { receive_wr_id: 1000 + tag, buffer, segments: 1, tag, mask: u64::MAX };
    let operation = RequestOperation::Add(add);
    Request { wr_id: tag, operation, signalled: true, unexpected_count: None, handle: 0 }
}

/// Opcode, wr_id and whether a message came along.
fn completed(device: &mut SoftDevice<Arena>) -> Vec<(Opcode, u64, bool)> {
    device.run();
    let polled = std::iter::from_fn(|| device.next_completion().expect("the device works"));
    polled.map(|(completion, message)| (completion.opcode, completion.wr_id, message.is_some())).collect()
}

#[test]
fn requests_and_messages_complete_with_their_ids() {
    let mut device = device();
    device.post_srq_ops(&mut [add(1)]).expect("there is room");
    assert_eq!(completed(&mut device), [(Opcode::Add, 1, false)]);
    device.send(ALICE, SoftMessage::with_payload(Tag(1), b"here")).expect("the path is up");
    device.send(ALICE, eager(9)).expect("the path is up");
    device.send(ALICE, SoftMessage::no_tag(3)).expect("the path is up");
    assert_eq!(device.messages_under_way(ALICE), 3);
    let seen = completed(&mut device);
    let expected =
        [(Opcode::TagReceive, 1001, false), (Opcode::TagReceive, 0, true), (Opcode::NoTag, 1, true)];
    assert_eq!(seen, expected);
    assert_eq!((device.messages_under_way(ALICE), device.completions_used()), (0, 0));
    assert_eq!(device.memory.bytes(Buffer::new(Arena::BASE, 4)), Some(&b"here"[..]));
}

#[test]
fn a_device_without_a_list_takes_no_list_operations() {
    let mut device =
        SoftDevice::new(SoftConfig::generic(), Arena::new(64)).expect("the configuration is good");
    let refused = PostError { refusal: Refusal::Errno(Errno::Invalid), bad: 0 };
    assert_eq!(device.post_srq_ops(&mut [add(1)]), Err(refused));
}

#[test]
fn a_busy_srq_is_not_destroyed_but_takes_no_list_operations_any_more() {
    let mut device = device();
    assert_eq!(device.destroy_srq(1), Err(Errno::Busy));
    let refused = PostError { refusal: Refusal::Errno(Errno::Invalid), bad: 0 };
    assert_eq!(device.post_srq_ops(&mut [add(1), add(2)]), Err(refused));
    device.send(BOB, eager(1)).expect("the path is up");
    assert_eq!(completed(&mut device), [(Opcode::TagReceive, 0, true)]);
    assert_eq!(device.destroy_srq(0), Ok(()));
}

#[test]
fn what_stands_behind_a_rendezvous_is_part_of_the_request() {
    let mut device = device();
    device.post_srq_ops(&mut [add(1)]).expect("there is room");
    completed(&mut device);
    let remote = Remote { address: 7, key: 8, length: 65 };
    let payload = Some(b"more".as_slice().into());
    for tag in [1, 9] {
        let message = SoftMessage { payload: payload.clone(), ..SoftMessage::rendezvous(Tag(tag), remote) };
        assert!(matches!(message.kind, Kind::Rendezvous { .. }));
        device.send(ALICE, message).expect("the path is up");
        device.run();
        let (completion, _) = device.next_completion().expect("the device works").expect("it has come");
        let expected = if tag == 1 { status::TM_RENDEZVOUS_INCOMPLETE } else { status::SUCCESS };
        assert_eq!((completion.status, completion.byte_len), (expected, 36));
    }
    assert_eq!(device.memory.bytes(Buffer::new(Arena::BASE + 32, 4)), Some(&b"more"[..]));
}

#[test]
fn a_failed_device_says_so_behind_its_completions() {
    let mut device = device();
    device.send(ALICE, eager(9)).expect("the path is up");
    device.run();
    device.fail(DeviceError::Removed);
    assert!(matches!(device.next_completion(), Ok(Some(_))));
    for _ in 0..2 {
        assert_eq!(device.next_completion(), Err(RawError::Device(DeviceError::Removed)));
    }
}
