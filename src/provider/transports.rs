//! Which transports an endpoint of the provider has, and how it is set up: from the parameters.

use std::net::SocketAddr;

use super::abi;
use super::error::{Code, Outcome, code, fail};
use super::matching::{self, Matcher};
use super::parameters::Parameters;
use crate::device::host_memory::HostMemory;
use crate::device::loopback::LoopbackTransport;
use crate::device::soft::SoftConfig;
use crate::device::soft::over::OverTransport;
use crate::device::tcp::{OpenError, TcpConfig, TcpTransport};
use crate::device::transport::Transport;
use crate::endpoint::{Config, Endpoint};
use crate::ids::DeviceId;
use crate::wire::Credits;

/// An endpoint that listens there; port 0 takes a free one. What is for the endpoint itself does not leave the process.
///
/// # Errors
/// Codes of the system, `FI_EADDRINUSE` for one: it cannot listen there. `FI_ENODATA`: no device matches, and one must.
pub(super) fn open(source: SocketAddr, parameters: &Parameters) -> Outcome<Endpoint> {
    // SAFETY: the application's memory stays until an operation is over (fi_msg(3), fi_tagged(3)), and io vectors are
    // kept by `state` for as long; nobody here looks at either meanwhile.
    let memory = unsafe { HostMemory::trusted() };
    let Ok(matcher) = matching::matcher(parameters.tag_matching) else { return fail(abi::FI_ENODATA) };
    let eager_limit = eager_limit(matcher, parameters);
    let config = TcpConfig { id: DeviceId(1), eager_limit, ..TcpConfig::new(source) };
    let tcp = TcpTransport::open(config, memory)?;
    let own =
        LoopbackTransport::new(DeviceId(0), tcp.name(), eager_limit, memory).ok_or(code(abi::FI_EIO))?;
    let others: Box<dyn Transport + Send> = match matcher {
        Matcher::Model => Box::new(soft(tcp)?),
        Matcher::Software => Box::new(tcp),
    };
    Ok(Endpoint::new(self::config(eager_limit, parameters), vec![Box::new(own), others])?)
}

/// The model of a device that matches, over a transport.
fn soft<T: Transport>(transport: T) -> Outcome<OverTransport<T>> {
    let config = SoftConfig { id: DeviceId(1), ..SoftConfig::matching(TAGS) };
    OverTransport::new(transport, config).map_err(|_| code(abi::FI_EIO))
}

/// A stream puts a payload of any length into its buffer, or keeps it; a device that matches puts one for which there
/// is no receive into a buffer of its own.
fn eager_limit(matcher: Matcher, parameters: &Parameters) -> u64 {
    match matcher {
        Matcher::Model => parameters.buffer_size.min(DEVICE_BUFFER),
        Matcher::Software => parameters.buffer_size,
    }
}

/// Bytes of payload that a device's buffer holds.
const DEVICE_BUFFER: u64 = 16 << 10;
/// Entries of the model's list.
const TAGS: u32 = 1024;

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
