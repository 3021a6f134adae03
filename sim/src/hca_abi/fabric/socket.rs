//! Sequenced-packet sockets that never wait, and one descriptor that tells which of them are ready.
//!
//! std has no such sockets.

use super::super::raw;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Takes connections.
#[derive(Debug)]
pub(super) struct Listener(OwnedFd);

/// One connection.
#[derive(Debug)]
pub(super) struct Connection(OwnedFd);

/// Which are ready.
#[derive(Debug)]
pub(super) struct Poller(OwnedFd);

impl Listener {
    /// At a path.
    pub(super) fn bind(path: &Path) -> io::Result<Self> {
        let socket = socket(libc::SOCK_NONBLOCK)?;
        let (address, length) = address(path)?;
        let fd = socket.as_raw_fd();
        // SAFETY: an address of that length.
        done(unsafe { libc::bind(fd, (&raw const address).cast(), length) })?;
        // SAFETY: numbers alone.
        done(unsafe { libc::listen(fd, 128) })?;
        Ok(Self(socket))
    }

    /// Its number.
    pub(super) fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// The next connection, if there is one.
    pub(super) fn accept(&self) -> Option<Connection> {
        let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        let nobody = core::ptr::null_mut();
        // SAFETY: no address is asked for.
        let fd = unsafe { libc::accept4(self.0.as_raw_fd(), nobody, core::ptr::null_mut(), flags) };
        // SAFETY: just made, and nobody else has it.
        (fd >= 0).then(|| Connection(unsafe { OwnedFd::from_raw_fd(fd) }))
    }
}

impl Connection {
    /// To the listener at a path. Waits as long as its queue is full.
    pub(super) fn connect(path: &Path) -> io::Result<Self> {
        let socket = socket(0)?;
        let (address, length) = address(path)?;
        // SAFETY: an address of that length.
        done(unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), length) })?;
        Ok(Self(socket))
    }

    /// Its number.
    pub(super) fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Send one message. False: there is no room.
    pub(super) fn send(&self, bytes: &[u8]) -> io::Result<bool> {
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        // SAFETY: bytes of that length.
        let sent = unsafe { libc::send(self.0.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) };
        if sent >= 0 { Ok(true) } else { would_wait().map(|()| false) }
    }

    /// Receive one message: its length; 0 at the end. None: there is none now.
    pub(super) fn receive(&self, bytes: &mut [u8]) -> io::Result<Option<usize>> {
        let flags = libc::MSG_DONTWAIT;
        let fd = self.0.as_raw_fd();
        // SAFETY: room of that length.
        let length = unsafe { libc::recv(fd, bytes.as_mut_ptr().cast(), bytes.len(), flags) };
        if length >= 0 { Ok(Some(length.cast_unsigned())) } else { would_wait().map(|()| None) }
    }
}

impl Poller {
    /// Of nothing yet.
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: numbers alone.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        done(fd)?;
        // SAFETY: just made, and nobody else has it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Readable when any of its descriptors is.
    pub(super) fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Look at this one as well, until it is closed.
    pub(super) fn add(&self, fd: RawFd) -> io::Result<()> {
        let events = libc::EPOLLIN.cast_unsigned();
        let mut event = libc::epoll_event { events, u64: u64::from(fd.cast_unsigned()) };
        // SAFETY: one structure.
        done(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &raw mut event) })
    }

    /// Those that can be read now.
    pub(super) fn ready(&self) -> Vec<RawFd> {
        let mut events = [const { libc::epoll_event { events: 0, u64: 0 } }; READY_MAX];
        let room = i32::try_from(READY_MAX).unwrap_or(0);
        // SAFETY: room for that many.
        let count = unsafe { libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), room, 0) };
        let ready = events.iter().take(usize::try_from(count).unwrap_or(0));
        ready.filter_map(|event| i32::try_from(event.u64).ok()).collect()
    }
}

fn socket(flags: i32) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | flags;
    let fd = raw::socket(libc::AF_UNIX, kind, 0);
    done(fd)?;
    // SAFETY: just made, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn address(path: &Path) -> io::Result<(libc::sockaddr_un, libc::socklen_t)> {
    // SAFETY: plain numbers, of which zero is a value.
    let mut address: libc::sockaddr_un = unsafe { core::mem::zeroed() };
    address.sun_family = libc::sa_family_t::try_from(libc::AF_UNIX).unwrap_or(0);
    let (bytes, limit) = (path.as_os_str().as_bytes(), address.sun_path.len() - 1);
    if bytes.len() > limit {
        let path = path.display();
        let what = format!("{path}: a socket's path has at most {limit} bytes; set TMPDIR to a shorter one");
        return Err(io::Error::new(io::ErrorKind::InvalidFilename, what));
    }
    for (to, from) in address.sun_path.iter_mut().zip(bytes) {
        *to = from.cast_signed();
    }
    Ok((address, libc::socklen_t::try_from(size_of::<libc::sockaddr_un>()).unwrap_or(0)))
}

fn done(answer: i32) -> io::Result<()> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The last error, unless it is that one would have to wait.
fn would_wait() -> io::Result<()> {
    let error = io::Error::last_os_error();
    let is_busy = [io::ErrorKind::WouldBlock, io::ErrorKind::Interrupted].contains(&error.kind());
    if is_busy { Ok(()) } else { Err(error) }
}

/// As many at a time.
const READY_MAX: usize = 64;
