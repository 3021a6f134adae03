//! All scripts and data-path checks through the unmodified libibverbs and libmlx5, on the simulated HCA. What the
//! scripts see there must be what they see on the executable description.
#![allow(clippy::panic, reason = "helpers of tests are outside test functions")]

mod common;

use tagmatch_hw_tests::runner::{Outcome, Verdict, run};
use tagmatch_hw_tests::soft_port::SoftTm;
use tagmatch_hw_tests::{data_path, scripts};
use tagmatch_sim::hca::HcaConfig;

tagmatch_sim::hca_hooks!();

fn comparable(outcome: Outcome) -> Vec<String> {
    outcome.records.into_iter().map(|record| record.comparable().to_string()).collect()
}

/// The first place where two streams differ.
fn difference(one: &[String], other: &[String]) -> Option<String> {
    let place = (0..one.len().max(other.len())).find(|place| one.get(*place) != other.get(*place))?;
    Some(format!("record {place}: the description {:?}, the driver {:?}", one.get(place), other.get(place)))
}

#[test]
fn every_script_sees_the_same_on_the_driver_and_on_the_description() {
    let (_control, mut driver) = common::stepped(HcaConfig::default());
    let filter = std::env::var("SCRIPT").unwrap_or_default();
    let mut wrong = Vec::new();
    let mut number = 0;
    for script in scripts::all().iter().filter(|script| script.name.contains(&filter)) {
        number += 1;
        let soft = run(script, &mut SoftTm::default());
        let real = run(script, &mut driver);
        if real.verdict != Verdict::Passed {
            wrong.push(format!("{}: {:?}", script.name, real.verdict));
        }
        if let Some(difference) = difference(&comparable(soft), &comparable(real)) {
            wrong.push(format!("{}: {difference}", script.name));
        }
    }
    assert!(wrong.is_empty(), "{}\n{} complaints about {number} scripts", wrong.join("\n"), wrong.len());
    assert!(number > 130 || !filter.is_empty(), "only {number} scripts");
}

/// As on a card: nothing is done by hand, and the driver and the device run at the same time.
#[test]
fn every_script_passes_on_a_device_that_runs_by_itself() {
    let (_control, mut driver) = common::threaded(HcaConfig::default());
    let (mut wrong, mut ran) = (Vec::new(), 0);
    for script in scripts::all() {
        match run(&script, &mut driver).verdict {
            Verdict::Passed => ran += 1,
            Verdict::Skipped(_) if script.needs.stepping => {}
            verdict @ (Verdict::Failed(_) | Verdict::Skipped(_)) => {
                wrong.push(format!("{}: {verdict:?}", script.name))
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(ran > 130, "only {ran} scripts ran");
}

/// TM-CONTRACT 6.2: posting inside a poll while no slot is free. The driver hangs, and where it was told that there is
/// one thread, it aborts.
#[test]
fn posting_inside_a_poll_of_a_full_queue_is_a_violation_for_the_driver() {
    let itself = std::env::current_exe().expect("the test knows its program");
    let child = std::process::Command::new(itself)
        .args(["--exact", "does_what_must_not_be_done", "--ignored", "--nocapture"])
        .env("MLX5_SINGLE_THREADED", "1")
        .output()
        .expect("the test runs itself");
    let said = String::from_utf8_lossy(&child.stderr).into_owned();
    let signal = std::os::unix::process::ExitStatusExt::signal(&child.status);
    assert_eq!(signal, Some(6), "{said}");
    assert!(said.contains("multithreading violation"), "{said}");
}

#[test]
#[ignore = "run by posting_inside_a_poll_of_a_full_queue_is_a_violation_for_the_driver: it aborts"]
fn does_what_must_not_be_done() {
    let (_control, mut driver) = common::stepped(HcaConfig::default());
    let outcome = run(&scripts::deadlock(), &mut driver);
    panic!("the driver answered: {:?}", outcome.verdict);
}

#[test]
fn the_description_answers_where_the_driver_would_hang() {
    assert_eq!(run(&scripts::deadlock(), &mut SoftTm::default()).verdict, Verdict::Passed);
}

#[test]
fn every_data_path_check_passes() {
    let (control, driver) = common::stepped(HcaConfig::default());
    let mut drive = common::Stepped(control);
    let mut wrong = Vec::new();
    for check in data_path::checks() {
        let verdict = data_path::run(&check, driver.device(), &mut drive);
        if verdict != Verdict::Passed {
            wrong.push(format!("{}: {verdict:?}", check.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
