//! Bugs that are planted on purpose are found, and the scripts that show them are short.
//!
//! `cargo test -p tagmatch-sim --features ablation --test endpoint_seeds`

use tagmatch::offload::{Bug, plant};
use tagmatch_sim::schedules::run_seed;

use super::script::Script;
use super::{judged, shown};

/// Within so many seeds each must be found.
const SEEDS_MAX: u64 = 10_000;
/// Lines of a script at most that shows one.
const LINES_MAX: usize = 40;

/// The first seed whose run goes wrong.
fn first_seed(mut is_wrong: impl FnMut(u64) -> bool) -> u64 {
    let seed = (0..SEEDS_MAX).find(|&seed| is_wrong(seed));
    seed.unwrap_or_else(|| panic!("nothing is wrong in {SEEDS_MAX} seeds"))
}

fn found_by_endpoints(bug: Bug) {
    plant(Some(bug));
    let seed = first_seed(|seed| judged(&Script::draw(seed)).is_err());
    let script = Script::draw(seed);
    let shown = shown(&script);
    plant(None);
    println!("{bug:?}: seed {seed}, {shown}");
    let lines = shown.split(' ').next().and_then(|lines| lines.parse().ok());
    assert!(lines.is_some_and(|lines: usize| lines <= LINES_MAX), "{bug:?}: {shown}");
    assert!(judged(&script).is_ok(), "seed {seed} is wrong without {bug:?}");
}

#[test]
fn a_lost_wake_up_is_found() {
    found_by_endpoints(Bug::LostWakeUp);
}

#[test]
fn a_stale_handle_is_found() {
    found_by_endpoints(Bug::StaleHandle);
}

#[test]
fn an_order_across_paths_that_is_not_kept_is_found() {
    found_by_endpoints(Bug::OrderAcrossPaths);
}

#[test]
fn a_double_completion_is_found() {
    found_by_endpoints(Bug::DoubleCompletion);
}

/// Counters turn in the schedules of engine and devices, which begin just below; not in endpoints, which begin at 0.
#[test]
fn a_counter_that_turns_one_too_early_is_found() {
    plant(Some(Bug::WrapOffByOne));
    let seed = first_seed(|seed| run_seed(seed).is_err());
    plant(None);
    println!("{:?}: seed {seed}", Bug::WrapOffByOne);
    assert!(run_seed(seed).is_ok(), "seed {seed} is wrong without it");
}
