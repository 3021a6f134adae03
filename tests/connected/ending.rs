//! How connections of connected endpoints end: shut down, closed, killed, or before they stood.

use std::process::{Command, Stdio};

use super::world::{CALLED, CALLER, Pair, World, bytes, host, memory, message, open, paths, post, read};
use tagmatch::endpoint::{
    Completed, Config, ConnectError, ConnectionEvent, Endpoint, Failure, Level, SendRefused, Space,
};

#[test]
fn b38_whoever_shuts_down_has_its_cancelled_completions_then_and_each_side_one_shutdown() {
    let Pair { mut world, .. } = Pair::new(Config::default());
    world.at(CALLED).post(&post(Space::Tagged, 1, 100, 1)).unwrap();
    world.send(CALLER, &message(Space::Tagged, 1, memory(b"there"), Level::Inject, 9));
    let (address, placed) = world.received(CALLED, 1);
    assert_eq!(read(address, placed), b"there");
    // A completion that is there already stays.
    world.at(CALLER).post(&post(Space::Untagged, 0, 100, 2)).unwrap();
    world.send(CALLED, &message(Space::Untagged, 0, memory(b"back"), Level::Delivery, 8));
    assert_eq!(world.completion(CALLED, 8), Completed::Sent);
    for context in 10..20 {
        let space = if context % 2 == 0 { Space::Tagged } else { Space::Untagged };
        world.at(CALLER).post(&post(space, 77, 100, context)).unwrap();
    }
    world.at(CALLED).post(&post(Space::Tagged, 5, 100, 3)).unwrap();
    world.at(CALLER).shutdown().unwrap();
    let told: Vec<_> = std::iter::from_fn(|| world.at(CALLER).poll_completion()).collect();
    let cancelled: Vec<u64> =
        told.iter().filter(|done| done.what == Completed::Cancelled).map(|done| done.context).collect();
    assert_eq!(cancelled, (10..20).collect::<Vec<_>>(), "before it returned, in their order: {told:?}");
    world.received(CALLER, 2);
    assert_eq!(world.at(CALLER).shutdown(), Err(ConnectError::NotNow));
    assert_eq!(world.event(CALLED), ConnectionEvent::Shutdown);
    assert_eq!(world.event(CALLER), ConnectionEvent::Shutdown, "it is no more");
    assert_eq!(world.completion(CALLED, 3), Completed::Cancelled, "nobody will send it");
    world.settle();
    assert_eq!(world.at(CALLED).poll_connection(), None, "once");
    assert_eq!(world.at(CALLER).poll_connection(), None, "once");
    for which in [CALLER, CALLED] {
        world.at(which).post(&post(Space::Tagged, 5, 100, 4)).unwrap();
        assert_eq!(world.completion(which, 4), Completed::Cancelled, "nobody will ever send it");
        let send = message(Space::Tagged, 1, memory(b"x"), Level::Inject, 1);
        let refused = world.at(which).send(&send);
        assert_eq!(refused, Err(SendRefused::Unreachable(Failure::NotConnected)));
        assert!(world.at(which).may_wait(), "nothing is left to do");
    }
}

#[test]
fn what_was_told_complete_before_a_shutdown_comes_and_is_received_after_it() {
    let Pair { mut world, .. } = Pair::new(Config::default());
    for tag in 0..200 {
        world.send(CALLER, &message(Space::Tagged, tag, memory(&bytes(tag, 3000)), Level::Inject, tag));
        assert_eq!(world.completion(CALLER, tag), Completed::Sent);
    }
    world.at(CALLER).shutdown().unwrap();
    assert_eq!(world.event(CALLED), ConnectionEvent::Shutdown);
    for tag in (0..200).rev() {
        world.at(CALLED).post(&post(Space::Tagged, tag, 3000, tag)).unwrap();
        let (address, placed) = world.received(CALLED, tag);
        assert_eq!(read(address, placed), bytes(tag, 3000));
    }
}

#[test]
fn a_shutdown_ends_what_is_under_way_both_ways_before_it_returns() {
    let Pair { mut world, .. } = Pair::new(Config::default());
    let long = 64 << 20;
    // One that waits to be read, one of which the other side is to tell, and one on its way in.
    world.send(CALLER, &message(Space::Tagged, 1, memory(&vec![1; long]), Level::Inject, 1));
    world.send(CALLER, &message(Space::Tagged, 2, memory(b"x"), Level::Match, 2));
    world.at(CALLER).post(&post(Space::Tagged, 3, long, 3)).unwrap();
    world.send(CALLED, &message(Space::Tagged, 3, memory(&vec![3; long]), Level::Inject, 30));
    world.at(CALLER).progress(std::time::Duration::ZERO).unwrap();
    world.at(CALLER).shutdown().unwrap();
    assert_eq!(world.at(CALLER).sends_in_progress(), 0);
    let mut told: Vec<_> = std::iter::from_fn(|| world.at(CALLER).poll_completion()).collect();
    told.sort_by_key(|done| done.context);
    let contexts: Vec<u64> = told.iter().map(|done| done.context).collect();
    assert_eq!(contexts, [1, 2, 3]);
    assert!(told[..2].iter().all(|done| done.what == Completed::Failed(Failure::Lost)), "{told:?}");
    assert_ne!(told[2].what, Completed::Sent);
    assert_eq!(world.event(CALLER), ConnectionEvent::Shutdown, "it is no more");
    assert_eq!(world.event(CALLED), ConnectionEvent::Shutdown);
    assert_eq!(world.completion(CALLED, 30), Completed::Failed(Failure::Lost));
    world.settle();
    assert_eq!((world.at(CALLED).poll_connection(), world.at(CALLER).poll_connection()), (None, None));
    assert!((1..=3).all(|context| world.told(CALLER, context).is_none()), "each was told once");
}

#[test]
fn b38_an_endpoint_that_is_closed_or_dropped_shuts_down_the_other_once() {
    for is_closed in [true, false] {
        let Pair { mut world, .. } = Pair::new(Config::default());
        world.at(CALLED).post(&post(Space::Tagged, 1, 100, 1)).unwrap();
        if is_closed {
            world.at(CALLER).close(std::time::Duration::ZERO);
            world.until("it is closed", |world| world.at(CALLER).is_closed().then_some(()));
        } else {
            world.drop_it(CALLER);
        }
        assert_eq!(world.event(CALLED), ConnectionEvent::Shutdown);
        assert_eq!(world.completion(CALLED, 1), Completed::Cancelled);
        world.settle();
        assert_eq!(world.at(CALLED).poll_connection(), None);
    }
}

#[test]
fn b38_both_may_shut_down_at_once_and_each_is_told_once() {
    let Pair { mut world, .. } = Pair::new(Config::default());
    world.at(CALLER).shutdown().unwrap();
    world.at(CALLED).shutdown().unwrap();
    assert_eq!(world.event(CALLED), ConnectionEvent::Shutdown);
    assert_eq!(world.event(CALLER), ConnectionEvent::Shutdown);
    world.settle();
    assert_eq!((world.at(CALLED).poll_connection(), world.at(CALLER).poll_connection()), (None, None));
}

#[test]
fn whoever_is_rejected_or_finds_nobody_is_told_why_and_its_receives_are_cancelled() {
    let mut world = World::new(Config::default());
    let rejected = world.call(Config::default(), b"please");
    let dropped = world.call(Config::default(), b"please");
    for which in [rejected, dropped] {
        world.at(which).post(&post(Space::Tagged, 1, 100, 1)).unwrap();
    }
    let mut requests = [world.request(), world.request()];
    requests.sort_by_key(|request| request.peer_name().to_vec());
    let first = world.at(rejected).name().to_vec();
    let [one, other] = requests;
    let (to_reject, to_drop) = if one.peer_name() == first { (one, other) } else { (other, one) };
    to_reject.reject(b"not today").unwrap();
    drop(to_drop);
    let data = b"not today".to_vec();
    assert_eq!(world.event(rejected), ConnectionEvent::Refused { failure: Failure::Rejected, data });
    let refused = |failure| ConnectionEvent::Refused { failure, data: Vec::new() };
    assert_eq!(world.event(dropped), refused(Failure::Lost));
    let nobody = world.add(open(Config::default()));
    let closed =
        paths().listening(super::world::LOOPBACK, &Config::default(), host()).unwrap().name().to_vec();
    world.at(nobody).post(&post(Space::Tagged, 1, 100, 1)).unwrap();
    world.at(nobody).connect(&closed, b"").unwrap();
    assert_eq!(world.event(nobody), refused(Failure::Refused));
    for which in [rejected, dropped, nobody] {
        assert_eq!(world.completion(which, 1), Completed::Cancelled);
        assert_eq!(world.at(which).poll_connection(), None);
    }
}

#[test]
fn a_caller_that_is_gone_cannot_be_accepted() {
    let mut world = World::new(Config::default());
    for is_seen in [true, false] {
        let caller = world.call(Config::default(), b"");
        let request = world.request();
        let called = world.add(Endpoint::called(Config::default(), request).unwrap());
        world.drop_it(caller);
        if is_seen {
            world.settle();
            assert_eq!(world.at(called).accept(b""), Err(ConnectError::Gone));
            assert_eq!(world.at(called).poll_connection(), None);
        } else {
            // Nobody has looked: it is connected, and shut down.
            world.at(called).accept(b"").unwrap();
            world.connected(called);
            assert_eq!(world.event(called), ConnectionEvent::Shutdown);
        }
    }
}

#[test]
fn b38_a_killed_process_is_one_shutdown_however_much_was_under_way() {
    for messages in [0, 3, 300] {
        let mut world = World::new(Config::default());
        let at: Vec<String> = world.passive.name().iter().map(u8::to_string).collect();
        let mut victim = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "ending::victim"])
            .env(TO, at.join(" "))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let request = world.request();
        let called = world.add(Endpoint::called(Config::default(), request).unwrap());
        world.at(called).accept(b"").unwrap();
        world.connected(called);
        world.at(called).post(&post(Space::Tagged, 1, 100, 999)).unwrap();
        world.received(called, 999);
        for context in 0..messages {
            let send = message(Space::Tagged, 2, memory(&bytes(context, 100_000)), Level::Match, context);
            if world.at(called).send(&send).is_err() {
                break;
            }
        }
        world.at(called).post(&post(Space::Tagged, 3, 100, 1000)).unwrap();
        victim.kill().unwrap();
        victim.wait().unwrap();
        assert_eq!(world.event(called), ConnectionEvent::Shutdown);
        assert_eq!(world.completion(called, 1000), Completed::Cancelled);
        world
            .until("all sends have ended", |world| (world.at(called).sends_in_progress() == 0).then_some(()));
        world.settle();
        assert_eq!(world.at(called).poll_connection(), None);
    }
}

/// Not a test where nobody asks for it: it calls, says that it is there, and waits to be killed.
#[test]
fn victim() {
    let Ok(to) = std::env::var(TO) else { return };
    let to: Vec<u8> = to.split(' ').map(|byte| byte.parse().unwrap()).collect();
    let mut endpoint = open(Config::default());
    endpoint.connect(&to, b"").unwrap();
    let mut has_said = false;
    let began = std::time::Instant::now();
    while began.elapsed() < std::time::Duration::from_secs(60) {
        let hello = message(Space::Tagged, 1, memory(b"here"), Level::Inject, 1);
        has_said = has_said || endpoint.send(&hello).is_ok();
        endpoint.progress(began.elapsed()).unwrap();
    }
    panic!("nobody has killed it");
}

const TO: &str = "TAGMATCH_TEST_CALLS";
