//! A stream that is bytes in a vector: it costs nothing, counts its calls, and has what the test has put there.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::device::host_memory::Stretch;
use crate::device::sockets::listener::Listener;
use crate::device::sockets::sys::Part;
use crate::device::stream::{LISTENER, Medium, PEEKED, Stream, StreamConfig, StreamTransport};
use crate::device::tests::streamed::{EAGER_LIMIT, Line};
use crate::device::tests::{RECEIVED_FROM, Recorder, trusted};
use crate::device::transport::{CloseReason, LinkError, Notice, Transport};
use crate::ids::DeviceId;
use crate::seam::Buffer;

/// What both ends see.
#[derive(Debug, Default)]
pub(super) struct Bytes {
    given: Vec<u8>,
    taken: usize,
    is_ended: bool,
    written: Vec<u8>,
    /// Calls that took bytes.
    pub(super) reads: usize,
}

impl Bytes {
    fn left(&self) -> &[u8] {
        &self.given[self.taken..]
    }

    /// Take bytes into memory, as many as there are for it.
    fn fill(&mut self, stretch: Stretch, most: usize) -> usize {
        let count = stretch.length().min(most).min(self.left().len());
        let buffer = Buffer::new(stretch.pointer().expose_provenance() as u64, count as u64);
        trusted().write(&buffer, 0, &self.left()[..count]);
        self.taken += count;
        count
    }

    fn copy(&mut self, into: &mut [u8]) -> usize {
        let count = into.len().min(self.left().len());
        into[..count].copy_from_slice(&self.left()[..count]);
        self.taken += count;
        count
    }

    fn nothing(&self) -> io::Result<usize> {
        if self.is_ended { Ok(0) } else { Err(io::ErrorKind::WouldBlock.into()) }
    }
}

/// As a socket is read, or as a ring is.
#[derive(Debug)]
pub(super) struct Scripted<const IS_RING: bool> {
    bytes: Arc<Mutex<Bytes>>,
    /// Its own end always has something to read, and room.
    socket: UnixStream,
    _other: UnixStream,
}

impl<const IS_RING: bool> Scripted<IS_RING> {
    fn bytes(&self) -> MutexGuard<'_, Bytes> {
        self.bytes.lock().expect("nobody panics with it")
    }
}

impl<const IS_RING: bool> AsRawFd for Scripted<IS_RING> {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl<const IS_RING: bool> Stream for Scripted<IS_RING> {
    type Socket = TcpStream;

    const AT_ONCE: usize = if IS_RING { 1024 } else { usize::MAX };
    const GATHERS: bool = !IS_RING;

    fn connected(&mut self) -> Option<Result<(), CloseReason>> {
        Some(Ok(()))
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut bytes = self.bytes();
        bytes.reads += 1;
        assert!(!into.is_empty(), "a read of nothing says that the other side is done");
        match bytes.copy(into) {
            0 => bytes.nothing(),
            count => Ok(count),
        }
    }

    fn receive(&mut self, stretches: impl Iterator<Item = Stretch>, rest: &mut [u8]) -> io::Result<usize> {
        let mut bytes = self.bytes();
        bytes.reads += 1;
        let mut room = rest.len();
        let mut count = 0;
        for stretch in stretches {
            room += stretch.length();
            count += bytes.fill(stretch, usize::MAX);
        }
        assert!(room > 0, "a read of nothing says that the other side is done");
        count += bytes.copy(rest);
        if count == 0 { bytes.nothing() } else { Ok(count) }
    }

    fn peek(&mut self) -> Option<(usize, [u8; PEEKED])> {
        let bytes = self.bytes();
        let mut first = [0; PEEKED];
        first.iter_mut().zip(bytes.left()).for_each(|(into, byte)| *into = *byte);
        IS_RING.then_some((bytes.left().len(), first))
    }

    fn take(&mut self, skipped: usize, length: usize, into: impl Iterator<Item = Stretch>) {
        let mut bytes = self.bytes();
        let end = bytes.taken + skipped + length;
        bytes.taken += skipped;
        for stretch in into {
            let most = end - bytes.taken;
            bytes.fill(stretch, most);
        }
        bytes.taken = end;
    }

    fn take_bytes(&mut self, skipped: usize, into: &mut [u8]) {
        let mut bytes = self.bytes();
        bytes.taken += skipped;
        bytes.copy(into);
    }

    fn send_bytes(&mut self, sent: &[u8]) -> io::Result<usize> {
        self.bytes().written.extend_from_slice(sent);
        Ok(sent.len())
    }

    fn send<'a>(&mut self, parts: impl Iterator<Item = Part<'a>>) -> io::Result<usize> {
        let mut bytes = self.bytes();
        let before = bytes.written.len();
        for part in parts {
            let Part::Bytes(part) = part else { panic!("these tests send no payload from memory") };
            bytes.written.extend_from_slice(part);
        }
        Ok(bytes.written.len() - before)
    }

    fn end_writing(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self) {}

    fn unacknowledged(&self) -> u64 {
        0
    }

    fn has_news(&self) -> bool {
        let bytes = self.bytes();
        bytes.is_ended || !bytes.left().is_empty()
    }
}

/// Every name is that of the test.
#[derive(Debug)]
pub(super) struct ToTheTest<const IS_RING: bool> {
    listener: Listener,
    bytes: Arc<Mutex<Bytes>>,
}

impl<const IS_RING: bool> Medium for ToTheTest<IS_RING> {
    type Stream = Scripted<IS_RING>;
    type Socket = TcpListener;

    const IS_MEMORY: bool = IS_RING;

    fn listener(&self) -> &Listener {
        &self.listener
    }

    fn listener_mut(&mut self) -> &mut Listener {
        &mut self.listener
    }

    fn accepted(&mut self, _socket: TcpStream) -> io::Result<Self::Stream> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn connect(&mut self, _name: &[u8]) -> Result<(Self::Stream, Option<CloseReason>), LinkError> {
        let (socket, other) = UnixStream::pair().expect("there are descriptors");
        io::Write::write_all(&mut &other, b"!").expect("there is room");
        Ok((Scripted { bytes: self.bytes.clone(), socket, _other: other }, None))
    }
}

/// A transport whose only link is to the test.
pub(super) struct Scene<const IS_RING: bool> {
    transport: StreamTransport<ToTheTest<IS_RING>>,
    bytes: Arc<Mutex<Bytes>>,
}

impl<const IS_RING: bool> Scene<IS_RING> {
    pub(super) fn new() -> Self {
        let address = (std::net::Ipv4Addr::LOCALHOST, 0).into();
        let (listener, epoll, name) = Listener::open(address, 1, LISTENER).expect("a port is free");
        let bytes = Arc::new(Mutex::new(Bytes::default()));
        let medium = ToTheTest { listener, bytes: bytes.clone() };
        let config = StreamConfig {
            id: DeviceId(0),
            eager_limit: EAGER_LIMIT,
            queue_bytes: 1 << 20,
            unbound_max: 1,
            keeps_unbound: false,
        };
        let mut transport = StreamTransport::over(medium, epoll, name, config, trusted());
        let link = transport.open(b"the test").expect("there are descriptors");
        let mut ear = Recorder::default();
        while !ear.notices().contains(&Notice::Open { link }) {
            transport.progress(1, &mut ear).expect("it works");
        }
        transport.bind(link, RECEIVED_FROM).expect("it is not bound");
        Self { transport, bytes }
    }

    pub(super) fn bytes(&self) -> MutexGuard<'_, Bytes> {
        self.bytes.lock().expect("nobody panics with it")
    }
}

impl<const IS_RING: bool> Line for Scene<IS_RING> {
    fn transport(&mut self) -> &mut dyn Transport {
        &mut self.transport
    }

    fn give(&mut self, given: &[u8]) -> usize {
        let mut bytes = self.bytes();
        let taken = std::mem::take(&mut bytes.taken);
        bytes.given.drain(..taken);
        bytes.given.extend_from_slice(given);
        given.len()
    }

    fn end(&mut self) {
        self.bytes().is_ended = true;
    }

    fn written(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes().written)
    }
}
