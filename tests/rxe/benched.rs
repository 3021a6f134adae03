//! `tagmatch bench` over soft RoCE, in a machine of its own.

use crate::bench::{Folder, cache, errors};
use serde_json::Value;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

#[test]
fn messages_over_soft_roce_are_measured_in_software_and_matched_by_the_soft_list() {
    // The kernel of these tests where this user's is looked for.
    let folder = Folder::new();
    symlink(cache(), folder.folder("tagmatch").join("rxe")).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_tagmatch"))
        .args(["bench", "--device", "rxe", "--json", "--only", "unexpected messages"])
        .env("XDG_CACHE_HOME", &folder.0)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    let run: Value = serde_json::from_slice(&output.stdout).unwrap();
    let device = &run["devices"][0];
    assert_eq!((&device["device"], &device["software"]["is_model"]), (&"rxe".into(), &false.into()));
    // What it ran in says of itself which kernel it has.
    assert!(
        device["machine"]["kernel"].is_string() && device["versions"]["libibverbs"].is_string(),
        "{device}"
    );
    let points: Vec<&Value> = device["points"].as_array().unwrap().iter().collect();
    assert_eq!(points.len(), 10, "{device}");
    for point in points {
        let late = point["at"].as_f64().unwrap();
        let share = if point["is_offload"] == true { 1.0 - late / 100.0 } else { 0.0 };
        let matched = point["share_in_hardware"].as_f64().unwrap();
        assert!((matched - share).abs() < 0.001, "{point}");
    }
}
