//! Devices that need a process of their own: the simulated card, which is preloaded under it, and soft RoCE, which is in
//! another machine. This program is run there once more, and writes what it measured into a file.

use super::arguments::{BenchArguments, Subject};
use super::ends::Port;
use super::one::Trouble;
use super::report::Measured;
use crate::hca;
use crate::output::spinner;
use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tagmatch_rxe::{Moved, Options, Outcome, Relay};

/// What a process writes of its device.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Part {
    Measured(Box<Measured>),
    Trouble(Trouble),
}

/// On a simulated card.
pub(super) fn on_card(arguments: &BenchArguments, seconds: Option<u64>) -> Result<Measured, Trouble> {
    let file = File::new()?;
    let line = line(arguments, &Subject::Hca, seconds, &file.0);
    // Cards have lists for all that is measured.
    let status = hca::run_driven(&line, arguments.tags.max(LIST_MAX));
    let status = status.map_err(|what| Trouble::Absent(format!("{what}\n{CARD}")))?;
    file.read(&format!("the process on the simulated card ended with {status}"))
}

/// Whether soft RoCE is to be had without anything being made first.
pub(super) fn soft_roce_at_once() -> Result<(), Trouble> {
    tagmatch_rxe::at_once(&Options::new(Vec::new())).map_err(|failure| Trouble::Absent(failure.to_string()))
}

/// Over soft RoCE.
pub(super) fn in_rxe(arguments: &BenchArguments, seconds: Option<u64>) -> Result<Measured, Trouble> {
    let file = File::new()?;
    let mut options = Options::new(Vec::new());
    // One half of the time is for the machine to come up, the other for what is measured.
    let half = seconds.map(|seconds| seconds / 2);
    let inside = half.map(|half| half.saturating_sub(DEVICES));
    let program =
        env::current_exe().map_err(|error| Trouble::Absent(format!("this program is nowhere: {error}")))?;
    options.command = [program.into_os_string()].into();
    options.command.extend(line(arguments, &Subject::Rxe, inside, &file.0));
    options.files_out = vec![Moved { outside: file.0.clone(), inside: file.0.clone() }];
    if let Some(half) = half {
        options.boot_timeout = Duration::from_secs(half);
        options.timeout = Duration::from_secs(half + DEVICES);
    }
    let mut telling = Telling { bar: spinner(), said: String::new(), notes: Vec::new() };
    telling.bar.set_message("rxe: a machine is made ready");
    let outcome = tagmatch_rxe::run(&options, &mut telling);
    telling.bar.finish_and_clear();
    let how = match outcome {
        Ok(Outcome::Ended(0)) => String::new(),
        Ok(outcome) => {
            let what = outcome.meaning().unwrap_or_else(|| format!("it ended with {}", outcome.code()));
            format!("{what}\n{}", telling.said)
        }
        Err(failure) => return Err(Trouble::Absent(failure.to_string())),
    };
    let mut measured = file.read(how.trim_end())?;
    measured.notes.extend(telling.notes.into_iter().map(|note| format!("Where it ran: {note}.")));
    Ok(measured)
}

/// The two devices that `tagmatch rxe` told this process of: the receiver's, the sender's.
pub(super) fn soft_roce() -> Result<(Port, Port), String> {
    let read = |name: &str| env::var(name).map_err(|_| format!("{name} does not say what there is"));
    let (devices, addresses) = (read("TAGMATCH_RXE_DEVICES")?, read("TAGMATCH_RXE_ADDRESSES")?);
    let port = |(device, address): (&str, &str)| {
        let address = address.parse().map_err(|error| format!("{address}: {error}"))?;
        Ok::<_, String>(Port { device: Some(device.to_owned()), address: Some(address) })
    };
    let mut ports = devices.split(' ').zip(addresses.split(' ')).map(port);
    let first = ports.next().unwrap_or_else(|| Err("there is no device".into()))?;
    let second = ports.next().unwrap_or_else(|| Ok(first.clone()))?;
    Ok((first, second))
}

/// This program's arguments in the other process.
fn line(arguments: &BenchArguments, device: &Subject, seconds: Option<u64>, file: &Path) -> Vec<OsString> {
    let mut words = vec!["bench".to_owned(), format!("--device={}", device.name())];
    words.push(format!("--tags={}", arguments.tags));
    words.push(format!("--seed={}", arguments.seed));
    words.extend(seconds.map(|seconds| format!("--seconds={}", seconds.max(1))));
    words.extend(arguments.only.iter().map(|only| format!("--only={only}")));
    // Mixes are for those who ask for a device.
    words.extend(arguments.devices.is_empty().then(|| "--no-mixes".to_owned()));
    let mut part = OsString::from("--part=");
    part.push(file);
    words.into_iter().map(OsString::from).chain([part]).collect()
}

/// A file of this process's own, removed at the end.
struct File(PathBuf);

impl File {
    fn new() -> Result<Self, Trouble> {
        let name = format!("tagmatch-bench-{}.json", std::process::id());
        let path = std::path::absolute(env::temp_dir().join(name));
        path.map(Self).map_err(|error| Trouble::Absent(error.to_string()))
    }

    /// What the other process wrote; or, if nothing, how it ended.
    fn read(&self, how: &str) -> Result<Measured, Trouble> {
        let text = fs::read_to_string(&self.0).map_err(|_| Trouble::Absent(how.to_owned()))?;
        match serde_json::from_str(&text) {
            Ok(Part::Measured(measured)) => Ok(*measured),
            Ok(Part::Trouble(trouble)) => Err(trouble),
            Err(error) => Err(Trouble::Absent(format!("what it wrote cannot be read: {error}; {how}"))),
        }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // It is not there if the process wrote nothing.
        let _ = fs::remove_file(&self.0);
    }
}

/// Shows what is done, and keeps what is said.
struct Telling {
    bar: ProgressBar,
    said: String,
    notes: Vec<String>,
}

impl Relay for Telling {
    fn output(&mut self, _: Option<u32>, bytes: &[u8]) {
        self.said += &String::from_utf8_lossy(bytes);
    }

    fn errors(&mut self, host: Option<u32>, bytes: &[u8]) {
        self.output(host, bytes);
    }

    fn note(&mut self, text: &str) {
        self.bar.set_message(format!("rxe: {}", crate::output::harmless(text)));
        self.notes.push(text.to_owned());
    }

    fn progress(&mut self, what: &str, _: u64, _: u64) {
        self.bar.set_message(format!("rxe: {}", crate::output::harmless(what)));
    }
}

/// The longest list that is measured unless a longer one is asked for.
const LIST_MAX: u32 = 4096;
/// Seconds in which a machine makes its devices, and in which what was begun ends.
const DEVICES: u64 = 15;
const CARD: &str = "The simulated card needs libibverbs with the driver of mlx5: apt-get install ibverbs-providers; and \
                    its library: cargo build --release -p tagmatch-hca";
