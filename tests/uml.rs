//! `tagmatch rxe --backend uml`: a Linux that is a process does what the emulated machine does, where its kernel has been
//! built (`tagmatch rxe --backend uml --build`): for these tests, or for this user. Else it is skipped, and says so.
//!
//! With `TAGMATCH_NIGHTLY` set, as in `.ci/nightly`, which builds one, a missing kernel is a failure.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests are outside test functions")]

#[path = "rxe/bench.rs"]
#[allow(dead_code, reason = "there are no stages here")]
mod bench;
#[path = "rxe/doing.rs"]
mod doing;
mod gate;

use gate::Verdict;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    gate::named(TEST, run)
}

fn run() -> Verdict {
    let cache = match kept() {
        Ok(cache) => cache,
        Err(verdict) => return verdict,
    };
    // What fails there is said by its panic.
    let done = std::panic::catch_unwind(|| {
        doing::run_with_two_devices("uml", &cache);
        doing::run_on_two_machines("uml", &cache);
    });
    if done.is_ok() { Verdict::Passed } else { Verdict::Failed("see above".into()) }
}

/// Where there is a kernel that comes up.
fn kept() -> Result<PathBuf, Verdict> {
    let own = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rxe");
    let cached = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let users = cached.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let mut why = String::new();
    for cache in std::iter::once(own).chain(users.map(|cache| cache.join("tagmatch/rxe"))) {
        let output = bench::rxe(&["--backend", "uml", "--cache"]).arg(&cache).args(["--", "true"]).output();
        let output = output.map_err(|error| Verdict::Failed(error.to_string()))?;
        let said = bench::errors(&output);
        match output.status.code() {
            Some(0) => return Ok(cache),
            Some(NOT_RUN) if said.contains("no kernel was built yet") => why = said,
            _ => return Err(Verdict::Failed(said)),
        }
    }
    let why = why.trim().to_owned();
    let is_nightly = std::env::var_os("TAGMATCH_NIGHTLY").is_some();
    Err(if is_nightly { Verdict::Failed(why) } else { Verdict::Skipped(why) })
}

const TEST: &str = "a_kernel_that_was_built_does_what_the_emulated_machine_does";
/// How `tagmatch rxe` ends where the command was not run.
const NOT_RUN: i32 = 125;
