//! TM-CONTRACT 10: each way of a message to a TM-SRQ, in its completions.

use super::host::{Wqe, pattern};
use super::tag_host::{APP_CTX, NO_COUNT, Tags, UNEXPECTED_LENGTH, eager, rendezvous, summary, tmh};
use crate::hca::layout::{cqe_opcode, wqe_opcode};
use crate::hca::tm::app_op::{
    APPEND, CONSUMED, CONSUMED_MSG, CONSUMED_MSG_SW_RNDV, EXPECTED, NO_TAG, UNEXPECTED,
};
use crate::hca::{HcaConfig, Step};

#[test]
fn eager_message_of_one_packet_is_consumed_in_one_step() {
    let mut tags = Tags::new();
    let (entry, address) = tags.add_new(0x1234, 100);
    tags.run();
    tags.send(&eager(0x1234, b"payload"));
    tags.run();
    let cqes = tags.poll();
    assert_eq!(summary(&cqes), [(APPEND, 0, 0), (CONSUMED_MSG, entry, 7)]);
    let matched = cqes[1];
    assert_eq!(matched.opcode(), cqe_opcode::RECEIVED_SEND);
    assert_eq!(matched.head.to_vec(), tmh(3, 0x1234));
    assert_eq!(matched.head[4..8], APP_CTX);
    assert_eq!(matched.srqn_uidx.get(), tags.srq.uidx);
    assert_eq!(matched.sop_drop_qpn.get() & 0x00ff_ffff, tags.receiver.qpn);
    assert_eq!((matched.app, cqes[0].opcode()), (1, cqe_opcode::NO_PACKET));
    assert_eq!(tags.host.bytes(address, 7), b"payload");
}

#[test]
fn eager_message_of_several_packets_is_consumed_and_expected_later() {
    let mut tags = Tags::new();
    let payload = pattern(700);
    let (entry, address) = tags.add_new(5, 700);
    tags.run();
    tags.send(&eager(5, &payload));
    tags.run();
    let cqes = tags.poll();
    assert_eq!(summary(&cqes)[1..], [(CONSUMED, entry, 0), (EXPECTED, entry, 700)]);
    assert_eq!((cqes[1].opcode(), cqes[2].opcode()), (cqe_opcode::NO_PACKET, cqe_opcode::RECEIVED_SEND));
    assert_eq!(cqes[1].head.to_vec(), tmh(3, 5));
    assert_eq!(cqes[2].head, [0; 16]);
    assert_eq!(tags.host.bytes(address, 700), payload);
}

#[test]
fn rendezvous_that_fits_is_read_by_the_device_which_sends_the_fin() {
    let mut tags = Tags::new();
    let payload = pattern(3000);
    let source = tags.host.data(&payload);
    let key = tags.host.key;
    let (entry, address) = tags.add_new(9, 3000);
    tags.run();
    let fin = tags.host.receive_into(&mut tags.sender, 64);
    let request = rendezvous(9, (source, key, 3000));
    tags.send(&[&request[..], b"metadata"].concat());
    tags.run();
    let cqes = tags.poll();
    assert_eq!(summary(&cqes)[1..], [(CONSUMED, entry, 0), (EXPECTED, entry, 3000)]);
    assert_eq!(tags.host.bytes(address, 3000), payload);
    let received = tags.host.poll(&mut tags.sender_cq).unwrap();
    assert_eq!((received.opcode(), received.byte_count.get()), (cqe_opcode::RECEIVED_SEND, 32));
    assert_eq!(tags.host.bytes(fin, 32), [&[2], &request[1..]].concat());
    assert!(tags.host.poll(&mut tags.sender_cq).is_none(), "the request was unsignalled");
}

#[test]
fn rendezvous_longer_than_the_buffer_is_handed_back_with_its_headers() {
    let mut tags = Tags::new();
    let (entry, address) = tags.add_new(9, 100);
    tags.run();
    let message = [&rendezvous(9, (0x1000, 1, 101))[..], &pattern(32)].concat();
    tags.send(&message);
    tags.run();
    let cqes = tags.poll();
    assert_eq!(summary(&cqes)[1..], [(CONSUMED_MSG_SW_RNDV, entry, 64)]);
    assert_eq!(cqes[1].head.to_vec(), tmh(1, 9));
    assert_eq!(tags.host.bytes(address, 64), message);
}

#[test]
fn rendezvous_on_a_qp_with_a_send_queue_or_a_device_without_offload_is_handed_back() {
    let mut tags = Tags::new();
    let (entry, _) = tags.add_new(9, 100);
    let (_receiver, sender) = tags.another(64);
    tags.sender = sender;
    tags.send(&rendezvous(9, (0x1000, 1, 10)));
    assert_eq!(tags.outcome()[1..], [(CONSUMED_MSG_SW_RNDV, entry, 32)]);
    let mut tags = Tags::with(HcaConfig { rendezvous: false, ..HcaConfig::default() });
    let (entry, _) = tags.add_new(9, 100);
    tags.send(&rendezvous(9, (0x1000, 1, 10)));
    assert_eq!(tags.outcome()[1..], [(CONSUMED_MSG_SW_RNDV, entry, 32)]);
}

#[test]
fn empty_rendezvous_completes_without_a_read() {
    let mut tags = Tags::new();
    let entry = tags.add(9, (0, 0), NO_COUNT);
    tags.host.receive_into(&mut tags.sender, 64);
    tags.send(&rendezvous(9, (0, 0, 0)));
    assert_eq!(tags.outcome()[1..], [(CONSUMED, entry, 0), (EXPECTED, entry, 0)]);
    assert!(tags.host.poll(&mut tags.sender_cq).is_some(), "the FIN");
}

#[test]
fn unmatched_message_takes_a_receive_whole_and_is_counted_once() {
    let mut tags = Tags::new();
    let message = eager(77, &pattern(900));
    tags.send(&message);
    tags.run();
    let cqes = tags.poll();
    assert_eq!(summary(&cqes), [(UNEXPECTED, 0, 916)]);
    assert_eq!((cqes[0].wqe_counter.get(), cqes[0].head), (0, [0; 16]));
    tags.sync(0);
    tags.run();
    assert_eq!(super::tag_host::operations(&tags.poll()), [(7, true, 1)]);
}

#[test]
fn messages_without_a_tag_and_fins_are_not_counted() {
    let mut tags = Tags::new();
    for message in [vec![0], vec![0; 40], tmh(2, 3), Vec::new()] {
        tags.send(&message);
    }
    tags.sync(0);
    let outcome = tags.outcome();
    let lengths: Vec<_> =
        outcome.iter().filter(|(op, ..)| *op == NO_TAG).map(|(.., length)| *length).collect();
    assert_eq!(lengths, [1, 40, 16, 0]);
    tags.sync(0);
    tags.run();
    assert_eq!(super::tag_host::operations(&tags.poll()), [(7, true, 0)]);
}

#[test]
fn immediate_comes_with_the_completion_that_carries_the_data() {
    let mut tags = Tags::new();
    tags.add_new(1, 100);
    tags.add_new(2, 700);
    tags.run();
    tags.poll();
    let immediate = [1, 2, 3, 4];
    let with = || Wqe::new(wqe_opcode::SEND_IMMEDIATE).immediate(immediate);
    tags.send_as(with(), &eager(1, b"x"));
    tags.send_as(with(), &eager(2, &pattern(700)));
    tags.send_as(with(), &eager(3, b"unexpected"));
    tags.send_as(with(), &[0]);
    tags.run();
    let cqes = tags.poll();
    let got: Vec<_> = cqes.iter().map(|cqe| (cqe.app_op, cqe.opcode(), cqe.immediate)).collect();
    let with = cqe_opcode::RECEIVED_SEND_IMMEDIATE;
    assert_eq!(
        got,
        [
            (CONSUMED_MSG, with, immediate),
            (CONSUMED, cqe_opcode::NO_PACKET, [0; 4]),
            (EXPECTED, with, immediate),
            (UNEXPECTED, with, immediate),
            (NO_TAG, with, immediate)
        ]
    );
}

#[test]
fn rendezvous_with_immediate_shows_it_when_the_data_is_there() {
    let mut tags = Tags::new();
    let source = tags.host.data(b"data");
    let key = tags.host.key;
    tags.add_new(1, 4);
    tags.host.receive_into(&mut tags.sender, 64);
    let wqe = Wqe::new(wqe_opcode::SEND_IMMEDIATE).immediate([7; 4]);
    tags.send_as(wqe, &rendezvous(1, (source, key, 4)));
    tags.run();
    let cqes = tags.poll();
    assert_eq!(summary(&cqes)[1..], [(CONSUMED, 0, 0), (EXPECTED, 0, 4)]);
    assert_eq!(cqes[2].immediate, [7; 4]);
}

#[test]
fn matched_message_needs_no_receive_and_unmatched_one_waits_for_it() {
    let mut tags = Tags::new();
    for tag in 0..40 {
        tags.send(&eager(1000 + tag, b"x"));
    }
    assert_eq!(tags.outcome().len(), 40);
    let (entry, _) = tags.add_new(1, 8);
    tags.sync(40);
    tags.run();
    tags.poll();
    tags.send(&eager(1, b"matched"));
    tags.send(&eager(2, b"not matched"));
    while tags.host.hca.run(1000) > 0 {}
    assert_eq!(summary(&tags.poll()), [(CONSUMED_MSG, entry, 7)]);
    tags.host.srq_free(&mut tags.srq, 0);
    tags.fill_buffers(1);
    assert!(tags.host.hca.step(Step::Timer(tags.sender.qpn)));
    assert_eq!(tags.outcome(), [(UNEXPECTED, 0, 27)]);
}

#[test]
fn nothing_is_accepted_before_33_receives_were_posted() {
    let mut tags = Tags::without_buffers(HcaConfig::default());
    tags.fill_buffers(32);
    tags.add_new(1, 8);
    tags.send(&eager(1, b"x"));
    while tags.host.hca.run(1000) > 0 {}
    assert_eq!(summary(&tags.poll()), [(APPEND, 0, 0)]);
    tags.fill_buffers(1);
    assert_eq!(tags.outcome(), [(CONSUMED_MSG, 0, 1)]);
}

#[test]
fn completions_of_messages_come_in_the_order_of_their_arrival() {
    let mut tags = Tags::new();
    let (_receiver, mut other) = tags.another(0);
    tags.send(&eager(1, &pattern(700)));
    assert!(tags.send_step());
    assert!(tags.deliver());
    let address = tags.host.data(&eager(2, b"later"));
    tags.host.post(&mut other, &Wqe::send(tags.host.key, address, 21).unsignalled());
    tags.host.hca.step(Step::Send(other.qpn));
    tags.host.hca.step(Step::Deliver { from: other.qpn, to: _receiver.qpn });
    assert!(tags.poll().is_empty(), "it waits for the one before it");
    assert_eq!(tags.outcome(), [(UNEXPECTED, 0, 716), (UNEXPECTED, 0, 21)]);
}

#[test]
fn reserved_bytes_of_a_header_are_not_looked_at() {
    let mut tags = Tags::new();
    let (entry, _) = tags.add_new(1, 8);
    let mut message = eager(1, b"x");
    message[1..4].copy_from_slice(&[1, 2, 3]);
    tags.send(&message);
    assert_eq!(tags.outcome()[1..], [(CONSUMED_MSG, entry, 1)]);
}

#[test]
fn message_that_fills_its_buffer_fits() {
    let mut tags = Tags::new();
    let (entry, _) = tags.add_new(1, 8);
    let empty = tags.add(2, (0, 0), NO_COUNT);
    tags.send(&eager(1, b"12345678"));
    tags.send(&eager(2, b""));
    tags.send(&eager(3, &pattern(UNEXPECTED_LENGTH as usize - 16)));
    assert_eq!(
        tags.outcome()[2..],
        [(CONSUMED_MSG, entry, 8), (CONSUMED_MSG, empty, 0), (UNEXPECTED, 0, UNEXPECTED_LENGTH)]
    );
}

#[test]
fn expected_does_not_overtake_its_own_match_that_is_held_back() {
    let mut tags = Tags::new();
    let (receiver, mut other) = tags.another(0);
    let (entry, _) = tags.add_new(2, 700);
    tags.run();
    tags.poll();
    tags.send(&eager(1, &pattern(700)));
    assert!(tags.send_step() && tags.deliver());
    let address = tags.host.data(&eager(2, &pattern(700)));
    tags.host.post(&mut other, &Wqe::send(tags.host.key, address, 716).unsignalled());
    while tags.host.hca.step(Step::Send(other.qpn)) {}
    while tags.host.hca.step(Step::Deliver { from: other.qpn, to: receiver.qpn }) {}
    assert!(tags.poll().is_empty());
    assert_eq!(tags.outcome(), [(UNEXPECTED, 0, 716), (CONSUMED, entry, 0), (EXPECTED, entry, 700)]);
}
