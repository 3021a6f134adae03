//! Times of one subject at one point or in one script: nanoseconds per message in batches of about equal
//! length, so that peers can take turns.
//!
//! Not here: what is compared with what.

use std::time::{Duration, Instant};

use super::clock::Clock;
use super::cycle::{Cycle, Laps};
use super::median;
use super::script::{Script, Stage};
use super::subject::Subject;

/// Nanoseconds per message of one batch.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Nanoseconds {
    /// The loop that puts entries in.
    pub(crate) fill: f64,
    /// The loop that searches.
    pub(crate) search: f64,
    /// Both and what goes with them (completions read, requests given back), no clock inside.
    pub(crate) pair: f64,
}

/// A subject that can be asked for batches.
pub(crate) trait Runner {
    fn name(&self) -> &'static str;
    /// How many messages a round may have so that it takes no longer than `limit`.
    fn affordable(&mut self, limit: Duration) -> usize;
    /// Fixes the messages of a round.
    fn set_sample(&mut self, sample: usize);
    /// Runs for about `budget`.
    fn batch(&mut self, budget: Duration) -> Nanoseconds;
}

impl<S: Subject> Runner for Cycle<S> {
    fn name(&self) -> &'static str {
        self.subject.name()
    }

    fn affordable(&mut self, limit: Duration) -> usize {
        let whole = self.round_max();
        let mut sample = PILOT.min(whole);
        loop {
            self.set_sample(sample);
            let start = Clock::Processor.now();
            self.untimed(1);
            let spent = Duration::from_nanos((Clock::Processor.now() - start).max(1));
            // What was just seen, carried on; a whole drain costs at most that for each message.
            if sample == whole || spent.mul_f64(whole as f64 / sample as f64) <= limit {
                return whole;
            }
            if spent > limit / 8 {
                return scaled(sample, limit, spent).min(whole);
            }
            sample = (sample * 4).min(whole);
        }
    }

    fn set_sample(&mut self, sample: usize) {
        Self::set_sample(self, sample);
    }

    /// Medians of groups of rounds: a group is short, so that a disturbance falls into few of them.
    fn batch(&mut self, budget: Duration) -> Nanoseconds {
        // The peer before has emptied the caches.
        self.untimed(1);
        let clock = self.clock();
        let cost = clock.cost();
        let (mut fills, mut searches, mut pairs) = (Vec::new(), Vec::new(), Vec::new());
        let start = Instant::now();
        while start.elapsed() < budget / 2 || searches.is_empty() {
            let mut laps = Laps::default();
            while laps.messages < GROUP {
                self.timed_round(clock, cost, &mut laps);
            }
            fills.push(laps.fill as f64 / laps.messages as f64);
            searches.push(laps.search as f64 / laps.messages as f64);
        }
        let start = Instant::now();
        while start.elapsed() < budget / 2 || pairs.is_empty() {
            let lap = Clock::Processor.now();
            let messages = self.untimed(GROUP);
            pairs.push((Clock::Processor.now() - lap) as f64 / messages as f64);
        }
        Nanoseconds { fill: median(&mut fills), search: median(&mut searches), pair: median(&mut pairs) }
    }
}

/// A script played again and again by one subject.
#[derive(Debug)]
pub(crate) struct Play<S: Subject> {
    subject: S,
    stage: Stage<S>,
}

impl<S: Subject> Play<S> {
    pub(crate) fn new(subject: S, script: &Script) -> Self {
        Self { subject, stage: Stage::new(script) }
    }
}

impl<S: Subject> Runner for Play<S> {
    fn name(&self) -> &'static str {
        self.subject.name()
    }

    fn affordable(&mut self, _: Duration) -> usize {
        self.stage.len()
    }

    fn set_sample(&mut self, _: usize) {}

    /// `pair` is nanoseconds per step; there is no fill and no search of its own.
    fn batch(&mut self, budget: Duration) -> Nanoseconds {
        // The peer before has emptied the caches.
        self.stage.play(&mut self.subject);
        self.stage.drain(&mut self.subject);
        let start = Instant::now();
        let mut plays = Vec::new();
        while start.elapsed() < budget || plays.is_empty() {
            let lap = Clock::Processor.now();
            self.stage.play(&mut self.subject);
            plays.push((Clock::Processor.now() - lap) as f64 / self.stage.len() as f64);
            self.stage.drain(&mut self.subject);
        }
        Nanoseconds { pair: median(&mut plays), ..Nanoseconds::default() }
    }
}

/// As many as fit into `limit` when `sample` took `spent`, at least one.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive number of messages")]
fn scaled(sample: usize, limit: Duration, spent: Duration) -> usize {
    ((sample as f64 * limit.as_secs_f64() / spent.as_secs_f64()) as usize).max(1)
}

/// Messages of the first try when a round's cost is not known.
const PILOT: usize = 16;
/// Messages of a group at least.
const GROUP: u64 = 2048;
