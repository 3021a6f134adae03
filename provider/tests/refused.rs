//! Parameters of the environment with which the provider offers nothing, or less: each in a process of its own, since an
//! environment is a whole process's.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "a call of C through a table of an object is to read the table and to call"
)]

mod common;

use std::process::{Command, Output};

use common::{fabric, minus};
use tagmatch::provider::abi;

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
    assert_eq!(said.matches("tagmatch: FI_TAGMATCH_TM=require is refused: there is no device").count(), 1, "{said}");
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
