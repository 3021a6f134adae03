//! Passive endpoints: how many may wait, and for how long.

use std::time::Duration;

use super::world::{LOOPBACK, World, host, open, paths};
use tagmatch::endpoint::{Address, Config, ConnectionEvent, Endpoint, Failure, Send, SendRefused};

#[test]
fn as_many_may_wait_as_call_and_each_is_served_once() {
    for backlog in [None, Some(128), Some(4)] {
        let mut world = World::new(Config::default());
        if let Some(backlog) = backlog {
            world.passive.set_backlog(backlog).unwrap();
        }
        // Where fewer may wait than call, the system tries again after a while for who finds no room.
        let callers = if backlog == Some(4) { 9 } else { 200 };
        for number in 0_u32..callers {
            world.call(Config::default(), &number.to_be_bytes());
        }
        // Nobody looks who is there; the callers have all been waiting when somebody does.
        for _ in 0..200 {
            world.step_endpoints();
        }
        let mut heard: Vec<u32> = Vec::new();
        for _ in 0..callers {
            let request = world.request();
            heard.push(u32::from_be_bytes(request.data().try_into().unwrap()));
            let called = world.add(Endpoint::called(Config::default(), request).unwrap());
            world.at(called).accept(b"").unwrap();
        }
        heard.sort_unstable();
        assert!(heard.into_iter().eq(0..callers));
        for caller in 0..callers {
            world.connected(usize::try_from(caller).unwrap());
        }
    }
}

#[test]
fn requests_that_wait_outlive_the_listener_that_told_of_them() {
    let mut world = World::new(Config::default());
    let caller = world.call(Config::default(), b"");
    let request = world.request();
    world.passive = paths().listening(LOOPBACK, &Config::default(), host()).unwrap();
    let called = world.add(Endpoint::called(Config::default(), request).unwrap());
    world.at(called).accept(b"").unwrap();
    world.connected(caller);
}

#[test]
fn whoever_says_nothing_has_its_time_and_whoever_has_asked_has_more() {
    let config = Config { connect_timeout: Duration::from_secs(5), ..Config::default() };
    let mut world = World::new(config);
    let silent = std::net::TcpStream::connect(address_of(world.passive.name())).unwrap();
    silent.set_nonblocking(true).unwrap();
    let caller = world.call(Config::default(), b"");
    world.settle();
    assert!(world.passive.next_deadline().is_some(), "whoever waits is to look again");
    for _ in 0..10 {
        world.skip(Duration::from_secs(1));
        world.step();
    }
    let end = std::io::Read::read(&mut &silent, &mut [0; 1]);
    assert!(!matches!(&end, Err(error) if error.kind() == std::io::ErrorKind::WouldBlock), "{end:?}");
    let request = world.request();
    let called = world.add(Endpoint::called(Config::default(), request).unwrap());
    world.at(called).accept(b"").unwrap();
    world.connected(caller);
}

#[test]
fn endpoints_of_the_other_kind_are_turned_away_at_once() {
    let mut world = World::new(Config::default());
    let mut datagram = paths().open(LOOPBACK, Config::default(), host()).unwrap();
    datagram.set_address(Address(1), world.passive.name()).unwrap();
    let send =
        super::message(tagmatch::endpoint::Space::Tagged, 1, super::memory(b"x"), Default::default(), 1);
    let send = Send { to: Address(1), ..send };
    let refused = world.until("it is turned away", |_| {
        datagram.progress(Duration::ZERO).unwrap();
        datagram.send(&send).err().filter(|error| *error != SendRefused::Again)
    });
    assert_eq!(refused, SendRefused::Unreachable(Failure::Refused));
    assert!(world.passive.poll_request().is_none());
    let caller = world.add(open(Config::default()));
    world.at(caller).connect(datagram.name(), b"").unwrap();
    let event = world.until("it is turned away too", |world| {
        datagram.progress(Duration::ZERO).unwrap();
        world.at(caller).poll_connection()
    });
    assert!(matches!(event, ConnectionEvent::Refused { .. }), "{event:?}");
}

/// Of a `sockaddr_in`.
pub(crate) fn address_of(name: &[u8]) -> std::net::SocketAddr {
    let ip: [u8; 4] = name[4..8].try_into().unwrap();
    (std::net::Ipv4Addr::from(ip), u16::from_be_bytes([name[2], name[3]])).into()
}
