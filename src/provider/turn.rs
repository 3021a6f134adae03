//! Whose turn it is in a domain: one state, many threads of the application, each of which calls when it likes.
//!
//! With `FI_THREAD_DOMAIN` the application serialises its calls on a domain and everything below, and there is no lock.
//! Every other level shares a domain's state between calls that may come at once, and locks. A thread of the
//! provider's own (automatic progress) locks in any case.

use std::sync::Mutex;

use crate::domain::{Domain, Handle, Refusal, Unsynchronised};

/// A value for one call at a time.
#[allow(clippy::large_enum_variant, reason = "there is one a domain")]
pub(super) enum Turn<T> {
    /// Locked. No work is handed to whoever has it ([`NoWork`]), so that [`Owner`](crate::domain::Owner) with its queue and
    /// the fence for that would only cost.
    Shared(Mutex<T>),
    /// Serialised by the application.
    Promised(Promised<T>),
}

/// A value that the application promises to use from one thread at a time.
pub(super) struct Promised<T>(Unsynchronised<T>);

// SAFETY: `FI_THREAD_DOMAIN` (fi_domain(3)): the application serialises all calls on the domain and what belongs to it,
// with a happens-before edge between any two; `Turn::Promised` is made for that level alone, and `T` may move between
// threads.
unsafe impl<T: Send> Sync for Promised<T> {}

impl<T: Handle<NoWork>> Turn<T> {
    pub(super) fn new(value: T, is_promised: bool) -> Self {
        if is_promised {
            Self::Promised(Promised(Unsynchronised::new(value)))
        } else {
            Self::Shared(Mutex::new(value))
        }
    }

    /// Have the value for as long as the call takes.
    #[inline]
    pub(super) fn with<R>(&self, call: impl FnOnce(&mut T) -> R) -> Result<R, Refusal> {
        match self {
            Self::Shared(value) => {
                value.lock().map(|mut value| call(&mut value)).map_err(|_| Refusal::Panicked)
            }
            Self::Promised(promised) => promised.0.with(call),
        }
    }
}

/// No work is left for others: every call has an answer to give.
#[derive(Clone, Copy, Debug)]
pub(super) enum NoWork {}
