//! Remote memory access (`fi_rma(3)`): writes to and reads of memory that a peer has registered, by messages that the
//! peer's progress serves.
//!
//! ```text
//!  initiator                                  target
//!  write ── pieces, in order ───────────────▶ placed in the region ──┐
//!        ◀────────────── done, a stretch each ───────────────────────┘
//!  read ─── request, a run each ────────────▶ looked up, queued ─────┐
//!        ◀────────────── pieces, in order ───────────────────────────┘
//! ```
//!
//! All goes over the link of the peer's messages, in the order in which it was asked for. Decision 0040 says what order
//! follows from that. Not here: how pieces are placed (`device`), and what they look like (`wire`).

mod asking;
mod cutting;
mod operating;
mod regions;
mod serving;

pub(super) use asking::Asked;
pub(super) use regions::Regions;
pub(super) use serving::{Due, Placing, Served};

pub use operating::AtomicAccess;
pub use regions::{Access, Region, RegionTaken, Withdrawn};

use crate::seam::Segment;
use crate::wire::RemoteStretch;

use super::interface::Address;

/// A write or a read of a peer's memory.
#[derive(Clone, Copy, Debug)]
pub struct RemoteAccess<'a> {
    /// Whose memory.
    pub to: Address,
    /// What is written, or where what is read goes. As many bytes as the stretches have.
    pub local: Local<'a>,
    /// Which memory: one stretch at least.
    pub remote: &'a [RemoteStretch],
    /// Remote CQ data, of a write.
    pub cq_data: Option<u32>,
    /// More will follow at once (`FI_MORE`).
    pub more: bool,
    /// Comes back with the completion.
    pub context: u64,
    /// Comes back with the completion, and says nothing here.
    pub flags: u32,
}

/// Memory of this side's.
#[derive(Clone, Copy, Debug)]
pub enum Local<'a> {
    /// What is written: free when the call returns, and at most the endpoint's inject size.
    Copied(&'a [u8]),
    /// Memory that stays until the completion.
    Memory(&'a [Segment]),
}

/// What of a peer's accesses is under way, and of those to it.
#[derive(Default)]
pub(super) struct Traffic {
    /// Stretches and runs that the peer has still to answer.
    pub(super) asked: u32,
    /// Operations of which not all has gone out: others wait for that.
    pub(super) unsent: u32,
    /// Those of the peer that are not answered.
    pub(super) unanswered: u32,
    /// Answers to its reads, in order.
    pub(super) due: std::collections::VecDeque<Due>,
    /// It is on the list of those that have such answers to come.
    pub(super) is_listed: bool,
}

/// Stretches and runs of one side that the other has not answered: docs/wire.md.
const UNANSWERED_MAX: u32 = 4096;
