//! Several endpoints in one process, in virtual time.

use std::time::Duration;

use super::super::{
    Address, Completed, Completion, Config, Endpoint, Level, Message, Peek, PeekAction, Post, Send,
    SendRefused, Space,
};
use super::transport::SimTransport;
use super::world::{Shared, Weather};
use crate::device::soft::SoftConfig;
use crate::device::soft::over::OverTransport;
use crate::device::transport::{Payload, Transport};
use crate::engine::Kind;
use crate::ids::{Ignore, Tag};
use crate::seam::Buffer;

/// Endpoints, the network between them, and what they said.
pub(super) struct Sim {
    pub(super) world: Shared,
    pub(super) endpoints: Vec<Option<Endpoint>>,
    pub(super) nodes: Vec<usize>,
    pub(super) said: Vec<Vec<Completion>>,
    pub(super) config: Config,
    /// Entries of a list over each transport; 0: none.
    pub(super) tags: u32,
}

impl Sim {
    /// `count` endpoints that know each other: each has every other's, and its own, address.
    pub(super) fn new(count: usize, seed: u64, weather: Weather, config: Config) -> Self {
        let mut sim = Self::strangers(count, seed, weather, config);
        for at in 0..count {
            for other in 0..count {
                sim.introduce(at, other);
            }
        }
        sim
    }

    /// Endpoints that have no addresses.
    pub(super) fn strangers(count: usize, seed: u64, weather: Weather, config: Config) -> Self {
        let world = Shared::new(seed, weather);
        let mut sim =
            Self { world, endpoints: Vec::new(), nodes: Vec::new(), said: Vec::new(), config, tags: 0 };
        sim.open(count);
        sim
    }

    /// Endpoints that know each other, each with a list of so many entries over its transport.
    pub(super) fn listed(count: usize, seed: u64, weather: Weather, config: Config, tags: u32) -> Self {
        let mut sim = Self { tags, ..Self::strangers(0, seed, weather, config) };
        sim.open(count);
        for at in 0..count {
            (0..count).for_each(|other| sim.introduce(at, other));
        }
        sim
    }

    fn open(&mut self, count: usize) {
        for at in 0..count {
            self.endpoints.push(None);
            self.nodes.push(0);
            self.said.push(Vec::new());
            self.start(at);
        }
    }

    /// Two that know each other, in fair weather.
    pub(super) fn pair() -> Self {
        Self::new(2, 1, Weather::default(), Config::default())
    }

    /// An endpoint is opened, perhaps again.
    pub(super) fn start(&mut self, at: usize) {
        let config = self.config.clone();
        self.start_with(at, config);
    }

    pub(super) fn start_with(&mut self, at: usize, config: Config) {
        let limit = if self.tags == 0 { 1 << 20 } else { config.eager_limit };
        let transport = SimTransport::new(&self.world, &name(at), limit);
        self.nodes[at] = transport.node();
        let transport: Box<dyn Transport + std::marker::Send> = if self.tags == 0 {
            Box::new(transport)
        } else {
            Box::new(OverTransport::new(transport, SoftConfig::matching(self.tags)).unwrap())
        };
        let endpoint = Endpoint::new(config, vec![transport]).unwrap();
        assert_eq!(endpoint.name(), name(at));
        self.endpoints[at] = Some(endpoint);
    }

    /// It dies, and nothing more of it is seen.
    pub(super) fn kill(&mut self, at: usize, told: bool) {
        self.world.lock().kill(self.nodes[at], told);
        self.endpoints[at] = None;
    }

    pub(super) fn introduce(&mut self, at: usize, other: usize) {
        self.at(at).set_address(Address(other as u64), &name(other)).unwrap();
    }

    pub(super) fn at(&mut self, at: usize) -> &mut Endpoint {
        self.endpoints[at].as_mut().expect("it lives")
    }

    pub(super) fn now(&self) -> Duration {
        Duration::from_millis(self.world.lock().now)
    }

    /// One round: time goes on, and every endpoint.
    pub(super) fn step(&mut self) {
        let first = {
            let mut world = self.world.lock();
            world.now += 1;
            let count = self.endpoints.len() as u64;
            usize::try_from(world.random.below(count)).unwrap()
        };
        for turn in 0..self.endpoints.len() {
            self.progress((first + turn) % self.endpoints.len());
        }
    }

    /// One endpoint moves on.
    pub(super) fn progress(&mut self, at: usize) {
        let now = self.now();
        if let Some(endpoint) = &mut self.endpoints[at] {
            endpoint.progress(now).unwrap();
        }
        self.collect(at);
    }

    pub(super) fn collect(&mut self, at: usize) {
        if let Some(endpoint) = &mut self.endpoints[at] {
            while let Some(completion) = endpoint.poll_completion() {
                self.said[at].push(completion);
            }
        }
    }

    pub(super) fn steps(&mut self, count: usize) {
        for _ in 0..count {
            self.step();
        }
    }

    /// Go on until it is so.
    pub(super) fn until(&mut self, what: &str, mut is_so: impl FnMut(&mut Self) -> bool) {
        for _ in 0..200_000 {
            if is_so(self) {
                return;
            }
            self.step();
        }
        panic!("never so: {what}");
    }

    /// Send as soon as it is taken.
    pub(super) fn send(&mut self, from: usize, send: &Send<'_>) {
        for _ in 0..200_000 {
            match self.at(from).send(send) {
                Ok(()) => return self.collect(from),
                Err(SendRefused::Again) => self.step(),
                Err(other) => panic!("refused: {other}"),
            }
        }
        panic!("never taken");
    }

    /// Try until it is refused for good.
    pub(super) fn refusal(&mut self, from: usize, send: &Send<'_>) -> SendRefused {
        for _ in 0..200_000 {
            match self.at(from).send(send) {
                Ok(()) => panic!("it was taken"),
                Err(SendRefused::Again) => self.step(),
                Err(other) => return other,
            }
        }
        panic!("neither taken nor refused");
    }

    pub(super) fn send_bytes(&mut self, from: usize, to: usize, tag: u64, bytes: &[u8], context: u64) {
        let buffer = self.world.allocate(bytes);
        self.send(from, &message(to, tag, buffer, context));
    }

    /// A receive of `length` bytes.
    pub(super) fn post(&mut self, at: usize, receive: &Receive) -> Buffer {
        let buffer = self.world.allocate(&vec![0xEE; receive.length]);
        let post = Post {
            space: receive.space,
            source: receive.source.map(|source| Address(source as u64)),
            tag: Tag(receive.tag),
            ignore: Ignore(receive.ignore),
            buffer,
            kind: receive.kind,
            context: receive.context,
            flags: 7,
        };
        self.at(at).post(&post).unwrap();
        self.collect(at);
        buffer
    }

    pub(super) fn peek(&mut self, at: usize, tag: u64, action: PeekAction, context: u64) -> Completed {
        let (space, ignore) = (Space::Tagged, Ignore::NONE);
        let peek = Peek { space, source: None, tag: Tag(tag), ignore, action, context, flags: 9 };
        let before = self.said[at].len();
        self.at(at).peek(&peek);
        self.collect(at);
        let of_it = |said: &&Completion| said.context == context && said.flags == 9;
        let said: Vec<Completion> = self.said[at][before..].iter().filter(of_it).copied().collect();
        assert_eq!(said.len(), 1, "{said:?}");
        said[0].what
    }

    /// The completions of a context so far.
    pub(super) fn of(&self, at: usize, context: u64) -> Vec<Completed> {
        self.said[at].iter().filter(|said| said.context == context).map(|said| said.what).collect()
    }

    /// The one completion of a context, as soon as it is there.
    pub(super) fn ended(&mut self, at: usize, context: u64) -> Completed {
        self.until("an operation ends", |sim| !sim.of(at, context).is_empty());
        let all = self.of(at, context);
        assert_eq!(all.len(), 1, "{all:?}");
        all[0]
    }

    /// What a receive got: bytes, and the message.
    pub(super) fn received(&mut self, at: usize, context: u64) -> (Vec<u8>, Message) {
        match self.ended(at, context) {
            Completed::Received { message, address, placed, .. } => {
                (self.world.read(address, placed), message)
            }
            other => panic!("{other:?}"),
        }
    }
}

/// A receive, as tests write it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Receive {
    pub(super) space: Space,
    pub(super) source: Option<usize>,
    pub(super) tag: u64,
    pub(super) ignore: u64,
    pub(super) length: usize,
    pub(super) kind: Kind,
    pub(super) context: u64,
}

/// Of this tag, from anybody.
pub(super) const fn receive(tag: u64, length: usize, context: u64) -> Receive {
    Receive { space: Space::Tagged, source: None, tag, ignore: 0, length, kind: Kind::Once, context }
}

/// With a tag, from memory.
pub(super) const fn message(to: usize, tag: u64, buffer: Buffer, context: u64) -> Send<'static> {
    Send {
        space: Space::Tagged,
        to: Address(to as u64),
        tag: Tag(tag),
        payload: Payload::Memory(buffer),
        cq_data: None,
        level: Level::Inject,
        more: false,
        context,
        flags: 3,
    }
}

pub(super) fn name(at: usize) -> Vec<u8> {
    format!("node {at}").into_bytes()
}

/// Bytes by which a message is known again.
pub(super) fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let byte = |at: u64| u8::try_from(seed.wrapping_mul(31).wrapping_add(at.wrapping_mul(7)) % 251);
    (0..length as u64).map(|at| byte(at).unwrap_or(0)).collect()
}
