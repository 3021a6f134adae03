//! The overlap index against a scan, and the phase against its rules.

use super::overlap::{CLASSES_MAX, InTheWay, Overlaps};
use super::phase::{Phase, Stood};
use crate::ids::{DeviceId, GroupId, Ignore, PeerId, Source, Tag, TagHandle};
use crate::matching::Pattern;
use crate::seam::Operation;

/// A small generator: the same numbers on every machine.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % bound
    }
}

fn overlaps(a: &Pattern, b: &Pattern, groups: &[Option<GroupId>]) -> bool {
    let group = |peer: PeerId| groups[peer.0 as usize];
    a.overlaps_tag(b)
        && match (a.source, b.source) {
            (Source::Any, _) | (_, Source::Any) => true,
            (Source::Peer(a), Source::Peer(b)) => a == b,
            (Source::Group(a), Source::Group(b)) => a == b,
            (Source::Peer(peer), Source::Group(of)) | (Source::Group(of), Source::Peer(peer)) => {
                group(peer) == Some(of)
            }
        }
}

fn pattern(numbers: &mut Numbers, masks: &[u64]) -> Pattern {
    let source = match numbers.below(6) {
        0 | 1 => Source::Any,
        2 => Source::Group(GroupId(u32::try_from(numbers.below(2)).unwrap())),
        _ => Source::Peer(PeerId(u32::try_from(numbers.below(4)).unwrap())),
    };
    let ignore = masks[usize::try_from(numbers.below(masks.len() as u64)).unwrap()];
    Pattern { tag: Tag(numbers.below(16)), ignore: Ignore(ignore), source }
}

/// Insert, remove and ask at random; every answer must be the scan's.
fn compare_with_scan(seed: u64, masks: &[u64]) {
    let mut numbers = Numbers(seed);
    let mut index = Overlaps::new(seed);
    let mut stored: Vec<(usize, u64, Pattern)> = Vec::new();
    let mut groups = vec![None; 4];
    for step in 0..4_000 {
        match numbers.below(10) {
            0..4 => {
                let record = usize::try_from(numbers.below(40)).unwrap();
                if stored.iter().all(|&(other, ..)| other != record) {
                    // Mostly in order, sometimes an old one: a receive that is being recalled.
                    let sequence = if numbers.below(4) == 0 {
                        numbers.below(step + 1) * 64 + numbers.below(64)
                    } else {
                        step * 64
                    };
                    let pattern = pattern(&mut numbers, masks);
                    if stored.iter().all(|&(_, other, _)| other != sequence) {
                        index.insert(record, sequence, pattern);
                        stored.push((record, sequence, pattern));
                    }
                }
            }
            4..7 => {
                let record = usize::try_from(numbers.below(40)).unwrap();
                index.remove(record);
                stored.retain(|&(other, ..)| other != record);
            }
            7 if step % 50 == 0 => {
                let peer = PeerId(u32::try_from(numbers.below(4)).unwrap());
                let group =
                    [None, Some(GroupId(0)), Some(GroupId(1))][usize::try_from(numbers.below(3)).unwrap()];
                groups[peer.0 as usize] = group;
                index.handle_group(peer, group);
            }
            _ => {
                let asked = pattern(&mut numbers, masks);
                let sequence = numbers.below(step + 1) * 64 + 1;
                let expected = stored
                    .iter()
                    .filter(|(_, age, other)| *age < sequence && overlaps(&asked, other, &groups))
                    .max_by_key(|&&(_, age, _)| age)
                    .map(|&(record, ..)| InTheWay::Newest(record));
                assert_eq!(
                    index.newest_before(sequence, &asked),
                    expected,
                    "seed {seed} step {step}: {asked:?}"
                );
            }
        }
    }
}

#[test]
fn the_newest_in_the_way_is_the_one_a_scan_finds() {
    for seed in 0..60 {
        compare_with_scan(seed, &[0, 1, 6, 15, u64::MAX]);
    }
}

#[test]
fn more_classes_than_are_followed_block_and_do_not_err() {
    let mut index = Overlaps::new(1);
    let mask = |n: usize| Pattern { tag: Tag(0), ignore: Ignore(1 << n), source: Source::Any };
    for n in 0..CLASSES_MAX {
        index.insert(n, n as u64, mask(n));
    }
    assert_eq!(index.newest_before(100, &mask(3)), Some(InTheWay::Newest(CLASSES_MAX - 1)));
    assert_eq!(index.newest_before(100, &mask(40)), Some(InTheWay::Unknown), "every class is in use");
    index.insert(50, 50, mask(41));
    assert_eq!(
        index.newest_before(100, &mask(3)),
        Some(InTheWay::Unknown),
        "one of a class that is not followed"
    );
    index.remove(50);
    index.remove(7);
    assert_eq!(
        index.newest_before(100, &mask(40)),
        Some(InTheWay::Newest(CLASSES_MAX - 1)),
        "a class came free"
    );
}

fn handle(index: u32) -> TagHandle {
    TagHandle { index, generation: 1 }
}

const DEVICE: DeviceId = DeviceId(0);

#[test]
fn a_sync_is_due_only_for_entries_that_wait_or_near_the_wrap() {
    let mut phase = Phase::new(0xfffe, 64, 0);
    assert_eq!(phase.poll_buffers(true), 64);
    assert_eq!(phase.report(), 0xfffe);
    put_add(&mut phase, 1, true);
    phase.handle_seen(DEVICE).unwrap();
    phase.handle_decided();
    assert!(!phase.is_sync_due(1), "nobody is known to wait");
    assert_eq!(phase.handle_done(DEVICE, Operation::Add(handle(1)), 0xffff), Ok(Stood::Behind));
    let mark = phase.mark_inactive();
    assert!(phase.is_sync_due(1));
    assert_eq!(phase.report(), 0xffff);
    phase.handle_queued(Operation::Sync, true);
    assert!(!phase.is_sync_due(1), "one is under way");
    assert_eq!(phase.handle_done(DEVICE, Operation::Sync, 0xffff), Ok(Stood::InPhase));
    assert!(!phase.is_marked(mark), "every entry is active");
    for _ in 0..(1 << 14) {
        assert!(!phase.is_sync_due(1));
        phase.poll_buffers(true);
        phase.handle_seen(DEVICE).unwrap();
        phase.handle_decided();
    }
    assert!(phase.is_sync_due(0), "2^14 unexpected messages went by");
}

#[test]
fn of_adds_with_one_count_few_ask_for_a_completion_and_their_slots_come_back_with_it() {
    let mut phase = Phase::new(0, 64, 3);
    let asked: Vec<bool> = (0..9)
        .map(|index| {
            let is_asked = phase.is_add_asked();
            put_add(&mut phase, index, is_asked);
            is_asked
        })
        .collect();
    assert_eq!(asked, [false, false, false, true, false, false, false, true, false]);
    assert_eq!(phase.slots_used(), 9);
    assert!(phase.try_add_done(handle(3), 0));
    assert_eq!(phase.slots_used(), 5);
    assert_eq!(phase.handle_done(DEVICE, Operation::Add(handle(7)), 0), Ok(Stood::InPhase));
    assert_eq!(phase.slots_used(), 1);
    assert!(phase.is_nothing_asked());
    phase.handle_decided();
    assert!(phase.is_add_asked(), "its count is another");
}

#[test]
fn a_sync_is_due_for_entries_of_which_nothing_was_heard() {
    let mut phase = Phase::new(0, 64, 3);
    put_add(&mut phase, 1, false);
    assert!(!phase.is_sync_due(1), "there is no other count to report");
    phase.handle_decided();
    assert!(!phase.is_sync_due(0), "the entry is gone");
    assert!(phase.is_sync_due(1));
    assert_eq!(phase.report(), 1);
    phase.handle_queued(Operation::Sync, true);
    put_add(&mut phase, 2, false);
    assert_eq!(phase.handle_done(DEVICE, Operation::Sync, 1), Ok(Stood::InPhase));
    phase.handle_decided();
    assert!(phase.is_sync_due(2), "one more went down behind the SYNC");
}

#[test]
fn a_delete_that_is_withdrawn_gives_its_slot_back_and_those_behind_it_move_up() {
    let mut phase = Phase::new(0, 64, 3);
    put_add(&mut phase, 1, false);
    phase.handle_queued(Operation::Del(handle(1)), true);
    put_add(&mut phase, 2, true);
    put_add(&mut phase, 3, false);
    phase.handle_withdrawn(Operation::Del(handle(1)));
    assert_eq!(phase.slots_used(), 3);
    assert!(phase.try_add_done(handle(2), 0));
    assert_eq!(phase.slots_used(), 1);
    phase.handle_queued(Operation::Del(handle(3)), true);
    phase.handle_withdrawn(Operation::Del(handle(3)));
    assert!(phase.is_nothing_asked() && phase.slots_used() == 1);
    phase.handle_decided();
    assert!(phase.is_sync_due(1), "nothing was heard of the last");
}

fn put_add(phase: &mut Phase, index: u32, is_asked: bool) {
    phase.reserve();
    phase.put_add(handle(index), is_asked);
}

/// Quiet means that nothing would be posted, and what is posted as soon as it is worth it is not missed.
#[test]
fn a_phase_is_quiet_only_while_no_buffers_are_due() {
    for buffers_max in [0, 1, 3, 33, 34, 40, 43, 44, 45, 64, 67, 68, 1000] {
        let mut phase = Phase::new(0, buffers_max, 0);
        phase.poll_buffers(true);
        let mut quiet = 0;
        for used in 0..buffers_max {
            let mut polled = phase.clone();
            quiet += u32::from(phase.is_quiet());
            let posted = polled.poll_buffers(true);
            assert!(!phase.is_quiet() || posted == 0, "{used} of {buffers_max} used");
            let is_due =
                used > 0 && (used >= buffers_max / 4 || buffers_max - used <= 33.max(buffers_max / 2));
            assert_eq!(posted, if is_due { used } else { 0 }, "{used} of {buffers_max} used");
            phase.handle_buffer_used(DEVICE).unwrap();
        }
        assert!(buffers_max == 0 || quiet > 0, "{buffers_max}");
    }
}

#[test]
fn buffers_are_not_posted_into_a_whole_turn_of_the_counter() {
    let mut phase = Phase::new(0, 1 << 15, 0);
    let mut seen = 0_u32;
    loop {
        let posted = phase.poll_buffers(true);
        if posted == 0 {
            break;
        }
        for _ in 0..posted {
            phase.handle_seen(DEVICE).unwrap();
            seen += 1;
        }
    }
    assert!(seen < 1 << 16, "{seen}");
    assert!(seen > (1 << 16) - (1 << 14), "no buffers are held back before they must be: {seen}");
    assert!(phase.handle_seen(DEVICE).is_err(), "a message without a buffer is a fault");
}

#[test]
fn a_completion_that_was_not_due_is_named() {
    let mut phase = Phase::new(0, 64, 0);
    put_add(&mut phase, 1, true);
    let error = phase.handle_done(DEVICE, Operation::Add(handle(2)), 0).unwrap_err();
    assert!(
        error.to_string().contains("TagHandle(2.1)") && error.to_string().contains("TagHandle(1.1)"),
        "{error}"
    );
}
