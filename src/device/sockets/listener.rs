//! Who listens: accepting, and leaving that be while there are no descriptors.
//!
//! Not here: what becomes of who was accepted.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;

use super::process::Process;
use super::sys::{self, Epoll};
use super::{OpenError, address};

/// See the module.
#[derive(Debug)]
pub struct Listener<L: Listens = TcpListener> {
    /// `None`: it listens for nobody.
    socket: Option<L>,
    /// Its name among what is watched.
    watched_as: u64,
    /// Turns since it is left alone; 0: it is not.
    paused: usize,
    /// The process that it belongs to, whoever was forked from it.
    process: Process,
}

/// What came of accepting.
#[derive(Debug)]
pub(in crate::device) enum Accepted<S = TcpStream> {
    /// Somebody connected.
    Stream(S),
    /// The one that was next has gone (`accept(2)`).
    Gone,
    /// Nobody waits.
    Nobody,
    /// There are no descriptors, or there is no memory for more.
    Exhausted,
}

/// A socket that listens.
pub trait Listens: AsRawFd + std::fmt::Debug {
    /// What it accepts.
    type Stream: std::fmt::Debug;

    /// Whoever is next (`accept(2)`).
    ///
    /// # Errors
    /// Nobody is, or the operating system refuses.
    fn accept_one(&self) -> io::Result<Self::Stream>;

    /// Accepting does not wait.
    ///
    /// # Errors
    /// The operating system refuses.
    fn stop_waiting(&self) -> io::Result<()>;
}

impl Listens for TcpListener {
    type Stream = TcpStream;

    fn accept_one(&self) -> io::Result<TcpStream> {
        self.accept().map(|(stream, _)| stream)
    }

    fn stop_waiting(&self) -> io::Result<()> {
        self.set_nonblocking(true)
    }
}

impl Listener {
    /// Listen, watched under this name; the listener, who watches it, and its address as in a `sockaddr`.
    ///
    /// # Errors
    /// The operating system refuses.
    pub(in crate::device) fn open(
        at: SocketAddr,
        backlog: i32,
        watched_as: u64,
    ) -> Result<(Self, Epoll, Vec<u8>), OpenError> {
        let socket = TcpListener::bind(at).map_err(OpenError::of("bind"))?;
        let name = socket.local_addr().map_err(OpenError::of("getsockname"))?;
        let (listener, epoll) = Self::watched(socket, backlog, watched_as)?;
        Ok((listener, epoll, address::to_bytes(&name)))
    }
}

impl<L: Listens> Listener<L> {
    /// This socket, watched under this name; and who watches it.
    ///
    /// # Errors
    /// The operating system refuses.
    pub(in crate::device) fn watched(
        socket: L,
        backlog: i32,
        watched_as: u64,
    ) -> Result<(Self, Epoll), OpenError> {
        sys::set_backlog(&socket, backlog).map_err(OpenError::of("listen"))?;
        socket.stop_waiting().map_err(OpenError::of("fcntl"))?;
        let epoll = Epoll::new().map_err(OpenError::of("epoll_create1"))?;
        epoll.add(&socket, watched_as, false).map_err(OpenError::of("epoll_ctl"))?;
        let socket = Some(socket);
        Ok((Self { socket, watched_as, paused: 0, process: Process::current() }, epoll))
    }

    /// Of a transport at which nobody calls.
    pub(in crate::device) fn deaf() -> Self {
        Self { socket: None, watched_as: 0, paused: 0, process: Process::current() }
    }

    /// So many connections may wait from now on, as far as the system allows.
    ///
    /// # Errors
    /// The operating system refuses.
    pub(in crate::device) fn set_backlog(&self, backlog: i32) -> io::Result<()> {
        self.socket.as_ref().map_or(Ok(()), |socket| sys::set_backlog(socket, backlog))
    }

    /// Whoever is next, without waiting.
    pub(in crate::device) fn accept(&self) -> Accepted<L::Stream> {
        let Some(socket) = &self.socket else { return Accepted::Nobody };
        match socket.accept_one() {
            Ok(stream) => Accepted::Stream(stream),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Accepted::Nobody,
            Err(error) => {
                let exhausted = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM];
                match error.raw_os_error() {
                    // Linux looks for a descriptor before it looks whether anybody waits.
                    Some(errno) if exhausted.contains(&errno) && sys::has(socket, libc::POLLIN) => {
                        Accepted::Exhausted
                    }
                    Some(errno) if exhausted.contains(&errno) => Accepted::Nobody,
                    Some(_) | None => Accepted::Gone,
                }
            }
        }
    }

    /// None is accepted for a while. Whoever connects waits meanwhile, and the kernel keeps it.
    pub(in crate::device) fn pause(&mut self, epoll: &Epoll) {
        if let Some(socket) = &self.socket
            && self.paused == 0
            && epoll.remove(socket).is_ok()
        {
            self.paused = 1;
        }
    }

    /// A turn is over: perhaps whoever had the descriptors has closed some.
    pub(in crate::device) fn turn(&mut self, epoll: &Epoll) {
        if self.paused > 0 {
            self.paused += 1;
            if self.paused > PAUSE {
                self.resume(epoll);
            }
        }
    }

    /// Perhaps there are descriptors again.
    pub(in crate::device) fn resume(&mut self, epoll: &Epoll) {
        if let Some(socket) = &self.socket
            && self.paused > 0
            && epoll.add(socket, self.watched_as, false).is_ok()
        {
            self.paused = 0;
        }
    }

    /// Whether it is left alone.
    pub(in crate::device) fn is_paused(&self) -> bool {
        self.paused > 0
    }

    /// Whether this is the process that listens, and not a child that was forked from it.
    #[inline]
    pub(in crate::device) fn is_own(&self) -> bool {
        self.process.is_current()
    }
}

/// What was forked keeps descriptors open: nobody listens any more all the same. In a child itself it is the parent's,
/// and nothing is done to it.
impl<L: Listens> Drop for Listener<L> {
    fn drop(&mut self) {
        if let Some(socket) = self.socket.as_ref().filter(|_| self.is_own()) {
            sys::stop_listening(socket);
        }
    }
}

/// So many turns it is left alone.
const PAUSE: usize = 64;
