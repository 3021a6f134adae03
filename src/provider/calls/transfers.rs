//! What the calls of `fi_msg(3)` and of `fi_tagged(3)` have in common: all but which messages they are about.
//!
//! Not here: the calls themselves (`message`, `tagged`).

use libc::{c_void, iovec, ssize_t};

use super::endpoint::{Object, of};
use super::memory::{Stretches, address, one, payload};
use crate::endpoint::Space;
use crate::provider::abi::{self, fid_ep};
use crate::provider::error::{fail, sized};
use crate::provider::state::transfer::{Flags, Incoming, Memory, Outgoing};

/// Which messages a call is about, and whose they are.
#[derive(Clone, Copy)]
pub(super) struct Envelope {
    pub(super) space: Space,
    /// Who sends it, or gets it (`fi_addr_t`).
    pub(super) peer: u64,
    /// With a tag alone.
    pub(super) tag: u64,
    /// Of a receive with a tag alone.
    pub(super) ignore: u64,
}

impl Envelope {
    #[inline]
    pub(super) const fn untagged(peer: u64) -> Self {
        Self { space: Space::Untagged, peer, tag: 0, ignore: 0 }
    }

    #[inline]
    pub(super) const fn tagged(peer: u64, tag: u64, ignore: u64) -> Self {
        Self { space: Space::Tagged, peer, tag, ignore }
    }

    #[inline]
    fn incoming(self, memory: Memory<'_>, context: *mut c_void, flags: Flags) -> Incoming<'_> {
        let Self { space, peer: source, tag, ignore } = self;
        Incoming { space, source, tag, ignore, memory, context: address(context), flags }
    }

    #[inline]
    fn outgoing(
        self,
        payload: Memory<'_>,
        data: Option<u64>,
        context: *mut c_void,
        flags: Flags,
    ) -> Outgoing<'_> {
        let Self { space, peer: to, tag, .. } = self;
        Outgoing { space, to, tag, payload, data, context: address(context), flags }
    }
}

/// `struct fi_msg` and `struct fi_msg_tagged`.
pub(super) struct Described {
    pub(super) envelope: Envelope,
    pub(super) vector: *const iovec,
    pub(super) count: usize,
    pub(super) context: *mut c_void,
    pub(super) data: u64,
}

/// # Safety
/// An open endpoint; the memory stays until the completion.
#[inline]
pub(super) unsafe fn receive(
    ep: *mut fid_ep,
    envelope: Envelope,
    buffer: *mut c_void,
    length: usize,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: the caller's.
    let object = unsafe { of(ep) };
    let Ok(memory) = one(buffer, length) else { return missing(object) };
    let incoming = envelope.incoming(memory, context, Flags::OfEndpoint);
    sized(|| object.domain.size(|state| state.receive(object.index, &incoming)))
}

/// # Safety
/// As [`receive`], of so many stretches or null.
#[inline]
pub(super) unsafe fn receive_vector(
    ep: *mut fid_ep,
    envelope: Envelope,
    vector: *const iovec,
    count: usize,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: the caller's.
    let object = unsafe { of(ep) };
    object.transfer(|| {
        // SAFETY: the caller's.
        let stretches = unsafe { Stretches::read(vector, count) }?;
        let incoming = envelope.incoming(stretches.memory(), context, Flags::OfEndpoint);
        object.domain.with(|state| state.receive(object.index, &incoming))
    })
}

/// # Safety
/// As [`receive_vector`].
#[inline]
pub(super) unsafe fn receive_message(ep: *mut fid_ep, message: Option<Described>, flags: u64) -> ssize_t {
    // SAFETY: the caller's.
    let object = unsafe { of(ep) };
    object.transfer(|| {
        let Some(message) = message else { return fail(abi::FI_EINVAL) };
        // A peek, and a discard, have no buffer: whatever stands there is not looked at.
        let count = if flags & (abi::FI_PEEK | abi::FI_DISCARD) == 0 { message.count } else { 0 };
        // SAFETY: the caller's.
        let stretches = unsafe { Stretches::read(message.vector, count) }?;
        let incoming = message.envelope.incoming(stretches.memory(), message.context, Flags::Given(flags));
        object.domain.with(|state| state.receive(object.index, &incoming))
    })
}

/// With remote CQ data, if there is some.
///
/// # Safety
/// An open endpoint; so many bytes, which stay until the completion, or null.
#[inline]
pub(super) unsafe fn send(
    ep: *mut fid_ep,
    envelope: Envelope,
    buffer: *const c_void,
    length: usize,
    data: Option<u64>,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: the caller's.
    let object = unsafe { of(ep) };
    // SAFETY: the caller's.
    let payload = unsafe { payload(buffer, length, object.is_injecting()) };
    let Ok(payload) = payload else { return missing(object) };
    let outgoing = envelope.outgoing(payload, data, context, Flags::OfEndpoint);
    sized(|| object.domain.size(|state| state.send(object.index, &outgoing)))
}

/// # Safety
/// As [`send`], of so many stretches or null.
#[inline]
pub(super) unsafe fn send_vector(
    ep: *mut fid_ep,
    envelope: Envelope,
    vector: *const iovec,
    count: usize,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: the caller's.
    let object = unsafe { of(ep) };
    object.transfer(|| {
        // SAFETY: the caller's.
        let stretches = unsafe { Stretches::read(vector, count) }?;
        let outgoing = envelope.outgoing(stretches.memory(), None, context, Flags::OfEndpoint);
        // SAFETY: the caller's.
        unsafe { stretches.send(object, outgoing, object.is_injecting()) }
    })
}

/// # Safety
/// As [`send_vector`].
#[inline]
pub(super) unsafe fn send_message(ep: *mut fid_ep, message: Option<Described>, flags: u64) -> ssize_t {
    // SAFETY: the caller's.
    let object = unsafe { of(ep) };
    object.transfer(|| {
        let Some(message) = message else { return fail(abi::FI_EINVAL) };
        // SAFETY: the caller's.
        let stretches = unsafe { Stretches::read(message.vector, message.count) }?;
        let data = (flags & abi::FI_REMOTE_CQ_DATA != 0).then_some(message.data);
        let outgoing =
            message.envelope.outgoing(stretches.memory(), data, message.context, Flags::Given(flags));
        // SAFETY: the caller's.
        unsafe { stretches.send(object, outgoing, flags & abi::FI_INJECT != 0) }
    })
}

/// With remote CQ data, if there is some.
///
/// # Safety
/// An open endpoint; so many bytes or null.
#[inline]
pub(super) unsafe fn inject(
    ep: *mut fid_ep,
    envelope: Envelope,
    buffer: *const c_void,
    length: usize,
    data: Option<u64>,
) -> ssize_t {
    // SAFETY: the caller's.
    let object = unsafe { of(ep) };
    // SAFETY: the caller's.
    let Ok(payload) = (unsafe { payload(buffer, length, true) }) else { return missing(object) };
    let outgoing = envelope.outgoing(payload, data, std::ptr::null_mut(), Flags::Silent);
    sized(|| object.domain.size(|state| state.send(object.index, &outgoing)))
}

/// The call names memory that it does not give.
#[cold]
fn missing(object: &Object) -> ssize_t {
    object.transfer(|| fail(abi::FI_EINVAL))
}
