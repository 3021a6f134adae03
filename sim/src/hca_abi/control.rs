//! What a test holds of a simulated device in its own process: making it, moving it on step by step, looking inside.

use super::device::{Device, Drive};
use super::memory::ProcessMemory;
use super::sysfs::{Sysfs, SysfsDevice};
use super::{drive, registry};
use crate::hca::{Hca, HcaConfig, LinkLayer, Step};
use core::sync::atomic::{AtomicU32, Ordering};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// A simulated device that the verbs library of this process finds under [`name`](Self::name).
///
/// Each is a card of its own: tests that run at the same time do not meet. Needs [`hca_hooks!`](crate::hca_hooks) in
/// the binary. The first one sets `SYSFS_PATH` for the process, which libibverbs reads once: make it before the first
/// call to libibverbs.
///
/// Dropping it takes the device out of the list. Contexts that are still open stay usable in step mode by nobody.
#[derive(Debug)]
pub struct HcaControl {
    device: Arc<Device>,
    name: String,
}

impl HcaControl {
    /// A new device.
    ///
    /// # Errors
    /// The directory that stands for sysfs cannot be written.
    pub fn new(config: HcaConfig, drive: Drive) -> io::Result<Self> {
        let index = MADE.fetch_add(1, Ordering::Relaxed);
        let entry = sysfs_device(index, &config);
        let device = Device::new(index, config, drive, None);
        // Before it is listed: whoever sees it may open it.
        registry::add(Arc::clone(&device));
        let mut sysfs = SYSFS.lock().unwrap_or_else(PoisonError::into_inner);
        if sysfs.is_none() {
            *sysfs = Some(install(Sysfs::new(&std::env::temp_dir())?));
        }
        if let Some(sysfs) = sysfs.as_ref() {
            sysfs.add(&entry)?;
        }
        Ok(Self { device, name: entry.name() })
    }

    /// Its name for `ibv_get_device_name`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Everything that the device can do now.
    #[must_use]
    pub fn steps(&self) -> Vec<Step> {
        self.device.lock().hca.steps()
    }

    /// Do one step. False: it is not possible now, and nothing has happened.
    pub fn step(&self, step: Step) -> bool {
        self.with(|hca| hca.step(step))
    }

    /// Do steps until none but timers is possible, at most `limit`; how many were done.
    pub fn run(&self, limit: usize) -> usize {
        self.with(|hca| hca.run(limit))
    }

    /// Do all there is to do, timers included.
    pub fn run_until_idle(&self) {
        self.with(Hca::run_until_idle);
    }

    /// The time, in nanoseconds from any beginning: timers that are due expire.
    pub fn advance_clock(&self, now: u64) {
        self.with(|hca| hca.advance_clock(now));
    }

    /// Look into the model, or change it: faults, switches, counters. Events that arise are delivered afterwards.
    pub fn with<T>(&self, look: impl FnOnce(&mut Hca<ProcessMemory>) -> T) -> T {
        let mut state = self.device.lock();
        let answer = look(&mut state.hca);
        state.pump();
        answer
    }
}

impl Drop for HcaControl {
    fn drop(&mut self) {
        if let Some(sysfs) = SYSFS.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            sysfs.remove(self.device.index());
        }
        registry::remove(self.device.index());
    }
}

/// What sysfs says of a device.
pub(crate) fn sysfs_device(index: u32, config: &HcaConfig) -> SysfsDevice {
    let is_ethernet = config.link_layer == LinkLayer::Ethernet;
    let lid = if is_ethernet { 0 } else { config.lid };
    let network_device = is_ethernet.then(|| "lo".to_string());
    let gids = vec![config.gid];
    SysfsDevice { index, node_guid: config.node_guid, lid, is_ethernet, gids, network_device }
}

/// Let libibverbs look there, and see to it that nothing is left behind.
fn install(sysfs: Sysfs) -> Sysfs {
    set_path(sysfs.root());
    at_exit(remove_at_exit);
    at_exit(drive::stop_all_at_exit);
    sysfs
}

/// Set `SYSFS_PATH`.
pub(crate) fn set_path(path: &Path) {
    // SAFETY: std's own lock covers the callers in Rust; those in C come later (see `HcaControl`).
    unsafe { std::env::set_var("SYSFS_PATH", path) };
}

/// Call something at the end of the process.
pub(crate) fn at_exit(call: extern "C" fn()) {
    // SAFETY: a function that takes nothing and stays.
    unsafe { libc::atexit(call) };
}

extern "C" fn remove_at_exit() {
    let mut sysfs = SYSFS.lock().unwrap_or_else(PoisonError::into_inner);
    // A forked child's end is not the end of the tree.
    if let Some(sysfs) = sysfs.take()
        && !sysfs.is_own()
    {
        core::mem::forget(sysfs);
    }
}

static SYSFS: Mutex<Option<Sysfs>> = Mutex::new(None);
/// Numbers are not used again: libibverbs keeps what it has seen of a device of the same name.
static MADE: AtomicU32 = AtomicU32::new(0);
