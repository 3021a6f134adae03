//! `struct fi_info` as libfabric wants it: every structure and string of the C library's allocator, since
//! `fi_freeinfo(3)` gives them back to it.

use std::ffi::CString;
use std::net::SocketAddr;
use std::ptr;

use libc::c_char;

use super::offer::{self, Offer};
use crate::provider::abi::{
    self, fi_domain_attr, fi_ep_attr, fi_fabric_attr, fi_info, fi_rx_attr, fi_tx_attr, fid, version,
};
use crate::provider::address::Name;
use crate::provider::error::{Outcome, fail};

/// Where an endpoint would be, and whom it talks to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub(super) domain: String,
    pub(super) fabric: String,
    pub(super) source: SocketAddr,
    pub(super) destination: Option<SocketAddr>,
}

/// A list that grows at its end, and is freed if it is not finished.
pub(super) struct List {
    first: *mut fi_info,
    last: *mut fi_info,
}

impl List {
    pub(super) const fn new() -> Self {
        Self { first: ptr::null_mut(), last: ptr::null_mut() }
    }

    pub(super) fn push(&mut self, api: u32, offer: &Offer, place: &Place) -> Outcome<()> {
        let info = allocate::<fi_info>()?;
        // SAFETY: either is null or the last of the list, which nobody else has.
        if let Some(last) = unsafe { self.last.as_mut() } {
            last.next = info;
        } else {
            self.first = info;
        }
        self.last = info;
        // SAFETY: new, not null, zeroed, and nobody else has it.
        let info = unsafe { &mut *info };
        fill(info, api, offer, place)
    }

    /// What libfabric writes into the answers of `fi_getinfo(3)`, for who gets an info in another way; and whose request it is
    /// about.
    pub(super) fn complete(&mut self, handle: *mut fid) -> Outcome<()> {
        // SAFETY: null or the first of the list, which nobody else has.
        let Some(info) = (unsafe { self.first.as_mut() }) else { return Ok(()) };
        info.handle = handle;
        // SAFETY: an info of this list has all parts.
        unsafe { (*info.fabric_attr).prov_name = string("tagmatch")? };
        Ok(())
    }

    /// Hand it over.
    pub(super) fn finish(mut self) -> *mut fi_info {
        std::mem::replace(&mut self.first, ptr::null_mut())
    }
}

impl Drop for List {
    fn drop(&mut self) {
        let mut next = self.first;
        // SAFETY: a list of our own, which ends with null.
        while let Some(info) = unsafe { next.as_ref() } {
            let this = next;
            next = info.next;
            // SAFETY: null, or structures of our own.
            if let Some(domain) = unsafe { info.domain_attr.as_ref() } {
                free(domain.name);
            }
            // SAFETY: null, or structures of our own.
            if let Some(fabric) = unsafe { info.fabric_attr.as_ref() } {
                free(fabric.name);
                free(fabric.prov_name);
            }
            free(info.src_addr);
            free(info.dest_addr);
            free(info.tx_attr);
            free(info.rx_attr);
            free(info.ep_attr);
            free(info.domain_attr);
            free(info.fabric_attr);
            free(this);
        }
    }
}

fn fill(info: &mut fi_info, api: u32, offer: &Offer, place: &Place) -> Outcome<()> {
    let source = Name::new(place.source);
    info.caps = offer.caps;
    info.addr_format = narrow(source.format());
    (info.src_addr, info.src_addrlen) = (copy(source.bytes())?.cast(), source.bytes().len());
    if let Some(destination) = place.destination {
        let name = Name::new(destination);
        (info.dest_addr, info.dest_addrlen) = (copy(name.bytes())?.cast(), name.bytes().len());
    }
    info.tx_attr = put(tx_attr(offer))?;
    info.rx_attr = put(rx_attr(offer))?;
    info.ep_attr = put(ep_attr(offer))?;
    info.domain_attr = put(domain_attr(api, offer, string(&place.domain)?))?;
    info.fabric_attr = put(fi_fabric_attr {
        fabric: ptr::null_mut(),
        name: string(&place.fabric)?,
        // libfabric writes name and version.
        prov_name: ptr::null_mut(),
        prov_version: super::PROVIDER_VERSION,
        api_version: api,
    })?;
    Ok(())
}

fn tx_attr(offer: &Offer) -> fi_tx_attr {
    fi_tx_attr {
        caps: offer.tx.caps,
        mode: 0,
        op_flags: offer.tx.op_flags,
        msg_order: offer::order(offer.caps),
        comp_order: 0,
        inject_size: offer.tx.inject_size,
        size: offer.tx.size,
        iov_limit: offer.tx.iov_limit,
        rma_iov_limit: offer::rma_iov_limit(offer.caps),
        tclass: offer.tx.tclass,
    }
}

fn rx_attr(offer: &Offer) -> fi_rx_attr {
    fi_rx_attr {
        caps: offer.rx.caps,
        mode: 0,
        op_flags: offer.rx.op_flags,
        msg_order: offer::order(offer.caps),
        comp_order: 0,
        total_buffered_recv: 0,
        size: offer.rx.size,
        iov_limit: offer.rx.iov_limit,
    }
}

fn ep_attr(offer: &Offer) -> fi_ep_attr {
    let ordered = if offer.caps & abi::FI_RMA == 0 { 0 } else { usize::MAX };
    fi_ep_attr {
        r#type: narrow(offer.kind.number()),
        protocol: offer::PROTOCOL,
        protocol_version: offer::PROTOCOL_VERSION,
        max_msg_size: offer::MESSAGE_MAX,
        msg_prefix_size: 0,
        max_order_raw_size: ordered,
        max_order_war_size: 0,
        max_order_waw_size: ordered,
        mem_tag_format: u64::MAX,
        tx_ctx_cnt: 1,
        rx_ctx_cnt: 1,
        auth_key_size: 0,
        auth_key: ptr::null_mut(),
        xpu_ctx: ptr::null_mut(),
    }
}

fn domain_attr(api: u32, offer: &Offer, name: *mut c_char) -> fi_domain_attr {
    // What came later stays 0 for an application that does not have it.
    let counter_max = if api >= version(2, 5) { u64::MAX } else { 0 };
    fi_domain_attr {
        domain: ptr::null_mut(),
        name,
        threading: offer.domain.threading,
        control_progress: offer.domain.control_progress,
        data_progress: offer.domain.data_progress,
        resource_mgmt: narrow(abi::FI_RM_ENABLED),
        av_type: offer.domain.av_type,
        mr_mode: offer.domain.mr_mode,
        mr_key_size: offer::MR_KEY_SIZE,
        cq_data_size: offer.domain.cq_data_size,
        cq_cnt: offer::OBJECTS_MAX,
        ep_cnt: offer::OBJECTS_MAX,
        tx_ctx_cnt: offer::OBJECTS_MAX,
        rx_ctx_cnt: offer::OBJECTS_MAX,
        max_ep_tx_ctx: 1,
        max_ep_rx_ctx: 1,
        max_ep_stx_ctx: 0,
        max_ep_srx_ctx: 0,
        cntr_cnt: offer::OBJECTS_MAX,
        mr_iov_limit: 1,
        caps: offer.domain.caps,
        mode: 0,
        auth_key: ptr::null_mut(),
        auth_key_size: 0,
        max_err_data: 0,
        mr_cnt: offer::OBJECTS_MAX,
        tclass: offer.domain.tclass,
        max_ep_auth_key: 0,
        max_group_id: 0,
        max_cntr_value: counter_max,
        max_err_cntr_value: counter_max,
        max_xpu_ctx_cnt: 0,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "enumerations are small")]
const fn narrow(value: u64) -> u32 {
    value as u32
}

/// Zeros of the C library's allocator.
fn allocate<T>() -> Outcome<*mut T> {
    // SAFETY: any size is allowed.
    let memory = unsafe { libc::calloc(1, size_of::<T>()) };
    if memory.is_null() { fail(abi::FI_ENOMEM) } else { Ok(memory.cast()) }
}

fn put<T>(value: T) -> Outcome<*mut T> {
    let memory = allocate::<T>()?;
    // SAFETY: new memory of this size, aligned for anything.
    unsafe { memory.write(value) };
    Ok(memory)
}

fn copy(bytes: &[u8]) -> Outcome<*mut u8> {
    // SAFETY: any size is allowed.
    let memory = unsafe { libc::malloc(bytes.len().max(1)) }.cast::<u8>();
    if memory.is_null() {
        return fail(abi::FI_ENOMEM);
    }
    // SAFETY: so many bytes are there and here, and the memory is new.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), memory, bytes.len()) };
    Ok(memory)
}

fn string(text: &str) -> Outcome<*mut c_char> {
    let text = CString::new(text).unwrap_or_default();
    Ok(copy(text.as_bytes_with_nul())?.cast())
}

fn free<T>(memory: *mut T) {
    // SAFETY: null, or allocated above, and not used any more.
    unsafe { libc::free(memory.cast()) };
}
