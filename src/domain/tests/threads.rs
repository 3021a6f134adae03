//! Many threads: nothing lost, nothing out of order, nothing stranded.

use super::super::sync::{Moment, hook};
use super::*;
use std::sync::Barrier;
use std::sync::atomic::AtomicBool;
use std::thread;

const THREADS: u32 = 4;
const EACH: u32 = 20_000;

/// From now on this thread lets others run, now and then, where it matters.
fn stumble(seed: u64) {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    hook::set(move |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        if state.is_multiple_of(5) {
            thread::yield_now();
        }
    });
}

/// Posts until it is taken; says how often it was refused.
fn post_until_taken(owner: &Owner<Log, u32>, work: u32) -> u64 {
    let mut refused = 0;
    while let Err(back) = owner.post(work) {
        assert_eq!(back, NotPosted { reason: Refusal::Full, work });
        refused += 1;
        thread::yield_now();
    }
    refused
}

fn many_threads(capacity: usize, pollers: usize) {
    let log = Log::default();
    let count = Arc::clone(&log.count);
    let owner = Owner::new(log, capacity);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let posters: Vec<_> = (0..THREADS)
            .map(|thread| {
                let owner = &owner;
                scope.spawn(move || {
                    stumble(thread.into());
                    (0..EACH).map(|n| post_until_taken(owner, thread << 24 | n)).sum::<u64>()
                })
            })
            .collect();
        for poller in 0..pollers {
            let (owner, over) = (&owner, &over);
            scope.spawn(move || {
                stumble(77 + poller as u64);
                let mut before = 0;
                while !over.load(Ordering::Relaxed) {
                    let now = if poller % 2 == 0 {
                        owner.with(|log| log.works.len()).unwrap()
                    } else {
                        owner.try_with(|log| log.works.len()).unwrap().unwrap_or(before)
                    };
                    assert!(now >= before);
                    before = now;
                    thread::yield_now();
                }
            });
        }
        for poster in posters {
            poster.join().unwrap();
        }
        over.store(true, Ordering::Relaxed);
    });
    // Seen without a call, which would do what was stranded.
    assert_eq!(owner.queued(), 0);
    assert_eq!(count.load(Ordering::Relaxed), u64::from(THREADS * EACH));
    let mut next = [0; THREADS as usize];
    for work in owner.into_inner().unwrap().works {
        let place = &mut next[(work >> 24) as usize];
        assert_eq!(work & 0x00FF_FFFF, *place, "thread {}", work >> 24);
        *place += 1;
    }
    assert_eq!(next, [EACH; THREADS as usize]);
}

#[test]
fn every_work_of_many_threads_is_done_once_and_in_its_threads_order() {
    many_threads(64, 0);
}

#[test]
fn pollers_change_nothing_about_it() {
    many_threads(64, 2);
}

#[test]
fn a_queue_for_one_suffices() {
    many_threads(1, 2);
}

#[test]
fn no_work_waits_for_a_later_call() {
    const ROUNDS: u64 = 20_000;
    const POSTERS: u64 = 2;
    let log = Log::default();
    let count = Arc::clone(&log.count);
    let owner = Owner::new(log, 8);
    let barrier = Barrier::new(2);
    thread::scope(|scope| {
        for poster in 0..POSTERS {
            let (owner, barrier, count) = (&owner, &barrier, &count);
            scope.spawn(move || {
                stumble(poster);
                for round in 1..=ROUNDS {
                    barrier.wait();
                    owner.post(0).unwrap();
                    barrier.wait();
                    // Both have returned and nobody has called since.
                    assert_eq!((count.load(Ordering::Relaxed), owner.queued()), (POSTERS * round, 0));
                }
            });
        }
    });
}

#[test]
fn work_queued_after_the_owner_has_gone_is_done_by_its_own_thread() {
    let log = Log::default();
    let count = Arc::clone(&log.count);
    let owner = Owner::new(log, 4);
    let (refused, gone) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let owned = Barrier::new(2);
    thread::scope(|scope| {
        let poster = {
            let (owner, owned, refused, gone) = (&owner, &owned, Arc::clone(&refused), Arc::clone(&gone));
            scope.spawn(move || {
                hook::set(move |moment| {
                    if moment == Moment::Queueing {
                        refused.wait();
                        gone.wait();
                    }
                });
                owned.wait();
                assert_eq!(owner.post(1), Ok(Posted::Queued));
            })
        };
        owner
            .with(|_| {
                owned.wait();
                refused.wait();
            })
            .unwrap();
        gone.wait();
        poster.join().unwrap();
    });
    assert_eq!((count.load(Ordering::Relaxed), owner.queued()), (1, 0));
}

#[test]
fn posts_that_race_with_a_panic_and_its_recovery_are_done_or_come_back() {
    let owner = Owner::new(Log::default(), 4);
    let (taken, over) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let posters: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    for work in 0..20_000 {
                        match owner.post(work) {
                            Ok(_) => drop(taken.fetch_add(1, Ordering::Relaxed)),
                            Err(back) => assert_eq!(back.work, work),
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let call = || owner.with(|_| std::panic::resume_unwind(Box::new("quietly")));
                let result: Result<Result<(), Refusal>, _> =
                    std::panic::catch_unwind(std::panic::AssertUnwindSafe(call));
                assert!(result.is_err());
                thread::yield_now();
                owner.recover(|_| ()).unwrap();
            }
        });
        for poster in posters {
            poster.join().unwrap();
        }
        over.store(true, Ordering::Relaxed);
    });
    assert_eq!(owner.queued(), 0);
    assert_eq!(owner.into_inner().unwrap().works.len() as u64, taken.into_inner());
}
