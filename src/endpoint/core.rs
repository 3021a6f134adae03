//! All that an endpoint knows: everything but the transports, so that these can tell it things while they are driven.
//!
//! Not here: what is done about what is known.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use slab::Slab;

use crate::engine::{ClaimId, Config as EngineConfig, Engine, Peeked, Posting};
use crate::ids::{DeviceId, PeerId, ReceiveId, TagHandle};
use crate::offload::{Bug, is_planted};
use crate::seam::{Capabilities, DeviceError};
use crate::wire::{Control, Credits, HelloRole, InstanceId, OperationId, PeerCapabilities};

use super::awaited::Awaited;
use super::cancelling::Cancelling;
use super::config::Config;
use super::connected::Line;
use super::going::Going;
use super::interface::{Completed, Completion, EndpointError, Space};
use super::links::Links;
use super::operations::Operations;
use super::peers::{Path, Peers, State};
use super::proof::{Secrets, check_key};
use super::remote::{Placing, Regions};
use super::statistics::Statistics;

/// See the module.
pub(super) struct Core {
    pub(super) config: Config,
    pub(super) name: Vec<u8>,
    pub(super) instance: InstanceId,
    pub(super) secrets: Secrets,
    /// The endpoint's own time, which goes on by [`STEP`] at most from one call to the next: while the process stands still
    /// (stopped, in a debugger) nobody's patience ends.
    pub(super) now: Duration,
    /// What time the owner said it is.
    pub(super) told_now: Duration,
    /// When transports were told last to look around, by that time.
    pub(super) looked: Duration,
    /// By [`Space`].
    pub(super) engines: [Engine; 2],
    /// What this side says of itself, by transport.
    pub(super) capabilities: Vec<PeerCapabilities>,
    /// The longest payload in one message, by transport.
    pub(super) eager_limits: Vec<u64>,
    /// Whether it is shared memory, by transport.
    pub(super) are_memory: Vec<bool>,
    pub(super) peers: Peers,
    pub(super) going: Going,
    pub(super) links: Links,
    /// Of a connected endpoint: how far its connection is.
    pub(super) line: Option<Box<Line>>,
    pub(super) operations: Operations,
    pub(super) receives: Slab<Receive>,
    pub(super) receives_made: u64,
    pub(super) cancelling: Cancelling,
    pub(super) claims: Vec<Claim>,
    pub(super) completions: VecDeque<Completion>,
    /// What is to be done with transports.
    pub(super) actions: VecDeque<Action>,
    /// Peers with notes.
    pub(super) noted: Vec<PeerId>,
    /// Peers whose credits are to be looked at.
    pub(super) touched: Vec<PeerId>,
    /// Sends whose memory is to be withdrawn.
    pub(super) withdrawals: Vec<OperationId>,
    /// Sends of which segments are still to go.
    pub(super) segmented: VecDeque<OperationId>,
    /// Memory that peers may access.
    pub(super) regions: Regions,
    /// Pieces of remote memory access on their way into memory.
    pub(super) placings: Slab<Placing>,
    /// Peers whose reads are to be answered.
    pub(super) serving: VecDeque<PeerId>,
    /// Messages of which the sender waits to hear.
    pub(super) awaited: Awaited,
    /// Whose message a device puts into an entry, while its data follows by itself.
    pub(super) entries: HashMap<TagHandle, PeerId>,
    /// When something is to be done whatever happens; never later, perhaps earlier.
    pub(super) next_deadline: Duration,
    /// Peers to whom goodbye is still to be said, once it is being closed.
    pub(super) farewells: Vec<PeerId>,
    /// It is being closed.
    pub(super) closing: Option<Closing>,
    pub(super) failed: Option<EndpointError>,
    /// A transport has told that it failed; nothing was done about it yet.
    pub(super) device_failure: Option<DeviceError>,
    pub(super) statistics: Statistics,
}

/// How closing gets on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Closing {
    /// What others had still to take when that was looked at last: bytes and sends.
    pub(super) left: u64,
    /// When it is looked at next: if nothing was taken since, patience is over.
    pub(super) check: Duration,
    /// When patience is over in any case.
    pub(super) until: Duration,
    /// Patience is over.
    pub(super) is_over: bool,
}

/// A receive, from its post until its last completion.
#[derive(Clone, Copy, Debug)]
pub(super) struct Receive {
    pub(super) context: u64,
    pub(super) flags: u32,
    pub(super) space: Space,
    pub(super) is_multi: bool,
    /// Which of all it was.
    pub(super) order: u64,
    /// If it was posted, its name there.
    pub(super) posted: Option<ReceiveId>,
}

/// A message that was claimed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    pub(super) context: u64,
    pub(super) space: Space,
    pub(super) claim: ClaimId,
    pub(super) message: Peeked,
}

/// What is to be done with a transport.
#[derive(Debug)]
pub(super) enum Action {
    /// Say a hello; the credits in it are counted when it goes.
    Hello(Path, HelloRole),
    /// Say something.
    Say(Path, Control<'static>),
    /// End a link; with `true`, when what was given to it is out.
    Close(Path, bool),
    /// The old connection has ended: the new one is this peer's.
    Adopt(PeerId),
}

impl Core {
    pub(super) fn new(
        config: Config,
        name: Vec<u8>,
        devices: impl Iterator<Item = (Capabilities, bool)>,
    ) -> Result<Self, EndpointError> {
        check_key(config.job_key.as_ref())?;
        let tagged =
            EngineConfig { layout: config.layout, kept_from: config.kept_from, ..EngineConfig::default() };
        let mut engines = [Engine::new(tagged), Engine::new(EngineConfig::default())];
        let (mut capabilities, mut eager_limits, mut are_memory) = (Vec::new(), Vec::new(), Vec::new());
        for (device, is_memory) in devices {
            are_memory.push(is_memory);
            engines[Space::Tagged as usize].add_device(device)?;
            eager_limits.push(config.eager_limit.min(device.eager_limit));
            // Nobody matches messages without a tag but the engine.
            engines[Space::Untagged as usize].add_device(Capabilities { tags: 0, ..device })?;
            let all =
                PeerCapabilities::READS.with(PeerCapabilities::IMMEDIATE).with(PeerCapabilities::SEGMENTS);
            capabilities.push(if device.is_matching() { all.with(PeerCapabilities::MATCHING) } else { all });
        }
        let mut secrets = Secrets::new(config.job_key.clone(), config.seed);
        Ok(Self {
            instance: secrets.instance(),
            secrets,
            name,
            now: Duration::ZERO,
            told_now: Duration::ZERO,
            looked: Duration::ZERO,
            engines,
            capabilities,
            eager_limits,
            are_memory,
            peers: Peers::default(),
            going: Going::default(),
            links: Links::default(),
            line: None,
            operations: Operations::default(),
            receives: Slab::new(),
            receives_made: 0,
            cancelling: Cancelling::default(),
            claims: Vec::new(),
            completions: VecDeque::with_capacity(COMPLETIONS),
            actions: VecDeque::new(),
            noted: Vec::new(),
            touched: Vec::new(),
            withdrawals: Vec::new(),
            segmented: VecDeque::new(),
            regions: Regions::default(),
            placings: Slab::new(),
            serving: VecDeque::new(),
            awaited: Awaited::default(),
            entries: HashMap::new(),
            next_deadline: Duration::MAX,
            farewells: Vec::new(),
            closing: None,
            failed: None,
            device_failure: None,
            statistics: Statistics::default(),
            config,
        })
    }

    /// The owner says what time it is.
    #[inline]
    pub(super) fn tell_time(&mut self, now: Duration) {
        // Clocks that cost little tick seldom.
        if now == self.told_now {
            return;
        }
        self.now += now.saturating_sub(self.told_now).min(STEP);
        self.told_now = self.told_now.max(now);
    }

    /// Whether there is something to be done with transports, or something to tell.
    #[inline]
    pub(super) fn has_to_act(&self) -> bool {
        !(self.actions.is_empty()
            && self.noted.is_empty()
            && self.touched.is_empty()
            && self.withdrawals.is_empty()
            && self.segmented.is_empty()
            && self.serving.is_empty()
            && self.closing.is_none())
    }

    #[inline]
    pub(super) fn complete(&mut self, context: u64, flags: u32, space: Space, what: Completed) {
        if matches!(what, Completed::Failed(_)) {
            self.statistics.failed += 1;
        }
        self.completions.push_back(Completion { context, flags, space, what });
    }

    /// The longest payload in one message over this transport.
    pub(super) fn eager_limit(&self, device: DeviceId) -> u64 {
        self.eager_limits.get(usize::from(device.0)).copied().unwrap_or(0)
    }

    /// Something is to be done at this time.
    pub(super) fn set_deadline(&mut self, at: Duration) {
        self.next_deadline = self.next_deadline.min(at);
    }

    /// Tell a peer something as soon as there is room. Nothing is told where there is no connection.
    #[inline]
    pub(super) fn note(&mut self, peer: PeerId, control: Control<'static>) {
        let row = &mut self.peers[peer];
        if !matches!(row.state, State::Connected(_)) {
            return;
        }
        // Of each message that it may have sent it may have asked to hear of the match and of the delivery.
        let Credits { headers, eager_messages, .. } = self.config.credits;
        let most = (u64::from(headers) + u64::from(eager_messages)).saturating_mul(2) + NOTES_OF_OURS;
        // Each answer to a write is counted when that comes.
        let of_writes = u64::from(row.remote.unanswered);
        if row.notes.len() as u64 >= most + of_writes {
            return self.break_off(peer);
        }
        row.notes.push_back(control);
        if !row.is_noted {
            row.is_noted = true;
            if self.noted.is_empty() || !is_planted(Bug::LostWakeUp) {
                self.noted.push(peer);
            }
        }
    }

    /// Something changed what is kept of this peer's, or is outstanding: more may be granted, if that is worth it.
    #[inline]
    pub(super) fn touch(&mut self, peer: PeerId) {
        let row = &mut self.peers[peer];
        if !row.is_touched && row.allowance.is_low(&self.config.credits) {
            row.is_touched = true;
            self.touched.push(peer);
        }
    }

    /// The post of a receive: what is to be remembered of it, and its end if it has ended.
    #[inline]
    pub(super) fn handle_posting(&mut self, key: usize, posting: Posting) {
        self.statistics.matched_unexpected += u64::from(!matches!(posting, Posting::Queued(_)));
        match posting {
            Posting::Queued(id) => {
                if let Some(receive) = self.receives.get_mut(key) {
                    receive.posted = Some(id);
                    self.cancelling.note(key, &self.receives);
                }
            }
            Posting::Matched(_) => {}
            Posting::Placed(message) => {
                if let Some(receive) = self.receives.try_remove(key) {
                    self.complete_receive(&receive, &message);
                }
            }
        }
    }
}

/// What is told to a peer that is no answer to a message: credits and keepalive.
const NOTES_OF_OURS: u64 = 64;
/// What passes of time between two calls at most.
pub(super) const STEP: Duration = Duration::from_secs(1);
/// Completions for which there is room from the start.
const COMPLETIONS: usize = 1024;
