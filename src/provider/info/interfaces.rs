//! The network interfaces of this machine, and which of them leads to an address.

use std::ffi::CStr;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::ptr;

use libc::{IFF_LOOPBACK, IFF_UP, c_int};

use crate::provider::address::{Name, length_of_family};

/// An interface with one of its addresses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Interface {
    /// As the system calls it.
    pub(super) name: String,
    pub(super) address: IpAddr,
    /// Of an IPv6 address that needs one.
    pub(super) scope: u32,
    /// The network with the bits of its mask: `10.0.0.0/8`.
    pub(super) network: String,
    pub(super) is_loopback: bool,
}

impl Interface {
    /// The address with a port.
    pub(super) fn socket(&self, port: u16) -> SocketAddr {
        let mut address = SocketAddr::new(self.address, port);
        if let SocketAddr::V6(v6) = &mut address {
            v6.set_scope_id(self.scope);
        }
        address
    }
}

/// All that are up, in the order in which they are offered: IPv4 before IPv6, loopback last. Link-local addresses are
/// left out: they mean nothing without the interface.
pub(super) fn interfaces() -> Vec<Interface> {
    let mut list = ptr::null_mut();
    // SAFETY: the list is ours to write.
    if unsafe { libc::getifaddrs(&raw mut list) } != 0 {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut next: *const libc::ifaddrs = list;
    // SAFETY: a list of `getifaddrs` ends with null, and stays until it is freed below.
    while let Some(entry) = unsafe { next.as_ref() } {
        found.extend(interface(entry));
        next = entry.ifa_next;
    }
    // SAFETY: it came from `getifaddrs` and is not used any more.
    unsafe { libc::freeifaddrs(list) };
    found.sort_by_key(|interface| (interface.address.is_ipv6(), interface.is_loopback));
    found
}

fn interface(entry: &libc::ifaddrs) -> Option<Interface> {
    let flag = |flag: c_int| entry.ifa_flags & flag.cast_unsigned() != 0;
    if !flag(IFF_UP) {
        return None;
    }
    let address = socket_address(entry.ifa_addr)?;
    let ip = address.ip();
    let is_link_local = match ip {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    if is_link_local {
        return None;
    }
    // SAFETY: names of `getifaddrs` end with 0.
    let name = unsafe { CStr::from_ptr(entry.ifa_name) };
    let mask = socket_address(entry.ifa_netmask).map(|mask| mask.ip());
    let scope = match address {
        SocketAddr::V6(v6) => v6.scope_id(),
        SocketAddr::V4(_) => 0,
    };
    Some(Interface {
        name: name.to_string_lossy().into_owned(),
        address: ip,
        scope,
        network: network(ip, mask),
        is_loopback: flag(IFF_LOOPBACK),
    })
}

/// The address at a pointer of `getifaddrs`, if it is one of IP.
fn socket_address(pointer: *const libc::sockaddr) -> Option<SocketAddr> {
    // SAFETY: null, or a `sockaddr` that stays until the list is freed.
    let family = unsafe { pointer.as_ref() }?.sa_family;
    let length = length_of_family(family)?;
    // SAFETY: an address of this family is so long.
    let bytes = unsafe { std::slice::from_raw_parts(pointer.cast::<u8>(), length) };
    Name::decode(bytes).map(|name| name.address())
}

/// `10.0.0.0/8` of an address and a mask.
fn network(address: IpAddr, mask: Option<IpAddr>) -> String {
    let octets = |ip: IpAddr| match ip {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    };
    let bytes = octets(address);
    let mask = mask.map(octets).filter(|mask| mask.len() == bytes.len());
    let mask = mask.unwrap_or_else(|| vec![0xff; bytes.len()]);
    let bits: u32 = mask.iter().map(|byte| byte.count_ones()).sum();
    let masked: Vec<u8> = bytes.iter().zip(&mask).map(|(byte, mask)| byte & mask).collect();
    let base = match masked.first_chunk::<4>() {
        Some(four) if masked.len() == 4 => IpAddr::from(*four),
        _ => IpAddr::from(<[u8; 16]>::try_from(masked).unwrap_or_default()),
    };
    format!("{base}/{bits}")
}

/// The own address from which this machine would reach another.
pub(super) fn source_towards(destination: SocketAddr) -> Option<SocketAddr> {
    let any: SocketAddr =
        if destination.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0u16; 8], 0).into() };
    let socket = UdpSocket::bind(any).ok()?;
    // Nothing is sent: a datagram socket only chooses its own address. Port 0 is none to connect to.
    let mut target = destination;
    target.set_port(if target.port() == 0 { 9 } else { target.port() });
    socket.connect(target).ok()?;
    let mut own = socket.local_addr().ok()?;
    own.set_port(0);
    Some(own)
}
