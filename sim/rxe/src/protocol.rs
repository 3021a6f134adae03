//! One run of machines from start to end: what they leave in their shares and on their consoles, and what that means.
//!
//! The exit status comes from inside, in a file; how the program that is the machine ends says nothing (QEMU ends with 0
//! after a panic). A machine that never reached its session is started once more. Not here: what a machine is.

use crate::failure::Failure;
use crate::place::RunDirectory;
use crate::relay::{Relay, Tail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// The command ended with this status.
    Ended(u8),
    /// The machine ended before the command did: a panic, or no power any more.
    Panicked,
    /// The machine never came up, twice.
    NoBoot,
    /// The machine came up, and its devices could not be made: what was said.
    NoDevices(String),
    /// The command did not end in its time.
    TimedOut,
}

impl Outcome {
    /// The exit status that says so.
    #[must_use]
    pub const fn code(&self) -> u8 {
        match self {
            Self::Ended(code) => *code,
            Self::Panicked => 70,
            Self::NoBoot => 71,
            Self::NoDevices(_) => 72,
            Self::TimedOut => 124,
        }
    }

    /// What is to be said of an end that is not the command's own.
    #[must_use]
    pub fn meaning(&self) -> Option<String> {
        Some(match self {
            Self::Ended(_) => return None,
            Self::Panicked => "the machine ended before the command did (exit 70)".into(),
            Self::NoBoot => "the machine did not come up, twice (exit 71)".into(),
            Self::NoDevices(said) => {
                format!("the machine came up, but its devices could not be made (exit 72):\n{said}")
            }
            Self::TimedOut => "the command did not end in its time, --timeout (exit 124)".into(),
        })
    }
}

/// How long to wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// For a session to begin.
    pub(crate) boot: Duration,
    /// From there: for the devices and the command.
    pub(crate) command: Duration,
    /// For the other machine's command, once one's has failed.
    pub(crate) grace: Duration,
}

/// What a machine is started with.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Its number, from 0.
    pub(crate) host: u32,
    /// The directory of the run.
    pub(crate) run: PathBuf,
    /// Its share, which it may write.
    pub(crate) share: PathBuf,
    /// The file that its console is written to.
    pub(crate) console: PathBuf,
}

impl Place {
    pub(crate) fn new(run: &RunDirectory, host: u32) -> Self {
        let run = run.path().to_owned();
        let (share, console) = (run.join(format!("host{host}")), run.join(format!("console{host}")));
        Self { host, run, share, console }
    }
}

/// Makes the program that is a machine, and what it needs in its share.
pub(crate) type Build<'a> = &'a dyn Fn(&Place) -> Result<Command, Failure>;

/// Run machines until their commands have ended.
pub(crate) fn attend(
    run: &mut RunDirectory,
    hosts: u32,
    limits: Limits,
    build: Build<'_>,
    relay: &mut dyn Relay,
) -> Result<Outcome, Failure> {
    for attempt in 0..2 {
        let mut machines = Vec::new();
        for host in 0..hosts {
            machines.push(Machine::start(run, host, build)?);
        }
        let outcome = Attendance { machines: &mut machines, limits }.outcome(relay)?;
        let is_last = attempt == 1 || outcome != Outcome::NoBoot;
        if !is_last {
            relay.note("the machine did not come up; once more");
            continue;
        }
        // A machine that never came up and panicked twice has a panic to look at.
        let panicked = outcome == Outcome::NoBoot && machines.iter().any(Machine::has_panicked);
        let outcome = if panicked { Outcome::Panicked } else { outcome };
        for machine in &machines {
            machine.show_console(&outcome, relay);
        }
        return Ok(outcome);
    }
    Ok(Outcome::NoBoot)
}

/// A machine that runs; killed when it is dropped.
#[derive(Debug)]
struct Machine {
    place: Place,
    child: Child,
    out: Tail,
    err: Tail,
    /// Since when its session runs, and how long its console was then.
    begun: Option<Instant>,
    console_before: usize,
    ended: Option<Instant>,
    status: Option<Status>,
}

/// What a machine said at its end.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Status {
    Code(u8),
    NoDevices,
    /// It is gone, and said nothing.
    Gone,
}

impl Machine {
    fn start(run: &mut RunDirectory, host: u32, build: Build<'_>) -> Result<Self, Failure> {
        let place = Place::new(run, host);
        if place.share.exists() {
            fs::remove_dir_all(&place.share).map_err(|error| Failure::file(&place.share, error))?;
        }
        for folder in ["in", "files"] {
            let folder = place.share.join(folder);
            fs::create_dir_all(&folder).map_err(|error| Failure::file(&folder, error))?;
        }
        let console = fs::File::create(&place.console);
        let console = console.map_err(|error| Failure::file(&place.console, error))?;
        let errors = console.try_clone().map_err(|error| Failure::file(&place.console, error))?;
        let mut command = build(&place)?;
        command.stdout(console).stderr(errors);
        let name = command.get_program().display().to_string();
        let child = run.start(&mut command).map_err(|error| Failure::system(name, error))?;
        let tail = |name: &str| Tail::new(place.share.join(name));
        let (out, err) = (tail("out"), tail("err"));
        Ok(Self { place, child, out, err, begun: None, console_before: 0, ended: None, status: None })
    }

    /// Look at what is new. Whether the machine has ended.
    fn look(&mut self, relay: &mut dyn Relay, is_one_of_several: bool) -> Result<bool, Failure> {
        if self.status.is_some() {
            return Ok(true);
        }
        // First the program, then the files: what it wrote before it ended is seen.
        let is_gone =
            self.child.try_wait().map_err(|error| Failure::system("waiting for a machine", error))?;
        if self.begun.is_none() && self.place.share.join("ready").exists() {
            self.begun = Some(Instant::now());
            self.console_before = self.console().lines().count();
        }
        self.status = match fs::read_to_string(self.place.share.join("rc")) {
            Ok(text) if text.trim() == "setup" => Some(Status::NoDevices),
            Ok(text) => text.trim().parse().ok().map(Status::Code),
            Err(_) if is_gone.is_some() => Some(Status::Gone),
            Err(_) => None,
        };
        let is_end = self.status.is_some();
        let prefix = is_one_of_several.then_some(self.place.host);
        // Not before the session is known to have begun: how long the console was then is counted first.
        if self.begun.is_some() || is_end {
            self.out.copy(is_end, &mut |bytes| relay.output(prefix, bytes));
            self.err.copy(is_end, &mut |bytes| relay.errors(prefix, bytes));
        }
        if is_end {
            self.ended = Some(Instant::now());
        }
        Ok(is_end)
    }

    fn console(&self) -> String {
        let bytes = fs::read(&self.place.console).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\r', "")
    }

    fn has_panicked(&self) -> bool {
        self.console().contains(PANIC)
    }

    /// The end of the console, if something is wrong; after a command that failed, what came since it began.
    fn show_console(&self, outcome: &Outcome, relay: &mut dyn Relay) {
        let from = match outcome {
            Outcome::Ended(0) => return,
            Outcome::Ended(_) => self.console_before,
            Outcome::Panicked | Outcome::NoBoot | Outcome::NoDevices(_) | Outcome::TimedOut => 0,
        };
        let console = self.console();
        let is_about_it =
            |line: &&str| !line.trim().is_empty() && !OF_THE_END.iter().any(|end| line.contains(end));
        let lines: Vec<&str> = console.lines().skip(from).filter(is_about_it).collect();
        if !lines.is_empty() {
            let last = &lines[lines.len().saturating_sub(CONSOLE_LINES)..];
            relay.note(&format!("the last lines of the console:\n  {}", last.join("\n  ")));
        }
    }

    fn setup_log(&self) -> String {
        fs::read_to_string(self.place.share.join("setup.log")).unwrap_or_default().trim().to_owned()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Its process group, if there is more than this, is the watcher's.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waiting for machines.
#[derive(Debug)]
struct Attendance<'a> {
    machines: &'a mut [Machine],
    limits: Limits,
}

impl Attendance<'_> {
    fn outcome(&mut self, relay: &mut dyn Relay) -> Result<Outcome, Failure> {
        let start = Instant::now();
        let is_one_of_several = self.machines.len() > 1;
        loop {
            let mut all = true;
            for machine in self.machines.iter_mut() {
                all &= machine.look(relay, is_one_of_several)?;
            }
            if let Some(outcome) = self.end(all, start, relay) {
                return Ok(outcome);
            }
            thread::park_timeout(STEP);
        }
    }

    /// What follows from what the machines have said, if that is enough.
    fn end(&self, all: bool, start: Instant, relay: &mut dyn Relay) -> Option<Outcome> {
        for machine in self.machines.iter() {
            match machine.status {
                Some(Status::NoDevices) => return Some(Outcome::NoDevices(machine.setup_log())),
                Some(Status::Gone) if machine.begun.is_none() => return Some(Outcome::NoBoot),
                Some(Status::Gone) => return Some(Outcome::Panicked),
                Some(Status::Code(_)) | None => {}
            }
        }
        let failed = self.machines.iter().find_map(|machine| match machine.status {
            Some(Status::Code(code)) if code != 0 => Some((machine, code)),
            _ => None,
        });
        if all {
            return Some(Outcome::Ended(failed.map_or(0, |(_, code)| code)));
        }
        if let Some((machine, code)) = failed
            && machine.ended.is_some_and(|ended| ended.elapsed() >= self.limits.grace)
        {
            let host = machine.place.host;
            relay.note(&format!("machine {host} ended with {code}; the other one is ended too"));
            return Some(Outcome::Ended(code));
        }
        match self.machines.iter().map(|machine| machine.begun).collect::<Option<Vec<_>>>() {
            None => (start.elapsed() >= self.limits.boot).then_some(Outcome::NoBoot),
            Some(begun) => {
                let is_over = begun.iter().all(|begun| begun.elapsed() >= self.limits.command);
                is_over.then_some(Outcome::TimedOut)
            }
        }
    }
}

/// The files that a machine left in its share, brought to their places.
pub(crate) fn bring_out(
    place: &Place,
    files: &[(usize, &Path)],
    relay: &mut dyn Relay,
) -> Result<(), Failure> {
    for (number, to) in files {
        let from = place.share.join(format!("files/{number}"));
        if from.exists() {
            copy(&from, to).map_err(|error| Failure::file(to, error))?;
        } else {
            relay.note(&format!("the command has not written what belongs to {}", to.display()));
        }
    }
    Ok(())
}

/// A file, or a directory with all that is in it.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    if !from.is_dir() {
        return fs::copy(from, to).map(drop);
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// What the kernel says.
const PANIC: &str = "Kernel panic";
/// What it says whenever a session ends.
const OF_THE_END: [&str; 2] = ["sysrq: Power Off", "reboot: Power down"];
const CONSOLE_LINES: usize = 50;
/// How often files are looked at.
const STEP: Duration = Duration::from_millis(30);

#[cfg(test)]
mod tests;
