//! What is done with transports: commands of the engines, what was queued while they told things, notes, credits.
//!
//! Not here: users' messages (`sending`).

use std::collections::VecDeque;

use crate::device::transport::{LinkError, Outgoing, Payload, Sending, Transport};
use crate::ids::PeerId;
use crate::seam::{DeviceError, Event};
use crate::wire::{Control, EndpointName, Hello, HelloRole, Message, Proof, VERSION};

use super::core::{Action, Core};
use super::credits::{Allowance, free};
use super::interface::EndpointError;
use super::operations::Awaits;
use super::peers::{Path, State};
use super::proof::Said;
use super::{Endpoint, device_id};

impl Endpoint {
    /// Give a transport what the engines want of it.
    #[inline]
    pub(super) fn submit(&mut self, device: usize) -> Result<(), EndpointError> {
        let id = device_id(device);
        let mut any = false;
        for space in 0..2 {
            loop {
                let engine = &mut self.core.engines[space];
                let commands = engine.poll_commands(id);
                if commands.is_empty() {
                    break;
                }
                let offered = commands.len();
                match self.transports[device].submit(commands) {
                    Ok(taken) => {
                        engine.handle_submitted(id, taken);
                        any = true;
                        if taken < offered {
                            break;
                        }
                    }
                    Err(error) => return Err(self.fail(device, error)),
                }
            }
        }
        if any && let Err(error) = self.transports[device].flush() {
            return Err(self.fail(device, error));
        }
        Ok(())
    }

    /// After transports have told things: users are told, and what came of it is done.
    pub(super) fn settle(&mut self) -> Result<(), EndpointError> {
        self.core.poll_engines();
        for device in 0..self.transports.len() {
            self.submit(device)?;
        }
        self.act();
        self.withdraw();
        self.send_segments();
        self.grant_credits();
        self.send_notes();
        if self.core.closing.is_some() {
            self.core.say_goodbye();
            self.act();
        }
        Ok(())
    }

    /// A transport failed: everything in progress ends, and the endpoint is of no more use.
    #[cold]
    pub(super) fn fail(&mut self, device: usize, error: DeviceError) -> EndpointError {
        let core = &mut self.core;
        for engine in &mut core.engines {
            let event = Event::DeviceFailed(error.clone());
            crate::seam::EventSink::handle_event(engine, device_id(device), &event);
        }
        core.poll_engines();
        for peer in core.peers.ids() {
            if matches!(core.peers[peer].state, State::Connected((at, _)) | State::Leaving((at, _)) if at == device_id(device))
            {
                core.fail_operations(peer, super::interface::Failure::Device);
            }
        }
        self.withdraw();
        let error = EndpointError::Device(error);
        self.core.failed = Some(error.clone());
        error
    }

    /// Do what was queued, in order; of a link that has no room all later things wait too.
    pub(super) fn act(&mut self) {
        if self.core.actions.is_empty() {
            return;
        }
        let mut left: VecDeque<Action> = VecDeque::new();
        let mut full: Vec<Path> = Vec::new();
        while let Some(action) = self.core.actions.pop_front() {
            let path = action.path();
            if path.is_some_and(|path| full.contains(&path)) || !self.act_once(&action) {
                full.extend(path);
                left.push_back(action);
            }
        }
        self.core.actions = left;
    }

    /// False: there is no room for it.
    fn act_once(&mut self, action: &Action) -> bool {
        match *action {
            Action::Close((device, link), flush) => {
                if let Some(transport) = self.transports.get_mut(usize::from(device.0)) {
                    transport.close(link, flush);
                }
            }
            Action::Adopt(peer) => self.adopt(peer),
            Action::Say(path, control) => return self.say(path, &control),
            Action::Hello(path, role) => return self.say_hello(path, role),
        }
        true
    }

    /// Say something on a link. False: there is no room for it.
    fn say(&mut self, (device, link): Path, control: &Control<'_>) -> bool {
        let Some(transport) = self.transports.get_mut(usize::from(device.0)) else { return true };
        let mut bytes = [0; Message::HEADER_LENGTH_MAX];
        let Ok(length) = control.encode(&mut bytes) else { return true };
        say_bytes(&mut **transport, link, &bytes[..length])
    }

    /// Say a hello, and prove that the key is held where it was asked. The credits that it grants are those that are free
    /// now.
    fn say_hello(&mut self, path: Path, role: HelloRole) -> bool {
        let (device, link_id) = path;
        let Some(transport) = self.transports.get_mut(usize::from(device.0)) else { return true };
        let core = &mut self.core;
        let eager_limit = core.eager_limit(device);
        let Some(link) = core.links.find_mut(path) else { return true };
        let Some(peer) = link.peer else { return true };
        let mut credits = free(&core.config.credits, &transport.kept(peer));
        credits.headers = credits.headers.max(1);
        let hello = Hello {
            role,
            version_min: VERSION,
            version_max: VERSION,
            capabilities: core.capabilities.get(usize::from(device.0)).copied().unwrap_or_default(),
            instance: core.instance,
            eager_limit,
            credits,
            name: EndpointName::new(&core.name).unwrap_or_default(),
        };
        let mut bytes = [0; Hello::LENGTH_MAX];
        let Ok(length) = hello.encode(&mut bytes) else { return true };
        if !say_bytes(&mut **transport, link_id, &bytes[..length]) {
            return false;
        }
        core.peers[peer].allowance = Allowance::new(credits);
        let ours = &bytes[..length];
        if role == HelloRole::Answer
            && let Some(greeting) = link.greeting.take()
            && let (Some(challenge), Some(counter)) = (greeting.challenge, greeting.counter)
        {
            let said = Said { role, challenge, counter, request: &greeting.theirs, answer: ours };
            let proof = Proof { role, number: challenge, code: core.secrets.prove(&said) };
            // It goes in front of whatever else was queued for the link.
            core.actions.push_front(Action::Say(path, Control::Proof(proof)));
        } else if role == HelloRole::Request {
            link.greeting().ours = ours.to_vec();
        }
        true
    }

    /// The old connection of a peer has ended: the new one is its own.
    fn adopt(&mut self, peer: PeerId) {
        if !matches!(self.core.peers[peer].state, State::Idle | State::Waiting(_)) {
            return;
        }
        let Some(path) = self.core.peers[peer].next.take() else { return };
        let transport = self.transports.get_mut(usize::from(path.0.0));
        let bound = transport.map(|transport| transport.bind(path.1, peer));
        match bound {
            Some(Ok(())) => self.core.adopt(path, peer),
            Some(Err(LinkError::Unknown(_))) | None => {}
            Some(Err(_)) => self.core.close_link(path, false),
        }
    }

    /// Memory of sends that have been answered, or will not be.
    fn withdraw(&mut self) {
        while let Some(id) = self.core.withdrawals.pop() {
            let Some(operation) = self.core.operations.get_mut(id) else { continue };
            let Awaits::Withdrawal { device, remote } = operation.awaits else { continue };
            operation.awaits = Awaits::Nothing;
            if let Some(transport) = self.transports.get_mut(usize::from(device.0)) {
                transport.withdraw(&remote);
            }
            self.core.end_if_over(id);
        }
    }

    /// Tell peers of whose credit much is used what more they may send.
    #[inline]
    fn grant_credits(&mut self) {
        while let Some(peer) = self.core.touched.pop() {
            let core = &mut self.core;
            let row = &mut core.peers[peer];
            row.is_touched = false;
            let State::Connected((device, _)) = row.state else { continue };
            if !row.allowance.is_low(&core.config.credits) {
                continue;
            }
            let Some(transport) = self.transports.get(usize::from(device.0)) else { continue };
            if let Some(more) = row.allowance.grant(&core.config.credits, &transport.kept(peer)) {
                core.note(peer, Control::Credit(more));
            }
        }
    }

    #[inline]
    fn send_notes(&mut self) {
        let mut at = 0;
        while let Some(&peer) = self.core.noted.get(at) {
            if self.send_notes_of(peer) {
                self.core.peers[peer].is_noted = false;
                self.core.noted.swap_remove(at);
            } else {
                at += 1;
            }
        }
    }

    /// Whether all are out.
    pub(super) fn send_notes_of(&mut self, peer: PeerId) -> bool {
        let row = &mut self.core.peers[peer];
        let Some((device, link)) = row.connected() else {
            row.notes.clear();
            return true;
        };
        let Some(transport) = self.transports.get_mut(usize::from(device.0)) else { return true };
        // A hello must go first.
        if self.core.actions.iter().any(|action| action.path() == Some((device, link))) {
            return row.notes.is_empty();
        }
        let mut bytes = [0; Message::HEADER_LENGTH_MAX];
        while let Some(note) = row.notes.front() {
            if let Ok(length) = note.encode(&mut bytes)
                && !say_bytes(&mut **transport, link, &bytes[..length])
            {
                return false;
            }
            row.notes.pop_front();
        }
        true
    }
}

impl Action {
    /// On which link it is said.
    pub(super) const fn path(&self) -> Option<Path> {
        match self {
            Self::Hello(path, _) | Self::Say(path, _) | Self::Close(path, _) => Some(*path),
            Self::Adopt(_) => None,
        }
    }
}

impl Core {
    /// Whether something must go to this peer before any message of the user's.
    #[inline]
    pub(super) fn has_backlog(&self, peer: PeerId) -> bool {
        !self.actions.is_empty() || !self.peers[peer].notes.is_empty()
    }
}

/// False: there is no room for it. What cannot be said at all is dropped: its link has ended, and will be told so.
fn say_bytes(transport: &mut dyn Transport, link: crate::ids::LinkId, header: &[u8]) -> bool {
    let payload = Payload::Copied(&[]);
    let message = Outgoing { header, payload, immediate: None, more: false, context: None };
    !matches!(transport.send(link, &message), Ok(Sending::Full))
}
