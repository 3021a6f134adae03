//! Which transports an endpoint of the provider has, and how it is set up: from the parameters.

use std::io::Write as _;
use std::net::SocketAddr;

use super::abi;
use super::error::{Code, Outcome, code, fail};
use super::matching::{self, Choice, Matcher, Network};
use super::parameters::{Parameters, SharedMemory};
use crate::device::host_memory::HostMemory;
use crate::device::loopback::LoopbackTransport;
use crate::device::shm::{ShmConfig, ShmTransport};
use crate::device::soft::SoftConfig;
use crate::device::soft::over::OverTransport;
use crate::device::tcp::{OpenError, TcpConfig, TcpTransport};
use crate::device::transport::Transport;
use crate::device::verbs::queue_pair::Patience;
use crate::device::verbs::transport::OpenError as VerbsOpenError;
use crate::device::verbs::{TagMatching, VerbsConfig, VerbsTransport, VerbsTransportConfig};
use crate::endpoint::{Config, Endpoint};
use crate::ids::DeviceId;
use crate::wire::Credits;

/// An endpoint that listens there; port 0 takes a free one. What is for the endpoint itself does not leave the process.
///
/// # Errors
/// Codes of the system, `FI_EADDRINUSE` for one: it cannot listen there. `FI_ENODATA`: what is asked for is not there.
pub(super) fn open(source: SocketAddr, parameters: &Parameters) -> Outcome<Endpoint> {
    let is_shared = parameters.shares_memory();
    let opened = open_with(source, parameters, is_shared);
    // What the system does not let this process do is no reason to have no endpoint, unless it was asked for.
    match opened {
        Err(_) if is_shared && parameters.shm == SharedMemory::Auto => open_with(source, parameters, false),
        opened => opened,
    }
}

fn open_with(source: SocketAddr, parameters: &Parameters, is_shared: bool) -> Outcome<Endpoint> {
    // SAFETY: the application's memory stays until an operation is over (fi_msg(3), fi_tagged(3)), and io vectors are
    // kept by `state` for as long; nobody here looks at either meanwhile.
    let memory = unsafe { HostMemory::trusted() };
    let Ok(choice) = matching::choose(parameters) else { return fail(abi::FI_ENODATA) };
    let eager_limit = eager_limit(&choice, parameters);
    let id = DeviceId(if is_shared { 2 } else { 1 });
    let others = match &choice.network {
        Network::Tcp => {
            let config = TcpConfig { id, eager_limit, ..TcpConfig::new(source) };
            matched(id, TcpTransport::open(config, memory)?, choice.matcher)?
        }
        Network::Verbs(device) => {
            let config = verbs(id, source, device, choice.matcher, eager_limit);
            matched(id, VerbsTransport::open(config, memory)?, choice.matcher)?
        }
    };
    let own =
        LoopbackTransport::new(DeviceId(0), others.name(), eager_limit, memory).ok_or(code(abi::FI_EIO))?;
    let mut transports: Vec<Box<dyn Transport + Send>> = vec![Box::new(own)];
    if is_shared {
        let id = DeviceId(1);
        let eager_limit = eager_limit.min(ShmConfig::default().eager_limit);
        let config = ShmConfig { id, eager_limit, ..ShmConfig::default() };
        let transport = ShmTransport::open(others.name(), config, memory)?;
        // A card sees nothing of what goes through memory.
        let matcher = if choice.matcher == Matcher::Device { Matcher::Software } else { choice.matcher };
        transports.push(matched(id, transport, matcher)?);
    }
    transports.push(others);
    Ok(Endpoint::new(self::config(eager_limit, parameters), transports)?)
}

/// A transport with who is to match over it.
fn matched<T: Transport + Send + 'static>(
    id: DeviceId,
    transport: T,
    matcher: Matcher,
) -> Outcome<Box<dyn Transport + Send>> {
    match matcher {
        Matcher::Model => Ok(Box::new(soft(id, transport)?)),
        Matcher::Software | Matcher::Device => Ok(Box::new(transport)),
    }
}

/// The model of a device that matches, over a transport.
fn soft<T: Transport>(id: DeviceId, transport: T) -> Outcome<OverTransport<T>> {
    let config = SoftConfig { id, ..SoftConfig::matching(TAGS) };
    OverTransport::new(transport, config).map_err(|_| code(abi::FI_EIO))
}

fn verbs(
    id: DeviceId,
    source: SocketAddr,
    device: &str,
    matcher: Matcher,
    eager_limit: u64,
) -> VerbsTransportConfig {
    let device = VerbsConfig {
        id,
        device: Some(device.to_owned()),
        address: Some(source.ip()).filter(|ip| !ip.is_unspecified()),
        tag_matching: if matcher == Matcher::Device { TagMatching::Required } else { TagMatching::Off },
        tags: TAGS,
        eager_limit: narrow(eager_limit),
        peers: PEERS,
        sends_per_peer: SENDS,
        patience: Patience { timeout: TIMEOUT, ..Patience::default() },
        ..VerbsConfig::default()
    };
    VerbsTransportConfig { device, ..VerbsTransportConfig::new(source) }
}

/// A stream puts a payload of any length into its buffer, or keeps it; a device, or one that matches, puts one for which
/// there is no receive into a buffer of its own.
fn eager_limit(choice: &Choice, parameters: &Parameters) -> u64 {
    match choice {
        Choice { network: Network::Verbs(_), .. } => parameters.buffer_size.min(CARD_BUFFER),
        Choice { matcher: Matcher::Model, .. } => parameters.buffer_size.min(DEVICE_BUFFER),
        Choice { .. } => parameters.buffer_size,
    }
}

/// Bytes of payload that a device's buffer holds.
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

impl From<VerbsOpenError> for Code {
    fn from(error: VerbsOpenError) -> Self {
        match error {
            VerbsOpenError::Exchange(error) => error.into(),
            error @ VerbsOpenError::Device(_) => {
                // Standard error that cannot be written to is no failure.
                let _ = writeln!(std::io::stderr().lock(), "tagmatch: {error}");
                code(abi::FI_EIO)
            }
        }
    }
}

impl From<OpenError> for Code {
    fn from(error: OpenError) -> Self {
        match error {
            // The system's codes are libfabric's.
            OpenError::System { errno, .. } => Self(errno),
            OpenError::Memory => code(abi::FI_EIO),
        }
    }
}

fn config(eager_limit: u64, parameters: &Parameters) -> Config {
    Config {
        eager_limit,
        inject_size: parameters.inject_size,
        segmented_limit: parameters.sar_limit,
        credits: Credits {
            headers: narrow(parameters.credit_headers),
            eager_messages: narrow(parameters.credit_messages),
            eager_bytes: parameters.credit_bytes,
        },
        connect_timeout: parameters.connect_timeout,
        keepalive: parameters.keepalive,
        job_key: parameters.job_key.clone(),
        peers_max: narrow(parameters.peers_max),
        ..Config::default()
    }
}

fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
