//! Memory that two processes share: a page of words, and two areas of bytes, each of which stands twice in a row in the
//! address space, so that a stretch that goes round the end is one stretch.
//!
//! It has no name: the file exists while somebody has it open or mapped, and whatever ends a process leaves nothing. It can
//! be cut shorter by nobody (`F_SEAL_SHRINK`), so that no access faults whatever the other process does; what stands in it
//! is anything at any time.
//!
//! Not here: what the words and bytes mean.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

use crate::device::host_memory::Stretch;
use crate::device::sockets::process::Process;
use crate::device::sockets::sys::{self, result};

/// See the module.
#[derive(Debug)]
pub(super) struct Region {
    base: NonNull<u8>,
    /// Bytes of each area.
    area: usize,
    /// The process that has mapped it: in a child that was forked the place is the child's.
    process: Process,
}

// SAFETY: the mapping is this value's alone, and belongs to no thread.
unsafe impl Send for Region {}

impl Region {
    /// Make one, and the file by which another process maps it.
    pub(super) fn create(area: usize) -> io::Result<(Self, OwnedFd)> {
        // SAFETY: the name is a C string.
        let fd =
            unsafe { libc::memfd_create(c"tagmatch".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
        // SAFETY: the descriptor is new and nobody else's.
        let file = unsafe { OwnedFd::from_raw_fd(result(fd)?) };
        sys::check_file_length(file_length(area) as u64)?;
        let length = libc::off_t::try_from(file_length(area)).map_err(io::Error::other)?;
        // SAFETY: no memory is passed.
        result(unsafe { libc::ftruncate(file.as_raw_fd(), length) })?;
        // SAFETY: no memory is passed.
        result(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, SEALS) })?;
        Ok((Self::map(file.as_raw_fd(), area)?, file))
    }

    /// Map what another process made, which may be anything.
    pub(super) fn open(file: &OwnedFd, area: usize) -> io::Result<Self> {
        let fd = file.as_raw_fd();
        // SAFETY: no memory is passed.
        let seals = result(unsafe { libc::fcntl(fd, libc::F_GET_SEALS) })?;
        // SAFETY: all zeros is a value of it.
        let mut status: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: the place is ours.
        result(unsafe { libc::fstat(fd, &raw mut status) })?;
        let is_sealed = seals & libc::F_SEAL_SHRINK != 0;
        if !is_sealed || usize::try_from(status.st_size).ok() != Some(file_length(area)) {
            return Err(io::Error::from_raw_os_error(libc::EPROTO));
        }
        Self::map(fd, area)
    }

    fn map(fd: RawFd, area: usize) -> io::Result<Self> {
        let whole = WORDS_LENGTH + 4 * area;
        let (none, anonymous) = (libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: an address is asked for, none is given.
        let base = unsafe { libc::mmap(ptr::null_mut(), whole, none, anonymous, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base =
            NonNull::new(base.cast::<u8>()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        let region = Self { base, area, process: Process::current() };
        let first = WORDS_LENGTH + area;
        let places = [
            (0, 0, WORDS_LENGTH),
            (WORDS_LENGTH, WORDS_LENGTH, area),
            (WORDS_LENGTH + area, WORDS_LENGTH, area),
            (WORDS_LENGTH + 2 * area, first, area),
            (WORDS_LENGTH + 3 * area, first, area),
        ];
        for (at, offset, length) in places {
            let offset = libc::off_t::try_from(offset).map_err(io::Error::other)?;
            let (access, how) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_FIXED);
            // SAFETY: the place is within what was mapped above, which is this value's.
            let to = unsafe { base.as_ptr().add(at) };
            // SAFETY: as above; nothing else is there yet.
            let mapped = unsafe { libc::mmap(to.cast(), length, access, how, fd, offset) };
            if mapped == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
        }
        // A child that is forked has no part in it. Where the system cannot do that, it has and makes no use of it.
        // SAFETY: the whole of it is this value's.
        unsafe { libc::madvise(base.as_ptr().cast(), whole, libc::MADV_DONTFORK) };
        Ok(region)
    }

    /// One of the words.
    ///
    /// # Panics
    /// There are not so many.
    #[inline]
    pub(super) fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < WORDS, "word {index} of {WORDS}");
        // SAFETY: it is within the words, which are mapped while this value is there.
        let place = unsafe { self.base.as_ptr().cast::<u64>().add(index) };
        // SAFETY: as above, and aligned; other processes use it by atomic accesses only, or do harm to nothing but its
        // value.
        unsafe { AtomicU64::from_ptr(place) }
    }

    /// Bytes of an area.
    #[inline]
    pub(super) const fn area(&self) -> usize {
        self.area
    }

    /// Copy bytes into an area from `position` on, round its end.
    #[inline]
    pub(super) fn put(&self, area: Area, position: u64, bytes: &[u8]) {
        let to = self.place(area, position, bytes.len());
        // SAFETY: `place` has room for so many bytes; no slice is of this mapping.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
    }

    /// The same, out of it.
    #[inline]
    pub(super) fn take(&self, area: Area, position: u64, into: &mut [u8]) {
        let from = self.place(area, position, into.len());
        // SAFETY: as in `put`. What the other process writes meanwhile makes the bytes any bytes.
        unsafe { ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) };
    }

    /// Copy the first `length` bytes of a stretch into an area.
    #[inline]
    pub(super) fn put_stretch(&self, area: Area, position: u64, stretch: Stretch, length: usize) {
        let length = length.min(stretch.length());
        let to = self.place(area, position, length);
        // SAFETY: the stretch is the host's promise, and as in `put`.
        unsafe { ptr::copy_nonoverlapping(stretch.pointer(), to, length) };
    }

    /// The same, out of it.
    #[inline]
    pub(super) fn take_stretch(&self, area: Area, position: u64, stretch: Stretch, length: usize) {
        let length = length.min(stretch.length());
        let from = self.place(area, position, length);
        // SAFETY: the stretch is the host's promise, and as in `take`.
        unsafe { ptr::copy_nonoverlapping(from, stretch.pointer(), length) };
    }

    /// Copy bytes that are not of a region into a stretch, as many as it holds, and say how many.
    #[inline]
    pub(super) fn fill(stretch: Stretch, bytes: &[u8]) -> usize {
        let length = stretch.length().min(bytes.len());
        // SAFETY: the stretch is the host's promise, and the slice is none of the host's buffers.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), stretch.pointer(), length) };
        length
    }

    /// The same out of a stretch.
    #[inline]
    pub(super) fn drain(stretch: Stretch, into: &mut [u8]) -> usize {
        let length = stretch.length().min(into.len());
        // SAFETY: as in `fill`.
        unsafe { ptr::copy_nonoverlapping(stretch.pointer(), into.as_mut_ptr(), length) };
        length
    }

    /// Where `length` bytes of an area stand.
    #[inline]
    fn place(&self, area: Area, position: u64, length: usize) -> *mut u8 {
        assert!(length <= self.area, "{length} bytes of an area of {}", self.area);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "what is cut off is whole areas, which are powers of two"
        )]
        let within = position as usize & (self.area - 1);
        // SAFETY: each area is mapped twice in a row, so that from any place in the first a whole area follows.
        unsafe { self.base.as_ptr().add(WORDS_LENGTH + 2 * area as usize * self.area + within) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // A child has no part in it (`MADV_DONTFORK`), and has mapped there since whatever it wanted.
        if !self.process.is_current() {
            return;
        }
        // SAFETY: the mapping is this value's, and no reference into it outlives it.
        unsafe { libc::munmap(self.base.as_ptr().cast(), WORDS_LENGTH + 4 * self.area) };
    }
}

/// Which area.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Area {
    First = 0,
    Second = 1,
}

fn file_length(area: usize) -> usize {
    WORDS_LENGTH + 2 * area
}

/// Words, in bytes and in number.
const WORDS_LENGTH: usize = 8192;
pub(super) const WORDS: usize = WORDS_LENGTH / 8;
const SEALS: i32 = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
