//! `tagmatch pingpong` and `tagmatch msgrate`: what they print, beside whom, and what becomes of one half without the other.
//!
//! Nothing is asserted of how long anything takes. Peers are libfabric1 and libucx0 of Debian; without them a test fails.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are outside test functions")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tagmatch"));
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("FI_") || name.starts_with("UCX_")) {
            command.env_remove(name);
        }
    }
    command.args(arguments).stdin(Stdio::null());
    command
}

fn tagmatch(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap_or_else(|error| panic!("tagmatch cannot be run: {error}"))
}

fn complaints(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A short run: the document it prints.
fn measured(arguments: &[&str]) -> Value {
    let output = tagmatch(&[arguments, SHORT, &["--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", complaints(&output));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{arguments:?}: {error}"))
}

/// What every document must have: two sizes with nothing ahead, and four lists.
fn check(document: &Value, contenders: usize) {
    assert_eq!(document["contenders"].as_array().unwrap().len(), contenders, "{document}");
    let points = document["points"].as_array().unwrap();
    let bytes: Vec<_> = points.iter().map(|point| point["bytes"].as_u64().unwrap()).collect();
    assert_eq!(bytes, [8, 70_000, 8, 8, 8, 8]);
    let lists: Vec<_> = points.iter().filter_map(|point| point["ahead"]["list"].as_str()).collect();
    assert_eq!(lists, ["specific", "any-source", "any-tag", "unexpected"]);
    for point in points {
        let results = point["results"].as_array().unwrap();
        assert_eq!(results.len(), contenders);
        for result in results {
            let of = |name: &str| result["ns"][name].as_f64().unwrap();
            assert!(
                0.0 < of("least") && of("least") <= of("median") && of("median") <= of("most"),
                "{result}"
            );
            assert_eq!(rounds(result).len(), 3, "{result}");
            assert_eq!(result["iterations"], 20);
        }
        let ratios = point["ratios"].as_array().unwrap();
        assert_eq!(ratios.len(), contenders - 1);
        for (ratio, other) in ratios.iter().zip(&results[1..]) {
            assert_eq!(ratio["against"], other["name"]);
            let pairs = rounds(&results[0]).into_iter().zip(rounds(other));
            let mut wanted: Vec<f64> = pairs.map(|(ours, theirs)| ours / theirs).collect();
            wanted.sort_by(f64::total_cmp);
            for (name, wanted) in ["least", "median", "most"].into_iter().zip(wanted) {
                let found = ratio[name].as_f64().unwrap();
                assert!((found - wanted).abs() <= wanted * 1e-9, "{name}: {found} and {wanted}");
            }
        }
    }
}

fn rounds(result: &Value) -> Vec<f64> {
    result["rounds_ns"].as_array().unwrap().iter().map(|time| time.as_f64().unwrap()).collect()
}

#[test]
fn latency_and_rate_are_measured_over_both_media_and_beside_all_lists() {
    for over in ["shm", "tcp"] {
        let latency = measured(&["pingpong", "--over", over]);
        assert_eq!(latency["format"], "tagmatch pingpong 1");
        assert_eq!(latency["window"], Value::Null);
        check(&latency, 1);
        let rate = measured(&["msgrate", "--over", over, "--window", "7"]);
        assert_eq!((rate["format"].as_str(), rate["window"].as_u64()), (Some("tagmatch msgrate 1"), Some(7)));
        check(&rate, 1);
        let what = rate["contenders"][0]["what"].as_str().unwrap();
        let wanted = if over == "shm" { "shared memory" } else { "tcp" };
        assert_eq!(what, format!("endpoint of the library, {wanted}"));
    }
}

#[test]
fn others_are_measured_beside_it_in_the_same_rounds() {
    for name in ["pingpong", "msgrate"] {
        for (over, against) in [("shm", "ucx,shm"), ("tcp", "ucx,tcp;ofi_rxm")] {
            let document = measured(&[name, "--over", over, "--against", against]);
            check(&document, 3);
            let what: Vec<_> =
                (0..3).map(|number| document["contenders"][number]["what"].as_str().unwrap()).collect();
            assert!(what[1].starts_with("UCX 1."), "{what:?}");
            assert!(what[2].starts_with("libfabric 1.") || what[2].starts_with("libfabric 2."), "{what:?}");
        }
    }
}

#[test]
fn a_table_names_who_was_measured_and_every_point() {
    let output = tagmatch(&[&["msgrate", "--against", "ucx"], SHORT].concat());
    assert_eq!(output.status.code(), Some(0), "{}", complaints(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.starts_with("tagmatch: endpoint of the library, shared memory\nucx: UCX 1."), "{text}");
    for row in [
        "nothing ",
        "5 receives ",
        "5 receives, any source ",
        "5 receives, any tag ",
        "5 messages, unexpected ",
    ] {
        assert!(text.lines().any(|line| line.starts_with(row)), "{row}: {text}");
    }
}

#[test]
fn a_provider_that_is_not_there_is_refused_with_those_that_are() {
    let output = tagmatch(&[&["pingpong", "--against", "no-such"], SHORT].concat());
    assert_eq!(output.status.code(), Some(2));
    let said = complaints(&output);
    assert!(said.starts_with("tagmatch: no-such: libfabric has no provider of this name"), "{said}");
    assert!(said.contains("; it has ") && said.contains("tcp") && said.contains("called ucx"), "{said}");
    assert_eq!(said.lines().count(), 1, "one half says it: {said}");
}

#[test]
fn arguments_that_cannot_be_used_are_named() {
    let wrong: [(&[&str], &str); 5] = [
        (&["--cpus", "1"], "two numbers"),
        (&["--cpus", "0,100000"], "processor 100000"),
        (&["--over", "verbs"], "--through libfabric"),
        (&["--bytes", "67108865"], "67108865 is not in 0..=67108864"),
        (&["--connect", "127.0.0.1:1"], "--connect 127.0.0.1:1: "),
    ];
    for (arguments, wanted) in wrong {
        let output = tagmatch(&[&["pingpong"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(complaints(&output).contains(wanted), "{arguments:?}: {}", complaints(&output));
    }
}

/// A run that does not end by itself, and its other half.
fn endless(against: &str) -> (Child, u32) {
    let arguments = ["pingpong", "--rounds", "1000000", "--iterations", "10", "--bytes", "8", "--depth", "0"];
    let mut command = command(&arguments);
    if !against.is_empty() {
        command.args(["--against", against]);
    }
    let leader = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut leader = leader.unwrap_or_else(|error| panic!("tagmatch cannot be run: {error}"));
    let children = format!("/proc/{0}/task/{0}/children", leader.id());
    loop {
        let found = fs::read_to_string(&children).unwrap_or_default();
        if let Some(other) = found.split_whitespace().next().and_then(|pid| pid.parse().ok()) {
            return (leader, other);
        }
        assert!(leader.try_wait().unwrap().is_none(), "it ended before it had another half");
        std::thread::yield_now();
    }
}

/// Wait until the other half listens to what the leader says.
fn until_it_listens(leader: &mut Child, other: u32) {
    let is_listening = || {
        let tasks = fs::read_dir(format!("/proc/{other}/task")).ok()?;
        let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
        names.into_iter().any(|name| name == "other half\n").then_some(())
    };
    while is_listening().is_none() {
        assert!(leader.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::yield_now();
    }
}

fn kill(process: u32) {
    let status = Command::new("kill").args(["-9", &process.to_string()]).status();
    assert!(status.is_ok_and(|status| status.success()), "process {process} cannot be killed");
}

#[test]
fn when_the_other_half_is_killed_it_says_so_and_ends() {
    for (against, is_early) in [("", true), ("", false), ("ucx,shm", false)] {
        let (mut leader, other) = endless(against);
        if !is_early {
            until_it_listens(&mut leader, other);
        }
        kill(other);
        let output = leader.wait_with_output().unwrap();
        let said = complaints(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("the other half ended with signal: 9"), "{said}");
        assert!(!Path::new(&format!("/proc/{other}")).exists(), "it is gone, and was waited for");
    }
}

#[test]
fn when_the_leader_is_killed_the_other_half_ends() {
    let (mut leader, other) = endless("");
    until_it_listens(&mut leader, other);
    kill(leader.id());
    let mut said = String::new();
    // Both halves have it open: its end is the end of both.
    leader.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    leader.wait().unwrap();
    assert!(said.contains("tagmatch: the other half is gone"), "{said}");
}

/// A half that waits, and where.
fn waiting() -> (Child, BufReader<std::process::ChildStderr>, String) {
    let half = command(&["pingpong", "--listen", "127.0.0.1:0"]).stderr(Stdio::piped()).spawn();
    let mut half = half.unwrap_or_else(|error| panic!("tagmatch cannot be run: {error}"));
    let mut said = BufReader::new(half.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    let address = line.trim().rsplit(' ').next().unwrap_or_default().to_owned();
    assert!(line.starts_with("tagmatch: waiting at 127.0.0.1:"), "{line}");
    (half, said, address)
}

#[test]
fn two_halves_that_were_started_apart_find_each_other() {
    let (mut half, _, address) = waiting();
    check(&measured(&["pingpong", "--over", "tcp", "--connect", &address]), 1);
    assert_eq!(half.wait().unwrap().code(), Some(0));
}

#[test]
fn what_is_no_other_half_is_turned_away() {
    let setup = r#"{"contenders":[{"own":["endpoint","tcp"]}],"bytes_max":99999999999,"depth_max":0,"window":1,"cpu":null}"#;
    let sayings = [
        ("", "is none of this program"),
        ("{\n", "is none of this program"),
        ("\"end\"\n", "does not greet"),
        (
            &format!("{{\"greeting\":{{\"speaks\":\"another\",\"setup\":{setup}}}}}\n"),
            "the other half is \"another\"",
        ),
    ];
    for (line, wanted) in sayings {
        let (mut half, mut said, address) = waiting();
        let mut socket = TcpStream::connect(&address).unwrap();
        socket.write_all(line.as_bytes()).unwrap();
        drop(socket);
        let mut text = String::new();
        said.read_to_string(&mut text).unwrap();
        assert_eq!(half.wait().unwrap().code(), Some(2), "{line}: {text}");
        assert!(text.contains(wanted), "{line}: {text}");
    }
}

#[test]
fn what_is_mirrored_of_ucx_is_as_its_headers_have_it() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pair/ucx_layouts.c");
    let output = Command::new("cc")
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"])
        .arg(source)
        .output()
        .unwrap_or_else(|error| panic!("cc: {error}"));
    let said = complaints(&output);
    assert!(output.status.success(), "{said}\nOn Debian: apt-get install libucx-dev");
}

/// What makes a run short, whatever the machine.
const SHORT: &[&str] = &["--iterations", "20", "--rounds", "3", "--bytes", "8,70000", "--depth", "5"];
