//! Every schedule of small scopes, through the production engine and soft devices.

use std::sync::Mutex;

use tagmatch_sim::explore::{exhaust, exhaust_twice, shortest};
use tagmatch_sim::scopes;

/// No scope of CI comes near it; one that does must say so.
const STATES_MAX: u64 = 2_000_000;
/// Of each scope where every state is looked at again each time that it is reached.
const TWICE_MAX: u64 = 4_000;

#[test]
fn every_schedule_of_every_scope_is_correct() {
    let scopes = scopes::all();
    let (next, states) = (Mutex::new(scopes.iter()), Mutex::new(0));
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                loop {
                    let scope = next.lock().expect("no thread failed").next();
                    let Some(scope) = scope else { break };
                    let explored = exhaust(scope, STATES_MAX);
                    println!("{explored}");
                    if let Some(wrong) = &explored.wrong {
                        let shorter = shortest(scope, 1_000_000);
                        panic!("{}:\n{}", scope.name, shorter.as_ref().unwrap_or(wrong));
                    }
                    assert!(explored.is_complete, "{} has more than {STATES_MAX} states", scope.name);
                    assert!(explored.quiet > 0, "{} never comes to rest", scope.name);
                    *states.lock().expect("no thread failed") += explored.states;
                }
            });
        }
    });
    let states = *states.lock().expect("no thread failed");
    println!("{states} canonical states in {} scopes", scopes.len());
    assert!(states >= 1_000_000, "{states}");
}

/// A state is gone on from once. So two states with one fingerprint must behave alike: the same can follow.
#[test]
fn states_that_look_alike_behave_alike() {
    let (mut states, mut again) = (0, 0);
    for scope in scopes::all() {
        let explored = exhaust_twice(&scope, TWICE_MAX);
        if let Some(wrong) = &explored.wrong {
            panic!("{}: {wrong}", scope.name);
        }
        states += explored.states;
        again += explored.transitions - (explored.states - 1);
    }
    println!("{states} canonical states, reached {again} times again");
    assert!(again > states / 2, "{again}");
}

#[test]
fn only_a_device_that_reads_a1_a4_a9_or_a19_otherwise_breaks_order() {
    for (name, switches, breaks) in scopes::readings() {
        let found = scopes::for_readings().into_iter().find_map(|scope| {
            let explored = exhaust(&scope.with_switches(switches), STATES_MAX);
            println!("{name:<14} {explored}");
            assert!(explored.is_complete || explored.wrong.is_some());
            explored.wrong
        });
        match (found, breaks) {
            (None, false) | (Some(_), true) => {}
            (None, true) => panic!("{name} read otherwise must break order"),
            (Some(wrong), false) => panic!("{name} read otherwise:\n{wrong}"),
        }
    }
}
