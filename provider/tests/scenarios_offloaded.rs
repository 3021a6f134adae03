//! The scenarios of `scenarios.rs` with the soft TM-SRQ over the transport.

#[path = "scenarios.rs"]
mod scenarios;
