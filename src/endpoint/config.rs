//! How an endpoint is set up.

use std::time::Duration;

use crate::offload::TagLayout;
use crate::wire::Credits;

/// How to set up an endpoint.
#[derive(Clone, Debug)]
pub struct Config {
    /// The longest payload, in bytes, that is sent eagerly and taken so. Peers and transports may take less.
    pub eager_limit: u64,
    /// The longest payload, in bytes, that [`super::Endpoint::send`] copies ([`crate::device::transport::Payload::Copied`]).
    pub inject_size: u64,
    /// Messages longer than the eager limit and up to this many bytes go in segments, to peers that put them together
    /// and do not match in hardware; longer ones by rendezvous. 0: none.
    pub segmented_limit: u64,
    /// What one peer may have outstanding or kept unexpected here.
    pub credits: Credits,
    /// Every access of a peer to memory of this side's is told, not only those with CQ data.
    pub remote_events: bool,
    /// How long a connection may take to come about before sends to that peer are told.
    pub connect_timeout: Duration,
    /// How long the other side of a connection that is open may be silent before it has said who it is. Long, since
    /// a process that computes does not answer.
    pub greeting_timeout: Duration,
    /// How long to wait before the second attempt to connect; doubled with each up to 64 times.
    pub back_off: Duration,
    /// A peer from which nothing came for so long is asked whether it is there, and lost if it says nothing for as long
    /// again. `None`: never; a process that computes does not answer either.
    pub keepalive: Option<Duration>,
    /// How long a peer may take nothing of what was sent before its connection was closed, or the endpoint.
    pub close_timeout: Duration,
    /// The key of the job, 16 bytes at least: connections come about only between endpoints that hold it.
    pub job_key: Option<Vec<u8>>,
    /// From which instance and challenges are drawn; never the same twice. `None`: from the operating system.
    pub seed: Option<[u8; 32]>,
    /// Peers that are known at most; beyond, whoever is in no address vector is turned away.
    pub peers_max: u32,
    /// Which bits of a tag name the sender, for devices that match.
    pub layout: Option<TagLayout>,
    /// How many receives from anybody that other paths than that of a device which matches served keep more of them out of
    /// it ([`crate::engine::Config::kept_from`]).
    pub kept_from: u8,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            eager_limit: 16 << 10,
            inject_size: 16 << 10,
            segmented_limit: 0,
            credits: Credits { headers: 1 << 20, eager_messages: 1 << 14, eager_bytes: 16 << 20 },
            remote_events: false,
            connect_timeout: Duration::from_secs(30),
            greeting_timeout: Duration::from_secs(600),
            back_off: Duration::from_millis(5),
            keepalive: None,
            close_timeout: Duration::from_secs(5),
            job_key: None,
            seed: None,
            peers_max: 1 << 20,
            layout: None,
            kept_from: crate::engine::Config::default().kept_from,
        }
    }
}
