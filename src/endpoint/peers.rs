//! Who there is: one peer for each name, made by an address or by a connection, whichever is first; and the numbers
//! under which users know them.
//!
//! Not here: how connections come about.

use std::collections::{HashMap, VecDeque};
use std::ops::{Index, IndexMut};
use std::time::Duration;

use crate::ids::{DeviceId, LinkId, PeerId};
use crate::wire::{Control, EndpointName, InstanceId, PeerCapabilities};

use super::credits::{Allowance, Balance, SMALL};
use super::interface::{Address, AddressError, Failure};
use super::remote::Traffic;

/// A connection: which transport's, and its name there.
pub(super) type Path = (DeviceId, LinkId);

/// All peers, by number.
#[derive(Default)]
pub(super) struct Peers {
    rows: Vec<Peer>,
    by_name: HashMap<Box<[u8]>, PeerId>,
    addresses: Vec<Option<PeerId>>,
    /// Rows that are nobody's any more.
    free: Vec<PeerId>,
}

/// What is known of a peer.
pub(super) struct Peer {
    pub(super) name: Box<[u8]>,
    /// The smallest of its numbers.
    pub(super) address: Option<Address>,
    /// It is on a list of those that may be gone.
    pub(super) is_going: bool,
    /// How many numbers it has.
    address_count: u32,
    pub(super) state: State,
    /// The connection of this very endpoint has two ends here; the one that only receives.
    pub(super) twin: Option<Path>,
    /// A new connection that waits for the end of the old one to be told.
    pub(super) next: Option<Path>,
    /// Which life of it the connection leads to.
    pub(super) instance: Option<InstanceId>,
    pub(super) capabilities: PeerCapabilities,
    /// The longest payload that may be sent in one message.
    pub(super) eager_limit: u64,
    pub(super) balance: Balance,
    pub(super) allowance: Allowance,
    /// Small messages that wait for room.
    pub(super) notes: VecDeque<Control<'static>>,
    /// Remote memory access, its and to it.
    pub(super) remote: Traffic,
    /// It is on the list of those that have notes.
    pub(super) is_noted: bool,
    /// It is on the list of those whose credits are to be looked at.
    pub(super) is_touched: bool,
    /// When something came last.
    pub(super) heard: Duration,
    /// When it was asked whether it is there, if nothing has come since.
    pub(super) asked: Option<Duration>,
    /// It asked whether this side is there, and the answer is among the notes.
    pub(super) is_answering: bool,
    /// Attempts to connect that failed in a row.
    pub(super) failures: u32,
    /// Over which transport to dial first: the one behind that by which the last attempt came to nothing.
    pub(super) dial_from: usize,
    /// Since when somebody has wanted the connection that is not there yet.
    pub(super) wanted_since: Option<Duration>,
    /// Not to be dialled before.
    pub(super) not_before: Duration,
    /// Why no connection came about, for the next send, and when that was.
    pub(super) error: Option<(Failure, Duration)>,
}

/// How far the connection to a peer is.
///
/// ```text
///          send              due            answer
///  Idle ─────────► Waiting ───────► Dialling ──────► Connected
///   ▲ ▲               ▲  back-off     │ │                │
///   │ └───────────────┼───────────────┘ │ its own        │ restarted, closed here
///   │   failed        └─────────────────┘ request wins   ▼
///   └──────────────────────────────────────────────── Leaving
/// ```
/// From any of the first three a request of the peer leads to Connected; the end of a connection leads to Idle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// There is no connection, and nobody wants one.
    Idle,
    /// To be dialled at this time.
    Waiting(Duration),
    /// A request of ours is under way.
    Dialling(Path),
    /// Messages pass.
    Connected(Path),
    /// It is being closed, and its end has not been told.
    Leaving(Path),
}

impl Peers {
    /// The peer of this number.
    #[inline]
    pub(super) fn at(&self, address: Address) -> Option<PeerId> {
        self.addresses.get(usize::try_from(address.0).ok()?).copied().flatten()
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.rows.len() - self.free.len()
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = PeerId> + use<> {
        (0..u32::try_from(self.rows.len()).unwrap_or(u32::MAX)).map(PeerId)
    }

    pub(super) fn find(&self, name: &[u8]) -> Option<PeerId> {
        self.by_name.get(name).copied()
    }

    /// The peer of this name; a new one if there is none.
    pub(super) fn named(&mut self, name: &[u8]) -> PeerId {
        if let Some(peer) = self.find(name) {
            return peer;
        }
        let peer = self.free.pop().unwrap_or_else(|| {
            self.rows.push(Peer::new(&[]));
            PeerId(u32::try_from(self.rows.len() - 1).unwrap_or(u32::MAX))
        });
        self[peer] = Peer::new(name);
        self.by_name.insert(name.into(), peer);
        peer
    }

    /// Nothing is left of this one: its row is the next peer's.
    pub(super) fn free(&mut self, peer: PeerId) {
        let row = std::mem::replace(&mut self[peer], Peer::new(&[]));
        self.by_name.remove(&row.name);
        self.free.push(peer);
    }

    pub(super) fn set_address(&mut self, address: Address, name: &[u8]) -> Result<PeerId, AddressError> {
        if name.is_empty() || name.len() > EndpointName::LENGTH_MAX {
            return Err(AddressError::Length(name.len()));
        }
        let index = usize::try_from(address.0).ok().filter(|&index| index < ADDRESSES_MAX);
        let index = index.ok_or(AddressError::TooLarge(address))?;
        if let Some(there) = self.at(address) {
            return if *self[there].name == *name { Ok(there) } else { Err(AddressError::Taken(address)) };
        }
        let peer = self.named(name);
        if self.addresses.len() <= index {
            self.addresses.resize(index + 1, None);
        }
        self.addresses[index] = Some(peer);
        let row = &mut self[peer];
        row.address_count += 1;
        row.address = Some(row.address.map_or(address, |smallest| smallest.min(address)));
        Ok(peer)
    }

    /// Of whom it was.
    pub(super) fn remove_address(&mut self, address: Address) -> Option<PeerId> {
        let peer = self.at(address)?;
        if let Ok(index) = usize::try_from(address.0) {
            self.addresses[index] = None;
        }
        self[peer].address_count -= 1;
        if self[peer].address != Some(address) {
            return Some(peer);
        }
        let left = self[peer].address_count > 0;
        let next = left.then(|| self.addresses.iter().position(|entry| *entry == Some(peer))).flatten();
        self[peer].address = next.map(|index| Address(index as u64));
        Some(peer)
    }
}

impl Index<PeerId> for Peers {
    type Output = Peer;

    #[inline]
    fn index(&self, peer: PeerId) -> &Peer {
        &self.rows[peer.0 as usize]
    }
}

impl IndexMut<PeerId> for Peers {
    #[inline]
    fn index_mut(&mut self, peer: PeerId) -> &mut Peer {
        &mut self.rows[peer.0 as usize]
    }
}

impl Peer {
    fn new(name: &[u8]) -> Self {
        Self {
            name: name.into(),
            address: None,
            is_going: false,
            address_count: 0,
            state: State::Idle,
            twin: None,
            next: None,
            instance: None,
            capabilities: PeerCapabilities::NONE,
            eager_limit: 0,
            balance: Balance::default(),
            allowance: Allowance::default(),
            notes: VecDeque::new(),
            remote: Traffic::default(),
            is_noted: false,
            is_touched: false,
            heard: Duration::ZERO,
            asked: None,
            is_answering: false,
            failures: 0,
            dial_from: 0,
            wanted_since: None,
            not_before: Duration::ZERO,
            error: None,
        }
    }

    /// How much of a payload goes in one message, where it goes in several: a peer that says it takes less takes
    /// [`SMALL`] bytes all the same, and is not served a byte at a time.
    pub(super) const fn piece_length(&self) -> u64 {
        if self.eager_limit < SMALL { SMALL } else { self.eager_limit }
    }

    /// The connection, if messages pass.
    #[inline]
    pub(super) fn connected(&self) -> Option<Path> {
        match self.state {
            State::Connected(path) => Some(path),
            State::Idle | State::Waiting(_) | State::Dialling(_) | State::Leaving(_) => None,
        }
    }
}

/// Numbers of an address vector: what its table takes stays within bounds whatever is asked.
const ADDRESSES_MAX: usize = 1 << 26;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_peer_under_all_its_numbers() {
        let mut peers = Peers::default();
        let unknown = peers.named(b"a");
        assert_eq!(peers[unknown].address, None);
        assert_eq!(peers.set_address(Address(7), b"a"), Ok(unknown));
        assert_eq!(peers.set_address(Address(3), b"a"), Ok(unknown));
        assert_eq!(peers[unknown].address, Some(Address(3)));
        peers.remove_address(Address(3));
        assert_eq!((peers[unknown].address, peers.at(Address(3))), (Some(Address(7)), None));
        peers.remove_address(Address(7));
        assert_eq!(peers[unknown].address, None);
        assert_eq!(peers.set_address(Address(7), b"a"), Ok(unknown));
    }

    #[test]
    fn what_cannot_be_an_address_is_refused_and_changes_nothing() {
        let mut peers = Peers::default();
        let peer = peers.set_address(Address(0), b"a").expect("an address");
        assert_eq!(peers.set_address(Address(0), b"b"), Err(AddressError::Taken(Address(0))));
        assert_eq!(peers.set_address(Address(0), b"a"), Ok(peer));
        assert_eq!(peers.set_address(Address(1), b""), Err(AddressError::Length(0)));
        assert_eq!(peers.set_address(Address(1), &[1; 65]), Err(AddressError::Length(65)));
        let far = Address(u64::MAX);
        assert_eq!(peers.set_address(far, b"c"), Err(AddressError::TooLarge(far)));
        peers.remove_address(far);
        assert_eq!(peers.count(), 1);
    }
}
