//! `fi_getinfo(3)`: what this machine offers to an application.
//!
//! ```text
//!  hints ── offer: does it fit, and as what ──┐
//!  node, service, interfaces ── places ───────┴── a list of struct fi_info
//! ```

mod hints;
mod interfaces;
mod memory;
mod offer;
mod request;

pub(super) use self::offer::{IOV_LIMIT, RMA_IOV_LIMIT};
pub(super) use self::request::{OfRequest, Template};

#[cfg(test)]
mod tests;

use std::ffi::CStr;
use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};

use libc::{c_char, c_int};

use self::hints::Hints;
use self::interfaces::{Interface, interfaces, source_towards};
use self::memory::{List, Place};
use super::abi::{self, fi_info, version};
use super::address::{Name, resolve};
use super::error::{Code, Outcome, code, fail, integer};
use super::matching;
use super::parameters::Parameters;

/// The newest interface that is spoken. libfabric asks no provider of an older one than the application wants.
pub(super) const FI_VERSION: u32 = version(2, 6);
/// The provider's own version.
pub(super) const PROVIDER_VERSION: u32 = version(0, 1);

/// The call of `struct fi_provider`.
pub(super) unsafe extern "C" fn getinfo(
    api: u32,
    node: *const c_char,
    service: *const c_char,
    flags: u64,
    hints: *const fi_info,
    info: *mut *mut fi_info,
) -> c_int {
    integer(|| {
        // SAFETY: libfabric's: null or a string.
        let node = unsafe { text(node) };
        // SAFETY: as before.
        let service = unsafe { text(service) };
        // SAFETY: libfabric's: null or hints of this API.
        let hints = unsafe { Hints::read(hints) };
        let list = answer(api, node, service, flags, hints.as_ref())?;
        // SAFETY: libfabric's: a place for the list.
        unsafe { info.write(list.finish()) };
        Ok(0)
    })
}

fn answer(
    api: u32,
    node: Option<&CStr>,
    service: Option<&CStr>,
    flags: u64,
    hints: Option<&Hints>,
) -> Outcome<List> {
    let parameters = match Parameters::from_environment() {
        Ok(parameters) => parameters,
        Err(error) => {
            complain(error.to_string());
            return fail(abi::FI_EINVAL);
        }
    };
    let choice = match matching::choose(&parameters) {
        Ok(choice) => choice,
        Err(error) => {
            complain(error.to_string());
            return fail(abi::FI_ENODATA);
        }
    };
    let has_connected = choice.network == matching::Network::Tcp && flags & LAYERING == 0;
    let Ok(offers) = offer::offers(api, hints, &parameters, has_connected) else {
        return fail(abi::FI_ENODATA);
    };
    let mut places = places(node, service, flags, hints, parameters.iface.as_deref())?;
    places.retain(|place| is_wanted(place, hints));
    let mut list = List::new();
    for offer in &offers {
        for place in &places {
            list.push(api, offer, place)?;
        }
    }
    if places.is_empty() { fail(abi::FI_ENODATA) } else { Ok(list) }
}

/// libfabric's own flag of `fi_getinfo(3)`, in none of its headers (1.17 to 2.6): one of its providers asks, to put endpoints
/// of its own on top of connected ones. Its matching would stand before this one, whoever asked for this provider.
const LAYERING: u64 = 1 << 59;

/// Say why nothing is offered, and not again what was said last: applications ask several times.
fn complain(what: String) {
    static LAST: Mutex<String> = Mutex::new(String::new());
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if *last != what {
        // Nobody may be there to read it.
        let _ = writeln!(std::io::stderr().lock(), "tagmatch: {what}");
        *last = what;
    }
}

/// Where endpoints could be: the names that are given, or every interface of this machine.
fn places(
    node: Option<&CStr>,
    service: Option<&CStr>,
    flags: u64,
    hints: Option<&Hints>,
    only: Option<&str>,
) -> Outcome<Vec<Place>> {
    let is_numeric = flags & abi::FI_NUMERICHOST != 0;
    let is_source = flags & abi::FI_SOURCE != 0;
    let hinted_source = hints.and_then(|hints| hints.source);
    let hinted_destination = hints.and_then(|hints| hints.destination);
    // Where one is chosen there are no others, whatever address is given.
    let here = match chosen(only) {
        Ok(here) => here,
        Err(refusal) => {
            complain(refusal);
            return Ok(Vec::new());
        }
    };
    let everywhere = |port: u16, destination: Option<SocketAddr>| {
        here.iter().map(|interface| place(interface, interface.socket(port), destination)).collect()
    };
    if is_source && node.is_some() {
        let found = resolve(node, service, is_numeric)?;
        let places = found.iter().filter_map(|source| at(&here, *source, hinted_destination));
        return Ok(places.collect());
    }
    if is_source && service.is_some() {
        let port = resolve(None, service, is_numeric)?.first().map_or(0, SocketAddr::port);
        return Ok(everywhere(port, hinted_destination));
    }
    let destinations = match (node, service) {
        (None, None) => hinted_destination.into_iter().collect(),
        _ if is_source => Vec::new(),
        _ => resolve(node, service, is_numeric)?,
    };
    if destinations.is_empty() {
        return Ok(match hinted_source {
            Some(source) if source.ip().is_unspecified() => everywhere(source.port(), None),
            Some(source) => at(&here, source, None).into_iter().collect(),
            None => everywhere(0, None),
        });
    }
    let towards = |destination: &SocketAddr| {
        let is_alike = |interface: &&Interface| interface.address.is_ipv4() == destination.is_ipv4();
        let own = here.iter().filter(|_| only.is_some()).find(is_alike);
        let source = hinted_source.filter(|source| !source.ip().is_unspecified());
        let source = source
            .or_else(|| own.map(|interface| interface.socket(0)))
            .or_else(|| source_towards(*destination))?;
        at(&here, source, Some(*destination))
    };
    Ok(destinations.iter().filter_map(towards).collect())
}

/// The address that an endpoint listens at and goes by, of a `sockaddr` that an application gives it: that of every
/// interface (`0.0.0.0`, `::`) says nothing to peers, and stands for that of the interface which is offered first.
///
/// # Errors
/// `FI_EINVAL`: it is no address. `FI_EADDRNOTAVAIL`: nobody can be reached there, or another interface is chosen.
pub(super) fn own_address(bytes: &[u8], parameters: &Parameters) -> Outcome<SocketAddr> {
    let only = parameters.iface.as_deref();
    let given = Name::decode(bytes).ok_or(code(abi::FI_EINVAL))?.address();
    let here = || interfaces().into_iter().filter(|interface| is_chosen(interface, only));
    let is_one = match given.ip() {
        ip if ip.is_unspecified() => {
            let own = here().find(|interface| interface.address.is_ipv4() == ip.is_ipv4());
            return own.map(|own| own.socket(given.port())).ok_or(NOT_HERE);
        }
        IpAddr::V4(v4) => !v4.is_multicast() && !v4.is_broadcast(),
        IpAddr::V6(v6) => !v6.is_multicast(),
    };
    // Which others are this machine's says the system.
    let is_chosen = only.is_none() || at(&here().collect::<Vec<_>>(), given, None).is_some();
    if is_one && is_chosen { Ok(given) } else { Err(NOT_HERE) }
}

const NOT_HERE: Code = code(abi::FI_EADDRNOTAVAIL);

/// The interfaces that may be used, all or those of the chosen name or address.
///
/// # Errors
/// There is none of it, in words.
fn chosen(only: Option<&str>) -> Result<Vec<Interface>, String> {
    let here: Vec<Interface> =
        interfaces().into_iter().filter(|interface| is_chosen(interface, only)).collect();
    match only {
        Some(only) if here.is_empty() => Err(format!(
            "FI_TAGMATCH_IFACE={only} is refused: no interface that is up has that name or address"
        )),
        _ => Ok(here),
    }
}

/// Why an endpoint can be at no interface of this machine with these parameters, in words.
///
/// # Errors
/// The choice is refused.
pub fn check_interface(parameters: &Parameters) -> Result<(), String> {
    chosen(parameters.iface.as_deref()).map(drop)
}

/// Whether an interface may be used where this name or address is chosen.
fn is_chosen(interface: &Interface, only: Option<&str>) -> bool {
    only.is_none_or(|only| interface.name == only || interface.address.to_string() == only)
}

/// An own address, which must be one of an interface.
fn at(here: &[Interface], source: SocketAddr, destination: Option<SocketAddr>) -> Option<Place> {
    let is_loopback = source.ip().is_loopback();
    let interface = here
        .iter()
        .find(|interface| interface.address == source.ip())
        // All of 127.0.0.0/8 is on the loopback interface.
        .or_else(|| here.iter().find(|interface| is_loopback && interface.is_loopback))?;
    Some(place(interface, source, destination))
}

fn place(interface: &Interface, source: SocketAddr, destination: Option<SocketAddr>) -> Place {
    Place { domain: interface.name.clone(), fabric: interface.network.clone(), source, destination }
}

/// Whether the hints' names and address format fit a place.
fn is_wanted(place: &Place, hints: Option<&Hints>) -> bool {
    let Some(hints) = hints else { return true };
    let fits = |asked: &Option<String>, ours: &str| {
        asked.as_deref().is_none_or(|asked| asked.eq_ignore_ascii_case(ours))
    };
    let family_fits = match u64::from(hints.address_format) {
        abi::FI_FORMAT_UNSPEC | abi::FI_SOCKADDR | abi::FI_SOCKADDR_IP => true,
        abi::FI_SOCKADDR_IN => place.source.is_ipv4(),
        abi::FI_SOCKADDR_IN6 => place.source.is_ipv6(),
        _ => false,
    };
    let same_family = place.destination.is_none_or(|to| to.is_ipv4() == place.source.is_ipv4());
    family_fits
        && same_family
        && fits(&hints.domain_name, &place.domain)
        && fits(&hints.fabric_name, &place.fabric)
}

/// # Safety
/// Null, or a string that ends with 0 and stays for as long as the result is used.
unsafe fn text<'a>(pointer: *const c_char) -> Option<&'a CStr> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: the caller's.
    Some(unsafe { CStr::from_ptr(pointer) })
}
