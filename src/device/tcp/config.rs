//! How a TCP transport is set up.

use std::net::{Ipv4Addr, SocketAddr};

use crate::device::stream::StreamConfig;
use crate::ids::DeviceId;

/// See the module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpConfig {
    /// As which device it speaks to its engines.
    pub id: DeviceId,
    /// Where to listen; port 0: any that is free.
    pub listen: SocketAddr,
    /// Connections that may wait to be accepted.
    pub backlog: i32,
    /// The longest payload in one message, in bytes. A peer that sends a longer one ends its link.
    pub eager_limit: u64,
    /// Bytes of copied messages that may wait on one link before it is full. One message always finds room on a link
    /// where nothing waits.
    pub queue_bytes: usize,
    /// Connections that may be accepted and not bound; one more ends the oldest.
    pub unbound_max: usize,
    /// Where there are no descriptors for more, those that are not bound stay, and who connects waits: of a passive endpoint,
    /// which has its own patience with them.
    pub keeps_unbound: bool,
}

impl TcpConfig {
    /// Listening at this address, with an eager limit of 64 KiB.
    #[must_use]
    pub const fn new(listen: SocketAddr) -> Self {
        Self {
            id: DeviceId(0),
            listen,
            backlog: 4096,
            eager_limit: 64 * 1024,
            queue_bytes: 1 << 20,
            unbound_max: 1024,
            keeps_unbound: false,
        }
    }

    /// Listening at any port that is free, for this host alone.
    #[must_use]
    pub const fn loopback() -> Self {
        Self::new(SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0))
    }

    pub(super) const fn stream(&self) -> StreamConfig {
        let Self { id, eager_limit, queue_bytes, unbound_max, keeps_unbound, .. } = *self;
        StreamConfig { id, eager_limit, queue_bytes, unbound_max, keeps_unbound }
    }
}
