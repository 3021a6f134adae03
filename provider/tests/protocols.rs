//! What must hold for every protocol alike: eager, in segments, and by rendezvous, to a peer over TCP and to oneself. The
//! thresholds are so low (`common::counted`) that short messages use all three, and the counters that `tagmatch stats`
//! shows say that they did.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "a call of C through a table of an object is to read the table and to call"
)]

mod common;

#[path = "protocols/cancels.rs"]
mod cancels;
#[path = "protocols/course.rs"]
mod course;
#[path = "protocols/device.rs"]
mod device;
#[path = "protocols/looks.rs"]
mod looks;
