//! Once warm, nothing is allocated between a post and its completion: in software, through a NIC, and where receives
//! of both kinds stand in each other's way.

#[path = "common/counting.rs"]
mod counting;

use counting::allocations_of;
use tagmatch::engine::{CancelOutcome, Config, Engine, Kind, Posting, Receive};
use tagmatch::ids::{DeviceId, Ignore, MessageToken, PeerId, Source, Tag, TagHandle};
use tagmatch::matching::Pattern;
use tagmatch::seam::{
    Answer, Arrival, Buffer, Capabilities, Command, Data, DataTarget, Event, EventSink, Header, Match,
    MatchStage, Operation, OperationDone, Placer,
};

/// Warm up, then count.
fn assert_allocates_nothing(what: &str, mut round: impl FnMut(u64)) {
    for number in 0..200 {
        round(number);
    }
    let allocations = allocations_of(|| (200..400).for_each(round));
    assert_eq!(allocations, 0, "{what}");
}

const NIC: DeviceId = DeviceId(0);
const MASKS: [u64; 4] = [0, 0xf << 40, u64::MAX << 32, 0];

fn receive(tag: u64, ignore: u64, source: Source, context: u64) -> Receive {
    let pattern = Pattern { tag: Tag(tag), ignore: Ignore(ignore), source };
    Receive { pattern, buffer: Buffer::new((context % 4096) << 12, 64), context, kind: Kind::Once }
}

fn arrival(tag: u64, source: u32, number: u64, counted: bool) -> Event {
    let header = Header { tag: Tag(tag), length: 8, app_ctx: 0, immediate: None, remote: None };
    Event::Arrived(Arrival {
        message: MessageToken(number),
        source: PeerId(source),
        header,
        in_hand: true,
        counted,
    })
}

/// Answers what a device has to do at once: data is placed, list operations are complete.
#[derive(Default)]
struct Echo {
    commands: Vec<Command>,
    listed: Vec<(TagHandle, Tag)>,
    phase: u16,
}

impl Placer for Echo {
    fn place(&mut self, _: DeviceId, _: MessageToken, _: &Buffer) -> bool {
        true
    }
}

impl Echo {
    fn serve(&mut self, engine: &mut Engine) {
        loop {
            self.commands.clear();
            self.commands.extend_from_slice(engine.poll_commands(NIC));
            if self.commands.is_empty() {
                return;
            }
            engine.handle_submitted(NIC, self.commands.len());
            for at in 0..self.commands.len() {
                self.execute(engine, self.commands[at]);
            }
        }
    }

    fn execute(&mut self, engine: &mut Engine, command: Command) {
        match command {
            Command::Add { handle, tag, signalled, .. } => {
                self.listed.push((handle, tag));
                if signalled {
                    self.done(engine, Operation::Add(handle), true);
                }
            }
            Command::Del { handle, .. } => {
                let place = self.listed.iter().position(|&(other, _)| other == handle);
                place.map(|place| self.listed.remove(place));
                self.done(engine, Operation::Del(handle), place.is_some());
                if place.is_some() {
                    engine.handle_event(NIC, &Event::Released(handle));
                }
            }
            Command::Sync { .. } => self.done(engine, Operation::Sync, true),
            Command::Answer { answer: Answer::Accept { transfer: Some(transfer), .. }, .. } => {
                let target = DataTarget::Transfer(transfer);
                let data = Data { target, length: 8, immediate: None, error: None };
                engine.handle_event(NIC, &Event::Data(data));
            }
            Command::Answer { .. }
            | Command::Receive { .. }
            | Command::Read { .. }
            | Command::Copy { .. } => {}
        }
    }

    fn done(&self, engine: &mut Engine, operation: Operation, success: bool) {
        let done = OperationDone { operation, success, phase: self.phase, sync_requested: false };
        engine.handle_event(NIC, &Event::Operation(done));
    }

    /// The device matches its first entry of this tag.
    fn match_first(&mut self, engine: &mut Engine, tag: u64, source: u32) -> bool {
        let Some(place) = self.listed.iter().position(|&(_, other)| other == Tag(tag)) else { return false };
        let (handle, tag) = self.listed.remove(place);
        let matched = Match {
            handle,
            source: PeerId(source),
            tag,
            app_ctx: 0,
            length: 8,
            immediate: None,
            stage: MatchStage::Complete,
            released: true,
        };
        engine.handle_event(NIC, &Event::Matched(matched));
        true
    }
}

fn drain(engine: &mut Engine) {
    while engine.poll_completion().is_some() {}
    assert_eq!(engine.poll_fault(), None);
}

fn software() -> Engine {
    let mut engine = Engine::new(Config::default());
    engine.add_device(Capabilities::default()).expect("a device without tags may join");
    engine
}

fn offloaded() -> Engine {
    let mut engine = Engine::new(Config::default());
    let capabilities = Capabilities {
        tags: 64,
        command_slots: 256,
        completions: 1024,
        unexpected_buffers: 64,
        eager_limit: 64,
        buffer_length_max: 1 << 20,
        ..Capabilities::default()
    };
    engine.add_device(capabilities).expect("a sane device");
    engine
}

#[test]
fn an_allocation_is_counted() {
    assert_eq!(allocations_of(|| drop(std::hint::black_box(Box::new(1)))), 1);
}

/// Posts with four masks and three kinds of source, arrivals in another order, cancels, peeks; unexpected as well.
#[test]
fn nothing_is_allocated_in_software_once_warm() {
    for depth in [1, 12, 40, 300] {
        let mut engine = software();
        let mut echo = Echo::default();
        assert_allocates_nothing(&format!("depth {depth}"), |round| {
            for number in 0..depth {
                let ignore = MASKS[usize::try_from(number % 4).unwrap_or(0)];
                let source = if number % 3 == 0 { Source::Peer(PeerId(1)) } else { Source::Any };
                let posting = engine.post(&receive(number, ignore, source, number));
                if number % 7 == 6
                    && let Posting::Queued(id) = posting
                {
                    assert_eq!(engine.cancel(id), CancelOutcome::Cancelled);
                    engine.post(&receive(number, ignore, source, number));
                }
            }
            for number in (0..depth).rev() {
                engine.handle_event(NIC, &arrival(number, 1, round, false));
            }
            for number in 0..depth {
                engine.handle_event(NIC, &arrival(number, 1, number, false));
            }
            for number in (0..depth).rev() {
                let receive = receive(number, 0, Source::Any, number);
                assert!(engine.peek(&receive.pattern).is_some());
                if number % 2 == 0 {
                    assert!(matches!(engine.post(&receive), Posting::Matched(_)));
                } else {
                    assert!(matches!(engine.post_placing(&receive, &mut echo), Posting::Placed(_)));
                }
            }
            echo.serve(&mut engine);
            drain(&mut engine);
            assert_eq!(engine.depths(), (0, 0));
        });
    }
}

#[test]
fn nothing_is_allocated_through_a_nic_once_warm() {
    let mut engine = offloaded();
    let mut echo = Echo::default();
    assert_allocates_nothing("every receive in the NIC, more than it holds", |_| {
        for number in 0..100 {
            engine.post(&receive(number, 0, Source::Any, number));
        }
        echo.serve(&mut engine);
        for number in 0..100 {
            assert!(echo.match_first(&mut engine, number, 1), "message {number}");
            echo.serve(&mut engine);
        }
        drain(&mut engine);
        assert_eq!(engine.depths(), (0, 0));
    });
    assert!(engine.statistics().matched_by_device > 0);
}

/// Directed receives stay in software and hold back newer ones of their tag; unexpected messages take receives from
/// the NIC; cancels call them back.
#[test]
fn nothing_is_allocated_where_software_and_nic_are_in_each_others_way_once_warm() {
    let mut engine = offloaded();
    let mut echo = Echo::default();
    assert_allocates_nothing("mixed", |round| {
        for number in 0..60 {
            let tag = number % 20;
            let source = if number % 5 == 0 { Source::Peer(PeerId(1)) } else { Source::Any };
            let posting = engine.post(&receive(tag, 0, source, number));
            if number % 9 == 8
                && let Posting::Queued(id) = posting
            {
                engine.cancel(id);
            }
        }
        echo.serve(&mut engine);
        while engine.depths().0 > 0 {
            for tag in 0..20 {
                if !echo.match_first(&mut engine, tag, 1) {
                    echo.phase = echo.phase.wrapping_add(1);
                    engine.handle_event(NIC, &arrival(tag, 1, round, true));
                }
                echo.serve(&mut engine);
            }
            while engine.discard(&receive(0, u64::MAX, Source::Any, 0).pattern).is_some() {}
            echo.serve(&mut engine);
        }
        drain(&mut engine);
    });
    assert!(engine.statistics().matched_by_device > 0);
}
