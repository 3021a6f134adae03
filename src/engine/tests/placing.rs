//! Messages that are written while their receive is posted.

use super::hand::{Hand, NIC, OTHER, any};
use crate::engine::{Config, Kind, Posting, Receive};
use crate::ids::{DeviceId, MessageToken};
use crate::seam::{Buffer, Capabilities, Command, Event, EventSink, Placer};

/// Writes if it is willing, and remembers what.
#[derive(Default)]
struct Pen {
    is_unwilling: bool,
    written: Vec<(DeviceId, u64, Buffer)>,
}

impl Placer for Pen {
    fn place(&mut self, device: DeviceId, message: MessageToken, buffer: &Buffer) -> bool {
        if !self.is_unwilling {
            self.written.push((device, message.0, *buffer));
        }
        !self.is_unwilling
    }
}

fn receive(tag: u64, context: u64) -> Receive {
    Receive { pattern: any(tag), buffer: Buffer::new(context * 1000, 100), context, kind: Kind::Once }
}

fn software() -> Hand {
    Hand::with(Config::default(), &[Capabilities::default()])
}

#[test]
fn a_message_in_hand_is_in_its_buffer_when_its_receive_was_posted_and_nothing_follows() {
    let (mut hand, mut pen) = (software(), Pen::default());
    let arrival = hand.arrival(7, 3, false);
    hand.engine.handle_event(NIC, &Event::Arrived(arrival));
    let posting = hand.engine.post_placing(&receive(7, 1), &mut pen);
    let Posting::Placed(message) = posting else { panic!("{posting:?}") };
    assert_eq!((message.app_ctx, message.source.0, message.placed, message.address), (1, 3, 10, 1000));
    assert_eq!(pen.written, [(NIC, 1, Buffer::new(1000, 100))]);
    assert_eq!(hand.commands(NIC), []);
    assert_eq!(hand.completions(), []);
    assert_eq!((hand.engine.depths(), hand.engine.transfers()), ((0, 0), 0));
}

#[test]
fn a_message_that_cannot_be_written_at_once_comes_by_a_command_and_ends_once() {
    let (mut hand, mut pen) = (software(), Pen { is_unwilling: true, ..Pen::default() });
    let arrival = hand.arrival(7, 0, false);
    hand.engine.handle_event(NIC, &Event::Arrived(arrival));
    assert!(matches!(hand.engine.post_placing(&receive(7, 1), &mut pen), Posting::Matched(_)));
    assert_eq!(hand.received(), []);
    hand.place(NIC);
    assert_eq!(hand.received(), [(1, 1)]);
}

#[test]
fn a_message_of_which_more_is_to_come_is_never_written_at_once() {
    let (mut hand, mut pen) = (software(), Pen::default());
    let mut arrival = hand.arrival(7, 0, false);
    arrival.in_hand = false;
    hand.engine.handle_event(NIC, &Event::Arrived(arrival));
    assert!(matches!(hand.engine.post_placing(&receive(7, 1), &mut pen), Posting::Matched(_)));
    assert_eq!(pen.written, []);
}

/// Both lists indexed, in software and beside a NIC that reported the messages or did not.
#[test]
fn of_many_messages_each_receive_gets_its_own_and_the_earliest() {
    let nics = [super::hand::nic(), Capabilities::default()];
    for (devices, from, counted) in
        [(&nics[1..], NIC, false), (&nics[..1], NIC, true), (&nics[..], NIC, true), (&nics[..], OTHER, false)]
    {
        let (mut hand, mut pen) = (Hand::with(Config::default(), devices), Pen::default());
        // Two of each tag; a NIC of 33 buffers takes so many.
        for tag in (0..16).chain(0..16) {
            let arrival = hand.arrival(tag, 0, counted);
            hand.engine.handle_event(from, &Event::Arrived(arrival));
        }
        for (context, tag) in (0..16).rev().chain((0..16).rev()).enumerate() {
            let posting = hand.engine.post_placing(&receive(tag, context as u64), &mut pen);
            let Posting::Placed(message) = posting else { panic!("{posting:?}") };
            let expected = if context < 16 { tag + 1 } else { tag + 17 };
            assert_eq!((u64::from(message.app_ctx), message.tag.0), (expected, tag));
        }
        assert_eq!((pen.written.len(), hand.engine.depths()), (32, (0, 0)));
        assert_eq!(hand.completions(), []);
    }
}

#[test]
fn a_multi_receive_buffer_takes_its_messages_by_commands() {
    let (mut hand, mut pen) = (software(), Pen::default());
    let arrival = hand.arrival(7, 0, false);
    hand.engine.handle_event(NIC, &Event::Arrived(arrival));
    let multi = Receive { kind: Kind::Multi { least: 10 }, ..receive(7, 1) };
    assert!(matches!(hand.engine.post_placing(&multi, &mut pen), Posting::Queued(_)));
    assert_eq!(pen.written, []);
    assert!(matches!(hand.commands(NIC)[..], [Command::Answer { .. }]));
}

#[test]
fn what_is_placed_is_cut_to_the_buffer() {
    let (mut hand, mut pen) = (software(), Pen::default());
    let arrival = hand.arrival(7, 0, false);
    hand.engine.handle_event(NIC, &Event::Arrived(arrival));
    let short = Receive { buffer: Buffer::new(0, 4), ..receive(7, 1) };
    let Posting::Placed(message) = hand.engine.post_placing(&short, &mut pen) else { panic!("not placed") };
    assert!(message.is_truncated());
    assert_eq!((message.length, message.placed), (10, 4));
}
