//! The scenarios of `scenarios.rs` through shared memory, with the soft TM-SRQ over it.

#[path = "scenarios.rs"]
mod scenarios;
