//! What the tests of a soft device share.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hasher};

use crate::device::Device;
use crate::device::soft::{Arena, Memory, SoftConfig, SoftDevice, SoftMessage};
use crate::ids::{DeviceId, Ignore, PeerId, Tag, TagHandle, TransferId};
use crate::seam::{
    Answer, Arrival, Buffer, Command, Event, EventSink, Match, Operation, OperationDone, Remote,
};

pub(super) const ALICE: PeerId = PeerId(1);
pub(super) const BOB: PeerId = PeerId(2);

/// Keeps what it is told, and answers what it was told to.
#[derive(Default)]
pub(super) struct Recorder {
    pub(super) events: Vec<Event>,
    pub(super) answers: VecDeque<Answer>,
}

impl EventSink for Recorder {
    fn handle_event(&mut self, _device: DeviceId, event: &Event) -> Answer {
        self.events.push(event.clone());
        match event {
            Event::Arrived(_) => self.answers.pop_front().unwrap_or(Answer::Hold),
            _ => Answer::Hold,
        }
    }
}

/// A device with a list, in step mode, with 33 receives posted.
pub(super) fn stepped(tags: u32) -> SoftDevice<Arena> {
    ready(SoftConfig { step_mode: true, ..SoftConfig::matching(tags) })
}

/// A device with a list, with 33 receives posted.
pub(super) fn automatic(tags: u32) -> SoftDevice<Arena> {
    ready(SoftConfig::matching(tags))
}

pub(super) fn ready(config: SoftConfig) -> SoftDevice<Arena> {
    let mut device = SoftDevice::new(config, Arena::new(4096)).expect("the configuration is good");
    if config.tags > 0 {
        submit(&mut device, Command::Receive { buffers: 33 });
    }
    device.observe();
    device
}

pub(super) fn submit<M: Memory>(device: &mut SoftDevice<M>, command: Command) {
    assert_eq!(device.submit(&[command]), Ok(1), "{command:?}");
}

pub(super) fn poll<M: Memory>(device: &mut SoftDevice<M>) -> Vec<Event> {
    poll_answering(device, &[])
}

pub(super) fn poll_answering<M: Memory>(device: &mut SoftDevice<M>, answers: &[Answer]) -> Vec<Event> {
    let mut recorder = Recorder { events: Vec::new(), answers: answers.iter().copied().collect() };
    device.poll(1 << 20, &mut recorder).expect("the device works");
    assert!(recorder.answers.is_empty(), "unasked: {:?}", recorder.answers);
    recorder.events
}

pub(super) fn send<M: Memory>(device: &mut SoftDevice<M>, peer: PeerId, message: SoftMessage) {
    device.send(peer, message).expect("the path is up");
}

pub(super) const fn handle(index: u32) -> TagHandle {
    TagHandle { index, generation: 0 }
}

pub(super) const fn transfer(index: u32) -> TransferId {
    TransferId { index, generation: 0 }
}

/// An ADD with a completion, into the arena's bytes `256 * index ..`, 256 long.
pub(super) fn add(index: u32, tag: u64, unexpected_count: u16) -> Command {
    Command::Add {
        handle: handle(index),
        tag: Tag(tag),
        ignore: Ignore::NONE,
        buffer: buffer(index),
        unexpected_count,
        signalled: true,
    }
}

pub(super) fn buffer(index: u32) -> Buffer {
    Buffer::new(Arena::BASE + u64::from(index) * 256, 256)
}

pub(super) fn del(index: u32, signalled: bool) -> Command {
    Command::Del { handle: handle(index), signalled }
}

pub(super) fn sync(unexpected_count: u16) -> Command {
    Command::Sync { unexpected_count, signalled: true }
}

pub(super) fn eager(tag: u64) -> SoftMessage {
    SoftMessage::eager(Tag(tag), 8)
}

/// A rendezvous whose data lies in the arena's upper half.
pub(super) fn rendezvous(tag: u64, length: u64) -> SoftMessage {
    SoftMessage::rendezvous(Tag(tag), remote(length))
}

pub(super) const fn remote(length: u64) -> Remote {
    Remote { address: Arena::BASE + 2048, key: 7, length }
}

/// The handles that were matched, in order.
pub(super) fn matched(events: &[Event]) -> Vec<u32> {
    events
        .iter()
        .filter_map(|event| match event {
            Event::Matched(Match { handle, .. }) => Some(handle.index),
            _ => None,
        })
        .collect()
}

/// The tags that arrived unmatched, in order.
pub(super) fn unexpected(events: &[Event]) -> Vec<u64> {
    arrivals(events).iter().map(|arrival| arrival.header.tag.0).collect()
}

pub(super) fn arrivals(events: &[Event]) -> Vec<Arrival> {
    events
        .iter()
        .filter_map(|event| match event {
            Event::Arrived(arrival) => Some(*arrival),
            _ => None,
        })
        .collect()
}

pub(super) fn operations(events: &[Event]) -> Vec<OperationDone> {
    events
        .iter()
        .filter_map(|event| match event {
            Event::Operation(done) => Some(*done),
            _ => None,
        })
        .collect()
}

pub(super) fn released(events: &[Event]) -> Vec<u32> {
    events
        .iter()
        .filter_map(|event| match event {
            Event::Released(handle) | Event::Matched(Match { handle, released: true, .. }) => {
                Some(handle.index)
            }
            _ => None,
        })
        .collect()
}

pub(super) const fn done(operation: Operation, success: bool, phase: u16) -> OperationDone {
    OperationDone { operation, success, phase, sync_requested: false }
}

pub(super) fn canonical<M: Memory>(device: &SoftDevice<M>) -> u64 {
    let mut hasher = DefaultHasher::new();
    device.canonical(&mut hasher);
    hasher.finish()
}
