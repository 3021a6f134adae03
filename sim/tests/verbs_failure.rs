//! What goes wrong with a verbs device over the real libibverbs and libmlx5: no receives, silent and lost peers, data
//! that was under way, hostile peers, devices that fail.
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are outside test functions")]
#![allow(clippy::wildcard_enum_match_arm, reason = "a test names the one variant that it expects")]

#[path = "verbs/rig.rs"]
mod rig;

use rig::{PEER, Pair, Side, config, data, hca, word};
use tagmatch::device::Device;
use tagmatch::device::soft::switches::{HalfReceived, Switches};
use tagmatch::device::verbs::VerbsConfig;
use tagmatch::device::verbs::device::{Message, SendError};
use tagmatch::device::verbs::memory::RemoteAccess;
use tagmatch::device::verbs::queue_pair::Patience;
use tagmatch::ids::{Tag, TransferId};
use tagmatch::seam::{Answer, Command, DataError, DataTarget, DeviceError, Event, MatchStage, Remote};
use tagmatch_sim::hca::HcaConfig;

tagmatch_sim::hca_hooks!();

const TRANSFER: TransferId = TransferId { index: 3, generation: 4 };

fn impatient() -> VerbsConfig {
    let patience = Patience { rnr_retries: 2, retries: 2, ..Patience::default() };
    VerbsConfig { patience, ..config() }
}

/// As [`Pair::settle`], timers included.
fn settle_with_timers(pair: &mut Pair) {
    for _ in 0..10 {
        pair.hca.run_until_idle();
        pair.settle();
    }
}

/// Fill all receives of the right side with messages that it holds.
fn use_up_receives(pair: &mut Pair) {
    for _ in 0..40 {
        pair.left.eager(1, b"x");
        pair.settle();
    }
    assert_eq!(pair.right.device.buffers_posted(), 0);
    while pair.left.device.poll_sent().is_some() {}
    pair.right.told();
}

#[test]
fn without_receives_a_sender_waits_until_there_are_some() {
    let mut pair = Pair::new();
    use_up_receives(&mut pair);
    pair.left.eager(1, b"late");
    settle_with_timers(&mut pair);
    assert_eq!(pair.right.told(), []);
    assert_eq!(pair.left.device.poll_sent(), None);
    assert_eq!(pair.right.device.submit(&[Command::Receive { buffers: 1 }]), Ok(1));
    settle_with_timers(&mut pair);
    assert!(matches!(pair.right.told()[..], [Event::Arrived(_)]));
    assert_eq!(pair.left.device.poll_sent().unwrap().result, Ok(()));
}

#[test]
fn a_sender_that_does_not_wait_for_receives_for_ever_loses_the_path() {
    let mut pair = Pair::with(HcaConfig::default(), impatient(), impatient());
    use_up_receives(&mut pair);
    pair.left.eager(1, b"never");
    pair.left.eager(1, b"flushed");
    settle_with_timers(&mut pair);
    let (first, second) = (pair.left.device.poll_sent().unwrap(), pair.left.device.poll_sent().unwrap());
    assert_eq!(first.result.unwrap_err().status, 13, "IBV_WC_RNR_RETRY_EXC_ERR");
    assert_eq!(second.result.unwrap_err().status, 5, "IBV_WC_WR_FLUSH_ERR");
    assert_eq!(pair.left.told(), [Event::PathLost { peer: PEER }]);
    assert_eq!(pair.left.device.peers(), 0);
    let again = pair.left.device.send(PEER, &Message::Control(&[0]), None, 0);
    assert_eq!(again, Err(SendError::NoPath { peer: PEER }));
}

#[test]
fn a_peer_that_is_gone_is_found_out_by_a_probe() {
    let hca = hca(HcaConfig::default());
    let mut left = Side::new(&hca, impatient());
    let mut right = Side::new(&hca, impatient());
    let (info, other) = (left.device.prepare(PEER).unwrap(), right.device.prepare(PEER).unwrap());
    left.device.connect(PEER, &other).unwrap();
    right.device.connect(PEER, &info).unwrap();
    let mut pair = Pair { left, right, hca };
    // A probe is nothing to its target.
    pair.left.device.probe(PEER).unwrap();
    pair.settle();
    assert_eq!((pair.right.told(), pair.left.told()), (vec![], vec![]));
    let Pair { mut left, right, hca } = pair;
    drop(right);
    left.device.probe(PEER).unwrap();
    for _ in 0..40 {
        hca.run_until_idle();
        left.poll();
    }
    assert_eq!(left.told(), [Event::PathLost { peer: PEER }]);
}

#[test]
fn a_silent_peer_is_asked_by_itself_where_the_configuration_says_so() {
    let keepalive = VerbsConfig { keepalive: Some(std::time::Duration::ZERO), ..impatient() };
    let hca = hca(HcaConfig::default());
    let mut left = Side::new(&hca, keepalive);
    let mut right = Side::new(&hca, impatient());
    let (info, other) = (left.device.prepare(PEER).unwrap(), right.device.prepare(PEER).unwrap());
    left.device.connect(PEER, &other).unwrap();
    right.device.connect(PEER, &info).unwrap();
    let mut polls = |limit| {
        for _ in 0..limit {
            hca.run_until_idle();
            left.poll();
        }
        left.told()
    };
    assert_eq!(polls(200), []);
    drop(right);
    assert_eq!(polls(400), [Event::PathLost { peer: PEER }]);
}

#[test]
fn data_under_way_fails_only_when_its_queue_pairs_are_gone() {
    for half_received in [HalfReceived::Canceled, HalfReceived::Silent] {
        let switches = Switches { half_received, ..Switches::default() };
        let small = HcaConfig { mtu: 1, switches, ..HcaConfig::default() };
        let mut pair = Pair::with(small, config(), config());
        let handle = pair.right.add(1, pair.right.buffer(0, 8192), 0);
        pair.left.eager(1, &[7; 5000]);
        // The first packets only.
        let mut matched = false;
        while !matched {
            let steps = pair.hca.steps();
            assert!(pair.hca.step(steps[0]));
            pair.right.poll();
            matched = pair.right.log.events.iter().any(|event| matches!(event, Event::Matched(_)));
        }
        let told = pair.right.told();
        assert!(matches!(told[..], [Event::Matched(m)] if m.stage == MatchStage::DataFollows));
        let before = pair.hca.with(|hca| hca.counts().qps);
        pair.right.device.disconnect(PEER).unwrap();
        for _ in 0..100 {
            pair.hca.run(1000);
            pair.right.poll();
            let has_failed = pair.right.log.events.iter().any(|event| matches!(event, Event::Data(_)));
            assert!(!has_failed || pair.hca.with(|hca| hca.counts().qps) == before - 2, "{half_received:?}");
        }
        let told = pair.right.told();
        assert_eq!(data(&told[0]).target, DataTarget::Entry(handle));
        assert_eq!(data(&told[0]).error, Some(DataError::PathLost));
        assert_eq!(told.last(), Some(&Event::PathLost { peer: PEER }));
        let released = told.contains(&Event::Released(handle));
        assert_eq!(released, half_received == HalfReceived::Canceled, "{told:?}");
    }
}

#[test]
fn what_had_come_is_told_before_the_path_is_lost_and_other_peers_go_on() {
    let mut pair = Pair::new();
    let handle = pair.right.add(1, pair.right.buffer(0, 8192), 0);
    pair.left.eager(1, b"first");
    pair.left.eager(2, b"second");
    pair.left.rendezvous(3, 0, 1000);
    pair.hca.run(100_000);
    pair.right.device.disconnect(PEER).unwrap();
    pair.settle();
    let told = pair.right.told();
    assert!(matches!(told[0], Event::Matched(m) if m.handle == handle && m.released));
    let (Event::Arrived(_), Event::Arrived(request)) = (&told[1], &told[2]) else { panic!("{told:?}") };
    let lost = data(&told[3]);
    assert_eq!((lost.target, lost.error), (DataTarget::Message(request.message), Some(DataError::PathLost)));
    assert_eq!(told[4..], [Event::PathLost { peer: PEER }]);
    // The eager one is still here to be accepted.
    assert_eq!(pair.right.device.messages_held(), 1);
    // And the path can be made anew, once the other side has found out.
    pair.left.device.disconnect(PEER).unwrap();
    pair.settle();
    assert_eq!(pair.left.told(), [Event::PathLost { peer: PEER }]);
    pair.connect();
    pair.right.add(4, pair.right.buffer(0, 8192), 2);
    pair.left.eager(4, b"again");
    pair.settle();
    assert!(matches!(pair.right.told()[0], Event::Arrived(_) | Event::Matched(_)));
    assert_eq!(pair.right.device.peers(), 1);
}

#[test]
fn a_read_of_memory_that_is_not_there_loses_the_path_and_the_receive_fails_then() {
    let mut pair = Pair::new();
    let remote = Remote { address: 0x10, key: 0x1234_5678, length: 100 };
    let buffer = pair.right.buffer(0, 100);
    let (transfer, tag, app_ctx) = (TRANSFER, Tag(1), word(1).to_bits());
    let read = Command::Read { transfer, peer: PEER, tag, app_ctx, remote, buffer };
    assert_eq!(pair.right.device.submit(&[read]), Ok(1));
    settle_with_timers(&mut pair);
    let told = pair.right.told();
    assert_eq!(
        (data(&told[0]).target, data(&told[0]).error),
        (DataTarget::Transfer(TRANSFER), Some(DataError::PathLost))
    );
    assert_eq!(told[1..], [Event::PathLost { peer: PEER }]);
}

#[test]
fn a_hostile_rendezvous_with_a_wrong_key_costs_its_sender_the_path_and_nobody_else_anything() {
    let mut pair = Pair::new();
    let handle = pair.right.add(1, pair.right.buffer(0, 8192), 0);
    let mut request = pair.left.request(1, 0, 100);
    request.memory.key ^= 0x5A5A_5A00;
    pair.left.send(&Message::Rendezvous(request), None);
    settle_with_timers(&mut pair);
    let told = pair.right.told();
    assert!(matches!(told[0], Event::Matched(m) if m.handle == handle));
    let end = told.iter().find(|event| matches!(event, Event::Data(_))).unwrap();
    assert_eq!((data(end).target, data(end).error), (DataTarget::Entry(handle), Some(DataError::PathLost)));
    assert!(told.contains(&Event::PathLost { peer: PEER }), "{told:?}");
    assert!(!told.iter().any(|event| matches!(event, Event::DeviceFailed(_))), "{told:?}");
}

#[test]
fn messages_that_are_no_messages_are_told_as_untagged() {
    let mut pair = Pair::new();
    // TMH with a reserved byte set, in place of a message without a tag: that is what this side can send.
    let bad = [0, 0xFF, 0xFF];
    pair.left.send(&Message::Control(&bad), None);
    pair.settle();
    assert!(matches!(pair.right.told()[..], [Event::Untagged { counted: false, length: 3, .. }]));
    assert_eq!(pair.right.untagged(), [bad]);
}

#[test]
fn an_eager_message_over_the_limit_is_the_end_of_the_list_and_the_engine_is_told() {
    let generous = VerbsConfig { eager_limit: 16_384, ..config() };
    let mut pair = Pair::with(HcaConfig::default(), generous, config());
    // The right side says 8192, and a peer that does not care sends more.
    let handle = pair.right.add(1, pair.right.buffer(0, 100), 0);
    pair.left.eager(1, &[1; 8000]);
    settle_with_timers(&mut pair);
    let told = pair.right.told();
    let Some(Event::DeviceFailed(DeviceError::Completion { .. })) = told.last() else { panic!("{told:?}") };
    assert!(!told.contains(&Event::Released(handle)));
    assert!(pair.right.device.submit(&[Command::Sync { unexpected_count: 0, signalled: true }]).is_err());
    assert!(pair.right.device.poll(1, &mut pair.right.log).is_err());
    // Nothing of it can write any more: its queue pairs and its list are gone.
    assert_eq!(pair.hca.with(|hca| hca.counts().srqs), 1);
}

#[test]
fn answers_for_a_message_whose_path_is_lost_meanwhile_end_with_an_error() {
    let mut pair = Pair::new();
    pair.left.rendezvous(3, 0, 1000);
    pair.settle();
    let told = pair.right.told();
    let Event::Arrived(request) = told[0] else { panic!("{told:?}") };
    pair.right.device.disconnect(PEER).unwrap();
    let answer = Answer::Accept { buffer: pair.right.buffer(0, 1000), transfer: Some(TRANSFER) };
    let command = Command::Answer { message: request.message, answer };
    assert_eq!(pair.right.device.submit(&[command]), Ok(1));
    pair.settle();
    let told = pair.right.told();
    assert_eq!(
        (data(&told[0]).target, data(&told[0]).error),
        (DataTarget::Transfer(TRANSFER), Some(DataError::PathLost))
    );
    assert_eq!(told[1..], [Event::PathLost { peer: PEER }]);
}

#[test]
fn answers_for_a_message_whose_loss_was_not_told_yet_end_with_an_error_or_with_nothing() {
    for transfer in [Some(TRANSFER), None] {
        let mut pair = Pair::new();
        pair.left.rendezvous(3, 0, 1000);
        pair.left.rendezvous(4, 0, 1000);
        pair.settle();
        let told = pair.right.told();
        let [Event::Arrived(first), Event::Arrived(second)] = told[..] else { panic!("{told:?}") };
        pair.right.device.disconnect(PEER).unwrap();
        // Until the loss of the first message is told, and that of the second not yet.
        for _ in 0..1000 {
            pair.hca.run(100_000);
            if pair.right.device.poll(1, &mut pair.right.log) == Ok(1) {
                break;
            }
        }
        let told = pair.right.told();
        assert_eq!(data(&told[0]).target, DataTarget::Message(first.message));
        let buffer = pair.right.buffer(0, 1000);
        let answer = if transfer.is_some() { Answer::Accept { buffer, transfer } } else { Answer::Discard };
        let command = Command::Answer { message: second.message, answer };
        assert_eq!(pair.right.device.submit(&[command]), Ok(1));
        pair.settle();
        let told = pair.right.told();
        let (ends, lost) = told.split_at(told.len() - 1);
        let ends: Vec<_> = ends.iter().map(|event| (data(event).target, data(event).error)).collect();
        let expected = transfer.map(|transfer| (DataTarget::Transfer(transfer), Some(DataError::PathLost)));
        assert_eq!(ends, expected.into_iter().collect::<Vec<_>>());
        assert_eq!(lost, [Event::PathLost { peer: PEER }]);
    }
}

#[test]
fn a_region_in_use_cannot_be_deregistered() {
    let mut pair = Pair::new();
    let handle = pair.right.add(1, pair.right.buffer(0, 8192), 0);
    let id = pair.right.memory.id;
    assert!(pair.right.device.deregister(id).unwrap_err().to_string().contains("in use"));
    assert_eq!(pair.right.device.submit(&[Command::Del { handle, signalled: true }]), Ok(1));
    pair.settle();
    pair.right.device.deregister(id).unwrap();
    assert!(pair.right.device.deregister(id).unwrap_err().to_string().contains("no such region"));
    let next = pair.right.device.allocate(4096, RemoteAccess::NONE).unwrap();
    assert!(pair.right.device.region(id).is_none() && pair.right.device.region(next.id).is_some());
}

#[test]
fn a_region_that_is_sent_from_cannot_be_deregistered_before_the_send_is_done() {
    let mut pair = Pair::new();
    let (id, payload) = (pair.left.memory.id, pair.left.buffer(0, 1000));
    pair.left.send(&Message::EagerRegistered { context: word(1), tag: Tag(1), payload }, None);
    assert!(pair.left.device.deregister(id).unwrap_err().to_string().contains("in use"));
    pair.settle();
    assert_eq!(pair.left.device.poll_sent().unwrap().result, Ok(()));
    pair.left.device.deregister(id).unwrap();
}

#[test]
fn a_peer_cannot_be_connected_before_33_receives_are_posted_nor_twice_nor_beyond_the_limit() {
    let hca = hca(HcaConfig::default());
    let mut side = Side::new(&hca, VerbsConfig { peers: 1, ..config() });
    let info = side.device.prepare(PEER).unwrap();
    assert!(side.device.prepare(PEER).unwrap_err().to_string().contains("has a connection"));
    let other = tagmatch::ids::PeerId(8);
    assert!(side.device.prepare(other).unwrap_err().to_string().contains("limit"));
    assert!(side.device.connect(other, &info).is_err());
    let config = VerbsConfig { device: Some(hca.name().to_owned()), ..config() };
    let memory = tagmatch::device::verbs::HostMemory::registered();
    let mut empty = tagmatch::device::verbs::VerbsDevice::open(config, memory).unwrap();
    let own = empty.prepare(PEER).unwrap();
    assert!(empty.connect(PEER, &own).unwrap_err().to_string().contains("33"));
}
