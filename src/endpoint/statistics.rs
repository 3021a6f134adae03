//! What an endpoint counts: always on.

/// Counters of an endpoint, all since it was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Statistics {
    /// Messages sent eagerly.
    pub sent_eager: u64,
    /// Messages sent in segments.
    pub sent_segmented: u64,
    /// Messages sent by rendezvous.
    pub sent_rendezvous: u64,
    /// Of those, messages that would have gone eagerly, had there been credit.
    pub without_credit: u64,
    /// Bytes of payload in messages that were sent.
    pub bytes_sent: u64,
    /// Messages that receives took.
    pub received: u64,
    /// Bytes of payload that were written for them.
    pub bytes_received: u64,
    /// Messages that were longer than their buffer.
    pub truncated: u64,
    /// Messages that a device matched.
    pub matched_by_device: u64,
    /// Messages that a receive which was posted before took, in software.
    pub matched_posted: u64,
    /// Messages that a receive took from the unexpected list.
    pub matched_unexpected: u64,
    /// Messages that found no receive when they came.
    pub unexpected: u64,
    /// Peeks.
    pub peeks: u64,
    /// Receives that were cancelled.
    pub cancelled: u64,
    /// Sends that were not taken since no connection was there yet.
    pub again_connecting: u64,
    /// Sends that were not taken for want of room or credit.
    pub again_full: u64,
    /// Connections that came about.
    pub connected: u64,
    /// Of those, connections through shared memory.
    pub connected_shm: u64,
    /// Connections that crossed another and gave way.
    pub crossed: u64,
    /// Attempts to connect that failed.
    pub connect_failed: u64,
    /// Connections that were lost.
    pub lost: u64,
    /// Peers that turned out to be restarted.
    pub restarted: u64,
    /// Connections that were ended because the other side broke the protocol.
    pub protocol_errors: u64,
    /// Connections that were turned away: no key, no common version.
    pub turned_away: u64,
    /// Operations that failed.
    pub failed: u64,
    /// Writes of peers' memory.
    pub remote_writes: u64,
    /// Reads of peers' memory.
    pub remote_reads: u64,
    /// Writes of peers to memory of this side's.
    pub written_by_peers: u64,
    /// Reads of peers from memory of this side's.
    pub read_by_peers: u64,
    /// Things that devices did that they may not do ([`Fault`](crate::offload::Fault)).
    pub device_faults: u64,
}

impl Statistics {
    /// Every counter with its name, in the order above.
    #[must_use]
    pub const fn rows(&self) -> [(&'static str, u64); 30] {
        [
            ("sent_eager", self.sent_eager),
            ("sent_segmented", self.sent_segmented),
            ("sent_rendezvous", self.sent_rendezvous),
            ("without_credit", self.without_credit),
            ("bytes_sent", self.bytes_sent),
            ("received", self.received),
            ("bytes_received", self.bytes_received),
            ("truncated", self.truncated),
            ("matched_by_device", self.matched_by_device),
            ("matched_posted", self.matched_posted),
            ("matched_unexpected", self.matched_unexpected),
            ("unexpected", self.unexpected),
            ("peeks", self.peeks),
            ("cancelled", self.cancelled),
            ("again_connecting", self.again_connecting),
            ("again_full", self.again_full),
            ("connected", self.connected),
            ("connected_shm", self.connected_shm),
            ("crossed", self.crossed),
            ("connect_failed", self.connect_failed),
            ("lost", self.lost),
            ("restarted", self.restarted),
            ("protocol_errors", self.protocol_errors),
            ("turned_away", self.turned_away),
            ("failed", self.failed),
            ("remote_writes", self.remote_writes),
            ("remote_reads", self.remote_reads),
            ("written_by_peers", self.written_by_peers),
            ("read_by_peers", self.read_by_peers),
            ("device_faults", self.device_faults),
        ]
    }
}
