//! Addresses of endpoints: `struct sockaddr_in` and `sockaddr_in6` as bytes, their text, and names that are looked up.

use std::ffi::CStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::ptr;

use libc::{AF_INET, AF_INET6};

use super::abi;
use super::error::{Outcome, fail};

/// A `sockaddr`. Two names of one address are equal byte by byte: what says nothing is 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Name {
    bytes: [u8; Self::LENGTH_V6],
    length: u8,
}

impl Name {
    const LENGTH_V4: usize = size_of::<libc::sockaddr_in>();
    const LENGTH_V6: usize = size_of::<libc::sockaddr_in6>();

    pub(super) fn new(address: SocketAddr) -> Self {
        let mut bytes = [0; Self::LENGTH_V6];
        bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
        let (family, length) = match address {
            SocketAddr::V4(v4) => {
                bytes[4..8].copy_from_slice(&v4.ip().octets());
                (AF_INET, Self::LENGTH_V4)
            }
            SocketAddr::V6(v6) => {
                bytes[8..24].copy_from_slice(&v6.ip().octets());
                bytes[24..28].copy_from_slice(&scope(&v6).to_ne_bytes());
                (AF_INET6, Self::LENGTH_V6)
            }
        };
        bytes[..2].copy_from_slice(&u16::try_from(family).unwrap_or_default().to_ne_bytes());
        Self { bytes, length: u8::try_from(length).unwrap_or_default() }
    }

    /// The address at the beginning of these bytes, if it is of a family that is known.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let family = i32::from(u16::from_ne_bytes(bytes.first_chunk::<2>().copied()?));
        let port = u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?);
        let ip: IpAddr = match family {
            AF_INET if bytes.len() >= Self::LENGTH_V4 => {
                Ipv4Addr::from(<[u8; 4]>::try_from(bytes.get(4..8)?).ok()?).into()
            }
            AF_INET6 if bytes.len() >= Self::LENGTH_V6 => {
                let ip = Ipv6Addr::from(<[u8; 16]>::try_from(bytes.get(8..24)?).ok()?);
                let scope = u32::from_ne_bytes(bytes.get(24..28)?.try_into().ok()?);
                return Some(Self::new(SocketAddrV6::new(ip, port, 0, scope).into()));
            }
            _ => return None,
        };
        Some(Self::new(SocketAddr::new(ip, port)))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    pub(super) fn address(&self) -> SocketAddr {
        let port = u16::from_be_bytes([self.bytes[2], self.bytes[3]]);
        if usize::from(self.length) == Self::LENGTH_V4 {
            let ip: [u8; 4] = std::array::from_fn(|i| self.bytes[4 + i]);
            SocketAddr::new(Ipv4Addr::from(ip).into(), port)
        } else {
            let ip: [u8; 16] = std::array::from_fn(|i| self.bytes[8 + i]);
            let scope: [u8; 4] = std::array::from_fn(|i| self.bytes[24 + i]);
            SocketAddrV6::new(Ipv6Addr::from(ip), port, 0, u32::from_ne_bytes(scope)).into()
        }
    }

    /// `FI_SOCKADDR_IN` or `FI_SOCKADDR_IN6`.
    pub(super) fn format(&self) -> u64 {
        if usize::from(self.length) == Self::LENGTH_V4 { abi::FI_SOCKADDR_IN } else { abi::FI_SOCKADDR_IN6 }
    }

    /// As `fi_av_straddr(3)` writes it.
    pub(super) fn text(&self) -> String {
        match self.address() {
            v4 @ SocketAddr::V4(_) => format!("fi_sockaddr_in://{v4}"),
            v6 @ SocketAddr::V6(_) => format!("fi_sockaddr_in6://{v6}"),
        }
    }
}

/// Of addresses that mean nothing without an interface; of others the system does not look at it (`ipv6(7)`).
const fn scope(address: &SocketAddrV6) -> u32 {
    let ip = address.ip();
    if ip.is_unicast_link_local() || ip.is_multicast() { address.scope_id() } else { 0 }
}

/// How long one address of an array is, by its family.
pub(super) fn length_of_family(family: u16) -> Option<usize> {
    match i32::from(family) {
        AF_INET => Some(Name::LENGTH_V4),
        AF_INET6 => Some(Name::LENGTH_V6),
        _ => None,
    }
}

/// Look a node and a service up (`getaddrinfo(3)`). Without a node: loopback.
///
/// # Errors
/// `FI_ENODATA`: they stand for nothing.
pub(super) fn resolve(
    node: Option<&CStr>,
    service: Option<&CStr>,
    is_numeric: bool,
) -> Outcome<Vec<SocketAddr>> {
    // SAFETY: all zeros is a valid `addrinfo`: integers and null pointers.
    let mut hints: libc::addrinfo = unsafe { std::mem::zeroed() };
    hints.ai_socktype = libc::SOCK_STREAM;
    hints.ai_flags = if is_numeric { libc::AI_NUMERICHOST } else { 0 };
    let pointer = |text: Option<&CStr>| text.map_or(ptr::null(), CStr::as_ptr);
    let mut list = ptr::null_mut();
    // SAFETY: strings end with 0 or are null, hints are initialised, and the list is ours to write.
    let result =
        unsafe { libc::getaddrinfo(pointer(node), pointer(service), &raw const hints, &raw mut list) };
    if result != 0 {
        return fail(abi::FI_ENODATA);
    }
    let mut found = Vec::new();
    let mut next: *const libc::addrinfo = list;
    // SAFETY: a list of `getaddrinfo` ends with null, and stays until it is freed below.
    while let Some(entry) = unsafe { next.as_ref() } {
        if !entry.ai_addr.is_null() {
            let length = usize::try_from(entry.ai_addrlen).unwrap_or_default();
            // SAFETY: the address is so long.
            let bytes = unsafe { std::slice::from_raw_parts(entry.ai_addr.cast::<u8>(), length) };
            found.extend(Name::decode(bytes).map(|name| name.address()));
        }
        next = entry.ai_next;
    }
    // SAFETY: it came from `getaddrinfo` and is not used any more.
    unsafe { libc::freeaddrinfo(list) };
    if found.is_empty() { fail(abi::FI_ENODATA) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v6(ip: &str, flow: u32, scope: u32) -> Vec<u8> {
        let mut bytes = vec![0; Name::LENGTH_V6];
        bytes[..2].copy_from_slice(&u16::try_from(AF_INET6).unwrap().to_ne_bytes());
        bytes[2..4].copy_from_slice(&7000_u16.to_be_bytes());
        bytes[4..8].copy_from_slice(&flow.to_be_bytes());
        bytes[8..24].copy_from_slice(&ip.parse::<Ipv6Addr>().unwrap().octets());
        bytes[24..].copy_from_slice(&scope.to_ne_bytes());
        bytes
    }

    #[test]
    fn names_of_one_address_are_equal_whatever_they_say_that_the_system_does_not_look_at() {
        for ip in ["::1", "fd00::2", "2001:db8::7"] {
            let plain = Name::decode(&v6(ip, 0, 0)).unwrap();
            for (flow, scope) in [(5, 0), (0, 1), (u32::MAX, u32::MAX)] {
                let other = Name::decode(&v6(ip, flow, scope)).unwrap();
                assert_eq!(other, plain, "{ip} flow {flow} scope {scope}");
                assert_eq!(other.bytes(), v6(ip, 0, 0));
            }
        }
        let local = |scope| Name::decode(&v6("fe80::2", 9, scope)).unwrap();
        assert_ne!(local(1), local(2), "they are of two links");
        assert_eq!(local(2).bytes(), v6("fe80::2", 0, 2));
        let named = "[::1%3]:7000".parse::<SocketAddr>().unwrap();
        assert_eq!(Name::new(named).bytes(), v6("::1", 0, 0));
    }
}
