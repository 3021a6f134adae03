//! The engine over verbs devices, the real libmlx5 and the simulated HCA, in random schedules of its steps: every
//! message in the receive that it belongs to, whole, and everything given back at the end.
//!
//! Each receive here names one tag exactly, and each tag is one sender's, so that whatever the schedule the k-th message
//! of a tag belongs to the k-th receive of it that was not cancelled.
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are outside test functions")]

#[path = "verbs/rig.rs"]
mod rig;

use std::collections::BTreeMap;

use rig::{Side, config, hca, word};
use tagmatch::device::Device;
use tagmatch::device::verbs::device::{Message, Registered, Sending};
use tagmatch::device::verbs::memory::RemoteAccess;
use tagmatch::device::verbs::{VerbsConfig, VerbsDevice};
use tagmatch::engine::{CancelOutcome, Completion, Config, End, Engine, Kind, Posting, Receive};
use tagmatch::ids::{DeviceId, Ignore, MessageToken, PeerId, ReceiveId, Source, Tag};
use tagmatch::matching::Pattern;
use tagmatch::seam::{Add, Buffer, Placer};
use tagmatch::wire;
use tagmatch_sim::hca::{HcaConfig, Step};
use tagmatch_sim::hca_abi::HcaControl;

tagmatch_sim::hca_hooks!();

struct World {
    engine: Engine,
    id: DeviceId,
    receiver: Side,
    senders: Vec<Side>,
    memory: Registered,
    sources: Vec<Registered>,
    hca: HcaControl,
    random: u64,
    directed: bool,
    /// Of the HCA at a time, at most: a slow one is nearly always out of phase.
    steps: usize,
    receives: Vec<Posted>,
    sent: BTreeMap<u64, Vec<usize>>,
    lengths: Vec<u64>,
    rendezvous: usize,
    fins: usize,
}

struct Posted {
    tag: u64,
    buffer: Buffer,
    id: Option<ReceiveId>,
    end: Option<Completion>,
}

/// Writes held messages at once, and puts receives into the list at once.
struct Hand<'a>(&'a mut VerbsDevice);

impl Placer for Hand<'_> {
    fn place(&mut self, _device: DeviceId, message: MessageToken, buffer: &Buffer) -> bool {
        self.0.place_held(message, buffer)
    }

    fn add(&mut self, _device: DeviceId, add: &Add<'_>) -> bool {
        self.0.add(add)
    }
}

const SENDERS: u32 = 2;
const RECEIVES: u64 = 160;
/// The longest receive, and its place in memory.
const ROOM: u64 = 40_000;
const TAGS: u64 = 3;
/// Bytes that a sender's rendezvous are read from.
const SOURCE: usize = 128 * 65_536;

impl World {
    fn new(seed: u64, hca_config: HcaConfig, tags: u32) -> Self {
        let hca = hca(hca_config);
        let small = VerbsConfig { tags, eager_limit: 2048, ..config() };
        let mut receiver = Side::new_without_receives(&hca, small.clone());
        let mut engine = Engine::new(Config::default());
        let id = engine.add_device(receiver.device.capabilities()).unwrap();
        let memory =
            receiver.device.allocate(usize::try_from(RECEIVES * ROOM).unwrap(), RemoteAccess::NONE).unwrap();
        for place in 0..2 {
            let bounce = receiver.buffer(place * 2048, 2048);
            engine.add_bounce_buffer(id, bounce);
        }
        let (mut senders, mut sources) = (Vec::new(), Vec::new());
        let taken = receiver.device.submit(engine.poll_commands(id)).unwrap();
        engine.handle_submitted(id, taken);
        for number in 0..SENDERS {
            let mut sender = Side::new(&hca, small.clone());
            sources.push(sender.device.allocate(SOURCE, RemoteAccess::READ).unwrap());
            let theirs = sender.device.prepare(rig::PEER).unwrap();
            let ours = receiver.device.prepare(PeerId(number)).unwrap();
            receiver.device.connect(PeerId(number), &theirs).unwrap();
            sender.device.connect(rig::PEER, &ours).unwrap();
            senders.push(sender);
        }
        let (receives, sent, lengths) = (Vec::new(), BTreeMap::new(), Vec::new());
        let random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let (rendezvous, fins) = (0, 0);
        Self {
            engine,
            id,
            receiver,
            senders,
            memory,
            sources,
            hca,
            random,
            directed: seed % 2 == 1,
            steps: if seed % 8 < 3 { 12 } else { 300 },
            receives,
            sent,
            lengths,
            rendezvous,
            fins,
        }
    }

    fn below(&mut self, limit: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        usize::try_from(self.random >> 33).unwrap() % limit
    }

    fn tag(&mut self) -> (usize, u64) {
        let sender = self.below(SENDERS as usize);
        let tag = self.below(usize::try_from(TAGS).unwrap()) as u64;
        (sender, tag * u64::from(SENDERS) + sender as u64)
    }

    fn post(&mut self) {
        let number = self.receives.len() as u64;
        if number == RECEIVES {
            return;
        }
        let (_, tag) = self.tag();
        let length = [100, 2048, 10_000, ROOM][self.below(4)];
        let buffer =
            Buffer { address: self.memory.buffer.address + number * ROOM, length, ..self.memory.buffer };
        // A directed receive stays in software, and those behind it with it.
        let is_directed = self.directed && self.below(4) == 0;
        let source = if is_directed { Source::Peer(peer(tag)) } else { Source::Any };
        let pattern = Pattern { tag: Tag(tag), ignore: Ignore::NONE, source };
        let receive = Receive { pattern, buffer, context: number, kind: Kind::Once };
        let posting = if self.below(2) == 0 {
            self.engine.post(&receive)
        } else {
            self.engine.post_placing(&receive, &mut Hand(&mut self.receiver.device))
        };
        let (mut id, mut end) = (None, None);
        match posting {
            Posting::Queued(posted) => id = Some(posted),
            Posting::Matched(_) => {}
            Posting::Placed(received) => {
                end = Some(Completion { context: number, end: End::Received(received) });
            }
        }
        let is_placed = end.is_some();
        self.receives.push(Posted { tag, buffer, id, end });
        if is_placed {
            self.check(self.receives.len() - 1);
        }
    }

    fn send(&mut self) {
        let (sender, tag) = self.tag();
        let number = self.lengths.len();
        let is_rendezvous = self.below(3) == 0;
        let length = if is_rendezvous { self.below(60_000) } else { self.below(2049) };
        let bytes = content(number, length);
        let context = word(u32::try_from(number).unwrap());
        let immediate = (self.below(2) == 0).then_some(u32::try_from(number).unwrap());
        let posted = if is_rendezvous {
            // Each has its own stretch, since nobody knows when it will be read.
            let place = self.rendezvous as u64 * 65_536;
            if place >= SOURCE as u64 {
                return;
            }
            let source = self.sources[sender];
            assert!(self.senders[sender].device.region(source.id).unwrap().write(place, &bytes));
            let address = source.buffer.address + place;
            let memory = wire::RemoteMemory { address, key: source.remote_key, length: length as u64 };
            let message = Message::Rendezvous(wire::Rendezvous { context, tag: Tag(tag), memory });
            self.senders[sender].device.send(rig::PEER, &message, immediate, 0).unwrap()
        } else {
            let message = Message::Eager { context, tag: Tag(tag), payload: &bytes };
            self.senders[sender].device.send(rig::PEER, &message, immediate, 0).unwrap()
        };
        if posted == Sending::Posted {
            self.rendezvous += usize::from(is_rendezvous);
            self.lengths.push(length as u64);
            self.sent.entry(tag).or_default().push(number);
        }
    }

    fn cancel(&mut self) {
        if self.receives.is_empty() {
            return;
        }
        let place = self.below(self.receives.len());
        if let Some(id) = self.receives[place].id {
            let _outcome: CancelOutcome = self.engine.cancel(id);
        }
    }

    fn step_hca(&mut self) {
        for _ in 0..self.below(self.steps) {
            let steps = self.hca.steps();
            let now: Vec<Step> =
                steps.iter().copied().filter(|step| !matches!(step, Step::Timer(_))).collect();
            let steps = if now.is_empty() { steps } else { now };
            if steps.is_empty() {
                return;
            }
            let step = steps[self.below(steps.len())];
            assert!(self.hca.step(step));
        }
    }

    fn turn(&mut self) {
        let taken = self.receiver.device.submit(self.engine.poll_commands(self.id)).unwrap();
        self.engine.handle_submitted(self.id, taken);
        let max = 1 + self.below(6);
        self.receiver.device.poll(max, &mut self.engine).unwrap();
        while let Some(completion) = self.engine.poll_completion() {
            let posted = &mut self.receives[usize::try_from(completion.context).unwrap()];
            assert_eq!(posted.end, None, "one completion each");
            posted.end = Some(completion);
            self.check(usize::try_from(completion.context).unwrap());
        }
        for sender in &mut self.senders {
            sender.poll();
            self.fins += sender.untagged().len();
            while let Some(done) = sender.device.poll_sent() {
                assert_eq!(done.result, Ok(()));
            }
        }
        if let Some(fault) = self.engine.poll_fault() {
            panic!("{fault}");
        }
    }

    /// A message is whole as soon as its receive ends.
    fn check(&self, place: usize) {
        let posted = &self.receives[place];
        let End::Received(received) = posted.end.unwrap().end else { return };
        let number = usize::try_from(received.app_ctx >> 8).unwrap();
        let length = self.lengths[number];
        assert_eq!((received.tag, received.length), (Tag(posted.tag), length));
        assert_eq!(received.placed, length.min(posted.buffer.length));
        assert_eq!(received.source, peer(posted.tag));
        let region = self.receiver.device.region(self.memory.id).unwrap();
        let mut bytes = vec![0; usize::try_from(posted.buffer.length).unwrap()];
        assert!(region.read(posted.buffer.address - self.memory.buffer.address, &mut bytes));
        let placed = usize::try_from(received.placed).unwrap();
        let expected = content(number, usize::try_from(length).unwrap());
        assert!(bytes[..placed] == expected[..placed], "receive {place} holds other bytes");
        // An eager message that a device matched may write what it has, never more than the buffer; behind: nothing.
        assert!(
            bytes[placed..].iter().all(|byte| *byte == 0),
            "receive {place} has bytes behind its message"
        );
    }

    fn settle(&mut self) {
        for _ in 0..60 {
            self.hca.run_until_idle();
            for _ in 0..40 {
                self.turn();
            }
        }
    }

    /// Whoever can have a message has the right one.
    fn check_all(&self) {
        for (tag, sent) in &self.sent {
            let open = |posted: &&Posted| {
                posted.tag == *tag && !posted.end.is_some_and(|done| matches!(done.end, End::Cancelled))
            };
            let receives: Vec<&Posted> = self.receives.iter().filter(open).collect();
            for (number, posted) in sent.iter().zip(&receives) {
                let Some(Completion { end: End::Received(received), .. }) = posted.end else {
                    panic!("tag {tag}: {:?} instead of message {number}", posted.end);
                };
                assert_eq!(usize::try_from(received.app_ctx >> 8).unwrap(), *number, "tag {tag}");
            }
            assert!(receives.iter().skip(sent.len()).all(|posted| posted.end.is_none()));
        }
    }
}

fn peer(tag: u64) -> PeerId {
    PeerId(u32::try_from(tag).unwrap() % SENDERS)
}

fn content(number: usize, length: usize) -> Vec<u8> {
    (0..length).map(|place| u8::try_from((place * 7 + number * 13) % 255 + 1).unwrap()).collect()
}

fn run(seed: u64, hca_config: HcaConfig, tags: u32) -> (u64, u64) {
    let mut world = World::new(seed, hca_config, tags);
    for _ in 0..600 {
        match world.below(10) {
            0 | 1 => world.post(),
            2 | 3 => world.send(),
            4 if world.below(6) == 0 => world.cancel(),
            4..=6 => world.step_hca(),
            _ => world.turn(),
        }
    }
    world.settle();
    world.check_all();
    assert!(world.fins <= world.rendezvous);
    // What is left is cancelled, and everything comes back.
    let open: Vec<ReceiveId> =
        world.receives.iter().filter(|posted| posted.end.is_none()).filter_map(|posted| posted.id).collect();
    for id in open {
        let _outcome: CancelOutcome = world.engine.cancel(id);
    }
    world.settle();
    let slots = u64::from(world.receiver.device.capabilities().command_slots);
    let (tags_free, slots_free) = world.receiver.device.free();
    assert_eq!(tags_free, tags as usize, "seed {seed}");
    let used = world.engine.command_slots_used(world.id);
    assert!(used <= slots / 4, "seed {seed}: {used} of {slots}");
    assert_eq!(u64::from(slots_free), slots - used, "seed {seed}");
    assert_eq!(world.receiver.device.messages_held(), world.engine.depths().1);
    assert!(world.receives.iter().all(|posted| posted.end.is_some()));
    // The engine posts them by quarters.
    let buffers = world.receiver.device.capabilities().unexpected_buffers;
    assert!(world.receiver.device.buffers_posted() * 4 > buffers * 3);
    let statistics = world.engine.statistics();
    (statistics.matched_by_device, statistics.tracked)
}

#[test]
fn in_random_schedules_every_message_is_whole_in_its_receive_and_everything_comes_back() {
    let mut shares = (0, 0);
    for seed in 0..40 {
        let mtu = 1 + u8::try_from(seed % 3).unwrap();
        let tags = [1, 7, 12, 31][usize::try_from(seed % 4).unwrap()];
        let (device, all) = run(seed, HcaConfig { mtu, ..HcaConfig::default() }, tags);
        shares = (shares.0 + device, shares.1 + all);
    }
    assert!(shares.0 * 8 > shares.1, "the device matched {} of {}", shares.0, shares.1);
}

#[test]
fn without_tag_matching_too() {
    for seed in 0..10 {
        let config = HcaConfig { mtu: 2, log_tag_list: 0, ..HcaConfig::default() };
        let mut world = World::new(seed, config, 1);
        for _ in 0..600 {
            match world.below(9) {
                0 | 1 => world.post(),
                2 | 3 => world.send(),
                4..=6 => world.step_hca(),
                _ => world.turn(),
            }
        }
        world.settle();
        world.check_all();
        assert_eq!(world.receiver.device.messages_held(), world.engine.depths().1);
    }
}
