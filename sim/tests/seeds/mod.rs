//! Scripts drawn by seed are run, judged, and, if something is wrong, made short.

#[path = "../../../src/endpoint/tests/arriving.rs"]
mod arriving;
#[cfg(feature = "ablation")]
mod bugs;
mod judge;
#[path = "../../../src/endpoint/tests/placing.rs"]
mod placing;
mod run;
mod script;
mod shrink;
#[allow(dead_code, reason = "the tests of endpoints use all of it")]
#[path = "../../../src/endpoint/tests/transport.rs"]
mod transport;
#[allow(dead_code, reason = "the tests of endpoints use all of it")]
#[path = "../../../src/endpoint/tests/world.rs"]
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{checker, device, endpoint, engine, ids, matching, wire};
use endpoint::Statistics;
use run::Ran;
use script::Script;

/// How many in CI.
const SEEDS: u64 = 5_000;
/// Runs of a script that is made short.
const TRIES_MAX: usize = 3_000;

/// Run a script. What goes wrong may also be a panic.
fn judged(script: &Script) -> Result<Ran, String> {
    let ran = catch_unwind(AssertUnwindSafe(|| run::run(script)));
    ran.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(format!("panic: {}", text.unwrap_or_default()))
    })
}

/// A script that fails, short, with what is wrong.
fn shown(script: &Script) -> String {
    let short = shrink::shrink(script, TRIES_MAX, |script| judged(script).is_err());
    let wrong = judged(&short).err().unwrap_or_default();
    format!("{} lines of {}:\n{}=> {wrong}", short.ops.len(), script.ops.len(), short.print())
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    let number = text.parse();
    assert!(number.is_ok(), "{variable}={text} is not a number");
    number.ok()
}

#[test]
fn every_seed_of_whole_endpoints_is_correct() {
    if let Some(seed) = number("TAGMATCH_SEED") {
        let script = Script::draw(seed);
        match judged(&script) {
            Ok(ran) => println!("seed {seed}: {ran:#?}"),
            Err(wrong) => panic!("seed {seed}: {wrong}\n{}", shown(&script)),
        }
        return;
    }
    let first = number("TAGMATCH_FIRST_SEED").unwrap_or(0);
    let last = first + number("TAGMATCH_SCHEDULES").unwrap_or(SEEDS);
    let (next, events) = (AtomicU64::new(first), AtomicU64::new(0));
    let total = Mutex::new(Happened::default());
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= last {
                        break;
                    }
                    let script = Script::draw(seed);
                    let ran = judged(&script).unwrap_or_else(|wrong| {
                        next.store(last, Ordering::Relaxed);
                        panic!("TAGMATCH_SEED={seed}: {wrong}\n{}", shown(&script))
                    });
                    assert!(ran.events >= 1000, "seed {seed}: {} events", ran.events);
                    events.fetch_add(ran.events, Ordering::Relaxed);
                    total.lock().expect("no thread failed").add(&ran.statistics);
                }
            });
        }
    });
    let total = total.into_inner().expect("no thread failed");
    println!("{} seeds, {} events: {total:?}", last - first, events.into_inner());
    total.check(last - first);
}

/// What happened in all runs, to see that all of it did.
#[derive(Debug, Default)]
struct Happened([(&'static str, u64); 14]);

impl Happened {
    fn add(&mut self, all: &[Statistics]) {
        for it in all {
            let counts = [
                ("sent eagerly", it.sent_eager),
                ("sent in segments", it.sent_segmented),
                ("sent by rendezvous", it.sent_rendezvous),
                ("sent without credit", it.without_credit),
                ("told to come again", it.again_full),
                ("unexpected", it.unexpected),
                ("matched by a list", it.matched_by_device),
                ("cancelled", it.cancelled),
                ("cut short", it.truncated),
                ("peeks", it.peeks),
                ("connections that crossed", it.crossed),
                ("connections lost", it.lost),
                ("peers that came back as another", it.restarted),
                ("connections by the second path", it.connected_shm),
            ];
            for (sum, (what, count)) in self.0.iter_mut().zip(counts) {
                *sum = (what, sum.1 + count);
            }
        }
    }

    fn check(&self, seeds: u64) {
        for (what, count) in self.0 {
            assert!(count >= seeds / 100, "hardly any run comes to this: {what}, {count} times");
        }
    }
}

/// What seeds have found, made short.
const FOUND: [(&str, &str); 2] = [
    ("back_by_another_path", include_str!("found/back_by_another_path.txt")),
    ("cut_from_oneself", include_str!("found/cut_from_oneself.txt")),
];

#[test]
fn what_was_found_is_right() {
    for (name, text) in FOUND {
        let script = Script::parse(text).expect(name);
        if let Err(wrong) = judged(&script) {
            panic!("{name}: {wrong}");
        }
    }
}

#[test]
fn one_seed_is_one_run() {
    for seed in 0..40 {
        let script = Script::draw(seed);
        let runs = [(); 2].map(|()| judged(&script).map(|ran| format!("{ran:?}")));
        assert_eq!(runs[0], runs[1], "seed {seed}");
    }
}

#[test]
fn a_script_is_read_as_it_is_printed() {
    for seed in 0..40 {
        let script = Script::draw(seed);
        assert_eq!(Script::parse(&script.print()), Ok(script));
    }
    assert_eq!(Script::parse("Setting seed=1\nSent from=1"), Err("no operation: Sent from=1".to_owned()));
}
