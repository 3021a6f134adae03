//! Which peers are still named, and what is known of one whose number is dealt again.

use std::collections::BTreeSet;

use super::hand::{Hand, NIC, OTHER, any, from, nic};
use crate::engine::{CancelOutcome, Config, End, Kind, Receive};
use crate::ids::PeerId;
use crate::offload::TagLayout;
use crate::seam::{
    Answer, Buffer, Capabilities, Command, Data, DataError, DataTarget, Event, EventSink as _, MatchStage,
    Operation, Remote,
};

fn named(hand: &Hand) -> Vec<u32> {
    let mut peers = BTreeSet::new();
    hand.engine.for_each_peer(&mut |peer| {
        peers.insert(peer.0);
    });
    peers.into_iter().collect()
}

#[test]
fn the_sender_of_a_message_is_named_until_its_completion_was_polled() {
    let mut hand = Hand::new();
    assert_eq!(named(&hand), []);
    hand.other(2, 11);
    assert_eq!(named(&hand), [11], "unexpected");
    let (claim, _) = hand.engine.claim(&any(2)).expect("it is there");
    assert_eq!(named(&hand), [11], "claimed");
    assert!(hand.engine.receive_claimed(claim, Buffer::new(0, 100), 1));
    assert_eq!(named(&hand), [11], "on its way");
    assert_eq!(hand.place(OTHER).len(), 1);
    assert_eq!(named(&hand), [11], "a completion");
    assert_eq!(hand.received().len(), 1);
    assert_eq!(named(&hand), []);
    // One that waits for a receive that a NIC has.
    hand.queued(any(7), 3);
    let (_, handle, _) = hand.adds()[0];
    assert_eq!(hand.other(7, 12), Answer::Hold);
    assert_eq!((hand.engine.waiting(), named(&hand)), (1, vec![12]));
    assert_eq!(hand.commands(NIC).len(), 1);
    hand.done(Operation::Add(handle), true, 0);
    hand.done(Operation::Del(handle), true, 0);
    hand.tell(&Event::Released(handle));
    assert_eq!(hand.place(OTHER).len(), 1);
    assert_eq!(hand.received().len(), 1);
    assert_eq!(named(&hand), []);
    hand.no_fault();
}

#[test]
fn a_receive_names_its_source_until_no_device_has_anything_of_it() {
    let layout = Some(TagLayout { source_bits: 0xff00 });
    let mut hand = Hand::with(Config { layout, ..Config::default() }, &[nic(), Capabilities::default()]);
    let in_software = hand.queued(from(1, 5), 1);
    assert_eq!(named(&hand), [5]);
    assert_eq!(hand.cancel(in_software), CancelOutcome::Cancelled);
    hand.cancelled();
    assert_eq!(named(&hand), []);
    hand.engine.name_peer(PeerId(6), 0x600).expect("it has none");
    let in_nic = hand.queued(from(0x601, 6), 2);
    let (_, handle, _) = hand.adds()[0];
    assert_eq!(hand.cancel(in_nic), CancelOutcome::Pending);
    assert_eq!(hand.commands(NIC).len(), 1);
    hand.done(Operation::Add(handle), true, 0);
    hand.done(Operation::Del(handle), true, 0);
    assert_eq!(hand.cancelled(), [2]);
    assert_eq!(named(&hand), [6], "its memory is the NIC's still");
    hand.tell(&Event::Released(handle));
    assert_eq!(named(&hand), []);
    hand.no_fault();
}

#[test]
fn of_a_peer_that_is_forgotten_neither_path_nor_name_is_the_next_ones() {
    let layout = Some(TagLayout { source_bits: 0xff00 });
    let mut hand = Hand::with(Config { layout, ..Config::default() }, &[nic(), Capabilities::default()]);
    hand.engine.name_peer(PeerId(6), 0x600).expect("it has none");
    hand.engine.set_path(PeerId(6), OTHER).expect("it had none");
    hand.engine.forget_peer(PeerId(6));
    hand.engine.name_peer(PeerId(7), 0x600).expect("the name is nobody's");
    hand.queued(from(0x601, 6), 1);
    assert!(hand.adds().is_empty(), "its tag is another's");
    hand.engine.set_path(PeerId(6), NIC).expect("it has no path");
    hand.engine.set_path(PeerId(6), OTHER).expect_err("a receive names it");
}

#[test]
fn a_peer_changes_its_path_when_what_its_receives_overlap_is_back() {
    let mut hand = Hand::new();
    hand.engine.set_path(PeerId(6), OTHER).expect("it had none");
    // Nothing of the peer's comes through the NIC, so that the second may go down.
    hand.queued(from(5, 6), 1);
    hand.queued(any(5), 2);
    let (_, handle, _) = hand.adds()[0];
    hand.done(Operation::Add(handle), true, 0);
    hand.engine.set_path(PeerId(6), NIC).expect_err("the NIC could match the second first");
    hand.engine.clear_path(PeerId(6));
    assert!(hand.engine.may_take_path(PeerId(6), OTHER), "as before");
    assert!(!hand.engine.may_take_path(PeerId(6), NIC));
    hand.engine.set_path(PeerId(6), NIC).expect_err("it is not back");
    assert_eq!(hand.commands(NIC), [Command::Del { handle, signalled: true }]);
    hand.done(Operation::Del(handle), true, 0);
    hand.tell(&Event::Released(handle));
    hand.engine.set_path(PeerId(6), NIC).expect("it is back");
    assert!(hand.adds().is_empty(), "an older one is in its way");
    hand.unexpected(5, 6);
    hand.unexpected(5, 6);
    assert_eq!(hand.received(), [(1, 1), (2, 2)]);
    hand.no_fault();
}

#[test]
fn what_a_nic_matched_of_a_connection_that_ended_has_no_word_for_the_next() {
    let read = MatchStage::SoftwareRendezvous(Remote { address: 0xabc, key: 7, length: 500 });
    for (ended, word) in [(3, 0), (4, 99)] {
        let mut hand = Hand::new();
        for context in [1, 2] {
            hand.queued(any(context), context);
        }
        let handles: Vec<_> = hand.adds().into_iter().map(|(_, handle, _)| handle).collect();
        for (handle, (tag, stage)) in handles.iter().zip([(1, MatchStage::DataFollows), (2, read)]) {
            hand.done(Operation::Add(*handle), true, 0);
            hand.matched(*handle, tag, 3, stage);
        }
        // Of what no device matched the word is the owner's, who knows whose it is.
        hand.other(9, 3);
        hand.queued(any(8), 4);
        hand.engine.post(&Receive {
            pattern: any(9),
            buffer: Buffer::new(3000, 100),
            context: 3,
            kind: Kind::Once,
        });
        hand.engine.forget_words(PeerId(ended));
        hand.data(NIC, DataTarget::Entry(handles[0]));
        for device in [NIC, OTHER] {
            hand.place(device);
        }
        let mut received = hand.received();
        received.sort_unstable();
        assert_eq!(received, [(1, word), (2, word), (3, 1)], "the connection of peer {ended} ended");
        hand.no_fault();
    }
}

#[test]
fn a_dead_message_behind_another_of_the_sender_it_was_learned_to_have_fails_what_it_asked_back() {
    let mut hand = Hand::new();
    for context in 1..=4 {
        hand.queued(any(context), context);
    }
    let handles: Vec<_> = hand.adds().into_iter().map(|(_, handle, _)| handle).collect();
    for &handle in &handles {
        hand.done(Operation::Add(handle), true, 0);
    }
    hand.other(1, 1);
    // Of the same sender, who is not known yet: it asks for a receive of its own.
    let second = hand.arrival(2, 9, false);
    hand.engine.handle_event(OTHER, &Event::Arrived(second));
    hand.commands(NIC);
    hand.engine.resolve(PeerId(9), PeerId(1));
    hand.tell(&Event::PathLost { peer: PeerId(5) });
    let target = DataTarget::Message(second.message);
    let lost = Data { target, length: 0, immediate: None, error: Some(DataError::PathLost) };
    hand.engine.handle_event(OTHER, &Event::Data(lost));
    hand.done(Operation::Del(handles[0]), true, 0);
    // Two more wait; none of them has asked for the second receive.
    hand.other(3, 2);
    hand.other(4, 3);
    hand.commands(NIC);
    hand.done(Operation::Del(handles[1]), true, 0);
    for &handle in &handles[2..] {
        hand.done(Operation::Del(handle), true, 0);
    }
    hand.place(OTHER);
    let ends = hand.completions();
    let of = |context| ends.iter().filter(|c| c.context == context).map(|c| c.end).collect::<Vec<_>>();
    assert!(matches!(of(2)[..], [End::Failed { error: DataError::PathLost, .. }]), "{ends:?}");
    for (context, tag) in [(1, 1), (3, 3), (4, 4)] {
        assert!(matches!(of(context)[..], [End::Received(message)] if message.tag.0 == tag), "{ends:?}");
    }
    assert_eq!((hand.engine.waiting(), hand.engine.depths()), (0, (0, 0)));
    hand.no_fault();
}
