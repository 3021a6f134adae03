//! What is done with transports: commands of the engines, what was queued while they told things, notes, credits.
//!
//! Not here: users' messages (`sending`).

use std::collections::VecDeque;

use crate::device::transport::{LinkError, Outgoing, Payload, Sending, Transport};
use crate::engine::Engine;
use crate::ids::PeerId;
use crate::offload::Fault;
use crate::seam::DeviceError;
use crate::wire::{Connect, Control, EndpointName, Hello, HelloRole, Keepalive, Message, Proof, VERSION};

use super::core::{Action, Core};
use super::credits::{Allowance, free};
use super::interface::EndpointError;
use super::links::Phase;
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
                    Err(error) => return Err(self.fail(error)),
                }
            }
        }
        if any && let Err(error) = self.transports[device].flush() {
            return Err(self.fail(error));
        }
        Ok(())
    }

    /// After transports have told things: users are told, and what came of it is done.
    pub(super) fn settle(&mut self) -> Result<(), EndpointError> {
        self.heed_faults()?;
        self.core.poll_engines();
        // As a rule that is all.
        let core = &self.core;
        let is_all =
            !core.has_to_act() && core.going.is_empty() && core.engines.iter().all(Engine::has_no_commands);
        if is_all { Ok(()) } else { self.settle_rest() }
    }

    #[inline(never)]
    fn settle_rest(&mut self) -> Result<(), EndpointError> {
        for device in 0..self.transports.len() {
            self.submit(device)?;
        }
        self.act();
        self.withdraw();
        self.send_segments();
        if !self.core.serving.is_empty() {
            self.serve();
        }
        self.grant_credits();
        self.send_notes();
        if !self.core.going.is_empty() {
            self.free_rows();
        }
        if self.core.closing.is_some() {
            self.core.say_goodbye();
            self.act();
        }
        Ok(())
    }

    /// What devices did that they may not do. The engine has left it without effect and gives that device no further
    /// receives. Where nothing is lost by that, the endpoint goes on; else somebody would wait for ever, and it fails. No
    /// fault is a peer's: what peers may do that they should not ends their link, in `hearing`.
    fn heed_faults(&mut self) -> Result<(), EndpointError> {
        for space in 0..2 {
            while let Some(fault) = self.core.engines[space].poll_fault() {
                self.core.statistics.device_faults += 1;
                if is_costly(&fault) {
                    return Err(self.fail(DeviceError::Contract(fault.to_string())));
                }
            }
        }
        Ok(())
    }

    /// A transport failed: everything in progress ends, and the endpoint is of no more use. The transports go first, with
    /// all their links: nothing touches memory that is given back here.
    #[cold]
    pub(super) fn fail(&mut self, error: DeviceError) -> EndpointError {
        let devices = self.transports.len();
        if error == DeviceError::Forked {
            // They are the parent's, and nothing is done to them here.
            self.transports.drain(..).for_each(std::mem::forget);
        }
        self.transports.clear();
        self.core.end_everything((0..devices).map(device_id), &error);
        self.core.failed.insert(EndpointError::Device(error)).clone()
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
    pub(super) fn say(&mut self, (device, link): Path, control: &Control<'_>) -> bool {
        let Some(transport) = self.transports.get_mut(usize::from(device.0)) else { return true };
        let mut bytes = [0; Message::HEADER_LENGTH_MAX];
        let Ok(length) = control.encode(&mut bytes) else { return true };
        say_bytes(&mut **transport, link, &bytes[..length], false)
    }

    /// Say a hello, and prove that the key is held where it was asked. The credits that it grants are those that are free
    /// now.
    fn say_hello(&mut self, path: Path, role: HelloRole) -> bool {
        let (device, link_id) = path;
        let Some(transport) = self.transports.get_mut(usize::from(device.0)) else { return true };
        let core = &mut self.core;
        let eager_limit = core.eager_limit(device);
        // On a link that has been closed since nothing is said, and nothing granted: another may be the peer's by now.
        let Some(link) = core.links.find_mut(path).filter(|link| link.phase != Phase::Closing) else {
            return true;
        };
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
        let encoded = match &core.line {
            None => hello.encode(&mut bytes),
            Some(line) => {
                let hello = Hello { name: EndpointName::default(), ..hello };
                Connect { hello, data: line.data() }.encode(&mut bytes)
            }
        };
        let Ok(length) = encoded else { return true };
        if !say_bytes(&mut **transport, link_id, &bytes[..length], false) {
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

    /// The old connection of a peer has ended: the link that waited for that is its own, unless there is a newer one.
    fn adopt(&mut self, peer: PeerId) {
        let state = self.core.peers[peer].state;
        // What is still being left will say so again.
        if matches!(state, State::Leaving(_)) {
            return;
        }
        let Some(path) = self.core.peers[peer].next.take() else { return };
        if matches!(state, State::Connected(_) | State::Dialling(_)) || self.core.closing.is_some() {
            return self.core.close_link(path, false);
        }
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
            row.is_answering = false;
            return true;
        };
        let Some(transport) = self.transports.get_mut(usize::from(device.0)) else { return true };
        // A hello must go first.
        if self.core.actions.iter().any(|action| action.path() == Some((device, link))) {
            return row.notes.is_empty();
        }
        let mut bytes = [0; Message::HEADER_LENGTH_MAX];
        while let Some(note) = row.notes.front() {
            // All go out in one call.
            let more = row.notes.len() > 1;
            if let Ok(length) = note.encode(&mut bytes)
                && !say_bytes(&mut **transport, link, &bytes[..length], more)
            {
                return false;
            }
            if matches!(note, Control::RemoteDone { .. }) {
                row.remote.unanswered = row.remote.unanswered.saturating_sub(1);
            }
            row.is_answering &= !matches!(note, Control::Keepalive(Keepalive { is_answer: true, .. }));
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
        let row = &self.peers[peer];
        !self.actions.is_empty() || !row.notes.is_empty() || row.remote.unsent > 0
    }
}

/// Whether a message may be lost, in a wrong receive, or out of order: the engine and the device do not mean the same
/// list any more.
const fn is_costly(fault: &Fault) -> bool {
    match fault {
        Fault::UnknownHandle { .. }
        | Fault::UnknownCompletion { .. }
        | Fault::Unexpected { .. }
        | Fault::ConsumedTwice { .. }
        | Fault::WrongMatch { .. } => true,
        // Data for nobody, and counts that are wrong of messages that are right; and what was told otherwise.
        Fault::UnknownDevice { .. }
        | Fault::UnknownTransfer { .. }
        | Fault::UnknownMessage { .. }
        | Fault::NoBufferPosted { .. }
        | Fault::CountWithoutTags { .. }
        | Fault::AfterFailure { .. }
        | Fault::Failed { .. } => false,
    }
}

/// False: there is no room for it. What cannot be said at all is dropped: its link has ended, and will be told so.
fn say_bytes(transport: &mut dyn Transport, link: crate::ids::LinkId, header: &[u8], more: bool) -> bool {
    let payload = Payload::Copied(&[]);
    let message = Outgoing { header, payload, immediate: None, more, context: None };
    !matches!(transport.send(link, &message), Ok(Sending::Full))
}
