//! The transport over verbs, over the real libibverbs and libmlx5 on a simulated HCA: what every transport does, by the
//! very tests that the others pass (`src/device/tests`).
//!
//! Without one of them: more than 4 GiB, which would be a million packets. A key that is not valid ends the link here.
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are outside test functions")]
#![allow(clippy::wildcard_enum_match_arm, reason = "a test names the one variant that it expects")]

use tagmatch::{engine, ids, matching, seam, wire};

tagmatch_sim::hca_hooks!();

mod device {
    pub(crate) use tagmatch::device::*;

    #[allow(dead_code, reason = "the rig serves other transports as well")]
    mod tests;
}
