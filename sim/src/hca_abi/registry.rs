//! The simulated devices of this process, and which descriptor belongs to which.
//!
//! A forked child sees the parent's marks on descriptors but has neither its device thread nor its fabric: what the
//! parent opened answers EACCES there, and what the child opens is its own. Nothing here is locked, then, that
//! another thread may have held at the fork.

use super::device::Device;
use super::{lazy, raw};
use core::ffi::c_int;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One process's devices.
#[derive(Debug)]
struct Registry {
    process: c_int,
    devices: Mutex<HashMap<u32, Arc<Device>>>,
    /// By descriptor: of devices, of event queues.
    owners: Mutex<HashMap<c_int, Arc<Device>>>,
}

static REGISTRY: AtomicPtr<Registry> = AtomicPtr::new(core::ptr::null_mut());

/// This process's, if it has one.
fn current() -> Option<&'static Registry> {
    let registry = REGISTRY.load(Ordering::Acquire);
    // SAFETY: null, or a registry that is never freed.
    let registry = unsafe { registry.as_ref() }?;
    (registry.process == raw::process()).then_some(registry)
}

/// This process's, made if need be. A parent's is left behind: its locks may be held for ever.
fn current_or_new() -> &'static Registry {
    let before = REGISTRY.load(Ordering::Acquire);
    if let Some(registry) = current() {
        return registry;
    }
    let (devices, owners) = Default::default();
    let fresh = Box::leak(Box::new(Registry { process: raw::process(), devices, owners }));
    let replaced = REGISTRY.compare_exchange(before, fresh, Ordering::AcqRel, Ordering::Acquire);
    // Another thread may have been faster; the loser's empty registry stays behind.
    if replaced.is_ok() { fresh } else { current().unwrap_or(fresh) }
}

/// A panic elsewhere leaves plain data behind.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Add a device.
pub(crate) fn add(device: Arc<Device>) {
    lock(&current_or_new().devices).insert(device.index(), device);
}

/// Take a device away. Contexts that are open stay usable.
pub(crate) fn remove(index: u32) {
    if let Some(registry) = current() {
        lock(&registry.devices).remove(&index);
    }
}

/// Whether there is a device of this number.
pub(crate) fn has(index: u32) -> bool {
    current().is_some_and(|registry| lock(&registry.devices).contains_key(&index))
}

/// Whether there is any device.
pub(crate) fn has_any() -> bool {
    current().is_some_and(|registry| !lock(&registry.devices).is_empty())
}

/// All devices.
pub(crate) fn devices() -> Vec<Arc<Device>> {
    current().map_or_else(Vec::new, |registry| lock(&registry.devices).values().cloned().collect())
}

/// A device was opened as this descriptor.
///
/// # Errors
/// ENODEV: no such device.
pub(crate) fn open(index: u32, fd: c_int) -> Result<(), c_int> {
    let registry = current_or_new();
    let mut devices = lock(&registry.devices);
    let device = match devices.get(&index) {
        Some(device) => Arc::clone(device),
        None => {
            let device = lazy::make(index).ok_or(libc::ENODEV)?;
            devices.insert(index, Arc::clone(&device));
            device
        }
    };
    drop(devices);
    device.open(fd)?;
    lock(&registry.owners).insert(fd, device);
    Ok(())
}

/// A device's descriptor was closed.
pub(crate) fn close(fd: c_int) {
    if let Some(device) = disown(fd) {
        device.close(fd);
    }
}

/// An event queue's descriptor was closed.
pub(crate) fn close_events(fd: c_int) {
    if let Some(device) = disown(fd) {
        device.close_events(fd);
    }
}

/// A device made an event queue with this descriptor.
pub(crate) fn own(fd: c_int, device: Arc<Device>) {
    lock(&current_or_new().owners).insert(fd, device);
}

fn disown(fd: c_int) -> Option<Arc<Device>> {
    current().and_then(|registry| lock(&registry.owners).remove(&fd))
}

/// A command was written.
///
/// # Errors
/// What the command's are. EACCES: the descriptor came over a fork.
pub(crate) fn command(fd: c_int, address: usize, count: usize) -> Result<(), c_int> {
    let registry = current().ok_or(libc::EACCES)?;
    let device = lock(&registry.owners).get(&fd).cloned().ok_or(libc::EACCES)?;
    device.command(fd, address as u64, count)
}
