//! Three endpoints: all through shared memory, or one of them by the network alone; in software, with a list over every
//! path, and with a list over the network alone, as with a card.

#[path = "../../../src/device/tests/memory.rs"]
mod memory;
#[path = "../../../src/device/tests/rig.rs"]
mod rig;
#[path = "../traffic/mod.rs"]
mod traffic;

use std::net::{Ipv4Addr, SocketAddr};

use memory::{Memory, trusted};
use rig::{Random, pattern};
use tagmatch::endpoint::{Endpoint, Statistics};

use crate::device::loopback::LoopbackTransport;
use crate::device::shm::{ShmConfig, ShmTransport};
use crate::device::soft::SoftConfig;
use crate::device::soft::over::OverTransport;
use crate::device::tcp::{TcpConfig, TcpTransport};
use crate::device::transport::Transport;
use crate::ids::DeviceId;
use traffic::{EAGER_LIMIT, TAGS, Traffic};

/// Which paths have a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lists {
    None,
    OverTheNetwork,
    OverAll,
}

fn matched<T: Transport + Send + 'static>(
    id: DeviceId,
    below: T,
    is_listed: bool,
) -> Box<dyn Transport + Send> {
    if !is_listed {
        return Box::new(below);
    }
    let config = SoftConfig { id, ..SoftConfig::matching(TAGS) };
    Box::new(OverTransport::new(below, config).unwrap())
}

fn endpoint(lists: Lists, is_shared: bool) -> Endpoint {
    let id = DeviceId(if is_shared { 2 } else { 1 });
    let listen = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
    let tcp = TcpConfig { id, eager_limit: EAGER_LIMIT, ..TcpConfig::new(listen) };
    let tcp = TcpTransport::open(tcp, trusted()).unwrap();
    let own = LoopbackTransport::new(DeviceId(0), tcp.name(), EAGER_LIMIT, trusted()).unwrap();
    let mut transports: Vec<Box<dyn Transport + Send>> = vec![Box::new(own)];
    if is_shared {
        let config = ShmConfig { id: DeviceId(1), eager_limit: EAGER_LIMIT, ..ShmConfig::default() };
        let shm = ShmTransport::open(tcp.name(), config, trusted()).unwrap();
        transports.push(matched(DeviceId(1), shm, lists == Lists::OverAll));
    }
    transports.push(matched(id, tcp, lists != Lists::None));
    Endpoint::new(traffic::config(), transports).unwrap()
}

/// Traffic between those that share memory and those that do not.
fn run(lists: Lists, are_shared: [bool; 3]) -> Statistics {
    let happened = Traffic::run(are_shared.map(|is_shared| endpoint(lists, is_shared)));
    let sharing = are_shared.iter().filter(|is_shared| **is_shared).count() as u64;
    // Each has one to each other one, and one to itself.
    assert_eq!(happened.connected_shm, sharing * (sharing - 1), "{happened:?}");
    assert_eq!(happened.connected, 9, "{happened:?}");
    assert!(happened.unexpected > 1000 && happened.unexpected < 9000, "{happened:?}");
    assert_eq!(happened.matched_by_device > 0, lists != Lists::None, "{happened:?}");
    happened
}

const ALL: [bool; 3] = [true; 3];
const TWO: [bool; 3] = [true, true, false];

#[test]
fn endpoints_that_share_memory_match_in_software() {
    assert!(run(Lists::None, ALL).sent_segmented > 0);
}

#[test]
fn endpoints_that_share_memory_match_by_lists() {
    run(Lists::OverAll, ALL);
}

#[test]
fn endpoints_on_mixed_paths_match_in_software() {
    assert!(run(Lists::None, TWO).sent_segmented > 0);
}

#[test]
fn endpoints_on_mixed_paths_match_by_lists_over_all_of_them() {
    run(Lists::OverAll, TWO);
}

#[test]
fn endpoints_on_mixed_paths_match_by_a_list_over_the_network_alone() {
    run(Lists::OverTheNetwork, TWO);
}
