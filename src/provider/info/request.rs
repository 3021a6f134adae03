//! The info of a request for a connection (`FI_CONNREQ`, `fi_cm(3)`): that of who listens, with the addresses of both sides.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use super::hints::Hints;
use super::memory::{List, Place};
use super::offer::{self, Kind, Offer};
use crate::provider::abi::{self, fi_info, fid};
use crate::provider::error::{Outcome, fail};
use crate::provider::parameters::Parameters;

/// What is said of every request at one passive endpoint.
#[derive(Debug)]
pub(in crate::provider) struct Template {
    api: u32,
    offer: Offer,
    domain: String,
    fabric: String,
    /// Where it shall listen: everywhere, if nobody says so.
    pub(in crate::provider) source: SocketAddr,
}

/// The info of a request. It is given back where nobody takes it.
pub(in crate::provider) struct OfRequest {
    list: List,
    /// Its handle.
    pub(in crate::provider) handle: *mut fid,
}

impl Template {
    /// Of the info that a passive endpoint is opened with.
    ///
    /// # Errors
    /// `FI_EINVAL`: it is none of connected endpoints that are offered.
    ///
    /// # Safety
    /// Null, or an info of `fi_getinfo`, or a copy of one.
    pub(in crate::provider) unsafe fn read(
        api: u32,
        info: *const fi_info,
        parameters: &Parameters,
    ) -> Outcome<Self> {
        // SAFETY: the caller's.
        let Some(hints) = (unsafe { Hints::read(info) }) else { return fail(abi::FI_EINVAL) };
        let is_connected = hints.ep.is_some_and(|ep| u64::from(ep.r#type) == abi::FI_EP_MSG);
        let Ok(offer) = offer::offer_of(Kind::Connected, api, Some(&hints), parameters) else {
            return fail(abi::FI_EINVAL);
        };
        if !is_connected || hints.has_strange_address {
            return fail(abi::FI_EINVAL);
        }
        let (domain, fabric) = (hints.domain_name.unwrap_or_default(), hints.fabric_name.unwrap_or_default());
        let is_v6 = u64::from(hints.address_format) == abi::FI_SOCKADDR_IN6;
        let everywhere = if is_v6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        let source = hints.source.unwrap_or(SocketAddr::new(everywhere, 0));
        Ok(Self { api, offer, domain, fabric, source })
    }

    /// The info of a request that came from there to here, and its handle.
    pub(in crate::provider) fn of_request(
        &self,
        here: SocketAddr,
        there: SocketAddr,
        handle: *mut fid,
    ) -> Outcome<OfRequest> {
        let (domain, fabric) = (self.domain.clone(), self.fabric.clone());
        let place = Place { domain, fabric, source: here, destination: Some(there) };
        let mut list = List::new();
        list.push(self.api, &self.offer, &place)?;
        list.complete(handle)?;
        Ok(OfRequest { list, handle })
    }
}

impl OfRequest {
    /// Hand it over: `fi_freeinfo(3)` gives it back.
    pub(in crate::provider) fn into_raw(self) -> *mut fi_info {
        self.list.finish()
    }
}

impl std::fmt::Debug for OfRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OfRequest")
    }
}

// SAFETY: memory of the C library's allocator, which may be used and given back by any thread; nobody else has it.
unsafe impl Send for OfRequest {}
