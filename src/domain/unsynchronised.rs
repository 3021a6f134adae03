//! A value for callers that serialise their calls themselves (`FI_THREAD_DOMAIN`): no lock, no queue.
//!
//! It cannot be shared between threads. Where a C library must, its promise to serialise is that library's `unsafe`.

use super::{Domain, Handle, NotPosted, Posted, Refusal};
use std::cell::{Cell, RefCell, RefMut};

/// A value that one thread has for itself.
#[derive(Debug)]
pub struct Unsynchronised<T> {
    value: RefCell<T>,
    /// A call has begun and not returned.
    entered: Cell<bool>,
}

impl<T> Unsynchronised<T> {
    /// The value, kept.
    pub const fn new(value: T) -> Self {
        Self { value: RefCell::new(value), entered: Cell::new(false) }
    }

    /// The value.
    ///
    /// # Errors
    /// [`Refusal::Panicked`]; the value is lost, so [`Domain::recover`] first.
    pub fn into_inner(self) -> Result<T, Refusal> {
        if self.entered.get() { Err(Refusal::Panicked) } else { Ok(self.value.into_inner()) }
    }

    /// Whether a panic left the value behind: entered, yet nobody has it.
    fn enter(&self) -> Result<RefMut<'_, T>, Refusal> {
        let value = self.value.try_borrow_mut().map_err(|_| Refusal::Reentered)?;
        if self.entered.replace(true) { Err(Refusal::Panicked) } else { Ok(value) }
    }
}

impl<T: Handle<W>, W> Domain<W> for Unsynchronised<T> {
    type Value = T;

    fn with<R>(&self, call: impl FnOnce(&mut T) -> R) -> Result<R, Refusal> {
        let mut value = self.enter()?;
        let result = call(&mut value);
        self.entered.set(false);
        Ok(result)
    }

    #[inline]
    fn post(&self, work: W) -> Result<Posted<T::Done>, NotPosted<W>> {
        match self.enter() {
            Ok(mut value) => {
                let done = value.handle_now(work);
                self.entered.set(false);
                Ok(Posted::Done(done))
            }
            Err(reason) => Err(NotPosted { reason, work }),
        }
    }

    fn recover<R>(&self, repair: impl FnOnce(&mut T) -> R) -> Result<R, Refusal> {
        let mut value = self.value.try_borrow_mut().map_err(|_| Refusal::Reentered)?;
        self.entered.set(true);
        let result = repair(&mut value);
        self.entered.set(false);
        Ok(result)
    }
}
