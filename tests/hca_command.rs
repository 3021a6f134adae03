//! `tagmatch hca` where its surroundings are odd: what started it, and what lies about in the folder of temporary files.

#![cfg(all(target_os = "linux", target_pointer_width = "64"))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Run a line of shell in which `$hca` is the command. What hangs is ended, with code 124.
fn shell(line: &str, temporary: &Path) -> Output {
    // Any library that every program has anyway.
    let library = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6", "/lib64/libc.so.6"]
        .into_iter()
        .find(|path| Path::new(path).exists());
    Command::new("timeout")
        .args(["60", "sh", "-c", line])
        .env("hca", env!("CARGO_BIN_EXE_tagmatch"))
        .env("TAGMATCH_HCA_LIB", library.unwrap())
        .env("TMPDIR", temporary)
        .output()
        .unwrap()
}

/// A folder of this test's own, empty.
fn folder(name: &str) -> PathBuf {
    let folder =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("hca-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn a_program_ends_where_ended_children_are_not_told_of_and_has_the_signals_of_who_started_it() {
    let folder = folder("ignored");
    let output = shell("exec env --ignore-signal=CHLD \"$hca\" hca -- sh -c 'exit 7'", &folder);
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    let ignored = |before: &str| {
        let output = shell(&format!("exec {before} \"$hca\" hca -- grep SigIgn /proc/self/status"), &folder);
        let text = String::from_utf8(output.stdout).unwrap();
        let mask = u64::from_str_radix(text.split_whitespace().last().unwrap(), 16).unwrap();
        // Signal 17 is SIGCHLD.
        mask >> 16 & 1 == 1
    };
    assert!(ignored("env --ignore-signal=CHLD"));
    assert!(!ignored(""));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_looks_like_a_run_that_was_killed_and_is_none_is_left_alone_and_stops_nobody() {
    let folder = folder("foreign");
    // No process has such a number (`/proc/sys/kernel/pid_max` is at most 4194304).
    let pipe = folder.join("tagmatch-hca-run-99999999-0");
    let linked = folder.join("tagmatch-hca-run-99999999-1");
    let stale = folder.join("tagmatch-hca-run-99999999-2");
    let elsewhere = folder.join("elsewhere");
    for made in [&pipe, &stale, &elsewhere] {
        fs::create_dir(made).unwrap();
    }
    assert!(Command::new("mkfifo").arg(pipe.join("alive")).status().unwrap().success());
    std::os::unix::fs::symlink(&elsewhere, &linked).unwrap();
    fs::write(stale.join("alive"), "").unwrap();
    fs::write(elsewhere.join("alive"), "").unwrap();
    let output = shell("exec \"$hca\" hca -- true", &folder);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(!stale.exists(), "the run that was killed");
    assert!(pipe.exists() && linked.exists() && elsewhere.join("alive").exists());
    fs::remove_dir_all(folder).unwrap();
}
