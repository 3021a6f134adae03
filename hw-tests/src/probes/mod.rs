//! What only a card can answer: the doubtful points of TM-CONTRACT 14.
//!
//! A probe does not judge. It names what it found by one of a few words, says what that means, and shows the
//! completions, so that a person with a card can send them back. On a model each finds what its switch is set to.

mod asking;
mod buffers;
mod lists;
mod rendezvous;

use std::time::{Duration, Instant};

use crate::port::TmDevice;
use crate::refusal::{NO_TAGS, refusal};
use crate::runner::Verdict;
use crate::suite::{Filter, Report};
use asking::Asking;

/// One question.
#[derive(Clone, Copy)]
pub struct Probe {
    /// The point of TM-CONTRACT 14.
    pub point: &'static str,
    /// What is asked.
    pub question: &'static str,
    /// The words that it answers with, the assumed one first, and what they mean.
    pub readings: &'static [(&'static str, &'static str)],
    ask: fn(&mut dyn TmDevice) -> Result<Answer, String>,
}

impl std::fmt::Debug for Probe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Probe")
            .field("point", &self.point)
            .field("question", &self.question)
            .finish_non_exhaustive()
    }
}

/// What came of a question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// One of the probe's words, or why it was not asked.
    pub reading: Result<&'static str, String>,
    /// What was seen.
    pub seen: Vec<String>,
}

impl Answer {
    fn not_asked(why: &str) -> Self {
        Self { reading: Err(why.to_owned()), seen: Vec::new() }
    }
}

impl Probe {
    /// Ask.
    ///
    /// # Errors
    /// Something went wrong that is not the subject.
    pub fn ask(&self, device: &mut dyn TmDevice) -> Result<Answer, String> {
        if device.abilities().tags == 0 {
            return Ok(Answer::not_asked(NO_TAGS));
        }
        (self.ask)(device)
    }
}

/// All of them.
#[must_use]
pub fn all() -> Vec<Probe> {
    [lists::PROBES, buffers::PROBES, rendezvous::PROBES].concat()
}

/// Ask all.
///
/// # Errors
/// What `tell` returned.
pub fn run_all<E>(
    device: &mut dyn TmDevice,
    filter: &Filter,
    mut tell: impl FnMut(&Report) -> Result<(), E>,
) -> Result<(), E> {
    let refusal = refusal(device);
    for probe in all().iter().filter(|probe| filter.part.is_empty() || filter.part == probe.point) {
        // The one that is about the refusal is asked all the same.
        let answer = match &refusal {
            Some(why) if probe.point != REFUSED_ON_ETHERNET || device.abilities().tags == 0 => {
                let (verdict, source) = (filter.without_tm(why), probe.question.to_owned());
                tell(&Report {
                    name: probe.point.to_owned(),
                    source,
                    verdict,
                    reading: None,
                    seen: Vec::new(),
                })?;
                continue;
            }
            Some(_) | None => probe.ask(device),
        };
        let (verdict, reading, seen) = match answer {
            Ok(Answer { reading: Ok(word), seen }) => {
                let known = probe.readings.iter().enumerate().find(|(_, (known, _))| *known == word);
                let meaning = known.map_or_else(
                    || "neither of the readings".to_owned(),
                    |(place, (_, meaning))| {
                        let assumed = if place == 0 { "as assumed" } else { "not as assumed" };
                        format!("{meaning} ({assumed})")
                    },
                );
                (Verdict::Passed, Some((word, meaning)), seen)
            }
            Ok(Answer { reading: Err(why), seen }) => (Verdict::Skipped(why), None, seen),
            Err(what) => (Verdict::Failed(what), None, Vec::new()),
        };
        let source = probe.question.to_owned();
        tell(&Report { name: probe.point.to_owned(), source, verdict, reading, seen })?;
    }
    Ok(())
}

/// Ask on a fresh set-up.
fn ask(
    device: &mut dyn TmDevice,
    setup: &crate::script::Setup,
    question: impl FnOnce(&mut Asking<'_>) -> Result<&'static str, String>,
) -> Result<Answer, String> {
    let abilities = device.abilities();
    let mut port = device.open().map_err(|error| error.0)?;
    let mut asking = Asking::new(port.as_mut(), abilities);
    let reading = asking.set_up(setup).and_then(|()| question(&mut asking));
    let seen = asking.seen();
    let torn_down = port.tear_down();
    let reading = reading.map_err(|what| format!("{what}; seen: {seen:?}"))?;
    torn_down.map_err(|error| format!("at the end: {error}"))?;
    Ok(Answer { reading: Ok(reading), seen })
}

/// Whether a TM-SRQ can be made on an Ethernet port.
const REFUSED_ON_ETHERNET: &str = "A15";

/// Let a little time pass on a device that runs by itself.
fn spin(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}
