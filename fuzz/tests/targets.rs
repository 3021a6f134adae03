//! Every target on stable Rust, without coverage: what was kept, and inputs drawn by seed. A million in all.
#![allow(clippy::panic, reason = "helpers of tests are outside test functions")]

#[path = "../../tests/common/counting.rs"]
mod counting;

use tagmatch_fuzz::inputs::Inputs;
use tagmatch_fuzz::{TARGETS, Target, target};

/// Run, and look at the memory in use. True: it got past the first checks.
fn judge(target: &Target, input: &[u8]) -> bool {
    let (understood, most) = counting::most_bytes_of(|| (target.run)(input));
    let allowed = target.memory_max + 64 * input.len();
    assert!(
        most <= allowed,
        "{}: {most} bytes of memory for {input:02x?}, {allowed} are allowed",
        target.name
    );
    understood
}

fn draw(name: &str, count: u32, understood_least: u32) {
    let it = target(name).unwrap_or_else(|| panic!("no target {name}"));
    let seeds = it.inputs();
    for seed in seeds.iter().flatten() {
        judge(it, seed);
    }
    let mut understood = 0;
    let mut inputs = Inputs::new(1, seeds, it.length_max);
    for _ in 0..count {
        understood += u32::from(judge(it, inputs.draw()));
    }
    assert!(understood >= understood_least, "only {understood} of {count} got past the first checks");
}

#[test]
fn messages_of_peers() {
    draw("wire", 700_000, 20_000);
}

#[test]
fn recorded_traces() {
    draw("traces", 40_000, 2_000);
}

#[test]
fn parameters_of_the_environment() {
    draw("environment", 100_000, 10_000);
}

#[test]
fn addresses() {
    draw("names", 100_000, 10_000);
}

#[test]
fn statistics_of_processes() {
    draw("reports", 100_000, 1_000);
}

#[test]
fn devices_that_break_their_contract() {
    draw("engine", 60_000, 30_000);
}

#[test]
fn every_target_is_drawn_here() {
    assert_eq!(TARGETS.len(), 6, "a target without a test");
}
