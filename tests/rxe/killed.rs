//! However a run ends, nothing is left: no process, no temporary file.

use crate::bench::Stage;
use std::io::Read as _;
use std::process::Command;

/// A machine that says that it has begun, and then does not end; with a process of its own beside it.
const ENDLESS: &str = ": >ready; echo begun >out; sleep 3600 & exec sleep 3600";

/// Wait until nothing is left; the test's own time limit is the end of that.
fn await_nothing(stage: &Stage) {
    while !stage.left().is_empty() || !stage.processes().is_empty() {
        std::thread::yield_now();
    }
}

#[test]
fn a_run_that_ended_by_itself_leaves_nothing() {
    let stage =
        Stage::new(": >ready; echo begun >out; sleep 3600 & echo 5 >rc.new; mv rc.new rc; exec sleep 3600");
    let output = stage.command(&["--", "command"]).output().unwrap();
    assert_eq!(output.status.code(), Some(5));
    assert_eq!(stage.left(), Vec::<std::path::PathBuf>::new(), "at once");
    // What was killed takes its time to be gone.
    await_nothing(&stage);
}

#[test]
fn a_run_that_is_told_to_end_or_killed_leaves_nothing() {
    for signal in ["HUP", "TERM", "KILL"] {
        let stage = Stage::new(ENDLESS);
        let (mut child, mut out) = stage.begun(&["--", "command"]);
        assert_eq!(stage.left().len(), 1);
        assert!(stage.processes().len() > 2, "{:?}", stage.processes());
        let told = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().unwrap();
        assert!(told.success());
        assert_eq!(child.wait().unwrap().code(), None, "ended by {signal}");
        out.read_to_end(&mut Vec::new()).unwrap();
        await_nothing(&stage);
    }
}

#[test]
fn a_machine_ends_with_the_command_even_if_its_watcher_is_killed_and_the_next_run_removes_the_files() {
    let stage = Stage::new(": >ready; echo begun >out; exec sleep 3600");
    let (mut child, _out) = stage.begun(&["--", "command"]);
    let run = stage.left().remove(0).display().to_string();
    for pid in processes_with(&run, "tagmatch-rxe-watcher") {
        assert!(Command::new("kill").args(["-s", "KILL", &pid]).status().unwrap().success());
    }
    child.kill().unwrap();
    child.wait().unwrap();
    while !stage.processes().is_empty() {
        std::thread::yield_now();
    }
    assert_eq!(stage.left().len(), 1, "nobody was left to remove it");
    let status = stage.command(&["-q", "--timeout", "1", "--", "command"]).output().unwrap().status;
    assert_eq!(status.code(), Some(124));
    await_nothing(&stage);
}

#[test]
fn a_run_whose_watcher_was_killed_leaves_nothing_at_its_end() {
    let stage = Stage::new(
        ": >ready; echo begun >out; until [ -e go ]; do sleep 0.1; done; echo 0 >rc.new; mv rc.new rc; exec sleep 3600",
    );
    let (mut child, mut out) = stage.begun(&["--", "command"]);
    let run = stage.left().remove(0);
    for pid in processes_with(&run.display().to_string(), "tagmatch-rxe-watcher") {
        assert!(Command::new("kill").args(["-s", "KILL", &pid]).status().unwrap().success());
    }
    std::fs::write(run.join("host0/go"), "").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    out.read_to_end(&mut Vec::new()).unwrap();
    assert_eq!(stage.left(), Vec::<std::path::PathBuf>::new(), "at once");
    await_nothing(&stage);
}

/// Processes that have both words among their arguments.
fn processes_with(one: &str, other: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let with = entries.filter_map(|entry| {
        let words = std::fs::read(entry.path().join("cmdline")).ok()?;
        let words = String::from_utf8_lossy(&words).into_owned();
        (words.contains(one) && words.contains(other))
            .then(|| entry.file_name().to_string_lossy().into_owned())
    });
    with.collect()
}
