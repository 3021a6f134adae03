//! Who lives, who has died, and who only says so: keepalive, pauses, deadlines, strangers.

use std::time::Duration;

use super::super::core::Core;
use super::super::links::Phase;
use super::super::peers::State;
use super::super::{Address, Completed, Config, Endpoint};
use super::sim::{Receive, Sim, bytes, message, name, receive};
use super::transport::SimTransport;
use super::world::Weather;
use crate::ids::PeerId;
use crate::wire::{Control, Credits, Keepalive};

fn core(sim: &mut Sim, at: usize) -> &mut Core {
    &mut sim.at(at).core
}

fn peer(sim: &mut Sim, at: usize, other: usize) -> PeerId {
    core(sim, at).peers.find(&name(other)).expect("it is known")
}

/// Two that are connected.
fn connected(config: Config, weather: Weather) -> Sim {
    let mut sim = Sim::new(2, 1, weather, config);
    sim.post(1, &receive(9, 8, 1));
    sim.send_bytes(0, 1, 9, b"hi", 1);
    assert_eq!(sim.received(1, 1).0, b"hi");
    sim
}

#[test]
fn questions_of_one_who_does_not_listen_have_one_answer() {
    let mut sim = connected(Config::default(), Weather::default());
    let other = peer(&mut sim, 1, 0);
    let question = Control::Keepalive(Keepalive { is_answer: false, sequence: 0 });
    for _ in 0..1000 {
        core(&mut sim, 1).note(other, question);
    }
    sim.progress(1);
    sim.world.lock().weather.full = 100;
    for _ in 0..100 {
        sim.world.lock().now += 1;
        sim.progress(0);
    }
    let other = peer(&mut sim, 0, 1);
    assert_eq!(core(&mut sim, 0).peers[other].notes.len(), 1);
    sim.world.lock().weather.full = 0;
    sim.steps(10);
    assert_eq!(core(&mut sim, 0).peers[other].notes.len(), 0);
    core(&mut sim, 1).peers[PeerId(0)].asked = None;
    let asker = peer(&mut sim, 1, 0);
    core(&mut sim, 1).ask(asker);
    sim.steps(10);
    assert_eq!(core(&mut sim, 1).peers[asker].asked, None, "the next question is answered too");
}

#[test]
fn a_peer_to_whom_more_is_to_be_said_than_it_can_have_asked_for_is_left() {
    let credits = Credits { headers: 10, eager_messages: 10, eager_bytes: 1 << 20 };
    let mut sim = connected(Config { credits, ..Config::default() }, Weather::default());
    let other = peer(&mut sim, 0, 1);
    sim.world.lock().weather.full = 100;
    let note = Control::Credit(Credits { headers: 0, eager_messages: 0, eager_bytes: 0 });
    (0..100).for_each(|_| core(&mut sim, 0).note(other, note));
    assert!(matches!(core(&mut sim, 0).peers[other].state, State::Connected(_)));
    (0..100).for_each(|_| core(&mut sim, 0).note(other, note));
    assert!(matches!(core(&mut sim, 0).peers[other].state, State::Leaving(_)));
    assert!(core(&mut sim, 0).peers[other].notes.len() < 150);
}

#[test]
fn whoever_was_not_asked_for_long_has_its_time_to_answer() {
    let config = Config { keepalive: Some(Duration::from_millis(100)), ..Config::default() };
    let mut sim = connected(config, Weather { delay: 20, ..Weather::default() });
    for pause in [150, 250, 900, 10_000] {
        sim.world.lock().now += pause;
        sim.steps(300);
        let lost = (sim.at(0).statistics().lost, sim.at(1).statistics().lost);
        assert_eq!(lost, (0, 0), "after {pause} ms");
    }
}

#[test]
fn who_stands_still_while_a_connection_is_made_makes_it_later() {
    for steps in 0..12 {
        for key in [None, Some(vec![1; 16])] {
            let weather = Weather { delay: 3, ..Weather::default() };
            let config = Config { job_key: key, ..Config::default() };
            let mut sim = Sim::new(2, steps, weather, config);
            let buffer = sim.world.allocate(b"m");
            let _ = sim.at(0).send(&message(1, 1, buffer, 100));
            sim.steps(usize::try_from(steps).expect("it is small"));
            sim.world.lock().now += 40_000;
            sim.send(0, &message(1, 1, buffer, 100));
            sim.post(1, &receive(1, 8, 1));
            assert_eq!(sim.received(1, 1).0, b"m");
            for at in 0..2 {
                assert_eq!(sim.at(at).statistics().connect_failed, 0, "{steps}");
            }
        }
    }
}

#[test]
fn one_of_two_that_stands_still_while_a_connection_is_made_makes_it_later() {
    for (steps, still) in (0..12).flat_map(|steps| [(steps, 0), (steps, 1)]) {
        let mut sim = Sim::new(2, steps, Weather { delay: 3, ..Weather::default() }, Config::default());
        let buffer = sim.world.allocate(b"m");
        let _ = sim.at(0).send(&message(1, 1, buffer, 100));
        sim.steps(usize::try_from(steps).expect("it is small"));
        for _ in 0..40_000 {
            sim.world.lock().now += 1;
            sim.progress(1 - still);
        }
        sim.send(0, &message(1, 1, buffer, 100));
        sim.post(1, &receive(1, 8, 1));
        assert_eq!(sim.received(1, 1).0, b"m");
        assert_eq!(sim.at(0).statistics().connect_failed, 0, "{steps} {still}");
    }
}

#[test]
fn a_link_whose_last_words_nobody_takes_is_ended_in_time() {
    let config = Config { peers_max: 0, ..Config::default() };
    let mut sim = Sim::strangers(2, 1, Weather { holds: true, ..Weather::default() }, config);
    sim.introduce(1, 0);
    let buffer = sim.world.allocate(b"m");
    let _ = sim.at(1).send(&message(0, 1, buffer, 100));
    sim.world.lock().now += 1;
    sim.progress(1);
    let mut was_closing = false;
    let patience = u64::try_from(Config::default().close_timeout.as_millis()).expect("it is short");
    for _ in 0..patience + 100 {
        sim.world.lock().now += 1;
        sim.progress(0);
        was_closing |= core(&mut sim, 0).links.iter().any(|(_, link)| link.phase == Phase::Closing);
    }
    assert!(was_closing, "it was refused");
    assert_eq!(core(&mut sim, 0).links.iter().count(), 0);
}

#[test]
fn strangers_under_ever_new_names_fill_nothing() {
    let config = Config { peers_max: 3, ..Config::default() };
    let mut sim = Sim::strangers(30, 1, Weather::default(), config);
    // What one of them leaves unexpected stays its own.
    sim.introduce(29, 0);
    sim.send_bytes(29, 0, 7, b"left behind", 1);
    sim.until("it is there", |sim| sim.at(0).depths(super::super::Space::Tagged).1 == 1);
    sim.kill(29, true);
    for at in 1..29 {
        sim.introduce(at, 0);
        sim.post(0, &Receive { source: None, ..receive(1, 100, at as u64) });
        sim.send_bytes(at, 0, 1, &bytes(at as u64, 50), 1);
        assert_eq!(sim.received(0, at as u64).0, bytes(at as u64, 50));
        sim.kill(at, at % 2 == 0);
        if at % 2 == 1 {
            // The next one makes room, when the dead is asked for nothing it can answer.
            let other = peer(&mut sim, 0, at);
            core(&mut sim, 0).ask(other);
        }
        sim.until("it is forgotten", |sim| core(sim, 0).peers.count() == 1);
    }
    sim.post(0, &receive(7, 100, 1000));
    let (got, what) = sim.received(0, 1000);
    assert_eq!((got, what.source), (b"left behind".to_vec(), None));
    assert_eq!(core(&mut sim, 0).peers.ids().count(), 2);
}

/// Somebody else under the name of node 1.
fn impostor(sim: &mut Sim, config: Config) {
    sim.kill(2, true);
    let transport = SimTransport::new(&sim.world, &name(1), config.eager_limit);
    sim.nodes[2] = transport.node();
    sim.endpoints[2] = Some(Endpoint::new(config, vec![Box::new(transport)]).expect("it can be"));
    sim.introduce(2, 0);
}

#[test]
fn who_only_says_that_it_is_a_peer_that_lives_gets_nowhere_until_that_has_died() {
    for told in [true, false] {
        let mut sim = Sim::new(3, 5, Weather { delay: 3, ..Weather::default() }, Config::default());
        sim.send_bytes(1, 0, 1, b"first", 1);
        sim.send_bytes(0, 1, 1, &bytes(1, 100_000), 2);
        impostor(&mut sim, Config::default());
        let buffer = sim.world.allocate(b"false");
        for _ in 0..500 {
            assert!(sim.at(2).send(&message(0, 2, buffer, 1)).is_err());
            sim.step();
        }
        assert_eq!((sim.at(0).statistics().lost, sim.at(0).statistics().restarted), (0, 0));
        sim.send_bytes(1, 0, 1, b"second", 3);
        for (context, text) in [(10, &b"first"[..]), (11, b"second")] {
            sim.post(0, &receive(1, 8, context));
            assert_eq!(sim.received(0, context).0, text);
        }
        assert_eq!(sim.of(0, 2), [], "what the peer has not read waits");
        sim.kill(1, told);
        sim.send(2, &message(0, 2, buffer, 1));
        assert_eq!(sim.ended(0, 2), Completed::Failed(super::super::Failure::Lost));
        sim.post(0, &receive(2, 8, 12));
        assert_eq!(sim.received(0, 12).0, b"false");
        assert_eq!(sim.at(0).statistics().lost, 1);
    }
}

#[test]
fn who_proves_that_it_is_the_next_life_of_a_silent_peer_is_believed_after_a_while() {
    let config = Config { job_key: Some(vec![5; 16]), ..Config::default() };
    let mut sim = Sim::new(3, 5, Weather::default(), config.clone());
    sim.send_bytes(1, 0, 1, b"first", 1);
    impostor(&mut sim, config);
    // The old life is there and says nothing.
    let old = sim.endpoints[1].take();
    let buffer = sim.world.allocate(b"next");
    sim.send(2, &message(0, 1, buffer, 1));
    assert!(sim.now() < Config::default().close_timeout * 2);
    for (context, text) in [(10, &b"first"[..]), (11, b"next")] {
        sim.post(0, &receive(1, 8, context));
        let (got, what) = sim.received(0, context);
        assert_eq!((got, what.source), (text.to_vec(), Some(Address(1))));
    }
    drop(old);
}
