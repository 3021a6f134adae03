//! The transport over verbs on real soft-RoCE, from one device to another: what every transport does, by the very tests
//! that the others pass (`src/device/tests`), with a list of the soft TM-SRQ over it too; and endpoints over it in random
//! traffic, by the checker of all rings.
//!
//! The binary runs itself once in an emulated machine (docs/rxe.md). Where there are such devices already, it uses them.
//!
//! Without one of the transports' tests: more than 4 GiB. A key that is not valid ends the link here.
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are outside test functions")]
#![allow(clippy::wildcard_enum_match_arm, reason = "a test names the one variant that it expects")]

use tagmatch::{engine, ids, matching, seam, wire};

#[path = "rxe/inside.rs"]
mod inside;

mod device {
    pub(crate) use tagmatch::device::*;

    #[allow(dead_code, reason = "the rig serves other transports as well")]
    #[path = "../rxe/tests.rs"]
    mod tests;
}
