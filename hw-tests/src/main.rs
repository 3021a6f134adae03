//! The suite as a program: asks what a device can do, runs what fits, and counts.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use tagmatch_hw_tests::port::TmDevice;
use tagmatch_hw_tests::runner;
use tagmatch_hw_tests::scripts;
use tagmatch_hw_tests::soft_port::SoftTm;
use tagmatch_hw_tests::suite::{Filter, Report, Summary, run_scripts};
use tagmatch_hw_tests::verbs::{Choice, Device, device_names};
use tagmatch_hw_tests::verbs_port::{Free, VerbsTm};
use tagmatch_hw_tests::{data_path, probes};

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

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(what) => {
            eprintln!("tagmatch-hw-tests: {what}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<bool, String> {
    if arguments.list {
        list();
        return Ok(true);
    }
    let written = |error: io::Error| format!("cannot write: {error}");
    let filter =
        Filter { part: arguments.filter.clone(), require_tm: arguments.require.contains(&Required::Tm) };
    let mut summary = Summary::new(io::stdout().lock(), arguments.json);
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
        summary.add(&Report { name, source, verdict, seen: Vec::new() }).map_err(written)?;
    }
    run_scripts(&mut verbs, &filter, |report| summary.add(report)).map_err(written)?;
    summary.finish().map_err(written)
}

fn list() {
    match device_names() {
        Ok(names) if !names.is_empty() => names.iter().for_each(|name| println!("device {name}")),
        Ok(_) => println!("no verbs device"),
        Err(what) => println!("no verbs device: {what}"),
    }
    println!("device soft");
    data_path::checks().iter().for_each(|check| println!("check {} ({})", check.name, check.source));
    scripts::all()
        .iter()
        .for_each(|script| println!("check {} (TM-CONTRACT {})", script.name, script.contract));
    probes::all().iter().for_each(|probe| println!("probe {}: {}", probe.point, probe.question));
}
