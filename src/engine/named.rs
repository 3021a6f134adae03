//! Which peers anything here still names, for an owner who deals the numbers of those that are gone again.
//!
//! Not here: when an owner asks. It costs a look at everything, so not often.

use crate::ids::{PeerId, Source};

use super::Engine;
use super::completion::End;

impl Engine {
    /// Call with every peer that is named: by a posted receive or by what a device still has of one, as the sender of a
    /// message that has not ended, or in a completion that was not polled. With some more than once. Says how many places were
    /// looked at, which is none where nothing is kept.
    pub fn for_each_peer(&self, each: &mut dyn FnMut(PeerId)) -> usize {
        let mut looked = self.matcher.for_each_peer(each);
        let patterns = self.offload.patterns().filter_map(|pattern| match pattern.source {
            Source::Peer(peer) => Some(peer),
            Source::Any | Source::Group(_) => None,
        });
        let claimed = self.claims.iter().map(|(_, claimed)| claimed.message.envelope.source);
        let ended = self.completions.iter().filter_map(|completion| match &completion.end {
            End::Received(message) => Some(message.source),
            End::Failed { source, .. } => Some(*source),
            End::Cancelled | End::Released => None,
        });
        let sources = self.waiting.sources().chain(self.transfers.sources());
        for peer in patterns.chain(claimed).chain(ended).chain(sources) {
            each(peer);
            looked += 1;
        }
        looked
    }

    /// The connection of this peer has ended: what devices have matched of it and is not in its receive yet has no word for
    /// anybody any more (`app_ctx` is 0). What would be told by it would reach the peer's next life.
    pub fn forget_words(&mut self, peer: PeerId) {
        self.transfers.forget_words(peer);
    }

    /// Nothing names this peer ([`Self::for_each_peer`]), and its number will be dealt again: what is known of it, its path,
    /// name and group, is not known of the next.
    pub fn forget_peer(&mut self, peer: PeerId) {
        if self.matcher.group_of(peer).is_some() {
            self.set_group(peer, None);
        }
        self.renamed.forget(peer);
        self.offload.forget_peer(peer);
    }
}
