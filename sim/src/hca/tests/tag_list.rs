//! TM-CONTRACT 7, 8, 9, 11.2: list operations and the phase.

use super::host::{Host, QpOptions, Wqe, syndrome};
use super::tag_host::{Count, NO_COUNT, TAGS, Tags, eager, operations, summary};
use crate::hca::layout::{Syndrome, cqe_opcode, wqe_opcode};
use crate::hca::tm::app_op::{APPEND, CONSUMED_MSG, NOOP, REMOVE, UNEXPECTED};
use crate::hca::verbs::event;
use crate::hca::{Errno, HcaConfig, SrqKind};

#[test]
fn operations_complete_with_success_and_phase() {
    let mut tags = Tags::new();
    let (entry, _) = tags.add_new(1, 8);
    tags.remove(entry, NO_COUNT);
    tags.remove(entry, NO_COUNT);
    tags.sync(0);
    tags.run();
    let cqes = tags.poll();
    assert_eq!(
        operations(&cqes),
        [(APPEND, true, 0), (REMOVE, true, 0), (REMOVE, false, 0), (NOOP, true, 0)]
    );
    assert!(cqes.iter().all(|cqe| cqe.opcode() == cqe_opcode::NO_PACKET && cqe.app == 1));
    assert!(cqes.iter().all(|cqe| cqe.srqn_uidx.get() == tags.srq.uidx));
}

#[test]
fn unsignalled_operations_complete_nothing() {
    let mut tags = Tags::new();
    let body = [0x00, 0x40, 0, 0, 0, 0, 0, 0];
    let wqe = Wqe::new(wqe_opcode::TAG_MATCHING).raw(&body).raw(&[0; 24]).unsignalled();
    let mut command =
        tags.host.qp(&tags.cq, QpOptions { srq: Some(tags.srq.handle), receive: 0, ..QpOptions::default() });
    tags.host.to_rts(&command, command.qpn, super::host::attributes());
    tags.host.post(&mut command, &wqe);
    assert_eq!(tags.outcome(), []);
}

#[test]
fn masks_and_order_decide_who_gets_the_message() {
    let mut tags = Tags::new();
    let place = tags.host.alloc(64);
    let any = tags.add_masked(0x100, 0xff00, (place, 8), NO_COUNT);
    let exact = tags.add(0x101, (place + 8, 8), NO_COUNT);
    let unmasked = tags.add_masked(0x3ff, 0xff00, (place + 16, 8), NO_COUNT);
    for tag in [0x101, 0x101, 0x3ff] {
        tags.send(&eager(tag, b"x"));
    }
    let outcome = tags.outcome();
    let matched: Vec<_> = outcome.iter().filter(|(op, ..)| *op == CONSUMED_MSG).map(|(_, e, _)| *e).collect();
    assert_eq!(matched, [any, exact], "{unmasked} has bits outside its mask and never matches");
}

#[test]
fn entry_added_with_a_stale_count_waits_for_a_report() {
    let mut tags = Tags::new();
    tags.send(&eager(1, b"unexpected"));
    tags.run();
    let address = tags.host.alloc(64);
    let entry = tags.add(1, (address, 8), Count(Some(0)));
    tags.run();
    tags.send(&eager(1, b"early"));
    assert_eq!(
        tags.outcome(),
        [(UNEXPECTED, 0, 26), (APPEND, 0, 0), (UNEXPECTED, 0, 21)],
        "the entry is not active"
    );
    tags.sync(2);
    tags.run();
    tags.send(&eager(1, b"late"));
    assert_eq!(tags.outcome(), [(NOOP, 0, 0), (CONSUMED_MSG, entry, 4)]);
}

#[test]
fn count_on_an_append_activates_it_and_all_before_it() {
    let mut tags = Tags::new();
    tags.send(&eager(1, b"unexpected"));
    tags.run();
    let address = tags.host.alloc(64);
    let first = tags.add(1, (address, 8), NO_COUNT);
    let second = tags.add(1, (address + 8, 8), Count(Some(1)));
    tags.run();
    tags.poll();
    tags.send(&eager(1, b"a"));
    tags.send(&eager(1, b"b"));
    assert_eq!(tags.outcome(), [(CONSUMED_MSG, first, 1), (CONSUMED_MSG, second, 1)]);
}

#[test]
fn active_entries_match_while_out_of_sync() {
    let mut tags = Tags::new();
    let (entry, _) = tags.add_new(1, 8);
    tags.run();
    tags.send(&eager(2, b"unexpected"));
    tags.send(&eager(1, b"x"));
    assert_eq!(tags.outcome()[1..], [(UNEXPECTED, 0, 26), (CONSUMED_MSG, entry, 1)]);
}

#[test]
fn remove_loses_against_a_message_that_was_accepted_before_it() {
    let mut tags = Tags::new();
    let (entry, _) = tags.add_new(1, 8);
    tags.run();
    tags.send(&eager(1, b"x"));
    tags.remove(entry, NO_COUNT);
    tags.send_step();
    tags.deliver();
    tags.run();
    let cqes = tags.poll();
    assert_eq!(summary(&cqes)[1..], [(CONSUMED_MSG, entry, 1), (REMOVE, 0, 0)]);
    assert_eq!(operations(&cqes)[1], (REMOVE, false, 0));
}

#[test]
fn entries_are_numbered_by_what_the_driver_names_as_next() {
    let mut tags = Tags::new();
    let (first, _) = tags.add_new(1, 8);
    let (second, _) = tags.add_new(2, 8);
    tags.remove(first, NO_COUNT);
    tags.give_back(first);
    for tag in 3..=16 {
        tags.add_new(tag, 8);
    }
    tags.send(&eager(2, b"x"));
    tags.send(&eager(16, b"x"));
    let outcome = tags.outcome();
    let matched: Vec<_> = outcome.iter().filter(|(op, ..)| *op == CONSUMED_MSG).map(|(_, e, _)| *e).collect();
    assert_eq!(matched, [second, 15]);
}

#[test]
fn append_that_no_driver_sends_fails_the_srq() {
    let mut tags = Tags::new();
    let body = [0x10, 0x80, 0xff, 0xff, 0, 0, 0, 0];
    let wqe = Wqe::new(wqe_opcode::TAG_MATCHING).raw(&body).raw(&[0; 24]).data(0x100, 0, 0);
    let options = QpOptions { srq: Some(tags.srq.handle), receive: 0, ..QpOptions::default() };
    let mut command = tags.host.qp(&tags.cq, options);
    tags.host.to_rts(&command, command.qpn, super::host::attributes());
    tags.host.post(&mut command, &wqe);
    tags.run();
    let cqe = tags.poll()[0];
    assert_eq!(syndrome(&cqe), Syndrome::LocalQpOperation as u8);
    let events: Vec<_> =
        std::iter::from_fn(|| tags.host.hca.poll_async_event()).map(|e| e.event_type).collect();
    assert!(events.contains(&event::SRQ_ERROR));
    tags.send(&eager(1, b"x"));
    tags.run();
    let cqe = tags.host.poll(&mut tags.sender_cq).unwrap();
    assert_eq!(syndrome(&cqe), Syndrome::RemoteOperation as u8);
}

#[test]
fn list_is_rounded_as_the_kernel_does_and_refused_beyond_the_device() {
    let mut host = Host::with(HcaConfig { log_tag_list: 4, ..HcaConfig::default() });
    let cq = host.cq(16);
    let try_tags = |host: &mut Host, tags| {
        host.srq_of(63, SrqKind::TagMatching { tags, cq: cq.handle }).map(|srq| srq.handle)
    };
    assert_eq!(host.hca.query_device().tm.max_num_tags, 15);
    assert_eq!(try_tags(&mut host, 0), Err(Errno::INVALID));
    assert_eq!(try_tags(&mut host, 16), Err(Errno::INVALID));
    assert!(try_tags(&mut host, 15).is_ok());
    let mut host = Host::with(HcaConfig { log_tag_list: 0, ..HcaConfig::default() });
    let cq = host.cq(16);
    assert_eq!(host.hca.query_device().tm, crate::hca::TagMatchingCaps::default());
    let refused = host.srq_of(63, SrqKind::TagMatching { tags: 1, cq: cq.handle }).map(|srq| srq.handle);
    assert_eq!(refused, Err(Errno::INVALID));
}

#[test]
fn list_takes_as_many_entries_as_the_driver_can_name() {
    let mut tags = Tags::new();
    for tag in 0..u64::from(TAGS) {
        tags.add_new(tag, 8);
    }
    for tag in (0..u64::from(TAGS)).rev() {
        tags.send(&eager(tag, b"x"));
    }
    let matched = tags.outcome().iter().filter(|(op, ..)| *op == CONSUMED_MSG).count();
    assert_eq!(matched, TAGS as usize);
}

#[test]
fn commands_wait_for_their_steps() {
    let mut tags = Tags::new();
    tags.add_new(1, 8);
    tags.send(&eager(1, b"x"));
    assert!(tags.send_step() && tags.deliver());
    assert!(tags.command_step());
    assert_eq!(summary(&tags.poll()), [(UNEXPECTED, 0, 17), (APPEND, 0, 0)]);
    assert!(!tags.command_step());
    assert_eq!(tags.host.state(tags.command_qp()), crate::hca::verbs::state::RTS);
}
