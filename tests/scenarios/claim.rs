//! Peek, claim and discard: B08, B10, B13 to B16.

use tagmatch::device::soft::{SoftConfig, SoftMessage, Step, Switches, switches};
use tagmatch::ids::PeerId;

use crate::world::{
    EAGER_LIMIT, NIC, PLAIN, Shape, World, count_up, each_way, each_way_stepped, exact, nic, plain,
};

const PEER: u32 = 1;
const IMMEDIATE: u32 = 0x1122_3344;

#[test]
fn b08_a_peek_that_finds_nothing_posts_nothing() {
    for (mut world, device) in each_way() {
        assert!(!world.peek(exact(9)));
        assert!(!world.discard(exact(9)));
        assert!(world.claim(exact(9)).is_none());
        world.send(device, PEER, 9, b"m");
        world.finish();
        assert_eq!(world.engine.depths(), (0, 1), "the message is unexpected");
        assert!(world.peek(exact(9)));
        assert_eq!(world.engine.depths(), (0, 1), "a peek changes nothing");
    }
}

#[test]
fn b10_remote_data_of_an_empty_message_shows_in_peek_claim_and_receive() {
    for (mut world, device) in each_way() {
        let message = world.prepare(Shape::Eager, 4, b"");
        world.send_prepared(device, PEER, SoftMessage { immediate: Some(IMMEDIATE), ..message });
        world.send(device, PEER, 5, b"");
        world.run();
        let peeked = world.engine.peek(&exact(4)).unwrap();
        assert_eq!((peeked.immediate, peeked.tag.0, peeked.length), (Some(IMMEDIATE), 4, 0));
        let claim = world.claim(exact(4)).unwrap();
        world.receive_claimed("k", claim, 8);
        assert_eq!(world.engine.peek(&exact(5)).unwrap().immediate, None);
        world.post("plain", exact(5), 8);
        world.finish();
        assert_eq!((world.message("k").immediate, world.message("k").length), (Some(IMMEDIATE), 0));
        assert_eq!(world.message("plain").immediate, None);
    }
}

#[test]
fn b10_remote_data_reaches_a_posted_receive_however_the_message_comes() {
    for immediate_on in [switches::ImmediateOn::Expected, switches::ImmediateOn::Consumed] {
        for rendezvous in [true, false] {
            for shape in Shape::ALL {
                let switches = Switches { immediate_on, ..Switches::default() };
                let config = SoftConfig { rendezvous, switches, ..nic(4) };
                for device in [NIC, PLAIN] {
                    let mut world = World::new(&[config, plain()]);
                    world.post("c", exact(4), 128);
                    world.run();
                    let message = world.prepare(shape, 4, &count_up(100));
                    world.send_prepared(device, PEER, SoftMessage { immediate: Some(IMMEDIATE), ..message });
                    world.finish();
                    assert_eq!(world.message("c").immediate, Some(IMMEDIATE), "{shape:?}");
                }
            }
        }
    }
}

#[test]
fn b13_a_claimed_or_discarded_message_is_out_of_everyone_elses_sight() {
    for (shape, length) in [
        (Shape::Eager, 1),
        (Shape::Eager, EAGER_LIMIT),
        (Shape::Packets(3), EAGER_LIMIT),
        (Shape::Rendezvous, 1000),
    ] {
        for (mut world, device) in each_way() {
            let payload = |first: u8| [&[first], &count_up(length - 1)[..]].concat();
            let send = |world: &mut World, first| {
                let number = world.send_as(shape, device, PEER, 7, &payload(first));
                world.run();
                number
            };
            send(&mut world, 1);
            let claim = world.claim(exact(7)).unwrap();
            assert!(!world.peek(exact(7)));
            world.post("r1", exact(7), length);
            world.run();
            assert!(world.is_open("r1"));
            assert!(world.receive_claimed("k1", claim, length));
            send(&mut world, 2);
            assert_eq!((world.received("k1"), world.received("r1")), (payload(1), payload(2)));

            send(&mut world, 3);
            let claim = world.claim(exact(7)).unwrap();
            assert!(world.discard_claimed(claim));
            assert!(!world.peek(exact(7)));

            send(&mut world, 4);
            assert!(world.discard(exact(7)));
            assert!(!world.peek(exact(7)));
            send(&mut world, 5);
            world.post("r2", exact(7), length);
            world.finish();
            assert_eq!(world.received("r2"), payload(5));
            assert_eq!(world.engine.depths(), (0, 0));
        }
    }
}

#[test]
fn b13_a_message_claimed_or_discarded_while_its_data_arrives_is_gone_as_well() {
    for discard in [false, true] {
        for (mut world, _) in each_way_stepped() {
            world.run();
            world.send_as(Shape::Packets(3), PLAIN, PEER, 7, b"first");
            world.step(PLAIN, Step::Accept(PeerId(PEER)));
            world.poll(PLAIN);
            let claim = (!discard).then(|| world.claim(exact(7)).unwrap());
            assert!(!discard || world.discard(exact(7)));
            world.post("r", exact(7), 128);
            world.step(PLAIN, Step::Packet(PeerId(PEER)));
            if let Some(claim) = claim {
                assert!(world.receive_claimed("k", claim, 128));
            }
            world.run();
            assert!(world.is_open("r"));
            world.send(PLAIN, PEER, 7, b"second");
            world.finish();
            assert_eq!(world.text("r"), "second");
            assert!(discard || world.text("k") == "first");
        }
    }
}

#[test]
fn b14_the_sender_of_a_discarded_rendezvous_is_told_once() {
    for claimed in [false, true] {
        for (mut world, device) in each_way() {
            let number = world.send_as(Shape::Rendezvous, device, PEER, 8, &count_up(1000));
            world.run();
            assert_eq!(world.finished(number), 0, "it is neither received nor discarded");
            if claimed {
                let claim = world.claim(exact(8)).unwrap();
                assert_eq!(world.finished(number), 0);
                assert!(world.discard_claimed(claim));
                assert!(!world.discard_claimed(claim));
            } else {
                assert!(world.discard(exact(8)));
            }
            world.finish();
            assert_eq!((world.finished(number), world.engine.depths()), (1, (0, 0)));
        }
    }
}

#[test]
fn b14_the_sender_of_a_rendezvous_is_told_once_whoever_reads_it() {
    use switches::{FinOrder, HandBack};
    for hand_back in [HandBack::One, HandBack::ThenExpected, HandBack::ThenCanceled] {
        for fin_order in [FinOrder::BeforeExpected, FinOrder::AfterExpected] {
            for (rendezvous, length) in [(true, 1000), (true, 200), (false, 1000)] {
                let switches = Switches { hand_back, fin_order, ..Switches::default() };
                let mut world = World::new(&[SoftConfig { rendezvous, switches, ..nic(4) }, plain()]);
                world.post("c", exact(8), length);
                world.run();
                let number = world.send_as(Shape::Rendezvous, NIC, PEER, 8, &count_up(1000));
                world.finish();
                assert_eq!(world.finished(number), 1);
                assert_eq!(world.received("c"), count_up(length));
            }
        }
    }
}

#[test]
fn b15_messages_of_no_bytes_are_messages_in_every_call() {
    for shape in [Shape::Eager, Shape::Rendezvous] {
        for (mut world, device) in each_way() {
            for _ in 0..4 {
                world.send_as(shape, device, PEER, 2, b"");
            }
            world.run();
            assert!(world.peek(exact(2)));
            let claim = world.claim(exact(2)).unwrap();
            assert!(world.receive_claimed("claimed", claim, 0));
            assert!(world.discard(exact(2)));
            let claim = world.claim(exact(2)).unwrap();
            assert!(world.discard_claimed(claim));
            world.post("plain", exact(2), 0);
            world.post("posted", exact(2), 0);
            world.run();
            world.send_as(shape, device, PEER, 2, b"");
            world.finish();
            for name in ["claimed", "plain", "posted"] {
                let message = world.message(name);
                assert_eq!((message.length, message.is_truncated()), (0, false), "{name}");
            }
            assert_eq!(world.engine.depths(), (0, 0));
        }
    }
}

#[test]
fn b15_an_entry_without_memory_matches_and_completes() {
    use switches::EmptyRendezvous;
    for empty_rendezvous in [EmptyRendezvous::Completes, EmptyRendezvous::HandedBack] {
        for shape in [Shape::Eager, Shape::Rendezvous] {
            // With an eager limit of 0 an empty buffer needs no bounce buffer.
            let switches = Switches { empty_rendezvous, ..Switches::default() };
            let mut world = World::new(&[SoftConfig { eager_limit: 0, switches, ..nic(4) }]);
            world.post("c", exact(2), 0);
            world.run();
            assert_eq!(world.devices[NIC].list().unwrap().entries()[0].buffer.length, 0);
            world.send_as(shape, NIC, PEER, 2, b"");
            world.finish();
            assert_eq!(world.message("c").length, 0);
            assert_eq!(world.engine.statistics().matched_by_device, 1);
        }
    }
}

#[test]
fn b16_a_claim_is_good_for_one_use_and_a_stale_one_names_nothing() {
    for (mut world, device) in each_way() {
        world.send(device, PEER, 1, b"one");
        world.send(device, PEER, 2, b"two");
        world.run();
        let first = world.claim(exact(1)).unwrap();
        assert!(world.receive_claimed("one", first, 8));
        let second = world.claim(exact(2)).unwrap();
        assert!(!world.receive_claimed("again", first, 8), "used up");
        assert!(!world.discard_claimed(first));
        assert!(world.receive_claimed("two", second, 8));
        assert!(!world.discard_claimed(second));
        world.finish();
        assert_eq!((world.text("one"), world.text("two")), ("one".into(), "two".into()));
    }
}
