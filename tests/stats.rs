//! `tagmatch stats`: what it shows of processes that run, and what it makes of what others left.
#![cfg(target_os = "linux")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are outside test functions")]

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::process::{Command, Output, Stdio};
use tagmatch::provider::statistics::{Report, folder};

fn stats(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tagmatch"));
    command.arg("stats").args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Field 22 of `/proc/self/stat`.
fn own_start() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let (_, rest) = stat.rsplit_once(')').unwrap();
    rest.split_whitespace().nth(19).unwrap().parse().unwrap()
}

/// As a domain of this process would write it.
fn write(name: &str, report: &Report) -> std::path::PathBuf {
    let _ = DirBuilder::new().mode(0o700).create(folder());
    let place = folder().join(format!("{}.{name}", std::process::id()));
    fs::write(&place, report.text()).unwrap();
    place
}

#[test]
fn domains_of_a_process_are_shown_together_and_what_a_killed_one_left_is_removed() {
    let counters = |received| vec![("received".to_owned(), received), ("peeks".to_owned(), 0)];
    let report = |started, received| Report {
        pid: std::process::id(),
        started,
        command: "some\u{1b}program".into(),
        counters: counters(received),
    };
    let places = [write("test0", &report(own_start(), 3)), write("test1", &report(own_start(), 4))];
    // The number of this process, at another time.
    let stale = write("test2", &report(own_start() - 1, 100));
    let pid = std::process::id().to_string();
    let table = stats(&[&pid]);
    let json: serde_json::Value = serde_json::from_slice(&stats(&["--json", &pid]).stdout).unwrap();
    let all = out(&stats(&["--all", &pid]));
    places.iter().for_each(|place| fs::remove_file(place).unwrap());
    let text = out(&table);
    assert!(table.status.success() && text.starts_with("counter "), "{text}");
    assert!(
        text.contains(&format!("{pid} some\\u{{1b}}program\n")),
        "nothing is done to the terminal: {text}"
    );
    assert!(text.lines().any(|line| line.starts_with("received ") && line.ends_with(" 7")), "{text}");
    assert!(!text.contains("peeks") && all.contains("peeks"), "{text}{all}");
    assert_eq!((&json[0]["counters"]["received"], json.as_array().unwrap().len()), (&7.into(), 1), "{json}");
    assert!(!stale.exists(), "what was left is removed");
}

#[test]
fn a_process_that_does_not_use_the_provider_is_said_to_be_none() {
    let output = stats(&["1"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said, "tagmatch: none of these processes of this user uses the provider now: [1]\n");
}
