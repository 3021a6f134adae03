//! Figures against what is on record, and against each other.
//!
//! record/instructions.json holds: `figures` (instructions per message of each path), `tolerance` (how much
//! more fails), `at_most` (path, other path, factor: relations), `budgets` (instructions by path: what the
//! project promises itself). Relations and budgets that are `enforced` fail, the others are told. A path without
//! a figure on record fails too, so that none is forgotten.

use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::callgrind::Figures;
use crate::common::record;

/// Prints the figures beside the recorded ones; with `check`, fails when one is over its limit.
pub(crate) fn compare(figures: &Figures, check: bool) -> ExitCode {
    let recorded = match read() {
        Ok(recorded) => recorded,
        Err(why) => {
            eprintln!("instructions: {why}");
            Value::Null
        }
    };
    let tolerance = recorded["tolerance"].as_f64().unwrap_or(TOLERANCE);
    let mut wrong = Vec::new();
    println!("{:<52} {:>10} {:>10}", "instructions per message", "now", "recorded");
    for (name, &now) in figures {
        let Some(before) = recorded["figures"][name].as_f64() else {
            println!("{name:<52} {now:>10.1} {:>10}", "-");
            if is_ours(name) {
                wrong.push(format!("{name}: {now:.1}, and none is on record"));
            }
            continue;
        };
        let verdict = if now > before * (1.0 + tolerance) {
            if is_ours(name) {
                wrong.push(format!("{name}: {now:.1}, recorded {before:.1}"));
            }
            "  more"
        } else if now < before * (1.0 - tolerance) {
            "  less: record it"
        } else {
            ""
        };
        println!("{name:<52} {now:>10.1} {before:>10.1}{verdict}");
    }
    wrong.extend(recorded_paths_missing(&recorded, figures));
    for miss in relations_broken(&recorded, figures).into_iter().chain(budgets_exceeded(&recorded, figures)) {
        if miss.enforced {
            wrong.push(miss.what);
        } else {
            println!("missed, not enforced: {}", miss.what);
        }
    }
    for what in &wrong {
        println!("over the limit: {what}");
    }
    println!("{} paths, {} over their limits", figures.len(), wrong.len());
    if check && !wrong.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Makes the figures the recorded ones; tolerance, relations and budgets stay.
pub(crate) fn record(figures: &Figures) -> ExitCode {
    let mut recorded = read().unwrap_or_else(|_| first_record(figures));
    let rounded: serde_json::Map<String, Value> =
        figures.iter().map(|(name, now)| (name.clone(), json!((now * 10.0).round() / 10.0))).collect();
    recorded["figures"] = Value::Object(rounded);
    recorded["circumstances"] = record::circumstances();
    match fs::write(file(), format!("{recorded:#}\n")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", file().display());
            ExitCode::from(2)
        }
    }
}

/// A record without figures: the matcher against a plain scan in each script, and the engine's budgets.
fn first_record(figures: &Figures) -> Value {
    let scripts = figures.keys().filter_map(|name| name.strip_prefix("matcher/script/"));
    let at_most: Vec<Value> = scripts
        .map(|script| {
            let (path, of) = (format!("matcher/script/{script}"), format!("vectors/script/{script}"));
            json!({ "path": path, "of": of, "factor": 1.0, "enforced": figures[&path] <= figures[&of] })
        })
        .collect();
    let budget = |name: &str, instructions: u32| {
        let holds = figures.get(name).is_some_and(|now| *now <= f64::from(instructions));
        json!({ "instructions": instructions, "enforced": holds })
    };
    json!({
        "tolerance": TOLERANCE,
        "at_most": at_most,
        "budgets": {
            "alone/engine/posted/full/16": budget("alone/engine/posted/full/16", 150),
            "alone/offloaded/posted/full/16": budget("alone/offloaded/posted/full/16", 300),
        },
    })
}

/// A path of this crate on record that is no longer counted.
fn recorded_paths_missing(recorded: &Value, figures: &Figures) -> Vec<String> {
    let known = recorded["figures"].as_object().into_iter().flatten().map(|(name, _)| name);
    known
        .filter(|name| is_ours(name) && !figures.contains_key(*name))
        .map(|name| format!("{name}: on record, but not counted"))
        .collect()
}

/// A relation or budget that does not hold.
struct Miss {
    what: String,
    enforced: bool,
}

fn relations_broken(recorded: &Value, figures: &Figures) -> Vec<Miss> {
    let mut broken = Vec::new();
    for relation in recorded["at_most"].as_array().into_iter().flatten() {
        let (Some(ours), Some(theirs)) = (relation["path"].as_str(), relation["of"].as_str()) else {
            continue;
        };
        let factor = relation["factor"].as_f64().unwrap_or(1.0);
        let what = match (figures.get(ours), figures.get(theirs)) {
            (Some(now), Some(other)) if *now <= other * factor => continue,
            (Some(now), Some(other)) => {
                format!("{ours}: {now:.1} is more than {factor} x {theirs}, {other:.1}")
            }
            _ => format!("{ours} or {theirs} was not counted"),
        };
        broken.push(Miss { what, enforced: relation["enforced"].as_bool().unwrap_or(true) });
    }
    broken
}

fn budgets_exceeded(recorded: &Value, figures: &Figures) -> Vec<Miss> {
    let mut exceeded = Vec::new();
    for (name, budget) in recorded["budgets"].as_object().into_iter().flatten() {
        let instructions = budget["instructions"].as_f64().unwrap_or(f64::INFINITY);
        let what = match figures.get(name) {
            Some(now) if *now <= instructions => continue,
            Some(now) => format!("{name}: {now:.1} is more than its budget, {instructions:.0}"),
            None => format!("{name} was not counted"),
        };
        exceeded.push(Miss { what, enforced: budget["enforced"].as_bool().unwrap_or(true) });
    }
    exceeded
}

/// Peers are shown, not judged: their figures change with their packages.
fn is_ours(name: &str) -> bool {
    !["ucx/", "vectors/", "naive/", "loop/"].iter().any(|peer| name.starts_with(peer))
}

fn read() -> Result<Value, String> {
    let text = fs::read_to_string(file()).map_err(|error| format!("{}: {error}", file().display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file().display()))
}

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("benches/record/instructions.json")
}

/// Of a record that names none.
const TOLERANCE: f64 = 0.03;
