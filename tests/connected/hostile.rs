//! Callers, and those who are called, that say what they should not.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use super::listening::address_of;
use super::world::{World, open};
use tagmatch::endpoint::{Config, ConnectionEvent, Endpoint};
use tagmatch::wire::{
    Connect, ConnectData, Control, Credits, EndpointName, Goodbye, Hello, HelloRole, InstanceId, Keepalive,
    Message, PeerCapabilities, Reject,
};

/// A frame with this message.
fn frame(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap();
    [&length.to_be_bytes()[..], &[1, 0, 0, 0], message].concat()
}

fn encoded(control: Control<'_>) -> Vec<u8> {
    let mut bytes = [0; Message::HEADER_LENGTH_MAX];
    let length = control.encode(&mut bytes).unwrap();
    bytes[..length].to_vec()
}

fn connect(role: HelloRole) -> Control<'static> {
    let hello = Hello {
        role,
        version_min: 1,
        version_max: 1,
        capabilities: PeerCapabilities::ALL,
        instance: InstanceId::new(5).unwrap(),
        eager_limit: 1 << 14,
        credits: Credits { headers: 10, eager_messages: 10, eager_bytes: 1 << 20 },
        name: EndpointName::default(),
    };
    Control::Connect(Connect { hello, data: ConnectData::cut(b"raw") })
}

/// What nobody says at the beginning.
fn wrong() -> Vec<Vec<u8>> {
    let newer = {
        let mut bytes = encoded(connect(HelloRole::Request));
        (bytes[4], bytes[5]) = (2, 3);
        bytes
    };
    let long = {
        let mut bytes = encoded(connect(HelloRole::Request));
        bytes.push(0);
        bytes
    };
    vec![
        encoded(connect(HelloRole::Answer)),
        encoded(Control::Reject(Reject { data: ConnectData::cut(b"no") })),
        encoded(Control::Goodbye(Goodbye::ProtocolError)),
        encoded(Control::Keepalive(Keepalive { is_answer: false, sequence: 1 })),
        vec![1; 20],
        vec![0, 0x3F, 0, 0],
        vec![0xFF; 100],
        newer,
        long,
    ]
}

/// Whether the other side has ended the connection, once all that it said was read.
fn is_over(stream: &mut TcpStream) -> bool {
    match stream.read(&mut [0; 256]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
    }
}

#[test]
fn whoever_says_something_else_first_is_heard_no_further_and_others_are() {
    let mut world = World::new(Config::default());
    for message in wrong() {
        let mut stream = TcpStream::connect(address_of(world.passive.name())).unwrap();
        stream.set_nonblocking(true).unwrap();
        stream.write_all(&frame(&message)).unwrap();
        world.until("its connection ends", |_| is_over(&mut stream).then_some(()));
        assert!(world.passive.poll_request().is_none(), "{message:?}");
    }
    let called = world.call_and_accept();
    world.connected(called);
}

#[test]
fn whoever_goes_on_before_it_is_answered_gets_no_answer() {
    let mut world = World::new(Config::default());
    // With the request in one piece, and when it was taken.
    for is_later in [false, true] {
        for message in wrong().into_iter().chain([encoded(connect(HelloRole::Request))]) {
            let mut stream = TcpStream::connect(address_of(world.passive.name())).unwrap();
            stream.set_nonblocking(true).unwrap();
            let request = frame(&encoded(connect(HelloRole::Request)));
            if !is_later {
                stream.write_all(&[request, frame(&message)].concat()).unwrap();
                world.until("its connection ends", |world| {
                    let _ = world.passive.poll_request();
                    is_over(&mut stream).then_some(())
                });
                continue;
            }
            // It may go away with a word.
            if message == encoded(Control::Goodbye(Goodbye::ProtocolError)) {
                continue;
            }
            stream.write_all(&request).unwrap();
            let request = world.request();
            let called = world.add(Endpoint::called(Config::default(), request).unwrap());
            stream.write_all(&frame(&message)).unwrap();
            world.until("its connection ends", |_| is_over(&mut stream).then_some(()));
            assert!(world.at(called).accept(b"").is_err());
            world.drop_it(called);
        }
    }
    let called = world.call_and_accept();
    world.connected(called);
}

#[test]
fn a_caller_that_is_answered_with_something_else_is_refused() {
    for message in wrong().into_iter().filter(|message| *message != encoded(connect(HelloRole::Answer))) {
        let mut world = World::new(Config::default());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let name = [&2_u16.to_ne_bytes()[..], &port.to_be_bytes(), &[127, 0, 0, 1], &[0; 8]].concat();
        let caller = world.add(open(Config::default()));
        world.at(caller).connect(&name, b"").unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        for _ in 0..100 {
            world.step();
        }
        stream.write_all(&frame(&message)).unwrap();
        let event = world.event(caller);
        assert!(matches!(event, ConnectionEvent::Refused { .. }), "{message:?}: {event:?}");
        world.settle();
        assert_eq!(world.at(caller).poll_connection(), None);
    }
}
