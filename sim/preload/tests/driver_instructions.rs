//! Instructions of an offloaded receive through the real driver (benches/driver.rs) against their limit.
//!
//! Runs without libtest's harness, so that it can say that it was skipped: counts need valgrind and a
//! release build, which it makes. Where CI is set, a missing valgrind is a failure.

use std::env;
use std::process::{Command, ExitCode, Stdio};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    if has("--list") {
        if !has("--ignored") {
            println!("{TEST}: test");
        }
        return ExitCode::SUCCESS;
    }
    let wanted = arguments
        .iter()
        .filter(|argument| !argument.starts_with('-'))
        .all(|filter| TEST.contains(filter.as_str()));
    if !wanted || has("--ignored") {
        return summary("ok", [0, 0, 0, 1]);
    }
    if !valgrind_runs() {
        if env::var_os("CI").is_some() {
            println!("test {TEST} ... FAILED: valgrind cannot be run; on Debian it is the package valgrind");
            summary("FAILED", [0, 1, 0, 0]);
            return ExitCode::FAILURE;
        }
        println!("test {TEST} ... ignored, valgrind cannot be run; on Debian it is the package valgrind");
        return summary("ok", [0, 0, 1, 0]);
    }
    let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let status = Command::new(cargo)
        .args(["bench", "-p", "tagmatch-hca", "--bench", "driver", "--", "--check"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status();
    if status.is_ok_and(|status| status.success()) {
        println!("test {TEST} ... ok");
        summary("ok", [1, 0, 0, 0])
    } else {
        println!("test {TEST} ... FAILED");
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

const TEST: &str = "an_offloaded_receive_costs_no_more_than_its_limit";
