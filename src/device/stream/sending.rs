//! Sending, and writing what waits.

use std::io;

use super::StreamTransport;
use super::frame::{Head, Kind};
use super::link::{Link, State};
use super::medium::{Medium, Stream};
use super::out::{Of, Sent};
use crate::device::host_memory::HostMemory;
use crate::device::sockets::status::reason_of;
use crate::device::sockets::sys::{self, Part};
use crate::device::transport::{CloseReason, Notice, Outgoing, Payload, SendError, Sending};
use crate::ids::LinkId;
use crate::wire::{self, Control, Eager, Message, Partial};

impl<M: Medium> StreamTransport<M> {
    /// Most messages: with a tag, and there is room for all of it where nothing waits. False: it is no such message, and
    /// nothing was done.
    #[inline]
    pub(super) fn send_whole(&mut self, id: LinkId, message: &Outgoing<'_>) -> bool {
        if message.more || !Eager::is_header(message.header) {
            return false;
        }
        let payload = payload_length(message.payload);
        let Ok(front) = front_of(message, payload) else { return false };
        let Some(link) = self.links.find_mut(id) else { return false };
        if !link.out.is_empty() || link.out.is_blocked || link.is_closing() || link.write_failure.is_some() {
            return false;
        }
        let own = [Part::Bytes(front.bytes()), Part::Bytes(message.header)].into_iter();
        let total = front.length + message.header.len() + usize::try_from(payload).unwrap_or(usize::MAX);
        let is_sent = match message.payload {
            Payload::Copied(bytes) => link.stream.send_whole(total, own.chain([Part::Bytes(bytes)])),
            Payload::Memory(buffer) => {
                let stretches = self.parts.memory.stretches(&buffer, 0, payload).map(Part::Memory);
                link.stream.send_whole(total, own.chain(stretches))
            }
        };
        if is_sent {
            link.out.count_direct(total as u64);
        }
        is_sent
    }

    #[inline(never)]
    pub(super) fn send_one(&mut self, id: LinkId, message: &Outgoing<'_>) -> Result<Sending, SendError> {
        let length = payload_length(message.payload);
        let (head, is_whole) = check(message, length)?;
        let (queue_bytes, memory) = (self.config.queue_bytes, self.parts.memory);
        let found = self.links.find_mut(id).filter(|link| !link.is_closing());
        let link = found.filter(|link| link.write_failure.is_none()).ok_or(SendError::NoLink(id))?;
        let total = head.bytes().len() as u64 + message.header.len() as u64 + length;

        let mut sent = 0;
        if link.out.is_empty() && !link.out.is_blocked && !message.more {
            let own = [Part::Bytes(head.bytes()), Part::Bytes(message.header)].into_iter();
            let sending = match message.payload {
                payload if M::Stream::GATHERS && total <= GATHERED as u64 => {
                    let (gathered, length) = gather([head.bytes(), message.header], payload, memory);
                    link.stream.send_bytes(gathered.get(..length).unwrap_or_default())
                }
                Payload::Copied(bytes) => link.stream.send(own.chain([Part::Bytes(bytes)])),
                Payload::Memory(buffer) => {
                    let stretches = memory.stretches(&buffer, 0, length).map(Part::Memory);
                    link.stream.send(own.chain(stretches).take(sys::PARTS_MAX))
                }
            };
            sent = match sending {
                Ok(sent) => sent as u64,
                Err(error) if sys::is_passing(&error) => {
                    link.out.is_blocked = true;
                    0
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
                Err(error) if error.raw_os_error() == Some(libc::EFAULT) => {
                    return Err(SendError::Memory(error.to_string()));
                }
                Err(error) => {
                    link.fail_writing(&error);
                    return Err(SendError::NoLink(id));
                }
            };
            link.out.count_direct(sent);
            if sent == total {
                return Ok(Sending::Done);
            }
        } else if is_full(&link.out, queue_bytes, message.payload) {
            return Ok(Sending::Full);
        }

        // The rest waits.
        let mut skip = usize::try_from(sent).unwrap_or(usize::MAX);
        for bytes in [head.bytes(), message.header] {
            let taken = skip.min(bytes.len());
            link.out.push_bytes(bytes.get(taken..).unwrap_or_default());
            skip -= taken;
        }
        let mut sending = Sending::Done;
        match message.payload {
            Payload::Copied(bytes) => link.out.push_bytes(bytes.get(skip..).unwrap_or_default()),
            Payload::Memory(buffer) => {
                let (at, left) = (skip as u64, length - skip as u64);
                if left <= COPIED_MAX {
                    link.out.push_copy(memory, &buffer, at, left);
                } else {
                    // A segment cannot be left out: those before and behind it would stay.
                    let head = head.bytes().len() + message.header.len();
                    let head = (sent == 0 && is_whole).then_some(head);
                    link.out.push_memory(buffer, at, left, Of::Message(message.context), head);
                    sending = Sending::Posted;
                }
            }
        }
        self.parts.unsent(link);
        if !message.more {
            self.write(id);
        }
        Ok(sending)
    }

    /// Write what waits on links that are not blocked.
    pub(super) fn write_unsent(&mut self) {
        let mut unsent = std::mem::take(&mut self.parts.unsent);
        for id in unsent.drain(..) {
            if let Some(link) = self.links.find_mut(id) {
                link.is_unsent = false;
            }
            self.write(id);
        }
        // Those that have still more were entered anew.
        if self.parts.unsent.is_empty() {
            self.parts.unsent = unsent;
        }
        self.end_ending();
    }

    /// Write what the kernel takes, but not for ever. A link that closes ends when all is out.
    pub(super) fn write(&mut self, id: LinkId) {
        let Some(link) = self.links.find_mut(id) else { return };
        let (memory, pending) = (self.parts.memory, &mut self.parts.inbox.pending);
        let mut calls = 0;
        while !link.out.is_empty() && !link.out.is_blocked && link.write_failure.is_none() {
            if calls == CALLS_MAX {
                self.parts.unsent(link);
                return;
            }
            calls += 1;
            let done = |of, sent| {
                if let Of::Message(Some(context)) = of {
                    let result = if sent == Sent::Whole { Ok(()) } else { Err(CloseReason::Memory) };
                    pending.notice(Notice::Sent { context, result });
                }
            };
            if let Err(error) = link.out.write(&mut link.stream, memory, done) {
                link.fail_writing(&error);
            }
        }
        let waits = link.out.is_blocked && link.write_failure.is_none();
        // Room in memory shows in no descriptor: it is tried again and again.
        if waits != link.waits_to_write
            && (M::IS_MEMORY || self.epoll.change(&link.stream, id.to_bits(), waits).is_ok())
        {
            link.waits_to_write = waits;
        }
        if link.state == State::Closing && (link.out.is_empty() || link.write_failure.is_some()) {
            self.shut(id);
        }
    }
}

/// The head of a frame, and the immediate.
struct Front {
    bytes: [u8; 12],
    length: usize,
}

impl Front {
    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

impl<S: Stream> Link<S> {
    /// Nothing more can be written. What has come is read yet, and reading ends the link: the other side sees the end of
    /// this one's stream, if the connection still stands.
    fn fail_writing(&mut self, error: &io::Error) {
        self.write_failure = Some(reason_of(error));
        let _ = self.stream.end_writing();
    }
}

/// The head of the frame for a message, if it is one, and whether that is all there is of the message.
fn check(message: &Outgoing<'_>, payload: u64) -> Result<(Front, bool), SendError> {
    let front = front_of(message, payload)?;
    let total = message.header.len() as u64 + payload;
    // Most are such messages, and looking at what is one costs a tenth.
    let is_whole = if Eager::is_header(message.header) { true } else { check_rare(message.header, total)? };
    Ok((front, is_whole))
}

/// The head of the frame for a message, and its immediate.
#[inline]
fn front_of(message: &Outgoing<'_>, payload: u64) -> Result<Front, SendError> {
    let header = message.header.len() as u64;
    let limit = u64::from(u32::MAX) - header;
    let length = u32::try_from(payload.saturating_add(header));
    let length = length.map_err(|_| SendError::TooLong { length: payload, limit })?;
    let kind = if message.immediate.is_some() { Kind::MessageWithImmediate } else { Kind::Message };
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&Head { kind, length }.to_bytes());
    bytes[8..].copy_from_slice(&message.immediate.unwrap_or(0).to_be_bytes());
    Ok(Front { bytes, length: if message.immediate.is_some() { 12 } else { 8 } })
}

/// The same of any kind of message: whether the header is all of it but its payload, and whether no other belongs to it.
fn check_rare(header: &[u8], total: u64) -> Result<bool, SendError> {
    let Ok(Partial::Message(decoded)) = wire::decode_partial(header, total) else {
        return Err(SendError::Malformed);
    };
    let length = decoded.payload_range().map_or(total, |range| range.start);
    if length != header.len() as u64 {
        return Err(SendError::Malformed);
    }
    Ok(match decoded {
        Message::Eager(_) | Message::Control(Control::Untagged(_)) => true,
        // A stretch in one piece: nobody has heard of it.
        Message::Control(Control::RemoteWrite(write)) => write.offset == 0 && write.ends_stretch(),
        Message::Control(_) | Message::Rendezvous(_) | Message::Fin(_) => false,
    })
}

/// A short message in one stretch, which costs the kernel less than several; and how long it is.
fn gather(front: [&[u8]; 2], payload: Payload<'_>, memory: HostMemory) -> ([u8; GATHERED], usize) {
    let mut gathered = [0; GATHERED];
    let mut length = 0;
    let last = if let Payload::Copied(bytes) = payload { bytes } else { &[] };
    for bytes in front.into_iter().chain([last]) {
        if let Some(place) = gathered.get_mut(length..length + bytes.len()) {
            place.copy_from_slice(bytes);
            length += bytes.len();
        }
    }
    if let Payload::Memory(buffer) = payload {
        length += memory.read(&buffer, 0, gathered.get_mut(length..).unwrap_or_default());
    }
    (gathered, length)
}

fn payload_length(payload: Payload<'_>) -> u64 {
    match payload {
        Payload::Copied(bytes) => bytes.len() as u64,
        Payload::Memory(buffer) => buffer.length,
    }
}

/// Whether a link has no room for a message: a message always fits where nothing waits.
fn is_full(out: &super::out::Out, queue_bytes: usize, payload: Payload<'_>) -> bool {
    let copied = match payload {
        Payload::Copied(bytes) => bytes.len(),
        Payload::Memory(_) => 0,
    };
    out.length() > 0 && out.length() + copied > queue_bytes || out.pieces() >= PIECES_MAX
}

/// A message of at most so many bytes, header and all, is put together before it is sent.
const GATHERED: usize = 256;
/// Memory up to so many bytes is copied when it has to wait: that costs less than to tell when it is out.
const COPIED_MAX: u64 = 2048;
/// Pieces of memory and of our own that may wait on a link.
const PIECES_MAX: usize = 2048;
/// Calls to write for one link, before others have their turn.
const CALLS_MAX: usize = 8;
