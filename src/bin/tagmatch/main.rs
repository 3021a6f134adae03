//! The command line: replay traces, measure, look at devices, run MPI programs and look at them.
//!
//! Exit codes: 0 all is as expected; 1 a result was not as expected; 2 the input or the arguments cannot be used.

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod bench;
mod build;
mod device;
#[cfg(target_os = "linux")]
mod figures;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod hca;
mod info;
mod input;
mod libraries;
mod manual;
mod measure;
#[cfg(target_os = "linux")]
mod mpi;
mod offload;
mod output;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod pair;
mod reasons;
mod replay;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod run_directory;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod rxe;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod sender;
#[cfg(target_os = "linux")]
mod stats;
mod table;
mod trace;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod verbs;

use crate::device::Device;
use clap::{Args, Parser, Subcommand, ValueEnum};
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::process::ExitCode;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
use tagmatch::device::soft::readings::{READINGS, Reading};
use tagmatch::traces::layout::Layout;

/// Tag matching for message-passing runtimes: replay real traces, measure, look at devices, run MPI programs.
#[derive(Debug, Parser)]
#[command(name = "tagmatch", version, after_help = EXIT_CODES, subcommand_required = true, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Replay traces of real MPI programs, and check every expected result.
    #[command(after_help = EXIT_CODES)]
    Replay(ReplayArguments),
    /// Measure offload against software, over all devices that there are; tables, JSON, a page with plots.
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    #[command(after_help = bench::HELP)]
    Bench(bench::BenchArguments),
    /// Latency between two processes, by size and beside long lists; other providers and UCX beside it.
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    #[command(after_help = pair::HELP)]
    Pingpong(pair::PairArguments),
    /// Messages per second and bandwidth between two processes, by size and beside long lists; others beside it.
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    #[command(after_help = pair::HELP)]
    Msgrate(pair::RateArguments),
    /// The other half of a pair of processes.
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    #[command(hide = true)]
    Half,
    /// Show the libraries and devices seen with versions and limits, and what this program was built from.
    Info(InfoArguments),
    /// The senders of a replay in a process of their own.
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    #[command(hide = true)]
    Sender,
    /// Look at trace files.
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Run a program that uses verbs on a simulated ConnectX: no card, no kernel support, no privileges.
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    #[command(after_help = hca_help())]
    Hca(HcaArguments),
    /// Run any command in a Linux with soft-RoCE devices, whatever this machine's kernel has: no card, no privileges.
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    #[command(after_help = RXE_HELP)]
    Rxe(rxe::RxeArguments),
    /// Run an MPI program over this project's libfabric provider, with an unmodified Open MPI or MPICH.
    ///
    /// Finds mpirun in PATH, sets what makes it use the provider, and becomes it: signals, input and exit status are its
    /// own. What its command line or its environment say already is left as it is.
    #[cfg(target_os = "linux")]
    #[command(after_help = MPIRUN_EXIT_CODES)]
    Mpirun(MpirunArguments),
    /// Print what mpirun would set, as lines for a shell: eval "$(tagmatch env)".
    #[cfg(target_os = "linux")]
    #[command(after_help = EXIT_CODES)]
    Env(EnvArguments),
    /// Show the counters of running processes that use the provider: lists, matches, offload, retries, bytes.
    #[cfg(target_os = "linux")]
    #[command(after_help = EXIT_CODES)]
    Stats(StatsArguments),
    /// Write the man pages of all commands.
    #[command(after_help = EXIT_CODES)]
    Man(manual::ManArguments),
    /// Print completions for a shell, to be read at its start: eval "$(tagmatch completions bash)".
    #[command(after_help = EXIT_CODES)]
    Completions(manual::CompletionsArguments),
}

#[derive(Debug, Args)]
struct ReplayArguments {
    /// Trace files (plain, gzip or zstd), or folders with *.zst, *.gz and *.trace; without any, the 22 recorded
    /// traces that are in this program.
    paths: Vec<PathBuf>,
    /// The device that posted receives are offloaded to: none; soft (a model in this process); hca (a simulated
    /// ConnectX under the real libibverbs and libmlx5); verbs (the first verbs device of this machine), or one by its
    /// name.
    #[arg(long, value_name = "DEVICE", default_value = "soft")]
    device: Device,
    /// With a verbs device: how many contexts the senders are dealt to; 3 unless given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    senders: Option<u32>,
    /// With a verbs device: the senders are in a process of their own.
    #[arg(long)]
    sender_process: bool,
    /// How many entries of its matching list the device is asked for, 1 to 32767; 1024 unless given.
    #[arg(long, value_name = "N", value_parser = tags)]
    tags: Option<u32>,
    /// Seed of everything that is left to chance: hashing, and when the device does what.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Which layout of the tag to replay. A directed receive can be offloaded only if the tag carries the source.
    #[arg(long, value_enum, default_value_t = LayoutArgument::Recorded)]
    layout: LayoutArgument,
    /// Print one JSON document instead of a table.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct InfoArguments {
    /// Print one JSON document instead of text.
    #[arg(long)]
    json: bool,
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[derive(Debug, Args)]
struct HcaArguments {
    /// How many entries the device's matching list has, rounded up to one less than a power of two; 0: a device that
    /// cannot match.
    #[arg(long, value_name = "N", default_value_t = 1023, value_parser = clap::value_parser!(u32).range(0..=32_767))]
    tags: u32,
    /// The port is Ethernet (RoCE).
    #[arg(long)]
    roce: bool,
    /// Take another reading of a doubtful point of the device, for instance A1=only-at-append (listed below); may be
    /// repeated.
    #[arg(long = "switch", value_name = "POINT=READING", value_parser = switch)]
    switches: Vec<String>,
    /// The program and its arguments.
    #[arg(required = true, last = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

#[cfg(target_os = "linux")]
#[derive(Debug, Args)]
struct MpirunArguments {
    #[command(flatten)]
    common: MpiArguments,
    /// Say what is set, and what is run.
    #[arg(short, long)]
    verbose: bool,
    /// Run the program so often over the provider, and as often over the MPI's own transports, in turns; show the times
    /// that it tells (lines `time NAME 1.5 us OF-WHAT`) and their ratios.
    #[arg(long, group = "figures", value_name = "ROUNDS", value_parser = clap::value_parser!(u32).range(1..=1000))]
    beside: Option<u32>,
    /// When the job has ended, show what its endpoints have counted, on standard error: what was matched in hardware, what
    /// went through shared memory, bytes and all else that `tagmatch stats` shows, of all processes and of each.
    #[cfg(target_pointer_width = "64")]
    #[arg(long, group = "figures")]
    stats: bool,
    /// With --beside or --stats: print one JSON document instead of a table. What the program writes to standard output
    /// goes to standard error with --stats.
    #[arg(long, requires = "figures")]
    json: bool,
    /// Arguments of mpirun, the first of which ends those of this command.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    arguments: Vec<OsString>,
}

#[cfg(target_os = "linux")]
#[derive(Debug, Args)]
struct EnvArguments {
    #[command(flatten)]
    common: MpiArguments,
    /// The shell that reads the lines.
    #[arg(long, value_enum, default_value_t)]
    shell: mpi::Shell,
    /// Print one JSON document instead, with the reasons.
    #[arg(long)]
    json: bool,
}

#[cfg(target_os = "linux")]
#[derive(Debug, Args)]
struct StatsArguments {
    /// The processes; without any, all of this user.
    #[arg(value_name = "PID")]
    pids: Vec<u32>,
    /// Also counters that are 0.
    #[arg(long)]
    all: bool,
    /// Print one JSON document instead of a table.
    #[arg(long)]
    json: bool,
}

#[cfg(target_os = "linux")]
#[derive(Debug, Args)]
struct MpiArguments {
    /// The mpirun (or mpiexec) of the MPI to use: a path, or a name to look for in PATH.
    #[arg(long, value_name = "PROGRAM")]
    mpirun: Option<OsString>,
    /// A value for FI_TAGMATCH_TM: off, soft (a model of a matching device), auto, require.
    #[arg(long, value_name = "VALUE", value_parser = ["off", "soft", "auto", "require"])]
    tm: Option<String>,
    /// A value for FI_TAGMATCH_NET: tcp, verbs, auto (verbs where a device is named or must match).
    #[arg(long, value_name = "VALUE", value_parser = ["tcp", "verbs", "auto"])]
    net: Option<String>,
    /// A value for FI_TAGMATCH_DEVICE: the name of a verbs device.
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// Where messages carry their source.
    #[arg(long, value_enum, default_value_t)]
    layout: mpi::TagLayout,
    /// Let Open MPI run as root. Without it that is allowed too where this is root, since mpirun would refuse.
    #[arg(long)]
    allow_run_as_root: bool,
    /// Let Open MPI start more processes than there are cores. Without it that is allowed too where more are asked for.
    #[arg(long)]
    oversubscribe: bool,
}

/// A `--tags`.
fn tags(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(tags @ 1..=TAGS_MAX) => Ok(tags),
        Ok(0) => Err(format!("0 is not in 1..={TAGS_MAX}; for software alone use --device none")),
        Ok(number) => Err(format!("{number} is not in 1..={TAGS_MAX}")),
        Err(error) => Err(error.to_string()),
    }
}

/// A `--switch`: a doubtful point and another reading of it.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn switch(text: &str) -> Result<String, String> {
    Reading::find(text).map(Reading::text)
}

/// What there is to switch, and how it ends.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn hca_help() -> String {
    let mut text = String::from("Doubtful points of the device and their other readings (docs/tm-srq.md):\n");
    for reading in READINGS {
        text += &format!("  {:<20} {}\n", reading.text(), reading.meaning);
    }
    text + "\n" + HCA_EXIT_CODES
}

#[derive(Debug, Subcommand)]
enum TraceCommand {
    /// Check that files are well-formed traces whose expected results are those of the naive matcher.
    #[command(after_help = EXIT_CODES)]
    Check {
        /// Trace files (plain, gzip or zstd), or folders with *.zst, *.gz and *.trace.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

/// [`Layout`] as an argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum LayoutArgument {
    /// As recorded.
    Recorded,
    /// The source in bits 51..34 of the tag, as Open MPI's ofi_tag_1 has it.
    SourceInTag,
}

impl From<LayoutArgument> for Layout {
    fn from(argument: LayoutArgument) -> Self {
        match argument {
            LayoutArgument::Recorded => Self::Recorded,
            LayoutArgument::SourceInTag => Self::SourceInTag,
        }
    }
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        // Help and the version are results as others are; a terminal gets them in colours.
        Err(help) if !help.use_stderr() && !io::stdout().is_terminal() => {
            return output::write(&help.render().to_string(), End::AsExpected).exit();
        }
        Err(error) => error.exit(),
    };
    let end = match arguments.command {
        Command::Replay(arguments) => replay::run(&arguments),
        #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
        Command::Bench(arguments) => bench::run(&arguments),
        #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
        Command::Pingpong(arguments) => pair::pingpong(&arguments),
        #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
        Command::Msgrate(arguments) => pair::msgrate(&arguments),
        #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
        Command::Half => pair::run_half(),
        Command::Info(arguments) => info::run(&arguments),
        Command::Trace(TraceCommand::Check { files }) => trace::check(&files),
        #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
        Command::Sender => sender::run(),
        #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
        Command::Hca(arguments) => return ExitCode::from(hca::run(&arguments)),
        #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
        Command::Rxe(arguments) => return ExitCode::from(rxe::run(arguments)),
        #[cfg(target_os = "linux")]
        Command::Mpirun(arguments) => return ExitCode::from(mpi::run(&arguments)),
        #[cfg(target_os = "linux")]
        Command::Env(arguments) => mpi::print_environment(&arguments),
        #[cfg(target_os = "linux")]
        Command::Stats(arguments) => stats::run(&arguments),
        Command::Man(arguments) => manual::man(&arguments),
        Command::Completions(arguments) => manual::completions(&arguments),
    };
    end.exit()
}

/// How a command ended. The worst of several is the latest variant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum End {
    /// All is as expected.
    AsExpected,
    /// A result was not as expected.
    Disagreement,
    /// The input or the arguments cannot be used.
    Unusable,
}

impl End {
    const fn code(self) -> u8 {
        match self {
            Self::AsExpected => 0,
            Self::Disagreement => 1,
            Self::Unusable => 2,
        }
    }

    fn exit(self) -> ExitCode {
        ExitCode::from(self.code())
    }
}

/// What `--tags` is unless given.
const TAGS: u32 = 1024;
/// The longest list that entry numbers reach.
const TAGS_MAX: u32 = 32_767;

const EXIT_CODES: &str = "Exit codes: 0 all as expected; 1 a result was not as expected; \
    2 the input or the arguments cannot be used.";

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
const HCA_EXIT_CODES: &str = "Exit codes: the program's; 128 and more: it was ended by a signal; 125: there is no device; \
    126: the program cannot be run; 127: there is no such program; 2: the arguments cannot be used.";

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
const RXE_HELP: &str = "\
The command runs as root of its machine, in this directory, with this environment and no input. It sees this machine's \
files; what it writes is lost, but for --out. Variables tell it of the devices, in order: TAGMATCH_RXE_DEVICES (rxe0 \
rxe1), TAGMATCH_RXE_ADDRESSES, TAGMATCH_RXE_INTERFACES, TAGMATCH_RXE_GIDS (indices); with --hosts 2 each machine has one \
device, the second address is the other machine's, TAGMATCH_RXE_HOST is 0 or 1, and TAGMATCH_RXE_SHARE is a directory \
that both can write.

Exit codes: the command's; 70: the machine panicked; 71: it did not come up, twice; 72: its devices could not be made; \
124: the command did not end in its time; 125: it was not run; 2: the arguments cannot be used.";

#[cfg(target_os = "linux")]
const MPIRUN_EXIT_CODES: &str = "Exit codes: mpirun's; 125: the provider cannot be used; 126: mpirun cannot be run; \
    127: there is no mpirun.";
