//! Decides whether one run was correct, given what was observed of it.
//!
//! # Correct
//!
//! There is one total order of all operations that explains every outcome as the naive matcher's: a message goes
//! to the earliest-posted receive that fits or else joins the unexpected list; a receive (or a peek) finds the
//! earliest-arrived unexpected message that fits. Each operation has its place within its interval:
//!
//! * post, peek, claim: the call, a point;
//! * cancel: from the call to the answer;
//! * an arrival: from the acceptance of its header, by a device or the host, until it was decided. A match made by
//!   a device counts at its acceptance, so its two observations stand next to each other.
//!
//! And no message overtakes an earlier one of its sender, except that it is taken on arrival by a receive which does
//! not fit the earlier one (MPI 4.1, 3.5).
//!
//! # Why no merge has to be tried
//!
//! Once every outcome is known, each "either, or" of the rules has only one side left, and the question is whether a
//! set of definite before-edges has a cycle. Write *q(m)* for the point at which an unexpected message *m* was taken
//! (never, if it was not), and *removal(r)* for the operation that took receive *r* from the list: the arrival that
//! it was matched with, or its cancel.
//!
//! 1. *m* was matched on arrival with *r*: post(r) before m; and for every receive *s* that was queued before *r* and
//!    fits *m*: removal(s) before m.
//! 2. *m* was unexpected: for every receive *s* that was queued before q(m) and fits *m*: removal(s) before m. (The
//!    other side, *m* before post(s), is no choice: then *s* would have taken *m*, or one ahead of it.)
//! 3. A post or peek at point *t* found *z*: z before t; and for every unexpected *m* that fits and has q(m) > t:
//!    z before m. (*m* may come after *t*; but *z* is before *t*.)
//! 4. A peek at *t* found nothing: for every unexpected *m* that fits and has q(m) > t: t before m.
//! 5. *m* was sent after *e* by the same sender: if *m* was unexpected, or its receive fits *e*: e before m.
//! 6. A cancel succeeded: it is the removal. It failed: removal(r) before it.
//! 7. What ended before another began, is before it.
//!
//! A total order which keeps these edges makes the naive matcher give exactly the outcomes observed (induction over
//! the order: 1, 2 for arrivals; 2, 3, 4 for posts and peeks), and each of them is necessary. So the test is sound
//! and complete.
//!
//! # The two checkers
//!
//! * [`Monitor`] takes one observation at a time and keeps the before-relation between the operations that can still
//!   matter; everything else is forgotten, so that its value is a small canonical part of a model's state.
//! * [`order::check`] takes a whole history and builds the edges through indexes, in about linear time.
//!
//! [`check`] runs the second, and the first where the second does not apply. Not here: who records histories.

mod groups;
mod history;
pub mod monitor;
pub mod order;
mod violation;

#[cfg(test)]
mod tests;

pub use history::{HistoryError, MessageName, Observation, ReceiveName, parse, print};
pub use monitor::Monitor;
pub use violation::{Name, Rule, Violation};

/// What else a run is held to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Options {
    /// Messages of one path are matched in the order in which they were accepted, whoever sent them. One TM device
    /// keeps that if its own matches are recorded as intervals too: [`Observation::Decided`] when they are polled.
    pub acceptance_order: bool,
    /// Each [`Observation::MatchedByDevice`] is followed, once, by the [`Observation::Decided`] of the engine that
    /// learned of it. Without this a decided message is decided.
    pub device_matches_reported: bool,
}

/// Whether a finished run was correct. Linear in its length but for the number of distinct (ignore mask, kind of
/// source) pairs.
///
/// # Errors
/// The rule that was broken, and where.
pub fn check(history: &[Observation], options: Options) -> Result<(), Violation> {
    match order::check(history, options)? {
        order::Verdict::Correct => Ok(()),
        order::Verdict::Undecided => monitor::check(history, options),
    }
}
