//! A process that dies after any of its writes: what it had written whole is read, nothing else is, and nobody waits for it.

use std::collections::BTreeSet;

use loom::thread;

use super::region::{LONG, Region};
use super::ring::Rings;
use super::waiting::Socket;
use super::{Reading, outcomes, read, write};
use crate::explore;

const MESSAGES: [&[u8]; 2] = [b"ab", b"c"];

/// The writer dies after so many writes, and its socket ends: how much of it was read, whatever the order.
fn read_of_whoever_writes(times: usize) -> BTreeSet<Vec<u8>> {
    outcomes(2, move || {
        let [writer, reader] = Region::pair(4, [times, LONG], None);
        let (mut writer, mut reader) = (Rings::new(writer, true), Rings::new(reader, false));
        let socket = Socket::new();
        let ending = socket.clone();
        let writing = thread::spawn(move || {
            for message in MESSAGES {
                write(&mut writer, message);
                if writer.is_to_wake() {
                    ending.wake();
                }
            }
            ending.end();
        });
        let mut got = Vec::new();
        loop {
            if read(&mut reader, Reading::Peeking, &mut got) {
                continue;
            }
            // What was written before the end is there when the end shows.
            if socket.is_over() {
                while read(&mut reader, Reading::Peeking, &mut got) {}
                break;
            }
            if reader.may_wait() {
                socket.wait();
            }
        }
        writing.join().expect("it ended");
        got
    })
}

#[test]
fn what_was_written_whole_is_read_and_nothing_else() {
    let (none, one, both) = (Vec::new(), MESSAGES[0].to_vec(), MESSAGES.concat());
    // Five words of the slip, what stands beside the count, and the count.
    let first = 7;
    for times in 0..first {
        assert_eq!(read_of_whoever_writes(times), BTreeSet::from([none.clone()]), "{times} writes");
    }
    assert_eq!(read_of_whoever_writes(first), BTreeSet::from([one.clone()]));
    // The second message takes a byte of the ring and two words, or seven words as the first; and to wake is a write.
    for times in first + 1..first + 8 {
        let outcomes = read_of_whoever_writes(times);
        assert!(outcomes.is_subset(&BTreeSet::from([one.clone(), both.clone()])), "{times}: {outcomes:?}");
    }
    assert_eq!(read_of_whoever_writes(2 * first + 2), BTreeSet::from([both]));
}

/// The reader dies after so many writes, perhaps with a message half taken: the writer writes what has room, and finds full
/// what was not taken. That it writes over nothing that is being read is found by the bytes.
#[test]
fn whoever_writes_to_a_dead_reader_finds_no_room() {
    for times in 0..5 {
        explore(Some(2), move || {
            let [writer, reader] = Region::pair(4, [LONG, times], None);
            let (mut writer, mut reader) = (Rings::new(writer, true), Rings::new(reader, false));
            let reading = thread::spawn(move || {
                let mut got = Vec::new();
                for _ in 0..2 {
                    read(&mut reader, Reading::Bytes, &mut got);
                }
            });
            let messages: [&[u8]; 3] = [b"abc", b"d", b"ef"];
            let written: Vec<bool> = messages.iter().map(|message| write(&mut writer, message)).collect();
            reading.join().expect("it ended");
            assert_eq!(written[..2], [true, true], "four bytes have room");
            if times == 0 {
                assert!(!written[2], "nothing was taken");
            }
        });
    }
}
