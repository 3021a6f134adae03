//! A transport over TCP: streams (`stream`) that are connections of sockets.
//!
//! Not here: who may connect and what a hello says (the endpoint); matching; frames.

mod config;
mod connected;

#[cfg(test)]
mod tests;

pub use config::TcpConfig;

pub use super::sockets::OpenError;

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};

use super::host_memory::{HostMemory, Stretch};
use super::sockets::listener::Listener;
use super::sockets::sys::{self, Part};
use super::sockets::{address, status};
use super::stream::{LISTENER, Medium, Stream, StreamTransport};
use super::transport::{CloseReason, LinkError};

/// A transport over TCP.
pub type TcpTransport = StreamTransport<Tcp>;

/// TCP, and where it listens.
#[derive(Debug)]
pub struct Tcp {
    listener: Listener,
    /// A socket from which the next call is made.
    source: Option<TcpStream>,
}

impl TcpTransport {
    /// Listen.
    ///
    /// # Errors
    /// The memory is not trusted, or the operating system refuses.
    pub fn open(config: TcpConfig, memory: HostMemory) -> Result<Self, OpenError> {
        if !memory.is_trusted() {
            return Err(OpenError::Memory);
        }
        let (listener, epoll, name) = Listener::open(config.listen, config.backlog, LISTENER)?;
        Ok(Self::over(Tcp { listener, source: None }, epoll, name, config.stream(), memory))
    }
}

impl Medium for Tcp {
    type Stream = TcpStream;
    type Socket = TcpListener;

    const IS_MEMORY: bool = false;

    fn listener(&self) -> &Listener {
        &self.listener
    }

    fn listener_mut(&mut self) -> &mut Listener {
        &mut self.listener
    }

    fn accepted(&mut self, stream: TcpStream) -> io::Result<TcpStream> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        sys::speed_up(&stream);
        Ok(stream)
    }

    fn connect(&mut self, name: &[u8]) -> Result<(TcpStream, Option<CloseReason>), LinkError> {
        let Some(to) = address::from_bytes(name) else {
            return Err(LinkError::Address(format!("{} bytes that are no sockaddr", name.len())));
        };
        let bound = self
            .source
            .take()
            .filter(|bound| bound.local_addr().is_ok_and(|own| own.is_ipv4() == to.is_ipv4()));
        let (stream, failure) = sys::connect(&to, bound).map_err(|error| match error.raw_os_error() {
            Some(libc::EAFNOSUPPORT) => LinkError::Address(error.to_string()),
            _ => LinkError::of("socket", &error),
        })?;
        Ok((stream, failure.as_ref().map(status::refusal)))
    }

    fn set_source(&mut self, name: &[u8]) -> Result<Vec<u8>, LinkError> {
        self.bind(name)
    }
}

impl Stream for TcpStream {
    type Socket = Self;

    const AT_ONCE: usize = usize::MAX;
    const GATHERS: bool = true;

    fn connected(&mut self) -> Option<Result<(), CloseReason>> {
        let connected = status::connected(self);
        if connected == Some(Ok(())) {
            sys::speed_up(self);
        }
        connected
    }

    #[inline]
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        io::Read::read(self, into)
    }

    #[inline]
    fn receive(&mut self, stretches: impl Iterator<Item = Stretch>, rest: &mut [u8]) -> io::Result<usize> {
        sys::receive(self, stretches, rest)
    }

    #[inline]
    fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<usize> {
        sys::send_bytes(self, bytes)
    }

    #[inline]
    fn send<'a>(&mut self, parts: impl Iterator<Item = Part<'a>>) -> io::Result<usize> {
        sys::send(self, parts)
    }

    fn end_writing(&mut self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }

    fn end(&mut self) {
        // It has ended already, or it ends now.
        let _ = self.shutdown(Shutdown::Both);
    }

    fn unacknowledged(&self) -> u64 {
        sys::unacknowledged(self)
    }

    fn addresses(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let (local, peer) = (self.local_addr().ok()?, self.peer_addr().ok()?);
        Some((address::to_bytes(&local), address::to_bytes(&peer)))
    }
}
