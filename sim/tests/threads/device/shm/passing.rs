//! What is written comes out, in order and whole, and no byte is written while somebody may read it.

use std::collections::BTreeSet;

use loom::thread;

use super::region::{LONG, Region};
use super::ring::Rings;
use super::{Reading, outcomes, read, write};
use crate::explore;

/// Some messages one way, through rings of so many bytes, by somebody who looks so often while they are written.
/// How many got room, as far as orders differ in that.
fn pass(
    preemptions: usize,
    area: usize,
    messages: &'static [&'static [u8]],
    how: Reading,
    looks: usize,
) -> BTreeSet<usize> {
    outcomes(preemptions, move || {
        let [writer, reader] = Region::pair(area, [LONG; 2], None);
        let (mut writer, mut reader) = (Rings::new(writer, true), Rings::new(reader, false));
        let writing = thread::spawn(move || {
            let written: Vec<&[u8]> =
                messages.iter().copied().filter(|message| write(&mut writer, message)).collect();
            assert_eq!(writer.slips(), 1, "nobody said that it was taken");
            written
        });
        let mut got = Vec::new();
        for _ in 0..looks {
            read(&mut reader, how, &mut got);
        }
        let written = writing.join().expect("it ended");
        while read(&mut reader, how, &mut got) {}
        assert_eq!(got, written.concat());
        written.len()
    })
}

#[test]
fn messages_come_on_the_slip_and_in_the_ring() {
    assert_eq!(pass(3, 8, &[b"ab", b"cde"], Reading::Peeking, 2), BTreeSet::from([2]));
}

#[test]
fn a_slip_that_is_read_in_parts_is_whole() {
    for how in [Reading::Bytes, Reading::Heads] {
        assert_eq!(pass(2, 8, &[b"ab", b"cde"], how, 3), BTreeSet::from([2]));
    }
}

#[test]
fn a_place_comes_again_when_it_was_taken() {
    let rooms = pass(2, 4, &[b"abc", b"d", b"ef"], Reading::Peeking, 2);
    assert_eq!(rooms, BTreeSet::from([2, 3]), "the third where the first was taken, and not else");
}

/// Bytes without a slip, round the end of a ring.
#[test]
fn bytes_go_round_the_end() {
    explore(Some(3), || {
        let [writer, reader] = Region::pair(4, [LONG; 2], None);
        let (mut writer, mut reader) = (Rings::new(writer, true), Rings::new(reader, false));
        let writing = thread::spawn(move || {
            let mut left: &[u8] = b"abcdefg";
            for _ in 0..3 {
                left = &left[writer.write(left).expect("the numbers can be")..];
            }
            7 - left.len()
        });
        let mut got = Vec::new();
        for _ in 0..3 {
            let mut bytes = [0; 3];
            let count = reader.read(&mut bytes).expect("the numbers can be");
            got.extend_from_slice(&bytes[..count]);
        }
        let written = writing.join().expect("it ended");
        while read(&mut reader, Reading::Peeking, &mut got) {}
        assert_eq!(got, b"abcdefg"[..written]);
    });
}

/// What was taken is said beside the count: whoever answers on a slip frees the other's.
#[test]
fn two_sides_answer_each_other_on_slips() {
    let slips = outcomes(2, || {
        let [one, other] = Region::pair(4, [LONG; 2], None);
        let (mut one, mut other) = (Rings::new(one, true), Rings::new(other, false));
        let answering = thread::spawn(move || {
            let mut heard = Vec::new();
            for _ in 0..2 {
                if read(&mut other, Reading::Peeking, &mut heard) {
                    assert!(write(&mut other, b"x"));
                }
            }
            (heard, other)
        });
        let mut answers = Vec::new();
        assert!(write(&mut one, b"a"));
        read(&mut one, Reading::Peeking, &mut answers);
        assert!(write(&mut one, b"b"));
        let (mut heard, mut other) = answering.join().expect("it ended");
        while read(&mut other, Reading::Peeking, &mut heard) {}
        assert_eq!(heard, b"ab");
        while read(&mut one, Reading::Peeking, &mut answers) {}
        assert!(answers.len() <= 2 && answers.iter().all(|answer| *answer == b'x'));
        one.slips()
    });
    assert_eq!(slips, BTreeSet::from([1, 2]), "the second where the first was answered, and not else");
}

/// What is said to be taken beside the count may be written over.
#[test]
fn what_is_said_to_be_taken_beside_the_count_is() {
    let counts = outcomes(3, || {
        let [one, other] = Region::pair(4, [LONG; 2], None);
        let (mut one, mut other) = (Rings::new(one, true), Rings::new(other, false));
        let answering = thread::spawn(move || {
            let mut heard = Vec::new();
            if read(&mut other, Reading::Peeking, &mut heard) {
                assert!(write(&mut other, b"x"));
            }
            (heard, other)
        });
        assert_eq!(one.write(b"abc").expect("the numbers can be"), 3);
        assert!(write(&mut one, b"d"));
        let count = one.write(b"efg").expect("the numbers can be");
        let (mut heard, mut other) = answering.join().expect("it ended");
        while read(&mut other, Reading::Peeking, &mut heard) {}
        assert_eq!(heard, b"abcdefg"[..4 + count]);
        (one.slips(), count)
    });
    assert!(counts.contains(&(1, 3)), "on a slip behind an answer, and then in the ring: {counts:?}");
    assert!(counts.contains(&(0, 0)), "{counts:?}");
}
