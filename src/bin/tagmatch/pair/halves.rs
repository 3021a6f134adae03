//! How the two halves find each other: one starts the other, or they are on two hosts and one connects.

use super::control::Socket;
use super::plan::{Line, Setup, speaks};
use std::env;
use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

/// The other half, and where this one is to open its endpoints.
#[derive(Debug)]
pub(super) struct Other {
    pub(super) socket: Socket,
    pub(super) child: Option<Child>,
    pub(super) address: IpAddr,
}

/// Start the other half on this host: this program once more, with the socket as its input.
pub(super) fn start() -> Result<Other, String> {
    let (ours, theirs) = UnixStream::pair().map_err(|error| format!("there can be no socket: {error}"))?;
    let program = env::current_exe().map_err(|error| format!("this program is nowhere: {error}"))?;
    let child = Command::new(&program)
        .arg("half")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| format!("{} cannot be run: {error}", program.display()))?;
    Ok(Other { socket: Socket::Near(ours), child: Some(child), address: LOOPBACK })
}

/// The half that waits on another host.
pub(super) fn connect(to: &str) -> Result<Other, String> {
    let failed = |error: &dyn std::fmt::Display| format!("--connect {to}: {error}");
    let addresses = to.to_socket_addrs().map_err(|error| failed(&error))?;
    let mut last = "no address".to_owned();
    for address in addresses {
        match TcpStream::connect(address) {
            Ok(socket) => return far(socket),
            Err(error) => last = error.to_string(),
        }
    }
    Err(failed(&last))
}

/// Wait for the half on another host. Says where it listens.
pub(super) fn listen(at: &str, say: impl FnOnce(SocketAddr)) -> Result<Other, String> {
    let failed = |error: &dyn std::fmt::Display| format!("--listen {at}: {error}");
    let listener = TcpListener::bind(at).map_err(|error| failed(&error))?;
    say(listener.local_addr().map_err(|error| failed(&error))?);
    let (socket, _) = listener.accept().map_err(|error| failed(&error))?;
    far(socket)
}

fn far(socket: TcpStream) -> Result<Other, String> {
    let address = socket.local_addr().map_err(|error| error.to_string())?.ip();
    Ok(Other { socket: Socket::Far(socket), child: None, address })
}

/// The half that this process was started as.
pub(super) fn inherited() -> Result<Other, String> {
    let socket = std::io::stdin().as_fd().try_clone_to_owned().map_err(|error| error.to_string())?;
    Ok(Other { socket: Socket::Near(UnixStream::from(socket)), child: None, address: LOOPBACK })
}

/// The leader's first line, before there is any other thread. What follows stays in the socket.
pub(super) fn greeting(socket: &mut Socket) -> Result<Setup, String> {
    let mut text = Vec::new();
    let mut one = BufReader::with_capacity(1, socket).take(GREETING_MAX);
    one.read_until(b'\n', &mut text).map_err(|error| format!("the other half says nothing: {error}"))?;
    let line = serde_json::from_slice(&text)
        .map_err(|error| format!("the other half is none of this program: {error}"))?;
    let Line::Greeting { speaks: theirs, setup } = line else {
        return Err("the other half does not greet".into());
    };
    if theirs != speaks() {
        let ours = speaks();
        return Err(format!(
            "the other half is \"{theirs}\", and this one is \"{ours}\": take the same build on both"
        ));
    }
    setup.check().map_err(|why| format!("the other half wants what cannot be: {why}"))?;
    Ok(setup)
}

/// Where the endpoints of two halves on one host are.
const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const GREETING_MAX: u64 = 1 << 16;
