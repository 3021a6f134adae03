//! One connection, and the table of all.
//!
//! Not here: what is done with them.

use std::collections::VecDeque;

use slab::Slab;

use super::out::Out;
use crate::device::inbox::Body;
use crate::device::transport::CloseReason;
use crate::ids::{LinkId, PeerId};

/// See the module.
#[derive(Debug)]
pub(super) struct Link<S> {
    pub(super) id: LinkId,
    pub(super) stream: S,
    pub(super) state: State,
    pub(super) peer: Option<PeerId>,
    /// It is not ended to make room for others.
    pub(super) is_kept: bool,
    /// Messages that came before it was bound.
    pub(super) unbound_messages: u32,
    pub(super) input: Input,
    pub(super) out: Out,
    /// Why nothing more can be written. What has come is still read.
    pub(super) write_failure: Option<CloseReason>,
    /// It is registered to be told when it can be written.
    pub(super) waits_to_write: bool,
    /// It is on the list of those that are to be written.
    pub(super) is_unsent: bool,
    /// It is on the list of those of which the other side's host is to take something.
    pub(super) is_watched: bool,
    /// Who wants to be told when the other side's host has so many bytes of all that was given, in order.
    pub(super) takers: VecDeque<(u64, u64)>,
    /// Reads that the peer was asked for and has not answered.
    pub(super) reads: usize,
    /// Reads that wait for others to be answered.
    pub(super) reads_waiting: VecDeque<usize>,
}

/// How far a connection is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// It is being made.
    Connecting,
    /// It is there.
    Open,
    /// It ends when all is out that was given to send; nothing that comes is looked at any more.
    Closing,
    /// All is out, and the writing half is shut. It ends when the other side's host has it all.
    Shut,
}

/// What comes in.
#[derive(Debug, Default)]
pub(super) struct Input {
    /// What was read and not taken; what is before `start` was.
    pub(super) bytes: Vec<u8>,
    pub(super) start: usize,
    /// More could be taken of it: it was read when enough had been told.
    pub(super) has_more: bool,
    /// The payload that is coming in.
    pub(super) body: Option<Body>,
    /// The frame that began last is long.
    pub(super) is_long: bool,
    /// What came last ran on behind the payload that was read.
    pub(super) runs_on: bool,
}

impl Input {
    pub(super) fn rest(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    /// Between two frames, and nothing of the next is here.
    pub(super) fn is_between(&self) -> bool {
        self.body.is_none() && self.rest().is_empty()
    }

    /// These were read and not taken.
    pub(super) fn keep(&mut self, bytes: &[u8], has_more: bool) {
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        (self.start, self.has_more) = (0, has_more);
    }
}

impl<S> Link<S> {
    /// It was closed here, and nothing that comes counts any more.
    pub(super) fn is_closing(&self) -> bool {
        matches!(self.state, State::Closing | State::Shut)
    }

    fn new(id: LinkId, stream: S, state: State) -> Self {
        let mut out = Out::default();
        out.is_blocked = state == State::Connecting;
        Self {
            id,
            stream,
            state,
            peer: None,
            is_kept: false,
            unbound_messages: 0,
            input: Input::default(),
            out,
            write_failure: None,
            waits_to_write: false,
            is_unsent: false,
            is_watched: false,
            takers: VecDeque::new(),
            reads: 0,
            reads_waiting: VecDeque::new(),
        }
    }
}

/// All connections.
#[derive(Debug)]
pub(super) struct Links<S> {
    table: Slab<Link<S>>,
    made: u32,
    pub(super) connecting: usize,
}

impl<S> Default for Links<S> {
    fn default() -> Self {
        Self { table: Slab::new(), made: 0, connecting: 0 }
    }
}

impl<S> Links<S> {
    pub(super) fn insert(&mut self, stream: S, state: State) -> &mut Link<S> {
        self.connecting += usize::from(state == State::Connecting);
        let entry = self.table.vacant_entry();
        let index = u32::try_from(entry.key()).unwrap_or(u32::MAX);
        let id = LinkId { index, generation: self.made };
        self.made = self.made.wrapping_add(1);
        entry.insert(Link::new(id, stream, state))
    }

    pub(super) fn find(&self, id: LinkId) -> Option<&Link<S>> {
        self.table.get(id.index as usize).filter(|link| link.id == id)
    }

    pub(super) fn find_mut(&mut self, id: LinkId) -> Option<&mut Link<S>> {
        self.table.get_mut(id.index as usize).filter(|link| link.id == id)
    }

    pub(super) fn remove(&mut self, id: LinkId) -> Option<Link<S>> {
        self.find(id)?;
        let link = self.table.try_remove(id.index as usize)?;
        self.connecting -= usize::from(link.state == State::Connecting);
        Some(link)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Link<S>> {
        self.table.iter().map(|(_, link)| link)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Link<S>> {
        self.table.iter_mut().map(|(_, link)| link)
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// Names of those that are `wanted`, each of them first in turn.
    pub(super) fn ids_from(&self, turn: usize, wanted: impl Fn(&Link<S>) -> bool, out: &mut Vec<LinkId>) {
        out.clear();
        out.extend(self.table.iter().map(|(_, link)| link).filter(|link| wanted(link)).map(|link| link.id));
        if out.len() > 1 {
            let by = turn % out.len();
            out.rotate_left(by);
        }
    }
}
