//! Random operation sequences: nothing panics, and what is counted adds up after every one.

use proptest::prelude::*;

use super::support::*;
use crate::device::Device;
use crate::device::soft::switches::*;
use crate::device::soft::{Arena, Kind, SoftConfig, SoftDevice, SoftMessage, Step, Switches};
use crate::ids::{Ignore, MessageToken, PeerId, Tag, TagHandle};
use crate::seam::{Answer, Command, DataTarget, DeviceError, Event, MatchStage};

#[derive(Clone, Copy, Debug)]
enum Action {
    Send { peer: u32, tag: u64, packets: u32, kind: u8, length: u64 },
    Add { tag: u64, ignore: u64, count: i8, signalled: bool },
    Del { which: usize, signalled: bool },
    Sync { count: i8 },
    Receive,
    Answer { which: usize, discard: bool },
    Step { which: usize },
    Poll { max: usize },
    FailPath { peer: u32 },
}

fn action() -> impl Strategy<Value = Action> {
    let index = 0..64_usize;
    prop_oneof![
        8 => (0..3_u32, 0..4_u64, 1..4_u32, 0..8_u8, 0..300_u64)
            .prop_map(|(peer, tag, packets, kind, length)| Action::Send { peer, tag, packets, kind, length }),
        6 => (0..4_u64, 0..4_u64, -1..2_i8, any::<bool>())
            .prop_map(|(tag, ignore, count, signalled)| Action::Add { tag, ignore, count, signalled }),
        2 => (index.clone(), prop::bool::weighted(0.9))
            .prop_map(|(which, signalled)| Action::Del { which, signalled }),
        2 => (-1..2_i8).prop_map(|count| Action::Sync { count }),
        2 => Just(Action::Receive),
        3 => (index.clone(), any::<bool>()).prop_map(|(which, discard)| Action::Answer { which, discard }),
        20 => index.prop_map(|which| Action::Step { which }),
        6 => (1..4_usize).prop_map(|max| Action::Poll { max }),
        1 => (0..3_u32).prop_map(|peer| Action::FailPath { peer }),
    ]
}

fn switches() -> impl Strategy<Value = Switches> {
    // One bit a switch: its assumption or its other reading.
    any::<u32>().prop_map(|bits| {
        let other = |bit: u32| bits >> bit & 1 == 1;
        macro_rules! pick {
            ($($bit:literal $field:ident: $type:ident::$variant:ident),* $(,)?) => {
                Switches { $($field: if other($bit) { $type::$variant } else { $type::default() },)* ..Switches::default() }
            };
        }
        pick! {
            0 activation: Activation::OnlyAtAppend,
            1 out_of_sync: OutOfSync::NothingMatches,
            2 count_order: CountOrder::BeforeChangeNotAtomic,
            3 append_activates: AppendActivates::Itself,
            4 too_long: TooLong::Truncate,
            5 few_buffers: FewBuffers::Work,
            6 unmasked_tag: UnmaskedTag::Masked,
            7 malformed: Malformed::Unexpected,
            8 no_offload: NoOffload::Unexpected,
            9 hand_back: HandBack::ThenExpected,
            10 consumed_length: ConsumedLength::Arbitrary,
            11 expected_order: ExpectedOrder::AsMatched,
            12 fin_order: FinOrder::AfterExpected,
            13 immediate_on: ImmediateOn::Consumed,
            14 count_at: CountAt::LastPacket,
            15 completion_order: CompletionOrder::Finish,
            16 empty_rendezvous: EmptyRendezvous::HandedBack,
            17 half_received: HalfReceived::Silent,
        }
    })
}

/// What a host keeps to say sensible things, and to check what it hears.
struct Host {
    device: SoftDevice<Arena>,
    next: u32,
    transfers: u32,
    /// Handles given and not released.
    live: Vec<u32>,
    /// Handles of unsignalled DELs: after one, whatever comes may be wrong.
    careless: bool,
    messages: Vec<MessageToken>,
    data_owed: Vec<DataTarget>,
    counted: u16,
    failed: Option<DeviceError>,
}

impl Host {
    fn act(&mut self, action: Action) {
        match action {
            Action::Send { peer, tag, packets, kind, length } => {
                let kind = match kind {
                    0..=3 => Kind::Eager,
                    4 => Kind::NoTag,
                    5 => Kind::Malformed,
                    kind => Kind::Rendezvous { remote: remote(length), broken: kind == 7 && length > 250 },
                };
                let packets = if kind == Kind::Eager { packets } else { 1 };
                let _ = self.device.send(
                    PeerId(peer),
                    SoftMessage { packets, kind, ..SoftMessage::eager(Tag(tag), length) },
                );
            }
            Action::Add { tag, ignore, count, signalled } => {
                let index = self.next;
                let command = Command::Add {
                    handle: handle(index),
                    tag: Tag(tag & !ignore),
                    ignore: Ignore(ignore),
                    buffer: buffer(index % 8),
                    unexpected_count: self.counted.wrapping_add_signed(i16::from(count)),
                    signalled,
                };
                if self.device.submit(&[command]) == Ok(1) {
                    self.next += 1;
                    self.live.push(index);
                }
            }
            Action::Del { which, signalled } if !self.live.is_empty() => {
                let index = self.live[which % self.live.len()];
                let taken = self.device.submit(&[del(index, signalled)]);
                self.careless |= taken == Ok(1) && !signalled;
            }
            Action::Sync { count } => {
                let _ = self.device.submit(&[sync(self.counted.wrapping_add_signed(i16::from(count)))]);
            }
            Action::Receive => {
                let room = self.device.driver().map_or(0, |driver| {
                    u32::try_from(driver.receives.used()).map_or(0, |used| driver.receives.slots() - used)
                });
                let _ = self.device.submit(&[Command::Receive { buffers: room.min(3) }]);
            }
            Action::Answer { which, discard } if !self.messages.is_empty() => {
                let place = which % self.messages.len();
                let name = transfer(self.transfers);
                let answer = if discard {
                    Answer::Discard
                } else {
                    Answer::Accept { buffer: buffer(0), transfer: Some(name) }
                };
                let message = self.messages[place];
                // Refused only by a device that has failed and has not said so yet.
                if self.device.submit(&[Command::Answer { message, answer }]).is_ok() {
                    self.messages.swap_remove(place);
                    self.transfers += 1;
                    self.data_owed.extend((!discard).then_some(DataTarget::Transfer(name)));
                }
            }
            Action::Step { which } => {
                let steps = self.device.steps();
                if !steps.is_empty() {
                    assert!(self.device.step(steps[which % steps.len()]), "what is offered is possible");
                }
            }
            Action::Poll { max } => self.poll(max),
            Action::FailPath { peer } => self.device.fail_path(PeerId(peer)),
            Action::Del { .. } | Action::Answer { .. } => {}
        }
        self.check();
    }

    fn poll(&mut self, max: usize) {
        let mut recorder = Recorder::default();
        let told = self.device.poll(max, &mut recorder);
        if self.failed.is_some() {
            assert!(told.is_err() && recorder.events.is_empty(), "nothing follows a failure");
            return;
        }
        assert_eq!(told, Ok(recorder.events.len()));
        for event in recorder.events {
            self.hear(&event);
        }
    }

    fn hear(&mut self, event: &Event) {
        assert_eq!(self.failed, None, "nothing follows a failure: {event:?}");
        match event {
            Event::Arrived(arrival) => {
                self.counted = self.counted.wrapping_add(u16::from(arrival.counted));
                assert!(!self.messages.contains(&arrival.message));
                self.messages.push(arrival.message);
            }
            Event::Matched(it) => {
                assert!(self.careless || self.live.contains(&it.handle.index), "{it:?}");
                if it.stage == MatchStage::DataFollows {
                    self.data_owed.push(DataTarget::Entry(it.handle));
                }
                if it.released {
                    assert_eq!(it.stage, MatchStage::Complete);
                    self.release(it.handle);
                }
            }
            Event::Data(data) => {
                let owed = self.data_owed.iter().position(|target| *target == data.target);
                let silent = self.device.config().switches.half_received == HalfReceived::Silent;
                if let DataTarget::Message(message) = data.target {
                    let held = self.messages.iter().position(|it| *it == message);
                    assert!(data.error.is_some() && held.is_some(), "{data:?}");
                    held.map(|place| self.messages.swap_remove(place));
                } else {
                    assert!(self.careless || silent || owed.is_some(), "{data:?}");
                }
                owed.map(|place| self.data_owed.swap_remove(place));
            }
            Event::Released(handle) => {
                assert!(self.careless || !self.data_owed.contains(&DataTarget::Entry(*handle)));
                self.release(*handle);
            }
            Event::DeviceFailed(error) => self.failed = Some(error.clone()),
            Event::SetAside { .. } => panic!("this device does without no entry: {event:?}"),
            Event::Operation(_) | Event::Untagged { .. } | Event::PathLost { .. } => {}
        }
    }

    fn release(&mut self, handle: TagHandle) {
        let place = self.live.iter().position(|live| *live == handle.index);
        assert!(place.is_some(), "{handle:?} is released once");
        place.map(|place| self.live.swap_remove(place));
    }

    fn check(&self) {
        let (Some(driver), Some(list)) = (self.device.driver(), self.device.list()) else { return };
        let tags = self.device.config().tags as usize;
        assert_eq!(driver.tags_free() + driver.tags_used(), tags);
        assert!(list.entries().len() <= tags + usize::from(self.careless) * tags);
        let owing =
            (0..=self.device.config().tags).filter(|handle| driver.completions_owed(*handle) > 0).count();
        assert_eq!(owing, driver.tags_used(), "in use is what waits for completions");
        if !self.careless {
            for entry in list.entries() {
                assert!(driver.completions_owed(u32::from(entry.index)) > 0, "{entry:?} is in use");
            }
        }
        let pending: u32 = driver.slots_pending().sum();
        assert_eq!(pending, driver.slots_used());
        assert!(driver.slots_used() <= driver.slots());
        assert!(self.device.completions_used() <= self.device.config().completions);
        assert!(driver.receives.used() <= driver.receives.slots() as usize);
        let numbers: std::collections::BTreeSet<_> = list.entries().iter().map(|entry| entry.index).collect();
        assert_eq!(numbers.len(), list.entries().len());
    }

    /// With nothing more coming from the host, everything that can finish does.
    fn finish(mut self) {
        while self.failed.is_none() {
            let bound = 10_000;
            let steps = (0..bound).take_while(|_| {
                let first = self.device.steps().first().copied();
                first.is_some_and(|step| self.device.step(step))
            });
            assert!(steps.count() < bound, "steps come to an end");
            self.poll(64);
            self.check();
            if self.device.is_quiet() && self.device.steps().is_empty() {
                break;
            }
        }
        let silent = self.device.config().switches.half_received == HalfReceived::Silent;
        if self.failed.is_none() && !self.careless && !silent {
            assert_eq!(self.data_owed, []);
            assert_eq!(self.device.messages_held(), self.messages.len());
            assert_eq!(self.live.len(), self.device.list().map_or(0, |list| list.entries().len()));
        }
        let device = self.device;
        assert_eq!(canonical(&device), canonical(&device.clone()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn random_operations_keep_the_books(
        switches in switches(),
        tags in 1..4_u32,
        operations in 0..9_u32,
        count in prop_oneof![Just(0_u16), Just(u16::MAX), any::<u16>()],
        rendezvous in any::<bool>(),
        actions in prop::collection::vec(action(), 1..150),
    ) {
        let completions = 64;
        let config = SoftConfig {
            switches, operations, count, rendezvous, completions, step_mode: true, ..SoftConfig::matching(tags)
        };
        let device = ready(config);
        let mut host = Host {
            device,
            next: 0,
            transfers: 0,
            live: Vec::new(),
            careless: false,
            messages: Vec::new(),
            data_owed: Vec::new(),
            counted: count,
            failed: None,
        };
        for action in actions {
            host.act(action);
        }
        host.finish();
    }

    #[test]
    fn random_operations_on_a_device_without_a_list(actions in prop::collection::vec(action(), 1..150)) {
        let device = ready(SoftConfig { step_mode: true, ..SoftConfig::generic() });
        let mut host = Host {
            device,
            next: 0,
            transfers: 0,
            live: Vec::new(),
            careless: false,
            messages: Vec::new(),
            data_owed: Vec::new(),
            counted: 0,
            failed: None,
        };
        for action in actions {
            if !matches!(action, Action::Add { .. } | Action::Sync { .. } | Action::Receive) {
                host.act(action);
            }
        }
        host.finish();
    }
}

#[test]
fn steps_that_are_not_offered_do_nothing() {
    let mut device = stepped(2);
    send(&mut device, ALICE, eager(1));
    let before = canonical(&device);
    for step in [Step::Command, Step::Accept(BOB), Step::Packet(ALICE), Step::Read(0), Step::Read(usize::MAX)]
    {
        assert!(!device.step(step), "{step:?}");
    }
    assert_eq!(canonical(&device), before);
}
