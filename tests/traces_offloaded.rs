//! Every bundled trace through the engine and soft devices, in many schedules: no disagreement with what the run
//! itself did.
#![cfg(feature = "traces")]

use tagmatch::replay::{self, Offload, Schedule, Settings};
use tagmatch::traces::layout::{self, Layout};
use tagmatch::traces::{Trace, bundled};

/// Schedules for each combination of trace, list size and kind of paths.
const SCHEDULES: u64 = 20;

fn replay(trace: &Trace, settings: Settings) -> u64 {
    let mut target = Offload::new(settings, trace.counts()).expect("devices of a sane size");
    let report = replay::run(trace, &mut target);
    assert!(report.is_exact(), "{} {settings:?}: {report:#?}", trace.short_name());
    assert_eq!(report.checked, trace.steps.len() as u64);
    target.statistics().matched_by_device
}

fn traces() -> impl Iterator<Item = Trace> {
    bundled().iter().map(|bundled| bundled.read().expect("the bundled traces are good"))
}

fn settings(tags: u32, seed: u64) -> Settings {
    Settings { tags, devices: 1, second_path: false, schedule: Schedule::Random(seed), seed }
}

fn in_list_of(tags: u32) {
    for trace in traces() {
        let by_tag = layout::apply(Layout::SourceInTag, trace.clone()).unwrap_or(trace);
        let mut in_hardware = 0;
        for seed in 0..SCHEDULES {
            in_hardware += replay(&by_tag, settings(tags, seed));
        }
        if tags >= 127 {
            assert!(in_hardware > 0, "{}: the device matched nothing", by_tag.short_name());
        }
    }
}

#[test]
fn every_trace_gives_its_results_in_software() {
    for trace in traces() {
        for seed in 0..SCHEDULES {
            replay(&trace, settings(0, seed));
        }
        replay(&trace, Settings { schedule: Schedule::Prompt, ..settings(0, 0) });
    }
}

/// Most receives name a source that their tag does not, and stay in software between those that are for anybody.
#[test]
fn every_trace_as_recorded_gives_its_results_through_a_list_of_any_length() {
    let mut in_hardware = 0;
    for trace in traces() {
        for tags in [1, 2, 127, 1024] {
            in_hardware += (0..SCHEDULES).map(|seed| replay(&trace, settings(tags, seed))).sum::<u64>();
        }
    }
    assert!(in_hardware > 0, "the device matched nothing");
}

#[test]
fn every_trace_gives_its_results_through_a_list_of_1() {
    in_list_of(1);
}

#[test]
fn every_trace_gives_its_results_through_a_list_of_2() {
    in_list_of(2);
}

#[test]
fn every_trace_gives_its_results_through_a_list_of_127() {
    in_list_of(127);
}

#[test]
fn every_trace_gives_its_results_through_a_list_of_1024() {
    in_list_of(1024);
}
