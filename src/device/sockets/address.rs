//! Addresses: `sockaddr_in` and `sockaddr_in6` as bytes (`ip(7)`, `ipv6(7)`), as `fi_getname(3)` gives them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// The address as bytes: 16 or 28.
pub(in crate::device) fn to_bytes(address: &SocketAddr) -> Vec<u8> {
    match address {
        SocketAddr::V4(address) => {
            let mut bytes = Vec::with_capacity(V4_LENGTH);
            bytes.extend_from_slice(&AF_INET.to_ne_bytes());
            bytes.extend_from_slice(&address.port().to_be_bytes());
            bytes.extend_from_slice(&address.ip().octets());
            bytes.resize(V4_LENGTH, 0);
            bytes
        }
        SocketAddr::V6(address) => {
            let mut bytes = Vec::with_capacity(V6_LENGTH);
            bytes.extend_from_slice(&AF_INET6.to_ne_bytes());
            bytes.extend_from_slice(&address.port().to_be_bytes());
            bytes.extend_from_slice(&address.flowinfo().to_be_bytes());
            bytes.extend_from_slice(&address.ip().octets());
            bytes.extend_from_slice(&address.scope_id().to_ne_bytes());
            bytes
        }
    }
}

/// The inverse; `None` of what is no such address.
pub(in crate::device) fn from_bytes(bytes: &[u8]) -> Option<SocketAddr> {
    let (family, rest) = bytes.split_first_chunk::<2>()?;
    let (port, rest) = rest.split_first_chunk::<2>()?;
    let port = u16::from_be_bytes(*port);
    match u16::from_ne_bytes(*family) {
        AF_INET if bytes.len() == V4_LENGTH => {
            let ip: [u8; 4] = *rest.first_chunk()?;
            Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::from(ip)), port))
        }
        AF_INET6 if bytes.len() == V6_LENGTH => {
            let (flow, rest) = rest.split_first_chunk::<4>()?;
            let (ip, scope) = rest.split_first_chunk::<16>()?;
            let (flow, scope) = (u32::from_be_bytes(*flow), u32::from_ne_bytes(*scope.first_chunk()?));
            Some(SocketAddr::V6(SocketAddrV6::new(Ipv6Addr::from(*ip), port, flow, scope)))
        }
        _ => None,
    }
}

const V4_LENGTH: usize = 16;
const V6_LENGTH: usize = 28;
/// `bits/socket.h`
pub(in crate::device) const AF_INET: u16 = 2;
/// `bits/socket.h`
pub(in crate::device) const AF_INET6: u16 = 10;
