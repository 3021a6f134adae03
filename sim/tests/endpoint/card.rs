//! One simulated card for all endpoints of this process, moved on by a thread.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::OnceLock;

use tagmatch::device::host_memory::HostMemory;
use tagmatch::device::loopback::LoopbackTransport;
use tagmatch::device::soft::SoftConfig;
use tagmatch::device::soft::over::OverTransport;
use tagmatch::device::transport::Transport;
use tagmatch::device::verbs::{TagMatching, VerbsConfig, VerbsTransport, VerbsTransportConfig};
use tagmatch::endpoint::{Config, Endpoint};
use tagmatch::ids::DeviceId;
use tagmatch_sim::hca::HcaConfig;
use tagmatch_sim::hca_abi::{Drive, HcaControl};

/// Listening at this port of this host; 0: any. The card carries messages and matches none.
pub(crate) fn plain(config: Config, port: u16) -> Endpoint {
    over(Box::new(transport(port, TagMatching::Off)), config)
}

/// The same, and the soft TM-SRQ over it.
pub(crate) fn modelled(config: Config, port: u16) -> Endpoint {
    let soft = SoftConfig { id: DeviceId(1), ..SoftConfig::matching(64) };
    over(Box::new(OverTransport::new(transport(port, TagMatching::Off), soft).unwrap()), config)
}

/// The card matches.
pub(crate) fn matching(config: Config, port: u16) -> Endpoint {
    over(Box::new(transport(port, TagMatching::Required)), config)
}

/// The same, on this card.
pub(crate) fn matching_on(card: &HcaControl, config: Config) -> Endpoint {
    over(Box::new(transport_on(card, 0, TagMatching::Required)), config)
}

/// Without a way to itself but the card.
pub(crate) fn alone(config: Config, tag_matching: TagMatching) -> Endpoint {
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Endpoint::new(config, vec![Box::new(listening(card(), listen, DeviceId(0), tag_matching))]).unwrap()
}

fn card() -> &'static HcaControl {
    static CARD: OnceLock<HcaControl> = OnceLock::new();
    CARD.get_or_init(|| HcaControl::new(HcaConfig::default(), Drive::Thread).unwrap())
}

fn transport(port: u16, tag_matching: TagMatching) -> VerbsTransport {
    transport_on(card(), port, tag_matching)
}

fn transport_on(card: &HcaControl, port: u16, tag_matching: TagMatching) -> VerbsTransport {
    listening(card, SocketAddr::from((Ipv4Addr::LOCALHOST, port)), DeviceId(1), tag_matching)
}

fn listening(
    card: &HcaControl,
    listen: SocketAddr,
    id: DeviceId,
    tag_matching: TagMatching,
) -> VerbsTransport {
    let device = VerbsConfig {
        id,
        device: Some(card.name().to_owned()),
        tag_matching,
        tags: 64,
        peers: 16,
        ..VerbsConfig::default()
    };
    let config = VerbsTransportConfig { device, ..VerbsTransportConfig::new(listen) };
    // SAFETY: every buffer of these tests stays to the end of the process, or is copied.
    VerbsTransport::open(config, unsafe { HostMemory::trusted() }).unwrap()
}

fn over(transport: Box<dyn Transport + Send>, config: Config) -> Endpoint {
    // SAFETY: as above.
    let host = unsafe { HostMemory::trusted() };
    let own = LoopbackTransport::new(DeviceId(0), transport.name(), 8192, host).unwrap();
    Endpoint::new(config, vec![Box::new(own), transport]).unwrap()
}
