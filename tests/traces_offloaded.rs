//! Every bundled trace through the engine and soft devices, in many schedules: no disagreement with what the run
//! itself did.

use tagmatch::replay::{self, Offload, Schedule, Settings};
use tagmatch::traces::layout::{self, Layout};
use tagmatch::traces::{Trace, bundle};

fn replay(trace: &Trace, settings: Settings) {
    let mut target = Offload::new(settings, trace.counts()).expect("devices of a sane size");
    let report = replay::run(trace, &mut target);
    assert!(report.is_exact(), "{} {settings:?}: {report:#?}", trace.short_name());
    assert_eq!(report.checked, trace.steps.len() as u64);
}

#[test]
fn every_trace_gives_its_results_in_software() {
    for trace in bundle::traces().map(Result::unwrap) {
        let settings = Settings { tags: 0, devices: 1, second_path: false, schedule: Schedule::Prompt, seed: 1 };
        replay(&trace, settings);
    }
}
