//! `tagmatch mpirun ARGS…` and `tagmatch env`: an unmodified MPI over the provider.
//!
//! Both find out which MPI there is and where the provider is, and set what makes that MPI use it. `mpirun` then becomes
//! the MPI's own mpirun (it is executed in the place of this program), so that signals, standard input and the exit
//! status are its own and nothing is left to clean up. `env` prints the same for a shell.
//! All is set by variables: what stands on the command line or is set already wins over them.

mod beside;
mod command_line;
#[cfg(target_pointer_width = "64")]
mod counted;
mod kind;
pub(crate) mod place;
mod settings;

use crate::output::{self, complain, harmless};
use crate::{End, EnvArguments, MpiArguments, MpirunArguments};
use clap::ValueEnum;
use kind::{Kind, Launcher};
use serde::Serialize;
use settings::{Host, Setting, Wish};
use std::env;
use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Which part of a message's tag names its source.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub(crate) enum TagLayout {
    /// As the MPI has it unless told otherwise.
    #[default]
    Auto,
    /// The source is in the tag, so that a device can match it. In Open MPI synchronous sends then hang.
    SourceInTag,
    /// The source is apart from the tag, and receives are directed: matched in software.
    SourceApart,
}

/// Become mpirun: the exit code where that did not come to pass.
pub(crate) fn run(arguments: &MpirunArguments) -> u8 {
    #[cfg(target_pointer_width = "64")]
    if arguments.stats {
        return run_counted(arguments).unwrap_or_else(|failure| {
            say(failure.what);
            failure.code
        });
    }
    match prepare(&arguments.common, &arguments.arguments, None) {
        Ok(prepared) => match arguments.beside {
            None => execute(&prepared, arguments),
            Some(rounds) => compare(&prepared, arguments, rounds),
        },
        Err(failure) => {
            say(failure.what);
            failure.code
        }
    }
}

/// Print what `mpirun` would set, as lines for a shell.
pub(crate) fn print_environment(arguments: &EnvArguments) -> End {
    match prepare(&arguments.common, &[], None) {
        Ok(Prepared { settings, .. }) if arguments.json => output::write_json(&settings, End::AsExpected),
        Ok(Prepared { settings, .. }) => {
            let set = settings.iter().filter(|setting| !setting.is_kept);
            let lines: String = set.map(|setting| arguments.shell.line(setting)).collect();
            output::write(&lines, End::AsExpected)
        }
        Err(failure) => {
            complain(failure.what);
            End::Unusable
        }
    }
}

/// Why mpirun was not run.
struct Failure {
    code: u8,
    what: String,
}

/// What is to be run and how.
#[derive(Debug, Serialize)]
struct Prepared {
    launcher: Launcher,
    settings: Vec<Setting>,
}

fn prepare(
    common: &MpiArguments,
    arguments: &[OsString],
    statistics: Option<&str>,
) -> Result<Prepared, Failure> {
    let nothing = |what| Failure { code: CODE_NOT_SET_UP, what };
    let launcher = Launcher::find(common.mpirun.as_deref())
        .map_err(|missing| Failure { code: CODE_NOT_FOUND, what: missing })?;
    let variable = |name: &str| env::var(name).ok();
    let provider = place::directory(variable("FI_PROVIDER_PATH").as_deref()).map_err(nothing)?;
    let wish = Wish {
        layout: common.layout,
        offload: common.tm.clone(),
        network: common.net.clone(),
        device: common.device.clone(),
        statistics: statistics.map(str::to_owned),
        may_be_root: common.allow_run_as_root,
        oversubscribe: common.oversubscribe,
    };
    let settings = settings::of(&launcher, &provider, &wish, arguments, &host(), &variable);
    if common.layout == TagLayout::SourceInTag && launcher.kind != Kind::Mpich {
        complain(NO_ACKNOWLEDGEMENTS);
    }
    Ok(Prepared { launcher, settings })
}

/// Run it both ways, and show what it took.
fn compare(prepared: &Prepared, arguments: &MpirunArguments, rounds: u32) -> u8 {
    if arguments.verbose {
        tell(prepared, &arguments.arguments);
    }
    match beside::run(prepared, &arguments.arguments, rounds) {
        Ok(timed) if arguments.json => output::write_json(&timed, End::AsExpected).code(),
        Ok(timed) => output::write(&beside::text(&timed), End::AsExpected).code(),
        Err(failure) => {
            say(failure.what);
            failure.code
        }
    }
}

/// Run mpirun, and show what was counted: the exit code.
#[cfg(target_pointer_width = "64")]
fn run_counted(arguments: &MpirunArguments) -> Result<u8, Failure> {
    let left = counted::Left::new().map_err(|what| Failure { code: CODE_NOT_SET_UP, what })?;
    let prepared = prepare(&arguments.common, &arguments.arguments, Some(left.path()))?;
    counted::run(&prepared, arguments, &handed(&prepared, arguments), &left)
}

/// The command line of mpirun.
fn handed(prepared: &Prepared, arguments: &MpirunArguments) -> Vec<OsString> {
    let Prepared { launcher, settings } = prepared;
    let all = settings::forwarding(launcher, settings, &variables(), &arguments.arguments);
    if arguments.verbose {
        tell(prepared, &all);
    }
    all
}

/// Only what is never returns from here.
fn execute(prepared: &Prepared, arguments: &MpirunArguments) -> u8 {
    let Prepared { launcher, settings } = prepared;
    let all = handed(prepared, arguments);
    let set = settings.iter().filter(|setting| !setting.is_kept);
    let set = set.map(|setting| (&setting.name, &setting.value));
    let error = Command::new(&launcher.path).args(&all).envs(set).exec();
    say(format_args!("{} cannot be run: {error}", launcher.path.display()));
    if error.kind() == io::ErrorKind::NotFound { CODE_NOT_FOUND } else { CODE_NOT_RUN }
}

/// The variables that are set, in order.
fn variables() -> Vec<String> {
    let mut names: Vec<String> = env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect();
    names.sort_unstable();
    names
}

/// Say what was set, and what is run.
fn tell(prepared: &Prepared, arguments: &[OsString]) {
    let Prepared { launcher, settings } = prepared;
    say(format_args!("{} is {}", launcher.path.display(), launcher.version));
    for Setting { name, value, why, is_kept } in settings {
        let how = if *is_kept { "kept as it was" } else { why };
        say(format_args!("{name}={value} ({how})"));
    }
    let arguments: Vec<_> = arguments.iter().map(|argument| argument.to_string_lossy()).collect();
    say(format_args!("{} {}", launcher.path.display(), arguments.join(" ")));
}

/// Tell the person. If that cannot be written, nobody is there to be told.
fn say(what: impl Display) {
    let _ = writeln!(io::stderr().lock(), "tagmatch mpirun: {}", harmless(what));
}

/// This machine, as far as an MPI may refuse to run on it.
fn host() -> Host {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    Host {
        is_root: std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0),
        cores: cores().unwrap_or(processors).min(processors),
        is_managed: MANAGERS.iter().any(|name| env::var_os(name).is_some()),
    }
}

/// Cores as Open MPI counts its slots: those that share a core count once.
fn cores() -> Option<usize> {
    let processors = std::fs::read_dir("/sys/devices/system/cpu").ok()?;
    let siblings = processors.filter_map(|processor| {
        std::fs::read_to_string(processor.ok()?.path().join("topology/thread_siblings_list")).ok()
    });
    let distinct: std::collections::HashSet<String> = siblings.collect();
    (!distinct.is_empty()).then_some(distinct.len())
}

/// A shell that reads what `env` prints.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub(crate) enum Shell {
    /// sh, dash, bash, zsh, ksh.
    #[default]
    Sh,
    /// fish.
    Fish,
    /// csh, tcsh.
    Csh,
}

impl Shell {
    /// The line that sets it.
    fn line(self, setting: &Setting) -> String {
        let Setting { name, value, .. } = setting;
        let value = self.quoted(value);
        match self {
            Self::Sh => format!("export {name}={value}\n"),
            Self::Fish => format!("set -gx {name} {value};\n"),
            Self::Csh => format!("setenv {name} {value};\n"),
        }
    }

    /// A value in which nothing means anything to the shell.
    fn quoted(self, value: &str) -> String {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-:,+@".contains(c);
        if !value.is_empty() && value.chars().all(is_plain) {
            return value.to_owned();
        }
        let inner = match self {
            Self::Sh => value.replace('\'', r"'\''"),
            Self::Fish => value.replace('\\', r"\\").replace('\'', r"\'"),
            Self::Csh => value.replace('\'', r"'\''").replace('!', r"\!"),
        };
        format!("'{inner}'")
    }
}

/// Where jobs are placed by a manager, who also says how many processes a machine takes.
const MANAGERS: [&str; 4] = ["SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "PE_HOSTFILE"];
/// Seen with 4.1.4 and 5.0.11, on libfabric's own providers too.
const NO_ACKNOWLEDGEMENTS: &str = "with the source in the tag Open MPI completes no synchronous send to other ranks than \
    0: programs with MPI_Ssend hang, and so does MPI_Barrier where the number of ranks is no power of two";
/// As `env` and `timeout` have it.
const CODE_NOT_SET_UP: u8 = 125;
const CODE_NOT_RUN: u8 = 126;
const CODE_NOT_FOUND: u8 = 127;
