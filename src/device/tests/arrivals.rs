//! Messages with their payload: order, sizes, answers, what is kept.

use super::rig::{EAGER_LIMIT, eager, outgoing};
use super::{Heard, Memory, Policy, RECEIVED_FROM, Rig, over_every_transport, pattern, untagged};
use crate::device::transport::{CloseReason, Kept, Notice, Outgoing, Payload, SendError, Sending};
use crate::ids::Tag;
use crate::seam::{Answer, Event};
use crate::wire::{AppContext, Control, Eager, Keepalive, OperationId, SendFlags};

over_every_transport!(
    messages_arrive_in_the_order_in_which_they_were_sent,
    messages_of_all_sizes_come_whole_into_their_buffers,
    payloads_come_from_and_into_several_segments,
    what_is_longer_than_its_buffer_is_cut_and_the_next_is_untouched,
    what_is_held_is_kept_until_it_is_answered,
    what_is_held_and_whole_can_be_placed_at_once,
    the_two_spaces_and_control_keep_their_order,
    an_immediate_comes_with_its_message,
    what_is_no_message_is_not_sent,
    a_closed_link_is_told_of_behind_all_that_came,
    held_messages_survive_their_link,
    ids_that_name_nothing_do_nothing,
);

fn messages_arrive_in_the_order_in_which_they_were_sent(mut rig: Rig) {
    let count = 3000;
    for seed in 0..count {
        rig.send_eager(seed as u64, &pattern(seed, (seed * 37) % 700));
    }
    let arrivals = rig.until_arrived(count);
    let tags: Vec<u64> = arrivals.iter().map(|arrival| arrival.header.tag.0).collect();
    assert_eq!(tags, (0..count as u64).collect::<Vec<_>>());
    for (index, arrival) in arrivals.iter().enumerate() {
        let length = (index * 37) % 700;
        assert_eq!((arrival.source, arrival.header.length), (RECEIVED_FROM, length as u64));
        let memory = Memory::zeros(length);
        let transfer = rig.accept(arrival.message, &memory);
        let data = rig.until_transferred(transfer);
        assert_eq!((data.length, data.error), (length as u64, None));
        assert_eq!(memory.bytes(), pattern(index, length));
    }
    assert_eq!(rig.receiver().kept(RECEIVED_FROM), Kept::default());
}

/// Sizes around everything that could be a limit.
fn sizes() -> Vec<usize> {
    let limit = usize::try_from(EAGER_LIMIT).expect("it is small");
    let mut sizes = vec![0, 1, 7, 8, 9, 1023, 1024, 2047, 2048, 2049, 4096, 16_383, 32_768];
    sizes.extend([limit - 100, limit - 25, limit - 24, limit - 23, limit - 8, limit - 1, limit]);
    sizes
}

fn messages_of_all_sizes_come_whole_into_their_buffers(mut rig: Rig) {
    for is_copied in [true, false] {
        let (mut into, mut from) = (Vec::new(), Vec::new());
        for (seed, size) in sizes().into_iter().enumerate() {
            into.push(Memory::zeros(size));
            from.push(Memory::new(pattern(seed, size)));
        }
        let before = rig.ear().arrivals().len();
        rig.ear().policy = Policy::Accept(into.iter().map(Memory::buffer).collect());
        for (seed, memory) in from.iter().enumerate() {
            let header = eager(seed as u64);
            let bytes = memory.bytes();
            let payload = if is_copied { Payload::Copied(&bytes) } else { Payload::Memory(memory.buffer()) };
            rig.send(&outgoing(&header, payload));
        }
        rig.until_arrived(before + from.len());
        let late = |rig: &mut Rig| rig.ear().arrivals().iter().filter(|arrival| !arrival.in_hand).count();
        rig.until(|rig| rig.ear().data().len() == late(rig));
        for (sent, received) in from.iter().zip(&into) {
            assert_eq!(sent.bytes(), received.bytes());
        }
        assert_eq!(rig.receiver().kept(RECEIVED_FROM), Kept::default());
    }
}

fn payloads_come_from_and_into_several_segments(mut rig: Rig) {
    let many: Vec<usize> = (0..150).map(|at| at % 5).collect();
    for (seed, cuts) in [vec![0, 1, 0, 30_000], vec![10; 3], many].into_iter().enumerate() {
        let from = Memory::cut(pattern(seed, 60_000), &cuts);
        let into = Memory::cut(vec![0; 60_000], &[7, 3, 59_000, 0]);
        rig.ear().policy = Policy::Accept([into.buffer()].into());
        let header = eager(1);
        rig.send(&outgoing(&header, Payload::Memory(from.buffer())));
        let whole = pattern(seed, 60_000);
        rig.until(|_| into.bytes() == whole);
    }
}

fn what_is_longer_than_its_buffer_is_cut_and_the_next_is_untouched(mut rig: Rig) {
    for size in [10, 60_000] {
        let (short, none, next) = (Memory::zeros(4), Memory::zeros(0), Memory::zeros(3));
        let before = rig.ear().arrivals().len();
        rig.ear().policy = Policy::Accept([short.buffer(), none.buffer(), next.buffer()].into());
        rig.send_eager(1, &pattern(1, size));
        rig.send_eager(2, &pattern(2, size));
        rig.send_eager(3, b"abc");
        let arrivals = rig.until_arrived(before + 3);
        assert_eq!(arrivals[before].header.length, size as u64);
        rig.until(|_| next.bytes() == b"abc");
        assert_eq!(short.bytes(), pattern(1, size)[..4]);
    }
    // The same by command.
    rig.ear().policy = Policy::Hold;
    rig.send_eager(1, &pattern(1, 60_000));
    let arrival = *rig.until_arrived(7).last().expect("it came");
    let short = Memory::zeros(5);
    let transfer = rig.accept(arrival.message, &short);
    assert_eq!(rig.until_transferred(transfer).length, 60_000);
    assert_eq!(short.bytes(), pattern(1, 60_000)[..5]);
}

fn what_is_held_is_kept_until_it_is_answered(mut rig: Rig) {
    rig.send_eager(1, &pattern(1, 100));
    rig.send_eager(2, b"");
    rig.send_untagged(3, &pattern(3, 50));
    let arrivals = rig.until_arrived(3);
    let kept = |messages, bytes| Kept { messages, bytes, requests: 0 };
    assert_eq!(rig.receiver().kept(RECEIVED_FROM), kept(3, 150));
    rig.answer(arrivals[0].message, Answer::Discard);
    assert_eq!(rig.receiver().kept(RECEIVED_FROM), kept(2, 50));
    let into = Memory::zeros(50);
    let transfer = rig.accept(arrivals[2].message, &into);
    assert_eq!(rig.until_transferred(transfer).error, None);
    assert_eq!(into.bytes(), pattern(3, 50));
    assert!(
        rig.ear().heard.iter().any(|heard| matches!(heard, Heard::Event(false, Event::Data(_)))),
        "data of a message without a tag is told to those without"
    );
    rig.answer(arrivals[1].message, Answer::Discard);
    assert_eq!(rig.receiver().kept(RECEIVED_FROM), Kept::default());
}

fn what_is_held_and_whole_can_be_placed_at_once(mut rig: Rig) {
    rig.send_eager(1, b"payload");
    let message = rig.until_arrived(1)[0].message;
    let into = Memory::zeros(5);
    assert!(rig.receiver().place_held(message, &into.buffer()));
    assert_eq!(into.bytes(), b"paylo");
    assert!(!rig.receiver().place_held(message, &into.buffer()), "it is forgotten");
    assert_eq!(rig.receiver().kept(RECEIVED_FROM), Kept::default());
}

fn the_two_spaces_and_control_keep_their_order(mut rig: Rig) {
    for turn in 0..50 {
        rig.send_eager(turn, b"tagged");
        rig.send_untagged(2, b"untagged");
        rig.send_control(&Control::Keepalive(Keepalive { is_answer: false, sequence: 77 }));
    }
    rig.until(|rig| rig.ear().heard.len() >= 150);
    for three in rig.ear().heard.chunks(3) {
        let [Heard::Event(true, tagged), Heard::Event(false, untagged), Heard::Control(_, bytes)] = three
        else {
            panic!("another order: {three:?}")
        };
        assert!(matches!((tagged, untagged), (Event::Arrived(_), Event::Arrived(_))));
        assert_eq!(bytes, &[0, 0x2F, 0, 0, 0, 0, 0, 77]);
    }
}

fn an_immediate_comes_with_its_message(mut rig: Rig) {
    let context = AppContext { operation: OperationId::default(), flags: SendFlags::CQ_DATA };
    let header = Eager { context, tag: Tag(1), payload: crate::wire::Payload::new(&[]) }.header();
    let message = Outgoing { immediate: Some(0xABCD), ..outgoing(&header, Payload::Copied(b"x")) };
    rig.send(&message);
    assert_eq!(rig.until_arrived(1)[0].header.immediate, Some(0xABCD));
    // Without the flag it breaks the protocol.
    let header = eager(1);
    rig.send(&Outgoing { immediate: Some(1), ..outgoing(&header, Payload::Copied(b"x")) });
    rig.until(|rig| !rig.ear().notices().is_empty());
    let notices = rig.ear().notices();
    let [Notice::Closed { reason: CloseReason::Protocol(what), .. }] = notices.as_slice() else {
        panic!("{notices:?}")
    };
    assert!(what.contains("immediate"), "{what}");
}

fn what_is_no_message_is_not_sent(mut rig: Rig) {
    let link = rig.sender_link();
    let good = untagged(1);
    let bad: [&[u8]; 5] = [b"", b"\xFF", &[3; 16], &good[..15], &[good, good].concat()];
    for header in bad {
        let refused = rig.sender().send(link, &outgoing(header, Payload::Copied(&[])));
        assert_eq!(refused, Err(SendError::Malformed), "{header:?}");
    }
    // The last 16 bytes are a payload where the message may have one.
    rig.send(&outgoing(&good, Payload::Copied(&good)));
    assert_eq!(rig.until_arrived(1)[0].header.length, 16);
}

fn a_closed_link_is_told_of_behind_all_that_came(mut rig: Rig) {
    for tag in 0..200 {
        rig.send_eager(tag, &pattern(0, 1000));
    }
    let link = rig.sender_link();
    rig.sender().close(link, true);
    rig.until(|rig| rig.ear().notices().iter().any(|notice| matches!(notice, Notice::Closed { .. })));
    let heard = &rig.ear().heard;
    let arrived = |heard: &Heard| matches!(heard, Heard::Event(true, Event::Arrived(_)));
    assert!(heard[..200].iter().all(arrived));
    let lost = Event::PathLost { peer: RECEIVED_FROM };
    assert_eq!(heard[200..202], [Heard::Event(true, lost.clone()), Heard::Event(false, lost)]);
    assert!(matches!(heard[202], Heard::Notice(Notice::Closed { .. })));
    assert_eq!(heard.len(), 203);
    assert_eq!(
        rig.sender().send(link, &outgoing(&eager(1), Payload::Copied(&[]))),
        Err(SendError::NoLink(link))
    );
}

fn held_messages_survive_their_link(mut rig: Rig) {
    rig.send_eager(1, b"still here");
    let message = rig.until_arrived(1)[0].message;
    let link = rig.receiver_link();
    rig.receiver().close(link, false);
    rig.until(|rig| !rig.ear().notices().is_empty());
    let into = Memory::zeros(10);
    let transfer = rig.accept(message, &into);
    assert_eq!(rig.until_transferred(transfer).error, None);
    assert_eq!(into.bytes(), b"still here");
}

fn ids_that_name_nothing_do_nothing(mut rig: Rig) {
    rig.send_eager(1, b"x");
    let message = rig.until_arrived(1)[0].message;
    rig.answer(message, Answer::Discard);
    for _ in 0..2 {
        rig.answer(message, Answer::Discard);
        rig.accept(message, &Memory::zeros(1));
    }
    let link = rig.receiver_link();
    rig.receiver().close(link, false);
    rig.until(|rig| !rig.ear().notices().is_empty());
    rig.receiver().close(link, true);
    rig.receiver().bind(link, RECEIVED_FROM).expect_err("it is gone");
    let refused = rig.receiver().expose(link, Memory::zeros(1).buffer());
    assert_eq!(refused, Err(SendError::NoLink(link)));
    assert_eq!(rig.ear().data(), []);
    let sending = rig.receiver().send(link, &outgoing(&eager(1), Payload::Copied(&[])));
    assert_eq!(sending, Err::<Sending, _>(SendError::NoLink(link)));
}
