//! Endpoints in random traffic through shared memory, the network and to themselves at once, by the checker of all rings.
#![cfg(target_os = "linux")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are outside test functions")]
#![allow(clippy::wildcard_enum_match_arm, reason = "a test names the one variant that it expects")]

use tagmatch::{engine, ids, matching, seam, wire};

mod device {
    pub(crate) use tagmatch::device::*;

    #[allow(dead_code, reason = "the rig and the traffic serve other transports as well")]
    #[path = "../shm/tests.rs"]
    mod tests;
}
