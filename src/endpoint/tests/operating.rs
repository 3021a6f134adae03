//! Operations on values of a peer's memory in all weathers, against values that are changed in the order of the calls.
#![expect(clippy::cast_possible_truncation, reason = "numbers are made small on purpose")]

use super::super::{Access, AtomicAccess, Completed, Config, Failure, Region, SendRefused};
use super::remote::{BASE, LENGTH, all, region, weather};
use super::sim::Sim;
use super::world::{Random, Weather};
use crate::atomics::{AtomicCall, AtomicOp, AtomicType};
use crate::endpoint::{Address, Endpoint};
use crate::seam::{Buffer, Segment};
use crate::wire::RemoteStretch;

/// Ask until it is taken.
fn operate(sim: &mut Sim, from: usize, access: &AtomicAccess<'_>) {
    for _ in 0..200_000 {
        match sim.at(from).operate(access) {
            Ok(()) => return sim.collect(from),
            Err(SendRefused::Again | SendRefused::Unreachable(_)) => sim.step(),
            Err(other) => panic!("refused: {other}"),
        }
    }
    panic!("never taken");
}

fn access<'a>(
    op: AtomicOp,
    of: AtomicType,
    operands: &'a [u8],
    remote: &'a [RemoteStretch],
) -> AtomicAccess<'a> {
    let (to, compares, fetched) = (Address(1), &[][..], None);
    AtomicAccess { to, op, of, operands, compares, fetched, remote, more: false, context: 1, flags: 3 }
}

fn stretch(place: u64, length: u64) -> RemoteStretch {
    RemoteStretch { key: 1, address: BASE + place, length }
}

/// An operation with its operands, drawn at random, on so many values.
struct Drawn {
    op: AtomicOp,
    of: AtomicType,
    fetches: bool,
    operands: Vec<u8>,
    compares: Vec<u8>,
    length: u64,
}

impl Drawn {
    fn new(random: &mut Random) -> Self {
        let of = AtomicType::ALL[random.below(AtomicType::ALL.len() as u64) as usize];
        let calls = [AtomicCall::Base, AtomicCall::Fetch, AtomicCall::Compare];
        let call = calls[random.below(3) as usize];
        let ops: Vec<AtomicOp> = AtomicOp::ALL.into_iter().filter(|op| op.is_valid(of, call)).collect();
        let op = ops[random.below(ops.len() as u64) as usize];
        let most = Endpoint::ATOMIC_MAX / of.size() as u64;
        let length = [1, 1 + random.below(most), most][random.below(3) as usize] * of.size() as u64;
        // Small values: comparisons go both ways.
        let mut values = |wanted: bool| match wanted {
            true => (0..length).map(|_| random.below(3) as u8).collect(),
            false => Vec::new(),
        };
        let (operands, compares) = (values(op.operands() > 0), values(op.compares()));
        Self { op, of, fetches: call != AtomicCall::Base, operands, compares, length }
    }

    /// What it makes of these bytes.
    fn apply(&self, there: &mut [u8]) {
        let size = self.of.size();
        for (index, value) in there.chunks_exact_mut(size).enumerate() {
            let of = |values: &[u8]| {
                values.get(index * size..(index + 1) * size).map_or(vec![0; size], <[u8]>::to_vec)
            };
            self.op.apply(self.of, value, &of(&self.operands), &of(&self.compares));
        }
    }
}

/// So many bytes as two segments at most and two stretches at most, each of whole values.
fn cut(random: &mut Random, length: u64, size: u64) -> [u64; 2] {
    let first = random.below(length / size) * size;
    [first, length - first]
}

#[test]
fn in_every_weather_each_operation_is_done_once_in_the_order_of_the_calls_and_what_was_there_comes_back() {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let mut sim = Sim::new(2, seed, weather(&mut random), Config::default());
        let theirs = region(&mut sim, 1);
        let mut model = all(&sim, theirs);
        let mut fetched = Vec::new();
        for context in 1..=120 {
            let drawn = Drawn::new(&mut random);
            let size = drawn.of.size() as u64;
            let place = random.below((LENGTH - 2 * drawn.length) / 16) * 16 % 4096;
            let there = &mut model[place as usize..][..drawn.length as usize];
            let before = there.to_vec();
            drawn.apply(there);
            let result = sim.world.allocate(&vec![0xEE; drawn.length as usize]);
            let segments: Vec<Segment> = cut(&mut random, drawn.length, size)
                .iter()
                .scan(result.address, |at, &length| {
                    let segment = Segment { address: *at, length, key: 0 };
                    *at += length;
                    Some(segment)
                })
                .filter(|segment| segment.length > 0)
                .collect();
            let [first, second] = cut(&mut random, drawn.length, size);
            let remote: Vec<RemoteStretch> = [stretch(place, first), stretch(place + first, second)]
                .into_iter()
                .filter(|stretch| stretch.length > 0)
                .collect();
            let access = AtomicAccess {
                compares: &drawn.compares,
                fetched: drawn.fetches.then_some(&segments[..]),
                context,
                ..access(drawn.op, drawn.of, &drawn.operands, &remote)
            };
            operate(&mut sim, 0, &access);
            fetched.push((context, drawn.fetches, result, before));
        }
        sim.until("all are told", |sim| (1..=120).all(|context| sim.of(0, context).len() == 1));
        assert!(all(&sim, theirs) == model, "seed {seed}");
        for (context, fetches, result, before) in fetched {
            let expected = if fetches { Completed::Read } else { Completed::Written };
            assert_eq!(sim.ended(0, context), expected, "seed {seed}");
            let came = all(&sim, result);
            assert!(!fetches || came == before, "seed {seed}: operation {context}");
            assert!(fetches || came.iter().all(|byte| *byte == 0xEE), "seed {seed}");
        }
        sim.until("nothing is left", |sim| (0..2).all(|at| sim.at(at).sends_in_progress() == 0));
    }
}

#[test]
fn what_several_peers_add_is_all_there_and_each_sees_another_total() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let mut sim = Sim::new(3, seed, weather(&mut random), Config::default());
        let theirs = region(&mut sim, 1);
        let one = 1_u64.to_ne_bytes();
        let mut results: Vec<Buffer> = Vec::new();
        for round in 0..30 {
            for from in [0, 1, 2] {
                let result = sim.world.allocate(&[0; 8]);
                let segments = [Segment { address: result.address, length: 8, key: 0 }];
                let remote = [stretch(1, 8)];
                let context = 10 * round + from as u64 + 1;
                let access = AtomicAccess {
                    fetched: Some(&segments),
                    context,
                    ..access(AtomicOp::Sum, AtomicType::U64, &one, &remote)
                };
                operate(&mut sim, from, &access);
                results.push(result);
            }
        }
        sim.until("all are told", |sim| sim.said.iter().flatten().count() == 90);
        assert_eq!(all(&sim, theirs)[1..9], 90_u64.to_ne_bytes(), "seed {seed}");
        let mut seen: Vec<u64> =
            results.iter().map(|result| u64::from_ne_bytes(all(&sim, *result).try_into().unwrap())).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..90).collect::<Vec<u64>>(), "seed {seed}");
    }
}

#[test]
fn memory_that_is_not_there_or_not_for_it_ends_the_operation_and_the_connection_stays() {
    let mut sim = Sim::new(2, 1, Weather::default(), Config::default());
    let theirs = region(&mut sim, 1);
    let buffer = sim.world.allocate(&[0; 8]);
    for (key, reads) in [(2, true), (3, false)] {
        let access = Access { reads, writes: !reads };
        sim.at(1).register(&Region { key, address: 0, buffer, access }).unwrap();
    }
    let result = sim.world.allocate(&[0; 8]);
    let segments = [Segment { address: result.address, length: 8, key: 0 }];
    let one = 1_u64.to_ne_bytes();
    let cases = [
        (9, 0, AtomicOp::Sum, false, Completed::Failed(Failure::NoRegion)),
        (9, 0, AtomicOp::Sum, true, Completed::Failed(Failure::NoRegion)),
        (1, BASE + LENGTH - 7, AtomicOp::Sum, true, Completed::Failed(Failure::OutOfBounds)),
        (2, 0, AtomicOp::Sum, false, Completed::Failed(Failure::NotAllowed)),
        (2, 0, AtomicOp::Sum, true, Completed::Failed(Failure::NotAllowed)),
        (2, 0, AtomicOp::Read, true, Completed::Read),
        (3, 0, AtomicOp::Read, true, Completed::Failed(Failure::NotAllowed)),
        (3, 0, AtomicOp::Sum, true, Completed::Failed(Failure::NotAllowed)),
        (3, 0, AtomicOp::Sum, false, Completed::Written),
        (1, BASE, AtomicOp::Write, false, Completed::Written),
    ];
    for (context, (key, address, op, fetches, expected)) in (1..).zip(cases) {
        let remote = [RemoteStretch { key, address, length: 8 }];
        let operands = if op == AtomicOp::Read { &[][..] } else { &one };
        let fetched = fetches.then_some(&segments[..]);
        operate(
            &mut sim,
            0,
            &AtomicAccess { fetched, context, ..access(op, AtomicType::U64, operands, &remote) },
        );
        assert_eq!(sim.ended(0, context), expected, "{op:?} by key {key}");
    }
    assert_eq!(all(&sim, buffer), one);
    assert_eq!(all(&sim, theirs)[..8], one);
}

#[test]
fn what_is_no_operation_is_refused_with_nothing_done() {
    let mut sim = Sim::new(2, 1, Weather::default(), Config::default());
    region(&mut sim, 1);
    let eight = [0; 8];
    let segments = [Segment { address: 1000, length: 8, key: 0 }];
    let uneven = [Segment { address: 1000, length: 3, key: 0 }, Segment { address: 2000, length: 5, key: 0 }];
    let one = [stretch(0, 8)];
    let long = [stretch(0, Endpoint::ATOMIC_MAX + 8)];
    let base = access(AtomicOp::Sum, AtomicType::U64, &eight, &one);
    let swap = AtomicAccess { op: AtomicOp::SwapIfEqual, compares: &eight, ..base };
    let refused = |access: AtomicAccess<'_>, sim: &mut Sim| sim.at(0).operate(&access).unwrap_err();
    let is_uneven = |error| matches!(error, SendRefused::Uneven { .. });
    for access in [
        AtomicAccess { op: AtomicOp::Read, ..base },
        AtomicAccess { op: AtomicOp::BitOr, of: AtomicType::F64, ..base },
        swap,
    ] {
        assert_eq!(refused(access, &mut sim), SendRefused::NoOperation, "{access:?}");
    }
    for access in [
        AtomicAccess { operands: &eight[..4], ..base },
        AtomicAccess { compares: &eight, ..base },
        AtomicAccess { fetched: Some(&segments), compares: &eight[..4], ..swap },
        AtomicAccess { fetched: Some(&uneven), ..base },
        AtomicAccess { fetched: Some(&[]), ..base },
        AtomicAccess { remote: &[], operands: &[], ..base },
        AtomicAccess { remote: &[stretch(0, 4), stretch(4, 4)], ..base },
    ] {
        assert!(is_uneven(refused(access, &mut sim)), "{access:?}");
    }
    let is_long = AtomicAccess { remote: &long, ..base };
    let limit = Endpoint::ATOMIC_MAX;
    assert_eq!(refused(is_long, &mut sim), SendRefused::TooLong { length: limit + 8, limit });
    assert_eq!(sim.at(0).sends_in_progress(), 0);
}
