//! What the user does: post, cancel, peek, claim, discard.

use crate::ids::{DeviceId, MessageToken, PeerId, ReceiveId, Tag};
use crate::matching::{Elsewhere, Envelope, Pattern, Posted, Stay, Unexpected};
use crate::offload::Clause;
use crate::seam::{Answer, Buffer, Command, NoPlacer, Placer};

use super::completion::{Completion, End, Received};
use super::transfer::{Claimed, Held, Multi, Transfer};
use super::waiting::Message;
use super::{Engine, NONE, Slot, index32};

/// A receive to be posted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Receive {
    /// What it takes.
    pub pattern: Pattern,
    /// Where the payload goes.
    pub buffer: Buffer,
    /// Comes back with its completions.
    pub context: u64,
    /// How often it takes.
    pub kind: Kind,
}

/// How often a receive takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// One message.
    Once,
    /// One message after the other, each behind the last, until less than `least` bytes are left
    /// (`FI_MULTI_RECV`, `FI_OPT_MIN_MULTI_RECV`).
    Multi {
        /// Bytes.
        least: u64,
    },
}

/// What became of a post.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Posting {
    /// It is posted.
    Queued(ReceiveId),
    /// It took this unexpected message; its completion follows when the data is there. A multi-receive buffer that
    /// was used up by several tells of the last one.
    Matched(Received),
    /// It took this unexpected message, and the payload is in its buffer: that was all, no completion follows. Only
    /// [`Engine::post_placing`] says it.
    Placed(Received),
}

/// What became of a cancel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CancelOutcome {
    /// Its completion says `Cancelled`.
    Cancelled,
    /// A NIC has it; its completion will say whether it was cancelled or a message came first.
    Pending,
    /// It was matched before, or there is no such receive.
    TooLate,
}

/// An unexpected message, looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peeked {
    /// Who sent it.
    pub source: PeerId,
    /// Its tag.
    pub tag: Tag,
    /// Bytes of payload.
    pub length: u64,
    /// The sender's word.
    pub app_ctx: u32,
    /// Remote completion-queue data.
    pub immediate: Option<u32>,
    /// The device that holds it, and its name there.
    pub held: (DeviceId, MessageToken),
}

/// A message that only its claimer can receive or discard. Good for one use.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ClaimId {
    index: u32,
    serial: u32,
}

impl ClaimId {
    /// Both halves in one word, for those who keep it elsewhere: C, for one.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        ((self.serial as u64) << 32) | self.index as u64
    }

    /// The inverse of [`Self::to_bits`]. Any value is accepted; a wrong one names nothing.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "the two halves of the word are meant")]
    pub const fn from_bits(bits: u64) -> Self {
        Self { index: bits as u32, serial: (bits >> 32) as u32 }
    }
}

impl Engine {
    /// Post a receive: it takes the earliest-arrived unexpected message that fits, or joins the posted list.
    ///
    /// Budgets stand at the short ways that it takes, in software and beside NICs.
    #[inline]
    pub fn post(&mut self, receive: &Receive) -> Posting {
        self.post_placing(receive, &mut NoPlacer)
    }

    /// The same by an owner who has the devices at hand. A message whose payload was there when it arrived is written
    /// into the buffer before this returns ([`Posting::Placed`]), which saves a command, an event and a completion.
    /// Not into multi-receive buffers. And a receive that goes straight down to a NIC is given to it before this returns
    /// ([`Placer::add`]), which saves a command.
    #[inline(always)]
    pub fn post_placing(&mut self, receive: &Receive, placer: &mut impl Placer) -> Posting {
        if self.offload.is_active() {
            return match self.try_post_down(receive, placer) {
                Some(id) => Posting::Queued(id),
                None => self.post_beside_nics(receive, placer),
            };
        }
        if let Some(id) = self.try_post(receive) {
            return Posting::Queued(id);
        }
        let is_short = self.matcher.is_unexpected_short();
        let taken = if is_short { self.try_take_held(receive) } else { self.try_take_indexed(receive) };
        match taken {
            Ok(Some(message)) => {
                let (envelope, held) = (message.envelope(), message.value());
                if held.in_hand && placer.place(held.device, held.token, &receive.buffer) {
                    return Posting::Placed(held.received(envelope.tag, envelope.source, &receive.buffer));
                }
                let held = *held;
                self.take_held_late(envelope, held, receive)
            }
            Ok(None) if is_short => Posting::Queued(self.post_at_end(receive)),
            Ok(None) => self.post_past_index(receive, placer, true),
            Err(_) => self.post_in_software(receive, placer),
        }
    }

    /// The receive is posted if no message waits and no device matches. Budget: 50 instructions while few are posted; then
    /// it makes no call, and is drawn into the owner's loop.
    #[inline(always)]
    fn try_post(&mut self, receive: &Receive) -> Option<ReceiveId> {
        if receive.kind != Kind::Once || self.matcher.has_unexpected() {
            return None;
        }
        match self.matcher.try_queue_posted(&receive.pattern) {
            Some((id, slot)) => {
                slot.write(receive, NONE);
                Some(id)
            }
            None => self.post_slow(receive),
        }
    }

    /// Returns what its caller does, which so need not come back to it. Budget: 110 instructions where many of the
    /// receive's class are posted.
    #[inline(never)]
    fn post_slow(&mut self, receive: &Receive) -> Option<ReceiveId> {
        match self.matcher.try_index_posted(&receive.pattern, || Slot::new(receive)) {
            Some(id) => Some(id),
            None => self.post_slowest(receive),
        }
    }

    #[cold]
    #[inline(never)]
    fn post_slowest(&mut self, receive: &Receive) -> Option<ReceiveId> {
        Some(self.matcher.queue_posted_slow(&receive.pattern, || Slot::new(receive)))
    }

    /// A message that fits, among the few that wait, which has left the unexpected list; or that none fits. An error,
    /// and nothing has changed, if there is more to it. Makes no call. Budget: 45 instructions.
    #[inline(never)]
    fn try_take_held(&mut self, receive: &Receive) -> Result<Option<&Unexpected<Held>>, Elsewhere> {
        if receive.kind != Kind::Once {
            return Err(Elsewhere);
        }
        self.matcher.try_take_unexpected_for(&receive.pattern)
    }

    /// The same where many wait, and the only live class has one that fits. Budget: 130 instructions.
    #[inline(always)]
    fn try_take_indexed(&mut self, receive: &Receive) -> Result<Option<&Unexpected<Held>>, Elsewhere> {
        if receive.kind != Kind::Once {
            return Err(Elsewhere);
        }
        let taken = self.matcher.take_unexpected_for(&receive.pattern)?;
        Ok(taken.map(|(_, message)| message))
    }

    /// No waiting message fits.
    #[inline(never)]
    fn post_at_end(&mut self, receive: &Receive) -> ReceiveId {
        self.matcher.queue_posted_with(&receive.pattern, Stay::Once, || Slot::new(receive))
    }

    #[inline(never)]
    fn post_in_software(&mut self, receive: &Receive, placer: &mut impl Placer) -> Posting {
        if receive.kind != Kind::Once || self.matcher.is_unexpected_short() {
            return self.post_any(receive, placer);
        }
        self.post_past_index(receive, placer, false)
    }

    /// No indexed message fits, or that is not known.
    #[inline(never)]
    fn post_past_index(
        &mut self,
        receive: &Receive,
        placer: &mut impl Placer,
        none_indexed: bool,
    ) -> Posting {
        let slot = || Slot::new(receive);
        match self.matcher.post_past_index(&receive.pattern, Stay::Once, slot, none_indexed) {
            Posted::Queued(id) => Posting::Queued(id),
            Posted::Matched { envelope, value: held, .. } => self.take_held(envelope, held, receive, placer),
        }
    }

    /// A held message that has left the unexpected list goes into a receive.
    #[inline(always)]
    fn take_held(
        &mut self,
        envelope: Envelope,
        held: Held,
        receive: &Receive,
        placer: &mut impl Placer,
    ) -> Posting {
        if held.in_hand && placer.place(held.device, held.token, &receive.buffer) {
            return Posting::Placed(held.received(envelope.tag, envelope.source, &receive.buffer));
        }
        self.take_held_late(envelope, held, receive)
    }

    /// By value: what is known of it is put together again only here.
    #[cold]
    #[inline(never)]
    fn take_held_late(&mut self, envelope: Envelope, held: Held, receive: &Receive) -> Posting {
        Posting::Matched(self.accept_held(envelope, &held, &Slot::new(receive)))
    }

    /// The receive is posted and goes straight down to the only device that matches, for which that was found to need no
    /// look at anything else; both lists are short, and its buffer lies behind those that are there. Makes no call but
    /// the placer's. Budget: 140 instructions.
    #[inline(always)]
    fn try_post_down(&mut self, receive: &Receive, placer: &mut impl Placer) -> Option<ReceiveId> {
        if receive.kind != Kind::Once || self.matcher.has_unexpected() {
            return None;
        }
        let way = self.offload.way_straight(&receive.pattern, &receive.buffer)?;
        let (id, slot) = self.matcher.try_queue_posted(&receive.pattern)?;
        slot.write(receive, way.record());
        way.go(id, &receive.pattern, &receive.buffer, placer);
        Some(id)
    }

    /// The same where resources have to be looked at.
    #[inline(never)]
    fn post_beside_nics(&mut self, receive: &Receive, placer: &mut impl Placer) -> Posting {
        self.offload.stir();
        if receive.kind == Kind::Once
            && !self.matcher.has_unexpected()
            && let Some(way) = self.offload.way_down(&receive.pattern, &receive.buffer)
            && let Some((id, slot)) = self.matcher.try_queue_posted(&receive.pattern)
        {
            slot.write(receive, way.record());
            way.go(id, &receive.pattern, &receive.buffer, placer);
            return Posting::Queued(id);
        }
        self.post_straight_down(receive, placer)
    }

    /// The same with any buffer and lists of any length. Budget: 450 instructions with short lists, 800 at 1,000
    /// receives.
    #[inline(never)]
    fn post_straight_down(&mut self, receive: &Receive, placer: &mut impl Placer) -> Posting {
        let way = match receive.kind {
            Kind::Once => self.offload.way_down_among(&receive.pattern, &receive.buffer),
            Kind::Multi { .. } => None,
        };
        let Some(way) = way else { return self.post_any(receive, placer) };
        let slot = || Slot { record: way.record, ..Slot::new(receive) };
        match self.matcher.post_where_it_lies(&receive.pattern, Stay::Once, slot) {
            Posted::Queued(id) => {
                self.offload.go_down_among(way, id, &receive.pattern, &receive.buffer, placer);
                Posting::Queued(id)
            }
            Posted::Matched { envelope, value: held, .. } => self.take_held(envelope, held, receive, placer),
        }
    }

    #[inline(never)]
    fn post_any(&mut self, receive: &Receive, placer: &mut impl Placer) -> Posting {
        if let Kind::Multi { least } = receive.kind {
            return self.post_multi(receive, least);
        }
        match self.matcher.post_where_it_lies(&receive.pattern, Stay::Once, || Slot::new(receive)) {
            Posted::Queued(id) => {
                if self.offload.is_active() {
                    self.track(id, receive, false);
                }
                Posting::Queued(id)
            }
            Posted::Matched { envelope, value: held, .. } => self.take_held(envelope, held, receive, placer),
        }
    }

    fn track(&mut self, id: ReceiveId, receive: &Receive, multi: bool) {
        let record = self.offload.track(id, &receive.pattern, &receive.buffer, multi);
        if let Some(slot) = self.posted_mut(id) {
            slot.record = index32(record);
        }
    }

    fn post_multi(&mut self, receive: &Receive, least: u64) -> Posting {
        let multi = self.multis.insert(Multi {
            context: receive.context,
            receive: None,
            rest: receive.buffer,
            least,
            under_way: 0,
            closed: false,
            cancelled: false,
        });
        let slot = Slot { multi: index32(multi), ..Slot::new(receive) };
        while let Some(message) = self.matcher.first_unexpected(&receive.pattern) {
            let Some((envelope, held)) = self.take_unexpected(message) else { break };
            let message = self.accept_held(envelope, &held, &slot);
            if self.multis.get(multi).is_none_or(|multi| multi.closed) {
                self.settle_multi(index32(multi));
                return Posting::Matched(message);
            }
        }
        let id = self.matcher.queue_posted(receive.pattern, Stay::Posted, slot);
        if let Some(multi) = self.multis.get_mut(multi) {
            multi.receive = Some(id);
        }
        if self.offload.is_active() {
            self.track(id, receive, true);
        }
        Posting::Queued(id)
    }

    /// Cancel a receive. Cancelling again changes nothing.
    pub fn cancel(&mut self, id: ReceiveId) -> CancelOutcome {
        let Some((_, &slot)) = self.posted(id) else { return CancelOutcome::TooLate };
        if slot.record != NONE {
            let index = slot.record as usize;
            let in_nic = self.offload.record(index).is_some_and(|record| record.place().is_in_nic());
            if in_nic {
                if let Some(record) = self.offload.record_mut(index) {
                    record.cancel = true;
                }
                self.offload.recall(index, Clause::RecalledBlocks);
                return CancelOutcome::Pending;
            }
            self.offload.leave(index);
        }
        let _taken = self.take_posted(id);
        self.complete_cancelled(&slot);
        CancelOutcome::Cancelled
    }

    pub(super) fn complete_cancelled(&mut self, slot: &Slot) {
        if slot.multi != NONE {
            if let Some(multi) = self.multis.get_mut(slot.multi as usize) {
                (multi.closed, multi.cancelled) = (true, true);
            }
            self.settle_multi(slot.multi);
            return;
        }
        self.completions.push(Completion { context: slot.context, end: End::Cancelled });
    }

    /// The earliest-arrived unexpected message that fits, if there is one. Nothing changes.
    pub fn peek(&mut self, pattern: &Pattern) -> Option<Peeked> {
        let id = self.matcher.first_unexpected(pattern)?;
        self.unexpected_message(id).map(|(envelope, held)| Self::peeked(envelope, held))
    }

    fn peeked(envelope: Envelope, held: &Held) -> Peeked {
        Peeked {
            source: envelope.source,
            tag: envelope.tag,
            length: held.length,
            app_ctx: held.app_ctx,
            immediate: held.has_immediate.then_some(held.immediate),
            held: (held.device, held.token),
        }
    }

    /// Peek, and take the message out of everyone else's sight.
    pub fn claim(&mut self, pattern: &Pattern) -> Option<(ClaimId, Peeked)> {
        let id = self.matcher.first_unexpected(pattern)?;
        let (envelope, held) = self.take_unexpected(id)?;
        let serial = self.claims_made;
        self.claims_made = serial.wrapping_add(1);
        let message = Message { envelope, held, counted: false };
        let index = index32(self.claims.insert(Claimed { serial, message }));
        Some((ClaimId { index, serial }, Self::peeked(envelope, &held)))
    }

    fn take_claimed(&mut self, claim: ClaimId) -> Option<Message> {
        let index = claim.index as usize;
        self.claims.get(index).filter(|claimed| claimed.serial == claim.serial)?;
        Some(self.claims.remove(index).message)
    }

    /// Receive a claimed message. `false`: there is no such claim (any more).
    pub fn receive_claimed(&mut self, claim: ClaimId, buffer: Buffer, context: u64) -> bool {
        let Some(message) = self.take_claimed(claim) else { return false };
        let slot = Slot { context, buffer, record: NONE, multi: NONE };
        self.accept_held(message.envelope, &message.held, &slot);
        true
    }

    /// Drop a claimed message. `false`: there is no such claim (any more).
    pub fn discard_claimed(&mut self, claim: ClaimId) -> bool {
        let Some(message) = self.take_claimed(claim) else { return false };
        self.discard_held(&message.held);
        true
    }

    /// Peek, and drop the message.
    pub fn discard(&mut self, pattern: &Pattern) -> Option<Peeked> {
        let id = self.matcher.first_unexpected(pattern)?;
        let (envelope, held) = self.take_unexpected(id)?;
        self.discard_held(&held);
        Some(Self::peeked(envelope, &held))
    }

    fn discard_held(&mut self, held: &Held) {
        self.offload.push(held.device, Command::Answer { message: held.token, answer: Answer::Discard });
    }

    /// A held message goes into a receive: its device is told, and will tell when the data is there.
    #[inline(never)]
    pub(super) fn accept_held(&mut self, envelope: Envelope, held: &Held, slot: &Slot) -> Received {
        let buffer = self.piece(slot, held.length);
        let message = held.received(envelope.tag, envelope.source, &buffer);
        let transfer = self.transfers.insert(Transfer {
            context: slot.context,
            message,
            buffer,
            device: held.device,
            multi: (slot.multi != NONE).then_some(slot.multi),
            by_entry: false,
        });
        let answer = Answer::Accept { buffer, transfer: Some(transfer) };
        self.offload.push(held.device, Command::Answer { message: held.token, answer });
        message
    }

    /// Where a message goes: the buffer, or the next piece of a multi-receive buffer.
    #[inline]
    pub(super) fn piece(&mut self, slot: &Slot, length: u64) -> Buffer {
        if slot.multi == NONE {
            return slot.buffer;
        }
        let Some(multi) = self.multis.get_mut(slot.multi as usize) else { return Buffer::default() };
        let piece = multi.rest;
        multi.rest = multi.rest.behind(length);
        multi.under_way += 1;
        multi.closed |= multi.rest.length < multi.least || multi.rest.length == 0;
        piece
    }

    /// A multi-receive buffer that takes no more is the user's again once all its data is there.
    pub(super) fn settle_multi(&mut self, index: u32) {
        let Some(&Multi { context, under_way, closed, cancelled, .. }) = self.multis.get(index as usize)
        else {
            return;
        };
        if closed && under_way == 0 {
            self.multis.remove(index as usize);
            let end = if cancelled { End::Cancelled } else { End::Released };
            self.completions.push(Completion { context, end });
        }
    }
}
