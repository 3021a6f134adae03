//! TM-CONTRACT 11.2, rule by rule.

use crate::device::soft::Switches;
use crate::device::soft::list::{Append, ListError, MatchingList};
use crate::device::soft::switches::{Activation, AppendActivates, CountOrder, OutOfSync, UnmaskedTag};
use crate::seam::Buffer;

const FULL: u64 = u64::MAX;

fn list() -> MatchingList {
    MatchingList::new(8, 0, Switches::default())
}

fn append(list: &mut MatchingList, tag: u64, mask: u64, count: Option<u16>) -> u16 {
    let next_index = list.append_next() + 1;
    list.append(Append { next_index, tag, mask, buffer: Buffer::default() }, count).expect("there is room")
}

fn matched(list: &mut MatchingList, tag: u64) -> Option<u16> {
    list.take_match(tag).map(|entry| entry.index)
}

#[test]
fn the_earliest_appended_entry_that_fits_takes_the_message_and_leaves() {
    let mut list = list();
    append(&mut list, 0x10, 0xf0, None);
    append(&mut list, 0x15, FULL, None);
    assert_eq!(matched(&mut list, 0x15), Some(0));
    assert_eq!(matched(&mut list, 0x15), Some(1));
    assert_eq!(matched(&mut list, 0x15), None);
}

#[test]
fn an_append_fills_the_entry_that_the_last_append_named() {
    let mut list = list();
    let buffer = Buffer::default();
    for (next_index, filled) in [(5, 0), (3, 5), (0, 3)] {
        assert_eq!(list.append(Append { next_index, tag: 1, mask: FULL, buffer }, None), Ok(filled));
    }
    let again = Append { next_index: 1, tag: 1, mask: FULL, buffer };
    assert_eq!(list.append(again, None), Err(ListError::Occupied { index: 0 }));
}

#[test]
fn entry_numbers_and_room_are_checked() {
    let mut list = MatchingList::new(2, 0, Switches::default());
    let buffer = Buffer::default();
    let wild = Append { next_index: 9, tag: 1, mask: FULL, buffer };
    assert_eq!(list.append(wild, None), Err(ListError::OutOfRange { index: 9, capacity: 2 }));
    assert_eq!(list.append(Append { next_index: 1, ..wild }, None), Ok(0));
    assert_eq!(list.append(Append { next_index: 1, ..wild }, None), Ok(1));
    assert_eq!(list.append(Append { next_index: 1, ..wild }, None), Err(ListError::Full { capacity: 2 }));
}

#[test]
fn an_entry_appended_out_of_sync_waits_for_an_equal_report() {
    let mut list = list();
    list.count_unexpected();
    append(&mut list, 1, FULL, Some(0));
    assert_eq!(matched(&mut list, 1), None);
    list.noop(Some(1));
    assert_eq!(matched(&mut list, 1), Some(0));
}

#[test]
fn a_count_too_high_is_as_wrong_as_one_too_low() {
    let mut list = list();
    append(&mut list, 1, FULL, Some(1));
    assert_eq!(matched(&mut list, 1), None);
    list.count_unexpected();
    // Equal by accident, and only a report looks.
    assert_eq!(matched(&mut list, 1), None);
    list.noop(Some(1));
    assert_eq!(matched(&mut list, 1), Some(0));
}

#[test]
fn a_command_without_a_count_changes_no_count() {
    let mut list = list();
    list.count_unexpected();
    append(&mut list, 1, FULL, None);
    list.noop(None);
    assert_eq!((list.hardware_phase(), list.software_phase()), (1, 0));
    assert_eq!(matched(&mut list, 1), None);
}

#[test]
fn an_active_entry_matches_while_out_of_sync() {
    let mut list = list();
    append(&mut list, 1, FULL, Some(0));
    list.count_unexpected();
    append(&mut list, 1, FULL, Some(0));
    assert_eq!(matched(&mut list, 1), Some(0));
    assert_eq!(matched(&mut list, 1), None);
}

#[test]
fn remove_works_on_active_and_inactive_entries_and_fails_on_consumed_ones() {
    let mut list = list();
    append(&mut list, 1, FULL, Some(0));
    list.count_unexpected();
    append(&mut list, 2, FULL, Some(0));
    append(&mut list, 3, FULL, Some(1));
    assert!(list.remove(1, None));
    assert!(list.remove(0, None));
    assert_eq!(matched(&mut list, 3), Some(2));
    assert!(!list.remove(2, None));
}

#[test]
fn an_equal_append_activates_earlier_entries_before_its_own() {
    let mut list = list();
    list.count_unexpected();
    append(&mut list, 1, FULL, Some(0));
    append(&mut list, 1, FULL, Some(1));
    assert_eq!(matched(&mut list, 1), Some(0));
    assert_eq!(matched(&mut list, 1), Some(1));
}

#[test]
fn counts_wrap() {
    let mut list = MatchingList::new(8, u16::MAX, Switches::default());
    append(&mut list, 1, FULL, Some(u16::MAX));
    list.count_unexpected();
    assert_eq!(list.hardware_phase(), 0);
    append(&mut list, 2, FULL, Some(0));
    assert_eq!(matched(&mut list, 2), Some(1));
}

#[test]
fn a_tag_outside_its_mask_never_matches() {
    let mut list = list();
    append(&mut list, 0x1f, 0xf0, None);
    for tag in [0x1f, 0x10, 0x0f] {
        assert_eq!(matched(&mut list, tag), None);
    }
}

#[test]
fn a1_other_reading_leaves_late_entries_inactive_for_ever() {
    let switches = Switches { activation: Activation::OnlyAtAppend, ..Switches::default() };
    let mut list = MatchingList::new(8, 0, switches);
    list.count_unexpected();
    append(&mut list, 1, FULL, Some(0));
    list.noop(Some(1));
    assert_eq!(matched(&mut list, 1), None);
    append(&mut list, 1, FULL, Some(1));
    assert_eq!(matched(&mut list, 1), Some(1), "a newer one overtakes");
}

#[test]
fn a2_other_reading_matches_nothing_while_out_of_sync() {
    let switches = Switches { out_of_sync: OutOfSync::NothingMatches, ..Switches::default() };
    let mut list = MatchingList::new(8, 0, switches);
    append(&mut list, 1, FULL, Some(0));
    list.count_unexpected();
    assert_eq!(matched(&mut list, 1), None);
    list.noop(Some(1));
    assert_eq!(matched(&mut list, 1), Some(0));
}

#[test]
fn a3_other_readings_differ_only_where_the_list_says_so() {
    // In one piece, the order shows only together with A1.
    for (count_order, matches) in [(CountOrder::BeforeChange, Some(0)), (CountOrder::AfterChange, None)] {
        let activation = Activation::OnlyAtAppend;
        let switches = Switches { count_order, activation, ..Switches::default() };
        let mut list = MatchingList::new(8, 0, switches);
        list.count_unexpected();
        append(&mut list, 1, FULL, Some(1));
        assert_eq!(matched(&mut list, 1), matches);
    }
    for count_order in [CountOrder::BeforeChange, CountOrder::AfterChange] {
        let mut list = MatchingList::new(8, 0, Switches { count_order, ..Switches::default() });
        list.count_unexpected();
        append(&mut list, 1, FULL, Some(0));
        append(&mut list, 1, FULL, Some(1));
        assert!(list.remove(0, Some(1)));
        assert_eq!(matched(&mut list, 1), Some(1));
    }
}

#[test]
fn a4_other_reading_lets_a_newer_entry_overtake_unless_a_sync_comes_first() {
    for count_order in [CountOrder::BeforeChange, CountOrder::AfterChange] {
        let append_activates = AppendActivates::Itself;
        let switches = Switches { append_activates, count_order, ..Switches::default() };
        let mut list = MatchingList::new(8, 0, switches);
        list.count_unexpected();
        append(&mut list, 1, FULL, Some(0));
        let mut repaired = list.clone();
        append(&mut list, 1, FULL, Some(1));
        assert_eq!(matched(&mut list, 1), Some(1));
        assert_eq!(matched(&mut list, 1), None);

        repaired.noop(Some(1));
        append(&mut repaired, 1, FULL, Some(1));
        assert_eq!(matched(&mut repaired, 1), Some(0));
    }
}

#[test]
fn a7_other_reading_masks_the_tag() {
    let switches = Switches { unmasked_tag: UnmaskedTag::Masked, ..Switches::default() };
    let mut list = MatchingList::new(8, 0, switches);
    append(&mut list, 0x1f, 0xf0, None);
    assert_eq!(matched(&mut list, 0x13), Some(0));
}
