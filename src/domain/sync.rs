//! The primitives under the owner lock, in one place: `sim/tests/threads` has others of the same names in theirs, and goes
//! through every order of steps.

pub(super) use std::sync::{
    Mutex, MutexGuard, TryLockError,
    atomic::{AtomicBool, Ordering, fence},
};

pub(super) use crossbeam_queue::ArrayQueue as Queue;

/// The lock may be taken again after a panic.
pub(super) fn clear_poison<T>(mutex: &Mutex<T>) {
    mutex.clear_poison();
}

/// The moments just before a step, at which another thread's step changes what must happen next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Moment {
    /// A post found the value owned, and has not queued yet.
    Queueing,
    /// An owner has drained the queue, and has not unlocked yet.
    Unlocking,
    /// An owner has unlocked, and has not looked at the queue yet.
    Looking,
}

/// Nothing. In tests: whatever this thread's [`hook`] does at that moment.
#[inline]
pub(super) fn pause(moment: Moment) {
    #[cfg(test)]
    hook::run(moment);
    #[cfg(not(test))]
    let _ = moment;
}

#[cfg(test)]
pub(super) mod hook {
    //! What a test does between two steps of its own thread, to bring about by force what is rare by chance.

    use super::Moment;
    use std::cell::RefCell;

    type Hook = Box<dyn FnMut(Moment)>;

    thread_local! {
        static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
    }

    /// Replaces this thread's hook. It is not run for what it calls itself.
    pub(in crate::domain) fn set(hook: impl FnMut(Moment) + 'static) {
        HOOK.with(|slot| *slot.borrow_mut() = Some(Box::new(hook)));
    }

    pub(super) fn run(moment: Moment) {
        let taken = HOOK.with(|slot| slot.borrow_mut().take());
        if let Some(mut hook) = taken {
            hook(moment);
            HOOK.with(|slot| *slot.borrow_mut() = Some(hook));
        }
    }
}
