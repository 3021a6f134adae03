//! Memory that the device's owner registered, and what the device itself may follow an address into.
//!
//! Not here: memory that a NIC reads and writes; the NIC checks its keys itself.

use std::collections::{BTreeMap, HashMap};
use std::ptr;

use super::super::error::VerbsError;
use super::super::memory::{MemoryRegion, ProtectionDomain, RemoteAccess};
pub use crate::device::host_memory::HostMemory;
use crate::seam::Buffer;

/// A registered region, by its name with the device, which no other region gets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RegionId(u64);

/// What a registration gives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Registered {
    /// Its name.
    pub id: RegionId,
    /// All of it, with the key by which this device knows it: what commands and answers may name parts of.
    pub buffer: Buffer,
    /// The key by which peers know it: what a rendezvous request carries.
    pub remote_key: u32,
}

/// All registered regions of a device.
#[derive(Debug)]
pub(super) struct Regions {
    host: HostMemory,
    table: BTreeMap<u64, MemoryRegion>,
    by_key: HashMap<u32, u64>,
    made: u64,
}

impl Regions {
    pub(super) fn new(host: HostMemory) -> Self {
        Self { host, table: BTreeMap::new(), by_key: HashMap::new(), made: 0 }
    }

    pub(super) const fn host(&self) -> HostMemory {
        self.host
    }

    pub(super) fn insert(&mut self, region: MemoryRegion) -> Registered {
        let (buffer, remote_key) = (region.buffer(0, region.length()), region.remote_key());
        let id = self.made;
        self.made += 1;
        self.table.insert(id, region);
        self.by_key.insert(buffer.key, id);
        Registered { id: RegionId(id), buffer, remote_key }
    }

    pub(super) fn find(&self, id: RegionId) -> Option<&MemoryRegion> {
        self.table.get(&id.0)
    }

    pub(super) fn remove(&mut self, id: RegionId) -> Option<MemoryRegion> {
        let region = self.table.remove(&id.0)?;
        self.by_key.remove(&region.local_key());
        Some(region)
    }

    /// The key by which the device knows this memory, if it is registered.
    pub(super) fn key_of(&self, buffer: &Buffer) -> Option<u32> {
        self.covering(buffer).map(MemoryRegion::local_key)
    }

    /// The stretches of the beginning of a buffer, as addresses and lengths.
    pub(super) fn stretches(&self, buffer: &Buffer, length: u64) -> Result<Vec<(u64, u64)>, VerbsError> {
        if !self.host.is_trusted() {
            return Err(VerbsError::Caller(not_registered(buffer)));
        }
        let stretches = self.host.stretches(buffer, 0, length);
        Ok(stretches.map(|stretch| (stretch.pointer().addr() as u64, stretch.length() as u64)).collect())
    }

    /// Register a stretch of trusted memory for one operation.
    pub(super) fn register_once(
        &self,
        domain: &ProtectionDomain,
        address: u64,
        length: u64,
    ) -> Result<MemoryRegion, VerbsError> {
        // SAFETY: whoever made the memory trusted promised it for every buffer until the end of its operation.
        unsafe { MemoryRegion::register(domain, address, length, RemoteAccess::NONE) }
    }

    /// Whether bytes can be copied into the whole buffer.
    pub(super) fn may_place(&self, buffer: &Buffer) -> bool {
        self.host.is_trusted() || buffer.length == 0 || self.pointer(buffer, buffer.length).is_ok()
    }

    /// Copy bytes into a buffer, as many as it takes.
    pub(super) fn place(&self, buffer: &Buffer, bytes: &[u8]) -> Result<(), String> {
        if self.host.is_trusted() {
            self.host.write(buffer, 0, bytes);
            return Ok(());
        }
        let length = usize::try_from(buffer.length).unwrap_or(usize::MAX).min(bytes.len());
        let Some(bytes) = bytes.get(..length).filter(|bytes| !bytes.is_empty()) else { return Ok(()) };
        let place = self.pointer(buffer, length as u64)?;
        // SAFETY: the buffer is in a registered region, or the host promised it; the bytes are a slab's or our own.
        unsafe { ptr::copy(bytes.as_ptr(), place, length) };
        Ok(())
    }

    /// Copy the beginning of one buffer into another.
    pub(super) fn copy(&self, from: &Buffer, to: &Buffer) -> Result<(), String> {
        if self.host.is_trusted() {
            self.host.copy(from, to);
            return Ok(());
        }
        let length = from.length.min(to.length);
        if length == 0 {
            return Ok(());
        }
        let (source, target) = (self.pointer(from, length)?, self.pointer(to, length)?);
        let bytes = usize::try_from(length).map_err(|_| not_registered(to))?;
        // SAFETY: both are in registered regions, or the host promised them; they may overlap.
        unsafe { ptr::copy(source, target, bytes) };
        Ok(())
    }

    /// The first bytes of a buffer that the device has written and is done with.
    pub(super) fn read(&self, buffer: &Buffer, into: &mut [u8]) -> Result<usize, String> {
        let length = usize::try_from(buffer.length).unwrap_or(usize::MAX).min(into.len());
        if length == 0 {
            return Ok(0);
        }
        let source = self.pointer(buffer, length as u64)?;
        // SAFETY: the buffer is in a registered region, or the host promised it.
        unsafe { ptr::copy_nonoverlapping(source, into.as_mut_ptr(), length) };
        Ok(length)
    }

    fn pointer(&self, buffer: &Buffer, length: u64) -> Result<*mut u8, String> {
        if buffer.segments != 1 {
            return Err(format!("a buffer of {} segments, which this device does not take", buffer.segments));
        }
        if !self.host.is_trusted() && self.covering(&Buffer { length, ..*buffer }).is_none() {
            return Err(not_registered(buffer));
        }
        let address = usize::try_from(buffer.address).map_err(|_| not_registered(buffer))?;
        Ok(ptr::with_exposed_provenance_mut(address))
    }

    fn covering(&self, buffer: &Buffer) -> Option<&MemoryRegion> {
        let covers = |region: &&MemoryRegion| region.contains(buffer.address, buffer.length);
        if buffer.key == 0 {
            return self.table.values().find(covers);
        }
        self.by_key.get(&buffer.key).and_then(|id| self.table.get(id)).filter(covers)
    }
}

fn not_registered(buffer: &Buffer) -> String {
    let Buffer { address, length, key, .. } = buffer;
    format!("no memory at {address:#x}, {length} bytes, key {key:#x} is registered with this device")
}
