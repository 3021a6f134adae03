//! The loops over a [`Point`]: fill a list, search it once for each message, fill it again.
//!
//! A round starts with the list at its full depth, takes `sample` entries from it in the point's order
//! (the *search*), then puts as many back in the order in which they were put in first (the *fill*).
//! With `sample` = `depth`, which is the rule, the list is filled and drained whole, and a search meets
//! half the depth on average. A smaller sample is for peers whose search would take minutes: the list then
//! stays at its full depth.
//!
//! Not here: which points, and what is made of the times.

use super::clock::Clock;
use super::subject::Subject;
use super::workload::{Order, Point, Scenario};

/// Times of some rounds, nanoseconds, with what the clock itself costs taken off.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Laps {
    /// In the loops that put entries in.
    pub(crate) fill: u64,
    /// In the loops that search.
    pub(crate) search: u64,
    /// Messages (searches).
    pub(crate) messages: u64,
}

/// One subject in the loop of one point.
#[derive(Debug)]
pub(crate) struct Cycle<S: Subject> {
    pub(crate) subject: S,
    point: Point,
    sample: usize,
    sequence: Vec<u32>,
    /// By index for posted and cancel, by place in the sequence for unexpected, absent ones for probes.
    patterns: Vec<S::Pattern>,
    /// By place in the sequence for posted, by index for unexpected and probes.
    envelopes: Vec<S::Envelope>,
    handles: Vec<Option<S::Receive>>,
    /// Where in the sequence the next round starts.
    cursor: usize,
    /// Indexes taken by the last search, in the order of the fill.
    taken: Vec<u32>,
}

impl<S: Subject> Cycle<S> {
    /// Makes everything beforehand and fills the list.
    pub(crate) fn new(subject: S, point: Point, sample: usize) -> Self {
        let sequence = point.sequence();
        let in_sequence = || sequence.iter().map(|&index| index as usize);
        let pattern = |index| S::prepare_pattern(&point.pattern(index));
        let envelope = |index| S::prepare_envelope(&point.envelope(index));
        let (patterns, envelopes) = match point.scenario {
            Scenario::Posted => {
                ((0..point.depth).map(pattern).collect(), in_sequence().map(envelope).collect())
            }
            Scenario::Unexpected => {
                (in_sequence().map(pattern).collect(), (0..point.depth).map(envelope).collect())
            }
            Scenario::ProbeMiss => {
                let absent = point.depth..point.depth + point.depth.min(PROBES_MAX);
                (absent.map(pattern).collect(), (0..point.depth).map(envelope).collect())
            }
            Scenario::Cancel => ((0..point.depth).map(pattern).collect(), Vec::new()),
        };
        let mut cycle = Self {
            subject,
            point,
            sample: 0,
            taken: (0u32..).take(point.depth).collect(),
            handles: vec![None; point.depth],
            sequence,
            patterns,
            envelopes,
            cursor: 0,
        };
        for pattern in point.ahead() {
            cycle.subject.post(&S::prepare_pattern(&pattern));
        }
        cycle.fill();
        cycle.set_sample(sample);
        cycle
    }

    /// How many entries a round takes, at most the depth.
    pub(crate) fn set_sample(&mut self, sample: usize) {
        self.sample = sample.clamp(1, self.round_max());
    }

    /// The most that one round can take.
    pub(crate) fn round_max(&self) -> usize {
        if self.point.scenario == Scenario::ProbeMiss { self.patterns.len() } else { self.point.depth }
    }

    /// The clock for [`Self::timed_round`]: a lap of many messages can afford the better one.
    pub(crate) fn clock(&self) -> Clock {
        if self.sample >= LONG_LAP { Clock::Processor } else { Clock::Wall }
    }

    /// One round with the clock, one reading of which costs so much, read between its loops.
    pub(crate) fn timed_round(&mut self, clock: Clock, cost: u64, laps: &mut Laps) {
        self.plan();
        let start = clock.now();
        self.search();
        let searched = clock.now();
        self.subject.settle();
        let settled = clock.now();
        self.fill();
        laps.fill += (clock.now() - settled).saturating_sub(cost);
        laps.search += (searched - start).saturating_sub(cost);
        laps.messages += self.sample as u64;
    }

    /// Rounds without a clock inside, at least as many messages as asked for: how many there were.
    pub(crate) fn untimed(&mut self, messages: u64) -> u64 {
        let mut done = 0;
        while done < messages {
            self.plan();
            self.search();
            self.subject.settle();
            self.fill();
            done += self.sample as u64;
        }
        done
    }

    /// Which entries the next search takes. A whole drain takes the same ones each time.
    fn plan(&mut self) {
        let whole = self.sample == self.point.depth && self.taken.len() == self.sample;
        if whole || self.point.scenario == Scenario::ProbeMiss {
            return;
        }
        if self.cursor + self.sample > self.sequence.len() || self.point.order == Order::Reverse {
            self.cursor = 0;
        }
        self.taken.clear();
        self.taken.extend_from_slice(&self.sequence[self.cursor..self.cursor + self.sample]);
        self.taken.sort_unstable();
    }

    fn search(&mut self) {
        let from = self.cursor;
        let range = from..from + self.sample;
        let mut found = 0;
        match self.point.scenario {
            Scenario::Posted => {
                for envelope in &self.envelopes[range] {
                    found += usize::from(self.subject.arrive(envelope));
                }
            }
            Scenario::Unexpected => {
                for pattern in &self.patterns[range] {
                    found += usize::from(self.subject.post(pattern).is_none());
                }
            }
            Scenario::ProbeMiss => {
                for pattern in &self.patterns[range] {
                    found += usize::from(!self.subject.probe(pattern));
                }
            }
            Scenario::Cancel => {
                for &index in &self.sequence[range] {
                    let receive = self.handles[index as usize].take();
                    found += usize::from(receive.is_some_and(|receive| self.subject.cancel(receive)));
                }
            }
        }
        assert_eq!(found, self.sample, "{} at {:?}", self.subject.name(), self.point);
        let moves = self.sample < self.sequence.len() && self.point.order != Order::Reverse;
        if moves && self.point.scenario != Scenario::ProbeMiss {
            self.cursor += self.sample;
        }
    }

    fn fill(&mut self) {
        match self.point.scenario {
            Scenario::Posted | Scenario::Cancel => {
                for &index in &self.taken {
                    self.handles[index as usize] = self.subject.post(&self.patterns[index as usize]);
                }
            }
            Scenario::Unexpected | Scenario::ProbeMiss => {
                for &index in &self.taken {
                    self.subject.arrive(&self.envelopes[index as usize]);
                }
                if self.point.scenario == Scenario::ProbeMiss {
                    self.taken.clear();
                }
            }
        }
    }
}

/// Laps of so many messages are timed by the processor's clock.
const LONG_LAP: usize = 256;
/// A probe changes nothing: a thousand different ones are as good as a million.
const PROBES_MAX: usize = 1024;
