//! The scenarios of `scenarios.rs` through shared memory.

#[path = "scenarios.rs"]
mod scenarios;
