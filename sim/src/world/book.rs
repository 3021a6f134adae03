//! What a world knows of its receives and messages, beside the engine.

use std::collections::BTreeMap;

use tagmatch::ids::{MessageToken, PeerId, ReceiveId, TagHandle};
use tagmatch::seam::{Event, MatchStage};

use super::scope::{Op, Receive, Scope};
use super::words_of;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Book {
    /// By receive.
    pub(super) progress: Vec<Progress>,
    /// By message.
    pub(super) decisions: Vec<Decision>,
    /// By message: which of its sender's it is.
    pub(super) sent: Vec<u32>,
    /// Messages that the engine holds and has not decided, as far as was seen; in the order in which it was told.
    pub(super) undecided: Vec<u32>,
    /// Matched by a device that has not told it yet.
    pub(super) by_device: Vec<u32>,
    /// By thread: what is done.
    pub(super) done: Vec<usize>,
    /// By number: what was claimed.
    pub(super) claims: Vec<Option<(tagmatch::engine::ClaimId, u32)>>,
    /// Heard while polling, not handled: a message and its receive.
    pub(super) heard: Vec<(u32, u32)>,
    /// Paths that are lost.
    pub(super) lost: Vec<PeerId>,
    /// Those of which the engine was told.
    pub(super) told_lost: Vec<PeerId>,
    /// Peers that came back by another path, and which.
    pub(super) moved: Vec<(PeerId, u8)>,
    /// By message: it is in its receive, and the user was told.
    pub(super) delivered: Vec<bool>,
    /// By message: where in a multi-receive buffer it begins.
    pub(super) offsets: Vec<u64>,
    /// By peer: messages accepted.
    pub(super) accepted: Vec<u32>,
    /// By device.
    devices: Vec<Known>,
}

/// What is known of a device.
#[derive(Clone, Debug, Default)]
struct Known {
    /// By place of the handle: its generation, and the receive that it stands for.
    entries: Vec<(u32, u32)>,
    /// Handles that stood for others at those places before: by place, generation and receive.
    before: Vec<(u32, u32, u32)>,
    /// By token: the message that it holds.
    tokens: BTreeMap<u64, u32>,
    failed: bool,
    over: bool,
    /// Something may be to be submitted.
    due: bool,
}

/// How far a receive is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Progress {
    pub(super) posted: bool,
    pub(super) id: Option<ReceiveId>,
    /// A cancel was called and is not answered.
    pub(super) cancelling: bool,
    pub(super) ended: bool,
    /// Bytes that are left of a multi-receive buffer.
    pub(super) room: u64,
    /// It has taken its last message.
    pub(super) full: bool,
}

impl Progress {
    fn new(receive: &Receive) -> Self {
        Self { room: receive.least.map_or(0, |_| receive.length), ..Self::default() }
    }
}

/// Where a message goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Decision {
    Open,
    Unexpected,
    Receive(u32),
    Claimed,
    Vanished,
}

impl Book {
    pub(super) fn new(scope: &Scope) -> Self {
        let claims = scope.threads.iter().flatten().filter(|op| matches!(op, Op::Claim(..))).count();
        let mut counts: Vec<u32> = Vec::new();
        let mut sent = Vec::new();
        for message in &scope.messages {
            let peer = message.source.0 as usize;
            counts.resize(counts.len().max(peer + 1), 0);
            sent.push(counts[peer]);
            counts[peer] += 1;
        }
        Self {
            progress: scope.receives.iter().map(Progress::new).collect(),
            decisions: vec![Decision::Open; scope.messages.len()],
            sent,
            undecided: Vec::new(),
            by_device: Vec::new(),
            done: vec![0; scope.threads.len()],
            claims: vec![None; claims],
            heard: Vec::new(),
            lost: Vec::new(),
            told_lost: Vec::new(),
            moved: Vec::new(),
            delivered: vec![false; scope.messages.len()],
            offsets: vec![0; scope.messages.len()],
            accepted: vec![0; counts.len()],
            devices: vec![Known::default(); scope.paths.len()],
        }
    }

    pub(super) fn handle_added(&mut self, at: usize, handle: TagHandle, receive: u32) {
        let entries = &mut self.devices[at].entries;
        let place = handle.index as usize;
        entries.resize(entries.len().max(place + 1), (u32::MAX, u32::MAX));
        let (generation, other) = std::mem::replace(&mut entries[place], (handle.generation, receive));
        if generation != u32::MAX && generation != handle.generation {
            self.devices[at].before.push((handle.index, generation, other));
        }
    }

    pub(super) fn receive_of(&self, at: usize, handle: TagHandle) -> Option<u32> {
        let device = &self.devices[at];
        let &(generation, receive) = device.entries.get(handle.index as usize)?;
        if generation == handle.generation {
            return Some(receive);
        }
        // What a device still has to say of an entry must not depend on whether its place is another's by now.
        let is_it = |it: &&(u32, u32, u32)| (it.0, it.1) == (handle.index, handle.generation);
        device.before.iter().rfind(is_it).map(|it| it.2)
    }

    pub(super) fn handle_held(&mut self, at: usize, token: MessageToken, message: u32) {
        self.devices[at].tokens.insert(token.0, message);
        if self.decisions[message as usize] == Decision::Open {
            self.undecided.push(message);
        }
    }

    pub(super) fn is_held(&self, at: usize, token: MessageToken) -> bool {
        self.devices[at].tokens.contains_key(&token.0)
    }

    pub(super) fn take_token(&mut self, at: usize, token: MessageToken) -> Option<u32> {
        self.devices[at].tokens.remove(&token.0)
    }

    pub(super) fn decide(&mut self, message: u32, decision: Decision) {
        self.undecided.retain(|other| *other != message);
        self.decisions[message as usize] = decision;
    }

    /// A message goes into the next piece of a multi-receive buffer. Whether that was the last.
    pub(super) fn take_piece(&mut self, receive: u32, it: &Receive, message: u32, length: u64) -> bool {
        let Some(least) = it.least else { return false };
        let progress = &mut self.progress[receive as usize];
        self.offsets[message as usize] = it.length - progress.room;
        progress.room -= length.min(progress.room);
        progress.full = progress.room < least || progress.room == 0;
        progress.full
    }

    /// Messages of this peer that come through this device were sent before its path was lost.
    pub(super) fn is_lost_path(&self, peer: PeerId, path: u8) -> bool {
        self.lost.contains(&peer) && !self.moved.contains(&(peer, path))
    }

    pub(super) fn set_due(&mut self, at: usize, due: bool) {
        self.devices[at].due = due;
    }

    pub(super) fn is_due(&self, at: usize) -> bool {
        self.devices[at].due
    }

    pub(super) fn handle_failed(&mut self, at: usize) {
        self.devices[at].failed = true;
    }

    pub(super) fn is_failed(&self, at: usize) -> bool {
        self.devices[at].failed
    }

    /// A failed device has told its end.
    pub(super) fn handle_over(&mut self, at: usize) {
        self.devices[at].over = true;
    }

    pub(super) fn is_over(&self, at: usize) -> bool {
        self.devices[at].over
    }

    pub(super) fn is_anything_lost(&self) -> bool {
        !self.lost.is_empty() || self.devices.iter().any(|device| device.failed)
    }

    /// An event, in words.
    pub(super) fn words(&self, at: usize, event: &Event) -> String {
        let receive = |handle| self.receive_of(at, handle);
        let named = |handle| super::name(receive(handle));
        match event {
            Event::Arrived(arrival) => format!("m{} unexpected", arrival.header.app_ctx),
            Event::Matched(matched) => {
                let stage = match matched.stage {
                    MatchStage::Complete => "",
                    MatchStage::DataFollows => ", data follows",
                    MatchStage::SoftwareRendezvous(_) => ", handed back",
                };
                format!("m{} matched with {}{stage}", matched.app_ctx, named(matched.handle))
            }
            Event::Data(data) => match data.target {
                tagmatch::seam::DataTarget::Entry(handle) => format!("the data of {}", named(handle)),
                tagmatch::seam::DataTarget::Message(token) => {
                    let message = self.devices[at].tokens.get(&token.0);
                    message
                        .map_or_else(|| "data is lost".to_owned(), |it| format!("the data of m{it} is lost"))
                }
                // Which, is seen by what ends then.
                tagmatch::seam::DataTarget::Transfer(_) => "the data of a message".to_owned(),
            },
            Event::Operation(done) => {
                let result = if done.success { "done" } else { "failed: matched before" };
                let phase = done.phase;
                format!("{} {result}, device's count {phase:#06x}", words_of(done.operation, receive))
            }
            Event::Released(handle) => format!("{} released", named(*handle)),
            Event::SetAside { handle, .. } => format!("{} set aside", named(*handle)),
            Event::Untagged { .. } => "a message without a tag".to_owned(),
            Event::PathLost { peer } => format!("the path to peer {} is lost", peer.0),
            Event::DeviceFailed(error) => format!("failed: {error}"),
        }
    }
}
