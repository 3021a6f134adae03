//! The verbs device over the real libibverbs and libmlx5 on the simulated HCA: messages of every kind, matched by the
//! device and not.
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are outside test functions")]
#![allow(clippy::wildcard_enum_match_arm, reason = "a test names the one variant that it expects")]

#[path = "verbs/rig.rs"]
mod rig;

use rig::{PEER, Pair, Side, config, data, hca, word};
use tagmatch::device::Device;
use tagmatch::device::soft::switches::{HandBack, Switches};
use tagmatch::device::verbs::device::{Message, SendError, Sending};
use tagmatch::device::verbs::error::{TagMatchingRefusal, VerbsError};
use tagmatch::device::verbs::queue_pair::Patience;
use tagmatch::device::verbs::{HostMemory, TagMatching, VerbsConfig, VerbsDevice};
use tagmatch::ids::{Tag, TagHandle, TransferId};
use tagmatch::seam::{
    Answer, Buffer, Command, DataTarget, Event, Match, MatchStage, Operation, OperationDone, Remote,
};
use tagmatch_sim::hca::{Counts, HcaConfig};

tagmatch_sim::hca_hooks!();

const TRANSFER: TransferId = TransferId { index: 3, generation: 4 };

fn matched(event: &Event) -> Match {
    match event {
        Event::Matched(matched) => *matched,
        other => panic!("{other:?} is not a match"),
    }
}

fn payload(length: usize) -> Vec<u8> {
    (0..length).map(|place| u8::try_from(place % 251).unwrap()).collect()
}

#[test]
fn limits_are_those_of_the_device_and_of_the_configuration() {
    let hca = hca(HcaConfig::default());
    let side = Side::new(&hca, config());
    let limits = side.device.limits().tag_matching.unwrap();
    assert_eq!(
        (limits.tags, limits.segments, limits.rendezvous_header, limits.rendezvous),
        (2047, 1, 64, true)
    );
    let capabilities = side.device.capabilities();
    assert_eq!(
        (capabilities.tags, capabilities.command_slots, capabilities.unexpected_buffers),
        (31, 64, 40)
    );
    assert!(capabilities.registration && capabilities.rendezvous);
    assert_eq!(side.device.refusal(), None);
    assert_eq!(side.device.free(), (31, 64));
}

#[test]
fn an_eager_message_is_matched_by_the_device_and_its_entry_is_released() {
    let mut pair = Pair::new();
    let handle = pair.right.add(0x55, pair.right.buffer(0, 8192), 0);
    pair.left.eager(0x55, b"hello");
    pair.settle();
    let events = std::mem::take(&mut pair.right.log.events);
    let done =
        OperationDone { operation: Operation::Add(handle), success: true, phase: 0, sync_requested: false };
    assert_eq!(events[0], Event::Operation(done));
    let expected = Match {
        handle,
        source: PEER,
        tag: Tag(0x55),
        app_ctx: word(5).to_bits(),
        length: 5,
        immediate: None,
        stage: MatchStage::Complete,
        released: true,
    };
    assert_eq!(events[1..], [Event::Matched(expected)]);
    assert_eq!(pair.right.read(0, 5), b"hello");
    assert_eq!(pair.left.device.poll_sent().unwrap().result, Ok(()));
    assert_eq!(pair.right.device.free(), (31, 64));
}

#[test]
fn of_a_message_of_several_packets_the_match_is_told_first_and_its_data_later() {
    let mut pair = Pair::with(HcaConfig { mtu: 1, ..HcaConfig::default() }, config(), config());
    let handle = pair.right.add(1, pair.right.buffer(0, 8192), 0);
    let sent = payload(5000);
    pair.left.send(&Message::Eager { context: word(5), tag: Tag(1), payload: &sent }, Some(0xABCD));
    pair.settle();
    let told = pair.right.told();
    assert_eq!(matched(&told[0]).stage, MatchStage::DataFollows);
    let end = data(&told[1]);
    assert_eq!((end.target, end.length, end.error), (DataTarget::Entry(handle), 5000, None));
    assert_eq!(end.immediate, Some(0xABCD));
    assert_eq!(told[2..], [Event::Released(handle)]);
    assert_eq!(pair.right.read(0, 5000), sent);
}

#[test]
fn an_unexpected_message_is_placed_on_the_spot_or_held_and_placed_later() {
    let mut pair = Pair::new();
    pair.right.log.answer = Answer::Accept { buffer: pair.right.buffer(100, 3), transfer: None };
    pair.left.eager(9, b"truncated");
    pair.settle();
    let told = pair.right.told();
    let Event::Arrived(arrival) = told[0] else { panic!("{told:?}") };
    assert!(arrival.in_hand && arrival.counted);
    assert_eq!((arrival.source, arrival.header.tag, arrival.header.length), (PEER, Tag(9), 9));
    assert_eq!(told.len(), 1);
    assert_eq!(pair.right.read(100, 4), b"tru\0");

    pair.right.log.answer = Answer::Hold;
    pair.left.eager(9, b"later");
    pair.settle();
    let told = pair.right.told();
    let Event::Arrived(arrival) = told[0] else { panic!("{told:?}") };
    let answer = Answer::Accept { buffer: pair.right.buffer(200, 100), transfer: Some(TRANSFER) };
    let command = Command::Answer { message: arrival.message, answer };
    assert_eq!(pair.right.device.submit(&[command]), Ok(1));
    pair.settle();
    let told = pair.right.told();
    assert_eq!((data(&told[0]).target, data(&told[0]).length), (DataTarget::Transfer(TRANSFER), 5));
    assert_eq!(pair.right.read(200, 6), b"later\0");
    assert_eq!(pair.right.device.messages_held(), 0);
}

#[test]
fn held_messages_beyond_the_spare_buffers_are_kept_by_copy_and_receives_go_on() {
    let mut pair = Pair::new();
    for round in 0..5 {
        for number in 0..10_u8 {
            pair.left.eager(number.into(), &[round * 10 + number; 3]);
            pair.settle();
        }
        assert_eq!(pair.right.device.submit(&[Command::Receive { buffers: 10 }]), Ok(1));
    }
    assert_eq!(pair.right.device.messages_held(), 50);
    let told = pair.right.told();
    for (place, event) in told.iter().enumerate() {
        let Event::Arrived(arrival) = event else { panic!("{event:?}") };
        let answer = Answer::Accept { buffer: pair.right.buffer(0, 10), transfer: Some(TRANSFER) };
        let command = Command::Answer { message: arrival.message, answer };
        assert_eq!(pair.right.device.submit(&[command]), Ok(1));
        assert_eq!(pair.right.read(0, 3), [u8::try_from(place).unwrap(); 3]);
    }
    assert_eq!(pair.right.device.buffers_posted(), 40);
}

#[test]
fn a_rendezvous_is_read_by_the_device_and_its_sender_gets_the_fin() {
    let mut pair = Pair::new();
    let sent = payload(100_000);
    pair.left.write(0, &sent);
    let handle = pair.right.add(2, pair.right.buffer(0, 200_000), 0);
    pair.left.rendezvous(2, 0, 100_000);
    pair.settle();
    let told = pair.right.told();
    assert_eq!(matched(&told[0]).stage, MatchStage::DataFollows);
    assert_eq!((data(&told[1]).target, data(&told[1]).length), (DataTarget::Entry(handle), 100_000));
    assert_eq!(told[2..], [Event::Released(handle)]);
    assert_eq!(pair.right.read(0, 100_000), sent);
    let fin = pair.left.request(2, 0, 100_000).fin().to_bytes();
    assert_eq!(pair.left.untagged(), [fin]);
    assert!(matches!(
        pair.left.told()[..],
        [Event::Untagged { counted: false, length: 32, source: PEER, .. }]
    ));
}

#[test]
fn a_rendezvous_longer_than_its_buffer_comes_back_and_is_read_by_software() {
    let mut pair = Pair::new();
    let sent = payload(50_000);
    pair.left.write(0, &sent);
    let handle = pair.right.add(2, pair.right.buffer(0, 10_000), 0);
    pair.left.rendezvous(2, 0, 50_000);
    pair.settle();
    let told = pair.right.told();
    let found = matched(&told[0]);
    let MatchStage::SoftwareRendezvous(remote) = found.stage else { panic!("{found:?}") };
    let key = pair.left.memory.remote_key;
    assert_eq!(remote, Remote { address: pair.left.memory.buffer.address, key, length: 50_000 });
    assert_eq!((found.handle, found.length), (handle, 50_000));
    assert_eq!(told[1..], [Event::Released(handle)]);
    let buffer = pair.right.buffer(0, 10_000);
    let Match { source: peer, tag, app_ctx, .. } = found;
    let read = Command::Read { transfer: TRANSFER, peer, tag, app_ctx, remote, buffer };
    assert_eq!(pair.right.device.submit(&[read]), Ok(1));
    pair.settle();
    let told = pair.right.told();
    assert_eq!((data(&told[0]).target, data(&told[0]).length), (DataTarget::Transfer(TRANSFER), 50_000));
    assert_eq!(pair.right.read(0, 10_000), sent[..10_000]);
    assert_eq!(pair.right.read(10_000, 1), [0]);
    assert_eq!(pair.left.untagged(), [pair.left.request(2, 0, 50_000).fin().to_bytes()]);
}

#[test]
fn a_rendezvous_that_comes_back_in_two_steps_is_read_before_its_data_is_told() {
    for hand_back in [HandBack::ThenExpected, HandBack::ThenCanceled] {
        let switches = Switches { hand_back, ..Switches::default() };
        let mut pair = Pair::with(HcaConfig { switches, ..HcaConfig::default() }, config(), config());
        let sent = payload(20_000);
        pair.left.write(0, &sent);
        let handle = pair.right.add(2, pair.right.buffer(0, 10_000), 0);
        pair.left.rendezvous(2, 0, 20_000);
        pair.settle();
        let told = pair.right.told();
        assert_eq!((matched(&told[0]).handle, matched(&told[0]).stage), (handle, MatchStage::DataFollows));
        assert_eq!((data(&told[1]).target, data(&told[1]).length), (DataTarget::Entry(handle), 20_000));
        assert_eq!(told[2..], [Event::Released(handle)], "{hand_back:?}");
        assert_eq!(pair.right.read(0, 10_000), sent[..10_000]);
        assert_eq!(pair.left.untagged().len(), 1);
    }
}

#[test]
fn an_unexpected_rendezvous_is_read_when_it_is_accepted_and_a_discarded_one_ends_for_its_sender() {
    let mut pair = Pair::new();
    let sent = payload(30_000);
    pair.left.write(0, &sent);
    pair.right.log.answer = Answer::Accept { buffer: pair.right.buffer(0, 30_000), transfer: Some(TRANSFER) };
    pair.left.rendezvous(3, 0, 30_000);
    pair.settle();
    let told = pair.right.told();
    let Event::Arrived(arrival) = told[0] else { panic!("{told:?}") };
    assert!(arrival.counted && !arrival.in_hand && arrival.header.length == 30_000);
    assert_eq!((data(&told[1]).target, data(&told[1]).error), (DataTarget::Transfer(TRANSFER), None));
    assert_eq!(pair.right.read(0, 30_000), sent);
    pair.right.log.answer = Answer::Discard;
    pair.left.rendezvous(3, 0, 30_000);
    pair.settle();
    assert_eq!(pair.right.told().len(), 1);
    assert_eq!(pair.left.untagged().len(), 2);
}

#[test]
fn an_empty_rendezvous_needs_no_read() {
    let mut pair = Pair::new();
    pair.right.log.answer = Answer::Accept { buffer: pair.right.buffer(0, 10), transfer: Some(TRANSFER) };
    pair.left.rendezvous(3, 0, 0);
    pair.settle();
    assert_eq!(data(&pair.right.told()[1]).length, 0);
    assert_eq!(pair.left.untagged().len(), 1);
}

#[test]
fn immediates_come_with_matched_and_unexpected_messages() {
    let mut pair = Pair::new();
    pair.right.add(1, pair.right.buffer(0, 8192), 0);
    for tag in [1, 2] {
        let message = Message::Eager { context: word(5), tag: Tag(tag), payload: b"x" };
        pair.left.send(&message, Some(0xDEAD_BEEF));
    }
    pair.settle();
    let told = pair.right.told();
    assert_eq!((matched(&told[0]).immediate, matched(&told[0]).released), (Some(0xDEAD_BEEF), true));
    let Event::Arrived(arrival) = told[1] else { panic!("{told:?}") };
    assert_eq!(arrival.header.immediate, Some(0xDEAD_BEEF));
}

#[test]
fn a_delete_takes_an_entry_out_and_one_too_late_says_so() {
    let mut pair = Pair::new();
    let kept = pair.right.add(1, pair.right.buffer(0, 8192), 0);
    let del = |handle| Command::Del { handle, signalled: true };
    assert_eq!(pair.right.device.submit(&[del(kept)]), Ok(1));
    pair.settle();
    assert_eq!(pair.right.told(), [Event::Released(kept)]);
    let matched_before = pair.right.add(2, pair.right.buffer(0, 8192), 0);
    pair.left.eager(2, b"x");
    pair.hca.run(100_000);
    assert_eq!(pair.right.device.submit(&[del(matched_before)]), Ok(1));
    pair.settle();
    let events = std::mem::take(&mut pair.right.log.events);
    let late = events.iter().find_map(|event| match event {
        Event::Operation(done) if done.operation == Operation::Del(matched_before) => Some(done.success),
        _ => None,
    });
    assert_eq!(late, Some(false));
    assert!(matches!(events.last(), Some(Event::Released(handle)) if *handle == matched_before));
    assert_eq!(pair.right.device.free(), (31, 64));
}

#[test]
fn commands_are_taken_while_there_are_tags_and_slots() {
    let mut pair = Pair::new();
    let add = |index| {
        let handle = TagHandle { index, generation: 1 };
        let (tag, ignore, buffer) = (Tag(1), tagmatch::ids::Ignore::NONE, pair.right.buffer(0, 8192));
        Command::Add { handle, tag, ignore, buffer, unexpected_count: 0, signalled: true }
    };
    let adds: Vec<Command> = (0..40).map(add).collect();
    let sync = Command::Sync { unexpected_count: 0, signalled: true };
    assert_eq!(pair.right.device.submit(&adds), Ok(31));
    assert_eq!(pair.right.device.submit(&[sync; 40]), Ok(33));
    assert_eq!(pair.right.device.free(), (0, 0));
    pair.settle();
    assert_eq!(pair.right.device.free(), (0, 64));
    // An ADD and its DEL in one batch, too.
    let del = |index| Command::Del { handle: TagHandle { index, generation: 1 }, signalled: true };
    assert_eq!(pair.right.device.submit(&(0..31).map(del).collect::<Vec<_>>()), Ok(31));
    pair.settle();
    assert_eq!(pair.right.device.submit(&[adds[0], del(0)]), Ok(2));
    pair.settle();
    assert_eq!(pair.right.device.free(), (31, 64));
}

#[test]
fn a_host_that_breaks_the_contract_fails_the_device_with_words() {
    let mut pair = Pair::new();
    let del = Command::Del { handle: TagHandle { index: 5, generation: 1 }, signalled: true };
    let error = pair.right.device.submit(&[del]).unwrap_err().to_string();
    assert!(error.contains("by the host: ") && error.contains("not in use"), "{error}");
    let mut pair = Pair::new();
    pair.right.log.answer = Answer::Accept { buffer: Buffer::new(64, 10), transfer: None };
    pair.left.eager(1, b"x");
    pair.settle();
    let told = pair.right.told();
    assert!(
        matches!(told.last(), Some(Event::DeviceFailed(error)) if error.to_string().contains("registered"))
    );
}

#[test]
fn nothing_is_written_for_an_entry_of_no_bytes() {
    let mut pair = Pair::new();
    let handle = pair.right.add(1, pair.right.buffer(0, 0), 0);
    pair.left.eager(1, b"");
    pair.settle();
    let told = pair.right.told();
    assert_eq!((matched(&told[0]).handle, matched(&told[0]).stage), (handle, MatchStage::Complete));
    pair.right.add(2, pair.right.buffer(0, 0), 0);
    pair.left.eager(2, b"beyond");
    pair.settle();
    assert_eq!(pair.right.read(0, 8), [0; 8]);
}

#[test]
fn sizes_that_make_no_sense_are_refused() {
    let hca = hca(HcaConfig::default());
    let device = Some(hca.name().to_owned());
    let open = |config| {
        let config = VerbsConfig { device: device.clone(), tag_matching: TagMatching::Required, ..config };
        VerbsDevice::open(config, HostMemory::registered()).unwrap_err().to_string()
    };
    let error = open(VerbsConfig { eager_limit: u32::MAX, ..config() });
    assert!(error.contains("4294967295 bytes"), "{error}");
    let error = open(VerbsConfig { spare_buffers: u32::MAX, ..config() });
    assert!(error.contains("must be at least 4294967"), "{error}");
}

#[test]
fn queue_pairs_that_would_try_for_ever_are_refused() {
    let hca = hca(HcaConfig::default());
    let open = |patience| {
        let config = VerbsConfig { device: Some(hca.name().to_owned()), patience, ..config() };
        VerbsDevice::open(config, HostMemory::registered())
    };
    let usual = Patience::default();
    for (patience, said) in [
        (Patience { retries: 7, ..usual }, "7 retries: at most 6"),
        (Patience { timeout: 0, ..usual }, "a timeout of 0: from 1 to 31"),
        (Patience { timeout: 32, ..usual }, "a timeout of 32: from 1 to 31"),
        (Patience { rnr_retries: 8, ..usual }, "8 retries where there is no receive: at most 7"),
        (Patience { rnr_timer: 32, ..usual }, "a timer of 32 where there is no receive: at most 31"),
    ] {
        let refused = open(patience).unwrap_err();
        assert!(matches!(refused, VerbsError::Caller(_)) && refused.to_string().contains(said), "{refused}");
    }
    assert!(open(Patience { retries: 6, timeout: 31, rnr_retries: 7, rnr_timer: 31 }).is_ok());
}

#[test]
fn messages_that_cannot_be_sent_are_refused_and_a_full_queue_says_so() {
    let mut pair = Pair::new();
    let long = payload(8193);
    let message = Message::Eager { context: word(1), tag: Tag(1), payload: &long };
    let refused = pair.left.device.send(PEER, &message, None, 0);
    assert_eq!(refused, Err(SendError::TooLong { length: 8193, limit: 8192 }));
    let nobody = tagmatch::ids::PeerId(1);
    let small = Message::Control(&[0, 1, 2]);
    assert_eq!(pair.left.device.send(nobody, &small, None, 0), Err(SendError::NoPath { peer: nobody }));
    assert_eq!(pair.left.device.send(PEER, &Message::Control(&[3]), None, 0), Err(SendError::Malformed));
    let mut posted = 0;
    while pair.left.device.send(PEER, &small, None, 0) == Ok(Sending::Posted) {
        posted += 1;
    }
    assert_eq!(posted, 12);
    pair.settle();
    assert_eq!(pair.right.untagged().len(), 12);
    assert_eq!(pair.left.device.send(PEER, &small, None, 0), Ok(Sending::Posted));
}

#[test]
fn a_payload_in_registered_memory_is_sent_from_there() {
    let mut pair = Pair::new();
    pair.right.add(1, pair.right.buffer(0, 8192), 0);
    let sent = payload(8000);
    pair.left.write(500, &sent);
    let message =
        Message::EagerRegistered { context: word(1), tag: Tag(1), payload: pair.left.buffer(500, 8000) };
    pair.left.send(&message, None);
    pair.settle();
    assert_eq!(pair.right.read(0, 8000), sent);
}

#[test]
fn a_device_without_tag_matching_tells_every_message_as_an_arrival() {
    let off = HcaConfig { log_tag_list: 0, ..HcaConfig::default() };
    let mut pair = Pair::with(off, config(), config());
    assert_eq!(pair.right.device.refusal(), Some(&TagMatchingRefusal::NotReported));
    assert_eq!(pair.right.device.capabilities().tags, 0);
    pair.right.log.answer = Answer::Accept { buffer: pair.right.buffer(0, 100), transfer: None };
    pair.left.eager(4, b"plain");
    pair.settle();
    let told = pair.right.told();
    let Event::Arrived(arrival) = told[0] else { panic!("{told:?}") };
    assert!(arrival.in_hand && !arrival.counted);
    assert_eq!(pair.right.read(0, 5), b"plain");
    pair.right.log.answer = Answer::Accept { buffer: pair.right.buffer(0, 60_000), transfer: Some(TRANSFER) };
    pair.left.write(0, &payload(60_000));
    pair.left.rendezvous(4, 0, 60_000);
    pair.settle();
    assert_eq!(pair.right.read(0, 60_000), payload(60_000));
    assert_eq!(pair.left.untagged().len(), 1);
    // More messages than there are receives, one after the other.
    pair.right.log.answer = Answer::Discard;
    for _ in 0..200 {
        pair.left.eager(4, b"x");
        pair.hca.run(1000);
        pair.left.poll();
        pair.right.poll();
    }
    pair.settle();
    assert_eq!(pair.right.told().iter().filter(|event| matches!(event, Event::Arrived(_))).count(), 201);
}

#[test]
fn where_tag_matching_cannot_be_had_the_reason_is_told_or_opening_fails() {
    let ethernet = hca(HcaConfig::default().on_ethernet());
    let side = Side::new(&ethernet, config());
    let reason = side.device.refusal().unwrap();
    assert!(matches!(reason, TagMatchingRefusal::RoCe(_)), "{reason:?}");
    let line = reason.to_string();
    assert!(
        line.contains("ibv_create_srq_ex") && line.contains("InfiniBand") && !line.contains('\n'),
        "{line}"
    );
    let required = VerbsConfig {
        device: Some(ethernet.name().to_owned()),
        tag_matching: TagMatching::Required,
        ..config()
    };
    let error = VerbsDevice::open(required, HostMemory::registered()).unwrap_err();
    assert!(matches!(error, VerbsError::NoTagMatching { .. }), "{error}");
    let hca = hca(HcaConfig::default());
    let off = Side::new(&hca, VerbsConfig { tag_matching: TagMatching::Off, ..config() });
    assert_eq!(off.device.refusal(), Some(&TagMatchingRefusal::NotWanted));
}

#[test]
fn a_list_longer_than_the_driver_has_command_slots_for_is_made_with_fewer_of_them() {
    // 256 bytes for each slot, of the 32,768 blocks of 64 that a send queue may have.
    for tags in [4096, 12_000, 32_767] {
        let hca_config = HcaConfig { log_tag_list: 15, ..HcaConfig::default() };
        let required = VerbsConfig { tags, tag_matching: TagMatching::Required, ..config() };
        let mut pair = Pair::with(hca_config, config(), required);
        let capabilities = pair.right.device.capabilities();
        assert_eq!((capabilities.tags, capabilities.command_slots), (tags, 8192));
        pair.right.add(5, pair.right.buffer(0, 8192), 0);
        pair.settle();
        pair.left.eager(5, b"abc");
        pair.settle();
        let told = pair.right.told();
        assert!(told.iter().any(|event| matches!(event, Event::Matched(_))), "{told:?}");
        assert_eq!(pair.right.device.free(), (tags as usize, 8192));
    }
}

#[test]
fn devices_and_ports_that_are_not_there_are_refused_with_what_is() {
    let hca = hca(HcaConfig::default());
    let open = |config| VerbsDevice::open(config, HostMemory::registered()).unwrap_err().to_string();
    let error = open(VerbsConfig { device: Some("mlx5_999".into()), ..config() });
    assert!(error.contains("mlx5_999") && error.contains(hca.name()), "{error}");
    let device = Some(hca.name().to_owned());
    let error = open(VerbsConfig { device, port: Some(2), ..config() });
    assert!(error.contains("no port 2") && error.contains("1 to 1"), "{error}");
}

#[test]
fn b41_a_gid_that_is_not_there_is_refused_when_the_device_is_opened_and_one_that_works_is_found() {
    let hca = hca(HcaConfig::default().on_ethernet());
    let open = |gid_index| {
        let device = Some(hca.name().to_owned());
        VerbsDevice::open(VerbsConfig { device, gid_index, ..config() }, HostMemory::registered())
    };
    for index in [1, 7, 255] {
        let error = open(Some(index)).unwrap_err().to_string();
        let wanted = format!("port 1 of {} has no GID at index {index}, of a table of ", hca.name());
        assert!(error.starts_with(&wanted) && !error.contains('\n'), "{error}");
        assert_eq!(hca.with(|hca| hca.counts()), Counts::default(), "what was begun is given back");
    }
    for index in [None, Some(0)] {
        let mut device = open(index).unwrap();
        assert_eq!(device.prepare(PEER).unwrap().gid, Some(HcaConfig::default().on_ethernet().gid));
    }
    // fe80::1:2:3:4, which no interface here has: as what is left of one that was taken away.
    let mut stale = HcaConfig::default().on_ethernet();
    stale.gid = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 3, 0, 4];
    let hca = self::hca(stale);
    let device = Some(hca.name().to_owned());
    let error = VerbsDevice::open(VerbsConfig { device, ..config() }, HostMemory::registered()).unwrap_err();
    let wanted = format!("no usable GID: port 1 of {} has none that is an address", hca.name());
    assert!(error.to_string().starts_with(&wanted), "{error}");
    assert_eq!(hca.with(|hca| hca.counts()), Counts::default(), "what was begun is given back");
}

#[test]
fn the_device_s_objects_are_gone_with_it() {
    let hca = hca(HcaConfig::default());
    for _ in 0..3 {
        let mut left = Side::new(&hca, config());
        let mut right = Side::new(&hca, config());
        let info = left.device.prepare(PEER).unwrap();
        let other = right.device.prepare(PEER).unwrap();
        right.device.connect(PEER, &info).unwrap();
        left.device.connect(PEER, &other).unwrap();
        left.add(1, left.buffer(0, 8192), 0);
        // Two for each side, and one inside each TM-SRQ.
        assert_eq!(hca.with(|hca| hca.counts().qps), 6);
        drop((left, right));
        assert_eq!(hca.with(|hca| hca.counts()), Counts::default());
    }
}

#[test]
fn a_held_message_is_placed_when_asked_outside_of_commands_and_nothing_follows() {
    let mut pair = Pair::new();
    pair.left.eager(1, b"held");
    pair.left.rendezvous(2, 0, 100);
    pair.settle();
    let told = pair.right.told();
    let (Event::Arrived(eager), Event::Arrived(request)) = (&told[0], &told[1]) else { panic!("{told:?}") };
    let buffer = pair.right.buffer(0, 3);
    assert!(!pair.right.device.place_held(eager.message, &Buffer::new(64, 3)), "no memory of the device's");
    assert!(pair.right.device.place_held(eager.message, &buffer));
    assert!(!pair.right.device.place_held(eager.message, &buffer), "it is forgotten");
    assert!(!pair.right.device.place_held(request.message, &buffer), "its payload is not here");
    assert_eq!(pair.right.read(0, 4), b"hel\0");
    pair.settle();
    assert_eq!(pair.right.told(), []);
    assert_eq!(pair.right.device.messages_held(), 1);
}
