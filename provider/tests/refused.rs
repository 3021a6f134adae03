//! Parameters of the environment with which the provider offers nothing, or less: each in a process of its own, since an
//! environment is a whole process's.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "a call of C through a table of an object is to read the table and to call"
)]

mod common;

use std::process::{Command, Output};

use common::{Received, Side, Wanted, fabric, minus};
use tagmatch::provider::abi;
use tagmatch::provider::statistics::{Report, reports};

/// Run one of the tests again, in a process with this variable.
fn again(test: &str, variable: &str, value: &str) -> Output {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(variable, value)
        .output()
        .unwrap()
}

fn is_set(variable: &str, value: &str) -> bool {
    std::env::var_os(variable).is_some_and(|set| set == value)
}

/// The process passed: what it said.
fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{}{text}", String::from_utf8_lossy(&output.stdout));
    text
}

fn offers_nothing() -> bool {
    let library = fabric();
    let none = i32::try_from(minus(abi::FI_ENODATA)).unwrap();
    (0..3).all(|_| library.info(library.api(), |_| {}).is_err_and(|code| code == none))
}

#[test]
fn a_device_that_must_match_and_is_not_there_is_named_once_and_nothing_is_offered() {
    if is_set("FI_TAGMATCH_TM", "require") {
        assert!(offers_nothing());
        return;
    }
    let name = "a_device_that_must_match_and_is_not_there_is_named_once_and_nothing_is_offered";
    let said = said(&again(name, "FI_TAGMATCH_TM", "require"));
    assert_eq!(
        said.matches("tagmatch: FI_TAGMATCH_TM=require is refused: there is no device").count(),
        1,
        "{said}"
    );
}

#[test]
fn a_bad_value_is_named_once_and_nothing_is_offered() {
    if is_set("FI_TAGMATCH_BUFFER_SIZE", "many") {
        assert!(offers_nothing());
        return;
    }
    let name = "a_bad_value_is_named_once_and_nothing_is_offered";
    let said = said(&again(name, "FI_TAGMATCH_BUFFER_SIZE", "many"));
    let line = "tagmatch: FI_TAGMATCH_BUFFER_SIZE=many is refused: it takes a number from 64 to 1073741824";
    assert_eq!(said.matches(line).count(), 1, "{said}");
}

#[test]
fn without_completion_data_messages_that_carry_some_are_refused_and_others_go() {
    if is_set("FI_TAGMATCH_CQ_DATA", "0") {
        let (one, other) = (Side::new(), Side::new());
        let to = one.insert(&other.name());
        assert_eq!(one.send_data(to, 1, b"data", 7, 1), minus(abi::FI_EINVAL));
        assert_eq!(one.inject(to, 1, b"data", Some(7)), minus(abi::FI_EINVAL));
        let mut buffer = [0; 4];
        assert_eq!(other.receive(abi::FI_ADDR_UNSPEC, 1, 0, &mut buffer, 2), 0);
        one.send_surely(&[&other], |side| side.inject(to, 1, b"mute", None));
        other.next(&[&one]);
        assert_eq!(&buffer, b"mute");
        return;
    }
    let name = "without_completion_data_messages_that_carry_some_are_refused_and_others_go";
    said(&again(name, "FI_TAGMATCH_CQ_DATA", "0"));
}

/// What `fi_inject_test -A inject` of the conformance suite does.
#[test]
fn an_endpoint_whose_sends_all_inject_takes_its_buffers_back_at_once() {
    let library = fabric();
    let inject = |hints: &mut abi::fi_info| {
        hints.caps = abi::FI_TAGGED;
        // SAFETY: hints have all parts.
        unsafe { (*hints.tx_attr).op_flags = abi::FI_INJECT };
    };
    let info = library.info(library.api(), inject).unwrap();
    let (one, other) = (Side::open(library, info, &Wanted::default()), Side::new());
    let to = one.insert(&other.name());
    let (mut payload, mut buffer) = (*b"before", [0; 6]);
    assert_eq!(other.receive(abi::FI_ADDR_UNSPEC, 1, 0, &mut buffer, 2), 0);
    one.send_surely(&[&other], |side| side.send(to, 1, &payload, 1));
    payload.fill(b'x');
    other.next(&[&one]);
    assert_eq!(&buffer, b"before");
    assert!(
        matches!(one.next(&[&other]), Received::Ok { context: 1, .. }),
        "success is reported: no inject call"
    );
}

#[test]
fn counters_are_seen_while_a_process_runs_and_are_left_to_a_file_at_its_end() {
    const VARIABLE: &str = "FI_TAGMATCH_STATS";
    let file = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("counters-{}", std::process::id()));
    let Some(set) = std::env::var_os(VARIABLE) else {
        let name = "counters_are_seen_while_a_process_runs_and_are_left_to_a_file_at_its_end";
        // Of a run that failed, whose process had the same number.
        let _ = std::fs::remove_file(&file);
        said(&again(name, VARIABLE, file.to_str().unwrap()));
        let left = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        let reports = Report::parse_all(&left).unwrap();
        assert_eq!(reports.len(), 2, "one a domain: {left}");
        let sum = |name: &str| -> u64 { reports.iter().map(|report| count(report, name)).sum() };
        assert_eq!((sum("sent_eager"), sum("bytes_sent"), sum("received")), (1, 5, 1));
        assert_eq!((sum("matched_posted"), sum("posted_tagged_now")), (1, 0));
        return;
    };
    let (one, other) = (Side::new(), Side::new());
    let mut buffer = [0; 5];
    assert_eq!(other.receive(abi::FI_ADDR_UNSPEC, 1, 0, &mut buffer, 2), 0);
    // The first progress writes; what comes later is written a second later.
    other.progress();
    let own: Vec<Report> = reports().into_iter().filter(|r| r.pid == std::process::id()).collect();
    assert_eq!(own.iter().map(|report| count(report, "posted_tagged_now")).sum::<u64>(), 1, "{own:?}");
    let to = one.insert(&other.name());
    one.send_surely(&[&other], |side| side.send(to, 1, b"hello", 1));
    other.next(&[&one]);
    one.next(&[&other]);
    drop((one, other));
    let own = reports().into_iter().filter(|r| r.pid == std::process::id());
    assert_eq!(own.count(), 0, "nothing stays in memory ({})", set.display());
}

#[test]
fn counters_that_cannot_be_written_at_the_end_fail_no_call() {
    const NAME: &str = "counters_that_cannot_be_written_at_the_end_fail_no_call";
    if is_set("FI_TAGMATCH_STATS", "exit") {
        // Whoever drops it sees that every fi_close returns 0.
        drop(Side::new());
        return;
    }
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let ended = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", NAME, "--nocapture"])
        .env("FI_TAGMATCH_STATS", "exit")
        .stderr(full)
        .output()
        .unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stdout));
}

#[test]
fn a_file_of_counters_that_cannot_be_made_is_named_with_its_cause() {
    const NAME: &str = "a_file_of_counters_that_cannot_be_made_is_named_with_its_cause";
    const FILE: &str = "/no-such-directory/counters";
    if is_set("FI_TAGMATCH_STATS", FILE) {
        drop(Side::new());
        return;
    }
    let said = said(&again(NAME, "FI_TAGMATCH_STATS", FILE));
    let line = format!("tagmatch: FI_TAGMATCH_STATS={FILE}: No such file or directory");
    assert_eq!(said.matches(&line).count(), 1, "a line a domain: {said}");
}

#[test]
fn an_interface_that_is_chosen_is_the_only_one_also_where_an_address_is_given() {
    const NAME: &str = "an_interface_that_is_chosen_is_the_only_one_also_where_an_address_is_given";
    if is_set("FI_TAGMATCH_IFACE", "no-such-interface") {
        // Hints name 127.0.0.1 as the own address.
        assert!(offers_nothing());
        return;
    }
    let said = said(&again(NAME, "FI_TAGMATCH_IFACE", "no-such-interface"));
    let line = "tagmatch: FI_TAGMATCH_IFACE=no-such-interface is refused: no interface that is up has that name or address";
    assert_eq!(said.matches(line).count(), 1, "{said}");
}

fn count(report: &Report, name: &str) -> u64 {
    report.counters.iter().find(|(known, _)| known == name).unwrap().1
}
