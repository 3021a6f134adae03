//! A stream of bytes through two rings, beside a Unix socket that says who is there, wakes, and ends.
//!
//! ```text
//!  who connects:  makes the region ── hello + descriptor ──▶ socket ──▶ whoever accepted maps it
//!  from then on:  bytes through the rings; through the socket, bytes that wake, and its end
//! ```
//!
//! What was written before the end of the socket is read before it shows. Whoever ends it says so in the memory first, where
//! the other side sees it at once; of who was killed the socket alone tells. Nothing that was written depends on the writer
//! any more: the other side has the memory, or the descriptor waits in its socket.
//!
//! Not here: by which name somebody is found.

use std::io;
use std::net::Shutdown;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;

use super::direct;
use super::region::Region;
use super::ring::{Rings, broken};
use super::socket;
use crate::device::host_memory::Stretch;
use crate::device::sockets::sys::Part;
use crate::device::stream::{Direct, PEEKED, Stream};
use crate::device::transport::CloseReason;
use crate::seam::{Buffer, Remote};

/// See the module.
#[derive(Debug)]
pub struct ShmStream {
    socket: UnixStream,
    /// `None` until the other side's hello is here.
    rings: Option<Rings>,
    /// The socket has something to read, perhaps.
    is_ready: bool,
    /// The socket has ended.
    is_over: bool,
    /// The other side does not keep to what rings are.
    is_broken: bool,
    /// The process at the other end, if its memory can be read, as far as is known.
    process: Option<libc::pid_t>,
}

impl ShmStream {
    /// To whoever listens under this abstract name, through rings of so many bytes each.
    pub(super) fn connect(name: &[u8], ring_bytes: usize) -> io::Result<Self> {
        let socket = socket::connect(name)?;
        let process = peer(&socket)?;
        let (region, file) = Region::create(ring_bytes)?;
        socket::pass(&socket, &Hello { ring_bytes }.to_bytes(), &file)?;
        let rings = Some(Rings::new(region, true));
        Ok(Self { socket, rings, is_ready: false, is_over: false, is_broken: false, process })
    }

    /// From somebody who was accepted.
    pub(super) fn accepted(socket: UnixStream) -> io::Result<Self> {
        let process = peer(&socket)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, rings: None, is_ready: true, is_over: false, is_broken: false, process })
    }

    fn rings(&mut self) -> io::Result<&mut Rings> {
        if self.rings.is_none() {
            self.greet()?;
        }
        self.rings.as_mut().ok_or_else(nothing)
    }

    /// The other side's hello, if it is here.
    fn greet(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.is_ready) {
            return Err(nothing());
        }
        let mut bytes = [0; Hello::LENGTH];
        let (count, file) = socket::receive(&self.socket, &mut bytes)?;
        let (Some(file), Some(hello)) = (file, Hello::decode(bytes.get(..count).unwrap_or_default())) else {
            return Err(io::Error::from_raw_os_error(if count == 0 {
                libc::ECONNRESET
            } else {
                libc::EPROTO
            }));
        };
        self.rings = Some(Rings::new(Region::open(&file, hello.ring_bytes)?, false));
        Ok(())
    }

    /// Bytes that wake are no news; the end of the socket is.
    fn look_at_socket(&mut self) -> io::Result<()> {
        let mut bytes = [0; 64];
        while !self.is_over {
            match socket::receive(&self.socket, &mut bytes) {
                Ok((0, _)) => self.is_over = true,
                Ok((count, _)) if count < bytes.len() => break,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.raw_os_error() == Some(libc::ECONNRESET) => self.is_over = true,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// What a read brought, or the end if it brought nothing and nothing more will come.
    #[inline]
    fn read_by(&mut self, mut read: impl FnMut(&mut Rings) -> io::Result<usize>) -> io::Result<usize> {
        if self.is_broken {
            return Err(broken());
        }
        let count = read(self.rings()?)?;
        if count > 0 {
            return Ok(count);
        }
        if std::mem::take(&mut self.is_ready) {
            self.look_at_socket()?;
        }
        let is_over = self.is_over;
        let rings = self.rings()?;
        if !is_over && !rings.is_ended() {
            return Err(nothing());
        }
        // What was written before the end is there by now.
        let count = read(rings)?;
        if count == 0 && rings.has_bytes() { Err(nothing()) } else { Ok(count) }
    }

    #[inline]
    fn write_by(&mut self, write: impl FnOnce(&mut Rings) -> io::Result<usize>) -> io::Result<usize> {
        if self.is_over {
            return Err(io::Error::from_raw_os_error(libc::EPIPE));
        }
        let rings = self.rings()?;
        if rings.is_ended() {
            return Err(io::Error::from_raw_os_error(libc::EPIPE));
        }
        let count = match write(rings) {
            Ok(count) => count,
            Err(error) => {
                // Reading ends the link.
                self.is_broken = true;
                return Err(error);
            }
        };
        if count == 0 {
            return Err(nothing());
        }
        if rings.is_to_wake() {
            socket::wake(&self.socket);
        }
        Ok(count)
    }
}

impl AsRawFd for ShmStream {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl Stream for ShmStream {
    type Socket = UnixStream;

    // Nothing is saved by more, and what is behind a header may have its place by then.
    const AT_ONCE: usize = 1024;
    const GATHERS: bool = false;

    fn connected(&mut self) -> Option<Result<(), CloseReason>> {
        Some(Ok(()))
    }

    #[inline]
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.read_by(|rings| rings.read(into))
    }

    #[inline]
    fn receive(&mut self, stretches: impl Iterator<Item = Stretch>, rest: &mut [u8]) -> io::Result<usize> {
        let count = self.rings()?.receive(stretches, rest)?;
        // What has come meanwhile is for the next time.
        if count > 0 { Ok(count) } else { self.read(&mut []) }
    }

    #[inline]
    fn peek(&mut self) -> Option<(usize, [u8; PEEKED])> {
        let rings = self.rings.as_mut().filter(|_| !self.is_broken)?;
        rings.peek().ok()
    }

    #[inline]
    fn take(&mut self, skipped: usize, length: usize, into: impl Iterator<Item = Stretch>) {
        if let Some(rings) = &mut self.rings {
            rings.take(skipped, length, into);
        }
    }

    #[inline]
    fn take_bytes(&mut self, skipped: usize, into: &mut [u8]) {
        if let Some(rings) = &mut self.rings {
            rings.take_bytes(skipped, into);
        }
    }

    #[inline]
    fn send_whole<'a>(&mut self, total: usize, parts: impl Iterator<Item = Part<'a>>) -> bool {
        let Some(rings) = self.rings.as_mut().filter(|_| !self.is_over) else { return false };
        let is_sent = !rings.is_ended() && rings.write_whole(total, parts);
        if is_sent && rings.is_to_wake() {
            socket::wake(&self.socket);
        }
        is_sent
    }

    #[inline]
    fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_by(|rings| rings.write(bytes))
    }

    #[inline]
    fn send<'a>(&mut self, parts: impl Iterator<Item = Part<'a>>) -> io::Result<usize> {
        self.write_by(|rings| rings.write_parts(parts))
    }

    fn end_writing(&mut self) -> io::Result<()> {
        if let Some(rings) = &self.rings {
            rings.end();
        }
        self.socket.shutdown(Shutdown::Write)
    }

    fn end(&mut self) {
        if let Some(rings) = &self.rings {
            rings.end();
        }
        // It has ended already, or it ends now.
        let _ = self.socket.shutdown(Shutdown::Both);
    }

    fn unacknowledged(&self) -> u64 {
        0
    }

    fn offer(&mut self, key: u32, memory: &Buffer) {
        if let Some(rings) = &self.rings
            && self.process.is_some()
            && memory.segments == 1
        {
            rings.offer(key, memory.address, memory.length);
        }
    }

    fn retract(&mut self, key: u32) {
        if let Some(rings) = &self.rings {
            rings.retract(key);
        }
    }

    fn read_directly(&mut self, remote: &Remote, into: impl Iterator<Item = Stretch>) -> Direct {
        let (Some(process), Some(rings)) = (self.process, &self.rings) else { return Direct::Not };
        let Some(offer @ (address, length)) = rings.offer_of(remote.key) else { return Direct::Not };
        let end = remote.address.checked_add(remote.length);
        if end.is_none_or(|end| end > length) || length > isize::MAX as u64 {
            return Direct::Not;
        }
        let result = direct::read(process, address.wrapping_add(remote.address), into);
        // While its socket is there, the process has its number, and nobody else.
        let stands = || rings.offer_of(remote.key) == Some(offer) && socket::is_there(&self.socket);
        match result {
            Ok(()) if stands() => Direct::Done,
            Ok(()) => Direct::Not,
            // Whoever took it back may have freed it, and whoever has closed may have ended.
            Err(error) if error.raw_os_error() == Some(libc::EFAULT) => {
                if stands() {
                    Direct::Refused
                } else {
                    Direct::Not
                }
            }
            Err(_) => {
                self.process = None;
                Direct::Not
            }
        }
    }

    #[inline]
    fn has_news(&self) -> bool {
        self.is_ready || self.is_broken || self.rings.as_ref().is_some_and(Rings::has_news)
    }

    fn tell_ready(&mut self) {
        self.is_ready = true;
    }

    fn may_wait(&mut self) -> bool {
        !self.is_broken && self.rings.as_ref().is_none_or(Rings::may_wait)
    }
}

/// What comes with the descriptor of a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Hello {
    /// Bytes of each ring: a power of two, of whole pages.
    pub(super) ring_bytes: usize,
}

impl Hello {
    const LENGTH: usize = 16;

    pub(super) fn to_bytes(self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..].copy_from_slice(&(self.ring_bytes as u64).to_be_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (magic, length) = bytes.split_first_chunk()?;
        let ring_bytes = usize::try_from(u64::from_be_bytes(length.try_into().ok()?)).ok()?;
        let is_good = *magic == MAGIC && RING_BYTES.contains(&ring_bytes) && ring_bytes.is_power_of_two();
        is_good.then_some(Self { ring_bytes })
    }
}

/// The process at the other end, if it has a number here. Processes of other users share no memory with this one.
fn peer(socket: &UnixStream) -> io::Result<Option<libc::pid_t>> {
    let peer = socket::credentials(socket)?;
    if peer.uid == socket::own_user() {
        Ok((peer.pid > 0).then_some(peer.pid))
    } else {
        Err(io::Error::from_raw_os_error(libc::EACCES))
    }
}

/// There is nothing to read now, or no room.
#[cold]
fn nothing() -> io::Error {
    io::ErrorKind::WouldBlock.into()
}

/// The protocol and its version.
const MAGIC: [u8; 8] = *b"tagm-sh2";
/// What a ring may have.
pub(super) const RING_BYTES: std::ops::RangeInclusive<usize> = (64 << 10)..=(64 << 20);
