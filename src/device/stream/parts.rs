//! All of the transport but its links, so that work on a link can use it; and what such work adds to a link's output.

use std::collections::HashMap;

use super::frame::{Head, Kind};
use super::link::{Link, State};
use super::medium::Stream;
use super::reads::{Exposures, Reads};
use crate::device::host_memory::HostMemory;
use crate::device::inbox::{Action, Inbox};
use crate::device::transport::CloseReason;
use crate::ids::{LinkId, PeerId};

/// See the module.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) memory: HostMemory,
    pub(super) inbox: Inbox,
    pub(super) reads: Reads,
    pub(super) exposed: Exposures,
    /// By which link each peer comes.
    pub(super) peers: HashMap<PeerId, LinkId>,
    /// Links that have something to write and are not blocked.
    pub(super) unsent: Vec<LinkId>,
    /// Links that end as soon as nobody is at work on them.
    pub(super) ending: Vec<(LinkId, CloseReason)>,
}

impl Parts {
    /// Do for this link all that the inbox wants done; it concerns no other.
    pub(super) fn act<S: Stream>(&mut self, link: &mut Link<S>) {
        while !self.inbox.actions.is_empty() {
            self.act_once(link);
        }
    }

    /// Do for this link the next thing that the inbox wants done.
    pub(super) fn act_once<S: Stream>(&mut self, link: &mut Link<S>) {
        match self.inbox.actions.pop_front() {
            Some(Action::Read(wanted)) => self.start_read(link, wanted),
            Some(Action::Tell(_, done)) => self.push_message(link, done.message().bytes()),
            None => {}
        }
    }

    /// A message of the transport's own, which finds room always.
    pub(super) fn push_message<S>(&mut self, link: &mut Link<S>, message: &[u8]) {
        let head = Head { kind: Kind::Message, length: u32::try_from(message.len()).unwrap_or(0) };
        link.out.push_bytes(&head.to_bytes());
        self.push_own(link, message);
    }

    pub(super) fn push_own<S>(&mut self, link: &mut Link<S>, bytes: &[u8]) {
        link.out.push_bytes(bytes);
        self.unsent(link);
        // A peer that asks and never listens must not fill the memory.
        if link.out.length() > OWN_BYTES_MAX {
            let reason = CloseReason::Protocol("answers are asked for and not taken".into());
            self.ending.push((link.id, reason));
        }
    }

    /// It has something to write.
    pub(super) fn unsent<S>(&mut self, link: &mut Link<S>) {
        if !link.is_unsent && !link.out.is_blocked && link.state != State::Connecting {
            link.is_unsent = true;
            self.unsent.push(link.id);
        }
    }
}

/// Bytes of our own that may wait on a link; users' sends stop long before.
const OWN_BYTES_MAX: usize = 64 << 20;
