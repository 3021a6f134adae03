//! How a transport over streams is set up, whatever its streams are.

use crate::ids::DeviceId;

/// See the module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::device) struct StreamConfig {
    /// As which device it speaks to its engines.
    pub id: DeviceId,
    /// The longest payload in one message, in bytes. A peer that sends a longer one ends its link.
    pub eager_limit: u64,
    /// Bytes of copied messages that may wait on one link before it is full. One message always finds room on a link
    /// where nothing waits.
    pub queue_bytes: usize,
    /// Connections that may be accepted and not bound; one more ends the oldest.
    pub unbound_max: usize,
    /// Where there are no descriptors for more, those that are not bound stay, and who connects waits.
    pub keeps_unbound: bool,
}
