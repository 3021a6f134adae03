//! The short ways of an engine with one device that matches against the general ones: an engine whose tags might name
//! senders takes no short way down. Both must say and do the same, whether ADDs go down by a hand or as commands.

use std::collections::VecDeque;

use super::hand::{NIC, any, nic};
use crate::engine::{Completion, Config, Engine, Kind, Posting, Receive};
use crate::ids::{DeviceId, MessageToken, PeerId, ReceiveId, Tag, TagHandle};
use crate::offload::TagLayout;
use crate::seam::{
    Add, Arrival, Buffer, Capabilities, Command, Event, EventSink, Header, Match, MatchStage, Operation,
    OperationDone, Placer,
};

/// A small generator: the same numbers on every machine.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % bound
    }

    fn choose<T>(&mut self, from: &mut Vec<T>) -> Option<T> {
        (!from.is_empty()).then(|| from.swap_remove(usize::try_from(self.below(from.len() as u64)).unwrap()))
    }
}

struct Pair {
    short: Engine,
    general: Engine,
    numbers: Numbers,
    hand: Hand,
    by_hand: usize,
    /// List operations without their completion, in order.
    outstanding: VecDeque<Operation>,
    listed: Vec<(TagHandle, Tag)>,
    /// Matched before the completion of their ADD.
    early: Vec<TagHandle>,
    /// Matched or taken back, not released.
    spent: Vec<TagHandle>,
    posted: Vec<ReceiveId>,
    unexpected: u16,
    completions: usize,
}

impl Pair {
    fn new(seed: u64) -> Self {
        let engine = |layout: Option<TagLayout>, devices: &[Capabilities]| {
            let mut engine = Engine::new(Config { layout, ..Config::default() });
            for capabilities in devices {
                engine.add_device(*capabilities).unwrap();
            }
            engine
        };
        let nic = Capabilities { tags: 40, command_slots: 200, ..nic() };
        Self {
            // Every other with a device beside that does not match, and which nothing comes through.
            short: engine(None, &[nic, Capabilities::default()][..1 + usize::from(seed % 2 == 1)]),
            // No tag has that bit and no peer a name.
            general: engine(Some(TagLayout { source_bits: 1 << 63 }), &[nic]),
            numbers: Numbers(seed),
            hand: Hand::default(),
            by_hand: 0,
            outstanding: VecDeque::new(),
            listed: Vec::new(),
            early: Vec::new(),
            spent: Vec::new(),
            posted: Vec::new(),
            unexpected: 0,
            completions: 0,
        }
    }

    fn step(&mut self) {
        let kind = self.numbers.below(20);
        if kind < 5 {
            self.post();
            // Batches form, in which what was posted waits for what comes.
            if self.numbers.below(2) == 0 {
                return;
            }
        } else {
            self.take();
        }
        match kind {
            0..5 => {}
            5..11 => self.complete_operation(),
            11..15 => self.match_one(),
            15 => self.arrive(),
            _ => self.cancel_or_release(),
        }
        self.take();
    }

    fn post(&mut self) {
        let (number, tag) = (self.numbers.below(64), self.numbers.below(500));
        // Some overlap, some are shorter than what comes eagerly, some are in order.
        let length = if number == 0 { 10 } else { 64 + number % 3 * 16 };
        let address = if number % 2 == 0 { self.numbers.below(60) * 96 } else { 10_000 + tag * 96 };
        let buffer = Buffer::new(address, length);
        let receive = Receive { pattern: any(tag), buffer, context: number, kind: Kind::Once };
        self.hand.is_willing = self.numbers.below(4) > 0;
        let waiting = self.short.commands(NIC).len();
        let added = self.hand.added.len();
        let posting = self.short.post_placing(&receive, &mut self.hand);
        assert_eq!(posting, self.general.post(&receive));
        if self.hand.added.len() > added {
            assert_eq!(waiting, 0, "it overtook a command");
            self.by_hand += 1;
        }
        if let Posting::Queued(id) = posting {
            self.posted.push(id);
        }
    }

    fn tell(&mut self, event: &Event) {
        assert_eq!(self.short.handle_event(NIC, event), self.general.handle_event(NIC, event));
    }

    fn complete_operation(&mut self) {
        let Some(operation) = self.outstanding.pop_front() else { return };
        match operation {
            Operation::Del(handle) => self.spent.push(handle),
            Operation::Add(handle) if self.early.contains(&handle) => {
                self.early.retain(|&other| other != handle);
                self.spent.push(handle);
            }
            Operation::Add(_) | Operation::Sync => {}
        }
        let phase = self.unexpected;
        self.tell(&Event::Operation(OperationDone {
            operation,
            success: true,
            phase,
            sync_requested: false,
        }));
    }

    fn match_one(&mut self) {
        let Some((handle, tag)) = self.numbers.choose(&mut self.listed) else { return };
        let stage = MatchStage::Complete;
        let (source, app_ctx, length) = (PeerId(1), 7, 70);
        // The completion of its ADD comes before its release.
        let is_early = self.outstanding.contains(&Operation::Add(handle));
        let is_last = !is_early && self.numbers.below(3) > 0;
        let released = is_last;
        self.tell(&Event::Matched(Match {
            handle,
            source,
            tag,
            app_ctx,
            length,
            immediate: None,
            stage,
            released,
        }));
        if is_early {
            self.early.push(handle);
        } else if !is_last {
            self.spent.push(handle);
        }
    }

    fn arrive(&mut self) {
        let tag = Tag(self.numbers.below(500));
        self.unexpected += 1;
        let message = MessageToken(u64::from(self.unexpected));
        let header = Header { tag, length: 9, app_ctx: 3, immediate: None, remote: None };
        let arrival = Arrival { message, source: PeerId(2), header, in_hand: true, counted: true };
        self.tell(&Event::Arrived(arrival));
    }

    fn cancel_or_release(&mut self) {
        if self.numbers.below(4) == 0
            && let Some(id) = self.numbers.choose(&mut self.posted)
        {
            assert_eq!(self.short.cancel(id), self.general.cancel(id));
        } else if let Some(handle) = self.numbers.choose(&mut self.spent) {
            self.tell(&Event::Released(handle));
        }
    }

    /// Take the commands and completions of both, and keep what the device knows then.
    fn take(&mut self) {
        let mut all = std::mem::take(&mut self.hand.added);
        let commands = self.short.poll_commands(NIC);
        all.extend_from_slice(commands);
        let taken = commands.len();
        self.short.handle_submitted(NIC, taken);
        assert_eq!(all, self.general.poll_commands(NIC));
        self.general.handle_submitted(NIC, all.len());
        for command in all {
            match command {
                Command::Add { handle, tag, signalled, .. } => {
                    self.outstanding.extend(signalled.then_some(Operation::Add(handle)));
                    self.listed.push((handle, tag));
                }
                Command::Del { handle, .. } => {
                    self.outstanding.push_back(Operation::Del(handle));
                    self.listed.retain(|&(other, _)| other != handle);
                }
                Command::Sync { .. } => self.outstanding.push_back(Operation::Sync),
                Command::Receive { .. }
                | Command::Answer { .. }
                | Command::Read { .. }
                | Command::Copy { .. } => {}
            }
        }
        let mut completion: Option<Completion>;
        while {
            completion = self.short.poll_completion();
            assert_eq!(completion, self.general.poll_completion());
            completion.is_some()
        } {
            self.completions += 1;
        }
        assert_eq!(self.short.statistics(), self.general.statistics());
        assert_eq!((self.short.poll_fault(), self.general.poll_fault()), (None, None));
    }
}

/// Puts receives into the list at once, when it is willing.
#[derive(Default)]
struct Hand {
    is_willing: bool,
    added: Vec<Command>,
}

impl Placer for Hand {
    fn place(&mut self, _: DeviceId, _: MessageToken, _: &Buffer) -> bool {
        false
    }

    fn add(&mut self, device: DeviceId, add: &Add<'_>) -> bool {
        assert_eq!(device, NIC);
        self.added.extend(self.is_willing.then_some(add.command()));
        self.is_willing
    }
}

#[test]
fn the_short_ways_and_the_general_ones_say_and_do_the_same() {
    let (mut used, mut by_hand) = (0, 0);
    for seed in 0..40 {
        let mut pair = Pair::new(seed);
        for _ in 0..3_000 {
            pair.step();
        }
        let adds = pair.short.statistics().adds;
        assert!(adds > 300 && pair.completions > 300, "seed {seed}: {adds}, {}", pair.completions);
        by_hand += pair.by_hand;
        used += pair.short.statistics().used_by_own_device;
    }
    assert!(by_hand > 400, "{by_hand} receives went down by hand");
    assert!(used > 10, "{used} receives in the device were used for its own unexpected messages");
}
