//! The synthetic points: depth × order × masks × what is done, as patterns and envelopes.
//!
//! Not here: programs' own sequences (`script`), loops and clocks (`cycle`).

use std::fmt;
use tagmatch::ids::{Ignore, PeerId, Source, Tag};
use tagmatch::matching::{Envelope, Pattern};

use super::Seeded;

/// What is done once for each message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scenario {
    /// Receives are posted; the search is the arrival.
    Posted,
    /// Messages have arrived; the search is the post.
    Unexpected,
    /// Messages have arrived; the search is a probe for one that has not.
    ProbeMiss,
    /// Receives are posted; the search is a cancel.
    Cancel,
}

/// In which order the entries of the list are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// Oldest first.
    Forward,
    /// One seeded permutation.
    Random,
    /// Newest first.
    Reverse,
}

/// What the receives look at. Every receive fits exactly one message of its point whatever the masks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Masks {
    /// All 64 bits of the tag.
    Full,
    /// All but bit 32: an ordinary named receive of Open MPI over libfabric.
    Partial,
    /// Four masks in turn, the full one among them.
    FourClasses,
    /// Full masks behind so many older receives of one partial mask that fit no message.
    Behind(usize),
}

/// One point of the sweep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Point {
    pub(crate) scenario: Scenario,
    pub(crate) depth: usize,
    pub(crate) order: Order,
    pub(crate) masks: Masks,
}

impl Point {
    /// What the receive of message `index` ignores.
    fn ignore(&self, index: usize) -> Ignore {
        match self.masks {
            Masks::Full | Masks::Behind(_) => Ignore::NONE,
            Masks::Partial => PARTIAL,
            Masks::FourClasses => CLASSES[index % CLASSES.len()],
        }
    }

    /// The receive of message `index`; from `depth` on, of a message that never comes.
    pub(crate) fn pattern(&self, index: usize) -> Pattern {
        Pattern { tag: Tag(index as u64), ignore: self.ignore(index), source: Source::Any }
    }

    /// Message `index`.
    pub(crate) fn envelope(&self, index: usize) -> Envelope {
        Envelope { tag: Tag(index as u64), source: PeerId(0) }
    }

    /// The older receives that fit nothing: any tag below bit 31 of other communicators.
    pub(crate) fn ahead(&self) -> Vec<Pattern> {
        let count = if let Masks::Behind(count) = self.masks { count } else { 0 };
        (1..=count as u64)
            .map(|communicator| Pattern {
                tag: Tag(communicator << 34),
                ignore: ANY_TAG,
                source: Source::Any,
            })
            .collect()
    }

    /// Indexes of the entries in the order in which they are asked for.
    pub(crate) fn sequence(&self) -> Vec<u32> {
        let mut sequence: Vec<u32> = (0u32..).take(self.depth).collect();
        match self.order {
            Order::Forward => {}
            Order::Random => Seeded::new(self.depth as u64).shuffle(&mut sequence),
            Order::Reverse => sequence.reverse(),
        }
        sequence
    }

    /// Whether the point says something that no other point says: a list of one has one order, a probe
    /// that finds nothing has none and does not look at receives.
    pub(crate) fn is_of_interest(&self) -> bool {
        let ordered =
            self.order == Order::Forward || (self.depth > 1 && self.scenario != Scenario::ProbeMiss);
        let masked = !matches!((self.scenario, self.masks), (Scenario::ProbeMiss, Masks::Behind(_)));
        ordered && masked
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Posted => "posted",
            Self::Unexpected => "unexpected",
            Self::ProbeMiss => "probe-miss",
            Self::Cancel => "cancel",
        })
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Forward => "forward",
            Self::Random => "random",
            Self::Reverse => "reverse",
        })
    }
}

impl fmt::Display for Masks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("full"),
            Self::Partial => f.write_str("partial"),
            Self::FourClasses => f.write_str("four-classes"),
            Self::Behind(count) => write!(f, "behind-{count}-wildcards"),
        }
    }
}

/// Every combination of the given values that is of interest, in the order of the arguments.
pub(crate) fn points(
    scenarios: &[Scenario],
    masks: &[Masks],
    orders: &[Order],
    depths: &[usize],
) -> Vec<Point> {
    let mut points = Vec::new();
    for &scenario in scenarios {
        for &masks in masks {
            for &order in orders {
                for &depth in depths {
                    points.push(Point { scenario, depth, order, masks });
                }
            }
        }
    }
    points.retain(Point::is_of_interest);
    points
}

/// Everything that is done.
pub(crate) const SCENARIOS: [Scenario; 4] =
    [Scenario::Posted, Scenario::Unexpected, Scenario::ProbeMiss, Scenario::Cancel];
/// Every order.
pub(crate) const ORDERS: [Order; 3] = [Order::Forward, Order::Random, Order::Reverse];
/// Every kind of masks.
pub(crate) const MASKS: [Masks; 7] = [
    Masks::Full,
    Masks::Partial,
    Masks::FourClasses,
    Masks::Behind(1),
    Masks::Behind(16),
    Masks::Behind(128),
    Masks::Behind(1024),
];
/// Every depth.
pub(crate) const DEPTHS: [usize; 7] = [1, 16, 128, 1024, 8192, 65_536, 1 << 20];

/// Open MPI's synchronous-send bit (traces/README.md, "Tag layouts").
const PARTIAL: Ignore = Ignore(0x1_0000_0000);
/// Open MPI's "any tag" within one communicator (traces/README.md).
const ANY_TAG: Ignore = Ignore(0x1_7fff_ffff);
/// Nothing; synchronous bit; that and the source field of `ofi_tag_1`; that and its communicator field.
const CLASSES: [Ignore; 4] =
    [Ignore::NONE, PARTIAL, Ignore(0x000f_fffd_0000_0000), Ignore(0xfff0_0001_0000_0000)];
