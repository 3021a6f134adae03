//! Each doubtful point of TM-CONTRACT 14, both ways, where the list alone does not show it.

use super::support::*;
use crate::device::Device;
use crate::device::soft::switches::*;
use crate::device::soft::{
    Arena, Kind, NoMemory, Observation, SoftConfig, SoftDevice, SoftMessage, Step, Switches,
};
use crate::ids::Tag;
use crate::seam::{Command, DeviceError, Event, MatchStage};

fn with(switches: Switches) -> SoftDevice<Arena> {
    ready(SoftConfig { switches, step_mode: true, ..SoftConfig::matching(4) })
}

/// The device with entry 0 for tag 7 and entry 1 for tag 8, all polled.
fn added(switches: Switches) -> SoftDevice<Arena> {
    added_to(with(switches))
}

fn added_to(mut device: SoftDevice<Arena>) -> SoftDevice<Arena> {
    submit(&mut device, add(0, 7, 0));
    submit(&mut device, add(1, 8, 0));
    device.run();
    poll(&mut device);
    device
}

fn outcome(device: &mut SoftDevice<Arena>, message: SoftMessage) -> Vec<Event> {
    send(device, ALICE, message);
    device.run();
    poll(device)
}

#[test]
fn a3_not_atomic_a_remove_that_carries_the_count_can_lose_its_entry() {
    // Only the driver lets a DEL carry a count; the seam does not. So: an ADD, whose count activates others.
    let count_order = CountOrder::BeforeChangeNotAtomic;
    let mut device = with(Switches { count_order, ..Switches::default() });
    send(&mut device, ALICE, eager(9));
    submit(&mut device, add(0, 7, 0));
    device.step(Step::Accept(ALICE));
    device.step(Step::Command);
    device.step(Step::Command);
    submit(&mut device, add(1, 8, 1));
    send(&mut device, ALICE, eager(7));
    device.step(Step::Command);
    assert_eq!(device.list().expect("has one").entries().len(), 1, "the count came first");
    device.step(Step::Accept(ALICE));
    device.step(Step::Command);
    assert_eq!(matched(&poll(&mut device)), [0]);
    assert_eq!(device.list().expect("has one").entries()[0].tag, 8);
}

#[test]
fn a5_too_long_an_eager_message_is_fatal_or_truncated() {
    let long = SoftMessage::with_payload(Tag(7), &[1; 300]);
    let failed = outcome(&mut added(Switches::default()), long.clone());
    assert!(matches!(failed[..], [Event::DeviceFailed(_)]));
    let mut device = added(Switches { too_long: TooLong::Truncate, ..Switches::default() });
    let events = outcome(&mut device, long);
    assert!(matches!(events[0], Event::Matched(it) if it.length == 300));
    let written = device.memory.bytes(device.memory.buffer(0, 512)).expect("is there");
    assert_eq!(written.iter().map(|byte| usize::from(*byte)).sum::<usize>(), 256);
}

#[test]
fn a6_below_33_buffers() {
    let accepts = |few_buffers, before, after| {
        let switches = Switches { few_buffers, ..Switches::default() };
        let config = SoftConfig { switches, ..SoftConfig::matching(4) };
        let mut device = SoftDevice::new(config, NoMemory).expect("the configuration is good");
        submit(&mut device, Command::Receive { buffers: before });
        for _ in 0..after {
            send(&mut device, ALICE, eager(9));
        }
        unexpected(&poll(&mut device)).len()
    };
    let table =
        [(FewBuffers::WaitAtStart, 0, 33), (FewBuffers::WaitAlways, 0, 1), (FewBuffers::Work, 32, 33)];
    for (few_buffers, with_32, with_33) in table {
        assert_eq!(accepts(few_buffers, 32, 40), with_32, "{few_buffers:?}");
        assert_eq!(accepts(few_buffers, 33, 40), with_33, "{few_buffers:?}");
    }
}

#[test]
fn a8_a_malformed_message_is_counted_or_not() {
    let malformed_message = SoftMessage { kind: Kind::Malformed, ..SoftMessage::no_tag(9) };
    for (malformed, phase) in [(Malformed::NoTag, 0_u16), (Malformed::Unexpected, 1)] {
        let mut device = with(Switches { malformed, ..Switches::default() });
        let events = outcome(&mut device, malformed_message.clone());
        let [Event::Untagged { length: 9, counted, .. }] = events[..] else { panic!("{events:?}") };
        assert_eq!(u16::from(counted), phase);
        assert_eq!(device.list().expect("has one").hardware_phase(), phase);
    }
}

#[test]
fn a9_without_offload_a_rendezvous_is_handed_back_or_unexpected() {
    let device = |no_offload| {
        let switches = Switches { no_offload, ..Switches::default() };
        let config = SoftConfig { switches, rendezvous: false, step_mode: true, ..SoftConfig::matching(4) };
        added_to(ready(config))
    };
    let events = outcome(&mut device(NoOffload::SoftwareRendezvous), rendezvous(7, 10));
    assert!(
        matches!(events[0], Event::Matched(it) if it.stage == MatchStage::SoftwareRendezvous(remote(10)))
    );
    let events = outcome(&mut device(NoOffload::Unexpected), rendezvous(7, 10));
    assert_eq!((unexpected(&events), matched(&events)), (vec![7], vec![]));
}

#[test]
fn a10_a_rendezvous_is_handed_back_in_one_completion_or_two() {
    let table = [(HandBack::One, 1), (HandBack::ThenExpected, 2), (HandBack::ThenCanceled, 2)];
    for (hand_back, completions) in table {
        let mut device = added(Switches { hand_back, ..Switches::default() });
        send(&mut device, ALICE, rendezvous(7, 300));
        device.run();
        assert_eq!(device.completions_used(), completions);
        let events = poll(&mut device);
        let stage = MatchStage::SoftwareRendezvous(remote(300));
        assert!(matches!(events[0], Event::Matched(it) if it.stage == stage && it.length == 300));
        assert_eq!(events[1..], [Event::Released(handle(0))], "{hand_back:?}");
    }
}

#[test]
fn a11_the_length_of_a_match_whose_data_follows_means_nothing() {
    let length = |consumed_length| {
        let mut device = added(Switches { consumed_length, ..Switches::default() });
        let events = outcome(&mut device, SoftMessage { packets: 2, ..eager(7) });
        let [Event::Matched(it), Event::Data(data), ..] = events[..] else { panic!("{events:?}") };
        assert_eq!(data.length, 8);
        it.length
    };
    assert_eq!(length(ConsumedLength::Zero), 0);
    assert_ne!(length(ConsumedLength::Arbitrary), 8);
}

#[test]
fn a12_data_comes_in_any_order_or_as_matched() {
    let steps = |expected_order| {
        let mut device = added(Switches { expected_order, ..Switches::default() });
        send(&mut device, ALICE, rendezvous(7, 10));
        send(&mut device, BOB, SoftMessage { packets: 2, ..eager(8) });
        device.step(Step::Accept(ALICE));
        device.step(Step::Accept(BOB));
        let steps = device.steps();
        device.run();
        assert_eq!(released(&poll(&mut device)).len(), 2);
        steps
    };
    assert_eq!(steps(ExpectedOrder::Any), [Step::Read(0), Step::Packet(BOB)]);
    assert_eq!(steps(ExpectedOrder::AsMatched), [Step::Read(0)]);
}

#[test]
fn a12_the_sender_hears_before_or_after_the_receiver() {
    for (fin_order, fin_first) in [(FinOrder::BeforeExpected, true), (FinOrder::AfterExpected, false)] {
        let mut device = added(Switches { fin_order, ..Switches::default() });
        outcome(&mut device, rendezvous(7, 10));
        let observations = device.take_observations();
        let fin = observations.iter().position(|it| matches!(it, Observation::Fin { .. }));
        let expected = observations.iter().position(|it| matches!(it, Observation::Expected { .. }));
        assert_eq!(fin < expected, fin_first);
        assert!(fin.is_some() && expected.is_some());
    }
}

#[test]
fn a13_a_failing_read_costs_the_path_or_the_device() {
    let broken =
        SoftMessage { kind: Kind::Rendezvous { remote: remote(10), broken: true }, ..rendezvous(7, 10) };
    let mut device = added(Switches::default());
    let events = outcome(&mut device, broken.clone());
    let [Event::Matched(_), Event::Data(data), Event::Released(_), Event::PathLost { peer: ALICE }] =
        events[..]
    else {
        panic!("{events:?}")
    };
    assert!(data.error.is_some());
    let mut device = added(Switches { read_failure: ReadFailure::DeviceError, ..Switches::default() });
    let events = outcome(&mut device, broken);
    assert!(matches!(events[..], [Event::Matched(_), Event::DeviceFailed(_)]));
}

#[test]
fn a14_and_a15_are_refused_at_creation_or_not_at_all() {
    let created = |config: SoftConfig| SoftDevice::new(config, NoMemory).map(|_| ());
    let refused = Err(DeviceError::System { call: "ibv_create_srq_ex", errno: 22 });
    let port = SoftConfig { port: 2, ..SoftConfig::matching(4) };
    let roce = SoftConfig { roce: true, ..SoftConfig::matching(4) };
    assert_eq!(created(port), Ok(()));
    assert_eq!(created(roce), refused);
    let other_port = OtherPort::Refused;
    assert_eq!(created(SoftConfig { switches: Switches { other_port, ..port.switches }, ..port }), refused);
    let roce_works = Switches { roce: RoCe::Works, ..roce.switches };
    assert_eq!(created(SoftConfig { switches: roce_works, ..roce }), Ok(()));
}

#[test]
fn a16_an_empty_rendezvous_completes_or_is_handed_back() {
    let stages = |empty_rendezvous| {
        let mut device = added(Switches { empty_rendezvous, ..Switches::default() });
        let events = outcome(&mut device, rendezvous(7, 0));
        assert_eq!(released(&events), [0]);
        let Event::Matched(it) = events[0] else { panic!("{events:?}") };
        it.stage
    };
    assert_eq!(stages(EmptyRendezvous::Completes), MatchStage::DataFollows);
    assert_eq!(stages(EmptyRendezvous::HandedBack), MatchStage::SoftwareRendezvous(remote(0)));
}

#[test]
fn a17_one_buffer_in_two_entries_is_allowed_or_fatal() {
    for (shared_buffer, fatal) in [(SharedBuffer::Allowed, false), (SharedBuffer::Refused, true)] {
        let mut device = with(Switches { shared_buffer, ..Switches::default() });
        for index in 0..2 {
            let Command::Add { tag, ignore, unexpected_count, signalled, .. } = add(index, 1, 0) else {
                return;
            };
            let (handle, buffer) = (handle(index), buffer(0));
            submit(&mut device, Command::Add { handle, tag, ignore, buffer, unexpected_count, signalled });
        }
        device.run();
        let failed = poll(&mut device).iter().any(|event| matches!(event, Event::DeviceFailed(_)));
        assert_eq!(failed, fatal);
    }
}

#[test]
fn a18_the_immediate_of_a_long_message_comes_with_its_data_or_with_its_match() {
    for (immediate_on, expected) in
        [(ImmediateOn::Expected, (None, Some(3))), (ImmediateOn::Consumed, (Some(3), None))]
    {
        let mut device = added(Switches { immediate_on, ..Switches::default() });
        let message = SoftMessage { packets: 2, immediate: Some(3), ..eager(7) };
        let events = outcome(&mut device, message);
        let [Event::Matched(it), Event::Data(data), ..] = events[..] else { panic!("{events:?}") };
        assert_eq!((it.immediate, data.immediate), expected);
    }
}

#[test]
fn a19_counting_at_the_last_packet_lets_a_newer_receive_overtake() {
    // m1 has begun to come in when its receive is posted, and m2 comes behind it on another path.
    for (count_at, overtaken) in [(CountAt::FirstPacket, vec![]), (CountAt::LastPacket, vec![0])] {
        let mut device = with(Switches { count_at, ..Switches::default() });
        send(&mut device, ALICE, SoftMessage { packets: 2, ..eager(7) });
        device.step(Step::Accept(ALICE));
        submit(&mut device, add(0, 7, 0));
        device.step(Step::Command);
        send(&mut device, BOB, eager(7));
        device.run();
        let events = poll(&mut device);
        assert_eq!(matched(&events), overtaken, "{count_at:?}");
        assert_eq!(device.list().expect("has one").hardware_phase(), 2 - u16::from(!overtaken.is_empty()));
    }
}

#[test]
fn section_10_completions_wait_for_an_earlier_arrival_or_do_not() {
    for (completion_order, first) in [(CompletionOrder::Arrival, vec![]), (CompletionOrder::Finish, vec![0])]
    {
        let mut device = added(Switches { completion_order, ..Switches::default() });
        send(&mut device, BOB, SoftMessage { packets: 2, ..eager(1) });
        device.step(Step::Accept(BOB));
        send(&mut device, ALICE, eager(7));
        device.step(Step::Accept(ALICE));
        assert_eq!(matched(&poll(&mut device)), first, "{completion_order:?}");
        device.run();
        assert_eq!(unexpected(&poll(&mut device)), [1]);
    }
}

#[test]
fn section_13_a_silent_device_never_gives_the_tag_back() {
    let mut device = added(Switches { half_received: HalfReceived::Silent, ..Switches::default() });
    send(&mut device, ALICE, SoftMessage { packets: 2, ..eager(7) });
    send(&mut device, BOB, SoftMessage { packets: 2, ..eager(1) });
    device.step(Step::Accept(ALICE));
    device.step(Step::Accept(BOB));
    device.fail_path(ALICE);
    device.fail_path(BOB);
    let events = poll(&mut device);
    assert_eq!((released(&events), unexpected(&events)), (vec![], vec![]));
    assert_eq!(
        events.iter().filter(|event| matches!(event, Event::Data(it) if it.error.is_some())).count(),
        1
    );
    assert_eq!(device.driver().expect("has one").tags_used(), 2);
    let list = device.list().expect("has one");
    assert_eq!((list.hardware_phase(), list.software_phase()), (1, 0));
    assert!(device.submit(&[sync(0)]).is_ok());
}
