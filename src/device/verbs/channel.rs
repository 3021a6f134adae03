//! Completion channels: a descriptor that becomes readable when something comes into a queue that was armed.
//!
//! Not here: the queues.

use std::fmt;
use std::ptr;
use std::sync::Arc;

use super::context::Context;
use super::error::{Errno, VerbsError};
use super::sys::types;

/// A completion channel. Clones share it.
#[derive(Clone, Debug)]
pub struct Channel(Arc<Open>);

impl Channel {
    /// One that never waits.
    ///
    /// # Errors
    /// The device has none left.
    pub fn new(context: &Context) -> Result<Self, VerbsError> {
        // SAFETY: the context is open.
        let raw = unsafe { (context.library().ibv_create_comp_channel)(context.raw()) };
        if raw.is_null() {
            return Err(context.failed("ibv_create_comp_channel"));
        }
        let channel = Self(Arc::new(Open { raw, context: context.clone() }));
        // SAFETY: a descriptor of the channel.
        let flags = unsafe { libc::fcntl(channel.descriptor(), libc::F_GETFL) };
        // SAFETY: as above.
        let result = unsafe { libc::fcntl(channel.descriptor(), libc::F_SETFL, flags | libc::O_NONBLOCK) };
        if flags < 0 || result < 0 {
            return Err(VerbsError::call("fcntl(channel)", context.name(), Errno::last()));
        }
        Ok(channel)
    }

    /// Its descriptor.
    #[must_use]
    pub fn descriptor(&self) -> libc::c_int {
        // SAFETY: the channel exists.
        unsafe { (*self.0.raw).fd }
    }

    /// Take all that it has to say, so that its descriptor is readable no more: how often it said something.
    pub fn drain(&self) -> usize {
        let library = self.0.context.library();
        let mut count = 0;
        loop {
            let (mut queue, mut context) = (ptr::null_mut(), ptr::null_mut());
            // SAFETY: the channel exists, and its descriptor does not wait.
            let result = unsafe { (library.ibv_get_cq_event)(self.0.raw, &raw mut queue, &raw mut context) };
            if result != 0 {
                return count;
            }
            // SAFETY: the queue said so just now. At once, since its destruction waits for it.
            unsafe { (library.ibv_ack_cq_events)(queue, 1) };
            count += 1;
        }
    }

    pub(super) fn raw(&self) -> *mut types::ibv_comp_channel {
        self.0.raw
    }
}

struct Open {
    raw: *mut types::ibv_comp_channel,
    context: Context,
}

// SAFETY: libibverbs locks what threads share.
unsafe impl Send for Open {}
// SAFETY: as above.
unsafe impl Sync for Open {}

impl Drop for Open {
    fn drop(&mut self) {
        // SAFETY: the queues that say something here hold it and are gone.
        let _errno = unsafe { (self.context.library().ibv_destroy_comp_channel)(self.raw) };
    }
}

impl fmt::Debug for Open {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Channel").field(&self.context.name()).finish()
    }
}
