//! TM-CONTRACT 13: what happens to a TM-SRQ when one of its QPs fails.

use super::host::{Wqe, attributes, pattern, syndrome};
use super::tag_host::{NO_COUNT, Tags, eager, operations, rendezvous, summary};
use crate::hca::layout::{Syndrome, cqe_opcode};
use crate::hca::tm::app_op::{
    APPEND, CONSUMED, CONSUMED_MSG, MSG_COMPLETION_CANCELED, NO_TAG, NOOP, UNEXPECTED,
};
use crate::hca::verbs::{access, attribute, event, state};
use crate::hca::{Errno, Handle, QpAttributes, SrqKind, Step};
use tagmatch::device::soft::Switches;
use tagmatch::device::soft::switches::{HalfReceived, ReadFailure};

fn fail(tags: &mut Tags) {
    let error = QpAttributes { state: state::ERR, ..attributes() };
    tags.host.hca.modify_qp(tags.host.context, tags.receiver.handle, attribute::STATE, &error).unwrap();
}

fn begin(tags: &mut Tags, message: &[u8]) {
    tags.run();
    tags.poll();
    tags.send(message);
    assert!(tags.send_step() && tags.deliver());
}

fn events(tags: &mut Tags) -> Vec<u32> {
    std::iter::from_fn(|| tags.host.hca.poll_async_event()).map(|event| event.event_type).collect()
}

#[test]
fn tags_stay_when_a_qp_fails_and_other_senders_go_on() {
    let mut tags = Tags::new();
    let (entry, _) = tags.add_new(1, 8);
    let (_receiver, sender) = tags.another(0);
    fail(&mut tags);
    tags.sender = sender;
    tags.send(&eager(1, b"x"));
    assert_eq!(tags.outcome(), [(APPEND, 0, 0), (CONSUMED_MSG, entry, 1)]);
    assert_eq!(events(&mut tags), [event::LAST_WQE_REACHED]);
}

#[test]
fn entry_half_received_is_canceled() {
    let mut tags = Tags::new();
    let (entry, _) = tags.add_new(1, 700);
    begin(&mut tags, &eager(1, &pattern(700)));
    fail(&mut tags);
    let cqes = tags.poll();
    assert_eq!(summary(&cqes), [(CONSUMED, entry, 0), (MSG_COMPLETION_CANCELED, entry, 0)]);
}

#[test]
fn entry_half_received_may_stay_silent() {
    let switches = Switches { half_received: HalfReceived::Silent, ..Switches::default() };
    let mut tags = Tags::switched(switches);
    let (entry, _) = tags.add_new(1, 700);
    begin(&mut tags, &eager(1, &pattern(700)));
    fail(&mut tags);
    assert_eq!(tags.outcome(), [(CONSUMED, entry, 0)]);
}

#[test]
fn unexpected_message_half_received_is_flushed_with_its_receive_and_stays_counted() {
    let mut tags = Tags::new();
    begin(&mut tags, &eager(1, &pattern(700)));
    let (receiver, sender) = tags.another(0);
    fail(&mut tags);
    let cqe = tags.poll()[0];
    assert_eq!((cqe.opcode(), syndrome(&cqe)), (cqe_opcode::RESPONDER_ERROR, Syndrome::Flushed as u8));
    assert_eq!((cqe.wqe_counter.get(), cqe.srqn_uidx.get()), (0, tags.srq.uidx));
    assert_eq!(cqe.sop_drop_qpn.get(), tags.receiver.qpn);
    (tags.receiver, tags.sender) = (receiver, sender);
    tags.send(&eager(2, b"x"));
    tags.sync(0);
    tags.run();
    let cqes = tags.poll();
    let unexpected = cqes.iter().find(|cqe| cqe.app_op == UNEXPECTED).unwrap();
    assert_eq!(unexpected.wqe_counter.get(), 1);
    tags.sync(0);
    tags.run();
    assert_eq!(operations(&tags.poll()), [(NOOP, true, 2)]);
}

#[test]
fn untagged_message_half_received_gives_its_receive_back() {
    let mut tags = Tags::new();
    begin(&mut tags, &[0; 700]);
    let (receiver, sender) = tags.another(0);
    fail(&mut tags);
    assert!(tags.poll().is_empty());
    (tags.receiver, tags.sender) = (receiver, sender);
    tags.send(&[0; 20]);
    tags.send(&[0; 21]);
    tags.run();
    let cqes = tags.poll();
    assert_eq!(summary(&cqes), [(NO_TAG, 0, 20), (NO_TAG, 0, 21)]);
    assert_eq!(cqes.iter().map(|cqe| cqe.wqe_counter.get()).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn completions_behind_a_lost_message_are_let_go() {
    let mut tags = Tags::new();
    begin(&mut tags, &eager(1, &pattern(700)));
    tags.sync(0);
    assert!(tags.command_step());
    assert!(tags.poll().is_empty());
    fail(&mut tags);
    let cqes = tags.poll();
    assert_eq!(cqes[0].opcode(), cqe_opcode::RESPONDER_ERROR);
    assert_eq!(operations(&cqes), [(NOOP, true, 1)]);
}

/// A rendezvous whose key does not reach.
fn broken_rendezvous(reading: ReadFailure) -> (Tags, u16) {
    let mut tags = Tags::switched(Switches { read_failure: reading, ..Switches::default() });
    let (entry, _) = tags.add_new(1, 700);
    tags.run();
    tags.poll();
    tags.send(&rendezvous(1, (0x1000, 0x6666_6600, 700)));
    tags.run();
    (tags, entry)
}

#[test]
fn failed_read_of_the_device_fails_its_qp_and_cancels_the_entry() {
    let (mut tags, entry) = broken_rendezvous(ReadFailure::QpError);
    assert_eq!(summary(&tags.poll()), [(CONSUMED, entry, 0), (MSG_COMPLETION_CANCELED, entry, 0)]);
    assert_eq!(tags.host.state(&tags.receiver), state::ERR);
    let events = events(&mut tags);
    assert!(events.contains(&event::QP_FATAL) && events.contains(&event::QP_ACCESS_ERROR), "{events:?}");
    assert!(!events.contains(&event::SRQ_ERROR));
    assert_eq!(tags.host.state(&tags.sender), state::ERR);
}

#[test]
fn failed_read_may_fail_the_srq() {
    let (mut tags, _) = broken_rendezvous(ReadFailure::DeviceError);
    assert!(events(&mut tags).contains(&event::SRQ_ERROR));
    tags.add_new(2, 8);
    tags.run();
    assert!(tags.poll().iter().all(|cqe| cqe.app_op != APPEND));
}

#[test]
fn rendezvous_under_way_is_canceled_when_the_qp_fails() {
    let mut tags = Tags::new();
    let (entry, _) = tags.add_new(1, 700);
    let source = tags.host.data(&pattern(700));
    let key = tags.host.key;
    begin(&mut tags, &rendezvous(1, (source, key, 700)));
    assert!(tags.host.hca.step(Step::Send(tags.receiver.qpn)), "READ");
    fail(&mut tags);
    assert_eq!(summary(&tags.poll()), [(CONSUMED, entry, 0), (MSG_COMPLETION_CANCELED, entry, 0)]);
}

#[test]
fn fin_that_waits_for_a_receive_holds_no_entry() {
    let mut tags = Tags::new();
    let (entry, _) = tags.add_new(1, 4);
    let source = tags.host.data(b"data");
    let key = tags.host.key;
    tags.run();
    tags.poll();
    tags.send(&rendezvous(1, (source, key, 4)));
    while tags.host.hca.run(1000) > 0 {}
    assert_eq!(summary(&tags.poll()), [(CONSUMED, entry, 0), (super::super::tm::app_op::EXPECTED, entry, 4)]);
    tags.host.receive_into(&mut tags.sender, 64);
    tags.run();
    assert!(tags.host.poll(&mut tags.sender_cq).is_some());
}

#[test]
fn wrong_key_of_a_tagged_buffer_fails_the_qp_with_an_error_completion() {
    let mut tags = Tags::new();
    let place = tags.host.alloc(64);
    let read_only = tags.host.register(place, 64, access::REMOTE_READ).unwrap();
    let whole = std::mem::replace(&mut tags.host.key, read_only);
    tags.add(1, (place, 64), NO_COUNT);
    tags.host.key = whole;
    tags.run();
    tags.poll();
    tags.send(&eager(1, b"x"));
    tags.run();
    assert_eq!(syndrome(&tags.poll()[0]), Syndrome::LocalProtection as u8);
    let cqe = tags.host.poll(&mut tags.sender_cq).unwrap();
    assert_eq!(syndrome(&cqe), Syndrome::RemoteOperation as u8);
}

#[test]
fn unexpected_message_longer_than_its_receive_fails_the_qp() {
    let mut tags = Tags::new();
    tags.send(&eager(1, &pattern(1100)));
    tags.run();
    let cqe = tags.poll()[0];
    assert_eq!((syndrome(&cqe), cqe.wqe_counter.get()), (Syndrome::LocalLength as u8, 0));
    assert_eq!(tags.host.state(&tags.receiver), state::ERR);
}

#[test]
fn overrun_of_the_cq_fails_cq_and_srq() {
    let mut tags = Tags::new();
    for _ in 0..300 {
        tags.sync(0);
        tags.run();
    }
    let events = events(&mut tags);
    assert!(events.contains(&event::CQ_ERROR) && events.contains(&event::SRQ_ERROR), "{events:?}");
}

#[test]
fn srq_in_use_cannot_be_destroyed_and_cq_of_an_srq_neither() {
    let mut tags = Tags::new();
    let context = tags.host.context;
    let destroy = |tags: &mut Tags, srq: Handle| tags.host.hca.destroy_srq(context, srq);
    let srq = tags.srq.handle;
    assert_eq!(destroy(&mut tags, srq), Err(Errno::BUSY));
    let qps = [tags.command_qp().handle, tags.receiver.handle];
    for qp in qps {
        tags.host.hca.destroy_qp(context, qp).unwrap();
    }
    assert_eq!(tags.host.hca.destroy_cq(context, tags.cq.handle), Err(Errno::BUSY));
    destroy(&mut tags, srq).unwrap();
    assert_eq!(destroy(&mut tags, srq), Err(Errno::INVALID));
    tags.host.hca.destroy_cq(context, tags.cq.handle).unwrap();
}

#[test]
fn command_qp_needs_a_tm_srq() {
    let mut host = super::host::Host::new();
    let mut cq = host.cq(16);
    let srq = host.srq_of(7, SrqKind::Basic).unwrap();
    let options =
        super::host::QpOptions { srq: Some(srq.handle), receive: 0, ..super::host::QpOptions::default() };
    let mut qp = host.qp(&cq, options);
    host.to_rts(&qp, qp.qpn, attributes());
    host.post(&mut qp, &Wqe::new(crate::hca::layout::wqe_opcode::TAG_MATCHING).raw(&[0; 32]));
    host.run();
    assert_eq!(syndrome(&host.poll(&mut cq).unwrap()), Syndrome::LocalQpOperation as u8);
}
