//! Connected endpoints over TCP, as their users see them (`fi_cm(3)`).
#![cfg(target_os = "linux")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are outside test functions")]

#[path = "connected/coming.rs"]
mod coming;
#[path = "connected/ending.rs"]
mod ending;
#[path = "connected/hostile.rs"]
mod hostile;
#[path = "connected/listening.rs"]
mod listening;
#[path = "connected/world.rs"]
mod world;

use tagmatch::endpoint::{
    Completed, Config, ConnectError, ConnectionEvent, Endpoint, Failure, Level, SendRefused, Space,
};
use world::{CALLED, CALLER, Pair, World, bytes, memory, message, open, post, read};

#[test]
fn both_sides_are_told_once_with_the_data_of_the_other_and_know_the_same_addresses() {
    let mut world = World::new(Config::default());
    let caller = world.call(Config::default(), b"from the caller");
    let request = world.request();
    assert_eq!(request.data(), b"from the caller");
    assert_eq!(request.name(), world.passive.name());
    let caller_name = request.peer_name().to_vec();
    let called = world.add(Endpoint::called(Config::default(), request).unwrap());
    assert_eq!(world.at(called).peer_name(), Some(&*caller_name));
    world.at(called).accept(b"from the called").unwrap();
    assert_eq!(world.event(called), ConnectionEvent::Connected { data: Vec::new() });
    let data = b"from the called".to_vec();
    assert_eq!(world.event(caller), ConnectionEvent::Connected { data });
    assert_eq!(world.at(caller).name(), caller_name);
    let listens_at = world.passive.name().to_vec();
    assert_eq!(world.at(caller).peer_name(), Some(&*listens_at));
    assert_eq!(world.at(called).name(), listens_at);
    world.settle();
    assert_eq!((world.at(caller).poll_connection(), world.at(called).poll_connection()), (None, None));
}

#[test]
fn messages_of_both_kinds_and_of_all_lengths_pass_both_ways_in_order() {
    let Pair { mut world, .. } = Pair::new(Config::default());
    let lengths = [0, 1, 64, 65, 1000, 16 << 10, (16 << 10) + 1, 300_000, 3 << 20];
    for (from, to) in [(CALLER, CALLED), (CALLED, CALLER)] {
        for space in [Space::Tagged, Space::Untagged] {
            for (tag, &length) in (0..).zip(&lengths) {
                world.at(to).post(&post(space, tag, length, tag)).unwrap();
            }
            for (tag, &length) in (0..).zip(&lengths) {
                let send = message(space, tag, memory(&bytes(tag, length)), Level::Delivery, 100 + tag);
                world.send(from, &send);
            }
            for (tag, &length) in (0..).zip(&lengths) {
                let (address, placed) = world.received(to, tag);
                assert_eq!(read(address, placed), bytes(tag, length), "{space:?} {length}");
                assert_eq!(world.completion(from, 100 + tag), Completed::Sent);
            }
        }
    }
}

#[test]
fn receives_that_were_posted_before_the_connection_take_its_messages_on_both_sides() {
    let mut world = World::new(Config::default());
    let caller = world.add(open(Config::default()));
    world.at(caller).post(&post(Space::Tagged, 7, 100, 1)).unwrap();
    world.at(caller).post(&post(Space::Untagged, 0, 100, 2)).unwrap();
    world.connect(caller, b"");
    let request = world.request();
    let called = world.add(Endpoint::called(Config::default(), request).unwrap());
    world.at(called).post(&post(Space::Tagged, 8, 100, 3)).unwrap();
    world.settle();
    world.at(called).accept(b"").unwrap();
    // At once: whoever has accepted is connected.
    let to_caller = |space, tag| message(space, tag, memory(b"to the caller"), Level::Inject, 50);
    world.send(called, &to_caller(Space::Tagged, 7));
    world.send(called, &to_caller(Space::Untagged, 0));
    world.connected(caller);
    world.send(caller, &message(Space::Tagged, 8, memory(b"to the called"), Level::Inject, 51));
    for (at, context, said) in
        [(caller, 1, b"to the caller"), (caller, 2, b"to the caller"), (called, 3, b"to the called")]
    {
        let (address, placed) = world.received(at, context);
        assert_eq!(read(address, placed), said);
    }
}

#[test]
fn b37_data_comes_as_it_was_said_and_what_is_too_much_is_left_out_in_silence() {
    let mut world = World::new(Config::default());
    let all: Vec<u8> = (1..=200).collect();
    for length in [0, 1, 2, 7, 63, 64, 65, 200] {
        let (said, heard) = (&all[..length], all[..length.min(64)].to_vec());
        let caller = world.call(Config::default(), said);
        let request = world.request();
        assert_eq!(request.data(), heard);
        let called = world.add(Endpoint::called(Config::default(), request).unwrap());
        world.at(called).accept(said).unwrap();
        assert_eq!(world.event(caller), ConnectionEvent::Connected { data: heard.clone() });
        world.connected(called);
        let other = world.call(Config::default(), b"");
        world.request().reject(said).unwrap();
        assert_eq!(world.event(other), ConnectionEvent::Refused { failure: Failure::Rejected, data: heard });
    }
}

#[test]
fn an_endpoint_connects_once_in_its_life_and_no_send_connects_it() {
    let mut world = World::new(Config::default());
    let caller = world.add(open(Config::default()));
    let to = world.passive.name().to_vec();
    let send = message(Space::Tagged, 1, memory(b"x"), Level::Inject, 1);
    let not_connected = Err(SendRefused::Unreachable(Failure::NotConnected));
    assert_eq!(world.at(caller).send(&send), not_connected, "nobody is known");
    assert_eq!(world.at(caller).accept(b""), Err(ConnectError::NotNow));
    assert_eq!(world.at(caller).shutdown(), Err(ConnectError::NotNow));
    world.connect(caller, b"");
    assert_eq!(world.at(caller).connect(&to, b""), Err(ConnectError::NotNow));
    assert_eq!(world.at(caller).send(&send), not_connected);
    world.request().reject(b"").unwrap();
    assert!(matches!(world.event(caller), ConnectionEvent::Refused { .. }));
    assert_eq!(world.at(caller).connect(&to, b""), Err(ConnectError::NotNow));
    for _ in 0..100 {
        assert_eq!(world.at(caller).send(&send), not_connected);
        world.step();
    }
    assert!(world.passive.poll_request().is_none(), "nobody has called again");
    let called = world.call_and_accept();
    assert_eq!(world.at(called).accept(b""), Err(ConnectError::NotNow));
    assert_eq!(world.at(called).connect(&to, b""), Err(ConnectError::NotNow));
}

#[test]
fn whoever_holds_the_key_connects_and_nobody_else_is_heard_of() {
    let key = |byte| Config { job_key: Some(vec![byte; 16]), ..Config::default() };
    for stranger in [key(2), Config::default()] {
        let mut world = World::new(key(1));
        let other = world.call(stranger, b"let me in");
        let refused = ConnectionEvent::Refused { failure: Failure::NotAccepted, data: Vec::new() };
        assert_eq!(world.event(other), refused);
        assert!(world.passive.poll_request().is_none());
        let caller = world.call(key(1), b"let me in");
        let request = world.request();
        let called = world.add(Endpoint::called(key(1), request).unwrap());
        world.at(called).accept(b"you are").unwrap();
        assert_eq!(world.event(caller), ConnectionEvent::Connected { data: b"you are".to_vec() });
        world.at(called).post(&post(Space::Tagged, 3, 10, 1)).unwrap();
        world.send(caller, &message(Space::Tagged, 3, memory(b"in"), Level::Inject, 1));
        world.received(called, 1);
    }
}

#[test]
fn who_has_the_key_does_not_connect_to_a_listener_without() {
    let mut world = World::new(Config::default());
    let config = Config { job_key: Some(vec![1; 16]), ..Config::default() };
    let caller = world.call(config.clone(), b"");
    let request = world.request();
    let called = world.add(Endpoint::called(Config::default(), request).unwrap());
    world.at(called).accept(b"").unwrap();
    let refused = ConnectionEvent::Refused { failure: Failure::NotAccepted, data: Vec::new() };
    assert_eq!(world.event(caller), refused, "nobody has asked for the proof");
    world.connected(called);
    assert_eq!(world.event(called), ConnectionEvent::Shutdown);
    let short = Config { job_key: Some(vec![1; 15]), ..Config::default() };
    let listening = world::paths().listening(world::LOOPBACK, &short, world::host());
    assert!(listening.is_err(), "a key that keeps nobody out");
}

#[test]
fn an_endpoint_calls_from_the_address_that_it_was_given() {
    let mut world = World::new(Config::default());
    let caller = world.add(open(Config::default()));
    let taken = world.passive.name().to_vec();
    assert!(matches!(world.at(caller).set_name(&taken), Err(ConnectError::System { .. })));
    assert!(matches!(world.at(caller).set_name(b"nowhere"), Err(ConnectError::Address(_))));
    let any = [&2_u16.to_ne_bytes()[..], &[0, 0, 127, 0, 0, 1], &[0; 8]].concat();
    world.at(caller).set_name(&any).unwrap();
    let name = world.at(caller).name().to_vec();
    assert_ne!(name, any, "a port that was free");
    world.connect(caller, b"");
    assert_eq!(world.at(caller).set_name(&any), Err(ConnectError::NotNow));
    assert_eq!(world.request().peer_name(), name);
}
