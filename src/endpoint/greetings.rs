//! What is said on a link before it is a connection: hellos both ways, and proofs of the job's key.
//!
//! ```text
//!  called here:   Opening ─open─► Asked ───answer──► Up          with a key: ─challenge─► (proof goes) ─answer─►
//!                                                                            Answered ─proof─► Up
//!  called there:  Silent ──hello─────────────────► Up            with a key: (challenge goes) Challenged ─proof─► Up
//!                    └─ a life before this one is connected ─► Waiting ─ it has ended ─► Up
//! ```
//! Anything else ends the link. Two requests that cross: that of the side with the smaller name goes on.
//!
//! Not here: what a link that ended means for its peer (`connections`).

use crate::device::transport::Reaction;
use crate::ids::PeerId;
use crate::wire::{
    self, Challenge, Control, Goodbye, Hello, HelloRefused, HelloRole, Message, Proof, RefusedHello, Reject,
    VERSION,
};

use super::core::{Action, Core};
use super::credits::Balance;
use super::interface::Failure;
use super::links::Phase;
use super::peers::{Path, State};
use super::proof::Said;

impl Core {
    /// Somebody connected.
    pub(super) fn handle_incoming(&mut self, path: Path) {
        let deadline = self.now.saturating_add(self.config.connect_timeout);
        self.links.insert(path, Phase::Silent, None, deadline);
        self.set_deadline(deadline);
    }

    /// A link that was begun here is there.
    pub(super) fn handle_open(&mut self, path: Path) {
        let deadline = self.now.saturating_add(self.config.greeting_timeout);
        let Some(link) = self.links.find_mut(path).filter(|link| link.phase == Phase::Opening) else {
            return;
        };
        (link.phase, link.deadline) = (Phase::Asked, deadline);
        self.set_deadline(deadline);
        self.actions.push_back(Action::Hello(path, HelloRole::Request));
    }

    /// A message on a link that is not a connection.
    pub(super) fn handle_greeting(&mut self, path: Path, control: &Control<'_>, bytes: &[u8]) -> Reaction {
        let Some(phase) = self.links.find(path).map(|link| link.phase) else { return Reaction::Close };
        match (phase, control) {
            (Phase::Silent, Control::Hello(hello)) if hello.role == HelloRole::Request => {
                self.handle_request(path, hello, bytes)
            }
            (Phase::Challenged, Control::Proof(proof)) if proof.role == HelloRole::Request => {
                self.handle_request_proof(path, proof)
            }
            (Phase::Asked, Control::Hello(hello))
                if hello.role == HelloRole::Answer && self.line.is_none() =>
            {
                self.handle_answer(path, hello, bytes)
            }
            (Phase::Asked, Control::Connect(connect))
                if connect.hello.role == HelloRole::Answer && self.line.is_some() =>
            {
                self.handle_answer(path, &connect.hello, bytes)
            }
            (Phase::Asked | Phase::Answered, Control::Reject(reject)) if self.line.is_some() => {
                self.handle_reject(path, reject)
            }
            // A link of one end: what is said on it is heard on it.
            (Phase::Asked, Control::Hello(hello)) if self.is_self(hello) => {
                let peer = self.links.find(path).and_then(|link| link.peer);
                match peer.filter(|&peer| *self.peers[peer].name == *self.name) {
                    Some(peer) => self.connect(path, peer, hello),
                    None => self.protocol_error(path),
                }
            }
            (Phase::Asked, Control::Challenge(challenge)) => self.handle_challenge(path, challenge),
            (Phase::Answered, Control::Proof(proof)) if proof.role == HelloRole::Answer => {
                self.handle_answer_proof(path, proof)
            }
            (Phase::Asked | Phase::Answered, Control::HelloRefused(refused)) => {
                self.handle_refused(path, refused.reason)
            }
            (Phase::Closing, _) => Reaction::Continue,
            // It went away before anything came of it: its end will be told.
            (Phase::Silent | Phase::Challenged | Phase::Waiting, Control::Goodbye(_)) => Reaction::Continue,
            (Phase::Asked | Phase::Answered, Control::Goodbye(Goodbye::Closing | Goodbye::Idle)) => {
                Reaction::Continue
            }
            _ => self.protocol_error(path),
        }
    }

    /// Whether this very endpoint says it.
    fn is_self(&self, hello: &Hello<'_>) -> bool {
        hello.name.bytes() == self.name && hello.instance == self.instance
    }

    /// Somebody wants to be connected.
    fn handle_request(&mut self, path: Path, hello: &Hello<'_>, bytes: &[u8]) -> Reaction {
        if hello.common_version().is_none() {
            return self.refuse(path, RefusedHello::Version);
        }
        if self.closing.is_some() {
            return self.refuse(path, RefusedHello::Closing);
        }
        if !self.secrets.has_key() {
            return self.admit(path, hello, bytes);
        }
        let number = self.secrets.draw();
        if let Some(link) = self.links.find_mut(path) {
            link.phase = Phase::Challenged;
            let greeting = link.greeting();
            greeting.theirs = bytes.to_vec();
            greeting.challenge = Some(number);
        }
        self.actions.push_back(Action::Say(path, Control::Challenge(Challenge { number })));
        Reaction::Continue
    }

    /// Whoever wants to be connected says that it holds the key.
    fn handle_request_proof(&mut self, path: Path, proof: &Proof) -> Reaction {
        let Some(link) = self.links.find_mut(path) else { return Reaction::Close };
        let greeting = link.greeting();
        greeting.counter = Some(proof.number);
        let theirs = greeting.theirs.clone();
        let challenge = greeting.challenge.unwrap_or_default();
        let said = Said {
            role: HelloRole::Request,
            challenge,
            counter: proof.number,
            request: &theirs,
            answer: &[],
        };
        if !self.secrets.is_proven(&said, &proof.code) {
            return self.refuse(path, RefusedHello::NoKey);
        }
        match wire::decode(&theirs) {
            Ok(Message::Control(Control::Hello(hello))) => self.admit(path, &hello, &theirs),
            _ => self.protocol_error(path),
        }
    }

    /// Whoever wants to be connected may be: is it to be now?
    fn admit(&mut self, path: Path, hello: &Hello<'_>, bytes: &[u8]) -> Reaction {
        let name = hello.name.bytes();
        let is_self = self.is_self(hello);
        let is_full = self.peers.find(name).is_none() && self.peers.count() >= self.config.peers_max as usize;
        if name.is_empty() || is_full || !is_self && name == self.name {
            return self.refuse(path, RefusedHello::Busy);
        }
        let peer = self.peers.named(name);
        if let Some(link) = self.links.find_mut(path) {
            link.peer = Some(peer);
            link.greeting().theirs = bytes.to_vec();
        }
        match self.peers[peer].state {
            // What its own row has called comes once, over the same transport.
            State::Dialling((device, _))
                if is_self && device == path.0 && self.peers[peer].twin.is_none() =>
            {
                return self.connect_twin(path, peer, hello);
            }
            // Under a name that it does not go by, or from an attempt of its own that is over.
            _ if is_self => return self.refuse(path, RefusedHello::Oneself),
            State::Idle | State::Waiting(_) => {}
            State::Dialling(_) if *self.name < *name => {
                self.statistics.crossed += 1;
                return self.refuse(path, RefusedHello::Crossed);
            }
            State::Dialling(own) => {
                self.statistics.crossed += 1;
                self.close_link(own, false);
            }
            State::Connected(_) if self.peers[peer].instance == Some(hello.instance) => {
                // Either it crossed what we have, or what we have is dead: whoever is asked on a dead connection
                // hears of its end.
                self.ask(peer);
                return self.refuse(path, RefusedHello::Connected);
            }
            State::Connected(old) => {
                self.doubt(old, peer);
                return self.wait_for_end(path, peer);
            }
            State::Leaving(_) => return self.wait_for_end(path, peer),
        }
        self.actions.push_back(Action::Hello(path, HelloRole::Answer));
        self.connect(path, peer, hello)
    }

    /// Another life of a peer says that the one that is connected is over. If so, the old connection ends by itself now
    /// that it is asked, and what had come of it is heard before. Who has proven that it holds the key is believed after
    /// a while; without a key the old life is, if it answers.
    fn doubt(&mut self, old: Path, peer: PeerId) {
        self.ask(peer);
        let deadline = self.now.saturating_add(self.config.close_timeout);
        if self.secrets.has_key()
            && let Some(link) = self.links.find_mut(old)
        {
            link.deadline = link.deadline.min(deadline);
            self.set_deadline(deadline);
        }
    }

    /// The life that is connected has answered: whoever else uses its name waits for nothing.
    pub(super) fn turn_away_next(&mut self, peer: PeerId) {
        if self.secrets.has_key() {
            return;
        }
        if let Some(next) = self.peers[peer].next.take() {
            self.refuse(next, RefusedHello::Connected);
        }
    }

    /// The new link is taken up when the end of the old one is told. The newest of several is.
    fn wait_for_end(&mut self, path: Path, peer: PeerId) -> Reaction {
        let deadline = self.now.saturating_add(self.config.greeting_timeout);
        if let Some(link) = self.links.find_mut(path) {
            (link.phase, link.deadline) = (Phase::Waiting, deadline);
            self.set_deadline(deadline);
        }
        if let Some(before) = self.peers[peer].next.replace(path) {
            self.close_link(before, false);
        }
        Reaction::Continue
    }

    /// The end that is called of a connection to oneself. The end that calls goes on by itself.
    fn connect_twin(&mut self, path: Path, peer: PeerId, hello: &Hello<'_>) -> Reaction {
        self.actions.push_back(Action::Hello(path, HelloRole::Answer));
        self.set_up(path, peer, hello);
        self.peers[peer].twin = Some(path);
        Reaction::Bind(peer)
    }

    /// The link is a connection from now on.
    pub(super) fn connect(&mut self, path: Path, peer: PeerId, hello: &Hello<'_>) -> Reaction {
        // It came by another transport before, and receives that name it may be in the list of a device there.
        if self.engines.iter_mut().any(|engine| engine.set_path(peer, path.0).is_err()) {
            // One engine may have taken it before the other did not.
            self.engines.iter_mut().for_each(|engine| engine.clear_path(peer));
            self.close_link(path, false);
            self.handle_attempt_crossed(peer, path);
            return Reaction::Close;
        }
        self.set_up(path, peer, hello);
        self.statistics.connected += 1;
        let is_memory = self.are_memory.get(usize::from(path.0.0)).is_some_and(|is_memory| *is_memory);
        self.statistics.connected_shm += u64::from(is_memory);
        let row = &mut self.peers[peer];
        row.state = State::Connected(path);
        (row.failures, row.dial_from, row.wanted_since, row.error) = (0, 0, None, None);
        if let Some(line) = &mut self.line {
            line.handle_connected();
        }
        let row = &self.peers[peer];
        if row.twin.is_some() { Reaction::Continue } else { Reaction::Bind(peer) }
    }

    fn set_up(&mut self, path: Path, peer: PeerId, hello: &Hello<'_>) {
        if let Some(link) = self.links.find_mut(path) {
            (link.phase, link.peer, link.deadline) = (Phase::Up, Some(peer), std::time::Duration::MAX);
        }
        let eager_limit = self.eager_limit(path.0);
        let row = &mut self.peers[peer];
        row.instance = Some(hello.instance);
        row.capabilities = hello.capabilities;
        row.eager_limit = hello.eager_limit.min(eager_limit);
        row.balance = Balance::new(hello.credits);
        (row.heard, row.asked) = (self.now, None);
        if let Some(interval) = self.config.keepalive {
            self.set_deadline(self.now.saturating_add(interval));
        }
    }

    /// The end of the old connection was told, and the transport knows whose the new one is.
    pub(super) fn adopt(&mut self, path: Path, peer: PeerId) {
        let theirs = self.links.find_mut(path).map(|link| std::mem::take(&mut link.greeting().theirs));
        let theirs = theirs.unwrap_or_default();
        if let Ok(Message::Control(Control::Hello(hello))) = wire::decode(&theirs) {
            let is_restarted = self.peers[peer].instance != Some(hello.instance);
            self.actions.push_back(Action::Hello(path, HelloRole::Answer));
            if self.connect(path, peer, &hello) == Reaction::Close {
                // Its transport holds it for the peer's, and takes no other for that before its end was told.
                self.peers[peer].state = State::Leaving(path);
                return;
            }
            self.statistics.restarted += u64::from(is_restarted);
            // It is part of what the answer's proof is over.
            if let Some(link) = self.links.find_mut(path) {
                link.greeting().theirs = theirs;
            }
        }
    }

    /// The other side asks for the key.
    fn handle_challenge(&mut self, path: Path, challenge: &Challenge) -> Reaction {
        let counter = self.secrets.draw();
        let Some(link) = self.links.find_mut(path) else { return Reaction::Close };
        let peer = link.peer;
        let greeting = link.greeting();
        if !self.secrets.has_key() || greeting.challenge.is_some() {
            link.phase = Phase::Closing;
            return self.turned_away(path, peer);
        }
        (greeting.challenge, greeting.counter) = (Some(challenge.number), Some(counter));
        let role = HelloRole::Request;
        let said = Said { role, challenge: challenge.number, counter, request: &greeting.ours, answer: &[] };
        let code = self.secrets.prove(&said);
        self.actions.push_back(Action::Say(path, Control::Proof(Proof { role, number: counter, code })));
        Reaction::Continue
    }

    /// Whoever we called answers.
    fn handle_answer(&mut self, path: Path, hello: &Hello<'_>, bytes: &[u8]) -> Reaction {
        let Some(link) = self.links.find_mut(path) else { return Reaction::Close };
        let Some(peer) = link.peer else { return Reaction::Close };
        let is_challenged = link.greeting().challenge.is_some();
        // Who accepts a request says no name: it is known by the connection alone.
        let is_named = self.line.is_none();
        if hello.common_version().is_none()
            || is_named && hello.name.bytes() != &*self.peers[peer].name
            || self.secrets.has_key() != is_challenged
        {
            link.phase = Phase::Closing;
            return self.turned_away(path, Some(peer));
        }
        if self.secrets.has_key() {
            link.greeting().theirs = bytes.to_vec();
            link.phase = Phase::Answered;
            return Reaction::Continue;
        }
        self.connect_answered(path, peer, bytes)
    }

    fn handle_answer_proof(&mut self, path: Path, proof: &Proof) -> Reaction {
        let Some(link) = self.links.find_mut(path) else { return Reaction::Close };
        let Some(peer) = link.peer else { return Reaction::Close };
        let greeting = link.greeting();
        let theirs = std::mem::take(&mut greeting.theirs);
        let challenge = greeting.challenge.unwrap_or_default();
        let counter = greeting.counter.unwrap_or_default();
        let said =
            Said { role: HelloRole::Answer, challenge, counter, request: &greeting.ours, answer: &theirs };
        if proof.number != challenge || !self.secrets.is_proven(&said, &proof.code) {
            link.phase = Phase::Closing;
            return self.turned_away(path, Some(peer));
        }
        self.connect_answered(path, peer, &theirs)
    }

    /// The answer, as it was said, makes a connection of what we called.
    fn connect_answered(&mut self, path: Path, peer: PeerId, answer: &[u8]) -> Reaction {
        match wire::decode(answer) {
            Ok(Message::Control(Control::Hello(hello))) => self.connect_called(path, peer, &hello),
            Ok(Message::Control(Control::Connect(connect))) => {
                if let Some(line) = &mut self.line {
                    line.hear(&connect.data);
                }
                self.connect_called(path, peer, &connect.hello)
            }
            _ => self.protocol_error(path),
        }
    }

    /// Whoever we called does not want to be connected.
    fn handle_reject(&mut self, path: Path, reject: &Reject<'_>) -> Reaction {
        let Some(link) = self.links.find_mut(path) else { return Reaction::Close };
        link.phase = Phase::Closing;
        let peer = link.peer;
        if let (Some(line), Some(peer)) = (&mut self.line, peer) {
            line.hear(&reject.data);
            self.handle_attempt_failed(peer, path, Failure::Rejected);
        }
        Reaction::Close
    }

    /// What we called is a connection, unless it is no longer wanted.
    fn connect_called(&mut self, path: Path, peer: PeerId, hello: &Hello<'_>) -> Reaction {
        if self.peers[peer].state != State::Dialling(path) {
            return Reaction::Close;
        }
        self.connect(path, peer, hello)
    }

    /// Whoever we called wants no connection.
    fn handle_refused(&mut self, path: Path, reason: RefusedHello) -> Reaction {
        let Some(link) = self.links.find_mut(path) else { return Reaction::Close };
        link.phase = Phase::Closing;
        let Some(peer) = link.peer else { return Reaction::Close };
        match reason {
            RefusedHello::Version | RefusedHello::NoKey => return self.turned_away(path, Some(peer)),
            // Nobody else of that name will answer; under its own this endpoint is reached.
            RefusedHello::Oneself if *self.peers[peer].name != *self.name => {
                return self.turned_away(path, Some(peer));
            }
            RefusedHello::Closing => self.handle_attempt_failed(peer, path, Failure::Refused),
            RefusedHello::Crossed | RefusedHello::Connected | RefusedHello::Busy | RefusedHello::Oneself => {
                self.handle_attempt_crossed(peer, path);
            }
        }
        Reaction::Close
    }

    fn turned_away(&mut self, path: Path, peer: Option<PeerId>) -> Reaction {
        self.statistics.turned_away += 1;
        if let Some(peer) = peer {
            self.handle_attempt_failed(peer, path, Failure::NotAccepted);
        }
        Reaction::Close
    }

    /// No connection comes of it.
    fn refuse(&mut self, path: Path, reason: RefusedHello) -> Reaction {
        if matches!(reason, RefusedHello::Version | RefusedHello::NoKey) {
            self.statistics.turned_away += 1;
        }
        let refused = HelloRefused { reason, version_min: VERSION, version_max: VERSION };
        self.actions.push_back(Action::Say(path, Control::HelloRefused(refused)));
        self.close_link(path, true);
        Reaction::Continue
    }
}
