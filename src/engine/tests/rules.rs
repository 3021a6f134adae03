//! Each rule of docs/ordering.md, once as it should go.

use super::hand::{Hand, NIC, OTHER, any, from, masked, nic};
use crate::engine::{CancelOutcome, Config, Kind, Receive};
use crate::ids::{PeerId, Source};
use crate::matching::Pattern;
use crate::offload::{Reason, TagLayout};
use crate::seam::{Answer, Buffer, Capabilities, Command, DataTarget, Event, MatchStage, Operation, Remote};

fn contexts(adds: &[(u64, crate::ids::TagHandle, u16)]) -> Vec<u64> {
    adds.iter().map(|&(context, ..)| context).collect()
}

#[test]
fn receives_go_down_oldest_first_until_the_list_is_full_and_the_rest_follows() {
    let mut hand = Hand::new();
    for context in 1..=6 {
        hand.queued(any(context), context);
    }
    let adds = hand.adds();
    assert_eq!(contexts(&adds), [1, 2, 3, 4]);
    assert!(hand.adds().is_empty());
    let handle = adds[1].1;
    hand.done(Operation::Add(adds[0].1), true, 0);
    hand.done(Operation::Add(handle), true, 0);
    hand.matched(handle, 2, 0, MatchStage::Complete);
    assert!(hand.adds().is_empty(), "a tag is free only when its entry is released");
    hand.tell(&Event::Released(handle));
    assert_eq!(contexts(&hand.adds()), [5]);
    assert_eq!(hand.received(), [(2, 99)]);
    hand.no_fault();
}

#[test]
fn the_tag_goes_down_with_its_ignored_bits_cleared() {
    let mut hand = Hand::new();
    hand.queued(masked(0x1ff, 0xff), 1);
    let commands = hand.commands(NIC);
    let Command::Add { tag, ignore, .. } = commands[0] else { panic!("{commands:?}") };
    assert_eq!((tag.0, ignore.mask()), (0x100, !0xff));
}

#[test]
fn an_older_receive_in_software_holds_back_only_what_it_overlaps() {
    let mut hand = Hand::new();
    let blocker = hand.queued(from(5, 3), 1);
    hand.queued(any(5), 2);
    hand.queued(any(6), 3);
    hand.queued(any(5), 4);
    assert_eq!(contexts(&hand.adds()), [3]);
    assert_eq!(hand.cancel(blocker), CancelOutcome::Cancelled);
    assert_eq!(contexts(&hand.adds()), [2, 4], "offload resumes by itself, in post order");
    assert_eq!(hand.engine.statistics().ended(Reason::Directed), 1);
}

#[test]
fn an_unexpected_message_takes_an_entry_of_its_own_nic_and_is_counted_behind_the_del() {
    let mut hand = Hand::new();
    hand.queued(any(7), 1);
    let (_, handle, count) = hand.adds()[0];
    assert_eq!(count, 0);
    assert!(matches!(hand.unexpected(7, 0), Answer::Accept { .. }), "it takes the receive at once");
    hand.queued(any(8), 2);
    let commands = hand.commands(NIC);
    assert!(matches!(commands[0], Command::Del { handle: of, .. } if of == handle), "{commands:?}");
    assert!(matches!(commands[1], Command::Add { unexpected_count: 1, .. }), "{commands:?}");
    assert_eq!(hand.received(), [(1, 1)]);
    hand.done(Operation::Add(handle), true, 1);
    hand.done(Operation::Del(handle), true, 1);
    hand.tell(&Event::Released(handle));
    hand.no_fault();
}

#[test]
fn entries_added_out_of_phase_get_a_sync_when_no_add_comes() {
    let mut hand = Hand::new();
    hand.queued(any(7), 1);
    let (_, handle, _) = hand.adds()[0];
    hand.unexpected(9, 0);
    assert!(hand.commands(NIC).is_empty(), "nobody is known to wait");
    hand.done(Operation::Add(handle), true, 1);
    assert_eq!(hand.commands(NIC), [Command::Sync { unexpected_count: 1, signalled: true }]);
    hand.done(Operation::Sync, true, 1);
    assert!(hand.commands(NIC).is_empty());
}

#[test]
fn a_message_of_another_path_takes_the_receive_back_with_a_signalled_del() {
    let mut hand = Hand::new();
    hand.queued(any(7), 1);
    hand.queued(any(7), 2);
    let adds = hand.adds();
    assert_eq!(hand.other(7, 5), Answer::Hold);
    assert_eq!(hand.other(7, 5), Answer::Hold, "a later message of the sender waits behind it");
    assert_eq!(hand.engine.waiting(), 2);
    assert_eq!(hand.commands(NIC), [Command::Del { handle: adds[0].1, signalled: true }]);
    hand.done(Operation::Add(adds[0].1), true, 0);
    hand.done(Operation::Add(adds[1].1), true, 0);
    hand.done(Operation::Del(adds[0].1), true, 0);
    hand.tell(&Event::Released(adds[0].1));
    hand.place(OTHER);
    assert_eq!(hand.received(), [(1, 1)]);
    assert_eq!(hand.engine.waiting(), 1, "now the second one asks for the second receive");
    assert_eq!(hand.commands(NIC), [Command::Del { handle: adds[1].1, signalled: true }]);
    hand.no_fault();
}

#[test]
fn a_message_of_another_path_searches_again_when_the_nic_was_first() {
    let mut hand = Hand::new();
    hand.queued(any(7), 1);
    let (_, handle, _) = hand.adds()[0];
    hand.other(7, 5);
    hand.commands(NIC);
    hand.done(Operation::Add(handle), true, 0);
    hand.matched(handle, 7, 0, MatchStage::Complete);
    hand.done(Operation::Del(handle), false, 0);
    hand.tell(&Event::Released(handle));
    assert_eq!(hand.received(), [(1, 99)]);
    assert_eq!((hand.engine.waiting(), hand.engine.depths()), (0, (0, 1)));
    hand.no_fault();
}

#[test]
fn the_message_that_queued_the_del_gets_the_receive_even_if_it_was_cancelled_since() {
    let mut hand = Hand::new();
    let id = hand.queued(any(7), 1);
    let (_, handle, _) = hand.adds()[0];
    hand.other(7, 5);
    assert_eq!(hand.cancel(id), CancelOutcome::Pending);
    assert_eq!(hand.commands(NIC).len(), 1, "the cancel joins the DEL that is outstanding");
    hand.done(Operation::Add(handle), true, 0);
    hand.done(Operation::Del(handle), true, 0);
    hand.place(OTHER);
    assert_eq!(hand.received(), [(1, 1)]);
}

#[test]
fn a_message_that_joins_the_del_of_a_cancel_searches_again() {
    let mut hand = Hand::new();
    let id = hand.queued(any(7), 1);
    let (_, handle, _) = hand.adds()[0];
    assert_eq!(hand.cancel(id), CancelOutcome::Pending);
    assert_eq!(hand.cancel(id), CancelOutcome::Pending, "a repeated cancel changes nothing");
    hand.other(7, 5);
    assert_eq!(hand.commands(NIC).len(), 1);
    hand.done(Operation::Add(handle), true, 0);
    hand.done(Operation::Del(handle), true, 0);
    assert_eq!(hand.cancelled(), [1]);
    assert_eq!(hand.engine.depths(), (0, 1), "it is unexpected now");
}

#[test]
fn a_cancel_that_comes_too_late_is_answered_by_the_match() {
    let mut hand = Hand::new();
    let id = hand.queued(any(7), 1);
    let (_, handle, _) = hand.adds()[0];
    hand.done(Operation::Add(handle), true, 0);
    assert_eq!(hand.cancel(id), CancelOutcome::Pending);
    assert_eq!(hand.commands(NIC), [Command::Del { handle, signalled: true }]);
    hand.matched(handle, 7, 0, MatchStage::DataFollows);
    assert_eq!(hand.cancel(id), CancelOutcome::TooLate);
    hand.done(Operation::Del(handle), false, 0);
    hand.data(NIC, DataTarget::Entry(handle));
    hand.tell(&Event::Released(handle));
    assert_eq!(hand.received(), [(1, 99)]);
    assert_eq!(hand.engine.entries(NIC).0, 0);
    hand.no_fault();
}

#[test]
fn a_cancel_pending_on_a_used_entry_answers_completed() {
    let mut hand = Hand::new();
    let id = hand.queued(any(7), 1);
    let (_, handle, _) = hand.adds()[0];
    assert_eq!(hand.cancel(id), CancelOutcome::Pending);
    assert!(matches!(hand.unexpected(7, 0), Answer::Accept { .. }));
    assert_eq!(hand.commands(NIC).len(), 1, "one DEL");
    hand.done(Operation::Add(handle), true, 1);
    hand.done(Operation::Del(handle), true, 1);
    assert_eq!(hand.received(), [(1, 1)]);
    hand.no_fault();
}

#[test]
fn a_claim_whose_message_was_lost_names_nothing_even_when_another_is_made() {
    let mut hand = Hand::new();
    let arrival = hand.arrival(7, 5, false);
    crate::seam::EventSink::handle_event(&mut hand.engine, OTHER, &Event::Arrived(arrival));
    let (lost, _) = hand.engine.claim(&any(7)).unwrap();
    let gone = crate::seam::Data {
        target: DataTarget::Message(arrival.message),
        length: 0,
        immediate: None,
        error: Some(crate::seam::DataError::PathLost),
    };
    crate::seam::EventSink::handle_event(&mut hand.engine, OTHER, &Event::Data(gone));
    hand.other(7, 5);
    let (there, _) = hand.engine.claim(&any(7)).unwrap();
    assert!(!hand.engine.receive_claimed(lost, Buffer::new(1000, 100), 1));
    assert!(hand.engine.receive_claimed(there, Buffer::new(2000, 100), 2));
    hand.place(OTHER);
    assert_eq!(hand.received(), [(2, 2)]);
    hand.no_fault();
}

#[test]
fn a_message_that_is_lost_before_its_answer_was_submitted_fails_its_receive() {
    let mut hand = Hand::new();
    let arrival = hand.arrival(7, 5, false);
    crate::seam::EventSink::handle_event(&mut hand.engine, OTHER, &Event::Arrived(arrival));
    assert!(matches!(hand.post(any(7), 1), crate::engine::Posting::Matched(_)));
    let error = crate::seam::DataError::PathLost;
    let target = DataTarget::Message(arrival.message);
    let lost = crate::seam::Data { target, length: 0, immediate: None, error: Some(error) };
    crate::seam::EventSink::handle_event(&mut hand.engine, OTHER, &Event::Data(lost));
    assert!(hand.commands(OTHER).is_empty(), "the device has forgotten the message");
    let completions = hand.completions();
    assert!(matches!(completions[0].end, crate::engine::End::Failed { error: why, .. } if why == error));
    assert_eq!((completions.len(), hand.engine.transfers()), (1, 0));
    hand.no_fault();
}

#[test]
fn a_del_that_was_not_submitted_is_withdrawn_when_the_match_comes_first() {
    let mut hand = Hand::new();
    hand.queued(any(7), 1);
    hand.queued(any(7), 2);
    let adds = hand.adds();
    hand.other(7, 5);
    assert_eq!(hand.commands(NIC), [Command::Del { handle: adds[0].1, signalled: true }]);
    hand.done(Operation::Add(adds[0].1), true, 0);
    hand.done(Operation::Add(adds[1].1), true, 0);
    // Both were matched before the DEL; the host hears of it in one poll.
    hand.matched(adds[0].1, 7, 0, MatchStage::Complete);
    assert_eq!(hand.engine.waiting(), 1, "it asks for the second one now");
    hand.matched(adds[1].1, 7, 0, MatchStage::Complete);
    hand.tell(&Event::Released(adds[1].1));
    assert_eq!((hand.engine.waiting(), hand.engine.depths()), (0, (0, 1)));
    assert!(hand.commands(NIC).is_empty(), "the device does not know the second entry any more");
    hand.done(Operation::Del(adds[0].1), false, 0);
    hand.tell(&Event::Released(adds[0].1));
    assert_eq!(hand.received(), [(1, 99), (2, 99)]);
    assert_eq!(hand.engine.entries(NIC).0, 0);
    hand.no_fault();
}

#[test]
fn a_message_that_waits_searches_again_when_its_own_nic_used_the_receive() {
    let mut hand = Hand::new();
    hand.queued(any(7), 1);
    let (_, handle, _) = hand.adds()[0];
    hand.other(7, 5);
    assert!(matches!(hand.unexpected(7, 0), Answer::Accept { .. }), "it takes the receive despite the DEL");
    assert_eq!((hand.engine.waiting(), hand.engine.depths()), (0, (0, 1)), "the other one is unexpected");
    assert_eq!(hand.commands(NIC).len(), 1, "one DEL");
    hand.done(Operation::Add(handle), true, 1);
    hand.done(Operation::Del(handle), true, 1);
    hand.tell(&Event::Released(handle));
    assert_eq!(hand.received(), [(1, 2)]);
    hand.no_fault();
}

#[test]
fn a_dead_sender_that_asked_a_receive_back_fails_it() {
    let mut hand = Hand::new();
    hand.queued(any(7), 1);
    let (_, handle, _) = hand.adds()[0];
    let arrival = hand.arrival(7, 5, false);
    crate::seam::EventSink::handle_event(&mut hand.engine, OTHER, &Event::Arrived(arrival));
    let lost = crate::seam::Data {
        target: DataTarget::Message(arrival.message),
        length: 0,
        immediate: None,
        error: Some(crate::seam::DataError::PathLost),
    };
    crate::seam::EventSink::handle_event(&mut hand.engine, OTHER, &Event::Data(lost));
    hand.commands(NIC);
    hand.done(Operation::Add(handle), true, 0);
    hand.done(Operation::Del(handle), true, 0);
    let ends = hand.completions();
    assert!(matches!(ends[..], [c] if matches!(c.end, crate::engine::End::Failed { .. })), "{ends:?}");
    assert_eq!(hand.engine.waiting(), 0);
}

#[test]
fn short_receives_go_through_bounce_buffers_and_come_up_by_a_copy() {
    let mut hand = Hand::new();
    let short = |context| Receive {
        pattern: any(context),
        buffer: Buffer::new(context * 1000, 8),
        context,
        kind: Kind::Once,
    };
    hand.engine.post(&short(1));
    assert!(hand.adds().is_empty(), "without bounce buffers it stays in software");
    assert!(!hand.engine.add_bounce_buffer(NIC, Buffer::new(1 << 30, 63)), "too short itself");
    assert!(hand.engine.add_bounce_buffer(NIC, Buffer::new(1 << 30, 64)));
    hand.engine.post(&short(2));
    hand.engine.post(&short(3));
    let commands = hand.commands(NIC);
    let [Command::Add { handle, buffer, .. }] = commands[..] else { panic!("{commands:?}") };
    assert_eq!(buffer, Buffer::new(1 << 30, 64));
    hand.done(Operation::Add(handle), true, 0);
    hand.matched(handle, 2, 0, MatchStage::Complete);
    hand.tell(&Event::Released(handle));
    let commands = hand.commands(NIC);
    let [Command::Copy { from, to, transfer }, Command::Add { .. }] = commands[..] else {
        panic!("the copy comes before the bounce buffer is used again: {commands:?}")
    };
    assert_eq!((from.length, to), (10, Buffer::new(2000, 8)));
    assert!(hand.completions().is_empty(), "not before the copy");
    hand.data(NIC, DataTarget::Transfer(transfer));
    assert_eq!(hand.received(), [(2, 99)]);
}

#[test]
fn one_buffer_in_several_receives_is_in_the_nic_once_at_a_time() {
    let mut hand = Hand::new();
    let same =
        |context| Receive { pattern: any(5), buffer: Buffer::new(1000, 100), context, kind: Kind::Once };
    for context in 1..=3 {
        hand.engine.post(&same(context));
    }
    for context in 1..=3 {
        let adds = hand.adds();
        assert_eq!(adds.len(), 1, "receive {context}");
        let handle = adds[0].1;
        hand.done(Operation::Add(handle), true, 0);
        hand.matched(handle, 5, 0, MatchStage::Complete);
        hand.tell(&Event::Released(handle));
        assert_eq!(hand.received(), [(context, 99)]);
    }
    hand.no_fault();
}

#[test]
fn every_ineligible_receive_has_its_reason() {
    let long = Buffer::new(0, 1 << 21);
    let several = Buffer { segments: 2, ..Buffer::new(0, 100) };
    let once = Kind::Once;
    let group = Pattern { source: Source::Group(crate::ids::GroupId(1)), ..any(1) };
    for (pattern, buffer, kind, reason) in [
        (from(1, 2), Buffer::new(0, 100), once, Reason::Directed),
        (group, Buffer::new(0, 100), once, Reason::Directed),
        (any(1), several, once, Reason::SeveralSegments),
        (any(1), long, once, Reason::OverDeviceLength),
        (any(1), Buffer::new(0, 100), Kind::Multi { least: 1 }, Reason::MultiReceive),
        (any(1), Buffer::new(0, 10), once, Reason::NoBounceBuffer),
    ] {
        let mut hand = Hand::new();
        let posting = hand.engine.post(&Receive { pattern, buffer, context: 1, kind });
        let crate::engine::Posting::Queued(id) = posting else { panic!("matched") };
        assert!(hand.adds().is_empty(), "{reason:?}");
        hand.cancel(id);
        assert_eq!(hand.engine.statistics().ended(reason), 1, "{reason:?}");
    }
    let mut hand = Hand::with(Config::default(), &[Capabilities { registration: true, ..nic() }]);
    hand.queued(any(1), 1);
    assert!(hand.adds().is_empty());
}

#[test]
fn a_directed_receive_goes_down_where_the_tag_names_its_source() {
    let config = Config { layout: Some(TagLayout { source_bits: 0xff00 }), ..Config::default() };
    let mut hand = Hand::with(config, &[nic(), Capabilities::default()]);
    for peer in 1..=3 {
        hand.engine.name_peer(PeerId(peer), u64::from(peer) << 8).unwrap();
    }
    hand.engine.set_path(PeerId(3), OTHER).unwrap();
    hand.queued(from(0x105, 1), 1);
    hand.queued(from(0x105, 2), 2);
    hand.queued(from(0x305, 3), 3);
    hand.queued(any(0x306), 4);
    hand.queued(any(0x206), 5);
    assert_eq!(contexts(&hand.adds()), [1, 5], "named wrongly, or served by another path: in software");
}

#[test]
fn a_receive_in_one_nic_stands_in_the_way_in_another_until_its_del_was_polled() {
    let mut hand = Hand::with(Config::default(), &[Capabilities { tags: 1, ..nic() }, nic()]);
    hand.queued(any(7), 1);
    hand.queued(any(7), 2);
    let (_, handle, _) = hand.adds()[0];
    assert!(hand.commands(OTHER).is_empty(), "its twin is older and in the other list");
    hand.queued(any(8), 3);
    assert_eq!(hand.commands(OTHER).len(), 1, "what overlaps nothing goes where there is room");
    hand.done(Operation::Add(handle), true, 0);
    hand.matched(handle, 7, 0, MatchStage::Complete);
    assert_eq!(hand.commands(OTHER).len(), 1, "now nothing older is elsewhere");
}

#[test]
fn giving_up_recalls_newest_first_and_coming_back_refills() {
    let mut hand = Hand::new();
    for context in 1..=3 {
        hand.queued(any(7), context);
    }
    let handles: Vec<_> = hand.adds().into_iter().map(|(_, handle, _)| handle).collect();
    hand.engine.set_offload(NIC, false);
    let dels: Vec<_> = hand
        .commands(NIC)
        .into_iter()
        .map(|command| match command {
            Command::Del { handle, signalled: true } => handle,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(dels, [handles[2], handles[1], handles[0]]);
    for &handle in &handles {
        hand.done(Operation::Add(handle), true, 0);
    }
    for &handle in &dels {
        hand.done(Operation::Del(handle), true, 0);
        hand.tell(&Event::Released(handle));
    }
    assert!(matches!(hand.other(7, 1), Answer::Accept { .. }), "they are in software");
    hand.engine.set_offload(NIC, true);
    let adds = hand.adds();
    assert_eq!(contexts(&adds), [2, 3]);
    assert!(adds.iter().all(|&(_, handle, _)| !handles.contains(&handle)), "with new handles");
    hand.no_fault();
}

#[test]
fn a_device_failure_answers_dels_and_brings_entries_back() {
    let mut hand = Hand::new();
    let cancelled = hand.queued(any(1), 1);
    for context in 2..=4 {
        hand.queued(any(context), context);
    }
    let adds = hand.adds();
    for &(_, handle, _) in &adds {
        hand.done(Operation::Add(handle), true, 0);
    }
    hand.matched(adds[2].1, 3, 0, MatchStage::DataFollows);
    hand.cancel(cancelled);
    hand.other(2, 5);
    hand.tell(&Event::DeviceFailed(crate::seam::DeviceError::Removed));
    hand.place(OTHER);
    let ends: Vec<_> = hand.completions();
    let of = |context| ends.iter().filter(|c| c.context == context).map(|c| c.end).collect::<Vec<_>>();
    use crate::engine::End;
    assert!(matches!(of(1)[..], [End::Cancelled]), "{ends:?}");
    assert!(matches!(of(2)[..], [End::Received(_)]), "{ends:?}");
    assert!(matches!(of(3)[..], [End::Failed { .. }]), "{ends:?}");
    assert!(matches!(hand.other(4, 5), Answer::Accept { .. }), "4 is in software again");
    assert!(hand.engine.poll_fault().is_some());
    assert_eq!(hand.engine.entries(NIC).0, 0);
}

#[test]
fn a_rendezvous_that_the_nic_hands_back_is_read_by_the_host() {
    let mut hand = Hand::new();
    hand.queued(any(7), 1);
    let (_, handle, _) = hand.adds()[0];
    hand.done(Operation::Add(handle), true, 0);
    let remote = Remote { address: 0xabc, key: 7, length: 500 };
    hand.matched(handle, 7, 3, MatchStage::SoftwareRendezvous(remote));
    hand.tell(&Event::Released(handle));
    let commands = hand.commands(NIC);
    let [Command::Read { transfer, peer, tag, app_ctx, remote: of, buffer }] = commands[..] else {
        panic!("{commands:?}")
    };
    assert_eq!((peer, of, buffer), (PeerId(3), remote, Buffer::new(1000, 100)));
    assert_eq!((tag.0, app_ctx), (7, 99), "what the sender's FIN must say");
    hand.data(NIC, DataTarget::Transfer(transfer));
    let ends = hand.completions();
    let crate::engine::End::Received(message) = ends[0].end else { panic!("{ends:?}") };
    assert_eq!((message.length, message.placed), (500, 100));
}

#[test]
fn command_slots_are_kept_for_dels_and_one_sync() {
    let mut hand = Hand::with(Config::default(), &[Capabilities { command_slots: 6, ..nic() }]);
    for context in 1..=4 {
        hand.queued(any(context), context);
    }
    let adds = hand.adds();
    assert_eq!(adds.len(), 2, "two ADDs, two DELs, one SYNC");
    hand.done(Operation::Add(adds[0].1), true, 0);
    assert_eq!(hand.adds().len(), 1, "its own slot is free, that of its DEL is not");
    hand.done(Operation::Add(adds[1].1), true, 0);
    assert!(hand.adds().is_empty());
}

#[test]
fn a_receive_that_comes_to_stand_in_the_way_brings_newer_ones_back() {
    let config = Config { layout: Some(TagLayout { source_bits: 0xff00 }), ..Config::default() };
    let mut hand = Hand::with(config, &[nic(), Capabilities::default()]);
    hand.engine.name_peer(PeerId(1), 0x100).unwrap();
    // Peer 9 will turn out to be peer 1; until then its receive stands in nobody's way.
    hand.queued(from(0x105, 9), 1);
    hand.queued(from(0x105, 1), 2);
    let adds = hand.adds();
    assert_eq!(contexts(&adds), [2]);
    hand.engine.resolve(PeerId(9), PeerId(1));
    let handle = adds[0].1;
    let commands = hand.commands(NIC);
    let [Command::Del { handle: of, signalled: true }, Command::Add { buffer, handle: first, .. }] =
        commands[..]
    else {
        panic!("{commands:?}")
    };
    assert_eq!(
        (of, buffer.address),
        (handle, 1000),
        "the newer one comes back before the older one goes down"
    );
    for operation in [Operation::Add(handle), Operation::Del(handle), Operation::Add(first)] {
        hand.done(operation, true, 0);
    }
    hand.tell(&Event::Released(handle));
    assert_eq!(contexts(&hand.adds()), [2]);
    hand.no_fault();
}

#[test]
fn a_peer_that_joins_a_group_brings_back_what_the_group_goes_before() {
    let config = Config { layout: Some(TagLayout { source_bits: 0xff00 }), ..Config::default() };
    let mut hand = Hand::with(config, &[nic(), Capabilities::default()]);
    hand.engine.name_peer(PeerId(1), 0x100).unwrap();
    let group = crate::ids::GroupId(4);
    hand.queued(Pattern { source: Source::Group(group), ..any(0x105) }, 1);
    hand.queued(from(0x105, 1), 2);
    let adds = hand.adds();
    assert_eq!(contexts(&adds), [2], "the peer is in no group");
    hand.engine.set_group(PeerId(1), Some(group));
    let handle = adds[0].1;
    assert_eq!(hand.commands(NIC), [Command::Del { handle, signalled: true }]);
    hand.done(Operation::Add(handle), true, 0);
    hand.done(Operation::Del(handle), true, 0);
    hand.tell(&Event::Released(handle));
    assert!(hand.adds().is_empty(), "the older one is in software");
    hand.unexpected(0x105, 1);
    assert_eq!(hand.received(), [(1, 1)]);
    assert_eq!(contexts(&hand.adds()), [2]);
    hand.no_fault();
}
