//! The suite as a program: asks what a device can do, runs what fits, and counts.

use std::io;
use std::process::ExitCode;

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn main() -> ExitCode {
    let (mut out, mut err) = (io::stdout().lock(), io::stderr().lock());
    ExitCode::from(tagmatch_hw_tests::cli::run(std::env::args_os(), &mut out, &mut err))
}

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
fn main() -> ExitCode {
    use io::Write;
    // Where this cannot be written, the exit code is all there is.
    let _ = writeln!(io::stderr(), "tagmatch-hw-tests: verbs devices are there on 64-bit Linux only");
    ExitCode::from(2)
}
