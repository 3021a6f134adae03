//! Somebody listens under the name of a peer on this host and is not that peer, or is of no use: the network is the way.

use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;

use crate::{over_shm, over_tcp};
use tagmatch::device::transport::Payload;
use tagmatch::endpoint::{Address, Config, Failure, Level, Send, SendRefused, Space};
use tagmatch::ids::Tag;

const HELLO: Send<'static> = Send {
    space: Space::Tagged,
    to: Address(0),
    tag: Tag(1),
    payload: Payload::Copied(b"hello"),
    cq_data: None,
    level: Level::Inject,
    more: false,
    context: 1,
    flags: 0,
};

/// Listens where an endpoint of this name would.
fn squat(name: &[u8]) -> UnixListener {
    let address = SocketAddr::from_abstract_name([b"tagmatch-shm/", name].concat()).unwrap();
    let listener = UnixListener::bind_addr(&address).unwrap();
    listener.set_nonblocking(true).unwrap();
    listener
}

fn accepted(listener: &UnixListener) -> Option<UnixStream> {
    match listener.accept() {
        Ok((stream, _)) => Some(stream),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
            None
        }
    }
}

/// What sends say until one is taken; then its message comes.
fn said(does: impl Fn(UnixStream, &mut Vec<UnixStream>)) -> Vec<SendRefused> {
    let (mut own, mut peer) = (over_shm::shared(Config::default(), 0), over_tcp::open(Config::default(), 0));
    own.set_address(Address(0), peer.name()).unwrap();
    let listener = squat(peer.name());
    let (mut now, mut kept, mut refused) = (Duration::ZERO, Vec::new(), Vec::new());
    while let Err(refusal) = own.send(&HELLO) {
        if refusal != SendRefused::Again {
            refused.push(refusal);
        }
        now += Duration::from_millis(1);
        own.progress(now).unwrap();
        peer.progress(now).unwrap();
        if let Some(stream) = accepted(&listener) {
            does(stream, &mut kept);
        }
    }
    while peer.depths(Space::Tagged).1 == 0 {
        now += Duration::from_millis(1);
        own.progress(now).unwrap();
        peer.progress(now).unwrap();
    }
    assert_eq!((own.statistics().connected, own.statistics().connected_shm), (1, 0));
    refused
}

#[test]
fn who_hangs_up_is_passed_by() {
    assert_eq!(said(|stream, _| drop(stream)), []);
}

#[test]
fn who_says_nothing_is_passed_by_when_its_time_is_over() {
    let refused = said(|stream, kept| kept.push(stream));
    assert_eq!(refused, [SendRefused::Unreachable(Failure::TimedOut)]);
}
