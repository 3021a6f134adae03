//! Connections from the side of the peer they lead to: begun by the first send, tried again with growing pauses, given
//! up in bounded time, ended, closed. The states are drawn in `peers`.
//!
//! Not here: what is said on a new link (`greetings`).

use std::time::Duration;

use crate::device::transport::{CloseReason, LinkError};
use crate::ids::PeerId;
use crate::wire::{Control, Goodbye, Keepalive};

use super::core::{Action, Closing, Core};
use super::credits::{Allowance, Balance};
use super::interface::{Failure, SendRefused};
use super::links::{Link, Phase};
use super::operations::Awaits;
use super::peers::{Path, State};
use super::remote::Traffic;
use super::{Endpoint, device_id};

impl Endpoint {
    /// Somebody wants to send to a peer to whom there is no connection.
    #[cold]
    pub(super) fn connect_first(&mut self, peer: PeerId) -> SendRefused {
        let core = &mut self.core;
        if core.line.is_some() {
            return SendRefused::Unreachable(Failure::NotConnected);
        }
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

    /// Begin to connect: over the first transport that takes the name, and after an attempt that came to nothing over the
    /// next that does. What is wrong with one path, the peer's share of memory for one, may not be with another.
    pub(super) fn dial(&mut self, peer: PeerId) {
        let core = &mut self.core;
        if !matches!(core.peers[peer].state, State::Waiting(_)) {
            return;
        }
        let mut failure = Failure::Refused;
        let count = self.transports.len();
        let first = core.peers[peer].dial_from;
        for index in (first..first + count).map(|index| index % count) {
            if !core.engines.iter().all(|engine| engine.may_take_path(peer, device_id(index))) {
                // Receives that name it, or that such overlap, are on their way back from a device.
                failure = Failure::TimedOut;
                continue;
            }
            let transport = &mut self.transports[index];
            let link = match transport.open(&core.peers[peer].name) {
                Ok(link) => link,
                Err(LinkError::System { errno, .. }) => {
                    failure = Failure::System { errno };
                    continue;
                }
                Err(LinkError::Address(_) | LinkError::Unknown(_) | LinkError::Bound { .. }) => continue,
            };
            let path = (device_id(index), link);
            let since = core.peers[peer].wanted_since.unwrap_or(core.now);
            let deadline = since.saturating_add(core.config.connect_timeout);
            core.links.insert(path, Phase::Opening, Some(peer), deadline);
            core.set_deadline(deadline);
            core.peers[peer].state = State::Dialling(path);
            return;
        }
        // What is short here may not be for long.
        if failure == Failure::Refused { core.give_up(peer, failure) } else { core.try_later(peer, failure) }
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
        self.expire_links();
        self.expire_closing();
    }

    /// Links whose patience is over.
    fn expire_links(&mut self) {
        let now = self.core.now;
        let links = self.core.links.iter().filter(|(_, link)| link.deadline <= now);
        let over: Vec<Path> = links.map(|(path, _)| path).collect();
        for path in over {
            let untaken = self.untaken(path);
            let core = &mut self.core;
            let Some(link) = core.links.find_mut(path) else { continue };
            if link.phase != Phase::Closing {
                let peer = link.peer;
                core.close_link(path, false);
                if let Some(peer) = peer {
                    core.handle_attempt_failed(peer, path, Failure::TimedOut);
                }
            } else if untaken < link.untaken {
                (link.untaken, link.deadline) = (untaken, now.saturating_add(core.config.close_timeout));
            } else {
                link.deadline = Duration::MAX;
                core.actions.push_back(Action::Close(path, false));
            }
        }
        let next = self.core.links.iter().map(|(_, link)| link.deadline).min();
        self.core.set_deadline(next.unwrap_or(Duration::MAX));
    }

    /// While others take what was sent, closing goes on.
    fn expire_closing(&mut self) {
        let now = self.core.now;
        let Some(Closing { left, check, until, is_over: false }) = self.core.closing else { return };
        if check > now {
            return self.core.set_deadline(check);
        }
        let less = self.left();
        if less >= left || now >= until {
            self.core.closing = Some(Closing { left, check, until, is_over: true });
            return self.close_everything();
        }
        let check = now.saturating_add(self.core.config.close_timeout).min(until);
        self.core.closing = Some(Closing { left: less, check, until, is_over: false });
        self.core.set_deadline(check);
    }

    /// What others have still to take: bytes, and sends.
    fn left(&self) -> u64 {
        let bytes: u64 = self.core.links.iter().map(|(path, _)| self.untaken(path)).sum();
        bytes + self.core.operations.len() as u64
    }

    fn untaken(&self, (device, link): Path) -> u64 {
        self.transports.get(usize::from(device.0)).map_or(0, |transport| transport.untaken(link))
    }

    /// Begin to close: all whose completion was told still goes out, peers are told, nothing more is taken.
    /// [`Self::progress`] does it, and [`Self::is_closed`] says when the hosts of all peers have what was sent; also if
    /// nobody has taken anything for [`super::Config::close_timeout`], and after 12 times as long in any case.
    ///
    /// Sends by rendezvous whose memory is the user's fail: nothing of the user's is read by peers any more.
    pub fn close(&mut self, now: Duration) {
        let core = &mut self.core;
        core.tell_time(now);
        if core.closing.is_some() {
            return;
        }
        let after = |times| core.now.saturating_add(core.config.close_timeout.saturating_mul(times));
        let (check, until) = (after(1), after(CLOSE_TIMES));
        core.closing = Some(Closing { left: u64::MAX, check, until, is_over: false });
        core.set_deadline(check);
        core.withdraw_users();
        let greeting: Vec<Path> =
            core.links.iter().filter(|(_, link)| link.phase != Phase::Up).map(|(path, _)| path).collect();
        for path in greeting {
            core.close_link(path, true);
        }
        for peer in core.peers.ids() {
            match core.peers[peer].state {
                State::Waiting(_) | State::Dialling(_) => core.peers[peer].state = State::Idle,
                State::Connected(_) => core.farewells.push(peer),
                State::Idle | State::Leaving(_) => {}
            }
        }
        // A device that failed has nothing to close.
        let _ = self.settle();
        let left = self.left();
        if let Some(closing) = &mut self.core.closing {
            closing.left = left;
        }
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
            link.deadline = if flush { self.now } else { Duration::MAX };
            let deadline = link.deadline;
            self.actions.push_back(Action::Close(path, flush));
            self.set_deadline(deadline);
        }
    }

    /// Of a message something went out, and the rest cannot: the link ends, or its peer would wait for that for ever.
    #[cold]
    pub(super) fn end_unfinished(&mut self, path: Path, peer: PeerId) {
        if matches!(self.peers[peer].state, State::Connected(current) if current == path) {
            self.statistics.lost += 1;
            self.close_link(path, true);
            self.peers[peer].state = State::Leaving(path);
        }
    }

    /// A link has ended.
    pub(super) fn handle_closed(&mut self, path: Path, reason: &CloseReason) {
        let Some(Link { phase, peer: Some(peer), .. }) = self.links.remove(path) else { return };
        self.look_whether_gone(peer);
        if self.peers[peer].next == Some(path) {
            self.peers[peer].next = None;
        }
        let state = self.peers[peer].state;
        match state {
            State::Dialling(dialled) if dialled == path => match (phase, reason) {
                (_, CloseReason::Refused) => self.handle_attempt_failed(peer, path, Failure::Refused),
                (_, CloseReason::Protocol(_)) => self.handle_attempt_failed(peer, path, Failure::Protocol),
                _ if self.line.is_some() => {
                    self.handle_attempt_failed(peer, path, super::operations::failure_of(reason));
                }
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
            | State::Leaving(_) => self.end_line(),
        }
    }

    /// The connection to a peer has ended, and all that had come was told.
    fn handle_lost(&mut self, peer: PeerId, failure: Failure) {
        // What has come ends as what has come by this connection: nothing of it is told on the next.
        self.poll_engines();
        for engine in &mut self.engines {
            engine.forget_words(peer);
            engine.clear_path(peer);
        }
        self.awaited.lose(peer);
        let row = &mut self.peers[peer];
        row.state = State::Idle;
        row.notes.clear();
        row.is_answering = false;
        (row.balance, row.allowance) = (Balance::default(), Allowance::default());
        let is_listed = row.remote.is_listed;
        row.remote = Traffic { is_listed, ..Traffic::default() };
        if let Some(twin) = row.twin {
            row.state = State::Leaving(twin);
            row.twin = None;
            self.close_link(twin, false);
        }
        self.fail_operations(peer, failure);
        self.end_line();
        if self.peers[peer].next.is_some() {
            self.actions.push_back(Action::Adopt(peer));
        }
    }

    /// An attempt came to nothing for a reason that will not go away by itself.
    pub(super) fn handle_attempt_failed(&mut self, peer: PeerId, path: Path, failure: Failure) {
        if self.peers[peer].state == State::Dialling(path) {
            self.peers[peer].dial_from = usize::from(path.0.0) + 1;
            self.give_up(peer, failure);
        }
    }

    /// An attempt came to nothing, and another may not: after a pause, if there is time for it.
    pub(super) fn handle_attempt_crossed(&mut self, peer: PeerId, path: Path) {
        if self.peers[peer].state == State::Dialling(path) {
            self.peers[peer].dial_from = usize::from(path.0.0) + 1;
            self.try_later(peer, Failure::TimedOut);
        }
    }

    /// Dial again after a pause; without time for it that has failed.
    fn try_later(&mut self, peer: PeerId, failure: Failure) {
        if self.line.is_some() {
            return self.give_up(peer, failure);
        }
        let pause = self.pause(peer);
        let (now, timeout) = (self.now, self.config.connect_timeout);
        let row = &mut self.peers[peer];
        let since = row.wanted_since.unwrap_or(now);
        let at = now.saturating_add(pause);
        if at > since.saturating_add(timeout) {
            return self.give_up(peer, failure);
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
        if let Some(line) = &mut self.line {
            line.handle_failed(failure);
        }
    }

    /// How long to wait before the next attempt.
    fn pause(&self, peer: PeerId) -> Duration {
        self.config.back_off.saturating_mul(1 << self.peers[peer].failures.min(PAUSE_DOUBLED_MAX))
    }

    /// Ask a peer from which nothing came for long, and lose one that does not answer.
    fn keep_alive(&mut self, peer: PeerId) {
        let (Some(interval), State::Connected(path)) = (self.config.keepalive, self.peers[peer].state) else {
            return;
        };
        if self.peers[peer].asked.is_none() && self.now.saturating_sub(self.peers[peer].heard) >= interval {
            self.ask(peer);
        }
        // However long nothing was said before, an answer has its time.
        let row = &self.peers[peer];
        let due = row.asked.unwrap_or(row.heard).saturating_add(interval);
        if row.asked.is_some() && due <= self.now {
            self.peers[peer].state = State::Leaving(path);
            self.close_link(path, false);
        } else {
            self.set_deadline(due);
        }
    }

    /// Ask a peer whether it is there, unless it was asked and has said nothing since.
    pub(super) fn ask(&mut self, peer: PeerId) {
        if self.peers[peer].asked.is_some() {
            return;
        }
        self.peers[peer].asked = Some(self.now);
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

    /// While the endpoint is being closed: say goodbye to peers for whom nothing is left. Looks at those alone to whom it
    /// was not said.
    pub(super) fn say_goodbye(&mut self) {
        let mut peers = std::mem::take(&mut self.farewells);
        peers.retain(|&peer| {
            let State::Connected(path) = self.peers[peer].state else { return false };
            let is_busy = self.operations.of(peer).any(|(_, operation)| operation.is_going_out());
            if is_busy || !self.peers[peer].notes.is_empty() {
                return true;
            }
            self.actions.push_back(Action::Say(path, Control::Goodbye(Goodbye::Closing)));
            self.peers[peer].state = State::Leaving(path);
            self.close_link(path, true);
            false
        });
        self.farewells = peers;
    }
}

/// So many times the patience with one peer that takes nothing is that with all while some take something.
const CLOSE_TIMES: u32 = 12;
/// Pauses double up to 64 times the first.
const PAUSE_DOUBLED_MAX: u32 = 6;
