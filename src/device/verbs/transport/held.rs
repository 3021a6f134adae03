//! Messages with a tag that the device keeps until they are answered: what of whom, for credits.

use std::collections::HashMap;

use crate::device::transport::Kept;
use crate::ids::{MessageToken, PeerId};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Held {
    messages: HashMap<MessageToken, (PeerId, Kept)>,
    sums: HashMap<PeerId, Kept>,
}

impl Held {
    pub(super) fn keep(&mut self, message: MessageToken, peer: PeerId, kept: Kept) {
        self.messages.insert(message, (peer, kept));
        let sum = self.sums.entry(peer).or_default();
        sum.messages += kept.messages;
        sum.bytes = sum.bytes.saturating_add(kept.bytes);
        sum.requests += kept.requests;
    }

    /// It is kept no longer. False: it was not.
    pub(super) fn forget(&mut self, message: MessageToken) -> bool {
        let Some((peer, gone)) = self.messages.remove(&message) else { return false };
        if let Some(sum) = self.sums.get_mut(&peer) {
            sum.messages = sum.messages.saturating_sub(gone.messages);
            sum.bytes = sum.bytes.saturating_sub(gone.bytes);
            sum.requests = sum.requests.saturating_sub(gone.requests);
            if *sum == Kept::default() {
                self.sums.remove(&peer);
            }
        }
        true
    }

    pub(super) fn of(&self, peer: PeerId) -> Kept {
        self.sums.get(&peer).copied().unwrap_or_default()
    }
}
