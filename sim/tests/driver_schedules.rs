//! The engine over the real libmlx5, on the simulated HCA moved on step by step: random programs by random schedules.
//! One test at a time: what there is of devices is looked at when each run is over.

use std::sync::Arc;

use tagmatch_sim::driver::{Bench, in_bytes};
use tagmatch_sim::schedules::{SCHEDULES_OF_A_PROGRAM, program};

tagmatch_sim::hca_hooks!();

#[test]
fn every_random_schedule_is_correct() {
    let bench = Bench::new(3, 64).expect("a place for sysfs");
    let first = number("TAGMATCH_FIRST_SEED").unwrap_or(0);
    let last = first + number("TAGMATCH_SCHEDULES").unwrap_or(1000);
    let mut actions = 0;
    for seed in first..last {
        let scope = Arc::new(in_bytes(program(seed / SCHEDULES_OF_A_PROGRAM)));
        match bench.run(&scope, seed, false) {
            Ok(ran) => actions += ran.actions,
            Err(_) => match bench.run(&scope, seed, true) {
                Ok(_) => panic!("seed {seed}: only sometimes"),
                Err(failed) => panic!("seed {seed}:\n{failed}"),
            },
        }
    }
    println!("{} schedules, {actions} actions", last - first);
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    let number = text.parse();
    assert!(number.is_ok(), "{variable}={text} is not a number");
    number.ok()
}
