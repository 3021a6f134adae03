//! What comes in: completions of the receive side become events.
//!
//! Flags decide, not opcodes (TM-CONTRACT 15.6): that is done below, in the TM-SRQ; here is what it means to an engine.
//! Not here: answers, commands, and what fails.

use std::ops::Range;

use super::super::completion::{Completion, Flags, PollError, Section};
use super::super::error::Errno;
use super::super::ledger::{Kind, Ledger, LedgerError};
use super::super::sys;
use super::super::tag_matching::TagCompletionKind;
use super::held::{Body, Held};
use super::peers::Peers;
use super::reads::{ReadFor, ReadJob};
use super::sending::SendFailure;
use super::side::{ReceiveSide, Stage, Untagged};
use super::{Scratch, VerbsDevice};
use crate::ids::{MessageToken, PeerId, Tag, TagHandle};
use crate::seam::{
    Arrival, Buffer, Data, DataTarget, DeviceError, Event, EventSink, Header, Match, MatchStage, Operation,
    OperationDone, Remote,
};
use crate::wire::{self, Message};

impl VerbsDevice {
    /// Take completions of the receive side, so many that `room` events will do.
    #[inline(always)]
    pub(super) fn poll_receives(&mut self, room: usize, sink: &mut dyn EventSink) -> Received {
        if matches!(self.side, ReceiveSide::Matching(_)) {
            return self.poll_matching(room, sink);
        }
        let taken = self.poll_plain();
        Received { taken, told: 0, is_all: taken == 0 }
    }

    /// What is taken is told before the owner can submit again, but for releases: a completion that was polled and not
    /// told would leave the engine with an entry that the driver has given to another. Nothing is told before the
    /// library's section is closed.
    #[inline(always)]
    fn poll_matching(&mut self, room: usize, sink: &mut dyn EventSink) -> Received {
        debug_assert!(self.pending.is_empty(), "what waits is told before: {:?}", self.pending);
        let Self { side: ReceiveSide::Matching(matching), peers, scratch, .. } = self else {
            return Received::NOTHING;
        };
        let max = (room / 2).clamp(1, BATCH);
        let taken = match matching.srq.open() {
            Ok(None) => return Received::NOTHING,
            Ok(Some((section, ledger))) => take(section, ledger, peers, scratch, max),
            Err(error) => Batch { taken: 0, error: Some(error) },
        };
        self.handle_batch(taken, max, sink)
    }

    /// What was taken of the library.
    #[inline(always)]
    fn handle_batch(&mut self, batch: Batch, max: usize, sink: &mut dyn EventSink) -> Received {
        let Batch { taken, error } = batch;
        let told = if self.scratch.others.is_empty() {
            // Nothing came but matches.
            if let Some(matches) = self.scratch.matches.get(..taken) {
                sink.handle_matches(self.config.id, matches);
            }
            taken
        } else if taken == 1 {
            self.handle_alone(sink)
        } else {
            self.handle_in_turn(taken);
            0
        };
        if let Some(error) = error {
            self.fail(DeviceError::Contract(error.to_string()));
            return Received { taken: 0, told, is_all: true };
        }
        Received { taken, told, is_all: taken < max }
    }

    /// One completion that is no whole match: nearly always of an ADD, which then is told without a detour. How many
    /// events were told.
    #[inline(never)]
    fn handle_alone(&mut self, sink: &mut dyn EventSink) -> usize {
        let id = self.config.id;
        let Some((_, completion)) = self.scratch.others.pop() else { return 0 };
        let Some(matching) = self.matching() else { return 0 };
        match matching.srq.account(&completion) {
            Ok((TagCompletionKind::Operation(kind, handle), false)) => {
                let _hold = sink.handle_event(id, &Event::Operation(operation(kind, handle, &completion)));
                1
            }
            accounted => {
                self.handle_accounted(&completion, accounted);
                0
            }
        }
    }

    /// So many completions in their order, of which some are no whole matches.
    #[inline(never)]
    fn handle_in_turn(&mut self, taken: usize) {
        let mut others = std::mem::take(&mut self.scratch.others);
        let mut next = 0;
        for (place, completion) in others.drain(..) {
            // Nothing follows a failure.
            let Some(matching) = self.matching() else { break };
            let accounted = matching.srq.account(&completion);
            self.queue_matches(next..place);
            next = place + 1;
            self.handle_accounted(&completion, accounted);
        }
        if self.failure.is_none() {
            self.queue_matches(next..taken);
        }
        self.scratch.others = others;
    }

    fn queue_matches(&mut self, which: Range<usize>) {
        let matches = self.scratch.matches.get(which).unwrap_or_default();
        self.pending.extend(matches.iter().copied().map(Event::Matched));
    }

    fn handle_accounted(
        &mut self,
        completion: &Completion,
        accounted: Result<(TagCompletionKind, bool), LedgerError>,
    ) {
        let (kind, released) = match accounted {
            Ok(told) => told,
            Err(error) => return self.fail(DeviceError::Contract(error.to_string())),
        };
        match kind {
            TagCompletionKind::Operation(kind, handle) => {
                self.tell_operation(kind, handle, completion, released)
            }
            TagCompletionKind::Match(handle) => self.tell_match(handle, completion, released),
            TagCompletionKind::Unexpected => self.receive(completion, true, true),
            TagCompletionKind::NoTag => self.receive(completion, false, false),
            TagCompletionKind::Failed if self.is_cut_off(completion) => self.receive_cut_off(completion),
            TagCompletionKind::Failed if is_requester(completion.status) => {
                // Of a READ that the device does by itself: its queue pair is dead, the list is not.
                self.fail_path_by_number(completion.qp_num, SendFailure::of(completion));
            }
            // It names no entry, and the driver has freed a receive that may still be posted (TM-CONTRACT 9).
            TagCompletionKind::Failed => self.fail(DeviceError::Completion {
                status: completion.status,
                vendor_error: completion.vendor_error,
                wr_id: completion.wr_id,
            }),
        }
    }

    fn tell_operation(&mut self, kind: Kind, handle: TagHandle, completion: &Completion, released: bool) {
        self.pending.push_back(Event::Operation(operation(kind, handle, completion)));
        if released {
            self.released(handle);
        }
    }

    /// The driver is done with an entry. The engine is told if nothing else writes to its buffer.
    pub(super) fn released(&mut self, handle: TagHandle) {
        let Some(matching) = self.matching() else { return };
        match matching.told(handle.index).stage {
            Stage::HandedBack(..) | Stage::Broken(_) | Stage::DataFollows(_) => {
                matching.set_released(handle.index);
            }
            Stage::Posted | Stage::Done => match self.pending.back_mut() {
                // The match that was told just now is the last of its entry.
                Some(Event::Matched(matched))
                    if matched.handle == handle && matched.stage == MatchStage::Complete =>
                {
                    matched.released = true;
                }
                _ => self.pending.push_back(Event::Released(handle)),
            },
        }
    }

    fn tell_match(&mut self, handle: TagHandle, completion: &Completion, released: bool) {
        let Some(source) = self.source(completion.qp_num) else {
            return self.unknown_number(completion.qp_num);
        };
        let index = handle.index;
        let Some(matching) = self.matching() else { return };
        let (stage, buffer) = (matching.told(index).stage, matching.srq.ledger().buffer(index));
        let incomplete = completion.status == sys::IBV_WC_TM_RNDV_INCOMPLETE;
        match stage {
            Stage::Posted => self.tell_first(handle, &buffer, source, completion, incomplete),
            // The rest of a message that was under way when its queue pair failed.
            Stage::DataFollows(peer) if incomplete => {
                self.set_stage(index, Stage::Broken(peer));
                self.break_path(source, completion);
            }
            Stage::DataFollows(_) => {
                self.set_stage(index, Stage::Done);
                self.pending.push_back(Event::Data(Data {
                    target: DataTarget::Entry(handle),
                    length: completion.byte_len.into(),
                    immediate: completion.immediate,
                    error: None,
                }));
            }
            Stage::HandedBack(peer, app_ctx, tag) => self.read_handed_back(index, buffer, peer, app_ctx, tag),
            Stage::Broken(_) | Stage::Done => {
                let text = format!("entry {index} got one more match completion");
                self.fail(DeviceError::Contract(text));
            }
        }
        if released {
            self.released(handle);
        }
    }

    /// The first completion of a match.
    fn tell_first(
        &mut self,
        handle: TagHandle,
        buffer: &Buffer,
        source: PeerId,
        completion: &Completion,
        incomplete: bool,
    ) {
        let tag = Tag(completion.tag);
        let (next, stage, length) = match (incomplete, completion.flags.has(Flags::DATA_VALID)) {
            (false, true) => (Stage::Done, MatchStage::Complete, u64::from(completion.byte_len)),
            (false, false) => (Stage::DataFollows(source), MatchStage::DataFollows, 0),
            // The headers may not be in the buffer yet, and the order of matches is that of these completions: told
            // as data that follows, it is read here.
            (true, false) => (Stage::HandedBack(source, completion.app_ctx, tag), MatchStage::DataFollows, 0),
            (true, true) => match self.request_in(buffer) {
                Ok(remote) => (Stage::Done, MatchStage::SoftwareRendezvous(remote), remote.length),
                Err(_) => (Stage::Broken(source), MatchStage::DataFollows, 0),
            },
        };
        self.set_stage(handle.index, next);
        self.pending.push_back(Event::Matched(Match {
            handle,
            source,
            tag,
            app_ctx: completion.app_ctx,
            length,
            immediate: completion.immediate,
            stage,
            released: false,
        }));
        if let Stage::Broken(_) = next {
            self.break_path(source, completion);
        }
    }

    /// The second completion of a rendezvous that was handed back in two.
    fn read_handed_back(&mut self, index: u32, buffer: Buffer, peer: PeerId, app_ctx: u32, tag: Tag) {
        match self.request_in(&buffer) {
            Ok(remote) => {
                let target = ReadFor::Entry(index);
                self.start_read(ReadJob::new(target, peer, (tag, app_ctx), remote, buffer));
            }
            Err(_) => {
                self.set_stage(index, Stage::Broken(peer));
                self.fail_path_of(peer, None);
            }
        }
    }

    /// The request whose headers lie in a tagged buffer.
    fn request_in(&self, buffer: &Buffer) -> Result<Remote, String> {
        let mut bytes = [0; wire::Rendezvous::LENGTH_MAX];
        let count = self.regions.read(buffer, &mut bytes)?;
        let short = bytes.get(..wire::Rendezvous::HEADER_LENGTH.min(count)).unwrap_or_default();
        let long = bytes.get(..count).unwrap_or_default();
        match wire::decode(short).or_else(|_| wire::decode(long)) {
            Ok(Message::Rendezvous(request)) => Ok(remote_of(&request)),
            Ok(Message::Eager(_) | Message::Fin(_) | Message::Control(_)) => {
                Err("a rendezvous was handed back without its headers".into())
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// A message in a buffer of the slab.
    fn receive(&mut self, completion: &Completion, counted: bool, may_have_tag: bool) {
        let buffer = u32::try_from(completion.wr_id).unwrap_or(u32::MAX);
        if !self.take_back(completion.wr_id) {
            return;
        }
        let Some(source) = self.source(completion.qp_num) else {
            return self.unknown_number(completion.qp_num);
        };
        // SAFETY: the device is done with the buffer, which is not posted.
        let bytes = unsafe { self.side.bytes(buffer, completion.byte_len) };
        let message = if may_have_tag { wire::decode(bytes).ok() } else { None };
        let header = message.and_then(|message| header(&message, completion.immediate));
        let Some(header) = header else {
            return self.receive_untagged(source, buffer, completion.byte_len, counted);
        };
        let body = header.remote.map_or(Body::Slab(buffer), Body::Remote);
        let in_hand = header.remote.is_none();
        if !in_hand {
            self.buffers.give_back(buffer);
        }
        let message = self.held.insert(Held { source, header, body });
        self.pending.push_back(Event::Arrived(Arrival { message, source, header, in_hand, counted }));
    }

    /// A receive comes back. False: it was not posted, which is the end of the device.
    fn take_back(&mut self, wr_id: u64) -> bool {
        let is_posted = u32::try_from(wr_id).is_ok_and(|buffer| self.buffers.completed(buffer));
        if !is_posted {
            let text = format!("a completion names receive {wr_id:#x}, which is not posted");
            self.fail(DeviceError::Contract(text));
        }
        is_posted
    }

    /// Whether an error is of a message that its queue pair's failure cut off.
    fn is_cut_off(&mut self, completion: &Completion) -> bool {
        completion.status == sys::IBV_WC_WR_FLUSH_ERR
            && u32::try_from(completion.wr_id).is_ok_and(|buffer| self.buffers.is_posted(buffer))
            && self.peers.by_number(completion.qp_num).is_some()
    }

    /// The device had begun to put a message that it counted as unexpected into a buffer; the rest will not come
    /// (TM-CONTRACT 13). Were it not told, the device's count would be ahead of the engine's for ever.
    fn receive_cut_off(&mut self, completion: &Completion) {
        if !self.take_back(completion.wr_id) {
            return;
        }
        self.buffers.give_back(u32::try_from(completion.wr_id).unwrap_or(u32::MAX));
        if let Some(source) = self.source(completion.qp_num) {
            let message = self.next_untagged();
            self.pending.push_back(Event::Untagged { source, message, length: 0, counted: true });
        }
        self.fail_path_by_number(completion.qp_num, SendFailure::of(completion));
    }

    fn next_untagged(&mut self) -> MessageToken {
        let token = MessageToken(UNTAGGED | self.untagged_count);
        self.untagged_count = self.untagged_count.wrapping_add(1) & !UNTAGGED;
        token
    }

    fn receive_untagged(&mut self, source: PeerId, buffer: u32, length: u32, counted: bool) {
        let token = self.next_untagged();
        let event = Event::Untagged { source, message: token, length: length.into(), counted };
        self.pending.push_back(event);
        if !self.config.keep_untagged {
            return self.buffers.give_back(buffer);
        }
        let copied = (!self.buffers.may_keep()).then(|| {
            // SAFETY: the buffer is not posted.
            let bytes: Box<[u8]> = unsafe { self.side.bytes(buffer, length) }.into();
            self.buffers.give_back(buffer);
            bytes
        });
        self.untagged.push_back(Untagged { source, token, buffer, length, copied });
    }

    /// The peer at the other end of a queue pair.
    fn source(&mut self, number: u32) -> Option<PeerId> {
        self.peers.heard(number)
    }

    fn unknown_number(&mut self, number: u32) {
        let text = format!("a completion names queue pair {number:#x}, which does not exist");
        self.fail(DeviceError::Contract(text));
    }

    pub(super) fn set_stage(&mut self, index: u32, stage: Stage) {
        if let Some(matching) = self.matching() {
            matching.set_stage(index, stage);
        }
    }

    fn break_path(&mut self, peer: PeerId, completion: &Completion) {
        self.fail_path_of(peer, Some(SendFailure::of(completion)));
    }

    #[inline(never)]
    fn poll_plain(&mut self) -> usize {
        let mut completions = std::mem::take(&mut self.scratch.completions);
        completions.clear();
        let result = match &mut self.side {
            ReceiveSide::Plain(plain) => plain.queue.poll(|completion| completions.push(completion)),
            ReceiveSide::Matching(_) | ReceiveSide::Gone => Ok(0),
        };
        for completion in &completions {
            if completion.is_success() {
                self.receive(completion, false, true);
            } else {
                self.receive_failed(completion);
            }
        }
        self.scratch.completions = completions;
        let count = result.unwrap_or_else(|error| {
            self.fail(DeviceError::Contract(error.to_string()));
            0
        });
        let free = self.buffers.free();
        // Where there are few, each is posted again at once.
        if (free >= REFILL || free > 0 && self.buffers.posted < FEW)
            && let Err(errno) = self.refill_plain()
        {
            self.fail(DeviceError::System { call: "ibv_post_srq_recv", errno: errno.0 });
        }
        count
    }

    /// Without tag matching an error names the receive that it used up, and kills its queue pair alone.
    fn receive_failed(&mut self, completion: &Completion) {
        let buffer = u32::try_from(completion.wr_id).unwrap_or(u32::MAX);
        if !is_requester(completion.status) && self.buffers.completed(buffer) {
            self.buffers.give_back(buffer);
        }
        self.fail_path_by_number(completion.qp_num, SendFailure::of(completion));
    }

    /// Post every free buffer; with tag matching the engine says when.
    pub(super) fn refill_plain(&mut self) -> Result<(), Errno> {
        let ReceiveSide::Plain(plain) = &mut self.side else { return Ok(()) };
        self.buffers.take(usize::MAX, &mut self.scratch.indexes);
        plain.srq.post(&self.scratch.indexes)?;
        self.buffers.posted += u32::try_from(self.scratch.indexes.len()).unwrap_or(u32::MAX);
        Ok(())
    }
}

/// Take completions from an open section, `max` at most.
///
/// What most receives in the list come to, a whole message that is the last of its entry, is accounted for as it is
/// read, and told many at a time. That changes no other completion's account.
#[inline(never)]
fn take(
    mut section: Section<'_>,
    ledger: &mut Ledger,
    peers: &mut Peers,
    scratch: &mut Scratch,
    max: usize,
) -> Batch {
    let Scratch { matches, others, .. } = scratch;
    debug_assert!(others.is_empty(), "{others:?}");
    let (mut taken, mut error) = (0, None);
    let mut places = matches.get_mut(..max).unwrap_or_default().iter_mut();
    let mut place = places.next();
    while let Some(matched) = place {
        if section.is_whole()
            && let Some(source) = peers.heard(section.qp_num())
            && let handle = TagHandle::from_bits(section.wr_id())
            && ledger.last_matched(handle)
        {
            // All else is as in every one of them.
            (matched.handle, matched.source) = (handle, source);
            let (tag, app_ctx) = section.tag_and_app_ctx();
            (matched.tag, matched.app_ctx) = (Tag(tag), app_ctx);
            matched.length = section.byte_len().into();
        } else {
            others.push((taken, section.completion()));
        }
        taken += 1;
        place = places.next();
        // To go on is to take the next one.
        let goes_on = place.is_some()
            && section.advance().unwrap_or_else(|broken| {
                error = Some(broken);
                false
            });
        if !goes_on {
            break;
        }
    }
    let matches = taken - others.len();
    ledger.tags_back(u32::try_from(matches).unwrap_or(u32::MAX));
    Batch { taken, error }
}

/// Completions that were taken of the library: how many, and whether its queue is broken.
#[derive(Clone, Copy, Debug)]
struct Batch {
    taken: usize,
    error: Option<PollError>,
}

/// What an engine is told of a list operation.
fn operation(kind: Kind, handle: TagHandle, completion: &Completion) -> OperationDone {
    OperationDone {
        operation: match kind {
            Kind::Add => Operation::Add(handle),
            Kind::Del => Operation::Del(handle),
            Kind::Sync => Operation::Sync,
        },
        success: completion.is_success(),
        phase: upper_half(completion.app_ctx),
        sync_requested: completion.flags.has(Flags::SYNC_REQUESTED),
    }
}

/// What was taken of the receive side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Received {
    /// Completions.
    pub(super) taken: usize,
    /// Events that were told.
    pub(super) told: usize,
    /// No more were there.
    pub(super) is_all: bool,
}

impl Received {
    const NOTHING: Self = Self { taken: 0, told: 0, is_all: true };
}

/// A whole message was matched, and that is the last of its entry: what all such have in common.
pub(super) const LAST_MATCH: Match = Match {
    handle: TagHandle { index: 0, generation: 0 },
    source: PeerId(0),
    tag: Tag(0),
    app_ctx: 0,
    length: 0,
    immediate: None,
    stage: MatchStage::Complete,
    released: true,
};

/// What the engine is told of a message that can be matched.
fn header(message: &Message<'_>, immediate: Option<u32>) -> Option<Header> {
    match message {
        Message::Eager(eager) => Some(Header {
            tag: eager.tag,
            length: eager.payload.length(),
            app_ctx: eager.context.to_bits(),
            immediate,
            remote: None,
        }),
        Message::Rendezvous(request) => Some(Header {
            tag: request.tag,
            length: request.memory.length,
            app_ctx: request.context.to_bits(),
            immediate,
            remote: Some(remote_of(request)),
        }),
        Message::Fin(_) | Message::Control(_) => None,
    }
}

fn remote_of(request: &wire::Rendezvous) -> Remote {
    let wire::RemoteMemory { address, key, length } = request.memory;
    Remote { address, key, length }
}

/// Errors of those who ask, as opposed to those who answer.
const fn is_requester(status: u32) -> bool {
    matches!(
        status,
        sys::IBV_WC_WR_FLUSH_ERR
            | sys::IBV_WC_BAD_RESP_ERR
            | sys::IBV_WC_REM_INV_REQ_ERR
            | sys::IBV_WC_REM_ACCESS_ERR
            | sys::IBV_WC_REM_OP_ERR
            | sys::IBV_WC_RETRY_EXC_ERR
            | sys::IBV_WC_RNR_RETRY_EXC_ERR
    )
}

const fn upper_half(word: u32) -> u16 {
    (word >> 16) as u16
}

/// Completions that are taken at a time.
pub(super) const BATCH: usize = 32;
/// Without tag matching receives are posted by so many at least.
const REFILL: usize = 8;
/// Few receives that are posted.
const FEW: u32 = 32;
/// Names of messages without a tag are told from those of held ones by this bit.
const UNTAGGED: u64 = 1 << 63;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_messages_with_a_tag_have_a_header() {
        let eager = wire::Eager {
            context: wire::AppContext::default(),
            tag: Tag(5),
            payload: wire::Payload::new(b"abc"),
        };
        let told = header(&Message::Eager(eager), Some(9)).unwrap();
        assert_eq!((told.tag, told.length, told.immediate, told.remote), (Tag(5), 3, Some(9), None));
        let memory = wire::RemoteMemory { address: 1, key: 2, length: 3 };
        let request = wire::Rendezvous { context: wire::AppContext::default(), tag: Tag(6), memory };
        let told = header(&Message::Rendezvous(request), None).unwrap();
        assert_eq!(told.remote, Some(Remote { address: 1, key: 2, length: 3 }));
        assert_eq!(header(&Message::Fin(request.fin()), None), None);
    }
}
