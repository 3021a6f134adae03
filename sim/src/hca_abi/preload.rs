//! The form that is preloaded under any program: what happens when the library is loaded, and what it exports.
//!
//! A process that never opens the device pays for one look into the run directory. The device is made at its first
//! opening, and driven by a thread unless the options say otherwise.

use super::control::{at_exit, set_path, sysfs_device};
use super::device::{Device, Drive};
use super::fabric::Fabric;
use super::options::Options;
use super::sysfs::{Sysfs, fresh_directory};
use super::{drive, lazy, registry};
use core::ffi::{c_int, c_uint};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// To be called when the library is loaded.
///
/// The run directory is `TAGMATCH_HCA_RUN`, which `tagmatch hca` sets and which makes one fabric of all programs that
/// it starts. Without it the process is alone on a directory of its own.
pub extern "C" fn load() {
    lazy::set(make);
    if let Err(error) = prepare() {
        eprintln!("tagmatch-hca: the simulated device cannot be set up: {error}");
        std::process::exit(CODE_NO_DEVICE);
    }
}

fn prepare() -> io::Result<()> {
    let options = Options::from_environment().map_err(io::Error::other)?;
    let run = match std::env::var_os(RUN) {
        Some(run) => PathBuf::from(run),
        None => private_run()?,
    };
    let tree = run.join(TREE);
    if !tree.exists() {
        publish(&run, &tree, &options)?;
    }
    set_path(&tree);
    Ok(())
}

/// Write the tree aside and put it in place: of several processes that come at once the first one's stays.
fn publish(run: &Path, tree: &Path, options: &Options) -> io::Result<()> {
    let written = Sysfs::new(run)?;
    written.add(&sysfs_device(0, &options.config(0)))?;
    match fs::rename(written.root(), tree) {
        Ok(()) => Ok(()),
        // Not empty: another process was faster.
        Err(_) if tree.exists() => Ok(()),
        Err(error) => Err(error),
    }
}

/// A run directory of this process's own, and of those that it starts.
fn private_run() -> io::Result<PathBuf> {
    let run = fresh_directory(&std::env::temp_dir(), "tagmatch-hca-own")?;
    // SAFETY: the library is being loaded; no other thread is there yet.
    unsafe { std::env::set_var(RUN, &run) };
    *OWN.lock().unwrap_or_else(PoisonError::into_inner) = Some((std::process::id(), run.clone()));
    at_exit(remove_own);
    Ok(run)
}

extern "C" fn remove_own() {
    let own = OWN.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some((process, run)) = own
        && process == std::process::id()
    {
        // Nobody is left who could be told.
        let _ = fs::remove_dir_all(run);
    }
}

/// The device, at its first opening.
fn make(index: u32) -> Option<Arc<Device>> {
    if index != 0 {
        return None;
    }
    let made = make_device();
    if let Err(error) = &made {
        eprintln!("tagmatch-hca: the simulated device cannot be opened: {error}");
    }
    made.ok()
}

fn make_device() -> io::Result<Arc<Device>> {
    let options = Options::from_environment().map_err(io::Error::other)?;
    let run = std::env::var_os(RUN).ok_or_else(|| io::Error::other("there is no run directory"))?;
    let fabric = Fabric::join(Path::new(&run))?;
    let config = options.config(fabric.process());
    // Early enough: before whatever the program has registered until now.
    at_exit(drive::stop_all_at_exit);
    Ok(Device::new(0, config, options.drive, Some(fabric)))
}

/// Number of steps that are possible now; for a program that drives the device itself (`drive=steps`).
#[must_use]
pub fn steps() -> c_uint {
    let counts = registry::devices();
    let counts = counts.iter().map(|device| {
        let mut state = device.lock();
        state.receive();
        state.hca.steps().len()
    });
    c_uint::try_from(counts.sum::<usize>()).unwrap_or(c_uint::MAX)
}

/// Do the step of this place in the list of those that are possible now: 1 if it was done, 0 if there is none.
#[must_use]
pub fn step(place: c_uint) -> c_int {
    let mut place = usize::try_from(place).unwrap_or(usize::MAX);
    for device in registry::devices() {
        let mut state = device.lock();
        state.receive();
        let steps = state.hca.steps();
        if let Some(step) = steps.get(place) {
            let done = state.hca.step(*step);
            state.pump();
            return done.into();
        }
        place -= steps.len();
    }
    0
}

/// Do steps until none but timers is possible, at most `limit`: how many were done.
#[must_use]
pub fn run(limit: c_uint) -> c_uint {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let devices = registry::devices();
    let counts = devices.iter().map(|device| {
        let mut state = device.lock();
        state.receive();
        let done = state.hca.run(limit);
        state.pump();
        done
    });
    c_uint::try_from(counts.sum::<usize>()).unwrap_or(c_uint::MAX)
}

/// The run directory of those that were not given one.
static OWN: Mutex<Option<(u32, PathBuf)>> = Mutex::new(None);
/// Names the run directory.
const RUN: &str = "TAGMATCH_HCA_RUN";
/// As `tagmatch hca` ends when there is no device.
const CODE_NO_DEVICE: i32 = 125;
/// What stands for `/sys` in it.
const TREE: &str = "sys";
/// How the devices of a preloaded program are driven.
pub(crate) const DRIVE_DEFAULT: Drive = Drive::Thread;
