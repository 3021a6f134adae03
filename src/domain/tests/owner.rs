//! One thread: what runs when, and what is refused.

use super::super::sync::{Moment, hook};
use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

/// What callers see is the same with and without a lock, as long as nobody else calls.
fn a_caller_alone<D: Domain<u32, Value = Log>>(domain: &D) {
    assert_eq!(domain.post(7), Ok(Posted::Done(0)));
    assert_eq!(domain.post(8), Ok(Posted::Done(1)));
    assert_eq!(domain.with(|log| log.works.clone()), Ok(vec![7, 8]));

    let panicked = catch_unwind(AssertUnwindSafe(|| domain.post(POISON)));
    assert!(panicked.is_err());
    for _ in 0..2 {
        assert_eq!(domain.post(9), Err(NotPosted { reason: Refusal::Panicked, work: 9 }));
        assert_eq!(domain.with(|log| log.works.len()), Err(Refusal::Panicked));
    }
    assert_eq!(domain.recover(|log| log.works.pop()), Ok(Some(8)));
    assert_eq!(domain.post(10), Ok(Posted::Done(1)));

    let panicked = catch_unwind(AssertUnwindSafe(|| domain.with(|_| panic!("a call that panics"))));
    assert!(panicked.is_err());
    assert_eq!(domain.with(|_| ()), Err(Refusal::Panicked));
    let again = catch_unwind(AssertUnwindSafe(|| domain.recover(|_| panic!("a repair that panics"))));
    assert!(again.is_err());
    assert_eq!(domain.with(|_| ()), Err(Refusal::Panicked));
    assert_eq!(domain.recover(|_| ()), Ok(()));
    assert_eq!(domain.recover(|log| log.works.len()), Ok(2), "without a panic it is an ordinary call");
    assert_eq!(domain.with(|log| log.works.clone()), Ok(vec![7, 10]));
}

#[test]
fn a_caller_alone_runs_directly_and_outlives_its_panics() {
    let owner = Owner::new(Log::default(), 4);
    a_caller_alone(&owner);
    assert_eq!(owner.queued(), 0);
    assert_eq!(owner.into_inner().unwrap().works, [7, 10]);

    let unsynchronised = Unsynchronised::new(Log::default());
    a_caller_alone(&unsynchronised);
    assert_eq!(unsynchronised.into_inner().unwrap().works, [7, 10]);
}

#[test]
fn work_posted_while_the_value_is_owned_is_done_before_the_owner_returns() {
    let owner = Owner::new(Log::default(), 4);
    let during = owner.with(|log| {
        assert_eq!(owner.post(1), Ok(Posted::Queued));
        assert_eq!(owner.post(2), Ok(Posted::Queued));
        assert_eq!(owner.try_with(|_| ()), Ok(None));
        log.works.len()
    });
    assert_eq!(during, Ok(0));
    assert_eq!(owner.queued(), 0);
    assert_eq!(owner.post(3), Ok(Posted::Done(2)));
    assert_eq!(owner.try_with(|log| log.works.clone()), Ok(Some(vec![1, 2, 3])));
}

/// Posts 1 between the owner's last drain and its unlocking, and, if asked to, 2 between that and its look.
fn post_while_the_owner_leaves(and_then: bool) -> (Vec<u32>, usize) {
    let owner = Arc::new(Owner::new(Log::default(), 4));
    let within = Arc::clone(&owner);
    let (mut first, mut second) = (true, and_then);
    hook::set(move |moment| match moment {
        Moment::Unlocking if std::mem::take(&mut first) => {
            assert_eq!(within.post(1), Ok(Posted::Queued));
        }
        Moment::Looking if std::mem::take(&mut second) => {
            assert_eq!(within.post(2), Ok(Posted::Done(2)));
        }
        Moment::Queueing | Moment::Unlocking | Moment::Looking => (),
    });
    assert_eq!(owner.post(0), Ok(Posted::Done(0)));
    let queued = owner.queued();
    hook::set(|_| ());
    (Arc::into_inner(owner).unwrap().into_inner().unwrap().works, queued)
}

#[test]
fn work_queued_behind_the_last_drain_is_done_by_the_owner_that_leaves() {
    assert_eq!(post_while_the_owner_leaves(false), (vec![0, 1], 0));
}

#[test]
fn a_post_that_finds_the_value_free_does_what_is_queued_first() {
    assert_eq!(post_while_the_owner_leaves(true), (vec![0, 1, 2], 0));
}

#[test]
fn a_full_queue_hands_the_work_back_and_has_room_again_when_the_owner_left() {
    let owner = Owner::new(Log::default(), 2);
    for round in 0..3 {
        owner
            .with(|_| {
                assert_eq!(owner.post(round), Ok(Posted::Queued));
                assert_eq!(owner.post(round), Ok(Posted::Queued));
                assert_eq!(owner.post(99), Err(NotPosted { reason: Refusal::Full, work: 99 }));
                assert_eq!(owner.queued(), 2);
            })
            .unwrap();
        assert_eq!(owner.queued(), 0);
    }
    assert_eq!(owner.into_inner().unwrap().works, [0, 0, 1, 1, 2, 2]);
}

#[test]
fn a_queue_of_no_room_has_room_for_one() {
    assert_eq!(Owner::new(Log::default(), 0).capacity(), 1);
}

#[test]
fn queued_work_survives_a_panic_of_the_owner_and_is_done_at_recovery() {
    let owner = Owner::new(Log::default(), 4);
    panics(|| {
        let _ = owner.with(|_| {
            assert_eq!(owner.post(1), Ok(Posted::Queued));
            panic!("a call that panics");
        });
    });
    assert_eq!(owner.queued(), 1);
    assert_eq!(owner.post(2), Err(NotPosted { reason: Refusal::Panicked, work: 2 }));
    assert_eq!(owner.try_with(|_| ()), Err(Refusal::Panicked));
    assert_eq!(owner.recover(|log| log.works.len()), Ok(0), "the repair comes before the queue");
    assert_eq!(owner.queued(), 0);
    assert_eq!(owner.post(2), Ok(Posted::Done(1)));
}

#[test]
fn queued_work_that_panics_is_gone_and_the_rest_is_done_at_recovery() {
    let owner = Owner::new(Log::default(), 4);
    panics(|| {
        let _ = owner.with(|_| [1, POISON, 2].map(|work| owner.post(work).unwrap()));
    });
    assert_eq!(owner.queued(), 1);
    owner.recover(|log| assert_eq!(log.works, [1])).unwrap();
    assert_eq!(owner.into_inner().unwrap().works, [1, 2]);
}

#[test]
fn a_value_that_was_left_by_a_panic_is_not_given_out() {
    let owner = Owner::new(Log::default(), 4);
    panics(|| assert!(owner.post(POISON).is_err()));
    assert_eq!(owner.into_inner().unwrap_err(), Refusal::Panicked);
    let alone = Unsynchronised::new(Log::default());
    let panicked = catch_unwind(AssertUnwindSafe(|| alone.post(POISON)));
    assert!(panicked.is_err());
    assert_eq!(alone.into_inner().unwrap_err(), Refusal::Panicked);
}

#[test]
fn a_domain_that_does_not_synchronise_refuses_calls_from_within() {
    let domain = Unsynchronised::new(Log::default());
    let within = Domain::<u32>::with(&domain, |log| {
        assert_eq!(domain.post(5), Err(NotPosted { reason: Refusal::Reentered, work: 5 }));
        assert_eq!(Domain::<u32>::with(&domain, |_| ()), Err(Refusal::Reentered));
        assert_eq!(Domain::<u32>::recover(&domain, |_| ()), Err(Refusal::Reentered));
        log.handle_now(6)
    });
    assert_eq!(within, Ok(0));
    assert_eq!(domain.post(7), Ok(Posted::Done(1)));
}

/// Posts itself again, for ever.
struct Endless {
    done: u32,
    refused: u32,
    domain: Arc<OnceLock<Owner<Self, u32>>>,
}

impl Handle<u32> for Endless {
    type Done = ();

    fn handle_now(&mut self, work: u32) {
        self.done += 1;
        match self.domain.get().unwrap().post(work) {
            Ok(posted) => assert_eq!(posted, Posted::Queued),
            Err(refused) => {
                assert_eq!(refused.reason, Refusal::Full);
                self.refused += 1;
            }
        }
    }

    fn handle_queued(&mut self, work: u32) {
        self.handle_now(work);
    }
}

#[test]
fn an_owner_is_not_kept_for_ever_by_work_of_others() {
    let domain = Arc::new(OnceLock::new());
    let value = Endless { done: 0, refused: 0, domain: Arc::clone(&domain) };
    assert!(domain.set(Owner::new(value, 16)).is_ok());
    let owner = domain.get().unwrap();
    for call in 1..=3 {
        // Itself and as many more as the queue holds; the last of them is refused another.
        assert_eq!(owner.post(0), Ok(Posted::Done(())));
        assert_eq!(owner.with(|value| (value.done, value.refused)), Ok((17 * call, call)));
    }
}
