//! The endpoints that messages go between: both in this thread, over what is to be measured.
//!
//! One thread drives both sides in turn, and a simulated card too, so that a run is the same whatever else the machine
//! does. Not here: what is sent (`burst`).

use super::memory::trusted;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};
use tagmatch::device::loopback::LoopbackTransport;
use tagmatch::device::soft::SoftConfig;
use tagmatch::device::soft::over::OverTransport;
use tagmatch::device::tcp::{TcpConfig, TcpTransport};
use tagmatch::device::transport::Transport;
use tagmatch::device::verbs::{SimulatedHca, TagMatching, VerbsConfig, VerbsTransport, VerbsTransportConfig};
use tagmatch::endpoint::{Address, Config, Endpoint};
use tagmatch::ids::DeviceId;

/// What messages go over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Wire {
    /// Nothing: an endpoint's messages to itself, in memory.
    Memory,
    /// TCP of this host.
    Tcp,
    /// Verbs devices: the receiver's, the sender's.
    Verbs(Port, Port),
}

/// A verbs device, and the address that it has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Port {
    /// Its name; `None`: the first.
    pub(super) device: Option<String>,
    /// Where connections begin; `None`: this host alone.
    pub(super) address: Option<IpAddr>,
}

/// Who matches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Matcher {
    /// The engine.
    Software,
    /// The soft TM-SRQ with so many tags, and what it does not hold the engine.
    Soft(u32),
    /// The device's own list of so many tags, and what it does not hold the engine.
    Card(u32),
}

impl Matcher {
    /// The same with a list of so many entries.
    pub(super) const fn with_tags(self, tags: u32) -> Self {
        match self {
            Self::Software => Self::Software,
            Self::Soft(_) => Self::Soft(tags),
            Self::Card(_) => Self::Card(tags),
        }
    }

    pub(super) fn words(self) -> String {
        match self {
            Self::Software => "software".into(),
            Self::Soft(tags) => format!("soft TM-SRQ of {tags}"),
            Self::Card(tags) => format!("list of {tags}"),
        }
    }
}

/// The endpoints.
#[derive(Debug)]
pub(super) struct Ends {
    pub(super) receiver: Endpoint,
    /// None: the receiver sends to itself.
    senders: Vec<Endpoint>,
    card: Option<SimulatedHca>,
    began: Instant,
    /// Entries of the list that it was opened with.
    pub(super) tags: u32,
    /// What the verbs device says of its firmware.
    pub(super) firmware: Option<String>,
}

impl Ends {
    /// Opened, and known to each other: the receiver and so many senders.
    pub(super) fn open(wire: &Wire, matcher: Matcher, senders: usize) -> Result<Self, String> {
        let opened = open(wire, true, matcher)?;
        let count = if *wire == Wire::Memory { 0 } else { senders };
        // Who only sends has nothing matched.
        let sender = |_| open(wire, false, Matcher::Software).map(|opened| opened.endpoint);
        let senders = (0..count).map(sender).collect::<Result<_, _>>()?;
        let card = SimulatedHca::find().filter(|_| crate::verbs::is_driven());
        let Opened { endpoint: receiver, tags, firmware } = opened;
        let mut ends = Self { receiver, senders, card, began: Instant::now(), tags, firmware };
        let name = ends.receiver.name().to_vec();
        if ends.senders.is_empty() {
            ends.receiver.set_address(Address(0), &name).map_err(text)?;
        }
        for (number, sender) in ends.senders.iter_mut().enumerate() {
            sender.set_address(Address(0), &name).map_err(text)?;
            ends.receiver.set_address(Self::address(number), sender.name()).map_err(text)?;
        }
        Ok(ends)
    }

    /// Under which the receiver knows a sender. Its own, for senders, is 0.
    pub(super) const fn address(sender: usize) -> Address {
        Address(sender as u64 + 1)
    }

    /// Who sends, where there is one.
    pub(super) fn sender(&mut self) -> &mut Endpoint {
        self.sender_of(0)
    }

    /// Who sends, by its number.
    pub(super) fn sender_of(&mut self, number: usize) -> &mut Endpoint {
        self.senders.get_mut(number).unwrap_or(&mut self.receiver)
    }

    /// The receiver moves on; how many things happened.
    pub(super) fn receive(&mut self) -> Result<usize, String> {
        let now = self.now();
        self.receiver.progress(now).map_err(text)
    }

    /// The sender moves on, and a simulated card.
    pub(super) fn carry(&mut self) -> Result<(), String> {
        self.carry_of(0)
    }

    /// The sender of this number moves on, and a simulated card.
    pub(super) fn carry_of(&mut self, number: usize) -> Result<(), String> {
        let now = self.now();
        self.drive();
        if let Some(sender) = self.senders.get_mut(number) {
            sender.progress(now).map_err(text)?;
        }
        self.drive();
        Ok(())
    }

    fn drive(&self) {
        if let Some(card) = &self.card {
            card.run();
        }
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }
}

struct Opened {
    endpoint: Endpoint,
    tags: u32,
    firmware: Option<String>,
}

fn open(wire: &Wire, is_receiver: bool, matcher: Matcher) -> Result<Opened, String> {
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    match wire {
        Wire::Memory => {
            let own = loopback(DeviceId(0), MEMORY_NAME, EAGER)?;
            endpoint(EAGER, None, matched(own, DeviceId(0), matcher)?, None)
        }
        Wire::Tcp => {
            let config = TcpConfig { id: DeviceId(1), eager_limit: EAGER, ..TcpConfig::new(local) };
            let tcp = TcpTransport::open(config, trusted()).map_err(text)?;
            let own = loopback(DeviceId(0), tcp.name(), EAGER)?;
            endpoint(EAGER, Some(own), matched(tcp, DeviceId(1), matcher)?, None)
        }
        Wire::Verbs(receiver, sender) => {
            let port = if is_receiver { receiver } else { sender };
            let verbs = verbs(port, matcher)?;
            if let (Matcher::Card(_), Some(refusal)) = (matcher, verbs.device().refusal()) {
                return Err(refusal.to_string());
            }
            let firmware = verbs.device().limits().firmware.clone();
            let own = loopback(DeviceId(0), verbs.name(), CARD_EAGER)?;
            endpoint(CARD_EAGER, Some(own), matched(verbs, DeviceId(1), matcher)?, Some(firmware))
        }
    }
}

fn loopback(id: DeviceId, name: &[u8], eager_limit: u64) -> Result<LoopbackTransport, String> {
    LoopbackTransport::new(id, name, eager_limit, trusted()).ok_or_else(|| "memory is not trusted".into())
}

fn verbs(port: &Port, matcher: Matcher) -> Result<VerbsTransport, String> {
    let (tag_matching, tags) = match matcher {
        Matcher::Card(tags) => (TagMatching::Required, tags),
        Matcher::Software | Matcher::Soft(_) => (TagMatching::Off, 1),
    };
    let device = VerbsConfig {
        id: DeviceId(1),
        device: port.device.clone(),
        address: port.address,
        tag_matching,
        tags,
        eager_limit: u32::try_from(CARD_EAGER).unwrap_or(u32::MAX),
        peers: PEERS,
        ..VerbsConfig::default()
    };
    let listen = SocketAddr::from((port.address.unwrap_or(Ipv4Addr::LOCALHOST.into()), 0));
    let config = VerbsTransportConfig { device, ..VerbsTransportConfig::new(listen) };
    VerbsTransport::open(config, trusted()).map_err(text)
}

/// With the soft list over it, if that is to match.
fn matched<T: Transport + Send + 'static>(
    transport: T,
    id: DeviceId,
    matcher: Matcher,
) -> Result<Box<dyn Transport + Send>, String> {
    let Matcher::Soft(tags) = matcher else { return Ok(Box::new(transport)) };
    let config = SoftConfig { id, ..SoftConfig::matching(tags) };
    Ok(Box::new(OverTransport::new(transport, config).map_err(text)?))
}

fn endpoint(
    eager_limit: u64,
    own: Option<LoopbackTransport>,
    others: Box<dyn Transport + Send>,
    firmware: Option<String>,
) -> Result<Opened, String> {
    let tags = others.capabilities().tags;
    let own = own.map(|own| -> Box<dyn Transport + Send> { Box::new(own) });
    let transports = own.into_iter().chain([others]).collect();
    let config = Config { eager_limit, ..Config::default() };
    let endpoint = Endpoint::new(config, transports).map_err(text)?;
    Ok(Opened { endpoint, tags, firmware })
}

pub(super) fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// The longest message that is sent at once, in bytes: longer ones are read by the receiver.
pub(super) const EAGER: u64 = 16 << 10;
/// The same over verbs.
pub(super) const CARD_EAGER: u64 = 8 << 10;
/// Senders of a trace, and some more.
const PEERS: u32 = 128;
/// What an endpoint without a wire is called.
const MEMORY_NAME: &[u8] = b"memory";
