//! Registered memory.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::rc::Rc;

use tagmatch::device::verbs::sys::types::{ibv_mr, ibv_sge};

use super::device::Pd;

/// A stretch of memory that a device may read and write. It is only looked at by copies.
#[derive(Debug)]
pub struct Region {
    pd: Rc<Pd>,
    mr: *mut ibv_mr,
    start: *mut u8,
    layout: Layout,
}

/// Bytes of a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// Their address.
    pub address: u64,
    /// How many.
    pub length: u32,
    /// The key by which this side knows them.
    pub lkey: u32,
    /// The key by which the other side does.
    pub rkey: u32,
}

impl Part {
    pub(super) const fn segment(self) -> ibv_sge {
        ibv_sge { addr: self.address, length: self.length, lkey: self.lkey }
    }
}

impl Region {
    /// `ibv_reg_mr` of fresh memory, with these `ibv_access_flags`.
    ///
    /// # Errors
    /// errno
    pub fn new(pd: &Rc<Pd>, length: usize, access: u32) -> Result<Rc<Self>, i32> {
        let layout = Layout::from_size_align(length.max(1), 4096).map_err(|_| 22)?;
        // SAFETY: the layout is not empty.
        let start = unsafe { alloc_zeroed(layout) };
        if start.is_null() {
            handle_alloc_error(layout);
        }
        let access = access.cast_signed();
        // SAFETY: the memory stays until it is deregistered.
        let mr = unsafe { (pd.device.library.ibv_reg_mr)(pd.raw, start.cast(), length, access) };
        if mr.is_null() {
            let errno = super::errno();
            // SAFETY: allocated above with this layout.
            unsafe { dealloc(start, layout) };
            return Err(errno);
        }
        Ok(Rc::new(Self { pd: Rc::clone(pd), mr, start, layout }))
    }

    /// Bytes from an offset on, as many as are left at most.
    #[must_use]
    pub fn part(&self, offset: usize, length: usize) -> Part {
        let (offset, length) = self.bounds(offset, length);
        Part {
            address: self.start.addr() as u64 + offset as u64,
            length: u32::try_from(length).unwrap_or(u32::MAX),
            // SAFETY: the region is registered.
            lkey: unsafe { (*self.mr).lkey },
            // SAFETY: the region is registered.
            rkey: unsafe { (*self.mr).rkey },
        }
    }

    /// Copy bytes in.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        let (offset, length) = self.bounds(offset, bytes.len());
        // SAFETY: within the region.
        let to = unsafe { self.start.add(offset) };
        // SAFETY: within the region, which overlaps no slice.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, length) };
    }

    /// Copy bytes out.
    #[must_use]
    pub fn read(&self, offset: usize, length: usize) -> Vec<u8> {
        let (offset, length) = self.bounds(offset, length);
        let mut bytes = vec![0; length];
        // SAFETY: within the region.
        let from = unsafe { self.start.add(offset) };
        // SAFETY: within the region, which overlaps no slice.
        unsafe { std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), length) };
        bytes
    }

    fn bounds(&self, offset: usize, length: usize) -> (usize, usize) {
        let offset = offset.min(self.layout.size());
        (offset, length.min(self.layout.size() - offset))
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: registered here.
        let errno = unsafe { (self.pd.device.library.ibv_dereg_mr)(self.mr) };
        // A region that cannot be deregistered may still be written.
        if errno == 0 {
            // SAFETY: allocated with this layout.
            unsafe { dealloc(self.start, self.layout) };
        }
    }
}
