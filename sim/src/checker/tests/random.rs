//! The checkers against the definition tried out, on random histories, good and spoilt.

use super::brute;
use super::world::{Random, Size, World, lose_peer, spoil, swap_outcomes};
use crate::checker::{Monitor, Observation, Options, Violation, monitor, order, parse, print};

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

#[test]
fn two_outcomes_that_change_places_are_caught_unless_some_order_explains_them() {
    let (mut changed, mut caught) = (0, 0);
    for seed in 0..5_000_u64 {
        let mut random = Random(seed ^ 0x0070_5eed);
        let good = World::run(&mut random, size(seed));
        let mut history = good.clone();
        if !swap_outcomes(&mut random, &mut history) || history == good {
            continue;
        }
        changed += 1;
        let is_caught = monitor::check(&history, Options::default()).is_err();
        let shown = || format!("seed {seed}\n{}", print(&history));
        assert_eq!(by_order(&history, Options::default()).is_err(), is_caught, "{}", shown());
        assert_eq!(brute::is_explained(&history, Options::default()), !is_caught, "{}", shown());
        caught += u32::from(is_caught);
    }
    assert!(changed > 2_500 && caught * 100 > changed * 90, "{caught} of {changed}");
}

#[test]
fn runs_that_lose_a_peer_are_judged_as_by_trying_all_placements() {
    let (mut changed, mut wrong) = (0, 0);
    for seed in 0..10_000_u64 {
        let mut random = Random(seed ^ 0x1057_5eed);
        let mut history = World::run(&mut random, Size { in_order: true, ..size(seed) });
        if !lose_peer(&mut random, &mut history) {
            continue;
        }
        changed += 1;
        let monitor = monitor::check(&history, Options::default());
        let order = by_order(&history, Options::default());
        let explained = brute::is_explained(&history, Options::default());
        assert!(
            monitor.is_ok() == explained && order.is_ok() == explained,
            "seed {seed}: explained {explained}, monitor {monitor:?}, order {order:?}\n{}",
            print(&history)
        );
        wrong += u32::from(!explained);
    }
    assert!(changed > 2_000 && (changed / 10..changed).contains(&wrong), "{wrong} of {changed}");
}

#[test]
fn long_runs_with_many_operations_under_way_are_judged_alike() {
    let (mut under_way, mut wrong) = (0, 0);
    for seed in 0..200_u64 {
        let mut random = Random(seed ^ 0x10_5eed);
        let size = Size { steps: 1_000, peers: 6, tags: 8, pending_max: 100, ..size(seed) };
        let mut history = World::run(&mut random, size);
        assert_eq!(monitor::check(&history, Options::default()), Ok(()), "seed {seed}");
        assert_eq!(by_order(&history, Options::default()), Ok(()), "seed {seed}");
        under_way = under_way.max(most_under_way(&history));
        spoil(&mut random, &mut history);
        let (monitor, order) =
            (monitor::check(&history, Options::default()), by_order(&history, Options::default()));
        assert_eq!(monitor.is_ok(), order.is_ok(), "seed {seed}: {monitor:?}, {order:?}");
        wrong += u32::from(monitor.is_err());
    }
    assert!(under_way > 30, "{under_way}");
    assert!((50..200).contains(&wrong), "{wrong}");
}

#[test]
fn runs_with_equal_futures_are_equal() {
    let equal = |one: &str, two: &str| {
        let [one, two] = [one, two].map(|text| {
            let mut monitor = Monitor::new(Options::default());
            for observation in parse(text).unwrap() {
                monitor.observe(observation).unwrap();
            }
            monitor
        });
        one == two
    };
    let (post, other) = ("post r0 tag=1 ignore=0 src=1\n", "post r1 tag=1 ignore=0 src=2\n");
    let (first, second) = ("accept m0 src=1 sent=0 tag=1 path=0\n", "accept m1 src=2 sent=0 tag=1 path=1\n");
    // Acceptances commute; so do matches of what is not in each other's way.
    assert!(equal(&[first, second].concat(), &[second, first].concat()));
    let posts = [post, other].concat();
    assert!(equal(
        &[&posts, first, second, "decide m0 r0\n", "decide m1 r1\n"].concat(),
        &[&posts, second, "device m1 r1\n", first, "device m0 r0\n"].concat(),
    ));
    // What ended before something begins is remembered for as long as it waits, and no longer.
    let [early, late] = [
        [first, "decide m0 unexpected\n", second].concat(),
        [first, second, "decide m0 unexpected\n"].concat(),
    ];
    assert!(!equal(&early, &late));
    let over = "decide m1 unexpected\npost r2 tag=1 ignore=0 src=1 took m0\n";
    assert!(equal(&[&early, over].concat(), &[&late, over].concat()));
}

fn most_under_way(history: &[Observation]) -> usize {
    let (mut now, mut most) = (0_usize, 0);
    for observation in history {
        if matches!(observation, Observation::Accepted { .. }) {
            now += 1;
            most = most.max(now);
        } else if matches!(observation, Observation::Decided { .. } | Observation::MatchedByDevice { .. }) {
            now -= 1;
        }
    }
    most
}
