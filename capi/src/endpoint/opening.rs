//! The transports of an endpoint, and how it is set up.

use std::net::SocketAddr;
use std::time::Duration;

use tagmatch::device::host_memory::HostMemory;
use tagmatch::device::loopback::LoopbackTransport;
use tagmatch::device::shm::{ShmConfig, ShmTransport};
use tagmatch::device::soft::SoftConfig;
use tagmatch::device::soft::over::OverTransport;
use tagmatch::device::tcp::{OpenError, TcpConfig, TcpTransport};
use tagmatch::device::transport::Transport;
use tagmatch::device::verbs::transport::OpenError as VerbsOpenError;
use tagmatch::device::verbs::{TagMatching, VerbsConfig, VerbsTransport, VerbsTransportConfig};
use tagmatch::endpoint::{Config, Endpoint};
use tagmatch::ids::DeviceId;
use tagmatch::offload::TagLayout;
use tagmatch::wire::Credits;

use super::types::{
    TM_ENDPOINT_SHM, TM_MATCHING_DEVICE, TM_MATCHING_MODEL, TM_MATCHING_SOFTWARE, TM_NETWORK_TCP,
    TM_NETWORK_VERBS, tm_endpoint_config,
};
use crate::engine::types::check_flags;
use crate::error::{Error, Outcome};
use crate::ffi;

type AnyTransport = Box<dyn Transport + Send>;

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
    // SAFETY: the caller's promise, of all that will be given to the endpoint.
    let memory = unsafe { HostMemory::trusted() };
    let has_shm = asked.flags & TM_ENDPOINT_SHM != 0;
    let id = DeviceId(if has_shm { 2 } else { 1 });
    let network = network(asked, id, listen, device, config.eager_limit, memory)?;
    let own = LoopbackTransport::new(DeviceId(0), network.name(), config.eager_limit, memory);
    let mut transports: Vec<AnyTransport> = vec![Box::new(own.ok_or(UNTRUSTED)?)];
    if has_shm {
        let id = DeviceId(1);
        let eager_limit = config.eager_limit.min(ShmConfig::default().eager_limit);
        let shm = ShmConfig { id, eager_limit, ..ShmConfig::default() };
        let shm = ShmTransport::open(network.name(), shm, memory)?;
        transports.push(if asked.matching == TM_MATCHING_MODEL { over(id, shm)? } else { Box::new(shm) });
    }
    transports.push(network);
    Ok(Endpoint::new(config, transports)?)
}

/// What goes to other hosts.
fn network(
    asked: &tm_endpoint_config,
    id: DeviceId,
    listen: SocketAddr,
    device: Option<&str>,
    eager_limit: u64,
    memory: HostMemory,
) -> Outcome<AnyTransport> {
    let matching = asked.matching;
    if matching > TM_MATCHING_MODEL {
        return Err(Error::argument(format!(
            "config.matching is {matching}: it is one of TM_MATCHING_…, 0 to 2"
        )));
    }
    match asked.network {
        TM_NETWORK_TCP if matching == TM_MATCHING_DEVICE => Err(Error::argument(
            "config.matching is TM_MATCHING_DEVICE: over TCP no device matches; TM_NETWORK_VERBS, or another matching"
                .into(),
        )),
        TM_NETWORK_TCP => {
            let tcp = TcpTransport::open(TcpConfig { id, eager_limit, ..TcpConfig::new(listen) }, memory)?;
            Ok(if matching == TM_MATCHING_MODEL { over(id, tcp)? } else { Box::new(tcp) })
        }
        TM_NETWORK_VERBS => {
            let verbs = VerbsConfig {
                id,
                device: device.map(str::to_owned),
                address: Some(listen.ip()).filter(|ip| !ip.is_unspecified()),
                tag_matching: if matching == TM_MATCHING_DEVICE { TagMatching::Required } else { TagMatching::Off },
                tags: TAGS,
                eager_limit: narrow(eager_limit),
                ..VerbsConfig::default()
            };
            let config = VerbsTransportConfig { device: verbs, ..VerbsTransportConfig::new(listen) };
            let verbs = VerbsTransport::open(config, memory)?;
            Ok(if matching == TM_MATCHING_MODEL { over(id, verbs)? } else { Box::new(verbs) })
        }
        network => Err(Error::argument(format!(
            "config.network is {network}: it is TM_NETWORK_TCP or TM_NETWORK_VERBS, 0 or 1"
        ))),
    }
}

/// The model of a device that matches, over a transport.
fn over<T: Transport + Send + 'static>(id: DeviceId, transport: T) -> Outcome<AnyTransport> {
    let soft = SoftConfig { id, ..SoftConfig::matching(TAGS) };
    let over = OverTransport::new(transport, soft);
    over.map(|over| Box::new(over) as AnyTransport).map_err(|error| Error::argument(error.to_string()))
}

/// # Safety
/// The key is null, or as long as it says.
unsafe fn config(asked: &tm_endpoint_config) -> Outcome<Config> {
    let usual = Config::default();
    let time = |asked: u32, usual| if asked == 0 { usual } else { Duration::from_millis(u64::from(asked)) };
    let number = |asked: u32, usual| if asked == 0 { usual } else { asked };
    let bytes = |asked: u64, usual| if asked == 0 { usual } else { asked };
    let is_buffered = asked.network == TM_NETWORK_VERBS || asked.matching != TM_MATCHING_SOFTWARE;
    let eager_limit = bytes(asked.eager_limit, usual.eager_limit);
    // Of a device, and of one that matches, the buffers for messages without a receive are of this length.
    let eager_limit = if is_buffered { eager_limit.min(DEVICE_BUFFER) } else { eager_limit };
    let key_length = usize::try_from(asked.job_key_length).unwrap_or(usize::MAX);
    // SAFETY: the caller's promise.
    let job_key = unsafe { ffi::several(asked.job_key.cast::<u8>(), key_length, "config.job_key") }?;
    if !asked.job_key.is_null() && job_key.is_empty() {
        return Err(Error::argument("config.job_key_length is 0, and there is a config.job_key".into()));
    }
    Ok(Config {
        eager_limit,
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
            OpenError::System { errno, .. } => *errno,
            OpenError::Memory | _ => libc::EIO,
        };
        Self::said(code, error.to_string())
    }
}

impl From<VerbsOpenError> for Error {
    fn from(error: VerbsOpenError) -> Self {
        match error {
            VerbsOpenError::Exchange(error) => error.into(),
            error @ (VerbsOpenError::Device(_) | _) => Self::said(libc::ENODEV, error.to_string()),
        }
    }
}

fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

const UNTRUSTED: Error = Error::new(libc::EIO, "memory is not trusted");
/// Entries of a matching list.
const TAGS: u32 = 1024;
/// Bytes of payload that a buffer of a device holds, all of which are pinned.
const DEVICE_BUFFER: u64 = 8 << 10;
