//! The engine over the real libmlx5, on simulated HCAs moved on step by step: random programs by random schedules,
//! each under the monitors and the checker, and after each run nothing may be left of tags, slots, buffers, queues.
//! docs/ordering.md tells how to run one again.

use std::collections::BTreeSet;
use std::sync::Arc;

use tagmatch::device::soft::switches::Switches;
use tagmatch::offload::Reason;
use tagmatch_sim::driver::{Bench, Setting, Turned, in_bytes, programs, settings};
use tagmatch_sim::hca::LinkLayer;
use tagmatch_sim::schedules::{Failed, Ran, SCHEDULES_OF_A_PROGRAM};
use tagmatch_sim::scopes;
use tagmatch_sim::world::Wrong;
use tagmatch_sim::world::scope::Scope;

tagmatch_sim::hca_hooks!();

/// Schedules of small programs in CI.
const SMALL: u64 = 10_000;
/// Of programs with lists up to 127.
const WIDE: u64 = 600;
/// For each other reading of the contract.
const EACH_SETTING: u64 = 400;
/// With the driver's counters near their turns.
const TURNED: u64 = 24;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    let number = text.parse();
    assert!(number.is_ok(), "{variable}={text} is not a number");
    number.ok()
}

fn bench() -> Bench {
    Bench::new(3, 256).expect("a directory for sysfs")
}

/// Told in words, if it goes wrong.
fn run(bench: &Bench, scope: Scope, seed: u64, turned: Turned) -> Result<Ran, Failed> {
    let scope = Arc::new(scope);
    bench.run_turned(&scope, seed, false, turned).map_err(|failed| {
        let again = bench.run_turned(&scope, seed, true, turned);
        again.err().unwrap_or(failed)
    })
}

fn seeds(count: u64) -> std::ops::Range<u64> {
    if let Some(seed) = number("TAGMATCH_SEED") {
        return seed..seed + 1;
    }
    let first = number("TAGMATCH_FIRST_SEED").unwrap_or(0);
    first..first + number("TAGMATCH_SCHEDULES").unwrap_or(count)
}

#[test]
fn every_random_schedule_of_every_random_program_is_correct() {
    let bench = bench();
    let (mut actions, mut matched, mut bad) = (0, 0, Vec::new());
    for seed in seeds(SMALL) {
        let scope = programs::small(seed / SCHEDULES_OF_A_PROGRAM);
        match run(&bench, scope, seed, Turned::default()) {
            Ok(ran) => {
                actions += ran.actions;
                matched += ran.statistics.matched_by_device;
            }
            Err(failed) => bad.push((seed, failed)),
        }
    }
    println!("{actions} actions, {matched} matched by devices, {} wrong", bad.len());
    for (seed, failed) in &bad {
        println!("TAGMATCH_SEED={seed}: {}", failed.wrong);
    }
    if let Some((seed, failed)) = bad.first() {
        panic!("TAGMATCH_SEED={seed}:\n{failed}");
    }
    let is_short = number("TAGMATCH_SEED").is_some() || number("TAGMATCH_SCHEDULES").is_some();
    assert!(matched > SMALL / 10 || is_short, "devices matched {matched} messages only");
}

#[test]
fn lists_of_up_to_127_entries_fill_up_and_everything_stays_in_order() {
    let bench = bench();
    let (mut full, mut largest, mut sizes) = (0, 0, BTreeSet::new());
    let wanted = seeds(WIDE);
    let is_short = wanted.end - wanted.start < WIDE;
    for seed in wanted {
        let scope = programs::wide(seed / 2);
        let tags = scope.paths[0].tags;
        match run(&bench, scope, seed, Turned::default()) {
            Ok(ran) => {
                // Receives ended in software because there was no place for them.
                let is_full = ran.statistics.ended(Reason::DeviceFull) > 0;
                full += u64::from(is_full);
                largest = largest.max(if is_full { tags } else { 0 });
                sizes.insert(tags);
            }
            Err(failed) => panic!("TAGMATCH_SEED={seed}:\n{failed}"),
        }
    }
    println!("{} sizes of lists; full in {full} schedules, the largest of {largest}", sizes.len());
    assert!(
        is_short || (full > WIDE / 10 && largest > 64 && sizes.len() > 40),
        "{full}, {largest}, {sizes:?}"
    );
}

#[test]
fn counters_of_the_driver_turn_in_the_middle_of_schedules() {
    let bench = bench();
    for seed in seeds(TURNED) {
        let turned = Turned {
            operations: 65_534 - u32::try_from(seed % 12).expect("small"),
            messages: 65_534 - u32::try_from(seed % 7).expect("small"),
        };
        if let Err(failed) = run(&bench, programs::small(seed), seed, turned) {
            panic!("TAGMATCH_SEED={seed}:\n{failed}");
        }
    }
}

#[test]
fn no_other_reading_of_the_contract_breaks_order_but_a1_a4_and_a19() {
    let infiniband = bench();
    let ethernet = Bench::on(LinkLayer::Ethernet, 3, 256).expect("a directory for sysfs");
    for setting in settings().into_iter().filter(|setting| !setting.breaks_order()) {
        let bench = if setting.point == "A15" { &ethernet } else { &infiniband };
        for seed in seeds(EACH_SETTING) {
            let scope = setting.apply(programs::small(seed / SCHEDULES_OF_A_PROGRAM));
            if let Err(failed) = run(bench, scope, seed, Turned::default()) {
                panic!("{} {}, TAGMATCH_SEED={seed}:\n{failed}", setting.point, setting.reading);
            }
        }
    }
}

/// The first violation that the checker finds under a reading, within so many schedules of each scope.
fn counterexample(bench: &Bench, setting: &Setting) -> Option<(u64, String)> {
    for scope in scopes::for_readings() {
        for seed in 0..300 {
            let scope = Arc::new(in_bytes(scope.clone().with_switches(setting.switches)));
            if let Err(Failed { wrong: Wrong::Order(violation), .. }) = bench.run(&scope, seed, false) {
                return Some((seed, format!("{}: {violation}", scope.name)));
            }
        }
    }
    None
}

#[test]
fn a1_a4_and_a19_read_otherwise_give_a_counterexample_each_and_as_assumed_none() {
    let bench = bench();
    let breaking: Vec<Setting> = settings().into_iter().filter(Setting::breaks_order).collect();
    assert_eq!(breaking.iter().map(|setting| setting.point).collect::<Vec<_>>(), ["A1", "A4", "A19"]);
    for setting in breaking {
        let found = counterexample(&bench, &setting);
        println!("{} {}: {found:?}", setting.point, setting.reading);
        assert!(found.is_some(), "{} {} breaks no order", setting.point, setting.reading);
    }
    // Where rendezvous are sent to a device that does not offload them, A9 does as well (docs/ordering.md).
    let a9 = settings().into_iter().find(|setting| setting.point == "A9").expect("a reading of A9");
    assert!(counterexample(&bench, &a9).is_some());
    let usual = Setting { point: "", reading: "as assumed", switches: Switches::default() };
    assert_eq!(counterexample(&bench, &usual), None);
}
