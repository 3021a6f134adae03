//! Goes through every schedule of small scopes and prints a table.
//!
//! `exhaustive [WORD]`: the scopes of CI whose names contain the word.
//! `exhaustive --large [WORD]`: larger ones, which take minutes and gigabytes.
//! `exhaustive --readings`: other readings of the contract (A1 to A19).
//! `exhaustive --without [CLAUSE]` (feature `ablation`): the shortest counterexample for each clause dropped.
//!
//! `STATES` in the environment bounds the states of one scope; default 50,000,000.

use std::time::Instant;

use tagmatch_sim::explore::{exhaust, shortest};
use tagmatch_sim::scopes;
use tagmatch_sim::world::scope::Scope;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let word = words.iter().find(|word| !word.starts_with("--")).cloned().unwrap_or_default();
    let states_max = std::env::var("STATES").ok().and_then(|max| max.parse().ok()).unwrap_or(50_000_000);
    match words.iter().find(|word| word.starts_with("--")).map(String::as_str) {
        Some("--readings") => readings(states_max),
        Some("--without") => without(&word, states_max),
        Some("--large") => table(&scopes::large(), &word, states_max),
        Some(other) => eprintln!("{other}: not known"),
        None => table(&scopes::all(), &word, states_max),
    }
}

fn table(scopes: &[Scope], word: &str, states_max: u64) {
    let (mut states, begin) = (0, Instant::now());
    for scope in scopes.iter().filter(|scope| scope.name.contains(word)) {
        let explored = exhaust(scope, states_max);
        println!("{explored}");
        states += explored.states;
        if explored.wrong.is_some()
            && let Some(counterexample) = shortest(scope, 2_000_000)
        {
            println!("{counterexample}");
        }
    }
    println!("{states} states in {:.1?}", begin.elapsed());
}

fn readings(states_max: u64) {
    for (name, switches, _) in scopes::readings() {
        for scope in scopes::for_readings() {
            let explored = exhaust(&scope.with_switches(switches), states_max);
            println!("{name:<14} {explored}");
        }
    }
}

#[cfg(feature = "ablation")]
fn without(word: &str, states_max: u64) {
    use tagmatch::offload::{Clause, Rules};
    for clause in Clause::ALL.into_iter().filter(|clause| format!("{clause:?}").contains(word)) {
        let Some(scope) = scopes::for_clause(clause) else {
            let mut states = 0;
            let found = scopes::all().into_iter().chain(scopes::large()).find_map(|scope| {
                let scope = scope.with_rules(Rules::without(clause));
                let explored = exhaust(&scope, states_max);
                states += explored.states;
                explored.wrong.map(|wrong| (scope, wrong))
            });
            match found {
                Some((scope, _)) => {
                    println!("{clause:?}: {}", scope.name);
                    if let Some(counterexample) = shortest(&scope, 3_000_000) {
                        println!("{counterexample}");
                    }
                }
                None => println!("{clause:?}: no counterexample in {states} states"),
            }
            continue;
        };
        let all = exhaust(&scope, states_max);
        println!("{clause:?}: with all clauses: {all}");
        match shortest(&scope.with_rules(Rules::without(clause)), 3_000_000) {
            Some(counterexample) => println!("{counterexample}\n"),
            None => println!("no counterexample\n"),
        }
    }
}

#[cfg(not(feature = "ablation"))]
fn without(_: &str, _: u64) {
    eprintln!("built without feature `ablation`");
}
