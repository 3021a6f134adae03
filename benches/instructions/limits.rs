//! Figures against what is on record, and against each other.
//!
//! record/instructions.json holds: `figures` (instructions per message of each path), `tolerance` (how much
//! more fails), `at_most` (path, other path, factor: relations that must hold), `budgets` (path, instructions:
//! what the project promises). A path without a figure on record fails too, so that none is forgotten.

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
    wrong.extend(relations_broken(&recorded, figures));
    wrong.extend(budgets_exceeded(&recorded, figures));
    for what in &wrong {
        println!("over the limit: {what}");
    }
    println!("{} paths, {} over their limits", figures.len(), wrong.len());
    if check && !wrong.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Makes the figures the recorded ones; tolerance, relations and budgets stay.
pub(crate) fn record(figures: &Figures) -> ExitCode {
    let mut recorded =
        read().unwrap_or_else(|_| json!({ "tolerance": TOLERANCE, "at_most": [], "budgets": {} }));
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

/// A path of this crate on record that is no longer counted.
fn recorded_paths_missing(recorded: &Value, figures: &Figures) -> Vec<String> {
    let known = recorded["figures"].as_object().into_iter().flatten().map(|(name, _)| name);
    known
        .filter(|name| is_ours(name) && !figures.contains_key(*name))
        .map(|name| format!("{name}: on record, but not counted"))
        .collect()
}

fn relations_broken(recorded: &Value, figures: &Figures) -> Vec<String> {
    let mut broken = Vec::new();
    for relation in recorded["at_most"].as_array().into_iter().flatten() {
        let (Some(ours), Some(theirs)) = (relation["path"].as_str(), relation["of"].as_str()) else {
            continue;
        };
        let factor = relation["factor"].as_f64().unwrap_or(1.0);
        match (figures.get(ours), figures.get(theirs)) {
            (Some(now), Some(other)) if *now <= other * factor => {}
            (Some(now), Some(other)) => {
                broken.push(format!("{ours}: {now:.1} is more than {factor} x {theirs}, {other:.1}"));
            }
            _ => broken.push(format!("{ours} or {theirs} was not counted")),
        }
    }
    broken
}

fn budgets_exceeded(recorded: &Value, figures: &Figures) -> Vec<String> {
    let budgets = recorded["budgets"].as_object().into_iter().flatten();
    budgets
        .filter_map(|(name, budget)| {
            let (now, budget) = (figures.get(name)?, budget.as_f64()?);
            (*now > budget).then(|| format!("{name}: {now:.1} is more than its budget, {budget:.0}"))
        })
        .collect()
}

/// Peers are shown, not judged: their figures change with their packages.
fn is_ours(name: &str) -> bool {
    !["ucx/", "vectors/", "naive/"].iter().any(|peer| name.starts_with(peer))
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
