//! What senders are told of their messages where the numbers of their operations come again.

use super::super::{Completed, Failure, Level, PeekAction, Send, Space};
use super::sim::{Sim, message, receive};

/// Endpoint 1 sends to 0.
fn send(sim: &mut Sim, tag: u64, level: Level, context: u64) {
    let buffer = sim.world.allocate(b"said");
    sim.send(1, &Send { level, ..message(0, tag, buffer, context) });
}

fn waiting(sim: &mut Sim) -> usize {
    sim.at(0).core.awaited.len()
}

fn restart(sim: &mut Sim) {
    let lost = sim.at(0).statistics().lost;
    sim.kill(1, true);
    sim.until("it is lost", |sim| sim.at(0).statistics().lost > lost);
    sim.start(1);
    sim.introduce(1, 0);
}

#[test]
fn a_delivered_message_that_is_received_later_says_nothing_of_the_next_with_its_number() {
    for (first, second) in
        [(Level::Delivery, Level::Match), (Level::Delivery, Level::Delivery), (Level::Match, Level::Match)]
    {
        let mut sim = Sim::pair();
        send(&mut sim, 1, first, 100);
        if first == Level::Match {
            sim.post(0, &receive(1, 8, 1));
        }
        assert_eq!(sim.ended(1, 100), Completed::Sent);
        send(&mut sim, 2, second, 200);
        sim.until("it is there", |sim| sim.at(0).depths(Space::Tagged).1 > 0);
        if first == Level::Delivery {
            sim.post(0, &receive(1, 8, 1));
        }
        sim.received(0, 1);
        sim.steps(50);
        let told = if second == Level::Delivery { vec![Completed::Sent] } else { vec![] };
        assert_eq!(sim.of(1, 200), told, "{first:?} {second:?}");
        sim.post(0, &receive(2, 8, 2));
        sim.received(0, 2);
        assert_eq!(sim.ended(1, 200), Completed::Sent);
        assert_eq!(waiting(&mut sim), 0);
    }
}

#[test]
fn what_became_of_the_messages_of_one_life_is_not_told_to_the_next() {
    for action in [None, Some(PeekAction::Discard), Some(PeekAction::Claim)] {
        let mut sim = Sim::pair();
        send(&mut sim, 1, Level::Match, 100);
        sim.until("it is there", |sim| sim.at(0).depths(Space::Tagged).1 == 1);
        if action == Some(PeekAction::Claim) {
            sim.peek(0, 1, PeekAction::Claim, 10);
        }
        restart(&mut sim);
        send(&mut sim, 2, Level::Match, 200);
        sim.until("both are there", |sim| waiting(sim) == 2);
        sim.steps(20);
        match action {
            None => {
                sim.post(0, &receive(1, 8, 1));
                assert_eq!(sim.received(0, 1).0, b"said");
            }
            Some(PeekAction::Claim) => sim.at(0).discard_claimed(10, 0).expect("it was claimed"),
            Some(_) => assert!(matches!(sim.peek(0, 1, PeekAction::Discard, 10), Completed::Peeked(_))),
        }
        sim.steps(50);
        assert_eq!((sim.of(1, 200), waiting(&mut sim)), (vec![], 1), "{action:?}");
        sim.post(0, &receive(2, 8, 2));
        sim.received(0, 2);
        assert_eq!(sim.ended(1, 200), Completed::Sent);
        assert_eq!((waiting(&mut sim), sim.at(0).statistics().protocol_errors), (0, 0));
    }
}

#[test]
fn of_messages_whose_rest_never_comes_nothing_is_left() {
    for is_posted in [false, true] {
        let mut sim = Sim::pair();
        sim.send_bytes(1, 0, 9, b"", 1);
        for context in 100..105 {
            let buffer = sim.world.allocate(&[7; 10_000]);
            sim.send(1, &Send { level: Level::Delivery, ..message(0, context, buffer, context) });
            if is_posted {
                sim.post(0, &receive(context, 10_000, context));
            }
        }
        // Any part of them may have come.
        sim.steps(3);
        restart(&mut sim);
        sim.steps(50);
        while sim.at(0).depths(Space::Tagged).1 > 0 {
            let ignore = u64::MAX;
            let context = 1000 + sim.said[0].len() as u64;
            sim.post(0, &super::sim::Receive { ignore, ..receive(0, 10_000, context) });
            sim.ended(0, context);
        }
        let failed = Completed::Failed(Failure::Lost);
        assert!((100..105).all(|context| sim.of(0, context).len() < 2 || sim.of(0, context)[0] != failed));
        assert_eq!(waiting(&mut sim), 0, "posted: {is_posted}");
    }
}
