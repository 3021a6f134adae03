//! The command line: replay traces, measure, look at devices, run MPI programs and look at them.
//!
//! Exit codes: 0 all is as expected; 1 a result was not as expected; 2 the input or the arguments cannot be used.

mod bench;
mod build;
mod device;
#[cfg(target_os = "linux")]
mod hca;
mod info;
mod input;
mod measure;
#[cfg(target_os = "linux")]
mod mpi;
mod offload;
mod output;
mod replay;
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
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
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
    /// Measure matching over the recorded traces and made-up mixes.
    Bench(BenchArguments),
    /// Show the devices seen with their limits, and what this program was built from.
    Info(InfoArguments),
    /// The senders of a replay in a process of their own.
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    #[command(hide = true)]
    Sender,
    /// Look at trace files.
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Run a program that uses verbs on a simulated ConnectX: no card, no kernel support, no privileges.
    #[cfg(target_os = "linux")]
    #[command(after_help = HCA_EXIT_CODES)]
    Hca(HcaArguments),
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
    /// With a verbs device: how many contexts the senders are dealt to.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=64))]
    senders: u32,
    /// With a verbs device: the senders are in a process of their own.
    #[arg(long)]
    sender_process: bool,
    /// How many entries the device's matching list has.
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=32_767))]
    tags: u32,
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
struct BenchArguments {
    /// Seed of the made-up mixes and of hashing.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print one JSON document instead of a table.
    #[arg(long)]
    json: bool,
    /// The device that software is compared with: soft, hca, verbs or a name, as for replay.
    #[arg(long, value_name = "DEVICE", default_value = "soft")]
    device: Device,
    /// How many entries its matching list has.
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=32_767))]
    tags: u32,
    /// Only those whose name contains this.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

#[derive(Debug, Args)]
struct InfoArguments {
    /// Print one JSON document instead of text.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct HcaArguments {
    /// How many entries the device's matching list has, rounded up to one less than a power of two; 0: a device that
    /// cannot match.
    #[arg(long, value_name = "N", default_value_t = 1023, value_parser = clap::value_parser!(u32).range(0..=32_767))]
    tags: u32,
    /// The port is Ethernet (RoCE).
    #[arg(long)]
    roce: bool,
    /// Take the other reading of a doubtful point of the device, for instance A1=only-at-append; may be repeated.
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

/// A `--switch`: of a doubtful point, which are A1 to A19, and one. The library knows the readings.
fn switch(text: &str) -> Result<String, String> {
    let is_switch = text.split_once('=').is_some_and(|(point, reading)| {
        let number = point.strip_prefix('A').and_then(|number| number.parse::<u8>().ok());
        number.is_some_and(|number| (1..=19).contains(&number)) && !reading.contains(',')
    });
    if is_switch {
        Ok(text.to_owned())
    } else {
        Err("not a point from A1 to A19, \"=\" and a reading".into())
    }
}

#[derive(Debug, Subcommand)]
enum TraceCommand {
    /// Check that files are well-formed traces whose expected results are those of the naive matcher.
    #[command(after_help = EXIT_CODES)]
    Check {
        /// The files.
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
    let end = match Arguments::parse().command {
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Info(arguments) => info::run(&arguments),
        Command::Trace(TraceCommand::Check { files }) => trace::check(&files),
        #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
        Command::Sender => sender::run(),
        #[cfg(target_os = "linux")]
        Command::Hca(arguments) => return ExitCode::from(hca::run(&arguments)),
        #[cfg(target_os = "linux")]
        Command::Mpirun(arguments) => return ExitCode::from(mpi::run(&arguments)),
        #[cfg(target_os = "linux")]
        Command::Env(arguments) => mpi::print_environment(&arguments),
        #[cfg(target_os = "linux")]
        Command::Stats(arguments) => stats::run(&arguments),
    };
    ExitCode::from(end.code())
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
}

const EXIT_CODES: &str = "Exit codes: 0 all as expected; 1 a result was not as expected; \
    2 the input or the arguments cannot be used.";

#[cfg(target_os = "linux")]
const HCA_EXIT_CODES: &str = "Exit codes: the program's; 128 and more: it was ended by a signal; 125: there is no device; \
    126: the program cannot be run; 127: there is no such program.";

#[cfg(target_os = "linux")]
const MPIRUN_EXIT_CODES: &str = "Exit codes: mpirun's; 125: the provider cannot be used; 126: mpirun cannot be run; \
    127: there is no mpirun.";
