//! Threads and memory around an engine and its devices: whose turn it is, and whose buffer.
//!
//! An engine and its devices are one value that one thread at a time may touch (TM-CONTRACT 6.2: posting operations
//! and polling must be serialised). [`Owner`] shares it among threads (`FI_THREAD_SAFE`), [`Unsynchronised`] keeps
//! it for callers that serialise their calls themselves (`FI_THREAD_DOMAIN`); both are a [`Domain`].
//! [`BufferTable`] owns the memory that devices write to.
//!
//! Not here: what the value does. It says by [`Handle`] how it takes work.

#![forbid(unsafe_code)]

mod buffer;
mod owner;
mod sync;
mod unsynchronised;

#[cfg(test)]
mod tests;

pub use buffer::{BufferError, BufferTable, OwnedBuffer, Region, StableBuffer};
pub use owner::Owner;
pub use unsynchronised::Unsynchronised;

/// How a value takes work: at once, or later on another thread.
pub trait Handle<W> {
    /// What the caller learns at once.
    type Done;

    /// Do it now; the caller hears the outcome.
    fn handle_now(&mut self, work: W) -> Self::Done;

    /// Do it late, on whichever thread owns the value. Whoever posted it was told that it is queued, so the outcome,
    /// failure too, must come as a completion. It must not panic for one caller's fault: another caller's thread
    /// runs it.
    fn handle_queued(&mut self, work: W);
}

/// A value that one thread at a time owns.
pub trait Domain<W> {
    /// The value.
    type Value: Handle<W>;

    /// Own the value for as long as `call` takes: for those who poll, or must have an answer. Waits for its turn.
    /// Work that was queued before is done before.
    ///
    /// Not from within another call on the same domain: that has the value already. (An [`Owner`] would wait for
    /// itself.)
    ///
    /// # Errors
    /// [`Refusal::Panicked`], [`Refusal::Reentered`]
    fn with<R>(&self, call: impl FnOnce(&mut Self::Value) -> R) -> Result<R, Refusal>;

    /// Have work done: now if it is nobody's turn, else soon, by the owner. Never waits. The works of one thread
    /// are done in the order in which it posts them.
    ///
    /// # Errors
    /// The work comes back undone, with a [`Refusal`].
    fn post(&self, work: W) -> Result<Posted<<Self::Value as Handle<W>>::Done>, NotPosted<W>>;

    /// Let the value be used again after a panic: `repair` sees whether it is still of use, and makes it so. Without
    /// a panic it is [`Self::with`].
    ///
    /// # Errors
    /// [`Refusal::Reentered`]
    fn recover<R>(&self, repair: impl FnOnce(&mut Self::Value) -> R) -> Result<R, Refusal>;
}

/// What became of posted work.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Posted<D> {
    /// It is done.
    Done(D),
    /// It will be done by the owner, without a further call.
    Queued,
}

/// Why a call was refused. Nothing was done.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The owner is busy and the queue is full; try again (`FI_EAGAIN`).
    #[error("the queue of the domain is full")]
    Full,
    /// A call panicked while it owned the value, which may be half changed. [`Domain::recover`] ends this.
    #[error("a call panicked while it owned the domain")]
    Panicked,
    /// The caller's fault: a call from within a call on a domain that does not synchronise.
    #[error("the domain was called from within a call on it")]
    Reentered,
}

/// Work that was refused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct NotPosted<W> {
    /// Why.
    pub reason: Refusal,
    /// The work, back.
    pub work: W,
}
