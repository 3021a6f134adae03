//! Waiting: who is woken by what, and what a waiter must not miss.

use std::cell::RefCell;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use super::endpoint::Side;
use super::*;
use crate::device::host_memory::HostMemory;
use crate::device::shm::{ShmConfig, ShmTransport};
use crate::device::transport::Payload;
use crate::endpoint::{Config, Endpoint, Level, Send, Space};
use crate::ids::Tag;
use crate::provider::error::fail;
use crate::provider::wait::WaitSet;

fn state_with_a_queue() -> (State, usize) {
    let mut state = State::default();
    let set = Arc::new(WaitSet::new().unwrap());
    let index = state.queues.insert(Queue::new(1, Some(set)));
    (state, index)
}

/// One that is reached through shared memory under this name.
fn endpoint(name: &str) -> Endpoint {
    // SAFETY: nothing is received into memory here, and what is sent is copied.
    let memory = unsafe { HostMemory::trusted() };
    let name = format!("{name} {}", std::process::id());
    let transport = ShmTransport::open(name.as_bytes(), ShmConfig::default(), memory).unwrap();
    Endpoint::new(Config::default(), vec![Box::new(transport)]).unwrap()
}

/// What its sends and its receives come to is in two queues.
fn bind(state: &mut State, endpoint: Endpoint, sends: usize, receives: usize) {
    let side = |queue| Side { queue: Some(queue), ..Side::default() };
    let index = state.endpoints.insert(EndpointState {
        connection: None,
        endpoint: Some(endpoint),
        vector: None,
        transmit: side(sends),
        receive: side(receives),
        remote: super::endpoint::RemoteCounters::default(),
        tells_peers: false,
        multi_receive_least: 64,
        inject_size: 64,
        has_cq_data: false,
        is_directed: [false; 2],
        source: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        tx_size: 64,
        rx_size: 64,
    });
    for queue in [sends, receives] {
        state.queues[queue].endpoints.push(index);
    }
}

/// As a queue's reader waits.
fn may_wait(state: &mut State, index: usize) -> bool {
    state.may_wait(Target::Queue(index), |state| state.queues.get(index).is_none_or(|q| !q.is_empty()))
}

#[test]
fn a_signal_forbids_waiting_until_somebody_takes_it() {
    let (mut state, index) = state_with_a_queue();
    assert!(may_wait(&mut state, index));
    state.queue(index).unwrap().waiting.signal();
    assert!(!may_wait(&mut state, index));
    assert!(!may_wait(&mut state, index), "the question alone took the signal");
    assert!(state.queue(index).unwrap().waiting.take_signal());
    assert!(may_wait(&mut state, index));
}

#[test]
fn a_queue_that_is_gone_is_not_waited_for() {
    let mut state = State::default();
    assert!(!may_wait(&mut state, 7));
    assert_eq!(state.read(7, 1, |_, _| {}), fail(abi::FI_EINVAL));
}

#[test]
fn who_sees_that_something_has_come_wakes_others_who_wait_for_it() {
    let (mut state, first) = state_with_a_queue();
    let second = state.queues.insert(Queue::new(1, Some(Arc::new(WaitSet::new().unwrap()))));
    let (own, mut peer) = (endpoint("own"), endpoint("peer"));
    peer.set_address(Address(0), own.name()).unwrap();
    bind(&mut state, own, first, second);
    let hello = Send {
        space: Space::Tagged,
        to: Address(0),
        tag: Tag(1),
        payload: Payload::Copied(b"hello"),
        cq_data: None,
        level: Level::Inject,
        more: false,
        context: 0,
        flags: 0,
    };
    while peer.send(&hello).is_err() || !may_wait(&mut state, first) {
        peer.progress(now()).unwrap();
        state.progress_all();
    }
    assert!(state.queues[first].waiting.is_armed());
    // It comes in the midst of the question whether one may wait for the other queue, whose asker perhaps does no more.
    let peer = RefCell::new(peer);
    let may_wait = state.may_wait(Target::Queue(second), |_| {
        peer.borrow_mut().send(&hello).unwrap();
        false
    });
    assert!(!may_wait);
    assert!(!state.queues[first].waiting.is_armed(), "nobody has told who waits");
}
