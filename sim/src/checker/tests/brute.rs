//! The definition of correct, tried out: every placement of every operation, with a naive matcher at work.
//!
//! Not here: anything but tiny histories. Shares no code and no reasoning with the checkers.

use std::collections::{BTreeMap, HashMap, HashSet};

use tagmatch::ids::{GroupId, PeerId};
use tagmatch::matching::{Envelope, Pattern, Stay};

use crate::checker::{MessageName, Observation, Options, ReceiveName};

/// One message, as all of the history shows it.
struct Message {
    envelope: Envelope,
    sent: u32,
    path: u8,
    accepted: usize,
    /// It is decided somewhere, or taken.
    is_placed: bool,
    is_lost: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Place {
    Pending,
    Unexpected,
    Matched(ReceiveName),
    Cancelled(bool),
    Ended,
}

#[derive(Clone, PartialEq, Eq, Hash, Default)]
struct State {
    next: usize,
    posted: Vec<(ReceiveName, Pattern, Stay)>,
    unexpected: Vec<MessageName>,
    /// Once-receives that were matched, but not seen to be.
    underway: Vec<ReceiveName>,
    arrivals: BTreeMap<MessageName, Place>,
    cancels: BTreeMap<ReceiveName, Place>,
    /// Receives that cannot be matched any more.
    over: Vec<ReceiveName>,
    groups: BTreeMap<u32, u32>,
}

struct Search<'a> {
    history: &'a [Observation],
    options: Options,
    messages: HashMap<MessageName, Message>,
    seen: HashSet<State>,
}

/// Whether some placement explains the history. Names are used once in it.
pub(super) fn is_explained(history: &[Observation], options: Options) -> bool {
    let Some(messages) = messages(history) else { return false };
    Search { history, options, messages, seen: HashSet::new() }.explore(State::default())
}

fn messages(history: &[Observation]) -> Option<HashMap<MessageName, Message>> {
    let mut messages: HashMap<MessageName, Message> = HashMap::new();
    for (accepted, observation) in history.iter().enumerate() {
        match *observation {
            Observation::Accepted { message, envelope, sent, path } => {
                let message_of =
                    |other: &Message| other.envelope.source == envelope.source && other.sent == sent;
                if messages.values().any(message_of) {
                    return None;
                }
                let new = Message { envelope, sent, path, accepted, is_placed: false, is_lost: false };
                messages.insert(message, new);
            }
            Observation::MatchedByDevice { message, .. }
            | Observation::Decided { message, .. }
            | Observation::Post { took: Some(message), .. }
            | Observation::Peek { found: Some(message), .. } => messages.get_mut(&message)?.is_placed = true,
            Observation::PeerLost { peer } => {
                for message in messages.values_mut().filter(|message| message.envelope.source == peer) {
                    message.is_lost = true;
                }
            }
            Observation::Post { .. }
            | Observation::Peek { .. }
            | Observation::CancelCalled { .. }
            | Observation::CancelAnswered { .. }
            | Observation::Released { .. }
            | Observation::Vanished { .. }
            | Observation::GroupJoined { .. } => {}
        }
    }
    messages.values().all(|message| message.is_placed || message.is_lost).then_some(messages)
}

impl Search<'_> {
    fn explore(&mut self, state: State) -> bool {
        if !self.seen.insert(state.clone()) {
            return false;
        }
        if state.next == self.history.len() {
            return state.cancels.values().all(|place| *place == Place::Ended)
                && state.arrivals.iter().all(|(name, place)| {
                    *place == Place::Ended || !self.messages[name].is_placed && *place == Place::Pending
                });
        }
        if self.step(state.clone()).is_some_and(|next| self.explore(next)) {
            return true;
        }
        let pending = state.arrivals.iter().filter(|(_, place)| **place == Place::Pending);
        for message in pending.map(|(message, _)| *message).collect::<Vec<_>>() {
            if self.place_arrival(state.clone(), message).is_some_and(|next| self.explore(next)) {
                return true;
            }
        }
        let pending = state.cancels.iter().filter(|(_, place)| **place == Place::Pending);
        for receive in pending.map(|(receive, _)| *receive).collect::<Vec<_>>() {
            let mut next = state.clone();
            let at = next.posted.iter().position(|posted| posted.0 == receive);
            if let Some(at) = at {
                next.posted.remove(at);
            }
            next.cancels.insert(receive, Place::Cancelled(at.is_some()));
            if self.explore(next) {
                return true;
            }
        }
        false
    }

    fn place_arrival(&self, mut state: State, name: MessageName) -> Option<State> {
        let message = &self.messages[&name];
        if !message.is_placed {
            return None;
        }
        let at = state.posted.iter().position(|posted| fits(&state, &posted.1, &message.envelope));
        let pattern = at.map(|at| state.posted[at].1);
        let is_waiting = |other: &MessageName| {
            matches!(state.arrivals.get(other), None | Some(Place::Pending)) && self.messages[other].is_placed
        };
        for (other, earlier) in self.messages.iter().filter(|(other, _)| is_waiting(other)) {
            let is_overtaken = earlier.envelope.source == message.envelope.source
                && earlier.sent < message.sent
                && pattern.is_none_or(|pattern| fits(&state, &pattern, &earlier.envelope));
            let is_ahead = self.options.acceptance_order
                && earlier.path == message.path
                && earlier.accepted < message.accepted;
            if *other != name && (is_overtaken || is_ahead) {
                return None;
            }
        }
        let place = match at {
            Some(at) => {
                let (receive, _, stay) = state.posted[at];
                if stay == Stay::Once {
                    state.posted.remove(at);
                    state.underway.push(receive);
                }
                Place::Matched(receive)
            }
            None => {
                state.unexpected.push(name);
                Place::Unexpected
            }
        };
        state.arrivals.insert(name, place);
        Some(state)
    }

    /// What the next observation makes of a state; nothing if it contradicts it.
    fn step(&self, mut state: State) -> Option<State> {
        let observation = self.history[state.next];
        state.next += 1;
        match observation {
            Observation::Post { receive, pattern, stay, took } => {
                let known = state.posted.iter().any(|posted| posted.0 == receive)
                    || state.underway.contains(&receive)
                    || state.cancels.get(&receive).is_some_and(|place| *place != Place::Ended);
                if known || first(&self.messages, &state, &pattern) != took {
                    return None;
                }
                match took {
                    Some(message) => leave(&mut state, message),
                    None => state.posted.push((receive, pattern, stay)),
                }
            }
            Observation::Peek { pattern, found, claim } => {
                if first(&self.messages, &state, &pattern) != found {
                    return None;
                }
                if let Some(message) = found {
                    state.arrivals.insert(message, Place::Ended);
                    if claim {
                        leave(&mut state, message);
                    }
                }
            }
            Observation::Accepted { message, .. } => {
                if state.arrivals.insert(message, Place::Pending).is_some() {
                    return None;
                }
            }
            Observation::MatchedByDevice { message, receive } => end(&mut state, message, Some(receive))?,
            Observation::Decided { message, receive } => end(&mut state, message, receive)?,
            Observation::CancelCalled { receive } => {
                if matches!(state.cancels.get(&receive), None | Some(Place::Ended)) {
                    state.cancels.insert(receive, Place::Pending);
                }
            }
            Observation::CancelAnswered { receive, cancelled } => {
                let place = state.cancels.insert(receive, Place::Ended);
                if place != Some(Place::Cancelled(cancelled)) {
                    return None;
                }
                if cancelled {
                    state.over.push(receive);
                }
            }
            Observation::Released { receive } => {
                let at = state.posted.iter().position(|posted| posted.0 == receive)?;
                if state.posted.remove(at).2 != Stay::Posted {
                    return None;
                }
                state.over.push(receive);
            }
            Observation::PeerLost { .. } => {}
            Observation::Vanished { message } => {
                let gone = state.arrivals.insert(message, Place::Ended) == Some(Place::Pending);
                if !gone || self.messages[&message].is_placed {
                    return None;
                }
            }
            Observation::GroupJoined { peer, group } => {
                state.groups.insert(peer.0, group.0);
            }
        }
        Some(state)
    }
}

fn fits(state: &State, pattern: &Pattern, envelope: &Envelope) -> bool {
    let PeerId(peer) = envelope.source;
    pattern.fits(envelope, state.groups.get(&peer).map(|group| GroupId(*group)))
}

fn first(messages: &HashMap<MessageName, Message>, state: &State, pattern: &Pattern) -> Option<MessageName> {
    state.unexpected.iter().copied().find(|name| fits(state, pattern, &messages[name].envelope))
}

fn leave(state: &mut State, message: MessageName) {
    state.unexpected.retain(|other| *other != message);
    state.arrivals.insert(message, Place::Ended);
}

fn end(state: &mut State, message: MessageName, receive: Option<ReceiveName>) -> Option<()> {
    let outcome = receive.map_or(Place::Unexpected, Place::Matched);
    if state.arrivals.insert(message, Place::Ended) != Some(outcome) {
        return None;
    }
    if let Some(receive) = receive {
        if state.over.contains(&receive) {
            return None;
        }
        state.underway.retain(|other| *other != receive);
    }
    Some(())
}
