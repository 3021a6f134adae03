//! Moving on: accept, finish connecting, read, write, tell.
//!
//! A few links are read from directly, which costs one call each; many are asked for with one call. The descriptor to
//! wait for is that of the same epoll, level-triggered: what is left unread there stays visible.

use super::input::Progress;
use super::link::State;
use super::medium::{Medium, Stream};
use super::{LISTENER, StreamTransport, link};
use crate::device::inbox::Teller;
use crate::device::sockets::listener::Accepted;
use crate::device::transport::{CloseReason, Ear, Notice};
use crate::ids::LinkId;
use crate::seam::DeviceError;

/// What is to be done in a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Turn {
    /// Nothing.
    Still,
    /// Links are read from.
    Reads,
    /// The operating system is asked what there is.
    Looks,
}

impl<M: Medium> StreamTransport<M> {
    /// What is to be done in the turn that begins.
    #[inline]
    pub(super) fn turn(&mut self) -> Turn {
        self.turn = self.turn.wrapping_add(1);
        self.medium.listener_mut().turn(&self.epoll);
        // Whoever has sent expects an answer, which one call reads. Whoever only listens would take the lock of the socket
        // again and again, which the sender's packets need; so would whoever waits for a long answer.
        if std::mem::take(&mut self.has_waited) || self.looks() {
            Turn::Looks
        } else if self.is_still() {
            Turn::Still
        } else {
            Turn::Reads
        }
    }

    #[inline(never)]
    pub(super) fn go_on(&mut self, looks: bool, max: usize, ear: &mut dyn Ear) -> Result<usize, DeviceError> {
        let mut teller = Teller::new(ear, self.config.id, max);
        teller.tell(&mut self.parts.inbox.pending);
        if !self.parts.unsent.is_empty() {
            self.write_unsent();
        }
        self.take_kept_back(&mut teller);
        let result = if looks { self.look(&mut teller) } else { Ok(()) };
        if M::IS_MEMORY || !looks {
            self.read_all(&mut teller);
        }
        if !self.parts.unsent.is_empty() {
            self.write_unsent();
        }
        if !self.watched.is_empty() {
            self.look_at_watched();
        }
        teller.tell(&mut self.parts.inbox.pending);
        self.is_answer_due &= teller.told() == 0;
        result.map(|()| teller.told())
    }

    /// Whether the operating system is to be asked what there is.
    #[inline]
    fn looks(&self) -> bool {
        if self.links.connecting > 0 {
            return true;
        }
        // Where there is no link somebody may connect; who is about to wait has looked first.
        if M::IS_MEMORY || self.links.len() == 0 {
            return self.turn.is_multiple_of(LOOK_AT_SOCKETS_EVERY);
        }
        self.links.len() > DIRECT_MAX
            || !self.is_answer_due
            || self.is_long
            || self.turn.is_multiple_of(LOOK_EVERY)
    }

    /// Whether nothing is to be done or told, as far as is seen without asking the operating system.
    #[inline]
    fn is_still(&self) -> bool {
        let waits = !self.parts.inbox.pending.is_empty()
            || !self.parts.unsent.is_empty()
            || !self.kept_back.is_empty()
            || !self.watched.is_empty();
        !waits && if M::IS_MEMORY { !self.links.iter().any(has_news) } else { self.links.len() == 0 }
    }

    /// Links whose bytes were not all taken have their turn first, oldest first.
    #[inline(never)]
    fn take_kept_back(&mut self, teller: &mut Teller<'_>) {
        for _ in 0..self.kept_back.len() {
            if teller.is_full() {
                return;
            }
            let Some(id) = self.kept_back.pop_front() else { return };
            self.read(id, teller);
        }
    }

    fn read_all(&mut self, teller: &mut Teller<'_>) {
        let mut ids = std::mem::take(&mut self.ids);
        self.links.ids_from(self.turn, has_news, &mut ids);
        for &id in &ids {
            if self.links.find(id).is_some_and(|link| link.waits_to_write) {
                self.try_to_write(id);
            }
            self.read(id, teller);
        }
        self.ids = ids;
    }

    fn look(&mut self, teller: &mut Teller<'_>) -> Result<(), DeviceError> {
        let count = self.epoll.look().map_err(|error| DeviceError::System {
            call: "epoll_wait",
            errno: error.raw_os_error().unwrap_or(libc::EIO),
        })?;
        for place in 0..count {
            let Some(ready) = self.epoll.ready(place) else { break };
            if ready.name == LISTENER {
                self.accept();
                continue;
            }
            let id = LinkId::from_bits(ready.name);
            if self.links.find(id).is_some_and(|link| link.state == State::Connecting) {
                self.connected(id);
                continue;
            }
            if ready.is_writable {
                self.try_to_write(id);
            }
            if ready.is_readable {
                if let Some(link) = self.links.find_mut(id) {
                    link.stream.tell_ready();
                }
                self.read(id, teller);
            }
        }
        Ok(())
    }

    fn try_to_write(&mut self, id: LinkId) {
        if let Some(link) = self.links.find_mut(id) {
            link.out.is_blocked = false;
            self.write(id);
        }
    }

    /// Read from a link, but not for ever.
    fn read(&mut self, id: LinkId, teller: &mut Teller<'_>) {
        for _ in 0..READS_A_TURN {
            // What is told later must not pass what waits to be told.
            teller.tell(&mut self.parts.inbox.pending);
            if teller.is_full() {
                return self.keep_back(id);
            }
            let Some(link) = self.links.find_mut(id) else { return };
            if link.state == State::Connecting {
                return;
            }
            let progress = self.parts.read(link, &mut self.scratch, teller);
            self.is_long = link.input.is_long;
            match progress {
                Progress::Dry => return self.end_ending(),
                Progress::More => {}
                Progress::Ended(reason) => {
                    self.end(id, reason);
                    return self.end_ending();
                }
            }
        }
        self.end_ending();
        self.keep_back(id);
    }

    /// A link that could not go on has its turn first next time, if it has bytes that no poll would show.
    fn keep_back(&mut self, id: LinkId) {
        let has_more = self.links.find(id).is_some_and(|link| link.input.has_more);
        if has_more && !self.kept_back.contains(&id) {
            self.kept_back.push_back(id);
        }
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTS_A_TURN {
            match self.medium.listener().accept() {
                Accepted::Stream(stream) => self.accepted(stream),
                Accepted::Gone => {}
                Accepted::Nobody => return,
                Accepted::Exhausted => return self.make_room(),
            }
        }
    }

    fn accepted(&mut self, socket: <M::Stream as Stream>::Socket) {
        let Ok(stream) = self.medium.accepted(socket) else { return };
        let link = self.links.insert(stream, State::Open);
        let id = link.id;
        if self.epoll.add(&link.stream, id.to_bits(), false).is_err() {
            self.links.remove(id);
            return;
        }
        self.parts.inbox.pending.notice(Notice::Incoming { link: id });
        let links = &self.links;
        while self.unbound.front().is_some_and(|id| !links.find(*id).is_some_and(is_unbound)) {
            self.unbound.pop_front();
        }
        self.unbound.push_back(id);
        if self.unbound.len() > self.config.unbound_max {
            self.unbound.retain(|id| links.find(*id).is_some_and(is_unbound));
        }
        if self.unbound.len() > self.config.unbound_max {
            self.end_oldest_unbound();
        }
    }

    fn end_oldest_unbound(&mut self) -> bool {
        while let Some(id) = self.unbound.pop_front() {
            if self.links.find(id).is_some_and(is_unbound) {
                self.end(id, CloseReason::Protocol("others connected, and it had not said who it is".into()));
                return true;
            }
        }
        false
    }

    /// There are no more descriptors: the oldest that nobody knows goes, or none is accepted for a while.
    fn make_room(&mut self) {
        if self.config.keeps_unbound || !self.end_oldest_unbound() {
            self.medium.listener_mut().pause(&self.epoll);
        }
    }

    /// Connecting came to an end.
    fn connected(&mut self, id: LinkId) {
        let Some(link) = self.links.find_mut(id) else { return };
        match link.stream.connected() {
            None => {}
            Some(Err(reason)) => self.end(id, reason),
            Some(Ok(())) => {
                link.state = State::Open;
                if M::IS_MEMORY && self.epoll.change(&link.stream, id.to_bits(), false).is_ok() {
                    link.waits_to_write = false;
                }
                self.links.connecting -= 1;
                self.parts.inbox.pending.notice(Notice::Open { link: id });
                self.try_to_write(id);
            }
        }
    }
}

#[inline]
fn has_news<S: Stream>(link: &link::Link<S>) -> bool {
    link.waits_to_write || link.stream.has_news()
}

fn is_unbound<S>(link: &link::Link<S>) -> bool {
    link.peer.is_none() && !link.is_kept && link.state != State::Connecting
}

/// Up to so many links are read from directly.
const DIRECT_MAX: usize = 4;
/// Where looking at streams costs nothing, or there are none, every so many turns sockets are looked at.
const LOOK_AT_SOCKETS_EVERY: usize = 64;
/// Then every so many turns the listener is looked at.
const LOOK_EVERY: usize = 16;
const READS_A_TURN: usize = 8;
const ACCEPTS_A_TURN: usize = 64;
