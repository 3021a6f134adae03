//! Buffers and io vectors of applications, as operations take them.
//!
//! What is to be copied is read here; of all else only addresses are passed on.

use std::ptr;

use libc::{c_void, iovec};

use super::endpoint::Object;
use crate::provider::abi;
pub(super) use crate::provider::arrays::{given, many};
use crate::provider::error::{Outcome, fail};
use crate::provider::state::transfer::{Memory, Outgoing};
use crate::seam::{Buffer, Segment};

/// As many as an io vector may have.
const LIMIT: usize = 8;

/// The stretches of an io vector, by address.
pub(super) struct Stretches {
    parts: [Segment; LIMIT],
    count: usize,
}

impl Stretches {
    /// # Safety
    /// An io vector of so many stretches, or null.
    ///
    /// # Errors
    /// `FI_EINVAL`: there are more than are offered, or null is said to be so long.
    pub(super) unsafe fn read(vector: *const iovec, count: usize) -> Outcome<Self> {
        if count > LIMIT {
            return fail(abi::FI_EINVAL);
        }
        given(vector, count)?;
        let mut parts = [Segment::default(); LIMIT];
        for (place, part) in parts.iter_mut().enumerate().take(count) {
            // SAFETY: the caller's.
            let one = unsafe { vector.add(place) };
            // SAFETY: the caller's.
            let one = unsafe { &*one };
            given(one.iov_base, one.iov_len)?;
            *part = Segment { address: address(one.iov_base), length: one.iov_len as u64, key: 0 };
        }
        Ok(Self { parts, count })
    }

    /// As operations take it.
    pub(super) fn memory(&self) -> Memory<'_> {
        match &self.parts[..self.count] {
            [one] => Memory::One(Buffer::new(one.address, one.length)),
            parts => Memory::Many(parts),
        }
    }

    /// Bytes in all of them.
    pub(super) fn length(&self) -> u64 {
        self.parts[..self.count].iter().fold(0, |sum: u64, part| sum.saturating_add(part.length))
    }

    /// What is there, copied.
    ///
    /// # Safety
    /// The stretches can be read.
    ///
    /// # Errors
    /// `FI_EMSGSIZE`: it is longer than `limit`.
    pub(super) unsafe fn gather(&self, limit: usize) -> Outcome<Vec<u8>> {
        let parts = &self.parts[..self.count];
        let length = self.length();
        if length > limit as u64 {
            return fail(abi::FI_EMSGSIZE);
        }
        let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
        for part in parts {
            let from = ptr::with_exposed_provenance::<u8>(usize::try_from(part.address).unwrap_or_default());
            // SAFETY: the caller's; it is not longer than the limit.
            let part = unsafe { many(from, usize::try_from(part.length).unwrap_or_default()) }?;
            bytes.extend_from_slice(part);
        }
        Ok(bytes)
    }

    /// Send a message whose payload they are; a copy of it where `is_copied`.
    ///
    /// # Safety
    /// The stretches can be read.
    ///
    /// # Errors
    /// As of a send. `FI_EMSGSIZE`: it is too long to be copied.
    pub(super) unsafe fn send(
        &self,
        object: &Object,
        outgoing: Outgoing<'_>,
        is_copied: bool,
    ) -> Outcome<usize> {
        if !is_copied {
            return object.domain.with(|state| state.send(object.index, &outgoing));
        }
        // SAFETY: the caller's.
        let bytes = unsafe { self.gather(object.inject_size()?) }?;
        let outgoing = Outgoing { payload: Memory::Bytes(&bytes), ..outgoing };
        object.domain.with(|state| state.send(object.index, &outgoing))
    }
}

/// One stretch.
///
/// # Errors
/// As [`given`].
#[inline]
pub(super) fn one<'a>(pointer: *const c_void, length: usize) -> Outcome<Memory<'a>> {
    given(pointer, length)?;
    Ok(Memory::One(Buffer::new(address(pointer), length as u64)))
}

/// What is to be sent; a copy of it where `is_copied`.
///
/// # Safety
/// So many bytes, which stay for as long as the result is used, or null.
///
/// # Errors
/// As [`given`].
#[inline]
pub(super) unsafe fn payload<'a>(
    pointer: *const c_void,
    length: usize,
    is_copied: bool,
) -> Outcome<Memory<'a>> {
    if !is_copied {
        return one(pointer, length);
    }
    // SAFETY: the caller's.
    Ok(Memory::Bytes(unsafe { many(pointer.cast(), length) }?))
}

/// An address for others to follow: transports, and whoever gets it back as a context.
#[inline]
pub(super) fn address<T>(pointer: *const T) -> u64 {
    pointer.expose_provenance() as u64
}
