//! Scenarios of the field, as far as they concern the lists: known failures of other implementations, by number.

use super::{Stay, found, matcher, message, receive, taken};
use crate::ids::{PeerId, Source};
use crate::matching::Matcher;

const UNKNOWN: PeerId = PeerId(900);
const P1: PeerId = PeerId(1);
const P2: PeerId = PeerId(2);

fn from(peer: PeerId) -> Source {
    Source::Peer(peer)
}

/// A matcher whose lists are short, and one whose lists are long with what fits nothing here.
fn short_and_long() -> [Matcher<u64, u64>; 2] {
    let mut long = matcher();
    for tag in 0..50 {
        long.post(receive(0xabc0_0000 + tag, 0, Source::Any), Stay::Once, 0);
        long.arrive(message(0xdef0_0000 + tag, 77), 0);
    }
    [matcher(), long]
}

#[test]
fn b01_message_of_an_unknown_source_is_found_once_the_source_is_known() {
    for mut matcher in short_and_long() {
        assert_eq!(taken(matcher.arrive(message(7, UNKNOWN.0), 100)), None);
        assert_eq!(found(matcher.post(receive(7, 0, from(P2)), Stay::Once, 10)), None, "another peer's");
        matcher.resolve(UNKNOWN, P1, &mut |_| panic!("only a receive from the other peer is posted"));
        assert_eq!(found(matcher.post(receive(7, 0, from(P1)), Stay::Once, 11)), Some(100));
        assert_eq!(taken(matcher.arrive(message(7, P2.0), 101)), Some(10));
        matcher.check();
    }
}

#[test]
fn b01_receive_from_the_known_source_takes_the_waiting_message_at_the_resolution() {
    for mut matcher in short_and_long() {
        matcher.arrive(message(7, UNKNOWN.0), 100);
        matcher.arrive(message(7, UNKNOWN.0), 101);
        matcher.post(receive(7, 0, from(P1)), Stay::Once, 10);
        let mut matches = Vec::new();
        matcher.resolve(UNKNOWN, P1, &mut |m| matches.push((m.value, m.message_value, m.envelope.source)));
        assert_eq!(matches, [(10, 100, P1)]);
        assert_eq!(found(matcher.post(receive(7, 0, from(P1)), Stay::Once, 11)), Some(101));
        matcher.check();
    }
}

#[test]
fn b01_resolved_messages_and_receives_keep_their_places_among_others() {
    for mut matcher in short_and_long() {
        matcher.arrive(message(7, UNKNOWN.0), 100);
        matcher.arrive(message(7, P1.0), 101);
        matcher.arrive(message(7, UNKNOWN.0), 102);
        matcher.resolve(UNKNOWN, P1, &mut |_| panic!("nothing is posted"));
        for value in 100..103 {
            assert_eq!(found(matcher.post(receive(7, 0, from(P1)), Stay::Once, 0)), Some(value));
        }
        matcher.post(receive(8, 0, from(P1)), Stay::Once, 20);
        matcher.post(receive(8, 0, from(UNKNOWN)), Stay::Once, 21);
        matcher.post(receive(8, 0, from(P1)), Stay::Once, 22);
        matcher.resolve(UNKNOWN, P1, &mut |_| panic!("nothing waits"));
        for value in 20..23 {
            assert_eq!(taken(matcher.arrive(message(8, P1.0), 0)), Some(value));
        }
        matcher.check();
    }
}

#[test]
fn b01_any_source_receive_takes_a_message_of_an_unknown_source_at_once() {
    for mut matcher in short_and_long() {
        matcher.post(receive(7, 0, Source::Any), Stay::Once, 10);
        assert_eq!(taken(matcher.arrive(message(7, UNKNOWN.0), 100)), Some(10));
    }
}

#[test]
fn b02_no_bit_of_the_tag_is_private() {
    for bit in [63, 62, 61, 60, 32, 31] {
        let flagged = 1 << bit | 1;
        for mut matcher in short_and_long() {
            matcher.post(receive(flagged, 0, Source::Any), Stay::Once, 1);
            assert_eq!(taken(matcher.arrive(message(flagged, 0), 100)), Some(1));
            matcher.arrive(message(flagged, 0), 101);
            assert_eq!(matcher.first_unexpected(&receive(1, 0, Source::Any)), None);
            matcher.arrive(message(1, 0), 102);
            let claimed = matcher.first_unexpected(&receive(1, 0, Source::Any)).expect("it waits");
            let (envelope, value) = matcher.take_unexpected(claimed).expect("it waits");
            assert_eq!((envelope.tag.0, value), (1, 102));
            assert_eq!(found(matcher.post(receive(flagged, 0, Source::Any), Stay::Once, 2)), Some(101));
        }
    }
}

#[test]
fn b03_stray_bits_under_the_ignore_mask_do_not_matter() {
    for mut matcher in short_and_long() {
        // One receive below takes any message whatever.
        for id in matcher.unexpected_ids() {
            matcher.take_unexpected(id);
        }
        matcher.post(receive(0x1ff, 0xff, Source::Any), Stay::Once, 1);
        assert_eq!(taken(matcher.arrive(message(0x123, 0), 100)), Some(1));
        matcher.post(receive(0x1ff, 0xff, Source::Any), Stay::Once, 2);
        assert_eq!(taken(matcher.arrive(message(0x17a, 0), 101)), Some(2));
        matcher.post(receive(0xdead, u64::MAX, Source::Any), Stay::Once, 3);
        assert_eq!(taken(matcher.arrive(message(0, 0), 102)), Some(3));
        matcher.post(receive(0x2ff, 0xff, Source::Any), Stay::Once, 4);
        assert_eq!(taken(matcher.arrive(message(0x123, 0), 103)), None);
        assert_eq!(found(matcher.post(receive(0x1ff, 0xff, Source::Any), Stay::Once, 5)), Some(103));
    }
}

#[test]
fn b04_messages_that_differ_in_one_bit_of_a_field_are_never_taken_for_each_other() {
    // Protocol, source, context and tag fields of a packed layout, as (lowest bit, width).
    for (low, width) in [(61, 3), (43, 18), (32, 11), (0, 32)] {
        for bit in [low, low + width - 1] {
            for mut matcher in short_and_long() {
                let base = 0x0123_4567_89ab_cdefu64;
                matcher.arrive(message(base, 0), 1);
                matcher.arrive(message(base ^ 1 << bit, 0), 2);
                assert_eq!(
                    found(matcher.post(receive(base ^ 1 << bit, 0, Source::Any), Stay::Once, 0)),
                    Some(2)
                );
                assert_eq!(
                    found(matcher.post(receive(base ^ 1 << bit, 0, Source::Any), Stay::Once, 9)),
                    None
                );
                assert_eq!(found(matcher.post(receive(base, 0, Source::Any), Stay::Once, 0)), Some(1));
            }
        }
    }
    let mut matcher = matcher();
    for bit in 0..32 {
        matcher.post(receive(0, 0, Source::Peer(PeerId(1 << bit))), Stay::Once, bit);
    }
    assert_eq!(taken(matcher.arrive(message(0, 0), 0)), None);
    for bit in (0..32).rev() {
        assert_eq!(taken(matcher.arrive(message(0, 1 << bit), 0)), Some(bit));
    }
}

#[test]
fn b13_claimed_or_discarded_messages_are_out_of_everyones_sight() {
    for mut matcher in short_and_long() {
        let seven = receive(7, 0, Source::Any);
        matcher.arrive(message(7, 0), 1);
        let claimed = matcher.first_unexpected(&seven).expect("it waits");
        assert_eq!(matcher.take_unexpected(claimed).map(|(_, value)| value), Some(1));
        assert_eq!(matcher.first_unexpected(&seven), None);
        assert_eq!(found(matcher.post(seven, Stay::Once, 10)), None);
        assert_eq!(matcher.take_unexpected(claimed), None, "a claim is used once");
        assert_eq!(taken(matcher.arrive(message(7, 0), 2)), Some(10));
        matcher.arrive(message(7, 0), 3);
        let discarded = matcher.first_unexpected(&seven).expect("it waits");
        assert!(matcher.take_unexpected(discarded).is_some());
        assert_eq!(matcher.first_unexpected(&seven), None);
        matcher.arrive(message(7, 0), 5);
        assert_eq!(found(matcher.post(seven, Stay::Once, 11)), Some(5));
        matcher.check();
    }
}

#[test]
fn b15_messages_without_data_are_claimed_discarded_and_received_like_any_other() {
    // The lists do not know lengths: what is left of the scenario is that a value of no size does as well.
    let mut matcher: Matcher<(), ()> = Matcher::new(crate::matching::Config::default());
    for depth in [0, 60] {
        for other in 0..depth {
            matcher.arrive(message(1000 + other, 0), ());
        }
        let two = receive(2, 0, Source::Any);
        for _ in 0..4 {
            matcher.arrive(message(2, 0), ());
        }
        assert!(matcher.first_unexpected(&two).is_some());
        for _ in 0..3 {
            let id = matcher.first_unexpected(&two).expect("it waits");
            assert!(matcher.take_unexpected(id).is_some());
        }
        assert_eq!(found(matcher.post(two, Stay::Once, ())), Some(()));
        assert_eq!(matcher.first_unexpected(&two), None);
    }
}
