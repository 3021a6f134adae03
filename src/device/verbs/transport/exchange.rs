//! Connecting: over a socket for each link the two sides say how their queue pairs are reached, and greet each other
//! (`greeting`); then it says by its being there that they are still there. On some devices the wire says nothing when a
//! process is killed.
//!
//! Who calls says its address first; who answers makes its queue pairs and says its own.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use super::VerbsTransport;
use super::link::{Link, State};
use crate::device::inbox::Teller;
use crate::device::sockets::listener::Accepted;
use crate::device::sockets::status::{self, is_nothing, reason_of};
use crate::device::sockets::sys;
use crate::device::transport::{CloseReason, Notice};
use crate::device::verbs::address::ConnectInfo;
use crate::device::verbs::error::VerbsError;
use crate::ids::LinkId;
use crate::seam::DeviceError;

/// What was forked keeps descriptors open: connections end by more than closing them. In a child itself they are the
/// parent's, and nothing is done to them.
impl Drop for VerbsTransport {
    fn drop(&mut self) {
        if self.listener.is_own() {
            self.links.iter().for_each(|link| drop(link.socket.shutdown(Shutdown::Both)));
        }
    }
}

impl VerbsTransport {
    /// Look at the sockets.
    pub(super) fn look(&mut self, teller: &mut Teller<'_>) -> Result<(), DeviceError> {
        let count = self.epoll.look().map_err(|error| DeviceError::System {
            call: "epoll_wait",
            errno: error.raw_os_error().unwrap_or(libc::EIO),
        })?;
        for place in 0..count {
            let Some(ready) = self.epoll.ready(place) else { break };
            if ready.name == super::LISTENER {
                self.accept();
                continue;
            }
            if ready.name == super::CHANNEL {
                self.device.drain_channel();
                continue;
            }
            if ready.name == super::EVENTS {
                self.device.poll_events();
                continue;
            }
            let id = LinkId::from_bits(ready.name);
            match self.links.find(id).map(|link| link.state) {
                Some(State::Connecting) => self.connected(id),
                Some(State::Ending) | None => {}
                Some(State::Asking | State::Answering | State::Open | State::Closing) => {
                    self.listen_to(id, teller);
                }
            }
        }
        Ok(())
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTS_A_TURN {
            match self.listener.accept() {
                Accepted::Stream(socket) => self.accepted(socket),
                Accepted::Gone => {}
                Accepted::Nobody => return,
                Accepted::Exhausted => {
                    if !self.end_oldest_unbound("there are no descriptors, and it had not said who it is") {
                        self.listener.pause(&self.epoll);
                    }
                    return;
                }
            }
        }
    }

    fn accepted(&mut self, socket: TcpStream) {
        if socket.set_nonblocking(true).is_err() || socket.set_nodelay(true).is_err() {
            return;
        }
        let link = self.links.insert(socket, State::Answering);
        let id = link.id;
        if self.epoll.add(&link.socket, id.to_bits(), false).is_err() {
            self.links.remove(id);
            return;
        }
        let links = &self.links;
        let is_unbound = |id: &LinkId| links.find(*id).is_some_and(|link| link.peer.is_none());
        while self.unbound.front().is_some_and(|id| !is_unbound(id)) {
            self.unbound.pop_front();
        }
        self.unbound.push_back(id);
        if self.unbound.len() > self.unbound_max {
            self.unbound.retain(is_unbound);
        }
        if self.unbound.len() > self.unbound_max {
            self.end_oldest_unbound("others connected, and it had not said who it is");
        }
    }

    fn end_oldest_unbound(&mut self, why: &str) -> bool {
        let links = &self.links;
        let is_unbound = |id: &LinkId| {
            links.find(*id).is_some_and(|link| link.peer.is_none() && link.state != State::Ending)
        };
        while let Some(oldest) = self.unbound.pop_front() {
            if is_unbound(&oldest) {
                self.end(oldest, CloseReason::Protocol(why.into()));
                return true;
            }
        }
        false
    }

    /// Connecting came to an end.
    fn connected(&mut self, id: LinkId) {
        let Some(link) = self.links.find(id) else { return };
        match status::connected(&link.socket) {
            None => {}
            Some(Err(reason)) => self.end(id, reason),
            Some(Ok(())) => match self.prepare(id) {
                Ok(own) if self.say(id, &own.to_bytes()) => self.links.set_state(id, State::Asking),
                Ok(_) => {}
                Err(error) => self.end(id, failed(&error)),
            },
        }
        let is_made = |state| state != State::Connecting;
        if let Some(link) = self.links.find(id).filter(|link| is_made(link.state)) {
            // Were it told of being writable, it would be told always.
            let _unlikely = self.epoll.change(&link.socket, id.to_bits(), false);
        }
    }

    /// Something came on a socket, or its end.
    fn listen_to(&mut self, id: LinkId, teller: &mut Teller<'_>) {
        let mut bytes = [0; 512];
        loop {
            let Some(link) = self.links.find_mut(id).filter(|link| link.state != State::Ending) else {
                return;
            };
            match link.socket.read(&mut bytes) {
                Ok(0) => return self.end(id, CloseReason::Peer),
                Ok(count) => {
                    link.heard.extend_from_slice(bytes.get(..count).unwrap_or_default());
                    self.digest(id, teller);
                }
                Err(error) if is_nothing(&error) => return,
                Err(error) => return self.end(id, reason_of(&error)),
            }
        }
    }

    /// The other side has said where its queue pairs are.
    pub(super) fn hear_address(&mut self, id: LinkId, address: &[u8]) {
        let Some(link) = self.links.find_mut(id) else { return };
        let is_answering = link.state == State::Answering;
        match ConnectInfo::decode(address) {
            Ok(info) => link.remote = Some(info),
            Err(error) => return self.end(id, CloseReason::Protocol(error.to_string())),
        }
        if is_answering {
            match self.prepare(id) {
                Ok(own) if self.say(id, &own.to_bytes()) => {}
                Ok(_) => return,
                Err(error) => return self.end(id, failed(&error)),
            }
        }
        if let Some(link) = self.links.find_mut(id) {
            link.is_told = true;
        }
        self.links.set_state(id, State::Open);
        let open = Notice::Open { link: id };
        self.inbox.pending.notice(if is_answering { Notice::Incoming { link: id } } else { open });
    }

    /// Queue pairs for a link: where they are reached.
    fn prepare(&mut self, id: LinkId) -> Result<ConnectInfo, VerbsError> {
        let Some(link) = self.links.find_mut(id) else {
            return Err(VerbsError::Caller("the link is gone".into()));
        };
        let info = self.device.prepare(link.path())?;
        link.has_pairs = true;
        Ok(info)
    }

    /// Connect a link's queue pairs with those that the other side has said. False: the link ends.
    pub(super) fn join(&mut self, id: LinkId) -> bool {
        let Some(link) = self.links.find_mut(id) else { return false };
        let (path, Some(info)) = (link.path(), link.remote.take()) else { return link.is_joined };
        match self.device.connect(path, &info) {
            Ok(()) => link.is_joined = true,
            Err(error) => {
                // Where the device refused the way, it has given up the queue pairs.
                link.has_pairs = self.device.has_pairs(path);
                self.end(id, failed(&error));
                return false;
            }
        }
        true
    }

    /// Say something short on a socket on which nothing waits. False: the link ends.
    pub(super) fn say(&mut self, id: LinkId, bytes: &[u8]) -> bool {
        let Some(link) = self.links.find_mut(id) else { return false };
        let reason = match link.socket.write(bytes) {
            Ok(count) if count == bytes.len() => return true,
            Ok(_) => CloseReason::System { errno: libc::ENOBUFS },
            Err(error) => reason_of(&error),
        };
        self.end(id, reason);
        false
    }

    /// A link ends: at once if it has no queue pairs, else when the device has told all that came by them.
    pub(super) fn end(&mut self, id: LinkId, reason: CloseReason) {
        let Some(link) = self.links.find_mut(id).filter(|link| link.state != State::Ending) else { return };
        link.is_deaf |= !matches!(reason, CloseReason::Peer | CloseReason::System { .. });
        link.reason = Some(reason);
        // What is in the kernel's hands goes out first; there is nothing that waits to be read.
        let _gone = link.socket.shutdown(Shutdown::Both);
        let _gone = self.epoll.remove(&link.socket);
        let (path, has_pairs) = (link.path(), link.has_pairs);
        self.links.set_state(id, State::Ending);
        if !has_pairs || self.device.disconnect(path).is_err() {
            self.gone(id);
        }
    }

    /// A link has ended, and all that came by it was told.
    pub(super) fn gone(&mut self, id: LinkId) {
        let Some(link) = self.links.remove(id) else { return };
        self.listener.resume(&self.epoll);
        self.inbox.lose(id);
        self.registrations.withdraw_all(id);
        let pending = &mut self.inbox.pending;
        // Without a reason the queue pairs failed.
        let reason = link.reason.unwrap_or(CloseReason::System { errno: libc::ECONNRESET });
        for (_, context) in link.takers {
            pending.notice(Notice::Sent { context, result: Err(reason.clone()) });
        }
        if let Some(peer) = link.peer {
            self.peers.remove(&peer);
            pending.path_lost(peer);
        }
        if link.is_told {
            pending.notice(Notice::Closed { link: id, reason });
        }
    }

    /// Whether the other side has all that was given to send: its card what went through the queue pairs, its host what
    /// went over the socket. Were the socket closed earlier, that could be dropped.
    pub(super) fn is_out(&self, link: &Link) -> bool {
        self.device.is_quiet(link.path()) && sys::unacknowledged(&link.socket) == 0
    }

    /// Tell who wants to know what the other sides' cards have by now.
    pub(super) fn look_at_watched(&mut self) {
        self.watched.retain(|&id| {
            let Some(link) = self.links.find_mut(id) else { return false };
            let (_, taken) = self.device.acknowledged(link.path());
            while let Some(&(position, context)) = link.takers.front()
                && position <= taken
            {
                link.takers.pop_front();
                self.inbox.pending.notice(Notice::Sent { context, result: Ok(()) });
            }
            !link.takers.is_empty()
        });
    }

    /// Links that are to end when all is out, and those that somebody began who then said nothing.
    pub(super) fn end_closing(&mut self) {
        if self.links.is_settled() {
            return;
        }
        let closing = self.links.iter().filter(|link| link.state == State::Closing);
        let over = closing.filter(|link| self.is_out(link));
        let over: Vec<LinkId> = over.map(|link| link.id).collect();
        for id in over {
            self.end(id, CloseReason::Here);
        }
        let silent = self.links.iter().filter(|link| link.state == State::Answering);
        let silent = silent.filter(|link| link.since.elapsed() > SILENCE_MAX);
        let silent: Vec<LinkId> = silent.map(|link| link.id).collect();
        for id in silent {
            self.end(id, CloseReason::Protocol("it did not say how it is reached".into()));
        }
    }
}

fn failed(error: &VerbsError) -> CloseReason {
    if let VerbsError::Call { cause, .. } = error {
        CloseReason::System { errno: cause.0.abs() }
    } else {
        CloseReason::Protocol(error.to_string())
    }
}

/// A process that computes says nothing for a while.
const SILENCE_MAX: Duration = Duration::from_secs(600);
const ACCEPTS_A_TURN: usize = 64;
