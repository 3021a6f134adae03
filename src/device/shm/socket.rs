//! Calls on Unix sockets that the standard library does not make: connecting without waiting, passing a descriptor, whose
//! the other side is.
//!
//! Not here: what the descriptor is of.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::ptr;

use crate::device::sockets::sys::{self, count_of, result};

/// Connect to an abstract name (`unix(7)`). It is done or it fails: nothing is under way after.
pub(super) fn connect(name: &[u8]) -> io::Result<UnixStream> {
    // SAFETY: all zeros is a value of it.
    let mut address: libc::sockaddr_un = unsafe { MaybeUninit::zeroed().assume_init() };
    address.sun_family = FAMILY;
    let Some(place) = address.sun_path.get_mut(1..=name.len()) else {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    };
    for (to, from) in place.iter_mut().zip(name) {
        *to = from.cast_signed();
    }
    let length = std::mem::offset_of!(libc::sockaddr_un, sun_path) + 1 + name.len();
    let length = libc::socklen_t::try_from(length).map_err(io::Error::other)?;
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no memory is passed.
    let fd = result(unsafe { libc::socket(libc::AF_UNIX, kind, 0) })?;
    // SAFETY: the descriptor is new and nobody else's.
    let stream = UnixStream::from(unsafe { OwnedFd::from_raw_fd(fd) });
    // SAFETY: the address has so many bytes, and is copied.
    result(unsafe { libc::connect(stream.as_raw_fd(), (&raw const address).cast(), length) })?;
    Ok(stream)
}

/// The process at the other end and its user, as they were when it connected or listened (`SO_PEERCRED`).
pub(super) fn credentials(stream: &UnixStream) -> io::Result<libc::ucred> {
    // SAFETY: all zeros is a value of it.
    let mut peer: libc::ucred = unsafe { MaybeUninit::zeroed().assume_init() };
    let mut length = libc::socklen_t::try_from(size_of::<libc::ucred>()).map_err(io::Error::other)?;
    let (level, name) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
    // SAFETY: the place is ours, and has so many bytes.
    result(unsafe {
        libc::getsockopt(stream.as_raw_fd(), level, name, (&raw mut peer).cast(), &raw mut length)
    })?;
    Ok(peer)
}

/// The user of this process.
pub(super) fn own_user() -> libc::uid_t {
    // SAFETY: no memory is passed.
    unsafe { libc::geteuid() }
}

/// Send bytes and a descriptor with them.
pub(super) fn pass(stream: &UnixStream, bytes: &[u8], file: &OwnedFd) -> io::Result<()> {
    let mut vector = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut control = Control::default();
    let message = control.message(&mut vector);
    // SAFETY: the message has room for one control message, which is this.
    let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    // SAFETY: arithmetic.
    let length = unsafe { libc::CMSG_LEN(FD_LENGTH) } as usize;
    let head = libc::cmsghdr { cmsg_len: length, cmsg_level: libc::SOL_SOCKET, cmsg_type: libc::SCM_RIGHTS };
    // SAFETY: there is room for it.
    unsafe { header.write(head) };
    // SAFETY: arithmetic, within that room.
    let data = unsafe { libc::CMSG_DATA(header) };
    // SAFETY: there is room for a descriptor, wherever it lies.
    unsafe { ptr::write_unaligned(data.cast::<libc::c_int>(), file.as_raw_fd()) };
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: bytes and control message are ours, and only read.
    let sent = count_of(unsafe { libc::sendmsg(stream.as_raw_fd(), &raw const message, flags) })?;
    if sent < bytes.len() { Err(io::Error::from_raw_os_error(libc::ENOBUFS)) } else { Ok(()) }
}

/// Receive bytes, and the descriptor that comes with them if it is one. Others are closed: they are this process's as soon
/// as they are here, and whoever sends them by the dozen would use up all that it may have.
pub(super) fn receive(stream: &UnixStream, into: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut vector = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let mut control = Control::default();
    let mut message = control.message(&mut vector);
    let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
    // SAFETY: bytes and control message are ours.
    let count = count_of(unsafe { libc::recvmsg(stream.as_raw_fd(), &raw mut message, flags) })?;
    let mut file = None;
    // SAFETY: the message is what the call has made of it.
    let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    if !header.is_null() {
        // SAFETY: it is a control message of this one.
        let head = unsafe { header.read() };
        // SAFETY: arithmetic.
        let before = unsafe { libc::CMSG_LEN(0) } as usize;
        // SAFETY: arithmetic, within the control message.
        let data = unsafe { libc::CMSG_DATA(header) }.cast::<libc::c_int>();
        let are_files = (head.cmsg_level, head.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS);
        let length = if are_files { head.cmsg_len.saturating_sub(before) } else { 0 };
        // There is room for two, since control messages are of whole words.
        let count = length.min(size_of::<Control>() - before) / FD_LENGTH as usize;
        for at in 0..count {
            // SAFETY: so many descriptors are in it, wherever they lie.
            let fd = unsafe { ptr::read_unaligned(data.wrapping_add(at)) };
            // SAFETY: it is ours from now on.
            let own = unsafe { OwnedFd::from_raw_fd(fd) };
            file = Some(own).filter(|_| count == 1);
        }
    }
    Ok((count, file))
}

/// Whether the other side has the socket open yet.
pub(super) fn is_there(stream: &UnixStream) -> bool {
    !sys::has(stream, libc::POLLRDHUP)
}

/// Send a byte that says nothing; it is well if there is no room, since then there are others.
pub(super) fn wake(stream: &UnixStream) {
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: a byte of a constant, which is only read.
    unsafe { libc::send(stream.as_raw_fd(), [0_u8].as_ptr().cast(), 1, flags) };
}

/// Room for one control message with a descriptor.
#[derive(Default)]
struct Control {
    // The alignment of a control message's header.
    room: [u64; 4],
}

impl Control {
    fn message(&mut self, vector: &mut libc::iovec) -> libc::msghdr {
        // SAFETY: all zeros is a msghdr without anything.
        let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
        message.msg_iov = vector;
        message.msg_iovlen = 1;
        message.msg_control = self.room.as_mut_ptr().cast();
        // SAFETY: arithmetic.
        message.msg_controllen = unsafe { libc::CMSG_SPACE(FD_LENGTH) } as usize;
        message
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the families are small numbers")]
const FAMILY: libc::sa_family_t = libc::AF_UNIX as libc::sa_family_t;
/// Bytes of one descriptor.
const FD_LENGTH: libc::c_uint = 4;
const _: () = assert!(size_of::<libc::c_int>() == FD_LENGTH as usize);
