//! Receivers that are not ready, peers that do not answer: timers and counts.

use super::host::{Cq, Host, Qp, QpOptions, Wqe, attributes, opcodes, pattern, syndrome};
use crate::hca::layout::{Syndrome, cqe_opcode, wqe_opcode};
use crate::hca::verbs::{attribute, state};
use crate::hca::{QpAttributes, Step};

fn world(change: QpAttributes) -> (Host, Cq, Qp, Qp) {
    let mut host = Host::new();
    let cq = host.cq(64);
    let options = QpOptions::default();
    let (a, b) = (host.qp(&cq, options), host.qp(&cq, options));
    host.connect(&a, &b, change);
    (host, cq, a, b)
}

/// Everything but timers.
fn settle(host: &mut Host) {
    while host.hca.run(1000) > 0 {}
}

#[test]
fn message_without_a_receive_is_sent_again_until_there_is_one() {
    let (mut host, mut cq, mut a, mut b) = world(attributes());
    let bytes = pattern(600);
    let from = host.data(&bytes);
    host.post(&mut a, &Wqe::send(host.key, from, 600));
    for _ in 0..20 {
        settle(&mut host);
        assert!(host.poll(&mut cq).is_none());
        assert!(host.hca.step(Step::Timer(a.qpn)));
    }
    let to = host.receive_into(&mut b, 600);
    host.run();
    assert_eq!(opcodes(&host.poll_all(&mut cq)), [cqe_opcode::RECEIVED_SEND, cqe_opcode::REQUESTER]);
    assert_eq!(host.bytes(to, 600), bytes);
}

#[test]
fn timer_waits_as_long_as_the_receiver_asked() {
    let (mut host, _cq, mut a, mut b) = world(QpAttributes { min_rnr_timer: 14, ..attributes() });
    host.post(&mut a, &Wqe::new(wqe_opcode::SEND).inline(b"x"));
    settle(&mut host);
    assert_eq!(host.hca.next_timer(), Some(1_280_000), "14 means 1.28 ms");
    host.receive_into(&mut b, 8);
    host.hca.advance_clock(1_279_999);
    assert_eq!(host.hca.run(100), 0);
    host.hca.advance_clock(1_280_000);
    assert!(host.hca.run(100) > 0);
    assert_eq!(host.hca.next_timer(), None);
}

#[test]
fn retries_are_counted_and_then_the_sender_fails() {
    let (mut host, mut cq, mut a, b) = world(QpAttributes { rnr_retry: 2, ..attributes() });
    host.post(&mut a, &Wqe::new(wqe_opcode::SEND).inline(b"x"));
    let mut timers = 0;
    loop {
        settle(&mut host);
        if !host.hca.step(Step::Timer(a.qpn)) {
            break;
        }
        timers += 1;
    }
    assert_eq!(timers, 2);
    assert_eq!(syndrome(&host.poll(&mut cq).unwrap()), Syndrome::ReceiverNotReady as u8);
    assert_eq!((host.state(&a), host.state(&b)), (state::ERR, state::RTS));
}

#[test]
fn retry_count_of_zero_fails_at_once_and_progress_gives_the_count_back() {
    let (mut host, mut cq, mut a, _) = world(QpAttributes { rnr_retry: 0, ..attributes() });
    host.post(&mut a, &Wqe::new(wqe_opcode::SEND).inline(b"x"));
    settle(&mut host);
    assert_eq!(syndrome(&host.poll(&mut cq).unwrap()), Syndrome::ReceiverNotReady as u8);
    let (mut host, mut cq, mut a, mut b) = world(QpAttributes { rnr_retry: 1, ..attributes() });
    for _ in 0..5 {
        host.post(&mut a, &Wqe::new(wqe_opcode::SEND).inline(b"x").unsignalled());
        settle(&mut host);
        host.receive_into(&mut b, 8);
        assert!(host.hca.step(Step::Timer(a.qpn)));
        settle(&mut host);
        assert_eq!(opcodes(&host.poll_all(&mut cq)), [cqe_opcode::RECEIVED_SEND]);
    }
}

#[test]
fn messages_behind_the_refused_one_are_not_taken_before_it() {
    let (mut host, mut cq, mut a, mut b) = world(attributes());
    for byte in 0..4_u8 {
        host.post(&mut a, &Wqe::new(wqe_opcode::SEND).inline(&[byte]).unsignalled());
    }
    for _ in 0..4 {
        host.hca.step(Step::Send(a.qpn));
    }
    host.hca.step(Step::Deliver { from: a.qpn, to: b.qpn });
    let places: Vec<_> = (0..4).map(|_| host.receive_into(&mut b, 1)).collect();
    host.run();
    assert_eq!(host.poll_all(&mut cq).len(), 4);
    let found: Vec<_> = places.into_iter().map(|place| host.bytes(place, 1)[0]).collect();
    assert_eq!(found, [0, 1, 2, 3]);
}

#[test]
fn write_with_immediate_waits_with_its_last_packet_alone() {
    let (mut host, mut cq, mut a, mut b) = world(attributes());
    let bytes = pattern(600);
    let (from, to) = (host.data(&bytes), host.alloc(600));
    let wqe = Wqe::new(wqe_opcode::RDMA_WRITE_IMMEDIATE).immediate([3; 4]);
    host.post(&mut a, &wqe.remote(host.key, to).data(host.key, from, 600));
    settle(&mut host);
    assert_eq!(host.bytes(to, 512), bytes[..512]);
    host.receive(&mut b, &[]);
    host.run();
    assert_eq!(host.bytes(to, 600), bytes);
    let cqes = host.poll_all(&mut cq);
    assert_eq!(cqes[0].byte_count.get(), 600);
    assert_eq!(cqes.len(), 2);
}

#[test]
fn peer_that_is_gone_is_tried_retry_count_times() {
    let (mut host, mut cq, mut a, b) = world(QpAttributes { retry_count: 3, timeout: 10, ..attributes() });
    host.hca.destroy_qp(host.context, b.handle).unwrap();
    host.post(&mut a, &Wqe::new(wqe_opcode::SEND).inline(b"x"));
    settle(&mut host);
    assert_eq!(host.hca.next_timer(), Some(4096 << 10));
    let timers = (0..10).take_while(|_| {
        settle(&mut host);
        host.hca.step(Step::Timer(a.qpn))
    });
    assert_eq!(timers.count(), 4);
    assert_eq!(syndrome(&host.poll(&mut cq).unwrap()), Syndrome::TransportRetry as u8);
}

#[test]
fn timeout_of_zero_waits_for_ever() {
    let (mut host, mut cq, mut a, b) = world(QpAttributes { timeout: 0, ..attributes() });
    host.hca.destroy_qp(host.context, b.handle).unwrap();
    host.post(&mut a, &Wqe::new(wqe_opcode::SEND).inline(b"x"));
    host.run();
    assert_eq!(host.hca.next_timer(), None);
    assert!(host.poll(&mut cq).is_none());
    assert!(host.hca.steps().is_empty());
}

#[test]
fn peer_that_is_ready_late_gets_the_message() {
    let mut host = Host::new();
    let mut cq = host.cq(16);
    let options = QpOptions::default();
    let (mut a, mut b) = (host.qp(&cq, options), host.qp(&cq, options));
    host.to_rts(&a, b.qpn, attributes());
    host.post(&mut a, &Wqe::new(wqe_opcode::SEND).inline(b"x"));
    settle(&mut host);
    host.receive_into(&mut b, 8);
    host.to_rts(&b, a.qpn, attributes());
    host.run();
    assert_eq!(opcodes(&host.poll_all(&mut cq)), [cqe_opcode::RECEIVED_SEND, cqe_opcode::REQUESTER]);
}

#[test]
fn wrong_lid_is_nobody() {
    let mut change = attributes();
    change.path.dlid = 99;
    let (mut host, mut cq, mut a, _b) = world(QpAttributes { retry_count: 1, ..change });
    host.post(&mut a, &Wqe::new(wqe_opcode::SEND).inline(b"x"));
    host.run();
    assert_eq!(syndrome(&host.poll(&mut cq).unwrap()), Syndrome::TransportRetry as u8);
}

#[test]
fn psns_that_do_not_agree_end_in_exhausted_retries() {
    let mut host = Host::new();
    let mut cq = host.cq(16);
    let options = QpOptions::default();
    let (mut a, b) = (host.qp(&cq, options), host.qp(&cq, options));
    host.to_rts(&a, b.qpn, QpAttributes { sq_psn: 1000, ..attributes() });
    host.to_rts(&b, a.qpn, QpAttributes { rq_psn: 5, ..attributes() });
    host.post(&mut a, &Wqe::new(wqe_opcode::SEND).inline(b"x"));
    host.run();
    assert_eq!(syndrome(&host.poll(&mut cq).unwrap()), Syndrome::TransportRetry as u8);
}

#[test]
fn responder_reset_before_it_answered_lets_the_requester_run_out_of_time() {
    let (mut host, mut cq, mut a, mut b) = world(QpAttributes { retry_count: 0, ..attributes() });
    host.receive_into(&mut b, 8);
    host.post(&mut a, &Wqe::new(wqe_opcode::SEND).inline(b"x"));
    host.hca.step(Step::Send(a.qpn));
    host.hca.step(Step::Deliver { from: a.qpn, to: b.qpn });
    host.modify(&b, attribute::STATE, QpAttributes { state: state::RESET, ..attributes() }).unwrap();
    host.run();
    let cqes = host.poll_all(&mut cq);
    assert_eq!(opcodes(&cqes), [cqe_opcode::RECEIVED_SEND, cqe_opcode::REQUESTER_ERROR]);
    assert_eq!(syndrome(&cqes[1]), Syndrome::TransportRetry as u8);
}
