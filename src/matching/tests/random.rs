//! Random operations against the oracle, in phases: few or many masks, short or long lists, growing or draining.

use super::world::{Random, World};
use super::{Config, Envelope, Pattern, Stay};
use crate::ids::{GroupId, Ignore, PeerId, Source, Tag};

/// What one phase asks for.
struct Phase {
    masks: Vec<u64>,
    tag_bits: u64,
    peers: u32,
    /// Percent of posts among posts and arrivals.
    posts: u64,
    /// Percent of operations that are neither.
    others: u64,
    sources: [u64; 3],
    operations: usize,
    depth_max: usize,
    stays: u64,
    regroups: u64,
}

fn phase(random: &mut Random, long: bool) -> Phase {
    let mask_count = random.pick(&[1, 1, 2, 3, 5, 16, 24]);
    let mut masks: Vec<u64> = (0..mask_count).map(|_| mask(random)).collect();
    if random.chance(50) {
        masks[0] = 0;
    }
    let depth_max =
        if long { random.pick(&[300, 1500, 4000]) } else { random.pick(&[2, 8, 15, 18, 40, 120]) };
    Phase {
        masks,
        tag_bits: random.pick(&[2, 3, 6, 12, 40]),
        peers: random.pick(&[1, 2, 5, 40]),
        posts: random.pick(&[20, 45, 50, 55, 80]),
        others: random.pick(&[0, 5, 40]),
        sources: random.pick(&[[100, 0, 0], [0, 100, 0], [30, 60, 10], [10, 10, 80]]),
        operations: if long { 3 * depth_max } else { random.pick(&[60, 300, 1000]) },
        depth_max,
        stays: random.pick(&[0, 0, 3]),
        regroups: random.pick(&[0, 0, 1, 5]),
    }
}

/// Few bits ignored, or nearly all, or as programs do.
fn mask(random: &mut Random) -> u64 {
    match random.below(4) {
        0 => 1 << random.below(4),
        1 => !(1 << random.below(4)),
        2 => random.pick(&[0x1_0000_0000, 0x1_7fff_ffff, 0x000f_fffd_7fff_ffff, u64::MAX]),
        _ => random.next() & random.next(),
    }
}

/// Tags that collide often, with bits high and low.
fn tag(random: &mut Random, bits: u64) -> Tag {
    let tag = random.next() & ((1 << bits) - 1);
    Tag(if random.chance(20) { tag.reverse_bits() } else { tag })
}

fn pattern(random: &mut Random, phase: &Phase) -> Pattern {
    let kind = random.next() % 100;
    let peer = random.next() % u64::from(phase.peers);
    let source = if kind < phase.sources[0] {
        Source::Any
    } else if kind < phase.sources[0] + phase.sources[1] {
        Source::Peer(PeerId(peer as u32))
    } else {
        Source::Group(GroupId(peer as u32 % 3))
    };
    Pattern { tag: tag(random, phase.tag_bits), ignore: Ignore(random.pick(&phase.masks)), source }
}

fn envelope(random: &mut Random, phase: &Phase) -> Envelope {
    let source = PeerId((random.next() % u64::from(phase.peers)) as u32);
    Envelope { tag: tag(random, phase.tag_bits), source }
}

fn step(world: &mut World, random: &mut Random, phase: &Phase) {
    if random.chance(phase.regroups) && random.chance(20) {
        let peer = PeerId((random.next() % u64::from(phase.peers)) as u32);
        match random.below(4) {
            0 => world.leave(peer),
            1 => world.resolve(PeerId(50 + peer.0), peer),
            2 => world.resolve(peer, PeerId(peer.0 ^ 1)),
            _ => world.join(peer, GroupId(random.next() as u32 % 3)),
        }
    }
    if random.chance(phase.others) {
        match random.below(4) {
            0 => world.peek(&pattern(random, phase), random.chance(50)),
            1 => world.look(&envelope(random, phase)),
            2 if !world.receives.is_empty() => world.cancel(random.below(world.receives.len())),
            3 if !world.messages.is_empty() => world.discard(random.below(world.messages.len())),
            _ => {}
        }
    }
    let full = world.matcher.posted_len() >= phase.depth_max;
    let flooded = world.matcher.unexpected_len() >= phase.depth_max;
    if (random.chance(phase.posts) || flooded) && !full {
        let stay = if random.chance(phase.stays) { Stay::Posted } else { Stay::Once };
        world.post(pattern(random, phase), stay);
    } else if !flooded {
        let mut envelope = envelope(random, phase);
        if random.chance(phase.regroups) {
            envelope.source.0 += 50;
        }
        world.arrive(envelope);
    } else if random.chance(50) && !world.receives.is_empty() {
        world.cancel(random.below(world.receives.len()));
    } else if !world.messages.is_empty() {
        world.discard(random.below(world.messages.len()));
    }
}

/// Some phases one after another, on lists that are left as they are between them; now and then emptied.
fn run(seed: u64, config: Config, phases: usize) -> u64 {
    let mut random = Random(seed);
    let mut world = World::new(config);
    for _ in 0..random.below(4) {
        let ignore = Ignore(mask(&mut random));
        world.matcher.declare(ignore, crate::matching::SourceKind::Any);
    }
    for number in 0..phases {
        let phase = phase(&mut random, number % 16 == 7);
        for step_number in 0..phase.operations {
            step(&mut world, &mut random, &phase);
            if step_number % 97 == 0 && world.matcher.posted_len() + world.matcher.unexpected_len() < 200 {
                world.compare();
            }
        }
        world.compare();
        if random.chance(70) {
            let keep = random.pick(&[0, 0, 1, 5]);
            while world.receives.len() > keep {
                world.cancel(random.below(world.receives.len()));
            }
            while world.messages.len() > keep {
                world.discard(random.below(world.messages.len()));
            }
            world.compare();
        }
    }
    world.operations
}

#[test]
fn random_operations_agree_with_the_oracle() {
    let operations: u64 = (0..80).map(|seed| run(seed, Config::default(), 32)).sum();
    assert!(operations > 1_000_000, "only {operations} operations");
}

#[test]
fn results_do_not_depend_on_the_hash_seed_or_the_dense_limit() {
    let mut operations = 0;
    for hash_seed in [1, 0xdead_beef, u64::MAX] {
        for dense_limit in [0, 1, 3, 16, 64] {
            operations += run(1000, Config { hash_seed, dense_limit }, 16);
        }
    }
    assert!(operations > 50_000, "only {operations} operations");
}
