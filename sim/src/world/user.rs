//! What the user and fate do.

use tagmatch::engine::{CancelOutcome, Kind, Posting, Receive};
use tagmatch::ids::{DeviceId, MessageToken, PeerId};
use tagmatch::matching::{Pattern, Stay};
use tagmatch::seam::{Add, Buffer, Command, Placer};

use super::book::Decision;
use super::scope::Op;
use super::{Machine, Monitors, World, Wrong, device_id};
use crate::checker::{MessageName, Observation, ReceiveName};

impl<D: Machine> World<D> {
    pub(super) fn is_possible(&self, thread: usize) -> bool {
        let ops = &self.scope.threads[thread];
        let Some(&op) = ops.get(self.book.done[thread]) else { return false };
        if let Op::Move(peer, path) = op {
            return self.book.told_lost.contains(&peer) && self.engine.may_take_path(peer, DeviceId(path));
        }
        let Op::Cancel(receive) = op else { return true };
        let progress = self.book.progress[receive as usize];
        // Once it has ended the answer is known; alone, it need not be asked.
        progress.posted && !(progress.ended && ops.len() == 1)
    }

    pub(super) fn step_user(&mut self, thread: usize) -> Result<(), Wrong> {
        let op = self.scope.threads[thread][self.book.done[thread]];
        self.book.done[thread] += 1;
        match op {
            Op::Post(receive) => self.post(receive),
            Op::Cancel(receive) => self.cancel(receive),
            Op::Peek(pattern) => {
                let found = self.engine.peek(&pattern).map(|peeked| MessageName(peeked.app_ctx));
                self.observe(Observation::Peek { pattern, found, claim: false }, Monitors::BOTH)
            }
            Op::Claim(number, pattern) => self.claim(number, pattern),
            Op::ReceiveClaimed(number, receive) => self.receive_claimed(number, receive),
            Op::Discard(number) => {
                if let Some((claim, _)) = self.book.claims[number as usize].take() {
                    self.engine.discard_claimed(claim);
                }
                Ok(())
            }
            Op::Switch(device, on) => {
                self.engine.set_offload(device_id(usize::from(device)), on);
                Ok(())
            }
            Op::Lose(peer) => self.lose(peer),
            Op::Move(peer, path) => self.come_back(peer, path),
            Op::Fail(device) => self.fail(usize::from(device)),
        }
    }

    fn post(&mut self, receive: u32) -> Result<(), Wrong> {
        let it = self.scope.receives[receive as usize];
        let posted = Receive {
            pattern: it.pattern,
            buffer: self.places.buffer(receive, it.length),
            context: u64::from(receive),
            kind: it.least.map_or(Kind::Once, |least| Kind::Multi { least }),
        };
        if it.least.is_some() {
            return self.post_multi(receive, &posted);
        }
        let may_add = self.scope.is_added_by_hand(receive);
        let may_place = self.scope.placing;
        let mut hand = Hand { devices: &mut self.devices, may_place, may_add, placed: None, added: None };
        let posting = if may_place || may_add {
            self.engine.post_placing(&posted, &mut hand)
        } else {
            self.engine.post(&posted)
        };
        let Hand { placed, added, .. } = hand;
        let progress = &mut self.book.progress[receive as usize];
        progress.posted = true;
        let took = match posting {
            Posting::Queued(id) => {
                progress.id = Some(id);
                None
            }
            Posting::Matched(message) => {
                self.tell(|| format!("    it takes m{}", message.app_ctx));
                Some(MessageName(message.app_ctx))
            }
            Posting::Placed(message) => {
                progress.ended = true;
                self.tell(|| format!("    it takes m{}, which is there", message.app_ctx));
                Some(MessageName(message.app_ctx))
            }
        };
        let (name, pattern) = (ReceiveName(receive), it.pattern);
        self.observe(Observation::Post { receive: name, pattern, stay: Stay::Once, took }, Monitors::BOTH)?;
        if let Some((at, add)) = added {
            self.tell(|| "    by hand:".to_owned());
            self.handle_command(at, &add)?;
        }
        match (posting, placed) {
            (Posting::Placed(message), Some((at, token))) => {
                if self.book.take_token(at, token) != Some(message.app_ctx) {
                    return Err(Wrong::Refused(format!(
                        "{token:?} was placed, which is not m{}",
                        message.app_ctx
                    )));
                }
                self.handle_decided(message.app_ctx, receive)?;
                self.check_received(receive, message.app_ctx, message.address)
            }
            (Posting::Queued(_) | Posting::Matched(_), None) => Ok(()),
            (posting, placed) => Err(Wrong::Refused(format!("{posting:?}, and placed was {placed:?}"))),
        }
    }

    /// A multi-receive takes all the unexpected messages that it has room for, in their order, and then is posted.
    fn post_multi(&mut self, receive: u32, posted: &Receive) -> Result<(), Wrong> {
        let before: Vec<u32> = self.engine.unexpected().collect();
        let posting = self.engine.post(posted);
        let after: Vec<u32> = self.engine.unexpected().collect();
        self.book.progress[receive as usize].posted = true;
        let (name, pattern) = (ReceiveName(receive), posted.pattern);
        let post = |took| Observation::Post { receive: name, pattern, stay: Stay::Posted, took };
        let it = self.scope.receives[receive as usize];
        for message in before.into_iter().filter(|message| !after.contains(message)) {
            if self.book.progress[receive as usize].full {
                return Err(Wrong::Completion(format!("m{message} goes to r{receive}, which is full")));
            }
            self.tell(|| format!("    it takes m{message}"));
            self.observe(post(Some(MessageName(message))), Monitors::BOTH)?;
            let length = self.scope.messages[message as usize].length;
            self.book.take_piece(receive, &it, message, length);
        }
        match (posting, self.book.progress[receive as usize].full) {
            (Posting::Queued(id), false) => {
                self.book.progress[receive as usize].id = Some(id);
                self.observe(post(None), Monitors::BOTH)
            }
            (Posting::Matched(_), true) => Ok(()),
            (posting, full) => Err(Wrong::Completion(format!("{posting:?}, and it is full: {full}"))),
        }
    }

    fn cancel(&mut self, receive: u32) -> Result<(), Wrong> {
        let progress = &mut self.book.progress[receive as usize];
        // Never queued: there is no name to cancel it by.
        let Some(id) = progress.id else { return Ok(()) };
        let outcome = self.engine.cancel(id);
        let receive = ReceiveName(receive);
        self.observe(Observation::CancelCalled { receive }, Monitors::BOTH)?;
        if self.book.progress[receive.0 as usize].cancelling {
            // It joins the one that is not answered yet.
            return Ok(());
        }
        if outcome == CancelOutcome::TooLate {
            self.tell(|| "    too late".to_owned());
            return self.observe(Observation::CancelAnswered { receive, cancelled: false }, Monitors::BOTH);
        }
        // Its completion answers, perhaps at once.
        self.book.progress[receive.0 as usize].cancelling = true;
        Ok(())
    }

    fn claim(&mut self, number: u32, pattern: Pattern) -> Result<(), Wrong> {
        let found = self.engine.claim(&pattern).map(|(claim, peeked)| {
            self.book.claims[number as usize] = Some((claim, peeked.app_ctx));
            self.book.decisions[peeked.app_ctx as usize] = Decision::Claimed;
            MessageName(peeked.app_ctx)
        });
        self.observe(Observation::Peek { pattern, found, claim: true }, Monitors::BOTH)
    }

    fn receive_claimed(&mut self, number: u32, receive: u32) -> Result<(), Wrong> {
        let Some((claim, message)) = self.book.claims[number as usize].take() else { return Ok(()) };
        let length = self.scope.receives[receive as usize].length;
        self.book.progress[receive as usize].posted = true;
        if self.engine.receive_claimed(claim, self.places.buffer(receive, length), u64::from(receive)) {
            return Ok(());
        }
        if self.is_lost(message) {
            return Ok(());
        }
        Err(Wrong::Completion(format!("the claim of m{message} is gone")))
    }

    /// Whether the sender of a message, or the device that it came through, is gone.
    pub(super) fn is_lost(&self, message: u32) -> bool {
        let message = self.scope.messages[message as usize];
        self.book.is_lost_path(message.source, message.path) || self.book.is_failed(usize::from(message.path))
    }

    /// Whether a message is sent only when its sender has come back, and it has not.
    pub(super) fn is_unsent(&self, message: u32) -> bool {
        let message = &self.scope.messages[message as usize];
        self.scope.is_sent_later(message) && !self.book.moved.contains(&(message.source, message.path))
    }

    /// A peer whose path is lost, and told so, and that may not take its next one.
    pub(super) fn peer_that_waits_for_a_path(&self) -> Option<PeerId> {
        self.scope.threads.iter().zip(&self.book.done).find_map(|(ops, &done)| match ops.get(done) {
            Some(&Op::Move(peer, path)) if self.book.told_lost.contains(&peer) => {
                (!self.engine.may_take_path(peer, DeviceId(path))).then_some(peer)
            }
            _ => None,
        })
    }

    fn lose(&mut self, peer: PeerId) -> Result<(), Wrong> {
        for at in 0..self.devices.len() {
            let is_its = |it: &super::scope::Message| {
                it.source == peer && usize::from(it.path) == at && !self.scope.is_sent_later(it)
            };
            if self.scope.messages.iter().any(is_its) {
                self.devices[at].fail_path(peer);
            }
        }
        self.handle_lost(peer)
    }

    /// A new connection, by another path.
    fn come_back(&mut self, peer: PeerId, path: u8) -> Result<(), Wrong> {
        let taken = self.engine.set_path(peer, DeviceId(path));
        taken.map_err(|error| Wrong::Refused(error.to_string()))?;
        self.book.moved.push((peer, path));
        let scope = std::sync::Arc::clone(&self.scope);
        // What was not accepted before was never sent, as far as the receiver can know.
        let mut sent = self.book.accepted[peer.0 as usize];
        for (number, message) in (0_u32..).zip(&scope.messages) {
            if message.source == peer && message.path == path {
                self.book.sent[number as usize] = sent;
                sent += 1;
                self.devices[usize::from(path)].send(number, message).map_err(Wrong::Refused)?;
            }
        }
        Ok(())
    }

    fn handle_lost(&mut self, peer: PeerId) -> Result<(), Wrong> {
        if self.book.lost.contains(&peer) {
            return Ok(());
        }
        self.book.lost.push(peer);
        self.observe(Observation::PeerLost { peer }, Monitors::BOTH)
    }

    fn fail(&mut self, at: usize) -> Result<(), Wrong> {
        self.devices[at].fail();
        self.book.handle_failed(at);
        let scope = std::sync::Arc::clone(&self.scope);
        for message in scope.messages.iter().filter(|message| usize::from(message.path) == at) {
            self.handle_lost(message.source)?;
        }
        Ok(())
    }

    pub(super) fn words_of_user(&self, thread: usize) -> String {
        let pattern = |pattern: &Pattern| {
            let source = match pattern.source {
                tagmatch::ids::Source::Any => "anybody".to_owned(),
                tagmatch::ids::Source::Peer(peer) => format!("peer {}", peer.0),
                tagmatch::ids::Source::Group(group) => format!("group {}", group.0),
            };
            format!("tag {:x}, ignore {:x}, from {source}", pattern.tag.0, pattern.ignore.0)
        };
        match self.scope.threads[thread][self.book.done[thread]] {
            Op::Post(receive) => {
                format!("post r{receive}: {}", pattern(&self.scope.receives[receive as usize].pattern))
            }
            Op::Cancel(receive) => format!("cancel r{receive}"),
            Op::Peek(it) => format!("peek: {}", pattern(&it)),
            Op::Claim(_, it) => format!("claim: {}", pattern(&it)),
            Op::ReceiveClaimed(_, receive) => format!("receive what was claimed in r{receive}"),
            Op::Discard(_) => "discard what was claimed".to_owned(),
            Op::Switch(device, true) => format!("device {device} may take receives"),
            Op::Switch(device, false) => format!("device {device} is to give its receives back"),
            Op::Lose(peer) => format!("the path to peer {} breaks", peer.0),
            Op::Move(peer, path) => format!("peer {} comes back by path {path}", peer.0),
            Op::Fail(device) => format!("device {device} fails"),
        }
    }
}

/// Writes at once, puts into lists at once, and remembers what.
struct Hand<'a, D> {
    devices: &'a mut [D],
    may_place: bool,
    may_add: bool,
    placed: Option<(usize, MessageToken)>,
    added: Option<(usize, Command)>,
}

impl<D: Machine> Placer for Hand<'_, D> {
    fn place(&mut self, device: DeviceId, message: MessageToken, buffer: &Buffer) -> bool {
        let at = usize::from(device.0);
        let is_placed = self.may_place && self.devices[at].place_held(message, buffer);
        if is_placed {
            self.placed = Some((at, message));
        }
        is_placed
    }

    fn add(&mut self, device: DeviceId, add: &Add<'_>) -> bool {
        let at = usize::from(device.0);
        let is_added = self.may_add && self.devices[at].add(add);
        if is_added {
            self.added = Some((at, add.command()));
        }
        is_added
    }
}
