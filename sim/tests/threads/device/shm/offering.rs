//! Memory that a side may read by itself: what it read while that was taken back, it does not take for good.

use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};

use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use loom::thread;

use super::region::{LONG, Region};
use super::ring::Rings;
use crate::{explore, fails_without_fences};

/// Two keys with one place.
const KEYS: [u32; 2] = [1, 129];
const OFFERS: [(u64, u64); 2] = [(10, 11), (20, 21)];
/// What stands in the memory while the first is offered, and after.
const THEN: u64 = 5;
const LATER: u64 = 6;

/// One side offers, takes back, and then writes something else: into the memory, and (`is_offering`) into the offer's place.
/// The other reads meanwhile.
fn reading_while_it_is_taken_back(is_offering: bool) {
    let [owner, reader] = Region::pair(4, [LONG; 2], Some(1));
    let (owner, reader) = (Rings::new(owner, true), Rings::new(reader, false));
    let memory = Arc::new(AtomicU64::new(0));
    let owned = memory.clone();
    let owning = thread::spawn(move || {
        owned.store(THEN, Relaxed);
        owner.offer(KEYS[0], OFFERS[0].0, OFFERS[0].1);
        owner.retract(KEYS[0]);
        if is_offering {
            owner.offer(KEYS[1], OFFERS[1].0, OFFERS[1].1);
        } else {
            owned.store(LATER, Relaxed);
        }
    });
    if let Some(offer) = reader.offer_of(KEYS[0]) {
        let read = memory.load(Relaxed);
        if reader.offer_of(KEYS[0]) == Some(offer) {
            assert_eq!(offer, OFFERS[0], "words of another key");
            assert_eq!(read, THEN, "it was read before it was offered, or after it had been taken back");
        }
    }
    owning.join().expect("it ended");
    let offered = KEYS.map(|key| reader.offer_of(key));
    assert_eq!(offered, [None, Some(OFFERS[1]).filter(|_| is_offering)]);
}

#[test]
fn what_stands_was_read_while_it_was_offered() {
    explore(Some(3), || reading_while_it_is_taken_back(false));
}

#[test]
fn what_stands_are_the_words_of_its_key() {
    explore(Some(3), || reading_while_it_is_taken_back(true));
}

#[test]
fn what_was_taken_back_seems_to_stand_without_either_fence() {
    for order in [Release, SeqCst] {
        for is_offering in [false, true] {
            fails_without_fences(order, None, move || reading_while_it_is_taken_back(is_offering));
        }
    }
}
