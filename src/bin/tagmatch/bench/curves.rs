//! Latency, rate, processor time and share matched by the device, by what messages and lists look like.

use super::burst::{Bursts, Load, Took};
use super::ends::{Ends, Matcher, Wire};
use super::limit::Limit;
use super::memory::Pool;
use super::report::{Curve, Measured, Point, Side};
use crate::measure::Counter;
use crate::reasons::{MESSAGE_WAS_FIRST, TAKEN_BY_SOFTWARE};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tagmatch::endpoint::Endpoint;
use tagmatch::offload::Reason;

/// Which points are measured, and over what.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) wire: Wire,
    /// Who matches besides the engine.
    pub(super) offload: Option<Matcher>,
    pub(super) curves: Vec<Curve>,
    /// Entries of a list.
    pub(super) tags: u32,
}

/// A point that is to be measured.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    curve: Curve,
    at: u64,
    load: Load,
    matcher: Matcher,
    /// Whether one message at a time says something.
    is_timed: bool,
}

impl Plan {
    /// Every point, software and offload side by side, so that what a machine does meanwhile meets both.
    fn points(&self) -> Vec<Wanted> {
        let mut points = Vec::new();
        for &curve in &self.curves {
            for &at in values(curve) {
                let load = load(curve, at);
                let is_timed = matches!(curve, Curve::Size | Curve::Depth);
                let wanted = Wanted { curve, at, load, matcher: Matcher::Software, is_timed };
                if curve != Curve::List {
                    points.push(wanted);
                }
                let tags = if curve == Curve::List { narrow(at) } else { self.tags };
                if let Some(matcher) = self.offload {
                    points.push(Wanted { matcher: matcher.with_tags(tags), ..wanted });
                }
            }
            if curve == Curve::List {
                let matcher = Matcher::Software;
                points.push(Wanted { curve, at: 0, load: load(curve, 0), matcher, is_timed: false });
            }
        }
        points
    }

    /// Whether a verbs device has no list, so that a model's stands in for it.
    pub(super) const fn is_model_over_verbs(&self) -> bool {
        matches!((&self.wire, self.offload), (Wire::Verbs(..), Some(Matcher::Soft(_))))
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.points().len()
    }

    /// Measure all of them, as long as there is time. `step` is told before each.
    pub(super) fn measure(
        &self,
        to: &mut Measured,
        limit: Limit,
        counter: &mut Counter,
        mut step: impl FnMut(&str),
    ) -> Result<(), String> {
        let mut pool = Pool::new(POOL);
        let mut left_out = 0;
        for wanted in self.points() {
            let what = format!("{} {}", wanted.curve.words(), wanted.curve.value(wanted.at));
            step(&what);
            if limit.is_over() {
                left_out += 1;
                continue;
            }
            let point = self.point(wanted, to, counter, &mut pool);
            to.points.push(point.map_err(|error| format!("{what}, {}: {error}", wanted.matcher.words()))?);
        }
        if left_out > 0 {
            to.notes.push(format!("{left_out} points were left out, as there was no time (--seconds)."));
        }
        Ok(())
    }

    fn point(
        &self,
        wanted: Wanted,
        to: &mut Measured,
        counter: &mut Counter,
        pool: &mut Pool,
    ) -> Result<Point, String> {
        let Wanted { curve, at, load, matcher, is_timed } = wanted;
        let is_offload = matcher != Matcher::Software;
        let ends = Ends::open(&self.wire, matcher, 1)?;
        if let Some(firmware) = &ends.firmware {
            to.versions.insert("firmware".into(), firmware.clone());
        }
        note_tags(to.offload.as_mut().filter(|_| is_offload && curve != Curve::List), ends.tags);
        let mut bursts = Bursts::new(ends, load, pool)?;
        bursts.checked()?;
        bursts.one(None)?;
        let before = Counts::of(&bursts.ends.receiver);
        let took = several(|| bursts.one(None))?;
        let ended = Counts::of(&bursts.ends.receiver).since(&before);
        let per_message = |time: Duration| nanoseconds(time) / f64::from(load.messages);
        let median = |part: fn(&Took) -> Duration| per_message(median(took.iter().map(part)));
        let instructions = instructions(&mut bursts, load.messages, counter)?;
        let latency = if is_timed { Some(latency(&mut bursts)?) } else { None };
        Ok(Point {
            curve,
            at,
            is_offload,
            messages: ended.received,
            latency_ns: latency,
            per_second: 1e9 / median(|took| took.all).max(1.0),
            receiver_ns: median(|took| took.receiver),
            sender_ns: median(|took| took.sender),
            instructions,
            share_in_hardware: super::share(ended.matched, ended.received),
            reasons: ended.reasons,
        })
    }
}

/// What the side was opened with.
fn note_tags(side: Option<&mut Side>, tags: u32) {
    if let Some(side) = side {
        side.tags = tags;
    }
}

/// Bursts until there is enough to tell. Those in which something else had the processor say what that was, and are left
/// out where there are others.
fn several(mut burst: impl FnMut() -> Result<Took, String>) -> Result<Vec<Took>, String> {
    let begin = Instant::now();
    let (mut took, mut disturbed) = (Vec::new(), Vec::new());
    while took.len() + disturbed.len() < BURSTS_MAX {
        let (spent, is_enough) = (begin.elapsed(), took.len() >= BURSTS_MIN);
        if is_enough && spent >= LONG_ENOUGH || spent >= TOO_LONG && disturbed.len() >= BURSTS_MIN {
            break;
        }
        let one = burst()?;
        if one.running * 10 >= one.all * 9 { took.push(one) } else { disturbed.push(one) }
    }
    if took.len() < BURSTS_MIN {
        took.append(&mut disturbed);
    }
    Ok(took)
}

/// One message at a time, from the first call to the last: median.
fn latency(bursts: &mut Bursts<'_>) -> Result<f64, String> {
    bursts.one_at_a_time();
    bursts.one(None)?;
    let took = several(|| bursts.one(None))?;
    Ok(nanoseconds(median(took.iter().map(|took| took.from_sending))))
}

/// Least of a few bursts, as nothing but the receiver's own work is in it.
fn instructions(
    bursts: &mut Bursts<'_>,
    messages: u32,
    counter: &mut Counter,
) -> Result<Option<f64>, String> {
    let mut least: Option<u64> = None;
    for _ in 0..COUNTED {
        if !counter.is_counting() {
            return Ok(None);
        }
        counter.clear();
        bursts.one(Some(counter))?;
        let counted = counter.stop();
        least = counted.map(|counted| least.map_or(counted, |least| least.min(counted)));
    }
    #[expect(clippy::cast_precision_loss, reason = "counts of one burst are far below 2^53")]
    Ok(least.map(|least| least as f64 / f64::from(messages)))
}

/// What the receiver counts.
#[derive(Clone, Debug)]
struct Counts {
    received: u64,
    matched: u64,
    reasons: BTreeMap<String, u64>,
}

impl Counts {
    fn of(endpoint: &Endpoint) -> Self {
        let (statistics, offload) = (endpoint.statistics(), endpoint.offload_statistics());
        let reasons = Reason::ALL.iter().map(|&reason| (reason.name(), offload.ended(reason)));
        let others = [
            (MESSAGE_WAS_FIRST, statistics.matched_unexpected),
            (TAKEN_BY_SOFTWARE, offload.used_by_own_device + offload.taken_back),
        ];
        let reasons = reasons.chain(others).map(|(name, count)| (name.to_owned(), count)).collect();
        Self { received: statistics.received, matched: statistics.matched_by_device, reasons }
    }

    fn since(self, before: &Self) -> Self {
        let less = |(name, count): (String, u64)| {
            let earlier = before.reasons.get(&name).copied().unwrap_or_default();
            (name, count.saturating_sub(earlier))
        };
        Self {
            received: self.received.saturating_sub(before.received),
            matched: self.matched.saturating_sub(before.matched),
            reasons: self.reasons.into_iter().map(less).filter(|(_, count)| *count > 0).collect(),
        }
    }
}

/// What is measured of a curve.
const fn values(curve: Curve) -> &'static [u64] {
    match curve {
        Curve::Size => &[8, 64, 512, 4096, 16_384, 65_536, 1 << 20],
        Curve::Depth => &[0, 16, 64, 256, 1024, 4096, 8192],
        Curve::List => &[16, 64, 256, 1024, 4096],
        Curve::Wildcards | Curve::Unexpected => &[0, 25, 50, 75, 100],
    }
}

fn load(curve: Curve, at: u64) -> Load {
    let plain = Load { size: SMALL, standing: 0, messages: 64, wildcards: 0, unexpected: 0 };
    match curve {
        Curve::Size => Load { size: at, messages: narrow((LARGE / at.max(1)).clamp(4, 64)), ..plain },
        Curve::Depth => Load { standing: narrow(at), ..plain },
        Curve::List => Load { messages: 1024, ..plain },
        Curve::Wildcards => Load { wildcards: narrow(at), messages: 256, ..plain },
        Curve::Unexpected => Load { unexpected: narrow(at), messages: 256, ..plain },
    }
}

fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn median(times: impl Iterator<Item = Duration>) -> Duration {
    let mut times: Vec<Duration> = times.collect();
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn nanoseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9
}

/// Bytes of a message where the size is not what is asked.
pub(super) const SMALL: u64 = 8;
/// Bytes of all messages of a burst, at most.
const LARGE: u64 = 4 << 20;
/// Bytes for receives and messages of a burst, and for standing receives, which take a line each.
const POOL: usize = 8 << 20;
const BURSTS_MIN: usize = 5;
const BURSTS_MAX: usize = 500;
const COUNTED: usize = 5;
const LONG_ENOUGH: Duration = Duration::from_millis(30);
/// Where something else has the processor most of the time.
const TOO_LONG: Duration = Duration::from_millis(150);

#[cfg(test)]
mod tests {
    use super::*;

    fn took(all: u64, running: u64) -> Took {
        Took { all: Duration::from_micros(all), running: Duration::from_micros(running), ..Took::default() }
    }

    #[test]
    fn bursts_in_which_something_else_ran_do_not_count_where_there_are_others() {
        let mut number = 0;
        let all = several(|| {
            number += 1;
            Ok(if number % 3 == 0 { took(1000, 950) } else { took(9000, 1000) })
        });
        let all = all.unwrap();
        assert!(all.len() >= BURSTS_MIN && all.iter().all(|took| took.all.as_micros() == 1000), "{all:?}");
    }

    #[test]
    fn where_something_else_always_ran_all_bursts_count() {
        let all = several(|| Ok(took(9000, 1000))).unwrap();
        assert!(all.len() >= BURSTS_MIN && all.len() <= BURSTS_MAX, "{}", all.len());
    }

    #[test]
    fn a_burst_that_fails_is_the_end() {
        assert_eq!(several(|| Err("lost".into())).unwrap_err(), "lost");
    }
}
