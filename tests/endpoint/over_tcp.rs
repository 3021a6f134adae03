//! An endpoint over TCP.

use std::net::{Ipv4Addr, SocketAddr};

use tagmatch::device::host_memory::HostMemory;
use tagmatch::device::loopback::LoopbackTransport;
use tagmatch::device::tcp::{TcpConfig, TcpTransport};
use tagmatch::device::transport::Transport;
use tagmatch::endpoint::{Config, Endpoint};
use tagmatch::ids::DeviceId;

/// Listening at this port of this host; 0: any.
pub(crate) fn open(config: Config, port: u16) -> Endpoint {
    let (tcp, host) = transport(port);
    let own = LoopbackTransport::new(DeviceId(0), tcp.name(), 64 << 10, host).unwrap();
    Endpoint::new(config, vec![Box::new(own), Box::new(tcp)]).unwrap()
}

/// The transport alone, and what it knows of memory.
pub(crate) fn transport(port: u16) -> (TcpTransport, HostMemory) {
    transport_as(DeviceId(1), port)
}

/// The same, as a device of another number.
pub(crate) fn transport_as(id: DeviceId, port: u16) -> (TcpTransport, HostMemory) {
    // SAFETY: every buffer of these tests is one of `memory`, or is copied.
    let host = unsafe { HostMemory::trusted() };
    let listen = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port);
    (TcpTransport::open(TcpConfig { id, ..TcpConfig::new(listen) }, host).unwrap(), host)
}
