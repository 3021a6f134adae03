//! Rows of peers of whom nobody here has an address: they are the next peers' when nothing is left of these, so that nobody
//! fills the table by coming and going, whether under names that were inserted or as a stranger.
//!
//! ```text
//!  last address removed, link ended        nothing under way, nothing kept       nothing names it
//!  ──────────────────────────────► Looked at ─────────────────────────► Spent ───────────────────► free
//!                                   │   ▲ └┘ not yet                    │   └┘ a receive does
//!                                   ▼   └───────────────────────────────┤
//!                        known again, or a link has still to end ◄──────┘
//! ```
//! A receive stays posted when the address that it names is removed, and must never take a message of the next peer of that
//! row. No receive is counted for that: what the engines have is looked at once for all rows that are spent, and only as
//! often as pay for it.
//!
//! Not here: the table (`peers`).

use std::collections::VecDeque;

use crate::device::transport::Kept;
use crate::ids::PeerId;

use super::Endpoint;
use super::core::Core;
use super::peers::State;

/// Peers that may be gone. Each is on one list at most.
#[derive(Default)]
pub(super) struct Going {
    /// To be looked at.
    left: VecDeque<PeerId>,
    /// How many of them have been since one was found of which nothing is left, or that came anew.
    fruitless: usize,
    /// So many turns pass until they are looked at again: what is left of them may be messages that nobody takes for long.
    pause: u32,
    /// Nothing is left of these, but that a receive may name them.
    spent: Vec<PeerId>,
    /// How often one became so since receives were looked at.
    fresh: usize,
    /// What was looked at then, and how many receives had ended.
    looked: u64,
    ended: u64,
}

/// What is left of a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rest {
    /// It has an address, or a link whose end brings it here again.
    Known,
    /// Something that ends by itself, or that the user has still to take.
    Something,
    /// Nothing, but that a receive may name it.
    Nothing,
}

impl Going {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.left.is_empty() && self.spent.is_empty()
    }

    /// Whether it is time to look at what receives name: the first time, and when as much has happened since as the last look
    /// had cost.
    fn is_look_due(&self, ended: u64) -> bool {
        let since = ended.saturating_sub(self.ended);
        let paid = (self.fresh as u64 * PEER_PAYS).saturating_add(since.saturating_mul(RECEIVE_PAYS));
        !self.spent.is_empty() && paid >= self.looked.max(1)
    }
}

impl Endpoint {
    /// Free rows of whose peers nothing is left.
    #[cold]
    pub(super) fn free_rows(&mut self) {
        self.look_at_left();
        if self.core.going.is_look_due(self.core.receives_ended()) {
            self.free_spent();
        }
    }

    fn look_at_left(&mut self) {
        let going = &mut self.core.going;
        if going.pause > 0 {
            going.pause -= 1;
            return;
        }
        for _ in 0..going.left.len().min(ROWS_A_TURN) {
            let Some(peer) = self.core.going.left.pop_front() else { break };
            let rest = self.rest_of(peer);
            let Core { going, peers, .. } = &mut self.core;
            going.fruitless = if rest == Rest::Something { going.fruitless + 1 } else { 0 };
            match rest {
                Rest::Known => peers[peer].is_going = false,
                Rest::Something => going.left.push_back(peer),
                Rest::Nothing => {
                    going.spent.push(peer);
                    going.fresh += 1;
                }
            }
        }
        let going = &mut self.core.going;
        if going.fruitless >= going.left.len() {
            (going.fruitless, going.pause) = (0, PAUSE);
        }
    }

    /// Look at everything that may name a peer, once for all that are spent.
    fn free_spent(&mut self) {
        let mut spent = std::mem::take(&mut self.core.going.spent);
        spent.retain(|&peer| {
            let rest = self.rest_of(peer);
            match rest {
                Rest::Known => self.core.peers[peer].is_going = false,
                Rest::Something => self.core.going.left.push_back(peer),
                Rest::Nothing => {}
            }
            rest == Rest::Nothing
        });
        spent.sort_unstable();
        let core = &mut self.core;
        let mut is_named = vec![false; spent.len()];
        let mut see = |peer| {
            if let Ok(at) = spent.binary_search(&peer) {
                is_named[at] = true;
            }
        };
        let looked: usize = core.engines.iter().map(|engine| engine.for_each_peer(&mut see)).sum();
        for (&peer, is_named) in spent.iter().zip(is_named) {
            if is_named { core.going.spent.push(peer) } else { core.free_row(peer) }
        }
        let ended = core.receives_ended();
        let going = &mut core.going;
        (going.fresh, going.looked, going.ended) = (0, looked as u64, ended);
    }

    fn rest_of(&self, peer: PeerId) -> Rest {
        let core = &self.core;
        let row = &core.peers[peer];
        if row.address.is_some() {
            return Rest::Known;
        }
        match row.state {
            State::Dialling(_) | State::Connected(_) | State::Leaving(_) => return Rest::Known,
            State::Waiting(_) => return Rest::Something,
            State::Idle => {}
        }
        if row.is_noted
            || row.is_touched
            || core.operations.of(peer).next().is_some()
            || self.transports.iter().any(|transport| transport.kept(peer) != Kept::default())
            || core.claims.iter().any(|claim| claim.message.source == peer)
            || core.entries.values().any(|source| *source == peer)
        {
            return Rest::Something;
        }
        let has_link = core.links.iter().any(|(_, link)| link.peer == Some(peer));
        if has_link { Rest::Known } else { Rest::Nothing }
    }
}

impl Core {
    /// An address of this peer's was removed, or a link of its has ended.
    pub(super) fn look_whether_gone(&mut self, peer: PeerId) {
        let (row, going) = (&mut self.peers[peer], &mut self.going);
        if row.address.is_some() {
            return;
        }
        (going.fruitless, going.pause) = (0, 0);
        if row.is_going {
            // It was known again meanwhile, and nobody has looked: as good as one that came now.
            going.fresh += 1;
        } else {
            row.is_going = true;
            going.left.push_back(peer);
        }
    }

    fn free_row(&mut self, peer: PeerId) {
        for engine in &mut self.engines {
            engine.forget_peer(peer);
        }
        self.peers.free(peer);
    }

    /// Receives that have ended so far.
    fn receives_ended(&self) -> u64 {
        self.receives_made.saturating_sub(self.receives.len() as u64)
    }
}

/// So many rows are looked at in a turn.
const ROWS_A_TURN: usize = 8;
/// Turns, where all were looked at in vain.
const PAUSE: u32 = 63;
/// So many places in the engines may be looked at for each receive that has ended, which is little beside what it has cost,
const RECEIVE_PAYS: u64 = 16;
/// and for each peer that has gone.
const PEER_PAYS: u64 = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_receives_that_stay_posted_are_looked_at_as_often_as_others_end_or_many_peers_go() {
        let spent = vec![PeerId(3)];
        let mut going = Going { spent, looked: 160_000, ended: 5, ..Going::default() };
        assert!(!going.is_look_due(5));
        assert!(!going.is_look_due(5 + 9_999));
        assert!(going.is_look_due(5 + 10_000));
        going.fresh = 100;
        assert!(!going.is_look_due(5));
        going.fresh = 157;
        assert!(going.is_look_due(5));
        going.spent.clear();
        assert!(!going.is_look_due(1_000_000), "for nobody");
    }
}
