//! How a transport over verbs is set up.

use std::net::SocketAddr;
use std::time::Duration;

use crate::device::sockets;
use crate::device::verbs::context::Limits;
use crate::device::verbs::{VerbsConfig, VerbsError};

/// See the module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerbsTransportConfig {
    /// Of the device behind it: which, whether it matches, how much of everything.
    pub device: VerbsConfig,
    /// Where to listen for those who want to connect; port 0: any that is free. Over TCP pairs say how their queue pairs
    /// are reached, and that they are still there; nothing else.
    pub listen: SocketAddr,
    /// Connections that may wait to be accepted.
    pub backlog: i32,
    /// Connections that may be accepted and not bound; one more ends the oldest.
    pub unbound_max: usize,
    /// How long memory that a peer could read stays registered when it has read it, and its link is there. `None`: 0.5 s
    /// on soft-RoCE, 0 on everything else.
    ///
    /// rxe of Linux 6.1 takes a READ that was repeated, and comes once more when its memory is no longer registered, for an
    /// access error: its queue pair goes to ERR and answers nothing any more. That happens where packets overtake each
    /// other, since what says that the memory was read can overtake such a READ.
    pub linger: Option<Duration>,
}

impl VerbsTransportConfig {
    /// Listening at this address, on the first device.
    #[must_use]
    pub fn new(listen: SocketAddr) -> Self {
        Self { device: VerbsConfig::default(), listen, backlog: 4096, unbound_max: 1024, linger: None }
    }

    /// [`Self::linger`] on a device with these limits.
    pub(super) fn linger_on(&self, limits: &Limits) -> Duration {
        let is_soft_roce = limits.vendor.0 == SOFT_ROCE;
        self.linger.unwrap_or(if is_soft_roce { LINGER } else { Duration::ZERO })
    }
}

/// `vendor_id` of rxe.
const SOFT_ROCE: u32 = 0xff_ffff;
/// About as long as a queue pair tries with the usual patience, so longer than a packet is on its way.
const LINGER: Duration = Duration::from_millis(500);

/// No transport could be made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no device, or it cannot be used.
    #[error(transparent)]
    Device(#[from] VerbsError),
    /// There is no memory that may be followed, or the operating system refused what the exchange by TCP needs.
    #[error(transparent)]
    Exchange(#[from] sockets::OpenError),
}
