//! Two endpoints of one process that talk through shared memory, over TCP, or one with itself: from post and send to
//! both completions read.
//!
//! Both halves run in one thread, so that instructions are counted and nothing is waited for: what it costs, not how
//! long a message takes.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tagmatch::device::host_memory::HostMemory;
use tagmatch::device::transport::Payload;
use tagmatch::endpoint::{Address, Completed, Config, Endpoint, Level, Post, Send, SendRefused, Space};
use tagmatch::engine::Kind;
use tagmatch::ids::{Ignore, Tag};
use tagmatch::paths::{Matcher, Network, Paths};
use tagmatch::seam::Buffer;

/// Whoever sends, and whoever receives.
#[derive(Debug)]
pub(crate) struct Endpoints {
    sender: Endpoint,
    /// `None`: the sender itself.
    receiver: Option<Endpoint>,
    payload: Vec<u8>,
    into: Buffer,
    time: Duration,
    sent: u32,
}

/// By which way messages go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    Oneself,
    SharedMemory,
    Tcp,
}

impl Endpoints {
    /// Connected, with payloads of so many bytes.
    pub(crate) fn new(way: Way, length: usize) -> Self {
        // Memory that stays to the end of the process, and at which nobody looks.
        let into = Box::leak(vec![0_u8; length].into_boxed_slice());
        let into = Buffer::new(into.as_mut_ptr().expose_provenance() as u64, length as u64);
        let (sender, receiver) = (open(way), (way != Way::Oneself).then(|| open(way)));
        let mut it = Self { sender, receiver, payload: vec![7; length], into, time: Duration::ZERO, sent: 0 };
        let name = it.receiver().name().to_vec();
        it.sender.set_address(PEER, &name).expect("an address");
        let name = it.sender.name().to_vec();
        it.receiver().set_address(PEER, &name).expect("an address");
        it.exchange();
        it
    }

    fn receiver(&mut self) -> &mut Endpoint {
        self.receiver.as_mut().unwrap_or(&mut self.sender)
    }

    /// One message, from post and send to both completions.
    #[inline]
    pub(crate) fn exchange(&mut self) {
        self.post();
        self.send();
        self.receive();
    }

    #[inline]
    fn post(&mut self) {
        let post = Post {
            space: Space::Tagged,
            source: Some(PEER),
            tag: TAG,
            ignore: Ignore::NONE,
            buffer: self.into,
            kind: Kind::Once,
            context: 1,
            flags: 0,
        };
        self.receiver().post(&post).expect("posted");
    }

    #[inline]
    fn send(&mut self) {
        // Now and then it hears what more it may send.
        self.sent = self.sent.wrapping_add(1);
        if self.sent.is_multiple_of(TURN_EVERY) {
            self.sender.progress(self.time).expect("progress");
        }
        loop {
            let message = Send {
                space: Space::Tagged,
                to: PEER,
                tag: TAG,
                payload: Payload::Copied(&self.payload),
                cq_data: None,
                level: Level::Inject,
                more: false,
                context: 2,
                flags: 0,
            };
            let sent = self.sender.send(&message);
            if sent != Err(SendRefused::Again) {
                sent.expect("sent");
                break;
            }
            self.time += Duration::from_micros(1);
            self.sender.progress(self.time).expect("progress");
            self.look();
        }
        let sent = self.sender.poll_completion();
        assert!(sent.is_some_and(|completion| completion.context == 2 && completion.what == Completed::Sent));
    }

    #[inline]
    fn receive(&mut self) {
        loop {
            self.look();
            let Some(completion) = self.receiver().poll_completion() else { continue };
            assert!(matches!(completion.what, Completed::Received { .. }), "{completion:?}");
            return;
        }
    }

    /// The receiver looks once.
    #[inline]
    pub(crate) fn look(&mut self) {
        let time = self.time;
        self.receiver().progress(time).expect("progress");
    }
}

fn open(way: Way) -> Endpoint {
    let shares_memory = way == Way::SharedMemory;
    let paths = Paths { network: Network::Tcp, matcher: Matcher::Software, shares_memory };
    // SAFETY: the one buffer is memory that stays, and is looked at by nobody; payloads are copied.
    let memory = unsafe { HostMemory::trusted() };
    let config = Config { seed: None, ..Config::default() };
    paths.open(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), config, memory).expect("an endpoint")
}

/// Messages for each turn of the sender's.
const TURN_EVERY: u32 = 64;
const PEER: Address = Address(0);
const TAG: Tag = Tag(5);
