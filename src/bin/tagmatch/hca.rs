//! `tagmatch hca -- PROGRAM`: run any program that uses verbs on a simulated ConnectX.
//!
//! The simulated card is `libtagmatch_hca.so` (package tagmatch-hca), preloaded under the program and whatever it
//! starts; this command finds it, makes the run directory in which those processes meet, and passes on how the
//! program ended. How it works: docs/simulated-hca.md.

use crate::output::{complain, harmless};
use crate::run_directory::RunDirectory;
use crate::{End, HcaArguments};
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use tagmatch::device::verbs::launch;

/// Run the program: the exit code.
pub(crate) fn run(arguments: &HcaArguments) -> u8 {
    run_program(arguments).unwrap_or_else(|failure| {
        // If that cannot be written, nobody is there to be told.
        let _ = writeln!(io::stderr().lock(), "tagmatch hca: {}", harmless(failure.what));
        failure.code
    })
}

/// Why the program was not run.
struct Failure {
    code: u8,
    what: String,
}

fn run_program(arguments: &HcaArguments) -> Result<u8, Failure> {
    let no_device = |what| Failure { code: CODE_NO_DEVICE, what };
    let library = library().map_err(no_device)?;
    let run = RunDirectory::new(PREFIX).map_err(no_device)?;
    let [program, rest @ ..] = arguments.program.as_slice() else {
        return Err(Failure { code: CODE_NO_DEVICE, what: "there is no program to run".into() });
    };
    let mut command = Command::new(program);
    command.args(rest);
    let library = loadable(&run, library).map_err(no_device)?;
    match launch::run(on_card(&mut command, &library, &run, &options(arguments)), &run.alive) {
        Ok(status) => Ok(code(status)),
        Err(error) => {
            let is_missing = error.kind() == io::ErrorKind::NotFound;
            let code = if is_missing { CODE_NOT_FOUND } else { CODE_NOT_RUN };
            Err(Failure { code, what: format!("{} cannot be run: {error}", program.display()) })
        }
    }
}

/// Run this program once more, with the same arguments and a card that it drives itself: how that ended.
pub(crate) fn run_again(tags: u32) -> End {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    let end = run_driven(&arguments, tags).and_then(|status| match status.code() {
        Some(0) => Ok(End::AsExpected),
        Some(1) => Ok(End::Disagreement),
        Some(_) => Ok(End::Unusable),
        None => Err(format!("the run on the simulated card ended with {status}")),
    });
    end.unwrap_or_else(|what| {
        complain(format_args!("--device hca: {what}"));
        End::Unusable
    })
}

/// Run this program with these arguments and a card of so many tags that it drives itself: how that ended.
pub(crate) fn run_driven(arguments: &[OsString], tags: u32) -> Result<ExitStatus, String> {
    let library = library()?;
    if env::var_os(AGAIN).is_some() {
        return Err(format!("{} was preloaded, and its functions are not there", library.display()));
    }
    let run = RunDirectory::new(PREFIX)?;
    let program = env::current_exe().map_err(|error| format!("this program is nowhere: {error}"))?;
    let library = loadable(&run, library)?;
    let mut command = Command::new(program);
    command.args(arguments).env(AGAIN, "1");
    let command = on_card(&mut command, &library, &run, &format!("tags={tags},{DRIVEN}"));
    let status = launch::run(command, &run.alive);
    status.map_err(|error| format!("this program cannot be run again: {error}"))
}

/// The command on a card of its own.
fn on_card<'a>(
    command: &'a mut Command,
    library: &Path,
    run: &RunDirectory,
    options: &str,
) -> &'a mut Command {
    command
        .env("LD_PRELOAD", preload(library))
        .env("SYSFS_PATH", run.path.join("sys"))
        .env("TAGMATCH_HCA_RUN", &*run.path)
        .env(OPTIONS, options)
}

/// The device's options as the library reads them.
fn options(arguments: &HcaArguments) -> String {
    let mut options = vec![format!("tags={}", arguments.tags)];
    if arguments.roce {
        options.push("link=ethernet".into());
    }
    options.extend(arguments.switches.iter().cloned());
    options.join(",")
}

/// Ours before what is preloaded already.
fn preload(library: &Path) -> OsString {
    let mut list = library.as_os_str().to_os_string();
    if let Some(before) = env::var_os("LD_PRELOAD").filter(|before| !before.is_empty()) {
        list.push(":");
        list.push(before);
    }
    list
}

/// Where the library is: named, beside this program, or where a package puts it.
fn library() -> Result<PathBuf, String> {
    if let Some(named) = env::var_os(VARIABLE) {
        let named = PathBuf::from(named);
        let found = fs::canonicalize(&named);
        return found.map_err(|error| format!("{VARIABLE} names {}: {error}", named.display()));
    }
    let program = env::current_exe().map_err(|error| format!("this program is nowhere: {error}"))?;
    let folder = program.parent().unwrap_or(Path::new("."));
    let places = [folder.join(LIBRARY), folder.join("../lib/tagmatch").join(LIBRARY)];
    places.iter().find_map(|place| fs::canonicalize(place).ok()).ok_or_else(|| {
        format!(
            "there is no {LIBRARY} in {} or ../lib/tagmatch. In the sources, `cargo build -p tagmatch-hca` \
             (with --release for a release build) makes it; or set {VARIABLE} to its place.",
            folder.display()
        )
    })
}

/// How the program ended, as a shell says it.
pub(crate) fn code(status: ExitStatus) -> u8 {
    let by_signal = status.signal().map(|signal| 128 + signal);
    let code = status.code().or(by_signal);
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// The library by a path that can stand in a list of libraries to preload, where spaces and colons separate: its
/// own, or that of a link in the run directory.
fn loadable(run: &RunDirectory, library: PathBuf) -> Result<PathBuf, String> {
    let can_stand = |path: &Path| !path.as_os_str().as_bytes().iter().any(|byte| b" :".contains(byte));
    if can_stand(&library) {
        return Ok(library);
    }
    let link = run.path.join(LIBRARY);
    if !can_stand(&link) {
        let path = run.path.display();
        return Err(format!(
            "{} cannot be preloaded, nor what is in {path}: set TMPDIR to a directory without spaces and colons",
            library.display()
        ));
    }
    let linked = symlink(&library, &link).map(|()| link);
    linked.map_err(|error| format!("{} cannot be linked: {error}", library.display()))
}

const LIBRARY: &str = "libtagmatch_hca.so";
/// What the library reads its options from.
pub(crate) const OPTIONS: &str = "TAGMATCH_HCA_OPTIONS";
/// The option by which the program moves the card on itself.
pub(crate) const DRIVEN: &str = "drive=steps";
/// Set in a program that was run again by [`run_again`].
const AGAIN: &str = "TAGMATCH_AGAIN";
const VARIABLE: &str = "TAGMATCH_HCA_LIB";
const PREFIX: &str = "tagmatch-hca-run-";
/// As `env` and `timeout` have it: they themselves failed, the program cannot be run, there is none.
const CODE_NO_DEVICE: u8 = 125;
const CODE_NOT_RUN: u8 = 126;
const CODE_NOT_FOUND: u8 = 127;
