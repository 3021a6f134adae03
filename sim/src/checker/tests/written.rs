//! Histories written by hand, each named by what it shows: those that some order explains, and those that none does.
//! Every one is judged by the monitor, by the edges, and by trying all placements.

use super::brute;
use crate::checker::{Options, Rule, check, monitor, order, parse, print};

fn judged(text: &str, options: Options) -> Option<Rule> {
    let history = parse(text).unwrap();
    assert_eq!(parse(&print(&history)).unwrap(), history);
    let by_monitor = monitor::check(&history, options);
    let by_order = order::check(&history, options);
    assert_eq!(by_monitor.is_ok(), by_order.is_ok(), "{by_monitor:?}, {by_order:?}");
    assert_eq!(by_monitor.is_ok(), check(&history, options).is_ok());
    // What devices report once more is not known to the definition.
    if !options.device_matches_reported {
        assert_eq!(by_monitor.is_ok(), brute::is_explained(&history, options), "{by_monitor:?}");
    }
    by_monitor.err().map(|violation| violation.rule)
}

macro_rules! good {
    ($($name:ident: $text:literal;)*) => {
        mod good {
            $(#[test]
            fn $name() {
                assert_eq!(super::judged($text, super::Options::default()), None);
            })*
        }
    };
}

macro_rules! bad {
    ($($name:ident: $rule:ident, $text:literal;)*) => {
        mod bad {
            $(#[test]
            fn $name() {
                assert_eq!(super::judged($text, super::Options::default()), Some(super::Rule::$rule));
            })*
        }
    };
}

good! {
    nothing_happens: "";
    posted_receives_take_messages_in_post_order: "
        post r0 tag=1 ignore=0 src=any
        post r1 tag=1 ignore=0 src=any
        accept m0 src=1 sent=0 tag=1 path=0
        decide m0 r0
        accept m1 src=1 sent=1 tag=1 path=0
        decide m1 r1";
    unexpected_messages_are_taken_in_arrival_order: "
        accept m0 src=1 sent=0 tag=1 path=0
        decide m0 unexpected
        accept m1 src=2 sent=0 tag=1 path=0
        decide m1 unexpected
        post r0 tag=1 ignore=0 src=any took m0
        post r1 tag=1 ignore=0 src=any took m1";
    a_specific_receive_is_passed_by_what_does_not_fit: "
        post r0 tag=1 ignore=0 src=any
        post r1 tag=0 ignore=f src=any
        accept m0 src=1 sent=0 tag=2 path=0
        decide m0 r1
        accept m1 src=1 sent=1 tag=1 path=0
        decide m1 r0";
    a_directed_receive_is_passed_by_another_source: "
        post r0 tag=1 ignore=0 src=1
        post r1 tag=1 ignore=0 src=any
        accept m0 src=2 sent=0 tag=1 path=0
        decide m0 r1";
    receives_stay_posted_and_messages_unexpected_at_the_end: "
        post r0 tag=1 ignore=0 src=any
        accept m0 src=1 sent=0 tag=2 path=0
        decide m0 unexpected";
    a_receive_is_posted_while_a_message_is_decided: "
        accept m0 src=1 sent=0 tag=1 path=0
        post r0 tag=1 ignore=0 src=any
        decide m0 r0";
    two_senders_race_in_either_order: "
        post r0 tag=1 ignore=0 src=any
        post r1 tag=1 ignore=0 src=any
        accept m0 src=1 sent=0 tag=1 path=0
        accept m1 src=2 sent=0 tag=1 path=1
        decide m0 r1
        decide m1 r0";
    two_unexpected_messages_that_overlapped_are_found_in_either_order: "
        accept m0 src=1 sent=0 tag=1 path=0
        accept m1 src=2 sent=0 tag=1 path=1
        decide m0 unexpected
        decide m1 unexpected
        post r0 tag=1 ignore=0 src=any took m1
        post r1 tag=1 ignore=0 src=any took m0";
    a_later_message_overtakes_into_a_receive_that_does_not_fit_the_earlier: "
        post r0 tag=2 ignore=0 src=any
        accept m0 src=1 sent=0 tag=1 path=0
        accept m1 src=1 sent=1 tag=2 path=0
        device m1 r0
        post r1 tag=1 ignore=0 src=any
        decide m0 r1";
    a_later_message_is_matched_before_the_earlier_is_accepted: "
        post r0 tag=2 ignore=0 src=any
        accept m1 src=1 sent=1 tag=2 path=1
        device m1 r0
        accept m0 src=1 sent=0 tag=1 path=0
        decide m0 unexpected";
    a_hardware_match_passes_an_undecided_message_that_arrived_before_it: "
        post r0 tag=0 ignore=f src=any
        accept m0 src=1 sent=0 tag=1 path=0
        accept m1 src=1 sent=1 tag=1 path=0
        post r1 tag=1 ignore=0 src=any
        decide m0 r0
        decide m1 r1";
    two_devices_match_crosswise: "
        post r0 tag=1 ignore=0 src=any
        post r1 tag=2 ignore=0 src=any
        accept m1 src=1 sent=1 tag=2 path=0
        device m1 r1
        accept m3 src=2 sent=1 tag=1 path=1
        device m3 r0
        accept m0 src=1 sent=0 tag=1 path=1
        decide m0 unexpected
        accept m2 src=2 sent=0 tag=2 path=0
        decide m2 unexpected";
    cancel_of_a_posted_receive_succeeds: "
        post r0 tag=1 ignore=0 src=any
        cancel r0
        cancelled r0
        accept m0 src=1 sent=0 tag=1 path=0
        decide m0 unexpected";
    cancel_fails_for_a_match_decided_later: "
        post r0 tag=1 ignore=0 src=any
        accept m0 src=1 sent=0 tag=1 path=0
        cancel r0
        late r0
        decide m0 r0";
    cancel_takes_effect_before_its_answer: "
        post r0 tag=1 ignore=0 src=any
        post r1 tag=1 ignore=0 src=any
        cancel r0
        accept m0 src=1 sent=0 tag=1 path=0
        decide m0 r1
        cancelled r0";
    cancel_takes_effect_after_a_message_was_undecided: "
        post r0 tag=1 ignore=0 src=any
        accept m0 src=1 sent=0 tag=1 path=0
        cancel r0
        cancelled r0
        decide m0 unexpected
        post r1 tag=1 ignore=0 src=any took m0";
    cancel_of_what_was_completed_fails: "
        post r0 tag=1 ignore=0 src=any
        accept m0 src=1 sent=0 tag=1 path=0
        decide m0 r0
        cancel r0
        late r0";
    cancel_is_called_twice_and_answered_once: "
        post r0 tag=1 ignore=0 src=any
        cancel r0
        cancel r0
        cancelled r0";
    cancel_fails_twice_before_the_match_is_decided: "
        post r0 tag=1 ignore=0 src=any
        accept m0 src=1 sent=0 tag=1 path=0
        cancel r0
        late r0
        cancel r0
        late r0
        decide m0 r0
        cancel r0
        late r0";
    cancels_open_the_way_one_after_the_other: "
        post r0 tag=1 ignore=0 src=any
        post r1 tag=1 ignore=0 src=any
        cancel r1
        cancel r0
        accept m0 src=1 sent=0 tag=1 path=0
        decide m0 unexpected
        cancelled r0
        cancelled r1";
    peek_finds_the_first_and_changes_nothing: "
        accept m0 src=1 sent=0 tag=1 path=0
        decide m0 unexpected
        accept m1 src=1 sent=1 tag=1 path=0
        decide m1 unexpected
        peek tag=1 ignore=0 src=any found m0
        peek tag=1 ignore=0 src=any found m0
        post r0 tag=1 ignore=0 src=any took m0";
    peek_misses_a_message_not_decided_yet: "
        accept m0 src=1 sent=0 tag=1 path=0
        peek tag=1 ignore=0 src=any none
        decide m0 unexpected
        peek tag=1 ignore=0 src=any found m0";
    a_claimed_message_is_out_of_sight: "
        accept m0 src=1 sent=0 tag=1 path=0
        decide m0 unexpected
        accept m1 src=1 sent=1 tag=1 path=0
        decide m1 unexpected
        peek tag=1 ignore=0 src=any claim found m0
        peek tag=1 ignore=0 src=any found m1
        post r0 tag=1 ignore=0 src=any took m1
        post r1 tag=1 ignore=0 src=any";
    a_multi_receive_stays_at_its_place: "
        post r0 tag=1 ignore=0 src=any stay
        post r1 tag=1 ignore=0 src=any
        accept m0 src=1 sent=0 tag=1 path=0
        decide m0 r0
        accept m1 src=1 sent=1 tag=1 path=0
        decide m1 r0
        release r0
        accept m2 src=1 sent=2 tag=1 path=0
        decide m2 r1";
    a_multi_receive_drains_the_unexpected_before_it_is_posted: "
        accept m0 src=1 sent=0 tag=1 path=0
        decide m0 unexpected
        accept m1 src=1 sent=1 tag=1 path=0
        decide m1 unexpected
        post r0 tag=1 ignore=0 src=any stay took m0
        post r0 tag=1 ignore=0 src=any stay took m1
        post r0 tag=1 ignore=0 src=any stay
        accept m2 src=1 sent=2 tag=1 path=0
        decide m2 r0";
    a_multi_receive_is_cancelled_after_its_matches: "
        post r0 tag=1 ignore=0 src=any stay
        accept m0 src=1 sent=0 tag=1 path=0
        cancel r0
        decide m0 r0
        accept m1 src=1 sent=1 tag=1 path=0
        decide m1 unexpected
        cancelled r0";
    a_post_decides_the_message_that_it_takes: "
        accept m0 src=1 sent=0 tag=1 path=0
        post r0 tag=1 ignore=0 src=any took m0";
    undecided_messages_of_a_lost_peer_vanish: "
        post r0 tag=1 ignore=0 src=any
        accept m0 src=1 sent=0 tag=1 path=0
        accept m1 src=1 sent=1 tag=1 path=0
        accept m2 src=2 sent=0 tag=1 path=0
        lost 1
        vanish m1
        decide m2 r0";
    a_message_of_a_lost_peer_is_still_decided: "
        post r0 tag=1 ignore=0 src=any
        accept m0 src=1 sent=0 tag=1 path=0
        lost 1
        decide m0 r0";
    a_receive_from_a_group_takes_its_member: "
        join 1 group=7
        post r0 tag=1 ignore=0 src=group:7
        accept m0 src=2 sent=0 tag=1 path=0
        decide m0 unexpected
        accept m1 src=1 sent=0 tag=1 path=0
        decide m1 r0";
    a_chain_of_messages_makes_room_for_the_first_decided: "
        post r0 tag=1 ignore=0 src=any
        post r1 tag=1 ignore=0 src=any
        post r2 tag=1 ignore=0 src=any
        accept m0 src=1 sent=0 tag=1 path=0
        accept m1 src=2 sent=0 tag=1 path=1
        accept m2 src=3 sent=0 tag=1 path=2
        decide m0 r2
        decide m1 r1
        decide m2 r0";
}

bad! {
    a_receive_posted_earlier_is_passed: EarlierReceive, "
        post r0 tag=1 ignore=0 src=any
        post r1 tag=1 ignore=0 src=any
        accept m0 src=1 sent=0 tag=1 path=0
        decide m0 r1";
    a_wildcard_posted_earlier_is_passed: EarlierReceive, "
        post r0 tag=0 ignore=f src=any
        post r1 tag=1 ignore=0 src=1
        accept m0 src=1 sent=0 tag=1 path=0
        decide m0 r1";
    a_specific_receive_posted_earlier_is_passed: EarlierReceive, "
        post r0 tag=1 ignore=0 src=1
        post r1 tag=0 ignore=f src=any
        accept m0 src=1 sent=0 tag=1 path=0
        decide m0 r1";
    a_message_is_unexpected_though_a_receive_fits: EarlierReceive, "
        post r0 tag=1 ignore=0 src=any
        accept m0 src=1 sent=0 tag=1 path=0
        decide m0 unexpected";
    a_receive_is_posted_though_a_message_waits: EarlierMessage, "
        accept m0 src=1 sent=0 tag=1 path=0
        decide m0 unexpected
        post r0 tag=1 ignore=0 src=any";
    an_unexpected_message_is_taken_out_of_order: EarlierMessage, "
        accept m0 src=1 sent=0 tag=1 path=0
        decide m0 unexpected
        accept m1 src=2 sent=0 tag=1 path=1
        decide m1 unexpected
        post r0 tag=1 ignore=0 src=any took m1";
    two_messages_of_one_sender_change_places: EarlierReceive, "
        post r0 tag=1 ignore=0 src=any
        post r1 tag=1 ignore=0 src=any
        accept m0 src=1 sent=0 tag=1 path=0
        accept m1 src=1 sent=1 tag=1 path=0
        decide m1 r0
        decide m0 r1";
    two_unexpected_messages_of_one_sender_change_places: EarlierMessage, "
        accept m0 src=1 sent=0 tag=1 path=0
        accept m1 src=1 sent=1 tag=1 path=0
        decide m1 unexpected
        decide m0 unexpected
        post r0 tag=1 ignore=0 src=any took m1";
    a_hardware_match_overtakes_an_undecided_message_of_the_same_sender: EarlierReceive, "
        post r0 tag=1 ignore=0 src=any
        post r1 tag=1 ignore=0 src=any
        accept m0 src=1 sent=0 tag=1 path=0
        accept m1 src=1 sent=1 tag=1 path=0
        device m1 r0
        decide m0 r1";
    a_hardware_match_overtakes_what_is_then_unexpected: EarlierReceive, "
        post r0 tag=1 ignore=0 src=any
        accept m0 src=1 sent=0 tag=1 path=0
        accept m1 src=1 sent=1 tag=1 path=0
        device m1 r0
        decide m0 unexpected";
    a_message_is_matched_before_an_earlier_one_that_fits_is_accepted: Overtaken, "
        post r0 tag=1 ignore=f src=any
        accept m1 src=1 sent=1 tag=2 path=1
        decide m1 r0
        accept m0 src=1 sent=0 tag=1 path=0
        decide m0 unexpected";
    a_message_is_unexpected_before_an_earlier_one_is_accepted: Overtaken, "
        accept m1 src=1 sent=1 tag=2 path=1
        decide m1 unexpected
        accept m0 src=1 sent=0 tag=1 path=0
        decide m0 unexpected";
    a_hardware_match_passes_an_older_receive_in_software: EarlierReceive, "
        post r0 tag=0 ignore=f src=any
        post r1 tag=1 ignore=0 src=any
        accept m0 src=1 sent=0 tag=1 path=0
        device m0 r1";
    a_hardware_match_is_a_point: EarlierReceive, "
        post r0 tag=1 ignore=0 src=any
        post r1 tag=1 ignore=0 src=any
        accept m0 src=1 sent=0 tag=1 path=0
        device m0 r1
        accept m1 src=2 sent=0 tag=1 path=1
        device m1 r0";
    a_match_with_a_receive_posted_after_the_decision: NotPosted, "
        accept m0 src=1 sent=0 tag=1 path=0
        decide m0 r0
        post r0 tag=1 ignore=0 src=any";
    a_receive_is_completed_twice: NotPosted, "
        post r0 tag=1 ignore=0 src=any
        accept m0 src=1 sent=0 tag=1 path=0
        accept m1 src=2 sent=0 tag=1 path=0
        decide m0 r0
        decide m1 r0";
    a_message_is_matched_twice: MessageGone, "
        post r0 tag=1 ignore=0 src=any
        post r1 tag=1 ignore=0 src=any
        accept m0 src=1 sent=0 tag=1 path=0
        decide m0 r0
        decide m0 r1";
    a_message_is_taken_twice: MessageGone, "
        accept m0 src=1 sent=0 tag=1 path=0
        decide m0 unexpected
        post r0 tag=1 ignore=0 src=any took m0
        post r1 tag=1 ignore=0 src=any took m0";
    a_message_that_a_post_took_is_decided_again: MessageGone, "
        accept m0 src=1 sent=0 tag=1 path=0
        post r0 tag=1 ignore=0 src=any took m0
        decide m0 unexpected";
    a_match_of_another_tag: DoesNotFit, "
        post r0 tag=1 ignore=0 src=any
        accept m0 src=1 sent=0 tag=2 path=0
        decide m0 r0";
    a_match_of_another_source: DoesNotFit, "
        accept m0 src=1 sent=0 tag=1 path=0
        decide m0 unexpected
        post r0 tag=1 ignore=0 src=2 took m0";
    cancelled_and_matched: NotPosted, "
        post r0 tag=1 ignore=0 src=any
        accept m0 src=1 sent=0 tag=1 path=0
        cancel r0
        cancelled r0
        decide m0 r0";
    matched_and_cancelled: NotPosted, "
        post r0 tag=1 ignore=0 src=any
        accept m0 src=1 sent=0 tag=1 path=0
        cancel r0
        decide m0 r0
        cancelled r0";
    cancel_fails_but_nothing_matched: CancelAnswer, "
        post r0 tag=1 ignore=0 src=any
        cancel r0
        late r0";
    cancel_fails_and_the_match_was_accepted_only_later: CancelAnswer, "
        post r0 tag=1 ignore=0 src=any
        cancel r0
        late r0
        accept m0 src=1 sent=0 tag=1 path=0
        decide m0 r0";
    cancel_fails_then_succeeds: CancelAnswer, "
        post r0 tag=1 ignore=0 src=any
        accept m0 src=1 sent=0 tag=1 path=0
        cancel r0
        late r0
        cancel r0
        cancelled r0
        decide m0 unexpected";
    a_receive_is_passed_before_its_cancel_is_called: EarlierReceive, "
        post r0 tag=1 ignore=0 src=any
        accept m0 src=1 sent=0 tag=1 path=0
        decide m0 unexpected
        cancel r0
        cancelled r0";
    a_message_is_passed_to_a_later_receive_and_the_cancel_fails: EarlierReceive, "
        post r0 tag=1 ignore=0 src=any
        post r1 tag=1 ignore=0 src=any
        cancel r0
        accept m0 src=1 sent=0 tag=1 path=0
        decide m0 r1
        accept m1 src=1 sent=1 tag=1 path=0
        decide m1 r0
        late r0";
    peek_misses_a_decided_message: EarlierMessage, "
        accept m0 src=1 sent=0 tag=1 path=0
        decide m0 unexpected
        peek tag=1 ignore=0 src=any none";
    peek_finds_one_that_is_not_the_first: EarlierMessage, "
        accept m0 src=1 sent=0 tag=1 path=0
        decide m0 unexpected
        accept m1 src=1 sent=1 tag=1 path=0
        decide m1 unexpected
        peek tag=1 ignore=0 src=any found m1";
    peek_finds_one_and_the_next_post_takes_another: EarlierMessage, "
        accept m0 src=1 sent=0 tag=1 path=0
        accept m1 src=2 sent=0 tag=1 path=1
        decide m0 unexpected
        decide m1 unexpected
        peek tag=1 ignore=0 src=any found m0
        post r0 tag=1 ignore=0 src=any took m1";
    peek_finds_a_message_that_an_earlier_peek_missed_behind_another: EarlierMessage, "
        accept m0 src=1 sent=0 tag=1 path=0
        peek tag=1 ignore=0 src=1 none
        accept m1 src=2 sent=0 tag=1 path=1
        decide m1 unexpected
        peek tag=1 ignore=0 src=any found m1
        decide m0 unexpected
        peek tag=1 ignore=0 src=any found m0";
    a_claimed_message_is_stolen: MessageGone, "
        accept m0 src=1 sent=0 tag=1 path=0
        decide m0 unexpected
        peek tag=1 ignore=0 src=any claim found m0
        post r0 tag=1 ignore=0 src=any took m0";
    a_claimed_message_is_found_again: MessageGone, "
        accept m0 src=1 sent=0 tag=1 path=0
        decide m0 unexpected
        peek tag=1 ignore=0 src=any claim found m0
        peek tag=1 ignore=0 src=any found m0";
    a_multi_receive_is_passed: EarlierReceive, "
        post r0 tag=1 ignore=0 src=any stay
        post r1 tag=1 ignore=0 src=any
        accept m0 src=1 sent=0 tag=1 path=0
        decide m0 r0
        accept m1 src=1 sent=1 tag=1 path=0
        decide m1 r1";
    a_released_multi_receive_is_used: NotPosted, "
        post r0 tag=1 ignore=0 src=any stay
        accept m0 src=1 sent=0 tag=1 path=0
        decide m0 r0
        release r0
        accept m1 src=1 sent=1 tag=1 path=0
        decide m1 r0";
    a_multi_receive_is_cancelled_though_its_match_came_after_one_that_missed_it: EarlierReceive, "
        post r0 tag=1 ignore=0 src=any stay
        cancel r0
        accept m0 src=1 sent=0 tag=1 path=0
        decide m0 unexpected
        accept m1 src=1 sent=1 tag=1 path=0
        decide m1 r0
        cancelled r0";
    a_message_vanishes_though_its_peer_is_there: Record, "
        accept m0 src=1 sent=0 tag=1 path=0
        lost 2
        vanish m0";
    a_message_is_never_decided: Unfinished, "
        post r0 tag=1 ignore=0 src=any
        accept m0 src=1 sent=0 tag=1 path=0";
    a_cancel_is_never_answered: Unfinished, "
        post r0 tag=1 ignore=0 src=any
        cancel r0";
    one_message_cannot_make_room_twice: EarlierReceive, "
        post r0 tag=1 ignore=0 src=any
        post r1 tag=2 ignore=0 src=any
        post r2 tag=0 ignore=f src=any
        post r3 tag=0 ignore=f src=any
        accept m0 src=1 sent=0 tag=1 path=0
        accept m1 src=2 sent=0 tag=2 path=1
        decide m0 r2
        decide m1 r1";
    three_messages_go_round: EarlierReceive, "
        post r0 tag=0 ignore=e src=any
        post r1 tag=0 ignore=f src=any
        post r2 tag=1 ignore=0 src=any
        accept m0 src=1 sent=0 tag=0 path=0
        accept m1 src=2 sent=0 tag=1 path=1
        accept m2 src=3 sent=0 tag=0 path=2
        decide m0 r1
        decide m1 r2
        decide m2 unexpected
        post r3 tag=0 ignore=0 src=any took m2";
}

const ACROSS: &str = "
    post r0 tag=1 ignore=0 src=any
    accept m0 src=1 sent=0 tag=1 path=0
    accept m1 src=2 sent=0 tag=1 path=0
    decide m1 r0
    decide m0 unexpected";

#[test]
fn acceptance_order_across_senders_is_kept_only_if_asked_for() {
    assert_eq!(judged(ACROSS, Options::default()), None);
    let options = Options { acceptance_order: true, ..Options::default() };
    assert_eq!(judged(ACROSS, options), Some(Rule::EarlierReceive));
    assert_eq!(
        judged(&ACROSS.replace("src=2 sent=0 tag=1 path=0", "src=2 sent=0 tag=1 path=1"), options),
        None
    );
}

#[test]
fn a_device_match_is_reported_once_and_alike() {
    let options = Options { device_matches_reported: true, ..Options::default() };
    let start = "
        post r0 tag=1 ignore=0 src=any
        post r1 tag=1 ignore=0 src=any
        accept m0 src=1 sent=0 tag=1 path=0
        device m0 r0\n";
    assert_eq!(judged(start, options), Some(Rule::Unfinished));
    assert_eq!(judged(&format!("{start}decide m0 r0"), options), None);
    assert_eq!(judged(&format!("{start}decide m0 r1"), options), Some(Rule::MessageGone));
    assert_eq!(judged(&format!("{start}decide m0 r0\ndecide m0 r0"), options), Some(Rule::MessageGone));
    assert_eq!(judged(&format!("{start}decide m0 r0"), Options::default()), Some(Rule::MessageGone));
}

#[test]
fn a_peer_that_joins_a_group_late_is_left_to_the_monitor() {
    let history = parse(
        "accept m0 src=1 sent=0 tag=1 path=0
         decide m0 unexpected
         join 1 group=7
         post r0 tag=1 ignore=0 src=group:7 took m0",
    )
    .unwrap();
    assert_eq!(order::check(&history, Options::default()), Ok(order::Verdict::Undecided));
    assert_eq!(check(&history, Options::default()), Ok(()));
    let missed = parse(&print(&history).replace(" took m0", "")).unwrap();
    assert_eq!(check(&missed, Options::default()).map_err(|it| it.rule), Err(Rule::EarlierMessage));
}

#[test]
fn a_violation_says_where_and_which() {
    let history = parse(
        "post r0 tag=1 ignore=0 src=any
         post r1 tag=1 ignore=0 src=any
         accept m0 src=1 sent=0 tag=1 path=0
         decide m0 r1",
    )
    .unwrap();
    for violation in [monitor::check(&history, Options::default()), check(&history, Options::default())] {
        let text = violation.unwrap_err().to_string();
        assert!(text.starts_with("observation 3, `decide m0 r1`: a receive posted earlier fits"), "{text}");
        assert!(text.contains("r0") && text.contains("m0"), "{text}");
    }
}

#[test]
fn a_line_that_cannot_be_read_is_named() {
    for (text, line, expected) in [
        ("post r0 tag=1 ignore=0 src=any\n\nfoo", 3, "an observation"),
        ("post m0 tag=1 ignore=0 src=any", 1, "a receive (r0)"),
        ("post r0 tag=x ignore=0 src=any", 1, "tag=hex"),
        ("post r0 tag=1 ignore=0 src=all", 1, "src=any, src=peer or src=group:number"),
        ("peek tag=1 ignore=0 src=any", 1, "\"found\" or \"none\""),
        ("# a comment\ndecide m0", 2, "a receive (r0)"),
        ("cancel r0 r1", 1, "the end of the line"),
        ("accept m0 src=1 sent=0 tag=1 path=256", 1, "path=number"),
    ] {
        let error = parse(text).unwrap_err();
        assert_eq!((error.line, error.expected), (line, expected));
    }
}
