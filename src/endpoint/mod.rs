//! A reliable datagram endpoint (`FI_EP_RDM`) over transports that have connections.
//!
//! ```text
//!  send  receive  peek  claim  discard  cancel          completions
//!    │       │                                               ▲
//!    ▼       ▼                                               │
//!  addresses ── peers ── connections ── credits ── operations in progress
//!                 │                        │
//!                 │          two engines: messages with a tag, and without
//!                 ▼                        ▼
//!            transports (Outgoing ↓  Ear ↑): self, tcp, verbs, …
//! ```
//!
//! Sans-IO but for the transports it is given, and without a clock: whoever drives it says what time it is. Not here:
//! threads and locks (`domain`), and which shape users' calls have (`provider`, `capi`).

#![forbid(unsafe_code)]

mod config;
mod interface;
mod statistics;

pub use config::Config;
pub use interface::{
    Address, AddressError, Completed, Completion, EndpointError, Failure, Level, Message, NoClaim, Peek,
    PeekAction, Post, PostError, Send, SendRefused, Space,
};
pub use statistics::Statistics;

use std::time::Duration;

use crate::device::transport::Transport;
use crate::seam::Buffer;

/// A reliable datagram endpoint.
pub struct Endpoint {
    config: Config,
    transports: Vec<Box<dyn Transport + std::marker::Send>>,
    statistics: Statistics,
}

impl Endpoint {
    /// An endpoint over these transports. A name is served by the first that takes it, so that the one for the own name
    /// stands first; the endpoint's own name is that of the last.
    ///
    /// # Errors
    /// A transport cannot join the engines.
    pub fn new(
        config: Config,
        transports: Vec<Box<dyn Transport + std::marker::Send>>,
    ) -> Result<Self, EndpointError> {
        Ok(Self { config, transports, statistics: Statistics::default() })
    }

    /// The address under which others reach this endpoint: `sockaddr` bytes, what they insert.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        self.transports.last().map_or(&[], |transport| transport.name())
    }

    /// This number stands for this name from now on. Receives, messages and a connection of the same name that are
    /// there already are this address's from now on. A name may have several numbers; messages are shown as from the
    /// smallest.
    ///
    /// # Errors
    /// The number or the name cannot be. Nothing has changed.
    pub fn set_address(&mut self, address: Address, name: &[u8]) -> Result<(), AddressError> {
        let _ = (address, name);
        Ok(())
    }

    /// The number stands for nobody any more. Receives that name it stay posted, and sends go on.
    pub fn remove_address(&mut self, address: Address) {
        let _ = address;
    }

    /// Post a receive. A completion comes.
    ///
    /// # Errors
    /// Its source stands for nobody, or the endpoint is of no more use.
    pub fn post(&mut self, post: &Post) -> Result<(), PostError> {
        let _ = post;
        Ok(())
    }

    /// Send a message. A completion comes, with [`crate::device::transport::Payload::Copied`] too.
    ///
    /// # Errors
    /// It was not taken; nothing was done, and no completion comes.
    pub fn send(&mut self, send: &Send<'_>) -> Result<(), SendRefused> {
        let _ = send;
        Err(SendRefused::Again)
    }

    /// Look for an unexpected message. Drives progress once; [`Completed::Peeked`] or [`Completed::NoMessage`] comes.
    pub fn peek(&mut self, peek: &Peek) {
        let _ = peek;
    }

    /// Receive the message that a peek of this context claimed. A completion comes, under the same context.
    ///
    /// # Errors
    /// There is no such claim (any more).
    pub fn receive_claimed(&mut self, context: u64, buffer: Buffer, flags: u32) -> Result<(), NoClaim> {
        let _ = (buffer, flags);
        Err(NoClaim { context })
    }

    /// Drop the message that a peek of this context claimed. [`Completed::Peeked`] comes, under the same context.
    ///
    /// # Errors
    /// There is no such claim (any more).
    pub fn discard_claimed(&mut self, context: u64, flags: u32) -> Result<(), NoClaim> {
        let _ = flags;
        Err(NoClaim { context })
    }

    /// Cancel one receive of this context, the oldest, of either space. Its completion says whether it was cancelled
    /// or a message came first. False: none is pending.
    pub fn cancel(&mut self, context: u64) -> bool {
        let _ = context;
        false
    }

    /// Start whatever was sent with `more`.
    pub fn flush(&mut self) {}

    /// Move on, and say how many things happened. `now` is the time since any fixed moment, and never runs backwards.
    ///
    /// # Errors
    /// A transport failed.
    pub fn progress(&mut self, now: Duration) -> Result<usize, EndpointError> {
        let _ = now;
        Ok(0)
    }

    /// The oldest completion.
    #[inline]
    pub fn poll_completion(&mut self) -> Option<Completion> {
        None
    }

    /// File descriptors one of which is readable when [`Self::progress`] would find something.
    pub fn wait_descriptors(&self) -> impl Iterator<Item = i32> {
        self.transports.iter().filter_map(|transport| transport.wait_descriptor())
    }

    /// Whether the owner may wait for the descriptors; false if there is something to do already.
    pub fn may_wait(&mut self) -> bool {
        false
    }

    /// When [`Self::progress`] has something to do at the latest, by its own clock.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Duration> {
        None
    }

    /// Begin to close: what was taken with [`crate::device::transport::Payload::Copied`] still goes out, peers are told,
    /// nothing more is taken. [`Self::progress`] does it; in bounded time [`Self::is_closed`] says true.
    pub fn close(&mut self, now: Duration) {
        let _ = now;
    }

    /// Whether it is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        false
    }

    /// What happened so far.
    #[must_use]
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("config", &self.config)
            .field("statistics", &self.statistics)
            .finish()
    }
}
