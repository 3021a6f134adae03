//! A reliable datagram endpoint (`FI_EP_RDM`) over transports that have connections; and one that is connected to one peer
//! alone (`FI_EP_MSG`, `connected`).
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

mod acting;
mod awaited;
mod cancelling;
mod config;
mod connected;
mod connections;
mod core;
mod credits;
mod failing;
mod going;
mod greetings;
mod hearing;
mod interface;
mod links;
mod operations;
mod passive;
mod peers;
mod proof;
mod receiving;
mod remote;
mod sending;
mod statistics;

#[cfg(test)]
mod tests;

pub use config::Config;
pub use connected::PEER;
pub use interface::{
    Address, AddressError, Completed, Completion, ConnectError, ConnectionEvent, EndpointError, Failure,
    Level, Message, NoClaim, Peek, PeekAction, Post, PostError, Send, SendRefused, Space,
};
pub use passive::{ConnectionRequest, PassiveEndpoint};
pub use remote::{Access, AtomicAccess, Local, Region, RegionTaken, RemoteAccess, Withdrawn};
pub use statistics::Statistics;

use std::time::Duration;

use crate::device::transport::Transport;
use crate::engine::Engine;
use crate::ids::DeviceId;

use self::core::Core;

/// A reliable datagram endpoint.
pub struct Endpoint {
    transports: Transports,
    core: Core,
}

type Transports = Vec<Box<dyn Transport + std::marker::Send>>;

impl Endpoint {
    /// An endpoint over these transports. A name is served by the first that takes it, so that the one for the own name
    /// stands first; the endpoint's own name is that of the last.
    ///
    /// # Errors
    /// A transport cannot join the engines, or the job's key is too short.
    pub fn new(config: Config, transports: Transports) -> Result<Self, EndpointError> {
        let name = transports.last().map_or_else(Vec::new, |transport| transport.name().to_vec());
        let devices =
            transports.iter().map(|transport| (transport.capabilities(), transport.is_shared_memory()));
        let mut core = Core::new(config, name, devices)?;
        for (device, transport) in transports.iter().enumerate() {
            for buffer in transport.bounces() {
                core.engines[Space::Tagged as usize].add_bounce_buffer(device_id(device), buffer);
            }
        }
        Ok(Self { core, transports })
    }

    /// The address under which others reach this endpoint: `sockaddr` bytes, what they insert.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        &self.core.name
    }

    /// This number stands for this name from now on. Receives, messages and a connection of the same name that are
    /// there already are this address's from now on. A name may have several numbers; messages are shown as from the
    /// smallest.
    ///
    /// # Errors
    /// The number or the name cannot be. Nothing has changed.
    pub fn set_address(&mut self, address: Address, name: &[u8]) -> Result<(), AddressError> {
        if !self.core.going.is_empty() {
            self.free_rows();
        }
        self.core.peers.set_address(address, name).map(|_| ())
    }

    /// The number stands for nobody any more. Receives that name it stay posted, and sends in progress go on.
    pub fn remove_address(&mut self, address: Address) {
        if let Some(peer) = self.core.peers.remove_address(address) {
            self.core.look_whether_gone(peer);
            self.free_rows();
        }
    }

    /// Start whatever was sent with `more`.
    pub fn flush(&mut self) {
        for transport in &mut self.transports {
            // A device that failed says so in the next progress.
            let _ = transport.flush();
        }
    }

    /// Say what time it is, for those who send without having made progress for a while: a connection that begins has its
    /// time from now on.
    #[inline]
    pub fn tell_time(&mut self, now: Duration) {
        self.core.tell_time(now);
    }

    /// Move on, and say how many things happened. `now` is the time since any fixed moment, and never runs backwards.
    ///
    /// # Errors
    /// A transport failed, now or before. Whatever was in progress has ended, and completions say so.
    #[inline]
    pub fn progress(&mut self, now: Duration) -> Result<usize, EndpointError> {
        if now != self.core.told_now {
            self.core.tell_time(now);
            if self.core.told_now.saturating_sub(self.core.looked) >= LOOK_AROUND {
                self.look_around();
            }
        }
        if let Some(error) = &self.core.failed {
            return Err(error.clone());
        }
        if self.core.line.is_some() {
            self.core.serve_nobody();
        }
        let mut told = 0;
        // What comes of what is told is submitted below.
        let has_commands = !self.core.engines.iter().all(Engine::has_no_commands);
        for device in 0..self.transports.len() {
            if has_commands {
                self.submit(device)?;
            }
            match self.transports[device].progress(EVENTS_MAX, &mut self.core) {
                Ok(events) => told += events,
                Err(error) => return Err(self.fail(error)),
            }
            if self.core.device_failure.is_some() {
                return Err(self.fail_as_told());
            }
        }
        if told > 0 || self.core.has_to_act() {
            self.settle()?;
        }
        if self.core.now >= self.core.next_deadline {
            self.expire();
        }
        Ok(told)
    }

    /// A transport has told that it failed.
    #[cold]
    fn fail_as_told(&mut self) -> EndpointError {
        let error = self.core.device_failure.take();
        self.fail(error.unwrap_or(crate::seam::DeviceError::Removed))
    }

    /// Transports leave out of many looks what costs much. Who looks seldom must not wait for that until then.
    #[cold]
    fn look_around(&mut self) {
        self.core.looked = self.core.told_now;
        for transport in &mut self.transports {
            transport.look_around();
        }
    }

    /// The oldest completion.
    #[inline]
    pub fn poll_completion(&mut self) -> Option<Completion> {
        self.core.completions.pop_front()
    }

    /// File descriptors one of which is readable when [`Self::progress`] would find something.
    pub fn wait_descriptors(&self) -> impl Iterator<Item = i32> {
        self.transports.iter().filter_map(|transport| transport.wait_descriptor())
    }

    /// Why the endpoint is of no more use, if it is of none.
    #[inline]
    #[must_use]
    pub const fn failure(&self) -> Option<&EndpointError> {
        self.core.failed.as_ref()
    }

    /// Whether the owner may wait for the descriptors; false if there is something to do already, or if a transport
    /// failed, since nothing will come any more.
    pub fn may_wait(&mut self) -> bool {
        self.core.serve_nobody();
        !self.core.line.as_ref().is_some_and(|line| line.has_news())
            && self.core.completions.is_empty()
            && self.core.failed.is_none()
            && !self.core.has_to_act()
            && self.core.engines.iter().all(|engine| !engine.is_busy())
            && self.transports.iter_mut().all(|transport| transport.may_wait())
    }

    /// When [`Self::progress`] is to be called at the latest, by the clock that it is told. Time that passes between two
    /// calls counts for a second at most, so that whoever waits calls as often while there is a deadline.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Duration> {
        let is_unseen = self.transports.iter().any(|transport| transport.is_unseen());
        let unseen = if is_unseen { self.core.now.saturating_add(UNSEEN) } else { Duration::MAX };
        let deadline = self.core.next_deadline.min(unseen);
        let left = deadline.saturating_sub(self.core.now).min(core::STEP);
        (deadline < Duration::MAX).then_some(self.core.told_now.saturating_add(left))
    }

    /// Whether it is closed. Somebody who has connected and says nothing does not hold it up.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        let is_silent = |phase| matches!(phase, links::Phase::Silent | links::Phase::Challenged);
        self.core.closing.is_some_and(|closing| {
            closing.is_over || self.core.links.iter().all(|(_, link)| is_silent(link.phase))
        })
    }

    /// What happened so far.
    #[must_use]
    pub fn statistics(&self) -> &Statistics {
        &self.core.statistics
    }

    /// Receives posted and messages unexpected, in this space.
    #[must_use]
    pub fn depths(&self, space: Space) -> (usize, usize) {
        self.core.engines[space as usize].depths()
    }

    /// Sends in progress: their memory is in use, or their peer has still to answer.
    #[must_use]
    pub fn sends_in_progress(&self) -> usize {
        self.core.operations.len()
    }

    /// What of offload was done for messages with a tag.
    #[must_use]
    pub fn offload_statistics(&self) -> &crate::offload::Statistics {
        self.core.engines[Space::Tagged as usize].statistics()
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("name", &self.core.name)
            .field("statistics", &self.core.statistics)
            .finish_non_exhaustive()
    }
}

fn device_id(index: usize) -> DeviceId {
    DeviceId(u8::try_from(index).unwrap_or(u8::MAX))
}

/// The longest message, in bytes: longer ones are refused.
pub const MESSAGE_MAX: u64 = u64::MAX >> 1;
/// How often a transport is to be moved on that waits for what its descriptor does not show.
const UNSEEN: Duration = Duration::from_millis(2);
/// So long at most nobody asks the operating system for what there is, if there is progress meanwhile.
const LOOK_AROUND: Duration = Duration::from_millis(1);
/// What a transport tells at most about in one progress.
const EVENTS_MAX: usize = 256;
