//! Two runs compared, if they can be: what is unlike is named, and nothing is compared then.
//!
//! Builds may differ: that is what one compares. Files come from anywhere: what they say is checked, and does nothing to
//! a terminal.

use super::report::{Curve, Machine, Measured, Replayed, Report};
use crate::End;
use crate::output::{complain, harmless, write, write_json};
use crate::table::{Table, nanoseconds};
use serde::Serialize;
use std::path::Path;

/// Both runs, point by point.
#[derive(Debug, Serialize)]
struct Comparison {
    before: String,
    after: String,
    /// What to beware of.
    notes: Vec<String>,
    lines: Vec<Compared>,
}

/// One figure in both runs.
#[derive(Debug, Serialize)]
struct Compared {
    device: String,
    what: String,
    /// `receiver_ns`, `latency_ns`, `ns_per_event`.
    figure: &'static str,
    side: String,
    before: f64,
    after: f64,
    /// After, in units of before.
    ratio: f64,
}

/// Read, check, compare, print.
pub(super) fn run(before: &Path, after: &Path, is_json: bool) -> End {
    let refuse = |what: String| {
        complain(what);
        End::Unusable
    };
    let (one, other) = match (Report::read(before), Report::read(after)) {
        (Ok(one), Ok(other)) => (one, other),
        (Err(what), _) | (_, Err(what)) => return refuse(what),
    };
    let unlike = differences(&one, &other);
    if !unlike.is_empty() {
        let (before, after) = (before.display(), after.display());
        return refuse(format!(
            "{before} and {after} are of runs that cannot be compared:\n  {}",
            unlike.join("\n  ")
        ));
    }
    let comparison = compare(&one, &other);
    if comparison.lines.is_empty() {
        return refuse("there is no figure that both files have".into());
    }
    if is_json {
        write_json(&comparison, End::AsExpected)
    } else {
        write(&text(&comparison), End::AsExpected)
    }
}

/// What must be alike, and is not.
fn differences(one: &Report, other: &Report) -> Vec<String> {
    let mut unlike = Vec::new();
    let mut same = |what: &str, one: String, other: String| {
        if one != other {
            unlike.push(format!("{what}: {one}; {other}"));
        }
    };
    machines("", &one.machine, &other.machine, &mut same);
    let optimised =
        |report: &Report| if report.build.debug { "not optimised" } else { "optimised" }.to_owned();
    same("build", optimised(one), optimised(other));
    same("compiler", one.build.compiler.clone(), other.build.compiler.clone());
    same("--seed", one.settings.seed.to_string(), other.settings.seed.to_string());
    same("--tags", one.settings.tags.to_string(), other.settings.tags.to_string());
    same("layout", one.settings.layout.clone(), other.settings.layout.clone());
    let names = |report: &Report| {
        let mut names: Vec<&str> = report.devices.iter().map(|device| device.device.as_str()).collect();
        names.sort_unstable();
        names.join(", ")
    };
    same("devices (--device says which)", names(one), names(other));
    for device in &one.devices {
        if let Some(there) = other.devices.iter().find(|there| there.device == device.device) {
            devices(device, there, &mut same);
        }
    }
    unlike
}

type Same<'a> = dyn FnMut(&str, String, String) + 'a;

fn machines(whose: &str, one: &Machine, other: &Machine, same: &mut Same<'_>) {
    let mut both =
        |what: &str, of: &dyn Fn(&Machine) -> String| same(&format!("{whose}{what}"), of(one), of(other));
    both("system", &|machine| machine.system.clone());
    both("kernel", &|machine| machine.kernel.clone());
    both("processor", &|machine| machine.processor.clone());
    both("processors", &|machine| machine.processors.to_string());
    both("virtual", &|machine| machine.is_virtual.to_string());
}

fn devices(one: &Measured, other: &Measured, same: &mut Same<'_>) {
    let name = &one.device;
    let mut both =
        |what: &str, of: &dyn Fn(&Measured) -> String| same(&format!("{name}: {what}"), of(one), of(other));
    both("messages go over", &|device| device.carries.clone());
    both("software", &|device| device.software.label.clone());
    both("a model", &|device| device.is_model().to_string());
    both("offload", &|device| device.offload.as_ref().map_or("none".into(), |side| side.label.clone()));
    both("tags", &|device| device.offload.as_ref().map_or(0, |side| side.tags).to_string());
    both("versions", &|device| {
        let versions = device.versions.iter().map(|(name, version)| format!("{name} {version}"));
        versions.collect::<Vec<_>>().join(", ")
    });
    if let (Some(one), Some(other)) = (&one.machine, &other.machine) {
        machines(&format!("{name}: "), one, other, same);
    }
}

fn compare(one: &Report, other: &Report) -> Comparison {
    let mut lines = Vec::new();
    for device in &one.devices {
        let Some(there) = other.devices.iter().find(|there| there.device == device.device) else { continue };
        for point in &device.points {
            let Some(again) = there.point(point.curve, point.at, point.is_offload) else { continue };
            let side = if point.is_offload { "offload" } else { "software" };
            let value = if point.curve == Curve::List && point.at == 0 {
                "none".into()
            } else {
                point.curve.value(point.at)
            };
            let what = format!("{}: {value}", point.curve.words());
            let mut add = |figure, before, after| {
                lines.push(Compared::new((&device.device, &what, side), figure, before, after));
            };
            add("receiver_ns", point.receiver_ns, again.receiver_ns);
            if let (Some(before), Some(after)) = (point.latency_ns, again.latency_ns) {
                add("latency_ns", before, after);
            }
        }
    }
    for row in &one.rows {
        let Some(there) = other.rows.iter().find(|there| there.name == row.name) else { continue };
        for result in &row.results {
            let same = |again: &&Replayed| again.who() == result.who();
            let Some(again) = there.results.iter().find(same) else { continue };
            let device = result.device.as_deref().unwrap_or("-");
            let names = (device, row.name.as_str(), result.matcher.as_str());
            lines.push(Compared::new(names, "ns_per_event", result.ns_per_event, again.ns_per_event));
        }
    }
    let notes =
        [("before", one), ("after", other)].into_iter().filter(|(_, report)| report.machine.is_busy());
    Comparison {
        before: one.build.commit.clone(),
        after: other.build.commit.clone(),
        notes: notes
            .map(|(which, _)| format!("The machine was busy in the run {which}: times are worth less."))
            .collect(),
        lines,
    }
}

impl Compared {
    fn new((device, what, side): (&str, &str, &str), figure: &'static str, before: f64, after: f64) -> Self {
        let ratio = if before > 0.0 { after / before } else { 1.0 };
        Self { device: device.into(), what: what.into(), figure, side: side.into(), before, after, ratio }
    }
}

fn text(comparison: &Comparison) -> String {
    let mut table = Table::new(["", "figure", "before", "after", "ratio", ""]);
    for line in &comparison.lines {
        let mark = if line.ratio > 1.0 + NOISE {
            "slower"
        } else if line.ratio < 1.0 - NOISE {
            "faster"
        } else {
            ""
        };
        table.row(vec![
            format!("{} {}, {}", line.device, line.side, line.what),
            line.figure.into(),
            nanoseconds(line.before),
            nanoseconds(line.after),
            format!("{:.2}", line.ratio),
            mark.into(),
        ]);
    }
    let mut text = table.text() + "\n";
    for (who, ratio, count) in means(&comparison.lines) {
        text += &format!("{who}: {ratio:.2} times as before (geometric mean of {count})\n");
    }
    for note in &comparison.notes {
        text += &format!("{note}\n");
    }
    text += &format!(
        "commit {} before, {} after; marked: more than {:.0} % apart. Times of two runs differ by some percent anyhow.\n",
        comparison.before,
        comparison.after,
        NOISE * 100.0
    );
    harmless(text)
}

/// The geometric mean of the ratios of each device and side.
fn means(lines: &[Compared]) -> Vec<(String, f64, usize)> {
    let mut sums: Vec<(String, f64, usize)> = Vec::new();
    for line in lines.iter().filter(|line| line.ratio > 0.0 && line.ratio.is_finite()) {
        let who = format!("{} {}, {}", line.device, line.side, line.figure);
        match sums.iter_mut().find(|(name, ..)| *name == who) {
            Some((_, sum, count)) => (*sum, *count) = (*sum + line.ratio.ln(), *count + 1),
            None => sums.push((who, line.ratio.ln(), 1)),
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "a file has few figures")]
    sums.into_iter().map(|(who, sum, count)| (who, (sum / count as f64).exp(), count)).collect()
}

/// What two runs differ by without any reason.
const NOISE: f64 = 0.1;
