//! Receives that are put into a device's list while they are posted.

use super::hand::{Hand, NIC, OTHER, any, nic};
use crate::engine::{CancelOutcome, Config, Engine, Kind, Posting, Receive};
use crate::ids::{DeviceId, MessageToken, PeerId, ReceiveId, TagHandle};
use crate::offload::Reason;
use crate::seam::{
    Add, Answer, Buffer, Capabilities, Command, DeviceError, Event, EventSink, MatchStage, Operation, Placer,
};

/// Takes ADDs as long as it has credit.
struct List {
    credit: usize,
    added: Vec<Command>,
}

impl Default for List {
    fn default() -> Self {
        Self { credit: usize::MAX, added: Vec::new() }
    }
}

impl Placer for List {
    fn place(&mut self, _: DeviceId, _: MessageToken, _: &Buffer) -> bool {
        false
    }

    fn add(&mut self, device: DeviceId, add: &Add<'_>) -> bool {
        assert_eq!(device, NIC);
        if self.credit > 0 {
            self.credit -= 1;
            self.added.push(add.command());
            return true;
        }
        false
    }
}

impl List {
    /// What was added since, as (tag, handle, count).
    fn take(&mut self) -> Vec<(u64, TagHandle, u16)> {
        let of = |command| match command {
            Command::Add { handle, tag, unexpected_count, .. } => (tag.0, handle, unexpected_count),
            _ => unreachable!("an ADD"),
        };
        self.added.drain(..).map(of).collect()
    }

    fn tags(&mut self) -> Vec<u64> {
        self.take().into_iter().map(|(tag, ..)| tag).collect()
    }
}

fn receive(tag: u64, context: u64) -> Receive {
    Receive { pattern: any(tag), buffer: Buffer::new(context * 1000, 100), context, kind: Kind::Once }
}

impl Hand {
    fn post_into(&mut self, list: &mut List, tag: u64, context: u64) -> ReceiveId {
        match self.engine.post_placing(&receive(tag, context), list) {
            Posting::Queued(id) => id,
            other @ (Posting::Matched(_) | Posting::Placed(_)) => panic!("{other:?}"),
        }
    }

    /// So many records were used: receives come and go.
    fn use_records(&mut self, count: u64) {
        let ids: Vec<_> = (0..count).map(|number| self.queued(any(1000 + number), 100 + number)).collect();
        let handles: Vec<_> = self.commands(NIC).iter().filter_map(handle_of).collect();
        for id in ids {
            self.cancel(id);
        }
        self.commands(NIC);
        for &handle in &handles {
            self.done(Operation::Add(handle), true, 0);
        }
        for handle in handles {
            self.done(Operation::Del(handle), true, 0);
            self.tell(&Event::Released(handle));
        }
        self.cancelled();
        assert_eq!(self.commands(NIC), []);
        self.no_fault();
    }

    fn context_order(&mut self) -> Vec<u64> {
        self.adds().into_iter().map(|(context, ..)| context).collect()
    }
}

fn handle_of(command: &Command) -> Option<TagHandle> {
    match *command {
        Command::Add { handle, .. } => Some(handle),
        _ => None,
    }
}

/// A NIC that has had some receives, and a device that does not match.
fn used() -> (Hand, List) {
    let mut hand = Hand::new();
    hand.use_records(4);
    (hand, List::default())
}

/// Post one, and let the NIC match and release it: how often its ADD came by the hand, and how often by a command.
fn life_of_one(hand: &mut Hand, list: &mut List, context: u64) -> (usize, usize) {
    assert!(matches!(hand.engine.post_placing(&receive(context, context), list), Posting::Queued(_)));
    let commands = hand.commands(NIC);
    let by = (list.added.len(), commands.len());
    let add = list.added.drain(..).chain(commands).next();
    let Some(Command::Add { handle, tag, buffer, signalled, .. }) = add else { panic!("{add:?}") };
    assert_eq!((tag.0, buffer.address), (context, context * 1000));
    if signalled {
        hand.done(Operation::Add(handle), true, 0);
    }
    hand.matched(handle, context, 0, MatchStage::Complete);
    hand.tell(&Event::Released(handle));
    assert_eq!(hand.received(), [(context, 99)]);
    hand.no_fault();
    by
}

#[test]
fn a_receive_goes_down_by_the_hand_and_by_a_command_where_the_hand_cannot() {
    for mut hand in [Hand::with(Config::default(), &[nic()]), silent_hand()] {
        let mut list = List::default();
        assert_eq!(life_of_one(&mut hand, &mut list, 1), (0, 1), "its record is new");
        for context in 2..40 {
            assert_eq!(life_of_one(&mut hand, &mut list, context), (1, 0), "receive {context}");
        }
        list.credit = 0;
        for context in 40..60 {
            assert_eq!(life_of_one(&mut hand, &mut list, context), (0, 1), "receive {context}");
        }
    }
}

#[test]
fn a_receive_does_not_overtake_a_command_that_waits() {
    for mut hand in [Hand::with(Config::default(), &[nic()]), silent_hand()] {
        let mut list = List::default();
        hand.engine.post_placing(&receive(1, 1), &mut list);
        hand.engine.post_placing(&receive(2, 2), &mut list);
        let first: Vec<_> = hand.adds().into_iter().map(|(_, handle, _)| handle).collect();
        for (handle, tag) in first.into_iter().zip(1..) {
            hand.matched(handle, tag, 0, MatchStage::Complete);
            hand.tell(&Event::Released(handle));
        }
        list.credit = 0;
        hand.engine.post_placing(&receive(3, 3), &mut list);
        list.credit = usize::MAX;
        hand.engine.post_placing(&receive(4, 4), &mut list);
        assert_eq!(list.added, [], "its command would come behind it");
        let order: Vec<u64> = hand.adds().into_iter().map(|(context, ..)| context).collect();
        assert_eq!(order, [3, 4]);
    }
}

/// With a NIC whose ADDs are told of now and then.
fn silent_hand() -> Hand {
    let mut hand = Hand::with(Config::default(), &[]);
    hand.engine = Engine::new(Config::default());
    hand.engine.add_device(nic()).unwrap();
    hand.commands(NIC);
    hand
}

#[test]
fn an_add_that_is_refused_stays_first_and_all_behind_it_go_by_commands() {
    let (mut hand, mut list) = used();
    list.credit = 1;
    for (tag, context) in [(1, 1), (2, 2), (3, 3)] {
        hand.post_into(&mut list, tag, context);
    }
    assert_eq!(list.tags(), [1]);
    // The device takes one of two commands.
    let offered = hand.engine.poll_commands(NIC).to_vec();
    assert_eq!(offered.len(), 2);
    hand.engine.handle_submitted(NIC, 1);
    list.credit = usize::MAX;
    hand.post_into(&mut list, 4, 4);
    assert_eq!(list.tags(), [], "a command waits");
    assert_eq!(hand.context_order(), [3, 4]);
    hand.no_fault();
}

#[test]
fn a_full_list_takes_nothing_by_hand_and_what_waits_for_room_goes_down_first() {
    let (mut hand, mut list) = used();
    for context in 1..=6 {
        hand.post_into(&mut list, context, context);
    }
    let added = list.take();
    assert_eq!(added.iter().map(|&(tag, ..)| tag).collect::<Vec<_>>(), [1, 2, 3, 4], "it has 4 tags");
    assert_eq!(hand.commands(NIC), []);
    for &(_, handle, _) in &added {
        hand.done(Operation::Add(handle), true, 0);
    }
    let (tag, handle, _) = added[0];
    hand.matched(handle, tag, 0, MatchStage::Complete);
    hand.tell(&Event::Released(handle));
    // There is room for one, and the fifth has waited for it.
    hand.post_into(&mut list, 7, 7);
    assert_eq!(list.tags(), []);
    assert_eq!(hand.context_order(), [5]);
    hand.no_fault();
}

#[test]
fn without_a_command_slot_nothing_goes_by_hand_until_some_are_free() {
    let mut hand = Hand::with(Config::default(), &[Capabilities { command_slots: 5, ..nic() }]);
    hand.use_records(2);
    let mut list = List::default();
    for context in 1..=3 {
        hand.post_into(&mut list, context, context);
    }
    // An ADD and a DEL for each, and a SYNC.
    let added = list.take();
    assert_eq!(added.iter().map(|&(tag, ..)| tag).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(hand.commands(NIC), []);
    assert_eq!(hand.engine.statistics().ended(Reason::NoCommandSlot), 0);
    for (tag, handle, _) in added {
        hand.done(Operation::Add(handle), true, 0);
        hand.matched(handle, tag, 0, MatchStage::Complete);
        hand.tell(&Event::Released(handle));
    }
    assert_eq!(hand.context_order(), [3]);
    hand.no_fault();
}

#[test]
fn the_count_that_goes_by_hand_is_of_all_messages_decided_so_far() {
    let (mut hand, mut list) = used();
    assert_eq!(hand.unexpected(50, 0), Answer::Hold);
    assert_eq!(hand.unexpected(51, 0), Answer::Hold);
    hand.post_into(&mut list, 1, 1);
    assert_eq!(list.take().into_iter().map(|(tag, _, count)| (tag, count)).collect::<Vec<_>>(), [(1, 2)]);
    // One is taken: its answer waits, and nothing passes it.
    assert!(matches!(hand.engine.post_placing(&receive(50, 2), &mut list), Posting::Matched(_)));
    hand.post_into(&mut list, 3, 3);
    assert_eq!(list.tags(), []);
    let commands = hand.commands(NIC);
    assert!(matches!(commands[..], [Command::Answer { .. }, Command::Add { .. }]), "{commands:?}");
    hand.no_fault();
}

#[test]
fn a_message_whose_receive_went_down_by_hand_and_is_not_active_takes_it_by_a_del() {
    let (mut hand, mut list) = used();
    hand.post_into(&mut list, 7, 1);
    let (_, handle, _) = list.take()[0];
    // It came before the ADD was executed.
    assert!(matches!(hand.unexpected(7, 0), Answer::Accept { .. }));
    hand.post_into(&mut list, 7, 2);
    assert_eq!(list.tags(), [], "the DEL waits, and the count goes behind it");
    let commands = hand.commands(NIC);
    assert!(matches!(commands[0], Command::Del { handle: of, .. } if of == handle), "{commands:?}");
    let behind = commands.iter().find_map(|command| match *command {
        Command::Add { buffer, unexpected_count, .. } => Some((buffer.address, unexpected_count)),
        _ => None,
    });
    assert_eq!(behind, Some((2000, 1)), "{commands:?}");
    hand.no_fault();
}

#[test]
fn another_path_takes_back_a_receive_that_went_down_by_hand_and_new_ones_wait() {
    let (mut hand, mut list) = used();
    hand.post_into(&mut list, 7, 1);
    let (_, handle, _) = list.take()[0];
    assert_eq!(hand.other(7, 5), Answer::Hold);
    assert!(matches!(hand.commands(NIC)[..], [Command::Del { handle: of, signalled: true }] if of == handle));
    // What overlaps it stays in software until the DEL is done, what does not may go down: not by hand, since the way
    // down is no longer straight.
    hand.post_into(&mut list, 7, 2);
    hand.post_into(&mut list, 8, 3);
    assert_eq!((list.tags(), hand.context_order()), (vec![], vec![3]));
    hand.done(Operation::Add(handle), true, 0);
    hand.done(Operation::Del(handle), true, 0);
    hand.tell(&Event::Released(handle));
    assert_eq!(hand.context_order(), [2]);
    hand.place(OTHER);
    assert_eq!(hand.received().into_iter().map(|(context, _)| context).collect::<Vec<_>>(), [1]);
    hand.no_fault();
}

#[test]
fn a_receive_that_went_down_by_hand_is_cancelled_by_a_del() {
    let (mut hand, mut list) = used();
    let id = hand.post_into(&mut list, 7, 1);
    let (_, handle, _) = list.take()[0];
    assert_eq!(hand.cancel(id), CancelOutcome::Pending);
    assert!(matches!(hand.commands(NIC)[..], [Command::Del { handle: of, .. }] if of == handle));
    hand.done(Operation::Add(handle), true, 0);
    hand.done(Operation::Del(handle), true, 0);
    hand.tell(&Event::Released(handle));
    assert_eq!(hand.cancelled(), [1]);
    hand.no_fault();
}

#[test]
fn a_device_lost_between_gives_back_what_went_down_by_hand_and_gets_no_more() {
    let (mut hand, mut list) = used();
    hand.post_into(&mut list, 7, 1);
    hand.post_into(&mut list, 7, 2);
    assert_eq!(list.tags(), [7, 7]);
    hand.tell(&Event::DeviceFailed(DeviceError::Removed));
    assert!(hand.engine.poll_fault().is_some());
    hand.post_into(&mut list, 7, 3);
    assert_eq!((list.tags(), hand.commands(NIC)), (vec![], vec![]));
    // In the order of posting.
    for source in 0..3 {
        assert!(matches!(hand.other(7, source), Answer::Accept { .. }));
    }
    let order: Vec<u64> = hand.received().into_iter().map(|(context, _)| context).collect();
    assert_eq!(order, [1, 2, 3]);
    hand.no_fault();
}

#[test]
fn a_device_that_is_switched_off_gets_nothing_by_hand_and_again_when_it_is_on() {
    let (mut hand, mut list) = used();
    hand.post_into(&mut list, 1, 1);
    let (tag, handle, _) = list.take()[0];
    hand.done(Operation::Add(handle), true, 0);
    hand.matched(handle, tag, 0, MatchStage::Complete);
    hand.tell(&Event::Released(handle));
    hand.engine.set_offload(NIC, false);
    let off = hand.post_into(&mut list, 2, 2);
    assert_eq!((list.tags(), hand.commands(NIC)), (vec![], vec![]));
    hand.engine.set_offload(NIC, true);
    assert_eq!(hand.context_order(), [2]);
    assert_eq!(hand.cancel(off), CancelOutcome::Pending);
    hand.post_into(&mut list, 3, 3);
    assert_eq!(list.tags(), [], "the DEL waits");
    hand.no_fault();
}

#[test]
fn of_two_devices_that_match_none_gets_a_receive_by_hand() {
    let mut hand = Hand::with(Config::default(), &[nic()]);
    hand.use_records(4);
    let mut list = List::default();
    hand.post_into(&mut list, 1, 1);
    assert_eq!(list.tags(), [1]);
    assert_eq!(hand.engine.add_device(nic()).unwrap(), OTHER);
    hand.commands(OTHER);
    // From anybody: through which of both?
    hand.post_into(&mut list, 2, 2);
    assert_eq!(list.tags(), []);
    let (first, second) = (hand.commands(NIC), hand.commands(OTHER));
    assert_eq!(first.iter().chain(&second).filter_map(handle_of).count(), 1, "{first:?} {second:?}");
    hand.no_fault();
}

#[test]
fn a_device_beside_that_does_not_match_gets_nothing_by_hand() {
    let mut hand = Hand::with(Config::default(), &[Capabilities::default()]);
    let mut list = List::default();
    hand.post_into(&mut list, 1, 1);
    assert!(matches!(hand.engine.handle_event(NIC, &Event::Arrived(hand_arrival())), Answer::Accept { .. }));
    hand.post_into(&mut list, 1, 2);
    assert_eq!(list.tags(), []);
    hand.no_fault();
}

fn hand_arrival() -> crate::seam::Arrival {
    let mut other = Hand::with(Config::default(), &[]);
    other.arrival(1, PeerId(0).0, false)
}
