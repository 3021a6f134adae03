//! Endpoints with shared memory beside TCP, as the provider sets them up: all of them, or all but every third of a test.

use std::cell::Cell;

use tagmatch::device::host_memory::HostMemory;
use tagmatch::device::loopback::LoopbackTransport;
use tagmatch::device::shm::{ShmConfig, ShmTransport};
use tagmatch::device::soft::SoftConfig;
use tagmatch::device::soft::over::OverTransport;
use tagmatch::device::transport::Transport;
use tagmatch::endpoint::{Config, Endpoint};
use tagmatch::ids::DeviceId;

use crate::over_tcp;

/// Listening at this port of this host; 0: any. Peers share memory, and nothing matches but the engine.
pub(crate) fn shared(config: Config, port: u16) -> Endpoint {
    endpoint(config, port, true, false)
}

/// The same with the soft TM-SRQ over every path to others.
#[allow(dead_code, reason = "not every program has lists")]
pub(crate) fn listed(config: Config, port: u16) -> Endpoint {
    endpoint(config, port, true, true)
}

/// Every third of a thread has TCP alone.
#[allow(dead_code, reason = "not every program mixes paths")]
pub(crate) fn mixed(config: Config, port: u16) -> Endpoint {
    endpoint(config, port, is_next_shared(), false)
}

/// The same with the soft TM-SRQ over every path to others.
#[allow(dead_code, reason = "not every program mixes paths")]
pub(crate) fn mixed_listed(config: Config, port: u16) -> Endpoint {
    endpoint(config, port, is_next_shared(), true)
}

/// A device that matches what comes over the network alone, as a card does.
#[allow(dead_code, reason = "not every program has such a device")]
pub(crate) fn beside_a_device(config: Config) -> Endpoint {
    let (tcp, host) = over_tcp::transport_as(DeviceId(2), 0);
    let own = LoopbackTransport::new(DeviceId(0), tcp.name(), 64 << 10, host).unwrap();
    let shared = memory(&tcp, host);
    Endpoint::new(config, vec![Box::new(own), Box::new(shared), listed_over(DeviceId(2), tcp, true)]).unwrap()
}

fn is_next_shared() -> bool {
    thread_local!(static OPENED: Cell<usize> = const { Cell::new(0) });
    OPENED.set(OPENED.get() + 1);
    !OPENED.get().is_multiple_of(3)
}

fn endpoint(config: Config, port: u16, is_shared: bool, is_listed: bool) -> Endpoint {
    let (tcp, host) = over_tcp::transport_as(DeviceId(if is_shared { 2 } else { 1 }), port);
    let own = LoopbackTransport::new(DeviceId(0), tcp.name(), 64 << 10, host).unwrap();
    let mut transports: Vec<Box<dyn Transport + Send>> = vec![Box::new(own)];
    if is_shared {
        transports.push(listed_over(DeviceId(1), memory(&tcp, host), is_listed));
    }
    let id = DeviceId(u8::try_from(transports.len()).unwrap());
    transports.push(listed_over(id, tcp, is_listed));
    Endpoint::new(config, transports).unwrap()
}

fn memory(tcp: &impl Transport, host: HostMemory) -> ShmTransport {
    let config = ShmConfig { id: DeviceId(1), ..ShmConfig::default() };
    ShmTransport::open(tcp.name(), config, host).unwrap()
}

fn listed_over<T: Transport + Send + 'static>(
    id: DeviceId,
    below: T,
    is_listed: bool,
) -> Box<dyn Transport + Send> {
    if !is_listed {
        return Box::new(below);
    }
    let config = SoftConfig { id, ..SoftConfig::matching(64) };
    Box::new(OverTransport::new(below, config).unwrap())
}
