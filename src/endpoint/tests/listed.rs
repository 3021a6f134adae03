//! Endpoints over transports with a matching list: what the list takes, what it leaves, and what peers say that may not
//! be said to one.

use super::super::credits::Balance;
use super::super::{Address, Completed, Config, Level, Send, Space};
use super::sim::{Receive, Sim, bytes, message, receive};
use super::world::Weather;
use crate::ids::PeerId;
use crate::wire::Credits;

const LIMIT: usize = 1000;

fn config() -> Config {
    let credits = Credits { headers: 40, eager_messages: 4, eager_bytes: 3000 };
    Config { eager_limit: LIMIT as u64, credits, ..Config::default() }
}

/// What one may still send to another, and what the other still takes of it.
fn credit(sim: &mut Sim, from: usize, to: usize) -> (Credits, Credits) {
    let peer = |sim: &mut Sim, at: usize, other: usize| -> PeerId {
        sim.at(at).core.peers.at(Address(other as u64)).unwrap()
    };
    let (there, here) = (peer(sim, from, to), peer(sim, to, from));
    let balance = sim.at(from).core.peers[there].balance.left();
    (balance, sim.at(to).core.peers[here].allowance.left())
}

#[test]
fn messages_without_a_tag_arrive_unexpected_beside_such_with_one() {
    let mut sim = Sim::listed(2, 1, Weather { split: 50, ..Weather::default() }, config(), 8);
    for (context, length) in [(1, 0), (2, 500), (3, 60), (4, 5000), (5, 900)] {
        for space in [Space::Tagged, Space::Untagged] {
            let ours = 100 * (1 + space as u64) + context;
            let buffer = sim.world.allocate(&bytes(ours, length));
            sim.send(1, &Send { space, level: Level::Match, ..message(0, 7, buffer, ours) });
        }
        sim.until("both are there", |sim| {
            sim.at(0).depths(Space::Tagged).1 == 1 && sim.at(0).depths(Space::Untagged).1 == 1
        });
        for space in [Space::Untagged, Space::Tagged] {
            let theirs = 100 * (1 + space as u64) + context;
            sim.post(0, &Receive { space, ..receive(7, length, theirs) });
            assert_eq!(sim.received(0, theirs).0, bytes(theirs, length));
            assert_eq!(sim.ended(1, theirs), Completed::Sent);
        }
    }
}

#[test]
fn credit_is_the_same_on_both_sides_whatever_the_list_took_and_however_it_came() {
    let mut by_device = 0;
    for seed in 0..40 {
        let weather = Weather { delay: seed % 4, split: 60, full: 10, posted: 50, holds: false };
        let mut sim = Sim::listed(2, seed, weather, config(), 8);
        let mut random = super::world::Random::new(seed);
        let mut posted = 0;
        for context in 1..=150 {
            let length = [30, 200, 900, 1000, 3000][usize::try_from(random.below(5)).unwrap()];
            while posted < context + 2 {
                posted += 1;
                sim.post(0, &receive(7, LIMIT.max(3000), posted));
            }
            sim.send_bytes(1, 0, 7, &bytes(context, length), context);
            sim.steps(usize::try_from(random.below(3)).unwrap());
            assert_eq!(sim.at(0).statistics().protocol_errors, 0, "seed {seed}, message {context}");
        }
        sim.until("all is received", |sim| sim.at(0).statistics().received == 150);
        sim.steps(50);
        let (balance, allowance) = credit(&mut sim, 1, 0);
        assert_eq!(balance, allowance, "seed {seed}");
        assert!(sim.at(1).statistics().without_credit > 0);
        by_device += sim.at(0).statistics().matched_by_device;
    }
    assert!(by_device > 1000, "the list took {by_device}");
}

#[test]
fn a_peer_without_credit_is_heard_no_more() {
    for tags in [0, 8] {
        let mut sim = Sim::listed(3, 3, Weather::default(), config(), tags);
        sim.send_bytes(1, 0, 9, b"", 1);
        let peer = sim.at(1).core.peers.at(Address(0)).unwrap();
        let much = Credits { headers: 1000, eager_messages: 1000, eager_bytes: 1 << 30 };
        sim.at(1).core.peers[peer].balance = Balance::new(much);
        let (long, short) = (sim.world.allocate(&[1; LIMIT]), sim.world.allocate(&[1; 8]));
        for context in 100..200 {
            sim.at(1).send(&message(0, 5, long, context)).unwrap();
        }
        sim.at(1).send(&message(0, 6, short, 20)).unwrap();
        sim.at(1).send(&Send { space: Space::Untagged, ..message(0, 6, short, 21) }).unwrap();
        sim.steps(50);
        assert_eq!(sim.at(0).statistics().protocol_errors, 1);
        // It sees its end, and what came before it overdrew stands.
        assert_eq!(sim.at(1).statistics().lost, 1);
        assert_eq!(sim.at(0).depths(Space::Tagged), (0, 1 + 3));
        assert_eq!(sim.at(0).depths(Space::Untagged), (0, 0));
        // Others, and its next life, are heard as before, also by the list.
        for (context, from) in [(1, 2), (2, 1), (3, 2)] {
            sim.post(0, &receive(11, LIMIT, context));
            sim.send_bytes(from, 0, 11, b"next", 10);
            assert_eq!(sim.received(0, context).0, b"next");
        }
        assert_eq!(sim.at(0).statistics().matched_by_device > 0, tags > 0);
    }
}

#[test]
fn each_cancel_of_one_context_takes_another_receive_also_out_of_the_list() {
    let mut sim = Sim::listed(2, 4, Weather::default(), config(), 8);
    for order in 0..20 {
        sim.post(0, &receive(order, LIMIT, 5));
    }
    sim.steps(5);
    for _ in 0..20 {
        assert!(sim.at(0).cancel(5));
    }
    assert!(!sim.at(0).cancel(5));
    sim.until("all are cancelled", |sim| sim.of(0, 5).len() == 20);
    assert!(sim.of(0, 5).iter().all(|end| *end == Completed::Cancelled));
    assert_eq!(sim.at(0).depths(Space::Tagged), (0, 0));
}
