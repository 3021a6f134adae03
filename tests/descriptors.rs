//! A process that has no descriptors left for a while, over TCP. A test of its own, since whatever else runs in the
//! process would have none either.
#![cfg(target_os = "linux")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are outside test functions")]

#[path = "endpoint/over_tcp.rs"]
mod over;
#[path = "descriptors/scenario.rs"]
mod scenario;

/// Here, and as it is.
fn inside(_name: &str, test: impl FnOnce()) {
    test();
}
