//! One connection, and the table of all.
//!
//! ```text
//!  open ──▶ Connecting ─(tcp)─▶ Asking ─(their address)─▶ Open ─(close, flush)─▶ Closing
//!  accept ─▶ Answering ─(their address)───────────────────▶ Open                    │
//!                        any but Ending ─(error, end, close)─▶ Ending ◀─────────────┘
//! ```
//!
//! The device knows a link's queue pairs by the place of the link in the table ([`Link::path`]).

use std::collections::VecDeque;
use std::net::TcpStream;
use std::time::Instant;

use slab::Slab;

use crate::device::transport::CloseReason;
use crate::device::verbs::address::ConnectInfo;
use crate::ids::{LinkId, PeerId};

/// See the module.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) id: LinkId,
    pub(super) socket: TcpStream,
    pub(super) state: State,
    pub(super) peer: Option<PeerId>,
    /// The owner knows of it.
    pub(super) is_told: bool,
    /// The device has queue pairs for it.
    pub(super) has_pairs: bool,
    /// Where the other side's queue pairs are, until they are connected.
    pub(super) remote: Option<ConnectInfo>,
    /// The queue pairs are connected.
    pub(super) is_joined: bool,
    /// Messages may be sent through the queue pairs.
    pub(super) is_ready: bool,
    /// Words that were said, and those that were heard.
    pub(super) said: Words,
    pub(super) words: Words,
    /// Nothing that comes is looked at any more: it was closed here, or the other side broke the protocol.
    pub(super) is_deaf: bool,
    /// Messages that came before it was bound.
    pub(super) unbound_messages: u32,
    /// What came on the socket and is not whole yet.
    pub(super) heard: Vec<u8>,
    /// Who wants to know when the other side's card has what was sent: after how many messages, and their contexts.
    pub(super) takers: VecDeque<(u64, u64)>,
    /// When it began.
    pub(super) since: Instant,
    /// Why it ends.
    pub(super) reason: Option<CloseReason>,
}

/// How far a connection is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// The socket is being connected.
    Connecting,
    /// The own address was said; the other's is awaited.
    Asking,
    /// Somebody connected, whose address is awaited.
    Answering,
    /// It is there.
    Open,
    /// It ends when all is out that was given to send.
    Closing,
    /// The device ends its queue pairs.
    Ending,
}

impl Link {
    /// What the device calls its queue pairs.
    pub(super) const fn path(&self) -> PeerId {
        PeerId(self.id.index)
    }

    /// Whether what comes is told: also what had come when the other side went.
    pub(super) const fn hears(&self) -> bool {
        self.is_told && !self.is_deaf && matches!(self.state, State::Open | State::Ending)
    }

    /// Whether messages are sent.
    pub(super) const fn is_open(&self) -> bool {
        matches!(self.state, State::Open)
    }

    const fn is_waiting(&self) -> bool {
        !self.is_open() || !self.is_ready
    }
}

/// Words on the socket of a link, by which both sides come to send through the queue pairs (`greeting`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Words {
    pub(super) joined: bool,
    pub(super) last: bool,
    pub(super) go: bool,
}

/// All connections.
#[derive(Debug, Default)]
pub(super) struct Links {
    table: Slab<Link>,
    made: u32,
    /// Those for which there is something to look after: all but those through which messages go.
    waiting: usize,
}

impl Links {
    pub(super) fn insert(&mut self, socket: TcpStream, state: State) -> &mut Link {
        self.waiting += 1;
        let entry = self.table.vacant_entry();
        let index = u32::try_from(entry.key()).unwrap_or(u32::MAX);
        let id = LinkId { index, generation: self.made };
        self.made = self.made.wrapping_add(1);
        entry.insert(Link {
            id,
            socket,
            state,
            peer: None,
            is_told: state == State::Connecting,
            has_pairs: false,
            remote: None,
            is_joined: false,
            is_ready: false,
            said: Words::default(),
            words: Words::default(),
            is_deaf: false,
            unbound_messages: 0,
            heard: Vec::new(),
            takers: VecDeque::new(),
            since: Instant::now(),
            reason: None,
        })
    }

    pub(super) fn set_state(&mut self, id: LinkId, state: State) {
        self.change(id, |link| link.state = state);
    }

    /// Messages go through it.
    pub(super) fn set_ready(&mut self, id: LinkId) {
        self.change(id, |link| link.is_ready = true);
    }

    fn change(&mut self, id: LinkId, change: impl FnOnce(&mut Link)) {
        let Some(link) = self.table.get_mut(id.index as usize).filter(|link| link.id == id) else { return };
        self.waiting -= usize::from(link.is_waiting());
        change(link);
        self.waiting += usize::from(link.is_waiting());
    }

    pub(super) fn find(&self, id: LinkId) -> Option<&Link> {
        self.table.get(id.index as usize).filter(|link| link.id == id)
    }

    pub(super) fn find_mut(&mut self, id: LinkId) -> Option<&mut Link> {
        self.table.get_mut(id.index as usize).filter(|link| link.id == id)
    }

    /// Whose queue pairs the device calls so.
    #[inline]
    pub(super) fn of_path(&self, path: PeerId) -> Option<&Link> {
        self.table.get(path.0 as usize)
    }

    pub(super) fn remove(&mut self, id: LinkId) -> Option<Link> {
        self.find(id)?;
        let link = self.table.try_remove(id.index as usize)?;
        self.waiting -= usize::from(link.is_waiting());
        Some(link)
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether something goes on in one that no descriptor shows.
    pub(super) fn is_unseen(&self) -> bool {
        let is_unseen = |link: &Link| matches!(link.state, State::Closing | State::Ending);
        !self.is_settled() && self.iter().any(is_unseen)
    }

    /// Whether messages go through all.
    pub(super) const fn is_settled(&self) -> bool {
        self.waiting == 0
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Link> {
        self.table.iter().map(|(_, link)| link)
    }
}
