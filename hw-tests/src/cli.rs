//! The command line of the suite, with its output where the caller wants it.

use std::ffi::OsString;
use std::io::{self, Write};
use std::time::Duration;

use crate::port::TmDevice;
use crate::runner;
use crate::scripts;
use crate::soft_port::SoftTm;
use crate::suite::{Filter, Report, Summary, run_scripts};
use crate::verbs::{Choice, Device, device_names};
use crate::verbs_port::{Free, VerbsTm};
use crate::{data_path, probes};
use clap::{Parser, ValueEnum};

/// One suite for any verbs device: a ConnectX, the simulated HCA, soft-RoCE.
///
/// Exit code: 0 if nothing failed, 1 if something did, 2 if nothing could be run.
#[derive(Debug, Parser)]
#[command(name = "tagmatch-hw-tests")]
struct Arguments {
    /// The device, by its verbs name; `soft` is the executable description. Without it, the first device.
    #[arg(long)]
    device: Option<String>,
    /// The port, from 1.
    #[arg(long, default_value_t = 1)]
    port: u8,
    /// The GID index; on RoCE the first usable one unless given.
    #[arg(long)]
    gid_index: Option<u8>,
    /// Make it a failure to skip something.
    #[arg(long, value_enum)]
    require: Vec<Required>,
    /// Only checks whose names contain this.
    #[arg(long, default_value = "")]
    filter: String,
    /// List devices, checks and probes, and run nothing.
    #[arg(long)]
    list: bool,
    /// Ask the device what the contract leaves open (A1 to A19), instead of the checks.
    #[arg(long)]
    probe: bool,
    /// A JSON object a line.
    #[arg(long)]
    json: bool,
    /// The device is a model that reads the doubtful points as the contract assumes: run those checks too.
    #[arg(long)]
    model: bool,
    /// How long nothing must come until nothing will, in milliseconds.
    #[arg(long, default_value_t = 20)]
    quiet: u64,
    /// Do by hand what hangs or aborts a driver: see docs/hw-tests.md.
    #[arg(long, value_enum)]
    by_hand: Option<ByHand>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Required {
    /// Tag matching.
    Tm,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum ByHand {
    /// Post a list operation inside a poll while the command queue is full (TM-CONTRACT 6.2).
    Deadlock,
}

/// Run with these arguments, the program's name first. The exit code: 0 if nothing failed, 1 if something did, 2 if
/// nothing could be run.
pub fn run<T: Into<OsString> + Clone>(
    arguments: impl IntoIterator<Item = T>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let ran = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => run_parsed(&arguments, out),
        Err(error) if !error.use_stderr() => {
            write!(out, "{error}").map(|()| true).map_err(|it| it.to_string())
        }
        Err(error) => Err(error.to_string()),
    };
    match ran {
        Ok(true) => 0,
        Ok(false) => 1,
        Err(what) => {
            // Where complaints cannot be written, the exit code is all there is.
            let _ = writeln!(err, "tagmatch-hw-tests: {what}");
            2
        }
    }
}

fn run_parsed(arguments: &Arguments, out: &mut dyn Write) -> Result<bool, String> {
    let written = |error: io::Error| format!("cannot write: {error}");
    if arguments.list {
        return list(out).map(|()| true).map_err(written);
    }
    let filter =
        Filter { part: arguments.filter.clone(), require_tm: arguments.require.contains(&Required::Tm) };
    let mut summary = Summary::new(out, arguments.json);
    if arguments.device.as_deref() == Some("soft") {
        let mut soft = SoftTm::default();
        summary.note("device", &soft.name()).map_err(written)?;
        if arguments.probe {
            probes::run_all(&mut soft, &filter, |report| summary.add(report)).map_err(written)?;
        } else {
            run_scripts(&mut soft, &filter, |report| summary.add(report)).map_err(written)?;
        }
        return summary.finish().map_err(written);
    }
    let choice =
        Choice { device: arguments.device.clone(), port: arguments.port, gid_index: arguments.gid_index };
    let device = Device::open(&choice)?;
    let quiet = Duration::from_millis(arguments.quiet);
    let free = || Box::new(Free { is_model: arguments.model, quiet });
    let mut verbs = VerbsTm::new(device.clone(), free(), quiet);
    summary.note("device", &verbs.name()).map_err(written)?;
    summary.note("abilities", &format!("{:?}", device.attributes().tm_caps)).map_err(written)?;
    if arguments.by_hand == Some(ByHand::Deadlock) {
        let outcome = runner::run(&scripts::deadlock(), &mut verbs);
        return Err(format!("the driver answered: {:?}", outcome.verdict));
    }
    if arguments.probe {
        probes::run_all(&mut verbs, &filter, |report| summary.add(report)).map_err(written)?;
        return summary.finish().map_err(written);
    }
    let mut drive = free();
    for check in data_path::checks().iter().filter(|check| filter.takes(check.name)) {
        let verdict = data_path::run(check, &device, drive.as_mut());
        let (name, source) = (check.name.to_owned(), check.source.to_owned());
        summary.add(&Report { name, source, verdict, reading: None, seen: Vec::new() }).map_err(written)?;
    }
    run_scripts(&mut verbs, &filter, |report| summary.add(report)).map_err(written)?;
    summary.finish().map_err(written)
}

fn list(out: &mut dyn Write) -> io::Result<()> {
    match device_names() {
        Ok(names) if !names.is_empty() => {
            for name in names {
                writeln!(out, "device {name}")?;
            }
        }
        Ok(_) => writeln!(out, "no verbs device")?,
        Err(what) => writeln!(out, "no verbs device: {what}")?,
    }
    writeln!(out, "device soft")?;
    for check in data_path::checks() {
        writeln!(out, "check {} ({})", check.name, check.source)?;
    }
    for script in scripts::all() {
        writeln!(out, "check {} (TM-CONTRACT {})", script.name, script.contract)?;
    }
    for probe in probes::all() {
        writeln!(out, "probe {}: {}", probe.point, probe.question)?;
    }
    Ok(())
}
