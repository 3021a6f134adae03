//! Shared receive queues of the ordinary kind, and the slab of buffers behind one.

use std::fmt;
use std::ptr;
use std::sync::Arc;

use super::completion::QueueHandle;
use super::error::{Errno, VerbsError};
use super::memory::{MemoryRegion, ProtectionDomain, RemoteAccess};
use super::sys::{self, types};

/// Buffers of one size for messages that no tagged buffer takes, in one registered region.
#[derive(Debug)]
pub struct Slab {
    region: MemoryRegion,
    length: u32,
    count: u32,
}

impl Slab {
    /// So many buffers of so many bytes.
    ///
    /// # Errors
    /// No memory, or it cannot be registered.
    pub fn new(domain: &ProtectionDomain, count: u32, length: u32) -> Result<Self, VerbsError> {
        let stride = u64::from(stride(length));
        let bytes = usize::try_from(u64::from(count).saturating_mul(stride)).unwrap_or(usize::MAX);
        let region = MemoryRegion::allocate(domain, bytes, RemoteAccess::NONE)?;
        Ok(Self { region, length, count })
    }

    /// Buffers.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Bytes of each.
    #[must_use]
    pub const fn length(&self) -> u32 {
        self.length
    }

    /// Where it begins in the region.
    pub(super) fn offset(&self, index: u32) -> u64 {
        u64::from(index) * u64::from(stride(self.length))
    }

    pub(super) fn region(&self) -> &MemoryRegion {
        &self.region
    }

    /// The first bytes of a buffer.
    ///
    /// # Safety
    /// The buffer is not posted, so that no device writes there while the slice is used.
    pub(super) unsafe fn bytes(&self, index: u32, length: u32) -> &[u8] {
        if index >= self.count {
            return &[];
        }
        // SAFETY: the caller promises that nobody writes.
        unsafe { self.region.bytes(self.offset(index), u64::from(length.min(self.length))) }
    }

    fn segment(&self, index: u32) -> types::ibv_sge {
        types::ibv_sge {
            addr: self.region.address().wrapping_add(self.offset(index)),
            length: self.length,
            lkey: self.region.local_key(),
        }
    }
}

/// A line of the cache for each to begin on.
const fn stride(length: u32) -> u32 {
    length.saturating_add(63) & !63
}

/// A shared receive queue whose receives are the buffers of a slab. Without tag matching; with it, it is the receive
/// queue inside a [`super::TagMatchingSrq`].
#[derive(Debug)]
pub struct SharedReceives {
    inner: Arc<Shared>,
    wrs: Vec<types::ibv_recv_wr>,
    segments: Vec<types::ibv_sge>,
}

// SAFETY: the pointers in the prepared requests lead into the vectors beside them, and are set anew at each call.
unsafe impl Send for SharedReceives {}

impl SharedReceives {
    /// One for as many receives as the slab has buffers.
    ///
    /// # Errors
    /// More than the device takes.
    pub fn new(domain: &ProtectionDomain, slab: Slab) -> Result<Self, VerbsError> {
        let mut attr = types::ibv_srq_init_attr {
            srq_context: ptr::null_mut(),
            attr: types::ibv_srq_attr { max_wr: slab.count(), max_sge: 1, srq_limit: 0 },
        };
        let context = domain.context();
        // SAFETY: the domain exists.
        let raw = unsafe { (context.library().ibv_create_srq)(domain.raw(), &raw mut attr) };
        if raw.is_null() {
            return Err(context.failed("ibv_create_srq"));
        }
        Ok(Self::of(Shared { raw, domain: domain.clone(), slab, _completions: None }))
    }

    pub(super) fn of(shared: Shared) -> Self {
        Self { inner: Arc::new(shared), wrs: Vec::new(), segments: Vec::new() }
    }

    /// Post these buffers of the slab, with their numbers as ids.
    ///
    /// # Errors
    /// The queue is full, or there is no such buffer. Those before it are posted.
    pub fn post(&mut self, buffers: &[u32]) -> Result<(), Errno> {
        let slab = &self.inner.slab;
        if buffers.iter().any(|buffer| *buffer >= slab.count()) {
            return Err(Errno(libc::EINVAL));
        }
        self.segments.clear();
        self.segments.extend(buffers.iter().map(|buffer| slab.segment(*buffer)));
        self.wrs.clear();
        for (place, buffer) in buffers.iter().enumerate() {
            let segment = self.segments.as_mut_ptr().wrapping_add(place);
            let (wr_id, next) = (u64::from(*buffer), ptr::null_mut());
            self.wrs.push(types::ibv_recv_wr { wr_id, next, sg_list: segment, num_sge: 1 });
        }
        let start = self.wrs.as_mut_ptr();
        for (place, wr) in self.wrs.iter_mut().enumerate().take(buffers.len().saturating_sub(1)) {
            wr.next = start.wrapping_add(place + 1);
        }
        if buffers.is_empty() {
            return Ok(());
        }
        let mut bad = ptr::null_mut();
        // SAFETY: a linked list of requests for buffers of the slab, which lives as long as the queue.
        let errno = unsafe { sys::inline::post_srq_recv(self.inner.raw, start, &mut bad) };
        if errno == 0 { Ok(()) } else { Err(Errno::returned(errno)) }
    }

    /// For queue pairs that receive here.
    #[must_use]
    pub fn handle(&self) -> ReceiveHandle {
        ReceiveHandle(Arc::clone(&self.inner))
    }

    /// The buffers.
    #[must_use]
    pub fn slab(&self) -> &Slab {
        &self.inner.slab
    }

    pub(super) fn raw(&self) -> *mut types::ibv_srq {
        self.inner.raw
    }
}

/// A shared receive queue, for queue pairs that receive there.
#[derive(Clone, Debug)]
pub struct ReceiveHandle(Arc<Shared>);

impl ReceiveHandle {
    pub(super) fn raw(&self) -> *mut types::ibv_srq {
        self.0.raw
    }
}

/// The queue, and what must outlive it.
pub(super) struct Shared {
    pub(super) raw: *mut types::ibv_srq,
    pub(super) slab: Slab,
    pub(super) _completions: Option<QueueHandle>,
    pub(super) domain: ProtectionDomain,
}

// SAFETY: libibverbs locks what threads share.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the queue pairs that receive here hold it and are gone.
        let _errno = unsafe { (self.domain.context().library().ibv_destroy_srq)(self.raw) };
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedReceives")
            .field("device", &self.domain.context().name())
            .finish_non_exhaustive()
    }
}
