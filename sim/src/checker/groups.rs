//! Which peer is in which group.

use tagmatch::ids::{GroupId, PeerId};
use tagmatch::matching::{Envelope, Pattern};

/// By peer.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub(super) struct Groups {
    members: Vec<(PeerId, GroupId)>,
}

impl Groups {
    /// The peer leaves the group it was in.
    pub(super) fn join(&mut self, peer: PeerId, group: GroupId) {
        match self.members.binary_search_by_key(&peer, |member| member.0) {
            Ok(at) => self.members[at].1 = group,
            Err(at) => self.members.insert(at, (peer, group)),
        }
    }

    pub(super) fn of(&self, peer: PeerId) -> Option<GroupId> {
        self.members.binary_search_by_key(&peer, |member| member.0).ok().map(|at| self.members[at].1)
    }

    pub(super) fn fits(&self, pattern: &Pattern, message: &Envelope) -> bool {
        pattern.fits(message, self.of(message.source))
    }
}
