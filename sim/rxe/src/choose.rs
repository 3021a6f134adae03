//! Which way a command is run, and why.

use crate::Options;
use crate::cache::Cache;
use crate::failure::{Failure, names};
use crate::kernel;
use crate::native::{self, Device};
use crate::protocol::Place;
use crate::qemu::{self, Qemu};
use crate::relay::Relay;
use crate::tools;
use crate::uml::{self, Uml};
use std::fs;
use std::path::Path;
use std::process::Command;

/// A way to get devices.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub enum Backend {
    /// The first of the others that works here.
    #[default]
    Auto,
    /// The devices of this machine.
    Native,
    /// A machine emulated by QEMU, with Debian's kernel.
    Qemu,
    /// A Linux that is a process, built from Debian's source.
    Uml,
}

/// What was chosen, made ready.
#[derive(Debug)]
pub(crate) enum Chosen {
    Native(Vec<Device>),
    Qemu(Qemu),
    Uml(Uml),
}

impl Chosen {
    /// The program that is a machine.
    pub(crate) fn command(&self, options: &Options, place: &Place) -> Result<Command, Failure> {
        match self {
            Self::Native(_) => Err(Failure::Refused("the devices of this machine need no other one".into())),
            Self::Qemu(machine) => machine.command(options, place),
            Self::Uml(machine) => machine.command(options, place),
        }
    }
}

/// Choose, say so, and make ready what is needed.
pub(crate) fn choose(options: &Options, cache: &Cache, relay: &mut dyn Relay) -> Result<Chosen, Failure> {
    let devices = native::devices(Path::new("/sys"));
    match options.backend {
        Backend::Native => own(options, devices, relay),
        Backend::Qemu => emulated(options, cache, "", relay),
        Backend::Uml => process(options, cache, "", relay),
        Backend::Auto if !devices.is_empty() && elsewhere(options).is_none() => own(options, devices, relay),
        Backend::Auto => {
            let why = reason(&devices, options);
            let failure = match emulated(options, cache, &why, relay) {
                Ok(chosen) => return Ok(chosen),
                Err(failure) => failure,
            };
            let why = format!("{why}; {failure}");
            process(options, cache, &why, relay)
                .map_err(|other| Failure::NothingWorks([why, failure.to_string(), other.to_string()].into()))
        }
    }
}

/// The devices of this machine.
fn own(options: &Options, devices: Vec<Device>, relay: &mut dyn Relay) -> Result<Chosen, Failure> {
    if let Some(why) = elsewhere(options) {
        return Err(Failure::Refused(format!("{why} is not to be had on the devices of this machine")));
    }
    if devices.is_empty() {
        return Err(Failure::Refused(NO_DEVICE.into()));
    }
    let names: Vec<&str> = devices.iter().map(|device| device.name.as_str()).collect();
    relay.note(&format!("native: this machine has {}", names.join(", ")));
    Ok(Chosen::Native(devices))
}

fn emulated(options: &Options, cache: &Cache, why: &str, relay: &mut dyn Relay) -> Result<Chosen, Failure> {
    ready("qemu", &qemu::lacks, options, relay)?;
    let kernel = kernel::stock(cache, options.install, relay)?;
    let name = format!("qemu: an emulated machine with {}", kernel.name);
    let machine = Qemu::new(kernel)?;
    say(&name, why, relay);
    Ok(Chosen::Qemu(machine))
}

fn process(options: &Options, cache: &Cache, why: &str, relay: &mut dyn Relay) -> Result<Chosen, Failure> {
    ready("uml", &Vec::new, options, relay)?;
    let machine = Uml::built(cache).ok_or_else(|| {
        Failure::Refused(
            "uml: no kernel was built yet; `tagmatch rxe --backend uml --build` builds one".into(),
        )
    })?;
    say(&format!("uml: {}", machine.name), why, relay);
    Ok(Chosen::Uml(machine))
}

fn say(what: &str, why: &str, relay: &mut dyn Relay) {
    if why.is_empty() { relay.note(what) } else { relay.note(&format!("{what} ({why})")) }
}

/// Make what is kept for runs to come: without a way named, for the emulated machine.
pub(crate) fn build(options: &Options, cache: &Cache, relay: &mut dyn Relay) -> Result<(), Failure> {
    match options.backend {
        Backend::Native => {
            Err(Failure::Refused("there is nothing to make for devices of this machine".into()))
        }
        Backend::Auto | Backend::Qemu => {
            ready("qemu", &qemu::lacks, options, relay)?;
            let kernel = kernel::stock(cache, options.install, relay)?;
            relay.note(&format!("{} is ready", kernel.name));
            Ok(())
        }
        Backend::Uml => {
            ready("uml", &uml::lacks, options, relay)?;
            Uml::build(cache, options.smp, relay)?;
            let name = Uml::built(cache).map(|machine| machine.name).unwrap_or_default();
            relay.note(&format!("{name} is ready"));
            Ok(())
        }
    }
}

/// What is missing for a command to be run at once, with nothing made or downloaded before.
pub(crate) fn at_once(cache: &Cache) -> Result<(), Failure> {
    if !native::devices(Path::new("/sys")).is_empty() {
        return Ok(());
    }
    let packages: Vec<_> = qemu::lacks().into_iter().chain(inside_lacks()).collect();
    if !packages.is_empty() {
        return Err(Failure::Missing { backend: "qemu", packages });
    }
    if kernel::is_kept(cache) { Ok(()) } else { Err(Failure::Refused(NO_KERNEL.into())) }
}

/// What of the options needs a machine of its own.
fn elsewhere(options: &Options) -> Option<&'static str> {
    if options.hosts > 1 {
        Some("--hosts 2")
    } else if options.netem.is_some() {
        Some("--netem")
    } else if options.mtu != crate::MTU {
        Some("--mtu")
    } else if !options.files_in.is_empty() {
        Some("--in")
    } else {
        None
    }
}

/// Why not the devices of this machine.
fn reason(devices: &[Device], options: &Options) -> String {
    match elsewhere(options) {
        Some(option) if !devices.is_empty() => {
            format!("{option} is not to be had on the devices of this machine")
        }
        _ => NO_DEVICE.into(),
    }
}

/// All that is needed is there, or is installed, or is named.
fn ready(
    backend: &'static str,
    lacks: &dyn Fn() -> Vec<(String, &'static str)>,
    options: &Options,
    relay: &mut dyn Relay,
) -> Result<(), Failure> {
    let missing = || lacks().into_iter().chain(inside_lacks()).collect::<Vec<_>>();
    let mut packages = missing();
    if options.install && !packages.is_empty() {
        relay.note(&format!("installing {}", names(&packages).join(", ")));
        tools::install(&packages)?;
        packages = missing();
    }
    if packages.is_empty() { Ok(()) } else { Err(Failure::Missing { backend, packages }) }
}

/// What is used inside comes from the root of this machine.
fn inside_lacks() -> Vec<(String, &'static str)> {
    let mut missing = tools::missing(&[("rdma", "iproute2"), ("tc", "iproute2"), ("setpriv", "util-linux")]);
    if !has_driver(Path::new("/usr/lib")) {
        missing.push(("the verbs driver of rxe".into(), "ibverbs-providers"));
    }
    missing
}

/// Whether librxe is where libibverbs looks for drivers: libibverbs/ in a directory of libraries.
fn has_driver(libraries: &Path) -> bool {
    let has = |folder: &Path| {
        let entries = fs::read_dir(folder.join("libibverbs")).into_iter().flatten().filter_map(Result::ok);
        entries.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().starts_with("librxe-"))
    };
    let below = fs::read_dir(libraries).into_iter().flatten().filter_map(Result::ok);
    has(libraries) || below.map(|entry| entry.path()).any(|folder| has(&folder))
}

const NO_DEVICE: &str = "this machine has no RDMA device whose port is up";
const NO_KERNEL: &str = "no kernel for emulated machines was made yet; `tagmatch rxe --build` makes one";
