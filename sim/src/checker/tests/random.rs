//! The checkers against the definition tried out, on random histories, good and spoilt.

use super::brute;
use super::world::{Random, Size, World, spoil};
use crate::checker::{Observation, Options, Violation, monitor, order, parse, print};

const TINY: Size = Size { steps: 16, peers: 2, tags: 4, pending_max: 4, cancels: true, in_order: false };

fn by_order(history: &[Observation], options: Options) -> Result<(), Violation> {
    match order::check(history, options)? {
        order::Verdict::Correct => Ok(()),
        order::Verdict::Undecided => monitor::check(history, options),
    }
}

fn size(seed: u64) -> Size {
    Size {
        steps: 6 + (seed % 20) as usize,
        peers: 1 + (seed % 3) as u32,
        tags: 1 + seed / 3 % 4,
        cancels: !seed.is_multiple_of(4),
        in_order: seed.is_multiple_of(5),
        ..TINY
    }
}

#[test]
fn correct_runs_are_accepted_by_all() {
    for seed in 0..10_000 {
        let history = World::run(&mut Random(seed), size(seed));
        let shown = || format!("seed {seed}\n{}", print(&history));
        assert!(brute::is_explained(&history, Options::default()), "{}", shown());
        if let Err(violation) = monitor::check(&history, Options::default()) {
            panic!("{violation}\n{}", shown());
        }
        if let Err(violation) = by_order(&history, Options::default()) {
            panic!("{violation}\n{}", shown());
        }
        assert_eq!(parse(&print(&history)).as_ref(), Ok(&history));
    }
}

#[test]
fn spoilt_runs_are_judged_as_by_trying_all_placements() {
    let mut wrong = 0;
    for seed in 0..20_000_u64 {
        let mut random = Random(seed ^ 0x5eed << 32);
        let mut history = World::run(&mut random, size(seed));
        for _ in 0..=random.below(2) {
            spoil(&mut random, &mut history);
        }
        let options = Options { acceptance_order: random.one_in(3), ..Options::default() };
        let explained = brute::is_explained(&history, options);
        let monitor = monitor::check(&history, options);
        let order = by_order(&history, options);
        assert!(
            monitor.is_ok() == explained && order.is_ok() == explained,
            "seed {seed}: explained {explained}, monitor {monitor:?}, order {order:?}\n{}",
            print(&history)
        );
        wrong += u32::from(!explained);
    }
    // Neither side must be rare: both kinds of mistake are looked for.
    assert!((5_000..18_000).contains(&wrong), "{wrong}");
}
