//! Endpoints over verbs on the card under this process; and tests that run again where there is one.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};

use tagmatch::device::host_memory::HostMemory;
use tagmatch::device::loopback::LoopbackTransport;
use tagmatch::device::transport::Transport as _;
use tagmatch::device::verbs::{TagMatching, VerbsConfig, VerbsTransport, VerbsTransportConfig};
use tagmatch::endpoint::{Config, Endpoint};
use tagmatch::ids::DeviceId;

use crate::common::Fabric;

/// Listening at this port of this host; 0: any.
pub(crate) fn open(config: Config, port: u16) -> Endpoint {
    let is_matching = std::env::var(MATCHING).is_ok_and(|is| is == "yes");
    let tag_matching = if is_matching { TagMatching::Required } else { TagMatching::Off };
    let device = VerbsConfig { id: DeviceId(1), tag_matching, tags: 64, peers: 16, ..VerbsConfig::default() };
    let listen = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port);
    let config_below = VerbsTransportConfig { device, ..VerbsTransportConfig::new(listen) };
    // SAFETY: every buffer of these tests stays to the end of the process, or is copied.
    let host = unsafe { HostMemory::trusted() };
    let verbs = VerbsTransport::open(config_below, host).unwrap();
    let own = LoopbackTransport::new(DeviceId(0), verbs.name(), 8192, host).unwrap();
    Endpoint::new(config, vec![Box::new(own), Box::new(verbs)]).unwrap()
}

/// Run the test of this name in a process on a card: one that matches, and one that does not.
pub(crate) fn inside(name: &str, test: impl FnOnce()) {
    if std::env::var_os(MATCHING).is_some() {
        return test();
    }
    let itself = std::env::current_exe().unwrap();
    let itself = itself.to_str().unwrap();
    for is_matching in ["no", "yes"] {
        // Tests run side by side.
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let mut fabric = Fabric::new(&format!("card{}", NUMBER.fetch_add(1, Ordering::Relaxed)));
        fabric.set(MATCHING, is_matching);
        let said = fabric.run(&[itself, "--exact", name, "--nocapture"]);
        assert!(said.contains("1 passed"), "{said}");
    }
}

const MATCHING: &str = "TAGMATCH_TEST_MATCHING";
