//! Completion queues and shared receive queues: formats, arming, overrun, limits.

use super::host::{Cq, Host, Qp, QpOptions, Wqe, attributes};
use crate::hca::layout::wqe_opcode;
use crate::hca::verbs::{event, srq_attribute, state};
use crate::hca::{AsyncEvent, Element};

fn world(cqe_size: u32, entries: u32) -> (Host, Cq, Qp) {
    let mut host = Host::new();
    let cq = host.cq_of(entries, cqe_size);
    let qp = host.qp(&cq, QpOptions::default());
    host.to_rts(&qp, qp.qpn, attributes());
    (host, cq, qp)
}

fn nop(host: &mut Host, qp: &mut Qp) {
    host.post(qp, &Wqe::new(wqe_opcode::NOP));
    host.run();
}

/// One message to itself: a completion of the receive, one of the send.
fn message(host: &mut Host, qp: &mut Qp, solicited: bool) {
    host.receive_into(qp, 8);
    let wqe = Wqe::new(wqe_opcode::SEND).inline(b"x").unsignalled();
    host.post(qp, &if solicited { wqe.solicited() } else { wqe });
    host.run();
}

fn notified(host: &mut Host) -> usize {
    std::iter::from_fn(|| host.hca.poll_completion_event()).count()
}

#[test]
fn owner_bit_turns_over_with_each_round_in_both_formats() {
    for cqe_size in [64, 128] {
        let (mut host, mut cq, mut qp) = world(cqe_size, 4);
        for number in 0..50 {
            nop(&mut host, &mut qp);
            let cqe = host.poll(&mut cq).unwrap();
            assert_eq!(cqe.wqe_counter.get(), number);
            assert!(host.poll(&mut cq).is_none());
        }
    }
}

#[test]
fn armed_queue_tells_once_until_it_is_armed_anew() {
    let (mut host, mut cq, mut qp) = world(64, 16);
    nop(&mut host, &mut qp);
    assert_eq!(notified(&mut host), 0, "not armed");
    host.poll_all(&mut cq);
    host.arm(&cq, 0, false);
    assert_eq!(notified(&mut host), 0);
    nop(&mut host, &mut qp);
    nop(&mut host, &mut qp);
    let event = host.hca.poll_completion_event().unwrap();
    assert_eq!((event.cq, event.channel), (cq.handle, super::host::CHANNEL));
    assert_eq!(notified(&mut host), 0);
    host.poll_all(&mut cq);
    host.arm(&cq, 0, false);
    nop(&mut host, &mut qp);
    assert_eq!(notified(&mut host), 0, "the same sequence number: the event was not read");
    host.poll_all(&mut cq);
    host.arm(&cq, 1, false);
    nop(&mut host, &mut qp);
    assert_eq!(notified(&mut host), 1);
}

#[test]
fn arming_behind_a_completion_that_was_not_polled_tells_at_once() {
    let (mut host, cq, mut qp) = world(64, 16);
    nop(&mut host, &mut qp);
    host.arm(&cq, 0, false);
    assert_eq!(notified(&mut host), 1);
}

#[test]
fn solicited_arming_waits_for_a_solicited_message_or_an_error() {
    let (mut host, mut cq, mut qp) = world(64, 64);
    host.arm(&cq, 0, true);
    message(&mut host, &mut qp, false);
    assert_eq!(notified(&mut host), 0);
    message(&mut host, &mut qp, true);
    assert_eq!(notified(&mut host), 1);
    let cqes = host.poll_all(&mut cq);
    assert_eq!(cqes.iter().map(|cqe| cqe.op_own & 2).collect::<Vec<_>>(), [0, 2]);
    host.arm(&cq, 1, true);
    host.post(&mut qp, &Wqe::send(0x7777_0000, 64, 64));
    host.run();
    assert_eq!(notified(&mut host), 1);
}

#[test]
fn overrun_fails_the_queue_and_the_qp_and_says_so() {
    let (mut host, mut cq, mut qp) = world(64, 4);
    for _ in 0..6 {
        nop(&mut host, &mut qp);
    }
    assert_eq!(host.poll_all(&mut cq).len(), 4, "those that had room stand");
    assert_eq!(host.state(&qp), state::ERR);
    let events: Vec<AsyncEvent> = std::iter::from_fn(|| host.hca.poll_async_event()).collect();
    let told: Vec<_> = events.iter().map(|event| (event.event_type, event.element)).collect();
    assert_eq!(told, [(event::CQ_ERROR, Element::Cq(cq.handle)), (event::QP_FATAL, Element::Qp(qp.handle))]);
    nop(&mut host, &mut qp);
    assert!(host.poll(&mut cq).is_none(), "nothing comes any more");
}

#[test]
fn events_of_a_queue_go_with_it() {
    let (mut host, cq, mut qp) = world(64, 16);
    host.arm(&cq, 0, false);
    nop(&mut host, &mut qp);
    host.hca.destroy_qp(host.context, qp.handle).unwrap();
    host.hca.destroy_cq(host.context, cq.handle).unwrap();
    assert_eq!(notified(&mut host), 0);
}

#[test]
fn several_qps_take_receives_of_one_srq_in_the_order_of_its_list() {
    let mut host = Host::new();
    let mut cq = host.cq(64);
    let mut srq = host.srq(7);
    let at_srq = QpOptions { srq: Some(srq.handle), receive: 0, ..QpOptions::default() };
    let (mut a, mut b) = (host.qp(&cq, at_srq), host.qp(&cq, at_srq));
    host.connect(&a, &b, attributes());
    for round in 0..40_u8 {
        let places: Vec<u64> = (0..2).map(|_| host.data(&[0])).collect();
        let indices: Vec<u16> =
            places.iter().map(|place| host.srq_receive(&mut srq, (host.key, *place, 1))).collect();
        for qp in [&mut a, &mut b] {
            host.post(qp, &Wqe::new(wqe_opcode::SEND).inline(&[round]).unsignalled());
            host.run();
        }
        let cqes = host.poll_all(&mut cq);
        assert_eq!(cqes.iter().map(|cqe| cqe.wqe_counter.get()).collect::<Vec<_>>(), indices);
        assert_eq!([cqes[0].srqn_uidx.get(), cqes[1].srqn_uidx.get()], [b.uidx, a.uidx]);
        assert!(places.iter().all(|place| host.bytes(*place, 1) == [round]));
        // Freed out of order, so that the list is not the order of the ring.
        for index in indices.into_iter().rev() {
            host.srq_free(&mut srq, index);
        }
    }
}

#[test]
fn limit_tells_once_when_fewer_are_left_or_at_once() {
    let mut host = Host::new();
    let cq = host.cq(64);
    let mut srq = host.srq(7);
    let at_srq = QpOptions { srq: Some(srq.handle), receive: 0, ..QpOptions::default() };
    let mut qp = host.qp(&cq, at_srq);
    host.to_rts(&qp, qp.qpn, attributes());
    let place = host.alloc(8);
    for _ in 0..3 {
        host.srq_receive(&mut srq, (host.key, place, 8));
    }
    host.hca.modify_srq(host.context, srq.handle, srq_attribute::LIMIT, 2).unwrap();
    let limit = |host: &Host| host.hca.query_srq(host.context, srq.handle).unwrap().limit;
    let mut seen = Vec::new();
    for _ in 0..3 {
        host.post(&mut qp, &Wqe::new(wqe_opcode::SEND).inline(b"x").unsignalled());
        host.run();
        let told = std::iter::from_fn(|| host.hca.poll_async_event()).map(|event| event.event_type);
        seen.push((told.collect::<Vec<_>>(), limit(&host)));
    }
    assert_eq!(seen, [(vec![], 2), (vec![event::SRQ_LIMIT_REACHED], 0), (vec![], 0)]);
    host.hca.modify_srq(host.context, srq.handle, srq_attribute::LIMIT, 1).unwrap();
    assert!(host.hca.poll_async_event().is_some(), "none is left");
}

#[test]
fn broken_list_fails_the_srq() {
    let mut host = Host::new();
    let cq = host.cq(64);
    let mut srq = host.srq(7);
    let at_srq = QpOptions { srq: Some(srq.handle), receive: 0, ..QpOptions::default() };
    let mut qp = host.qp(&cq, at_srq);
    host.to_rts(&qp, qp.qpn, attributes());
    let place = host.alloc(8);
    for _ in 0..2 {
        host.srq_receive(&mut srq, (host.key, place, 8));
    }
    host.break_srq(&srq, 500);
    for _ in 0..2 {
        host.post(&mut qp, &Wqe::new(wqe_opcode::SEND).inline(b"x").unsignalled());
    }
    host.run();
    let told: Vec<_> =
        std::iter::from_fn(|| host.hca.poll_async_event()).map(|event| event.event_type).collect();
    assert!(told.contains(&event::SRQ_ERROR), "{told:?}");
}
