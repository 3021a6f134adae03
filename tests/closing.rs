//! An endpoint is closed and its process ends, over TCP.
#![cfg(target_os = "linux")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are outside test functions")]

#[path = "endpoint/over_tcp.rs"]
mod over;
#[path = "closing/patience.rs"]
mod patience;
#[path = "closing/scenarios.rs"]
mod scenarios;

/// Here, and as it is.
fn inside(_name: &str, test: impl FnOnce()) {
    test();
}

/// Senders to one, and receivers of one.
const MANY: usize = 100;
