//! The points where TM-CONTRACT 14 is doubtful, read the other way.

use super::host::{Wqe, pattern};
use super::tag_host::{Count, NO_COUNT, Tags, eager, operations, rendezvous, summary, tmh};
use crate::hca::layout::{Syndrome, wqe_opcode};
use crate::hca::tm::app_op::{
    APPEND, CONSUMED, CONSUMED_MSG, CONSUMED_MSG_SW_RNDV, CONSUMED_SW_RNDV, EXPECTED,
    MSG_COMPLETION_CANCELED, NO_TAG, NOOP, REMOVE, UNEXPECTED,
};
use crate::hca::{HcaConfig, LinkLayer, QpAttributes, Step};
use tagmatch::device::soft::Switches;
use tagmatch::device::soft::switches::*;

fn switched(change: impl FnOnce(&mut Switches)) -> Tags {
    let mut switches = Switches::default();
    change(&mut switches);
    Tags::switched(switches)
}

/// One message that nothing matches, and its completion polled.
fn unexpected(tags: &mut Tags) {
    tags.send(&eager(999, b"x"));
    assert_eq!(tags.outcome().len(), 1);
}

#[test]
fn a1_inactive_entries_stay_so_until_they_are_added_again() {
    let mut tags = switched(|switches| switches.activation = Activation::OnlyAtAppend);
    unexpected(&mut tags);
    tags.add_new(1, 8);
    tags.sync(1);
    tags.run();
    tags.send(&eager(1, b"x"));
    assert_eq!(tags.outcome(), [(APPEND, 0, 0), (NOOP, 0, 0), (UNEXPECTED, 0, 17)]);
}

#[test]
fn a2_nothing_matches_while_out_of_sync() {
    let mut tags = switched(|switches| switches.out_of_sync = OutOfSync::NothingMatches);
    tags.add_new(1, 8);
    unexpected_with_entry(&mut tags);
    tags.send(&eager(1, b"x"));
    assert_eq!(tags.outcome(), [(UNEXPECTED, 0, 17)]);
}

fn unexpected_with_entry(tags: &mut Tags) {
    tags.send(&eager(999, b"x"));
    tags.run();
    tags.poll();
}

#[test]
fn a3_count_of_a_remove_may_come_in_two_pieces() {
    let mut tags = switched(|switches| switches.count_order = CountOrder::BeforeChangeNotAtomic);
    unexpected(&mut tags);
    let (entry, _) = tags.add_new(1, 8);
    tags.run();
    tags.remove(entry, Count(Some(1)));
    assert!(tags.command_step(), "the count");
    tags.send(&eager(1, b"x"));
    assert!(tags.send_step() && tags.deliver());
    assert!(tags.command_step(), "the removal");
    let cqes = tags.poll();
    assert_eq!(summary(&cqes), [(APPEND, 0, 0), (CONSUMED_MSG, entry, 1), (REMOVE, 0, 0)]);
    assert_eq!(operations(&cqes)[1], (REMOVE, false, 1));
    tags.sync(1);
    assert_eq!(tags.outcome(), [(NOOP, 0, 0)]);
}

#[test]
fn a4_append_activates_itself_alone() {
    let mut tags = switched(|switches| switches.append_activates = AppendActivates::Itself);
    unexpected(&mut tags);
    let place = tags.host.alloc(16);
    tags.add(1, (place, 8), NO_COUNT);
    let second = tags.add(1, (place + 8, 8), Count(Some(1)));
    tags.run();
    tags.send(&eager(1, b"x"));
    assert_eq!(tags.outcome()[2..], [(CONSUMED_MSG, second, 1)]);
}

#[test]
fn a5_too_long_a_payload_fails_the_qp_or_is_cut() {
    let mut tags = Tags::new();
    tags.add_new(1, 8);
    tags.run();
    tags.poll();
    tags.send(&eager(1, b"123456789"));
    tags.run();
    let cqe = tags.poll()[0];
    assert_eq!(super::host::syndrome(&cqe), Syndrome::LocalLength as u8);
    assert_eq!(cqe.wqe_counter.get(), 0, "a receive that did not fail");
    let mut tags = switched(|switches| switches.too_long = TooLong::Truncate);
    let (entry, address) = tags.add_new(1, 8);
    tags.send(&eager(1, b"123456789"));
    assert_eq!(tags.outcome()[1..], [(CONSUMED_MSG, entry, 9)]);
    assert_eq!(tags.host.bytes(address, 9), b"12345678\0");
}

#[test]
fn a5_too_long_over_several_packets_is_found_when_it_is() {
    let mut tags = Tags::new();
    let (entry, _) = tags.add_new(1, 300);
    tags.run();
    tags.poll();
    tags.send(&eager(1, &pattern(700)));
    tags.run();
    let cqes = tags.poll();
    assert_eq!(summary(&cqes[..1]), [(CONSUMED, entry, 0)]);
    assert_eq!(super::host::syndrome(&cqes[1]), Syndrome::LocalLength as u8);
    assert_eq!(summary(&cqes[2..]), [(MSG_COMPLETION_CANCELED, entry, 0)]);
}

#[test]
fn a6_few_receives_may_not_matter_or_always() {
    let config = |few_buffers| HcaConfig {
        switches: Switches { few_buffers, ..Switches::default() },
        ..HcaConfig::default()
    };
    let mut tags = Tags::without_buffers(config(FewBuffers::Work));
    tags.fill_buffers(1);
    tags.send(&eager(1, b"x"));
    assert_eq!(tags.outcome(), [(UNEXPECTED, 0, 17)]);
    let mut tags = Tags::without_buffers(config(FewBuffers::WaitAlways));
    tags.fill_buffers(33);
    tags.send(&eager(1, b"x"));
    tags.send(&eager(1, b"x"));
    while tags.host.hca.run(1000) > 0 {}
    assert_eq!(tags.poll().len(), 1, "with 32 it waits");
}

#[test]
fn a7_tag_of_an_entry_may_be_masked() {
    let mut tags = switched(|switches| switches.unmasked_tag = UnmaskedTag::Masked);
    let place = tags.host.alloc(8);
    let entry = tags.add_masked(0x3ff, 0xff00, (place, 8), NO_COUNT);
    tags.send(&eager(0x301, b"x"));
    assert_eq!(tags.outcome()[1..], [(CONSUMED_MSG, entry, 1)]);
}

#[test]
fn a8_malformed_messages_are_untagged_or_unexpected() {
    let malformed = || [tmh(3, 1)[..15].to_vec(), tmh(1, 1), vec![4; 20], vec![255]];
    for (reading, op) in [(Malformed::NoTag, NO_TAG), (Malformed::Unexpected, UNEXPECTED)] {
        let mut tags = switched(|switches| switches.malformed = reading);
        for message in malformed() {
            tags.send(&message);
        }
        let outcome = tags.outcome();
        assert_eq!(outcome.len(), 4);
        assert!(outcome.iter().all(|(found, ..)| *found == op));
    }
}

#[test]
fn a9_rendezvous_without_offload_may_be_unexpected() {
    let mut tags = switched(|switches| switches.no_offload = NoOffload::Unexpected);
    tags.add_new(1, 8);
    let (_receiver, sender) = tags.another(64);
    tags.sender = sender;
    tags.send(&rendezvous(1, (0, 0, 8)));
    assert_eq!(tags.outcome()[1..], [(UNEXPECTED, 0, 32)]);
}

#[test]
fn a10_rendezvous_is_handed_back_in_two_completions() {
    for (reading, second) in
        [(HandBack::ThenExpected, EXPECTED), (HandBack::ThenCanceled, MSG_COMPLETION_CANCELED)]
    {
        let mut tags = switched(|switches| switches.hand_back = reading);
        let (entry, _) = tags.add_new(1, 64);
        tags.send(&rendezvous(1, (0, 0, 65)));
        assert_eq!(tags.outcome()[1..], [(CONSUMED_SW_RNDV, entry, 32), (second, entry, 0)]);
    }
}

#[test]
fn a11_length_of_consumed_may_be_anything() {
    let mut tags = switched(|switches| switches.consumed_length = ConsumedLength::Arbitrary);
    let (entry, _) = tags.add_new(1, 700);
    tags.send(&eager(1, &pattern(700)));
    let outcome = tags.outcome();
    assert_eq!((outcome[1].0, outcome[1].1), (CONSUMED, entry));
    assert!(![0, 700, 716].contains(&outcome[1].2));
    assert_eq!(outcome[2], (EXPECTED, entry, 700));
}

#[test]
fn a12_expected_comes_as_matched_where_order_is_kept() {
    for (reading, kept) in [(ExpectedOrder::Any, false), (ExpectedOrder::AsMatched, true)] {
        let mut tags = switched(|switches| switches.expected_order = reading);
        let (receiver, mut other) = tags.another(0);
        let (first, _) = tags.add_new(1, 700);
        let (second, _) = tags.add_new(2, 700);
        tags.run();
        tags.poll();
        tags.send(&eager(1, &pattern(700)));
        assert!(tags.send_step() && tags.deliver());
        let address = tags.host.data(&eager(2, &pattern(700)));
        tags.host.post(&mut other, &Wqe::send(tags.host.key, address, 716).unsignalled());
        while tags.host.hca.step(Step::Send(other.qpn)) {}
        while tags.host.hca.step(Step::Deliver { from: other.qpn, to: receiver.qpn }) {}
        let ends: Vec<_> =
            tags.outcome().iter().filter(|(op, ..)| *op == EXPECTED).map(|(_, entry, _)| *entry).collect();
        assert_eq!(ends, if kept { [first, second] } else { [second, first] });
    }
}

#[test]
fn a12_fin_goes_out_before_or_after_expected() {
    for (reading, expected_first) in [(FinOrder::BeforeExpected, false), (FinOrder::AfterExpected, true)] {
        let mut tags = switched(|switches| switches.fin_order = reading);
        let source = tags.host.data(b"data");
        let key = tags.host.key;
        tags.add_new(1, 4);
        tags.run();
        tags.poll();
        tags.host.receive_into(&mut tags.sender, 64);
        tags.send(&rendezvous(1, (source, key, 4)));
        assert!(tags.send_step() && tags.deliver(), "matched");
        let (receiver, sender) = (tags.receiver.qpn, tags.sender.qpn);
        assert!(tags.host.hca.step(Step::Send(receiver)), "READ");
        assert!(tags.host.hca.step(Step::Deliver { from: receiver, to: sender }), "acknowledgement or READ");
        let mut fin_sent = false;
        let mut seen = tags.poll();
        for _ in 0..20 {
            if seen.iter().any(|cqe| cqe.app_op == EXPECTED) {
                break;
            }
            fin_sent |= tags.host.hca.step(Step::Send(receiver));
            tags.host.hca.step(Step::Respond(sender));
            tags.host.hca.step(Step::Deliver { from: sender, to: receiver });
            seen.extend(tags.poll());
        }
        assert!(seen.iter().any(|cqe| cqe.app_op == EXPECTED));
        assert_eq!(fin_sent, !expected_first);
    }
}

#[test]
fn a14_other_port_may_be_refused_for_a_tm_srq() {
    use crate::hca::verbs::{attribute, state};
    for (reading, works) in [(OtherPort::Works, true), (OtherPort::Refused, false)] {
        let switches = Switches { other_port: reading, ..Switches::default() };
        let mut tags = Tags::with(HcaConfig { switches, ports: 2, ..HcaConfig::default() });
        let options = super::host::QpOptions {
            srq: Some(tags.srq.handle),
            receive: 0,
            ..super::host::QpOptions::default()
        };
        let qp = tags.host.qp(&tags.cq, options);
        let init = QpAttributes { state: state::INIT, port: 2, ..QpAttributes::default() };
        let mask = attribute::STATE | attribute::PKEY_INDEX | attribute::PORT | attribute::ACCESS_FLAGS;
        assert_eq!(tags.host.modify(&qp, mask, init).is_ok(), works);
    }
}

#[test]
fn a15_command_qp_without_grh_is_refused_on_roce() {
    use crate::hca::SrqKind;
    use crate::hca::verbs::{attribute, state};
    for (roce, works) in [(RoCe::Refused, false), (RoCe::Works, true)] {
        let switches = Switches { roce, ..Switches::default() };
        let config = HcaConfig { switches, link_layer: LinkLayer::Ethernet, ..HcaConfig::default() };
        let mut host = super::host::Host::with(config);
        let cq = host.cq(16);
        let srq = host.srq_of(63, SrqKind::TagMatching { tags: 1, cq: cq.handle }).unwrap();
        let options =
            super::host::QpOptions { srq: Some(srq.handle), receive: 0, ..super::host::QpOptions::default() };
        let qp = host.qp(&cq, options);
        let attributes = QpAttributes { dest_qpn: qp.qpn, ..super::host::attributes() };
        let init = attribute::PKEY_INDEX | attribute::PORT | attribute::ACCESS_FLAGS | attribute::STATE;
        host.modify(&qp, init, QpAttributes { state: state::INIT, ..attributes }).unwrap();
        let rtr = attribute::STATE
            | attribute::AV
            | attribute::PATH_MTU
            | attribute::DEST_QPN
            | attribute::RQ_PSN
            | attribute::MAX_DEST_RD_ATOMIC
            | attribute::MIN_RNR_TIMER;
        let done = host.modify(&qp, rtr, QpAttributes { state: state::RTR, ..attributes });
        assert_eq!(done.is_ok(), works);
    }
}

#[test]
fn a16_empty_rendezvous_may_be_handed_back() {
    let mut tags = switched(|switches| switches.empty_rendezvous = EmptyRendezvous::HandedBack);
    let (entry, _) = tags.add_new(1, 64);
    tags.send(&rendezvous(1, (0, 0, 0)));
    assert_eq!(tags.outcome()[1..], [(CONSUMED_MSG_SW_RNDV, entry, 32)]);
}

#[test]
fn a17_shared_buffer_may_fail_the_srq() {
    for (reading, works) in [(SharedBuffer::Allowed, true), (SharedBuffer::Refused, false)] {
        let mut tags = switched(|switches| switches.shared_buffer = reading);
        let place = tags.host.alloc(64);
        tags.add(1, (place, 64), NO_COUNT);
        tags.add(2, (place + 32, 8), NO_COUNT);
        tags.run();
        assert_eq!(tags.poll().iter().filter(|cqe| cqe.app_op == APPEND).count() == 2, works);
        assert_eq!(tags.host.hca.poll_async_event().is_none(), works);
    }
}

#[test]
fn a18_immediate_may_come_with_consumed() {
    let mut tags = switched(|switches| switches.immediate_on = ImmediateOn::Consumed);
    tags.add_new(1, 700);
    let wqe = Wqe::new(wqe_opcode::SEND_IMMEDIATE).immediate([5; 4]);
    tags.send_as(wqe, &eager(1, &pattern(700)));
    tags.run();
    let immediates: Vec<_> = tags.poll()[1..].iter().map(|cqe| cqe.immediate).collect();
    assert_eq!(immediates, [[5; 4], [0; 4]]);
}

#[test]
fn a19_message_is_counted_at_its_first_or_its_last_packet() {
    for (reading, phase) in [(CountAt::FirstPacket, 1), (CountAt::LastPacket, 0)] {
        let mut tags = switched(|switches| {
            switches.count_at = reading;
            switches.completion_order = CompletionOrder::Finish;
        });
        tags.send(&eager(1, &pattern(700)));
        assert!(tags.send_step() && tags.deliver());
        tags.sync(0);
        assert!(tags.command_step());
        assert_eq!(operations(&tags.poll()), [(NOOP, true, phase)]);
        assert_eq!(tags.outcome(), [(UNEXPECTED, 0, 716)]);
        tags.sync(0);
        tags.run();
        assert_eq!(operations(&tags.poll()), [(NOOP, true, 1)]);
    }
}
