//! Files that are not what they should be.

use super::{File, bench, complaints, measured, out};
use serde_json::Value;

/// Every way in which a file is read ends with a complaint, and nothing else.
fn refused(name: &str, text: &str) -> String {
    let (good, bad) = (File::of(&format!("{name}-good"), measured()), File::new(name, text));
    for arguments in [
        &["--compare", good.path(), bad.path()][..],
        &["--compare", bad.path(), good.path()],
        &["--from", bad.path()],
        &["--from", bad.path(), "--json"],
    ] {
        let output = bench(arguments);
        assert_eq!((output.status.code(), out(&output)), (Some(2), String::new()), "{arguments:?}");
        assert!(complaints(&output).contains(bad.path()), "{arguments:?}: {}", complaints(&output));
    }
    complaints(&bench(&["--from", bad.path()]))
}

#[test]
fn what_is_no_run_is_refused() {
    for (name, text) in
        [("empty", ""), ("half", "{\"format\": \"tagmatch bench 2\""), ("binary", "\u{0}\u{1}\u{7f}")]
    {
        assert!(refused(name, text).contains("no JSON"));
    }
    assert!(refused("deep", &"[".repeat(1 << 20)).contains("no JSON"));
    for (name, text) in [("other", "{}"), ("number", "7"), ("list", "[[[[]]]]")] {
        assert!(refused(name, text).contains("it has no format"));
    }
    assert!(refused("version", "{\"format\": \"tagmatch bench 99\"}").contains("99"));
    let missing = bench(&["--from", "/nowhere/run.json"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(complaints(&missing).contains("/nowhere/run.json"));
    let endless = bench(&["--from", "/dev/zero"]);
    assert_eq!(endless.status.code(), Some(2), "it is not read for ever");
}

/// Every leaf of a run replaced, one after the other.
fn replaced(run: &Value, by: &Value) -> Vec<(String, Value)> {
    fn leaves(value: &Value, path: String, all: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                map.iter().for_each(|(name, value)| leaves(value, format!("{path}/{name}"), all))
            }
            // The others are as the first.
            Value::Array(list) => {
                if let Some(first) = list.first() {
                    leaves(first, format!("{path}/0"), all);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => all.push(path),
        }
    }
    let mut all = Vec::new();
    leaves(run, String::new(), &mut all);
    let with = |path: String| {
        let mut changed = run.clone();
        *changed.pointer_mut(&path).unwrap() = by.clone();
        (path, changed)
    };
    all.into_iter().map(with).collect()
}

#[test]
fn whatever_stands_in_the_place_of_a_value_is_taken_or_refused_and_nothing_breaks() {
    for by in ["null", "-1", "1e308", "18446744073709551615", "\"\\u001b[2J\"", "[]", "{}"] {
        let by: Value = serde_json::from_str(by).unwrap();
        for (path, changed) in replaced(measured(), &by) {
            let file = File::of("leaf", &changed);
            let page = File::new("leaf.html", "");
            let output = bench(&["--from", file.path(), "--html", page.path()]);
            let ended = output.status.code();
            assert!(matches!(ended, Some(0 | 2)), "{path} = {by}: {ended:?} {}", complaints(&output));
            let said = out(&output) + &complaints(&output);
            assert!(!said.contains('\u{1b}'), "{path} = {by}: a terminal is told something");
        }
    }
}
