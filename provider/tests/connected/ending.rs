//! How connections end, as an application sees it.

use super::host::{End, Event, Host, Listener, connected_pair};
use tagmatch::provider::abi;

use super::common::minus;

/// `FI_ECANCELED`.
const CANCELLED: i32 = 125;

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
