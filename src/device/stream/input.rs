//! Reading from a link: frames are taken apart as they come, many to a read; a payload that has a buffer is read into it.

use std::io;

use super::frame::{Head, IMMEDIATE_LENGTH, Kind, NUMBER_LENGTH, ReadRequest};
use super::link::Link;
use super::medium::{PEEKED, Stream};
use super::parts::Parts;
use super::reads::UNREADABLE;
use crate::device::inbox::{self, Body, Incoming, Taken, Target, Teller, Violation, WholePlace};
use crate::device::sockets::status::{is_nothing, reason_of};
use crate::device::sockets::sys;
use crate::device::transport::{CloseReason, Reaction};
use crate::seam::{DataError, Header};
use crate::wire::{Eager, SendFlags};

/// How far reading from a link got.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Progress {
    /// Nothing more is there.
    Dry,
    /// More may be there.
    More,
    /// It is over.
    Ended(CloseReason),
}

/// Why taking bytes stopped.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Stop {
    /// More are needed.
    Dry,
    /// Enough was told.
    Full,
    Ended(CloseReason),
}

impl Parts {
    /// Take what was read before and not taken, then read once and take that.
    pub(super) fn read<S: Stream>(
        &mut self,
        link: &mut Link<S>,
        scratch: &mut [u8],
        teller: &mut Teller<'_>,
    ) -> Progress {
        if link.is_closing() {
            return drain(link, scratch);
        }
        if link.input.is_between() && self.take_whole(link, teller) && !link.stream.has_news() {
            return Progress::Dry;
        }
        if link.input.has_more {
            match self.take_kept(link, teller) {
                Stop::Dry => {}
                Stop::Full => return Progress::More,
                Stop::Ended(reason) => return Progress::Ended(reason),
            }
        }
        let read = if link.input.body.is_some() {
            self.read_body(link, scratch)
        } else {
            read_frames(link, scratch)
        };
        match read {
            Ok(Read { count: 0, .. }) => Progress::Ended(end_of(link)),
            Ok(Read { filled, is_dry, .. }) => {
                let bytes = scratch.get(..filled).unwrap_or_default();
                let (taken, stop) = self.take(link, bytes, teller);
                link.input.keep(bytes.get(taken..).unwrap_or_default(), stop == Stop::Full);
                match stop {
                    Stop::Dry if is_dry => Progress::Dry,
                    Stop::Dry | Stop::Full => Progress::More,
                    Stop::Ended(reason) => Progress::Ended(reason),
                }
            }
            Err(error) if is_nothing(&error) => Progress::Dry,
            Err(error) => Progress::Ended(reason_of(&error)),
        }
    }

    /// Take messages with a tag that are here from the first byte to the last, from where they lie to where they belong, and
    /// say whether there was any. Whatever is not quite so is left for [`Self::take`], which says what is wrong with it.
    fn take_whole<S: Stream>(&mut self, link: &mut Link<S>, teller: &mut Teller<'_>) -> bool {
        let Some(peer) = link.peer else { return false };
        let mut any = false;
        while !teller.is_full()
            && let Some((there, front)) = link.stream.peek()
            && let Some(whole) = Whole::of(&front, there)
            && self.inbox.takes(whole.payload as u64)
        {
            any = true;
            let Whole { header, front, payload } = whole;
            match self.inbox.arrive_whole(peer, &header, teller) {
                WholePlace::Buffer(buffer) => {
                    let stretches = self.memory.stretches(&buffer, 0, payload as u64);
                    link.stream.take(front, payload, stretches);
                }
                WholePlace::Nowhere => link.stream.take(front, payload, std::iter::empty()),
                WholePlace::Held => {
                    let mut bytes = vec![0; payload];
                    link.stream.take_bytes(front, &mut bytes);
                    self.inbox.hold(link.id, peer, &header, bytes);
                }
            }
        }
        any
    }

    /// What was read when enough had been told.
    fn take_kept<S: Stream>(&mut self, link: &mut Link<S>, teller: &mut Teller<'_>) -> Stop {
        let bytes = std::mem::take(&mut link.input.bytes);
        let start = link.input.start;
        let (taken, stop) = self.take(link, bytes.get(start..).unwrap_or_default(), teller);
        let input = &mut link.input;
        input.bytes = bytes;
        input.start = start + taken;
        input.has_more = stop == Stop::Full;
        if stop == Stop::Dry {
            // What is left is less than a header.
            input.bytes.drain(..input.start);
            input.start = 0;
        }
        stop
    }

    /// A payload is coming in: what has a buffer goes there, what is behind it into `scratch`.
    fn read_body<S: Stream>(&mut self, link: &mut Link<S>, scratch: &mut [u8]) -> io::Result<Read> {
        let Some(body) = &mut link.input.body else { return read_frames(link, scratch) };
        let placing = match body.target {
            Target::Message(index) => self.inbox.placing(index),
            Target::Read(index) => self.reads.placing(index),
            Target::Skip => None,
        };
        let Some((buffer, at)) = placing else { return read_frames(link, scratch) };
        let stretches = self.memory.stretches(&buffer, at, body.remaining).take(sys::PARTS_MAX - 1);
        let room: usize = stretches.clone().map(crate::device::host_memory::Stretch::length).sum();
        // What the buffer is too short for has no place; of more stretches than one call takes, all have.
        let placeable = buffer.length.saturating_sub(at).min(body.remaining);
        let unplaced = if room as u64 == placeable { body.remaining - placeable } else { 0 };
        let scratch = beside::<S>(link.input.is_long, unplaced, scratch);
        // Nothing is asked for behind a long payload where nothing was behind the last one: a call with one part is shorter.
        let is_alone = room > LONG as usize && unplaced == 0 && !link.input.runs_on;
        let scratch = if is_alone { &mut [] } else { scratch };
        let count = link.stream.receive(stretches, scratch)?;
        link.input.runs_on = if is_alone { count == room } else { count as u64 > body.remaining };
        let placed = count.min(room);
        body.remaining -= placed as u64;
        match body.target {
            Target::Message(index) => self.inbox.placed(index, placed as u64),
            Target::Read(index) => self.reads.placed(index, placed as u64),
            Target::Skip => {}
        }
        Ok(Read { count, filled: count - placed, is_dry: count < room + scratch.len() })
    }

    /// Take bytes that came, and say how many.
    fn take<S: Stream>(
        &mut self,
        link: &mut Link<S>,
        bytes: &[u8],
        teller: &mut Teller<'_>,
    ) -> (usize, Stop) {
        let mut at = 0;
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            if let Some(body) = link.input.body {
                let taken = usize::try_from(body.remaining).unwrap_or(usize::MAX).min(rest.len());
                self.feed(body.target, rest.get(..taken).unwrap_or_default());
                at += taken;
                let remaining = body.remaining - taken as u64;
                if remaining > 0 {
                    link.input.body = Some(Body { remaining, ..body });
                    return (at, Stop::Dry);
                }
                link.input.body = None;
                match body.target {
                    Target::Message(index) => self.inbox.end_body(index, teller),
                    Target::Read(index) => self.end_read_body(link, index, teller),
                    Target::Skip => {}
                }
                continue;
            }
            if rest.is_empty() {
                return (at, Stop::Dry);
            }
            if teller.is_full() {
                return (at, Stop::Full);
            }
            match self.take_frame(link, rest, teller) {
                Ok(Some(taken)) => at += taken,
                Ok(None) => return (at, Stop::Dry),
                Err(reason) => return (at, Stop::Ended(reason)),
            }
        }
    }

    fn feed(&mut self, target: Target, bytes: &[u8]) {
        match target {
            Target::Message(index) => self.inbox.feed(index, bytes),
            Target::Read(index) => {
                if let Some((buffer, at)) = self.reads.placing(index) {
                    self.memory.write(&buffer, at, bytes);
                    self.reads.placed(index, bytes.len() as u64);
                }
            }
            Target::Skip => {}
        }
    }

    /// Take a frame, as much of it as is here if its header is, and say how many bytes that was.
    fn take_frame<S: Stream>(
        &mut self,
        link: &mut Link<S>,
        bytes: &[u8],
        teller: &mut Teller<'_>,
    ) -> Result<Option<usize>, CloseReason> {
        let Some(head) = Head::decode(bytes).map_err(CloseReason::Protocol)? else { return Ok(None) };
        link.input.is_long = head.length > LONG;
        let rest = bytes.get(Head::LENGTH..).unwrap_or_default();
        let taken = match head.kind {
            Kind::Message => self.take_message(link, head.length, None, rest, teller)?,
            Kind::MessageWithImmediate => {
                let Some((immediate, rest)) = rest.split_first_chunk::<IMMEDIATE_LENGTH>() else {
                    return Ok(None);
                };
                let immediate = Some(u32::from_be_bytes(*immediate));
                let taken = self.take_message(link, head.length, immediate, rest, teller)?;
                taken.map(|taken| taken + IMMEDIATE_LENGTH)
            }
            Kind::Read | Kind::ReadData | Kind::ReadRefused | Kind::ReadWithdrawn => {
                self.take_read(link, head, rest, teller)?
            }
        };
        Ok(taken.map(|taken| taken + Head::LENGTH))
    }

    fn take_message<S: Stream>(
        &mut self,
        link: &mut Link<S>,
        length: u32,
        immediate: Option<u32>,
        rest: &[u8],
        teller: &mut Teller<'_>,
    ) -> Result<Option<usize>, CloseReason> {
        let arrived = rest.get(..length as usize).unwrap_or(rest);
        let peer = link.peer;
        let incoming = Incoming { link: link.id, peer, arrived, total: length.into(), immediate };
        let taken = self.inbox.take(&incoming, teller)?;
        if taken != Taken::Whole {
            match taken {
                Taken::Needed(_) => return Ok(None),
                Taken::Whole => {}
                Taken::Body(body) => link.input.body = Some(body),
                Taken::Reaction(reaction) => self.react(link, reaction)?,
            }
        }
        if !self.inbox.actions.is_empty() {
            self.act(link);
        }
        Ok(Some(arrived.len()))
    }

    fn react<S>(&mut self, link: &mut Link<S>, reaction: Reaction) -> Result<(), CloseReason> {
        match reaction {
            Reaction::Close => return Err(CloseReason::Here),
            Reaction::Bind(peer) => self.bind(link, peer).map_err(|_| CloseReason::Here)?,
            Reaction::Keep => link.is_kept = true,
            Reaction::Continue => {}
        }
        if link.peer.is_none() {
            link.unbound_messages += 1;
            if link.unbound_messages > UNBOUND_MESSAGES_MAX {
                let what = format!("more than {UNBOUND_MESSAGES_MAX} messages before the link was bound");
                return Err(CloseReason::Protocol(what));
            }
        }
        Ok(())
    }

    /// A frame about a read.
    fn take_read<S>(
        &mut self,
        link: &mut Link<S>,
        head: Head,
        rest: &[u8],
        teller: &mut Teller<'_>,
    ) -> Result<Option<usize>, Violation> {
        let length = head.length as usize;
        let is_good = match head.kind {
            Kind::Read => length == ReadRequest::LENGTH,
            Kind::ReadData => length > NUMBER_LENGTH,
            Kind::ReadRefused | Kind::ReadWithdrawn | Kind::Message | Kind::MessageWithImmediate => {
                length == NUMBER_LENGTH
            }
        };
        if !is_good {
            return Err(Violation(format!("a frame of kind {:?} and {length} bytes", head.kind)));
        }
        if link.peer.is_none() {
            return Err(Violation("a frame about a read before the link was bound".into()));
        }
        if head.kind == Kind::Read {
            let Some(request) = rest.first_chunk() else { return Ok(None) };
            let request = ReadRequest::decode(request).map_err(Violation)?;
            self.serve(link, &request)?;
            return Ok(Some(ReadRequest::LENGTH));
        }
        let Some(number) = rest.first_chunk().map(|number| u64::from_be_bytes(*number)) else {
            return Ok(None);
        };
        let refusal = match head.kind {
            Kind::ReadRefused => Some(UNREADABLE),
            Kind::ReadWithdrawn => Some(DataError::PathLost),
            Kind::Read | Kind::ReadData | Kind::Message | Kind::MessageWithImmediate => None,
        };
        if let Some(why) = refusal {
            self.refused(link, number, why, teller)?;
            return Ok(Some(NUMBER_LENGTH));
        }
        let Some(index) = self.reads.find(link.id, number) else {
            return Err(Violation(format!("data for read {number:#x}, which nobody asked for")));
        };
        let (remaining, left) = ((length - NUMBER_LENGTH) as u64, self.reads.left(index));
        if remaining > left {
            return Err(Violation(format!("{remaining} bytes for a read of which {left} are to come")));
        }
        link.input.body = Some(Body { target: Target::Read(index), remaining });
        Ok(Some(NUMBER_LENGTH))
    }
}

/// A message with a tag, all of which is here.
#[derive(Clone, Copy, Debug)]
struct Whole {
    header: Header,
    /// Bytes before the payload, the head of the frame among them.
    front: usize,
    /// Bytes of it.
    payload: usize,
}

impl Whole {
    /// The one that begins so, of at most so many bytes with its frame's head, if there is one.
    #[inline]
    fn of(front: &[u8; PEEKED], there: usize) -> Option<Self> {
        let (head, behind) = front.split_first_chunk()?;
        let (length, has_immediate) = Head::of_message(head)?;
        let (immediate, message) = if has_immediate {
            let (immediate, message) = behind.split_first_chunk()?;
            (Some(u32::from_be_bytes(*immediate)), message)
        } else {
            (None, behind)
        };
        let (context, tag) = Eager::peek(message.first_chunk()?)?;
        let payload = (length as usize).checked_sub(Eager::HEADER_LENGTH)?;
        let front = PEEKED - message.len() + Eager::HEADER_LENGTH;
        // What was looked at and is not there yet is zeros: without all of the header the rest says nothing.
        let is_here = there.checked_sub(front).is_some_and(|behind| payload <= behind);
        // Whatever is not so, the long way names.
        let is_good = context.flags.contains(SendFlags::CQ_DATA) == has_immediate;
        let header = inbox::header(context, tag, payload as u64, immediate);
        (is_here && is_good).then_some(Self { header, front, payload })
    }
}

/// What a read brought.
#[derive(Clone, Copy, Debug)]
struct Read {
    /// Bytes; 0: the other side is done.
    count: usize,
    /// Bytes at the beginning of the scratch memory.
    filled: usize,
    /// There was room for more.
    is_dry: bool,
}

/// Nothing has a buffer: behind what was read of a header and not taken.
fn read_frames<S: Stream>(link: &mut Link<S>, scratch: &mut [u8]) -> io::Result<Read> {
    let before = link.input.rest();
    let (start, room) = scratch.split_at_mut(before.len());
    start.copy_from_slice(before);
    // Headers are behind the rest of a payload that has no buffer.
    let unplaced = link.input.body.map_or(0, |body| body.remaining);
    let room = beside::<S>(link.input.is_long, unplaced, room);
    let count = link.stream.read(room)?;
    Ok(Read { count, filled: start.len() + count, is_dry: count < room.len() })
}

/// What is read beside payloads that have their place, and beside the `unplaced` bytes of one that has none. After a long
/// one that is headers: the next is long too, as a rule, and is better not read before its place is known.
fn beside<S: Stream>(is_long: bool, unplaced: u64, scratch: &mut [u8]) -> &mut [u8] {
    let most = if is_long { HEADERS.min(S::AT_ONCE) } else { S::AT_ONCE };
    let unplaced = usize::try_from(unplaced).unwrap_or(usize::MAX);
    let room = scratch.len().min(most.saturating_add(unplaced));
    scratch.get_mut(..room).unwrap_or_default()
}

/// A link that closes listens no more, but takes what comes, so that the other side is not held up.
fn drain<S: Stream>(link: &mut Link<S>, scratch: &mut [u8]) -> Progress {
    match link.stream.read(scratch) {
        Ok(0) => Progress::Ended(CloseReason::Here),
        Ok(count) if count < scratch.len() => Progress::Dry,
        Ok(_) => Progress::More,
        Err(error) if is_nothing(&error) => Progress::Dry,
        Err(_) => Progress::Ended(CloseReason::Here),
    }
}

/// The other side is done: between two frames, or in the middle of one.
fn end_of<S>(link: &Link<S>) -> CloseReason {
    if link.input.is_between() { CloseReason::Peer } else { CloseReason::System { errno: libc::ECONNRESET } }
}

impl From<Violation> for CloseReason {
    fn from(violation: Violation) -> Self {
        Self::Protocol(violation.0)
    }
}

/// A frame of more bytes is long: copying it costs more than one more call.
const LONG: u32 = 40 * 1024;
/// So much is read beside a long one.
const HEADERS: usize = 1024;
/// What a link may say before it is bound.
const UNBOUND_MESSAGES_MAX: u32 = 16;
