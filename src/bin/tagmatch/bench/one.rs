//! One device, measured in this process: its curves, and traces over it.
//!
//! Not here: devices that need another process (`apart`).

use super::arguments::Subject;
use super::curves::Plan;
use super::ends::{Ends, Matcher, Port, Wire};
use super::limit::Limit;
use super::report::{Curve, Machine, Measured, Side};
use super::rows::{self, Over};
use super::{Wanted, machine};
use crate::device::{Device, is_simulated};
use crate::measure::Counter;
use crate::output::progress;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Instant;

/// Why there are no figures of a device.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Trouble {
    /// It is not there, or cannot be used.
    Absent(String),
    /// Something was not as expected, so that nothing is worth measuring.
    Wrong(String),
}

/// Measure it.
pub(super) fn measure(
    subject: &Subject,
    wanted: &Wanted<'_>,
    limit: Limit,
    counter: &mut Counter,
) -> Result<Measured, Trouble> {
    let begin = Instant::now();
    let (mut measured, plan) = prepare(subject, wanted)?;
    let replayed = replayed(subject);
    let bar = progress(plan.len() + wanted.subjects.len());
    let name = subject.name().to_owned();
    let step = |what: &str| {
        bar.set_message(format!("{name}: {what}"));
        bar.inc(1);
    };
    let mut all = || {
        // Traces are to have time, too.
        let curves = limit.left(u64::MAX).map_or(limit, |left| limit.at_most(left * 2 / 3));
        plan.measure(&mut measured, curves, counter, step)?;
        let (name, tags) = (name.as_str(), wanted.tags);
        let over = match &replayed {
            Some((device, is_offloading)) => {
                let is_offloading = *is_offloading && !plan.is_model_over_verbs();
                Over::Device { name, device, tags, is_offloading }
            }
            None => Over::Endpoints { name, wire: &plan.wire, tags },
        };
        let rows = &mut measured.rows;
        let left_out = rows::measure(wanted.subjects, over, wanted.seed, limit, counter, rows, step)?;
        note_left_out(&mut measured.notes, left_out);
        Ok(())
    };
    let result: Result<(), String> = all();
    bar.finish_and_clear();
    result.map_err(Trouble::Wrong)?;
    measured.versions.extend(machine::libraries());
    measured.seconds = begin.elapsed().as_secs_f64();
    Ok(measured)
}

/// What was not replayed.
pub(super) fn note_left_out(notes: &mut Vec<String>, left_out: usize) {
    let note = format!("{left_out} traces and mixes were left out, as there was no time (--seconds).");
    if left_out > 0 && !notes.contains(&note) {
        notes.push(note);
    }
}

/// The device that traces are replayed over where that is not by endpoints, and whether its list is used.
fn replayed(subject: &Subject) -> Option<(Device, bool)> {
    match subject {
        Subject::None => Some((Device::Soft, false)),
        Subject::Soft => Some((Device::Soft, true)),
        Subject::Hca => Some((Device::Hca, true)),
        Subject::Verbs(name) => Some((Device::Verbs(name.clone()), true)),
        Subject::Tcp | Subject::Rxe => None,
    }
}

/// A device of which nothing is measured yet.
fn nothing_yet(subject: &Subject, carries: String, software: Side, offload: Option<Side>) -> Measured {
    Measured {
        device: subject.name().into(),
        carries,
        software,
        offload,
        machine: matches!(subject, Subject::Rxe).then(Machine::here),
        versions: BTreeMap::new(),
        points: Vec::new(),
        rows: Vec::new(),
        notes: Vec::new(),
        seconds: 0.0,
    }
}

fn software(is_model: bool) -> Side {
    Side { label: "the engine matches every message".into(), is_model, tags: 0 }
}

fn soft(tags: u32) -> Side {
    Side { label: SOFT.into(), is_model: true, tags }
}

fn prepare(subject: &Subject, wanted: &Wanted<'_>) -> Result<(Measured, Plan), Trouble> {
    let tags = wanted.tags;
    let first = || Port { device: None, address: None };
    let plan = |wire, offload| Plan { wire, offload, curves: wanted.curves.clone(), tags };
    let model = Some(Matcher::Soft(tags));
    let memory = "nothing: an endpoint sends to itself, in memory";
    let (measured, plan) = match subject {
        Subject::None => {
            let measured = nothing_yet(subject, memory.into(), software(false), None);
            (measured, plan(Wire::Memory, None))
        }
        Subject::Soft => {
            let measured = nothing_yet(subject, memory.into(), software(false), Some(soft(tags)));
            (measured, plan(Wire::Memory, model))
        }
        Subject::Tcp => {
            let carries = "TCP, within this host".into();
            let measured = nothing_yet(subject, carries, software(false), Some(soft(tags)));
            (measured, plan(Wire::Tcp, model))
        }
        Subject::Rxe => {
            let (receiver, sender) = super::apart::soft_roce().map_err(Trouble::Absent)?;
            let carries = "soft RoCE, from one device to another".into();
            let measured = nothing_yet(subject, carries, software(false), Some(soft(tags)));
            (measured, plan(Wire::Verbs(receiver, sender), model))
        }
        Subject::Hca => {
            let label = "the simulated card's list matches (a model, not a card)".into();
            let offload = Side { label, is_model: true, tags };
            let carries =
                "a simulated ConnectX (a model, not a card) under the real libibverbs and libmlx5".into();
            let measured = nothing_yet(subject, carries, software(true), Some(offload));
            (measured, plan(Wire::Verbs(first(), first()), Some(Matcher::Card(tags))))
        }
        Subject::Verbs(name) => {
            let port = Port { device: name.clone(), address: None };
            let wire = Wire::Verbs(port.clone(), port);
            let refused = match Ends::open(&wire, Matcher::Card(tags), 1) {
                Ok(_) => None,
                Err(refusal) => {
                    Ends::open(&wire, Matcher::Software, 1).map_err(Trouble::Absent)?;
                    Some(refusal)
                }
            };
            let is_model = is_simulated();
            let kind = if is_model { "a simulated card (a model)" } else { "a verbs device" };
            let carries = format!("{kind}, to itself");
            let (side, matcher, notes) = match refused {
                None => (
                    Side { label: "the card's list matches".into(), is_model, tags },
                    Matcher::Card(tags),
                    Vec::new(),
                ),
                Some(refusal) => {
                    (soft(tags), Matcher::Soft(tags), vec![format!("It does not match itself: {refusal}")])
                }
            };
            let measured = nothing_yet(subject, carries, software(is_model), Some(side));
            (Measured { notes, ..measured }, plan(wire, Some(matcher)))
        }
    };
    Ok((measured, plan))
}

impl Wanted<'_> {
    /// Whether nothing at all is asked for.
    pub(super) fn is_empty(&self) -> bool {
        self.curves.is_empty() && self.subjects.is_empty()
    }

    /// The curves whose name contains this.
    pub(super) fn curves(only: &str) -> Vec<Curve> {
        Curve::ALL.into_iter().filter(|curve| curve.name().contains(only)).collect()
    }
}

/// What the model of a list is called.
pub(super) const SOFT: &str = "the soft TM-SRQ matches (a model, not a card)";
