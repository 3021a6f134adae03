//! Passive endpoints (`fi_passive_ep`, `fi_listen(3)`): who calls is heard, proves that it holds the job's key, and waits
//! until the owner accepts or rejects it.
//!
//! ```text
//!  Silent ──request───────────────────► Ready ──► a ConnectionRequest: accepted, rejected, or dropped
//!     └──────request──► Challenged ──proof──┘        (a connection of its own, taken out of this transport)
//! ```
//! Anything else ends the link. Whoever is silent for too long ends too, and earlier where descriptors are short; who has asked
//! waits as long as the owner wants, in bounded number: while that many wait nobody more is heard, and the operating system keeps who calls.
//!
//! Not here: the connection (`connected`).

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use crate::device::transport::{
    Ear, LinkError, Listening, Notice, Outgoing, Payload, Reaction, Sending, Taken, Transport,
};
use crate::ids::{DeviceId, LinkId};
use crate::seam::{Answer, DeviceError, Event, EventSink};
use crate::wire::{
    self, Challenge, Connect, ConnectData, Control, Goodbye, HelloRefused, HelloRole, Message, Proof,
    RefusedHello, Reject, VERSION,
};

use super::Config;
use super::core::STEP;
use super::interface::{ConnectError, EndpointError};
use super::links::Greeting;
use super::proof::{Said, Secrets, check_key};

/// Who listens for connected endpoints.
pub struct PassiveEndpoint {
    transport: Box<dyn Listening + Send>,
    hall: Hall,
    failed: Option<DeviceError>,
    /// The operating system had nothing for a request that waits.
    is_short: bool,
}

/// Everything but the transport, so that this can tell it things while it is driven.
struct Hall {
    secrets: Secrets,
    /// How long somebody may be silent.
    patience: Duration,
    /// How many may wait for the owner.
    backlog: usize,
    /// As an endpoint's: it goes on by a second at most from one call to the next.
    now: Duration,
    told_now: Duration,
    /// When it was looked last whether somebody was silent for too long.
    looked: Duration,
    callers: HashMap<LinkId, Caller>,
    /// Who has asked, in order. Some may be gone.
    ready: VecDeque<LinkId>,
    /// What is to be said; with `true` the link ends with it.
    replies: VecDeque<(LinkId, Control<'static>, bool)>,
}

/// Somebody who has connected.
struct Caller {
    phase: Phase,
    deadline: Duration,
    greeting: Greeting,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Its request is to come.
    Silent,
    /// Its proof is to come.
    Challenged,
    /// The owner is to say what becomes of it.
    Ready,
    /// It is on its way out.
    Turned,
}

/// Somebody who asks for a connection. Dropped, it is as one who was called and is gone.
pub struct ConnectionRequest {
    taken: Taken,
    greeting: Greeting,
}

impl PassiveEndpoint {
    /// Over this transport, which listens. Of the configuration the key, the seed and the patience with who is silent are
    /// used.
    ///
    /// # Errors
    /// The job's key is too short.
    pub fn new(config: &Config, transport: Box<dyn Listening + Send>) -> Result<Self, EndpointError> {
        check_key(config.job_key.as_ref())?;
        let hall = Hall {
            secrets: Secrets::new(config.job_key.clone(), config.seed),
            patience: config.connect_timeout,
            backlog: BACKLOG,
            now: Duration::ZERO,
            told_now: Duration::ZERO,
            looked: Duration::ZERO,
            callers: HashMap::new(),
            ready: VecDeque::new(),
            replies: VecDeque::new(),
        };
        Ok(Self { transport, hall, failed: None, is_short: false })
    }

    /// Where it listens: `sockaddr` bytes.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        self.transport.name()
    }

    /// So many requests may wait (`FI_BACKLOG`): that many with the operating system, as far as it allows, and that many
    /// here.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn set_backlog(&mut self, backlog: u32) -> Result<(), LinkError> {
        self.transport.set_backlog(backlog)?;
        self.hall.backlog = usize::try_from(backlog).unwrap_or(usize::MAX).max(1);
        Ok(())
    }

    /// Move on, and say how many things happened. `now` as for [`super::Endpoint::progress`].
    ///
    /// # Errors
    /// The transport failed, now or before. Requests that were taken are not touched by that.
    pub fn progress(&mut self, now: Duration) -> Result<usize, DeviceError> {
        let hall = &mut self.hall;
        hall.now += now.saturating_sub(hall.told_now).min(STEP);
        hall.told_now = hall.told_now.max(now);
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        if self.is_full() {
            return Ok(0);
        }
        let told = self.transport.progress(super::EVENTS_MAX, &mut self.hall);
        let told = told.inspect_err(|error| self.failed = Some(error.clone()))?;
        self.reply();
        self.expire();
        Ok(told)
    }

    /// The oldest request that nobody has taken.
    pub fn poll_request(&mut self) -> Option<ConnectionRequest> {
        self.is_short = false;
        while let Some(&link) = self.hall.ready.front() {
            let taken = self.transport.take_out(link);
            if matches!(taken, Err(LinkError::System { .. })) {
                // Descriptors, for one: whoever has some closes them at some time.
                self.is_short = true;
                return None;
            }
            self.hall.ready.pop_front();
            let caller = self.hall.callers.remove(&link);
            match (taken, caller) {
                (Ok(taken), Some(Caller { greeting, .. })) => {
                    return Some(ConnectionRequest { taken, greeting });
                }
                // Who is gone since is told to nobody.
                _ => self.transport.close(link, false),
            }
        }
        None
    }

    /// File descriptors one of which is readable when [`Self::progress`] would find something.
    #[must_use]
    pub fn wait_descriptor(&self) -> Option<i32> {
        self.transport.wait_descriptor()
    }

    /// Whether the owner may wait for the descriptor.
    pub fn may_wait(&mut self) -> bool {
        (self.hall.ready.is_empty() || self.is_short)
            && self.hall.replies.is_empty()
            && self.failed.is_none()
            && self.transport.may_wait()
    }

    /// When [`Self::progress`] is to be called at the latest, as [`super::Endpoint::next_deadline`] says it.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Duration> {
        let hall = &self.hall;
        let is_unseen = self.is_short || self.transport.is_unseen();
        let unseen = is_unseen.then(|| hall.now.saturating_add(super::UNSEEN));
        let silent = hall.callers.values().map(|caller| caller.deadline.max(hall.looked + LOOK));
        let first = silent.chain(unseen).min()?;
        let left = first.saturating_sub(hall.now).min(STEP);
        (first < Duration::MAX).then(|| hall.told_now.saturating_add(left))
    }

    /// Whether as many wait as may.
    fn is_full(&self) -> bool {
        self.hall.ready.len() >= self.hall.backlog
    }

    /// Say what is to be said; who has no room for so little is gone.
    fn reply(&mut self) {
        while let Some((link, control, is_last)) = self.hall.replies.pop_front() {
            let is_said = say(&mut *self.transport, link, &control);
            if is_last || !is_said {
                self.transport.close(link, is_said);
            }
        }
    }

    /// Whoever is silent for too long has had its time.
    fn expire(&mut self) {
        let is_short = self.is_short || self.transport.is_unseen();
        let Hall { callers, now, looked, patience, .. } = &mut self.hall;
        if now.saturating_sub(*looked) < LOOK {
            return;
        }
        *looked = *now;
        let transport = &mut self.transport;
        callers.retain(|&link, caller| {
            let silent_for = now.saturating_sub(caller.deadline.saturating_sub(*patience));
            let is_over = caller.deadline <= *now
                || is_short && caller.phase != Phase::Ready && silent_for >= SHORT_PATIENCE;
            if is_over {
                transport.close(link, false);
            }
            !is_over
        });
    }
}

impl ConnectionRequest {
    /// What the caller says with it.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        match wire::decode(&self.greeting.theirs) {
            Ok(Message::Control(Control::Connect(connect))) => connect.data.bytes(),
            _ => &[],
        }
    }

    /// The address that was called.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        &self.taken.name
    }

    /// The caller's.
    #[must_use]
    pub fn peer_name(&self) -> &[u8] {
        &self.taken.peer
    }

    /// Turn it down, with data of which the first [`ConnectData::LENGTH_MAX`] bytes are said (`fi_reject(3)`).
    ///
    /// # Errors
    /// The caller is gone.
    pub fn reject(mut self, data: &[u8]) -> Result<(), ConnectError> {
        let (transport, link) = (&mut *self.taken.transport, self.taken.link);
        let reject = Control::Reject(Reject { data: ConnectData::cut(data) });
        // So little has room in a socket to which nothing was written; the operating system brings it.
        let is_said = say(transport, link, &reject);
        transport.close(link, true);
        if is_said { Ok(()) } else { Err(ConnectError::Gone) }
    }

    pub(super) fn into_parts(self) -> (Taken, Greeting) {
        (self.taken, self.greeting)
    }
}

impl Hall {
    fn handle_request(&mut self, link: LinkId, connect: &Connect<'_>, bytes: &[u8]) -> Reaction {
        if connect.hello.common_version().is_none() {
            return self.refuse(link, RefusedHello::Version);
        }
        let Some(caller) = self.callers.get_mut(&link) else { return Reaction::Close };
        caller.greeting.theirs = bytes.to_vec();
        if !self.secrets.has_key() {
            return self.make_ready(link);
        }
        let number = self.secrets.draw();
        (caller.phase, caller.greeting.challenge) = (Phase::Challenged, Some(number));
        self.replies.push_back((link, Control::Challenge(Challenge { number }), false));
        Reaction::Continue
    }

    fn handle_proof(&mut self, link: LinkId, proof: &Proof) -> Reaction {
        let Some(caller) = self.callers.get_mut(&link) else { return Reaction::Close };
        let greeting = &mut caller.greeting;
        greeting.counter = Some(proof.number);
        let said = Said {
            role: HelloRole::Request,
            challenge: greeting.challenge.unwrap_or_default(),
            counter: proof.number,
            request: &greeting.theirs,
            answer: &[],
        };
        if self.secrets.is_proven(&said, &proof.code) {
            self.make_ready(link)
        } else {
            self.refuse(link, RefusedHello::NoKey)
        }
    }

    fn make_ready(&mut self, link: LinkId) -> Reaction {
        if let Some(caller) = self.callers.get_mut(&link) {
            (caller.phase, caller.deadline) = (Phase::Ready, Duration::MAX);
            self.ready.push_back(link);
        }
        Reaction::Keep
    }

    fn refuse(&mut self, link: LinkId, reason: RefusedHello) -> Reaction {
        let refused = HelloRefused { reason, version_min: VERSION, version_max: VERSION };
        self.replies.push_back((link, Control::HelloRefused(refused), true));
        if let Some(caller) = self.callers.get_mut(&link) {
            caller.phase = Phase::Turned;
        }
        Reaction::Continue
    }
}

impl EventSink for Hall {
    fn handle_event(&mut self, _device: DeviceId, _event: &Event) -> Answer {
        // Of a link that is not bound no message is told.
        Answer::Discard
    }
}

impl Ear for Hall {
    fn handle_untagged_event(&mut self, _device: DeviceId, _event: &Event) -> Answer {
        Answer::Discard
    }

    fn handle_control(&mut self, _device: DeviceId, link: LinkId, message: &[u8]) -> Reaction {
        let Some(phase) = self.callers.get(&link).map(|caller| caller.phase) else { return Reaction::Close };
        let Ok(Message::Control(control)) = wire::decode(message) else { return Reaction::Close };
        match (phase, control) {
            (Phase::Silent, Control::Connect(connect)) if connect.hello.role == HelloRole::Request => {
                self.handle_request(link, &connect, message)
            }
            (Phase::Challenged, Control::Proof(proof)) if proof.role == HelloRole::Request => {
                self.handle_proof(link, &proof)
            }
            // Nobody is here who could be connected in that way.
            (Phase::Silent, Control::Hello(_)) => self.refuse(link, RefusedHello::Closing),
            (Phase::Turned, _) | (_, Control::Goodbye(Goodbye::Closing | Goodbye::Idle)) => {
                Reaction::Continue
            }
            _ => Reaction::Close,
        }
    }

    fn handle_notice(&mut self, _device: DeviceId, notice: Notice) {
        match notice {
            Notice::Incoming { link } => {
                let deadline = self.now.saturating_add(self.patience);
                let caller = Caller { phase: Phase::Silent, deadline, greeting: Greeting::default() };
                self.callers.insert(link, caller);
            }
            Notice::Closed { link, .. } => {
                self.callers.remove(&link);
                self.ready.retain(|ready| *ready != link);
            }
            Notice::Open { .. } | Notice::Sent { .. } => {}
        }
    }
}

/// False: there is no room for it, or no such link.
fn say(transport: &mut (impl Transport + ?Sized), link: LinkId, control: &Control<'_>) -> bool {
    let mut bytes = [0; Message::HEADER_LENGTH_MAX];
    let Ok(length) = control.encode(&mut bytes) else { return false };
    let header = &bytes[..length];
    let payload = Payload::Copied(&[]);
    let message = Outgoing { header, payload, immediate: None, more: false, context: None };
    matches!(transport.send(link, &message), Ok(Sending::Done))
}

impl std::fmt::Debug for PassiveEndpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PassiveEndpoint")
            .field("name", &self.name())
            .field("waiting", &self.hall.ready.len())
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ConnectionRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConnectionRequest").field("peer", &self.taken.peer).finish_non_exhaustive()
    }
}

/// Patience with who is silent where there may be no descriptors for others.
const SHORT_PATIENCE: Duration = Duration::from_secs(1);
/// So often it is looked at most whether somebody was silent for too long.
const LOOK: Duration = Duration::from_millis(100);
/// How many requests may wait for the owner, unless it says otherwise.
const BACKLOG: usize = 1024;
