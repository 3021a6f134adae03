//! A peer is killed (SIGKILL) at a moment left to chance, 200 times (1,000 times in `.ci/nightly`): a process of its own over
//! TCP, in software and with the soft TM-SRQ, and over shared memory.
#![cfg(target_os = "linux")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are outside test functions")]

#[path = "common/counting.rs"]
mod counting;
#[path = "endpoint/over_tcp.rs"]
mod over;
#[path = "killed/rounds.rs"]
mod rounds;

use tagmatch::device::loopback::LoopbackTransport;
use tagmatch::device::shm::{ShmConfig, ShmTransport};
use tagmatch::device::soft::SoftConfig;
use tagmatch::device::soft::over::OverTransport;
use tagmatch::device::transport::Transport;
use tagmatch::endpoint::{Config, Endpoint};
use tagmatch::ids::DeviceId;

fn open(over: &str) -> Endpoint {
    if over.is_empty() {
        return over::open(Config::default(), 0);
    }
    let is_shared = over == SHARED;
    let (tcp, host) = over::transport_as(DeviceId(if is_shared { 2 } else { 1 }), 0);
    let own = LoopbackTransport::new(DeviceId(0), tcp.name(), 64 << 10, host).unwrap();
    let mut transports: Vec<Box<dyn Transport + Send>> = vec![Box::new(own)];
    if is_shared {
        let config = ShmConfig { id: DeviceId(1), ..ShmConfig::default() };
        transports.push(Box::new(ShmTransport::open(tcp.name(), config, host).unwrap()));
        transports.push(Box::new(tcp));
    } else {
        let config = SoftConfig { id: DeviceId(1), ..SoftConfig::matching(TAGS) };
        transports.push(Box::new(OverTransport::new(tcp, config).unwrap()));
    }
    Endpoint::new(Config::default(), transports).unwrap()
}

/// Here, and as it is.
fn inside(_name: &str, test: impl FnOnce()) {
    test();
}

#[test]
fn a_peer_killed_at_any_moment_ends_its_own_operations_once_and_nothing_else_where_a_list_matches() {
    rounds::kill_peers(LISTED);
}

#[test]
fn a_peer_killed_at_any_moment_ends_its_own_operations_once_and_nothing_else_over_shared_memory() {
    rounds::kill_peers(SHARED);
}

const LISTED: &str = "with a list";
const SHARED: &str = "with shared memory";

const ROUNDS: u64 = 200;
/// Bytes that half of the kills may add: tables that grow once.
const MORE_MAX: isize = 4 << 10;
const TAGS: u32 = 64;
