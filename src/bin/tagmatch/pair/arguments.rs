//! Options of `tagmatch pingpong` and `tagmatch msgrate`.

use super::plan::{BYTES_MAX, DEPTH_MAX, List, Over, Through, WINDOW_MAX};
use clap::Args;

/// Of both.
#[derive(Debug, Args)]
pub(crate) struct PairArguments {
    /// Over what messages go: shm (memory that both processes share), tcp, verbs (with --through libfabric).
    #[arg(long, value_enum, default_value_t)]
    pub(super) over: Over,
    /// By which way messages are asked for: the endpoint of the library, or the provider's file under the installed
    /// libfabric.
    #[arg(long, value_enum, default_value_t)]
    pub(super) through: Through,
    /// Measure this beside it, in turns: a provider of the installed libfabric by its name (shm, tcp, "tcp;ofi_rxm", …),
    /// or ucx; several with commas.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(super) against: Vec<String>,
    /// How long messages are, in bytes: 8,1024,65536,1048576 unless given.
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = size)]
    pub(super) bytes: Vec<usize>,
    /// How many wait in the lists of both sides while the shortest messages pass: 1024 unless given; 0: lists are not
    /// measured.
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = depth)]
    pub(super) depth: Vec<usize>,
    /// What waits there: receives of one source and tag, of any source, of any tag, or messages that nobody takes; all
    /// unless given.
    #[arg(long, value_name = "LIST", value_enum, value_delimiter = ',')]
    pub(super) ahead: Vec<List>,
    /// How often each is measured, in turns with the others.
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) rounds: u32,
    /// How long one turn is, about.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub(super) batch_ms: u32,
    /// Round trips (or windows) of a turn, whatever that takes.
    #[arg(long, value_name = "N", conflicts_with = "batch_ms", value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub(super) iterations: Option<u32>,
    /// The processors of the two processes; two different ones that are allowed unless given.
    #[arg(long, value_name = "A,B", value_delimiter = ',', num_args = 1..=2)]
    pub(super) cpus: Vec<usize>,
    /// Be the half on the other host: wait here for the one that is told to connect, which says what is measured.
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with_all = ["connect", "against", "json"])]
    pub(super) listen: Option<String>,
    /// The other half waits there, on another host.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(super) connect: Option<String>,
    /// What does not end within so many seconds is given up.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(super) timeout: u32,
    /// Print one JSON document instead of a table.
    #[arg(long)]
    pub(super) json: bool,
}

/// Of `tagmatch msgrate`.
#[derive(Debug, Args)]
pub(crate) struct RateArguments {
    #[command(flatten)]
    pub(super) pair: PairArguments,
    /// Messages that are sent before the receiver says a word.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = window)]
    pub(super) window: usize,
}

impl PairArguments {
    /// Lengths of messages, the default ones if none are given.
    pub(super) fn bytes(&self) -> Vec<usize> {
        if self.bytes.is_empty() { BYTES.to_vec() } else { self.bytes.clone() }
    }

    /// Lists that are measured.
    pub(super) fn depths(&self) -> Vec<usize> {
        let depths = if self.depth.is_empty() { DEPTHS.to_vec() } else { self.depth.clone() };
        depths.into_iter().filter(|depth| *depth > 0).collect()
    }

    /// What waits in them.
    pub(super) fn lists(&self) -> Vec<List> {
        if self.ahead.is_empty() { LISTS.to_vec() } else { self.ahead.clone() }
    }
}

fn size(text: &str) -> Result<usize, String> {
    number(text, 0, BYTES_MAX)
}

fn depth(text: &str) -> Result<usize, String> {
    number(text, 0, DEPTH_MAX)
}

fn window(text: &str) -> Result<usize, String> {
    number(text, 1, WINDOW_MAX)
}

fn number(text: &str, least: usize, most: usize) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        Ok(number) => Err(format!("{number} is not in {least}..={most}")),
        Err(error) => Err(error.to_string()),
    }
}

const BYTES: [usize; 4] = [8, 1024, 64 << 10, 1 << 20];
const DEPTHS: [usize; 1] = [1024];
const LISTS: [List; 4] = [List::Specific, List::AnySource, List::AnyTag, List::Unexpected];

/// What stands below the options of both.
pub(crate) const HELP: &str = "\
Two processes, each on a processor of its own. Ratios are of the times of each round: below 1 this project is faster. \
docs/pair.md says what the figures mean.

Exit codes: 0 measured; 1 a message did not come as it was sent; 2 the arguments cannot be used, something is missing, or \
a process ended before its time.";
