//! What an application asks for in `fi_getinfo(3)`, copied out of its structures.
//!
//! Structures of applications may end earlier than those of today: what came after API 1.17 is not looked at.

use std::ffi::CStr;
use std::net::SocketAddr;

use libc::c_char;

use crate::provider::abi::{fi_domain_attr, fi_ep_attr, fi_fabric_attr, fi_info, fi_rx_attr, fi_tx_attr};
use crate::provider::address::Name;
use crate::provider::arrays::many;

/// Hints. A part that is not there says nothing.
#[derive(Clone, Default)]
pub(super) struct Hints {
    pub(super) caps: u64,
    pub(super) address_format: u32,
    pub(super) source: Option<SocketAddr>,
    pub(super) destination: Option<SocketAddr>,
    /// An address that is none of IP.
    pub(super) has_strange_address: bool,
    pub(super) tx: Option<fi_tx_attr>,
    pub(super) rx: Option<fi_rx_attr>,
    pub(super) ep: Option<fi_ep_attr>,
    pub(super) domain: Option<fi_domain_attr>,
    pub(super) domain_name: Option<String>,
    pub(super) fabric: Option<fi_fabric_attr>,
    pub(super) fabric_name: Option<String>,
    pub(super) provider_name: Option<String>,
}

impl Hints {
    /// # Safety
    /// Null, or a `struct fi_info` of API 1.3 or later with what it points to, which stays during the call.
    pub(super) unsafe fn read(info: *const fi_info) -> Option<Self> {
        // SAFETY: the caller's.
        let info = unsafe { info.as_ref() }?;
        // Modes are what an application is ready for: nothing is asked of it.
        let mut hints = Self { caps: info.caps, address_format: info.addr_format, ..Self::default() };
        let source = (info.src_addr, info.src_addrlen, &mut hints.source);
        let destination = (info.dest_addr, info.dest_addrlen, &mut hints.destination);
        for (pointer, length, place) in [source, destination] {
            if pointer.is_null() || length == 0 {
                continue;
            }
            // SAFETY: so many bytes are there.
            let bytes = unsafe { many(pointer.cast::<u8>(), length) };
            *place = bytes.ok().and_then(Name::decode).map(|name| name.address());
            hints.has_strange_address |= place.is_none();
        }
        // SAFETY: null or an attribute structure of any API, which did not grow.
        hints.tx = unsafe { info.tx_attr.as_ref() }.copied();
        // SAFETY: as before.
        hints.rx = unsafe { info.rx_attr.as_ref() }.copied();
        // SAFETY: null or an attribute structure of this size at least.
        hints.ep = unsafe { beginning(info.ep_attr, EP_ATTR_1_17) };
        // SAFETY: null or an attribute structure of this size at least.
        hints.domain = unsafe { beginning(info.domain_attr, DOMAIN_ATTR_1_17) };
        // SAFETY: null or an attribute structure of any API, which did not grow.
        hints.fabric = unsafe { info.fabric_attr.as_ref() }.copied();
        if let Some(domain) = &hints.domain {
            // SAFETY: null or a string.
            hints.domain_name = unsafe { string(domain.name) };
        }
        if let Some(fabric) = &hints.fabric {
            // SAFETY: null or a string.
            hints.fabric_name = unsafe { string(fabric.name) };
            // SAFETY: null or a string.
            hints.provider_name = unsafe { string(fabric.prov_name) };
        }
        Some(hints)
    }
}

/// Bytes of `struct fi_ep_attr` in API 1.17.
const EP_ATTR_1_17: usize = 96;
/// Bytes of `struct fi_domain_attr` in API 1.17.
const DOMAIN_ATTR_1_17: usize = 192;

/// # Safety
/// Null, or a string that ends with 0.
pub(super) unsafe fn string(pointer: *const c_char) -> Option<String> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: the caller's.
    let text = unsafe { CStr::from_ptr(pointer) };
    Some(text.to_string_lossy().into_owned()).filter(|text| !text.is_empty())
}

/// The first `length` bytes of a structure, with zeros behind them.
///
/// # Safety
/// Null, or a `T` of which so many bytes are there. `T` is one of the attribute structures, for which zeros are valid.
unsafe fn beginning<T: Copy>(pointer: *const T, length: usize) -> Option<T> {
    if pointer.is_null() {
        return None;
    }
    let mut value = std::mem::MaybeUninit::<T>::zeroed();
    let length = length.min(size_of::<T>());
    // SAFETY: so many bytes are there at the one place and at the other, which is new.
    unsafe { std::ptr::copy_nonoverlapping(pointer.cast::<u8>(), value.as_mut_ptr().cast::<u8>(), length) };
    // SAFETY: integers and pointers, for which zeros are valid, and what a valid one began with.
    Some(unsafe { value.assume_init() })
}
