//! Remote memory access in all weathers: against memory that is written in the order of the calls, and with connections
//! that are cut.
#![expect(clippy::cast_possible_truncation, reason = "numbers are made small on purpose")]

use super::super::{Access, Completed, Config, Failure, Local, Region, RemoteAccess, Send, SendRefused};
use super::sim::{Sim, message, receive};
use super::world::{Random, Weather};
use crate::endpoint::Address;
use crate::seam::{Buffer, Segment};
use crate::wire::RemoteStretch;

pub(super) const LENGTH: u64 = 100_000;
pub(super) const BASE: u64 = 7;

/// An access of one segment and one stretch of the region with key 1.
fn ask(sim: &mut Sim, from: usize, to: usize, is_read: bool, here: Buffer, place: u64, context: u64) {
    let segments = [Segment { address: here.address, length: here.length, key: 0 }];
    let remote = [RemoteStretch { key: 1, address: BASE + place, length: here.length }];
    let (to, local) = (Address(to as u64), Local::Memory(&segments));
    let access = RemoteAccess { to, local, remote: &remote, cq_data: None, more: false, context, flags: 3 };
    for _ in 0..200_000 {
        let endpoint = sim.at(from);
        match if is_read { endpoint.read(&access) } else { endpoint.write(&access) } {
            Ok(()) => return sim.collect(from),
            Err(SendRefused::Again | SendRefused::Unreachable(_)) => sim.step(),
            Err(other) => panic!("refused: {other}"),
        }
    }
    panic!("never taken");
}

pub(super) fn region(sim: &mut Sim, at: usize) -> Buffer {
    let buffer = sim.world.allocate(&vec![0; usize::try_from(LENGTH).unwrap()]);
    let access = Access { reads: true, writes: true };
    sim.at(at).register(&Region { key: 1, address: BASE, buffer, access }).unwrap();
    buffer
}

pub(super) fn all(sim: &Sim, buffer: Buffer) -> Vec<u8> {
    sim.world.read(buffer.address, buffer.length)
}

pub(super) fn weather(random: &mut Random) -> Weather {
    let mut pick = |most: u64| random.below(2) * random.below(most);
    Weather { delay: pick(30), split: pick(100), full: pick(60), posted: pick(100), holds: false }
}

#[test]
fn in_every_weather_memory_is_as_if_each_access_were_done_when_it_was_asked_for() {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let config = Config { eager_limit: [1000, 16 << 10][(seed % 2) as usize], ..Config::default() };
        let mut sim = Sim::new(2, seed, weather(&mut random), config);
        let theirs = region(&mut sim, 1);
        let mut model = all(&sim, theirs);
        let mut context = 0;
        for round in 0..12 {
            // Writes, and a message behind them: when it is there, so are they.
            for _ in 0..random.below(6) {
                let length = [1, 64, 900, 5000, 40_000][random.below(5) as usize];
                let place = random.below(LENGTH - length);
                let text: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
                let here = sim.world.allocate(&text);
                model[place as usize..][..length as usize].copy_from_slice(&text);
                context += 1;
                ask(&mut sim, 0, 1, false, here, place, context);
            }
            let after = sim.world.allocate(b"after");
            sim.send(0, &Send { flags: 0, ..message(1, round, after, 0) });
            sim.post(1, &receive(round, 8, 5));
            let mut reads = Vec::new();
            for _ in 0..random.below(4) {
                let length = [0, 1, 3000, 50_000][random.below(4) as usize];
                let place = random.below(LENGTH - length);
                let here = sim.world.allocate(&vec![0xEE; length as usize]);
                context += 1;
                ask(&mut sim, 0, 1, true, here, place, context);
                reads.push((context, here, place as usize));
            }
            sim.until("a message comes", |sim| sim.of(1, 5).len() == round as usize + 1);
            assert!(all(&sim, theirs) == model, "seed {seed}: a message was there before a write before it");
            for (context, here, place) in reads {
                assert_eq!(sim.ended(0, context), Completed::Read, "seed {seed}");
                assert!(all(&sim, here) == model[place..][..here.length as usize], "seed {seed}");
            }
        }
        sim.until("all are told", |sim| (1..=context).all(|context| sim.of(0, context).len() == 1));
        assert!(all(&sim, theirs) == model, "seed {seed}");
        sim.until("nothing is left", |sim| (0..2).all(|at| sim.at(at).sends_in_progress() == 0));
    }
}

#[test]
fn connections_that_are_cut_end_each_access_once_and_regions_are_free_afterwards() {
    for seed in 0..80 {
        let mut random = Random::new(seed);
        let mut sim = Sim::new(2, seed, weather(&mut random), Config::default());
        let regions = [region(&mut sim, 0), region(&mut sim, 1)];
        let mut context = 0;
        for _ in 0..6 {
            for _ in 0..random.below(8) {
                let length = [0, 10, 3000, 40_000][random.below(4) as usize];
                let here = sim.world.allocate(&vec![1; length as usize]);
                context += 1;
                let from = random.below(2) as usize;
                let to = if random.chance(80) { 1 - from } else { from };
                let context = 10 * context + from as u64;
                ask(&mut sim, from, to, random.chance(50), here, random.below(LENGTH - length), context);
            }
            sim.steps(random.below(20) as usize);
            let connections = sim.world.lock().connections.len() as u64;
            if connections > 0 {
                let which = random.below(connections) as usize;
                sim.world.lock().cut(which);
            }
        }
        // Whatever the weather, a region is free as soon as it says so, and nobody gets at it then.
        for at in 0..2 {
            if let Some(withdrawn) = sim.at(at).withdraw_region(1) {
                sim.until("nobody is at it", |sim| !sim.at(at).is_in_use(withdrawn));
            }
        }
        let before = regions.map(|region| all(&sim, region));
        sim.until("all are told", |sim| {
            (1..=context).all(|number| {
                (0..2).map(|from| sim.of(from, 10 * number + from as u64).len()).sum::<usize>() == 1
            })
        });
        assert!(before == regions.map(|region| all(&sim, region)), "seed {seed}: written after it was free");
        for said in sim.said.iter().flatten() {
            let is_end = matches!(
                said.what,
                Completed::Written | Completed::Read | Completed::Failed(Failure::Lost | Failure::NoRegion)
            );
            assert!(is_end && said.flags == 3, "seed {seed}: {said:?}");
        }
        sim.until("nothing is left", |sim| (0..2).all(|at| sim.at(at).sends_in_progress() == 0));
    }
}

#[test]
fn memory_that_cannot_be_sent_from_ends_its_access_alone() {
    for posted in [0, 100] {
        let mut sim = Sim::new(2, 1, Weather { posted, ..Weather::default() }, Config::default());
        let theirs = region(&mut sim, 1);
        let here = sim.world.allocate(&[1; 100]);
        ask(&mut sim, 0, 1, false, here, 0, 1);
        assert_eq!(sim.ended(0, 1), Completed::Written);
        sim.world.lock().unreadable.insert(here.address);
        ask(&mut sim, 0, 1, false, here, 200, 2);
        assert_eq!(sim.ended(0, 2), Completed::Failed(Failure::Memory), "{posted}");
        assert!(all(&sim, theirs)[200..300] == [0; 100]);
        let good = sim.world.allocate(&[2; 100]);
        ask(&mut sim, 0, 1, false, good, 300, 3);
        assert_eq!(sim.ended(0, 3), Completed::Written);
    }
}

/// Messages on their way.
fn under_way(sim: &Sim) -> usize {
    sim.world
        .lock()
        .connections
        .iter()
        .flat_map(|connection| &connection.queues)
        .map(|queue| queue.len())
        .sum()
}

#[test]
fn a_peer_that_takes_nothing_eagerly_is_not_served_a_byte_at_a_time() {
    const TEXT: [u8; 6400] = [7; 6400];
    const PIECES: usize = 100;
    let config = Config { eager_limit: 0, segmented_limit: 10_000, ..Config::default() };
    let mut sim = Sim::new(2, 1, Weather::default(), config);
    let theirs = region(&mut sim, 1);
    let here = sim.world.allocate(&TEXT);
    ask(&mut sim, 0, 1, false, here, 0, 1);
    assert_eq!(under_way(&sim), PIECES, "a write");
    sim.until("it is written", |sim| sim.of(0, 1) == [Completed::Written]);
    sim.send(0, &Send { flags: 0, ..message(1, 2, here, 3) });
    assert_eq!(under_way(&sim), PIECES, "a message in segments");
    sim.post(1, &receive(2, TEXT.len(), 5));
    assert_eq!(sim.received(1, 5).0, TEXT);
    sim.until("it is over", |sim| under_way(sim) == 0);
    let back = sim.world.allocate(&[0; TEXT.len()]);
    ask(&mut sim, 0, 1, true, back, 0, 4);
    assert_eq!(under_way(&sim), 1, "a read is asked for");
    while under_way(&sim) == 1 {
        sim.world.lock().now += 1;
        sim.progress(1);
    }
    assert_eq!(under_way(&sim), PIECES, "what is read");
    sim.until("it is read", |sim| sim.of(0, 4) == [Completed::Read]);
    assert_eq!(all(&sim, back), TEXT);
    assert_eq!(sim.world.read(theirs.address, TEXT.len() as u64), TEXT);
}
