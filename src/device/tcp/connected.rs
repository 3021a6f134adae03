//! TCP for connected endpoints: a transport of one connection, and a listener whose connections become such.
//!
//! Not here: what is said before a connection stands (the endpoint).

use super::{LinkError, OpenError, Tcp, TcpConfig, TcpTransport};
use crate::device::host_memory::HostMemory;
use crate::device::sockets::listener::Listener;
use crate::device::sockets::{address, sys};
use crate::device::transport::{Listening, Taken, Transport};
use crate::ids::LinkId;

impl TcpTransport {
    /// One that listens for nobody. It calls from the address in its configuration; port 0 of it, or of an address of no
    /// host, is any that is free.
    ///
    /// # Errors
    /// The memory is not trusted, or the operating system refuses: somebody has that address, for one.
    pub fn calling(config: TcpConfig, memory: HostMemory) -> Result<Self, OpenError> {
        if !memory.is_trusted() {
            return Err(OpenError::Memory);
        }
        let mut medium = Tcp::deaf();
        let name = address::to_bytes(&config.listen);
        let name = if config.listen.port() == 0 && config.listen.ip().is_unspecified() {
            name
        } else {
            medium.bind(&name).map_err(|error| match error {
                LinkError::System { call, errno } => OpenError::System { call, errno },
                LinkError::Address(_) | LinkError::Unknown(_) | LinkError::Bound { .. } => {
                    OpenError::System { call: "bind", errno: libc::EADDRNOTAVAIL }
                }
            })?
        };
        let epoll = sys::Epoll::new().map_err(OpenError::of("epoll_create1"))?;
        Ok(Self::over(medium, epoll, name, config.stream(), memory))
    }
}

impl Listening for TcpTransport {
    fn take_out(&mut self, link: LinkId) -> Result<Taken, LinkError> {
        // What it takes comes first: without, the link stays where it is.
        let epoll = sys::Epoll::new().map_err(|error| LinkError::of("epoll_create1", &error))?;
        let unknown = LinkError::Unknown(link);
        let (name, peer) = self.addresses(link).ok_or(unknown.clone())?;
        let stream = self.hand_out(link).ok_or(unknown.clone())?;
        let (config, memory) = self.set_up_as();
        let mut transport = Self::over(Tcp::deaf(), epoll, name.clone(), config, memory);
        let link = transport.take_in(stream).map_err(|_| unknown)?;
        Ok(Taken { transport: Box::new(transport), link, name, peer })
    }

    fn set_backlog(&mut self, backlog: u32) -> Result<(), LinkError> {
        let backlog = i32::try_from(backlog).unwrap_or(i32::MAX);
        self.medium().listener.set_backlog(backlog).map_err(|error| LinkError::of("listen", &error))
    }
}

impl Tcp {
    fn deaf() -> Self {
        Self { listener: Listener::deaf(), source: None }
    }

    /// Call from this address; the address that it is, with the port that was free.
    pub(super) fn bind(&mut self, name: &[u8]) -> Result<Vec<u8>, LinkError> {
        let Some(at) = address::from_bytes(name) else {
            return Err(LinkError::Address(format!("{} bytes that are no sockaddr", name.len())));
        };
        // Another address takes the place of the one before, which may be the same.
        self.source = None;
        let stream = sys::bound(&at).map_err(|error| LinkError::of("bind", &error))?;
        let name = stream.local_addr().map_err(|error| LinkError::of("getsockname", &error))?;
        self.source = Some(stream);
        Ok(address::to_bytes(&name))
    }
}
