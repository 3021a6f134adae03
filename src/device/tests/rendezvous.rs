//! Payloads that wait to be read.

use super::rig::{context, outgoing};
use super::{Memory, Policy, RECEIVED_FROM, Rig, over_every_transport, pattern, where_the_transport_reads};
use crate::device::transport::{Kept, Payload};
use crate::ids::{PeerId, Tag};
use crate::seam::{Answer, Command, DataError, Remote};
use crate::wire::{Control, RefusedRendezvous, RemoteMemory, Rendezvous, UntaggedRendezvous};

over_every_transport!(
    a_payload_is_read_into_its_buffer_and_the_sender_is_told,
    a_request_without_a_tag_is_done_by_name,
    a_request_that_is_held_is_read_when_it_is_accepted,
    a_request_that_nobody_wants_is_done_all_the_same,
    many_reads_at_a_time_all_end,
    messages_get_through_between_the_pieces_of_a_read,
    a_request_that_the_host_kept_is_read_by_command,
    the_end_of_a_link_is_that_of_the_requests_that_it_brought,
);

where_the_transport_reads!(
    a_key_that_is_not_valid_fails_the_read_and_both_are_told,
    more_than_four_gibibytes_are_told_by_their_true_length,
);

fn fin_of(request: &Rendezvous) -> Vec<u8> {
    request.fin().to_bytes().to_vec()
}

fn a_payload_is_read_into_its_buffer_and_the_sender_is_told(mut rig: Rig) {
    let sizes = [0, 1, 100, 65_535, 262_143, 262_144, 262_145, 3_000_000];
    for (seed, size) in sizes.into_iter().enumerate() {
        for cut in [false, true] {
            let cuts: &[usize] = if cut { &[0, size / 3, 1, 5] } else { &[] };
            let room = if cut { size } else { size.div_ceil(2) };
            let (from, into) = (Memory::cut(pattern(seed, size), cuts), Memory::cut(vec![0; room], cuts));
            let before = rig.ear().data().len();
            rig.ear().policy = Policy::Accept([into.buffer()].into());
            let request = rig.send_rendezvous(seed as u64, from.buffer());
            let data = rig.until_data(before + 1)[before];
            assert_eq!((data.length, data.error), (size as u64, None));
            assert_eq!(into.bytes(), pattern(seed, size)[..room]);
            let fin = fin_of(&request);
            rig.until(|rig| rig.sender_ear().controls().contains(&fin));
            rig.sender_ear().heard.retain(|heard| !matches!(heard, super::Heard::Control(..)));
            let remote = Remote { address: 0, key: request.memory.key, length: size as u64 };
            rig.sender().withdraw(&remote);
        }
    }
}

fn a_request_without_a_tag_is_done_by_name(mut rig: Rig) {
    let (from, into) = (Memory::new(pattern(1, 5000)), Memory::zeros(5000));
    let link = rig.sender_link();
    let remote = rig.sender().expose(link, from.buffer()).expect("there is a link");
    let memory = RemoteMemory { address: remote.address, key: remote.key, length: remote.length };
    rig.ear().policy = Policy::Accept([into.buffer()].into());
    let request = UntaggedRendezvous { context: context(0xABC), cq_data: None, memory };
    rig.send_control(&Control::UntaggedRendezvous(request));
    rig.until_data(1);
    assert_eq!(into.bytes(), pattern(1, 5000));
    rig.until(|rig| rig.sender_ear().controls().contains(&vec![0, 0x29, 0, 0, 0, 0, 0xA, 0xBC]));
}

fn a_request_that_is_held_is_read_when_it_is_accepted(mut rig: Rig) {
    let (from, into) = (Memory::new(pattern(1, 100_000)), Memory::zeros(100_000));
    let request = rig.send_rendezvous(1, from.buffer());
    let arrival = rig.until_arrived(1)[0];
    assert_eq!((arrival.in_hand, arrival.header.length), (false, 100_000));
    assert_eq!(rig.receiver().kept(RECEIVED_FROM), Kept { messages: 0, bytes: 0, requests: 1 });
    let transfer = rig.accept(arrival.message, &into);
    assert_eq!(rig.receiver().kept(RECEIVED_FROM), Kept::default());
    assert_eq!(rig.until_transferred(transfer).error, None);
    assert_eq!(into.bytes(), pattern(1, 100_000));
    rig.until(|rig| rig.sender_ear().controls().contains(&fin_of(&request)));
}

fn a_request_that_nobody_wants_is_done_all_the_same(mut rig: Rig) {
    let from = Memory::new(pattern(1, 100_000));
    rig.ear().policy = Policy::Discard;
    let request = rig.send_rendezvous(1, from.buffer());
    rig.until(|rig| rig.sender_ear().controls().contains(&fin_of(&request)));
    rig.ear().policy = Policy::Hold;
    let request = rig.send_rendezvous(2, from.buffer());
    let message = rig.until_arrived(2)[1].message;
    rig.answer(message, Answer::Discard);
    assert_eq!(rig.receiver().kept(RECEIVED_FROM), Kept::default());
    rig.until(|rig| rig.sender_ear().controls().contains(&fin_of(&request)));
    assert_eq!(rig.ear().data(), []);
}

fn many_reads_at_a_time_all_end(mut rig: Rig) {
    let count = 1000;
    let from: Vec<Memory> = (0..count).map(|seed| Memory::new(pattern(seed, 300 + seed))).collect();
    let into: Vec<Memory> = (0..count).map(|seed| Memory::zeros(300 + seed)).collect();
    for (tag, memory) in from.iter().enumerate() {
        rig.send_rendezvous(tag as u64, memory.buffer());
    }
    let arrivals = rig.until_arrived(count);
    for (arrival, memory) in arrivals.iter().zip(&into) {
        rig.accept(arrival.message, memory);
    }
    let data = rig.until_data(count);
    assert!(data.iter().all(|data| data.error.is_none()));
    for (seed, memory) in into.iter().enumerate() {
        assert_eq!(memory.bytes(), pattern(seed, 300 + seed));
    }
}

fn messages_get_through_between_the_pieces_of_a_read(mut rig: Rig) {
    let (from, into) = (Memory::new(pattern(1, 8 << 20)), Memory::zeros(8 << 20));
    rig.ear().policy = Policy::Accept([into.buffer()].into());
    rig.send_rendezvous(1, from.buffer());
    rig.until_arrived(1);
    for tag in 0..100 {
        rig.send_eager(tag, &pattern(7, 1000));
        rig.step();
    }
    let arrivals = rig.until_arrived(101);
    rig.until_data(1);
    assert_eq!(into.bytes(), pattern(1, 8 << 20));
    for arrival in &arrivals[1..] {
        let small = Memory::zeros(1000);
        let transfer = rig.accept(arrival.message, &small);
        rig.until_transferred(transfer);
        assert_eq!(small.bytes(), pattern(7, 1000));
    }
}

fn a_key_that_is_not_valid_fails_the_read_and_both_are_told(mut rig: Rig) {
    let from = Memory::new(pattern(1, 1000));
    let link = rig.sender_link();
    let remote = rig.sender().expose(link, from.buffer()).expect("there is a link");
    let good = RemoteMemory { address: remote.address, key: remote.key, length: remote.length };
    let bad = [
        RemoteMemory { key: good.key.wrapping_add(1), ..good },
        RemoteMemory { length: 1001, ..good },
        RemoteMemory { address: 1, ..good },
        RemoteMemory { address: u64::MAX - 1000, ..good },
    ];
    for (turn, memory) in bad.into_iter().enumerate() {
        let into = Memory::zeros(2000);
        rig.ear().policy = Policy::Accept([into.buffer()].into());
        let request = Rendezvous { context: context(6), tag: Tag(1), memory };
        let mut bytes = [0; 40];
        let length = request.encode(&mut bytes).expect("it is good");
        rig.send(&outgoing(&bytes[..length], Payload::Copied(&[])));
        let data = rig.until_data(turn + 1)[turn];
        // A key that stands for nothing was taken back, for all that anybody knows.
        let unreadable = DataError::Completion { status: 10, vendor_error: 0 };
        let expected = if memory.key == good.key { unreadable } else { DataError::PathLost };
        assert_eq!(data.error, Some(expected));
        let operation = context(6).operation;
        let refused = Control::RendezvousRefused { operation, reason: RefusedRendezvous::ReadFailed };
        let mut expected = vec![0; 8];
        refused.encode(&mut expected).expect("it is good");
        rig.until(|rig| rig.sender_ear().controls().len() == turn + 1);
        assert_eq!(rig.sender_ear().controls()[turn], expected);
        assert_eq!(into.bytes(), [0; 2000]);
    }
    // Nor is one that was withdrawn.
    rig.sender().withdraw(&remote);
    rig.ear().policy = Policy::Accept([Memory::zeros(2000).buffer()].into());
    let request = Rendezvous { context: context(6), tag: Tag(1), memory: good };
    let mut bytes = [0; 32];
    request.encode(&mut bytes).expect("it is good");
    rig.send(&outgoing(&bytes, Payload::Copied(&[])));
    assert_eq!(rig.until_data(5)[4].error, Some(DataError::PathLost));
}

fn a_request_that_the_host_kept_is_read_by_command(mut rig: Rig) {
    let (from, into) = (Memory::new(pattern(1, 4000)), Memory::zeros(4000));
    let link = rig.sender_link();
    let remote = rig.sender().expose(link, from.buffer()).expect("there is a link");
    let (tag, app_ctx, buffer) = (Tag(4), context(5).to_bits(), into.buffer());
    let mut read = |peer| {
        let transfer = rig.ear().transfer();
        let command = Command::Read { transfer, peer, tag, app_ctx, remote, buffer };
        assert_eq!(rig.receiver().submit(&[command]), Ok(1));
        rig.until_transferred(transfer).error
    };
    assert_eq!(read(RECEIVED_FROM), None);
    assert_eq!(read(PeerId(1234)), Some(DataError::PathLost));
    assert_eq!(into.bytes(), pattern(1, 4000));
    let memory = RemoteMemory { address: remote.address, key: remote.key, length: remote.length };
    let request = Rendezvous { context: context(5), tag, memory };
    rig.until(|rig| rig.sender_ear().controls().contains(&fin_of(&request)));
}

fn more_than_four_gibibytes_are_told_by_their_true_length(mut rig: Rig) {
    let from = Memory::new(pattern(1, 1 << 20));
    let into = Memory::zeros(1 << 20);
    let whole = from.repeated(4097);
    assert!(whole.length > u64::from(u32::MAX));
    rig.ear().policy = Policy::Accept([into.repeated(4097)].into());
    let request = rig.send_rendezvous(1, whole);
    let data = rig.until_data(1)[0];
    assert_eq!((data.length, data.error), (whole.length, None));
    assert_eq!(into.bytes(), pattern(1, 1 << 20));
    rig.until(|rig| rig.sender_ear().controls().contains(&fin_of(&request)));
}

fn the_end_of_a_link_is_that_of_the_requests_that_it_brought(mut rig: Rig) {
    let from = Memory::new(pattern(1, 4000));
    rig.send_rendezvous(1, from.buffer());
    rig.send_rendezvous(2, from.buffer());
    let arrivals = rig.until_arrived(2);
    let link = rig.receiver_link();
    rig.receiver().close(link, false);
    // Answered when the loss has not been told: then it is told of the transfer.
    let transfer = rig.accept(arrivals[0].message, &Memory::zeros(10));
    let data = rig.until_data(2);
    let lost = Some(DataError::PathLost);
    use crate::seam::DataTarget::{Message, Transfer};
    assert!(data.iter().all(|data| data.error == lost), "{data:?}");
    assert_eq!(data[0].target, Transfer(transfer));
    assert_eq!(data[1].target, Message(arrivals[1].message));
    assert_eq!(rig.receiver().kept(RECEIVED_FROM), Kept::default());
}
