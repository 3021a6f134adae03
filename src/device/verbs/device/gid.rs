//! Which entry of a port's GID table names this side.
//!
//! On Ethernet a GID is an address, and works only while an interface has it: the first entry is often a link-local one
//! that none has any more, and then connections time out without a word.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv6Addr};
use std::ptr;

use super::super::context::{Context, LinkLayer, Port};
use super::super::error::VerbsError;
use super::super::sys;
use super::config::VerbsConfig;

/// The entry and its index, where addresses have one.
pub(super) fn choose(
    context: &Context,
    port: &Port,
    config: &VerbsConfig,
) -> Result<Option<([u8; 16], u8)>, VerbsError> {
    if let Some(index) = config.gid_index {
        let device = context.name().to_owned();
        let missing = VerbsError::NoGidAt { device, port: port.number, index, gids: port.gids };
        if u32::from(index) >= port.gids {
            return Err(missing);
        }
        let (gid, _) = context.gid(port.number, index)?;
        return if gid == [0; 16] { Err(missing) } else { Ok(Some((gid, index))) };
    }
    if !port.needs_gid {
        return Ok(None);
    }
    let addresses = addresses();
    let mut best: Option<(Rank, ([u8; 16], u8))> = None;
    for index in 0..u8::try_from(port.gids.min(255)).unwrap_or(u8::MAX) {
        let Ok((gid, kind)) = context.gid(port.number, index) else { continue };
        let Some(rank) = rank(gid, kind, port.link, &addresses, config.address) else { continue };
        if best.as_ref().is_none_or(|(best, _)| rank > *best) {
            best = Some((rank, (gid, index)));
        }
    }
    let unusable = || VerbsError::NoGid { device: context.name().to_owned(), port: port.number };
    best.map(|(_, gid)| Some(gid)).ok_or_else(unusable)
}

/// How good an entry is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Rank {
    /// Of another kind than RoCE v2, or one whose kind is not known.
    Other,
    /// An address that is good within one network only.
    LinkLocal,
    /// An address of an interface.
    Present,
    /// The address that was asked for.
    Wanted,
}

/// `None`: it cannot be used.
fn rank(
    gid: [u8; 16],
    kind: Option<u32>,
    link: LinkLayer,
    addresses: &HashSet<IpAddr>,
    wanted: Option<IpAddr>,
) -> Option<Rank> {
    if gid == [0; 16] {
        return None;
    }
    if link == LinkLayer::InfiniBand {
        return Some(Rank::Other);
    }
    let address = Ipv6Addr::from(gid);
    let ip = address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4);
    if !addresses.contains(&ip) {
        return None;
    }
    Some(match kind {
        Some(sys::IBV_GID_TYPE_ROCE_V2) if wanted == Some(ip) => Rank::Wanted,
        Some(sys::IBV_GID_TYPE_ROCE_V2) if address.is_unicast_link_local() => Rank::LinkLocal,
        Some(sys::IBV_GID_TYPE_ROCE_V2) => Rank::Present,
        Some(_) | None => Rank::Other,
    })
}

/// The addresses of this machine's interfaces.
fn addresses() -> HashSet<IpAddr> {
    let mut list = ptr::null_mut();
    // SAFETY: the list is ours to write.
    if unsafe { libc::getifaddrs(&raw mut list) } != 0 {
        return HashSet::new();
    }
    let mut found = HashSet::new();
    let mut next: *const libc::ifaddrs = list;
    // SAFETY: a list of `getifaddrs` ends with null, and stays until it is freed below.
    while let Some(entry) = unsafe { next.as_ref() } {
        found.extend(address(entry.ifa_addr));
        next = entry.ifa_next;
    }
    // SAFETY: it came from `getifaddrs` and is not used any more.
    unsafe { libc::freeifaddrs(list) };
    found
}

/// The IP address in a socket address of the system's, if it is one.
fn address(of: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: null, or a socket address that stays.
    let family = unsafe { of.as_ref() }?.sa_family;
    match i32::from(family) {
        libc::AF_INET => {
            // SAFETY: an address of this family has this type.
            let address = unsafe { of.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(IpAddr::from(address.sin_addr.s_addr.to_ne_bytes()))
        }
        libc::AF_INET6 => {
            // SAFETY: an address of this family has this type.
            let address = unsafe { of.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(IpAddr::from(address.sin6_addr.s6_addr))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V2: Option<u32> = Some(sys::IBV_GID_TYPE_ROCE_V2);

    fn of(text: &str, kind: Option<u32>, wanted: Option<&str>) -> Option<Rank> {
        let there = ["10.9.0.1", "10.9.0.2", "fe80::1", "fd00::1"];
        let addresses = there.iter().map(|text| text.parse().unwrap()).collect();
        let gid = match text.parse().unwrap() {
            IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
            IpAddr::V6(v6) => v6.octets(),
        };
        rank(gid, kind, LinkLayer::Ethernet, &addresses, wanted.map(|text| text.parse().unwrap()))
    }

    #[test]
    fn an_address_of_an_interface_is_taken_and_the_wanted_one_first() {
        assert_eq!(of("10.9.0.1", V2, None), Some(Rank::Present));
        assert_eq!(of("fd00::1", V2, None), Some(Rank::Present));
        assert_eq!(of("10.9.0.2", V2, Some("10.9.0.2")), Some(Rank::Wanted));
        assert_eq!(of("10.9.0.1", V2, Some("10.9.0.2")), Some(Rank::Present));
        assert!(Rank::Wanted > Rank::Present && Rank::Present > Rank::LinkLocal);
    }

    #[test]
    fn an_address_that_no_interface_has_cannot_be_used() {
        assert_eq!(of("fe80::2", V2, None), None);
        assert_eq!(of("10.9.0.3", V2, Some("10.9.0.3")), None);
        assert_eq!(of("::", V2, None), None);
    }

    #[test]
    fn what_is_not_roce_v2_is_the_last_resort() {
        assert_eq!(of("fe80::1", V2, None), Some(Rank::LinkLocal));
        assert_eq!(of("10.9.0.1", Some(0), None), Some(Rank::Other));
        assert_eq!(of("10.9.0.1", None, None), Some(Rank::Other));
    }

    #[test]
    fn the_machine_has_its_own_address() {
        assert!(addresses().contains(&IpAddr::from([127, 0, 0, 1])));
    }
}
