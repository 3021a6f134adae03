//! Memory that peers may access.

use std::ffi::{c_int, c_void};
use std::ptr;

use super::Side;
use super::side::close;
use tagmatch::provider::abi::fid_mr;

/// Memory that peers may access, registered as long as this lives.
pub(crate) struct Region {
    pub(crate) memory: Vec<u8>,
    pub(crate) handle: *mut fid_mr,
}

impl Region {
    pub(crate) fn new(side: &Side, key: u64, memory: Vec<u8>, access: u64) -> Self {
        let mut region = Self { memory, handle: ptr::null_mut() };
        assert_eq!(region.register(side, key, access), 0, "fi_mr_reg");
        region
    }

    pub(crate) fn register(&mut self, side: &Side, key: u64, access: u64) -> c_int {
        let (pointer, length) = (self.memory.as_mut_ptr().cast::<c_void>(), self.memory.len());
        let (domain, place) = (side.domain.cast(), &raw mut self.handle);
        // SAFETY: an open domain, and memory that stays.
        unsafe {
            ((*(*side.domain).mr).reg)(domain, pointer, length, access, 0, key, 0, place, ptr::null_mut())
        }
    }

    /// `fi_mr_key`.
    pub(crate) fn key(&self) -> u64 {
        // SAFETY: an open region.
        unsafe { (*self.handle).key }
    }

    /// What peers have left there, looked at anew.
    pub(crate) fn now(&self) -> Vec<u8> {
        let from = self.memory.as_ptr().expose_provenance();
        let from = ptr::with_exposed_provenance::<u8>(from);
        // SAFETY: the memory is there, and nobody writes it while a test looks.
        (0..self.memory.len()).map(|place| unsafe { from.add(place).read_volatile() }).collect()
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if !self.handle.is_null() && !std::thread::panicking() {
            // SAFETY: an open region, closed once.
            assert_eq!(unsafe { close(self.handle) }, 0, "fi_close of a region");
        }
    }
}
