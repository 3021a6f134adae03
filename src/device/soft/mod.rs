//! The soft TM-SRQ: an executable description of a NIC that matches, with libmlx5's accounting in front of it.
//!
//! TM-CONTRACT says what such a device does; here it is as state machines without IO, clock or threads. Layers,
//! each usable without those behind it:
//!
//! * [`list`] - the matching list with its activation and counters (11.2)
//! * [`driver`] - `ibv_post_srq_ops` and the polling of completions (5, 6, 8, 9, 11.5), spoken to by [`request`]
//! * [`SoftDevice`] - both, with senders, flows and a completion queue, as a [`Device`](super::Device) or, by its
//!   calls named after those of verbs, as a verbs program sees it
//!
//! [`over::OverTransport`] puts the list over a transport that does not match.
//!
//! Points where the contract is doubtful are [`switches`], by name [`readings`]. In step mode the device does one thing
//! at a time, and which is the caller's choice: [`SoftDevice::steps`], [`SoftDevice::step`].

#![forbid(unsafe_code)]

mod canonical;
pub mod completion;
mod device;
pub mod driver;
mod failure;
mod held;
mod host;
pub mod list;
mod memory;
mod message;
pub mod over;
mod peers;
mod raw;
pub mod readings;
mod receive_queue;
pub mod request;
mod steps;
pub mod switches;
#[cfg(test)]
mod tests;

pub use canonical::Names;
pub use device::{SoftConfig, SoftDevice};
pub use memory::{Arena, Memory, NoMemory};
pub use message::{Acceptance, Kind, Observation, SoftMessage};
pub use raw::RawError;
pub use receive_queue::ReceiveQueue;
pub use steps::Step;
pub use switches::Switches;
