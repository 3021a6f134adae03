//! `tagmatch bench`: offload against software, over every device that there is.
//!
//! ```text
//!  arguments ─▶ devices: one (in this process) · apart (simulated card, soft RoCE: in another)
//!                 │  curves ─▶ burst ─▶ ends        rows: traces and mixes
//!                 ▼
//!               report ─▶ text · JSON · page        compare: two reports
//! ```
//!
//! Comparisons within one run are what counts. How to read it: docs/bench.md.

mod apart;
mod arguments;
mod burst;
mod compare;
mod curves;
mod ends;
mod file;
mod limit;
mod machine;
pub(crate) mod memory;
mod one;
mod over;
mod page;
mod report;
mod rows;
mod text;

pub(crate) use arguments::{BenchArguments, HELP};

use crate::End;
use crate::measure::Counter;
use crate::output::{complain, progress, write, write_json};
use apart::Part;
use arguments::Subject as Device;
use limit::Limit;
use one::Trouble;
pub(crate) use report::Machine;
use report::{Absent, Build, Curve, FORMAT, Measured, Report, Settings};
use rows::{Over, Subject};
use std::fs::File;
use std::path::Path;
use std::time::SystemTime;

/// What is measured of a device.
#[derive(Clone, Debug)]
struct Wanted<'a> {
    curves: Vec<Curve>,
    subjects: &'a [Subject],
    tags: u32,
    seed: u64,
}

/// Measure, or compare, and print.
pub(crate) fn run(arguments: &BenchArguments) -> End {
    if let Some([before, after]) = arguments.compare.as_deref() {
        return compare::run(before, after, arguments.json);
    }
    if let Some(Err(error)) =
        arguments.html.as_ref().map(|file| File::options().append(true).create(true).open(file))
    {
        // Before anything is measured for it.
        complain(format_args!("--html: the page cannot be written: {error}"));
        return End::Unusable;
    }
    if let Some(file) = &arguments.from {
        return match Report::read(file) {
            Ok(report) => show(arguments, &report),
            Err(what) => {
                complain(what);
                End::Unusable
            }
        };
    }
    let limit = Limit::new(arguments.seconds());
    let only = arguments.only.as_deref().unwrap_or_default();
    let (recorded, made_up): (Vec<_>, Vec<_>) =
        Subject::all(only).into_iter().partition(Subject::is_recorded);
    let mut subjects = recorded;
    let mixes = if arguments.is_for_all() { made_up } else { Vec::new() };
    if !arguments.is_for_all() && !arguments.no_mixes {
        subjects.extend(Subject::all(only).into_iter().filter(|subject| !subject.is_recorded()));
    }
    let (tags, seed) = (arguments.tags, arguments.seed);
    let wanted = Wanted { curves: Wanted::curves(only), subjects: &subjects, tags, seed };
    if wanted.is_empty() && mixes.is_empty() {
        complain(format_args!(
            "--only {only}: no trace and no mix has this in its name, and no curve; see `tagmatch bench --help`"
        ));
        return End::Unusable;
    }
    if let (Some(file), [device]) = (&arguments.part, arguments.devices.as_slice()) {
        return part(device, &wanted, limit, file);
    }
    let mut run = Run { arguments, limit, counter: Counter::new(), report: report(arguments) };
    match run.all(&wanted, &mixes) {
        Ok(()) => show(arguments, &run.report),
        Err((what, end)) => {
            complain(what);
            end
        }
    }
}

/// One device, in a process of its own.
fn part(device: &Device, wanted: &Wanted<'_>, limit: Limit, file: &Path) -> End {
    let part = match one::measure(device, wanted, limit, &mut Counter::new()) {
        Ok(measured) => Part::Measured(Box::new(measured)),
        Err(trouble) => Part::Trouble(trouble),
    };
    let written = serde_json::to_vec(&part).map_err(std::io::Error::from);
    match written.and_then(|text| std::fs::write(file, text)) {
        Ok(()) => End::AsExpected,
        Err(error) => {
            complain(format_args!("{}: {error}", file.display()));
            End::Unusable
        }
    }
}

impl BenchArguments {
    /// Whether nobody said what to measure.
    fn is_for_all(&self) -> bool {
        self.devices.is_empty()
    }

    fn seconds(&self) -> Option<u64> {
        self.seconds.or_else(|| self.is_for_all().then_some(SECONDS))
    }
}

/// A run in the making.
struct Run<'a> {
    arguments: &'a BenchArguments,
    limit: Limit,
    counter: Counter,
    report: Report,
}

/// What is wrong, and how it ends.
type Ended = (String, End);

impl Run<'_> {
    fn all(&mut self, wanted: &Wanted<'_>, mixes: &[Subject]) -> Result<(), Ended> {
        if self.arguments.is_for_all() {
            for (device, seconds) in FIRST {
                self.device(&device, wanted, self.limit.at_most(seconds))?;
            }
            self.rows(Over::Software, wanted.subjects)?;
            self.device(&Device::Rxe, wanted, self.limit)?;
            self.rows(Over::Software, mixes)?;
            let soft = crate::device::Device::Soft;
            let over = Over::Device { name: "soft", device: &soft, tags: wanted.tags, is_offloading: true };
            self.rows(over, mixes)?;
        } else {
            for device in &self.arguments.devices {
                self.device(device, wanted, self.limit)?;
            }
            self.rows(Over::Software, wanted.subjects)?;
        }
        for row in &mut self.report.rows {
            row.results.sort_by_key(|result| result.device.is_some());
        }
        self.report.machine.load_after = machine::load();
        Ok(())
    }

    /// Measure a device. One that nobody asked for may be absent.
    fn device(&mut self, device: &Device, wanted: &Wanted<'_>, limit: Limit) -> Result<(), Ended> {
        let (name, is_asked_for) = (device.name(), !self.arguments.is_for_all());
        match self.measure(device, wanted, limit) {
            Ok(mut measured) => {
                for row in std::mem::take(&mut measured.rows) {
                    rows::join(&mut self.report.rows, row);
                }
                self.report.devices.push(measured);
                Ok(())
            }
            Err(Trouble::Absent(why)) if is_asked_for => Err((refused(device, &why), End::Unusable)),
            Err(Trouble::Absent(why)) => {
                self.report.absent.push(Absent { device: name.into(), why });
                Ok(())
            }
            Err(Trouble::Wrong(what)) => Err((format!("{name}: {what}"), End::Disagreement)),
        }
    }

    fn measure(&mut self, device: &Device, wanted: &Wanted<'_>, limit: Limit) -> Result<Measured, Trouble> {
        let seconds = limit.left(u64::MAX);
        match device {
            Device::Hca if !crate::device::is_simulated() => apart::on_card(self.arguments, seconds),
            Device::Rxe => {
                if self.arguments.is_for_all() {
                    apart::soft_roce_at_once()?;
                    if seconds.is_some_and(|left| left < RXE_MIN) {
                        let why = "there was no time left for it; --device rxe measures it alone";
                        return Err(Trouble::Absent(why.into()));
                    }
                }
                apart::in_rxe(self.arguments, seconds)
            }
            Device::None | Device::Soft | Device::Tcp | Device::Hca | Device::Verbs(_) => {
                one::measure(device, wanted, limit, &mut self.counter)
            }
        }
    }

    /// Measure traces and mixes in this process.
    fn rows(&mut self, over: Over<'_>, subjects: &[Subject]) -> Result<(), Ended> {
        let bar = progress(subjects.len());
        let step = |what: &str| {
            bar.set_message(what.to_owned());
            bar.inc(1);
        };
        let Self { report, counter, limit, arguments } = self;
        let measured = rows::measure(subjects, over, arguments.seed, *limit, counter, &mut report.rows, step);
        bar.finish_and_clear();
        let left_out = measured.map_err(|what| (what, End::Disagreement))?;
        one::note_left_out(&mut report.notes, left_out);
        Ok(())
    }
}

/// Why a device that was asked for is not measured. A name that no device has may be a slip in one of the others.
fn refused(device: &Device, why: &str) -> String {
    match device {
        Device::Verbs(name) => format!(
            "--device {}: {}{why}\nWithout a card try --device hca, which is a simulated one, or --device soft.",
            name.as_ref().map_or("verbs".into(), |name| format!("{name:?}")),
            if name.is_some() {
                "it takes none, soft, tcp, rxe, hca, verbs, or a device's name; "
            } else {
                ""
            }
        ),
        Device::None | Device::Soft | Device::Tcp | Device::Rxe | Device::Hca => {
            format!("--device {}: {why}", device.name())
        }
    }
}

/// In every form that is asked for.
fn show(arguments: &BenchArguments, report: &Report) -> End {
    if let Some(file) = &arguments.html
        && let Err(error) = std::fs::write(file, page::page(report))
    {
        complain(format_args!("{}: {error}", file.display()));
        return End::Unusable;
    }
    if arguments.json {
        write_json(report, End::AsExpected)
    } else {
        write(&text::text(report), End::AsExpected)
    }
}

/// With nothing measured yet.
fn report(arguments: &BenchArguments) -> Report {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let is_counting = Counter::new().is_counting();
    Report {
        format: FORMAT.into(),
        measured_at: now.map_or(0, |time| time.as_secs()),
        build: Build::here(),
        machine: Machine::here(),
        settings: Settings {
            seed: arguments.seed,
            tags: arguments.tags,
            only: arguments.only.clone(),
            seconds: arguments.seconds(),
            layout: "source-in-tag".into(),
        },
        instructions_counted: is_counting,
        instructions_refused: (!is_counting).then(|| REFUSED.into()),
        devices: Vec::new(),
        absent: Vec::new(),
        rows: Vec::new(),
        notes: Vec::new(),
    }
}

/// 0 to 1.
#[expect(clippy::cast_precision_loss, reason = "counts of one run are far below 2^53")]
fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// Seconds for all devices: less than two minutes with what is begun before and ends after.
const SECONDS: u64 = 80;
/// What is measured unless something is asked for, and for how many seconds at most; then soft RoCE in what is left.
const FIRST: [(Device, u64); 4] =
    [(Device::Soft, 12), (Device::Tcp, 18), (Device::Hca, 25), (Device::Verbs(None), 25)];
/// Seconds below which no machine with soft RoCE is worth starting.
const RXE_MIN: u64 = 45;
const REFUSED: &str = "this machine lets no process count them (perf_event_open refused)";
