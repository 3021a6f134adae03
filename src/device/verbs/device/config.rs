//! How a verbs device is set up, and the limits that follow.

use std::net::IpAddr;
use std::time::Duration;

use super::super::context::{Limits, TagMatchingLimits};
use super::super::queue_pair::Patience;
use super::super::tag_matching::command_slots;
use crate::ids::DeviceId;
use crate::seam::Capabilities;

/// How to set up a verbs device.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct VerbsConfig {
    /// Its number with the engine, under which it tells its events: it must be what
    /// [`Engine::add_device`](crate::engine::Engine::add_device) returns for it, 0 for the first that joins, 1 for the
    /// next. Nothing checks that; with another's number, its events are taken for the other's.
    pub id: DeviceId,
    /// Which device, by its name as `ibv_devices` shows it; `None`: the first.
    pub device: Option<String>,
    /// Which port; `None`: the first that is active.
    pub port: Option<u8>,
    /// Which GID of the port's table; `None`: none where none is needed, else of RoCE v2 the one of [`Self::address`],
    /// else one that is an address of an interface.
    pub gid_index: Option<u8>,
    /// The address by which peers know this side, which they can reach.
    pub address: Option<IpAddr>,
    /// Whether the device is to match.
    pub tag_matching: TagMatching,
    /// Entries of the matching list, cut to what the device has.
    pub tags: u32,
    /// Buffers for unexpected messages that may be posted at a time; at least 33.
    pub unexpected_buffers: u32,
    /// Further buffers, in which held messages stay; beyond, they are copied away.
    pub spare_buffers: u32,
    /// The longest payload, in bytes, that is sent and received eagerly. The same for all peers.
    pub eager_limit: u32,
    /// Peers that can be connected at a time.
    pub peers: u32,
    /// Sends, reads and probes under way to a peer.
    pub sends_per_peer: u32,
    /// Buffers for sends that are copied.
    pub send_buffers: u32,
    /// Bytes that go with a send itself, if the device can.
    pub inline: u32,
    /// READs under way on a queue pair, cut to what the device has.
    pub reads: u8,
    /// How long queue pairs try.
    pub patience: Patience,
    /// After so long without a word from a peer it is asked for one. `None`: only when the owner says so.
    pub keepalive: Option<Duration>,
    /// Asynchronous events are looked for every so many polls.
    pub events_every: u32,
    /// How long a failed queue pair is waited for to say that it is drained, in polls that find nothing and in time:
    /// both must have passed.
    pub drain_polls: u32,
    /// See [`Self::drain_polls`].
    pub drain_time: Duration,
    /// Keep messages without a tag for the owner ([`super::VerbsDevice::take_untagged`]). Without, they are dropped.
    pub keep_untagged: bool,
}

/// Whether a device is to match.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TagMatching {
    /// If it can; else it is used without.
    Wanted,
    /// It must.
    Required,
    /// It must not.
    Off,
}

impl Default for VerbsConfig {
    fn default() -> Self {
        Self {
            id: DeviceId(0),
            device: None,
            port: None,
            gid_index: None,
            address: None,
            tag_matching: TagMatching::Wanted,
            tags: 1024,
            unexpected_buffers: 256,
            spare_buffers: 256,
            eager_limit: 8192,
            peers: 256,
            sends_per_peer: 64,
            send_buffers: 256,
            inline: 64,
            reads: 16,
            patience: Patience::default(),
            keepalive: None,
            events_every: 64,
            drain_polls: 16,
            drain_time: Duration::from_millis(20),
            keep_untagged: true,
        }
    }
}

/// The sizes that a configuration and a device come to (TM-CONTRACT 12).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Sizes {
    pub(super) tags: u32,
    pub(super) slots: u32,
    pub(super) unexpected: u32,
    /// Of the engine's: entries of the completion queue without those for errors of queue pairs.
    pub(super) counted: u32,
    /// Entries of the completion queue.
    pub(super) completions: u32,
}

impl Sizes {
    /// With tag matching. `None`: not even the smallest list fits into the device's queues.
    pub(super) fn matching(config: &VerbsConfig, limits: &Limits, tm: &TagMatchingLimits) -> Option<Self> {
        let unexpected = config.unexpected_buffers.max(Capabilities::UNEXPECTED_BUFFERS_MIN);
        let unexpected = unexpected.min(limits.shared_receives.saturating_sub(config.spare_buffers));
        if unexpected < Capabilities::UNEXPECTED_BUFFERS_MIN {
            return None;
        }
        let mut tags = config.tags.clamp(1, tm.tags.min(TAGS_MAX));
        loop {
            // An ADD and a DEL for each tag, a SYNC and one more.
            let wanted = command_slots(tags.saturating_mul(2).saturating_add(2));
            let slots = wanted.min(highest_power(tm.operations));
            let counted = tags.saturating_mul(3).saturating_add(slots).saturating_add(unexpected);
            let completions = counted.saturating_add(errors(config));
            if slots > 0 && completions <= limits.completions {
                return Some(Self { tags, slots, unexpected, counted, completions });
            }
            if tags == 1 {
                return None;
            }
            tags /= 2;
        }
    }

    /// The same with fewer command slots.
    pub(super) fn with_slots(self, slots: u32) -> Self {
        let saved = self.slots.saturating_sub(slots);
        Self { slots, counted: self.counted - saved, completions: self.completions - saved, ..self }
    }

    /// Without.
    pub(super) fn plain(config: &VerbsConfig, limits: &Limits) -> Self {
        let buffers = config.unexpected_buffers.saturating_add(config.spare_buffers);
        let unexpected = buffers.clamp(1, limits.shared_receives.max(1));
        let completions = unexpected.saturating_add(errors(config)).min(limits.completions);
        Self { tags: 0, slots: 0, unexpected, counted: completions, completions }
    }
}

/// Completions of queue pairs that fail, two for each.
fn errors(config: &VerbsConfig) -> u32 {
    config.peers.saturating_mul(4)
}

/// The highest power of two that is not above it: the driver rounds up, and the device takes no more than it has.
fn highest_power(value: u32) -> u32 {
    value.checked_ilog2().map_or(0, |log| 1 << log)
}

/// The device names entries with 15 bits (TM-CONTRACT 1).
const TAGS_MAX: u32 = 32_767;

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(completions: u32) -> Limits {
        Limits {
            firmware: String::new(),
            vendor: (0, 0),
            ports: 1,
            queue_pairs: 1000,
            work_requests: 1000,
            segments: 30,
            completions,
            shared_receives: 1000,
            reads: (16, 16),
            region: u64::MAX,
            tag_matching: None,
        }
    }

    const TM: TagMatchingLimits = TagMatchingLimits {
        tags: 127,
        operations: 32_768,
        segments: 1,
        rendezvous_header: 64,
        rendezvous: true,
    };

    #[test]
    fn sizes_are_cut_to_the_device_and_every_completion_has_room() {
        let config = VerbsConfig { peers: 4, unexpected_buffers: 10, ..VerbsConfig::default() };
        let sizes = Sizes::matching(&config, &limits(100_000), &TM).unwrap();
        assert_eq!((sizes.tags, sizes.slots, sizes.unexpected), (127, 256, 33));
        assert_eq!(sizes.counted, 3 * 127 + 256 + 33);
        assert_eq!(sizes.completions, sizes.counted + 16);
    }

    #[test]
    fn a_short_completion_queue_makes_a_short_list_and_one_too_short_none() {
        let config = VerbsConfig { peers: 4, unexpected_buffers: 33, ..VerbsConfig::default() };
        let sizes = Sizes::matching(&config, &limits(200), &TM).unwrap();
        assert!(sizes.tags < 127 && sizes.completions <= 200);
        assert_eq!(Sizes::matching(&config, &limits(50), &TM), None);
        assert_eq!(Sizes::matching(&config, &limits(200), &TagMatchingLimits { operations: 0, ..TM }), None);
    }

    #[test]
    fn few_operations_of_the_device_are_kept_to() {
        let tm = TagMatchingLimits { operations: 20, ..TM };
        let sizes = Sizes::matching(&VerbsConfig::default(), &limits(100_000), &tm).unwrap();
        assert_eq!(sizes.slots, 16);
    }
}
