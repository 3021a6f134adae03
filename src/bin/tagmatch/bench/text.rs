//! A run as tables.

use super::report::{Curve, Measured, Point, Replayed, Report, Row};
use crate::output::harmless;
use crate::reasons::{meaning, tallied};
use crate::table::{Table, nanoseconds, or_dash};
use std::collections::BTreeMap;

/// All of it.
pub(super) fn text(report: &Report) -> String {
    let mut text = head(report);
    for device in &report.devices {
        text += &curves(report, device);
    }
    if !report.rows.is_empty() {
        text += &rows(report);
    }
    text += &reasons(report);
    text += &tail(report);
    text
}

fn head(report: &Report) -> String {
    let Report { machine, build, .. } = report;
    let busy = if machine.is_busy() { "; it was busy, so that times are worth less" } else { "" };
    let mut text = format!(
        "machine   {}\nload      {} before, {} after{busy}\nbuilt     tagmatch {}, commit {}, {}\n",
        machine.words(),
        or_dash(machine.load_before, |load| load.to_string()),
        or_dash(machine.load_after, |load| load.to_string()),
        build.version,
        build.commit,
        build.compiler,
    );
    if build.debug {
        text += "Not optimised: times mean little. Use `cargo run --release -- bench`.\n";
    }
    harmless(text) + "\n"
}

/// What a device is, in a few lines.
pub(super) fn about(device: &Measured) -> Vec<String> {
    let mut lines = vec![format!("messages go over {}", device.carries)];
    lines.push(format!("software: {}", device.software.label));
    if let Some(side) = &device.offload {
        lines.push(format!("offload: {}, {}", side.label, tallied(side.tags, "tag")));
    }
    if let Some(machine) = &device.machine {
        lines.push(format!("where: {}", machine.words()));
    }
    if !device.versions.is_empty() {
        let versions = device.versions.iter().map(|(name, version)| format!("{name} {version}"));
        lines.push(versions.collect::<Vec<_>>().join(", "));
    }
    lines.extend(device.notes.iter().cloned());
    lines
}

fn curves(report: &Report, device: &Measured) -> String {
    let mut text = format!("{}\n", device.device);
    for line in about(device) {
        text += &format!("  {line}\n");
    }
    if device.points.is_empty() {
        return harmless(text) + "\n";
    }
    let has_offload = device.offload.is_some();
    let mut headings = vec!["".to_owned()];
    let mut heading = |what: &str, unit: &str| {
        headings.push(format!("{what}\n{unit}"));
        if has_offload {
            headings.push("\noffload".into());
        }
    };
    heading("latency, us", "software");
    heading("messages/s", "software");
    heading("receiver, ns", "software");
    if report.instructions_counted {
        heading("instructions", "software");
    }
    headings.extend(has_offload.then(|| "in\nhardware".to_owned()));
    let mut table = Table::new(headings);
    for curve in Curve::ALL {
        for at in values(device, curve) {
            let sides = [device.point(curve, at, false), device.point(curve, at, true)];
            let sides = &sides[..if has_offload { 2 } else { 1 }];
            let value = if curve == Curve::List && at == 0 { "none".into() } else { curve.value(at) };
            let mut cells = vec![format!("{}: {value}", curve.words())];
            let mut add = |show: &dyn Fn(&Point) -> Option<String>| {
                cells.extend(sides.iter().map(|point| or_dash(point.and_then(show), |cell| cell)));
            };
            add(&|point| point.latency_ns.map(|latency| format!("{:.1}", latency / 1000.0)));
            add(&|point| Some(format!("{:.0}", point.per_second)));
            add(&|point| Some(nanoseconds(point.receiver_ns)));
            if report.instructions_counted {
                add(&|point| point.instructions.map(nanoseconds));
            }
            if has_offload {
                cells.push(or_dash(device.point(curve, at, true), |point| percent(point.share_in_hardware)));
            }
            table.row(cells);
        }
    }
    harmless(text) + "\n" + &table.text() + "\n"
}

/// The values of a curve that were measured.
pub(super) fn values(device: &Measured, curve: Curve) -> Vec<u64> {
    let of_curve = device.points.iter().filter(|point| point.curve == curve);
    let mut values: Vec<u64> = of_curve.map(|point| point.at).collect();
    values.sort_unstable();
    values.dedup();
    values
}

/// Who matched in a row: the matcher, over which device.
pub(super) type Who<'a> = (&'a str, Option<&'a str>);

/// All that rows were replayed over, software first.
pub(super) fn matchers(rows: &[Row]) -> Vec<Who<'_>> {
    let mut all: Vec<Who<'_>> = Vec::new();
    for result in rows.iter().flat_map(|row| &row.results) {
        let who = result.who();
        if !all.contains(&who) {
            all.push(who);
        }
    }
    all.sort_by_key(|(_, device)| device.is_some());
    all
}

impl Replayed {
    pub(super) fn who(&self) -> Who<'_> {
        (&self.matcher, self.device.as_deref())
    }
}

fn rows(report: &Report) -> String {
    let matchers = matchers(&report.rows);
    let mut headings = vec!["name".to_owned(), "events".to_owned()];
    for (matcher, device) in &matchers {
        let who = device.map_or((*matcher).to_owned(), |device| format!("{device}: {matcher}"));
        headings.push(format!("{who}\nns"));
        if report.instructions_counted {
            headings.push(format!("{who}\ninstructions"));
        }
        if *matcher == super::rows::OFFLOAD {
            headings.push("in\nhardware".to_owned());
        }
    }
    let mut table = Table::new(headings);
    for row in &report.rows {
        let mut cells = vec![row.name.clone(), row.events.to_string()];
        for who in &matchers {
            let result = row.results.iter().find(|result| result.who() == *who);
            cells.push(or_dash(result.map(|result| result.ns_per_event), nanoseconds));
            if report.instructions_counted {
                let counted = result.and_then(|result| result.instructions_per_event);
                cells.push(or_dash(counted, nanoseconds));
            }
            if who.0 == super::rows::OFFLOAD {
                cells.push(or_dash(result.and_then(|result| result.share_in_hardware), percent));
            }
        }
        table.row(cells);
    }
    format!("traces and mixes, per event\n\n{}\n", harmless(table.text()))
}

/// Receives that devices did not match, over all that was measured, by reason.
pub(super) fn summed(report: &Report, device: &str) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    let points = report.devices.iter().filter(|measured| measured.device == device);
    let points = points.flat_map(|measured| &measured.points).filter(|point| point.is_offload);
    let results = report.rows.iter().flat_map(|row| &row.results);
    let is_offload = |result: &&Replayed| result.who() == (super::rows::OFFLOAD, Some(device));
    let reasons = points.map(|point| &point.reasons);
    for (reason, count) in reasons.chain(results.filter(is_offload).map(|result| &result.reasons)).flatten() {
        let sum: &mut u64 = sums.entry(reason.clone()).or_default();
        *sum = sum.saturating_add(*count);
    }
    sums
}

fn reasons(report: &Report) -> String {
    let mut text = String::new();
    for device in report.devices.iter().filter(|device| device.offload.is_some()) {
        let sums = summed(report, &device.device);
        if !sums.is_empty() {
            text += &format!("{}: receives that the list did not match, in all\n", device.device);
        }
        for (reason, count) in sums {
            text += &format!("  {count:>8}  {reason}: {}\n", meaning(&reason));
        }
    }
    if text.is_empty() { text } else { harmless(text) + "\n" }
}

fn tail(report: &Report) -> String {
    let mut text = String::new();
    for absent in &report.absent {
        text += &format!("not measured: {}: {}\n", absent.device, absent.why);
    }
    for note in &report.notes {
        text += &format!("{note}\n");
    }
    if report.devices.iter().any(|device| device.is_model()) {
        text += MODELS;
    }
    text += "us, ns: medians of this run. receiver: processor time of its own calls for a message, in the kernel and \
             outside; compare columns, not runs.\n";
    if let Some(refused) = &report.instructions_refused {
        text += &format!("Instructions: {refused}.\n");
    }
    harmless(text)
}

impl Measured {
    /// Whether its list is software in the receiver's own calls.
    pub(super) fn is_software_list(&self) -> bool {
        self.offload.as_ref().is_some_and(|side| side.label == super::one::SOFT)
    }

    /// Whether some of its times are a model's.
    pub(super) fn is_model(&self) -> bool {
        self.software.is_model || self.offload.as_ref().is_some_and(|side| side.is_model)
    }
}

/// A share in percent, rounded down to a tenth, so that 100 % means all.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", (share * 1000.0).floor() / 10.0)
}

/// What is to be known of figures that are in part a model's.
pub(super) const MODELS: &str = "No card was measured where it says model: a model's own work is in latency and rate, and a \
     card would do it beside the host. The soft TM-SRQ's is in the receiver's time, too; the simulated card's is not.\n";
