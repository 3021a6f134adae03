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

#[path = "endpoints.rs"]
mod endpoints;
#[path = "faults.rs"]
mod faults;
#[path = "../traffic/mod.rs"]
mod traffic;

pub(super) use memory::{Memory, trusted};
pub(super) use rig::{Heard, Policy, RECEIVED_FROM, Random, Rig, pattern, untagged};

use std::net::SocketAddr;

use crate::device::soft::SoftConfig;
use crate::device::soft::over::OverTransport;
use crate::device::transport::Transport;
use crate::device::verbs::{TagMatching, VerbsConfig, VerbsTransport, VerbsTransportConfig};
use crate::ids::DeviceId;
use crate::inside::{RoceDevice, inside};

/// Run tests over verbs, from the first device to the second.
macro_rules! over_every_transport {
    ($($name:ident),* $(,)?) => {
        mod over_rxe {
            $(#[test]
            fn $name() {
                crate::inside::inside(concat!(module_path!(), "::", stringify!($name)), |devices| {
                    super::$name(crate::device::tests::over_rxe(devices));
                });
            })*
        }
    };
}
use over_every_transport;

/// Run tests with the list over verbs.
macro_rules! over_every_listed_transport {
    ($($name:ident),* $(,)?) => {
        mod over_rxe {
            $(#[test]
            fn $name() {
                crate::inside::inside(concat!(module_path!(), "::", stringify!($name)), |devices| {
                    super::$name(crate::device::tests::listed_over_rxe(devices, super::TAGS));
                });
            })*
        }
    };
}
use over_every_listed_transport;

/// Here the device reads.
macro_rules! where_the_transport_reads {
    ($($name:ident),* $(,)?) => {
        $(const _: fn(Rig) = $name;)*
    };
}
use where_the_transport_reads;
use where_the_transport_reads as where_the_listed_transport_reads;

/// What is other than usual about a device.
type Change<'a> = &'a dyn Fn(VerbsConfig) -> VerbsConfig;

/// On this device, by this number, with its address for both the exchange and the packets.
fn open(device: &RoceDevice, id: DeviceId, eager_limit: u64) -> VerbsTransport {
    open_changed(device, id, eager_limit, &|config| config)
}

fn open_changed(device: &RoceDevice, id: DeviceId, eager_limit: u64, change: Change<'_>) -> VerbsTransport {
    let config = VerbsConfig {
        id,
        device: Some(device.name.clone()),
        address: Some(device.address),
        tag_matching: TagMatching::Off,
        eager_limit: u32::try_from(eager_limit).unwrap(),
        unexpected_buffers: 64,
        spare_buffers: 16,
        send_buffers: 32,
        peers: 4,
        ..VerbsConfig::default()
    };
    let listen = SocketAddr::from((device.address, 0));
    VerbsTransport::open(
        VerbsTransportConfig { device: change(config), ..VerbsTransportConfig::new(listen) },
        trusted(),
    )
    .unwrap()
}

fn over_rxe(devices: &[RoceDevice]) -> Rig {
    let last = devices.last().unwrap();
    let ends: Vec<Box<dyn Transport>> = vec![
        Box::new(open(&devices[0], DeviceId(0), rig::EAGER_LIMIT)),
        Box::new(open(last, DeviceId(0), rig::EAGER_LIMIT)),
    ];
    Rig::over(ends, Box::new(()))
}

/// The receiver has a list of so many tags.
fn listed_over_rxe(devices: &[RoceDevice], tags: u32) -> Rig {
    let receiver = open(devices.last().unwrap(), DeviceId(0), rig::EAGER_LIMIT);
    let over = OverTransport::new(receiver, SoftConfig::matching(tags)).unwrap();
    let ends: Vec<Box<dyn Transport>> =
        vec![Box::new(open(&devices[0], DeviceId(0), rig::EAGER_LIMIT)), Box::new(over)];
    Rig::over(ends, Box::new(()))
}
