//! A test without libtest's harness, so that it can say that it was skipped: one in a program.
//!
//! Such is a bench that counts instructions and compares them with its record: counts need valgrind and a release build,
//! which it makes. Where CI is set, a missing valgrind is a failure.
#![allow(dead_code, reason = "not every program has a bench")]

use std::env;
use std::process::{Command, ExitCode, Stdio};

/// What became of a test.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// All is as it should be.
    Passed,
    /// It could not be run, for this reason.
    Skipped(String),
    /// Something is wrong.
    Failed(String),
}

/// Run the bench with these arguments of cargo, in this directory, as the test of this name.
pub(crate) fn run(test: &str, bench: &[&str], directory: &str) -> ExitCode {
    named(test, || {
        if !valgrind_runs() {
            let why = "valgrind cannot be run; on Debian it is the package valgrind".to_owned();
            return if env::var_os("CI").is_some() { Verdict::Failed(why) } else { Verdict::Skipped(why) };
        }
        let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".into());
        let status = Command::new(cargo).args(bench).args(["--", "--check"]).current_dir(directory).status();
        match status {
            Ok(status) if status.success() => Verdict::Passed,
            Ok(status) => Verdict::Failed(format!("the bench ended with {status}")),
            Err(error) => Verdict::Failed(format!("cargo cannot be run: {error}")),
        }
    })
}

/// Run a test of this name, if the arguments of this program want that, and say what libtest would.
pub(crate) fn named(test: &str, run: impl FnOnce() -> Verdict) -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    if has("--list") {
        if !has("--ignored") {
            println!("{test}: test");
        }
        return ExitCode::SUCCESS;
    }
    let wanted = arguments
        .iter()
        .filter(|argument| !argument.starts_with('-'))
        .all(|filter| test.contains(filter.as_str()));
    if !wanted || has("--ignored") {
        return summary("ok", [0, 0, 0, 1]);
    }
    match run() {
        Verdict::Passed => {
            println!("test {test} ... ok");
            summary("ok", [1, 0, 0, 0])
        }
        Verdict::Skipped(why) => {
            println!("test {test} ... ignored, {why}");
            summary("ok", [0, 0, 1, 0])
        }
        Verdict::Failed(why) => {
            println!("test {test} ... FAILED: {why}");
            summary("FAILED", [0, 1, 0, 0]);
            ExitCode::FAILURE
        }
    }
}

fn valgrind_runs() -> bool {
    let status =
        Command::new("valgrind").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Closes as libtest does.
fn summary(result: &str, [passed, failed, ignored, filtered]: [u32; 4]) -> ExitCode {
    println!(
        "\ntest result: {result}. {passed} passed; {failed} failed; {ignored} ignored; 0 measured; \
         {filtered} filtered out; finished in 0.00s\n"
    );
    ExitCode::SUCCESS
}
