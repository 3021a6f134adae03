//! Runs a command in a Linux that has real soft-RoCE devices (rxe), whatever the kernel of this machine has: real RC queue
//! pairs, real SRQs, real packets.
//!
//! Three ways to get one: the devices that are there already (native), a machine emulated by QEMU with Debian's kernel
//! (qemu), a Linux that is a process, built from Debian's source (uml). Inside, the root of this machine is the root,
//! read-only below a file system in memory; [`run`] does one command and leaves nothing behind.
//!
//! In order of the data: [`Options`] → `choose` (which way, and why) → `kernel` (what is made once, in `cache`) →
//! `guest` (the script that runs inside) → `qemu`, `uml`, `native` (the program that is the machine) → `protocol` (what became
//! of it), in a directory of `place`. How to use it: docs/rxe.md. It knows nothing of the rest of this project.

#![forbid(unsafe_code)]

mod cache;
mod choose;
mod cpio;
mod failure;
mod guest;
mod kernel;
mod modules;
mod native;
mod place;
mod protocol;
mod qemu;
mod quote;
mod relay;
mod tools;
mod uml;

pub use choose::Backend;
pub use failure::Failure;
pub use protocol::Outcome;
pub use relay::{Relay, Said, Streams, Transcript};

use cache::Cache;
use choose::Chosen;
use place::RunDirectory;
use protocol::{Limits, Place};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// What is to be run, and in what.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which way.
    pub backend: Backend,
    /// How many machines, 1 or 2. One has two devices on a virtual cable, two have one each on a wire between them.
    pub hosts: u32,
    /// What is done to packets on their way, in words of tc-netem(8).
    pub netem: Option<String>,
    /// The MTU of the interfaces, in bytes.
    pub mtu: u32,
    /// How many processors a machine has.
    pub smp: u32,
    /// How much memory a machine has, in MiB.
    pub memory: u32,
    /// How long the command may take.
    pub timeout: Duration,
    /// How long a machine may take to come up.
    pub boot_timeout: Duration,
    /// Where kernels are kept, if not in the user's directory of such things.
    pub cache: Option<PathBuf>,
    /// Files that are to be at other places inside.
    pub files_in: Vec<Moved>,
    /// Files that the command writes and that are wanted outside.
    pub files_out: Vec<Moved>,
    /// Install what is missing.
    pub install: bool,
    /// The directory in which the command runs.
    pub directory: PathBuf,
    /// The command and its arguments.
    pub command: Vec<OsString>,
}

impl Options {
    /// A command in this process's directory, on one machine, the first way that works; generous limits.
    #[must_use]
    pub fn new(command: Vec<OsString>) -> Self {
        Self {
            backend: Backend::Auto,
            hosts: 1,
            netem: None,
            mtu: MTU,
            smp: 2,
            memory: 1024,
            timeout: Duration::from_secs(600),
            boot_timeout: Duration::from_secs(300),
            cache: None,
            files_in: Vec::new(),
            files_out: Vec::new(),
            install: false,
            directory: std::env::current_dir().unwrap_or_else(|_| "/".into()),
            command,
        }
    }
}

/// A file with two absolute places.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Moved {
    /// Its place on this machine.
    pub outside: PathBuf,
    /// Its place as the command sees it.
    pub inside: PathBuf,
}

/// Run the command.
///
/// # Errors
/// It was not run: see [`Failure`]. How it ended, and how a machine failed, is an [`Outcome`].
pub fn run(options: &Options, relay: &mut dyn Relay) -> Result<Outcome, Failure> {
    let cache = Cache::new(options.cache.as_deref())?;
    let chosen = choose::choose(options, &cache, relay)?;
    let mut run = RunDirectory::new()?;
    let limits = Limits { boot: options.boot_timeout, command: options.timeout, grace: GRACE };
    if let Chosen::Native(devices) = &chosen {
        return native::run(options, devices, &mut run, relay);
    }
    let build = |place: &Place| {
        copy_in(options, place)?;
        chosen.command(options, place)
    };
    let outcome = protocol::attend(&mut run, options.hosts, limits, &build, relay)?;
    if matches!(outcome, Outcome::Ended(_)) {
        let files: Vec<_> = options.files_out.iter().map(|file| file.outside.as_path()).enumerate().collect();
        for host in 0..options.hosts {
            protocol::bring_out(&Place::new(&run, host), &files, relay)?;
        }
    }
    Ok(outcome)
}

/// Whether a command could be run at once: there are devices, or all that an emulated machine needs, its kernel made
/// already.
///
/// # Errors
/// What is missing for it.
pub fn at_once(options: &Options) -> Result<(), Failure> {
    choose::at_once(&Cache::new(options.cache.as_deref())?)
}

/// Make what is kept for runs to come: the kernel of the way that is asked for.
///
/// # Errors
/// It could not be made.
pub fn build(options: &Options, relay: &mut dyn Relay) -> Result<(), Failure> {
    let cache = Cache::new(options.cache.as_deref())?;
    choose::build(options, &cache, relay)
}

/// The files for the inside, into the share.
fn copy_in(options: &Options, place: &Place) -> Result<(), Failure> {
    for (number, file) in options.files_in.iter().enumerate() {
        let to = place.share.join(format!("in/{number}"));
        std::fs::copy(&file.outside, to).map_err(|error| Failure::file(&file.outside, error))?;
    }
    Ok(())
}

/// How long the other machine's command may go on once one's has failed.
const GRACE: Duration = Duration::from_secs(10);
/// The MTU of Ethernet.
pub const MTU: u32 = 1500;

#[cfg(test)]
mod tests;
