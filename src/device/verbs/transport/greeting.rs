//! From addresses to messages: what a link carries before its queue pairs do.
//!
//! A device that matches does so for whoever is connected, and cannot be told to wait. So the queue pairs are connected
//! when the owner has said whose the link is, and what is said before that, hellos and the like, goes over the socket.
//! Each side says three words there:
//!
//! ```text
//!  joined  my queue pairs are connected                    when the link is bound
//!  last    nothing more of mine comes over the socket      when that is so, and the other side has said joined
//!  go      send through the queue pairs                    when that is so, and the other side has said last
//! ```
//!
//! Whoever hears the last one has heard all that came over the socket, and so has the other side: the order of messages
//! is one, although they take two ways.

use super::VerbsTransport;
use super::link::State;
use crate::device::inbox::{Incoming, Teller};
use crate::device::transport::{CloseReason, Outgoing, Payload, SendError, Sending};
use crate::device::verbs::address::ConnectInfo;
use crate::ids::LinkId;
use crate::wire::{self, Control, Message};

impl VerbsTransport {
    /// Take what is whole of what came on a link's socket.
    pub(super) fn digest(&mut self, id: LinkId, teller: &mut Teller<'_>) {
        loop {
            let Some(link) = self.links.find_mut(id) else { return };
            let taken = match link.state {
                State::Asking | State::Answering => take_first(&mut link.heard, ConnectInfo::LENGTH),
                State::Open | State::Closing => match frame_length(&link.heard) {
                    Ok(length) => length.and_then(|length| take_first(&mut link.heard, length)),
                    Err(what) => return self.end(id, CloseReason::Protocol(what.into())),
                },
                State::Connecting | State::Ending => return,
            };
            let (Some(taken), is_address) = (taken, matches!(link.state, State::Asking | State::Answering))
            else {
                return;
            };
            if is_address {
                self.hear_address(id, &taken);
            } else if let Err(reason) = self.hear_frame(id, &taken, teller) {
                self.end(id, reason);
            }
        }
    }

    fn hear_frame(&mut self, id: LinkId, frame: &[u8], teller: &mut Teller<'_>) -> Result<(), CloseReason> {
        let Some(link) = self.links.find_mut(id) else { return Ok(()) };
        let (said, heard) = (link.said, link.words);
        let out_of_turn = match frame.first() {
            Some(&JOINED) => std::mem::replace(&mut link.words.joined, true),
            Some(&LAST) => std::mem::replace(&mut link.words.last, true) || !said.joined,
            Some(&GO) => std::mem::replace(&mut link.words.go, true) || !said.last,
            _ => heard.last,
        };
        if out_of_turn {
            return Err(CloseReason::Protocol("a word out of turn on the socket".into()));
        }
        if frame.first() == Some(&MESSAGE) {
            return self.hear_early(id, frame.get(FRAME_HEADER..).unwrap_or_default(), teller);
        }
        self.greet(id);
        Ok(())
    }

    /// A message over the socket: control, and nothing else.
    fn hear_early(
        &mut self,
        link: LinkId,
        arrived: &[u8],
        teller: &mut Teller<'_>,
    ) -> Result<(), CloseReason> {
        teller.tell_all(&mut self.inbox.pending);
        if !self.links.find(link).is_some_and(super::link::Link::hears) {
            return Ok(());
        }
        // Nobody's: of anybody's, other messages would be taken.
        let incoming = Incoming { link, peer: None, arrived, total: arrived.len() as u64, immediate: None };
        let taken = self.inbox.take(&incoming, teller);
        self.react(link, taken)
    }

    /// Say what is due.
    pub(super) fn greet(&mut self, id: LinkId) {
        let Some(link) = self.links.find_mut(id) else { return };
        if !link.is_joined {
            return;
        }
        let mut words = [0; 3];
        let mut count = 0;
        let mut put = |is_said: &mut bool, is_due: bool, word: u8| {
            if is_due
                && !std::mem::replace(is_said, true)
                && let Some(place) = words.get_mut(count)
            {
                *place = word;
                count += 1;
            }
        };
        put(&mut link.said.joined, true, JOINED);
        put(&mut link.said.last, link.words.joined, LAST);
        put(&mut link.said.go, link.words.last, GO);
        let is_ready = link.words.go && !link.is_ready;
        if count > 0 && !self.say(id, words.get(..count).unwrap_or_default()) {
            return;
        }
        if is_ready {
            self.links.set_ready(id);
        }
    }

    /// Send before the queue pairs are there: what is control, as long as the owner has not said whose the link is.
    pub(super) fn send_early(&mut self, id: LinkId, message: &Outgoing<'_>) -> Result<Sending, SendError> {
        let Some(link) = self.links.find(id) else { return Err(SendError::NoLink(id)) };
        if !is_control(message.header) {
            // To the owner it is a connection.
            if !link.is_joined && self.join(id) {
                self.greet(id);
            }
            return self.links.find(id).map_or(Err(SendError::NoLink(id)), |_| Ok(Sending::Full));
        }
        if link.said.last {
            return Ok(Sending::Full);
        }
        let Payload::Copied(payload) = message.payload else { return Err(SendError::Malformed) };
        let length = message.header.len() + payload.len();
        let Some(size) = u16::try_from(length).ok().filter(|_| length <= FRAME_MAX) else {
            return Err(SendError::TooLong { length: length as u64, limit: FRAME_MAX as u64 });
        };
        let mut frame = Vec::with_capacity(FRAME_HEADER + length);
        frame.push(MESSAGE);
        frame.extend_from_slice(&size.to_be_bytes());
        frame.extend_from_slice(message.header);
        frame.extend_from_slice(payload);
        if self.say(id, &frame) { Ok(Sending::Done) } else { Err(SendError::NoLink(id)) }
    }
}

/// So many bytes, if they are here.
fn take_first(heard: &mut Vec<u8>, length: usize) -> Option<Vec<u8>> {
    (heard.len() >= length).then(|| heard.drain(..length).collect())
}

/// Bytes of the frame that begins here, if enough of it is here to say.
fn frame_length(heard: &[u8]) -> Result<Option<usize>, &'static str> {
    match heard {
        [] | [MESSAGE] | [MESSAGE, _] => Ok(None),
        [JOINED | LAST | GO, ..] => Ok(Some(1)),
        [MESSAGE, high, low, ..] => {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            if length > FRAME_MAX {
                Err("a message too long for the socket")
            } else {
                Ok(Some(FRAME_HEADER + length))
            }
        }
        [..] => Err("an unknown word on the socket"),
    }
}

fn is_control(header: &[u8]) -> bool {
    match wire::decode(header) {
        Ok(Message::Control(control)) => !matches!(
            control,
            Control::Untagged(_)
                | Control::UntaggedRendezvous(_)
                | Control::SegmentFirst(_)
                | Control::SegmentMiddle(_)
                | Control::SegmentLast(_)
        ),
        Ok(Message::Eager(_) | Message::Rendezvous(_) | Message::Fin(_)) | Err(_) => false,
    }
}

const MESSAGE: u8 = b'M';
const JOINED: u8 = b'J';
const LAST: u8 = b'L';
const GO: u8 = b'G';
/// Before a message: what it is, and its length.
const FRAME_HEADER: usize = 3;
/// Bytes of a message over the socket; a hello has 120 at most.
const FRAME_MAX: usize = 1024;
