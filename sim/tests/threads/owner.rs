//! The owner lock and its queue: nothing is stranded, nothing is done twice, a thread's works are done in its order.

use std::sync::atomic::Ordering;

use loom::sync::Arc;
use loom::thread;

use super::owner::Owner;
use super::{Domain, Handle, Posted, Refusal, explore, fails_without_fences};

/// What was done, in order: who posted it, and the how manieth of that thread's it is.
#[derive(Debug, Default)]
struct Done(Vec<(usize, usize)>);

impl Handle<(usize, usize)> for Done {
    type Done = ();

    fn handle_now(&mut self, work: (usize, usize)) {
        self.0.push(work);
    }

    fn handle_queued(&mut self, work: (usize, usize)) {
        self.0.push(work);
    }
}

type Shared = Arc<Owner<Done, (usize, usize)>>;

fn shared(capacity: usize) -> Shared {
    Arc::new(Owner::new(Done::default(), capacity))
}

/// Post so many works. How many were taken.
fn post(owner: &Shared, thread: usize, count: usize) -> usize {
    let is_taken = |number: &usize| match owner.post((thread, *number)) {
        Ok(Posted::Done(()) | Posted::Queued) => true,
        Err(refused) => {
            assert_eq!((refused.reason, refused.work), (Refusal::Full, (thread, *number)));
            false
        }
    };
    (0..count).filter(is_taken).count()
}

/// All calls have returned: what was taken was done once, and of each thread in order.
fn check(owner: Shared, taken: usize) {
    assert_eq!(owner.queued(), 0, "work is stranded");
    let owner = Arc::try_unwrap(owner).expect("all threads have ended");
    let Done(done) = owner.into_inner().expect("no panic");
    assert_eq!(done.len(), taken, "{done:?}");
    for thread in 0..3 {
        let numbers: Vec<usize> = done.iter().filter(|work| work.0 == thread).map(|work| work.1).collect();
        assert!(numbers.is_sorted_by(|one, other| one < other), "{done:?}");
    }
}

/// Threads that post so many works each.
fn posting(capacity: usize, counts: &'static [usize]) -> impl Fn() + Sync + Send + 'static {
    move || {
        let owner = shared(capacity);
        let threads: Vec<_> = (1..counts.len())
            .map(|number| {
                let owner = owner.clone();
                thread::spawn(move || post(&owner, number, counts[number]))
            })
            .collect();
        let mut taken = post(&owner, 0, counts[0]);
        for thread in threads {
            taken += thread.join().expect("it ended");
        }
        check(owner, taken);
    }
}

#[test]
fn what_two_threads_post_is_done() {
    explore(None, posting(2, &[1, 1]));
}

#[test]
fn a_threads_works_are_done_in_its_order() {
    explore(Some(4), posting(2, &[2, 2]));
}

#[test]
fn what_three_threads_post_is_done() {
    explore(Some(2), posting(3, &[1, 1, 1]));
}

#[test]
fn a_full_queue_refuses_and_loses_nothing() {
    explore(Some(3), posting(1, &[2, 2]));
}

#[test]
fn work_is_stranded_without_the_fences() {
    fails_without_fences(Ordering::SeqCst, None, posting(2, &[1, 1]));
}

#[test]
fn who_calls_or_polls_beside_posts_leaves_nothing_behind() {
    explore(Some(3), || {
        let owner = shared(2);
        let calling = owner.clone();
        let caller = thread::spawn(move || {
            calling.with(|_| ()).expect("no panic");
            calling.try_with(|_| ()).expect("no panic");
        });
        let taken = post(&owner, 0, 2);
        caller.join().expect("it ended");
        check(owner, taken);
    });
}
