//! How much one peer may send before it must wait, or send the header alone: on the sending and on the receiving side.
//!
//! What may be outstanding plus what is kept unexpected never exceeds the limit. A message of at most [`SMALL`] bytes
//! goes eagerly whatever is outstanding, and counts as a header: NICs leave some bytes behind for a rendezvous that is
//! shorter than its own headers.

use crate::device::transport::Kept;
use crate::wire::Credits;

/// The longest payload that counts as a header.
pub(super) const SMALL: u64 = 64;

/// What may still be sent to a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Balance {
    left: Credits,
    /// Bytes that it had at most: no message that uses up more will ever go.
    bytes_most: u64,
}

impl Balance {
    pub(super) const fn new(granted: Credits) -> Self {
        Self { left: granted, bytes_most: granted.eager_bytes }
    }

    #[cfg(test)]
    pub(super) const fn left(&self) -> Credits {
        self.left
    }

    pub(super) const fn bytes_most(&self) -> u64 {
        self.bytes_most
    }

    /// Whether a message with its payload may go.
    #[inline]
    pub(super) const fn has_eager(&self, length: u64) -> bool {
        if length <= SMALL {
            self.left.headers > 0
        } else {
            self.left.eager_messages > 0 && self.left.eager_bytes >= length
        }
    }

    #[inline]
    pub(super) const fn has_header(&self) -> bool {
        self.left.headers > 0
    }

    /// It went.
    #[inline]
    pub(super) const fn take_eager(&mut self, length: u64) {
        if length <= SMALL {
            return self.take_header();
        }
        self.left.eager_messages = self.left.eager_messages.saturating_sub(1);
        self.left.eager_bytes = self.left.eager_bytes.saturating_sub(length);
    }

    /// It was left out: the peer has heard nothing of it.
    #[cold]
    pub(super) const fn give_back(&mut self, length: u64) {
        if length <= SMALL {
            self.left.headers = self.left.headers.saturating_add(1);
        } else {
            self.left.eager_messages = self.left.eager_messages.saturating_add(1);
            self.left.eager_bytes = self.left.eager_bytes.saturating_add(length);
        }
    }

    #[inline]
    pub(super) const fn take_header(&mut self) {
        self.left.headers = self.left.headers.saturating_sub(1);
    }

    /// More may be sent. False: it adds up to more than there can be.
    pub(super) fn add(&mut self, more: &Credits) -> bool {
        let headers = self.left.headers.checked_add(more.headers);
        let eager_messages = self.left.eager_messages.checked_add(more.eager_messages);
        let eager_bytes = self.left.eager_bytes.checked_add(more.eager_bytes);
        if let (Some(headers), Some(eager_messages), Some(eager_bytes)) =
            (headers, eager_messages, eager_bytes)
        {
            self.left = Credits { headers, eager_messages, eager_bytes };
            self.bytes_most = self.bytes_most.max(eager_bytes);
            return true;
        }
        false
    }
}

/// What a peer has been granted and not used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Allowance(Credits);

impl Allowance {
    pub(super) const fn new(granted: Credits) -> Self {
        Self(granted)
    }

    #[cfg(test)]
    pub(super) const fn left(&self) -> Credits {
        self.0
    }

    /// A message came. False: there was nothing left for it.
    #[inline]
    pub(super) const fn take(&mut self, length: u64, is_header: bool) -> bool {
        if is_header || length <= SMALL {
            let Some(headers) = self.0.headers.checked_sub(1) else { return false };
            self.0.headers = headers;
            return true;
        }
        match (self.0.eager_messages.checked_sub(1), self.0.eager_bytes.checked_sub(length)) {
            (Some(eager_messages), Some(eager_bytes)) => {
                (self.0.eager_messages, self.0.eager_bytes) = (eager_messages, eager_bytes);
                true
            }
            (None, _) | (_, None) => false,
        }
    }

    /// Whether so much of any kind is used that more should be granted.
    #[inline]
    pub(super) const fn is_low(&self, limit: &Credits) -> bool {
        self.0.headers <= limit.headers / 2
            || self.0.eager_messages <= limit.eager_messages / 2
            || self.0.eager_bytes <= limit.eager_bytes / 2
    }

    /// What to grant now, beside what is kept. Nothing is granted in crumbs, unless a peer can send nothing at all.
    pub(super) fn grant(&mut self, limit: &Credits, kept: &Kept) -> Option<Credits> {
        let free = free(limit, kept);
        let headers = worth(free.headers.saturating_sub(self.0.headers), limit.headers, self.0.headers == 0);
        let messages = free.eager_messages.saturating_sub(self.0.eager_messages);
        let bytes = free.eager_bytes.saturating_sub(self.0.eager_bytes);
        let eager_messages = worth(messages, limit.eager_messages, false);
        let eager_bytes = if bytes >= limit.eager_bytes.div_ceil(4) { bytes } else { 0 };
        let more = Credits { headers, eager_messages, eager_bytes };
        if more == Credits::default() {
            return None;
        }
        self.0.headers = self.0.headers.saturating_add(headers);
        self.0.eager_messages = self.0.eager_messages.saturating_add(eager_messages);
        self.0.eager_bytes = self.0.eager_bytes.saturating_add(eager_bytes);
        Some(more)
    }
}

/// What may be outstanding beside what is kept. Of headers there is always one, so that a new connection is of use.
pub(super) fn free(limit: &Credits, kept: &Kept) -> Credits {
    let small = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    // Kept messages of either kind weigh on both: which of them were small is not known.
    Credits {
        headers: limit.headers.saturating_sub(small(kept.requests.saturating_add(kept.messages))),
        eager_messages: limit.eager_messages.saturating_sub(small(kept.messages)),
        eager_bytes: limit.eager_bytes.saturating_sub(kept.bytes),
    }
}

const fn worth(more: u32, limit: u32, any: bool) -> u32 {
    if any || more >= limit.div_ceil(4) { more } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Credits = Credits { headers: 8, eager_messages: 4, eager_bytes: 4000 };

    #[test]
    fn outstanding_and_kept_never_exceed_the_limit() {
        let (mut balance, mut allowance) = (Balance::new(LIMIT), Allowance::new(LIMIT));
        let mut kept = Kept::default();
        for round in 0..1000_u64 {
            while balance.has_eager(900) {
                balance.take_eager(900);
                assert!(allowance.take(900, false));
                kept.messages += 1;
                kept.bytes += 900;
            }
            assert!(kept.messages <= 4 && kept.bytes <= 4000);
            let taken = kept.messages.min(1 + round % 4);
            kept.messages -= taken;
            kept.bytes -= taken * 900;
            if let Some(more) = allowance.grant(&LIMIT, &kept) {
                assert!(balance.add(&more));
            }
            assert_eq!(balance.left, allowance.left());
        }
    }

    #[test]
    fn a_peer_that_can_send_nothing_is_granted_a_single_header() {
        let mut allowance = Allowance::new(LIMIT);
        for _ in 0..8 {
            assert!(allowance.take(64, false));
        }
        assert!(!allowance.take(0, false));
        let full = Kept { messages: 8, bytes: 0, requests: 0 };
        assert_eq!(allowance.grant(&LIMIT, &full).map(|more| more.headers), None);
        let one_less = Kept { messages: 7, bytes: 0, requests: 0 };
        assert_eq!(allowance.grant(&LIMIT, &one_less).map(|more| more.headers), Some(1));
    }

    #[test]
    fn grants_that_add_up_to_too_much_are_refused() {
        let mut balance = Balance::new(LIMIT);
        assert!(!balance.add(&Credits { headers: u32::MAX, ..Credits::default() }));
        assert!(!balance.add(&Credits { eager_bytes: u64::MAX, ..Credits::default() }));
        assert_eq!(balance.left, LIMIT);
    }
}
