//! A trace over anything that matches, every expected result checked.
//!
//! * [`Target`] – what is replayed over: it takes the events of a trace and says what came of them
//! * [`Software`] – a [`Target`] over any pair of lists ([`Lists`])
//! * [`Offload`] – a [`Target`] over the engine and soft devices; [`verbs`] – one over the engine and the real driver
//! * [`synthetic`] – traces made up to one's measure
//! * [`run`] – the replay; [`Report`] – what came of it
//!
//! Not here: time. Whoever wants to know how long a replay takes measures around [`run`] or [`run_unchecked`].

#![forbid(unsafe_code)]

mod host;
mod offload;
mod random;
mod software;
pub mod synthetic;
#[cfg(test)]
mod tests;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub mod verbs;

pub use offload::{Offload, Schedule, Settings};
pub use software::{Lists, Software};

use crate::matching::{Envelope, Pattern};
use crate::traces::{Event, MessageNumber, Outcome, PeekNumber, ReceiveNumber, Step, Trace};
use std::fmt;

/// What a trace can be replayed over. Each call is one event; the target answers what came of it.
///
/// An error is not an unexpected answer but the end of the replay: the target is broken.
pub trait Target {
    /// A receive is posted: the message that it takes, if one fits.
    ///
    /// # Errors
    /// The target is broken.
    fn post(
        &mut self,
        receive: ReceiveNumber,
        pattern: &Pattern,
        length: u64,
    ) -> Result<Option<MessageNumber>, Fault>;

    /// A message arrives: the receive that takes it, if one fits.
    ///
    /// # Errors
    /// The target is broken.
    fn arrive(
        &mut self,
        message: MessageNumber,
        envelope: &Envelope,
        length: u64,
    ) -> Result<Option<ReceiveNumber>, Fault>;

    /// The unexpected message that fits, if any. With `claim` it is bound to the peek and out of everyone's sight.
    ///
    /// # Errors
    /// The target is broken.
    fn peek(
        &mut self,
        peek: PeekNumber,
        pattern: &Pattern,
        claim: bool,
    ) -> Result<Option<MessageNumber>, Fault>;

    /// The message that a peek bound is received: which, if one is bound.
    ///
    /// # Errors
    /// The target is broken.
    fn claim(
        &mut self,
        receive: ReceiveNumber,
        peek: PeekNumber,
        length: u64,
    ) -> Result<Option<MessageNumber>, Fault>;

    /// A receive is cancelled: true if it was still posted and is gone, false if it had been matched.
    ///
    /// # Errors
    /// The target is broken.
    fn cancel(&mut self, receive: ReceiveNumber) -> Result<bool, Fault>;

    /// Forget everything, and be ready for another trace. Memory is kept, so that what follows runs warm.
    ///
    /// # Errors
    /// The target is broken.
    fn reset(&mut self) -> Result<(), Fault>;

    /// Nothing more comes: the target finishes what is under way.
    ///
    /// # Errors
    /// The target is broken.
    fn finish(&mut self) -> Result<(), Fault> {
        Ok(())
    }
}

/// Why a replay cannot go on.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Fault(pub Box<str>);

impl Fault {
    /// In these words.
    pub fn new(what: impl fmt::Display) -> Self {
        Self(what.to_string().into_boxed_str())
    }
}

/// What came of a replay.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Events given to the target.
    pub events: u64,
    /// Answers compared with the expected result: every event has one.
    pub checked: u64,
    /// Answers that were not as expected.
    pub disagreements: u64,
    /// The first of them, at most [`Report::FIRST_MAX`]. Those behind the first may only be its consequences.
    pub first: Vec<Disagreement>,
    /// The target broke in this line; what follows was not replayed.
    pub fault: Option<(u64, Fault)>,
}

impl Report {
    /// How many disagreements are kept with their details.
    pub const FIRST_MAX: usize = 5;

    /// Every event was replayed, and every answer was as expected.
    #[must_use]
    pub const fn is_exact(&self) -> bool {
        self.disagreements == 0 && self.fault.is_none()
    }
}

/// An answer that was not as expected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Disagreement {
    /// The line of the event.
    pub line: u64,
    /// What happened.
    pub event: Event,
    /// What should have come of it.
    pub expected: Outcome,
    /// What came of it.
    pub answered: Outcome,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, event, expected, answered } = self;
        write!(f, "line {line}: {event}: expected {expected}, got {answered}")
    }
}

/// Replay a trace, and compare every answer with the expected result.
pub fn run(trace: &Trace, target: &mut (impl Target + ?Sized)) -> Report {
    let mut report = Report::default();
    for step in &trace.steps {
        report.events += 1;
        match answer(&step.event, target) {
            Ok(answered) => report.handle_answer(step, answered),
            Err(fault) => {
                report.fault = Some((step.line, fault));
                return report;
            }
        }
    }
    if let Err(fault) = target.finish() {
        report.fault = Some((trace.steps.last().map_or(1, |step| step.line), fault));
    }
    report
}

/// Replay a trace without looking at the answers, for measuring. Gives a number that depends on all of them, so
/// that no part of the work can be left out.
///
/// # Errors
/// The target is broken.
pub fn run_unchecked(trace: &Trace, target: &mut (impl Target + ?Sized)) -> Result<u64, Fault> {
    let mut sum = 0u64;
    for step in &trace.steps {
        let weight = match answer(&step.event, target)? {
            Outcome::Queued | Outcome::Missed | Outcome::Late => 1,
            Outcome::Matched(receive, message) => u64::from(receive.0) ^ u64::from(message.0),
            Outcome::Found(message) => u64::from(message.0),
            Outcome::Cancelled => 2,
        };
        sum = sum.wrapping_add(weight);
    }
    target.finish()?;
    Ok(sum)
}

/// Replay a trace, and make the answers its expected results.
///
/// # Errors
/// The target is broken; the trace has then changed in part.
pub fn record(trace: &mut Trace, target: &mut (impl Target + ?Sized)) -> Result<(), Fault> {
    for step in &mut trace.steps {
        step.expected = answer(&step.event, target)?;
    }
    target.finish()
}

impl Report {
    fn handle_answer(&mut self, step: &Step, answered: Outcome) {
        self.checked += 1;
        if answered == step.expected {
            return;
        }
        self.disagreements += 1;
        if self.first.len() < Self::FIRST_MAX {
            let Step { line, event, expected } = *step;
            self.first.push(Disagreement { line, event, expected, answered });
        }
    }
}

fn answer(event: &Event, target: &mut (impl Target + ?Sized)) -> Result<Outcome, Fault> {
    Ok(match *event {
        Event::Post { receive, ref pattern, length } => {
            matched(receive, target.post(receive, pattern, length)?)
        }
        Event::Arrive { message, ref envelope, length } => target
            .arrive(message, envelope, length)?
            .map_or(Outcome::Queued, |receive| Outcome::Matched(receive, message)),
        Event::Peek { peek, ref pattern, claim } => {
            target.peek(peek, pattern, claim)?.map_or(Outcome::Missed, Outcome::Found)
        }
        Event::Claim { receive, peek, length } => matched(receive, target.claim(receive, peek, length)?),
        Event::Cancel { receive } => {
            if target.cancel(receive)? {
                Outcome::Cancelled
            } else {
                Outcome::Late
            }
        }
    })
}

fn matched(receive: ReceiveNumber, message: Option<MessageNumber>) -> Outcome {
    message.map_or(Outcome::Queued, |message| Outcome::Matched(receive, message))
}
