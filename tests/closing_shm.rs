//! An endpoint is closed and its process ends, through shared memory.
#![cfg(target_os = "linux")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are outside test functions")]

#[path = "endpoint/over_shm.rs"]
mod over_shm;
#[allow(dead_code, reason = "a helper of other programs")]
#[path = "endpoint/over_tcp.rs"]
mod over_tcp;
#[path = "closing/scenarios.rs"]
mod scenarios;

mod over {
    pub(crate) use crate::over_shm::shared as open;
}

/// Here, and as it is.
fn inside(_name: &str, test: impl FnOnce()) {
    test();
}

/// Senders to one, and receivers of one.
const MANY: usize = 100;
