//! What the device tells, told on: as from the peers behind its queue pairs, and in order with messages without a tag.
//!
//! Messages with a tag are the device's to keep and to place; all others go through the inbox. Names of the two are told
//! apart by a bit.

use super::VerbsTransport;
use super::link::Links;
use super::memory::Registrations;
use super::unlisted::Unlisted;
use crate::device::inbox::{Action, Incoming, Space, Taken, Teller, Violation};
use crate::device::transport::{CloseReason, Ear, Kept, Reaction};
use crate::device::verbs::device::{Own, SendFailure};
use crate::ids::{DeviceId, LinkId, MessageToken, PeerId, TransferId};
use crate::seam::{Answer, Arrival, Data, DataTarget, DeviceError, Event, EventSink, Match};
use crate::wire::{AppContext, SendFlags};

impl VerbsTransport {
    pub(super) fn go_on(&mut self, max: usize, ear: &mut dyn Ear) -> Result<usize, DeviceError> {
        let mut teller = Teller::new(ear, self.device.config().id, max);
        self.turn = self.turn.wrapping_add(1);
        self.listener.turn(&self.epoll);
        if !self.links.is_settled() || self.links.len() == 0 || self.turn.is_multiple_of(LOOK_EVERY) {
            self.look(&mut teller)?;
        }
        loop {
            teller.tell(&mut self.inbox.pending);
            if teller.is_full() {
                break;
            }
            while let Some(event) = self.unlisted.poll() {
                teller.event(Space::Tagged, &event);
            }
            if let Some(event) = self.device.next_event() {
                self.hear(event, &mut teller)?;
                continue;
            }
            let room = max - teller.told();
            let (links, registrations, unlisted) = (&self.links, &mut self.registrations, &mut self.unlisted);
            let mut mouth = Mouth { links, registrations, unlisted, ear: teller.ear(), stranger: false };
            let (told, is_more) = self.device.advance(room, &mut mouth);
            let is_strange = mouth.stranger;
            teller.count(told);
            if !self.watched.is_empty() {
                self.look_at_watched();
            }
            if is_strange {
                return Err(stranger());
            }
            if !is_more && !self.device.has_event() {
                break;
            }
        }
        self.end_closing();
        self.registrations.end_lingering();
        teller.tell(&mut self.inbox.pending);
        Ok(teller.told())
    }

    fn hear(&mut self, event: Event, teller: &mut Teller<'_>) -> Result<(), DeviceError> {
        match event {
            Event::Arrived(arrival) => self.hear_arrival(&arrival, teller),
            Event::Matched(matched) => {
                let Some(source) = self.peer_of(matched.source) else { return Err(stranger()) };
                if matched.released {
                    self.registrations.released(matched.handle);
                }
                teller.event(Space::Tagged, &Event::Matched(Match { source, ..matched }));
            }
            Event::Data(data) => self.hear_data(&data, teller),
            Event::Operation(done) => {
                teller.event(Space::Tagged, &Event::Operation(self.unlisted.completed(done)));
            }
            // The device itself does without none.
            Event::SetAside { .. } => {}
            Event::Released(handle) => {
                self.registrations.released(handle);
                teller.event(Space::Tagged, &event);
            }
            Event::Untagged { source, message, length, counted } => {
                if self.capabilities.is_matching() {
                    let source = self.peer_of(source).unwrap_or(NOBODY);
                    let told = Event::Untagged { source, message, length, counted };
                    teller.event(Space::Tagged, &told);
                }
                self.hear_untagged(source, message, teller);
            }
            Event::PathLost { peer } => {
                let cause = self.device.take_cause(peer);
                if let Some(id) = self.links.of_path(peer).map(|link| link.id) {
                    if let Some(link) = self.links.find_mut(id) {
                        let _gone = self.epoll.remove(&link.socket);
                        // What ended it comes first: of a link that was closed, requests are flushed.
                        let cause = cause.map(|SendFailure { status, vendor_error }| CloseReason::Device {
                            status,
                            vendor_error,
                        });
                        link.reason = link.reason.take().or(cause);
                    }
                    self.gone(id);
                }
            }
            Event::DeviceFailed(error) => return Err(error),
        }
        Ok(())
    }

    fn hear_arrival(&mut self, arrival: &Arrival, teller: &mut Teller<'_>) {
        let Some(link) = self.links.of_path(arrival.source) else {
            return self.device.answered(arrival.message, Answer::Discard);
        };
        let (id, hears) = (link.id, link.hears());
        let bad = match link.peer {
            None => Some("a message to match before the link was bound"),
            Some(_) if !has_good_immediate(arrival) => Some("immediate and flag of the CQ data do not agree"),
            Some(_) => None,
        };
        // One that the device counted is the engine's to count as well, whatever it is.
        let is_lost = bad.is_some() || !hears && !arrival.counted;
        if is_lost {
            self.device.answered(arrival.message, Answer::Discard);
            if arrival.counted {
                let Arrival { message, header, counted, .. } = *arrival;
                let source = self.peer_of(arrival.source).unwrap_or(NOBODY);
                let told = Event::Untagged { source, message, length: header.length, counted };
                teller.event(Space::Tagged, &told);
            }
            if let Some(what) = bad {
                self.end(id, CloseReason::Protocol(what.into()));
            }
            return;
        }
        let source = self.peer_of(arrival.source).unwrap_or(NOBODY);
        let message = name_of(arrival.message);
        let answer = teller.arrived(Space::Tagged, &Arrival { message, source, ..*arrival });
        if answer == Answer::Hold {
            let kept = match arrival.header.remote {
                Some(_) => Kept { messages: 0, bytes: 0, requests: 1 },
                None => Kept { messages: 1, bytes: arrival.header.length, requests: 0 },
            };
            self.held.keep(message, source, kept);
        }
        self.device.answered(arrival.message, answer);
    }

    fn hear_data(&mut self, data: &Data, teller: &mut Teller<'_>) {
        match data.target {
            DataTarget::Message(message) => {
                let message = name_of(message);
                self.held.forget(message);
                let target = DataTarget::Message(message);
                teller.event(Space::Tagged, &Event::Data(Data { target, ..*data }));
            }
            DataTarget::Transfer(TransferId { index: OWN_TRANSFERS, generation }) => {
                if let Some((space, transfer)) = self.reads.try_remove(generation as usize) {
                    let target = DataTarget::Transfer(transfer);
                    teller.event(space, &Event::Data(Data { target, ..*data }));
                }
            }
            DataTarget::Transfer(_) | DataTarget::Entry(_) => {
                teller.event(Space::Tagged, &Event::Data(*data));
            }
        }
    }

    fn hear_untagged(&mut self, source: PeerId, message: MessageToken, teller: &mut Teller<'_>) {
        let link = self.links.of_path(source).filter(|link| link.hears());
        let found = link.map(|link| (link.id, link.peer));
        let inbox = &mut self.inbox;
        let taken = self.device.take_first_untagged(message, |bytes| {
            let (link, peer) = found?;
            let incoming =
                Incoming { link, peer, arrived: bytes, total: bytes.len() as u64, immediate: None };
            Some(inbox.take(&incoming, teller))
        });
        if let (Some((link, _)), Some(Some(taken))) = (found, taken)
            && let Err(reason) = self.react(link, taken)
        {
            self.end(link, reason);
        }
        self.act();
    }

    pub(super) fn react(&mut self, id: LinkId, taken: Result<Taken, Violation>) -> Result<(), CloseReason> {
        match taken {
            Ok(Taken::Whole) => return Ok(()),
            Ok(Taken::Reaction(Reaction::Continue | Reaction::Keep)) => {}
            Ok(Taken::Reaction(Reaction::Close)) => return Err(CloseReason::Here),
            Ok(Taken::Reaction(Reaction::Bind(peer))) => {
                return self.bind_link(id, peer).map_err(|_| CloseReason::Here);
            }
            // Messages are whole.
            Ok(Taken::Needed(_) | Taken::Body(_)) => {
                return Err(CloseReason::Protocol("a message in part".into()));
            }
            Err(Violation(what)) => return Err(CloseReason::Protocol(what)),
        }
        if let Some(link) = self.links.find_mut(id).filter(|link| link.peer.is_none()) {
            link.unbound_messages += 1;
            if link.unbound_messages > UNBOUND_MESSAGES_MAX {
                let what = format!("more than {UNBOUND_MESSAGES_MAX} messages before the link was bound");
                return Err(CloseReason::Protocol(what));
            }
        }
        Ok(())
    }

    /// What the inbox wants done.
    pub(super) fn act(&mut self) {
        while let Some(action) = self.inbox.actions.front() {
            let Some(path) = self.links.find(action.link()).map(super::link::Link::path) else {
                self.inbox.give_up_action();
                continue;
            };
            match self.inbox.actions.pop_front() {
                Some(Action::Read(wanted)) => {
                    let place = self.reads.insert((wanted.space, wanted.transfer));
                    let generation = u32::try_from(place).unwrap_or(u32::MAX);
                    let transfer = TransferId { index: OWN_TRANSFERS, generation };
                    let done = Own::new(wanted.done.message().bytes());
                    self.device.read_for(transfer, path, done, wanted.remote, wanted.buffer);
                }
                Some(Action::Tell(_, done)) => self.device.tell_peer(path, Own::new(done.message().bytes())),
                None => {}
            }
        }
    }

    fn peer_of(&self, path: PeerId) -> Option<PeerId> {
        self.links.of_path(path).and_then(|link| link.peer)
    }
}

/// Tells matches on that the device tells many at a time.
struct Mouth<'a> {
    links: &'a Links,
    registrations: &'a mut Registrations,
    unlisted: &'a mut Unlisted,
    ear: &'a mut dyn Ear,
    /// One was of somebody who has not said who he is.
    stranger: bool,
}

impl EventSink for Mouth<'_> {
    fn handle_event(&mut self, device: DeviceId, event: &Event) -> Answer {
        match event {
            Event::Matched(matched) => self.handle_matches(device, std::slice::from_ref(matched)),
            Event::Operation(done) => {
                let done = self.unlisted.completed(*done);
                let _hold = self.ear.handle_event(device, &Event::Operation(done));
            }
            Event::Arrived(_)
            | Event::Data(_)
            | Event::Released(_)
            | Event::Untagged { .. }
            | Event::SetAside { .. }
            | Event::PathLost { .. }
            | Event::DeviceFailed(_) => debug_assert!(false, "it waits to be told: {event:?}"),
        }
        Answer::Hold
    }

    fn handle_matches(&mut self, device: DeviceId, matches: &[Match]) {
        for matched in matches {
            let Some(source) = self.links.of_path(matched.source).and_then(|link| link.peer) else {
                self.stranger = true;
                continue;
            };
            if matched.released {
                self.registrations.released(matched.handle);
            }
            self.ear.handle_matches(device, &[Match { source, ..*matched }]);
        }
    }
}

/// CQ data of a message with a tag comes as its immediate, and nothing else does.
fn has_good_immediate(arrival: &Arrival) -> bool {
    AppContext::from_bits(arrival.header.app_ctx)
        .is_ok_and(|context| context.flags.contains(SendFlags::CQ_DATA) == arrival.header.immediate.is_some())
}

/// Nobody is connected before it is known who he is.
fn stranger() -> DeviceError {
    DeviceError::Contract("the device matched a message of nobody that is connected".into())
}

/// The device's name for a message, as it is told.
const fn name_of(message: MessageToken) -> MessageToken {
    MessageToken(message.0 | super::OF_DEVICE)
}

/// Reads of the inbox's own are called by this.
const OWN_TRANSFERS: u32 = u32::MAX - 1;
/// For what concerns nobody in particular.
const NOBODY: PeerId = PeerId(0);
/// The sockets of links that are open are looked at every so many turns.
const LOOK_EVERY: usize = 16;
/// What a link may say before it is bound.
const UNBOUND_MESSAGES_MAX: u32 = 16;
