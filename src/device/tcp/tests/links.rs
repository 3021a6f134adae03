//! Connections: made, refused, broken in the middle, held up, waited for.

use super::raw::{Raw, eager};
use crate::device::Device;
use crate::device::host_memory::HostMemory;
use crate::device::tcp::sys::Epoll;
use crate::device::tcp::{OpenError, TcpConfig, TcpTransport, address};
use crate::device::tests::ports::lasting_port;
use crate::device::tests::{Heard, Memory, Policy, RECEIVED_FROM, Recorder, Rig, framed, pattern};
use crate::device::transport::{
    CloseReason, LinkError, Notice, Outgoing, Payload, SendError, Sending, Transport,
};
use crate::ids::PeerId;
use crate::seam::{Answer, Command, DataError, DataTarget, Event};
use crate::wire::{AppContext, RemoteMemory, Rendezvous};

fn outgoing<'a>(header: &'a [u8], payload: Payload<'a>) -> Outgoing<'a> {
    Outgoing { header, payload, immediate: None, more: false, context: None }
}

#[test]
fn memory_that_nobody_has_promised_is_refused() {
    let opened = TcpTransport::open(TcpConfig::loopback(), HostMemory::registered());
    assert_eq!(opened.err(), Some(OpenError::Memory));
}

#[test]
fn where_nobody_listens_the_link_is_refused() {
    let (mut transport, mut ear) = (Raw::open(TcpConfig::loopback()), Recorder::default());
    let mut gone = transport.name().to_vec();
    gone[2..4].copy_from_slice(&lasting_port().to_be_bytes());
    let link = transport.open(&gone).expect("it is an address");
    for _ in 0..2_000_000 {
        transport.progress(10, &mut ear).expect("it works");
        if !ear.heard.is_empty() {
            break;
        }
    }
    let closed = Notice::Closed { link, reason: CloseReason::Refused };
    assert_eq!(ear.heard, [Heard::Notice(closed)]);
    assert!(matches!(transport.open(b"nonsense"), Err(LinkError::Address(_))));
    assert_eq!(transport.link_count(), 0);
}

#[test]
fn a_peer_and_a_link_are_bound_once() {
    let mut raw = Raw::bound();
    let again = raw.transport.bind(raw.link, PeerId(77));
    assert_eq!(again, Err(LinkError::Bound { link: raw.link, peer: PeerId(77) }));
    let first = raw.stream;
    let mut second = Raw::connect(raw.transport, raw.ear);
    let bound = second.transport.bind(second.link, RECEIVED_FROM);
    assert_eq!(bound, Err(LinkError::Bound { link: second.link, peer: RECEIVED_FROM }));
    drop(first);
    second.until_closed();
    second.transport.bind(second.link, RECEIVED_FROM).expect("the one before has ended");
}

#[test]
fn nothing_but_control_passes_before_a_link_is_bound() {
    let mut raw = Raw::unbound();
    raw.write(&framed(&eager(1, b"x")));
    let CloseReason::Protocol(what) = raw.until_closed() else { panic!("{:?}", raw.closed()) };
    assert_eq!(what, "a message to match before the link was bound");
    assert!(raw.ear.arrivals().is_empty());

    let mut raw = Raw::unbound();
    let keepalive = framed(&[0, 0x2F, 0, 0, 0, 0, 0, 1]);
    for _ in 0..16 {
        raw.write(&keepalive);
    }
    raw.until(|raw| raw.ear.controls().len() == 16);
    raw.write(&keepalive);
    assert!(matches!(raw.until_closed(), CloseReason::Protocol(_)));

    let mut raw = Raw::unbound();
    raw.ear.binds = Some(RECEIVED_FROM);
    raw.write(&[keepalive, framed(&eager(1, b"x"))].concat());
    raw.until(|raw| raw.ear.arrivals().len() == 1);
}

#[test]
fn of_too_many_that_do_not_say_who_they_are_the_oldest_goes() {
    let config = TcpConfig { unbound_max: 2, ..TcpConfig::loopback() };
    let first = Raw::connect(Raw::open(config), Recorder::default());
    let (link, mut streams) = (first.link, vec![first.stream]);
    let (mut transport, mut ear) = (first.transport, first.ear);
    for _ in 0..2 {
        let next = Raw::connect(transport, ear);
        streams.push(next.stream);
        (transport, ear) = (next.transport, next.ear);
    }
    for _ in 0..100 {
        transport.progress(10, &mut ear).expect("it works");
    }
    let closed: Vec<_> = ear
        .notices()
        .into_iter()
        .filter_map(|notice| match notice {
            Notice::Closed { link, .. } => Some(link),
            _ => None,
        })
        .collect();
    assert_eq!((closed, transport.link_count()), (vec![link], 2));
}

#[test]
fn a_peer_that_dies_within_a_message_ends_what_was_under_way() {
    for is_accepted in [true, false] {
        let mut raw = Raw::bound();
        let into = Memory::zeros(1000);
        if is_accepted {
            raw.ear.policy = Policy::Accept([into.buffer()].into());
        }
        let whole = framed(&eager(1, &pattern(1, 1000)));
        raw.write(&whole[..700]);
        raw.until(|raw| raw.ear.arrivals().len() == 1);
        let arrival = raw.ear.arrivals()[0];
        drop(std::mem::replace(
            &mut raw.stream,
            std::net::TcpStream::connect(
                address::from_bytes(raw.transport.name()).expect("it is an address"),
            )
            .expect("it listens"),
        ));
        let reason = raw.until_closed();
        assert_eq!(reason, CloseReason::System { errno: libc::ECONNRESET });
        let data = raw.ear.data();
        assert_eq!(data.len(), 1);
        assert_eq!(data[0].error, Some(DataError::PathLost));
        assert_eq!(matches!(data[0].target, DataTarget::Transfer(_)), is_accepted);
        assert_eq!(data[0].target == DataTarget::Message(arrival.message), !is_accepted);
        let lost = Event::PathLost { peer: RECEIVED_FROM };
        let place = |heard: &Heard| raw.ear.heard.iter().position(|other| other == heard);
        let (tagged, untagged) = (Heard::Event(true, lost.clone()), Heard::Event(false, lost));
        assert!(place(&tagged) < place(&untagged) && place(&tagged).is_some());
        assert_eq!(raw.transport.kept(RECEIVED_FROM).messages, 0);
    }
}

#[test]
fn a_peer_that_leaves_between_messages_has_closed() {
    let mut raw = Raw::bound();
    raw.write(&framed(&eager(1, b"last words")));
    raw.stream.shutdown(std::net::Shutdown::Both).expect("it is connected");
    assert_eq!(raw.until_closed(), CloseReason::Peer);
    assert_eq!(raw.ear.arrivals().len(), 1);
}

#[test]
fn a_peer_that_dies_while_it_is_read_from_fails_the_read() {
    let mut raw = Raw::bound();
    let into = Memory::zeros(1000);
    raw.ear.policy = Policy::Accept([into.buffer(), into.buffer()].into());
    let memory = RemoteMemory { address: 0, key: 7, length: 1000 };
    let mut request = [0; 32];
    Rendezvous { context: AppContext::default(), tag: crate::ids::Tag(1), memory }
        .encode(&mut request)
        .expect("it is good");
    raw.write(&[framed(&request), framed(&request)].concat());
    let mut asked = [0; 80];
    raw.until(|raw| raw.ear.arrivals().len() == 2);
    raw.step();
    std::io::Read::read_exact(&mut raw.stream, &mut asked).expect("it asks");
    assert_eq!(asked[..8], [0, 0, 0, 32, 3, 0, 0, 0]);
    let mut part = vec![0, 0, 0, 108, 4, 0, 0, 0];
    part.extend_from_slice(&asked[8..16]);
    part.extend(pattern(1, 100));
    raw.write(&part);
    raw.until(|_| into.bytes()[..100] == pattern(1, 100));
    raw.stream.shutdown(std::net::Shutdown::Both).expect("it is connected");
    raw.until_closed();
    let data = raw.ear.data();
    assert_eq!(data.len(), 2);
    assert!(data.iter().all(|data| data.error == Some(DataError::PathLost)));
}

#[test]
fn a_link_that_takes_nothing_is_full_and_goes_on_later() {
    let config = TcpConfig { queue_bytes: 100_000, ..TcpConfig::loopback() };
    let mut rig = Rig::tcp_with(config);
    let (link, header) = (rig.sender_link(), crate::device::tests::untagged(1));
    let payload = pattern(1, 10_000);
    let message = outgoing(&header, Payload::Copied(&payload));
    let mut sent = 0;
    while rig.sender().send(link, &message).expect("there is a link") != Sending::Full {
        sent += 1;
        assert!(sent < 10_000, "it takes without end");
    }
    rig.until_arrived(sent);
    assert_ne!(rig.sender().send(link, &message), Ok(Sending::Full));
    rig.until_arrived(sent + 1);
}

#[test]
fn memory_that_waits_is_told_when_it_is_out_or_never_will_be() {
    let mut rig = Rig::tcp();
    let (link, header) = (rig.sender_link(), crate::device::tests::untagged(1));
    let from = Memory::new(pattern(1, 60_000));
    let mut posted = Vec::new();
    for context in 0..2000 {
        let message =
            Outgoing { context: Some(context), ..outgoing(&header, Payload::Memory(from.buffer())) };
        match rig.sender().send(link, &message).expect("there is a link") {
            Sending::Posted => posted.push(context),
            Sending::Done => assert!(posted.is_empty()),
            Sending::Full => break,
        }
    }
    assert!(posted.len() > 10);
    let count = posted.len() / 2;
    rig.until(|rig| rig.sender_ear().notices().len() >= count);
    let link = rig.sender_link();
    rig.sender().close(link, false);
    rig.until(|rig| rig.sender_ear().notices().iter().any(|notice| matches!(notice, Notice::Closed { .. })));
    let mut told = Vec::new();
    for notice in rig.sender_ear().notices() {
        if let Notice::Sent { context, result } = notice {
            assert!(matches!(result, Ok(()) | Err(CloseReason::Here)));
            told.push(context);
        }
    }
    assert_eq!(told, posted);
}

#[test]
fn more_waits_for_a_flush_or_for_the_next_message() {
    let mut rig = Rig::tcp();
    let (link, header) = (rig.sender_link(), crate::device::tests::untagged(1));
    let from = Memory::new(pattern(1, 5000));
    let plain = outgoing(&header, Payload::Copied(b"x"));
    let more = Outgoing { more: true, ..plain };
    let posted =
        Outgoing { more: true, context: Some(5), ..outgoing(&header, Payload::Memory(from.buffer())) };
    assert_eq!(rig.sender().send(link, &more), Ok(Sending::Done));
    assert_eq!(rig.sender().send(link, &posted), Ok(Sending::Posted));
    for _ in 0..1000 {
        rig.step_receiver();
    }
    assert!(rig.ear().arrivals().is_empty());
    assert!(!rig.sender().may_wait());
    assert_eq!(rig.sender().send(link, &plain), Ok(Sending::Done));
    rig.until(|rig| {
        rig.step_receiver();
        rig.ear().arrivals().len() == 3
    });
    assert_eq!(rig.sender().send(link, &more), Ok(Sending::Done));
    rig.sender().flush().expect("it works");
    rig.until(|rig| rig.ear().arrivals().len() == 4);
    rig.until(|rig| !rig.sender_ear().notices().is_empty());
    assert_eq!(rig.sender_ear().notices(), [Notice::Sent { context: 5, result: Ok(()) }]);
}

#[test]
fn memory_that_is_withdrawn_while_it_is_read_is_touched_no_more() {
    let mut rig = Rig::tcp();
    let size = 32 << 20;
    let (from, into) = (Memory::new(pattern(1, size)), Memory::zeros(size));
    rig.ear().policy = Policy::Accept([into.buffer()].into());
    let request = rig.send_rendezvous(1, from.buffer());
    rig.until(|_| into.bytes()[0..10] == pattern(1, 10));
    let remote = crate::seam::Remote { address: 0, key: request.memory.key, length: size as u64 };
    rig.sender().withdraw(&remote);
    let data = rig.until_data(1)[0];
    // It was all out, or what came is right and the rest was refused.
    let bytes = into.bytes();
    let end = if data.error.is_some() { 100_000 } else { size };
    assert_eq!(bytes[..end], pattern(1, size)[..end]);
    rig.send_eager(5, b"goes on");
    rig.until(|rig| rig.ear().arrivals().len() == 2);
}

#[test]
fn who_waits_for_the_descriptor_is_woken() {
    let mut raw = Raw::bound();
    let mut waiter = Epoll::new().expect("there are descriptors");
    let descriptor = raw.transport.wait_descriptor().expect("it has one");
    waiter.add(&descriptor, 1, false).expect("it can be waited for");
    for _ in 0..100 {
        raw.step();
    }
    assert!(raw.transport.may_wait());
    assert_eq!(waiter.look().expect("it works"), 0, "nothing is there to do");
    for turn in 0..200 {
        raw.write(&framed(&eager(1, b"wake up")));
        while waiter.look().expect("it works") == 0 {}
        raw.until(|raw| raw.ear.arrivals().len() == turn + 1);
    }
    // What was read and not told does not show in the descriptor.
    raw.write(&framed(&eager(1, b"x")).repeat(10));
    raw.until(|raw| raw.ear.arrivals().len() >= 200);
    while raw.ear.arrivals().len() < 210 {
        raw.transport.progress(1, &mut raw.ear).expect("it works");
        let is_all = raw.ear.arrivals().len() == 210;
        assert!(is_all || !raw.transport.may_wait() || waiter.look().expect("it works") > 0);
    }
    let arrived = raw.ear.arrivals()[0];
    let answer = Answer::Accept {
        buffer: Memory::zeros(7).buffer(),
        transfer: Some(crate::ids::TransferId { index: 0, generation: 0 }),
    };
    let command = Command::Answer { message: arrived.message, answer };
    assert_eq!(raw.transport.submit(&[command]), Ok(1));
    assert!(!raw.transport.may_wait(), "there is data to tell");
}

#[test]
fn a_blocked_link_wakes_its_waiter_when_it_can_go_on() {
    let mut raw = Raw::bound();
    let header = crate::device::tests::untagged(1);
    let payload = pattern(1, 50_000);
    let message = outgoing(&header, Payload::Copied(&payload));
    while raw.transport.send(raw.link, &message).expect("there is a link") != Sending::Full {}
    for _ in 0..100 {
        raw.step();
    }
    let mut waiter = Epoll::new().expect("there are descriptors");
    waiter.add(&raw.transport.wait_descriptor().expect("it has one"), 1, false).expect("it can");
    assert!(raw.transport.may_wait());
    assert_eq!(waiter.look().expect("it works"), 0);
    let mut bytes = vec![0; 1 << 20];
    while waiter.look().expect("it works") == 0 {
        std::io::Read::read(&mut raw.stream, &mut bytes).expect("it is connected");
    }
    raw.until(|raw| raw.transport.may_wait());
    while raw.transport.send(raw.link, &message).expect("there is a link") == Sending::Full {
        std::io::Read::read(&mut raw.stream, &mut bytes).expect("it is connected");
        raw.step();
    }
}

#[test]
fn many_links_are_all_served() {
    let mut raw = Raw::bound();
    let mut streams = Vec::new();
    for peer in 0..40 {
        streams.push(raw.stream);
        raw = Raw::connect(raw.transport, raw.ear);
        raw.transport.bind(raw.link, PeerId(100 + peer)).expect("it is not bound");
    }
    raw.ear.heard.clear();
    for turn in 0..20_usize {
        for stream in &mut streams {
            std::io::Write::write_all(stream, &framed(&eager(1, b"one of many"))).expect("it takes it");
        }
        raw.until(|raw| raw.ear.arrivals().len() == (turn + 1) * streams.len());
    }
    drop(streams);
    raw.until(|raw| raw.transport.link_count() == 1);
    let header = eager(1, b"");
    raw.transport.close(raw.link, false);
    assert_eq!(
        raw.transport.send(raw.link, &outgoing(&header, Payload::Copied(b""))),
        Err(SendError::NoLink(raw.link))
    );
}
