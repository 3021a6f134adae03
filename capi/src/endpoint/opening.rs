//! The paths of an endpoint, and how it is set up.

use std::net::SocketAddr;
use std::time::Duration;

use tagmatch::device::host_memory::HostMemory;
use tagmatch::device::tcp;
use tagmatch::device::verbs::transport::OpenError as VerbsOpenError;
use tagmatch::endpoint::{Config, Endpoint};
use tagmatch::offload::TagLayout;
use tagmatch::paths::{Matcher, Network, OpenError, Paths};
use tagmatch::wire::Credits;

use super::types::{
    TM_ENDPOINT_SHM, TM_MATCHING_DEVICE, TM_MATCHING_MODEL, TM_MATCHING_SOFTWARE, TM_NETWORK_TCP,
    TM_NETWORK_VERBS, tm_endpoint_config,
};
use crate::engine::types::check_flags;
use crate::error::{Error, Outcome};
use crate::ffi;

/// An endpoint as it is asked for.
///
/// # Safety
/// Pointers are null or to what they say; and the memory of every operation stays until the operation is over.
pub(super) unsafe fn open(asked: &tm_endpoint_config) -> Outcome<Endpoint> {
    check_flags(asked.flags, TM_ENDPOINT_SHM, "config.flags")?;
    // SAFETY: the caller's promise.
    let listen = unsafe { ffi::text(asked.listen, "config.listen") }?.unwrap_or("127.0.0.1:0");
    let listen: SocketAddr = listen.parse().map_err(|_| {
        Error::argument(format!(
            "config.listen is {listen:?}: it is an address with a port, as 192.0.2.1:7000 or [2001:db8::1]:0"
        ))
    })?;
    // SAFETY: the caller's promise.
    let device = unsafe { ffi::text(asked.verbs_device, "config.verbs_device") }?;
    // SAFETY: the caller's promise.
    let config = unsafe { config(asked) }?;
    let paths = paths(asked, device)?;
    // SAFETY: the caller's promise, of all that will be given to the endpoint.
    let memory = unsafe { HostMemory::trusted() };
    Ok(paths.open(listen, config, memory)?)
}

fn paths(asked: &tm_endpoint_config, device: Option<&str>) -> Outcome<Paths> {
    let matcher = match asked.matching {
        TM_MATCHING_SOFTWARE => Matcher::Software,
        TM_MATCHING_MODEL => Matcher::Model,
        TM_MATCHING_DEVICE => Matcher::Device,
        matching => {
            return Err(Error::argument(format!(
                "config.matching is {matching}: it is one of TM_MATCHING_…, 0 to 2"
            )));
        }
    };
    let network = match asked.network {
        TM_NETWORK_TCP if matcher == Matcher::Device => {
            return Err(Error::argument(
                "config.matching is TM_MATCHING_DEVICE: over TCP no device matches; TM_NETWORK_VERBS, or another matching"
                    .into(),
            ));
        }
        TM_NETWORK_TCP => Network::Tcp,
        TM_NETWORK_VERBS => Network::Verbs(device.map(str::to_owned)),
        network => {
            return Err(Error::argument(format!(
                "config.network is {network}: it is TM_NETWORK_TCP or TM_NETWORK_VERBS, 0 or 1"
            )));
        }
    };
    Ok(Paths { network, matcher, shares_memory: asked.flags & TM_ENDPOINT_SHM != 0 })
}

/// # Safety
/// The key is null, or as long as it says.
unsafe fn config(asked: &tm_endpoint_config) -> Outcome<Config> {
    let usual = Config::default();
    let time = |asked: u32, usual| if asked == 0 { usual } else { Duration::from_millis(u64::from(asked)) };
    let number = |asked: u32, usual| if asked == 0 { usual } else { asked };
    let bytes = |asked: u64, usual| if asked == 0 { usual } else { asked };
    let key_length = usize::try_from(asked.job_key_length).unwrap_or(usize::MAX);
    // SAFETY: the caller's promise.
    let job_key = unsafe { ffi::several(asked.job_key.cast::<u8>(), key_length, "config.job_key") }?;
    if !asked.job_key.is_null() && job_key.is_empty() {
        return Err(Error::argument("config.job_key_length is 0, and there is a config.job_key".into()));
    }
    Ok(Config {
        eager_limit: bytes(asked.eager_limit, usual.eager_limit),
        inject_size: bytes(asked.inject_size, usual.inject_size),
        credits: Credits {
            headers: number(asked.credit_headers, usual.credits.headers),
            eager_messages: number(asked.credit_messages, usual.credits.eager_messages),
            eager_bytes: bytes(asked.credit_bytes, usual.credits.eager_bytes),
        },
        connect_timeout: time(asked.connect_timeout_ms, usual.connect_timeout),
        keepalive: (asked.keepalive_ms > 0).then(|| time(asked.keepalive_ms, Duration::ZERO)),
        close_timeout: time(asked.close_timeout_ms, usual.close_timeout),
        job_key: (!job_key.is_empty()).then(|| job_key.to_vec()),
        peers_max: number(asked.peers_max, usual.peers_max),
        layout: (asked.source_bits != 0).then_some(TagLayout { source_bits: asked.source_bits }),
        ..usual
    })
}

impl From<OpenError> for Error {
    fn from(error: OpenError) -> Self {
        let code = match &error {
            OpenError::Sockets(error) | OpenError::Verbs(VerbsOpenError::Exchange(error)) => code(error),
            OpenError::Verbs(_) => libc::ENODEV,
            OpenError::Model(_) | OpenError::NoDevice => libc::EINVAL,
            OpenError::Endpoint(error) => return error.clone().into(),
            OpenError::Unconnected | _ => libc::EIO,
        };
        Self::said(code, error.to_string())
    }
}

fn code(error: &tcp::OpenError) -> i32 {
    match error {
        tcp::OpenError::System { errno, .. } => *errno,
        tcp::OpenError::Memory | _ => libc::EIO,
    }
}
