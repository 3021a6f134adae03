//! All scripts on the executable description of the device.
#![allow(clippy::panic, reason = "helpers of tests are outside test functions")]

use std::collections::HashSet;

use tagmatch_hw_tests::port::TmDevice;
use tagmatch_hw_tests::record::Record;
use tagmatch_hw_tests::runner::{Outcome, Verdict, run};
use tagmatch_hw_tests::scripts;
use tagmatch_hw_tests::soft_port::SoftTm;

fn run_all(device: &mut dyn TmDevice, may_skip: bool) -> Vec<(String, Outcome)> {
    let mut wrong = Vec::new();
    let mut outcomes = Vec::new();
    for script in scripts::all() {
        let outcome = run(&script, device);
        match &outcome.verdict {
            Verdict::Passed => {}
            Verdict::Failed(what) => wrong.push(format!("{}: {what}", script.name)),
            Verdict::Skipped(what) if may_skip => drop(what.clone()),
            Verdict::Skipped(what) => wrong.push(format!("{}: skipped: {what}", script.name)),
        }
        outcomes.push((script.name.into_owned(), outcome));
    }
    assert!(wrong.is_empty(), "{}\n{} of {} scripts", wrong.join("\n"), wrong.len(), outcomes.len());
    outcomes
}

#[test]
fn every_script_passes_on_the_description() {
    run_all(&mut SoftTm::default(), false);
}

/// A script that is not advanced by hand must not depend on when the device does its work: a card does it at once.
#[test]
fn scripts_see_the_same_of_a_device_that_does_everything_at_once() {
    let lazy = run_all(&mut SoftTm::default(), false);
    let eager = run_all(&mut SoftTm { eager: true, ..SoftTm::default() }, true);
    let mut compared = 0;
    for ((name, lazy), (_, eager)) in lazy.into_iter().zip(eager) {
        if let Verdict::Skipped(_) = eager.verdict {
            continue;
        }
        let comparable =
            |outcome: Outcome| outcome.records.into_iter().map(Record::comparable).collect::<Vec<_>>();
        assert_eq!(comparable(lazy), comparable(eager), "{name}");
        compared += 1;
    }
    assert!(compared > 100, "only {compared} scripts were compared");
}

#[test]
fn names_of_scripts_are_unique() {
    let mut names = HashSet::new();
    for script in scripts::all() {
        assert!(names.insert(script.name.clone()), "{} is there twice", script.name);
    }
}
