//! Protection domains and registered memory.
//!
//! Registration is explicit: there is no cache of registrations, since nothing here would hear of memory that is
//! unmapped and mapped again (DESIGN 6). What registers, deregisters.

use std::fmt;
use std::ptr;
use std::sync::Arc;

use super::context::Context;
use super::error::{Errno, VerbsError};
use super::sys::{self, types};
use crate::seam::Buffer;

/// A protection domain. Clones share it.
#[derive(Clone, Debug)]
pub struct ProtectionDomain(Arc<Domain>);

impl ProtectionDomain {
    /// # Errors
    /// The device has none left.
    pub fn new(context: &Context) -> Result<Self, VerbsError> {
        // SAFETY: the context is open.
        let raw = unsafe { (context.library().ibv_alloc_pd)(context.raw()) };
        if raw.is_null() {
            return Err(context.failed("ibv_alloc_pd"));
        }
        Ok(Self(Arc::new(Domain { raw, context: context.clone() })))
    }

    /// The device that it is of.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    pub(super) fn raw(&self) -> *mut types::ibv_pd {
        self.0.raw
    }
}

struct Domain {
    raw: *mut types::ibv_pd,
    context: Context,
}

// SAFETY: libibverbs locks what threads share.
unsafe impl Send for Domain {}
// SAFETY: as above.
unsafe impl Sync for Domain {}

impl Drop for Domain {
    fn drop(&mut self) {
        // SAFETY: every object of the domain holds it and is gone.
        let _errno = unsafe { (self.context.library().ibv_dealloc_pd)(self.raw) };
    }
}

impl fmt::Debug for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProtectionDomain").field(&self.context.name()).finish()
    }
}

/// What a peer may do with registered memory. The own device may always read and write it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct RemoteAccess {
    /// Read: the payload of a rendezvous.
    pub read: bool,
    /// Write.
    pub write: bool,
}

impl RemoteAccess {
    /// Nothing.
    pub const NONE: Self = Self { read: false, write: false };
    /// Read alone.
    pub const READ: Self = Self { read: true, write: false };

    fn bits(self) -> libc::c_int {
        let read = if self.read { sys::IBV_ACCESS_REMOTE_READ } else { 0 };
        let write = if self.write { sys::IBV_ACCESS_REMOTE_WRITE } else { 0 };
        (sys::IBV_ACCESS_LOCAL_WRITE | read | write).cast_signed()
    }
}

/// Memory that a device may read and write, as long as this exists.
///
/// It may go to another thread, and is not shared by several: [`Self::write`] is an ordinary copy.
///
/// ```compile_fail,E0277
/// fn share<T: Sync>() {}
/// share::<tagmatch::device::verbs::MemoryRegion>();
/// ```
#[derive(Debug)]
pub struct MemoryRegion {
    raw: Option<RegionPointer>,
    domain: ProtectionDomain,
    address: u64,
    length: u64,
    /// What peers call its first byte.
    remote: u64,
    keys: (u32, u32),
    own: Option<Mapping>,
}

impl MemoryRegion {
    /// Register memory of the caller's.
    ///
    /// # Errors
    /// The device refuses: ENOMEM where the limit of locked memory is reached, EFAULT where there is no such memory.
    ///
    /// # Safety
    /// The memory stays until the region is dropped, and meanwhile the device, and peers as `access` says, may read
    /// and write it at any time: nothing else may rely on its content but what the caller keeps them from.
    pub unsafe fn register(
        domain: &ProtectionDomain,
        address: u64,
        length: u64,
        access: RemoteAccess,
    ) -> Result<Self, VerbsError> {
        // SAFETY: the caller's promise.
        unsafe { Self::register_at(domain, address, length, address, access) }
    }

    /// Register memory of the caller's for peers to read, who call its first byte by a number that nobody can guess
    /// ([`Self::remote_address`]).
    ///
    /// # Errors
    /// As [`Self::register`], or there is no randomness.
    ///
    /// # Safety
    /// As [`Self::register`].
    pub unsafe fn expose(domain: &ProtectionDomain, address: u64, length: u64) -> Result<Self, VerbsError> {
        let random =
            random().map_err(|errno| VerbsError::call("getrandom", domain.context().name(), errno))?;
        let remote = within_page(address) | beyond_page(random);
        // SAFETY: the caller's promise.
        unsafe { Self::register_at(domain, address, length, remote, RemoteAccess::READ) }
    }

    /// Peers call its first byte `remote`.
    ///
    /// # Safety
    /// As [`Self::register`].
    unsafe fn register_at(
        domain: &ProtectionDomain,
        address: u64,
        length: u64,
        remote: u64,
        access: RemoteAccess,
    ) -> Result<Self, VerbsError> {
        let too_long =
            || VerbsError::Caller(format!("{length} bytes at {address:#x}: beyond the address space"));
        let start = usize::try_from(address).map_err(|_| too_long())?;
        let bytes = usize::try_from(length).map_err(|_| too_long())?;
        start.checked_add(bytes).ok_or_else(too_long)?;
        let pointer = ptr::with_exposed_provenance_mut(start);
        let (context, bits) = (domain.context(), access.bits());
        let (call, raw) = if remote == address {
            // SAFETY: the domain exists; the caller promises the memory.
            ("ibv_reg_mr", unsafe { (context.library().ibv_reg_mr)(domain.raw(), pointer, bytes, bits) })
        } else {
            let register = context.library().ibv_reg_mr_iova;
            // SAFETY: as above; what peers call it is only a number.
            ("ibv_reg_mr_iova", unsafe { register(domain.raw(), pointer, bytes, remote, bits) })
        };
        if raw.is_null() {
            return Err(context.failed(call));
        }
        // SAFETY: a region that was just made.
        let local = unsafe { (*raw).lkey };
        // SAFETY: as above.
        let key = unsafe { (*raw).rkey };
        let (raw, domain) = (Some(RegionPointer(raw)), domain.clone());
        Ok(Self { raw, domain, address, length, remote, keys: (local, key), own: None })
    }

    /// New memory of so many zero bytes, in pages of its own, registered.
    ///
    /// # Errors
    /// No memory, or as [`Self::register`].
    pub fn allocate(
        domain: &ProtectionDomain,
        length: usize,
        access: RemoteAccess,
    ) -> Result<Self, VerbsError> {
        let (own, address) = Mapping::within(domain, length)?;
        // SAFETY: the mapping lives as long as the region, and is looked at through this type only.
        let mut region = unsafe { Self::register(domain, address, length as u64, access) }?;
        region.own = Some(own);
        Ok(region)
    }

    /// The same, for peers to read as by [`Self::expose`].
    ///
    /// # Errors
    /// No memory, or as [`Self::expose`].
    pub fn allocate_exposed(domain: &ProtectionDomain, length: usize) -> Result<Self, VerbsError> {
        let (own, address) = Mapping::within(domain, length)?;
        // SAFETY: as above.
        let mut region = unsafe { Self::expose(domain, address, length as u64) }?;
        region.own = Some(own);
        Ok(region)
    }

    /// End it, as dropping it does, and say whether that went well.
    ///
    /// # Errors
    /// The device refuses: it may go on to write there, and memory of the caller's must stay.
    pub fn deregister(mut self) -> Result<(), VerbsError> {
        let errno = self.end();
        if errno == 0 { Ok(()) } else { Err(self.domain.context().returned("ibv_dereg_mr", errno)) }
    }

    fn end(&mut self) -> libc::c_int {
        let Some(RegionPointer(raw)) = self.raw.take() else { return 0 };
        // SAFETY: the region exists, and no request that names it can be made any more.
        let errno = unsafe { (self.domain.context().library().ibv_dereg_mr)(raw) };
        if errno != 0 {
            // The device may still write: lost memory is better than memory that changes under its next owner.
            std::mem::forget(self.own.take());
        }
        errno
    }

    /// The key by which the own device knows it.
    #[must_use]
    pub const fn local_key(&self) -> u32 {
        self.keys.0
    }

    /// The key by which peers know it.
    #[must_use]
    pub const fn remote_key(&self) -> u32 {
        self.keys.1
    }

    /// What peers call its first byte.
    #[must_use]
    pub const fn remote_address(&self) -> u64 {
        self.remote
    }

    /// First byte.
    #[must_use]
    pub const fn address(&self) -> u64 {
        self.address
    }

    /// Bytes.
    #[must_use]
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// A stretch of it, with its key; cut at its end.
    #[must_use]
    pub const fn buffer(&self, offset: u64, length: u64) -> Buffer {
        let offset = if offset < self.length { offset } else { self.length };
        let rest = self.length - offset;
        let length = if length < rest { length } else { rest };
        Buffer { address: self.address + offset, length, key: self.keys.0, segments: 1 }
    }

    /// Whether the stretch lies in it.
    #[must_use]
    pub const fn contains(&self, address: u64, length: u64) -> bool {
        match address.checked_sub(self.address) {
            Some(offset) => offset <= self.length && length <= self.length - offset,
            None => false,
        }
    }

    /// Copy bytes into it. False: they do not fit there, and nothing was done.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> bool {
        let Some(place) = self.place(offset, bytes.len() as u64) else { return false };
        // SAFETY: the stretch lies in the region, which is not Rust's to reason about.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
        true
    }

    /// Copy bytes out of it. False: there are not so many there, and nothing was done.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> bool {
        let Some(place) = self.place(offset, into.len() as u64) else { return false };
        // SAFETY: the stretch lies in the region.
        unsafe { ptr::copy_nonoverlapping(place, into.as_mut_ptr(), into.len()) };
        true
    }

    /// The bytes, where the device has nothing to do with them now.
    ///
    /// # Safety
    /// Neither the device nor a peer writes there while the slice is used.
    pub(super) unsafe fn bytes(&self, offset: u64, length: u64) -> &[u8] {
        let place = self.place(offset, length);
        let length = usize::try_from(length).unwrap_or(0);
        match place {
            // SAFETY: the stretch lies in the region; the caller promises that nobody writes.
            Some(place) => unsafe { std::slice::from_raw_parts(place, length) },
            None => &[],
        }
    }

    fn place(&self, offset: u64, length: u64) -> Option<*mut u8> {
        let address = self.address.checked_add(offset)?;
        let inside = self.contains(address, length);
        inside.then(|| ptr::with_exposed_provenance_mut(usize::try_from(address).unwrap_or(0)))
    }
}

impl Drop for MemoryRegion {
    fn drop(&mut self) {
        let _errno = self.end();
    }
}

#[derive(Debug)]
struct RegionPointer(*mut types::ibv_mr);

// SAFETY: libibverbs locks what threads share; the pointer is only handed back to it.
unsafe impl Send for RegionPointer {}

/// Pages of our own: none of another's memory is on them, which matters to a child process after a fork.
#[derive(Debug)]
struct Mapping {
    start: *mut libc::c_void,
    length: usize,
}

// SAFETY: memory of the process, looked at through raw pointers only.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Pages for a region, and their address.
    fn within(domain: &ProtectionDomain, length: usize) -> Result<(Self, u64), VerbsError> {
        let own =
            Self::new(length).map_err(|errno| VerbsError::call("mmap", domain.context().name(), errno))?;
        let address = own.start.expose_provenance() as u64;
        Ok((own, address))
    }

    fn new(length: usize) -> Result<Self, Errno> {
        let length = length.max(1);
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping, wherever there is room.
        let start = unsafe { libc::mmap(ptr::null_mut(), length, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED { Err(Errno::last()) } else { Ok(Self { start, length }) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nobody knows its address any more.
        let _result = unsafe { libc::munmap(self.start, self.length) };
    }
}

/// A number that nobody can guess.
fn random() -> Result<u64, Errno> {
    let mut bytes = [0; 8];
    // SAFETY: the bytes are ours.
    let count = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if count == 8 { Ok(u64::from_ne_bytes(bytes)) } else { Err(Errno::last()) }
}

/// Of an address: its place in the largest page that a device is told of, which must be the same in both names of memory,
/// else it could not use such pages.
const fn within_page(address: u64) -> u64 {
    address & ((1 << PAGE_BITS) - 1)
}

/// Of a random number: all but that, and so little that no stretch of memory goes beyond the last address.
const fn beyond_page(random: u64) -> u64 {
    (random >> 1) & !((1 << PAGE_BITS) - 1)
}

/// Pages of 2 MiB.
const PAGE_BITS: u32 = 21;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_access_adds_to_what_the_own_device_may() {
        assert_eq!(RemoteAccess::NONE.bits(), 1);
        assert_eq!(RemoteAccess::READ.bits(), 5);
        assert_eq!(RemoteAccess { read: true, write: true }.bits(), 7);
    }

    #[test]
    fn what_peers_call_memory_keeps_its_place_in_a_page_and_has_room_behind_it() {
        let address = 0x7F12_3456_7123;
        for random in [0, u64::MAX, 0x0123_4567_89AB_CDEF] {
            let remote = within_page(address) | beyond_page(random);
            assert_eq!(remote % (2 << 20), address % (2 << 20));
            assert!(remote < 1 << 63);
        }
        let (one, other) = (random().unwrap(), random().unwrap());
        assert_ne!(beyond_page(one), beyond_page(other));
    }

    #[test]
    fn a_mapping_is_zero_writable_and_page_aligned() {
        let mapping = Mapping::new(10_000).unwrap();
        assert_eq!(mapping.start.addr() % 4096, 0);
        let place = mapping.start.cast::<u8>().wrapping_add(9_999);
        // SAFETY: inside the mapping.
        assert_eq!(unsafe { place.read() }, 0);
        // SAFETY: inside the mapping.
        unsafe { place.write(7) };
    }
}
