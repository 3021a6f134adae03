//! What bytes go over: a medium connects and listens, and its streams carry bytes in order, both ways, until they end.
//!
//! Not here: what the bytes are.

use std::fmt::Debug;
use std::io;
use std::os::fd::AsRawFd;

use crate::device::host_memory::Stretch;
use crate::device::sockets::listener::{Listener, Listens};
use crate::device::sockets::sys::Part;
use crate::device::transport::{CloseReason, LinkError};
use crate::seam::{Buffer, Remote};

/// How streams come about.
pub trait Medium: Debug {
    /// What they are.
    type Stream: Stream;
    /// Who listens.
    type Socket: Listens<Stream = <Self::Stream as Stream>::Socket>;

    /// A look at a stream is a look at memory, and costs no call of the operating system. What such streams bring shows in
    /// no descriptor unless [`Stream::may_wait`] was asked.
    const IS_MEMORY: bool;

    /// Who listens.
    fn listener(&self) -> &Listener<Self::Socket>;

    /// Who listens.
    fn listener_mut(&mut self) -> &mut Listener<Self::Socket>;

    /// A stream of who was accepted, which is open from now on.
    ///
    /// # Errors
    /// There is nothing to be done with it.
    fn accepted(&mut self, socket: <Self::Stream as Stream>::Socket) -> io::Result<Self::Stream>;

    /// Begin to connect to a name: the stream, and why nothing comes of it if that is known already.
    ///
    /// # Errors
    /// The name is none of this medium's, or no stream could be made.
    fn connect(&mut self, name: &[u8]) -> Result<(Self::Stream, Option<CloseReason>), LinkError>;

    /// Connect from this name the next time; the name that it is.
    ///
    /// # Errors
    /// The name is none of this medium's, or is another's.
    fn set_source(&mut self, _name: &[u8]) -> Result<Vec<u8>, LinkError> {
        Err(LinkError::Address("whoever connects here has no address".into()))
    }
}

/// What came of reading the other side's memory directly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direct {
    /// The bytes are there.
    Done,
    /// There is no such memory.
    Refused,
    /// It cannot be done: the other side is to be asked for them.
    Not,
}

/// Bytes in order, both ways. Reading and writing never wait: where nothing can be done now the error says so
/// ([`io::ErrorKind::WouldBlock`]).
///
/// Its descriptor (`epoll(7)`) is readable when there is something to read, and at the end.
pub trait Stream: AsRawFd + Debug {
    /// What is accepted.
    type Socket: Debug;

    /// So many bytes are read at once at most, of which nobody knows yet where they belong: as many as a call is worth.
    const AT_ONCE: usize;

    /// Whether one stretch costs so much less to write than several that short ones are put together before.
    const GATHERS: bool;

    /// What came of connecting; `None` while it is under way.
    fn connected(&mut self) -> Option<Result<(), CloseReason>>;

    /// Read, and say how many bytes; 0: the other side is done.
    ///
    /// # Errors
    /// Nothing is there, or nothing more will be.
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize>;

    /// Read into stretches of memory, and what is behind them into `rest`.
    ///
    /// # Errors
    /// As [`Self::read`].
    fn receive(&mut self, stretches: impl Iterator<Item = Stretch>, rest: &mut [u8]) -> io::Result<usize>;

    /// How many bytes are there to be read, and the first of them, which stay; what is not there is 0. `None`: nobody can
    /// tell without reading, or reading has an error to tell.
    #[inline]
    fn peek(&mut self) -> Option<(usize, [u8; PEEKED])> {
        None
    }

    /// Of bytes that [`Self::peek`] has told of take `skipped + length`: `length` of them, behind those that are skipped,
    /// into stretches, as many as these hold.
    fn take(&mut self, _skipped: usize, _length: usize, _into: impl Iterator<Item = Stretch>) {}

    /// The same into bytes.
    fn take_bytes(&mut self, _skipped: usize, _into: &mut [u8]) {}

    /// Write bytes, as many as there is room for, and say how many.
    ///
    /// # Errors
    /// There is no room, or never will be; the memory cannot be read (`EFAULT`).
    fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Write parts of so many bytes in all, if there is room for all of them. False: nothing was written, and
    /// [`Self::send`] says why.
    #[inline]
    fn send_whole<'a>(&mut self, _total: usize, _parts: impl Iterator<Item = Part<'a>>) -> bool {
        false
    }

    /// Write parts, as many of the first as there is room for, and say how many bytes that is.
    ///
    /// # Errors
    /// As [`Self::send_bytes`].
    fn send<'a>(&mut self, parts: impl Iterator<Item = Part<'a>>) -> io::Result<usize>;

    /// Nothing more is written.
    ///
    /// # Errors
    /// It has ended already.
    fn end_writing(&mut self) -> io::Result<()>;

    /// It ends, whoever else has the descriptor.
    fn end(&mut self);

    /// Bytes that were written and that depend on this process yet.
    fn unacknowledged(&self) -> u64;

    /// Whether reading would bring something, as far as that can be seen without a call of the operating system.
    fn has_news(&self) -> bool {
        true
    }

    /// The descriptor is readable.
    fn tell_ready(&mut self) {}

    /// Let the other side read memory of this process by itself while this key stands, if it can.
    fn offer(&mut self, _key: u32, _memory: &Buffer) {}

    /// The key stands no more: what the other side still reads by it counts for nothing, and it will know.
    fn retract(&mut self, _key: u32) {}

    /// Read memory of the other side's process into stretches, if its owner has offered that.
    fn read_directly(&mut self, _remote: &Remote, _into: impl Iterator<Item = Stretch>) -> Direct {
        Direct::Not
    }

    /// Whether the owner may wait for the descriptor; false if there is something to read already.
    fn may_wait(&mut self) -> bool {
        true
    }

    /// This end's address and the other's, as in a `sockaddr`, where they have some.
    fn addresses(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        None
    }
}

/// So many bytes are looked at before they are read: a frame's head, an immediate, and a header with a tag.
pub(crate) const PEEKED: usize = 28;
