//! A transport through memory that two processes of one host and one user share.
//!
//! ```text
//!  name of the network's endpoint ─▶ abstract Unix socket ─▶ region (two rings) ─▶ stream
//! ```
//!
//! Whoever reaches this endpoint by the network finds it here by the same name, if it is on the same host and in the same
//! network namespace; else nobody listens there, and it goes by the network. Nothing of it has a name in a file system,
//! so that nothing is left whatever ends a process.
//!
//! The other side may write anything into shared memory at any time: what is looked at was copied first, and numbers
//! that cannot be end the connection.
//!
//! Not here: frames, reads and queues (`stream`); who may connect (the endpoint).
#![allow(unsafe_code, reason = "memory that is shared, and calls of C functions")]

mod direct;
mod region;
mod ring;
mod slip;
mod socket;
mod stream;
mod sync;

#[cfg(test)]
mod tests;

pub use stream::ShmStream;

pub use super::sockets::OpenError;

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use super::host_memory::HostMemory;
use super::sockets::listener::{Listener, Listens};
use super::stream::{LISTENER, Medium, StreamConfig, StreamTransport};
use super::transport::{CloseReason, LinkError};
use crate::ids::DeviceId;

/// A transport through shared memory.
pub type ShmTransport = StreamTransport<Shm>;

/// How to set one up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShmConfig {
    /// As which device it speaks to its engines.
    pub id: DeviceId,
    /// The longest payload in one message, in bytes. Longer ones are read in one copy, where the system allows that.
    pub eager_limit: u64,
    /// Bytes of copied messages that may wait on one link before it is full.
    pub queue_bytes: usize,
    /// Connections that may be accepted and not bound; one more ends the oldest.
    pub unbound_max: usize,
    /// Bytes of the ring in each direction: a power of two from 64 KiB to 64 MiB; whoever connects decides.
    pub ring_bytes: usize,
}

impl Default for ShmConfig {
    fn default() -> Self {
        Self {
            id: DeviceId(0),
            eager_limit: 16 << 10,
            queue_bytes: 1 << 20,
            unbound_max: 1024,
            ring_bytes: 128 << 10,
        }
    }
}

/// Shared memory, and where it listens.
#[derive(Debug)]
pub struct Shm {
    listener: Listener<UnixListener>,
    ring_bytes: usize,
}

impl ShmTransport {
    /// Listen for those who know this endpoint by the name that it has on the network.
    ///
    /// # Errors
    /// The memory is not trusted, the length of rings is none that is allowed (`EINVAL`), or the operating system
    /// refuses: somebody on this host listens under the name (`EADDRINUSE`), for one.
    pub fn open(name: &[u8], config: ShmConfig, memory: HostMemory) -> Result<Self, OpenError> {
        if !memory.is_trusted() {
            return Err(OpenError::Memory);
        }
        if !stream::RING_BYTES.contains(&config.ring_bytes) || !config.ring_bytes.is_power_of_two() {
            return Err(OpenError::System { call: "memfd_create", errno: libc::EINVAL });
        }
        let address = SocketAddr::from_abstract_name(abstract_name(name)).map_err(OpenError::of("bind"))?;
        let socket = UnixListener::bind_addr(&address).map_err(OpenError::of("bind"))?;
        let (listener, epoll) = Listener::watched(socket, BACKLOG, LISTENER)?;
        let medium = Shm { listener, ring_bytes: config.ring_bytes };
        let ShmConfig { id, eager_limit, queue_bytes, unbound_max, .. } = config;
        let stream = StreamConfig { id, eager_limit, queue_bytes, unbound_max, keeps_unbound: false };
        Ok(Self::over(medium, epoll, name.to_vec(), stream, memory))
    }
}

impl Listens for UnixListener {
    type Stream = UnixStream;

    fn accept_one(&self) -> io::Result<UnixStream> {
        self.accept().map(|(stream, _)| stream)
    }

    fn stop_waiting(&self) -> io::Result<()> {
        self.set_nonblocking(true)
    }
}

impl Medium for Shm {
    type Stream = ShmStream;
    type Socket = UnixListener;

    const IS_MEMORY: bool = true;

    fn listener(&self) -> &Listener<UnixListener> {
        &self.listener
    }

    fn listener_mut(&mut self) -> &mut Listener<UnixListener> {
        &mut self.listener
    }

    fn accepted(&mut self, socket: UnixStream) -> io::Result<ShmStream> {
        ShmStream::accepted(socket)
    }

    fn connect(&mut self, name: &[u8]) -> Result<(ShmStream, Option<CloseReason>), LinkError> {
        match ShmStream::connect(&abstract_name(name), self.ring_bytes) {
            Ok(stream) => Ok((stream, None)),
            // Nobody is there, or nobody with whom memory is shared: the network is the way.
            Err(error) => Err(LinkError::Address(format!("not within this host: {error}"))),
        }
    }
}

/// Under which name an endpoint is found whose name on the network is this.
fn abstract_name(name: &[u8]) -> Vec<u8> {
    [PREFIX, name].concat()
}

const PREFIX: &[u8] = b"tagmatch-shm/";
/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4096;
