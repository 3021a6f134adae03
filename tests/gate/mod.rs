//! A bench that counts instructions and compares them with its record, as a test.
//!
//! Runs without libtest's harness, so that it can say that it was skipped: counts need valgrind and a
//! release build, which it makes. Where CI is set, a missing valgrind is a failure.

use std::env;
use std::process::{Command, ExitCode, Stdio};

/// Run the bench with these arguments of cargo, in this directory, as the test of this name.
pub(crate) fn run(test: &str, bench: &[&str], directory: &str) -> ExitCode {
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
    if !valgrind_runs() {
        if env::var_os("CI").is_some() {
            println!("test {test} ... FAILED: valgrind cannot be run; on Debian it is the package valgrind");
            summary("FAILED", [0, 1, 0, 0]);
            return ExitCode::FAILURE;
        }
        println!("test {test} ... ignored, valgrind cannot be run; on Debian it is the package valgrind");
        return summary("ok", [0, 0, 1, 0]);
    }
    let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let status = Command::new(cargo).args(bench).args(["--", "--check"]).current_dir(directory).status();
    if status.is_ok_and(|status| status.success()) {
        println!("test {test} ... ok");
        summary("ok", [1, 0, 0, 0])
    } else {
        println!("test {test} ... FAILED");
        summary("FAILED", [0, 1, 0, 0]);
        ExitCode::FAILURE
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
