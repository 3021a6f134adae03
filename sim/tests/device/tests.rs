//! The rigs of this binary, and the tests of every transport.

#[path = "../../../src/device/tests/memory.rs"]
mod memory;
#[path = "../../../src/device/tests/rig.rs"]
mod rig;

#[path = "../../../src/device/tests/arrivals.rs"]
mod arrivals;
#[path = "../../../src/device/tests/over.rs"]
mod over;
#[path = "../../../src/device/tests/rendezvous.rs"]
mod rendezvous;
#[path = "../../../src/device/tests/segments.rs"]
mod segments;

mod alone;
mod out;

pub(super) use memory::{Memory, trusted};
pub(super) use rig::{Heard, Policy, RECEIVED_FROM, Random, Rig, pattern, untagged};

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use crate::device::soft::SoftConfig;
use crate::device::soft::over::OverTransport;
use crate::device::transport::Transport;
use crate::device::verbs::{TagMatching, VerbsConfig, VerbsTransport, VerbsTransportConfig};
use tagmatch_sim::hca::HcaConfig;
use tagmatch_sim::hca_abi::{Drive, HcaControl};

/// Run tests over verbs.
macro_rules! over_every_transport {
    ($($name:ident),* $(,)?) => {
        mod over_verbs {
            $(#[test]
            fn $name() {
                super::$name(crate::device::tests::over_verbs(Default::default()));
            })*
        }
        mod over_verbs_on_ethernet {
            $(#[test]
            fn $name() {
                super::$name(crate::device::tests::over_verbs(tagmatch_sim::hca::HcaConfig::default().on_ethernet()));
            })*
        }
    };
}
use over_every_transport;

/// Run tests with the list over verbs.
macro_rules! over_every_listed_transport {
    ($($name:ident),* $(,)?) => {
        mod over_verbs {
            $(#[test]
            fn $name() {
                super::$name(crate::device::tests::listed_over_verbs(super::TAGS));
            })*
        }
    };
}
use over_every_listed_transport;

/// Here the card reads.
macro_rules! where_the_transport_reads {
    ($($name:ident),* $(,)?) => {
        $(const _: fn(Rig) = $name;)*
    };
}
#[path = "../../../src/device/tests/ports.rs"]
mod ports;

use where_the_transport_reads;
use where_the_transport_reads as where_the_listed_transport_reads;

fn open(hca: &HcaControl) -> VerbsTransport {
    open_with(hca, VerbsConfig { unexpected_buffers: 64, spare_buffers: 16, ..VerbsConfig::default() })
}

/// With what of this configuration does not concern sizes of these tests.
fn open_with(hca: &HcaControl, config: VerbsConfig) -> VerbsTransport {
    let eager_limit = u32::try_from(rig::EAGER_LIMIT).unwrap();
    open_as(hca, VerbsConfig { eager_limit, send_buffers: 32, peers: 4, ..config })
}

fn open_as(hca: &HcaControl, config: VerbsConfig) -> VerbsTransport {
    open_exactly(hca, VerbsConfig { tag_matching: TagMatching::Off, ..config })
}

/// With this configuration, tag matching and all.
fn open_exactly(hca: &HcaControl, config: VerbsConfig) -> VerbsTransport {
    open_lingering(hca, config, None)
}

/// One at which memory that was read stays registered for so long.
fn open_lingering(hca: &HcaControl, config: VerbsConfig, linger: Option<Duration>) -> VerbsTransport {
    let device = VerbsConfig { device: Some(hca.name().to_owned()), ..config };
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let config = VerbsTransportConfig { device, linger, ..VerbsTransportConfig::new(listen) };
    VerbsTransport::open(config, trusted()).unwrap()
}

fn over_verbs(config: HcaConfig) -> Rig {
    let hca = HcaControl::new(config, Drive::Thread).unwrap();
    connected(vec![Box::new(open(&hca)), Box::new(open(&hca))], hca)
}

/// Over these, once messages go through their queue pairs.
fn connected(ends: Vec<Box<dyn Transport>>, hca: HcaControl) -> Rig {
    let mut rig = Rig::over(ends, Box::new(hca));
    rig.ear().policy = Policy::Discard;
    rig.send_untagged(1, b"");
    rig.until_arrived(1);
    rig.ear().policy = Policy::Hold;
    rig.ear().heard.clear();
    rig.sender_ear().heard.clear();
    rig
}

/// The receiver has a list of so many tags.
fn listed_over_verbs(tags: u32) -> Rig {
    let hca = HcaControl::new(HcaConfig::default(), Drive::Thread).unwrap();
    let listed = OverTransport::new(open(&hca), SoftConfig::matching(tags)).unwrap();
    connected(vec![Box::new(open(&hca)), Box::new(listed)], hca)
}
