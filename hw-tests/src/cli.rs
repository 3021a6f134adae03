//! The command line of the suite, with its output where the caller wants it.

use std::ffi::OsString;
use std::io::{self, Write};
use std::rc::Rc;
use std::time::Duration;

use crate::over::remote::{RemoteSenders, serve};
use crate::over::senders::LocalSenders;
use crate::over::{Senders, SoftOverVerbs};
use crate::port::TmDevice;
use crate::runner;
use crate::scripts;
use crate::soft_port::SoftTm;
use crate::suite::{Filter, Report, Summary, run_scripts};
use crate::verbs::{Choice, Device, device_names};
use crate::verbs_port::{Free, VerbsTm};
use crate::{data_path, probes};
use clap::{Parser, ValueEnum};
use tagmatch::device::verbs::SimulatedHca;

/// One suite for any verbs device: a ConnectX, the simulated HCA, soft-RoCE.
///
/// Checks cite the contract of TM-SRQ by number (TM-CONTRACT 6.1), probes its doubtful points (A1 to A19): both are in
/// docs/tm-srq.md.
///
/// Exit code: 0 if nothing failed and something passed; 1 if something failed, nothing passed, or the reader of the
/// output went away; 2 if nothing could be run.
#[derive(Debug, Parser)]
#[command(name = "tagmatch-hw-tests")]
struct Arguments {
    /// The device, by its verbs name; `soft` is the executable description. Without it, the first device.
    #[arg(long)]
    device: Option<String>,
    /// The port, from 1; without it the first.
    #[arg(long)]
    port: Option<u8>,
    /// The GID index; on RoCE the first usable one unless given.
    #[arg(long)]
    gid_index: Option<u8>,
    /// The executable description over the device, which then needs no tag matching: messages come from this other
    /// device, or from a program with --serve there (HOST:PORT).
    #[arg(long)]
    senders: Option<String>,
    /// The GID index of that other device.
    #[arg(long, requires = "senders")]
    senders_gid_index: Option<u8>,
    /// Be the senders of a program with --senders: listen there (HOST:PORT), and end with it.
    #[arg(long, conflicts_with_all = ["probe", "list", "json", "filter", "require", "senders"])]
    serve: Option<String>,
    /// Make it a failure to skip something.
    #[arg(long, value_enum)]
    require: Vec<Required>,
    /// Only checks whose names contain this; of probes, the one of exactly this name (--list has the names).
    #[arg(long, default_value = "")]
    filter: String,
    /// Without the checks that send more than 10,000 messages each.
    #[arg(long)]
    short: bool,
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
    /// How long nothing must come until nothing will, in milliseconds; without it 20.
    #[arg(long)]
    quiet: Option<u64>,
    /// Do by hand what hangs or aborts a driver: see docs/hw-tests.md. On a verbs device, and alone.
    #[arg(long, value_enum, conflicts_with_all = ["probe", "list", "json", "filter", "require"])]
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

/// Why the suite did not come to its end.
enum Stop {
    /// Nothing can be run: a text for the user.
    Unusable(String),
    /// Nobody reads any more.
    ReaderGone,
}

impl From<String> for Stop {
    fn from(what: String) -> Self {
        Self::Unusable(what)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::ReaderGone
        } else {
            Self::Unusable(format!("cannot write: {error}"))
        }
    }
}

/// Run with these arguments, the program's name first. The exit code: 0 if nothing failed and something passed, 1 if
/// something failed, nothing passed or nobody reads on, 2 if nothing could be run.
pub fn run<T: Into<OsString> + Clone>(
    arguments: impl IntoIterator<Item = T>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let ran = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => run_parsed(&arguments, out),
        Err(error) if !error.use_stderr() => write!(out, "{error}").map(|()| true).map_err(Stop::from),
        Err(error) => Err(Stop::Unusable(error.to_string())),
    };
    match ran {
        Ok(true) => 0,
        Ok(false) | Err(Stop::ReaderGone) => 1,
        Err(Stop::Unusable(what)) => {
            // Where complaints cannot be written, the exit code is all there is.
            let _ = writeln!(err, "tagmatch-hw-tests: {what}");
            2
        }
    }
}

fn run_parsed(arguments: &Arguments, out: &mut dyn Write) -> Result<bool, Stop> {
    if arguments.list {
        return Ok(list(out).map(|()| true)?);
    }
    if let Some(address) = &arguments.serve {
        serve(address, &mut LocalSenders::new(open(arguments)?))?;
        return Ok(true);
    }
    let filter = Filter {
        part: arguments.filter.clone(),
        require_tm: arguments.require.contains(&Required::Tm),
        short: arguments.short,
    };
    let mut summary = Summary::new(out, arguments.json);
    if arguments.device.as_deref() == Some("soft") {
        on_the_description(arguments, &filter, &mut summary)?;
    } else if let Some(senders) = &arguments.senders {
        on_the_description_over(senders, arguments, &filter, &mut summary)?;
    } else {
        on_a_device(arguments, &filter, &mut summary)?;
    }
    if summary.is_empty() {
        let kind = if arguments.probe { "probe is named" } else { "check has in its name" };
        summary.note("nothing to run", &format!("no {kind} {:?}; --list names them all", filter.part))?;
    }
    Ok(summary.finish()?)
}

/// The description has no port and no driver.
fn on_the_description<W: Write>(
    arguments: &Arguments,
    filter: &Filter,
    summary: &mut Summary<W>,
) -> Result<(), Stop> {
    let of_devices = [
        ("--by-hand", arguments.by_hand.is_some()),
        ("--port", arguments.port.is_some()),
        ("--gid-index", arguments.gid_index.is_some()),
        ("--senders", arguments.senders.is_some()),
        ("--quiet", arguments.quiet.is_some()),
    ];
    if let Some((option, _)) = of_devices.iter().find(|(_, is_given)| *is_given) {
        return Err(Stop::Unusable(format!(
            "{option} is for verbs devices, and soft is none: the description has no ports, no driver and no time"
        )));
    }
    let mut soft = SoftTm::default();
    summary.note("device", &soft.name())?;
    if arguments.probe {
        probes::run_all(&mut soft, filter, |report| summary.add(report))?;
    } else {
        run_scripts(&mut soft, filter, |report| summary.add(report))?;
    }
    Ok(())
}

/// The description, with real QPs between it and its senders.
fn on_the_description_over<W: Write>(
    senders: &str,
    arguments: &Arguments,
    filter: &Filter,
    summary: &mut Summary<W>,
) -> Result<(), Stop> {
    if arguments.probe || arguments.by_hand.is_some() {
        return Err(Stop::Unusable("--senders is for checks: probes ask cards".to_owned()));
    }
    let senders: Box<dyn Senders> = if senders.contains(':') {
        Box::new(RemoteSenders::connect(senders)?)
    } else {
        let (device, gid_index) = (Some(senders.to_owned()), arguments.senders_gid_index);
        Box::new(LocalSenders::new(Device::open(&Choice { device, gid_index, ..Choice::default() })?))
    };
    let mut over = SoftOverVerbs::new(open(arguments)?, senders);
    summary.note("device", &over.name())?;
    run_scripts(&mut over, filter, |report| summary.add(report))?;
    Ok(())
}

/// The device that was asked for.
fn open(arguments: &Arguments) -> Result<Rc<Device>, String> {
    let Arguments { device, port, gid_index, .. } = arguments;
    let choice = Choice { device: device.clone(), port: port.unwrap_or(1), gid_index: *gid_index };
    Device::open(&choice).map_err(|what| {
        format!(
            "{what}\nWithout a card: tagmatch hca -- tagmatch-hw-tests (a simulated one), or --device soft"
        )
    })
}

fn on_a_device<W: Write>(
    arguments: &Arguments,
    filter: &Filter,
    summary: &mut Summary<W>,
) -> Result<(), Stop> {
    let device = open(arguments)?;
    let quiet = Duration::from_millis(arguments.quiet.unwrap_or(QUIET));
    let free = || Box::new(Free { is_model: arguments.model, quiet });
    let mut verbs = VerbsTm::new(device.clone(), free(), quiet);
    summary.note("device", &verbs.name())?;
    if SimulatedHca::find().is_some() {
        summary.note("model", "this is the simulated HCA, not a card")?;
    }
    summary.note("abilities", &format!("{:?}", device.attributes().tm_caps))?;
    if arguments.by_hand == Some(ByHand::Deadlock) {
        let outcome = runner::run(&scripts::deadlock(), &mut verbs);
        return Err(Stop::Unusable(format!("the driver answered: {:?}", outcome.verdict)));
    }
    if arguments.probe {
        probes::run_all(&mut verbs, filter, |report| summary.add(report))?;
        return Ok(());
    }
    let mut drive = free();
    for check in data_path::checks().iter().filter(|check| filter.takes(check.name)) {
        let verdict = data_path::run(check, &device, drive.as_mut());
        let (name, source) = (check.name.to_owned(), check.source.to_owned());
        summary.add(&Report { name, source, verdict, reading: None, seen: Vec::new() })?;
    }
    run_scripts(&mut verbs, filter, |report| summary.add(report))?;
    Ok(())
}

fn list(out: &mut dyn Write) -> io::Result<()> {
    match device_names() {
        Ok(names) if !names.is_empty() => {
            for name in names {
                writeln!(out, "device {name}")?;
            }
        }
        Ok(_) => writeln!(out, "no verbs device")?,
        Err(what) => writeln!(out, "{what}")?,
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

/// Milliseconds.
const QUIET: u64 = 20;
