//! `tagmatch rxe -- COMMAND`: run any command in a Linux with soft-RoCE devices.
//!
//! The package tagmatch-rxe (sim/rxe) does it; here are its options, what it says to the person, and the exit status.
//! How to use it: docs/rxe.md.

use crate::output::harmless;
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::env;
use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::path::{self, PathBuf};
use std::time::Duration;
use tagmatch_rxe::{Backend, Failure, MTU, Moved, Options, Outcome, Said, Streams};

#[derive(Debug, Args)]
pub(crate) struct RxeArguments {
    /// Where the devices come from.
    #[arg(long, value_enum, default_value_t)]
    backend: BackendArgument,
    /// How many machines: one with two devices on a virtual cable, or two with a device each on a wire between them; the
    /// command runs on both then.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=2))]
    hosts: u32,
    /// What happens to packets on their way, in words of tc-netem(8): 'delay 2ms loss 1%'.
    #[arg(long, value_name = "WORDS", value_parser = netem)]
    netem: Option<String>,
    /// The MTU of the interfaces.
    #[arg(long, value_name = "BYTES", default_value_t = MTU, value_parser = clap::value_parser!(u32).range(576..=65_521))]
    mtu: u32,
    /// How many processors an emulated machine has, and how many jobs build a kernel.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    smp: u32,
    /// How much memory a machine has, in MiB. It is taken from this machine's as it is used.
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(256..=1_048_576))]
    memory: u32,
    /// How long the command may take, in seconds; it is ended with 124 then.
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
    timeout: u64,
    /// How long a machine may take to come up, in seconds. (Idle: 4; under heavy load 80 were seen.)
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    boot_timeout: u64,
    /// Where kernels are kept; $XDG_CACHE_HOME/tagmatch/rxe unless given.
    #[arg(long, value_name = "DIRECTORY")]
    cache: Option<PathBuf>,
    /// A file that the command is to find at another place; may be repeated. All of this machine's files are where they
    /// are anyhow.
    #[arg(long = "in", value_name = "FILE=PLACE", value_parser = both)]
    files_in: Vec<Moved>,
    /// A file or directory that the command writes, brought to the same place of this machine (or to another one) when
    /// it has ended; may be repeated. Nothing else that it writes is kept.
    #[arg(long = "out", value_name = "FILE[=TO]", value_parser = one_or_both)]
    files_out: Vec<Moved>,
    /// Install what is missing with apt-get, as root.
    #[arg(long)]
    install: bool,
    /// Make the kernel that is needed, and keep it; without a command that is all.
    #[arg(long)]
    build: bool,
    /// Say nothing but what the command says, unless something fails.
    #[arg(short, long)]
    quiet: bool,
    /// The command and its arguments.
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "build")]
    command: Vec<OsString>,
}

/// [`Backend`] as an argument.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, ValueEnum)]
enum BackendArgument {
    /// The first of the others that works here; it is said which, and why.
    #[default]
    Auto,
    /// The RDMA devices of this machine, if there are any.
    Native,
    /// A machine emulated by QEMU, with Debian's kernel: nothing to build, no privileges.
    Qemu,
    /// A Linux that is a process, built from Debian's source by --build.
    Uml,
}

/// Run the command: the exit code.
pub(crate) fn run(arguments: RxeArguments) -> u8 {
    let mut teller = Teller { quiet: arguments.quiet, bar: None };
    let mut relay = Streams::new(|said: Said<'_>| teller.tell(said));
    let is_build = arguments.build;
    let result = options(arguments).and_then(|options| {
        if is_build {
            tagmatch_rxe::build(&options, &mut relay)?;
        }
        if options.command.is_empty() {
            Ok(Outcome::Ended(0))
        } else {
            tagmatch_rxe::run(&options, &mut relay)
        }
    });
    match result {
        Ok(outcome) => {
            if let Some(what) = outcome.meaning() {
                say(&what);
            }
            outcome.code()
        }
        Err(failure) => {
            say(&failure.to_string());
            CODE_NOT_RUN
        }
    }
}

fn options(arguments: RxeArguments) -> Result<Options, Failure> {
    let directory = env::current_dir();
    let directory = directory.map_err(|error| Failure::File { path: ".".into(), error })?;
    let backend = match arguments.backend {
        BackendArgument::Auto => Backend::Auto,
        BackendArgument::Native => Backend::Native,
        BackendArgument::Qemu => Backend::Qemu,
        BackendArgument::Uml => Backend::Uml,
    };
    Ok(Options {
        backend,
        hosts: arguments.hosts,
        netem: arguments.netem,
        mtu: arguments.mtu,
        smp: arguments.smp,
        memory: arguments.memory,
        timeout: Duration::from_secs(arguments.timeout),
        boot_timeout: Duration::from_secs(arguments.boot_timeout),
        cache: arguments.cache,
        files_in: arguments.files_in,
        files_out: arguments.files_out,
        install: arguments.install,
        directory,
        command: arguments.command,
    })
}

/// Tells the person, with a bar for what takes long.
struct Teller {
    quiet: bool,
    bar: Option<ProgressBar>,
}

impl Teller {
    fn tell(&mut self, said: Said<'_>) {
        match said {
            Said::Progress(what, done, of) if done < of && io::stderr().is_terminal() => {
                let bar = self.bar.get_or_insert_with(bar);
                bar.set_length(of);
                bar.set_position(done);
                bar.set_message(harmless(what));
            }
            // Without a terminal: each end of a piece of work.
            Said::Progress(what, done, of) => {
                self.clear();
                if done == of && !self.quiet {
                    say(what);
                }
            }
            Said::Note(text) => {
                self.clear();
                // What goes on for several lines is about something that failed.
                if !self.quiet || text.contains('\n') {
                    say(text);
                }
            }
            _ => {}
        }
    }

    fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {bar:30} {pos}/{len} {elapsed} {msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

fn say(text: &str) {
    eprintln!("tagmatch rxe: {}", harmless(text));
}

/// Words that a shell may split, and nothing else.
fn netem(text: &str) -> Result<String, String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || " .%-_".contains(c);
    if text.chars().all(is_word) && !text.trim().is_empty() {
        Ok(text.to_owned())
    } else {
        Err("these are no words of tc-netem(8), as in 'delay 2ms loss 1%'".into())
    }
}

/// FILE=PLACE
fn both(text: &str) -> Result<Moved, String> {
    let (outside, inside) =
        text.split_once('=').ok_or("FILE=PLACE says which file, and where it is to be")?;
    Ok(Moved { outside: absolute(outside)?, inside: absolute(inside)? })
}

/// FILE or FILE=TO
fn one_or_both(text: &str) -> Result<Moved, String> {
    let (inside, outside) = text.split_once('=').unwrap_or((text, text));
    Ok(Moved { outside: absolute(outside)?, inside: absolute(inside)? })
}

fn absolute(text: &str) -> Result<PathBuf, String> {
    path::absolute(text).map_err(|error| format!("{text}: {error}"))
}

/// As `env` and `timeout` have it: this command itself failed.
const CODE_NOT_RUN: u8 = 125;
