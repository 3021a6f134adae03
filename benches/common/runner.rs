//! Times of one subject at one point or in one script: nanoseconds per message in batches of about equal
//! length, so that peers can take turns.
//!
//! Not here: what is compared with what.

use std::time::{Duration, Instant};

use super::cycle::{Cycle, Laps};
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
            let mut laps = Laps::default();
            self.timed_round(&mut laps);
            let spent = (laps.search + laps.fill).max(Duration::from_nanos(1));
            if sample == whole {
                return whole;
            }
            // What was just seen, carried on; a whole drain costs at most that for each message.
            let carried = spent.mul_f64(whole as f64 / sample as f64);
            if carried <= limit {
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

    fn batch(&mut self, budget: Duration) -> Nanoseconds {
        let mut laps = Laps::default();
        let start = Instant::now();
        while start.elapsed() < budget / 2 || laps.rounds == 0 {
            for _ in 0..(ROUND_MIN / self.round_max().max(1)).max(1) {
                self.timed_round(&mut laps);
            }
        }
        let clock = clock_cost() * u32::try_from(laps.rounds).unwrap_or(u32::MAX);
        let each = |lap: Duration| lap.saturating_sub(clock).as_secs_f64() * 1e9 / laps.messages as f64;
        let start = Instant::now();
        let mut messages = 0;
        while start.elapsed() < budget / 2 || messages == 0 {
            messages += self.untimed(ROUND_MIN as u64);
        }
        let pair = start.elapsed().as_secs_f64() * 1e9 / messages as f64;
        Nanoseconds { fill: each(laps.fill), search: each(laps.search), pair }
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
        let start = Instant::now();
        let (mut spent, mut steps) = (Duration::ZERO, 0);
        while start.elapsed() < budget || steps == 0 {
            let lap = Instant::now();
            self.stage.play(&mut self.subject);
            spent += lap.elapsed();
            steps += self.stage.len();
            self.stage.drain(&mut self.subject);
        }
        Nanoseconds { pair: spent.as_secs_f64() * 1e9 / steps as f64, ..Nanoseconds::default() }
    }
}

/// What two readings of the clock with nothing between them show: the median of many.
pub(crate) fn clock_cost() -> Duration {
    use std::sync::OnceLock;
    static COST: OnceLock<Duration> = OnceLock::new();
    *COST.get_or_init(|| {
        let mut seen: Vec<Duration> = (0..10_001)
            .map(|_| {
                let start = Instant::now();
                start.elapsed()
            })
            .collect();
        seen.sort_unstable();
        seen[seen.len() / 2]
    })
}

/// As many as fit into `limit` when `sample` took `spent`, at least one.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive number of messages")]
fn scaled(sample: usize, limit: Duration, spent: Duration) -> usize {
    ((sample as f64 * limit.as_secs_f64() / spent.as_secs_f64()) as usize).max(1)
}

/// Messages of the first try when a round's cost is not known.
const PILOT: usize = 16;
/// Rounds between two looks at the budget, in messages.
const ROUND_MIN: usize = 4096;
