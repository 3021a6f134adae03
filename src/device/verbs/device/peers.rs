//! Peers: two queue pairs each, from their making to their end.
//!
//! A peer costs this side two queue pairs (TM-CONTRACT 4): one that receives, without a send queue, so that the device
//! can use it for rendezvous; one that sends. Both attach to the shared receive queue: FINs of the device come to the
//! sending one.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};
use std::time::Instant;

use slab::Slab as Table;

use super::super::address::{ConnectInfo, MASK_24, Side};
use super::super::error::VerbsError;
use super::super::queue_pair::{QueuePair, Route, SendQueue};
use super::VerbsDevice;
use super::sending::{Deferred, SendFailure};
use super::side::ReceiveSide;
use crate::ids::PeerId;
use crate::seam::Capabilities;

/// All peers.
#[derive(Debug, Default)]
pub(super) struct Peers {
    table: Table<Peer>,
    by_id: HashMap<u32, usize, BuildHasherDefault<NumberHasher>>,
    by_number: HashMap<u32, usize, BuildHasherDefault<NumberHasher>>,
    /// The queue pair that was heard last, and its peer, which is noted as heard.
    last: Last,
}

#[derive(Debug)]
struct Last {
    /// [`NO_NUMBER`] if none was. Wider than what a device may say.
    number: u64,
    peer: PeerId,
}

impl Default for Last {
    fn default() -> Self {
        Self { number: NO_NUMBER, peer: PeerId(0) }
    }
}

/// A peer.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) id: PeerId,
    pub(super) receive: QueuePair,
    pub(super) send: QueuePair,
    pub(super) sequences: (u32, u32),
    pub(super) state: State,
    /// What may be sent to it eagerly.
    pub(super) eager_limit: u32,
    /// Requests in the send queue.
    pub(super) used: u32,
    /// Messages of the owner's that were posted and of which nobody is told, and how many of them its device has.
    pub(super) copied: u64,
    pub(super) taken: u64,
    pub(super) deferred: VecDeque<Deferred>,
    /// Something came from it since it was looked at last ([`Peers::listen_anew`]).
    pub(super) heard: bool,
    pub(super) probes: u32,
    pub(super) failure: Option<SendFailure>,
}

/// How far a peer has got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// Its queue pairs exist.
    Prepared,
    /// They are connected.
    Connected,
    /// They are in ERR, and what they had done is being polled.
    Failing {
        /// Since when.
        since: Instant,
        /// Polls that found nothing.
        polls: u32,
        /// Which of the two said that it takes no more receives.
        drained: (bool, bool),
    },
}

impl Peers {
    pub(super) fn find(&self, id: PeerId) -> Option<(usize, &Peer)> {
        let index = *self.by_id.get(&id.0)?;
        Some((index, self.table.get(index)?))
    }

    pub(super) fn find_mut(&mut self, id: PeerId) -> Option<(usize, &mut Peer)> {
        let index = *self.by_id.get(&id.0)?;
        Some((index, self.table.get_mut(index)?))
    }

    pub(super) fn at(&mut self, index: usize) -> Option<&mut Peer> {
        self.table.get_mut(index)
    }

    pub(super) fn by_number(&mut self, number: u32) -> Option<(usize, &mut Peer)> {
        let index = *self.by_number.get(&number)?;
        Some((index, self.table.get_mut(index)?))
    }

    /// Something came through this queue pair: from whom. Budget: 5 instructions if it is the last one's.
    #[inline(always)]
    pub(super) fn heard(&mut self, number: u32) -> Option<PeerId> {
        if self.last.number == u64::from(number) { Some(self.last.peer) } else { self.heard_another(number) }
    }

    #[inline(never)]
    fn heard_another(&mut self, number: u32) -> Option<PeerId> {
        let (_, peer) = self.by_number(number)?;
        peer.heard = true;
        let id = peer.id;
        self.last = Last { number: number.into(), peer: id };
        Some(id)
    }

    /// What comes next is noted, also from the peer that was heard last.
    pub(super) fn listen_anew(&mut self) {
        self.last = Last::default();
    }

    /// By the address of one of its queue pairs.
    pub(super) fn by_object(&self, object: usize) -> Option<usize> {
        let is_it =
            |(_, peer): &(usize, &Peer)| peer.receive.object() == object || peer.send.object() == object;
        self.table.iter().find(is_it).map(|(index, _)| index)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut Peer)> {
        self.table.iter_mut()
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    pub(super) fn remove(&mut self, index: usize) -> Option<Peer> {
        let peer = self.table.try_remove(index)?;
        self.last = Last::default();
        self.by_id.remove(&peer.id.0);
        self.by_number.remove(&peer.receive.number());
        self.by_number.remove(&peer.send.number());
        Some(peer)
    }

    fn insert(&mut self, peer: Peer) {
        let (id, numbers) = (peer.id.0, [peer.receive.number(), peer.send.number()]);
        let index = self.table.insert(peer);
        self.by_id.insert(id, index);
        for number in numbers {
            self.by_number.insert(number, index);
        }
    }

    pub(super) fn clear(&mut self) -> Vec<Peer> {
        self.last = Last::default();
        self.by_id.clear();
        self.by_number.clear();
        self.table.drain().collect()
    }
}

impl VerbsDevice {
    /// Make the queue pairs for a peer, and say where it can reach them.
    ///
    /// # Errors
    /// The peer is there already (the caller's fault), there are as many as the configuration allows, or the device
    /// refuses.
    pub fn prepare(&mut self, peer: PeerId) -> Result<ConnectInfo, VerbsError> {
        if self.peers.find(peer).is_some() {
            return Err(VerbsError::Caller(format!("{peer:?} has a connection, or one that is being ended")));
        }
        let limit = self.config.peers;
        if self.peers.len() >= limit as usize {
            return Err(VerbsError::Caller(format!(
                "there are {limit} peers, which is the configured limit"
            )));
        }
        let (receives, completions) = match &self.side {
            ReceiveSide::Matching(matching) => (matching.srq.handle(), matching.srq.completions()),
            ReceiveSide::Plain(plain) => (plain.srq.handle(), plain.queue.handle()),
            ReceiveSide::Gone => return Err(VerbsError::Caller("the device failed".into())),
        };
        let sends = self.send_queue.handle();
        let make = |queue| QueuePair::new(&self.domain, queue, &sends, &completions, &receives);
        let mut receive = make(SendQueue::default())?;
        let mut send = make(SendQueue { requests: self.config.sends_per_peer, inline: self.config.inline })?;
        receive.bind(self.port.number)?;
        send.bind(self.port.number)?;
        let sequences = (random_24(), random_24());
        let info = ConnectInfo {
            link: self.port.link,
            lid: self.port.lid,
            gid: self.gid.map(|(gid, _)| gid),
            mtu: self.port.mtu,
            reads: self.config.reads,
            receive: Side { number: receive.number(), sequence: sequences.0 },
            send: Side { number: send.number(), sequence: sequences.1 },
            eager_limit: self.config.eager_limit,
            is_matching: self.capabilities.is_matching(),
        };
        self.peers.insert(Peer {
            id: peer,
            receive,
            send,
            sequences,
            state: State::Prepared,
            eager_limit: self.config.eager_limit,
            used: 0,
            copied: 0,
            taken: 0,
            deferred: VecDeque::new(),
            heard: true,
            probes: 0,
            failure: None,
        });
        Ok(info)
    }

    /// Connect a prepared peer with what it said of itself. Messages may come from then on.
    ///
    /// # Errors
    /// The caller's fault: the peer is not prepared, it is on another kind of network, or fewer than 33 buffers for
    /// unexpected messages are posted (TM-CONTRACT 5: submit the engine's commands first). Or the device refuses the
    /// route; then the peer is not there any more.
    pub fn connect(&mut self, peer: PeerId, remote: &ConnectInfo) -> Result<(), VerbsError> {
        let fault = |text: String| Err(VerbsError::Caller(text));
        let needed = Capabilities::UNEXPECTED_BUFFERS_MIN;
        if self.capabilities.is_matching() && self.buffers.posted < needed {
            let posted = self.buffers.posted;
            return fault(format!(
                "a TM-SRQ wants {needed} posted buffers before it is connected, and has {posted}: submit the engine's commands first"
            ));
        }
        if remote.link != self.port.link {
            return fault(format!("{peer:?} is on {:?}, this device on {:?}", remote.link, self.port.link));
        }
        if self.gid.is_some() && remote.gid.is_none() {
            return fault(format!("{peer:?} has no GID, and this device's port needs one"));
        }
        let route = Route {
            port: self.port.number,
            lid: remote.lid,
            gid: remote.gid.zip(self.gid).map(|(theirs, (_, index))| (theirs, index)),
            number: remote.send.number,
            sequence: remote.send.sequence,
            mtu: remote.mtu.min(self.port.mtu),
            reads_in: self.config.reads,
            reads_out: self.config.reads.min(remote.reads),
        };
        let (patience, limit) = (self.config.patience, remote.eager_limit);
        let Some((index, found)) =
            self.peers.find_mut(peer).filter(|(_, found)| found.state == State::Prepared)
        else {
            return fault(format!("{peer:?} is not prepared, or is connected already"));
        };
        let to_receive = Route { number: remote.receive.number, sequence: remote.receive.sequence, ..route };
        let connected = found
            .receive
            .connect(&route, found.sequences.0, &patience)
            .and_then(|()| found.send.connect(&to_receive, found.sequences.1, &patience));
        match connected {
            Ok(()) => {
                (found.state, found.eager_limit) = (State::Connected, limit);
                Ok(())
            }
            Err(error) => {
                drop(self.peers.remove(index));
                Err(error)
            }
        }
    }

    /// End the connection with a peer. [`crate::seam::Event::PathLost`] comes when everything that it had sent was
    /// told.
    ///
    /// # Errors
    /// The caller's fault: there is no such peer.
    pub fn disconnect(&mut self, peer: PeerId) -> Result<(), VerbsError> {
        match self.peers.find(peer) {
            Some((index, _)) => {
                self.fail_path(index, None);
                Ok(())
            }
            None => Err(VerbsError::Caller(format!("{peer:?} has no connection"))),
        }
    }

    /// Whether messages can be sent to the peer.
    #[must_use]
    pub fn is_connected(&self, peer: PeerId) -> bool {
        self.peers.find(peer).is_some_and(|(_, peer)| peer.state == State::Connected)
    }

    /// Whether there are queue pairs for the peer, connected or not.
    pub(in crate::device::verbs) fn has_pairs(&self, peer: PeerId) -> bool {
        self.peers.find(peer).is_some()
    }

    /// Peers that are prepared, connected or being ended.
    #[must_use]
    pub fn peers(&self) -> usize {
        self.peers.len()
    }
}

/// No queue pair's number.
const NO_NUMBER: u64 = u64::MAX;

/// Where packet numbers start: not the same twice, so that packets of an old connection are not taken for new ones.
fn random_24() -> u32 {
    let random = std::collections::hash_map::RandomState::new().hash_one(0);
    u32::try_from(random & u64::from(MASK_24)).unwrap_or(0)
}

/// For numbers that the own side dealt: nobody can make them collide.
#[derive(Clone, Copy, Debug, Default)]
struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(32);
    }
}
