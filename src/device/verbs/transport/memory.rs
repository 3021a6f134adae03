//! Memory that a transport registers by itself: what peers read, receives in the list of a device that matches, and
//! buffers for receives that are shorter than the eager limit.
//!
//! What a peer may read is registered for reading while it may, under a name that another peer cannot guess
//! (docs/decisions/0031). Each is registered when it is needed and deregistered when it is done with, since nothing here
//! would hear of memory that is unmapped meanwhile (docs/verbs.md). Only where a device ends the link of a READ that comes
//! once more behind that, as soft-RoCE does, it stays registered for a while.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use crate::device::host_memory::HostMemory;
use crate::device::verbs::error::VerbsError;
use crate::device::verbs::memory::{MemoryRegion, ProtectionDomain, RemoteAccess};
use crate::ids::{LinkId, TagHandle};
use crate::seam::{Buffer, Capabilities, Remote};

/// See the module.
#[derive(Debug)]
pub(super) struct Registrations {
    host: HostMemory,
    domain: ProtectionDomain,
    /// By the key that peers know.
    exposed: HashMap<u32, (LinkId, MemoryRegion)>,
    /// What was exposed until then, oldest first.
    lingering: VecDeque<(Instant, LinkId, MemoryRegion)>,
    linger: Duration,
    /// Of receives in the list.
    listed: HashMap<TagHandle, MemoryRegion>,
    bounces: Option<MemoryRegion>,
}

impl Registrations {
    /// What peers could read stays registered for so long.
    pub(super) fn new(host: HostMemory, domain: &ProtectionDomain, linger: Duration) -> Self {
        let (exposed, lingering, listed) = (HashMap::new(), VecDeque::new(), HashMap::new());
        Self { host, domain: domain.clone(), exposed, lingering, linger, listed, bounces: None }
    }

    /// Buffers for as many receives as the list holds.
    pub(super) fn make_bounces(&mut self, capabilities: &Capabilities) -> Result<(), VerbsError> {
        if capabilities.is_matching() {
            let bytes = capabilities.eager_limit.saturating_mul(capabilities.tags.into());
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            self.bounces = Some(MemoryRegion::allocate(&self.domain, bytes, RemoteAccess::NONE)?);
        }
        Ok(())
    }

    /// These buffers, each of the eager limit.
    pub(super) fn bounces(&self, eager_limit: u64) -> Vec<Buffer> {
        let Some(region) = &self.bounces else { return Vec::new() };
        let count = region.length().checked_div(eager_limit).unwrap_or(0);
        (0..count).map(|place| region.buffer(place * eager_limit, eager_limit)).collect()
    }

    /// Let peers read this memory. In several segments, they read a copy of it.
    pub(super) fn expose(&mut self, link: LinkId, memory: &Buffer) -> Result<Remote, VerbsError> {
        if memory.length == 0 {
            return Ok(Remote { address: 0, key: 0, length: 0 });
        }
        let region = match self.region(memory) {
            Err(_) if !self.lingering.is_empty() => {
                self.lingering.clear();
                self.region(memory)
            }
            made => made,
        }?;
        let (address, key) = (region.remote_address(), region.remote_key());
        self.exposed.insert(key, (link, region));
        Ok(Remote { address, key, length: memory.length })
    }

    fn region(&self, memory: &Buffer) -> Result<MemoryRegion, VerbsError> {
        if memory.segments == 1 {
            // SAFETY: whoever made the memory trusted promised that it stays until it is withdrawn, or its link has
            // ended and was told so. What lingers is only read, and its pages are the registration's until it ends.
            return unsafe { MemoryRegion::expose(&self.domain, memory.address, memory.length) };
        }
        let length = usize::try_from(memory.length).unwrap_or(usize::MAX);
        let copy = MemoryRegion::allocate_exposed(&self.domain, length)?;
        self.host.copy(memory, &copy.buffer(0, memory.length));
        Ok(copy)
    }

    pub(super) fn withdraw(&mut self, key: u32) {
        let Some((link, region)) = self.exposed.remove(&key) else { return };
        if !self.linger.is_zero() {
            self.lingering.push_back((Instant::now(), link, region));
        }
    }

    /// Deregister what has lingered long enough.
    #[inline]
    pub(super) fn end_lingering(&mut self) {
        while self.lingering.front().is_some_and(|(since, ..)| since.elapsed() >= self.linger) {
            self.lingering.pop_front();
        }
    }

    /// Nobody reads through a link that is gone.
    pub(super) fn withdraw_all(&mut self, link: LinkId) {
        self.exposed.retain(|_, (of, _)| *of != link);
        self.lingering.retain(|(_, of, _)| *of != link);
    }

    /// The buffer of a receive as the device is to know it.
    pub(super) fn list(&mut self, handle: TagHandle, buffer: Buffer) -> Result<Buffer, VerbsError> {
        if buffer.key != 0 || buffer.length == 0 || buffer.segments != 1 {
            return Ok(buffer);
        }
        // SAFETY: whoever made the memory trusted promised that it stays until the entry is released.
        let region = unsafe { self.register(&buffer) }?;
        let key = region.local_key();
        self.listed.insert(handle, region);
        Ok(Buffer { key, ..buffer })
    }

    /// The device is done with an entry.
    #[inline]
    pub(super) fn released(&mut self, handle: TagHandle) {
        if !self.listed.is_empty() {
            self.listed.remove(&handle);
        }
    }

    /// # Safety
    /// As [`MemoryRegion::register`].
    unsafe fn register(&self, buffer: &Buffer) -> Result<MemoryRegion, VerbsError> {
        let Buffer { address, length, .. } = *buffer;
        // SAFETY: the caller's promise.
        unsafe { MemoryRegion::register(&self.domain, address, length, RemoteAccess::NONE) }
    }
}
