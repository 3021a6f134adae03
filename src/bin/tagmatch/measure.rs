//! How long a replay takes, and how many instructions.
//!
//! Times are medians over several replays in this process. On a machine that is shared, take ratios of one run.

use std::time::{Duration, Instant};
use tagmatch::replay::{self, Fault, Target};
use tagmatch::traces::Trace;

/// What a replay costs, per event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// Median time in nanoseconds.
    pub(crate) nanoseconds: f64,
    /// Fewest instructions of this process, where the machine lets them be counted.
    pub(crate) instructions: Option<f64>,
}

/// Replay a trace over one target, several times, and take the median. The target is warm: it has replayed the trace
/// before, and forgets it between two times, which is not counted.
pub(crate) fn cost(
    trace: &Trace,
    counter: &mut Counter,
    target: &mut (impl Target + ?Sized),
) -> Result<Cost, Fault> {
    let mut times = Vec::with_capacity(REPEATS_MAX);
    let mut instructions = None;
    let begin = Instant::now();
    let is_enough = |count: usize| {
        let spent = begin.elapsed();
        count >= REPEATS_MAX || count >= REPEATS_MIN && spent >= LONG_ENOUGH || count > 0 && spent >= TOO_LONG
    };
    while !is_enough(times.len()) {
        target.reset()?;
        counter.start();
        let start = Instant::now();
        let sum = replay::run_unchecked(trace, target)?;
        let time = start.elapsed();
        let counted = counter.stop();
        std::hint::black_box(sum);
        times.push(time);
        instructions = match (instructions, counted) {
            (Some(least), Some(counted)) if least < counted => Some(least),
            (_, counted) => counted,
        };
    }
    times.sort();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    let events = f64::from(u32::try_from(trace.steps.len()).unwrap_or(u32::MAX)).max(1.0);
    Ok(Cost {
        nanoseconds: median.as_secs_f64() * 1e9 / events,
        instructions: instructions.map(|counted| as_f64(counted) / events),
    })
}

/// Exact up to 2^53, which no replay reaches.
#[expect(clippy::cast_precision_loss, reason = "counts of one replay are far below 2^53")]
const fn as_f64(count: u64) -> f64 {
    count as f64
}

/// Counts this process's instructions in user mode, where the machine has a counter for them.
#[derive(Debug)]
pub(crate) struct Counter {
    #[cfg(target_os = "linux")]
    counter: Option<perf_event::Counter>,
}

impl Counter {
    /// One that counts if it can.
    #[cfg(target_os = "linux")]
    pub(crate) fn new() -> Self {
        use perf_event::Builder;
        use perf_event::events::Hardware;

        Self { counter: Builder::new().kind(Hardware::INSTRUCTIONS).build().ok() }
    }

    /// One that does not count.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn new() -> Self {
        Self {}
    }

    /// Whether it counts.
    pub(crate) fn is_counting(&self) -> bool {
        #[cfg(target_os = "linux")]
        return self.counter.is_some();
        #[cfg(not(target_os = "linux"))]
        return false;
    }

    /// Count on, without beginning anew.
    pub(crate) fn go_on(&mut self) {
        #[cfg(target_os = "linux")]
        if let Some(counter) = &mut self.counter
            && counter.enable().is_err()
        {
            self.counter = None;
        }
    }

    /// Do not count for now.
    pub(crate) fn pause(&mut self) {
        #[cfg(target_os = "linux")]
        if let Some(counter) = &mut self.counter
            && counter.disable().is_err()
        {
            self.counter = None;
        }
    }

    /// Nothing was counted yet.
    pub(crate) fn clear(&mut self) {
        #[cfg(target_os = "linux")]
        if let Some(counter) = &mut self.counter
            && counter.disable().and_then(|()| counter.reset()).is_err()
        {
            self.counter = None;
        }
    }

    /// Count from 0. What cannot be counted is left out.
    fn start(&mut self) {
        #[cfg(target_os = "linux")]
        if let Some(counter) = &mut self.counter
            && counter.reset().and_then(|()| counter.enable()).is_err()
        {
            self.counter = None;
        }
    }

    /// Stop, and say how many there were.
    pub(crate) fn stop(&mut self) -> Option<u64> {
        #[cfg(target_os = "linux")]
        {
            let counter = self.counter.as_mut()?;
            counter.disable().and_then(|()| counter.read()).ok().filter(|&count| count > 0)
        }
        #[cfg(not(target_os = "linux"))]
        None
    }
}

/// A replay that takes so long is done once.
const TOO_LONG: Duration = Duration::from_secs(1);
/// At least so many replays for a median,
const REPEATS_MIN: usize = 3;
/// and no more than so many,
const REPEATS_MAX: usize = 51;
/// unless this long has passed.
const LONG_ENOUGH: Duration = Duration::from_millis(60);
