//! Connected endpoints (`FI_EP_MSG`, `fi_cm(3)`): an endpoint with one peer, whose connection comes about once in its life.
//!
//! ```text
//!          connect                  accepted
//!  Fresh ───────────► Calling ─────────────────► Up ───────────────► Over
//!                        │                       ▲    lost, shut down  ▲
//!                        │ rejected, failed      │ accept              │
//!                        └───────────────────────┼────────────────────►┤
//!                              Called ───────────┘   the caller is gone │
//!                                 └────────────────────────────────────┘
//! ```
//! It is any other endpoint but for that: one row of a peer, over a transport that listens for nobody. What differs is asked
//! for where a connection begins and where it ends: nothing is dialled by a send, and nothing again.
//!
//! Not here: who listens (`passive`); what is said on a new link (`greetings`).

use std::collections::VecDeque;

use crate::device::transport::LinkError;
use crate::engine::CancelOutcome;
use crate::ids::PeerId;
use crate::wire::{self, ConnectData, Control, Goodbye, HelloRole, Message};

use super::core::{Action, Core};
use super::interface::{
    Address, AddressError, ConnectError, ConnectionEvent, EndpointError, Failure, SendRefused,
};
use super::links::Phase;
use super::passive::ConnectionRequest;
use super::peers::{Path, State};
use super::{Config, EVENTS_MAX, Endpoint, Transports, device_id};

/// See the module.
pub(super) struct Line {
    stage: Stage,
    /// What is said with the request, or as it is accepted.
    data: Vec<u8>,
    /// What came with the answer.
    heard: Vec<u8>,
    events: VecDeque<ConnectionEvent>,
}

/// How far it is. Drawn in the module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Fresh,
    Called(Path, PeerId),
    Calling,
    Up,
    /// Shut down here; its end is to be told.
    Leaving,
    Over,
}

impl Line {
    fn new(stage: Stage) -> Self {
        Self { stage, data: Vec::new(), heard: Vec::new(), events: VecDeque::new() }
    }

    /// What this side says with a request or an acceptance.
    pub(super) fn data(&self) -> ConnectData<'_> {
        ConnectData::cut(&self.data)
    }

    /// What came with an answer.
    pub(super) fn hear(&mut self, data: &ConnectData<'_>) {
        self.heard = data.bytes().to_vec();
    }

    /// Messages pass.
    pub(super) fn handle_connected(&mut self) {
        if matches!(self.stage, Stage::Calling | Stage::Called(..)) {
            self.stage = Stage::Up;
            self.events.push_back(ConnectionEvent::Connected { data: std::mem::take(&mut self.heard) });
        }
    }

    /// No connection comes about.
    pub(super) fn handle_failed(&mut self, failure: Failure) {
        if self.stage == Stage::Calling {
            self.stage = Stage::Over;
            self.events
                .push_back(ConnectionEvent::Refused { failure, data: std::mem::take(&mut self.heard) });
        }
    }

    /// The connection has ended.
    pub(super) fn handle_lost(&mut self) {
        if matches!(std::mem::replace(&mut self.stage, Stage::Over), Stage::Up | Stage::Leaving) {
            self.events.push_back(ConnectionEvent::Shutdown);
        }
    }

    /// Nobody will send anything any more.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Leaving | Stage::Over)
    }

    pub(super) fn has_news(&self) -> bool {
        !self.events.is_empty()
    }
}

impl Endpoint {
    /// A connected endpoint that will call, over one transport, which listens for nobody.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn calling(
        config: Config,
        transport: Box<dyn crate::device::transport::Transport + Send>,
    ) -> Result<Self, EndpointError> {
        Self::connected_over(config, vec![transport], Stage::Fresh)
    }

    /// A connected endpoint for who has called. [`Self::accept`] connects it.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn called(config: Config, request: ConnectionRequest) -> Result<Self, EndpointError> {
        let (taken, greeting) = request.into_parts();
        let path = (device_id(0), taken.link);
        let mut endpoint = Self::connected_over(config, vec![taken.transport], Stage::Fresh)?;
        let core = &mut endpoint.core;
        // No address that was accepted from is too long for a name.
        let Ok(peer) = core.peers.set_address(PEER, &taken.peer) else { return Ok(endpoint) };
        core.name = taken.name;
        core.links.insert(path, Phase::Waiting, Some(peer), std::time::Duration::MAX);
        if let Some(link) = core.links.find_mut(path) {
            *link.greeting() = greeting;
        }
        if let Some(line) = &mut core.line {
            line.stage = Stage::Called(path, peer);
        }
        Ok(endpoint)
    }

    fn connected_over(config: Config, transports: Transports, stage: Stage) -> Result<Self, EndpointError> {
        let mut endpoint = Self::new(config, transports)?;
        endpoint.core.line = Some(Box::new(Line::new(stage)));
        Ok(endpoint)
    }

    /// Ask for the connection to whoever listens there, with data of which the first [`ConnectData::LENGTH_MAX`] bytes are
    /// said (`fi_connect(3)`). [`Self::poll_connection`] says what comes of it. Once in the life of an endpoint.
    ///
    /// # Errors
    /// It is no connected endpoint, it has called or was called, or there is no such address.
    pub fn connect(&mut self, to: &[u8], data: &[u8]) -> Result<(), ConnectError> {
        let core = &mut self.core;
        core.check()?;
        let line = core.line.as_mut().filter(|line| line.stage == Stage::Fresh);
        let line = line.ok_or(ConnectError::NotNow)?;
        let peer = core.peers.set_address(PEER, to)?;
        (line.stage, line.data) = (Stage::Calling, ConnectData::cut(data).bytes().to_vec());
        let now = core.now;
        let row = &mut core.peers[peer];
        (row.wanted_since, row.state) = (Some(now), State::Waiting(now));
        self.dial(peer);
        Ok(())
    }

    /// Accept the connection for which this endpoint was made, with data as for [`Self::connect`] (`fi_accept(3)`).
    ///
    /// # Errors
    /// It was not made for one, it has been accepted, or the caller is gone.
    pub fn accept(&mut self, data: &[u8]) -> Result<(), ConnectError> {
        let core = &mut self.core;
        core.check()?;
        let Some(line) = core.line.as_mut() else { return Err(ConnectError::NotNow) };
        let (path, peer) = match line.stage {
            Stage::Called(path, peer) => (path, peer),
            Stage::Over => return Err(ConnectError::Gone),
            Stage::Fresh | Stage::Calling | Stage::Up | Stage::Leaving => {
                return Err(ConnectError::NotNow);
            }
        };
        let transport = self.transports.get_mut(usize::from(path.0.0));
        let is_bound = transport.is_some_and(|transport| transport.bind(path.1, peer).is_ok());
        if !is_bound {
            line.stage = Stage::Over;
            return Err(ConnectError::Gone);
        }
        line.data = ConnectData::cut(data).bytes().to_vec();
        core.accept(path, peer);
        // A device that failed says so in the next progress.
        let _ = self.settle();
        Ok(())
    }

    /// Call from this address (`fi_setname(3)`): before anything else is done.
    ///
    /// # Errors
    /// It is no connected endpoint, it has called or was called, or the address cannot be had.
    pub fn set_name(&mut self, name: &[u8]) -> Result<(), ConnectError> {
        let is_fresh = self.core.line.as_ref().is_some_and(|line| line.stage == Stage::Fresh);
        let transport = self.transports.first_mut().filter(|_| is_fresh).ok_or(ConnectError::NotNow)?;
        transport.set_source(name)?;
        self.core.name = transport.name().to_vec();
        Ok(())
    }

    /// The address of who is connected (`fi_getpeer(3)`).
    #[must_use]
    pub fn peer_name(&self) -> Option<&[u8]> {
        let line = self.core.line.as_ref()?;
        let has_one = !matches!(line.stage, Stage::Fresh | Stage::Calling);
        self.core.peers.at(PEER).filter(|_| has_one).map(|peer| &*self.core.peers[peer].name)
    }

    /// What became of the connection, each once.
    pub fn poll_connection(&mut self) -> Option<ConnectionEvent> {
        let event = self.core.line.as_mut()?.events.pop_front()?;
        if let (Some(peer), ConnectionEvent::Connected { .. }) = (self.core.peers.at(PEER), &event)
            && let Some((device, link)) = self.core.peers[peer].connected()
            && let Some(transport) = self.transports.get(usize::from(device.0))
            && let Some((name, _)) = transport.addresses(link)
        {
            self.core.name = name;
        }
        Some(event)
    }

    /// End the connection (`fi_shutdown(3)`). What was sent and told complete goes out, unless something is under way: that
    /// ends here and now, with its completions, and so does the connection. All posted receives are cancelled. The other side
    /// is told, and here it is told when the connection is no more.
    ///
    /// # Errors
    /// There is no connection, or none any more.
    pub fn shutdown(&mut self) -> Result<(), ConnectError> {
        let core = &mut self.core;
        core.check()?;
        let line = core.line.as_mut().filter(|line| line.stage == Stage::Up);
        line.ok_or(ConnectError::NotNow)?.stage = Stage::Leaving;
        let Some(peer) = core.peers.at(PEER) else { return Ok(()) };
        let State::Connected(path) = core.peers[peer].state else { return Ok(()) };
        self.send_notes_of(peer);
        let core = &mut self.core;
        core.cancel_posted();
        core.peers[peer].state = State::Leaving(path);
        let is_under_way = !core.receives.is_empty() || core.operations.of(peer).next().is_some();
        if is_under_way {
            self.cut(path);
        } else {
            core.actions.push_back(Action::Say(path, Control::Goodbye(Goodbye::Closing)));
            core.close_link(path, true);
        }
        // A device that failed says so in the next progress.
        let _ = self.settle();
        Ok(())
    }

    /// End a link here and now, and hear what becomes of all that was under way on it.
    fn cut(&mut self, path: Path) {
        let Some(transport) = self.transports.get_mut(usize::from(path.0.0)) else { return };
        transport.close(path.1, false);
        while self.core.links.find(path).is_some() {
            match transport.progress(EVENTS_MAX, &mut self.core) {
                Ok(told) if told > 0 => {}
                Ok(_) => return,
                Err(error) => {
                    self.fail(error);
                    return;
                }
            }
        }
    }
}

impl Core {
    fn check(&self) -> Result<(), ConnectError> {
        self.failed.as_ref().map_or(Ok(()), |error| Err(ConnectError::Endpoint(error.clone())))
    }

    /// The user takes who has called.
    fn accept(&mut self, path: Path, peer: PeerId) {
        let theirs = self.links.find_mut(path).map(|link| std::mem::take(&mut link.greeting().theirs));
        let theirs = theirs.unwrap_or_default();
        if let Ok(Message::Control(Control::Connect(connect))) = wire::decode(&theirs) {
            self.actions.push_back(Action::Hello(path, HelloRole::Answer));
            self.connect(path, peer, &connect.hello);
            // It is part of what the answer's proof is over.
            if let Some(link) = self.links.find_mut(path) {
                link.greeting().theirs = theirs;
            }
        }
    }

    /// Why there is nobody of this number. That of a connected endpoint's peer is known when it calls.
    #[cold]
    pub(super) fn nobody(&self, address: Address) -> SendRefused {
        match self.line {
            Some(_) if address == PEER => SendRefused::Unreachable(Failure::NotConnected),
            Some(_) | None => SendRefused::Address(address),
        }
    }

    /// The connection has ended, whether it stood or not.
    pub(super) fn end_line(&mut self) {
        if let Some(line) = &mut self.line {
            line.handle_lost();
            self.serve_nobody();
        }
    }

    /// Where the connection has ended, receives that wait for a message end too, those that are posted later among them.
    #[inline]
    pub(super) fn serve_nobody(&mut self) {
        if !self.receives.is_empty() && self.line.as_ref().is_some_and(|line| line.is_over()) {
            self.cancel_posted();
        }
    }

    /// Nobody will send any more: receives that wait for a message end.
    #[cold]
    pub(super) fn cancel_posted(&mut self) {
        let posted = self
            .receives
            .iter()
            .filter_map(|(_, receive)| Some((receive.order, receive.posted?, receive.space)));
        let mut posted: Vec<_> = posted.collect();
        posted.sort_unstable_by_key(|(order, ..)| *order);
        for (_, id, space) in posted {
            let outcome = self.engines[space as usize].cancel(id);
            debug_assert!(outcome != CancelOutcome::Pending, "no device has any");
            // One by one: they end in the order in which they were posted, whichever space they are of.
            self.poll_engines();
        }
    }
}

impl From<AddressError> for ConnectError {
    fn from(error: AddressError) -> Self {
        Self::Address(error.to_string())
    }
}

impl From<LinkError> for ConnectError {
    fn from(error: LinkError) -> Self {
        match error {
            LinkError::System { errno, .. } => Self::System { errno },
            LinkError::Address(_) | LinkError::Unknown(_) | LinkError::Bound { .. } => {
                Self::Address(error.to_string())
            }
        }
    }
}

/// The number under which a connected endpoint knows its peer: for [`super::Send::to`] and the like.
pub const PEER: Address = Address(0);
