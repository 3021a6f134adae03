//! What reads bytes that others have made, as functions that a fuzzer calls.
//!
//! ```text
//!  seeds ─┐
//!         ├─► inputs (changed by seed, or by coverage) ─► target ─► panics, or does not
//!  corpus ┘
//! ```
//!
//! A target takes any bytes. What it promises beside not to panic stands in its module. Each is run by ordinary tests
//! (`tests/targets.rs`), by hand in any number (`tagmatch-fuzz`), and by hand with coverage (`coverage`); docs/testing.md.
//!
//! Not here: hostile peers on live connections (`tests/hostile.rs`), hostile memory that is shared (`device::shm`).

#![forbid(unsafe_code)]

pub mod inputs;
mod targets;

pub use targets::{TARGETS, Target};

/// The target of this name.
#[must_use]
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
