//! A hostile peer: a name with a listener behind it, and at most one connection at a time, which it made or the endpoint.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;

use tagmatch::wire::{self, Control, HelloRole, Message, SendFlags};

use super::frames::{self, Heard, Kind, Random, Swarm};
use super::target::{Target, With};

/// What came of it all, over all seeds.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Frames on connections that stood when they had been taken.
    pub(crate) frames: u64,
    pub(crate) connections: u64,
    /// Connections that the endpoint made.
    pub(crate) dialled: u64,
    /// Those that the endpoint ended, and those that the peer did.
    pub(crate) ended_there: u64,
    pub(crate) ended_here: u64,
    pub(crate) protocol_errors: u64,
    pub(crate) received: u64,
    pub(crate) unexpected: u64,
    pub(crate) matched_by_device: u64,
    pub(crate) ended_sends: u64,
    pub(crate) failed_sends: u64,
    /// Accesses of the endpoint's to memory of peers that came to a good end.
    pub(crate) accessed: u64,
    /// Writes of peers with CQ data, and reads, of the endpoint's memory.
    pub(crate) written: u64,
    pub(crate) read_by_peers: u64,
    pub(crate) honest: u64,
    pub(crate) looks: u64,
    /// The most that was allocated beyond what was at the beginning, in bytes: at any time, and while no hostile peer was
    /// connected.
    pub(crate) bytes_max: isize,
    pub(crate) bytes_at_rest: isize,
}

impl Seen {
    /// Every path was taken, and often.
    pub(crate) fn check_all(&self, with: With) {
        let often = [self.connections, self.ended_there, self.protocol_errors, self.honest];
        assert!(self.looks > 5 && often.iter().all(|count| *count > 50), "{self:?}");
        let where_messages_pass = [
            self.dialled,
            self.received,
            self.unexpected,
            self.ended_sends,
            self.failed_sends,
            self.accessed,
            self.written,
            self.read_by_peers,
            self.ended_here,
        ];
        assert_eq!(where_messages_pass.iter().all(|count| *count > 100), with != With::Key, "{self:?}");
        assert_eq!(self.matched_by_device > 1000, with == With::Device, "{self:?}");
    }
}

/// See the file.
pub(crate) struct Peer {
    listener: TcpListener,
    name: Vec<u8>,
    line: Option<Line>,
    lives: u128,
}

/// A connection.
struct Line {
    stream: TcpStream,
    swarm: Swarm,
    input: Vec<u8>,
    heard: Heard,
    /// Whether the endpoint has answered the hello.
    is_up: bool,
    /// Chunks until the peer has enough.
    left: usize,
}

impl Peer {
    pub(crate) fn new(target: &Target) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let mut name = target.name().to_vec();
        let port = listener.local_addr().unwrap().port();
        name[2..4].copy_from_slice(&port.to_be_bytes());
        Self { listener, name, line: None, lives: 1 }
    }

    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    /// A few frames, or a new connection.
    pub(crate) fn step(&mut self, number: usize, target: &mut Target, random: &mut Random, seen: &mut Seen) {
        let Some(line) = &mut self.line else {
            return self.connect(number, target, random, seen);
        };
        let count = 1 + random.below(8);
        let mut bytes = Vec::new();
        let mut frames = 0;
        for _ in 0..count {
            if let Some(frame) = line.next_frame(target.with, random) {
                bytes.extend(frame);
                frames += 1;
            }
        }
        let is_written = line.write(&bytes, target);
        target.settle();
        let is_open = is_written && line.hear();
        if is_open {
            // All of it was taken, and the connection stands.
            seen.frames += frames;
            line.left = line.left.saturating_sub(1);
            if line.left == 0 {
                self.leave(target, random, seen);
            }
        } else {
            seen.frames += u64::from(frames > 0);
            seen.ended_there += 1;
            self.line = None;
            target.settle();
        }
    }

    fn connect(&mut self, number: usize, target: &mut Target, random: &mut Random, seen: &mut Seen) {
        let is_dialled = target.with != With::Key && random.chance(300);
        let (stream, role) = if is_dialled {
            target.send_to(number, random);
            target.settle();
            match self.listener.accept() {
                Ok((stream, _)) => (stream, HelloRole::Answer),
                Err(_) => return target.settle(),
            }
        } else {
            // Who dialled meanwhile hears nothing.
            while self.listener.accept().is_ok() {}
            (TcpStream::connect((Ipv4Addr::LOCALHOST, target.port())).unwrap(), HelloRole::Request)
        };
        stream.set_nodelay(true).unwrap();
        stream.set_nonblocking(true).unwrap();
        leave_nothing_behind(&stream);
        seen.connections += 1;
        seen.dialled += u64::from(is_dialled);
        // Mostly another life: the one before has ended.
        self.lives += u128::from(random.chance(900));
        let swarm = Swarm::new(random);
        let hello = frames::hello(role, &self.name, self.lives, random);
        let hello = frames::mutated(hello, &swarm, random);
        let left = 1 + random.below(120);
        let heard = Heard::default();
        let mut line =
            Line { stream, swarm, input: Vec::new(), heard, is_up: role == HelloRole::Answer, left };
        let mut is_open = line.write(&hello, target);
        for _ in 0..5 {
            target.settle();
            is_open = is_open && line.hear();
            if !is_open || line.is_up {
                break;
            }
        }
        if is_open {
            self.line = Some(line);
        } else {
            seen.ended_there += 1;
        }
    }

    /// End the connection, without a word or in the middle of one.
    pub(crate) fn leave(&mut self, target: &mut Target, random: &mut Random, seen: &mut Seen) {
        let Some(mut line) = self.line.take() else { return };
        if random.chance(300) {
            let _ = line.stream.write(&[0, 0, 1, 0, 1][..random.below(5)]);
        }
        seen.ended_here += 1;
        drop(line);
        target.settle();
    }
}

impl Line {
    fn next_frame(&mut self, with: With, random: &mut Random) -> Option<Vec<u8>> {
        if !self.is_up {
            // Before it is let in, anything may be tried; most of it ends the connection.
            return Some(if with == With::Key && random.chance(950) {
                frames::mutated(frames::greeting(random), &self.swarm, random)
            } else {
                frames::frame(Kind::Keepalive, &self.swarm, &mut self.heard, random)?
            });
        }
        let kind = self.swarm.kind(random);
        let balance = &mut self.heard.balance;
        if kind.is_message() && self.swarm.is_thrifty {
            let longest = 25_000;
            if balance.headers == 0 || balance.eager_messages == 0 || balance.eager_bytes < longest {
                return frames::frame(Kind::Keepalive, &self.swarm, &mut self.heard, random);
            }
            balance.headers -= 1;
            balance.eager_messages -= 1;
            balance.eager_bytes -= longest;
        }
        frames::frame(kind, &self.swarm, &mut self.heard, random)
    }

    /// False: it has ended.
    fn write(&mut self, mut bytes: &[u8], target: &mut Target) -> bool {
        for _ in 0..10_000 {
            if bytes.is_empty() {
                return true;
            }
            match self.stream.write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    target.settle();
                    self.swarm.is_deaf = false;
                    if !self.hear() {
                        return false;
                    }
                }
                Err(_) => return false,
            }
        }
        panic!("it is never read");
    }

    /// Read what there is. False: it has ended.
    fn hear(&mut self) -> bool {
        if self.swarm.is_deaf && self.is_up {
            return true;
        }
        let mut buffer = [0; 16 << 10];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return false,
                Ok(count) => self.input.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => return false,
            }
        }
        let mut at = 0;
        while let Some(head) = self.input.get(at..at + 8) {
            let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
            let (kind, immediate) = (head[4], if head[4] == 2 { 4 } else { 0 });
            let Some(body) = self.input.get(at + 8 + immediate..at + 8 + immediate + length) else { break };
            match kind {
                1 | 2 => note(&mut self.heard, &mut self.is_up, &wire::decode(body).unwrap()),
                3 => {
                    let word = |at: usize| u64::from_be_bytes(body[at..at + 8].try_into().unwrap());
                    self.heard.reads.push((word(0), word(16)));
                }
                _ => {}
            }
            at += 8 + immediate + length;
        }
        self.input.drain(..at);
        true
    }
}

/// What the endpoint says is always good, and may be named later.
fn note(heard: &mut Heard, is_up: &mut bool, message: &Message<'_>) {
    let mut wait = |context: wire::AppContext| {
        let acknowledge = SendFlags::ACKNOWLEDGE_MATCH.with(SendFlags::ACKNOWLEDGE_DELIVERY);
        if context.flags.bits() & acknowledge.bits() != 0 {
            heard.operations.push(context.operation.value());
        }
    };
    match message {
        Message::Eager(eager) => wait(eager.context),
        Message::Rendezvous(request) => {
            heard.requests.push(request.fin());
            heard.keys.push((request.memory.key, request.memory.length));
        }
        Message::Control(Control::Untagged(data)) => wait(data.context),
        Message::Control(Control::SegmentFirst(first)) => wait(first.context),
        Message::Control(Control::UntaggedRendezvous(request)) => {
            heard.untagged_requests.push(request.context.operation.value());
            heard.keys.push((request.memory.key, request.memory.length));
        }
        Message::Control(Control::RemoteRead(read)) => {
            heard.remote_reads.push((read.operation.value(), read.place, read.stretch.length));
        }
        Message::Control(Control::RemoteWrite(write)) if write.ends_stretch() => {
            heard.remote_writes.push(write.operation.value());
        }
        Message::Control(Control::Hello(hello)) => {
            *is_up = true;
            heard.balance = hello.credits;
        }
        Message::Control(Control::Credit(more)) => {
            let balance = &mut heard.balance;
            balance.headers += more.headers;
            balance.eager_messages += more.eager_messages;
            balance.eager_bytes += more.eager_bytes;
        }
        Message::Fin(_) | Message::Control(_) => {}
    }
}

/// Closing resets the connection, so that its port is free at once.
fn leave_nothing_behind(stream: &TcpStream) {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    let length = u32::try_from(size_of::<libc::linger>()).unwrap();
    let value = (&raw const linger).cast();
    // SAFETY: an open socket, and an option of that length.
    let set =
        unsafe { libc::setsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, value, length) };
    assert_eq!(set, 0);
}
