//! `tagmatch stats`: what it shows of processes that run, and what it makes of what others left.
#![cfg(target_os = "linux")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are outside test functions")]

use std::ffi::CString;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::process::{Command, Output, Stdio};
use tagmatch::provider::statistics::{NAME, Report};

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
fn write(report: &Report) -> File {
    let name = CString::new(NAME).unwrap();
    // SAFETY: the name is a C string.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_ALLOW_SEALING) };
    // SAFETY: the descriptor is new and nobody else's.
    let mut file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    file.write_all(report.text().as_bytes()).unwrap();
    // SAFETY: no memory is passed.
    assert_eq!(unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, libc::F_SEAL_WRITE) }, 0);
    file
}

#[test]
fn domains_of_a_process_are_shown_together() {
    let counters = |received| vec![("received".to_owned(), received), ("peeks".to_owned(), 0)];
    let report = |pid, received| Report {
        pid,
        started: own_start(),
        host: "here".into(),
        rank: None,
        command: "some\u{1b}program".into(),
        counters: counters(received),
    };
    let own = std::process::id();
    // And one of another process, which this one would have if it had been forked.
    let places = [write(&report(own, 3)), write(&report(own, 4)), write(&report(own + 1, 100))];
    let pid = std::process::id().to_string();
    let table = stats(&[&pid]);
    let json: serde_json::Value = serde_json::from_slice(&stats(&["--json", &pid]).stdout).unwrap();
    let all = out(&stats(&["--all", &pid]));
    drop(places);
    assert!(!stats(&[&pid]).status.success(), "it is gone with its descriptors");
    let text = out(&table);
    assert!(table.status.success() && text.starts_with("counter "), "{text}");
    assert!(
        text.contains(&format!("{pid} some\\u{{1b}}program\n")),
        "nothing is done to the terminal: {text}"
    );
    assert!(text.lines().any(|line| line.starts_with("received ") && line.ends_with(" 7")), "{text}");
    assert!(!text.contains("peeks") && all.contains("peeks"), "{text}{all}");
    assert_eq!((&json[0]["counters"]["received"], json.as_array().unwrap().len()), (&7.into(), 1), "{json}");
}

#[test]
fn a_process_that_does_not_use_the_provider_is_said_to_be_none() {
    let output = stats(&["1"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said, "tagmatch: none of these processes of this user uses the provider now: [1]\n");
}
