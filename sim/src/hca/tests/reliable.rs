//! Each work request of a RC QP, when all goes well.

use super::host::{Cq, Host, Qp, Wqe, attributes, opcodes, pattern};
use crate::hca::layout::{cqe_opcode, wqe_opcode};
use crate::hca::verbs::event;
use crate::hca::{QpAttributes, Step};

fn world() -> (Host, Cq, Qp, Qp) {
    let mut host = Host::new();
    let cq = host.cq(64);
    let (a, b) = host.pair(&cq);
    (host, cq, a, b)
}

#[test]
fn send_of_several_packets_lands_in_the_receive_and_completes_both_sides() {
    let (mut host, mut cq, mut a, mut b) = world();
    let bytes = pattern(1000);
    let from = host.data(&bytes);
    let to = host.receive_into(&mut b, 1000);
    host.post(&mut a, &Wqe::send(host.key, from, 1000));
    host.run();
    let cqes = host.poll_all(&mut cq);
    assert_eq!(opcodes(&cqes), [cqe_opcode::RECEIVED_SEND, cqe_opcode::REQUESTER]);
    assert_eq!(host.bytes(to, 1000), bytes);
    let received = cqes[0];
    assert_eq!(received.byte_count.get(), 1000);
    assert_eq!(received.srqn_uidx.get(), b.uidx);
    assert_eq!(received.flags_rqpn.get(), a.qpn);
    assert_eq!(received.sop_drop_qpn.get() & 0x00ff_ffff, b.qpn);
    let sent = cqes[1];
    assert_eq!(sent.sop_drop_qpn.get(), u32::from(wqe_opcode::SEND) << 24 | a.qpn);
    assert_eq!((sent.wqe_counter.get(), sent.srqn_uidx.get()), (0, a.uidx));
}

#[test]
fn empty_send_completes_with_zero_bytes() {
    let (mut host, mut cq, mut a, mut b) = world();
    host.receive(&mut b, &[]);
    host.post(&mut a, &Wqe::new(wqe_opcode::SEND));
    host.run();
    let cqes = host.poll_all(&mut cq);
    assert_eq!(opcodes(&cqes), [cqe_opcode::RECEIVED_SEND, cqe_opcode::REQUESTER]);
    assert_eq!(cqes[0].byte_count.get(), 0);
}

#[test]
fn immediate_and_key_to_invalidate_are_reported_as_they_were_written() {
    let (mut host, mut cq, mut a, mut b) = world();
    for opcode in [wqe_opcode::SEND_IMMEDIATE, wqe_opcode::SEND_INVALIDATE] {
        host.receive_into(&mut b, 8);
        host.post(&mut a, &Wqe::new(opcode).immediate([1, 2, 3, 4]).inline(b"abc").unsignalled());
    }
    host.run();
    let cqes = host.poll_all(&mut cq);
    assert_eq!(opcodes(&cqes), [cqe_opcode::RECEIVED_SEND_IMMEDIATE, cqe_opcode::RECEIVED_SEND_INVALIDATE]);
    assert!(cqes.iter().all(|cqe| cqe.immediate == [1, 2, 3, 4] && cqe.byte_count.get() == 3));
}

#[test]
fn payload_is_gathered_from_and_scattered_to_several_segments() {
    let (mut host, mut cq, mut a, mut b) = world();
    let bytes = pattern(700);
    let from = host.data(&bytes);
    let to = host.alloc(2000);
    let key = host.key;
    host.receive(&mut b, &[(key, to, 10), (key, to + 100, 600), (key, to + 1000, 500)]);
    let wqe = Wqe::send(key, from, 1).data(key, from + 1, 299).data(key, from + 300, 400);
    host.post(&mut a, &wqe);
    host.run();
    assert_eq!(host.poll_all(&mut cq).len(), 2);
    let placed = [host.bytes(to, 10), host.bytes(to + 100, 600), host.bytes(to + 1000, 90)].concat();
    assert_eq!(placed, bytes);
}

#[test]
fn inline_data_goes_around_the_end_of_the_ring() {
    let (mut host, mut cq, mut a, mut b) = world();
    for _ in 0..a.sq_count - 1 {
        host.post(&mut a, &Wqe::new(wqe_opcode::NOP).unsignalled());
    }
    host.run();
    let bytes = pattern(150);
    let to = host.receive_into(&mut b, 150);
    host.post(&mut a, &Wqe::new(wqe_opcode::SEND).inline(&bytes));
    host.run();
    assert_eq!(host.bytes(to, 150), bytes);
    let cqes = host.poll_all(&mut cq);
    assert_eq!(cqes[1].wqe_counter.get(), u16::try_from(a.sq_count - 1).unwrap());
}

#[test]
fn write_needs_no_receive_and_write_with_immediate_one_of_any_length() {
    let (mut host, mut cq, mut a, mut b) = world();
    let bytes = pattern(600);
    let (from, to) = (host.data(&bytes), host.alloc(600));
    let key = host.key;
    host.post(&mut a, &Wqe::new(wqe_opcode::RDMA_WRITE).remote(key, to).data(key, from, 600));
    host.run();
    assert_eq!(opcodes(&host.poll_all(&mut cq)), [cqe_opcode::REQUESTER]);
    assert_eq!(host.bytes(to, 600), bytes);
    host.receive(&mut b, &[]);
    let wqe = Wqe::new(wqe_opcode::RDMA_WRITE_IMMEDIATE).immediate([9; 4]);
    host.post(&mut a, &wqe.remote(key, to).data(key, from, 600));
    host.run();
    let cqes = host.poll_all(&mut cq);
    assert_eq!(opcodes(&cqes), [cqe_opcode::RECEIVED_WRITE_IMMEDIATE, cqe_opcode::REQUESTER]);
    assert_eq!((cqes[0].byte_count.get(), cqes[0].immediate), (600, [9; 4]));
}

#[test]
fn read_fetches_over_several_packets_and_says_how_much() {
    let (mut host, mut cq, mut a, b) = world();
    let bytes = pattern(1500);
    let (from, to) = (host.data(&bytes), host.alloc(1500));
    let key = host.key;
    host.post(&mut a, &Wqe::new(wqe_opcode::RDMA_READ).remote(key, from).data(key, to, 1500));
    host.run();
    let cqes = host.poll_all(&mut cq);
    assert_eq!(opcodes(&cqes), [cqe_opcode::REQUESTER]);
    assert_eq!(cqes[0].byte_count.get(), 1500);
    assert_eq!(host.bytes(to, 1500), bytes);
    assert_eq!(host.state(&b), crate::hca::verbs::state::RTS);
}

#[test]
fn atomics_change_memory_and_give_back_what_was_there() {
    let (mut host, mut cq, mut a, _b) = world();
    let word = host.data(&5_u64.to_ne_bytes());
    let result = host.alloc(8);
    let key = host.key;
    let swap = |compare, swap| {
        Wqe::new(wqe_opcode::COMPARE_SWAP).remote(key, word).atomic(swap, compare).data(key, result, 8)
    };
    let add = Wqe::new(wqe_opcode::FETCH_ADD).remote(key, word).atomic(10, 0).data(key, result, 8);
    let mut seen = Vec::new();
    for wqe in [add, swap(15, 100), swap(15, 200)] {
        host.post(&mut a, &wqe);
        host.run();
        let old = u64::from_ne_bytes(*host.bytes(result, 8).first_chunk().unwrap());
        let new = u64::from_ne_bytes(*host.bytes(word, 8).first_chunk().unwrap());
        seen.push((old, new, host.poll(&mut cq).unwrap().byte_count.get()));
    }
    assert_eq!(seen, [(5, 15, 8), (15, 100, 8), (100, 100, 8)]);
}

#[test]
fn nop_completes_in_its_place() {
    let (mut host, mut cq, mut a, mut b) = world();
    host.receive_into(&mut b, 8);
    host.post(&mut a, &Wqe::new(wqe_opcode::SEND).inline(b"x"));
    host.post(&mut a, &Wqe::new(wqe_opcode::NOP));
    host.run();
    let sent: Vec<_> =
        host.poll_all(&mut cq).iter().skip(1).map(|cqe| cqe.sop_drop_qpn.get() >> 24).collect();
    assert_eq!(sent, [u32::from(wqe_opcode::SEND), u32::from(wqe_opcode::NOP)]);
}

#[test]
fn fence_waits_for_the_read_before_it_and_reads_keep_to_their_limit() {
    let (mut host, _cq, mut a, _b) = world();
    let key = host.key;
    let place = host.alloc(64);
    let read = Wqe::new(wqe_opcode::RDMA_READ).remote(key, place).data(key, place, 8);
    let write = Wqe::new(wqe_opcode::RDMA_WRITE).remote(key, place).data(key, place, 8);
    host.post(&mut a, &read);
    host.post(&mut a, &write.fence());
    assert!(host.hca.step(Step::Send(a.qpn)));
    assert!(host.hca.step(Step::Send(a.qpn)), "the write is fetched");
    assert!(!host.hca.step(Step::Send(a.qpn)), "but not sent");
    host.run();
    for _ in 0..6 {
        host.post(&mut a, &read);
    }
    let sent = (0..20).take_while(|_| host.hca.step(Step::Send(a.qpn))).count();
    assert_eq!(sent, 5, "four are under way, and the fifth waits");
}

#[test]
fn first_packet_in_rtr_establishes_communication_once() {
    let mut host = Host::new();
    let mut cq = host.cq(16);
    let options = super::host::QpOptions::default();
    let (mut a, mut b) = (host.qp(&cq, options), host.qp(&cq, options));
    host.to_rts(&a, b.qpn, attributes());
    host.to_rtr(&b, a.qpn, attributes());
    for _ in 0..2 {
        host.receive_into(&mut b, 8);
        host.post(&mut a, &Wqe::new(wqe_opcode::SEND).inline(b"x"));
    }
    host.run();
    assert_eq!(host.poll_all(&mut cq).len(), 4);
    let event = host.hca.poll_async_event().unwrap();
    assert_eq!(event.event_type, event::COMMUNICATION_ESTABLISHED);
    assert_eq!(host.hca.poll_async_event(), None);
}

#[test]
fn messages_of_a_pair_keep_their_order_whatever_the_steps() {
    let (mut host, mut cq, mut a, mut b) = world();
    let mut places = Vec::new();
    for number in 0..20_u8 {
        places.push(host.receive_into(&mut b, 600));
        let from = host.data(&[number; 600]);
        host.post(&mut a, &Wqe::send(host.key, from, 600).unsignalled());
    }
    let mut turn = 0;
    loop {
        let steps = host.hca.steps();
        if steps.is_empty() {
            break;
        }
        turn += 7;
        host.hca.step(steps[turn % steps.len()]);
    }
    assert_eq!(host.poll_all(&mut cq).len(), 20);
    for (number, place) in places.into_iter().enumerate() {
        assert_eq!(host.bytes(place, 600), [u8::try_from(number).unwrap(); 600]);
    }
}

#[test]
fn long_message_goes_through_a_window_of_any_size() {
    let config = crate::hca::HcaConfig { window: 3, ..crate::hca::HcaConfig::default() };
    let mut host = Host::with(config);
    let mut cq = host.cq(16);
    let (mut a, mut b) = host.pair(&cq);
    let bytes = pattern(100_000);
    let from = host.data(&bytes);
    let to = host.receive_into(&mut b, 100_000);
    host.post(&mut a, &Wqe::send(host.key, from, 100_000));
    host.run();
    assert_eq!(host.poll_all(&mut cq).len(), 2);
    assert_eq!(host.bytes(to, 100_000), bytes);
}

#[test]
fn send_queue_drains_in_sqd_and_goes_on_in_rts() {
    use crate::hca::verbs::{attribute, state};
    let (mut host, mut cq, mut a, mut b) = world();
    host.receive_into(&mut b, 600);
    host.receive_into(&mut b, 600);
    let from = host.alloc(600);
    host.post(&mut a, &Wqe::send(host.key, from, 600));
    assert!(host.hca.step(Step::Send(a.qpn)));
    let drain = QpAttributes { state: state::SQD, sqd_notify: true, ..attributes() };
    host.modify(&a, attribute::STATE | attribute::EN_SQD_ASYNC_NOTIFY, drain).unwrap();
    host.post(&mut a, &Wqe::send(host.key, from, 600));
    host.run();
    assert_eq!(host.poll_all(&mut cq).len(), 2, "what had begun is finished, the next is not");
    assert_eq!(host.hca.poll_async_event().map(|event| event.event_type), Some(event::SQ_DRAINED));
    host.modify(&a, attribute::STATE, QpAttributes { state: state::RTS, ..attributes() }).unwrap();
    host.run();
    assert_eq!(host.poll_all(&mut cq).len(), 2);
}
