//! Comparisons: of what is alike, and refused of what is not.

use super::{File, bench, complaints, json, measured, out};
use serde_json::{Value, json};

#[test]
fn a_run_and_itself_are_alike_in_every_figure() {
    let (before, after) = (File::of("same-before", measured()), File::of("same-after", measured()));
    let output = bench(&["--compare", before.path(), after.path()]);
    let text = out(&output);
    assert_eq!(output.status.code(), Some(0), "{}", complaints(&output));
    assert!(text.contains("tcp offload, receiver_ns: 1.00 times as before"), "{text}");
    assert!(!text.contains("slower") && !text.contains("faster"), "{text}");
    let compared = json(&bench(&["--compare", before.path(), after.path(), "--json"]));
    let lines = compared["lines"].as_array().unwrap();
    assert!(lines.len() > 50 && lines.iter().all(|line| line["ratio"] == 1.0), "{compared}");
}

#[test]
fn what_has_become_slower_is_marked_and_another_commit_is_no_difference() {
    let mut other = measured().clone();
    other["build"]["commit"] = "another".into();
    for point in other["devices"][1]["points"].as_array_mut().unwrap() {
        point["receiver_ns"] = (point["receiver_ns"].as_f64().unwrap() * 2.0).into();
    }
    let (before, after) = (File::of("slower-before", measured()), File::of("slower-after", &other));
    let text = out(&bench(&["--compare", before.path(), after.path()]));
    assert!(text.contains("tcp software, receiver_ns: 2.00 times as before"), "{text}");
    assert!(text.contains("soft software, receiver_ns: 1.00 times as before"), "{text}");
    assert!(text.contains("commit ") && text.contains("another after"), "{text}");
    let back = out(&bench(&["--compare", after.path(), before.path()]));
    assert!(text.contains("  2.00  slower\n") && back.contains("  0.50  faster\n"), "{text}{back}");
}

#[test]
fn what_cannot_be_compared_is_refused_and_every_difference_is_named() {
    type Change = (&'static str, fn(&mut Value), &'static str);
    let changes: [Change; 12] = [
        ("kernel", |run| run["machine"]["kernel"] = "9.9".into(), "kernel: "),
        ("processor", |run| run["machine"]["processor"] = "6502".into(), "; 6502"),
        ("processors", |run| run["machine"]["processors"] = 77.into(), "; 77"),
        ("compiler", |run| run["build"]["compiler"] = "rustc 0.1".into(), "compiler: "),
        ("debug", |run| run["build"]["debug"] = (run["build"]["debug"] == false).into(), "build: "),
        ("tags", |run| run["settings"]["tags"] = 7.into(), "--tags: 1024; 7"),
        ("seed", |run| run["settings"]["seed"] = 9.into(), "--seed: 1; 9"),
        (
            "devices",
            |run| drop(run["devices"].as_array_mut().unwrap().pop()),
            "devices (--device says which): soft, tcp; soft",
        ),
        ("list", |run| run["devices"][0]["offload"]["tags"] = 5.into(), "soft: tags: 1024; 5"),
        ("carries", |run| run["devices"][1]["carries"] = "pigeons".into(), "tcp: messages go over: "),
        (
            "model",
            |run| run["devices"][0]["offload"]["is_model"] = false.into(),
            "soft: a model: true; false",
        ),
        (
            "versions",
            |run| run["devices"][1]["versions"] = json!({"libmlx5": "1.2"}),
            "tcp: versions: ; libmlx5 1.2",
        ),
    ];
    let before = File::of("refused-before", measured());
    let mut all = measured().clone();
    for (name, change, says) in changes {
        let mut other = measured().clone();
        change(&mut other);
        let after = File::of(&format!("refused-{name}"), &other);
        for pair in [[before.path(), after.path()], [after.path(), before.path()]] {
            let output = bench(&["--compare", pair[0], pair[1]]);
            assert_eq!((output.status.code(), out(&output)), (Some(2), String::new()), "{name}");
        }
        let said = complaints(&bench(&["--compare", before.path(), after.path()]));
        assert!(said.contains("cannot be compared") && said.contains(says), "{name}: {said}");
        if name != "devices" {
            change(&mut all);
        }
    }
    let after = File::of("refused-all", &all);
    let said = complaints(&bench(&["--compare", before.path(), after.path()]));
    assert_eq!(said.lines().count(), 1 + changes.len() - 1, "each in a line: {said}");
}
