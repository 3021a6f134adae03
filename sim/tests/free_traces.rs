//! The recorded traces by free schedules: arrivals race posts.
#![allow(clippy::panic, reason = "helpers of tests are outside test functions")]

use std::sync::Arc;
use std::sync::Mutex;

use tagmatch::traces::layout::{self, Layout};
use tagmatch::traces::{Trace, bundled};
use tagmatch_sim::free::{Over, certain_pairs, run, scope};

/// Schedules for each combination of trace, list size and kind of paths: twelve combinations of each trace, and twice as
/// many schedules of those that are not long.
fn schedules(trace: &Trace) -> u64 {
    let usual = if trace.steps.len() <= 15_000 { 2 } else { 1 };
    match std::env::var("TAGMATCH_SCHEDULES") {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("TAGMATCH_SCHEDULES={text} is not a number")),
        Err(_) => usual,
    }
}

/// Number of traces whose pairs do not depend on the schedule.
const CERTAIN: usize = 9;

fn check(trace: &Trace, expected: Option<&Vec<(u32, u32)>>, over: Over) {
    let scope = Arc::new(scope(trace, over));
    for seed in 0..schedules(trace) {
        let pairs = run(&scope, seed * 1000 + u64::from(over.tags));
        assert!(pairs.is_ok(), "{} {over:?} seed {seed}: {pairs:?}", scope.name);
        if let (Some(expected), Ok(pairs)) = (expected, pairs) {
            assert!(*expected == pairs, "{} {over:?} seed {seed}: other pairs", scope.name);
        }
    }
}

fn over_lists_of(tags: u32) {
    let next = Mutex::new(bundled().iter());
    let certain = Mutex::new(0);
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                loop {
                    let bundle = next.lock().expect("no thread failed").next();
                    let Some(bundle) = bundle else { break };
                    let recorded = bundle.read().expect("the bundled traces are good");
                    let expected = certain_pairs(&recorded);
                    *certain.lock().expect("no thread failed") += usize::from(expected.is_some());
                    let by_tag = layout::apply(Layout::SourceInTag, recorded.clone()).unwrap_or(recorded);
                    for (devices, second_path) in [(1, false), (1, true), (2, false)] {
                        check(&by_tag, expected.as_ref(), Over { tags, devices, second_path });
                    }
                }
            });
        }
    });
    let certain = certain.into_inner().expect("no thread failed");
    assert!(certain >= CERTAIN, "only {certain} traces have certain pairs");
}

#[test]
fn free_schedules_of_every_trace_are_correct_over_lists_of_1() {
    over_lists_of(1);
}

#[test]
fn free_schedules_of_every_trace_are_correct_over_lists_of_2() {
    over_lists_of(2);
}

#[test]
fn free_schedules_of_every_trace_are_correct_over_lists_of_127() {
    over_lists_of(127);
}

#[test]
fn free_schedules_of_every_trace_are_correct_over_lists_of_1024() {
    over_lists_of(1024);
}
