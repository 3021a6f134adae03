//! Connected endpoints (`FI_EP_MSG`): `fi_cm(3)`, `fi_passive_ep(3)` and what comes by event queues, as an application uses them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "a call of C through a table of an object is to read the table and to call"
)]

#[path = "connected/ending.rs"]
mod ending;
#[path = "connected/host.rs"]
mod host;

mod common;

use std::ptr;

use common::side::control;
use common::{fabric, minus};
use host::{Event, Host, Listener, connected_pair};
use tagmatch::provider::abi::{self, fi_info};

/// As much data as goes with a request (`FI_OPT_CM_DATA_SIZE`).
const MOST: usize = 64;

#[test]
fn connected_endpoints_are_listed_behind_the_others_and_alone_where_they_are_asked_for() {
    let library = fabric();
    let kinds = |change: fn(&mut fi_info)| {
        let info = library.info(library.api(), change).unwrap();
        let (mut kinds, mut next): (Vec<u64>, _) = (Vec::new(), info);
        // SAFETY: a list of this library's, which ends with null.
        while let Some(fields) = unsafe { next.as_ref() } {
            // SAFETY: infos of the library have all parts.
            kinds.push(unsafe { (*fields.ep_attr).r#type }.into());
            next = fields.next;
        }
        // SAFETY: a list of this library's.
        unsafe { (library.freeinfo)(info) };
        kinds
    };
    let all = kinds(|_| {});
    let datagram = all.iter().filter(|kind| **kind == abi::FI_EP_RDM).count();
    assert!(datagram > 0 && datagram < all.len());
    assert!(all[..datagram].iter().all(|kind| *kind == abi::FI_EP_RDM), "{all:?}");
    assert!(all[datagram..].iter().all(|kind| *kind == abi::FI_EP_MSG), "{all:?}");
    // SAFETY: hints have all parts.
    let asked = kinds(|hints| unsafe { (*hints.ep_attr).r#type = abi::FI_EP_MSG.try_into().unwrap() });
    assert!(!asked.is_empty() && asked.iter().all(|kind| *kind == abi::FI_EP_MSG));
    // libfabric's ofi_rxm would put its own endpoints on top, and stand before this provider in the list.
    let info = library.info(library.api(), |_| {}).unwrap();
    // SAFETY: an info of this library, which has all parts.
    let name = unsafe { std::ffi::CStr::from_ptr((*(*info).fabric_attr).prov_name) };
    assert_eq!(name, c"tagmatch");
    // SAFETY: as above, not used any more.
    unsafe { (library.freeinfo)(info) };
    let directed = library.info(library.api(), |hints| {
        // SAFETY: hints have all parts.
        unsafe { (*hints.ep_attr).r#type = abi::FI_EP_MSG.try_into().unwrap() };
        hints.caps = abi::FI_TAGGED | abi::FI_DIRECTED_RECV;
    });
    assert!(directed.is_err(), "whoever has one peer names none");
}

#[test]
fn b37_data_comes_with_a_request_its_acceptance_and_its_rejection_as_long_as_it_was_said() {
    let host = Host::new();
    let listener = Listener::new(&host);
    let said: Vec<u8> = (1..=100).collect();
    assert_eq!(host.data_size_of_passive(&listener), MOST);
    for length in [0, 1, 2, 7, MOST, MOST + 1, 100] {
        let (said, heard) = (&said[..length], &said[..length.min(MOST)]);
        let client = host.endpoint();
        assert_eq!(client.data_size(), MOST);
        assert_eq!(client.connect(&listener.name(), said), 0);
        let (request, data) = host.request(&listener);
        assert_eq!(data, heard);
        let server = host.endpoint_for(request);
        assert_eq!(server.accept(said), 0);
        let mut told = [host.event(), host.event()];
        told.sort_by_key(|event| event.is_of(server.ep));
        let connected =
            |of: *mut abi::fid_ep, data: &[u8]| Event::Connected { of: of.cast(), data: data.to_vec() };
        assert_eq!(told, [connected(client.ep, heard), connected(server.ep, b"")]);
        let other = host.endpoint();
        assert_eq!(other.connect(&listener.name(), b""), 0);
        let (request, data) = host.request(&listener);
        assert!(data.is_empty());
        assert_eq!(listener.reject(request, said), 0);
        assert_eq!(host.event(), Event::Failed { of: other.ep.cast(), error: 111, data: heard.to_vec() });
    }
}

#[test]
fn b37_data_of_an_error_goes_into_the_room_of_the_application_or_is_shown_until_the_next_read() {
    let host = Host::new();
    let listener = Listener::new(&host);
    let mut room = [0xEE_u8; 8];
    for is_own in [true, false] {
        let client = host.endpoint();
        assert_eq!(client.connect(&listener.name(), b""), 0);
        let (request, _) = host.request(&listener);
        assert_eq!(listener.reject(request, b"rejected"), 0);
        host.until_failed();
        assert_eq!(host.read_into(&mut [0; 100]).0, minus(abi::FI_EAVAIL));
        let mut entry = host.error_entry();
        if is_own {
            (entry.err_data, entry.err_data_size) = (room.as_mut_ptr().cast(), 4);
            host.read_error(&mut entry);
            assert_eq!((entry.err_data_size, room), (4, *b"reje\xEE\xEE\xEE\xEE"));
        } else {
            host.read_error(&mut entry);
            assert_eq!(entry.err_data_size, 8);
            // SAFETY: data of the provider's, which stays until the next read.
            let data = unsafe { std::slice::from_raw_parts(entry.err_data.cast::<u8>(), 8) };
            assert_eq!(data, b"rejected");
        }
        assert_eq!((entry.fid, entry.context), (client.ep.cast(), client.context()));
    }
    // Where nobody listens, nobody says anything.
    let gone = listener.name();
    drop(listener);
    let client = host.endpoint();
    assert_eq!(client.connect(&gone, b"hello"), 0);
    assert_eq!(host.event(), Event::Failed { of: client.ep.cast(), error: 111, data: Vec::new() });
}

#[test]
fn a2_the_info_of_a_request_is_complete_and_a_copy_of_it_is_as_good() {
    let host = Host::new();
    let listener = Listener::new(&host);
    let client = host.endpoint();
    assert_eq!(client.connect(&listener.name(), b""), 0);
    let (request, _) = host.request(&listener);
    // SAFETY: the info of a request.
    unsafe {
        let info = &*request;
        let attributes = &*info.fabric_attr;
        assert_eq!(std::ffi::CStr::from_ptr(attributes.prov_name), c"tagmatch");
        assert_eq!((attributes.api_version, info.next.is_null()), (fabric().api(), true));
        assert!(!info.handle.is_null());
        let address = |at: *mut libc::c_void, length: usize| {
            std::slice::from_raw_parts(at.cast::<u8>(), length).to_vec()
        };
        assert_eq!(address(info.src_addr, info.src_addrlen), listener.name());
        assert_eq!(address(info.dest_addr, info.dest_addrlen), client.name());
        assert_eq!(u64::from((*info.ep_attr).r#type), abi::FI_EP_MSG);
        let name = |info: &fi_info| std::ffi::CStr::from_ptr((*info.domain_attr).name).to_owned();
        assert_eq!(name(info), name(&*host.info));
    }
    // SAFETY: an info of this library.
    let copy = unsafe { (fabric().dupinfo)(request) };
    // SAFETY: as above, not used any more.
    unsafe { (fabric().freeinfo)(request) };
    let server = host.endpoint_for(copy);
    assert_eq!(server.accept(b""), 0);
    host.two_are_connected(&client, &server);
}

#[test]
fn b39_a_name_in_a_short_buffer_is_cut_and_its_length_told_of_both_sides() {
    let host = Host::new();
    let listener = Listener::new(&host);
    let unconnected = host.endpoint();
    assert_eq!(unconnected.peer_into(&mut [0; 64], 64), (minus(abi::FI_ENOTCONN), 64));
    let (client, server) = connected_pair(&host, &listener);
    assert_eq!((client.peer(), server.peer()), (listener.name(), client.name()));
    assert_eq!(server.name(), listener.name());
    type Read<'a> = Box<dyn Fn(&mut [u8], usize) -> (isize, usize) + 'a>;
    let reads: [(Read<'_>, Vec<u8>); 3] = [
        (Box::new(|room, length| client.name_into(room, length)), client.name()),
        (Box::new(|room, length| listener.name_into(room, length)), listener.name()),
        (Box::new(|room, length| server.peer_into(room, length)), client.name()),
    ];
    for (read, name) in &reads {
        for length in [0, 1, 4, 15, 16, 28, 64] {
            let mut room = [0xEE_u8; 80];
            let (result, told) = read(&mut room, length);
            let expected = if length < name.len() { minus(abi::FI_ETOOSMALL) } else { 0 };
            assert_eq!((result, told), (expected, name.len()), "{length}");
            let written = length.min(name.len());
            assert_eq!(room[..written], name[..written]);
            assert!(room[written..].iter().all(|byte| *byte == 0xEE), "{length}");
        }
    }
}

#[test]
fn messages_of_both_kinds_pass_and_receives_posted_before_the_connection_take_them() {
    let host = Host::new();
    let listener = Listener::new(&host);
    let client = host.endpoint();
    client.enable();
    let (mut first, mut second) = ([0_u8; 100], vec![0_u8; 300_000]);
    assert_eq!(client.receive(Some(7), &mut first, 1), 0);
    assert_eq!(client.receive(None, &mut second, 2), 0);
    assert_eq!(client.send(Some(1), b"too early", 9), minus(abi::FI_ENOTCONN));
    assert_eq!(client.connect(&listener.name(), b""), 0);
    assert_eq!(client.send(Some(1), b"too early", 9), minus(abi::FI_ENOTCONN));
    let (request, _) = host.request(&listener);
    let server = host.endpoint_for(request);
    let mut third = [0_u8; 100];
    server.enable();
    assert_eq!(server.receive(Some(8), &mut third, 3), 0);
    assert_eq!(server.accept(b""), 0);
    host.two_are_connected(&client, &server);
    let long: Vec<u8> = (0..300_000_u32).map(|at| (at % 251) as u8).collect();
    assert_eq!(server.send(Some(7), b"to the client", 4), 0);
    assert_eq!(server.send(None, &long, 5), 0);
    assert_eq!(client.send(Some(8), b"to the server", 6), 0);
    // A send may be told complete as soon as its memory is free.
    let three = |end: &host::End<'_>, other: &host::End<'_>| {
        let mut told = [end.completion(other), end.completion(other), end.completion(other)];
        told.sort_unstable();
        told
    };
    assert_eq!(three(&client, &server), [1, 2, 6]);
    assert_eq!(&first[..13], b"to the client");
    assert_eq!(second, long);
    assert_eq!(three(&server, &client), [3, 4, 5]);
    assert_eq!(&third[..13], b"to the server");
}

#[test]
fn calls_at_the_wrong_time_and_of_the_wrong_object_are_refused_and_change_nothing() {
    let host = Host::new();
    let listener = Listener::new(&host);
    let unbound = host.unbound_endpoint();
    // SAFETY: an open endpoint.
    let enabled = unsafe { control(unbound.ep, abi::FI_ENABLE, ptr::null_mut()) };
    assert_eq!(isize::try_from(enabled).unwrap(), minus(abi::FI_ENOEQ), "there is no event queue");
    assert_eq!(unbound.connect(&listener.name(), b""), minus(abi::FI_ENOEQ));
    let client = host.endpoint();
    assert_eq!(client.accept(b""), minus(abi::FI_EINVAL), "nobody has called");
    assert_eq!(client.shutdown(0), minus(abi::FI_ENOTCONN));
    assert_eq!(client.connect(&[1, 0, 0, 0], b""), minus(abi::FI_EINVAL), "another family");
    assert_eq!(client.connect(&listener.name(), b""), 0);
    assert_eq!(client.connect(&listener.name(), b""), minus(abi::FI_EISCONN), "once in its life");
    let (request, _) = host.request(&listener);
    // SAFETY: the info of a request.
    let handle = unsafe { (*request).handle };
    let server = host.endpoint_for(request);
    assert_eq!(listener.reject_handle(handle, b""), minus(abi::FI_EINVAL), "it is an endpoint's");
    assert_eq!(server.accept(b""), 0);
    assert_eq!(server.accept(b""), minus(abi::FI_EINVAL));
    host.two_are_connected(&client, &server);
    assert_eq!(client.shutdown(1), minus(abi::FI_EBADFLAGS));
    assert_eq!(listener.listen(), minus(abi::FI_EOPBADSTATE));
    assert_eq!(listener.accept(), minus(abi::FI_ENOSYS), "it listens");
    let deaf = Listener::unbound(&host);
    assert_eq!(deaf.listen(), minus(abi::FI_ENOEQ));
}

#[test]
fn who_is_to_listen_is_named_as_endpoints_are_and_no_more_once_it_listens() {
    let host = Host::new();
    let listener = Listener::unbound(&host);
    let name = |address: [u8; 4]| [&2_u16.to_ne_bytes()[..], &[0, 0], &address, &[0; 8]].concat();
    for nobody in [[224, 0, 0, 1], [255; 4]] {
        assert_eq!(listener.set_name(&name(nobody)), minus(abi::FI_EADDRNOTAVAIL), "{nobody:?}");
    }
    assert_eq!(listener.set_name(&name([127, 0, 0, 9])[..15]), minus(abi::FI_EINVAL), "half an address");
    // That of every interface is nobody's that a peer could call.
    assert_eq!(listener.set_name(&name([0; 4])), 0);
    assert_ne!(listener.name()[4..8], [0; 4]);
    assert_eq!(listener.set_name(&name([127, 0, 0, 9])), 0);
    listener.bind(&host);
    assert_eq!(listener.listen(), 0);
    let own = listener.name();
    assert_eq!(own[4..8], [127, 0, 0, 9]);
    assert_ne!(own[2..4], [0, 0], "it was given a port");
    assert_eq!(listener.set_name(&name([127, 0, 0, 1])), minus(abi::FI_EOPBADSTATE));
    assert_eq!(listener.name(), own);
    let client = host.endpoint();
    assert_eq!(client.connect(&own, b""), 0);
    let (request, _) = host.request(&listener);
    assert_eq!(listener.reject(request, b""), 0);
}

#[test]
fn as_many_requests_wait_as_the_backlog_says_and_none_is_lost() {
    let host = Host::new();
    let listener = Listener::new(&host);
    assert_eq!(listener.set_backlog(128), 0);
    assert_eq!(listener.set_backlog(-1), minus(abi::FI_EINVAL));
    // Nobody looks who is there, and no client is moved on once it has called.
    let clients: Vec<_> = (0..128_u32)
        .map(|number| {
            let client = host.endpoint_apart();
            assert_eq!(client.connect(&listener.name(), &number.to_be_bytes()), 0);
            client
        })
        .collect();
    let mut heard: Vec<u32> = (0..clients.len())
        .map(|_| {
            let (request, data) = host.request(&listener);
            assert_eq!(listener.reject(request, b""), 0);
            u32::from_be_bytes(data.try_into().unwrap())
        })
        .collect();
    heard.sort_unstable();
    assert!(heard.into_iter().eq(0..128));
}

#[test]
fn requests_that_nobody_reads_go_with_their_listener() {
    let host = Host::new();
    let listener = Listener::new(&host);
    let client = host.endpoint_apart();
    assert_eq!(client.connect(&listener.name(), b""), 0);
    host.until_something();
    drop(listener);
    assert_eq!(host.read_into(&mut [0; 100]).0, minus(abi::FI_EAGAIN), "its event names nothing any more");
    let Event::Failed { error, .. } = client.own_event() else { panic!("it is connected") };
    assert_ne!(error, 0);
}
