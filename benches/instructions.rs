//! Host instructions of the main paths, counted by valgrind's callgrind, and a gate on them: unlike time
//! they are the same in every run of one build.
//!
//! The program runs itself under callgrind, which dumps its counters each time `mark` is entered; what lies
//! between two marks is one path's loop and nothing else. Figures are instructions per message (or step)
//! and include the loop's own, about 5.
//!
//! `cargo bench --bench instructions -- [--check | --record] [--ucx]` (benches/README.md).
//!
//! Not here: the loops (`common`), the paths counted (`paths`), the limits (record/instructions.json).
#![deny(unsafe_code)]

#[path = "instructions/callgrind.rs"]
mod callgrind;
mod common;
#[path = "instructions/limits.rs"]
mod limits;
#[path = "instructions/paths.rs"]
mod paths;
#[allow(unsafe_code, reason = "UCX is a C library")]
mod peer_ucx;

use std::process::ExitCode;

use common::arguments::Arguments;

fn main() -> ExitCode {
    let arguments = Arguments::of_process(&["--check", "--record", "--ucx", callgrind::INSIDE], &[]);
    let has = |name: &str| arguments.has(name);
    let ucx = has("--ucx");
    if has(callgrind::INSIDE) {
        callgrind::inside(ucx);
        return ExitCode::SUCCESS;
    }
    if !has("--bench") {
        // Under `cargo test --benches`: only whether the loops run.
        for path in paths::all(false).into_iter().filter(|path| path.is_quick()) {
            path.run(|| {});
        }
        return ExitCode::SUCCESS;
    }
    if ucx {
        match peer_ucx::Ucx::version() {
            Ok(version) => eprintln!("peer: UCX {version}, TLS=self"),
            Err(why) => {
                eprintln!("UCX cannot be counted: {why}");
                return ExitCode::from(2);
            }
        }
    }
    let names: Vec<String> = paths::all(ucx).iter().map(|path| path.name.clone()).collect();
    let figures = match callgrind::count(&names, ucx) {
        Ok(figures) => figures,
        Err(why) => {
            eprintln!("instructions: {why}");
            return ExitCode::from(2);
        }
    };
    if has("--record") {
        return limits::record(&figures);
    }
    limits::compare(&figures, has("--check"))
}
