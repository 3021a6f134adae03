//! Rings that two sides share: bytes come whole and in order, nobody who waits is forgotten, a side that dies leaves nothing
//! half, and memory that was taken back is not taken for what has its place.

use std::sync::atomic::Ordering::Relaxed;

use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use loom::thread;

use super::region::{Region, die_after, has_died};
use super::ring::Rings;
use crate::device::sockets::sys::Part;
use crate::{explore, fails_without_fences};

/// Both sides of a connection.
fn sides(area: usize) -> (Rings, Rings) {
    let region = Region::new(area);
    (Rings::new(region.clone(), true), Rings::new(region, false))
}

fn write(side: &mut Rings, bytes: &[u8]) -> bool {
    side.write_whole(bytes.len(), std::iter::once(Part::Bytes(bytes)))
}

/// Read once what there is.
fn read(side: &mut Rings, into: &mut Vec<u8>) {
    if side.has_bytes() {
        let mut bytes = [0; 16];
        let count = side.read(&mut bytes).expect("both keep to what a ring is");
        into.extend(&bytes[..count]);
    }
}

#[test]
fn bytes_come_whole_and_in_order_by_slip_and_ring() {
    explore(Some(3), || {
        let (mut writer, mut reader) = sides(8);
        let writing = thread::spawn(move || {
            // The first stands on the slip; the second beside it in the ring, or on the slip again.
            assert!(write(&mut writer, b"abc"));
            let is_written = write(&mut writer, b"defg");
            (writer, is_written)
        });
        let mut got = Vec::new();
        for _ in 0..2 {
            read(&mut reader, &mut got);
            assert!(b"abcdefg".starts_with(&got[..]) && [0, 3, 7].contains(&got.len()), "{got:?}");
        }
        let (_writer, is_written) = writing.join().expect("it ended");
        assert!(is_written, "there was room for both");
        read(&mut reader, &mut got);
        read(&mut reader, &mut got);
        assert_eq!(got, b"abcdefg");
    });
}

#[test]
fn places_come_again_when_they_were_read() {
    explore(Some(2), || {
        let (mut writer, mut reader) = sides(4);
        let writing = thread::spawn(move || {
            let mut sent = Vec::new();
            for bytes in [&b"abc"[..], b"de", b"fg"] {
                if write(&mut writer, bytes) {
                    sent.extend(bytes);
                } else {
                    let count = writer.write(bytes).expect("a ring");
                    sent.extend(&bytes[..count]);
                    if count < bytes.len() {
                        break;
                    }
                }
            }
            (writer, sent)
        });
        let mut got = Vec::new();
        for _ in 0..2 {
            read(&mut reader, &mut got);
        }
        let (_writer, sent) = writing.join().expect("it ended");
        for _ in 0..3 {
            read(&mut reader, &mut got);
        }
        assert_eq!(got, sent);
    });
}

#[test]
fn each_answers_the_other() {
    explore(Some(2), || {
        let (mut one, mut other) = sides(8);
        let answering = thread::spawn(move || {
            let mut got = Vec::new();
            while got.len() < 2 {
                read(&mut other, &mut got);
                thread::yield_now();
            }
            assert!(write(&mut other, b"xyz"));
            (other, got)
        });
        assert!(write(&mut one, b"ab"));
        let mut got = Vec::new();
        while got.len() < 3 {
            read(&mut one, &mut got);
            thread::yield_now();
        }
        // What the answer said beside itself: all was taken, so that this stands on the slip.
        assert!(write(&mut one, b"c"));
        let (mut other, heard) = answering.join().expect("it ended");
        assert_eq!((&heard[..], &got[..]), (&b"ab"[..], &b"xyz"[..]));
        let mut last = Vec::new();
        read(&mut other, &mut last);
        assert_eq!(last, b"c");
    });
}

/// A reader that is about to wait, and a writer that writes once: the one does not wait, or the other wakes it.
fn wait_and_write() {
    let (mut writer, reader) = sides(8);
    let waiting = thread::spawn(move || (reader.may_wait(), reader));
    assert!(write(&mut writer, b"a"));
    let wakes = writer.is_to_wake();
    let (waits, _reader) = waiting.join().expect("it ended");
    assert!(!waits || wakes, "it waits for ever");
}

#[test]
fn who_waits_is_woken() {
    explore(None, wait_and_write);
}

#[test]
fn a_wake_up_is_lost_without_the_fences() {
    fails_without_fences(None, wait_and_write);
}

#[test]
fn who_waits_hears_of_an_end() {
    explore(None, || {
        let (writer, reader) = sides(8);
        let waiting = thread::spawn(move || (reader.may_wait(), reader));
        writer.end();
        let wakes = writer.is_to_wake();
        let (waits, reader) = waiting.join().expect("it ended");
        assert!(!waits || wakes, "it waits for ever");
        assert!(reader.is_ended());
    });
}

#[test]
fn a_writer_that_dies_leaves_whole_messages_or_none() {
    for stores in 0..16 {
        explore(Some(2), move || {
            let (mut writer, mut reader) = sides(8);
            let dying = thread::spawn(move || {
                die_after(stores);
                let _ = write(&mut writer, b"abc") && write(&mut writer, b"de");
                writer
            });
            let mut got = Vec::new();
            read(&mut reader, &mut got);
            // Its socket says that it has ended.
            let _writer = dying.join().expect("it ended");
            for _ in 0..2 {
                read(&mut reader, &mut got);
            }
            assert!(b"abcde".starts_with(&got[..]) && [0, 3, 5].contains(&got.len()), "{stores}: {got:?}");
        });
    }
}

#[test]
fn a_reader_that_dies_keeps_its_writer_from_nothing_and_gives_no_room_that_is_not() {
    for stores in 0..8 {
        explore(Some(2), move || {
            let (mut writer, mut reader) = sides(4);
            let dying = thread::spawn(move || {
                die_after(stores);
                let mut got = Vec::new();
                for _ in 0..2 {
                    let before = got.len();
                    read(&mut reader, &mut got);
                    if has_died() {
                        got.truncate(before);
                        break;
                    }
                }
                (reader, got)
            });
            let mut sent = 0;
            for bytes in [&b"abc"[..], b"def"] {
                sent += if write(&mut writer, bytes) { 3 } else { writer.write(bytes).expect("a ring") };
            }
            let (_reader, got) = dying.join().expect("it ended");
            assert!(b"abcdef".starts_with(&got[..]), "{got:?}");
            assert!((got.len()..=got.len() + 4).contains(&sent), "{sent} were written, {} read", got.len());
        });
    }
}

/// The keys have the same place.
const OLD: u32 = 1;
const NEW: u32 = 129;

/// Memory is offered, taken back, and other memory has its place; the other side looks before and after it reads.
fn offer_and_retract() {
    let (maker, other) = sides(8);
    maker.offer(OLD, 0x1000, 10);
    let looking = thread::spawn(move || {
        let before = other.offer_of(OLD);
        let after = other.offer_of(OLD);
        if let (Some(before), Some(_)) = (before, after) {
            assert_eq!(before, (0x1000, 10), "another's memory was read for this one's");
        }
        other
    });
    maker.retract(OLD);
    maker.offer(NEW, 0x2000, 20);
    let other = looking.join().expect("it ended");
    assert_eq!((other.offer_of(OLD), other.offer_of(NEW)), (None, Some((0x2000, 20))));
}

#[test]
fn memory_that_was_taken_back_is_not_taken_for_what_has_its_place() {
    explore(None, offer_and_retract);
}

#[test]
fn it_is_without_the_fences() {
    fails_without_fences(None, offer_and_retract);
}

/// Memory is offered, taken back, and used for something else; the other side looks, reads it, and looks again.
fn retract_and_use() {
    let (maker, other) = sides(8);
    let memory = Arc::new(AtomicU64::new(1));
    let reused = memory.clone();
    maker.offer(OLD, 0x1000, 10);
    let using = thread::spawn(move || {
        maker.retract(OLD);
        reused.store(2, Relaxed);
    });
    if other.offer_of(OLD).is_some() {
        let read = memory.load(Relaxed);
        if other.offer_of(OLD).is_some() {
            assert_eq!(read, 1, "what it was used for later was read, and stands");
        }
    }
    using.join().expect("it ended");
    assert_eq!(other.offer_of(OLD), None);
}

#[test]
fn what_was_read_after_it_was_taken_back_does_not_stand() {
    explore(None, retract_and_use);
}

#[test]
fn it_stands_without_the_fences() {
    fails_without_fences(None, retract_and_use);
}
