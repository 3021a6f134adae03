//! Ports for who comes back under its name, for who is never there, and for programs that are told where to listen.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as Name, UnixListener};
use std::sync::Mutex;

/// A port of loopback that nobody is given while this process is there: it is below those that the system deals out (from
/// 32,768 on, ip(7)), nobody listens at it now, and it is given once only to all processes that ask here.
pub(crate) fn lasting_port() -> u16 {
    /// What other processes see of ports that are given: names of sockets, which are gone with this one.
    static GIVEN: Mutex<Vec<UnixListener>> = Mutex::new(Vec::new());
    let mut given = GIVEN.lock().expect("nobody panics with it");
    // Not where others begin to look, so that they seldom meet.
    let begin = u16::try_from(std::process::id() % u32::from(COUNT)).expect("there are not so many");
    let free = (0..COUNT).find_map(|number| {
        let port = FIRST + (begin.wrapping_mul(97) % COUNT + number) % COUNT;
        let name = Name::from_abstract_name(format!("tagmatch-test-port/{port}")).ok()?;
        let sign = UnixListener::bind_addr(&name).ok()?;
        let is_free = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).is_ok();
        is_free.then_some((port, sign))
    });
    let (port, sign) = free.expect("of 20,000 ports one is free");
    given.push(sign);
    port
}

const FIRST: u16 = 10_000;
const COUNT: u16 = 20_000;
