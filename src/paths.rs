//! By which paths an endpoint reaches its peers: itself, memory that it shares with processes of its host, and a network;
//! and who matches over them. One place for all who open one: the provider, the C library, commands.
//!
//! Not here: what is there and what is asked for (`provider::matching`); what goes over the paths (`endpoint`).

use std::net::SocketAddr;

use crate::device::host_memory::HostMemory;
use crate::device::loopback::LoopbackTransport;
use crate::device::shm::{ShmConfig, ShmTransport};
use crate::device::soft::SoftConfig;
use crate::device::soft::over::OverTransport;
use crate::device::tcp::{self, TcpConfig, TcpTransport};
use crate::device::transport::Transport;
use crate::device::verbs::queue_pair::Patience;
use crate::device::verbs::transport as verbs;
use crate::device::verbs::{TagMatching, VerbsConfig, VerbsTransport, VerbsTransportConfig};
use crate::endpoint::{Config, Endpoint, EndpointError, PassiveEndpoint};
use crate::ids::DeviceId;

/// The paths of an endpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Paths {
    /// How messages go to other hosts.
    pub network: Network,
    /// Who matches messages with a tag.
    pub matcher: Matcher,
    /// Whether processes of the same host, user and network namespace are reached through shared memory.
    pub shares_memory: bool,
}

/// How messages go to other hosts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Network {
    /// Over TCP.
    Tcp,
    /// Over the verbs device of this name, or the first that can be used.
    Verbs(Option<String>),
}

/// Who matches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Matcher {
    /// The engine alone.
    Software,
    /// The soft TM-SRQ: a model of a device, in software.
    Model,
    /// The device, and what it does not hold the engine.
    Device,
}

/// No endpoint could be opened.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The operating system refused what TCP or shared memory need, or no memory may be followed.
    #[error(transparent)]
    Sockets(#[from] tcp::OpenError),
    /// The same of verbs, or there is no device.
    #[error(transparent)]
    Verbs(#[from] verbs::OpenError),
    /// The model of a device cannot stand over this transport.
    #[error("the soft TM-SRQ is refused: {0}")]
    Model(String),
    /// A device is to match, and over TCP there is none.
    #[error("over TCP no device matches: over verbs one may, or the matcher is another")]
    NoDevice,
    /// Connected endpoints go over TCP alone, and no device matches for them.
    #[error("connected endpoints go over TCP alone")]
    Unconnected,
    /// The endpoint could not be made over them.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
}

impl Paths {
    /// An endpoint that listens there (port 0 takes a free one), set up as `config` says. Its eager limit is cut to what
    /// the buffers of these paths hold. What is for the endpoint itself does not leave the process.
    ///
    /// # Errors
    /// One of the paths cannot be opened, or the endpoint refuses its configuration.
    pub fn open(
        &self,
        listen: SocketAddr,
        mut config: Config,
        memory: HostMemory,
    ) -> Result<Endpoint, OpenError> {
        config.eager_limit = self.eager_limit(config.eager_limit);
        let eager_limit = config.eager_limit;
        let network = self.open_network(listen, eager_limit, memory)?;
        let own = LoopbackTransport::new(OWN, network.name(), eager_limit, memory);
        let own = own.ok_or(tcp::OpenError::Memory)?;
        let mut transports: Vec<AnyTransport> = vec![Box::new(own)];
        if self.shares_memory {
            let eager_limit = eager_limit.min(ShmConfig::default().eager_limit);
            let shm = ShmConfig { id: DeviceId(1), eager_limit, ..ShmConfig::default() };
            // A card sees nothing of what goes through memory.
            let shm = ShmTransport::open(network.name(), shm, memory)?;
            transports.push(matched(DeviceId(1), shm, self.matcher)?);
        }
        transports.push(network);
        Ok(Endpoint::new(config, transports)?)
    }

    /// A connected endpoint that will call from there ([`Endpoint::calling`]); port 0 takes a free one.
    ///
    /// # Errors
    /// The network is not TCP, the address cannot be had, or the endpoint refuses its configuration.
    pub fn calling(
        &self,
        from: SocketAddr,
        config: Config,
        memory: HostMemory,
    ) -> Result<Endpoint, OpenError> {
        let transport = TcpTransport::calling(self.connected(from, &config)?, memory)?;
        Ok(Endpoint::calling(config, Box::new(transport))?)
    }

    /// A passive endpoint that listens there; port 0 takes a free one. What is made of its requests has to be set up as it.
    ///
    /// # Errors
    /// The network is not TCP, the address cannot be had, or the configuration is refused.
    pub fn listening(
        &self,
        at: SocketAddr,
        config: &Config,
        memory: HostMemory,
    ) -> Result<PassiveEndpoint, OpenError> {
        let tcp = TcpConfig { keeps_unbound: true, ..self.connected(at, config)? };
        let transport = TcpTransport::open(tcp, memory)?;
        Ok(PassiveEndpoint::new(config, Box::new(transport))?)
    }

    /// Over TCP the engine matches for connected endpoints, whoever does for others.
    fn connected(&self, at: SocketAddr, config: &Config) -> Result<TcpConfig, OpenError> {
        match &self.network {
            Network::Tcp => Ok(TcpConfig { eager_limit: config.eager_limit, ..TcpConfig::new(at) }),
            Network::Verbs(_) => Err(OpenError::Unconnected),
        }
    }

    fn open_network(
        &self,
        listen: SocketAddr,
        eager_limit: u64,
        memory: HostMemory,
    ) -> Result<AnyTransport, OpenError> {
        let id = DeviceId(if self.shares_memory { 2 } else { 1 });
        match &self.network {
            Network::Tcp if self.matcher == Matcher::Device => Err(OpenError::NoDevice),
            Network::Tcp => {
                let config = TcpConfig { id, eager_limit, ..TcpConfig::new(listen) };
                matched(id, TcpTransport::open(config, memory)?, self.matcher)
            }
            Network::Verbs(device) => {
                let device = self.device(id, listen, device.as_deref(), eager_limit);
                let config = VerbsTransportConfig { device, ..VerbsTransportConfig::new(listen) };
                matched(id, VerbsTransport::open(config, memory)?, self.matcher)
            }
        }
    }

    fn device(
        &self,
        id: DeviceId,
        listen: SocketAddr,
        device: Option<&str>,
        eager_limit: u64,
    ) -> VerbsConfig {
        let is_matching = self.matcher == Matcher::Device;
        VerbsConfig {
            id,
            device: device.map(str::to_owned),
            address: Some(listen.ip()).filter(|ip| !ip.is_unspecified()),
            tag_matching: if is_matching { TagMatching::Required } else { TagMatching::Off },
            tags: TAGS,
            eager_limit: u32::try_from(eager_limit).unwrap_or(u32::MAX),
            peers: PEERS,
            sends_per_peer: SENDS,
            patience: Patience { timeout: TIMEOUT, ..Patience::default() },
            ..VerbsConfig::default()
        }
    }

    /// The longest payload in one message, in bytes, where this is wanted. A stream puts a payload of any length into its
    /// buffer, or keeps it; a device, or one that matches, puts one for which there is no receive into a buffer of its own.
    fn eager_limit(&self, wanted: u64) -> u64 {
        match (&self.network, self.matcher) {
            (Network::Verbs(_), _) => wanted.min(CARD_BUFFER),
            (Network::Tcp, Matcher::Model) => wanted.min(DEVICE_BUFFER),
            (Network::Tcp, Matcher::Software | Matcher::Device) => wanted,
        }
    }
}

type AnyTransport = Box<dyn Transport + Send>;

/// A transport with who is to match over it.
fn matched<T: Transport + Send + 'static>(
    id: DeviceId,
    transport: T,
    matcher: Matcher,
) -> Result<AnyTransport, OpenError> {
    match matcher {
        Matcher::Software | Matcher::Device => Ok(Box::new(transport)),
        Matcher::Model => {
            let over = OverTransport::new(transport, SoftConfig { id, ..SoftConfig::matching(TAGS) });
            let over = over.map_err(|error| OpenError::Model(error.to_string()))?;
            Ok(Box::new(over))
        }
    }
}

/// The transport to oneself.
const OWN: DeviceId = DeviceId(0);
/// Bytes of payload that a buffer of the model holds.
const DEVICE_BUFFER: u64 = 16 << 10;
/// The same of a card's, all of which are pinned.
const CARD_BUFFER: u64 = 8 << 10;
/// Entries of a list.
const TAGS: u32 = 1024;
/// Peers of a card's at a time, and sends under way to each: with soft RoCE a completion queue has 32,767 entries.
const PEERS: u32 = 512;
const SENDS: u32 = 32;
/// A card waits 0.5 s for an acknowledgement, seven times in all: machines that are busy answer late, and whether a
/// process is there its socket says.
const TIMEOUT: u8 = 17;
