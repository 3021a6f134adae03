//! Whole endpoints on a simulated network, by seed: one seed is one run. docs/testing.md tells how to run one again, and more
//! of them.
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are outside test functions")]
#![allow(clippy::wildcard_enum_match_arm, reason = "a test names the one variant that it expects")]

use tagmatch::{device, endpoint, engine, ids, matching, seam, wire};
use tagmatch_sim::checker;

mod seeds;
