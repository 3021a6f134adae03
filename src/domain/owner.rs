//! One owner at a time, and a bounded queue for those who would have to wait.
//!
//! A call that finds the value free owns it and runs directly. A [`Domain::post`] that finds it owned leaves its
//! work in the queue, and the owner does it before it goes. Not here: fairness between those who wait in
//! [`Domain::with`]; that is the mutex's.
//!
//! # Nothing is stranded
//!
//! Claim: work that was queued is done without a further call. In short: whoever queues tries the lock *after*
//! queueing, whoever unlocks looks at the queue *after* unlocking, and a fence stands between the two on either side.
//! (That `try_lock` fails only when the lock is taken is so for every `std` mutex: none tries a weak exchange.)
//!
//! Let P queue work and find, after its fence, the lock taken. The load by which it found that took its value from
//! some owner's locking; call that owner O. O unlocks later (or panics, see below), passes its own fence and looks at
//! the queue. The two fences are sequentially consistent, so one comes first:
//! * P's, then O's: what P did before its fence, the push, is visible to O's look. O finds the queue not empty.
//! * O's, then P's: O's unlocking is visible to P's try, which then cannot have found O's lock. Contradiction.
//!
//! So O finds the queue not empty, or another has emptied it. O tries the lock. If it gets it, it does the work. If
//! not, another owner O' has locked after O unlocked; O stands to O' as P stood to O, with one fence more between
//! P's push and its own try (the fence that O passed), and the argument repeats. There are finitely many owners until
//! all calls have returned, and the last of them finds nobody who could have taken the lock from it.
//!
//! # Order
//!
//! A thread's works are done in its order. It queues them in order, and the queue keeps order. When one of its posts
//! gets the lock, earlier works are in the queue, and are drained first, or were taken out by an owner who finished
//! them before it unlocked.
//!
//! # Nobody is kept for ever
//!
//! An owner that has done [`Owner::capacity`] works of others in one call closes the queue: posts that do not find the
//! value free are refused as if it were full, until that owner has found the queue empty. By then at most one more work
//! of each other thread can have come in.
//!
//! # Panics
//!
//! A panic passes through the thread that ran the call or the work and leaves the lock poisoned. Every later call is
//! refused with [`Refusal::Panicked`] until [`Domain::recover`]; work that was queued stays, and is done then. (A
//! refused call holds the lock for a moment and does not look at the queue. It locked before the recovery did, and
//! the recovery looks, so the claim above holds from the recovery on.)
//!
//! # Cost
//!
//! A post that finds the value free and the queue empty takes 53 instructions more than calling the value, three of
//! them locked: one to lock, one to unlock, one fence. Without synchronisation ([`super::Unsynchronised`]) it takes 12.
//! (x86-64, release build, `valgrind --tool=callgrind`, a loop of posts against a loop of calls.) Nothing is allocated
//! after [`Owner::new`].
//!
//! The queue is not lock-free in one respect: an owner that takes work whose poster was interrupted while putting it in
//! spins until it is in.

use super::sync::{
    AtomicBool, Moment, Mutex, MutexGuard, Ordering, Queue, TryLockError, clear_poison, fence, pause,
};
use super::{Domain, Handle, NotPosted, Posted, Refusal};

/// A value shared among threads.
#[derive(Debug)]
pub struct Owner<T, W> {
    value: Mutex<T>,
    queue: Queue<W>,
    /// An owner has done enough for others. A hint only: nothing is lost by reading it late.
    closed: AtomicBool,
}

impl<T: Handle<W>, W> Owner<T, W> {
    /// A queue for `capacity` works, at least one. It is allocated here and nowhere else.
    #[must_use]
    pub fn new(value: T, capacity: usize) -> Self {
        Self { value: Mutex::new(value), queue: Queue::new(capacity.max(1)), closed: AtomicBool::new(false) }
    }

    /// Works that the queue holds.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.queue.capacity()
    }

    /// Works that wait in the queue now: 0 whenever no call is under way, unless one panicked.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// [`Domain::with`], unless the value is owned: for those who would only do what its owner is doing, like polling.
    ///
    /// # Errors
    /// [`Refusal::Panicked`]
    pub fn try_with<R>(&self, call: impl FnOnce(&mut T) -> R) -> Result<Option<R>, Refusal> {
        match self.value.try_lock() {
            Ok(value) => Ok(Some(self.own(value, call))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Poisoned(_)) => Err(Refusal::Panicked),
        }
    }

    /// The value, after all queued work.
    ///
    /// # Errors
    /// [`Refusal::Panicked`]; value and queued work are lost, so [`Domain::recover`] first.
    pub fn into_inner(self) -> Result<T, Refusal> {
        let mut value = self.value.into_inner().map_err(|_| Refusal::Panicked)?;
        while let Some(work) = self.queue.pop() {
            value.handle_queued(work);
        }
        Ok(value)
    }

    #[inline]
    fn own<R>(&self, mut value: MutexGuard<'_, T>, call: impl FnOnce(&mut T) -> R) -> R {
        let handled = self.drain(&mut value, 0);
        let result = call(&mut value);
        self.leave(value, handled);
        result
    }

    /// The end of every ownership; `handled` works of others were done in it so far.
    #[inline]
    fn leave(&self, mut value: MutexGuard<'_, T>, handled: usize) {
        let handled = self.drain(&mut value, handled);
        self.unlock(value);
        if handled > 0 || !self.queue.is_empty() {
            self.look_again(handled);
        }
    }

    #[cold]
    fn look_again(&self, mut handled: usize) {
        while !self.queue.is_empty() {
            // Else another owner has it, who looks at the queue when it leaves; or a panic, and the queue waits.
            let Ok(mut value) = self.value.try_lock() else { break };
            handled = self.drain(&mut value, handled);
            self.unlock(value);
        }
        if handled >= self.capacity() {
            self.closed.store(false, Ordering::Relaxed);
        }
    }

    /// Whoever calls this looks at the queue next.
    #[inline]
    fn unlock(&self, value: MutexGuard<'_, T>) {
        pause(Moment::Unlocking);
        drop(value);
        pause(Moment::Looking);
        fence(Ordering::SeqCst);
    }

    /// Does what is queued; of `handled` before, how many it makes.
    #[inline]
    fn drain(&self, value: &mut T, handled: usize) -> usize {
        // To look is cheaper than to try to take: no fence. A thread always sees what it queued itself.
        if self.queue.is_empty() { handled } else { self.drain_some(value, handled) }
    }

    #[cold]
    fn drain_some(&self, value: &mut T, mut handled: usize) -> usize {
        while let Some(work) = self.queue.pop() {
            handled += 1;
            if handled >= self.capacity() {
                self.closed.store(true, Ordering::Relaxed);
            }
            value.handle_queued(work);
        }
        handled
    }

    #[cold]
    fn hand_over(&self, work: W) -> Result<Posted<T::Done>, NotPosted<W>> {
        pause(Moment::Queueing);
        let full = |work| NotPosted { reason: Refusal::Full, work };
        if self.closed.load(Ordering::Relaxed) {
            return Err(full(work));
        }
        self.queue.push(work).map_err(full)?;
        fence(Ordering::SeqCst);
        if let Ok(value) = self.value.try_lock() {
            self.leave(value, 0);
        }
        Ok(Posted::Queued)
    }
}

impl<T: Handle<W>, W> Domain<W> for Owner<T, W> {
    type Value = T;

    fn with<R>(&self, call: impl FnOnce(&mut T) -> R) -> Result<R, Refusal> {
        let value = self.value.lock().map_err(|_| Refusal::Panicked)?;
        Ok(self.own(value, call))
    }

    #[inline]
    fn post(&self, work: W) -> Result<Posted<T::Done>, NotPosted<W>> {
        match self.value.try_lock() {
            Ok(value) => Ok(Posted::Done(self.own(value, |value| value.handle_now(work)))),
            Err(TryLockError::WouldBlock) => self.hand_over(work),
            Err(TryLockError::Poisoned(_)) => Err(NotPosted { reason: Refusal::Panicked, work }),
        }
    }

    fn recover<R>(&self, repair: impl FnOnce(&mut T) -> R) -> Result<R, Refusal> {
        let mut value = match self.value.lock() {
            Ok(value) => return Ok(self.own(value, repair)),
            Err(poisoned) => poisoned.into_inner(),
        };
        // First: nothing queued is done on a value that was not repaired.
        let result = repair(&mut value);
        clear_poison(&self.value);
        self.closed.store(false, Ordering::Relaxed);
        self.leave(value, 0);
        Ok(result)
    }
}
