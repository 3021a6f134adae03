//! An endpoint of the provider over the paths that the parameters ask for, and how it is set up.

use std::io::Write as _;
use std::net::SocketAddr;

use super::abi;
use super::error::{Code, Outcome, code, fail};
use super::matching;
use super::parameters::{Parameters, SharedMemory};
use crate::device::host_memory::HostMemory;
use crate::device::tcp;
use crate::device::verbs::transport::OpenError as VerbsOpenError;
use crate::endpoint::{Config, ConnectionRequest, Endpoint, PassiveEndpoint};
use crate::paths::{Matcher, Network, OpenError, Paths};
use crate::wire::Credits;

/// An endpoint that listens there; port 0 takes a free one. What is for the endpoint itself does not leave the process.
/// Accesses of peers to memory are told where `tells_peers` says so.
///
/// # Errors
/// Codes of the system, `FI_EADDRINUSE` for one: it cannot listen there. `FI_ENODATA`: what is asked for is not there.
pub(super) fn open(source: SocketAddr, parameters: &Parameters, tells_peers: bool) -> Outcome<Endpoint> {
    let Ok(choice) = matching::choose(parameters) else { return fail(abi::FI_ENODATA) };
    let shares_memory = parameters.shares_memory();
    let paths = Paths { network: choice.network, matcher: choice.matcher, shares_memory };
    // SAFETY: the application's memory stays until an operation is over (fi_msg(3), fi_tagged(3), fi_rma(3)), or until its
    // region is closed (fi_mr(3)), and io vectors are kept by `state` for as long; nobody here looks at either meanwhile.
    let memory = unsafe { HostMemory::trusted() };
    let config = || Config { remote_events: tells_peers, ..config(parameters) };
    let opened = paths.open(source, config(), memory);
    // What the system does not let this process do is no reason to have no endpoint, unless it was asked for.
    let opened = match opened {
        Err(_) if shares_memory && parameters.shm == SharedMemory::Auto => {
            Paths { shares_memory: false, ..paths }.open(source, config(), memory)
        }
        opened => opened,
    };
    Ok(opened?)
}

/// A connected endpoint: for who has called, or one that will call from there.
///
/// # Errors
/// As [`open`].
pub(super) fn connected(
    source: SocketAddr,
    request: Option<ConnectionRequest>,
    parameters: &Parameters,
    tells_peers: bool,
) -> Outcome<Endpoint> {
    let config = Config { remote_events: tells_peers, ..config(parameters) };
    match request {
        Some(request) => Ok(Endpoint::called(config, request)?),
        // SAFETY: as in `open`.
        None => Ok(OVER_TCP.calling(source, config, unsafe { HostMemory::trusted() })?),
    }
}

/// Who listens there for connected endpoints.
///
/// # Errors
/// As [`open`].
pub(super) fn listening(at: SocketAddr, parameters: &Parameters) -> Outcome<PassiveEndpoint> {
    // SAFETY: as in `open`, of the endpoints that come of it.
    let memory = unsafe { HostMemory::trusted() };
    Ok(OVER_TCP.listening(at, &config(parameters), memory)?)
}

/// How connected endpoints go.
const OVER_TCP: Paths = Paths { network: Network::Tcp, matcher: Matcher::Software, shares_memory: false };

impl From<OpenError> for Code {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Sockets(error) | OpenError::Verbs(VerbsOpenError::Exchange(error)) => error.into(),
            OpenError::Verbs(error @ VerbsOpenError::Device(_)) => {
                // Standard error that cannot be written to is no failure.
                let _ = writeln!(std::io::stderr().lock(), "tagmatch: {error}");
                code(abi::FI_EIO)
            }
            OpenError::Endpoint(error) => error.into(),
            OpenError::Model(_) | OpenError::NoDevice => code(abi::FI_EIO),
            OpenError::Unconnected => code(abi::FI_ENOSYS),
        }
    }
}

impl From<tcp::OpenError> for Code {
    fn from(error: tcp::OpenError) -> Self {
        match error {
            // The system's codes are libfabric's.
            tcp::OpenError::System { errno, .. } => Self(errno),
            tcp::OpenError::Memory => code(abi::FI_EIO),
        }
    }
}

fn config(parameters: &Parameters) -> Config {
    Config {
        eager_limit: parameters.buffer_size,
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
