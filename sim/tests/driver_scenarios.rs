//! Scenarios of tag matching with the real driver: the engine over libmlx5 on the simulated HCA. What the soft device
//! shows in the library's own tests must hold here as well.
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are outside test functions")]

#[path = "driver/desk.rs"]
mod desk;

use desk::{Desk, LONG, NIC, PEER, PLAIN, eager, exact, peer};
use tagmatch::device::soft::Switches;
use tagmatch::device::soft::switches::HandBack;
use tagmatch::device::verbs::{
    HostMemory, TagMatching, TagMatchingRefusal, VerbsConfig, VerbsDevice, VerbsError,
};
use tagmatch::engine::{CancelOutcome, Config, End};
use tagmatch::ids::DeviceId;
use tagmatch_sim::hca::{Counts, HcaConfig};
use tagmatch_sim::hca_abi::{Drive, HcaControl};
use tagmatch_sim::world::scope::{Message, Path, any, from};

tagmatch_sim::hca_hooks!();

fn nic() -> Path {
    Path { bounces: 4, ..Path::matching(4) }
}

/// When a receive is posted.
#[derive(Clone, Copy, Debug)]
enum When {
    Before,
    During,
    After,
}

/// A message longer than its receive, and one behind it.
fn cut(paths: &[Path], message: Message, when: When, length: u64) -> Option<DeviceId> {
    let mut desk = Desk::new(paths);
    let path = usize::from(message.path);
    desk.run();
    if matches!(when, When::Before) {
        desk.post(0, exact(5), length);
        desk.run();
    }
    desk.send_as(1, message);
    desk.send(2, path, 5, 30);
    match when {
        When::Before => {}
        When::During => {
            desk.accept(path);
            desk.poll();
            desk.post(0, exact(5), length);
        }
        When::After => {
            desk.run();
            desk.post(0, exact(5), length);
        }
    }
    desk.run();
    desk.post(1, exact(5), LONG);
    desk.run();
    let received = desk.assert_holds(0, length, 1);
    assert_eq!(received.is_truncated(), length < message.length, "{when:?}, {length} of {message:?}");
    desk.assert_holds(1, LONG, 2);
    desk.close();
    received.matched_by
}

fn shapes(path: usize) -> [Message; 3] {
    // In one packet, in three, and read by whoever takes it.
    [eager(path, 5, 100), eager(path, 5, 600), eager(path, 5, 0).rendezvous(1000)]
}

#[test]
fn b22_a_message_longer_than_its_receive_is_cut_at_its_end_and_the_next_one_is_whole() {
    for (paths, path) in [(vec![nic()], NIC), (vec![nic(), Path::plain()], PLAIN), (vec![Path::plain()], 0)] {
        for message in shapes(path) {
            for when in [When::Before, When::During, When::After] {
                for length in [0, 64, message.length - 1, message.length, message.length + 1] {
                    cut(&paths, message, when, length);
                }
            }
        }
    }
}

#[test]
fn b22_through_the_nic_short_receives_are_matched_by_it_in_bounce_buffers() {
    for message in shapes(NIC) {
        assert_eq!(cut(&[nic()], message, When::Before, 64), Some(DeviceId(0)), "{message:?}");
    }
}

#[test]
fn b22_a_rendezvous_that_is_handed_back_in_any_way_is_cut_and_finished_by_software() {
    for hand_back in [HandBack::One, HandBack::ThenExpected, HandBack::ThenCanceled] {
        for rendezvous in [true, false] {
            let switches = Switches { hand_back, ..Switches::default() };
            let nic = Path { rendezvous, switches, ..nic() };
            for length in [0, 20, 64, 999] {
                let message = eager(NIC, 5, 0).rendezvous(1000);
                assert_eq!(cut(&[nic], message, When::Before, length), Some(DeviceId(0)));
            }
        }
    }
}

#[test]
fn b23_1_after_three_unexpected_messages_the_next_receive_is_matched_by_the_nic() {
    let mut desk = Desk::new(&[nic()]);
    for number in 1..=3 {
        desk.send(number, NIC, number.into(), 10);
    }
    desk.run();
    assert_eq!((desk.engine.depths(), desk.hardware_phase()), ((0, 3), 3));
    desk.expect_match(0, 4);
    assert_eq!(desk.engine.statistics().sync_requests, 0, "the count went with the ADD");
    desk.close();
}

#[test]
fn b23_2_a_message_of_several_packets_counts_once() {
    let mut desk = Desk::new(&[nic()]);
    desk.send_as(1, eager(NIC, 8, 600));
    desk.accept(NIC);
    assert_eq!(desk.hardware_phase(), 1, "at its first packet");
    desk.run();
    assert_eq!((desk.hardware_phase(), desk.engine.depths()), (1, (0, 1)));
    desk.expect_match(0, 2);
    desk.close();
}

#[test]
fn b23_3_a_receive_added_with_a_count_that_is_behind_is_not_matched_by_the_nic() {
    let mut desk = Desk::new(&[nic()]);
    for number in 1..=3 {
        desk.send(number, NIC, number.into(), 10);
        desk.accept(NIC);
    }
    desk.post(0, exact(7), LONG);
    desk.submit();
    desk.command(NIC);
    desk.send(4, NIC, 7, 10);
    desk.accept(NIC);
    assert_eq!(desk.hardware_phase(), 4, "it was unexpected");
    desk.run();
    assert_eq!(desk.assert_holds(0, LONG, 4).matched_by, None);
    assert_eq!(desk.engine.statistics().used_by_own_device, 1);
    desk.expect_match(1, 5);
    desk.close();
}

#[test]
fn b23_4_after_2_to_the_17_and_5_unexpected_messages_the_nic_still_matches() {
    const MESSAGES: u32 = (1 << 17) + 5;
    let mut desk = Desk::new(&[nic()]);
    let message = eager(NIC, 3, 8);
    for number in 0..MESSAGES {
        desk.send_as(number % 1000, message);
        if number % 30 == 0 || number == MESSAGES - 1 {
            desk.run();
            while let Some((claim, _)) = desk.engine.claim(&exact(3)) {
                assert!(desk.engine.discard_claimed(claim));
            }
        }
    }
    desk.run();
    assert_eq!((desk.engine.depths(), desk.hardware_phase()), ((0, 0), 5));
    desk.expect_match(0, 1001);
    desk.expect_match(1, 1002);
    let syncs = desk.engine.statistics().syncs;
    // The owner submits after each 30 messages, so that each is a few later than it could be.
    assert!((7..=16).contains(&syncs), "{syncs} SYNCs: one in 16,384 messages, and no loop after the wraps");
    desk.close();
}

#[test]
fn b23_4_receives_are_matched_by_the_nic_right_across_the_wrap_of_the_counters() {
    let mut desk = Desk::with(&[nic()], Config { counters_start: u16::MAX - 2, ..Config::default() });
    for round in 0..6 {
        desk.send(100 + round, NIC, 3, 8);
        desk.run();
        desk.expect_match(round, round);
    }
    assert_eq!(desk.hardware_phase(), 3);
    desk.close();
}

#[test]
fn b23_5_a_sync_makes_receives_active_that_were_added_behind_the_count() {
    let mut desk = Desk::new(&[nic()]);
    desk.run();
    desk.send(1, NIC, 1, 8);
    desk.accept(NIC);
    desk.post(0, exact(7), LONG);
    desk.run();
    assert_eq!(desk.engine.statistics().syncs, 1, "its entry waited for the count, and no ADD was coming");
    desk.send(2, NIC, 7, 8);
    desk.run();
    assert!(desk.assert_holds(0, LONG, 2).matched_by.is_some());
    desk.expect_match(1, 3);
    assert_eq!(desk.engine.statistics().syncs, 1, "and it is not repeated");
    desk.close();
}

/// Receive 0 takes anything of one peer, so that no NIC can have it; receive 1 is behind it.
fn wildcard_before_exact() -> Desk {
    let mut desk = Desk::new(&[nic(), Path::plain()]);
    desk.post(0, from(PEER, 0, u64::MAX), LONG);
    desk.post(1, exact(5), LONG);
    desk.run();
    assert_eq!(desk.listed(), 0, "an older receive that overlaps is in software");
    desk
}

#[test]
fn b25_1_and_2_a_receive_in_software_holds_back_what_it_overlaps_and_no_longer_than_that() {
    let mut desk = wildcard_before_exact();
    desk.send(0, NIC, 5, 8);
    desk.send(1, NIC, 5, 8);
    desk.run();
    desk.assert_holds(0, LONG, 0);
    desk.assert_holds(1, LONG, 1);
    let adds = desk.engine.statistics().adds;
    desk.expect_match(2, 2);
    assert_eq!(desk.engine.statistics().adds, adds + 1, "offload has resumed");
    desk.close();
}

#[test]
fn b25_3_cancelling_the_receive_in_software_lets_the_others_go_down() {
    let mut desk = wildcard_before_exact();
    desk.cancel(0);
    desk.run();
    assert_eq!((desk.end(0), desk.listed()), (End::Cancelled, 1));
    desk.send(0, NIC, 5, 8);
    desk.run();
    assert!(desk.assert_holds(1, LONG, 0).matched_by.is_some());
    desk.close();
}

#[test]
fn b25_4_receives_that_no_message_fits_both_do_not_hold_back_each_other() {
    let mut desk = Desk::new(&[nic(), Path::plain()]);
    desk.post(0, from(PEER, 4, 0), LONG);
    desk.post(1, exact(5), LONG);
    desk.run();
    assert_eq!(desk.listed(), 1);
    desk.send(5, NIC, 5, 8);
    desk.send(4, NIC, 4, 8);
    desk.run();
    desk.assert_holds(0, LONG, 4);
    assert!(desk.assert_holds(1, LONG, 5).matched_by.is_some());
    desk.close();
}

#[test]
fn b25_a_message_of_another_path_takes_its_receive_back_and_offload_goes_on() {
    // Every time, where nothing is learned of who served the last ones.
    let config = Config { kept_from: 0, ..Config::default() };
    let mut desk = Desk::with(&[nic(), Path::plain()], config);
    for _ in 0..100 {
        desk.post(0, exact(7), LONG);
        desk.run();
        assert_eq!(desk.listed(), 1);
        desk.send(0, PLAIN, 7, 8);
        desk.run();
        assert_eq!(desk.assert_holds(0, LONG, 0).source, peer(PLAIN));
        desk.expect_match(1, 1);
    }
    assert_eq!(desk.engine.statistics().taken_back, 100);
    desk.close();
}

#[test]
fn b26_ten_thousand_posts_and_cancels_against_a_list_of_4_give_back_all_tags_and_slots() {
    let mut desk = Desk::new(&[nic().with_operations(8)]);
    for _ in 0..10_000 {
        for receive in 0..4 {
            desk.post(receive, exact(receive.into()), LONG);
        }
        desk.submit();
        for receive in 0..4 {
            assert_ne!(desk.cancel(receive), CancelOutcome::TooLate);
        }
        desk.run();
        assert!((0..4).all(|receive| desk.end(receive) == End::Cancelled));
    }
    let statistics = desk.engine.statistics();
    assert!(statistics.adds >= 10_000 && statistics.adds == statistics.dels, "{statistics:?}");
    assert_eq!(desk.engine.entries(DeviceId(0)), (0, 4));
    assert_eq!(desk.cards[NIC].receiver().free(), (4, 8));

    for receive in 1..=6 {
        desk.post(receive, exact(receive.into()), LONG);
    }
    desk.run();
    assert!(desk.listed() <= 4, "the fifth and the sixth wait in software");
    for number in (1..=6).rev() {
        desk.send(number, NIC, number.into(), 8);
    }
    desk.run();
    for number in 1..=6 {
        desk.assert_holds(number, LONG, number);
    }
    assert_eq!(desk.cards[NIC].receiver().free(), (4, 8));
    desk.close();
}

#[test]
fn b26_one_buffer_in_five_receives_is_in_the_nic_once_at_a_time_and_they_complete_in_order() {
    let mut desk = Desk::new(&[nic().with_operations(8)]);
    for _ in 0..2 {
        desk.post_into(9, exact(1), 0, LONG);
        desk.run();
        desk.cancel(9);
        desk.post_into(8, exact(1), 0, LONG);
        desk.run();
        desk.cancel(8);
        desk.run();
        assert_eq!((desk.end(9), desk.end(8)), (End::Cancelled, End::Cancelled));
    }
    for receive in 0..5 {
        desk.post_into(receive, exact(1), 0, LONG);
    }
    for number in 0..5 {
        desk.run();
        assert_eq!(desk.listed(), 1, "before message {number}");
        desk.send(number, NIC, 1, 20 + u64::from(number));
        desk.run();
        desk.assert_holds(number, LONG, number);
        assert!((number + 1..5).all(|later| desk.is_open(later)), "in order");
    }
    desk.close();
}

/// One script, and what each receive got: the message, and whether it was cut; and whether the NIC matched any of them.
fn script(paths: &[Path]) -> (Vec<(u32, bool)>, bool) {
    let mut desk = Desk::new(paths);
    desk.post(1, exact(1), LONG);
    desk.post(2, any(0, u64::MAX), 64);
    desk.post(3, from(PEER, 3, 0), 64);
    desk.run();
    desk.send_as(1, eager(0, 3, 0).rendezvous(900));
    desk.send_as(2, eager(0, 9, 20));
    desk.send_as(3, eager(0, 1, 600));
    desk.send_as(4, eager(0, 3, 30));
    desk.post(4, exact(9), 64);
    desk.post(5, exact(9), 64);
    desk.run();
    desk.cancel(5);
    desk.run();
    assert_eq!(desk.end(5), End::Cancelled);
    let got = [1, 2, 3, 4].map(|receive| desk.received(receive));
    let is_offloaded = got.iter().any(|received| received.matched_by.is_some());
    let got = got.iter().map(|received| (received.app_ctx, received.is_truncated())).collect();
    desk.close();
    (got, is_offloaded)
}

#[test]
fn b27_the_same_script_gives_the_same_with_offload_and_without() {
    let (without, is_offloaded) = script(&[Path::plain()]);
    assert!(!is_offloaded, "there is nothing that could");
    assert_eq!(script(&[nic()]), (without.clone(), true));
    assert_eq!(script(&[Path { bounces: 1, ..Path::matching(1) }]), (without, true));
}

#[test]
fn b27_a_device_that_cannot_match_is_used_without_and_one_line_says_why_or_it_is_refused_cleanly() {
    let without = HcaConfig { log_tag_list: 0, ..HcaConfig::default() };
    let roce = HcaConfig::default().on_ethernet();
    for (config, is_roce) in [(without, false), (roce, true)] {
        let hca = HcaControl::new(config, Drive::Steps).unwrap();
        let open = |tag_matching| {
            let config =
                VerbsConfig { device: Some(hca.name().to_owned()), tag_matching, ..VerbsConfig::default() };
            VerbsDevice::open(config, HostMemory::registered())
        };
        let device = open(TagMatching::Wanted).unwrap();
        let refusal = device.refusal().unwrap();
        assert_eq!(matches!(refusal, TagMatchingRefusal::RoCe(_)), is_roce, "{refusal}");
        assert!(!refusal.to_string().contains('\n'));
        assert_eq!(tagmatch::device::Device::capabilities(&device).tags, 0);
        let off = open(TagMatching::Off).unwrap();
        let capabilities = tagmatch::device::Device::capabilities(&off);
        assert_eq!(
            capabilities,
            tagmatch::device::Device::capabilities(&device),
            "limits do not change with the wish"
        );
        drop((device, off));
        assert!(matches!(open(TagMatching::Required), Err(VerbsError::NoTagMatching { .. })));
        assert_eq!(hca.with(|hca| hca.counts()), Counts::default(), "nothing is left of it");
    }
}

/// A list takes a queue pair for its commands, and the card has two.
#[test]
fn b27_a_list_that_there_is_no_room_for_is_done_without_and_the_errno_is_told_or_it_is_refused_cleanly() {
    let mut config = HcaConfig::default();
    config.limits.qps = 2;
    let hca = HcaControl::new(config, Drive::Steps).unwrap();
    let open = |tag_matching| {
        let config =
            VerbsConfig { device: Some(hca.name().to_owned()), tag_matching, ..VerbsConfig::default() };
        VerbsDevice::open(config, HostMemory::registered())
    };
    let others = [open(TagMatching::Required).unwrap(), open(TagMatching::Required).unwrap()];
    let before = hca.with(|hca| hca.counts());
    let without = open(TagMatching::Wanted).unwrap();
    let refusal = without.refusal().unwrap();
    assert!(matches!(refusal, TagMatchingRefusal::Refused(VerbsError::Call { .. })), "{refusal:?}");
    let line = refusal.to_string();
    assert!(
        line.contains("ibv_create_srq_ex") && line.contains("os error 12") && !line.contains('\n'),
        "{line}"
    );
    assert_eq!(tagmatch::device::Device::capabilities(&without).tags, 0);
    drop(without);
    let error = open(TagMatching::Required).unwrap_err();
    assert!(
        matches!(error, VerbsError::NoTagMatching { .. }) && error.to_string().contains("os error 12"),
        "{error}"
    );
    assert_eq!(hca.with(|hca| hca.counts()), before, "nothing is left of either");
    drop(others);
    let device = open(TagMatching::Required);
    assert!(device.is_ok_and(|device| device.refusal().is_none()), "once there is room, it is had");
}
