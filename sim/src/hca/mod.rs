//! The device model of a simulated ConnectX: what stands behind the mlx5 driver, without the driver's system calls.
//!
//! ```text
//!  control path (decoded commands)          doorbell records, WQEs, buffers, CQEs
//!        │  alloc_pd … modify_qp …                 ▲ through HostMemory
//!        ▼                                         ▼
//!  ┌─ Hca ── objects ── requester ── responder ── TM-SRQ ── completion ─┐
//!  └───┬───────────────────────┬──────────────────────┬────────────────┘
//!      ▼ poll_completion_event ▼ poll_async_event     ▼ poll_packet / handle_packet
//! ```
//!
//! Sans-IO: no clock, no threads, no locks, no files. It is driven in one of two ways:
//!
//! * step mode: [`Hca::steps`] says what the device could do next, [`Hca::step`] does one of them;
//! * thread mode: [`Hca::run`] does what there is to do; whoever has a clock calls [`Hca::advance_clock`].
//!
//! Several processes make one fabric by carrying the packets of [`Hca::poll_packet`] to the process that they name
//! ([`Packet::process`]), and handing them to [`Hca::handle_packet`] there, in order.
//!
//! Not here: symbol hooks, sysfs, the framing of commands, file descriptors, counting of events read.

mod answers;
mod codec;
mod config;
mod control;
mod cq;
mod datagrams;
mod device;
mod drive;
mod errno;
mod fabric;
mod failure;
mod layout;
mod memory;
mod packet;
mod qp;
mod qp_state;
mod raw_memory;
mod regions;
mod requester;
mod requests;
mod responder;
mod srq;
mod tag_commands;
mod tag_receive;
#[cfg(test)]
mod tests;
mod tm;
pub mod verbs;
mod wqe;

pub use config::{HcaConfig, Limits, LinkLayer};
pub use device::{Counts, Hca};
pub use drive::{Step, TIMERS_MAX};
pub use errno::Errno;
pub use memory::{Arena, HostMemory, NoMemory};
pub use packet::{Packet, PacketError};
pub use raw_memory::RawMemory;
pub use requests::*;
