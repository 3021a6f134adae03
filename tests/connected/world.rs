//! A listener and connected endpoints, stepped in turn by one thread.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::{Duration, Instant};

use tagmatch::device::host_memory::HostMemory;
use tagmatch::device::transport::Payload;
use tagmatch::endpoint::{
    Completed, Config, ConnectionEvent, ConnectionRequest, Endpoint, Level, PEER, PassiveEndpoint, Post,
    Send, SendRefused, Space,
};
use tagmatch::engine::Kind;
use tagmatch::ids::{Ignore, Tag};
use tagmatch::paths::{Matcher, Network, Paths};
use tagmatch::seam::Buffer;

pub(crate) const LOOPBACK: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));
/// Of a [`Pair`].
pub(crate) const CALLER: usize = 0;
pub(crate) const CALLED: usize = 1;

pub(crate) fn paths() -> Paths {
    Paths { network: Network::Tcp, matcher: Matcher::Software, shares_memory: false }
}

pub(crate) fn host() -> HostMemory {
    // SAFETY: every buffer of these tests is one of `memory`, or is copied.
    unsafe { HostMemory::trusted() }
}

/// One that will call from a port of this host.
pub(crate) fn open(config: Config) -> Endpoint {
    paths().calling(LOOPBACK, config, host()).unwrap()
}

pub(crate) struct World {
    pub(crate) passive: PassiveEndpoint,
    endpoints: Vec<Option<Endpoint>>,
    ends: Vec<HashMap<u64, Vec<Completed>>>,
    began: Instant,
    /// Time that was made to pass.
    skipped: Duration,
}

/// Two that are connected, the caller first.
pub(crate) struct Pair {
    pub(crate) world: World,
}

impl Pair {
    pub(crate) fn new(config: Config) -> Self {
        let mut world = World::new(config.clone());
        let caller = world.call(config.clone(), b"");
        let request = world.request();
        let called = world.add(Endpoint::called(config, request).unwrap());
        world.at(called).accept(b"").unwrap();
        world.connected(caller);
        world.connected(called);
        assert_eq!((caller, called), (CALLER, CALLED));
        Self { world }
    }
}

impl World {
    pub(crate) fn new(config: Config) -> Self {
        let passive = paths().listening(LOOPBACK, &config, host()).unwrap();
        let (began, skipped) = (Instant::now(), Duration::ZERO);
        Self { passive, endpoints: Vec::new(), ends: Vec::new(), began, skipped }
    }

    pub(crate) fn add(&mut self, endpoint: Endpoint) -> usize {
        self.endpoints.push(Some(endpoint));
        self.ends.push(HashMap::new());
        self.endpoints.len() - 1
    }

    pub(crate) fn at(&mut self, which: usize) -> &mut Endpoint {
        self.endpoints[which].as_mut().unwrap()
    }

    /// It is no more.
    pub(crate) fn drop_it(&mut self, which: usize) {
        self.endpoints[which] = None;
    }

    pub(crate) fn connect(&mut self, which: usize, data: &[u8]) {
        let to = self.passive.name().to_vec();
        self.at(which).connect(&to, data).unwrap();
    }

    /// One more calls.
    pub(crate) fn call(&mut self, config: Config, data: &[u8]) -> usize {
        let which = self.add(open(config));
        self.connect(which, data);
        which
    }

    /// One more calls and is connected; the other end.
    pub(crate) fn call_and_accept(&mut self) -> usize {
        let caller = self.call(Config::default(), b"");
        let request = self.request();
        let called = self.add(Endpoint::called(Config::default(), request).unwrap());
        self.at(called).accept(b"").unwrap();
        self.connected(caller);
        called
    }

    pub(crate) fn skip(&mut self, time: Duration) {
        self.skipped += time;
    }

    pub(crate) fn step(&mut self) {
        let now = self.began.elapsed() + self.skipped;
        self.passive.progress(now).unwrap();
        self.step_endpoints();
    }

    pub(crate) fn step_endpoints(&mut self) {
        let now = self.began.elapsed() + self.skipped;
        for (endpoint, ends) in self.endpoints.iter_mut().zip(&mut self.ends) {
            let Some(endpoint) = endpoint else { continue };
            endpoint.progress(now).unwrap();
            while let Some(done) = endpoint.poll_completion() {
                ends.entry(done.context).or_default().push(done.what);
            }
        }
    }

    /// Whatever is on its way comes.
    pub(crate) fn settle(&mut self) {
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(50) {
            self.step();
        }
    }

    pub(crate) fn until<T>(&mut self, what: &str, mut find: impl FnMut(&mut Self) -> Option<T>) -> T {
        let began = Instant::now();
        loop {
            if let Some(found) = find(self) {
                return found;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "never so: {what}");
            self.step();
        }
    }

    pub(crate) fn request(&mut self) -> ConnectionRequest {
        self.until("somebody calls", |world| world.passive.poll_request())
    }

    pub(crate) fn event(&mut self, which: usize) -> ConnectionEvent {
        self.until("something becomes of the connection", |world| world.at(which).poll_connection())
    }

    pub(crate) fn connected(&mut self, which: usize) {
        assert_eq!(self.event(which), ConnectionEvent::Connected { data: Vec::new() });
    }

    pub(crate) fn send(&mut self, which: usize, send: &Send<'_>) {
        self.until("a message is taken", |world| match world.at(which).send(send) {
            Ok(()) => Some(()),
            Err(SendRefused::Again) => None,
            Err(other) => panic!("{other}"),
        });
    }

    /// The first completion of this context that was not asked for before.
    pub(crate) fn completion(&mut self, which: usize, context: u64) -> Completed {
        self.until("a completion comes", |world| world.told(which, context))
    }

    pub(crate) fn told(&mut self, which: usize, context: u64) -> Option<Completed> {
        let told = self.ends[which].get_mut(&context)?;
        if told.is_empty() { None } else { Some(told.remove(0)) }
    }

    /// Where a message is that was received, and how long.
    pub(crate) fn received(&mut self, which: usize, context: u64) -> (u64, u64) {
        let completion = self.completion(which, context);
        let Completed::Received { address, placed, .. } = completion else { panic!("{completion:?}") };
        (address, placed)
    }
}

pub(crate) fn memory(bytes: &[u8]) -> Buffer {
    let leaked: &'static mut [u8] = bytes.to_vec().leak();
    Buffer::new(leaked.as_mut_ptr().expose_provenance() as u64, leaked.len() as u64)
}

pub(crate) fn read(address: u64, length: u64) -> Vec<u8> {
    let from = std::ptr::with_exposed_provenance::<u8>(usize::try_from(address).unwrap());
    // SAFETY: it lies in a buffer of `memory`, and the transport is done with it.
    unsafe { std::slice::from_raw_parts(from, usize::try_from(length).unwrap()) }.to_vec()
}

pub(crate) fn bytes(seed: u64, length: usize) -> Vec<u8> {
    (0..length as u64).map(|at| u8::try_from((seed * 31 + at * 7) % 251).unwrap()).collect()
}

pub(crate) fn post(space: Space, tag: u64, length: usize, context: u64) -> Post {
    let (tag, ignore) = (Tag(tag), Ignore::NONE);
    let buffer = memory(&vec![0xEE; length]);
    Post { space, source: None, tag, ignore, buffer, kind: Kind::Once, context, flags: 0 }
}

pub(crate) const fn message(
    space: Space,
    tag: u64,
    buffer: Buffer,
    level: Level,
    context: u64,
) -> Send<'static> {
    Send {
        space,
        to: PEER,
        tag: Tag(tag),
        payload: Payload::Memory(buffer),
        cq_data: None,
        level,
        more: false,
        context,
        flags: 0,
    }
}
