//! Peers that say what they should not, on live connections: streams of good and of wrong frames, by seed, over sockets to
//! a whole endpoint (TCP, inbox, engines, with and without the soft TM-SRQ), which dials them too and sends to them. At
//! worst such a connection ends: an honest peer's messages arrive whole and in order all the while, operations end once,
//! nothing is written past a buffer, and memory stays within what credits allow.
#![cfg(target_os = "linux")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are outside test functions")]

#[path = "common/counting.rs"]
mod counting;
#[path = "hostile/frames.rs"]
mod frames;
#[path = "hostile/peer.rs"]
mod peer;
#[path = "hostile/target.rs"]
mod target;

use frames::Random;
use peer::{Peer, Seen};
use target::{Target, With};

/// Frames that each test sends at least, on connections that stood when they were taken.
const FRAMES: u64 = 500_000;
/// Peers that are connected at once.
const PEERS: usize = 3;
/// Frames after which everything is looked at.
const LOOK_EVERY: u64 = 2_000;

/// Attack one endpoint after the other until so many frames were taken.
fn attack(with: With, frames: u64, seeds: u64) {
    let mut seen = Seen::default();
    for seed in 0..seeds {
        let share = frames.div_ceil(seeds);
        attack_one(with, seed, share, &mut seen);
    }
    println!("{with:?}: {} frames on {} connections were taken: {seen:?}", seen.frames, seen.connections);
    assert!(seen.frames >= frames, "{seen:?}");
    seen.check_all(with);
}

fn attack_one(with: With, seed: u64, frames: u64, seen: &mut Seen) {
    let mut random = Random::new(seed);
    let mut target = Target::new(with);
    let mut peers: Vec<Peer> = (0..PEERS).map(|_| Peer::new(&target)).collect();
    for (number, peer) in (0..).zip(&peers) {
        target.know(number, peer.name());
    }
    let (mut next_look, mut steps) = (LOOK_EVERY, 0);
    let before = seen.frames;
    while seen.frames - before < frames {
        let which = random.below(PEERS);
        peers[which].step(which, &mut target, &mut random, seen);
        target.act(&mut random, PEERS);
        steps += 1;
        assert!(steps < 20_000_000, "seed {seed}: {seen:?}");
        if seen.frames - before >= next_look {
            next_look += LOOK_EVERY;
            if random.chance(500) {
                // Perhaps after they have all gone.
                peers.iter_mut().for_each(|peer| peer.leave(&mut target, &mut random, seen));
                target.check_rest(seed, seen);
            }
            target.check_honest(&mut random, seed);
        }
    }
    for peer in &mut peers {
        peer.leave(&mut target, &mut random, seen);
    }
    target.check_honest(&mut random, seed);
    target.end(seed, seen);
}

#[test]
fn hostile_frames_on_live_connections_do_no_harm() {
    attack(With::Software, FRAMES, 20);
}

#[test]
fn hostile_frames_on_live_connections_do_no_harm_where_a_device_matches() {
    attack(With::Device, FRAMES, 20);
}

#[test]
fn hostile_frames_on_live_connections_do_no_harm_where_a_job_has_a_key() {
    attack(With::Key, FRAMES / 25, 4);
}
