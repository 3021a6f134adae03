//! Connections from the side of the peer they lead to: begun by the first send, tried again with growing pauses, given
//! up in bounded time, ended, closed. The states are drawn in `peers`.
//!
//! Not here: what is said on a new link (`greetings`).

use std::time::Duration;

use crate::device::transport::CloseReason;
use crate::ids::PeerId;
use crate::wire::{Control, Goodbye, Keepalive};

use super::core::{Action, Core};
use super::credits::{Allowance, Balance};
use super::interface::{Failure, SendRefused};
use super::links::{Link, Phase};
use super::operations::Awaits;
use super::peers::{Path, State};
use super::{Endpoint, device_id};

impl Endpoint {
    /// Somebody wants to send to a peer to whom there is no connection.
    #[cold]
    pub(super) fn connect_first(&mut self, peer: PeerId) -> SendRefused {
        let core = &mut self.core;
        let (now, row) = (core.now, &mut core.peers[peer]);
        if let Some((failure, at)) = row.error.take()
            && now.saturating_sub(at) <= core.config.connect_timeout
        {
            return SendRefused::Unreachable(failure);
        }
        core.statistics.again_connecting += 1;
        if row.state == State::Idle {
            let at = row.not_before.max(now);
            row.wanted_since = Some(at);
            row.state = State::Waiting(at);
            core.set_deadline(at);
            if at <= now {
                self.dial(peer);
            }
        }
        SendRefused::Again
    }

    /// Begin to connect: over the first transport that takes the name.
    pub(super) fn dial(&mut self, peer: PeerId) {
        let core = &mut self.core;
        if !matches!(core.peers[peer].state, State::Waiting(_)) {
            return;
        }
        for (index, transport) in self.transports.iter_mut().enumerate() {
            let Ok(link) = transport.open(&core.peers[peer].name) else { continue };
            let path = (device_id(index), link);
            let since = core.peers[peer].wanted_since.unwrap_or(core.now);
            let deadline = since.saturating_add(core.config.connect_timeout);
            core.links.insert(path, Phase::Opening, Some(peer), deadline);
            core.set_deadline(deadline);
            core.peers[peer].state = State::Dialling(path);
            return;
        }
        core.give_up(peer, Failure::Refused);
    }

    /// Do what has to be done at this time whatever happens, and find out when the next such time is.
    #[cold]
    pub(super) fn expire(&mut self) {
        self.core.next_deadline = Duration::MAX;
        let peers = self.core.peers.ids();
        for peer in peers {
            if let State::Waiting(at) = self.core.peers[peer].state {
                if at <= self.core.now {
                    self.dial(peer);
                } else {
                    self.core.set_deadline(at);
                }
            }
            self.core.keep_alive(peer);
        }
        self.core.expire_links();
        if let Some(deadline) = self.core.closing {
            if deadline > self.core.now {
                self.core.set_deadline(deadline);
            } else {
                self.close_everything();
            }
        }
    }

    /// Begin to close: what was taken with [`crate::device::transport::Payload::Copied`] still goes out, peers are told,
    /// nothing more is taken. [`Self::progress`] does it; in bounded time [`Self::is_closed`] says true.
    ///
    /// Sends by rendezvous whose memory is the user's fail: nothing of the user's is read by peers any more.
    pub fn close(&mut self, now: Duration) {
        let core = &mut self.core;
        core.now = core.now.max(now);
        if core.closing.is_some() {
            return;
        }
        let deadline = core.now.saturating_add(core.config.close_timeout);
        core.closing = Some(deadline);
        core.set_deadline(deadline);
        core.withdraw_users();
        let greeting: Vec<Path> =
            core.links.iter().filter(|(_, link)| link.phase != Phase::Up).map(|(path, _)| path).collect();
        for path in greeting {
            core.close_link(path, true);
        }
        for peer in core.peers.ids() {
            if matches!(core.peers[peer].state, State::Waiting(_) | State::Dialling(_)) {
                core.peers[peer].state = State::Idle;
            }
        }
        // A device that failed has nothing to close.
        let _ = self.settle();
    }

    /// Patience is over.
    fn close_everything(&mut self) {
        let links: Vec<Path> = self.core.links.iter().map(|(path, _)| path).collect();
        for (device, link) in links {
            if let Some(transport) = self.transports.get_mut(usize::from(device.0)) {
                transport.close(link, false);
            }
        }
    }
}

impl Core {
    /// End a link that is there.
    pub(super) fn close_link(&mut self, path: Path, flush: bool) {
        if let Some(link) = self.links.find_mut(path)
            && link.phase != Phase::Closing
        {
            link.phase = Phase::Closing;
            link.deadline = Duration::MAX;
            self.actions.push_back(Action::Close(path, flush));
        }
    }

    /// A link has ended.
    pub(super) fn handle_closed(&mut self, path: Path, reason: &CloseReason) {
        let Some(Link { phase, peer: Some(peer), .. }) = self.links.remove(path) else { return };
        if self.peers[peer].next == Some(path) {
            self.peers[peer].next = None;
        }
        let state = self.peers[peer].state;
        match state {
            State::Dialling(dialled) if dialled == path => match (phase, reason) {
                (_, CloseReason::Refused) => self.handle_attempt_failed(peer, path, Failure::Refused),
                (_, CloseReason::Protocol(_)) => self.handle_attempt_failed(peer, path, Failure::Protocol),
                _ => self.handle_attempt_crossed(peer, path),
            },
            State::Connected(current) | State::Leaving(current) if current == path => {
                if matches!(state, State::Connected(_)) {
                    self.statistics.lost += 1;
                }
                self.handle_lost(peer, super::operations::failure_of(reason));
            }
            _ if self.peers[peer].twin == Some(path) => {
                self.peers[peer].twin = None;
                if let State::Connected(other) | State::Dialling(other) = state {
                    self.peers[peer].state = State::Leaving(other);
                    self.close_link(other, false);
                }
            }
            State::Idle
            | State::Waiting(_)
            | State::Dialling(_)
            | State::Connected(_)
            | State::Leaving(_) => {}
        }
    }

    /// The connection to a peer has ended, and all that had come was told.
    fn handle_lost(&mut self, peer: PeerId, failure: Failure) {
        let row = &mut self.peers[peer];
        row.state = State::Idle;
        row.notes.clear();
        (row.balance, row.allowance) = (Balance::default(), Allowance::default());
        if let Some(twin) = row.twin {
            row.state = State::Leaving(twin);
            row.twin = None;
            self.close_link(twin, false);
        }
        self.fail_operations(peer, failure);
        if !self.awaited.is_empty() {
            self.awaited.retain(|(sender, _), _| *sender != peer);
        }
        if self.peers[peer].next.is_some() {
            self.actions.push_back(Action::Adopt(peer));
        }
    }

    /// An attempt came to nothing for a reason that will not go away by itself.
    pub(super) fn handle_attempt_failed(&mut self, peer: PeerId, path: Path, failure: Failure) {
        if self.peers[peer].state == State::Dialling(path) {
            self.give_up(peer, failure);
        }
    }

    /// An attempt came to nothing, and another may not: after a pause, if there is time for it.
    pub(super) fn handle_attempt_crossed(&mut self, peer: PeerId, path: Path) {
        if self.peers[peer].state != State::Dialling(path) {
            return;
        }
        let pause = self.pause(peer);
        let (now, timeout) = (self.now, self.config.connect_timeout);
        let row = &mut self.peers[peer];
        let since = row.wanted_since.unwrap_or(now);
        let at = now.saturating_add(pause);
        if at > since.saturating_add(timeout) {
            return self.give_up(peer, Failure::TimedOut);
        }
        row.failures = row.failures.saturating_add(1);
        row.state = State::Waiting(at);
        self.set_deadline(at);
    }

    /// No connection comes about: the next send is told, and the one after it tries anew.
    pub(super) fn give_up(&mut self, peer: PeerId, failure: Failure) {
        self.statistics.connect_failed += 1;
        let (now, pause) = (self.now, self.pause(peer));
        let row = &mut self.peers[peer];
        row.state = State::Idle;
        row.failures = row.failures.saturating_add(1);
        row.not_before = now.saturating_add(pause);
        row.error = Some((failure, now));
        row.wanted_since = None;
    }

    /// How long to wait before the next attempt.
    fn pause(&self, peer: PeerId) -> Duration {
        self.config.back_off.saturating_mul(1 << self.peers[peer].failures.min(PAUSE_DOUBLED_MAX))
    }

    /// Links whose patience is over.
    fn expire_links(&mut self) {
        let now = self.now;
        let over: Vec<Path> =
            self.links.iter().filter(|(_, link)| link.deadline <= now).map(|(path, _)| path).collect();
        for path in over {
            let peer = self.links.find(path).and_then(|link| link.peer);
            self.close_link(path, false);
            if let Some(peer) = peer {
                self.handle_attempt_failed(peer, path, Failure::TimedOut);
            }
        }
        let next = self.links.iter().map(|(_, link)| link.deadline).min();
        self.set_deadline(next.unwrap_or(Duration::MAX));
    }

    /// Ask a peer from which nothing came for long, and lose one that does not answer.
    fn keep_alive(&mut self, peer: PeerId) {
        let (Some(interval), State::Connected(path)) = (self.config.keepalive, self.peers[peer].state) else {
            return;
        };
        let row = &self.peers[peer];
        let silent = self.now.saturating_sub(row.heard);
        if silent >= interval.saturating_mul(2) && row.is_asked {
            self.peers[peer].state = State::Leaving(path);
            self.close_link(path, false);
            return;
        }
        let (heard, is_asked) = (row.heard, row.is_asked);
        if silent >= interval && !is_asked {
            self.ask(peer);
        }
        let patience = interval.saturating_mul(if silent >= interval { 2 } else { 1 });
        self.set_deadline(heard.saturating_add(patience));
    }

    /// Ask a peer whether it is there.
    pub(super) fn ask(&mut self, peer: PeerId) {
        self.peers[peer].is_asked = true;
        self.note(peer, Control::Keepalive(Keepalive { is_answer: false, sequence: 0 }));
    }

    /// Nothing of the users' memory is to be read any more.
    fn withdraw_users(&mut self) {
        let ids: Vec<_> = self
            .operations
            .iter()
            .filter(|(_, operation)| operation.copy.is_none())
            .filter(|(_, operation)| matches!(operation.awaits, Awaits::Read { .. }))
            .map(|(id, _)| id)
            .collect();
        for id in ids {
            let Some(operation) = self.operations.get_mut(id) else { continue };
            if let Awaits::Read { device, remote, .. } = operation.awaits {
                operation.failure = Some(Failure::Lost);
                operation.awaits = Awaits::Withdrawal { device, remote };
                self.withdrawals.push(id);
            }
        }
    }

    /// While the endpoint is being closed: say goodbye to peers for whom nothing is left.
    pub(super) fn say_goodbye(&mut self) {
        for peer in self.peers.ids() {
            let State::Connected(path) = self.peers[peer].state else { continue };
            let is_busy = self.operations.iter().any(|(_, operation)| {
                operation.peer == peer
                    && (operation.posted > 0 || operation.rest.is_some() || operation.copy.is_some())
            });
            if !is_busy && self.peers[peer].notes.is_empty() {
                self.actions.push_back(Action::Say(path, Control::Goodbye(Goodbye::Closing)));
                self.peers[peer].state = State::Leaving(path);
                self.close_link(path, true);
            }
        }
    }
}

/// Pauses double up to 64 times the first.
const PAUSE_DOUBLED_MAX: u32 = 6;
