//! The arguments of `tagmatch bench`.

use crate::{TAGS, tags};
use clap::Args;
use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

#[derive(Debug, Args)]
pub(crate) struct BenchArguments {
    /// Seed of the made-up mixes and of hashing.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Print one JSON document instead of tables.
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a page with plots as well, which needs nothing but a browser.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Compare two files that --json wrote, of runs that can be compared, and measure nothing.
    #[arg(long, num_args = 2, value_names = ["BEFORE", "AFTER"], conflicts_with_all = ["devices", "only", "html", "seconds"])]
    pub(crate) compare: Option<Vec<PathBuf>>,
    /// Show a run that --json wrote into a file, as tables or as a page, and measure nothing.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["devices", "only", "seconds", "compare"])]
    pub(crate) from: Option<PathBuf>,
    /// What to measure, one or several with commas: none (software alone), soft (the soft TM-SRQ, in memory), tcp (the
    /// same over TCP), rxe (over soft RoCE, with `tagmatch rxe`), hca (a simulated ConnectX under the real driver), verbs
    /// (the first verbs device), or one by its name. Without it: all that there are, in less than two minutes.
    #[arg(long = "device", value_name = "DEVICE", value_delimiter = ',')]
    pub(crate) devices: Vec<Subject>,
    /// How many entries of its matching list a device is asked for, 1 to 32767.
    #[arg(long, value_name = "N", default_value_t = TAGS, value_parser = tags)]
    pub(crate) tags: u32,
    /// Only those curves, traces and mixes whose name contains this.
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Option<String>,
    /// How long it may take, about: what is not begun then is left out, and said. 80 unless devices are given; then all
    /// is measured.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) seconds: Option<u64>,
    /// Measure the one device in this process, and write what came of it here.
    #[arg(long, hide = true, value_name = "FILE")]
    pub(crate) part: Option<PathBuf>,
    /// Traces, but no mixes.
    #[arg(long, hide = true)]
    pub(crate) no_mixes: bool,
}

/// A device to measure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Subject {
    /// None: software alone, in memory.
    None,
    /// The soft TM-SRQ, in memory.
    Soft,
    /// The soft TM-SRQ over TCP.
    Tcp,
    /// The soft TM-SRQ over soft RoCE.
    Rxe,
    /// A simulated ConnectX under libibverbs and libmlx5.
    Hca,
    /// A verbs device of this machine: the first, or the one of this name.
    Verbs(Option<String>),
}

impl FromStr for Subject {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            "none" => Self::None,
            "soft" => Self::Soft,
            "tcp" => Self::Tcp,
            "rxe" => Self::Rxe,
            "hca" => Self::Hca,
            "verbs" => Self::Verbs(None),
            name => Self::Verbs(Some(name.to_owned())),
        })
    }
}

impl Subject {
    /// As it is asked for.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::None => "none",
            Self::Soft => "soft",
            Self::Tcp => "tcp",
            Self::Rxe => "rxe",
            Self::Hca => "hca",
            Self::Verbs(name) => name.as_deref().unwrap_or("verbs"),
        }
    }
}

/// What stands below the options.
pub(crate) const HELP: &str = "\
Each device is measured without its list (software) and with it (offload), by message size (size), older receives in the \
list (depth), length of the device's list (list), share of receives with a wildcard (wildcards) and of messages that come \
before their receive (unexpected), and over the recorded traces and made-up mixes. docs/bench.md says what the figures mean.

Names of made-up mixes say which list is long, how long, in which order it is emptied, and what receives look at: \
\"posted 16 random four\" posts 16 receives, lets their messages come in random order, and has the four kinds of \
receives in turn (one tag or any tag, of one source or any source). full: the whole tag and one source; partial: all \
but one bit of the tag, and one source. Unless a device is named, mixes come last, if there is time.

\"naive\" and \"matcher\" run over the tags as recorded; \"engine, no tags\" and \"offload\" always with the source in \
the tag, as replay does with --layout source-in-tag.

Exit codes: 0 measured, or compared; 1 a result was not as expected; 2 the input or the arguments cannot be used, or the \
files are of runs that cannot be compared.";
