//! Sequences that nobody means: devices that say things late, twice or wrongly, and owners that change their minds.

use std::collections::HashMap;

use super::hand::{Hand, NIC, OTHER, any, from, nic};
use crate::engine::{CancelOutcome, Completion, Config, End, Engine, Kind, Posting, Receive};
use crate::ids::{
    DeviceId, GroupId, Ignore, MessageToken, PeerId, ReceiveId, Source, Tag, TagHandle, TransferId,
};
use crate::matching::Pattern;
use crate::offload::{Reason, TagLayout};
use crate::seam::{
    Answer, Arrival, Buffer, Capabilities, Command, Data, DataError, DataTarget, DeviceError, Event,
    EventSink, Header, Match, MatchStage, Operation, OperationDone, Remote,
};

fn is_del(command: &Command) -> bool {
    matches!(command, Command::Del { .. })
}

#[test]
fn no_second_del_follows_one_that_failed_before_its_match_was_told() {
    let mut hand = Hand::new();
    let receive = hand.queued(any(7), 1);
    let (_, handle, _) = hand.adds()[0];
    hand.done(Operation::Add(handle), true, 0);
    assert_eq!(hand.cancel(receive), CancelOutcome::Pending);
    assert_eq!(hand.commands(NIC).iter().filter(|command| is_del(command)).count(), 1);
    hand.done(Operation::Del(handle), false, 0);
    // The match is still to come. Whoever wants the receive now waits for that.
    assert_eq!(hand.cancel(receive), CancelOutcome::Pending);
    assert_eq!(hand.other(7, 1), Answer::Hold);
    assert_eq!(hand.commands(NIC).iter().filter(|command| is_del(command)).count(), 0, "one DEL per entry");
    hand.matched(handle, 7, 0, MatchStage::Complete);
    hand.tell(&Event::Released(handle));
    assert_eq!(hand.received(), [(1, 99)]);
    assert_eq!(hand.engine.waiting(), 0);
    assert_eq!(hand.engine.depths(), (0, 1));
    hand.no_fault();
}

#[test]
fn a_dead_message_leaves_no_claim_behind_that_a_later_one_takes_for_its_own() {
    let mut hand = Hand::with(Config::default(), &[nic(), Capabilities::default(), nic()]);
    let second = DeviceId(2);
    hand.queued(any(7), 1);
    let (_, first_handle, _) = hand.adds()[0];
    hand.done(Operation::Add(first_handle), true, 0);
    hand.other(7, 1);
    let dead = MessageToken(1);
    hand.commands(NIC);
    let data = Data {
        target: DataTarget::Message(dead),
        length: 10,
        immediate: None,
        error: Some(DataError::PathLost),
    };
    hand.done(Operation::Del(first_handle), false, 0);
    hand.engine.handle_event(OTHER, &Event::Data(data));
    assert_eq!(hand.engine.waiting(), 0);
    // Another receive, in the other NIC, and another message that asks it back.
    let pattern = any(8);
    hand.engine.set_offload(NIC, false);
    hand.queued(pattern, 2);
    let adds = hand.commands(second);
    assert!(matches!(adds[..], [Command::Add { .. }]), "{adds:?}");
    hand.other(8, 1);
    assert_eq!(hand.engine.waiting(), 1);
    hand.tell(&Event::DeviceFailed(DeviceError::Removed));
    assert_eq!(hand.engine.waiting(), 1, "the message of tag 8 does not fit the receive of tag 7");
    assert!(hand.commands(OTHER).is_empty());
}

#[test]
fn a_message_told_by_a_device_that_failed_is_refused() {
    for device in [NIC, OTHER] {
        let mut hand = Hand::new();
        hand.engine.handle_event(device, &Event::DeviceFailed(DeviceError::Removed));
        hand.engine.poll_fault().unwrap();
        let arrival = Arrival { in_hand: false, ..hand.arrival(7, 0, device == NIC) };
        assert_eq!(hand.engine.handle_event(device, &Event::Arrived(arrival)), Answer::Discard);
        assert!(hand.engine.poll_fault().is_some());
        hand.queued(any(7), 1);
        let arrival = hand.arrival(7, 0, device == NIC);
        assert_eq!(hand.engine.handle_event(device, &Event::Arrived(arrival)), Answer::Discard);
        assert_eq!(hand.engine.transfers(), 0, "nothing would ever end it");
    }
}

#[test]
fn a_source_learned_while_its_receive_is_in_a_nic_keeps_the_order_of_its_messages() {
    let config = Config { layout: Some(TagLayout { source_bits: 0xff00 }), ..Config::default() };
    let mut hand = Hand::with(config, &[nic(), Capabilities::default()]);
    let (unknown, known) = (PeerId(50), PeerId(3));
    hand.engine.name_peer(known, 0x300).unwrap();
    let both = |tag: u64| Pattern { tag: Tag(tag), ignore: Ignore(0xff), source: Source::Peer(known) };
    hand.queued(from(0x301, 3), 1);
    let adds = hand.adds();
    assert_eq!(adds.len(), 1);
    hand.done(Operation::Add(adds[0].1), true, 0);
    // Two messages of a sender not yet known; both are unexpected.
    hand.other(0x301, unknown.0);
    hand.other(0x302, unknown.0);
    hand.engine.set_offload(NIC, false);
    hand.engine.set_offload(NIC, true);
    let buffer = Buffer { segments: 2, ..Buffer::new(2000, 100) };
    let wide = Receive { pattern: both(0x300), buffer, context: 2, kind: Kind::Once };
    assert!(matches!(hand.engine.post(&wide), Posting::Queued(_)));
    hand.engine.resolve(unknown, known);
    // The NIC matched the first receive before; so the first message goes to the second one.
    hand.commands(NIC);
    hand.matched(adds[0].1, 0x301, known.0, MatchStage::Complete);
    hand.done(Operation::Del(adds[0].1), false, 0);
    hand.tell(&Event::Released(adds[0].1));
    hand.place(OTHER);
    assert_eq!(hand.received(), [(1, 99), (2, 1)]);
    assert_eq!(hand.engine.depths(), (0, 1));
}

#[test]
fn an_owner_that_says_more_was_taken_than_was_offered_is_not_believed() {
    let mut hand = Hand::new();
    hand.queued(any(1), 1);
    hand.queued(any(2), 2);
    hand.engine.poll_commands(NIC);
    hand.engine.handle_submitted(NIC, 1);
    hand.engine.handle_submitted(NIC, usize::MAX);
    assert!(hand.engine.commands(NIC).is_empty());
}

#[test]
fn receives_that_left_before_a_device_looked_at_them_are_counted_under_their_own_reasons() {
    for devices in [[nic(), Capabilities::default()], [Capabilities::default(), nic()]] {
        let mut hand = Hand::with(Config::default(), &devices);
        let (matching, plain) = if devices[0].tags > 0 { (NIC, OTHER) } else { (OTHER, NIC) };
        hand.queued(from(1, 5), 1);
        let arrival = hand.arrival(1, 5, false);
        hand.engine.handle_event(plain, &Event::Arrived(arrival));
        hand.engine.set_offload(matching, false);
        hand.queued(any(2), 2);
        let arrival = hand.arrival(2, 5, false);
        hand.engine.handle_event(plain, &Event::Arrived(arrival));
        let ended = |reason| hand.engine.statistics().ended(reason);
        assert_eq!([ended(Reason::Directed), ended(Reason::Disabled), ended(Reason::DeviceFull)], [1, 1, 0]);
    }
}

#[test]
fn a_sender_of_the_highest_number_waits_like_any_other() {
    let mut hand = Hand::new();
    hand.queued(any(7), 1);
    let (_, handle, _) = hand.adds()[0];
    hand.done(Operation::Add(handle), true, 0);
    hand.other(7, u32::MAX);
    hand.other(8, u32::MAX);
    assert_eq!(hand.engine.waiting(), 2);
    hand.commands(NIC);
    hand.done(Operation::Del(handle), true, 0);
    hand.place(OTHER);
    assert_eq!(hand.received(), [(1, 1)]);
    assert_eq!((hand.engine.waiting(), hand.engine.depths()), (0, (0, 1)));
}

/// A generator without quality, for choices.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
    fn narrow(&mut self, limit: u32) -> u32 {
        u32::try_from(self.below(u64::from(limit))).unwrap()
    }
}

#[derive(Default)]
struct World {
    handles: Vec<TagHandle>,
    operations: Vec<(DeviceId, Operation)>,
    transfers: Vec<(DeviceId, TransferId)>,
    receives: Vec<ReceiveId>,
    ends: HashMap<u64, u32>,
    posted: HashMap<u64, bool>,
    tokens: u64,
}

impl World {
    fn submit(&mut self, engine: &mut Engine, device: DeviceId, dice: &mut Dice) {
        let commands = engine.poll_commands(device).to_vec();
        let taken = usize::try_from(dice.below(commands.len() as u64 + 1)).unwrap();
        for command in &commands[..taken] {
            match *command {
                Command::Add { handle, .. } => {
                    self.handles.push(handle);
                    self.operations.push((device, Operation::Add(handle)));
                }
                Command::Del { handle, .. } => self.operations.push((device, Operation::Del(handle))),
                Command::Sync { .. } => self.operations.push((device, Operation::Sync)),
                Command::Answer { answer: Answer::Accept { transfer: Some(transfer), .. }, .. }
                | Command::Read { transfer, .. }
                | Command::Copy { transfer, .. } => self.transfers.push((device, transfer)),
                Command::Answer { .. } | Command::Receive { .. } => {}
            }
        }
        engine.handle_submitted(device, taken);
    }

    fn complete(&mut self, completion: &Completion) {
        let multi = self.posted[&completion.context];
        let is_final = match completion.end {
            End::Received(_) | End::Failed { .. } => !multi,
            End::Cancelled | End::Released => true,
        };
        if is_final {
            *self.ends.entry(completion.context).or_default() += 1;
        }
    }

    fn event(&mut self, dice: &mut Dice, device: DeviceId) -> (DeviceId, Event) {
        let handle = if self.handles.is_empty() || dice.below(20) == 0 {
            TagHandle { index: dice.narrow(40), generation: dice.narrow(4) }
        } else {
            self.handles[usize::try_from(dice.below(self.handles.len() as u64)).unwrap()]
        };
        let target = match dice.below(3) {
            0 => DataTarget::Entry(handle),
            1 => DataTarget::Message(MessageToken(dice.below(self.tokens + 1))),
            _ => {
                let at = usize::try_from(dice.below(self.transfers.len() as u64 + 1)).unwrap();
                let other = (device, TransferId { index: dice.narrow(9), generation: 0 });
                let (device, transfer) = self.transfers.get(at).copied().unwrap_or(other);
                let data = Data {
                    target: DataTarget::Transfer(transfer),
                    length: dice.below(200),
                    immediate: None,
                    error: None,
                };
                return (device, Event::Data(data));
            }
        };
        let error = (dice.below(2) == 0).then_some(DataError::PathLost);
        let event = match dice.below(24) {
            0..9 => {
                self.tokens += 1;
                let header = Header {
                    tag: Tag(dice.below(4)),
                    length: dice.below(120),
                    app_ctx: 0,
                    immediate: None,
                    remote: None,
                };
                Event::Arrived(Arrival {
                    message: MessageToken(self.tokens),
                    source: PeerId(dice.narrow(4)),
                    header,
                    in_hand: dice.below(2) == 0,
                    counted: dice.below(10) > 0 && device.0 != 1,
                })
            }
            9..12 => Event::Matched(Match {
                handle,
                source: PeerId(dice.narrow(4)),
                tag: Tag(dice.below(4)),
                app_ctx: 0,
                length: dice.below(120),
                immediate: None,
                stage: match dice.below(3) {
                    0 => MatchStage::Complete,
                    1 => MatchStage::DataFollows,
                    _ => {
                        MatchStage::SoftwareRendezvous(Remote { address: u64::MAX, key: 1, length: u64::MAX })
                    }
                },
                released: dice.below(4) == 0,
            }),
            12..14 => Event::Data(Data { target, length: dice.below(200), immediate: None, error }),
            14..18 => {
                let mine = |&(of, _): &(DeviceId, Operation)| of == device;
                let (_, operation) = match self.operations.iter().position(mine) {
                    Some(at) if dice.below(30) > 0 => self.operations.remove(at),
                    _ => (device, Operation::Del(handle)),
                };
                let success = dice.below(4) > 0;
                let phase = u16::try_from(dice.below(3)).unwrap();
                Event::Operation(OperationDone { operation, success, phase, sync_requested: false })
            }
            18..23 => Event::Released(handle),
            _ => Event::PathLost { peer: PeerId(dice.narrow(4)) },
        };
        (device, event)
    }
}

#[expect(clippy::too_many_lines, reason = "one table of what an owner may do")]
fn chaos(seed: u64) {
    let mut dice = Dice(seed);
    let mut engine = Engine::new(Config {
        layout: seed.is_multiple_of(3).then_some(TagLayout { source_bits: 0x2 }),
        ..Config::default()
    });
    let slots = 1 + dice.narrow(8);
    let devices = 3_u8;
    let late = dice.below(2) == 0;
    let capabilities = [
        Capabilities { command_slots: slots, tags: 1 + dice.narrow(3), ..nic() },
        Capabilities::default(),
        nic(),
    ];
    for (at, capabilities) in capabilities.iter().enumerate() {
        if !late || at < 1 {
            engine.add_device(*capabilities).unwrap();
        }
    }
    let mut world = World::default();
    let (mut context, mut claims) = (0, Vec::new());
    for step in 0..400 {
        let device = DeviceId(u8::try_from(dice.below(u64::from(devices))).unwrap());
        if late && step == 100 {
            engine.add_device(capabilities[1]).unwrap();
            engine.add_device(capabilities[2]).unwrap();
        }
        let source = match dice.below(5) {
            0 => Source::Peer(PeerId(dice.narrow(4))),
            1 => Source::Group(GroupId(0)),
            _ => Source::Any,
        };
        let pattern = Pattern {
            tag: Tag(dice.below(4)),
            ignore: Ignore([0, 1, 3, u64::MAX][usize::try_from(dice.below(4)).unwrap()]),
            source,
        };
        match dice.below(40) {
            0..10 => {
                context += 1;
                let buffer = Buffer {
                    address: [context * 1000, 5000, u64::MAX - 5][usize::try_from(dice.below(3)).unwrap()],
                    length: [0, 10, 64, 100, 1 << 40][usize::try_from(dice.below(5)).unwrap()],
                    key: 0,
                    segments: dice.narrow(3),
                };
                let multi = dice.below(8) == 0;
                let kind = if multi { Kind::Multi { least: dice.below(30) } } else { Kind::Once };
                world.posted.insert(context, multi);
                if let Posting::Queued(id) = engine.post(&Receive { pattern, buffer, context, kind }) {
                    world.receives.push(id);
                }
            }
            10..12 if !world.receives.is_empty() => {
                let at = usize::try_from(dice.below(world.receives.len() as u64)).unwrap();
                engine.cancel(world.receives[at]);
            }
            12 => claims.extend(engine.claim(&pattern).map(|(claim, _)| claim)),
            13 => {
                if let Some(claim) = claims.pop() {
                    context += 1;
                    world.posted.insert(context, false);
                    if dice.below(2) == 0 || !engine.receive_claimed(claim, Buffer::new(0, 10), context) {
                        world.posted.remove(&context);
                        engine.discard_claimed(claim);
                    }
                }
            }
            14 => engine.set_offload(device, dice.below(3) > 0),
            15 => {
                engine.add_bounce_buffer(device, Buffer::new(900_000, 64));
            }
            16 => match dice.below(4) {
                0 => engine.resolve(PeerId(dice.narrow(4)), PeerId(dice.narrow(4))),
                1 => engine.set_group(PeerId(dice.narrow(4)), (dice.below(2) == 0).then_some(GroupId(0))),
                2 => {
                    let peer = PeerId(dice.narrow(4));
                    if dice.below(2) == 0 {
                        engine.clear_path(peer);
                    }
                    let _path = engine.set_path(peer, device);
                }
                _ => {
                    let _name = engine.name_peer(PeerId(dice.narrow(4)), dice.below(2) * 2);
                }
            },
            17 if dice.below(30) == 0 => {
                engine.handle_event(device, &Event::DeviceFailed(DeviceError::Removed));
            }
            18..24 => world.submit(&mut engine, device, &mut dice),
            _ => {
                let (device, event) = world.event(&mut dice, device);
                if let Answer::Accept { transfer: Some(transfer), .. } = engine.handle_event(device, &event) {
                    world.transfers.push((device, transfer));
                }
            }
        }
        if dice.below(3) == 0 {
            engine.poll_completions(&mut []);
            while let Some(completion) = engine.poll_completion() {
                world.complete(&completion);
            }
        }
        while engine.poll_fault().is_some() {}
    }
    // Everything fails and everything is cancelled: each receive has ended exactly once.
    for device in 0..devices {
        engine.handle_event(DeviceId(device), &Event::DeviceFailed(DeviceError::Removed));
    }
    for &id in &world.receives {
        assert_ne!(engine.cancel(id), CancelOutcome::Pending, "seed {seed}");
    }
    while let Some(completion) = engine.poll_completion() {
        world.complete(&completion);
    }
    assert_eq!(engine.waiting(), 0, "seed {seed}");
    assert_eq!(engine.transfers(), 0, "seed {seed}");
    assert_eq!(engine.depths(), (0, 0), "seed {seed}");
    for (context, multi) in &world.posted {
        let ends = world.ends.get(context).copied().unwrap_or(0);
        assert_eq!(ends, 1, "seed {seed}: receive {context} (multi: {multi}) ended {ends} times");
    }
}

#[test]
fn whatever_three_devices_say_each_receive_ends_exactly_once() {
    for seed in 0..2_000 {
        chaos(seed);
    }
}
