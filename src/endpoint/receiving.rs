//! The receiving side: receives, peeks, claims, cancels; what the engines say of them; and what senders are told.

use crate::engine::{CancelOutcome, Completion as Ended, End, Kind, Peeked, Receive as Posting, Received};
use crate::ids::{DeviceId, Ignore, MessageToken, PeerId, ReceiveId, Source, Tag};
use crate::matching::Pattern;
use crate::offload::{Bug, is_planted};
use crate::seam::{Add, Buffer, DataError, Placer};
use crate::wire::{AppContext, Control, OperationId, SendFlags};

use super::awaited::is_ours;
use super::core::{Claim, Core, Receive};
use super::interface::{
    Address, Completed, Failure, Message, NoClaim, Peek, PeekAction, Post, PostError, Space,
};
use super::{Endpoint, Transports};

impl Endpoint {
    /// Post a receive. A completion comes.
    ///
    /// # Errors
    /// Its source stands for nobody, or the endpoint is of no more use.
    #[inline]
    pub fn post(&mut self, post: &Post) -> Result<(), PostError> {
        let core = &mut self.core;
        if let Some(error) = &core.failed {
            return Err(PostError::Endpoint(error.clone()));
        }
        let pattern = core
            .pattern(post.space, post.source, post.tag, post.ignore)
            .ok_or_else(|| PostError::Address(post.source.unwrap_or(Address(u64::MAX))))?;
        let is_multi = post.kind != Kind::Once;
        let key = core.remember(post.context, post.flags, post.space, is_multi);
        let receive = Posting { pattern, buffer: post.buffer, context: key as u64, kind: post.kind };
        let mut hand = Hand(&mut self.transports);
        let posting = core.engines[post.space as usize].post_placing(&receive, &mut hand);
        core.handle_posting(key, posting);
        Ok(())
    }

    /// Look for an unexpected message. Drives progress once; [`Completed::Peeked`] or [`Completed::NoMessage`] comes,
    /// or [`Completed::Failed`] where a transport failed.
    pub fn peek(&mut self, peek: &Peek) {
        let what = match self.progress(self.core.now) {
            Ok(_) => self.core.peek(peek).map_or(Completed::NoMessage, Completed::Peeked),
            Err(_) => Completed::Failed(Failure::Device),
        };
        self.core.complete(peek.context, peek.flags, peek.space, what);
    }

    /// Receive the message that a peek of this context claimed. A completion comes, under the same context.
    ///
    /// # Errors
    /// There is no such claim (any more).
    pub fn receive_claimed(&mut self, context: u64, buffer: Buffer, flags: u32) -> Result<(), NoClaim> {
        let core = &mut self.core;
        let claim = core.take_claim(context)?;
        let key = core.remember(context, flags, claim.space, false);
        core.statistics.matched_unexpected += 1;
        if !core.engines[claim.space as usize].receive_claimed(claim.claim, buffer, key as u64) {
            core.receives.remove(key);
            core.complete(context, flags, claim.space, Completed::Failed(core.why_gone()));
        }
        Ok(())
    }

    /// Drop the message that a peek of this context claimed. [`Completed::Peeked`] comes, under the same context.
    ///
    /// # Errors
    /// There is no such claim (any more).
    pub fn discard_claimed(&mut self, context: u64, flags: u32) -> Result<(), NoClaim> {
        let core = &mut self.core;
        let claim = core.take_claim(context)?;
        let what = if core.engines[claim.space as usize].discard_claimed(claim.claim) {
            core.handle_discarded(&claim.message);
            Completed::Peeked(core.message_peeked(&claim.message))
        } else {
            Completed::Failed(core.why_gone())
        };
        core.complete(context, flags, claim.space, what);
        Ok(())
    }

    /// Cancel one receive of this context, the oldest, of either space. Its completion says whether it was cancelled
    /// or a message came first. False: none is pending.
    ///
    /// The first in a while looks at every receive that is pending, later ones do not.
    pub fn cancel(&mut self, context: u64) -> bool {
        let core = &mut self.core;
        while let Some(receive) = core.cancelling.oldest(context, &core.receives) {
            let outcome = receive.posted.map(|id| core.engines[receive.space as usize].cancel(id));
            if outcome == Some(CancelOutcome::Pending) && is_planted(Bug::DoubleCompletion) {
                core.complete(context, receive.flags, receive.space, Completed::Cancelled);
            }
            if matches!(outcome, Some(CancelOutcome::Cancelled | CancelOutcome::Pending)) {
                core.poll_engines();
                return true;
            }
        }
        false
    }
}

impl Core {
    /// What to look for. `None`: the source stands for nobody.
    #[inline]
    fn pattern(&self, space: Space, source: Option<Address>, tag: Tag, ignore: Ignore) -> Option<Pattern> {
        let source = match source {
            None => Source::Any,
            Some(address) => Source::Peer(self.peers.at(address)?),
        };
        Some(match space {
            Space::Tagged => Pattern { tag, ignore, source },
            Space::Untagged => Pattern { tag: Tag(0), ignore: Ignore::ALL, source },
        })
    }

    #[inline]
    fn remember(&mut self, context: u64, flags: u32, space: Space, is_multi: bool) -> usize {
        self.receives_made += 1;
        let order = self.receives_made;
        self.receives.insert(Receive { context, flags, space, is_multi, order, posted: None::<ReceiveId> })
    }

    fn peek(&mut self, peek: &Peek) -> Option<Message> {
        self.statistics.peeks += 1;
        let pattern = self.pattern(peek.space, peek.source, peek.tag, peek.ignore)?;
        let engine = &mut self.engines[peek.space as usize];
        let found = match peek.action {
            PeekAction::Look => engine.peek(&pattern)?,
            PeekAction::Claim => {
                let (claim, message) = engine.claim(&pattern)?;
                self.claims.push(Claim { context: peek.context, space: peek.space, claim, message });
                message
            }
            PeekAction::Discard => {
                let message = engine.discard(&pattern)?;
                self.handle_discarded(&message);
                message
            }
        };
        Some(self.message_peeked(&found))
    }

    /// The oldest claim of this context.
    fn take_claim(&mut self, context: u64) -> Result<Claim, NoClaim> {
        let at = self.claims.iter().position(|claim| claim.context == context);
        at.map(|at| self.claims.remove(at)).ok_or(NoClaim { context })
    }

    fn message_peeked(&self, message: &Peeked) -> Message {
        Message {
            tag: message.tag,
            length: message.length,
            cq_data: message.immediate,
            source: self.peers[message.source].address,
        }
    }

    /// Whoever sent it need not wait for anybody to receive it.
    fn handle_discarded(&mut self, message: &Peeked) {
        self.touch(message.source);
        if let Some(wait) = self.awaited.take(message.app_ctx, message.source)
            && wait.wants != 0
        {
            self.note(message.source, Control::Discarded(wait.operation));
        }
    }

    /// What the engines have to say of receives.
    #[inline]
    pub(super) fn poll_engines(&mut self) {
        for space in [Space::Tagged, Space::Untagged] {
            while let Some(&ended) = self.engines[space as usize].next_completion() {
                self.handle_ended(&ended);
            }
        }
    }

    #[inline]
    fn handle_ended(&mut self, ended: &Ended) {
        let Ok(key) = usize::try_from(ended.context) else { return };
        let Some(&receive) = self.receives.get(key) else { return };
        let Receive { context, flags, space, is_multi, .. } = receive;
        match &ended.end {
            End::Received(message) => {
                if !is_multi {
                    self.receives.remove(key);
                }
                self.complete_receive(&receive, message);
            }
            End::Cancelled => {
                self.receives.remove(key);
                self.statistics.cancelled += 1;
                self.complete(context, flags, space, Completed::Cancelled);
            }
            End::Failed { source, error, app_ctx, .. } => {
                self.awaited.take(*app_ctx, *source);
                if !is_multi {
                    self.receives.remove(key);
                }
                let failure = match error {
                    DataError::PathLost => Failure::Lost,
                    DataError::DeviceFailed => Failure::Device,
                    DataError::Completion { .. } => Failure::ReadFailed,
                };
                self.touch(*source);
                self.complete(context, flags, space, Completed::Failed(failure));
            }
            End::Released => {
                self.receives.remove(key);
                self.release(&receive);
            }
        }
    }

    /// A multi-receive buffer takes no more: the completion of its last message says so, if that is the newest.
    fn release(&mut self, receive: &Receive) {
        let Receive { context, flags, space, .. } = *receive;
        if let Some(newest) = self.completions.back_mut()
            && (newest.context, newest.space) == (context, space)
            && let Completed::Received { released, .. } = &mut newest.what
        {
            *released = true;
            return;
        }
        self.complete(context, flags, space, Completed::Released);
    }

    #[inline]
    pub(super) fn complete_receive(&mut self, receive: &Receive, message: &Received) {
        let source = message.source;
        self.statistics.received += 1;
        self.statistics.bytes_received += message.placed;
        self.statistics.truncated += u64::from(message.is_truncated());
        self.touch(source);
        if message.app_ctx & ACKNOWLEDGE != 0 || is_ours(message.app_ctx) {
            self.acknowledge(message);
        }
        let what = Completed::Received {
            message: Message {
                tag: message.tag,
                length: message.length,
                cq_data: message.immediate,
                source: self.peers[source].address,
            },
            address: message.address,
            placed: message.placed,
            released: false,
        };
        self.complete(receive.context, receive.flags, receive.space, what);
    }

    /// The sender of a message that is in its receive wants to hear of it.
    fn acknowledge(&mut self, message: &Received) {
        let source = message.source;
        if message.matched_by.is_some() {
            if let Ok(context) = AppContext::from_bits(message.app_ctx) {
                self.tell_acknowledged(source, context.operation, context.flags.bits());
            }
        } else if let Some(wait) = self.awaited.take(message.app_ctx, source) {
            self.tell_acknowledged(source, wait.operation, wait.wants);
        }
    }

    /// Tell a sender what it waits for.
    pub(super) fn tell_acknowledged(&mut self, peer: PeerId, operation: OperationId, wants: u8) {
        if wants & SendFlags::ACKNOWLEDGE_DELIVERY.bits() != 0 {
            self.note(peer, Control::Delivered(operation));
        }
        if wants & SendFlags::ACKNOWLEDGE_MATCH.bits() != 0 {
            self.note(peer, Control::MatchAcknowledged(operation));
        }
    }
}

/// The transports, for an engine that wants something done at once.
struct Hand<'a>(&'a mut Transports);

impl Placer for Hand<'_> {
    #[inline]
    fn place(&mut self, device: DeviceId, message: MessageToken, buffer: &Buffer) -> bool {
        let transport = self.0.get_mut(usize::from(device.0));
        transport.is_some_and(|transport| transport.place_held(message, buffer))
    }

    #[inline]
    fn add(&mut self, device: DeviceId, add: &Add<'_>) -> bool {
        let transport = self.0.get_mut(usize::from(device.0));
        transport.is_some_and(|transport| transport.add(add))
    }
}

/// The flags of a message whose sender waits to hear of it.
pub(super) const ACKNOWLEDGE: u32 =
    SendFlags::ACKNOWLEDGE_MATCH.with(SendFlags::ACKNOWLEDGE_DELIVERY).bits() as u32;
