//! Calls of the operating system that the standard library does not make: connecting without waiting, gathered writes
//! that raise no signal, scattered reads, epoll.
//!
//! Not here: anything that it does make.
#![allow(unsafe_code, reason = "calls of C functions")]

use std::io;
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use super::address;
use crate::device::host_memory::Stretch;

/// A part of what is written.
#[derive(Clone, Copy, Debug)]
pub enum Part<'a> {
    Bytes(&'a [u8]),
    Memory(Stretch),
}

/// Begin to connect, from a socket that is bound or from any: the stream, and why it cannot be if that is known already.
pub(in crate::device) fn connect(
    to: &SocketAddr,
    bound: Option<TcpStream>,
) -> io::Result<(TcpStream, Option<io::Error>)> {
    let stream = bound.map_or_else(|| socket(to), Ok)?;
    let connected = with_address(to, |address, length| {
        // SAFETY: the bytes are a sockaddr of this family, of so many bytes, and are copied.
        unsafe { libc::connect(stream.as_raw_fd(), address, length) }
    });
    let failure = connected.err().filter(|error| {
        !matches!(error.raw_os_error(), Some(libc::EINPROGRESS | libc::EINTR | libc::EAGAIN))
    });
    Ok((stream, failure))
}

/// A socket to connect from this address.
pub(in crate::device) fn bound(at: &SocketAddr) -> io::Result<TcpStream> {
    let stream = socket(at)?;
    with_address(at, |address, length| {
        // SAFETY: as above.
        unsafe { libc::bind(stream.as_raw_fd(), address, length) }
    })?;
    Ok(stream)
}

/// One that does not wait and sends at once.
fn socket(of: &SocketAddr) -> io::Result<TcpStream> {
    let family = if of.is_ipv4() { address::AF_INET } else { address::AF_INET6 };
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no memory is passed.
    let fd = result(unsafe { libc::socket(family.into(), kind, 0) })?;
    // SAFETY: the descriptor is new and nobody else's.
    let stream = TcpStream::from(unsafe { OwnedFd::from_raw_fd(fd) });
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// A call that takes a `sockaddr`.
fn with_address(
    address: &SocketAddr,
    call: impl FnOnce(*const libc::sockaddr, libc::socklen_t) -> i32,
) -> io::Result<()> {
    let bytes = address::to_bytes(address);
    let length = libc::socklen_t::try_from(bytes.len()).map_err(io::Error::other)?;
    result(call(bytes.as_ptr().cast(), length)).map(drop)
}

/// So many connections may wait to be accepted, as far as the system allows (`net.core.somaxconn`).
pub(in crate::device) fn set_backlog(listener: &impl AsRawFd, backlog: i32) -> io::Result<()> {
    // SAFETY: no memory is passed.
    result(unsafe { libc::listen(listener.as_raw_fd(), backlog) }).map(drop)
}

/// Whether one of these is so of a descriptor, or it has failed (`poll(2)`).
pub(in crate::device) fn has(of: &impl AsRawFd, events: i16) -> bool {
    let mut asked = libc::pollfd { fd: of.as_raw_fd(), events, revents: 0 };
    // SAFETY: one place, which is ours.
    unsafe { libc::poll(&raw mut asked, 1, 0) > 0 }
}

/// Nobody listens any more, whoever else has the descriptor.
pub(super) fn stop_listening(listener: &impl AsRawFd) {
    // SAFETY: no memory is passed.
    unsafe { libc::shutdown(listener.as_raw_fd(), libc::SHUT_RD) };
}

/// Write parts, as many of the first as one call takes, and say how many bytes were taken.
pub(in crate::device) fn send<'a>(
    stream: &TcpStream,
    parts: impl Iterator<Item = Part<'a>>,
) -> io::Result<usize> {
    let mut vectors = [NO_VECTOR; PARTS_MAX];
    let mut count = 0_usize;
    for (vector, part) in vectors.iter_mut().zip(parts) {
        *vector = match part {
            Part::Bytes(bytes) => {
                libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() }
            }
            Part::Memory(stretch) => vector_of(stretch),
        };
        count += 1;
    }
    // SAFETY: all zeros is a msghdr without anything.
    let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    message.msg_iov = vectors.as_mut_ptr();
    message.msg_iovlen = count;
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: the vectors are slices, or stretches that the host promised; they are only read.
    count_of(unsafe { libc::sendmsg(stream.as_raw_fd(), &raw const message, flags) })
}

/// Write bytes, as many as one call takes, and say how many were taken.
pub(in crate::device) fn send_bytes(stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: a slice, which is only read.
    count_of(unsafe { libc::send(stream.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) })
}

/// Whether a call would do later: there is no room, or no memory for it.
pub(in crate::device) fn is_passing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
        || matches!(error.raw_os_error(), Some(libc::ENOMEM | libc::ENOBUFS))
}

/// Bytes that were written and that the other side's host has not acknowledged, the end of the stream as one
/// (`SIOCOUTQ`, `tcp(7)`).
pub(in crate::device) fn unacknowledged(stream: &TcpStream) -> u64 {
    let mut count: libc::c_int = 0;
    // SAFETY: the place is ours.
    let asked = unsafe { libc::ioctl(stream.as_raw_fd(), libc::TIOCOUTQ, &raw mut count) };
    // It fails for what is no connection, and then there is nothing.
    if asked < 0 { 0 } else { u64::try_from(count).unwrap_or(0) }
}

/// Within a host nothing is congested, and pacing (bbr) costs half of the bandwidth or more: a connection between two
/// addresses that are one is not paced. Where the system refuses, it is only slower.
pub(in crate::device) fn speed_up(stream: &TcpStream) {
    let is_within = match (stream.local_addr(), stream.peer_addr()) {
        (Ok(local), Ok(peer)) => local.ip() == peer.ip(),
        _ => false,
    };
    if is_within {
        let length = libc::socklen_t::try_from(UNPACED.len()).unwrap_or(0);
        let (level, name) = (libc::IPPROTO_TCP, libc::TCP_CONGESTION);
        // SAFETY: the name has so many bytes, and is copied.
        unsafe { libc::setsockopt(stream.as_raw_fd(), level, name, UNPACED.as_ptr().cast(), length) };
    }
}

/// The control that every Linux has and lets everybody use (`tcp(7)`).
const UNPACED: &[u8] = b"reno";

/// Read into stretches of memory, and what is behind them into `rest`.
pub(in crate::device) fn receive(
    stream: &TcpStream,
    stretches: impl Iterator<Item = Stretch>,
    rest: &mut [u8],
) -> io::Result<usize> {
    let mut vectors = [NO_VECTOR; PARTS_MAX];
    let mut count = 0;
    for (vector, stretch) in vectors.iter_mut().zip(stretches) {
        *vector = vector_of(stretch);
        count += 1;
    }
    if let (1, true, [vector, ..]) = (count, rest.is_empty(), &vectors) {
        // SAFETY: the vector is a stretch that the host promised.
        return count_of(unsafe { libc::recv(stream.as_raw_fd(), vector.iov_base, vector.iov_len, 0) });
    }
    if let Some(vector) = vectors.get_mut(count) {
        *vector = libc::iovec { iov_base: rest.as_mut_ptr().cast(), iov_len: rest.len() };
        count += 1;
    }
    let count = i32::try_from(count).unwrap_or(0);
    // SAFETY: the vectors are stretches that the host promised, and a slice.
    count_of(unsafe { libc::readv(stream.as_raw_fd(), vectors.as_ptr(), count) })
}

/// At most so many parts in one call.
pub(in crate::device) const PARTS_MAX: usize = 32;

const NO_VECTOR: libc::iovec = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };

fn vector_of(stretch: Stretch) -> libc::iovec {
    libc::iovec { iov_base: stretch.pointer().cast(), iov_len: stretch.length() }
}

pub(in crate::device) fn result(returned: i32) -> io::Result<i32> {
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(returned) }
}

/// Whether this process may have a file of so many bytes, in memory too (`RLIMIT_FSIZE`, `getrlimit(2)`): a call that makes
/// one longer than that ends the process by a signal.
///
/// # Errors
/// `EFBIG`: it may not.
pub(crate) fn check_file_length(length: u64) -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the place is ours.
    result(unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) })?;
    if length > limit.rlim_cur { Err(io::Error::from_raw_os_error(libc::EFBIG)) } else { Ok(()) }
}

pub(in crate::device) fn count_of(returned: isize) -> io::Result<usize> {
    usize::try_from(returned).map_err(|_| io::Error::last_os_error())
}

/// `epoll(7)`, level-triggered.
#[derive(Debug)]
pub(in crate::device) struct Epoll {
    fd: OwnedFd,
    events: [libc::epoll_event; EVENTS_MAX],
    count: usize,
}

/// What is ready.
#[derive(Clone, Copy, Debug)]
pub(in crate::device) struct Ready {
    pub(in crate::device) name: u64,
    pub(in crate::device) is_readable: bool,
    pub(in crate::device) is_writable: bool,
}

impl Epoll {
    pub(in crate::device) fn new() -> io::Result<Self> {
        // SAFETY: no memory is passed.
        let fd = result(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the descriptor is new and nobody else's.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { fd, events: [libc::epoll_event { events: 0, u64: 0 }; EVENTS_MAX], count: 0 })
    }

    pub(in crate::device) fn descriptor(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    pub(in crate::device) fn add(&self, of: &impl AsRawFd, name: u64, writable: bool) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, of.as_raw_fd(), name, writable)
    }

    pub(in crate::device) fn change(&self, of: &impl AsRawFd, name: u64, writable: bool) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, of.as_raw_fd(), name, writable)
    }

    pub(in crate::device) fn remove(&self, of: &impl AsRawFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, of.as_raw_fd(), 0, false)
    }

    fn control(&self, operation: i32, fd: RawFd, name: u64, writable: bool) -> io::Result<()> {
        let events = libc::EPOLLIN | if writable { libc::EPOLLOUT } else { 0 };
        let mut event = libc::epoll_event { events: events.cast_unsigned(), u64: name };
        // SAFETY: the event is copied.
        result(unsafe { libc::epoll_ctl(self.fd.as_raw_fd(), operation, fd, &raw mut event) }).map(drop)
    }

    /// Look, without waiting; [`Self::ready`] has what is found. Says how much that is.
    pub(in crate::device) fn look(&mut self) -> io::Result<usize> {
        let room = i32::try_from(EVENTS_MAX).unwrap_or(1);
        // SAFETY: there is room for so many events.
        let count =
            result(unsafe { libc::epoll_wait(self.fd.as_raw_fd(), self.events.as_mut_ptr(), room, 0) });
        self.count = match count {
            Ok(count) => usize::try_from(count).unwrap_or(0),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) => return Err(error),
        };
        Ok(self.count)
    }

    /// What the last look found.
    pub(in crate::device) fn ready(&self, place: usize) -> Option<Ready> {
        let event = self.events.get(..self.count)?.get(place)?;
        let (events, name) = (event.events.cast_signed(), event.u64);
        let ended = libc::EPOLLERR | libc::EPOLLHUP;
        Some(Ready {
            name,
            is_readable: events & (libc::EPOLLIN | ended) != 0,
            is_writable: events & (libc::EPOLLOUT | ended) != 0,
        })
    }
}

const EVENTS_MAX: usize = 64;
