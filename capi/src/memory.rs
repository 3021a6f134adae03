//! Memory of the user's, as C names it.

use std::ffi::c_void;
use std::ptr;

use tagmatch::seam::{Buffer, Remote, Segment};

/// A stretch of memory, or several.
///
/// `tagmatch::seam::Buffer`
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct tm_buffer {
    /// The first byte; with several segments, the first of an array of `tm_segment`, which stays as long as the memory
    /// itself.
    pub address: *mut c_void,
    /// Bytes; with several segments, of all together.
    pub length: u64,
    /// How the device that will write there knows this memory (verbs: the lkey); 0 where none is needed.
    pub key: u32,
    /// Segments. 0 and 1: `address` is that of the memory itself.
    pub segments: u32,
}

/// One of several stretches of memory.
///
/// `tagmatch::seam::Segment`
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct tm_segment {
    /// The first byte.
    pub address: *mut c_void,
    /// Bytes.
    pub length: u64,
    /// As of `tm_buffer`.
    pub key: u64,
}

/// Where the payload of a rendezvous waits, in the sender's memory.
///
/// `tagmatch::seam::Remote`
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct tm_remote {
    /// The first byte, as the sender named it.
    pub address: u64,
    /// Bytes.
    pub length: u64,
    /// The sender's key for it.
    pub key: u32,
    /// 0
    pub reserved: u32,
}

const _: () = assert!(size_of::<tm_buffer>() == 24 && size_of::<tm_remote>() == 24);
// The crate reads the array itself.
const _: () = assert!(size_of::<tm_segment>() == size_of::<Segment>());

impl From<tm_buffer> for Buffer {
    fn from(buffer: tm_buffer) -> Self {
        let tm_buffer { address, length, key, segments } = buffer;
        Self { address: address.expose_provenance() as u64, length, key, segments: segments.max(1) }
    }
}

impl From<Buffer> for tm_buffer {
    fn from(buffer: Buffer) -> Self {
        let Buffer { address, length, key, segments } = buffer;
        Self { address: pointer(address), length, key, segments }
    }
}

impl tm_buffer {
    pub(crate) const NONE: Self = Self { address: ptr::null_mut(), length: 0, key: 0, segments: 1 };
}

impl From<tm_remote> for Remote {
    fn from(remote: tm_remote) -> Self {
        Self { address: remote.address, key: remote.key, length: remote.length }
    }
}

impl From<Option<Remote>> for tm_remote {
    fn from(remote: Option<Remote>) -> Self {
        let (address, length, key) =
            remote.map_or((0, 0, 0), |remote| (remote.address, remote.length, remote.key));
        Self { address, length, key, reserved: 0 }
    }
}

/// An address as a pointer.
pub(crate) fn pointer(address: u64) -> *mut c_void {
    ptr::with_exposed_provenance_mut(usize::try_from(address).unwrap_or_default())
}
