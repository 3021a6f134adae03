//! Random programs by random schedules, every one checked. docs/ordering.md tells how to run one again.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tagmatch::offload::Statistics;
use tagmatch_sim::schedules::run_seed;

/// How many in CI.
const SCHEDULES: u64 = 100_000;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    let number = text.parse();
    assert!(number.is_ok(), "{variable}={text} is not a number");
    number.ok()
}

#[test]
fn every_random_schedule_of_every_random_program_is_correct() {
    if let Some(seed) = number("TAGMATCH_SEED") {
        match run_seed(seed) {
            Ok(ran) => println!("seed {seed}: {ran:#?}"),
            Err(failed) => panic!("seed {seed}:\n{failed}"),
        }
        return;
    }
    let first = number("TAGMATCH_FIRST_SEED").unwrap_or(0);
    let last = first + number("TAGMATCH_SCHEDULES").unwrap_or(SCHEDULES);
    let (next, actions) = (AtomicU64::new(first), AtomicU64::new(0));
    let total = Mutex::new(Statistics::default());
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                let mut mine = Statistics::default();
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= last {
                        break;
                    }
                    let ran = run_seed(seed).unwrap_or_else(|failed| {
                        next.store(last, Ordering::Relaxed);
                        panic!("TAGMATCH_SEED={seed}:\n{failed}")
                    });
                    actions.fetch_add(ran.actions, Ordering::Relaxed);
                    add(&mut mine, &ran.statistics);
                }
                add(&mut total.lock().expect("no thread failed"), &mine);
            });
        }
    });
    let total = total.into_inner().expect("no thread failed");
    println!("{} schedules, {} actions: {total:?}", last - first, actions.into_inner());
    for (what, count) in [
        ("matched by a device", total.matched_by_device),
        ("used by the device's own message", total.used_by_own_device),
        ("taken back", total.taken_back),
        ("too late", total.dels_too_late),
        ("bounced", total.bounced),
        ("syncs", total.syncs),
    ] {
        assert!(count > (last - first) / 1000, "hardly any schedule comes to this: {what}, {count} times");
    }
}

fn add(to: &mut Statistics, from: &Statistics) {
    to.tracked += from.tracked;
    to.adds += from.adds;
    to.dels += from.dels;
    to.syncs += from.syncs;
    to.matched_by_device += from.matched_by_device;
    to.used_by_own_device += from.used_by_own_device;
    to.taken_back += from.taken_back;
    to.dels_too_late += from.dels_too_late;
    to.sync_requests += from.sync_requests;
    to.bounced += from.bounced;
    to.set_aside += from.set_aside;
    for (to, from) in to.first_in_software.iter_mut().zip(from.first_in_software) {
        *to += from;
    }
    for (to, from) in to.in_software.iter_mut().zip(from.in_software) {
        *to += from;
    }
}
