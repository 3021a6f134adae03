//! Classes and modes: when they come and go, and that nothing depends on it.

use super::{Config, Matcher, Stay, found, matcher, message, receive, taken};
use crate::ids::{GroupId, Ignore, PeerId, Source};
use crate::matching::{Arrived, Posted, SourceKind};

/// A receive that ignores one bit.
fn ignoring(tag: u64, bit: u32) -> super::Pattern {
    receive(tag, 1 << bit, Source::Any)
}

#[test]
fn short_lists_make_no_class() {
    let mut matcher = matcher();
    for tag in 0..16 {
        matcher.post(receive(tag, 0, Source::Any), Stay::Once, tag);
        matcher.arrive(message(100 + tag, 0), tag);
    }
    assert_eq!(found(matcher.post(receive(103, 0, Source::Any), Stay::Once, 0)), Some(3));
    let statistics = matcher.statistics();
    assert_eq!((statistics.posted_classes, statistics.unexpected_classes), (0, 0));
}

#[test]
fn ids_survive_the_change_from_dense_to_indexed_and_back() {
    let mut matcher = matcher();
    let mut ids = Vec::new();
    for tag in 0..40 {
        let Posted::Queued(id) = matcher.post(receive(tag, 0, Source::Any), Stay::Once, tag) else {
            panic!()
        };
        ids.push(id);
    }
    matcher.check();
    for tag in (0..40).rev() {
        assert_eq!(matcher.take_posted(ids[tag as usize]).map(|(_, value)| value), Some(tag));
        assert_eq!(matcher.take_posted(ids[tag as usize]), None);
    }
    assert_eq!(matcher.posted_len(), 0);
}

#[test]
fn bystanders_in_an_index_leave_young_traffic_dense() {
    let mut matcher = matcher();
    for tag in 1..129 {
        matcher.post(receive(tag << 32, 0xff, Source::Any), Stay::Once, tag);
    }
    for round in 0..1000 {
        matcher.post(receive(round, 0, Source::Any), Stay::Once, 1000 + round);
        assert_eq!(taken(matcher.arrive(message(round, 0), 0)), Some(1000 + round));
    }
    matcher.check();
    assert_eq!(matcher.statistics().posted_classes, 1, "exact receives are no longer indexed");
    assert_eq!(taken(matcher.arrive(message(5 << 32 | 3, 0), 0)), Some(5));
}

#[test]
fn more_than_sixteen_posted_classes_stay_exact() {
    let mut matcher = matcher();
    for bit in 0..40 {
        for tag in 0..4 {
            matcher.post(ignoring(tag << 40, bit), Stay::Once, u64::from(bit) * 4 + tag);
        }
    }
    matcher.check();
    assert_eq!(matcher.statistics().posted_classes, 16);
    for bit in 0..40 {
        for tag in 0..4 {
            assert_eq!(taken(matcher.arrive(message(tag << 40, 0), 0)), Some(bit * 4 + tag));
        }
    }
    assert_eq!(taken(matcher.arrive(message(0, 0), 0)), None);
}

#[test]
fn more_than_sixteen_masks_searching_unexpected_messages_stay_exact() {
    let mut matcher = matcher();
    for tag in 0..200 {
        matcher.arrive(message(tag << 40, 0), tag);
    }
    for round in 0..4 {
        for bit in 0..40 {
            let tag = u64::from(round * 40 + bit);
            let first = matcher.first_unexpected(&ignoring(tag << 40, bit)).expect("it waits");
            assert_eq!(matcher.take_unexpected(first).map(|(_, value)| value), Some(tag));
        }
        matcher.check();
    }
    assert!(matcher.statistics().unexpected_classes <= 16);
}

#[test]
fn class_that_no_receive_searches_for_long_is_dropped() {
    let mut matcher = matcher();
    for tag in 0..100 {
        matcher.arrive(message(tag, 0), tag);
    }
    matcher.first_unexpected(&ignoring(0, 50));
    matcher.first_unexpected(&ignoring(0, 51));
    assert_eq!(matcher.statistics().unexpected_classes, 2);
    for _ in 0..6000 {
        matcher.first_unexpected(&ignoring(0, 51));
    }
    assert_eq!(matcher.statistics().unexpected_classes, 1);
    assert!(matcher.first_unexpected(&ignoring(7, 50)).is_some());
    matcher.check();
}

#[test]
fn declared_class_is_not_built_again_and_not_dropped() {
    let mut matcher = matcher();
    assert!(matcher.declare(Ignore(1), SourceKind::Any));
    for tag in 0..100 {
        matcher.arrive(message(tag, 0), tag);
    }
    for _ in 0..6000 {
        matcher.first_unexpected(&ignoring(0, 51));
    }
    assert_eq!(matcher.statistics().unexpected_class_builds, 2);
    assert!(matcher.first_unexpected(&receive(8, 1, Source::Any)).is_some());
    assert_eq!(matcher.statistics().unexpected_class_builds, 2);
    assert!((0..20).any(|bit| !matcher.declare(Ignore(2 << bit), SourceKind::Any)), "declared without end");
}

#[test]
fn first_use_of_a_mask_scans_a_long_list_once() {
    let mut matcher = matcher();
    for tag in 0..10_000 {
        matcher.arrive(message(tag, 0), tag);
    }
    for tag in 0..100 {
        assert!(matcher.first_unexpected(&receive(tag, 0, Source::Any)).is_some());
    }
    assert_eq!(matcher.statistics().entries_scanned, 10_000);
}

/// Slots used again lie in memory in another order than that of age.
#[test]
fn class_built_over_slots_used_again_has_each_key_in_order_of_age() {
    for keys in [1, 2, 32, 1024] {
        let mut matcher = matcher();
        let mut waiting = std::collections::VecDeque::new();
        for tag in 0..5000 {
            matcher.arrive(message(tag, 0), tag);
            if tag % 3 != 0 {
                waiting.push_back(tag);
            }
        }
        for tag in (0..5000).step_by(3) {
            assert_eq!(found(matcher.post(receive(tag, 0, Source::Any), Stay::Once, 0)), Some(tag));
        }
        for tag in (5000..7000).map(|number| number * 7 % 4096 + 5000) {
            matcher.arrive(message(tag, 0), tag);
            waiting.push_back(tag);
        }
        for class in 0..6 {
            let key = |tag| tag & (keys - 1) << class;
            let first = waiting.iter().find(|tag| key(**tag) == 0).copied();
            let wanted = receive(0, !((keys - 1) << class), Source::Any);
            assert!(matcher.first_unexpected(&wanted).is_some() == first.is_some());
            matcher.check();
        }
        let wanted = receive(0, !(keys - 1), Source::Any);
        for tag in waiting.iter().filter(|tag| **tag & (keys - 1) == 0) {
            assert_eq!(found(matcher.post(wanted, Stay::Once, 0)), Some(*tag));
        }
        matcher.check();
    }
}

#[test]
fn receive_that_stays_takes_message_after_message_at_its_place() {
    for depth in [1, 40] {
        let mut matcher = matcher();
        for tag in 0..depth {
            matcher.post(receive(1000 + tag, 0, Source::Any), Stay::Once, tag);
        }
        let stays = match matcher.post(receive(0, u64::MAX, Source::Any), Stay::Posted, 500) {
            Posted::Queued(id) => id,
            Posted::Matched { .. } => panic!("nothing waits"),
        };
        matcher.post(receive(7, 0, Source::Any), Stay::Once, 600);
        for _ in 0..50 {
            assert_eq!(matcher.arrive(message(7, 1), 0), Arrived::Matched { receive: stays, value: 500 });
        }
        assert_eq!(taken(matcher.arrive(message(1000, 1), 0)), Some(0), "an older receive is first");
        assert!(matcher.take_posted(stays).is_some());
        assert_eq!(taken(matcher.arrive(message(7, 1), 0)), Some(600));
    }
}

#[test]
fn joining_a_group_lets_waiting_messages_fit_and_keeps_their_order() {
    for depth in [0, 100] {
        let mut matcher = matcher();
        for tag in 0..depth {
            matcher.arrive(message(1000 + tag, 3), tag);
            matcher.post(receive(5000 + tag, 0, Source::Any), Stay::Once, tag);
        }
        let of_group = receive(0, u64::MAX, Source::Group(GroupId(9)));
        matcher.first_unexpected(&of_group);
        matcher.arrive(message(1, 4), 701);
        matcher.arrive(message(2, 5), 702);
        matcher.arrive(message(3, 4), 703);
        assert_eq!(found(matcher.post(of_group, Stay::Once, 801)), None);
        let mut matches = Vec::new();
        matcher.join_group(PeerId(4), GroupId(9), &mut |m| matches.push((m.value, m.message_value)));
        assert_eq!(matches, [(801, 701)]);
        matcher.join_group(PeerId(5), GroupId(9), &mut |_| panic!("no receive is left"));
        assert_eq!(found(matcher.post(of_group, Stay::Once, 802)), Some(702), "first come, first served");
        matcher.leave_group(PeerId(4));
        assert_eq!(found(matcher.post(of_group, Stay::Once, 803)), None);
        matcher.check();
    }
}

#[test]
fn million_messages_of_one_key_cost_other_keys_nothing_and_leave_in_order() {
    let mut matcher: Matcher<u64, u64> = Matcher::new(Config::default());
    for value in 0..1_000_000 {
        matcher.arrive(message(1, 0), value);
    }
    matcher.arrive(message(2, 0), 5);
    assert_eq!(found(matcher.post(receive(2, 0, Source::Any), Stay::Once, 0)), Some(5));
    for value in 0..1_000_000 {
        assert_eq!(found(matcher.post(receive(1, 0, Source::Any), Stay::Once, 0)), Some(value));
    }
}

#[test]
fn an_empty_matcher_is_small_and_allocates_nothing() {
    let memory = matcher().memory_bytes();
    assert!(memory.posted < 1024 && memory.unexpected < 1024, "{memory:?}");
}

#[test]
fn a_million_entries_keep_to_their_budget() {
    let mut matcher = matcher();
    for tag in 0..1_000_000 {
        matcher.post(receive(tag, 1 << 32, Source::Any), Stay::Once, tag);
        matcher.arrive(message(1 << 63 | tag, 0), tag);
    }
    for classes in 1..=5 {
        matcher.first_unexpected(&ignoring(0, 31 + classes));
        let memory = matcher.memory_bytes();
        assert!(memory.posted <= 96_000_000, "{memory:?}");
        assert!(memory.unexpected <= 80_000_000 + 16_000_000 * classes as usize, "{memory:?}");
    }
}
