//! How connections end, as an application sees it.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::host::{End, Event, Host, Listener, connected_pair};
use tagmatch::provider::abi;

use super::common::minus;

/// `FI_ECANCELED`.
const CANCELLED: i32 = 125;
/// `FI_ECONNRESET`.
const RESET: i32 = 104;
/// The name of whom the process calls that is killed.
const TO: &str = "TAGMATCH_TEST_CONNECTS_TO";

/// The next two events say so, in any order.
fn both_are_shut_down(host: &Host, one: &End<'_>, other: &End<'_>) {
    let mut told = [host.event(), host.event()];
    told.sort_by_key(|event| event.is_of(other.ep));
    assert_eq!(told, [shutdown_of(one), shutdown_of(other)]);
}

fn shutdown_of(end: &End<'_>) -> Event {
    Event::Shutdown { of: end.ep.cast() }
}

#[test]
fn b38_a_shutdown_writes_what_it_cancels_before_it_returns_and_each_side_is_told_once() {
    let host = Host::new();
    let listener = Listener::new(&host);
    let (client, server) = connected_pair(&host, &listener);
    let (mut one, mut other, mut taken) = ([0; 10], [0; 10], [0; 10]);
    assert_eq!(server.receive(Some(1), &mut taken, 5), 0);
    assert_eq!(client.send(Some(1), b"before", 6), 0);
    assert_eq!(server.completion(&client), 5);
    assert_eq!(client.receive(Some(1), &mut one, 1), 0);
    assert_eq!(client.receive(None, &mut other, 2), 0);
    let mut left = [0; 10];
    assert_eq!(server.receive(Some(9), &mut left, 7), 0);
    assert_eq!(client.shutdown(0), 0);
    assert_eq!(client.told(), [(6, 0), (1, CANCELLED), (2, CANCELLED)], "in order, what was there first");
    both_are_shut_down(&host, &client, &server);
    assert_eq!(server.told(), [(7, CANCELLED)]);
    assert!(host.is_silent(), "once");
    assert_eq!(client.shutdown(0), 0, "it is over");
    assert_eq!(server.shutdown(0), 0, "it is over");
    assert_eq!(server.send(Some(1), b"behind", 8), minus(abi::FI_ENOTCONN));
    assert_eq!((&taken[..6], client.told(), server.told()), (&b"before"[..], vec![], vec![]));
    assert!(host.is_silent());
}

#[test]
fn b38_an_endpoint_that_is_closed_shuts_down_the_other_once_and_its_own_events_go_with_it() {
    let host = Host::new();
    let listener = Listener::new(&host);
    let (client, server) = connected_pair(&host, &listener);
    drop(client);
    assert_eq!(host.event(), shutdown_of(&server));
    assert!(host.is_silent());
    // An event that nobody has read names an endpoint that is closed.
    let (client, server) = connected_pair(&host, &listener);
    assert_eq!(client.shutdown(0), 0);
    host.until_something();
    drop((client, server));
    assert!(host.is_silent());
}

#[test]
fn b38_both_sides_shut_down_at_once_and_each_is_told_once() {
    let host = Host::new();
    let listener = Listener::new(&host);
    let (client, server) = connected_pair(&host, &listener);
    assert_eq!((client.shutdown(0), server.shutdown(0)), (0, 0));
    both_are_shut_down(&host, &client, &server);
    assert!(host.is_silent());
}

/// In a process of its own: it calls, says something, and goes on until it is killed.
#[test]
fn victim() {
    let Ok(name) = std::env::var(TO) else { return };
    let name: Vec<u8> = name.split(' ').map(|byte| byte.parse().unwrap()).collect();
    let host = Host::new();
    let client = host.endpoint();
    assert_eq!(client.connect(&name, b""), 0);
    assert!(matches!(host.event(), Event::Connected { .. }));
    assert_eq!(client.send(Some(1), b"here", 1), 0);
    let end = Instant::now() + Duration::from_secs(60);
    while Instant::now() < end {
        host.is_silent();
    }
}

fn start(listener: &Listener) -> Child {
    let prefix = module_path!().split_once("::").map_or("", |(_, rest)| rest);
    let name: Vec<String> = listener.name().iter().map(u8::to_string).collect();
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("{prefix}::victim")])
        .env(TO, name.join(" "))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// What is told until so many operations have ended.
fn ended(host: &Host, end: &End<'_>, count: usize) -> Vec<(u64, i32)> {
    let (mut all, until) = (Vec::new(), Instant::now() + Duration::from_secs(60));
    while all.len() < count {
        assert!(Instant::now() < until, "only {all:?}");
        assert!(host.read_into(&mut []).0 < 0, "an event");
        all.extend(end.told());
    }
    all.sort_unstable();
    all
}

#[test]
fn b38_a_killed_process_is_one_shutdown_and_each_operation_with_it_ends_once() {
    let host = Host::new();
    let listener = Listener::new(&host);
    let long = vec![7_u8; 4 << 20];
    for _ in 0..4 {
        let mut child = start(&listener);
        let (request, _) = host.request(&listener);
        let server = host.endpoint_for(request);
        server.enable();
        let (mut first, mut never) = ([0; 10], [0; 10]);
        assert_eq!(server.receive(Some(1), &mut first, 1), 0);
        assert_eq!(server.accept(b""), 0);
        assert_eq!(host.event(), Event::Connected { of: server.ep.cast(), data: Vec::new() });
        assert_eq!(ended(&host, &server, 1), [(1, 0)]);
        assert_eq!(&first[..4], b"here");
        assert_eq!(server.receive(Some(9), &mut never, 2), 0);
        // Nobody there takes it.
        assert_eq!(server.send(Some(3), &long, 3), 0);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(host.event(), shutdown_of(&server));
        assert_eq!(ended(&host, &server, 2), [(2, CANCELLED), (3, RESET)]);
        assert!(host.is_silent());
        assert_eq!(server.told(), []);
    }
}
